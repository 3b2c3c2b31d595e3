// SPDX-License-Identifier: Apache-2.0
/* Files that cannot be read. Each file in tests/data/frontend/bad has a NAME.err beside it: the message that
 * reading it gives, with FILE for its path and '*' where a library's own words stand. Then: what is no file
 * at all, and every allocation of every reader failing in turn. Leaks show when this runs under
 * AddressSanitizer. */
#include "test_frontend.h"

#include "base/memory.h"

#include <dirent.h>
#include <fnmatch.h>
#include <omp.h>
#include <sys/stat.h>
#include <unistd.h>

static const char bad_directory[] = "tests/data/frontend/bad", good_directory[] = "tests/data/frontend/good";

typedef void visit(const char *path, const char *name);

static int visit_files(const char *directory, visit *visitor) {
  int count = 0;
  DIR *files = opendir(directory);
  assert_non_null(files);
  for (struct dirent *file; (file = readdir(files));) {
    char path[512];
    const size_t length = strlen(file->d_name);
    if (file->d_name[0] == '.' || (length > 4 && !strcmp(file->d_name + length - 4, ".err"))) continue;
    snprintf(path, sizeof path, "%s/%s", directory, file->d_name);
    visitor(path, file->d_name);
    count++;
  }
  closedir(files);
  return count;
}

/* The message with the path cut out. */
static void mask_path(char *masked, size_t size, const char *message, const char *path) {
  const size_t length = strlen(path);
  const int starts = !strncmp(message, path, length);
  snprintf(masked, size, "%s%s", starts ? "FILE" : "", message + (starts ? length : 0));
}

static void check_message(const struct cb_diag *diag, const char *path, const char *name) {
  char expected_path[600], masked[1100];
  size_t length;
  snprintf(expected_path, sizeof expected_path, "%s/%s.err", bad_directory, name);
  char *expected = load_file(expected_path, &length);
  expected[strcspn(expected, "\n")] = 0;
  mask_path(masked, sizeof masked, diag->message, path);
  if (fnmatch(expected, masked, FNM_NOESCAPE))
    fail_msg("%s:\n  wanted %s\n  got    %s", name, expected, masked);
  free(expected);
}

static void read_bad_file(const char *path, const char *name) {
  struct cb_csr csr;
  struct cb_diag diag = {0};
  const enum cb_status s = cb_matrix_read(&csr, path, NULL, &diag);
  if (!s) fail_msg("%s is read without an error", name);
  assert_true(s == CB_ERR_FORMAT || s == CB_ERR_UNSUPPORTED || s == CB_ERR_LIMIT);
  assert_int_equal(diag.status, s);
  assert_null(csr.row_ptr);
  check_message(&diag, path, name);
  assert_int_equal(cb_matrix_read(&csr, path, NULL, NULL), s); /* nobody needs to listen */
}

static void bad_files_say_what_is_wrong(void **unused) {
  (void)unused;
  assert_true(visit_files(bad_directory, read_bad_file) >= 60);
}

static void read_bad_bytes(const char *path, const char *name) {
  struct cb_csr csr;
  struct cb_diag diag = {0};
  size_t length;
  char *bytes = load_file(path, &length);
  assert_int_not_equal(cb_matrix_read_bytes(&csr, path, bytes, length, &diag), CB_OK);
  check_message(&diag, path, name);
  free(bytes);
}

static void the_same_from_memory(void **unused) {
  (void)unused;
  visit_files(bad_directory, read_bad_bytes);
}

static void what_is_no_file(void **unused) {
  (void)unused;
  struct cb_csr csr;
  struct cb_diag diag = {0};
  assert_int_equal(cb_matrix_read(&csr, "/nonexistent/matrix.mtx", NULL, &diag), CB_ERR_IO);
  assert_string_equal(diag.message, "cannot open '/nonexistent/matrix.mtx': No such file or directory");
  assert_int_equal(cb_matrix_read(&csr, "tests/data", NULL, &diag), CB_ERR_IO);
  assert_string_equal(diag.message, "cannot read 'tests/data': it is a directory");
  assert_int_equal(cb_matrix_read(&csr, "/dev/null", NULL, &diag), CB_ERR_FORMAT);
  assert_string_equal(diag.message, "/dev/null: the file is empty; fetch it again");
  assert_null(csr.row_ptr);
}

