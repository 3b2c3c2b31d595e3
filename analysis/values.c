// SPDX-License-Identifier: Apache-2.0
/* Summarising values and choosing their storage: see values.h. */
#include "analysis/values.h"

#include "base/real.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* A set of bit patterns, open addressing. It stops to take new ones behind the limit. */
enum { SET_BITS = 10, SET = 1 << SET_BITS };
struct set {
  int count;
  unsigned char used[SET];
  uint64_t keys[SET];
};

static void set_add(struct set *set, uint64_t key) {
  unsigned place = (unsigned)(key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - SET_BITS));
  while (set->used[place] && set->keys[place] != key) place = (place + 1) % SET;
  if (set->used[place] || set->count > CB_TABLE_MOST) return;
  set->used[place] = 1;
  set->keys[place] = key;
  set->count++;
}

/* Candidates in order of preference; all are within f32. */
static const enum cb_type narrower[] = {CB_I8, CB_F16, CB_BF16, CB_I16, CB_F32};
enum { NARROWER = sizeof narrower / sizeof *narrower, ALL_FIT = (1 << NARROWER) - 1 };

/* Of the candidates in `fit` those that hold the value, too. */
static unsigned still_fit(double value, unsigned fit) {
  if (!fit || !cb_real_fits(value, CB_F32)) return 0;
  for (int i = 0; i < NARROWER - 1; i++)
    if (fit >> i & 1 && !cb_real_fits(value, narrower[i])) fit &= ~(1u << i);
  return fit;
}

struct gathered {
  struct set set;
  unsigned fit; /* bit i: all values so far fit narrower[i] */
  int lost;     /* some finite value is none in the matrix's type */
};

static void gather(struct gathered *gathered, double value, enum cb_type matrix_type) {
  if (gathered->set.count > CB_TABLE_MOST && !gathered->fit) return;
  const double rounded = cb_real_round(value, matrix_type);
  gathered->lost |= cb_real_overflows(value, matrix_type);
  gathered->fit = still_fit(rounded, gathered->fit);
  if (gathered->set.count <= CB_TABLE_MOST) set_add(&gathered->set, bits_of(rounded));
}

static int by_bits(const void *left, const void *right) {
  const uint64_t a = bits_of(*(const double *)left), b = bits_of(*(const double *)right);
  return (a > b) - (a < b);
}

static void summarise(struct cb_value_summary *summary, const struct gathered *all,
                      enum cb_type matrix_type) {
  summary->narrowest = matrix_type;
  for (int i = NARROWER - 1; i >= 0; i--)
    if (all->fit >> i & 1 && cb_type_size(narrower[i]) < cb_type_size(matrix_type))
      summary->narrowest = narrower[i];
  if (all->lost || !all->set.count) {
    summary->distinct = 0;
    summary->narrowest = matrix_type; /* packing refuses what was lost */
    return;
  }
  summary->distinct = all->set.count;
  if (summary->distinct > CB_TABLE_MOST) return;
  int next = 0;
  for (int i = 0; i < SET; i++)
    if (all->set.used[i]) memcpy(&summary->table[next++], &all->set.keys[i], sizeof summary->table[0]);
  qsort(summary->table, (size_t)next, sizeof summary->table[0], by_bits);
}

void cb_values_summarise(struct cb_value_summary *summary, const struct cb_part *part, const double *values,
                         enum cb_type matrix_type) {
  struct gathered all = {.fit = ALL_FIT};
#pragma omp parallel
  {
    struct gathered own = {.fit = ALL_FIT};
#pragma omp for schedule(static)
    for (int64_t k = 0; k < part->csr->nnz; k++) gather(&own, values[cb_part_origin(part, k)], matrix_type);
#pragma omp critical(cb_values)
    {
      for (int i = 0; i < SET; i++)
        if (own.set.used[i]) set_add(&all.set, own.set.keys[i]);
      all.fit &= own.fit;
      all.lost |= own.lost;
    }
  }
  *summary = (struct cb_value_summary){0};
  summarise(summary, &all, matrix_type);
}

struct cb_value_choice cb_values_choose(const struct cb_value_summary *summary, enum cb_type matrix_type,
                                        int zeros) {
  const int count = summary->distinct;
  const int add_zero = zeros && count && bits_of(summary->table[0]);
  if (count == 1 && !add_zero && isfinite(summary->table[0]))
    return (struct cb_value_choice){CB_VALUES_EQUAL, summary->narrowest, 0};
  if (count && count + add_zero <= CB_TABLE_MOST && cb_type_size(summary->narrowest) > 1)
    return (struct cb_value_choice){CB_VALUES_CODED, CB_U8, add_zero};
  return (struct cb_value_choice){CB_VALUES_PLAIN, count ? summary->narrowest : matrix_type, 0};
}
