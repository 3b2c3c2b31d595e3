// SPDX-License-Identifier: Apache-2.0
/* A kernel.cu read back: see kernel_file.h. In the order of the text, then the data; cb_kernel_file_read at the end
 * lists it. */
#include "runtime/verify/kernel_file.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/real.h"
#include "runtime/verify/evidence.h"
#include "runtime/verify/sidecar.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cb_is_kernel_file(const char *path) {
  static const char end[] = ".cu";
  const size_t length = strlen(path), tail = strlen(end);
  return length >= tail && !strcmp(path + length - tail, end);
}

/* ---- finding words */

struct reader {
  struct cb_kernel_file *file;
  const char *path, *text, *host; /* host: where the host section begins */
  int64_t arrays_end;
  struct cb_diag *diag;
};

static enum cb_status lacks(const struct reader *reader, const char *what) {
  return cb_fail(reader->diag, CB_ERR_FORMAT,
                 "'%s' does not say %s, where a kernel of cbgen's does: it is none, or was edited there; generate it anew",
                 reader->path, what);
}

/* Behind the first `words` from `at` on; NULL: there are none. */
static const char *behind(const char *at, const char *words) {
  const char *const found = at ? strstr(at, words) : NULL;
  return found ? found + strlen(words) : NULL;
}

/* Copies up to `end`, within the line. 0: it is too long, or there is no end. */
static int copy_to(char *word, size_t size, const char *at, const char *end) {
  const char *const stop = at ? strstr(at, end) : NULL;
  if (!stop || (size_t)(stop - at) >= size || (size_t)(stop - at) > strcspn(at, "\n")) return 0;
  memcpy(word, at, (size_t)(stop - at));
  word[stop - at] = 0;
  return 1;
}

static int read_number(const char *at, int64_t least, int64_t most, int64_t *number) {
  char *end;
  if (!at || !isdigit((unsigned char)*at)) return 0;
  *number = strtoll(at, &end, 10);
  return *number >= least && *number <= most;
}

/* ---- the head */

/* "// y = αA·x + βy for "NAME": …": which product that is. */
static int read_product(struct cb_image *image, const char *text) {
  for (int semiring = 0; semiring < CB_SEMIRINGS; semiring++)
    for (int form = CB_FORM_AX; form <= CB_FORM_AXPBY; form++) {
      char line[120];
      const char *const equation = cb_semiring_equation((enum cb_semiring)semiring, form);
      const int length = snprintf(line, sizeof line, "// %s for \"", equation);
      if (strncmp(text, line, (size_t)length)) continue;
      image->semiring = (enum cb_semiring)semiring;
      image->form = (enum cb_form)form;
      return 1;
    }
  return 0;
}

/* "double", or "f16 values, …": of the matrix. */
static enum cb_type type_of_matrix(const char *words) {
  char name[16];
  if (copy_to(name, sizeof name, words, " values, ")) return cb_type_named(name);
  for (int type = CB_F64; type <= CB_BF16; type++)
    if (copy_to(name, sizeof name, words, ".  cbgen ") && !strcmp(name, cb_type_c_name((enum cb_type)type)))
      return (enum cb_type)type;
  return CB_TYPE_COUNT;
}

/* "recipe cb was named; 5.57 us predicted", "sell 2.61 us predicted": of the recipe that was chosen. */
static double read_prediction(const char *text) {
  const char *at = behind(text, "\n//   because ");
  for (const size_t line = at ? strcspn(at, "\n") : 0; at && *at && *at != '\n'; at++) {
    char *end;
    if (!isdigit((unsigned char)*at)) continue;
    const double us = strtod(at, &end);
    if (!strncmp(end, " us predicted", strlen(" us predicted"))) return us;
    if (end > at + line) break;
    at = end - 1;
  }
  return 0;
}

