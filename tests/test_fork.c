// SPDX-License-Identifier: Apache-2.0
/* After fork. A child works on, with one thread, where the parent's OpenMP threads are missing; what the parent has on
 * a GPU is refused in the child, and giving it back there calls no driver. */
#include "base/fork.h"
#include "tests/api_support.h"

#include <dlfcn.h>
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE = 120 };

/* What a child does; cmocka's asserts do not work there. */
typedef void child_work(void);

static void in_child(child_work *work) {
  int status;
  fflush(NULL);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (!child) {
    alarm(PATIENCE); /* a child that hangs ends by the signal */
    work();
    _exit(0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  if (WIFSIGNALED(status)) fail_msg("signal %d ended the child (%d: it hung)", WTERMSIG(status), SIGALRM);
  assert_int_equal(WEXITSTATUS(status), 0);
}

#define child_must(condition)                                                                                     \
  do {                                                                                                            \
    if (!(condition)) {                                                                                           \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                             \
      _exit(1);                                                                                                   \
    }                                                                                                             \
  } while (0)

static struct sample sample;
static cbgen_context *context;
static cbgen_operator *kept;
static char *expected;

static char *generated(void) {
  cbgen_context *own = NULL;
  cbgen_kernel *kernel = NULL;
  char *text = NULL;
  if (!cbgen_context_create(&own) && !cbgen_generate(own, &sample.view, &kernel))
    text = strdup(cbgen_kernel_source(kernel, NULL));
  cbgen_kernel_free(kernel);
  cbgen_context_destroy(own);
  return text;
}

static void generate_again(void) {
  omp_set_num_threads(4); /* what an application may do, and what it finds afterwards */
  for (int i = 0; i < 2; i++) {
    char *text = generated();
    child_must(text && !strcmp(text, expected));
    free(text);
  }
  child_must(omp_get_max_threads() == 4);
  child_must(cb_thread_was_forked() && cb_forks() >= 1);
}

/* A child of the child, and the thread that another one starts, which has no missing threads. */
static void *generate_in_thread(void *result) {
  *(char **)result = generated();
  return NULL;
}

static void generate_further_on(void) {
  pthread_t thread;
  char *text = NULL;
  int status = 1;
  generate_again();
  child_must(!pthread_create(&thread, NULL, generate_in_thread, &text));
  child_must(!pthread_join(thread, NULL));
  child_must(text && !strcmp(text, expected));
  const pid_t child = fork();
  if (!child) {
    alarm(PATIENCE);
    generate_again();
    _exit(0);
  }
  child_must(waitpid(child, &status, 0) == child && !status);
}

static void a_child_works_on_where_the_parents_threads_are_missing(void **state) {
  (void)state;
  omp_set_num_threads(4);
  expected = generated();
  assert_non_null(expected);
  assert_false(cb_thread_was_forked());
  in_child(generate_again);
  in_child(generate_further_on);
  char *text = generated(); /* the parent has lost nothing */
  assert_string_equal(text, expected);
  assert_int_equal(omp_get_max_threads(), 4);
  free(text);
  free(expected);
}

/* ---- the GPU */

static int says_fork(const char *message) { return strstr(message, "forked") != NULL; }

static void use_the_parents(void) {
  const long calls = fake->calls;
  cbgen_info info = {.struct_size = sizeof info};
  cbgen_operator *other = kept;
  double x = 0, y = 0;
  size_t length = 0;
  const cbgen_product product = {.struct_size = sizeof product, .alpha = 1, .x = &x, .y = &y};
  const cbgen_update update = {sizeof update, sample.view.values, CBGEN_F64, CBGEN_HOST, NULL};
  child_must(cbgen_multiply(kept, &product) == CBGEN_ERROR_DEVICE);
  child_must(says_fork(cbgen_operator_message(kept)));
  child_must(cbgen_update_values(kept, &update) == CBGEN_ERROR_DEVICE);
  child_must(cbgen_operator_clone(kept, &other) == CBGEN_ERROR_DEVICE && !other);
  child_must(cbgen_operator_measure(kept, NULL) == CBGEN_ERROR_DEVICE);
  child_must(!cbgen_operator_save(kept, NULL, 0, &length));
  unsigned char *block = malloc(length);
  child_must(cbgen_operator_save(kept, block, length, &length) == CBGEN_ERROR_DEVICE);
  child_must(cbgen_compile(context, &sample.view, NULL, &other) == CBGEN_ERROR_DEVICE && !other);
  child_must(says_fork(cbgen_message(context)));
  child_must(!cbgen_operator_info(kept, &info) && info.rows == sample.view.rows && *cbgen_operator_source(kept, NULL));
  char *text = generated();
  child_must(text);
  cbgen_operator_free(kept);
  cbgen_context_destroy(context);
  child_must(fake->calls == calls);
}

static void what_the_parent_has_on_a_gpu_is_refused_in_the_child(void **state) {
  const cbgen_request request = {.struct_size = sizeof request, .values = CBGEN_VALUES_MUTABLE};
  (void)state;
  for (int current = 0; current < 2; current++) { /* on the primary context, and on one of the application's */
    if (current) app_set_current(0);
    assert_int_equal(cbgen_context_create(&context), CBGEN_OK);
    must(context, cbgen_set(context, "cache", ""));
    must(context, cbgen_compile(context, &sample.view, &request, &kept));
    in_child(use_the_parents);
    check_product(kept, &sample.csr); /* the parent's is as it was */
    cbgen_operator_free(kept);
    cbgen_context_destroy(context);
    in_child(cbgen_trim);
  }
  cbgen_trim();
}

/* ---- without any fork: parallel regions of several threads are counted, as GNU's OpenMP library begins them */

typedef void region_body(void *data);
typedef void begin_region(region_body *body, void *data, unsigned threads, unsigned flags);
extern begin_region GOMP_parallel;
static int regions;

void GOMP_parallel(region_body *body, void *data, unsigned threads, unsigned flags) {
  static begin_region *next;
  if (!next) *(void **)&next = dlsym(RTLD_NEXT, "GOMP_parallel");
  regions += threads != 1 && omp_get_max_threads() > 1;
  next(body, data, threads, flags);
}

static int regions_of(const char *shape) {
  struct sample own = sample_of(shape, (struct form){0});
  cbgen_context *one = NULL;
  cbgen_operator *op = NULL;
  assert_int_equal(cbgen_context_create(&one), CBGEN_OK);
  must(one, cbgen_set(one, "cache", ""));
  regions = 0;
  must(one, cbgen_compile(one, &own.view, NULL, &op));
  const int begun = regions;
  check_product(op, &own.csr);
  cbgen_operator_free(op);
  cbgen_context_destroy(one);
  sample_release(&own);
  return begun;
}

/* One for so much work, no more than regions take, and no more than there are processors, unless a number is asked
 * for. */
static void threads_go_by_the_work(void **state) {
  (void)state;
  omp_set_num_threads(3);
  const int granted = cb_threads_worth(INT64_MAX, 0); /* of a machine with few */
  assert_in_range(granted, 1, 3);
  for (int worth = 0; worth < 6; worth++)
    assert_int_equal(cb_threads_worth((int64_t)worth * CB_THREADS_WORTH, 3), worth < 1 ? 1 : worth > 3 ? 3 : worth);
  assert_int_equal(cb_threads_worth(2 * CB_THREADS_WORTH - 1, 3), 1);
  omp_set_num_threads(1);
  assert_int_equal(cb_threads_worth(INT64_MAX, 3), 1);
  static const struct {
    const char *text;
    int processors;
  } files[] = {{"max 100000\n", 0}, {"200000 100000\n", 2}, {"150000 100000\n", 2}, {"50000 100000\n", 1},
               {"1 100000", 1},     {"", 0},                {"100000", 0},          {"0 100000", 0},
               {"100000 0", 0},     {"-1 100000", 0},       {"9223372036854775807 1", INT32_MAX}};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    assert_int_equal(cb_processors_granted(files[i].text), files[i].processors);
}

/* Not even to see to their numerics. */
static void little_work_wakes_no_thread(void **state) {
  (void)state;
  omp_set_num_threads(3);
  assert_int_equal(regions_of("random,rows=300,cols=300,per_row=20"), 0);
  assert_int_equal(omp_get_max_threads(), 3);
#ifndef __clang__
  assert_true(regions_of("random,rows=1000,cols=1000,per_row=280") > 0);
#endif
  omp_set_num_threads(1);
}

static int set_up(void **state) {
  (void)state;
  if (open_app()) return -1;
  sample = sample_of("random,rows=3000,cols=3000,per_row=20", (struct form){0});
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  sample_release(&sample);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_child_works_on_where_the_parents_threads_are_missing),
      cmocka_unit_test(what_the_parent_has_on_a_gpu_is_refused_in_the_child),
      cmocka_unit_test(threads_go_by_the_work),
      cmocka_unit_test(little_work_wakes_no_thread),
  };
  return cmocka_run_group_tests_name("fork", tests, set_up, tear_down);
}
