// SPDX-License-Identifier: Apache-2.0
/* The choice of a recipe by a profile: every counter against a slow count that follows profile.h word by word, any
 * number of threads, trees and tables that are damaged or absent, and what becomes of a recipe that refuses. */
#include "tests/support.h"

#include "analysis/choose/choose.h"
#include "analysis/choose/counting.h"
#include "analysis/choose/predictor.h"
#include "analysis/plan/recipe.h"

#include <omp.h>

static struct cb_choice_profile profile_of(const struct cb_csr *csr) {
  struct cb_choice_profile profile;
  struct cb_diag diag = {0};
  assert_ok(cb_choice_profile(&profile, csr, &diag));
  return profile;
}

/* ---- the slow count: lists that are sorted, and questions to the matrix */

struct slow {
  const struct cb_csr *csr;
  struct cb_choice_profile counts;
};

static int64_t length_of(const struct slow *slow, int64_t row) {
  const int64_t length = cb_csr_row_length(slow->csr, row);
  return length > CB_CHOICE_LONG ? 0 : length;
}

static int64_t column_at(const struct slow *slow, int64_t row, int64_t k) {
  return slow->csr->col_idx[cb_csr_row(slow->csr, row) + k];
}

/* Whether the matrix has that entry, in a row that is not long. Columns are sorted. */
static int has_entry(const struct slow *slow, int64_t row, int64_t column) {
  int64_t first = 0, end = length_of(slow, row);
  while (first < end) {
    const int64_t middle = (first + end) / 2;
    if (column_at(slow, row, middle) < column) first = middle + 1;
    else end = middle;
  }
  return first < length_of(slow, row) && column_at(slow, row, first) == column;
}

static int compare(const void *a, const void *b) {
  const int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;
  return one < other ? -1 : one > other;
}

struct list {
  int64_t *of;
  int64_t count;
};

static void add(struct list *list, int64_t number) {
  list->of = realloc(list->of, (size_t)(list->count + 1) * sizeof *list->of);
  assert_non_null(list->of);
  list->of[list->count++] = number;
}

/* How many different numbers there are; empties the list. */
static int64_t different(struct list *list) {
  int64_t count = 0;
  if (list->count) qsort(list->of, (size_t)list->count, sizeof *list->of, compare);
  for (int64_t i = 0; i < list->count; i++) count += !i || list->of[i] != list->of[i - 1];
  free(list->of);
  *list = (struct list){0};
  return count;
}

static int bits_of(int64_t number) {
  int bits = 0;
  for (; number > 0; number /= 2) bits++;
  return bits < CB_CHOICE_BINS ? bits : CB_CHOICE_BINS - 1;
}

static int64_t first_of(int64_t i, int64_t chosen, int64_t rows, int64_t size) {
  return cb_choice_position(i, chosen, (rows + size - 1) / size) * size;
}

static int64_t end_of(const struct slow *slow, int64_t first, int64_t size) {
  return first + size < slow->csr->rows ? first + size : slow->csr->rows;
}

static void count_rows(struct slow *slow) {
  struct cb_choice_profile *counts = &slow->counts;
  const int64_t rows = slow->csr->rows;
  for (int64_t row = 0; row < rows; row++) {
    const int64_t length = cb_csr_row_length(slow->csr, row);
    counts->lengths.with_length[bits_of(length)]++;
    counts->lengths.in_length[bits_of(length)] += length;
    if (length > counts->lengths.longest) counts->lengths.longest = length;
  }
  for (int step = 0; step < CB_CHOICE_STEPS; step++)
    for (int64_t first = 0; first < rows; first += 32 >> step) {
      int64_t longest = 0;
      for (int64_t row = first; row < rows && row < first + (32 >> step); row++)
        if (cb_csr_row_length(slow->csr, row) > longest) longest = cb_csr_row_length(slow->csr, row);
      counts->lengths.in_step[step] += longest;
    }
}

static void count_neighbours(struct slow *slow, int64_t first, int64_t end) {
  struct cb_choice_profile *counts = &slow->counts;
  for (int64_t row = first; row < end; row++) {
    counts->sampled += length_of(slow, row);
    counts->left_out += cb_csr_row_length(slow->csr, row) - length_of(slow, row);
    for (int64_t k = 0; k < length_of(slow, row); k++) {
      const int64_t column = column_at(slow, row, k), before = k ? column_at(slow, row, k - 1) : -1;
      counts->across += has_entry(slow, row, column + 1);
      counts->down += row + 1 < end && has_entry(slow, row + 1, column);
      counts->diagonal += row + 1 < end && has_entry(slow, row + 1, column + 1);
      counts->row_sectors[0] += !k || column / 4 != before / 4;
      counts->row_sectors[1] += !k || column / 8 != before / 8;
      counts->row_lines[0] += !k || column / 16 != before / 16;
      counts->row_lines[1] += !k || column / 32 != before / 32;
    }
    int alike = row > first && length_of(slow, row) == length_of(slow, row - 1);
    for (int64_t k = 0; alike && k < length_of(slow, row); k++)
      alike = column_at(slow, row, k) == column_at(slow, row - 1, k);
    for (int size = 2; size <= CB_CHOICE_ALIKE && row > first; size++) {
      counts->aligned[size] += row % size != 0;
      counts->alike[size] += row % size != 0 && alike;
    }
  }
  counts->sampled_rows += end - first;
}

