// SPDX-License-Identifier: Apache-2.0
/* Turns: see cache.h. The turn for a key is an exclusive lock (flock) on the file KEY.turn, which the system gives up
 * when the process ends, whatever ends it. Who has the turn removes the file before letting go. So a waiter that gets
 * the lock of a file that is no longer there under its name begins anew: the next one may hold another file's. */
#include "runtime/cache/parts.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

enum { FIRST_NAP_NS = 1000 * 1000, LONGEST_NAP_NS = 32 * 1000 * 1000 };

static void nap(long *ns) {
  const struct timespec time = {.tv_nsec = *ns};
  nanosleep(&time, NULL);
  if (*ns < LONGEST_NAP_NS) *ns *= 2;
}

/* 1: locked; 0: another has it; -1: this file cannot be locked. */
static int try_lock(const struct cb_cache *cache, int fd) {
  int result;
  do result = cache->calls->lock(fd, LOCK_EX | LOCK_NB);
  while (result && errno == EINTR);
  return !result ? 1 : errno == EWOULDBLOCK ? 0 : -1;
}

/* Whether the name still means the file. */
static int is_current(const struct cb_cache *cache, int fd, const char *name) {
  struct stat opened, named;
  return !cache->calls->inspect(fd, &opened) && !cache->calls->inspect_name(cache->folder, name, &named) &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

static int is_there(const struct cb_cache *cache, struct cb_hash key) {
  char name[CB_CACHE_NAME];
  struct stat info;
  cb_cache_entry_name(key, name);
  return !cache->calls->inspect_name(cache->folder, name, &info);
}

/* The descriptor of the locked file; -1: not to be had, or not before `deadline`. */
static int wait_for(const struct cb_cache *cache, const char *name, double deadline) {
  long ns = FIRST_NAP_NS;
  for (int fd = -1;;) {
    if (fd < 0) fd = cache->calls->open(cache->folder, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return -1;
    const int locked = try_lock(cache, fd);
    if (locked > 0 && is_current(cache, fd, name)) return fd;
    if (locked < 0 || cb_seconds() >= deadline) {
      cache->calls->close(fd);
      return -1;
    }
    if (locked) {
      cache->calls->close(fd);
      fd = -1;
    } else {
      nap(&ns);
    }
  }
}

int cb_cache_turn_begin(const struct cb_cache *cache, struct cb_hash key, double seconds, struct cb_cache_turn *turn) {
  char name[CB_CACHE_NAME];
  const double start = cb_seconds();
  *turn = (struct cb_cache_turn){.key = key};
  if (cb_cache_state(cache) != CB_CACHE_ON) return 0;
  cb_cache_turn_name(key, name);
  const int fd = wait_for(cache, name, start + seconds);
  turn->has_file = fd >= 0;
  turn->fd = fd;
  turn->waited = cb_seconds() - start;
  return is_there(cache, key);
}

void cb_cache_turn_end(const struct cb_cache *cache, struct cb_cache_turn *turn) {
  char name[CB_CACHE_NAME];
  if (!turn->has_file) return;
  cb_cache_turn_name(turn->key, name);
  cache->calls->remove(cache->folder, name);
  cache->calls->lock(turn->fd, LOCK_UN); /* a process that was forked meanwhile has the descriptor, too */
  cache->calls->close(turn->fd);
  turn->has_file = 0;
}
