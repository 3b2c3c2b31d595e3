// SPDX-License-Identifier: Apache-2.0
/* Operators on streams, in graphs, in threads and on several GPUs: what may run side by side does, what may
 * not is refused, and no product does more than launch. */
#include "tests/api_support.h"

#include <pthread.h>

#define WITH_SCRATCH "random,rows=40,cols=5000,density=0.2"
#define WITHOUT "random,rows=300,cols=200,density=0.05"

/* An operator with scratch, or without, and what it came from. */
struct bed {
  cbgen_context *context;
  struct sample sample;
  cbgen_operator *op;
};

static struct bed bed_of(const char *matrix, const char *recipe, cbgen_values values, const char *device) {
  struct bed bed = {.context = new_context(""), .sample = sample_of(matrix, (struct form){0})};
  const cbgen_request request = {.struct_size = sizeof request, .values = values};
  must(bed.context, cbgen_set(bed.context, "recipe", recipe));
  if (!strcmp(recipe, "cb")) must(bed.context, cbgen_set(bed.context, "unit-budget", "512"));
  if (device) must(bed.context, cbgen_set(bed.context, "device", device));
  must(bed.context, cbgen_compile(bed.context, &bed.sample.view, &request, &bed.op));
  return bed;
}

static void release(struct bed *bed) {
  cbgen_operator_free(bed->op);
  cbgen_context_destroy(bed->context);
  sample_release(&bed->sample);
}

static int has_scratch(const cbgen_operator *op) {
  cbgen_info info = {.struct_size = sizeof info};
  assert_int_equal(cbgen_operator_info(op, &info), CBGEN_OK);
  return info.has_scratch;
}

/* A product on a stream of GPU 0, checked after it. */
static void check_on(struct bed *bed, cbgen_operator *op, void *stream) {
  struct vectors vectors = vectors_for(op, 0);
  const cbgen_product product = product_with(&vectors, 2, 1, stream);
  must_operator(op, cbgen_multiply(op, &product));
  check_result(op, &bed->sample.csr, &vectors, 2, 1);
  vectors_release(&vectors);
}

static cbgen_status multiply_on(cbgen_operator *op, void *stream) {
  struct vectors vectors = vectors_for(op, 0);
  const cbgen_product product = product_with(&vectors, 2, 1, stream);
  const cbgen_status s = cbgen_multiply(op, &product);
  vectors_release(&vectors);
  return s;
}

/* ---- what a product does */