static void count_steps(struct slow *slow, int64_t first, int64_t end) {
  int64_t last = 0;
  for (int64_t k = 0; last >= 0; k++) {
    struct list eights = {0}, fours = {0};
    last = -1;
    for (int64_t row = first; row < end; row++) {
      if (k >= length_of(slow, row)) continue;
      const int64_t column = column_at(slow, row, k);
      add(&eights, column / 16 % 256);
      add(&fours, column / 32 % 256);
      slow->counts.step_sectors[0] += last < 0 || last / 4 != column / 4;
      slow->counts.step_sectors[1] += last < 0 || last / 8 != column / 8;
      last = column;
    }
    slow->counts.step_lines[0] += different(&eights);
    slow->counts.step_lines[1] += different(&fours);
  }
}

/* Different `column / by` of rows. */
static int64_t different_columns(const struct slow *slow, int64_t first, int64_t end, int64_t by) {
  struct list list = {0};
  for (int64_t row = first; row < end; row++)
    for (int64_t k = 0; k < length_of(slow, row); k++) add(&list, column_at(slow, row, k) / by);
  return different(&list);
}

static void count_different(struct slow *slow, int64_t first, int64_t end) {
  struct cb_choice_profile *counts = &slow->counts;
  const int64_t middle = first + 16 < end ? first + 16 : end;
  struct list offsets = {0};
  int64_t least = INT64_MAX, most = 0;
  counts->slice_sectors[0] += different_columns(slow, first, end, 4);
  counts->slice_sectors[1] += different_columns(slow, first, end, 8);
  counts->panel_columns += different_columns(slow, first, middle, 1) + different_columns(slow, middle, end, 1);
  counts->panel_blocks += different_columns(slow, first, middle, 16) + different_columns(slow, middle, end, 16);
  for (int64_t row = first; row < end; row++)
    for (int64_t k = 0; k < length_of(slow, row); k++) {
      const int64_t column = column_at(slow, row, k);
      add(&offsets, column - row);
      least = column < least ? column : least;
      most = column > most ? column : most;
    }
  counts->spans[bits_of(most < least ? 0 : most - least)]++;
  if (offsets.count) qsort(offsets.of, (size_t)offsets.count, sizeof *offsets.of, compare);
  for (int64_t i = 0, next; i < offsets.count; i = next) {
    for (next = i; next < offsets.count && offsets.of[next] == offsets.of[i];) next++;
    counts->runs += next - i >= 24;
    counts->in_runs += next - i >= 24 ? next - i : 0;
  }
  free(offsets.of);
}

static void count_tiles(struct slow *slow, int64_t first, int64_t end, int64_t across, int64_t down, int64_t nonzeros) {
  for (int i = 0; i < CB_TILE_SIZES; i++) {
    const struct cb_tile_size size = cb_tile_sizes[i];
    for (int64_t row = first; row + size.rows <= end; row++) {
      if (row % size.rows) continue;
      int64_t inside = 0;
      for (int j = 0; j < size.rows; j++) inside += length_of(slow, row + j);
      slow->counts.in_tiles[i] += inside;
      slow->counts.tiles[i] += cb_choice_may_tile(size, across, down, nonzeros)
                                   ? different_columns(slow, row, row + size.rows, size.cols)
                                   : inside;
    }
  }
}

static void count_groups(struct slow *slow) {
  struct cb_choice_profile *counts = &slow->counts;
  for (int64_t i = 0; i < counts->groups; i++) {
    const int64_t first = first_of(i, counts->groups, counts->rows, 32), end = end_of(slow, first, 32);
    const struct cb_choice_profile before = *counts;
    count_neighbours(slow, first, end);
    count_steps(slow, first, end);
    count_different(slow, first, end);
    count_tiles(slow, first, end, counts->across - before.across, counts->down - before.down,
                counts->sampled - before.sampled);
  }
  for (int64_t i = 0; i < counts->wide_groups; i++) {
    const int64_t first = first_of(i, counts->wide_groups, counts->rows, 256), end = end_of(slow, first, 256);
    for (int64_t row = first; row < end; row++) counts->in_wide += length_of(slow, row);
    counts->wide_sectors[0] += different_columns(slow, first, end, 4);
    counts->wide_sectors[1] += different_columns(slow, first, end, 8);
  }
}

/* ---- diagonals and patterns, slowly: all pairs */

struct found {
  int64_t key, count, places;
};

static int by_count(const void *a, const void *b) {
  const struct found *one = a, *other = b;
  return one->count != other->count ? (one->count > other->count ? -1 : 1)
         : one->key < other->key    ? -1
                                    : one->key > other->key;
}

