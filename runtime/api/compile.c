// SPDX-License-Identifier: Apache-2.0
/* From a matrix to an operator: see compile.h. Begin to read at cbgen_compile, at the end. */
#include "runtime/api/api.h"

#include "analysis/plan/recipe.h"
#include "base/clock.h"
#include "base/fork.h"
#include "base/memory.h"
#include "runtime/api/compile.h"
#include "runtime/cuda/memory.h"
#include "runtime/cuda/ranges.h"

#include <string.h>

double cb_work_lap(struct cb_work *work) {
  const double now = cb_seconds(), passed = now - work->mark;
  work->mark = now;
  return passed;
}

/* ---- what is asked for */

/* Values on the host may be moved into their slots on the host or on the device. The device is faster when there are
 * many. When there are few, its kernels and buffers take longer to prepare than the host needs for all. */
enum { LONG = 1 << 20 };
static int must_pack_on_device(const struct cb_request *request) {
  return request->view.on_device || cb_asks_mutable(request);
}

static enum cb_status prepare(struct cb_work *work, const cbgen_request *asked) {
  struct cb_request *request = &work->request;
  enum cb_status s = cb_request_take(request, asked, work->diag);
  if (s) return s;
  s = cb_checks_create(&work->checks, request->context, request->session, work->diag);
  if (s) return s;
  work->kept.cache = cb_inspects() ? NULL : cb_context_cache(request->context);
  work->load.device_packs = request->view.values && !cb_asks_fixed(request) &&
                            (must_pack_on_device(request) || request->view.nnz >= LONG);
  return CB_OK;
}

/* Hashes the pattern on the device, if it lies there and is long. Not if it is on the host already, or must come to the
 * host in any case because there is no cache to know it: then the host hashes it, and this gives CB_ERR_UNSUPPORTED. */
static enum cb_status hash_on_device(struct cb_work *work) {
  struct cb_request *request = &work->request;
  const struct cb_device *device = request->session->device;
  struct cb_hasher *hasher;
  struct cb_diag diag = {0};
  const int rows = request->view.format == CBGEN_CSR && !cb_asks_order(request); /* else the host makes them */
  const int worth_it = rows && request->view.on_device && request->view.nnz >= CB_HASH_CHUNK;
  const int stays = rows && request->view.on_device && cb_work_may_pack_there(work);
  if (!stays && (!worth_it || cb_cache_state(work->kept.cache) != CB_CACHE_ON)) return CB_ERR_UNSUPPORTED;
  enum cb_status s = cb_session_hasher(request->session, work->kept.cache, &hasher, &diag);
  work->info.compile_seconds += cb_work_lap(work);
  if (!s) s = cb_device_enter(device, &diag);
  if (!s) {
    s = cb_hasher_run(hasher, &request->view, &request->raw, &diag);
    cb_device_leave(device);
  }
  if (s) cb_log(request->context, "the pattern is hashed on the host: %s", diag.message);
  work->is_brought = !s;
  return s;
}

static enum cb_status hash_pattern(struct cb_work *work) {
  if (!hash_on_device(work)) return CB_OK;
  const enum cb_status s = cb_request_host(&work->request, work->diag);
  if (!s) work->request.raw = cb_view_hash(&work->request.host);
  return s;
}

enum cb_status cb_work_hash(struct cb_work *work) {
  CB_RANGE("cbgen: hash");
  struct cb_request *request = &work->request;
  const struct cb_view *host = &request->host;
  const int fixed = cb_asks_fixed(request) && request->view.values;
  enum cb_status s = hash_pattern(work);
  if (!s && fixed) s = cb_request_host(request, work->diag);
  if (!s && fixed) request->values = cb_hash_array(host->values, (size_t)host->nnz, cb_type_size(host->value_type));
  work->info.hash_seconds += cb_work_lap(work);
  return s;
}

/* ---- onto the GPU */

