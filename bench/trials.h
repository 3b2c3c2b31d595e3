// SPDX-License-Identifier: Apache-2.0
/* Trials: plans of a matrix that are compiled and timed beside each other, for programs that measure many matrices in many
 * processes (candidates.c, shares.c). Processes plan and compile side by side; one at a time has the GPU. */
#ifndef CBGEN_BENCH_TRIALS_H
#define CBGEN_BENCH_TRIALS_H

#include "analysis/plan/blob.h"
#include "analysis/plan/recipe.h"
#include "codegen/source.h"
#include "frontend/read.h"
#include "runtime/cuda/make.h"
#include "runtime/measure/timer.h"
#include "runtime/operator/operator.h"

enum { TRIAL_REPETITIONS = 32 /* at most */ };

/* ---- a process */

struct trial_session {
  struct cb_driver *driver;
  struct cb_device *device; /* NULL: there is none, and trials are planned only, for sm_90 */
  struct cb_nvrtc *nvrtc;
  struct cb_target target;
  struct CUstream_st *stream;
  struct cb_timer timer;
  int lock; /* of the GPU: a file */
};

/* A session of the GPU of that number; TRIAL_NO_GPU: of none. The processes that share a GPU name one `lock`, a file that is
 * made. A session ends with its process. CB_ERR_IO, and what opening the device fails with. */
enum { TRIAL_NO_GPU = -1 };
enum cb_status trial_session_open(struct trial_session *session, const char *lock, int gpu, struct cb_diag *diag);

/* ---- a matrix */

struct trial_matrix {
  const char *text;
  struct cb_csr csr;
  struct cb_hash pattern;
  struct cb_options options; /* the type among them */
  cb_device_ptr x, y;        /* while products are timed */
};

/* `text` is the name of a file NAME.mtx.zst in one of the folders (A:B:C), a file, or "generate:SHAPE,…"; behind a blank
 * a part of it: "rows=K/M" is the K-th of M equal ranges of rows, "square=K/M" these rows and the columns of the same
 * numbers. It stays the caller's. A matrix without nonzeros is refused. */
enum cb_status trial_matrix_read(struct trial_matrix *matrix, const char *text, const char *folders,
                                 struct cb_diag *diag);
void trial_matrix_release(struct trial_matrix *matrix);

/* ---- trials */

struct trial {
  const char *recipe, *variant; /* variant: what tells it from others of its recipe, for the caller alone */
  char refusal[160], line[512];
  struct cb_made made;
  struct cb_blob blob;
  struct cb_image image;
  struct cb_operator *op;
  struct cb_cost cost;
  int64_t bytes;
  double plan_seconds, us[TRIAL_REPETITIONS], median_us, halves_us[2];
  int launches;
};

/* Plans the matrix by trial->recipe, with these options. Afterwards there is a plan (made.plan), or a refusal. */
void trial_plan(struct trial *trial, const struct trial_matrix *matrix, const struct cb_options *options,
                const struct cb_target *target);

/* Text, machine code and arrays of a trial that is planned; or its refusal. Its plan is given up. */
void trial_make(struct trial *trial, const struct trial_matrix *matrix, const struct trial_session *session);

/* Times those that are made in turns, `repetitions` times, and waits for the GPU before: us, median_us, and the medians of
 * every other repetition, from the first and from the second on (0 of one repetition); or a refusal. Products are captured in
 * graphs: launched one by one, short ones would take as long as the host takes for a launch, whatever their recipe.
 * Fails without memory for the vectors. */
enum cb_status trial_time(struct trial *const *trials, int count, struct trial_matrix *matrix,
                          const struct trial_session *session, int repetitions, struct cb_diag *diag);

void trial_release(struct trial *trial);

#endif