static struct found diagonal_of(const struct slow *slow, int64_t offset) {
  struct found found = {.key = offset};
  for (int64_t i = 0; i < slow->counts.groups; i++) {
    const int64_t first = first_of(i, slow->counts.groups, slow->counts.rows, 32);
    for (int64_t row = first; row < end_of(slow, first, 32); row++) {
      found.places += row + offset >= 0 && row + offset < slow->csr->cols;
      found.count += has_entry(slow, row, row + offset);
    }
  }
  return found;
}

/* Whether any sampled row has an entry there, at offset + rows. */
static char *offsets_with_entries(const struct slow *slow) {
  char *with = calloc((size_t)(slow->counts.rows + slow->counts.cols + 1), 1);
  assert_non_null(with);
  for (int64_t i = 0; i < slow->counts.groups; i++) {
    const int64_t first = first_of(i, slow->counts.groups, slow->counts.rows, 32);
    for (int64_t row = first; row < end_of(slow, first, 32); row++)
      for (int64_t k = 0; k < length_of(slow, row); k++) with[column_at(slow, row, k) - row + slow->counts.rows] = 1;
  }
  return with;
}

static void count_diagonals(struct slow *slow) {
  struct cb_choice_profile *counts = &slow->counts;
  struct found *list = calloc((size_t)(counts->rows + counts->cols + 1), sizeof *list);
  char *with = offsets_with_entries(slow);
  int64_t count = 0;
  assert_non_null(list);
  for (int64_t offset = 1 - counts->rows; offset < counts->cols; offset++) {
    if (!with[offset + counts->rows]) continue;
    const struct found one = diagonal_of(slow, offset);
    if (one.count && one.count * 2 >= one.places && one.places * 2 >= counts->sampled_rows) list[count++] = one;
  }
  qsort(list, (size_t)count, sizeof *list, by_count);
  counts->diagonals = count < CB_CHOICE_DIAGONALS ? count : CB_CHOICE_DIAGONALS;
  for (int64_t i = 0; i < counts->diagonals; i++) {
    counts->in_diagonals += list[i].count;
    counts->diagonal_places += list[i].places;
  }
  free(with);
  free(list);
}

static int has_pattern(const struct slow *slow, int64_t row) {
  const int64_t size = slow->counts.unknowns, length = length_of(slow, row);
  if (!length || length % size) return 0;
  for (int64_t k = 0; k < length; k += size)
    if (column_at(slow, row, k) % size || column_at(slow, row, k + size - 1) != column_at(slow, row, k) + size - 1)
      return 0;
  for (int64_t i = 1; i < size; i++) {
    if (length_of(slow, row + i) != length) return 0;
    for (int64_t k = 0; k < length; k++)
      if (column_at(slow, row, k) != column_at(slow, row + i, k)) return 0;
  }
  return 1;
}

static int64_t offset_of(const struct slow *slow, int64_t row, int64_t k) {
  const int64_t size = slow->counts.unknowns;
  return column_at(slow, row, k) / size - row / size;
}

static int have_same_pattern(const struct slow *slow, int64_t row, int64_t other) {
  if (length_of(slow, row) != length_of(slow, other)) return 0;
  for (int64_t k = 0; k < length_of(slow, row); k += slow->counts.unknowns)
    if (offset_of(slow, row, k) != offset_of(slow, other, k)) return 0;
  return 1;
}

static void count_patterns(struct slow *slow) {
  struct cb_choice_profile *counts = &slow->counts;
  struct list rows = {0}, offsets = {0};
  counts->unknowns = 1;
  for (int64_t size = 2; size <= CB_CHOICE_ALIKE; size++)
    if (counts->aligned[size] && counts->alike[size] * 100 >= counts->aligned[size] * 95) counts->unknowns = size;
  for (int64_t i = 0; i < counts->groups; i++) {
    const int64_t first = first_of(i, counts->groups, counts->rows, 32), end = end_of(slow, first, 32);
    for (int64_t row = first; row + counts->unknowns <= end; row++)
      if (row % counts->unknowns == 0 && has_pattern(slow, row)) add(&rows, row);
  }
  for (int64_t i = 0; i < rows.count; i++) {
    int64_t uses = 0, first = -1;
    for (int64_t j = 0; j < rows.count; j++)
      if (have_same_pattern(slow, rows.of[i], rows.of[j])) {
        uses++;
        first = first < 0 ? j : first;
      }
    const int64_t nonzeros = length_of(slow, rows.of[i]) * counts->unknowns;
    counts->patterns += first == i;
    *(uses == 1 ? &counts->pattern_once : uses < 8 ? &counts->pattern_few : &counts->pattern_many) += nonzeros;
    for (int64_t k = 0; k < length_of(slow, rows.of[i]) && uses > 1; k += counts->unknowns)
      add(&offsets, offset_of(slow, rows.of[i], k));
  }
  const int64_t all = different(&offsets);
  counts->pattern_offsets = all < 1024 ? all : 1024;
  free(rows.of);
}

