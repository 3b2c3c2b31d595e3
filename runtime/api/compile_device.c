// SPDX-License-Identifier: Apache-2.0
/* A plan for a matrix that stays on the device, where kernels pack it: see compile.h. Whatever stands in the way is
 * logged, and the host does what it always did. */
#include "runtime/api/compile.h"

#include "analysis/plan/assignment.h"
#include "analysis/plan/recipe.h"
#include "base/clock.h"
#include "base/integers.h"
#include "base/memory.h"

/* ---- whether */

/* Nonzeros from which kernels repay their launches; and from which they do so although they must be compiled first. */
enum { LONG = 1 << 12, LONG_UNCOMPILED = 1 << 20 };

/* Whether the recipe's plan can do without columns, or a search's; `any_search`: also one that looks for plans. */
static int recipe_packs_remotely(const struct cb_request *request, int any_search) {
  const struct cb_recipe *recipe;
  if (cb_recipe_find(&recipe, request->options.recipe, NULL)) return 0;
  return recipe->is_packed || (!recipe->root && (any_search || cb_search_is_by_profile(&request->options)));
}

/* Whether the matrix, as it multiplies, is one that kernels pack. */
static int is_simple(const struct cb_request *request) {
  return request->view.format == CBGEN_CSR && !request->asked.transpose && !cb_asks_order(request) &&
         !cb_asks_fixed(request) && !cb_promises_symmetry(&request->options) &&
         request->options.type != CB_PRECISION_SPLIT_F64 && !request->view.is_complex;
}

/* Whether kernels can look at it, and the host has not done so yet. */
static int can_survey(const struct cb_work *work) {
  return is_simple(&work->request) && !work->made.plan && !work->matrix.csr.row_ptr && !work->host_only;
}

/* Whether kernels repay their launches. */
static int is_long(const struct cb_work *work) {
  const struct cb_request *request = &work->request;
  return request->view.nnz >= LONG_UNCOMPILED ||
         (request->view.nnz >= LONG && cb_session_has_binaries(request->session));
}

/* Where nothing is said, a search that looks for plans looks at columns, and data that a cache shall keep are made on
 * the host. */
static int wants_device(const struct cb_work *work) {
  const struct cb_request *request = &work->request;
  const struct cbgen_context *context = request->context;
  if (context->pack == CB_PACK_HOST) return 0;
  if (context->pack == CB_PACK_DEVICE) return recipe_packs_remotely(request, 1);
  return is_long(work) && context->keep != CB_KEEP_ALWAYS && recipe_packs_remotely(request, 0);
}

/* Whether a matrix on the host finds room on the device beside what the operator will take. */
static int has_room(const struct cb_work *work) {
  const struct cb_device *device = work->request.session->device;
  const struct cb_view *view = &work->request.view;
  const uint64_t value = cb_type_size(view->value_type), entry = value + (view->col_wide ? 8 : 4);
  const uint64_t copy = (uint64_t)view->nnz * entry + 8 * (uint64_t)view->rows;
  return view->on_device || 3 * copy < cb_device_available(device);
}

int cb_work_may_pack_there(const struct cb_work *work) { return can_survey(work) && wants_device(work); }

int cb_work_packs_sooner(const struct cb_work *work) {
  const struct cb_image *image = &work->load.image;
  const struct cb_recipe *recipe;
  if (!work->request.view.on_device || work->request.context->pack != CB_PACK_DEVICE || !can_survey(work)) return 0;
  return !cb_recipe_find(&recipe, image->recipe, NULL) && recipe->is_ready;
}

/* ---- the plan */

