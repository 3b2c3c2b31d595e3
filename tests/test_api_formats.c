// SPDX-License-Identifier: Apache-2.0
/* Matrices in CSC, COO and BSR on the fake CUDA: every form of them multiplies rightly, new values come in the order of
 * the caller's own, the cache does not confuse orders, and what is wrong with the arrays is said. And products over
 * other semirings through the interface. */
#include "tests/api_support.h"
#include "tests/recipes.h"

#include <omp.h>
#include <unistd.h>

/* How entries are put: a number of bits. */
enum { WIDE = 1, SHUFFLED = 2, ON_DEVICE = 4, FROM_ONE = 8, DUPLICATES = 16, SINGLE = 32, NO_VALUES = 64, FORMS = 128 };

/* A matrix as a caller has it, and what it is. */
struct given {
  cbgen_matrix matrix;
  int form;
  int64_t count;              /* values */
  int32_t *rows_of, *cols_of; /* of each value */
  double *values;
  void *pointers, *indices, *bytes;
  uint64_t there[3];
  struct cb_csr csr;
};

static enum cb_type type_of(const struct given *given) {
  return given->form & SINGLE ? CB_F32 : CB_F64;
}

static void put_index(void *array, int form, int64_t i, int64_t number) {
  put_integer(array, form & WIDE ? 64 : 32, i, number + !!(form & FROM_ONE));
}

/* Values of the type, and what they sum up to. */
static void draw_values(struct given *given, uint64_t seed) {
  struct cb_diag diag = {0};
  const size_t count = (size_t)given->count;
  struct cb_coo coo = {.rows = given->matrix.rows, .cols = given->matrix.cols, .count = given->count};
  coo.row_idx = cb_alloc(count, 4);
  coo.col_idx = cb_alloc(count, 4);
  coo.values = cb_alloc(count, 8);
  for (int64_t k = 0; k < given->count; k++) {
    const double drawn = cb_real_round((double)(draw(&seed) >> 12) * 0x1p-51 - 1, type_of(given));
    given->values[k] = given->form & NO_VALUES ? 1 : drawn;
    cb_real_set(given->bytes, type_of(given), k, given->values[k]);
    coo.row_idx[k] = given->rows_of[k];
    coo.col_idx[k] = given->cols_of[k];
    coo.values[k] = given->values[k];
  }
  cb_csr_release(&given->csr);
  assert_ok(cb_csr_from_coo(&given->csr, &coo, &diag));
  if (given->there[2]) assert_true(app_put(given->there[2], given->bytes, count * 8));
}

static struct given make_given(cbgen_format format, int form, int64_t rows, int64_t cols, int64_t room) {
  struct given given = {.form = form};
  const int64_t pointers = room + rows + cols + 2;
  given.rows_of = calloc((size_t)room + 1, 4);
  given.cols_of = calloc((size_t)room + 1, 4);
  given.values = calloc((size_t)room + 1, 8);
  given.pointers = calloc((size_t)pointers, 8);
  given.indices = calloc((size_t)room + 1, 8);
  given.bytes = calloc((size_t)room + 1, 8);
  assert_true(given.rows_of && given.cols_of && given.values && given.pointers && given.indices && given.bytes);
  given.matrix = (cbgen_matrix){.struct_size = sizeof(cbgen_matrix),
                                .format = format,
                                .rows = rows,
                                .cols = cols,
                                .pointers = given.pointers,
                                .indices = given.indices,
                                .values = form & NO_VALUES ? NULL : given.bytes,
                                .pointer_bits = form & WIDE ? 64 : 0,
                                .index_bits = form & WIDE ? 64 : 32,
                                .index_base = !!(form & FROM_ONE),
                                .value_type = form & SINGLE ? CBGEN_F32 : CBGEN_F64};
  return given;
}