static void count_columns(struct slow *slow, const struct cb_choice_profile *got) {
  struct cb_choice_profile *counts = &slow->counts;
  struct list chosen = {0};
  for (int64_t i = 0; i < got->chunks; i++) {
    const int64_t first = first_of(i, got->chunks, counts->nnz, 1024);
    for (int64_t k = first; k < first + 1024 && k < counts->nnz; k++) {
      const uint32_t column = (uint32_t)slow->csr->col_idx[k];
      counts->chunk_nonzeros++;
      if (!got->column_share || column * 0x9e3779b1u >> (32 - got->column_share) == 0) add(&chosen, column);
    }
  }
  if (chosen.count) qsort(chosen.of, (size_t)chosen.count, sizeof *chosen.of, compare);
  for (int64_t i = 0, next; i < chosen.count; i = next) {
    for (next = i; next < chosen.count && chosen.of[next] == chosen.of[i];) next++;
    const int bin = bits_of((next - i) * counts->nnz / counts->chunk_nonzeros);
    counts->columns++;
    counts->in_columns += next - i;
    counts->with_count[bin]++;
    counts->in_count[bin] += next - i;
  }
  free(chosen.of);
}

static void check_profile(const struct cb_csr *csr, const char *name) {
  const struct cb_choice_profile got = profile_of(csr);
  struct slow slow = {.csr = csr};
  slow.counts = (struct cb_choice_profile){.rows = csr->rows,
                                           .cols = csr->cols,
                                           .nnz = csr->nnz,
                                           .groups = got.groups,
                                           .wide_groups = got.wide_groups,
                                           .chunks = got.chunks,
                                           .column_share = got.column_share};
  count_rows(&slow);
  count_groups(&slow);
  count_diagonals(&slow);
  count_patterns(&slow);
  count_columns(&slow, &got);
  const int64_t *a = (const int64_t *)&got, *b = (const int64_t *)&slow.counts;
  for (size_t i = 0; i < sizeof got / sizeof *a; i++)
    if (a[i] != b[i])
      fail_msg("%s: number %zu of the profile is %lld, not %lld", name, i, (long long)a[i], (long long)b[i]);
  /* that much is looked at, of a small matrix all */
  const int64_t all = (csr->rows + 31) / 32;
  assert_true(got.groups == all || got.groups >= CB_CHOICE_GROUPS_LEAST);
  if (csr->nnz <= CB_CHOICE_SAMPLE_LEAST / 2) assert_true(got.groups == all && got.sampled + got.left_out == csr->nnz);
  if (csr->nnz <= CB_CHOICE_COUNTED_LEAST) assert_true(got.in_columns == csr->nnz);
}

static const char *const matrices[] = {"empty,rows=100,cols=30",
                                       "empty,rows=0,cols=0",
                                       "empty,rows=0,cols=5",
                                       "diagonal,n=777",
                                       "one_row,cols=900",
                                       "one_column,rows=700",
                                       "dense,rows=70,cols=45",
                                       "dense_row,n=900",
                                       "dense_column,n=700",
                                       "random,rows=400,cols=350,per_row=9",
                                       "random_exact,blocks_r=9,block_nnz=33,cut_rows=1,cut_cols=3",
                                       "uniform,n=500,per_row=40",
                                       "band,n=700,half=40,per_row=12",
                                       "diagonals,n=600,count=80,spread=200,fill=0.6",
                                       "stencil5,n=30",
                                       "stencil9,n=24,extra=0.3",
                                       "stencil7,n=10,periodic=1",
                                       "stencil27,n=8",
                                       "fe3,n=5",
                                       "fe3,n=4,dof=2",
                                       "fe3,n=4,dof=7",
                                       "multiblock,blocks=3,n=6,dof=2",
                                       "kkt,n=12,stages=2",
                                       "road,n=40",
                                       "rmat,scale=9,edge_factor=12",
                                       "arrow,n=700,width=5",
                                       "diagonals,n=50000,count=4,spread=49000",
                                       "tridiagonal,n=1000",
                                       "powerlaw,rows=900,max=600",
                                       "block,blocks_r=60,per_row=5,r=4,c=4,scattered=2",
                                       "hypersparse,rows=30000",
                                       "checker,rows=80",
                                       "upper,n=90",
                                       "explicit_zeros,rows=300",
                                       "staircase,n=150",
                                       "long_row,rows=1500,per_row=3,long_length=1400"};

static void every_number_is_right(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) {
    struct cb_csr csr = matrix_of(matrices[i]);
    check_profile(&csr, matrices[i]);
    cb_csr_release(&csr);
  }
}

/* ---- a matrix whose columns are remote */

static enum cb_status give_starts(void *user, const struct cb_stretch *stretches, int64_t count, int64_t *starts,
                                  struct cb_diag *diag) {
  const struct cb_csr *csr = user;
  (void)diag;
  for (int64_t i = 0; i < count; i++)
    for (int64_t k = 0; k < stretches[i].length; k++) *starts++ = cb_csr_row(csr, stretches[i].begin + k);
  return CB_OK;
}

