// SPDX-License-Identifier: Apache-2.0
/* The cache on disk: opaque payloads in named sections under a 128-bit key. It knows nothing of operators.
 *
 *   cb_cache_open(&cache, &(struct cb_cache_options){0}, diag)      the status is for a log; go on in any case
 *   key = cb_cache_key(&subject)
 *   if (cb_cache_get(cache, key, &entry, diag) == CB_CACHE_HIT) {
 *     const struct cb_cache_section *cubin = cb_cache_section(&entry, "cubin");
 *     …
 *     cb_cache_entry_release(&entry);
 *   } else {
 *     …                                                   make it; go on with the bytes in memory
 *     cb_cache_put(cache, key, &label, sections, count, diag)
 *   }
 *
 * A cache never fails its caller. One that cannot be used (no directory, no permission, no space, a disk that
 * reports errors) misses everything and keeps nothing; statuses, outcomes and messages are for logs. NULL is
 * accepted as a cache and is such a one. An open cache may be used by several threads at once, and its directory
 * by any number of processes: entries appear whole by renaming and vanish by unlinking. Locks only spare work that
 * another process is doing already (turns): nothing is wrong without them.
 *
 * The directory is $CBGEN_CACHE_DIR, else $XDG_CACHE_HOME/cbgen, else $HOME/.cache/cbgen; an empty
 * CBGEN_CACHE_DIR means none, and nothing of what stands beside it (cb_cache_options). (A set-user-ID program has no
 * environment here, hence no cache unless it names the directory.) It is made with mode 0700, its parents as well, and
 * refused when it is a symbolic link, someone else's, or writable by group or others. Files in it:
 *
 *   KEY.entry                   an entry; KEY has 32 hexadecimal digits
 *   KEY.HOST-PID-RANDOM.draft   an entry that process PID of HOST is writing, or was when it died; HOST stands
 *                               for the host's name and the process's PID namespace
 *   KEY.turn                    locked by the process that is making the entry (see turns)
 *
 *   entry    = head { section }     in the machine's byte order; each section starts at a multiple of 256,
 *                                   zeros between; the file ends with the last section
 *   head     = magic format count key bytes made matrix target { row } kernel check  1024 bytes, then zeros
 *   magic    = "CBGENTRY"           8 bytes
 *   format   = u32                  2; reads as another number on a machine of the other byte order. 1 was written
 *                                   by versions whose text could hold numbers as the caller's locale and rounding
 *                                   mode had them: no entry of those is used
 *   count    = u32                  of sections, at most 16
 *   key      = u128                 as in the name
 *   bytes    = i64                  of the file
 *   made     = i64                  seconds since 1970
 *   matrix   = char[64]             for lists; ends with a NUL
 *   target   = char[64]             likewise
 *   row      = tag offset length sum         48 bytes, 16 of them, those behind `count` zero
 *   tag      = char[16]             ends with a NUL; no two alike
 *   sum      = u128                 of the section's bytes: entry.c
 *   kernel   = char[32]             what the names of its kernels begin with; likewise; 32 zeros behind it
 *   check    = u128                 of the head before it
 *
 * When an entry was last used is its file's modification time, which every hit sets. Eviction goes by it.
 *
 * Trust: a file is read only when it is a regular file of the user's own that none but the user may write, and
 * all of its bytes are checked before any of them is used. What remains: whoever can write as this user can
 * replace an entry by another with right checksums. An entry of up to 16 MiB is a copy in memory. A longer one is
 * first read as a whole, to check it, and then mapped. So is an entry with deferred sections, but for these. Reading
 * the mapping ends in SIGBUS when another program has cut the file short in place since, or when the disk fails to
 * give the same pages a second time. cbgen itself never changes a file in place.
 */
#ifndef CBGEN_RUNTIME_CACHE_CACHE_H
#define CBGEN_RUNTIME_CACHE_CACHE_H

#include "analysis/options.h"
#include "analysis/target.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/text.h"

#include <stddef.h>
#include <stdint.h>

struct cb_cache;

/* ---- open and close */

enum cb_cache_state {
  CB_CACHE_ON,
  CB_CACHE_OFF,     /* by wish: CBGEN_CACHE_DIR is empty */
  CB_CACHE_NOWHERE, /* `existing` was asked for, and there is no such directory */
  CB_CACHE_UNUSABLE
};

#define CB_CACHE_LIMIT ((int64_t)4 << 30) /* bytes, unless options or the environment say otherwise */

