// SPDX-License-Identifier: Apache-2.0
/* Device memory of the application's own: all of it comes from its functions and goes back to them, whatever fails; a
 * limit that is kept; and the peak in the info. */
#include "tests/api_support.h"

#include "runtime/cuda/memory.h"

enum { MOST = 256 };

/* A pool on the fake GPU that notes what it gave. */
static struct pool {
  struct {
    uint64_t address;
    size_t bytes;
  } blocks[MOST];
  long given, taken_back, wrong; /* wrong: a block or a length that it has not given */
  size_t bytes, most;
  long fail_at;   /* the call with this number has nothing; 0: none */
  size_t crooked; /* added to addresses */
  void *stream;   /* that it expects */
} pool;

static void *give(void *user, size_t bytes, void *stream) {
  struct pool *own = user;
  own->given++;
  own->wrong += stream != own->stream || !bytes;
  if (own->given == own->fail_at) return NULL;
  const uint64_t address = app_alloc(0, bytes + 512);
  for (int i = 0; i < MOST && address; i++)
    if (!own->blocks[i].address) {
      own->blocks[i].address = (address + 255) / 256 * 256 + own->crooked;
      own->blocks[i].bytes = bytes;
      own->bytes += bytes;
      if (own->bytes > own->most) own->most = own->bytes;
      return (void *)(uintptr_t)own->blocks[i].address;
    }
  return NULL;
}

static void take_back(void *user, void *memory, size_t bytes, void *stream) {
  struct pool *own = user;
  own->taken_back++;
  own->wrong += stream != own->stream;
  for (int i = 0; i < MOST; i++)
    if (own->blocks[i].address == (uintptr_t)memory && memory) {
      own->wrong += own->blocks[i].bytes != bytes;
      own->blocks[i].address = 0;
      own->bytes -= bytes;
      return;
    }
  own->wrong++;
}

static int open_pool(void **state) {
  pool = (struct pool){0};
  return open_fake(state);
}

static cbgen_context *pooled_context(void) {
  const cbgen_allocator allocator = {sizeof allocator, &pool, pool.stream, give, take_back};
  cbgen_context *context = new_context("");
  must(context, cbgen_set_allocator(context, &allocator));
  return context;
}

/* ---- everything comes from the pool */

/* Options, and how the matrix is handed over. */
static const struct {
  const char *options;
  struct form form;
  cbgen_values values;
} cases[] = {
    {"", {0}, CBGEN_VALUES_STORED},
    {"recipe=merge", {.on_device = 1, .shuffled = 1, .duplicates = 1}, CBGEN_VALUES_MUTABLE},
    {"recipe=sell pack=device", {.on_device = 1}, CBGEN_VALUES_MUTABLE},
    {"pack=device", {0}, CBGEN_VALUES_STORED},
    {"recipe=hot hot-columns=50", {.value_type = CBGEN_F32}, CBGEN_VALUES_MUTABLE},
    {"tune=measure", {0}, CBGEN_VALUES_FIXED},
};
enum { CASES = sizeof cases / sizeof *cases };

static const char *matrix_for(int i) {
  return i == 3 ? "band,n=300,half=2" : "random,rows=300,cols=300,density=0.03";
}

static void use(cbgen_context *context, int i) {
  struct sample sample = sample_of(matrix_for(i), cases[i].form);
  const cbgen_request request = {.struct_size = sizeof request, .values = cases[i].values};
  cbgen_operator *op, *clone;
  double seconds;
  set_all(context, cases[i].options);
  must(context, cbgen_compile(context, &sample.view, &request, &op));
  assert_int_equal(fake->blocks, 0); /* the library's own from the driver */
  const cbgen_info info = info_of(op);
  assert_true(info.peak_bytes >= info.device_bytes && info.device_bytes > 0);
  assert_true((size_t)info.peak_bytes <= pool.most);
  must_operator(op, cbgen_operator_clone(op, &clone));
  check_product(clone, &sample.csr);
  const long given = pool.given;
  check_product(op, &sample.csr);
  assert_int_equal(pool.given, given); /* products allocate nothing */
  if (cases[i].values == CBGEN_VALUES_MUTABLE) {
    const cbgen_update update = {sizeof update, sample.given, sample.form.value_type, CBGEN_HOST, NULL};
    must_operator(op, cbgen_update_values(op, &update));
  }
  must_operator(op, cbgen_operator_measure(op, &seconds));
  cbgen_context_destroy(context); /* operators outlive it, and so does the allocator */
  cbgen_operator_free(op);
  cbgen_operator_free(clone);
  sample_release(&sample);
}

