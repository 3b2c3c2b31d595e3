// SPDX-License-Identifier: Apache-2.0
/* cbgen report: everything about one matrix and its kernel as one page of HTML. The page stands in
 * templates/report.html.in, its style and script beside it; here is what is found out, in the order of the pipeline,
 * and how the page comes together.
 *
 *   report_matrix.c    where the nonzeros are, rows and diagonals      report_plan.c   plan and candidates
 *   report_roofline.c  what bounds a product, and the opponents        report_text.c   constants, text, instructions
 *   report_solutions.c residuals of solvers */
#include "tool/report.h"

#include "tool/candidates.h"

#include "analysis/semiring.h"
#include "base/clock.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/cuda/spills.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CELLS = 320, SMALL_FACTOR = 4 };

/* ---- numbers for people */

const char *cb_report_count(char text[48], int64_t number) {
  char digits[24];
  const int length = snprintf(digits, sizeof digits, "%" PRId64, number < 0 ? -number : number);
  int at = snprintf(text, 48, "%s", number < 0 ? "−" : "");
  for (int i = 0; i < length; i++)
    at += snprintf(text + at, (size_t)(48 - at), "%s%c", i && (length - i) % 3 == 0 ? "\u202f" : "", digits[i]);
  return text;
}

const char *cb_report_short(char text[48], double number) {
  snprintf(text, 48, "%.*f", number >= 100 ? 0 : number >= 10 ? 1 : 2, number);
  return text;
}

const char *cb_report_share(char text[48], int64_t part, int64_t whole) {
  const double percent = whole ? 100.0 * (double)part / (double)whole : 0;
  snprintf(text, 48, !part ? "0 %%" : percent < 0.05 ? "< 0.1 %%" : "%.1f %%", percent);
  return text;
}

double cb_report_gflops(const struct cb_report *report, double us) {
  return us > 0 ? 2e-3 * (double)report->job.csr.nnz / us : 0;
}

double cb_report_each(const struct cb_report *report, int64_t bytes) {
  return report->job.csr.nnz ? (double)bytes / (double)report->job.csr.nnz : 0;
}

double cb_report_us(const struct cb_report *report) {
  return report->bench ? report->measured.run.timing.us : 1e-3 * (double)report->job.plan->cost.ns;
}

double cb_report_candidate_us(const struct cb_report *report, int number) {
  const struct cb_run_result *run = &report->measured.run;
  const struct cb_plan *plan = report->job.plan;
  if (!report->bench) return 0;
  if (!plan->candidates_count || !strcmp(plan->candidates[number].recipe, plan->recipe)) return run->timing.us;
  return number < run->candidates_count ? report->measured.candidate_us[number] : 0;
}

/* ---- the page */

struct cb_html *cb_report_pieces(struct cb_report_page *page, const char *name) {
  struct cb_html *pieces = &page->pieces[page->count];
  page->names[page->count++] = name;
  *pieces = cb_report_own(page);
  return pieces;
}

struct cb_html cb_report_own(const struct cb_report_page *page) {
  return (struct cb_html){.file = page->html.file, .diag = page->html.diag};
}

void cb_report_bar(struct cb_html *rows, const struct cb_report_bar *bar) {
  cb_html_set(rows, "label", "%s", bar->label);
  cb_html_set(rows, "class", "%s", bar->class);
  cb_html_set(rows, "width", "%.2f", bar->width);
  cb_html_set(rows, "count", "%s", bar->count);
  cb_html_set(rows, "share", "%s", bar->share);
  cb_html_add(rows, "bar");
}

void cb_report_number(struct cb_html *html, const char *name, double number) {
  cb_html_set(html, name, "%.1f", number);
}

void cb_report_line(struct cb_html *html, double x1, double y1, double x2, double y2) {
  cb_report_number(html, "x1", x1);
  cb_report_number(html, "y1", y1);
  cb_report_number(html, "x2", x2);
  cb_report_number(html, "y2", y2);
}

