// SPDX-License-Identifier: Apache-2.0
/* See mps.h. A line is cut into fields, by blanks or by columns; a section's function takes each line. Names of rows
 * and columns are looked up in tables of hashes. */
#include "frontend/mps.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/real.h"
#include "frontend/coo.h"
#include "frontend/formats.h"
#include "frontend/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { FIELDS = 6, OBJECTIVE = -1, LEFT_OUT = -2, UNKNOWN = -3 };
static const double without_end = 1e20;

/* ---- names */

struct name {
  const char *text; /* NUL-terminated, in the reader's copy of the file */
  int32_t number;   /* of its row or column, OBJECTIVE, or LEFT_OUT */
};

/* A table of names, each in the place that its hash says, or behind. */
struct names {
  struct name *places;
  size_t room, count; /* room: a power of 2, or 0 */
};

static size_t place_of(const struct names *names, const char *text) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (const char *at = text; *at; at++) hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
  size_t place = (size_t)(hash ^ hash >> 29) & (names->room - 1);
  while (names->places[place].text && strcmp(names->places[place].text, text) != 0)
    place = (place + 1) & (names->room - 1);
  return place;
}

static int32_t find_name(const struct names *names, const char *text) {
  if (!names->room) return UNKNOWN;
  const struct name *name = &names->places[place_of(names, text)];
  return name->text ? name->number : UNKNOWN;
}

static int widen(struct names *names) {
  struct names wide = {.room = names->room ? 2 * names->room : 1024, .count = names->count};
  wide.places = cb_calloc(wide.room, sizeof *wide.places);
  if (!wide.places) return 0;
  for (size_t i = 0; i < names->room; i++)
    if (names->places[i].text) wide.places[place_of(&wide, names->places[i].text)] = names->places[i];
  cb_free(names->places);
  *names = wide;
  return 1;
}

/* Returns whether there was memory. */
static int add_name(struct names *names, const char *text, int32_t number) {
  if (2 * names->count >= names->room && !widen(names)) return 0;
  names->places[place_of(names, text)] = (struct name){text, number};
  names->count++;
  return 1;
}

/* ---- the reader */

enum section { NO_SECTION, OBJSENSE, ROWS, COLUMNS, RHS, RANGES, BOUNDS, ENDATA, SECTIONS };

struct reader {
  const char *path;
  int fixed; /* fields stand at columns */
  struct cb_diag *diag;
  struct cb_linear *linear;
  int64_t line;
  enum section section;
  unsigned seen; /* sections, as bits */
  char *fields[FIELDS];
  int fields_count;
  struct names rows, columns;
  int64_t rows_count, rows_room, columns_count, columns_room;
  int has_objective, in_integers;
  char *types;         /* of rows: 'L', 'G', 'E' */
  double *sides;       /* their right sides */
  int32_t *last;       /* column that had an entry in the row last; -1: none */
  int last_objective;  /* likewise */
  unsigned char *bounded; /* of columns: bits of enum bound */
  struct cb_coo coo;
  int64_t entries_room;
  const char *sets[SECTIONS]; /* names of the sets that count */
};

enum bound { HAS_LOWER = 1, HAS_UPPER = 2, IS_INTEGER = 4, BY_MARKER = 8 };

#define FAIL(reader, ...) cb_fail((reader)->diag, CB_ERR_FORMAT, "%s:%lld: " __VA_ARGS__)
#define AT(reader) (reader)->path, (long long)(reader)->line

static const char *shown(char text[CB_TOKEN_TEXT], const char *word) {
  return cb_token_text(text, word, word + strlen(word));
}

/* One block, twice as long, or as long as `least`. */
static int grow(void *block, size_t size, int64_t room) {
  void **at = block;
  void *wider = cb_realloc(*at, (size_t)room, size);
  if (wider) *at = wider;
  return wider != NULL;
}

static enum cb_status no_memory(const struct reader *reader) {
  return cb_fail_memory(reader->diag, reader->path, (uint64_t)reader->coo.count);
}

/* ---- numbers */

