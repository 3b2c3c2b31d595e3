// SPDX-License-Identifier: Apache-2.0
/* Files that are read whole, and files that appear whole or not at all. */
#ifndef CBGEN_BASE_FILE_H
#define CBGEN_BASE_FILE_H

#include "base/status.h"

#include <stddef.h>

/* A file's bytes, read-only, memory-mapped when the file is a regular one. Release with cb_file_unmap. */
struct cb_mapping {
  const char *bytes; /* not NUL-terminated */
  size_t length;
  int mapped; /* 1: munmap, 0: a block of cb_alloc */
};

enum cb_status cb_file_map(struct cb_mapping *mapping, const char *path, struct cb_diag *diag);
/* The same of standard input, which messages call CB_FILE_INPUT; it stays open. */
#define CB_FILE_INPUT "standard input"
enum cb_status cb_file_map_input(struct cb_mapping *mapping, struct cb_diag *diag);
void cb_file_unmap(struct cb_mapping *mapping);

/* A file under construction. What stands at `path` decides what becomes of it:
 *
 *   nothing               a new file, with the permissions that any new file would have
 *   a regular file        is replaced as a whole, and the new one has its permissions and owner; one that may not be
 *                         written is refused
 *   a symbolic link       stays, and all this holds for what it leads to, be it there or not
 *   a device or a pipe    is written to, at once
 *   a directory           is refused
 *   "-"                   is standard output, which is written to at once
 *
 * Bytes of regular files go to a temporary file beside the path; cb_file_commit syncs it and renames it;
 * cb_file_abandon (also after a failed commit, and harmless after a good one) leaves no trace. Writes fail stickily:
 * the error is reported by commit. No write raises a signal (base/signals.h). */
struct cb_outfile;
/* Looks, and makes nothing yet: errors that can be known before there is something to write. Abandon it. */
enum cb_status cb_file_look(struct cb_outfile **out, const char *path, struct cb_diag *diag);
enum cb_status cb_file_create(struct cb_outfile **out, const char *path, struct cb_diag *diag);
void cb_file_write(struct cb_outfile *out, const void *bytes, size_t length);
enum cb_status cb_file_commit(struct cb_outfile *out, struct cb_diag *diag);
void cb_file_abandon(struct cb_outfile *out); /* frees `out`; NULL is accepted */

/* Commits several: when one of them fails, what the others replaced is back in its place. */
enum cb_status cb_files_commit(struct cb_outfile *const *files, int count, struct cb_diag *diag);

/* The temporary file's path, so that a program that is interrupted can remove it; NULL for what is written to at once
 * and once committed. Valid until commit or abandon. */
const char *cb_file_draft(const struct cb_outfile *out);

/* Whether `path` is written to at once: "-", a device, a pipe. */
int cb_file_is_stream(const char *path);

/* Whether committing `out` would replace the file `path` ("-": standard input), by whatever name; whether two files
 * under construction are one. Devices and pipes never are. */
int cb_file_replaces(const struct cb_outfile *out, const char *path);
int cb_files_clash(const struct cb_outfile *one, const struct cb_outfile *other);

/* create, write, commit and abandon in one call. */
enum cb_status cb_file_put(const char *path, const void *bytes, size_t length, struct cb_diag *diag);

#endif
