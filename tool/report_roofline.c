// SPDX-License-Identifier: Apache-2.0
/* cbgen report: what bounds a product, and how near the candidates and the opponents come to it. Both axes are
 * logarithmic, so a rate of memory is a line of slope 1, and what launching costs is a level. */
#include "tool/report.h"

#include "analysis/plan/cost.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The plot's box and the column of labels, in units of the drawing; its height follows from the labels. */
enum { LEFT = 70, RIGHT = 580, TOP = 20, LABELS = 640, LABEL_STEP = 17, LEAST_HEIGHT = 340, UNDER = 50,
       OPPONENTS_DRAWN = 6 };

enum kind { CHOSEN_PREDICTED, CHOSEN_MEASURED, OTHER_PREDICTED, OTHER_MEASURED, OPPONENT, KINDS };

/* Marks differ by shape and by being filled, not only by colour. */
static const struct {
  const char *class, *shape, *words;
} kind_table[KINDS] = {
    [CHOSEN_PREDICTED] = {"own hollow", "M0-7L7 0L0 7L-7 0z", "chosen, predicted"},
    [CHOSEN_MEASURED] = {"own", "M0-7L7 0L0 7L-7 0z", "chosen, measured"},
    [OTHER_PREDICTED] = {"other hollow", "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z", "candidate, predicted"},
    [OTHER_MEASURED] = {"other", "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z", "candidate, measured"},
    [OPPONENT] = {"opponent", "M0-6L6 5h-12z", "opponent, measured"},
};

struct point {
  enum kind kind;
  char name[64];
  double intensity, gflops; /* operations per byte, 10^9 operations per second */
};

enum { MOST_POINTS = 2 * CB_MAX_CANDIDATES + 32 };
struct plot {
  const struct cb_report *report;
  int count;
  struct point points[MOST_POINTS];
  double x_least, x_most, y_least, y_most;
  int height;
};

/* ---- points */

static void add_point(struct plot *plot, enum kind kind, const char *name, int64_t bytes, double us) {
  const double operations = 2.0 * (double)plot->report->job.csr.nnz;
  if (bytes <= 0 || us <= 0 || operations <= 0 || plot->count == MOST_POINTS) return;
  struct point *point = &plot->points[plot->count++];
  *point = (struct point){.kind = kind, .intensity = operations / (double)bytes, .gflops = 1e-3 * operations / us};
  snprintf(point->name, sizeof point->name, "%s", name);
}

/* Where there is a measured time, the prediction of the chosen one alone stands beside it. */
static void add_candidate(struct plot *plot, const struct cb_candidate *candidate, int number) {
  const int chosen = !strcmp(candidate->recipe, plot->report->job.plan->recipe);
  const double measured_us = cb_report_candidate_us(plot->report, number);
  if (*candidate->refusal) return;
  if (chosen || measured_us <= 0)
    add_point(plot, chosen ? CHOSEN_PREDICTED : OTHER_PREDICTED, candidate->recipe, candidate->cost.bytes,
              1e-3 * (double)candidate->cost.ns);
  add_point(plot, chosen ? CHOSEN_MEASURED : OTHER_MEASURED, candidate->recipe, candidate->cost.bytes, measured_us);
}

static int was_timed(const struct cb_baseline_result *one) {
  return one->baseline.applies && !one->wrong && one->timing.us > 0;
}

/* Opponents that were faster than this one, or as fast and before it. */
static int place_of(const struct cb_bench_result *measured, int number) {
  int before = 0;
  for (int i = 0; i < measured->baselines_count; i++) {
    const double us = measured->baselines[i].timing.us, own = measured->baselines[number].timing.us;
    before += was_timed(&measured->baselines[i]) && (us < own || (us == own && i < number));
  }
  return before;
}

