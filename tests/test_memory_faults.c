// SPDX-License-Identifier: Apache-2.0
/* Memory that runs out anywhere, also below cbgen in jansson, libarchive, zlib and the C library. The tool runs in
 * children in which one allocation fails, in turn: each child writes what it always writes, or says that memory is
 * short and writes nothing. Of a command's allocations a seeded share is taken; with CBGEN_TEST_ALL_FAULTS set, all.
 */
#include "tests/failing_malloc.h"
#include "tests/random.h"

#include "analysis/plan.h"
#include "analysis/profile/profile.h"
#include "base/json.h"
#include "frontend/generate.h"
#include "runtime/cache/cache.h"
#include "runtime/cuda/calibration.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int cbgen_main(int argc, char **argv);
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

enum { OUT_OF_MEMORY = 6, LEAKED = 99, MOST_ARGUMENTS = 12, RUNS = 70 };

/* What one run left. */
struct outcome {
  int code, signal;
  long allocations;
  char *output, *errors, *files; /* `files`: all that it wrote into its folder, one after the other */
};

static void release(struct outcome *outcome) {
  free(outcome->output);
  free(outcome->errors);
  free(outcome->files);
}

/* Where a child's words and files go, made before the first test. */
static char out_path[512], err_path[512], folder[512], kernel_path[512], cache_path[512];

static void name_paths(void) {
  const char *scratch = getenv("CBGEN_TEST_TMP");
  snprintf(out_path, sizeof out_path, "%s/out", scratch);
  snprintf(err_path, sizeof err_path, "%s/err", scratch);
  snprintf(folder, sizeof folder, "%s/folder", scratch);
  snprintf(kernel_path, sizeof kernel_path, "%s/folder/kernel.cu", scratch);
  snprintf(cache_path, sizeof cache_path, "%s/cache", scratch);
  mkdir(folder, 0700);
}

static char *contents_of(const char *path) {
  FILE *file = fopen(path, "rb");
  char *bytes = NULL;
  size_t length = 0, got;
  FILE *copy = open_memstream(&bytes, &length);
  char room[4096];
  while (file && (got = fread(room, 1, sizeof room, file)) > 0)
    for (size_t i = 0; i < got; i++) fprintf(copy, room[i] ? "%c" : "\\0", room[i]);
  fclose(copy);
  if (file) fclose(file);
  return bytes;
}

