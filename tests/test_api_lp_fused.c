// SPDX-License-Identifier: Apache-2.0
/* Products that commit rows by the statements of a linear program's iteration: the same bits as by kernels of their
 * own, whatever the layout. */
#include "tests/lp_support.h"
#include "tests/recipes.h"

enum { ITERATIONS = 10 };

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

static void release_answer(struct answer *answer) {
  free(answer->x);
  free(answer->y);
}

static int is_same(const struct lp_bed *bed, const struct answer *one, const struct answer *other) {
  return !memcmp(&one->result, &other->result, sizeof one->result) &&
         !memcmp(one->x, other->x, (size_t)bed->csr.cols * sizeof *one->x) &&
         !memcmp(one->y, other->y, (size_t)bed->csr.rows * sizeof *one->y);
}

/* By fused kernels, and without them, as they spill. Whether there are any. */
static int check_fused(const char *shape, const char *settings, const char *other, cbgen_specialise of_transposed,
                       int scaled) {
  struct answer answers[2];
  int same = 1;
  for (int fused = 0; fused < 2; fused++) {
    struct lp_bed bed = lp_bed_with(matrix_of(shape), settings, other, 5, CBGEN_SPECIALISE_NOW, of_transposed);
    fake->stack_bytes = fused ? 0 : 64;
    strcpy(fake->spilling, "cbgen_fused");
    answers[fused] = answer_of(&bed, scaled);
    fake->stack_bytes = 0;
    assert_int_equal(answers[fused].result.iterations, ITERATIONS);
    same = !fused || is_same(&bed, &answers[0], &answers[1]);
    release_lp(&bed);
  }
  if (!same) fail_msg("%s, %s: other bits", shape, settings);
  for (int i = 0; i < 2; i++) release_answer(&answers[i]);
  return answers[1].kernels < answers[0].kernels - ITERATIONS;
}

/* One recipe of each, on what suits it. Those that add to rows that are written are not fused: a few. */
static void every_layout_commits_by_statements(void **state) {
  int layouts = 0, fused = 0;
  (void)state;
  for (int i = 0; cb_layout_table[i]; i++) {
    const struct cb_recipe *recipe = cb_layout_table[i]->recipes;
    if (!recipe->name) continue;
    fused += check_fused(example_of(recipe), settings_of_recipe(recipe), "recipe=sell", CBGEN_SPECIALISE_NEVER, i % 2);
    layouts++;
  }
  assert_true(fused < layouts && fused >= layouts - 5);
}

/* Empty rows, sums that the last thread to arrive commits, and single precision. */
static void every_row_is_committed_once(void **state) {
  (void)state;
  assert_true(check_fused("random,rows=60,cols=100,density=0.03", "recipe=merge type=f32", "", CBGEN_SPECIALISE_NOW, 1));
  assert_true(check_fused("random,rows=3,cols=4000,density=0.9", "recipe=sell", "", CBGEN_SPECIALISE_NOW, 0));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(every_row_is_committed_once, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(every_layout_commits_by_statements, open_fake, check_fake),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
