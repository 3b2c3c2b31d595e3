// SPDX-License-Identifier: Apache-2.0
/* Thread blocks by the clock, on the fake GPU, whose clock counts the loads, stores and meetings of a warp's busiest
 * lane: a slow row is found, several launches are told apart, every kind of kernel keeps its bits, and failures leave
 * nothing. */
#include "tests/fake_driver.h"
#include "tests/layouts.h"

#include "codegen/source.h"
#include "runtime/measure/clocked.h"

static struct fake_control *fake;

static struct cb_bench *open_bench(void) {
  struct cb_bench_settings settings;
  struct cb_bench *bench = NULL;
  struct cb_diag diag = {0};
  cb_bench_settings_default(&settings);
  settings.baselines = settings.ceilings = 0;
  assert_ok(cb_bench_open(&bench, &settings, &diag));
  return bench;
}

static enum cb_status measure(struct cb_clocked *clocked, const struct cb_bench *bench, const struct product *product,
                              struct cb_diag *diag) {
  const struct cb_label label = {"test", "test", cb_csr_pattern_hash(product->csr)};
  const struct cb_clocked_request request = {.bench = bench,
                                             .csr = product->csr,
                                             .plan = product->plan,
                                             .assignment = product->assignment,
                                             .label = &label,
                                             .runs = 3};
  return cb_clocked_measure(clocked, &request, diag);
}

static int64_t slowest(const struct cb_clocked *clocked) {
  int64_t best = 0;
  for (int64_t b = 1; b < clocked->count; b++)
    if (clocked->blocks[b].us > clocked->blocks[best].us) best = b;
  return best;
}

/* A launch takes so long by the fake GPU's events that a batch has two products: there is little to wait for. */
static void take_long(void *user, const struct fake_launch *launch) {
  (void)user, (void)launch;
  fake->clock_ns += 30000000;
}

static void open_fake(void) {
  fake = fake_open();
  assert_non_null(fake);
  fake->hook = take_long;
}

static const char sell[] = "form=ax recipe=sell sell-lanes=1 sell-vector=1 sell-sort=off sell-vary=off";
static const char long_row[] = "long_row,rows=1000,cols=9000,per_row=6,long_rows=1,long_length=5000";

/* Row 500 has 5000 nonzeros, of each of which its lane loads the offset, the value and x; others have six. */
static void the_thread_block_of_a_slow_row_is_the_slowest(void **state) {
  struct cb_clocked clocked;
  struct cb_diag diag = {0};
  (void)state;
  open_fake();
  struct product product = product_of(long_row, sell);
  struct cb_bench *bench = open_bench();
  assert_ok(measure(&clocked, bench, &product, &diag));
  assert_int_equal(clocked.count, 4);
  assert_int_equal(clocked.runs, 3);
  assert_int_equal(slowest(&clocked), 1);
  assert_in_range((int64_t)(1000 * clocked.blocks[1].us), 15000, 15010);
  for (int64_t b = 0; b < 4; b++)
    if (b != 1) assert_in_range((int64_t)(1000 * clocked.blocks[b].us), 18, 40);
  assert_true(clocked.plain_us > 4 && clocked.clocked_us > 4);
  assert_int_equal(clocked.plain_registers, 40);
  assert_true(clocked.launches[0].us >= clocked.blocks[1].us && clocked.launches[0].us < 15.2);
  assert_in_range(clocked.launches[0].at_once, 1, 4);
  cb_clocked_release(&clocked);
  cb_bench_close(bench);
  product_release(&product);
  assert_true(fake_is_clean(fake));
}

/* More thread blocks than the fake GPU's places: later ones start when earlier ones have ended. */
static void thread_blocks_start_in_waves(void **state) {
  struct cb_clocked clocked;
  struct cb_diag diag = {0};
  int64_t late = 0;
  (void)state;
  open_fake();
  struct product product = product_of("band,n=5000,half=40,per_row=9", sell);
  struct cb_bench *bench = open_bench();
  assert_ok(measure(&clocked, bench, &product, &diag));
  const struct cb_launch_time *launch = &clocked.launches[0];
  assert_int_equal(clocked.count, 20);
  assert_in_range(launch->at_once, 1, 8);
  for (int64_t b = 0; b < 20; b++) late += clocked.blocks[b].start_us >= 0.9 * clocked.blocks[slowest(&clocked)].us;
  assert_true(late >= 10);
  assert_true(launch->us > 2 * clocked.blocks[0].us && launch->tail_us >= 0 && launch->tail_us < launch->us);
  cb_clocked_release(&clocked);
  cb_bench_close(bench);
  product_release(&product);
  assert_true(fake_is_clean(fake));
}

/* Carries, launches before and behind, regions beside each other and in turn, forms: with clocks the bits are those
 * without (cb_clocked_measure compares them), and each launch has the thread blocks that the plan says. */