/* Whether the values, as they are given, and their map find room beside the arrays. */
static int has_room(const struct cb_device *device, const struct cb_image *image, const struct cb_view *view) {
  const int64_t values = view->nnz * (int64_t)cb_type_size(view->value_type);
  if (cb_device_enter(device, NULL)) return 0;
  const uint64_t available = cb_device_available(device);
  cb_device_leave(device);
  return (uint64_t)(image->packed_bytes + values + cb_value_map_bytes(&image->map) +
                             cb_value_map_list_bytes(&image->map)) < available / 16 * 15;
}

/* The kernels that pack, where values are packed on the device or will be renewed there. */
static enum cb_status choose_packer(struct cb_work *work, const struct cb_packer **packer) {
  const struct cb_request *request = &work->request;
  struct cb_load *load = &work->load;
  const int must = must_pack_on_device(request);
  struct cb_diag diag = {0};
  if (!must && load->device_packs && !has_room(request->session->device, &load->image, &request->view))
    load->device_packs = 0;
  if (!load->device_packs && !cb_asks_mutable(request)) return CB_OK;
  enum cb_status s = cb_session_packer(request->session, work->kept.cache, load->image.matrix_type, packer,
                                       must ? work->diag : &diag);
  if (s && !must) {
    cb_log(request->context, "values are packed on the host: %s", diag.message);
    load->device_packs = 0;
    *packer = NULL;
    s = CB_OK;
  }
  work->info.compile_seconds += cb_work_lap(work);
  return s;
}

static enum cb_status finish_verification(void *user, struct cb_diag *diag) {
  (void)diag; /* the work's own */
  return cb_work_finish_verification(user);
}

/* An operator whose arrays kernels fill. */
static enum cb_status load_there(struct cb_work *work, cbgen_operator **op) {
  const struct cb_request *request = &work->request;
  const struct cb_pack_source source = cb_work_pack_source(work);
  const struct cb_view *there = &source.survey->view;
  const struct cb_loading loading = {.session = request->session,
                                     .image = &work->load.image,
                                     .info = &work->info,
                                     .pack = &source,
                                     .keep = cb_asks_mutable(request),
                                     .values = there->values,
                                     .value_type = there->value_type,
                                     .on_device = 1};
  work->load.image.values = request->asked.values;
  return cb_operator_make(op, &loading, work->diag);
}

static enum cb_status load(struct cb_work *work, cbgen_operator **op) {
  CB_RANGE("cbgen: load");
  const struct cb_request *request = &work->request;
  struct cb_image *image = &work->load.image;
  struct cb_loading loading = {.session = request->session,
                               .image = image,
                               .info = &work->info,
                               .finish_verification = finish_verification,
                               .user = work,
                               .keep = cb_asks_mutable(request)};
  if (work->there.is_used) return load_there(work, op);
  image->values = request->asked.values;
  enum cb_status s = choose_packer(work, &loading.packer);
  const int fills = !work->load.device_packs && image->map.groups_count;
  if (!s && fills) s = cb_work_finish_verification(work); /* now the host reads what the device would */
  if (!s && fills) s = cb_work_fill(work);
  if (work->load.device_packs) {
    loading.values = request->view.values;
    loading.value_type = request->view.value_type;
    loading.on_device = request->view.on_device;
  }
  return s ? s : cb_operator_make(op, &loading, work->diag);
}

static enum cb_status make_once(struct cb_work *work, cbgen_operator **op) {
  const enum cb_status s = cb_work_make(work);
  if (s) return s;
  if (!cb_work_is_made_in_no_time(work)) cb_work_put(work);
  return load(work, op);
}

/* What kernels could not pack for want of room on the device, the host may. */
static enum cb_status make_and_load(struct cb_work *work, cbgen_operator **op) {
  const enum cb_status s = make_once(work, op);
  if (s != CB_ERR_MEMORY || !work->there.is_used) return s;
  cb_work_give_up_device(work, work->diag->message);
  cb_work_release_new(work);
  return make_once(work, op);
}

/* Whether the expected products can repay a search among recipes. A search takes about a millisecond and 10 ns for
 * each nonzero longer than planning one recipe; by a profile, half a millisecond and 1 ns. At best it halves the time
 * of a product, which streams at least 12 bytes for each nonzero. */
