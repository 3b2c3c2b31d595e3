// SPDX-License-Identifier: Apache-2.0
/* The cache on disk, as its callers see it: open, get, put. See cache.h for what it promises, parts.h for the
 * other files. */
#include "runtime/cache/parts.h"

#include "base/environment.h"
#include "base/memory.h"
#include "base/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- sizes */

enum cb_status cb_cache_size(int64_t *bytes, const char *text, struct cb_diag *diag) {
  static const char units[] = "KMGT";
  char *end;
  errno = 0;
  const long long number = strtoll(text, &end, 10);
  const char *unit = *end ? strchr(units, *end >= 'a' && *end <= 'z' ? *end - 'a' + 'A' : *end) : NULL;
  const int shift = unit ? 10 * (int)(unit - units + 1) : 0;
  /* strtoll also takes blanks and signs, of which a size has none */
  const int begins = *text >= '0' && *text <= '9';
  if (!begins || errno || (*end && (!unit || end[1])) || number > INT64_MAX >> shift)
    return cb_fail(diag, CB_ERR_ARGUMENT,
                   "'%s' is no size: it takes a number of bytes, or one with K, M, G or T", text);
  *bytes = (int64_t)number << shift;
  return CB_OK;
}

/* A variable that makes no sense does not switch the cache off. */
static enum cb_status choose_limit(struct cb_cache *cache, int64_t limit, struct cb_diag *diag) {
  struct cb_diag why = {0};
  const char *text = cb_environment("CBGEN_CACHE_SIZE");
  cache->limit = limit ? limit : CB_CACHE_LIMIT;
  if (limit || !text || !*text || !cb_cache_size(&cache->limit, text, &why)) return CB_OK;
  snprintf(cache->remark, sizeof cache->remark, "CBGEN_CACHE_SIZE is ignored: %.400s", why.message);
  return cb_fail(diag, CB_ERR_ARGUMENT, "%s", cache->remark);
}

/* ---- open and close */

enum cb_status cb_cache_open(struct cb_cache **result, const struct cb_cache_options *options,
                             struct cb_diag *diag) {
  struct cb_cache *cache = *result = cb_calloc(1, sizeof *cache);
  if (!cache) return cb_fail_memory(diag, "cache", sizeof *cache);
  cache->folder = -1;
  cache->calls = options->calls ? options->calls : &cb_cache_system_calls;
  const enum cb_status limit = choose_limit(cache, options->limit, diag);
  enum cb_status s = cb_cache_folder_open(cache, options, diag);
  if (options->in_memory && cb_cache_use_memory(cache)) s = CB_OK;
  if (cache->state != CB_CACHE_OFF) cb_cache_path_open(cache, options->path);
  return s ? s : limit;
}

void cb_cache_close(struct cb_cache *cache) {
  if (!cache) return;
  if (cache->folder >= 0) cache->calls->close(cache->folder);
  cb_cache_path_close(cache);
  cb_free(cache->directory);
  cb_free(cache);
}

enum cb_cache_state cb_cache_state(const struct cb_cache *cache) {
  return cache ? cache->state : CB_CACHE_UNUSABLE;
}

const char *cb_cache_directory(const struct cb_cache *cache) {
  return cache && cache->directory ? cache->directory : "";
}

int64_t cb_cache_limit(const struct cb_cache *cache) {
  return cache ? cache->limit : 0;
}

const char *cb_cache_remark(const struct cb_cache *cache) {
  return cache ? cache->remark : "out of memory";
}

/* ---- outcomes */

const char *cb_cache_outcome_name(enum cb_cache_outcome outcome) {
  static const char *const names[CB_CACHE_OUTCOMES] = {
      [CB_CACHE_HIT] = "hit",
      [CB_CACHE_ABSENT] = "absent",
      [CB_CACHE_DAMAGED] = "damaged",
      [CB_CACHE_FOREIGN] = "foreign",
      [CB_CACHE_OTHER_FORMAT] = "of another format",
      [CB_CACHE_UNREADABLE] = "unreadable",
      [CB_CACHE_STORED] = "stored",
      [CB_CACHE_PRESENT] = "present",
      [CB_CACHE_TOO_LARGE] = "too large",
      [CB_CACHE_UNWRITABLE] = "unwritable",
      [CB_CACHE_UNUSED] = "unused",
  };
  return (unsigned)outcome < CB_CACHE_OUTCOMES ? names[outcome] : "unknown";
}

static enum cb_cache_outcome count(struct cb_cache *cache, enum cb_cache_outcome outcome) {
  if (cache) atomic_fetch_add_explicit(&cache->outcomes[outcome], 1, memory_order_relaxed);
  return outcome;
}

struct cb_cache_counts cb_cache_counts(const struct cb_cache *cache) {
  struct cb_cache_counts counts = {{0}, 0};
  if (!cache) return counts;
  for (int i = 0; i < CB_CACHE_OUTCOMES; i++)
    counts.of[i] = (int64_t)atomic_load_explicit(&cache->outcomes[i], memory_order_relaxed);
  counts.evicted = (int64_t)atomic_load_explicit(&cache->evicted, memory_order_relaxed);
  return counts;
}