static void a_product_is_launches_alone(void **state) {
  (void)state;
  static const struct {
    const char *matrix, *recipe;
  } cases[] = {{WITHOUT, "auto"}, {WITH_SCRATCH, "cb"}, {"fe3,n=3", "blocks"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct bed bed = bed_of(cases[i].matrix, cases[i].recipe, CBGEN_VALUES_MUTABLE, NULL);
    cbgen_info info = {.struct_size = sizeof info};
    assert_int_equal(cbgen_operator_info(bed.op, &info), CBGEN_OK);
    struct vectors vectors = vectors_for(bed.op, 0);
    const cbgen_product product = product_with(&vectors, 2, 1, NULL);
    app_set_current(0);
    const struct fake_control before = *fake;
    cb_memory_fail_at(0, 0);
    must_operator(bed.op, cbgen_multiply(bed.op, &product));
    assert_int_equal(cb_memory_fail_at(0, 0), 0); /* no memory of the host's either */
    assert_int_equal(fake->launches, before.launches + info.launches);
    assert_int_equal(fake->allocations, before.allocations);
    assert_int_equal(fake->waits, before.waits);
    assert_int_equal(fake->copies_to_device, before.copies_to_device);
    assert_int_equal(fake->copies_to_host, before.copies_to_host);
    assert_int_equal(fake->calls, before.calls + info.launches + 1); /* and a look at the current context */
    app_set_current(-1);
    vectors_release(&vectors);
    release(&bed);
  }
}

static void the_callers_context_stays(void **state) {
  (void)state;
  static const int current[] = {-1, 0, 1};
  fake->devices = 2;
  for (int i = 0; i < 3; i++) {
    app_set_current(current[i]);
    const long pushed = fake->pushed;
    struct bed bed = bed_of(WITHOUT, "auto", CBGEN_VALUES_MUTABLE, "0");
    check_on(&bed, bed.op, NULL);
    const cbgen_update update = {sizeof update, bed.sample.given, CBGEN_F64, CBGEN_HOST, NULL};
    must_operator(bed.op, cbgen_update_values(bed.op, &update));
    double seconds;
    must_operator(bed.op, cbgen_operator_measure(bed.op, &seconds));
    assert_true(seconds > 0);
    release(&bed);
    assert_int_equal(fake->pushed, pushed);
    app_set_current(-1);
  }
}

/* ---- streams */

static void without_scratch_any_stream_will_do(void **state) {
  (void)state;
  struct bed bed = bed_of(WITHOUT, "sell", CBGEN_VALUES_STORED, NULL);
  void *streams[2] = {app_stream(0, 1), app_stream(0, 0)};
  assert_false(has_scratch(bed.op));
  check_on(&bed, bed.op, streams[0]);
  check_on(&bed, bed.op, streams[1]);
  check_on(&bed, bed.op, NULL);
  app_stream_free(streams[0]);
  app_stream_free(streams[1]);
  release(&bed);
}

static void scratch_serves_one_stream(void **state) {
  (void)state;
  struct bed bed = bed_of(WITH_SCRATCH, "cb", CBGEN_VALUES_STORED, NULL);
  void *streams[2] = {app_stream(0, 1), app_stream(0, 1)};
  cbgen_operator *clone;
  assert_true(has_scratch(bed.op));
  check_on(&bed, bed.op, streams[0]);
  check_on(&bed, bed.op, streams[0]);
  const long launches = fake->launches;
  assert_int_equal(multiply_on(bed.op, streams[1]), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_operator_message(bed.op), "clone the operator"));
  assert_int_equal(multiply_on(bed.op, NULL), CBGEN_ERROR_ARGUMENT);
  assert_int_equal(fake->launches, launches);
  must_operator(bed.op, cbgen_operator_clone(bed.op, &clone));
  check_on(&bed, clone, streams[1]);
  assert_int_equal(multiply_on(clone, streams[0]), CBGEN_ERROR_ARGUMENT);
  cbgen_operator_unbind(bed.op);
  check_on(&bed, bed.op, NULL);
  check_on(&bed, bed.op, (void *)1); /* the default stream's other name */
  assert_int_equal(multiply_on(bed.op, (void *)2), CBGEN_ERROR_ARGUMENT);
  cbgen_operator_free(bed.op);
  bed.op = clone; /* lives on */
  check_on(&bed, clone, streams[1]);
  cbgen_operator_unbind(NULL);
  app_stream_free(streams[0]);
  app_stream_free(streams[1]);
  release(&bed);
}

static void clones_share_values(void **state) {
  (void)state;
  struct bed bed = bed_of(WITH_SCRATCH, "cb", CBGEN_VALUES_MUTABLE, NULL);
  cbgen_operator *clone;
  const long modules = fake->modules;
  must_operator(bed.op, cbgen_operator_clone(bed.op, &clone));
  assert_int_equal(fake->modules, modules);
  set_values(&bed.sample, 8);
  sum_up(&bed.sample);
  const cbgen_update update = {sizeof update, bed.sample.given, CBGEN_F64, CBGEN_HOST, NULL};
  must_operator(clone, cbgen_update_values(clone, &update));
  check_on(&bed, bed.op, NULL);
  check_on(&bed, clone, NULL);
  assert_int_equal(cbgen_operator_clone(bed.op, NULL), CBGEN_ERROR_ARGUMENT);
  cbgen_operator *none = clone;
  assert_int_equal(cbgen_operator_clone(NULL, &none), CBGEN_ERROR_ARGUMENT);
  assert_null(none);
  cbgen_operator_free(bed.op);
  check_on(&bed, clone, NULL);
  bed.op = clone;
  release(&bed);
}

