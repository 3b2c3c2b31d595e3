// SPDX-License-Identifier: Apache-2.0
/* Binaries that come with the library: a file for each architecture (families-sm_90.bin) with what was compiled ahead
 * of time, found by the hash of its text. So neither NVRTC nor a cache is needed for it. A text of another build of the
 * library has another hash, so a file that does not belong to it is of no use and does no harm.
 *
 *   file    = "CBGENBIN" u32 version u32 count  arch (16 bytes, zeros behind it)  checksum (16)
 *             u32 packed and u32 unpacked length of the dictionary  u64 XXH3 of it, packed  u32 outlines
 *             entry*  outline*  dictionary  binary*
 *   entry   = key (16)  u64 place  u32 packed  u32 length  u64 XXH3 of the packed bytes  name (88, zeros behind it)
 *   outline = hash (16) of a plan's outline (codegen/outline.h)  u32 entry: that of its text
 *   binary  = a cubin in a frame of zstd, packed with the dictionary: what cubins have in common, the heads of some
 *
 * Numbers are little-endian, entries and outlines ascend by their hashes, places count from the file's begin; the
 * checksum is the hash (base/hash.h) of all entries and outlines. */
#ifndef CBGEN_RUNTIME_CUDA_BINARIES_H
#define CBGEN_RUNTIME_CUDA_BINARIES_H

#include "base/hash.h"
#include "base/status.h"
#include "base/text.h"

#include <stdint.h>

struct cb_binaries;

/* The file `path`. CB_ERR_IO, CB_ERR_FORMAT. */
enum cb_status cb_binaries_open(struct cb_binaries **binaries, const char *path, struct cb_diag *diag);

/* That for an architecture, else for the oldest one of its generation: in $CBGEN_FAMILIES (a directory), beside the
 * library, or where it was installed. CB_ERR_MISSING: there is none. */
enum cb_status cb_binaries_find(struct cb_binaries **binaries, const char *arch, struct cb_diag *diag);
void cb_binaries_close(struct cb_binaries *binaries); /* NULL is accepted */

int cb_binaries_count(const struct cb_binaries *binaries);
const char *cb_binaries_arch(const struct cb_binaries *binaries);

struct cb_binary_entry {
  struct cb_hash key;
  char name[89];
  uint32_t packed, length;
};
struct cb_binary_entry cb_binaries_at(const struct cb_binaries *binaries, int number);

/* What a text is known by. */
struct cb_hash cb_binaries_key(const char *text, size_t length);

/* Whether it has the text's binary. */
int cb_binaries_has(const struct cb_binaries *binaries, struct cb_hash key);

/* Whether it has the binary of the outline's text, and the text's key. NULL for `binaries` has none. */
int cb_binaries_outlined(const struct cb_binaries *binaries, struct cb_hash outline, struct cb_hash *key);

/* A copy of the text's binary, the caller's (cb_free). CB_ERR_MISSING: it has none; CB_ERR_FORMAT: it is damaged;
 * CB_ERR_MEMORY. NULL for `binaries` has none. */
enum cb_status cb_binaries_get(const struct cb_binaries *binaries, struct cb_hash key, unsigned char **cubin,
                               size_t *length, struct cb_diag *diag);

/* ---- writing */

struct cb_binary {
  struct cb_hash key;
  const char *name; /* for lists; cut */
  const unsigned char *cubin;
  size_t length;
};

struct cb_binary_outline {
  struct cb_hash outline, key; /* the latter of its text */
};

/* A whole file's bytes; each key once. Of outlines, each once, those are left out whose text has no binary. Both lists
 * are sorted. CB_ERR_MEMORY. */
enum cb_status cb_binaries_write(struct cb_text *file, const char *arch, struct cb_binary *binaries, int count,
                                 struct cb_binary_outline *outlines, int outlines_count, struct cb_diag *diag);

#endif
