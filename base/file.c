// SPDX-License-Identifier: Apache-2.0
/* Reading whole files and writing them atomically: see file.h. */
#include "base/file.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
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

struct cb_outfile {
  int fd;
  int error;          /* errno of the first failed write */
  char *path, *draft; /* draft: the temporary file, NULL for standard output and after the rename */
};

enum cb_status cb_file_create(struct cb_outfile **result, const char *path, struct cb_diag *diag) {
  *result = NULL;
  const int standard = !strcmp(path, "-");
  const size_t length = strlen(path);
  struct cb_outfile *out = cb_calloc(1, sizeof *out);
  if (!out) return cb_fail_memory(diag, path, sizeof *out);
  out->fd = -1;
  out->path = cb_alloc(length + 1, 1);
  if (out->path && !standard) out->draft = cb_alloc(length + 16, 1);
  if (!out->path || (!standard && !out->draft)) {
    cb_file_abandon(out);
    return cb_fail_memory(diag, path, length);
  }
  memcpy(out->path, path, length + 1);
  if (standard) {
    out->fd = STDOUT_FILENO;
  } else {
    snprintf(out->draft, length + 16, "%s.tmp-XXXXXX", path);
    out->fd = mkostemp(out->draft, O_CLOEXEC);
    if (out->fd < 0) {
      const int error = errno;
      cb_free(out->draft);
      out->draft = NULL;
      cb_file_abandon(out);
      return fail_errno(diag, "create", path, error);
    }
  }
  *result = out;
  return CB_OK;
}

void cb_file_write(struct cb_outfile *out, const void *bytes, size_t length) {
  const char *next = bytes;
  while (length && !out->error) {
    const ssize_t written = write(out->fd, next, length);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      out->error = errno;
    } else {
      next += written;
      length -= (size_t)written;
    }
  }
}

enum cb_status cb_file_commit(struct cb_outfile *out, struct cb_diag *diag) {
  if (out->draft) {
    /* mkostemp makes the file private; an output file has the permissions that any new file would have. */
    const mode_t mask = umask(0);
    umask(mask);
    if (!out->error && fchmod(out->fd, 0666 & ~mask)) out->error = errno;
    if (!out->error && fsync(out->fd)) out->error = errno;
    if (close(out->fd) && !out->error) out->error = errno;
    out->fd = -1;
    if (!out->error && rename(out->draft, out->path)) out->error = errno;
    if (!out->error) {
      cb_free(out->draft);
      out->draft = NULL;
    }
  }
  return out->error ? fail_errno(diag, "write", out->path, out->error) : CB_OK;
}

void cb_file_abandon(struct cb_outfile *out) {
  if (!out) return;
  if (out->draft) {
    if (out->fd >= 0) close(out->fd);
    unlink(out->draft);
  }
  cb_free(out->draft);
  cb_free(out->path);
  cb_free(out);
}

const char *cb_file_draft(const struct cb_outfile *out) { return out->draft; }

enum cb_status cb_file_put(const char *path, const void *bytes, size_t length, struct cb_diag *diag) {
  struct cb_outfile *out;
  enum cb_status s = cb_file_create(&out, path, diag);
  if (s) return s;
  cb_file_write(out, bytes, length);
  s = cb_file_commit(out, diag);
  cb_file_abandon(out);
  return s;
}
