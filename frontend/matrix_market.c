// SPDX-License-Identifier: Apache-2.0
/* Matrix Market files (R. F. Boisvert, R. Pozo, K. A. Remington, "The Matrix Market exchange formats", NISTIR
 * 5935, 1996): a banner, comments, the size line, then one entry per line.
 *
 * More is accepted than the report says where files in the wild need it: words in any case, CRLF, blank lines
 * and comments anywhere, entries in both triangles of a symmetric file, any number where an integer is due,
 * fields "double" and "unsigned-integer". */
#include "frontend/formats.h"

#include "base/memory.h"
#include "frontend/coo.h"
#include "frontend/entries.h"
#include "frontend/number.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum symmetry { GENERAL, SYMMETRIC, SKEW, HERMITIAN };
enum field { REAL, PATTERN, COMPLEX };

struct header {
  int array;
  enum field field;
  enum symmetry symmetry;
  int64_t rows, cols, entries;
  int64_t size_line; /* its line number */
  const char *body;  /* the text after it */
  int64_t body_line;
};

/* ---- words of the banner, a table for each place */

struct word {
  const char *text;
  int meaning;
  const char *refusal; /* why it is not supported; NULL: it is */
};

static const struct word objects[] = {
    {"matrix", 0, NULL}, {"vector", 0, "write the vector as a matrix of one column"}, {NULL, 0, NULL}};
static const struct word formats[] = {{"coordinate", 0, NULL}, {"array", 1, NULL}, {NULL, 0, NULL}};
static const struct word fields[] = {
    {"real", REAL, NULL},       {"integer", REAL, NULL},    {"double", REAL, NULL}, {"unsigned-integer", REAL, NULL},
    {"pattern", PATTERN, NULL}, {"complex", COMPLEX, NULL}, {NULL, 0, NULL}};
static const struct word symmetries[] = {{"general", GENERAL, NULL},
                                         {"symmetric", SYMMETRIC, NULL},
                                         {"skew-symmetric", SKEW, NULL},
                                         {"hermitian", HERMITIAN, NULL}, /* of real numbers: symmetric */
                                         {NULL, 0, NULL}};

static const char banner_start[] = "%%MatrixMarket";

int cb_is_matrix_market(const char *bytes, size_t length) {
  return length >= sizeof banner_start - 1 && !strncasecmp(bytes, banner_start, sizeof banner_start - 1);
}

enum { LINE_TEXT = 1024 };

/* Copies the line at *at (cut to fit) and moves on to the next one. */
static void take_line(char text[LINE_TEXT], const char **at, const char *end) {
  const char *newline = memchr(*at, '\n', (size_t)(end - *at)), *stop = newline ? newline : end;
  size_t length = (size_t)(stop - *at);
  if (length > LINE_TEXT - 2) length = LINE_TEXT - 2;
  memcpy(text, *at, length);
  for (size_t i = 0; i < length; i++)
    if (!text[i]) text[i] = '?';
  memcpy(text + length, "\n", 2);
  *at = newline ? newline + 1 : end;
}

static const char *skip_blanks(const char *at) {
  while (cb_is_blank(*at)) at++;
  return at;
}

static const char *word_end(const char *at) {
  while (*at != '\n' && !cb_is_blank(*at)) at++;
  return at;
}

static void list_words(char list[128], const struct word *words) {
  size_t length = 0;
  for (; words->text; words++)
    if (!words->refusal)
      length += (size_t)snprintf(list + length, 128 - length, "%s'%s'", length ? ", " : "", words->text);
}

/* Looks the word at *at up in `words`. */
static enum cb_status take_word(int *meaning, const char **at, const struct word *words, const char *path,
                                struct cb_diag *diag) {
  char token[CB_TOKEN_TEXT], list[128];
  const char *begin = skip_blanks(*at), *end = word_end(begin);
  *at = end;
  cb_token_text(token, begin, end);
  for (const struct word *word = words; word->text; word++) {
    if (strlen(word->text) != (size_t)(end - begin) || strncasecmp(word->text, begin, strlen(word->text)))
      continue;
    *meaning = word->meaning;
    if (!word->refusal) return CB_OK;
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "%s:1: '%s' is not supported; %s", path, token, word->refusal);
  }
  list_words(list, words);
  if (begin == end)
    return cb_fail(diag, CB_ERR_FORMAT, "%s:1: the banner ends too early; go on with one of %s", path, list);
  return cb_fail(diag, CB_ERR_FORMAT, "%s:1: the banner says '%s'; choose from %s", path, token, list);
}

