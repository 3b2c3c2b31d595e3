// SPDX-License-Identifier: Apache-2.0
/* cbgen bench: the kernel on the GPU beside cuSPARSE's algorithms and the memory's own speed. */
#include "tool/sweep.h"

#include "base/file.h"
#include "runtime/measure/bench.h"
#include "runtime/measure/many.h"
#include "runtime/verify/kernel_file.h"

#include <stdio.h>
#include <string.h>

/* Against the baselines. `job` NULL: a kernel.cu, for which there are none. */
static enum cb_status compare(struct cb_bench *bench, const struct cb_job *job, const struct cb_call *call,
                              struct cb_diag *diag) {
  struct cb_bench_result result = {0};
  struct cb_text text = {0};
  cb_progress_stage("measuring '%s'", call->file);
  enum cb_status s = job ? cb_bench_matrix(&result, bench, &job->csr, &call->options, diag)
                         : cb_bench_kernel(&result, bench, call->file, diag);
  result.file = call->file;
  if (!s && call->json) s = cb_bench_json(&text, bench, &result, diag);
  if (!s && call->json) cb_text_add_string(&text, "\n");
  if (!s && !call->json) cb_bench_report(&text, bench, &result);
  if (!s) s = cb_print(&text, diag);
  if (!s) s = cb_run_verdict(&result.run, &call->options, diag);
  cb_text_release(&text);
  cb_bench_result_release(&result);
  return s;
}

/* With several vectors, against cuSPARSE's SpMM. */
static enum cb_status compare_many(struct cb_bench *bench, const struct cb_job *job, const struct cb_call *call,
                                   struct cb_diag *diag) {
  struct cb_many_result result = {0};
  struct cb_text text = {0};
  cb_progress_stage("measuring '%s'", call->file);
  enum cb_status s = cb_bench_many(&result, bench, &job->csr, &call->options, diag);
  result.file = call->file;
  if (!s && call->json) s = cb_many_json(&text, bench, &result, diag);
  if (!s && call->json) cb_text_add_string(&text, "\n");
  if (!s && !call->json) cb_many_report(&text, bench, &result);
  if (!s) s = cb_print(&text, diag);
  for (int i = 0; i < CB_MANY_BASELINES && !s; i++)
    if (result.entries[i].wrong)
      s = cb_fail(diag, CB_ERR_WRONG, "%lld rows are wrong, with vectors by %s", (long long)result.entries[i].wrong,
                  cb_dense_order_names[result.entries[i].order]);
  cb_text_release(&text);
  cb_many_result_release(&result);
  return s;
}

static enum cb_status bench_one(const struct cb_call *call, struct cb_bench *bench, struct cb_diag *diag) {
  struct cb_job job = {0};
  const int is_kernel = cb_is_kernel_file(call->file); /* in a list options are the matrices' */
  if (is_kernel) return call->sweep.count ? cb_check_kernel_call(call, "bench", diag) : compare(bench, NULL, call, diag);
  enum cb_status s = cb_job_read(&job, call, diag);
  const int is_many = call->options.vectors > 1;
  if (!s) s = (call->sweep.count ? cb_sweep_bench : is_many ? compare_many : compare)(bench, &job, call, diag);
  cb_job_release(&job);
  return s;
}

/* Every line of the file is a matrix, but for empty ones and those that start with '#'. One that fails is
 * reported, and the others go on; the status is that of the first. */
static enum cb_status bench_list(const struct cb_call *call, const char *path, struct cb_bench *bench,
                                 struct cb_diag *diag) {
  struct cb_mapping list;
  struct cb_diag first = {0};
  int matrices = 0, failures = 0;
  enum cb_status s = cb_file_map(&list, path, diag);
  if (s) return s;
  for (size_t at = 0, length; at < list.length; at += length + 1) {
    struct cb_call one = *call;
    struct cb_diag failure = {0};
    char line[4096];
    const char *end = memchr(list.bytes + at, '\n', list.length - at);
    length = end ? (size_t)(end - list.bytes) - at : list.length - at;
    if (!length || list.bytes[at] == '#' || length >= sizeof line) continue;
    memcpy(line, list.bytes + at, length);
    line[length] = 0;
    one.file = line;
    matrices++;
    const enum cb_status outcome = bench_one(&one, bench, &failure);
    fflush(stdout); /* what is measured stays, whatever ends the process */
    if (!outcome) continue;
    cb_say("'%s': %s", line, failure.message);
    if (!failures++) first = failure;
  }
  cb_file_unmap(&list);
  if (!failures) return CB_OK;
  return cb_fail(diag, first.status, "%d of the %d matrices in '%s' failed", failures, matrices, path);
}

static enum cb_status run_bench(const struct cb_call *call, struct cb_diag *diag) {
  struct cb_bench *bench = NULL;
  struct cb_bench_settings settings;
  cb_bench_settings_default(&settings);
  settings.device = (int)call->device;
  if (call->repeat) settings.batches = (int)call->repeat;
  settings.candidates = call->candidates;
  settings.graphs = call->graphs;
  settings.baselines = !call->no_baselines && !call->sweep.count && !cb_is_kernel_file(call->file);
  settings.ceilings = !call->sweep.count;
  settings.plugins = call->plugins;
  settings.plugins_count = call->plugins_count;
  cb_progress_stage("opening the GPU and measuring its memory");
  enum cb_status s = cb_bench_open(&bench, &settings, diag);
  if (!s && !bench->cusparse && settings.baselines && !call->quiet) cb_say("no comparison: %s", bench->missing);
  if (!s) s = *call->file == '@' ? bench_list(call, call->file + 1, bench, diag) : bench_one(call, bench, diag);
  cb_bench_close(bench);
  return s;
}

static enum cb_status check_bench(const struct cb_call *call, struct cb_diag *diag) {
  const enum cb_status s = cb_check_kernel_call(call, "bench", diag);
  if (s) return s;
  static const char *const without[] = {"candidates", "no-baselines", "baseline", NULL};
  for (int i = 0; call->sweep.count && without[i]; i++)
    if (cb_call_has(call, without[i]))
      return cb_fail(diag, CB_ERR_ARGUMENT, "'--%s' has no effect with '--sweep', which times the kernel alone",
                     without[i]);
  return CB_OK;
}

const struct cb_verb cb_verb_bench = {
    .name = "bench",
    .arguments = "FILE|kernel.cu [OPTION…]",
    .summary = "measure the kernel against cuSPARSE",
    .details = "Medians of batches between events, all competitors in turn: the kernel, cuSPARSE's CSR, SpMVOp, COO,\n"
               "SELL and BSR where they apply, and a copy and a read of the device memory. Every product is checked.\n"
               "CBGEN_CUSPARSE names another cuSPARSE than the installed one; every output says its version.\n"
               "A kernel.cu brings no matrix for cuSPARSE: it is measured beside the memory's own speed alone.\n"
               "'@LIST' instead of FILE: each line of the file LIST is a matrix, all measured in one process.\n",
    .example = "cbgen bench matrix.mtx --json",
    .takes = CB_TAKES_JSON | CB_TAKES_GPU | CB_TAKES_BENCH | CB_TAKES_MEASURE | CB_TAKES_SWEEP,
    .check = check_bench,
    .run = run_bench,
};
