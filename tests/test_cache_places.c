// SPDX-License-Identifier: Apache-2.0
/* The cache beside its own directory: directories that are only read, one in memory, and turns, by which one process
 * makes what many have missed. */
#include "tests/cache_support.h"

#include "base/clock.h"

#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

enum { LENGTH = 3000 };

static char own[420], first[420], second[420];

/* Directories of a test that do not exist yet. */
static void name_places(const char *name) {
  const char *base = fresh(name);
  snprintf(own, sizeof own, "%.400s/own", base);
  snprintf(first, sizeof first, "%.400s/first", base);
  snprintf(second, sizeof second, "%.400s/second", base);
}

static void put_into(const char *directory, uint64_t key) {
  struct cb_cache *cache = open_cache(directory, 0);
  assert_outcome(put(cache, key_of(key), LENGTH), CB_CACHE_STORED);
  cb_cache_close(cache);
}

static struct cb_cache *open_path(const char *path) {
  struct cb_diag diag = {0};
  struct cb_cache *cache;
  const struct cb_cache_options options = {.directory = own, .path = path};
  assert_ok(cb_cache_open(&cache, &options, &diag));
  return cache;
}

static struct cb_cache *open_both(void) {
  char path[1300];
  snprintf(path, sizeof path, "%s:%s", first, second);
  return open_path(path);
}

/* Byte 2000 of an entry's file is another one. */
static void damage(const char *directory, uint64_t key) {
  size_t length;
  char *bytes = slurp(path_of(directory, key_of(key)), &length);
  bytes[2000] ^= 1;
  spit(path_of(directory, key_of(key)), bytes, length);
  free(bytes);
}

