// SPDX-License-Identifier: Apache-2.0
/* Statements: what is read, what is refused and where, the one form of all texts of a meaning, and numbers. */
#include "tests/support.h"

#include "analysis/statements/statements.h"

#include <math.h>

static struct cb_statements *parsed(const char *text) {
  struct cb_statements *statements;
  struct cb_diag diag = {0};
  assert_ok(cb_statements_parse(&statements, text, "epilogue", 1, &diag));
  return statements;
}

static void check_canonical(const char *text, const char *expected) {
  struct cb_statements *statements = parsed(text);
  struct cb_text printed = {0}, again = {0};
  cb_statements_print(&printed, statements);
  assert_string_equal(cb_text_string(&printed), expected);
  cb_free(statements);
  statements = parsed(cb_text_string(&printed));
  cb_statements_print(&again, statements);
  assert_string_equal(cb_text_string(&again), expected);
  cb_text_release(&printed);
  cb_text_release(&again);
  cb_free(statements);
}

static void texts_of_one_meaning_have_one_form(void **state) {
  (void)state;
  check_canonical("in b;out r;r=b-ax;", "in b;\nout r;\nr = (b - ax);\n");
  check_canonical(" in b ; // the right side\n out r;\n\tr = ((b) - (ax)) ; ", "in b;\nout r;\nr = (b - ax);\n");
  check_canonical("in float a, b; out double r; r = a + b * 2.50;",
                  "in float a;\nin float b;\nout double r;\nr = (a + (b * 2.5));\n");
  check_canonical("out r; r = 1 - 2 - 3 / 4 / 5;", "out r;\nr = ((1.0 - 2.0) - ((3.0 / 4.0) / 5.0));\n");
  check_canonical("inout x; scalar w; x = -x * w <= 1e3 ? min(x, row) : fma(x, w, ax);",
                  "inout x;\nscalar w;\nx = ((((-x) * w) <= 1000.0) ? min(x, row) : fma(x, w, ax));\n");
}

static void reductions_have_one_form(void **state) {
  (void)state;
  check_canonical("in b; s = dot(b, ax); t = sum(b); m = max(abs(b));",
                  "in b;\ns = sum((b * ax));\nt = sum(b);\nm = max(abs(b));\n");
  check_canonical("out r; device d; r = max(ax, d); m = max(max(ax, d));",
                  "out r;\ndevice d;\nr = max(ax, d);\nm = max(max(ax, d));\n");
}

static void check_refused(const char *text, const char *message) {
  struct cb_statements *statements;
  struct cb_diag diag = {0};
  const enum cb_status s = cb_statements_parse(&statements, text, "epilogue", 1, &diag);
  if (!s) fail_msg("taken: %s", text);
  assert_null(statements);
  if (strcmp(diag.message, message) != 0) fail_msg("%s: %s", text, diag.message);
}

static void what_is_wrong_is_told_with_its_place(void **state) {
  (void)state;
  check_refused("in b; out r; r = b - c;", "epilogue:1:22: there is no 'c' here");
  check_refused("in b;\nout r;\n  r = b - ;", "epilogue:3:11: a number is expected here, not ';'");
  check_refused("out r; r = ax > 1;", "epilogue:1:12: a number is expected here, not a comparison");
  check_refused("out r; r = ax ? 1 : 2;", "epilogue:1:12: a comparison is expected here, not a number");
  check_refused("out r; r = (ax > 1) + 2;", "epilogue:1:12: a number is expected here, not a comparison");
  check_refused("out r; r = 2 + (ax > 1);", "epilogue:1:16: a number is expected here, not a comparison");
  check_refused("out r; r = max(ax);",
                "epilogue:1:8: 'r' is a vector, and the right side is one number for all rows");
  check_refused("out r; r = 1 + max(ax);", "epilogue:1:16: 'max' of one number is over all rows: it is the whole "
                                           "right side of a statement");
  check_refused("out r; r = 1 + sum(ax);", "epilogue:1:16: 'sum' is the whole right side of a statement");
  check_refused("out r; s = sum(ax); r = s;", "epilogue:1:25: 's' is known only when all rows are done");
  check_refused("out r; r = r + 1;",
                "epilogue:1:12: 'r' is not assigned yet; declare it 'inout' to read what is there");
  check_refused("out r; r = ax; r = 1;", "epilogue:1:16: 'r' is assigned already");
  check_refused("in b; b = ax;", "epilogue:1:7: 'b' cannot be assigned: it is no 'out' or 'inout' vector");
  check_refused("in b; in b; s = sum(b);", "epilogue:1:10: there is a 'b' already");
  check_refused("in min; s = sum(min);", "epilogue:1:4: a name is expected here, not 'min'");
  check_refused("out r; q = ax;", "epilogue:1:15: 'r' is declared 'out' and never assigned");
  check_refused("q = ax;", "epilogue:1:8: 'q' is assigned and never read; declare it 'out' if it is a vector");
  check_refused("", "epilogue:1:1: nothing is written: no vector, and no result");
  check_refused("out r; r = ax", "epilogue:1:14: ';' is expected here, not 'the end'");
  check_refused("#define r ax\nout r; r = 1;", "epilogue:1:1: '#' has no meaning here");
  check_refused("out r; r = x[0];", "epilogue:1:13: '[' has no meaning here");
  check_refused("out r; r = 1e999;", "epilogue:1:12: a number beyond the range of double");
  check_refused("out r; r = 12abc;", "epilogue:1:12: a number that is none, or has too many digits");
  check_refused("out r; r = fma(1, 2);", "epilogue:1:12: 'fma' takes 3 numbers");
}

