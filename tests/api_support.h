// SPDX-License-Identifier: Apache-2.0
/* For tests of the run-time interface on the fake CUDA: matrices in every form that a caller may have them
 * in, and products checked against the oracle. */
#ifndef CBGEN_TESTS_API_SUPPORT_H
#define CBGEN_TESTS_API_SUPPORT_H

#include "base/real.h"
#include "tests/support.h"

#include "cbgen.h"
#include "runtime/verify/oracle.h"
#include "tests/fake_app.h"

#include <dirent.h>
#include <math.h>

static inline int open_fake(void **state) {
  (void)state;
  setenv("CBGEN_CACHE_DIR", "", 1);
  return open_app();
}

/* What is kept in the application's contexts is no leak. */
static inline void trim_all(void) {
  for (int device = 0; device < fake->devices; device++) {
    app_set_current(device);
    cbgen_trim();
  }
  app_set_current(-1);
}

static inline int check_fake(void **state) {
  (void)state;
  trim_all();
  if (*fake->misuse) print_error("%s\n", fake->misuse);
  if (*fake->trap) print_error("%s\n", fake->trap);
  return !fake_is_clean(fake);
}

#define must(context, call)                                                                                  \
  do {                                                                                                       \
    const cbgen_status status_of_call = (call);                                                              \
    if (status_of_call)                                                                                      \
      fail_msg("%s: %s (%s)", #call, cbgen_message(context), cbgen_status_name(status_of_call));             \
  } while (0)
#define must_operator(op, call)                                                                              \
  do {                                                                                                       \
    const cbgen_status status_of_call = (call);                                                              \
    if (status_of_call)                                                                                      \
      fail_msg("%s: %s (%s)", #call, cbgen_operator_message(op), cbgen_status_name(status_of_call));         \
  } while (0)

/* "name=value name=value" */
static inline void set_all(cbgen_context *context, const char *options) {
  char copy[512], *state = NULL;
  snprintf(copy, sizeof copy, "%s", options);
  for (char *word = strtok_r(copy, " ", &state); word; word = strtok_r(NULL, " ", &state)) {
    char *value = strchr(word, '=');
    *value++ = 0;
    must(context, cbgen_set(context, word, value));
  }
}

/* With these options; "": none. */
static inline cbgen_context *new_context(const char *options) {
  cbgen_context *context;
  assert_int_equal(cbgen_context_create(&context), CBGEN_OK);
  set_all(context, options);
  return context;
}

static inline cbgen_info info_of(const cbgen_operator *op) {
  cbgen_info info = {.struct_size = sizeof info};
  assert_int_equal(cbgen_operator_info(op, &info), CBGEN_OK);
  return info;
}

/* How many entries a cache has in this directory. */
static inline int entries_in(const char *directory) {
  int count = 0;
  DIR *files = opendir(directory);
  for (const struct dirent *file; files && (file = readdir(files));) count += strstr(file->d_name, ".entry") != NULL;
  if (files) closedir(files);
  return count;
}

/* ---- matrices as a caller has them */

/* How to hand a matrix over. */
struct form {
  int row_bits, col_bits, base;
  cbgen_type value_type;
  int shuffled;   /* rows unsorted */
  int duplicates; /* some entries in two or three parts */
  int on_device;
  int no_values;
};

/* The same matrix twice: as its owner sees it, and in canonical form for the oracle. */
struct sample {
  cbgen_csr view;
  struct form form;
  int64_t entries;
  int32_t *rows_of; /* of each entry, for the oracle; columns likewise */
  int32_t *columns;
  double *values;                  /* of each entry, as the type holds them; of complex ones both parts */
  void *row_ptr, *col_idx, *given; /* in the caller's form, on the host */
  uint64_t there[3];
  struct cb_csr csr; /* what they sum up to */
};

static inline double rounded(double value, cbgen_type type) {
  return cb_real_round(value, (enum cb_type)type);
}

static inline void put_integer(void *array, int bits, int64_t i, int64_t value) {
  if (bits == 64)
    ((int64_t *)array)[i] = value;
  else
    ((int32_t *)array)[i] = (int32_t)value;
}

/* Values of the entries, in the caller's type. */
static inline void set_values(struct sample *sample, uint64_t seed) {
  const cbgen_type type = sample->form.value_type;
  const int64_t numbers = sample->entries * cb_type_parts((enum cb_type)type);
  for (int64_t k = 0; k < numbers; k++) {
    sample->values[k] = sample->form.no_values ? 1 : rounded((double)(draw(&seed) >> 12) * 0x1p-51 - 1, type);
    cb_real_set(sample->given, cb_type_of_part((enum cb_type)type), k, sample->values[k]);
  }
  if (sample->there[2] && sample->entries)
    assert_true(
        app_put(sample->there[2], sample->given, (size_t)sample->entries * cb_type_size((enum cb_type)type)));
}

/* The canonical matrix of the entries' present values. */
static inline void sum_up(struct sample *sample) {
  struct cb_diag diag = {0};
  const size_t count = (size_t)sample->entries;
  struct cb_coo coo = {.rows = sample->view.rows, .cols = sample->view.cols, .count = sample->entries};
  coo.row_idx = cb_alloc(count, 4);
  coo.col_idx = cb_alloc(count, 4);
  coo.values = cb_alloc(count, 8);
  assert_true(coo.row_idx && coo.col_idx && coo.values);
  memcpy(coo.row_idx, sample->rows_of, count * 4);
  memcpy(coo.col_idx, sample->columns, count * 4);
  const int parts = cb_type_parts((enum cb_type)sample->form.value_type);
  if (parts > 1) assert_non_null(coo.imaginary = cb_alloc(count, 8));
  for (size_t k = 0; k < count; k++) {
    coo.values[k] = sample->values[(size_t)parts * k];
    if (parts > 1) coo.imaginary[k] = sample->values[2 * k + 1];
  }
  cb_csr_release(&sample->csr);
  assert_ok(cb_csr_from_coo(&sample->csr, &coo, &diag));
}

/* Puts a row's entries out of order. */
static inline void shuffle_row(int32_t *columns, int64_t count, uint64_t *seed) {
  for (int64_t i = count - 1; i > 0; i--) {
    const int64_t j = (int64_t)(draw(seed) % (uint64_t)(i + 1));
    const int32_t kept = columns[i];
    columns[i] = columns[j];
    columns[j] = kept;
  }
}

static inline void lay_out(struct sample *sample, const struct cb_csr *csr, int64_t *starts, uint64_t seed) {
  int64_t at = 0;
  for (int64_t row = 0; row < csr->rows; row++) {
    starts[row] = at;
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++) {
      const int copies = sample->form.duplicates && draw(&seed) % 4 == 0 ? 2 + (int)(draw(&seed) % 2) : 1;
      for (int i = 0; i < copies; i++) {
        sample->rows_of[at] = (int32_t)row;
        sample->columns[at++] = csr->col_idx[k];
      }
    }
    if (sample->form.shuffled) shuffle_row(sample->columns + starts[row], at - starts[row], &seed);
  }
  starts[csr->rows] = at;
  sample->entries = at;
}

static inline void to_device(struct sample *sample, int device) {
  const size_t bytes[3] = {(size_t)(sample->view.rows + 1) * (size_t)sample->form.row_bits / 8,
                           (size_t)sample->entries * (size_t)sample->form.col_bits / 8,
                           (size_t)sample->entries * cb_type_size((enum cb_type)sample->form.value_type)};
  const void *arrays[3] = {sample->row_ptr, sample->col_idx, sample->given};
  for (int i = 0; i < 3; i++) {
    sample->there[i] = app_alloc(device, i == 2 ? (size_t)sample->entries * 16 + 16 : bytes[i] + 8);
    assert_true(sample->there[i]);
    if (bytes[i]) assert_true(app_put(sample->there[i], arrays[i], bytes[i]));
  }
  sample->view.row_ptr = (void *)(uintptr_t)sample->there[0];
  sample->view.col_idx = (void *)(uintptr_t)sample->there[1];
  if (!sample->form.no_values) sample->view.values = (void *)(uintptr_t)sample->there[2];
  sample->view.memory = CBGEN_DEVICE;
}

static inline struct sample sample_of_matrix(struct cb_csr csr, struct form form, uint64_t seed) {
  struct sample sample = {.form = form};
  const size_t most = 3 * (size_t)csr.nnz + 1, rows = (size_t)csr.rows + 1;
  int64_t *starts = calloc(rows, sizeof *starts);
  if (!sample.form.row_bits) sample.form.row_bits = 32;
  if (!sample.form.col_bits) sample.form.col_bits = 32;
  sample.rows_of = calloc(most, 4);
  sample.columns = calloc(most, 4);
  sample.values = calloc(most, 16);
  sample.row_ptr = calloc(rows, 8);
  sample.col_idx = calloc(most, 8);
  sample.given = calloc(most, 16);
  assert_true(starts && sample.rows_of && sample.columns && sample.values && sample.row_ptr &&
              sample.col_idx && sample.given);
  lay_out(&sample, &csr, starts, seed);
  for (size_t i = 0; i < rows; i++)
    put_integer(sample.row_ptr, sample.form.row_bits, (int64_t)i, starts[i] + form.base);
  for (int64_t k = 0; k < sample.entries; k++)
    put_integer(sample.col_idx, sample.form.col_bits, k, sample.columns[k] + form.base);
  sample.view = (cbgen_csr){.struct_size = sizeof(cbgen_csr),
                            .rows = csr.rows,
                            .cols = csr.cols,
                            .nnz = sample.entries,
                            .row_ptr = sample.row_ptr,
                            .col_idx = sample.col_idx,
                            .values = form.no_values ? NULL : sample.given,
                            .row_ptr_bits = form.row_bits,
                            .col_idx_bits = form.col_bits,
                            .index_base = form.base,
                            .value_type = form.value_type};
  set_values(&sample, seed + 1);
  sum_up(&sample);
  if (form.on_device) to_device(&sample, 0);
  cb_csr_release(&csr);
  free(starts);
  return sample;
}

static inline struct sample sample_of(const char *specification, struct form form) {
  return sample_of_matrix(matrix_of(specification), form, 1);
}

static inline void sample_release(struct sample *sample) {
  for (int i = 0; i < 3; i++)
    if (sample->there[i]) app_free(sample->there[i]);
  free(sample->rows_of);
  free(sample->columns);
  free(sample->values);
  free(sample->row_ptr);
  free(sample->col_idx);
  free(sample->given);
  cb_csr_release(&sample->csr);
  *sample = (struct sample){0};
}

/* The matrix turned round, for the oracle. */
static inline struct cb_csr transposed(const struct cb_csr *csr) {
  struct cb_diag diag = {0};
  struct cb_csr turned = {0};
  const size_t count = (size_t)csr->nnz;
  struct cb_coo coo = {.rows = csr->cols, .cols = csr->rows, .count = csr->nnz};
  coo.row_idx = cb_alloc(count, 4);
  coo.col_idx = cb_alloc(count, 4);
  coo.values = cb_alloc(count, 8);
  if (csr->is_complex) assert_non_null(coo.imaginary = cb_alloc(count, 8));
  const int parts = csr->is_complex ? 2 : 1;
  for (int64_t row = 0; row < csr->rows; row++)
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++) {
      coo.row_idx[k] = csr->col_idx[k];
      coo.col_idx[k] = (int32_t)row;
      coo.values[k] = csr->values[parts * k];
      if (parts > 1) coo.imaginary[k] = csr->values[2 * k + 1];
    }
  assert_ok(cb_csr_from_coo(&turned, &coo, &diag));
  return turned;
}

