// SPDX-License-Identifier: Apache-2.0
/* The format of cache entries: heads are made and checked here, and sections read. The grammar is in cache.h.
 *
 * Reading trusts nothing: not the length that the file had a moment ago, not a number in the head before the
 * head's own sum is right, and no section before its sum is. */
#include "runtime/cache/parts.h"

#include "base/integers.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum {
  FORMAT = 2,
  HEAD = sizeof(struct cb_cache_head),
  COPY_MOST = 16 << 20, /* bytes: an entry up to this long is read into memory, a longer one mapped */
  WINDOW = CB_CACHE_WINDOW, /* bytes that one thread reads and hashes at a time */
  BATCH = 1024              /* windows whose digests are kept at a time */
};
static const char magic[8] = "CBGENTRY";

static int64_t aligned(int64_t offset) {
  return cb_round_up(offset, CB_CACHE_ALIGN);
}

/* ---- sums: of a section's length, and of the digests of its windows, which threads compute side by side. A section
 * of one window starts no threads: they would cost more than they save. */

/* Where a section's bytes are: in memory, or in a file. */
struct source {
  int64_t length;
  const char *bytes; /* in memory; else NULL */
  const struct cb_cache_file *file;
  int64_t offset; /* in the file */
  char *into;     /* what is read goes here; NULL: nowhere */
};

