// SPDX-License-Identifier: Apache-2.0
/* The pipeline, one call per stage: see job.h. */
#include "tool/job.h"

#include "analysis/plan/symmetry.h"
#include "base/memory.h"
#include "frontend/read.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/cuda/spills.h"
#include "runtime/measure/tune.h"
#include "runtime/verify/oracle.h"

#include <stdio.h>
#include <string.h>

/* The matrix in the order that an operator would have. */
static enum cb_status reorder(struct cb_job *job, const struct cb_call *call, struct cb_diag *diag) {
  static const char *const methods[] = {[CB_ORDER_GIVEN] = "as it is, no other is better by a fifth",
                                        [CB_ORDER_BY_LENGTH] = "rows and columns by their lengths",
                                        [CB_ORDER_BAND] = "reverse Cuthill-McKee"};
  const struct cb_indices indices = cb_csr_indices(&job->csr);
  struct cb_reordering reordering;
  cb_progress_stage("ordering '%s'", call->file);
  enum cb_status s = cb_reordering_find(&reordering, &indices, call->reorder, diag);
  if (!s) s = cb_csr_reorder(&job->csr, &reordering, diag);
  if (!s && !call->quiet)
    cb_say("order: %s; 32 rows need %.3f sectors of x for each nonzero, before %.3f", methods[reordering.method],
           reordering.sectors, reordering.given_sectors);
  cb_reordering_release(&reordering);
  return s;
}

enum cb_status cb_job_read(struct cb_job *job, const struct cb_call *call, struct cb_diag *diag) {
  const struct cb_progress progress = {cb_progress_report, NULL};
  cb_progress_stage("reading '%s'", call->file);
  enum cb_status s = cb_matrix_read(&job->csr, call->file, &progress, diag);
  if (!s && cb_precision_is_complex(call->options.type)) s = cb_csr_make_complex(&job->csr, diag);
  if (!s) s = cb_symmetry_mirror(&job->csr, &call->options, diag);
  if (!s && call->reorder) s = reorder(job, call, diag);
  if (s) return s;
  snprintf(job->name, sizeof job->name, "%s", call->name ? call->name : job->csr.name);
  cb_symbol_from(job->name, job->symbol);
  job->label = (struct cb_label){job->name, job->symbol, cb_csr_pattern_hash(&job->csr)};
  return CB_OK;
}

static void forget_plan(struct cb_job *job) {
  cb_assignment_free(job->assignment);
  cb_plan_free(job->plan);
  job->assignment = NULL;
  job->plan = NULL;
}

enum cb_status cb_job_plan_for(struct cb_job *job, const struct cb_call *call, const struct cb_target *target,
                               struct cb_diag *diag) {
  cb_progress_stage("analysing '%s' for %s", job->name, target->arch);
  forget_plan(job);
  job->target = *target;
  return cb_plan_build(&job->plan, &job->assignment, &job->csr, target, &call->options, diag);
}

enum cb_status cb_job_plan(struct cb_job *job, const struct cb_call *call, const char *arch,
                           struct cb_diag *diag) {
  struct cb_target target;
  const enum cb_status s = cb_target_find(&target, arch ? arch : "sm_90", diag);
  return s ? s : cb_job_plan_for(job, call, &target, diag);
}

static void say_variant(const struct cb_variant *variant) {
  struct cb_text name = {0};
  cb_variant_name(&name, variant);
  cb_say("%s: %.2f us, predicted %.2f%s%s", cb_text_string(&name), 1e-3 * (double)variant->measured_ns,
         1e-3 * (double)variant->predicted_ns, *variant->reason ? "; " : "", variant->reason);
  cb_text_release(&name);
}

/* With the GPU and NVRTC at hand. */
static enum cb_status tune(struct cb_job *job, const struct cb_call *call, const struct cb_device *device,
                           const struct cb_nvrtc *nvrtc, struct cb_diag *diag) {
  const char *arch = call->arches_count ? call->arches[0] : device->target.arch;
  const struct cb_tune_request request = {.csr = &job->csr,
                                          .options = &call->options,
                                          .device = device,
                                          .nvrtc = nvrtc,
                                          .pattern = job->label.pattern};
  struct cb_tuned tuned;
  if (strcmp(arch, device->target.arch))
    return cb_fail(diag, CB_ERR_ARGUMENT, "'--arch=%s' and '--tune=measure': the GPU that would measure is '%s'", arch,
                   device->target.arch);
  const enum cb_status s = cb_tune(&tuned, &request, diag);
  forget_plan(job);
  job->target = device->target;
  job->plan = tuned.made.plan;
  job->assignment = tuned.made.assignment;
  tuned.made.plan = NULL;
  tuned.made.assignment = NULL;
  for (int i = 0; i < tuned.tuning.count && !s && call->verbose; i++) say_variant(&tuned.tuning.variants[i]);
  cb_tuned_release(&tuned);
  return s;
}

