// SPDX-License-Identifier: Apache-2.0
/* The CUDA driver, opened at run time, and one device with its primary context.
 *
 * Every call of the driver goes through the table `call`, so that a test can put another library in its
 * place. A driver handle may be used by several threads; handles on one device share its primary context.
 */
#ifndef CBGEN_RUNTIME_DRIVER_H
#define CBGEN_RUNTIME_DRIVER_H

#include "analysis/target.h"
#include "base/status.h"
#include "runtime/library.h"

#include <stddef.h>
#include <stdint.h>

/* The driver's types, as far as they are used here (tests/cuda_headers.c compares them with cuda.h). */
typedef uint64_t cb_device_ptr;             /* CUdeviceptr */
typedef struct CUctx_st *cb_cuda_context;   /* CUcontext */
typedef struct CUmod_st *cb_cuda_module;    /* CUmodule */
typedef struct CUfunc_st *cb_cuda_kernel;   /* CUfunction */
typedef struct CUstream_st *cb_cuda_stream; /* CUstream and cudaStream_t */
typedef struct CUevent_st *cb_cuda_event;   /* CUevent */

enum cb_cuda_number {
  CB_CUDA_SUCCESS = 0,
  CB_CUDA_OUT_OF_MEMORY = 2,
  CB_CUDA_NO_DEVICE = 100,
  CB_CUDA_INVALID_DEVICE = 101,
  CB_CUDA_STREAM_NON_BLOCKING = 1,
  /* CUdevice_attribute */
  CB_CUDA_MULTIPROCESSORS = 16,
  CB_CUDA_L2_BYTES = 38,
  CB_CUDA_CAPABILITY_MAJOR = 75,
  CB_CUDA_CAPABILITY_MINOR = 76,
  CB_CUDA_SHARED_PER_SM = 81,
  CB_CUDA_SHARED_PER_BLOCK = 97,
  /* CUfunction_attribute */
  CB_CUDA_KERNEL_LOCAL_BYTES = 3,
  CB_CUDA_KERNEL_REGISTERS = 4,
  CB_CUDA_KERNEL_DYNAMIC_SHARED = 8
};

#define CB_DRIVER_CALLS(CALL)                                                                                \
  CALL(init, "cuInit", (unsigned flags))                                                                     \
  CALL(version, "cuDriverGetVersion", (int *version))                                                        \
  CALL(error_text, "cuGetErrorString", (int result, const char **text))                                      \
  CALL(device_get, "cuDeviceGet", (int *device, int ordinal))                                                \
  CALL(device_count, "cuDeviceGetCount", (int *count))                                                       \
  CALL(device_name, "cuDeviceGetName", (char *name, int length, int device))                                 \
  CALL(device_attribute, "cuDeviceGetAttribute", (int *value, int attribute, int device))                    \
  CALL(context_retain, "cuDevicePrimaryCtxRetain", (cb_cuda_context * context, int device))                  \
  CALL(context_release, "cuDevicePrimaryCtxRelease_v2", (int device))                                        \
  CALL(context_get, "cuCtxGetCurrent", (cb_cuda_context * context))                                          \
  CALL(context_push, "cuCtxPushCurrent_v2", (cb_cuda_context context))                                       \
  CALL(context_pop, "cuCtxPopCurrent_v2", (cb_cuda_context * context))                                       \
  CALL(alloc, "cuMemAlloc_v2", (cb_device_ptr * block, size_t bytes))                                        \
  CALL(free, "cuMemFree_v2", (cb_device_ptr block))                                                          \
  CALL(memory, "cuMemGetInfo_v2", (size_t * available, size_t * total))                                      \
  CALL(to_device, "cuMemcpyHtoD_v2", (cb_device_ptr to, const void *from, size_t bytes))                     \
  CALL(to_host, "cuMemcpyDtoH_v2", (void *to, cb_device_ptr from, size_t bytes))                             \
  CALL(fill, "cuMemsetD8_v2", (cb_device_ptr to, unsigned char byte, size_t bytes))                          \
  CALL(module_load, "cuModuleLoadData", (cb_cuda_module * module, const void *image))                        \
  CALL(module_unload, "cuModuleUnload", (cb_cuda_module module))                                             \
  CALL(module_kernel, "cuModuleGetFunction",                                                                 \
       (cb_cuda_kernel * kernel, cb_cuda_module module, const char *name))                                   \
  CALL(kernel_set, "cuFuncSetAttribute", (cb_cuda_kernel kernel, int attribute, int value))                  \
  CALL(kernel_get, "cuFuncGetAttribute", (int *value, int attribute, cb_cuda_kernel kernel))                 \
  CALL(launch, "cuLaunchKernel",                                                                             \
       (cb_cuda_kernel kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,          \
        unsigned block_y, unsigned block_z, unsigned shared, cb_cuda_stream stream, void **parameters,       \
        void **extra))                                                                                       \
  CALL(stream_create, "cuStreamCreate", (cb_cuda_stream * stream, unsigned flags))                           \
  CALL(stream_destroy, "cuStreamDestroy_v2", (cb_cuda_stream stream))                                        \
  CALL(stream_wait, "cuStreamSynchronize", (cb_cuda_stream stream))                                          \
  CALL(event_create, "cuEventCreate", (cb_cuda_event * event, unsigned flags))                               \
  CALL(event_destroy, "cuEventDestroy_v2", (cb_cuda_event event))                                            \
  CALL(event_record, "cuEventRecord", (cb_cuda_event event, cb_cuda_stream stream))                          \
  CALL(event_wait, "cuEventSynchronize", (cb_cuda_event event))                                              \
  CALL(event_elapsed, "cuEventElapsedTime", (float *milliseconds, cb_cuda_event from, cb_cuda_event to))

struct cb_driver_calls {
  CB_DRIVER_CALLS(CB_CALL_MEMBER)
};

struct cb_driver {
  struct cb_library library;
  struct cb_driver_calls call;
  int version; /* 13000 */
  int ordinal, device;
  cb_cuda_context context;
  struct cb_target target; /* of this device, for cb_plan_build */
};

/* Opens `library` (NULL: $CBGEN_LIBCUDA, else libcuda.so.1) and retains the primary context of device
 * `ordinal`. CB_ERR_MISSING without a driver or without a device; *driver is then NULL. */
enum cb_status cb_driver_open(struct cb_driver **driver, const char *library, int ordinal,
                              struct cb_diag *diag);
void cb_driver_close(struct cb_driver *driver); /* NULL is accepted */

/* CB_OK for result 0; else CB_ERR_MEMORY (device memory is short) or CB_ERR_DEVICE with "WHAT: driver's
 * text". */
enum cb_status cb_driver_check(const struct cb_driver *driver, int result, const char *what,
                               struct cb_diag *diag);

/* Makes the context current for the calls up to cb_driver_leave, which takes the value that enter put into
 * *pushed. Costs nothing but a look when it is current already. */
enum cb_status cb_driver_enter(const struct cb_driver *driver, int *pushed, struct cb_diag *diag);
void cb_driver_leave(const struct cb_driver *driver, int pushed);

/* A block of device memory with a copy of `bytes` bytes at `from` (NULL: contents undefined). A length of 0
 * gives a block, too. The context must be current. */
enum cb_status cb_device_put(const struct cb_driver *driver, cb_device_ptr *block, const void *from,
                             size_t bytes, struct cb_diag *diag);
void cb_device_free(const struct cb_driver *driver, cb_device_ptr block); /* 0 is accepted */

#endif
