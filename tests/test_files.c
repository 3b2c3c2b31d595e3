// SPDX-License-Identifier: Apache-2.0
/* Output files: what is there decides what becomes of it (base/file.h), several appear together or not at all, and no
 * write ends the process, be the disk full, the size of files limited, or the reader gone. */
#include "base/file.h"
#include "base/signals.h"
#include "runtime/cache/cache.h"
#include "runtime/cache/calls.h"
#include "tests/skips.h"
#include "tests/support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PLACE = 800 };
static char folder[512];

static const char *at(const char *name) {
  static char paths[4][PLACE];
  static int next;
  char *path = paths[next++ % 4];
  snprintf(path, PLACE, "%s/%s", folder, name);
  return path;
}

static int fresh_folder(void **state) {
  char command[2 * PLACE];
  const char *scratch = getenv("CBGEN_TEST_TMP");
  (void)state;
  snprintf(folder, sizeof folder, "%s/files", scratch ? scratch : "/tmp");
  snprintf(command, sizeof command, "rm -rf '%s' && mkdir -p '%s'", folder, folder);
  return system(command);
}

static void put(const char *path, const char *text) {
  struct cb_diag diag = {0};
  assert_ok(cb_file_put(path, text, strlen(text), &diag));
}

static void must_hold(const char *path, const char *text) {
  char bytes[256] = "";
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  bytes[fread(bytes, 1, sizeof bytes - 1, file)] = 0;
  fclose(file);
  assert_string_equal(bytes, text);
}

static struct stat info_of(const char *path) {
  struct stat info;
  assert_int_equal(lstat(path, &info), 0);
  return info;
}

static int files_in(const char *path) {
  int count = 0;
  DIR *listing = opendir(path);
  assert_non_null(listing);
  while (readdir(listing)) count++;
  closedir(listing);
  return count - 2;
}

/* ---- what stands at the path */

static void a_new_file_has_the_permissions_of_any_new_file(void **state) {
  (void)state;
  const mode_t before = umask(027);
  put(at("new"), "text");
  umask(before);
  assert_int_equal(info_of(at("new")).st_mode & 07777, 0640);
  assert_int_equal(files_in(folder), 1);
}

static void a_replaced_file_keeps_its_permissions_and_owner(void **state) {
  static const mode_t modes[] = {0600, 0644, 0755, 0666};
  (void)state;
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    put(at("old"), "before");
    assert_int_equal(chmod(at("old"), modes[i]), 0);
    if (!geteuid()) assert_int_equal(chown(at("old"), 65534, 65534), 0);
    put(at("old"), "after");
    must_hold(at("old"), "after");
    assert_int_equal(info_of(at("old")).st_mode & 07777, modes[i]);
    if (!geteuid()) assert_int_equal(info_of(at("old")).st_uid, 65534);
  }
}

static void a_link_is_followed_whether_its_target_is_there_or_not(void **state) {
  (void)state;
  assert_int_equal(mkdir(at("there"), 0700), 0);
  put(at("there/target"), "before");
  assert_int_equal(symlink("there/target", at("link")), 0);
  assert_int_equal(symlink("link", at("link-to-link")), 0);
  assert_int_equal(symlink("there/none", at("dangling")), 0);
  put(at("link-to-link"), "after");
  put(at("dangling"), "new");
  must_hold(at("there/target"), "after");
  must_hold(at("there/none"), "new");
  assert_true(S_ISLNK(info_of(at("link")).st_mode) && S_ISLNK(info_of(at("link-to-link")).st_mode));
  assert_true(S_ISLNK(info_of(at("dangling")).st_mode));
  assert_int_equal(files_in(at("there")), 2);
  assert_int_equal(symlink("loop", at("loop")), 0);
  assert_int_equal(cb_file_put(at("loop"), "x", 1, NULL), CB_ERR_IO);
}

static void a_device_and_a_pipe_are_written_to_and_stay(void **state) {
  char text[16] = "";
  (void)state;
  assert_int_equal(mkfifo(at("pipe"), 0600), 0);
  const int reader = open(at("pipe"), O_RDONLY | O_NONBLOCK);
  assert_true(reader >= 0);
  put(at("pipe"), "text");
  assert_int_equal(read(reader, text, sizeof text), 4);
  assert_string_equal(text, "text");
  close(reader);
  assert_true(S_ISFIFO(info_of(at("pipe")).st_mode));
  assert_true(cb_file_is_stream(at("pipe")) && cb_file_is_stream("-") && !cb_file_is_stream(at("none")));
  if (!mknod(at("null"), S_IFCHR | 0666, makedev(1, 3))) {
    const int usable = open(at("null"), O_WRONLY); /* containers permit the node and not its use */
    if (usable >= 0) put(at("null"), "text");
    if (usable >= 0) close(usable);
    assert_true(S_ISCHR(info_of(at("null")).st_mode));
  }
  if (geteuid()) put("/dev/null", "text"); /* whoever is not root cannot replace it in any case */
  assert_true(S_ISCHR(info_of("/dev/null").st_mode));
}

