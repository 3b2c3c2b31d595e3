// SPDX-License-Identifier: Apache-2.0
/* Matrices and what their products must give: see sample.h. */
#include "bench/sample.h"

#include <math.h>
#include <string.h>

enum { ROUNDINGS = 4, NO_MEMORY_STATUS = 4 };

static void *need(size_t count, size_t size) {
  void *memory = calloc(count + 1, size);
  if (memory) return memory;
  fprintf(stderr, "no memory for %zu elements\n", count);
  _Exit(NO_MEMORY_STATUS);
}

/* splitmix64 */
uint64_t draw(uint64_t *seed) {
  uint64_t bits = *seed += UINT64_C(0x9e3779b97f4a7c15);
  bits = (bits ^ bits >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  bits = (bits ^ bits >> 27) * UINT64_C(0x94d049bb133111eb);
  return bits ^ bits >> 31;
}

static double draw_unit(uint64_t *seed) { /* [0, 1) */
  return (double)(draw(seed) >> 11) * 0x1p-53;
}

/* ---- types */

size_t size_of_type(cbgen_type type) {
  return type == CBGEN_F64 ? 8 : type == CBGEN_F32 ? 4 : 2;
}

/* To `digits` binary digits, none below 2^least. */
static double round_to_digits(double value, int digits, int least) {
  int exponent;
  if (value == 0 || !isfinite(value)) return value;
  frexp(value, &exponent);
  const int last = exponent - digits > least ? exponent - digits : least;
  return ldexp(nearbyint(ldexp(value, -last)), last);
}

double round_to_type(double value, cbgen_type type) {
  if (type == CBGEN_F32) return (float)value;
  if (type == CBGEN_F16) return round_to_digits(value, 11, -24);
  if (type == CBGEN_BF16) return round_to_digits(value, 8, -133);
  return value;
}

/* A finite number that the type holds. */
static uint16_t bits_of_small(double value, int fraction, int bias) {
  const unsigned sign = signbit(value) ? 0x8000u : 0;
  int exponent;
  const double size = fabs(value), mantissa = frexp(size, &exponent); /* [1/2, 1) */
  exponent += bias - 1;
  if (size == 0) return (uint16_t)sign;
  if (exponent <= 0) return (uint16_t)(sign | (unsigned)ldexp(size, fraction + bias - 1));
  return (uint16_t)(sign | (unsigned)exponent << fraction | (unsigned)ldexp(2 * mantissa - 1, fraction));
}

void store(void *array, cbgen_type type, int64_t i, double value) {
  if (type == CBGEN_F64) ((double *)array)[i] = value;
  if (type == CBGEN_F32) ((float *)array)[i] = (float)value;
  if (type == CBGEN_F16) ((uint16_t *)array)[i] = bits_of_small(round_to_type(value, type), 10, 15);
  if (type == CBGEN_BF16) ((uint16_t *)array)[i] = bits_of_small(round_to_type(value, type), 7, 127);
}

/* What bits_of_small made, or infinity and NaN. */
static double number_of_small(uint16_t bits, int fraction, int bias) {
  const int exponent = (bits & 0x7fff) >> fraction, last = bits & ((1 << fraction) - 1);
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == 0x7fff >> fraction) return last ? NAN : sign * INFINITY;
  if (!exponent) return sign * ldexp(last, 1 - bias - fraction);
  return sign * ldexp(last + (1 << fraction), exponent - bias - fraction);
}

static double fetch(const void *array, cbgen_type type, int64_t i) { /* of a vector */
  if (type == CBGEN_F16) return number_of_small(((const uint16_t *)array)[i], 10, 15);
  if (type == CBGEN_BF16) return number_of_small(((const uint16_t *)array)[i], 7, 127);
  return type == CBGEN_F64 ? ((const double *)array)[i] : (double)((const float *)array)[i];
}

/* ---- patterns: the columns of one row, unordered and perhaps with repetitions, into `columns`; how many */

static int64_t draw_columns(const struct specification *s, int64_t row, int32_t *columns, uint64_t *seed) {
  int64_t wanted = (int64_t)(draw(seed) % (uint64_t)(2 * s->per_row + 1)), count = 0;
  if (s->shape == SHAPE_EMPTY || !s->cols || (s->shape == SHAPE_EMPTY_ROWS && row % 7)) return 0;
  if (s->shape == SHAPE_LONG_ROWS && row % 500 == 3) wanted = s->cols / 3 + 1;
  if (s->shape == SHAPE_POWER_LAW) wanted = 1 + (int64_t)(s->per_row * 0.5 / (draw_unit(seed) + 0.02));
  if (s->shape == SHAPE_DENSE) wanted = s->cols;
  if (wanted > s->cols) wanted = s->cols;
  for (; count < wanted; count++) {
    const double place = draw_unit(seed);
    columns[count] = (int32_t)((double)s->cols * (s->shape == SHAPE_POWER_LAW ? place * place * place : place));
    if (s->shape == SHAPE_DENSE) columns[count] = (int32_t)count;
  }
  return count;
}

