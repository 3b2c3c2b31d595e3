// SPDX-License-Identifier: Apache-2.0
/* What results look like: JSON, a Markdown row, and lines for a person. See bench.h. */
#include "runtime/measure/bench.h"

#include "base/json.h"
#include "runtime/cuda/calibration.h"

#include <math.h>
#include <stdlib.h>

/* ---- names */

static const char *form_name(enum cb_form form) {
  static const char *const names[] = {[CB_FORM_AX] = "ax", [CB_FORM_ADD] = "add", [CB_FORM_AXPBY] = "axpby"};
  return names[form];
}

/* Why there is nothing to compare with; NULL: there is. */
static const char *missing_baselines(const struct cb_bench *bench, const struct cb_run_result *run) {
  if (run->is_file) return "no baseline: a kernel.cu brings no matrix that cuSPARSE could multiply";
  if (run->semiring != CB_PLUS_TIMES) return "no baseline: cuSPARSE has no semirings";
  return *bench->missing ? bench->missing : NULL;
}

static double milliseconds(double seconds) {
  return 1e3 * seconds;
}

static double all_stages(const struct cb_stages *stages) {
  return stages->tune + stages->plan + stages->pack + stages->emit + stages->compile + stages->load + stages->upload;
}

/* ---- JSON. json_pack returns NULL when memory is short, and a NULL inside makes the whole NULL. */

/* Numbers that JSON cannot write become null. */
static json_t *number(double value) {
  return isfinite(value) ? json_real(value) : json_null();
}

static json_t *device_json(const struct cb_bench *bench, int *failed) {
  const struct cb_target *target = &bench->device->target;
  int major, minor, versions[3] = {0};
  cb_nvrtc_version(bench->nvrtc, &major, &minor);
  if (bench->cusparse) cb_cusparse_version(bench->cusparse, &versions[0], &versions[1], &versions[2]);
  json_t *cusparse =
      bench->cusparse ? json_sprintf("%d.%d.%d", versions[0], versions[1], versions[2]) : json_null();
  const struct cb_json figures = cb_json_object(failed);
  for (const struct cb_figure *figure = cb_figure_table; figure->name; figure++)
    cb_json_set_integer(figures, figure->name, cb_figure_get(target, figure));
  return json_pack("{s:s, s:s, s:i, s:I, s:I, s:o, s:o, s:o, s:o, s:s}", "model", target->model, "arch", target->arch,
                   "multiprocessors", target->multiprocessors, "l2_bytes", (json_int_t)target->l2_bytes,
                   "memory_bytes", (json_int_t)bench->device->memory_bytes, "driver_cuda",
                   json_sprintf("%d.%d", bench->driver->version / 1000, bench->driver->version % 1000 / 10),
                   "nvrtc", json_sprintf("%d.%d", major, minor), "cusparse", cusparse, "figures", figures.json,
                   "calibration", bench->device->remark);
}

static json_t *protocol_json(const struct cb_bench *bench) {
  const struct cb_bench_settings *settings = &bench->settings;
  return json_pack("{s:i, s:i, s:s, s:s, s:s, s:s}", "repetitions", settings->repetitions, "batches", settings->batches,
                   "launched", settings->graphs ? "as graphs" : "one by one", "caches",
                   "not flushed: products run back to back", "timed",
                   "alpha 1, beta 0 where the form has them", "x", "seeded as in the self-test");
}

static json_t *ceilings_json(const struct cb_bench *bench) {
  const struct cb_ceilings *ceilings = &bench->ceilings;
  if (!ceilings->bytes) return json_null();
  return json_pack("{s:f, s:f, s:f, s:I}", "copy_gb_per_s", ceilings->copy_gb_per_s, "read_gb_per_s",
                   ceilings->read_gb_per_s, "launch_us", ceilings->launch_us, "bytes",
                   (json_int_t)ceilings->bytes);
}

static json_t *timing_json(const struct cb_timing *timing) {
  if (!timing->launches) return json_null();
  return json_pack("{s:f, s:f, s:f, s:i}", "us", timing->us, "least_us", timing->least_us, "most_us",
                   timing->most_us, "launches_per_batch", timing->launches);
}

static json_t *stages_json(const struct cb_stages *stages) {
  return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "tune", milliseconds(stages->tune), "plan",
                   milliseconds(stages->plan), "pack", milliseconds(stages->pack), "emit", milliseconds(stages->emit), "compile",
                   milliseconds(stages->compile), "load", milliseconds(stages->load), "upload",
                   milliseconds(stages->upload), "all", milliseconds(all_stages(stages)));
}