/* Of the lists that are there. */
static enum cb_status find_kernels(struct cb_work *work, enum cb_type matrix_type, struct cb_diag *diag) {
  const struct cb_request *request = &work->request;
  const struct cb_packing_lists *lists = work->there.lists;
  enum cb_status s = CB_OK;
  for (int r = 0; r < lists->count && !s; r++) {
    const char *layout = lists->regions[r].layout;
    struct cb_pack_kernels *kernels = &work->there.kernels[r];
    const int indices = cb_kernel_set_of(layout, "indices", matrix_type),
              values = cb_kernel_set_of(layout, "values", matrix_type);
    if (indices < 0 || values < 0)
      return cb_fail(diag, CB_ERR_INTERNAL, "there are no kernels that pack the layout '%s'", layout);
    s = cb_session_kernels(request->session, work->kept.cache, indices, &kernels->indices, diag);
    if (!s) s = cb_session_kernels(request->session, work->kept.cache, values, &kernels->values, diag);
  }
  work->info.compile_seconds += cb_work_lap(work);
  return s;
}

static enum cb_status take_lists(struct cb_work *work, struct cb_diag *diag) {
  struct cb_there *there = &work->there;
  if (!there->lists) there->lists = cb_alloc(1, sizeof *there->lists);
  return there->lists ? CB_OK : cb_fail_memory(diag, "the plan's lists", sizeof *there->lists);
}

enum cb_status cb_work_find_packers(struct cb_work *work, struct cb_diag *diag) {
  const struct cb_made *made = &work->made;
  enum cb_status s = take_lists(work, diag);
  if (!s) s = cb_packing_lists_find(work->there.lists, made->plan, made->assignment, diag);
  return s ? s : find_kernels(work, made->plan->matrix_type, diag);
}

/* What it takes is compiling's time, not the analysis' which is under way. */
static enum cb_status find_set(void *user, const char *set, const struct cb_kernels **kernels, struct cb_diag *diag) {
  struct cb_work *work = user;
  const double start = cb_seconds();
  const enum cb_status s =
      cb_session_kernels(work->request.session, work->kept.cache, cb_kernel_set_find(set), kernels, diag);
  const double taken = cb_seconds() - start;
  work->info.compile_seconds += taken;
  work->mark += taken;
  return s;
}

/* `near`: nonzeros of matrices whose columns are brought to the host, too. */
static enum cb_status survey(struct cb_work *work, int64_t near, struct cb_diag *diag) {
  const struct cb_request *request = &work->request;
  const struct cb_device *device = request->session->device;
  const struct cb_hasher *hasher = &request->session->hasher; /* which will bring nothing more */
  struct cb_kernel_finder finder = {find_set, work, hasher->pinned ? hasher->copy : NULL, hasher->room, {0}};
  if (work->is_brought) cb_hasher_brought(hasher, &request->view, &finder.brought);
  work->is_brought = 0; /* what comes to pinned bytes now takes its place */
  enum cb_status s = cb_device_enter(device, diag);
  if (s) return s;
  s = has_room(work) ? cb_survey_run(&work->there.survey, &work->matrix.csr, &finder, &request->view, near,
                                     cb_asks_mutable(request), diag)
                     : cb_fail(diag, CB_ERR_MEMORY, "it finds no room on the GPU beside the operator");
  cb_device_leave(device);
  return s;
}

static enum cb_status plan_there(struct cb_work *work, const struct cb_options *options, struct cb_diag *diag) {
  struct cb_made *made = &work->made;
  enum cb_status s = survey(work, CB_SURVEY_NEAR, diag);
  if (!s)
    s = cb_plan_build(&made->plan, &made->assignment, &work->matrix.csr, &work->request.session->device->target,
                      options, diag);
  work->info.analysis_seconds += cb_work_lap(work);
  return s ? s : cb_work_find_packers(work, diag);
}

void cb_work_plan_there(struct cb_work *work, const struct cb_options *options) {
  struct cb_diag diag = {0};
  if (!plan_there(work, options, &diag)) {
    work->there.is_used = 1;
    work->matrix.pattern = work->request.raw;
    return;
  }
  cb_work_give_up_device(work, diag.message);
}

void cb_work_give_up_device(struct cb_work *work, const char *why) {
  cb_log(work->request.context, "the matrix is planned and packed on the host: %s", why);
  work->host_only = 1;
  cb_work_release_there(work);
  cb_made_release(&work->made);
  cb_csr_release(&work->matrix.csr);
}

