// SPDX-License-Identifier: Apache-2.0
/* What the tests of the cache share: a fresh directory for each test, entries whose contents follow from their key,
 * and a table of file operations of which the n-th fails. */
#ifndef CBGEN_TESTS_CACHE_SUPPORT_H
#define CBGEN_TESTS_CACHE_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "runtime/cache/cache.h"
#include "runtime/cache/calls.h"
#include "runtime/cache/parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LARGE = (16 << 20) + 12345 }; /* an entry of that length is mapped */

static inline void check_status(enum cb_status status, const struct cb_diag *diag, const char *call) {
  if (status) fail_msg("%s: %s (%s)", call, diag->message, cb_status_name(status));
}
#define assert_ok(call) check_status((call), &diag, #call)
#define assert_outcome(call, expected)                                                                       \
  do {                                                                                                       \
    const enum cb_cache_outcome outcome_of_call = (call);                                                    \
    if (outcome_of_call != (expected))                                                                       \
      fail_msg("%s:%d: %s: %s, not %s", __FILE__, __LINE__, #call, cb_cache_outcome_name(outcome_of_call),   \
               cb_cache_outcome_name(expected));                                                             \
  } while (0)

/* ---- directories */

static inline void remove_tree(const char *path) {
  char command[600];
  snprintf(command, sizeof command, "rm -rf '%s'", path);
  if (system(command)) fail_msg("cannot remove '%s'", path);
}

/* CBGEN_TEST_TMP/NAME, which does not exist; stays valid until the next call with the same name. */
static inline const char *fresh(const char *name) {
  static char path[512];
  const char *scratch = getenv("CBGEN_TEST_TMP");
  if (!scratch) fail_msg("CBGEN_TEST_TMP is not set");
  snprintf(path, sizeof path, "%s/%s", scratch, name);
  remove_tree(path);
  return path;
}

static inline int count_files(const char *directory, const char *ending) {
  int count = 0;
  DIR *files = opendir(directory);
  if (!files) return 0;
  for (struct dirent *file; (file = readdir(files));) {
    const size_t length = strlen(file->d_name), tail = strlen(ending);
    count += length >= tail && file->d_name[0] != '.' && !strcmp(file->d_name + length - tail, ending);
  }
  closedir(files);
  return count;
}

static inline int open_descriptors(void) {
  return count_files("/proc/self/fd", "");
}

static inline const char *path_of(const char *directory, struct cb_hash key) {
  static char path[700];
  char name[CB_CACHE_NAME];
  cb_cache_entry_name(key, name);
  snprintf(path, sizeof path, "%s/%s", directory, name);
  return path;
}

/* A file's bytes, on the heap. */
static inline char *slurp(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  *length = (size_t)ftell(file);
  rewind(file);
  char *bytes = malloc(*length + 1);
  assert_non_null(bytes);
  assert_int_equal(fread(bytes, 1, *length, file), *length);
  fclose(file);
  return bytes;
}

static inline void spit(const char *path, const void *bytes, size_t length) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  assert_true(fd >= 0);
  for (size_t done = 0; done < length;) {
    const ssize_t written = write(fd, (const char *)bytes + done, length - done);
    assert_true(written > 0);
    done += (size_t)written;
  }
  close(fd);
}

/* ---- entries */

static inline struct cb_cache *open_cache(const char *directory, int64_t limit) {
  struct cb_diag diag = {0};
  struct cb_cache *cache;
  const struct cb_cache_options options = {.directory = directory, .limit = limit};
  assert_ok(cb_cache_open(&cache, &options, &diag));
  assert_int_equal(cb_cache_state(cache), CB_CACHE_ON);
  return cache;
}

static inline struct cb_hash key_of(uint64_t number) {
  struct cb_hash key = {0, 0};
  cb_hash_number(&key, "number", number);
  return key;
}

/* Word `i` of the large section of a key's entry. */
static inline uint64_t word_of(struct cb_hash key, int64_t i) {
  return (key.low + (uint64_t)i) * 0x9e3779b97f4a7c15u;
}

