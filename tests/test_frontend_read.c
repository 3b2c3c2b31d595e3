// SPDX-License-Identifier: Apache-2.0
/* Reading every format against matrices checked by hand, and writing what is read back bit by bit. */
#include "test_frontend.h"

#include <archive.h>
#include <archive_entry.h>
#include <math.h>
#include <omp.h>
#include <unistd.h>

#define GENERAL "%%MatrixMarket matrix coordinate real general\n"
#define LENGTH(array) (int64_t)(sizeof(array) / sizeof *(array))

static void read_text(struct cb_csr *csr, const char *name, const char *text) {
  struct cb_diag diag = {0};
  char *copy = malloc(strlen(text) + 1); /* its end is where the text ends: a sanitizer sees reads beyond */
  assert_non_null(copy);
  memcpy(copy, text, strlen(text));
  if (cb_matrix_read_bytes(csr, name, copy, strlen(text), &diag)) fail_msg("%s\n%s", diag.message, text);
  free(copy);
}

static void check_text(const char *text, int64_t rows, int64_t cols, const struct entry *entries,
                       int64_t count) {
  struct cb_csr csr;
  read_text(&csr, "some.mtx", text);
  assert_entries(&csr, rows, cols, entries, count);
  assert_string_equal(csr.name, "some");
  cb_csr_release(&csr);
}

/* ---- Matrix Market */

static void spellings_of_one_matrix(void **unused) {
  (void)unused;
  static const struct entry entries[] = {{0, 1, 1.5}, {1, 0, -2}, {2, 2, 300}};
  static const char *const texts[] = {
      GENERAL "3 3 3\n1 2 1.5\n2 1 -2\n3 3 300\n",
      GENERAL "3 3 3\n1 2 1.5\n2 1 -2\n3 3 300", /* no final newline */
      "%%MatrixMarket matrix coordinate real general\r\n3 3 3\r\n1 2 1.5\r\n2 1 -2\r\n3 3 300\r\n",
      "%%MatrixMarket matrix coordinate real general\r\n3 3 3\r\n1 2 1.5\r\n2 1 -2\r\n3 3 300\r",
      "%%MATRIXMARKET MATRIX Coordinate REAL General\n3 3 3\n1 2 1.5\n2 1 -2\n3 3 300\n",
      "%%matrixmarket\tmatrix  coordinate double general \n3 3 3\n1 2 1.5\n2 1 -2\n3 3 300\n",
      "\xef\xbb\xbf" GENERAL "3 3 3\n1 2 1.5\n2 1 -2\n3 3 300\n",
      GENERAL "% note\n%\n\n  % more\n\t\n  3\t3  3 \n1 2 1.5\n2 1 -2\n3 3 300\n",
      GENERAL "3 3 3\n\n1 2 1.5\n% between\n2 1 -2\n   \n3 3 300\n\n% last\n\n",
      GENERAL "3 3 3\n   1   2   1.5   \n\t2\t1\t-2\t\n 3 3 300 % why\n",
      GENERAL "3 3 3\n+1 +2 +1.5\n002 0001 -2.000\n3 3 +3e+02\n",
      GENERAL "3 3 3\n1 2 1.5D0\n2 1 -0.2d+1\n3 3 3.E2\n",
      GENERAL "3 3 3\n3 3 300\n1 2 1.5\n2 1 -2\n",                  /* any order */
      GENERAL "3 3 5\n3 3 100\n1 2 1.5\n2 1 -2\n3 3 50\n3 3 150\n", /* duplicates are summed */
      GENERAL "3 3 3 % sizes\n1 2 1.5\n2 1 -2\n3 3 300\n",
      "%%MatrixMarket matrix array real general\n3 3\n0\n-2\n0\n1.5\n0\n0\n0\n-0.0\n300\n",
      "%%MatrixMarket matrix array real general\n3 3\n\n0\n-2\n% c\n0\n 1.5 \n0\n0\n0\n0 % c\n300",
  };
  for (int i = 0; i < LENGTH(texts); i++) check_text(texts[i], 3, 3, entries, 3);
}

