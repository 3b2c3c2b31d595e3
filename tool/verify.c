// SPDX-License-Identifier: Apache-2.0
/* cbgen verify: the kernel of a matrix, or an existing kernel.cu, proved on the host; then compiled for
 * several GPUs, where NVRTC is there to do it.
 *
 * Everything found goes into one report, which is printed as text or as JSON; the exit code follows from it.
 */
#include "tool/job.h"

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "runtime/cuda/cubin.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/verify/epilogue.h"
#include "runtime/verify/kernel_file.h"
#include "runtime/verify/verify.h"
#include "tool/verify_clang.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One row of the table of GPUs. */
struct compiled_for {
  const char *arch;
  enum cb_status
      status; /* CB_OK, CB_ERR_UNSUPPORTED (NVRTC does not know it), CB_ERR_WRONG (spills), others */
  struct cb_kernel_stats worst; /* over the text's kernels */
  double seconds;
};

struct report {
  struct cb_job job; /* of a matrix; empty for a kernel.cu */
  int is_kernel;
  struct cb_text plan; /* the line of the plan that was executed: the job's own changes from GPU to GPU */
  /* execution on the host */
  enum cb_status host;
  char host_message[1024];
  struct cb_verify_report products;  /* a matrix */
  struct cb_verify_file_report file; /* a kernel.cu */
  struct cb_epilogue_report epilogue; /* with --epilogue */
  /* compilation for GPUs */
  enum cb_status nvrtc;
  char nvrtc_message[1024];
  int nvrtc_major, nvrtc_minor;
  struct compiled_for gpus[CB_MAX_ARCHES];
  int gpus_count;
  struct cb_clang_step clang; /* with --clang */
};

/* A step that failed is noted, and the verification goes on. */
static void note(enum cb_status *status, char message[1024], enum cb_status s, const struct cb_diag *diag) {
  if (!s || *status) return;
  *status = s;
  snprintf(message, 1024, "%s", diag->message);
}

/* The plan without its epilogue gives the rows that this gets. */
static enum cb_status verify_epilogue(struct report *report, const struct cb_call *call,
                                      const struct cb_verify_case *with, const struct cb_verify_options *options,
                                      struct cb_diag *diag) {
  struct cb_call plain_call = *call;
  struct cb_job plain = report->job;
  plain_call.options.epilogue = NULL;
  plain_call.options.form = CB_FORM_AX;
  plain_call.options.commit = CB_COMMITS_ONCE;
  plain.plan = NULL;
  plain.assignment = NULL;
  plain.blob = (struct cb_blob){0};
  plain.source = (struct cb_source){0};
  enum cb_status s = cb_job_plan_for(&plain, &plain_call, &report->job.target, diag);
  if (!s) s = cb_job_pack(&plain, 0, diag);
  if (!s) s = cb_job_emit(&plain, &plain_call, 0, diag);
  const struct cb_verify_case one = {&plain.csr,    plain.plan,  plain.assignment,
                                     &plain.source, &plain.blob, plain.symbol};
  if (!s) s = cb_verify(&one, options, &report->products, diag);
  if (!s) s = cb_verify_epilogue(&one, with, options, &report->epilogue, diag);
  plain.csr = (struct cb_csr){0}; /* the report's */
  cb_job_release(&plain);
  return s;
}

static void execute(struct report *report, const struct cb_call *call) {
  struct cb_verify_options options;
  struct cb_diag diag = {0};
  enum cb_status s;
  cb_verify_options_default(&options);
  options.seed = (uint64_t)call->seed;
  options.trace = 1;
  options.checks = cb_call_has(call, "check");
  if (report->is_kernel) {
    cb_progress_stage("executing '%s'", call->file);
    s = cb_verify_file(call->file, &options, &report->file, &diag);
    if (call->verbose && report->file.network)
      cb_say("the self-test of '%s' could reach the network: this system does not let it be cut off", call->file);
  } else {
    const struct cb_job *job = &report->job;
    const struct cb_verify_case one = {&job->csr,    job->plan,  job->assignment,
                                       &job->source, &job->blob, job->symbol};
    cb_progress_stage("executing the kernel of '%s'", job->name);
    s = job->plan->statements ? verify_epilogue(report, call, &one, &options, &diag)
                              : cb_verify(&one, &options, &report->products, &diag);
  }
  note(&report->host, report->host_message, s, &diag);
}

