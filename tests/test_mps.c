// SPDX-License-Identifier: Apache-2.0
/* Linear programs from MPS files: what each section means, both forms, and what a file's mistakes are told as. */
#include "test_frontend.h"

#include "base/memory.h"
#include "frontend/mps.h"

#include <math.h>

static struct cb_linear read_text(const char *text) {
  struct cb_linear linear;
  struct cb_diag diag = {0};
  if (cb_linear_read_bytes(&linear, "a.mps", text, strlen(text), &diag)) fail_msg("%s", diag.message);
  return linear;
}

#define HEAD "NAME A\nROWS\n N COST\n L ATMOST\n G ATLEAST\n E EQUAL\n"
#define COLS "COLUMNS\n X COST 1 ATMOST 2\n X EQUAL -3\n Y ATLEAST 4 COST 0.5d1\n Z EQUAL 1\n"
#define RIGHT "RHS\n R ATMOST 10 ATLEAST -2\n R COST -7 EQUAL 3\n"

static void assert_bounds(const double *lower, const double *upper, int at, double low, double high) {
  if (lower[at] != low || upper[at] != high) fail_msg("%d: %g to %g, not %g to %g", at, lower[at], upper[at], low, high);
}

static void sections_are_understood(void **unused) {
  static const struct entry entries[] = {{0, 0, 2}, {1, 1, 4}, {2, 0, -3}, {2, 2, 1}};
  (void)unused;
  struct cb_linear linear = read_text("* a comment\n" HEAD COLS RIGHT "\nENDATA\nwhatever follows");
  assert_entries(&linear.csr, 3, 3, entries, 4);
  assert_true(linear.cost[0] == 1 && linear.cost[1] == 5 && linear.cost[2] == 0);
  assert_true(linear.constant == 7 && !linear.maximise && !linear.integers);
  assert_bounds(linear.row_lower, linear.row_upper, 0, -INFINITY, 10);
  assert_bounds(linear.row_lower, linear.row_upper, 1, -2, INFINITY);
  assert_bounds(linear.row_lower, linear.row_upper, 2, 3, 3);
  for (int j = 0; j < 3; j++) assert_bounds(linear.lower, linear.upper, j, 0, INFINITY);
  assert_string_equal(linear.row_names[2], "EQUAL");
  assert_string_equal(linear.column_names[1], "Y");
  cb_linear_release(&linear);
  assert_null(linear.text);
}

static void other_objectives_are_left_out(void **unused) {
  (void)unused;
  struct cb_linear linear =
      read_text("NAME\nROWS\n N A\n N B\n G R\nCOLUMNS\n X A 1 R 1\n X B 2\n Y B 3 R 4\nRHS\n s A 5 B 6\nENDATA\n");
  assert_true(linear.csr.rows == 1 && linear.csr.nnz == 2);
  assert_true(linear.cost[0] == 1 && linear.cost[1] == 0 && linear.constant == -5);
  cb_linear_release(&linear);
}

/* The table of the format: which side a range widens. */
static void ranges_widen_rows(void **unused) {
  static const struct {
    const char *range;
    double low, high;
  } cases[] = {{"ATMOST 4", 6, 10},  {"ATMOST -4", 6, 10}, {"ATLEAST 4", -2, 2},
               {"ATLEAST -4", -2, 2}, {"EQUAL 4", 3, 7},    {"EQUAL -4", -1, 3}};
  (void)unused;
  for (int i = 0; i < 6; i++) {
    char text[600];
    snprintf(text, sizeof text, HEAD COLS RIGHT "RANGES\n %s\nENDATA\n", cases[i].range);
    struct cb_linear linear = read_text(text);
    assert_bounds(linear.row_lower, linear.row_upper, i / 2, cases[i].low, cases[i].high);
    for (int other = 0; other < 3; other++)
      if (other != i / 2) assert_true(linear.row_lower[other] != cases[i].low || other == 2);
    cb_linear_release(&linear);
  }
}