static enum cb_status take_number(const struct reader *reader, const char *word, double *number) {
  char token[CB_TOKEN_TEXT], line[64];
  const size_t length = strlen(word);
  const char *end = NULL;
  if (length < sizeof line - 1) {
    memcpy(line, word, length);
    memcpy(line + length, "\n", 2);
    end = cb_parse_double(line, line + length + 2, number);
  }
  if (!end || *end != '\n' || *number != *number)
    return FAIL(reader, "'%s' is no number", AT(reader), shown(token, word));
  if (*number >= without_end) *number = INFINITY;
  if (*number <= -without_end) *number = -INFINITY;
  return CB_OK;
}

static enum cb_status take_finite(const struct reader *reader, const char *word, double *number) {
  char token[CB_TOKEN_TEXT];
  const enum cb_status s = take_number(reader, word, number);
  if (s || cb_real_is_finite(*number)) return s;
  return FAIL(reader, "'%s' is no finite number below 1e20", AT(reader), shown(token, word));
}

/* ---- ROWS */

static enum cb_status take_row(struct reader *reader) {
  char token[CB_TOKEN_TEXT], *const *fields = reader->fields;
  if (reader->fields_count != 2)
    return FAIL(reader, "a line of ROWS has a type and a name", AT(reader));
  const char type = (char)(fields[0][0] & ~0x20), *name = fields[1];
  if (fields[0][1] || !strchr("NLGE", type) || !type)
    return FAIL(reader, "'%s' is no type of a row; it is N, L, G or E", AT(reader), shown(token, fields[0]));
  if (find_name(&reader->rows, name) != UNKNOWN) return FAIL(reader, "row '%s' comes twice", AT(reader), shown(token, name));
  if (type == 'N') {
    const int is_first = !reader->has_objective;
    reader->has_objective = 1;
    return add_name(&reader->rows, name, is_first ? OBJECTIVE : LEFT_OUT) ? CB_OK : no_memory(reader);
  }
  const int64_t row = reader->rows_count;
  if (row == CB_MAX_DIMENSION) return cb_fail(reader->diag, CB_ERR_LIMIT, "%s:%lld: too many rows", AT(reader));
  if (row == reader->rows_room) {
    const int64_t room = row ? 2 * row : 256;
    if (!grow(&reader->types, sizeof *reader->types, room) || !grow(&reader->sides, sizeof *reader->sides, room) ||
        !grow(&reader->last, sizeof *reader->last, room) ||
        !grow(&reader->linear->row_names, sizeof *reader->linear->row_names, room))
      return no_memory(reader);
    reader->rows_room = room;
  }
  reader->types[row] = type;
  reader->sides[row] = 0;
  reader->last[row] = -1;
  reader->linear->row_names[row] = name;
  reader->rows_count++;
  return add_name(&reader->rows, name, (int32_t)row) ? CB_OK : no_memory(reader);
}

/* ---- COLUMNS */

static enum cb_status begin_column(struct reader *reader, const char *name) {
  struct cb_linear *linear = reader->linear;
  char token[CB_TOKEN_TEXT];
  const int64_t column = reader->columns_count;
  if (find_name(&reader->columns, name) != UNKNOWN)
    return FAIL(reader, "column '%s' comes twice; its entries stand together", AT(reader), shown(token, name));
  if (column == CB_MAX_DIMENSION) return cb_fail(reader->diag, CB_ERR_LIMIT, "%s:%lld: too many columns", AT(reader));
  if (column == reader->columns_room) {
    const int64_t room = column ? 2 * column : 256;
    if (!grow(&linear->cost, sizeof *linear->cost, room) || !grow(&linear->lower, sizeof *linear->lower, room) ||
        !grow(&linear->upper, sizeof *linear->upper, room) || !grow(&reader->bounded, 1, room) ||
        !grow(&linear->column_names, sizeof *linear->column_names, room))
      return no_memory(reader);
    reader->columns_room = room;
  }
  linear->cost[column] = linear->lower[column] = 0;
  linear->upper[column] = INFINITY;
  linear->column_names[column] = name;
  reader->bounded[column] = reader->in_integers ? IS_INTEGER | BY_MARKER : 0;
  reader->columns_count++;
  return add_name(&reader->columns, name, (int32_t)column) ? CB_OK : no_memory(reader);
}