/* ---- products */

/* x and y on one GPU, with the host's copies. */
struct vectors {
  enum cb_type type;
  int64_t rows, cols;
  double *x, *y; /* y: before the product; of complex types both parts of each */
  uint64_t x_there, y_there;
};

static inline void fill_vector(uint64_t there, double *numbers, int64_t entries, enum cb_type of_entry,
                               uint64_t seed) {
  const enum cb_type type = cb_type_of_part(of_entry);
  const int64_t count = cb_type_parts(of_entry) * entries;
  const size_t size = cb_type_size(type);
  char *bytes = calloc((size_t)count + 1, size);
  assert_non_null(bytes);
  for (int64_t i = 0; i < count; i++) {
    numbers[i] = cb_real_round((double)(draw(&seed) >> 12) * 0x1p-51 - 1, type);
    cb_real_set(bytes, type, i, numbers[i]);
  }
  if (count) assert_true(app_put(there, bytes, (size_t)count * size));
  free(bytes);
}

static inline void fill_vectors(struct vectors *vectors, uint64_t seed) {
  fill_vector(vectors->x_there, vectors->x, vectors->cols, vectors->type, seed);
  fill_vector(vectors->y_there, vectors->y, vectors->rows, vectors->type, seed + 77);
}

static inline struct vectors vectors_for(const cbgen_operator *op, int device) {
  cbgen_info info = {.struct_size = sizeof info};
  assert_int_equal(cbgen_operator_info(op, &info), CBGEN_OK);
  struct vectors vectors = {.type = (enum cb_type)info.vector_type, .rows = info.rows, .cols = info.cols};
  const size_t size = cb_type_size(vectors.type);
  vectors.x = calloc(2 * (size_t)info.cols + 1, sizeof *vectors.x);
  vectors.y = calloc(2 * (size_t)info.rows + 1, sizeof *vectors.y);
  vectors.x_there = app_alloc(device, (size_t)info.cols * size + 1);
  vectors.y_there = app_alloc(device, (size_t)info.rows * size + 1);
  assert_true(vectors.x && vectors.y && vectors.x_there && vectors.y_there);
  fill_vectors(&vectors, 5);
  return vectors;
}

