// SPDX-License-Identifier: Apache-2.0
/* Orders of rows and columns: see reorder.h. */
#include "analysis/reorder.h"

#include "analysis/ordering.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

struct cb_indices cb_csr_indices(const struct cb_csr *csr) {
  return (struct cb_indices){
      .rows = csr->rows, .cols = csr->cols, .row_ptr = csr->row_ptr, .col_idx = csr->col_idx, .row_wide = csr->wide};
}

int32_t *cb_order_inverse(const int32_t *order, int64_t count) {
  int32_t *places = cb_alloc((size_t)count, sizeof *places);
  for (int64_t i = 0; i < count && places; i++) places[order[i]] = (int32_t)i;
  return places;
}

static int compare_keys(const void *a, const void *b) {
  const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
  return (left > right) - (left < right);
}

static int compare_columns(const void *a, const void *b) {
  const int32_t left = *(const int32_t *)a, right = *(const int32_t *)b;
  return (left > right) - (left < right);
}

/* ---- sectors of x: what an order is worth */

enum { GROUP = 32, GROUPS = 1024, SECTOR = 4 /* doubles */ };

/* The columns of a group of rows, as places; their number. `columns` NULL: their number alone. */
static int64_t gather_group(const struct cb_indices *indices, const int32_t *rows, const int32_t *places, int64_t group,
                            int32_t *columns) {
  int64_t count = 0;
  for (int64_t i = group * GROUP; i < (group + 1) * GROUP && i < indices->rows; i++) {
    const int64_t row = rows ? rows[i] : i, end = cb_indices_row(indices, row + 1);
    for (int64_t k = cb_indices_row(indices, row); k < end; k++, count++) {
      if (!columns) continue;
      const int64_t column = cb_indices_col(indices, k);
      columns[count] = (int32_t)(places ? places[column] : column) / SECTOR;
    }
  }
  return count;
}

static int64_t count_distinct(int32_t *numbers, int64_t count) {
  int64_t distinct = 0;
  qsort(numbers, (size_t)count, sizeof *numbers, compare_columns);
  for (int64_t i = 0; i < count; i++) distinct += !i || numbers[i] != numbers[i - 1];
  return distinct;
}

/* Sectors for each nonzero in GROUPS groups of rows, evenly spread. NULL: the given order. */
static enum cb_status count_sectors(const struct cb_indices *indices, const int32_t *rows, const int32_t *places,
                                    double *sectors, struct cb_diag *diag) {
  const int64_t groups = (indices->rows + GROUP - 1) / GROUP, step = (groups + GROUPS - 1) / GROUPS;
  int64_t nonzeros = 0, distinct = 0;
  int failed = 0;
  *sectors = 0;
  if (!groups) return CB_OK;
#pragma omp parallel for schedule(dynamic, 1) reduction(+ : nonzeros, distinct) reduction(| : failed)
  for (int64_t group = 0; group < groups; group += step) {
    const int64_t count = gather_group(indices, rows, places, group, NULL);
    int32_t *columns = cb_alloc((size_t)count, sizeof *columns);
    failed |= !columns;
    if (!columns) continue;
    gather_group(indices, rows, places, group, columns);
    nonzeros += count;
    distinct += count_distinct(columns, count);
    cb_free(columns);
  }
  if (failed) return cb_fail_memory(diag, "an order of the matrix", 0);
  if (nonzeros) *sectors = (double)distinct / (double)nonzeros;
  return CB_OK;
}

/* ---- by length */

/* Numbers 0 … count - 1 by falling length, equal ones as they were. The lengths are changed. NULL: no memory. */
static int32_t *sort_by_length(uint32_t *lengths, int64_t count) {
  uint32_t most = 0;
  int32_t *order = cb_alloc((size_t)count, sizeof *order);
  for (int64_t i = 0; i < count; i++) most = lengths[i] > most ? lengths[i] : most;
  for (int64_t i = 0; i < count; i++) lengths[i] = most - lengths[i];
  if (order && cb_sort_by_key(order, lengths, count, (int64_t)most + 1) == count) return order;
  cb_free(order);
  return NULL;
}

static int32_t *rows_by_length(const struct cb_indices *indices) {
  uint32_t *lengths = cb_alloc((size_t)indices->rows, sizeof *lengths);
  if (!lengths) return NULL;
  for (int64_t row = 0; row < indices->rows; row++)
    lengths[row] = (uint32_t)(cb_indices_row(indices, row + 1) - cb_indices_row(indices, row));
  int32_t *order = sort_by_length(lengths, indices->rows);
  cb_free(lengths);
  return order;
}