/* All arrays are there: the last step. `pointers`: how many. */
static void finish_given(struct given *given, int64_t pointers) {
  const size_t width = given->form & WIDE ? 8 : 4;
  const size_t bytes[3] = {(size_t)pointers * width, (size_t)given->matrix.nnz * width, (size_t)given->count * 8};
  const void *arrays[3] = {given->pointers, given->indices, given->bytes};
  for (int i = 0; i < 3 && given->form & ON_DEVICE; i++) {
    assert_true(given->there[i] = app_alloc(0, bytes[i] + 8));
    if (bytes[i]) assert_true(app_put(given->there[i], arrays[i], bytes[i]));
  }
  if (given->form & ON_DEVICE) {
    given->matrix.memory = CBGEN_DEVICE;
    given->matrix.pointers = (void *)(uintptr_t)given->there[0];
    given->matrix.indices = (void *)(uintptr_t)given->there[1];
    if (given->matrix.values) given->matrix.values = (void *)(uintptr_t)given->there[2];
  }
  draw_values(given, 9);
}

static void release_given(struct given *given) {
  for (int i = 0; i < 3; i++)
    if (given->there[i]) app_free(given->there[i]);
  free(given->rows_of);
  free(given->cols_of);
  free(given->values);
  free(given->pointers);
  free(given->indices);
  free(given->bytes);
  cb_csr_release(&given->csr);
}

static void swap_entries(struct given *given, int64_t i, int64_t j) {
  const int32_t row = given->rows_of[i], col = given->cols_of[i];
  given->rows_of[i] = given->rows_of[j], given->cols_of[i] = given->cols_of[j];
  given->rows_of[j] = row, given->cols_of[j] = col;
}

/* The entries of a matrix, some of them in two parts; row by row, or in any order. */
static struct given entries_of(cbgen_format format, struct cb_csr csr, int form, uint64_t seed) {
  struct given given = make_given(format, form, csr.rows, csr.cols, 2 * csr.nnz);
  for (int64_t row = 0; row < csr.rows; row++)
    for (int64_t k = cb_csr_row(&csr, row); k < cb_csr_row(&csr, row + 1); k++)
      for (int twice = form & DUPLICATES && draw(&seed) % 4 == 0; twice >= 0; twice--, given.count++) {
        given.rows_of[given.count] = (int32_t)row;
        given.cols_of[given.count] = csr.col_idx[k];
      }
  for (int64_t i = given.count - 1; i > 0 && form & SHUFFLED; i--)
    swap_entries(&given, i, (int64_t)(draw(&seed) % (uint64_t)(i + 1)));
  given.matrix.nnz = given.count;
  cb_csr_release(&csr);
  return given;
}

static struct given coo_of(struct cb_csr csr, int form, uint64_t seed) {
  struct given given = entries_of(CBGEN_COO, csr, form, seed);
  for (int64_t k = 0; k < given.count; k++) {
    put_index(given.pointers, form, k, given.rows_of[k]);
    put_index(given.indices, form, k, given.cols_of[k]);
  }
  finish_given(&given, given.count);
  return given;
}

/* Entries into their columns, in the order that they have. */
static struct given csc_of(struct cb_csr csr, int form, uint64_t seed) {
  struct given given = entries_of(CBGEN_CSC, csr, form, seed);
  const int64_t cols = given.matrix.cols;
  int64_t at = 0;
  for (int64_t col = 0; col <= cols; col++) {
    put_index(given.pointers, form, col, at);
    for (int64_t k = at; k < given.count && col < cols; k++) {
      if (given.cols_of[k] != col) continue;
      for (int64_t i = k; i > at; i--) swap_entries(&given, i, i - 1);
      put_index(given.indices, form, at, given.rows_of[at]);
      at++;
    }
  }
  finish_given(&given, cols + 1);
  return given;
}

