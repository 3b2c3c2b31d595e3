// SPDX-License-Identifier: Apache-2.0
/* The cache's file operations as the system has them: see calls.h. */
#include "runtime/cache/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

static int system_open(int folder, const char *name, int flags, mode_t mode) {
  return openat(folder, name, flags, mode);
}

static int system_inspect(int fd, struct stat *info) {
  return fstat(fd, info);
}

static int system_inspect_name(int folder, const char *name, struct stat *info) {
  return fstatat(folder, name, info, AT_SYMLINK_NOFOLLOW);
}

static int system_may_write(int folder) {
  return faccessat(folder, ".", W_OK, AT_EACCESS);
}

static int system_rename(int folder, const char *from, const char *to) {
  return renameat(folder, from, folder, to);
}

static int system_remove(int folder, const char *name) {
  return unlinkat(folder, name, 0);
}

static int system_stamp(int fd) {
  const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_NOW}};
  return futimens(fd, times);
}

static void *system_map(int fd, size_t length) {
  return mmap(NULL, length, PROT_READ, MAP_PRIVATE, fd, 0);
}

static struct dirent *system_next(DIR *listing) {
  errno = 0;
  return readdir(listing);
}

const struct cb_cache_calls cb_cache_system_calls = {
    .open = system_open,
    .make = mkdir,
    .inspect = system_inspect,
    .inspect_name = system_inspect_name,
    .read = pread,
    .write = write,
    .sync = fsync,
    .close = close,
    .may_write = system_may_write,
    .rename = system_rename,
    .remove = system_remove,
    .lock = flock,
    .stamp = system_stamp,
    .map = system_map,
    .list = fdopendir,
    .next = system_next,
};
