// SPDX-License-Identifier: Apache-2.0
/* Chunks of 8 rows: see chunks.h. */
#include "analysis/chunks.h"

#include "analysis/ordering.h"
#include "base/integers.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* ---- which rows */

struct listing {
  const struct cb_csr *csr;
  const unsigned char *listed; /* NULL: none is yet */
  int empty;                   /* those without nonzeros, too */
};

static int is_wanted(const void *user, int64_t row) {
  const struct listing *listing = user;
  if (listing->listed && listing->listed[row]) return 0;
  return listing->empty || cb_csr_row_length(listing->csr, row) > 0;
}

/* The `first` rows, then the others that are wanted; places behind these are none. */
static int list_rows(struct cb_chunks *chunks, struct cb_arena *arena, const struct cb_row_order *first, int all) {
  const struct cb_csr *csr = chunks->csr;
  const int64_t before = first ? first->count : 0;
  struct listing listing = {.csr = csr, .empty = all};
  struct cb_arena scratch = {0};
  int64_t others = 0;
  unsigned char *listed = cb_arena_alloc(&scratch, (size_t)csr->rows, 1);
  for (int64_t i = 0; listed && i < before; i++) listed[first->row[i]] = 1;
  listing.listed = listed;
  const int32_t *rest = listed ? cb_rows_where(&scratch, csr->rows, is_wanted, &listing, &others) : NULL;
  chunks->count = cb_divide_up(before + others, CB_CHUNK_ROWS);
  int32_t *row = rest ? cb_arena_alloc(arena, (size_t)(chunks->count * CB_CHUNK_ROWS), sizeof *row) : NULL;
  if (row) {
    for (int64_t i = 0; i < before; i++) row[i] = first->row[i];
    for (int64_t i = 0; i < others; i++) row[before + i] = rest[i];
    for (int64_t i = before + others; i < chunks->count * CB_CHUNK_ROWS; i++) row[i] = (int32_t)csr->rows;
  }
  chunks->row = row;
  cb_arena_release(&scratch);
  return row != NULL;
}

/* All rows with nonzeros, the longest first. */
static struct cb_row_order *order_by_length(const struct cb_csr *csr) {
  struct cb_crux all = {.hot_row = cb_calloc((size_t)csr->rows, 1),
                        .row_count = cb_alloc((size_t)csr->rows, sizeof *all.row_count)};
  struct cb_row_order *order = NULL;
  for (int64_t row = 0; all.hot_row && all.row_count && row < csr->rows; row++) {
    all.row_count[row] = (uint32_t)cb_csr_row_length(csr, row);
    all.rows += all.hot_row[row] = all.row_count[row] > 0;
  }
  if (all.hot_row && all.row_count) order = cb_crux_order(&all, csr->rows, 1);
  cb_crux_release(&all);
  return order;
}

int cb_chunks_make(struct cb_chunks *chunks, struct cb_arena *arena, const struct cb_region_builder *builder,
                   int sorted) {
  const struct cb_csr *csr = builder->work.part.csr;
  const struct cb_row_order *found = cb_part_found(&builder->work.part, CB_FOUND_CRUX);
  const int all = builder->commit == CB_COMMIT_FINAL;
  *chunks = (struct cb_chunks){.csr = csr, .count = cb_divide_up(csr->rows, CB_CHUNK_ROWS)};
  if (found) return list_rows(chunks, arena, found, all);
  if (!sorted) return all || list_rows(chunks, arena, NULL, 0);
  struct cb_row_order *order = order_by_length(csr);
  const int good = order && list_rows(chunks, arena, order, all);
  cb_row_order_release(order);
  return good;
}

/* ---- columns */

void cb_chunk_walk_open(struct cb_chunk_walk *walk, const struct cb_csr *csr, const struct cb_crux *crux) {
  *walk = (struct cb_chunk_walk){.csr = csr, .crux = crux};
}

static void skip_cold(struct cb_chunk_walk *walk, int i) {
  if (!walk->crux) return;
  while (walk->next[i] < walk->end[i] && !walk->crux->hot_column[walk->csr->col_idx[walk->next[i]]]) walk->next[i]++;
}

void cb_chunk_walk_add(struct cb_chunk_walk *walk, int local_row, int64_t row) {
  walk->next[local_row] = cb_csr_row(walk->csr, row);
  walk->end[local_row] = cb_csr_row(walk->csr, row + 1);
  skip_cold(walk, local_row);
}

struct cb_chunk_walk cb_chunk_walk_of(const struct cb_chunks *chunks, int64_t chunk) {
  struct cb_chunk_walk walk;
  cb_chunk_walk_open(&walk, chunks->csr, NULL);
  for (int i = 0; i < CB_CHUNK_ROWS; i++) {
    const int64_t row = cb_chunks_row(chunks, chunk * CB_CHUNK_ROWS + i);
    if (row < chunks->csr->rows) cb_chunk_walk_add(&walk, i, row);
  }
  return walk;
}

int cb_chunk_walk_next(struct cb_chunk_walk *walk, struct cb_chunk_column *column) {
  const int32_t *columns = walk->csr->col_idx;
  column->column = INT32_MAX;
  column->rows = 0;
  for (int i = 0; i < CB_CHUNK_ROWS; i++)
    if (walk->next[i] < walk->end[i] && columns[walk->next[i]] < column->column)
      column->column = columns[walk->next[i]];
  for (int i = 0; i < CB_CHUNK_ROWS; i++)
    if (walk->next[i] < walk->end[i] && columns[walk->next[i]] == column->column) {
      column->rows |= 1u << i;
      column->nonzero[i] = walk->next[i]++;
      skip_cold(walk, i);
    }
  return column->rows != 0;
}

/* ---- tensor cores */

static int architecture(const struct cb_target *target) {
  return !strncmp(target->arch, "sm_", 3) ? (int)strtol(target->arch + 3, NULL, 10) : 0;
}

enum cb_mma cb_mma_for(struct cb_types types, const struct cb_target *target) {
  enum { LEAST = 80 };
  if (architecture(target) < LEAST) return CB_MMA_NONE;
  if (types.sum == CB_F64) return CB_MMA_F64;
  /* 11 bits of a value: those of f16, and the 8 of bf16. Floats would take three parts, too, and nine products. */
  return types.matrix == CB_F16 || types.matrix == CB_BF16 ? CB_MMA_TF32 : CB_MMA_NONE;
}

enum cb_status cb_mma_choose(enum cb_mma *mma, const struct cb_region_builder *builder, int64_t form,
                             struct cb_diag *diag) {
  const struct cb_types types = {builder->matrix_type, builder->vector_type, builder->sum_type};
  const enum cb_mma possible = cb_mma_for(types, builder->target);
  *mma = form == CB_FORM_MMA ? possible : CB_MMA_NONE;
  if (form != CB_FORM_MMA || possible != CB_MMA_NONE) return CB_OK;
  return cb_fail(diag, CB_ERR_UNSUPPORTED,
                 "tensor cores of %s have no exact products for type '%s'; use du-form=fma",
                 builder->target->arch, cb_types_name(types));
}