static int64_t diagonal_columns(const struct specification *s, int64_t row, int32_t *columns) {
  int64_t count = 0;
  for (int d = 0; d < s->per_row; d++) {
    const int64_t distance = (d + 1) / 2 * (1 + d / 3 * 7), column = row + (d % 2 ? -distance : distance);
    if (column >= 0 && column < s->cols) columns[count++] = (int32_t)column;
  }
  return count;
}

/* The same for the three rows of a block row, so from the block row's own seed. */
static int64_t block_columns(const struct specification *s, int64_t row, int32_t *columns) {
  uint64_t seed = s->seed * 1000003 + (uint64_t)(row / 3);
  const int blocks = 1 + (int)(draw(&seed) % (uint64_t)(s->per_row / 3 + 1));
  int64_t count = 0;
  for (int b = 0; b < blocks && s->cols >= 3; b++) {
    const int64_t first = (int64_t)(draw(&seed) % (uint64_t)(s->cols / 3)) * 3;
    for (int c = 0; c < 3; c++) columns[count++] = (int32_t)(first + c);
  }
  return count;
}

static int by_number(const void *a, const void *b) {
  const int32_t left = *(const int32_t *)a, right = *(const int32_t *)b;
  return (left > right) - (left < right);
}

/* Sorted, each column once. */
static int64_t row_columns(const struct specification *s, int64_t row, int32_t *columns, uint64_t *seed) {
  int64_t count = s->shape == SHAPE_DIAGONALS ? diagonal_columns(s, row, columns)
                  : s->shape == SHAPE_BLOCKS  ? block_columns(s, row, columns)
                                              : draw_columns(s, row, columns, seed),
          kept = 0;
  qsort(columns, (size_t)count, sizeof *columns, by_number);
  for (int64_t i = 0; i < count; i++)
    if (!kept || columns[kept - 1] != columns[i]) columns[kept++] = columns[i];
  return kept;
}

static int64_t most_of_a_row(const struct specification *s) {
  return 2 * s->cols + 64 * (int64_t)(s->per_row + 8);
}

/* Appends the row's entries, in parts and out of order as wished. */
static void append_row(struct sample *sample, const int32_t *columns, int64_t count, int64_t *room, uint64_t *seed) {
  const int64_t first = sample->entries;
  if (*room < first + 3 * count) {
    *room = 2 * (first + 3 * count);
    sample->columns = realloc(sample->columns, (size_t)*room * sizeof *columns);
    if (!sample->columns) _Exit(NO_MEMORY_STATUS);
  }
  for (int64_t i = 0; i < count; i++) {
    const int parts = sample->specification.duplicates && draw(seed) % 4 == 0 ? 2 + (int)(draw(seed) % 2) : 1;
    for (int p = 0; p < parts; p++) sample->columns[sample->entries++] = columns[i];
  }
  for (int64_t i = sample->entries - 1; sample->specification.unsorted && i > first; i--) {
    const int64_t other = first + (int64_t)(draw(seed) % (uint64_t)(i - first + 1));
    const int32_t kept = sample->columns[i];
    sample->columns[i] = sample->columns[other];
    sample->columns[other] = kept;
  }
}

static void make_pattern(struct sample *sample) {
  const struct specification *s = &sample->specification;
  uint64_t seed = s->seed;
  int64_t room = 16;
  int32_t *columns = need((size_t)most_of_a_row(s), sizeof *columns);
  sample->starts = need((size_t)s->rows + 1, sizeof *sample->starts);
  sample->columns = need((size_t)room, sizeof *sample->columns);
  for (int64_t row = 0; row < s->rows; row++) {
    const int64_t count = row_columns(s, row, columns, &seed);
    append_row(sample, columns, count, &room, &seed);
    sample->starts[row + 1] = sample->entries;
  }
  free(columns);
}

/* ---- handing over */

static void put_integer(void *array, int bits, int64_t i, int64_t value) {
  if (bits == 64)
    ((int64_t *)array)[i] = value;
  else
    ((int32_t *)array)[i] = (int32_t)value;
}

