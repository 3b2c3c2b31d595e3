// SPDX-License-Identifier: Apache-2.0
/* Packing: the blob's image from a plan, its assignment and the matrix. Index arrays are what the assignment's contents
 * say, in their types; one visit of the layout gives the elements that belong to slots, the bytes and the slot map; one
 * generic gather moves the values. See blob.h. */
#include "analysis/plan/blob.h"

#include "analysis/contents.h"
#include "analysis/plan/assignment.h"
#include "base/integers.h"
#include "analysis/plan/symmetry.h"
#include "base/memory.h"
#include "base/real.h"
#include "base/split.h"

#include <string.h>

enum { ID_AT = 16, LENGTH_AT = 32, CHECKSUM_AT = 40 }; /* in the header */

static int64_t array_bytes(const struct cb_array *array) {
  return array->storage == CB_STORED ? array->count * (int64_t)cb_type_size(array->type) : 0;
}

/* Offset of (region, array) when both exist, else the end of all arrays. */
static int64_t offset_of(const struct cb_plan *plan, int region, int array) {
  int64_t offset = cb_round_up(CB_BLOB_HEADER, CB_BLOB_ALIGN);
  for (int r = 0; r < plan->regions_count; r++)
    for (int a = 0; a < plan->regions[r].arrays_count; a++) {
      if (r == region && a == array) return offset;
      offset = cb_round_up(offset + array_bytes(&plan->regions[r].arrays[a]), CB_BLOB_ALIGN);
    }
  return offset;
}

int64_t cb_blob_offset(const struct cb_plan *plan, int region, int array) {
  return offset_of(plan, region, array);
}

int64_t cb_blob_arrays_end(const struct cb_plan *plan) { return offset_of(plan, -1, -1); }

struct cb_hash cb_blob_id(const struct cb_plan *plan, struct cb_hash pattern) {
  struct cb_hash id = {0, 0};
  cb_hash_field(&id, "plan", &plan->hash, sizeof plan->hash);
  cb_hash_field(&id, "pattern", &pattern, sizeof pattern);
  return id;
}

static void seal(struct cb_blob *blob) {
  const uint64_t length = (uint64_t)blob->length;
  memcpy(blob->bytes + LENGTH_AT, &length, sizeof length);
  const uint64_t checksum = cb_hash_sealed(blob->bytes, (size_t)blob->length, CHECKSUM_AT);
  memcpy(blob->bytes + CHECKSUM_AT, &checksum, sizeof checksum);
}

static void write_header(struct cb_blob *blob, struct cb_hash id) {
  const uint32_t version = CB_BLOB_VERSION, parts = blob->selftest ? 2 : 1;
  memcpy(blob->bytes, "CBGENDAT", 8);
  memcpy(blob->bytes + 8, &version, 4);
  memcpy(blob->bytes + 12, &parts, 4);
  memcpy(blob->bytes + ID_AT, &id.low, 8);
  memcpy(blob->bytes + ID_AT + 8, &id.high, 8);
}

/* ---- slot maps */

/* No nonzero in any slot: all bits set. Threads fill it side by side, as they will write it. */
static void clear_entries(const struct cb_slot_map *map) {
  enum { CHUNK = 1 << 20 };
  const int64_t bytes = map->count * (map->wide ? 8 : 4);
#pragma omp parallel for schedule(static)
  for (int64_t at = 0; at < bytes; at += CHUNK)
    memset((unsigned char *)map->entries + at, 0xff, (size_t)cb_smaller(CHUNK, bytes - at));
}

/* The elements that belong to slots, those of arrays that have a target. */
static void want_fields(struct cb_walk *walk, const struct cb_region *region, const struct cb_contents *contents) {
  for (int a = 0; walk->targets && a < region->arrays_count; a++) {
    if (region->arrays[a].role != CB_ROLE_INDEX || !walk->targets[a]) continue;
    struct cb_field *field = &walk->field[walk->fields++];
    *field = contents[a].slots;
    field->type = region->arrays[a].type;
    field->elements = walk->targets[a];
  }
}

