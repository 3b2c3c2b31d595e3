// SPDX-License-Identifier: Apache-2.0
/* The CUDA driver: see driver.h. One table of names, the error messages, a device, and its memory. */
#include "runtime/cuda/driver.h"

#include "base/fork.h"
#include "base/memory.h"
#include "runtime/cuda/calibration.h"
#include "runtime/cuda/memory.h"
#include "runtime/cuda/staging.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the library */

static const char *const driver_names[] = {"libcuda.so.1", "libcuda.so", NULL};
static const struct cb_library_search driver_search = {
    .what = "the CUDA driver",
    .remedy = "install NVIDIA's GPU driver on a machine with a GPU, or set CBGEN_LIBCUDA to its file",
    .variable = "CBGEN_LIBCUDA",
    .names = driver_names,
};

#define CALL(member, name)                                                                                   \
  { name, offsetof(struct cb_driver_calls, member), 0 }
const struct cb_library_symbol cb_driver_symbols[] = {
    CALL(init, "cuInit"),
    CALL(version, "cuDriverGetVersion"),
    CALL(error_string, "cuGetErrorString"),
    CALL(error_name, "cuGetErrorName"),
    CALL(device_count, "cuDeviceGetCount"),
    CALL(device_get, "cuDeviceGet"),
    CALL(device_name, "cuDeviceGetName"),
    CALL(device_attribute, "cuDeviceGetAttribute"),
    CALL(primary_retain, "cuDevicePrimaryCtxRetain"),
    CALL(primary_release, "cuDevicePrimaryCtxRelease_v2"),
    CALL(context_push, "cuCtxPushCurrent_v2"),
    CALL(context_pop, "cuCtxPopCurrent_v2"),
    CALL(context_synchronize, "cuCtxSynchronize"),
    CALL(context_current, "cuCtxGetCurrent"),
    CALL(context_device, "cuCtxGetDevice"),
    {"cuCtxGetId", offsetof(struct cb_driver_calls, context_id), 1},
    CALL(memory_info, "cuMemGetInfo_v2"),
    CALL(memory_alloc, "cuMemAlloc_v2"),
    CALL(memory_free, "cuMemFree_v2"),
    CALL(copy_to_device, "cuMemcpyHtoD_v2"),
    CALL(copy_to_host, "cuMemcpyDtoH_v2"),
    CALL(copy_on_device, "cuMemcpyDtoDAsync_v2"),
    CALL(copy_to_device_async, "cuMemcpyHtoDAsync_v2"),
    CALL(copy_to_host_async, "cuMemcpyDtoHAsync_v2"),
    CALL(host_alloc, "cuMemHostAlloc"),
    CALL(host_free, "cuMemFreeHost"),
    CALL(pointer_get, "cuPointerGetAttribute"),
    CALL(fill_bytes, "cuMemsetD8_v2"),
    CALL(fill_bytes_async, "cuMemsetD8Async"),
    CALL(module_load, "cuModuleLoadData"),
    CALL(module_unload, "cuModuleUnload"),
    CALL(module_function, "cuModuleGetFunction"),
    CALL(function_get, "cuFuncGetAttribute"),
    CALL(function_set, "cuFuncSetAttribute"),
    {"cuFuncLoad", offsetof(struct cb_driver_calls, function_load), 1},
    CALL(launch, "cuLaunchKernel"),
    {"cuLaunchKernelEx", offsetof(struct cb_driver_calls, launch_with), 1},
    CALL(occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor"),
    CALL(stream_create, "cuStreamCreate"),
    CALL(stream_destroy, "cuStreamDestroy_v2"),
    CALL(stream_synchronize, "cuStreamSynchronize"),
    CALL(stream_query, "cuStreamQuery"),
    CALL(stream_context, "cuStreamGetCtx"),
    CALL(stream_capturing, "cuStreamIsCapturing"),
    CALL(stream_wait, "cuStreamWaitEvent"),
    {"cuStreamBeginCaptureToGraph", offsetof(struct cb_driver_calls, capture_begin), 1},
    {"cuStreamEndCapture", offsetof(struct cb_driver_calls, capture_end), 1},
    {"cuStreamGetCaptureInfo_v3", offsetof(struct cb_driver_calls, capture_info), 1},
    {"cuStreamUpdateCaptureDependencies_v2", offsetof(struct cb_driver_calls, capture_update), 1},
    {"cuGraphCreate", offsetof(struct cb_driver_calls, graph_create), 1},
    {"cuGraphDestroy", offsetof(struct cb_driver_calls, graph_destroy), 1},
    {"cuGraphAddNode_v2", offsetof(struct cb_driver_calls, graph_add), 1},
    {"cuGraphConditionalHandleCreate", offsetof(struct cb_driver_calls, graph_handle), 1},
    {"cuGraphInstantiateWithFlags", offsetof(struct cb_driver_calls, graph_instantiate), 1},
    {"cuGraphExecDestroy", offsetof(struct cb_driver_calls, graph_exec_destroy), 1},
    {"cuGraphLaunch", offsetof(struct cb_driver_calls, graph_launch), 1},
    CALL(event_create, "cuEventCreate"),
    CALL(event_destroy, "cuEventDestroy_v2"),
    CALL(event_record, "cuEventRecord"),
    CALL(event_query, "cuEventQuery"),
    CALL(event_synchronize, "cuEventSynchronize"),
    CALL(event_elapsed, "cuEventElapsedTime"),
    {NULL, 0, 0},
};

int cb_driver_has_conditions(const struct cb_driver *driver) {
  const struct cb_driver_calls *call = &driver->call;
  return driver->version >= 12040 && call->capture_begin && call->capture_end && call->capture_info &&
         call->capture_update && call->graph_create && call->graph_destroy && call->graph_add && call->graph_handle &&
         call->graph_instantiate && call->graph_exec_destroy && call->graph_launch;
}

/* ---- errors */

/* Errors that say what the machine lacks, and what helps. */
static const struct {
  cb_cu_result result;
  const char *remedy;
} lacking[] = {
    {CB_CU_NO_DEVICE, "this machine shows no GPU (look at nvidia-smi and CUDA_VISIBLE_DEVICES)"},
    {CB_CU_STUB_LIBRARY, "this is the toolkit's stub library; install NVIDIA's GPU driver"},
    {CB_CU_SYSTEM_DRIVER_MISMATCH,
     "the driver's library and kernel module differ; reboot or reinstall the driver"},
    {CB_CU_COMPAT_NOT_SUPPORTED, "this GPU does not take a compatibility driver; install the full driver"},
};

static enum cb_status fail_words(const struct cb_driver *driver, cb_cu_result result, struct cb_diag *diag,
                                 const char *what, va_list arguments) {
  const char *words = NULL, *name = NULL;
  char subject[400];
  vsnprintf(subject, sizeof subject, what, arguments);
  if (driver->call.error_string(result, &words) || !words)
    words = "an error that the driver does not describe";
  if (driver->call.error_name(result, &name) || !name) name = "unknown";
  for (size_t i = 0; i < sizeof lacking / sizeof *lacking; i++)
    if (lacking[i].result == result)
      return cb_fail(diag, CB_ERR_MISSING, "cannot %s: %s (%s): %s", subject, words, name, lacking[i].remedy);
  return cb_fail(diag, CB_ERR_DEVICE, "cannot %s: %s (%s)", subject, words, name);
}

enum cb_status cb_driver_check(const struct cb_driver *driver, cb_cu_result result, struct cb_diag *diag,
                               const char *what, ...) {
  va_list arguments;
  if (result == CB_CU_SUCCESS) return CB_OK;
  va_start(arguments, what);
  const enum cb_status s = fail_words(driver, result, diag, what, arguments);
  va_end(arguments);
  return s;
}

/* ---- opening */

static enum cb_status start(struct cb_driver *driver, struct cb_diag *diag) {
  enum cb_status s =
      cb_driver_check(driver, driver->call.init(0), diag,
                      cb_forks() ? "start the CUDA driver in a forked process, whose parent must not have used it"
                                 : "start the CUDA driver");
  if (!s)
    s = cb_driver_check(driver, driver->call.version(&driver->version), diag, "ask the driver's version");
  if (!s) s = cb_driver_check(driver, driver->call.device_count(&driver->devices), diag, "count the GPUs");
  if (!s && driver->devices < 1)
    s = cb_fail(diag, CB_ERR_MISSING, "'%s' knows no GPU; look at nvidia-smi and CUDA_VISIBLE_DEVICES",
                driver->library.path);
  return s;
}

enum cb_status cb_driver_open(struct cb_driver **out, const char *path, struct cb_diag *diag) {
  struct cb_driver *driver = cb_calloc(1, sizeof *driver);
  *out = NULL;
  if (!driver) return cb_fail_memory(diag, "the driver's table", sizeof *driver);
  enum cb_status s =
      cb_library_open(&driver->library, &driver_search, path, cb_driver_symbols, &driver->call, diag);
  if (!s) s = start(driver, diag);
  if (s)
    cb_driver_close(driver);
  else
    *out = driver;
  return s;
}

void cb_driver_close(struct cb_driver *driver) {
  if (!driver) return;
  cb_library_close(&driver->library);
  cb_free(driver);
}

/* ---- the device */

/* The figures to start from: those of the GPU's own architecture, or a relative's. Binaries are made for the GPU's. */
static void take_figures(struct cb_device *device, int number) {
  const struct cb_target *nearest = &cb_architecture_nearest(number)->target;
  struct cb_target *target = &device->target;
  *target = *nearest;
  snprintf(target->arch, sizeof target->arch, "sm_%d", number);
  if (strcmp(target->arch, nearest->arch))
    snprintf(device->relative, sizeof device->relative,
             "%s is not in the table of architectures: plans go by figures of %s until 'cbgen calibrate' has run",
             target->arch, nearest->arch);
}

/* What the driver says of the GPU, beside figures from the table. */
static enum cb_status ask_attributes(struct cb_device *device, struct cb_diag *diag) {
  struct cb_target *target = &device->target;
  int major = 0, minor = 0, l2 = 0, processors = 0, per_sm = 0, per_block = 0;
  const struct {
    unsigned attribute;
    int *value;
  } wanted[] = {
      {CB_CU_COMPUTE_MAJOR, &major}, {CB_CU_COMPUTE_MINOR, &minor},  {CB_CU_MULTIPROCESSORS, &processors},
      {CB_CU_L2_BYTES, &l2},         {CB_CU_SHARED_PER_SM, &per_sm}, {CB_CU_SHARED_PER_BLOCK, &per_block},
  };
  const struct cb_driver *driver = device->driver;
  enum cb_status s = CB_OK;
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted && !s; i++)
    s = cb_driver_check(driver,
                        driver->call.device_attribute(wanted[i].value, wanted[i].attribute, device->handle),
                        diag, "ask attribute %u of GPU %d", wanted[i].attribute, device->ordinal);
  if (s) return s;
  take_figures(device, 10 * major + minor);
  target->multiprocessors = processors;
  target->l2_bytes = l2;
  target->shared_per_sm = per_sm;
  target->shared_per_block = per_block;
  return CB_OK;
}