void renew_sample(struct sample *sample, uint64_t seed) {
  const cbgen_type type = sample->form.type;
  const int plain = sample->specification.plain_values || sample->specification.duplicates;
  for (int64_t k = 0; k < sample->entries; k++) {
    const double value = 2 * draw_unit(&seed) - 1, sixteenths = ceil(fabs(value) * 32) / 16;
    sample->values[k] = plain ? copysign(sixteenths, value) : round_to_type(value, type);
    if (sample->form.no_values) sample->values[k] = 1;
    store(sample->arrays[2], type, k, sample->values[k]);
  }
  if (sample->there[2] && sample->entries)
    put_bytes(sample->there[2], sample->arrays[2], (size_t)sample->entries * size_of_type(type));
}

static void to_device(struct sample *sample) {
  const size_t bytes[3] = {(size_t)(sample->rows + 1) * (size_t)sample->form.row_bits / 8,
                           (size_t)sample->entries * (size_t)sample->form.col_bits / 8,
                           (size_t)sample->entries * size_of_type(sample->form.type)};
  for (int i = 0; i < 3; i++) {
    sample->there[i] = device_alloc(bytes[i]);
    if (bytes[i]) put_bytes(sample->there[i], sample->arrays[i], bytes[i]);
  }
  sample->view.row_ptr = pointer_to(sample->there[0]);
  sample->view.col_idx = pointer_to(sample->there[1]);
  if (!sample->form.no_values) sample->view.values = pointer_to(sample->there[2]);
  sample->view.memory = CBGEN_DEVICE;
}

static void make_view(struct sample *sample) {
  const struct form *form = &sample->form;
  for (int64_t i = 0; i <= sample->rows; i++)
    put_integer(sample->arrays[0], form->row_bits, i, sample->starts[i] + form->base);
  for (int64_t k = 0; k < sample->entries; k++)
    put_integer(sample->arrays[1], form->col_bits, k, sample->columns[k] + form->base);
  sample->view = (cbgen_csr){.struct_size = sizeof(cbgen_csr),
                             .rows = sample->rows,
                             .cols = sample->cols,
                             .nnz = sample->entries,
                             .row_ptr = sample->arrays[0],
                             .col_idx = sample->arrays[1],
                             .values = form->no_values ? NULL : sample->arrays[2],
                             .row_ptr_bits = form->row_bits,
                             .col_idx_bits = form->col_bits,
                             .index_base = form->base,
                             .value_type = form->type};
}

struct sample new_sample(struct specification specification, struct form form) {
  struct sample sample = {
      .rows = specification.rows, .cols = specification.cols, .specification = specification, .form = form};
  if (!sample.form.row_bits) sample.form.row_bits = 32;
  if (!sample.form.col_bits) sample.form.col_bits = 32;
  make_pattern(&sample);
  sample.values = need((size_t)sample.entries, sizeof *sample.values);
  sample.arrays[0] = need((size_t)sample.rows + 1, 8);
  sample.arrays[1] = need((size_t)sample.entries, 8);
  sample.arrays[2] = need((size_t)sample.entries, 8);
  make_view(&sample);
  renew_sample(&sample, specification.seed + 1);
  if (form.memory == CBGEN_DEVICE) to_device(&sample);
  return sample;
}

void free_sample(struct sample *sample) {
  for (int i = 0; i < 3; i++) {
    free(sample->arrays[i]);
    device_free(sample->there[i]);
  }
  free(sample->starts);
  free(sample->columns);
  free(sample->values);
  *sample = (struct sample){0};
}

/* ---- vectors */

static void fill(double *numbers, address_t there, int64_t count, cbgen_type type, uint64_t seed) {
  const size_t size = size_of_type(type);
  unsigned char *bytes = need((size_t)count, size);
  for (int64_t i = 0; i < count; i++) {
    numbers[i] = round_to_type(2 * draw_unit(&seed) - 1, type);
    store(bytes, type, i, numbers[i]);
  }
  if (count) put_bytes(there, bytes, (size_t)count * size);
  free(bytes);
}

void fill_vectors(struct vectors *vectors, uint64_t seed) {
  fill(vectors->x, vectors->x_there, vectors->cols, vectors->type, seed);
  fill(vectors->y, vectors->y_there, vectors->rows, vectors->type, seed + 77);
}

struct vectors new_vectors(const cbgen_operator *op, uint64_t seed) {
  cbgen_info info = {.struct_size = sizeof info};
  cbgen_operator_info(op, &info);
  struct vectors vectors = {.type = info.vector_type, .rows = info.rows, .cols = info.cols};
  vectors.x = need((size_t)info.cols, sizeof *vectors.x);
  vectors.y = need((size_t)info.rows, sizeof *vectors.y);
  vectors.x_there = device_alloc((size_t)info.cols * size_of_type(info.vector_type));
  vectors.y_there = device_alloc((size_t)info.rows * size_of_type(info.vector_type));
  fill_vectors(&vectors, seed);
  return vectors;
}

