// SPDX-License-Identifier: Apache-2.0
/* A kernel made anew: analysis, packing, text, NVRTC. See compile.h; cb_work_make is the table of contents. */
#include "runtime/api/compile.h"

#include "analysis/plan/assignment.h"
#include "analysis/plan/recipe.h"
#include "base/integers.h"
#include "base/memory.h"
#include "codegen/checked.h"
#include "codegen/outline.h"
#include "runtime/cuda/ranges.h"
#include "runtime/cuda/spills.h"

#include <stdio.h>
#include <string.h>

/* ---- analysis */

enum cb_status cb_work_canonical(struct cb_work *work) {
  struct cb_request *request = &work->request;
  struct cb_matrix *matrix = &work->matrix;
  int canonical = 0;
  if (matrix->csr.row_ptr || matrix->csr.remote) return CB_OK;
  enum cb_status s = cb_request_host(request, work->diag);
  if (!s) s = cb_view_check(&request->host, &canonical, work->diag);
  if (!s)
    s = cb_view_canonical(&matrix->csr, &matrix->order, &request->host, canonical, request->asked.transpose,
                          work->diag);
  if (!s) matrix->pattern = matrix->order.entries ? cb_csr_pattern_hash(&matrix->csr) : request->raw;
  return s;
}

/* What tuning has planned is not planned again. */
static enum cb_status analyse(struct cb_work *work, const struct cb_options *options) {
  CB_RANGE("cbgen: analysis");
  const struct cb_target *target = &work->request.session->device->target;
  struct cb_made *made = &work->made;
  if (cb_work_may_pack_there(work)) cb_work_plan_there(work, options);
  enum cb_status s = cb_work_canonical(work);
  if (!s && !made->plan)
    s = cb_plan_build(&made->plan, &made->assignment, &work->matrix.csr, target, options, work->diag);
  work->info.analysis_seconds += cb_work_lap(work);
  if (!s) cb_log(work->request.context, "plan: %s", made->plan->line);
  return s;
}

/* ---- packing */

/* Bytes of the arrays without values: what a cache would keep beside the texts. */
static int64_t index_bytes(const struct cb_plan *plan) {
  int64_t bytes = cb_plan_bytes(plan);
  for (int r = 0; r < plan->regions_count; r++)
    for (int a = 0; a < plan->regions[r].arrays_count; a++)
      if (plan->regions[r].arrays[a].role == CB_ROLE_VALUES)
        bytes -= plan->regions[r].arrays[a].count * (int64_t)cb_type_size(plan->regions[r].arrays[a].type);
  return bytes;
}

/* `map_bytes`: of the value map, which is kept, too; so are fixed values. */
static int keeps_data(const struct cb_work *work, int64_t map_bytes) {
  enum { MOST = 256 << 20 };
  const enum cb_keep keep = work->request.context->keep;
  if (work->info.cache == CBGEN_CACHE_OFF || keep == CB_KEEP_NEVER) return 0;
  const int64_t arrays = cb_asks_fixed(&work->request) ? cb_plan_bytes(work->made.plan) : index_bytes(work->made.plan);
  return keep == CB_KEEP_ALWAYS || arrays + map_bytes <= MOST;
}

/* What a map takes that is worth keeping, before there is one: its blocks. */
static int64_t least_map_bytes(const struct cb_work *work) {
  const struct cb_plan *plan = work->made.plan;
  int64_t groups = 0;
  if (cb_asks_fixed(&work->request)) return 0;
  for (int r = 0; r < plan->regions_count; r++) groups += cb_groups_of(plan->regions[r].value_slots);
  return groups / CB_BLOCK_GROUPS * (int64_t)sizeof(struct cb_map_block);
}

