// SPDX-License-Identifier: Apache-2.0
/* Two tiers below the run-time interface: a family's kernel serves matrix after matrix without being compiled again;
 * the specialised one takes over with the same bits, beside products; and what fails meanwhile changes nothing. */
#include "tests/api_support.h"

#include "analysis/plan/assignment.h"
#include "codegen/outline.h"
#include "runtime/api/api.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>


#define ONE "random,rows=300,cols=200,per_row=6"
#define OTHER "random,rows=777,cols=190,per_row=6,seed=4"
#define DIAGONALS "diagonals,n=400,count=5,spread=30,fill=1"
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
  cbgen_context *context = new_context("recipe=sell");
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

/* Without a cache, families are known for as long as there is a context or an operator; others know them, too. */
static void a_process_compiles_a_family_once(void **state) {
  (void)state;
  struct sample one = sample_of(ONE, (struct form){0}), other = sample_of(OTHER, (struct form){0});
  for (int round = 0; round < 2; round++) {
    cbgen_context *context = new_context("recipe=sell");
    must(context, cbgen_set(context, "cache", ""));
    const long before = fake->compilations;
    cbgen_operator *first = compile(context, &one, (cbgen_request){0});
    const long compilations = fake->compilations;
    assert_true(compilations > before);
    cbgen_context_destroy(context);
    context = new_context("recipe=sell");
    must(context, cbgen_set(context, "cache", ""));
    cbgen_operator *second = compile(context, &other, (cbgen_request){0});
    assert_int_equal(fake->compilations, compilations);
    assert_int_equal(info_of(second).tier, CBGEN_TIER_FAMILY);
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
    cbgen_context *context = new_context("recipe=sell");
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
  cbgen_context *context = new_context("recipe=sell");
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
    cbgen_context *context = new_context("recipe=sell");
    cbgen_operator *op = compile(context, &sample, (cbgen_request){0});
    const cbgen_info info = info_of(op);
    assert_int_equal(info.cache, round ? CBGEN_CACHE_HIT : CBGEN_CACHE_MISS);
    assert_int_equal(info.tier, round == 2 ? CBGEN_TIER_SPECIALISED : CBGEN_TIER_FAMILY);
    check_product(op, &sample.csr);
    if (round == 1) must_operator(op, cbgen_operator_specialise(op));
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
  }
  cbgen_context *context = new_context("recipe=sell"); /* asked for now, an entry of a family becomes one of a specialised kernel */
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
  cbgen_context *context = new_context("recipe=sell");
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
  cbgen_context *context = new_context("recipe=sell");
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
  cbgen_context *context = new_context("recipe=sell");
  cbgen_operator_free(compile(context, &one, (cbgen_request){0})); /* the cache has the family now */
  cbgen_context_destroy(context);
  context = new_context("recipe=sell");
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

/* A file of the families of a matrix, made by the tool with the same compiler. */
static void bring_family(char path[600], const char *matrix_and_options) {
  char command[2400];
  snprintf(path, 600, "%s/families", getenv("CBGEN_TEST_TMP"));
  snprintf(command, sizeof command,
           "rm -rf '%.500s'; mkdir '%.500s' && '%.400s' families -q %.300s --arch=" FAKE_ARCH
           " -o '%.500s/families-" FAKE_ARCH ".bin'",
           path, path, getenv("CBGEN_TEST_TOOL"), matrix_and_options, path);
  assert_int_equal(system(command), 0);
}

/* Also where PATH has found the tool, whose first word is then no path. */
static void the_tool_has_those_beside_itself(void **state) {
  char path[600], command[3200];
  (void)state;
  bring_family(path, "generate:" ONE " --recipe=sell");
  const char *const tool = getenv("CBGEN_TEST_TOOL");
  snprintf(command, sizeof command,
           "{ ln '%.400s' '%.500s/cbgen' || cp '%.400s' '%.500s/cbgen'; } 2>/dev/null && cd / && unset CBGEN_FAMILIES && "
           "PATH='%.500s':$PATH && cbgen families generate:" ONE " --recipe=sell --arch=" FAKE_ARCH
           " | grep -q 'the library brings those of 1$'",
           tool, path, tool, path, path);
  assert_int_equal(system(command), 0);
}

/* Then neither NVRTC nor a cache is needed. A damaged file is as if there were none. */
static void families_come_with_the_library(void **state) {
  char path[600], command[2400];
  (void)state;
  bring_family(path, "generate:" ONE " --recipe=sell");
  struct sample sample = sample_of(ONE, (struct form){0});
  assert_int_equal(setenv("CBGEN_FAMILIES", path, 1), 0);
  for (int damaged = 0; damaged < 2; damaged++) {
    cbgen_context *context = new_context("recipe=sell");
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

/* Whether the file has what a plan's outline leads to. */
static int leads_to_a_binary(cbgen_context *context, const struct cb_csr *csr, const char *recipe) {
  struct cb_diag diag = {0};
  struct cb_session *session;
  struct cb_plan *plan;
  struct cb_assignment *assignment;
  struct cb_outline outline;
  struct cb_options options;
  struct cb_compiled compiled;
  cb_options_default(&options);
  options.recipe = recipe;
  options.bake_limit = 0;
  assert_ok(cb_context_session(context, &session));
  assert_ok(cb_plan_build(&plan, &assignment, csr, &session->device->target, &options, &diag));
  assert_ok(cb_outline_make(&outline, plan, &diag));
  const int found = cb_session_outlined(session, outline.hash, &compiled, context);
  assert_int_equal(found, compiled.cubin != NULL);
  cb_compiled_release(&compiled);
  cb_outline_release(&outline);
  cb_plan_free(plan);
  cb_assignment_free(assignment);
  return found;
}

/* No text is written for that: of another matrix of the family either, but of no other family. */
static void outlines_lead_to_binaries(void **state) {
  char path[600];
  (void)state;
  bring_family(path, "generate:" ONE " --recipe=sell");
  struct sample one = sample_of(ONE, (struct form){0}), other = sample_of(OTHER, (struct form){0});
  assert_int_equal(setenv("CBGEN_FAMILIES", path, 1), 0);
  cbgen_context *context = new_context("recipe=sell");
  assert_true(leads_to_a_binary(context, &other.csr, "sell"));
  assert_true(leads_to_a_binary(context, &one.csr, "sell"));
  assert_false(leads_to_a_binary(context, &one.csr, "merge"));
  cbgen_context_destroy(context);
  unsetenv("CBGEN_FAMILIES");
  sample_release(&one);
  sample_release(&other);
}

/* A solver's stages come with the library, too: without NVRTC that is what a method gets, and nothing is compiled. */
static void solvers_need_no_nvrtc(void **state) {
  enum { N = 64 };
  static const char matrix[] = "stencil7,n=4";
  char path[600];
  double numbers[N];
  cbgen_solver *solver;
  cbgen_outcome outcome;
  (void)state;
  bring_family(path, "generate:stencil7,n=4 --recipe=sell");
  struct sample sample = sample_of(matrix, (struct form){0});
  assert_int_equal(setenv("CBGEN_FAMILIES", path, 1), 0);
  cbgen_context *context = new_context("recipe=sell");
  must(context, cbgen_set(context, "cache", ""));
  must(context, cbgen_set(context, "nvrtc", "/nowhere/libnvrtc.so"));
  cbgen_operator *op = compile(context, &sample, (cbgen_request){0});
  for (int i = 0; i < N; i++) numbers[i] = 1;
  const uint64_t b = app_alloc(0, sizeof numbers), x = app_alloc(0, sizeof numbers);
  assert_true(app_put(b, numbers, sizeof numbers) && app_put(x, numbers, sizeof numbers));
  const long compilations = fake->compilations;
  const cbgen_solver_options options = {.struct_size = sizeof options, .max_iterations = 3};
  must_operator(op, cbgen_solver_create(op, "bicgstab", &options, &solver));
  assert_string_equal(cbgen_solver_form(solver), "graph");
  assert_int_equal(fake->compilations, compilations);
  assert_int_equal(cbgen_solve(solver, (void *)(uintptr_t)b, (void *)(uintptr_t)x, NULL), CBGEN_OK);
  assert_int_equal(cbgen_solver_outcome(solver, &outcome), CBGEN_OK);
  assert_in_range(outcome.reason, CBGEN_REASON_CONVERGED, CBGEN_REASON_BREAKDOWN);
  cbgen_solver_free(solver);
  must_operator(op, cbgen_solver_create(op, "gmres", &options, &solver)); /* whatever its restart */
  assert_string_equal(cbgen_solver_form(solver), "graph");
  cbgen_solver_free(solver);
  const cbgen_solver_options of_blocks = {.struct_size = sizeof of_blocks,
                                          .blocks = (void *)(uintptr_t)b,
                                          .block_size = 3};
  assert_int_equal(cbgen_solver_create(op, "cg", &of_blocks, &solver), CBGEN_ERROR_MISSING);
  assert_non_null(strstr(cbgen_operator_message(op), "NVRTC"));
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  unsetenv("CBGEN_FAMILIES");
  app_free(b);
  app_free(x);
  sample_release(&sample);
}

/* Recipe auto: what is ready is taken instead of what must be compiled, where that is not worth it. */
static void what_is_ready_stands_in(void **state) {
  static const struct {
    cbgen_request request;
    const char *loss; /* NULL: by the request */
    const char *plan;
    int compilations;
  } cases[] = {
      {{.expected_products = 0}, NULL, "(spmv (merge", 0},
      {{.expected_products = 1000000}, NULL, "(spmv (split diagonals", 1},
      {{.specialise = CBGEN_SPECIALISE_NOW}, NULL, "(spmv (split diagonals", 1},
      {{.expected_products = 0}, "0", "(spmv (split diagonals", 1},
  };
  char path[600];
  (void)state;
  bring_family(path, "generate:" DIAGONALS " --recipe=merge");
  assert_int_equal(setenv("CBGEN_FAMILIES", path, 1), 0);
  struct sample sample = sample_of(DIAGONALS, (struct form){0});
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    cbgen_context *context;
    assert_int_equal(cbgen_context_create(&context), CBGEN_OK);
    must(context, cbgen_set(context, "cache", ""));
    if (cases[i].loss) must(context, cbgen_set(context, "search", "ready"));
    if (cases[i].loss) must(context, cbgen_set(context, "ready-loss", cases[i].loss));
    const long compilations = fake->compilations;
    cbgen_operator *op = compile(context, &sample, cases[i].request);
    if (strncmp(cbgen_operator_plan(op), cases[i].plan, strlen(cases[i].plan)))
      fail_msg("case %zu: %s", i, cbgen_operator_plan(op));
    assert_int_equal(fake->compilations - compilations, cases[i].compilations);
    check_product(op, &sample.csr);
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
  }
  unsetenv("CBGEN_FAMILIES");
  sample_release(&sample);
}

/* An entry of the fastest recipe serves a request that a recipe which is ready would do for. */
static void the_fastest_entry_serves_all(void **state) {
  (void)state;
  struct sample sample = sample_of(DIAGONALS, (struct form){0});
  for (int round = 0; round < 2; round++) {
    cbgen_context *context;
    assert_int_equal(cbgen_context_create(&context), CBGEN_OK);
    cbgen_operator *op =
        compile(context, &sample, (cbgen_request){.specialise = round ? CBGEN_SPECIALISE_AUTO : CBGEN_SPECIALISE_NOW});
    assert_int_equal(info_of(op).cache, round ? CBGEN_CACHE_HIT : CBGEN_CACHE_MISS);
    assert_int_equal(info_of(op).tier, CBGEN_TIER_SPECIALISED);
    check_product(op, &sample.csr);
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
  }
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
  cbgen_context *context = new_context("recipe=sell");
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

/* ---- many of them, on several threads, while some texts do not compile */

enum { MATRICES = 5, WORKERS = 3, ROWS = 40, LIVES_OF_A_CONTEXT = 50, FAILING = 4 };
#ifdef __SANITIZE_ADDRESS__
enum { OPERATORS = 1500 };
#else
enum { OPERATORS = 10000 };
#endif

/* CBGEN_TEST_OPERATORS: fewer, where more would take too long. */
static int operators(void) {
  const char *fewer = getenv("CBGEN_TEST_OPERATORS");
  return fewer && atoi(fewer) > 0 ? atoi(fewer) : OPERATORS;
}

/* What all threads read. */
struct crowd {
  struct sample samples[MATRICES];
  double bits[MATRICES][ROWS]; /* of A x, by the family's kernel */
};

/* A thread that multiplies by a clone for as long as there is one, and frees it when it is told to. */
struct beside {
  pthread_mutex_t lock;
  cbgen_operator *clone;
  int shall_free, stop;
  struct vectors vectors;
  long products;
};

/* Not 0: a call failed. */
static int use(const struct beside *beside) {
  const cbgen_product product = product_with(&beside->vectors, 1, 0, NULL);
  cbgen_info info = {.struct_size = sizeof info};
  size_t length;
  if (cbgen_multiply(beside->clone, &product) || cbgen_operator_info(beside->clone, &info)) return 1;
  return beside->products % 16 == 0 && cbgen_operator_save(beside->clone, NULL, 0, &length);
}

static int multiply_once(struct beside *beside) {
  pthread_mutex_lock(&beside->lock);
  const int failed = beside->clone && use(beside), stop = beside->stop || failed;
  beside->products += beside->clone != NULL;
  if (beside->clone && beside->shall_free) {
    cbgen_operator_free(beside->clone);
    beside->clone = NULL;
  }
  beside->stop = stop;
  pthread_mutex_unlock(&beside->lock);
  sched_yield();
  return !stop;
}

static void *multiply_beside(void *user) {
  while (multiply_once(user)) continue;
  return NULL;
}

/* What the other thread had is freed; a new clone is its own. Returns the clone that it has. */
static cbgen_operator *hand_over(struct beside *beside, cbgen_operator *clone, int shall_free) {
  pthread_mutex_lock(&beside->lock);
  if (clone) beside->clone = clone;
  beside->shall_free = shall_free;
  cbgen_operator *left = beside->clone;
  pthread_mutex_unlock(&beside->lock);
  return left;
}

struct crowd_worker {
  const struct crowd *crowd;
  int first, end;
  cbgen_context *context;
  struct vectors vectors;
  struct beside beside;
  long specialised, failed;
  char message[300]; /* what went wrong; "": nothing */
};

static int complain(struct crowd_worker *worker, const char *what, const char *why) {
  if (!*worker->message) snprintf(worker->message, sizeof worker->message, "%s: %s", what, why);
  return 0;
}

/* 0: something is wrong that is not a text which did not compile. */
static int specialise_or_fail(struct crowd_worker *worker, cbgen_operator *op) {
  const cbgen_status status = cbgen_operator_specialise(op);
  const cbgen_tier tier = info_of(op).tier;
  if (status && status != CBGEN_ERROR_COMPILE) return complain(worker, "specialising", cbgen_operator_message(op));
  if (status && !strstr(cbgen_operator_message(op), "error"))
    return complain(worker, "no error is told", cbgen_operator_message(op));
  worker->specialised += !status;
  worker->failed += status != CBGEN_OK;
  return tier == (status ? CBGEN_TIER_FAMILY : CBGEN_TIER_SPECIALISED) || complain(worker, "its tier", "is another");
}

static int has_right_bits(struct crowd_worker *worker, cbgen_operator *op, int matrix) {
  double bits[ROWS];
  const cbgen_product product = product_with(&worker->vectors, 1, 0, NULL);
  if (cbgen_multiply(op, &product)) return complain(worker, "a product", cbgen_operator_message(op));
  if (!app_take(bits, worker->vectors.y_there, sizeof bits)) return complain(worker, "y", "is not there");
  return !memcmp(bits, worker->crowd->bits[matrix], sizeof bits) || complain(worker, "y", "has other bits");
}

static int live_and_die(struct crowd_worker *worker, int number) {
  const int matrix = number % MATRICES;
  const cbgen_request request = {.struct_size = sizeof request};
  cbgen_operator *op = NULL, *clone = NULL;
  cbgen_status status = cbgen_compile(worker->context, &worker->crowd->samples[matrix].view, &request, &op);
  if (status == CBGEN_ERROR_COMPILE) return 1; /* the family's text, of a new context */
  if (status) return complain(worker, "compiling", cbgen_message(worker->context));
  status = cbgen_operator_clone(op, &clone);
  int right = !status || complain(worker, "a clone", cbgen_operator_message(op));
  if (right) hand_over(&worker->beside, clone, 0);
  if (number % LIVES_OF_A_CONTEXT < WORKERS) { /* operators outlive it */
    cbgen_context_destroy(worker->context);
    worker->context = NULL;
  }
  right = right && specialise_or_fail(worker, op) && has_right_bits(worker, op, matrix);
  if (right && number % 3 == 0) right = specialise_or_fail(worker, op) && has_right_bits(worker, op, matrix);
  hand_over(&worker->beside, NULL, 1);
  cbgen_operator_free(op);
  while (hand_over(&worker->beside, NULL, 1)) sched_yield();
  return right;
}

static int open_own_context(struct crowd_worker *worker) {
  return (!cbgen_context_create(&worker->context) && !cbgen_set(worker->context, "cache", "") &&
          !cbgen_set(worker->context, "recipe", "sell")) ||
         complain(worker, "a context", "cannot be had");
}

static void *live_in_a_crowd(void *user) {
  struct crowd_worker *worker = user;
  for (int i = worker->first; i < worker->end; i += WORKERS)
    if ((!worker->context && !open_own_context(worker)) || !live_and_die(worker, i)) break;
  cbgen_context_destroy(worker->context);
  return NULL;
}

static void make_crowd(struct crowd *crowd, struct vectors *vectors) {
  cbgen_context *context = new_context("recipe=sell");
  for (int i = 0; i < MATRICES; i++) {
    char name[80];
    snprintf(name, sizeof name, "random,rows=%d,cols=30,per_row=5,seed=%d", ROWS, i + 1);
    crowd->samples[i] = sample_of(name, (struct form){0});
    cbgen_operator *op = compile(context, &crowd->samples[i], (cbgen_request){.specialise = CBGEN_SPECIALISE_NEVER});
    check_product(op, &crowd->samples[i].csr);
    for (int v = 0; !i && v < 2 * WORKERS; v++) vectors[v] = vectors_for(op, 0);
    const cbgen_product product = product_with(&vectors[0], 1, 0, NULL);
    must_operator(op, cbgen_multiply(op, &product));
    assert_true(app_take(crowd->bits[i], vectors[0].y_there, sizeof crowd->bits[i]));
    cbgen_operator_free(op);
  }
  cbgen_context_destroy(context);
}

static void ten_thousand_operators_come_and_go(void **state) {
  static struct crowd crowd;
  struct vectors vectors[2 * WORKERS];
  struct crowd_worker workers[WORKERS];
  pthread_t threads[2 * WORKERS];
  const int count = operators();
  long specialised = 0, failed = 0;
  (void)state;
  make_crowd(&crowd, vectors);
  fake->failing_compilations = FAILING;
  for (int i = 0; i < WORKERS; i++) {
    workers[i] = (struct crowd_worker){.crowd = &crowd, .first = i, .end = count, .vectors = vectors[i]};
    workers[i].beside = (struct beside){.lock = PTHREAD_MUTEX_INITIALIZER, .vectors = vectors[WORKERS + i]};
    assert_int_equal(pthread_create(&threads[i], NULL, live_in_a_crowd, &workers[i]), 0);
    assert_int_equal(pthread_create(&threads[WORKERS + i], NULL, multiply_beside, &workers[i].beside), 0);
  }
  for (int i = 0; i < WORKERS; i++) {
    pthread_join(threads[i], NULL);
    pthread_mutex_lock(&workers[i].beside.lock);
    const int failed_beside = workers[i].beside.stop;
    workers[i].beside.stop = 1;
    pthread_mutex_unlock(&workers[i].beside.lock);
    pthread_join(threads[WORKERS + i], NULL);
    if (*workers[i].message) fail_msg("%s", workers[i].message);
    assert_false(failed_beside);
    assert_true(workers[i].beside.products >= count / WORKERS / 2);
    specialised += workers[i].specialised;
    failed += workers[i].failed;
  }
  assert_true(specialised + failed >= count - count / FAILING);
  assert_true(failed >= count / FAILING / 2);
  for (int i = 0; i < 2 * WORKERS; i++) vectors_release(&vectors[i]);
  for (int i = 0; i < MATRICES; i++) sample_release(&crowd.samples[i]);
}

/* ---- a child */

/* The parent's operator stays what it was there, and can be freed; nothing calls the driver. Returns an exit status. */
static int specialise_in_a_child(cbgen_operator *op, cbgen_operator *clone) {
  const cbgen_status status = cbgen_operator_specialise(op);
  if (status != CBGEN_ERROR_DEVICE || !strstr(cbgen_operator_message(op), "forked")) return 1;
  if (info_of(op).tier != CBGEN_TIER_FAMILY) return 2;
  cbgen_operator_free(clone);
  cbgen_operator_free(op);
  return 0;
}

static void a_child_does_not_specialise(void **state) {
  double before[300], after[300];
  struct multiplying multiplying;
  pthread_t thread;
  void *failure;
  int status = -1;
  (void)state;
  struct sample sample = sample_of(ONE, (struct form){0});
  cbgen_context *context = new_context("recipe=sell");
  cbgen_operator *op = compile(context, &sample, (cbgen_request){0}), *clone;
  must_operator(op, cbgen_operator_clone(op, &clone));
  take_bits(op, before);
  const pid_t child = fork();
  if (!child) _exit(specialise_in_a_child(op, clone));
  multiplying = (struct multiplying){.op = clone, .csr = &sample.csr};
  assert_int_equal(pthread_create(&thread, NULL, multiply_on, &multiplying), 0);
  must_operator(op, cbgen_operator_specialise(op)); /* while the child refuses to */
  atomic_store(&multiplying.stop, 1);
  pthread_join(thread, &failure);
  assert_null(failure);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  take_bits(op, after);
  assert_memory_equal(before, after, sizeof before);
  cbgen_operator_free(op);
  cbgen_operator_free(clone);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

/* ---- texts that are made when they are asked for */

static void *ask_for_texts(void *op) {
  const char *source = cbgen_operator_source(op, NULL);
  return *cbgen_operator_plan_json(op) ? (void *)(uintptr_t)source : NULL;
}

/* Of an operator that the device packs: threads that ask side by side get the same text, which is that of an operator
 * that was specialised from the beginning, as is the JSON; so it is for one that is asked only behind a take-over. */
static void texts_are_made_when_asked_for(void **state) {
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  void *texts[THREADS];
  (void)state;
  struct sample sample = sample_of(ONE, (struct form){.on_device = 1});
  cbgen_context *context = new_context("recipe=sell");
  must(context, cbgen_set(context, "pack", "device"));
  cbgen_operator *op = compile(context, &sample, (cbgen_request){0});
  cbgen_operator *later = compile(context, &sample, (cbgen_request){0});
  cbgen_operator *special = compile(context, &sample, (cbgen_request){.specialise = CBGEN_SPECIALISE_NOW});
  assert_int_equal(info_of(op).tier, CBGEN_TIER_FAMILY);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, ask_for_texts, op), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], &texts[i]);
  for (int i = 0; i < THREADS; i++) assert_ptr_equal(texts[i], cbgen_operator_source(op, NULL));
  assert_string_equal(cbgen_operator_source(op, NULL), cbgen_operator_source(special, NULL));
  assert_string_equal(cbgen_operator_plan_json(op), cbgen_operator_plan_json(special));
  must_operator(later, cbgen_operator_specialise(later));
  assert_string_equal(cbgen_operator_source(later, NULL), cbgen_operator_source(special, NULL));
  cbgen_operator_free(op);
  cbgen_operator_free(later);
  cbgen_operator_free(special);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_cache, check_fake)
  const struct CMUnitTest tests[] = {
      TEST(one_kernel_serves_a_family),
      TEST(a_process_compiles_a_family_once),
      TEST(requests_choose_the_tier),
      TEST(the_specialised_kernel_takes_over),
      TEST(the_cache_has_it_then),
      TEST(saved_operators_keep_their_tier),
      TEST(failures_change_nothing),
      TEST(without_nvrtc_families_are_enough),
      TEST(the_tool_has_those_beside_itself),
      TEST(families_come_with_the_library), TEST(outlines_lead_to_binaries),
      TEST(solvers_need_no_nvrtc),
      TEST(what_is_ready_stands_in),
      TEST(the_fastest_entry_serves_all),
      TEST(products_run_meanwhile),
      TEST(ten_thousand_operators_come_and_go),
      TEST(a_child_does_not_specialise),
      TEST(texts_are_made_when_asked_for),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
