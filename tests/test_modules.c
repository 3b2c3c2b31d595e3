// SPDX-License-Identifier: Apache-2.0
/* Modules that operators share, on the fake GPU: a binary is loaded once, stays while there is a place for it, and no
 * longer; one that is in use never goes. What one user lets a kernel have, others do not lose. Threads take and give
 * back side by side; test_modules_threads is all of this under ThreadSanitizer. */
#include "tests/api_support.h"
#include "tests/session_support.h"

#include "runtime/cuda/modules.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MORE = CB_MOST_MODULES + 3, ROOM = 40 };

struct taken {
  struct CUmod_st *module;
  int is_shared;
};

static struct taken take(const struct cb_device *device, int number) {
  char image[ROOM];
  struct cb_diag diag = {0};
  struct taken taken;
  const int length = snprintf(image, sizeof image, "kernel of_%d", number);
  const size_t bytes = (size_t)length + 1;
  assert_ok(cb_modules_take(device->modules, device, image, bytes, &taken.module, &taken.is_shared, &diag));
  return taken;
}

static void give_back(const struct cb_device *device, struct taken taken) {
  if (taken.is_shared) cb_modules_give_back(device->modules, taken.module);
  else device->driver->call.module_unload(taken.module);
}

static void what_is_there_is_not_loaded_again(void **state) {
  (void)state;
  struct cb_session *session = open_fake_session();
  const struct cb_device *device = session->device;
  const long before = fake->modules;
  const struct taken one = take(device, 1), other = take(device, 2), again = take(device, 1);
  assert_int_equal(fake->modules, before + 2);
  assert_ptr_equal(one.module, again.module);
  assert_ptr_not_equal(one.module, other.module);
  give_back(device, one);
  give_back(device, again);
  assert_ptr_equal(take(device, 1).module, one.module); /* which nobody used for a while */
  assert_int_equal(fake->modules, before + 2);
  close_fake_session(session);
  assert_int_equal(fake->modules, before);
}

/* The one that nobody has used for longest goes. */
static void idle_ones_make_room(void **state) {
  (void)state;
  struct cb_session *session = open_fake_session();
  const struct cb_device *device = session->device;
  const long before = fake->modules;
  const struct taken used = take(device, 0);
  for (int i = 1; i < CB_MOST_MODULES; i++) give_back(device, take(device, i));
  give_back(device, take(device, 1)); /* so 2 is the oldest */
  assert_int_equal(fake->modules, before + CB_MOST_MODULES);
  give_back(device, take(device, CB_MOST_MODULES));
  assert_int_equal(fake->modules, before + CB_MOST_MODULES);
  const long calls = fake->calls;
  give_back(device, take(device, 0));
  give_back(device, take(device, 1));
  give_back(device, take(device, 3));
  assert_int_equal(fake->calls, calls); /* they are all there */
  give_back(device, take(device, 2));
  assert_true(fake->calls > calls);
  give_back(device, used);
  close_fake_session(session);
  assert_int_equal(fake->modules, before);
}

static void what_finds_no_place_is_its_users_own(void **state) {
  struct taken taken[MORE];
  (void)state;
  struct cb_session *session = open_fake_session();
  const struct cb_device *device = session->device;
  const long before = fake->modules;
  for (int i = 0; i < MORE; i++) {
    taken[i] = take(device, i);
    assert_int_equal(taken[i].is_shared, i < CB_MOST_MODULES);
  }
  for (int i = 0; i < MORE; i++) give_back(device, taken[i]);
  assert_int_equal(fake->modules, before + CB_MOST_MODULES);
  close_fake_session(session);
  assert_int_equal(fake->modules, before);
}

static void what_cannot_be_loaded_leaves_nothing(void **state) {
  struct taken taken = {.module = (struct CUmod_st *)&taken}; /* anything */
  struct cb_diag diag = {0};
  (void)state;
  struct cb_session *session = open_fake_session();
  const struct cb_device *device = session->device;
  const long before = fake->modules;
  fake->fail_at = fake->calls + 1;
  fake->failure = 2;
  assert_true(cb_modules_take(device->modules, device, "kernel", 7, &taken.module, &taken.is_shared, &diag) != CB_OK);
  fake->fail_at = 0;
  assert_null(taken.module);
  assert_false(taken.is_shared);
  assert_non_null(strstr(diag.message, "sm_90"));
  assert_int_equal(fake->modules, before);
  close_fake_session(session);
}

static int allowed_of(const struct cb_device *device, struct CUfunc_st *function) {
  int bytes = -1;
  assert_int_equal(device->driver->call.function_get(&bytes, CB_CU_FUNC_MAX_DYNAMIC_SHARED, function), 0);
  return bytes;
}