/* Arrays without values, and the map by which `entries` values will move; `maps`: room for one of each region. */
static enum cb_status pack_by_map(struct cb_packed *packed, struct cb_slot_map *maps, const struct cb_made *made,
                                  const struct cb_matrix *matrix, int64_t entries, struct cb_diag *diag) {
  const int regions = made->plan->regions_count;
  enum cb_status s =
      cb_pack_mapped(&packed->blob, maps, made->plan, made->assignment, NULL, matrix->pattern, diag);
  if (s) return s;
  s = cb_value_map_build(&packed->map, packed->ranges, maps, regions, &matrix->order, matrix->csr.nnz, entries,
                         diag);
  for (int i = 0; i < regions; i++) cb_slot_map_release(&maps[i]);
  return s;
}

static enum cb_status pack_mapped(struct cb_work *work) {
  struct cb_packed *packed = &work->packed;
  const int regions = work->made.plan->regions_count;
  struct cb_slot_map *maps = cb_calloc((size_t)regions + 1, sizeof *maps);
  cb_free(packed->ranges);
  packed->ranges = cb_calloc((size_t)regions + 1, sizeof *packed->ranges);
  const enum cb_status s =
      maps && packed->ranges
          ? pack_by_map(packed, maps, &work->made, &work->matrix, work->request.view.nnz, work->diag)
          : cb_fail_memory(work->diag, "slot maps", (unsigned long long)regions * sizeof *maps);
  cb_free(maps);
  return s;
}

static enum cb_status pack(struct cb_work *work) {
  CB_RANGE("cbgen: pack");
  const struct cb_matrix *matrix = &work->matrix;
  const struct cb_request *request = &work->request;
  const struct cb_made *made = &work->made;
  struct cb_packed *packed = &work->packed;
  enum cb_status s = CB_OK;
  packed->keep = 0;
  if (work->there.is_used) {
    s = cb_work_pack_there(work);
    work->info.pack_seconds += cb_work_lap(work);
    return s;
  }
  packed->keep = keeps_data(work, least_map_bytes(work));
  if (!cb_asks_fixed(request) && (packed->keep || work->load.device_packs || cb_asks_mutable(request))) {
    s = pack_mapped(work);
    packed->keep = !s && keeps_data(work, cb_value_map_bytes(&packed->map));
  } else {
    s = cb_pack_mapped(&packed->blob, NULL, made->plan, made->assignment, matrix->csr.values, matrix->pattern,
                       work->diag);
  }
  work->info.pack_seconds += cb_work_lap(work);
  return s;
}

/* ---- text and binary */

/* Once. */
static enum cb_status emit(struct cb_work *work, const struct cb_make_request *making) {
  CB_RANGE("cbgen: generate");
  if (work->made.source.text) return CB_OK;
  const enum cb_status s = cb_make_text(&work->made, making, work->diag);
  work->info.generate_seconds += cb_work_lap(work);
  return s;
}

static enum cb_status compile(struct cb_work *work, const struct cb_make_request *making) {
  CB_RANGE("cbgen: compile");
  const struct cb_compiled *compiled = &work->made.compiled;
  const enum cb_status s = cb_make_binary(&work->made, making, work->diag);
  work->info.compile_seconds += cb_work_lap(work);
  if (!s && compiled->fewer_blocks)
    cb_log(work->request.context, "registers did not suffice: compiled for %d thread blocks fewer on a multiprocessor",
           compiled->fewer_blocks);
  return s;
}

/* A search's choice that spills, however it is compiled, gives way to the next recipe that does not. */
static void replace_spilling(struct cb_work *work, const struct cb_make_request *making) {
  struct cb_made *made = &work->made;
  const char *recipe = made->plan->recipe;
  const int bytes = made->compiled.spilled_bytes;
  if (!bytes) return;
  cb_replace_spilling(made, making);
  work->info.compile_seconds += cb_work_lap(work);
  cb_log(work->request.context, "recipe '%s' spills %d bytes per thread; the kernel is that of recipe '%s'", recipe,
         bytes, made->plan->recipe);
}