static void every_bound_has_its_meaning(void **unused) {
  static const struct {
    const char *bounds;
    double low, high;
    int integers;
  } cases[] = {{" UP B X 4\n", 0, 4, 0},
               {" UP B X -4\n", -INFINITY, -4, 0},
               {" LO B X -9\n UP B X -4\n", -9, -4, 0},
               {" LO B X 3\n", 3, INFINITY, 0},
               {" FX B X 2.5\n", 2.5, 2.5, 0},
               {" FR B X\n", -INFINITY, INFINITY, 0},
               {" MI B X\n", -INFINITY, INFINITY, 0},
               {" MI B X\n UP B X 5\n", -INFINITY, 5, 0},
               {" UP B X 5\n PL B X\n", 0, INFINITY, 0},
               {" BV B X\n", 0, 1, 1},
               {" LI B X 2\n UI B X 8\n", 2, 8, 1},
               {" up B X 1e30\n lo B X -1e20\n", -INFINITY, INFINITY, 0},
               {" UP X 4\n", 0, 4, 0},
               {" FR X\n", -INFINITY, INFINITY, 0},
               {" MI B X 0\n", -INFINITY, INFINITY, 0},
               {" UP B X inf\n", 0, INFINITY, 0}};
  (void)unused;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[600];
    snprintf(text, sizeof text, HEAD COLS "BOUNDS\n%sENDATA\n", cases[i].bounds);
    struct cb_linear linear = read_text(text);
    assert_bounds(linear.lower, linear.upper, 0, cases[i].low, cases[i].high);
    assert_bounds(linear.lower, linear.upper, 1, 0, INFINITY);
    assert_int_equal(linear.integers, cases[i].integers);
    cb_linear_release(&linear);
  }
}

static void markers_make_integers(void **unused) {
  (void)unused;
  struct cb_linear linear = read_text(HEAD "COLUMNS\n A EQUAL 1\n M1 'MARKER' 'INTORG'\n B EQUAL 1\n C EQUAL 2\n"
                                           " M2 'MARKER' 'INTEND'\n D EQUAL 1\nBOUNDS\n UP S C 9\nENDATA\n");
  assert_int_equal(linear.integers, 2);
  assert_bounds(linear.lower, linear.upper, 0, 0, INFINITY);
  assert_bounds(linear.lower, linear.upper, 1, 0, 1);
  assert_bounds(linear.lower, linear.upper, 2, 0, 9);
  assert_bounds(linear.lower, linear.upper, 3, 0, INFINITY);
  cb_linear_release(&linear);
}

static void the_sense_is_told(void **unused) {
  static const struct {
    const char *text;
    int maximise;
  } cases[] = {{"OBJSENSE\n    MAX\n", 1}, {"OBJSENSE MAX\n", 1},      {"OBJSENSE\nMAXIMIZE\n", 1},
               {"OBJSENSE\n MIN\n", 0},    {"OBJSENSE minimise\n", 0}, {"", 0}};
  (void)unused;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[600];
    snprintf(text, sizeof text, "NAME\n%s" HEAD COLS "ENDATA\n", cases[i].text);
    memcpy(strstr(text + 5, "NAME A"), "* NAME", 6);
    struct cb_linear linear = read_text(text);
    assert_int_equal(linear.maximise, cases[i].maximise);
    cb_linear_release(&linear);
  }
}

/* Names with blanks, no name of the right side's set, CR before LF. */
static const char fixed[] = "NAME          WITH BLANKS\r\n"
                            "ROWS\r\n"
                            " N  THE COST\r\n"
                            " L  ROW 1\r\n"
                            " E  ROW 2\r\n"
                            "COLUMNS\r\n"
                            "    COL 1     THE COST           1.5   ROW 1              2.0\r\n"
                            "    COL 1     ROW 2             -1.0\r\n"
                            "    MARKER                 'MARKER'                 'INTORG'\r\n"
                            "    COL 2     ROW 2              4.0\r\n"
                            "    MARKER                 'MARKER'                 'INTEND'\r\n"
                            "RHS\r\n"
                            "              ROW 1              8.0   ROW 2              1.0\r\n"
                            "RANGES\r\n"
                            "    RNG       ROW 1              3.0\r\n"
                            "BOUNDS\r\n"
                            " UP BND       COL 1              6.0\r\n"
                            " MI BND       COL 2\r\n"
                            "ENDATA\r\n";

static void fixed_form_is_read_where_the_free_one_makes_no_sense(void **unused) {
  static const struct entry entries[] = {{0, 0, 2}, {1, 0, -1}, {1, 1, 4}};
  char wrong[sizeof fixed];
  struct cb_linear linear = read_text(fixed);
  struct cb_diag diag = {0};
  (void)unused;
  assert_entries(&linear.csr, 2, 2, entries, 3);
  assert_string_equal(linear.column_names[0], "COL 1");
  assert_true(linear.cost[0] == 1.5 && linear.integers == 1);
  assert_bounds(linear.row_lower, linear.row_upper, 0, 5, 8);
  assert_bounds(linear.row_lower, linear.row_upper, 1, 1, 1);
  assert_bounds(linear.lower, linear.upper, 0, 0, 6);
  assert_bounds(linear.lower, linear.upper, 1, -INFINITY, INFINITY);
  cb_linear_release(&linear);
  memcpy(wrong, fixed, sizeof fixed);
  *strstr(wrong, "ROW 1              2.0") = 'X'; /* what is told is what is wrong as free form */
  assert_int_equal(cb_linear_read_bytes(&linear, "a.mps", wrong, strlen(wrong), &diag), CB_ERR_FORMAT);
  assert_string_equal(diag.message, "a.mps:3: a line of ROWS has a type and a name");
  memcpy(wrong, fixed, sizeof fixed);
  strstr(wrong, "COL 2     ROW 2")[8] = 'X'; /* of a name that is too long, not a part is taken */
  assert_int_equal(cb_linear_read_bytes(&linear, "a.mps", wrong, strlen(wrong), &diag), CB_ERR_FORMAT);
}

