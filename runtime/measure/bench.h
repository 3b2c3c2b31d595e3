// SPDX-License-Identifier: Apache-2.0
/* Running and timing on a GPU: what `cbgen run` and `cbgen bench` do.
 *
 *   cb_bench_settings_default(&settings);
 *   cb_bench_open(&bench, &settings, diag)        driver, device, NVRTC, cuSPARSE, ceilings: once
 *   cb_bench_matrix(&result, bench, &csr, &options, diag)           any number of matrices
 *   cb_bench_json(&text, bench, &result, diag)
 *   cb_bench_result_release(&result);
 *   cb_bench_close(bench)
 *
 * Protocol. A batch is 100 products back to back between two CUDA events: 20 when one takes over 100 µs,
 * fewer when 20 would take over 50 ms. A repetition of one competitor is the median of 7 batches, after one
 * batch that is not counted. Five repetitions are interleaved over all competitors, so that a drift of the
 * clock meets all alike. The median of the five is reported, with the least and the greatest. Caches are not
 * flushed in between: what fits in L2 is read from L2, as in a solver. x is the seeded vector of the
 * self-test. Every competitor's y is compared with the oracle before anything is timed. With `graphs` a batch is
 * captured once, and its launch as a graph is timed: small products take the host's pace otherwise.
 */
#ifndef CBGEN_RUNTIME_MEASURE_BENCH_H
#define CBGEN_RUNTIME_MEASURE_BENCH_H

#include "analysis/options.h"
#include "analysis/plan.h"
#include "base/status.h"
#include "base/text.h"
#include "frontend/csr.h"
#include "runtime/cuda/cubin.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/measure/cusparse.h"
#include "runtime/measure/plugin.h"
#include "runtime/measure/timer.h"
#include "runtime/measure/tune.h"
#include "runtime/operator/operator.h"
#include "runtime/verify/oracle.h"

#include <stdint.h>

enum { CB_BENCH_MOST = 64 }; /* repetitions, and batches */

struct cb_bench_settings {
  int device;      /* ordinal */
  int repetitions; /* 5 */
  int batches;     /* 7 */
  int launches;    /* products per batch; 0: as the protocol says */
  int baselines;   /* 1: against cuSPARSE, where it is found */
  int ceilings;    /* 1: measure copy, read and launch ceilings when opening */
  int graphs;      /* 1: batches are graphs */
  int candidates;  /* 1: time every recipe that a search looked at, not only the winner */
  int emulate;     /* 1: cb_run_matrix compares y with the emulation's, bit by bit */
  int debug;       /* 1: for compute-sanitizer: -lineinfo, and an allocation for each array */
  const char *driver_path, *nvrtc_path, *cusparse_path; /* NULL: searched for */
  const char *const *plugins; /* files of more baselines; they outlive the bench */
  int plugins_count;
};
void cb_bench_settings_default(struct cb_bench_settings *settings);

/* What was opened. Members are for reading. */
struct cb_bench {
  struct cb_bench_settings settings;
  struct cb_driver *driver;
  struct cb_device *device; /* its context is current between open and close, on the thread that opened */
  struct cb_nvrtc *nvrtc;
  struct cb_cusparse *cusparse; /* NULL: not asked for, or not found (see missing) */
  char missing[512];            /* why cuSPARSE is NULL; "" otherwise */
  struct cb_plugin *plugins;    /* settings.plugins_count of them, opened or not */
  struct CUstream_st *stream;
  struct cb_timer timer;
  int entered;                 /* the context is current */
  struct cb_ceilings ceilings; /* zero unless asked for */
};

/* CB_ERR_MISSING without a driver, a GPU or NVRTC; without cuSPARSE it goes on. */
enum cb_status cb_bench_open(struct cb_bench **bench, const struct cb_bench_settings *settings,
                             struct cb_diag *diag);
void cb_bench_close(struct cb_bench *bench); /* NULL is accepted */

/* Wall-clock seconds of each step of the way to the first product. */
struct cb_stages {
  double tune; /* with the option tune=measure; plan is part of it then */
  double plan, pack, emit, compile, load, upload;
};

struct cb_timing {
  double us, least_us, most_us; /* one product: median, least and greatest of the repetitions; 0: not timed */
  int launches;                 /* products per batch */
};

/* One competitor: what it enqueues, and its repetitions so far. */
struct cb_competitor {
  cb_enqueue *enqueue;
  void *user;
  struct cb_timing *timing;
  double us[CB_BENCH_MOST];
};

/* Times all of them in turn, repetition by repetition. */
enum cb_status cb_bench_time(struct cb_bench *bench, struct cb_competitor *competitors, int count,
                             struct cb_diag *diag);