/* Fills the walk's map, of `count` slots. */
static enum cb_status build_map(struct cb_slot_map *map, struct cb_walk *walk, const struct cb_assignment *assignment,
                                int region, struct cb_diag *diag) {
  const struct cb_region_work *work = &assignment->regions[region];
  *map = (struct cb_slot_map){.count = walk->region->value_slots, .wide = assignment->wide};
  const size_t bytes = (size_t)map->count * (map->wide ? 8 : 4);
  map->entries = cb_alloc(bytes, 1);
  if (!map->entries) return cb_fail_memory(diag, "slot map", bytes);
  clear_entries(map);
  walk->part = &work->part;
  walk->map = map;
  if (cb_walk_run(walk, assignment->layouts[region]->visit, work->state, work->units)) return CB_OK;
  cb_slot_map_release(map);
  return cb_fail_memory(diag, "packing", 0);
}

enum cb_status cb_slot_map_build(struct cb_slot_map *map, const struct cb_plan *plan,
                                 const struct cb_assignment *assignment, int region,
                                 unsigned char *const *targets, struct cb_diag *diag) {
  struct cb_walk walk = {.region = &plan->regions[region], .targets = targets};
  want_fields(&walk, walk.region, assignment->regions[region].contents);
  return build_map(map, &walk, assignment, region, diag);
}

enum cb_status cb_mirror_map_build(struct cb_slot_map *map, const struct cb_plan *plan,
                                   const struct cb_assignment *assignment, int region, struct cb_diag *diag) {
  struct cb_walk walk = {.region = &plan->regions[region], .of_mirrored = 1};
  *map = (struct cb_slot_map){.wide = assignment->wide};
  return walk.region->mirrored ? build_map(map, &walk, assignment, region, diag) : CB_OK;
}

void cb_slot_map_release(struct cb_slot_map *map) {
  cb_free(map->entries);
  *map = (struct cb_slot_map){0};
}

/* Counts the map's nonzeros, none of which has been seen before. */
static enum cb_status see_nonzeros(unsigned char *seen, int64_t *placed, const struct cb_slot_map *map,
                                   const struct cb_region *region, int64_t nonzeros, struct cb_diag *diag) {
  for (int64_t slot = 0; slot < map->count; slot++) {
    const uint64_t k = cb_slot_get(map, slot);
    if (k == CB_NO_NONZERO) continue;
    if (k >= (uint64_t)nonzeros || seen[k]++)
      return cb_fail(diag, CB_ERR_INTERNAL, "slot %lld of region '%s' holds nonzero %llu, which is %s",
                     (long long)slot, region->name, (unsigned long long)k,
                     k >= (uint64_t)nonzeros ? "none of the matrix's" : "in another slot already");
    ++*placed;
  }
  return CB_OK;
}

enum cb_status cb_assignment_check(const struct cb_plan *plan, const struct cb_assignment *assignment,
                                   struct cb_diag *diag) {
  const int64_t nonzeros = assignment->nonzeros;
  unsigned char *seen = cb_calloc((size_t)nonzeros, 1);
  enum cb_status s = seen ? CB_OK : cb_fail_memory(diag, "slot check", (uint64_t)nonzeros);
  int64_t placed = 0;
  for (int region = 0; region < plan->regions_count && !s; region++) {
    struct cb_slot_map map = {0}, mirrored = {0};
    s = cb_slot_map_build(&map, plan, assignment, region, NULL, diag);
    if (!s) s = see_nonzeros(seen, &placed, &map, &plan->regions[region], nonzeros, diag);
    if (!s) s = cb_mirror_map_build(&mirrored, plan, assignment, region, diag);
    if (!s) s = see_nonzeros(seen, &placed, &mirrored, &plan->regions[region], nonzeros, diag);
    cb_slot_map_release(&map);
    cb_slot_map_release(&mirrored);
  }
  cb_free(seen);
  if (!s && placed != nonzeros)
    s = cb_fail(diag, CB_ERR_INTERNAL, "%lld of %lld nonzeros have a slot", (long long)placed,
                (long long)nonzeros);
  return s;
}

/* ---- arrays */

