// SPDX-License-Identifier: Apache-2.0
/* Layout tile (TileSpMV) and its recipes: which format each tile gets, by thresholds and against a brute force; what
 * each format stores, in bytes, and whether it describes the matrix; what is deferred; units, carries and edges;
 * threads, failing allocations; products against the oracle. */
#include "tests/layouts.h"

#include "analysis/layouts/tile/census.h"

enum { SIDE = 16, ALL_FORMATS = 0x7f };

/* ---- matrices by the tiles that they are made of */

struct drawn {
  int64_t rows, cols;
  char *filled; /* by row and column */
};

static struct drawn draw_open(int64_t rows, int64_t cols) {
  const struct drawn drawn = {rows, cols, calloc((size_t)(rows * cols), 1)};
  assert_non_null(drawn.filled);
  return drawn;
}

static void fill(struct drawn *drawn, int64_t row, int64_t col) {
  if (row < drawn->rows && col < drawn->cols) drawn->filled[row * drawn->cols + col] = 1;
}

/* Values 1, 2, 3, … by rows. */
static struct cb_csr draw_close(struct drawn *drawn) {
  struct cb_diag diag = {0};
  struct cb_csr csr = {0};
  const int64_t size = drawn->rows * drawn->cols;
  struct cb_coo coo = {.rows = drawn->rows, .cols = drawn->cols};
  coo.row_idx = cb_alloc((size_t)size, 4);
  coo.col_idx = cb_alloc((size_t)size, 4);
  coo.values = cb_alloc((size_t)size, 8);
  for (int64_t i = 0; i < size; i++) {
    if (!drawn->filled[i]) continue;
    coo.row_idx[coo.count] = (int32_t)(i / drawn->cols);
    coo.col_idx[coo.count] = (int32_t)(i % drawn->cols);
    coo.values[coo.count] = (double)(coo.count + 1);
    coo.count++;
  }
  free(drawn->filled);
  assert_ok(cb_csr_from_coo(&csr, &coo, &diag));
  return csr;
}

/* A tile whose rows have these lengths, from column `shift` times the row's number on. */
static void fill_lengths(struct drawn *drawn, int64_t row, int64_t col, const int *lengths, int shift) {
  for (int i = 0; i < SIDE; i++)
    for (int k = 0; k < lengths[i]; k++) fill(drawn, row + i, col + (i * shift + k) % SIDE);
}

/* Some tile of that kind. */
static void fill_kind(struct drawn *drawn, int64_t row, int64_t col, int kind, uint64_t *seed) {
  int lengths[SIDE] = {0};
  const int some = (int)(draw(seed) % 3);
  for (int i = 0; i < SIDE; i++) {
    if (kind == 0) lengths[i] = draw(seed) % 8 == 0;                  /* few */
    if (kind == 1) lengths[i] = 11 + (int)(draw(seed) % 6);           /* most places */
    if (kind == 2) lengths[i] = draw(seed) % 8 <= (unsigned)some ? SIDE : 0; /* full rows */
    if (kind == 4) lengths[i] = 2 + some;                             /* even rows */
    if (kind == 5) lengths[i] = i % 5 == 0 ? 9 + some : 1 + some / 2; /* some long rows */
    if (kind == 6) lengths[i] = (int)(draw(seed) % 6);                /* any */
    if (kind == 7) lengths[i] = SIDE;                                 /* all places */
  }
  fill_lengths(drawn, row, col, lengths, kind == 1 ? 3 : 5);
  for (int i = 0; kind == 3 && i < SIDE; i++)
    for (int column = 0; column <= some; column++) fill(drawn, row + i, col + 5 * column + some); /* full columns */
}

/* Tiles of all kinds, and panels without any. */
static struct cb_csr mixed_matrix(int64_t rows, int64_t cols, uint64_t seed) {
  struct drawn drawn = draw_open(rows, cols);
  for (int64_t row = 0; row < rows; row += SIDE)
    for (int64_t col = 0; col < cols; col += SIDE)
      if (draw(&seed) % 3 && row / SIDE % 5 != 3) fill_kind(&drawn, row, col, (int)(draw(&seed) % 8), &seed);
  return draw_close(&drawn);
}

/* ---- formats */

static const struct cb_tile_wish paper = {.coo = 12, .dense = 128, .te = 20, .th = 100, .value_bytes = 8};

static struct cb_tile_census census_of(const struct cb_csr *csr, const struct cb_tile_wish *wish) {
  struct cb_diag diag = {0};
  struct cb_tile_census census;
  assert_ok(cb_tile_census_find(&census, csr, wish, &diag));
  return census;
}

/* The format of the only tile of a matrix. */
static enum cb_tile_format format_of(struct drawn drawn, const struct cb_tile_wish *wish, struct cb_tile_info *tile) {
  struct cb_csr csr = draw_close(&drawn);
  struct cb_tile_census census = census_of(&csr, wish);
  assert_int_equal(census.tiles, 1);
  const struct cb_tile_info only = census.tile[0];
  assert_int_equal(only.last + 1, csr.nnz);
  if (tile) *tile = only;
  cb_tile_census_release(&census);
  cb_csr_release(&csr);
  return (enum cb_tile_format)only.format;
}

static enum cb_tile_format format_of_lengths(const int *lengths, const struct cb_tile_wish *wish,
                                             struct cb_tile_info *tile) {
  struct drawn drawn = draw_open(SIDE, SIDE);
  fill_lengths(&drawn, 0, 0, lengths, 5);
  return format_of(drawn, wish, tile);
}

