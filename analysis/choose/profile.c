// SPDX-License-Identifier: Apache-2.0
/* The pass over all rows, and the order of the others: see profile.h. */
#include "analysis/choose/counting.h"

#include "base/integers.h"

#include <string.h>

enum { PARALLEL_ROWS = 1 << 18, BLOCK = 4096 /* rows, a multiple of CB_CHOICE_GROUP */ };

/* Rows by their length, of which most are short: those of even numbers and of odd ones, so that no sum waits for the
 * one of the row before. */
enum { SHORT = 64 };
struct by_length {
  int32_t rows[2][SHORT];
};

static void add_lengths(struct cb_choice_lengths *sums, int64_t length, int64_t rows) {
  const int bin = cb_choice_bin(length);
  sums->with_length[bin] += rows;
  sums->in_length[bin] += rows * length;
}

static void add_short(struct cb_choice_lengths *sums, const struct by_length *by) {
  for (int length = 0; length < SHORT; length++) add_lengths(sums, length, by->rows[0][length] + by->rows[1][length]);
}

/* Lengths of a group; of rows that are no more, 0. */
static void take_group(struct cb_choice_lengths *sums, struct by_length *by, int32_t longest[CB_CHOICE_GROUP],
                       const struct cb_csr *csr, int64_t group, int64_t rows) {
  int64_t begin = cb_csr_row(csr, group);
  for (int64_t i = 0; i < rows; i++) {
    const int64_t next = cb_csr_row(csr, group + i + 1), length = next - begin;
    longest[i] = (int32_t)length;
    begin = next;
    if (length < SHORT) by->rows[i % 2][length]++;
    else add_lengths(sums, length, 1);
  }
  for (int64_t i = rows; i < CB_CHOICE_GROUP; i++) longest[i] = 0;
}

/* What rows first … end - 1 add, first being a multiple of CB_CHOICE_GROUP, and no more than 2^31 of them. */
static void count_rows(struct cb_choice_lengths *sums, const struct cb_csr *csr, int64_t first, int64_t end) {
  struct by_length by = {{{0}}};
  for (int64_t group = first; group < end; group += CB_CHOICE_GROUP) {
    int32_t longest[CB_CHOICE_GROUP];
    take_group(sums, &by, longest, csr, group, cb_smaller(CB_CHOICE_GROUP, end - group));
    for (int step = CB_CHOICE_STEPS - 1; step >= 0; step--) { /* halves its number: pairs become one */
      const int pairs = CB_CHOICE_GROUP >> (CB_CHOICE_STEPS - 1 - step);
      int64_t sum = 0;
      for (int i = 0; i < pairs && step < CB_CHOICE_STEPS - 1; i++)
        longest[i] = longest[2 * i] < longest[2 * i + 1] ? longest[2 * i + 1] : longest[2 * i];
      for (int i = 0; i < pairs; i++) sum += longest[i];
      sums->in_step[step] += sum;
    }
    sums->longest = cb_larger(sums->longest, longest[0]);
  }
  add_short(sums, &by);
}

static void add_rows(struct cb_choice_lengths *sums, const struct cb_choice_lengths *more) {
  for (int i = 0; i < CB_CHOICE_BINS; i++) {
    sums->with_length[i] += more->with_length[i];
    sums->in_length[i] += more->in_length[i];
  }
  for (int i = 0; i < CB_CHOICE_STEPS; i++) sums->in_step[i] += more->in_step[i];
  sums->longest = cb_larger(sums->longest, more->longest);
}

void cb_choice_count_lengths(struct cb_choice_lengths *lengths, const struct cb_csr *csr) {
  *lengths = (struct cb_choice_lengths){0};
  if (csr->rows < PARALLEL_ROWS) { /* no parallel region: to begin one may take longer */
    count_rows(lengths, csr, 0, csr->rows);
    return;
  }
#pragma omp parallel
  {
    struct cb_choice_lengths own = {0};
#pragma omp for schedule(static)
    for (int64_t first = 0; first < csr->rows; first += BLOCK)
      count_rows(&own, csr, first, cb_smaller(first + BLOCK, csr->rows));
#pragma omp critical(cb_choice_rows)
    add_rows(lengths, &own);
  }
}

/* Nonzeros that samples aim at. */
static int64_t sample_size(const struct cb_csr *csr) {
  return cb_larger(cb_smaller(csr->nnz / CB_CHOICE_SAMPLE_PART, CB_CHOICE_SAMPLE_MOST), CB_CHOICE_SAMPLE_LEAST);
}

