/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices for the examples: a plain reader of Matrix Market files and a random graph. Both make triplets,
 * which `from_triplets` sorts; grids.c writes rows in order. An application has its matrix already. */
#include "common.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  exit(2);
}

static void *room(int64_t count, size_t size) {
  void *memory = calloc(count > 0 ? (size_t)count : 1, size);
  if (!memory) fail("no memory for %lld elements", (long long)count);
  return memory;
}

void allocate_matrix(struct matrix *matrix, int64_t rows, int64_t cols, int64_t nnz) {
  if (rows >= INT32_MAX || cols >= INT32_MAX || nnz >= INT32_MAX) fail("the examples' indices have 32 bits");
  matrix->rows = rows;
  matrix->cols = cols;
  matrix->nnz = nnz;
  matrix->row_ptr = room(rows + 1, sizeof(int32_t));
  matrix->col_idx = room(nnz, sizeof(int32_t));
  matrix->values = room(nnz, sizeof(double));
}

void free_matrix(struct matrix *matrix) {
  free(matrix->row_ptr);
  free(matrix->col_idx);
  free(matrix->values);
}

void host_multiply(const struct matrix *matrix, const double *x, double *y) {
  for (int64_t row = 0; row < matrix->rows; row++) {
    double sum = 0;
    for (int32_t k = matrix->row_ptr[row]; k < matrix->row_ptr[row + 1]; k++)
      sum += matrix->values[k] * x[matrix->col_idx[k]];
    y[row] = sum;
  }
}

double *host_vector(int64_t n) {
  return room(n, sizeof(double));
}

double *identity_in(const struct matrix *matrix) {
  double *values = host_vector(matrix->nnz);
  for (int64_t row = 0; row < matrix->rows; row++) {
    int diagonal = 0;
    for (int32_t k = matrix->row_ptr[row]; k < matrix->row_ptr[row + 1]; k++)
      if (matrix->col_idx[k] == row) values[k] = ++diagonal;
    if (diagonal != 1) fail("%s has no diagonal entry in row %lld", matrix->name, (long long)row + 1);
  }
  return values;
}

double host_residual(const struct matrix *matrix, const double *device_b, const double *device_x) {
  double *b = host_vector(matrix->rows), *x = host_vector(matrix->cols), *y = host_vector(matrix->rows);
  double error = 0, size = 0;
  copy_to_host(b, device_b, matrix->rows);
  copy_to_host(x, device_x, matrix->cols);
  host_multiply(matrix, x, y);
  for (int64_t row = 0; row < matrix->rows; row++) {
    error += (b[row] - y[row]) * (b[row] - y[row]);
    size += b[row] * b[row];
  }
  free(b);
  free(x);
  free(y);
  return sqrt(error / size);
}

cbgen_csr csr_of(const struct matrix *matrix) {
  return (cbgen_csr){.struct_size = sizeof(cbgen_csr),
                     .rows = matrix->rows,
                     .cols = matrix->cols,
                     .nnz = matrix->nnz,
                     .row_ptr = matrix->row_ptr,
                     .col_idx = matrix->col_idx,
                     .values = matrix->values,
                     .name = matrix->name};
}

struct triplet {
  int32_t row, col;
  double value;
};

static int32_t key_of(const struct triplet *entry, int by_row) {
  return by_row ? entry->row : entry->col;
}

/* Into *out, which has as much room, in the order of rows or columns; equal ones stay as they were. */
static void sort(const struct triplet *entry, int64_t count, struct triplet *out, int64_t keys, int by_row) {
  int64_t *place = room(keys + 1, sizeof *place);
  for (int64_t i = 0; i < count; i++) place[key_of(&entry[i], by_row) + 1]++;
  for (int64_t key = 0; key < keys; key++) place[key + 1] += place[key];
  for (int64_t i = 0; i < count; i++) out[place[key_of(&entry[i], by_row)]++] = entry[i];
  free(place);
}

/* Sorts the triplets, sums those in one place, and frees them. */
static void from_triplets(struct matrix *matrix, int64_t rows, int64_t cols, struct triplet *entry,
                          int64_t count) {
  struct triplet *other = room(count, sizeof *other);
  sort(entry, count, other, cols, 0);
  sort(other, count, entry, rows, 1);
  free(other);
  allocate_matrix(matrix, rows, cols, count);
  int32_t used = 0;
  for (int64_t i = 0; i < count; i++) {
    if (i && entry[i].row == entry[i - 1].row && entry[i].col == entry[i - 1].col) {
      matrix->values[used - 1] += entry[i].value;
      continue;
    }
    matrix->col_idx[used] = entry[i].col;
    matrix->values[used++] = entry[i].value;
    matrix->row_ptr[entry[i].row + 1] = used;
  }
  for (int64_t row = 0; row < rows; row++) /* empty rows end where the one before does */
    if (!matrix->row_ptr[row + 1]) matrix->row_ptr[row + 1] = matrix->row_ptr[row];
  matrix->nnz = used;
  free(entry);
}

