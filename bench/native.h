// SPDX-License-Identifier: Apache-2.0
/* For programs that check libcbgen on a GPU as an application would use it: the CUDA driver and NVRTC, opened at run
 * time (CBGEN_LIBCUDA and CBGEN_NVRTC name others than the machine's), and a kernel of the application's own.
 *
 * A call that cannot fail in a sound program ends it: REQUIRE_CUDA says where and leaves with status 3. */
#ifndef CBGEN_BENCH_NATIVE_H
#define CBGEN_BENCH_NATIVE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef uint64_t address_t; /* of device memory */

#define CUDA_CALLS(X)                                                                                                  \
  X(init, cuInit, (unsigned flags))                                                                                    \
  X(error_name, cuGetErrorName, (int result, const char **name))                                                       \
  X(device_count, cuDeviceGetCount, (int *count))                                                                      \
  X(device_get, cuDeviceGet, (int *device, int ordinal))                                                               \
  X(device_attribute, cuDeviceGetAttribute, (int *value, int attribute, int device))                                   \
  X(primary_retain, cuDevicePrimaryCtxRetain, (void **context, int device))                                            \
  X(primary_release, cuDevicePrimaryCtxRelease_v2, (int device))                                                       \
  X(set_current, cuCtxSetCurrent, (void *context))                                                                     \
  X(synchronize, cuCtxSynchronize, (void))                                                                             \
  X(memory_info, cuMemGetInfo_v2, (size_t * available, size_t * total))                                                \
  X(alloc, cuMemAlloc_v2, (address_t * address, size_t bytes))                                                         \
  X(release, cuMemFree_v2, (address_t address))                                                                        \
  X(host_alloc, cuMemHostAlloc, (void **pointer, size_t bytes, unsigned flags))                                        \
  X(host_release, cuMemFreeHost, (void *pointer))                                                                      \
  X(put, cuMemcpyHtoD_v2, (address_t to, const void *from, size_t bytes))                                              \
  X(take, cuMemcpyDtoH_v2, (void *to, address_t from, size_t bytes))                                                   \
  X(put_async, cuMemcpyHtoDAsync_v2, (address_t to, const void *from, size_t bytes, void *stream))                     \
  X(copy_async, cuMemcpyDtoDAsync_v2, (address_t to, address_t from, size_t bytes, void *stream))                      \
  X(fill_async, cuMemsetD8Async, (address_t to, unsigned char byte, size_t bytes, void *stream))                       \
  X(stream_create, cuStreamCreate, (void **stream, unsigned flags))                                                    \
  X(stream_destroy, cuStreamDestroy_v2, (void *stream))                                                                \
  X(stream_synchronize, cuStreamSynchronize, (void *stream))                                                           \
  X(stream_wait, cuStreamWaitEvent, (void *stream, void *event, unsigned flags))                                       \
  X(event_create, cuEventCreate, (void **event, unsigned flags))                                                       \
  X(event_destroy, cuEventDestroy_v2, (void *event))                                                                   \
  X(event_record, cuEventRecord, (void *event, void *stream))                                                          \
  X(capture_begin, cuStreamBeginCapture_v2, (void *stream, unsigned mode))                                             \
  X(capture_end, cuStreamEndCapture, (void *stream, void **graph))                                                     \
  X(graph_instantiate, cuGraphInstantiateWithFlags, (void **exec, void *graph, unsigned long long flags))              \
  X(graph_launch, cuGraphLaunch, (void *exec, void *stream))                                                           \
  X(graph_destroy, cuGraphDestroy, (void *graph))                                                                      \
  X(exec_destroy, cuGraphExecDestroy, (void *exec))                                                                    \
  X(module_load, cuModuleLoadData, (void **module, const void *image))                                                 \
  X(module_unload, cuModuleUnload, (void *module))                                                                     \
  X(module_function, cuModuleGetFunction, (void **function, void *module, const char *name))                           \
  X(launch_with, cuLaunchKernelEx, (const void *configuration, void *function, void **parameters, void **extra))       \
  X(launch, cuLaunchKernel,                                                                                            \
    (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,            \
     unsigned block_z, unsigned shared, void *stream, void **parameters, void **extra))

struct cuda {
#define X(member, name, parameters) int(*member) parameters;
  CUDA_CALLS(X)
#undef X
};
extern struct cuda cuda;

#define REQUIRE_CUDA(call) require_cuda((call), #call, __FILE__, __LINE__)
void require_cuda(int result, const char *what, const char *file, int line);

/* Opens the driver and makes the primary context of GPU 0 current. 0: this machine has none, which was said. */
int open_cuda(void);
void close_cuda(void);
int count_gpus(void);
/* Makes a GPU's primary context (kept until close_cuda) current on the calling thread. */
void use_gpu(int ordinal);

/* From pageable memory. When it returns the bytes are there: the driver's copy alone may return before. */
void put_bytes(address_t to, const void *from, size_t bytes);

address_t device_alloc(size_t bytes); /* filled with NaN (0xff bytes) */
void device_free(address_t address);
void *new_stream(void); /* one that does not wait for the default stream */
/* A module of CUDA text, by NVRTC for GPU 0, without contraction; one that does not compile ends the program. */
void *load_text(const char *text, const char *name);
static inline void *pointer_to(address_t address) {
  return (void *)(uintptr_t)address;
}

/* ---- the application's kernel: to[i] = scale from[i] / (1 + |from[i]|)
 *
 * `slow`: its last thread block takes a while longer. `early`: it lets the kernel behind it in the stream start before
 * its own work, where the GPU can and that kernel was launched so (programmatic dependent launch). */
struct rewriter;

struct rewriter *new_rewriter(void); /* needs a context */
void free_rewriter(struct rewriter *rewriter);

struct rewriting {
  int is_double; /* else float */
  address_t from, to;
  int64_t count;
  double scale;
  int slow, early;
  int overlapping; /* launched so that it may itself start before what it follows has ended: it does not wait */
};
int gpu_overlaps(void);                                                                        /* whether GPU 0 can */
int rewrite(const struct rewriter *rewriter, const struct rewriting *rewriting, void *stream); /* CUDA's result */

#endif