static int32_t *columns_by_length(const struct cb_indices *indices) {
  const int64_t count = cb_indices_row(indices, indices->rows);
  uint32_t *lengths = cb_calloc((size_t)indices->cols, sizeof *lengths);
  if (!lengths) return NULL;
  for (int64_t k = 0; k < count; k++) lengths[cb_indices_col(indices, k)]++;
  int32_t *order = sort_by_length(lengths, indices->cols);
  cb_free(lengths);
  return order;
}

static int32_t *copy_order(const int32_t *order, int64_t count) {
  int32_t *copy = order ? cb_alloc((size_t)count, sizeof *copy) : NULL;
  if (copy) memcpy(copy, order, (size_t)count * sizeof *copy);
  return copy;
}

/* ---- band: the graph of A + Aᵀ, and levels of it */

struct graph {
  const struct cb_indices *indices;
  int64_t *starts; /* of Aᵀ: rows + 1 */
  int32_t *rows;   /* of Aᵀ */
  int64_t *degree; /* entries of row and column */
  int32_t *queue;  /* nodes in the order in which they were reached */
  uint64_t *keys;  /* of a node's neighbours */
  uint8_t *seen;   /* by the walk that numbers, 1; by those that look where to begin, 2 */
};

static void release_graph(struct graph *graph) {
  cb_free(graph->starts);
  cb_free(graph->rows);
  cb_free(graph->degree);
  cb_free(graph->queue);
  cb_free(graph->keys);
  cb_free(graph->seen);
}

static void transpose(struct graph *graph) {
  const struct cb_indices *indices = graph->indices;
  const int64_t count = cb_indices_row(indices, indices->rows);
  for (int64_t k = 0; k < count; k++) graph->starts[cb_indices_col(indices, k) + 1]++;
  for (int64_t i = 0; i < indices->rows; i++) graph->starts[i + 1] += graph->starts[i];
  for (int64_t row = 0; row < indices->rows; row++)
    for (int64_t k = cb_indices_row(indices, row); k < cb_indices_row(indices, row + 1); k++)
      graph->rows[graph->starts[cb_indices_col(indices, k)]++] = (int32_t)row;
  memmove(graph->starts + 1, graph->starts, (size_t)indices->rows * sizeof *graph->starts);
  graph->starts[0] = 0;
}

static enum cb_status build_graph(struct graph *graph, const struct cb_indices *indices, struct cb_diag *diag) {
  const int64_t n = indices->rows, count = cb_indices_row(indices, n);
  int64_t most = 0;
  *graph = (struct graph){.indices = indices};
  graph->starts = cb_calloc((size_t)n + 1, sizeof *graph->starts);
  graph->rows = cb_alloc((size_t)count, sizeof *graph->rows);
  graph->degree = cb_alloc((size_t)n, sizeof *graph->degree);
  graph->queue = cb_alloc((size_t)n, sizeof *graph->queue);
  graph->seen = cb_calloc((size_t)n, sizeof *graph->seen);
  if (!graph->starts || !graph->rows || !graph->degree || !graph->queue || !graph->seen)
    return cb_fail_memory(diag, "a matrix's graph", (uint64_t)(21 * n + 4 * count));
  transpose(graph);
  for (int64_t i = 0; i < n; i++) {
    graph->degree[i] =
        cb_indices_row(indices, i + 1) - cb_indices_row(indices, i) + graph->starts[i + 1] - graph->starts[i];
    most = graph->degree[i] > most ? graph->degree[i] : most;
  }
  graph->keys = cb_alloc((size_t)most, sizeof *graph->keys);
  return graph->keys ? CB_OK : cb_fail_memory(diag, "a matrix's graph", (uint64_t)most * 8);
}

static int64_t reach(struct graph *graph, int64_t node, uint8_t mark, int64_t found) {
  if (graph->seen[node] & mark) return found;
  graph->seen[node] |= mark;
  const int64_t degree = graph->degree[node] < UINT32_MAX ? graph->degree[node] : UINT32_MAX;
  graph->keys[found] = (uint64_t)degree << 32 | (uint64_t)node;
  return found + 1;
}

/* Appends the node's neighbours that the walk has not seen, by rising degree; the queue's new length. */
static int64_t visit(struct graph *graph, int64_t node, uint8_t mark, int64_t length) {
  const struct cb_indices *indices = graph->indices;
  int64_t found = 0;
  for (int64_t k = cb_indices_row(indices, node); k < cb_indices_row(indices, node + 1); k++)
    found = reach(graph, cb_indices_col(indices, k), mark, found);
  for (int64_t k = graph->starts[node]; k < graph->starts[node + 1]; k++)
    found = reach(graph, graph->rows[k], mark, found);
  qsort(graph->keys, (size_t)found, sizeof *graph->keys, compare_keys);
  for (int64_t i = 0; i < found; i++) graph->queue[length + i] = (int32_t)(uint32_t)graph->keys[i];
  return length + found;
}

