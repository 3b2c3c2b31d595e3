// SPDX-License-Identifier: Apache-2.0
/* cbgen trace: what a row of y was made of, operation by operation, with the line of the text and the place of every
 * number. The product is that of the self-test: its x, α = 1, β = 0. */
#include "tool/job.h"

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/real.h"
#include "runtime/verify/trace.h"

#include <math.h>
#include <string.h>

struct tracing {
  const struct cb_call *call;
  struct cb_job job;
  struct cb_verify_case one;
  struct cb_trace_product product;
  void *x, *y;
  struct cb_trace *trace;
  struct cb_text *text; /* the report, or */
  struct cb_json rows;
  int failed;
  int64_t traced, wrong; /* rows */
};

/* ---- what is traced */

static int ends_with(const char *word, const char *end) {
  const size_t length = strlen(word), tail = strlen(end);
  return length >= tail && !strcmp(word + length - tail, end);
}

/* The name of an entry of the cache: 32 hexadecimal digits. */
static int is_key(const char *word) {
  return strlen(word) == 32 && strspn(word, "0123456789abcdef") == 32;
}

static enum cb_status check_call(const struct cb_call *call, struct cb_diag *diag) {
  if (ends_with(call->file, ".cu"))
    return cb_fail(diag, CB_ERR_ARGUMENT,
                   "'%s' does not say which nonzero lies in which slot: a trace needs the matrix too; use 'cbgen trace "
                   "MATRIX --kernel=%s' with the options that the kernel was made with",
                   call->file, call->file);
  if (is_key(call->file))
    return cb_fail(diag, CB_ERR_ARGUMENT,
                   "entry '%s' of the cache has no matrix, which a trace needs: write its text by 'cbgen cache show %s "
                   "--source', then use 'cbgen trace MATRIX --kernel=…'",
                   call->file, call->file);
  if (cb_call_has(call, "row") == cb_call_has(call, "block"))
    return cb_fail(diag, CB_ERR_ARGUMENT, "'trace' takes a row or a thread block: '--row=R' or '--block=B'");
  return CB_OK;
}

/* The line of a text's head that begins so; its length in *length. */
static const char *head_line(const char *text, const char *begins, size_t *length) {
  const char *const at = strstr(text, begins);
  *length = at ? strcspn(at, "\n") : 0;
  return at;
}

/* The text of --kernel instead of the one that the plan gives, which must be of the same plan and pattern. */
static enum cb_status take_kernel(struct tracing *tracing, struct cb_diag *diag) {
  const char *const path = tracing->call->kernel;
  struct cb_source *source = &tracing->job.source;
  static const char *const same[] = {"//   plan ", "constexpr uint64_t kId[2]"};
  struct cb_mapping mapping;
  const enum cb_status s = cb_file_map(&mapping, path, diag);
  if (s) return s;
  char *text = cb_alloc(mapping.length + 1, 1);
  if (text) memcpy(text, mapping.bytes, mapping.length);
  if (text) text[mapping.length] = 0;
  cb_file_unmap(&mapping);
  if (!text) return cb_fail_memory(diag, path, 0);
  for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
    size_t length, own;
    const char *const line = head_line(text, same[i], &length), *const wanted = head_line(source->text, same[i], &own);
    if (line && wanted && length == own && !memcmp(line, wanted, own)) continue;
    cb_free(text);
    return cb_fail(diag, CB_ERR_ARGUMENT, "'%s' is no kernel of this matrix with these options: its %s is another",
                   path, i ? "id" : "plan");
  }
  const char *const body = cb_source_behind_prelude(text);
  cb_source_release(source);
  *source = (struct cb_source){text, (int64_t)strlen(text), body ? body - text : 0};
  return body ? CB_OK : cb_fail(diag, CB_ERR_FORMAT, "'%s' has no device prelude, so it is no kernel of cbgen's", path);
}

