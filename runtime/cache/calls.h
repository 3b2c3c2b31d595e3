// SPDX-License-Identifier: Apache-2.0
/* Every file operation of the cache, as a table of functions, so that a test can make the n-th of them fail.
 * They behave as the system calls do: a result below 0 (NULL, MAP_FAILED) and errno. */
#ifndef CBGEN_RUNTIME_CACHE_CALLS_H
#define CBGEN_RUNTIME_CACHE_CALLS_H

#include <dirent.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

struct cb_cache_calls {
  int (*open)(int folder, const char *name, int flags, mode_t mode); /* folder: AT_FDCWD for paths */
  int (*make)(const char *path, mode_t mode);                        /* a directory */
  int (*inspect)(int fd, struct stat *info);
  int (*inspect_name)(int folder, const char *name, struct stat *info); /* of a link: the link itself */
  ssize_t (*read)(int fd, void *bytes, size_t length, off_t offset);
  ssize_t (*write)(int fd, const void *bytes, size_t length);
  int (*sync)(int fd);
  int (*close)(int fd);
  int (*may_write)(int folder); /* into the directory: 0 */
  int (*rename)(int folder, const char *from, const char *to);
  int (*remove)(int folder, const char *name);
  int (*lock)(int fd, int operation);   /* flock */
  int (*stamp)(int fd);                 /* modification time := now */
  void *(*map)(int fd, size_t length);  /* from the start, for reading */
  DIR *(*list)(int fd);                 /* takes the descriptor over unless it fails */
  struct dirent *(*next)(DIR *listing); /* NULL: the end when errno is 0 */
};

extern const struct cb_cache_calls cb_cache_system_calls;

#endif
