// SPDX-License-Identifier: Apache-2.0
/* Taking the compression off: see stream.h. libarchive's own gzip reader does not compare checksums (its zip
 * reader and its other filters do), so gzip goes through zlib. */
#include "frontend/stream.h"

#include "base/clock.h"
#include "base/memory.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

enum { SLICE_BYTES = 1 << 18, ROOM_BYTES = 1 << 16 };

struct cb_stream {
  const struct cb_source *source;
  const char *next; /* packed bytes not taken yet */
  double reported;  /* when progress last was (cb_seconds) */
  size_t unpacked;  /* bytes handed out */
  int ended;
  struct cb_diag failure;
  int64_t (*read)(struct cb_stream *stream, const void **slice);
  struct archive *archive; /* reads what libarchive unpacks */
  z_stream gzip;           /* reads the rest */
  int gzip_open;
  unsigned char *room; /* ROOM_BYTES that gzip unpacks into */
};

static void report(struct cb_stream *stream) {
  const struct cb_source *source = stream->source;
  if (!source->progress) return;
  const double now = cb_seconds();
  if (now - stream->reported < 0.1) return;
  stream->reported = now;
  source->progress->report(source->progress->user, "unpacking", stream->next - source->bytes,
                           source->end - source->bytes);
}

/* A mapped file's pages need not stay in memory once they were unpacked. */
static void drop_used_pages(const struct cb_stream *stream) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  const uintptr_t begin = (uintptr_t)stream->source->bytes, end = (uintptr_t)stream->next & ~(page - 1);
  if (stream->source->mapped && end > begin) madvise((void *)begin, end - begin, MADV_DONTNEED);
}

/* Takes up to a slice of packed bytes. */
static size_t take_packed(struct cb_stream *stream, const void **slice) {
  drop_used_pages(stream);
  report(stream);
  const size_t left = (size_t)(stream->source->end - stream->next);
  const size_t length = left < SLICE_BYTES ? left : SLICE_BYTES;
  *slice = stream->next;
  stream->next += length;
  return length;
}

static int64_t fail_damaged(struct cb_stream *stream, const char *reason) {
  cb_fail(&stream->failure, CB_ERR_FORMAT, "%s: cannot unpack: %s; fetch or pack the file again",
          stream->source->path, reason);
  return -1;
}

/* At the end of the last compressed part: `rest` must be zeros. */
static int64_t end_with(struct cb_stream *stream, const char *rest) {
  while (rest < stream->source->end && !*rest) rest++;
  return rest == stream->source->end ? 0 : fail_damaged(stream, "other bytes follow the compressed ones");
}

/* ---- as it is */

static int64_t read_plain(struct cb_stream *stream, const void **slice) {
  return (int64_t)take_packed(stream, slice);
}

/* ---- gzip */

static enum cb_status open_gzip(struct cb_stream *stream, struct cb_diag *diag) {
  enum { GZIP_ONLY = 16 + MAX_WBITS };
  stream->room = cb_alloc(ROOM_BYTES, 1);
  stream->gzip_open = stream->room && inflateInit2(&stream->gzip, GZIP_ONLY) == Z_OK;
  return stream->gzip_open ? CB_OK : cb_fail_memory(diag, stream->source->path, ROOM_BYTES);
}

/* After the end of one part: starts the next, if there is one. Returns whether there is. */
static int next_part(struct cb_stream *stream) {
  const char *rest = (const char *)stream->gzip.next_in;
  if (stream->source->end - rest < 2 || memcmp(rest, "\x1f\x8b", 2)) return 0;
  return inflateReset(&stream->gzip) == Z_OK;
}

static int64_t read_gzip(struct cb_stream *stream, const void **slice) {
  z_stream *gzip = &stream->gzip;
  *slice = gzip->next_out = stream->room;
  gzip->avail_out = ROOM_BYTES;
  while (gzip->avail_out == ROOM_BYTES) {
    if (!gzip->avail_in) {
      const void *packed;
      gzip->avail_in = (unsigned)take_packed(stream, &packed);
      gzip->next_in = (z_const Bytef *)packed;
    }
    const int was_last = stream->next == stream->source->end, result = inflate(gzip, Z_NO_FLUSH);
    if (result == Z_MEM_ERROR) return cb_fail_memory(&stream->failure, stream->source->path, 0), -1;
    if (result == Z_DATA_ERROR || result == Z_NEED_DICT) return fail_damaged(stream, gzip->msg ? gzip->msg : "damaged");
    if (result == Z_STREAM_END) {
      if (next_part(stream)) continue;
      stream->ended = 1;
      if (end_with(stream, (const char *)gzip->next_in)) return -1;
      break;
    }
    if (was_last && !gzip->avail_in && gzip->avail_out == ROOM_BYTES) return fail_damaged(stream, "cut off");
  }
  return ROOM_BYTES - (int64_t)gzip->avail_out;
}

/* ---- what libarchive unpacks */

enum cb_status cb_fail_archive(struct cb_diag *diag, struct archive *archive, const char *path) {
  const char *reason = archive_error_string(archive);
  if (archive_errno(archive) == ENOMEM) return cb_fail_memory(diag, path, 0);
  return cb_fail(diag, CB_ERR_FORMAT, "%s: cannot unpack: %s; fetch or pack the file again", path,
                 reason ? reason : "unknown error");
}

