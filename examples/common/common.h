/* SPDX-License-Identifier: Apache-2.0 */
/* What the examples share, nearly none of it about cbgen: a matrix to work on, vectors on the device by
 * cuBLAS, cuSPARSE as the baseline, clocks and tables. When something fails, all of it ends the program with a
 * message and exit status 2. */
#ifndef EXAMPLES_COMMON_H
#define EXAMPLES_COMMON_H

#include <cbgen.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cusparse.h>
#include <stddef.h>
#include <stdint.h>

void fail(const char *format, ...);
#define CUDA(call) check_cuda(call, #call)
#define BLAS(call) check_blas(call, #call)
#define SPARSE(call) check_sparse(call, #call)
void check_cuda(cudaError_t error, const char *call);
void check_blas(cublasStatus_t status, const char *call);
void check_sparse(cusparseStatus_t status, const char *call);

/* ---- matrices in host memory (matrix.c, grids.c) */

struct matrix {
  char name[64];
  int64_t rows, cols, nnz;
  int32_t *row_ptr, *col_idx; /* rows sorted, indices from 0 */
  double *values;
};

/* `spec` is a Matrix Market file (coordinate; real, integer or pattern), or SHAPE:N:
 *   elasticity:N   N^3 nodes of a clamped block, 3 unknowns each: symmetric positive definite
 *   diffusion:N    N^3 cells that conduct unevenly, closed walls: symmetric, rows sum to 0
 *   convection:N   the same with a wind and open walls: not symmetric
 *   web:S          directed graph of 2^S nodes, many of them without links out, and up to 16 links per node
 */
void open_matrix(struct matrix *matrix, const char *spec);
void open_square_matrix(struct matrix *matrix, const char *spec);
void free_matrix(struct matrix *matrix);

/* Room for rows + 1, nnz and nnz entries. */
void allocate_matrix(struct matrix *matrix, int64_t rows, int64_t cols, int64_t nnz);
void make_elasticity(struct matrix *matrix, int n);
void make_cells(struct matrix *matrix, int n, double wind); /* diffusion without wind, convection with it */

double *host_vector(int64_t n); /* zeros; for free() */

/* The values of the identity in the pattern of a square matrix, whose diagonal must be full; for free(). */
double *identity_in(const struct matrix *matrix);

/* y = A x on the host. */
void host_multiply(const struct matrix *matrix, const double *x, double *y);

/* |b - A x| / |b| in 2-norms, on the host, for vectors on the device. */
double host_residual(const struct matrix *matrix, const double *device_b, const double *device_x);

/* The matrix as cbgen takes it. */
cbgen_csr csr_of(const struct matrix *matrix);

/* ---- device memory (report.c) and vectors of one length (vectors.c) */

double *copy_to_device(const double *host, int64_t count);            /* for cudaFree() */
void *on_device(size_t bytes);                                        /* zeros; for cudaFree() */
void copy_to_host(double *host, const double *device, int64_t count); /* waits for the device */

enum { MOST_VECTORS = 16 };

struct space {
  cublasHandle_t blas;
  cudaStream_t stream; /* of all that follows, and for the products */
  int n, count;
  double *vectors[MOST_VECTORS]; /* freed with the space */
};

void open_space(struct space *space, int64_t n);
void close_space(struct space *space);
double *new_vector(struct space *space, double value);
double *vector_from(struct space *space, const double *host, int64_t count); /* of any length */

double dot(const struct space *space, const double *x, const double *y); /* these three wait for the stream */
double norm(const struct space *space, const double *x);
double sum_of_sizes(const struct space *space, const double *x);
void add(const struct space *space, double alpha, const double *x, double *y); /* y += alpha x */
void scale(const struct space *space, double alpha, double *x);                /* x *= alpha */
void clear(const struct space *space, double *x);                              /* x = 0 */
void copy(const struct space *space, const double *x, double *y);              /* y = x */
void times(const struct space *space, const double *x, const double *y,
           double *z); /* z = x y, each by each */

/* ---- contenders: something that multiplies, and what it took (report.c) */

/* y = A x on the stream; alpha and beta, where there are any, are the user's. */
typedef void (*apply_function)(void *user, const double *x, double *y, cudaStream_t stream);

struct contender {
  const char *name;
  apply_function apply;
  void *user;
  double setup;   /* seconds from arrays in host memory to the end of the first product: all that it takes */
  double product; /* seconds */
  double loop;    /* seconds, of the example's loop */
  long iterations;
};

double now(void); /* seconds, wall clock */

/* Ends the set-up that began at `start` with the first product, then times products: the median of 5 batches
 * of 20 between two events. y is overwritten. */
void end_setup(struct contender *contender, double start, const double *x, double *y, cudaStream_t stream);

/* Two events on a stream. */
struct stopwatch {
  cudaEvent_t begin, end;
};
struct stopwatch start_watch(cudaStream_t stream);
double stop_watch(struct stopwatch watch, cudaStream_t stream); /* seconds; waits */

/* The table in Markdown, and after how many iterations the longer set-up of the second is repaid against the
 * first. */
void print_table(const char *example, const struct matrix *matrix, const struct contender *contenders,
                 int count);
void print_break_even(const struct contender *first, const struct contender *second);
void print_setup(const cbgen_operator *op); /* where cbgen's set-up went */

/* "check: WHAT: 1.2e-11, at most 1e-9: passed"; 1 when it is (NaN is not). */
int print_check(const char *what, double value, double most);

/* ---- cuSPARSE (baseline.c): CSR by the better of ALG1 and ALG2, both preprocessed */

struct baseline {
  cusparseHandle_t handle;
  cusparseSpMatDescr_t matrix;
  cusparseDnVecDescr_t x, y;
  cusparseSpMVAlg_t algorithm;
  void *row_ptr, *col_idx, *buffer;
  double *values; /* nnz, in device memory, in the matrix's order: may be changed between products */
  double alpha, beta;
};

/* Sets `baseline` up for the matrix, or its transpose, and measures it: x and y are on the device, y is
 * overwritten. The contender that is returned has the times of the chosen algorithm alone. alpha is
 * 1, beta 0. */
struct contender create_baseline(struct baseline *baseline, const struct matrix *matrix, cusparseOperation_t operation,
                                 double *x, double *y, cudaStream_t stream);
void free_baseline(struct baseline *baseline);
void baseline_apply(void *baseline, const double *x, double *y, cudaStream_t stream);

#endif
