// SPDX-License-Identifier: Apache-2.0
/* The fake CUDA itself: generated kernels go through its NVRTC and its driver and multiply; graphs replay,
 * GPUs and threads work side by side; misuse, traps and failing calls are noticed. */
#include "tests/recipes.h"
#include "tests/support.h"

#include "base/real.h"
#include "runtime/cuda/cubin.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/operator/operator.h"
#include "runtime/verify/oracle.h"
#include "tests/fake_app.h"

#include <math.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* One matrix, compiled and loaded on one GPU. */
struct bed {
  struct product product;
  struct cb_label label;
  struct cb_driver *driver;
  struct cb_device *device;
  struct cb_operator *op;
};

static int open_fake(void **state) {
  (void)state;
  return open_app();
}

static int check_fake(void **state) {
  (void)state;
  if (*fake->misuse) print_error("%s\n", fake->misuse);
  return !fake_is_clean(fake);
}

static enum cb_status compile(struct cb_compiled *compiled, const struct product *product,
                              struct cb_diag *diag) {
  struct cb_nvrtc *nvrtc;
  enum cb_status s = cb_nvrtc_open(&nvrtc, getenv("CBGEN_FAKE_CUDA"), diag);
  const struct cb_nvrtc_options options = {.arch = product->target.arch};
  if (!s) s = cb_nvrtc_compile(compiled, nvrtc, product->source.text, "kernel.cu", &options, diag);
  cb_nvrtc_close(nvrtc);
  return s;
}

/* NVRTC, driver, device, operator. Release the bed in any case. */
static enum cb_status load(struct bed *bed, int device, struct cb_diag *diag) {
  struct cb_compiled compiled = {0};
  struct cb_image image = {0};
  bed->label = (struct cb_label){"test", "test", cb_csr_pattern_hash(bed->product.csr)};
  enum cb_status s = cb_driver_open(&bed->driver, getenv("CBGEN_FAKE_CUDA"), diag);
  if (!s) s = cb_device_open(&bed->device, bed->driver, device, diag);
  if (!s) s = compile(&compiled, &bed->product, diag);
  const struct cb_image_parts parts = {.plan = bed->product.plan,
                                       .label = &bed->label,
                                       .blob = &bed->product.blob,
                                       .source = &bed->product.source,
                                       .cubin = compiled.cubin,
                                       .cubin_bytes = compiled.cubin_bytes};
  if (!s) s = cb_image_from_plan(&image, &parts, diag);
  if (!s) s = cb_operator_load(&bed->op, bed->device, &image, 0, diag);
  cb_image_release(&image);
  cb_compiled_release(&compiled);
  return s;
}

static void unload(struct bed *bed) {
  cb_operator_free(bed->op);
  cb_device_close(bed->device);
  cb_driver_close(bed->driver);
  bed->op = NULL, bed->device = NULL, bed->driver = NULL;
}

static struct bed bed_of(const char *matrix, const char *options, int device) {
  struct cb_diag diag = {0};
  struct bed bed = {.product = product_of(matrix, options)};
  assert_ok(load(&bed, device, &diag));
  return bed;
}

static void release(struct bed *bed) {
  unload(bed);
  product_release(&bed->product);
}

/* ---- vectors of the application on a GPU, and products with them */

struct vectors {
  double *x, *y; /* the host's copies; y before the product */
  uint64_t x_there, y_there;
  int64_t rows, cols;
  enum cb_type type;
};

static void fill(struct vectors *vectors, uint64_t seed) {
  const size_t size = cb_type_size(vectors->type);
  char *bytes = calloc((size_t)(vectors->rows + vectors->cols + 1), size);
  assert_non_null(bytes);
  for (int64_t i = 0; i < vectors->cols; i++) {
    vectors->x[i] = cb_real_round((double)(draw(&seed) >> 12) * 0x1p-51 - 1, vectors->type);
    cb_real_set(bytes, vectors->type, i, vectors->x[i]);
  }
  if (vectors->cols) assert_true(app_put(vectors->x_there, bytes, (size_t)vectors->cols * size));
  for (int64_t i = 0; i < vectors->rows; i++) {
    vectors->y[i] = cb_real_round((double)(draw(&seed) >> 12) * 0x1p-51 - 1, vectors->type);
    cb_real_set(bytes, vectors->type, i, vectors->y[i]);
  }
  if (vectors->rows) assert_true(app_put(vectors->y_there, bytes, (size_t)vectors->rows * size));
  free(bytes);
}

static struct vectors vectors_for(const struct bed *bed, int device, uint64_t seed) {
  const struct cb_csr *csr = bed->product.csr;
  struct vectors vectors = {.rows = csr->rows, .cols = csr->cols, .type = bed->product.plan->vector_type};
  vectors.x = calloc((size_t)csr->cols + 1, sizeof *vectors.x);
  vectors.y = calloc((size_t)csr->rows + 1, sizeof *vectors.y);
  vectors.x_there = app_alloc(device, (size_t)csr->cols * cb_type_size(vectors.type) + 1);
  vectors.y_there = app_alloc(device, (size_t)csr->rows * cb_type_size(vectors.type) + 1);
  assert_true(vectors.x && vectors.y && vectors.x_there && vectors.y_there);
  fill(&vectors, seed);
  return vectors;
}

