// SPDX-License-Identifier: Apache-2.0
/* Tuning on the fake GPU, which executes every variant's kernel; its clock is told how long each one takes,
 * by the id in the kernel's name. */
#include "tests/support.h"

#include "runtime/measure/tune.h"
#include "tests/fake_driver.h"

static struct fake_control *fake;

/* A launch takes 30 ms, so that batches are short; the kernels of one variant take so many nanoseconds more.
 */
enum { LAUNCH_NS = 30000000, PLAIN_NS = 5000 /* the fake's own */ };
static struct slow {
  char prefix[32];
  long ns;
} slow_table[8];
static int slow_count;

static void slow_down(void *user, const struct fake_launch *launch) {
  (void)user;
  fake->clock_ns += LAUNCH_NS - PLAIN_NS;
  for (int i = 0; i < slow_count; i++)
    if (!strncmp(launch->kernel, slow_table[i].prefix, strlen(slow_table[i].prefix)))
      fake->clock_ns += slow_table[i].ns;
}

static int set_up(void **state) {
  (void)state;
  fake = fake_open();
  if (!fake) return -1;
  setenv("CBGEN_CALIBRATION", "", 1);
  slow_count = 0;
  fake->hook = slow_down;
  return 0;
}

struct bed {
  struct cb_driver *driver;
  struct cb_device *device;
  struct cb_nvrtc *nvrtc;
  struct cb_csr csr;
  struct cb_options options;
  struct cb_tune_request request;
};

/* Heap-free, but the request refers to the bed: it stays where it is. */
static void open_bed(struct bed *bed, const char *matrix, const char *settings) {
  struct cb_diag diag = {0};
  const char *path = getenv("CBGEN_FAKE_CUDA");
  *bed = (struct bed){.csr = matrix_of(matrix)};
  set_options(&bed->options, settings);
  assert_ok(cb_driver_open(&bed->driver, path, &diag));
  assert_ok(cb_nvrtc_open(&bed->nvrtc, path, &diag));
  assert_ok(cb_device_open(&bed->device, bed->driver, 0, &diag));
  bed->request = (struct cb_tune_request){.csr = &bed->csr,
                                          .options = &bed->options,
                                          .device = bed->device,
                                          .nvrtc = bed->nvrtc,
                                          .pattern = cb_csr_pattern_hash(&bed->csr)};
}

static void release_bed(struct bed *bed) {
  cb_device_close(bed->device);
  cb_nvrtc_close(bed->nvrtc);
  cb_driver_close(bed->driver);
  cb_csr_release(&bed->csr);
}

static void close_bed(struct bed *bed) {
  release_bed(bed);
  assert_string_equal(fake->misuse, "");
  assert_string_equal(fake->trap, "");
  assert_true(fake_is_clean(fake));
}

/* The variant's kernel is so much slower. */
static void slow(struct bed *bed, const char *recipe, const char *settings, long ns) {
  struct cb_diag diag = {0};
  struct cb_options options = bed->options;
  struct cb_variant variant = {.predicted_ns = 0};
  struct cb_plan *plan;
  struct cb_assignment *assignment;
  snprintf(variant.recipe, sizeof variant.recipe, "%s", recipe);
  snprintf(variant.settings, sizeof variant.settings, "%s", settings);
  assert_ok(cb_variant_apply(&options, &variant, &diag));
  assert_ok(cb_plan_build(&plan, &assignment, &bed->csr, &bed->device->target, &options, &diag));
  snprintf(slow_table[slow_count].prefix, sizeof slow_table[0].prefix, "cbgen_%016llx",
           (unsigned long long)cb_blob_id(plan, bed->request.pattern).high);
  slow_table[slow_count++].ns = ns;
  cb_assignment_free(assignment);
  cb_plan_free(plan);
}

static const struct cb_variant *find(const struct cb_tuning *tuning, const char *recipe,
                                     const char *settings) {
  for (int i = 0; i < tuning->count; i++)
    if (!strcmp(tuning->variants[i].recipe, recipe) && !strcmp(tuning->variants[i].settings, settings))
      return &tuning->variants[i];
  return NULL;
}

/* So many nanoseconds beside a launch; events measure in floats, and take a little themselves. */
static void assert_took(const struct cb_variant *variant, int64_t ns) {
  assert_non_null(variant);
  assert_in_range(variant->measured_ns, LAUNCH_NS + ns - 100, LAUNCH_NS + ns + 200);
}

static const char matrix[] = "fe3,n=3";

/* ---- who wins */

