// SPDX-License-Identifier: Apache-2.0
/* Unified diffs: see line_diff.h. What both texts begin and end with is left aside before lines are compared. */
#include "base/line_diff.h"

#include "base/hash.h"
#include "base/memory.h"

#include <string.h>

struct line {
  const char *bytes;
  int64_t length;
  uint64_t digest; /* for quick comparison */
  int differs;     /* it is removed, or added */
};

struct lines {
  struct line *at;
  int64_t count;
};

/* The comparison of a[first …] with b[first …], without the common end. */
struct search {
  struct line *a, *b;
  int64_t a_count, b_count;
  int32_t *reached; /* after d edits, how far diagonal k = x - y goes in `a`: element d (d + 1) / 2 + (k + d) / 2 */
};

/* ---- lines */

static int64_t count_lines(const char *bytes, size_t length) {
  int64_t count = length && bytes[length - 1] != '\n';
  for (size_t i = 0; i < length; i++) count += bytes[i] == '\n';
  return count;
}

static enum cb_status split(struct lines *lines, const char *bytes, size_t length, struct cb_diag *diag) {
  const char *const end = bytes + length;
  lines->count = count_lines(bytes, length);
  if (lines->count >= INT64_C(1) << 30) return cb_fail(diag, CB_ERR_LIMIT, "a text has too many lines to compare");
  lines->at = cb_calloc((size_t)lines->count, sizeof *lines->at);
  if (!lines->at) return cb_fail_memory(diag, "lines to compare", (unsigned long long)lines->count * sizeof *lines->at);
  for (int64_t i = 0; i < lines->count; i++) {
    const char *stop = memchr(bytes, '\n', (size_t)(end - bytes));
    if (!stop) stop = end;
    lines->at[i] = (struct line){.bytes = bytes, .length = stop - bytes};
    lines->at[i].digest = cb_hash_bytes(bytes, (size_t)(stop - bytes)).low;
    bytes = stop + 1;
  }
  return CB_OK;
}

static int same(const struct line *a, const struct line *b) {
  return a->digest == b->digest && a->length == b->length && !memcmp(a->bytes, b->bytes, (size_t)a->length);
}

/* ---- the search */

static int32_t reached(const struct search *search, int d, int k) {
  return search->reached[(int64_t)d * (d + 1) / 2 + (k + d) / 2];
}

/* Whether the d-th edit that ends on diagonal k adds a line of b; else it removes one of a. */
static int adds(const struct search *search, int d, int k) {
  return k == -d || (k != d && reached(search, d - 1, k - 1) < reached(search, d - 1, k + 1));
}

/* How far d edits get on diagonal k. */
static int64_t advance(const struct search *search, int d, int k) {
  int64_t x = 0;
  if (d) x = adds(search, d, k) ? reached(search, d - 1, k + 1) : reached(search, d - 1, k - 1) + 1;
  while (x < search->a_count && x - k < search->b_count && same(&search->a[x], &search->b[x - k])) x++;
  return x;
}

/* Marks the lines of the d edits that lead to diagonal k. */
static void mark(struct search *search, int d, int k) {
  for (; d; d--) {
    const int added = adds(search, d, k);
    k += added ? 1 : -1;
    const int64_t x = reached(search, d - 1, k);
    if (added)
      search->b[x - k].differs = 1;
    else
      search->a[x].differs = 1;
  }
}

/* Of the paths of d edits, the diagonal of the one that has compared most lines. */
static int furthest(const struct search *search, int d) {
  int64_t most = -1;
  int best = 0;
  for (int k = -d; k <= d; k += 2) {
    const int64_t x = reached(search, d, k), y = x - k;
    if (x > search->a_count || y < 0 || y > search->b_count || x + y <= most) continue;
    most = x + y;
    best = k;
  }
  return best;
}

static enum cb_status grow(struct search *search, int d, struct cb_diag *diag) {
  const size_t count = (size_t)(d + 1) * (size_t)(d + 2) / 2;
  if (d & (d - 1)) return CB_OK; /* room for twice as many edits is made at powers of 2 */
  const size_t room = d ? (size_t)(2 * d + 1) * (size_t)(2 * d + 2) / 2 : count;
  int32_t *larger = cb_realloc(search->reached, room, sizeof *larger);
  if (!larger) return cb_fail_memory(diag, "a comparison of texts", room * sizeof *larger);
  search->reached = larger;
  return CB_OK;
}

/* Marks what differs; *a_end and *b_end: up to where the texts were compared. */
static enum cb_status compare(struct search *search, int64_t *a_end, int64_t *b_end, struct cb_diag *diag) {
  enum cb_status s = CB_OK;
  for (int d = 0; d <= CB_LINE_DIFF_MOST && !s; d++) {
    s = grow(search, d, diag);
    for (int k = -d; k <= d && !s; k += 2) {
      const int64_t x = advance(search, d, k);
      search->reached[(int64_t)d * (d + 1) / 2 + (k + d) / 2] = (int32_t)x;
      if (x < search->a_count || x - k < search->b_count) continue;
      mark(search, d, k);
      return CB_OK;
    }
  }
  if (s) return s;
  const int k = furthest(search, CB_LINE_DIFF_MOST);
  *a_end = reached(search, CB_LINE_DIFF_MOST, k);
  *b_end = *a_end - k;
  mark(search, CB_LINE_DIFF_MOST, k);
  return CB_OK;
}

