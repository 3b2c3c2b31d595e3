// SPDX-License-Identifier: Apache-2.0
/* Programs that nobody has read run confined: limits on what one may use, no network, and a process group that ends
 * with them. */
#include "runtime/verify/process.h"
#include "tests/skips.h"
#include "tests/support.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

static char output[4096];

static const char *said_in(const char *path) {
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  output[fread(output, 1, sizeof output - 1, file)] = 0;
  fclose(file);
  return output;
}

/* Runs a shell's script; what it says is in `output`. */
static struct cb_process run(const char *script, struct cb_confinement confinement, double seconds) {
  struct cb_diag diag = {0};
  static char path[600];
  snprintf(path, sizeof path, "%s/said", getenv("CBGEN_TEST_TMP"));
  struct cb_process process = {.argv = (const char *const[]){"/bin/sh", "-c", script, NULL},
                               .directory = getenv("CBGEN_TEST_TMP"),
                               .output = path,
                               .seconds = seconds,
                               .confinement = &confinement};
  assert_ok(cb_process_run(&process, &diag));
  assert_true(process.found);
  said_in(path);
  process.argv = NULL;
  process.confinement = NULL;
  return process;
}

/* A process that has ended may stay listed until somebody waits for it. */
static int is_alive(long pid) {
  char path[64], state = 'Z';
  snprintf(path, sizeof path, "/proc/%ld/stat", pid);
  FILE *file = fopen(path, "r");
  if (!file) return 0;
  const int read = fscanf(file, "%*d (%*[^)]) %c", &state);
  fclose(file);
  return read == 1 && state != 'Z' && state != 'X';
}

static void must_die(long pid) {
  const struct timespec pause = {0, 10000000};
  assert_true(pid > 1);
  for (int i = 0; i < 6000 && is_alive(pid); i++) nanosleep(&pause, NULL); /* a minute, on a loaded machine */
  if (is_alive(pid)) fail_msg("process %ld outlived the one that started it", pid);
}

static void what_a_program_may_use_is_limited(void **state) {
  (void)state;
  const struct cb_process process =
      run("ulimit -t; ulimit -v; ulimit -f; ulimit -c",
          (struct cb_confinement){.processor_seconds = 7, .memory_bytes = 1 << 30, .file_bytes = 1 << 20}, 60);
  assert_int_equal(process.exit_code, 0);
  assert_string_equal(output, "7\n1048576\n2048\n0\n"); /* seconds, KiB, blocks of 512 bytes */
  assert_int_equal(run("head -c 100000 /dev/zero > large && echo written",
                       (struct cb_confinement){.file_bytes = 5000}, 60).signal, 0);
  assert_null(strstr(output, "written"));
}

static void an_endless_loop_ends_by_its_processor_time(void **state) {
  (void)state;
  const struct cb_process process = run("while :; do :; done", (struct cb_confinement){.processor_seconds = 1}, 120);
  assert_false(process.timed_out);
  assert_true(process.signal == SIGXCPU || process.signal == SIGKILL);
}

static void whom_a_program_starts_ends_with_it(void **state) {
  (void)state;
  struct cb_process process;
  double seconds = 0.35;
  do { /* longer, if the shell said nothing in that time */
    process = run("sleep 1000 & echo $!; exec sleep 1000", (struct cb_confinement){0}, seconds *= 2);
    assert_true(process.timed_out);
  } while (!*output && seconds < 60);
  must_die(atol(output));
  process = run("sleep 1000 & echo $!", (struct cb_confinement){0}, 60);
  assert_false(process.timed_out);
  assert_int_equal(process.exit_code, 0);
  must_die(atol(output));
}

static void the_network_is_cut_off(void **state) {
  (void)state;
  const struct cb_process process = run("cat /proc/self/net/dev", (struct cb_confinement){0}, 60);
  assert_int_equal(process.exit_code, 0);
  if (process.network) skip_because("this system does not let a process leave the network");
  int interfaces = 0;
  for (const char *at = output; (at = strchr(at, ':')); at++) interfaces++;
  if (interfaces > 1 || (interfaces == 1 && !strstr(output, "lo:"))) fail_msg("the network is there: %s", output);
}

static void what_cannot_be_started_is_said(void **state) {
  struct cb_diag diag = {0};
  char path[600];
  (void)state;
  snprintf(path, sizeof path, "%s/said", getenv("CBGEN_TEST_TMP"));
  const struct cb_confinement confinement = {.processor_seconds = 5};
  struct cb_process process = {.argv = (const char *const[]){"/nonexistent/program", NULL},
                               .output = path,
                               .confinement = &confinement};
  assert_ok(cb_process_run(&process, &diag));
  assert_false(process.found);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_a_program_may_use_is_limited),
      cmocka_unit_test(an_endless_loop_ends_by_its_processor_time),
      cmocka_unit_test(whom_a_program_starts_ends_with_it),
      cmocka_unit_test(the_network_is_cut_off),
      cmocka_unit_test(what_cannot_be_started_is_said),
  };
  return exit_code_of(cmocka_run_group_tests_name("process", tests, NULL, NULL));
}