static const struct {
  const char *text, *message;
} bad[] = {
    {"", "a.mps:0: the file is empty"},
    {"NAME A\n", "a.mps:1: the file ends without ENDATA; fetch it again"},
    {"NAME A\nROWS\n N COST\nENDATA\n", "a.mps:4: there are no ROWS or no COLUMNS"},
    {"NAME A\n N COST\n", "a.mps:2: a line of data stands in no section; sections begin in the first column"},
    {"NAME A\nROWS\n N\n", "a.mps:3: a line of ROWS has a type and a name"},
    {"NAME A\nROWS\n Q COST\n", "a.mps:3: 'Q' is no type of a row; it is N, L, G or E"},
    {"NAME A\nROWS\n NN COST\n", "a.mps:3: 'NN' is no type of a row; it is N, L, G or E"},
    {"NAME A\nROWS\n N A\n L A\n", "a.mps:4: row 'A' comes twice"},
    {"NAME A\nROWS\nROWS\n", "a.mps:3: section 'ROWS' comes twice"},
    {"NAME A\nCOLUMNS\n", "a.mps:2: COLUMNS stand behind ROWS"},
    {"NAME A\nROWS\n N A\nRHS\n", "a.mps:4: 'RHS' stands behind COLUMNS"},
    {"NAME A\nQUADOBJ\n", "a.mps:2: section 'QUADOBJ' is none of a linear program; *"},
    {"OBJSENSE\n UP\n", "a.mps:2: 'UP' is no sense of the objective; it is MIN or MAX"},
    {HEAD "COLUMNS\n X COST\n", "a.mps:8: a line of COLUMNS has a column, and one or two times a row and a number"},
    {HEAD "COLUMNS\n X NOWHERE 1\n", "a.mps:8: there is no row 'NOWHERE'"},
    {HEAD "COLUMNS\n X COST one\n", "a.mps:8: 'one' is no number"},
    {HEAD "COLUMNS\n X COST nan\n", "a.mps:8: 'nan' is no number"},
    {HEAD "COLUMNS\n X COST 1e30\n", "a.mps:8: '1e30' is no finite number below 1e20"},
    {HEAD "COLUMNS\n X EQUAL 1\n X EQUAL 1\n", "a.mps:9: the column has a second entry in row 'EQUAL'"},
    {HEAD "COLUMNS\n X COST 1\n X COST 1\n", "a.mps:9: the column has a second entry in row 'COST'"},
    {HEAD "COLUMNS\n X EQUAL 1\n Y EQUAL 1\n X COST 1\n",
     "a.mps:10: column 'X' comes twice; its entries stand together"},
    {HEAD "COLUMNS\n M 'MARKER' 'SOSORG'\n", "a.mps:8: marker 'SOSORG' is not known; it is 'INTORG' or 'INTEND'"},
    {HEAD COLS "RHS\n R\n", "a.mps:13: a line of RHS or RANGES has a set, and one or two times a row and a number"},
    {HEAD COLS "RHS\n R NOWHERE 1\n", "a.mps:13: there is no row 'NOWHERE'"},
    {HEAD COLS "RHS\n R COST inf\n", "a.mps:13: 'inf' is no finite number below 1e20"},
    {HEAD COLS "RHS\n R EQUAL 1\n S ATMOST 1\n", "a.mps:14: set 'S' is a second one beside 'R'; leave one"},
    {HEAD COLS "RANGES\n R COST 1\n", "a.mps:13: the objective 'COST' has no range"},
    {HEAD COLS "BOUNDS\n XX B X 1\n", "a.mps:13: 'XX' is no type of a bound; *"},
    {HEAD COLS "BOUNDS\n SC B X 1\n", "a.mps:13: semi-continuous columns (SC) make no linear program"},
    {HEAD COLS "BOUNDS\n UP B\n", "a.mps:13: a bound has a type, a set, a column and a number"},
    {HEAD COLS "BOUNDS\n FR\n", "a.mps:13: a bound has a type, a set, a column"},
    {HEAD COLS "BOUNDS\n UP B Q 1\n", "a.mps:13: there is no column 'Q'"},
    {HEAD COLS "BOUNDS\n UP B X y\n", "a.mps:13: 'y' is no number"},
};

