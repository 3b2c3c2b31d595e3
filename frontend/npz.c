// SPDX-License-Identifier: Apache-2.0
/* Sparse matrices as scipy.sparse.save_npz writes them: a zip archive of NumPy arrays, one of which names the
 * format; and values of many matrices of one pattern (systems.h). NumPy's array file is the magic "\x93NUMPY", a
 * version, the length of a header, the header (a Python dictionary with the element type, the order and the shape) and
 * the elements. */
#include "frontend/formats.h"

#include "base/file.h"
#include "base/memory.h"
#include "frontend/coo.h"
#include "frontend/stream.h"
#include "frontend/systems.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum member { FORMAT, SHAPE, DATA, INDICES, INDPTR, ROW, COL, VALUES, B, MEMBERS };

static const char *const member_names[MEMBERS] = {
    [FORMAT] = "format.npy", [SHAPE] = "shape.npy", [DATA] = "data.npy", [INDICES] = "indices.npy",
    [INDPTR] = "indptr.npy", [ROW] = "row.npy",     [COL] = "col.npy",   [VALUES] = "values.npy",
    [B] = "b.npy",
};

struct array {
  char *block; /* the whole member */
  const char *elements;
  int64_t count;
  int64_t first; /* extent; 1 where there is none */
  int by_columns;
  char kind; /* NumPy's: 'i', 'u', 'f', 'b', 'c', 'S', 'U', … */
  int size;  /* bytes per element */
  int swap;  /* stored in the other byte order */
};

struct file {
  const char *path;
  unsigned wanted; /* members, as bits */
  struct array arrays[MEMBERS];
};
enum { OF_SYSTEMS = 1u << VALUES | 1u << B, OF_MATRIX = (1u << VALUES) - 1 };

static void release_array(struct array *array) {
  cb_free(array->block);
  *array = (struct array){0};
}

static void release_file(struct file *file) {
  for (int i = 0; i < MEMBERS; i++) release_array(&file->arrays[i]);
}

/* ---- the header of one array */

/* The text after "'key':" in a header, or NULL. */
static const char *find_key(const char *header, const char *key) {
  const char *at = strstr(header, key);
  if (!at) return NULL;
  at += strlen(key);
  while (*at == ' ') at++;
  return at;
}

/* A type string such as '<i4': byte order, kind, bytes (for 'U': characters of four bytes). */
static int parse_type(struct array *array, const char *descr) {
  if (!descr || *descr != '\'' || !descr[1] || !descr[2]) return 0;
  array->swap = descr[1] == '>';
  array->kind = descr[2];
  char *end;
  const long size = strtol(descr + 3, &end, 10);
  if (*end != '\'' || size < 0 || size > 1 << 20) return 0;
  array->size = (int)size * (array->kind == 'U' ? 4 : 1);
  return 1;
}

/* The product of a shape such as (3, 4), which is 1 for (). Returns 0 when it is none or too large. */
static int parse_shape(struct array *array, const char *shape) {
  if (!shape || *shape++ != '(') return 0;
  array->count = array->first = 1;
  for (int dimension = 0;; dimension++) {
    while (*shape == ' ' || *shape == ',') shape++;
    if (*shape == ')') return 1;
    char *end;
    const long long extent = strtoll(shape, &end, 10);
    if (end == shape || extent < 0 || __builtin_mul_overflow(array->count, (int64_t)extent, &array->count))
      return 0;
    if (!dimension) array->first = extent;
    shape = end;
  }
}

static enum cb_status fail_member(const struct file *file, enum member member, enum cb_status status,
                                  const char *what, struct cb_diag *diag) {
  return cb_fail(diag, status, "%s: '%s' %s; save the matrix again with scipy.sparse.save_npz", file->path,
                 member_names[member], what);
}

/* The header's length, or 0 where this is no array file. Sets where the header starts. */
static size_t header_length(const char *bytes, size_t length, size_t *start) {
  const unsigned char *raw = (const unsigned char *)bytes;
  if (length < 12 || memcmp(bytes, "\x93NUMPY", 6)) return 0;
  *start = raw[6] == 1 ? 10 : 12;
  size_t header = raw[8] | (size_t)raw[9] << 8;
  if (raw[6] > 1) header |= (size_t)raw[10] << 16 | (size_t)raw[11] << 24;
  return header <= length - *start ? header : 0;
}