/* ---- the arrays */

typedef void put_listed(struct cb_work *work, int region, int array, int number, int64_t at);

/* Calls `put` for each listed array of the plan, with its number in the image and where it goes among all of them. They
 * lie as on the device: where they are neighbours there, one upload takes them all. Returns the bytes of all. */
static int64_t for_each_listed(struct cb_work *work, put_listed *put) {
  const struct cb_made *made = &work->made;
  int64_t at = 0;
  int number = 0;
  for (int r = 0; r < made->plan->regions_count; r++)
    for (int a = 0; a < made->plan->regions[r].arrays_count; a++) {
      const struct cb_array *array = &made->plan->regions[r].arrays[a];
      if (cb_pack_listed(made->plan, made->assignment, r, a, NULL)) {
        if (put) put(work, r, a, number, at);
        at += cb_round_up(array->count * (int64_t)cb_type_size(array->type), CB_BLOB_ALIGN);
      }
      number += array->storage == CB_STORED;
    }
  return at;
}

static void pack_one(struct cb_work *work, int region, int array, int number, int64_t at) {
  unsigned char *to = work->there.block + at;
  cb_pack_listed(work->made.plan, work->made.assignment, region, array, to);
  work->there.contents[number] = to;
}

enum cb_status cb_work_pack_there(struct cb_work *work) {
  const struct cb_plan *plan = work->made.plan;
  struct cb_there *there = &work->there;
  const int64_t bytes = for_each_listed(work, NULL);
  int arrays = 0;
  for (int r = 0; r < plan->regions_count; r++) arrays += plan->regions[r].arrays_count;
  there->contents = cb_calloc((size_t)arrays + 1, sizeof *there->contents);
  there->block = cb_calloc((size_t)bytes + 1, 1);
  if (!there->contents || !there->block) return cb_fail_memory(work->diag, "packed arrays", (uint64_t)bytes);
  for_each_listed(work, pack_one);
  return CB_OK;
}

void cb_work_use_contents(const struct cb_work *work, struct cb_image *image) {
  for (int i = 0; i < image->arrays_count; i++) image->arrays[i].contents = work->there.contents[i];
}

struct cb_pack_source cb_work_pack_source(struct cb_work *work) {
  return (struct cb_pack_source){
      .lists = work->there.lists, .survey = &work->there.survey, .kernels = work->there.kernels};
}

/* ---- lists in the cache's entry */

/* What kernels need beside the matrix is to be no more than a quarter of what they spare. Measured on an H200 where the
 * pattern is known: R-MAT of 0.23 M nonzeros 0.87 ms by lists, 0.83 by upload; of 0.47 M (about 5 MB) 0.75 and 1.17; of
 * 8 M 2.0 and 4.8. */
enum { WORTH_KEEPING = 1 << 20, WORTH_PACKING = 4 << 20, OF_SPARED = 4 };

/* Whether the image, whose plan is there, has arrays that kernels could fill as well. */
static int may_keep_lists(const struct cb_work *work, struct cb_packing_lists *lists) {
  const struct cb_recipe *recipe;
  const struct cb_made *made = &work->made;
  return work->packed.keep && made->plan && made->assignment && is_simple(&work->request) &&
         !cb_recipe_find(&recipe, made->plan->recipe, NULL) && recipe->is_packed &&
         !cb_packing_lists_find(lists, made->plan, made->assignment, NULL);
}

/* That of the entry which is replaced by one with another kernel: all that is left of its data. */
static int take_over(const struct cb_work *work, struct cb_cache_section *sections, int *count) {
  const struct cb_cache_section *kept = cb_cache_section(&work->kept.entry, "packing");
  if (kept) sections[(*count)++] = *kept;
  return kept != NULL;
}

