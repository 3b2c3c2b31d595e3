// SPDX-License-Identifier: Apache-2.0
/* Products that commit rows by the statements of a linear program's iteration: the same bits as by kernels of their own,
 * whatever the layout. */
#include "tests/lp_support.h"

enum { ITERATIONS = 72 /* a check is the 64th */ };

struct answer {
  cbgen_lp_result result;
  double *x, *y;
  long kernels;
};

static double *copy_of(const struct lp_bed *bed, int vector) {
  const size_t bytes = (size_t)entries_of(bed, vector) * sizeof(double);
  return memcpy(malloc(bytes), bed->host[vector], bytes);
}

static struct answer answer_of(struct lp_bed *bed, int scaled) {
  cbgen_lp_options options = lp_options_of(bed, scaled, 1e-12);
  options.max_iterations = ITERATIONS;
  cbgen_lp *lp = lp_solver_of(bed, &options);
  const long before = fake->executed;
  struct answer answer = {.result = lp_solved(bed, lp)};
  answer.kernels = fake->executed - before;
  answer.x = copy_of(bed, PRIMAL);
  answer.y = copy_of(bed, DUAL);
  const struct answer again = {.result = lp_solved(bed, lp)};
  assert_memory_equal(&again.result, &answer.result, sizeof answer.result);
  assert_memory_equal(bed->host[PRIMAL], answer.x, (size_t)bed->csr.cols * sizeof(double));
  cbgen_lp_free(lp);
  return answer;
}

/* By fused kernels, and without them, as they spill. */
static void check_fused(const char *shape, const char *settings, const char *other, int scaled) {
  struct answer answers[2];
  int64_t rows = 0, cols = 0;
  for (int fused = 0; fused < 2; fused++) {
    struct lp_bed bed = lp_bed_with(matrix_of(shape), settings, other, 5, CBGEN_SPECIALISE_NOW);
    fake->stack_bytes = fused ? 0 : 64;
    strcpy(fake->spilling, "cbgen_fused");
    answers[fused] = answer_of(&bed, scaled);
    fake->stack_bytes = 0;
    assert_int_equal(answers[fused].result.iterations, ITERATIONS);
    rows = bed.csr.rows;
    cols = bed.csr.cols;
    release_lp(&bed);
  }
  if (memcmp(&answers[0].result, &answers[1].result, sizeof answers[0].result) ||
      memcmp(answers[0].x, answers[1].x, (size_t)cols * sizeof(double)) ||
      memcmp(answers[0].y, answers[1].y, (size_t)rows * sizeof(double)))
    fail_msg("%s, %s: other bits", shape, settings);
  if (answers[1].kernels >= answers[0].kernels - ITERATIONS)
    fail_msg("%s, %s: %ld kernels, fused %ld", shape, settings, answers[0].kernels, answers[1].kernels);
  for (int i = 0; i < 2; i++) {
    free(answers[i].x);
    free(answers[i].y);
  }
}

static void every_layout_commits_by_statements(void **state) {
  static const struct {
    const char *shape, *settings, *other;
  } cases[] = {{"random,rows=60,cols=100,density=0.03", "recipe=sell", "recipe=merge"},
               {"random,rows=2,cols=700,density=0.9", "recipe=sell-long long-row=128", "recipe=cb"},
               {"random,rows=300,cols=40,density=0.2", "recipe=hot hot-columns=16", "recipe=hot hot-columns=64"},
               {"stencil5,n=9", "recipe=dia", "recipe=patterns"},
               {"fe3,n=3", "recipe=blocks", "recipe=slices"},
               {"random,rows=60,cols=100,density=0.1", "recipe=phases phase-columns=32 type=f32", "recipe=merge"}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    check_fused(cases[i].shape, cases[i].settings, cases[i].other, (int)i % 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(every_layout_commits_by_statements, open_fake, check_fake),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