static inline void vectors_release(struct vectors *vectors) {
  free(vectors->x);
  free(vectors->y);
  app_free(vectors->x_there);
  app_free(vectors->y_there);
}

static inline cbgen_product product_with(const struct vectors *vectors, double alpha, double beta,
                                         void *stream) {
  return (cbgen_product){.struct_size = sizeof(cbgen_product), .alpha = alpha, .beta = beta,
                         .x = (void *)(uintptr_t)vectors->x_there, .y = (void *)(uintptr_t)vectors->y_there,
                         .stream = stream};
}

/* As the plan's line says it. */
static inline enum cb_semiring semiring_of(const cbgen_operator *op) {
  static const char words[] = "(semiring ";
  const char *at = strstr(cbgen_operator_plan(op), words);
  for (int s = 0; at && s < CB_SEMIRINGS; s++)
    if (!strncmp(at + strlen(words), cb_semiring_names[s], strlen(cb_semiring_names[s]))) return (enum cb_semiring)s;
  return CB_PLUS_TIMES;
}

/* The values of a matrix, real or not, as pairs; NULL: no memory. */
static inline double *pairs_of(const struct cb_csr *csr) {
  double *pairs = calloc((size_t)csr->nnz + 1, 2 * sizeof *pairs);
  for (int64_t k = 0; pairs && k < csr->nnz; k++) {
    pairs[2 * k] = csr->values[csr->is_complex ? 2 * k : k];
    if (csr->is_complex) pairs[2 * k + 1] = csr->values[2 * k + 1];
  }
  return pairs;
}

