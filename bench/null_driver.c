// SPDX-License-Identifier: Apache-2.0
/* A CUDA driver that does nothing, for timing and profiling the host's part of set-up where there is no GPU:
 *
 *   CBGEN_LIBCUDA=$PWD/libbench_null_driver.so bench_cold_start --host 1 MATRIX…
 *
 * It says that it is an H200. Device memory is the host's, copies are made, modules and kernels are names. Of kernels
 * only those do anything without whose findings analysis does not go on: hashing, of what is left of whole chunks, and
 * the survey, of a matrix with 32-bit numbers counted from 0. What other kernels would write is whatever lies there; so
 * plans are those of a GPU for matrices whose columns come to the host (up to 2^18 nonzeros), and products are wrong.
 * null_driver_calls tells what was called. */
#include "bench/null_driver.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int result; /* CUresult */
typedef uint64_t address;
enum { SUCCESS = 0, NO_MEMORY = 2, INVALID = 1 };
#define EXPORT __attribute__((visibility("default")))

static struct null_driver_calls counts;
EXPORT struct null_driver_calls null_driver_calls(void) { return counts; }

static void *at(address place) { return (void *)(uintptr_t)place; }

/* ---- the device */

EXPORT result cuInit(unsigned flags) { return SUCCESS; }
EXPORT result cuDriverGetVersion(int *version) { *version = 13000; return SUCCESS; }
EXPORT result cuGetErrorString(result error, const char **text) { *text = "of the null driver"; return SUCCESS; }
EXPORT result cuGetErrorName(result error, const char **text) { return cuGetErrorString(error, text); }
EXPORT result cuDeviceGetCount(int *count) { *count = 1; return SUCCESS; }
EXPORT result cuDeviceGet(int *device, int ordinal) { *device = ordinal; return SUCCESS; }

EXPORT result cuDeviceGetName(char *name, int length, int device) {
  snprintf(name, (size_t)length, "NVIDIA H200");
  return SUCCESS;
}

EXPORT result cuDeviceGetAttribute(int *value, int attribute, int device) {
  static const struct {
    int attribute, value;
  } known[] = {{1, 1024},        /* threads of a thread block */
               {10, 32},         /* of a warp */
               {13, 1980000},    /* clock, kHz */
               {16, 132},        /* multiprocessors */
               {36, 3201000},    /* clock of the memory, kHz */
               {37, 6144},       /* its width, bits */
               {38, 60 << 20},   /* bytes of L2 */
               {39, 2048},       /* threads of a multiprocessor */
               {75, 9},          /* compute capability, and its minor number */
               {76, 0},
               {81, 228 << 10},  /* shared memory of a multiprocessor, and the most of a thread block */
               {97, 227 << 10},
               {106, 32}};       /* thread blocks of a multiprocessor */
  *value = 1;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (known[i].attribute == attribute) *value = known[i].value;
  return SUCCESS;
}

/* ---- contexts, streams and events: nothing is ever under way */

static int context;
EXPORT result cuDevicePrimaryCtxRetain(void **own, int device) { *own = &context; return SUCCESS; }
EXPORT result cuDevicePrimaryCtxRelease_v2(int device) { return SUCCESS; }
EXPORT result cuCtxPushCurrent_v2(void *own) { return SUCCESS; }
EXPORT result cuCtxPopCurrent_v2(void **own) { *own = &context; return SUCCESS; }
EXPORT result cuCtxGetCurrent(void **own) { *own = &context; return SUCCESS; }
EXPORT result cuCtxGetDevice(int *device) { *device = 0; return SUCCESS; }
EXPORT result cuCtxGetId(void *own, unsigned long long *id) { *id = 1; return SUCCESS; }
EXPORT result cuCtxSynchronize(void) { counts.waits++; return SUCCESS; }