void cb_report_tick(struct cb_html *marks, double x, double y, int vertical, double end, const char *text) {
  cb_report_line(marks, x, y, vertical ? end : x, vertical ? y : end);
  cb_report_number(marks, "x", vertical ? x - 6 : x);
  cb_report_number(marks, "y", vertical ? y + 4 : y + 16);
  cb_html_set(marks, "anchor", vertical ? "end" : "middle");
  cb_html_set(marks, "text", "%s", text);
  cb_html_add(marks, "grid");
}

void cb_report_box(struct cb_html *marks, double left, double top, double right, double bottom) {
  cb_report_line(marks, left, top, right, bottom);
  cb_html_add(marks, "box");
}

static const char *counted(char text[64], int count, const char *one, const char *several) {
  snprintf(text, 64, "%d %s", count, count == 1 ? one : several);
  return text;
}

static void set_time(struct cb_html *html, const struct cb_report *report) {
  const struct cb_timing *timing = &report->measured.run.timing;
  char number[48];
  cb_html_set(html, "time", "%s", cb_report_short(number, cb_report_us(report)));
  if (report->bench)
    cb_html_set(html, "time_more", "%.2f to %.2f; predicted: %.2f", timing->least_us, timing->most_us,
                report->measured.run.predicted_us);
  else
    cb_html_set(html, "time_more", "by the cost model, for %s", report->job.target.arch);
}

/* A wrong product is told after the report is written, which says it too. */
static enum cb_status verdict(const struct cb_report *report, struct cb_diag *diag) {
  return report->bench ? cb_run_verdict(&report->measured.run, &report->call->options, diag) : CB_OK;
}

static void set_verdict(struct cb_html *html, const struct cb_report *report) {
  struct cb_diag why = {0};
  if (!verdict(report, &why)) return;
  cb_html_has(html, "wrong");
  cb_html_set(html, "wrong_words", "%s", why.message);
}

static void set_head(struct cb_html *html, const struct cb_report *report) {
  const struct cb_plan *plan = report->job.plan;
  struct cb_text why = {0};
  char number[64], pattern[33];
  cb_candidates_why(&why, plan);
  cb_hash_hex(report->job.label.pattern, pattern);
  cb_html_set(html, "version", "%s", CB_VERSION);
  cb_html_set(html, "name", "%s", report->job.name);
  cb_html_set(html, "rows", "%s", cb_report_count(number, plan->rows));
  cb_html_set(html, "cols", "%s", cb_report_count(number, plan->cols));
  cb_html_set(html, "nonzeros", "%s", cb_report_count(number, plan->nnz));
  cb_html_set(html, "types", "%s, values %s", cb_plan_types_name(plan), cb_plan_values_fixed(plan) ? "fixed" : "may change");
  cb_html_set(html, "product", "%s", cb_semiring_equation(plan->semiring, plan->form));
  cb_html_set(html, "gflops", "%s", cb_report_short(number, cb_report_gflops(report, cb_report_us(report))));
  cb_html_set(html, "each", "%.2f", cb_report_each(report, cb_plan_bytes(plan)));
  cb_html_set(html, "csr_each", "%.2f", cb_report_each(report, cb_job_csr_bytes(&report->job)));
  cb_html_set(html, "recipe", "%s", plan->recipe);
  cb_html_set(html, "region_count", "%s", counted(number, plan->regions_count, "region", "regions"));
  cb_html_set(html, "launch_count", "%s", counted(number, plan->launches_count, "launch", "launches"));
  cb_html_set(html, "because", "%s", cb_text_string(&why));
  cb_html_set(html, "pattern", "%s", pattern);
  if (report->bench) cb_html_has(html, "measuring");
  set_time(html, report);
  set_verdict(html, report);
  cb_text_release(&why);
}

/* ---- set-up by parts */

struct part {
  const char *name;
  double seconds;
};

