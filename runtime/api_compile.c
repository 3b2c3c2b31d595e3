// SPDX-License-Identifier: Apache-2.0
/* From a matrix to an operator: see cbgen_compile at the end, which is the table of contents. */
#include "runtime/api.h"

#include "analysis/assignment.h"
#include "base/memory.h"
#include "runtime/nvrtc.h"

#include <stdio.h>
#include <string.h>

/* One compilation under way. */
struct work {
  struct cbgen_context *context;
  struct cb_diag *diag;
  struct cb_session *session;
  const struct cb_nvrtc *nvrtc;
  cbgen_request request;
  struct cb_view view;
  struct cb_options options;
  struct cb_hash raw; /* of the pattern as given */
  /* on a miss */
  struct cb_csr csr;
  struct cb_order order;
  struct cb_plan *plan;
  struct cb_assignment *assignment;
  struct cb_blob blob;
  struct cb_source source;
  struct cb_compiled compiled;
  char symbol[32];
  struct cb_image image;
  cbgen_info info;
  double mark; /* when the stage that runs began */
};

/* Seconds since the last call. */
static double lap(struct work *work) {
  const double now = cb_seconds(), passed = now - work->mark;
  work->mark = now;
  return passed;
}

static void release(struct work *work) {
  cb_image_release(&work->image);
  cb_compiled_release(&work->compiled);
  cb_source_release(&work->source);
  cb_blob_release(&work->blob);
  cb_assignment_free(work->assignment);
  cb_plan_free(work->plan);
  cb_order_release(&work->order);
  cb_csr_release(&work->csr);
}

/* ---- what is asked for */

static enum cb_status take_request(struct work *work, const cbgen_request *request) {
  cbgen_request *taken = &work->request;
  enum cb_status s = CB_OK;
  if (request)
    s = cb_take_struct(taken, sizeof *taken, sizeof *taken, request, "cbgen_request", work->diag);
  if (s) return s;
  if (taken->expected_products < 0)
    return cb_fail(work->diag, CB_ERR_ARGUMENT, "'expected_products' is %lld; it is 0 (many) or more",
                   (long long)taken->expected_products);
  if ((int)taken->values < 0 || taken->values > CBGEN_VALUES_FIXED)
    return cb_fail(work->diag, CB_ERR_ARGUMENT, "'values' is %d; it is one of cbgen_values", (int)taken->values);
  if (taken->transpose != 0 && taken->transpose != 1)
    return cb_fail(work->diag, CB_ERR_ARGUMENT, "'transpose' is %d; it is 0 or 1", taken->transpose);
  return CB_OK;
}

/* The context's options with what they leave to the matrix. */
static enum cb_status choose_options(struct work *work) {
  static const char *const types[] = {
      [CB_F64] = "f64", [CB_F32] = "f32", [CB_F16] = "f16-f32", [CB_BF16] = "bf16-f32"};
  work->options = work->context->options;
  if (!work->context->has_form) work->options.form = CB_FORM_AXPBY;
  if (work->context->tune == CB_TUNE_OFF && !strcmp(work->options.recipe, "auto")) work->options.recipe = "sell";
  if (work->context->has_type) return CB_OK;
  return cb_options_set(&work->options, "type", types[work->view.value_type], work->diag);
}

/* ---- stages of a miss */

static enum cb_status analyse(struct work *work) {
  int canonical = 0;
  enum cb_status s = cb_view_check(&work->view, &canonical, work->diag);
  if (!s)
    s = cb_view_canonical(&work->csr, &work->order, &work->view, canonical, work->request.transpose, work->diag);
  if (!s)
    s = cb_plan_build(&work->plan, &work->assignment, &work->csr, &work->session->device->target, &work->options,
                      work->diag);
  if (!s) work->image.pattern = work->order.entries ? cb_csr_pattern_hash(&work->csr) : work->raw;
  work->info.analysis_seconds += lap(work);
  return s;
}

static enum cb_status pack(struct work *work) {
  const enum cb_status s =
      cb_pack(&work->blob, work->plan, work->assignment, &work->csr, work->image.pattern, work->diag);
  work->info.pack_seconds += lap(work);
  return s;
}

static enum cb_status emit(struct work *work) {
  const struct cb_hash id = cb_blob_id(work->plan, work->image.pattern);
  snprintf(work->symbol, sizeof work->symbol, "cbgen_%016llx", (unsigned long long)id.high);
  const struct cb_label label = {work->symbol, work->symbol, work->image.pattern};
  const enum cb_status s = cb_source_emit(&work->source, work->plan, &label, NULL, CB_EMBED_NEVER, work->diag);
  work->info.generate_seconds += lap(work);
  return s;
}

static enum cb_status compile(struct work *work) {
  const struct cb_nvrtc_options options = {.arch = work->plan->target.arch};
  const enum cb_status s =
      cb_nvrtc_compile(&work->compiled, work->nvrtc, work->source.text, work->symbol, &options, work->diag);
  work->info.compile_seconds += lap(work);
  return s;
}

static enum cb_status make_image(struct work *work) {
  const struct cb_label label = {work->symbol, work->symbol, work->image.pattern};
  const struct cb_image_parts parts = {work->plan,    &label, &work->blob, &work->source, work->compiled.cubin,
                                       work->compiled.cubin_bytes};
  const enum cb_status s = cb_image_from_plan(&work->image, &parts, work->diag);
  work->image.entries = work->view.nnz;
  work->image.values = work->request.values;
  return s;
}

static enum cb_status make_new(struct work *work) {
  enum cb_status s = analyse(work);
  if (!s) s = pack(work);
  if (!s) s = emit(work);
  if (!s) s = compile(work);
  if (!s) s = make_image(work);
  return s;
}

/* ---- the whole */

static enum cb_status prepare(struct work *work, const cbgen_csr *matrix, const cbgen_request *request) {
  enum cb_status s = take_request(work, request);
  if (!s) s = cb_view_take(&work->view, matrix, work->diag);
  if (!s && work->view.on_device)
    s = cb_fail(work->diag, CB_ERR_UNSUPPORTED, "matrices in device memory are not taken yet");
  if (!s && work->request.values == CBGEN_VALUES_MUTABLE)
    s = cb_fail(work->diag, CB_ERR_UNSUPPORTED, "mutable values are not supported yet");
  if (!s) s = choose_options(work);
  if (!s) s = cb_context_session(work->context, &work->session);
  if (!s) s = cb_session_nvrtc(work->session, &work->nvrtc, work->diag);
  return s;
}

cbgen_status cbgen_compile(cbgen_context *context, const cbgen_csr *matrix, const cbgen_request *request,
                           cbgen_operator **op) {
  const double start = cb_seconds();
  if (op) *op = NULL;
  if (!context) return CBGEN_ERROR_ARGUMENT;
  struct work work = {.context = context, .diag = &context->diag, .info = {.struct_size = sizeof(cbgen_info)}};
  if (!op)
    return (cbgen_status)cb_fail(work.diag, CB_ERR_ARGUMENT, "no place for the operator was given");
  enum cb_status s = prepare(&work, matrix, request);
  work.mark = cb_seconds();
  if (!s) work.raw = cb_view_hash(&work.view);
  work.info.hash_seconds = lap(&work);
  if (!s) s = make_new(&work);
  if (!s) s = cb_operator_make(op, work.session, &work.image, &work.info, work.diag);
  if (!s) (*op)->shared->info.total_seconds = cb_seconds() - start;
  release(&work);
  return (cbgen_status)s;
}