static void fixed_and_stored_values_are_not_renewed(void **state) {
  (void)state;
  static const cbgen_values modes[] = {CBGEN_VALUES_STORED, CBGEN_VALUES_FIXED};
  for (int i = 0; i < 2; i++) {
    struct bed bed = bed_of(WITHOUT, "auto", modes[i], NULL);
    const cbgen_update update = {sizeof update, bed.sample.given, CBGEN_F64, CBGEN_HOST, NULL};
    assert_int_equal(cbgen_update_values(bed.op, &update), CBGEN_ERROR_ARGUMENT);
    assert_non_null(strstr(cbgen_operator_message(bed.op), "compile it with mutable values"));
    check_on(&bed, bed.op, NULL);
    release(&bed);
  }
}

/* ---- graphs */

struct capture {
  unsigned (*begin)(void *stream, unsigned mode);
  unsigned (*end)(void *stream, void **graph);
  unsigned (*instantiate)(void **exec, void *graph, unsigned long long flags);
  unsigned (*launch)(void *exec, void *stream);
  unsigned (*destroy)(void *graph);
  unsigned (*destroy_exec)(void *exec);
  unsigned (*wait)(void *stream);
};

static struct capture bind_capture(void) {
  struct capture capture;
  bind_fake(&capture.begin, "cuStreamBeginCapture_v2");
  bind_fake(&capture.end, "cuStreamEndCapture");
  bind_fake(&capture.instantiate, "cuGraphInstantiateWithFlags");
  bind_fake(&capture.launch, "cuGraphLaunch");
  bind_fake(&capture.destroy, "cuGraphDestroy");
  bind_fake(&capture.destroy_exec, "cuGraphExecDestroy");
  bind_fake(&capture.wait, "cuStreamSynchronize");
  return capture;
}

/* A graph of what was captured since `begin`. */
static void *finish(const struct capture *call, void *stream) {
  void *graph, *exec;
  assert_int_equal(call->end(stream, &graph), 0);
  assert_int_equal(call->instantiate(&exec, graph, 0), 0);
  assert_int_equal(call->destroy(graph), 0);
  return exec;
}

static void graphs_replay_with_other_vectors(void **state) {
  (void)state;
  static const struct { const char *matrix, *recipe; } cases[] = {{WITHOUT, "auto"}, {WITH_SCRATCH, "cb"}};
  const struct capture call = bind_capture();
  for (int i = 0; i < 4; i++) {
    struct bed bed = bed_of(cases[i / 2].matrix, cases[i / 2].recipe, CBGEN_VALUES_STORED, NULL);
    struct vectors vectors = vectors_for(bed.op, 0);
    void *stream = app_stream(0, 1);
    fake->lazy = i % 2;
    const cbgen_product product = product_with(&vectors, 0.5, 2, stream);
    app_set_current(0);
    assert_int_equal(call.begin(stream, 0), 0); /* global: nothing unsafe in the whole process */
    must_operator(bed.op, cbgen_multiply(bed.op, &product));
    void *exec = finish(&call, stream);
    for (uint64_t seed = 20; seed < 23; seed++) {
      fill_vectors(&vectors, seed);
      assert_int_equal(call.launch(exec, stream), 0);
      assert_int_equal(call.wait(stream), 0);
      check_result(bed.op, &bed.sample.csr, &vectors, 0.5, 2);
    }
    assert_int_equal(call.destroy_exec(exec), 0);
    app_stream_free(stream);
    app_set_current(-1);
    fake->lazy = 0;
    vectors_release(&vectors);
    release(&bed);
  }
}