static enum cb_status parse_array(struct file *file, enum member member, size_t length,
                                  struct cb_diag *diag) {
  enum { MOST_HEADER = 4096 };
  struct array *array = &file->arrays[member];
  char header[MOST_HEADER];
  size_t start = 0;
  const size_t size = header_length(array->block, length, &start);
  if (!size || size >= sizeof header)
    return fail_member(file, member, CB_ERR_FORMAT, "is not a NumPy array", diag);
  memcpy(header, array->block + start, size);
  header[size] = 0;
  if (!parse_type(array, find_key(header, "'descr':")))
    return fail_member(file, member, CB_ERR_FORMAT, "has no simple element type", diag);
  if (!parse_shape(array, find_key(header, "'shape':")))
    return fail_member(file, member, CB_ERR_FORMAT, "has no proper shape", diag);
  const char *const order = find_key(header, "'fortran_order':");
  array->by_columns = order && *order == 'T';
  array->elements = array->block + start + size;
  int64_t bytes;
  if (__builtin_mul_overflow(array->count, (int64_t)array->size, &bytes) ||
      bytes > (int64_t)(length - start - size))
    return fail_member(file, member, CB_ERR_FORMAT, "is shorter than its shape says", diag);
  return CB_OK;
}

/* ---- elements */

static uint64_t load_bytes(const struct array *array, int64_t index) {
  uint64_t raw = 0;
  memcpy(&raw, array->elements + index * array->size, (size_t)array->size);
  return array->swap ? __builtin_bswap64(raw) >> (64 - 8 * array->size) : raw;
}

static int is_integer(const struct array *array) {
  const int simple = array->size == 1 || array->size == 2 || array->size == 4 || array->size == 8;
  return simple && (array->kind == 'i' || array->kind == 'u');
}

/* An integer; what does not fit comes back as -1 (no index is negative). */
static int64_t load_integer(const struct array *array, int64_t index) {
  const uint64_t raw = load_bytes(array, index);
  if (array->kind == 'u') return raw <= INT64_MAX ? (int64_t)raw : -1;
  const int unused = 64 - 8 * array->size;
  return (int64_t)(raw << unused) >> unused;
}

static int is_number(const struct array *array) {
  if (array->kind == 'f') return array->size == 4 || array->size == 8;
  return is_integer(array) || (array->kind == 'b' && array->size == 1);
}

/* Of two floats or two doubles. */
static int is_complex(const struct array *array) {
  return array->kind == 'c' && (array->size == 8 || array->size == 16);
}

static double load_number(const struct array *array, int64_t index) {
  const uint64_t raw = load_bytes(array, index);
  const uint32_t half = (uint32_t)raw;
  float single;
  double number;
  if (array->kind == 'b') return raw != 0;
  if (array->kind == 'u') return (double)raw;
  if (array->kind == 'i') return (double)load_integer(array, index);
  memcpy(&number, &raw, sizeof number);
  memcpy(&single, &half, sizeof single);
  return array->size == 8 ? number : (double)single;
}

/* ---- members */

static enum cb_status fail_zip(struct cb_diag *diag, struct archive *archive, const char *path) {
  const char *reason = archive_error_string(archive);
  if (archive_errno(archive) == ENOMEM) return cb_fail_memory(diag, path, 0);
  return cb_fail(diag, CB_ERR_FORMAT, "%s: cannot read the archive: %s; fetch or save the file again", path,
                 reason ? reason : "unknown error");
}

static enum cb_status read_members(struct file *file, struct archive *archive, const struct cb_source *source,
                                   struct cb_diag *diag) {
  const size_t packed = (size_t)(source->end - source->bytes);
  for (;;) {
    struct archive_entry *entry;
    const int result = archive_read_next_header(archive, &entry);
    if (result == ARCHIVE_EOF) return CB_OK;
    if (result < ARCHIVE_WARN && result != ARCHIVE_RETRY)
      return fail_zip(diag, archive, file->path);
    const char *name = result == ARCHIVE_RETRY ? NULL : archive_entry_pathname(entry);
    for (int i = 0; name && i < MEMBERS; i++) {
      if (!(file->wanted >> i & 1) || strcmp(name, member_names[i]) || file->arrays[i].block) continue;
      size_t length;
      enum cb_status s = cb_read_member(&file->arrays[i].block, &length, archive, file->path, packed, diag);
      if (!s) s = parse_array(file, (enum member)i, length, diag);
      if (s) return s;
    }
    if (source->progress)
      source->progress->report(source->progress->user, "unpacking", archive_filter_bytes(archive, -1),
                               (int64_t)packed);
  }
}