/* `length` bytes of that section, in words: entries of 16 MB are written and read some hundred times. */
static inline void fill_section(unsigned char *bytes, struct cb_hash key, int64_t length) {
  int64_t i = 0;
  uint64_t word;
  for (; 8 * i + 8 <= length; i++) {
    word = word_of(key, i);
    memcpy(bytes + 8 * i, &word, 8);
  }
  word = word_of(key, i);
  memcpy(bytes + 8 * i, &word, (size_t)(length - 8 * i));
}

static inline int is_section(const unsigned char *bytes, struct cb_hash key, int64_t length) {
  int64_t i = 0;
  uint64_t word;
  for (; 8 * i + 8 <= length; i++) {
    memcpy(&word, bytes + 8 * i, 8);
    if (word != word_of(key, i)) return 0;
  }
  word = word_of(key, i);
  return !memcmp(bytes + 8 * i, &word, (size_t)(length - 8 * i));
}

/* A plan line, an empty section and `length` bytes; all follow from the key. */
struct content {
  char plan[80];
  unsigned char *bytes;
  struct cb_cache_section sections[3];
};

static inline struct content content_of(struct cb_hash key, int64_t length) {
  struct content content = {.bytes = malloc((size_t)length + 1)};
  char hex[CB_HASH_HEX];
  cb_hash_hex(key, hex);
  snprintf(content.plan, sizeof content.plan, "(spmv (test (key %s)))", hex);
  fill_section(content.bytes, key, length);
  content.sections[0] = (struct cb_cache_section){"plan", NULL, (int64_t)strlen(content.plan)};
  content.sections[1] = (struct cb_cache_section){"empty", NULL, 0};
  content.sections[2] = (struct cb_cache_section){"index", content.bytes, length};
  return content;
}

static inline enum cb_cache_outcome put(struct cb_cache *cache, struct cb_hash key, int64_t length) {
  struct content content = content_of(key, length);
  const struct cb_cache_label label = {"a matrix", "sm_90", NULL};
  content.sections[0].bytes = content.plan;
  const enum cb_cache_outcome outcome = cb_cache_put(cache, key, &label, content.sections, 3, NULL);
  free(content.bytes);
  return outcome;
}

/* Whether an entry is what `put` wrote for its key, to the last byte. */
static inline int is_right(const struct cb_cache_entry *entry, struct cb_hash key, int64_t length) {
  const struct content content = content_of(key, 0);
  free(content.bytes);
  const struct cb_cache_section *plan = cb_cache_section(entry, "plan"),
                                *index = cb_cache_section(entry, "index");
  if (!plan || !index || !cb_cache_section(entry, "empty") || index->length != length) return 0;
  if (plan->length != (int64_t)strlen(content.plan) ||
      memcmp(plan->bytes, content.plan, (size_t)plan->length))
    return 0;
  if (length && !is_section(index->bytes, key, length)) return 0;
  return !strcmp(entry->matrix, "a matrix") && entry->key.high == key.high && entry->key.low == key.low;
}

/* Gets, and checks every byte of a hit. */
static inline enum cb_cache_outcome get(struct cb_cache *cache, struct cb_hash key, int64_t length) {
  struct cb_cache_entry entry;
  const enum cb_cache_outcome outcome = cb_cache_get(cache, key, &entry, NULL);
  if (outcome == CB_CACHE_HIT && !is_right(&entry, key, length)) fail_msg("a hit with wrong bytes");
  if (outcome) assert_true(entry.count == 0 && !entry.block && !entry.mapping);
  cb_cache_entry_release(&entry);
  return outcome;
}

/* ---- failing operations */

enum { FAULT_SHORT = -1 }; /* as an error: reads and writes do half of what they were asked for */

static struct {
  atomic_int_fast64_t calls; /* large entries are read by several threads */
  int64_t at;                /* the at-th call from now on fails; 0: none */
  int error, sticky;         /* sticky: and all after it */
  atomic_int hit;            /* calls that failed */
  atomic_int hit_transfer;   /* among them: reads and writes, which go on after EINTR */
  int unsynced;              /* bytes were written since the last sync */
  int renamed_unsynced;      /* renames in that state: a crash could leave the name on half a file */
  atomic_int hit_removal;    /* among them: removing, which may leave a draft behind */
} fault;

