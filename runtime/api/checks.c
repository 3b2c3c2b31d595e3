// SPDX-License-Identifier: Apache-2.0
/* Checks of an operator while an application runs: see checks.h. */
#include "runtime/api/checks.h"

#include "base/environment.h"
#include "base/memory.h"
#include "runtime/api/compile.h"
#include "runtime/operator/checks.h"
#include "runtime/operator/comparer.h"

#include <stdlib.h>
#include <string.h>

struct cb_checks {
  const struct cb_device *device;
  struct cb_checks_asked asked;
  enum cb_level log;
  struct cb_records *records;
  struct cb_comparer *comparer;
  pthread_mutex_t lock; /* held while a product and its comparison are put on a stream */
  atomic_llong products, compared;
  atomic_flag has_told_of_captures, has_told_of_bounds;
};

/* ---- what is asked for */

static const char variable[] = "CBGEN_CHECK";

/* A whole number from 1 on, which is all of the word. */
static int read_every(int64_t *every, const char *word, size_t length) {
  char *end;
  *every = strtoll(word, &end, 10);
  return *word >= '0' && *word <= '9' && end == word + length && *every >= 1 && *every < INT64_MAX;
}

enum cb_status cb_checks_read(struct cb_checks_asked *asked, struct cb_diag *diag) {
  static const char bounds[] = "bounds";
  const char *const value = cb_environment(variable), *word = value;
  *asked = (struct cb_checks_asked){0};
  while (word && *word) {
    const size_t length = strcspn(word, ",");
    int64_t every = 0;
    if (length == sizeof bounds - 1 && !memcmp(word, bounds, length)) asked->bounds = 1;
    else if (!asked->every && read_every(&every, word, length)) asked->every = every;
    else
      return cb_fail(diag, CB_ERR_ARGUMENT,
                     "%s does not take '%s'; it takes bounds, a number of products from 1 on, or both with a comma", variable, value);
    word += length + (word[length] == ',');
  }
  return CB_OK;
}

/* ---- life */

static enum cb_status fill(struct cb_checks *checks, struct cb_diag *diag) {
  const enum cb_status s = cb_device_enter(checks->device, diag);
  if (s) return s;
  const enum cb_status created = cb_records_create(&checks->records, checks->device, diag);
  cb_device_leave(checks->device);
  return created;
}

enum cb_status cb_checks_create(struct cb_checks **out, struct cbgen_context *context, struct cb_session *session,
                                struct cb_diag *diag) {
  struct cb_checks_asked asked;
  *out = NULL;
  enum cb_status s = cb_checks_read(&asked, diag);
  if (s || (!asked.bounds && !asked.every)) return s;
  struct cb_checks *checks = cb_calloc(1, sizeof *checks);
  if (!checks) return cb_fail_memory(diag, "checks", sizeof *checks);
  checks->device = session->device;
  checks->asked = asked;
  checks->log = context->own_log;
  pthread_mutex_init(&checks->lock, NULL);
  s = fill(checks, diag);
  if (s) cb_checks_free(checks);
  else *out = checks;
  return s;
}

/* A context that has nothing but the log of CBGEN_LOG. */
static struct cbgen_context voice_of(const struct cb_checks *checks) {
  return (struct cbgen_context){.own_log = checks->log};
}

/* What nobody has asked for, and how much was compared. */
static void tell_last(struct cb_checks *checks) {
  const struct cbgen_context voice = voice_of(checks);
  struct cb_diag diag = {0};
  cb_checks_outcome(checks, &diag);
  if (checks->comparer)
    cb_log(&voice, "%s: %lld of %lld products were compared", variable, (long long)atomic_load(&checks->compared),
           (long long)atomic_load(&checks->products));
}

void cb_checks_free(struct cb_checks *checks) {
  if (!checks) return;
  if (!cb_device_enter(checks->device, NULL)) {
    if (checks->records) tell_last(checks);
    cb_comparer_free(checks->comparer);
    cb_records_free(checks->records, checks->device);
    cb_device_leave(checks->device);
  } else {
    cb_comparer_forget(checks->comparer);
  }
  pthread_mutex_destroy(&checks->lock);
  cb_free(checks);
}

uint64_t cb_checks_record(const struct cb_checks *checks) {
  return checks && checks->asked.bounds ? (uint64_t)(uintptr_t)&checks->records->bounds : 0;
}

int64_t cb_checks_bytes(struct cb_checks *checks) {
  return checks && checks->comparer ? cb_comparer_bytes(checks->comparer) : 0;
}

/* ---- the matrix to compare with */

