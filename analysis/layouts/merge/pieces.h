// SPDX-License-Identifier: Apache-2.0
/* Long rows, whole or cut into pieces of about equal length, a thread block for each: what layouts merge and
 * panel share. Their templates read the arrays long_slot and long_row, and those of cb_draft_carries. */
#ifndef CBGEN_ANALYSIS_PIECES_H
#define CBGEN_ANALYSIS_PIECES_H

#include "analysis/layout.h"

struct cb_piece {
  int64_t begin, end; /* nonzeros */
  int64_t slot;       /* of the first; pieces' slots follow one another */
  int32_t row;
  int first; /* of its row */
};

/* The `count` pieces of a row: all but the last end at a multiple of a warp's lanes. */
void cb_pieces_cut(struct cb_piece *pieces, const struct cb_csr *csr, int64_t row, int64_t count);

/* Numbers the slots of all pieces. Returns how many there are. */
int64_t cb_pieces_number(struct cb_piece *pieces, int64_t count);

/* Which nonzeros are in these slots. */
void cb_pieces_pack(const struct cb_slot_map *map, const struct cb_part *part, const struct cb_piece *pieces,
                    int64_t count);

/* Arrays for `count` pieces. */
void cb_pieces_draft(struct cb_draft *draft, const struct cb_piece *pieces, int64_t count);

/* The first `cut` of them have a carry slot each: the pieces of rows that have several. */
void cb_pieces_draft_carries(struct cb_draft *draft, const struct cb_piece *pieces, int64_t cut);

#endif