static void release_vectors(struct vectors *vectors) {
  free(vectors->x);
  free(vectors->y);
  app_free(vectors->x_there);
  app_free(vectors->y_there);
}

/* Whether y on the GPU is what the product of the host's copies gives. */
static void check_result(const struct bed *bed, const struct vectors *vectors, double alpha, double beta) {
  struct cb_diag diag = {0};
  struct cb_expected expected = {0};
  struct cb_comparison comparison;
  const struct cb_product product = {.types = cb_oracle_types_of(bed->product.plan),
                                     .x = vectors->x,
                                     .y = vectors->y,
                                     .alpha = alpha,
                                     .beta = beta};
  const size_t bytes = (size_t)vectors->rows * cb_type_size(vectors->type);
  void *y = calloc(bytes + 1, 1);
  assert_non_null(y);
  if (bytes) assert_true(app_take(y, vectors->y_there, bytes));
  assert_ok(cb_oracle_multiply(&expected, bed->product.csr, &product, &diag));
  cb_oracle_compare(&comparison, &expected, y, vectors->type);
  assert_int_equal(comparison.rows, vectors->rows);
  if (comparison.wrong)
    fail_msg("%lld rows are wrong, first %lld: %g instead of %Lg", (long long)comparison.wrong,
             (long long)comparison.first_wrong, comparison.got, comparison.expected);
  cb_expected_release(&expected);
  free(y);
}

static enum cb_status multiply(const struct bed *bed, const struct vectors *vectors, double alpha,
                               double beta, void *stream, struct cb_diag *diag) {
  enum cb_status s = cb_device_enter(bed->device, diag);
  if (s) return s;
  s = cb_operator_multiply(bed->op, alpha, vectors->x_there, beta, vectors->y_there, stream, diag);
  cb_device_leave(bed->device);
  return s;
}

/* ---- kernels are executed */

static const struct {
  const char *matrix, *options;
} cases[] = {
    {"random,rows=300,cols=200,density=0.05", "recipe=cb form=axpby"},
    {"random,rows=300,cols=200,density=0.05", "recipe=cb form=axpby type=f32 bake-limit=0"},
    {"random,rows=100,cols=5000,density=0.2", "recipe=cb unit-budget=512 form=axpby"}, /* carries */
    {"random,rows=300,cols=200,density=0.3", "recipe=cb atomics=on balance=heap form=axpby"},
    {"random,rows=300,cols=200,density=0.05", "recipe=sell form=axpby"},
    {"empty,rows=50,cols=40", "form=axpby"},
    {"empty,rows=0,cols=9", "form=axpby"},
};
enum { CASES = sizeof cases / sizeof *cases, CARRIES = 2 };

/* Returns whether it has carry slots. */
static int multiplies(const char *matrix, const char *options, uint64_t seed) {
  struct cb_diag diag = {0};
  struct bed bed = bed_of(matrix, options, 0);
  struct vectors vectors = vectors_for(&bed, 0, seed);
  const long before = fake->executed;
  for (int i = 0; i < 3; i++) {
    fill(&vectors, 10 * seed + (uint64_t)i);
    assert_ok(multiply(&bed, &vectors, 1.25, i ? -0.5 : 0, NULL, &diag));
    check_result(&bed, &vectors, 1.25, i ? -0.5 : 0);
  }
  assert_int_equal(fake->executed - before, 3 * cb_operator_info(bed.op)->launches);
  const int has_carry = cb_operator_info(bed.op)->has_carry;
  release_vectors(&vectors);
  release(&bed);
  return has_carry;
}

static void kernels_multiply(void **state) {
  (void)state;
  for (int c = 0; c < CASES; c++)
    assert_int_equal(multiplies(cases[c].matrix, cases[c].options, (uint64_t)c), c == CARRIES);
}

static void every_recipe_multiplies(void **state) {
  (void)state;
  const struct cb_recipe *recipe;
  for (int i = 0; (recipe = cb_recipe_at(i)); i++)
    multiplies(example_of(recipe), settings_of_recipe(recipe), (uint64_t)(50 + i));
}

/* ---- NVRTC */

