// SPDX-License-Identifier: Apache-2.0
/* Several vectors through the public interface: whatever the recipe and the order, each vector's result has the bits
 * of its own product; operators that were saved, cached, cloned or given new values multiply alike; and what is
 * refused. */
#include "tests/api_support.h"
#include "tests/recipes.h"

static cbgen_operator *compiled(cbgen_context *context, const cbgen_csr *view, int vectors) {
  const cbgen_request request = {.struct_size = sizeof request, .vectors = vectors};
  cbgen_operator *op;
  must(context, cbgen_compile(context, view, &request, &op));
  return op;
}

#define REFUSED(op, products, status, words)                                                                 \
  do {                                                                                                       \
    assert_int_equal(cbgen_multiply_many(op, &(products)), status);                                          \
    if (!strstr(cbgen_operator_message(op), words)) fail_msg("'%s' lacks '%s'", cbgen_operator_message(op), words); \
  } while (0)

/* X and Y on the GPU, as bytes of the host; in between elements that nothing may write. */
struct dense {
  size_t size;
  int64_t rows, cols, ldx, ldy, x_length, y_length;
  int vectors, parts; /* parts of a number: 2, if complex */
  cbgen_order order;
  unsigned char *x, *y;
  uint64_t x_there, y_there;
};

static void fill_numbers(unsigned char *bytes, int64_t count, enum cb_type type, uint64_t seed) {
  for (int64_t i = 0; i < count * cb_type_parts(type); i++)
    cb_real_set(bytes, cb_type_of_part(type), i, (double)(draw(&seed) >> 12) * 0x1p-51 - 1);
}

static struct dense dense_for(const cbgen_operator *op, int vectors, cbgen_order order, int gap) {
  cbgen_info info = {.struct_size = sizeof info};
  assert_int_equal(cbgen_operator_info(op, &info), CBGEN_OK);
  const int by_row = order == CBGEN_BY_ROW;
  struct dense dense = {.size = cb_type_size((enum cb_type)info.vector_type),
                        .rows = info.rows,
                        .cols = info.cols,
                        .ldx = (by_row ? vectors : info.cols) + gap,
                        .ldy = (by_row ? vectors : info.rows) + gap,
                        .vectors = vectors,
                        .parts = cb_type_parts((enum cb_type)info.vector_type),
                        .order = order};
  dense.x_length = dense.ldx * (by_row ? info.cols : vectors);
  dense.y_length = dense.ldy * (by_row ? info.rows : vectors);
  dense.x = calloc((size_t)dense.x_length, dense.size);
  dense.y = calloc((size_t)dense.y_length, dense.size);
  dense.x_there = app_alloc(0, (size_t)dense.x_length * dense.size);
  dense.y_there = app_alloc(0, (size_t)dense.y_length * dense.size);
  assert_true(dense.x && dense.y && dense.x_there && dense.y_there);
  fill_numbers(dense.x, dense.x_length, (enum cb_type)info.vector_type, 17);
  fill_numbers(dense.y, dense.y_length, (enum cb_type)info.vector_type, 18);
  assert_true(app_put(dense.x_there, dense.x, (size_t)dense.x_length * dense.size));
  assert_true(app_put(dense.y_there, dense.y, (size_t)dense.y_length * dense.size));
  return dense;
}

static void dense_release(struct dense *dense) {
  free(dense->x);
  free(dense->y);
  app_free(dense->x_there);
  app_free(dense->y_there);
}

/* Beta's real part: complex numbers may be imaginary alone. */
static double real_beta(const struct dense *dense) {
  return dense->parts > 1 && dense->order == CBGEN_BY_COLUMN ? 0 : -0.5;
}

static cbgen_products products_with(const struct dense *dense) {
  return (cbgen_products){.struct_size = sizeof(cbgen_products),
                          .vectors = dense->vectors,
                          .order = dense->order,
                          .ldx = dense->ldx,
                          .ldy = dense->ldy,
                          .alpha = 1.25,
                          .beta = real_beta(dense),
                          .alpha_imag = dense->parts > 1 ? 0.75 : 0,
                          .beta_imag = dense->parts > 1 ? -2 : 0,
                          .x = (void *)(uintptr_t)dense->x_there,
                          .y = (void *)(uintptr_t)dense->y_there};
}