static void pack_index(const struct cb_array *array, const struct cb_contents *contents, const void *state,
                       unsigned char *to) {
  const int64_t count = array->count;
  const enum cb_type type = array->type; /* which bytes that are written might be, for all that a compiler knows */
  const struct cb_contents own = *contents;
#pragma omp parallel for schedule(static) if (count >= CB_PARALLEL_LEAST)
  for (int64_t i = 0; i < count; i++) {
    const uint64_t element = cb_contents_element(&own, state, i);
    switch (type) {
    case CB_U8: to[i] = (unsigned char)element; break;
    case CB_U16: ((uint16_t *)to)[i] = (uint16_t)element; break;
    case CB_U32: ((uint32_t *)to)[i] = (uint32_t)element; break;
    default: ((uint64_t *)to)[i] = element; break;
    }
  }
}

/* Place of a value in the region's table. It is there: the table was made from the same values. */
static unsigned char code_of(const struct cb_region *region, double value) {
  int first = 0, end = region->table_count; /* the table ascends, but for a NaN of padding at its beginning */
  while (end - first > 1) {
    const int middle = (first + end) / 2;
    if (cb_real_bits(region->value_table[middle]) <= cb_real_bits(value)) first = middle;
    else end = middle;
  }
  return (unsigned char)first;
}

/* The same gather for fixed values: those that the plan knows, so nothing is lost. */
static void gather_fixed(const struct cb_slot_map *map, const struct cb_region *region, int64_t slots,
                         const double *values, enum cb_type matrix_type, unsigned char *to) {
#pragma omp parallel for schedule(static)
  for (int64_t slot = 0; slot < slots; slot++) {
    const uint64_t k = cb_slot_get(map, slot);
    if (k == CB_NO_NONZERO) continue;
    const double value = cb_real_round(values[k], matrix_type);
    if (region->value_storage == CB_VALUES_CODED) to[slot] = code_of(region, value);
    else cb_real_set(to, region->value_type, slot, value);
  }
}

/* Of complex values, whose parts are rounded each by itself. */
static enum cb_status gather_complex(const struct cb_slot_map *map, int64_t slots, const double *values,
                                     enum cb_type type, unsigned char *to, struct cb_diag *diag) {
  const enum cb_type part = cb_type_of_part(type);
  uint64_t lost = CB_NO_NONZERO;
#pragma omp parallel for schedule(static) reduction(min : lost)
  for (int64_t slot = 0; slot < slots; slot++) {
    const uint64_t k = cb_slot_get(map, slot);
    for (uint64_t i = 0; i < 2 && k != CB_NO_NONZERO; i++) {
      cb_real_set(to, part, 2 * slot + (int64_t)i, values[2 * k + i]);
      if (cb_real_overflows(values[2 * k + i], part) && k < lost) lost = k;
    }
  }
  if (lost == CB_NO_NONZERO) return CB_OK;
  return cb_fail(diag, CB_ERR_LIMIT,
                 "nonzero %llu (counted from 0) is (%g, %g): beyond the range of %s; choose another 'type'",
                 (unsigned long long)lost, values[2 * lost], values[2 * lost + 1], cb_type_short(type));
}

/* The one gather that moves values into slots. Slots without a nonzero keep their bytes. A finite value that the
 * type cannot hold is refused. */
static enum cb_status gather_values(const struct cb_slot_map *map, int64_t slots, const double *values,
                                    enum cb_type type, unsigned char *to, struct cb_diag *diag) {
  uint64_t lost = CB_NO_NONZERO; /* the first nonzero that would become infinite */
#pragma omp parallel for schedule(static) reduction(min : lost)
  for (int64_t slot = 0; slot < slots; slot++) {
    const uint64_t k = cb_slot_get(map, slot);
    if (k == CB_NO_NONZERO) continue;
    if (type == CB_F64) {
      ((double *)to)[slot] = values[k];
      continue;
    }
    if (type == CB_SPLIT) cb_split_set(to, slots, slot, values[k]);
    else cb_real_set(to, type, slot, values[k]);
    if (cb_real_overflows(values[k], type) && k < lost) lost = k;
  }
  if (lost == CB_NO_NONZERO) return CB_OK;
  if (type == CB_SPLIT)
    return cb_fail(diag, CB_ERR_LIMIT,
                   "nonzero %llu (counted from 0) is %g, which has no split form: sizes go from 2^-126 to 3.4e38; choose "
                   "another 'type'",
                   (unsigned long long)lost, values[lost]);
  return cb_fail(diag, CB_ERR_LIMIT, "nonzero %llu (counted from 0) is %g: beyond the range of %s; choose another 'type'",
                 (unsigned long long)lost, values[lost], cb_type_short(type));
}