static void symmetries(void **unused) {
  (void)unused;
  static const struct entry full[] = {{0, 0, 1}, {0, 1, 2}, {1, 0, 2}, {1, 2, 3}, {2, 1, 3}};
  check_text("%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n1 1 1\n2 1 2\n3 2 3\n", 3, 3, full, 5);
  check_text("%%MatrixMarket matrix coordinate real Hermitian\n3 3 3\n1 1 1\n1 2 2\n2 3 3\n", 3, 3, full, 5);
  check_text("%%MatrixMarket matrix coordinate integer symmetric\n3 3 4\n1 1 1\n1 2 1\n2 1 1\n3 2 3\n", 3, 3,
             full, 5);
  check_text("%%MatrixMarket matrix array real symmetric\n3 3\n1\n2\n0\n0\n3\n0\n", 3, 3, full, 5);
  static const struct entry skew[] = {{0, 1, -2}, {1, 0, 2}, {1, 2, 3}, {2, 1, -3}};
  check_text("%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 2\n2 1 2\n2 3 3\n", 3, 3, skew, 4);
  check_text("%%MatrixMarket matrix array real skew-symmetric\n3 3\n2\n0\n-3\n", 3, 3, skew, 4);
  static const struct entry zero[] = {{0, 0, 0}, {0, 1, -2}, {1, 0, 2}};
  check_text("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 2\n1 1 0\n2 1 2\n", 2, 2, zero, 3);
  struct cb_csr csr;
  read_text(&csr, "s.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n1 1\n2 1\n");
  assert_entries(&csr, 2, 2, (const struct entry[]){{0, 0, 1}, {0, 1, 1}, {1, 0, 1}}, 3);
  assert_true(csr.pattern && csr.symmetric_file);
  cb_csr_release(&csr);
}

static void explicit_zeros_stay(void **unused) {
  (void)unused;
  static const struct entry entries[] = {{0, 0, 0}, {0, 1, -0.0}, {1, 1, 0}};
  check_text(GENERAL "2 2 4\n1 1 0\n1 2 -0\n2 2 1\n2 2 -1\n", 2, 2, entries, 3);
}

static void values_of_every_kind(void **unused) {
  (void)unused;
  static const struct entry entries[] = {{0, 0, 123456789012345680000.0},
                                         {1, 0, INFINITY},
                                         {2, 0, -INFINITY},
                                         {3, 0, 0x1.8p4},
                                         {4, 0, 5e-324},
                                         {5, 0, 1e300},
                                         {6, 0, 1.0 / 3}};
  check_text(
      "%%MatrixMarket matrix coordinate integer general\n7 1 7\n1 1 123456789012345678901\n2 1 inf\n3 1 "
      "-Infinity\n4 1 0x1.8p4\n5 1 4.9e-324\n6 1 1D300\n7 1 0.33333333333333331483\n",
      7, 1, entries, 7);
  struct cb_csr csr;
  read_text(&csr, "n.mtx", GENERAL "1 2 2\n1 1 nan\n1 2 inf\n");
  assert_true(isnan(csr.values[0]) && isinf(csr.values[1]));
  cb_csr_release(&csr);
  read_text(&csr, "n.mtx", "%%MatrixMarket matrix array real general\n1 2\nNaN\n0\n");
  assert_int_equal(csr.nnz, 1);
  cb_csr_release(&csr);
}

static void matrices_without_entries(void **unused) {
  (void)unused;
  check_text(GENERAL "0 0 0\n", 0, 0, NULL, 0);
  check_text(GENERAL "0 0 0", 0, 0, NULL, 0);
  check_text(GENERAL "5 0 0\n\n", 5, 0, NULL, 0);
  check_text(GENERAL "0 7 0\n% nothing\n", 0, 7, NULL, 0);
  check_text("%%MatrixMarket matrix array real general\n0 3\n", 0, 3, NULL, 0);
  check_text("%%MatrixMarket matrix array real skew-symmetric\n1 1\n", 1, 1, NULL, 0);
  check_text("%%MatrixMarket matrix coordinate pattern general\n3 3 0\n", 3, 3, NULL, 0);
}

static void the_largest_sizes(void **unused) {
  (void)unused;
  check_text(GENERAL "2 2147483647 2\n1 2147483647 1\n2 1 2\n", 2, INT32_MAX,
             (const struct entry[]){{0, INT32_MAX - 1, 1}, {1, 0, 2}}, 2);
}

/* ---- packed */

static const struct entry small[] = {{0, 0, 1.5}, {0, 4, -2},   {1, 1, 0},
                                     {3, 0, 3},   {3, 2, 4.25}, {3, 4, 1e-3}};

