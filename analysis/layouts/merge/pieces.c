// SPDX-License-Identifier: Apache-2.0
/* Long rows in pieces: see pieces.h. */
#include "analysis/layouts/merge/pieces.h"

#include "base/memory.h"

enum { LANES = 32 };

void cb_pieces_cut(struct cb_piece *pieces, const struct cb_csr *csr, int64_t row, int64_t count) {
  const int64_t begin = cb_csr_row(csr, row), length = cb_csr_row_length(csr, row);
  for (int64_t i = 0; i < count; i++) {
    const int64_t first = length * i / count / LANES * LANES;
    const int64_t end = i + 1 < count ? length * (i + 1) / count / LANES * LANES : length;
    pieces[i] = (struct cb_piece){begin + first, begin + end, 0, (int32_t)row, !i};
  }
}

int64_t cb_pieces_number(struct cb_piece *pieces, int64_t count) {
  int64_t slots = 0;
  for (int64_t p = 0; p < count; p++) {
    pieces[p].slot = slots;
    slots += pieces[p].end - pieces[p].begin;
  }
  return slots;
}

void cb_pieces_pack(const struct cb_slot_map *map, const struct cb_part *part, const struct cb_piece *pieces,
                    int64_t count) {
#pragma omp parallel for schedule(dynamic)
  for (int64_t p = 0; p < count; p++)
    for (int64_t k = pieces[p].begin; k < pieces[p].end; k++)
      cb_slot_set(map, pieces[p].slot + k - pieces[p].begin, cb_part_origin(part, k));
}

void cb_pieces_draft(struct cb_draft *draft, const struct cb_piece *pieces, int64_t count) {
  uint64_t *slot = cb_alloc((size_t)count + 1, sizeof *slot);
  uint32_t *row = cb_alloc((size_t)count, sizeof *row);
  if (slot && row) {
    for (int64_t p = 0; p < count; p++) {
      slot[p] = (uint64_t)pieces[p].slot;
      slot[p + 1] = (uint64_t)(pieces[p].slot + pieces[p].end - pieces[p].begin);
      row[p] = (uint32_t)pieces[p].row;
    }
  }
  cb_draft_index(draft, "long_slot", "first slot of a long row (or piece); one more", slot, 1, count + 1);
  cb_draft_index(draft, "long_row", "a long row", row, 0, count);
}

static int is_first(const void *pieces, int64_t piece) {
  return ((const struct cb_piece *)pieces)[piece].first;
}

void cb_pieces_draft_carries(struct cb_draft *draft, const struct cb_piece *pieces, int64_t cut) {
  if (!cut) return;
  cb_draft_section(draft, "cut");
  cb_draft_carries(draft, cut, is_first, pieces, "plan: thread blocks that have a piece of a row");
}
