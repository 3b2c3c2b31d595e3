// SPDX-License-Identifier: Apache-2.0
/* A traced row as text, as JSON, and as the lines of a message: see trace.h. */
#include "runtime/verify/trace_parts.h"

#include <math.h>
#include <string.h>

static const char *region_name(const struct cb_trace *trace, int region) {
  return region >= 0 ? trace->one->plan->regions[region].name : "-";
}

/* The slot that holds the nonzero of a product, whatever the product took. */
static struct cb_trace_step placed(const struct cb_trace *trace, const struct cb_trace_step *step) {
  struct cb_trace_step copy = *step;
  if (copy.slot < 0 && copy.nonzero >= 0) copy.slot = cb_trace_find_slot(trace, (uint64_t)copy.nonzero, &copy.region);
  return copy;
}

static void add_number(struct cb_text *text, const char *format, int64_t number) {
  if (number < 0)
    cb_text_add_string(text, "       -");
  else
    cb_text_add(text, format, (long long)number);
}

static void add_places(struct cb_text *text, const struct cb_trace *trace, const struct cb_trace_row *row) {
  if (row->nonzeros)
    cb_text_add_string(text,
                       "\n  column        value            x  region       slot     byte  launch   block  warp  lane"
                       "  order  line\n");
  for (int64_t i = 0, order = 0; i < row->steps_count; i++) {
    if (!row->steps[i].is_term) continue;
    const struct cb_trace_step step = placed(trace, &row->steps[i]);
    const double value = step.nonzero >= 0 ? cb_trace_value(trace, step.nonzero) : 0;
    order++;
    cb_text_add(text, "%8lld %12.6g %12.6g  %-8s", (long long)step.column, value, trace->x[step.column],
                region_name(trace, step.region));
    add_number(text, " %8lld", step.slot);
    add_number(text, " %8lld", cb_trace_byte(trace, step.region, step.slot));
    cb_text_add(text, " %7lld %7lld %5lld %5lld %6lld %5d%s\n", (long long)step.launch, (long long)step.block,
                (long long)step.thread / 32, (long long)step.thread % 32, (long long)order, step.line,
                step.nonzero < 0 ? "  padding" : "");
  }
}

static void add_operation(struct cb_text *text, const struct cb_trace *trace, const struct cb_trace_step *step) {
  const double *const of = step->operands;
  if (!strcmp(step->what, "value"))
    cb_text_add(text, "value %s[%lld]", region_name(trace, step->region), (long long)step->slot);
  else if (!strcmp(step->what, "load_x"))
    cb_text_add(text, "load_x x[%lld]", (long long)step->column);
  else if (!strcmp(step->what, "add_product"))
    cb_text_add(text, "add_product %.9g + %.9g · %.9g", of[2], of[0], of[1]);
  else if (step->operands_count == 2)
    cb_text_add(text, "%s %.9g, %.9g", step->what, of[0], of[1]);
  else
    cb_text_add(text, "%s %.9g", step->what, of[0]);
  if (step->is_term) cb_text_add(text, "  (x[%lld])", (long long)step->column);
}

static void add_step(struct cb_text *text, const struct cb_trace *trace, const struct cb_trace_step *step) {
  struct cb_text operation = {0};
  add_operation(&operation, trace, step);
  cb_text_add(text, "  %5d %7lld %5lld %5lld  %-56s = %.17g", step->line, (long long)step->block,
              (long long)step->thread / 32, (long long)step->thread % 32, cb_text_string(&operation), step->result);
  if (step->operands_count > 1 && (long double)step->result != step->exact)
    cb_text_add(text, "  exact %.20Lg", step->exact);
  cb_text_add_string(text, "\n");
  text->failed |= operation.failed;
  cb_text_release(&operation);
}