static void set_old(const char *path) {
  const struct timespec times[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
  assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static int64_t changed(const char *path) {
  struct stat info;
  assert_int_equal(lstat(path, &info), 0);
  return (int64_t)info.st_mtim.tv_sec;
}

/* ---- directories that are only read */

static void bases_are_read_in_their_order_and_not_changed(void **state) {
  (void)state;
  name_places("bases");
  put_into(first, 1);
  put_into(second, 2);
  set_old(path_of(first, key_of(1)));
  set_old(first);
  struct cb_cache *cache = open_both();
  assert_int_equal(cb_cache_bases(cache), 2);
  assert_string_equal(cb_cache_base_directory(cache, 1), second);
  assert_string_equal(cb_cache_remark(cache), "");
  assert_outcome(get(cache, key_of(1), LENGTH), CB_CACHE_HIT);
  assert_outcome(get(cache, key_of(2), LENGTH), CB_CACHE_HIT);
  assert_outcome(get(cache, key_of(3), LENGTH), CB_CACHE_ABSENT);
  assert_outcome(put(cache, key_of(3), LENGTH), CB_CACHE_STORED);
  assert_int_equal(changed(path_of(first, key_of(1))), 1000000); /* a hit leaves no stamp */
  assert_int_equal(changed(first), 1000000);
  assert_int_equal(count_files(own, ".entry"), 1);
  cb_cache_close(cache);
}

static void damaged_entries_of_bases_stay_and_are_passed_over(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_cache_entry entry;
  name_places("damaged_bases");
  for (uint64_t key = 1; key <= 2; key++) put_into(first, key);
  put_into(second, 1);
  damage(first, 1);
  damage(first, 2);
  struct cb_cache *cache = open_both();
  assert_outcome(get(cache, key_of(1), LENGTH), CB_CACHE_HIT); /* the second has a good one */
  assert_outcome(cb_cache_get(cache, key_of(2), &entry, &diag), CB_CACHE_DAMAGED);
  assert_true(*diag.message);
  assert_int_equal(count_files(first, ".entry"), 2);
  assert_outcome(put(cache, key_of(2), LENGTH), CB_CACHE_STORED); /* from now on its own */
  assert_outcome(get(cache, key_of(2), LENGTH), CB_CACHE_HIT);
  damage(own, 2); /* which is removed, while the base's is still of no use */
  assert_outcome(get(cache, key_of(2), LENGTH), CB_CACHE_DAMAGED);
  assert_int_equal(count_files(own, ".entry"), 0);
  cb_cache_close(cache);
}

static void expect_remark(const char *path, const char *words, int bases) {
  struct cb_cache *cache = open_path(path);
  if (!strstr(cb_cache_remark(cache), words)) fail_msg("'%s' lacks '%s'", cb_cache_remark(cache), words);
  assert_int_equal(cb_cache_bases(cache), bases);
  assert_int_equal(cb_cache_state(cache), CB_CACHE_ON);
  cb_cache_close(cache);
}

static void bases_that_others_could_write_are_not_read(void **state) {
  (void)state;
  char path[1300], link[700];
  name_places("refused_bases");
  put_into(first, 1);
  put_into(second, 2);
  snprintf(path, sizeof path, "relative:%s:", second);
  expect_remark(path, "it is no absolute path", 1);
  snprintf(path, sizeof path, "%s/none:%s", first, second);
  expect_remark(path, strerror(ENOENT), 1);
  snprintf(path, sizeof path, "%s:%s", path_of(first, key_of(1)), second);
  expect_remark(path, "it is no directory", 1);
  snprintf(link, sizeof link, "%s-link", first);
  assert_int_equal(symlink("first", link), 0);
  expect_remark(link, "it is no directory", 0);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(chmod(first, i ? 0720 : 0702), 0);
    expect_remark(first, "others may write to it", 0);
  }
  assert_int_equal(chmod(first, 0700), 0);
  assert_int_equal(chmod(path_of(first, key_of(1)), 0620), 0);
  struct cb_cache *cache = open_both();
  assert_outcome(get(cache, key_of(1), LENGTH), CB_CACHE_FOREIGN);
  assert_outcome(get(cache, key_of(2), LENGTH), CB_CACHE_HIT);
  cb_cache_close(cache);
  char many[20 * 520] = "";
  for (int i = 0; i < 18; i++) snprintf(many + strlen(many), sizeof many - strlen(many), "%s:", second);
  expect_remark(many, "too many", 16);
}

/* Only root can make files of another user. */
static void bases_belong_to_root_or_to_the_user(void **state) {
  (void)state;
  name_places("owners");
  put_into(first, 1);
  put_into(second, 2);
  if (geteuid()) return;
  assert_int_equal(chown(first, 12345, 12345), 0);
  expect_remark(first, "another user, who is not root", 0);
  assert_int_equal(chmod(path_of(second, key_of(2)), 0644), 0);
  assert_int_equal(chmod(second, 0755), 0);
  /* another user reads what root has made, and nobody else's */
  char place[700];
  snprintf(place, sizeof place, "%s-of-user", own);
  assert_int_equal(mkdir(place, 0700), 0);
  assert_int_equal(chown(place, 12345, 12345), 0);
  const struct cb_cache_options options = {.directory = place, .path = second};
  struct cb_cache *cache;
  struct cb_diag diag = {0};
  assert_int_equal(seteuid(12345), 0);
  const enum cb_status s = cb_cache_open(&cache, &options, &diag);
  const enum cb_cache_outcome outcome = s ? CB_CACHE_UNUSED : get(cache, key_of(2), LENGTH);
  const int bases = cb_cache_bases(cache);
  cb_cache_close(cache);
  assert_int_equal(seteuid(0), 0);
  if (!s && bases) assert_outcome(outcome, CB_CACHE_HIT); /* else that user cannot enter this directory at all */
}

static void bases_serve_where_the_cache_itself_cannot(void **state) {
  (void)state;
  struct cb_cache *cache;
  name_places("alone");
  put_into(first, 1);
  spit(own, "x", 1); /* no directory */
  const struct cb_cache_options options = {.directory = own, .path = first};
  assert_int_equal(cb_cache_open(&cache, &options, NULL), CB_ERR_IO);
  assert_int_equal(cb_cache_state(cache), CB_CACHE_UNUSABLE);
  assert_outcome(get(cache, key_of(1), LENGTH), CB_CACHE_HIT);
  assert_outcome(get(cache, key_of(2), LENGTH), CB_CACHE_ABSENT);
  assert_outcome(put(cache, key_of(2), LENGTH), CB_CACHE_UNUSED);
  cb_cache_close(cache);
}

static void the_environment_names_bases(void **state) {
  (void)state;
  struct cb_cache *cache;
  name_places("environment");
  put_into(first, 1);
  setenv("CBGEN_CACHE_PATH", first, 1);
  struct cb_cache_options options = {.directory = own};
  assert_int_equal(cb_cache_open(&cache, &options, NULL), CB_OK);
  assert_outcome(get(cache, key_of(1), LENGTH), CB_CACHE_HIT);
  cb_cache_close(cache);
  options.path = "";
  assert_int_equal(cb_cache_open(&cache, &options, NULL), CB_OK);
  assert_outcome(get(cache, key_of(1), LENGTH), CB_CACHE_ABSENT);
  cb_cache_close(cache);
  options = (struct cb_cache_options){.directory = "", .in_memory = 1}; /* switched off: nothing of it */
  assert_int_equal(cb_cache_open(&cache, &options, NULL), CB_OK);
  assert_int_equal(cb_cache_state(cache), CB_CACHE_OFF);
  assert_outcome(get(cache, key_of(1), LENGTH), CB_CACHE_UNUSED);
  cb_cache_close(cache);
  unsetenv("CBGEN_CACHE_PATH");
}

/* ---- in memory */

static int never_writable(int folder) {
  (void)folder;
  errno = EROFS;
  return -1;
}

/* The first directory that is asked about cannot be written, the others can. */
static int asked;
static int first_is_not_writable(int folder) {
  return asked++ ? cb_cache_system_calls.may_write(folder) : never_writable(folder);
}

static char memory[600];

/* The directory that the cache has in memory. */
static const char *name_memory(void) {
  static char path[700];
  snprintf(path, sizeof path, "%s/cbgen-%u", memory, (unsigned)geteuid());
  return path;
}

static struct cb_cache *open_in_memory(const char *directory, const struct cb_cache_calls *calls, int64_t limit) {
  struct cb_cache *cache;
  const struct cb_cache_options options = {
      .directory = directory, .path = "", .in_memory = 1, .calls = calls, .limit = limit};
  cb_cache_open(&cache, &options, NULL);
  return cache;
}

static void memory_is_used_where_the_directory_cannot_be(void **state) {
  (void)state;
  name_places("memory");
  snprintf(memory, sizeof memory, "%s", second);
  assert_true(!mkdir(own, 0700) || errno == ENOENT);
  put_into(first, 1); /* makes the directories above */
  assert_int_equal(mkdir(memory, 0700), 0);
  setenv("CBGEN_CACHE_MEMORY", memory, 1);
  spit(own, "x", 1);
  struct cb_cache *cache = open_in_memory(own, NULL, 0);
  assert_int_equal(cb_cache_state(cache), CB_CACHE_ON);
  assert_string_equal(cb_cache_directory(cache), name_memory());
  assert_non_null(strstr(cb_cache_remark(cache), "in memory, since"));
  assert_non_null(strstr(cb_cache_remark(cache), own));
  assert_int_equal(cb_cache_limit(cache), CB_CACHE_MEMORY_LIMIT);
  assert_outcome(put(cache, key_of(2), LENGTH), CB_CACHE_STORED);
  cb_cache_close(cache);
  cache = open_in_memory(own, NULL, 1 << 20); /* another process would find it as well */
  assert_int_equal(cb_cache_limit(cache), 1 << 20);
  assert_outcome(get(cache, key_of(2), LENGTH), CB_CACHE_HIT);
  cb_cache_close(cache);
  cache = open_in_memory(first, NULL, 0); /* not where the directory can be written */
  assert_string_equal(cb_cache_directory(cache), first);
  cb_cache_close(cache);
}

static void a_directory_that_cannot_be_written_is_read(void **state) {
  (void)state;
  struct cb_cache_calls calls = cb_cache_system_calls;
  calls.may_write = first_is_not_writable;
  asked = 0;
  struct cb_cache *cache = open_in_memory(first, &calls, 0);
  assert_string_equal(cb_cache_directory(cache), name_memory());
  assert_int_equal(cb_cache_bases(cache), 1);
  assert_string_equal(cb_cache_base_directory(cache, 0), first);
  assert_outcome(get(cache, key_of(1), LENGTH), CB_CACHE_HIT);
  assert_outcome(put(cache, key_of(3), LENGTH), CB_CACHE_STORED);
  assert_int_equal(count_files(first, ".entry"), 1);
  cb_cache_close(cache);
}

static void without_memory_nothing_changes(void **state) {
  (void)state;
  struct cb_cache_calls calls = cb_cache_system_calls;
  calls.may_write = never_writable;
  struct cb_cache *cache = open_in_memory(first, &calls, 0); /* memory cannot be written, either */
  assert_string_equal(cb_cache_directory(cache), first);
  assert_int_equal(cb_cache_bases(cache), 0);
  assert_outcome(get(cache, key_of(1), LENGTH), CB_CACHE_HIT);
  cb_cache_close(cache);
  assert_int_equal(chmod(name_memory(), 0777), 0); /* anybody's */
  cache = open_in_memory(own, NULL, 0);
  assert_int_equal(cb_cache_state(cache), CB_CACHE_UNUSABLE);
  cb_cache_close(cache);
  assert_int_equal(chmod(name_memory(), 0700), 0);
  char nowhere[700];
  snprintf(nowhere, sizeof nowhere, "%s-none/at/all", memory);
  const char *const roots[] = {"", "relative", nowhere};
  for (int i = 0; i < 3; i++) {
    setenv("CBGEN_CACHE_MEMORY", roots[i], 1);
    cache = open_in_memory(own, NULL, 0);
    assert_int_equal(cb_cache_state(cache), CB_CACHE_UNUSABLE);
    cb_cache_close(cache);
  }
  nowhere[strlen(memory) + 5] = 0; /* nothing was made of it */
  assert_int_equal(access(nowhere, F_OK), -1);
  unsetenv("CBGEN_CACHE_MEMORY");
}

/* ---- turns */

static int turn_files(void) {
  return count_files(own, ".turn");
}

/* A child has the turn for so long. Returns how long this process waited for it. */
static double wait_for_the_turn(useconds_t held) {
  int ready[2];
  char byte = 0;
  struct cb_cache_turn turn;
  name_places("turns");
  struct cb_cache *cache = open_cache(own, 0);
  assert_int_equal(pipe(ready), 0);
  const pid_t child = fork();
  if (!child) {
    const int there = cb_cache_turn_begin(cache, key_of(1), 60, &turn);
    if (there || write(ready[1], &byte, 1) != 1) _exit(1);
    usleep(held);
    if (put(cache, key_of(1), LENGTH) != CB_CACHE_STORED) _exit(2);
    cb_cache_turn_end(cache, &turn);
    _exit(0);
  }
  assert_int_equal(read(ready[0], &byte, 1), 1);
  assert_int_equal(cb_cache_turn_begin(cache, key_of(2), 0, &turn), 0); /* of another key */
  assert_true(turn.has_file);
  cb_cache_turn_end(cache, &turn);
  assert_int_equal(cb_cache_turn_begin(cache, key_of(1), 60, &turn), 1);
  assert_true(turn.has_file);
  assert_int_equal(turn_files(), 1);
  const double waited = turn.waited;
  cb_cache_turn_end(cache, &turn);
  cb_cache_turn_end(cache, &turn);
  assert_int_equal(turn_files(), 0);
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  cb_cache_close(cache);
  close(ready[0]);
  close(ready[1]);
  return waited;
}

/* On a loaded machine this process may come only when the turn is over: then it is held for longer. */
static void one_has_the_turn_and_the_others_wait(void **state) {
  (void)state;
  for (useconds_t held = 200000; wait_for_the_turn(held) <= 0.05; held *= 4) assert_true(held < 30000000);
}

static void patience_ends_and_so_does_a_killed_process(void **state) {
  (void)state;
  int ready[2];
  char byte = 0;
  struct cb_cache_turn turn;
  name_places("patience");
  struct cb_cache *cache = open_cache(own, 0);
  assert_int_equal(pipe(ready), 0);
  const pid_t child = fork();
  if (!child) {
    cb_cache_turn_begin(cache, key_of(1), 60, &turn);
    if (write(ready[1], &byte, 1) != 1) _exit(1);
    for (;;) pause();
  }
  assert_int_equal(read(ready[0], &byte, 1), 1);
  const double start = cb_seconds();
  assert_int_equal(cb_cache_turn_begin(cache, key_of(1), 0.1, &turn), 0);
  assert_true(!turn.has_file && cb_seconds() - start >= 0.1);
  cb_cache_turn_end(cache, &turn);
  assert_int_equal(turn_files(), 1);
  kill(child, SIGKILL);
  assert_int_equal(waitpid(child, NULL, 0), child);
  assert_int_equal(turn_files(), 1);
  assert_int_equal(cb_cache_turn_begin(cache, key_of(1), 60, &turn), 0);
  assert_true(turn.has_file);
  cb_cache_turn_end(cache, &turn);
  cb_cache_close(cache);
  close(ready[0]);
  close(ready[1]);
}

/* One number in a file, which each of them reads, and writes a larger one. */
static void count_up(const char *path) {
  char text[32] = "0";
  int fd = open(path, O_RDWR | O_CREAT, 0600);
  if (fd < 0 || read(fd, text, sizeof text - 1) < 0) _exit(3);
  const int number = atoi(text);
  usleep(100);
  const int length = snprintf(text, sizeof text, "%d   ", number + 1);
  if (pwrite(fd, text, (size_t)length, 0) != length) _exit(4);
  close(fd);
}

static void turns_never_overlap(void **state) {
  (void)state;
  enum { MEMBERS = 8, ROUNDS = 60 };
  pid_t children[MEMBERS];
  char path[700];
  size_t length;
  name_places("overlap");
  struct cb_cache *cache = open_cache(own, 0);
  snprintf(path, sizeof path, "%s-number", own);
  for (int i = 0; i < MEMBERS; i++) {
    children[i] = fork();
    if (children[i]) continue;
    for (int round = 0; round < ROUNDS; round++) {
      struct cb_cache_turn turn;
      cb_cache_turn_begin(cache, key_of(1), 600, &turn);
      if (!turn.has_file) _exit(1);
      count_up(path);
      cb_cache_turn_end(cache, &turn);
    }
    _exit(0);
  }
  for (int i = 0; i < MEMBERS; i++) {
    int status;
    assert_int_equal(waitpid(children[i], &status, 0), children[i]);
    assert_int_equal(status, 0);
  }
  char *text = slurp(path, &length);
  text[length] = 0;
  assert_int_equal(atoi(text), MEMBERS * ROUNDS);
  free(text);
  assert_int_equal(turn_files(), 0);
  cb_cache_close(cache);
}

static int no_lock(int fd, int operation) {
  (void)fd;
  (void)operation;
  errno = ENOLCK;
  return -1;
}

static void without_locks_everybody_has_the_turn(void **state) {
  (void)state;
  struct cb_cache *cache;
  struct cb_cache_turn turn;
  struct cb_cache_calls calls = cb_cache_system_calls;
  name_places("unlocked");
  calls.lock = no_lock;
  const struct cb_cache_options options = {.directory = own, .calls = &calls};
  assert_int_equal(cb_cache_open(&cache, &options, NULL), CB_OK);
  const int descriptors = open_descriptors();
  const double start = cb_seconds();
  for (int i = 0; i < 3; i++) assert_int_equal(cb_cache_turn_begin(cache, key_of(1), 60, &turn), 0);
  assert_true(!turn.has_file && cb_seconds() - start < 30);
  assert_int_equal(open_descriptors(), descriptors);
  cb_cache_turn_end(cache, &turn);
  cb_cache_close(cache);
  assert_int_equal(cb_cache_turn_begin(NULL, key_of(1), 60, &turn), 0);
  cb_cache_turn_end(NULL, &turn);
}

/* Of processes that were killed; a day later. */
static void old_turns_are_pruned(void **state) {
  (void)state;
  char name[CB_CACHE_NAME], path[700];
  struct cb_diag diag = {0};
  struct cb_cache_listing listing = {0};
  name_places("old_turns");
  struct cb_cache *cache = open_cache(own, 0);
  for (uint64_t key = 1; key <= 2; key++) {
    cb_cache_turn_name(key_of(key), name);
    snprintf(path, sizeof path, "%s/%s", own, name);
    spit(path, "", 0);
  }
  set_old(path);
  assert_ok(cb_cache_list(cache, &listing, &diag));
  assert_int_equal(listing.count + listing.drafts, 0);
  cb_cache_listing_release(&listing);
  assert_ok(cb_cache_prune(cache, INT64_MAX, NULL, &diag));
  assert_int_equal(turn_files(), 1);
  assert_int_equal(access(path, F_OK), -1);
  cb_cache_close(cache);
}

int main(void) {
  unsetenv("CBGEN_CACHE_SIZE");
  unsetenv("CBGEN_CACHE_PATH");
  unsetenv("CBGEN_CACHE_MEMORY");
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bases_are_read_in_their_order_and_not_changed),
      cmocka_unit_test(damaged_entries_of_bases_stay_and_are_passed_over),
      cmocka_unit_test(bases_that_others_could_write_are_not_read),
      cmocka_unit_test(bases_belong_to_root_or_to_the_user),
      cmocka_unit_test(bases_serve_where_the_cache_itself_cannot),
      cmocka_unit_test(the_environment_names_bases),
      cmocka_unit_test(memory_is_used_where_the_directory_cannot_be),
      cmocka_unit_test(a_directory_that_cannot_be_written_is_read),
      cmocka_unit_test(without_memory_nothing_changes),
      cmocka_unit_test(one_has_the_turn_and_the_others_wait),
      cmocka_unit_test(patience_ends_and_so_does_a_killed_process),
      cmocka_unit_test(turns_never_overlap),
      cmocka_unit_test(without_locks_everybody_has_the_turn),
      cmocka_unit_test(old_turns_are_pruned),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
