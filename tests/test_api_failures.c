// SPDX-License-Identifier: Apache-2.0
/* The run-time interface when something fails: each allocation, each call of the driver and of NVRTC, in a
 * whole life with and without a filled cache. Every time a status and a message, or the right result; and
 * nothing is left. */
#include "tests/api_support.h"

#include <dirent.h>
#include <fcntl.h>
#include <omp.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a life ended with: its first failure. */
struct outcome {
  cbgen_status status;
  char message[1024];
};

static void note(struct outcome *outcome, cbgen_status status, const char *message) {
  if (!status || outcome->status) return;
  outcome->status = status;
  snprintf(outcome->message, sizeof outcome->message, "%s", message);
}

struct life {
  const char *recipe;
  cbgen_values values;
  struct form form;
  int cache, turned;
  int measured; /* by as few products as measuring takes: they are long ones on the fake GPU */
};

/* A product takes longer than the time that a batch of them shall. */
static void take_long(void *user, const struct fake_launch *launch) {
  (void)user;
  (void)launch;
  fake->clock_ns += 60000000;
}

/* Without a shell: it is done some thousand times. */
static DIR *open_directory(const char *name) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", getenv("CBGEN_TEST_TMP"), name);
  mkdir(path, 0700);
  DIR *directory = opendir(path);
  assert_non_null(directory);
  return directory;
}

static void clear_files(const char *name) {
  DIR *files = open_directory(name);
  for (struct dirent *file; (file = readdir(files));) unlinkat(dirfd(files), file->d_name, 0);
  closedir(files);
}