/* One error among many lines: the first in the text wins, for any number of threads and chunks. */
static void the_first_of_many_errors_wins(void **unused) {
  (void)unused;
  enum { LINES = 300000 };
  char *text = malloc(LINES * 12 + 100);
  assert_non_null(text);
  int length = sprintf(text, "%%%%MatrixMarket matrix coordinate real general\n9 9 %d\n", LINES);
  for (int i = 0; i < LINES; i++)
    length += sprintf(text + length, i == 200000                ? "1 77 1.5\n"
                                     : i > 200000 && i % 9 == 0 ? "x\n"
                                                                : "1 2 1.5\n");
  for (int threads = 1; threads <= 5; threads += 2) {
    struct cb_csr csr;
    struct cb_diag diag = {0};
    omp_set_num_threads(threads);
    assert_int_equal(cb_matrix_read_bytes(&csr, "m.mtx", text, (size_t)length, &diag), CB_ERR_FORMAT);
    assert_string_equal(diag.message,
                        "m.mtx:200003: column '77' is outside 1..9; correct it or the size line");
  }
  free(text);
}

static enum cb_status read_with_failing_memory(const char *path, uint64_t nth, int sticky, uint64_t *made) {
  struct cb_csr csr;
  struct cb_diag diag = {0};
  cb_memory_fail_at(nth, sticky);
  const enum cb_status s = cb_matrix_read(&csr, path, NULL, &diag);
  *made = cb_memory_fail_at(0, 0);
  if (!s && cb_csr_check(&csr, &diag)) fail_msg("%s: %s", path, diag.message);
  if (s) assert_null(csr.row_ptr);
  cb_csr_release(&csr);
  return s;
}

static void fail_each_allocation(const char *path, const char *name) {
  uint64_t made;
  const enum cb_status without = read_with_failing_memory(path, 0, 0, &made);
  for (int sticky = 0; sticky < 2; sticky++)
    for (uint64_t nth = 1; nth <= made; nth++) {
      uint64_t ignored;
      const enum cb_status s = read_with_failing_memory(path, nth, sticky, &ignored);
      /* Shrinking may fail without harm; and a broken file may be found broken before memory is. */
      if (s != CB_ERR_MEMORY && s != without) fail_msg("%s: allocation %d: status %d", name, (int)nth, s);
    }
}

static void memory_runs_out_in_every_reader(void **unused) {
  (void)unused;
  omp_set_num_threads(2);
  assert_true(visit_files(good_directory, fail_each_allocation) > 20);
  fail_each_allocation("generate:random,rows=50,cols=40", "random");
  fail_each_allocation("generate:rmat,scale=6", "rmat");
}

static void memory_runs_out_on_bad_files(void **unused) {
  (void)unused;
  visit_files(bad_directory, fail_each_allocation);
}

static void bad_specifications(void **unused) {
  (void)unused;
  static const char *const cases[][2] = {
      {"", "there is no shape ''; choose one of empty, "},
      {"cube", "there is no shape 'cube'; choose one of empty, "},
      {"dense,", "'' of shape 'dense' is not of the form KEY=VALUE"},
      {"dense,rows", "'rows' of shape 'dense' is not of the form KEY=VALUE"},
      {"dense,size=3", "shape 'dense' has no key 'size'; its keys are rows, cols, seed and values"},
      {"dense,rows=3,seed=18446744073709551616",
       "'seed=18446744073709551616' is not a whole number from 0 to 18446744073709551615; give one"},
      {"dense,rows=x", "'rows=x' of shape 'dense' is not a whole number; give one from 0 to 2147483647"},
      {"dense,rows=1.5", "'rows=1.5' of shape 'dense' is not a whole number"},
      {"dense,rows=", "'rows=' of shape 'dense' is not a whole number"},
      {"dense,rows=-1", "'rows=-1' of shape 'dense' is not a whole number"},
      {"dense,rows=2147483648",
       "'rows=2147483648' of shape 'dense' is out of range; give a number from 0 to"},
      {"random,density=1.5", "'density=1.5' of shape 'random' is out of range; give a number from 0 to 1"},
      {"dense,seed=x", "'seed=x' is not a whole number"},
      {"dense,values=odd", "'values=odd' is unknown; choose uniform, ones, integers, signed, tenths, hundredths or single"},
      {"rmat,a=0.9,b=0.9", "'a', 'b' and 'c' of shape 'rmat' add up to more than 1"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct cb_csr csr;
    struct cb_diag diag = {0};
    assert_int_equal(cb_matrix_generate(&csr, cases[i][0], &diag), CB_ERR_ARGUMENT);
    if (strncmp(diag.message, cases[i][1], strlen(cases[i][1])))
      fail_msg("'%s' gives '%s'", cases[i][0], diag.message);
    assert_null(csr.row_ptr);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bad_files_say_what_is_wrong),
      cmocka_unit_test(the_same_from_memory),
      cmocka_unit_test(what_is_no_file),
      cmocka_unit_test(the_first_of_many_errors_wins),
      cmocka_unit_test(memory_runs_out_in_every_reader),
      cmocka_unit_test(memory_runs_out_on_bad_files),
      cmocka_unit_test(bad_specifications),
  };
  return cmocka_run_group_tests_name("files that cannot be read", tests, NULL, NULL);
}
