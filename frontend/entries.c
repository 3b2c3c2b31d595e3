// SPDX-License-Identifier: Apache-2.0
/* Parsing entry lines. The loop that runs over good lines only notices that something is wrong; explain_line
 * then looks at that line again, column by column, and says what. */
#include "frontend/entries.h"

#include "frontend/number.h"

#include <stdio.h>
#include <string.h>

struct target {
  const struct cb_entry_form *form;
  struct cb_coo *coo;
};

static inline int is_separator(char c, int commas) {
  return cb_is_blank(c) || (commas && c == ',');
}

static inline const char *skip(const char *at, int commas) {
  while (is_separator(*at, commas)) at++;
  return at;
}

static inline int is_comment(const struct cb_entry_form *form, char c) {
  return c && strchr(form->comments, c);
}

static const char *token_end(const char *at, int commas) {
  while (*at != '\n' && !is_separator(*at, commas)) at++;
  return at;
}

/* ---- what is wrong with a line */

static void complain_index(const struct cb_entry_form *form, int column, int64_t value, const char *token,
                           struct cb_complaint *complaint) {
  char text[CB_TOKEN_TEXT];
  const int64_t last = (column ? form->cols : form->rows) - 1 + form->base;
  snprintf(complaint->message, sizeof complaint->message, "%s '%s' is outside %d..%lld; %s",
           form->names[column], cb_token_text(text, token, token_end(token, form->commas)), form->base,
           (long long)last, value == 0 ? "numbering starts at 1" : form->range_error);
}

/* Returns whether column `column` at `token` is all right, and where it ends. */
static int explain_column(const struct cb_entry_form *form, int column, const char *token, const char *limit,
                          const char **end, struct cb_complaint *complaint) {
  char text[CB_TOKEN_TEXT];
  int64_t index = 0;
  double value = 0;
  *end = token_end(token, form->commas);
  if (*token == '\n' || is_comment(form, *token)) {
    snprintf(complaint->message, sizeof complaint->message, "the line ends where %s %s is expected; %s",
             form->names[column][0] == 'i' ? "an" : "a", form->names[column], form->form);
    return 0;
  }
  const char *after = column < 2 ? cb_parse_index(token, &index) : cb_parse_double(token, limit, &value);
  if (after != *end) {
    snprintf(complaint->message, sizeof complaint->message, "'%s' is not a %s; %s",
             cb_token_text(text, token, *end), column < 2 ? "whole number" : "number", form->form);
    return 0;
  }
  if (cb_overflows(token, value)) {
    snprintf(complaint->message, sizeof complaint->message, "'%s' " CB_OVERFLOW_ADVICE,
             cb_token_text(text, token, *end));
    complaint->status = CB_ERR_LIMIT;
    return 0;
  }
  if (column < 2 && (index < form->base || index - form->base >= (column ? form->cols : form->rows))) {
    complain_index(form, column, index, token, complaint);
    return 0;
  }
  return 1;
}

static void explain_line(const struct cb_entry_form *form, const char *line, const char *limit,
                         struct cb_complaint *complaint) {
  char text[CB_TOKEN_TEXT];
  const int columns = 2 + form->values;
  const char *at = line, *token = line;
  complaint->at = line;
  complaint->status = CB_ERR_FORMAT;
  for (int column = 0; column < columns; column++) {
    token = skip(at, form->commas);
    if (!explain_column(form, column, token, limit, &at, complaint)) return;
  }
  const char *extra = skip(at, form->commas);
  if (*extra != '\n' && !is_comment(form, *extra))
    snprintf(complaint->message, sizeof complaint->message, "unexpected '%s' after the %s; %s",
             cb_token_text(text, extra, token_end(extra, form->commas)), form->names[columns - 1],
             form->form);
  else if (form->real_diagonal)
    snprintf(complaint->message, sizeof complaint->message,
             "the imaginary part '%s' stands on the diagonal of a Hermitian matrix; it must be zero there",
             cb_token_text(text, token, at));
  else
    snprintf(complaint->message, sizeof complaint->message,
             "'%s' stands on the diagonal of a skew-symmetric matrix; it must be zero there",
             cb_token_text(text, token, at));
}

/* ---- good lines */

struct entry {
  int64_t row, col; /* from 0 */
  double parts[2];
};

