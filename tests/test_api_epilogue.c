// SPDX-License-Identifier: Apache-2.0
/* Epilogues through the public interface: whatever the recipe, each row is handed to the statements once, with the bits
 * that y = A x has without them; results repeat bit for bit; what a product must say, and what is refused. */
#include "tests/api_support.h"
#include "tests/recipes.h"

#include "analysis/statements/statements.h"

static cbgen_operator *compiled(cbgen_context *context, const cbgen_csr *view, const char *epilogue) {
  const cbgen_request request = {
      .struct_size = sizeof request, .epilogue = epilogue, .specialise = CBGEN_SPECIALISE_NOW};
  cbgen_operator *op;
  must(context, cbgen_compile(context, view, &request, &op));
  return op;
}

static const char text[] = "in b; in float shift; inout acc; out r; out double copy; scalar w; device half;"
                           "t = b - ax; pick = t < 0; r = pick ? w * t : fma(t, half, shift); acc = acc + r;"
                           "copy = row; rr = dot(r, r); most = max(abs(t)); total = sum(acc);";
enum { GIVEN = 10 };

/* Everything that the text names, on the GPU and as numbers. */
struct given {
  int64_t rows;
  enum cb_type type, sum_type;
  double *b, *shift, *acc;
  uint64_t there[GIVEN];
  cbgen_argument arguments[GIVEN];
};

static double *add_vector(struct given *given, int place, const char *name, enum cb_type type, uint64_t seed) {
  double *numbers = calloc((size_t)given->rows + 1, sizeof *numbers);
  given->there[place] = app_alloc(0, (size_t)given->rows * cb_type_size(type) + 8);
  fill_vector(given->there[place], numbers, given->rows, type, seed);
  given->arguments[place] = (cbgen_argument){name, (void *)(uintptr_t)given->there[place], 0};
  return numbers;
}

static struct given given_for(const cbgen_operator *op) {
  static const char *const others[] = {"half", "rr", "most", "total"};
  cbgen_info info = {.struct_size = sizeof info};
  assert_int_equal(cbgen_operator_info(op, &info), CBGEN_OK);
  struct given given = {
      .rows = info.rows, .type = (enum cb_type)info.vector_type, .sum_type = (enum cb_type)info.sum_type};
  given.b = add_vector(&given, 0, "b", given.type, 11);
  given.shift = add_vector(&given, 1, "shift", CB_F32, 12);
  given.acc = add_vector(&given, 2, "acc", given.type, 13);
  free(add_vector(&given, 3, "r", given.type, 14));
  free(add_vector(&given, 4, "copy", CB_F64, 15));
  given.arguments[5] = (cbgen_argument){"w", NULL, 0.75};
  for (int i = 0; i < 4; i++) {
    char number[8];
    given.there[6 + i] = app_alloc(0, 8);
    cb_real_set(number, given.sum_type, 0, 0.5);
    assert_true(app_put(given.there[6 + i], number, cb_type_size(given.sum_type)));
    given.arguments[6 + i] = (cbgen_argument){others[i], (void *)(uintptr_t)given.there[6 + i], 0};
  }
  return given;
}

static void given_release(struct given *given) {
  for (int i = 0; i < GIVEN; i++)
    if (given->there[i]) app_free(given->there[i]);
  free(given->b);
  free(given->shift);
  free(given->acc);
}

static cbgen_product product_given(const struct vectors *vectors, const struct given *given) {
  return (cbgen_product){.struct_size = sizeof(cbgen_product),
                         .alpha = 1,
                         .x = (void *)(uintptr_t)vectors->x_there,
                         .arguments = given->arguments,
                         .arguments_count = GIVEN};
}

static double number_at(uint64_t there, enum cb_type type) {
  char bytes[8];
  assert_true(app_take(bytes, there, cb_type_size(type)));
  return cb_real_get(bytes, type, 0);
}

static void *taken(uint64_t there, int64_t count, enum cb_type type) {
  void *bytes = calloc((size_t)count + 1, cb_type_size(type));
  assert_non_null(bytes);
  if (count) assert_true(app_take(bytes, there, (size_t)count * cb_type_size(type)));
  return bytes;
}