/* The kernel that is there, with checks: the text stays what it is, and is what messages tell the lines of. */
static enum cb_status compile_checked(struct cb_work *work, const struct cb_make_request *making) {
  struct cb_made *made = &work->made;
  const struct cb_source plain = made->source;
  struct cb_source checked;
  struct cb_diag why = {0};
  enum cb_status s = cb_checked_text(&checked, &plain, made->plan, cb_checks_record(work->checks), &why);
  if (s) return cb_fail(work->diag, s, "CBGEN_CHECK: %s", why.message);
  cb_compiled_release(&made->compiled);
  made->source = checked;
  s = compile(work, making);
  made->source = plain;
  cb_source_release(&checked);
  if (!s) cb_warn(work->request.context, "CBGEN_CHECK: kernel %s looks at every index before it uses it", made->symbol);
  return s;
}

/* The kernel that is there, with its text in a file, or from one, as the environment asks. */
static enum cb_status inspect(struct cb_work *work, const struct cb_make_request *making) {
  struct cb_inspection *inspection = cb_calloc(1, sizeof *inspection);
  struct cb_make_request own = *making;
  if (!inspection) return cb_fail_memory(work->diag, "a kernel's path", sizeof *inspection);
  enum cb_status s = cb_inspect(inspection, work->request.context, &work->made, work->diag);
  if (!s && inspection->has_file) {
    own.line_info = 1;
    own.file = inspection->path;
  }
  if (!s && cb_checks_record(work->checks)) {
    s = compile_checked(work, &own);
  } else if (!s && inspection->has_file) {
    cb_compiled_release(&work->made.compiled);
    s = compile(work, &own);
  }
  if (!s && inspection->is_replaced && work->made.compiled.spilled_bytes)
    cb_warn(work->request.context, "CBGEN_OVERRIDE: the kernel spills %d bytes per thread",
            work->made.compiled.spilled_bytes);
  cb_free(inspection);
  return s;
}

/* ---- tiers */

/* Compiling takes about so long; the specialised kernel takes so much less time than its family's: where half is
 * stored, 30 % of 27 points 100^3, nothing of 7 points 200^3 and finite elements 60^3. */
enum { COMPILE_NS = 100 * 1000 * 1000, GAIN_PERCENT = 2, GAIN_WITH_HALVES = 10 };

int cb_specialises(const struct cb_work *work, int64_t plan_ns) {
  const cbgen_request *asked = &work->request.asked;
  if (asked->specialise == CBGEN_SPECIALISE_NOW || cb_inspects()) return 1;
  if (asked->specialise == CBGEN_SPECIALISE_NEVER) return 0;
  const int percent = cb_promises_symmetry(&work->request.options) ? GAIN_WITH_HALVES : GAIN_PERCENT;
  return (double)asked->expected_products * (double)plan_ns * percent / 100 > COMPILE_NS;
}

/* The binary of the plan's family, from wherever there is one. CB_ERR_UNSUPPORTED: there is no family; CB_ERR_MISSING:
 * it would have to be compiled. */
static enum cb_status find_family(struct cb_work *work, struct cb_made *made, int may_compile, struct cb_diag *diag) {
  CB_RANGE("cbgen: compile");
  struct cb_session *session = work->request.session;
  struct cbgen_context *context = work->request.context;
  struct cb_outline outline;
  struct cb_source family = {0};
  enum cb_status s = cb_outline_make(&outline, made->plan, diag);
  const int is_known = !s && cb_session_outlined(session, outline.hash, &made->compiled, context);
  work->info.compile_seconds += cb_work_lap(work);
  if (!s && !is_known) s = cb_source_outlined(&family, &outline, diag);
  work->info.generate_seconds += cb_work_lap(work);
  if (!s && !is_known)
    s = cb_session_family(session, work->kept.cache, &family, outline.hash, may_compile, &made->compiled, context,
                          diag);
  cb_source_release(&family);
  cb_outline_release(&outline);
  work->info.compile_seconds += cb_work_lap(work);
  if (!s && made->compiled.spilled_bytes) { /* the specialised kernel may do better, or another recipe's */
    cb_compiled_release(&made->compiled);
    s = CB_ERR_UNSUPPORTED;
  }
  return s;
}