static void the_most_shared_memory_counts(void **state) {
  static const unsigned asked[] = {1000, 60000, 500, 60000, 70000}, has[] = {1000, 60000, 60000, 60000, 70000};
  struct cb_diag diag = {0};
  (void)state;
  struct cb_session *session = open_fake_session();
  const struct cb_device *device = session->device;
  for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
    struct CUfunc_st *function;
    const struct taken taken = take(device, 7);
    assert_int_equal(device->driver->call.module_function(&function, taken.module, "of_7"), 0);
    assert_ok(cb_modules_allow(device->modules, device->driver, function, "of_7", asked[i], &diag));
    assert_int_equal(allowed_of(device, function), has[i]);
    give_back(device, taken);
  }
  close_fake_session(session);
}

/* ---- side by side */

enum { THREADS = 3, TURNS = 400, SHORT_TURNS = 20 };

static cb_cu_result (*get_at_once)(int *value, unsigned attribute, struct CUfunc_st *function);

static cb_cu_result get_slowly(int *value, unsigned attribute, struct CUfunc_st *function) {
  const cb_cu_result status = get_at_once(value, attribute, function);
  usleep(20);
  return status;
}

/* Not NULL: what went wrong. */
static const char *take_module(struct taken *taken, const struct cb_device *device, int number, unsigned shared) {
  char image[ROOM];
  struct cb_diag diag = {0};
  struct CUfunc_st *function;
  struct cb_driver slow = *device->driver; /* others come between asking and giving, if they can */
  int has = 0;
  slow.call.function_get = get_slowly;
  const int length = snprintf(image, sizeof image, "kernel of_%d", number);
  const char *kernel = image + sizeof "kernel";
  if (cb_modules_take(device->modules, device, image, (size_t)length + 1, &taken->module, &taken->is_shared, &diag))
    return "not loaded";
  if (!shared) return NULL;
  if (device->driver->call.module_function(&function, taken->module, kernel)) return "the module of another";
  if (cb_modules_allow(device->modules, &slow, function, kernel, shared, &diag)) return "no shared memory";
  if (device->driver->call.function_get(&has, CB_CU_FUNC_MAX_DYNAMIC_SHARED, function)) return "no attribute";
  return has < (int)shared ? "less shared memory than was asked for" : NULL;
}

struct taker {
  const struct cb_device *device;
  int number;
};

/* More binaries than there are places, so that some go while others come; and one that all threads take, with nothing
 * between taking and giving back that keeps them apart. */
static const char *take_in_turn(const struct taker *taker) {
  for (int turn = 0; turn < TURNS; turn++) {
    struct taken taken;
    const unsigned shared = 1000u * (unsigned)(1 + (turn + taker->number) % THREADS);
    const char *failure = take_module(&taken, taker->device, turn * 5 % (CB_MOST_MODULES + 20), shared);
    if (failure) return failure;
    give_back(taker->device, taken);
    for (int i = 0; i < SHORT_TURNS; i++) {
      failure = take_module(&taken, taker->device, 0, 0);
      if (failure) return failure;
      give_back(taker->device, taken);
    }
  }
  return NULL;
}

static void *take_and_give_back(void *user) {
  const struct taker *taker = user;
  struct cb_diag diag = {0};
  if (cb_device_enter(taker->device, &diag)) return "no context";
  const char *failure = take_in_turn(taker);
  cb_device_leave(taker->device);
  return (void *)(uintptr_t)failure;
}