/* Each entry of a matrix becomes a block of r × c; `blocks_by_column`: so are its values. */
static struct given bsr_of(struct cb_csr csr, int r, int c, int by_column, int form, uint64_t seed) {
  struct given blocks = entries_of(CBGEN_BSR, csr, form & ~SHUFFLED, seed);
  struct given given = make_given(CBGEN_BSR, form, csr.rows * r, csr.cols * c, blocks.count * r * c);
  int64_t block = 0;
  for (int64_t row = 0; row <= csr.rows; row++) {
    put_index(given.pointers, form, row, block);
    const int64_t begin = block;
    while (block < blocks.count && blocks.rows_of[block] == row) block++;
    for (int64_t i = block - 1; i > begin && form & SHUFFLED; i--)
      swap_entries(&blocks, i, begin + (int64_t)(draw(&seed) % (uint64_t)(i - begin + 1)));
  }
  for (int64_t b = 0; b < blocks.count; b++) {
    put_index(given.indices, form, b, blocks.cols_of[b]);
    for (int i = 0; i < r * c; i++, given.count++) {
      given.rows_of[given.count] = blocks.rows_of[b] * r + (by_column ? i % r : i / c);
      given.cols_of[given.count] = blocks.cols_of[b] * c + (by_column ? i / r : i % c);
    }
  }
  given.matrix.nnz = blocks.count;
  given.matrix.block_rows = r;
  given.matrix.block_cols = c;
  given.matrix.blocks_by_column = by_column;
  finish_given(&given, csr.rows + 1);
  release_given(&blocks);
  return given;
}

static struct given given_of(int kind, const char *specification, int form) {
  const struct cb_csr csr = matrix_of(specification);
  if (kind == 0) return csc_of(csr, form, 3);
  if (kind == 1) return coo_of(csr, form, 3);
  return bsr_of(csr, 1 + kind % 3, 1 + kind % 2, kind % 2, form, 3);
}
enum { KINDS = 5 };

/* ---- products */

static void check_turned(cbgen_operator *op, const struct given *given, int turned) {
  struct cb_csr csr = turned ? transposed(&given->csr) : given->csr;
  check_product(op, &csr);
  if (turned) cb_csr_release(&csr);
}

/* From the host and from the device, in the order of the caller's values. */
static void check_new_values(cbgen_operator *op, struct given *given, int turned) {
  const size_t size = cb_type_size(type_of(given));
  for (int from_device = 0; from_device < 2; from_device++) {
    const uint64_t there = app_alloc(0, (size_t)given->count * size + 8);
    draw_values(given, 100 + (uint64_t)from_device);
    if (given->count) assert_true(app_put(there, given->bytes, (size_t)given->count * size));
    const cbgen_update update = {sizeof update, from_device ? (void *)(uintptr_t)there : given->bytes,
                                 given->matrix.value_type, from_device ? CBGEN_DEVICE : CBGEN_HOST, NULL};
    must_operator(op, cbgen_update_values(op, &update));
    check_turned(op, given, turned);
    app_free(there);
  }
}

static void every_form_multiplies(void **state) {
  cbgen_context *context = new_context("recipe=sell");
  (void)state;
  for (int kind = 0; kind < KINDS; kind++)
    for (int form = 0; form < FORMS; form++) {
      const int turned = (form + kind) % 3 == 0;
      const cbgen_values values = form & NO_VALUES ? CBGEN_VALUES_STORED : CBGEN_VALUES_MUTABLE;
      const cbgen_request request = {.struct_size = sizeof request, .values = values, .transpose = turned};
      struct given given = given_of(kind, "random,rows=50,cols=40,density=0.1", form);
      cbgen_info info = {.struct_size = sizeof info};
      cbgen_operator *op;
      must(context, cbgen_compile_matrix(context, &given.matrix, &request, &op));
      assert_int_equal(cbgen_operator_info(op, &info), CBGEN_OK);
      assert_int_equal(info.entries, given.count);
      check_turned(op, &given, turned);
      if (values == CBGEN_VALUES_MUTABLE) check_new_values(op, &given, turned);
      cbgen_operator_free(op);
      release_given(&given);
    }
  cbgen_context_destroy(context);
}

