// SPDX-License-Identifier: Apache-2.0
/* Counting diagonals and choosing the populated ones: see diagonals.h.
 *
 * Counting has two passes over the matrix. The first counts whole groups of neighbouring diagonals, so few that each
 * thread has counters of its own; a diagonal can only be as full as its group. The second counts the diagonals of the
 * groups that are full enough: in most matrices none, or as few. Where there are many, as in a random matrix whose
 * every diagonal is asked for, threads share counters of all diagonals.
 */
#include "analysis/diagonals.h"

#include "base/integers.h"
#include "base/memory.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum {
  GROUPS = 1 << 13, /* at most */
  OWN = 1 << 17,    /* counters that a thread may have of its own in any case */
  NONE = -1
};

int64_t cb_diagonal_length(const struct cb_csr *csr, int64_t offset) {
  const int64_t first = offset < 0 ? -offset : 0; /* row */
  const int64_t end = csr->rows < csr->cols - offset ? csr->rows : csr->cols - offset;
  return end - first;
}

/* ---- counting */

struct counting {
  const struct cb_csr *csr;
  int64_t keys, least;
  int log2;               /* of the keys of a group */
  int32_t number[GROUPS]; /* of a group that is full enough, ascending; NONE: of no other */
  int64_t numbers;
  int64_t *counts; /* by key within the numbered groups, behind each other; NULL while groups are counted */
};

/* Adds what a thread's rows have to its counters. */
static void count_row(const struct counting *counting, int64_t row, int64_t *own) {
  const struct cb_csr *csr = counting->csr;
  const int64_t shift = csr->rows - 1 - row, end = cb_csr_row(csr, row + 1);
  const int64_t within = (INT64_C(1) << counting->log2) - 1;
  for (int64_t k = cb_csr_row(csr, row); k < end; k++) {
    const int64_t key = csr->col_idx[k] + shift, group = key >> counting->log2;
    if (!counting->counts)
      own[group]++;
    else if (counting->number[group] != NONE)
      own[((int64_t)counting->number[group] << counting->log2) + (key & within)]++;
  }
}

/* The sums of all threads' counters, `count` of them, in `sums`. */
static int sum_counters(const struct counting *counting, int64_t *sums, int64_t count) {
  int64_t *own = cb_calloc((size_t)omp_get_max_threads() * (size_t)count, sizeof *own);
  if (!own) return 0;
#pragma omp parallel
  {
    const int64_t me = omp_get_thread_num(), all = omp_get_num_threads();
#pragma omp for schedule(static)
    for (int64_t row = 0; row < counting->csr->rows; row++) count_row(counting, row, own + me * count);
#pragma omp for schedule(static)
    for (int64_t i = 0; i < count; i++) {
      int64_t sum = 0;
      for (int64_t thread = 0; thread < all; thread++) sum += own[thread * count + i];
      sums[i] = sum;
    }
  }
  cb_free(own);
  return 1;
}

/* Numbers the groups in which a diagonal of `least` nonzeros may be. */
static int find_groups(struct counting *counting) {
  int64_t sums[GROUPS];
  while ((counting->keys - 1) >> counting->log2 >= GROUPS) counting->log2++;
  const int64_t groups = ((counting->keys - 1) >> counting->log2) + 1;
  if (!sum_counters(counting, sums, groups)) return 0;
  for (int64_t group = 0; group < groups; group++)
    counting->number[group] = sums[group] >= counting->least ? (int32_t)counting->numbers++ : NONE;
  return 1;
}

/* Counters of all diagonals, which threads share. */
static void count_shared(struct counting *counting) {
  const struct cb_csr *csr = counting->csr;
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < csr->rows; row++)
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++) {
      const int64_t key = csr->col_idx[k] + csr->rows - 1 - row;
#pragma omp atomic
      counting->counts[key]++;
    }
}

static int count_diagonals(struct counting *counting) {
  const int64_t few = counting->numbers << counting->log2;
  const int shared = few > OWN && few * omp_get_max_threads() > counting->csr->nnz / 4;
  counting->counts = cb_calloc((size_t)(shared ? counting->keys : few), sizeof *counting->counts);
  if (!counting->counts) return 0;
  if (!shared) return !few || sum_counters(counting, counting->counts, few);
  for (int64_t group = 0; group <= (counting->keys - 1) >> counting->log2; group++)
    counting->number[group] = (int32_t)group;
  count_shared(counting);
  return 1;
}

