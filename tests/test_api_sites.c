// SPDX-License-Identifier: Apache-2.0
/* The library where many use it: processes that start together share one compilation and have the same bits; nodes that
 * have neither NVRTC nor families find what was made elsewhere, in a directory that they only read; a machine without a
 * directory that can be written keeps kernels in memory; and the number of threads is the caller's to choose.
 *
 * The processes of a crowd are this program again, started anew. */
#include "tests/api_support.h"

#include "runtime/api/api.h"
#include "runtime/api/fill.h"
#include "runtime/cuda/target_file.h"

#include <fcntl.h>
#include <omp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char scratch[400], own[420], base[420], elsewhere[420];

static int prepare(void **state) {
  char command[1400];
  snprintf(scratch, sizeof scratch, "%s", getenv("CBGEN_TEST_TMP"));
  snprintf(own, sizeof own, "%s/own", scratch);
  snprintf(base, sizeof base, "%s/base", scratch);
  snprintf(elsewhere, sizeof elsewhere, "%s/memory", scratch);
  snprintf(command, sizeof command, "rm -rf '%s' '%s' '%s'", own, base, elsewhere);
  unsetenv("CBGEN_CACHE_PATH");
  setenv("CBGEN_CACHE_MEMORY", "", 1);
  return system(command) || open_fake(state) || setenv("CBGEN_CACHE_DIR", own, 1);
}

/* ---- a crowd */

enum { MEMBERS = 6 };

/* What a member has to tell, in one write to the pipe. */
struct report {
  long compilations;
  int cache;
  struct cb_hash result; /* of plan, text and y */
};

static struct cb_hash digest(cbgen_operator *op) {
  struct vectors vectors = vectors_for(op, 0);
  const cbgen_product product = product_with(&vectors, 1.25, 0, NULL);
  struct cb_hash hash = {0, 0};
  must_operator(op, cbgen_multiply(op, &product));
  const size_t bytes = (size_t)vectors.rows * sizeof(double);
  double *y = calloc(1, bytes + 1);
  assert_true(app_take(y, vectors.y_there, bytes));
  cb_hash_field(&hash, "y", y, bytes);
  cb_hash_field(&hash, "plan", cbgen_operator_plan(op), strlen(cbgen_operator_plan(op)));
  cb_hash_field(&hash, "text", cbgen_operator_source(op, NULL), strlen(cbgen_operator_source(op, NULL)));
  free(y);
  vectors_release(&vectors);
  return hash;
}

static struct report compile_once(const char *tune) {
  struct sample sample = sample_of("random,rows=300,cols=300,density=0.05", (struct form){0});
  cbgen_context *context = new_context("");
  const cbgen_request request = {
      .struct_size = sizeof request, .values = CBGEN_VALUES_MUTABLE, .specialise = CBGEN_SPECIALISE_NOW};
  cbgen_operator *op;
  must(context, cbgen_set(context, "tune", tune));
  must(context, cbgen_compile(context, &sample.view, &request, &op));
  const struct report report = {fake->compilations, (int)info_of(op).cache, digest(op)};
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
  return report;
}

static const char *member_tune;
static int member_results;

static void member(void **state) {
  (void)state;
  const struct report report = compile_once(member_tune);
  assert_int_equal(write(member_results, &report, sizeof report), (ssize_t)sizeof report);
}

static int open_member(void **state) {
  (void)state;
  return open_app(); /* the environment is the crowd's */
}

/* Waits until the pipe `start` is closed at its other end. */
static int member_main(char **arguments) {
  char byte;
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(member, open_member, check_fake)};
  member_tune = arguments[2];
  member_results = atoi(arguments[4]);
  while (read(atoi(arguments[3]), &byte, 1) < 0) continue;
  return cmocka_run_group_tests_name("member", tests, NULL, NULL);
}