/* A plan by that recipe with its family's binary, if nothing has to be compiled for it. */
static enum cb_status make_ready(struct cb_work *work, struct cb_made *made, const char *recipe,
                                 const struct cb_make_request *making, struct cb_diag *diag) {
  struct cb_options options = work->request.options;
  options.recipe = recipe;
  enum cb_status s = cb_plan_build(&made->plan, &made->assignment, &work->matrix.csr,
                                   &work->request.session->device->target, &options, diag);
  work->info.analysis_seconds += cb_work_lap(work);
  if (!s) cb_make_symbol(made, making);
  return s ? s : find_family(work, made, 0, diag);
}

/* It takes the place of the plan that was made, whose candidates it keeps. */
static enum cb_status replace_plan(struct cb_work *work, struct cb_made *other) {
  struct cb_plan *plan = other->plan;
  const struct cb_plan *first = work->made.plan;
  plan->candidates_count = first->candidates_count;
  plan->is_chosen_by_profile = first->is_chosen_by_profile;
  memcpy(plan->candidates, first->candidates, sizeof plan->candidates);
  cb_log(work->request.context, "recipe '%s' instead of '%s', whose kernel would have to be compiled", plan->recipe,
         first->recipe);
  cb_made_release(&work->made);
  work->made = *other;
  *other = (struct cb_made){0};
  return work->there.is_used ? cb_work_find_packers(work, work->diag) : CB_OK;
}

/* Of the profile's next recipes, which are slower by a quarter and by what the search permits at most, the first whose
 * kernel is there takes the place of the one that was planned. CB_ERR_MISSING: there is none. */
static enum cb_status take_ready(struct cb_work *work, const struct cb_make_request *making) {
  const struct cb_plan *plan = work->made.plan;
  const struct cb_options *options = &work->request.options;
  const struct cb_recipe *recipe;
  int at = 0;
  if (options->search != CB_SEARCH_READY || !plan->is_chosen_by_profile) return CB_ERR_MISSING;
  while (at < plan->candidates_count && strcmp(plan->candidates[at].recipe, plan->recipe)) at++;
  const int64_t ns = plan->candidates[at].cost.ns, most = ns + cb_smaller(ns / 4, options->ready_loss);
  for (at++; at < plan->candidates_count && plan->candidates[at].cost.ns <= most; at++) {
    struct cb_made other = {0};
    struct cb_diag diag = {0};
    const char *name = plan->candidates[at].recipe;
    if (!plan->candidates[at].cost.ns || cb_recipe_find(&recipe, name, NULL) || !recipe->is_ready) continue;
    if (!make_ready(work, &other, name, making, &diag)) return replace_plan(work, &other);
    cb_made_release(&other);
  }
  return CB_ERR_MISSING;
}

/* Of the plan, or of one that is nearly as fast and needs no compiler; else it is compiled. */
static enum cb_status make_family(struct cb_work *work, const struct cb_make_request *making) {
  enum cb_status s = find_family(work, &work->made, 0, work->diag);
  if (s == CB_ERR_MISSING) {
    work->diag->message[0] = 0;
    s = take_ready(work, making);
  }
  if (s == CB_ERR_MISSING) s = find_family(work, &work->made, 1, work->diag);
  if (!s) work->tier = CB_TIER_FAMILY;
  return s;
}

static enum cb_status specialise(struct cb_work *work, struct cb_make_request *making) {
  enum cb_status s = emit(work, making);
  if (!s) s = cb_session_nvrtc(work->request.session, &making->nvrtc, work->diag);
  if (!s) s = compile(work, making);
  if (!s) replace_spilling(work, making);
  return s;
}

int cb_work_is_made_in_no_time(const struct cb_work *work) {
  return work->there.is_used && work->tier == CB_TIER_FAMILY;
}

/* Of the plan, unless tuning has made it; and the specialised text, which nobody reads where an entry of the cache is
 * not written: then the operator makes it when it is asked for it. */
