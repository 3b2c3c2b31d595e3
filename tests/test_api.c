// SPDX-License-Identifier: Apache-2.0
/* The run-time interface on the fake CUDA: every form of matrix and type of value multiplies rightly, new
 * values are as good as a fresh compile, handles keep their promises. */
#include "tests/api_support.h"
#include "tests/recipes.h"

#include <omp.h>
#include <pthread.h>

static cbgen_operator *compile(cbgen_context *context, const struct sample *sample,
                               const cbgen_request *request) {
  cbgen_operator *op = NULL;
  must(context, cbgen_compile(context, &sample->view, request, &op));
  assert_non_null(op);
  return op;
}

static const char *const shapes[] = {
    "random,rows=300,cols=200,density=0.05",
    "random,rows=60,cols=900,density=0.3",
    "stencil5,n=18",
    "fe3,n=4",
    "diagonal,n=100",
    "empty,rows=50,cols=40",
    "empty,rows=0,cols=9",
    "empty,rows=7,cols=0",
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static const cbgen_request mutable = {.struct_size = sizeof mutable, .values = CBGEN_VALUES_MUTABLE};

/* ---- matrices */

static void every_shape_multiplies(void **state) {
  (void)state;
  for (int i = 0; i < SHAPES; i++) {
    cbgen_context *context = new_context("");
    struct sample sample = sample_of(shapes[i], (struct form){0});
    cbgen_operator *op = compile(context, &sample, NULL);
    check_product(op, &sample.csr);
    cbgen_context_destroy(context); /* operators outlive it */
    check_product(op, &sample.csr);
    cbgen_operator_free(op);
    sample_release(&sample);
  }
}

/* Bits of `number`: one choice each. */
static struct form form_of(int number) {
  return (struct form){.row_bits = number & 1 ? 64 : 0,
                       .col_bits = number & 2 ? 64 : 32,
                       .base = (number & 4) != 0,
                       .value_type = number & 8 ? CBGEN_F32 : CBGEN_F64,
                       .shuffled = (number & 16) != 0,
                       .duplicates = (number & 32) != 0,
                       .on_device = (number & 64) != 0,
                       .no_values = (number & 128) != 0};
}

static void every_form_of_a_matrix_multiplies(void **state) {
  (void)state;
  cbgen_context *context = new_context("");
  for (int number = 0; number < 256; number++)
    for (int turned = 0; turned < 2; turned++) {
      const cbgen_request request = {.struct_size = sizeof request, .transpose = turned};
      struct sample sample = sample_of(shapes[0], form_of(number));
      cbgen_operator *op = compile(context, &sample, &request);
      struct cb_csr csr = turned ? transposed(&sample.csr) : sample.csr;
      check_product(op, &csr);
      if (turned) cb_csr_release(&csr);
      cbgen_operator_free(op);
      sample_release(&sample);
    }
  cbgen_context_destroy(context);
}

/* ---- new values */

static cbgen_update update_with(const struct sample *sample, cbgen_memory memory, void *stream) {
  return (cbgen_update){sizeof(cbgen_update),
                        memory == CBGEN_DEVICE ? (void *)(uintptr_t)sample->there[2] : sample->given,
                        sample->form.value_type, memory, stream};
}

static void new_values_are_a_fresh_compile(void **state) {
  (void)state;
  cbgen_context *context = new_context("");
  for (int number = 0; number < 128; number += 4)
    for (int turned = 0; turned < 2; turned++) {
      const cbgen_request request = {.struct_size = sizeof request, .values = CBGEN_VALUES_MUTABLE,
                                     .transpose = turned};
      struct sample sample = sample_of(shapes[number / 4 % 5], form_of(number + 2));
      cbgen_operator *op = compile(context, &sample, &request);
      for (uint64_t seed = 50; seed < 53; seed++) {
        set_values(&sample, seed);
        sum_up(&sample);
        const cbgen_update update =
            update_with(&sample, sample.form.on_device && seed & 1 ? CBGEN_DEVICE : CBGEN_HOST, NULL);
        must_operator(op, cbgen_update_values(op, &update));
        struct cb_csr csr = turned ? transposed(&sample.csr) : sample.csr;
        check_product(op, &csr);
        if (turned) cb_csr_release(&csr);
      }
      /* bit by bit */
      cbgen_operator *fresh = compile(context, &sample, &request);
      struct vectors vectors = vectors_for(op, 0);
      const size_t bytes = (size_t)vectors.rows * cb_type_size(vectors.type);
      void *results[2] = {calloc(bytes + 1, 1), calloc(bytes + 1, 1)};
      cbgen_operator *const both[2] = {op, fresh};
      for (int i = 0; i < 2; i++) {
        const cbgen_product product = product_with(&vectors, 1, 0, NULL);
        must_operator(both[i], cbgen_multiply(both[i], &product));
        assert_true(app_take(results[i], vectors.y_there, bytes));
        cbgen_operator_free(both[i]);
      }
      assert_memory_equal(results[0], results[1], bytes);
      free(results[0]);
      free(results[1]);
      vectors_release(&vectors);
      sample_release(&sample);
    }
  cbgen_context_destroy(context);
}

/* ---- types */

/* Every type of the caller's values in every precision that the product may have, from both memories; then
 * renewed from every type. */
static void every_type_multiplies(void **state) {
  (void)state;
  static const char *const precisions[] = {"auto", "f64", "f32", "f32-f64", "f16-f32", "bf16-f32", "f16", "bf16",
                                           "split-f64", "c64", "c128"};
  for (int type = CBGEN_F64; type <= CBGEN_C128; type++)
    for (size_t p = 0; p < sizeof precisions / sizeof *precisions; p++)
      for (int on_device = 0; on_device < 2; on_device++) {
        const struct form form = {
            .value_type = (cbgen_type)type, .on_device = on_device, .shuffled = 1, .duplicates = p % 2};
        cbgen_context *context = new_context("");
        must(context, cbgen_set(context, "type", precisions[p]));
        struct sample sample = sample_of(shapes[(size_t)type % 3], form);
        const int is_complex = type >= CBGEN_C64, takes_complex = *precisions[p] == 'c' || (is_complex && !p);
        if (is_complex && !takes_complex) {
          cbgen_operator *none;
          assert_int_equal(cbgen_compile(context, &sample.view, &mutable, &none), CBGEN_ERROR_ARGUMENT);
          assert_non_null(strstr(cbgen_message(context), "choose c128 or c64"));
          cbgen_context_destroy(context);
          sample_release(&sample);
          continue;
        }
        cbgen_operator *op = compile(context, &sample, &mutable);
        check_product(op, &sample.csr);
        for (int other = CBGEN_F64; other <= CBGEN_C128; other++) {
          sample.form.value_type = (cbgen_type)other;
          set_values(&sample, 70 + (uint64_t)other);
          sum_up(&sample);
          const cbgen_update update = update_with(&sample, on_device ? CBGEN_DEVICE : CBGEN_HOST, NULL);
          if (other >= CBGEN_C64 && !takes_complex) {
            assert_int_equal(cbgen_update_values(op, &update), CBGEN_ERROR_ARGUMENT);
            continue;
          }
          must_operator(op, cbgen_update_values(op, &update));
          check_product(op, &sample.csr);
        }
        cbgen_operator_free(op);
        cbgen_context_destroy(context);
        sample_release(&sample);
      }
}

static void info_names_the_types(void **state) {
  (void)state;
  static const struct {
    const char *precision;
    cbgen_type given, matrix, vector, sum;
  } rows[] = {{"auto", CBGEN_F64, CBGEN_F64, CBGEN_F64, CBGEN_F64},
              {"auto", CBGEN_F32, CBGEN_F32, CBGEN_F32, CBGEN_F32},
              {"auto", CBGEN_F16, CBGEN_F16, CBGEN_F32, CBGEN_F32},
              {"auto", CBGEN_BF16, CBGEN_BF16, CBGEN_F32, CBGEN_F32},
              {"auto", CBGEN_C64, CBGEN_C64, CBGEN_C64, CBGEN_C64},
              {"auto", CBGEN_C128, CBGEN_C128, CBGEN_C128, CBGEN_C128},
              {"c64", CBGEN_F64, CBGEN_C64, CBGEN_C64, CBGEN_C64},
              {"f16", CBGEN_F64, CBGEN_F16, CBGEN_F16, CBGEN_F32},
              {"bf16", CBGEN_BF16, CBGEN_BF16, CBGEN_BF16, CBGEN_F32},
              {"f32-f64", CBGEN_F64, CBGEN_F32, CBGEN_F64, CBGEN_F64},
              {"f64", CBGEN_F32, CBGEN_F64, CBGEN_F64, CBGEN_F64}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    cbgen_context *context = new_context("");
    cbgen_info info = {.struct_size = sizeof info};
    must(context, cbgen_set(context, "type", rows[i].precision));
    struct sample sample = sample_of(shapes[0], (struct form){.value_type = rows[i].given});
    cbgen_operator *op = compile(context, &sample, NULL);
    assert_int_equal(cbgen_operator_info(op, &info), CBGEN_OK);
    assert_int_equal(info.matrix_type, rows[i].matrix);
    assert_int_equal(info.vector_type, rows[i].vector);
    assert_int_equal(info.sum_type, rows[i].sum);
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
    sample_release(&sample);
  }
}

/* Unless the option says otherwise, a profile chooses, and no thread is left with another number of threads. */
static void a_profile_chooses(void **state) {
  (void)state;
  for (int searches = 0; searches < 2; searches++) {
    cbgen_context *context = new_context("");
    if (searches) must(context, cbgen_set(context, "search", "hopeful"));
    struct sample sample = sample_of(shapes[3], (struct form){0});
    const int threads = omp_get_max_threads();
    cbgen_operator *op = compile(context, &sample, NULL);
    assert_int_equal(omp_get_max_threads(), threads);
    /* where the comment's lines end is not known */
    assert_true((strstr(cbgen_operator_source(op, NULL), "by the profile") != NULL) == !searches);
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
    sample_release(&sample);
  }
}

/* Packing on the device rounds as the host does, number by number: to the nearest even, over the range's end,
 * through subnormals, and NaN. The packed values are read back from a saved diagonal matrix's products with x
 * = 1. */
static void both_sides_round_alike(void **state) {
  (void)state;
  enum { N = 4096 };
  static const char *const precisions[] = {"f16-f32", "bf16-f32", "f32"};
  static const int exponents[] = {40, 160, 180};
  for (int p = 0; p < 3; p++) {
    uint64_t seed = 17;
    float results[N];
    struct sample sample = sample_of("diagonal,n=4096", (struct form){0});
    for (int i = 0; i < N; i++) {
      const double sign = draw(&seed) % 2 ? -1 : 1, fraction = 1 + (double)(draw(&seed) % 4096) / 4096;
      const double odd = draw(&seed) % 4 ? 0 : 0x1p-30;
      const int exponent = (int)(draw(&seed) % (unsigned)(2 * exponents[p])) - exponents[p];
      sample.values[i] = sign * (fraction + odd) * ldexp(1, exponent);
      if (i % 100 == 0) sample.values[i] = i % 200 ? sign * INFINITY : NAN;
      ((double *)sample.given)[i] = sample.values[i];
    }
    cbgen_context *context = new_context("");
    must(context, cbgen_set(context, "type", precisions[p]));
    for (int i = 0; i < N; i++) ((double *)sample.given)[i] = 1;
    cbgen_operator *op = compile(context, &sample, &mutable);
    for (int i = 0; i < N; i++) ((double *)sample.given)[i] = sample.values[i];
    const cbgen_update update = update_with(&sample, CBGEN_HOST, NULL);
    must_operator(op, cbgen_update_values(op, &update));
    const float one = 1;
    struct vectors vectors = vectors_for(op, 0);
    for (uint64_t i = 0; i < N; i++) assert_true(app_put(vectors.x_there + 4 * i, &one, 4));
    const cbgen_product product = product_with(&vectors, 1, 0, NULL);
    must_operator(op, cbgen_multiply(op, &product));
    assert_true(app_take(results, vectors.y_there, sizeof results));
    for (int i = 0; i < N; i++) {
      const float expected = (float)cb_real_round(sample.values[i], p == 0   ? CB_F16
                                                                      : p == 1 ? CB_BF16
                                                                               : CB_F32);
      if (!(results[i] == expected || (isnan(results[i]) && isnan(expected))))
        fail_msg("%s: %a became %a, not %a", precisions[p], sample.values[i], (double)results[i],
                 (double)expected);
    }
    vectors_release(&vectors);
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
    sample_release(&sample);
  }
}

/* What a type cannot hold is refused when compiling, on whichever side it is noticed; new values become
 * infinite. */
static void values_beyond_the_range_are_refused(void **state) {
  (void)state;
  char path[512];
  snprintf(path, sizeof path, "%s/range", getenv("CBGEN_TEST_TMP"));
  for (int number = 0; number < 8; number++) {
    struct sample sample = sample_of(shapes[0], (struct form){.on_device = number & 1});
    cbgen_context *context = new_context("");
    cbgen_operator *op;
    const cbgen_request request = {.struct_size = sizeof request,
                                   .values = number & 2 ? CBGEN_VALUES_MUTABLE : CBGEN_VALUES_STORED};
    must(context, cbgen_set(context, "type", "f16-f32"));
    must(context, cbgen_set(context, "cache", number & 4 ? path : ""));
    ((double *)sample.given)[5] = 1e6;
    if (number & 1) assert_true(app_put(sample.there[2] + 40, (double *)sample.given + 5, 8));
    for (int again = 0; again < 2; again++) {
      assert_int_equal(cbgen_compile(context, &sample.view, &request, &op), CBGEN_ERROR_LIMIT);
      assert_null(op);
      assert_non_null(strstr(cbgen_message(context), "beyond the range of f16"));
    }
    cbgen_context_destroy(context);
    sample_release(&sample);
  }
}

/* ---- what operators tell */

static void info_tells(void **state) {
  (void)state;
  cbgen_context *context = new_context("");
  struct sample sample = sample_of("stencil5,n=40", (struct form){0});
  cbgen_operator *op = compile(context, &sample, &mutable);
  cbgen_info info = {.struct_size = sizeof info};
  double seconds = 0;
  assert_int_equal(cbgen_operator_info(op, &info), CBGEN_OK);
  assert_int_equal(info.cache, CBGEN_CACHE_OFF);
  assert_int_equal(info.registers, 40); /* the fake's */
  assert_int_equal(info.spilled_bytes, 0);
  assert_true(info.stored_bytes >= 8 * info.nnz && info.device_bytes > info.stored_bytes);
  assert_true(info.bytes_per_nonzero == (double)info.stored_bytes / (double)info.nnz);
  assert_true(info.predicted_seconds > 0 && info.csr_seconds > 0 && info.measured_seconds == 0);
  const double stages = info.hash_seconds + info.lookup_seconds + info.analysis_seconds + info.pack_seconds +
                        info.generate_seconds + info.compile_seconds + info.tune_seconds +
                        info.store_seconds + info.load_seconds + info.upload_seconds;
  assert_true(info.analysis_seconds > 0 && info.compile_seconds > 0 && info.load_seconds > 0);
  assert_true(stages <= info.total_seconds && stages > 0.5 * info.total_seconds);
  const double gain = info.csr_seconds - info.predicted_seconds, repaid = info.total_seconds / gain;
  if (gain > 0)
    assert_true(info.break_even >= repaid && info.break_even <= repaid + 1);
  else
    assert_true(isinf(info.break_even));
  must_operator(op, cbgen_operator_measure(op, &seconds));
  must_operator(op, cbgen_operator_measure(op, NULL));
  const int64_t bytes = info.device_bytes;
  assert_int_equal(cbgen_operator_info(op, &info), CBGEN_OK);
  assert_true(seconds > 0 && info.measured_seconds > 0);
  assert_int_equal(info.device_bytes, bytes); /* measuring leaves nothing */
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

/* An older caller's smaller struct is not written past its end; a newer one's is filled up with zeros. */
static void info_fits_every_version(void **state) {
  (void)state;
  cbgen_context *context = new_context("");
  struct sample sample = sample_of(shapes[0], (struct form){0});
  cbgen_operator *op = compile(context, &sample, NULL);
  union {
    cbgen_info info;
    unsigned char bytes[sizeof(cbgen_info) + 16];
  } room;
  memset(&room, 0xaa, sizeof room);
  room.info.struct_size = 48;
  assert_int_equal(cbgen_operator_info(op, &room.info), CBGEN_OK);
  assert_int_equal(room.info.rows, sample.view.rows);
  for (size_t i = 48; i < sizeof room; i++) assert_int_equal(room.bytes[i], 0xaa);
  room.info.struct_size = sizeof room;
  assert_int_equal(cbgen_operator_info(op, &room.info), CBGEN_OK);
  assert_int_equal(room.info.struct_size, sizeof room);
  for (size_t i = sizeof(cbgen_info); i < sizeof room; i++) assert_int_equal(room.bytes[i], 0);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

/* ---- fixed values */

/* `number`: the matrix transposed, on the device; the promise made by option. Returns how many kernels store less. */
static int multiplies_with_fixed_values(const struct cb_recipe *recipe, int distinct, int number, const char *path) {
  const int turned = number & 1, on_device = number & 2, by_option = number & 4;
  int narrower = 0;
  cbgen_context *context = new_context("");
  set_all(context, settings_of_recipe(recipe));
  must(context, cbgen_set(context, "cache", turned ? path : ""));
  if (by_option) must(context, cbgen_set(context, "values", "fixed"));
  struct sample sample = sample_of(example_of(recipe), (struct form){0});
  for (int64_t k = 0; k < sample.entries && distinct; k++)
    ((double *)sample.given)[k] = sample.values[k] = (double)(k % distinct) - 0.75;
  sum_up(&sample);
  if (on_device) to_device(&sample, 0);
  const cbgen_request request = {.struct_size = sizeof request,
                                 .values = by_option ? CBGEN_VALUES_STORED : CBGEN_VALUES_FIXED, .transpose = turned};
  struct cb_csr csr = turned ? transposed(&sample.csr) : sample.csr;
  for (int again = 0; again <= turned; again++) {
    cbgen_info info = {.struct_size = sizeof info};
    cbgen_operator *op = compile(context, &sample, &request);
    assert_int_equal(cbgen_operator_info(op, &info), CBGEN_OK);
    assert_int_equal(info.values, CBGEN_VALUES_FIXED);
    narrower += info.bytes_per_nonzero < 8;
    check_product(op, &csr);
    cbgen_operator_free(op);
  }
  if (by_option) {
    cbgen_operator *op;
    assert_int_equal(cbgen_compile(context, &sample.view, &mutable, &op), CBGEN_ERROR_ARGUMENT);
  }
  if (turned) cb_csr_release(&csr);
  cbgen_context_destroy(context);
  sample_release(&sample);
  return narrower;
}

/* What values have in common becomes part of the kernel, and multiplies all the same: every recipe, with few different
 * values and with many, in two of the eight ways each. */
static void fixed_values_multiply(void **state) {
  (void)state;
  static const int distinct[] = {1, 3, 40, 0}; /* 0: all are different */
  const struct cb_recipe *recipe;
  char path[512];
  snprintf(path, sizeof path, "%s/fixed", getenv("CBGEN_TEST_TMP"));
  int narrower = 0, all = 0;
  for (int r = 0; (recipe = cb_recipe_at(r)); r++)
    for (int d = 0; d < 4; d++)
      for (int number = (r + d) % 4; number < 8; number += 4, all++)
        narrower += multiplies_with_fixed_values(recipe, distinct[d], number, path);
  assert_true(3 * narrower > all); /* something was gained */
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fake, check_fake)
  const struct CMUnitTest tests[] = {
      TEST(every_shape_multiplies),         TEST(every_form_of_a_matrix_multiplies),
      TEST(new_values_are_a_fresh_compile), TEST(every_type_multiplies),
      TEST(info_names_the_types),           TEST(both_sides_round_alike),
      TEST(info_tells),
      TEST(a_profile_chooses),
      TEST(info_fits_every_version),
      TEST(fixed_values_multiply),          TEST(values_beyond_the_range_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
