// SPDX-License-Identifier: Apache-2.0
/* Compressed files and archives. A file that is merely compressed is unpacked; of a tar archive, the Matrix
 * Market file that carries the archive's own name is taken: the SuiteSparse collection packs NAME/NAME.mtx
 * beside right-hand sides and coordinates such as NAME/NAME_b.mtx. The compression is taken off by stream.h,
 * libarchive finds the members in what comes out, and the stream is read to its end before a matrix is believed. */
#include "frontend/formats.h"

#include "base/memory.h"
#include "frontend/stream.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

enum { SLICE_BYTES = 1 << 16, PADDING = 8 };

static int starts(const char *bytes, size_t length, const char *magic, size_t magic_length) {
  return length >= magic_length && !memcmp(bytes, magic, magic_length);
}

int cb_is_packed(const char *bytes, size_t length) {
  static const struct {
    const char *magic;
    size_t length, offset;
  } kinds[] = {
      {"\x1f\x8b", 2, 0},
      {"\x28\xb5\x2f\xfd", 4, 0},
      {"\xfd"
       "7zXZ",
       5, 0},
      {"BZh", 3, 0},
      {"ustar", 5, 257},
  };
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (length > kinds[i].offset &&
        starts(bytes + kinds[i].offset, length - kinds[i].offset, kinds[i].magic, kinds[i].length))
      return 1;
  /* A zstd file may start with skippable frames, 0x184d2a50 to 0x184d2a5f. */
  return length >= 4 && (bytes[0] & 0xf0) == 0x50 && !memcmp(bytes + 1, "\x2a\x4d\x18", 3);
}

int cb_is_zip(const char *bytes, size_t length) {
  return starts(bytes, length, "PK\3\4", 4) || starts(bytes, length, "PK\5\6", 4);
}

/* Room for one more slice; sizes double. */
static int grow(char **bytes, size_t *capacity, size_t length) {
  if (*capacity - length >= SLICE_BYTES + PADDING) return 1;
  const size_t larger = *capacity ? *capacity * 2 : 4 * SLICE_BYTES;
  char *block = cb_realloc(*bytes, larger, 1);
  if (!block) return 0;
  *bytes = block;
  *capacity = larger;
  return 1;
}

enum cb_status cb_read_member(char **bytes, size_t *length, struct archive *archive, const char *path,
                              size_t packed, struct cb_diag *diag) {
  char *block = NULL;
  size_t used = 0, capacity = 0;
  enum cb_status s = CB_OK;
  for (;;) {
    if (!grow(&block, &capacity, used)) {
      s = cb_fail_memory(diag, path, capacity ? capacity * 2 : 4 * SLICE_BYTES);
      break;
    }
    const la_ssize_t got = archive_read_data(archive, block + used, capacity - PADDING - used);
    if (got == ARCHIVE_RETRY) continue;
    if (got < 0) s = cb_fail_archive(diag, archive, path);
    if (got <= 0) break;
    used += (size_t)got;
    s = cb_check_unpacked(used, packed, path, diag);
    if (s) break;
  }
  if (s) {
    cb_free(block);
    return s;
  }
  memset(block + used, 0, PADDING);
  *bytes = block;
  *length = used;
  return CB_OK;
}

/* ---- choosing a member of an archive */

struct choice {
  char *text; /* of the only candidate so far */
  size_t length;
  int candidates;  /* .mtx files that might be meant */
  int companions;  /* .mtx files that belong to another: NAME/NAME_b.mtx */
  char first[128]; /* names for the message */
  char second[128];
};

struct span {
  const char *begin;
  size_t length;
};

static int has_suffix(struct span span, const char *suffix) {
  const size_t length = strlen(suffix);
  return span.length >= length && !strncasecmp(span.begin + span.length - length, suffix, length);
}

static int same(struct span a, struct span b) {
  return a.length == b.length && !memcmp(a.begin, b.begin, a.length);
}

/* "a/b/NAME.x" to "NAME.x", without the suffix if it is there. */
static struct span base_name(const char *path, const char *suffix) {
  const char *slash = strrchr(path, '/');
  struct span span = {slash ? slash + 1 : path, 0};
  span.length = strlen(span.begin);
  if (has_suffix(span, suffix)) span.length -= strlen(suffix);
  return span;
}

/* The directory right above the file, empty if there is none. */
static struct span parent_name(const char *path) {
  const char *slash = strrchr(path, '/');
  if (!slash) return (struct span){path, 0};
  const char *begin = slash;
  while (begin > path && begin[-1] != '/') begin--;
  return (struct span){begin, (size_t)(slash - begin)};
}

/* The archive's name without any extension of packing. */
static struct span archive_name(const char *path) {
  static const char *const suffixes[] = {".gz", ".zst", ".xz", ".bz2", ".tgz", ".tar", ".mtx"};
  struct span span = base_name(path, "");
  for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
    if (has_suffix(span, suffixes[i])) span.length -= strlen(suffixes[i]);
  return span;
}

/* NAME_something beside a NAME: the archive's or the directory's. */
static int is_companion(struct span base, struct span of) {
  return of.length && base.length > of.length && base.begin[of.length] == '_' &&
         !memcmp(base.begin, of.begin, of.length);
}

enum match { NO_MATRIX, COMPANION, CANDIDATE, EXACT };

