/* SPDX-License-Identifier: Apache-2.0 */
/* From a matrix in memory to kernel.cu and kernel.cbd through the C interface. It is C99 and C++ at once.
 *
 *   cc generate.c $(pkg-config --cflags --libs cbgen) -o generate && ./generate kernel
 *
 * or with CMake: see CMakeLists.txt beside this file. */
#include <cbgen.h>

#include <stdio.h>
#include <stdlib.h>

enum { N = 1000 };

/* -1 2 -1 on the diagonals: a rod that is held at both ends. */
static int64_t fill(int32_t *row_ptr, int32_t *col_idx, double *values) {
  int32_t k = 0;
  for (int32_t row = 0; row < N; row++) {
    row_ptr[row] = k;
    for (int32_t col = row - 1; col <= row + 1; col++) {
      if (col < 0 || col >= N) continue;
      col_idx[k] = col;
      values[k++] = col == row ? 2 : -1;
    }
  }
  row_ptr[N] = k;
  return k;
}

static int write_file(const char *stem, const char *suffix, const void *bytes, size_t length) {
  char path[256];
  snprintf(path, sizeof path, "%s%s", stem, suffix);
  FILE *file = fopen(path, "wb");
  if (!file) {
    perror(path);
    return 0;
  }
  const int written = fwrite(bytes, 1, length, file) == length;
  return !fclose(file) && written;
}

int main(int argc, char **argv) {
  static int32_t row_ptr[N + 1], col_idx[3 * N];
  static double values[3 * N];
  static cbgen_csr matrix; /* static: zero */
  cbgen_context *context = NULL;
  cbgen_kernel *kernel = NULL;
  int done = 0;

  matrix.struct_size = sizeof matrix;
  matrix.rows = matrix.cols = N;
  matrix.nnz = fill(row_ptr, col_idx, values);
  matrix.row_ptr_bits = 32;
  matrix.row_ptr = row_ptr;
  matrix.col_idx = col_idx;
  matrix.values = values;
  matrix.name = "rod";

  if (cbgen_context_create(&context)) {
    fprintf(stderr, "out of memory\n");
  } else if (cbgen_set(context, "type", "f64") || cbgen_generate(context, &matrix, &kernel)) {
    fprintf(stderr, "%s\n", cbgen_message(context));
  } else {
    const char *stem = argc > 1 ? argv[1] : "kernel";
    size_t source_bytes, data_bytes;
    const char *source = cbgen_kernel_source(kernel, &source_bytes);
    const void *data = cbgen_kernel_data(kernel, &data_bytes);
    printf("cbgen %s: %s\n", cbgen_version(), cbgen_kernel_plan(kernel));
    done = write_file(stem, ".cu", source, source_bytes) && write_file(stem, ".cbd", data, data_bytes);
  }
  cbgen_kernel_free(kernel);
  cbgen_context_destroy(context);
  return done ? EXIT_SUCCESS : EXIT_FAILURE;
}
