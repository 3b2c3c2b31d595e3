// SPDX-License-Identifier: Apache-2.0
/* Binaries that a process knows from before (runtime/api/families.h): what was added is given back as a copy, and the
 * oldest go when there are too many of them, or too many bytes. */
#include "tests/support.h"

#include "runtime/api/families.h"

static struct cb_hash key_of(int number) {
  return cb_hash_bytes(&number, sizeof number);
}

static void add(struct cb_families *families, int number, size_t bytes) {
  struct cb_compiled compiled = {.cubin = cb_alloc(bytes, 1), .cubin_bytes = bytes, .spilled_bytes = number};
  assert_non_null(compiled.cubin);
  memset(compiled.cubin, number & 0xff, bytes);
  cb_families_add(families, key_of(number), &compiled);
  cb_compiled_release(&compiled);
}

static int knows(const struct cb_families *families, int number) {
  struct cb_compiled compiled = {0};
  if (!cb_families_get(families, key_of(number), &compiled)) return 0;
  assert_int_equal(compiled.spilled_bytes, number);
  for (size_t i = 0; i < compiled.cubin_bytes; i++) assert_int_equal(compiled.cubin[i], number & 0xff);
  compiled.cubin[0]++; /* a copy: the next one is as it was */
  cb_compiled_release(&compiled);
  return 1;
}

static void what_was_added_is_known(void **state) {
  struct cb_families families = {0};
  (void)state;
  assert_false(knows(&families, 1));
  for (int i = 1; i <= 20; i++) add(&families, i, (size_t)(10 * i));
  for (int i = 1; i <= 20; i++) assert_true(knows(&families, i) && knows(&families, i));
  assert_false(knows(&families, 21));
  cb_families_release(&families);
  assert_false(knows(&families, 1));
  add(&families, 1, 5);
  assert_true(knows(&families, 1));
  cb_families_release(&families);
}

static void the_oldest_go_when_there_are_too_many(void **state) {
  struct cb_families families = {0};
  (void)state;
  for (int i = 1; i <= 2 * CB_MOST_FAMILIES + 3; i++) {
    add(&families, i, 8);
    assert_true(knows(&families, i));
    assert_true(i <= CB_MOST_FAMILIES ? knows(&families, 1) : !knows(&families, i - CB_MOST_FAMILIES));
    assert_true(i < CB_MOST_FAMILIES || knows(&families, i - CB_MOST_FAMILIES + 1));
  }
  cb_families_release(&families);
}

static void the_oldest_go_when_they_are_too_long(void **state) {
  struct cb_families families = {0};
  const size_t third = CB_MOST_FAMILY_BYTES / 3;
  (void)state;
  for (int i = 1; i <= 9; i++) {
    add(&families, i, third);
    assert_true(families.bytes <= CB_MOST_FAMILY_BYTES);
    for (int k = 1; k <= i; k++) assert_int_equal(knows(&families, k), k > i - 3);
  }
  add(&families, 10, CB_MOST_FAMILY_BYTES); /* in place of all others */
  assert_true(knows(&families, 10) && !knows(&families, 9));
  add(&families, 11, CB_MOST_FAMILY_BYTES + 1); /* for which there is never room */
  assert_true(knows(&families, 10) && !knows(&families, 11));
  cb_families_release(&families);
}

/* One for each architecture, until the last holder lets go; what is kept twice is there once. */
static void a_process_knows_what_somebody_holds(void **state) {
  unsigned char cubin[] = "a binary";
  struct cb_compiled compiled = {.cubin = cubin, .cubin_bytes = sizeof cubin}, found = {0};
  (void)state;
  cb_families_hold();
  cb_families_hold();
  cb_families_keep(key_of(-1), "sm_90", &compiled); /* the first to go, if what follows took a place each */
  for (int i = 0; i < 2 * CB_MOST_FAMILIES; i++) cb_families_keep(key_of(-2), "sm_90", &compiled);
  cb_families_let_go();
  assert_true(cb_families_find(key_of(-1), "sm_90", &found));
  assert_memory_equal(found.cubin, cubin, sizeof cubin);
  cb_compiled_release(&found);
  assert_false(cb_families_find(key_of(-1), "sm_80", &found));
  assert_false(cb_families_find(key_of(-3), "sm_90", &found));
  for (int i = 0; i < CB_MOST_FAMILIES - 2; i++) /* room for so many more, if it is there once */
    cb_families_keep(key_of(i), "sm_90", &compiled);
  assert_true(cb_families_find(key_of(-1), "sm_90", &found));
  cb_compiled_release(&found);
  cb_families_let_go();
  cb_families_hold();
  assert_false(cb_families_find(key_of(-1), "sm_90", &found));
  cb_families_let_go();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_was_added_is_known),
      cmocka_unit_test(the_oldest_go_when_there_are_too_many),
      cmocka_unit_test(the_oldest_go_when_they_are_too_long),
      cmocka_unit_test(a_process_knows_what_somebody_holds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