static int search_pays(const struct cb_request *request) {
  const struct cb_target *target = &request->session->device->target;
  const double nonzeros = (double)request->view.nnz, expected = (double)request->asked.expected_products;
  const double search_ns = cb_search_is_by_profile(&request->options) ? 5e5 + nonzeros : 1e6 + 10 * nonzeros;
  const double product_ns = (double)target->launch_ns + 12 * nonzeros / (double)target->read_gb_per_s;
  return !request->asked.expected_products || expected * product_ns / 2 > search_ns;
}

/* Where a recipe that is ready will do: the entry of the fastest, if somebody has made that. */
static enum cb_status find_fastest(struct cb_work *work, int *hit) {
  struct cb_options *options = &work->request.options;
  const struct cb_options ready = *options;
  const struct cb_hash key = work->kept.key;
  struct cb_options usual;
  if (options->search != CB_SEARCH_READY || strcmp(options->recipe, "auto") || !work->kept.cache) return CB_OK;
  cb_options_default(&usual);
  options->search = CB_SEARCH_PROFILE;
  options->ready_loss = usual.ready_loss;
  cb_work_key(work);
  const enum cb_status s = cb_work_get(work, hit);
  if (s || *hit) return s;
  *options = ready;
  work->kept.key = key;
  return CB_OK;
}

/* Looks up the entry that is asked for. If there is none, and a search would not pay, looks up the entry of the recipe
 * that is taken without a search. */
static enum cb_status find(struct cb_work *work, int *hit) {
  CB_RANGE("cbgen: look up");
  struct cb_request *request = &work->request;
  enum cb_status s = find_fastest(work, hit);
  if (!s && !*hit) s = cb_work_get(work, hit);
  if (s || *hit || strcmp(request->options.recipe, "auto") || search_pays(request)) return s;
  cb_log(request->context, "recipe '%s' without a search, which %lld products would not repay",
         cb_recipe_unsearched, (long long)request->asked.expected_products);
  request->options.recipe = cb_recipe_unsearched;
  cb_work_key(work);
  return cb_work_get(work, hit);
}

static int shall_specialise(const struct cb_work *work) {
  return work->load.image.tier == CB_TIER_FAMILY && cb_specialises(work, work->load.image.plan_ns);
}

/* What is perhaps not stored is nothing to wait for: each process makes it as fast as the first. */
static int takes_turns(const struct cb_work *work) {
  enum { LONG_PRODUCT_NS = 1000 * 1000 };
  return !cb_work_may_pack_there(work) || cb_specialises(work, LONG_PRODUCT_NS);
}

/* An entry that the driver refuses, or that turns out to be damaged, is made again, once. */
static enum cb_status find_or_make(struct cb_work *work, cbgen_operator **op) {
  int hit = 0;
  enum cb_status s = find(work, &hit);
  if (!s && (hit ? shall_specialise(work) : takes_turns(work))) s = cb_work_take_turn(work, &hit);
  if (s) return s;
  if (!hit) return make_and_load(work, op);
  const int special = shall_specialise(work);
  if (special) s = cb_work_specialise(work);
  if (s) return s;
  if (special || (work->made.plan && work->packed.keep)) cb_work_put(work); /* it lacked that, or its data */
  cb_cache_turn_end(work->kept.cache, &work->kept.turn);
  s = load(work, op);
  if (s != CB_ERR_DEVICE && s != CB_ERR_FORMAT) return s;
  cb_work_forget(work);
  return make_and_load(work, op);
}

/* ---- the whole */

static void release(struct cb_work *work) {
  cb_checks_free(work->checks);
  cb_work_release_new(work);
  cb_work_close(work);
  cb_cache_turn_end(work->kept.cache, &work->kept.turn);
  cb_cache_turn_end(work->kept.cache, &work->kept.tuning);
  cb_request_release(&work->request);
}