static enum cb_status read_head(struct reader *reader) {
  struct cb_kernel_file *file = reader->file;
  struct cb_image *image = &file->image;
  if (!read_product(image, reader->text)) return lacks(reader, "what it multiplies");
  const char *const size = behind(reader->text, "\": "), *const nonzeros = behind(size, " × ");
  copy_to(file->name, sizeof file->name, behind(reader->text, " for \""), "\": ");
  if (!read_number(behind(nonzeros, ", "), 0, INT64_MAX, &image->nnz)) return lacks(reader, "how many nonzeros it has");
  image->matrix_type = type_of_matrix(behind(nonzeros, " nonzeros, "));
  image->vector_type = cb_evidence_type(reader->text);
  const char *const sum = behind(reader->text, "\nusing sum_t = ");
  if (sum && !strncmp(sum, "complex", 7))
    return cb_fail(reader->diag, CB_ERR_UNSUPPORTED,
                   "%s: kernels of complex numbers are run from their matrix, not from their text", reader->path);
  image->sum_type = sum && !strncmp(sum, "float;", 6)    ? CB_F32
                    : sum && !strncmp(sum, "double;", 7) ? CB_F64
                                                         : CB_TYPE_COUNT;
  if (!cb_type_is_float(image->matrix_type) || image->vector_type > CB_BF16 || image->sum_type > CB_BF16)
    return lacks(reader, "of which types its numbers are");
  const char *const line = behind(reader->text, "\n//   plan    ");
  image->line = cb_arena_format(&image->arena, "%.*s", line ? (int)strcspn(line, "\n") : 0, line ? line : "");
  copy_to(file->pattern, sizeof file->pattern, behind(reader->text, "\n//   pattern "), "  ");
  file->predicted_us = read_prediction(reader->text);
  file->has_atomics = strstr(reader->text, "_atomic(vectors, ") != NULL; /* commit_atomic, add_sum_atomic */
  return image->line ? CB_OK : cb_fail_memory(reader->diag, "a kernel's head", 0);
}

static enum cb_status read_sizes(struct reader *reader) {
  struct cb_image *image = &reader->file->image;
  const char *const sizes = behind(reader->host, "constexpr size_t kRowCount = ");
  const char *const cols = behind(sizes, "kColCount = ");
  if (!read_number(sizes, 0, INT32_MAX, &image->rows) || !read_number(cols, 0, INT32_MAX, &image->cols) ||
      !read_number(behind(cols, "kExpected = "), CB_BLOB_HEADER, INT64_MAX / 2, &reader->arrays_end))
    return lacks(reader, "how many rows and columns it has");
  image->packed_bytes = reader->arrays_end;
  const char *const fill = behind(reader->host, "cudaMemset(y, ");
  reader->file->y_before = fill ? (int)strtol(fill, NULL, 10) : 255;
  reader->file->only_positive = image->semiring == CB_OR_AND;
  return CB_OK;
}

/* ---- arrays */

/* "matrix->NAME = (TYPE *)array_at(matrix->memory, OFFSET, BYTES);". 0: there is no such place, or no sense in it. */
static int read_place(const struct reader *reader, const char *name, int64_t *offset, int64_t *bytes) {
  char words[160];
  snprintf(words, sizeof words, "\n  matrix->%s = (", name);
  const char *const line = behind(reader->host, words), *const at = behind(line, "array_at(matrix->memory, ");
  return at && (size_t)(at - line) < strcspn(line, "\n") && read_number(at, CB_BLOB_HEADER, INT64_MAX / 2, offset) &&
         read_number(behind(at, ", "), 0, INT64_MAX / 2, bytes);
}

static struct cb_image_array *add_array(struct cb_image *image) {
  image->arrays = cb_arena_grow(&image->arena, image->arrays, image->arrays_count, sizeof *image->arrays);
  image->pointers = cb_arena_grow(&image->arena, image->pointers, image->pointers_count, sizeof *image->pointers);
  if (!image->arrays || !image->pointers || image->arrays_count == CB_IMAGE_ARRAYS) return NULL;
  image->pointers[image->pointers_count++] = image->arrays_count;
  image->arrays[image->arrays_count] = (struct cb_image_array){0};
  return &image->arrays[image->arrays_count++];
}

/* A member of `region`. One without a place has no elements. */
static enum cb_status read_array(struct reader *reader, const char *region, const char *member) {
  struct cb_image *image = &reader->file->image;
  char name[120];
  snprintf(name, sizeof name, "%s.%s", region, member);
  struct cb_image_array *array = add_array(image);
  if (!array)
    return cb_fail(reader->diag, CB_ERR_LIMIT, "'%s' has more than %d arrays, or memory is short", reader->path,
                   CB_IMAGE_ARRAYS);
  array->offset = array > image->arrays ? array[-1].offset + array[-1].bytes : CB_BLOB_ALIGN;
  if (!read_place(reader, name, &array->offset, &array->bytes)) return CB_OK;
  reader->file->stored_bytes += array->bytes;
  if (array->offset <= reader->arrays_end && array->bytes <= reader->arrays_end - array->offset) return CB_OK;
  return cb_fail(reader->diag, CB_ERR_FORMAT,
                 "'%s' has array '%s' beyond the end of its data: it was edited; generate it anew", reader->path, name);
}