static void add_points(struct plot *plot) {
  const struct cb_plan *plan = plot->report->job.plan;
  const struct cb_bench_result *measured = &plot->report->measured;
  const struct cb_candidate alone = cb_plan_candidate(plan);
  for (int i = 0; i < plan->candidates_count; i++) add_candidate(plot, &plan->candidates[i], i);
  if (!plan->candidates_count) add_candidate(plot, &alone, 0);
  for (int i = 0; i < measured->baselines_count; i++) {
    const struct cb_baseline_result *one = &measured->baselines[i];
    if (was_timed(one) && place_of(measured, i) < OPPONENTS_DRAWN)
      add_point(plot, OPPONENT, one->baseline.name, one->baseline.stored_bytes + cb_cost_vector_bytes(plan),
                one->timing.us);
  }
}

/* Fastest first: labels stand in the order of the marks. */
static int compare_points(const void *left, const void *right) {
  const struct point *a = left, *b = right;
  return (a->gflops < b->gflops) - (a->gflops > b->gflops);
}

/* ---- scales */

static double launch_limit(const struct plot *plot) {
  const struct cb_plan *plan = plot->report->job.plan;
  return 2.0 * (double)plan->nnz / (double)(plan->target.launch_ns ? plan->target.launch_ns : 1);
}

static void choose_scales(struct plot *plot) {
  plot->x_least = plot->y_least = INFINITY;
  for (int i = 0; i < plot->count; i++) {
    const struct point *point = &plot->points[i];
    plot->x_least = fmin(plot->x_least, point->intensity / 1.4);
    plot->x_most = fmax(plot->x_most, point->intensity * 1.4);
    plot->y_least = fmin(plot->y_least, point->gflops / 1.5);
    plot->y_most = fmax(plot->y_most, point->gflops * 1.8);
  }
  if (launch_limit(plot) < 3 * plot->y_most) plot->y_most = fmax(plot->y_most, 1.3 * launch_limit(plot));
  const double memory = 1.2 * plot->x_most * (double)plot->report->job.plan->target.read_gb_per_s;
  plot->y_most = fmax(plot->y_most, fmin(memory, 40 * plot->y_most));
  plot->height = plot->count * LABEL_STEP + 20;
  if (plot->height < LEAST_HEIGHT) plot->height = LEAST_HEIGHT;
}

static double x_of(const struct plot *plot, double intensity) {
  return LEFT + (RIGHT - LEFT) * log(intensity / plot->x_least) / log(plot->x_most / plot->x_least);
}

static double y_of(const struct plot *plot, double gflops) {
  return TOP + plot->height - plot->height * log(gflops / plot->y_least) / log(plot->y_most / plot->y_least);
}

/* ---- grid and roofs */

static void add_tick(struct cb_html *marks, const struct plot *plot, double number, int vertical) {
  const double x = vertical ? LEFT : x_of(plot, number), y = vertical ? y_of(plot, number) : TOP + plot->height;
  char text[32];
  snprintf(text, sizeof text, "%.10g", number);
  cb_report_tick(marks, x, y, vertical, vertical ? RIGHT : TOP, text);
}

/* Some multiples of the powers of ten: the more, the narrower the range. */
static void add_ticks(struct cb_html *marks, const struct plot *plot, int vertical) {
  static const double steps[] = {1, 2, 5, 1.5, 3, 7};
  const double least = vertical ? plot->y_least : plot->x_least, most = vertical ? plot->y_most : plot->x_most;
  for (int power = (int)floor(log10(least)); power <= (int)ceil(log10(most)); power++)
    for (int i = 0; i < (most > 1e3 * least ? 1 : most > 5 * least ? 3 : 6); i++) {
      const double number = steps[i] * pow(10, power);
      if (number >= least && number <= most) add_tick(marks, plot, number, vertical);
    }
}

/* The words of a roof stand on it, and follow its slope. */
static void set_words(struct cb_html *marks, double x, double y, double angle, const char *anchor) {
  cb_report_number(marks, "x", x);
  cb_report_number(marks, "y", y);
  cb_report_number(marks, "angle", angle);
  cb_html_set(marks, "anchor", "%s", anchor);
}

