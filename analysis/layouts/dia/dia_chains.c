// SPDX-License-Identifier: Apache-2.0
/* Chains of diagonals: the stride that saves most, then the conditions under which rows have entries. See
 * dia_chains.h. */
#include "analysis/layouts/dia/dia_chains.h"

#include "base/integers.h"

#include <stdlib.h>
#include <string.h>

enum { PERIODS = 8 };

/* ---- the stride: needs the diagonals */

/* Chains in the order of their first diagonals; longer ones are cut. */
static void make_chains(struct cb_chains *chains, const struct cb_chain_shape *shape, int64_t stride) {
  unsigned char taken[CB_CHAINED] = {0};
  int placed = 0;
  chains->stride = stride;
  chains->count = chains->longest = 0;
  for (int first = 0; first < shape->diagonals; first++) {
    if (taken[first]) continue;
    int64_t next = shape->offset[first];
    chains->begin[chains->count] = placed;
    for (int d = first; d < shape->diagonals && placed < chains->begin[chains->count] + CB_CHAIN_LENGTH;
         d++) {
      if (shape->offset[d] != next || taken[d]) continue;
      taken[d] = 1;
      chains->diagonal[placed++] = d;
      next += stride;
    }
    const int length = placed - chains->begin[chains->count++];
    if (length > chains->longest) chains->longest = length;
  }
  chains->begin[chains->count] = placed;
}

int cb_chain_loads(const struct cb_chains *chains, int chain) {
  return chains->begin[chain + 1] - chains->begin[chain] + chains->rows - 1;
}

static int by_number(const void *a, const void *b) {
  const int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;
  return (one > other) - (one < other);
}

int64_t cb_chains_elements(const struct cb_chains *chains, const struct cb_chain_shape *shape) {
  int64_t first[CB_CHAINED * CB_CHAIN_ROWS], elements = 0, end = INT64_MIN;
  int count = 0;
  for (int c = 0; c < chains->count; c++)
    for (int i = 0; i < cb_chain_loads(chains, c); i++)
      first[count++] = shape->offset[chains->diagonal[chains->begin[c]]] + i * chains->stride;
  qsort(first, (size_t)count, sizeof *first, by_number);
  for (int i = 0; i < count; i++) {
    const int64_t from = cb_larger(first[i], end);
    end = first[i] + chains->threads;
    elements += end - from;
  }
  return elements;
}

/* Whether rows are counted in 32 bits, those of the last group and of threads beyond it, too. */
static int fits(const struct cb_chain_shape *shape, const struct cb_chain_wish *wish, int64_t stride) {
  return shape->csr->rows + wish->rows * (2 * stride + wish->threads) <= INT32_MAX;
}

/* A stride and what the whole matrix needs with it: threads that lack rows load for them, too. */
struct candidate {
  int64_t stride, needs;
};

static struct candidate try_stride(const struct cb_chain_shape *shape, const struct cb_chain_wish *wish,
                                   int64_t stride) {
  struct cb_chains chains = {.rows = wish->rows, .threads = wish->threads};
  make_chains(&chains, shape, stride);
  const int64_t groups = cb_divide_up(shape->csr->rows, stride * chains.rows);
  const int64_t blocks = cb_divide_up(groups * stride, chains.threads);
  return (struct candidate){stride, blocks * cb_chains_elements(&chains, shape)};
}

/* Of those that need as much, the largest stride: its groups are the fewest. */
static int is_before(const struct candidate *one, const struct candidate *other) {
  return one->needs != other->needs ? one->needs < other->needs : one->stride > other->stride;
}

/* The best stride behind `last`; 0: none saves enough. Neighbouring threads have neighbouring rows, but for
 * those between groups: strides are no smaller than a thread block. */
static struct candidate next_stride(const struct cb_chain_shape *shape, const struct cb_chain_wish *wish,
                                    const struct candidate *last) {
  struct candidate best = {0, cb_divide_up(shape->csr->rows, wish->of_rows) * wish->elements};
  for (int a = 0; a < shape->diagonals; a++)
    for (int b = a + 1; b < shape->diagonals; b++) {
      const int64_t stride = (int64_t)shape->offset[b] - shape->offset[a];
      if (stride < wish->threads || stride == best.stride || !fits(shape, wish, stride)) continue;
      const struct candidate one = try_stride(shape, wish, stride);
      if (is_before(last, &one) && is_before(&one, &best)) best = one;
    }
  return best;
}

/* ---- conditions: need chains */