static pid_t start_member(const char *tune, int start, int results) {
  char texts[2][16];
  snprintf(texts[0], sizeof texts[0], "%d", start);
  snprintf(texts[1], sizeof texts[1], "%d", results);
  const pid_t child = fork();
  if (child) return child;
  const int nowhere = open("/dev/null", O_WRONLY);
  dup2(nowhere, STDOUT_FILENO);
  execl("/proc/self/exe", "test_api_sites", "member", tune, texts[0], texts[1], (char *)NULL);
  _exit(99);
}

/* Their compilations together are those of one process alone, and all of them have its bits. */
static void crowd(const char *tune) {
  char command[500];
  const struct report alone = compile_once(tune);
  assert_true(alone.compilations > 0 && alone.cache == CBGEN_CACHE_MISS);
  snprintf(command, sizeof command, "rm -rf '%s'", own);
  assert_int_equal(system(command), 0);
  pid_t children[MEMBERS];
  int start[2], results[2], hits = 0;
  assert_int_equal(pipe(start), 0);
  assert_int_equal(pipe(results), 0);
  fcntl(start[1], F_SETFD, FD_CLOEXEC);
  fcntl(results[0], F_SETFD, FD_CLOEXEC);
  for (int i = 0; i < MEMBERS; i++) children[i] = start_member(tune, start[0], results[1]);
  usleep(100000);
  close(start[0]);
  close(start[1]);
  close(results[1]);
  struct cb_hash expected = alone.result;
  long compilations = 0;
  int reports = 0;
  for (int i = 0; i < MEMBERS; i++) {
    int status;
    assert_int_equal(waitpid(children[i], &status, 0), children[i]);
    assert_int_equal(status, 0);
  }
  for (struct report one; read(results[0], &one, sizeof one) == (ssize_t)sizeof one;) {
    compilations += one.compilations;
    hits += one.cache == CBGEN_CACHE_HIT;
    /* tuning by a clock may choose another recipe than before, but the same one for all */
    if (!reports++ && !strcmp(tune, "measure")) expected = one.result;
    assert_memory_equal(&one.result, &expected, sizeof one.result);
  }
  close(results[0]);
  assert_int_equal(compilations, alone.compilations);
  assert_int_equal(reports, MEMBERS);
  assert_int_equal(hits, MEMBERS - 1);
}

static void one_of_many_compiles(void **state) {
  (void)state;
  crowd("model");
}

static void one_of_many_tunes_and_the_others_follow(void **state) {
  (void)state;
  crowd("measure");
}

/* ---- nodes without NVRTC */

static struct cb_target target_of_the_gpu(void) {
  struct cb_diag diag = {0};
  struct cb_driver *driver;
  struct cb_device *device;
  assert_ok(cb_driver_open(&driver, NULL, &diag));
  assert_ok(cb_device_open(&device, driver, 0, &diag));
  const struct cb_target target = device->target;
  cb_device_close(device);
  cb_driver_close(driver);
  return target;
}

/* Through a file, as it would travel. */
static struct cb_target described_target(void) {
  struct cb_diag diag = {0};
  struct cb_text text = {0};
  struct cb_target target = target_of_the_gpu(), read;
  char path[500];
  snprintf(path, sizeof path, "%s/gpu.json", scratch);
  assert_ok(cb_target_text(&text, &target, &diag));
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_int_equal(fwrite(text.bytes, 1, text.length, file), text.length);
  assert_int_equal(fclose(file), 0);
  assert_ok(cb_target_read(&read, path, &diag));
  assert_string_equal(read.arch, target.arch);
  assert_string_equal(read.model, target.model);
  assert_memory_equal(&read.multiprocessors, &target.multiprocessors,
                      sizeof target - offsetof(struct cb_target, multiprocessors));
  cb_text_release(&text);
  return read;
}

static struct cb_filled fill(const struct sample *sample, const struct cb_target *target, const char *options,
                             int transpose) {
  const cbgen_request request = {.struct_size = sizeof request, .transpose = transpose};
  struct cb_filled filled;
  int made;
  cbgen_context *context = new_context("");
  set_all(context, options);
  must(context, (cbgen_status)cb_fill_own(context, target, &made));
  must(context, (cbgen_status)cb_fill(context, target, &sample->view, &request, &filled));
  cbgen_context_destroy(context);
  return filled;
}

