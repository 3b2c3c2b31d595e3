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
#include "base/sort.h"

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

/* Whether counters of the numbered groups' keys are better shared than each thread's own. */
static int should_share(const struct counting *counting) {
  const int64_t few = counting->numbers << counting->log2;
  return few > OWN && few * omp_get_max_threads() > counting->csr->nnz / 4;
}

static int is_too_wide(const struct counting *counting) {
  enum { PLENTY = 8 << 20 };
  const int64_t all = counting->keys * (int64_t)sizeof *counting->counts;
  return should_share(counting) && all > PLENTY + cb_csr_bytes(counting->csr);
}

static int count_diagonals(struct counting *counting) {
  const int64_t few = counting->numbers << counting->log2;
  const int shared = should_share(counting);
  counting->counts = cb_calloc((size_t)(shared ? counting->keys : few), sizeof *counting->counts);
  if (!counting->counts) return 0;
  if (!shared) return !few || sum_counters(counting, counting->counts, few);
  for (int64_t group = 0; group <= (counting->keys - 1) >> counting->log2; group++)
    counting->number[group] = (int32_t)group;
  count_shared(counting);
  return 1;
}

/* ---- by sorting the keys: where counters of all keys would take more memory than the matrix */

/* Keys of nonzeros in numbered groups, in any order; returns their number. */
static int64_t collect_keys(const struct counting *counting, uint32_t *keys) {
  const struct cb_csr *csr = counting->csr;
  int64_t collected = 0;
  for (int64_t row = 0; row < csr->rows; row++)
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++) {
      const int64_t key = csr->col_idx[k] + csr->rows - 1 - row;
      if (counting->number[key >> counting->log2] != NONE) keys[collected++] = (uint32_t)key;
    }
  return collected;
}

/* Diagonals of `least` nonzeros among sorted keys; only counts them while there is no list. */
static int64_t list_runs(const uint32_t *keys, int64_t count, int64_t least, struct cb_diagonal *list) {
  int64_t listed = 0;
  for (int64_t first = 0, end; first < count; first = end) {
    for (end = first + 1; end < count && keys[end] == keys[first];) end++;
    if (end - first < least) continue;
    if (list) list[listed] = (struct cb_diagonal){keys[first], end - first};
    listed++;
  }
  return listed;
}

static int list_sorted(const struct counting *counting, struct cb_diagonal **list, int64_t *count) {
  uint32_t *keys = cb_alloc((size_t)counting->csr->nnz, sizeof *keys);
  if (!keys) return 0;
  const int64_t collected = collect_keys(counting, keys);
  cb_sort_keys(keys, collected);
  *count = list_runs(keys, collected, counting->least, NULL);
  *list = cb_alloc((size_t)*count, sizeof **list);
  if (*list) list_runs(keys, collected, counting->least, *list);
  cb_free(keys);
  return *list != NULL;
}

/* ---- by counters */

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

/* ---- few nonzeros: one pass, by one thread, with a counter for each diagonal */

static int is_short(const struct cb_csr *csr, int64_t keys) {
  enum { SHORT = 1 << 18 };
  return csr->nnz <= SHORT && keys <= csr->nnz;
}

static int list_short(const struct counting *counting, struct cb_diagonal **list, int64_t *count) {
  const struct cb_csr *csr = counting->csr;
  uint32_t *counts = cb_calloc((size_t)counting->keys, sizeof *counts);
  int64_t listed = 0;
  if (!counts) return 0;
  for (int64_t row = 0, k = 0; row < csr->rows; row++) {
    uint32_t *const of_row = counts + (csr->rows - 1 - row);
    for (const int64_t end = cb_csr_row(csr, row + 1); k < end; k++) of_row[csr->col_idx[k]]++;
  }
  for (int64_t key = 0; key < counting->keys; key++) *count += counts[key] >= counting->least;
  *list = cb_alloc((size_t)*count, sizeof **list);
  for (int64_t key = 0; key < counting->keys && *list; key++)
    if (counts[key] >= counting->least) (*list)[listed++] = (struct cb_diagonal){key, counts[key]};
  cb_free(counts);
  return *list != NULL;
}

