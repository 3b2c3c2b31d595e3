// SPDX-License-Identifier: Apache-2.0
/* Modules that operators share, on the fake GPU: a binary is loaded once, stays while there is a place for it, and no
 * longer; one that is in use never goes. What one user lets a kernel have, others do not lose. Threads take and give
 * back side by side. */
#include "tests/api_support.h"
#include "tests/session_support.h"

#include "runtime/cuda/modules.h"

#include <pthread.h>
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

enum { THREADS = 3, TURNS = 400 };

/* More binaries than there are places, so that some go while others come. */
static void *take_and_give_back(void *user) {
  const struct cb_device *device = user;
  struct cb_diag diag = {0};
  if (cb_device_enter(device, &diag)) return "no context";
  for (int turn = 0; turn < TURNS; turn++) {
    const int number = turn * 5 % (CB_MOST_MODULES + 20);
    char image[ROOM];
    struct taken taken;
    struct CUfunc_st *function;
    const int length = snprintf(image, sizeof image, "kernel of_%d", number);
    if (cb_modules_take(device->modules, device, image, (size_t)length + 1, &taken.module, &taken.is_shared, &diag))
      return "not loaded";
    if (device->driver->call.module_function(&function, taken.module, image + sizeof "kernel"))
      return "the module of another";
    give_back(device, taken);
  }
  cb_device_leave(device);
  return NULL;
}

static void threads_take_and_give_back(void **state) {
  pthread_t threads[THREADS];
  (void)state;
  struct cb_session *session = open_fake_session();
  const long before = fake->modules;
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, take_and_give_back, session->device), 0);
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
      cmocka_unit_test_setup_teardown(a_child_leaves_them_alone, open_fake, check_fake),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
