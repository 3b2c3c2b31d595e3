// SPDX-License-Identifier: Apache-2.0
/* The pipeline as the verbs use it: a matrix file, step by step, into the text and the data of a kernel. */
#ifndef CBGEN_TOOL_JOB_H
#define CBGEN_TOOL_JOB_H

#include "tool/tool.h"

#include "analysis/plan/blob.h"
#include "analysis/plan.h"
#include "frontend/csr.h"

/* Zero-initialise it; each step needs the one before. */
struct cb_job {
  struct cb_csr csr;
  struct cb_target target;
  struct cb_plan *plan;
  struct cb_assignment *assignment;
  struct cb_blob blob;
  struct cb_source source;
  struct cb_label label;
  char name[64], symbol[49];
};

enum cb_status cb_job_read(struct cb_job *job, const struct cb_call *call, struct cb_diag *diag);
/* `arch` may be NULL: sm_90. Replaces an earlier plan of the job. */
enum cb_status cb_job_plan(struct cb_job *job, const struct cb_call *call, const char *arch,
                           struct cb_diag *diag);
/* Plans for a target that the caller describes. */
enum cb_status cb_job_plan_for(struct cb_job *job, const struct cb_call *call, const struct cb_target *target,
                               struct cb_diag *diag);
/* Plans for the GPU number call->device, with the recipe that is the fastest there: runtime/measure/tune.h. An --arch
 * must be the GPU's. CB_ERR_MISSING: no driver, GPU or NVRTC. */
enum cb_status cb_job_tune(struct cb_job *job, const struct cb_call *call, struct cb_diag *diag);
/* Packs, with the self-test part when `selftest`. */
enum cb_status cb_job_pack(struct cb_job *job, int selftest, struct cb_diag *diag);
/* `with_data`: the host section may carry the blob (call->embed decides). */
enum cb_status cb_job_emit(struct cb_job *job, const struct cb_call *call, int with_data,
                           struct cb_diag *diag);
/* The text through NVRTC, for the target's architecture: PTX and cubin, each when asked for (not NULL). */
enum cb_status cb_job_compile(struct cb_job *job, struct cb_text *ptx, struct cb_text *cubin,
                              struct cb_diag *diag);
/* Bytes of the matrix as CSR with values of the plan's type: what the stored bytes are compared with. */
int64_t cb_job_csr_bytes(const struct cb_job *job);
void cb_job_release(struct cb_job *job);

/* For run and bench: CB_ERR_WRONG when the product was wrong, or not repeatable without leave to be so. */
struct cb_run_result;
/* A kernel.cu as FILE is planned already, and brings no matrix: options of the analysis, and others that need one, have
 * no effect. CB_ERR_ARGUMENT names the first. */
enum cb_status cb_check_kernel_call(const struct cb_call *call, const char *verb, struct cb_diag *diag);

enum cb_status cb_run_verdict(const struct cb_run_result *result, const struct cb_options *options,
                              struct cb_diag *diag);

#endif
