// SPDX-License-Identifier: Apache-2.0
/* The public C interface (include/cbgen.h): checks what the caller hands over, runs the pipeline, keeps the
 * result. */
#include "cbgen.h"

#include "analysis/blob.h"
#include "analysis/plan.h"
#include "analysis/recipe.h"
#include "base/memory.h"
#include "codegen/source.h"

#include <stdio.h>
#include <string.h>

#define SAME(public_name, own) _Static_assert((int)(public_name) == (int)(own), "statuses are numbered alike")
SAME(CBGEN_OK, CB_OK);
SAME(CBGEN_ERROR_ARGUMENT, CB_ERR_ARGUMENT);
SAME(CBGEN_ERROR_FORMAT, CB_ERR_FORMAT);
SAME(CBGEN_ERROR_UNSUPPORTED, CB_ERR_UNSUPPORTED);
SAME(CBGEN_ERROR_LIMIT, CB_ERR_LIMIT);
SAME(CBGEN_ERROR_MEMORY, CB_ERR_MEMORY);
SAME(CBGEN_ERROR_IO, CB_ERR_IO);
SAME(CBGEN_ERROR_MISSING, CB_ERR_MISSING);
SAME(CBGEN_ERROR_COMPILE, CB_ERR_COMPILE);
SAME(CBGEN_ERROR_DEVICE, CB_ERR_DEVICE);
SAME(CBGEN_ERROR_WRONG, CB_ERR_WRONG);
SAME(CBGEN_ERROR_INTERNAL, CB_ERR_INTERNAL);
_Static_assert(CB_STATUS_COUNT == CBGEN_ERROR_INTERNAL + 1, "every status is public");

struct cbgen_context {
  struct cb_options options;
  struct cb_target target;
  enum cb_embed embed;
  struct cb_diag diag;
};

struct cbgen_kernel {
  struct cb_plan *plan;
  struct cb_blob blob;
  struct cb_source source;
  struct cb_text json;
  int embedded;
  char name[64], symbol[49];
};

const char *cbgen_version(void) {
  return CBGEN_VERSION;
}

const char *cbgen_status_name(cbgen_status status) {
  return cb_status_name((enum cb_status)status);
}

/* ---- context */

cbgen_status cbgen_context_create(cbgen_context **result) {
  if (!result) return CBGEN_ERROR_ARGUMENT;
  cbgen_context *context = *result = cb_calloc(1, sizeof *context);
  if (!context) return CBGEN_ERROR_MEMORY;
  cb_options_default(&context->options);
  const enum cb_status s = cb_target_find(&context->target, "sm_90", &context->diag);
  if (!s) return CBGEN_OK;
  cbgen_context_destroy(context);
  *result = NULL;
  return (cbgen_status)s;
}

void cbgen_context_destroy(cbgen_context *context) {
  cb_free(context);
}

const char *cbgen_message(const cbgen_context *context) {
  return context ? context->diag.message : "";
}

static enum cb_status set_embed(cbgen_context *context, const char *value) {
  static const char *const words[] = {
      [CB_EMBED_AUTO] = "auto", [CB_EMBED_ALWAYS] = "always", [CB_EMBED_NEVER] = "never"};
  for (int i = 0; i < 3; i++) {
    if (strcmp(words[i], value)) continue;
    context->embed = (enum cb_embed)i;
    return CB_OK;
  }
  return cb_fail(&context->diag, CB_ERR_ARGUMENT,
                 "'embed' does not take '%s'; it takes auto, always or never", value);
}

static enum cb_status set_arch(cbgen_context *context, const char *value) {
  struct cb_target target;
  const enum cb_status s = cb_target_find(&target, value, &context->diag);
  if (!s) context->target = target;
  return s;
}

cbgen_status cbgen_set(cbgen_context *context, const char *name, const char *value) {
  if (!context) return CBGEN_ERROR_ARGUMENT;
  if (!name || !value)
    return (cbgen_status)cb_fail(&context->diag, CB_ERR_ARGUMENT, "an option needs a name and a value");
  if (!strcmp(name, "arch")) return (cbgen_status)set_arch(context, value);
  if (!strcmp(name, "embed")) return (cbgen_status)set_embed(context, value);
  struct cb_options options = context->options;
  const enum cb_status s = cb_options_set(&options, name, value, &context->diag);
  if (s) return (cbgen_status)s;
  if (!strcmp(name, "recipe")) {
    const struct cb_recipe *recipe;
    const enum cb_status found = cb_recipe_find(&recipe, value, &context->diag);
    if (found) return (cbgen_status)found;
    options.recipe = recipe->name; /* not the caller's string: that may go away */
  }
  context->options = options;
  return CBGEN_OK;
}

