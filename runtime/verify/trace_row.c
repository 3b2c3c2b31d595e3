// SPDX-License-Identifier: Apache-2.0
/* What a row was made of: see trace.h. The nodes that its y leads back to are visited twice: from y down to count how
 * often each is in the sum, then up to say what each is and should be. */
#include "runtime/verify/trace_parts.h"

#include "base/memory.h"
#include "base/real.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct kind {
  const char *name;
  int operands;
};
static const struct kind kinds[EMULATION_NODE_KINDS] = {
    [EMULATION_NUMBER] = {"number", 0},   [EMULATION_X] = {"x", 0},
    [EMULATION_Y] = {"y before", 0},      [EMULATION_UNSET] = {"unset", 0},
    [EMULATION_LOAD_X] = {"load_x", 1},   [EMULATION_VALUE] = {"value", 1},
    [EMULATION_ADD] = {"add", 2},         [EMULATION_SUBTRACT] = {"subtract", 2},
    [EMULATION_PRODUCT] = {"product", 2}, [EMULATION_ADD_PRODUCT] = {"add_product", 3},
    [EMULATION_LEAST] = {"least", 2},     [EMULATION_GREATEST] = {"greatest", 2},
    [EMULATION_OR] = {"or", 2},           [EMULATION_AND] = {"and", 2},
    [EMULATION_ROUND] = {"rounded", 1},
};

struct view {
  const struct cb_trace *trace;
  struct cb_trace_row *row;
  struct cb_trace_part *parts; /* of all nodes; unused ones are zero */
  uint64_t *ids;               /* of the row's nodes, ascending */
  int64_t count, room;
  uint32_t *taken; /* of each nonzero of the row: how often it is in the sum */
};

static int is_node(const struct view *view, uint64_t id) {
  return id < (uint64_t)view->trace->nodes.nodes_count;
}

static const struct emulation_node *node_of(const struct view *view, uint64_t id) {
  return is_node(view, id) ? &view->trace->nodes.nodes[id] : NULL;
}

static void find(struct view *view, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void find(struct view *view, const char *format, ...) {
  struct cb_trace_row *row = view->row;
  va_list arguments;
  if (row->findings_count == CB_TRACE_FINDINGS) return;
  va_start(arguments, format);
  vsnprintf(row->findings[row->findings_count++], sizeof *row->findings, format, arguments);
  va_end(arguments);
}

/* ---- down: how often */

static int compare_ids(const void *left, const void *right) {
  const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
  return (a > b) - (a < b);
}

/* Takes a node into the list, unless it is there. 0: no memory. */
static int take(struct view *view, uint64_t id) {
  if (!is_node(view, id) || view->parts[id].times) return 1;
  if (view->count == view->room) {
    uint64_t *const grown = cb_realloc(view->ids, 2 * (size_t)view->room + 64, sizeof *grown);
    if (!grown) return 0;
    view->ids = grown;
    view->room = 2 * view->room + 64;
  }
  view->ids[view->count++] = id;
  view->parts[id] = (struct cb_trace_part){.times = 1, .column = -1};
  return 1;
}

/* The list of all nodes that `last` leads back to. */
static int take_all(struct view *view, uint64_t last) {
  int good = take(view, last);
  for (int64_t i = 0; i < view->count && good; i++) {
    const struct emulation_node *node = &view->trace->nodes.nodes[view->ids[i]];
    for (int k = 0; k < kinds[node->kind].operands && good; k++) good = take(view, node->operands[k]);
  }
  if (view->count) qsort(view->ids, (size_t)view->count, sizeof *view->ids, compare_ids);
  return good;
}

static void count_times(struct view *view) {
  for (int64_t i = 0; i + 1 < view->count; i++) view->parts[view->ids[i]].times = 0;
  for (int64_t i = view->count - 1; i >= 0; i--) {
    const struct emulation_node *node = &view->trace->nodes.nodes[view->ids[i]];
    const uint32_t times = view->parts[view->ids[i]].times;
    for (int k = 0; k < kinds[node->kind].operands; k++) {
      if (!is_node(view, node->operands[k])) continue;
      uint32_t *const of = &view->parts[node->operands[k]].times;
      *of = *of < UINT32_MAX - times ? *of + times : UINT32_MAX;
    }
  }
}

/* ---- up: what */

/* The row's nonzero in the column; −1: it has none. */
static int64_t nonzero_at(const struct view *view, int64_t column) {
  const struct cb_csr *csr = view->trace->one->csr;
  int64_t low = cb_csr_row(csr, view->row->row), high = cb_csr_row(csr, view->row->row + 1);
  const int64_t end = high;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (csr->col_idx[middle] < column)
      low = middle + 1;
    else
      high = middle;
  }
  return low < end && csr->col_idx[low] == column ? low : -1;
}

