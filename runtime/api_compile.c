// SPDX-License-Identifier: Apache-2.0
/* From a matrix to an operator: cbgen_compile at the end is the table of contents. See compile.h. */
#include "runtime/api.h"

#include "analysis/plan/recipe.h"
#include "base/clock.h"
#include "base/fork.h"
#include "base/memory.h"
#include "runtime/compile.h"

#include <string.h>

double cb_work_lap(struct cb_work *work) {
  const double now = cb_seconds(), passed = now - work->mark;
  work->mark = now;
  return passed;
}

/* ---- what is asked for */

static enum cb_status take_request(struct cb_work *work, const cbgen_request *request) {
  cbgen_request *taken = &work->request;
  enum cb_status s = CB_OK;
  if (request) s = cb_take_struct(taken, sizeof *taken, sizeof *taken, request, "cbgen_request", work->diag);
  if (s) return s;
  if (taken->expected_products < 0)
    return cb_fail(work->diag, CB_ERR_ARGUMENT, "'expected_products' is %lld; it is 0 (many) or more",
                   (long long)taken->expected_products);
  if ((int)taken->values < 0 || taken->values > CBGEN_VALUES_FIXED)
    return cb_fail(work->diag, CB_ERR_ARGUMENT, "'values' is %d; it is one of cbgen_values",
                   (int)taken->values);
  if (taken->transpose != 0 && taken->transpose != 1)
    return cb_fail(work->diag, CB_ERR_ARGUMENT, "'transpose' is %d; it is 0 or 1", taken->transpose);
  return CB_OK;
}

/* The context's options with what they leave to the matrix and the request. */
static enum cb_status choose_options(struct cb_work *work) {
  static const char *const types[] = {
      [CB_F64] = "f64", [CB_F32] = "f32", [CB_F16] = "f16-f32", [CB_BF16] = "bf16-f32"};
  work->options = work->context->options;
  if (!work->context->has_form) work->options.form = CB_FORM_AXPBY;
  if (work->options.values == CB_VALUES_FIXED && work->request.values == CBGEN_VALUES_MUTABLE)
    return cb_fail(work->diag, CB_ERR_ARGUMENT,
                   "the option 'values' says that they are fixed, and the request that they are mutable");
  if (work->options.values == CB_VALUES_FIXED) work->request.values = CBGEN_VALUES_FIXED;
  if (work->request.values == CBGEN_VALUES_FIXED) work->options.values = CB_VALUES_FIXED;
  if (work->context->has_type) return CB_OK;
  return cb_options_set(&work->options, "type", types[work->view.value_type], work->diag);
}

/* Values on the host may be moved into place on either side. Many are faster there than here, once they are
 * there: short of them what this needs, kernels and buffers, takes longer. */
enum { LONG = 1 << 20 };
static int must_pack_on_device(const struct cb_work *work) {
  return work->view.on_device || work->request.values == CBGEN_VALUES_MUTABLE;
}

static enum cb_status prepare(struct cb_work *work, const cbgen_csr *matrix, const cbgen_request *request) {
  enum cb_status s = take_request(work, request);
  if (!s) s = cb_view_take(&work->view, matrix, work->diag);
  if (!s) s = choose_options(work);
  if (!s) s = cb_context_session(work->context, &work->session);
  if (!s) s = cb_session_nvrtc(work->session, &work->nvrtc, work->diag);
  if (s) return s;
  work->host = work->view;
  if (work->view.on_device) work->host.row_ptr = work->host.col_idx = work->host.values = NULL;
  work->host.on_device = 0;
  work->cache = cb_context_cache(work->context);
  work->device_packs = work->view.values && work->request.values != CBGEN_VALUES_FIXED &&
                       (must_pack_on_device(work) || work->view.nnz >= LONG);
  return CB_OK;
}

/* ---- the matrix on the host */

static enum cb_status download(struct cb_work *work, int which, const void **array, const void *from,
                               int64_t count, size_t size, const char *what) {
  const struct cb_device *device = work->session->device;
  void *block = work->downloaded[which] = cb_alloc((size_t)count, size);
  if (!block) return cb_fail_memory(work->diag, what, (unsigned long long)count * size);
  *array = block;
  return cb_device_download(device, block, (cb_device_ptr)(uintptr_t)from, (size_t)count * size, what,
                            work->diag);
}

