// SPDX-License-Identifier: Apache-2.0
/* From a plan to an image: see image.h. */
#include "runtime/operator/image.h"

#include "base/memory.h"
#include "cbgen.h"
#include "codegen/family.h"

#include <stdio.h>
#include <string.h>

static int64_t array_bytes(const struct cb_array *array) {
  return array->count * (int64_t)cb_type_size(array->type);
}

static int count_stored(const struct cb_plan *plan, int region) {
  int stored = 0;
  for (int a = 0; a < plan->regions[region].arrays_count; a++)
    stored += plan->regions[region].arrays[a].storage == CB_STORED;
  return stored;
}

/* ---- arrays and ranges: regions in order, arrays in order */

static void add_array(struct cb_image *image, const struct cb_plan *plan, const struct cb_blob *blob, int r,
                      int a) {
  const struct cb_array *array = &plan->regions[r].arrays[a];
  const int64_t offset = cb_blob_offset(plan, r, a);
  image->arrays[image->arrays_count++] = (struct cb_image_array){
      .offset = offset,
      .bytes = array_bytes(array),
      .values = array->role == CB_ROLE_VALUES && !plan->values_fixed,
      .contents = blob ? blob->bytes + offset : NULL,
  };
  if (plan->values_fixed || (array->role != CB_ROLE_VALUES && array->role != CB_ROLE_MIXED)) return;
  struct cb_image_range range = {.array = image->arrays_count - 1, .map.slots = plan->regions[r].value_slots};
  for (int i = 0; i < image->ranges_count; i++) range.map.first_group += cb_groups_of(image->ranges[i].map.slots);
  image->ranges[image->ranges_count++] = range;
}

static enum cb_status add_arrays(struct cb_image *image, const struct cb_image_parts *parts,
                                 struct cb_diag *diag) {
  const struct cb_plan *plan = parts->plan;
  size_t stored = 0;
  for (int r = 0; r < plan->regions_count; r++) stored += (size_t)count_stored(plan, r);
  image->arrays = cb_arena_alloc(&image->arena, stored + 1, sizeof *image->arrays);
  image->ranges = cb_arena_alloc(&image->arena, (size_t)plan->regions_count + 1, sizeof *image->ranges);
  if (!image->arrays || !image->ranges) return cb_fail_memory(diag, "an image", stored);
  image->packed_bytes = cb_blob_arrays_end(plan);
  if (parts->blob && parts->blob->length < image->packed_bytes)
    return cb_fail(diag, CB_ERR_FORMAT, "the data have %lld bytes, and the plan's arrays end at %lld",
                   (long long)parts->blob->length, (long long)image->packed_bytes);
  for (int r = 0; r < plan->regions_count; r++)
    for (int a = 0; a < plan->regions[r].arrays_count; a++)
      if (plan->regions[r].arrays[a].storage == CB_STORED) add_array(image, plan, parts->blob, r, a);
  return CB_OK;
}

/* ---- launches */

static void add_pointer(struct cb_image *image, int array) { image->pointers[image->pointers_count++] = array; }

/* A region's stored arrays, of which the first has that number; nothing where there are none. */
static void add_stored_group(struct cb_image *image, int array, int stored) {
  if (!stored) return;
  image->groups[image->groups_count++] =
      (struct cb_image_group){.first_pointer = image->pointers_count, .pointers = stored};
  for (int i = 0; i < stored; i++) add_pointer(image, array + i);
}

/* All arrays of a region, those that follow a rule as NULL, and its sizes. */
static void add_family_group(struct cb_image *image, const struct cb_region *region, int array) {
  struct cb_image_group *group = &image->groups[image->groups_count++];
  const struct cb_array *arrays[CB_FAMILY_ARRAYS];
  const int count = cb_family_arrays(region, arrays);
  *group = (struct cb_image_group){.first_pointer = image->pointers_count, .first_size = image->sizes_count};
  for (int a = 0; a < count; a++) {
    const int is_stored = arrays[a]->storage == CB_STORED; /* so it is one of the region's own */
    int number = array;
    for (const struct cb_array *before = region->arrays; is_stored && before < arrays[a]; before++)
      number += before->storage == CB_STORED;
    add_pointer(image, is_stored ? number : -1);
  }
  group->pointers = image->pointers_count - group->first_pointer;
  group->sizes = cb_family_sizes(region, image->sizes + image->sizes_count);
  image->sizes_count += group->sizes;
}