static int64_t row_of(const struct cb_csr *csr, int64_t nonzero) {
  int64_t low = 0, high = csr->rows;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    if (cb_csr_row(csr, middle) <= nonzero)
      low = middle;
    else
      high = middle;
  }
  return low;
}

static int64_t column_of(const struct view *view, const struct emulation_node *node) {
  if (node->kind == EMULATION_X) return node->place;
  if (node->kind != EMULATION_LOAD_X && node->kind != EMULATION_ROUND) return -1;
  return is_node(view, node->operands[0]) ? view->parts[node->operands[0]].column : -1;
}

/* Which operand of a product of the semiring is an entry of x; −1: it is no product of the matrix. */
static int x_operand(const struct view *view, const struct emulation_node *node) {
  static const int products[] = {[CB_PLUS_TIMES] = EMULATION_PRODUCT,
                                 [CB_MIN_PLUS] = EMULATION_ADD,
                                 [CB_MAX_TIMES] = EMULATION_PRODUCT,
                                 [CB_OR_AND] = EMULATION_AND};
  if (node->kind != EMULATION_ADD_PRODUCT && node->kind != products[view->trace->one->plan->semiring]) return -1;
  for (int i = 1; i >= 0; i--)
    if (is_node(view, node->operands[i]) && view->parts[node->operands[i]].column >= 0) return i;
  return -1;
}

static long double exact_of(const struct view *view, const struct emulation_node *node, int64_t nonzero, int x) {
  long double of[3] = {0, 0, 0};
  for (int i = 0; i < kinds[node->kind].operands; i++)
    of[i] = is_node(view, node->operands[i]) ? view->parts[node->operands[i]].exact : NAN;
  if (x >= 0) of[!x] = nonzero >= 0 ? (long double)cb_trace_value(view->trace, nonzero) : 0;
  switch (node->kind) {
  case EMULATION_ADD:
    return of[0] + of[1];
  case EMULATION_SUBTRACT:
    return of[0] - of[1];
  case EMULATION_PRODUCT:
    return x >= 0 && nonzero < 0 ? 0 : of[0] * of[1];
  case EMULATION_ADD_PRODUCT:
    return x >= 0 && nonzero < 0 ? of[2] : of[0] * of[1] + of[2];
  case EMULATION_LEAST:
    return fminl(of[0], of[1]);
  case EMULATION_GREATEST:
    return fmaxl(of[0], of[1]);
  case EMULATION_OR:
    return of[0] != 0 || of[1] != 0;
  case EMULATION_AND:
    return of[0] != 0 && of[1] != 0;
  case EMULATION_LOAD_X:
  case EMULATION_ROUND:
    return of[0];
  default:
    return node->value;
  }
}

static void describe(const struct view *view, struct cb_trace_step *step, uint64_t id) {
  const struct emulation_node *node = &view->trace->nodes.nodes[id];
  *step = (struct cb_trace_step){.node = id,
                                 .what = kinds[node->kind].name,
                                 .column = view->parts[id].column,
                                 .nonzero = -1,
                                 .slot = -1,
                                 .region = -1,
                                 .line = node->line,
                                 .launch = node->launch,
                                 .block = node->block,
                                 .thread = node->thread,
                                 .operands_count = node->kind == EMULATION_VALUE ? 0 : kinds[node->kind].operands,
                                 .result = node->value,
                                 .exact = view->parts[id].exact};
  for (int i = 0; i < step->operands_count; i++) {
    const struct emulation_node *operand = node_of(view, node->operands[i]);
    step->operands[i] = !node->operands[i] ? 0 : operand ? operand->value : NAN;
  }
}

/* The nonzero that the row takes from a slot: what lies there, or, if that is another row's, its mirror image. */
static uint64_t nonzero_taken(const struct view *view, const struct emulation_node *value) {
  const struct cb_trace *trace = view->trace;
  const struct cb_csr *csr = trace->one->csr;
  const struct cb_slot_map *mirrored = &trace->mirrored[value->region];
  const uint64_t own = cb_slot_get(&trace->maps[value->region], value->place);
  const uint64_t other = mirrored->count ? cb_slot_get(mirrored, value->place) : CB_NO_NONZERO;
  return other != CB_NO_NONZERO && row_of(csr, (int64_t)other) == view->row->row ? other : own;
}

/* The slot that a value came from, with the nonzero that lies there (−1: padding). */
static void locate_value(const struct view *view, struct cb_trace_step *step, const struct emulation_node *value) {
  const struct cb_trace *trace = view->trace;
  if (!value || value->kind != EMULATION_VALUE || value->region < 0 || value->region >= trace->one->plan->regions_count)
    return;
  const struct cb_slot_map *map = &trace->maps[value->region];
  step->region = value->region;
  step->slot = value->place;
  if (value->place < 0 || value->place >= map->count) return;
  const uint64_t nonzero = nonzero_taken(view, value);
  step->nonzero = nonzero == CB_NO_NONZERO ? -1 : (int64_t)nonzero;
}