/* Beside its own directory a cache has bases: directories, separated by ':', that it only reads, in their order, where
 * its own has no such entry. They belong to root or to the user, nobody else may write to them, and the same holds for
 * their entries. What is wrong with a base is said in the remark, and the others are read.
 *
 * Where its own directory cannot be written (a container, a node without home directories), one in memory can be:
 * DIRECTORY/cbgen-UID, of at most CB_CACHE_MEMORY_LIMIT bytes, with $CBGEN_CACHE_MEMORY as DIRECTORY, else /dev/shm; an
 * empty CBGEN_CACHE_MEMORY means none. All processes of the user on the node share it, until the node forgets it. */
#define CB_CACHE_MEMORY_LIMIT ((int64_t)256 << 20)

/* Zero-initialise it. */
struct cb_cache_options {
  const char *directory; /* NULL: as the environment says; "": none */
  const char *path;      /* bases; NULL: $CBGEN_CACHE_PATH; "": none */
  int in_memory;         /* 1: a directory in memory, where the one cannot be written */
  int64_t limit;         /* bytes of all entries; 0: $CBGEN_CACHE_SIZE (cb_cache_size), else CB_CACHE_LIMIT */
  int existing;          /* 1: do not make the directory */
  const struct cb_cache_calls *calls; /* NULL: the system's; tests put failing ones here: calls.h */
};

/* *cache is the caller's in any case (cb_cache_close), and NULL only when memory ran out. CB_OK: on, off or
 * nowhere; CB_ERR_IO, CB_ERR_MEMORY: unusable; CB_ERR_ARGUMENT: CBGEN_CACHE_SIZE makes no sense and is ignored. */
enum cb_status cb_cache_open(struct cb_cache **cache, const struct cb_cache_options *options,
                             struct cb_diag *diag);
void cb_cache_close(struct cb_cache *cache); /* entries that were read stay valid */

enum cb_cache_state cb_cache_state(const struct cb_cache *cache);
const char *cb_cache_directory(const struct cb_cache *cache); /* "" when none is known */
int64_t cb_cache_limit(const struct cb_cache *cache);         /* bytes */
int cb_cache_bases(const struct cb_cache *cache);
const char *cb_cache_base_directory(const struct cb_cache *cache, int base);
/* Why the cache is not on, or what was ignored; "" when there is nothing to say. */
const char *cb_cache_remark(const struct cb_cache *cache);

/* "500M": a number and K, M, G or T (powers of 1024), or nothing for bytes. CB_ERR_ARGUMENT quotes the text. */
enum cb_status cb_cache_size(int64_t *bytes, const char *text, struct cb_diag *diag);

/* ---- keys */

/* What an entry is made from. Types are options; paths, names and times have no part in a key. */
struct cb_cache_subject {
  const char *kind; /* what the entry holds: another kind of content has another key */
  const struct cb_options *options; /* all of them count */
  const struct cb_target *target;   /* every field counts */
  int64_t rows, cols, nnz;
  struct cb_hash pattern;
  const struct cb_hash *values; /* NULL unless they are baked into the entry */
  int nvrtc_major, nvrtc_minor; /* 0, 0: nothing compiled */
  int extras_count;             /* what else shapes an entry, such as a driver's version */
  struct cb_cache_extra {
    const char *name;
    int64_t number;
  } extras[3];
};

/* Also counts CB_VERSION and a fingerprint of the sources and templates that this library was built from, so
 * that a development build never reads what another made. */
struct cb_hash cb_cache_key(const struct cb_cache_subject *subject);

/* What a key was made from, as text: appends a line for each field, in the order of hashing. Entries keep it as their
 * section "key", so that one can be told from another; some lack it.
 *
 *   fields = { [ "option " | "target " ] NAME "=" VALUE "\n" }        control characters of VALUE are escaped */
void cb_cache_fields(struct cb_text *text, const struct cb_cache_subject *subject);

/* Calls `take` for each field that differs, in the order of `a`, then what only `b` has. A value is NULL where a text
 * lacks the field; no string is terminated. Returns how many differ. */
typedef void cb_cache_field_taker(void *user, const char *name, int name_length, const char *a, int a_length,
                                  const char *b, int b_length);
int cb_cache_compare_fields(const char *a, size_t a_length, const char *b, size_t b_length, cb_cache_field_taker *take,
                            void *user);

/* ---- get and put: a cache with bases is looked up there also when it is not on itself */

