// SPDX-License-Identifier: Apache-2.0
/* The part of the CUDA run-time library, of cuBLAS and of cuSPARSE that examples/ use, on the memory and
 * streams of the fake driver (fake_driver.h): the examples are linked against it instead, so that they run
 * without a GPU.
 *
 * Work is done at once, or recorded while its stream is captured. Events show a clock of this file: it
 * advances by 5 µs for a launch of the driver, 20 µs for a product of cuSPARSE and 1 µs for anything else, so
 * that tests know what the examples must report. What CUDA would refuse is refused.
 *
 * At the end, what was left on the device and what the driver complains about goes to stderr.
 *
 *   FAKE_TOOLKIT_LIE=1       the first number of every array that is copied to the host is wrong
 *   FAKE_TOOLKIT_MEMORY=N    the allocation with this number fails
 */
#include "tests/fake_driver.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cusparse.h>
#include <math.h>
#include <stdio.h>

/* ---- the fake driver below */

static struct {
  uint64_t (*allocate)(int device, size_t bytes);
  void (*release)(uint64_t address);
  int (*put)(uint64_t to, const void *from, size_t bytes);
  int (*take)(void *to, uint64_t from, size_t bytes);
  void (*set_current)(int device);
  void *(*new_stream)(int device, unsigned flags);
  void (*end_stream)(void *stream);
  long (*get)(const char *member);
  unsigned (*begin_capture)(void *stream, unsigned mode);
  unsigned (*end_capture)(void *stream, void **graph);
  unsigned (*instantiate)(void **exec, void *graph, unsigned long long flags);
  unsigned (*launch)(void *exec, void *stream);
  unsigned (*end_graph)(void *graph);
  unsigned (*end_exec)(void *exec);
  const char *(*complaint)(void);
} driver;

static void find(void *place, const char *name) {
  void *const symbol = fake_symbol(name);
  if (!symbol) {
    fprintf(stderr, "CBGEN_FAKE_CUDA names no fake driver with '%s'\n", name);
    abort();
  }
  memcpy(place, &symbol, sizeof symbol);
}

static long arrays, streams; /* that are there */

static void look_back(void) {
  if (arrays || streams) fprintf(stderr, "left on the device: %ld arrays, %ld streams\n", arrays, streams);
  if (driver.get("blocks")) fprintf(stderr, "left by the library: %ld arrays\n", driver.get("blocks"));
  if (*driver.complaint()) fprintf(stderr, "the fake driver: %s\n", driver.complaint());
}

/* As the run-time library does: the first call makes the GPU's primary context current. */
static void open_driver(void) {
  if (driver.allocate) return;
  find(&driver.release, "fake_free");
  find(&driver.put, "fake_put");
  find(&driver.take, "fake_take");
  find(&driver.set_current, "fake_set_current");
  find(&driver.new_stream, "fake_stream");
  find(&driver.end_stream, "fake_stream_free");
  find(&driver.get, "fake_get");
  find(&driver.begin_capture, "cuStreamBeginCapture_v2");
  find(&driver.end_capture, "cuStreamEndCapture");
  find(&driver.instantiate, "cuGraphInstantiateWithFlags");
  find(&driver.launch, "cuGraphLaunch");
  find(&driver.end_graph, "cuGraphDestroy");
  find(&driver.end_exec, "cuGraphExecDestroy");
  find(&driver.complaint, "fake_complaint");
  find(&driver.allocate, "fake_alloc");
  driver.set_current(0);
  atexit(look_back);
}

static void *at(const void *device, size_t bytes) {
  void *const bytes_there = bytes ? fake_bytes((uint64_t)(uintptr_t)device, bytes) : NULL;
  if (bytes && !bytes_there) {
    fprintf(stderr, "an address outside of all blocks\n");
    abort();
  }
  return bytes_there;
}

static double *numbers(const void *device, int64_t count) {
  return at(device, (size_t)count * sizeof(double));
}