static enum cb_status make_comparer(struct cb_work *work, const struct cb_shared *shared,
                                    const struct cb_operator *op) {
  struct cb_request *request = &work->request;
  struct cb_checks *checks = work->checks;
  const struct cb_nvrtc *nvrtc;
  const struct cb_packer *packer = NULL;
  const int packs = shared->updater || (request->view.on_device && request->view.values);
  enum cb_status s = cb_work_canonical(work);
  if (!s) s = cb_session_nvrtc(request->session, &nvrtc, work->diag);
  if (!s && packs)
    s = cb_session_packer(request->session, work->kept.cache, cb_type_of_number(shared->image.matrix_type), &packer,
                          work->diag);
  if (s) return s;
  const struct cb_comparing from = {.device = checks->device,
                                    .nvrtc = nvrtc,
                                    .packer = packer,
                                    .operator_info = cb_operator_info(op),
                                    .csr = &work->matrix.csr,
                                    .order = &work->matrix.order,
                                    .view = &request->view,
                                    .records = checks->records};
  s = cb_device_enter(checks->device, work->diag);
  if (s) return s;
  s = cb_comparer_create(&checks->comparer, &from, work->diag);
  cb_device_leave(checks->device);
  return s;
}

enum cb_status cb_checks_attach(struct cb_work *work, cbgen_operator **op) {
  struct cb_checks *checks = work->checks;
  if (!checks) return CB_OK;
  const int is_complex = cb_type_is_complex((*op)->shared->image.sum_type);
  enum cb_status s = CB_OK;
  if (checks->asked.every && is_complex)
    s = cb_fail(work->diag, CB_ERR_UNSUPPORTED, "%s: products of complex numbers are not compared", variable);
  else if (checks->asked.every)
    s = make_comparer(work, (*op)->shared, (*op)->op);
  if (s) {
    cbgen_operator_free(*op);
    *op = NULL;
    return s;
  }
  if (checks->asked.every)
    cb_log(work->request.context, "%s: one of %lld products is compared; that takes %lld bytes of the GPU", variable,
           (long long)checks->asked.every, (long long)cb_checks_bytes(checks));
  (*op)->shared->checks = checks;
  work->checks = NULL;
  return CB_OK;
}

/* ---- products */

enum cb_status cb_checks_outcome(struct cb_checks *checks, struct cb_diag *diag) {
  if (!checks || !cb_device_is_own(checks->device)) return CB_OK; /* another process's memory may not be here */
  const struct cbgen_context voice = voice_of(checks);
  enum cb_status s = cb_bounds_outcome(checks->records, diag);
  if (s) {
    if (!atomic_flag_test_and_set(&checks->has_told_of_bounds)) cb_warn(&voice, "%s", diag->message);
    return s;
  }
  s = cb_wrong_outcome(checks->records, diag);
  if (s) cb_warn(&voice, "%s", diag->message);
  return s;
}

/* What is captured would be compared by every run of the graph, in whatever order these have. */
static int is_captured(struct cb_checks *checks, struct CUstream_st *stream) {
  unsigned capturing = 0;
  const struct cbgen_context voice = voice_of(checks);
  if (!checks->device->driver->call.stream_capturing(stream, &capturing) && capturing == CB_CU_CAPTURE_NONE) return 0;
  if (!atomic_flag_test_and_set(&checks->has_told_of_captures))
    cb_warn(&voice, "%s: products that are captured in a graph are not compared", variable);
  return 1;
}

static enum cb_status multiply(const struct cb_operator *op, const cbgen_product *product, struct cb_diag *diag) {
  const struct cb_scalars by = {product->alpha, product->beta, product->alpha_imag, product->beta_imag};
  return cb_operator_multiply_by(op, &by, (cb_device_ptr)(uintptr_t)product->x, (cb_device_ptr)(uintptr_t)product->y,
                                 product->stream, diag);
}

static enum cb_status compare(struct cb_checks *checks, const struct cb_operator *op, const cbgen_product *product,
                              int64_t number, struct cb_diag *diag) {
  const struct cb_compared compared = {.x = (cb_device_ptr)(uintptr_t)product->x,
                                       .y = (cb_device_ptr)(uintptr_t)product->y,
                                       .alpha = product->alpha,
                                       .beta = product->beta,
                                       .product = number,
                                       .stream = product->stream};
  pthread_mutex_lock(&checks->lock);
  enum cb_status s = cb_comparer_begin(checks->comparer, &compared, diag);
  if (!s) s = multiply(op, product, diag);
  if (!s) s = cb_comparer_end(checks->comparer, &compared, diag);
  pthread_mutex_unlock(&checks->lock);
  if (!s) atomic_fetch_add(&checks->compared, 1);
  return s;
}

enum cb_status cb_checks_multiply(struct cb_checks *checks, const struct cb_operator *op, const cbgen_product *product,
                                  struct cb_diag *diag) {
  if (!checks || !checks->comparer) return multiply(op, product, diag);
  const int64_t number = atomic_fetch_add(&checks->products, 1) + 1;
  if (number % checks->asked.every || is_captured(checks, product->stream)) return multiply(op, product, diag);
  return compare(checks, op, product, number, diag);
}

enum cb_status cb_checks_renew(struct cb_checks *checks, const cbgen_update *update, struct cb_diag *diag) {
  if (!checks || !checks->comparer) return CB_OK;
  return cb_comparer_values(checks->comparer, (enum cb_type)update->value_type, update->values,
                            update->memory == CBGEN_DEVICE, update->stream, diag);
}