/* Reads the line at `at`. Returns its end, or NULL when something is wrong with it. */
static inline const char *parse_entry(struct entry *entry, const struct cb_entry_form *form, const char *at,
                                      const char *limit, const int values, const int commas) {
  const char *after = cb_parse_index(at, &entry->row);
  int good = after != at && is_separator(*after, commas);
  at = skip(after, commas);
  after = cb_parse_index(at, &entry->col);
  good &= after != at;
  entry->row -= form->base;
  entry->col -= form->base;
  good &= (uint64_t)entry->row < (uint64_t)form->rows && (uint64_t)entry->col < (uint64_t)form->cols;
  for (int i = 0; i < values && good; i++) {
    const int is_zero = form->zero_diagonal || (form->real_diagonal && i == 1); /* where it is on the diagonal */
    at = skip(after, commas);
    const char *end = at == after ? NULL : cb_parse_double(at, limit, &entry->parts[i]);
    good = end && !cb_overflows(at, entry->parts[i]) &&
           !(is_zero && entry->row == entry->col && !(entry->parts[i] == 0));
    after = end;
  }
  if (!good) return NULL;
  at = skip(after, commas);
  return *at == '\n' || (at != after && is_comment(form, *at)) ? at : NULL;
}

static inline const char *next_line(const char *at, const struct cb_chunk *chunk) {
  return *at == '\n' ? at + 1 : (const char *)memchr(at, '\n', (size_t)(chunk->end - at)) + 1;
}

static inline int64_t parse_lines(const struct target *target, const struct cb_chunk *chunk,
                                  struct cb_complaint *complaint, const int values, const int commas) {
  const struct cb_entry_form *form = target->form;
  const struct cb_coo *coo = target->coo;
  int64_t found = 0;
  for (const char *line = chunk->begin; line < chunk->end;) {
    const char *at = skip(line, 0);
    if (*at != '\n' && !is_comment(form, *at)) {
      struct entry entry;
      at = parse_entry(&entry, form, at, chunk->limit, values, commas);
      if (!at) {
        explain_line(form, line, chunk->limit, complaint);
        break;
      }
      if (found == chunk->entries) { /* more lines than were counted */
        *complaint = (struct cb_complaint){line, CB_ERR_IO, "the file changed while it was read; read it again"};
        break;
      }
      coo->row_idx[chunk->entry + found] = (int32_t)entry.row;
      coo->col_idx[chunk->entry + found] = (int32_t)entry.col;
      if (values) coo->values[chunk->entry + found] = entry.parts[0];
      if (values > 1) coo->imaginary[chunk->entry + found] = entry.parts[1];
      found++;
    }
    line = next_line(at, chunk);
  }
  return found;
}

static int64_t parse_pairs(void *user, const struct cb_chunk *chunk, struct cb_complaint *complaint) {
  return parse_lines(user, chunk, complaint, 0, 0);
}

static int64_t parse_triples(void *user, const struct cb_chunk *chunk, struct cb_complaint *complaint) {
  return parse_lines(user, chunk, complaint, 1, 0);
}

static int64_t parse_quadruples(void *user, const struct cb_chunk *chunk, struct cb_complaint *complaint) {
  return parse_lines(user, chunk, complaint, 2, 0);
}

static int64_t parse_comma_pairs(void *user, const struct cb_chunk *chunk, struct cb_complaint *complaint) {
  return parse_lines(user, chunk, complaint, 0, 1);
}

static int64_t parse_comma_triples(void *user, const struct cb_chunk *chunk, struct cb_complaint *complaint) {
  return parse_lines(user, chunk, complaint, 1, 1);
}

static int64_t parse_comma_quadruples(void *user, const struct cb_chunk *chunk, struct cb_complaint *complaint) {
  return parse_lines(user, chunk, complaint, 2, 1);
}

enum cb_status cb_entries_parse(struct cb_coo *coo, struct cb_lines *lines, const struct cb_entry_form *form,
                                int64_t *found, struct cb_diag *diag) {
  static cb_parse_chunk *const parsers[3][2] = {{parse_pairs, parse_comma_pairs},
                                                {parse_triples, parse_comma_triples},
                                                {parse_quadruples, parse_comma_quadruples}};
  enum cb_status s = cb_coo_alloc(coo, lines->entries, !form->values, diag);
  if (!s && form->values > 1) s = cb_coo_make_complex(coo, diag);
  if (s) return s;
  coo->rows = form->rows;
  coo->cols = form->cols;
  struct target target = {form, coo};
  s = cb_lines_parse(lines, parsers[form->values][form->commas], &target, found, diag);
  if (s) cb_coo_release(coo);
  return s;
}