static void threads_take_and_give_back(void **state) {
  pthread_t threads[THREADS];
  struct taker takers[THREADS];
  (void)state;
  struct cb_session *session = open_fake_session();
  const long before = fake->modules;
  get_at_once = session->driver->call.function_get;
  for (int i = 0; i < THREADS; i++) {
    takers[i] = (struct taker){session->device, i};
    assert_int_equal(pthread_create(&threads[i], NULL, take_and_give_back, &takers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    void *failure;
    pthread_join(threads[i], &failure);
    if (failure) fail_msg("%s", (const char *)failure);
  }
  assert_int_equal(fake->modules, before + CB_MOST_MODULES);
  close_fake_session(session);
  assert_int_equal(fake->modules, before);
}

/* ---- operators */

#define ONE "random,rows=300,cols=200,per_row=6"
#define OTHER "random,rows=777,cols=190,per_row=6,seed=4"

static cbgen_operator *compile(cbgen_context *context, const struct sample *sample) {
  const cbgen_request request = {.struct_size = sizeof request};
  cbgen_operator *op;
  must(context, cbgen_compile(context, &sample->view, &request, &op));
  assert_int_equal(info_of(op).tier, CBGEN_TIER_FAMILY);
  return op;
}

/* One goes, another is copied, a third gets its own kernel: each multiplies until it goes itself. */
static void operators_share_a_familys_module(void **state) {
  cbgen_operator *clone;
  (void)state;
  struct sample one = sample_of(ONE, (struct form){0}), other = sample_of(OTHER, (struct form){0});
  cbgen_context *context = new_context("recipe=sell");
  const long before = fake->modules;
  cbgen_operator *first = compile(context, &one);
  const long with_one = fake->modules;
  cbgen_operator *second = compile(context, &other), *third = compile(context, &one);
  assert_true(with_one > before);
  assert_int_equal(fake->modules, with_one);
  must_operator(second, cbgen_operator_clone(second, &clone));
  check_product(first, &one.csr);
  cbgen_operator_free(first);
  check_product(second, &other.csr);
  must_operator(third, cbgen_operator_specialise(third));
  assert_int_equal(fake->modules, with_one + 1);
  check_product(third, &one.csr);
  cbgen_operator_free(second);
  check_product(clone, &other.csr);
  cbgen_operator_free(third);
  check_product(clone, &other.csr);
  assert_int_equal(fake->modules, with_one);
  cbgen_operator_free(clone);
  cbgen_operator_free(compile(context, &other));
  assert_int_equal(fake->modules, with_one); /* it was still there */
  cbgen_context_destroy(context);
  sample_release(&one);
  sample_release(&other);
}

/* What each call costs is a microsecond or ten of a first product: none comes in unseen. Of a matrix on the device,
 * where another one was compiled before and has gone. */
static void few_calls_make_an_operator(void **state) {
  enum { CALLS = 38, LAUNCHES = 5, WAITS = 4, UPLOADS = 3, ALLOCATIONS = 1 };
  (void)state;
  struct sample one = sample_of(ONE, (struct form){.on_device = 1}),
                other = sample_of(OTHER, (struct form){.on_device = 1});
  cbgen_context *context = new_context("pack=device");
  cbgen_operator_free(compile(context, &other));
  const struct fake_control before = *fake;
  cbgen_operator *op = compile(context, &one);
  assert_in_range(fake->calls - before.calls, 1, CALLS);
  assert_in_range(fake->launches - before.launches, 1, LAUNCHES);
  assert_in_range(fake->waits - before.waits, 1, WAITS);
  assert_in_range(fake->copies_to_device - before.copies_to_device, 1, UPLOADS);
  assert_in_range(fake->allocations - before.allocations, 0, ALLOCATIONS);
  check_product(op, &one.csr);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&one);
  sample_release(&other);
}

/* ---- operators of many threads in one CUDA context, of which one gives back what is kept there */

enum { MATRICES = 4, WORKERS = 3, LIVES = 60, MOST_ROWS = 50 };

/* What all workers have in common. An operator in `place` belongs to whoever takes it out. */
struct exchange {
  struct sample samples[MATRICES];
  double bits[MATRICES][MOST_ROWS]; /* of A x */
  _Atomic(struct life *) place;
  atomic_int working;
  atomic_long trims;
};

struct life {
  cbgen_operator *op;
  int matrix;
};

struct worker {
  struct exchange *exchange;
  int number;
  struct vectors vectors;
};

static const char *const recipes[] = {"sell", "merge"};

static const char *check_bits(const struct worker *worker, const struct life *life) {
  double bits[MOST_ROWS];
  const size_t bytes = (size_t)worker->exchange->samples[life->matrix].csr.rows * sizeof *bits;
  const cbgen_product product = product_with(&worker->vectors, 1, 0, NULL);
  if (cbgen_multiply(life->op, &product)) return "a product failed";
  if (!app_take(bits, worker->vectors.y_there, bytes)) return "y is not there";
  return memcmp(bits, worker->exchange->bits[life->matrix], bytes) ? "y has other bits" : NULL;
}

/* The operator goes behind its context, on another thread than the one that it was made by. */
static const char *end(const struct worker *worker, struct life *life) {
  if (!life) return NULL;
  const char *failure = check_bits(worker, life);
  cbgen_operator_free(life->op);
  free(life);
  return failure;
}

static const char *live(const struct worker *worker, int turn) {
  struct exchange *exchange = worker->exchange;
  const int matrix = (turn + worker->number) % MATRICES;
  const cbgen_request request = {.struct_size = sizeof request, .specialise = CBGEN_SPECIALISE_NEVER};
  cbgen_context *context;
  cbgen_operator *op;
  struct life *clone = calloc(1, sizeof *clone);
  if (!clone || cbgen_context_create(&context)) return "no context";
  if (cbgen_set(context, "cache", "") || cbgen_set(context, "recipe", recipes[matrix % 2])) return "no options";
  if (cbgen_compile(context, &exchange->samples[matrix].view, &request, &op)) return "not compiled";
  clone->matrix = matrix;
  if (cbgen_operator_clone(op, &clone->op)) return "no clone";
  const char *failure = check_bits(worker, &(struct life){op, matrix});
  struct life *others = atomic_exchange(&exchange->place, clone);
  if (turn % 2) cbgen_context_destroy(context);
  cbgen_operator_free(op);
  if (turn % 2 == 0) cbgen_context_destroy(context);
  const char *others_failure = end(worker, others);
  return failure ? failure : others_failure;
}

static void *live_on(void *user) {
  const struct worker *worker = user;
  const char *failure = NULL;
  app_set_current(0);
  for (int turn = 0; turn < LIVES && !failure; turn++) failure = live(worker, turn);
  app_set_current(-1);
  atomic_fetch_sub(&worker->exchange->working, 1);
  return (void *)(uintptr_t)failure;
}

static void *trim_on(void *user) {
  struct exchange *exchange = user;
  app_set_current(0);
  do {
    cbgen_trim();
    atomic_fetch_add(&exchange->trims, 1);
    usleep(500); /* so that something is kept meanwhile */
  } while (atomic_load(&exchange->working));
  app_set_current(-1);
  return NULL;
}

/* Returns vectors for each worker, which have all as many columns. */
static void prepare(struct exchange *exchange, struct vectors *vectors) {
  app_set_current(0);
  for (int i = 0; i < MATRICES; i++) {
    char name[80];
    snprintf(name, sizeof name, "random,rows=%d,cols=30,per_row=5,seed=%d", MOST_ROWS - i, i + 1);
    exchange->samples[i] = sample_of(name, (struct form){0});
    cbgen_context *context = new_context(i % 2 ? "recipe=merge" : "recipe=sell");
    cbgen_operator *op = compile(context, &exchange->samples[i]);
    check_product(op, &exchange->samples[i].csr);
    for (int v = 0; !i && v < WORKERS; v++) vectors[v] = vectors_for(op, 0);
    const cbgen_product product = product_with(&vectors[0], 1, 0, NULL);
    must_operator(op, cbgen_multiply(op, &product));
    assert_true(app_take(exchange->bits[i], vectors[0].y_there, (size_t)(MOST_ROWS - i) * sizeof(double)));
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
  }
}

static void operators_come_and_go_while_what_is_kept_is_given_back(void **state) {
  static struct exchange exchange;
  struct vectors vectors[WORKERS];
  struct worker workers[WORKERS];
  pthread_t threads[WORKERS + 1];
  (void)state;
  prepare(&exchange, vectors);
  atomic_store(&exchange.working, WORKERS);
  for (int i = 0; i < WORKERS; i++) {
    workers[i] = (struct worker){&exchange, i, vectors[i]};
    assert_int_equal(pthread_create(&threads[i], NULL, live_on, &workers[i]), 0);
  }
  assert_int_equal(pthread_create(&threads[WORKERS], NULL, trim_on, &exchange), 0);
  for (int i = 0; i <= WORKERS; i++) {
    void *failure;
    pthread_join(threads[i], &failure);
    if (failure) fail_msg("%s", (const char *)failure);
  }
  assert_true(atomic_load(&exchange.trims) > 0);
  assert_null(end(&workers[0], atomic_load(&exchange.place)));
  cbgen_trim();
  assert_int_equal(fake->modules, 0);
  for (int i = 0; i < WORKERS; i++) vectors_release(&vectors[i]);
  for (int i = 0; i < MATRICES; i++) sample_release(&exchange.samples[i]);
}

/* In a child they are not there, and nobody waits for anybody. */
static void a_child_leaves_them_alone(void **state) {
  (void)state;
  struct sample sample = sample_of(ONE, (struct form){0});
  cbgen_context *context = new_context("recipe=sell");
  cbgen_operator *op = compile(context, &sample);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (!child) {
    const long calls = fake->calls;
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
    _exit(fake->calls != calls);
  }
  int ended;
  assert_int_equal(waitpid(child, &ended, 0), child);
  assert_true(WIFEXITED(ended) && !WEXITSTATUS(ended));
  check_product(op, &sample.csr);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(what_is_there_is_not_loaded_again, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(idle_ones_make_room, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(what_finds_no_place_is_its_users_own, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(what_cannot_be_loaded_leaves_nothing, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(the_most_shared_memory_counts, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(threads_take_and_give_back, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(operators_share_a_familys_module, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(few_calls_make_an_operator, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(operators_come_and_go_while_what_is_kept_is_given_back, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(a_child_leaves_them_alone, open_fake, check_fake),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
