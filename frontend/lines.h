// SPDX-License-Identifier: Apache-2.0
/* Text with one entry per line, read by all threads: the text is cut into chunks at line ends, the lines that
 * hold entries are counted, so that every chunk knows its first line and its first entry, and the chunks are
 * parsed independently. The first error in the text wins, whatever the number of threads.
 *
 *   cb_lines_open(&lines, …)         cuts
 *   cb_lines_count(&lines, …)        sets lines.entries
 *   cb_lines_parse(&lines, …)        calls back once per chunk
 *   cb_lines_close(&lines)
 */
#ifndef CBGEN_FRONTEND_LINES_H
#define CBGEN_FRONTEND_LINES_H

#include "base/status.h"
#include "frontend/read.h"

#include <stddef.h>
#include <stdint.h>

/* Text to read and how it is called in messages. */
struct cb_source {
  const char *path;
  const char *bytes, *end;
  int mapped;     /* a file mapping: pages that were read may be dropped, the file still has them */
  int disposable; /* memory of the reader's own: pages are lost once they were parsed */
  const struct cb_progress *progress;
};

struct cb_chunk {
  const char *begin, *end; /* whole lines; the last byte is '\n' */
  const char *limit;       /* memory is readable up to here */
  int64_t line, lines;     /* number of the first line (from 1), count of lines */
  int64_t entry, entries;  /* number of the first entry (from 0), count of entries */
};

struct cb_lines {
  const struct cb_source *source;
  struct cb_chunk *chunks;
  int64_t count; /* of chunks */
  char *tail;    /* the last line, when the text does not end in '\n' */
  int64_t lines, entries;
};

/* Cuts the text from `begin`, which is the start of line `line`. `source` must outlive `lines`. */
enum cb_status cb_lines_open(struct cb_lines *lines, const struct cb_source *source, const char *begin,
                             int64_t line, struct cb_diag *diag);
void cb_lines_close(struct cb_lines *lines);

/* Counts entries: lines that are neither blank nor start with a byte of `comments`. Where there are exactly
 * `expected` lines it takes all of them for entries; cb_lines_parse finds out if that was wrong. */
void cb_lines_count(struct cb_lines *lines, const char *comments, int64_t expected);

/* The line number of entry `entry`, which must be below lines->entries after a full count. */
int64_t cb_lines_line_of(const struct cb_lines *lines, const char *comments, int64_t entry);

/* Where parsing stopped: set `at` (within the chunk) and say what is wrong. */
struct cb_complaint {
  const char *at;
  enum cb_status status;
  char message[512];
};

/* Parses one chunk and returns the number of entries found; on an error, fills `complaint`. */
typedef int64_t cb_parse_chunk(void *user, const struct cb_chunk *chunk, struct cb_complaint *complaint);

/* Parses all chunks. `*found` is the number of entries seen; where it is less than lines->entries, blank
 * lines or comments were taken for entries and the caller must count fully (cb_lines_count with expected -1).
 */
enum cb_status cb_lines_parse(struct cb_lines *lines, cb_parse_chunk *parse, void *user, int64_t *found,
                              struct cb_diag *diag);

static inline int cb_is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/* Copies a token for a message: up to 24 bytes, what cannot be printed as '?'. */
enum { CB_TOKEN_TEXT = 32 };
const char *cb_token_text(char text[CB_TOKEN_TEXT], const char *token, const char *end);

#endif
