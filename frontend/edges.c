// SPDX-License-Identifier: Apache-2.0
/* Edge lists as the SNAP collection has them: one edge per line, two nodes and perhaps a weight, separated by
 * blanks, tabs or commas; lines that start with '#' or '%' are comments. The first edge decides whether there
 * are weights. Node numbers are taken as they are, so a list that counts from 1 has an empty node 0. */
#include "frontend/formats.h"

#include "frontend/coo.h"
#include "frontend/entries.h"

static const char form_text[] =
    "an edge list has lines 'from to' or 'from to weight', all alike (a Matrix Market "
    "file would start with '%%MatrixMarket')";

static int is_separator(char c) {
  return cb_is_blank(c) || c == ',';
}

/* Columns of the first line that holds an edge, 0 without edges. Sets the line's number. */
static int first_edge_columns(const struct cb_source *source, int64_t *line) {
  int columns = 0, in_token = 0, in_comment = 0;
  *line = 1;
  for (const char *at = source->bytes; at < source->end; at++) {
    if (*at == '\n') {
      if (columns) return columns;
      in_token = in_comment = 0;
      ++*line;
    } else if (!in_comment && !in_token && (*at == '#' || *at == '%')) {
      in_comment = 1;
    } else if (!in_comment) {
      columns += !in_token && !is_separator(*at);
      in_token = !is_separator(*at);
    }
  }
  return columns;
}

static int64_t count_nodes(const struct cb_coo *coo) {
  int32_t largest = -1;
#pragma omp parallel for schedule(static) reduction(max : largest)
  for (int64_t i = 0; i < coo->count; i++) {
    if (coo->row_idx[i] > largest) largest = coo->row_idx[i];
    if (coo->col_idx[i] > largest) largest = coo->col_idx[i];
  }
  return (int64_t)largest + 1;
}

static enum cb_status check_columns(const struct cb_source *source, int columns, int64_t line, struct cb_diag *diag) {
  if (!columns)
    return cb_fail(diag, CB_ERR_FORMAT, "%s:%lld: the file holds no edges; %s", source->path, (long long)line,
                   form_text);
  if (columns > 3)
    return cb_fail(diag, CB_ERR_FORMAT, "%s:%lld: %d columns are too many; %s", source->path, (long long)line,
                   columns, form_text);
  return CB_OK;
}

static enum cb_status parse_edges(struct cb_coo *coo, const struct cb_source *source, int columns,
                                  struct cb_diag *diag) {
  const struct cb_entry_form form = {
      .rows = CB_MAX_DIMENSION,
      .cols = CB_MAX_DIMENSION,
      .values = columns == 3,
      .commas = 1,
      .comments = "#%",
      .names = {"node", "second node", "weight"},
      .form = form_text,
      .range_error = "renumber the nodes",
  };
  struct cb_lines lines;
  int64_t found;
  enum cb_status s = cb_lines_open(&lines, source, source->bytes, 1, diag);
  if (!s) cb_lines_count(&lines, form.comments, -1);
  if (!s) s = cb_entries_parse(coo, &lines, &form, &found, diag);
  cb_lines_close(&lines);
  return s;
}

enum cb_status cb_read_edges(struct cb_csr *csr, const struct cb_source *source, struct cb_diag *diag) {
  int64_t line;
  struct cb_coo coo = {0};
  *csr = (struct cb_csr){0};
  const int columns = first_edge_columns(source, &line);
  enum cb_status s = check_columns(source, columns, line, diag);
  if (!s) s = parse_edges(&coo, source, columns, diag);
  if (!s) {
    coo.rows = coo.cols = count_nodes(&coo);
    s = cb_check_rows(source->path, coo.rows, coo.count, diag);
  }
  coo.path = source->path;
  if (!s) s = cb_csr_from_coo(csr, &coo, diag);
  cb_coo_release(&coo);
  return s;
}