/* A rate of memory in GB/s, from where it enters the box to where it leaves. */
static void add_rate(struct cb_html *marks, const struct plot *plot, const char *class, const char *words,
                     double rate) {
  const double from = fmax(plot->x_least, plot->y_least / rate), to = fmin(plot->x_most, plot->y_most / rate);
  if (rate <= 0 || from >= to) return;
  const double x1 = x_of(plot, from), y1 = y_of(plot, from * rate), x2 = x_of(plot, to), y2 = y_of(plot, to * rate);
  const double angle = atan2(y2 - y1, x2 - x1);
  cb_report_line(marks, x1, y1, x2, y2);
  cb_html_set(marks, "class", "%s", class);
  set_words(marks, (x1 + x2) / 2 + 6 * sin(angle), (y1 + y2) / 2 - 6 * cos(angle), angle * 180 / acos(-1), "middle");
  cb_html_set(marks, "text", "%s %.0f GB/s", words, rate);
  cb_html_add(marks, "roof");
}

static void add_launch_limit(struct cb_html *marks, const struct plot *plot) {
  const double limit = launch_limit(plot), y = y_of(plot, limit);
  if (limit <= plot->y_least || limit >= plot->y_most) return;
  cb_report_line(marks, LEFT, y, RIGHT, y);
  cb_html_set(marks, "class", "launch");
  set_words(marks, RIGHT - 6, y - 5, 0, "end");
  cb_html_set(marks, "text", "one launch, %.1f µs", 1e-3 * (double)plot->report->job.plan->target.launch_ns);
  cb_html_add(marks, "roof");
}

/* ---- marks and their labels */

/* The labels stand as near to their marks as they can without touching each other. */
static void add_marks(struct cb_html *marks, const struct plot *plot) {
  double next = TOP;
  for (int i = 0; i < plot->count; i++) {
    const struct point *point = &plot->points[i];
    const double y = y_of(plot, point->gflops), last = TOP + plot->height - LABEL_STEP * (plot->count - 1 - i);
    const double label = fmin(fmax(y, next), last);
    cb_report_number(marks, "x", x_of(plot, point->intensity));
    cb_report_number(marks, "y", y);
    cb_report_number(marks, "label_x", LABELS);
    cb_report_number(marks, "label_y", label);
    cb_report_number(marks, "text_x", LABELS + 5);
    cb_report_number(marks, "text_y", label + 4);
    cb_html_set(marks, "class", "%s", kind_table[point->kind].class);
    cb_html_set(marks, "shape", "%s", kind_table[point->kind].shape);
    cb_html_set(marks, "text", "%s, %s: %s", point->name, strchr(kind_table[point->kind].words, ' ') + 1,
                cb_report_short((char[48]){0}, point->gflops));
    cb_html_add(marks, "mark");
    next = label + LABEL_STEP;
  }
}

static void add_keys(struct cb_html *keys, const struct plot *plot) {
  for (int kind = 0; kind < KINDS; kind++) {
    int there = 0;
    for (int i = 0; i < plot->count; i++) there |= plot->points[i].kind == (enum kind)kind;
    if (!there) continue;
    cb_html_set(keys, "class", "%s", kind_table[kind].class);
    cb_html_set(keys, "shape", "%s", kind_table[kind].shape);
    cb_html_set(keys, "text", "%s", kind_table[kind].words);
    cb_html_add(keys, "key");
  }
}

/* ---- opponents */

/* A number, or a dash where there is none. */
static void set_if(struct cb_html *html, const char *name, int there, int digits, double number) {
  if (there) cb_html_set(html, name, "%.*f", digits, number);
  else cb_html_set(html, name, "—");
}

static void add_opponent(struct cb_html *rows, const struct cb_report *report, const struct cb_baseline_result *one) {
  const struct cb_timing *timing = &one->timing;
  const double own = cb_report_us(report);
  const int timed = was_timed(one);
  cb_html_set(rows, "name", "%s", one->baseline.name);
  set_if(rows, "time", timed, 2, timing->us);
  if (timed) cb_html_set(rows, "range", "%.2f to %.2f", timing->least_us, timing->most_us);
  else cb_html_set(rows, "range", "—");
  set_if(rows, "gflops", timed, 0, cb_report_gflops(report, timing->us));
  set_if(rows, "each", timed, 2, cb_report_each(report, one->baseline.stored_bytes));
  set_if(rows, "factor", timed && own > 0, 2, timing->us / own);
  cb_html_set(rows, "remark", "%s", one->wrong ? "a wrong result" : one->baseline.applies ? "" : one->baseline.reason);
  cb_html_add(rows, "opponent");
}

