// SPDX-License-Identifier: Apache-2.0
/* Two tiers below the run-time interface: a family's kernel serves matrix after matrix without being compiled again;
 * the specialised one takes over with the same bits, beside products; and what fails meanwhile changes nothing. */
#include "tests/api_support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define ONE "random,rows=300,cols=200,per_row=6"
#define OTHER "random,rows=777,cols=190,per_row=6,seed=4"
#define FAKE_ARCH "sm_90" /* what the fake GPU is */

static const char *folder(void) {
  static char path[512];
  snprintf(path, sizeof path, "%s/cache", getenv("CBGEN_TEST_TMP"));
  return path;
}

static int open_cache(void **state) {
  char command[600];
  snprintf(command, sizeof command, "rm -rf '%s'", folder());
  return system(command) || open_fake(state) || setenv("CBGEN_CACHE_DIR", folder(), 1);
}

static cbgen_context *new_context(void) {
  cbgen_context *context;
  assert_int_equal(cbgen_context_create(&context), CBGEN_OK);
  must(context, cbgen_set(context, "recipe", "sell"));
  return context;
}

static cbgen_info info_of(const cbgen_operator *op) {
  cbgen_info info = {.struct_size = sizeof info};
  assert_int_equal(cbgen_operator_info(op, &info), CBGEN_OK);
  return info;
}

static cbgen_operator *compile(cbgen_context *context, const struct sample *sample, cbgen_request request) {
  cbgen_operator *op;
  request.struct_size = sizeof request;
  must(context, cbgen_compile(context, &sample->view, &request, &op));
  return op;
}

/* y of the same vectors, for comparison bit by bit. */
static void take_bits(cbgen_operator *op, double *bits) {
  struct vectors vectors = vectors_for(op, 0);
  const cbgen_product product = product_with(&vectors, 1.5, 0.5, NULL);
  must_operator(op, cbgen_multiply(op, &product));
  assert_true(app_take(bits, vectors.y_there, (size_t)vectors.rows * sizeof *bits));
  vectors_release(&vectors);
}

static void one_kernel_serves_a_family(void **state) {
  (void)state;
  struct sample one = sample_of(ONE, (struct form){0}), other = sample_of(OTHER, (struct form){0});
  cbgen_context *context = new_context();
  cbgen_operator *first = compile(context, &one, (cbgen_request){0});
  const long compilations = fake->compilations;
  cbgen_operator *second = compile(context, &other, (cbgen_request){0});
  assert_int_equal(fake->compilations, compilations);
  assert_int_equal(info_of(first).tier, CBGEN_TIER_FAMILY);
  assert_int_equal(info_of(second).tier, CBGEN_TIER_FAMILY);
  assert_null(strstr(cbgen_operator_source(second, NULL), "cbgen_family"));
  check_product(first, &one.csr);
  check_product(second, &other.csr);
  cbgen_operator_free(first);
  cbgen_operator_free(second);
  cbgen_context_destroy(context);
  sample_release(&one);
  sample_release(&other);
}

/* Without a cache, a context knows its families for as long as it is there. */
static void a_context_compiles_a_family_once(void **state) {
  (void)state;
  struct sample one = sample_of(ONE, (struct form){0}), other = sample_of(OTHER, (struct form){0});
  for (int round = 0; round < 2; round++) {
    cbgen_context *context = new_context();
    must(context, cbgen_set(context, "cache", ""));
    const long before = fake->compilations;
    cbgen_operator *first = compile(context, &one, (cbgen_request){0});
    const long compilations = fake->compilations;
    assert_true(compilations > before);
    cbgen_operator *second = compile(context, &other, (cbgen_request){0});
    assert_int_equal(fake->compilations, compilations);
    assert_int_equal(info_of(second).tier, CBGEN_TIER_FAMILY);
    check_product(second, &other.csr);
    cbgen_context_destroy(context);
    cbgen_operator_free(first);
    check_product(second, &other.csr);
    cbgen_operator_free(second);
  }
  sample_release(&one);
  sample_release(&other);
}

static void requests_choose_the_tier(void **state) {
  static const struct {
    cbgen_request request;
    cbgen_tier tier;
  } cases[] = {
      {{.specialise = CBGEN_SPECIALISE_AUTO}, CBGEN_TIER_FAMILY},
      {{.specialise = CBGEN_SPECIALISE_NOW}, CBGEN_TIER_SPECIALISED},
      {{.specialise = CBGEN_SPECIALISE_NEVER, .expected_products = INT64_C(1) << 40}, CBGEN_TIER_FAMILY},
      {{.expected_products = 1000}, CBGEN_TIER_FAMILY},
      {{.expected_products = 10 * 1000 * 1000}, CBGEN_TIER_SPECIALISED},
      {{.values = CBGEN_VALUES_FIXED, .specialise = CBGEN_SPECIALISE_NEVER}, CBGEN_TIER_SPECIALISED},
      {{.values = CBGEN_VALUES_MUTABLE}, CBGEN_TIER_FAMILY},
  };
  (void)state;
  struct sample sample = sample_of(ONE, (struct form){0});
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    cbgen_context *context = new_context();
    must(context, cbgen_set(context, "cache", ""));
    cbgen_operator *op = compile(context, &sample, cases[i].request);
    assert_int_equal(info_of(op).tier, cases[i].tier);
    check_product(op, &sample.csr);
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
  }
  sample_release(&sample);
}

