// SPDX-License-Identifier: Apache-2.0
/* Running and measuring kernels on the GPU, beside every algorithm of cuSPARSE that applies.
 *
 *   cb_bench_open      driver, NVRTC, cuSPARSE (optional); the machine's ceilings, measured once
 *   cb_bench_matrix    one matrix: for each set of options analysis, text, compilation, one checked product;
 *                      then all of them and cuSPARSE in turn, `repetitions` times over
 *   cb_bench_json, cb_bench_row   a result as one JSON object, as one row of a table
 *
 * Protocol: a batch is a number of products back to back between two events; a measurement is the median of
 * several batches (7 batches of 100; fewer for what takes long), and a figure the median of five measurements
 * taken in turn with all competitors, so that a drift of the clock meets all alike. Caches are not flushed
 * between products: a matrix that fits in L2 stays there, as it does in a solver. Competitors compute the
 * product in the same form (y = Ax, y += Ax, y = αAx + βy) with x of cb_selftest_x.
 */
#ifndef CBGEN_RUNTIME_BENCH_H
#define CBGEN_RUNTIME_BENCH_H

#include "analysis/options.h"
#include "base/status.h"
#include "base/text.h"
#include "frontend/csr.h"
#include "runtime/cubin.h"
#include "runtime/driver.h"
#include "runtime/oracle.h"

enum { CB_BENCH_LAUNCHES = 8, CB_BENCH_NOTE = 192 };

struct cb_bench_settings {
  const char *libcuda, *libnvrtc, *libcusparse; /* NULL: as usual */
  int device;
  int batches, launches; /* of one measurement, for what is quick: 7 and 100 */
  int repetitions;       /* 5 */
  double seconds;        /* bound on a matrix's measuring time, all competitors together: 2 */
  int rivals;            /* measure cuSPARSE, too */
  int ceilings;          /* measure the machine first */
};
void cb_bench_settings_default(struct cb_bench_settings *settings);

struct cb_bench_machine {
  struct cb_target target;
  int driver_version, nvrtc_major, nvrtc_minor, cusparse_version; /* 0: no cuSPARSE */
  char cusparse_note[CB_BENCH_NOTE];                              /* why there is none */
  double copy_gb_s; /* device to device, bytes read plus bytes written; 0: not measured */
  double read_gb_s; /* streaming reads */
  double empty_us;  /* an empty kernel, back to back */
};

struct cb_bench;
enum cb_status cb_bench_open(struct cb_bench **bench, const struct cb_bench_settings *settings,
                             struct cb_diag *diag);
void cb_bench_close(struct cb_bench *bench); /* NULL is accepted */
const struct cb_bench_machine *cb_bench_machine(const struct cb_bench *bench);

/* One set of options to measure. */
struct cb_bench_variant {
  const char *label; /* "cb --team=4"; NULL: the recipe's name */
  struct cb_options options;
};

/* Median, least and greatest of the repetitions. */
struct cb_bench_time {
  double us, least_us, greatest_us;
  int batches, launches; /* of each repetition */
};

struct cb_bench_figures { /* follow from a time */
  double gflops;          /* 2 nnz / time */
  double gb_s;            /* stored bytes + x + y (read, too, where β takes it) per time */
  double read_share;      /* of the read ceiling; 0: not known */
};

/* One of cbgen's kernels. */
struct cb_bench_own {
  char label[96];
  char *plan;            /* the plan's line; owned by the result */
  enum cb_status status; /* CB_ERR_…: what went wrong is in `note`, and nothing below is set past that */
  char note[CB_BENCH_NOTE * 2];
  struct cb_bench_time time;
  struct cb_bench_figures figures;
  struct cb_comparison check; /* against the oracle */
  int64_t stored_bytes;
  double bytes_per_nonzero;
  int64_t predicted_ns;
  int launches;
  struct cb_usage usage[CB_BENCH_LAUNCHES]; /* of the first so many kernels */
  double analyse_ms, pack_ms, emit_ms, compile_ms, upload_ms,
      first_ms; /* first: the first product, waited for */
};

/* One algorithm of cuSPARSE. */
struct cb_bench_rival {
  const char *name;      /* "CSR ALG1" */
  enum cb_status status; /* CB_ERR_UNSUPPORTED: does not apply, `note` says why */
  char note[CB_BENCH_NOTE];
  struct cb_bench_time time;
  struct cb_bench_figures figures;
  struct cb_comparison check;
  int64_t stored_bytes;
  double prepare_ms; /* conversion on the host, upload, analysis on the device */
};

struct cb_bench_result {
  char matrix[64];
  int64_t rows, cols, nnz;
  enum cb_type type;
  enum cb_form form;
  int own_count, rivals_count;
  struct cb_bench_own *own;           /* owned; one per variant, in their order */
  struct cb_bench_rival *rivals;      /* owned; rows of runtime/cusparse.h */
  int best_own, best_rival, best_csr; /* index, −1: none (best_csr: of CSR ALG1 and ALG2) */
  double speedup;                     /* best rival's time over the best own one's; 0: nothing to compare */
};
void cb_bench_result_release(struct cb_bench_result *result);

/* Measures. All variants must have the same type and form (CB_ERR_ARGUMENT). A kernel or rival that fails is
 * reported in its row, and the others go on; the status is then CB_OK but for failures of the whole (memory,
 * the device). Whoever wants to fail on wrong results asks cb_bench_verdict. */
enum cb_status cb_bench_matrix(struct cb_bench_result *result, struct cb_bench *bench,
                               const struct cb_csr *csr, const struct cb_bench_variant *variants, int count,
                               struct cb_diag *diag);

/* CB_OK when all own kernels ran and were right; else the first failure (CB_ERR_WRONG names the row). */
enum cb_status cb_bench_verdict(const struct cb_bench_result *result, struct cb_diag *diag);

/* The machine and a result as one line of JSON each, with a newline. */
enum cb_status cb_bench_machine_json(const struct cb_bench_machine *machine, struct cb_text *text,
                                     struct cb_diag *diag);
enum cb_status cb_bench_json(const struct cb_bench_result *result, struct cb_text *text,
                             struct cb_diag *diag);

/* Tables: head and one row per own kernel, as tab-separated values or Markdown. */
enum cb_bench_style { CB_BENCH_TSV, CB_BENCH_MARKDOWN };
void cb_bench_head(struct cb_text *text, enum cb_bench_style style);
void cb_bench_row(const struct cb_bench_result *result, enum cb_bench_style style, struct cb_text *text);

/* A few lines for a person: the machine; a result with all its competitors. */
void cb_bench_machine_text(const struct cb_bench_machine *machine, struct cb_text *text);
void cb_bench_text(const struct cb_bench_result *result, struct cb_text *text);

#endif