static void every_shape_and_kind_of_values_multiplies(void **state) {
  static const char *const shapes[] = {
      "empty,rows=0,cols=9", "empty,rows=7,cols=0", "empty,rows=50,cols=40", "one_row,cols=17", "fe3,n=3",
      "dense_row,n=70,row=3"};
  cbgen_context *context = new_context("");
  (void)state;
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int kind = 0; kind < KINDS; kind++)
      for (int values = CBGEN_VALUES_STORED; values <= CBGEN_VALUES_FIXED; values++) {
        const cbgen_request request = {.struct_size = sizeof request, .values = (cbgen_values)values};
        struct given given = given_of(kind, shapes[s], values == 1 ? SHUFFLED | DUPLICATES : SHUFFLED | ON_DEVICE);
        cbgen_operator *op;
        must(context, cbgen_compile_matrix(context, &given.matrix, &request, &op));
        check_product(op, &given.csr);
        cbgen_operator_free(op);
        release_given(&given);
      }
  cbgen_context_destroy(context);
}

/* CSR through the general struct is what cbgen_csr is, and so is the text. */
static void the_general_struct_takes_csr(void **state) {
  struct sample sample = sample_of("random,rows=50,cols=40,density=0.1", (struct form){0});
  const cbgen_csr *csr = &sample.view;
  const cbgen_matrix matrix = {.struct_size = sizeof matrix,
                               .rows = csr->rows,
                               .cols = csr->cols,
                               .nnz = csr->nnz,
                               .pointers = csr->row_ptr,
                               .indices = csr->col_idx,
                               .values = csr->values};
  cbgen_context *context = new_context("recipe=sell");
  cbgen_kernel *one, *other;
  cbgen_operator *op;
  (void)state;
  must(context, cbgen_compile_matrix(context, &matrix, NULL, &op));
  check_product(op, &sample.csr);
  must(context, cbgen_generate(context, csr, &one));
  must(context, cbgen_generate_matrix(context, &matrix, &other));
  assert_string_equal(cbgen_kernel_source(one, NULL), cbgen_kernel_source(other, NULL));
  cbgen_kernel_free(one);
  cbgen_kernel_free(other);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

/* Whatever a matrix is given as, its kernel and data are the same. */
static void every_form_generates_the_same(void **state) {
  cbgen_context *context = new_context("");
  (void)state;
  for (int kind = 0; kind < KINDS; kind++) {
    struct given given = given_of(kind, "random,rows=50,cols=40,density=0.1", SHUFFLED | DUPLICATES);
    const cbgen_csr csr = {.struct_size = sizeof csr,
                           .rows = given.csr.rows,
                           .cols = given.csr.cols,
                           .nnz = given.csr.nnz,
                           .row_ptr = given.csr.row_ptr,
                           .col_idx = given.csr.col_idx,
                           .values = given.csr.values};
    cbgen_kernel *one, *other;
    size_t bytes, others;
    must(context, cbgen_generate(context, &csr, &one));
    must(context, cbgen_generate_matrix(context, &given.matrix, &other));
    assert_string_equal(cbgen_kernel_source(one, NULL), cbgen_kernel_source(other, NULL));
    const void *data = cbgen_kernel_data(one, &bytes), *other_data = cbgen_kernel_data(other, &others);
    assert_int_equal(bytes, others);
    assert_memory_equal(data, other_data, bytes);
    cbgen_kernel_free(one);
    cbgen_kernel_free(other);
    release_given(&given);
  }
  cbgen_context_destroy(context);
}

/* ---- the cache */

/* Compiles, checks, and says what the cache gave. */
static cbgen_cache_result compiled_from(cbgen_context *context, struct given *given) {
  const cbgen_request request = {.struct_size = sizeof request, .values = CBGEN_VALUES_MUTABLE};
  cbgen_info info = {.struct_size = sizeof info};
  cbgen_operator *op;
  must(context, cbgen_compile_matrix(context, &given->matrix, &request, &op));
  assert_int_equal(cbgen_operator_info(op, &info), CBGEN_OK);
  check_product(op, &given->csr);
  check_new_values(op, given, 0);
  cbgen_operator_free(op);
  return info.cache;
}

/* An entry's map knows one order of the caller's values: another order has an entry of its own. */
static void the_cache_keeps_orders_apart(void **state) {
  char folder[256], options[300];
  (void)state;
  snprintf(folder, sizeof folder, "%s/cache.XXXXXX", getenv("CBGEN_TEST_TMP"));
  assert_non_null(mkdtemp(folder));
  snprintf(options, sizeof options, "recipe=sell cache=%s", folder);
  cbgen_context *context = new_context(options);
  static const char matrix[] = "random,rows=50,cols=40,density=0.1";
  struct given orders[] = {coo_of(matrix_of(matrix), SHUFFLED, 3),   coo_of(matrix_of(matrix), SHUFFLED, 4),
                           coo_of(matrix_of(matrix), 0, 5),          csc_of(matrix_of(matrix), 0, 6),
                           bsr_of(matrix_of(matrix), 1, 1, 0, 0, 7), bsr_of(matrix_of(matrix), 2, 3, 0, 0, 7),
                           bsr_of(matrix_of(matrix), 2, 3, 1, 0, 7)};
  enum { ORDERS = sizeof orders / sizeof *orders };
  for (int round = 0; round < 2; round++)
    for (int i = 0; i < ORDERS; i++)
      assert_int_equal(compiled_from(context, &orders[i]), round ? CBGEN_CACHE_HIT : CBGEN_CACHE_MISS);
  struct given again = coo_of(matrix_of(matrix), ON_DEVICE | WIDE | FROM_ONE, 5); /* the same order, in another form */
  assert_int_equal(compiled_from(context, &again), CBGEN_CACHE_HIT);
  release_given(&again);
  for (int i = 0; i < ORDERS; i++) release_given(&orders[i]);
  cbgen_context_destroy(context);
}

/* ---- what is wrong */

static void refuse(const struct given *given, const char *words) {
  cbgen_context *context = new_context("");
  cbgen_operator *op = (cbgen_operator *)&words;
  cbgen_kernel *kernel;
  assert_int_equal(cbgen_compile_matrix(context, &given->matrix, NULL, &op), CBGEN_ERROR_ARGUMENT);
  assert_null(op);
  if (!strstr(cbgen_message(context), words)) fail_msg("'%s' instead of '%s'", cbgen_message(context), words);
  if (given->matrix.memory == CBGEN_HOST)
    assert_int_equal(cbgen_generate_matrix(context, &given->matrix, &kernel), CBGEN_ERROR_ARGUMENT);
  cbgen_context_destroy(context);
}

static void what_is_wrong_is_said(void **state) {
  static const struct {
    int kind, form, indices; /* whether it is `indices` that is wrong */
    int64_t place, number;
    const char *words;
  } cases[] = {
      {0, 0, 1, 3, 50, "'indices[3]' is 50 in column 1; rows go from 0 to 49"},
      {0, FROM_ONE, 0, 2, -5, "'pointers[2]' is -4 after"},
      {1, 0, 0, 7, 50, "'pointers[7]' is 50; rows go from 0 to 49"},
      {1, SHUFFLED, 0, 7, -1, "'pointers[7]' is -1; rows go from 0 to 49"},
      {1, WIDE | FROM_ONE, 1, 0, 40, "'indices[0]' is 41; columns go from 1 to 40"},
      {1, ON_DEVICE, 1, 5, -3, "'indices[5]' is -3; columns go from 0 to 39"},
      {3, 0, 1, 5, 44, "'indices[5]' is 44 in block row"},
      {3, 0, 0, 1, 7000, "'pointers[1]' is 7000 after 0"},
      {3, 0, 0, 0, 1, "'pointers' goes from 1 to"},
  };
  (void)state;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct given given = given_of(cases[c].kind, "random,rows=50,cols=40,density=0.1", cases[c].form);
    void *array = cases[c].indices ? given.indices : given.pointers;
    put_index(array, cases[c].form, cases[c].place, cases[c].number);
    if (cases[c].form & ON_DEVICE)
      assert_true(app_put(given.there[cases[c].indices], array, (size_t)given.matrix.nnz * 4));
    refuse(&given, cases[c].words);
    release_given(&given);
  }
}