static enum cb_status read_archive(struct file *file, const struct cb_source *source, struct cb_diag *diag) {
  struct archive *archive = archive_read_new();
  if (!archive) return cb_fail_memory(diag, file->path, 0);
  enum cb_status s;
  if (archive_read_support_format_zip_seekable(archive) < ARCHIVE_WARN ||
      archive_read_open_memory(archive, source->bytes, (size_t)(source->end - source->bytes)) < ARCHIVE_WARN)
    s = fail_zip(diag, archive, file->path);
  else
    s = read_members(file, archive, source, diag);
  archive_read_free(archive);
  return s;
}

static enum cb_status require(const struct file *file, enum member member, struct cb_diag *diag) {
  return file->arrays[member].block ? CB_OK : fail_member(file, member, CB_ERR_FORMAT, "is missing", diag);
}

static enum cb_status require_integers(const struct file *file, enum member member, struct cb_diag *diag) {
  const enum cb_status s = require(file, member, diag);
  if (s || is_integer(&file->arrays[member])) return s;
  return fail_member(file, member, CB_ERR_FORMAT, "does not hold integers", diag);
}

static enum cb_status check_data(const struct file *file, int64_t count, struct cb_diag *diag) {
  const struct array *data = &file->arrays[DATA];
  const enum cb_status s = require(file, DATA, diag);
  if (s) return s;
  if (!is_number(data) && !is_complex(data))
    return cb_fail(diag, CB_ERR_UNSUPPORTED,
                   "%s: values of type '%c%d' are not supported; save A.astype('float64')", file->path,
                   data->kind, data->size);
  if (data->count < count) return fail_member(file, DATA, CB_ERR_FORMAT, "holds too few values", diag);
  return CB_OK;
}

/* The name of the format, from bytes or from UTF-32. */
static enum cb_status read_format(char name[8], const struct file *file, struct cb_diag *diag) {
  const struct array *array = &file->arrays[FORMAT];
  const enum cb_status s = require(file, FORMAT, diag);
  if (s) return s;
  const int step = array->kind == 'U' ? 4 : 1;
  if ((array->kind != 'U' && array->kind != 'S') || array->count != 1)
    return fail_member(file, FORMAT, CB_ERR_FORMAT, "is not a word", diag);
  int length = 0;
  for (int i = 0; i < array->size / step && length < 7; i++) {
    const char c = array->elements[i * step + (array->swap ? step - 1 : 0)];
    if (c >= 'a' && c <= 'z') name[length++] = c;
  }
  name[length] = 0;
  return CB_OK;
}

static enum cb_status read_sizes(struct cb_coo *coo, const struct file *file, struct cb_diag *diag) {
  const enum cb_status s = require_integers(file, SHAPE, diag);
  if (s) return s;
  const struct array *shape = &file->arrays[SHAPE];
  if (shape->count != 2)
    return cb_fail(diag, CB_ERR_UNSUPPORTED,
                   "%s: arrays of %lld dimensions are not supported; reshape to two", file->path,
                   (long long)shape->count);
  coo->rows = load_integer(shape, 0);
  coo->cols = load_integer(shape, 1);
  if (coo->rows < 0 || coo->cols < 0) return fail_member(file, SHAPE, CB_ERR_FORMAT, "holds no sizes", diag);
  if (coo->rows > CB_MAX_DIMENSION || coo->cols > CB_MAX_DIMENSION)
    return cb_fail(diag, CB_ERR_LIMIT, "%s: %lld x %lld is too large; rows and columns end at %d", file->path,
                   (long long)coo->rows, (long long)coo->cols, CB_MAX_DIMENSION);
  return CB_OK;
}

/* ---- to coordinates */

/* Takes the first `count` indices out of a member, which is then freed. */
static enum cb_status take_indices(int32_t **indices, struct file *file, enum member member, int64_t count,
                                   int64_t limit, struct cb_diag *diag) {
  struct array *array = &file->arrays[member];
  int64_t bad = count;
  int32_t *taken = cb_alloc((size_t)count, sizeof *taken);
  if (!taken) return cb_fail_memory(diag, member_names[member], 4ull * (unsigned long long)count);
#pragma omp parallel for schedule(static) reduction(min : bad)
  for (int64_t i = 0; i < count; i++) {
    const int64_t index = load_integer(array, i);
    if ((index < 0 || index >= limit) && i < bad) bad = i;
    taken[i] = (int32_t)index;
  }
  *indices = taken;
  if (bad < count)
    return cb_fail(diag, CB_ERR_FORMAT,
                   "%s: '%s' holds %lld at %lld, which is outside 0..%lld; save the matrix again after "
                   "A.check_format()",
                   file->path, member_names[member], (long long)load_integer(array, bad), (long long)bad,
                   (long long)limit - 1);
  release_array(array);
  return CB_OK;
}