static void packed_files(void **unused) {
  (void)unused;
  static const struct {
    const char *file, *name;
  } files[] = {
      {"small.mtx", "small"},
      {"small.mtx.gz", "small"},
      {"small.mtx.zst", "small"},
      {"small.mtx.xz", "small"},
      {"small.mtx.bz2", "small"},
      {"small.tar.gz", "small"},
      {"small.tar", "small"},
      {"small.tar.zst", "small"},
      {"small.tar.xz", "small"},
      {"small.tar.bz2", "small"},
      {"padded.mtx.gz", "padded"},
      {"csr.npz", "csr"},
      {"renamed-archive.tar.gz", "renamed-archive"},
      {"only-member.tar.gz", "only-member"},
      {"own-name.tar.gz", "own-name"}, /* the one of two that has the archive's name, though not its folder's */
      {"csc.npz", "csc"},
      {"two-frames.mtx.gz", "two-frames"},
      {"coo.npz", "coo"},
      {"array.npz", "array"},
      {"unicode-format.npz", "unicode-format"},
      {"wide-indices.npz", "wide-indices"},
      {"big-endian.npz", "big-endian"},
      {"unsorted.npz", "unsorted"},
  };
  for (int i = 0; i < LENGTH(files); i++) {
    char path[256];
    struct cb_csr csr;
    struct cb_diag diag = {0};
    snprintf(path, sizeof path, "tests/data/frontend/good/%s", files[i].file);
    if (cb_matrix_read(&csr, path, NULL, &diag)) fail_msg("%s", diag.message);
    assert_entries(&csr, 4, 5, small, 6);
    assert_string_equal(csr.name, files[i].name);
    assert_false(csr.pattern || csr.symmetric_file);
    cb_csr_release(&csr);
  }
}

static void packed_edge_lists(void **unused) {
  (void)unused;
  static const char *const packings[] = {"gz", "zst", "xz", "bz2"};
  struct cb_csr plain = {0};
  for (int i = 0; i < 2 * LENGTH(packings); i++) {
    char path[256];
    struct cb_csr csr;
    struct cb_diag diag = {0};
    snprintf(path, sizeof path, "tests/data/frontend/good/%sedges.txt.%s", i % 2 ? "two-" : "", packings[i / 2]);
    if (cb_matrix_read(&csr, path, NULL, &diag)) fail_msg("%s", diag.message);
    assert_int_equal(csr.rows, 37);
    assert_true(!i || same_matrix(&csr, &plain));
    if (i) cb_csr_release(&csr);
    else plain = csr;
  }
  cb_csr_release(&plain);
}

static void numpy_types(void **unused) {
  (void)unused;
  static const char *const types[] = {"float32", "int8", "int16", "int32", "int64", "uint8", "bool"};
  for (int i = 0; i < LENGTH(types); i++) {
    char path[256];
    struct cb_csr csr;
    const double sign = strcmp(types[i], "uint8") ? -1 : 1;
    const struct entry numbers[] = {{0, 0, 2}, {1, 1, 3 * sign}, {2, 1, 7}, {2, 2, 1}};
    const struct entry truths[] = {{0, 0, 1}, {1, 1, 1}, {2, 1, 1}, {2, 2, 1}};
    snprintf(path, sizeof path, "tests/data/frontend/good/type-%s.npz", types[i]);
    assert_int_equal(cb_matrix_read(&csr, path, NULL, NULL), CB_OK);
    assert_entries(&csr, 3, 3, strcmp(types[i], "bool") ? numbers : truths, 4);
    cb_csr_release(&csr);
  }
}

/* ---- edge lists */

static void edge_lists(void **unused) {
  (void)unused;
  static const struct entry plain[] = {{0, 1, 1}, {1, 3, 1}, {3, 0, 1}},
                            weighted[] = {{0, 2, 0.5}, {2, 0, -1}};
  static const char *const plains[] = {
      "# Directed graph\n# FromNodeId\tToNodeId\n0\t1\n3\t0\n1\t3\n",
      "0 1\n1 3\n3 0",
      "0,1\r\n1,3\r\n3,0\r\n",
      "% konect has more words\n0 1\n\n# mid\n1 , 3\n 3 0 \n",
      "+0 1\n1 3 # note\n3 0\n",
  };
  struct cb_csr csr;
  for (int i = 0; i < LENGTH(plains); i++) {
    read_text(&csr, "graph.txt", plains[i]);
    assert_entries(&csr, 4, 4, plain, 3);
    assert_true(csr.pattern);
    cb_csr_release(&csr);
  }
  static const char *const weights[] = {"0 2 0.5\n2 0 -1\n", "# w\n2,0,-1\n0,2,5e-1\n", "0\t2\t.5\n2\t0\t-1"};
  for (int i = 0; i < LENGTH(weights); i++) {
    read_text(&csr, "dir.d/graph.edges", weights[i]);
    assert_entries(&csr, 3, 3, weighted, 2);
    assert_false(csr.pattern);
    assert_string_equal(csr.name, "graph");
    cb_csr_release(&csr);
  }
}

