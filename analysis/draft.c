// SPDX-License-Identifier: Apache-2.0
/* Building a region: the calls that a layout's plan step makes (layout.h). Index arrays get their storage here,
 * so that no layout has to think about widths, affine sequences or baked tables. */
#include "analysis/layout.h"

#include "analysis/values.h"

#include "base/integers.h"
#include "base/memory.h"
#include "base/real.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FACTS, CONSTANTS, ARRAYS, HOLES, SECTIONS };

/* Room for one more element at the end of a list that lives in the arena (old blocks stay there until the plan is
 * freed: lists are short). Returns the new element, zeroed, or NULL. */
static void *append(struct cb_draft *draft, int list, void **elements, int *count, size_t size) {
  if (draft->failed) return NULL;
  if (*count == draft->capacity[list]) {
    const int capacity = *count ? *count * 2 : 16;
    void *larger = cb_arena_alloc(draft->arena, (size_t)capacity, size);
    if (!larger) {
      draft->failed = 1;
      return NULL;
    }
    if (*count) memcpy(larger, *elements, (size_t)*count * size);
    *elements = larger;
    draft->capacity[list] = capacity;
  }
  return (char *)*elements + (size_t)(*count)++ * size;
}

static const char *keep(struct cb_draft *draft, const char *text) {
  const char *copy = cb_arena_string(draft->arena, text);
  if (!copy) draft->failed = 1;
  return copy;
}

void cb_draft_fact(struct cb_draft *draft, const char *key, const char *format, ...) {
  char value[256];
  va_list args;
  va_start(args, format);
  vsnprintf(value, sizeof value, format, args);
  va_end(args);
  struct cb_fact *fact = append(draft, FACTS, (void **)&draft->region.facts, &draft->region.facts_count,
                                sizeof *fact);
  if (fact) *fact = (struct cb_fact){keep(draft, key), keep(draft, value)};
}

void cb_draft_constant(struct cb_draft *draft, const char *name, int64_t value, const char *origin) {
  struct cb_constant *constant = append(draft, CONSTANTS, (void **)&draft->region.constants,
                                        &draft->region.constants_count, sizeof *constant);
  if (constant) *constant = (struct cb_constant){keep(draft, name), keep(draft, origin), value};
}

void cb_draft_hole(struct cb_draft *draft, const char *name, const char *text) {
  struct cb_hole *hole =
      append(draft, HOLES, (void **)&draft->region.holes, &draft->region.holes_count, sizeof *hole);
  if (hole) *hole = (struct cb_hole){keep(draft, name), keep(draft, text)};
}

void cb_draft_section(struct cb_draft *draft, const char *name) {
  for (int i = 0; i < draft->region.sections_count && !draft->failed; i++)
    if (!strcmp(draft->region.sections[i], name)) return;
  const char **section = append(draft, SECTIONS, (void **)&draft->region.sections, &draft->region.sections_count,
                                sizeof *section);
  if (section) *section = keep(draft, name);
}

static struct cb_array *add_array(struct cb_draft *draft, const char *name, const char *meaning, enum cb_role role,
                                  enum cb_type type, int64_t count) {
  struct cb_array *array =
      append(draft, ARRAYS, (void **)&draft->region.arrays, &draft->region.arrays_count, sizeof *array);
  if (!array) return NULL;
  const int index = draft->region.arrays_count - 1;
  struct cb_contents *contents =
      cb_realloc(draft->work.contents, (size_t)index + 1, sizeof *draft->work.contents);
  if (!contents) {
    draft->failed = 1;
    return NULL;
  }
  contents[index] = (struct cb_contents){0};
  draft->work.contents = contents;
  draft->work.contents_count = index + 1;
  *array = (struct cb_array){
      .name = keep(draft, name), .meaning = keep(draft, meaning), .role = role, .type = type, .count = count};
  return array;
}

static uint64_t element(const void *elements, int wide, int64_t i) {
  return wide ? ((const uint64_t *)elements)[i] : ((const uint32_t *)elements)[i];
}

/* Whether the elements are base + step * i; fills both. Sequences of one element have step 0. */
static int is_affine(const void *elements, int wide, int64_t count, struct cb_array *array) {
  array->base = count ? (int64_t)element(elements, wide, 0) : 0;
  array->step = count > 1 ? (int64_t)element(elements, wide, 1) - array->base : 0;
  for (int64_t i = 2; i < count; i++)
    if ((int64_t)element(elements, wide, i) != array->base + array->step * i) return 0;
  return 1;
}