static void an_image_reads_as_a_cubin(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_compiled first, second;
  struct cb_cubin_stats stats;
  char name[96];
  struct product product = product_of(cases[CARRIES].matrix, cases[CARRIES].options);
  const struct cb_label label = {"test", "test", cb_csr_pattern_hash(product.csr)};
  fake->registers = 55;
  fake->stack_bytes = 16;
  assert_ok(compile(&first, &product, &diag));
  assert_ok(compile(&second, &product, &diag));
  assert_int_equal(fake->compilations, 2);
  assert_int_equal(first.cubin_bytes, second.cubin_bytes);
  assert_memory_equal(first.cubin, second.cubin, first.cubin_bytes);
  assert_ok(cb_cubin_stats(&stats, first.cubin, first.cubin_bytes, &diag));
  assert_int_equal(stats.count, product.plan->launches_count);
  cb_source_kernel(product.plan, &label, 0, name, sizeof name);
  assert_string_equal(stats.kernels[0].name, name);
  assert_int_equal(stats.kernels[0].registers, 55);
  assert_int_equal(stats.kernels[0].stack_bytes, 16);
  assert_int_equal(stats.kernels[0].static_shared, 0);
  assert_true(stats.kernels[0].code_bytes > 0);
  cb_cubin_stats_release(&stats);
  cb_compiled_release(&first);
  cb_compiled_release(&second);
  product_release(&product);
}

static void nvrtc_refuses_what_it_is_told(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_nvrtc *nvrtc;
  struct cb_compiled compiled;
  struct cb_nvrtc_options options = {.arch = "sm_90"};
  int major, minor;
  fake->nvrtc_major = 12, fake->nvrtc_minor = 9;
  assert_ok(cb_nvrtc_open(&nvrtc, getenv("CBGEN_FAKE_CUDA"), &diag));
  cb_nvrtc_version(nvrtc, &major, &minor);
  assert_int_equal(100 * major + minor, 1209);
  assert_true(cb_nvrtc_supports(nvrtc, "sm_100") && cb_nvrtc_supports(nvrtc, "sm_80"));
  assert_false(cb_nvrtc_supports(nvrtc, "sm_75"));
  assert_int_equal(
      cb_nvrtc_compile(&compiled, nvrtc, "one\n" FAKE_COMPILE_ERROR "\n", "k.cu", &options, &diag),
      CB_ERR_COMPILE);
  assert_non_null(strstr(diag.message, "k.cu(2): error"));
  cb_compiled_release(&compiled);
  assert_ok(cb_nvrtc_compile(&compiled, nvrtc, FAKE_COMPILE_WARNING, "k.cu", &options, &diag));
  assert_non_null(strstr(compiled.log, "k.cu(1): warning"));
  cb_compiled_release(&compiled);
  options.strict = 1;
  assert_int_equal(cb_nvrtc_compile(&compiled, nvrtc, FAKE_COMPILE_WARNING, "k.cu", &options, &diag),
                   CB_ERR_COMPILE);
  cb_compiled_release(&compiled);
  cb_nvrtc_close(nvrtc);
}

/* ---- graphs */

struct capture {
  unsigned (*begin)(void *stream, unsigned mode);
  unsigned (*end)(void *stream, void **graph);
  unsigned (*nodes)(void *graph, void **nodes, size_t *count);
  unsigned (*instantiate)(void **exec, void *graph, unsigned long long flags);
  unsigned (*launch)(void *exec, void *stream);
  unsigned (*destroy)(void *graph);
  unsigned (*destroy_exec)(void *exec);
};
enum { GLOBAL, THREAD_LOCAL, RELAXED };

static struct capture bind_capture(void) {
  struct capture capture;
  bind_fake(&capture.begin, "cuStreamBeginCapture_v2");
  bind_fake(&capture.end, "cuStreamEndCapture");
  bind_fake(&capture.nodes, "cuGraphGetNodes");
  bind_fake(&capture.instantiate, "cuGraphInstantiateWithFlags");
  bind_fake(&capture.launch, "cuGraphLaunch");
  bind_fake(&capture.destroy, "cuGraphDestroy");
  bind_fake(&capture.destroy_exec, "cuGraphExecDestroy");
  return capture;
}

static void graphs_replay(void **state) {
  (void)state;
  const struct capture call = bind_capture();
  for (int lazy = 0; lazy < 2; lazy++) {
    struct cb_diag diag = {0};
    struct bed bed = bed_of(cases[CARRIES].matrix, cases[CARRIES].options, 0);
    struct vectors vectors = vectors_for(&bed, 0, 1);
    void *stream = app_stream(0, 1), *graph, *exec;
    size_t nodes;
    fake->lazy = lazy;
    app_set_current(0);
    assert_int_equal(call.begin(stream, GLOBAL), 0);
    const long executed = fake->executed;
    assert_ok(multiply(&bed, &vectors, 0.5, 2, stream, &diag));
    assert_int_equal(call.end(stream, &graph), 0);
    assert_int_equal(fake->executed, executed);
    assert_int_equal(call.nodes(graph, NULL, &nodes), 0);
    assert_int_equal(nodes, cb_operator_info(bed.op)->launches);
    assert_int_equal(call.instantiate(&exec, graph, 0), 0);
    assert_int_equal(call.destroy(graph), 0);
    for (uint64_t i = 0; i < 3; i++) {
      fill(&vectors, 20 + i);
      assert_int_equal(call.launch(exec, stream), 0);
      assert_int_equal(bed.driver->call.stream_synchronize(stream), 0);
      check_result(&bed, &vectors, 0.5, 2);
    }
    assert_int_equal(fake->graph_launches, 3 * (lazy + 1));
    assert_int_equal(call.destroy_exec(exec), 0);
    app_stream_free(stream);
    app_set_current(-1);
    release_vectors(&vectors);
    release(&bed);
  }
}