static enum cb_status describe(struct cb_device *device, struct cb_diag *diag) {
  struct cb_target *target = &device->target;
  const struct cb_driver *driver = device->driver;
  enum cb_status s = ask_attributes(device, diag);
  if (s) return s;
  s = cb_driver_check(driver,
                      driver->call.device_name(target->model, sizeof target->model, device->handle), diag,
                      "ask the name of GPU %d", device->ordinal);
  device->shipped = *target;
  if (!s) cb_calibration_load(target, device->remark, sizeof device->remark);
  return s;
}

/* `context` NULL: the primary one. */
static enum cb_status hold_context(struct cb_device *device, struct CUctx_st *context, struct cb_diag *diag) {
  const struct cb_driver *driver = device->driver;
  size_t free_bytes = 0, total = 0;
  enum cb_status s = CB_OK;
  device->context = context;
  device->borrowed = context != NULL;
  if (!context)
    s = cb_driver_check(driver, driver->call.primary_retain(&device->context, device->handle), diag,
                        "make a context on GPU %d", device->ordinal);
  if (s) {
    device->context = NULL;
    return s;
  }
  s = cb_device_enter(device, diag);
  if (s) return s;
  s = cb_driver_check(driver, driver->call.memory_info(&free_bytes, &total), diag, "ask the memory of GPU %d",
                      device->ordinal);
  device->memory_bytes = (int64_t)total;
  cb_device_leave(device);
  return s;
}

