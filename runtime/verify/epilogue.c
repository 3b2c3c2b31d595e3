// SPDX-License-Identifier: Apache-2.0
/* Epilogues on the host: see epilogue.h. All that an epilogue's names stand for lies in one block of memory, which the
 * job has in place of y: seeded numbers before, and what the kernel has written afterwards. */
#include "runtime/verify/epilogue.h"

#include "base/integers.h"
#include "base/memory.h"
#include "base/real.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ALIGN = 16, WARP = 32, THREADS = 256 };

struct bench {
  const struct cb_plan *plan;
  const struct cb_statements *statements;
  int64_t offsets[CB_MOST_NAMES]; /* in the block; of names that are given */
  int64_t bytes;
  double scalars[CB_MOST_NAMES];
  char *before, *after; /* the block */
  char *x, *y;          /* y: of the plain product */
  double *terms;        /* of all rows, result by result */
};

static enum cb_type type_of(const struct bench *bench, int name) {
  const struct cb_name *one = &bench->statements->names[name];
  if (one->type != CB_TYPE_COUNT) return one->type;
  return cb_name_is_vector(one) ? bench->plan->vector_type : bench->plan->sum_type;
}

static double fraction(uint64_t *state) { /* in [-1, 1) */
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (double)(*state >> 11) * 0x1p-52 - 1;
}

/* ---- preparing */

static void place(struct bench *bench) {
  for (int i = 0; i < bench->statements->names_count; i++) {
    const struct cb_name *name = &bench->statements->names[i];
    if (!cb_name_is_given(name) || name->kind == CB_NAME_SCALAR) continue;
    const int64_t count = cb_name_is_vector(name) ? bench->plan->rows : 1;
    bench->offsets[i] = bench->bytes;
    bench->bytes += cb_divide_up(count * (int64_t)cb_type_size(type_of(bench, i)), (int64_t)ALIGN) * ALIGN;
  }
}

static enum cb_status prepare(struct bench *bench, uint64_t seed, struct cb_diag *diag) {
  const struct cb_plan *plan = bench->plan;
  const size_t size = cb_type_size(plan->vector_type);
  place(bench);
  bench->before = cb_calloc((size_t)bench->bytes + 1, 1);
  bench->after = cb_calloc((size_t)bench->bytes + 1, 1);
  bench->x = cb_calloc((size_t)plan->cols + 1, size);
  bench->y = cb_calloc((size_t)plan->rows + 1, size);
  bench->terms = cb_calloc((size_t)plan->rows + 1, sizeof *bench->terms * CB_MOST_RESULTS);
  if (!bench->before || !bench->after || !bench->x || !bench->y || !bench->terms)
    return cb_fail_memory(diag, "an epilogue's vectors", (uint64_t)bench->bytes);
  for (int64_t i = 0; i < plan->cols; i++) cb_real_set(bench->x, plan->vector_type, i, fraction(&seed));
  for (int i = 0; i < bench->statements->names_count; i++) {
    const struct cb_name *name = &bench->statements->names[i];
    if (!cb_name_is_given(name)) continue;
    bench->scalars[i] = cb_real_round(fraction(&seed), bench->plan->sum_type);
    const int64_t count = name->kind == CB_NAME_SCALAR ? 0 : cb_name_is_vector(name) ? plan->rows : 1;
    for (int64_t row = 0; row < count; row++)
      cb_real_set(bench->before + bench->offsets[i], type_of(bench, i), row, fraction(&seed));
  }
  return CB_OK;
}

static void release(struct bench *bench) {
  cb_free(bench->before);
  cb_free(bench->after);
  cb_free(bench->x);
  cb_free(bench->y);
  cb_free(bench->terms);
}

/* The arguments of the text's multiply behind y, as C++; `at` is the block. */
static void add_arguments(struct cb_text *text, const struct bench *bench) {
  const struct cb_statements *statements = bench->statements;
  int pointers = 0;
  for (int i = 0; i < statements->names_count; i++) {
    const struct cb_name *name = &statements->names[i];
    if (!cb_name_is_given(name) || name->kind == CB_NAME_SCALAR) continue;
    cb_text_add(text, "%s(%s *)(at + %lld)", pointers++ ? ", " : "Attached{", cb_type_entry_name(type_of(bench, i)),
                (long long)bench->offsets[i]);
  }
  if (pointers) cb_text_add_string(text, "}, ");
  for (int i = 0; i < statements->names_count; i++) {
    char number[CB_REAL_TEXT];
    if (statements->names[i].kind != CB_NAME_SCALAR) continue;
    cb_real_text(number, bench->scalars[i], bench->plan->sum_type);
    cb_text_add(text, "sum_t(%s%s), ", number, bench->plan->sum_type == CB_F32 ? "f" : "");
  }
}