/* An update from the device and a product in one graph: replays see the values that are there then. */
static void graphs_renew_values(void **state) {
  (void)state;
  const struct capture call = bind_capture();
  for (int lazy = 0; lazy < 2; lazy++) {
    struct bed bed = bed_of(WITHOUT, "auto", CBGEN_VALUES_MUTABLE, NULL);
    to_device(&bed.sample, 0);
    struct vectors vectors = vectors_for(bed.op, 0);
    void *stream = app_stream(0, 1);
    fake->lazy = lazy;
    const cbgen_product product = product_with(&vectors, 1, 0, stream);
    const cbgen_update update = {sizeof update, (void *)(uintptr_t)bed.sample.there[2], CBGEN_F64,
                                 CBGEN_DEVICE, stream};
    app_set_current(0);
    assert_int_equal(call.begin(stream, 0), 0);
    must_operator(bed.op, cbgen_update_values(bed.op, &update));
    must_operator(bed.op, cbgen_multiply(bed.op, &product));
    void *exec = finish(&call, stream);
    for (uint64_t seed = 30; seed < 33; seed++) {
      set_values(&bed.sample, seed);
      sum_up(&bed.sample);
      assert_int_equal(call.launch(exec, stream), 0);
      assert_int_equal(call.wait(stream), 0);
      check_result(bed.op, &bed.sample.csr, &vectors, 1, 0);
    }
    assert_int_equal(call.destroy_exec(exec), 0);
    app_stream_free(stream);
    app_set_current(-1);
    fake->lazy = 0;
    vectors_release(&vectors);
    release(&bed);
  }
}

/* From the host: the first renewal cannot be captured, and says so without harm to the capture; later ones
 * can. */
static void note_fills(void *user, const struct fake_launch *launch) {
  (void)launch;
  *(long *)user = fake->fills;
}

/* Kernels of products may read values before they wait for the kernel before, so that the second one behind a renewal
 * would read them while it goes on: something that nothing overlaps must stand between. */
static void nothing_overlaps_a_renewal(void **state) {
  (void)state;
  static const char *const packs[] = {"device", "host"};
  long fills = -1;
  for (int i = 0; i < 2; i++)
    for (int copied = 0; copied < 2; copied++) {
      cbgen_context *context = new_context("");
      struct sample sample = sample_of("random,rows=3000,cols=2000,density=0.01", (struct form){0});
      const cbgen_request request = {.struct_size = sizeof request, .values = CBGEN_VALUES_MUTABLE};
      cbgen_operator *op, *second = NULL;
      must(context, cbgen_set(context, "pack", packs[i]));
      must(context, cbgen_set(context, "recipe", "sell"));
      must(context, cbgen_compile(context, &sample.view, &request, &op));
      if (copied) must_operator(op, cbgen_operator_copy(op, NULL, &second));
      const cbgen_update update = {sizeof update, sample.given, CBGEN_F64, CBGEN_HOST, NULL};
      const long before = fake->fills, launches = fake->launches;
      fake->hook = note_fills;
      fake->user = &fills;
      must_operator(op, cbgen_update_values(copied ? second : op, &update));
      fake->hook = NULL;
      assert_true(fake->launches > launches);
      assert_int_equal(fills, before);
      assert_int_equal(fake->fills, before + 1);
      cbgen_operator_free(second);
      cbgen_operator_free(op);
      cbgen_context_destroy(context);
      sample_release(&sample);
    }
}

static void the_first_renewal_from_the_host_is_not_captured(void **state) {
  (void)state;
  const struct capture call = bind_capture();
  unsigned (*alloc)(void **, size_t, unsigned), (*free_host)(void *);
  bind_fake(&alloc, "cuMemHostAlloc");
  bind_fake(&free_host, "cuMemFreeHost");
  struct bed bed = bed_of(WITHOUT, "auto", CBGEN_VALUES_MUTABLE, NULL);
  struct vectors vectors = vectors_for(bed.op, 0);
  const size_t bytes = (size_t)bed.sample.entries * sizeof(double);
  void *stream = app_stream(0, 1), *graph, *pinned;
  app_set_current(0);
  assert_int_equal(alloc(&pinned, bytes, 0), 0);
  cbgen_update update = {sizeof update, bed.sample.given, CBGEN_F64, CBGEN_HOST, stream};
  assert_int_equal(call.begin(stream, 0), 0);
  assert_int_equal(cbgen_update_values(bed.op, &update), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_operator_message(bed.op), "before the capture"));
  assert_int_equal(call.end(stream, &graph), 0);
  assert_int_equal(call.destroy(graph), 0);
  must_operator(bed.op, cbgen_update_values(bed.op, &update));
  update.values = pinned;
  const cbgen_product product = product_with(&vectors, 1, 0, stream);
  assert_int_equal(call.begin(stream, 0), 0);
  must_operator(bed.op, cbgen_update_values(bed.op, &update));
  must_operator(bed.op, cbgen_multiply(bed.op, &product));
  void *exec = finish(&call, stream);
  for (uint64_t seed = 40; seed < 42; seed++) {
    set_values(&bed.sample, seed);
    sum_up(&bed.sample);
    memcpy(pinned, bed.sample.given, bytes);
    assert_int_equal(call.launch(exec, stream), 0);
    assert_int_equal(call.wait(stream), 0);
    check_result(bed.op, &bed.sample.csr, &vectors, 1, 0);
  }
  assert_int_equal(call.destroy_exec(exec), 0);
  assert_int_equal(free_host(pinned), 0);
  app_stream_free(stream);
  app_set_current(-1);
  vectors_release(&vectors);
  release(&bed);
}