static void refuse_changed(int kind, size_t offset, int value, const char *words) {
  struct given given = given_of(kind, "random,rows=50,cols=40,density=0.1", 0);
  memcpy((char *)&given.matrix + offset, &value, sizeof value);
  refuse(&given, words);
  release_given(&given);
}
#define MEMBER(name) offsetof(cbgen_matrix, name)

static void members_without_meaning_are_refused(void **state) {
  (void)state;
  refuse_changed(1, MEMBER(format), 4, "'format' is 4");
  refuse_changed(1, MEMBER(format), -1, "'format' is -1");
  refuse_changed(1, MEMBER(index_base), 2, "'index_base' is 2");
  refuse_changed(1, MEMBER(pointer_bits), 16, "'pointer_bits' is 16; it is 32 or 64");
  refuse_changed(0, MEMBER(index_bits), 63, "'index_bits' is 63; it is 32 or 64");
  refuse_changed(1, MEMBER(block_rows), 2, "for format CBGEN_BSR; leave them 0");
  refuse_changed(0, MEMBER(blocks_by_column), 1, "for format CBGEN_BSR; leave them 0");
  refuse_changed(3, MEMBER(block_rows), 0, "blocks of 0 x 2");
  refuse_changed(3, MEMBER(block_cols), 65, "blocks of 1 x 65");
  refuse_changed(3, MEMBER(block_rows), 7, "is not made of blocks of 7 x 2");
  refuse_changed(3, MEMBER(blocks_by_column), 2, "'blocks_by_column' is 2");
  refuse_changed(3, MEMBER(value_type), 9, "'value_type' is 9");
  refuse_changed(1, MEMBER(memory), 9, "'memory' is 9");
  struct given given = given_of(1, "random,rows=50,cols=40,density=0.1", 0);
  given.matrix.pointers = NULL;
  refuse(&given, "'pointers' or 'indices' is NULL");
  given.matrix.pointers = (char *)given.pointers + 1;
  refuse(&given, "'pointers' is not aligned");
  given.matrix.struct_size = 3;
  refuse(&given, "sizeof(cbgen_matrix)");
  release_given(&given);
}

