/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, device memory and the table: see common.h. */
#include "common.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void check_cuda(cudaError_t error, const char *call) {
  if (error != cudaSuccess) fail("%s: %s", call, cudaGetErrorString(error));
}

void check_blas(cublasStatus_t status, const char *call) {
  if (status != CUBLAS_STATUS_SUCCESS) fail("%s: cuBLAS status %d", call, (int)status);
}

void check_sparse(cusparseStatus_t status, const char *call) {
  if (status != CUSPARSE_STATUS_SUCCESS) fail("%s: %s", call, cusparseGetErrorString(status));
}

void *on_device(size_t bytes) {
  void *memory;
  CUDA(cudaMalloc(&memory, bytes ? bytes : 1));
  CUDA(cudaMemset(memory, 0, bytes ? bytes : 1));
  CUDA(
      cudaDeviceSynchronize()); /* other streams do not wait for the default one when they are non-blocking */
  return memory;
}

void copy_to_host(double *host, const double *device, int64_t count) {
  CUDA(cudaDeviceSynchronize());
  CUDA(cudaMemcpy(host, device, (size_t)count * sizeof *host, cudaMemcpyDeviceToHost));
}

double now(void) {
  struct timespec time;
  timespec_get(&time, TIME_UTC);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

struct stopwatch start_watch(cudaStream_t stream) {
  struct stopwatch watch;
  CUDA(cudaEventCreate(&watch.begin));
  CUDA(cudaEventCreate(&watch.end));
  CUDA(cudaEventRecord(watch.begin, stream));
  return watch;
}

double stop_watch(struct stopwatch watch, cudaStream_t stream) {
  float milliseconds;
  CUDA(cudaEventRecord(watch.end, stream));
  CUDA(cudaEventSynchronize(watch.end));
  CUDA(cudaEventElapsedTime(&milliseconds, watch.begin, watch.end));
  CUDA(cudaEventDestroy(watch.begin));
  CUDA(cudaEventDestroy(watch.end));
  return 1e-3 * milliseconds;
}

static int by_size(const void *left, const void *right) {
  const double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

void end_setup(struct contender *contender, double start, const double *x, double *y, cudaStream_t stream) {
  enum { BATCHES = 5, PRODUCTS = 20 };
  double times[BATCHES];
  contender->apply(contender->user, x, y, stream);
  CUDA(cudaStreamSynchronize(stream));
  contender->setup = now() - start;
  for (int batch = -1; batch < BATCHES; batch++) { /* the first is a warm-up */
    const struct stopwatch watch = start_watch(stream);
    for (int i = 0; i < PRODUCTS; i++) contender->apply(contender->user, x, y, stream);
    const double time = stop_watch(watch, stream) / PRODUCTS;
    if (batch >= 0) times[batch] = time;
  }
  qsort(times, BATCHES, sizeof *times, by_size);
  contender->product = times[BATCHES / 2];
}

static double per_iteration(const struct contender *contender) {
  return contender->iterations ? contender->loop / (double)contender->iterations : 0;
}

void print_table(const char *example, const struct matrix *matrix, const struct contender *contenders,
                 int count) {
  struct cudaDeviceProp device;
  int major, minor, patch; /* of cuSPARSE: another version is another baseline */
  CUDA(cudaGetDeviceProperties(&device, 0));
  SPARSE(cusparseGetProperty(MAJOR_VERSION, &major));
  SPARSE(cusparseGetProperty(MINOR_VERSION, &minor));
  SPARSE(cusparseGetProperty(PATCH_LEVEL, &patch));
  printf("### %s: %s, %lld x %lld, %lld nonzeros, on %s, cuSPARSE %d.%d.%d\n\n", example, matrix->name,
         (long long)matrix->rows, (long long)matrix->cols, (long long)matrix->nnz, device.name, major, minor, patch);
  printf("| | set-up, ms | product, us | iterations | per iteration, us | loop, ms | total, ms |\n");
  printf("| --- | --: | --: | --: | --: | --: | --: |\n");
  for (const struct contender *c = contenders; c < contenders + count; c++)
    printf("| %s | %.2f | %.2f | %ld | %.2f | %.2f | %.2f |\n", c->name, 1e3 * c->setup, 1e6 * c->product,
           c->iterations, 1e6 * per_iteration(c), 1e3 * c->loop, 1e3 * (c->setup + c->loop));
  printf("\n");
}

void print_break_even(const struct contender *first, const struct contender *second) {
  const double later = second->setup - first->setup, gain = per_iteration(first) - per_iteration(second);
  printf("%s repays its set-up against %s ", second->name, first->name);
  if (later <= 0 && gain >= 0)
    printf("at once\n");
  else if (later > 0 && gain <= 0)
    printf("never\n");
  else if (later <= 0)
    printf("up to %.0f iterations (a shorter set-up, longer iterations)\n", floor(later / gain));
  else
    printf("after %.0f iterations: %.2f ms more to begin with, %.2f us less for each\n", ceil(later / gain),
           1e3 * later, 1e6 * gain);
}

void print_setup(const cbgen_operator *op) {
  static const char *const cache[] = {"no cache", "cache miss", "cache hit"};
  cbgen_info info = {.struct_size = sizeof info};
  if (cbgen_operator_info(op, &info)) fail("cbgen: %s", cbgen_operator_message(op));
  printf("cbgen: %s; %s, %.1f bytes per nonzero; of %.1f ms:", cbgen_operator_plan(op), cache[info.cache],
         info.bytes_per_nonzero, 1e3 * info.total_seconds);
  const struct {
    const char *name;
    double seconds;
  } part[] = {{"hash", info.hash_seconds},         {"cache read", info.lookup_seconds},
              {"analysis", info.analysis_seconds}, {"packing", info.pack_seconds},
              {"text", info.generate_seconds},     {"NVRTC (its loading included)", info.compile_seconds},
              {"tuning", info.tune_seconds},       {"cache write", info.store_seconds},
              {"kernel load", info.load_seconds},  {"upload", info.upload_seconds}};
  for (size_t i = 0; i < sizeof part / sizeof *part; i++)
    if (part[i].seconds > 0) printf(" %s %.1f,", part[i].name, 1e3 * part[i].seconds);
  printf(" the rest is opening the GPU\n");
}

int print_check(const char *what, double value, double most) {
  const int passed = value <= most;
  printf("check: %s: %.2g, at most %.2g: %s\n", what, value, most, passed ? "passed" : "FAILED");
  return passed;
}