static size_t place(const struct dense *dense, int64_t leading, int64_t i, int v) {
  return (size_t)(dense->order == CBGEN_BY_ROW ? i * leading + v : v * leading + i) * dense->size;
}

/* Vector v of Y by a product of its own. */
static void expect_vector(unsigned char *y, cbgen_operator *single, const struct dense *dense, int v) {
  struct vectors vectors = vectors_for(single, 0);
  unsigned char *x = calloc((size_t)dense->cols + 1, dense->size);
  for (int64_t i = 0; i < dense->cols; i++)
    memcpy(x + (size_t)i * dense->size, dense->x + place(dense, dense->ldx, i, v), dense->size);
  for (int64_t i = 0; i < dense->rows; i++)
    memcpy(y + (size_t)i * dense->size, dense->y + place(dense, dense->ldy, i, v), dense->size);
  if (dense->cols) assert_true(app_put(vectors.x_there, x, (size_t)dense->cols * dense->size));
  if (dense->rows) assert_true(app_put(vectors.y_there, y, (size_t)dense->rows * dense->size));
  cbgen_product product = product_with(&vectors, 1.25, real_beta(dense), NULL);
  if (dense->parts > 1) product.alpha_imag = 0.75, product.beta_imag = -2;
  must_operator(single, cbgen_multiply(single, &product));
  if (dense->rows) assert_true(app_take(y, vectors.y_there, (size_t)dense->rows * dense->size));
  vectors_release(&vectors);
  free(x);
}

/* What the products must leave in Y: the vectors' own results, and all else as it was. */
static void check_products(cbgen_operator *op, cbgen_operator *single, int vectors, cbgen_order order, int gap) {
  struct dense dense = dense_for(op, vectors, order, gap);
  const cbgen_products products = products_with(&dense);
  const size_t bytes = (size_t)dense.y_length * dense.size;
  unsigned char *got = calloc(bytes + 1, 1), *expected = calloc(bytes + 1, 1);
  unsigned char *y = calloc((size_t)dense.rows + 1, dense.size);
  assert_true(got && expected && y);
  must_operator(op, cbgen_multiply_many(op, &products));
  assert_true(app_take(got, dense.y_there, bytes));
  memcpy(expected, dense.y, bytes);
  for (int v = 0; v < vectors; v++) {
    expect_vector(y, single, &dense, v);
    for (int64_t i = 0; i < dense.rows; i++)
      memcpy(expected + place(&dense, dense.ldy, i, v), y + (size_t)i * dense.size, dense.size);
  }
  if (memcmp(got, expected, bytes))
    fail_msg("%d vectors by %s, %d elements in between: other bits", vectors, order ? "columns" : "rows", gap);
  free(got);
  free(expected);
  free(y);
  dense_release(&dense);
}

/* The example of each recipe, types and orders of odd sizes in turn. */
static void every_vector_has_its_own_product(void **state) {
  static const char *const types[] = {"f64", "f32", "c128", "bf16", "f32-f64", "c64"};
  enum { TYPES = sizeof types / sizeof *types };
  const struct cb_recipe *recipe;
  (void)state;
  for (int number = 0; (recipe = cb_recipe_at(number)); number++) {
    struct sample sample = sample_of(example_of(recipe), (struct form){0});
    cbgen_context *context = new_context(settings_of_recipe(recipe));
    must(context, cbgen_set(context, "type", types[number % TYPES]));
    must(context, cbgen_set(context, "copy-x", number % 2 ? "on" : "off"));
    cbgen_operator *op = compiled(context, &sample.view, 8);
    cbgen_info info = {.struct_size = sizeof info};
    assert_int_equal(cbgen_operator_info(op, &info), CBGEN_OK);
    assert_int_equal(info.vectors, 8);
    assert_int_equal(info.tier, CBGEN_TIER_SPECIALISED);
    check_products(op, op, 8, CBGEN_BY_ROW, 0);
    check_products(op, op, 11, CBGEN_BY_ROW, 5); /* two passes, rows at 16 bytes */
    check_products(op, op, 5, CBGEN_BY_ROW, 2);  /* nothing is aligned */
    check_products(op, op, 9, CBGEN_BY_COLUMN, 3);
    check_products(op, op, 7, CBGEN_BY_COLUMN, 0); /* where X is laid out by rows: one vector less than there is room */
    check_products(op, op, 1, CBGEN_BY_ROW, 1);
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
    sample_release(&sample);
  }
}