static int is_on(const struct cb_cache *cache, struct cb_diag *diag) {
  if (cb_cache_state(cache) == CB_CACHE_ON) return 1;
  cb_fail(diag, CB_ERR_MISSING, "there is no cache: %s", cb_cache_remark(cache));
  return 0;
}

/* ---- get */

/* Removes only the file that was read: another process may have replaced it by a good one since. (If that happens
 * between these two calls, the good one is removed, and made again.) */
static void remove_damaged(const struct cb_cache *cache, const struct cb_cache_file *file,
                           struct cb_hash key) {
  char name[CB_CACHE_NAME];
  struct stat info;
  cb_cache_entry_name(key, name);
  if (cache->calls->inspect_name(cache->folder, name, &info)) return;
  if (info.st_dev == file->device && info.st_ino == file->inode) cache->calls->remove(cache->folder, name);
}

/* Which sections are to be deferred: a bit each. */
static unsigned choose_deferred(const struct cb_cache_head *head, const char *const *tags, int64_t least) {
  unsigned deferred = 0;
  for (uint32_t i = 0; i < head->count; i++)
    for (const char *const *tag = tags; *tag; tag++)
      if (!strcmp(head->rows[i].tag, *tag) && head->rows[i].length >= least) deferred |= 1u << i;
  return deferred;
}

/* From the cache's own directory (`base` −1) or a base, of which nothing is changed. */
static enum cb_cache_outcome get_from(const struct cb_cache *cache, int base, struct cb_hash key,
                                      const char *const *tags, int64_t least, struct cb_cache_entry *entry,
                                      struct cb_diag *diag) {
  struct cb_cache_file file;
  enum cb_cache_outcome outcome = base < 0 ? cb_cache_file_open(&file, cache, key, diag)
                                           : cb_cache_base_file_open(&file, cache, base, key, diag);
  if (!outcome) file.deferred = choose_deferred(&file.head, tags, least);
  if (!outcome) outcome = cb_cache_file_read(&file, entry, diag);
  if (outcome == CB_CACHE_HIT && base < 0)
    cache->calls->stamp(file.fd); /* on a read-only disk nothing is evicted, either */
  if (outcome == CB_CACHE_HIT && file.deferred && !cb_cache_deferred_begin(entry, &file)) {
    file.deferred = 0;
    outcome = cb_cache_file_check(&file, diag);
    if (outcome) cb_cache_entry_release(entry);
  }
  if (outcome == CB_CACHE_DAMAGED && base < 0) remove_damaged(cache, &file, key);
  cb_cache_file_close(&file);
  return outcome;
}

/* A miss is that of the first place where the entry is not simply absent. */
enum cb_cache_outcome cb_cache_get_deferred(struct cb_cache *cache, struct cb_hash key, const char *const *tags,
                                            int64_t least, struct cb_cache_entry *entry, struct cb_diag *diag) {
  const int own = cb_cache_state(cache) == CB_CACHE_ON;
  enum cb_cache_outcome outcome = CB_CACHE_UNUSED;
  memset(entry, 0, sizeof *entry);
  if (!own && !cb_cache_bases(cache)) {
    is_on(cache, diag);
    return count(cache, outcome);
  }
  for (int base = own ? -1 : 0; base < cache->bases_count && outcome != CB_CACHE_HIT; base++) {
    struct cb_diag why = {0};
    const enum cb_cache_outcome one = get_from(cache, base, key, tags, least, entry, &why);
    if (one != CB_CACHE_HIT && outcome != CB_CACHE_UNUSED && outcome != CB_CACHE_ABSENT) continue;
    if (one && diag) *diag = why;
    outcome = one;
  }
  return count(cache, outcome);
}

enum cb_cache_outcome cb_cache_get(struct cb_cache *cache, struct cb_hash key, struct cb_cache_entry *entry,
                                   struct cb_diag *diag) {
  static const char *const none[] = {NULL};
  return cb_cache_get_deferred(cache, key, none, 0, entry, diag);
}

enum cb_cache_outcome cb_cache_peek(const struct cb_cache *cache, struct cb_hash key, const char *tag,
                                    struct cb_cache_entry *entry, struct cb_diag *diag) {
  struct cb_cache_file file;
  memset(entry, 0, sizeof *entry);
  if (!is_on(cache, diag)) return CB_CACHE_UNUSED;
  enum cb_cache_outcome outcome = cb_cache_file_open(&file, cache, key, diag);
  if (!outcome) outcome = cb_cache_file_read_one(&file, tag, entry, diag);
  cb_cache_file_close(&file);
  return outcome;
}

enum cb_cache_outcome cb_cache_check(const struct cb_cache *cache, struct cb_hash key, struct cb_diag *diag) {
  struct cb_cache_file file;
  if (!is_on(cache, diag)) return CB_CACHE_UNUSED;
  enum cb_cache_outcome outcome = cb_cache_file_open(&file, cache, key, diag);
  if (!outcome) outcome = cb_cache_file_check(&file, diag);
  cb_cache_file_close(&file);
  return outcome;
}

/* ---- put */

