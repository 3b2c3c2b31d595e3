// SPDX-License-Identifier: Apache-2.0
/* Numbers of a matrix as its caller has it: its diagonal, for preconditioners (cbgen_diagonal, cbgen_block_diagonal),
 * and scales for linear programs (cbgen_lp_scales). */
#include "runtime/api/compile.h"

#include "base/memory.h"
#include "base/real.h"
#include "codegen/program/program.h"
#include "runtime/operator/matrix_parts.h"

#include <math.h>
#include <string.h>

/* Entries of one place are summed in the order given. */
static void gather(const struct cb_view *view, enum cb_type type, void *diagonal) {
  const int64_t least = view->rows < view->cols ? view->rows : view->cols;
  const enum cb_type part = cb_type_of_part(type);
  const int parts = cb_type_parts(type);
  for (int64_t row = 0; row < least; row++) {
    double sums[2] = {0};
    const int64_t end = cb_view_row(view, row + 1);
    for (int64_t k = cb_view_row(view, row); k < end; k++)
      for (int i = 0; i < parts && cb_view_col(view, k) == row; i++) sums[i] += cb_view_part(view, k, i);
    for (int i = 0; i < parts; i++) cb_real_set(diagonal, part, parts * row + i, cb_real_round(sums[i], part));
  }
}

/* ---- blocks */

/* A complex block is one of real numbers, of twice as many rows: a number a + b i is (a, -b; b, a), and so is its
 * inverse. */
enum { MOST_ROWS = 2 * CB_MOST_BLOCK };

/* block[r * size + c] of `rows` by `rows` becomes its inverse (Gauss and Jordan, with row pivots); 0: it is singular.
 * */
static int invert(double *block, int rows, int size) {
  double inverse[MOST_ROWS * MOST_ROWS] = {0};
  for (int i = 0; i < rows; i++) inverse[i * size + i] = 1;
  for (int column = 0; column < rows; column++) {
    int pivot = column;
    for (int row = column + 1; row < rows; row++)
      if (fabs(block[row * size + column]) > fabs(block[pivot * size + column])) pivot = row;
    const double divisor = block[pivot * size + column];
    if (divisor == 0 || !cb_real_is_finite(divisor)) return 0;
    for (int i = 0; i < rows; i++) {
      const double a = block[pivot * size + i], b = inverse[pivot * size + i];
      block[pivot * size + i] = block[column * size + i];
      inverse[pivot * size + i] = inverse[column * size + i];
      block[column * size + i] = a / divisor;
      inverse[column * size + i] = b / divisor;
    }
    for (int row = 0; row < rows; row++) {
      const double factor = row == column ? 0 : block[row * size + column];
      for (int i = 0; i < rows && factor != 0; i++) {
        block[row * size + i] -= factor * block[column * size + i];
        inverse[row * size + i] -= factor * inverse[column * size + i];
      }
    }
  }
  for (int i = 0; i < size * rows; i++) {
    if (!cb_real_is_finite(inverse[i])) return 0;
    block[i] = inverse[i];
  }
  return 1;
}

/* Adds entry k of the matrix where its number begins. */
static void add_entry(const struct cb_view *view, int64_t k, int parts, int size, double *place) {
  place[0] += cb_view_part(view, k, 0);
  if (parts == 1) return;
  const double imaginary = cb_view_part(view, k, 1);
  place[1] -= imaginary;
  place[size] += imaginary;
  place[size + 1] = place[0];
}

/* The matrix's entries of rows and columns from `first` on, in rows of `size` real numbers. */
static void gather_block(const struct cb_view *view, int64_t first, int rows, int parts, int size, double *block) {
  memset(block, 0, (size_t)(size * size) * sizeof *block);
  for (int row = 0; row < rows; row++) {
    const int64_t end = cb_view_row(view, first + row + 1);
    for (int64_t k = cb_view_row(view, first + row); k < end; k++) {
      const int64_t column = cb_view_col(view, k) - first;
      if (column >= 0 && column < rows) add_entry(view, k, parts, size, &block[parts * (row * size + column)]);
    }
  }
}

/* Of a block that has no inverse the diagonal's numbers have, but for zeros. */
static void invert_diagonal(double *block, int rows, int parts, int size) {
  for (int row = 0; row < parts * rows; row += parts)
    for (int column = 0; column < parts * rows; column += parts) {
      double *place = &block[row * size + column];
      const double re = place[0], im = parts > 1 ? place[size] : 0, square = re * re + im * im;
      const int is_alone = row == column;
      place[0] = !is_alone ? 0 : re == 0 && im == 0 ? 1 : im == 0 ? 1 / re : re / square;
      if (parts > 1) place[size] = is_alone && im != 0 ? -im / square : 0;
    }
}

