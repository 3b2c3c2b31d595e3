// SPDX-License-Identifier: Apache-2.0
/* The candidates of a search: see candidates.h. */
#include "tool/candidates.h"

#include <stdio.h>
#include <string.h>

enum { SHOWN = 120 }; /* of a plan's line */

/* ---- parts of a prediction */

/* What may decide about a candidate's time. */
enum part { LAUNCH, STREAM, GATHER, WORK, CHAIN, TAIL, PARTS };

static const struct {
  const char *column, *words;
} part_table[PARTS] = {
    [LAUNCH] = {"launch", "launching"},     [STREAM] = {"stream", "streaming"},
    [GATHER] = {"gather", "gathers of x"},  [WORK] = {"work", "instructions"},
    [CHAIN] = {"chain", "dependent loads"}, [TAIL] = {"tail", "what follows the last load"},
};

static int64_t part_ns(const struct cb_candidate *candidate, const struct cb_plan *plan, enum part part) {
  const struct cb_cost *cost = &candidate->cost;
  switch (part) {
  case LAUNCH:
    return candidate->launches * plan->target.launch_ns;
  case STREAM:
    return cost->stream_ns;
  case GATHER:
    return cost->gather_ns;
  case WORK:
    return cost->work_ns;
  case CHAIN:
    return cost->chain_ns;
  default:
    return cost->tail_ns;
  }
}

/* Launching, where that takes the host longer; else the longest of what the GPU does at the same time. */
static enum part deciding(const struct cb_candidate *candidate, const struct cb_plan *plan) {
  enum part longest = STREAM;
  if (part_ns(candidate, plan, LAUNCH) >= candidate->cost.gpu_ns) return LAUNCH;
  for (enum part part = GATHER; part <= CHAIN; part++)
    if (part_ns(candidate, plan, part) > part_ns(candidate, plan, longest)) longest = part;
  return longest;
}

static double us(int64_t ns) {
  return 1e-3 * (double)ns;
}

/* ---- candidates, cheapest first; a tie goes to the one that was tried first */

struct ranking {
  int count; /* that were not refused */
  struct cb_candidate alone;
  const struct cb_candidate *order[CB_MAX_CANDIDATES];
};

static void rank(struct ranking *ranking, const struct cb_plan *plan) {
  ranking->count = 0;
  for (int i = 0; i < plan->candidates_count; i++) {
    const struct cb_candidate *candidate = &plan->candidates[i];
    if (*candidate->refusal) continue;
    int at = ranking->count++;
    for (; at && candidate->cost.ns < ranking->order[at - 1]->cost.ns; at--)
      ranking->order[at] = ranking->order[at - 1];
    ranking->order[at] = candidate;
  }
  if (plan->candidates_count) return;
  ranking->alone = cb_plan_candidate(plan);
  ranking->order[ranking->count++] = &ranking->alone;
}

/* Of a recipe that was not planned, the profile's time is all that is known. */
static int is_planned(const struct cb_candidate *candidate) { return candidate->line[0] != 0; }

static void add_row(struct cb_text *text, const struct cb_candidate *candidate, const struct cb_plan *plan) {
  cb_text_add(text, "  %-10s %10.2f", candidate->recipe, us(candidate->cost.ns));
  if (!is_planned(candidate)) {
    cb_text_add_string(text, "  by the profile alone\n");
    return;
  }
  for (enum part part = LAUNCH; part < PARTS; part++)
    cb_text_add(text, " %9.2f", us(part_ns(candidate, plan, part)));
  cb_text_add(text, " %8.2f %10lld\n", plan->nnz ? (double)candidate->bytes / (double)plan->nnz : 0,
              (long long)candidate->cost.sectors);
}

/* A sentence in lines of about WIDTH columns behind a recipe's name. */
static void add_wrapped(struct cb_text *text, const char *sentence) {
  enum { WIDTH = 100 };
  while (strlen(sentence) > WIDTH) {
    size_t end = WIDTH;
    while (end && sentence[end] != ' ') end--;
    if (!end) break;
    cb_text_add(text, "%.*s\n%13s", (int)end, sentence, "");
    sentence += end + 1;
  }
  cb_text_add(text, "%s\n", sentence);
}

void cb_candidates_table(struct cb_text *text, const struct cb_plan *plan) {
  struct ranking ranking;
  rank(&ranking, plan);
  cb_text_add_string(text, "  recipe      predicted");
  for (enum part part = LAUNCH; part < PARTS; part++) cb_text_add(text, " %9s", part_table[part].column);
  cb_text_add_string(text, "    B/nnz    sectors\n");
  for (int i = 0; i < ranking.count; i++) add_row(text, ranking.order[i], plan);
  for (int i = 0; i < ranking.count && plan->candidates_count; i++)
    if (is_planned(ranking.order[i]))
      cb_text_add(text, "  %-10s %.*s%s\n", ranking.order[i]->recipe, SHOWN, ranking.order[i]->line,
                strlen(ranking.order[i]->line) > SHOWN ? " …" : "");
  for (int i = 0; i < plan->candidates_count; i++) {
    const struct cb_candidate *candidate = &plan->candidates[i];
    const int tried = strncmp(candidate->refusal, "not tried", 9) != 0;
    if (!*candidate->refusal) continue;
    cb_text_add(text, "  %-10s %s", candidate->recipe, tried ? "refused: " : "");
    add_wrapped(text, candidate->refusal);
  }
}