/* ---- threads */

enum { THREADS = 4, ROUNDS = 12 };

struct worker {
  struct bed *bed;
  cbgen_operator *op; /* the common one, or a clone */
  void *stream;
  struct vectors vectors;
  int failures;
};

static void *work(void *user) {
  struct worker *worker = user;
  const cbgen_product product = product_with(&worker->vectors, 1.5, 0, worker->stream);
  for (int i = 0; i < ROUNDS; i++) worker->failures += cbgen_multiply(worker->op, &product) != CBGEN_OK;
  return NULL;
}

static void threads_multiply_side_by_side(void **state) {
  (void)state;
  for (int scratch = 0; scratch < 2; scratch++) {
    struct bed bed = scratch ? bed_of(WITH_SCRATCH, "cb", CBGEN_VALUES_STORED, NULL)
                             : bed_of(WITHOUT, "sell", CBGEN_VALUES_STORED, NULL);
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
      workers[i] = (struct worker){&bed, bed.op, app_stream(0, 1), vectors_for(bed.op, 0), 0};
      if (scratch) must_operator(bed.op, cbgen_operator_clone(bed.op, &workers[i].op));
      fill_vectors(&workers[i].vectors, 100 + (uint64_t)i);
    }
    for (int i = 0; i < THREADS; i++)
      assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
      assert_int_equal(workers[i].failures, 0);
      check_result(workers[i].op, &bed.sample.csr, &workers[i].vectors, 1.5, 0);
      if (scratch) cbgen_operator_free(workers[i].op);
      app_stream_free(workers[i].stream);
      vectors_release(&workers[i].vectors);
    }
    release(&bed);
  }
}

/* Threads that share what must not be shared: exactly one stream wins, and every other product is refused. */
static void misuse_by_threads_is_noticed(void **state) {
  (void)state;
  struct bed bed = bed_of(WITH_SCRATCH, "cb", CBGEN_VALUES_STORED, NULL);
  struct worker workers[THREADS];
  pthread_t threads[THREADS];
  int served = 0;
  for (int i = 0; i < THREADS; i++)
    workers[i] = (struct worker){&bed, bed.op, app_stream(0, 1), vectors_for(bed.op, 0), 0};
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; i++) {
    assert_true(workers[i].failures == 0 || workers[i].failures == ROUNDS);
    served += !workers[i].failures;
    app_stream_free(workers[i].stream);
    vectors_release(&workers[i].vectors);
  }
  assert_int_equal(served, 1);
  assert_non_null(strstr(cbgen_operator_message(bed.op), "serves another stream"));
  release(&bed);
}

/* Two launches of a product hand something on in scratch: those of another thread's product on the same
 * stream must not come in between. */