/* One after the other, from the struct to the text. */
static void every_allocation_may_fail(void **state) {
  (void)state;
  omp_set_num_threads(1);
  for (int kind = 0; kind < KINDS; kind++) {
    struct given given = given_of(kind, "random,rows=20,cols=20,density=0.2", SHUFFLED | DUPLICATES);
    cbgen_context *context = new_context("recipe=sell");
    cbgen_status status = CBGEN_ERROR_MEMORY;
    int failures = 0;
    uint64_t nth = 0, made = 0; /* of which one failed */
    while (made >= nth) {
      cbgen_kernel *kernel = NULL;
      cb_memory_fail_at(++nth, 0);
      status = cbgen_generate_matrix(context, &given.matrix, &kernel);
      made = cb_memory_fail_at(0, 0);
      cbgen_kernel_free(kernel);
      if (status && status != CBGEN_ERROR_MEMORY) fail_msg("allocation %d: %s", (int)nth, cbgen_message(context));
      failures += status == CBGEN_ERROR_MEMORY;
    }
    assert_int_equal(status, CBGEN_OK);
    assert_true(failures > 20);
    cbgen_context_destroy(context);
    release_given(&given);
  }
}

/* ---- semirings */

static void check_semiring(cbgen_operator *op, const struct cb_csr *csr, double beta) {
  struct vectors vectors = vectors_for(op, 0);
  const cbgen_product product = product_with(&vectors, 1, beta, NULL);
  must_operator(op, cbgen_multiply(op, &product));
  check_result(op, csr, &vectors, 1, beta);
  vectors_release(&vectors);
}