/* What a walk over the rows needs to know, and what it finds. */
struct walk {
  const struct cb_chain_shape *shape;
  int periods;
  int64_t period[PERIODS];
  int chain_of[CB_CHAINED]; /* by diagonal; −1: its chain has no holes */
  /* by chain and period: row numbers of the chain's nonzeros modulo the period */
  int64_t least[CB_CHAINED * PERIODS], greatest[CB_CHAINED * PERIODS];
};

/* Divisors of the stride that diagonals suggest, ascending. */
static int find_periods(int64_t periods[PERIODS], const struct cb_chains *chains,
                        const struct cb_chain_shape *shape) {
  int count = 0;
  periods[count++] = chains->stride;
  for (int d = 0; d < shape->diagonals && count < PERIODS; d++) {
    const int64_t period = llabs((long long)shape->offset[d]);
    int known = period < 2 || chains->stride % period != 0;
    for (int i = 0; i < count; i++) known |= periods[i] == period;
    if (!known) periods[count++] = period;
  }
  qsort(periods, (size_t)count, sizeof *periods, by_number);
  return count;
}

/* Columns and offsets both ascend. */
static void widen_row(const struct walk *walk, int64_t row, int64_t *least, int64_t *greatest) {
  const struct cb_csr *csr = walk->shape->csr;
  int64_t rest[PERIODS];
  int d = 0;
  for (int p = 0; p < walk->periods; p++) rest[p] = row % walk->period[p];
  for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++) {
    while (row + walk->shape->offset[d] != csr->col_idx[k]) d++;
    const int at = walk->chain_of[d] * PERIODS;
    for (int p = 0; p < walk->periods && at >= 0; p++) {
      least[at + p] = cb_smaller(least[at + p], rest[p]);
      greatest[at + p] = cb_larger(greatest[at + p], rest[p]);
    }
  }
}

static void find_extents(struct walk *walk) {
  enum { ALL = CB_CHAINED * PERIODS };
  int64_t *least = walk->least, *greatest = walk->greatest;
  for (int i = 0; i < ALL; i++) {
    least[i] = INT64_MAX;
    greatest[i] = -1;
  }
#pragma omp parallel for schedule(static) reduction(min : least[ : ALL]) reduction(max : greatest[ : ALL])
  for (int64_t row = 0; row < walk->shape->csr->rows; row++) widen_row(walk, row, least, greatest);
}

/* Of the first `rows` numbers, those that meet all of a few conditions, whose periods divide the stride. */
static int64_t count_meeting(int64_t rows, int64_t stride, const struct cb_condition *conditions, int count) {
  const int64_t whole = rows / stride, rest = rows % stride, walked = whole ? stride : rest;
  int64_t all = 0, first = 0;
#pragma omp parallel for schedule(static) reduction(+ : all, first)
  for (int64_t row = 0; row < walked; row++) {
    int meets = 1;
    for (int i = 0; i < count; i++) {
      const int64_t place = row % conditions[i].period;
      meets &= conditions[i].from <= place && place < conditions[i].to;
    }
    all += meets;
    first += meets && row < rest;
  }
  return whole * all + first;
}

/* Whether conditions that all nonzeros of a chain meet are met by no other place: there are as many. */
static int are_exact(const struct cb_chains *chains, const struct cb_chain_shape *shape, int chain,
                     const struct cb_condition *conditions, int count) {
  const struct cb_csr *csr = shape->csr;
  for (int i = chains->begin[chain]; i < chains->begin[chain + 1]; i++) {
    const int d = chains->diagonal[i];
    const int64_t offset = shape->offset[d];
    const int64_t first = cb_larger(0, -offset), end = cb_smaller(csr->rows, csr->cols - offset);
    const int64_t meeting = count_meeting(end, chains->stride, conditions, count) -
                            count_meeting(first, chains->stride, conditions, count);
    if (meeting != end - first - shape->holes[d]) return 0;
  }
  return 1;
}

/* Number of the condition, which may be a new one; −1: there are too many. */
static int number_of(struct cb_chains *chains, const struct cb_condition *condition) {
  int i = 0;
  while (i < chains->conditions && memcmp(&chains->condition[i], condition, sizeof *condition)) i++;
  if (i == CB_CONDITIONS) return -1;
  if (i == chains->conditions) chains->condition[chains->conditions++] = *condition;
  return i;
}

/* What says which rows a chain's diagonals have. */
struct needs {
  int count;
  struct cb_condition condition[PERIODS];
};

