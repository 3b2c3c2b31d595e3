// SPDX-License-Identifier: Apache-2.0
/* How often columns occur, by a sample of nonzeros and of columns: see profile.h. */
#include "analysis/choose/counting.h"

#include "base/integers.h"

enum { PARALLEL_CHUNKS = 256 };

static int64_t chunk_end(const struct cb_csr *csr, int64_t chunk) {
  return cb_smaller((chunk + 1) * CB_CHOICE_CHUNK, csr->nnz);
}

static int64_t chunk_at(const struct cb_choice_profile *profile, int64_t i) {
  return cb_choice_position(i, profile->chunks, cb_divide_up(profile->nnz, CB_CHOICE_CHUNK));
}

/* The chosen columns of a chunk, in their order; returns how many. */
static int64_t list_chunk(const struct cb_choice_profile *profile, const struct cb_csr *csr, int64_t chunk,
                          int32_t *list) {
  int64_t count = 0;
  for (int64_t k = chunk * CB_CHOICE_CHUNK; k < chunk_end(csr, chunk); k++) {
    list[count] = csr->col_idx[k];
    count += cb_choice_has_column(profile->column_share, csr->col_idx[k]);
  }
  return count;
}

/* All that are chosen, in any order; grows with those that come. NULL: no memory. */
struct list {
  int32_t *columns;
  int64_t count, room;
};

static int append(struct list *list, const int32_t *columns, int64_t count) {
  if (list->count + count > list->room) {
    const int64_t room = 2 * (list->count + count);
    int32_t *grown = cb_realloc(list->columns, (size_t)room, sizeof *grown);
    if (!grown) return 0;
    list->columns = grown;
    list->room = room;
  }
  for (int64_t i = 0; i < count; i++) list->columns[list->count + i] = columns[i];
  list->count += count;
  return 1;
}

static int list_columns(struct list *list, const struct cb_choice_profile *profile, const struct cb_csr *csr) {
  int good = 1;
#pragma omp parallel for schedule(static) reduction(& : good) if (profile->chunks > PARALLEL_CHUNKS)
  for (int64_t i = 0; i < profile->chunks; i++) {
    int32_t own[CB_CHOICE_CHUNK + 1];
    const int64_t count = list_chunk(profile, csr, chunk_at(profile, i), own);
#pragma omp critical(cb_choice_columns)
    good &= append(list, own, count);
  }
  return good;
}

/* The same of columns that are not here. */
static enum cb_status bring_columns(struct list *list, const struct cb_choice_profile *profile,
                                    const struct cb_csr *csr, struct cb_diag *diag) {
  const struct cb_remote_columns *remote = csr->remote;
  struct cb_stretch *stretches = cb_alloc((size_t)profile->chunks + 1, sizeof *stretches);
  if (!stretches) return cb_fail_memory(diag, "a sample", (uint64_t)profile->chunks * sizeof *stretches);
  for (int64_t i = 0; i < profile->chunks; i++) {
    const int64_t chunk = chunk_at(profile, i), first = chunk * CB_CHOICE_CHUNK;
    stretches[i] = (struct cb_stretch){first, chunk_end(csr, chunk) - first};
  }
  const enum cb_status s = remote->chosen(remote->user, stretches, profile->chunks, profile->column_share,
                                          &list->columns, &list->count, diag);
  cb_free(stretches);
  return s;
}

/* Columns that occur as often. */
static void add_columns(struct cb_choice_profile *profile, int64_t count, int64_t columns) {
  const int bin = cb_choice_bin(cb_proportion(count, profile->nnz, profile->chunk_nonzeros));
  profile->columns += columns;
  profile->in_columns += columns * count;
  profile->with_count[bin] += columns;
  profile->in_count[bin] += columns * count;
}

/* Small counts, of which there are many, are counted themselves. */
enum { SMALL = 64 };
struct small {
  int64_t columns[SMALL];
};

static void add_column(struct cb_choice_profile *profile, struct small *small, int64_t count) {
  if (count < SMALL) small->columns[count]++;
  else add_columns(profile, count, 1);
}