static void add_part(struct cb_html *rows, const struct part *part, double longest, double all) {
  char share[48], time[48];
  snprintf(share, sizeof share, "%.1f %%", all > 0 ? 100 * part->seconds / all : 0);
  snprintf(time, sizeof time, part->seconds < 1 ? "%.1f ms" : "%.0f ms", 1e3 * part->seconds);
  const struct cb_report_bar bar = {part->name, time, share, "r0", longest > 0 ? 100 * part->seconds / longest : 0};
  cb_report_bar(rows, &bar);
}

static void add_setup(struct cb_report_page *page, const struct cb_report *report) {
  const struct cb_report_seconds *own = &report->seconds;
  const struct cb_stages *stages = &report->measured.run.stages;
  const int measured = report->bench != NULL;
  const struct part parts[] = {{"reading the file", own->read},
                               {"analysis and plan", measured ? stages->plan : own->plan},
                               {"packing the data", measured ? stages->pack : own->pack},
                               {"writing the text", measured ? stages->emit : own->emit},
                               {"compiling by NVRTC", measured ? stages->compile : own->compile},
                               {"loading the kernel", stages->load},
                               {"uploading the data", stages->upload}};
  const int count = (int)(sizeof parts / sizeof *parts) - (measured ? 0 : *report->compiler ? 2 : 3);
  struct cb_html *rows = cb_report_pieces(page, "SETUP");
  double longest = 0, all = 0;
  for (int i = 0; i < count; i++) {
    longest = fmax(longest, parts[i].seconds);
    all += parts[i].seconds;
  }
  for (int i = 0; i < count; i++) add_part(rows, &parts[i], longest, all);
  cb_html_set(&page->html, "setup_words",
              "What came before the first product on this machine, %.0f ms in all%s. The library does it once; a cached kernel "
              "is only loaded and its data uploaded.",
              1e3 * all, measured ? "" : "; without a GPU nothing was loaded or uploaded");
}

static const char *embedded_text(const char *name) {
  const struct cb_embedded_file *file = cb_embedded_find(name);
  return file ? file->text : "";
}

/* All pieces to their placeholders, and the page as a whole. */
static void finish(struct cb_report_page *page) {
  for (int i = 0; i < page->count; i++)
    cb_html_markup(&page->html, page->names[i], cb_html_take(&page->pieces[i], &page->html));
  cb_html_markup(&page->html, "STYLE", embedded_text("templates/report.css.in"));
  cb_html_markup(&page->html, "SCRIPT", embedded_text("templates/report.js.in"));
  cb_html_add(&page->html, "page");
}

static enum cb_status write_page(const struct cb_report *report, struct cb_outputs *outputs, struct cb_diag *diag) {
  struct cb_report_page page = {.html = {.file = report->file, .diag = diag}};
  cb_progress_stage("writing the report on '%s'", report->job.name);
  set_head(&page.html, report);
  cb_report_matrix(&page, report);
  cb_report_plan(&page, report);
  cb_report_candidates(&page, report);
  cb_report_roofline(&page, report);
  cb_report_solutions(&page, report);
  add_setup(&page, report);
  cb_report_text(&page, report);
  finish(&page);
  enum cb_status s = page.html.status;
  if (!s) s = cb_outputs_add(outputs, report->call->output, page.html.text.bytes, page.html.text.length, diag);
  for (int i = 0; i < page.count; i++) cb_html_release(&page.pieces[i]);
  cb_html_release(&page.html);
  return s;
}

/* ---- what is found out */

/* Adds to *seconds what passed since *before, which is now then. */
static void note(double *seconds, double *before) {
  const double now = cb_seconds();
  *seconds = now - *before;
  *before = now;
}

