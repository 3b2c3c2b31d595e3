// SPDX-License-Identifier: Apache-2.0
/* Ranges for profilers: a profiler that is named gets those of compiling and of products, nested and closed, also where
 * something fails; without one, or with one that is none, there are none. */
#include "tests/api_support.h"

#include "runtime/cuda/ranges.h"

#include <sys/wait.h>
#include <unistd.h>

static const char *(*noted)(void);
static void (*forget)(void);
static int (*depth)(void), (*modules)(void);

static int set_up(void **state) {
  setenv("CBGEN_CALIBRATION", "", 1);
  return open_fake(state);
}

/* ---- whether there is a profiler: in a process of its own, for it is asked once */

static int finds_profiler(const char *path, const char *asked, const char *refuses) {
  int status = 0;
  const pid_t child = fork();
  assert_true(child >= 0);
  if (!child) {
    if (path) setenv("NVTX_INJECTION64_PATH", path, 1);
    if (asked) setenv("CBGEN_NVTX", asked, 1);
    if (refuses) setenv("INJECTION_REFUSES", refuses, 1);
    cb_ranges_open();
    const int began = cb_range_begin("of the test");
    cb_range_end(&began);
    _exit(cb_ranges_are_on() ? 10 : 20);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && (WEXITSTATUS(status) == 10 || WEXITSTATUS(status) == 20));
  return WEXITSTATUS(status) == 10;
}

static void profilers_are_found(void **state) {
  const char *const injection = getenv("CBGEN_TEST_INJECTION"), *const other = getenv("CBGEN_FAKE_CUDA");
  (void)state;
  assert_non_null(injection);
  assert_true(finds_profiler(injection, NULL, NULL));
  assert_true(finds_profiler(injection, "1", NULL));
  assert_false(finds_profiler(NULL, NULL, NULL));
  assert_false(finds_profiler("", NULL, NULL));
  assert_false(finds_profiler(injection, "0", NULL));
  assert_false(finds_profiler(injection, NULL, "yes"));
  assert_false(finds_profiler("/nowhere/libnone.so", NULL, NULL));
  assert_false(finds_profiler(other, NULL, NULL)); /* a library, but no profiler's */
}

/* ---- what it is told */

static void bind(void *function, void *library, const char *name) {
  void *const symbol = dlsym(library, name);
  assert_non_null(symbol);
  memcpy(function, &symbol, sizeof symbol);
}

static void attach(void) {
  const char *const injection = getenv("CBGEN_TEST_INJECTION");
  setenv("NVTX_INJECTION64_PATH", injection, 1);
  void *const library = dlopen(injection, RTLD_NOW | RTLD_LOCAL);
  assert_non_null(library);
  bind(&noted, library, "injection_noted");
  bind(&forget, library, "injection_forget");
  bind(&depth, library, "injection_depth");
  bind(&modules, library, "injection_modules");
}

/* The lines in their order, among others. */
static void assert_noted(const char *const *lines, int count) {
  const char *at = noted();
  for (int i = 0; i < count; i++) {
    const char *const found = strstr(at, lines[i]);
    if (!found) fail_msg("'%s' is not in, or not behind what is before it:\n%s", lines[i], noted());
    at = found + strlen(lines[i]);
  }
}

static void compiling_and_products_have_ranges(void **state) {
  static const char *const made[] = {"0 cbgen: make an operator\n", "1 cbgen: hash\n",    "1 cbgen: look up\n",
                                     "1 cbgen: analysis\n",         "1 cbgen: compile\n", "1 cbgen: generate\n",
                                     "1 cbgen: pack\n",             "1 cbgen: load\n"};
  static const char *const used[] = {"0 cbgen: product, family (spmv (", "0 cbgen: new values\n",
                                     "0 cbgen: product, family (spmv ("};
  (void)state;
  attach();
  struct sample sample = sample_of("stencil7,n=5", (struct form){0});
  cbgen_context *context;
  cbgen_operator *op;
  assert_int_equal(cbgen_context_create(&context), CBGEN_OK);
  const cbgen_request request = {.struct_size = sizeof request, .values = CBGEN_VALUES_MUTABLE};
  must(context, cbgen_compile(context, &sample.view, &request, &op));
  assert_int_equal(modules(), 6);
  assert_int_equal(depth(), 0);
  assert_noted(made, 8);
  forget();
  const cbgen_update update = {sizeof update, sample.given, CBGEN_F64, CBGEN_HOST, NULL};
  check_product(op, &sample.csr);
  must_operator(op, cbgen_update_values(op, &update));
  check_product(op, &sample.csr);
  assert_int_equal(depth(), 0);
  assert_noted(used, 3);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

/* Every call of the driver fails once: ranges that were begun have an end. */
static void ranges_end_where_something_fails(void **state) {
  (void)state;
  struct sample sample = sample_of("stencil7,n=5", (struct form){0});
  for (long nth = 1; nth < 300; nth += 3) {
    cbgen_context *context;
    cbgen_operator *op = NULL;
    assert_int_equal(cbgen_context_create(&context), CBGEN_OK);
    fake->calls = 0;
    fake->fail_at = nth;
    fake->failure = 999;
    cbgen_compile(context, &sample.view, NULL, &op);
    const int failed = fake->calls >= nth;
    fake->fail_at = 0;
    assert_int_equal(depth(), 0);
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
    if (!failed) break;
  }
  sample_release(&sample);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(profilers_are_found),
      cmocka_unit_test(compiling_and_products_have_ranges),
      cmocka_unit_test(ranges_end_where_something_fails),
  };
  return cmocka_run_group_tests_name("ranges", tests, set_up, check_fake);
}