static void all_memory_is_the_pools(void **state) {
  (void)state;
  for (int i = 0; i < CASES; i++) {
    pool = (struct pool){0};
    use(pooled_context(), i);
    assert_true(pool.given > 0);
    assert_int_equal(pool.taken_back, pool.given);
    assert_int_equal(pool.bytes + (size_t)pool.wrong, 0);
  }
}

/* In an application's CUDA context kernels and buffers are kept for the next cbgen context, but no memory of a pool. */
static void nothing_of_a_pool_is_kept(void **state) {
  (void)state;
  app_set_current(0);
  for (int i = 0; i < CASES; i++) {
    pool = (struct pool){0};
    use(pooled_context(), i);
    assert_int_equal(pool.taken_back, pool.given);
    assert_int_equal(pool.bytes + (size_t)pool.wrong, 0);
    cbgen_context *context = new_context(""); /* and one without a pool has nothing to do with it */
    struct sample sample = sample_of("random,rows=30,cols=30,density=0.1", (struct form){.on_device = 1});
    cbgen_operator *op;
    const long given = pool.given;
    must(context, cbgen_compile(context, &sample.view, NULL, &op));
    check_product(op, &sample.csr);
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
    sample_release(&sample);
    assert_int_equal(pool.given, given);
  }
}

static void the_pools_stream_is_handed_over_and_waited_for(void **state) {
  (void)state;
  void *stream = app_stream(0, 1);
  long waits[3], given = 0;
  for (int i = 0; i < 3; i++) { /* the first compiles what the others find loaded; the last has a stream */
    pool = (struct pool){.stream = i == 2 ? stream : NULL};
    const long before = fake->waits;
    use(pooled_context(), 0);
    waits[i] = fake->waits - before;
    assert_int_equal(pool.bytes + (size_t)pool.wrong, 0);
    if (i) assert_true(!given || pool.given == given);
    if (i) given = pool.given;
  }
  assert_int_equal(waits[2], waits[1] + given);
  app_stream_free(stream);
}

/* ---- failures */

static void each_allocation_may_fail(void **state) {
  (void)state;
  for (int i = 0; i < CASES; i++) {
    struct sample sample = sample_of(matrix_for(i), cases[i].form);
    const cbgen_request request = {.struct_size = sizeof request, .values = cases[i].values};
    int failures = 0;
    for (long at = 1; at < MOST; at++) {
      cbgen_operator *op;
      pool = (struct pool){.fail_at = at};
      cbgen_context *context = pooled_context();
      set_all(context, cases[i].options);
      const cbgen_status s = cbgen_compile(context, &sample.view, &request, &op);
      if (s && (s != CBGEN_ERROR_MEMORY || !strstr(cbgen_message(context), "the application's allocator has no")))
        fail_msg("case %d, %ld: %s", i, at, cbgen_message(context));
      failures += s != CBGEN_OK;
      if (!s) check_product(op, &sample.csr);
      cbgen_operator_free(op);
      cbgen_context_destroy(context);
      assert_int_equal(pool.bytes + (size_t)pool.wrong, 0);
      if (pool.given < at) break;
    }
    assert_true(failures > 0 || i > 1); /* tuning and packing on the device have other ways, which take less */
    sample_release(&sample);
  }
}

static void addresses_must_be_aligned(void **state) {
  (void)state;
  struct sample sample = sample_of("random,rows=30,cols=30,density=0.1", (struct form){0});
  cbgen_operator *op;
  pool.crooked = 128;
  cbgen_context *context = pooled_context();
  assert_int_equal(cbgen_compile(context, &sample.view, NULL, &op), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_message(context), "no multiple of 256"));
  cbgen_context_destroy(context);
  assert_int_equal(pool.given, pool.taken_back);
  sample_release(&sample);
}