static void tell(const struct cb_work *work, const cbgen_operator *op) {
  const cbgen_info *info = &op->shared->info;
  cb_log(work->request.context,
         "'%s': kernel cbgen_%s in %.1f ms: hash %.1f, lookup %.1f, analysis %.1f, pack %.1f, generate %.1f, "
         "compile %.1f, tune %.1f, store %.1f, load %.1f, upload %.1f",
         work->request.view.name, op->shared->key, 1e3 * info->total_seconds, 1e3 * info->hash_seconds,
         1e3 * info->lookup_seconds, 1e3 * info->analysis_seconds, 1e3 * info->pack_seconds,
         1e3 * info->generate_seconds, 1e3 * info->compile_seconds, 1e3 * info->tune_seconds,
         1e3 * info->store_seconds, 1e3 * info->load_seconds, 1e3 * info->upload_seconds);
}

/* Where kernels go that are made later: the specialised one, and solvers'. */
static void note_cache(const struct cb_work *work, struct cb_shared *shared) {
  const struct cb_cache *cache = work->kept.cache;
  if (cb_cache_state(cache) != CB_CACHE_ON) return;
  struct cb_text directory = {0};
  cb_text_add_string(&directory, cb_cache_directory(cache));
  shared->kept = (struct cb_kept_at){cb_text_detach(&directory), cb_cache_limit(cache), work->kept.key};
}

/* The order of the operator's vectors; those of a transposed view are the other way round. */
static void leave_order(struct cb_work *work, struct cb_shared *shared) {
  struct cb_reordering *from = &work->request.reordering;
  const int turned = work->request.asked.transpose;
  shared->order = (struct cb_vector_order){turned ? from->columns : from->rows, turned ? from->rows : from->columns};
  from->rows = from->columns = NULL;
}

/* The plan to the operator that has no texts yet. */
static void leave_plan(struct cb_work *work, struct cb_shared *shared) {
  if (shared->image.source) return;
  shared->image.plan = work->made.plan;
  work->made.plan = NULL;
}

/* Whether values that are on the host keep the promise; on the device kernels compare them. */
static enum cb_status compare_first_values(struct cb_work *work, const struct cb_pairs *pairs) {
  const struct cb_view *view = &work->request.view;
  void *stream = view->stream;
  cb_device_ptr values = (cb_device_ptr)(uintptr_t)view->values, buffer = 0;
  const struct cb_device *device = work->request.session->device;
  const size_t bytes = (size_t)view->nnz * cb_type_size(view->value_type);
  enum cb_status s = CB_OK;
  if (!view->values || !view->nnz) return CB_OK;
  if (!view->on_device) {
    stream = NULL;
    s = cb_device_alloc(device, &buffer, bytes, "values", work->diag);
    if (!s) s = cb_device_upload(device, buffer, view->values, bytes, "values", work->diag);
    values = buffer;
  }
  if (!s) s = cb_pairs_compare(pairs, view->value_type, values, stream, work->diag);
  if (!s) s = cb_pairs_outcome(pairs, stream, work->diag);
  cb_device_free(device, buffer);
  return s == CB_ERR_WRONG ? CB_ERR_ARGUMENT : s; /* it is what was handed over */
}

/* The option check-symmetry: pairs of the caller's entries, by which new values are compared, and the first ones now.
 * */
static enum cb_status attach_pairs(struct cb_work *work, cbgen_operator **op) {
  struct cb_request *request = &work->request;
  const struct cb_kernels *kernels;
  if (request->options.check_symmetry != CB_ON) return CB_OK;
  enum cb_status s = cb_work_canonical(work);
  if (!s)
    s = cb_session_kernels(request->session, work->kept.cache, cb_kernel_set_find("symmetry"), &kernels, work->diag);
  if (!s) s = cb_device_enter(request->session->device, work->diag);
  if (!s) {
    s = cb_pairs_create(&(*op)->shared->pairs, kernels, &work->matrix.csr, &work->matrix.order,
                        (enum cb_symmetry_option)request->options.symmetric, work->diag);
    if (!s) s = compare_first_values(work, (*op)->shared->pairs);
    cb_device_leave(request->session->device);
  }
  if (!s) return CB_OK;
  cbgen_operator_free(*op);
  *op = NULL;
  return s;
}

