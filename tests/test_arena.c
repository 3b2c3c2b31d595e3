// SPDX-License-Identifier: Apache-2.0
/* Arenas: lists that grow keep what they hold wherever they move, blocks change owners, and a failure is remembered. */
#include "tests/support.h"

#include "base/arena.h"

enum { LISTS = 3, MOST = 5000 };

/* Several lists in turn, so that most are not the newest block when they grow. */
static void lists_keep_what_they_hold(void **state) {
  struct cb_arena arena = {0};
  int64_t *list[LISTS] = {0}, count[LISTS] = {0};
  uint64_t seed = 7;
  (void)state;
  for (int i = 0; i < LISTS * MOST; i++) {
    const int l = i < LISTS * MOST / 2 ? (int)(draw(&seed) % LISTS) : LISTS - 1; /* then one alone */
    list[l] = cb_arena_grow(&arena, list[l], count[l], sizeof **list);
    assert_non_null(list[l]);
    list[l][count[l]] = l * MOST * LISTS + count[l];
    count[l]++;
  }
  for (int l = 0; l < LISTS; l++)
    for (int64_t i = 0; i < count[l]; i++) assert_int_equal(list[l][i], l * MOST * LISTS + i);
  cb_arena_release(&arena);
  assert_null(arena.last);
}

static void copies_are_alike(void **state) {
  static const uint16_t numbers[] = {3, 1, 4, 1, 5, 9};
  struct cb_arena arena = {0};
  (void)state;
  const uint16_t *copy = cb_arena_copy(&arena, numbers, 6, sizeof *numbers);
  assert_ptr_not_equal(copy, numbers);
  assert_memory_equal(copy, numbers, sizeof numbers);
  assert_non_null(cb_arena_copy(&arena, NULL, 0, 8));
  cb_arena_release(&arena);
}

/* What goes over is freed with the other arena: the sanitizers watch. */
static void blocks_change_owners(void **state) {
  (void)state;
  for (int from_blocks = 0; from_blocks < 3; from_blocks++)
    for (int blocks = 0; blocks < 3; blocks++) {
      struct cb_arena arena = {0}, from = {0};
      char *kept[3] = {0};
      for (int i = 0; i < blocks; i++) assert_non_null(cb_arena_alloc(&arena, 4, 8));
      for (int i = 0; i < from_blocks; i++) kept[i] = cb_arena_string(&from, "kept");
      cb_arena_join(&arena, &from);
      assert_null(from.last);
      cb_arena_release(&from);
      for (int i = 0; i < from_blocks; i++) assert_string_equal(kept[i], "kept");
      cb_arena_release(&arena);
    }
}

static void failures_stay_and_go_over(void **state) {
  struct cb_arena arena = {0}, from = {0};
  int *list = NULL;
  (void)state;
  cb_memory_fail_at(3, 0); /* the first room, a longer one, then none */
  for (int64_t i = 0; i < 64; i++) {
    int *longer = cb_arena_grow(&from, list, i, sizeof *list);
    assert_int_equal(longer != NULL, i < 32);
    if (!longer) break;
    list = longer;
    list[i] = (int)i;
  }
  cb_memory_fail_at(0, 0);
  assert_true(from.failed);
  for (int i = 0; i < 32; i++) assert_int_equal(list[i], i);
  assert_null(cb_arena_alloc(&from, 1, 1));
  assert_null(cb_arena_copy(&from, "", 1, 1));
  cb_arena_join(&arena, &from);
  assert_true(arena.failed && !from.failed);
  cb_arena_release(&arena);
  assert_false(arena.failed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lists_keep_what_they_hold),
      cmocka_unit_test(copies_are_alike),
      cmocka_unit_test(blocks_change_owners),
      cmocka_unit_test(failures_stay_and_go_over),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
