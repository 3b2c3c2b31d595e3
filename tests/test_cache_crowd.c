// SPDX-License-Identifier: Apache-2.0
/* Many processes on one cache, which is empty when they start at the same moment: nobody fails, waits for another or
 * reads a torn entry, also while one of them prunes, and when they are killed in the middle of writing.
 *
 * The processes are this program again, started anew: OpenMP's threads do not survive a fork. */
#include "tests/cache_support.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

enum { MEMBERS = 32, SHARED_KEYS = 8, ROUNDS = 25, SECONDS = 1500 };
enum { LIMIT = 40 << 20 };

/* What a member reports, in one write to the pipe. */
struct report {
  int64_t hits, misses, stored, present, evicted;
};

/* Key 0 is mapped when it is read, the others are of any length. */
static int64_t length_of(uint64_t number) {
  return number == 0 ? LARGE : (int64_t)(number * 7919 % 200000);
}

/* ---- a member */

/* Gets, else puts. 0: all is well; else an exit code. */
static int use_key(struct cb_cache *cache, uint64_t number) {
  struct cb_cache_entry entry;
  const struct cb_hash key = key_of(number);
  const enum cb_cache_outcome outcome = cb_cache_get(cache, key, &entry, NULL);
  if (outcome == CB_CACHE_HIT) {
    const int right = is_right(&entry, key, length_of(number));
    cb_cache_entry_release(&entry);
    return right ? 0 : 10;
  }
  if (outcome != CB_CACHE_ABSENT) return 20 + (int)outcome;
  const enum cb_cache_outcome result = put(cache, key, length_of(number));
  return result == CB_CACHE_STORED || result == CB_CACHE_PRESENT ? 0 : 40 + (int)result;
}

/* Shared keys, one's own, and for the first member nothing but pruning to a size that leaves some. */
static int take_part(struct cb_cache *cache, unsigned member) {
  int failed = 0;
  struct cb_diag diag = {0};
  for (unsigned round = 0; round < ROUNDS && !failed; round++) {
    if (member == 0) {
      struct cb_cache_listing listing = {0};
      if (cb_cache_list(cache, &listing, &diag)) failed = 3;
      cb_cache_listing_release(&listing);
      if (cb_cache_prune(cache, round % 2 ? 200000 : 20 << 20, NULL, &diag)) failed = 4;
    } else {
      failed = use_key(cache, round ? 1 + (member + round) % (SHARED_KEYS - 1) : 0);
      if (!failed) failed = use_key(cache, 1000 * member + round);
    }
  }
  if (diag.message[0]) fprintf(stderr, "%s\n", diag.message);
  return failed;
}

/* `start` closes when all are there. */
static int member_main(const char *directory, unsigned member, int start, int results) {
  char byte;
  struct cb_cache *cache;
  struct cb_diag diag = {0};
  const struct cb_cache_options options = {.directory = directory, .limit = LIMIT};
  while (read(start, &byte, 1) < 0 && errno == EINTR) continue;
  if (cb_cache_open(&cache, &options, &diag)) {
    fprintf(stderr, "%s\n", diag.message);
    return 2;
  }
  const int failed = take_part(cache, member);
  const struct cb_cache_counts counts = cb_cache_counts(cache);
  const struct report report = {counts.of[CB_CACHE_HIT], counts.of[CB_CACHE_ABSENT],
                                counts.of[CB_CACHE_STORED], counts.of[CB_CACHE_PRESENT], counts.evicted};
  cb_cache_close(cache);
  if (write(results, &report, sizeof report) != (ssize_t)sizeof report) return 5;
  return failed;
}

/* Writes large and small entries until it is killed. */
static int writer_main(const char *directory, unsigned member) {
  struct cb_cache *cache = NULL;
  const struct cb_cache_options options = {.directory = directory, .limit = (int64_t)1 << 30};
  if (cb_cache_open(&cache, &options, NULL)) return 2;
  for (uint64_t i = 0;; i++) {
    const struct cb_hash key = key_of(member + 100 * (i % 5));
    cb_cache_remove(cache, key, NULL);
    put(cache, key, i % 5 ? 50000 : LARGE);
  }
}

/* ---- the crowd */

static pid_t start_member(const char *what, const char *directory, unsigned member, int start, int results) {
  char texts[3][16];
  snprintf(texts[0], sizeof texts[0], "%u", member);
  snprintf(texts[1], sizeof texts[1], "%d", start);
  snprintf(texts[2], sizeof texts[2], "%d", results);
  const pid_t child = fork();
  if (child) return child;
  execl("/proc/self/exe", "test_cache_crowd", what, directory, texts[0], texts[1], texts[2], (char *)NULL);
  _exit(99);
}

/* Waits for a child until the deadline; its wait status, or -1 when it had to be killed. */
static int wait_until(pid_t child, time_t deadline) {
  int status;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (time(NULL) > deadline) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return -1;
    }
    usleep(5000);
  }
  return status;
}