static enum cb_status run(struct cb_work *work, const cbgen_request *asked, cbgen_operator **op) {
  CB_RANGE("cbgen: make an operator");
  const double start = cb_seconds();
  enum cb_status s = prepare(work, asked);
  work->mark = cb_seconds();
  struct cb_memory *memory = s ? NULL : work->request.session->device->memory;
  cb_memory_mark(memory);
  if (!s) s = cb_work_hash(work);
  if (!s) s = cb_work_tune(work);
  if (!s) cb_work_key(work);
  if (!s) s = find_or_make(work, op);
  if (!s) s = attach_pairs(work, op);
  if (!s) s = cb_checks_attach(work, op);
  if (s) return s;
  note_cache(work, (*op)->shared);
  leave_plan(work, (*op)->shared);
  leave_order(work, (*op)->shared);
  (*op)->shared->info.peak_bytes = cb_memory_peak(memory);
  (*op)->shared->info.total_seconds = cb_seconds() - start;
  tell(work, *op);
  return CB_OK;
}

/* By this thread: OpenMP's are not even woken to set how they round. */
static enum cb_status run_alone(struct cb_work *work, const cbgen_request *request, cbgen_operator **op) {
  CB_STANDARD_NUMERICS;
  return run(work, request, op);
}

static enum cb_status run_by_all(struct cb_work *work, const cbgen_request *request, cbgen_operator **op) {
  CB_STANDARD_NUMERICS_OF_ALL;
  return run(work, request, op);
}

/* Of a matrix that stays on the device the host plans by rows, and sees a sample of its nonzeros. */
static int threads_for(const struct cb_work *work) {
  enum { OF_ROW = 2, PART = 16, LEAST = 4 }; /* two or three gain less than the last of them may cost */
  const struct cb_view *view = &work->request.view;
  const struct cbgen_context *context = work->request.context;
  const int stays = view->on_device && view->format == CBGEN_CSR && context->pack != CB_PACK_HOST;
  const int64_t worth = stays ? view->rows * OF_ROW + view->nnz / PART : view->rows + view->nnz;
  return stays && worth < LEAST * CB_THREADS_WORTH ? 1 : cb_threads_worth(worth, context->threads);
}

static enum cb_status run_by_few(struct cb_work *work, const cbgen_request *request, cbgen_operator **op) {
  const int wanted = threads_for(work), threads = cb_threads_begin(wanted);
  const enum cb_status s = (wanted > 1 ? run_by_all : run_alone)(work, request, op);
  cb_threads_end(threads);
  return s;
}

static cbgen_status compile(cbgen_context *context, const void *matrix, cb_view_taker *take,
                            const cbgen_request *request, cbgen_operator **op) {
  if (op) *op = NULL;
  if (!context) return CBGEN_ERROR_ARGUMENT;
  if (!op)
    return (cbgen_status)cb_fail(&context->diag, CB_ERR_ARGUMENT, "no place for the operator was given");
  struct cb_work *work = cb_calloc(1, sizeof *work);
  if (!work) return (cbgen_status)cb_fail_memory(&context->diag, "a compilation", sizeof *work);
  work->request.context = context;
  work->diag = &context->diag;
  enum cb_status s = take(&work->request.view, matrix, work->diag);
  if (!s) s = run_by_few(work, request, op);
  release(work);
  cb_free(work);
  return (cbgen_status)s;
}

static cbgen_status compile_with_threads(cbgen_context *context, const void *matrix, cb_view_taker *take,
                                         const cbgen_request *request, cbgen_operator **op) {
  const int threads = cb_threads_begin(context ? context->threads : 0);
  const cbgen_status s = compile(context, matrix, take, request, op);
  cb_threads_end(threads);
  return s;
}

cbgen_status cbgen_compile(cbgen_context *context, const cbgen_csr *matrix, const cbgen_request *request,
                           cbgen_operator **op) {
  return compile_with_threads(context, matrix, cb_view_take_csr, request, op);
}

cbgen_status cbgen_compile_matrix(cbgen_context *context, const cbgen_matrix *matrix, const cbgen_request *request,
                                  cbgen_operator **op) {
  return compile_with_threads(context, matrix, cb_view_take, request, op);
}