/* Options; how the matrix is handed over on the node; its values. */
static const struct {
  const char *options;
  struct form form;
  cbgen_values values;
  int transpose;
} cases[] = {
    {"", {0}, CBGEN_VALUES_STORED, 0},
    {"", {.value_type = CBGEN_F32, .on_device = 1}, CBGEN_VALUES_MUTABLE, 0},
    {"type=f16-f32", {.value_type = CBGEN_F16, .row_bits = 64, .base = 1}, CBGEN_VALUES_MUTABLE, 0},
    {"recipe=merge", {.on_device = 1, .col_bits = 64}, CBGEN_VALUES_MUTABLE, 0},
    {"values=fixed", {0}, CBGEN_VALUES_FIXED, 0},
    {"", {0}, CBGEN_VALUES_STORED, 1},
};
enum { CASES = sizeof cases / sizeof *cases };

static void use_on_node(int i) {
  struct sample sample = sample_of("random,rows=200,cols=180,density=0.05", cases[i].form);
  cbgen_context *context = new_context("");
  const cbgen_request request = {
      .struct_size = sizeof request, .values = cases[i].values, .transpose = cases[i].transpose};
  cbgen_operator *op;
  set_all(context, cases[i].options);
  must(context, cbgen_compile(context, &sample.view, &request, &op));
  const cbgen_info info = info_of(op);
  if (info.cache != CBGEN_CACHE_HIT) fail_msg("case %d: no hit", i);
  assert_int_equal(info.tier, CBGEN_TIER_SPECIALISED);
  struct cb_csr turned = cases[i].transpose ? transposed(&sample.csr) : (struct cb_csr){0};
  check_product(op, cases[i].transpose ? &turned : &sample.csr);
  if (cases[i].values == CBGEN_VALUES_MUTABLE) {
    const cbgen_update update = {sizeof update, sample.given, sample.form.value_type, CBGEN_HOST, NULL};
    set_values(&sample, 99);
    sum_up(&sample);
    must_operator(op, cbgen_update_values(op, &update));
    check_product(op, &sample.csr);
  }
  cb_csr_release(&turned);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

static void what_was_filled_needs_neither_nvrtc_nor_families(void **state) {
  (void)state;
  const struct cb_target target = described_target();
  char nvrtc[600];
  setenv("CBGEN_CACHE_DIR", base, 1);
  const long calls = fake->calls;
  const int modules = fake->modules;
  for (int i = 0; i < CASES; i++) {
    /* the pattern is the same, wherever it lies, however wide it is and whatever it counts from */
    const struct form form = {.value_type = cases[i].form.value_type};
    struct sample sample = sample_of("random,rows=200,cols=180,density=0.05", form);
    const struct cb_filled filled = fill(&sample, &target, cases[i].options, cases[i].transpose);
    assert_int_equal(filled.was_there, 0);
    assert_true(!strncmp(filled.plan, "(spmv ", 6));
    assert_int_equal(fill(&sample, &target, cases[i].options, cases[i].transpose).was_there, 1);
    sample_release(&sample);
  }
  assert_int_equal(fake->modules, modules); /* the GPU had no part in it */
  assert_int_equal(fake->contexts + fake->blocks + fake->launches, 0);
  assert_true(fake->compilations > CASES && calls >= 0);
  const long compilations = fake->compilations;
  snprintf(nvrtc, sizeof nvrtc, "%s", getenv("CBGEN_NVRTC"));
  setenv("CBGEN_NVRTC", "/nowhere", 1);
  setenv("CBGEN_FAMILIES", "", 1);
  setenv("CBGEN_CACHE_DIR", own, 1);
  setenv("CBGEN_CACHE_PATH", base, 1);
  for (int i = 0; i < CASES; i++) use_on_node(i);
  assert_int_equal(fake->compilations, compilations);
  assert_int_equal(entries_in(own), 0);
  setenv("CBGEN_CACHE_DIR", "/dev/null/none", 1); /* no directory at all that could be written */
  use_on_node(0);
  setenv("CBGEN_NVRTC", nvrtc, 1);
  unsetenv("CBGEN_FAMILIES");
}

static void filling_fails_with_a_reason(void **state) {
  (void)state;
  struct cb_target target;
  struct cb_diag diag = {0};
  struct cb_filled filled;
  char nvrtc[600];
  assert_ok(cb_target_find(&target, "sm_90", &diag));
  struct sample sample = sample_of("random,rows=20,cols=18,density=0.2", (struct form){0});
  setenv("CBGEN_CACHE_DIR", "/dev/null/none", 1);
  cbgen_context *context = new_context("");
  assert_int_equal(cb_fill(context, &target, &sample.view, NULL, &filled), CB_ERR_IO);
  assert_non_null(strstr(cbgen_message(context), "there is no cache to fill"));
  cbgen_context_destroy(context);
  setenv("CBGEN_CACHE_DIR", own, 1);
  snprintf(nvrtc, sizeof nvrtc, "%s", getenv("CBGEN_NVRTC"));
  setenv("CBGEN_NVRTC", "/nowhere", 1);
  context = new_context("");
  assert_int_equal(cb_fill(context, &target, &sample.view, NULL, &filled), CB_ERR_MISSING);
  int made;
  assert_int_equal(cb_fill_own(context, &target, &made), CB_ERR_MISSING);
  cbgen_context_destroy(context);
  setenv("CBGEN_NVRTC", nvrtc, 1);
  sample.view.cols = 3;
  context = new_context("");
  assert_int_equal(cb_fill(context, &target, &sample.view, NULL, &filled), CB_ERR_ARGUMENT);
  cbgen_context_destroy(context);
  sample_release(&sample);
  assert_int_equal(entries_in(own), 0);
}

/* Each line instead of the one that begins so. */
static void descriptions_are_checked(void **state) {
  (void)state;
  static const struct {
    const char *from, *to, *words;
  } faults[] = {{"\"format\": \"cbgen gpu 1\"", "\"format\": \"cbgen gpu 2\"", "'format' is 'cbgen gpu 2'"},
                {"\"arch\": \"sm_90\"", "\"arch\": \"sm_12\"", "sm_12"},
                {"\"arch\"", "\"arc\"", "'arch' is no text"},
                {"\"multiprocessors\": ", "\"multiprocessors\": -", "'multiprocessors' is no whole number from 1"},
                {"\"l2_bytes\"", "\"l3_bytes\"", "'l2_bytes' is no whole number"},
                {"\"launch_ns\": ", "\"launch_ns\": 0.", "'launch_ns' is no whole number"},
                {"{", "[", "cbgen cache gpu"}};
  struct cb_diag diag = {0};
  struct cb_target target, read;
  char path[500];
  snprintf(path, sizeof path, "%s/wrong.json", scratch);
  assert_ok(cb_target_find(&target, "sm_90", &diag));
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    struct cb_text text = {0}, wrong = {0};
    assert_ok(cb_target_text(&text, &target, &diag));
    const char *at = strstr(cb_text_string(&text), faults[i].from);
    assert_non_null(at);
    cb_text_add(&wrong, "%.*s%s%s", (int)(at - text.bytes), text.bytes, faults[i].to, at + strlen(faults[i].from));
    FILE *file = fopen(path, "w");
    assert_true(file && fwrite(wrong.bytes, 1, wrong.length, file) == wrong.length && !fclose(file));
    assert_int_not_equal(cb_target_read(&read, path, &diag), CB_OK);
    if (!strstr(diag.message, faults[i].words) || strncmp(diag.message, path, strlen(path)))
      fail_msg("'%s' lacks '%s'", diag.message, faults[i].words);
    cb_text_release(&text);
    cb_text_release(&wrong);
  }
  assert_int_equal(cb_target_read(&read, "/nowhere/gpu.json", &diag), CB_ERR_IO);
}