/* The regions of one launch are its first parameters: those that have stored arrays, or all for a family's kernel. */
static enum cb_status add_launch(struct cb_image *image, const struct cb_image_parts *parts, int number,
                                 struct cb_diag *diag) {
  const struct cb_plan *plan = parts->plan;
  const struct cb_launch *planned = &plan->launches[number];
  struct cb_image_launch *launch = &image->launches[image->launches_count++];
  int array = 0;
  launch->blocks = planned->blocks;
  launch->threads = planned->threads;
  launch->dynamic_shared = planned->dynamic_shared;
  launch->first_group = image->groups_count;
  const struct cb_label family = {.symbol = CB_FAMILY_SYMBOL};
  cb_source_kernel(plan, parts->tier == CB_TIER_FAMILY ? &family : parts->label, number, launch->kernel,
                   sizeof launch->kernel);
  for (int r = 0; r < planned->first_region; r++) array += count_stored(plan, r);
  for (int r = planned->first_region; r < planned->first_region + planned->regions && !planned->body; r++) {
    const int stored = count_stored(plan, r);
    if (parts->tier == CB_TIER_FAMILY) add_family_group(image, &plan->regions[r], array);
    else add_stored_group(image, array, stored);
    array += stored;
  }
  launch->groups = image->groups_count - launch->first_group;
  if (launch->groups <= CB_IMAGE_GROUPS) return CB_OK;
  return cb_fail(diag, CB_ERR_LIMIT, "a launch of %d regions has more than %d with arrays", planned->regions,
                 CB_IMAGE_GROUPS);
}

static enum cb_status add_launches(struct cb_image *image, const struct cb_image_parts *parts,
                                   struct cb_diag *diag) {
  const struct cb_plan *plan = parts->plan;
  enum cb_status s = CB_OK;
  size_t groups = 0, pointers = 0; /* a region may take part in several launches */
  for (int i = 0; i < plan->launches_count; i++) {
    const struct cb_launch *launch = &plan->launches[i];
    groups += (size_t)launch->regions;
    for (int r = launch->first_region; r < launch->first_region + launch->regions; r++)
      pointers += (size_t)cb_family_pointers(&plan->regions[r]);
  }
  const size_t sizes = parts->tier == CB_TIER_FAMILY ? groups * CB_FAMILY_SIZES : 0;
  image->groups = cb_arena_alloc(&image->arena, groups + 1, sizeof *image->groups);
  image->pointers = cb_arena_alloc(&image->arena, pointers + 1, sizeof *image->pointers);
  image->sizes = cb_arena_alloc(&image->arena, sizes + 1, sizeof *image->sizes);
  image->launches = cb_arena_alloc(&image->arena, (size_t)plan->launches_count + 1, sizeof *image->launches);
  if (image->arena.failed) return cb_fail_memory(diag, "an image", 0);
  for (int i = 0; i < plan->launches_count && !s; i++) s = add_launch(image, parts, i, diag);
  return s;
}

/* ---- the whole */

/* The time that is predicted for cuSPARSE's CSR product. It is that of its bytes, at the share of the read rate which
 * it reaches on the H200 (524 GFLOP/s at 12 bytes per nonzero, measured on finite elements), or that of its gathers of
 * x, whichever is longer. */
static int64_t predict_csr(const struct cb_plan *plan) {
  enum { CSR_PERCENT = 70 };
  const int64_t value = (int64_t)cb_type_size(plan->matrix_type),
                element = (int64_t)cb_type_size(plan->vector_type);
  const int64_t bytes = plan->nnz * (4 + value) + (plan->rows + 1) * (plan->nnz > INT32_MAX ? 8 : 4) +
                        (plan->rows + plan->cols) * element;
  const int64_t stream = bytes * 100 / (plan->target.read_gb_per_s * CSR_PERCENT);
  const int64_t gather = cb_plan_gather_ns(plan->cost.sectors, &plan->target);
  return plan->target.launch_ns + (stream > gather ? stream : gather);
}