enum cb_cache_outcome {
  CB_CACHE_HIT,
  /* misses */
  CB_CACHE_ABSENT,
  CB_CACHE_DAMAGED,      /* bytes are not what they were; the entry is removed */
  CB_CACHE_FOREIGN,      /* a link, no regular file, someone else's, or writable by others */
  CB_CACHE_OTHER_FORMAT, /* of another version of this format, or another machine */
  CB_CACHE_UNREADABLE,   /* it could not be opened, read or mapped, or memory ran out */
  /* of cb_cache_put */
  CB_CACHE_STORED,
  CB_CACHE_PRESENT,    /* an entry with the same sections is there: another process was faster */
  CB_CACHE_TOO_LARGE,  /* for the limit */
  CB_CACHE_UNWRITABLE, /* nothing was left behind */
  /* of both */
  CB_CACHE_UNUSED, /* the cache is not on */
  CB_CACHE_OUTCOMES
};
const char *cb_cache_outcome_name(enum cb_cache_outcome outcome); /* "hit", "absent", … Never NULL. */

enum { CB_CACHE_SECTIONS = 16, CB_CACHE_TAG = 16, CB_CACHE_ALIGN = 256 };

/* Tags in use: "key" (cb_cache_fields), "plan" (the plan's line), "json" (the plan), "source" (CUDA text), all without
 * a NUL at the end;
 * and whatever else an entry holds ("cubin", "operator", …), which tools only list. */
struct cb_cache_section {
  char tag[CB_CACHE_TAG];
  const void *bytes; /* may be NULL when length is 0 */
  int64_t length;
};

struct cb_cache_label {
  const char *matrix, *target; /* for lists; cut to 63 bytes, control characters replaced; NULL: "" */
  const char *kernel; /* what the names of its kernels begin with, "cbgen_0123456789abcdef"; likewise, 31 bytes */
};

/* An entry that was read: immutable, valid until it is released whatever becomes of file and cache. */
struct cb_cache_entry {
  struct cb_hash key;
  int64_t bytes, made; /* of the file; seconds since 1970 */
  char matrix[64], target[64], kernel[32];
  int count;
  struct cb_cache_section sections[CB_CACHE_SECTIONS]; /* bytes at multiples of CB_CACHE_ALIGN */
  void *block, *mapping; /* what is released: either may be NULL */
  struct cb_cache_deferred *deferred; /* NULL: all sections were read and checked */
};

/* Anything but CB_CACHE_HIT is a miss: *entry is then empty, and `diag` (which may be NULL) says more. */
enum cb_cache_outcome cb_cache_get(struct cb_cache *cache, struct cb_hash key, struct cb_cache_entry *entry,
                                   struct cb_diag *diag);
void cb_cache_entry_release(struct cb_cache_entry *entry);

/* ---- deferred sections: they are read and checked while they are used, since reading long ones twice takes long */

enum { CB_CACHE_WINDOW = 1 << 19 }; /* bytes whose digest is taken together, from a section's beginning on */

/* cb_cache_get, but sections with one of these tags (the list ends with NULL) and at least `least` bytes are left for
 * later: nothing of them was read or checked. Their bytes are addresses that stand for them, and are not to be
 * touched before cb_cache_deferred_check has given CB_CACHE_HIT. */
enum cb_cache_outcome cb_cache_get_deferred(struct cb_cache *cache, struct cb_hash key, const char *const *tags,
                                            int64_t least, struct cb_cache_entry *entry, struct cb_diag *diag);
int cb_cache_is_deferred(const struct cb_cache_entry *entry, int section);

/* Reads `length` bytes of a deferred section, from `at` on and all in one window. `room` takes CB_CACHE_WINDOW bytes,
 * because the first call for a window reads all of it and keeps its digest. Returns where in `room` the bytes asked for
 * begin; NULL when they could not be read. Any thread may call it, but only one at a time for the same window. */
const void *cb_cache_deferred_read(const struct cb_cache_entry *entry, int section, int64_t at, int64_t length,
                                   void *room);

/* Reads the windows that nobody asked for, and compares the sums. CB_CACHE_HIT: all is right, and nothing is deferred
 * any more. CB_CACHE_DAMAGED or CB_CACHE_UNREADABLE: the entry is of no use (cb_cache_remove). */
enum cb_cache_outcome cb_cache_deferred_check(struct cb_cache_entry *entry, struct cb_diag *diag);

/* The section of that tag, or NULL. */
const struct cb_cache_section *cb_cache_section(const struct cb_cache_entry *entry, const char *tag);

/* Replaces an entry of that key unless it has the same sections already; evicts what was used longest ago when
 * the limit is passed, never this entry. Tags are not empty, at most 15 bytes and no two alike. */
enum cb_cache_outcome cb_cache_put(struct cb_cache *cache, struct cb_hash key, const struct cb_cache_label *label,
                                   const struct cb_cache_section *sections, int count, struct cb_diag *diag);