static void allocators_are_checked(void **state) {
  (void)state;
  struct sample sample = sample_of("random,rows=30,cols=30,density=0.1", (struct form){0});
  cbgen_allocator allocator = {sizeof allocator, &pool, NULL, give, NULL};
  cbgen_operator *op;
  cbgen_context *context = new_context("");
  assert_int_equal(cbgen_set_allocator(NULL, &allocator), CBGEN_ERROR_ARGUMENT);
  assert_int_equal(cbgen_set_allocator(context, &allocator), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_message(context), "both functions"));
  allocator = (cbgen_allocator){sizeof allocator, &pool, NULL, NULL, take_back};
  assert_int_equal(cbgen_set_allocator(context, &allocator), CBGEN_ERROR_ARGUMENT);
  allocator = (cbgen_allocator){8, &pool, NULL, give, take_back};
  assert_int_equal(cbgen_set_allocator(context, &allocator), CBGEN_ERROR_ARGUMENT);
  allocator.struct_size = sizeof allocator;
  must(context, cbgen_set_allocator(context, &allocator));
  must(context, cbgen_set_allocator(context, NULL)); /* the driver's again */
  must(context, cbgen_compile(context, &sample.view, NULL, &op));
  assert_int_equal(pool.given, 0);
  assert_int_equal(cbgen_set_allocator(context, &allocator), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_message(context), "too late"));
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

/* ---- the limit, and the peak */

