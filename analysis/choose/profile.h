// SPDX-License-Identifier: Apache-2.0
/* What the choice of a recipe goes by: counts of a matrix, in 64-bit integers. All are sums over rows, groups of rows
 * or chunks of nonzeros, so that they are the same in any order, on the host and on the device. Where a sample is
 * looked at, positions alone say which; small matrices are looked at as a whole.
 *
 *   rows     all row pointers
 *   groups   32 consecutive rows, from a multiple of 32 on; a sample of `groups` of them (cb_choice_position). Rows of
 *            more than CB_CHOICE_LONG nonzeros are left out: they count as rows without any, but for `left_out`
 *   wide     256 consecutive rows, likewise: `wide_groups` of them
 *   chunks   1024 consecutive nonzeros, from a multiple of 1024 on, likewise; of these, the columns c for which
 *            (c * 0x9e3779b1 mod 2^32) >> (32 - column_share) is 0 (all, if column_share is 0)
 *
 * "Length" is a row's number of nonzeros. Bin k of a number is that of its bits: 0 for 0, 1 for 1, 2 for 2 and 3, and
 * so on. An offset is column - row. A sector is 32 bytes of x; [0] where its entries take 8 bytes, [1] where 4.
 */
#ifndef CBGEN_ANALYSIS_CHOOSE_PROFILE_H
#define CBGEN_ANALYSIS_CHOOSE_PROFILE_H

#include "analysis/tiles.h"
#include "base/status.h"
#include "frontend/csr.h"

#include <stddef.h>
#include <stdint.h>

enum {
  CB_CHOICE_GROUP = 32, /* rows of a group */
  CB_CHOICE_LONG = 512,
  CB_CHOICE_RUN = 24, /* nonzeros of an offset in a group, at least, so that it counts */
  CB_CHOICE_DEVICE_MOST = 4096, /* nonzeros of a group that kernels count: what their thread blocks have room for */
  CB_CHOICE_SAMPLE_LEAST = 1 << 13,
  CB_CHOICE_SAMPLE_MOST = 1 << 17, /* nonzeros that a sample of groups aims at: these at */
  CB_CHOICE_SAMPLE_PART = 64,      /* least and at most, between them such a part of all */
  CB_CHOICE_GROUPS_LEAST = 8,
  CB_CHOICE_GROUPS_MOST = 1024,
  CB_CHOICE_WIDE = 256, /* rows of a wide group */
  CB_CHOICE_WIDES_LEAST = 2,
  CB_CHOICE_WIDES_MOST = 64,
  CB_CHOICE_CHUNK = 1024,
  CB_CHOICE_CHUNKS = 16, /* that are looked at, if there are so many; or a sixteenth of all */
  CB_CHOICE_COUNTED_LEAST = 1 << 12,
  CB_CHOICE_COUNTED_MOST = 1 << 16, /* a sixteenth of a sample's nonzeros, at least */
  /* and at most: column_share is the least for which no more are expected to be chosen */
  CB_CHOICE_BINS = 32, /* rows are shorter than 2^31 */
  CB_CHOICE_STEPS = 6, /* 1 to 32 lanes for a row */
  CB_CHOICE_DIAGONALS = 64,
  CB_CHOICE_ALIKE = 8 /* unknowns of a node, at most */
};

/* Of all rows; 64-bit integers alone, as templates/profile.cu.in writes them, too. */
struct cb_choice_lengths {
  int64_t with_length[CB_CHOICE_BINS], in_length[CB_CHOICE_BINS]; /* rows by the bin of their length; their nonzeros */
  int64_t longest;
  int64_t in_step[CB_CHOICE_STEPS]; /* [k]: of each 32 >> k rows, from a multiple of that on, the longest's length */
};

struct cb_choice_profile {
  int64_t rows, cols, nnz;
  struct cb_choice_lengths lengths;