/* Padding stays what it is: as packed on the host and on the device, and after new values. */
static void multiply_over(const char *options, int number, const char *semiring, cbgen_values values) {
  const cbgen_request request = {.struct_size = sizeof request, .values = values};
  char all[400]; /* every other one with a cache: values then go into place by the map, on the host, too */
  snprintf(all, sizeof all, "%s semiring=%s cache=%s%s", options, semiring,
           number % 2 ? getenv("CBGEN_TEST_TMP") : "", number % 2 ? "/semirings" : "");
  cbgen_context *context = new_context(all);
  struct given given = given_of(1, "diagonals,n=90,count=5,spread=9,fill=0.8", number % 3 ? SHUFFLED : ON_DEVICE);
  cbgen_operator *op;
  const cbgen_status status = cbgen_compile_matrix(context, &given.matrix, &request, &op);
  if (status && status != CBGEN_ERROR_UNSUPPORTED) fail_msg("%s: %s", all, cbgen_message(context));
  if (!status) check_semiring(op, &given.csr, 0);
  for (uint64_t seed = 5; seed < 7 && !status && values == CBGEN_VALUES_MUTABLE; seed++) {
    draw_values(&given, seed);
    const cbgen_update update = {sizeof update, given.bytes, CBGEN_F64, CBGEN_HOST, NULL};
    must_operator(op, cbgen_update_values(op, &update));
    check_semiring(op, &given.csr, 1);
  }
  cbgen_operator_free(op);
  release_given(&given);
  cbgen_context_destroy(context);
}

static void semirings_multiply(void **state) {
  const struct cb_recipe *recipe;
  (void)state;
  for (int number = 0; (recipe = cb_recipe_at(number)); number++)
    for (int semiring = CB_MIN_PLUS; semiring < CB_SEMIRINGS; semiring++)
      for (int values = CBGEN_VALUES_STORED; values <= CBGEN_VALUES_FIXED; values++)
        multiply_over(settings_of_recipe(recipe), number + values, cb_semiring_names[semiring], (cbgen_values)values);
}

static void semirings_refuse_other_scalars(void **state) {
  static const double scalars[][2] = {{2, 0}, {1, -1}, {0, 1}, {1, 0.5}};
  cbgen_context *context = new_context("recipe=sell semiring=min-plus");
  struct sample sample = sample_of("stencil5,n=9", (struct form){0});
  cbgen_operator *op;
  (void)state;
  must(context, cbgen_compile(context, &sample.view, NULL, &op));
  struct vectors vectors = vectors_for(op, 0);
  for (int i = 0; i < 4; i++) {
    const cbgen_product product = product_with(&vectors, scalars[i][0], scalars[i][1], NULL);
    assert_int_equal(cbgen_multiply(op, &product), CBGEN_ERROR_ARGUMENT);
    assert_non_null(strstr(cbgen_operator_message(op), "alpha must be 1, and beta 0 or 1"));
  }
  check_semiring(op, &sample.csr, 0);
  check_semiring(op, &sample.csr, 1);
  vectors_release(&vectors);
  cbgen_operator_free(op);
  assert_int_equal(cbgen_set(context, "semiring", "plus"), CBGEN_ERROR_ARGUMENT);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

#define with_fake(test) cmocka_unit_test_setup_teardown(test, open_fake, check_fake)

int main(void) {
  const struct CMUnitTest tests[] = {
      with_fake(every_form_multiplies),
      with_fake(every_shape_and_kind_of_values_multiplies),
      with_fake(the_general_struct_takes_csr),
      with_fake(every_form_generates_the_same),
      with_fake(the_cache_keeps_orders_apart),
      with_fake(what_is_wrong_is_said),
      with_fake(members_without_meaning_are_refused),
      with_fake(every_allocation_may_fail),
      with_fake(semirings_multiply),
      with_fake(semirings_refuse_other_scalars),
  };
  return cmocka_run_group_tests_name("formats", tests, NULL, NULL);
}
