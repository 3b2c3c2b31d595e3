/* SPDX-License-Identifier: Apache-2.0 */
/* A baseline of `cbgen bench` as a plug-in: a shared library with the four functions below, in C or C++, built against
 * this header alone.
 *
 *   cbgen bench matrix.mtx --baseline=./mine.so --baseline=./other.so
 *
 * Its product is checked row by row and timed in turn with the kernel and cuSPARSE, by the same protocol. What cannot
 * be opened, has another version, refuses a matrix or fails is reported with its message, and everything else goes on.
 * A plug-in is code inside the process: one that crashes ends it, and a CUDA error that it leaves is everybody's.
 *
 * All calls come from one thread, with the GPU's primary context current: the CUDA runtime and the driver API may both
 * be used. */
#ifndef CBGEN_BASELINE_H
#define CBGEN_BASELINE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CBGEN_BASELINE_VERSION 1 /* of this header: changes with everything that a plug-in must know */

struct CUstream_st; /* cudaStream_t and CUstream are pointers to it */

/* A matrix in CSR: sorted rows, no entry twice, indices from 0. Pointers are device addresses; the arrays live until
 * `destroy`, and must not be written to. */
typedef struct cbgen_baseline_matrix {
  size_t struct_size; /* bytes of this struct, as the caller knows it */
  int64_t rows, cols, nnz;
  const int32_t *row_ptr, *col_idx; /* rows + 1; nnz */
  const void *values;               /* nnz numbers of value_bytes each */
  int32_t value_bytes;              /* 8: double, 4: float; x, y and sums are of the same type */
  struct CUstream_st *stream;       /* that products will be asked for on */
} cbgen_baseline_matrix;

/* The name in tables, up to 23 characters, such as "csr5". *version is set to CBGEN_BASELINE_VERSION. */
const char *cbgen_baseline_name(int *version);

/* Converts the matrix and prepares its products; *state is handed to the others. 0, or the reason why not in `message`
 * (of `size` bytes), and then `destroy` is not called. Both are timed until the device is done. */
int cbgen_baseline_prepare(void **state, const cbgen_baseline_matrix *matrix, char *message, size_t size);

/* Enqueues y = α A x + β y on the stream; x and y are device addresses, and no other than these. β = 0 must not read y.
 * It must not wait for the device. 0, or a number that is reported. */
int cbgen_baseline_multiply(void *state, double alpha, const void *x, double beta, void *y, struct CUstream_st *stream);

void cbgen_baseline_destroy(void *state);

#ifdef __cplusplus
}
#endif

#endif