enum cb_status cb_diagonals_list(struct cb_diagonal **list, int64_t *count, const struct cb_csr *csr, int64_t least,
                                 struct cb_diag *diag) {
  struct counting counting = {.csr = csr, .keys = cb_larger(csr->rows + csr->cols, 1), .least = least};
  *list = NULL;
  *count = 0;
  if (csr->remote) return csr->remote->diagonals(csr->remote->user, least, list, count, diag);
  int good = 1;
  if (is_short(csr, counting.keys)) good = list_short(&counting, list, count);
  else if (!find_groups(&counting)) good = 0;
  else if (is_too_wide(&counting)) good = list_sorted(&counting, list, count);
  else good = count_diagonals(&counting) && make_list(&counting, list, count);
  cb_free(counting.counts);
  if (good) return CB_OK;
  *count = 0;
  return cb_fail_memory(diag, "diagonals", (uint64_t)counting.keys * sizeof *counting.counts);
}

/* ---- choosing */

static int is_populated(const struct cb_csr *csr, const struct cb_diagonal *diagonal, int64_t fill) {
  const int64_t length = cb_diagonal_length(csr, diagonal->key - (csr->rows - 1));
  return 2 * length >= csr->rows && 100 * diagonal->nonzeros >= fill * length;
}

static int fuller_first(const void *left, const void *right) {
  const struct cb_diagonal *a = left, *b = right;
  if (a->nonzeros != b->nonzeros) return a->nonzeros > b->nonzeros ? -1 : 1;
  return (a->key > b->key) - (a->key < b->key);
}

static enum cb_status refuse(int64_t fill, struct cb_diag *diag) {
  return cb_fail(diag, CB_ERR_UNSUPPORTED,
                 "no diagonal crosses half of the rows with %lld %% of its places occupied; lower 'dia-fill' or use "
                 "another recipe",
                 (long long)fill);
}

static int by_key(const void *left, const void *right) {
  const int64_t a = ((const struct cb_diagonal *)left)->key, b = ((const struct cb_diagonal *)right)->key;
  return (a > b) - (a < b);
}

/* The first `count` of the list. */
static enum cb_status make_set(struct cb_diagonal_set *set, const struct cb_diagonal *list, int64_t count,
                               const struct cb_csr *csr, struct cb_diag *diag) {
  enum { PLENTY = 1 << 20 };
  set->list = cb_alloc((size_t)count, sizeof *set->list);
  if (!set->list) return cb_fail_memory(diag, "diagonals", (uint64_t)count * sizeof *set->list);
  memcpy(set->list, list, (size_t)count * sizeof *list);
  set->count = count;
  qsort(set->list, (size_t)count, sizeof *set->list, by_key);
  const int64_t first = set->list[0].key, span = set->list[count - 1].key - first + 1;
  if (span > PLENTY + csr->rows + csr->nnz) return CB_OK;
  set->flags = cb_calloc((size_t)span, 1);
  if (!set->flags) return cb_fail_memory(diag, "diagonals", (uint64_t)span);
  for (int64_t i = 0; i < count; i++) set->flags[set->list[i].key - first] = 1;
  return CB_OK;
}

int cb_diagonal_set_finds(const struct cb_diagonal_set *set, int64_t key) {
  const struct cb_diagonal wanted = {.key = key};
  return bsearch(&wanted, set->list, (size_t)set->count, sizeof wanted, by_key) != NULL;
}

void cb_diagonal_set_drop_flags(struct cb_diagonal_set *set) {
  cb_free(set->flags);
  set->flags = NULL;
}

void cb_diagonal_set_release(struct cb_diagonal_set *set) {
  cb_free(set->list);
  cb_free(set->flags);
  *set = (struct cb_diagonal_set){0};
}

enum cb_status cb_diagonals_choose(struct cb_diagonal_set *set, const struct cb_csr *csr,
                                   int64_t fill, int64_t most, struct cb_diag *diag) {
  struct cb_diagonal *list;
  int64_t listed, populated = 0;
  *set = (struct cb_diagonal_set){0};
  /* Too few nonzeros for one such diagonal: what has more rows than nonzeros is not counted at all. */
  if (!csr->nnz || 200 * csr->nnz < fill * csr->rows) return refuse(fill, diag);
  const int64_t least = cb_divide_up(fill * cb_divide_up(csr->rows, 2), 100);
  enum cb_status s = cb_diagonals_list(&list, &listed, csr, cb_larger(least, 1), diag);
  for (int64_t i = 0; i < listed; i++)
    if (is_populated(csr, &list[i], fill)) list[populated++] = list[i];
  if (!s && !populated) s = refuse(fill, diag);
  if (!s) {
    qsort(list, (size_t)populated, sizeof *list, fuller_first);
    s = make_set(set, list, cb_smaller(populated, most), csr, diag);
  }
  cb_free(list);
  return s;
}
