// SPDX-License-Identifier: Apache-2.0
/* CBGEN_CHECK on the fake GPU: right operators pass, in all types, forms and semirings, with new values and in every
 * form that a matrix has; kernels that are edited to be wrong are found, and what was found is the status of the next
 * call; nothing is kept in the cache or saved; graphs, streams, failures. */
#include "tests/api_scratch.h"

#include "tests/fake_driver.h"

#include <unistd.h>

static const char matrix[] = "stencil7,n=5";

static int clear(void **state) {
  static const char *const names[] = {"CBGEN_CHECK", "CBGEN_DUMP", "CBGEN_OVERRIDE", "CBGEN_LOG"};
  (void)state;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
  *log_text = 0;
  return empty_scratch("checks", "kernels");
}

static cbgen_operator *compile_with(cbgen_context *context, const struct sample *sample, cbgen_values values) {
  const cbgen_request request = {.struct_size = sizeof request, .values = values};
  cbgen_operator *op = NULL;
  must(context, cbgen_compile(context, &sample->view, &request, &op));
  return op;
}

static cbgen_operator *compile(cbgen_context *context, const struct sample *sample) {
  return compile_with(context, sample, CBGEN_VALUES_STORED);
}

static void assert_has(const char *text, const char *words) {
  if (!strstr(text, words)) fail_msg("'%s' is not in '%s'", words, text);
}

static char *read_text(const char *path) {
  FILE *file = fopen(path, "r");
  if (!file) fail_msg("there is no '%s'", path);
  char *text = calloc(1 << 20, 1);
  assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
  assert_int_equal(fclose(file), 0);
  return text;
}

/* Runs what CBGEN_OVERRIDE finds from now on: the sample's kernel with the first `from` replaced. Returns its line. */
static int edit(const struct sample *sample, const char *options, const char *from, const char *to) {
  char path[700];
  int line = 1;
  cbgen_context *context = logged_context(options);
  setenv("CBGEN_DUMP", place("kernels"), 1);
  cbgen_operator *op = compile(context, sample);
  unsetenv("CBGEN_DUMP");
  snprintf(path, sizeof path, "%s/%s.cu", place("kernels"), cbgen_operator_key(op));
  char *text = read_text(path), *edited = replaced(text, from, to, 1);
  if (!edited) fail_msg("the kernel has no '%s'", from);
  for (const char *at = strstr(text, from); at > text; at--) line += at[-1] == '\n';
  FILE *file = fopen(path, "w");
  assert_true(file && fputs(edited, file) >= 0);
  assert_int_equal(fclose(file), 0);
  cb_free(edited);
  free(text);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  setenv("CBGEN_OVERRIDE", place("kernels"), 1);
  return line;
}

/* ---- bounds */

