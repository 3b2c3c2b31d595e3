// SPDX-License-Identifier: Apache-2.0
/* cbgen report: the plan as a tree, its launches, and what else was looked at. */
#include "tool/report.h"

#include "tool/candidates.h"

#include "analysis/layout.h"

#include <stdio.h>
#include <string.h>

/* ---- the tree, from the plan's line (its grammar: analysis/plan.h) */

/* Where in the line, and which region the next leaf is. */
struct reader {
  const struct cb_report_page *page;
  const struct cb_plan *plan;
  const char *at;
  int region;
};

static void skip_blanks(struct reader *reader) {
  reader->at += strspn(reader->at, " ");
}

/* The word at the reader, which stands behind it then. */
static int take_word(struct reader *reader, const char **word) {
  *word = reader->at;
  const size_t length = strcspn(reader->at, " ()");
  reader->at += length;
  return (int)length;
}

/* Whether the list at the reader holds atoms: then it is a fact, else a node. */
static int is_fact(const struct reader *reader) {
  const char *behind = reader->at + 1 + strcspn(reader->at + 1, " ()");
  behind += strspn(behind, " ");
  return *behind != '(' && *behind != ')' && *behind;
}

static void read_fact(struct reader *reader, struct cb_html *facts) {
  const char *key;
  reader->at++;
  const int length = take_word(reader, &key);
  skip_blanks(reader);
  const int atoms = (int)strcspn(reader->at, ")");
  cb_html_has(facts, "key");
  cb_html_set(facts, "key", "%.*s", length, key);
  cb_html_set(facts, "value", "%.*s", atoms, reader->at);
  cb_html_add_inline(facts, "fact");
  reader->at += atoms;
  reader->at += *reader->at == ')';
}

static void read_node(struct reader *reader, struct cb_html *nodes, int depth);

/* What stands in a node behind its name. */
static void read_contents(struct reader *reader, struct cb_html *facts, struct cb_html *inner, int depth) {
  enum { DEEPEST = 64 };
  for (;;) {
    const char *word;
    skip_blanks(reader);
    if (!*reader->at || *reader->at == ')') break;
    if (*reader->at != '(') {
      const int length = take_word(reader, &word); /* "diagonals" of "split diagonals" */
      cb_html_set(facts, "value", "%.*s", length, word);
      cb_html_add_inline(facts, "fact");
    } else if (is_fact(reader) && strncmp(reader->at, "(split ", 7)) {
      read_fact(reader, facts);
    } else if (depth < DEEPEST) {
      read_node(reader, inner, depth + 1);
    } else {
      reader->at++;
    }
  }
  reader->at += *reader->at == ')';
}

/* A leaf names its region. */
static void name_region(struct reader *reader, struct cb_html *nodes, const char *name, int length) {
  char layout[32], number[48];
  snprintf(layout, sizeof layout, "%.*s", length, name);
  if (!cb_layout_find(layout) || reader->region == reader->plan->regions_count) return;
  const struct cb_region *region = &reader->plan->regions[reader->region];
  cb_html_has(nodes, "region");
  cb_html_set(nodes, "color", "%d", reader->region % 8);
  cb_html_set(nodes, "number", "%d", reader->region++);
  cb_html_set(nodes, "region_name", "%s", region->name);
  cb_html_set(nodes, "nonzeros", "%s", cb_report_count(number, region->nonzeros));
}

static void read_node(struct reader *reader, struct cb_html *nodes, int depth) {
  struct cb_html facts = cb_report_own(reader->page), inner = cb_report_own(reader->page),
                 list = cb_report_own(reader->page);
  const char *name;
  reader->at++;
  const int length = take_word(reader, &name);
  name_region(reader, nodes, name, length);
  read_contents(reader, &facts, &inner, depth);
  cb_html_markup(&list, "LEAVES", cb_html_take(&inner, &list));
  if (inner.text.length) cb_html_add(&list, "nodes");
  list.scope.count = 0;
  cb_html_set(nodes, "name", "%.*s", length, name);
  cb_html_markup(nodes, "FACTS", cb_html_take(&facts, nodes));
  cb_html_markup(nodes, "NODES", cb_html_take(&list, nodes));
  cb_html_add(nodes, "leaf");
  cb_html_release(&facts);
  cb_html_release(&inner);
  cb_html_release(&list);
}

/* ---- launches, and what compiling says */

static void say_what_runs(struct cb_text *text, const struct cb_plan *plan, const struct cb_launch *launch) {
  if (launch->body) cb_text_add_string(text, launch->body);
  if (launch->prepares) cb_text_add_string(text, launch->finishes ? "finishes " : "prepares ");
  for (int i = 0; i < launch->regions && !launch->body; i++)
    cb_text_add(text, "%s%s", i ? ", " : "", plan->regions[launch->first_region + i].name);
}

static void add_launches(struct cb_html *rows, const struct cb_job *job) {
  const struct cb_plan *plan = job->plan;
  for (int i = 0; i < plan->launches_count; i++) {
    struct cb_text what = {0};
    char name[128], number[48];
    cb_source_kernel(plan, &job->label, i, name, sizeof name);
    say_what_runs(&what, plan, &plan->launches[i]);
    cb_html_set(rows, "number", "%d", i);
    cb_html_set(rows, "kernel", "%s", name);
    cb_html_set(rows, "what", "%s", cb_text_string(&what));
    cb_html_set(rows, "blocks", "%s", cb_report_count(number, plan->launches[i].blocks));
    cb_html_set(rows, "threads", "%d", plan->launches[i].threads);
    cb_html_set(rows, "shared", "%lld B", (long long)plan->launches[i].dynamic_shared);
    cb_html_add(rows, "launch");
    cb_text_release(&what);
  }
}