static json_t *kernels_json(const struct cb_cubin_stats *stats, int *failed) {
  const struct cb_json kernels = cb_json_array(failed);
  for (int i = 0; i < stats->count; i++) {
    const struct cb_kernel_stats *kernel = &stats->kernels[i];
    cb_json_append(kernels, json_pack("{s:s, s:i, s:i, s:i, s:i}", "name", kernel->name, "registers",
                                      kernel->registers, "stack_bytes", kernel->stack_bytes, "static_shared",
                                      kernel->static_shared, "code_bytes", kernel->code_bytes));
  }
  return kernels.json;
}

static json_t *check_json(const struct cb_run_result *run) {
  const struct cb_comparison *check = &run->check;
  if (run->is_unchecked) return json_null();
  json_t *emulated = run->emulated ? json_boolean(run->first_other < 0) : json_null();
  return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o, s:b, s:o}", "rows", (json_int_t)check->rows, "exact",
                   (json_int_t)check->exact, "unbounded", (json_int_t)check->unbounded, "wrong",
                   (json_int_t)check->wrong, "first_wrong", (json_int_t)check->first_wrong, "worst_ratio",
                   number(check->worst_ratio), "repeatable", run->repeatable, "as_emulated", emulated);
}

static json_t *tuning_json(const struct cb_tuning *tuning, int *failed) {
  const struct cb_json variants = cb_json_array(failed);
  for (int i = 0; i < tuning->count; i++) {
    const struct cb_variant *variant = &tuning->variants[i];
    cb_json_append(variants, json_pack("{s:s, s:s, s:f, s:f, s:s, s:b}", "recipe", variant->recipe,
                                              "settings", variant->settings, "predicted_us",
                                              1e-3 * (double)variant->predicted_ns, "us",
                                              1e-3 * (double)variant->measured_ns, "reason", variant->reason,
                                              "fastest", i == tuning->winner));
  }
  return variants.json;
}

static json_t *run_json(const struct cb_bench *bench, const struct cb_run_result *run, int *failed) {
  return json_pack(
      "{s:s, s:I, s:I, s:I, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:i, s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s*}",
      "matrix", run->name, "rows", (json_int_t)run->rows, "cols", (json_int_t)run->cols, "nnz", (json_int_t)run->nnz,
      "type", run->type, "form", form_name(run->form), "plan", run->plan ? run->plan : "", "pattern", run->pattern,
      "stored_bytes", (json_int_t)run->stored_bytes, "moved_bytes", (json_int_t)run->moved_bytes, "device_bytes",
      (json_int_t)run->device_bytes, "launches", run->launches, "predicted_us", run->predicted_us, "time",
      timing_json(&run->timing), "stages_ms", stages_json(&run->stages), "tuning", tuning_json(&run->tuning, failed),
      "kernels", kernels_json(&run->cubin, failed), "check", check_json(run), "device", device_json(bench, failed),
      "protocol", protocol_json(bench), "ceilings", ceilings_json(bench), "semiring",
      run->semiring == CB_PLUS_TIMES ? NULL : cb_semiring_names[run->semiring]);
}

static json_t *baselines_json(const struct cb_bench_result *result, int *failed) {
  const struct cb_json baselines = cb_json_array(failed);
  for (int i = 0; i < result->baselines_count; i++) {
    const struct cb_baseline_result *one = &result->baselines[i];
    const struct cb_baseline *baseline = &one->baseline;
    json_t *row =
        baseline->applies
            ? json_pack("{s:s, s:b, s:I, s:I, s:I, s:f, s:f, s:o}", "name", baseline->name, "applies", 1, "wrong",
                        (json_int_t)one->wrong, "stored_bytes", (json_int_t)baseline->stored_bytes, "buffer_bytes",
                        (json_int_t)baseline->buffer_bytes, "convert_ms", milliseconds(baseline->convert_seconds),
                        "prepare_ms", milliseconds(baseline->prepare_seconds), "time", timing_json(&one->timing))
            : json_pack("{s:s, s:b, s:s}", "name", baseline->name, "applies", 0, "reason", baseline->reason);
    cb_json_append(baselines, row);
  }
  return baselines.json;
}

static json_t *cost_json(const struct cb_cost *cost) {
  return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "bytes", (json_int_t)cost->bytes, "sectors",
                   (json_int_t)cost->sectors, "stream_ns", (json_int_t)cost->stream_ns, "gather_ns",
                   (json_int_t)cost->gather_ns, "gpu_ns", (json_int_t)cost->gpu_ns, "work_ns", (json_int_t)cost->work_ns, "chain_ns",
                   (json_int_t)cost->chain_ns, "tail_ns", (json_int_t)cost->tail_ns, "stream_percent",
                   (json_int_t)cost->stream_percent, "ns", (json_int_t)cost->ns);
}