/* As many groups of `size` rows as have so many nonzeros. */
static int64_t choose_groups(const struct cb_csr *csr, int64_t size, int64_t nonzeros, int64_t least, int64_t most) {
  const int64_t all = cb_divide_up(csr->rows, size), mean = cb_larger(1, csr->nnz / cb_larger(all, 1));
  return cb_smaller(all, cb_smaller(cb_larger(least, nonzeros / mean), most));
}

/* Rows and nonzeros of groups, which diagonals go by. Returns the most nonzeros of one. */
static int64_t count_sampled(struct cb_choice_profile *profile, const struct cb_choice_sample *sample) {
  int64_t most = 0;
  for (int64_t i = 0; i < profile->groups; i++) {
    const struct cb_choice_rows rows = cb_choice_group(profile, i);
    int64_t nonzeros = 0;
    for (int64_t row = rows.first; row < rows.end; row++) {
      const struct cb_choice_row found = cb_choice_row(sample, i, row);
      nonzeros += found.end - found.begin;
    }
    profile->sampled_rows += rows.end - rows.first;
    profile->sampled += nonzeros;
    most = cb_larger(most, nonzeros);
  }
  return most;
}

/* Whom to ask in the end; NULL: the host counts. */
static const struct cb_remote_columns *begin_groups(const struct cb_choice_profile *profile,
                                                    const struct cb_remote_columns *remote, int64_t most) {
  const int can = remote && remote->begin_groups;
  return can && !remote->begin_groups(remote->user, profile->groups, most, NULL) ? remote : NULL;
}

/* By kernels, if they have begun, and have met what the host has; else here. 0: no memory. */
static int count_groups(struct cb_choice_profile *profile, const struct cb_choice_sample *sample,
                        const struct cb_remote_columns *begun) {
  struct cb_choice_profile there = {0};
  if (begun && !begun->end_groups(begun->user, &there.sampled_rows, NULL) &&
      there.sampled_rows == profile->sampled_rows && there.sampled == profile->sampled) {
    memcpy(&profile->sampled_rows, &there.sampled_rows, CB_CHOICE_GROUP_SUMS * sizeof there.sampled_rows);
    return 1;
  }
  profile->sampled_rows = profile->sampled = 0;
  return cb_choice_count_groups(profile, sample);
}

enum cb_status cb_choice_profile(struct cb_choice_profile *profile, const struct cb_csr *csr, struct cb_diag *diag) {
  const struct cb_remote_columns *remote = csr->remote, *begun = NULL;
  struct cb_choice_sample sample;
  enum cb_status s = CB_OK;
  *profile = (struct cb_choice_profile){.rows = csr->rows, .cols = csr->cols, .nnz = csr->nnz, .unknowns = 1};
  profile->groups =
      choose_groups(csr, CB_CHOICE_GROUP, sample_size(csr), CB_CHOICE_GROUPS_LEAST, CB_CHOICE_GROUPS_MOST);
  profile->wide_groups =
      choose_groups(csr, CB_CHOICE_WIDE, sample_size(csr) / 2, CB_CHOICE_WIDES_LEAST, CB_CHOICE_WIDES_MOST);
  if (remote) s = remote->lengths(remote->user, &profile->lengths, diag);
  else cb_choice_count_lengths(&profile->lengths, csr);
  if (s) return s;
  s = cb_choice_sample_open(&sample, profile, csr, diag);
  const int64_t most = s ? 0 : count_sampled(profile, &sample);
  const int waits = cb_choice_here(csr)->remote != NULL; /* columns that are brought would come behind groups */
  if (!s && waits) s = cb_choice_count_columns(profile, csr, diag);
  if (!s) begun = begin_groups(profile, remote, most);
  if (!s && !waits) s = cb_choice_count_columns(profile, csr, diag); /* while kernels count, as all that follows */
  if (!s && !(cb_choice_count_wide(profile, &sample) && cb_choice_count_diagonals(profile, &sample) &&
              cb_choice_count_patterns(profile, &sample) && count_groups(profile, &sample, begun)))
    s = cb_fail_memory(diag, "a profile", CB_CHOICE_SAMPLE_MOST * sizeof(struct cb_tallied));
  cb_choice_sample_close(&sample);
  return s;
}
