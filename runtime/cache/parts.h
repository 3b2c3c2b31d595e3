// SPDX-License-Identifier: Apache-2.0
/* What the files of the cache share; nothing else includes it.
 *
 *   cache.c    open, get, put, counts           entry.c   the format: building and reading entries
 *   folder.c   directory, list, prune           key.c     keys and their names
 *   calls.c    the system's file operations     deferred.c sections that are read while used
 *   path.c     bases, and a directory in memory turn.c     who makes an entry
 */
#ifndef CBGEN_RUNTIME_CACHE_PARTS_H
#define CBGEN_RUNTIME_CACHE_PARTS_H

#include "runtime/cache/cache.h"
#include "runtime/cache/calls.h"

#include <stdatomic.h>

/* A directory that is only read. */
struct cb_cache_base {
  char *directory;
  int folder;
};
enum { CB_CACHE_BASES = 16 };

struct cb_cache {
  enum cb_cache_state state;
  int folder; /* descriptor of the directory; -1 unless the cache is on */
  int64_t limit;
  const struct cb_cache_calls *calls;
  char *directory; /* NULL when none is known */
  char remark[512];
  struct cb_cache_base bases[CB_CACHE_BASES];
  int bases_count;
  atomic_int_fast64_t outcomes[CB_CACHE_OUTCOMES], evicted;
};

/* ---- entry.c */

struct cb_cache_row {
  char tag[CB_CACHE_TAG];
  int64_t offset, length;
  struct cb_hash sum;
};

struct cb_cache_head {
  char magic[8];
  uint32_t format, count;
  struct cb_hash key;
  int64_t bytes, made;
  char matrix[64], target[64];
  struct cb_cache_row rows[CB_CACHE_SECTIONS];
  char kernel[32], zeros[32];
  struct cb_hash check;
};
_Static_assert(sizeof(struct cb_cache_head) == 1024, "the head has no padding");

/* Fills in the head of an entry with these sections. CB_ERR_INTERNAL: their tags, lengths or count are not
 * what cb_cache_put asks for. */
enum cb_status cb_cache_head_fill(struct cb_cache_head *head, struct cb_hash key,
                                  const struct cb_cache_label *label, const struct cb_cache_section *sections,
                                  int count, struct cb_diag *diag);

/* An entry's file, opened; its head is checked. */
struct cb_cache_file {
  const struct cb_cache_calls *calls;
  int fd;
  dev_t device; /* which file it is, to recognise it by its name */
  ino_t inode;
  unsigned deferred; /* a bit per section that is left for later; 0 when opened */
  struct cb_cache_head head;
};

/* CB_CACHE_HIT or why not; close `file` in any case. The second opens that of a base. */
enum cb_cache_outcome cb_cache_file_open(struct cb_cache_file *file, const struct cb_cache *cache,
                                         struct cb_hash key, struct cb_diag *diag);
enum cb_cache_outcome cb_cache_base_file_open(struct cb_cache_file *file, const struct cb_cache *cache, int base,
                                              struct cb_hash key, struct cb_diag *diag);
void cb_cache_file_close(struct cb_cache_file *file);

/* All sections, checked, into memory or a mapping; deferred ones are mapped, and not checked. */
enum cb_cache_outcome cb_cache_file_read(const struct cb_cache_file *file, struct cb_cache_entry *entry,
                                         struct cb_diag *diag);
/* The head, and the section of that tag when it has it. */
enum cb_cache_outcome cb_cache_file_read_one(const struct cb_cache_file *file, const char *tag,
                                             struct cb_cache_entry *entry, struct cb_diag *diag);
/* All sections, checked and thrown away. */
enum cb_cache_outcome cb_cache_file_check(const struct cb_cache_file *file, struct cb_diag *diag);

/* A section's sum is made of the digests of its windows. The first reads a window into `into`, which has room for one,
 * and makes its digest: 0, -1 (the file ends before), or errno. The second makes the sum of all digests. */
int cb_cache_digest_window(struct cb_hash *digest, const struct cb_cache_file *file, const struct cb_cache_row *row,
                           int64_t window, void *into);
struct cb_hash cb_cache_fold(int64_t length, const struct cb_hash *digests);
/* The bytes between the end of a deferred section and what follows it, which are zeros. */
enum cb_cache_outcome cb_cache_check_gap(const struct cb_cache_file *file, const struct cb_cache_row *row,
                                         struct cb_diag *diag);
/* The outcome of such an error, with its message; the outcome of a sum that is not the head's. */
enum cb_cache_outcome cb_cache_judge(int error, struct cb_hash key, struct cb_diag *diag);
enum cb_cache_outcome cb_cache_wrong_sum(const struct cb_cache_file *file, const struct cb_cache_row *row,
                                         struct cb_diag *diag);
int cb_cache_read_all(const struct cb_cache_file *file, void *bytes, size_t length, int64_t offset);

/* ---- deferred.c */

/* Takes the file over (its descriptor) for the sections that are deferred. 0: out of memory. */
int cb_cache_deferred_begin(struct cb_cache_entry *entry, struct cb_cache_file *file);
void cb_cache_deferred_end(struct cb_cache_deferred *deferred); /* NULL is accepted */

/* ---- folder.c */

/* Finds, makes and opens the directory: sets state, folder, directory and remark. */
enum cb_status cb_cache_folder_open(struct cb_cache *cache, const struct cb_cache_options *options,
                                    struct cb_diag *diag);

/* Whether a file with this owner and mode is the user's own: nobody else writes it. */
int cb_cache_is_own(const struct stat *info);

/* ---- path.c */

/* Opens the directories of a path (NULL: $CBGEN_CACHE_PATH), and says in the remark which ones are not read and why. */
void cb_cache_path_open(struct cb_cache *cache, const char *given);
void cb_cache_path_close(struct cb_cache *cache);

/* Where the directory cannot be written: makes it the first base, if it can be read, and one in memory the cache's own.
 * Returns whether it has. */
int cb_cache_use_memory(struct cb_cache *cache);

/* Whether a file or directory may be read: nobody but the user writes it, or root where that is of a base. */
int cb_cache_is_trusted(const struct stat *info, int is_base);

/* ---- folder.c, again */

/* Prunes as cb_cache_prune does, but keeps the entry `keep` (NULL: none). */
enum cb_status cb_cache_evict(const struct cb_cache *cache, int64_t limit, const struct cb_hash *keep,
                              struct cb_cache_removal *removal, struct cb_diag *diag);

/* Files' names, without the directory. */
enum { CB_CACHE_NAME = 112 };
void cb_cache_entry_name(struct cb_hash key, char name[CB_CACHE_NAME]);
void cb_cache_draft_name(struct cb_hash key, char name[CB_CACHE_NAME]); /* another one with each call */
void cb_cache_turn_name(struct cb_hash key, char name[CB_CACHE_NAME]);

#endif
