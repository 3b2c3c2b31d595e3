// SPDX-License-Identifier: Apache-2.0
/* The picture of a matrix, and its nonzeros by diagonal: compared with counting them one by one. */
#include "tests/layouts.h"

#include "analysis/plan/spy.h"
#include "analysis/profile/offsets.h"

/* Every region's nonzeros by cell, from the slot map: it is what packing goes by. */
static int64_t *counted(const struct product *product, const struct cb_spy *spy) {
  struct cb_diag diag = {0};
  const size_t cells = (size_t)spy->height * (size_t)spy->width;
  int64_t *counts = cb_calloc(cells * (size_t)spy->regions + 1, sizeof *counts);
  int32_t *row_of = cb_alloc((size_t)product->csr->nnz + 1, sizeof *row_of);
  assert_non_null(counts);
  assert_non_null(row_of);
  for (int64_t row = 0, k = 0; row < product->csr->rows; row++)
    for (; k < cb_csr_row(product->csr, row + 1); k++) row_of[k] = (int32_t)row;
  for (int region = 0; region < spy->regions; region++) {
    struct cb_slot_map map;
    assert_ok(cb_slot_map_build(&map, product->plan, product->assignment, region, NULL, &diag));
    for (int64_t slot = 0; slot < map.count; slot++) {
      const uint64_t k = cb_slot_get(&map, slot);
      if (k == CB_NO_NONZERO) continue;
      const int64_t row = (int64_t)row_of[k] * spy->height / spy->rows;
      const int64_t col = (int64_t)product->csr->col_idx[k] * spy->width / spy->cols;
      counts[region * (int64_t)cells + row * spy->width + col]++;
    }
    cb_slot_map_release(&map);
  }
  cb_free(row_of);
  return counts;
}

static void check_picture(const char *matrix, const char *settings, int most, int height, int width) {
  struct product product = product_of(matrix, settings);
  struct cb_diag diag = {0};
  struct cb_spy spy;
  assert_ok(cb_spy_count(&spy, product.plan, product.assignment, most, &diag));
  assert_int_equal(spy.height, height);
  assert_int_equal(spy.width, width);
  assert_int_equal(spy.regions, product.plan->regions_count);
  int64_t *expected = counted(&product, &spy), largest = 0, all = 0;
  for (int row = 0; row < height; row++)
    for (int col = 0; col < width; col++) {
      int64_t sum = 0, owner_has = 0, found;
      const int owner = cb_spy_owner(&spy, row, col, &found);
      for (int region = 0; region < spy.regions; region++) {
        const int64_t count = cb_spy_at(&spy, region, row, col);
        assert_int_equal(count, expected[((int64_t)region * height + row) * width + col]);
        sum += count;
        owner_has = count > owner_has ? count : owner_has;
      }
      assert_int_equal(found, sum);
      assert_int_equal(owner < 0 ? 0 : cb_spy_at(&spy, owner, row, col), owner_has);
      assert_int_equal(owner < 0, sum == 0);
      largest = sum > largest ? sum : largest;
      all += sum;
    }
  assert_int_equal(spy.largest, largest);
  assert_int_equal(all, product.csr->nnz);
  cb_free(expected);
  cb_spy_release(&spy);
  product_release(&product);
}

/* Sides have as many cells as entries where these suffice; else the longer one has `most`, and the other its share. */
static void cells_hold_the_nonzeros_of_their_rectangle(void **state) {
  (void)state;
  check_picture("tridiagonal,n=7", "recipe=sell", 10, 7, 7);
  check_picture("uniform,n=100,per_row=5", "recipe=sell", 33, 33, 33);
  check_picture("stencil5,n=13,extra=0.2", "recipe=dia", 40, 40, 40);
  check_picture("random,rows=60,cols=120,density=0.05", "recipe=merge", 40, 20, 40);
  check_picture("random,rows=700,cols=20,density=0.05", "recipe=sell", 40, 40, 10);
  check_picture("random,rows=700,cols=3,density=0.3", "recipe=sell", 40, 40, 3);
  check_picture("fe3,n=4", "recipe=fill fill-rate=40", 50, 50, 50);
}

static void matrices_without_nonzeros_have_empty_pictures(void **state) {
  (void)state;
  check_picture("empty,rows=3", "recipe=sell", 10, 3, 3);
  check_picture("empty,rows=0", "recipe=sell", 10, 0, 0);
}

static void larger_cells_hold_what_is_in_them(void **state) {
  (void)state;
  struct product product = product_of("stencil5,n=13,extra=0.2", "recipe=dia");
  struct cb_diag diag = {0};
  struct cb_spy spy, reduced;
  assert_ok(cb_spy_count(&spy, product.plan, product.assignment, 50, &diag));
  assert_ok(cb_spy_reduce(&reduced, &spy, 4, &diag));
  assert_int_equal(reduced.height, 13);
  assert_int_equal(reduced.width, 13);
  int64_t largest = 0;
  for (int row = 0; row < 13; row++)
    for (int col = 0; col < 13; col++) {
      int64_t all = 0;
      for (int region = 0; region < spy.regions; region++) {
        int64_t sum = 0;
        for (int i = 4 * row; i < 4 * row + 4 && i < 50; i++)
          for (int j = 4 * col; j < 4 * col + 4 && j < 50; j++) sum += cb_spy_at(&spy, region, i, j);
        assert_int_equal(cb_spy_at(&reduced, region, row, col), sum);
        all += sum;
      }
      largest = all > largest ? all : largest;
    }
  assert_int_equal(reduced.largest, largest);
  cb_spy_release(&spy);
  cb_spy_release(&reduced);
  product_release(&product);
}

static void offsets_have_their_bins(void **state) {
  static const struct {
    int bin;
    int64_t least, most;
  } cases[] = {{31, 0, 0},   {32, 1, 1},   {30, -1, -1},
               {33, 2, 3},   {29, -3, -2}, {62, 1073741824, 2147483647},
               {0, -2147483647, -1073741824}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int64_t least, most;
    cb_offsets_of_bin(cases[i].bin, &least, &most);
    assert_int_equal(least, cases[i].least);
    assert_int_equal(most, cases[i].most);
  }
  struct cb_csr csr = matrix_of("random,rows=90,cols=140,density=0.2");
  int64_t bins[CB_OFFSETS_BINS], expected[CB_OFFSETS_BINS] = {0};
  cb_offsets_count(bins, &csr);
  for (int64_t row = 0; row < csr.rows; row++)
    for (int64_t k = cb_csr_row(&csr, row); k < cb_csr_row(&csr, row + 1); k++)
      for (int bin = 0; bin < CB_OFFSETS_BINS; bin++) {
        int64_t least, most;
        cb_offsets_of_bin(bin, &least, &most);
        expected[bin] += csr.col_idx[k] - row >= least && csr.col_idx[k] - row <= most;
      }
  assert_memory_equal(bins, expected, sizeof bins);
  cb_csr_release(&csr);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cells_hold_the_nonzeros_of_their_rectangle),
      cmocka_unit_test(matrices_without_nonzeros_have_empty_pictures),
      cmocka_unit_test(larger_cells_hold_what_is_in_them),
      cmocka_unit_test(offsets_have_their_bins),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