static enum cb_status parse_banner(struct header *header, const char *line, const char *path,
                                   struct cb_diag *diag) {
  int ignored, symmetry, field;
  const char *at = word_end(line);
  if (at - line != sizeof banner_start - 1)
    return cb_fail(diag, CB_ERR_FORMAT,
                   "%s:1: the banner must start with the word '%s'; put a blank after it", path,
                   banner_start);
  enum cb_status s = take_word(&ignored, &at, objects, path, diag);
  if (!s) s = take_word(&header->array, &at, formats, path, diag);
  if (!s) s = take_word(&field, &at, fields, path, diag);
  if (!s) s = take_word(&symmetry, &at, symmetries, path, diag);
  if (s) return s;
  header->symmetry = (enum symmetry)symmetry;
  header->field = (enum field)field;
  if (header->field == PATTERN && (header->array || header->symmetry == SKEW))
    return cb_fail(diag, CB_ERR_FORMAT, "%s:1: '%s' needs values, so it cannot be 'pattern'; say 'real'",
                   path, header->array ? "array" : "skew-symmetric");
  return CB_OK;
}

/* ---- the size line */

static enum cb_status parse_sizes(struct header *header, const char *line, const char *path,
                                  struct cb_diag *diag) {
  static const char *const names[] = {"rows", "columns", "entries"};
  int64_t *const numbers[] = {&header->rows, &header->cols, &header->entries};
  const int count = header->array ? 2 : 3;
  const char *form = header->array ? "it holds rows and columns" : "it holds rows, columns and entries";
  char token[CB_TOKEN_TEXT];
  const long long number = header->size_line;
  for (int i = 0; i < count; i++) {
    const char *begin = skip_blanks(line), *end = word_end(begin);
    if (begin == end)
      return cb_fail(diag, CB_ERR_FORMAT, "%s:%lld: the size line lacks the number of %s; %s", path, number,
                     names[i], form);
    line = cb_parse_index(begin, numbers[i]);
    if (line != end)
      return cb_fail(diag, CB_ERR_FORMAT, "%s:%lld: '%s' is not a number of %s; %s", path, number,
                     cb_token_text(token, begin, end), names[i], form);
    const int64_t limit = i < 2 ? CB_MAX_DIMENSION : INT64_MAX - 1;
    if (*numbers[i] > limit)
      return cb_fail(diag, CB_ERR_LIMIT, "%s:%lld: %s %s are too many; %lld is the limit", path, number,
                     cb_token_text(token, begin, end), names[i], (long long)limit);
  }
  const char *extra = skip_blanks(line);
  if (*extra != '\n' && *extra != '%')
    return cb_fail(diag, CB_ERR_FORMAT, "%s:%lld: unexpected '%s' on the size line; %s", path, number,
                   cb_token_text(token, extra, word_end(extra)), form);
  if (header->symmetry != GENERAL && header->rows != header->cols)
    return cb_fail(diag, CB_ERR_FORMAT,
                   "%s:%lld: a symmetric matrix is square, not %lld x %lld; say 'general'", path, number,
                   (long long)header->rows, (long long)header->cols);
  return CB_OK;
}

static int64_t array_entries(const struct header *header) {
  const int64_t rows = header->rows, triangle = rows * (rows - 1) / 2;
  if (header->symmetry == GENERAL) return rows * header->cols;
  return header->symmetry == SKEW ? triangle : triangle + rows;
}

static enum cb_status parse_header(struct header *header, const struct cb_source *source,
                                   struct cb_diag *diag) {
  char line[LINE_TEXT];
  const char *at = source->bytes;
  int64_t number = 1;
  *header = (struct header){0};
  take_line(line, &at, source->end);
  enum cb_status s = parse_banner(header, line, source->path, diag);
  if (s) return s;
  while (at < source->end) {
    number++;
    take_line(line, &at, source->end);
    const char *text = skip_blanks(line);
    if (*text == '\n' || *text == '%') continue;
    header->size_line = number;
    s = parse_sizes(header, text, source->path, diag);
    if (!s && header->array) header->entries = array_entries(header);
    header->body = at;
    header->body_line = number + 1;
    return s;
  }
  return cb_fail(diag, CB_ERR_FORMAT, "%s:%lld: the file ends before the size line; it was cut off",
                 source->path, (long long)number);
}

/* ---- the body */