/* Whoever names a GPU or how often to measure wants it; else what is missing is said in the report. */
static enum cb_status open_gpu(struct cb_report *report, struct cb_diag *diag) {
  const struct cb_call *call = report->call;
  const int wanted = cb_call_has(call, "device") || cb_call_has(call, "repeat");
  struct cb_bench_settings settings;
  struct cb_diag why = {0};
  if (cb_call_has(call, "predicted")) {
    snprintf(report->unmeasured, sizeof report->unmeasured, "'--predicted' was given");
    return CB_OK;
  }
  cb_bench_settings_default(&settings);
  settings.device = (int)call->device;
  settings.candidates = settings.baselines = settings.ceilings = 1;
  if (call->repeat) settings.batches = (int)call->repeat;
  cb_progress_stage("opening the GPU and measuring its memory");
  const enum cb_status s = cb_bench_open(&report->bench, &settings, wanted ? diag : &why);
  if (!s || wanted) return s;
  snprintf(report->unmeasured, sizeof report->unmeasured, "%s", why.message);
  return why.status == CB_ERR_MISSING ? CB_OK : cb_fail_lines(diag, why.status, why.message);
}

/* For the GPU that is there, unless another is asked for: then nothing is measured. */
static enum cb_status plan_for(struct cb_report *report, struct cb_diag *diag) {
  const char *arch = report->call->arches_count ? report->call->arches[0] : NULL;
  if (report->bench && arch && strcmp(arch, report->bench->device->target.arch)) {
    snprintf(report->unmeasured, sizeof report->unmeasured, "the GPU here is '%s', and '--arch=%s' was given",
             report->bench->device->target.arch, arch);
    cb_bench_close(report->bench);
    report->bench = NULL;
  }
  if (report->bench) return cb_job_plan_for(&report->job, report->call, &report->bench->device->target, diag);
  return cb_job_plan(&report->job, report->call, arch, diag);
}

static enum cb_status measure(struct cb_report *report, struct cb_diag *diag) {
  if (!report->bench) return CB_OK;
  cb_progress_stage("measuring '%s'", report->call->file);
  return cb_bench_matrix(&report->measured, report->bench, &report->job.csr, &report->call->options, diag);
}

/* With line information, and what of it can be shown: machine code where there is a disassembler, else PTX. */
static enum cb_status compile(struct cb_report *report, struct cb_diag *diag) {
  const struct cb_nvrtc_options options = {.arch = report->job.target.arch, .ptx = 1, .line_info = 1};
  struct cb_nvrtc *nvrtc = NULL;
  struct cb_diag why = {0};
  int major, minor;
  enum cb_status s = cb_nvrtc_open(&nvrtc, NULL, &why);
  if (!s) cb_progress_stage("compiling '%s' for %s", report->job.name, options.arch);
  if (!s) s = cb_compile_fitting(&report->compiled, nvrtc, report->job.source.text, report->job.name, &options, &why);
  if (!s) s = cb_cubin_stats(&report->stats, report->compiled.cubin, report->compiled.cubin_bytes, &why);
  if (s) {
    cb_nvrtc_close(nvrtc);
    snprintf(report->uncompiled, sizeof report->uncompiled, "%s", why.message);
    return s == CB_ERR_MEMORY ? cb_fail_lines(diag, s, why.message) : CB_OK;
  }
  cb_nvrtc_version(nvrtc, &major, &minor);
  snprintf(report->compiler, sizeof report->compiler, "NVRTC %d.%d for %s", major, minor, report->compiled.arch);
  cb_nvrtc_close(nvrtc);
  report->instructions = "SASS";
  s = cb_listing_disassemble(&report->listing, report->compiled.cubin, report->compiled.cubin_bytes, &why);
  if (!s) return CB_OK;
  snprintf(report->without_sass, sizeof report->without_sass, "%s", why.message);
  report->instructions = "PTX";
  return cb_listing_ptx(&report->listing, report->compiled.ptx, diag);
}

/* Packing serves nothing but the time that it takes; where a GPU is, measuring has done it. */
static enum cb_status pack(struct cb_report *report, struct cb_diag *diag) {
  return report->bench ? CB_OK : cb_job_pack(&report->job, 0, diag);
}