/* The call's turn: 0: do it; else it fails with errno set, or, FAULT_SHORT, in part. */
static inline int fault_now(void) {
  const int64_t number = atomic_fetch_add(&fault.calls, 1) + 1;
  if (!fault.at || !(number == fault.at || (fault.sticky && number > fault.at))) return 0;
  fault.hit++;
  errno = fault.error;
  return fault.error == FAULT_SHORT ? FAULT_SHORT : 1;
}

static inline int fault_fails(void) {
  return fault_now() == 1;
}

static int fault_open(int folder, const char *name, int flags, mode_t mode) {
  return fault_fails() ? -1 : cb_cache_system_calls.open(folder, name, flags, mode);
}
static int fault_make(const char *path, mode_t mode) {
  return fault_fails() ? -1 : cb_cache_system_calls.make(path, mode);
}
static int fault_inspect(int fd, struct stat *info) {
  return fault_fails() ? -1 : cb_cache_system_calls.inspect(fd, info);
}
static int fault_inspect_name(int folder, const char *name, struct stat *info) {
  return fault_fails() ? -1 : cb_cache_system_calls.inspect_name(folder, name, info);
}
static ssize_t fault_read(int fd, void *bytes, size_t length, off_t offset) {
  const int now = fault_now();
  fault.hit_transfer += now != 0;
  return now > 0 ? -1 : cb_cache_system_calls.read(fd, bytes, now ? (length + 1) / 2 : length, offset);
}
static ssize_t fault_write(int fd, const void *bytes, size_t length) {
  const int now = fault_now();
  fault.hit_transfer += now != 0;
  fault.unsynced = 1;
  return now > 0 ? -1 : cb_cache_system_calls.write(fd, bytes, now ? (length + 1) / 2 : length);
}
static int fault_sync(int fd) {
  (void)fd; /* nothing here crashes, and thousands of syncs take minutes */
  if (fault_fails()) return -1;
  fault.unsynced = 0;
  return 0;
}
static int fault_close(int fd) {
  const int failed = fault_fails(), error = errno; /* a descriptor is gone even when closing it fails */
  const int result = cb_cache_system_calls.close(fd);
  errno = error;
  return failed ? -1 : result;
}
static int fault_may_write(int folder) {
  return fault_fails() ? -1 : cb_cache_system_calls.may_write(folder);
}
static int fault_rename(int folder, const char *from, const char *to) {
  if (fault_fails()) return -1;
  fault.renamed_unsynced += fault.unsynced;
  return cb_cache_system_calls.rename(folder, from, to);
}
static int fault_remove(int folder, const char *name) {
  const int failed = fault_fails();
  fault.hit_removal += failed;
  return failed ? -1 : cb_cache_system_calls.remove(folder, name);
}
static int fault_lock(int fd, int operation) {
  return fault_fails() ? -1 : cb_cache_system_calls.lock(fd, operation);
}
static int fault_stamp(int fd) {
  return fault_fails() ? -1 : cb_cache_system_calls.stamp(fd);
}
static void *fault_map(int fd, size_t length) {
  return fault_fails() ? MAP_FAILED : cb_cache_system_calls.map(fd, length);
}
static DIR *fault_list(int fd) {
  return fault_fails() ? NULL : cb_cache_system_calls.list(fd);
}
static struct dirent *fault_next(DIR *listing) {
  return fault_fails() ? NULL : cb_cache_system_calls.next(listing);
}

__attribute__((unused)) static const struct cb_cache_calls faulty_calls = {
    .open = fault_open,
    .make = fault_make,
    .inspect = fault_inspect,
    .inspect_name = fault_inspect_name,
    .read = fault_read,
    .write = fault_write,
    .sync = fault_sync,
    .close = fault_close,
    .may_write = fault_may_write,
    .rename = fault_rename,
    .remove = fault_remove,
    .lock = fault_lock,
    .stamp = fault_stamp,
    .map = fault_map,
    .list = fault_list,
    .next = fault_next,
};

/* The at-th operation from now on fails with `error`. */
static inline void inject(int64_t at, int error, int sticky) {
  fault.calls = 0;
  fault.hit = 0;
  fault.hit_transfer = 0;
  fault.hit_removal = 0;
  fault.at = at;
  fault.error = error;
  fault.sticky = sticky;
}

#endif
