// SPDX-License-Identifier: Apache-2.0
/* Memory, copies and streams of CUDA's run-time library on the fake driver (fake_driver.h). What is left on the device
 * at the end, and what the driver complains about, goes to stderr.
 *
 *   FAKE_RUNTIME_MEMORY=N    the allocation with this number fails */
#include "tests/fake_driver.h"

#include "tests/fake_runtime/cuda_runtime_api.h"

#include <stdio.h>

static struct {
  uint64_t (*allocate)(int device, size_t bytes);
  void (*release)(uint64_t address);
  int (*put)(uint64_t to, const void *from, size_t bytes);
  int (*take)(void *to, uint64_t from, size_t bytes);
  void (*set_current)(int device);
  void *(*new_stream)(int device, unsigned flags);
  void (*end_stream)(void *stream);
  long (*get)(const char *member);
  const char *(*complaint)(void);
} driver;
static long left; /* arrays and streams */

static void find(void *place, const char *name) {
  void *const symbol = fake_symbol(name);
  if (!symbol) {
    fprintf(stderr, "CBGEN_FAKE_CUDA names no fake driver with '%s'\n", name);
    abort();
  }
  memcpy(place, &symbol, sizeof symbol);
}

static void look_back(void) {
  if (left) fprintf(stderr, "left on the device: %ld arrays and streams\n", left);
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
  find(&driver.complaint, "fake_complaint");
  find(&driver.allocate, "fake_alloc");
  driver.set_current(0);
  atexit(look_back);
}

const char *cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : "a failure of the fake run-time library";
}

cudaError_t cudaMalloc(void **memory, size_t bytes) {
  static long allocations;
  const char *fails = getenv("FAKE_RUNTIME_MEMORY");
  open_driver();
  const uint64_t address = fails && ++allocations == atol(fails) ? 0 : driver.allocate(0, bytes);
  *memory = (void *)(uintptr_t)address;
  left += address != 0;
  return address ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void *memory) {
  if (memory) driver.release((uint64_t)(uintptr_t)memory);
  left -= memory != NULL;
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
  int done = 0;
  if (kind == cudaMemcpyHostToDevice) done = driver.put((uint64_t)(uintptr_t)to, from, bytes);
  if (kind == cudaMemcpyDeviceToHost) done = driver.take(to, (uint64_t)(uintptr_t)from, bytes);
  return done || !bytes ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaStreamCreate(cudaStream_t *stream) {
  open_driver();
  *stream = driver.new_stream(0, 0);
  left++;
  return *stream ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  driver.end_stream(stream);
  left--;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return stream ? cudaSuccess : cudaErrorInvalidValue;
}