/* The plan's JSON, and that text. */
static enum cb_status add_long_texts(struct cb_image *image, const struct cb_plan *plan, const char *source,
                                     struct cb_diag *diag) {
  struct cb_text json = {0};
  const enum cb_status s = cb_plan_json(plan, &json, diag);
  const char *kept = s ? NULL : cb_arena_string(&image->arena, cb_text_string(&json));
  const char *kept_source = cb_arena_string(&image->arena, source);
  cb_text_release(&json);
  if (s) return s;
  if (!kept || !kept_source) return cb_fail_memory(diag, "an image", strlen(source));
  image->json = kept;
  image->source = kept_source;
  return CB_OK;
}

static enum cb_status add_texts(struct cb_image *image, const struct cb_image_parts *parts,
                                struct cb_diag *diag) {
  image->recipe = cb_arena_string(&image->arena, parts->plan->recipe);
  image->line = cb_arena_string(&image->arena, parts->plan->line);
  if (image->arena.failed) return cb_fail_memory(diag, "an image", 0);
  if (parts->texts_later) return CB_OK;
  return add_long_texts(image, parts->plan, parts->source && parts->source->text ? parts->source->text : "", diag);
}

enum cb_status cb_image_write_texts(struct cb_image *image, struct cb_diag *diag) {
  char symbol[32];
  struct cb_source source;
  if (!image->plan) return CB_OK;
  snprintf(symbol, sizeof symbol, "cbgen_%016llx", (unsigned long long)image->id);
  const struct cb_label label = {symbol, symbol, image->pattern};
  enum cb_status s = cb_source_emit(&source, image->plan, &label, NULL, CB_EMBED_NEVER, diag);
  if (!s) s = add_long_texts(image, image->plan, source.text, diag);
  cb_source_release(&source);
  if (s) return s;
  cb_plan_free(image->plan);
  image->plan = NULL;
  return CB_OK;
}

/* All but the texts. */
static enum cb_status take_numbers(struct cb_image *image, const struct cb_image_parts *parts, struct cb_diag *diag) {
  const struct cb_plan *plan = parts->plan;
  *image = (struct cb_image){
      .rows = plan->rows,
      .cols = plan->cols,
      .nnz = plan->nnz,
      .matrix_type = plan->matrix_type,
      .vector_type = plan->vector_type,
      .sum_type = plan->sum_type,
      .form = plan->form,
      .semiring = plan->semiring,
      .target = plan->target,
      .stored_bytes = cb_plan_bytes(plan),
      .plan_ns = plan->cost.ns,
      .csr_ns = predict_csr(plan),
      .plan_hash = plan->hash,
      .pattern = parts->label->pattern,
      .id = cb_blob_id(plan, parts->label->pattern).high,
      .carry_sums = plan->carry_sums,
      .carry_counters = plan->carry_counters,
      .vectors = plan->vectors,
      .entries = plan->nnz,
      .tier = parts->tier,
      .first_row_sum = parts->tier == CB_TIER_FAMILY ? plan->first_row_sum : 0,
      .cubin = parts->cubin,
      .cubin_bytes = parts->cubin_bytes,
  };
  memcpy(image->shares, plan->shares, sizeof image->shares);
  const enum cb_status s = add_arrays(image, parts, diag);
  if (plan->statements)
    image->statements = cb_arena_copy(&image->arena, plan->statements, 1, sizeof *plan->statements);
  if (!s && image->arena.failed) return cb_fail_memory(diag, "an image", 0);
  return s ? s : add_launches(image, parts, diag);
}

enum cb_status cb_image_from_plan(struct cb_image *image, const struct cb_image_parts *parts,
                                  struct cb_diag *diag) {
  const enum cb_status s = take_numbers(image, parts, diag);
  return s ? s : add_texts(image, parts, diag);
}

/* ---- an image beside its plan */

static int same_hash(struct cb_hash a, struct cb_hash b) {
  return a.high == b.high && a.low == b.low;
}

static int same_target(const struct cb_target *a, const struct cb_target *b) {
  return !strcmp(a->arch, b->arch) && !strcmp(a->model, b->model) && a->multiprocessors == b->multiprocessors &&
         a->shared_per_block == b->shared_per_block && a->read_gb_per_s == b->read_gb_per_s &&
         a->l2_gb_per_s == b->l2_gb_per_s && a->sectors_g_per_s == b->sectors_g_per_s &&
         a->latency_ns == b->latency_ns && a->launch_ns == b->launch_ns;
}