static int by_name(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_no_dot(const struct dirent *file) {
  return file->d_name[0] != '.';
}

/* Names and contents of the files in the folder, which then are removed. */
static char *take_files(void) {
  struct dirent **names;
  char *text = NULL, path[1024];
  size_t length;
  FILE *all = open_memstream(&text, &length);
  const int count = scandir(folder, &names, is_no_dot, by_name);
  for (int i = 0; i < count; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
    char *contents = contents_of(path);
    fprintf(all, "%s: %s\n", names[i]->d_name, contents);
    free(contents);
    unlink(path);
    free(names[i]);
  }
  if (count >= 0) free(names);
  fclose(all);
  return text;
}

static void be_child(const char *const *arguments, long nth, int check_leaks, int report) {
  static char words[MOST_ARGUMENTS][1024]; /* the tool may change its arguments */
  char *argv[MOST_ARGUMENTS + 2] = {"cbgen"};
  int argc = 1;
  while (arguments[argc - 1]) {
    snprintf(words[argc - 1], sizeof *words, "%s", arguments[argc - 1]);
    argv[argc] = words[argc - 1];
    argc++;
  }
  if (dup2(open(out_path, O_WRONLY | O_CREAT | O_TRUNC, 0600), 1) < 0 ||
      dup2(open(err_path, O_WRONLY | O_CREAT | O_TRUNC, 0600), 2) < 0)
    _exit(98);
  omp_set_num_threads(1);
  fail_malloc_at(nth);
  int code = cbgen_main(argc, argv);
  const long allocations = fail_malloc_at(0);
  fflush(NULL);
  if (check_leaks && __lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check()) code = LEAKED;
  if (write(report, &allocations, sizeof allocations) != sizeof allocations) code = 97;
  _exit(code);
}

static struct outcome run(const char *const *arguments, long nth, int check_leaks) {
  struct outcome outcome = {0};
  int ends[2], status;
  assert_int_equal(pipe(ends), 0);
  fflush(NULL);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (!child) be_child(arguments, nth, check_leaks, ends[1]);
  close(ends[1]);
  if (read(ends[0], &outcome.allocations, sizeof outcome.allocations) < 0) fail();
  close(ends[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  outcome.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  outcome.output = contents_of(out_path);
  outcome.errors = contents_of(err_path);
  outcome.files = take_files();
  return outcome;
}

/* A report may say that a step had no memory: then it is printed, whole. */
static int is_whole_json(const char *text) {
  json_t *json = json_loads(text, 0, NULL);
  json_decref(json);
  return json != NULL;
}

/* Of a step beside one that fails anyhow, which the exit code tells. */
static int says_no_memory(const char *output) {
  return strstr(output, "\"status\": \"memory\"") && strstr(output, "out of memory") && is_whole_json(output);
}

static void check_outcome(const struct outcome *got, const struct outcome *whole, const char *command, long nth) {
  if (got->signal) fail_msg("%s, allocation %ld: signal %d\n%s", command, nth, got->signal, got->errors);
  if (got->code == LEAKED) fail_msg("%s, allocation %ld: leaks\n%s", command, nth, got->errors);
  if (got->code == OUT_OF_MEMORY) {
    if (!strstr(got->errors, "out of memory") && !strstr(got->errors, strerror(ENOMEM)))
      fail_msg("%s, allocation %ld: '%s'", command, nth, got->errors);
    if ((*got->output && !is_whole_json(got->output)) || *got->files)
      fail_msg("%s, allocation %ld: half of it is written: %s%s", command, nth, got->output, got->files);
    return;
  }
  if (got->code != whole->code) fail_msg("%s, allocation %ld: exits %d: %s", command, nth, got->code, got->errors);
  if (strcmp(got->output, whole->output) && !says_no_memory(got->output))
    fail_msg("%s, allocation %ld: other output:\n%s", command, nth, got->output);
  if (strcmp(got->files, whole->files)) fail_msg("%s, allocation %ld: other files:\n%s", command, nth, got->files);
}

/* Takes numbers up to `last` in uneven steps, all of them when asked to. */
static long next_fault(long nth, long last, uint64_t *seed) {
  const long mean = getenv("CBGEN_TEST_ALL_FAULTS") ? 1 : last / RUNS + 1;
  return nth + 1 + (long)(draw(seed) % (uint64_t)(2 * mean - 1));
}

static void fail_each_allocation(const char *const *arguments, int code) {
  char command[1024] = "";
  for (int i = 0; arguments[i]; i++)
    snprintf(command + strlen(command), sizeof command - strlen(command), " %s", arguments[i]);
  struct outcome whole = run(arguments, 0, 1);
  if (whole.code != code) fail_msg("%s: exits %d: %s", command, whole.code, whole.errors);
  int refused = 0, runs = 0;
  uint64_t seed = 11;
  for (long nth = next_fault(0, whole.allocations, &seed); nth <= whole.allocations;
       nth = next_fault(nth, whole.allocations, &seed), runs++) {
    struct outcome got = run(arguments, nth, runs % 4 == 0);
    check_outcome(&got, &whole, command, nth);
    refused += got.code == OUT_OF_MEMORY;
    release(&got);
  }
  if (!refused) fail_msg("%s: none of %d failures was noticed", command, runs);
  release(&whole);
}

#define EACH(code, ...) fail_each_allocation((const char *const[]){__VA_ARGS__, NULL}, code)
#define GOOD "tests/data/frontend/good/"

static void reading_packed_files(void **state) {
  (void)state;
  EACH(0, "analyze", GOOD "small.mtx.gz");
  EACH(0, "analyze", GOOD "small.tar.gz");
}

static void profile_plan_and_candidates_as_json(void **state) {
  (void)state;
  EACH(0, "analyze", GOOD "small.mtx", "--json");
  EACH(0, "analyze", "generate:random,rows=40,cols=30,per_row=4,values=integers", "--json", "--values=fixed");
}

static void a_sweep(void **state) {
  (void)state;
  EACH(0, "analyze", GOOD "small.mtx", "--sweep=recipe=sell,cb,hot", "--json");
  EACH(0, "analyze", GOOD "small.mtx", "--recipe=cb", "--sweep=th1=3,30");
}

static void kernels_and_their_files(void **state) {
  (void)state;
  EACH(0, "generate", GOOD "small.mtx", "-o", kernel_path, "--emit=cu,data,plan", "--json");
  EACH(0, "generate:fe3,n=3", "-o", kernel_path, "--embed=never");
}

static void a_report_of_verification_as_json(void **state) {
  (void)state;
  setenv("CXX", "/nonexistent/c++", 1);
  setenv("CBGEN_NVRTC", "/nonexistent/libnvrtc.so", 1);
  EACH(5, "verify", GOOD "small.mtx", "--json", "--recipe=sell");
}

static void fill_cache(const char *directory) {
  struct cb_cache *cache;
  struct cb_diag diag = {0};
  const struct cb_cache_options options = {.directory = directory};
  const struct cb_cache_label label = {"matrix", "sm_90 NVIDIA H200", NULL};
  const struct cb_cache_section sections[] = {{"plan", "(spmv)", 6}, {"json", "{}", 2}, {"source", "text", 4}};
  assert_int_equal(cb_cache_open(&cache, &options, &diag), CB_OK);
  for (uint64_t key = 1; key <= 3; key++) {
    cb_cache_remove(cache, (struct cb_hash){key, key}, NULL); /* of an earlier run */
    assert_int_equal(cb_cache_put(cache, (struct cb_hash){key, key}, &label, sections, 3, &diag), CB_CACHE_STORED);
  }
  cb_cache_close(cache);
}

static void what_lies_in_the_cache(void **state) {
  (void)state;
  setenv("CBGEN_CACHE_DIR", cache_path, 1);
  fill_cache(cache_path);
  EACH(0, "cache", "list", "--json");
  EACH(0, "cache", "stats", "--json");
  EACH(0, "cache", "show", "00000000000000010000000000000001", "--source");
}

/* jansson's buffer of a token may have to grow at any byte of a name, a string or a number. */
static void json_is_read_whole_or_not_at_all(void **state) {
  (void)state;
  static const char numbers[] = "123456789012345678";
  for (int length = 1; length < 150; length++) {
    char text[512], letters[151] = "";
    json_t *whole, *got;
    memset(letters, 'a', (size_t)length);
    snprintf(text, sizeof text, "{\"%s\": \"%s\\\"%s\", \"n\": %.*s}", letters, letters, "b", length % 18 + 1, numbers);
    assert_int_equal(cb_json_read(&whole, text, strlen(text), NULL), CB_OK);
    fail_malloc_at(0);
    for (long nth = 1, made = 0; nth <= made + 1; nth++) { /* until it is more than there are */
      fail_malloc_at(nth);
      const enum cb_status s = cb_json_read(&got, text, strlen(text), NULL);
      made = fail_malloc_at(0);
      if (s ? s != CB_ERR_MEMORY || got : !json_equal(got, whole))
        fail_msg("allocation %ld of '%s': %s", nth, text, cb_status_name(s));
      json_decref(got);
    }
    json_decref(whole);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reading_packed_files),
      cmocka_unit_test(profile_plan_and_candidates_as_json),
      cmocka_unit_test(a_sweep),
      cmocka_unit_test(kernels_and_their_files),
      cmocka_unit_test(a_report_of_verification_as_json),
      cmocka_unit_test(what_lies_in_the_cache),
      cmocka_unit_test(json_is_read_whole_or_not_at_all),
  };
  name_paths();
  return cmocka_run_group_tests_name("memory that runs out below", tests, NULL, NULL);
}