/* ---- hunks */

static void add_line(struct cb_text *text, char sign, const struct line *line) {
  char raw[CB_LINE_DIFF_COLUMNS + 1], printable[4 * CB_LINE_DIFF_COLUMNS + 1];
  size_t length = line->length < CB_LINE_DIFF_COLUMNS ? (size_t)line->length : CB_LINE_DIFF_COLUMNS;
  const int is_cut = (int64_t)length < line->length;
  while (is_cut && length && ((unsigned char)line->bytes[length] & 0xc0) == 0x80) length--;
  memcpy(raw, line->bytes, length);
  raw[length] = 0;
  for (size_t i = 0; i < length; i++)
    if (!raw[i]) raw[i] = 1; /* shown as an escape, not as the line's end */
  cb_escape(printable, sizeof printable, raw, "\t");
  cb_text_add(text, "%c%s%s\n", sign, printable, is_cut ? "…" : "");
}

/* Where a walk through both texts stands. */
struct place {
  int64_t a, b;
};

/* The sign of the line at `place`, behind which it moves: '-', '+' or ' '; 0 at the end. */
static char step(struct place *place, const struct lines *a, const struct lines *b) {
  if (place->a < a->count && a->at[place->a].differs) return place->a++, '-';
  if (place->b < b->count && b->at[place->b].differs) return place->b++, '+';
  if (place->a >= a->count || place->b >= b->count) return 0;
  place->a++;
  place->b++;
  return ' ';
}

/* Behind the last line of the hunk whose first change is at `from`: changes with at most twice the context between. */
static struct place end_of_hunk(struct place from, const struct lines *a, const struct lines *b) {
  struct place at = from, end = from;
  char sign;
  for (int alike = 0; alike <= 2 * CB_LINE_DIFF_CONTEXT && (sign = step(&at, a, b));) {
    alike = sign == ' ' ? alike + 1 : 0;
    if (alike <= CB_LINE_DIFF_CONTEXT) end = at;
  }
  return end;
}

static void add_hunk(struct cb_text *text, struct cb_line_diff *found, struct place from, struct place end,
                     const struct lines *a, const struct lines *b) {
  char sign;
  cb_text_add(text, "@@ -%lld,%lld +%lld,%lld @@\n", (long long)from.a + (end.a > from.a), (long long)(end.a - from.a),
              (long long)from.b + (end.b > from.b), (long long)(end.b - from.b));
  for (struct place at = from; at.a < end.a || at.b < end.b;) {
    const struct place before = at;
    sign = step(&at, a, b);
    found->removed += sign == '-';
    found->added += sign == '+';
    add_line(text, sign, sign == '+' ? &b->at[before.b] : &a->at[before.a]);
  }
}

/* Lines before `at` that are alike and belong to no hunk before it. */
static struct place back(struct place at, struct place since) {
  int64_t lines = at.a - since.a < CB_LINE_DIFF_CONTEXT ? at.a - since.a : CB_LINE_DIFF_CONTEXT;
  return (struct place){at.a - lines, at.b - lines};
}

static void add_hunks(struct cb_text *text, struct cb_line_diff *found, const struct lines *a, const struct lines *b) {
  struct place at = {0, 0}, since = at;
  for (;;) {
    const struct place before = at;
    const char sign = step(&at, a, b);
    if (!sign) return;
    if (sign == ' ') continue;
    const struct place from = back(before, since);
    at = since = end_of_hunk(before, a, b);
    add_hunk(text, found, from, at, a, b);
  }
}

/* ---- the whole */

static enum cb_status find(struct lines *a, struct lines *b, struct cb_line_diff *found, struct cb_diag *diag) {
  int64_t head = 0, tail = 0;
  while (head < a->count && head < b->count && same(&a->at[head], &b->at[head])) head++;
  while (tail < a->count - head && tail < b->count - head &&
         same(&a->at[a->count - 1 - tail], &b->at[b->count - 1 - tail]))
    tail++;
  struct search search = {
      .a = a->at + head, .b = b->at + head, .a_count = a->count - head - tail, .b_count = b->count - head - tail};
  int64_t a_end = search.a_count, b_end = search.b_count;
  const enum cb_status s = compare(&search, &a_end, &b_end, diag);
  found->is_cut = a_end < search.a_count || b_end < search.b_count;
  if (found->is_cut) { /* the rest was not compared */
    a->count = head + a_end;
    b->count = head + b_end;
  }
  cb_free(search.reached);
  return s;
}

enum cb_status cb_line_diff(struct cb_text *text, struct cb_line_diff *found, const char *a, size_t a_length,
                            const char *b, size_t b_length, struct cb_diag *diag) {
  struct lines one = {0}, other = {0};
  *found = (struct cb_line_diff){0};
  enum cb_status s = split(&one, a, a_length, diag);
  if (!s) s = split(&other, b, b_length, diag);
  if (!s) s = find(&one, &other, found, diag);
  if (!s) add_hunks(text, found, &one, &other);
  if (!s && found->is_cut)
    cb_text_add(text, "@@ more than %d lines differ: compared up to lines %lld and %lld @@\n", CB_LINE_DIFF_MOST,
                (long long)one.count, (long long)other.count);
  if (!s && text->failed) s = cb_fail_memory(diag, "a comparison of texts", 0);
  cb_free(one.at);
  cb_free(other.at);
  return s;
}