static enum cb_status add_entry(struct reader *reader, int32_t row, double value) {
  struct cb_coo *coo = &reader->coo;
  if (coo->count == reader->entries_room) {
    const int64_t room = coo->count ? 2 * coo->count : 1024;
    if (!grow(&coo->row_idx, sizeof *coo->row_idx, room) || !grow(&coo->col_idx, sizeof *coo->col_idx, room) ||
        !grow(&coo->values, sizeof *coo->values, room))
      return no_memory(reader);
    reader->entries_room = room;
  }
  coo->row_idx[coo->count] = row;
  coo->col_idx[coo->count] = (int32_t)reader->columns_count - 1;
  coo->values[coo->count++] = value;
  return CB_OK;
}

static enum cb_status take_coefficient(struct reader *reader, const char *name, const char *word) {
  char token[CB_TOKEN_TEXT];
  const int32_t row = find_name(&reader->rows, name), column = (int32_t)reader->columns_count - 1;
  double value;
  const enum cb_status s = take_finite(reader, word, &value);
  if (s) return s;
  if (row == UNKNOWN) return FAIL(reader, "there is no row '%s'", AT(reader), shown(token, name));
  if (row == LEFT_OUT) return CB_OK;
  int32_t *const last = row == OBJECTIVE ? &reader->last_objective : &reader->last[row];
  if (*last == column)
    return FAIL(reader, "the column has a second entry in row '%s'", AT(reader), shown(token, name));
  *last = column;
  if (row != OBJECTIVE) return add_entry(reader, row, value);
  reader->linear->cost[column] = value;
  return CB_OK;
}

static int is_marker(const struct reader *reader) {
  return reader->fields_count == 3 && !strcasecmp(reader->fields[1], "'MARKER'");
}

static enum cb_status take_marker(struct reader *reader) {
  char token[CB_TOKEN_TEXT];
  const char *kind = reader->fields[2];
  if (strcasecmp(kind, "'INTORG'") != 0 && strcasecmp(kind, "'INTEND'") != 0)
    return FAIL(reader, "marker %s is not known; it is 'INTORG' or 'INTEND'", AT(reader), shown(token, kind));
  reader->in_integers = !strcasecmp(kind, "'INTORG'");
  return CB_OK;
}

static enum cb_status take_column(struct reader *reader) {
  char *const *fields = reader->fields;
  const int count = reader->fields_count;
  enum cb_status s = CB_OK;
  if (is_marker(reader)) return take_marker(reader);
  if (count != 3 && count != 5)
    return FAIL(reader, "a line of COLUMNS has a column, and one or two times a row and a number", AT(reader));
  if (!reader->columns_count || strcmp(reader->linear->column_names[reader->columns_count - 1], fields[0]) != 0)
    s = begin_column(reader, fields[0]);
  for (int i = 1; i + 1 < count && !s; i += 2) s = take_coefficient(reader, fields[i], fields[i + 1]);
  return s;
}

/* ---- RHS and RANGES */

/* The set's name in front may be missing. All of a section's lines have the same. */
static enum cb_status take_set(struct reader *reader, const char *name) {
  char token[CB_TOKEN_TEXT], first[CB_TOKEN_TEXT];
  const char **const set = &reader->sets[reader->section];
  if (!*set) *set = name;
  if (!strcmp(*set, name)) return CB_OK;
  return cb_fail(reader->diag, CB_ERR_UNSUPPORTED, "%s:%lld: set '%s' is a second one beside '%s'; leave one", AT(reader),
                 shown(token, name), shown(first, *set));
}

static enum cb_status put_side(struct reader *reader, int32_t row, double value, const char *word) {
  char token[CB_TOKEN_TEXT];
  if (row == OBJECTIVE && !cb_real_is_finite(value))
    return FAIL(reader, "'%s' is no finite number below 1e20", AT(reader), shown(token, word));
  if (row == OBJECTIVE) reader->linear->constant = -value;
  else reader->sides[row] = value;
  return CB_OK;
}