static json_t *candidates_json(const struct cb_bench_result *result, int *failed) {
  const struct cb_json candidates = cb_json_array(failed);
  for (int i = 0; i < result->run.candidates_count; i++) {
    const struct cb_candidate *candidate = &result->run.candidates[i];
    cb_json_append(
        candidates, *candidate->refusal
                        ? json_pack("{s:s, s:s}", "recipe", candidate->recipe, "refusal", candidate->refusal)
                        : json_pack("{s:s, s:I, s:o, s:f}", "recipe", candidate->recipe, "stored_bytes",
                                    (json_int_t)candidate->bytes, "cost", cost_json(&candidate->cost), "us",
                                    result->candidate_us[i]));
  }
  return candidates.json;
}

/* Appends the object as one line, and gives it up. */
static enum cb_status write_json(struct cb_text *text, struct cb_json object, struct cb_diag *diag) {
  *object.failed |= !object.json;
  return cb_json_write(text, object, JSON_COMPACT | JSON_REAL_PRECISION(9), "a result as JSON", diag);
}

enum cb_status cb_run_json(struct cb_text *text, const struct cb_bench *bench,
                           const struct cb_run_result *result, struct cb_diag *diag) {
  int failed = 0;
  json_t *object = run_json(bench, result, &failed);
  return write_json(text, (struct cb_json){object, &failed}, diag);
}

enum cb_status cb_bench_json(struct cb_text *text, const struct cb_bench *bench,
                             const struct cb_bench_result *result, struct cb_diag *diag) {
  int failed = 0;
  const struct cb_json object = {run_json(bench, &result->run, &failed), &failed};
  if (result->file) cb_json_set(object, "file", cb_json_text(result->file));
  cb_json_set_real(object, "gflops", result->gflops);
  cb_json_set_real(object, "bytes_per_nonzero", result->bytes_per_nonzero);
  cb_json_set_real(object, "moved_gb_per_s", result->moved_gb_per_s);
  cb_json_set_real(object, "share_of_read", result->share_of_read);
  cb_json_set(object, "best_baseline",
              result->best < 0 ? json_null() : cb_json_text(result->baselines[result->best].baseline.name));
  cb_json_set_real(object, "speed_up", result->speed_up);
  cb_json_set_real(object, "csr_speed_up", result->csr_speed_up);
  cb_json_set_text(object, "recipe", result->run.recipe ? result->run.recipe : "");
  cb_json_set_real(object, "bound_us", result->bound_us);
  cb_json_set(object, "cost", cost_json(&result->run.cost));
  cb_json_set(object, "candidates", candidates_json(result, &failed));
  cb_json_set(object, "baseline_types", result->baseline_types ? cb_json_text(result->baseline_types) : json_null());
  const char *missing = missing_baselines(bench, &result->run);
  if (missing) cb_json_set_text(object, "no_baselines", missing);
  cb_json_set(object, "baselines", baselines_json(result, &failed));
  return write_json(text, object, diag);
}

/* ---- Markdown */

/* What was measured against, which decides what a speed-up says. */
static void add_opponent(struct cb_text *text, const struct cb_bench *bench) {
  int major, minor, patch;
  cb_text_add_string(text, "cuSPARSE");
  if (!bench->cusparse) return;
  cb_cusparse_version(bench->cusparse, &major, &minor, &patch);
  cb_text_add(text, " %d.%d.%d", major, minor, patch);
}

static void add_machine(struct cb_text *text, const struct cb_bench *bench) {
  const struct cb_target *target = &bench->device->target;
  const struct cb_ceilings *ceilings = &bench->ceilings;
  int major, minor;
  cb_nvrtc_version(bench->nvrtc, &major, &minor);
  cb_text_add(text, "%s (%s, %d SMs), NVRTC %d.%d", target->model, target->arch, target->multiprocessors,
              major, minor);
  if (bench->cusparse) {
    cb_text_add_string(text, ", ");
    add_opponent(text, bench);
  }
  if (ceilings->bytes)
    cb_text_add(text, "; copy %.2f TB/s, read %.2f TB/s, empty kernel %.2f µs",
                1e-3 * ceilings->copy_gb_per_s, 1e-3 * ceilings->read_gb_per_s, ceilings->launch_us);
}