/* What a capture does not take, and what becomes of it then. */
static void captures_forbid(void **state) {
  (void)state;
  const struct capture call = bind_capture();
  struct bed bed = bed_of(cases[0].matrix, cases[0].options, 0);
  const struct cb_driver_calls *driver = &bed.driver->call;
  struct vectors vectors = vectors_for(&bed, 0, 1);
  void *stream = app_stream(0, 1), *blocking = app_stream(0, 0), *graph;
  struct CUevent_st *event;
  cb_device_ptr address = 0;
  double number = 0;
  unsigned status;
  app_set_current(0);
  assert_int_equal(driver->event_create(&event, CB_CU_EVENT_NO_TIMING), 0);
  for (int what = 0; what < 6; what++) {
    assert_int_equal(call.begin(stream, GLOBAL), 0);
    assert_int_equal(driver->stream_capturing(stream, &status), 0);
    assert_int_equal(status, CB_CU_CAPTURE_ACTIVE);
    unsigned result = 0;
    if (what == 0) result = driver->memory_alloc(&address, 8);
    if (what == 1) result = driver->copy_to_device(vectors.x_there, &number, 8);
    if (what == 2) result = driver->stream_synchronize(stream);
    if (what == 3) result = driver->context_synchronize();
    if (what == 4) result = driver->stream_query(stream);
    if (what == 5) {
      assert_int_equal(driver->event_record(event, stream), 0);
      result = driver->event_query(event);
    }
    assert_int_equal(result, what == 5 ? 907 : 900);
    assert_int_equal(driver->stream_capturing(stream, &status), 0);
    assert_int_equal(status, CB_CU_CAPTURE_INVALIDATED);
    assert_int_equal(driver->copy_to_device_async(vectors.x_there, &number, 8, stream), 901);
    assert_int_equal(call.end(stream, &graph), 901);
    assert_null(graph);
  }
  assert_int_equal(call.begin(stream, RELAXED), 0);
  assert_int_equal(driver->memory_alloc(&address, 8), 0);
  assert_int_equal(driver->memory_free(address), 0);
  assert_int_equal(driver->fill_bytes_async(vectors.y_there, 0, 8, NULL),
                   0); /* the stream is none that it waits for */
  assert_int_equal(call.end(stream, &graph), 0);
  assert_int_equal(call.destroy(graph), 0);
  assert_int_equal(call.begin(blocking, RELAXED), 0);
  assert_int_equal(driver->stream_capturing(NULL, &status), 906);
  assert_int_equal(driver->fill_bytes_async(vectors.y_there, 0, 8, NULL), 906);
  assert_int_equal(call.end(blocking, &graph), 901);
  assert_int_equal(call.begin(NULL, RELAXED), 900);
  assert_int_equal(call.end(stream, &graph), 401);
  assert_int_equal(driver->event_destroy(event), 0);
  app_stream_free(stream);
  app_stream_free(blocking);
  app_set_current(-1);
  release_vectors(&vectors);
  release(&bed);
}

/* A second stream comes in by an event, and must come back by one. */
static void captures_fork_and_join(void **state) {
  (void)state;
  const struct capture call = bind_capture();
  struct bed bed = bed_of(cases[0].matrix, cases[0].options, 0);
  const struct cb_driver_calls *driver = &bed.driver->call;
  struct vectors vectors = vectors_for(&bed, 0, 1);
  void *stream = app_stream(0, 1), *other = app_stream(0, 1), *graph;
  struct CUevent_st *event;
  app_set_current(0);
  assert_int_equal(driver->event_create(&event, 0), 0);
  for (int joined = 0; joined < 2; joined++) {
    struct cb_diag diag = {0};
    assert_int_equal(call.begin(stream, GLOBAL), 0);
    assert_int_equal(driver->event_record(event, stream), 0);
    assert_int_equal(driver->stream_wait(other, event, 0), 0);
    assert_ok(multiply(&bed, &vectors, 1, 0, other, &diag));
    assert_int_equal(driver->event_record(event, other), 0);
    if (joined) assert_int_equal(driver->stream_wait(stream, event, 0), 0);
    assert_int_equal(call.end(stream, &graph), joined ? 0 : 904);
  }
  assert_int_equal(call.destroy(graph), 0);
  assert_int_equal(driver->event_destroy(event), 0);
  app_stream_free(stream);
  app_stream_free(other);
  app_set_current(-1);
  release_vectors(&vectors);
  release(&bed);
}