/* ---- why */

static void add_reason(struct cb_text *text, const struct cb_candidate *first,
                       const struct cb_candidate *second, const struct cb_plan *plan) {
  const enum part own = deciding(first, plan), other = deciding(second, plan);
  if (own == LAUNCH && other == LAUNCH)
    cb_text_add(
        text,
        "launching decides about both (%.2f us and %.2f us), and %s takes %.2f us of the GPU, %s %.2f us",
        us(part_ns(first, plan, own)), us(part_ns(second, plan, other)), first->recipe,
        us(first->cost.gpu_ns), second->recipe, us(second->cost.gpu_ns));
  else if (own == other)
    cb_text_add(text, "%s decides about both, %.2f us against %.2f us", part_table[own].words,
                us(part_ns(first, plan, own)), us(part_ns(second, plan, other)));
  else
    cb_text_add(text, "its time is that of %s (%.2f us), the other's that of %s (%.2f us)",
                part_table[own].words, us(part_ns(first, plan, own)), part_table[other].words,
                us(part_ns(second, plan, other)));
}

void cb_candidates_why(struct cb_text *text, const struct cb_plan *plan) {
  struct ranking ranking;
  rank(&ranking, plan);
  if (!plan->candidates_count) {
    cb_text_add(text, "recipe '%s' was asked for; %s decides about its time", plan->recipe,
                part_table[deciding(ranking.order[0], plan)].words);
    return;
  }
  const struct cb_candidate *first = ranking.order[0], *second = ranking.order[1];
  if (ranking.count == 1) {
    cb_text_add(text, "%s is the only one that fits this matrix and could win", first->recipe);
    return;
  }
  if (plan->is_chosen_by_profile) {
    cb_text_add(text, "by its profile the matrix takes %.2f us with %s, and %.2f us with %s; no other recipe was planned",
                us(first->cost.ns), first->recipe, us(second->cost.ns), second->recipe);
    return;
  }
  const double faster =
      first->cost.ns ? 100.0 * (double)(second->cost.ns - first->cost.ns) / (double)first->cost.ns : 0;
  if (second->cost.ns > first->cost.ns)
    cb_text_add(text, "%s is predicted to be %.*f %% faster than %s: ", first->recipe, faster < 10, faster,
                second->recipe);
  else
    cb_text_add(text, "%s is predicted to be as fast as %s, and stands before it: ", first->recipe,
                second->recipe);
  add_reason(text, first, second, plan);
}

/* ---- JSON */

static json_t *parts_json(const struct cb_candidate *candidate, const struct cb_plan *plan, int *failed) {
  const struct cb_json object = cb_json_object(failed);
  char name[24];
  for (enum part part = LAUNCH; part < PARTS; part++) {
    snprintf(name, sizeof name, "%s_ns", part_table[part].column);
    cb_json_set_integer(object, name, part_ns(candidate, plan, part));
  }
  cb_json_set_integer(object, "gpu_ns", candidate->cost.gpu_ns);
  return object.json;
}

static json_t *candidate_json(const struct cb_candidate *candidate, const struct cb_plan *plan, int *failed) {
  if (*candidate->refusal)
    return json_pack("{s:s, s:s}", "recipe", candidate->recipe, "refusal", candidate->refusal);
  return json_pack("{s:s, s:s, s:i, s:I, s:I, s:I, s:I, s:s, s:o}", "recipe", candidate->recipe, "plan",
                   candidate->line, "launches", candidate->launches, "stored_bytes",
                   (json_int_t)candidate->bytes, "moved_bytes", (json_int_t)candidate->cost.bytes, "sectors",
                   (json_int_t)candidate->cost.sectors, "predicted_ns", (json_int_t)candidate->cost.ns,
                   "decides", part_table[deciding(candidate, plan)].column, "parts",
                   parts_json(candidate, plan, failed));
}

json_t *cb_candidates_json(const struct cb_plan *plan, int *failed) {
  const struct cb_candidate alone = cb_plan_candidate(plan);
  const struct cb_json array = cb_json_array(failed);
  for (int i = 0; i < plan->candidates_count; i++)
    cb_json_append(array, candidate_json(&plan->candidates[i], plan, failed));
  if (!plan->candidates_count) cb_json_append(array, candidate_json(&alone, plan, failed));
  return array.json;
}
