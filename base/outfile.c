// SPDX-License-Identifier: Apache-2.0
/* Writing files so that they appear whole or not at all: see file.h. First what stands at the path is looked at
 * (`inspect`), then a temporary file is made beside it, or what is there is opened. */
#include "base/file.h"

#include "base/memory.h"
#include "base/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST_LINKS = 40, SUFFIX = 32 };

struct cb_outfile {
  int fd;
  int error;        /* errno of the first failed write */
  int exists;       /* `before` is what stands at `path` */
  int is_stream;    /* written to at once */
  int placed;       /* the draft has been renamed */
  struct stat before;
  char *name;       /* as the caller gave it, for messages */
  char *path;       /* behind all links */
  char *draft;      /* the temporary file; NULL for a stream and after the rename */
  char *old;        /* another name of what stood at `path`, until all of several files are in place; or NULL */
};

static enum cb_status fail_errno(struct cb_diag *diag, const char *verb, const char *path, int error) {
  return cb_fail(diag, CB_ERR_IO, "cannot %s '%s': %s", verb, path, strerror(error));
}

static char *copy_text(const char *text) {
  const size_t bytes = strlen(text) + 1;
  char *copy = cb_alloc(bytes, 1);
  return copy ? memcpy(copy, text, bytes) : NULL;
}

/* ---- what stands at a path */