/* The queue from `begin` on gets the component of `root`, level by level; its end. *last: where the last level begins;
 * *levels: how many there are. */
static int64_t walk(struct graph *graph, int64_t root, uint8_t mark, int64_t begin, int64_t *last, int64_t *levels) {
  int64_t end = begin + 1, level = begin;
  graph->queue[begin] = (int32_t)root;
  graph->seen[root] |= mark;
  *levels = 0;
  while (level < end) {
    const int64_t level_end = end;
    *last = level;
    ++*levels;
    for (; level < level_end; level++) end = visit(graph, graph->queue[level], mark, end);
  }
  return end;
}

/* A node of the root's component from which there are many levels: that of least degree in the last level, as long as
 * that has more. */
static int64_t find_end(struct graph *graph, int64_t root, int64_t begin) {
  enum { TRIES = 4, LOOK = 2 };
  int64_t most = 0;
  for (int i = 0; i < TRIES; i++) {
    int64_t last, levels, next = 0;
    const int64_t end = walk(graph, root, LOOK, begin, &last, &levels);
    next = graph->queue[last];
    for (int64_t k = last; k < end; k++)
      if (graph->degree[graph->queue[k]] < graph->degree[next]) next = graph->queue[k];
    for (int64_t k = begin; k < end; k++) graph->seen[graph->queue[k]] &= (uint8_t)~LOOK;
    if (levels <= most) break;
    most = levels;
    root = next;
  }
  return root;
}

/* Nodes by rising degree: where components begin. NULL: no memory. */
static int32_t *nodes_by_degree(const struct graph *graph) {
  const int64_t n = graph->indices->rows;
  uint32_t *keys = cb_alloc((size_t)n, sizeof *keys);
  int32_t *nodes = cb_alloc((size_t)n, sizeof *nodes);
  int64_t most = 0;
  for (int64_t i = 0; i < n && keys; i++) {
    keys[i] = (uint32_t)(graph->degree[i] < UINT32_MAX ? graph->degree[i] : UINT32_MAX);
    most = keys[i] > most ? keys[i] : most;
  }
  const int64_t count = keys && nodes ? cb_sort_by_key(nodes, keys, n, most + 1) : -1;
  cb_free(keys);
  if (count == n) return nodes;
  cb_free(nodes);
  return NULL;
}

/* The queue, reversed. */
static enum cb_status order_band(int32_t **order, const struct cb_indices *indices, struct cb_diag *diag) {
  const int64_t n = indices->rows;
  struct graph graph;
  enum cb_status s = build_graph(&graph, indices, diag);
  int32_t *nodes = s ? NULL : nodes_by_degree(&graph);
  int64_t length = 0, last, levels;
  *order = s ? NULL : cb_alloc((size_t)n, sizeof **order);
  if (!s && (!nodes || !*order)) s = cb_fail_memory(diag, "an order of the matrix", (uint64_t)n * 8);
  for (int64_t i = 0; i < n && !s; i++)
    if (!graph.seen[nodes[i]]) length = walk(&graph, find_end(&graph, nodes[i], length), 1, length, &last, &levels);
  for (int64_t i = 0; i < n && !s; i++) (*order)[i] = graph.queue[n - 1 - i];
  cb_free(nodes);
  release_graph(&graph);
  return s;
}

/* ---- which */

void cb_reordering_release(struct cb_reordering *reordering) {
  cb_free(reordering->rows);
  cb_free(reordering->columns);
  *reordering = (struct cb_reordering){0};
}

/* Takes the order instead of what was found, if it has fewer sectors; it is taken over in any case. */
static enum cb_status take_better(struct cb_reordering *best, struct cb_reordering *other,
                                  const struct cb_indices *indices, struct cb_diag *diag) {
  const double ENOUGH = 0.8;
  enum cb_status s = CB_OK;
  int32_t *places = other->columns ? cb_order_inverse(other->columns, indices->cols) : NULL;
  if (!other->rows || !places) s = cb_fail_memory(diag, "an order of the matrix", (uint64_t)indices->cols * 4);
  if (!s) s = count_sectors(indices, other->rows, places, &other->sectors, diag);
  cb_free(places);
  other->given_sectors = best->given_sectors;
  if (!s && other->sectors < best->sectors && other->sectors < ENOUGH * best->given_sectors) {
    const struct cb_reordering former = *best;
    *best = *other;
    *other = former;
  }
  cb_reordering_release(other);
  return s;
}