static struct report add_reports(int results) {
  struct report sum = {0}, one;
  while (read(results, &one, sizeof one) == (ssize_t)sizeof one) {
    sum.hits += one.hits;
    sum.misses += one.misses;
    sum.stored += one.stored;
    sum.present += one.present;
    sum.evicted += one.evicted;
  }
  return sum;
}

/* Every entry that is left is whole. */
static int64_t check_all(struct cb_cache *cache) {
  struct cb_diag diag = {0};
  struct cb_cache_listing listing = {0};
  assert_ok(cb_cache_list(cache, &listing, &diag));
  for (int64_t i = 0; i < listing.count; i++)
    if (cb_cache_check(cache, listing.items[i].key, &diag)) fail_msg("%s", diag.message);
  const int64_t count = listing.count;
  cb_cache_listing_release(&listing);
  return count;
}

static void test_crowd_on_an_empty_cache(void **state) {
  (void)state;
  const char *directory = fresh("crowd");
  pid_t children[MEMBERS];
  int start[2], results[2];
  assert_int_equal(pipe(start), 0);
  assert_int_equal(pipe(results), 0);
  fcntl(start[1], F_SETFD, FD_CLOEXEC); /* else each member would keep the others waiting */
  fcntl(results[0], F_SETFD, FD_CLOEXEC);
  for (unsigned i = 0; i < MEMBERS; i++) {
    children[i] = start_member("member", directory, i, start[0], results[1]);
    assert_true(children[i] > 0);
  }
  usleep(300000);
  close(start[1]);
  close(start[0]);
  close(results[1]);
  const time_t deadline = time(NULL) + SECONDS;
  int failures = 0;
  for (int i = 0; i < MEMBERS; i++) {
    const int status = wait_until(children[i], deadline);
    if (status) print_error("process %d: wait status %#x\n", i, (unsigned)status);
    failures += status != 0;
  }
  const struct report sum = add_reports(results[0]);
  close(results[0]);
  assert_int_equal(failures, 0);
  print_message("%lld hits, %lld misses, %lld stored, %lld present, %lld evicted by puts\n",
                (long long)sum.hits, (long long)sum.misses, (long long)sum.stored, (long long)sum.present,
                (long long)sum.evicted);
  assert_int_equal(sum.misses, sum.stored + sum.present);
  assert_int_equal(sum.hits + sum.misses, 2 * (MEMBERS - 1) * ROUNDS);
  assert_true(sum.hits > 0 && sum.stored > (MEMBERS - 1) * ROUNDS / 2);
  assert_int_equal(count_files(directory, ".draft"), 0);
  struct cb_cache *cache = open_cache(directory, LIMIT);
  assert_true(check_all(cache) > 0);
  cb_cache_close(cache);
}

/* SIGKILL at any moment leaves drafts, which the next prune removes, and whole entries. */
static void test_killed_writers(void **state) {
  (void)state;
  enum { WRITERS = 6, WAVES = 6 };
  const char *directory = fresh("killed");
  struct cb_cache *cache = open_cache(directory, (int64_t)1 << 30);
  struct cb_diag diag = {0};
  struct cb_cache_removal removal;
  int64_t drafts = 0, entries = 0;
  for (int wave = 0; wave < WAVES || ((!drafts || !entries) && wave < 50); wave++) {
    pid_t children[WRITERS];
    for (unsigned i = 0; i < WRITERS; i++) {
      children[i] = start_member("writer", directory, i, -1, -1);
      assert_true(children[i] > 0);
    }
    usleep((useconds_t)(300000 + 37000 * wave));
    for (int i = 0; i < WRITERS; i++) kill(children[i], SIGKILL);
    for (int i = 0; i < WRITERS; i++) {
      int status;
      assert_int_equal(waitpid(children[i], &status, 0), children[i]);
      assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL); /* it did not end by itself */
    }
    assert_ok(cb_cache_prune(cache, INT64_MAX, &removal, &diag));
    drafts += removal.drafts;
    assert_int_equal(count_files(directory, ".draft"), 0);
    entries += check_all(cache);
  }
  print_message("%lld drafts removed, %lld entries whole\n", (long long)drafts, (long long)entries);
  assert_true(drafts > 0 && entries > 0);
  cb_cache_close(cache);
}

int main(int argc, char **argv) {
  if (argc == 6 && !strcmp(argv[1], "member"))
    return member_main(argv[2], (unsigned)atoi(argv[3]), atoi(argv[4]), atoi(argv[5]));
  if (argc == 6 && !strcmp(argv[1], "writer")) return writer_main(argv[2], (unsigned)atoi(argv[3]));
  unsetenv("CBGEN_CACHE_SIZE");
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_crowd_on_an_empty_cache),
      cmocka_unit_test(test_killed_writers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