static void kernels_of_all_kinds_keep_their_bits(void **state) {
  static const char *const cases[][2] = {
      {"long_row,rows=700,cols=900,per_row=4,long_rows=2,long_length=800", "recipe=merge merge-piece=512 form=add"},
      {"powerlaw,rows=900,cols=900,max=300", "recipe=phases phase-columns=100 phase-row=1 type=f32"},
      {"powerlaw,rows=900,cols=900,max=300", "recipe=cb th1=20 th2=60 unit-budget=400"},
  };
  (void)state;
  open_fake();
  struct cb_bench *bench = open_bench();
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct cb_clocked clocked;
    struct cb_diag diag = {0};
    struct product product = product_of(cases[c][0], cases[c][1]);
    int64_t blocks = 0, launches = 0;
    if (measure(&clocked, bench, &product, &diag)) fail_msg("%s: %s", cases[c][1], diag.message);
    for (int l = 0; l < product.plan->launches_count; l++) {
      const struct cb_launch *launch = &product.plan->launches[l];
      const int multiplies = launch->regions && !launch->body && !launch->prepares;
      blocks += multiplies ? launch->blocks : 0;
      launches += multiplies;
      assert_true((clocked.launches[l].us > 0) == multiplies);
    }
    assert_true(launches > 0);
    assert_int_equal(clocked.count, blocks);
    for (int64_t b = 0; b < blocks; b++) assert_true(clocked.blocks[b].us > 0 && clocked.blocks[b].start_us >= 0);
    cb_clocked_release(&clocked);
    product_release(&product);
  }
  cb_bench_close(bench);
  assert_true(fake_is_clean(fake));
}

/* The launch that lays entries of x side by side has clocks, too, before those of the thread blocks, which have about
 * as much to do, and far more than it. */
static void clocks_of_other_launches_are_passed_over(void **state) {
  struct cb_clocked clocked;
  struct cb_diag diag = {0};
  (void)state;
  open_fake();
  struct product product =
      product_of("random,rows=600,per_row=150", "recipe=hot hot-columns=300 hot-share=1 hot-gather=on hot-threads=256");
  struct cb_bench *bench = open_bench();
  assert_true(product.plan->launches_count == 2 && product.plan->launches[0].prepares);
  assert_ok(measure(&clocked, bench, &product, &diag));
  const double most = clocked.blocks[slowest(&clocked)].us;
  assert_true(clocked.count > 3 && most > 0.03);
  for (int64_t b = 0; b < clocked.count; b++)
    if (clocked.blocks[b].us < 0.8 * most)
      fail_msg("thread block %d takes %g us, another %g", (int)b, clocked.blocks[b].us, most);
  cb_clocked_release(&clocked);
  cb_bench_close(bench);
  product_release(&product);
  assert_true(fake_is_clean(fake));
}

/* One line of each text; what only the clocked one has is taken out of its line. Returns whether they are the same. */
static int same_line(const char *plain, const char *with) {
  static const char *const more[] = {", WarpClock *clocks", ", nullptr"};
  char line[1024];
  snprintf(line, sizeof line, "%.*s", (int)strcspn(with, "\n"), with);
  for (int m = 0; m < 2; m++) {
    char *const at = strstr(line, more[m]);
    if (at) memmove(at, at + strlen(more[m]), strlen(at + strlen(more[m])) + 1);
  }
  return strlen(line) == strcspn(plain, "\n") && !strncmp(line, plain, strlen(line));
}

/* The clocked text is the plain one with a parameter and a few lines more; the plain one has no word of them. */
static void clocks_add_lines_and_change_none(void **state) {
  struct cb_source clocked;
  struct cb_diag diag = {0};
  int64_t added = 0;
  (void)state;
  struct product product = product_of(long_row, sell);
  const struct cb_label label = {"test", "test", cb_csr_pattern_hash(product.csr)};
  assert_ok(cb_source_emit_clocked(&clocked, product.plan, &label, &diag));
  assert_null(strstr(product.source.text, "clock"));
  const char *plain = product.source.text + product.source.body, *with = clocked.text + clocked.body;
  while (*with) {
    const size_t length = strcspn(with, "\n") + 1;
    if (same_line(plain, with)) {
      plain += strcspn(plain, "\n") + 1;
    } else {
      if (!memmem(with, length, "clock", 5)) fail_msg("'%.*s' is not in the plain text", (int)length - 1, with);
      added++;
    }
    with += length;
  }
  assert_string_equal(plain, "");
  assert_int_equal(added, 4);
  assert_int_equal(cb_source_clocks(product.plan, 1), 32);
  cb_source_release(&clocked);
  product_release(&product);
}

/* Every call of the driver and of NVRTC fails once. */
static void failures_leave_nothing(void **state) {
  struct cb_diag diag = {0};
  int failures = 0;
  (void)state;
  open_fake();
  struct product product = product_of("band,n=300,half=40,per_row=9", sell);
  struct cb_bench *bench = open_bench();
  const long blocks = fake->blocks, before = fake->calls;
  struct cb_clocked clocked;
  assert_ok(measure(&clocked, bench, &product, &diag));
  cb_clocked_release(&clocked);
  const long calls = fake->calls - before;
  for (long call = 1; call <= calls; call += call < 200 ? 1 : 97) {
    fake->calls = 0;
    fake->fail_at = call;
    fake->failure = 2; /* out of memory */
    const enum cb_status s = measure(&clocked, bench, &product, &diag);
    fake->fail_at = 0;
    failures += s != CB_OK;
    if (s) assert_true(diag.message[0]);
    cb_clocked_release(&clocked);
    assert_int_equal(fake->blocks, blocks);
    assert_int_equal(fake->modules, 0);
  }
  assert_true(failures > 50);
  cb_bench_close(bench);
  product_release(&product);
  assert_true(fake_is_clean(fake));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_thread_block_of_a_slow_row_is_the_slowest),
      cmocka_unit_test(thread_blocks_start_in_waves),
      cmocka_unit_test(kernels_of_all_kinds_keep_their_bits),
      cmocka_unit_test(clocks_of_other_launches_are_passed_over),
      cmocka_unit_test(clocks_add_lines_and_change_none),
      cmocka_unit_test(failures_leave_nothing),
  };
  return cmocka_run_group_tests_name("clocked", tests, NULL, NULL);
}
