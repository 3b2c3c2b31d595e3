// SPDX-License-Identifier: Apache-2.0
/* Which vectors of a grid have slots in shared memory (codegen/program/kept.h), and how many. */
#include "tests/support.h"

#include "codegen/program/kept.h"

static const struct cb_program *program_of(const char *method) { return cb_program_find(method, CB_DIAGONAL); }

static void plan(struct cb_kept *kept, const struct cb_kept_request *request) {
  struct cb_diag diag = {0};
  assert_ok(cb_kept_plan(kept, request, &diag));
}

static int has(const struct cb_kept *kept, const char *name) { return cb_kept_find(kept, name) != NULL; }

/* x is the caller's while the first and the last product multiply it. */
static void what_products_read_has_none(void **state) {
  struct cb_kept_request request = {.program = program_of("cg"), .fused = 1, .aligned = 1, .rows = 1, .slots = 100};
  struct cb_kept kept;
  (void)state;
  plan(&kept, &request);
  assert_true(!has(&kept, "p") && has(&kept, "q") && has(&kept, "r") && has(&kept, "x"));
  request.addends[1] = "r"; /* p is made of it where it is multiplied */
  plan(&kept, &request);
  assert_true(!has(&kept, "p") && has(&kept, "q") && !has(&kept, "r"));
}

/* Sums behind a product read other vectors beside its result. Where rows are committed other threads may have them,
 * unless steps have the same. */
static void what_products_commit_has_some_where_steps_have_the_same_rows(void **state) {
  static const struct {
    int fused, aligned, read, made; /* the last two: whether these have slots */
  } cases[] = {{1, 1, 1, 1}, {1, 0, 0, 0}, {0, 0, 1, 0}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct cb_kept_request request = {.program = program_of("bicgstab"), .fused = cases[i].fused,
                                            .aligned = cases[i].aligned, .rows = 1, .slots = 100};
    struct cb_kept kept;
    plan(&kept, &request);
    assert_int_equal(has(&kept, "shadow"), cases[i].read);
    assert_int_equal(has(&kept, "s"), cases[i].read);
    assert_int_equal(has(&kept, "t"), cases[i].made);
    assert_true(has(&kept, "p") && has(&kept, "r"));
  }
}

/* With room for one vector. An iteration of cg has two passes over r, and over q that which stores it, one in a step,
 * and one for sums, but not where these are added up as it is made. */
static void what_has_most_passes_comes_first(void **state) {
  (void)state;
  for (int fused = 0; fused < 2; fused++) {
    const struct cb_kept_request request = {.program = program_of("cg"), .fused = fused, .aligned = 1, .rows = 4,
                                            .slots = 4};
    struct cb_kept kept;
    plan(&kept, &request);
    assert_int_equal(kept.count, 1);
    assert_string_equal(kept.vectors[0].name, fused ? "r" : "q");
    assert_true(kept.vectors[0].is_whole);
  }
}

static void there_are_as_many_as_there_is_room_for(void **state) {
  const struct cb_kept_request request = {.program = program_of("cg"), .fused = 1, .aligned = 1, .rows = 4, .slots = 6};
  struct cb_kept kept;
  (void)state;
  plan(&kept, &request);
  assert_int_equal(kept.count, 2);
  assert_int_equal(kept.slots, 6);
  assert_true(kept.vectors[0].slots == 4 && kept.vectors[0].is_whole);
  assert_true(kept.vectors[1].first == 4 && kept.vectors[1].slots == 2 && !kept.vectors[1].is_whole);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_products_read_has_none),
      cmocka_unit_test(what_products_commit_has_some_where_steps_have_the_same_rows),
      cmocka_unit_test(what_has_most_passes_comes_first),
      cmocka_unit_test(there_are_as_many_as_there_is_room_for),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