/* Whether y on the GPU is α A x + β y of the host's copies, in the operator's types. */
static inline void check_scaled(const cbgen_operator *op, const struct cb_csr *csr, const struct vectors *vectors,
                                double alpha, double beta, double alpha_imag, double beta_imag) {
  struct cb_diag diag = {0};
  struct cb_expected expected = {0};
  struct cb_comparison comparison;
  cbgen_info info = {.struct_size = sizeof info};
  assert_int_equal(cbgen_operator_info(op, &info), CBGEN_OK);
  double *pairs = cb_type_is_complex((enum cb_type)info.matrix_type) ? pairs_of(csr) : NULL;
  const struct cb_product product = {.types = {(enum cb_type)info.matrix_type, (enum cb_type)info.vector_type,
                                               (enum cb_type)info.sum_type, semiring_of(op)},
                                     .conjugated = strstr(cbgen_operator_plan(op), "(conjugate on)") != NULL,
                                     .values = pairs,
                                     .x = vectors->x,
                                     .y = beta != 0 || beta_imag != 0 ? vectors->y : NULL,
                                     .alpha = alpha,
                                     .beta = beta,
                                     .alpha_imag = alpha_imag,
                                     .beta_imag = beta_imag};
  const size_t bytes = (size_t)vectors->rows * cb_type_size(vectors->type);
  void *y = calloc(bytes + 1, 1);
  assert_non_null(y);
  assert_int_equal(info.rows, csr->rows);
  assert_int_equal(info.cols, csr->cols);
  assert_int_equal(info.nnz, csr->nnz);
  if (bytes) assert_true(app_take(y, vectors->y_there, bytes));
  assert_ok(cb_oracle_multiply(&expected, csr, &product, &diag));
  cb_oracle_compare(&comparison, &expected, y, vectors->type);
  if (comparison.wrong)
    fail_msg("%lld of %lld rows are wrong, first %lld: %g instead of %Lg, give or take %g",
             (long long)comparison.wrong, (long long)comparison.rows, (long long)comparison.first_wrong,
             comparison.got, comparison.expected, comparison.tolerance);
  cb_expected_release(&expected);
  free(pairs);
  free(y);
}

static inline void check_result(const cbgen_operator *op, const struct cb_csr *csr,
                                const struct vectors *vectors, double alpha, double beta) {
  check_scaled(op, csr, vectors, alpha, beta, 0, 0);
}

/* A product with fresh vectors on GPU 0's default stream, checked; of complex ones with complex scalars. */
static inline void check_product(cbgen_operator *op, const struct cb_csr *csr) {
  struct vectors vectors = vectors_for(op, 0);
  cbgen_product product = product_with(&vectors, 1.25, -0.5, NULL);
  if (cb_type_is_complex(vectors.type)) {
    product.alpha_imag = 0.75;
    product.beta_imag = 2;
  }
  must_operator(op, cbgen_multiply(op, &product));
  check_scaled(op, csr, &vectors, 1.25, -0.5, product.alpha_imag, product.beta_imag);
  vectors_release(&vectors);
}

#endif