static enum cb_status make_kernel(struct cb_work *work) {
  struct cb_make_request making = {
      .csr = &work->matrix.csr, .options = &work->request.options, .pattern = work->matrix.pattern};
  enum cb_status s = CB_OK;
  if (!work->made.compiled.cubin) {
    cb_make_symbol(&work->made, &making);
    s = cb_specialises(work, work->made.plan->cost.ns) ? CB_ERR_UNSUPPORTED : make_family(work, &making);
    if (s == CB_ERR_UNSUPPORTED) s = specialise(work, &making);
  }
  if (!s && !cb_work_is_made_in_no_time(work)) s = emit(work, &making);
  if (s || !cb_inspects()) return s;
  s = cb_session_nvrtc(work->request.session, &making.nvrtc, work->diag);
  return s ? s : inspect(work, &making);
}

/* The image takes its arrays along. */
enum cb_status cb_work_specialise(struct cb_work *work) {
  struct cb_image *image = &work->load.image;
  const struct cb_nvrtc_options options = {.arch = image->target.arch};
  const struct cb_nvrtc *nvrtc;
  struct cb_compiled *compiled = &work->made.compiled;
  char name[32];
  snprintf(name, sizeof name, "cbgen_%016llx", (unsigned long long)image->id);
  enum cb_status s = cb_session_nvrtc(work->request.session, &nvrtc, work->diag);
  if (!s) s = cb_compile_fitting(compiled, nvrtc, image->source, name, &options, work->diag);
  work->info.compile_seconds += cb_work_lap(work);
  if (!s) s = cb_image_become_special(image, work->diag);
  if (s) return s;
  image->cubin = compiled->cubin;
  image->cubin_bytes = compiled->cubin_bytes;
  work->tier = CB_TIER_SPECIALISED;
  return CB_OK;
}

/* ---- the image */

/* Value arrays start out empty, and their ranges have a map. */
static void use_map(struct cb_image *image, struct cb_packed *packed) {
  image->map = packed->map;
  packed->map = (struct cb_value_map){0};
  if (!image->map.groups_count) return;
  for (int i = 0; i < image->arrays_count; i++)
    if (image->arrays[i].values) image->arrays[i].contents = NULL;
  for (int i = 0, r = 0; i < image->ranges_count; i++) { /* regions without values have no range */
    while (packed->ranges[r].slots != image->ranges[i].map.slots) r++;
    image->ranges[i].map = packed->ranges[r++];
  }
}

/* The image of the plan with the arrays just packed. */
static enum cb_status make_image(struct cb_work *work, struct cb_image *image) {
  const struct cb_made *made = &work->made;
  const struct cb_label label = {made->symbol, made->symbol, work->matrix.pattern};
  const struct cb_image_parts parts = {.plan = made->plan,
                                       .label = &label,
                                       .blob = work->there.is_used ? NULL : &work->packed.blob,
                                       .source = &made->source,
                                       .texts_later = cb_work_is_made_in_no_time(work),
                                       .tier = work->tier,
                                       .cubin = made->compiled.cubin,
                                       .cubin_bytes = made->compiled.cubin_bytes};
  const enum cb_status s = cb_image_from_plan(image, &parts, work->diag);
  if (s) return s;
  image->entries = work->request.view.nnz;
  if (work->there.is_used) cb_work_use_contents(work, image);
  else use_map(image, &work->packed);
  return CB_OK;
}

enum cb_status cb_work_make(struct cb_work *work) {
  enum cb_status s = analyse(work, &work->request.options);
  if (!s) s = make_kernel(work);
  if (!s) s = pack(work);
  if (!s) s = make_image(work, &work->load.image);
  return s;
}

/* ---- data for a kernel that is there already */

/* The arrays' contents and the map of another image of the same plan. */
static void move_data(struct cb_image *to, struct cb_image *from) {
  memcpy(to->arrays, from->arrays, (size_t)from->arrays_count * sizeof *from->arrays);
  memcpy(to->ranges, from->ranges, (size_t)from->ranges_count * sizeof *from->ranges);
  to->map = from->map;
  from->map = (struct cb_value_map){0};
}