void cb_bench_markdown_head(struct cb_text *text, const struct cb_bench *bench) {
  add_machine(text, bench);
  cb_text_add(
      text,
      ".\n\nMedian of %d repetitions of the median of %d batches, products back to back; caches are not "
      "flushed. GB/s: stored bytes, x and y over the time; read: its share of the read ceiling; wrong: rows "
      "that the oracle rejects.\n\n",
      bench->settings.repetitions, bench->settings.batches);
  cb_text_add_string(
      text, "| matrix | rows | nonzeros | type | µs | GFLOP/s | B/nnz | GB/s | read | registers | stack "
            "| NVRTC ms | all stages ms | best cuSPARSE | its µs | speed-up | over CSR | wrong |\n"
            "| --- | --: | --: | --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --- | --: "
            "| --: | --: | --: |\n");
}

void cb_bench_markdown_row(struct cb_text *text, const struct cb_bench_result *result) {
  const struct cb_run_result *run = &result->run;
  const struct cb_kernel_stats worst = cb_cubin_stats_worst(&run->cubin);
  const struct cb_baseline_result *best = result->best < 0 ? NULL : &result->baselines[result->best];
  cb_text_add(text, "| %s | %lld | %lld | %s | %.2f | %.1f | %.1f | %.0f | %.0f %% | %d | %d | %.0f | %.0f | ",
              run->name, (long long)run->rows, (long long)run->nnz, run->type, run->timing.us, result->gflops,
              result->bytes_per_nonzero, result->moved_gb_per_s, 100 * result->share_of_read, worst.registers,
              worst.stack_bytes, milliseconds(run->stages.compile), milliseconds(all_stages(&run->stages)));
  if (best)
    cb_text_add(text, "%s | %.2f | %.2f | %.2f | ", best->baseline.name, best->timing.us, result->speed_up,
                result->csr_speed_up);
  else
    cb_text_add_string(text, "– | – | – | – | ");
  cb_text_add(text, "%lld |\n", (long long)run->check.wrong);
}

/* ---- for a person */

static void add_tuning(struct cb_text *text, const struct cb_run_result *run) {
  cb_text_add(text, "  tuning    %.1f ms\n", milliseconds(run->stages.tune));
  for (int i = 0; i < run->tuning.count; i++) {
    const struct cb_variant *variant = &run->tuning.variants[i];
    cb_text_add(text, "          %c ", i == run->tuning.winner ? '*' : ' ');
    cb_variant_name(text, variant);
    if (variant->measured_ns) cb_text_add(text, ": %.2f µs,", 1e-3 * (double)variant->measured_ns);
    else cb_text_add(text, ": not timed (%s),", *variant->reason ? variant->reason : "nothing to choose from");
    cb_text_add(text, " predicted %.2f\n", 1e-3 * (double)variant->predicted_ns);
  }
}

static void add_matrix(struct cb_text *text, const struct cb_run_result *run) {
  cb_text_add(text, "%s: %lld × %lld, %lld nonzeros, %s, %s\n", run->name, (long long)run->rows, (long long)run->cols,
              (long long)run->nnz, run->type, cb_semiring_equation(run->semiring, (int)run->form));
  cb_text_add(text, "  plan      %s\n", run->plan ? run->plan : "");
  if (run->is_file)
    cb_text_add(text, "  stages    NVRTC %.1f, load %.1f, upload %.1f ms\n", milliseconds(run->stages.compile),
                milliseconds(run->stages.load), milliseconds(run->stages.upload));
  else
    cb_text_add(text, "  stages    plan %.1f, pack %.1f, emit %.1f, NVRTC %.1f, load %.1f, upload %.1f ms\n",
              milliseconds(run->stages.plan), milliseconds(run->stages.pack), milliseconds(run->stages.emit),
              milliseconds(run->stages.compile), milliseconds(run->stages.load),
              milliseconds(run->stages.upload));
  if (run->tuning.count) add_tuning(text, run);
  for (int i = 0; i < run->cubin.count; i++) {
    const struct cb_kernel_stats *kernel = &run->cubin.kernels[i];
    cb_text_add(text, "  kernel    %s: %d registers, %d B stack, %d B static shared memory\n", kernel->name,
                kernel->registers, kernel->stack_bytes, kernel->static_shared);
  }
}