EXPORT result cuStreamCreate(void **stream, unsigned flags) { *stream = &context; return SUCCESS; }
EXPORT result cuStreamDestroy_v2(void *stream) { return SUCCESS; }
EXPORT result cuStreamSynchronize(void *stream) { counts.waits++; return SUCCESS; }
EXPORT result cuStreamQuery(void *stream) { return SUCCESS; }
EXPORT result cuStreamGetCtx(void *stream, void **own) { *own = &context; return SUCCESS; }
EXPORT result cuStreamIsCapturing(void *stream, unsigned *state) { *state = 0; return SUCCESS; }
EXPORT result cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
  return SUCCESS;
}
EXPORT result cuEventCreate(void **event, unsigned flags) { *event = &context; return SUCCESS; }
EXPORT result cuEventDestroy_v2(void *event) { return SUCCESS; }
EXPORT result cuEventRecord(void *event, void *stream) { return SUCCESS; }
EXPORT result cuEventQuery(void *event) { return SUCCESS; }
EXPORT result cuEventSynchronize(void *event) { return SUCCESS; }
EXPORT result cuEventElapsedTime(float *ms, void *from, void *to) { *ms = 0.01F; return SUCCESS; }

/* ---- memory */

EXPORT result cuMemGetInfo_v2(size_t *available, size_t *total) {
  *available = (size_t)120 << 30;
  *total = (size_t)140 << 30;
  return SUCCESS;
}

EXPORT result cuMemAlloc_v2(address *place, size_t bytes) {
  enum { ALIGN = 512 };
  void *own = NULL;
  counts.allocations++;
  if (posix_memalign(&own, ALIGN, bytes + ALIGN)) return NO_MEMORY;
  *place = (address)(uintptr_t)own;
  return SUCCESS;
}
EXPORT result cuMemFree_v2(address place) { free(at(place)); return SUCCESS; }
EXPORT result cuMemHostAlloc(void **place, size_t bytes, unsigned flags) {
  return posix_memalign(place, 4096, bytes) ? NO_MEMORY : SUCCESS;
}
EXPORT result cuMemFreeHost(void *place) { free(place); return SUCCESS; }
EXPORT result cuPointerGetAttribute(void *value, int attribute, address place) {
  return INVALID; /* no memory of anybody's else */
}

static result copy(void *to, const void *from, size_t bytes) {
  counts.copies++;
  memcpy(to, from, bytes);
  return SUCCESS;
}
EXPORT result cuMemcpyHtoD_v2(address to, const void *from, size_t bytes) { return copy(at(to), from, bytes); }
EXPORT result cuMemcpyDtoH_v2(void *to, address from, size_t bytes) {
  counts.waits++;
  return copy(to, at(from), bytes);
}
EXPORT result cuMemcpyHtoDAsync_v2(address to, const void *from, size_t bytes, void *stream) {
  return copy(at(to), from, bytes);
}
EXPORT result cuMemcpyDtoHAsync_v2(void *to, address from, size_t bytes, void *stream) {
  return copy(to, at(from), bytes);
}
EXPORT result cuMemcpyDtoDAsync_v2(address to, address from, size_t bytes, void *stream) {
  return copy(at(to), at(from), bytes);
}

/* Clearing much is no time of the host's. */
static result fill(address place, unsigned char byte, size_t bytes) {
  enum { MOST = 1 << 16 };
  if (bytes < MOST) memset(at(place), byte, bytes);
  return SUCCESS;
}
EXPORT result cuMemsetD8_v2(address place, unsigned char byte, size_t bytes) { return fill(place, byte, bytes); }
EXPORT result cuMemsetD8Async(address place, unsigned char byte, size_t bytes, void *stream) {
  return fill(place, byte, bytes);
}

/* ---- modules: a function is its name */

enum { MOST_NAMES = 512, NAME = 64 };
static char names[MOST_NAMES][NAME];

