// SPDX-License-Identifier: Apache-2.0
/* A row of a product, operation by operation: where each of its nonzeros lies, which thread multiplied it on which line
 * of the text, and what the sum was then, beside the exact one.
 *
 *   cb_trace_run     one product of a traced text (trace_text.h) on the host
 *   cb_trace_row     what one row of it was made of, and what is wrong with that
 *   cb_trace_text_of, cb_trace_json    as a report
 *
 * The numbers of a traced product are those of the plain one, bit by bit.
 */
#ifndef CBGEN_RUNTIME_VERIFY_TRACE_H
#define CBGEN_RUNTIME_VERIFY_TRACE_H

#include "base/json.h"
#include "runtime/verify/verify.h"

/* What is multiplied: x and y of the plan's vector type. */
struct cb_trace_product {
  const void *x, *y; /* y: what it holds before */
  double alpha, beta;
  const double *values;       /* instead of the matrix's own; NULL: those */
  const struct cb_blob *blob; /* with these values */
  uint64_t seed;              /* of the order of warps */
  int is_of_row;              /* only what touches row `row` need be executed: other rows of y mean nothing */
  int64_t row;
};

struct cb_trace; /* the case and the product must stay alive */

/* `host`: any, or NULL: one for this product alone. CB_ERR_WRONG when the kernel was stopped (the message
 * says where), CB_ERR_UNSUPPORTED when its text cannot be traced. */
enum cb_status cb_trace_run(struct cb_trace **trace, struct cb_host *host, const struct cb_verify_case *one,
                            const struct cb_trace_product *product, struct cb_diag *diag);
void cb_trace_free(struct cb_trace *trace); /* NULL is accepted */

const void *cb_trace_y(const struct cb_trace *trace); /* the product */

/* The launch (from 1) and the thread block that made the row's last number; launch 0: none did. */
void cb_trace_committer(const struct cb_trace *trace, int64_t row, int64_t *launch, int64_t *block);

/* One operation, in the order of execution. */
struct cb_trace_step {
  uint64_t node;
  const char *what; /* "add_product", "value", … */
  int64_t column;   /* of x, when it loads or multiplies one; else −1 */
  int64_t nonzero;  /* that a product or a load of a value is of; −1: none */
  int64_t slot;     /* of the value; −1: none, or unknown */
  int region;       /* of the slot; −1: none */
  int line;         /* of kernel.cu; 0: unknown */
  int64_t launch, block, thread;
  double operands[3];
  int operands_count;
  double result;
  long double exact; /* the same of the matrix's row: what this should be */
  int is_term;       /* it multiplies a value with an entry of x */
};

enum { CB_TRACE_FINDINGS = 8 };

struct cb_trace_row {
  int64_t row, nonzeros;
  double got, expected, tolerance;
  int is_right;
  int64_t steps_count;
  struct cb_trace_step *steps;
  int findings_count; /* more are not told */
  char findings[CB_TRACE_FINDINGS][240];
};

/* CB_ERR_ARGUMENT: there is no such row. Release with cb_trace_row_release. */
enum cb_status cb_trace_row(struct cb_trace_row *row, const struct cb_trace *trace, int64_t number,
                            struct cb_diag *diag);
void cb_trace_row_release(struct cb_trace_row *row);

/* As text, and as JSON (a new object; NULL sets *failed). */
void cb_trace_row_text(struct cb_text *text, const struct cb_trace *trace, const struct cb_trace_row *row);
json_t *cb_trace_row_json(const struct cb_trace *trace, const struct cb_trace_row *row, int *failed);

/* What is wrong with a row, a line for each finding, or why it cannot be traced. */
void cb_trace_brief(struct cb_text *text, struct cb_host *host, const struct cb_verify_case *one,
                    const struct cb_trace_product *product, int64_t row);

#endif