static void gather_blocks(const struct cb_view *view, enum cb_type type, int size, void *inverses) {
  const int64_t n = view->rows;
  const enum cb_type part = cb_type_of_part(type);
  const int parts = cb_type_parts(type);
#pragma omp parallel for schedule(static)
  for (int64_t first = 0; first < n; first += size) {
    double block[MOST_ROWS * MOST_ROWS], inverse[MOST_ROWS * MOST_ROWS];
    const int rows = (int)(n - first < size ? n - first : size), wide = parts * size;
    gather_block(view, first, rows, parts, wide, block);
    memcpy(inverse, block, (size_t)(wide * wide) * sizeof *block);
    if (!invert(inverse, parts * rows, wide)) {
      memcpy(inverse, block, (size_t)(wide * wide) * sizeof *block);
      invert_diagonal(inverse, rows, parts, wide);
    }
    for (int row = 0; row < rows; row++)
      for (int i = 0; i < size; i++)
        for (int k = 0; k < parts; k++) {
          const double entry = i >= rows ? 0 : inverse[(parts * row + k) * wide + parts * i];
          cb_real_set(inverses, part, parts * (i * n + first + row) + k, cb_real_round(entry, part));
        }
  }
}

/* ---- scales */

/* Of each row and column the largest entry, or the sum, of sizes with the scales so far. */
static void measure(const struct cb_view *view, const double *scales, int sums, double *sizes) {
  const int64_t rows = view->rows;
  memset(sizes, 0, (size_t)(rows + view->cols) * sizeof *sizes);
  for (int64_t row = 0; row < rows; row++) {
    const int64_t end = cb_view_row(view, row + 1);
    for (int64_t k = cb_view_row(view, row); k < end; k++) {
      const int64_t places[2] = {row, rows + cb_view_col(view, k)};
      const double size = fabs(cb_view_value(view, k)) * scales[places[0]] * scales[places[1]];
      for (int i = 0; i < 2; i++)
        sizes[places[i]] = sums ? sizes[places[i]] + size : size > sizes[places[i]] ? size : sizes[places[i]];
    }
  }
}

/* Those of rows, and behind them those of columns. What has no entries, or none that is a number, stays as it is. */
static void find_scales(const struct cb_view *view, double *scales, double *sizes) {
  enum { RUIZ = 10 };
  const int64_t count = view->rows + view->cols;
  for (int64_t i = 0; i < count; i++) scales[i] = 1;
  for (int pass = 0; pass <= RUIZ; pass++) {
    measure(view, scales, pass == RUIZ, sizes);
    for (int64_t i = 0; i < count; i++)
      if (sizes[i] > 0 && cb_real_is_finite(sizes[i])) scales[i] /= sqrt(sizes[i]);
  }
}

/* As numbers of the type, in place of the doubles. */
static void convert(double *numbers, int64_t count, enum cb_type type) {
  for (int64_t i = 0; i < count; i++) cb_real_set(numbers, type, i, cb_real_round(numbers[i], type));
}

/* ---- the calls */

/* With the session's context current. */
static enum cb_status deliver(const struct cb_session *session, const void *numbers, size_t bytes, void *to,
                              struct cb_diag *diag) {
  return bytes ? cb_device_copy_in(session->device, (cb_device_ptr)(uintptr_t)to, numbers, bytes, "the diagonal", diag)
               : CB_OK;
}

/* size 1: the diagonal itself; else the inverses of its blocks. */
static enum cb_status take_diagonal(struct cb_request *request, int size, void *const *to, struct cb_diag *diag) {
  const struct cb_view *view = &request->host;
  const struct cb_types types = cb_precision_types((enum cb_precision)request->options.type);
  const enum cb_type vector = types.vector, type = vector == CB_F64 || cb_type_is_complex(vector) ? vector : CB_F32;
  int canonical;
  enum cb_status s = cb_request_host(request, diag);
  if (!s) s = cb_view_check(view, &canonical, diag);
  if (s) return s;
  if (size > 1 && view->rows != view->cols)
    return cb_fail(diag, CB_ERR_ARGUMENT, "a matrix of %lld rows and %lld columns has no blocks along its diagonal",
                   (long long)view->rows, (long long)view->cols);
  const int64_t count = size * (view->rows < view->cols ? view->rows : view->cols);
  const size_t bytes = (size_t)count * cb_type_size(type);
  void *numbers = cb_alloc((size_t)count + 1, cb_type_size(type));
  if (!numbers) return cb_fail_memory(diag, "a diagonal", bytes);
  if (size > 1) gather_blocks(view, type, size, numbers);
  else gather(view, type, numbers);
  s = cb_device_enter(request->session->device, diag);
  if (!s) {
    s = deliver(request->session, numbers, bytes, to[0], diag);
    cb_device_leave(request->session->device);
  }
  cb_free(numbers);
  return s;
}