/* Reads what the kernels take; one that spills is as wrong as one that does not compile. */
static enum cb_status inspect(struct compiled_for *row, const struct cb_compiled *compiled,
                              struct cb_diag *diag) {
  struct cb_cubin_stats stats;
  const enum cb_status s = cb_cubin_stats(&stats, compiled->cubin, compiled->cubin_bytes, diag);
  if (s) return s;
  row->worst = cb_cubin_stats_worst(&stats);
  cb_cubin_stats_release(&stats);
  if (row->worst.stack_bytes)
    return cb_fail(diag, CB_ERR_WRONG, "the kernel spills %d bytes per thread on %s", row->worst.stack_bytes,
                   row->arch);
  return CB_OK;
}

static void compile_for(struct report *report, const struct cb_nvrtc *nvrtc, const char *arch,
                        const char *text, const char *name) {
  struct compiled_for *row = &report->gpus[report->gpus_count++];
  const struct cb_nvrtc_options options = {.arch = arch, .strict = 1};
  struct cb_compiled compiled = {0};
  struct cb_diag diag = {0};
  row->arch = arch;
  if (!cb_nvrtc_supports(nvrtc, arch)) { /* an older NVRTC: the table says so, and nothing is wrong */
    row->status = CB_ERR_UNSUPPORTED;
    return;
  }
  cb_progress_stage("compiling '%s' for %s", name, arch);
  row->status = cb_nvrtc_compile(&compiled, nvrtc, text, name, &options, &diag);
  row->seconds = compiled.seconds;
  if (!row->status) row->status = inspect(row, &compiled, &diag);
  note(&report->nvrtc, report->nvrtc_message, row->status, &diag);
  cb_compiled_release(&compiled);
}

/* The architectures of the table, unless there is an --arch. Returns how many. */
static int list_arches(const char *arches[CB_MAX_ARCHES], const struct cb_call *call) {
  int count = 0;
  for (; count < call->arches_count; count++) arches[count] = call->arches[count];
  if (count) return count;
  for (const struct cb_architecture *row = cb_architecture_table; *row->target.arch && count < CB_MAX_ARCHES; row++)
    if (row->verified) arches[count++] = row->target.arch;
  return count;
}

/* Plans differ from GPU to GPU, so a matrix is planned again for each; a kernel.cu is compiled as it stands. */
static void compile_all(struct report *report, const struct cb_call *call, const char *text) {
  struct cb_nvrtc *nvrtc;
  struct cb_diag diag = {0};
  enum cb_status s = cb_nvrtc_open(&nvrtc, NULL, &diag);
  note(&report->nvrtc, report->nvrtc_message, s, &diag);
  if (s) return;
  cb_nvrtc_version(nvrtc, &report->nvrtc_major, &report->nvrtc_minor);
  const char *arches[CB_MAX_ARCHES];
  const int count = list_arches(arches, call);
  for (int i = 0; i < count && !s; i++) {
    const char *arch = arches[i];
    if (!report->is_kernel) {
      if (strcmp(report->job.target.arch, arch)) {
        s = cb_job_plan(&report->job, call, arch, &diag);
        if (!s) s = cb_job_emit(&report->job, call, 0, &diag);
      }
      text = report->job.source.text;
    }
    if (!s) compile_for(report, nvrtc, arch, text, report->is_kernel ? call->file : report->job.name);
  }
  note(&report->nvrtc, report->nvrtc_message, s, &diag);
  cb_nvrtc_close(nvrtc);
}

static enum cb_status verify_matrix(struct report *report, const struct cb_call *call, struct cb_diag *diag) {
  struct cb_job *job = &report->job;
  enum cb_status s = cb_job_read(job, call, diag);
  if (!s) s = cb_job_plan(job, call, call->arches_count ? call->arches[0] : NULL, diag);
  if (!s) s = cb_plan_check(job->plan, diag);
  if (!s) s = cb_assignment_check(job->plan, job->assignment, diag);
  if (!s) s = cb_job_pack(job, 0, diag);
  if (!s) s = cb_job_emit(job, call, 0, diag);
  if (s) return s;
  cb_text_add_string(&report->plan, job->plan->line);
  execute(report, call);
  cb_clang_step(&report->clang, call, job->source.text, job->plan); /* before it is planned for other GPUs */
  compile_all(report, call, NULL);
  return CB_OK;
}

static enum cb_status verify_kernel(struct report *report, const struct cb_call *call, struct cb_diag *diag) {
  struct cb_mapping mapping;
  struct cb_text text = {0};
  const enum cb_status s = cb_file_map(&mapping, call->file, diag);
  if (s) return s;
  cb_text_add_bytes(&text, mapping.bytes, mapping.length);
  cb_file_unmap(&mapping);
  execute(report, call);
  cb_clang_step(&report->clang, call, cb_text_string(&text), NULL);
  compile_all(report, call, cb_text_string(&text));
  cb_text_release(&text);
  return CB_OK;
}

/* ---- the report as text */