static int same_sizes(const struct cb_image *a, const struct cb_image *b) {
  return a->rows == b->rows && a->cols == b->cols && a->nnz == b->nnz && a->matrix_type == b->matrix_type &&
         a->vector_type == b->vector_type && a->sum_type == b->sum_type && a->form == b->form &&
         a->semiring == b->semiring && a->stored_bytes == b->stored_bytes && a->plan_ns == b->plan_ns &&
         a->csr_ns == b->csr_ns && a->carry_sums == b->carry_sums && a->carry_counters == b->carry_counters &&
         a->packed_bytes == b->packed_bytes && a->vectors == b->vectors &&
         !memcmp(a->shares, b->shares, sizeof a->shares);
}

/* What kernels of the specialised tier get. */
static int same_groups(const struct cb_image *a, const struct cb_image *b) {
  if (a->groups_count != b->groups_count || a->pointers_count != b->pointers_count || a->sizes_count) return 0;
  if (a->pointers_count && memcmp(a->pointers, b->pointers, (size_t)a->pointers_count * sizeof *a->pointers)) return 0;
  return !a->groups_count || !memcmp(a->groups, b->groups, (size_t)a->groups_count * sizeof *a->groups);
}

static int same_launches(const struct cb_image *a, const struct cb_image *b) {
  if (a->launches_count != b->launches_count) return 0;
  if (a->tier == CB_TIER_SPECIALISED && !same_groups(a, b)) return 0;
  for (int i = 0; i < a->launches_count; i++) {
    const struct cb_image_launch *one = &a->launches[i], *other = &b->launches[i];
    if (strcmp(one->kernel, other->kernel) || one->blocks != other->blocks || one->threads != other->threads ||
        one->dynamic_shared != other->dynamic_shared ||
        (a->tier == CB_TIER_SPECIALISED && (one->first_group != other->first_group || one->groups != other->groups)))
      return 0;
  }
  return 1;
}

/* Where the ranges' blocks begin in the map is not compared: it follows from the map, not from the plan. */
static int same_arrays(const struct cb_image *a, const struct cb_image *b) {
  if (a->arrays_count != b->arrays_count || a->ranges_count != b->ranges_count) return 0;
  for (int i = 0; i < a->arrays_count; i++)
    if (a->arrays[i].offset != b->arrays[i].offset || a->arrays[i].bytes != b->arrays[i].bytes ||
        a->arrays[i].values != b->arrays[i].values)
      return 0;
  for (int i = 0; i < a->ranges_count; i++)
    if (a->ranges[i].array != b->ranges[i].array || a->ranges[i].map.slots != b->ranges[i].map.slots ||
        a->ranges[i].map.first_group != b->ranges[i].map.first_group)
      return 0;
  return 1;
}

static const char *difference(const struct cb_image *image, const struct cb_image *planned,
                              const struct cb_plan *plan) {
  if (!same_hash(image->plan_hash, plan->hash) || image->id != planned->id) return "hashes";
  if (strcmp(image->line, plan->line) || strcmp(image->recipe, plan->recipe)) return "line of the plan";
  if (!same_target(&image->target, &plan->target)) return "target";
  if ((image->values == CBGEN_VALUES_FIXED) != plan->values_fixed) return "kind of values";
  if (!same_sizes(image, planned)) return "sizes";
  if (!same_arrays(image, planned)) return "arrays";
  return same_launches(image, planned) ? NULL : "launches";
}

enum cb_status cb_image_check_plan(const struct cb_image *image, struct cb_diag *diag) {
  struct cb_plan *plan;
  struct cb_image planned = {0};
  char symbol[32];
  enum cb_status s = cb_plan_parse(&plan, image->json, diag);
  if (s) return s;
  snprintf(symbol, sizeof symbol, "cbgen_%016llx", (unsigned long long)image->id);
  const struct cb_label label = {symbol, image->tier == CB_TIER_FAMILY ? CB_FAMILY_SYMBOL : symbol, image->pattern};
  s = take_numbers(&planned, &(struct cb_image_parts){.plan = plan, .label = &label}, diag);
  const char *what = s ? NULL : difference(image, &planned, plan);
  if (what) s = cb_fail(diag, CB_ERR_FORMAT, "the operator's %s and its plan's differ", what);
  cb_image_release(&planned);
  cb_plan_free(plan);
  return s;
}

/* Of the launches of a family those of the specialised kernels: their own names, and each region's stored arrays in the
 * order of their numbers, which follow each other. */