  /* groups */
  int64_t groups, sampled_rows, sampled, left_out; /* `sampled` nonzeros are looked at, `left_out` are not */
  int64_t across, down, diagonal; /* nonzeros (i, j) where (i, j + 1), (i + 1, j), (i + 1, j + 1) is one, too; of the
                                   * last two both rows are of the group */
  int64_t alike[CB_CHOICE_ALIKE + 1], aligned[CB_CHOICE_ALIKE + 1]; /* [s], s > 1: rows i of a group but its first, i no
                                   * multiple of s (aligned), and those with the columns of row i - 1 (alike) */
  int64_t row_sectors[2];   /* pairs of successive nonzeros of a row in different sectors, and one for each row */
  int64_t step_sectors[2];  /* for each k, of a group's rows of more than k nonzeros in order: how often the sector of
                             * nonzero k is another than that of the row before, the first counted */
  int64_t slice_sectors[2]; /* different sectors of a group */
  int64_t row_lines[2];     /* as row_sectors, by lines of 128 bytes, of which L1 looks up one at a time */
  int64_t step_lines[2];    /* for each k, of a group's rows of more than k nonzeros: different lines of nonzeros k,
                             * where lines whose numbers are alike in their last 8 bits count as one */
  int64_t spans[CB_CHOICE_BINS];       /* groups by the bin of greatest - least column; without nonzeros: 0 */
  int64_t panel_columns, panel_blocks; /* different columns, and different (column / 16), of each half of a group */
  int64_t runs, in_runs;               /* of a group, offsets with CB_CHOICE_RUN nonzeros or more; their nonzeros */
  int64_t tiles[CB_TILE_SIZES];    /* tiles of that size with a nonzero, in the rows of tiles that lie in the group, of
                             * groups that may be made of them (cb_choice_may_tile); of others, one for each nonzero */
  int64_t in_tiles[CB_TILE_SIZES]; /* nonzeros in those rows */

  /* wide groups */
  int64_t wide_groups, in_wide; /* nonzeros; rows that are long are left out */
  int64_t wide_sectors[2];      /* different sectors of a wide group */

  /* diagonals with a nonzero in half of their places in sampled rows that cross half of these rows; the fullest
   * CB_CHOICE_DIAGONALS, of equals the lower ones */
  int64_t diagonals, in_diagonals, diagonal_places;

  /* rows whose columns repeat, by block rows of `unknowns` rows from a multiple of that on: the greatest s with 95 % of
   * the aligned rows alike, else 1. A block row has a pattern if its rows have equal columns, which are whole blocks
   * (columns s * c … s * c + s - 1); that is the offsets of c from the block row's number */
  int64_t unknowns;
  int64_t patterns; /* different ones */
  int64_t pattern_once, pattern_few,
      pattern_many;        /* nonzeros in block rows of patterns that occur once, 2 to 7 times, or
                                               * more often, among those looked at */
  int64_t pattern_offsets; /* different offsets in patterns that occur twice and more, 1024 at most */

  /* chunks */
  int64_t chunks, chunk_nonzeros, column_share;
  int64_t columns, in_columns;                                  /* chosen ones that occur, and how often */
  int64_t with_count[CB_CHOICE_BINS], in_count[CB_CHOICE_BINS]; /* those by the bin of count * nnz / chunk_nonzeros */
};

/* What is counted by groups, one number after the other: `sampled_rows` to `in_tiles`, as templates/groups.cu.in writes
 * them. */
enum {
  CB_CHOICE_GROUP_SUMS = (offsetof(struct cb_choice_profile, wide_groups) -
                          offsetof(struct cb_choice_profile, sampled_rows)) / sizeof(int64_t)
};

/* Of a matrix whose row pointers are here. Parallel where they are many. */
void cb_choice_count_lengths(struct cb_choice_lengths *lengths, const struct cb_csr *csr);

/* Which of `all` positions number `i` of `chosen` is: one of each of as many equal ranges. */
static inline int64_t cb_choice_position(int64_t i, int64_t chosen, int64_t all) {
  const int64_t first = cb_proportion(all, i, chosen), end = cb_proportion(all, i + 1, chosen);
  const uint64_t mixed = ((uint64_t)i + 1) * 0x9e3779b97f4a7c15u;
  return first + (int64_t)((mixed >> 33) % (uint64_t)(end - first));
}

/* Whether tiles of that size are counted in a group: a sixth of its nonzeros have neighbours as tiles have them. */
static inline int cb_choice_may_tile(struct cb_tile_size size, int64_t across, int64_t down, int64_t nonzeros) {
  return (size.cols == 1 || across * 6 >= nonzeros) && (size.rows == 1 || down * 6 >= nonzeros);
}

/* Whether a column counts in chunks. */
static inline int cb_choice_has_column(int64_t column_share, int32_t column) {
  return !column_share || (uint32_t)column * 0x9e3779b1u >> (32 - column_share) == 0;
}

/* The bin of a number. */
static inline int cb_choice_bin(int64_t number) {
  const int bits = number ? 64 - __builtin_clzll((unsigned long long)number) : 0;
  return bits < CB_CHOICE_BINS ? bits : CB_CHOICE_BINS - 1;
}

/* One pass over the row pointers and the samples; parallel where these are large. Of a matrix whose columns are remote,
 * lengths and columns of chunks are counted there, and no more than the samples come to the host. CB_ERR_MEMORY, and
 * what bringing them fails with. */
enum cb_status cb_choice_profile(struct cb_choice_profile *profile, const struct cb_csr *csr, struct cb_diag *diag);

#endif