void spoil_y(const struct vectors *vectors) {
  const size_t bytes = (size_t)vectors->rows * size_of_type(vectors->type);
  if (bytes) REQUIRE_CUDA(cuda.fill_async(vectors->y_there, 0xff, bytes, NULL));
  REQUIRE_CUDA(cuda.synchronize());
}

void free_vectors(struct vectors *vectors) {
  free(vectors->x);
  free(vectors->y);
  device_free(vectors->x_there);
  device_free(vectors->y_there);
  *vectors = (struct vectors){0};
}

cbgen_product product_of(const struct vectors *vectors, double alpha, double beta, void *stream) {
  return (cbgen_product){.struct_size = sizeof(cbgen_product), .alpha = alpha, .beta = beta,
                         .x = pointer_to(vectors->x_there), .y = pointer_to(vectors->y_there), .stream = stream};
}

unsigned char *take_y(const struct vectors *vectors, size_t *bytes) {
  const size_t length = (size_t)vectors->rows * size_of_type(vectors->type);
  unsigned char *y = need(length, 1);
  if (length) REQUIRE_CUDA(cuda.take(y, vectors->y_there, length));
  if (bytes) *bytes = length;
  return y;
}

/* ---- what a product must give */

struct expected {
  long double *sum, *sizes; /* A x and |A||x| */
  int64_t *counts;
};

static struct expected expect(const struct sample *sample, int transposed, cbgen_type stored, const double *x) {
  const size_t length = (size_t)(transposed ? sample->cols : sample->rows);
  struct expected expected = {need(length, sizeof(long double)), need(length, sizeof(long double)),
                              need(length, sizeof(int64_t))};
  for (int64_t row = 0; row < sample->rows; row++)
    for (int64_t k = sample->starts[row]; k < sample->starts[row + 1]; k++) {
      const int64_t to = transposed ? sample->columns[k] : row, from = transposed ? row : sample->columns[k];
      const long double part = (long double)round_to_type(sample->values[k], stored) * x[from];
      expected.sum[to] += part;
      expected.sizes[to] += fabsl(part);
      expected.counts[to]++;
    }
  return expected;
}

static int is_right(long double got, long double y, long double sizes, int64_t count, double alpha,
                    const cbgen_info *info) {
  static const struct {
    long double roundoff, smallest;
  } formats[] = {[CBGEN_F64] = {0x1p-53L, 0x1p-1074L}, [CBGEN_F32] = {0x1p-24L, 0x1p-149L},
                 [CBGEN_F16] = {0x1p-11L, 0x1p-24L}, [CBGEN_BF16] = {0x1p-8L, 0x1p-133L}};
  const cbgen_type sum = info->sum_type, vector = info->vector_type;
  const long double k = (long double)(count + ROUNDINGS) * formats[sum].roundoff;
  const long double bound =
      k / (1 - k) * sizes + ((long double)count * fabsl((long double)alpha) + 2) * formats[sum].smallest;
  const int rounds = size_of_type(vector) < size_of_type(sum); /* y once more */
  const long double more = rounds ? formats[vector].roundoff * (fabsl(y) + bound) + formats[vector].smallest : 0;
  return fabsl(got - y) <= bound + more; /* NaN is wrong */
}

int64_t count_wrong_rows(const cbgen_operator *op, const struct sample *sample, int transposed,
                         const struct vectors *vectors, double alpha, double beta, char message[200]) {
  cbgen_info info = {.struct_size = sizeof info};
  cbgen_operator_info(op, &info);
  struct expected expected = expect(sample, transposed, info.matrix_type, vectors->x);
  unsigned char *const y = take_y(vectors, NULL);
  int64_t wrong = 0;
  *message = 0;
  for (int64_t i = 0; i < vectors->rows; i++) {
    const long double before = beta == 0 ? 0 : (long double)beta * vectors->y[i];
    const long double right = alpha * expected.sum[i] + before;
    const long double sizes = fabsl((long double)alpha) * expected.sizes[i] + fabsl(before);
    const double got = fetch(y, vectors->type, i);
    if (is_right(got, right, sizes, expected.counts[i], alpha, &info)) continue;
    if (!wrong++)
      snprintf(message, 200, "row %lld is %.17g, not %.17Lg (%lld entries)", (long long)i, got, right,
               (long long)expected.counts[i]);
  }
  free(y);
  free(expected.sum);
  free(expected.sizes);
  free(expected.counts);
  return wrong;
}
