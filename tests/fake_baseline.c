// SPDX-License-Identifier: Apache-2.0
/* A baseline plug-in for tests, on the memory of the fake driver. FAKE_BASELINE says how it behaves:
 *
 *   wrong     the first row of every product is wrong        refuse    it prepares no matrix
 *   fail      it prepares, and does not multiply             version   it was built for another version
 *
 * It writes "prepared" and "destroyed" lines to the file FAKE_BASELINE_LOG, if there is one. */
#include "tests/fake_driver.h"

#include "cbgen_baseline.h"

#include <stdio.h>

struct state {
  cbgen_baseline_matrix matrix;
};

static int behaves(const char *how) {
  const char *asked = getenv("FAKE_BASELINE");
  return asked && !strcmp(asked, how);
}

static void note(const char *what) {
  const char *path = getenv("FAKE_BASELINE_LOG");
  FILE *file = path ? fopen(path, "a") : NULL;
  if (!file) return;
  fprintf(file, "%s\n", what);
  fclose(file);
}

static double number(const void *numbers, int bytes, int64_t i) {
  return bytes == 4 ? (double)((const float *)numbers)[i] : ((const double *)numbers)[i];
}

static void set_number(void *numbers, int bytes, int64_t i, double value) {
  if (bytes == 4)
    ((float *)numbers)[i] = (float)value;
  else
    ((double *)numbers)[i] = value;
}

/* For the host. */
static void *at(const void *device, int64_t bytes) {
  return fake_bytes((uint64_t)(uintptr_t)device, (size_t)bytes);
}

const char *cbgen_baseline_name(int *version) {
  *version = CBGEN_BASELINE_VERSION + behaves("version");
  return "fake-baseline";
}

int cbgen_baseline_prepare(void **state, const cbgen_baseline_matrix *matrix, char *message, size_t size) {
  struct state *own;
  if (matrix->struct_size < sizeof *matrix) return 2;
  if (behaves("refuse")) {
    snprintf(message, size, "it likes no matrix of %lld rows", (long long)matrix->rows);
    return 1;
  }
  own = malloc(sizeof *own);
  if (!own) return 3;
  own->matrix = *matrix;
  *state = own;
  note("prepared");
  return 0;
}

int cbgen_baseline_multiply(void *state, double alpha, const void *x, double beta, void *y,
                            struct CUstream_st *stream) {
  const cbgen_baseline_matrix *A = &((struct state *)state)->matrix;
  const int bytes = A->value_bytes;
  const int32_t *row_ptr = at(A->row_ptr, 4 * (A->rows + 1)), *col_idx = at(A->col_idx, 4 * A->nnz);
  const void *values = at(A->values, bytes * A->nnz), *from = at(x, bytes * A->cols);
  void *to = at(y, bytes * A->rows);
  if (behaves("fail") || stream != A->stream || !row_ptr || !col_idx || !values || !from || !to) return 7;
  for (int64_t row = 0; row < A->rows; row++) {
    double sum = 0;
    for (int32_t k = row_ptr[row]; k < row_ptr[row + 1]; k++)
      sum += number(values, bytes, k) * number(from, bytes, col_idx[k]);
    if (behaves("wrong") && !row) sum += 1;
    set_number(to, bytes, row, alpha * sum + (beta != 0 ? beta * number(to, bytes, row) : 0));
  }
  return 0;
}

void cbgen_baseline_destroy(void *state) {
  note("destroyed");
  free(state);
}