static enum cb_cache_outcome unwritable(const struct cb_cache *cache, int error, struct cb_diag *diag) {
  cb_fail(diag, CB_ERR_IO, "cannot write an entry in '%s': %s", cache->directory, strerror(error));
  return CB_CACHE_UNWRITABLE;
}

/* Whether the limits of cache and process allow it. Going beyond the process's would raise SIGXFSZ, which ends it. */
static enum cb_cache_outcome check_size(const struct cb_cache *cache, int64_t bytes, struct cb_diag *diag) {
  struct rlimit files;
  if (bytes <= cache->limit &&
      (getrlimit(RLIMIT_FSIZE, &files) || files.rlim_cur == RLIM_INFINITY || (rlim_t)bytes <= files.rlim_cur))
    return CB_CACHE_HIT;
  cb_fail(diag, CB_ERR_LIMIT, "an entry of %lld bytes is too large for the cache", (long long)bytes);
  return CB_CACHE_TOO_LARGE;
}

/* Of many processes that missed the same key at once, those that come late need not write it again. */
static int is_present(const struct cb_cache *cache, const struct cb_cache_head *head) {
  struct cb_cache_file file;
  const int present = cb_cache_file_open(&file, cache, head->key, NULL) == CB_CACHE_HIT &&
                      !memcmp(file.head.rows, head->rows, sizeof head->rows);
  if (present) cache->calls->stamp(file.fd);
  cb_cache_file_close(&file);
  return present;
}

/* 0 or errno. */
static int write_all(const struct cb_cache *cache, int fd, const void *bytes, int64_t length) {
  const char *next = bytes;
  while (length) {
    const ssize_t written = cache->calls->write(fd, next, (size_t)length);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    if (!written) return EIO; /* a file that takes nothing and gives no reason would be asked for ever */
    next += written;
    length -= written;
  }
  return 0;
}

static int write_entry(const struct cb_cache *cache, int fd, const struct cb_cache_head *head,
                       const struct cb_cache_section *sections) {
  static const char zeros[CB_CACHE_ALIGN];
  int64_t end = sizeof *head;
  int error = write_all(cache, fd, head, end);
  for (uint32_t i = 0; i < head->count && !error; i++) {
    const struct cb_cache_row *row = &head->rows[i];
    error = write_all(cache, fd, zeros, row->offset - end);
    if (!error) error = write_all(cache, fd, sections[i].bytes, row->length);
    end = row->offset + row->length;
  }
  /* Before the rename: else a crash could leave the name on a file without its contents. That the name itself
   * is lost in a crash does no harm, so the directory is not synced. */
  if (!error && cache->calls->sync(fd)) error = errno;
  return error;
}

/* O_EXCL: never into a file that is there, however it came by that name; then another name is drawn. */
static int create_draft(const struct cb_cache *cache, struct cb_hash key, char name[CB_CACHE_NAME]) {
  int fd = -1;
  for (int attempt = 0; attempt < 4; attempt++) {
    cb_cache_draft_name(key, name);
    fd = cache->calls->open(cache->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 || errno != EEXIST) break;
  }
  return fd;
}

static enum cb_cache_outcome store(const struct cb_cache *cache, const struct cb_cache_head *head,
                                   const struct cb_cache_section *sections, struct cb_diag *diag) {
  char draft[CB_CACHE_NAME], name[CB_CACHE_NAME];
  struct cb_held_signals held;
  const int fd = create_draft(cache, head->key, draft);
  if (fd < 0) return unwritable(cache, errno, diag);
  cb_cache_entry_name(head->key, name);
  cb_signals_hold(&held); /* a limit on the size of files ends no application */
  int error = write_entry(cache, fd, head, sections);
  if (cache->calls->close(fd) && !error) error = errno; /* network file systems report a full disk here */
  cb_signals_release(&held);
  if (!error && cache->calls->rename(cache->folder, draft, name)) error = errno;
  if (!error) return CB_CACHE_STORED;
  cache->calls->remove(cache->folder, draft);
  return unwritable(cache, error, diag);
}

enum cb_cache_outcome cb_cache_put(struct cb_cache *cache, struct cb_hash key,
                                   const struct cb_cache_label *label,
                                   const struct cb_cache_section *sections, int sections_count,
                                   struct cb_diag *diag) {
  struct cb_cache_head head;
  struct cb_cache_removal removal;
  if (!is_on(cache, diag)) return count(cache, CB_CACHE_UNUSED);
  if (cb_cache_head_fill(&head, key, label, sections, sections_count, diag))
    return count(cache, CB_CACHE_UNWRITABLE);
  enum cb_cache_outcome outcome = check_size(cache, head.bytes, diag);
  if (outcome) return count(cache, outcome);
  if (is_present(cache, &head)) return count(cache, CB_CACHE_PRESENT);
  outcome = store(cache, &head, sections, diag);
  if (outcome == CB_CACHE_STORED) {
    cb_cache_evict(cache, cache->limit, &key, &removal,
                   NULL); /* what stays too long is evicted another time */
    atomic_fetch_add_explicit(&cache->evicted, removal.entries, memory_order_relaxed);
  }
  return count(cache, outcome);
}
