// SPDX-License-Identifier: Apache-2.0
/* cbgen run: the whole way to one product on the GPU, checked and timed. */
#include "tool/job.h"

#include "base/environment.h"
#include "runtime/measure/bench.h"
#include "runtime/verify/kernel_file.h"

#include <inttypes.h>

/* runtime/ finds out whether the product is wrong; what follows from that is decided here. */
enum cb_status cb_run_verdict(const struct cb_run_result *result, const struct cb_options *options,
                              struct cb_diag *diag) {
  if (result->check.wrong)
    return cb_fail(diag, CB_ERR_WRONG,
                   "row %" PRId64 " is %.17g; %.17Lg was expected, give or take %.3g (%" PRId64
                   " rows are wrong)",
                   result->check.first_wrong, result->check.got, result->check.expected,
                   result->check.tolerance, result->check.wrong);
  if (!result->repeatable && !result->has_atomics && options->atomics != CB_ON)
    return cb_fail(diag, CB_ERR_WRONG, "a second product gave other bits");
  if (result->emulated && result->first_other >= 0 && options->atomics != CB_ON)
    return cb_fail(diag, CB_ERR_WRONG, "row %" PRId64 " has other bits than in the emulation", result->first_other);
  return CB_OK;
}

static struct cb_bench_settings settings_of(const struct cb_call *call) {
  struct cb_bench_settings settings;
  cb_bench_settings_default(&settings);
  settings.device = (int)call->device;
  settings.baselines = settings.ceilings = 0;
  settings.emulate = call->emulate;
  settings.debug = cb_environment("CBGEN_DEBUG") != NULL; /* for compute-sanitizer: see bench/README.md */
  if (settings.debug) settings.repetitions = settings.batches = settings.launches = 1;
  if (call->repeat) settings.batches = (int)call->repeat;
  return settings;
}

static enum cb_status print_result(const struct cb_call *call, const struct cb_bench *bench,
                                   const struct cb_run_result *result, struct cb_diag *diag) {
  struct cb_text text = {0};
  enum cb_status s = CB_OK;
  if (call->json) {
    s = cb_run_json(&text, bench, result, diag);
    cb_text_add_string(&text, "\n");
  } else {
    cb_run_report(&text, bench, result);
  }
  if (!s) s = cb_print(&text, diag);
  cb_text_release(&text);
  return s;
}

static enum cb_status run_run(const struct cb_call *call, struct cb_diag *diag) {
  const struct cb_bench_settings settings = settings_of(call);
  struct cb_job job = {0};
  struct cb_run_result result = {0};
  struct cb_bench *bench = NULL;
  cb_progress_stage("opening the GPU");
  enum cb_status s = cb_bench_open(&bench, &settings, diag);
  const int is_kernel = cb_is_kernel_file(call->file);
  if (!s && !is_kernel) s = cb_job_read(&job, call, diag);
  if (!s) cb_progress_stage("running '%s'", call->file);
  if (!s)
    s = is_kernel ? cb_run_kernel(&result, bench, call->file, diag)
                  : cb_run_matrix(&result, bench, &job.csr, &call->options, diag);
  if (!s) s = print_result(call, bench, &result, diag);
  if (!s) s = cb_run_verdict(&result, &call->options, diag);
  cb_run_result_release(&result);
  cb_bench_close(bench);
  cb_job_release(&job);
  return s;
}

enum cb_status cb_check_kernel_call(const struct cb_call *call, const char *verb, struct cb_diag *diag) {
  static const char *const of_matrices[] = {"emulate", "candidates", "no-baselines", "baseline", "sweep", "check"};
  const char *given = call->option_given;
  if (!cb_is_kernel_file(call->file)) return CB_OK;
  for (size_t i = 0; !given && i < sizeof of_matrices / sizeof *of_matrices; i++)
    if (cb_call_has(call, of_matrices[i])) given = of_matrices[i];
  if (!given) return CB_OK;
  return cb_fail(diag, CB_ERR_ARGUMENT, "'--%s' means nothing to '%s' of a kernel that exists: give it the matrix", given,
                 verb);
}

static enum cb_status check_run(const struct cb_call *call, struct cb_diag *diag) {
  return cb_check_kernel_call(call, "run", diag);
}

const struct cb_verb cb_verb_run = {
    .name = "run",
    .arguments = "FILE|kernel.cu [OPTION…]",
    .summary = "compile the kernel, multiply on the GPU, check, time",
    .details = "Plans for the GPU that is there, compiles with NVRTC, multiplies, compares every row with a\n"
               "long-double product and reports how long each step took. Needs the CUDA driver and NVRTC.\n"
               "A kernel.cu is compiled as it stands, run with its data, and compared with what its self-test\n"
               "expects; nothing of it is executed but its kernels.\n",
    .example = "cbgen run matrix.mtx --type=f32",
    .takes = CB_TAKES_JSON | CB_TAKES_GPU | CB_TAKES_RUN | CB_TAKES_MEASURE,
    .check = check_run,
    .run = run_run,
};
