// SPDX-License-Identifier: Apache-2.0
/* Reading whole files: see file.h. Writing is in outfile.c. */
#include "base/file.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static enum cb_status fail_errno(struct cb_diag *diag, const char *verb, const char *path, int error) {
  return cb_fail(diag, cb_errno_status(error), "cannot %s '%s': %s", verb, path, strerror(error));
}

/* For pipes and other files without a size: read to the end. */
static enum cb_status slurp(struct cb_mapping *mapping, int fd, const char *path, struct cb_diag *diag) {
  size_t length = 0, capacity = 1 << 16;
  char *bytes = cb_alloc(capacity, 1);
  while (bytes) {
    const ssize_t got = read(fd, bytes + length, capacity - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int error = errno;
      cb_free(bytes);
      return fail_errno(diag, "read", path, error);
    }
    if (!got) break;
    length += (size_t)got;
    if (length < capacity) continue;
    char *larger = cb_realloc(bytes, capacity *= 2, 1);
    if (!larger) cb_free(bytes);
    bytes = larger;
  }
  if (!bytes) return cb_fail_memory(diag, path, capacity);
  *mapping = (struct cb_mapping){bytes, length, 0};
  return CB_OK;
}

static enum cb_status map_open(struct cb_mapping *mapping, int fd, const char *path, struct cb_diag *diag) {
  struct stat info;
  *mapping = (struct cb_mapping){0};
  if (fstat(fd, &info)) return fail_errno(diag, "inspect", path, errno);
  if (S_ISDIR(info.st_mode)) return cb_fail(diag, CB_ERR_IO, "cannot read '%s': it is a directory", path);
  /* a descriptor that was handed over may stand in the middle of its file */
  if (!S_ISREG(info.st_mode) || info.st_size == 0 || lseek(fd, 0, SEEK_CUR) != 0)
    return slurp(mapping, fd, path, diag);
  void *bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (bytes == MAP_FAILED) return fail_errno(diag, "map", path, errno);
  *mapping = (struct cb_mapping){bytes, (size_t)info.st_size, 1};
  return CB_OK;
}

enum cb_status cb_file_map(struct cb_mapping *mapping, const char *path, struct cb_diag *diag) {
  *mapping = (struct cb_mapping){0};
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail_errno(diag, "open", path, errno);
  const enum cb_status s = map_open(mapping, fd, path, diag);
  close(fd);
  return s;
}

enum cb_status cb_file_map_input(struct cb_mapping *mapping, struct cb_diag *diag) {
  return map_open(mapping, STDIN_FILENO, CB_FILE_INPUT, diag);
}

void cb_file_unmap(struct cb_mapping *mapping) {
  if (mapping->mapped) munmap((void *)mapping->bytes, mapping->length);
  else cb_free((void *)mapping->bytes);
  *mapping = (struct cb_mapping){0};
}