/* ---- in memory */

static void kernels_are_kept_in_memory_where_nothing_can_be_written(void **state) {
  (void)state;
  struct sample sample = sample_of("random,rows=60,cols=60,density=0.1", (struct form){0});
  assert_int_equal(mkdir(elsewhere, 0700), 0);
  setenv("CBGEN_CACHE_DIR", "/dev/null/none", 1);
  for (int memory = 0; memory < 2; memory++) {
    setenv("CBGEN_CACHE_MEMORY", memory ? elsewhere : "", 1);
    for (int again = 0; again < 2; again++) {
      cbgen_context *context = new_context("");
      cbgen_operator *op;
      must(context, cbgen_compile(context, &sample.view, NULL, &op));
      const cbgen_cache_result result = info_of(op).cache;
      assert_int_equal(result, !memory ? CBGEN_CACHE_OFF : again ? CBGEN_CACHE_HIT : CBGEN_CACHE_MISS);
      check_product(op, &sample.csr);
      cbgen_operator_free(op);
      cbgen_context_destroy(context);
    }
  }
  char place[500];
  snprintf(place, sizeof place, "%s/cbgen-%u", elsewhere, (unsigned)geteuid());
  assert_true(entries_in(place) > 0);
  sample_release(&sample);
}

/* ---- options */