static void add_verdict(struct cb_text *text, const struct cb_trace_row *row) {
  cb_text_add(text, "row %lld: %lld nonzero%s, y = %.17g, expected %.17g, tolerance %.3g: %s\n", (long long)row->row,
              (long long)row->nonzeros, row->nonzeros == 1 ? "" : "s", row->got, row->expected, row->tolerance,
              row->is_right ? "right" : "WRONG");
  for (int i = 0; i < row->findings_count; i++) cb_text_add(text, "  ! %s\n", row->findings[i]);
}

void cb_trace_row_text(struct cb_text *text, const struct cb_trace *trace, const struct cb_trace_row *row) {
  add_verdict(text, row);
  add_places(text, trace, row);
  if (row->steps_count) cb_text_add_string(text, "\n   line   block  warp  lane  operation\n");
  for (int64_t i = 0; i < row->steps_count; i++) add_step(text, trace, &row->steps[i]);
}

/* ---- JSON */

static json_t *step_json(const struct cb_trace *trace, const struct cb_trace_step *given, int *failed) {
  const struct cb_json object = cb_json_object(failed), operands = cb_json_array(failed);
  const struct cb_trace_step step = placed(trace, given);
  cb_json_set_text(object, "operation", step.what);
  cb_json_set_integer(object, "line", step.line);
  cb_json_set_integer(object, "launch", step.launch);
  cb_json_set_integer(object, "block", step.block);
  cb_json_set_integer(object, "warp", step.thread / 32);
  cb_json_set_integer(object, "lane", step.thread % 32);
  for (int i = 0; i < step.operands_count; i++)
    cb_json_append(operands, isfinite(step.operands[i]) ? json_real(step.operands[i]) : json_null());
  cb_json_set(object, "operands", operands.json);
  cb_json_set_real(object, "result", step.result);
  cb_json_set_real(object, "exact", (double)step.exact);
  if (step.column >= 0) cb_json_set_integer(object, "column", step.column);
  if (step.is_term) cb_json_set_integer(object, "nonzero", step.nonzero);
  if (step.slot >= 0) {
    cb_json_set_text(object, "region", region_name(trace, step.region));
    cb_json_set_integer(object, "slot", step.slot);
    cb_json_set_integer(object, "byte", cb_trace_byte(trace, step.region, step.slot));
  }
  return object.json;
}

json_t *cb_trace_row_json(const struct cb_trace *trace, const struct cb_trace_row *row, int *failed) {
  const struct cb_json object = cb_json_object(failed), steps = cb_json_array(failed), findings = cb_json_array(failed);
  cb_json_set_integer(object, "row", row->row);
  cb_json_set_integer(object, "nonzeros", row->nonzeros);
  cb_json_set_real(object, "y", row->got);
  cb_json_set_real(object, "expected", row->expected);
  cb_json_set_real(object, "tolerance", row->tolerance);
  cb_json_set_flag(object, "right", row->is_right);
  for (int i = 0; i < row->findings_count; i++) cb_json_append(findings, cb_json_text(row->findings[i]));
  for (int64_t i = 0; i < row->steps_count; i++) cb_json_append(steps, step_json(trace, &row->steps[i], failed));
  cb_json_set(object, "findings", findings.json);
  cb_json_set(object, "steps", steps.json);
  return object.json;
}

/* ---- the lines of a message */

void cb_trace_brief(struct cb_text *text, struct cb_host *host, const struct cb_verify_case *one,
                    const struct cb_trace_product *product, int64_t number) {
  struct cb_trace *trace = NULL;
  struct cb_trace_row row = {0};
  struct cb_diag diag = {0};
  enum cb_status s = cb_trace_run(&trace, host, one, product, &diag);
  if (!s) s = cb_trace_row(&row, trace, number, &diag);
  if (s) cb_text_add(text, "row %lld cannot be traced: %.300s\n", (long long)number, diag.message);
  for (int i = 0; i < row.findings_count; i++) cb_text_add(text, "%s\n", row.findings[i]);
  if (!s && !row.findings_count)
    cb_text_add(text, "row %lld: each nonzero is in the sum, once, with its value; what is made of them is wrong\n",
                (long long)number);
  cb_trace_row_release(&row);
  cb_trace_free(trace);
}