/* ---- streams that do nothing before something waits for them */

static void lazy_streams_wait(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct bed bed = bed_of(cases[0].matrix, cases[0].options, 0);
  const struct cb_driver_calls *driver = &bed.driver->call;
  struct vectors vectors = vectors_for(&bed, 0, 1);
  void *stream = app_stream(0, 1), *other = app_stream(0, 1), *pinned;
  struct CUevent_st *event;
  double pageable = 1, back = 0;
  app_set_current(0);
  fake->lazy = 1;
  assert_int_equal(driver->event_create(&event, CB_CU_EVENT_NO_TIMING), 0);
  assert_int_equal(driver->host_alloc(&pinned, sizeof(double), 0), 0);
  assert_ok(multiply(&bed, &vectors, 1, 0.5, stream, &diag));
  assert_int_equal(fake->executed, 0);
  assert_int_equal(driver->event_record(event, stream), 0);
  assert_int_equal(driver->event_query(event), 600);
  assert_int_equal(driver->event_query(event), 0);
  check_result(&bed, &vectors, 1, 0.5);
  /* another stream that waits brings the first one's work about, and keeps the order */
  fill(&vectors, 2);
  assert_ok(multiply(&bed, &vectors, 1, 0.5, stream, &diag));
  assert_int_equal(driver->event_record(event, stream), 0);
  assert_int_equal(driver->stream_wait(other, event, 0), 0);
  assert_int_equal(driver->stream_synchronize(other), 0);
  check_result(&bed, &vectors, 1, 0.5);
  /* pageable memory is read at once, pinned memory late */
  *(double *)pinned = 3;
  assert_int_equal(driver->copy_to_device_async(vectors.x_there, &pageable, sizeof pageable, stream), 0);
  assert_int_equal(driver->copy_to_device_async(vectors.y_there, pinned, sizeof pageable, stream), 0);
  pageable = 2, *(double *)pinned = 4;
  assert_int_equal(driver->copy_to_host_async(&back, vectors.x_there, sizeof back, stream), 0);
  assert_true(back == 1);
  assert_int_equal(driver->copy_to_host_async(pinned, vectors.x_there, sizeof back, stream), 0);
  assert_true(*(double *)pinned == 4);
  assert_int_equal(driver->stream_synchronize(stream), 0);
  assert_true(*(double *)pinned == 1);
  assert_true(app_take(&back, vectors.y_there, sizeof back) && back == 4);
  /* the legacy stream does not wait for a stream that does not block it */
  assert_int_equal(driver->fill_bytes_async(vectors.y_there, 0, sizeof back, stream), 0);
  assert_int_equal(driver->copy_to_host(&back, vectors.y_there, sizeof back), 0);
  assert_true(back == 4);
  assert_int_equal(driver->context_synchronize(), 0);
  assert_int_equal(driver->copy_to_host(&back, vectors.y_there, sizeof back), 0);
  assert_true(back == 0);
  assert_int_equal(driver->host_free(pinned), 0);
  assert_int_equal(driver->event_destroy(event), 0);
  app_stream_free(stream);
  app_stream_free(other);
  app_set_current(-1);
  release_vectors(&vectors);
  release(&bed);
}

/* ---- several GPUs, several threads */

static void expect_misuse(const char *what) {
  assert_non_null(strstr(fake->misuse, what));
  fake->misuses = 0;
  fake->misuse[0] = 0;
}

static void devices_are_apart(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  fake->devices = 2;
  fake->capabilities[1] = 100;
  struct bed first = bed_of(cases[0].matrix, cases[0].options, 0), second = {.product = first.product};
  assert_int_equal(load(&second, 1, &diag), CB_ERR_DEVICE); /* a cubin of sm_90 is none for sm_100 */
  assert_non_null(strstr(diag.message, "209"));
  unload(&second);
  fake->capabilities[1] = 0;
  assert_ok(load(&second, 1, &diag));
  struct vectors here = vectors_for(&first, 0, 1), there = vectors_for(&second, 1, 2);
  void *stream = app_stream(1, 1);
  assert_ok(multiply(&first, &here, 1, 0, NULL, &diag));
  assert_ok(multiply(&second, &there, 1, 0, stream, &diag));
  check_result(&first, &here, 1, 0);
  check_result(&second, &there, 1, 0);
  assert_int_equal(multiply(&second, &here, 1, 0, stream, &diag), CB_ERR_DEVICE);
  expect_misuse("none into memory of GPU 1");
  assert_int_equal(multiply(&first, &here, 1, 0, stream, &diag), CB_ERR_DEVICE);
  expect_misuse("a stream of GPU 1 in the context of GPU 0");
  app_set_current(0);
  const struct bed crossed = {.op = first.op, .device = second.device};
  assert_int_equal(multiply(&crossed, &there, 1, 0, stream, &diag), CB_ERR_DEVICE);
  expect_misuse("a kernel of GPU 0 in the context of GPU 1");
  assert_int_equal(first.driver->call.memory_free(there.x_there), 1);
  expect_misuse("the application's memory freed");
  app_set_current(-1);
  app_stream_free(stream);
  release_vectors(&here);
  release_vectors(&there);
  unload(&second);
  release(&first);
}