static enum cb_status check_plan(const struct cb_work *work, struct cb_diag *diag) {
  const struct cb_image *image = &work->load.image;
  if (!memcmp(&work->made.plan->hash, &image->plan_hash, sizeof image->plan_hash)) return CB_OK;
  return cb_fail(diag, CB_ERR_WRONG, "the plan that recipe '%s' gives is not that of the kernel", image->recipe);
}

enum cb_status cb_work_repack_there(struct cb_work *work) {
  CB_RANGE("cbgen: analysis");
  struct cb_image *image = &work->load.image, packed = {0};
  struct cb_options options = work->request.options;
  struct cb_diag diag = {0};
  options.recipe = image->recipe;
  cb_work_plan_there(work, &options);
  if (!work->there.is_used) return CB_ERR_UNSUPPORTED;
  enum cb_status s = check_plan(work, &diag);
  if (!s) s = pack(work);
  if (!s) s = make_image(work, &packed);
  if (!s) move_data(image, &packed);
  cb_image_release(&packed);
  if (s) cb_work_give_up_device(work, *diag.message ? diag.message : work->diag->message);
  if (s) work->diag->message[0] = 0;
  return s;
}

enum cb_status cb_work_repack(struct cb_work *work) {
  struct cb_image *image = &work->load.image, packed = {0};
  struct cb_options options = work->request.options;
  options.recipe = image->recipe;
  enum cb_status s = analyse(work, &options);
  if (!s) s = check_plan(work, work->diag);
  if (!s) s = pack(work);
  if (!s) s = make_image(work, &packed);
  if (!s) move_data(image, &packed);
  cb_image_release(&packed);
  return s;
}

/* ---- values on the host */

/* Contents for one array: what it has, with values in its slots. */
static enum cb_status fill_range(struct cb_image *image, const struct cb_image_range *range, void **block,
                                 const struct cb_view *view, struct cb_diag *diag) {
  struct cb_image_array *array = &image->arrays[range->array];
  *block = cb_calloc((size_t)array->bytes, 1);
  if (!*block) return cb_fail_memory(diag, "packed values", (unsigned long long)array->bytes);
  if (array->contents) memcpy(*block, array->contents, (size_t)array->bytes);
  else if (cb_semiring_pads_with_nan(image->semiring))
    memset(*block, 0xff, (size_t)array->bytes);
  array->contents = *block;
  return cb_values_gather(&image->map, &range->map, view, image->matrix_type, *block, diag);
}

enum cb_status cb_work_fill(struct cb_work *work) {
  struct cb_load *load = &work->load;
  struct cb_image *image = &load->image;
  enum cb_status s = CB_OK;
  if (!image->map.groups_count) return CB_OK;
  load->filled = cb_calloc((size_t)image->ranges_count, sizeof *load->filled);
  if (!load->filled) return cb_fail_memory(work->diag, "packed values", 0);
  load->filled_count = image->ranges_count;
  for (int i = 0; i < image->ranges_count && !s; i++)
    s = fill_range(image, &image->ranges[i], &load->filled[i], &work->request.view, work->diag);
  work->info.pack_seconds += cb_work_lap(work);
  return s;
}

/* ---- the end */

static void release_load(struct cb_load *load) {
  for (int i = 0; i < load->filled_count; i++) cb_free(load->filled[i]);
  cb_free(load->filled);
  load->filled = NULL;
  load->filled_count = 0;
  cb_image_release(&load->image);
}

static void release_packed(struct cb_packed *packed) {
  cb_blob_release(&packed->blob);
  cb_value_map_release(&packed->map);
  cb_free(packed->ranges);
  packed->ranges = NULL;
}

void cb_work_release_new(struct cb_work *work) {
  cb_work_release_there(work);
  release_load(&work->load);
  release_packed(&work->packed);
  cb_made_release(&work->made);
  cb_order_release(&work->matrix.order);
  cb_csr_release(&work->matrix.csr);
}