enum cb_status cb_open_archive(struct archive *archive, void *user, cb_feed *feed, const char *path,
                               struct cb_diag *diag) {
  /* archive_read_open goes on where the second of these has no memory, and crashes */
  if (archive_read_set_read_callback(archive, feed) < ARCHIVE_WARN ||
      archive_read_set_callback_data(archive, user) < ARCHIVE_WARN || archive_read_open1(archive) < ARCHIVE_WARN)
    return cb_fail_archive(diag, archive, path);
  return CB_OK;
}

static la_ssize_t feed_slice(struct archive *archive, void *user, const void **slice) {
  (void)archive;
  return (la_ssize_t)take_packed(user, slice);
}

static enum cb_status open_filter(struct cb_stream *stream, struct cb_diag *diag) {
  struct archive *archive = stream->archive = archive_read_new();
  struct archive_entry *entry;
  const char *path = stream->source->path;
  if (!archive) return cb_fail_memory(diag, path, 0);
  int bad = archive_read_support_filter_zstd(archive) < ARCHIVE_WARN;
  bad |= archive_read_support_filter_xz(archive) < ARCHIVE_WARN;
  bad |= archive_read_support_filter_bzip2(archive) < ARCHIVE_WARN;
  bad |= archive_read_support_format_raw(archive) < ARCHIVE_WARN;
  bad |= archive_read_support_format_empty(archive) < ARCHIVE_WARN;
  if (bad) return cb_fail_archive(diag, archive, path);
  const enum cb_status s = cb_open_archive(archive, stream, feed_slice, path, diag);
  if (s) return s;
  const int result = archive_read_next_header(archive, &entry);
  if (result == ARCHIVE_EOF) stream->ended = 1;
  else if (result < ARCHIVE_WARN) return cb_fail_archive(diag, archive, path);
  if (archive_filter_count(archive) < 2) /* no filter knew the bytes */
    return cb_fail(diag, CB_ERR_FORMAT, "%s: cannot unpack: cut off or damaged; fetch or pack the file again", path);
  return CB_OK;
}

static int64_t read_filter(struct cb_stream *stream, const void **slice) {
  size_t length = 0;
  la_int64_t unused;
  int result;
  do result = archive_read_data_block(stream->archive, slice, &length, &unused);
  while (result == ARCHIVE_RETRY || (result == ARCHIVE_OK && !length));
  if (result == ARCHIVE_OK) return (int64_t)length;
  if (result == ARCHIVE_EOF) /* libarchive also stops, without a word, before what is no bzip2 */
    return end_with(stream, stream->source->bytes + archive_filter_bytes(stream->archive, -1));
  cb_fail_archive(&stream->failure, stream->archive, stream->source->path);
  return -1;
}

/* ---- all */

static int starts(const struct cb_source *source, const char *magic, size_t length, size_t offset) {
  return (size_t)(source->end - source->bytes) >= offset + length && !memcmp(source->bytes + offset, magic, length);
}

enum cb_status cb_stream_open(struct cb_stream **result, const struct cb_source *source, struct cb_diag *diag) {
  struct cb_stream *stream = *result = cb_calloc(1, sizeof *stream);
  if (!stream) return cb_fail_memory(diag, source->path, sizeof *stream);
  stream->source = source;
  stream->next = source->bytes;
  stream->reported = cb_seconds();
  enum cb_status s = CB_OK;
  if (starts(source, "\x1f\x8b", 2, 0)) {
    stream->read = read_gzip;
    s = open_gzip(stream, diag);
  } else if (starts(source, "ustar", 5, 257)) {
    stream->read = read_plain;
  } else {
    stream->read = read_filter;
    s = open_filter(stream, diag);
  }
  if (!s) return CB_OK;
  cb_stream_close(stream);
  *result = NULL;
  return s;
}

void cb_stream_close(struct cb_stream *stream) {
  if (!stream) return;
  if (stream->gzip_open) inflateEnd(&stream->gzip);
  if (stream->archive) archive_read_free(stream->archive);
  cb_free(stream->room);
  cb_free(stream);
}

int64_t cb_stream_next(struct cb_stream *stream, const void **slice) {
  *slice = NULL;
  if (stream->failure.status) return -1;
  if (stream->ended) return 0;
  const int64_t length = stream->read(stream, slice);
  if (length <= 0) {
    stream->ended = 1;
    return length;
  }
  stream->unpacked += (size_t)length;
  const size_t packed = (size_t)(stream->source->end - stream->source->bytes);
  return cb_check_unpacked(stream->unpacked, packed, stream->source->path, &stream->failure) ? -1 : length;
}

enum cb_status cb_stream_failure(const struct cb_stream *stream, struct cb_diag *diag) {
  if (!stream->failure.status) return CB_OK;
  return cb_fail(diag, stream->failure.status, "%s", stream->failure.message);
}

enum cb_status cb_check_unpacked(size_t length, size_t packed, const char *path, struct cb_diag *diag) {
  /* Text of a matrix shrinks to a hundredth, of a very regular one to a thousandth. */
  enum { PLENTY = 1 << 24, MOST_RATIO = 2000 };
  if (length <= PLENTY || (length - PLENTY) / MOST_RATIO <= packed) return CB_OK;
  return cb_fail(diag, CB_ERR_LIMIT,
                 "%s: unpacks to more than %d times its size; unpack it by hand if it is a matrix all the same", path,
                 MOST_RATIO);
}