struct worker {
  const struct bed *bed;
  struct vectors vectors;
  void *stream;
  enum cb_status status;
};

static void *work(void *argument) {
  struct worker *worker = argument;
  for (int i = 0; i < 20 && !worker->status; i++)
    worker->status = multiply(worker->bed, &worker->vectors, 1, 0, worker->stream, NULL);
  return NULL;
}

static void threads_multiply_side_by_side(void **state) {
  (void)state;
  struct bed bed = bed_of(cases[4].matrix, cases[4].options, 0);
  struct worker workers[4];
  pthread_t threads[4];
  assert_false(cb_operator_info(bed.op)->has_carry);
  for (int t = 0; t < 4; t++) {
    workers[t] = (struct worker){.bed = &bed, .vectors = vectors_for(&bed, 0, (uint64_t)t)};
    workers[t].stream = app_stream(0, 1);
  }
  for (int t = 0; t < 4; t++) assert_int_equal(pthread_create(&threads[t], NULL, work, &workers[t]), 0);
  for (int t = 0; t < 4; t++) {
    assert_int_equal(pthread_join(threads[t], NULL), 0);
    assert_int_equal(workers[t].status, CB_OK);
    check_result(&bed, &workers[t].vectors, 1, 0);
    release_vectors(&workers[t].vectors);
    app_stream_free(workers[t].stream);
  }
  assert_int_equal(fake->executed, 80);
  release(&bed);
}

/* ---- failures */

static enum cb_status whole_life(const char *matrix, const char *options, struct cb_diag *diag) {
  struct bed bed = {.product = product_of(matrix, options)};
  struct vectors vectors = vectors_for(&bed, 0, 1);
  fake->calls = 0;
  enum cb_status s = load(&bed, 0, diag);
  if (!s) s = multiply(&bed, &vectors, 1, 0, NULL, diag);
  fake->fail_at = 0; /* who cannot enter a context cannot give back what is in it */
  release_vectors(&vectors);
  release(&bed);
  return s;
}

static void any_call_may_fail(void **state) {
  (void)state;
  int failures = 0, of_nvrtc = 0;
  for (long nth = 1, failed = 1; failed; nth++) {
    struct cb_diag diag = {0};
    fake = fake_open();
    fake->fail_at = nth;
    fake->failure = 700;
    const enum cb_status s = whole_life(cases[CARRIES].matrix, cases[CARRIES].options, &diag);
    assert_string_equal(fake->misuse, "");
    assert_true(fake_is_clean(fake));
    failed = *fake->failed != 0;
    if (!failed) assert_int_equal(s, CB_OK);
    if (s && !strstr(diag.message, "700"))
      fail_msg("%s failed, and the message is '%s'", fake->failed, diag.message);
    failures += s != CB_OK;
    of_nvrtc += s && !strncmp(fake->failed, "nvrtc", 5);
  }
  assert_true(failures > 30 && of_nvrtc > 7);
}

/* ---- what the emulator finds, and what the driver's account finds */

/* A module of the text's head with its device prelude, and a kernel of its own. */
static struct CUmod_st *module_of(const struct bed *bed, const char *body) {
  struct cb_diag diag = {0};
  struct cb_nvrtc *nvrtc;
  struct cb_compiled compiled;
  struct CUmod_st *module;
  const struct cb_source *source = &bed->product.source;
  const struct cb_nvrtc_options options = {.arch = "sm_90"};
  char *text = calloc((size_t)source->body + strlen(body) + 1, 1);
  assert_non_null(text);
  memcpy(text, source->text, (size_t)source->body);
  strcat(text, body);
  assert_ok(cb_nvrtc_open(&nvrtc, getenv("CBGEN_FAKE_CUDA"), &diag));
  assert_ok(cb_nvrtc_compile(&compiled, nvrtc, text, "test.cu", &options, &diag));
  assert_int_equal(bed->driver->call.module_load(&module, compiled.cubin), 0);
  cb_compiled_release(&compiled);
  cb_nvrtc_close(nvrtc);
  free(text);
  return module;
}

static unsigned launch_shared(const struct bed *bed, struct CUmod_st *module, const char *kernel, uint64_t y,
                              int shared_bytes, int allowed) {
  struct CUfunc_st *function;
  void *parameters[] = {&y};
  assert_int_equal(bed->driver->call.module_function(&function, module, kernel), 0);
  if (allowed)
    assert_int_equal(bed->driver->call.function_set(function, CB_CU_FUNC_MAX_DYNAMIC_SHARED, allowed), 0);
  return bed->driver->call.launch(function, 2, 1, 1, 64, 1, 1, (unsigned)shared_bytes, NULL, parameters,
                                  NULL);
}

