// SPDX-License-Identifier: Apache-2.0
/* The layout of phases and its split: which columns and rows are split off and what is refused, that every nonzero
 * has a slot and that no two segments of a phase share a sum, the same bytes for any number of threads, every
 * allocation failing once. Products against the oracle: test_kernels_shapes and test_kernels_random. */
#include "tests/layouts.h"

#include "analysis/layouts/phases/frequent.h"
#include "analysis/layout.h"
#include "base/integers.h"
#include "base/memory.h"

/* Its region is the last one. */
static struct product phases_of(const char *matrix, const char *settings) {
  char text[256];
  snprintf(text, sizeof text, "recipe=phases %s", settings);
  struct product product = product_of(matrix, text);
  product.region = product.plan->regions_count - 1;
  assert_string_equal(region_of(&product)->layout, "phases");
  return product;
}

/* ---- the split */

static enum cb_status choose(struct cb_frequent *frequent, const struct cb_csr *csr, const char *settings,
                             struct cb_diag *message) {
  struct cb_diag diag = {0};
  struct cb_options options;
  struct cb_target target;
  set_options(&options, settings);
  assert_ok(cb_target_find(&target, "sm_90", &diag));
  return cb_frequent_choose(frequent, csr, &target, &options, message);
}

/* As many columns as asked for, none with fewer nonzeros than one left out; ties by number. */
static void takes_the_most_frequent(void **state) {
  (void)state;
  static const int64_t asked[] = {1, 2, 17, 300, 1000, 1700};
  struct cb_csr csr = matrix_of("rmat,scale=11,edge_factor=8");
  struct cb_arena arena = {0};
  struct cb_column_counts of_columns = {0};
  assert_true(cb_count_columns(&of_columns, &arena, &csr));
  const uint32_t *counts = of_columns.of;
  for (size_t a = 0; a < sizeof asked / sizeof *asked; a++) {
    struct cb_diag diag = {0};
    struct cb_frequent frequent;
    char settings[64];
    snprintf(settings, sizeof settings, "phase-columns=%lld", (long long)asked[a]);
    assert_ok(choose(&frequent, &csr, settings, &diag));
    int64_t kept = 0, least = INT64_MAX, last_tie = -1;
    for (int64_t column = 0; column < csr.cols; column++) {
      kept += frequent.column[column];
      if (frequent.column[column] && counts[column] < least) least = counts[column];
    }
    for (int64_t column = 0; column < csr.cols; column++)
      if (frequent.column[column] && counts[column] == least) last_tie = column;
    for (int64_t column = 0; column < csr.cols; column++)
      if (!frequent.column[column])
        assert_true(counts[column] < least || (counts[column] == least && column > last_tie));
    int64_t occupied = 0;
    for (int64_t column = 0; column < csr.cols; column++) occupied += counts[column] > 0;
    assert_int_equal(kept, asked[a] < occupied ? asked[a] : occupied);
    assert_int_equal(kept, frequent.columns);
    cb_frequent_release(&frequent);
  }
  cb_arena_release(&arena);
  cb_csr_release(&csr);
}

/* Rows with enough nonzeros in those columns; the sums add up. */
static void takes_rows_with_several(void **state) {
  (void)state;
  struct cb_csr csr = matrix_of("rmat,scale=11,edge_factor=8");
  for (int least = 1; least <= 40; least += 13) {
    struct cb_diag diag = {0};
    struct cb_frequent frequent;
    char settings[64];
    int64_t rows = 0, nonzeros = 0;
    snprintf(settings, sizeof settings, "phase-columns=200 phase-row=%d", least);
    assert_ok(choose(&frequent, &csr, settings, &diag));
    for (int64_t row = 0; row < csr.rows; row++) {
      int count = 0;
      for (int64_t k = cb_csr_row(&csr, row); k < cb_csr_row(&csr, row + 1); k++)
        count += frequent.column[csr.col_idx[k]];
      assert_int_equal(frequent.row[row], count >= least);
      rows += count >= least;
      nonzeros += count >= least ? count : 0;
    }
    assert_int_equal(rows, frequent.rows);
    assert_int_equal(nonzeros, frequent.nonzeros);
    cb_frequent_release(&frequent);
  }
  cb_csr_release(&csr);
}