EXPORT result cuModuleLoadData(void **module, const void *image) {
  counts.modules++;
  *module = &context;
  return SUCCESS;
}
EXPORT result cuModuleUnload(void *module) { return SUCCESS; }
EXPORT result cuModuleGetFunction(void **function, void *module, const char *name) {
  int i = 0;
  while (i < MOST_NAMES && *names[i] && strcmp(names[i], name) != 0) i++;
  if (i == MOST_NAMES || strlen(name) >= NAME) return INVALID;
  *function = strcpy(names[i], name);
  return SUCCESS;
}
EXPORT result cuFuncGetAttribute(int *value, int attribute, void *function) {
  enum { REGISTERS = 4 };
  *value = attribute == REGISTERS ? 40 : 0;
  return SUCCESS;
}
EXPORT result cuFuncSetAttribute(void *function, int attribute, int value) {
  return SUCCESS;
}
EXPORT result cuFuncLoad(void *function) { return SUCCESS; }
EXPORT result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads, size_t shared) {
  *blocks = 4;
  return SUCCESS;
}

/* ---- kernels: those of templates/hash.cu.in, but for digests */

enum { ROWS_CHUNK = 1 << 13, COLUMNS_CHUNK = 1 << 16 };

static void hash_rows(void **parameters) {
  const int32_t *row_ptr = at(*(address *)parameters[0]);
  const int64_t rows = *(int64_t *)parameters[2], first = rows / ROWS_CHUNK * ROWS_CHUNK;
  uint32_t *rest = at(*(address *)parameters[4]);
  uint64_t *ends = at(*(address *)parameters[6]);
  for (int64_t row = first; row < rows; row++) rest[row - first] = (uint32_t)(row_ptr[row + 1] - row_ptr[row]);
  ends[0] = (uint64_t)row_ptr[0];
  ends[1] = (uint64_t)row_ptr[rows];
}

static void hash_columns(void **parameters) {
  const int32_t *columns = at(*(address *)parameters[0]);
  const int64_t count = *(int64_t *)parameters[2], first = count / COLUMNS_CHUNK * COLUMNS_CHUNK;
  memcpy(at(*(address *)parameters[4]), columns + first, (size_t)(count - first) * sizeof *columns);
}

/* ---- those of templates/survey.cu.in */

struct findings {
  uint32_t unfit, pad, falls[64], begins[64];
};

static void survey_columns(void **parameters) {
  const int32_t *columns = at(*(address *)parameters[0]);
  struct findings *findings = at(*(address *)parameters[4]);
  for (int64_t k = 1; k < *(int64_t *)parameters[2]; k++) findings->falls[0] += columns[k] <= columns[k - 1];
}

static void survey_rows(void **parameters) {
  const int32_t *row_ptr = at(*(address *)parameters[0]), *columns = at(*(address *)parameters[1]);
  const int64_t rows = *(int64_t *)parameters[3];
  const struct {
    address starts, first, last;
  } *to = parameters[6];
  struct findings *findings = at(*(address *)parameters[7]);
  int32_t *first = at(to->first), *last = at(to->last);
  memcpy(at(to->starts), row_ptr, ((size_t)rows + 1) * sizeof *row_ptr);
  for (int64_t i = 0; i < rows; i++) {
    const int32_t begin = row_ptr[i], end = row_ptr[i + 1];
    first[i] = begin == end ? 0 : columns[begin];
    last[i] = begin == end ? 0 : columns[end - 1];
    findings->begins[0] += begin != end && begin > 0 && columns[begin] <= columns[begin - 1];
  }
}

static result launch(const char *name, void **parameters) {
  counts.launches++;
  if (!strcmp(name, "cbgen_hash_rows_32")) hash_rows(parameters);
  if (!strcmp(name, "cbgen_hash_columns_32")) hash_columns(parameters);
  if (!strcmp(name, "cbgen_survey_rows_32_32")) survey_rows(parameters);
  if (!strcmp(name, "cbgen_survey_columns_32")) survey_columns(parameters);
  return SUCCESS;
}

EXPORT result cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned threads_x, unsigned threads_y,
                             unsigned threads_z, unsigned shared, void *stream, void **parameters, void **extra) {
  return launch(function, parameters);
}
EXPORT result cuLaunchKernelEx(const void *how, void *function, void **parameters, void **extra) {
  return launch(function, parameters);
}