enum cb_status cb_job_tune(struct cb_job *job, const struct cb_call *call, struct cb_diag *diag) {
  struct cb_driver *driver = NULL;
  struct cb_device *device = NULL;
  struct cb_nvrtc *nvrtc = NULL;
  cb_progress_stage("timing kernels for '%s'", job->name);
  enum cb_status s = cb_driver_open(&driver, NULL, diag);
  if (!s) s = cb_nvrtc_open(&nvrtc, NULL, diag);
  if (!s) s = cb_device_open(&device, driver, (int)call->device, diag);
  if (!s) s = tune(job, call, device, nvrtc, diag);
  cb_device_close(device);
  cb_nvrtc_close(nvrtc);
  cb_driver_close(driver);
  return s;
}

static enum cb_status add_selftest(struct cb_job *job, struct cb_diag *diag) {
  const size_t numbers = (size_t)job->csr.rows * (size_t)cb_type_parts(job->plan->sum_type);
  double *expected = cb_alloc(numbers, sizeof *expected), *tolerance = cb_alloc(numbers, sizeof *tolerance);
  enum cb_status s = expected && tolerance ? CB_OK : cb_fail_memory(diag, "self-test", numbers * 16);
  cb_progress_stage("computing the self-test of '%s'", job->name);
  if (!s) cb_oracle_selftest(&job->csr, job->plan, expected, tolerance);
  if (!s) s = cb_blob_add_selftest(&job->blob, expected, tolerance, (int64_t)numbers, diag);
  cb_free(expected);
  cb_free(tolerance);
  return s;
}

enum cb_status cb_job_pack(struct cb_job *job, int selftest, struct cb_diag *diag) {
  cb_progress_stage("packing '%s'", job->name);
  const enum cb_status s =
      cb_pack(&job->blob, job->plan, job->assignment, &job->csr, job->label.pattern, diag);
  return s || !selftest ? s : add_selftest(job, diag);
}

enum cb_status cb_job_emit(struct cb_job *job, const struct cb_call *call, int with_data,
                           struct cb_diag *diag) {
  cb_progress_stage("writing the text for '%s'", job->name);
  cb_source_release(&job->source);
  return cb_source_emit(&job->source, job->plan, &job->label, with_data ? &job->blob : NULL, call->embed,
                        diag);
}

enum cb_status cb_job_compile(struct cb_job *job, struct cb_text *ptx, struct cb_text *cubin,
                              struct cb_diag *diag) {
  const struct cb_nvrtc_options options = {.arch = job->target.arch, .ptx = ptx != NULL};
  struct cb_nvrtc *nvrtc;
  struct cb_compiled compiled = {0};
  enum cb_status s = cb_nvrtc_open(&nvrtc, NULL, diag);
  if (s) return s;
  cb_progress_stage("compiling '%s' for %s", job->name, job->target.arch);
  s = cb_compile_fitting(&compiled, nvrtc, job->source.text, job->name, &options, diag);
  if (!s && compiled.spilled_bytes)
    cb_say("the kernel spills %d bytes per thread on %s: another '--recipe' may be faster", compiled.spilled_bytes,
           job->target.arch);
  if (!s && ptx) cb_text_add_string(ptx, compiled.ptx);
  if (!s && cubin) cb_text_add_bytes(cubin, (const char *)compiled.cubin, compiled.cubin_bytes);
  if (!s && ((ptx && ptx->failed) || (cubin && cubin->failed)))
    s = cb_fail_memory(diag, "compiled kernel", compiled.cubin_bytes);
  cb_compiled_release(&compiled);
  cb_nvrtc_close(nvrtc);
  return s;
}

int64_t cb_job_csr_bytes(const struct cb_job *job) {
  const int64_t value = (int64_t)cb_type_size(job->plan->matrix_type);
  return (job->csr.rows + 1) * (job->csr.wide ? 8 : 4) + job->csr.nnz * (4 + value);
}

void cb_job_release(struct cb_job *job) {
  cb_source_release(&job->source);
  cb_blob_release(&job->blob);
  cb_assignment_free(job->assignment);
  cb_plan_free(job->plan);
  cb_csr_release(&job->csr);
  *job = (struct cb_job){0};
}