/* The members of "struct Arrays" of a region's namespace: "  const TYPE *NAME;  // …". */
static enum cb_status read_region(struct reader *reader, const char *region, struct cb_image_group *group) {
  char words[120], member[64];
  snprintf(words, sizeof words, "\nnamespace %s {\n", region);
  const char *line = behind(behind(reader->text, words), "\nstruct Arrays {\n");
  enum cb_status s = line ? CB_OK : lacks(reader, "which arrays a region has");
  *group = (struct cb_image_group){.first_pointer = reader->file->image.pointers_count};
  while (!s && strncmp(line, "};", 2)) {
    if (copy_to(member, sizeof member, behind(line, " *"), ";")) s = read_array(reader, region, member);
    line += strcspn(line, "\n");
    if (!*line++) return lacks(reader, "where a region's arrays end");
  }
  group->pointers = reader->file->image.pointers_count - group->first_pointer;
  return s;
}

static enum cb_status read_carries(struct reader *reader) {
  struct cb_image *image = &reader->file->image;
  int64_t offset, sums, counters;
  if (!read_place(reader, "carry_sums", &offset, &sums)) return CB_OK;
  if (!read_place(reader, "carry_counters", &offset, &counters)) return lacks(reader, "where its carry counters are");
  image->carry_sums = sums / (int64_t)cb_type_size(image->sum_type);
  image->carry_counters = counters / (int64_t)sizeof(uint32_t);
  return CB_OK;
}

/* ---- launches */

/* "constexpr unsigned kGrid = 12;  // …": of that name. */
static int read_constant(const char *at, const char *type, const char *name, int64_t most, int64_t *value) {
  char words[120];
  snprintf(words, sizeof words, "constexpr %s %s = ", type, name);
  return read_number(behind(at, words), 1, most, value);
}

/* "KERNEL, kGrid, kThreads, 0, stream, …" */
static enum cb_status read_call(struct reader *reader, struct cb_image_launch *launch, const char *call) {
  char grid[32], threads_name[32];
  int64_t threads;
  const char *const grid_at = behind(call, ", "), *const threads_at = behind(grid_at, ", ");
  const char *const shared = behind(threads_at, ", ");
  if (!copy_to(launch->kernel, sizeof launch->kernel, call, ", ") || !copy_to(grid, sizeof grid, grid_at, ", ") ||
      !copy_to(threads_name, sizeof threads_name, threads_at, ", ") ||
      !read_constant(reader->host, "unsigned", grid, INT32_MAX, &launch->blocks) ||
      !read_constant(reader->text, "int", threads_name, 1024, &threads) ||
      !read_number(shared, 0, INT32_MAX, &launch->dynamic_shared))
    return lacks(reader, "how its kernels are launched");
  launch->threads = (int)threads;
  return CB_OK;
}

/* The regions whose arrays the call takes: ", matrix->REGION", but for carry slots. A region's arrays that an earlier
 * launch takes as well are noted twice, which costs nothing. */
static enum cb_status read_groups(struct reader *reader, struct cb_image_launch *launch, const char *call) {
  struct cb_image *image = &reader->file->image;
  const char *const end = call + strcspn(call, "\n");
  enum cb_status s = CB_OK;
  launch->first_group = image->groups_count;
  for (const char *at = call; !s && (at = behind(at, ", matrix->")) && at < end;) {
    char region[40];
    const size_t length = strcspn(at, ",)");
    if (length >= sizeof region || !strncmp(at, "carry_", 6)) continue;
    snprintf(region, sizeof region, "%.*s", (int)length, at);
    image->groups = cb_arena_grow(&image->arena, image->groups, image->groups_count, sizeof *image->groups);
    if (!image->groups || launch->groups == CB_IMAGE_GROUPS) return lacks(reader, "few enough regions");
    s = read_region(reader, region, &image->groups[image->groups_count]);
    image->groups_count++;
    launch->groups++;
  }
  return s;
}

static enum cb_status read_launches(struct reader *reader) {
  struct cb_image *image = &reader->file->image;
  enum cb_status s = CB_OK;
  for (const char *call = reader->host; !s && (call = behind(call, "error = launch("));) {
    image->launches = cb_arena_grow(&image->arena, image->launches, image->launches_count, sizeof *image->launches);
    if (!image->launches) return cb_fail_memory(reader->diag, "a kernel's launches", 0);
    struct cb_image_launch *launch = &image->launches[image->launches_count++];
    *launch = (struct cb_image_launch){0};
    s = read_call(reader, launch, call);
    if (!s) s = read_groups(reader, launch, call);
  }
  if (!s && image->rows && !image->launches_count) return lacks(reader, "which kernels it launches");
  return s;
}

/* ---- the data */