static void add_small(struct cb_choice_profile *profile, const struct small *small) {
  for (int count = 1; count < SMALL; count++)
    if (small->columns[count]) add_columns(profile, count, small->columns[count]);
}

/* `counts` of all columns. */
static void add_chosen(struct cb_choice_profile *profile, const uint32_t *counts) {
  struct small small = {{0}};
  for (int64_t column = 0; column < profile->cols; column++)
    if (counts[column] && cb_choice_has_column(profile->column_share, (int32_t)column))
      add_column(profile, &small, counts[column]);
  add_small(profile, &small);
}

/* By a counter for each column. 0: no memory. */
static int count_by_column(struct cb_choice_profile *profile, const struct list *list) {
  uint32_t *counts = cb_calloc((size_t)profile->cols, sizeof *counts);
  for (int64_t i = 0; counts && i < list->count; i++) counts[list->columns[i]]++;
  if (counts) add_chosen(profile, counts);
  cb_free(counts);
  return counts != NULL;
}

/* By a table, where the matrix has many more columns than the list. 0: no memory. */
static int count_by_table(struct cb_choice_profile *profile, const struct list *list) {
  struct cb_tally tally = {0};
  struct small small = {{0}};
  if (!cb_tally_open(&tally, list->count)) return 0;
  for (int64_t i = 0; i < list->count; i++) cb_tally_add(&tally, (uint32_t)list->columns[i]);
  for (uint32_t place = 0; place <= tally.mask; place++)
    if (tally.at[place].round == tally.round) add_column(profile, &small, (int64_t)tally.at[place].count);
  add_small(profile, &small);
  cb_tally_close(&tally);
  return 1;
}

/* Few columns that are here: all are counted, and those that are not chosen do not count. 0: no memory. */
static int count_here(struct cb_choice_profile *profile, const struct cb_csr *csr) {
  uint32_t *counts = cb_calloc((size_t)profile->cols, sizeof *counts);
  if (!counts) return 0;
  for (int64_t i = 0; i < profile->chunks; i++) {
    const int64_t chunk = chunk_at(profile, i), end = chunk_end(csr, chunk);
    for (int64_t k = chunk * CB_CHOICE_CHUNK; k < end; k++) counts[csr->col_idx[k]]++;
  }
  add_chosen(profile, counts);
  cb_free(counts);
  return 1;
}

static void choose_chunks(struct cb_choice_profile *profile) {
  const int64_t all = cb_divide_up(profile->nnz, CB_CHOICE_CHUNK);
  profile->chunks = cb_smaller(all, cb_larger(CB_CHOICE_CHUNKS, all / 16));
  for (int64_t i = 0; i < profile->chunks; i++) {
    const int64_t first = chunk_at(profile, i) * CB_CHOICE_CHUNK;
    profile->chunk_nonzeros += cb_smaller(CB_CHOICE_CHUNK, profile->nnz - first);
  }
  const int64_t counted =
      cb_larger(CB_CHOICE_COUNTED_LEAST, cb_smaller(profile->chunk_nonzeros / 16, CB_CHOICE_COUNTED_MOST));
  while (profile->chunk_nonzeros >> profile->column_share > counted) profile->column_share++;
}

enum cb_status cb_choice_count_columns(struct cb_choice_profile *profile, const struct cb_csr *csr,
                                       struct cb_diag *diag) {
  enum { FEW = 4 }; /* columns for each that is listed */
  const struct cb_csr *here = cb_choice_here(csr);
  struct list list = {0};
  enum cb_status s = CB_OK;
  int good = 1;
  choose_chunks(profile);
  const int is_little =
      !here->remote && profile->chunks <= CB_CHOICE_CHUNKS && profile->cols <= profile->chunk_nonzeros;
  if (is_little) good = count_here(profile, here);
  else if (here->remote) s = bring_columns(&list, profile, csr, diag);
  else good = list_columns(&list, profile, here);
  const int few = profile->cols <= FEW * list.count;
  if (good && !s && !is_little) good = few ? count_by_column(profile, &list) : count_by_table(profile, &list);
  cb_free(list.columns);
  return good || s ? s : cb_fail_memory(diag, "a profile", (uint64_t)list.count * sizeof(struct cb_tallied));
}
