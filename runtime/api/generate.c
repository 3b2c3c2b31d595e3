// SPDX-License-Identifier: Apache-2.0
/* Generation through the public interface: the text of a kernel and its data, without a GPU. */
#include "runtime/api/api.h"
#include "runtime/api/compile.h"

#include "analysis/plan.h"
#include "analysis/plan/blob.h"
#include "analysis/plan/symmetry.h"
#include "base/fork.h"
#include "base/memory.h"

#include <string.h>

struct cbgen_kernel {
  struct cb_plan *plan;
  struct cb_blob blob;
  struct cb_source source;
  struct cb_text json;
  int embedded;
  char name[64], symbol[49];
};

static enum cb_status take_matrix(struct cb_csr *csr, struct cb_view *view, const void *given, cb_view_taker *take,
                                  struct cb_diag *diag) {
  struct cb_expansion expansion = {0};
  struct cb_order order = {0};
  int canonical = 0;
  enum cb_status s = take(view, given, diag);
  if (!s && view->on_device)
    s = cb_fail(diag, CB_ERR_ARGUMENT,
                "generation reads the matrix from host memory: 'memory' is CBGEN_HOST");
  if (!s) s = cb_view_expand(&expansion, view, diag);
  if (!s) s = cb_view_check(view, &canonical, diag);
  if (!s) s = cb_view_canonical(csr, &order, view, canonical, view->turned, diag);
  cb_order_release(&order);
  cb_expansion_release(&expansion);
  return s;
}

static enum cb_status generate(const cbgen_context *context, const void *given, cb_view_taker *take,
                               cbgen_kernel *kernel, struct cb_diag *diag) {
  struct cb_csr csr = {0};
  struct cb_view view;
  struct cb_assignment *assignment = NULL;
  struct cb_options options = context->options;
  enum cb_status s = take_matrix(&csr, &view, given, take, diag);
  if (!s && cb_precision_is_complex(options.type))
    s = cb_csr_make_complex(&csr, diag);
  if (!s) s = cb_environment_options(&options, context, diag);
  if (s) goto out;
  memcpy(kernel->name, view.name, sizeof kernel->name);
  cb_symbol_from(kernel->name, kernel->symbol);
  const struct cb_label label = {kernel->name, kernel->symbol, cb_csr_pattern_hash(&csr)};
  s = cb_symmetry_mirror(&csr, &options, diag);
  if (!s) s = cb_plan_build(&kernel->plan, &assignment, &csr, &context->target, &options, diag);
  if (!s) s = cb_pack(&kernel->blob, kernel->plan, assignment, &csr, label.pattern, diag);
  if (!s) s = cb_source_emit(&kernel->source, kernel->plan, &label, &kernel->blob, context->embed, diag);
  if (!s) s = cb_plan_json(kernel->plan, &kernel->json, diag);
  if (!s) kernel->embedded = cb_source_embeds(&kernel->blob, context->embed);
out:
  cb_assignment_free(assignment);
  cb_csr_release(&csr);
  return s;
}

static cbgen_status generate_checked(cbgen_context *context, const void *matrix, cb_view_taker *take,
                                     cbgen_kernel **result) {
  CB_STANDARD_NUMERICS_OF_ALL;
  if (result) *result = NULL;
  if (!context) return CBGEN_ERROR_ARGUMENT;
  if (!result)
    return (cbgen_status)cb_fail(&context->diag, CB_ERR_ARGUMENT, "no place for the kernel was given");
  cbgen_kernel *kernel = cb_calloc(1, sizeof *kernel);
  if (!kernel) return (cbgen_status)cb_fail_memory(&context->diag, "kernel", sizeof *kernel);
  const enum cb_status s = generate(context, matrix, take, kernel, &context->diag);
  if (s)
    cbgen_kernel_free(kernel);
  else
    *result = kernel;
  return (cbgen_status)s;
}

static cbgen_status generate_with_threads(cbgen_context *context, const void *matrix, cb_view_taker *take,
                                          cbgen_kernel **result) {
  const int threads = cb_threads_begin(context ? context->threads : 0);
  const cbgen_status s = generate_checked(context, matrix, take, result);
  cb_threads_end(threads);
  return s;
}

cbgen_status cbgen_generate(cbgen_context *context, const cbgen_csr *matrix, cbgen_kernel **result) {
  return generate_with_threads(context, matrix, cb_view_take_csr, result);
}

cbgen_status cbgen_generate_matrix(cbgen_context *context, const cbgen_matrix *matrix, cbgen_kernel **result) {
  return generate_with_threads(context, matrix, cb_view_take, result);
}

void cbgen_kernel_free(cbgen_kernel *kernel) {
  if (!kernel) return;
  cb_plan_free(kernel->plan);
  cb_blob_release(&kernel->blob);
  cb_source_release(&kernel->source);
  cb_text_release(&kernel->json);
  cb_free(kernel);
}

/* Of no kernel: nothing. */

const char *cbgen_kernel_source(const cbgen_kernel *kernel, size_t *length) {
  if (length) *length = kernel ? (size_t)kernel->source.length : 0;
  return kernel ? kernel->source.text : "";
}

const void *cbgen_kernel_data(const cbgen_kernel *kernel, size_t *length) {
  if (length) *length = kernel ? (size_t)kernel->blob.length : 0;
  return kernel ? kernel->blob.bytes : NULL;
}

int cbgen_kernel_embedded(const cbgen_kernel *kernel) {
  return kernel ? kernel->embedded : 0;
}
const char *cbgen_kernel_symbol(const cbgen_kernel *kernel) {
  return kernel ? kernel->symbol : "";
}
const char *cbgen_kernel_plan(const cbgen_kernel *kernel) {
  return kernel ? kernel->plan->line : "";
}
const char *cbgen_kernel_plan_json(const cbgen_kernel *kernel) {
  return kernel ? cb_text_string(&kernel->json) : "";
}
int64_t cbgen_kernel_stored_bytes(const cbgen_kernel *kernel) {
  return kernel ? cb_plan_bytes(kernel->plan) : 0;
}