static void print_products(struct cb_text *text, const struct cb_verify_report *products,
                           const struct cb_epilogue_report *epilogue) {
  cb_text_add(
      text,
      "host     %d kinds of products, %d runs in varied order: %lld rows compared, %lld of them exactly\n",
      products->products, products->runs, (long long)products->rows, (long long)products->exact_rows);
  if (epilogue->rows)
    cb_text_add(text, "         epilogue: %d vectors and %d results as the host computes them, bit for bit\n",
                epilogue->vectors, epilogue->results);
  if (products->checks) cb_text_add_string(text, "         every index was checked before it was used\n");
  cb_text_add(text, "         largest error %.2g of the bound; compiled in %.1f s, run in %.1f s\n",
              products->worst_ratio, products->compile_seconds, products->run_seconds);
  if (products->unbounded_rows)
    cb_text_add(text, "         %lld rows may overflow: any result was accepted there\n",
                (long long)products->unbounded_rows);
}

/* What is wrong with the first wrong row: "trace    …". */
static void print_trace(struct cb_text *text, const char *trace) {
  for (const char *head = "trace"; *trace; head = "") {
    const size_t length = strcspn(trace, "\n");
    cb_text_add(text, "%-8s %.*s\n", head, (int)length, trace);
    trace += length + (trace[length] == '\n');
  }
}

static void print_file(struct cb_text *text, const struct cb_verify_file_report *file) {
  cb_text_add(text, "host     self-test: %.*s\n", (int)strcspn(file->output, "\n"), file->output);
  cb_text_add(text, "         %d runs in varied order; compiled in %.1f s, run in %.1f s\n", file->runs,
              file->compile_seconds, file->run_seconds);
}

static void print_gpus(struct cb_text *text, const struct report *report) {
  if (!report->gpus_count) {
    cb_text_add(text, "GPUs     not compiled: %s\n", report->nvrtc_message);
    return;
  }
  cb_text_add(text, "GPUs     NVRTC %d.%d   registers   spills   shared memory   code       compiled in\n",
              report->nvrtc_major, report->nvrtc_minor);
  for (int i = 0; i < report->gpus_count; i++) {
    const struct compiled_for *row = &report->gpus[i];
    if (row->status == CB_ERR_UNSUPPORTED)
      cb_text_add(text, "         %-10s this NVRTC does not compile for it\n", row->arch);
    else if (row->status && row->status != CB_ERR_WRONG)
      cb_text_add(text, "         %-10s failed\n", row->arch);
    else
      cb_text_add(text, "         %-10s   %9d   %4d B   %11d B   %7d B   %4.0f ms\n", row->arch,
                  row->worst.registers, row->worst.stack_bytes, row->worst.static_shared,
                  row->worst.code_bytes, 1e3 * row->seconds);
  }
}

static enum cb_status print_text(struct cb_text *text, const struct report *report, const struct cb_call *call,
                                 struct cb_diag *diag) {
  const struct cb_csr *csr = &report->job.csr;
  if (report->is_kernel)
    cb_text_add(text, "kernel   %s\n", call->file);
  else
    cb_text_add(text, "matrix   %s: %lld x %lld, %lld nonzeros, as %s\nplan     %s\n", report->job.name,
                (long long)csr->rows, (long long)csr->cols, (long long)csr->nnz,
                cb_precision_names[call->options.type], cb_text_string(&report->plan));
  if (report->host) {
    cb_text_add(text, "host     %s\n", report->host == CB_ERR_WRONG ? "WRONG" : "not executed");
    print_trace(text, report->products.trace);
  } else if (report->is_kernel)
    print_file(text, &report->file);
  else
    print_products(text, &report->products, &report->epilogue);
  cb_clang_print(text, &report->clang);
  print_gpus(text, report);
  return report->plan.failed ? cb_fail_memory(diag, "the line of the plan", report->plan.length) : CB_OK;
}

/* ---- the report as JSON */

static json_t *gpus_json(const struct report *report, int *failed) {
  const struct cb_json gpus = cb_json_array(failed);
  for (int i = 0; i < report->gpus_count; i++) {
    const struct compiled_for *row = &report->gpus[i];
    cb_json_append(gpus, json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:f}", "arch", row->arch, "status",
                                          cb_status_name(row->status), "registers", row->worst.registers,
                                          "spill_bytes", row->worst.stack_bytes, "static_shared_bytes",
                                          row->worst.static_shared, "code_bytes", row->worst.code_bytes,
                                          "compile_seconds", row->seconds));
  }
  return gpus.json;
}