static void add_check(struct cb_text *text, const struct cb_run_result *run) {
  const struct cb_comparison *check = &run->check;
  if (run->is_unchecked)
    cb_text_add_string(text, "  check     none: the data have no self-test part (generate with --selftest=on)\n");
  else if (check->wrong)
    cb_text_add(text, "  check     WRONG: %lld of %lld rows; row %lld is %.17g, not %.17Lg ± %.3g\n",
                (long long)check->wrong, (long long)check->rows, (long long)check->first_wrong, check->got,
                check->expected, check->tolerance);
  else
    cb_text_add(text,
                "  check     right: %lld rows, %lld of them exact; largest error %.3g of its tolerance\n",
                (long long)check->rows, (long long)check->exact, check->worst_ratio);
  if (!run->repeatable) cb_text_add_string(text, "            a second product gave other bits\n");
  if (run->emulated && run->first_other < 0) cb_text_add_string(text, "            the emulation gives the same bits\n");
  if (run->emulated && run->first_other >= 0)
    cb_text_add(text, "            the emulation gives row %lld other bits\n", (long long)run->first_other);
}

static void add_time(struct cb_text *text, const struct cb_bench *bench, const struct cb_run_result *run) {
  const struct cb_timing *timing = &run->timing;
  const double gb_per_s = timing->us > 0 ? 1e-3 * (double)run->moved_bytes / timing->us : 0;
  if (!timing->launches) {
    cb_text_add_string(text, "  time      nothing to multiply\n");
    return;
  }
  cb_text_add(text, "  time      %.2f µs (%.2f to %.2f; predicted %.2f), %.1f GFLOP/s\n", timing->us,
              timing->least_us, timing->most_us, run->predicted_us,
              timing->us > 0 ? 2e-3 * (double)run->nnz / timing->us : 0);
  cb_text_add(text, "  memory    %.1f B per nonzero stored; %.0f GB/s with x and y",
              run->nnz ? (double)run->stored_bytes / (double)run->nnz : 0, gb_per_s);
  if (bench->ceilings.read_gb_per_s > 0)
    cb_text_add(text, ", %.0f %% of the read ceiling", 100 * gb_per_s / bench->ceilings.read_gb_per_s);
  cb_text_add_string(text, "\n");
}

void cb_run_report(struct cb_text *text, const struct cb_bench *bench, const struct cb_run_result *result) {
  add_machine(text, bench);
  cb_text_add_string(text, "\n");
  add_matrix(text, result);
  add_check(text, result);
  add_time(text, bench, result);
}

static void add_baseline(struct cb_text *text, const struct cb_baseline_result *one, double own_us) {
  const struct cb_baseline *baseline = &one->baseline;
  if (!baseline->applies) {
    cb_text_add(text, "  %-11s does not apply: %s\n", baseline->name, baseline->reason);
    return;
  }
  cb_text_add(text, "  %-11s %.2f µs (%.2f to %.2f), %.2f times ours; %.1f ms to convert, %.2f ms to prepare",
              baseline->name, one->timing.us, one->timing.least_us, one->timing.most_us,
              own_us > 0 ? one->timing.us / own_us : 0, milliseconds(baseline->convert_seconds),
              milliseconds(baseline->prepare_seconds));
  if (one->wrong) cb_text_add(text, "; WRONG in %lld rows", (long long)one->wrong);
  cb_text_add_string(text, "\n");
}

static void add_candidate(struct cb_text *text, const struct cb_candidate *candidate, double us) {
  if (*candidate->refusal)
    cb_text_add(text, "  %-9s refused: %s\n", candidate->recipe, candidate->refusal);
  else
    cb_text_add(text, "  %-9s %.2f µs, predicted %.2f\n", candidate->recipe, us,
                1e-3 * (double)candidate->cost.ns);
}

void cb_bench_report(struct cb_text *text, const struct cb_bench *bench,
                     const struct cb_bench_result *result) {
  const struct cb_run_result *run = &result->run;
  cb_run_report(text, bench, run);
  cb_text_add(text, "  bound     %.2f µs with these data: %.0f %% of it reached\n", result->bound_us,
              run->timing.us > 0 ? 100 * result->bound_us / run->timing.us : 0);
  for (int i = 0; i < run->candidates_count && bench->settings.candidates; i++)
    add_candidate(text, &run->candidates[i], result->candidate_us[i]);
  add_opponent(text, bench);
  cb_text_add(text, " (median of %d repetitions of %d batches in turn; caches are not flushed)\n",
              bench->settings.repetitions, bench->settings.batches);
  const char *missing = missing_baselines(bench, run);
  if (missing) cb_text_add(text, "  %s\n", missing);
  if (result->baseline_types) cb_text_add(text, "  types     %s\n", result->baseline_types);
  for (int i = 0; i < result->baselines_count; i++) add_baseline(text, &result->baselines[i], run->timing.us);
  if (result->best >= 0)
    cb_text_add(text, "speed-up    %.2f over the best (%s), %.2f over CSR\n", result->speed_up,
                result->baselines[result->best].baseline.name, result->csr_speed_up);
}