static void say_opponents(struct cb_html *html, const struct cb_report *report) {
  const struct cb_bench_result *measured = &report->measured;
  int version[3] = {0};
  char library[64] = "";
  if (report->bench->cusparse) {
    cb_cusparse_version(report->bench->cusparse, &version[0], &version[1], &version[2]);
    snprintf(library, sizeof library, " of cuSPARSE %d.%d.%d", version[0], version[1], version[2]);
  }
  if (measured->best >= 0)
    cb_html_set(html, "opponents_caption", "Opponents%s; the best right one is %s, %.2f times our time", library,
                measured->baselines[measured->best].baseline.name, measured->speed_up);
  else
    cb_html_set(html, "opponents_caption", "Opponents%s, none of which could be timed", library);
}

static void add_opponents(struct cb_report_page *page, const struct cb_report *report) {
  const struct cb_bench_result *measured = &report->measured;
  if (!measured->baselines_count) return;
  struct cb_html *rows = cb_report_pieces(page, "OPPONENTS");
  for (int i = 0; i < measured->baselines_count; i++) add_opponent(rows, report, &measured->baselines[i]);
  cb_html_has(&page->html, "opponents");
  say_opponents(&page->html, report);
}

static void say_roofline(struct cb_html *html, const struct cb_report *report, const struct plot *plot) {
  static const char about[] = "A product does two operations per nonzero and moves what it stores, x once and y once. No mark "
                              "lies above the rate of the memory that it reads from.";
  if (!plot->count)
    cb_html_set(html, "roofline_words", "The matrix has no nonzeros, so there is nothing to compare.");
  else if (!report->bench)
    cb_html_set(html, "roofline_words", "%s All marks are predictions, and there are no opponents: %s.", about,
                report->unmeasured);
  else if (!report->measured.baselines_count)
    cb_html_set(html, "roofline_words", "%s There are no opponents: %s.", about,
                *report->bench->missing ? report->bench->missing : "cuSPARSE has none for this product");
  else
    cb_html_set(html, "roofline_words", "%s Of the opponents the %d fastest are drawn.", about, (int)OPPONENTS_DRAWN);
}

void cb_report_roofline(struct cb_report_page *page, const struct cb_report *report) {
  struct plot plot = {.report = report};
  struct cb_html *marks = cb_report_pieces(page, "ROOFLINE"), *keys = cb_report_pieces(page, "KEYS");
  const struct cb_target *target = &report->job.plan->target;
  add_points(&plot);
  qsort(plot.points, (size_t)plot.count, sizeof *plot.points, compare_points);
  choose_scales(&plot);
  if (plot.count) {
    add_ticks(marks, &plot, 0);
    add_ticks(marks, &plot, 1);
    cb_report_box(marks, LEFT, TOP, RIGHT, TOP + plot.height);
    add_rate(marks, &plot, "memory", "memory", (double)target->read_gb_per_s);
    add_rate(marks, &plot, "l2", "L2", (double)target->l2_gb_per_s);
    add_launch_limit(marks, &plot);
    add_marks(marks, &plot);
    add_keys(keys, &plot);
  }
  cb_html_set(&page->html, "roofline_height", "%d", TOP + plot.height + UNDER);
  cb_html_set(&page->html, "axis_y", "%d", TOP + plot.height + UNDER - 10);
  cb_html_set(&page->html, "middle_y", "%d", TOP + plot.height / 2);
  cb_html_set(&page->html, "roofline_label", "Speed over operations per byte, both logarithmic: %d marks", plot.count);
  say_roofline(&page->html, report, &plot);
  add_opponents(page, report);
}
