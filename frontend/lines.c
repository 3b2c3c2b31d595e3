// SPDX-License-Identifier: Apache-2.0
/* Cutting text into chunks and parsing them in parallel: see lines.h. */
#include "frontend/lines.h"

#include "base/clock.h"
#include "base/memory.h"

#include <omp.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CHUNK_BYTES = 1 << 21, TAIL_PADDING = 16 };

static const char *line_end(const char *at, const char *end) {
  const char *newline = memchr(at, '\n', (size_t)(end - at));
  return newline ? newline + 1 : end;
}

/* The last line without its newline cannot be parsed where it lies: it gets one in a copy of its own. */
static enum cb_status copy_tail(struct cb_lines *lines, const char *begin, const char *end,
                                struct cb_diag *diag) {
  const size_t length = (size_t)(end - begin);
  lines->tail = cb_alloc(length + TAIL_PADDING, 1);
  if (!lines->tail) return cb_fail_memory(diag, lines->source->path, length);
  memcpy(lines->tail, begin, length);
  memset(lines->tail + length, '\n', TAIL_PADDING);
  lines->chunks[lines->count++] = (struct cb_chunk){
      .begin = lines->tail, .end = lines->tail + length + 1, .limit = lines->tail + length + TAIL_PADDING};
  return CB_OK;
}

enum cb_status cb_lines_open(struct cb_lines *lines, const struct cb_source *source, const char *begin,
                             int64_t line, struct cb_diag *diag) {
  *lines = (struct cb_lines){.source = source, .lines = line - 1};
  const char *end = source->end;
  const char *last = memrchr(begin, '\n', (size_t)(end - begin));
  const char *whole = last ? last + 1 : begin; /* up to here every line has its newline */
  const size_t most = (size_t)(whole - begin) / CHUNK_BYTES + 2;
  lines->chunks = cb_calloc(most, sizeof *lines->chunks);
  if (!lines->chunks) return cb_fail_memory(diag, source->path, most * sizeof *lines->chunks);
  while (begin < whole) {
    const char *cut = whole - begin <= CHUNK_BYTES ? whole : line_end(begin + CHUNK_BYTES, whole);
    lines->chunks[lines->count++] = (struct cb_chunk){.begin = begin, .end = cut, .limit = end};
    begin = cut;
  }
  return whole < end ? copy_tail(lines, whole, end, diag) : CB_OK;
}

void cb_lines_close(struct cb_lines *lines) {
  cb_free(lines->chunks);
  cb_free(lines->tail);
  *lines = (struct cb_lines){0};
}

static uintptr_t page_of(const char *at) {
  return (uintptr_t)at & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
}

/* Lets go of pages of a mapped file: they stay in the page cache, but do not count as memory of this process.
 * The kernel maps some pages around each one that is touched, so the neighbours go as well; whoever still
 * reads them gets them back at once. */
static void drop_mapped_pages(const struct cb_lines *lines, const struct cb_chunk *chunk) {
  enum { AROUND = 1 << 17 };
  const struct cb_source *source = lines->source;
  if (!source->mapped || chunk->begin == lines->tail) return;
  const char *begin = chunk->begin - source->bytes > AROUND ? chunk->begin - AROUND : source->bytes;
  const char *end = source->end - chunk->end > AROUND ? chunk->end + AROUND : source->end;
  if (page_of(begin) < page_of(end))
    madvise((void *)page_of(begin), page_of(end) - page_of(begin), MADV_DONTNEED);
}

/* The same after parsing; of memory that nobody reads again, what lies wholly within the chunk. */
static void drop_parsed_pages(const struct cb_lines *lines, const struct cb_chunk *chunk) {
  drop_mapped_pages(lines, chunk);
  if (!lines->source->disposable || chunk->begin == lines->tail) return;
  const uintptr_t begin = page_of(chunk->begin + sysconf(_SC_PAGESIZE) - 1), end = page_of(chunk->end);
  if (begin < end) madvise((void *)begin, end - begin, MADV_DONTNEED);
}

/* Newlines, eight bytes at a time: each byte lane counts up to 255 and is then added up. */
static int64_t count_newlines(const char *at, const char *end) {
  const uint64_t ones = 0x0101010101010101, low = 0x7f7f7f7f7f7f7f7f, newlines = 0x0a0a0a0a0a0a0a0a;
  int64_t count = 0;
  while (end - at >= 8) {
    uint64_t lanes = 0;
    for (int step = 0; step < 255 && end - at >= 8; step++, at += 8) {
      uint64_t bytes;
      memcpy(&bytes, at, sizeof bytes);
      bytes ^= newlines;
      lanes += (~(((bytes & low) + low) | bytes) >> 7) & ones;
    }
    const uint64_t pairs = (lanes & 0x00ff00ff00ff00ff) + (lanes >> 8 & 0x00ff00ff00ff00ff);
    count += (int64_t)(pairs * 0x0001000100010001 >> 48);
  }
  for (; at < end; at++) count += *at == '\n';
  return count;
}

static int holds_entry(const char *line, const char *comments) {
  while (cb_is_blank(*line)) line++;
  return *line != '\n' && (!*line || !strchr(comments, *line));
}