static void the_fastest_wins(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_tuned tuned;
  struct bed bed;
  open_bed(&bed, matrix, "recipe=auto");
  slow(&bed, "sell", "", 30000);
  slow(&bed, "merge", "", 10000);
  slow(&bed, "blocks", "", 20000);
  slow(&bed, "cb", "", 1000);
  assert_ok(cb_tune(&tuned, &bed.request, &diag));
  const struct cb_tuning *tuning = &tuned.tuning;
  assert_string_equal(tuning->variants[tuning->winner].recipe, "cb");
  assert_string_equal(tuned.options.recipe, "cb");
  assert_int_equal(tuned.options.tune, CB_TUNE_MODEL);
  assert_string_equal(tuned.made.plan->recipe, "cb");
  assert_int_equal(tuning->cut_short, 0);
  assert_took(find(tuning, "cb", ""), 1000);
  assert_took(find(tuning, "merge", ""), 10000);
  assert_took(find(tuning, "sell", ""), 30000);
  for (int i = 0; i < tuning->count && i < CB_TUNE_RECIPES; i++)
    assert_true(tuning->variants[i].predicted_ns <= 2 * tuning->variants[0].predicted_ns);
  /* what is handed over is what a compilation of the winner would make */
  struct cb_plan *plan;
  struct cb_assignment *assignment;
  assert_ok(cb_plan_build(&plan, &assignment, &bed.csr, &bed.device->target, &tuned.options, &diag));
  assert_memory_equal(&plan->hash, &tuned.made.plan->hash, sizeof plan->hash);
  assert_non_null(strstr(tuned.made.source.text, tuned.made.symbol));
  assert_true(tuned.made.compiled.cubin_bytes > 0);
  assert_true(tuned.made.plan->candidates_count >= 5);
  assert_true(tuned.seconds > 0);
  cb_assignment_free(assignment);
  cb_plan_free(plan);
  cb_tuned_release(&tuned);
  close_bed(&bed);
}

static void the_search_is_the_models(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_tuned tuned;
  struct cb_plan *plan;
  struct cb_assignment *assignment;
  struct bed bed;
  open_bed(&bed, matrix, "recipe=auto search=all"); /* a tuner tries all */
  assert_ok(cb_tune(&tuned, &bed.request, &diag));
  assert_ok(cb_plan_build(&plan, &assignment, &bed.csr, &bed.device->target, &bed.options, &diag));
  assert_string_equal(tuned.tuning.variants[0].recipe, plan->recipe);
  assert_int_equal(tuned.tuning.variants[0].predicted_ns, plan->cost.ns);
  assert_int_equal(tuned.made.plan->candidates_count, plan->candidates_count);
  for (int i = 0; i < plan->candidates_count; i++) {
    assert_string_equal(tuned.made.plan->candidates[i].recipe, plan->candidates[i].recipe);
    assert_string_equal(tuned.made.plan->candidates[i].refusal, plan->candidates[i].refusal);
    assert_int_equal(tuned.made.plan->candidates[i].bytes, plan->candidates[i].bytes);
    assert_int_equal(tuned.made.plan->candidates[i].cost.ns, plan->candidates[i].cost.ns);
  }
  cb_assignment_free(assignment);
  cb_plan_free(plan);
  cb_tuned_release(&tuned);
  close_bed(&bed);
}

/* Neighbours are tried as long as one is faster: up to 16 lanes, and 32 to see that they are not. */
static void neighbours_are_climbed(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_tuned tuned;
  struct bed bed;
  open_bed(&bed, "random,rows=400,cols=300,density=0.05", "recipe=sell sell-vary=off sell-sort=off");
  slow(&bed, "sell", "", 60000); /* 4 lanes */
  slow(&bed, "sell", "sell-lanes=2", 50000);
  slow(&bed, "sell", "sell-lanes=8", 30000);
  slow(&bed, "sell", "sell-lanes=16", 10000);
  slow(&bed, "sell", "sell-lanes=32", 20000);
  assert_ok(cb_tune(&tuned, &bed.request, &diag));
  const struct cb_tuning *tuning = &tuned.tuning;
  assert_int_equal(tuning->count, 5);
  assert_took(find(tuning, "sell", ""), 60000);
  assert_took(find(tuning, "sell", "sell-lanes=2"), 50000);
  assert_took(find(tuning, "sell", "sell-lanes=32"), 20000);
  assert_string_equal(tuning->variants[tuning->winner].settings, "sell-lanes=16");
  assert_took(&tuning->variants[tuning->winner], 10000);
  assert_int_equal(cb_option_value(&tuned.options, cb_option_find("sell-lanes")), 16);
  assert_int_equal(tuned.made.plan->candidates_count, 0); /* there was no search */
  cb_tuned_release(&tuned);
  close_bed(&bed);
}