/* ---- the caller's matrix */

static int64_t view_row(const cbgen_csr *view, int64_t row) {
  return view->row_ptr_bits == 64 ? ((const int64_t *)view->row_ptr)[row]
                                  : ((const int32_t *)view->row_ptr)[row];
}

static enum cb_status check_shape(const cbgen_csr *view, struct cb_diag *diag) {
  if (!view || view->struct_size < sizeof *view)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'struct_size' of the matrix is not set to sizeof(cbgen_csr)");
  if (view->row_ptr_bits != 32 && view->row_ptr_bits != 64)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'row_ptr_bits' is %d; it is 32 or 64", view->row_ptr_bits);
  if (view->rows < 0 || view->cols < 0 || view->nnz < 0)
    return cb_fail(diag, CB_ERR_ARGUMENT, "a matrix of %lld x %lld with %lld nonzeros: none may be negative",
                   (long long)view->rows, (long long)view->cols, (long long)view->nnz);
  if (view->rows > CB_MAX_DIMENSION || view->cols > CB_MAX_DIMENSION)
    return cb_fail(diag, CB_ERR_LIMIT, "a matrix of %lld x %lld: at most %d rows and columns",
                   (long long)view->rows, (long long)view->cols, (int)CB_MAX_DIMENSION);
  if (!view->row_ptr || (view->nnz && (!view->col_idx || !view->values)))
    return cb_fail(diag, CB_ERR_ARGUMENT, "'row_ptr', 'col_idx' or 'values' is NULL");
  return CB_OK;
}

/* Row pointers and columns; *canonical tells whether every row is strictly ascending. */
static enum cb_status check_entries(const cbgen_csr *view, int *canonical, struct cb_diag *diag) {
  if (view_row(view, 0) != 0 || view_row(view, view->rows) != view->nnz)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'row_ptr' goes from %lld to %lld; it goes from 0 to nnz = %lld",
                   (long long)view_row(view, 0), (long long)view_row(view, view->rows), (long long)view->nnz);
  *canonical = 1;
  for (int64_t row = 0; row < view->rows; row++) {
    const int64_t begin = view_row(view, row), end = view_row(view, row + 1);
    if (end < begin || end > view->nnz)
      return cb_fail(diag, CB_ERR_ARGUMENT,
                     "'row_ptr[%lld]' is %lld after %lld; it never decreases, up to nnz", (long long)row + 1,
                     (long long)end, (long long)begin);
    for (int64_t k = begin; k < end; k++) {
      const int32_t col = ((const int32_t *)view->col_idx)[k];
      if (col < 0 || col >= view->cols)
        return cb_fail(diag, CB_ERR_ARGUMENT, "'col_idx[%lld]' is %d in row %lld; columns go from 0 to %lld",
                       (long long)k, (int)col, (long long)row, (long long)view->cols - 1);
      if (k > begin && col <= ((const int32_t *)view->col_idx)[k - 1]) *canonical = 0;
    }
  }
  return CB_OK;
}

static enum cb_status copy_canonical(struct cb_csr *csr, const cbgen_csr *view, struct cb_diag *diag) {
  const enum cb_status s = cb_csr_alloc(csr, view->rows, view->cols, view->nnz, diag);
  if (s) return s;
  for (int64_t row = 0; row <= view->rows; row++) {
    if (csr->wide)
      ((int64_t *)csr->row_ptr)[row] = view_row(view, row);
    else
      ((int32_t *)csr->row_ptr)[row] = (int32_t)view_row(view, row);
  }
  if (view->nnz) {
    memcpy(csr->col_idx, view->col_idx, (size_t)view->nnz * sizeof *csr->col_idx);
    memcpy(csr->values, view->values, (size_t)view->nnz * sizeof *csr->values);
  }
  return CB_OK;
}