static enum cb_status give_short_rows(void *user, const struct cb_stretch *stretches, int64_t count, int32_t *columns,
                                      struct cb_diag *diag) {
  const struct cb_csr *csr = user;
  (void)diag;
  for (int64_t i = 0; i < count; i++) {
    const int64_t first = stretches[i].begin, end = first + stretches[i].length;
    for (int64_t row = 0; row < csr->rows; row++)
      if (cb_csr_row(csr, row) < end && cb_csr_row(csr, row + 1) > first)
        assert_true(cb_csr_row_length(csr, row) <= CB_CHOICE_LONG);
    memcpy(columns, csr->col_idx + first, (size_t)(end - first) * sizeof *columns);
    columns += end - first;
  }
  return CB_OK;
}

/* Only columns that are looked at are brought: none of a long row; and each row has its own. */
static void columns_of_long_rows_stay_away(void **state) {
  struct cb_csr csr = matrix_of("long_row,rows=1500,per_row=3,long_length=1400"), there = csr;
  const struct cb_remote_columns remote = {.starts = give_starts, .fetch = give_short_rows, .user = &csr};
  const struct cb_choice_profile profile = profile_of(&csr);
  struct cb_choice_sample sample;
  struct cb_diag diag = {0};
  int64_t long_rows = 0;
  (void)state;
  there.remote = &remote;
  there.col_idx = NULL;
  assert_ok(cb_choice_sample_open(&sample, &profile, &there, &diag));
  for (int64_t part = 0; part < profile.groups; part++) {
    const struct cb_choice_rows rows = cb_choice_group(&profile, part);
    for (int64_t row = rows.first; row < rows.end; row++) {
      const struct cb_choice_row brought = cb_choice_row(&sample, part, row);
      const int64_t length = cb_csr_row_length(&csr, row);
      long_rows += length > CB_CHOICE_LONG;
      assert_int_equal(brought.length, length);
      assert_int_equal(brought.end - brought.begin, length > CB_CHOICE_LONG ? 0 : length);
      assert_memory_equal(sample.columns + brought.begin, csr.col_idx + cb_csr_row(&csr, row),
                          (size_t)(brought.end - brought.begin) * sizeof *csr.col_idx);
    }
  }
  assert_true(long_rows > 0);
  cb_choice_sample_close(&sample);
  cb_csr_release(&csr);
}

/* Rows that are alike in pairs, whose columns are no blocks. */
static void pairs_of_rows_are_no_blocks(void **state) {
  enum { ROWS = 128 };
  struct cb_csr csr;
  struct cb_diag diag = {0};
  (void)state;
  assert_ok(cb_csr_alloc(&csr, ROWS, ROWS + 4, 2 * ROWS, &diag));
  for (int row = 0; row < ROWS; row++) {
    csr.col_idx[2 * row] = row / 2 * 2;
    csr.col_idx[2 * row + 1] = row / 2 * 2 + 2;
    csr.values[2 * row] = csr.values[2 * row + 1] = 1;
    ((int32_t *)csr.row_ptr)[row + 1] = 2 * row + 2;
  }
  assert_true(profile_of(&csr).unknowns == 2 && profile_of(&csr).patterns == 0);
  check_profile(&csr, "pairs");
  cb_csr_release(&csr);
}

static void so_it_is_of_real_matrices(void **state) {
  static const char *const names[] = {"delaunay_n13", "bcsstm27", "cavity05", "QP_AUG2DC_A", "as-22july06"};
  (void)state;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char path[200];
    struct cb_csr csr;
    struct cb_diag diag = {0};
    snprintf(path, sizeof path, "tests/data/corpus/%s.mtx.zst", names[i]);
    assert_ok(cb_matrix_read(&csr, path, NULL, &diag));
    struct slow slow = {.csr = &csr};
    const struct cb_choice_profile got = profile_of(&csr);
    slow.counts = (struct cb_choice_profile){
        .rows = csr.rows, .cols = csr.cols, .nnz = csr.nnz, .groups = got.groups, .wide_groups = got.wide_groups};
    count_rows(&slow);
    count_groups(&slow);
    count_columns(&slow, &got);
    assert_memory_equal(got.lengths.in_step, slow.counts.lengths.in_step, sizeof got.lengths.in_step);
    assert_memory_equal(got.tiles, slow.counts.tiles, sizeof got.tiles);
    assert_memory_equal(got.with_count, slow.counts.with_count, sizeof got.with_count);
    assert_true(got.runs == slow.counts.runs && got.panel_columns == slow.counts.panel_columns);
    assert_true(got.wide_sectors[0] == slow.counts.wide_sectors[0] && got.diagonal == slow.counts.diagonal);
    cb_csr_release(&csr);
  }
}

/* Large enough that rows and chunks are counted in parallel. */
static void any_number_of_threads_counts_alike(void **state) {
  struct cb_csr csr = matrix_of("uniform,n=300000,per_row=15");
  (void)state;
  omp_set_num_threads(1);
  const struct cb_choice_profile one = profile_of(&csr);
  for (int threads = 2; threads <= 5; threads += 3) {
    omp_set_num_threads(threads);
    const struct cb_choice_profile more = profile_of(&csr);
    assert_memory_equal(&more, &one, sizeof one);
  }
  omp_set_num_threads(1);
  cb_csr_release(&csr);
}