static void checked_kernels_are_right_and_are_not_kept(void **state) {
  (void)state;
  struct sample sample = sample_of(matrix, (struct form){0});
  cbgen_context *context = logged_context("");
  size_t length;
  setenv("CBGEN_CHECK", "bounds", 1);
  cbgen_operator *op = compile(context, &sample);
  assert_has(log_text, "CBGEN_CHECK: kernel cbgen_");
  check_product(op, &sample.csr);
  check_product(op, &sample.csr);
  assert_null(strstr(cbgen_operator_source(op, NULL), "check_index"));
  assert_int_equal(entries(), 0);
  assert_int_equal(cbgen_operator_save(op, NULL, 0, &length), CBGEN_ERROR_UNSUPPORTED);
  assert_has(cbgen_operator_message(op), "CBGEN_CHECK=bounds");
  cbgen_operator_free(op);
  unsetenv("CBGEN_CHECK");
  *log_text = 0;
  op = compile(context, &sample);
  assert_null(strstr(log_text, "CBGEN_CHECK"));
  assert_true(entries() > 0);
  check_product(op, &sample.csr);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

/* The status stays: every later call has it, also that of a clone. */
static void index_out_of_bounds_is_told_by_the_next_call(void **state) {
  (void)state;
  struct sample sample = sample_of(matrix, (struct form){0});
  const char *const options = "recipe=sell";
  const int line = edit(&sample, options, "load_x(vectors, ", "load_x(vectors, 1000 + ");
  char wanted[100];
  snprintf(wanted, sizeof wanted, "line %d of the kernel: index 1", line);
  setenv("CBGEN_CHECK", "bounds", 1);
  cbgen_context *context = logged_context(options);
  cbgen_operator *op = compile_with(context, &sample, CBGEN_VALUES_MUTABLE), *clone;
  struct vectors vectors = vectors_for(op, 0);
  const cbgen_product product = product_with(&vectors, 1, 0, NULL);
  const cbgen_update update = {sizeof update, sample.given, CBGEN_F64, CBGEN_HOST, NULL};
  must_operator(op, cbgen_multiply(op, &product));
  must_operator(op, cbgen_operator_clone(op, &clone));
  cbgen_operator *const handles[] = {op, clone, op};
  for (int i = 0; i < 3; i++) {
    assert_int_equal(cbgen_multiply(handles[i], &product), CBGEN_ERROR_WRONG);
    assert_has(cbgen_operator_message(handles[i]), wanted);
    assert_has(cbgen_operator_message(handles[i]), "of 'x', which has 125 (thread block ");
  }
  assert_int_equal(cbgen_update_values(op, &update), CBGEN_ERROR_WRONG);
  vectors_release(&vectors);
  cbgen_operator_free(clone);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

/* ---- products */

static int64_t device_bytes(const cbgen_operator *op) {
  cbgen_info info = {.struct_size = sizeof info};
  assert_int_equal(cbgen_operator_info(op, &info), CBGEN_OK);
  return info.device_bytes;
}

/* A product, whose result the next call judges. */
static void multiply(cbgen_operator *op, const struct vectors *vectors, double alpha, double beta) {
  const cbgen_product product = product_with(vectors, alpha, beta, NULL);
  must_operator(op, cbgen_multiply(op, &product));
}

static void check_right(const char *options, struct form form, const char *specification, double alpha, double beta) {
  struct sample sample = sample_of(specification, form);
  cbgen_context *context = logged_context(options);
  const long executed = fake->executed;
  cbgen_operator *op = compile(context, &sample);
  struct vectors vectors = vectors_for(op, 0);
  for (int i = 0; i < 3; i++) multiply(op, &vectors, alpha, beta);
  assert_true(fake->executed >= executed + 9); /* each with its comparison, of two launches */
  vectors_release(&vectors);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

static void right_products_pass(void **state) {
  static const struct {
    const char *options;
    double alpha, beta;
  } rows[] = {
      {"form=axpby", 1.25, -0.5},      {"form=ax", 1, 0},
      {"form=add", 1, 1},              {"type=f32 form=axpby", -3, 0.125},
      {"type=f16 form=axpby", 0.5, 1}, {"type=bf16 form=ax", 1, 0},
      {"type=f16-f32 form=add", 1, 1}, {"semiring=min-plus form=axpby", 1, 1},
      {"semiring=or-and type=f16 form=add", 1, 1}, {"semiring=max-times type=f32 form=axpby", 1, 0},
  };
  (void)state;
  setenv("CBGEN_CHECK", "1", 1);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    check_right(rows[i].options, (struct form){0}, "rmat,scale=7,edge_factor=4", rows[i].alpha, rows[i].beta);
}

static void every_form_of_a_matrix_is_compared(void **state) {
  static const struct form forms[] = {
      {.row_bits = 64, .col_bits = 64, .base = 1, .shuffled = 1, .duplicates = 1},
      {.on_device = 1, .duplicates = 1},
      {.value_type = CBGEN_F32},
      {.no_values = 1},
      {.no_values = 1, .on_device = 1},
  };
  (void)state;
  setenv("CBGEN_CHECK", "1", 1);
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) check_right("", forms[i], "rmat,scale=7,edge_factor=4", 1.25, -0.5);
  check_right("", (struct form){0}, "empty,rows=3,cols=5", 1, 0);
}

/* NaN and infinities in x: the rows that reference them are of their class. */
static void rows_that_are_not_finite_are_compared_by_class(void **state) {
  static const double specials[] = {NAN, INFINITY, -INFINITY};
  (void)state;
  setenv("CBGEN_CHECK", "1", 1);
  for (int i = 0; i < 2; i++) {
    struct sample sample = sample_of(matrix, (struct form){0});
    if (i) edit(&sample, "", "product(vectors.alpha, sum)", "product(vectors.alpha, sum != sum ? zero() : sum)");
    cbgen_context *context = logged_context("");
    cbgen_operator *op = compile(context, &sample);
    struct vectors vectors = vectors_for(op, 0);
    const cbgen_product product = product_with(&vectors, 1, 0, NULL);
    for (int k = 0; k < 3; k++) assert_true(app_put(vectors.x_there + (uint64_t)(8 * (20 + 17 * k)), &specials[k], 8));
    must_operator(op, cbgen_multiply(op, &product));
    const cbgen_status status = cbgen_multiply(op, &product);
    assert_int_equal(status, i ? CBGEN_ERROR_WRONG : CBGEN_OK);
    vectors_release(&vectors);
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
    sample_release(&sample);
  }
}

static void transposed_matrices_are_compared(void **state) {
  (void)state;
  setenv("CBGEN_CHECK", "1", 1);
  struct sample sample = sample_of("random,rows=40,cols=70,per_row=6", (struct form){.shuffled = 1, .duplicates = 1});
  cbgen_context *context = logged_context("");
  const cbgen_request request = {.struct_size = sizeof request, .values = CBGEN_VALUES_MUTABLE, .transpose = 1};
  cbgen_operator *op;
  must(context, cbgen_compile(context, &sample.view, &request, &op));
  struct vectors vectors = vectors_for(op, 0);
  multiply(op, &vectors, 1.5, -1);
  multiply(op, &vectors, 1.5, -1);
  vectors_release(&vectors);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

static void wrong_row_is_told_once_by_the_next_call(void **state) {
  static const struct {
    const char *from, *to, *wanted;
  } rows[] = {
      {"product(vectors.alpha, sum)", "product(vectors.alpha, row == 77 ? sum + sum : sum)",
       "CBGEN_CHECK: product 2: row 77 is "},
      {"product(vectors.alpha, sum)", "product(vectors.alpha, row > 99 ? sum * (1 + 1e-13) : sum)",
       "(wrong rows: 25)"},
      {"product(vectors.alpha, sum)", "product(vectors.alpha, row == 5 ? sum / zero() : sum)", "row 5 is "},
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    clear(state);
    struct sample sample = sample_of(matrix, (struct form){0});
    edit(&sample, "", rows[i].from, rows[i].to);
    setenv("CBGEN_CHECK", "2", 1);
    cbgen_context *context = logged_context("");
    cbgen_operator *op = compile(context, &sample);
    struct vectors vectors = vectors_for(op, 0);
    const cbgen_product product = product_with(&vectors, 1, 0, NULL);
    multiply(op, &vectors, 1, 0);
    multiply(op, &vectors, 1, 0); /* compared */
    assert_int_equal(cbgen_multiply(op, &product), CBGEN_ERROR_WRONG);
    assert_has(cbgen_operator_message(op), rows[i].wanted);
    assert_has(cbgen_operator_message(op), " was expected, give or take ");
    multiply(op, &vectors, 1, 0); /* the third: the call that told was none */
    multiply(op, &vectors, 1, 0); /* compared */
    assert_int_equal(cbgen_multiply(op, &product), CBGEN_ERROR_WRONG);
    vectors_release(&vectors);
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
    sample_release(&sample);
  }
}

/* The copy of the values is renewed, from the host and from the device; its memory is in the info. */
static void new_values_are_followed(void **state) {
  static const cbgen_type types[] = {CBGEN_F64, CBGEN_F32};
  (void)state;
  for (int i = 0; i < 4; i++) {
    struct sample sample =
        sample_of("rmat,scale=7,edge_factor=4", (struct form){.duplicates = 1, .value_type = types[i % 2], .on_device = i / 2});
    cbgen_context *context = logged_context("");
    unsetenv("CBGEN_CHECK");
    cbgen_operator *op = compile_with(context, &sample, CBGEN_VALUES_MUTABLE);
    const int64_t without = device_bytes(op);
    cbgen_operator_free(op);
    setenv("CBGEN_CHECK", "1", 1);
    op = compile_with(context, &sample, CBGEN_VALUES_MUTABLE);
    assert_true(device_bytes(op) >= without + sample.csr.nnz * 12 + 4 * sample.csr.rows);
    assert_has(log_text, "bytes of the GPU");
    struct vectors vectors = vectors_for(op, 0);
    for (int round = 0; round < 3; round++) {
      multiply(op, &vectors, 1, 1);
      multiply(op, &vectors, 1, 1);
      set_values(&sample, (uint64_t)round + 17);
      const cbgen_update update = {sizeof update, sample.view.values, types[i % 2],
                                   i / 2 ? CBGEN_DEVICE : CBGEN_HOST, NULL};
      must_operator(op, cbgen_update_values(op, &update));
    }
    multiply(op, &vectors, 1, 1);
    multiply(op, &vectors, 1, 1);
    vectors_release(&vectors);
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
    sample_release(&sample);
  }
}

/* An operator from the cache is compared as well. */
static void what_the_cache_has_is_compared(void **state) {
  (void)state;
  struct sample sample = sample_of(matrix, (struct form){0});
  cbgen_context *context = logged_context("");
  setenv("CBGEN_CHECK", "1", 1);
  cbgen_operator *op = compile(context, &sample);
  const int before = entries();
  assert_true(before > 0);
  cbgen_operator_free(op);
  op = compile(context, &sample);
  assert_int_equal(entries(), before);
  const long executed = fake->executed;
  struct vectors vectors = vectors_for(op, 0);
  multiply(op, &vectors, 1, 0);
  multiply(op, &vectors, 1, 0);
  assert_int_equal(fake->executed, executed + 6);
  vectors_release(&vectors);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

/* ---- streams */

static void captured_products_are_not_compared(void **state) {
  unsigned (*begin)(void *, unsigned), (*end)(void *, void **), (*destroy)(void *);
  void *graph;
  (void)state;
  bind_fake(&begin, "cuStreamBeginCapture_v2");
  bind_fake(&end, "cuStreamEndCapture");
  bind_fake(&destroy, "cuGraphDestroy");
  struct sample sample = sample_of(matrix, (struct form){0});
  cbgen_context *context = logged_context("");
  setenv("CBGEN_CHECK", "1", 1);
  cbgen_operator *op = compile(context, &sample);
  struct vectors vectors = vectors_for(op, 0);
  void *stream = app_stream(0, 1);
  const cbgen_product product = product_with(&vectors, 1, 0, stream);
  const long executed = fake->executed;
  app_set_current(0);
  assert_int_equal(begin(stream, 0), 0);
  must_operator(op, cbgen_multiply(op, &product));
  assert_int_equal(end(stream, &graph), 0);
  assert_int_equal(fake->executed, executed);
  must_operator(op, cbgen_multiply(op, &product));
  assert_int_equal(fake->executed, executed + 3);
  assert_int_equal(destroy(graph), 0);
  app_stream_free(stream);
  app_set_current(-1);
  vectors_release(&vectors);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

/* Clones on other streams, which do nothing before something waits for them. */
static void comparisons_of_several_streams_are_in_order(void **state) {
  (void)state;
  struct sample sample = sample_of(matrix, (struct form){0});
  cbgen_context *context = logged_context("");
  setenv("CBGEN_CHECK", "1", 1);
  cbgen_operator *op = compile(context, &sample), *clone;
  must_operator(op, cbgen_operator_clone(op, &clone));
  struct vectors first = vectors_for(op, 0), second = vectors_for(op, 0);
  fill_vectors(&second, 99);
  void (*app_wait)(int device);
  bind_fake(&app_wait, "fake_wait");
  void *streams[] = {app_stream(0, 1), app_stream(0, 1)};
  const cbgen_product products[] = {product_with(&first, 1.5, 0.5, streams[0]),
                                    product_with(&second, -2, 0.25, streams[1])};
  fake->lazy = 1;
  for (int i = 0; i < 6; i++) {
    cbgen_operator *const handle = i % 2 ? clone : op;
    must_operator(handle, cbgen_multiply(handle, &products[i % 2]));
  }
  app_wait(0);
  must_operator(op, cbgen_multiply(op, &products[0]));
  app_wait(0);
  fake->lazy = 0;
  must_operator(clone, cbgen_multiply(clone, &products[1]));
  for (int i = 0; i < 2; i++) app_stream_free(streams[i]);
  vectors_release(&first);
  vectors_release(&second);
  cbgen_operator_free(clone);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

/* ---- what is asked for */

static void values_without_meaning_are_refused(void **state) {
  static const char *const values[] = {"bound", "0", "-3", "1.5", "2,3", "bounds;2", "99999999999999999999", "all"};
  (void)state;
  struct sample sample = sample_of(matrix, (struct form){0});
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    cbgen_context *context = logged_context("");
    cbgen_operator *op = NULL;
    setenv("CBGEN_CHECK", values[i], 1);
    assert_int_equal(cbgen_compile(context, &sample.view, NULL, &op), CBGEN_ERROR_ARGUMENT);
    assert_null(op);
    assert_has(cbgen_message(context), "CBGEN_CHECK does not take '");
    assert_has(cbgen_message(context), values[i]);
    cbgen_context_destroy(context);
  }
  setenv("CBGEN_CHECK", "bounds,1", 1);
  check_right("", (struct form){0}, matrix, 1, 0);
  setenv("CBGEN_CHECK", "", 1);
  cbgen_context *context = logged_context("");
  cbgen_operator *op = compile(context, &sample);
  check_product(op, &sample.csr);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

/* What was found last is told on standard error when the operator goes, and how much was compared. */
static void the_end_is_told(void **state) {
  (void)state;
  struct sample sample = sample_of(matrix, (struct form){0});
  edit(&sample, "", "product(vectors.alpha, sum)", "product(vectors.alpha, sum + sum)");
  setenv("CBGEN_CHECK", "3", 1);
  setenv("CBGEN_LOG", "info", 1);
  cbgen_context *context = logged_context("");
  cbgen_operator *op = compile(context, &sample);
  struct vectors vectors = vectors_for(op, 0);
  for (int i = 0; i < 3; i++) multiply(op, &vectors, 1, 0);
  cbgen_context_destroy(context);
  FILE *file = fopen(place("said"), "w+");
  const int kept = dup(2);
  assert_true(file && kept >= 0);
  fflush(stderr);
  dup2(fileno(file), 2);
  cbgen_operator_free(op);
  fflush(stderr);
  dup2(kept, 2);
  close(kept);
  char text[4096] = "";
  rewind(file);
  assert_true(fread(text, 1, sizeof text - 1, file) > 0);
  fclose(file);
  assert_has(text, "cbgen: CBGEN_CHECK: product 3: row 0 is ");
  assert_has(text, "cbgen: CBGEN_CHECK: 1 of 3 products were compared\n");
  vectors_release(&vectors);
  sample_release(&sample);
}

/* ---- failures */

/* Every call of the driver and of NVRTC fails once: a status with a message, and nothing is left. */
static void failing_calls_leave_nothing(void **state) {
  (void)state;
  struct sample sample = sample_of(matrix, (struct form){0});
  long failures = 0;
  setenv("CBGEN_CHECK", "bounds,1", 1);
  for (long nth = 1; nth < 1000; nth++) {
    cbgen_context *context = logged_context("");
    cbgen_operator *op = NULL;
    const cbgen_request request = {.struct_size = sizeof request, .values = CBGEN_VALUES_MUTABLE};
    fake->calls = 0;
    fake->fail_at = nth;
    fake->failure = 999;
    const cbgen_status status = cbgen_compile(context, &sample.view, &request, &op);
    const int failed = fake->calls >= nth;
    fake->fail_at = 0;
    if (status) assert_true(*cbgen_message(context) && !op);
    else check_product(op, &sample.csr);
    failures += status != CBGEN_OK;
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
    if (*fake->misuse || fake->blocks || fake->pinned || fake->modules || fake->events)
      fail_msg("call %ld (%s): %s; %ld blocks, %ld pinned, %ld modules, %ld events are left", nth, fake->failed, fake->misuse,
               fake->blocks, fake->pinned, fake->modules, fake->events);
    if (!failed) break;
  }
  assert_true(failures > 60);
  sample_release(&sample);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(checked_kernels_are_right_and_are_not_kept, clear),
      cmocka_unit_test_setup(index_out_of_bounds_is_told_by_the_next_call, clear),
      cmocka_unit_test_setup(right_products_pass, clear),
      cmocka_unit_test_setup(every_form_of_a_matrix_is_compared, clear),
      cmocka_unit_test_setup(rows_that_are_not_finite_are_compared_by_class, clear),
      cmocka_unit_test_setup(transposed_matrices_are_compared, clear),
      cmocka_unit_test_setup(wrong_row_is_told_once_by_the_next_call, clear),
      cmocka_unit_test_setup(new_values_are_followed, clear),
      cmocka_unit_test_setup(what_the_cache_has_is_compared, clear),
      cmocka_unit_test_setup(captured_products_are_not_compared, clear),
      cmocka_unit_test_setup(comparisons_of_several_streams_are_in_order, clear),
      cmocka_unit_test_setup(values_without_meaning_are_refused, clear),
      cmocka_unit_test_setup(the_end_is_told, clear),
      cmocka_unit_test_setup(failing_calls_leave_nothing, clear),
  };
  return cmocka_run_group_tests_name("checks by environment", tests, open_without_calibration, check_fake);
}
