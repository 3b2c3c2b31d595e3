// SPDX-License-Identifier: Apache-2.0
/* One option at several values: see sweep.h. Rows are JSON objects first; the table is printed from them. */
#include "tool/sweep.h"

#include "analysis/plan/recipe.h"
#include "base/json.h"

#include <string.h>

/* ---- the command line */

/* Whether the options take the value. That others contradict it shows when it is planned. */
static enum cb_status check_value(const char *option, const char *value, struct cb_diag *diag) {
  struct cb_options options;
  cb_options_default(&options);
  const struct cb_recipe *recipe;
  const enum cb_status s = cb_options_set(&options, option, value, diag);
  if (s || !cb_option_at(cb_option_find(option))->is_text) return s;
  return cb_recipe_find(&recipe, options.recipe, diag); /* the one option that is text */
}

enum cb_status cb_sweep_parse(struct cb_sweep *sweep, char *text, struct cb_diag *diag) {
  char *values = strchr(text, '=');
  if (!values || values == text || !values[1])
    return cb_fail(diag, CB_ERR_ARGUMENT, "'--sweep=%s': it takes an option and its values: '--sweep=OPTION=V,W'",
                   text);
  *values++ = 0;
  sweep->option = text;
  for (char *value = values; value;) {
    char *comma = strchr(value, ',');
    if (comma) *comma++ = 0;
    if (sweep->count == CB_MAX_SWEPT)
      return cb_fail(diag, CB_ERR_ARGUMENT, "'--sweep=%s' takes at most %d values", text, CB_MAX_SWEPT);
    const enum cb_status s = check_value(text, value, diag);
    if (s) return s;
    sweep->values[sweep->count++] = value;
    value = comma;
  }
  return CB_OK;
}

/* ---- rows */

json_t *cb_sweep_loads_json(const struct cb_loads *loads, int *failed) {
  if (!loads->blocks) return json_null();
  const struct cb_json object = cb_json_object(failed);
  cb_json_set_integer(object, "thread_blocks", loads->blocks);
  cb_json_set_integer(object, "least", loads->least);
  cb_json_set_integer(object, "most", loads->most);
  cb_json_set_real(object, "mean", loads->mean);
  cb_json_set_real(object, "variation", loads->variation);
  return object.json;
}

/* What a plan is, before anything is measured. */
struct planned {
  const char *recipe, *line;
  int64_t stored_bytes, nnz;
  double predicted_us;
  int launches;
};

static void set_planned(struct cb_json row, struct planned plan) {
  cb_json_set_text(row, "recipe", plan.recipe ? plan.recipe : "");
  cb_json_set_text(row, "plan", plan.line ? plan.line : "");
  cb_json_set_integer(row, "stored_bytes", plan.stored_bytes);
  cb_json_set_real(row, "bytes_per_nonzero", plan.nnz ? (double)plan.stored_bytes / (double)plan.nnz : 0);
  cb_json_set_real(row, "predicted_us", plan.predicted_us);
  cb_json_set_integer(row, "launches", plan.launches);
}

static void set_plan(struct cb_json row, const struct cb_plan *plan) {
  set_planned(row, (struct planned){plan->recipe, plan->line, cb_plan_bytes(plan), plan->nnz,
                                    1e-3 * (double)plan->cost.ns, plan->launches_count});
}

static double milliseconds(double seconds) {
  return 1e3 * seconds;
}

static json_t *stages_json(const struct cb_stages *stages) {
  return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "plan", milliseconds(stages->plan), "pack",
                   milliseconds(stages->pack), "emit", milliseconds(stages->emit), "compile",
                   milliseconds(stages->compile), "load", milliseconds(stages->load), "upload",
                   milliseconds(stages->upload));
}

static int most_registers(const struct cb_cubin_stats *cubin) {
  int most = 0;
  for (int i = 0; i < cubin->count; i++) most = cubin->kernels[i].registers > most ? cubin->kernels[i].registers : most;
  return most;
}

