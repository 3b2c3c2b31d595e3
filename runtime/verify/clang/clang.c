// SPDX-License-Identifier: Apache-2.0
/* One check: both views of the text, then the rules. */
#include "runtime/verify/clang/clang.h"

#include "runtime/verify/clang/rules.h"

#include <stdio.h>

static void take_version(struct cb_clang_report *report, const struct cb_clang *clang) {
  const struct cb_clang_string version = clang->call.version();
  const char *words = clang->call.string(version);
  cb_escape(report->library, sizeof report->library, words ? words : "unknown version", "");
  clang->call.dispose_string(version);
}

enum cb_status cb_clang_check(struct cb_clang_report *report, const struct cb_clang *clang, const char *text,
                              const struct cb_plan *plan, struct cb_diag *diag) {
  struct cb_syntax device = {0}, host = {0};
  *report = (struct cb_clang_report){0};
  take_version(report, clang);
  enum cb_status s = cb_syntax_read(&device, clang, text, CB_CLANG_DEVICE, report, diag);
  if (!s) s = cb_syntax_read(&host, clang, text, CB_CLANG_HOST, report, diag);
  if (!s) {
    cb_clang_check_accesses(report, &device, plan);
    cb_clang_check_constants(report, &device, &host, plan);
    s = cb_clang_check_threads(report, &device, diag);
  }
  cb_syntax_release(&device);
  cb_syntax_release(&host);
  return s;
}