static enum cb_status draw(struct cb_report *report, struct cb_diag *diag) {
  cb_offsets_count(report->offsets, &report->job.csr);
  const enum cb_status s = cb_spy_count(&report->spy, report->job.plan, report->job.assignment, CELLS, diag);
  return s ? s : cb_spy_reduce(&report->small, &report->spy, SMALL_FACTOR, diag);
}

static enum cb_status find_out(struct cb_report *report, struct cb_diag *diag) {
  struct cb_report_seconds *seconds = &report->seconds;
  struct cb_job *job = &report->job;
  double clock = cb_seconds();
  enum cb_status s = cb_job_read(job, report->call, diag);
  note(&seconds->read, &clock);
  if (!s) cb_progress_stage("profiling '%s'", report->call->file);
  if (!s) s = cb_profile_compute(&report->profile, &job->csr, diag);
  note(&seconds->profile, &clock);
  if (!s) s = plan_for(report, diag);
  note(&seconds->plan, &clock);
  if (!s) s = pack(report, diag);
  note(&seconds->pack, &clock);
  if (!s) s = cb_job_emit(job, report->call, 0, diag);
  note(&seconds->emit, &clock);
  if (!s) s = compile(report, diag);
  note(&seconds->compile, &clock);
  if (!s) s = measure(report, diag);
  return s ? s : draw(report, diag);
}

static void release(struct cb_report *report) {
  cb_bench_result_release(&report->measured);
  cb_bench_close(report->bench);
  cb_listing_release(&report->listing);
  cb_cubin_stats_release(&report->stats);
  cb_compiled_release(&report->compiled);
  cb_spy_release(&report->spy);
  cb_spy_release(&report->small);
  cb_report_release_solutions(report);
  cb_job_release(&report->job);
}

static enum cb_status run_report(const struct cb_call *call, struct cb_diag *diag) {
  static const char page[] = "templates/report.html.in";
  struct cb_report report = {.call = call, .file = cb_embedded_find(page)};
  struct cb_outputs outputs = {.input = call->file};
  if (!report.file) return cb_fail(diag, CB_ERR_INTERNAL, "no template '%s'", page);
  enum cb_status s = cb_outputs_try(call->output, call->file, diag);
  if (!s) s = cb_report_read_solutions(&report, diag);
  if (!s) s = open_gpu(&report, diag);
  if (!s) s = find_out(&report, diag);
  if (!s) s = write_page(&report, &outputs, diag);
  if (!s) s = cb_outputs_commit(&outputs, diag);
  cb_outputs_abandon(&outputs);
  if (!s) s = verdict(&report, diag);
  release(&report);
  return s;
}

static enum cb_status check_report(const struct cb_call *call, struct cb_diag *diag) {
  if (!call->output)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'report' needs '-o report.html'; '-o -' is standard output");
  for (int i = 0; i < 2 && cb_call_has(call, "predicted"); i++)
    if (cb_call_has(call, i ? "repeat" : "device"))
      return cb_fail(diag, CB_ERR_ARGUMENT, "'--%s' has no effect with '--predicted', which measures nothing",
                     i ? "repeat" : "device");
  return CB_OK;
}

const struct cb_verb cb_verb_report = {
    .name = "report",
    .arguments = "FILE -o report.html [OPTION…]",
    .summary = "one page of HTML about a matrix and its kernel",
    .details = "The page needs no other file: where the nonzeros are and which region holds them, rows, diagonals,\n"
               "the plan, all candidates, a roofline, set-up by parts, every constant with its origin, and the\n"
               "kernel's text with what each line was compiled to: machine code where nvdisasm is, else PTX,\n"
               "where NVRTC is. With a GPU, candidates and cuSPARSE are measured; without, times are predicted.\n"
               "With --solution, residual curves of what 'cbgen solve --json' has solved.\n",
    .example = "cbgen report matrix.mtx -o report.html",
    .takes = CB_TAKES_OUTPUT | CB_TAKES_ARCH | CB_TAKES_NAME | CB_TAKES_GPU | CB_TAKES_REPORT,
    .check = check_report,
    .run = run_report,
};