static void positions_are_one_of_each_range(void **state) {
  (void)state;
  for (int64_t all = 1; all < 300; all += 7)
    for (int64_t chosen = 1; chosen <= all; chosen += 3)
      for (int64_t i = 0; i < chosen; i++) {
        const int64_t at = cb_choice_position(i, chosen, all);
        assert_true(at >= all * i / chosen && at < all * (i + 1) / chosen);
      }
}

/* ---- logarithms and trees */

static void logarithms_are_inverse_and_ascend(void **state) {
  (void)state;
  assert_true(cb_choice_log2(0) == 0 && cb_choice_log2(1) == 0 && cb_choice_log2(2) == 1024);
  assert_true(cb_choice_log2(3) == 1536 && cb_choice_log2(INT64_C(1) << 40) == 40 * 1024);
  assert_true(cb_choice_exp2(-5) == 1 && cb_choice_exp2(0) == 1 && cb_choice_exp2(1536) == 3);
  for (int64_t number = 1, before = -1; number < INT64_C(1) << 45; number += 1 + number / 3) {
    const int64_t logarithm = cb_choice_log2(number), back = cb_choice_exp2(logarithm);
    assert_true(logarithm > before && back <= number && number - back <= number / 1024);
    before = logarithm;
  }
}

static const struct cb_tree_node some_nodes[] = {
    {2, 100, 1},  {-1, -7, 0}, {3, 5, 3}, {-1, 20, 0}, {-1, 30, 0}, /* nonzeros <= 100: -7; rows <= 5: 20; else 30 */
    {-1, 1000, 0}};
static const struct cb_tree some_trees[] = {{3, 5, 0}, {-1, 1, 5}};

static int is_whole(const struct cb_choice_table *table) {
  return cb_forest_check(&table->forest, CB_CHOICE_FEATURES, CB_CHOICE_RECIPES);
}

static void leaves_are_added_up(void **state) {
  const struct cb_choice_table table = {"test", {some_trees, some_nodes, 2, 6}};
  struct cb_choice_features features = {{0}};
  struct cb_choice_times model = {.ns = {0}};
  struct cb_choice_scores scores;
  (void)state;
  assert_true(is_whole(&table));
  model.ns[3] = 3000; /* has trees of its own: begins with the least, which is that of recipe 4 */
  model.ns[4] = 2048;
  features.of[2] = 100;
  cb_choice_score(&scores, &table, &features, &model);
  assert_true(scores.of[3] == 11 * 1024 + 1000 - 7 && scores.of[4] == 11 * 1024 + 1000 && scores.of[0] == 0);
  features.of[2] = 101;
  features.of[3] = 5;
  cb_choice_score(&scores, &table, &features, &model);
  assert_true(scores.of[3] == 11 * 1024 + 1000 + 20);
  features.of[3] = 6;
  cb_choice_score(&scores, &table, &features, &model);
  assert_true(scores.of[3] == 11 * 1024 + 1000 + 30);
  model.ns[3] = 4096; /* far behind: its own time, and no trees of its own */
  cb_choice_score(&scores, &table, &features, &model);
  assert_true(scores.of[3] == 12 * 1024 + 1000 && scores.of[4] == 11 * 1024 + 1000);
  cb_choice_score(&scores, NULL, &features, &model);
  assert_true(scores.of[3] == 12 * 1024 && scores.of[4] == 11 * 1024);
}

static void damaged_tables_are_told(void **state) {
  (void)state;
  for (int node = 0; node < 6; node++)
    for (int damage = 0; damage < 4; damage++) {
      struct cb_tree_node nodes[6];
      memcpy(nodes, some_nodes, sizeof nodes);
      if (nodes[node].feature < 0) continue;
      if (damage == 0) nodes[node].feature = CB_CHOICE_FEATURES;
      if (damage == 1) nodes[node].next = (int16_t)node; /* a ring */
      if (damage == 2) nodes[node].next = 4;             /* beyond the tree's end */
      if (damage == 3) nodes[node].next = -1;
      const struct cb_choice_table table = {"test", {some_trees, nodes, 2, 6}};
      assert_false(is_whole(&table));
    }
  const struct cb_tree recipes[] = {{CB_CHOICE_RECIPES, 5, 0}}, beyond[] = {{0, 5, 2}}, none[] = {{0, 0, 0}};
  const struct cb_tree *const trees[] = {recipes, beyond, none};
  for (int i = 0; i < 3; i++) {
    const struct cb_choice_table table = {"test", {trees[i], some_nodes, 1, 6}};
    assert_false(is_whole(&table));
  }
  const struct cb_choice_table empty = {"test", {some_trees, some_nodes, 0, 6}};
  assert_false(is_whole(&empty));
  for (const struct cb_choice_table *table = cb_choice_tables; table->model; table++) {
    assert_true(is_whole(table));
    const struct cb_forest *forest = &table->forest;
    assert_true(forest->nodes_count * sizeof *forest->nodes + forest->trees_count * sizeof *forest->trees <= 192 << 10);
  }
}

