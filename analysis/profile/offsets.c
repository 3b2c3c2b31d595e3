// SPDX-License-Identifier: Apache-2.0
/* Nonzeros by diagonal: see offsets.h. */
#include "analysis/profile/offsets.h"

static int bin_of(int64_t offset) {
  int64_t distance = offset < 0 ? -offset : offset;
  int bits = 0;
  for (; distance; distance >>= 1) bits++;
  return CB_OFFSETS_SIDE + (offset < 0 ? -bits : bits);
}

static void count_row(int64_t *bins, const struct cb_csr *csr, int64_t row) {
  for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++) bins[bin_of(csr->col_idx[k] - row)]++;
}

void cb_offsets_count(int64_t bins[CB_OFFSETS_BINS], const struct cb_csr *csr) {
  int64_t counts[CB_OFFSETS_BINS] = {0};
#pragma omp parallel for schedule(dynamic, 4096) reduction(+ : counts)
  for (int64_t row = 0; row < csr->rows; row++) count_row(counts, csr, row);
  for (int i = 0; i < CB_OFFSETS_BINS; i++) bins[i] = counts[i];
}

void cb_offsets_of_bin(int bin, int64_t *least, int64_t *most) {
  const int bits = bin < CB_OFFSETS_SIDE ? CB_OFFSETS_SIDE - bin : bin - CB_OFFSETS_SIDE;
  const int64_t near = bits ? INT64_C(1) << (bits - 1) : 0, far = bits ? (INT64_C(1) << bits) - 1 : 0;
  *least = bin < CB_OFFSETS_SIDE ? -far : near;
  *most = bin < CB_OFFSETS_SIDE ? -near : far;
}