/* ---- work, and its recording. A graph is a list of this file's work and of the driver's graphs between. */

struct work {
  void (*run)(const struct work *work); /* NULL: `exec` */
  int64_t n;
  double alpha, beta;
  const void *from, *also;
  void *to;
  const struct cusparseSpMatDescr *matrix;
  int microseconds;
  void *exec;
  struct work *next;
};

static struct work *recorded, **record_end;
static void *captured; /* stream */
static double clock_of_work;

static double microseconds(void) {
  return clock_of_work + 5.0 * (double)driver.get("launches");
}

static void append(struct work work) {
  *record_end = malloc(sizeof work);
  if (!*record_end) abort();
  work.next = NULL;
  **record_end = work;
  record_end = &(*record_end)->next;
}

/* Moves what the driver has recorded until now into the list. */
static cudaError_t cut(void) {
  struct work work = {0};
  void *graph;
  if (driver.end_capture(captured, &graph)) return cudaErrorStreamCaptureInvalidated;
  if (driver.instantiate(&work.exec, graph, 0) || driver.end_graph(graph)) return cudaErrorUnknown;
  append(work);
  return cudaSuccess;
}

static int submit(struct work work, void *stream) {
  open_driver();
  if (!work.microseconds) work.microseconds = 1;
  if (captured && stream == captured) {
    if (cut()) return 1;
    append(work);
    return driver.begin_capture(captured, 1) != 0;
  }
  work.run(&work);
  clock_of_work += work.microseconds;
  return 0;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
  if (captured || driver.begin_capture(stream, mode)) return cudaErrorIllegalState;
  captured = stream;
  recorded = NULL;
  record_end = &recorded;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
  if (!captured || captured != stream) return cudaErrorIllegalState;
  const cudaError_t error = cut();
  captured = NULL;
  *graph = (cudaGraph_t)recorded;
  return error;
}

/* The graph keeps its list: one executable graph for each is all that is needed. */
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags) {
  *exec = (cudaGraphExec_t)graph;
  return flags ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  for (const struct work *work = (const struct work *)exec; work; work = work->next) {
    if (!work->run && driver.launch(work->exec, stream)) return cudaErrorLaunchFailure;
    if (work->run && submit(*work, stream)) return cudaErrorLaunchFailure;
  }
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  (void)exec;
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  for (struct work *work = (struct work *)graph, *next; work; work = next) {
    next = work->next;
    if (work->exec && driver.end_exec(work->exec)) return cudaErrorInvalidValue;
    free(work);
  }
  return cudaSuccess;
}

/* ---- the run-time library */

const char *cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : "a failure of the fake toolkit";
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device) {
  memset(properties, 0, sizeof *properties);
  snprintf(properties->name, sizeof properties->name, "Fake GPU %d", device);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void **memory, size_t bytes) {
  static long allocations;
  const char *fails = getenv("FAKE_TOOLKIT_MEMORY");
  open_driver();
  if (captured || !bytes) return cudaErrorInvalidValue;
  const uint64_t address = fails && ++allocations == atol(fails) ? 0 : driver.allocate(0, bytes);
  *memory = (void *)(uintptr_t)address;
  arrays += address != 0;
  return address ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void *memory) {
  if (captured) return cudaErrorStreamCaptureUnsupported;
  if (memory) driver.release((uint64_t)(uintptr_t)memory);
  arrays -= memory != NULL;
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
  int done = 0;
  if (captured) return cudaErrorStreamCaptureUnsupported;
  if (kind == cudaMemcpyHostToDevice) done = driver.put((uint64_t)(uintptr_t)to, from, bytes);
  if (kind == cudaMemcpyDeviceToHost) done = driver.take(to, (uint64_t)(uintptr_t)from, bytes);
  if (kind == cudaMemcpyDeviceToHost && getenv("FAKE_TOOLKIT_LIE")) *(double *)to += 0.01;
  return done || !bytes ? cudaSuccess : cudaErrorInvalidValue;
}