/* The largest number counts, in whichever column it stands. */
static void an_edge_list_has_as_many_nodes_as_either_column_says(void **unused) {
  (void)unused;
  static const struct {
    const char *text;
    int64_t nodes;
  } lists[] = {{"0 1\n1 6\n2 3\n", 7}, {"0 1\n6 1\n2 3\n", 7}, {"5 0\n", 6},
               {"0 5\n", 6},           {"0 5 2.5\n", 6},         {"0 0\n", 1}};
  for (int i = 0; i < LENGTH(lists); i++) {
    struct cb_csr csr;
    read_text(&csr, "graph.txt", lists[i].text);
    assert_int_equal(csr.rows, lists[i].nodes);
    assert_int_equal(csr.cols, lists[i].nodes);
    cb_csr_release(&csr);
  }
}

/* ---- names */

static void labels_come_from_file_names(void **unused) {
  (void)unused;
  static const char *const names[][2] = {
      {"a/b/web-Google.txt", "web-Google"},
      {"x.mtx.gz", "x"},
      {"x.tar.gz", "x"},
      {"x.MTX", "x"},
      {"odd name(1).mtx", "odd_name_1_"},
      {"dir/.mtx", ".mtx"},
      {"plain", "plain"},
      {"/tmp/", "matrix"},
      {"v1.2.mtx", "v1.2"},
      {"gr\xc3\xb6\xc3\x9f.mtx", "gr____"},
      {"0123456789012345678901234567890123456789012345678901234567890123456789.mtx",
       "012345678901234567890123456789012345678901234567890123456789012"},
  };
  for (int i = 0; i < LENGTH(names); i++) {
    struct cb_csr csr;
    read_text(&csr, names[i][0], GENERAL "1 1 1\n1 1 1\n");
    assert_string_equal(csr.name, names[i][1]);
    cb_csr_release(&csr);
  }
}

/* ---- large files */

/* A matrix of several chunks (lines.c cuts at 1 MiB) reads the same with any number of threads, also with
 * comments and blank lines strewn in, which defeat the quick way of counting. */
static void threads_and_comments_change_nothing(void **unused) {
  (void)unused;
  struct cb_csr original, csr;
  generate(&original, "random,rows=3000,cols=2500,per_row=50,values=signed");
  char path[4096];
  snprintf(path, sizeof path, "%s", scratch_path("large.mtx"));
  assert_int_equal(cb_matrix_write(&original, path, NULL), CB_OK);
  size_t length, used = 0;
  char *text = load_file(path, &length), *strewn = malloc(2 * length);
  assert_non_null(strewn);
  for (size_t i = 0, line = 0; i < length; i++) {
    strewn[used++] = text[i];
    if (text[i] != '\n' || line++ % 1000 < 998) continue;
    used += (size_t)sprintf(strewn + used, "%s", line % 3 ? "\n" : "% a comment that is quite long\n  \t\n");
  }
  for (int threads = 1; threads <= 5; threads += 2) {
    omp_set_num_threads(threads);
    assert_int_equal(cb_matrix_read(&csr, path, NULL, NULL), CB_OK);
    assert_true(same_matrix(&csr, &original));
    cb_csr_release(&csr);
    struct cb_diag diag = {0};
    if (cb_matrix_read_bytes(&csr, "large.mtx", strewn, used, &diag)) fail_msg("%s", diag.message);
    assert_true(same_matrix(&csr, &original));
    cb_csr_release(&csr);
  }
  free(text);
  free(strewn);
  unlink(path);
  cb_csr_release(&original);
}