static void the_specialised_kernel_takes_over(void **state) {
  double before[300], after[300];
  cbgen_operator *clone;
  (void)state;
  struct sample sample = sample_of(ONE, (struct form){.duplicates = 1});
  cbgen_context *context = new_context();
  cbgen_operator *op = compile(context, &sample, (cbgen_request){.values = CBGEN_VALUES_MUTABLE});
  must_operator(op, cbgen_operator_clone(op, &clone));
  take_bits(op, before);
  must_operator(op, cbgen_operator_specialise(op));
  const long compilations = fake->compilations;
  must_operator(op, cbgen_operator_specialise(clone)); /* nothing is left to do */
  assert_int_equal(fake->compilations, compilations);
  assert_int_equal(info_of(clone).tier, CBGEN_TIER_SPECIALISED);
  take_bits(clone, after);
  assert_memory_equal(before, after, sizeof before);
  set_values(&sample, 99);
  sum_up(&sample);
  const cbgen_update update = {sizeof update, sample.given, CBGEN_F64, CBGEN_HOST, NULL};
  must_operator(op, cbgen_update_values(op, &update));
  check_product(op, &sample.csr);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  check_product(clone, &sample.csr);
  cbgen_operator_free(clone);
  sample_release(&sample);
}

static void the_cache_has_it_then(void **state) {
  (void)state;
  struct sample sample = sample_of(ONE, (struct form){0});
  for (int round = 0; round < 3; round++) {
    cbgen_context *context = new_context();
    cbgen_operator *op = compile(context, &sample, (cbgen_request){0});
    const cbgen_info info = info_of(op);
    assert_int_equal(info.cache, round ? CBGEN_CACHE_HIT : CBGEN_CACHE_MISS);
    assert_int_equal(info.tier, round == 2 ? CBGEN_TIER_SPECIALISED : CBGEN_TIER_FAMILY);
    check_product(op, &sample.csr);
    if (round == 1) must_operator(op, cbgen_operator_specialise(op));
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
  }
  cbgen_context *context = new_context(); /* asked for now, an entry of a family becomes one of a specialised kernel */
  struct sample other = sample_of(OTHER, (struct form){0});
  cbgen_operator_free(compile(context, &other, (cbgen_request){0}));
  cbgen_operator *op = compile(context, &other, (cbgen_request){.specialise = CBGEN_SPECIALISE_NOW});
  assert_int_equal(info_of(op).cache, CBGEN_CACHE_HIT);
  assert_int_equal(info_of(op).tier, CBGEN_TIER_SPECIALISED);
  check_product(op, &other.csr);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&other);
  sample_release(&sample);
}