/* ---- running */

static struct cb_host_kernel kernel_of(const struct cb_verify_case *one, const char *arguments) {
  return (struct cb_host_kernel){.text = one->source->text + one->source->body,
                                 .symbol = one->symbol,
                                 .vector_type = one->plan->vector_type,
                                 .form = one->plan->form,
                                 .arguments = arguments};
}

static enum cb_status run(struct bench *bench, struct cb_host *host, const struct cb_verify_case *plain,
                          const struct cb_verify_case *with, const struct cb_verify_options *options,
                          struct cb_host_job jobs[2], struct cb_diag *diag) {
  struct cb_host_program *program = NULL;
  struct cb_text arguments = {0};
  const int64_t size = (int64_t)cb_type_size(bench->plan->vector_type);
  add_arguments(&arguments, bench);
  const struct cb_host_kernel kernels[2] = {kernel_of(plain, NULL), kernel_of(with, cb_text_string(&arguments))};
  for (int i = 0; i < 2; i++)
    jobs[i] = (struct cb_host_job){.kernel = i,
                                   .data = i ? with->blob->bytes : plain->blob->bytes,
                                   .data_bytes = i ? with->blob->length : plain->blob->length,
                                   .x = bench->x,
                                   .x_bytes = bench->plan->cols * size,
                                   .y = i ? bench->before : bench->y,
                                   .y_bytes = i ? bench->bytes : bench->plan->rows * size,
                                   .alpha = 1,
                                   .seed = options->seed * 1000,
                                   .products = i ? 3 : 1,
                                   .repeatable = 1,
                                   .result = i ? bench->after : bench->y};
  enum cb_status s = arguments.failed ? cb_fail_memory(diag, "an epilogue", 0) : CB_OK;
  if (!s) s = cb_host_build(&program, host, kernels, 2, diag);
  if (!s) s = cb_host_run(program, jobs, 2, diag);
  cb_host_program_free(program);
  cb_text_release(&arguments);
  return s;
}

/* ---- results, in the order of templates/statements.cu.in */

static double join(double a, double b, const struct cb_statement *statement, enum cb_type type) {
  if (statement->reduction == CB_REDUCE_MAX) return a != a || a > b ? a : b;
  return cb_real_round(a + b, type);
}

static double join_block(const double threads[THREADS], const struct cb_statement *statement, enum cb_type type) {
  double all = 0;
  for (int warp = 0; warp < THREADS / WARP; warp++) {
    double lanes[WARP];
    memcpy(lanes, threads + WARP * warp, sizeof lanes);
    for (int step = WARP / 2; step > 0; step /= 2)
      for (int lane = 0; lane < step; lane++) lanes[lane] = join(lanes[lane], lanes[lane + step], statement, type);
    all = warp ? join(all, lanes[0], statement, type) : lanes[0];
  }
  return all;
}

/* `count` terms, thread t taking t, t + 256, … */
static double join_terms(const double *terms, int64_t count, const struct cb_statement *statement, enum cb_type type) {
  double threads[THREADS];
  for (int t = 0; t < THREADS; t++) {
    threads[t] = statement->reduction == CB_REDUCE_MAX ? -INFINITY : 0;
    for (int64_t i = t; i < count; i += THREADS) threads[t] = join(threads[t], terms[i], statement, type);
  }
  return join_block(threads, statement, type);
}

/* Thread blocks join CB_REDUCE_ROWS terms each; what they found takes the terms' place. */
static double join_all(double *terms, int64_t rows, const struct cb_statement *statement, enum cb_type type) {
  const int64_t blocks = cb_divide_up(rows, (int64_t)CB_REDUCE_ROWS);
  for (int64_t b = 0; b < blocks; b++) {
    const int64_t first = b * CB_REDUCE_ROWS;
    terms[b] = join_terms(terms + first, cb_smaller(rows - first, CB_REDUCE_ROWS), statement, type);
  }
  return join_terms(terms, blocks, statement, type);
}

/* ---- judging */

static int same(double a, double b) { return a == b || (a != a && b != b); }