/* ---- the choice */

/* The first recipe where numbers `recipe` and `other` take longer than `merge` by so much, all others far longer. */
static const char *ranked_first(int recipe, int64_t by, int other, int64_t other_by) {
  enum { MERGE = 4, FAR = 5000 };
  struct cb_choice_scores scores;
  struct cb_choice_times model;
  struct cb_choice choice;
  for (int i = 0; i < CB_CHOICE_RECIPES; i++) {
    scores.of[i] = 20000 + (i == recipe ? by : i == other ? other_by : i == MERGE ? 0 : FAR);
    model.ns[i] = 1;
  }
  cb_choice_rank(&choice, &scores, &model);
  assert_int_equal(choice.count, CB_CHOICE_RECIPES);
  return choice.ranks[0].recipe;
}

static void a_tie_is_within_half_a_percent(void **state) {
  (void)state;
  assert_string_equal(ranked_first(3, 6, -1, 0), "sell"); /* 0.4 % */
  assert_string_equal(ranked_first(3, 16, -1, 0), "merge");
  assert_string_equal(ranked_first(7, 6, -1, 0), "merge"); /* cb is as good, and no better */
  assert_string_equal(ranked_first(3, -40, -1, 0), "sell");
  assert_string_equal(ranked_first(0, 6, 3, 3), "dia");
  assert_string_equal(ranked_first(1, 6, 3, 3), "blocks");
  assert_string_equal(ranked_first(0, 6, 1, -2), "dia");
}

static void recipes_are_those_of_the_search(void **state) {
  const struct cb_recipe *recipe;
  (void)state;
  for (int i = 0; i < CB_CHOICE_RECIPES; i++) {
    assert_non_null(recipe = cb_recipe_searched(i, 0, 1));
    assert_string_equal(cb_choice_recipes[i], recipe->name);
  }
  assert_null(cb_recipe_searched(CB_CHOICE_RECIPES, 0, 1));
  for (int i = 0; i < CB_CHOICE_FEATURES; i++) assert_non_null(cb_choice_feature_names[i]);
}

static struct cb_choice choice_of(const char *matrix, const char *model) {
  struct cb_csr csr = matrix_of(matrix);
  struct cb_target target;
  struct cb_choice choice;
  struct cb_diag diag = {0};
  assert_ok(cb_target_find(&target, "sm_90", &diag));
  snprintf(target.model, sizeof target.model, "%s", model);
  assert_ok(cb_choose(&choice, &csr, &target, cb_precision_types(CB_PRECISION_F64), &diag));
  cb_csr_release(&csr);
  for (int i = 0; i < CB_CHOICE_RECIPES; i++) {
    assert_true((i < choice.count) == (choice.ranks[i].ns > 0) && (i < choice.count) == !choice.ranks[i].against);
    if (i && i < choice.count) assert_true(choice.ranks[i].ns >= choice.ranks[i - 1].ns);
  }
  return choice;
}

/* Without a table the model alone chooses. */
static void plain_matrices_get_what_they_are_made_for(void **state) {
  static const char *const cases[][2] = {
      {"stencil7,n=60", "dia"}, {"fe3,n=20", "blocks"}, {"rmat,scale=18,edge_factor=16", "hot"}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct cb_choice choice = choice_of(cases[i][0], "a GPU without a table");
    assert_false(choice.is_trained);
    assert_string_equal(choice.ranks[0].recipe, cases[i][1]);
  }
}

/* Putting millions of rows in order takes the host long: a search for what is ready passes over what does that. */
static void many_rows_that_differ_have_a_long_order(void **state) {
  (void)state;
  const char *gpu = "NVIDIA H200";
  assert_true(choice_of("long_row,rows=2100000,cols=2100000,per_row=1,long_rows=1,long_length=600", gpu).has_long_order);
  assert_false(choice_of("long_row,rows=2100000,cols=2100000,per_row=1,long_rows=1,long_length=500", gpu).has_long_order);
  assert_false(choice_of("long_row,rows=3000,cols=3000,per_row=1,long_rows=1,long_length=600", gpu).has_long_order);
}

/* As measured by graphs; whoever asks for programs gets what keeps the order of rows, if that loses little. */
static void trained_choices_are_those_of_graphs(void **state) {
  static const char *const cases[][3] = {{"stencil7,n=12", "sell", "dia"},
                                         {"stencil7,n=16", "sell", "dia"},
                                         {"stencil7,n=32", "dia", "dia"},
                                         {"fe3,n=10", "sell", "blocks"},
                                         {"fe3,n=20", "blocks", "blocks"}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct cb_choice choice = choice_of(cases[i][0], "NVIDIA H200");
    assert_true(choice.is_trained);
    assert_string_equal(choice.ranks[0].recipe, cases[i][1]);
    for (int suits = 0; suits < 2; suits++) {
      struct cb_csr csr = matrix_of(cases[i][0]);
      struct cb_target target;
      struct cb_options options;
      struct cb_assignment *assignment;
      struct cb_plan *plan;
      struct cb_diag diag = {0};
      assert_ok(cb_target_find(&target, "sm_90", &diag));
      snprintf(target.model, sizeof target.model, "NVIDIA H200");
      set_options(&options, suits ? "recipe=auto search=profile program-loss=500" : "recipe=auto search=profile");
      assert_ok(cb_plan_build(&plan, &assignment, &csr, &target, &options, &diag));
      assert_string_equal(plan->recipe, cases[i][1 + suits]);
      cb_plan_free(plan);
      cb_assignment_free(assignment);
      cb_csr_release(&csr);
    }
  }
}