/* `apart`: single products are those of another operator, for one vector, which adds up in the same order. */
static void check_eight_beside(const char *matrix, const char *settings, int apart) {
  struct sample sample = sample_of(matrix, (struct form){0});
  cbgen_context *context = new_context(settings);
  cbgen_operator *op = compiled(context, &sample.view, 8), *single = apart ? compiled(context, &sample.view, 1) : op;
  check_products(op, single, 8, CBGEN_BY_ROW, 0);
  check_products(op, single, 5, CBGEN_BY_COLUMN, 3);
  if (apart) cbgen_operator_free(single);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

static void check_eight(const char *matrix, const char *settings) { check_eight_beside(matrix, settings, 0); }

/* What no recipe's example has: dense sub-blocks, block rows and batches of patterns, rows in segments beside hot
 * columns. */
static void other_plans_multiply_alike(void **state) {
  static const char *const cases[][2] = {
      {"dense,rows=70,cols=37", "recipe=cb"},
      {"random_exact,blocks_r=5,block_nnz=33", "recipe=cb"},
      {"fe3,n=4", "recipe=patterns"},
      {"stencil27,n=7", "recipe=patterns pattern-slices=2 pattern-stride=3"},
      {"long_row,rows=900,per_row=4,long_rows=3,long_length=850", "recipe=hot hot-columns=20"},
      {"long_row,rows=900,per_row=4,long_rows=3,long_length=850", "recipe=hot hot-columns=20 vector-threads=2"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_eight(cases[i][0], cases[i][1]);
}

/* Rectangles of rows of a grid: lines that no width divides, threads without a row, planes that are no whole groups,
 * few rows in the last line. An operator for one vector has none. */
static void rectangles_multiply_alike(void **state) {
  static const char *const cases[][2] = {
      {"stencil7,n=12", "recipe=dia dia-stride=12"},
      {"stencil7,n=20", "recipe=dia dia-stride=20 dia-rows=3"},
      {"stencil5,n=70", "recipe=dia dia-stride=70 dia-threads=256"},
      {"road,n=64", "recipe=dia dia-stride=64"},
      {"diagonals,n=1000,count=6,spread=90,fill=0.8", "recipe=dia dia-stride=44 type=f32"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_eight_beside(cases[i][0], cases[i][1], 1);
}

/* Long rows in segments, rows without nonzeros, and complex numbers that lanes add up. */
static void threads_share_vectors_of_any_rows(void **state) {
  static const char *const cases[][2] = {
      {"long_row,rows=90,cols=9000,per_row=4,long_rows=2,long_length=8000", "recipe=sell vector-threads=4"},
      {"long_row,rows=900,per_row=4,long_rows=3,long_length=850", "recipe=sell sell-cut=on"},
      {"rmat,scale=9,edge_factor=20", "recipe=sell sell-cut=on type=f32 vector-threads=2"},
      {"random,rows=70,cols=300,density=0.3", "recipe=sell sell-cut=on"},
      {"long_row,rows=90,cols=4000,per_row=4,long_rows=2,long_length=2000",
       "recipe=merge merge-piece=512 vector-threads=4"},
      {"long_row,rows=2000,cols=6000,per_row=6,long_rows=1,long_length=5800",
       "recipe=hot hot-share=1 hot-columns=300 hot-threads=256"}, /* segments that are carried */
      {"powerlaw,rows=300,max=250,min=0", "recipe=merge type=c128"},
      {"hypersparse,rows=900,cols=900,keep=0.3,per_row=3", "recipe=merge vector-threads=4"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_eight(cases[i][0], cases[i][1]);
}

/* Sums of regions in turn that leave room for few vectors. */
static void kept_sums_have_room(void **state) {
  (void)state;
  check_eight("stencil5,n=40,extra=0.2,values=ones", "recipe=dia values=fixed fuse=on dia-rows=4");
}

/* Without kernels for several: one after the other, where each vector's entries are neighbours. */
static void an_operator_for_one_vector(void **state) {
  (void)state;
  struct sample sample = sample_of("random,rows=70,cols=50,density=0.1", (struct form){0});
  cbgen_context *context = new_context("recipe=sell");
  cbgen_operator *op = compiled(context, &sample.view, 0);
  cbgen_info info = {.struct_size = sizeof info};
  assert_int_equal(cbgen_operator_info(op, &info), CBGEN_OK);
  assert_int_equal(info.vectors, 1);
  check_products(op, op, 3, CBGEN_BY_COLUMN, 1);
  struct dense dense = dense_for(op, 3, CBGEN_BY_ROW, 0);
  const cbgen_products products = products_with(&dense);
  assert_int_equal(cbgen_multiply_many(op, &products), CBGEN_ERROR_UNSUPPORTED);
  assert_non_null(strstr(cbgen_operator_message(op), "'vectors' of the request"));
  dense_release(&dense);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

/* With scratch for each vector, too, and for Y. */
static void check_copies(const char *options) {
  struct sample sample = sample_of("powerlaw,rows=300,max=250", (struct form){0});
  cbgen_context *context = new_context(options);
  const cbgen_request request = {.struct_size = sizeof request, .vectors = 4, .values = CBGEN_VALUES_MUTABLE};
  cbgen_operator *op, *clone, *loaded;
  size_t length;
  must(context, cbgen_compile(context, &sample.view, &request, &op));
  must_operator(op, cbgen_operator_clone(op, &clone));
  must_operator(op, cbgen_operator_save(op, NULL, 0, &length));
  void *bytes = malloc(length);
  must_operator(op, cbgen_operator_save(op, bytes, length, &length));
  must(context, cbgen_operator_load(context, bytes, length, &loaded));
  check_products(clone, op, 7, CBGEN_BY_ROW, 0);
  check_products(loaded, op, 6, CBGEN_BY_COLUMN, 0);
  set_values(&sample, 99);
  sum_up(&sample);
  const cbgen_update update = {sizeof update, sample.given, CBGEN_F64, CBGEN_HOST, NULL};
  must_operator(op, cbgen_update_values(op, &update));
  check_product(op, &sample.csr);
  check_products(clone, op, 4, CBGEN_BY_ROW, 0);
  check_products(clone, op, 4, CBGEN_BY_COLUMN, 0);
  free(bytes);
  cbgen_operator_free(loaded);
  cbgen_operator_free(clone);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

static void copies_multiply_alike(void **state) {
  (void)state;
  check_copies("recipe=sell sell-vary=on copy-x=on");
  check_copies("recipe=sell sell-cut=on");
}

/* X by rows is scratch of each handle: it counts, and two streams need two handles. */
static void a_copy_of_x_is_scratch(void **state) {
  (void)state;
  struct sample sample = sample_of("random,rows=70,cols=50,density=0.1", (struct form){0});
  cbgen_info without = {.struct_size = sizeof without}, with = {.struct_size = sizeof with};
  for (int on = 0; on < 2; on++) {
    cbgen_context *context = new_context(on ? "recipe=sell copy-x=on" : "recipe=sell copy-x=off");
    cbgen_operator *op = compiled(context, &sample.view, 8);
    assert_int_equal(cbgen_operator_info(op, on ? &with : &without), CBGEN_OK);
    check_products(op, op, 8, CBGEN_BY_COLUMN, 0);
    if (on) {
      struct dense dense = dense_for(op, 8, CBGEN_BY_COLUMN, 0);
      cbgen_products products = products_with(&dense);
      products.stream = app_stream(0, 1);
      REFUSED(op, products, CBGEN_ERROR_ARGUMENT, "scratch that serves another stream");
      app_stream_free(products.stream);
      dense_release(&dense);
    }
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
  }
  assert_false(without.has_scratch);
  assert_true(with.has_scratch);
  assert_int_equal(with.device_bytes - without.device_bytes, 50 * 8 * 8);
  sample_release(&sample);
}

/* The cache's entry of one number of vectors is not that of another. */
static void the_cache_keeps_them_apart(void **state) {
  (void)state;
  char directory[1024];
  snprintf(directory, sizeof directory, "%s/many", getenv("CBGEN_TEST_TMP"));
  struct sample sample = sample_of("stencil7,n=5", (struct form){0});
  cbgen_context *context = new_context("recipe=dia");
  must(context, cbgen_set(context, "cache", directory));
  static const int vectors[] = {0, 8, 8, 2};
  for (int i = 0; i < 4; i++) {
    cbgen_operator *op = compiled(context, &sample.view, vectors[i]);
    cbgen_info info = {.struct_size = sizeof info};
    assert_int_equal(cbgen_operator_info(op, &info), CBGEN_OK);
    assert_int_equal(info.vectors, vectors[i] ? vectors[i] : 1);
    if (i == 2) assert_int_equal(info.cache, CBGEN_CACHE_HIT);
    check_products(op, op, 4, i ? CBGEN_BY_ROW : CBGEN_BY_COLUMN, 0);
    cbgen_operator_free(op);
  }
  cbgen_context_destroy(context);
  sample_release(&sample);
}

/* ---- what is refused */

static void arguments_without_meaning(void **state) {
  (void)state;
  struct sample sample = sample_of("random,rows=70,cols=50,density=0.1", (struct form){0});
  cbgen_context *context = new_context("recipe=sell");
  cbgen_operator *op = compiled(context, &sample.view, 4), *none;
  struct dense dense = dense_for(op, 4, CBGEN_BY_ROW, 0);
  const cbgen_products good = products_with(&dense);
  cbgen_products products = good;
  products.vectors = 0;
  REFUSED(op, products, CBGEN_ERROR_ARGUMENT, "'vectors' of the products is 0");
  products.vectors = -3;
  REFUSED(op, products, CBGEN_ERROR_ARGUMENT, "it is 1 or more");
  products = good;
  products.order = (cbgen_order)2;
  REFUSED(op, products, CBGEN_ERROR_ARGUMENT, "'order' is 2");
  products = good;
  products.ldx = 3;
  REFUSED(op, products, CBGEN_ERROR_ARGUMENT, "'ldx' of the products is 3; it is 0 or at least 4");
  products = good;
  products.order = CBGEN_BY_COLUMN;
  products.ldx = 50;
  products.ldy = 69;
  REFUSED(op, products, CBGEN_ERROR_ARGUMENT, "'ldy' of the products is 69; it is 0 or at least 70");
  products = good;
  products.ldy = INT64_MAX / 8;
  REFUSED(op, products, CBGEN_ERROR_LIMIT, "address space");
  products = good;
  products.ldx = INT64_C(1) << 30; /* kernels count a row's bytes in an int */
  products.x = (void *)(uintptr_t)8;
  REFUSED(op, products, CBGEN_ERROR_LIMIT, "from one row to the next");
  products = good;
  products.x = NULL;
  REFUSED(op, products, CBGEN_ERROR_ARGUMENT, "NULL");
  products = good;
  products.y = (void *)(uintptr_t)(dense.x_there + 8);
  REFUSED(op, products, CBGEN_ERROR_ARGUMENT, "X and Y of the products overlap");
  products = good;
  products.y = (void *)(uintptr_t)(dense.y_there + 4);
  REFUSED(op, products, CBGEN_ERROR_ARGUMENT, "aligned");
  products = good;
  products.struct_size = 1;
  REFUSED(op, products, CBGEN_ERROR_ARGUMENT, "cbgen_products");
  must_operator(op, cbgen_multiply_many(op, &good));
  const cbgen_request negative = {.struct_size = sizeof negative, .vectors = -1};
  assert_int_equal(cbgen_compile(context, &sample.view, &negative, &none), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_message(context), "'vectors' is -1"));
  const cbgen_request both = {.struct_size = sizeof both, .vectors = 2, .epilogue = "out r; r = ax;"};
  assert_int_equal(cbgen_compile(context, &sample.view, &both, &none), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_message(context), "an epilogue takes one vector"));
  must(context, cbgen_set(context, "semiring", "min-plus"));
  const cbgen_request two = {.struct_size = sizeof two, .vectors = 2};
  assert_int_equal(cbgen_compile(context, &sample.view, &two, &none), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_message(context), "plus-times"));
  dense_release(&dense);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(every_vector_has_its_own_product, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(other_plans_multiply_alike, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(rectangles_multiply_alike, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(threads_share_vectors_of_any_rows, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(kept_sums_have_room, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(an_operator_for_one_vector, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(copies_multiply_alike, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(a_copy_of_x_is_scratch, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(the_cache_keeps_them_apart, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(arguments_without_meaning, open_fake, check_fake),
  };
  return cmocka_run_group_tests_name("api_many", tests, NULL, NULL);
}