static size_t folder_length(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Follows the links at the end of `path` by their names, since the last may lead to what is not there yet. 0, or an
 * errno. */
static int follow_links(char **path) {
  char target[PATH_MAX];
  for (int links = 0; links < MOST_LINKS; links++) {
    const ssize_t length = readlink(*path, target, sizeof target);
    if (length < 0) return 0;
    if (length == (ssize_t)sizeof target) return ENAMETOOLONG;
    const size_t folder = target[0] == '/' ? 0 : folder_length(*path);
    char *next = cb_alloc(folder + (size_t)length + 1, 1);
    if (!next) return ENOMEM;
    memcpy(next, *path, folder);
    memcpy(next + folder, target, (size_t)length);
    next[folder + (size_t)length] = 0;
    cb_free(*path);
    *path = next;
  }
  return ELOOP;
}

static int is_same(const struct stat *a, const struct stat *b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* The file, if there is one, and its folder may be written. 0, or an errno. */
static int check_rights(struct cb_outfile *out) {
  if (out->exists && faccessat(AT_FDCWD, out->path, W_OK, AT_EACCESS)) return errno;
  const size_t folder = folder_length(out->path);
  const char first = out->path[folder];
  out->path[folder] = 0;
  const int error = faccessat(AT_FDCWD, folder ? out->path : ".", W_OK | X_OK, AT_EACCESS) ? errno : 0;
  out->path[folder] = first;
  return error;
}

/* Fills `before`, `is_stream` and `path`. 0, or an errno. */
static int inspect(struct cb_outfile *out) {
  struct stat behind;
  out->exists = !stat(out->path, &out->before);
  if (!out->exists && errno != ENOENT) return errno;
  if (out->exists && S_ISDIR(out->before.st_mode)) return EISDIR;
  out->is_stream = out->exists && !S_ISREG(out->before.st_mode);
  if (out->is_stream) return 0;
  char *given = copy_text(out->path);
  if (!given) return ENOMEM;
  const int error = follow_links(&out->path);
  /* a descriptor of /proc may lead to a file that no path leads to: then it is written where it is */
  if (!error && out->exists && (stat(out->path, &behind) || !is_same(&behind, &out->before))) {
    out->is_stream = 1;
    cb_free(out->path);
    out->path = given;
    return 0;
  }
  cb_free(given);
  return error ? error : check_rights(out);
}

int cb_file_is_stream(const char *path) {
  struct stat info;
  return !strcmp(path, "-") || (!stat(path, &info) && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode));
}

/* ---- making */

/* `path` with a suffix that no other file has; the name is cut where it would be too long. */
static char *name_beside(const char *path, const char *kind) {
  const size_t folder = folder_length(path), length = strlen(path + folder);
  const size_t kept = length > NAME_MAX - SUFFIX ? NAME_MAX - SUFFIX : length;
  char *name = cb_alloc(folder + kept + SUFFIX, 1);
  uint64_t random = 0;
  if (!name) return NULL;
  if (getrandom(&random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    random = ((uint64_t)now.tv_sec << 32 | (uint64_t)now.tv_nsec) ^ (uint64_t)getpid() << 16;
  }
  memcpy(name, path, folder + kept);
  snprintf(name + folder + kept, SUFFIX, ".%s-%016llx", kind, (unsigned long long)random);
  return name;
}

/* What replaces a file has its owner where that is permitted, and its permissions from the first byte on. */
static int take_permissions(const struct cb_outfile *out) {
  if (!out->exists) return 0;
  mode_t mode = out->before.st_mode & 07777;
  if (fchown(out->fd, out->before.st_uid, out->before.st_gid) && fchown(out->fd, (uid_t)-1, out->before.st_gid))
    mode &= 0777; /* another's rights are not given to whoever executes the file */
  return fchmod(out->fd, mode) ? errno : 0;
}

static int open_draft(struct cb_outfile *out) {
  out->draft = name_beside(out->path, "tmp");
  if (!out->draft) return ENOMEM;
  out->fd = open(out->draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, out->exists ? 0600 : 0666);
  if (out->fd >= 0) return take_permissions(out);
  const int error = errno;
  cb_free(out->draft);
  out->draft = NULL;
  return error;
}

static int open_stream(struct cb_outfile *out) {
  out->fd = open(out->path, O_WRONLY | O_NOCTTY | O_CLOEXEC | (S_ISREG(out->before.st_mode) ? O_TRUNC : 0));
  return out->fd < 0 ? errno : 0;
}

static enum cb_status refuse(const char *path, int error, struct cb_diag *diag) {
  if (error == EISDIR) return cb_fail(diag, CB_ERR_IO, "cannot write '%s': it is a directory", path);
  return error == ENOMEM ? cb_fail_memory(diag, path, strlen(path)) : fail_errno(diag, "create", path, error);
}

enum cb_status cb_file_look(struct cb_outfile **result, const char *path, struct cb_diag *diag) {
  *result = NULL;
  struct cb_outfile *out = cb_calloc(1, sizeof *out);
  if (!out) return cb_fail_memory(diag, path, sizeof *out);
  int error = 0;
  out->fd = -1;
  out->name = copy_text(path);
  out->path = copy_text(path);
  if (!out->name || !out->path) {
    error = ENOMEM;
  } else if (strcmp(path, "-")) {
    error = inspect(out);
  } else {
    out->is_stream = 1;
    out->exists = !fstat(STDOUT_FILENO, &out->before);
  }
  if (error) {
    cb_file_abandon(out);
    return refuse(path, error, diag);
  }
  *result = out;
  return CB_OK;
}

enum cb_status cb_file_create(struct cb_outfile **result, const char *path, struct cb_diag *diag) {
  enum cb_status s = cb_file_look(result, path, diag);
  struct cb_outfile *out = *result;
  int error = 0;
  if (s) return s;
  if (!strcmp(path, "-")) out->fd = STDOUT_FILENO;
  else error = out->is_stream ? open_stream(out) : open_draft(out);
  if (!error) return CB_OK;
  cb_file_abandon(out);
  *result = NULL;
  return refuse(path, error, diag);
}

/* ---- writing */

static void write_all(struct cb_outfile *out, const char *next, size_t length) {
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

void cb_file_write(struct cb_outfile *out, const void *bytes, size_t length) {
  struct cb_held_signals held;
  cb_signals_hold(&held);
  write_all(out, bytes, length);
  cb_signals_release(&held);
}

/* ---- committing: everything that can fail for want of room comes before the first rename */

static void finish(struct cb_outfile *out) {
  if (out->fd < 0) return;
  if (out->draft && !out->error && fsync(out->fd)) out->error = errno;
  if (out->fd != STDOUT_FILENO) {
    if (close(out->fd) && !out->error) out->error = errno; /* network file systems report a full disk here */
    out->fd = -1;
  }
}

/* Keeps what stands at the path under another name; file systems without links cannot. */
static void keep_old(struct cb_outfile *out) {
  out->old = name_beside(out->path, "old");
  if (!out->old || !linkat(AT_FDCWD, out->path, AT_FDCWD, out->old, 0)) return;
  cb_free(out->old);
  out->old = NULL;
}

static void place(struct cb_outfile *out, int one_of_several) {
  if (!out->draft) return;
  if (one_of_several && out->exists) keep_old(out);
  if (rename(out->draft, out->path)) {
    out->error = errno;
    return;
  }
  out->placed = 1;
  cb_free(out->draft);
  out->draft = NULL;
}

static void put_back(struct cb_outfile *out) {
  if (out->placed && (out->exists ? out->old && !rename(out->old, out->path) : !unlink(out->path))) {
    cb_free(out->old);
    out->old = NULL;
  }
  out->placed = 0;
}

static void forget_old(struct cb_outfile *out) {
  if (out->old) unlink(out->old);
  cb_free(out->old);
  out->old = NULL;
}

static struct cb_outfile *failed_one(struct cb_outfile *const *files, int count) {
  for (int i = 0; i < count; i++)
    if (files[i]->error) return files[i];
  return NULL;
}

enum cb_status cb_files_commit(struct cb_outfile *const *files, int count, struct cb_diag *diag) {
  struct cb_held_signals held;
  cb_signals_hold(&held);
  for (int i = 0; i < count; i++) finish(files[i]);
  for (int i = 0; i < count && !failed_one(files, count); i++) place(files[i], count > 1);
  const struct cb_outfile *failed = failed_one(files, count);
  for (int i = count - 1; i >= 0 && failed; i--) put_back(files[i]);
  for (int i = 0; i < count; i++) forget_old(files[i]);
  cb_signals_release(&held);
  return failed ? fail_errno(diag, "write", failed->name, failed->error) : CB_OK;
}

enum cb_status cb_file_commit(struct cb_outfile *out, struct cb_diag *diag) {
  return cb_files_commit(&out, 1, diag);
}

void cb_file_abandon(struct cb_outfile *out) {
  if (!out) return;
  if (out->fd >= 0 && out->fd != STDOUT_FILENO) close(out->fd);
  if (out->draft) unlink(out->draft);
  cb_free(out->draft);
  cb_free(out->old);
  cb_free(out->path);
  cb_free(out->name);
  cb_free(out);
}

const char *cb_file_draft(const struct cb_outfile *out) {
  return out->draft;
}

enum cb_status cb_file_put(const char *path, const void *bytes, size_t length, struct cb_diag *diag) {
  struct cb_outfile *out;
  enum cb_status s = cb_file_create(&out, path, diag);
  if (s) return s;
  cb_file_write(out, bytes, length);
  s = cb_file_commit(out, diag);
  cb_file_abandon(out);
  return s;
}

/* ---- which files are one */

static int is_regular(const struct cb_outfile *out) {
  return out->exists && S_ISREG(out->before.st_mode);
}

int cb_file_replaces(const struct cb_outfile *out, const char *path) {
  struct stat info;
  const int known = strcmp(path, "-") ? !stat(path, &info) : !fstat(STDIN_FILENO, &info);
  return known && is_regular(out) && is_same(&info, &out->before);
}

/* Whether two paths of files that are not there yet end in the same place. */
static int same_place(const char *one, const char *other) {
  char folders[2][PATH_MAX];
  struct stat infos[2];
  const char *const paths[2] = {one, other};
  if (strcmp(one + folder_length(one), other + folder_length(other))) return 0;
  for (int i = 0; i < 2; i++) {
    snprintf(folders[i], PATH_MAX, "%.*s", (int)folder_length(paths[i]), paths[i]);
    if (stat(*folders[i] ? folders[i] : ".", &infos[i])) return 0;
  }
  return is_same(&infos[0], &infos[1]);
}

int cb_files_clash(const struct cb_outfile *one, const struct cb_outfile *other) {
  if (one->exists != other->exists) return 0;
  if (one->exists) return is_regular(one) && is_same(&one->before, &other->before);
  return same_place(one->path, other->path);
}