static void count_entries(struct cb_chunk *chunk, const char *comments) {
  chunk->lines = chunk->entries = 0;
  for (const char *at = chunk->begin; at < chunk->end; at = line_end(at, chunk->end)) {
    chunk->lines++;
    chunk->entries += holds_entry(at, comments);
  }
}

/* First lines and first entries of all chunks, from their counts. */
static void number_chunks(struct cb_lines *lines, int64_t first_line) {
  lines->lines = first_line - 1;
  lines->entries = 0;
  for (int64_t i = 0; i < lines->count; i++) {
    lines->chunks[i].line = lines->lines + 1;
    lines->chunks[i].entry = lines->entries;
    lines->lines += lines->chunks[i].lines;
    lines->entries += lines->chunks[i].entries;
  }
}

void cb_lines_count(struct cb_lines *lines, const char *comments, int64_t expected) {
  const int64_t first_line = lines->count && lines->chunks[0].line ? lines->chunks[0].line : lines->lines + 1;
#pragma omp parallel for schedule(dynamic)
  for (int64_t i = 0; i < lines->count; i++) {
    struct cb_chunk *chunk = &lines->chunks[i];
    if (expected >= 0)
      chunk->entries = chunk->lines = count_newlines(chunk->begin, chunk->end);
    else
      count_entries(chunk, comments);
    drop_mapped_pages(lines, chunk);
  }
  number_chunks(lines, first_line);
  if (expected >= 0 && lines->entries != expected) cb_lines_count(lines, comments, -1);
}

int64_t cb_lines_line_of(const struct cb_lines *lines, const char *comments, int64_t entry) {
  const struct cb_chunk *chunk = lines->chunks;
  while (chunk->entry + chunk->entries <= entry) chunk++;
  int64_t line = chunk->line, left = entry - chunk->entry;
  for (const char *at = chunk->begin;; at = line_end(at, chunk->end), line++)
    if (holds_entry(at, comments) && !left--) return line;
}

/* ---- the parallel loop */

struct progress_clock {
  const struct cb_progress *progress;
  double last; /* cb_seconds */
};

/* Reports at most ten times a second; only the thread that called the library does so. */
static void report(struct progress_clock *clock, int64_t done, int64_t total) {
  const double now = cb_seconds();
  if (now - clock->last < 0.1) return;
  clock->last = now;
  clock->progress->report(clock->progress->user, "reading", done, total);
}

struct parsing {
  struct cb_lines *lines;
  cb_parse_chunk *parse;
  void *user;
  int64_t found, done;
  int64_t bad;                   /* the first chunk with an error, or the number of chunks */
  struct cb_complaint complaint; /* of that chunk */
};

static void parse_chunk(struct parsing *parsing, int64_t index) {
  const struct cb_chunk *chunk = &parsing->lines->chunks[index];
  struct cb_complaint complaint = {0};
  int64_t bad;
#pragma omp atomic read
  bad = parsing->bad;
  if (index > bad) return; /* an earlier chunk has failed already */
  const int64_t found = parsing->parse(parsing->user, chunk, &complaint);
#pragma omp atomic
  parsing->found += found;
#pragma omp atomic
  parsing->done += chunk->end - chunk->begin;
  if (!complaint.status) {
    drop_parsed_pages(parsing->lines, chunk);
    return;
  }
#pragma omp critical(cb_complaint)
  if (index < parsing->bad) {
    parsing->complaint = complaint;
#pragma omp atomic write
    parsing->bad = index;
  }
}

enum cb_status cb_lines_parse(struct cb_lines *lines, cb_parse_chunk *parse, void *user, int64_t *found,
                              struct cb_diag *diag) {
  struct parsing parsing = {.lines = lines, .parse = parse, .user = user, .bad = lines->count};
  const struct cb_source *source = lines->source;
  struct progress_clock clock = {.progress = source->progress, .last = cb_seconds()};
#pragma omp parallel for schedule(dynamic)
  for (int64_t i = 0; i < lines->count; i++) {
    parse_chunk(&parsing, i);
    if (clock.progress && omp_get_thread_num() == 0) {
      int64_t done;
#pragma omp atomic read
      done = parsing.done;
      report(&clock, done, source->end - source->bytes);
    }
  }
  *found = parsing.found;
  if (parsing.bad == lines->count) return CB_OK;
  const struct cb_chunk *chunk = &lines->chunks[parsing.bad];
  const int64_t line = chunk->line + count_newlines(chunk->begin, parsing.complaint.at);
  return cb_fail(diag, parsing.complaint.status, "%s:%lld: %s", source->path, (long long)line,
                 parsing.complaint.message);
}

const char *cb_token_text(char text[CB_TOKEN_TEXT], const char *token, const char *end) {
  enum { MOST = 24 };
  int length = 0;
  while (length < MOST && token + length < end) {
    const char c = token[length];
    text[length++] = c >= ' ' && c <= '~' ? c : '?';
  }
  memcpy(text + length, token + length < end ? "..." : "", token + length < end ? 4 : 1);
  return text;
}