static void merges_items_are_climbed(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_tuned tuned;
  struct bed bed;
  open_bed(&bed, "random,rows=300,cols=200,density=0.05", "recipe=merge");
  assert_ok(cb_tune(&tuned, &bed.request, &diag));
  assert_true(tuned.tuning.count > 1);
  assert_memory_equal(tuned.tuning.variants[1].settings, "merge-items=", 12);
  cb_tuned_release(&tuned);
  close_bed(&bed);
}

static void a_callers_choice_stays(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_tuned tuned;
  struct bed bed;
  open_bed(&bed, matrix, "recipe=sell sell-lanes=16");
  assert_ok(cb_tune(&tuned, &bed.request, &diag));
  assert_int_equal(tuned.tuning.count, 1);
  assert_int_equal(cb_option_value(&tuned.options, cb_option_find("sell-lanes")), 16);
  assert_took(&tuned.tuning.variants[0], 0);
  cb_tuned_release(&tuned);
  close_bed(&bed);
}

static void every_form_and_type_is_timed(void **state) {
  (void)state;
  static const char *const cases[] = {"recipe=auto form=ax",        "recipe=auto form=add",
                                      "recipe=auto type=f32",       "recipe=auto type=f16-f32",
                                      "recipe=cb-long long-row=40", "recipe=cb atomics=on balance=heap"};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct cb_diag diag = {0};
    struct cb_tuned tuned;
    struct bed bed;
    open_bed(&bed, "random,rows=60,cols=300,density=0.3", cases[i]);
    assert_ok(cb_tune(&tuned, &bed.request, &diag));
    for (int v = 0; v < tuned.tuning.count; v++) {
      assert_string_equal(tuned.tuning.variants[v].reason, "");
      assert_true(tuned.tuning.variants[v].measured_ns >= LAUNCH_NS - 100);
    }
    cb_tuned_release(&tuned);
    close_bed(&bed);
  }
}

static void values_may_be_missing(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_tuned tuned;
  struct bed bed;
  open_bed(&bed, matrix, "recipe=auto");
  double *values = bed.csr.values;
  bed.csr.values = NULL;
  assert_ok(cb_tune(&tuned, &bed.request, &diag));
  assert_true(tuned.tuning.variants[tuned.tuning.winner].measured_ns > 0);
  bed.csr.values = values;
  cb_tuned_release(&tuned);
  close_bed(&bed);
}

static void matrices_without_a_product(void **state) {
  (void)state;
  static const char *const shapes[] = {"empty,rows=0,cols=9", "empty,rows=7,cols=0", "empty,rows=50,cols=40"};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    struct cb_diag diag = {0};
    struct cb_tuned tuned;
    struct bed bed;
    open_bed(&bed, shapes[i], "recipe=auto");
    assert_ok(cb_tune(&tuned, &bed.request, &diag));
    assert_non_null(tuned.made.plan);
    assert_int_equal(tuned.tuning.variants[tuned.tuning.winner].measured_ns > 0, bed.csr.rows > 0);
    cb_tuned_release(&tuned);
    close_bed(&bed);
  }
}

/* ---- effort */

static void few_products_are_not_tuned_for(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_tuned tuned;
  struct bed bed;
  open_bed(&bed, matrix, "recipe=auto");
  bed.request.expected_products = 100;
  assert_ok(cb_tune(&tuned, &bed.request, &diag));
  assert_int_equal(tuned.tuning.cut_short, 1);
  assert_int_equal(tuned.tuning.winner, 0);
  assert_int_equal(tuned.tuning.variants[0].measured_ns, 0);
  assert_true(tuned.tuning.count > 1);
  assert_non_null(strstr(tuned.tuning.variants[1].reason, "would not repay"));
  assert_non_null(tuned.made.plan);
  assert_int_equal(fake->launches, 0);
  assert_int_equal(fake->compilations, 0);
  cb_tuned_release(&tuned);
  close_bed(&bed);
}

static void many_products_are_tuned_for(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_tuned tuned;
  struct bed bed;
  open_bed(&bed, matrix, "recipe=auto");
  bed.request.expected_products = INT64_C(1) << 40;
  assert_ok(cb_tune(&tuned, &bed.request, &diag));
  assert_int_equal(tuned.tuning.cut_short, 0);
  for (int v = 0; v < tuned.tuning.count; v++) assert_true(tuned.tuning.variants[v].measured_ns > 0);
  cb_tuned_release(&tuned);
  close_bed(&bed);
}