static void write_compressed(const char *path, const char *text, size_t length) {
  struct archive *archive = archive_write_new();
  struct archive_entry *entry = archive_entry_new();
  archive_write_set_format_raw(archive);
  archive_write_add_filter_gzip(archive);
  assert_int_equal(archive_write_open_filename(archive, path), ARCHIVE_OK);
  archive_entry_set_filetype(entry, AE_IFREG);
  assert_int_equal(archive_write_header(archive, entry), ARCHIVE_OK);
  assert_int_equal(archive_write_data(archive, text, length), length);
  archive_entry_free(entry);
  assert_int_equal(archive_write_close(archive), ARCHIVE_OK);
  archive_write_free(archive);
}

/* Unpacked text is given back while it is parsed; what is still needed must not be. */
static void large_compressed_files(void **unused) {
  (void)unused;
  struct cb_csr original, csr;
  struct cb_diag diag = {0};
  generate(&original, "random,rows=4000,cols=2500,per_row=60");
  char path[4096];
  snprintf(path, sizeof path, "%s", scratch_path("packed.mtx"));
  assert_int_equal(cb_matrix_write(&original, path, NULL), CB_OK);
  size_t length;
  char *text = load_file(path, &length);
  unlink(path);
  snprintf(path, sizeof path, "%s", scratch_path("packed.mtx.gz"));
  omp_set_num_threads(2);
  write_compressed(path, text, length);
  if (cb_matrix_read(&csr, path, NULL, &diag)) fail_msg("%s", diag.message);
  assert_true(same_matrix(&csr, &original));
  cb_csr_release(&csr);
  char expected[4200];
  char *last = text + length - 1; /* the last line loses its value */
  while (last[-1] != ' ') last--;
  write_compressed(path, text, (size_t)(last - text));
  assert_int_equal(cb_matrix_read(&csr, path, NULL, &diag), CB_ERR_FORMAT);
  snprintf(expected, sizeof expected, "%s:%d: the line ends where a value is expected", path,
           (int)original.nnz + 2);
  assert_memory_equal(diag.message, expected, strlen(expected));
  char *middle =
      strchr(text + length / 2, '\n') + 1; /* an entry becomes a comment: one is missing at the end */
  *middle = '%';
  write_compressed(path, text, length);
  assert_int_equal(cb_matrix_read(&csr, path, NULL, &diag), CB_ERR_FORMAT);
  snprintf(expected, sizeof expected, "%s:%d: the file ends after %d of the %d entries that line 2 promises",
           path, (int)original.nnz + 2, (int)original.nnz - 1, (int)original.nnz);
  assert_memory_equal(diag.message, expected, strlen(expected));
  free(text);
  unlink(path);
  cb_csr_release(&original);
}

struct watch {
  int calls;
  int64_t last, total;
};

static void watch_progress(void *user, const char *what, int64_t done, int64_t total) {
  struct watch *watch = user;
  assert_non_null(what);
  assert_true(done >= watch->last && done <= total);
  assert_int_equal(omp_get_thread_num(), 0);
  watch->calls++;
  watch->last = done;
  watch->total = total;
}

/* Small files are read before there is anything to report; a slow one reports now and then, and no more. */
static void progress_is_reported_by_one_thread(void **unused) {
  (void)unused;
  enum { LINES = 3000000 };
  struct watch watch = {0};
  const struct cb_progress progress = {watch_progress, &watch};
  struct cb_csr csr;
  omp_set_num_threads(1); /* so that it takes long enough anywhere */
  assert_int_equal(cb_matrix_read(&csr, "tests/data/frontend/good/small.mtx", &progress, NULL), CB_OK);
  assert_int_equal(watch.calls, 0);
  cb_csr_release(&csr);
  const char *path = scratch_path("progress.mtx");
  FILE *file = fopen(path, "w"); /* many digits: every line takes the slow way through strtod */
  assert_non_null(file);
  fprintf(file, "%s%d 1 %d\n", GENERAL, LINES, LINES);
  for (int i = 1; i <= LINES; i++)
    fprintf(file, "%d 1 1.00000000000000011102230246251565404236316680908203125\n", i);
  const int64_t size = ftell(file);
  fclose(file);
  assert_int_equal(cb_matrix_read(&csr, path, &progress, NULL), CB_OK);
  assert_true(watch.calls >= 1);
  assert_int_equal(watch.total, size);
  cb_csr_release(&csr);
  unlink(path);
}

/* ---- writing */