static void what_cannot_be_written_is_refused_and_left(void **state) {
  (void)state;
  assert_int_equal(mkdir(at("folder"), 0700), 0);
  assert_int_equal(cb_file_put(at("folder"), "x", 1, NULL), CB_ERR_IO);
  assert_int_equal(cb_file_put(at("none/file"), "x", 1, NULL), CB_ERR_IO);
  assert_int_equal(cb_file_put("/dev/full", "x", 1, NULL), CB_ERR_IO);
  put(at("mine"), "before");
  assert_int_equal(chmod(at("mine"), 0444), 0);
  if (geteuid()) assert_int_equal(cb_file_put(at("mine"), "x", 1, NULL), CB_ERR_IO);
  must_hold(at("mine"), "before");
  assert_int_equal(files_in(folder), 2);
}

static void a_name_as_long_as_names_may_be_is_written(void **state) {
  char name[256];
  (void)state;
  memset(name, 'a', 255);
  name[255] = 0;
  put(at(name), "before");
  put(at(name), "after");
  must_hold(at(name), "after");
  assert_int_equal(files_in(folder), 1);
}

/* ---- several files */

static struct cb_outfile *create(const char *path, const char *text) {
  struct cb_diag diag = {0};
  struct cb_outfile *out;
  assert_ok(cb_file_create(&out, path, &diag));
  cb_file_write(out, text, strlen(text));
  return out;
}

static void several_files_appear_all_or_none(void **state) {
  struct cb_diag diag = {0};
  (void)state;
  put(at("b"), "before");
  for (int fails = 0; fails < 2; fails++) {
    struct cb_outfile *files[] = {create(at("a"), "new"), create(at("b"), "after"), create(at("c"), "new")};
    if (fails) assert_int_equal(mkdir(at("c"), 0700), 0); /* since it was looked at */
    const enum cb_status s = cb_files_commit(files, 3, &diag);
    for (int i = 0; i < 3; i++) cb_file_abandon(files[i]);
    assert_int_equal(s, fails ? CB_ERR_IO : CB_OK);
    if (fails) assert_non_null(strstr(diag.message, at("c")));
    must_hold(at("b"), fails ? "before" : "after");
    assert_int_equal(access(at("a"), F_OK), fails ? -1 : 0);
    assert_int_equal(files_in(folder), fails ? 2 : 3);
    unlink(at("a"));
    unlink(at("c"));
    put(at("b"), "before");
  }
}

static void an_output_that_is_the_input_or_another_output_is_known(void **state) {
  (void)state;
  put(at("matrix"), "input");
  assert_int_equal(link(at("matrix"), at("other-name")), 0);
  assert_int_equal(symlink("matrix", at("link")), 0);
  assert_int_equal(symlink("new", at("to-new")), 0);
  struct cb_outfile *hard = create(at("other-name"), ""), *soft = create(at("link"), ""), *own = create(at("own"), ""),
                    *fresh = create(at("new"), ""), *same = create(at("to-new"), ""), *null = create("/dev/null", "");
  assert_true(cb_file_replaces(hard, at("matrix")) && cb_file_replaces(soft, at("matrix")));
  assert_false(cb_file_replaces(own, at("matrix")) || cb_file_replaces(null, "/dev/null"));
  assert_true(cb_files_clash(hard, soft) && cb_files_clash(fresh, same));
  assert_false(cb_files_clash(own, fresh) || cb_files_clash(hard, own) || cb_files_clash(null, null));
  struct cb_outfile *const all[] = {hard, soft, own, fresh, same, null};
  for (int i = 0; i < 6; i++) cb_file_abandon(all[i]);
  assert_int_equal(files_in(folder), 4);
}

/* ---- no write ends the process */