/* The bounds that rows have modulo each period: all that tell something. Returns whether they will do. */
static int find_needs(struct needs *needs, const struct cb_chains *chains, const struct cb_chain_shape *shape,
                      const struct walk *walk, int chain) {
  needs->count = 0;
  for (int p = 0; p < walk->periods; p++) {
    const int64_t from = walk->least[chain * PERIODS + p], to = walk->greatest[chain * PERIODS + p] + 1;
    if (from > 0 || to < walk->period[p])
      needs->condition[needs->count++] = (struct cb_condition){walk->period[p], from, to};
  }
  return are_exact(chains, shape, chain, needs->condition, needs->count);
}

/* Leaves out what the others say, long periods first. */
static void drop_needless(struct needs *needs, const struct cb_chains *chains,
                          const struct cb_chain_shape *shape, int chain) {
  for (int i = needs->count - 1; i >= 0; i--) {
    const struct cb_condition dropped = needs->condition[i];
    needs->condition[i] = needs->condition[needs->count - 1];
    if (are_exact(chains, shape, chain, needs->condition, needs->count - 1))
      needs->count--;
    else
      needs->condition[i] = dropped;
  }
}

/* Conditions of other chains take the place of closer ones where they say the same beside the rest. */
static void share_conditions(struct needs *needs, const struct cb_chains *chains,
                             const struct cb_chain_shape *shape, int chain) {
  for (int i = 0; i < needs->count; i++)
    for (int known = 0; known < chains->conditions; known++) {
      const struct cb_condition own = needs->condition[i], *other = &chains->condition[known];
      if (other->period != own.period || other->from > own.from || other->to < own.to) continue;
      needs->condition[i] = *other;
      if (are_exact(chains, shape, chain, needs->condition, needs->count)) break;
      needs->condition[i] = own;
    }
}

/* Numbers the conditions; chains that need one alone come first, since others may share it. Returns whether
 * there are few enough. */
static int number_conditions(struct cb_chains *chains, const struct cb_chain_shape *shape,
                             struct needs *needs) {
  for (int alone = 1; alone >= 0; alone--)
    for (int c = 0; c < chains->count; c++) {
      if ((needs[c].count == 1) != alone) continue;
      if (!alone) share_conditions(&needs[c], chains, shape, c);
      for (int i = 0; i < needs[c].count; i++) {
        const int number = number_of(chains, &needs[c].condition[i]);
        if (number < 0) return 0;
        chains->needs[c] |= UINT32_C(1) << number;
      }
    }
  return 1;
}

/* Returns whether conditions describe all chains. */
static int choose_conditions(struct cb_chains *chains, const struct cb_chain_shape *shape, const struct walk *walk) {
  struct needs needs[CB_CHAINED] = {{0}};
  for (int c = 0; c < chains->count; c++) {
    if (walk->chain_of[chains->diagonal[chains->begin[c]]] < 0) continue;
    if (!find_needs(&needs[c], chains, shape, walk, c)) return 0;
    drop_needless(&needs[c], chains, shape, c);
  }
  return number_conditions(chains, shape, needs);
}

/* Absent places that are not regular leave no chains. */
static void find_conditions(struct cb_chains *chains, const struct cb_chain_shape *shape) {
  struct walk walk = {.shape = shape};
  int some = 0;
  walk.periods = find_periods(walk.period, chains, shape);
  for (int c = 0; c < chains->count; c++) {
    int holed = 0;
    for (int i = chains->begin[c]; i < chains->begin[c + 1]; i++) holed |= shape->holes[chains->diagonal[i]] > 0;
    some |= holed;
    for (int i = chains->begin[c]; i < chains->begin[c + 1]; i++)
      walk.chain_of[chains->diagonal[i]] = holed ? c : -1;
  }
  if (!some) return;
  find_extents(&walk);
  if (!choose_conditions(chains, shape, &walk)) chains->stride = 0;
}

static void use_stride(struct cb_chains *chains, const struct cb_chain_shape *shape, const struct cb_chain_wish *wish,
                       int64_t stride) {
  *chains = (struct cb_chains){.rows = wish->rows, .threads = wish->threads};
  if (!stride || !fits(shape, wish, stride)) return;
  make_chains(chains, shape, stride);
  find_conditions(chains, shape);
}

void cb_chains_find(struct cb_chains *chains, const struct cb_chain_shape *shape, const struct cb_chain_wish *wish) {
  enum { ATTEMPTS = 4 }; /* each looks at all nonzeros */
  struct candidate last = {INT64_MAX, 0};
  use_stride(chains, shape, wish, shape->diagonals > CB_CHAINED ? 0 : wish->stride);
  if (shape->diagonals > CB_CHAINED || wish->stride) return;
  for (int i = 0; i < ATTEMPTS && !chains->stride; i++) {
    last = next_stride(shape, wish, &last);
    if (!last.stride) break;
    use_stride(chains, shape, wish, last.stride);
  }
}
