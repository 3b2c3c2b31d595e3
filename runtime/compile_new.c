// SPDX-License-Identifier: Apache-2.0
/* A kernel made anew: analysis, packing, text, NVRTC. See compile.h; cb_work_make is the table of contents.
 */
#include "runtime/compile.h"

#include "analysis/plan/assignment.h"
#include "base/memory.h"
#include "runtime/spills.h"

#include <stdio.h>
#include <string.h>

/* ---- stages */

enum cb_status cb_work_canonical(struct cb_work *work) {
  int canonical = 0;
  if (work->csr.row_ptr) return CB_OK;
  enum cb_status s = cb_work_host(work);
  if (!s) s = cb_view_check(&work->host, &canonical, work->diag);
  if (!s)
    s = cb_view_canonical(&work->csr, &work->order, &work->host, canonical, work->request.transpose,
                          work->diag);
  if (!s) work->pattern = work->order.entries ? cb_csr_pattern_hash(&work->csr) : work->raw;
  return s;
}

/* What tuning has planned is not planned again. */
static enum cb_status analyse(struct cb_work *work, const struct cb_options *options) {
  enum cb_status s = cb_work_canonical(work);
  if (!s && !work->plan)
    s = cb_plan_build(&work->plan, &work->assignment, &work->csr, &work->session->device->target, options,
                      work->diag);
  work->info.analysis_seconds += cb_work_lap(work);
  if (!s) cb_log(work->context, "plan: %s", work->plan->line);
  return s;
}

/* What a cache would keep beside the texts: the arrays, without values. */
static int64_t kept_arrays(const struct cb_work *work) {
  const struct cb_plan *plan = work->plan;
  int64_t bytes = cb_plan_bytes(plan);
  for (int r = 0; r < plan->regions_count && work->request.values != CBGEN_VALUES_FIXED; r++)
    for (int a = 0; a < plan->regions[r].arrays_count; a++)
      if (plan->regions[r].arrays[a].role == CB_ROLE_VALUES)
        bytes -= plan->regions[r].arrays[a].count * (int64_t)cb_type_size(plan->regions[r].arrays[a].type);
  return bytes;
}

/* `map_bytes`: of the value map, which is kept, too. */
static int keeps_data(const struct cb_work *work, int64_t map_bytes) {
  enum { MOST = 256 << 20 };
  if (work->info.cache == CBGEN_CACHE_OFF || work->context->keep == CB_KEEP_NEVER) return 0;
  return work->context->keep == CB_KEEP_ALWAYS || kept_arrays(work) + map_bytes <= MOST;
}

/* What a map takes that is worth keeping, before there is one: its quads. */
static int64_t least_map_bytes(const struct cb_work *work) {
  int64_t groups = 0;
  if (work->request.values == CBGEN_VALUES_FIXED) return 0;
  for (int r = 0; r < work->plan->regions_count; r++)
    groups += cb_groups_of(work->plan->regions[r].value_slots);
  return groups / CB_QUAD * (int64_t)sizeof(struct cb_value_quad);
}

/* Arrays without values, and the map by which values will move. */
static enum cb_status pack_mapped(struct cb_work *work) {
  const int regions = work->plan->regions_count;
  struct cb_slot_map *maps = cb_calloc((size_t)regions + 1, sizeof *maps);
  cb_free(work->ranges);
  work->ranges = cb_calloc((size_t)regions + 1, sizeof *work->ranges);
  if (!maps || !work->ranges) {
    cb_free(maps);
    return cb_fail_memory(work->diag, "slot maps", (unsigned long long)regions * sizeof *maps);
  }
  enum cb_status s =
      cb_pack_mapped(&work->blob, maps, work->plan, work->assignment, NULL, work->pattern, work->diag);
  if (!s) {
    s = cb_value_map_build(&work->map, work->ranges, maps, regions, &work->order, work->csr.nnz, work->view.nnz,
                           work->diag);
    for (int i = 0; i < regions; i++) cb_slot_map_release(&maps[i]);
  }
  cb_free(maps);
  return s;
}

static enum cb_status pack(struct cb_work *work) {
  const int fixed = work->request.values == CBGEN_VALUES_FIXED;
  enum cb_status s = CB_OK;
  work->keep = keeps_data(work, least_map_bytes(work));
  if (!fixed && (work->keep || work->device_packs || work->request.values == CBGEN_VALUES_MUTABLE)) {
    s = pack_mapped(work);
    work->keep = !s && keeps_data(work, cb_value_map_bytes(&work->map));
  } else {
    s = cb_pack_mapped(&work->blob, NULL, work->plan, work->assignment, work->csr.values, work->pattern, work->diag);
  }
  work->info.pack_seconds += cb_work_lap(work);
  return s;
}

static enum cb_status emit(struct cb_work *work) {
  const struct cb_hash id = cb_blob_id(work->plan, work->pattern);
  snprintf(work->symbol, sizeof work->symbol, "cbgen_%016llx", (unsigned long long)id.high);
  const struct cb_label label = {work->symbol, work->symbol, work->pattern};
  const enum cb_status s =
      cb_source_emit(&work->source, work->plan, &label, NULL, CB_EMBED_NEVER, work->diag);
  work->info.generate_seconds += cb_work_lap(work);
  return s;
}

static enum cb_status compile(struct cb_work *work) {
  const struct cb_nvrtc_options options = {.arch = work->plan->target.arch};
  const enum cb_status s =
      cb_compile_fitting(&work->compiled, work->nvrtc, work->source.text, work->symbol, &options, work->diag);
  work->info.compile_seconds += cb_work_lap(work);
  if (!s && work->compiled.fewer_blocks)
    cb_log(work->context, "registers did not suffice: compiled for %d thread blocks fewer on a multiprocessor",
           work->compiled.fewer_blocks);
  return s;
}