static uint64_t largest_of(const void *elements, int wide, int64_t count) {
  uint64_t largest = 0;
#pragma omp parallel for schedule(static) reduction(max : largest)
  for (int64_t i = 0; i < count; i++) {
    const uint64_t e = element(elements, wide, i);
    largest = e > largest ? e : largest;
  }
  return largest;
}

static void bake(struct cb_draft *draft, struct cb_array *array, const void *elements, int wide) {
  uint64_t *table = cb_arena_alloc(draft->arena, (size_t)array->count, sizeof *table);
  if (!table) {
    draft->failed = 1;
    return;
  }
  for (int64_t i = 0; i < array->count; i++) table[i] = element(elements, wide, i);
  array->baked = table;
}

/* `sequence`: elements that are an affine sequence become one. */
static void add_index(struct cb_draft *draft, const char *name, const char *meaning, void *elements, int wide,
                      int64_t count, int sequence) {
  struct cb_array *array = elements ? add_array(draft, name, meaning, CB_ROLE_INDEX, CB_U8, count) : NULL;
  if (!array) {
    cb_free(elements);
    draft->failed = 1;
    return;
  }
  array->largest = (int64_t)largest_of(elements, wide, count);
  array->type = cb_type_for((uint64_t)array->largest);
  if (sequence && is_affine(elements, wide, count, array)) array->storage = CB_AFFINE;
  else array->storage = count <= draft->options->bake_limit ? CB_BAKED : CB_STORED;
  if (array->storage != CB_AFFINE) array->base = array->step = 0;
  if (array->storage == CB_BAKED) bake(draft, array, elements, wide);
  if (array->storage == CB_STORED) {
    draft->work.contents[draft->region.arrays_count - 1] = (struct cb_contents){wide, elements};
    draft->region.bytes += count * (int64_t)cb_type_size(array->type);
  } else {
    cb_free(elements);
  }
}

void cb_draft_index(struct cb_draft *draft, const char *name, const char *meaning, void *elements, int wide,
                    int64_t count) {
  add_index(draft, name, meaning, elements, wide, count, 1);
}

/* ---- late index arrays */

int cb_draft_may_be_late(const struct cb_draft *draft, int64_t count, int64_t least, int64_t largest) {
  return count > draft->options->bake_limit && least < largest && count - 1 > largest && largest <= UINT32_MAX;
}

void cb_draft_late(struct cb_draft *draft, const char *name, const char *meaning, int64_t count, int64_t largest) {
  struct cb_array *array =
      add_array(draft, name, meaning, CB_ROLE_INDEX, cb_type_for((uint64_t)largest), count);
  if (!array) return;
  array->largest = largest;
  array->storage = CB_STORED;
  draft->region.bytes += count * (int64_t)cb_type_size(array->type);
}

void cb_draft_late_streamed(struct cb_draft *draft, const char *name, const char *meaning, int64_t count,
                            int64_t largest) {
  cb_draft_late(draft, name, meaning, count, largest);
  if (!draft->failed) draft->region.arrays[draft->region.arrays_count - 1].streamed = 1;
}

struct cb_late cb_late_find(const struct cb_region *region, unsigned char *const *targets, const char *name) {
  for (int a = 0; targets && a < region->arrays_count; a++)
    if (!strcmp(region->arrays[a].name, name)) return (struct cb_late){targets[a], region->arrays[a].type};
  return (struct cb_late){0};
}

void cb_draft_own_rows(struct cb_draft *draft) {
  const int64_t rows = draft->work.part.csr->rows, words = cb_divide_up(rows, 32);
  uint32_t *bits = cb_alloc((size_t)words, sizeof *bits);
  if (bits) memcpy(bits, draft->own_rows, (size_t)words * sizeof *bits);
  add_index(draft, "own_rows", "a bit per row: this region writes it", bits, 0, words, 0);
  cb_draft_section(draft, "owned");
}

void cb_draft_streamed(struct cb_draft *draft, const char *name, const char *meaning, void *elements, int wide,
                       int64_t count) {
  cb_draft_index(draft, name, meaning, elements, wide, count);
  if (!draft->failed) draft->region.arrays[draft->region.arrays_count - 1].streamed = 1;
}

void cb_draft_bytes(struct cb_draft *draft, const char *name, const char *meaning, int64_t bytes) {
  add_array(draft, name, meaning, CB_ROLE_BYTES, CB_U8, bytes);
  draft->region.bytes += bytes;
}

/* ---- values */

