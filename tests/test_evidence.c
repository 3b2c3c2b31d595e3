// SPDX-License-Identifier: Apache-2.0
/* A run counts only by what it shows: every part of its evidence is compared, and a program that shows less, or another
 * y than the data expect, is not verified. */
#include "tests/support.h"

#include "runtime/verify/emulation/jobs.h"
#include "runtime/verify/evidence.h"

#include <math.h>

enum { ROWS = 3 };

static const double expected[2 * ROWS] = {1.5, -2, 0.25, 1e-9, 1e-9, 0}; /* values, then tolerances */

static const char *scratch(const char *name) {
  static char path[600];
  snprintf(path, sizeof path, "%s/%s", getenv("CBGEN_TEST_TMP"), name);
  return path;
}

static void write_file(const char *path, const void *first, size_t first_bytes, const void *second, size_t bytes) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(first, 1, first_bytes, file), first_bytes);
  assert_int_equal(fwrite(second, 1, bytes, file), bytes);
  assert_int_equal(fclose(file), 0);
}

/* A text with y of this type, whose data stand in a file, after `at` bytes of arrays. */
static const char *text_of(const char *type, int rows, int at) {
  static char text[200];
  snprintf(text, sizeof text, "using vector_t = %s;\nconstexpr size_t kRowCount = %d, kColCount = 3, kExpected = %d;\n",
           type, rows, at);
  return text;
}

static struct cb_evidence expectation(const char *type, const double numbers[2 * ROWS]) {
  struct cb_diag diag = {0};
  struct cb_evidence evidence;
  static const char arrays[16];
  char file[4480], number[64];
  write_file(scratch("data"), arrays, sizeof arrays, numbers, 2 * ROWS * sizeof *numbers);
  assert_ok(cb_evidence_expect(&evidence, text_of(type, ROWS, sizeof arrays), scratch("data"), &diag));
  assert_int_equal(evidence.rows, ROWS);
  assert_non_null(evidence.numbers);
  assert_memory_equal(evidence.numbers, numbers, 2 * ROWS * sizeof *numbers);
  cb_evidence_demand(&evidence, scratch("shown"), file, number);
  return evidence;
}

/* What the judge says of a run that showed this. */
static enum cb_status judged(const struct cb_evidence *evidence, struct emulation_evidence shown, const void *y,
                             const char *message) {
  struct cb_diag diag = {0};
  write_file(scratch("shown"), &shown, sizeof shown, y, (size_t)shown.bytes);
  const enum cb_status s = cb_evidence_judge(evidence, scratch("shown"), &diag);
  if (s && !strstr(diag.message, message)) fail_msg("'%s' does not say '%s'", diag.message, message);
  return s;
}

static void what_is_expected_is_shown(void **state) {
  (void)state;
  struct cb_evidence evidence = expectation("double", expected);
  const float narrow[ROWS] = {1.5f, -2, 0.25f};
  const uint16_t half[ROWS] = {0x3e00, 0xc000, 0x3400};
  const double near[ROWS] = {1.5 + 1e-10, -2 - 1e-10, 0.25};
  assert_int_equal(judged(&evidence, (struct emulation_evidence){evidence.nonce, 1, sizeof near}, near, ""), CB_OK);
  cb_evidence_release(&evidence);
  evidence = expectation("float", expected);
  assert_int_equal(judged(&evidence, (struct emulation_evidence){evidence.nonce, 2, sizeof narrow}, narrow, ""), CB_OK);
  cb_evidence_release(&evidence);
  evidence = expectation("half_entry_t", expected);
  assert_int_equal(judged(&evidence, (struct emulation_evidence){evidence.nonce, 1, sizeof half}, half, ""), CB_OK);
  cb_evidence_release(&evidence);
  evidence = expectation("int", expected);
  assert_int_equal(judged(&evidence, (struct emulation_evidence){evidence.nonce, 1, sizeof narrow}, narrow,
                          "its y has 12 bytes for 3 rows"),
                   CB_ERR_WRONG);
  cb_evidence_release(&evidence);
}