static void thresholds_decide(void **state) {
  (void)state;
  static const struct {
    int lengths[SIDE];
    struct cb_tile_wish wish;
    enum cb_tile_format format;
    int width, over;
  } cases[] = {
      /* 11 and 12 nonzeros in rows of 0 and 1: variation 0.67 and 0.58 */
      {{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {0, 12, 128, 20, 100, 8}, CB_TILE_COO, 0, 0},
      {{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {0, 12, 128, 20, 100, 8}, CB_TILE_CSR, 0, 0},
      {{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {0, 11, 128, 20, 100, 8}, CB_TILE_CSR, 0, 0},
      /* few, but even: no COO */
      {{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {0, 12, 128, 68, 100, 8}, CB_TILE_ELL, 1, 0},
      /* 127 and 128 nonzeros, even rows */
      {{8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7}, {0, 12, 128, 20, 100, 8}, CB_TILE_ELL, 8, 0},
      {{8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8}, {0, 12, 128, 20, 100, 8}, CB_TILE_DNS, 0, 0},
      {{8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8}, {0, 12, 129, 20, 100, 8}, CB_TILE_ELL, 8, 0},
      /* rows of 4 and 6: variation is 0.2 exactly; a row of 7 makes it more */
      {{4, 6, 4, 6, 4, 6, 4, 6, 4, 6, 4, 6, 4, 6, 4, 6}, {0, 12, 128, 20, 100, 8}, CB_TILE_ELL, 6, 0},
      {{4, 6, 4, 6, 4, 6, 4, 6, 4, 6, 4, 6, 4, 6, 4, 7}, {0, 12, 128, 20, 100, 8}, CB_TILE_CSR, 0, 0},
      {{4, 6, 4, 6, 4, 6, 4, 6, 4, 6, 4, 6, 4, 6, 4, 6}, {0, 12, 128, 19, 100, 8}, CB_TILE_CSR, 0, 0},
      /* rows of 0 and 2: variation is 1 exactly. Above it, places of ELL would cost more than COO */
      {{0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2}, {0, 12, 128, 20, 100, 8}, CB_TILE_CSR, 0, 0},
      {{0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2}, {0, 12, 128, 20, 99, 8}, CB_TILE_COO, 0, 0},
      /* one long row over even ones: the width is theirs */
      {{9, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, {0, 12, 128, 20, 60, 8}, CB_TILE_HYB, 2, 7},
      {{9, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0}, {0, 12, 128, 20, 60, 4}, CB_TILE_HYB, 2, 7},
      {{9, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0}, {0, 12, 128, 20, 60, 8}, CB_TILE_COO, 0, 0},
      /* all that is wished for is CSR */
      {{8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8}, {1, 12, 128, 20, 100, 8}, CB_TILE_CSR, 0, 0},
      /* full rows before Dns, however many */
      {{0, 16, 0, 0, 0, 0, 0, 16}, {0, 12, 128, 20, 100, 8}, CB_TILE_DNSROW, 2, 0},
      {{16, 16, 16, 16, 16, 16, 16, 16, 16}, {0, 12, 128, 20, 100, 8}, CB_TILE_DNSROW, 9, 0},
      {{16, 16, 16, 16, 16, 16, 16, 16, 16, 1}, {0, 12, 128, 20, 100, 8}, CB_TILE_DNS, 0, 0},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct cb_tile_info tile;
    const enum cb_tile_format format = format_of_lengths(cases[c].lengths, &cases[c].wish, &tile);
    if (format != cases[c].format || tile.width != cases[c].width || tile.over != cases[c].over)
      fail_msg("case %d: %s, width %d, %d over", (int)c, cb_tile_format_names[format], tile.width, tile.over);
  }
}

static void full_columns_have_sixteen_rows(void **state) {
  (void)state;
  struct drawn whole = draw_open(SIDE, SIDE), below = draw_open(13, SIDE), not_full = draw_open(SIDE, SIDE);
  for (int row = 0; row < SIDE; row++) {
    fill(&whole, row, 3);
    fill(&below, row, 3);
    if (row != 7) fill(&not_full, row, 3);
  }
  assert_int_equal(format_of(whole, &paper, NULL), CB_TILE_DNSCOL);
  assert_int_equal(format_of(below, &paper, NULL), CB_TILE_CSR);
  assert_int_equal(format_of(not_full, &paper, NULL), CB_TILE_CSR);
}

/* The format of a tile by counting its places one by one, as census.h says. */
static enum cb_tile_format slow_format(const char *tile, const struct cb_tile_wish *wish, int *width) {
  long long n = 0, deviation = 0, lengths[SIDE] = {0}, heights[SIDE] = {0}, most = 0;
  int by_rows = 1, by_columns = 1;
  for (int i = 0; i < SIDE * SIDE; i++) {
    n += tile[i];
    lengths[i / SIDE] += tile[i];
    heights[i % SIDE] += tile[i];
  }
  for (int i = 0; i < SIDE; i++) {
    by_rows &= lengths[i] == 0 || lengths[i] == SIDE;
    by_columns &= heights[i] == 0 || heights[i] == SIDE;
    if (lengths[i] > most) most = lengths[i];
    deviation += (SIDE * lengths[i] - n) * (SIDE * lengths[i] - n);
  }
  *width = 0;
  if (wish->only_csr) return CB_TILE_CSR;
  const int above_te = deviation * 10000 > wish->te * wish->te * n * n * SIDE;
  const int above_th = deviation * 10000 > wish->th * wish->th * n * n * SIDE;
  if (n < wish->coo && above_te) return CB_TILE_COO;
  if (by_rows) return CB_TILE_DNSROW;
  if (by_columns) return CB_TILE_DNSCOL;
  if (n >= wish->dense) return CB_TILE_DNS;
  *width = (int)most;
  if (!above_te) return CB_TILE_ELL;
  if (!above_th) return CB_TILE_CSR;
  double bytes = -1;
  for (int w = (int)most; w >= 0; w--) { /* down while bytes fall */
    double sum = SIDE * w * ((double)wish->value_bytes + 0.5);
    for (int i = 0; i < SIDE; i++) sum += lengths[i] > w ? (double)((lengths[i] - w) * (wish->value_bytes + 1)) : 0;
    if (bytes >= 0 && sum >= bytes) break;
    bytes = sum;
    *width = w;
  }
  return *width == 0 ? CB_TILE_COO : *width == most ? CB_TILE_ELL : CB_TILE_HYB;
}

static int64_t check_census(const struct cb_csr *csr, const struct cb_tile_wish *wish, int64_t *seen) {
  struct cb_tile_census census = census_of(csr, wish);
  int64_t t = 0, nonzeros = 0;
  for (int64_t panel = 0; panel < census.panels; panel++) {
    assert_int_equal(census.first_tile[panel], t);
    for (int64_t column = 0; column < (csr->cols + SIDE - 1) / SIDE; column++) {
      char tile[SIDE * SIDE] = {0};
      int width, count = 0;
      const int64_t rows = csr->rows - panel * SIDE < SIDE ? csr->rows - panel * SIDE : SIDE;
      for (int64_t i = 0; i < rows; i++)
        for (int64_t k = cb_csr_row(csr, panel * SIDE + i); k < cb_csr_row(csr, panel * SIDE + i + 1); k++)
          if (csr->col_idx[k] / SIDE == column) tile[i * SIDE + csr->col_idx[k] % SIDE] = 1;
      for (int i = 0; i < SIDE * SIDE; i++) count += tile[i];
      if (!count) continue;
      const enum cb_tile_format format = slow_format(tile, wish, &width);
      assert_int_equal(census.tile[t].column, column);
      assert_int_equal(census.tile[t].last + 1, count);
      assert_int_equal(census.tile[t].format, format);
      if (format == CB_TILE_ELL || format == CB_TILE_HYB) assert_int_equal(census.tile[t].width, width);
      seen[format]++;
      nonzeros += count;
      t++;
    }
  }
  assert_int_equal(census.tiles, t);
  assert_int_equal(nonzeros, csr->nnz);
  cb_tile_census_release(&census);
  return t;
}

static void census_is_what_counting_says(void **state) {
  (void)state;
  int64_t seen[CB_TILE_FORMATS] = {0};
  uint64_t seed = 7;
  for (int round = 0; round < 60; round++) {
    const int64_t rows = 1 + (int64_t)(draw(&seed) % 150), cols = 1 + (int64_t)(draw(&seed) % 150);
    const struct cb_tile_wish wish = {.only_csr = round % 15 == 14, .coo = (int64_t)(draw(&seed) % 30),
                                      .dense = 100 + (int64_t)(draw(&seed) % 158), .te = (int64_t)(draw(&seed) % 60),
                                      .th = 40 + (int64_t)(draw(&seed) % 90), .value_bytes = 2 << round % 3};
    struct cb_csr csr = round % 2 ? mixed_matrix(rows, cols, seed)
                                  : random_matrix(rows, cols, (unsigned)(draw(&seed) % 900), seed);
    check_census(&csr, round % 3 ? &wish : &paper, seen);
    cb_csr_release(&csr);
  }
  for (int format = 0; format < CB_TILE_FORMATS; format++) assert_true(seen[format] > 10);
}

/* ---- what the arrays say, read as the kernel reads them */

static const unsigned char *bytes_of(const struct product *product, const char *name) {
  const int number = array_number(product, name);
  assert_true(number >= 0);
  return product->blob.bytes + cb_blob_offset(product->plan, product->region, number);
}

static int half_at(const struct product *product, const char *name, int64_t slot) {
  return bytes_of(product, name)[slot / 2] >> 4 * (slot % 2) & 15;
}

/* A tile as the kernel meets it. */
struct tile {
  struct product *product;
  struct picture *picture;
  int64_t row, col; /* of its first entry */
};

static void see(const struct tile *tile, int64_t row, int64_t column, int64_t slot) {
  if (row < tile->picture->rows && column < tile->picture->cols)
    see_value(tile->picture, row, column, value_at(tile->product, slot));
  else assert_true(value_at(tile->product, slot) == 0);
}

static struct tile tile_of(struct product *product, struct picture *picture, int64_t panel, const char *first_tile,
                           int64_t t) {
  const int64_t column = element(product, "tile_column", constant(product, first_tile, 0) + t);
  return (struct tile){product, picture, SIDE * panel, SIDE * column};
}

static void see_dns(const struct tile *tile, int64_t t) {
  const unsigned char *present =
      array_number(tile->product, "dns_present") < 0 ? NULL : bytes_of(tile->product, "dns_present");
  for (int i = 0; i < SIDE * SIDE; i++) {
    const int row = i % SIDE, column = i / SIDE;
    const int is_present = value_at(tile->product, 256 * t + i) != 0;
    if (present) assert_int_equal(present[2 * (SIDE * t + row) + column / 8] >> column % 8 & 1, is_present);
    see(tile, tile->row + row, tile->col + column, 256 * t + i);
  }
}

static int64_t see_lines(const struct tile *tile, unsigned bits, int64_t first, int are_rows) {
  int64_t slot = first;
  for (int line = 0; line < SIDE; line++) {
    if (!(bits >> line & 1)) continue;
    for (int i = 0; i < SIDE; i++, slot++)
      see(tile, tile->row + (are_rows ? line : i), tile->col + (are_rows ? i : line), slot);
  }
  return slot;
}

static void see_ell(const struct tile *tile, int64_t first, int64_t width, int64_t rows) {
  const int64_t slots = constant(tile->product, "kEllSlots", -1);
  for (int row = 0; row < SIDE; row++)
    for (int64_t k = 0, before = -1; k < width; k++) {
      const int64_t slot = SIDE * (first + k) + row, column = half_at(tile->product, "ell_columns", slot);
      const int pads = column == before || !(rows >> row & 1);
      if (pads) assert_true(value_at(tile->product, slots + slot) == 0);
      else see(tile, tile->row + row, tile->col + column, slots + slot);
      before = column;
    }
}

static void see_coo(const struct tile *tile, int64_t first, int64_t count) {
  const int64_t slots = constant(tile->product, "kCooSlots", -1);
  for (int64_t slot = first; slot < first + count; slot++) {
    const int place = bytes_of(tile->product, "coo_places")[slot];
    see(tile, tile->row + place / SIDE, tile->col + place % SIDE, slots + slot);
  }
}

static void see_csr(const struct tile *tile, int64_t t, int64_t first, int64_t count) {
  const unsigned char *offsets = bytes_of(tile->product, "csr_offsets") + SIDE * t;
  for (int row = 0; row < SIDE; row++)
    for (int64_t k = offsets[row]; k < (row + 1 < SIDE ? offsets[row + 1] : count); k++)
      see(tile, tile->row + row, tile->col + half_at(tile->product, "csr_columns", first + k),
          constant(tile->product, "kCsrSlots", -1) + first + k);
}

/* Of a format whose tiles all have as many slots, a unit need not say where they begin. */
static int64_t first_of(const struct product *product, const char *array, int64_t unit, int64_t otherwise) {
  return array_number(product, array) < 0 ? otherwise : element(product, array, unit);
}

static void see_lines_of_unit(struct product *product, struct picture *picture, int64_t panel, int64_t u, int rows) {
  const char *const tiles = rows ? "dnsrow_tile" : "dnscol_tile", *const lines = rows ? "dnsrow_rows" : "dnscol_columns";
  const char *const start = rows ? "kDnsRowSlots" : "kDnsColSlots", *const first = rows ? "dnsrow_first" : "dnscol_first";
  if (array_number(product, tiles) < 0) return;
  int64_t t = element(product, tiles, u), slot = -1;
  for (; t < element(product, tiles, u + 1); t++) {
    const struct tile tile = tile_of(product, picture, panel, rows ? "kDnsRowTiles" : "kDnsColTiles", t);
    const unsigned bits = (unsigned)element(product, lines, t);
    if (slot < 0)
      slot = constant(product, start, 0) + SIDE * first_of(product, first, u, t * __builtin_popcount(bits));
    slot = see_lines(&tile, bits, slot, rows);
  }
}

static void see_ell_of_unit(struct product *product, struct picture *picture, int64_t panel, int64_t u) {
  if (array_number(product, "ell_tile") < 0) return;
  int64_t t = element(product, "ell_tile", u), first = -1;
  for (; t < element(product, "ell_tile", u + 1); t++) {
    const struct tile tile = tile_of(product, picture, panel, "kEllTiles", t);
    const int64_t width = element(product, "ell_width", t);
    if (first < 0) first = first_of(product, "ell_first", u, t * width);
    see_ell(&tile, first, width, element(product, "ell_rows", t));
    first += width;
  }
}

static void see_hyb_of_unit(struct product *product, struct picture *picture, int64_t panel, int64_t u) {
  if (array_number(product, "hyb_tile") < 0) return;
  int64_t first = element(product, "hyb_first", u), over = element(product, "hyb_first_over", u);
  for (int64_t t = element(product, "hyb_tile", u); t < element(product, "hyb_tile", u + 1); t++) {
    const struct tile tile = tile_of(product, picture, panel, "kHybTiles", t);
    see_ell(&tile, first, element(product, "hyb_width", t), element(product, "hyb_rows", t));
    see_coo(&tile, over, element(product, "hyb_over", t));
    first += element(product, "hyb_width", t);
    over += element(product, "hyb_over", t);
  }
}

static void see_unit(struct product *product, struct picture *picture, int64_t panel, int64_t u) {
  for (int64_t t = array_number(product, "dns_tile") < 0 ? 0 : element(product, "dns_tile", u);
       array_number(product, "dns_tile") >= 0 && t < element(product, "dns_tile", u + 1); t++) {
    const struct tile tile = tile_of(product, picture, panel, "kDnsTiles", t);
    see_dns(&tile, t);
  }
  see_lines_of_unit(product, picture, panel, u, 1);
  see_lines_of_unit(product, picture, panel, u, 0);
  see_ell_of_unit(product, picture, panel, u);
  see_hyb_of_unit(product, picture, panel, u);
  for (int64_t t = array_number(product, "csr_tile") < 0 ? 0 : element(product, "csr_tile", u), first = 0, begin = t;
       array_number(product, "csr_tile") >= 0 && t < element(product, "csr_tile", u + 1); t++) {
    const struct tile tile = tile_of(product, picture, panel, "kCsrTiles", t);
    if (t == begin) first = element(product, "csr_first", u);
    see_csr(&tile, t, first, element(product, "csr_last", t) + 1);
    first += element(product, "csr_last", t) + 1;
  }
  for (int64_t t = array_number(product, "coo_tile") < 0 ? 0 : element(product, "coo_tile", u), first = 0, begin = t;
       array_number(product, "coo_tile") >= 0 && t < element(product, "coo_tile", u + 1); t++) {
    const struct tile tile = tile_of(product, picture, panel, "kCooTiles", t);
    if (t == begin) first = element(product, "coo_first", u);
    see_coo(&tile, first, element(product, "coo_last", t) + 1);
    first += element(product, "coo_last", t) + 1;
  }
}

static int64_t panel_of(const struct product *product, int64_t u) {
  if (array_number(product, "unit_panel") >= 0) return element(product, "unit_panel", u);
  return u / constant(product, "kUnits", 1);
}

/* Every nonzero once, in its place; and of each panel one warp that commits, or one in each of its pieces. */
static void check_arrays(struct product *product) {
  struct cb_diag diag = {0};
  struct picture picture = picture_for(product->csr);
  const int64_t units = strtol(fact(product, "units"), NULL, 10), each = constant(product, "kUnits", 1);
  const int64_t pieces = constant(product, "kSegments", 0);
  assert_ok(cb_plan_check(product->plan, &diag));
  assert_ok(cb_assignment_check(product->plan, product->assignment, &diag));
  for (int64_t u = 0; u < units; u++) {
    const int64_t panel = panel_of(product, u);
    see_unit(product, &picture, panel, u);
    const int64_t together = array_number(product, "units_together") >= 0 ? element(product, "units_together", u)
                             : u % each == 0                              ? each
                                                                         : 0;
    for (int64_t other = u; other < u + together; other++) assert_int_equal(panel_of(product, other), panel);
    if (!together || SIDE * panel >= product->csr->rows) continue;
    if (u / 8 >= pieces || element(product, "carry_first", element(product, "carry_group", u / 8)) == u / 8)
      picture.commits[SIDE * panel]++;
  }
  for (int64_t row = 0; row < product->csr->rows; row += SIDE) assert_int_equal(picture.commits[row], 1);
  check_picture_and_release(&picture, product->csr);
}

/* Returns which formats occur, as bits. */
static int formats_in(const struct product *product) {
  int formats = 0;
  for (int format = 0; format < CB_TILE_FORMATS; format++)
    formats |= (strcmp(fact(product, cb_tile_format_names[format]), "none") != 0) << format;
  return formats;
}

static void arrays_describe_the_matrix(void **state) {
  (void)state;
  static const char *const settings[] = {"", "tile-balance=1", "tile-te=0 tile-th=0", "bake-limit=0 tile-balance=3",
                                         "tile-formats=csr", "tile-coo=0 tile-te=0 tile-th=10 tile-balance=64"};
  int formats = 0, pieces = 0, even = 0, together = 0;
  uint64_t seed = 11;
  for (int round = 0; round < 90; round++) {
    char text[160];
    const int64_t rows = 1 + (int64_t)(draw(&seed) % 200), cols = 1 + (int64_t)(draw(&seed) % (round % 3 ? 200 : 800));
    snprintf(text, sizeof text, "recipe=tile %s", settings[round % 6]);
    struct cb_csr csr = round % 4 == 3 ? random_matrix(rows, cols, (unsigned)(draw(&seed) % 500), seed)
                                       : mixed_matrix(rows, cols, seed);
    struct product product = product_of_matrix(csr, text);
    check_arrays(&product);
    formats |= formats_in(&product);
    pieces += constant(&product, "kSegments", 0) > 0;
    even += array_number(&product, "unit_panel") < 0;
    together += array_number(&product, "units_together") >= 0;
    product_release(&product);
  }
  assert_int_equal(formats, ALL_FORMATS);
  assert_true(pieces > 5 && even > 5 && together > 5);
}

/* ---- stored bytes of each format, which are in tile.c: three panels of one tile each, alike but for their columns */

static int64_t bytes_in(const struct product *product, const char *name) {
  const struct cb_array *array = array_of(product, name);
  return array && array->storage == CB_STORED ? array->count * (int64_t)cb_type_size(array->type) : 0;
}

static void each_format_stores_what_it_should(void **state) {
  (void)state;
  static const struct {
    const char *settings;
    int lengths[SIDE];
    enum cb_tile_format format;
    int64_t slots; /* of a tile */
    const char *array;
    int64_t bytes; /* of a tile, in this array */
  } cases[] = {
      {"", {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3}, CB_TILE_CSR, 80, "csr_offsets", 16},
      {"", {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3}, CB_TILE_CSR, 80, "csr_columns", 40},
      {"", {3, 0, 2, 0, 0, 0, 0, 1}, CB_TILE_COO, 6, "coo_places", 6},
      {"", {3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3}, CB_TILE_ELL, 48, "ell_columns", 24},
      {"", {3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 2}, CB_TILE_ELL, 48, "ell_columns", 24},
      {"tile-th=60", {9, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, CB_TILE_HYB, 39, "ell_columns", 16},
      {"tile-th=60", {9, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, CB_TILE_HYB, 39, "coo_places", 7},
      {"", {16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 15}, CB_TILE_DNS, 256, "dns_present", 32},
      {"", {0, 16, 0, 0, 0, 0, 16}, CB_TILE_DNSROW, 32, "dnsrow_rows", 0},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    char settings[96];
    struct drawn drawn = draw_open(3 * SIDE, 9 * SIDE);
    for (int tile = 0; tile < 3; tile++)
      fill_lengths(&drawn, tile * SIDE, (5 - tile * tile) * SIDE, cases[c].lengths, 5);
    snprintf(settings, sizeof settings, "recipe=tile bake-limit=0 %s", cases[c].settings);
    struct product product = product_of_matrix(draw_close(&drawn), settings);
    assert_int_equal(formats_in(&product), 1 << cases[c].format);
    assert_int_equal(region_of(&product)->value_slots, 3 * cases[c].slots);
    assert_int_equal(bytes_in(&product, cases[c].array), 3 * cases[c].bytes);
    assert_int_equal(bytes_in(&product, "tile_column"), 3);
    check_arrays(&product);
    product_release(&product);
  }
}

static void what_is_alike_is_no_array(void **state) {
  (void)state;
  static const struct words cases[] = {
      {"stencil9,n=16", "", {"add_ell"}, {"add_dns", "add_hyb"}},
      {"block,blocks_r=9,r=16,c=16,blocks_c=9", "", {"add_dnsrow", "index_t(__popc(rows)) * tile"},
       {"add_coo", "dnsrow_first", "present"}},
      {"block,blocks_r=9,r=16,c=16,blocks_c=9", "tile-formats=csr", {"add_csr"}, {"add_dns", "add_ell", "add_coo"}},
      {"block,blocks_r=8,r=16,c=16,blocks_c=9", "", {"// no guard: every panel has 16 rows"}, {"column < kCols"}},
      {"dense,rows=33,cols=39", "", {"column < kCols", "row < kRows"}, {"last_to_arrive"}},
      {"dense,rows=5,cols=1500", "tile-formats=csr", {"last_to_arrive", "units_together"}, {"kUnits"}},
      {"dense,rows=60,cols=256", "tile-formats=csr", {"kUnits"}, {"last_to_arrive", "unit_panel"}},
      {"empty,rows=90,cols=90", "", {"multiply"}, {"x_of_tile", "values"}},
  };
  (void)state;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    char settings[96];
    snprintf(settings, sizeof settings, "recipe=tile %s", cases[c].settings);
    struct product product = product_of(cases[c].matrix, settings);
    check_words(&product, &cases[c]);
    product_release(&product);
  }
}

/* ---- what is deferred */

/* The split's parts are what the census says: COO tiles, and nonzeros behind HYB's width. */
static void deferral_divides_by_formats(void **state) {
  (void)state;
  uint64_t seed = 23;
  int64_t deferred = 0, split = 0;
  for (int round = 0; round < 20; round++) {
    struct cb_tile_wish wish = paper;
    wish.te = round % 2 ? 20 : 0, wish.th = round % 2 ? 100 : 30;
    struct cb_csr csr = mixed_matrix(150, 170, seed + (uint64_t)round);
    struct cb_tile_census before = census_of(&csr, &wish), after = census_of(&csr, &wish);
    unsigned char *part_of = malloc((size_t)csr.nnz);
    assert_non_null(part_of);
    memset(part_of, 7, (size_t)csr.nnz);
    cb_tile_census_defer(&after, &csr, part_of);
    int64_t behind = 0, kept = 0;
    for (int64_t t = 0; t < before.tiles; t++) {
      behind += before.tile[t].format == CB_TILE_COO ? cb_tile_nonzeros(&before.tile[t]) : before.tile[t].over;
      split += before.tile[t].format == CB_TILE_HYB;
    }
    for (int64_t k = 0; k < csr.nnz; k++) {
      assert_in_range(part_of[k], 0, 1);
      deferred += part_of[k];
      behind -= part_of[k];
    }
    assert_int_equal(behind, 0);
    for (int64_t t = 0; t < after.tiles; t++) kept += cb_tile_nonzeros(&after.tile[t]);
    for (int64_t k = 0; k < csr.nnz; k++) kept -= !part_of[k];
    assert_int_equal(kept, 0);
    assert_int_equal(after.tiles, before.tiles - before.tiles_of[CB_TILE_COO]);
    assert_int_equal(after.tiles_of[CB_TILE_ELL], before.tiles_of[CB_TILE_ELL] + before.tiles_of[CB_TILE_HYB]);
    assert_int_equal(after.tiles_of[CB_TILE_COO] + after.tiles_of[CB_TILE_HYB], 0);
    free(part_of);
    cb_tile_census_release(&before);
    cb_tile_census_release(&after);
    cb_csr_release(&csr);
  }
  assert_true(deferred > 100 && split > 20);
}

/* What the split found is what the layout stores, also when the layout alone would decide otherwise: a HYB tile without
 * what is over would be ELL, but so would others of its rows be COO. */
static void the_layout_takes_what_the_split_found(void **state) {
  (void)state;
  for (int round = 0; round < 12; round++) {
    struct cb_csr csr = mixed_matrix(190, 210, 40 + (uint64_t)round);
    struct cb_tile_wish wish = paper;
    wish.th = 50;
    struct cb_tile_census census = census_of(&csr, &wish);
    unsigned char *part_of = malloc((size_t)csr.nnz);
    assert_non_null(part_of);
    cb_tile_census_defer(&census, &csr, part_of);
    free(part_of);
    struct product product = product_of_matrix(csr, "recipe=tile-defer tile-th=50");
    int tiles = 0;
    for (int r = 0; r < product.plan->regions_count; r++) {
      if (strcmp(product.plan->regions[r].layout, "tile")) continue;
      product.region = r;
      tiles++;
      for (int format = 0; format < CB_TILE_FORMATS; format++) {
        char expected[64] = "none";
        if (census.tiles_of[format])
          snprintf(expected, sizeof expected, "%lld %lld", (long long)census.tiles_of[format],
                   (long long)census.nonzeros_of[format]);
        assert_string_equal(fact(&product, cb_tile_format_names[format]), expected);
      }
    }
    assert_int_equal(tiles, 1);
    assert_int_equal(product.plan->regions_count, 2);
    cb_tile_census_release(&census);
    product_release(&product);
  }
}

static void only_sparse_tiles_are_refused(void **state) {
  struct cb_diag diag = {0};
  (void)state;
  assert_int_equal(plan_status_of("diagonal,n=300,cols=9000", "recipe=tile-defer", &diag), CB_OK);
  assert_int_equal(plan_status_of("uniform,n=3000,per_row=4", "recipe=tile-defer", &diag), CB_ERR_UNSUPPORTED);
  assert_non_null(strstr(diag.message, "all tiles have few nonzeros; lower 'tile-coo'"));
  assert_int_equal(plan_status_of("hypersparse,rows=20000000", "recipe=tile", &diag), CB_ERR_UNSUPPORTED);
  assert_non_null(strstr(diag.message, "are too many for panels of rows"));
}

static void in_turn_with_the_remainder(void **state) {
  (void)state;
  struct product product = product_of("band,n=600,half=8,per_row=8", "recipe=tile-defer fuse=on");
  assert_int_equal(product.plan->launches_count, 1);
  assert_int_equal(product.plan->regions_count, 2);
  assert_non_null(strstr(product.plan->line, "(fused in-turn)"));
  product_release(&product);
}

/* Two columns are a byte: panels are packed by several threads, none of which may write to another's bytes. */
static void no_byte_is_shared_by_units(void **state) {
  struct product product = product_of("random,rows=300,cols=300,density=0.2", "recipe=tile tile-balance=4");
  int odd = 0;
  (void)state;
  const int64_t units = array_of(&product, "csr_first")->count, tiles = array_of(&product, "csr_last")->count;
  assert_true(units > 100);
  for (int64_t u = 0; u < units; u++) assert_int_equal(element(&product, "csr_first", u) % 2, 0);
  for (int64_t t = 0; t < tiles; t++) odd += element(&product, "csr_last", t) % 2 == 0;
  assert_true(odd > 100); /* so that units end within a byte */
  product_release(&product);
}

/* ---- threads, memory, values */

static void threads_change_nothing(void **state) {
  (void)state;
  check_threads("block,blocks_r=40,r=8,c=8,blocks_c=40,scattered=3", "recipe=tile");
  check_threads("stencil27,n=9", "recipe=tile-defer");
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  assert_true(check_allocations(mixed_matrix(90, 100, 3), "recipe=tile") > 40);
  assert_true(check_allocations(mixed_matrix(90, 400, 3), "recipe=tile tile-balance=2") > 40);
  assert_true(check_allocations(mixed_matrix(90, 100, 3), "recipe=tile-defer") > 40);
}

static void new_values_equal_a_fresh_pack(void **state) {
  (void)state;
  struct product product = product_of_matrix(mixed_matrix(100, 300, 5), "recipe=tile tile-th=50");
  check_new_values(&product);
  product_release(&product);
}

/* ---- products */

static const char *const executed[][2] = {
    {"empty,rows=300,cols=9", ""},
    {"empty,rows=7,cols=0", ""},
    {"one_row,cols=1", ""},
    {"one_row,cols=300", "tile-balance=1"},
    {"one_column,rows=100", ""},
    {"diagonal,n=256", ""},
    {"dense,rows=37,cols=41", ""},
    {"dense,rows=48,cols=64", ""},
    {"dense,rows=48,cols=64", "tile-dense=1 tile-formats=csr"},
    {"dense,rows=5,cols=1500", "tile-formats=csr"},
    {"dense,rows=40,cols=1500", ""},
    {"random,rows=70,cols=90,density=0.7", ""},
    {"random,rows=64,cols=96,density=0.4", "tile-te=0 tile-th=0"},
    {"random,rows=61,cols=93,density=0.2", "tile-te=0 tile-th=0 tile-coo=0"},
    {"random,rows=61,cols=93,density=0.3", "tile-te=400 tile-coo=0"},
    {"random,rows=61,cols=1200,density=0.05", "tile-balance=2"},
    {"block,blocks_r=40,r=1,c=16,blocks_c=7,per_row=2", "bake-limit=0"},
    {"block,blocks_r=5,r=16,c=1,blocks_c=60,per_row=9", ""},
    {"explicit_zeros,rows=90,cols=90,density=0.8,zeros=0.4", ""},
    {"stencil9,n=17", "tile-balance=1"},
    {"rmat,scale=8", ""},
};

static void products_match_the_oracle(void **state) {
  (void)state;
  verify_kinds(executed, sizeof executed / sizeof *executed, "tile");
}

static void products_with_deferral_match_the_oracle(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"band,n=600,half=8,per_row=8", "fuse=on"},
      {"stencil9,n=17", "fuse=off"},
      {"random,rows=61,cols=93,density=0.2", "tile-te=0 tile-th=0"},
      {"block,blocks_r=9,r=8,c=8,blocks_c=9,scattered=2", "fuse=on"},
  };
  verify_kinds(cases, sizeof cases / sizeof *cases, "tile-defer");
}

/* All formats in one matrix, whatever the last row and column of tiles hold. */
static void mixed_products_match_the_oracle(void **state) {
  (void)state;
  static const char *const settings[] = {"recipe=tile", "recipe=tile tile-balance=2 type=f32",
                                         "recipe=tile tile-th=40 tile-te=5 type=f16-f32 form=ax", "recipe=tile-csr",
                                         "recipe=tile-defer tile-th=40", "recipe=tile-defer fuse=on form=add type=bf16-f32"};
  struct gathered gathered = {0};
  for (int round = 0; round < 24; round++) {
    char name[64];
    snprintf(name, sizeof name, "mixed %d", round);
    struct cb_csr csr = mixed_matrix(97 + 3 * (round % 7), 120 + 17 * (round % 5), 60 + (uint64_t)round);
    for (int64_t k = 0; k < csr.nnz; k++) csr.values[k] = (double)(k % 50 + 1) / 8;
    gather_matrix(&gathered, csr, name, settings[round % 6]);
  }
  verify_gathered(&gathered);
}

static void fixed_values_match_the_oracle(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"dense,rows=37,cols=41,values=ones", "values=fixed"},
      {"random,rows=70,cols=90,density=0.7,values=ones", "values=fixed"},
      {"random,rows=70,cols=90,density=0.7,values=tenths", "values=fixed"},
      {"random,rows=64,cols=96,density=0.3,values=ones", "values=fixed tile-te=0 tile-th=0"},
      {"block,blocks_r=5,r=16,c=1,blocks_c=60,per_row=9,values=tenths", "values=fixed"},
  };
  verify_kinds(cases, sizeof cases / sizeof *cases, "tile");
}

static void guards_matter(void **state) {
  (void)state;
  static const struct change changes[] = {
      {"random,rows=70,cols=90,density=0.7", "form=ax",
       "present >> (2 * i + half) & 1", "(present | 0xffffu) >> (2 * i + half) & 1"},
      {"random,rows=70,cols=90,density=0.7", "form=ax", "column < kCols ?", "column < kCols + 16 ?"},
      {"random,rows=61,cols=93,density=0.3", "form=ax tile-te=400 tile-coo=0",
       "min(k, width - 1)", "min(k, width - 2)"},
      {"random,rows=61,cols=93,density=0.3", "form=ax tile-te=400 tile-coo=0",
       "column != (half == 0 ? before : other)", "column + 16 != (half == 0 ? before : other)"},
      {"random,rows=61,cols=93,density=0.1", "form=ax tile-te=400 tile-coo=0",
       "(rows >> row & 1)", "((rows | 0xffffu) >> row & 1)"},
      {"random,rows=61,cols=93,density=0.3", "form=ax tile-formats=csr", "if (k < last)", "if (k <= last)"},
      {"random,rows=61,cols=93,density=0.3", "form=ax tile-formats=csr",
       "== 15 ? count : next", "== 14 ? count : next"},
      {"uniform,n=200,per_row=7", "form=ax", "i < left && row", "i <= left && row"},
      {"block,blocks_r=40,r=1,c=16,blocks_c=7,per_row=2", "form=ax",
       "half == 0 ? one : two", "half == 1 ? one : two"},
      {"block,blocks_r=5,r=16,c=1,blocks_c=60,per_row=9", "form=ax", "if (column >= 0)", "if (column >= -1)"},
      {"dense,rows=37,cols=41", "form=ax", "row < kRows", "row < kRows + 1"},
      {"dense,rows=60,cols=256", "form=ax tile-formats=csr", "other < units", "other < units - 1"},
      {"dense,rows=5,cols=1500", "form=ax tile-formats=csr", "other < last;", "other < last - 1;"},
      {"stencil9,n=17", "form=ax tile-balance=1", "shuffle_xor(sum, 16)", "zero()"},
  };
  check_changes_are_seen(changes, sizeof changes / sizeof *changes, "tile");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(thresholds_decide),
      cmocka_unit_test(full_columns_have_sixteen_rows),
      cmocka_unit_test(census_is_what_counting_says),
      cmocka_unit_test(arrays_describe_the_matrix),
      cmocka_unit_test(each_format_stores_what_it_should),
      cmocka_unit_test(what_is_alike_is_no_array),
      cmocka_unit_test(deferral_divides_by_formats),
      cmocka_unit_test(the_layout_takes_what_the_split_found),
      cmocka_unit_test(only_sparse_tiles_are_refused),
      cmocka_unit_test(in_turn_with_the_remainder),
      cmocka_unit_test(no_byte_is_shared_by_units),
      cmocka_unit_test(threads_change_nothing),
      cmocka_unit_test(every_allocation_may_fail),
      cmocka_unit_test(new_values_equal_a_fresh_pack),
      cmocka_unit_test(products_match_the_oracle),
      cmocka_unit_test(products_with_deferral_match_the_oracle),
      cmocka_unit_test(mixed_products_match_the_oracle),
      cmocka_unit_test(fixed_values_match_the_oracle),
      cmocka_unit_test(guards_matter),
  };
  return cmocka_run_group_tests_name("tile", tests, NULL, NULL);
}