static void run_fill(const struct work *work) {
  if (work->n) memset(at(work->to, (size_t)work->n), (int)work->alpha, (size_t)work->n);
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream) {
  const struct work work = {.run = run_fill, .n = (int64_t)bytes, .alpha = value, .to = memory};
  return submit(work, stream) ? cudaErrorUnknown : cudaSuccess;
}

cudaError_t cudaMemset(void *memory, int value, size_t bytes) {
  return captured ? cudaErrorStreamCaptureImplicit : cudaMemsetAsync(memory, value, bytes, NULL);
}

cudaError_t cudaDeviceSynchronize(void) {
  return captured ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *stream) {
  open_driver();
  *stream = driver.new_stream(0, 0);
  streams++;
  return *stream ? cudaSuccess : cudaErrorUnknown;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  driver.end_stream(stream);
  streams--;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return captured && captured == stream ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event) {
  *event = calloc(1, sizeof(double));
  return *event ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  free(event);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (captured && captured == stream) return cudaErrorNotSupported;
  *(double *)(void *)event = microseconds();
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return event ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  *milliseconds = (float)(1e-3 * (*(double *)(void *)end - *(double *)(void *)begin));
  return cudaSuccess;
}

/* ---- cuBLAS: doubles, steps of 1, factors in host memory */