/* Sums as of_rows, of_block and of_partials of templates/statements.cu.in have them, in the sums' type. */
enum { THREADS = 256, BLOCK_ROWS = 1024 };
static double join(double a, double b, int largest, enum cb_type type) {
  if (largest) return a != a || a > b ? a : b;
  return cb_real_round(a + b, type);
}
static double joined_block(const double *of_threads, int largest, enum cb_type type) {
  double warps[THREADS / 32], all = 0;
  for (int w = 0; w < THREADS / 32; w++) {
    double lanes[32];
    memcpy(lanes, of_threads + 32 * w, sizeof lanes);
    for (int step = 16; step > 0; step /= 2)
      for (int lane = 0; lane < step; lane++) lanes[lane] = join(lanes[lane], lanes[lane + step], largest, type);
    warps[w] = lanes[0];
  }
  all = warps[0];
  for (int w = 1; w < THREADS / 32; w++) all = join(all, warps[w], largest, type);
  return all;
}
static double joined(const double *terms, int64_t count, int64_t block, int largest, enum cb_type type) {
  double of_threads[THREADS];
  for (int t = 0; t < THREADS; t++) {
    of_threads[t] = largest ? -INFINITY : 0;
    for (int64_t i = t; i < block && i < count; i += THREADS)
      of_threads[t] = join(of_threads[t], terms[i], largest, type);
  }
  return joined_block(of_threads, largest, type);
}
static double reduced(const double *terms, int64_t rows, int largest, enum cb_type type) {
  const int64_t blocks = (rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
  double *partials = calloc((size_t)blocks + 1, sizeof *partials);
  for (int64_t b = 0; b < blocks; b++)
    partials[b] = joined(terms + BLOCK_ROWS * b, rows - BLOCK_ROWS * b, BLOCK_ROWS, largest, type);
  const double all = joined(partials, blocks, blocks, largest, type);
  free(partials);
  return all;
}

/* What the statements make of the plain product's y, bit for bit. */
static void check_rows(const struct given *given, const void *y) {
  struct cb_statements *statements;
  struct cb_diag diag = {0};
  assert_ok(cb_statements_parse(&statements, text, "epilogue", 1, &diag));
  void *r = taken(given->there[3], given->rows, given->type), *acc = taken(given->there[2], given->rows, given->type);
  double *copy = taken(given->there[4], given->rows, CB_F64);
  double *terms[3];
  static const char *const results[] = {"rr", "most", "total"};
  for (int k = 0; k < 3; k++) terms[k] = calloc((size_t)given->rows + 1, sizeof **terms);
  for (int64_t i = 0; i < given->rows; i++) {
    const struct {
      const char *name;
      double value;
    } known[] = {{"ax", cb_real_get(y, given->type, i)}, {"row", (double)i}, {"b", given->b[i]}, {"half", 0.5},
                 {"shift", given->shift[i]}, {"acc", given->acc[i]}, {"w", 0.75}};
    double values[CB_MOST_NAMES] = {0};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
      values[cb_statements_find(statements, known[k].name)] = known[k].value;
    cb_statements_row(statements, given->sum_type, values);
    assert_true(cb_real_get(r, given->type, i) == values[cb_statements_find(statements, "r")]);
    assert_true(cb_real_get(acc, given->type, i) == values[cb_statements_find(statements, "acc")]);
    assert_true(copy[i] == (double)i);
    for (int k = 0; k < 3; k++) terms[k][i] = values[cb_statements_find(statements, results[k])];
  }
  for (int k = 0; k < 3; k++) {
    const double expected = reduced(terms[k], given->rows, k == 1, given->sum_type);
    const double found = number_at(given->there[7 + k], given->sum_type);
    if (found != expected) fail_msg("'%s' is %.17g, not %.17g", results[k], found, expected);
    free(terms[k]);
  }
  free(r);
  free(acc);
  free(copy);
  cb_free(statements);
}

static void check_epilogue(const char *matrix, const char *settings) {
  struct sample sample = sample_of(matrix, (struct form){0});
  cbgen_context *context = new_context(settings);
  must(context, cbgen_set(context, "commit", "once"));
  cbgen_operator *plain = compiled(context, &sample.view, NULL), *op = compiled(context, &sample.view, text);
  struct vectors vectors = vectors_for(plain, 0);
  struct given given = given_for(op);
  const cbgen_product product = product_with(&vectors, 1, 0, NULL), with = product_given(&vectors, &given);
  must_operator(plain, cbgen_multiply(plain, &product));
  must_operator(op, cbgen_multiply(op, &with));
  void *y = taken(vectors.y_there, vectors.rows, vectors.type);
  check_rows(&given, y);
  free(y);
  given_release(&given);
  vectors_release(&vectors);
  cbgen_operator_free(plain);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

static void every_recipe_hands_each_row_over_once(void **state) {
  (void)state;
  const struct cb_recipe *recipe;
  for (int i = 0; (recipe = cb_recipe_at(i)); i++) {
    const char *example = example_of(recipe);
    check_epilogue(example ? example : "random,rows=300,cols=200,density=0.05", settings_of_recipe(recipe));
  }
}

static void types_and_shapes(void **state) {
  (void)state;
  check_epilogue("random,rows=2500,cols=40,density=0.05", "recipe=sell type=f32");
  check_epilogue("random,rows=1,cols=70,density=0.5", "recipe=sell");
  check_epilogue("random,rows=1024,cols=1024,density=0.01", "recipe=merge type=f16-f32");
  check_epilogue("random,rows=40,cols=5000,density=0.2", "recipe=cb unit-budget=512");
}

/* ---- what a product says */

static void check_refused(cbgen_operator *op, cbgen_product product, const char *words) {
  assert_int_equal(cbgen_multiply(op, &product), CBGEN_ERROR_ARGUMENT);
  if (!strstr(cbgen_operator_message(op), words)) fail_msg("%s", cbgen_operator_message(op));
}

static void what_a_product_lacks_is_named(void **state) {
  (void)state;
  struct sample sample = sample_of("random,rows=30,cols=30,density=0.2", (struct form){0});
  cbgen_context *context = new_context("recipe=sell");
  cbgen_operator *op = compiled(context, &sample.view, text), *plain = compiled(context, &sample.view, NULL);
  struct vectors vectors = vectors_for(op, 0);
  struct given given = given_for(op);
  const cbgen_product product = product_given(&vectors, &given);
  cbgen_product wrong = product;
  wrong.arguments_count--;
  check_refused(op, wrong, "lack 'total'");
  wrong.arguments = NULL;
  check_refused(op, wrong, "NULL");
  wrong = product;
  wrong.y = (void *)(uintptr_t)vectors.y_there;
  check_refused(op, wrong, "'y' NULL");
  wrong = product;
  wrong.alpha = 2;
  check_refused(op, wrong, "alpha must be 1");
  check_refused(plain, product, "no epilogue");
  cbgen_argument more[GIVEN + 1];
  memcpy(more, given.arguments, sizeof given.arguments);
  more[GIVEN] = (cbgen_argument){"other", NULL, 1};
  wrong = product;
  wrong.arguments = more;
  wrong.arguments_count++;
  check_refused(op, wrong, "11 arguments, and the epilogue 10 names");
  wrong.arguments_count--;
  more[0].pointer = NULL;
  check_refused(op, wrong, "'pointer' of 'b' is NULL");
  more[0].pointer = (char *)given.arguments[0].pointer + 1;
  check_refused(op, wrong, "not aligned");
  more[0] = given.arguments[0];
  more[5].pointer = given.arguments[0].pointer;
  check_refused(op, wrong, "'w' is a scalar");
  must_operator(op, cbgen_multiply(op, &product));
  double seconds;
  assert_int_equal(cbgen_operator_measure(op, &seconds), CBGEN_ERROR_ARGUMENT);
  given_release(&given);
  vectors_release(&vectors);
  cbgen_operator_free(op);
  cbgen_operator_free(plain);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

static void wrong_texts_are_refused_with_their_place(void **state) {
  (void)state;
  struct sample sample = sample_of("random,rows=30,cols=30,density=0.2", (struct form){0});
  cbgen_context *context = new_context("recipe=sell");
  const cbgen_request request = {.struct_size = sizeof request, .epilogue = "out r;\nr = b - ax;"};
  cbgen_operator *op;
  assert_int_equal(cbgen_compile(context, &sample.view, &request, &op), CBGEN_ERROR_ARGUMENT);
  assert_null(op);
  assert_string_equal(cbgen_message(context), "epilogue:2:5: there is no 'b' here");
  assert_int_equal(cbgen_set(context, "epilogue", "out"), CBGEN_ERROR_ARGUMENT);
  assert_string_equal(cbgen_message(context), "epilogue:1:4: a name is expected here, not 'the end'");
  cbgen_context_destroy(context);
  sample_release(&sample);
}

/* ---- cache, saved operators, clones */

static void check_kept(cbgen_operator *op, const struct vectors *vectors, double expected) {
  struct given given = given_for(op);
  const cbgen_product product = product_given(vectors, &given);
  must_operator(op, cbgen_multiply(op, &product));
  assert_true(number_at(given.there[7], given.sum_type) == expected);
  given_release(&given);
}

static cbgen_cache_result cache_result(const cbgen_operator *op) {
  cbgen_info info = {.struct_size = sizeof info};
  assert_int_equal(cbgen_operator_info(op, &info), CBGEN_OK);
  return info.cache;
}

static void the_cache_and_saved_operators_keep_epilogues(void **state) {
  (void)state;
  char directory[512], other[512];
  struct sample sample = sample_of("random,rows=200,cols=200,density=0.05", (struct form){0});
  cbgen_context *context = new_context("recipe=merge");
  snprintf(directory, sizeof directory, "%s/cache.XXXXXX", getenv("CBGEN_TEST_TMP"));
  assert_non_null(mkdtemp(directory));
  must(context, cbgen_set(context, "cache", directory));
  cbgen_operator *op = compiled(context, &sample.view, text), *clone;
  struct vectors vectors = vectors_for(op, 0);
  struct given given = given_for(op);
  const cbgen_product product = product_given(&vectors, &given);
  must_operator(op, cbgen_multiply(op, &product));
  const double expected = number_at(given.there[7], given.sum_type);
  assert_true(expected > 0);
  must_operator(op, cbgen_operator_clone(op, &clone));
  check_kept(clone, &vectors, expected);
  cbgen_operator_free(clone);
  snprintf(other, sizeof other, "  %s // the same", text);
  cbgen_operator *again = compiled(context, &sample.view, other);
  assert_int_equal(cache_result(again), CBGEN_CACHE_HIT);
  check_kept(again, &vectors, expected);
  cbgen_operator_free(again);
  snprintf(other, sizeof other, "%s more = sum(ax);", text);
  again = compiled(context, &sample.view, other);
  assert_int_equal(cache_result(again), CBGEN_CACHE_MISS);
  cbgen_operator_free(again);
  size_t length = 0;
  must_operator(op, cbgen_operator_save(op, NULL, 0, &length));
  void *bytes = malloc(length);
  must_operator(op, cbgen_operator_save(op, bytes, length, &length));
  must(context, cbgen_operator_load(context, bytes, length, &again));
  check_kept(again, &vectors, expected);
  cbgen_operator_free(again);
  free(bytes);
  given_release(&given);
  vectors_release(&vectors);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

/* ---- alpha and beta in device memory */

static void check_device_scalars(cbgen_operator *op, cbgen_operator *plain, double alpha, double beta, int into_z) {
  const cbgen_info info = info_of(op);
  const enum cb_type type = (enum cb_type)info.vector_type, sum_type = (enum cb_type)info.sum_type;
  const size_t bytes = (size_t)info.rows * cb_type_size(type);
  struct vectors vectors = vectors_for(op, 0), same = vectors_for(op, 0);
  const uint64_t numbers = app_alloc(0, 16), z = app_alloc(0, bytes + 8);
  char both[16] = {0};
  cb_real_set(both, sum_type, 0, alpha);
  cb_real_set(both, sum_type, 1, beta);
  assert_true(app_put(numbers, both, sizeof both));
  cbgen_product product = product_with(&vectors, 77, 88, NULL); /* which do not count */
  product.alpha_device = (void *)(uintptr_t)numbers;
  product.beta_device = (char *)(uintptr_t)numbers + cb_type_size(sum_type);
  if (into_z) product.z = (void *)(uintptr_t)z;
  const cbgen_product by_value = product_with(&same, alpha, beta, NULL);
  must_operator(op, cbgen_multiply(op, &product));
  must_operator(plain, cbgen_multiply(plain, &by_value));
  void *found = taken(into_z ? z : vectors.y_there, info.rows, type), *expected = taken(same.y_there, info.rows, type);
  assert_memory_equal(found, expected, bytes);
  free(found);
  free(expected);
  app_free(numbers);
  app_free(z);
  vectors_release(&vectors);
  vectors_release(&same);
}

static void check_scalars_of(const char *matrix, const char *settings) {
  struct sample sample = sample_of(matrix, (struct form){0});
  cbgen_context *context = new_context(settings);
  must(context, cbgen_set(context, "commit", "once"));
  const cbgen_request request = {.struct_size = sizeof request,
                                 .values = CBGEN_VALUES_MUTABLE,
                                 .specialise = CBGEN_SPECIALISE_NOW,
                                 .device_scalars = 1};
  cbgen_operator *plain = compiled(context, &sample.view, NULL), *op, *copies[2];
  must(context, cbgen_compile(context, &sample.view, &request, &op));
  check_device_scalars(op, plain, 0.75, -3, 0);
  check_device_scalars(op, plain, 1, 0, 0);
  check_device_scalars(op, plain, 0, 1, 1);
  must_operator(op, cbgen_operator_clone(op, &copies[0]));
  must_operator(op, cbgen_operator_copy(op, NULL, &copies[1]));
  for (int i = 0; i < 2; i++) {
    check_device_scalars(copies[i], plain, -0.3, 0.7, 1);
    cbgen_operator_free(copies[i]);
  }
  size_t length = 0;
  must_operator(op, cbgen_operator_save(op, NULL, 0, &length));
  void *bytes = malloc(length);
  must_operator(op, cbgen_operator_save(op, bytes, length, &length));
  must(context, cbgen_operator_load(context, bytes, length, &copies[0]));
  check_device_scalars(copies[0], plain, 2, 2, 0);
  cbgen_operator_free(copies[0]);
  free(bytes);
  cbgen_operator_free(op);
  cbgen_operator_free(plain);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

static void scalars_may_lie_in_device_memory(void **state) {
  (void)state;
  check_scalars_of("random,rows=300,cols=200,density=0.05", "recipe=sell values=data");
  check_scalars_of("random,rows=40,cols=900,density=0.2", "recipe=merge type=f32");
  check_scalars_of("random,rows=200,cols=200,density=0.1", "recipe=cb type=f16-f32");
}

static void what_scalars_in_device_memory_lack_is_named(void **state) {
  (void)state;
  struct sample sample = sample_of("random,rows=30,cols=30,density=0.2", (struct form){0});
  cbgen_context *context = new_context("recipe=sell");
  cbgen_request request = {.struct_size = sizeof request, .device_scalars = 1};
  cbgen_operator *op, *plain = compiled(context, &sample.view, NULL), *none;
  must(context, cbgen_compile(context, &sample.view, &request, &op));
  struct vectors vectors = vectors_for(op, 0);
  const cbgen_product by_value = product_with(&vectors, 1, 0, NULL);
  const cbgen_argument argument = {"alpha", vectors.y, 0};
  cbgen_product product = by_value;
  check_refused(op, by_value, "'alpha_device' and 'beta_device' of the product are not NULL");
  product.alpha_device = product.beta_device = product.x;
  check_refused(plain, product, "compiled without 'device_scalars'");
  product.beta_device = (const char *)product.x + 4;
  check_refused(op, product, "not aligned to the sums' type");
  product.beta_device = product.x;
  product.arguments = &argument;
  product.arguments_count = 1;
  check_refused(op, product, "no epilogue of the caller's");
  product.arguments_count = 0;
  product.heads = 1;
  check_refused(op, product, "they have no heads");
  product.heads = 0;
  product.y = NULL;
  product.beta = 0;
  product.z = (void *)(uintptr_t)vectors.y_there;
  check_refused(op, product, "'y' of the product is NULL");
  request.epilogue = "out r; r = ax;";
  assert_int_equal(cbgen_compile(context, &sample.view, &request, &none), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_message(context), "leave out 'device_scalars'"));
  request.epilogue = NULL;
  request.device_scalars = 2;
  assert_int_equal(cbgen_compile(context, &sample.view, &request, &none), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_message(context), "it is 0 or 1"));
  request.device_scalars = 1;
  must(context, cbgen_set(context, "form", "ax"));
  assert_int_equal(cbgen_compile(context, &sample.view, &request, &none), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_message(context), "takes the form axpby"));
  vectors_release(&vectors);
  cbgen_operator_free(op);
  cbgen_operator_free(plain);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

/* ---- r = b - A x, and the diagonal */

static void the_residual_is_b_minus_ax(void **state) {
  (void)state;
  struct sample sample = sample_of("random,rows=70,cols=50,density=0.1", (struct form){0});
  cbgen_context *context = new_context("recipe=sell");
  cbgen_operator *op = compiled(context, &sample.view, NULL);
  struct vectors vectors = vectors_for(op, 0);
  const uint64_t b = vectors.y_there, r = app_alloc(0, 70 * sizeof(double));
  void *const x = (void *)(uintptr_t)vectors.x_there, *const right = (void *)(uintptr_t)b;
  must_operator(op, cbgen_residual(op, right, x, (void *)(uintptr_t)r, NULL));
  double *kept = taken(b, 70, CB_F64);
  assert_memory_equal(kept, vectors.y, 70 * sizeof(double));
  vectors.y_there = r;
  check_result(op, &sample.csr, &vectors, -1, 1);
  vectors.y_there = b;
  must_operator(op, cbgen_residual(op, right, x, right, NULL));
  check_result(op, &sample.csr, &vectors, -1, 1);
  cbgen_product product = product_with(&vectors, 3, 0, NULL); /* y is not read, and may be NULL */
  product.y = NULL;
  product.z = (void *)(uintptr_t)b;
  must_operator(op, cbgen_multiply(op, &product));
  check_result(op, &sample.csr, &vectors, 3, 0);
  product.beta = 1;
  check_refused(op, product, "'y' of the product is NULL");
  assert_int_equal(cbgen_residual(op, NULL, NULL, NULL, NULL), CBGEN_ERROR_ARGUMENT);
  free(kept);
  app_free(r);
  vectors_release(&vectors);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

static void check_diagonal(const char *matrix, struct form form) {
  struct sample sample = sample_of(matrix, form);
  cbgen_context *context = new_context("");
  const enum cb_type type = form.value_type == CBGEN_F64 ? CB_F64 : CB_F32;
  const int64_t least = sample.csr.rows < sample.csr.cols ? sample.csr.rows : sample.csr.cols;
  const uint64_t there = app_alloc(0, (size_t)least * 8 + 8);
  int found = 0;
  must(context, cbgen_diagonal(context, &sample.view, (void *)(uintptr_t)there));
  void *diagonal = taken(there, least, type);
  for (int64_t row = 0; row < least; row++) {
    double expected = 0;
    for (int64_t k = cb_csr_row(&sample.csr, row); k < cb_csr_row(&sample.csr, row + 1); k++)
      if (sample.csr.col_idx[k] == row) expected = sample.csr.values[k];
    assert_true(fabs(cb_real_get(diagonal, type, row) - expected) <= 1e-6 * fabs(expected));
    found += expected != 0;
  }
  assert_true(found > 0);
  free(diagonal);
  app_free(there);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

static void the_diagonal_is_that_of_the_entries(void **state) {
  (void)state;
  check_diagonal("random,rows=60,cols=40,density=0.3", (struct form){0});
  check_diagonal("random,rows=40,cols=60,density=0.3", (struct form){.row_bits = 64, .col_bits = 64, .base = 1});
  check_diagonal("random,rows=50,cols=50,density=0.3", (struct form){.shuffled = 1, .duplicates = 1, .on_device = 1});
  check_diagonal("random,rows=50,cols=50,density=0.3", (struct form){.value_type = CBGEN_F32, .on_device = 1});
  check_diagonal("random,rows=50,cols=50,density=0.3", (struct form){.no_values = 1});
  cbgen_context *context = new_context("");
  const cbgen_csr none = {.struct_size = sizeof none};
  assert_int_equal(cbgen_diagonal(context, &none, NULL), CBGEN_ERROR_ARGUMENT);
  cbgen_context_destroy(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(every_recipe_hands_each_row_over_once, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(types_and_shapes, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(what_a_product_lacks_is_named, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(scalars_may_lie_in_device_memory, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(what_scalars_in_device_memory_lack_is_named, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(wrong_texts_are_refused_with_their_place, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(the_residual_is_b_minus_ax, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(the_diagonal_is_that_of_the_entries, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(the_cache_and_saved_operators_keep_epilogues, open_fake, check_fake),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