static void say_registers(struct cb_html *html, const struct cb_report *report) {
  const struct cb_kernel_stats worst = cb_cubin_stats_worst(&report->stats);
  if (!*report->compiler)
    cb_html_set(html, "registers", "Registers are not known: %s.", report->uncompiled);
  else
    cb_html_set(html, "registers",
                "By %s: %d registers per thread, %d B spilled, %d B static shared memory, %d B of machine code.",
                report->compiler, worst.registers, worst.stack_bytes, worst.static_shared, worst.code_bytes);
}

void cb_report_plan(struct cb_report_page *page, const struct cb_report *report) {
  const struct cb_plan *plan = report->job.plan;
  struct reader reader = {.page = page, .plan = plan, .at = plan->line};
  read_node(&reader, cb_report_pieces(page, "TREE"), 0);
  add_launches(cb_report_pieces(page, "LAUNCHES"), &report->job);
  cb_html_set(&page->html, "plan_line", "%s", plan->line);
  cb_html_set(&page->html, "arch", "%s", plan->target.arch);
  cb_html_set(&page->html, "model", "%s", plan->target.model);
  say_registers(&page->html, report);
}

/* ---- candidates */

static double us_of(json_t *object, const char *name) {
  return 1e-3 * (double)json_integer_value(json_object_get(object, name));
}

static void add_parts(struct cb_html *cells, json_t *candidate) {
  static const char *const parts[] = {"launch", "stream", "gather", "work", "chain", "tail"};
  const char *decides = json_string_value(json_object_get(candidate, "decides"));
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    char name[24];
    snprintf(name, sizeof name, "%s_ns", parts[i]);
    cb_html_set(cells, "time", "%.2f", us_of(json_object_get(candidate, "parts"), name));
    if (decides && !strcmp(decides, parts[i])) cb_html_has(cells, "decides");
    cb_html_add_inline(cells, "part");
  }
}

static void set_measured(struct cb_html *rows, const struct cb_report *report, int number) {
  const double us = cb_report_candidate_us(report, number);
  if (!report->bench) return;
  cb_html_has(rows, "measuring");
  if (us > 0) cb_html_set(rows, "measured", "%.2f", us);
  else cb_html_set(rows, "measured", "—");
}

static void add_candidate(struct cb_html *rows, const struct cb_report_page *page, const struct cb_report *report,
                          json_t *candidate, int number) {
  struct cb_html parts = cb_report_own(page);
  const char *recipe = json_string_value(json_object_get(candidate, "recipe"));
  const json_int_t stored = json_integer_value(json_object_get(candidate, "stored_bytes"));
  add_parts(&parts, candidate);
  if (!strcmp(recipe, report->job.plan->recipe)) cb_html_has(rows, "chosen");
  cb_html_set(rows, "recipe", "%s", recipe);
  cb_html_set(rows, "predicted", "%.2f", us_of(candidate, "predicted_ns"));
  set_measured(rows, report, number);
  cb_html_markup(rows, "PARTS", cb_html_take(&parts, rows));
  cb_html_set(rows, "each", "%.2f", cb_report_each(report, stored));
  cb_html_set(rows, "launches", "%d", (int)json_integer_value(json_object_get(candidate, "launches")));
  cb_html_add(rows, "candidate");
  cb_html_release(&parts);
}

/* The cheapest one that was not added yet; NULL: all were. */
static json_t *next_candidate(json_t *list, size_t *number, const char *taken) {
  json_t *best = NULL;
  for (size_t i = 0; i < json_array_size(list) && i < CB_MAX_CANDIDATES; i++) {
    json_t *one = json_array_get(list, i);
    const json_int_t ns = json_integer_value(json_object_get(one, "predicted_ns"));
    if (taken[i] || json_object_get(one, "refusal")) continue;
    if (best && ns >= json_integer_value(json_object_get(best, "predicted_ns"))) continue;
    best = one;
    *number = i;
  }
  return best;
}

static void say_candidates(struct cb_html *html, const struct cb_report *report) {
  if (!report->job.plan->candidates_count)
    cb_html_set(html, "candidates_words", "Recipe '%s' was asked for, so there was no search.", report->call->options.recipe);
  else if (report->bench)
    cb_html_set(html, "candidates_words", "What the search planned, cheapest first by the cost model, and what a product took on "
                                          "%s.", report->job.target.model);
  else
    cb_html_set(html, "candidates_words", "What the search planned, cheapest first by the cost model. Nothing was measured: %s.",
                report->unmeasured);
}

void cb_report_candidates(struct cb_report_page *page, const struct cb_report *report) {
  struct cb_html *rows = cb_report_pieces(page, "CANDIDATES"), *refusals = NULL;
  char taken[CB_MAX_CANDIDATES] = {0};
  int failed = 0;
  size_t number = 0;
  json_t *list = cb_candidates_json(report->job.plan, &failed), *one;
  if (failed) rows->status = cb_fail_memory(rows->diag, "the candidates", 0);
  for (; !failed && (one = next_candidate(list, &number, taken)); taken[number] = 1)
    add_candidate(rows, page, report, one, (int)number);
  for (size_t i = 0; !failed && i < json_array_size(list); i++) {
    const char *reason = json_string_value(json_object_get(json_array_get(list, i), "refusal"));
    if (!reason) continue;
    if (!refusals) refusals = cb_report_pieces(page, "REFUSALS");
    cb_html_set(refusals, "recipe", "%s", json_string_value(json_object_get(json_array_get(list, i), "recipe")));
    cb_html_set(refusals, "reason", "%s", reason);
    cb_html_add(refusals, "refusal");
  }
  if (refusals) cb_html_has(&page->html, "refusals");
  json_decref(list);
  say_candidates(&page->html, report);
}
