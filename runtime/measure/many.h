// SPDX-License-Identifier: Apache-2.0
/* Products with several vectors on a GPU, beside cuSPARSE's SpMM: what `cbgen bench --vectors=K` does. Sessions and the
 * protocol are those of bench.h: all competitors in turn, medians of batches, every product checked. */
#ifndef CBGEN_RUNTIME_MEASURE_MANY_H
#define CBGEN_RUNTIME_MEASURE_MANY_H

#include "runtime/measure/bench.h"
#include "runtime/measure/spmm.h"

struct cb_many_entry {
  struct cb_baseline baseline; /* "cbgen", "cbgen, one by one" or cuSPARSE's */
  enum cb_dense_order order;
  int64_t wrong; /* rows of any vector that the oracle rejects */
  struct cb_timing timing; /* of all vectors */
};

enum { CB_MANY_OWN, CB_MANY_BASELINES = CB_DENSE_ORDERS + 1, CB_MANY_ENTRIES = CB_MANY_BASELINES + CB_SPMM_KINDS };

struct cb_many_result {
  char name[64];
  const char *type, *file;
  char *plan;           /* the plan's line */
  int64_t rows, cols, nnz, stored_bytes, moved_bytes;
  int vectors;
  struct cb_vector_share shares[CB_VECTOR_KERNELS];
  double predicted_us, compile_seconds, bound_us; /* bound: moved_bytes at the read ceiling */
  int registers, spilled_bytes; /* the most of all kernels */
  int checked; /* vectors that were compared with the oracle; large matrices: the first and the last */
  /* the kernel by the order of X and Y, then as many products with one vector each (by columns), then cuSPARSE's */
  struct cb_many_entry entries[CB_MANY_ENTRIES];
  double speed_up[CB_DENSE_ORDERS]; /* over the best right one of cuSPARSE in any order; 0: none */
};

/* Options with `vectors` above 1. A wrong product is a result, not an error. Release the result in any case. */
enum cb_status cb_bench_many(struct cb_many_result *result, struct cb_bench *bench, const struct cb_csr *csr,
                             const struct cb_options *options, struct cb_diag *diag);
void cb_many_result_release(struct cb_many_result *result);

/* For a person; as one JSON object on one line, without a newline. */
void cb_many_report(struct cb_text *text, const struct cb_bench *bench, const struct cb_many_result *result);
enum cb_status cb_many_json(struct cb_text *text, const struct cb_bench *bench, const struct cb_many_result *result,
                            struct cb_diag *diag);

#endif