static void specialise_launch(struct cb_image *image, const struct cb_image *family, int number) {
  const struct cb_image_launch *from = &family->launches[number];
  struct cb_image_launch *to = &image->launches[number];
  const char *const behind = from->kernel + strlen(CB_FAMILY_SYMBOL);
  *to = *from;
  to->first_group = image->groups_count;
  snprintf(to->kernel, sizeof to->kernel, "cbgen_%016llx%.40s", (unsigned long long)image->id, behind);
  for (int g = from->first_group; g < from->first_group + from->groups; g++) {
    const struct cb_image_group *of = &family->groups[g];
    int first = image->arrays_count, stored = 0;
    for (int i = 0; i < of->pointers; i++) {
      const int array = family->pointers[of->first_pointer + i];
      stored += array >= 0;
      if (array >= 0 && array < first) first = array;
    }
    add_stored_group(image, first, stored);
  }
  to->groups = image->groups_count - to->first_group;
}

enum cb_status cb_image_specialise(struct cb_image *image, const struct cb_image *family, struct cb_diag *diag) {
  *image = *family;
  image->arena = (struct cb_arena){0};
  image->map = (struct cb_value_map){0};
  image->plan = NULL;
  image->tier = CB_TIER_SPECIALISED;
  image->groups_count = image->pointers_count = image->sizes_count = 0;
  image->first_row_sum = 0;
  image->cubin = NULL;
  image->cubin_bytes = 0;
  image->groups = cb_arena_alloc(&image->arena, (size_t)family->groups_count + 1, sizeof *image->groups);
  image->pointers = cb_arena_alloc(&image->arena, (size_t)family->pointers_count + 1, sizeof *image->pointers);
  image->launches = cb_arena_alloc(&image->arena, (size_t)family->launches_count + 1, sizeof *image->launches);
  if (image->arena.failed) {
    cb_arena_release(&image->arena);
    return cb_fail_memory(diag, "an image", 0);
  }
  for (int i = 0; i < family->launches_count; i++) specialise_launch(image, family, i);
  return CB_OK;
}

enum cb_status cb_image_become_special(struct cb_image *image, struct cb_diag *diag) {
  struct cb_image special;
  const enum cb_status s = cb_image_specialise(&special, image, diag);
  if (s) return s;
  int *pointers = cb_arena_copy(&image->arena, special.pointers, (size_t)special.pointers_count + 1, sizeof *pointers);
  struct cb_image_group *groups =
      cb_arena_copy(&image->arena, special.groups, (size_t)special.groups_count + 1, sizeof *groups);
  struct cb_image_launch *launches =
      cb_arena_copy(&image->arena, special.launches, (size_t)special.launches_count + 1, sizeof *launches);
  if (pointers && groups && launches) {
    image->tier = special.tier;
    image->first_row_sum = 0;
    image->pointers = pointers;
    image->pointers_count = special.pointers_count;
    image->groups = groups;
    image->groups_count = special.groups_count;
    image->launches = launches;
    image->sizes_count = 0;
  }
  cb_arena_release(&special.arena);
  return pointers && groups && launches ? CB_OK : cb_fail_memory(diag, "an image", 0);
}

int cb_image_has_arrays(const struct cb_image *image) {
  for (int i = 0; i < image->arrays_count; i++)
    if (!image->arrays[i].contents && !image->arrays[i].values) return 0;
  return 1;
}

int cb_image_has_map(const struct cb_image *image) {
  int64_t groups = 0;
  for (int i = 0; i < image->ranges_count; i++) groups += cb_groups_of(image->ranges[i].map.slots);
  return image->map.groups_count == groups;
}

enum cb_status cb_image_detach(struct cb_image *image, struct cb_diag *diag) {
  for (int i = 0; i < image->arrays_count; i++) image->arrays[i].contents = NULL;
  cb_value_map_release(&image->map);
  void *cubin = cb_arena_alloc(&image->arena, image->cubin_bytes + 1, 1);
  if (!cubin) return cb_fail_memory(diag, "a kernel", image->cubin_bytes);
  if (image->cubin_bytes) memcpy(cubin, image->cubin, image->cubin_bytes);
  image->cubin = cubin;
  return CB_OK;
}

void cb_image_release(struct cb_image *image) {
  cb_value_map_release(&image->map);
  cb_plan_free(image->plan);
  cb_arena_release(&image->arena);
  *image = (struct cb_image){0};
}