static enum cb_status open_device(struct cb_device **out, const struct cb_driver *driver, int ordinal,
                                  struct CUctx_st *context, struct cb_diag *diag) {
  *out = NULL;
  if (ordinal < 0 || ordinal >= driver->devices)
    return cb_fail(diag, CB_ERR_ARGUMENT, "there is no GPU '%d'; the driver shows %d, counted from 0",
                   ordinal, driver->devices);
  struct cb_device *device = cb_calloc(1, sizeof *device);
  if (!device) return cb_fail_memory(diag, "a device", sizeof *device);
  device->driver = driver;
  device->ordinal = ordinal;
  device->forks = cb_forks();
  enum cb_status s = cb_driver_check(driver, driver->call.device_get(&device->handle, ordinal), diag,
                                     "find GPU %d", ordinal);
  if (!s) s = describe(device, diag);
  if (!s) s = hold_context(device, context, diag);
  if (s)
    cb_device_close(device);
  else
    *out = device;
  return s;
}

enum cb_status cb_device_open(struct cb_device **out, const struct cb_driver *driver, int ordinal,
                              struct cb_diag *diag) {
  return open_device(out, driver, ordinal, NULL, diag);
}

/* The number of the GPU with this handle. */
static enum cb_status find_ordinal(int *ordinal, const struct cb_driver *driver, int handle, struct cb_diag *diag) {
  for (*ordinal = 0; *ordinal < driver->devices; ++*ordinal) {
    int other = -1;
    const enum cb_status s =
        cb_driver_check(driver, driver->call.device_get(&other, *ordinal), diag, "find GPU %d", *ordinal);
    if (s || other == handle) return s;
  }
  return cb_fail(diag, CB_ERR_DEVICE, "the current CUDA context is on a GPU that the driver does not list");
}