static int differs(struct cb_epilogue_report *report, const struct cb_name *name, int64_t row, double got,
                   double expected) {
  if (same(got, expected)) return 0;
  if (row < 0)
    snprintf(report->message, sizeof report->message, "epilogue: result '%s' is %.17g instead of %.17g", name->name, got,
             expected);
  else
    snprintf(report->message, sizeof report->message, "epilogue: '%s' of row %lld is %.17g instead of %.17g", name->name,
             (long long)row, got, expected);
  return 1;
}

static int compare_row(struct bench *bench, int64_t row, struct cb_epilogue_report *report) {
  const struct cb_statements *statements = bench->statements;
  double values[CB_MOST_NAMES] = {0};
  for (int i = 0; i < statements->names_count; i++) {
    const struct cb_name *name = &statements->names[i];
    if (name->kind == CB_NAME_AX) values[i] = cb_real_get(bench->y, bench->plan->vector_type, row);
    else if (name->kind == CB_NAME_ROW) values[i] = (double)row;
    else if (name->kind == CB_NAME_SCALAR) values[i] = bench->scalars[i];
    else if (cb_name_is_given(name) && name->kind != CB_NAME_RESULT)
      values[i] = cb_real_get(bench->before + bench->offsets[i], type_of(bench, i), cb_name_is_vector(name) ? row : 0);
  }
  cb_statements_row(statements, bench->plan->sum_type, values);
  for (int i = 0, result = 0; i < statements->names_count; i++) {
    const struct cb_name *name = &statements->names[i];
    if (name->kind == CB_NAME_RESULT) bench->terms[bench->plan->rows * result++ + row] = values[i];
    if (!cb_name_is_vector(name)) continue;
    const double got = cb_real_get(bench->after + bench->offsets[i], type_of(bench, i), row);
    if (differs(report, name, row, got, cb_real_round(values[i], type_of(bench, i)))) return 0;
  }
  return 1;
}

static const struct cb_statement *statement_of(const struct cb_statements *statements, int name) {
  const struct cb_statement *statement = statements->statements;
  while (statement->name != name) statement++;
  return statement;
}

static void compare(struct bench *bench, struct cb_epilogue_report *report) {
  const struct cb_statements *statements = bench->statements;
  const enum cb_type type = bench->plan->sum_type;
  for (int64_t row = 0; row < bench->plan->rows; row++, report->rows++)
    if (!compare_row(bench, row, report)) return;
  for (int i = 0; i < statements->names_count; i++) {
    const struct cb_name *name = &statements->names[i];
    report->vectors += name->kind == CB_NAME_OUT || (name->kind == CB_NAME_INOUT && name->assigned);
    if (name->kind != CB_NAME_RESULT) continue;
    double *terms = bench->terms + bench->plan->rows * report->results++;
    const double expected = join_all(terms, bench->plan->rows, statement_of(statements, i), type);
    const double got = cb_real_get(bench->after + bench->offsets[i], type, 0);
    if (differs(report, name, -1, got, expected)) return;
  }
}

static void judge(struct bench *bench, const struct cb_host_job jobs[2], struct cb_epilogue_report *report) {
  for (int i = 0; i < 2; i++) {
    if (jobs[i].outcome == CB_HOST_DONE) continue;
    snprintf(report->message, sizeof report->message, "epilogue: %.500s",
             jobs[i].outcome == CB_HOST_UNREPEATABLE ? "its bits change with the order of warps" : jobs[i].message);
    return;
  }
  compare(bench, report);
}

enum cb_status cb_verify_epilogue(const struct cb_verify_case *plain, const struct cb_verify_case *with,
                                  const struct cb_verify_options *options, struct cb_epilogue_report *report,
                                  struct cb_diag *diag) {
  struct bench bench = {.plan = with->plan, .statements = with->plan->statements};
  struct cb_host_job jobs[2];
  struct cb_host *host = NULL;
  struct cb_host_options host_options = options->host;
  *report = (struct cb_epilogue_report){0};
  if (!with->plan->rows) return CB_OK;
  if (host_options.job_seconds > 0) host_options.job_seconds += 1e-5 * (double)(with->csr->nnz + with->csr->rows);
  enum cb_status s = prepare(&bench, options->seed, diag);
  if (!s) s = cb_host_open(&host, &host_options, diag);
  if (!s) s = run(&bench, host, plain, with, options, jobs, diag);
  if (!s) judge(&bench, jobs, report);
  cb_host_close(host);
  release(&bench);
  return s || !*report->message ? s : cb_fail_lines(diag, CB_ERR_WRONG, report->message);
}
