// SPDX-License-Identifier: Apache-2.0
/* Rules for lanes and orders, by hand, for a GPU of 100 multiprocessors that reads 4 TB/s, with 40 MB of L2. */
#include "tests/support.h"

#include "analysis/row_lanes.h"

static const struct cb_target target = {.multiprocessors = 100, .l2_bytes = 40000000, .read_gb_per_s = 4000};

static void lanes_give_threads_to_all(void **state) {
  (void)state;
  assert_int_equal(cb_row_lanes(1000, 100000, &target), 32);
  assert_int_equal(cb_row_lanes(30000, 3000000, &target), 4);  /* 120,000 threads, of 102,400 that are asked for */
  assert_int_equal(cb_row_lanes(1000, 3000, &target), 1);      /* two nonzeros for each lane, at least */
  assert_int_equal(cb_row_lanes(200000, 60000000, &target), 4); /* 300 in a row would walk far apart */
  assert_int_equal(cb_row_lanes(0, 0, &target), 1);
  assert_int_equal(cb_tile_row_lanes(1000, 8000, 51200), 4);
  assert_int_equal(cb_tile_row_lanes(100000, 400000, 51200), 1);
  assert_int_equal(cb_tile_row_lanes(100000, 12800000, 51200), 4); /* 128 in a row */
  assert_int_equal(cb_tile_row_lanes(0, 0, 51200), 1);
}

static void registers_bound_batches_and_thread_blocks(void **state) {
  (void)state;
  const struct cb_tile_size three = {3, 3, {0}}, narrow = {1, 2, {0}}, eight = {8, 8, {0}};
  assert_int_equal(cb_tile_batch(three, 27, 9), 3);
  assert_int_equal(cb_tile_batch(three, 36, 2), 2); /* a lane has no more */
  assert_int_equal(cb_tile_batch(narrow, 27, 99), 8);
  assert_int_equal(cb_tile_batch(three, 99, 99), 7); /* 63 values */
  assert_int_equal(cb_tile_batch(eight, 27, 9), 1);
  assert_int_equal(cb_tile_blocks_held(18, 0), 5);
  assert_int_equal(cb_tile_blocks_held(18, 1), 4);
  assert_int_equal(cb_tile_blocks_held(36, 0), 3);
  assert_int_equal(cb_tile_blocks_held(36, 1), 2);
  assert_int_equal(cb_tile_blocks_held(72, 0), 2);
  assert_int_equal(cb_tile_blocks_held(73, 0), 1);
}

/* Two rounds of 600 thread blocks; bytes in L2 at 6 TB/s, of which nearly half counts. */
static void slices_wait_and_stream(void **state) {
  (void)state;
  struct cb_slices_work work = {.blocks = 1200, .mean = 2, .longest = 2, .bytes = 6000000, .nonzeros = 2000000};
  assert_int_equal(cb_slices_ns(&work, &target), 2 * 2300 + 450);
  work.longest = 10; /* of the longest slice in any case */
  assert_int_equal(cb_slices_ns(&work, &target), 6300 + 450);
  work.longest = 2;
  work.sorted = 1; /* a load, and half a nanosecond for 1000 nonzeros */
  assert_int_equal(cb_slices_ns(&work, &target), 2 * 2300 + 450 + 330 + 1000);
  work.varied = 1;
  work.split = 1;
  assert_int_equal(cb_slices_ns(&work, &target), 2 * 2300 + 450 + 330 + 1000 + 120 + 1500);
  work = (struct cb_slices_work){.blocks = 10, .mean = 1, .longest = 1, .bytes = 40000000};
  assert_int_equal(cb_slices_ns(&work, &target), 10000 + 810); /* as much as L2 holds comes at the rate of memory */
}

static void even_rows_have_lanes_of_their_own(void **state) {
  (void)state;
  assert_false(cb_rows_are_many(1000, 100000, &target)); /* 32,000 of 153,600 threads */
  assert_true(cb_rows_are_many(3000, 300000, &target));
  assert_false(cb_rows_are_many(300000, 15 * 300000, &target)); /* short ones */
  assert_true(cb_rows_are_many(1300, 1300 * 600, &target));     /* long ones: a quarter of the threads */
  assert_true(cb_rows_are_even(100, 3000, 40));
  assert_false(cb_rows_are_even(100, 3000, 41));
  assert_int_equal(cb_even_rows_most_lanes(1000000, 10000000, 11, &target), 1);
  assert_int_equal(cb_even_rows_most_lanes(1000, 100000, 11, &target), 32);
  assert_int_equal(cb_even_rows_most_lanes(1000, 10000000, 11, &target), 4); /* 110 MB */
  /* 900 thread blocks in two rounds of three batches; 30 MB, of which 10 are beyond half of L2 */
  assert_int_equal(cb_even_rows_ns(30000000, 900, 6, 3, 2, &target), (30000000 + 4800000) / 4000 + 1320);
  assert_int_equal(cb_even_rows_ns(30000000, 690, 6, 3, 2, &target), (30000000 + 4800000) / 4000 + 660); /* one */
}

static void tiles_wait_for_what_they_load(void **state) {
  (void)state;
  const struct cb_tile_size three = {3, 3, {0}}, eight = {8, 8, {0}};
  /* four lanes, two tiles each in one batch: 5 loads of values and three entries of x a tile */
  assert_int_equal(cb_tiles_ns(three, 1000, 8000, 8, 0, &target), 400 + 250 + 67 + 190 + 2 * (35 + 15));
  /* 391 thread blocks, one of a multiprocessor: four rounds of four batches */
  assert_int_equal(cb_tiles_ns(eight, 100000, 400000, 8, 0, &target), 400 + 4 * (250 + 481 + 4 * 190 + 4 * (224 + 40)));
  /* of both the shorter counts by four fifths */
  assert_int_equal(cb_tiles_ns(three, 1000, 8000, 8, 6000000, &target), 1007 + 800);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lanes_give_threads_to_all),
      cmocka_unit_test(slices_wait_and_stream),
      cmocka_unit_test(even_rows_have_lanes_of_their_own),
      cmocka_unit_test(registers_bound_batches_and_thread_blocks),
      cmocka_unit_test(tiles_wait_for_what_they_load),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