/* Widths: NaN where there is none. Rows' upper bounds hold them until the end. */
static enum cb_status put_range(struct reader *reader, int32_t row, double value, const char *name) {
  char token[CB_TOKEN_TEXT];
  if (row == OBJECTIVE) return FAIL(reader, "the objective '%s' has no range", AT(reader), shown(token, name));
  reader->linear->row_upper[row] = value;
  return CB_OK;
}

static enum cb_status take_pairs(struct reader *reader) {
  char token[CB_TOKEN_TEXT], *const *fields = reader->fields;
  const int count = reader->fields_count, has_set = count % 2;
  if (count < 2 || count > 5)
    return FAIL(reader, "a line of RHS or RANGES has a set, and one or two times a row and a number", AT(reader));
  enum cb_status s = take_set(reader, has_set ? fields[0] : "");
  for (int i = has_set; i + 1 < count && !s; i += 2) {
    const int32_t row = find_name(&reader->rows, fields[i]);
    double value;
    s = take_number(reader, fields[i + 1], &value);
    if (!s && row == UNKNOWN) s = FAIL(reader, "there is no row '%s'", AT(reader), shown(token, fields[i]));
    if (s || row == LEFT_OUT) continue;
    s = reader->section == RHS ? put_side(reader, row, value, fields[i + 1]) : put_range(reader, row, value, fields[i]);
  }
  return s;
}

/* ---- BOUNDS */

static const struct bound_type {
  const char *name;
  int has_number, lower, upper; /* which it sets */
  int integer;
} bound_types[] = {{"LO", 1, 1, 0, 0}, {"UP", 1, 0, 1, 0}, {"FX", 1, 1, 1, 0}, {"FR", 0, 1, 1, 0}, {"MI", 0, 1, 0, 0},
                   {"PL", 0, 0, 1, 0}, {"BV", 0, 1, 1, 1}, {"LI", 1, 1, 0, 1}, {"UI", 1, 0, 1, 1}};
enum { BOUND_TYPES = sizeof bound_types / sizeof *bound_types };

static const struct bound_type *find_type(const char *name) {
  for (int i = 0; i < BOUND_TYPES; i++)
    if (!strcasecmp(bound_types[i].name, name)) return &bound_types[i];
  return NULL;
}

static void put_bound(struct reader *reader, const struct bound_type *type, int32_t column, double value) {
  struct cb_linear *linear = reader->linear;
  const int is_binary = !strcmp(type->name, "BV");
  unsigned char *bits = &reader->bounded[column];
  if (type->lower) linear->lower[column] = type->has_number ? value : is_binary ? 0 : -INFINITY;
  if (type->upper) linear->upper[column] = type->has_number ? value : is_binary ? 1 : INFINITY;
  if (type->upper && !type->lower && value < 0 && !(*bits & HAS_LOWER)) linear->lower[column] = -INFINITY;
  *bits |= (unsigned char)((type->lower ? HAS_LOWER : 0) | (type->upper ? HAS_UPPER : 0) |
                           (type->integer ? IS_INTEGER : 0));
}

static enum cb_status take_bound(struct reader *reader) {
  char token[CB_TOKEN_TEXT], *const *fields = reader->fields;
  const int count = reader->fields_count;
  const struct bound_type *type = count ? find_type(fields[0]) : NULL;
  if (count && !strcasecmp(fields[0], "SC"))
    return cb_fail(reader->diag, CB_ERR_UNSUPPORTED, "%s:%lld: semi-continuous columns (SC) make no linear program",
                   AT(reader));
  if (!type)
    return FAIL(reader, "'%s' is no type of a bound; it is LO, UP, FX, FR, MI, PL, BV, LI or UI", AT(reader),
                count ? shown(token, fields[0]) : "");
  /* type, set, column and number; the set may be missing, and the number where the type needs none */
  const int least = 2 + type->has_number;
  if (count < least || count > 4)
    return FAIL(reader, "a bound has a type, a set, a column%s", AT(reader), type->has_number ? " and a number" : "");
  const int has_set =
      count == 4 || (count == 3 && !type->has_number && find_name(&reader->columns, fields[2]) != UNKNOWN);
  const char *name = fields[1 + has_set];
  const int32_t column = find_name(&reader->columns, name);
  double value = 0;
  enum cb_status s = take_set(reader, has_set ? fields[1] : "");
  if (!s && column == UNKNOWN) s = FAIL(reader, "there is no column '%s'", AT(reader), shown(token, name));
  if (!s && type->has_number) s = take_number(reader, fields[2 + has_set], &value);
  if (!s) put_bound(reader, type, column, value);
  return s;
}