static enum cb_status make_vectors(struct tracing *tracing, struct cb_diag *diag) {
  const struct cb_csr *csr = &tracing->job.csr;
  const struct cb_plan *plan = tracing->job.plan;
  const enum cb_type type = plan->vector_type;
  tracing->x = cb_calloc((size_t)csr->cols + 1, cb_type_size(type));
  tracing->y = cb_calloc((size_t)csr->rows + 1, cb_type_size(type));
  if (!tracing->x || !tracing->y)
    return cb_fail_memory(diag, "vectors", (unsigned long long)(csr->cols + csr->rows) * 8);
  for (int64_t i = 0; i < csr->cols; i++) {
    const double x = cb_selftest_x((uint64_t)i);
    cb_real_set(tracing->x, type, i, plan->semiring == CB_OR_AND && x < 0 ? 0 : x);
  }
  const double nothing = plan->semiring == CB_MIN_PLUS ? INFINITY : plan->semiring == CB_MAX_TIMES ? -INFINITY : 0;
  for (int64_t i = 0; i < csr->rows; i++) cb_real_set(tracing->y, type, i, nothing);
  tracing->product = (struct cb_trace_product){.x = tracing->x,
                                               .y = tracing->y,
                                               .alpha = 1,
                                               .beta = plan->form == CB_FORM_ADD,
                                               .blob = &tracing->job.blob,
                                               .seed = (uint64_t)tracing->call->seed,
                                               .is_of_row = cb_call_has(tracing->call, "row"),
                                               .row = tracing->call->row};
  return CB_OK;
}

static enum cb_status prepare(struct tracing *tracing, struct cb_diag *diag) {
  const struct cb_call *call = tracing->call;
  struct cb_job *job = &tracing->job;
  enum cb_status s = cb_job_read(job, call, diag);
  if (!s && cb_call_has(call, "row") && call->row >= job->csr.rows)
    return cb_fail(diag, CB_ERR_ARGUMENT, "there is no row %lld: the matrix has %lld, from 0", (long long)call->row,
                   (long long)job->csr.rows);
  if (!s) s = cb_job_plan(job, call, call->arches_count ? call->arches[0] : NULL, diag);
  if (!s) s = cb_job_pack(job, 0, diag);
  if (!s) s = cb_job_emit(job, call, 0, diag);
  if (!s && call->kernel) s = take_kernel(tracing, diag);
  if (!s) s = make_vectors(tracing, diag);
  tracing->one = (struct cb_verify_case){&job->csr, job->plan, job->assignment, &job->source, &job->blob, job->symbol};
  return s;
}

/* ---- the report */

static enum cb_status add_row(struct tracing *tracing, int64_t number, struct cb_diag *diag) {
  struct cb_trace_row row;
  const enum cb_status s = cb_trace_row(&row, tracing->trace, number, diag);
  if (s) return s;
  tracing->wrong += !row.is_right || row.findings_count;
  if (tracing->call->json) {
    cb_json_append(tracing->rows, cb_trace_row_json(tracing->trace, &row, &tracing->failed));
  } else {
    if (tracing->traced) cb_text_add_string(tracing->text, "\n");
    cb_trace_row_text(tracing->text, tracing->trace, &row);
  }
  tracing->traced++;
  cb_trace_row_release(&row);
  return CB_OK;
}

static enum cb_status check_block(const struct tracing *tracing, struct cb_diag *diag) {
  const struct cb_plan *plan = tracing->job.plan;
  int64_t blocks = 0;
  for (int l = 0; l < plan->launches_count; l++)
    if (plan->launches[l].blocks > blocks) blocks = plan->launches[l].blocks;
  if (tracing->call->block < blocks) return CB_OK;
  return cb_fail(diag, CB_ERR_ARGUMENT, "there is no thread block %lld: the kernel has %lld, from 0",
                 (long long)tracing->call->block, (long long)blocks);
}