/* One product of the generated kernel, checked. The matrix and the plan's facts are in both results. */
struct cb_run_result {
  char name[64];
  int64_t rows, cols, nnz;
  const char *type; /* name of the types ("f16-f32") */
  enum cb_form form;
  enum cb_semiring semiring; /* of others than plus-times there is no baseline */
  char *plan;           /* the plan's line */
  char pattern[33];     /* its hash in hexadecimal */
  int64_t stored_bytes; /* arrays that one product reads */
  int64_t moved_bytes;  /* stored_bytes, x once, and y once (twice with y += Ax) */
  double predicted_us;  /* by the cost model */
  struct cb_cost cost;  /* what that was made of */
  const char *recipe;   /* a search's winner */
  struct cb_tuning tuning; /* with the option tune=measure; count 0 otherwise */
  int candidates_count; /* of the search */
  struct cb_candidate candidates[CB_MAX_CANDIDATES];
  struct cb_stages stages;
  struct cb_cubin_stats cubin;
  int launches;               /* kernels per product */
  int64_t device_bytes;       /* of the operator */
  int is_file;                /* of a kernel.cu: nothing was planned, and there is no matrix for baselines */
  int has_atomics;            /* then bits may differ from product to product */
  int is_unchecked;           /* its data do not say what is right */
  struct cb_comparison check; /* against the oracle, or a file's self-test; check.wrong is 0 when the kernel is right */
  int repeatable;             /* a second product gave the same bits */
  int emulated;               /* y was compared with that of the emulation */
  int64_t first_other;        /* then the first row whose bits differ; -1: none does */
  struct cb_timing timing;
};

/* The whole way for one matrix: plan for the bench's device, pack, emit, compile, load, multiply, compare,
 * time. Form axpby is checked with α = 1.5, β = 0.5 and a seeded y, and timed with α = 1, β = 0. A wrong
 * product is a result (check.wrong), not an error. Release the result in any case. */
enum cb_status cb_run_matrix(struct cb_run_result *result, struct cb_bench *bench, const struct cb_csr *csr,
                             const struct cb_options *options, struct cb_diag *diag);
void cb_run_result_release(struct cb_run_result *result);

/* The same for a kernel.cu with its data (runtime/verify/kernel_file.h): compile for the bench's device, load,
 * multiply, compare with what its self-test expects of y = Ax, time. In kernel_run.c. */
enum cb_status cb_run_kernel(struct cb_run_result *result, struct cb_bench *bench, const char *path,
                             struct cb_diag *diag);

struct cb_baseline_result {
  struct cb_baseline baseline;
  int64_t wrong; /* rows that the oracle rejects */
  struct cb_timing timing;
};

struct cb_bench_result {
  struct cb_run_result run;
  const char *file; /* what the caller calls the matrix; not owned; NULL: JSON says nothing of it */
  double gflops;            /* 2 nnz / time */
  double bytes_per_nonzero; /* stored */
  double moved_gb_per_s;    /* moved_bytes / time */
  double share_of_read;     /* of the read ceiling */
  double bound_us;          /* no kernel with this layout's data is faster: an empty launch, moved_bytes at the read
                             * ceiling, or gathered sectors at the GPU's rate, whichever takes longest */
  struct cb_timing alone;   /* of the chosen recipe, without baselines in between; as candidates are timed */
  double candidate_us[CB_MAX_CANDIDATES]; /* times of run.candidates; 0: refused, failed, or not asked for */
  const char *baseline_types;             /* in what the baselines' types differ from the kernel's; NULL: in nothing */
  int baselines_count; /* cuSPARSE's first, then a row for each plug-in */
  struct cb_baseline_result *baselines;
  int best;            /* fastest baseline with a right result; -1: none */
  double speed_up;     /* its time / ours */
  double csr_speed_up; /* the same against the better of csr-alg1 and csr-alg2 */
};

enum cb_status cb_bench_matrix(struct cb_bench_result *result, struct cb_bench *bench,
                               const struct cb_csr *csr, const struct cb_options *options,
                               struct cb_diag *diag);
/* Of a kernel.cu: beside the memory's own speed alone. */
enum cb_status cb_bench_kernel(struct cb_bench_result *result, struct cb_bench *bench, const char *path,
                               struct cb_diag *diag);
void cb_bench_result_release(struct cb_bench_result *result);

/* What follows from a run's time: rates, and the bound. */
void cb_bench_derive(struct cb_bench_result *result, const struct cb_bench *bench);

/* One JSON object, on one line without a newline at its end: device, versions, ceilings, protocol and the
 * result. */
enum cb_status cb_bench_json(struct cb_text *text, const struct cb_bench *bench,
                             const struct cb_bench_result *result, struct cb_diag *diag);
enum cb_status cb_run_json(struct cb_text *text, const struct cb_bench *bench,
                           const struct cb_run_result *result, struct cb_diag *diag);

/* A Markdown table: a line about the machine, the head, and one row per matrix. */
void cb_bench_markdown_head(struct cb_text *text, const struct cb_bench *bench);
void cb_bench_markdown_row(struct cb_text *text, const struct cb_bench_result *result);
/* Everything about one matrix for a person, several lines: stages, the kernel, and each baseline. */
void cb_bench_report(struct cb_text *text, const struct cb_bench *bench, const struct cb_bench_result *result);
void cb_run_report(struct cb_text *text, const struct cb_bench *bench, const struct cb_run_result *result);

#endif