/* A search's choice that spills, however it is compiled, gives way to the next recipe that does not. */
static void replace_spilling(struct cb_work *work) {
  const struct cb_make_request request = {.csr = &work->csr,
                                          .options = &work->options,
                                          .nvrtc = work->nvrtc,
                                          .pattern = work->pattern};
  struct cb_made made = {work->plan, work->assignment, work->source, work->compiled, ""};
  const char *recipe = made.plan->recipe;
  const int bytes = made.compiled.spilled_bytes;
  memcpy(made.symbol, work->symbol, sizeof work->symbol);
  cb_replace_spilling(&made, &request);
  work->plan = made.plan;
  work->assignment = made.assignment;
  work->source = made.source;
  work->compiled = made.compiled;
  memcpy(work->symbol, made.symbol, sizeof work->symbol);
  work->info.compile_seconds += cb_work_lap(work);
  cb_log(work->context, "recipe '%s' spills %d bytes per thread; the kernel is that of recipe '%s'", recipe, bytes,
         work->plan->recipe);
}

/* The image of the plan with the arrays just packed. Where there is a map, value arrays start out empty. */
static enum cb_status make_image(struct cb_work *work, struct cb_image *image) {
  const struct cb_label label = {work->symbol, work->symbol, work->pattern};
  const struct cb_image_parts parts = {
      work->plan, &label, &work->blob, &work->source, work->compiled.cubin, work->compiled.cubin_bytes};
  const enum cb_status s = cb_image_from_plan(image, &parts, work->diag);
  if (s) return s;
  image->entries = work->view.nnz;
  image->map = work->map;
  work->map = (struct cb_value_map){0};
  if (!image->map.groups_count) return CB_OK;
  for (int i = 0; i < image->arrays_count; i++)
    if (image->arrays[i].values) image->arrays[i].contents = NULL;
  for (int i = 0, r = 0; i < image->ranges_count; i++) { /* regions without values have no range */
    while (work->ranges[r].slots != image->ranges[i].map.slots) r++;
    image->ranges[i].map = work->ranges[r++];
  }
  return CB_OK;
}

enum cb_status cb_work_make(struct cb_work *work) {
  const int compiled = work->compiled.cubin != NULL; /* by tuning */
  enum cb_status s = analyse(work, &work->options);
  if (!s && !compiled) s = emit(work);
  if (!s && !compiled) s = compile(work);
  if (!s && !compiled && work->compiled.spilled_bytes) replace_spilling(work);
  if (!s) s = pack(work);
  if (!s) s = make_image(work, &work->image);
  return s;
}

/* ---- data for a kernel that is there already */

enum cb_status cb_work_repack(struct cb_work *work) {
  const char *recipe = work->image.recipe;
  struct cb_image packed = {0};
  struct cb_options options = work->options;
  options.recipe = recipe;
  enum cb_status s = analyse(work, &options);
  if (!s && memcmp(&work->plan->hash, &work->image.plan_hash, sizeof work->plan->hash))
    s = cb_fail(work->diag, CB_ERR_WRONG, "the plan that recipe '%s' gives is not that of the kernel",
                recipe);
  if (!s) s = pack(work);
  if (!s) s = make_image(work, &packed);
  if (!s) {
    memcpy(work->image.arrays, packed.arrays, (size_t)packed.arrays_count * sizeof *packed.arrays);
    memcpy(work->image.ranges, packed.ranges, (size_t)packed.ranges_count * sizeof *packed.ranges);
    work->image.map = packed.map;
    packed.map = (struct cb_value_map){0};
  }
  cb_image_release(&packed);
  return s;
}

/* ---- values on the host */

/* Contents for one array: what it has, with values in its slots. */
static enum cb_status fill_range(struct cb_work *work, const struct cb_image_range *range, void **block) {
  struct cb_image *image = &work->image;
  struct cb_image_array *array = &image->arrays[range->array];
  *block = cb_calloc((size_t)array->bytes, 1);
  if (!*block) return cb_fail_memory(work->diag, "packed values", (unsigned long long)array->bytes);
  if (array->contents) memcpy(*block, array->contents, (size_t)array->bytes);
  array->contents = *block;
  return cb_values_gather(&image->map, &range->map, &work->view, image->matrix_type, *block, work->diag);
}

enum cb_status cb_work_fill(struct cb_work *work) {
  const struct cb_image *image = &work->image;
  enum cb_status s = CB_OK;
  if (!image->map.groups_count) return CB_OK;
  work->filled = cb_calloc((size_t)image->ranges_count, sizeof *work->filled);
  if (!work->filled) return cb_fail_memory(work->diag, "packed values", 0);
  work->filled_count = image->ranges_count;
  for (int i = 0; i < image->ranges_count && !s; i++)
    s = fill_range(work, &image->ranges[i], &work->filled[i]);
  work->info.pack_seconds += cb_work_lap(work);
  return s;
}

/* ---- the end */

void cb_work_release_new(struct cb_work *work) {
  for (int i = 0; i < work->filled_count; i++) cb_free(work->filled[i]);
  cb_free(work->filled);
  work->filled = NULL;
  work->filled_count = 0;
  cb_image_release(&work->image);
  cb_value_map_release(&work->map);
  cb_free(work->ranges);
  work->ranges = NULL;
  cb_compiled_release(&work->compiled);
  cb_source_release(&work->source);
  cb_blob_release(&work->blob);
  cb_assignment_free(work->assignment);
  cb_plan_free(work->plan);
  work->assignment = NULL;
  work->plan = NULL;
  cb_order_release(&work->order);
  cb_csr_release(&work->csr);
}
