// SPDX-License-Identifier: Apache-2.0
/* cbgen report: residuals of solvers, as files say that `cbgen solve --json` has written: a curve for each over its
 * iterations, linear to the right, logarithmic upwards; and what became of each as a table. */
#include "tool/report.h"

#include "base/file.h"
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The plot's box and the column of labels, in units of the drawing. */
enum { LEFT = 80, RIGHT = 600, TOP = 20, HEIGHT = 340, LABELS = 650, LABEL_STEP = 19, UNDER = 50 };
enum { MOST_DRAWN = 500 }; /* stretches of a long curve, whose least and largest residual are drawn */
static const double least_drawn = 1e-30; /* a residual of 0, too, stands there */

/* ---- files */

static enum cb_status refuse(const char *path, const char *words, struct cb_diag *diag) {
  return cb_fail(diag, CB_ERR_FORMAT, "'%s' is not what 'cbgen solve --json' writes: %s", path, words);
}

/* "null" is a number that is none. */
static int is_number_or_null(const json_t *json) { return json_is_number(json) || json_is_null(json); }

static enum cb_status check_solution(const json_t *root, const char *path, struct cb_diag *diag) {
  static const char *const texts[] = {"matrix", "method", "reason"}, *const numbers[] = {"residual", "true_residual"};
  const json_t *history = json_object_get(root, "history"), *iterations = json_object_get(root, "iterations");
  char words[80];
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (!json_is_string(json_object_get(root, texts[i]))) {
      snprintf(words, sizeof words, "it has no text '%s'", texts[i]);
      return refuse(path, words, diag);
    }
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (!is_number_or_null(json_object_get(root, numbers[i]))) {
      snprintf(words, sizeof words, "it has no number '%s'", numbers[i]);
      return refuse(path, words, diag);
    }
  if (!json_is_number(json_object_get(root, "seconds"))) return refuse(path, "it has no number 'seconds'", diag);
  if (!json_is_integer(iterations) || json_integer_value(iterations) < 0)
    return refuse(path, "it has no count of 'iterations'", diag);
  if (!json_is_array(history) || (json_int_t)json_array_size(history) - 1 != json_integer_value(iterations))
    return refuse(path, "its 'history' is not one number more than its iterations", diag);
  for (size_t i = 0; i < json_array_size(history); i++) {
    const json_t *one = json_array_get(history, i);
    if (!is_number_or_null(one) || json_number_value(one) < 0)
      return refuse(path, "its 'history' holds something that is no residual", diag);
  }
  return CB_OK;
}

static enum cb_status read_solution(json_t **root, const char *path, struct cb_diag *diag) {
  struct cb_mapping file;
  struct cb_diag why = {0};
  enum cb_status s = cb_file_map(&file, path, diag);
  if (s) return s;
  s = cb_json_read(root, (const char *)file.bytes, file.length, &why);
  cb_file_unmap(&file);
  if (s == CB_ERR_FORMAT) return refuse(path, why.message, diag);
  if (s) return cb_fail(diag, s, "%s", why.message);
  return check_solution(*root, path, diag);
}

enum cb_status cb_report_read_solutions(struct cb_report *report, struct cb_diag *diag) {
  enum cb_status s = CB_OK;
  for (int i = 0; i < report->call->solutions_count && !s; i++)
    s = read_solution(&report->solutions[i], report->call->solutions[i], diag);
  return s;
}

void cb_report_release_solutions(struct cb_report *report) {
  for (int i = 0; i < CB_MAX_SOLUTIONS; i++) json_decref(report->solutions[i]);
}

/* ---- scales */

struct curves {
  const struct cb_report *report;
  int count;
  int64_t iterations;   /* of the longest */
  int from, to;         /* powers of ten: the box's lower and upper edge */
};

/* Of the right side's norm; not finite: there is none. */
static double residual_of(const json_t *root, int64_t iteration) {
  const json_t *one = json_array_get(json_object_get(root, "history"), (size_t)iteration);
  return json_is_number(one) ? fmax(json_number_value(one), least_drawn) : (double)NAN;
}

static int64_t iterations_of(const json_t *root) { return json_integer_value(json_object_get(root, "iterations")); }