static enum cb_status take_values(struct cb_coo *coo, struct file *file, struct cb_diag *diag) {
  struct array *data = &file->arrays[DATA];
  coo->values = cb_alloc((size_t)coo->count, sizeof *coo->values);
  if (!coo->values) return cb_fail_memory(diag, "values", 8ull * (unsigned long long)coo->count);
  const int parts = is_complex(data) ? 2 : 1;
  struct array numbers = *data;
  if (parts > 1 && cb_coo_make_complex(coo, diag)) return CB_ERR_MEMORY;
  numbers.kind = parts > 1 ? 'f' : data->kind;
  numbers.size /= parts;
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < coo->count; i++) {
    coo->values[i] = load_number(&numbers, parts * i);
    if (parts > 1) coo->imaginary[i] = load_number(&numbers, 2 * i + 1);
  }
  release_array(data);
  return CB_OK;
}

static enum cb_status check_pointers(const struct file *file, int64_t lines, int64_t most,
                                     struct cb_diag *diag) {
  const struct array *indptr = &file->arrays[INDPTR];
  int64_t wrong = 0;
  if (indptr->count != lines + 1)
    return fail_member(file, INDPTR, CB_ERR_FORMAT,
                       "has not one entry more than the matrix has rows (CSR) or "
                       "columns (CSC)",
                       diag);
#pragma omp parallel for schedule(static) reduction(+ : wrong)
  for (int64_t i = 0; i < lines; i++) wrong += load_integer(indptr, i) > load_integer(indptr, i + 1);
  if (wrong || load_integer(indptr, 0) || load_integer(indptr, lines) > most)
    return fail_member(file, INDPTR, CB_ERR_FORMAT, "does not ascend from 0 to the number of indices", diag);
  return CB_OK;
}

/* Writes the number of the row (CSR) or column (CSC) of each entry. */
static enum cb_status expand_pointers(int32_t **indices, struct file *file, int64_t lines, int64_t count,
                                      struct cb_diag *diag) {
  const struct array *indptr = &file->arrays[INDPTR];
  int32_t *expanded = cb_alloc((size_t)count, sizeof *expanded);
  if (!expanded) return cb_fail_memory(diag, "indices", 4ull * (unsigned long long)count);
#pragma omp parallel for schedule(dynamic, 1024)
  for (int64_t line = 0; line < lines; line++) {
    const int64_t end = load_integer(indptr, line + 1);
    for (int64_t i = load_integer(indptr, line); i < end; i++) expanded[i] = (int32_t)line;
  }
  *indices = expanded;
  release_array(&file->arrays[INDPTR]);
  return CB_OK;
}

static enum cb_status read_compressed(struct cb_coo *coo, struct file *file, int by_column,
                                      struct cb_diag *diag) {
  const int64_t lines = by_column ? coo->cols : coo->rows, limit = by_column ? coo->rows : coo->cols;
  enum cb_status s = require_integers(file, INDICES, diag);
  if (!s) s = require_integers(file, INDPTR, diag);
  if (!s) s = check_pointers(file, lines, file->arrays[INDICES].count, diag);
  if (s) return s;
  coo->count = load_integer(&file->arrays[INDPTR], lines);
  s = check_data(file, coo->count, diag);
  if (!s) s = take_indices(by_column ? &coo->row_idx : &coo->col_idx, file, INDICES, coo->count, limit, diag);
  if (!s) s = expand_pointers(by_column ? &coo->col_idx : &coo->row_idx, file, lines, coo->count, diag);
  return s ? s : take_values(coo, file, diag);
}

static enum cb_status read_csr(struct cb_coo *coo, struct file *file, struct cb_diag *diag) {
  return read_compressed(coo, file, 0, diag);
}

static enum cb_status read_csc(struct cb_coo *coo, struct file *file, struct cb_diag *diag) {
  return read_compressed(coo, file, 1, diag);
}

static enum cb_status read_coo(struct cb_coo *coo, struct file *file, struct cb_diag *diag) {
  enum cb_status s = require_integers(file, ROW, diag);
  if (!s) s = require_integers(file, COL, diag);
  if (s) return s;
  coo->count = file->arrays[ROW].count;
  if (file->arrays[COL].count != coo->count)
    return fail_member(file, COL, CB_ERR_FORMAT, "is not as long as 'row.npy'", diag);
  s = check_data(file, coo->count, diag);
  if (!s) s = take_indices(&coo->row_idx, file, ROW, coo->count, coo->rows, diag);
  if (!s) s = take_indices(&coo->col_idx, file, COL, coo->count, coo->cols, diag);
  return s ? s : take_values(coo, file, diag);
}