enum cb_status cb_device_open_current(struct cb_device **out, const struct cb_driver *driver,
                                      struct cb_diag *diag) {
  struct CUctx_st *context = NULL;
  int handle = 0, ordinal = 0;
  *out = NULL;
  enum cb_status s = CB_OK;
  s = cb_driver_check(driver, driver->call.context_current(&context), diag, "ask for the current CUDA context");
  if (!s && context)
    s = cb_driver_check(driver, driver->call.context_device(&handle), diag, "ask for the GPU of the CUDA context");
  if (!s && context) s = find_ordinal(&ordinal, driver, handle, diag);
  return s ? s : open_device(out, driver, ordinal, context, diag);
}

void cb_device_close(struct cb_device *device) {
  if (!device) return;
  if (device->context && !device->borrowed && cb_device_is_own(device))
    device->driver->call.primary_release(device->handle);
  cb_free(device);
}

int cb_device_is_own(const struct cb_device *device) {
  return device->forks == cb_forks();
}

enum cb_status cb_device_enter(const struct cb_device *device, struct cb_diag *diag) {
  if (!cb_device_is_own(device))
    return cb_fail(diag, CB_ERR_DEVICE,
                   "GPU %d was opened before this process was forked, and CUDA works in the parent only; open it after "
                   "the fork, or start the process anew (spawn)",
                   device->ordinal);
  return cb_driver_check(device->driver, device->driver->call.context_push(device->context), diag,
                         "make the context of GPU %d current", device->ordinal);
}

void cb_device_leave(const struct cb_device *device) {
  struct CUctx_st *popped = NULL;
  device->driver->call.context_pop(&popped);
}

int cb_device_is_current(const struct cb_device *device) {
  struct CUctx_st *context = NULL;
  if (!cb_device_is_own(device)) return 0;
  return device->driver->call.context_current(&context) == CB_CU_SUCCESS && context == device->context;
}

enum cb_status cb_device_enter_once(const struct cb_device *device, int *entered, struct cb_diag *diag) {
  *entered = !cb_device_is_current(device);
  return *entered ? cb_device_enter(device, diag) : CB_OK;
}

/* ---- memory */

enum cb_status cb_device_alloc(const struct cb_device *device, cb_device_ptr *address, size_t bytes,
                               const char *what, struct cb_diag *diag) {
  return device->memory ? cb_memory_alloc(device, address, bytes, what, diag)
                        : cb_device_alloc_plain(device, address, bytes, what, diag);
}

uint64_t cb_device_available(const struct cb_device *device) {
  size_t available = 0, total = 0;
  if (device->driver->call.memory_info(&available, &total)) return 0;
  const uint64_t room = (uint64_t)cb_memory_room(device->memory);
  return available < room ? available : room;
}