/* ---- OBJSENSE */

static enum cb_status take_sense(struct reader *reader) {
  char token[CB_TOKEN_TEXT];
  const char *word = reader->fields[0];
  const int is_max = !strcasecmp(word, "MAX") || !strcasecmp(word, "MAXIMIZE") || !strcasecmp(word, "MAXIMISE");
  if (!is_max && strcasecmp(word, "MIN") != 0 && strcasecmp(word, "MINIMIZE") != 0 && strcasecmp(word, "MINIMISE") != 0)
    return FAIL(reader, "'%s' is no sense of the objective; it is MIN or MAX", AT(reader), shown(token, word));
  reader->linear->maximise = is_max;
  return CB_OK;
}

/* ---- lines */

static const struct {
  const char *name;
  enum cb_status (*take)(struct reader *reader);
} sections[SECTIONS] = {{"NAME", NULL},       {"OBJSENSE", take_sense}, {"ROWS", take_row},     {"COLUMNS", take_column},
                        {"RHS", take_pairs}, {"RANGES", take_pairs},   {"BOUNDS", take_bound}, {"ENDATA", NULL}};

static char *cut(char *begin, char *end) {
  while (begin < end && cb_is_blank(*begin)) begin++;
  while (end > begin && cb_is_blank(end[-1])) end--;
  *end = 0;
  return begin;
}

/* Fields of a line that ends at `end`, where a NUL may be written. A field from the third on that begins with '$'
 * begins a comment. */
static void split_by_blanks(struct reader *reader, char *at, char *end) {
  reader->fields_count = 0;
  for (;;) {
    while (at < end && cb_is_blank(*at)) at++;
    if (at == end || (reader->fields_count >= 2 && *at == '$')) return;
    char *const begin = at;
    while (at < end && !cb_is_blank(*at)) at++;
    if (reader->fields_count < FIELDS) reader->fields[reader->fields_count] = begin;
    if (++reader->fields_count > FIELDS) reader->fields_count = FIELDS;
    if (at < end) *at++ = 0;
    else *at = 0;
  }
}

/* Columns from 0 of the six fields, and where they end; between them are blanks. A blank set's name is left out. */
static enum cb_status split_by_columns(struct reader *reader, char *line, char *end) {
  static const int first[FIELDS] = {1, 4, 14, 24, 39, 49}, last[FIELDS] = {3, 12, 22, 36, 47, 61};
  const int64_t length = end - line;
  char *fields[FIELDS];
  int count = 0;
  for (int i = 0; i < FIELDS && length > first[i]; i++) { /* the NUL behind one never stands in the next */
    for (int64_t k = last[i]; k < length && k < (i + 1 < FIELDS ? first[i + 1] : length); k++)
      if (!cb_is_blank(line[k])) return FAIL(reader, "column %d holds no blank", AT(reader), (int)k + 1);
    char *const begin = line + first[i], *const stop = line + (length < last[i] ? length : last[i]);
    fields[count++] = cut(begin, stop);
  }
  reader->fields_count = 0;
  for (int i = reader->section == ROWS || reader->section == BOUNDS ? 0 : 1; i < count; i++)
    if (*fields[i]) reader->fields[reader->fields_count++] = fields[i];
  return CB_OK;
}