/* ---- failures */

static void what_compiles_for_none_is_an_error(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_tuned tuned;
  struct bed bed;
  open_bed(&bed, matrix, "recipe=auto");
  bed.request.name = FAKE_COMPILE_ERROR;
  assert_int_equal(cb_tune(&tuned, &bed.request, &diag), CB_ERR_COMPILE);
  assert_non_null(strstr(diag.message, "the text asks for it"));
  assert_null(tuned.made.plan);
  cb_tuned_release(&tuned);
  close_bed(&bed);
}

/* A variant that does not fit the GPU's memory is left out: the GPU has room for sell, not for cb's dense
 * tiles. */
static void what_does_not_load_is_left_out(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_tuned tuned;
  struct bed bed;
  open_bed(&bed, matrix, "recipe=auto");
  const struct cb_csr *csr = &bed.csr;
  struct cb_plan *plan;
  struct cb_assignment *assignment;
  assert_ok(cb_plan_build(&plan, &assignment, csr, &bed.device->target, &bed.options, &diag));
  int64_t least = INT64_MAX, most = 0;
  for (int i = 0; i < plan->candidates_count; i++) {
    const struct cb_candidate *candidate = &plan->candidates[i];
    if (*candidate->refusal || candidate->cost.ns > 2 * plan->cost.ns) continue;
    if (candidate->bytes < least) least = candidate->bytes;
    if (candidate->bytes > most) most = candidate->bytes;
  }
  cb_assignment_free(assignment);
  cb_plan_free(plan);
  assert_true(most > least + 2048);
  fake->memory = (size_t)(least + most) / 2 + 16 * (size_t)csr->rows;
  assert_ok(cb_tune(&tuned, &bed.request, &diag));
  int left_out = 0;
  for (int v = 0; v < tuned.tuning.count; v++)
    left_out += strstr(tuned.tuning.variants[v].reason, "out of memory on GPU 0") != NULL;
  assert_true(left_out > 0);
  assert_true(tuned.tuning.variants[tuned.tuning.winner].measured_ns > 0);
  assert_string_equal(diag.message, "");
  cb_tuned_release(&tuned);
  fake->memory = (size_t)1 << 30;
  close_bed(&bed);
}

/* Every call of the driver and of NVRTC up to the first launches, then some of the hundreds that follow. */
static void any_call_may_fail(void **state) {
  int tuned_well = 0, failed = 0;
  long calls = 1000;
  for (long nth = 1; nth < calls; nth += nth < 60 ? 1 : 11) {
    struct cb_diag diag = {0};
    struct cb_tuned tuned;
    struct bed bed;
    assert_int_equal(set_up(state), 0);
    open_bed(&bed, "random,rows=60,cols=40,density=0.3", "recipe=auto");
    const long before = fake->calls;
    fake->fail_at = before + nth;
    fake->failure = nth % 2 ? 999 : 2; /* unknown to the driver, or out of memory */
    const enum cb_status s = cb_tune(&tuned, &bed.request, &diag);
    fake->fail_at = 0;
    if (!*fake->failed) calls = 0;
    assert_int_equal(!s, tuned.made.plan != NULL);
    if (s) assert_true(*diag.message);
    failed += s != CB_OK;
    tuned_well += !s;
    cb_tuned_release(&tuned);
    if (!strncmp(fake->failed, "cuCtxPushCurrent", 16)) release_bed(&bed); /* nothing can be freed then */
    else close_bed(&bed);
  }
  assert_true(failed > 10 && tuned_well > 0);
}

static void any_allocation_may_fail(void **state) {
  int failed = 0;
  for (uint64_t nth = 1; nth < 4000; nth += nth < 100 ? 1 : 53) {
    struct cb_diag diag = {0};
    struct cb_tuned tuned;
    struct bed bed;
    assert_int_equal(set_up(state), 0);
    open_bed(&bed, "random,rows=30,cols=20,density=0.3", "recipe=auto");
    cb_memory_fail_at(nth, 0);
    const enum cb_status s = cb_tune(&tuned, &bed.request, &diag);
    const uint64_t made = cb_memory_fail_at(0, 0);
    if (s) assert_int_equal(s, CB_ERR_MEMORY);
    failed += s != CB_OK;
    cb_tuned_release(&tuned);
    close_bed(&bed);
    if (made < nth) break;
  }
  assert_true(failed > 50);
}

/* ---- text */

