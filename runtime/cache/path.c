// SPDX-License-Identifier: Apache-2.0
/* What stands beside the cache's own directory: directories that are only read, and one in memory for where its own
 * cannot be written. See cache.h. */
#include "runtime/cache/parts.h"

#include "base/environment.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- directories that are only read */

int cb_cache_is_trusted(const struct stat *info, int is_base) {
  return cb_cache_is_own(info) || (is_base && !info->st_uid && !(info->st_mode & (S_IWGRP | S_IWOTH)));
}

/* Adds a sentence to what is said of the cache. */
static void add_remark(struct cb_cache *cache, const char *directory, const char *what) {
  const size_t length = strlen(cache->remark);
  snprintf(cache->remark + length, sizeof cache->remark - length, "%s'%.200s' is not read: %s", length ? "; " : "",
           directory, what);
}

/* Why it must not be read; NULL: it may. */
static const char *refusal(const struct cb_cache *cache, int folder) {
  struct stat info;
  if (cache->calls->inspect(folder, &info)) return strerror(errno);
  if (info.st_uid && info.st_uid != geteuid()) return "it belongs to another user, who is not root";
  return cb_cache_is_trusted(&info, 1) ? NULL : "others may write to it";
}

static void add_base(struct cb_cache *cache, char *directory, int folder) {
  cache->bases[cache->bases_count++] = (struct cb_cache_base){directory, folder};
}

static void open_base(struct cb_cache *cache, const char *name, size_t length) {
  struct cb_text path = {0};
  cb_text_add_bytes(&path, name, length);
  char *directory = cb_text_detach(&path);
  if (!directory) return; /* out of memory: one base less */
  const int folder =
      cache->calls->open(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
  const char *why = folder < 0 ? (errno == ELOOP || errno == ENOTDIR ? "it is no directory" : strerror(errno))
                    : cache->bases_count == CB_CACHE_BASES ? "there are too many before it"
                                                           : refusal(cache, folder);
  if (!why) {
    add_base(cache, directory, folder);
    return;
  }
  add_remark(cache, directory, why);
  if (folder >= 0) cache->calls->close(folder);
  cb_free(directory);
}

void cb_cache_path_open(struct cb_cache *cache, const char *given) {
  const char *path = given ? given : cb_environment("CBGEN_CACHE_PATH");
  for (size_t length; path && *path; path += length + (path[length] == ':')) {
    length = strcspn(path, ":");
    if (length && *path != '/') add_remark(cache, path, "it is no absolute path");
    else if (length) open_base(cache, path, length);
  }
}

void cb_cache_path_close(struct cb_cache *cache) {
  for (int i = 0; i < cache->bases_count; i++) {
    cache->calls->close(cache->bases[i].folder);
    cb_free(cache->bases[i].directory);
  }
}

int cb_cache_bases(const struct cb_cache *cache) {
  return cache ? cache->bases_count : 0;
}

const char *cb_cache_base_directory(const struct cb_cache *cache, int base) {
  return cache->bases[base].directory;
}

/* ---- the directory in memory */

/* 0, or why it cannot be written. */
static int cannot_write(const struct cb_cache *cache) {
  if (cache->state == CB_CACHE_UNUSABLE) return 1;
  return cache->state == CB_CACHE_ON && cache->calls->may_write(cache->folder);
}

/* DIRECTORY/cbgen-UID, where DIRECTORY is there already. */
static char *memory_directory(const struct cb_cache *cache) {
  const char *root = cb_environment("CBGEN_CACHE_MEMORY");
  struct cb_text path = {0};
  struct stat info;
  if (cb_environment_is_foreign()) return NULL; /* no cache that the program did not name */
  if (!root) root = "/dev/shm";
  if (*root != '/' || cache->calls->inspect_name(AT_FDCWD, root, &info) || !S_ISDIR(info.st_mode)) return NULL;
  cb_text_add(&path, "%s/cbgen-%u", root, (unsigned)geteuid());
  return cb_text_detach(&path);
}

int cb_cache_use_memory(struct cb_cache *cache) {
  struct cb_cache memory = {.folder = -1, .limit = cache->limit, .calls = cache->calls};
  char *directory = cannot_write(cache) ? memory_directory(cache) : NULL;
  if (!directory) return 0;
  const struct cb_cache_options options = {.directory = directory};
  const int fails = cb_cache_folder_open(&memory, &options, NULL) || cache->calls->may_write(memory.folder);
  cb_free(directory);
  if (fails) {
    if (memory.folder >= 0) cache->calls->close(memory.folder);
    cb_free(memory.directory);
    return 0;
  }
  snprintf(memory.remark, sizeof memory.remark, "in memory, since '%.200s' cannot be used: %.200s",
           cb_cache_directory(cache), *cache->remark ? cache->remark : "it cannot be written");
  if (cache->folder >= 0) add_base(&memory, cache->directory, cache->folder);
  else cb_free(cache->directory);
  if (memory.limit > CB_CACHE_MEMORY_LIMIT) memory.limit = CB_CACHE_MEMORY_LIMIT;
  *cache = memory;
  return 1;
}
