// SPDX-License-Identifier: Apache-2.0
/* cbgen report: what its parts share. A part reads the report and gives the markup of its section to the page. */
#ifndef CBGEN_TOOL_REPORT_H
#define CBGEN_TOOL_REPORT_H

#include "tool/html.h"
#include "tool/job.h"

#include "analysis/plan/spy.h"
#include "analysis/profile/offsets.h"
#include "analysis/profile/profile.h"
#include "base/json.h"
#include "runtime/cuda/cubin.h"
#include "runtime/measure/bench.h"
#include "runtime/verify/listing.h"

/* Wall-clock seconds of what was done here; 0: it was not. */
struct cb_report_seconds {
  double read, profile, plan, pack, emit, compile;
};

/* All that is found out. Zero-initialise it. */
struct cb_report {
  const struct cb_call *call;
  const struct cb_embedded_file *file; /* the template */
  struct cb_job job;
  struct cb_profile profile;
  int64_t offsets[CB_OFFSETS_BINS];
  struct cb_spy spy, small;
  struct cb_report_seconds seconds;
  struct cb_bench *bench; /* NULL: nothing was measured, and `unmeasured` says why */
  struct cb_bench_result measured;
  char unmeasured[1024];
  char compiler[64]; /* "NVRTC 13.0 for sm_90"; "": the text was not compiled, and `uncompiled` says why */
  char uncompiled[1024], without_sass[1024];
  struct cb_compiled compiled;
  struct cb_cubin_stats stats;
  const char *instructions; /* "PTX", "SASS"; NULL: there are none */
  struct cb_listing listing;
  json_t *solutions[CB_MAX_SOLUTIONS]; /* checked, in the order of call->solutions */
};

/* ---- numbers for people */

/* 1 234 567, with narrow spaces. */
const char *cb_report_count(char text[48], int64_t number);
/* Three digits or more: "2.61", "12.3", "1234". */
const char *cb_report_short(char text[48], double number);
/* "12.3 %" of the whole; "0 %" of nothing. */
const char *cb_report_share(char text[48], int64_t part, int64_t whole);
/* Of a time: GFLOP/s of a product; 0 without a time. */
double cb_report_gflops(const struct cb_report *report, double us);
double cb_report_each(const struct cb_report *report, int64_t bytes); /* per nonzero */
/* Microseconds of a product: measured where they were, else predicted. */
double cb_report_us(const struct cb_report *report);
/* Measured for candidate `number` of the plan, or for the plan alone; 0: it was not. */
double cb_report_candidate_us(const struct cb_report *report, int number);

/* ---- the page: its own placeholders, and the pieces that it receives, which live until it is added */

enum { CB_REPORT_PIECES = 24 };
struct cb_report_page {
  struct cb_html html;
  int count;
  const char *names[CB_REPORT_PIECES]; /* of the placeholders */
  struct cb_html pieces[CB_REPORT_PIECES];
};
/* Pieces for the placeholder `name` of the page, which is in capitals. */
struct cb_html *cb_report_pieces(struct cb_report_page *page, const char *name);
/* Empty pieces that the caller releases. */
struct cb_html cb_report_own(const struct cb_report_page *page);

/* ---- numbers of drawings, in their units */

void cb_report_number(struct cb_html *html, const char *name, double number);
/* Placeholders x1, y1, x2, y2. */
void cb_report_line(struct cb_html *html, double x1, double y1, double x2, double y2);
/* A line of a grid and what it stands for: of a vertical axis from (x, y) to `end` at the right, of the other one up to
 * `end`. */
void cb_report_tick(struct cb_html *marks, double x, double y, int vertical, double end, const char *text);
void cb_report_box(struct cb_html *marks, double left, double top, double right, double bottom);

/* ---- solutions: report_solutions.c */

/* CB_ERR_FORMAT: a file is not what `cbgen solve --json` writes. */
enum cb_status cb_report_read_solutions(struct cb_report *report, struct cb_diag *diag);
void cb_report_release_solutions(struct cb_report *report);

/* ---- the parts: each fills placeholders of the page */

void cb_report_matrix(struct cb_report_page *page, const struct cb_report *report);   /* report_matrix.c */
void cb_report_plan(struct cb_report_page *page, const struct cb_report *report);     /* report_plan.c */
void cb_report_candidates(struct cb_report_page *page, const struct cb_report *report);
void cb_report_roofline(struct cb_report_page *page, const struct cb_report *report); /* report_roofline.c */
void cb_report_solutions(struct cb_report_page *page, const struct cb_report *report); /* report_solutions.c */
void cb_report_text(struct cb_report_page *page, const struct cb_report *report);     /* report_text.c */

/* A row of a table of bars: `width` in percent of the longest. */
struct cb_report_bar {
  const char *label, *count, *share, *class;
  double width;
};
void cb_report_bar(struct cb_html *rows, const struct cb_report_bar *bar);

#endif