static unsigned launch(const struct bed *bed, struct CUmod_st *module, const char *kernel, uint64_t y) {
  return launch_shared(bed, module, kernel, y, 0, 0);
}

static void shared_memory_is_asked_for(void **state) {
  (void)state;
  static const char body[] =
      "CBGEN_KERNEL void __launch_bounds__(64, blocks_that_fit(1, 64)) dynamic(double *y) {\n"
      "  DynamicShared<double, 10000> all;\n"
      "  all[9936 + (int)threadIdx.x] = threadIdx.x;\n"
      "  __syncthreads();\n"
      "  const double other = all[9999 - (int)threadIdx.x];\n"
      "  y[threadIdx.x] = other;\n"
      "}\n";
  struct cb_diag diag = {0};
  double values[64];
  struct bed bed = bed_of(cases[0].matrix, cases[0].options, 0);
  const uint64_t y = app_alloc(0, sizeof values);
  assert_ok(cb_device_enter(bed.device, &diag));
  struct CUmod_st *module = module_of(&bed, body);
  assert_int_equal(launch_shared(&bed, module, "dynamic", y, 80000, 0), 1);
  expect_misuse("a launch beyond the GPU's limits");
  assert_int_equal(launch_shared(&bed, module, "dynamic", y, 80000, 80000), 0);
  assert_int_equal(fake->traps, 0);
  assert_true(app_take(values, y, sizeof values));
  for (int t = 0; t < 64; t++) assert_true(values[t] == 63 - t);
  bed.driver->call.module_unload(module);
  cb_device_leave(bed.device);
  release(&bed);
  app_free(y);
}

static const char trapping[] = "CBGEN_KERNEL void __launch_bounds__(64, 1) divergent(double *y) {\n"
                           "  if (threadIdx.x < 7) __syncthreads();\n"
                           "  y[threadIdx.x] = 1;\n"
                           "}\n"
                           "CBGEN_KERNEL void __launch_bounds__(64, 1) race(double *y) {\n"
                           "  __shared__ Shared<double, 2> two;\n"
                           "  two[0] = (double)threadIdx.x;\n"
                           "  y[0] = two[0];\n"
                           "}\n"
                           "CBGEN_KERNEL void __launch_bounds__(64, 1) wild(double **y) { *y[0] = 1; }\n"
                           "CBGEN_KERNEL void __launch_bounds__(64, 1) beyond(double *y) {\n"
                           "  y[64 + blockIdx.x] = 1;\n"
                           "}\n"
                           "CBGEN_KERNEL void __launch_bounds__(64, 1) good(double *y) {\n"
                           "  y[threadIdx.x] = threadIdx.x;\n"
                           "}\n";
static const struct {
  const char *kernel, *message;
} traps[] = {
    {"divergent", "divergent barrier"},
    {"race", "shared race"},
    {"wild", "the thread crashed (Segmentation fault)"},
#ifndef __SANITIZE_ADDRESS__ /* which ends the process there */
    {"beyond", "stores beyond an allocation of 512 bytes"},
#endif
};

/* Another GPU's memory at `y`, and a thread that traps: every call of the context fails from then on. */
static void trap(const char *kernel, const char *message) {
  struct cb_diag diag = {0};
  double values[64];
  fake = fake_open();
  fake->devices = 2;
  struct bed bed = bed_of(cases[0].matrix, cases[0].options, 0);
  const uint64_t y = app_alloc(0, sizeof values), elsewhere = app_alloc(1, 8);
  assert_ok(cb_device_enter(bed.device, &diag));
  struct CUmod_st *module = module_of(&bed, trapping);
  assert_int_equal(launch(&bed, module, "good", y), 0);
  assert_true(app_take(values, y, sizeof values));
  for (int t = 0; t < 64; t++) assert_true(values[t] == t);
  assert_true(app_put(y, &elsewhere, sizeof elsewhere));
  assert_int_equal(launch(&bed, module, kernel, y), 0);
  assert_int_equal(fake->traps, 1);
  if (!strstr(fake->trap, message)) fail_msg("'%s' instead of '%s'", fake->trap, message);
  assert_int_equal(bed.driver->call.context_synchronize(), 719);
  assert_int_equal(bed.driver->call.stream_synchronize(NULL), 719);
  assert_false(fake_is_clean(fake));
  app_trap_taken();
  bed.driver->call.module_unload(module);
  cb_device_leave(bed.device);
  release(&bed);
  app_free(elsewhere);
  app_free(y);
  assert_string_equal(fake->misuse, "");
  assert_true(fake_is_clean(fake));
}

static void expect_a_fresh_gpu_works(void) {
  struct cb_diag diag = {0};
  fake = fake_open();
  struct bed bed = bed_of(cases[0].matrix, cases[0].options, 0);
  struct vectors vectors = vectors_for(&bed, 0, 3);
  assert_ok(multiply(&bed, &vectors, 1, 0, NULL, &diag));
  check_result(&bed, &vectors, 1, 0);
  release_vectors(&vectors);
  release(&bed);
}