static void refuses_where_nothing_is_gained(void **state) {
  (void)state;
  static const char *const matrices[][2] = { /* and why */
      {"stencil7,n=12", "no column has the 46 nonzeros that repay"},
      {"rmat,scale=12,edge_factor=8", "take less than half of the 29056 entries of x"},
      {"uniform,n=3000,per_row=40", "take less than half of the 29056 entries of x"},
      {"empty,rows=20,cols=9", "no column has the 46 nonzeros that repay"}};
  for (size_t m = 0; m < sizeof matrices / sizeof *matrices; m++) {
    struct cb_csr csr = matrix_of(matrices[m][0]);
    struct cb_diag diag = {0};
    struct cb_frequent frequent;
    assert_int_equal(choose(&frequent, &csr, "recipe=phases", &diag), CB_ERR_UNSUPPORTED);
    assert_non_null(strstr(diag.message, "--phase-columns"));
    if (!strstr(diag.message, matrices[m][1])) fail_msg("'%s' lacks '%s'", diag.message, matrices[m][1]);
    cb_frequent_release(&frequent);
    cb_csr_release(&csr);
  }
}

/* ---- slices */

static void every_nonzero_has_one_slot(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  for (unsigned per_mille = 1; per_mille <= 1000; per_mille += 111)
    for (int columns = 1; columns <= 81; columns += 20)
      for (int set = 32; set <= 64; set += 16) {
        char settings[128];
        snprintf(settings, sizeof settings, "recipe=phases phase-columns=%d phase-set=%d phase-row=1 phase-threads=256",
                 columns, set);
        struct product product = product_of_matrix(random_matrix(83, 90, per_mille, per_mille), settings);
        assert_ok(cb_plan_check(product.plan, &diag));
        assert_ok(cb_assignment_check(product.plan, product.assignment, &diag));
        product_release(&product);
      }
}

/* A long row is cut into segments, each with a sum of its own: into fewer where entries of x leave little room. */
static void sums_and_entries_of_x_fit_into_shared_memory(void **state) {
  (void)state;
  struct product product = phases_of("dense,rows=4,cols=29010", "phase-columns=29010 phase-row=1 phase-threads=256");
  const int64_t set = constant(&product, "kSet", -1), sums = constant(&product, "kSums", -1);
  const int64_t room = product.target.shared_per_block / (int64_t)sizeof(double);
  assert_true(set >= 29010 && sums > 1);
  assert_true(set + 29010 / 512 > room); /* with segments as short as elsewhere they would not */
  assert_true(set + sums <= room);
  product_release(&product);
}

/* Warps add to sums of one block side by side, so within a phase a sum may occur once; all of a block are in range. */
static void no_sum_twice_in_a_phase(void **state) {
  (void)state;
  const char *settings = "phase-columns=3000 phase-set=700 bake-limit=0";
  struct product product = phases_of("rmat,scale=13,edge_factor=16", settings);
  const int64_t blocks = region_of(&product)->blocks;
  const int64_t sets = constant(&product, "kSets", -1);
  const int64_t slices = constant(&product, "kSlices", -1), most = constant(&product, "kSums", -1);
  unsigned char *met = calloc((size_t)most, 1);
  int64_t nonzeros = 0;
  assert_true(sets > 3 && blocks > 4);
  assert_int_equal(element(&product, "first_slice", blocks * sets), slices);
  for (int64_t block = 0; block < blocks; block++)
    for (int64_t set = 0; set < sets; set++) {
      const int64_t sums = element(&product, "first_sum", block + 1) - element(&product, "first_sum", block);
      assert_true(sums <= most);
      memset(met, 0, (size_t)most);
      for (int64_t slice = element(&product, "first_slice", block * sets + set);
           slice < element(&product, "first_slice", block * sets + set + 1); slice++)
        for (int64_t i = 0; i < 32 >> element(&product, "lanes_log2", slice); i++) {
          const int64_t place = element(&product, "first_local_row", slice) + i;
          const int64_t count = element(&product, "local_row_count", place),
                        sum = element(&product, "local_row_sum", place);
          nonzeros += count;
          if (!count) continue;
          assert_true(sum < sums);
          assert_false(met[sum]);
          met[sum] = 1;
        }
    }
  assert_int_equal(nonzeros, region_of(&product)->nonzeros);
  free(met);
  product_release(&product);
}

