// SPDX-License-Identifier: Apache-2.0
/* Inside the profile: a table of counts by key, the sample of rows, and the passes, one file each. */
#ifndef CBGEN_ANALYSIS_CHOOSE_COUNTING_H
#define CBGEN_ANALYSIS_CHOOSE_COUNTING_H

#include "analysis/choose/profile.h"
#include "base/memory.h"

/* Keys below 2^32 - 1 with a count each. Emptied in no time: entries of another round are free. */
struct cb_tally {
  struct cb_tallied {
    uint32_t key, round, count;
  } * at;
  uint32_t mask, round, used;
};

/* Room for `most` keys. 0: no memory. */
static inline int cb_tally_open(struct cb_tally *tally, int64_t most) {
  uint32_t places = 64;
  while (places < 2 * most) places *= 2;
  *tally = (struct cb_tally){.at = cb_calloc(places, sizeof *tally->at), .mask = places - 1, .round = 1};
  return tally->at != NULL;
}

static inline void cb_tally_close(struct cb_tally *tally) {
  cb_free(tally->at);
}

/* Forgets all. Of its places those are used that `most` keys need. */
static inline void cb_tally_clear(struct cb_tally *tally, int64_t most) {
  uint32_t places = 64;
  while (places < 2 * most) places *= 2;
  tally->mask = places - 1;
  tally->round++;
  tally->used = 0;
}

static inline struct cb_tallied *cb_tally_find(struct cb_tally *tally, uint32_t key) {
  uint32_t place = (key * 0x9e3779b1u >> 7) & tally->mask;
  while (tally->at[place].round == tally->round && tally->at[place].key != key) place = (place + 1) & tally->mask;
  if (tally->at[place].round != tally->round) {
    tally->at[place] = (struct cb_tallied){key, tally->round, 0};
    tally->used++;
  }
  return &tally->at[place];
}

/* Adds 1 to the key's count, and returns it. */
static inline uint32_t cb_tally_add(struct cb_tally *tally, uint32_t key) {
  return ++cb_tally_find(tally, key)->count;
}

/* The matrix with its columns, if these are here. */
static inline const struct cb_csr *cb_choice_here(const struct cb_csr *csr) {
  return csr->remote && csr->remote->near ? csr->remote->near : csr;
}

/* The rows first … end - 1 of number `i` of the groups that are looked at, of `size` rows each. */
struct cb_choice_rows {
  int64_t first, end;
};
static inline struct cb_choice_rows cb_choice_rows(const struct cb_choice_profile *profile, int64_t i, int64_t groups,
                                                   int64_t size) {
  const int64_t first = cb_choice_position(i, groups, cb_divide_up(profile->rows, size)) * size;
  return (struct cb_choice_rows){first, cb_smaller(first + size, profile->rows)};
}
static inline struct cb_choice_rows cb_choice_group(const struct cb_choice_profile *profile, int64_t i) {
  return cb_choice_rows(profile, i, profile->groups, CB_CHOICE_GROUP);
}
static inline struct cb_choice_rows cb_choice_wide(const struct cb_choice_profile *profile, int64_t i) {
  return cb_choice_rows(profile, i, profile->wide_groups, CB_CHOICE_WIDE);
}

/* Rows that are looked at, by parts: all groups, then all wide groups. They are the matrix's own, or, of a matrix whose
 * columns are remote, copies of these rows. */
struct cb_choice_sample {
  const struct cb_csr *csr;
  const int32_t *columns;
  struct cb_choice_place {
    int64_t begin, length; /* in `columns`; of all nonzeros: those of a long row have no place */
  } *places;               /* of rows that were brought; NULL: the matrix is here */
  int64_t *shift;          /* of a part: row r has place r + shift */
  int32_t *brought;
};

/* sample.c: brings what is not here. CB_ERR_MEMORY, and what that fails with. Close it in any case. */
enum cb_status cb_choice_sample_open(struct cb_choice_sample *sample, const struct cb_choice_profile *profile,
                                     const struct cb_csr *csr, struct cb_diag *diag);
void cb_choice_sample_close(struct cb_choice_sample *sample);

/* The nonzeros begin … end - 1 of a row of that part, in the sample's columns: none of a long row. */
struct cb_choice_row {
  int64_t begin, end;
  int64_t length; /* of a long row, too */
};
static inline struct cb_choice_row cb_choice_row(const struct cb_choice_sample *sample, int64_t part, int64_t row) {
  const struct cb_choice_place *brought = sample->places ? &sample->places[row + sample->shift[part]] : NULL;
  const int64_t begin = brought ? brought->begin : cb_csr_row(sample->csr, row);
  const int64_t length = brought ? brought->length : cb_csr_row_length(sample->csr, row);
  return (struct cb_choice_row){begin, length > CB_CHOICE_LONG ? begin : begin + length, length};
}

/* Rows of a group but its first, that are no multiples of each size. */
static inline void cb_choice_add_aligned(int64_t aligned[CB_CHOICE_ALIKE + 1], int64_t first, int64_t rows) {
  const int64_t last = first + rows - 1;
  for (int64_t size = 2; size <= CB_CHOICE_ALIKE; size++) aligned[size] += rows - 1 - (last / size - first / size);
}

/* groups.c: all that is counted group by group, and wide group by wide group. 0: no memory. */
int cb_choice_count_groups(struct cb_choice_profile *profile, const struct cb_choice_sample *sample);
int cb_choice_count_wide(struct cb_choice_profile *profile, const struct cb_choice_sample *sample);
/* repeats.c: diagonals; `unknowns` and patterns. Neither needs what is counted of groups. 0: no memory. */
int cb_choice_count_diagonals(struct cb_choice_profile *profile, const struct cb_choice_sample *sample);
int cb_choice_count_patterns(struct cb_choice_profile *profile, const struct cb_choice_sample *sample);
/* frequencies.c: chunks. CB_ERR_MEMORY, and what bringing columns fails with. */
enum cb_status cb_choice_count_columns(struct cb_choice_profile *profile, const struct cb_csr *csr,
                                       struct cb_diag *diag);

#endif