void cb_work_keep_lists(const struct cb_work *work, struct cb_cache_section *sections, int *count,
                        unsigned char **bytes) {
  const struct cb_image *image = &work->load.image;
  struct cb_packing_lists *lists = cb_alloc(1, sizeof *lists);
  *bytes = NULL;
  if (lists && !take_over(work, sections, count) && may_keep_lists(work, lists)) {
    const int64_t length = cb_packing_lists_bytes(lists, image), spared = cb_packing_lists_spare(lists, image);
    const int wanted = work->request.context->keep == CB_KEEP_ALWAYS;
    if (wanted || (spared >= WORTH_KEEPING && length <= spared / OF_SPARED)) *bytes = cb_alloc((size_t)length, 1);
    if (*bytes) {
      cb_packing_lists_write(*bytes, lists, image);
      sections[(*count)++] = (struct cb_cache_section){"packing", *bytes, length};
    }
  }
  cb_free(lists);
}

/* Bytes that the upload of the entry's data would bring. */
static int64_t uploaded_bytes(const struct cb_cache_entry *entry) {
  static const char *const tags[] = {"arrays", "map"};
  int64_t bytes = 0;
  for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
    const struct cb_cache_section *section = cb_cache_section(entry, tags[i]);
    bytes += section ? section->length : 0;
  }
  return bytes;
}

static int lists_are_wanted(const struct cb_work *work, const struct cb_cache_section *section) {
  const struct cb_request *request = &work->request;
  const struct cb_image *image = &work->load.image;
  const int specialises = image->tier == CB_TIER_FAMILY && cb_specialises(work, image->plan_ns); /* and is put again */
  if (!section || !request->view.on_device || specialises || !can_survey(work)) return 0;
  if (request->context->pack != CB_PACK_AUTO) return request->context->pack == CB_PACK_DEVICE;
  if (!cb_image_has_arrays(image)) return is_long(work);
  const int64_t spared = uploaded_bytes(&work->kept.entry) - section->length;
  return spared >= WORTH_PACKING && section->length <= spared / OF_SPARED && cb_session_has_binaries(request->session);
}

static enum cb_status read_lists(struct cb_work *work, const struct cb_cache_section *section, struct cb_diag *diag) {
  struct cb_there *there = &work->there;
  const struct cb_image *image = &work->load.image;
  there->contents = cb_calloc((size_t)image->arrays_count + 1, sizeof *there->contents);
  if (!there->contents) return cb_fail_memory(diag, "packed arrays", 0);
  enum cb_status s = take_lists(work, diag);
  if (!s) s = cb_packing_lists_read(there->lists, there->contents, image, section, diag);
  return s ? s : find_kernels(work, image->matrix_type, diag);
}

enum cb_status cb_work_use_lists(struct cb_work *work) {
  const struct cb_cache_section *section = cb_cache_section(&work->kept.entry, "packing");
  struct cb_image *image = &work->load.image;
  struct cb_diag diag = {0};
  if (!lists_are_wanted(work, section)) return CB_ERR_UNSUPPORTED;
  enum cb_status s = survey(work, 0, &diag);
  work->info.analysis_seconds += cb_work_lap(work);
  if (!s) s = read_lists(work, section, &diag);
  if (s) {
    cb_work_give_up_device(work, diag.message);
    return CB_ERR_UNSUPPORTED;
  }
  cb_work_use_contents(work, image);
  for (int i = 0; i < image->ranges_count; i++) image->ranges[i].map.first_block = image->ranges[i].map.blocks = 0;
  image->map = (struct cb_value_map){0};
  work->there.is_used = 1;
  work->matrix.pattern = image->pattern;
  cb_log(work->request.context, "cache: kernels pack the arrays, by %.1f MB of lists", 1e-6 * (double)section->length);
  return CB_OK;
}

/* ---- the end */

void cb_work_release_there(struct cb_work *work) {
  struct cb_there *there = &work->there;
  const struct cb_device *device = there->survey.kernels ? there->survey.kernels->device : NULL;
  cb_free(there->contents);
  cb_free(there->block);
  cb_free(there->lists);
  if (device && !cb_device_enter(device, NULL)) {
    cb_survey_release(&there->survey);
    cb_device_leave(device);
  }
  cb_survey_forget(&there->survey);
  *there = (struct cb_there){0};
}