/* ---- what is wrong */

static void judge_slot(struct view *view, const struct cb_trace_step *step, int64_t wanted) {
  const struct cb_csr *csr = view->trace->one->csr;
  int region;
  const int64_t slot = cb_trace_find_slot(view->trace, (uint64_t)wanted, &region);
  if (step->nonzero >= 0)
    find(view, "line %d takes the value of nonzero (%lld, %lld), in slot %lld, for (%lld, %lld), in slot %lld",
         step->line, (long long)row_of(csr, step->nonzero), (long long)csr->col_idx[step->nonzero],
         (long long)step->slot, (long long)view->row->row, (long long)csr->col_idx[wanted], (long long)slot);
  else
    find(view, "line %d takes slot %lld, which is padding, for nonzero (%lld, %lld), in slot %lld", step->line,
         (long long)step->slot, (long long)view->row->row, (long long)csr->col_idx[wanted], (long long)slot);
}

/* A product of the matrix: the nonzero of the row's column against what was multiplied. */
static void judge_term(struct view *view, struct cb_trace_step *step, int64_t wanted,
                       const struct emulation_node *value) {
  const struct cb_csr *csr = view->trace->one->csr;
  const double number = value ? value->value : 0, own = wanted >= 0 ? cb_trace_value(view->trace, wanted) : 0;
  const int is_nothing = step->nonzero < 0 && (number == 0 || isnan(number));
  if (wanted < 0 || (is_nothing && step->slot >= 0)) { /* padding may be in a column where the row has a nonzero */
    const int spoils = view->trace->one->plan->semiring == CB_PLUS_TIMES && !isfinite(view->trace->x[step->column]);
    if (step->nonzero >= 0 && csr->col_idx[step->nonzero] == step->column)
      find(view, "line %d multiplies nonzero (%lld, %lld), in slot %lld, for row %lld", step->line,
           (long long)row_of(csr, step->nonzero), (long long)step->column, (long long)step->slot,
           (long long)view->row->row);
    else if (!is_nothing || spoils)
      find(view, "line %d multiplies %.9g with x[%lld], where row %lld has no nonzero", step->line, number,
           (long long)step->column, (long long)view->row->row);
    return;
  }
  const int64_t first = cb_csr_row(csr, view->row->row);
  if (step->slot >= 0 && step->nonzero != wanted)
    judge_slot(view, step, wanted);
  else if (number != own && !(isnan(number) && isnan(own)))
    find(view, "line %d multiplies x[%lld] with %.17g, and nonzero (%lld, %lld) is %.17g", step->line,
         (long long)step->column, number, (long long)view->row->row, (long long)step->column, own);
  view->taken[wanted - first] += view->parts[step->node].times;
  step->nonzero = wanted;
}

/* Operands that no node has. */
static void judge_operands(struct view *view, const struct emulation_node *node) {
  for (int i = 0; i < kinds[node->kind].operands; i++)
    if (!is_node(view, node->operands[i]))
      find(view, "line %d takes memory that nobody has written into the sum", node->line);
}

static void judge_counts(struct view *view) {
  const struct cb_csr *csr = view->trace->one->csr;
  const int64_t first = cb_csr_row(csr, view->row->row);
  const int adds = view->trace->one->plan->semiring == CB_PLUS_TIMES;
  for (int64_t k = 0; k < view->row->nonzeros; k++) {
    int region;
    if (view->taken[k] == 1 || (view->taken[k] && !adds)) continue;
    const int64_t slot = cb_trace_find_slot(view->trace, (uint64_t)(first + k), &region);
    const char *const name = region < 0 ? "no region" : view->trace->one->plan->regions[region].name;
    if (view->taken[k])
      find(view, "nonzero (%lld, %d) is in the sum %u times", (long long)view->row->row, csr->col_idx[first + k],
           view->taken[k]);
    else
      find(view, "nonzero (%lld, %d), in slot %lld of %s, is not in the sum", (long long)view->row->row,
           csr->col_idx[first + k], (long long)slot, name);
  }
}

static void judge_end(struct view *view) {
  const uint64_t id = view->trace->nodes.of_row[view->row->row];
  const struct emulation_node *node = node_of(view, id);
  if (!id) return;
  if (!node)
    find(view, "y[%lld] is memory that nobody has written", (long long)view->row->row);
  else if (node->kind == EMULATION_Y)
    find(view, "y[%lld] is never written", (long long)view->row->row);
}