static void the_limit_is_kept(void **state) {
  (void)state;
  struct sample sample = sample_of("random,rows=300,cols=300,density=0.03", (struct form){0});
  cbgen_operator *first, *second = NULL;
  char limit[32];
  for (int pooled = 0; pooled < 2; pooled++) {
    pool = (struct pool){0};
    cbgen_context *context = pooled ? pooled_context() : new_context("");
    must(context, cbgen_compile(context, &sample.view, NULL, &first));
    const int64_t bytes = info_of(first).device_bytes, peak = info_of(first).peak_bytes;
    assert_true(peak >= bytes);
    snprintf(limit, sizeof limit, "%lld", (long long)(bytes + peak)); /* as much again fits, no byte less */
    must(context, cbgen_set(context, "memory-limit", limit));
    must(context, cbgen_compile(context, &sample.view, NULL, &second));
    assert_int_equal(info_of(second).peak_bytes, peak);
    cbgen_operator_free(second);
    snprintf(limit, sizeof limit, "%lld", (long long)(bytes + peak - 1));
    must(context, cbgen_set(context, "memory-limit", limit));
    const long given = pool.given;
    assert_int_equal(cbgen_compile(context, &sample.view, NULL, &second), CBGEN_ERROR_MEMORY);
    assert_non_null(strstr(cbgen_message(context), "'memory-limit' permits"));
    assert_true(pool.given - given < 8);
    check_product(first, &sample.csr);
    must(context, cbgen_set(context, "memory-limit", "none"));
    must(context, cbgen_compile(context, &sample.view, NULL, &second));
    cbgen_operator_free(second);
    cbgen_operator_free(first);
    cbgen_context_destroy(context);
    assert_int_equal(pool.bytes + (size_t)pool.wrong, 0);
  }
  cbgen_context *context = new_context("");
  static const char *const wrong[] = {"0", "-1", "much", "", "1X"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_int_equal(cbgen_set(context, "memory-limit", wrong[i]), CBGEN_ERROR_ARGUMENT);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

/* What is there for the set-up alone counts in the peak, and not in what the operator keeps. */
static void the_peak_holds_what_setting_up_takes(void **state) {
  (void)state;
  struct sample sample = sample_of("random,rows=300,cols=300,density=0.03", (struct form){0});
  cbgen_context *context = new_context("");
  cbgen_operator *op, *loaded;
  size_t length;
  set_all(context, "recipe=sell pack=device"); /* the matrix is copied there */
  must(context, cbgen_compile(context, &sample.view, NULL, &op));
  const cbgen_info info = info_of(op);
  assert_true(info.peak_bytes >= info.device_bytes + sample.view.nnz * 12);
  must_operator(op, cbgen_operator_save(op, NULL, 0, &length));
  void *bytes = malloc(length);
  must_operator(op, cbgen_operator_save(op, bytes, length, &length));
  must(context, cbgen_operator_load(context, bytes, length, &loaded));
  assert_true(info_of(loaded).peak_bytes >= info_of(loaded).device_bytes && info_of(loaded).device_bytes > 0);
  free(bytes);
  cbgen_operator_free(op);
  cbgen_operator_free(loaded);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

/* ---- memory for a moment */

/* Allocations of an operator that kernels pack, which is freed at once. */
static long allocations_of(cbgen_context *context, const struct sample *sample, cbgen_values values) {
  const cbgen_request request = {.struct_size = sizeof request, .values = values};
  const long before = fake->allocations;
  cbgen_operator *op;
  must(context, cbgen_compile(context, &sample->view, &request, &op));
  check_product(op, &sample->csr);
  cbgen_operator_free(op);
  return fake->allocations - before;
}

static cbgen_context *packing_context(void) {
  cbgen_context *context = new_context("");
  set_all(context, "recipe=sell pack=device");
  return context;
}

/* What set-up gives back is taken again, and goes to others when memory is short. What an operator keeps for new values
 * is its own. */
static void memory_of_set_up_is_taken_again(void **state) {
  (void)state;
  enum { OF_SET_UP = 2 }; /* what the survey found, and the plan's lists; row pointers are read where they are */
  struct sample sample = sample_of("random,rows=300,cols=300,density=0.03", (struct form){.on_device = 1});
  cbgen_context *context = packing_context();
  allocations_of(context, &sample, CBGEN_VALUES_STORED); /* with what the session keeps */
  const long again = allocations_of(context, &sample, CBGEN_VALUES_STORED);
  const size_t idle = fake->bytes;
  assert_int_equal(allocations_of(context, &sample, CBGEN_VALUES_MUTABLE), again + 2);
  assert_int_equal(fake->bytes, idle);
  fake->memory = fake->device_bytes[0] + 100; /* the arrays take more */
  assert_true(allocations_of(context, &sample, CBGEN_VALUES_STORED) > again);
  fake->memory = 0;
  must(context, cbgen_set(context, "memory-limit", "1G"));
  assert_int_equal(allocations_of(context, &sample, CBGEN_VALUES_STORED), again + OF_SET_UP);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

/* As are the arrays of an operator that has gone, where the next one's are no less than half. */
static void arrays_are_taken_again(void **state) {
  static const struct {
    const char *shape;
    long allocations;
  } turns[] = {{"random,rows=2000,cols=2000,per_row=12", 2}, /* and the list of what is packed */
               {"random,rows=2000,cols=2000,per_row=12", 0},
               {"random,rows=1900,cols=2000,per_row=9", 0},
               {"random,rows=2000,cols=2000,per_row=14", 1},
               {"random,rows=600,cols=2000,per_row=3", 1},
               {"random,rows=2000,cols=2000,per_row=12", 0}};
  (void)state;
  cbgen_context *context = packing_context();
  struct sample small = sample_of("random,rows=30,cols=30,per_row=2", (struct form){0});
  const cbgen_request request = {.struct_size = sizeof request};
  cbgen_operator *before; /* with what the session keeps */
  must(context, cbgen_compile(context, &small.view, &request, &before));
  for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
    struct sample sample = sample_of(turns[i].shape, (struct form){.on_device = 1});
    assert_int_equal(allocations_of(context, &sample, CBGEN_VALUES_STORED), turns[i].allocations);
    sample_release(&sample);
  }
  cbgen_operator_free(before);
  sample_release(&small);
  cbgen_context_destroy(context);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_pool, check_fake)
  const struct CMUnitTest tests[] = {
      TEST(all_memory_is_the_pools),
      TEST(nothing_of_a_pool_is_kept),
      TEST(the_pools_stream_is_handed_over_and_waited_for),
      TEST(each_allocation_may_fail),
      TEST(addresses_must_be_aligned),
      TEST(allocators_are_checked),
      TEST(the_limit_is_kept),
      TEST(the_peak_holds_what_setting_up_takes),
      TEST(memory_of_set_up_is_taken_again),
      TEST(arrays_are_taken_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
