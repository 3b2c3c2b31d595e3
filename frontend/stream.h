// SPDX-License-Identifier: Apache-2.0
/* The bytes of a compressed file without the compression, slice by slice: gzip by zlib, zstd, xz and bzip2 by
 * libarchive, and a plain tar archive as it is. A file may hold several compressed parts one after the other;
 * zeros may fill it up, as they do on tapes, and nothing else may follow.
 *
 * Each format carries checksums, and the last of them stands where the file ends. So nothing that was read is
 * to be trusted before cb_stream_next has said that the end is reached. */
#ifndef CBGEN_FRONTEND_STREAM_H
#define CBGEN_FRONTEND_STREAM_H

#include "frontend/lines.h"

#include <sys/types.h>

struct archive;
struct cb_stream;

enum cb_status cb_stream_open(struct cb_stream **stream, const struct cb_source *source, struct cb_diag *diag);
void cb_stream_close(struct cb_stream *stream); /* NULL is accepted */

/* The next bytes, valid until the next call: their count, 0 at the end of the file, -1 when the file is damaged
 * or memory is short, which cb_stream_failure then tells. Both are final. */
int64_t cb_stream_next(struct cb_stream *stream, const void **slice);

/* The status of what failed and its message, CB_OK where nothing did. */
enum cb_status cb_stream_failure(const struct cb_stream *stream, struct cb_diag *diag);

/* For a reader of an archive that has failed: no memory, or damage. */
enum cb_status cb_fail_archive(struct cb_diag *diag, struct archive *archive, const char *path);

/* Opens a reader whose formats are set; `feed` is an archive_read_callback of libarchive. */
typedef ssize_t cb_feed(struct archive *archive, void *user, const void **slice);
enum cb_status cb_open_archive(struct archive *archive, void *user, cb_feed *feed, const char *path,
                               struct cb_diag *diag);

/* CB_ERR_LIMIT where `length` bytes are more than a file of `packed` bytes holds in good faith. */
enum cb_status cb_check_unpacked(size_t length, size_t packed, const char *path, struct cb_diag *diag);

#endif