/* The first operation that makes a number that is not finite, of a row whose y is none. */
static void judge_finite(struct view *view) {
  const struct cb_csr *csr = view->trace->one->csr;
  const struct cb_trace_row *row = view->row;
  if (isfinite(row->got) || view->trace->one->plan->semiring != CB_PLUS_TIMES) return;
  for (int64_t i = 0; i < row->steps_count; i++) {
    const struct cb_trace_step *step = &row->steps[i];
    if (isfinite(step->result) || !step->operands_count || (!step->is_term && step->column >= 0)) continue;
    if (step->is_term && step->nonzero >= 0)
      find(view, "nonzero (%lld, %d) = %.9g is the first that brings in %.9g: x[%lld] is %.9g, line %d",
           (long long)row->row, csr->col_idx[step->nonzero], cb_trace_value(view->trace, step->nonzero), step->result,
           (long long)step->column, view->trace->x[step->column], step->line);
    else
      find(view, "line %d is the first that makes %.9g: %s of %.9g and %.9g", step->line, step->result, step->what,
           step->operands[0], step->operands[1]);
    return;
  }
}

/* ---- the whole */

static int is_told(const struct view *view, uint64_t id) {
  return kinds[view->trace->nodes.nodes[id].kind].operands > 0;
}

static void go_up(struct view *view) {
  struct cb_trace_row *row = view->row;
  for (int64_t i = 0; i < view->count; i++) {
    const uint64_t id = view->ids[i];
    const struct emulation_node *node = &view->trace->nodes.nodes[id];
    struct cb_trace_part *part = &view->parts[id];
    part->column = column_of(view, node);
    const int x = x_operand(view, node);
    const int64_t column = x >= 0 ? view->parts[node->operands[x]].column : -1;
    const int64_t wanted = x >= 0 ? nonzero_at(view, column) : -1;
    part->exact = exact_of(view, node, wanted, x);
    if (!is_told(view, id)) continue;
    judge_operands(view, node);
    struct cb_trace_step *step = &row->steps[row->steps_count++];
    describe(view, step, id);
    if (node->kind == EMULATION_VALUE) locate_value(view, step, node);
    if (x < 0) continue;
    const struct emulation_node *value = node->operands[!x] ? node_of(view, node->operands[!x]) : NULL;
    step->is_term = 1;
    step->column = column;
    locate_value(view, step, value);
    judge_term(view, step, wanted, value);
  }
}

static void set_outcome(struct cb_trace_row *row, const struct cb_trace *trace) {
  const struct cb_expected own = {
      .rows = 1, .y = trace->expected.y + row->row, .tolerance = trace->expected.tolerance + row->row};
  const enum cb_type type = trace->one->plan->vector_type;
  struct cb_comparison comparison;
  row->got = cb_real_get(trace->result, type, row->row);
  row->expected = (double)own.y[0];
  row->tolerance = own.tolerance[0];
  cb_oracle_compare(&comparison, &own, (const char *)trace->result + (size_t)row->row * cb_type_size(type), type);
  row->is_right = !comparison.wrong;
}

static enum cb_status make_view(struct view *view, struct cb_diag *diag) {
  int64_t told = 0;
  view->taken = cb_calloc((size_t)view->row->nonzeros + 1, sizeof *view->taken);
  const int good = view->taken && take_all(view, view->trace->nodes.of_row[view->row->row]);
  for (int64_t i = 0; i < view->count; i++) told += is_told(view, view->ids[i]);
  if (good) view->row->steps = cb_alloc((size_t)told + 1, sizeof *view->row->steps);
  if (!view->row->steps) return cb_fail_memory(diag, "a row's trace", (unsigned long long)told);
  count_times(view);
  return CB_OK;
}

static void release_view(struct view *view) {
  for (int64_t i = 0; i < view->count; i++) view->parts[view->ids[i]] = (struct cb_trace_part){0};
  cb_free(view->ids);
  cb_free(view->taken);
}

enum cb_status cb_trace_row(struct cb_trace_row *row, const struct cb_trace *trace, int64_t number,
                            struct cb_diag *diag) {
  const struct cb_csr *csr = trace->one->csr;
  struct view view = {.trace = trace, .row = row, .parts = trace->parts};
  *row = (struct cb_trace_row){.row = number};
  if (number < 0 || number >= csr->rows)
    return cb_fail(diag, CB_ERR_ARGUMENT, "there is no row %lld: the matrix has %lld, from 0", (long long)number,
                   (long long)csr->rows);
  row->nonzeros = cb_csr_row_length(csr, number);
  set_outcome(row, trace);
  const enum cb_status s = make_view(&view, diag);
  if (!s) {
    go_up(&view);
    judge_end(&view);
    judge_finite(&view);
    judge_counts(&view);
  }
  release_view(&view);
  if (s) cb_trace_row_release(row);
  return s;
}

void cb_trace_row_release(struct cb_trace_row *row) {
  cb_free(row->steps);
  row->steps = NULL;
  row->steps_count = 0;
}