static void choose_scales(struct curves *curves) {
  double least = INFINITY, most = 0;
  for (int i = 0; i < curves->count; i++) {
    const json_t *root = curves->report->solutions[i];
    const int64_t last = iterations_of(root);
    if (last > curves->iterations) curves->iterations = last;
    for (int64_t k = 0; k <= last; k++) {
      const double residual = residual_of(root, k);
      if (!isfinite(residual)) continue;
      least = fmin(least, residual);
      most = fmax(most, residual);
    }
  }
  curves->from = most > 0 ? (int)floor(log10(least)) : -1;
  curves->to = most > 0 ? (int)ceil(log10(most)) : 0;
  if (curves->to == curves->from) curves->to++;
  if (!curves->iterations) curves->iterations = 1;
}

static double x_of(const struct curves *curves, int64_t iteration) {
  return LEFT + (RIGHT - LEFT) * (double)iteration / (double)curves->iterations;
}

static double y_of(const struct curves *curves, double residual) {
  return TOP + HEIGHT * (curves->to - log10(residual)) / (curves->to - curves->from);
}

/* ---- the drawing */

/* 1, 2 or 5 times a power of ten, so that there are ten at most. */
static int64_t step_of(int64_t most) {
  int64_t step = 1;
  for (int i = 0; most / step > 10; i++) step = i % 3 == 1 ? step / 2 * 5 : step * 2;
  return step;
}

static void add_ticks(struct cb_html *marks, const struct curves *curves) {
  const int64_t across = step_of(curves->iterations), up = step_of(curves->to - curves->from);
  char text[48];
  for (int64_t i = 0; i <= curves->iterations; i += across)
    cb_report_tick(marks, x_of(curves, i), TOP + HEIGHT, 0, TOP, cb_report_count(text, i));
  for (int power = curves->to; power >= curves->from; power -= (int)up) {
    snprintf(text, sizeof text, "1e%d", power);
    cb_report_tick(marks, LEFT, y_of(curves, pow(10, power)), 1, RIGHT, text);
  }
}

static void add_to_path(struct cb_text *path, const struct curves *curves, int64_t iteration, double residual,
                        int *pen) {
  if (isfinite(residual))
    cb_text_add(path, "%c%.1f %.1f", *pen ? 'L' : 'M', x_of(curves, iteration), y_of(curves, residual));
  *pen = isfinite(residual);
}

/* From iteration `from` to `to`, not included, the least and the largest in their order; a gap where something in it is
 * no number. */
static void add_stretch(struct cb_text *path, const struct curves *curves, const json_t *root, int64_t from, int64_t to,
                        int *pen) {
  int64_t least = from, most = from;
  for (int64_t i = from; i < to; i++) {
    const double residual = residual_of(root, i);
    if (!isfinite(residual)) least = most = i;
    if (!isfinite(residual)) break;
    if (residual < residual_of(root, least)) least = i;
    if (residual > residual_of(root, most)) most = i;
  }
  const int64_t first = least < most ? least : most, second = least < most ? most : least;
  add_to_path(path, curves, first, residual_of(root, first), pen);
  if (second != first) add_to_path(path, curves, second, residual_of(root, second), pen);
}

static void add_curve(struct cb_html *marks, const struct curves *curves, int number) {
  const json_t *root = curves->report->solutions[number];
  const int64_t points = iterations_of(root) + 1, stretches = points < 2 * MOST_DRAWN ? points : MOST_DRAWN;
  struct cb_text path = {0};
  int pen = 0;
  for (int64_t i = 0; i < stretches; i++)
    add_stretch(&path, curves, root, points * i / stretches, points * (i + 1) / stretches, &pen);
  /* a path of one point is a dot */
  if (path.length && !strchr(cb_text_string(&path), 'L')) cb_text_add(&path, "h.1");
  cb_html_set(marks, "color", "%d", number);
  cb_html_set(marks, "path", "%s", cb_text_string(&path));
  cb_html_add(marks, "curve");
  cb_text_release(&path);
}

static const char *text_of(const json_t *root, const char *name) {
  return json_string_value(json_object_get(root, name));
}