static void less_than_all_is_no_evidence(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_evidence evidence = expectation("double", expected);
  const uint64_t nonce = evidence.nonce;
  assert_int_equal(
      judged(&evidence, (struct emulation_evidence){nonce + 1, 1, sizeof(double[ROWS])}, expected, "no kernel ran"),
      CB_ERR_WRONG);
  assert_int_equal(
      judged(&evidence, (struct emulation_evidence){nonce, 0, sizeof(double[ROWS])}, expected, "no kernel ran"),
      CB_ERR_WRONG);
  assert_int_equal(judged(&evidence, (struct emulation_evidence){nonce, 1, sizeof(double[ROWS - 1])}, expected,
                          "its y has 16 bytes for 3 rows"),
                   CB_ERR_WRONG);
  assert_int_equal(remove(scratch("shown")), 0);
  assert_int_equal(cb_evidence_judge(&evidence, scratch("shown"), &diag), CB_ERR_WRONG);
  cb_free(evidence.numbers);
  evidence.numbers = NULL;
  assert_int_equal(judged(&evidence, (struct emulation_evidence){nonce, 1, sizeof(double[ROWS])}, expected,
                          "its data do not say what is expected"),
                   CB_ERR_WRONG);
}

static void every_row_is_compared(void **state) {
  (void)state;
  struct cb_evidence evidence = expectation("double", expected);
  for (int row = 0; row < ROWS; row++)
    for (int kind = 0; kind < 2; kind++) {
      char message[40];
      double y[ROWS];
      memcpy(y, expected, sizeof y);
      y[row] = kind ? NAN : y[row] + 1e-8;
      snprintf(message, sizeof message, "row %d is", row);
      assert_int_equal(judged(&evidence, (struct emulation_evidence){evidence.nonce, 1, sizeof y}, y, message),
                       CB_ERR_WRONG);
    }
  cb_evidence_release(&evidence);
}

static void infinity_and_nan_are_expected_as_they_are(void **state) {
  (void)state;
  const double special[2 * ROWS] = {NAN, INFINITY, 1, 0, 0, 0}, other[ROWS] = {1, INFINITY, 1},
                           sign[ROWS] = {NAN, -INFINITY, 1};
  struct cb_evidence evidence = expectation("double", special);
  const struct emulation_evidence shown = {evidence.nonce, 1, sizeof other};
  assert_int_equal(judged(&evidence, shown, special, ""), CB_OK);
  assert_int_equal(judged(&evidence, shown, other, "row 0 is"), CB_ERR_WRONG);
  assert_int_equal(judged(&evidence, shown, sign, "row 1 is"), CB_ERR_WRONG);
  cb_evidence_release(&evidence);
}

static void data_in_the_text_are_read(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_evidence evidence;
  char text[800];
  int length = snprintf(text, sizeof text, "static const uint64_t k_data[] = {\n");
  for (int i = 0; i < 2 * ROWS; i++) {
    uint64_t word;
    memcpy(&word, &expected[i], sizeof word);
    length += snprintf(text + length, sizeof text - (size_t)length, "0x%llx,\n", (unsigned long long)word);
  }
  snprintf(text + length, sizeof text - (size_t)length, "};\n%s", text_of("double", ROWS, 0));
  assert_ok(cb_evidence_expect(&evidence, text, "", &diag));
  assert_non_null(evidence.numbers);
  assert_memory_equal(evidence.numbers, expected, sizeof expected);
  cb_evidence_release(&evidence);
}

static void data_that_end_early_expect_nothing(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_evidence evidence;
  write_file(scratch("data"), expected, sizeof expected, "", 0);
  for (int at = 1; at < 100; at += 49) {
    assert_ok(cb_evidence_expect(&evidence, text_of("double", ROWS, at), scratch("data"), &diag));
    assert_null(evidence.numbers);
    cb_evidence_release(&evidence);
  }
  assert_int_equal(cb_evidence_expect(&evidence, "int main() {}", "", &diag), CB_ERR_FORMAT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_expected_is_shown), cmocka_unit_test(less_than_all_is_no_evidence),
      cmocka_unit_test(every_row_is_compared),     cmocka_unit_test(infinity_and_nan_are_expected_as_they_are),
      cmocka_unit_test(data_in_the_text_are_read), cmocka_unit_test(data_that_end_early_expect_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