static void set_run(struct cb_json row, const struct cb_run_result *run) {
  set_planned(row,
              (struct planned){run->recipe, run->plan, run->stored_bytes, run->nnz, run->predicted_us, run->launches});
  cb_json_set_real(row, "us", run->timing.us);
  cb_json_set_real(row, "least_us", run->timing.least_us);
  cb_json_set_real(row, "most_us", run->timing.most_us);
  cb_json_set_integer(row, "wrong", run->check.wrong);
  cb_json_set_flag(row, "repeatable", run->repeatable);
  cb_json_set_integer(row, "moved_bytes", run->moved_bytes);
  cb_json_set_integer(row, "registers", most_registers(&run->cubin));
  cb_json_set(row, "stages_ms", stages_json(&run->stages));
}

/* ---- the walk over the values */

struct walk {
  const struct cb_call *call;
  struct cb_job *job;     /* to plan */
  struct cb_bench *bench; /* NULL: nothing is timed */
  const struct cb_csr *csr;
};

static enum cb_status plan_row(struct cb_json row, const struct walk *walk, const struct cb_call *call,
                               struct cb_diag *diag) {
  struct cb_loads loads = {0};
  enum cb_status s = cb_job_plan(walk->job, call, call->arches_count ? call->arches[0] : NULL, diag);
  if (!s) s = cb_loads_count(&loads, walk->job->plan, walk->job->assignment, diag);
  if (s) return s;
  set_plan(row, walk->job->plan);
  cb_json_set(row, "loads", cb_sweep_loads_json(&loads, row.failed));
  return CB_OK;
}

static enum cb_status bench_row(struct cb_json row, const struct walk *walk, const struct cb_call *call,
                                struct cb_diag *diag) {
  struct cb_run_result run = {0};
  enum cb_status s = cb_run_matrix(&run, walk->bench, walk->csr, &call->options, diag);
  if (!s) set_run(row, &run);
  if (!s) s = cb_run_verdict(&run, &call->options, diag);
  cb_run_result_release(&run);
  return s;
}

static int is_refusal(enum cb_status status) {
  return status == CB_ERR_UNSUPPORTED || status == CB_ERR_ARGUMENT || status == CB_ERR_LIMIT;
}

/* One value. What failed is in the row and, unless the plan was refused, in `first` where nothing is yet. */
static void add_row(struct cb_json rows, const struct walk *walk, const char *value, struct cb_diag *first) {
  const struct cb_json row = cb_json_object(rows.failed);
  struct cb_call call = *walk->call;
  struct cb_diag diag = {0};
  cb_json_set_text(row, "value", value);
  enum cb_status s = cb_options_set(&call.options, call.sweep.option, value, &diag);
  if (!s) s = (walk->bench ? bench_row : plan_row)(row, walk, &call, &diag);
  if (s == CB_ERR_MEMORY && !walk->bench) *rows.failed = 1; /* of the host: the others have none either */
  if (s) cb_json_set_text(row, "reason", diag.message);
  if (s && !is_refusal(s) && !first->status) *first = diag;
  cb_json_append(rows, row.json);
}

static json_t *rows_json(const struct walk *walk, int *failed, struct cb_diag *first) {
  const struct cb_sweep *sweep = &walk->call->sweep;
  const struct cb_json rows = cb_json_array(failed);
  for (int i = 0; i < sweep->count; i++) {
    cb_progress_stage("'%s' with --%s=%s", walk->call->file, sweep->option, sweep->values[i]);
    add_row(rows, walk, sweep->values[i], first);
  }
  return rows.json;
}

/* ---- the output */

static double real_of(const json_t *row, const char *key) {
  return json_number_value(json_object_get(row, key));
}