enum cb_status cb_device_alloc_plain(const struct cb_device *device, cb_device_ptr *address, size_t bytes,
                                     const char *what, struct cb_diag *diag) {
  const struct cb_driver *driver = device->driver;
  const cb_cu_result result = driver->call.memory_alloc(address, bytes ? bytes : 1);
  if (result == CB_CU_SUCCESS) return CB_OK;
  *address = 0;
  if (result == CB_CU_OUT_OF_MEMORY)
    return cb_fail(diag, CB_ERR_MEMORY, "out of memory on GPU %d for '%s' (%zu bytes)", device->ordinal, what,
                   bytes);
  return cb_driver_check(driver, result, diag, "allocate %zu bytes on GPU %d for '%s'", bytes,
                         device->ordinal, what);
}

enum cb_status cb_device_check_room(const struct cb_device *device, uint64_t bytes, const char *what,
                                    struct cb_diag *diag) {
  size_t available = 0, total = 0;
  enum cb_status s = cb_device_enter(device, diag);
  if (s) return s;
  s = cb_driver_check(device->driver, device->driver->call.memory_info(&available, &total), diag,
                      "ask the memory of GPU %d", device->ordinal);
  cb_device_leave(device);
  if (s || bytes <= available || cb_memory_has_source(device->memory)) return s; /* a pool has memory of its own */
  return cb_fail(diag, CB_ERR_MEMORY,
                 "out of memory on GPU %d: %s takes %llu MB, and %zu MB of %zu MB are free: end other programs there, or "
                 "take a GPU with more",
                 device->ordinal, what, (unsigned long long)(bytes >> 20), available >> 20, total >> 20);
}

void cb_device_free(const struct cb_device *device, cb_device_ptr address) {
  if (address && !(device->memory && cb_memory_release(device, address))) device->driver->call.memory_free(address);
}

enum cb_status cb_device_borrow(const struct cb_device *device, cb_device_ptr *address, size_t bytes, const char *what,
                                struct cb_diag *diag) {
  return device->memory ? cb_memory_borrow(device, address, bytes, what, diag)
                        : cb_device_alloc_plain(device, address, bytes, what, diag);
}

enum cb_status cb_device_take(const struct cb_device *device, cb_device_ptr *address, size_t bytes, const char *what,
                              struct cb_diag *diag) {
  return device->memory ? cb_memory_take(device, address, bytes, what, diag)
                        : cb_device_alloc_plain(device, address, bytes, what, diag);
}

void cb_device_give_back(const struct cb_device *device, cb_device_ptr address) {
  if (address && !(device->memory && cb_memory_keep(device, address))) cb_device_free(device, address);
}

int cb_device_keeps(const struct cb_device *device, cb_device_ptr address) {
  return address && device->memory && cb_memory_keeps(device, address);
}

static enum cb_status copy_in(const struct cb_device *device, cb_device_ptr to, const void *from, size_t bytes,
                              int waits, const char *what, struct cb_diag *diag) {
  const struct cb_driver_calls *call = &device->driver->call;
  cb_cu_result result = call->copy_to_device(to, from, bytes);
  if (!result && waits) result = call->stream_synchronize(NULL);
  return cb_driver_check(device->driver, result, diag, "copy '%s' to GPU %d", what, device->ordinal);
}

/* The driver's copy from pageable memory may return while the last bytes are still on their way, and streams that do
 * not wait for the default stream would not wait for them. */
enum cb_status cb_device_copy_in(const struct cb_device *device, cb_device_ptr to, const void *from, size_t bytes,
                                 const char *what, struct cb_diag *diag) {
  return copy_in(device, to, from, bytes, 1, what, diag);
}

static enum cb_status upload(const struct cb_device *device, cb_device_ptr to, const void *from, size_t bytes,
                             int waits, const char *what, struct cb_diag *diag) {
  if (!bytes) return CB_OK;
  if (device->staging && cb_staging_wants(device->staging, from, bytes))
    return cb_staging_upload(device->staging, to, from, bytes, what, diag);
  return copy_in(device, to, from, bytes, waits, what, diag);
}

enum cb_status cb_device_upload(const struct cb_device *device, cb_device_ptr to, const void *from,
                                size_t bytes, const char *what, struct cb_diag *diag) {
  return upload(device, to, from, bytes, 1, what, diag);
}