static enum cb_status download_all(struct cb_work *work) {
  const struct cb_device *device = work->session->device;
  const struct cb_view *view = &work->view;
  struct cb_view *host = &work->host;
  enum cb_status s = cb_driver_check(device->driver, device->driver->call.stream_synchronize(view->stream),
                                     work->diag, "wait for the matrix");
  if (!s)
    s = download(work, 0, &host->row_ptr, view->row_ptr, view->rows + 1, view->row_wide ? 8 : 4,
                 "row pointers");
  if (!s)
    s = download(work, 1, &host->col_idx, view->col_idx, view->nnz, view->col_wide ? 8 : 4, "column indices");
  if (!s && work->request.values == CBGEN_VALUES_FIXED && view->values)
    s = download(work, 2, &host->values, view->values, view->nnz, cb_type_size(view->value_type), "values");
  return s;
}

enum cb_status cb_work_host(struct cb_work *work) {
  if (work->host.row_ptr) return CB_OK;
  enum cb_status s = cb_device_enter(work->session->device, work->diag);
  if (s) return s;
  s = download_all(work);
  cb_device_leave(work->session->device);
  return s;
}

/* Where the pattern lies on the device and is long, its hash is made there; what is on the host already, and
 * what must come there in any case because no cache could know it, is hashed there. CB_ERR_UNSUPPORTED: not
 * on the device. */
static enum cb_status hash_on_device(struct cb_work *work) {
  const struct cb_view *view = &work->view;
  struct cb_hasher *hasher;
  struct cb_diag diag = {0};
  const int worth_it = view->on_device && view->nnz >= CB_HASH_CHUNK;
  if (!worth_it || cb_cache_state(work->cache) != CB_CACHE_ON) return CB_ERR_UNSUPPORTED;
  enum cb_status s = cb_session_hasher(work->session, work->cache, &hasher, &diag);
  work->info.compile_seconds += cb_work_lap(work);
  if (!s) s = cb_device_enter(work->session->device, &diag);
  if (!s) {
    s = cb_hasher_run(hasher, view, &work->raw, &diag);
    cb_device_leave(work->session->device);
  }
  if (s) cb_log(work->context, "the pattern is hashed on the host: %s", diag.message);
  return s;
}

static enum cb_status hash_pattern(struct cb_work *work) {
  if (!hash_on_device(work)) return CB_OK;
  const enum cb_status s = cb_work_host(work);
  if (!s) work->raw = cb_view_hash(&work->host);
  return s;
}

/* Of the pattern, and of fixed values. */
static enum cb_status hash(struct cb_work *work) {
  const int fixed = work->request.values == CBGEN_VALUES_FIXED && work->view.values;
  enum cb_status s = hash_pattern(work);
  if (!s && fixed) s = cb_work_host(work);
  if (!s && fixed)
    work->values =
        cb_hash_array(work->host.values, (size_t)work->host.nnz, cb_type_size(work->host.value_type));
  work->info.hash_seconds += cb_work_lap(work);
  return s;
}

/* ---- onto the GPU */

/* Whether the values, as they are given, and their map go beside the arrays. */
static int has_room(const struct cb_work *work) {
  const struct cb_device *device = work->session->device;
  const struct cb_image *image = &work->image;
  const int64_t values = work->view.nnz * (int64_t)cb_type_size(work->view.value_type);
  size_t available = 0, total = 0;
  if (cb_device_enter(device, NULL)) return 0;
  const int known = !device->driver->call.memory_info(&available, &total);
  cb_device_leave(device);
  return known && (uint64_t)(image->packed_bytes + values + cb_value_map_bytes(&image->map) +
                             cb_value_map_list_bytes(&image->map)) < available / 16 * 15;
}

/* The kernels that pack, where values are packed on the device or will be renewed there. */
static enum cb_status choose_packer(struct cb_work *work, const struct cb_packer **packer) {
  const int must = must_pack_on_device(work);
  struct cb_diag diag = {0};
  if (!must && work->device_packs && !has_room(work)) work->device_packs = 0;
  if (!work->device_packs && work->request.values != CBGEN_VALUES_MUTABLE) return CB_OK;
  enum cb_status s = cb_session_packer(work->session, work->cache, work->image.matrix_type, packer,
                                       must ? work->diag : &diag);
  if (s && !must) {
    cb_log(work->context, "values are packed on the host: %s", diag.message);
    work->device_packs = 0;
    *packer = NULL;
    s = CB_OK;
  }
  work->info.compile_seconds += cb_work_lap(work);
  return s;
}

static enum cb_status settle(void *user, struct cb_diag *diag) {
  (void)diag; /* the work's own */
  return cb_work_settle(user);
}

static enum cb_status load(struct cb_work *work, cbgen_operator **op) {
  struct cb_loading loading = {.session = work->session,
                               .image = &work->image,
                               .info = &work->info,
                               .settle = settle,
                               .user = work,
                               .keep = work->request.values == CBGEN_VALUES_MUTABLE};
  work->image.values = work->request.values;
  enum cb_status s = choose_packer(work, &loading.packer);
  const int fills = !work->device_packs && work->image.map.groups_count;
  if (!s && fills) s = cb_work_settle(work); /* now the host reads what the device would */
  if (!s && fills) s = cb_work_fill(work);
  if (work->device_packs) {
    loading.values = work->view.values;
    loading.value_type = work->view.value_type;
    loading.on_device = work->view.on_device;
  }
  return s ? s : cb_operator_make(op, &loading, work->diag);
}

