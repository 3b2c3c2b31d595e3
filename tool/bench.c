// SPDX-License-Identifier: Apache-2.0
/* cbgen bench: the kernel on the GPU beside cuSPARSE's algorithms and the memory's own speed. */
#include "tool/job.h"

#include "runtime/bench.h"

static enum cb_status run_bench(const struct cb_call *call, struct cb_diag *diag) {
  struct cb_job job = {0};
  struct cb_bench_result result = {0};
  struct cb_bench *bench = NULL;
  struct cb_text text = {0};
  struct cb_bench_settings settings;
  cb_bench_settings_default(&settings);
  settings.device = (int)call->device;
  if (call->repeat) settings.batches = (int)call->repeat;
  cb_progress_stage("opening the GPU and measuring its memory");
  enum cb_status s = cb_bench_open(&bench, &settings, diag);
  if (!s && !bench->cusparse && !call->quiet) cb_say("no comparison: %s", bench->missing);
  if (!s) s = cb_job_read(&job, call, diag);
  cb_progress_stage("measuring '%s'", call->file);
  if (!s) s = cb_bench_matrix(&result, bench, &job.csr, &call->options, diag);
  if (!s && call->json) s = cb_bench_json(&text, bench, &result, diag);
  if (!s && call->json) cb_text_add_string(&text, "\n");
  if (!s && !call->json) cb_bench_report(&text, bench, &result);
  if (!s) s = cb_print(&text, diag);
  if (!s) s = cb_run_verdict(&result.run, &call->options, diag);
  cb_text_release(&text);
  cb_bench_result_release(&result);
  cb_bench_close(bench);
  cb_job_release(&job);
  return s;
}

const struct cb_verb cb_verb_bench = {
    .name = "bench",
    .arguments = "FILE [OPTION…]",
    .summary = "measure the kernel against cuSPARSE",
    .details =
        "Medians of batches between events, all competitors in turn: the kernel, cuSPARSE's CSR, COO, SELL\n"
        "and BSR where they apply, and a copy and a read of the device memory. Every product is checked.\n",
    .example = "cbgen bench matrix.mtx --json",
    .takes = CB_TAKES_JSON | CB_TAKES_GPU,
    .run = run_bench,
};