static int threads_seen;
static void see_threads(void *user, const char *line) {
  (void)user;
  if (!strncmp(line, "plan: ", 6)) threads_seen = omp_get_max_threads();
}

static int threads_of(const char *setting, int on_device) {
  /* large enough to be shared out */
  struct sample sample = sample_of("random,rows=20000,cols=20000,per_row=30", (struct form){.on_device = on_device});
  cbgen_context *context = new_context("");
  cbgen_operator *op;
  threads_seen = 0;
  if (setting) must(context, cbgen_set(context, "threads", setting));
  must(context, cbgen_set(context, "cache", ""));
  assert_int_equal(cbgen_set_log(context, see_threads, NULL), CBGEN_OK);
  must(context, cbgen_compile(context, &sample.view, NULL, &op));
  check_product(op, &sample.csr);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
  return threads_seen;
}

static void threads_are_those_that_were_asked_for(void **state) {
  (void)state;
  const int before = omp_get_max_threads();
  omp_set_num_threads(2);
  assert_int_equal(threads_of(NULL, 0), 2);
  assert_int_equal(threads_of("auto", 0), 2);
  assert_int_equal(threads_of("auto", 1), 1); /* its columns stay there */
  assert_int_equal(threads_of("1", 0), 1);
  assert_int_equal(threads_of("3", 0), 3);
  assert_int_equal(omp_get_max_threads(), 2);
  omp_set_num_threads(before);
  cbgen_context *context = new_context("");
  static const char *const wrong[] = {"0", "-1", "two", "", "2x", "5000"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_int_equal(cbgen_set(context, "threads", wrong[i]), CBGEN_ERROR_ARGUMENT);
    assert_non_null(strstr(cbgen_message(context), "it takes 'auto' or 1 to"));
  }
  cbgen_context_destroy(context);
}

int main(int argc, char **argv) {
  if (argc == 5 && !strcmp(argv[1], "member")) return member_main(argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, prepare, check_fake)
  const struct CMUnitTest tests[] = {
      TEST(one_of_many_compiles),
      TEST(one_of_many_tunes_and_the_others_follow),
      TEST(what_was_filled_needs_neither_nvrtc_nor_families),
      TEST(filling_fails_with_a_reason),
      TEST(descriptions_are_checked),
      TEST(kernels_are_kept_in_memory_where_nothing_can_be_written),
      TEST(threads_are_those_that_were_asked_for),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