static void saved_operators_keep_their_tier(void **state) {
  (void)state;
  struct sample sample = sample_of(ONE, (struct form){0});
  cbgen_context *context = new_context();
  cbgen_operator *op = compile(context, &sample, (cbgen_request){0});
  for (int specialised = 0; specialised < 2; specialised++) {
    cbgen_operator *back;
    size_t length = 0;
    if (specialised) must_operator(op, cbgen_operator_specialise(op));
    must_operator(op, cbgen_operator_save(op, NULL, 0, &length));
    void *bytes = malloc(length);
    must_operator(op, cbgen_operator_save(op, bytes, length, &length));
    must(context, cbgen_operator_load(context, bytes, length, &back));
    assert_int_equal(info_of(back).tier, specialised ? CBGEN_TIER_SPECIALISED : CBGEN_TIER_FAMILY);
    check_product(back, &sample.csr);
    if (!specialised) must_operator(back, cbgen_operator_specialise(back));
    check_product(back, &sample.csr);
    cbgen_operator_free(back);
    free(bytes);
  }
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

/* Every call in turn. */
static void failures_change_nothing(void **state) {
  int failures = 0;
  (void)state;
  struct sample sample = sample_of(ONE, (struct form){0});
  cbgen_context *context = new_context();
  cbgen_operator *op = compile(context, &sample, (cbgen_request){0});
  for (int n = 1;; n++) {
    fake->fail_at = fake->calls + n;
    fake->failure = 1; /* an error of both halves */
    const cbgen_status s = cbgen_operator_specialise(op);
    const int reached = fake->calls >= fake->fail_at;
    fake->fail_at = 0;
    check_product(op, &sample.csr);
    if (!reached) {
      must_operator(op, s);
      break;
    }
    failures += s != CBGEN_OK;
    assert_int_equal(info_of(op).tier, s ? CBGEN_TIER_FAMILY : CBGEN_TIER_SPECIALISED);
    if (s) assert_true(strlen(cbgen_operator_message(op)) > 10);
    if (!s) break;
  }
  assert_true(failures >= 4); /* the compiler, its result, the module, the kernel */
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

static void without_nvrtc_families_are_enough(void **state) {
  (void)state;
  struct sample one = sample_of(ONE, (struct form){0}), other = sample_of(OTHER, (struct form){0});
  cbgen_context *context = new_context();
  cbgen_operator_free(compile(context, &one, (cbgen_request){0})); /* the cache has the family now */
  cbgen_context_destroy(context);
  context = new_context();
  must(context, cbgen_set(context, "nvrtc", "/nowhere/libnvrtc.so"));
  cbgen_operator *op = compile(context, &other, (cbgen_request){0}), *none;
  check_product(op, &other.csr);
  assert_int_equal(cbgen_operator_specialise(op), CBGEN_ERROR_MISSING);
  assert_non_null(strstr(cbgen_operator_message(op), "NVRTC"));
  const cbgen_request now = {.struct_size = sizeof now, .specialise = CBGEN_SPECIALISE_NOW};
  assert_int_equal(cbgen_compile(context, &one.view, &now, &none), CBGEN_ERROR_MISSING);
  check_product(op, &other.csr);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&one);
  sample_release(&other);
}

/* A file of families, made by the tool with the same compiler: then neither NVRTC nor a cache is needed. A damaged one
 * is as if there were none. */
static void families_come_with_the_library(void **state) {
  char path[600], command[2400];
  (void)state;
  snprintf(path, sizeof path, "%s/families", getenv("CBGEN_TEST_TMP"));
  snprintf(command, sizeof command,
           "rm -rf '%.500s'; mkdir '%.500s' && '%.400s' families -q generate:" ONE
           " --recipe=sell --arch=" FAKE_ARCH " -o '%.500s/families-" FAKE_ARCH ".bin'",
           path, path, getenv("CBGEN_TEST_TOOL"), path);
  assert_int_equal(system(command), 0);
  struct sample sample = sample_of(ONE, (struct form){0});
  assert_int_equal(setenv("CBGEN_FAMILIES", path, 1), 0);
  for (int damaged = 0; damaged < 2; damaged++) {
    cbgen_context *context = new_context();
    const long compilations = fake->compilations;
    cbgen_operator *op;
    must(context, cbgen_set(context, "cache", ""));
    must(context, cbgen_set(context, "nvrtc", damaged ? getenv("CBGEN_NVRTC") : "/nowhere/libnvrtc.so"));
    op = compile(context, &sample, (cbgen_request){0});
    assert_int_equal(info_of(op).tier, CBGEN_TIER_FAMILY);
    if (damaged) assert_true(fake->compilations > compilations);
    else assert_int_equal(fake->compilations, compilations);
    check_product(op, &sample.csr);
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
    snprintf(command, sizeof command, "truncate -s -9 '%s/families-" FAKE_ARCH ".bin'", path);
    assert_int_equal(system(command), 0);
  }
  unsetenv("CBGEN_FAMILIES");
  sample_release(&sample);
}

/* ---- beside products */

struct multiplying {
  cbgen_operator *op;
  const struct cb_csr *csr;
  atomic_int stop;
  int products;
};

static void *multiply_on(void *user) {
  struct multiplying *multiplying = user;
  struct vectors vectors = vectors_for(multiplying->op, 0);
  const cbgen_product product = product_with(&vectors, 2, 0, NULL);
  do {
    if (cbgen_multiply(multiplying->op, &product)) return "a product failed";
    multiplying->products++;
  } while (!atomic_load(&multiplying->stop));
  check_result(multiplying->op, multiplying->csr, &vectors, 2, 0);
  vectors_release(&vectors);
  return NULL;
}

static void products_run_meanwhile(void **state) {
  enum { THREADS = 3 };
  pthread_t threads[THREADS];
  struct multiplying multiplying[THREADS];
  (void)state;
  struct sample sample = sample_of(ONE, (struct form){0});
  cbgen_context *context = new_context();
  cbgen_operator *op = compile(context, &sample, (cbgen_request){0});
  for (int i = 0; i < THREADS; i++) {
    multiplying[i] = (struct multiplying){.op = op, .csr = &sample.csr};
    assert_int_equal(pthread_create(&threads[i], NULL, multiply_on, &multiplying[i]), 0);
  }
  must_operator(op, cbgen_operator_specialise(op));
  for (int i = 0; i < THREADS; i++) {
    void *failure;
    atomic_store(&multiplying[i].stop, 1);
    pthread_join(threads[i], &failure);
    assert_null(failure);
    assert_true(multiplying[i].products > 0);
  }
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_cache, check_fake)
  const struct CMUnitTest tests[] = {
      TEST(one_kernel_serves_a_family),
      TEST(a_context_compiles_a_family_once),
      TEST(requests_choose_the_tier),
      TEST(the_specialised_kernel_takes_over),
      TEST(the_cache_has_it_then),
      TEST(saved_operators_keep_their_tier),
      TEST(failures_change_nothing),
      TEST(without_nvrtc_families_are_enough),
      TEST(families_come_with_the_library),
      TEST(products_run_meanwhile),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