/* Runs `check` in a child, since what it guards against is the end of the process. */
static void in_child(void (*check)(void)) {
  int status;
  fflush(NULL);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (!child) {
    signal(SIGXFSZ, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    check();
    _exit(0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  if (WIFSIGNALED(status)) fail_msg("signal %d ended the process", WTERMSIG(status));
  if (WEXITSTATUS(status)) fail_msg("check %d of the child failed", WEXITSTATUS(status));
}

/* cmocka's asserts do not work in a child: the line tells which failed. */
#define child_must(condition)                                                                                     \
  do {                                                                                                            \
    if (!(condition)) {                                                                                           \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                             \
      _exit(1);                                                                                                   \
    }                                                                                                             \
  } while (0)

static char large[1 << 20];

static void limit_files(void) {
  const struct rlimit limit = {4096, 1 << 30};
  child_must(!setrlimit(RLIMIT_FSIZE, &limit));
}

static void nothing_is_pending(void) {
  sigset_t pending;
  child_must(!sigpending(&pending));
  child_must(sigisemptyset(&pending));
}

static void write_beyond_the_limit(void) {
  limit_files();
  child_must(cb_file_put(at("large"), large, sizeof large, NULL) == CB_ERR_IO);
  child_must(cb_file_put(at("kept"), large, sizeof large, NULL) == CB_ERR_IO);
  nothing_is_pending();
  raise(SIGXFSZ); /* what others raise ends the process as before */
  _exit(3);
}

static void a_limit_on_the_size_of_files_is_an_error_and_no_signal(void **state) {
  int status;
  (void)state;
  put(at("kept"), "before");
  const pid_t child = fork();
  assert_true(child >= 0);
  if (!child) write_beyond_the_limit();
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ); /* the one of its own, at the end */
  must_hold(at("kept"), "before");
  assert_int_equal(files_in(folder), 1);
}

/* The limit comes after the cache has looked at it. */
static ssize_t limited_write(int fd, const void *bytes, size_t length) {
  limit_files();
  return write(fd, bytes, length);
}

static void cache_beyond_the_limit(void) {
  struct cb_cache *cache;
  struct cb_cache_calls calls = cb_cache_system_calls;
  const struct cb_cache_section section = {"source", large, sizeof large};
  const struct cb_cache_options options = {.directory = at("cache"), .calls = &calls};
  calls.write = limited_write;
  child_must(!cb_cache_open(&cache, &options, NULL));
  child_must(cb_cache_put(cache, (struct cb_hash){1, 2}, NULL, &section, 1, NULL) == CB_CACHE_UNWRITABLE);
  child_must(cb_cache_put(cache, (struct cb_hash){1, 2}, NULL, &section, 1, NULL) == CB_CACHE_TOO_LARGE);
  nothing_is_pending();
  cb_cache_close(cache);
}

static void a_cache_that_may_not_grow_costs_an_entry_and_nothing_else(void **state) {
  (void)state;
  in_child(cache_beyond_the_limit);
  assert_int_equal(files_in(at("cache")), 0);
}

static void write_to_nobody(void) {
  struct cb_outfile *out;
  const int reader = open(at("pipe"), O_RDONLY | O_NONBLOCK);
  child_must(!cb_file_create(&out, at("pipe"), NULL));
  close(reader);
  cb_file_write(out, large, sizeof large);
  struct cb_diag diag = {0};
  child_must(cb_file_commit(out, &diag) == CB_ERR_IO);
  child_must(strstr(diag.message, strerror(EPIPE)));
  cb_file_abandon(out);
  nothing_is_pending();
}

static void a_pipe_without_a_reader_is_an_error_and_no_signal(void **state) {
  (void)state;
  assert_int_equal(mkfifo(at("pipe"), 0600), 0);
  in_child(write_to_nobody);
}

/* What waited before, with the signal blocked, is the caller's and still waits. */
static void keep_pending(void) {
  struct cb_held_signals held;
  sigset_t set, mask;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  sigprocmask(SIG_BLOCK, &set, NULL);
  raise(SIGPIPE);
  cb_signals_hold(&held);
  raise(SIGXFSZ);
  cb_signals_release(&held);
  sigpending(&set);
  child_must(sigismember(&set, SIGPIPE) == 1 && !sigismember(&set, SIGXFSZ));
  sigprocmask(SIG_BLOCK, NULL, &mask);
  child_must(sigismember(&mask, SIGPIPE) == 1 && !sigismember(&mask, SIGXFSZ));
}

static void signals_that_waited_before_still_wait(void **state) {
  (void)state;
  in_child(keep_pending);
}

enum { NO_MOUNT = 42 };

static void fill_a_disk(void) {
  if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
      mount("none", at("disk"), "tmpfs", 0, "size=64k"))
    _exit(NO_MOUNT);
  child_must(!cb_file_put(at("disk/kept"), "before", 6, NULL));
  child_must(cb_file_put(at("disk/kept"), large, sizeof large, NULL) == CB_ERR_IO);
  child_must(cb_file_put(at("disk/new"), large, sizeof large, NULL) == CB_ERR_IO);
  child_must(info_of(at("disk/kept")).st_size == 6 && files_in(at("disk")) == 1);
  _exit(0);
}

static void a_full_disk_leaves_what_was_there(void **state) {
  int status;
  (void)state;
  assert_int_equal(mkdir(at("disk"), 0700), 0);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (!child) fill_a_disk();
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  if (WEXITSTATUS(status) == NO_MOUNT) skip_because("no file system can be mounted here");
  assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void) {
#define RULE(name) cmocka_unit_test_setup(name, fresh_folder)
  const struct CMUnitTest tests[] = {
      RULE(a_new_file_has_the_permissions_of_any_new_file),
      RULE(a_replaced_file_keeps_its_permissions_and_owner),
      RULE(a_link_is_followed_whether_its_target_is_there_or_not),
      RULE(a_device_and_a_pipe_are_written_to_and_stay),
      RULE(what_cannot_be_written_is_refused_and_left),
      RULE(a_name_as_long_as_names_may_be_is_written),
      RULE(several_files_appear_all_or_none),
      RULE(an_output_that_is_the_input_or_another_output_is_known),
      RULE(a_limit_on_the_size_of_files_is_an_error_and_no_signal),
      RULE(a_cache_that_may_not_grow_costs_an_entry_and_nothing_else),
      RULE(a_pipe_without_a_reader_is_an_error_and_no_signal),
      RULE(signals_that_waited_before_still_wait),
      RULE(a_full_disk_leaves_what_was_there),
  };
  return exit_code_of(cmocka_run_group_tests_name("files", tests, NULL, NULL));
}