enum cb_status cb_device_upload_later(const struct cb_device *device, cb_device_ptr to, const void *from, size_t bytes,
                                      const char *what, struct cb_diag *diag) {
  return upload(device, to, from, bytes, 0, what, diag);
}

enum cb_status cb_device_download(const struct cb_device *device, void *to, cb_device_ptr from, size_t bytes,
                                  const char *what, struct cb_diag *diag) {
  if (!bytes) return CB_OK;
  return cb_driver_check(device->driver, device->driver->call.copy_to_host(to, from, bytes), diag,
                         "copy '%s' from GPU %d", what, device->ordinal);
}

enum cb_status cb_device_fill(const struct cb_device *device, cb_device_ptr to, unsigned char byte,
                              size_t bytes, struct cb_diag *diag) {
  const struct cb_driver_calls *call = &device->driver->call;
  if (!bytes) return CB_OK;
  cb_cu_result result = call->fill_bytes(to, byte, bytes);
  if (!result) result = call->stream_synchronize(NULL);
  return cb_driver_check(device->driver, result, diag, "fill memory of GPU %d", device->ordinal);
}

enum cb_status cb_device_fill_later(const struct cb_device *device, cb_device_ptr to, unsigned char byte,
                                    size_t bytes, struct cb_diag *diag) {
  if (!bytes) return CB_OK;
  return cb_driver_check(device->driver, device->driver->call.fill_bytes_async(to, byte, bytes, NULL), diag,
                         "fill memory of GPU %d", device->ordinal);
}

enum cb_status cb_device_separate(const struct cb_device *device, cb_device_ptr word, struct CUstream_st *stream,
                                  struct cb_diag *diag) {
  return cb_driver_check(device->driver, device->driver->call.fill_bytes_async(word, 0, 4, stream), diag,
                         "fill memory of GPU %d", device->ordinal);
}

enum cb_status cb_device_wait(const struct cb_device *device, const char *what, struct cb_diag *diag) {
  return cb_driver_check(device->driver, device->driver->call.context_synchronize(), diag,
                         "finish %s on GPU %d", what, device->ordinal);
}

/* ---- kernels */

enum cb_status cb_driver_find_kernel(const struct cb_driver *driver, struct CUfunc_st **function,
                                     struct CUmod_st *module, const char *name, struct cb_diag *diag) {
  const enum cb_status s = cb_driver_check(driver, driver->call.module_function(function, module, name), diag,
                                           "find kernel '%s'", name);
  if (s || !driver->call.function_load) return s;
  return cb_driver_check(driver, driver->call.function_load(*function), diag, "load kernel '%s'", name);
}

enum cb_status cb_driver_note_registers(const struct cb_driver *driver, int *registers, int *local_bytes,
                                        struct CUfunc_st *function, const char *name, struct cb_diag *diag) {
  int own = 0, local = 0;
  enum cb_status s = cb_driver_check(driver, driver->call.function_get(&own, CB_CU_FUNC_REGISTERS, function), diag,
                                     "ask the registers of kernel '%s'", name);
  if (!s)
    s = cb_driver_check(driver, driver->call.function_get(&local, CB_CU_FUNC_LOCAL_BYTES, function), diag,
                        "ask the local memory of kernel '%s'", name);
  if (own > *registers) *registers = own;
  if (local > *local_bytes) *local_bytes = local;
  return s;
}

int cb_device_overlaps(const struct cb_device *device) {
  return device->driver->call.launch_with && strtol(device->target.arch + 3, NULL, 10) >= 90;
}

cb_cu_result cb_driver_launch(const struct cb_driver *driver, struct CUfunc_st *function, struct cb_cu_launch launch,
                              int overlaps, void **parameters) {
  struct cb_cu_launch_attribute attribute = {.id = CB_CU_LAUNCH_OVERLAP, .value.allowed = 1};
  launch.attributes = &attribute;
  launch.attributes_count = 1;
  if (overlaps) return driver->call.launch_with(&launch, function, parameters, NULL);
  return driver->call.launch(function, launch.grid[0], launch.grid[1], launch.grid[2], launch.block[0],
                             launch.block[1], launch.block[2], launch.shared_bytes, launch.stream, parameters, NULL);
}
