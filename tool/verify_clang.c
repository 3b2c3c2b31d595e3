// SPDX-License-Identifier: Apache-2.0
/* The part of `cbgen verify` that libclang does, and its report. */
#include "tool/verify_clang.h"

#include <stdio.h>

static enum cb_status judge(struct cb_clang_step *step, struct cb_diag *diag) {
  const struct cb_clang_report *report = &step->report;
  const struct cb_clang_finding *first = report->findings;
  if (!report->findings_count) return CB_OK;
  return cb_fail(diag, CB_ERR_WRONG, "libclang finds %d fault%s in the kernel, the first in line %d: %s",
                 report->findings_count, report->findings_count == 1 ? "" : "s", first->line, first->message);
}

void cb_clang_step(struct cb_clang_step *step, const struct cb_call *call, const char *text,
                   const struct cb_plan *plan) {
  struct cb_clang *clang;
  struct cb_diag diag = {0};
  step->asked = cb_call_has(call, "clang");
  if (!step->asked) return;
  cb_progress_stage("reading the kernel of '%s' with libclang", call->file);
  step->status = cb_clang_open(&clang, NULL, &diag);
  if (!step->status) {
    step->status = cb_clang_check(&step->report, clang, text, plan, &diag);
    cb_clang_close(clang);
  }
  if (!step->status) step->status = judge(step, &diag);
  snprintf(step->message, sizeof step->message, "%s", diag.message);
}

static int kept(const struct cb_clang_report *report) {
  return report->findings_count < CB_CLANG_FINDINGS ? report->findings_count : CB_CLANG_FINDINGS;
}

void cb_clang_print(struct cb_text *text, const struct cb_clang_step *step) {
  const struct cb_clang_report *report = &step->report;
  if (!step->asked) return;
  if (step->status && step->status != CB_ERR_WRONG) {
    cb_text_add(text, "clang    not checked: %s\n", step->message);
    return;
  }
  cb_text_add(text, "clang    %s; device and host view\n", report->library);
  cb_text_add(text, "         %d functions, %d accesses, %d constants, %d barriers, %d loops: %s\n", report->functions,
              report->accesses, report->constants, report->barriers, report->loops,
              report->findings_count ? "WRONG" : "nothing to object to");
  for (int i = 0; i < kept(report); i++)
    cb_text_add(text, "         %d:%d: %s: %s\n", report->findings[i].line, report->findings[i].column,
                report->findings[i].rule, report->findings[i].message);
  if (report->findings_count > CB_CLANG_FINDINGS)
    cb_text_add(text, "         and %d more\n", report->findings_count - CB_CLANG_FINDINGS);
}

json_t *cb_clang_json(const struct cb_clang_step *step, int *failed) {
  const struct cb_clang_report *report = &step->report;
  const struct cb_json findings = cb_json_array(failed);
  for (int i = 0; i < kept(report); i++)
    cb_json_append(findings,
                   json_pack("{s:s, s:i, s:i, s:s}", "rule", report->findings[i].rule, "line", report->findings[i].line,
                             "column", report->findings[i].column, "message", report->findings[i].message));
  return json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:o}", "status", cb_status_name(step->status),
                   "message", step->message, "library", report->library, "functions", report->functions, "accesses",
                   report->accesses, "constants", report->constants, "barriers", report->barriers, "loops",
                   report->loops, "findings_count", report->findings_count, "findings", findings.json);
}