static void one_recipe_is_planned(void **state) {
  struct cb_plan *plan;
  (void)state;
  struct cb_csr csr = matrix_of("fe3,n=12");
  struct cb_target target;
  struct cb_options options;
  struct cb_assignment *assignment;
  struct cb_diag diag = {0};
  assert_ok(cb_target_find(&target, "sm_90", &diag));
  set_options(&options, "recipe=auto search=profile");
  assert_ok(cb_plan_build(&plan, &assignment, &csr, &target, &options, &diag));
  int planned = 0;
  for (int i = 0; i < plan->candidates_count; i++) planned += plan->candidates[i].line[0] != 0;
  assert_true(plan->is_chosen_by_profile && plan->candidates_count == CB_CHOICE_RECIPES && planned == 1);
  cb_plan_free(plan);
  cb_assignment_free(assignment);
  /* options of layouts and fixed values are for the search */
  static const char *const others[] = {"recipe=auto search=profile sell-lanes=4",
                                       "recipe=auto search=profile values=fixed",
                                       "recipe=auto search=profile semiring=min-plus",
                                       "recipe=auto search=profile commit=once", "recipe=auto search=all"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    set_options(&options, others[i]);
    assert_ok(cb_plan_build(&plan, &assignment, &csr, &target, &options, &diag));
    assert_false(plan->is_chosen_by_profile);
    cb_plan_free(plan);
    cb_assignment_free(assignment);
  }
  cb_csr_release(&csr);
}

/* What `search=profile` plans for sm_90, with the table of its GPU or by the model alone; how many refused before. */
static int plan_by_profile(struct cb_csr csr, const char *settings, int trained) {
  struct cb_target target;
  struct cb_options options;
  struct cb_plan *plan;
  struct cb_assignment *assignment;
  struct cb_diag diag = {0};
  int refused = 0;
  assert_ok(cb_target_find(&target, "sm_90", &diag));
  if (!trained) snprintf(target.model, sizeof target.model, "a GPU without a table");
  set_options(&options, settings);
  assert_ok(cb_plan_build(&plan, &assignment, &csr, &target, &options, &diag));
  assert_string_equal(diag.message, "");
  assert_true(plan->is_chosen_by_profile);
  for (int i = 0; i < plan->candidates_count; i++) {
    const struct cb_candidate *candidate = &plan->candidates[i];
    const int planned = !strcmp(candidate->recipe, plan->recipe);
    refused += *candidate->refusal && strncmp(candidate->refusal, "not tried", 9) != 0;
    assert_true(planned == (candidate->line[0] != 0));
    if (planned) assert_true(!*candidate->refusal);
  }
  cb_plan_free(plan);
  cb_assignment_free(assignment);
  cb_csr_release(&csr);
  return refused;
}

static void every_matrix_gets_a_plan(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++)
    for (int trained = 0; trained < 2; trained++)
      plan_by_profile(matrix_of(matrices[i]),
                      i % 2 ? "recipe=auto search=profile type=f32" : "recipe=auto search=profile", trained);
}

/* The sample has a diagonal that is half full, the matrix has none. */
static void what_refuses_gives_way(void **state) {
  (void)state;
  assert_int_equal(plan_by_profile(matrix_of("diagonals,n=16375,count=74,spread=5979,fill=0.45,seed=345"),
                                   "recipe=auto search=profile", 0),
                   1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_number_is_right),
      cmocka_unit_test(columns_of_long_rows_stay_away),
      cmocka_unit_test(pairs_of_rows_are_no_blocks),
      cmocka_unit_test(so_it_is_of_real_matrices),
      cmocka_unit_test(any_number_of_threads_counts_alike),
      cmocka_unit_test(positions_are_one_of_each_range),
      cmocka_unit_test(logarithms_are_inverse_and_ascend),
      cmocka_unit_test(leaves_are_added_up),
      cmocka_unit_test(damaged_tables_are_told),
      cmocka_unit_test(a_tie_is_within_half_a_percent),
      cmocka_unit_test(recipes_are_those_of_the_search),
      cmocka_unit_test(plain_matrices_get_what_they_are_made_for),
      cmocka_unit_test(many_rows_that_differ_have_a_long_order),
      cmocka_unit_test(trained_choices_are_those_of_graphs),
      cmocka_unit_test(one_recipe_is_planned),
      cmocka_unit_test(every_matrix_gets_a_plan),
      cmocka_unit_test(what_refuses_gives_way),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