static enum cb_status begin_section(struct reader *reader, char *line, char *end) {
  char token[CB_TOKEN_TEXT];
  split_by_blanks(reader, line, end);
  const char *name = reader->fields[0];
  int s = NO_SECTION;
  if (reader->section == OBJSENSE && (!strncasecmp(name, "MIN", 3) || !strncasecmp(name, "MAX", 3)))
    return take_sense(reader);
  while (s < SECTIONS && strcasecmp(sections[s].name, name) != 0) s++;
  if (s == SECTIONS)
    return cb_fail(reader->diag, CB_ERR_UNSUPPORTED,
                   "%s:%lld: section '%s' is none of a linear program; there are NAME, OBJSENSE, ROWS, COLUMNS, RHS, RANGES, "
                   "BOUNDS and ENDATA",
                   AT(reader), shown(token, name));
  if (reader->seen >> s & 1) return FAIL(reader, "section '%s' comes twice", AT(reader), shown(token, name));
  if (s == COLUMNS && !(reader->seen >> ROWS & 1)) return FAIL(reader, "COLUMNS stand behind ROWS", AT(reader));
  if ((s == RHS || s == RANGES || s == BOUNDS) && !(reader->seen >> COLUMNS & 1))
    return FAIL(reader, "'%s' stands behind COLUMNS", AT(reader), shown(token, name));
  reader->seen |= 1u << s;
  reader->section = (enum section)s;
  if (s == RANGES) {
    double **const widths = &reader->linear->row_upper;
    *widths = cb_alloc((size_t)reader->rows_count + 1, sizeof **widths);
    if (!*widths) return no_memory(reader);
    for (int64_t i = 0; i < reader->rows_count; i++) (*widths)[i] = NAN;
  }
  if (s != OBJSENSE || reader->fields_count < 2) return CB_OK;
  reader->fields[0] = reader->fields[1];
  return take_sense(reader);
}

static enum cb_status take_line(struct reader *reader, char *line, char *end) {
  if (memchr(line, 0, (size_t)(end - line))) return FAIL(reader, "this is no text", AT(reader));
  char *const begin = cut(line, end);
  if (!*begin || *line == '*') return CB_OK;
  end = begin + strlen(begin);
  if (!cb_is_blank(*line)) return begin_section(reader, line, end);
  if (!sections[reader->section].take)
    return FAIL(reader, "a line of data stands in no section; sections begin in the first column", AT(reader));
  enum cb_status s = CB_OK;
  if (reader->fixed && reader->section != OBJSENSE) s = split_by_columns(reader, line, end);
  else split_by_blanks(reader, begin, end);
  if (s || !reader->fields_count) return s;
  return sections[reader->section].take(reader);
}

static enum cb_status take_lines(struct reader *reader, char *text, size_t length) {
  char *const end = text + length;
  enum cb_status s = CB_OK;
  for (char *line = text; line < end && !s && reader->section != ENDATA;) {
    char *const newline = memchr(line, '\n', (size_t)(end - line)), *const stop = newline ? newline : end;
    reader->line++;
    s = take_line(reader, line, stop);
    line = newline ? newline + 1 : end;
  }
  if (!s && !reader->line) s = FAIL(reader, "the file is empty", AT(reader));
  if (!s && reader->section != ENDATA) s = FAIL(reader, "the file ends without ENDATA; fetch it again", AT(reader));
  if (!s && !(reader->seen >> COLUMNS & 1)) s = FAIL(reader, "there are no ROWS or no COLUMNS", AT(reader));
  return s;
}

/* ---- the whole */

static void put_row(struct reader *reader, int64_t row) {
  struct cb_linear *linear = reader->linear;
  const double side = reader->sides[row], range = linear->row_upper[row], width = fabs(range);
  const char type = reader->types[row];
  const int is_ranged = range == range;
  double lower = type == 'L' ? -INFINITY : side, upper = type == 'G' ? INFINITY : side;
  if (is_ranged && (type == 'L' || (type == 'E' && range < 0))) lower = side - width;
  if (is_ranged && (type == 'G' || (type == 'E' && range >= 0))) upper = side + width;
  linear->row_lower[row] = lower;
  linear->row_upper[row] = upper;
}

