// SPDX-License-Identifier: Apache-2.0
/* The cache's directory: where it is, whether it may be trusted, what lies in it, and eviction. */
#include "runtime/cache/parts.h"

#include "base/environment.h"
#include "base/memory.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* ---- the directory */

/* A variable that counts when it is set and not empty. */
static const char *variable(const char *name) {
  const char *value = cb_environment(name);
  return value && *value ? value : NULL;
}

static void choose_directory(struct cb_text *path, const char *given) {
  const char *own = given ? given : cb_environment("CBGEN_CACHE_DIR"), *shared = variable("XDG_CACHE_HOME");
  if (own)
    cb_text_add_string(path, own);
  else if (shared && *shared == '/') /* the XDG specification: relative ones are ignored */
    cb_text_add(path, "%s/cbgen", shared);
  else if (variable("HOME"))
    cb_text_add(path, "%s/.cache/cbgen", variable("HOME"));
  /* "link/" would follow a link that "link" does not */
  while (path->length > 1 && path->bytes[path->length - 1] == '/') path->bytes[--path->length] = 0;
}

/* The directory and what leads to it. Only whether it can be opened afterwards counts: another process may be
 * faster with any of them. Returns the errno of the last, 0 when it was made. */
static int make_directories(const struct cb_cache *cache) {
  for (char *slash = cache->directory + 1; *slash; slash++) {
    if (*slash != '/') continue;
    *slash = 0;
    cache->calls->make(cache->directory, 0700);
    *slash = '/';
  }
  return cache->calls->make(cache->directory, 0700) ? errno : 0;
}