static enum cb_status gather(const struct cb_slot_map *map, const struct cb_plan *plan, const struct cb_region *region,
                             const double *values, unsigned char *to, struct cb_diag *diag) {
  const int64_t stored = region->value_slots - region->constant_slots;
  if (cb_plan_is_complex(plan)) return gather_complex(map, stored, values, region->value_type, to, diag);
  if (region->value_storage == CB_VALUES_PLAIN && region->value_type == plan->matrix_type)
    return gather_values(map, stored, values, region->value_type, to, diag);
  gather_fixed(map, region, stored, values, plan->matrix_type, to);
  return CB_OK;
}

/* What slots without a nonzero hold before values come, where they have bytes of their own: see semiring.h. Codes are
 * indices, of which 0 is that of zero(). */
static void clear_slots(unsigned char *slots, const struct cb_plan *plan, const struct cb_region *region,
                        const struct cb_array *array) {
  if (array->role != CB_ROLE_VALUES || region->value_storage != CB_VALUES_PLAIN) return;
  if (cb_semiring_pads_with_nan(plan->semiring)) memset(slots, 0xff, (size_t)array_bytes(array));
}

static int wants_packing(unsigned char *const *targets, int count) {
  for (int a = 0; a < count; a++)
    if (targets[a]) return 1;
  return 0;
}

static void pack_table(const struct cb_region *region, const struct cb_array *array, unsigned char *to) {
  for (int64_t i = 0; i < array->count; i++) cb_real_set(to, array->type, i, region->value_table[i]);
}

int cb_pack_listed(const struct cb_plan *plan, const struct cb_assignment *assignment, int region, int array,
                   unsigned char *to) {
  const struct cb_array *packed = &plan->regions[region].arrays[array];
  const struct cb_contents *contents = &assignment->regions[region].contents[array];
  const int is_index = packed->role == CB_ROLE_INDEX && (contents->of || contents->elements);
  if (packed->storage != CB_STORED || (!is_index && packed->role != CB_ROLE_TABLE)) return 0;
  if (to && is_index) pack_index(packed, contents, assignment->regions[region].state, to);
  if (to && !is_index) pack_table(&plan->regions[region], packed, to);
  return 1;
}

/* `values` NULL: slots keep their bytes. `kept` NULL: nobody wants the slot map. */
static enum cb_status pack_region(struct cb_blob *blob, const struct cb_plan *plan,
                                  const struct cb_assignment *assignment, int number, const double *values,
                                  int values_only, struct cb_slot_map *kept, struct cb_diag *diag) {
  const struct cb_region *region = &plan->regions[number];
  unsigned char **targets = cb_calloc((size_t)region->arrays_count, sizeof *targets);
  unsigned char *slots = NULL;
  struct cb_slot_map map;
  if (!targets) return cb_fail_memory(diag, "packing", sizeof *targets);
  for (int a = 0; a < region->arrays_count; a++) {
    const struct cb_array *array = &region->arrays[a];
    unsigned char *to = blob->bytes + cb_blob_offset(plan, number, a);
    if (array->storage != CB_STORED) continue;
    if (array->role == CB_ROLE_VALUES || array->role == CB_ROLE_MIXED) slots = to;
    if (slots == to && !values_only) clear_slots(to, plan, region, array);
    if (array->role == CB_ROLE_BYTES || array->role == CB_ROLE_MIXED) targets[a] = to;
    if (array->role == CB_ROLE_TABLE) pack_table(region, array, to);
    if (array->role != CB_ROLE_INDEX || values_only) continue;
    const struct cb_contents *contents = &assignment->regions[number].contents[a];
    if (contents->of || contents->elements) pack_index(array, contents, assignment->regions[number].state, to);
    else targets[a] = to;
  }
  if (!kept && !slots && !wants_packing(targets, region->arrays_count)) { /* a map for nobody may be huge */
    cb_free(targets);
    return CB_OK;
  }
  enum cb_status s = cb_slot_map_build(&map, plan, assignment, number, values_only ? NULL : targets, diag);
  const int built = !s;
  if (!s && plan->symmetry == CB_SYMMETRIC_ON) cb_symmetry_take_lower(&map, assignment->csr);
  if (!s && slots && values) s = gather(&map, plan, region, values, slots, diag);
  if (!s && kept) *kept = map;
  else if (built) cb_slot_map_release(&map);
  cb_free(targets);
  return s;
}