static enum cb_status make_and_load(struct cb_work *work, cbgen_operator **op) {
  const enum cb_status s = cb_work_make(work);
  if (s) return s;
  cb_work_put(work);
  return load(work, op);
}

/* Whether the expected products can repay a search among recipes. It takes about a millisecond and 10 ns for
 * each nonzero more than planning one recipe does; and at the very best it halves the time of a product,
 * which at least streams 12 bytes for each nonzero. */
static int search_pays(const struct cb_work *work) {
  const struct cb_target *target = &work->session->device->target;
  const double nonzeros = (double)work->view.nnz, expected = (double)work->request.expected_products;
  const double search_ns = 1e6 + 10 * nonzeros;
  const double product_ns = (double)target->launch_ns + 12 * nonzeros / (double)target->read_gb_per_s;
  return !work->request.expected_products || expected * product_ns / 2 > search_ns;
}

/* The entry that is asked for; where there is none, and a search for it would not pay, that of the recipe
 * which is taken without. */
static enum cb_status find(struct cb_work *work, int *hit) {
  const enum cb_status s = cb_work_get(work, hit);
  if (s || *hit || strcmp(work->options.recipe, "auto") || search_pays(work)) return s;
  cb_log(work->context, "recipe '%s' without a search, which %lld products would not repay",
         cb_recipe_unsearched, (long long)work->request.expected_products);
  work->options.recipe = cb_recipe_unsearched;
  cb_work_key(work);
  return cb_work_get(work, hit);
}

/* An entry that the driver does not take, or that turns out to be damaged, is made anew, once. */
static enum cb_status find_or_make(struct cb_work *work, cbgen_operator **op) {
  int hit = 0;
  enum cb_status s = find(work, &hit);
  if (s) return s;
  if (!hit) return make_and_load(work, op);
  if (work->plan && work->keep) cb_work_put(work); /* its data were missing */
  s = load(work, op);
  if (s != CB_ERR_DEVICE && s != CB_ERR_FORMAT) return s;
  cb_work_forget(work);
  return make_and_load(work, op);
}

/* ---- the whole */

static void release(struct cb_work *work) {
  cb_work_release_new(work);
  cb_work_close(work);
  for (int i = 0; i < 3; i++) cb_free(work->downloaded[i]);
}

static void tell(const struct cb_work *work, const cbgen_operator *op) {
  const cbgen_info *info = &op->shared->info;
  cb_log(work->context,
         "'%s': kernel cbgen_%s in %.1f ms: hash %.1f, lookup %.1f, analysis %.1f, pack %.1f, generate %.1f, "
         "compile %.1f, tune %.1f, store %.1f, load %.1f, upload %.1f",
         work->view.name, op->shared->key, 1e3 * info->total_seconds, 1e3 * info->hash_seconds,
         1e3 * info->lookup_seconds, 1e3 * info->analysis_seconds, 1e3 * info->pack_seconds,
         1e3 * info->generate_seconds, 1e3 * info->compile_seconds, 1e3 * info->tune_seconds,
         1e3 * info->store_seconds, 1e3 * info->load_seconds, 1e3 * info->upload_seconds);
}

cbgen_status cbgen_compile(cbgen_context *context, const cbgen_csr *matrix, const cbgen_request *request,
                           cbgen_operator **op) {
  CB_STANDARD_NUMERICS_OF_ALL;
  const double start = cb_seconds();
  if (op) *op = NULL;
  if (!context) return CBGEN_ERROR_ARGUMENT;
  if (!op)
    return (cbgen_status)cb_fail(&context->diag, CB_ERR_ARGUMENT, "no place for the operator was given");
  struct cb_work *work = cb_calloc(1, sizeof *work);
  if (!work) return (cbgen_status)cb_fail_memory(&context->diag, "a compilation", sizeof *work);
  const int threads = cb_threads_begin();
  work->context = context;
  work->diag = &context->diag;
  enum cb_status s = prepare(work, matrix, request);
  work->mark = cb_seconds();
  if (!s) s = hash(work);
  if (!s) s = cb_work_tune(work);
  if (!s) cb_work_key(work);
  if (!s) s = find_or_make(work, op);
  if (!s) {
    (*op)->shared->info.total_seconds = cb_seconds() - start;
    tell(work, *op);
  }
  release(work);
  cb_free(work);
  cb_threads_end(threads);
  return (cbgen_status)s;
}
