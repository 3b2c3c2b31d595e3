// SPDX-License-Identifier: Apache-2.0
/* The run-time interface when memory runs out anywhere, also below cbgen in jansson and the C library: one allocation
 * of a whole life fails, in turn. The call that it hits says so and, made again, succeeds, or it did without: either
 * way all results are those of a life without failure, nothing is left, and the cache holds whole, right entries. Of
 * the allocations a seeded share is taken; with CBGEN_TEST_ALL_FAULTS set, all.
 */
#include "tests/api_support.h"
#include "tests/failing_malloc.h"

#include <dirent.h>
#include <omp.h>
#include <unistd.h>

int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

enum { ROWS = 20, COLS = 15, MOST_TEXT = 1 << 17, MOST_BYTES = 1 << 18, LIVES_TO_TAKE = 60 };

struct life {
  const char *recipe;
  cbgen_values values;
  struct form form;
  int turned;
};

static const struct life lives[] = {
    {"auto", CBGEN_VALUES_MUTABLE, {.shuffled = 1, .duplicates = 1}, 0},
    {"cb", CBGEN_VALUES_FIXED, {0}, 1},
    {"merge", CBGEN_VALUES_MUTABLE, {.on_device = 1}, 0},
};

/* What one life gave. Its places are here before any allocation fails. */
struct results {
  cbgen_cache_result cache;
  int64_t device_bytes;
  char source[MOST_TEXT], plan[4096], json[MOST_TEXT], key[32];
  double y[3][ROWS]; /* of the operator, after new values, and of the one that was saved and loaded */
  size_t saved_length;
  char saved[MOST_BYTES];
};

static struct {
  const struct life *life;
  struct sample sample;
  double updates[4 * ROWS * COLS];
  struct vectors vectors;
  char cache[512];
  long nth;     /* the allocation that fails; 0: none */
  int failures; /* calls that said so */
} now;