static int open_directory(const struct cb_cache *cache) {
  return cache->calls->open(AT_FDCWD, cache->directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
}

int cb_cache_is_own(const struct stat *info) {
  return info->st_uid == geteuid() && !(info->st_mode & (S_IWGRP | S_IWOTH));
}

static enum cb_status unusable(struct cb_cache *cache, enum cb_status status, struct cb_diag *diag,
                               const char *what) {
  cache->state = CB_CACHE_UNUSABLE;
  snprintf(cache->remark, sizeof cache->remark, "%s", what);
  return cb_fail(diag, status, "no cache in '%s': %s", cache->directory ? cache->directory : "", what);
}

static enum cb_status cannot_open(struct cb_cache *cache, int error, struct cb_diag *diag) {
  struct stat info;
  const int link = !cache->calls->inspect_name(AT_FDCWD, cache->directory, &info) && S_ISLNK(info.st_mode);
  return unusable(cache, CB_ERR_IO, diag, link ? "it is a symbolic link" : strerror(error));
}

/* It must be the user's alone. */
static enum cb_status check_folder(struct cb_cache *cache, struct cb_diag *diag) {
  struct stat info;
  if (cache->calls->inspect(cache->folder, &info)) return unusable(cache, CB_ERR_IO, diag, strerror(errno));
  if (info.st_uid != geteuid())
    return unusable(cache, CB_ERR_IO, diag, "the directory belongs to another user");
  if (!cb_cache_is_own(&info))
    return unusable(cache, CB_ERR_IO, diag, "others may write to the directory; 'chmod go-w' makes it private");
  return CB_OK;
}

static enum cb_status enter(struct cb_cache *cache, int existing, struct cb_diag *diag) {
  int made = 0;
  cache->folder = open_directory(cache);
  if (cache->folder < 0 && errno == ENOENT) {
    if (existing) {
      cache->state = CB_CACHE_NOWHERE;
      snprintf(cache->remark, sizeof cache->remark,
               "there is no such directory yet: what is compiled first, or 'cbgen cache fill', makes it");
      return CB_OK;
    }
    made = make_directories(cache);
    cache->folder = open_directory(cache);
  }
  if (cache->folder < 0) return cannot_open(cache, made && errno == ENOENT ? made : errno, diag);
  const enum cb_status s = check_folder(cache, diag);
  if (!s) {
    cache->state = CB_CACHE_ON;
    return CB_OK;
  }
  cache->calls->close(cache->folder);
  cache->folder = -1;
  return s;
}

enum cb_status cb_cache_folder_open(struct cb_cache *cache, const struct cb_cache_options *options,
                                    struct cb_diag *diag) {
  struct cb_text path = {0};
  choose_directory(&path, options->directory);
  const int known = options->directory || path.length || cb_environment("CBGEN_CACHE_DIR");
  const int failed = path.failed;
  cache->directory = path.length ? cb_text_detach(&path) : NULL;
  cb_text_release(&path);
  if (failed) return unusable(cache, CB_ERR_MEMORY, diag, "out of memory");
  if (!known)
    return unusable(cache, CB_ERR_IO, diag,
                    cb_environment_is_foreign()
                        ? "a process with more rights than its caller's believes no variable: only the option 'cache' names it"
                        : "none of CBGEN_CACHE_DIR, XDG_CACHE_HOME and HOME is set");
  if (!cache->directory) {
    cache->state = CB_CACHE_OFF;
    snprintf(cache->remark, sizeof cache->remark, "switched off: the name of its directory is empty");
    return CB_OK;
  }
  return enter(cache, options->existing, diag);
}

/* ---- names */

void cb_cache_entry_name(struct cb_hash key, char name[CB_CACHE_NAME]) {
  char hex[CB_HASH_HEX];
  cb_hash_hex(key, hex);
  snprintf(name, CB_CACHE_NAME, "%s.entry", hex);
}

void cb_cache_turn_name(struct cb_hash key, char name[CB_CACHE_NAME]) {
  char hex[CB_HASH_HEX];
  cb_hash_hex(key, hex);
  snprintf(name, CB_CACHE_NAME, "%s.turn", hex);
}

/* Process numbers mean something within one host and PID namespace: containers may share the directory. */
static unsigned host_number(void) {
  struct utsname host;
  char space[64] = "";
  struct cb_hash hash = {0, 0};
  if (!uname(&host)) cb_hash_field(&hash, "host", host.nodename, strlen(host.nodename));
  const ssize_t length = readlink("/proc/self/ns/pid", space, sizeof space);
  if (length > 0) cb_hash_field(&hash, "namespace", space, (size_t)length);
  return (unsigned)hash.low;
}

void cb_cache_draft_name(struct cb_hash key, char name[CB_CACHE_NAME]) {
  static atomic_uint_fast64_t calls; /* tells threads apart where the system has no random numbers to give */
  char hex[CB_HASH_HEX];
  uint64_t random = 0;
  struct timespec now = {0};
  if (getrandom(&random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random)
    clock_gettime(CLOCK_REALTIME, &now);
  random += (uint64_t)now.tv_nsec << 32 | (uint32_t)now.tv_sec;
  random += atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
  cb_hash_hex(key, hex);
  snprintf(name, CB_CACHE_NAME, "%s.%08x-%ld-%016llx.draft", hex, host_number(), (long)getpid(),
           (unsigned long long)random);
}

/* `digits` lower-case hexadecimal digits at `text`. */
static int parse_hex(uint64_t *number, const char *text, int digits) {
  *number = 0;
  for (int i = 0; i < digits; i++) {
    const char *digit = text[i] ? strchr("0123456789abcdef", text[i]) : NULL;
    if (!digit) return 0;
    *number = *number << 4 | (uint64_t)(digit - "0123456789abcdef");
  }
  return 1;
}

static int parse_entry(const char *name, struct cb_hash *key) {
  return parse_hex(&key->high, name, 16) && parse_hex(&key->low, name + 16, 16) &&
         !strcmp(name + 32, ".entry");
}

static int parse_turn(const char *name) {
  uint64_t number;
  return parse_hex(&number, name, 16) && parse_hex(&number, name + 16, 16) && !strcmp(name + 32, ".turn");
}

static int parse_draft(const char *name, unsigned *host, long *pid) {
  uint64_t number;
  char *end;
  if (strlen(name) >= CB_CACHE_NAME) return 0;
  if (!parse_hex(&number, name, 16) || !parse_hex(&number, name + 16, 16) || name[32] != '.') return 0;
  if (!parse_hex(&number, name + 33, 8) || name[41] != '-') return 0;
  *host = (unsigned)number;
  errno = 0;
  *pid = strtol(name + 42, &end, 10);
  return !errno && *pid > 0 && *end == '-' && parse_hex(&number, end + 1, 16) && !strcmp(end + 17, ".draft");
}

/* ---- what lies in the directory */

/* What cb_cache_list counts, with the names of drafts whose writers are dead. */
struct scan {
  struct cb_cache_listing listing;
  int64_t room;
  char (*stale)[CB_CACHE_NAME];
  int64_t stale_count, stale_room;
};

static void release_scan(struct scan *scan) {
  cb_cache_listing_release(&scan->listing);
  cb_free(scan->stale);
}

void cb_cache_listing_release(struct cb_cache_listing *listing) {
  cb_free(listing->items);
  memset(listing, 0, sizeof *listing);
}

/* Room for one more element: NULL when memory ran out, and the old block stays. */
static void *grown(void *block, int64_t count, int64_t *room, size_t size) {
  if (count < *room) return block;
  const int64_t more = *room ? 2 * *room : 64;
  void *larger = cb_realloc(block, (size_t)more, size);
  if (larger) *room = more;
  return larger;
}

static int add_item(struct scan *scan, struct cb_hash key, const struct stat *info) {
  struct cb_cache_listing *listing = &scan->listing;
  struct cb_cache_item *items = grown(listing->items, listing->count, &scan->room, sizeof *items);
  if (!items) return 0;
  listing->items = items;
  items[listing->count++] =
      (struct cb_cache_item){.key = key,
                             .bytes = (int64_t)info->st_size,
                             .used = (int64_t)info->st_mtim.tv_sec,
                             .used_ns = info->st_mtim.tv_nsec,
                             .foreign = !S_ISREG(info->st_mode) || !cb_cache_is_own(info)};
  listing->bytes += (int64_t)info->st_size;
  return 1;
}

/* Its writer is gone: a process of this host that does not exist, or whatever left it alone for a day
 * (another host's, or a process whose number was given away again). Removing a living one's draft costs that
 * one its entry and nothing else. */
static int is_stale(const struct stat *info, unsigned host, long pid) {
  if (host == host_number() && kill((pid_t)pid, 0) && errno == ESRCH) return 1;
  return (int64_t)time(NULL) - (int64_t)info->st_mtim.tv_sec > 24 * 3600;
}

static int add_stale(struct scan *scan, const char *name) {
  void *stale = grown(scan->stale, scan->stale_count, &scan->stale_room, sizeof *scan->stale);
  if (!stale) return 0;
  scan->stale = stale;
  memcpy(scan->stale[scan->stale_count++], name, strlen(name) + 1); /* it fits: parse_draft, parse_turn */
  return 1;
}

static int add_draft(struct scan *scan, const char *name, const struct stat *info, unsigned host, long pid) {
  scan->listing.drafts++;
  scan->listing.draft_bytes += (int64_t)info->st_size;
  return !is_stale(info, host, pid) || add_stale(scan, name);
}

/* Its process was killed: nobody has a turn for a day. */
static int add_turn(struct scan *scan, const char *name, const struct stat *info) {
  return (int64_t)time(NULL) - (int64_t)info->st_mtim.tv_sec <= 24 * 3600 || add_stale(scan, name);
}

static enum cb_status fail_directory(const struct cb_cache *cache, int error, struct cb_diag *diag) {
  return cb_fail(diag, cb_errno_status(error), "cannot list '%s': %s", cache->directory, strerror(error));
}

static enum cb_status add_file(const struct cb_cache *cache, struct scan *scan, const char *name,
                               struct cb_diag *diag) {
  struct cb_hash key;
  struct stat info;
  unsigned host = 0;
  long pid = 0;
  const int entry = parse_entry(name, &key), turn = !entry && parse_turn(name);
  if (!entry && !turn && !parse_draft(name, &host, &pid)) return CB_OK;
  if (cache->calls->inspect_name(cache->folder, name, &info)) {
    if (errno == ENOENT) return CB_OK; /* removed since it was listed */
    return cb_fail(diag, CB_ERR_IO, "cannot inspect '%s/%s': %s", cache->directory, name, strerror(errno));
  }
  if (turn ? add_turn(scan, name, &info) : entry ? add_item(scan, key, &info) : add_draft(scan, name, &info, host, pid))
    return CB_OK;
  return cb_fail_memory(diag, cache->directory, sizeof(struct cb_cache_item));
}

/* Last used first; the key decides between equal times, so that all processes evict alike. */
static int compare_items(const void *left, const void *right) {
  const struct cb_cache_item *a = left, *b = right;
  if (a->used != b->used) return a->used < b->used ? 1 : -1;
  if (a->used_ns != b->used_ns) return a->used_ns < b->used_ns ? 1 : -1;
  if (a->key.high != b->key.high) return a->key.high < b->key.high ? -1 : 1;
  return (a->key.low > b->key.low) - (a->key.low < b->key.low);
}

static enum cb_status scan_directory(const struct cb_cache *cache, struct scan *scan, struct cb_diag *diag) {
  memset(scan, 0, sizeof *scan);
  if (!cache || cache->state != CB_CACHE_ON) return CB_OK;
  /* opened anew: a duplicate of the descriptor would share its position with other threads */
  const int fd = cache->calls->open(cache->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (fd < 0) return fail_directory(cache, errno, diag);
  DIR *files = cache->calls->list(fd);
  if (!files) {
    const int error = errno;
    cache->calls->close(fd);
    return fail_directory(cache, error, diag);
  }
  enum cb_status s = CB_OK;
  for (struct dirent *file; !s && (file = cache->calls->next(files));)
    s = add_file(cache, scan, file->d_name, diag);
  if (!s && errno) s = fail_directory(cache, errno, diag);
  closedir(files);
  if (s)
    release_scan(scan);
  else if (scan->listing.count)
    qsort(scan->listing.items, (size_t)scan->listing.count, sizeof *scan->listing.items, compare_items);
  return s;
}

enum cb_status cb_cache_list(const struct cb_cache *cache, struct cb_cache_listing *listing,
                             struct cb_diag *diag) {
  struct scan scan;
  const enum cb_status s = scan_directory(cache, &scan, diag);
  memset(listing, 0, sizeof *listing);
  if (s) return s;
  *listing = scan.listing;
  cb_free(scan.stale);
  return CB_OK;
}

/* ---- removal */

/* A file that is gone already counts as removed, and not as this call's doing. */
static enum cb_status remove_file(const struct cb_cache *cache, const char *name, int64_t *removed,
                                  struct cb_diag *diag) {
  if (!cache->calls->remove(cache->folder, name))
    ++*removed;
  else if (errno != ENOENT)
    return cb_fail(diag, CB_ERR_IO, "cannot remove '%s/%s': %s", cache->directory, name, strerror(errno));
  return CB_OK;
}

enum cb_status cb_cache_remove(struct cb_cache *cache, struct cb_hash key, struct cb_diag *diag) {
  char name[CB_CACHE_NAME];
  int64_t removed = 0;
  if (!cache || cache->state != CB_CACHE_ON) return CB_OK;
  cb_cache_entry_name(key, name);
  return remove_file(cache, name, &removed, diag);
}

/* Keeps the first failure, and its message, of several. */
static void note(enum cb_status *first, struct cb_diag *kept, enum cb_status s, const struct cb_diag *diag) {
  if (!s || *first) return;
  *first = s;
  *kept = *diag;
}

static int is_key(const struct cb_hash *keep, struct cb_hash key) {
  return keep && keep->high == key.high && keep->low == key.low;
}

enum cb_status cb_cache_evict(const struct cb_cache *cache, int64_t limit, const struct cb_hash *keep,
                              struct cb_cache_removal *removal, struct cb_diag *diag) {
  struct scan scan;
  struct cb_diag each = {0}, first = {0};
  enum cb_status failed = CB_OK;
  memset(removal, 0, sizeof *removal);
  const enum cb_status s = scan_directory(cache, &scan, diag);
  if (s) return s;
  for (int64_t i = 0; i < scan.stale_count; i++)
    note(&failed, &first, remove_file(cache, scan.stale[i], &removal->drafts, &each), &each);
  int64_t bytes = scan.listing.bytes;
  for (int64_t i = scan.listing.count - 1; i >= 0 && bytes > limit; i--) {
    const struct cb_cache_item *item = &scan.listing.items[i];
    char name[CB_CACHE_NAME];
    int64_t removed = 0;
    if (is_key(keep, item->key)) continue;
    cb_cache_entry_name(item->key, name);
    const enum cb_status one = remove_file(cache, name, &removed, &each);
    note(&failed, &first, one, &each);
    if (one) continue;
    bytes -= item->bytes;
    removal->entries += removed;
    if (removed) removal->bytes += item->bytes;
  }
  release_scan(&scan);
  return failed ? cb_fail_lines(diag, failed, first.message) : CB_OK;
}

enum cb_status cb_cache_prune(const struct cb_cache *cache, int64_t limit, struct cb_cache_removal *removal,
                              struct cb_diag *diag) {
  struct cb_cache_removal unused;
  return cb_cache_evict(cache, limit, NULL, removal ? removal : &unused, diag);
}