/* 0: all bytes were read, -1: the file ends before, else errno. */
int cb_cache_read_all(const struct cb_cache_file *file, void *bytes, size_t length, int64_t offset) {
  char *next = bytes;
  while (length) {
    const ssize_t got = file->calls->read(file->fd, next, length, (off_t)offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (!got) return -1;
    next += got;
    length -= (size_t)got;
    offset += got;
  }
  return 0;
}

/* `buffer` is used when the bytes have no other place. Returns as cb_cache_read_all does. */
static int digest_window(struct cb_hash *digest, const struct source *source, int64_t window, char *buffer) {
  const int64_t begin = window * WINDOW, left = source->length - begin;
  const size_t length = (size_t)(left < WINDOW ? left : WINDOW);
  const char *bytes = source->bytes ? source->bytes + begin : NULL;
  if (!bytes) {
    char *place = source->into ? source->into + begin : buffer;
    if (!place) return ENOMEM;
    const int error = cb_cache_read_all(source->file, place, length, source->offset + begin);
    if (error) return error;
    bytes = place;
  }
  *digest = cb_hash_bytes(bytes, length);
  return 0;
}

static int digest_batch(struct cb_hash digests[BATCH], const struct source *source, int64_t first,
                        int count) {
  int failed = 0;
#pragma omp parallel if (count > 1)
  {
    char *buffer = source->bytes || source->into ? NULL : cb_alloc(WINDOW, 1);
#pragma omp for schedule(dynamic)
    for (int i = 0; i < count; i++) {
      const int error = digest_window(&digests[i], source, first + i, buffer);
      if (error) {
#pragma omp atomic write
        failed = error;
      }
    }
    cb_free(buffer);
  }
  return failed;
}

/* Returns as cb_cache_read_all does. */
static int sum_of(struct cb_hash *sum, const struct source *source) {
  struct cb_hash digests[BATCH];
  const int64_t windows = cb_divide_up(source->length, WINDOW);
  *sum = (struct cb_hash){0, 0};
  cb_hash_number(sum, "length", (uint64_t)source->length);
  for (int64_t first = 0; first < windows; first += BATCH) {
    const int count = windows - first < BATCH ? (int)(windows - first) : BATCH;
    const int error = digest_batch(digests, source, first, count);
    if (error) return error;
    cb_hash_field(sum, "windows", digests, (size_t)count * sizeof *digests);
  }
  return 0;
}

int cb_cache_digest_window(struct cb_hash *digest, const struct cb_cache_file *file, const struct cb_cache_row *row,
                           int64_t window, void *into) {
  const struct source source = {.length = row->length, .file = file, .offset = row->offset};
  return digest_window(digest, &source, window, into);
}

struct cb_hash cb_cache_fold(int64_t length, const struct cb_hash *digests) {
  const int64_t windows = cb_divide_up(length, WINDOW);
  struct cb_hash sum = {0, 0};
  cb_hash_number(&sum, "length", (uint64_t)length);
  for (int64_t first = 0; first < windows; first += BATCH) {
    const int64_t count = windows - first < BATCH ? windows - first : BATCH;
    cb_hash_field(&sum, "windows", digests + first, (size_t)count * sizeof *digests);
  }
  return sum;
}

static int same(struct cb_hash a, struct cb_hash b) {
  return a.high == b.high && a.low == b.low;
}

static struct cb_hash head_check(const struct cb_cache_head *head) {
  return cb_hash_bytes(head, offsetof(struct cb_cache_head, check));
}

/* ---- making heads */

/* Labels are printed in lists: what moves a cursor is replaced, and no character is cut in two. */
static void copy_label(char *field, size_t size, const char *text) {
  size_t length = text ? strlen(text) : 0;
  if (length >= size)
    for (length = size - 1; length && ((unsigned char)text[length] & 0xc0) == 0x80;) length--;
  for (size_t i = 0; i < length; i++)
    field[i] = (unsigned char)text[i] < ' ' || text[i] == 127 ? '_' : text[i];
}

static int tags_fit(const struct cb_cache_section *sections, int count) {
  for (int i = 0; i < count; i++) {
    if (!sections[i].tag[0] || !memchr(sections[i].tag, 0, CB_CACHE_TAG)) return 0;
    for (int j = 0; j < i; j++)
      if (!strcmp(sections[i].tag, sections[j].tag)) return 0;
  }
  return 1;
}

/* The row of a section that begins behind the head's bytes so far. */
static enum cb_status fill_row(struct cb_cache_head *head, struct cb_cache_row *row,
                               const struct cb_cache_section *section, struct cb_diag *diag) {
  memcpy(row->tag, section->tag, strlen(section->tag));
  row->offset = aligned(head->bytes);
  row->length = section->length;
  if (row->length < 0 || row->length > INT64_MAX / 2 - row->offset || (row->length && !section->bytes))
    return cb_fail(diag, CB_ERR_INTERNAL, "a section of %lld bytes cannot be written to the cache",
                   (long long)row->length);
  const struct source source = {.length = row->length, .bytes = section->bytes};
  sum_of(&row->sum, &source);
  head->bytes = row->offset + row->length;
  return CB_OK;
}

enum cb_status cb_cache_head_fill(struct cb_cache_head *head, struct cb_hash key,
                                  const struct cb_cache_label *label, const struct cb_cache_section *sections,
                                  int count, struct cb_diag *diag) {
  memset(head, 0, sizeof *head);
  if (count < 0 || count > CB_CACHE_SECTIONS || !tags_fit(sections, count))
    return cb_fail(diag, CB_ERR_INTERNAL, "a cache entry of %d sections with these tags cannot be written",
                   count);
  memcpy(head->magic, magic, sizeof magic);
  head->format = FORMAT;
  head->count = (uint32_t)count;
  head->key = key;
  head->made = (int64_t)time(NULL);
  copy_label(head->matrix, sizeof head->matrix, label ? label->matrix : NULL);
  copy_label(head->target, sizeof head->target, label ? label->target : NULL);
  copy_label(head->kernel, sizeof head->kernel, label ? label->kernel : NULL);
  head->bytes = HEAD;
  for (int i = 0; i < count; i++) {
    const enum cb_status s = fill_row(head, &head->rows[i], &sections[i], diag);
    if (s) return s;
  }
  head->check = head_check(head);
  return CB_OK;
}

/* ---- opening */

static enum cb_cache_outcome fail(struct cb_diag *diag, enum cb_cache_outcome outcome, struct cb_hash key,
                                  const char *what) {
  char hex[CB_HASH_HEX];
  cb_hash_hex(key, hex);
  cb_fail(diag, outcome == CB_CACHE_DAMAGED ? CB_ERR_FORMAT : CB_ERR_IO, "cache entry '%s' is %s: %s", hex,
          cb_cache_outcome_name(outcome), what);
  return outcome;
}

/* What an error of cb_cache_read_all amounts to. */
enum cb_cache_outcome cb_cache_judge(int error, struct cb_hash key, struct cb_diag *diag) {
  if (!error) return CB_CACHE_HIT;
  if (error < 0) return fail(diag, CB_CACHE_DAMAGED, key, "it is cut short");
  fail(diag, CB_CACHE_UNREADABLE, key, strerror(error));
  if (diag) diag->status = cb_errno_status(error); /* no memory in this process: nothing is wrong with the entry */
  return CB_CACHE_UNREADABLE;
}

/* The one layout that an entry of these lengths can have: so every byte of the file means something. */
static int rows_fit(const struct cb_cache_head *head) {
  int64_t end = HEAD;
  for (uint32_t i = 0; i < head->count; i++) {
    const struct cb_cache_row *row = &head->rows[i];
    if (row->offset != aligned(end) || row->length < 0 || row->length > head->bytes - row->offset) return 0;
    if (!memchr(row->tag, 0, sizeof row->tag)) return 0;
    end = row->offset + row->length;
  }
  return end == head->bytes && !head->matrix[63] && !head->target[63] && !head->kernel[31];
}

static enum cb_cache_outcome check_head(const struct cb_cache_file *file, struct cb_hash key, int64_t bytes,
                                        struct cb_diag *diag) {
  const struct cb_cache_head *head = &file->head;
  if (memcmp(head->magic, magic, sizeof magic)) return fail(diag, CB_CACHE_DAMAGED, key, "this is no entry");
  if (!same(head->check, head_check(head))) {
    /* Another format may keep its sum elsewhere, so it cannot be told from damage for certain; it is left
     * alone, since a put replaces it in any case. */
    if (head->format != FORMAT) return fail(diag, CB_CACHE_OTHER_FORMAT, key, "another version wrote it");
    return fail(diag, CB_CACHE_DAMAGED, key, "the head's checksum is wrong");
  }
  if (head->format != FORMAT) return fail(diag, CB_CACHE_OTHER_FORMAT, key, "another version wrote it");
  if (!same(head->key, key)) return fail(diag, CB_CACHE_DAMAGED, key, "it is the entry of another key");
  if (head->bytes != bytes) return fail(diag, CB_CACHE_DAMAGED, key, "its length is wrong");
  if (head->count > CB_CACHE_SECTIONS || !rows_fit(head))
    return fail(diag, CB_CACHE_DAMAGED, key, "its table is wrong");
  return CB_CACHE_HIT;
}

static enum cb_cache_outcome open_in(struct cb_cache_file *file, const struct cb_cache *cache, int base,
                                     struct cb_hash key, struct cb_diag *diag) {
  const int folder = base < 0 ? cache->folder : cache->bases[base].folder;
  char name[CB_CACHE_NAME];
  struct stat info;
  memset(file, 0, sizeof *file);
  file->calls = cache->calls;
  cb_cache_entry_name(key, name);
  /* O_NONBLOCK: opening a pipe of that name must not wait for a writer. */
  file->fd = file->calls->open(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
  if (file->fd < 0) {
    const int error = errno;
    if (error == ENOENT) return fail(diag, CB_CACHE_ABSENT, key, "it was not made yet, or evicted");
    if (error == ELOOP) return fail(diag, CB_CACHE_FOREIGN, key, "it is a symbolic link");
    return fail(diag, CB_CACHE_UNREADABLE, key, strerror(error));
  }
  if (file->calls->inspect(file->fd, &info)) return fail(diag, CB_CACHE_UNREADABLE, key, strerror(errno));
  if (!S_ISREG(info.st_mode)) return fail(diag, CB_CACHE_FOREIGN, key, "it is no regular file");
  if (!cb_cache_is_trusted(&info, base >= 0))
    return fail(diag, CB_CACHE_FOREIGN, key, "it belongs to another user, or others may write it");
  file->device = info.st_dev;
  file->inode = info.st_ino;
  file->head.key = key; /* for messages, until the head is read */
  struct cb_cache_head head;
  const enum cb_cache_outcome outcome = cb_cache_judge(cb_cache_read_all(file, &head, sizeof head, 0), key, diag);
  if (outcome) return outcome;
  file->head = head;
  return check_head(file, key, (int64_t)info.st_size, diag);
}

enum cb_cache_outcome cb_cache_file_open(struct cb_cache_file *file, const struct cb_cache *cache,
                                         struct cb_hash key, struct cb_diag *diag) {
  return open_in(file, cache, -1, key, diag);
}

enum cb_cache_outcome cb_cache_base_file_open(struct cb_cache_file *file, const struct cb_cache *cache, int base,
                                              struct cb_hash key, struct cb_diag *diag) {
  return open_in(file, cache, base, key, diag);
}

void cb_cache_file_close(struct cb_cache_file *file) {
  if (file->fd >= 0) file->calls->close(file->fd);
  file->fd = -1;
}

/* ---- sections */

enum cb_cache_outcome cb_cache_wrong_sum(const struct cb_cache_file *file, const struct cb_cache_row *row,
                                         struct cb_diag *diag) {
  char what[64];
  snprintf(what, sizeof what, "the checksum of section '%s' is wrong", row->tag);
  return fail(diag, CB_CACHE_DAMAGED, file->head.key, what);
}

enum cb_cache_outcome cb_cache_check_gap(const struct cb_cache_file *file, const struct cb_cache_row *row,
                                         struct cb_diag *diag) {
  char gap[CB_CACHE_ALIGN];
  const int64_t end = row->offset + row->length;
  const size_t zeros = end == file->head.bytes ? 0 : (size_t)(aligned(end) - end);
  const enum cb_cache_outcome outcome = cb_cache_judge(cb_cache_read_all(file, gap, zeros, end), file->head.key, diag);
  for (size_t i = 0; !outcome && i < zeros; i++)
    if (gap[i])
      return fail(diag, CB_CACHE_DAMAGED, file->head.key, "there is something between its sections");
  return outcome;
}

/* Checks one section, which goes to `into` unless that is NULL, and the zeros up to the next section. */
static enum cb_cache_outcome read_section(const struct cb_cache_file *file, const struct cb_cache_row *row,
                                          char *into, struct cb_diag *diag) {
  const struct source source = {.length = row->length, .file = file, .offset = row->offset, .into = into};
  struct cb_hash sum;
  const enum cb_cache_outcome outcome = cb_cache_judge(sum_of(&sum, &source), file->head.key, diag);
  if (outcome) return outcome;
  return same(sum, row->sum) ? cb_cache_check_gap(file, row, diag) : cb_cache_wrong_sum(file, row, diag);
}

static void describe(struct cb_cache_entry *entry, const struct cb_cache_head *head) {
  memset(entry, 0, sizeof *entry);
  entry->key = head->key;
  entry->bytes = head->bytes;
  entry->made = head->made;
  memcpy(entry->matrix, head->matrix, sizeof entry->matrix);
  memcpy(entry->target, head->target, sizeof entry->target);
  memcpy(entry->kernel, head->kernel, sizeof entry->kernel);
  entry->count = (int)head->count;
  for (int i = 0; i < entry->count; i++) {
    memcpy(entry->sections[i].tag, head->rows[i].tag, CB_CACHE_TAG);
    entry->sections[i].length = head->rows[i].length;
  }
}

/* A block of the entry's own, `length` bytes from a multiple of CB_CACHE_ALIGN on. */
static char *own_block(struct cb_cache_entry *entry, int64_t length) {
  entry->block = cb_alloc((size_t)length + CB_CACHE_ALIGN, 1);
  if (!entry->block) return NULL;
  const size_t beyond = (uintptr_t)entry->block % CB_CACHE_ALIGN;
  return (char *)entry->block + (CB_CACHE_ALIGN - beyond) % CB_CACHE_ALIGN;
}

static enum cb_cache_outcome read_copy(const struct cb_cache_file *file, struct cb_cache_entry *entry,
                                       struct cb_diag *diag) {
  char *bytes = own_block(entry, file->head.bytes - HEAD);
  enum cb_cache_outcome outcome = CB_CACHE_HIT;
  if (!bytes) return cb_cache_judge(ENOMEM, file->head.key, diag);
  for (int i = 0; i < entry->count && !outcome; i++) {
    char *place = bytes + (file->head.rows[i].offset - HEAD);
    outcome = read_section(file, &file->head.rows[i], place, diag);
    entry->sections[i].bytes = place;
  }
  return outcome;
}

enum cb_cache_outcome cb_cache_file_check(const struct cb_cache_file *file, struct cb_diag *diag) {
  enum cb_cache_outcome outcome = CB_CACHE_HIT;
  for (uint32_t i = 0; i < file->head.count && !outcome; i++)
    if (!(file->deferred >> i & 1)) outcome = read_section(file, &file->head.rows[i], NULL, diag);
  return outcome;
}

/* Checked by reading, so that a disk's error is a miss and not a SIGBUS; mapped afterwards, so that many
 * processes share the pages. */
static enum cb_cache_outcome read_mapping(const struct cb_cache_file *file, struct cb_cache_entry *entry,
                                          struct cb_diag *diag) {
  const enum cb_cache_outcome outcome = cb_cache_file_check(file, diag);
  if (outcome) return outcome;
  void *mapping = file->calls->map(file->fd, (size_t)file->head.bytes);
  if (mapping == MAP_FAILED) return fail(diag, CB_CACHE_UNREADABLE, file->head.key, strerror(errno));
  entry->mapping = mapping;
  for (int i = 0; i < entry->count; i++)
    entry->sections[i].bytes = (const char *)mapping + file->head.rows[i].offset;
  return CB_CACHE_HIT;
}

enum cb_cache_outcome cb_cache_file_read(const struct cb_cache_file *file, struct cb_cache_entry *entry,
                                         struct cb_diag *diag) {
  describe(entry, &file->head);
  const enum cb_cache_outcome outcome =
      file->head.bytes <= COPY_MOST && !file->deferred ? read_copy(file, entry, diag) : read_mapping(file, entry, diag);
  if (outcome) cb_cache_entry_release(entry);
  return outcome;
}

enum cb_cache_outcome cb_cache_file_read_one(const struct cb_cache_file *file, const char *tag,
                                             struct cb_cache_entry *entry, struct cb_diag *diag) {
  enum cb_cache_outcome outcome = CB_CACHE_HIT;
  describe(entry, &file->head);
  for (int i = 0; tag && i < entry->count && !outcome; i++) {
    if (strcmp(entry->sections[i].tag, tag)) continue;
    char *bytes = own_block(entry, entry->sections[i].length);
    outcome = bytes ? read_section(file, &file->head.rows[i], bytes, diag)
                    : cb_cache_judge(ENOMEM, file->head.key, diag);
    entry->sections[i].bytes = bytes;
    break;
  }
  if (outcome) cb_cache_entry_release(entry);
  return outcome;
}

void cb_cache_entry_release(struct cb_cache_entry *entry) {
  cb_cache_deferred_end(entry->deferred);
  if (entry->mapping) munmap(entry->mapping, (size_t)entry->bytes);
  cb_free(entry->block);
  memset(entry, 0, sizeof *entry);
}

const struct cb_cache_section *cb_cache_section(const struct cb_cache_entry *entry, const char *tag) {
  for (int i = 0; i < entry->count; i++)
    if (!strcmp(entry->sections[i].tag, tag)) return &entry->sections[i];
  return NULL;
}
