// SPDX-License-Identifier: Apache-2.0
/* The text of a batch's kernel: see batch.h. */
#include "codegen/program/batch.h"

#include "base/integers.h"
#include "codegen/expand.h"
#include "codegen/source.h"

#include <stdio.h>

enum { THREADS = 256, MOST_LANES = 32 };

/* A power of two, not above what a row has in the mean. */
static int lanes_of(const struct cb_batch_request *request) {
  int lanes = 1;
  while (lanes < MOST_LANES && 2 * lanes * request->rows <= request->nnz) lanes *= 2;
  return lanes;
}

static enum cb_status product_text(struct cb_text *text, const struct cb_batch_request *request, int lanes,
                                   struct cb_diag *diag) {
  char rows[24], lanes_text[12], threads[12];
  struct cb_text body = {0};
  struct cb_scope scope = {0};
  snprintf(rows, sizeof rows, "%lld", (long long)request->rows);
  snprintf(lanes_text, sizeof lanes_text, "%d", lanes);
  snprintf(threads, sizeof threads, "%d", THREADS);
  cb_scope_placeholder(&scope, "vector_type", cb_type_entry_name(request->type));
  cb_scope_placeholder(&scope, "rows", rows);
  cb_scope_placeholder(&scope, "lanes", lanes_text);
  cb_scope_placeholder(&scope, "threads", threads);
  if (lanes > 1) cb_scope_section(&scope, "several");
  enum cb_status s = cb_expand(&body, "batch", &scope, diag);
  if (!s) s = cb_source_with_prelude(text, &body, diag);
  if (!s && text->failed) s = cb_fail_memory(diag, "a batch's text", text->length);
  cb_text_release(&body);
  return s;
}

enum cb_status cb_batch_text(struct cb_text *text, const struct cb_batch_request *request,
                             struct cb_program_shape *shape, struct cb_diag *diag) {
  const int lanes = lanes_of(request);
  struct cb_text product = {0};
  if (request->nnz >= INT32_MAX || request->rows * lanes >= INT32_MAX - THREADS)
    return cb_fail(diag, CB_ERR_LIMIT, "a batch's systems have fewer than 2^31 nonzeros and rows");
  enum cb_status s = product_text(&product, request, lanes, diag);
  const struct cb_program_launch launch = {"product", cb_divide_up(request->rows * lanes, (int64_t)THREADS), THREADS, 0};
  const struct cb_program_request whole = {.program = request->program,
                                           .form = {.kind = CB_PROGRAM_BATCH,
                                                    .blocks = 1,
                                                    .resident = request->resident,
                                                    .room = request->room},
                                           .source = cb_text_string(&product),
                                           .launches = &launch,
                                           .launches_count = 1,
                                           .rows = request->rows,
                                           .nnz = request->nnz,
                                           .vector = request->type,
                                           .sum = request->type};
  if (!s) s = cb_program_text(text, &whole, shape, diag);
  cb_text_release(&product);
  return s;
}