static void launches_of_a_product_stay_together(void **state) {
  (void)state;
  struct bed bed = {.context = new_context(""),
                    .sample = sample_of("rmat,scale=9,edge_factor=8", (struct form){0})};
  must(bed.context, cbgen_set(bed.context, "recipe", "hot"));
  must(bed.context, cbgen_set(bed.context, "hot-columns", "64"));
  must(bed.context, cbgen_set(bed.context, "hot-gather", "on"));
  must(bed.context, cbgen_compile(bed.context, &bed.sample.view, NULL, &bed.op));
  cbgen_info info = {.struct_size = sizeof info};
  assert_int_equal(cbgen_operator_info(bed.op, &info), CBGEN_OK);
  assert_true(info.launches > 1 && info.has_scratch);
  struct worker workers[THREADS];
  pthread_t threads[THREADS];
  void *stream = app_stream(0, 1);
  for (int i = 0; i < THREADS; i++) {
    workers[i] = (struct worker){&bed, bed.op, stream, vectors_for(bed.op, 0), 0};
    fill_vectors(&workers[i].vectors, 200 + (uint64_t)i);
  }
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(workers[i].failures, 0);
    check_result(bed.op, &bed.sample.csr, &workers[i].vectors, 1.5, 0);
    vectors_release(&workers[i].vectors);
  }
  app_stream_free(stream);
  release(&bed);
}

/* ---- several GPUs */

static void two_gpus_in_one_process(void **state) {
  (void)state;
  fake->devices = 2;
  struct bed beds[2] = {bed_of(WITHOUT, "auto", CBGEN_VALUES_MUTABLE, "0"),
                        bed_of("random,rows=90,cols=70,density=0.2", "cb", CBGEN_VALUES_MUTABLE, "1")};
  assert_true(fake->device_bytes[0] && fake->device_bytes[1]);
  for (int round = 0; round < 2; round++)
    for (int i = 0; i < 2; i++) {
      struct vectors vectors = vectors_for(beds[i].op, i);
      void *stream = app_stream(i, 1);
      const cbgen_product product = product_with(&vectors, 2, 1, round ? stream : NULL);
      app_set_current(round ? 1 - i : -1); /* the other one, or none */
      must_operator(beds[i].op, cbgen_multiply(beds[i].op, &product));
      check_result(beds[i].op, &beds[i].sample.csr, &vectors, 2, 1);
      set_values(&beds[i].sample, 60 + (uint64_t)round);
      sum_up(&beds[i].sample);
      const cbgen_update update = {sizeof update, beds[i].sample.given, CBGEN_F64, CBGEN_HOST, NULL};
      must_operator(beds[i].op, cbgen_update_values(beds[i].op, &update));
      app_set_current(-1);
      app_stream_free(stream);
      vectors_release(&vectors);
    }
  release(&beds[0]);
  release(&beds[1]);
}

static void the_current_gpu_is_taken(void **state) {
  (void)state;
  fake->devices = 2;
  fake->capabilities[1] = 80;
  app_set_current(1);
  struct bed bed = bed_of(WITHOUT, "auto", CBGEN_VALUES_STORED, NULL);
  assert_non_null(strstr(cbgen_operator_plan_json(bed.op), "sm_80"));
  assert_int_equal(cbgen_set(bed.context, "device", "0"), CBGEN_ERROR_ARGUMENT); /* too late */
  release(&bed);
  app_set_current(-1);
  bed = bed_of(WITHOUT, "auto", CBGEN_VALUES_STORED, NULL);
  assert_non_null(strstr(cbgen_operator_plan_json(bed.op), "sm_90"));
  release(&bed);
  cbgen_context *context = new_context("");
  struct sample sample = sample_of(WITHOUT, (struct form){0});
  cbgen_operator *op;
  must(context, cbgen_set(context, "device", "2"));
  assert_int_equal(cbgen_compile(context, &sample.view, NULL, &op), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_message(context), "no GPU '2'"));
  cbgen_context_destroy(context);
  sample_release(&sample);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fake, check_fake)
  const struct CMUnitTest tests[] = {
      TEST(a_product_is_launches_alone),
      TEST(the_callers_context_stays),
      TEST(without_scratch_any_stream_will_do),
      TEST(scratch_serves_one_stream),
      TEST(clones_share_values),
      TEST(fixed_and_stored_values_are_not_renewed),
      TEST(graphs_replay_with_other_vectors),
      TEST(graphs_renew_values),
      TEST(nothing_overlaps_a_renewal),
      TEST(the_first_renewal_from_the_host_is_not_captured),
      TEST(threads_multiply_side_by_side),
      TEST(misuse_by_threads_is_noticed),
      TEST(launches_of_a_product_stay_together),
      TEST(two_gpus_in_one_process),
      TEST(the_current_gpu_is_taken),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