static void text_comes_back(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_text text = {0};
  struct cb_tuning read;
  const struct cb_tuning tuning = {.count = 3,
                                   .winner = 2,
                                   .variants = {{"sell", "", 10, 20, "", 0},
                                                {"cb", "", 30, 0, "it does not compile", 0},
                                                {"merge", "merge-items=5 merge-piece=512", 12, 11, "", 0}}};
  cb_tuning_text(&text, &tuning);
  assert_ok(cb_tuning_parse(&read, text.bytes, text.length, &diag));
  assert_int_equal(read.count, 3);
  assert_int_equal(read.winner, 0);
  assert_memory_equal(&read.variants[0], &tuning.variants[2], sizeof read.variants[0]);
  assert_memory_equal(&read.variants[1], &tuning.variants[0], sizeof read.variants[0]);
  assert_memory_equal(&read.variants[2], &tuning.variants[1], sizeof read.variants[0]);
  for (size_t length = 0; length < text.length;
       length++) { /* cut short: a whole line may be missing, no less */
    const enum cb_status s = cb_tuning_parse(&read, text.bytes, length, &diag);
    if (!s) assert_int_equal(text.bytes[length - 1], '\n');
  }
  cb_text_release(&text);
}

static void damaged_texts_are_refused(void **state) {
  (void)state;
  static const char *const cases[] = {
      "",
      "cbgen tuning 1\n",
      "cbgen tuning 2\nsell\t\t1\t2\t\n",
      "cbgen tuning 1\nsell\t\t1\t2\n",
      "cbgen tuning 1\nsell\t\t1\t2\t",
      "cbgen tuning 1\nsell\t\t\t2\t\n",
      "cbgen tuning 1\nsell\t\t-1\t2\t\n",
      "cbgen tuning 1\nsell\t\tx\t2\t\n",
      "cbgen tuning 1\nsell\t\t1x\t2\t\n",
      "cbgen tuning 1\nsell\t\t99999999999999999999999\t2\t\n",
      "cbgen tuning 1\nsold\t\t1\t2\t\n",
      "cbgen tuning 1\nauto-but-very-much-too-long\t\t1\t2\t\n",
      "cbgen tuning 1\nsell\tsell-lanes\t1\t2\t\n",
      "cbgen tuning 1\nsell\tsell-lanes=3\t1\t2\t\n",
      "cbgen tuning 1\nsell\tsell-lanes=\t1\t2\t\n",
      "cbgen tuning 1\nsell\tno-option=3\t1\t2\t\n",
      "cbgen tuning 1\nsell\trecipe=cb\t1\t2\t\n",
      "cbgen tuning 1\nsell\t\t1\t2\t\nrubbish",
      "cbgen tuning 1\n"
      "sell\t\t1\t2\t\nsell\t\t1\t2\t\nsell\t\t1\t2\t\nsell\t\t1\t2\t\nsell\t\t1\t2\t\nsell\t\t1\t2\t\n"
      "sell\t\t1\t2\t\nsell\t\t1\t2\t\nsell\t\t1\t2\t\nsell\t\t1\t2\t\nsell\t\t1\t2\t\n",
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct cb_diag diag = {0};
    struct cb_tuning tuning;
    if (cb_tuning_parse(&tuning, cases[c], strlen(cases[c]), &diag) != CB_ERR_FORMAT)
      fail_msg("'%s' is taken for a tuning", cases[c]);
    assert_true(*diag.message);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(the_fastest_wins, set_up),
      cmocka_unit_test_setup(the_search_is_the_models, set_up),
      cmocka_unit_test_setup(neighbours_are_climbed, set_up),
      cmocka_unit_test_setup(merges_items_are_climbed, set_up),
      cmocka_unit_test_setup(a_callers_choice_stays, set_up),
      cmocka_unit_test_setup(every_form_and_type_is_timed, set_up),
      cmocka_unit_test_setup(values_may_be_missing, set_up),
      cmocka_unit_test_setup(matrices_without_a_product, set_up),
      cmocka_unit_test_setup(few_products_are_not_tuned_for, set_up),
      cmocka_unit_test_setup(many_products_are_tuned_for, set_up),
      cmocka_unit_test_setup(what_compiles_for_none_is_an_error, set_up),
      cmocka_unit_test_setup(what_does_not_load_is_left_out, set_up),
      cmocka_unit_test_setup(any_call_may_fail, set_up),
      cmocka_unit_test_setup(any_allocation_may_fail, set_up),
      cmocka_unit_test_setup(text_comes_back, set_up),
      cmocka_unit_test_setup(damaged_texts_are_refused, set_up),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