static void copy_file(int from_directory, int to_directory, const char *name) {
  struct stat status;
  const int from = openat(from_directory, name, O_RDONLY);
  const int to = openat(to_directory, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
  assert_true(from >= 0 && to >= 0 && !fstat(from, &status));
  for (off_t left = status.st_size; left > 0;) {
    const ssize_t copied = copy_file_range(from, NULL, to, NULL, (size_t)left, 0);
    assert_true(copied > 0);
    left -= copied;
  }
  close(from);
  close(to);
}

static void copy_files(const char *from_name, const char *to_name) {
  DIR *from = open_directory(from_name), *to = open_directory(to_name);
  for (struct dirent *file; (file = readdir(from));)
    if (*file->d_name != '.') copy_file(dirfd(from), dirfd(to), file->d_name);
  closedir(from);
  closedir(to);
}

static void use(cbgen_operator *op, const struct sample *sample, int measured, struct outcome *outcome) {
  struct vectors vectors = {0};
  cbgen_operator *clone = NULL, *copy = NULL;
  cbgen_info info = {.struct_size = sizeof info};
  double seconds;
  size_t length;
  assert_int_equal(cbgen_operator_info(op, &info), CBGEN_OK);
  vectors = vectors_for(op, 0);
  const cbgen_product product = product_with(&vectors, 1.25, 0.5, NULL);
  const cbgen_update update = {sizeof update, sample->given, sample->form.value_type, CBGEN_HOST, NULL};
  note(outcome, cbgen_multiply(op, &product), cbgen_operator_message(op));
  if (info.values == CBGEN_VALUES_MUTABLE)
    note(outcome, cbgen_update_values(op, &update), cbgen_operator_message(op));
  if (info.values == CBGEN_VALUES_MUTABLE)
    note(outcome, cbgen_operator_copy(op, &update, &copy), cbgen_operator_message(op));
  cbgen_operator_free(copy);
  note(outcome, cbgen_operator_clone(op, &clone), cbgen_operator_message(op));
  if (clone) note(outcome, cbgen_multiply(clone, &product), cbgen_operator_message(clone));
  if (measured) note(outcome, cbgen_operator_measure(op, &seconds), cbgen_operator_message(op));
  note(outcome, cbgen_operator_save(op, NULL, 0, &length), cbgen_operator_message(op));
  cbgen_operator_free(clone);
  vectors_release(&vectors);
}

static void save_and_load(cbgen_context *context, cbgen_operator *op, struct outcome *outcome) {
  size_t length = 0;
  cbgen_operator *back = NULL;
  if (cbgen_operator_save(op, NULL, 0, &length)) {
    note(outcome, CBGEN_ERROR_MEMORY, cbgen_operator_message(op));
    return;
  }
  unsigned char *bytes = malloc(length);
  const cbgen_status s = cbgen_operator_save(op, bytes, length, &length);
  note(outcome, s, cbgen_operator_message(op));
  if (!s) note(outcome, cbgen_operator_load(context, bytes, length, &back), cbgen_message(context));
  cbgen_operator_free(back);
  free(bytes);
}

/* From the first call to the last. `armed` starts the faults once the sample is ready. */
static struct outcome live(const struct life *life, const struct sample *sample, void (*arm)(long),
                           long nth) {
  struct outcome outcome = {0};
  cbgen_context *context = NULL;
  cbgen_operator *op = NULL;
  const cbgen_request request = {.struct_size = sizeof request, .values = life->values, .transpose = life->turned};
  char path[512] = "";
  if (life->cache) snprintf(path, sizeof path, "%s/failing", getenv("CBGEN_TEST_TMP"));
  if (arm) arm(nth);
  note(&outcome, cbgen_context_create(&context), "no context, no message");
  if (context) {
    note(&outcome, cbgen_set(context, "recipe", life->recipe), cbgen_message(context));
    note(&outcome, cbgen_set(context, "cache", path), cbgen_message(context));
    note(&outcome, cbgen_compile(context, &sample->view, &request, &op), cbgen_message(context));
  }
  if (op) {
    use(op, sample, life->measured, &outcome);
    save_and_load(context, op, &outcome);
  }
  if (arm) arm(0);
  if (op && !outcome.status) {
    struct cb_csr csr = life->turned ? transposed(&sample->csr) : sample->csr;
    check_product(op, &csr);
    if (life->turned) cb_csr_release(&csr);
  }
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  return outcome;
}

static const struct life lives[] = {
    {"sell", CBGEN_VALUES_STORED, {0}, 0, 0, 1},
    {"auto", CBGEN_VALUES_MUTABLE, {.shuffled = 1, .duplicates = 1}, 1, 0, 0},
    {"cb", CBGEN_VALUES_MUTABLE, {.on_device = 1}, 1, 0, 0},
    {"sell", CBGEN_VALUES_STORED, {.on_device = 1, .duplicates = 1}, 0, 1, 0},
    {"cb", CBGEN_VALUES_FIXED, {0}, 1, 1, 0},
};
enum { LIVES = sizeof lives / sizeof *lives };
static const char matrix[] = "random,rows=20,cols=15,density=0.2";

/* ---- memory */

static void fail_memory(long nth) {
  cb_memory_fail_at((uint64_t)nth, 0);
}

/* What a life leaves in its cache. */
static void fill_cache(const struct life *life, const struct sample *sample) {
  clear_files("failing");
  clear_files("filled");
  if (!life->cache) return;
  assert_int_equal(live(life, sample, NULL, 0).status, CBGEN_OK);
  copy_files("failing", "filled");
}

/* The empty cache of a life, or the one that the same life has filled. */
static void prepare_cache(int filled) {
  clear_files("failing");
  if (filled) copy_files("filled", "failing");
}

static long count_allocations(const struct life *life, const struct sample *sample, int filled) {
  prepare_cache(filled);
  cb_memory_fail_at(0, 0);
  assert_int_equal(live(life, sample, NULL, 0).status, CBGEN_OK);
  return (long)cb_memory_fail_at(0, 0);
}

static void any_allocation_may_fail(void **state) {
  (void)state;
  for (int i = 0; i < LIVES; i++)
    for (int filled = 0; filled <= lives[i].cache; filled++) {
      struct sample sample = sample_of(matrix, lives[i].form);
      fake->hook = lives[i].measured ? take_long : NULL;
      fill_cache(&lives[i], &sample);
      const long allocations = count_allocations(&lives[i], &sample, filled);
      int refused = 0;
      for (long nth = 1; nth <= allocations; nth++) {
        prepare_cache(filled);
        const struct outcome outcome = live(&lives[i], &sample, fail_memory, nth);
        if (outcome.status && outcome.status != CBGEN_ERROR_MEMORY)
          fail_msg("allocation %ld of life %d: %s (%s)", nth, i, outcome.message,
                   cbgen_status_name(outcome.status));
        if (outcome.status) assert_true(strlen(outcome.message) > 10);
        refused += outcome.status != CBGEN_OK;
        assert_true(fake_is_clean(fake));
      }
      assert_true(refused > 30);
      sample_release(&sample);
    }
}

/* ---- CUDA */

static void fail_cuda(long nth) {
  fake->fail_at = nth ? fake->calls + nth : 0;
}

/* Calls whose failure is nobody's: nothing can be done about it. */
static int is_forgiven(const char *function) {
  static const char *const forgiven[] = {
      "cuCtxPopCurrent", "cuCtxGetCurrent",           "cuModuleUnload",  "cuMemFree", "cuEventDestroy",
      "cuStreamDestroy", "cuDevicePrimaryCtxRelease", "cuCtxPushCurrent" /* when something is freed */};
  for (size_t i = 0; i < sizeof forgiven / sizeof *forgiven; i++)
    if (!strncmp(function, forgiven[i], strlen(forgiven[i]))) return 1;
  return !strncmp(function, "nvrtcDestroyProgram", 19);
}

static void any_call_of_cuda_may_fail(void **state) {
  for (int i = 0; i < LIVES; i++)
    for (int filled = 0; filled <= lives[i].cache; filled++) {
      int failures = 0;
      for (long nth = 1;; nth++) {
        open_fake(state);
        struct sample sample = sample_of(matrix, lives[i].form);
        fake->hook = lives[i].measured ? take_long : NULL;
        if (nth == 1) fill_cache(&lives[i], &sample);
        prepare_cache(filled);
        fake->failed[0] = 0;
        fake->failure = 700;
        const struct outcome outcome = live(&lives[i], &sample, fail_cuda, nth);
        const int failed = *fake->failed != 0;
        if (failed && !is_forgiven(fake->failed)) {
          failures++;
          /* a hit whose kernel cannot be loaded is made anew, and then all is well */
          if (!outcome.status && !filled) fail_msg("%s failed, and nobody noticed", fake->failed);
        }
        if (outcome.status) assert_true(strlen(outcome.message) > 10);
        if (outcome.status && outcome.status != CBGEN_ERROR_DEVICE && outcome.status != CBGEN_ERROR_COMPILE &&
            outcome.status != CBGEN_ERROR_MISSING)
          fail_msg("%s failed: %s (%s)", fake->failed, outcome.message, cbgen_status_name(outcome.status));
        sample_release(&sample);
        /* what a context that cannot be entered holds cannot be given back */
        if (!strncmp(fake->failed, "cuCtxPushCurrent", 16)) continue;
        if (*fake->misuse || *fake->trap) fail_msg("%s failed: %s%s", fake->failed, fake->misuse, fake->trap);
        if (!fake_is_clean(fake)) fail_msg("%s failed, and something is left", fake->failed);
        if (!failed) break;
        assert_true(nth < 2000);
      }
      assert_true(failures > 30);
      open_fake(state);
    }
}

/* ---- what the machine lacks */

static void what_is_missing_is_said(void **state) {
  (void)state;
  static const char *const variables[] = {"CBGEN_LIBCUDA", "CBGEN_NVRTC"};
  struct sample sample = sample_of(matrix, (struct form){0});
  for (int i = 0; i < 2; i++) {
    char *kept = strdup(getenv(variables[i]));
    cbgen_context *context;
    cbgen_operator *op;
    setenv(variables[i], "/nowhere/libnothing.so", 1);
    assert_int_equal(cbgen_context_create(&context), CBGEN_OK);
    assert_int_equal(cbgen_compile(context, &sample.view, NULL, &op), CBGEN_ERROR_MISSING);
    assert_null(op);
    assert_non_null(strstr(cbgen_message(context), "install"));
    cbgen_kernel *kernel; /* generation needs neither */
    must(context, cbgen_generate(context, &sample.view, &kernel));
    cbgen_kernel_free(kernel);
    setenv(variables[i], kept, 1); /* and it can be put right */
    must(context, cbgen_compile(context, &sample.view, NULL, &op));
    check_product(op, &sample.csr);
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
    free(kept);
  }
  sample_release(&sample);
}

/* The option comes before the variable, and an empty one leaves it to that again. */
static void nvrtc_is_where_the_option_says(void **state) {
  (void)state;
  struct sample sample = sample_of(matrix, (struct form){0});
  char *kept = strdup(getenv("CBGEN_NVRTC"));
  cbgen_context *context;
  cbgen_operator *op;
  assert_int_equal(cbgen_context_create(&context), CBGEN_OK);
  must(context, cbgen_set(context, "nvrtc", "/nowhere/libnothing.so"));
  assert_int_equal(cbgen_compile(context, &sample.view, NULL, &op), CBGEN_ERROR_MISSING);
  assert_non_null(strstr(cbgen_message(context), "'/nowhere/libnothing.so', which the caller names"));
  must(context, cbgen_set(context, "nvrtc", kept));
  setenv("CBGEN_NVRTC", "/nowhere/libnothing.so", 1);
  must(context, cbgen_compile(context, &sample.view, NULL, &op));
  check_product(op, &sample.csr);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  assert_int_equal(cbgen_context_create(&context), CBGEN_OK);
  must(context, cbgen_set(context, "nvrtc", kept));
  must(context, cbgen_set(context, "nvrtc", ""));
  assert_int_equal(cbgen_compile(context, &sample.view, NULL, &op), CBGEN_ERROR_MISSING);
  cbgen_context_destroy(context);
  setenv("CBGEN_NVRTC", kept, 1);
  free(kept);
  sample_release(&sample);
}

static void full_memory_of_the_gpu_is_said(void **state) {
  (void)state;
  struct sample sample = sample_of("random,rows=900,cols=900,density=0.1", (struct form){0});
  cbgen_context *context;
  cbgen_operator *op;
  fake->memory = 20000;
  assert_int_equal(cbgen_context_create(&context), CBGEN_OK);
  assert_int_equal(cbgen_compile(context, &sample.view, NULL, &op), CBGEN_ERROR_MEMORY);
  assert_non_null(strstr(cbgen_message(context), "GPU 0"));
  assert_null(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

/* ---- arguments */

static void what_has_no_meaning_is_refused(void **state) {
  (void)state;
  struct sample sample = sample_of(matrix, (struct form){0});
  cbgen_context *context;
  cbgen_operator *op;
  cbgen_info info = {.struct_size = sizeof info};
  assert_int_equal(cbgen_context_create(&context), CBGEN_OK);
#define REFUSED(words, ...)                                                                                  \
  do {                                                                                                       \
    cbgen_request request = {.struct_size = sizeof request};                                                 \
    cbgen_csr view = sample.view;                                                                            \
    __VA_ARGS__;                                                                                             \
    assert_int_equal(cbgen_compile(context, &view, &request, &op), CBGEN_ERROR_ARGUMENT);                    \
    assert_null(op);                                                                                         \
    if (!strstr(cbgen_message(context), words)) fail_msg("%s", cbgen_message(context));                      \
  } while (0)
  REFUSED("sizeof(cbgen_request)", request.struct_size = 3);
  REFUSED("'expected_products' is -1", request.expected_products = -1);
  REFUSED("'values' is 3", request.values = (cbgen_values)3);
  REFUSED("'transpose' is 2", request.transpose = 2);
  REFUSED("sizeof(cbgen_csr)", view.struct_size = 8);
  REFUSED("'index_base'", view.index_base = -1);
  assert_int_equal(cbgen_compile(context, NULL, NULL, &op), CBGEN_ERROR_ARGUMENT);
  assert_int_equal(cbgen_compile(context, &sample.view, NULL, NULL), CBGEN_ERROR_ARGUMENT);
  assert_int_equal(cbgen_compile(NULL, &sample.view, NULL, &op), CBGEN_ERROR_ARGUMENT);
  const cbgen_request mutable = {.struct_size = sizeof mutable, .values = CBGEN_VALUES_MUTABLE};
  must(context, cbgen_compile(context, &sample.view, &mutable, &op));
  cbgen_product product = {.struct_size = sizeof product, .alpha = 1};
  assert_int_equal(cbgen_multiply(op, &product), CBGEN_ERROR_ARGUMENT);
  assert_int_equal(cbgen_multiply(op, NULL), CBGEN_ERROR_ARGUMENT);
  assert_int_equal(cbgen_multiply(NULL, &product), CBGEN_ERROR_ARGUMENT);
  cbgen_update update = {sizeof update, NULL, CBGEN_F64, CBGEN_HOST, NULL};
  assert_int_equal(cbgen_update_values(op, &update), CBGEN_ERROR_ARGUMENT);
  update.values = (char *)sample.given + 4;
  assert_int_equal(cbgen_update_values(op, &update), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_operator_message(op), "aligned"));
  update.values = sample.given;
  update.value_type = (cbgen_type)9;
  assert_int_equal(cbgen_update_values(op, &update), CBGEN_ERROR_ARGUMENT);
  update.value_type = CBGEN_F64;
  update.memory = (cbgen_memory)9;
  assert_int_equal(cbgen_update_values(op, &update), CBGEN_ERROR_ARGUMENT);
  assert_int_equal(cbgen_update_values(NULL, &update), CBGEN_ERROR_ARGUMENT);
  assert_int_equal(cbgen_operator_info(NULL, &info), CBGEN_ERROR_ARGUMENT);
  assert_int_equal(cbgen_operator_info(op, NULL), CBGEN_ERROR_ARGUMENT);
  assert_int_equal(cbgen_operator_measure(NULL, NULL), CBGEN_ERROR_ARGUMENT);
  assert_string_equal(cbgen_operator_message(NULL), "");
  cbgen_operator_free(NULL);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fake, check_fake)
  const struct CMUnitTest tests[] = {
      TEST(any_allocation_may_fail),        TEST(any_call_of_cuda_may_fail),
      TEST(what_is_missing_is_said),        TEST(nvrtc_is_where_the_option_says),
      TEST(full_memory_of_the_gpu_is_said), TEST(what_has_no_meaning_is_refused),
  };
  omp_set_num_threads(1); /* small matrices: threads that wait for each other only cost time */
  return cmocka_run_group_tests(tests, NULL, NULL);
}