static enum cb_status check_count(const struct header *header, const struct cb_lines *lines, int64_t found,
                                  struct cb_diag *diag) {
  const char *path = lines->source->path;
  if (found > header->entries)
    return cb_fail(diag, CB_ERR_FORMAT,
                   "%s:%lld: more entries than the %lld that line %lld promises; correct that line", path,
                   (long long)cb_lines_line_of(lines, "%", header->entries), (long long)header->entries,
                   (long long)header->size_line);
  if (found < header->entries)
    return cb_fail(
        diag, CB_ERR_FORMAT,
        "%s:%lld: the file ends after %lld of the %lld entries that line %lld promises; it was cut "
        "off, or that line is wrong",
        path, (long long)lines->lines, (long long)found, (long long)header->entries,
        (long long)header->size_line);
  return CB_OK;
}

static enum cb_mirror mirror_of(const struct header *header) {
  static const enum cb_mirror mirrors[] = {
      [GENERAL] = CB_MIRROR_NONE, [SYMMETRIC] = CB_MIRROR_SAME, [SKEW] = CB_MIRROR_NEGATED,
                                            [HERMITIAN] = CB_MIRROR_CONJUGATED};
  return mirrors[header->symmetry];
}

/* Numbers of an entry. */
static int values_of(const struct header *header) {
  return header->field == PATTERN ? 0 : header->field == COMPLEX ? 2 : 1;
}

static const char *const forms_of_lines[] = {
    [REAL] = "a line holds a row, a column and a value",
    [PATTERN] = "a line of a pattern file holds a row and a column",
    [COMPLEX] = "a line of a complex file holds a row, a column, a real and an imaginary part"};

static enum cb_status read_coordinates(struct cb_coo *coo, const struct header *header,
                                       struct cb_lines *lines, struct cb_diag *diag) {
  const struct cb_entry_form form = {
      .rows = header->rows,
      .cols = header->cols,
      .base = 1,
      .values = values_of(header),
      .zero_diagonal = header->symmetry == SKEW,
      .real_diagonal = header->symmetry == HERMITIAN,
      .comments = "%",
      .names = {"row", "column", header->field == COMPLEX ? "real part" : "value", "imaginary part"},
      .form = forms_of_lines[header->field],
      .range_error = "correct it or the size line",
  };
  int64_t found;
  const enum cb_status s = cb_entries_parse(coo, lines, &form, &found, diag);
  if (s || found == lines->entries) return s;
  cb_coo_release(coo);
  return check_count(header, lines, found, diag);
}

/* A dense array's numbers, `parts` for each entry. */
struct dense {
  double *numbers;
  int parts;
};

static void complain_array(const char *line, const char *at, const char *after, double value, int parts,
                           struct cb_complaint *complaint) {
  char text[CB_TOKEN_TEXT];
  const char *const form = parts == 2 ? "a line of a complex array file holds a real and an imaginary part"
                                      : "a line of an array file holds one value";
  const char *const rest = after ? skip_blanks(after) : at;
  const int overflows = after && cb_overflows(at, value), goes_on = after && rest != after;
  complaint->at = line;
  complaint->status = overflows ? CB_ERR_LIMIT : CB_ERR_FORMAT;
  if (overflows)
    snprintf(complaint->message, sizeof complaint->message, "'%s' " CB_OVERFLOW_ADVICE, cb_token_text(text, at, after));
  else if (goes_on)
    snprintf(complaint->message, sizeof complaint->message, "unexpected '%s'; %s",
             cb_token_text(text, rest, word_end(rest)), form);
  else if (after)
    snprintf(complaint->message, sizeof complaint->message, "the line ends after '%s'; %s",
             cb_token_text(text, at, after), form);
  else
    snprintf(complaint->message, sizeof complaint->message, "'%s' is not a number; %s",
             cb_token_text(text, at, word_end(at)), form);
}

/* The numbers of one line. Returns whether they are all right, and else complains. */
static int parse_array_line(double numbers[2], const char *line, int parts, const struct cb_chunk *chunk, int fits,
                            struct cb_complaint *complaint) {
  const char *at = skip_blanks(line), *after = NULL, *rest = at;
  for (int i = 0; i < parts; i++) {
    at = rest;
    numbers[i] = 0;
    after = cb_parse_double(at, chunk->limit, &numbers[i]);
    rest = after ? skip_blanks(after) : at;
    const int ends = i + 1 == parts ? *rest == '\n' || (rest != after && *rest == '%') : rest != after;
    if (after && ends && fits && !cb_overflows(at, numbers[i])) continue;
    complain_array(line, at, after, numbers[i], parts, complaint);
    return 0;
  }
  return 1;
}