/* Makes the call once more when memory was short, and only then. */
#define TRY(call, message_of)                                                                              \
  do {                                                                                                     \
    cbgen_status status_of_call = (call);                                                                  \
    if (status_of_call) check_refusal(#call, status_of_call, message_of);                                  \
    if (status_of_call) status_of_call = (call);                                                           \
    if (status_of_call) fail_msg("%s, again after allocation %ld: %s", #call, now.nth, message_of);        \
  } while (0)

static void check_refusal(const char *call, cbgen_status status, const char *message) {
  const long nth = now.nth;
  fail_malloc_at(0);
  if (status != CBGEN_ERROR_MEMORY || ++now.failures > 1)
    fail_msg("%s, allocation %ld: %s (%s)", call, nth, message, cbgen_status_name(status));
  if (!strstr(message, "memory")) fail_msg("%s, allocation %ld: '%s'", call, nth, message);
}

static void copy_text(char *to, size_t size, const char *from) {
  if (strlen(from) >= size) fail_msg("%zu bytes of text", strlen(from));
  strcpy(to, from);
}

static void inspect(cbgen_operator *op, struct results *results) {
  cbgen_info info = {.struct_size = sizeof info};
  TRY(cbgen_operator_info(op, &info), cbgen_operator_message(op));
  results->cache = info.cache;
  results->device_bytes = info.device_bytes;
  copy_text(results->source, sizeof results->source, cbgen_operator_source(op, NULL));
  copy_text(results->plan, sizeof results->plan, cbgen_operator_plan(op));
  copy_text(results->json, sizeof results->json, cbgen_operator_plan_json(op));
  copy_text(results->key, sizeof results->key, cbgen_operator_key(op));
}

static void multiply(cbgen_operator *op, double y[ROWS]) {
  const cbgen_product product = product_with(&now.vectors, 1.25, 0, NULL);
  TRY(cbgen_multiply(op, &product), cbgen_operator_message(op));
  assert_true(app_take(y, now.vectors.y_there, (size_t)now.vectors.rows * sizeof *y));
}

static void save(cbgen_operator *op, struct results *results) {
  TRY(cbgen_operator_save(op, NULL, 0, &results->saved_length), cbgen_operator_message(op));
  assert_true(results->saved_length <= MOST_BYTES);
  TRY(cbgen_operator_save(op, results->saved, MOST_BYTES, &results->saved_length), cbgen_operator_message(op));
}

static void use(cbgen_context *context, cbgen_operator *op, struct results *results) {
  const cbgen_update update = {sizeof update, now.updates, CBGEN_F64, CBGEN_HOST, NULL};
  cbgen_operator *clone, *loaded;
  inspect(op, results);
  multiply(op, results->y[0]);
  if (now.life->values == CBGEN_VALUES_MUTABLE)
    TRY(cbgen_update_values(op, &update), cbgen_operator_message(op));
  TRY(cbgen_operator_clone(op, &clone), cbgen_operator_message(op));
  multiply(clone, results->y[1]);
  cbgen_operator_free(clone);
  save(op, results);
  TRY(cbgen_operator_load(context, results->saved, results->saved_length, &loaded), cbgen_message(context));
  multiply(loaded, results->y[2]);
  cbgen_operator_free(loaded);
}

/* From the first call to the last, with the failure of the `nth` allocation. Returns how many there were. */
static long live(struct results *results, long nth) {
  const cbgen_request request = {.struct_size = sizeof request, .values = now.life->values,
                                 .transpose = now.life->turned};
  cbgen_context *context = NULL;
  cbgen_operator *op = NULL;
  memset(results, 0, sizeof *results);
  now.nth = nth;
  now.failures = 0;
  fail_malloc_at(nth);
  TRY(cbgen_context_create(&context), "no context, no message: memory");
  TRY(cbgen_set(context, "recipe", now.life->recipe), cbgen_message(context));
  TRY(cbgen_set(context, "nvrtc", getenv("CBGEN_NVRTC")), cbgen_message(context));
  TRY(cbgen_set(context, "cache", now.cache), cbgen_message(context));
  TRY(cbgen_compile(context, &now.sample.view, &request, &op), cbgen_message(context));
  use(context, op, results);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  const long allocations = fail_malloc_at(0);
  trim_all();
  if (!fake_is_clean(fake)) fail_msg("allocation %ld: something is left on the GPU: %s", nth, fake->misuse);
  return allocations;
}

/* ---- the cache */

/* Calls `each` with the name of every file in the cache, and returns how many there are. */
static int visit_cache(void (*each)(int folder, const char *name)) {
  int count = 0;
  DIR *files = opendir(now.cache);
  for (struct dirent *file; files && (file = readdir(files));) {
    if (*file->d_name == '.') continue;
    each(dirfd(files), file->d_name);
    count++;
  }
  if (files) closedir(files);
  return count;
}

static void remove_file(int folder, const char *name) {
  unlinkat(folder, name, 0);
}

static void expect_no_draft(int folder, const char *name) {
  (void)folder;
  if (strstr(name, ".draft")) fail_msg("allocation %ld leaves '%s' in the cache", now.nth, name);
}

/* ---- the test */

static void compare(const struct results *got, const struct results *whole, const char *when) {
#define SAME(what, condition)                                                                              \
  if (!(condition)) fail_msg("allocation %ld, %s: other %s", now.nth, when, what)
  SAME("plan", !strcmp(got->plan, whole->plan) && !strcmp(got->json, whole->json));
  SAME("text", !strcmp(got->source, whole->source) && !strcmp(got->key, whole->key));
  SAME("memory of the GPU", got->device_bytes == whole->device_bytes);
  for (int i = 0; i < 3; i++) SAME("product", !memcmp(got->y[i], whole->y[i], sizeof whole->y[i]));
  SAME("saved operator", got->saved_length == whole->saved_length && !memcmp(got->saved, whole->saved, got->saved_length));
#undef SAME
}

static struct results whole, got; /* too large for a stack */

/* A life with one failure, in a cache that is empty or filled; then one without, which takes what that left. */
static void fail_one(long nth, int filled) {
  if (!filled) visit_cache(remove_file);
  live(&got, nth);
  compare(&got, &whole, filled ? "on a filled cache" : "on an empty cache");
  visit_cache(expect_no_draft);
  const int refused = now.failures;
  live(&got, 0);
  now.nth = nth;
  compare(&got, &whole, "in the life after");
  if (filled && got.cache != CBGEN_CACHE_HIT) fail_msg("allocation %ld: the cache's entry is gone", nth);
  now.failures = refused;
}

/* Takes numbers up to `last` in uneven steps, all of them when asked to. */
static long next_fault(long nth, long last, uint64_t *seed) {
  const long mean = getenv("CBGEN_TEST_ALL_FAULTS") ? 1 : last / LIVES_TO_TAKE + 1;
  return nth + 1 + (long)(draw(seed) % (uint64_t)(2 * mean - 1));
}

static void fail_each(int filled) {
  uint64_t seed = 5;
  int refused = 0, runs = 0;
  if (!filled) visit_cache(remove_file);
  const long allocations = live(&whole, 0);
  assert_int_equal(whole.cache, filled ? CBGEN_CACHE_HIT : CBGEN_CACHE_MISS);
  for (long nth = next_fault(0, allocations, &seed); nth <= allocations; nth = next_fault(nth, allocations, &seed)) {
    fail_one(nth, filled);
    refused += now.failures;
    runs++;
  }
  if (!refused) fail_msg("none of %d failures was noticed", runs);
  if (__lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check()) fail_msg("a life leaks");
}

static void begin(const struct life *life, const char *folder) {
  now.life = life;
  now.sample = sample_of("random,rows=20,cols=15,density=0.2", life->form);
  for (size_t i = 0; i < sizeof now.updates / sizeof *now.updates; i++) now.updates[i] = (double)i / 8 - 3;
  snprintf(now.cache, sizeof now.cache, "%s/%s", getenv("CBGEN_TEST_TMP"), folder);
  visit_cache(remove_file);
  cbgen_context *context;
  cbgen_operator *op;
  const cbgen_request request = {.struct_size = sizeof request, .values = life->values, .transpose = life->turned};
  assert_int_equal(cbgen_context_create(&context), CBGEN_OK);
  must(context, cbgen_compile(context, &now.sample.view, &request, &op));
  now.vectors = vectors_for(op, 0);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
}

static void end(void) {
  vectors_release(&now.vectors);
  sample_release(&now.sample);
}

static void a_life_that_stores_its_kernel(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof lives / sizeof *lives; i++) {
    begin(&lives[i], "storing");
    fail_each(0);
    end();
  }
}

static void a_life_that_finds_its_kernel(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof lives / sizeof *lives; i++) {
    begin(&lives[i], "hitting");
    live(&whole, 0);
    fail_each(1);
    end();
  }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fake, check_fake)
  const struct CMUnitTest tests[] = {
      TEST(a_life_that_stores_its_kernel),
      TEST(a_life_that_finds_its_kernel),
  };
  omp_set_num_threads(1); /* small matrices: threads that wait for each other only cost time */
  return cmocka_run_group_tests_name("memory that runs out below the interface", tests, NULL, NULL);
}