enum cb_status cb_reordering_find(struct cb_reordering *reordering, const struct cb_indices *indices,
                                  enum cb_reorder kind, struct cb_diag *diag) {
  const int is_square = indices->rows == indices->cols;
  *reordering = (struct cb_reordering){0};
  if (kind == CB_REORDER_NONE) return CB_OK;
  if (kind == CB_REORDER_SYMMETRIC && !is_square)
    return cb_fail(diag, CB_ERR_ARGUMENT, "a matrix of %lld rows and %lld columns has no order that serves both",
                   (long long)indices->rows, (long long)indices->cols);
  enum cb_status s = count_sectors(indices, NULL, NULL, &reordering->given_sectors, diag);
  reordering->sectors = reordering->given_sectors;
  struct cb_reordering other = {.method = CB_ORDER_BY_LENGTH};
  if (!s) {
    other.columns = columns_by_length(indices);
    other.rows = kind == CB_REORDER_SYMMETRIC ? copy_order(other.columns, indices->cols) : rows_by_length(indices);
    s = take_better(reordering, &other, indices, diag);
  }
  if (!s && is_square) {
    other.method = CB_ORDER_BAND;
    s = order_band(&other.rows, indices, diag);
    other.columns = copy_order(other.rows, indices->rows);
    if (s) cb_reordering_release(&other);
    else s = take_better(reordering, &other, indices, diag);
  }
  return s;
}

/* ---- a matrix in another order */

static void move_value(struct cb_csr *moved, int64_t to, const struct cb_csr *csr, int64_t from) {
  const int parts = csr->is_complex ? 2 : 1;
  for (int i = 0; i < parts; i++) moved->values[parts * to + i] = csr->values[parts * from + i];
}

/* Row `to` of the new matrix is row `from` of the old one; `keys` has room for it. */
static void move_row(struct cb_csr *moved, int64_t to, const struct cb_csr *csr, int64_t from, const int32_t *places,
                     uint64_t *keys) {
  const int64_t begin = cb_csr_row(csr, from), count = cb_csr_row_length(csr, from), at = cb_csr_row(moved, to);
  for (int64_t i = 0; i < count; i++) keys[i] = (uint64_t)places[csr->col_idx[begin + i]] << 32 | (uint64_t)i;
  qsort(keys, (size_t)count, sizeof *keys, compare_keys);
  for (int64_t i = 0; i < count; i++) {
    moved->col_idx[at + i] = (int32_t)(keys[i] >> 32);
    move_value(moved, at + i, csr, begin + (int64_t)(keys[i] & UINT32_MAX));
  }
}

static void move_rows(struct cb_csr *moved, const struct cb_csr *csr, const int32_t *rows, const int32_t *places,
                      uint64_t *keys) {
  for (int64_t row = 0; row < csr->rows; row++) {
    const int64_t end = cb_csr_row(moved, row) + cb_csr_row_length(csr, rows[row]);
    if (moved->wide) ((int64_t *)moved->row_ptr)[row + 1] = end;
    else ((int32_t *)moved->row_ptr)[row + 1] = (int32_t)end;
    move_row(moved, row, csr, rows[row], places, keys);
  }
}

enum cb_status cb_csr_reorder(struct cb_csr *csr, const struct cb_reordering *reordering, struct cb_diag *diag) {
  struct cb_csr moved = {0};
  if (reordering->method == CB_ORDER_GIVEN) return CB_OK;
  enum cb_status s = cb_csr_alloc(&moved, csr->rows, csr->cols, csr->nnz, diag);
  if (!s && csr->is_complex) s = cb_csr_make_complex(&moved, diag);
  int32_t *places = s ? NULL : cb_order_inverse(reordering->columns, csr->cols);
  uint64_t *keys = s ? NULL : cb_alloc((size_t)csr->cols, sizeof *keys);
  if (!s && (!places || !keys)) s = cb_fail_memory(diag, "an order of the matrix", (uint64_t)csr->cols * 12);
  if (!s) {
    move_rows(&moved, csr, reordering->rows, places, keys);
    moved.pattern = csr->pattern;
    moved.symmetric_file = csr->symmetric_file;
    memcpy(moved.name, csr->name, sizeof moved.name);
  }
  cb_free(places);
  cb_free(keys);
  if (s) {
    cb_csr_release(&moved);
    return s;
  }
  cb_csr_release(csr);
  *csr = moved;
  return CB_OK;
}
