// SPDX-License-Identifier: Apache-2.0
/* One time for all multiprocessors: made-up readings of clocks, of which the true times are known; and that GPUs'
 * compilers take kernels that read them. */
#include "tests/nvrtc_support.h"
#include "tests/random.h"
#include "tests/support.h"

#include "runtime/measure/timeline.h"

#include <math.h>

/* A GPU: cycles of 0.6 ns from another start on each multiprocessor, and a global timer of steps of `step` ns. */
struct gpu {
  double step;
  double cycle_ns;
};

enum { MULTIPROCESSORS = 7, WARPS = 2000 };

static uint64_t cycle_at(const struct gpu *gpu, int multiprocessor, double ns) {
  return (uint64_t)(ns / gpu->cycle_ns) + 1000003u * (uint64_t)(multiprocessor * multiprocessor);
}

static uint64_t timer_at(const struct gpu *gpu, double ns) {
  return (uint64_t)(floor(ns / gpu->step) * gpu->step);
}

/* Warps that begin and end at random between `start` and 40 us later. */
static void read_clocks(struct cb_warp_clock *clocks, struct cb_span *truth, const struct gpu *gpu, double start,
                        uint64_t *seed) {
  for (int w = 0; w < WARPS; w++) {
    const double begin = start + (double)(draw(seed) % 40000), length = 100 + (double)(draw(seed) % 3000);
    const int where = (int)(draw(seed) % MULTIPROCESSORS);
    truth[w] = (struct cb_span){begin, begin + length};
    clocks[w] = (struct cb_warp_clock){timer_at(gpu, begin), cycle_at(gpu, where, begin), timer_at(gpu, begin + length),
                                       cycle_at(gpu, where, begin + length), (uint64_t)where + 100};
  }
}

/* The greatest error, once both begin at the same time. */
static double worst_of(const struct cb_span *spans, const struct cb_span *truth) {
  double worst = 0;
  const double shift = spans[0].begin - truth[0].begin;
  for (int w = 0; w < WARPS; w++) {
    worst = fmax(worst, fabs(spans[w].begin - truth[w].begin - shift));
    worst = fmax(worst, fabs(spans[w].end - truth[w].end - shift));
  }
  return worst;
}

static double worst_with_steps(double step, double cycle_ns) {
  const struct gpu gpu = {step, 0.6};
  static struct cb_warp_clock clocks[WARPS];
  static struct cb_span spans[WARPS], truth[WARPS];
  struct cb_pace pace = {0};
  struct cb_diag diag = {0};
  uint64_t seed = 7;
  for (int run = 0; run < 5; run++) { /* a millisecond apart */
    read_clocks(clocks, truth, &gpu, 1e9 + 1e6 * run, &seed);
    cb_pace_note(&pace, clocks, WARPS);
  }
  if (cycle_ns < 0) assert_float_equal(cb_pace_ns(&pace), 0.6, 0.6 * 2 * step / 4e6 + 1e-9);
  assert_ok(cb_timeline_place(spans, clocks, WARPS, cycle_ns < 0 ? cb_pace_ns(&pace) : cycle_ns, &diag));
  return worst_of(spans, truth);
}

/* The global timer alone is wrong by its steps; cycles laid onto it are far better, whatever the steps. */
static void cycles_make_coarse_steps_fine(void **state) {
  (void)state;
  assert_true(worst_with_steps(1024, 0) > 900);
  assert_true(worst_with_steps(1024, -1) < 40);
  assert_true(worst_with_steps(32, -1) < 10);
  assert_true(worst_with_steps(1, -1) < 3);
}

/* One reading tells no pace, nor do readings within a step, nor those of another multiprocessor. */
static void a_pace_needs_readings_that_are_apart(void **state) {
  const struct cb_warp_clock within = {1000, 10, 1000, 500, 3}, later = {5000, 3000, 6000, 4000, 3};
  const struct cb_warp_clock other = {5000, 1, 9000, 2, 4}, back = {5000, 10, 4000, 500, 3};
  struct cb_pace pace = {0};
  (void)state;
  assert_true(cb_pace_ns(&pace) == 0);
  cb_pace_note(&pace, &within, 1);
  assert_true(cb_pace_ns(&pace) == 0);
  cb_pace_note(&pace, &other, 1);
  assert_true(cb_pace_ns(&pace) == 0);
  cb_pace_note(&pace, &later, 1);
  assert_float_equal(cb_pace_ns(&pace), 5000.0 / 3990, 1e-12);
  pace = (struct cb_pace){0};
  cb_pace_note(&pace, &back, 1);
  assert_true(cb_pace_ns(&pace) == 0);
}

/* Spans count from the first reading, also where a multiprocessor's cycles are all before another's. */
static void spans_begin_with_the_first_reading(void **state) {
  const struct cb_warp_clock clocks[] = {{2005, 900000, 2025, 900020, 0}, {2000, 77, 2010, 87, 1}};
  struct cb_span spans[2];
  struct cb_diag diag = {0};
  (void)state;
  for (int by_cycles = 0; by_cycles < 2; by_cycles++) {
    assert_ok(cb_timeline_place(spans, clocks, 2, by_cycles, &diag));
    assert_true(spans[1].begin == 0 && spans[1].end == 10 && spans[0].begin == 5 && spans[0].end == 25);
  }
  assert_ok(cb_timeline_place(spans, clocks, 0, 1, &diag));
}

