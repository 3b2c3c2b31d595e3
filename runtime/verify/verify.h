// SPDX-License-Identifier: Apache-2.0
/* Proving a kernel right without a GPU: products of many kinds through the host execution, each checked row
 * by row against the oracle.
 *
 *   random       x random, the matrix's own values
 *   integers     integer values and x: rows whose sums are exact must match exactly
 *   non-finite   NaN and infinities in columns of seeded nonzeros must stay in the rows that reference them
 *   … ends       the same with the first and the last entry of x, which padding is likely to read
 *   beta zero    form axpby: y full of NaN must not be read
 *   alpha zero   form axpby: β y alone
 *
 * With form ax y holds a marked NaN before the product, so a row that is never written shows. Every product
 * is repeated with other orders of warps and thread blocks and must give the same bits (unless the plan has
 * atomics).
 */
#ifndef CBGEN_RUNTIME_VERIFY_VERIFY_H
#define CBGEN_RUNTIME_VERIFY_VERIFY_H

#include "analysis/plan/blob.h"
#include "analysis/plan.h"
#include "codegen/source.h"
#include "runtime/verify/host.h"

struct cb_verify_options {
  struct cb_host_options host;
  uint64_t seed; /* of vectors and of the order of warps */
  int trace;     /* trace the first wrong row (trace.h) */
  int checks;    /* execute the text with checks (codegen/checked.h) */
  int orders;    /* of warps, per product; 0: by size, 5 for small matrices down to 1 for large ones */
};
void cb_verify_options_default(struct cb_verify_options *options);

/* A kernel with all it came from. The blob may or may not have its self-test part. */
struct cb_verify_case {
  const struct cb_csr *csr;
  const struct cb_plan *plan;
  const struct cb_assignment *assignment;
  const struct cb_source *source;
  const struct cb_blob *blob;
  const char *symbol; /* as in the label of the source */
};

enum { CB_VERIFY_COLUMNS = 8 };

struct cb_verify_report {
  enum cb_status status; /* CB_OK, or CB_ERR_WRONG with the message */
  char message[1024]; /* the first failure, complete: product, row, who holds it, numbers, or why it stopped */
  int checks;         /* the text with checks was executed */
  int products, runs; /* kinds of products; multiplications in all */
  int64_t rows;       /* compared, over all products; of them: */
  int64_t exact_rows; /* with tolerance 0 */
  int64_t unbounded_rows; /* whose sums may overflow: any result passes */
  double worst_ratio;     /* largest error / tolerance */
  /* of the first failure, when it is a wrong row (else row is −1) */
  const char *product;
  int64_t row;
  int columns_count; /* of the row's first columns */
  int64_t columns[CB_VERIFY_COLUMNS];
  int64_t wrong_rows; /* of that product */
  double got, expected, tolerance;
  char trace[1024]; /* what is wrong with it, a line for each finding; "" when that was not asked for */
  double compile_seconds; /* of all cases of a batch together, emulator included */
  double run_seconds;     /* in the kernel, all products */
};

/* Verifies one kernel; the time limit of a job grows with the matrix. CB_ERR_WRONG when it is wrong (the
 * report says how), CB_ERR_COMPILE when its text does not compile, CB_ERR_MISSING without a C++ compiler. */
enum cb_status cb_verify(const struct cb_verify_case *one, const struct cb_verify_options *options,
                         struct cb_verify_report *report, struct cb_diag *diag);

/* Verifies many kernels, compiled together by a host that is open already. reports[i].status tells of each;
 * the return value is an error only when the whole could not be done. */
enum cb_status cb_verify_batch(struct cb_host *host, const struct cb_verify_case *cases, int count,
                               const struct cb_verify_options *options, struct cb_verify_report *reports,
                               struct cb_diag *diag);

/* Compiles an existing kernel.cu for the host and runs its own self-test, which executes the file's code as a confined
 * child, and compares its y with the data's, with `orders` orders of warps (0:
 * 2). Its data is embedded, or lies beside it in the sidecar that the text names. */
struct cb_verify_file_report {
  char output[1024]; /* the line that the self-test printed */
  int runs;
  double compile_seconds, run_seconds;
  int network; /* 1: the system did not let the self-test be cut off from the network */
};
enum cb_status cb_verify_file(const char *path, const struct cb_verify_options *options,
                              struct cb_verify_file_report *report, struct cb_diag *diag);

#endif
