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

/* A file under construction: bytes go to a temporary file beside `path`; cb_file_commit syncs it and renames it
 * over `path`; cb_file_abandon (also after a failed commit, and harmless after a good one) leaves no trace.
 * Writes fail stickily: the error is reported by commit. A path of "-" writes to standard output, unbuffered
 * until commit. */
struct cb_outfile;
enum cb_status cb_file_create(struct cb_outfile **out, const char *path, struct cb_diag *diag);
void cb_file_write(struct cb_outfile *out, const void *bytes, size_t length);
enum cb_status cb_file_commit(struct cb_outfile *out, struct cb_diag *diag);
void cb_file_abandon(struct cb_outfile *out); /* frees `out`; NULL is accepted */

/* The temporary file's path, so that a program that is interrupted can remove it; NULL for standard output and
 * once committed. Valid until commit or abandon. */
const char *cb_file_draft(const struct cb_outfile *out);

/* create, write, commit and abandon in one call. */
enum cb_status cb_file_put(const char *path, const void *bytes, size_t length, struct cb_diag *diag);

#endif