static void check_round_trip(const struct cb_csr *csr) {
  struct cb_csr again;
  struct cb_diag diag = {0};
  const char *path = scratch_path("round.mtx");
  if (cb_matrix_write(csr, path, &diag)) fail_msg("%s", diag.message);
  if (cb_matrix_read(&again, path, NULL, &diag)) fail_msg("%s", diag.message);
  assert_true(same_matrix(csr, &again));
  cb_csr_release(&again);
  unlink(path);
}

static void what_is_written_reads_back_bit_by_bit(void **unused) {
  (void)unused;
  static const char *const specifications[] = {
      "empty,rows=0,cols=0",         "empty,rows=3,cols=0",  "empty,rows=0,cols=4",
      "random,rows=200,density=0.1", "upper,n=50",           "one_row,cols=70000",
      "one_column,rows=70000",       "explicit_zeros",       "hypersparse",
      "fe3,n=4,values=signed",       "stencil5,values=ones", "dense,rows=300,values=integers",
  };
  for (int i = 0; i < LENGTH(specifications); i++) {
    struct cb_csr csr;
    generate(&csr, specifications[i]);
    check_round_trip(&csr);
    cb_csr_release(&csr);
  }
}

static void odd_values_are_written_exactly(void **unused) {
  (void)unused;
  static const double values[] = {0,
                                  -0.0,
                                  1,
                                  -1,
                                  0.1,
                                  1e22,
                                  9007199254740991.0,
                                  9007199254740992.0,
                                  -1e300,
                                  5e-324,
                                  1e15,
                                  INFINITY,
                                  -INFINITY,
                                  1.0 / 3,
                                  123456.75,
                                  2.2250738585072011e-308,
                                  -12345.,
                                  1e-5,
                                  1e17,
                                  4503599627370497.5};
  struct cb_csr csr;
  assert_int_equal(cb_csr_alloc(&csr, 1, LENGTH(values), LENGTH(values), NULL), CB_OK);
  ((int32_t *)csr.row_ptr)[1] = (int32_t)csr.nnz;
  for (int32_t i = 0; i < csr.nnz; i++) csr.col_idx[i] = i;
  memcpy(csr.values, values, sizeof values);
  check_round_trip(&csr);
  cb_csr_release(&csr);
}

static void patterns_are_written_as_patterns(void **unused) {
  (void)unused;
  struct cb_csr csr;
  read_text(&csr, "p.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 3 2\n1 3\n2 1\n");
  const char *path = scratch_path("pattern.mtx");
  assert_int_equal(cb_matrix_write(&csr, path, NULL), CB_OK);
  size_t length;
  char *text = load_file(path, &length);
  assert_string_equal(text, "%%MatrixMarket matrix coordinate pattern general\n2 3 2\n1 3\n2 1\n");
  free(text);
  unlink(path);
  cb_csr_release(&csr);
}

static void a_failed_write_leaves_nothing(void **unused) {
  (void)unused;
  struct cb_csr csr;
  struct cb_diag diag = {0};
  generate(&csr, "dense,rows=3");
  assert_int_equal(cb_matrix_write(&csr, "/nonexistent/m.mtx", &diag), CB_ERR_IO);
  assert_non_null(strstr(diag.message, "/nonexistent/m.mtx"));
  cb_csr_release(&csr);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(spellings_of_one_matrix),
      cmocka_unit_test(symmetries),
      cmocka_unit_test(explicit_zeros_stay),
      cmocka_unit_test(values_of_every_kind),
      cmocka_unit_test(matrices_without_entries),
      cmocka_unit_test(the_largest_sizes),
      cmocka_unit_test(packed_files),
      cmocka_unit_test(packed_edge_lists),
      cmocka_unit_test(numpy_types),
      cmocka_unit_test(edge_lists),
      cmocka_unit_test(an_edge_list_has_as_many_nodes_as_either_column_says),
      cmocka_unit_test(labels_come_from_file_names),
      cmocka_unit_test(threads_and_comments_change_nothing),
      cmocka_unit_test(large_compressed_files),
      cmocka_unit_test(progress_is_reported_by_one_thread),
      cmocka_unit_test(what_is_written_reads_back_bit_by_bit),
      cmocka_unit_test(odd_values_are_written_exactly),
      cmocka_unit_test(patterns_are_written_as_patterns),
      cmocka_unit_test(a_failed_write_leaves_nothing),
  };
  return cmocka_run_group_tests_name("reading and writing", tests, NULL, NULL);
}