static enum match match_member(const char *member, const char *path) {
  if (!has_suffix(base_name(member, ""), ".mtx")) return NO_MATRIX;
  const struct span base = base_name(member, ".mtx"), parent = parent_name(member), name = archive_name(path);
  if (same(base, name) || (base.length && same(base, parent))) return EXACT;
  return is_companion(base, name) || is_companion(base, parent) ? COMPANION : CANDIDATE;
}

static void note_name(struct choice *choice, const char *member) {
  char *name = choice->candidates == 1 ? choice->first : choice->second;
  if (choice->candidates > 2) return;
  const size_t length = strlen(member), most = sizeof choice->first - 1;
  memcpy(name, member, length < most ? length : most);
  name[length < most ? length : most] = 0;
}

/* Looks at one member; sets *done when it is the one. */
static enum cb_status consider(struct choice *choice, struct archive *archive, struct archive_entry *entry,
                               const struct cb_source *source, int *done, struct cb_diag *diag) {
  const char *member = archive_entry_pathname(entry);
  if (!member) member = archive_entry_pathname_utf8(entry);
  const int raw = archive_format(archive) == ARCHIVE_FORMAT_RAW;
  if (!member || (!raw && archive_entry_filetype(entry) != AE_IFREG)) return CB_OK;
  const enum match match = raw ? EXACT : match_member(member, source->path);
  if (match == NO_MATRIX) return CB_OK;
  choice->companions += match == COMPANION;
  choice->candidates += match == CANDIDATE;
  if (match == COMPANION) return CB_OK;
  if (match == CANDIDATE) note_name(choice, member);
  if (match == CANDIDATE && choice->candidates > 1) return CB_OK;
  cb_free(choice->text);
  choice->text = NULL;
  *done = match == EXACT;
  return cb_read_member(&choice->text, &choice->length, archive, source->path,
                        (size_t)(source->end - source->bytes), diag);
}

static enum cb_status check_choice(const struct choice *choice, int done, int format, const char *path,
                                   struct cb_diag *diag) {
  if (done || choice->candidates == 1) return CB_OK;
  if (format == ARCHIVE_FORMAT_EMPTY)
    return cb_fail(diag, CB_ERR_FORMAT, "%s: unpacks to nothing; fetch or pack the file again", path);
  if (choice->candidates)
    return cb_fail(
        diag, CB_ERR_FORMAT,
        "%s: holds %d matrices ('%s', '%s'%s) and none has the archive's name; unpack the one you want", path,
        choice->candidates, choice->first, choice->second, choice->candidates > 2 ? ", ..." : "");
  return cb_fail(diag, CB_ERR_FORMAT, "%s: the archive holds no %s; it must hold NAME/NAME.mtx", path,
                 choice->companions ? "matrix, only vectors or the like" : "Matrix Market file (.mtx)");
}

static la_ssize_t feed_slice(struct archive *archive, void *user, const void **slice) {
  const int64_t length = cb_stream_next(user, slice);
  if (length < 0) archive_set_error(archive, EINVAL, "the packing is damaged");
  return (la_ssize_t)length;
}

static enum cb_status open_archive(struct archive **result, struct cb_stream *stream, const char *path,
                                   struct cb_diag *diag) {
  struct archive *archive = *result = archive_read_new();
  if (!archive) return cb_fail_memory(diag, path, 0);
  int bad = archive_read_support_format_tar(archive) < ARCHIVE_WARN;
  bad |= archive_read_support_format_raw(archive) < ARCHIVE_WARN;
  bad |= archive_read_support_format_empty(archive) < ARCHIVE_WARN;
  return bad ? cb_fail_archive(diag, archive, path) : cb_open_archive(archive, stream, feed_slice, path, diag);
}

static enum cb_status choose_member(struct choice *choice, struct archive *archive, const struct cb_source *source,
                                    struct cb_diag *diag) {
  enum cb_status s = CB_OK;
  int done = 0;
  while (!s && !done) {
    struct archive_entry *entry;
    const int result = archive_read_next_header(archive, &entry);
    if (result == ARCHIVE_EOF) break;
    if (result == ARCHIVE_RETRY) continue;
    if (result < ARCHIVE_WARN)
      s = cb_fail_archive(diag, archive, source->path);
    else
      s = consider(choice, archive, entry, source, &done, diag);
  }
  return s ? s : check_choice(choice, done, archive_format(archive), source->path, diag);
}

enum cb_status cb_unpack(char **text, size_t *length, const struct cb_source *source, struct cb_diag *diag) {
  struct cb_stream *stream;
  struct archive *archive = NULL;
  struct choice choice = {0};
  const void *unused;
  enum cb_status s = cb_stream_open(&stream, source, diag);
  if (s) return s;
  s = open_archive(&archive, stream, source->path, diag);
  if (!s) s = choose_member(&choice, archive, source, diag);
  while (!s && cb_stream_next(stream, &unused) > 0) continue; /* to where the last checksums stand */
  const enum cb_status failure = cb_stream_failure(stream, diag);
  if (failure) s = failure; /* what the archive met after that tells less */
  if (archive) archive_read_free(archive);
  cb_stream_close(stream);
  if (s) {
    cb_free(choice.text);
    return s;
  }
  *text = choice.text;
  *length = choice.length;
  return CB_OK;
}