enum cb_status cb_pack(struct cb_blob *blob, const struct cb_plan *plan, const struct cb_assignment *assignment,
                       const struct cb_csr *csr, struct cb_hash pattern, struct cb_diag *diag) {
  const enum cb_status s = cb_pack_mapped(blob, NULL, plan, assignment, csr->values, pattern, diag);
  if (!s) seal(blob);
  return s;
}

enum cb_status cb_pack_mapped(struct cb_blob *blob, struct cb_slot_map *maps, const struct cb_plan *plan,
                              const struct cb_assignment *assignment, const double *values,
                              struct cb_hash pattern, struct cb_diag *diag) {
  *blob = (struct cb_blob){.length = cb_blob_arrays_end(plan)};
  blob->bytes = cb_calloc((size_t)blob->length, 1);
  if (!blob->bytes) return cb_fail_memory(diag, "packed arrays", (uint64_t)blob->length);
  for (int region = 0; region < plan->regions_count; region++) {
    struct cb_slot_map *kept = maps ? &maps[region] : NULL;
    const enum cb_status s = pack_region(blob, plan, assignment, region, values, 0, kept, diag);
    if (s) {
      for (int i = 0; maps && i < region; i++) cb_slot_map_release(&maps[i]);
      cb_blob_release(blob);
      return s;
    }
  }
  write_header(blob, cb_blob_id(plan, pattern));
  return CB_OK;
}

enum cb_status cb_pack_values(struct cb_blob *blob, const struct cb_plan *plan,
                              const struct cb_assignment *assignment, const double *values, struct cb_diag *diag) {
  if (cb_plan_values_fixed(plan))
    return cb_fail(diag, CB_ERR_ARGUMENT,
                   "the kernel was made for fixed values; for new ones, generate it with 'values' at 'data'");
  for (int region = 0; region < plan->regions_count; region++) {
    const enum cb_status s = pack_region(blob, plan, assignment, region, values, 1, NULL, diag);
    if (s) return s;
  }
  seal(blob);
  return CB_OK;
}

enum cb_status cb_blob_add_selftest(struct cb_blob *blob, const double *expected, const double *tolerance,
                                    int64_t rows, struct cb_diag *diag) {
  const int64_t part = rows * (int64_t)sizeof(double);
  const int64_t length = cb_round_up(blob->length + 2 * part, CB_BLOB_ALIGN);
  unsigned char *bytes = cb_realloc(blob->bytes, (size_t)length, 1);
  if (!bytes) return cb_fail_memory(diag, "self-test", (uint64_t)length);
  memset(bytes + blob->length, 0, (size_t)(length - blob->length));
  memcpy(bytes + blob->length, expected, (size_t)part);
  memcpy(bytes + blob->length + part, tolerance, (size_t)part);
  struct cb_hash id;
  memcpy(&id.low, bytes + ID_AT, 8);
  memcpy(&id.high, bytes + ID_AT + 8, 8);
  *blob = (struct cb_blob){bytes, length, 1};
  write_header(blob, id);
  seal(blob);
  return CB_OK;
}

void cb_blob_release(struct cb_blob *blob) {
  cb_free(blob->bytes);
  *blob = (struct cb_blob){0};
}