static void read_file(struct matrix *matrix, const char *path) {
  char line[1024], format[32], field[32], symmetry[32];
  long long rows, cols, entries;
  FILE *file = fopen(path, "r");
  if (!file) fail("%s cannot be opened (nor is it a shape such as elasticity:32)", path);
  if (!fgets(line, sizeof line, file) ||
      sscanf(line, "%%%%MatrixMarket matrix %31s %31s %31s", format, field, symmetry) != 3 ||
      strcmp(format, "coordinate"))
    fail("%s is no Matrix Market file with coordinates", path);
  const int symmetric = !strcmp(symmetry, "symmetric"), pattern = !strcmp(field, "pattern");
  if ((!symmetric && strcmp(symmetry, "general")) || !strcmp(field, "complex"))
    fail("%s: '%s %s' is not read here", path, field, symmetry);
  do
    if (!fgets(line, sizeof line, file)) fail("%s ends before its sizes", path);
  while (*line == '%' || isspace((unsigned char)*line));
  if (sscanf(line, "%lld %lld %lld", &rows, &cols, &entries) != 3 || rows < 1 || cols < 1 || entries < 0 ||
      rows >= INT32_MAX || cols >= INT32_MAX || entries >= INT32_MAX / 2)
    fail("%s has no sizes, or too large ones", path);
  struct triplet *entry = room(2 * entries, sizeof *entry);
  int64_t count = 0;
  for (long long i = 0; i < entries; i++) {
    long long row, col;
    double value = 1;
    if (fscanf(file, "%lld %lld", &row, &col) != 2 || (!pattern && fscanf(file, "%lf", &value) != 1) ||
        row < 1 || row > rows || col < 1 || col > cols)
      fail("%s: entry %lld is none", path, i + 1);
    entry[count++] = (struct triplet){(int32_t)(row - 1), (int32_t)(col - 1), value};
    if (symmetric && row != col)
      entry[count++] = (struct triplet){(int32_t)(col - 1), (int32_t)(row - 1), value};
  }
  fclose(file);
  from_triplets(matrix, rows, cols, entry, count);
}

/* R-MAT with (0.57, 0.19, 0.19, 0.05), nodes renumbered by a multiplication so that the much linked lie
 * anywhere. */
static void make_web(struct matrix *matrix, int scale) {
  const int64_t nodes = (int64_t)1 << scale, count = 16 * nodes;
  struct triplet *entry = room(count, sizeof *entry);
  uint64_t state = 88172645463325252u; /* xorshift64 */
  for (int64_t i = 0; i < count; i++) {
    uint64_t row = 0, col = 0;
    for (int bit = 0; bit < scale; bit++) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;
      const double chance = (double)(state >> 11) / 9007199254740992.0;
      row = 2 * row + (chance >= 0.76);
      col = 2 * col + ((chance >= 0.57 && chance < 0.76) || chance >= 0.95);
    }
    row = row * 2654435761u % (uint64_t)nodes;
    col = col * 2654435761u % (uint64_t)nodes;
    entry[i] = (struct triplet){(int32_t)row, (int32_t)col, 1};
  }
  from_triplets(matrix, nodes, nodes, entry, count);
  for (int64_t k = 0; k < matrix->nnz; k++) matrix->values[k] = 1; /* links given twice count once */
}

void open_matrix(struct matrix *matrix, const char *spec) {
  char shape[16];
  int n;
  memset(matrix, 0, sizeof *matrix);
  snprintf(matrix->name, sizeof matrix->name, "%s", strrchr(spec, '/') ? strrchr(spec, '/') + 1 : spec);
  if (sscanf(spec, "%15[a-z]:%d", shape, &n) != 2) {
    read_file(matrix, spec);
    return;
  }
  if (n < 1 || n > (strcmp(shape, "web") ? 300 : 26)) fail("%s: too small or too large", spec);
  if (!strcmp(shape, "elasticity"))
    make_elasticity(matrix, n);
  else if (!strcmp(shape, "diffusion") || !strcmp(shape, "convection"))
    make_cells(matrix, n, *shape == 'c' ? 20 : 0);
  else if (!strcmp(shape, "web"))
    make_web(matrix, n);
  else
    fail("'%s' is no shape: elasticity, diffusion, convection, web", shape);
}

void open_square_matrix(struct matrix *matrix, const char *spec) {
  open_matrix(matrix, spec);
  if (matrix->rows != matrix->cols) fail("%s is not square", matrix->name);
}