struct cublasContext {
  void *stream;
};

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
  open_driver();
  *handle = calloc(1, sizeof **handle);
  return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  free(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t put_on(cublasHandle_t handle, int fine, struct work work) {
  if (!fine || work.n < 0) return CUBLAS_STATUS_INVALID_VALUE;
  return submit(work, handle->stream) ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}

static void run_scale(const struct work *work) {
  double *const x = numbers(work->to, work->n);
  for (int64_t i = 0; i < work->n; i++) x[i] *= work->alpha;
}

cublasStatus_t cublasDscal_v2(cublasHandle_t handle, int n, const double *alpha, double *x, int step) {
  return put_on(handle, step == 1, (struct work){.run = run_scale, .n = n, .alpha = *alpha, .to = x});
}

static void run_add(const struct work *work) {
  const double *const x = numbers(work->from, work->n);
  double *const y = numbers(work->to, work->n);
  for (int64_t i = 0; i < work->n; i++) y[i] = work->alpha * x[i] + work->beta * (work->beta != 0 ? y[i] : 0);
}

cublasStatus_t cublasDaxpy_v2(cublasHandle_t handle, int n, const double *alpha, const double *x, int x_step,
                              double *y, int y_step) {
  return put_on(handle, x_step == 1 && y_step == 1,
                (struct work){.run = run_add, .n = n, .alpha = *alpha, .beta = 1, .from = x, .to = y});
}

cublasStatus_t cublasDcopy_v2(cublasHandle_t handle, int n, const double *x, int x_step, double *y,
                              int y_step) {
  return put_on(handle, x_step == 1 && y_step == 1,
                (struct work){.run = run_add, .n = n, .alpha = 1, .beta = 0, .from = x, .to = y});
}

static void run_times(const struct work *work) {
  const double *const x = numbers(work->from, work->n), *const y = numbers(work->also, work->n);
  double *const z = numbers(work->to, work->n);
  for (int64_t i = 0; i < work->n; i++) z[i] = x[i] * y[i];
}

cublasStatus_t cublasDdgmm(cublasHandle_t handle, cublasSideMode_t side, int rows, int cols, const double *A,
                           int lda, const double *x, int step, double *C, int ldc) {
  return put_on(handle, side == CUBLAS_SIDE_LEFT && cols == 1 && lda >= rows && ldc >= rows && step == 1,
                (struct work){.run = run_times, .n = rows, .from = A, .also = x, .to = C});
}

static void run_combine(const struct work *work) {
  const double *const x = numbers(work->from, work->n), *const y = numbers(work->also, work->n);
  double *const z = numbers(work->to, work->n);
  for (int64_t i = 0; i < work->n; i++) z[i] = work->alpha * x[i] + work->beta * y[i];
}

cublasStatus_t cublasDgeam(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int rows,
                           int cols, const double *alpha, const double *A, int lda, const double *beta,
                           const double *B, int ldb, double *C, int ldc) {
  return put_on(
      handle, !op_a && !op_b && cols == 1 && lda >= rows && ldb >= rows && ldc >= rows,
      (struct work){
          .run = run_combine, .n = rows, .alpha = *alpha, .beta = *beta, .from = A, .also = B, .to = C});
}

/* Results in host memory: they wait for the stream, which a capture forbids. */
static void run_dot(const struct work *work) {
  const double *const x = numbers(work->from, work->n), *const y = numbers(work->also, work->n);
  double sum = 0;
  for (int64_t i = 0; i < work->n; i++) sum += x[i] * y[i];
  *(double *)work->to = sum;
}

static void run_sum(const struct work *work) {
  const double *const x = numbers(work->from, work->n);
  double sum = 0;
  for (int64_t i = 0; i < work->n; i++) sum += fabs(x[i]);
  *(double *)work->to = sum;
}

cublasStatus_t cublasDdot_v2(cublasHandle_t handle, int n, const double *x, int x_step, const double *y,
                             int y_step, double *result) {
  return put_on(handle, x_step == 1 && y_step == 1 && !captured,
                (struct work){.run = run_dot, .n = n, .from = x, .also = y, .to = result});
}

cublasStatus_t cublasDnrm2_v2(cublasHandle_t handle, int n, const double *x, int step, double *result) {
  const cublasStatus_t status = cublasDdot_v2(handle, n, x, step, x, step, result);
  *result = sqrt(*result);
  return status;
}

cublasStatus_t cublasDasum_v2(cublasHandle_t handle, int n, const double *x, int step, double *result) {
  return put_on(handle, step == 1 && !captured,
                (struct work){.run = run_sum, .n = n, .from = x, .to = result});
}

/* ---- cuSPARSE: CSR, 32-bit indices from 0, doubles */

struct cusparseContext {
  void *stream;
};
struct cusparseSpMatDescr {
  int64_t rows, cols, nnz;
  const void *row_ptr, *col_idx, *values, *buffer; /* buffer: that preprocess was given */
  cusparseSpMVAlg_t algorithm;
};
struct cusparseDnVecDescr {
  int64_t size;
  void *values;
};

const char *cusparseGetErrorString(cusparseStatus_t status) {
  (void)status;
  return "a failure of the fake toolkit";
}

cusparseStatus_t cusparseGetProperty(libraryPropertyType type, int *value) {
  *value = type == MAJOR_VERSION ? 12 : type == MINOR_VERSION ? 6 : 3;
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseCreate(cusparseHandle_t *handle) {
  open_driver();
  *handle = calloc(1, sizeof **handle);
  return *handle ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_ALLOC_FAILED;
}

cusparseStatus_t cusparseDestroy(cusparseHandle_t handle) {
  free(handle);
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseSetStream(cusparseHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseCreateCsr(cusparseSpMatDescr_t *matrix, int64_t rows, int64_t cols, int64_t nnz,
                                   void *row_ptr, void *col_idx, void *values, cusparseIndexType_t row_type,
                                   cusparseIndexType_t col_type, cusparseIndexBase_t base,
                                   cudaDataType type) {
  if (row_type != CUSPARSE_INDEX_32I || col_type != CUSPARSE_INDEX_32I || base || type != CUDA_R_64F)
    return CUSPARSE_STATUS_NOT_SUPPORTED;
  *matrix = malloc(sizeof **matrix);
  if (!*matrix) return CUSPARSE_STATUS_ALLOC_FAILED;
  **matrix =
      (struct cusparseSpMatDescr){rows, cols, nnz, row_ptr, col_idx, values, NULL, CUSPARSE_SPMV_ALG_DEFAULT};
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseDestroySpMat(cusparseConstSpMatDescr_t matrix) {
  free((void *)(uintptr_t)matrix);
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseCreateDnVec(cusparseDnVecDescr_t *vector, int64_t size, void *values,
                                     cudaDataType type) {
  *vector = malloc(sizeof **vector);
  if (!*vector) return CUSPARSE_STATUS_ALLOC_FAILED;
  **vector = (struct cusparseDnVecDescr){size, values};
  return type == CUDA_R_64F ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_NOT_SUPPORTED;
}

cusparseStatus_t cusparseDestroyDnVec(cusparseConstDnVecDescr_t vector) {
  free((void *)(uintptr_t)vector);
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseDnVecSetValues(cusparseDnVecDescr_t vector, void *values) {
  vector->values = values;
  return CUSPARSE_STATUS_SUCCESS;
}

/* What all calls of one product must agree on. */
static cusparseStatus_t look(cusparseOperation_t operation, cusparseConstSpMatDescr_t matrix,
                             cusparseConstDnVecDescr_t x, cusparseDnVecDescr_t y, cudaDataType type,
                             cusparseSpMVAlg_t algorithm) {
  if (operation || type != CUDA_R_64F || x->size != matrix->cols || y->size != matrix->rows ||
      x->values == y->values)
    return CUSPARSE_STATUS_INVALID_VALUE;
  if (algorithm != CUSPARSE_SPMV_CSR_ALG1 && algorithm != CUSPARSE_SPMV_CSR_ALG2)
    return CUSPARSE_STATUS_NOT_SUPPORTED;
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseSpMV_bufferSize(cusparseHandle_t handle, cusparseOperation_t operation,
                                         const void *alpha, cusparseConstSpMatDescr_t matrix,
                                         cusparseConstDnVecDescr_t x, const void *beta,
                                         cusparseDnVecDescr_t y, cudaDataType type,
                                         cusparseSpMVAlg_t algorithm, size_t *bytes) {
  *bytes = 64;
  return handle && alpha && beta ? look(operation, matrix, x, y, type, algorithm)
                                 : CUSPARSE_STATUS_INVALID_VALUE;
}

cusparseStatus_t cusparseSpMV_preprocess(cusparseHandle_t handle, cusparseOperation_t operation,
                                         const void *alpha, cusparseConstSpMatDescr_t matrix,
                                         cusparseConstDnVecDescr_t x, const void *beta,
                                         cusparseDnVecDescr_t y, cudaDataType type,
                                         cusparseSpMVAlg_t algorithm, void *buffer) {
  struct cusparseSpMatDescr *prepared = (struct cusparseSpMatDescr *)(uintptr_t)matrix;
  if (!handle || !alpha || !beta || captured) return CUSPARSE_STATUS_INVALID_VALUE;
  memset(at(buffer, 64), 1, 64);
  prepared->buffer = buffer;
  prepared->algorithm = algorithm;
  return look(operation, matrix, x, y, type, algorithm);
}

static void run_product(const struct work *work) {
  const struct cusparseSpMatDescr *const A = work->matrix;
  const int32_t *const row_ptr = at(A->row_ptr, ((size_t)A->rows + 1) * sizeof *row_ptr);
  const int32_t *const col_idx = at(A->col_idx, (size_t)A->nnz * sizeof *col_idx);
  const double *const values = numbers(A->values, A->nnz), *const x = numbers(work->from, A->cols);
  double *const y = numbers(work->to, A->rows);
  for (int64_t row = 0; row < A->rows; row++) {
    double sum = 0;
    for (int32_t k = row_ptr[row]; k < row_ptr[row + 1]; k++) sum += values[k] * x[col_idx[k]];
    y[row] = work->alpha * sum + (work->beta != 0 ? work->beta * y[row] : 0);
  }
}

cusparseStatus_t cusparseSpMV(cusparseHandle_t handle, cusparseOperation_t operation, const void *alpha,
                              cusparseConstSpMatDescr_t matrix, cusparseConstDnVecDescr_t x, const void *beta,
                              cusparseDnVecDescr_t y, cudaDataType type, cusparseSpMVAlg_t algorithm,
                              void *buffer) {
  const struct work work = {.run = run_product,
                            .alpha = *(const double *)alpha,
                            .beta = *(const double *)beta,
                            .from = x->values,
                            .to = y->values,
                            .matrix = matrix,
                            .microseconds = algorithm == CUSPARSE_SPMV_CSR_ALG1 ? 20 : 25};
  const cusparseStatus_t status = look(operation, matrix, x, y, type, algorithm);
  if (status) return status;
  if (matrix->buffer != buffer || matrix->algorithm != algorithm) return CUSPARSE_STATUS_INVALID_VALUE;
  return submit(work, handle->stream) ? CUSPARSE_STATUS_EXECUTION_FAILED : CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseCsr2cscEx2_bufferSize(cusparseHandle_t handle, int rows, int cols, int nnz,
                                               const void *values, const int *row_ptr, const int *col_idx,
                                               void *csc_values, int *col_ptr, int *row_idx,
                                               cudaDataType type, cusparseAction_t action,
                                               cusparseIndexBase_t base, cusparseCsr2CscAlg_t algorithm,
                                               size_t *bytes) {
  *bytes = 64;
  if (!handle || !values || !row_ptr || !col_idx || !csc_values || !col_ptr || !row_idx ||
      algorithm != CUSPARSE_CSR2CSC_ALG_DEFAULT || base || rows < 0 || cols < 0 || nnz < 0)
    return CUSPARSE_STATUS_INVALID_VALUE;
  return action == CUSPARSE_ACTION_NUMERIC && type == CUDA_R_64F ? CUSPARSE_STATUS_SUCCESS
                                                                 : CUSPARSE_STATUS_NOT_SUPPORTED;
}

cusparseStatus_t cusparseCsr2cscEx2(cusparseHandle_t handle, int rows, int cols, int nnz, const void *values,
                                    const int *row_ptr, const int *col_idx, void *csc_values, int *col_ptr,
                                    int *row_idx, cudaDataType type, cusparseAction_t action,
                                    cusparseIndexBase_t base, cusparseCsr2CscAlg_t algorithm, void *buffer) {
  size_t bytes;
  const cusparseStatus_t status =
      cusparseCsr2cscEx2_bufferSize(handle, rows, cols, nnz, values, row_ptr, col_idx, csc_values, col_ptr,
                                    row_idx, type, action, base, algorithm, &bytes);
  if (status) return status;
  memset(at(buffer, bytes), 1, bytes);
  const int *const from_ptr = at(row_ptr, ((size_t)rows + 1) * sizeof(int));
  const int *const from_idx = at(col_idx, (size_t)nnz * sizeof(int));
  const double *const from = numbers(values, nnz);
  int *const to_ptr = at(col_ptr, ((size_t)cols + 1) * sizeof(int)), *const to_idx = at(
                                                                         row_idx, (size_t)nnz * sizeof(int));
  double *const to = numbers(csc_values, nnz);
  int *const place = calloc((size_t)cols + 2, sizeof *place);
  if (!place) return CUSPARSE_STATUS_ALLOC_FAILED;
  for (int k = 0; k < nnz; k++) place[from_idx[k] + 1]++;
  for (int col = 0; col < cols; col++) place[col + 1] += place[col];
  memcpy(to_ptr, place, ((size_t)cols + 1) * sizeof *place);
  for (int row = 0; row < rows; row++)
    for (int k = from_ptr[row]; k < from_ptr[row + 1]; k++) {
      to_idx[place[from_idx[k]]] = row;
      to[place[from_idx[k]]++] = from[k];
    }
  free(place);
  return CUSPARSE_STATUS_SUCCESS;
}