static void what_is_too_long_is_refused(void **state) {
  (void)state;
  struct cb_statements *statements;
  struct cb_diag diag = {0};
  char text[4096] = "out r; r = ";
  for (int i = 0; i < 400; i++) strcat(text, "(");
  strcat(text, "ax;");
  assert_int_equal(cb_statements_parse(&statements, text, "epilogue", 1, &diag), CB_ERR_LIMIT);
  strcpy(text, "out r; r = ax");
  for (int i = 0; i < 600; i++) strcat(text, "+ax");
  strcat(text, ";");
  assert_int_equal(cb_statements_parse(&statements, text, "epilogue", 1, &diag), CB_ERR_LIMIT);
  strcpy(text, "");
  for (int i = 0; i < 60; i++) sprintf(text + strlen(text), "in v%d;", i);
  assert_int_equal(cb_statements_parse(&statements, text, "epilogue", 1, &diag), CB_ERR_LIMIT);
  strcpy(text, "");
  for (int i = 0; i < 9; i++) snprintf(text + strlen(text), 24, "s%d = sum(ax);", i);
  assert_int_equal(cb_statements_parse(&statements, text, "epilogue", 1, &diag), CB_ERR_LIMIT);
  cb_memory_fail_at(1, 1);
  assert_int_equal(cb_statements_parse(&statements, "s = sum(ax);", "epilogue", 1, &diag), CB_ERR_MEMORY);
  cb_memory_fail_at(0, 0);
}

/* Any bytes are read or refused, and what is read is printed so that it is read again. */
static void any_text_ends_well(void **state) {
  static const char *const words[] = {"in ", "out ", "scalar ", "a", "b", "r", "ax", "row", "=", ";", "+", "-",
                                      "*",   "/",    "(",       ")", "?", ":", ",",  "<",   "1", "2.5", "max", "sum",
                                      "fma", "abs",  "// x\n",  "\n", "#", "\xc3"};
  uint64_t seed = 7;
  int taken = 0;
  (void)state;
  for (int i = 0; i < 20000; i++) {
    struct cb_statements *statements;
    struct cb_diag diag = {0};
    char text[512] = "in a; out r; r = ";
    for (uint64_t w = draw(&seed) % 14; w > 0; w--)
      strcat(text, words[draw(&seed) % (sizeof words / sizeof *words)]);
    strcat(text, draw(&seed) % 4 ? ";" : "");
    if (cb_statements_parse(&statements, text, "epilogue", 1, &diag)) continue;
    struct cb_text printed = {0};
    cb_statements_print(&printed, statements);
    check_canonical(text, cb_text_string(&printed));
    cb_text_release(&printed);
    cb_free(statements);
    taken++;
  }
  assert_true(taken > 100);
}

static double value_of(const struct cb_statements *statements, const double *values, const char *name) {
  return values[cb_statements_find(statements, name)];
}

static void numbers_are_those_of_the_type(void **state) {
  (void)state;
  struct cb_statements *s =
      parsed("in a; out r, q, f, c, m; r = a / 3 + ax * ax; q = sqrt(abs(a)); f = fma(a, a, -ax);"
             "big = a > ax; c = big ? 1 : row; m = max(a, ax) - min(a, ax); t = dot(r, q);");
  double v[CB_MOST_NAMES] = {0};
  v[cb_statements_find(s, "a")] = -0.7;
  v[cb_statements_find(s, "ax")] = 1.1;
  v[cb_statements_find(s, "row")] = 12;
  cb_statements_row(s, CB_F64, v);
  assert_true(value_of(s, v, "r") == -0.7 / 3 + 1.1 * 1.1);
  assert_true(value_of(s, v, "q") == sqrt(0.7));
  assert_true(value_of(s, v, "f") == fma(-0.7, -0.7, -1.1));
  assert_true(value_of(s, v, "c") == 12);
  assert_true(value_of(s, v, "m") == 1.1 - -0.7);
  assert_true(value_of(s, v, "t") == value_of(s, v, "r") * value_of(s, v, "q"));
  cb_statements_row(s, CB_F32, v);
  const float a = -0.7f, ax = 1.1f;
  const float third = a / 3.0f, square = ax * ax;
  assert_true(value_of(s, v, "r") == (double)(third + square));
  assert_true(value_of(s, v, "q") == (double)sqrtf(0.7f));
  assert_true(value_of(s, v, "f") == (double)fmaf(a, a, -ax));
  cb_free(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(texts_of_one_meaning_have_one_form),
      cmocka_unit_test(reductions_have_one_form),
      cmocka_unit_test(what_is_wrong_is_told_with_its_place),
      cmocka_unit_test(what_is_too_long_is_refused),
      cmocka_unit_test(any_text_ends_well),
      cmocka_unit_test(numbers_are_those_of_the_type),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