void cb_draft_choose_values(struct cb_draft *draft, int zeros) {
  struct cb_value_choice choice = {CB_VALUES_PLAIN, draft->matrix_type, 0};
  if (draft->values) choice = cb_values_choose(draft->values, draft->matrix_type, zeros);
  draft->value_storage = choice.storage;
  draft->value_type = choice.type;
  draft->value_bytes = choice.storage == CB_VALUES_EQUAL ? 0 : (int64_t)cb_type_size(choice.type);
  if (choice.storage == CB_VALUES_PLAIN) return;
  struct cb_region *region = &draft->region;
  region->table_count = draft->values->distinct + choice.add_zero;
  double *table = cb_arena_alloc(draft->arena, (size_t)region->table_count, sizeof *table);
  if (!table) {
    draft->failed = 1;
    return;
  }
  memcpy(table + choice.add_zero, draft->values->table, (size_t)draft->values->distinct * sizeof *table);
  region->value_table = table;
}

void cb_draft_zero_slots(struct cb_draft *draft) {
  cb_draft_choose_values(draft, 1);
}

void cb_literal(char literal[CB_LITERAL], double value, enum cb_type sum_type) {
  cb_real_text(literal, value, sum_type);
  if (sum_type == CB_F32) strcat(literal, "f");
}

static int all_finite(const double *table, int count) {
  for (int i = 0; i < count; i++)
    if (!isfinite(table[i])) return 0;
  return 1;
}

/* What the plan says about fixed values, and the table's array unless it is baked. */
static void describe_values(struct cb_draft *draft, int64_t slots) {
  struct cb_region *region = &draft->region;
  region->value_slots = slots;
  region->value_storage = draft->value_storage;
  region->value_type = draft->value_type;
  if (draft->value_storage == CB_VALUES_PLAIN) {
    region->table_count = 0;
    region->value_table = NULL;
    if (draft->value_type != draft->matrix_type) cb_draft_fact(draft, "values", "%s", cb_type_short(draft->value_type));
    return;
  }
  if (!region->value_table) return; /* no memory: draft->failed */
  if (draft->value_storage == CB_VALUES_EQUAL) {
    char literal[CB_LITERAL];
    cb_literal(literal, region->value_table[0], CB_F64);
    cb_draft_fact(draft, "values", "equal %s", literal);
    region->constant_slots = slots;
    region->table_baked = 1;
    return;
  }
  cb_draft_fact(draft, "values", "coded %d", region->table_count);
  region->table_baked =
      region->table_count <= draft->options->bake_limit && all_finite(region->value_table, region->table_count);
  if (region->table_baked) return;
  add_array(draft, "value_table", "values by their codes", CB_ROLE_TABLE, draft->sum_type, region->table_count);
  region->bytes += region->table_count * (int64_t)cb_type_size(draft->sum_type);
}

void cb_draft_values(struct cb_draft *draft, const char *name, const char *meaning, int64_t slots) {
  if (draft->value_bytes) add_array(draft, name, meaning, CB_ROLE_VALUES, draft->value_type, slots);
  draft->region.bytes += slots * draft->value_bytes;
  describe_values(draft, slots);
}

void cb_draft_mixed(struct cb_draft *draft, const char *name, const char *meaning, int64_t bytes) {
  add_array(draft, name, meaning, CB_ROLE_MIXED, CB_U8, bytes);
  draft->region.bytes += bytes;
  describe_values(draft, bytes / draft->value_bytes);
}

void cb_draft_constant_slots(struct cb_draft *draft, int64_t slots) {
  draft->region.constant_slots += slots;
  draft->region.value_slots += slots;
}

/* ---- rows in pieces */

void cb_draft_carries(struct cb_draft *draft, int64_t pieces, int (*is_first)(const void *user, int64_t piece),
                      const void *user, const char *origin) {
  uint32_t *group = cb_alloc((size_t)pieces, sizeof *group);
  uint32_t *first = cb_alloc((size_t)pieces + 1, sizeof *first);
  int64_t groups = 0;
  for (int64_t p = 0; group && first && p < pieces; p++) {
    if (is_first(user, p)) first[groups++] = (uint32_t)p;
    group[p] = (uint32_t)groups - 1;
  }
  if (first) first[groups] = (uint32_t)pieces;
  cb_draft_index(draft, "carry_group", "a piece's group: the pieces of one row", group, 0, pieces);
  cb_draft_index(draft, "carry_first", "a group's first piece; groups + 1", first, 0, groups + 1);
  cb_draft_constant(draft, "kPieces", pieces, origin);
  draft->region.carry_slots = pieces;
  draft->region.carry_width = 1;
  draft->region.carry_counters = groups;
  cb_draft_fact(draft, "pieces", "%lld %lld", (long long)groups, (long long)pieces);
}