static enum cb_status find_data(struct reader *reader, const unsigned char **data, size_t *length) {
  struct cb_kernel_file *file = reader->file;
  char sidecar[CB_SIDECAR_PATH];
  enum cb_status s = cb_evidence_embedded(&file->own_data, length, reader->host, reader->diag);
  *data = file->own_data;
  if (s || *data) return s;
  cb_sidecar_of(reader->path, sidecar);
  if (!*sidecar) {
    cb_sidecar_name(reader->path, sidecar);
    return cb_fail(reader->diag, CB_ERR_IO, "the data of '%s' do not stand in it, and cannot be read from '%s'",
                   reader->path, sidecar);
  }
  s = cb_file_map(&file->mapped_data, sidecar, reader->diag);
  *data = (const unsigned char *)file->mapped_data.bytes;
  *length = file->mapped_data.length;
  return s;
}

/* As the text's own function NAME_check does it. */
static enum cb_status check_data(const struct reader *reader, const unsigned char *data, size_t length) {
  enum { WORDS = CB_BLOB_HEADER / 8, CHECKSUM_AT = 40 };
  const char *const id = behind(reader->host, "constexpr uint64_t kId[2] = {");
  uint64_t header[WORDS];
  const char *wrong = NULL;
  if (!id) return lacks(reader, "which data are its own");
  if (length < sizeof header || memcmp(data, "CBGENDAT", 8)) wrong = "are no data of a kernel of cbgen's";
  else memcpy(header, data, sizeof header);
  if (!wrong && (header[1] & UINT32_MAX) != CB_BLOB_VERSION)
    wrong = "have another version of the format: generate both anew";
  if (!wrong && (header[2] != strtoull(id, NULL, 16) || header[3] != strtoull(behind(id, ", "), NULL, 16)))
    wrong = "belong to another kernel: generate both anew";
  if (!wrong && (header[4] != length || (uint64_t)reader->arrays_end > length || length % 32)) wrong = "are cut short";
  if (!wrong && cb_hash_sealed(data, length, CHECKSUM_AT) != header[5])
    wrong = "are damaged: their checksum does not match";
  return wrong ? cb_fail(reader->diag, CB_ERR_FORMAT, "the data of '%s' %s", reader->path, wrong) : CB_OK;
}

static enum cb_status read_data(struct reader *reader) {
  struct cb_kernel_file *file = reader->file;
  const unsigned char *data = NULL;
  size_t length = 0;
  enum cb_status s = find_data(reader, &data, &length);
  if (!s) s = check_data(reader, data, length);
  if (s) return s;
  for (int i = 0; i < file->image.arrays_count; i++)
    file->image.arrays[i].contents = data + file->image.arrays[i].offset;
  const size_t bytes = 2 * (size_t)file->image.rows * sizeof(double);
  if (length - (size_t)reader->arrays_end < bytes || (!bytes && length == (size_t)reader->arrays_end)) return CB_OK;
  file->numbers = cb_alloc(bytes + 1, 1);
  if (!file->numbers) return cb_fail_memory(reader->diag, "what a self-test expects", bytes);
  memcpy(file->numbers, data + reader->arrays_end, bytes);
  file->expected = file->numbers;
  return CB_OK;
}

/* ---- the whole */

static enum cb_status read_text(struct cb_kernel_file *file, const char *path, struct cb_diag *diag) {
  struct cb_mapping mapping;
  const enum cb_status s = cb_file_map(&mapping, path, diag);
  if (s) return s;
  const int has_zero = mapping.length && memchr(mapping.bytes, 0, mapping.length) != NULL;
  cb_text_add_bytes(&file->text, mapping.bytes, mapping.length);
  cb_file_unmap(&mapping);
  if (has_zero) return cb_fail(diag, CB_ERR_FORMAT, "'%s' is no text: it holds a NUL", path);
  return file->text.failed ? cb_fail_memory(diag, path, mapping.length) : CB_OK;
}

enum cb_status cb_kernel_file_read(struct cb_kernel_file *file, const char *path, struct cb_diag *diag) {
  *file = (struct cb_kernel_file){0};
  enum cb_status s = read_text(file, path, diag);
  struct reader reader = {.file = file, .path = path, .text = cb_text_string(&file->text), .diag = diag};
  reader.host = strstr(reader.text, "\n#ifndef __CUDACC_RTC__\n");
  if (!s) s = read_head(&reader);
  if (!s && !reader.host) s = lacks(&reader, "how it is launched");
  if (!s) s = read_sizes(&reader);
  if (!s) s = read_carries(&reader);
  if (!s) s = read_launches(&reader);
  if (!s) s = read_data(&reader);
  file->image.stored_bytes = file->stored_bytes;
  return s;
}

void cb_kernel_file_release(struct cb_kernel_file *file) {
  cb_image_release(&file->image);
  cb_text_release(&file->text);
  cb_free(file->own_data);
  cb_free(file->numbers);
  cb_file_unmap(&file->mapped_data);
  *file = (struct cb_kernel_file){0};
}