/* Segments of one length lie together, blocks get equal shares, and a long row has several sums. */
static void pads_and_shares_evenly(void **state) {
  (void)state;
  struct product product = phases_of("rmat,scale=17,edge_factor=16", "phase-columns=16000 phase-set=8000 bake-limit=0");
  const struct cb_region *region = region_of(&product);
  const int64_t sets = constant(&product, "kSets", -1);
  int64_t most = 0, all = 0, longest = 0;
  assert_true(region->value_slots * 100 < region->nonzeros * 125);
  for (int64_t block = 0; block < region->blocks; block++) {
    const int64_t end = element(&product, "first_slice", (block + 1) * sets);
    int64_t own = 0;
    for (int64_t slice = element(&product, "first_slice", block * sets); slice < end; slice++)
      for (int64_t i = 0; i < 32 >> element(&product, "lanes_log2", slice); i++)
        own += element(&product, "local_row_count", element(&product, "first_local_row", slice) + i);
    most = own > most ? own : most;
    all += own;
  }
  assert_int_equal(all, region->nonzeros);
  for (int64_t row = 0; row < product.csr->rows; row++)
    longest = cb_larger(longest, cb_csr_row_length(product.csr, row));
  assert_true(most < all / region->blocks * 5 / 4 + longest);
  product_release(&product);
  struct product longer = phases_of("long_row,rows=500,cols=4000,per_row=4,long_rows=3,long_length=3500",
                                    "phase-columns=4000 phase-row=1 bake-limit=0");
  assert_non_null(strstr(longer.source.text, "sum_row(arrays, first + more) == kRows"));
  product_release(&longer);
}

static void threads_change_nothing(void **state) {
  (void)state;
  check_threads("rmat,scale=13,edge_factor=8", "recipe=phases phase-columns=900 phase-set=100");
  check_threads("rmat,scale=13,edge_factor=8",
                "recipe=phases phase-columns=3000 type=f32 phase-row=1 phase-blocks=1");
}

static void every_allocation_may_fail(void **state) {
  static const char settings[] = "recipe=phases phase-columns=60 phase-set=32";
  (void)state;
  assert_true(check_allocations(matrix_of("random,rows=61,cols=90,density=0.2"), settings) > 40);
}

static void columns_are_made_by_packing(void **state) {
  (void)state;
  static const struct late_array cases[] = {
      {"rmat,scale=12", "recipe=phases phase-columns=200 phase-set=64 phase-row=1", "entry_place", 1, CB_STORED},
  };
  check_late_arrays(cases, sizeof cases / sizeof *cases);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(takes_the_most_frequent),
      cmocka_unit_test(takes_rows_with_several),
      cmocka_unit_test(refuses_where_nothing_is_gained),
      cmocka_unit_test(every_nonzero_has_one_slot),
      cmocka_unit_test(sums_and_entries_of_x_fit_into_shared_memory),
      cmocka_unit_test(no_sum_twice_in_a_phase),
      cmocka_unit_test(pads_and_shares_evenly),
      cmocka_unit_test(threads_change_nothing),
      cmocka_unit_test(columns_are_made_by_packing),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests_name("phases", tests, NULL, NULL);
}
