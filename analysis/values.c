// SPDX-License-Identifier: Apache-2.0
/* Summarising values and choosing their storage: see values.h. */
#include "analysis/values.h"

#include "base/integers.h"
#include "base/real.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Candidates in order of preference; all are within f32. */
static const enum cb_type narrower[] = {CB_I8, CB_F16, CB_BF16, CB_I16, CB_F32};
enum { NARROWER = sizeof narrower / sizeof *narrower, ALL_FIT = (1 << NARROWER) - 1 };

enum { CHUNK = 1024 }; /* values looked at together */
struct gathered {
  struct cb_distinct set;
  unsigned fit; /* bit i: all values so far fit narrower[i] */
  int lost;     /* some finite value is none in the matrix's type */
};

/* Of the candidates in `fit` those that hold the values, too. */
static unsigned still_fit(const double *values, int64_t count, unsigned fit) {
  if (!fit || !cb_real_all_fit(values, count, CB_F32)) return 0;
  for (int i = 0; i < NARROWER - 1; i++)
    if (fit >> i & 1 && !cb_real_all_fit(values, count, narrower[i])) fit &= ~(1u << i);
  return fit;
}

/* Nonzeros first … end - 1 of the part, a chunk at most. */
static void gather(struct gathered *gathered, const struct cb_part *part, const double *values, int64_t first,
                   int64_t end, enum cb_type matrix_type) {
  double rounded[CHUNK];
  if (gathered->set.count > CB_TABLE_MOST && !gathered->fit) return;
  for (int64_t k = first; k < end; k++) {
    const double value = values[cb_part_origin(part, k)];
    rounded[k - first] = cb_real_round(value, matrix_type);
    gathered->lost |= cb_real_overflows(value, matrix_type);
  }
  gathered->fit = still_fit(rounded, end - first, gathered->fit);
  cb_distinct_add(&gathered->set, rounded, end - first);
}

static int by_bits(const void *left, const void *right) {
  const uint64_t a = cb_real_bits(*(const double *)left), b = cb_real_bits(*(const double *)right);
  return (a > b) - (a < b);
}

static void summarise(struct cb_value_summary *summary, const struct gathered *all,
                      enum cb_type matrix_type) {
  summary->narrowest = summary->narrowest_float = matrix_type;
  for (int i = NARROWER - 1; i >= 0; i--) {
    if (!(all->fit >> i & 1) || cb_type_size(narrower[i]) >= cb_type_size(matrix_type)) continue;
    summary->narrowest = narrower[i];
    if (narrower[i] != CB_I8 && narrower[i] != CB_I16) summary->narrowest_float = narrower[i];
  }
  if (all->lost || !all->set.count) {
    summary->distinct = 0;
    summary->narrowest = summary->narrowest_float = matrix_type; /* packing refuses what was lost */
    return;
  }
  summary->distinct = all->set.count;
  if (summary->distinct > CB_TABLE_MOST) return;
  int next = 0;
  for (int i = 0; i < CB_DISTINCT_SLOTS; i++)
    if (all->set.used[i]) memcpy(&summary->table[next++], &all->set.bits[i], sizeof summary->table[0]);
  qsort(summary->table, (size_t)next, sizeof summary->table[0], by_bits);
}

void cb_values_summarise(struct cb_value_summary *summary, const struct cb_part *part, const double *values,
                         enum cb_type matrix_type) {
  const int64_t nnz = part->csr->nnz;
  struct gathered all = {.fit = ALL_FIT};
#pragma omp parallel
  {
    struct gathered own = {.fit = ALL_FIT};
#pragma omp for schedule(static)
    for (int64_t k = 0; k < nnz; k += CHUNK)
      gather(&own, part, values, k, cb_smaller(k + CHUNK, nnz), matrix_type);
#pragma omp critical(cb_values)
    {
      cb_distinct_unite(&all.set, &own.set);
      all.fit &= own.fit;
      all.lost |= own.lost;
    }
  }
  *summary = (struct cb_value_summary){0};
  summarise(summary, &all, matrix_type);
}

struct cb_value_choice cb_values_choose(const struct cb_value_summary *summary, enum cb_type matrix_type,
                                        enum cb_padding padding) {
  const enum cb_type narrowest = padding == CB_PADDING_NAN ? summary->narrowest_float : summary->narrowest;
  const int count = summary->distinct; /* a NaN of the matrix is none of padding: its bits may be others */
  const int has_zero = padding == CB_PADDING_ZERO && count && !cb_real_bits(summary->table[0]);
  const int add_zero = padding != CB_PADDING_ANY && count && !has_zero;
  if (count == 1 && !add_zero && isfinite(summary->table[0]))
    return (struct cb_value_choice){CB_VALUES_EQUAL, narrowest, 0};
  if (count && count + add_zero <= CB_TABLE_MOST && cb_type_size(narrowest) > 1)
    return (struct cb_value_choice){CB_VALUES_CODED, CB_U8, add_zero};
  return (struct cb_value_choice){CB_VALUES_PLAIN, count ? narrowest : matrix_type, 0};
}