/* ---- turns: of many processes that miss the same key at once, one makes the entry, and the others wait for it
 *
 *   if (cb_cache_turn_begin(cache, key, CB_CACHE_PATIENCE, &turn))    an entry is there now
 *     …                                                               look it up (again)
 *   …                                                                 else make it, and put it
 *   cb_cache_turn_end(cache, &turn)
 *
 * A turn ends with its process, too. Threads of one process take turns as processes do, so that one thread must not ask
 * for a key whose turn it has. Where files cannot be locked everybody has the turn at once. */
enum { CB_CACHE_PATIENCE = 300 }; /* seconds: set-up of the largest matrices takes less, and only who hangs longer */

struct cb_cache_turn {
  struct cb_hash key;
  int has_file, fd;
  double waited; /* seconds */
};

/* Waits for at most so many seconds while another has the turn. Returns whether there is an entry of the key now. To be
 * ended in any case. */
int cb_cache_turn_begin(const struct cb_cache *cache, struct cb_hash key, double seconds, struct cb_cache_turn *turn);
void cb_cache_turn_end(const struct cb_cache *cache, struct cb_cache_turn *turn); /* once more: nothing happens */

/* For an entry whose payload turned out to be of no use (a driver refuses it). Absent ones are CB_OK. */
enum cb_status cb_cache_remove(struct cb_cache *cache, struct cb_hash key, struct cb_diag *diag);

/* How often each outcome came to pass with this handle. */
struct cb_cache_counts {
  int64_t of[CB_CACHE_OUTCOMES];
  int64_t evicted; /* entries, by puts */
};
struct cb_cache_counts cb_cache_counts(const struct cb_cache *cache);

/* ---- for tools: unlike the above, these fail with a message. A cache that is not on is empty. */

struct cb_cache_item {
  struct cb_hash key;
  int64_t bytes; /* of the file */
  int64_t used;  /* seconds since 1970 */
  long used_ns;
  int foreign; /* CB_CACHE_FOREIGN to whoever gets it */
};

/* What lies in the directory at one time. Zero-initialise it; release it in any case. */
struct cb_cache_listing {
  struct cb_cache_item *items; /* used last first */
  int64_t count, bytes;        /* entries and their bytes */
  int64_t drafts, draft_bytes; /* unfinished entries, of living and dead processes */
};
enum cb_status cb_cache_list(const struct cb_cache *cache, struct cb_cache_listing *listing,
                             struct cb_diag *diag);
void cb_cache_listing_release(struct cb_cache_listing *listing);

/* The entry that `text` names: the first digits of a key, as many as tell it from all others; or the name of a kernel
 * as a profiler shows it, "cbgen_DIGITS_spmv…", or its digits, of which the entry used last is taken (the same kernel
 * may serve several orders of the same matrix). CB_ERR_ARGUMENT: no such text; CB_ERR_IO: no such entry, or several. */
enum cb_status cb_cache_find(const struct cb_cache *cache, const char *text, struct cb_hash *key,
                             struct cb_diag *diag);

/* Why there is no entry of `key`, whose fields are `fields`: of the entries of the same kind and pattern that keep
 * theirs, the one that differs in the fewest, among the CB_CACHE_NEAREST used last. Appends "option recipe: sell here,
 * auto there; …" to `how`. Returns in how many fields it differs; 0: there is no such entry. */
enum { CB_CACHE_NEAREST = 256 };
int cb_cache_nearest(const struct cb_cache *cache, struct cb_hash key, const char *fields, size_t length,
                     struct cb_hash *nearest, struct cb_text *how);

/* Head, label and lengths of an entry, and the contents of section `tag` alone (NULL: of none); the others' bytes
 * are NULL. Checked like a hit, but it does not count as use, and a damaged entry stays. */
enum cb_cache_outcome cb_cache_peek(const struct cb_cache *cache, struct cb_hash key, const char *tag,
                                    struct cb_cache_entry *entry, struct cb_diag *diag);

/* Reads and checks the whole entry in bounded memory. No use, no removal. */
enum cb_cache_outcome cb_cache_check(const struct cb_cache *cache, struct cb_hash key, struct cb_diag *diag);

struct cb_cache_removal {
  int64_t entries, bytes, drafts;
};

/* Removes drafts of this host's dead processes, drafts of other hosts a day after their last write, and then the
 * entries used longest ago until at most `limit` bytes are left; 0 clears the cache. Goes on after a file that cannot
 * be removed, and reports the first such file. `removal` may be NULL. */
enum cb_status cb_cache_prune(const struct cb_cache *cache, int64_t limit, struct cb_cache_removal *removal,
                              struct cb_diag *diag);

#endif