static enum cb_status deliver_scales(const struct cb_session *session, const struct cb_view *view, enum cb_type type,
                                     double *scales, void *const *to, struct cb_diag *diag) {
  const size_t size = cb_type_size(type);
  convert(scales, view->rows, type);
  convert(scales + view->rows, view->cols, type);
  enum cb_status s = cb_device_enter(session->device, diag);
  if (s) return s;
  s = deliver(session, scales, (size_t)view->rows * size, to[0], diag);
  if (!s) s = deliver(session, scales + view->rows, (size_t)view->cols * size, to[1], diag);
  cb_device_leave(session->device);
  return s;
}

static enum cb_status take_scales(struct cb_request *request, int unused, void *const *to, struct cb_diag *diag) {
  const struct cb_view *view = &request->host;
  const struct cb_types types = cb_precision_types((enum cb_precision)request->options.type);
  int canonical;
  (void)unused;
  if (request->view.is_complex)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "scales are those of real matrices: 'type' is %s",
                   cb_precision_names[request->options.type]);
  enum cb_status s = cb_request_host(request, diag);
  if (!s) s = cb_view_check(view, &canonical, diag);
  if (s) return s;
  const size_t count = (size_t)(view->rows + view->cols);
  double *scales = cb_alloc(count + 1, sizeof *scales), *sizes = cb_alloc(count + 1, sizeof *sizes);
  if (!scales || !sizes) s = cb_fail_memory(diag, "scales", count * sizeof *scales);
  if (!s) {
    find_scales(view, scales, sizes);
    s = deliver_scales(request->session, view, types.vector == CB_F64 ? CB_F64 : CB_F32, scales, to, diag);
  }
  cb_free(scales);
  cb_free(sizes);
  return s;
}

/* What is asked of a matrix: `size` and `to` go to `of`. */
static enum cb_status take(cbgen_context *context, const cbgen_csr *matrix,
                           enum cb_status (*of)(struct cb_request *, int, void *const *, struct cb_diag *), int size,
                           void *const *to) {
  const cbgen_request fixed = {.struct_size = sizeof fixed, .values = CBGEN_VALUES_FIXED}; /* values come to the host */
  struct cb_diag *diag = &context->diag;
  struct cb_request *request = cb_calloc(1, sizeof *request);
  if (!request) return cb_fail_memory(diag, "a matrix's request", sizeof *request);
  request->context = context;
  enum cb_status s = cb_view_take_csr(&request->view, matrix, diag);
  if (!s) s = cb_request_take(request, &fixed, diag);
  if (!s) s = of(request, size, to, diag);
  cb_request_release(request);
  cb_free(request);
  return s;
}

static cbgen_status diagonal_of(cbgen_context *context, const cbgen_csr *matrix, int size, void *to) {
  if (!to) return (cbgen_status)cb_fail(&context->diag, CB_ERR_ARGUMENT, "no place for the diagonal was given");
  return (cbgen_status)take(context, matrix, take_diagonal, size, &to);
}

cbgen_status cbgen_diagonal(cbgen_context *context, const cbgen_csr *matrix, void *diagonal) {
  CB_STANDARD_NUMERICS;
  return context ? diagonal_of(context, matrix, 1, diagonal) : CBGEN_ERROR_ARGUMENT;
}

cbgen_status cbgen_block_diagonal(cbgen_context *context, const cbgen_csr *matrix, int size, void *inverses) {
  CB_STANDARD_NUMERICS;
  if (!context) return CBGEN_ERROR_ARGUMENT;
  if (size < 2 || size > CB_MOST_BLOCK)
    return (cbgen_status)cb_fail(&context->diag, CB_ERR_ARGUMENT, "blocks of %d rows: there are those of 2 to %d", size,
                                 CB_MOST_BLOCK);
  return diagonal_of(context, matrix, size, inverses);
}

cbgen_status cbgen_lp_scales(cbgen_context *context, const cbgen_csr *matrix, void *row_scales, void *column_scales) {
  CB_STANDARD_NUMERICS;
  if (!context) return CBGEN_ERROR_ARGUMENT;
  if (!row_scales || !column_scales)
    return (cbgen_status)cb_fail(&context->diag, CB_ERR_ARGUMENT, "no place for the scales was given");
  return (cbgen_status)take(context, matrix, take_scales, 0, (void *[]){row_scales, column_scales});
}

cbgen_status cbgen_residual(cbgen_operator *op, const void *b, const void *x, void *r, void *stream) {
  const cbgen_product product = {.struct_size = sizeof product,
                                 .alpha = -1,
                                 .beta = 1,
                                 .x = x,
                                 .y = (void *)(uintptr_t)b,
                                 .z = r,
                                 .stream = stream};
  struct cb_diag diag = {0};
  if (!op) return CBGEN_ERROR_ARGUMENT;
  if (r) return cbgen_multiply(op, &product);
  return cb_operator_report(op, cb_fail(&diag, CB_ERR_ARGUMENT, "no place for the residual was given"), &diag);
}