static enum cb_status finish(struct reader *reader) {
  struct cb_linear *linear = reader->linear;
  const size_t rows = (size_t)reader->rows_count;
  linear->row_lower = cb_alloc(rows + 1, sizeof *linear->row_lower);
  if (!linear->row_upper) {
    linear->row_upper = cb_alloc(rows + 1, sizeof *linear->row_upper);
    for (size_t i = 0; linear->row_upper && i < rows; i++) linear->row_upper[i] = NAN;
  }
  if (!linear->row_lower || !linear->row_upper) return no_memory(reader);
  for (int64_t i = 0; i < reader->rows_count; i++) put_row(reader, i);
  for (int64_t j = 0; j < reader->columns_count; j++) {
    const unsigned char bits = reader->bounded[j];
    linear->integers += (bits & IS_INTEGER) != 0;
    if ((bits & BY_MARKER) && !(bits & (HAS_LOWER | HAS_UPPER))) linear->upper[j] = 1;
  }
  const enum cb_status s = reader->coo.values ? CB_OK : cb_coo_alloc(&reader->coo, 0, 0, reader->diag);
  if (s) return s;
  reader->coo.rows = reader->rows_count;
  reader->coo.cols = reader->columns_count;
  reader->coo.path = reader->path;
  return cb_csr_from_coo(&linear->csr, &reader->coo, reader->diag);
}

static enum cb_status read_as(struct cb_linear *linear, int fixed, const struct cb_source *source,
                              struct cb_diag *diag) {
  const size_t length = (size_t)(source->end - source->bytes);
  struct reader reader = {.path = source->path, .fixed = fixed, .diag = diag, .linear = linear, .last_objective = -1};
  *linear = (struct cb_linear){.text = cb_alloc(length + 1, 1)};
  if (!linear->text) return cb_fail_memory(diag, source->path, length);
  memcpy(linear->text, source->bytes, length);
  linear->text[length] = 0;
  enum cb_status s = take_lines(&reader, linear->text, length);
  if (!s) s = finish(&reader);
  cb_coo_release(&reader.coo);
  cb_free(reader.rows.places);
  cb_free(reader.columns.places);
  cb_free(reader.types);
  cb_free(reader.sides);
  cb_free(reader.last);
  cb_free(reader.bounded);
  if (s) cb_linear_release(linear);
  return s;
}

/* Names without blanks make sense in either form, and only the first takes wide fields. What is wrong is told of the
 * first. */
static enum cb_status read_text(struct cb_linear *linear, const struct cb_source *source, struct cb_diag *diag) {
  struct cb_diag other = {0};
  struct cb_linear fixed;
  const enum cb_status s = read_as(linear, 0, source, diag);
  if (s != CB_ERR_FORMAT || read_as(&fixed, 1, source, &other)) return s;
  *linear = fixed;
  *diag = (struct cb_diag){0};
  return CB_OK;
}

static enum cb_status read_source(struct cb_linear *linear, const struct cb_source *source, struct cb_diag *diag) {
  const size_t length = (size_t)(source->end - source->bytes);
  char *text = NULL;
  size_t unpacked = 0;
  *linear = (struct cb_linear){0};
  if (!cb_is_packed(source->bytes, length)) return read_text(linear, source, diag);
  enum cb_status s = cb_unpack(&text, &unpacked, source, diag);
  if (s) return s;
  const struct cb_source inner = {.path = source->path, .bytes = text, .end = text + unpacked};
  s = read_text(linear, &inner, diag);
  cb_free(text);
  return s;
}

enum cb_status cb_linear_read(struct cb_linear *linear, const char *path, const struct cb_progress *progress,
                              struct cb_diag *diag) {
  struct cb_mapping mapping;
  struct cb_source source;
  *linear = (struct cb_linear){0};
  enum cb_status s = cb_map_source(&source, &mapping, path, progress, diag);
  if (s) return s;
  s = read_source(linear, &source, diag);
  cb_file_unmap(&mapping);
  return s;
}

enum cb_status cb_linear_read_bytes(struct cb_linear *linear, const char *name, const char *bytes, size_t length,
                                    struct cb_diag *diag) {
  const struct cb_source source = {.path = name, .bytes = bytes, .end = bytes + length};
  return read_source(linear, &source, diag);
}

void cb_linear_release(struct cb_linear *linear) {
  void *const blocks[] = {linear->cost,      linear->lower,            linear->upper,
                          linear->row_lower, linear->row_upper,        (void *)linear->row_names,
                          (void *)linear->column_names, linear->text};
  for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) cb_free(blocks[i]);
  cb_csr_release(&linear->csr);
  *linear = (struct cb_linear){0};
}