/* Where a curve ends: its last residual that is a number; 0: it has none. */
static int end_of(const struct curves *curves, int number, double *x, double *y) {
  const json_t *root = curves->report->solutions[number];
  for (int64_t i = iterations_of(root); i >= 0; i--) {
    const double residual = residual_of(root, i);
    if (!isfinite(residual)) continue;
    *x = x_of(curves, i);
    *y = y_of(curves, residual);
    return 1;
  }
  return 0;
}

/* Labels in the order of the table, from the top; a line leads to the curve's end. */
static void add_labels(struct cb_html *marks, const struct curves *curves) {
  for (int i = 0; i < curves->count; i++) {
    const double label = TOP + 8 + LABEL_STEP * i;
    double x, y;
    if (!end_of(curves, i, &x, &y)) continue;
    cb_report_line(marks, x, y, LABELS, label);
    cb_report_number(marks, "x", LABELS + 22);
    cb_report_number(marks, "y", label + 4);
    cb_html_set(marks, "color", "%d", i);
    cb_html_set(marks, "text", "%d %s, %s", i + 1, text_of(curves->report->solutions[i], "method"),
                text_of(curves->report->solutions[i], "reason"));
    cb_html_add(marks, "curve_label");
  }
}

/* ---- the table */

static void set_residual(struct cb_html *row, const char *name, const json_t *root) {
  const json_t *residual = json_object_get(root, name);
  if (json_is_number(residual)) cb_html_set(row, name, "%.2e", json_number_value(residual));
  else cb_html_set(row, name, "not a number");
}

static void add_row(struct cb_html *rows, const struct cb_report *report, int number) {
  const json_t *root = report->solutions[number];
  const double seconds = json_number_value(json_object_get(root, "seconds"));
  char count[48];
  cb_html_set(rows, "color", "%d", number);
  cb_html_set(rows, "number", "%d", number + 1);
  cb_html_set(rows, "method", "%s", text_of(root, "method"));
  cb_html_set(rows, "matrix", "%s", text_of(root, "matrix"));
  cb_html_set(rows, "reason", "%s", text_of(root, "reason"));
  cb_html_set(rows, "iterations", "%s", cb_report_count(count, iterations_of(root)));
  cb_html_set(rows, "time", "%.3f", 1e3 * seconds);
  if (iterations_of(root)) cb_html_set(rows, "each", "%.2f", 1e6 * seconds / (double)iterations_of(root));
  else cb_html_set(rows, "each", "—");
  set_residual(rows, "residual", root);
  set_residual(rows, "true_residual", root);
  cb_html_set(rows, "file", "%s", report->call->solutions[number]);
  cb_html_add(rows, "solution");
}

void cb_report_solutions(struct cb_report_page *page, const struct cb_report *report) {
  struct curves curves = {.report = report, .count = report->call->solutions_count};
  if (!curves.count) return;
  struct cb_html *marks = cb_report_pieces(page, "CURVES"), *rows = cb_report_pieces(page, "SOLUTIONS");
  choose_scales(&curves);
  add_ticks(marks, &curves);
  cb_report_box(marks, LEFT, TOP, RIGHT, TOP + HEIGHT);
  for (int i = 0; i < curves.count; i++) add_curve(marks, &curves, i);
  add_labels(marks, &curves);
  for (int i = 0; i < curves.count; i++) add_row(rows, report, i);
  cb_html_has(&page->html, "solutions");
  cb_html_set(&page->html, "curves_height", "%d", TOP + HEIGHT + UNDER);
  cb_html_set(&page->html, "curves_axis", "%d", TOP + HEIGHT + UNDER - 10);
  cb_html_set(&page->html, "curves_middle", "%d", TOP + HEIGHT / 2);
  cb_html_set(&page->html, "curves_label", "Residual over iterations: %d curve%s", curves.count,
              curves.count == 1 ? "" : "s");
  cb_html_set(&page->html, "curves_words", "How far each is from the right side, by its norm%s.",
              curves.iterations < 2 * MOST_DRAWN ? "" : "; of a long curve, extremes of its stretches are drawn");
}