/* The diagonals of a numbered group that are full enough; only counts them while there is no list. */
static int64_t list_group(const struct counting *counting, int64_t group, struct cb_diagonal *list) {
  const int64_t first = group << counting->log2;
  const int64_t end = cb_smaller(first + (INT64_C(1) << counting->log2), counting->keys);
  const int64_t *counts = counting->counts + ((int64_t)counting->number[group] << counting->log2);
  int64_t listed = 0;
  for (int64_t key = first; key < end; key++) {
    if (counts[key - first] < counting->least) continue;
    if (list) list[listed] = (struct cb_diagonal){key, counts[key - first]};
    listed++;
  }
  return listed;
}

static int make_list(const struct counting *counting, struct cb_diagonal **list, int64_t *count) {
  const int64_t groups = ((counting->keys - 1) >> counting->log2) + 1;
  int64_t first[GROUPS + 1] = {0};
#pragma omp parallel for schedule(dynamic, 16)
  for (int64_t group = 0; group < groups; group++)
    if (counting->number[group] != NONE) first[group + 1] = list_group(counting, group, NULL);
  for (int64_t group = 0; group < groups; group++) first[group + 1] += first[group];
  *count = first[groups];
  *list = cb_alloc((size_t)*count, sizeof **list);
  if (!*list) return 0;
#pragma omp parallel for schedule(dynamic, 16)
  for (int64_t group = 0; group < groups; group++)
    if (first[group + 1] > first[group]) list_group(counting, group, *list + first[group]);
  return 1;
}

enum cb_status cb_diagonals_list(struct cb_diagonal **list, int64_t *count, const struct cb_csr *csr, int64_t least,
                                 struct cb_diag *diag) {
  struct counting counting = {.csr = csr, .keys = cb_larger(csr->rows + csr->cols, 1), .least = least};
  *list = NULL;
  *count = 0;
  const int good = find_groups(&counting) && count_diagonals(&counting) && make_list(&counting, list, count);
  cb_free(counting.counts);
  if (good) return CB_OK;
  *count = 0;
  return cb_fail_memory(diag, "diagonals", (uint64_t)counting.keys * sizeof *counting.counts);
}

/* ---- choosing */

static int is_populated(const struct cb_csr *csr, const struct cb_diagonal *diagonal,
                        const struct cb_options *options) {
  const int64_t length = cb_diagonal_length(csr, diagonal->key - (csr->rows - 1));
  return 2 * length >= csr->rows && 100 * diagonal->nonzeros >= options->dia_fill * length;
}

static int fuller_first(const void *left, const void *right) {
  const struct cb_diagonal *a = left, *b = right;
  if (a->nonzeros != b->nonzeros) return a->nonzeros > b->nonzeros ? -1 : 1;
  return (a->key > b->key) - (a->key < b->key);
}

static enum cb_status refuse(const struct cb_options *options, struct cb_diag *diag) {
  return cb_fail(diag, CB_ERR_UNSUPPORTED,
                 "no diagonal crosses half of the rows with %lld %% of its places occupied; lower 'dia-fill' or use "
                 "another recipe",
                 (long long)options->dia_fill);
}

enum cb_status cb_diagonals_choose(unsigned char **flags, const struct cb_csr *csr,
                                   const struct cb_options *options, struct cb_diag *diag) {
  struct cb_diagonal *list;
  int64_t listed, populated = 0;
  *flags = NULL;
  /* Too few nonzeros for one such diagonal: what has more rows than nonzeros is not counted at all. */
  if (!csr->nnz || 200 * csr->nnz < options->dia_fill * csr->rows) return refuse(options, diag);
  const int64_t least = cb_divide_up(options->dia_fill * cb_divide_up(csr->rows, 2), 100);
  enum cb_status s = cb_diagonals_list(&list, &listed, csr, cb_larger(least, 1), diag);
  for (int64_t i = 0; i < listed; i++)
    if (is_populated(csr, &list[i], options)) list[populated++] = list[i];
  if (!s && !populated) s = refuse(options, diag);
  if (!s) {
    *flags = cb_calloc((size_t)(csr->rows + csr->cols), 1);
    if (!*flags) s = cb_fail_memory(diag, "diagonals", (uint64_t)(csr->rows + csr->cols));
  }
  if (*flags) qsort(list, (size_t)populated, sizeof *list, fuller_first);
  for (int64_t i = 0; *flags && i < populated && i < options->dia_most; i++) (*flags)[list[i].key] = 1;
  cb_free(list);
  return s;
}
