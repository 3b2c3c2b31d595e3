// SPDX-License-Identifier: Apache-2.0
/* A program that runs with more rights than its caller believes no environment variable: no library that one names is
 * loaded, no folder that one names is a cache, no compiler that one names is run. The same program without those rights
 * believes them all, which shows that the test can tell. */
#include "tests/skips.h"
#include "tests/support.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534, OUTPUT = 4096 };
static char folder[] = "/tmp/cbgen-rights-XXXXXX";
static const char *const files[] = {"asker", "asker-root", "libtrap.so", "libcuda.so.1", "libnvrtc.so.13", "compiler"};

static void path_of(const char *name, char path[256]) { snprintf(path, 256, "%s/%s", folder, name); }

static void copy_file(const char *from, const char *name, mode_t mode) {
  char path[256], bytes[1 << 16];
  ssize_t got;
  path_of(name, path);
  const int in = open(from, O_RDONLY), out = open(path, O_WRONLY | O_CREAT | O_EXCL, 0700);
  assert_true(in >= 0 && out >= 0);
  while ((got = read(in, bytes, sizeof bytes)) > 0) assert_int_equal(write(out, bytes, (size_t)got), got);
  assert_int_equal(got, 0);
  assert_int_equal(fchmod(out, mode), 0);
  close(in);
  assert_int_equal(close(out), 0);
}

/* A compiler that says that it was run. */
static void write_compiler(void) {
  char path[256];
  path_of("compiler", path);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fprintf(file, "#!/bin/sh\necho ran the compiler >> %s/ran\nexit 1\n", folder);
  assert_int_equal(fclose(file), 0);
  assert_int_equal(chmod(path, 0755), 0);
}

static int set_up(void **state) {
  const char *asker = getenv("CBGEN_TEST_ASKER"), *trap = getenv("CBGEN_TEST_TRAP");
  (void)state;
  if (geteuid()) return 0;
  assert_non_null(asker);
  assert_non_null(trap);
  assert_non_null(mkdtemp(folder));
  assert_int_equal(chmod(folder, 01777), 0);
  copy_file(asker, "asker", 0755);
  copy_file(asker, "asker-root", 04755);
  for (int i = 2; i < 5; i++) copy_file(trap, files[i], 0755);
  write_compiler();
  return 0;
}

static int tear_down(void **state) {
  char command[256];
  (void)state;
  if (geteuid()) return 0;
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command);
}

/* As nobody, with an environment that is all traps. */
static void become_asker(const char *name, int out) {
  char path[256], variables[24][300], *environment[25];
  const char *mutant = getenv("CBGEN_MUTANT"); /* of tests/mutations: also a planted bug must not get through */
  static const char *const places[] = {
      "CBGEN_LIBCUDA", "CBGEN_NVRTC",    "CBGEN_CACHE_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "CBGEN_CALIBRATION",
      "HOME",          "TMPDIR",         "CUDA_HOME",       "CUDA_PATH",      "VIRTUAL_ENV",     "CONDA_PREFIX",
      "CBGEN_DUMP",    "CBGEN_OVERRIDE", "CBGEN_LOG",       "CBGEN_OPTIONS",   "CBGEN_CHECK"};
  int count = 0;
  for (size_t i = 0; i < sizeof places / sizeof *places; i++)
    snprintf(variables[count++], sizeof variables[0], "%s=%s%s", places[i], folder, i == 2 ? "/cache" : "");
  snprintf(variables[count++], sizeof variables[0], "CXX=%s/compiler", folder);
  snprintf(variables[count++], sizeof variables[0], "NVTX_INJECTION64_PATH=%s/libtrap.so", folder);
  snprintf(variables[count++], sizeof variables[0], "PATH=%s:/usr/bin:/bin", folder);
  if (mutant) snprintf(variables[count++], sizeof variables[0], "CBGEN_MUTANT=%s", mutant);
  for (int i = 0; i < count; i++) environment[i] = variables[i];
  environment[count] = NULL;
  path_of(name, path);
  dup2(out, 1);
  dup2(out, 2);
  if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY)) _exit(126);
  execve(path, (char *const[]){path, NULL}, environment);
  _exit(127);
}

/* What the asker says as nobody; whether a compiler was run comes last. */
static void ask(const char *name, char output[OUTPUT]) {
  char ran[256];
  int ends[2], status;
  size_t length = 0;
  ssize_t got;
  path_of("ran", ran);
  unlink(ran);
  assert_int_equal(pipe(ends), 0);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (!child) become_asker(name, ends[1]);
  close(ends[1]);
  while ((got = read(ends[0], output + length, OUTPUT - 1 - length)) > 0) length += (size_t)got;
  output[length] = 0;
  close(ends[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  if (!WIFEXITED(status) || WEXITSTATUS(status)) fail_msg("'%s' ended with status %d: %s", name, status, output);
  if (!access(ran, F_OK)) snprintf(output + length, OUTPUT - length, "ran the compiler\n");
}

/* Why nothing can be given more rights here; NULL: it can. */
static const char *obstacle(void) {
  struct statvfs info;
  if (geteuid()) return "only root can make set-user-ID programs";
  if (statvfs(folder, &info) || info.f_flag & ST_NOSUID) return "/tmp is mounted nosuid";
  if (info.f_flag & ST_NOEXEC) return "/tmp is mounted noexec";
  return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? "this process may gain no rights (no_new_privs)" : NULL;
}

static void skip_where_impossible(void) {
  const char *reason = obstacle();
  if (reason) skip_because(reason);
}

static void environment_counts_in_a_plain_program(void **state) {
  char output[OUTPUT];
  (void)state;
  skip_where_impossible();
  ask("asker", output);
  assert_non_null(strstr(output, "rights own\n"));
  int traps = 0; /* as a driver, as NVRTC and as a profiler */
  for (const char *at = output; (at = strstr(at, "loaded the trap\n")); at++) traps++;
  assert_int_equal(traps, 3);
  assert_non_null(strstr(output, "cache on\n"));
  assert_non_null(strstr(output, folder));
  assert_non_null(strstr(output, "ran the compiler\n"));
  assert_non_null(strstr(output, "cbgen: CBGEN_LOG does not take "));
  assert_non_null(strstr(output, "kernels inspected\n"));
  assert_non_null(strstr(output, "checks argument\n"));
  assert_non_null(strstr(output, "options argument\n"));
}

static void environment_of_a_set_user_id_program_is_not_believed(void **state) {
  char output[OUTPUT];
  (void)state;
  skip_where_impossible();
  ask("asker-root", output);
  assert_non_null(strstr(output, "rights more\n"));
  if (strstr(output, "loaded the trap")) fail_msg("a library that a variable names was loaded: %s", output);
  if (strstr(output, "ran the compiler")) fail_msg("a compiler that a variable names was run: %s", output);
  assert_non_null(strstr(output, "cache off\n"));
  assert_non_null(strstr(output, "calibration none\n"));
  assert_non_null(strstr(output, "host unsupported\n"));
  assert_non_null(strstr(output, "kernels left alone\n"));
  assert_non_null(strstr(output, "checks ok\n"));
  assert_non_null(strstr(output, "options ok\n"));
  assert_null(strstr(output, folder));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(environment_counts_in_a_plain_program),
      cmocka_unit_test(environment_of_a_set_user_id_program_is_not_believed),
  };
  return exit_code_of(cmocka_run_group_tests_name("environment", tests, set_up, tear_down));
}