static void traps_are_errors_of_the_context(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof traps / sizeof *traps; i++) {
    trap(traps[i].kernel, traps[i].message);
    expect_a_fresh_gpu_works();
  }
}

/* ---- what a pointer is, and what is none */

static void pointers_tell_what_they_are(void **state) {
  (void)state;
  struct bed bed = bed_of(cases[0].matrix, cases[0].options, 0);
  const struct cb_driver_calls *driver = &bed.driver->call;
  const uint64_t there = app_alloc(0, 100);
  unsigned type = 0;
  int ordinal = -1, here = 0;
  void *pinned;
  app_set_current(0);
  assert_int_equal(driver->pointer_get(&type, CB_CU_POINTER_MEMORY_TYPE, there + 99), 0);
  assert_int_equal(type, CB_CU_MEMORY_DEVICE);
  assert_int_equal(driver->pointer_get(&ordinal, CB_CU_POINTER_ORDINAL, there), 0);
  assert_int_equal(ordinal, 0);
  assert_int_equal(driver->pointer_get(&type, CB_CU_POINTER_MEMORY_TYPE, there + 100), 1);
  assert_int_equal(driver->host_alloc(&pinned, 8, 0), 0);
  assert_int_equal(driver->pointer_get(&type, CB_CU_POINTER_MEMORY_TYPE, (cb_device_ptr)(uintptr_t)pinned),
                   0);
  assert_int_equal(type, CB_CU_MEMORY_HOST);
  assert_int_equal(fake->pinned, 1);
  assert_int_equal(driver->host_free(pinned), 0);
  assert_int_equal(driver->pointer_get(&type, CB_CU_POINTER_MEMORY_TYPE, (cb_device_ptr)(uintptr_t)&here), 1);
  app_set_current(-1);
  app_free(there);
  release(&bed);
}

static void pointers_of_the_host_are_refused(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct bed bed = bed_of(cases[0].matrix, cases[0].options, 0);
  const struct cb_driver_calls *driver = &bed.driver->call;
  struct vectors vectors = vectors_for(&bed, 0, 1), wrong = vectors;
  char here[16] = "";
  app_set_current(0);
  wrong.x_there = (uint64_t)(uintptr_t)vectors.x;
  assert_int_equal(multiply(&bed, &wrong, 1, 0, NULL, &diag), CB_ERR_DEVICE);
  expect_misuse("is none into memory of GPU 0");
  assert_int_equal(driver->copy_to_device((cb_device_ptr)(uintptr_t)here, here, 1), 1);
  expect_misuse("outside of all blocks");
  assert_int_equal(driver->copy_to_host((void *)(uintptr_t)vectors.x_there, vectors.x_there, 1), 1);
  expect_misuse("a device address where one of the host is due");
  assert_int_equal(driver->copy_to_host(here, vectors.x_there + 8 * 200, 16), 1);
  expect_misuse("outside of all blocks");
  assert_int_equal(driver->memory_free(vectors.x_there + 1), 1);
  expect_misuse("a block freed that is none");
  app_set_current(-1);
  assert_int_equal(driver->context_synchronize(), 201);
  expect_misuse("no context is current in cuCtxSynchronize");
  release_vectors(&vectors);
  release(&bed);
}

/* The exit status of a process that ends as `ending` leaves the fake. */
static int status_after(void (*ending)(void)) {
  int status = 0;
  fflush(NULL);
  const pid_t child = fork();
  if (!child) {
    ending();
    exit(0);
  }
  assert_true(child > 0);
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void end_well(void) {
  setenv("CBGEN_FAKE_STRICT", "1", 1);
}

static void end_with_trap(void) {
  fake->traps = 1;
}

static void end_with_misuse(void) {
  fake->misuses = 1;
}

static void end_with_misuse_strictly(void) {
  setenv("CBGEN_FAKE_STRICT", "1", 1);
  fake->misuses = 1;
}

static void nothing_bad_ends_well(void **state) {
  (void)state;
  assert_int_equal(status_after(end_well), 0);
  assert_int_equal(status_after(end_with_trap), 99);
  assert_int_equal(status_after(end_with_misuse), 0);
  assert_int_equal(status_after(end_with_misuse_strictly), 99);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(kernels_multiply, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(every_recipe_multiplies, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(an_image_reads_as_a_cubin, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(nvrtc_refuses_what_it_is_told, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(graphs_replay, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(captures_forbid, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(captures_fork_and_join, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(lazy_streams_wait, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(devices_are_apart, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(threads_multiply_side_by_side, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(any_call_may_fail, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(shared_memory_is_asked_for, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(traps_are_errors_of_the_context, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(pointers_tell_what_they_are, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(pointers_of_the_host_are_refused, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(nothing_bad_ends_well, open_fake, check_fake),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