static int64_t parse_array_values(void *user, const struct cb_chunk *chunk, struct cb_complaint *complaint) {
  const struct dense *dense = user;
  int64_t entry = chunk->entry;
  for (const char *line = chunk->begin, *next = line; line < chunk->end; line = next) {
    double numbers[2];
    next = (const char *)memchr(line, '\n', (size_t)(chunk->end - line)) + 1;
    const char *at = skip_blanks(line);
    if (*at == '\n' || *at == '%') continue;
    if (!parse_array_line(numbers, line, dense->parts, chunk, entry < chunk->entry + chunk->entries, complaint)) break;
    memcpy(dense->numbers + dense->parts * entry, numbers, (size_t)dense->parts * sizeof *numbers);
    entry++;
  }
  return entry - chunk->entry;
}

static int is_zero(const struct dense *dense, int64_t i) {
  return dense->parts > 1 ? dense->numbers[2 * i] == 0 && dense->numbers[2 * i + 1] == 0 : dense->numbers[i] == 0;
}

/* The nonzeros of a dense array in column order, or of the lower triangle of one. NaN counts as nonzero. */
static enum cb_status drop_zeros(struct cb_coo *coo, const struct header *header, const struct dense *dense,
                                 struct cb_diag *diag) {
  int64_t nonzeros = 0;
  for (int64_t i = 0; i < header->entries; i++) nonzeros += !is_zero(dense, i);
  enum cb_status s = cb_coo_alloc(coo, nonzeros, 0, diag);
  if (!s && dense->parts > 1) s = cb_coo_make_complex(coo, diag);
  if (s) return s;
  coo->rows = header->rows;
  coo->cols = header->cols;
  int64_t to = 0;
  for (int64_t col = 0, from = 0; from < header->entries; col++) {
    const int64_t first = header->symmetry == GENERAL ? 0 : col + (header->symmetry == SKEW);
    for (int64_t row = first; row < header->rows; row++, from++) {
      if (is_zero(dense, from)) continue;
      coo->row_idx[to] = (int32_t)row;
      coo->col_idx[to] = (int32_t)col;
      if (dense->parts > 1) coo->imaginary[to] = dense->numbers[2 * from + 1];
      coo->values[to++] = dense->numbers[dense->parts * from];
    }
  }
  return CB_OK;
}

/* Of a Hermitian array, whose lower triangle is there column by column. */
static enum cb_status check_diagonal(const struct header *header, const struct dense *dense, const char *path,
                                     struct cb_diag *diag) {
  for (int64_t row = 0, at = 0; row < header->rows && dense->parts > 1; at += header->rows - row++)
    if (!(dense->numbers[2 * at + 1] == 0))
      return cb_fail(diag, CB_ERR_FORMAT,
                     "%s: entry %lld of the diagonal of a Hermitian matrix has an imaginary part; it must be zero there",
                     path, (long long)row + 1);
  return CB_OK;
}

static enum cb_status read_array(struct cb_coo *coo, const struct header *header, struct cb_lines *lines,
                                 struct cb_diag *diag) {
  int64_t found;
  struct dense dense = {.parts = values_of(header)};
  const size_t bytes = (size_t)dense.parts * sizeof *dense.numbers;
  dense.numbers = cb_alloc((size_t)lines->entries, bytes);
  if (!dense.numbers) return cb_fail_memory(diag, "array", bytes * (unsigned long long)lines->entries);
  enum cb_status s = cb_lines_parse(lines, parse_array_values, &dense, &found, diag);
  if (!s) s = check_count(header, lines, found, diag);
  if (!s && header->symmetry == HERMITIAN) s = check_diagonal(header, &dense, lines->source->path, diag);
  if (!s) s = drop_zeros(coo, header, &dense, diag);
  cb_free(dense.numbers);
  return s;
}

enum cb_status cb_read_matrix_market(struct cb_csr *csr, const struct cb_source *source,
                                     struct cb_diag *diag) {
  struct header header;
  struct cb_lines lines = {0};
  struct cb_coo coo = {0};
  *csr = (struct cb_csr){0};
  enum cb_status s = parse_header(&header, source, diag);
  if (!s) s = cb_check_rows(source->path, header.rows, header.entries, diag);
  if (!s) s = cb_lines_open(&lines, source, header.body, header.body_line, diag);
  if (s) goto out;
  cb_lines_count(&lines, "%", header.entries);
  s = check_count(&header, &lines, lines.entries, diag);
  if (!s)
    s = header.array ? read_array(&coo, &header, &lines, diag)
                     : read_coordinates(&coo, &header, &lines, diag);
  cb_lines_close(&lines);
  coo.path = source->path;
  if (!s) s = cb_csr_from_mirrored_coo(csr, &coo, mirror_of(&header), diag);
out:
  cb_lines_close(&lines);
  cb_coo_release(&coo);
  return s;
}