static enum cb_status add_block(struct tracing *tracing, struct cb_diag *diag) {
  enum cb_status s = CB_OK;
  for (int64_t row = 0; row < tracing->job.csr.rows && !s; row++) {
    int64_t launch, block;
    cb_trace_committer(tracing->trace, row, &launch, &block);
    if (launch && block == tracing->call->block) s = add_row(tracing, row, diag);
  }
  if (!s && !tracing->traced && !tracing->call->json)
    cb_text_add(tracing->text, "thread block %lld writes no row with nonzeros\n", (long long)tracing->call->block);
  return s;
}

static enum cb_status report(struct tracing *tracing, struct cb_diag *diag) {
  const struct cb_csr *csr = &tracing->job.csr;
  const struct cb_json document = cb_json_object(&tracing->failed);
  tracing->rows = cb_json_array(&tracing->failed);
  if (!tracing->call->json)
    cb_text_add(tracing->text, "matrix   %s: %lld x %lld, %lld nonzeros\nplan     %s\n\n", tracing->job.name,
                (long long)csr->rows, (long long)csr->cols, (long long)csr->nnz, tracing->job.plan->line);
  enum cb_status s =
      cb_call_has(tracing->call, "row") ? add_row(tracing, tracing->call->row, diag) : add_block(tracing, diag);
  cb_json_set_text(document, "file", tracing->call->file);
  cb_json_set_text(document, "plan", tracing->job.plan->line);
  cb_json_set(document, "rows", tracing->rows.json);
  if (tracing->call->json && !s)
    s = cb_json_write(tracing->text, document, JSON_INDENT(2) | JSON_REAL_PRECISION(17), "a trace as JSON", diag);
  else
    json_decref(document.json);
  if (tracing->call->json) cb_text_add_string(tracing->text, "\n");
  return s;
}

static enum cb_status run_trace(const struct cb_call *call, struct cb_diag *diag) {
  struct cb_text text = {0};
  struct tracing tracing = {.call = call, .text = &text};
  enum cb_status s = prepare(&tracing, diag);
  if (!s && !cb_call_has(call, "row")) s = check_block(&tracing, diag);
  if (!s) cb_progress_stage("tracing the kernel of '%s'", tracing.job.name);
  if (!s) s = cb_trace_run(&tracing.trace, NULL, &tracing.one, &tracing.product, diag);
  if (!s) s = report(&tracing, diag);
  if (!s && !(call->quiet && !call->json)) s = cb_print(&text, diag);
  if (!s && tracing.wrong)
    s = cb_fail(diag, CB_ERR_WRONG, "%lld of %lld traced rows are wrong", (long long)tracing.wrong,
                (long long)tracing.traced);
  cb_trace_free(tracing.trace);
  cb_free(tracing.x);
  cb_free(tracing.y);
  cb_text_release(&text);
  cb_job_release(&tracing.job);
  return s;
}

const struct cb_verb cb_verb_trace = {
    .name = "trace",
    .arguments = "FILE --row=R|--block=B [OPTION…]",
    .summary = "what a row of y is made of, operation by operation",
    .details = "Executes the kernel of a matrix on this machine with numbers that know where they come from, and\n"
               "prints for a row (or each that a thread block writes): where every nonzero lies (region, slot, byte\n"
               "of the data), which lane multiplied it, in which order, on which line of kernel.cu; then each load\n"
               "and operation with its operands, the sum, and the exact sum where that is another. What is wrong is\n"
               "named first: a value of another nonzero, one that is missing or there twice, the first that brings\n"
               "in a NaN. With --kernel=kernel.cu that text is executed, with your rights; x is the self-test's.\n",
    .example = "cbgen trace matrix.mtx --row=117",
    .takes = CB_TAKES_ARCH | CB_TAKES_JSON | CB_TAKES_SEED | CB_TAKES_TRACE,
    .check = check_call,
    .run = run_trace,
};