/* What was never written, or cannot be, is no reading. */
static void nonsense_is_refused(void **state) {
  struct cb_warp_clock clocks[2] = {{2000, 77, 2010, 87, 1}, {2005, 90, 2025, 110, 0}};
  const struct cb_warp_clock bad[] = {
      {2005, 90, 2004, 110, 0}, {2005, 90, 2025, 89, 0}, {2005, 90, 2025, 110, UINT64_MAX}};
  struct cb_span spans[2];
  struct cb_diag diag = {0};
  (void)state;
  for (int i = 0; i < 3; i++) {
    clocks[1] = bad[i];
    assert_int_equal(cb_timeline_place(spans, clocks, 2, 1, &diag), CB_ERR_DEVICE);
    assert_string_equal(diag.message, "warp 1 has no clock: the kernel did not run as it was compiled");
  }
}

/* ---- how a launch fills the GPU */

static void expect_launch(const double (*spans)[2], int count, struct cb_launch_time wanted) {
  double starts[16], ends[16];
  for (int i = 0; i < count; i++) {
    starts[i] = spans[i][0];
    ends[i] = spans[i][1];
  }
  const struct cb_launch_time time = cb_launch_time_of(starts, ends, count);
  assert_int_equal(time.at_once, wanted.at_once);
  assert_float_equal(time.us, wanted.us, 1e-12);
  assert_float_equal(time.tail_us, wanted.tail_us, 1e-12);
}

/* A long one beside short ones; two waves; a last one that starts late; one alone, which has no tail. */
static void tails_begin_where_half_are_left(void **state) {
  static const double slow[][2] = {{1, 2}, {1, 16}, {1.5, 2}, {1, 3}}, waves[][2] = {{0, 2}, {2, 4}, {0, 2}, {2, 5}},
                      late[][2] = {{0, 4}, {0, 4}, {0, 4}, {0, 3}, {3.5, 9}}, alone[][2] = {{3, 5}},
                      apart[][2] = {{0, 4}, {0, 4}, {0, 4}, {0, 4}, {6, 9}};
  (void)state;
  expect_launch(slow, 4, (struct cb_launch_time){15, 4, 14});
  expect_launch(waves, 4, (struct cb_launch_time){5, 2, 1});
  expect_launch(late, 5, (struct cb_launch_time){9, 4, 5});
  expect_launch(apart, 5, (struct cb_launch_time){9, 4, 3});
  expect_launch(alone, 1, (struct cb_launch_time){2, 1, 0});
}

/* ---- the text that reads the clocks */

static int most_registers(const struct cb_cubin_stats *stats) {
  int most = 0;
  for (int k = 0; k < stats->count; k++) most = stats->kernels[k].registers > most ? stats->kernels[k].registers : most;
  return most;
}

/* Without warnings and spills, and with few registers more: what is read is not kept while the kernel works. */
static void clocked_kernels_compile(void **state) {
  static const char *const cases[][2] = {{"uniform,n=900,per_row=9", "recipe=sell"},
                                         {"rmat,scale=9", "recipe=merge"},
                                         {"stencil5,n=40", "recipe=dia form=axpby type=f32"}};
  enum { MORE = 12 };
  (void)state;
  struct cb_nvrtc *nvrtc = open_nvrtc();
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct product product = product_of(cases[c][0], cases[c][1]);
    const struct cb_label label = {"test", "test", cb_csr_pattern_hash(product.csr)};
    struct cb_source clocked;
    struct cb_diag diag = {0};
    assert_ok(cb_source_emit_clocked(&clocked, product.plan, &label, &diag));
    for (int a = 0; arches[a]; a++) {
      struct cb_cubin_stats with = compile_strictly(nvrtc, clocked.text, arches[a], cases[c][1]);
      struct cb_cubin_stats without = compile_strictly(nvrtc, product.source.text, arches[a], cases[c][1]);
      assert_int_equal(with.count, without.count);
      assert_in_range(most_registers(&with), most_registers(&without), most_registers(&without) + MORE);
      cb_cubin_stats_release(&with);
      cb_cubin_stats_release(&without);
    }
    cb_source_release(&clocked);
    product_release(&product);
  }
  cb_nvrtc_close(nvrtc);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cycles_make_coarse_steps_fine),      cmocka_unit_test(a_pace_needs_readings_that_are_apart),
      cmocka_unit_test(spans_begin_with_the_first_reading), cmocka_unit_test(nonsense_is_refused),
      cmocka_unit_test(tails_begin_where_half_are_left),    cmocka_unit_test(clocked_kernels_compile),
  };
  return cmocka_run_group_tests_name("timeline", tests, NULL, NULL);
}
