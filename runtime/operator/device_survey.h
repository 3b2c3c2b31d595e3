// SPDX-License-Identifier: Apache-2.0
/* A look at a matrix that lies in device memory, by kernels (templates/survey.cu.in, diagonals.cu.in, tiles.cu.in):
 * whether it is canonical, where its rows begin, and their first and last columns. What analysis asks for comes to the
 * host, O(rows) of it; columns and values stay where they are. Of a matrix of few nonzeros row pointers and columns
 * come to the host at once: every question would take longer. Of very few, hashing has brought them (device_hash.h),
 * and the host looks whether they are canonical; kernels that pack read the caller's row pointers, or what another
 * kernel has made of them. Columns stay in the pinned bytes that they came to, if those count from 0 by 32 bits.
 */
#ifndef CBGEN_RUNTIME_OPERATOR_DEVICE_SURVEY_H
#define CBGEN_RUNTIME_OPERATOR_DEVICE_SURVEY_H

#include "frontend/csr.h"
#include "runtime/operator/device_hash.h"
#include "runtime/operator/kernel_sets.h"
#include "runtime/operator/matrix.h"

/* Finds a set of kernels when it is first needed. */
struct cb_kernel_finder {
  enum cb_status (*find)(void *user, const char *set, const struct cb_kernels **kernels, struct cb_diag *diag);
  void *user;
  void *pinned; /* bytes on the host that the driver writes to at once; NULL: there are none */
  size_t pinned_bytes;
  struct cb_brought brought; /* of the matrix that is surveyed; NULL: nothing was brought yet */
};

/* Must stay where it is while something plans for its matrix. */
struct cb_survey {
  struct cb_kernel_finder finder;
  const struct cb_kernels *kernels; /* the set "survey" */
  struct cb_view view;              /* of the matrix on the device */
  cb_device_ptr copies[3];          /* of a matrix that was on the host: what the view refers to; else 0 */
  cb_device_ptr starts;             /* rows + 1 row pointers from 0: int64_t where `wide`, else int32_t */
  int wide;
  int shares_starts;                /* they are the caller's own row pointers */
  cb_device_ptr scratch;            /* findings, sums of groups, then the ends of rows */
  cb_device_ptr work;               /* of calls of `remote`, one after the other */
  size_t work_bytes;
  cb_device_ptr *lists; /* that it keeps (device_rows.h) */
  int lists_count;
  size_t pinned_taken;              /* of the finder's pinned bytes */
  void *pinned_rows, *pinned_columns; /* that came there; NULL: they did not */
  const int64_t *sums;              /* of groups, likewise */
  int32_t *columns;                 /* of `near`, its own; NULL: they lie in pinned bytes */
  int keeps;                        /* row pointers and the plan's lists stay there for new values */
  int32_t *ends;                    /* all first columns, then all last ones */
  struct cb_csr near;               /* of a matrix that has few nonzeros: all of it on the host; row_ptr is csr's */
  struct cb_csr *csr;               /* that it made */
  struct cb_remote_columns remote;
};

/* Looks at `view`, a matrix in CSR, which is copied to the device if it is on the host, and makes a matrix of it whose
 * columns are remote: they are the survey's. Both stay where they are until they are released. The device's context
 * must be current. CB_ERR_UNSUPPORTED: it is not canonical, or none at all, so that the host must look at it. Release
 * both in any case. A matrix of up to `near` rows and nonzeros comes to the host as a whole. `keeps`: what packing
 * keeps for new values will stay; else memory that is there for a moment will do. */
enum { CB_SURVEY_NEAR = 1 << 18 };
enum cb_status cb_survey_run(struct cb_survey *survey, struct cb_csr *csr, const struct cb_kernel_finder *finder,
                             const struct cb_view *view, int64_t near, int keeps, struct cb_diag *diag);
/* What a copy in the default stream brings to pinned bytes, behind all that came there before, once that stream has
 * been waited for. NULL: there is no room, or *result says what failed, now or before. */
void *cb_survey_bring_later(struct cb_survey *survey, cb_device_ptr from, size_t bytes, cb_cu_result *result);
/* Room for sums of groups, which nothing else takes. */
enum { CB_SURVEY_SUMS = 1024 };
cb_device_ptr cb_survey_sums(const struct cb_survey *survey);
/* Where the first columns of all rows lie, and behind them the last ones: of a row without nonzeros, anything. */
cb_device_ptr cb_survey_ends(const struct cb_survey *survey);

/* The row pointers as the templates take them: one of the two, by their width. */
struct cb_row_starts {
  cb_device_ptr narrow, wide;
};
static inline struct cb_row_starts cb_survey_starts(const struct cb_survey *survey) {
  return (struct cb_row_starts){survey->wide ? 0 : survey->starts, survey->wide ? survey->starts : 0};
}

/* For what `remote` is asked: finds a set of kernels, and makes the device's context current, unless it fails. */
enum cb_status cb_survey_open(const struct cb_survey *survey, const char *set, const struct cb_kernels **kernels,
                              struct cb_diag *diag);

/* With the context current. Gives back what lies on the device, once nothing is asked any more and all kernels that
 * were launched have been waited for. */
void cb_survey_empty(struct cb_survey *survey);
/* Likewise, whatever the device does. */
void cb_survey_release(struct cb_survey *survey);
/* Instead, when the context is gone, and with it what lay on the device. */
void cb_survey_forget(struct cb_survey *survey);

#endif