static json_t *host_json(const struct report *report) {
  const char *status = cb_status_name(report->host);
  if (report->is_kernel)
    return json_pack("{s:s, s:s, s:s, s:i, s:f, s:f}", "status", status, "message", report->host_message,
                     "output", report->file.output, "runs", report->file.runs, "compile_seconds",
                     report->file.compile_seconds, "run_seconds", report->file.run_seconds);
  const struct cb_verify_report *products = &report->products;
  return json_pack("{s:s, s:s, s:s, s:i, s:i, s:I, s:I, s:I, s:f, s:f, s:f}", "status", status, "message",
                   report->host_message, "trace", products->trace, "products", products->products, "runs", products->runs, "rows",
                   (json_int_t)products->rows, "exact_rows", (json_int_t)products->exact_rows,
                   "unbounded_rows", (json_int_t)products->unbounded_rows, "worst_ratio",
                   products->worst_ratio < 1e300 ? products->worst_ratio : 1e300, "compile_seconds",
                   products->compile_seconds, "run_seconds", products->run_seconds);
}

static enum cb_status print_json(struct cb_text *text, const struct report *report, const struct cb_call *call,
                                 struct cb_diag *diag) {
  int failed = report->plan.failed;
  const struct cb_json document = cb_json_object(&failed);
  cb_json_set_text(document, "file", call->file);
  if (!report->is_kernel) cb_json_set_text(document, "plan", cb_text_string(&report->plan));
  cb_json_set(document, "host", host_json(report));
  cb_json_set(document, "nvrtc",
              json_pack("{s:s, s:s}", "status", cb_status_name(report->nvrtc), "message", report->nvrtc_message));
  if (report->epilogue.rows)
    cb_json_set(document, "epilogue",
                json_pack("{s:I, s:i, s:i}", "rows", (json_int_t)report->epilogue.rows, "vectors",
                          report->epilogue.vectors, "results", report->epilogue.results));
  if (report->products.checks) cb_json_set(document, "checked", json_true());
  if (report->clang.asked) cb_json_set(document, "clang", cb_clang_json(&report->clang, &failed));
  cb_json_set(document, "gpus", gpus_json(report, &failed));
  const enum cb_status s =
      cb_json_write(text, document, JSON_INDENT(2) | JSON_REAL_PRECISION(9), "a report as JSON", diag);
  cb_text_add_string(text, "\n");
  return s;
}

/* A missing NVRTC or libclang is no failure: the report says that this part was not done. */
static enum cb_status verdict(const struct report *report, struct cb_diag *diag) {
  if (report->host) return cb_fail_lines(diag, report->host, report->host_message);
  if (report->clang.status && report->clang.status != CB_ERR_MISSING)
    return cb_fail_lines(diag, report->clang.status, report->clang.message);
  if (report->nvrtc && report->nvrtc != CB_ERR_MISSING)
    return cb_fail_lines(diag, report->nvrtc, report->nvrtc_message);
  return CB_OK;
}

static enum cb_status check_call(const struct cb_call *call, struct cb_diag *diag) {
  return cb_check_kernel_call(call, "verify", diag);
}

static enum cb_status run_verify(const struct cb_call *call, struct cb_diag *diag) {
  struct report *report = cb_calloc(1, sizeof *report);
  struct cb_text text = {0};
  if (!report) return cb_fail_memory(diag, "report", sizeof *report);
  report->is_kernel = cb_is_kernel_file(call->file);
  enum cb_status s =
      report->is_kernel ? verify_kernel(report, call, diag) : verify_matrix(report, call, diag);
  if (!s && call->json) s = print_json(&text, report, call, diag);
  if (!s && !call->json && !call->quiet) s = print_text(&text, report, call, diag);
  if (!s) s = cb_print(&text, diag);
  if (!s) s = verdict(report, diag);
  cb_text_release(&text);
  cb_text_release(&report->plan);
  cb_job_release(&report->job);
  cb_free(report);
  return s;
}

const struct cb_verb cb_verb_verify = {
    .name = "verify",
    .arguments = "FILE|kernel.cu [OPTION…]",
    .summary = "prove a kernel right without a GPU",
    .details =
        "Executes the kernel of a matrix on this machine, every warp emulated, under AddressSanitizer and\n"
        "UBSan, and checks every row. A kernel.cu runs its self-test, and what its kernel computed is\n"
        "compared with its data. That executes the file's code: confined (limits, no network), but with\n"
        "your rights to read and write files, so verify only what you would run. Where NVRTC is present the\n"
        "text is also compiled for sm_80, sm_89, sm_90 and sm_100 (or --arch); spills are errors.\n",
    .example = "cbgen verify matrix.mtx --type=f32",
    .takes = CB_TAKES_ARCHES | CB_TAKES_JSON | CB_TAKES_SEED | CB_TAKES_CLANG,
    .check = check_call,
    .run = run_verify,
};