static void mistakes_are_told_with_their_line(void **unused) {
  (void)unused;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    struct cb_linear linear;
    struct cb_diag diag = {0};
    const size_t length = strlen(bad[i].message), shown = bad[i].message[length - 1] == '*' ? length - 1 : 500;
    const enum cb_status s = cb_linear_read_bytes(&linear, "a.mps", bad[i].text, strlen(bad[i].text), &diag);
    assert_true(s == CB_ERR_FORMAT || s == CB_ERR_UNSUPPORTED);
    if (strncmp(diag.message, bad[i].message, shown) != 0) fail_msg("%s\n%s", bad[i].message, diag.message);
    assert_null(linear.text);
  }
}

/* Any piece of a file, and any byte of it changed: an answer, and nothing left behind. */
static void damage_is_survived(void **unused) {
  static const char text[] = HEAD COLS RIGHT "RANGES\n R EQUAL 1\nBOUNDS\n UP B X 1\n FR B Y\nENDATA\n";
  const char *const texts[] = {text, fixed};
  (void)unused;
  for (int t = 0; t < 2; t++) {
    char *const copy = strdup(texts[t]);
    const size_t length = strlen(copy);
    for (size_t i = 0; i < 2 * length; i++) {
      struct cb_linear linear;
      struct cb_diag diag = {0};
      const char kept = copy[i % length];
      if (i >= length) copy[i - length] = (char)(i % 7 ? " \t1-*\0N"[i % 7] : '\n');
      const enum cb_status s = cb_linear_read_bytes(&linear, "a.mps", copy, i < length ? i : length, &diag);
      copy[i % length] = kept;
      if (s) assert_true(!linear.text && !strncmp(diag.message, "a.mps", 5));
      else cb_linear_release(&linear);
    }
    free(copy);
  }
}

static void short_memory_is_told(void **unused) {
  static const char text[] = HEAD COLS RIGHT "RANGES\n R EQUAL 1\nENDATA\n";
  uint64_t nth = 1;
  (void)unused;
  for (;; nth++) {
    struct cb_linear linear;
    struct cb_diag diag = {0};
    cb_memory_fail_at(nth, 0);
    const enum cb_status s = cb_linear_read_bytes(&linear, "a.mps", text, sizeof text - 1, &diag);
    cb_memory_fail_at(0, 0);
    cb_linear_release(&linear);
    if (!s) break;
    assert_int_equal(s, CB_ERR_MEMORY);
  }
  assert_in_range(nth, 12, 100);
}

/* Many names, so that tables grow; a column without entries but its cost. */
static void many_names_are_found(void **unused) {
  enum { MANY = 3000 };
  char *text = malloc(200 * MANY), *at = text;
  (void)unused;
  at += sprintf(at, "NAME\nROWS\n N C\n");
  for (int i = 0; i < MANY; i++) at += sprintf(at, " G r%d\n", i);
  at += sprintf(at, "COLUMNS\n");
  for (int i = 0; i < MANY; i++) at += sprintf(at, i % 3 ? " c%d r%d %d C 1\n" : " c%d C 2\n", i, (7 * i) % MANY, i);
  at += sprintf(at, "RHS\n");
  for (int i = 0; i < MANY; i++) at += sprintf(at, " s r%d %d\n", MANY - 1 - i, i);
  sprintf(at, "ENDATA\n");
  struct cb_linear linear = read_text(text);
  assert_true(linear.csr.rows == MANY && linear.csr.cols == MANY && linear.csr.nnz == MANY - MANY / 3);
  for (int i = 0; i < MANY; i++) {
    assert_true(linear.row_lower[i] == MANY - 1 - i && linear.cost[i] == (i % 3 ? 1 : 2));
    if (i % 3) assert_int_equal(linear.csr.col_idx[cb_csr_row(&linear.csr, (7 * i) % MANY)], i);
  }
  cb_linear_release(&linear);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sections_are_understood),
      cmocka_unit_test(other_objectives_are_left_out),
      cmocka_unit_test(ranges_widen_rows),
      cmocka_unit_test(every_bound_has_its_meaning),
      cmocka_unit_test(markers_make_integers),
      cmocka_unit_test(the_sense_is_told),
      cmocka_unit_test(fixed_form_is_read_where_the_free_one_makes_no_sense),
      cmocka_unit_test(mistakes_are_told_with_their_line),
      cmocka_unit_test(damage_is_survived),
      cmocka_unit_test(short_memory_is_told),
      cmocka_unit_test(many_names_are_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