static const struct {
  const char *name;
  enum cb_status (*read)(struct cb_coo *, struct file *, struct cb_diag *);
} formats[] = {{"csr", read_csr}, {"csc", read_csc}, {"coo", read_coo}};

static enum cb_status read_arrays(struct cb_coo *coo, struct file *file, struct cb_diag *diag) {
  char name[8];
  enum cb_status s = read_format(name, file, diag);
  if (!s) s = read_sizes(coo, file, diag);
  if (s) return s;
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
    if (!strcmp(name, formats[i].name)) return formats[i].read(coo, file, diag);
  return cb_fail(diag, CB_ERR_UNSUPPORTED, "%s: the format '%s' is not supported; save A.tocsr()", file->path,
                 name);
}

enum cb_status cb_read_npz(struct cb_csr *csr, const struct cb_source *source, struct cb_diag *diag) {
  struct file file = {.path = source->path, .wanted = OF_MATRIX};
  struct cb_coo coo = {0};
  *csr = (struct cb_csr){0};
  enum cb_status s = read_archive(&file, source, diag);
  if (!s) s = read_arrays(&coo, &file, diag);
  if (!s) s = cb_check_rows(file.path, coo.rows, coo.count, diag);
  release_file(&file);
  coo.path = source->path;
  if (!s) s = cb_csr_from_coo(csr, &coo, diag);
  cb_coo_release(&coo);
  return s;
}

/* ---- many systems */

/* Rows of `length` numbers each, as many as `*count` says, or, where that is 0, as there are. */
static enum cb_status take_rows(double **numbers, int64_t *count, struct file *file, enum member member, int64_t length,
                                struct cb_diag *diag) {
  const struct array *array = &file->arrays[member];
  const char *name = member_names[member];
  if (!is_number(array))
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "%s: '%s' is not of real numbers; save it as float64", file->path, name);
  if (array->by_columns && array->first != 1 && array->first != array->count)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "%s: '%s' lies by columns; save numpy.ascontiguousarray of it", file->path,
                   name);
  int64_t wanted;
  if (!*count) *count = array->first;
  if (*count < 1 || array->first != *count || __builtin_mul_overflow(*count, length, &wanted) || array->count != wanted)
    return cb_fail(diag, CB_ERR_FORMAT, "%s: '%s' has %lld numbers in %lld rows; it needs %lld in each%s", file->path,
                   name, (long long)array->count, (long long)array->first, (long long)length,
                   member == B ? ", and a row for each system" : ", the matrix's nonzeros");
  *numbers = cb_alloc((size_t)wanted, sizeof **numbers);
  if (!*numbers) return cb_fail_memory(diag, name, 8ull * (unsigned long long)wanted);
  for (int64_t i = 0; i < wanted; i++) (*numbers)[i] = load_number(array, i);
  return CB_OK;
}

static enum cb_status read_systems(struct cb_systems *systems, const struct cb_source *source, int64_t nnz,
                                   int64_t rows, struct cb_diag *diag) {
  struct file file = {.path = source->path, .wanted = OF_SYSTEMS};
  enum cb_status s = CB_OK;
  if (!cb_is_zip(source->bytes, (size_t)(source->end - source->bytes)))
    return cb_fail(diag, CB_ERR_FORMAT, "%s: this is no .npz; save arrays 'values' and 'b' with numpy.savez", file.path);
  s = read_archive(&file, source, diag);
  if (!s && !file.arrays[VALUES].block)
    s = cb_fail(diag, CB_ERR_FORMAT, "%s: there is no array 'values'; save one with numpy.savez", file.path);
  if (!s) s = take_rows(&systems->values, &systems->count, &file, VALUES, nnz, diag);
  if (!s && file.arrays[B].block) s = take_rows(&systems->b, &systems->count, &file, B, rows, diag);
  release_file(&file);
  return s;
}

enum cb_status cb_systems_read(struct cb_systems *systems, const char *path, int64_t nnz, int64_t rows,
                               struct cb_diag *diag) {
  struct cb_mapping mapping;
  *systems = (struct cb_systems){0};
  enum cb_status s = cb_file_map(&mapping, path, diag);
  if (s) return s;
  const struct cb_source source = {
      .path = path, .bytes = mapping.bytes, .end = mapping.bytes + mapping.length, .mapped = mapping.mapped};
  s = read_systems(systems, &source, nnz, rows, diag);
  cb_file_unmap(&mapping);
  if (s) cb_systems_release(systems);
  return s;
}

void cb_systems_release(struct cb_systems *systems) {
  cb_free(systems->values);
  cb_free(systems->b);
  *systems = (struct cb_systems){0};
}