static enum cb_status copy_sorted(struct cb_csr *csr, const cbgen_csr *view, struct cb_diag *diag) {
  const size_t count = (size_t)view->nnz;
  struct cb_coo coo = {view->rows, view->cols, view->nnz, NULL, NULL, NULL};
  coo.row_idx = cb_alloc(count, sizeof *coo.row_idx);
  coo.col_idx = cb_alloc(count, sizeof *coo.col_idx);
  coo.values = cb_alloc(count, sizeof *coo.values);
  if (!coo.row_idx || !coo.col_idx || !coo.values) {
    cb_coo_release(&coo);
    return cb_fail_memory(diag, "coordinates of the matrix", count * 16);
  }
  for (int64_t row = 0; row < view->rows; row++)
    for (int64_t k = view_row(view, row); k < view_row(view, row + 1); k++) coo.row_idx[k] = (int32_t)row;
  memcpy(coo.col_idx, view->col_idx, count * sizeof *coo.col_idx);
  memcpy(coo.values, view->values, count * sizeof *coo.values);
  return cb_csr_from_coo(csr, &coo, diag);
}

static enum cb_status take_matrix(struct cb_csr *csr, const cbgen_csr *view, struct cb_diag *diag) {
  int canonical = 0;
  enum cb_status s = check_shape(view, diag);
  if (!s) s = check_entries(view, &canonical, diag);
  if (!s) s = canonical ? copy_canonical(csr, view, diag) : copy_sorted(csr, view, diag);
  return s;
}

/* ---- generation */

/* Names go into a comment and an identifier: anything else than printable ASCII becomes '_'. */
static void take_name(char *name, size_t size, const char *given) {
  snprintf(name, size, "%.60s", given && *given ? given : "matrix");
  for (char *c = name; *c; c++)
    if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\') *c = '_';
}

static enum cb_status generate(const cbgen_context *context, const cbgen_csr *view, cbgen_kernel *kernel,
                               struct cb_diag *diag) {
  struct cb_csr csr = {0};
  struct cb_assignment *assignment = NULL;
  enum cb_status s = take_matrix(&csr, view, diag);
  if (s) goto out;
  take_name(kernel->name, sizeof kernel->name, view->name);
  cb_symbol_from(kernel->name, kernel->symbol);
  const struct cb_label label = {kernel->name, kernel->symbol, cb_csr_pattern_hash(&csr)};
  s = cb_plan_build(&kernel->plan, &assignment, &csr, &context->target, &context->options, diag);
  if (!s) s = cb_pack(&kernel->blob, kernel->plan, assignment, &csr, label.pattern, diag);
  if (!s) s = cb_source_emit(&kernel->source, kernel->plan, &label, &kernel->blob, context->embed, diag);
  if (!s) s = cb_plan_json(kernel->plan, &kernel->json, diag);
  if (!s) kernel->embedded = cb_source_embeds(&kernel->blob, context->embed);
out:
  cb_assignment_free(assignment);
  cb_csr_release(&csr);
  return s;
}

cbgen_status cbgen_generate(cbgen_context *context, const cbgen_csr *matrix, cbgen_kernel **result) {
  if (result) *result = NULL;
  if (!context) return CBGEN_ERROR_ARGUMENT;
  if (!result)
    return (cbgen_status)cb_fail(&context->diag, CB_ERR_ARGUMENT, "no place for the kernel was given");
  cbgen_kernel *kernel = cb_calloc(1, sizeof *kernel);
  if (!kernel) return (cbgen_status)cb_fail_memory(&context->diag, "kernel", sizeof *kernel);
  const enum cb_status s = generate(context, matrix, kernel, &context->diag);
  if (s)
    cbgen_kernel_free(kernel);
  else
    *result = kernel;
  return (cbgen_status)s;
}

void cbgen_kernel_free(cbgen_kernel *kernel) {
  if (!kernel) return;
  cb_plan_free(kernel->plan);
  cb_blob_release(&kernel->blob);
  cb_source_release(&kernel->source);
  cb_text_release(&kernel->json);
  cb_free(kernel);
}

const char *cbgen_kernel_source(const cbgen_kernel *kernel, size_t *length) {
  if (length) *length = (size_t)kernel->source.length;
  return kernel->source.text;
}

const void *cbgen_kernel_data(const cbgen_kernel *kernel, size_t *length) {
  if (length) *length = (size_t)kernel->blob.length;
  return kernel->blob.bytes;
}

int cbgen_kernel_embedded(const cbgen_kernel *kernel) {
  return kernel->embedded;
}
const char *cbgen_kernel_symbol(const cbgen_kernel *kernel) {
  return kernel->symbol;
}
const char *cbgen_kernel_plan(const cbgen_kernel *kernel) {
  return kernel->plan->line;
}
const char *cbgen_kernel_plan_json(const cbgen_kernel *kernel) {
  return cb_text_string(&kernel->json);
}
int64_t cbgen_kernel_stored_bytes(const cbgen_kernel *kernel) {
  return cb_plan_bytes(kernel->plan);
}