static void print_row(struct cb_text *text, const json_t *row, int timed) {
  const char *reason = json_string_value(json_object_get(row, "reason"));
  cb_text_add(text, "  %-16s ", json_string_value(json_object_get(row, "value")));
  if (!json_object_get(row, "recipe")) {
    cb_text_add(text, "%s\n", reason ? reason : "");
    return;
  }
  cb_text_add(text, "%-10s %8.2f %10.2f", json_string_value(json_object_get(row, "recipe")),
              real_of(row, "bytes_per_nonzero"), real_of(row, "predicted_us"));
  if (timed)
    cb_text_add(text, " %10.2f %10.2f %9.0f", real_of(row, "us"), real_of(row, "most_us"), real_of(row, "registers"));
  const json_t *loads = json_object_get(row, "loads");
  if (!timed && json_is_object(loads)) cb_text_add(text, " %10.3f", real_of(loads, "variation"));
  cb_text_add(text, "%s%s\n", reason ? "  " : "", reason ? reason : "");
}

static void print_table(struct cb_text *text, const struct walk *walk, const json_t *rows) {
  cb_text_add(text, "%s: %lld x %lld, %lld nonzeros\n  %-16s recipe        B/nnz  predicted%s\n", walk->csr->name,
              (long long)walk->csr->rows, (long long)walk->csr->cols, (long long)walk->csr->nnz,
              walk->call->sweep.option, walk->bench ? "         us    slowest registers" : "  variation");
  for (size_t i = 0; i < json_array_size(rows); i++) print_row(text, json_array_get(rows, i), walk->bench != NULL);
}

static enum cb_status print_json(struct cb_text *text, const struct walk *walk, json_t *rows, int *failed,
                                 struct cb_diag *diag) {
  const struct cb_json root = cb_json_object(failed);
  cb_json_set(root, "file", cb_json_text(walk->call->file));
  cb_json_set(root, "matrix", cb_json_text(walk->csr->name));
  cb_json_set_integer(root, "rows", walk->csr->rows);
  cb_json_set_integer(root, "cols", walk->csr->cols);
  cb_json_set_integer(root, "nnz", walk->csr->nnz);
  if (walk->bench) cb_json_set_text(root, "device", walk->bench->device->target.model);
  cb_json_set_text(root, "sweep", walk->call->sweep.option);
  cb_json_set(root, "values", rows);
  const enum cb_status s = cb_json_write(text, root, JSON_COMPACT | JSON_REAL_PRECISION(9), "a sweep as JSON", diag);
  cb_text_add_string(text, "\n");
  return s;
}

static enum cb_status report(struct cb_text *text, const struct walk *walk, json_t *rows, int *failed,
                             struct cb_diag *diag) {
  if (walk->call->json) return print_json(text, walk, rows, failed, diag);
  if (!*failed) print_table(text, walk, rows);
  json_decref(rows);
  return *failed || text->failed ? cb_fail_memory(diag, "a sweep", text->length) : CB_OK;
}

/* What could be found out is printed, whatever failed. */
static enum cb_status sweep(const struct walk *walk, struct cb_diag *diag) {
  struct cb_diag first = {0};
  struct cb_text text = {0};
  int failed = 0;
  json_t *rows = rows_json(walk, &failed, &first);
  enum cb_status s = report(&text, walk, rows, &failed, diag);
  if (!s) s = cb_print(&text, diag);
  cb_text_release(&text);
  if (s || !first.status) return s;
  *diag = first;
  return first.status;
}

enum cb_status cb_sweep_plan(struct cb_job *job, const struct cb_call *call, struct cb_diag *diag) {
  return sweep(&(struct walk){.call = call, .job = job, .csr = &job->csr}, diag);
}

enum cb_status cb_sweep_bench(struct cb_bench *bench, const struct cb_job *job, const struct cb_call *call,
                              struct cb_diag *diag) {
  return sweep(&(struct walk){.call = call, .bench = bench, .csr = &job->csr}, diag);
}
