// SPDX-License-Identifier: Apache-2.0
/* The CUDA driver, for what the adapter does itself: memory in which vectors of the host are staged, and copies. Opened
 * at run time, as cbgen opens it, so that the plug-in loads where there is no GPU. */
#include "adapter.h"

#if PetscDefined(HAVE_CUDA)
#include <petscdevice_cuda.h>
#endif

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t device_pointer;

static struct {
  void *library;
  PetscBool opened, own_context; /* own_context: none was current, so that ours is pushed and popped */
  int device; /* the driver's handle of the GPU */
  char name[16];
  void *context;
  void *side, *begin, *end; /* the stream beside PETSc's, and events that order the two */
  struct {
    void *memory;
    size_t bytes;
  } stages[CBP_STAGES];

  int (*init)(unsigned);
  int (*device_get_count)(int *);
  int (*device_get)(int *, int);
  int (*context_get_current)(void **);
  int (*context_push)(void *);
  int (*context_pop)(void **);
  int (*primary_retain)(void **, int);
  int (*primary_release)(int);
  int (*allocate)(device_pointer *, size_t);
  int (*release)(device_pointer);
  int (*put)(device_pointer, const void *, size_t, void *);
  int (*take)(void *, device_pointer, size_t, void *);
  int (*copy)(device_pointer, device_pointer, size_t, void *);
  int (*synchronize)(void *);
  int (*stream_create)(void **, unsigned);
  int (*stream_destroy)(void *);
  int (*event_create)(void **, unsigned);
  int (*event_destroy)(void *);
  int (*event_record)(void *, void *);
  int (*stream_wait)(void *, void *, unsigned);
  int (*error_string)(int, const char **);
} gpu;

static const struct {
  const char *name;
  void *place;
} functions[] = {
    {"cuInit", &gpu.init},
    {"cuDeviceGetCount", &gpu.device_get_count},
    {"cuDeviceGet", &gpu.device_get},
    {"cuCtxGetCurrent", &gpu.context_get_current},
    {"cuCtxPushCurrent_v2", &gpu.context_push},
    {"cuCtxPopCurrent_v2", &gpu.context_pop},
    {"cuDevicePrimaryCtxRetain", &gpu.primary_retain},
    {"cuDevicePrimaryCtxRelease_v2", &gpu.primary_release},
    {"cuMemAlloc_v2", &gpu.allocate},
    {"cuMemFree_v2", &gpu.release},
    {"cuMemcpyHtoDAsync_v2", &gpu.put},
    {"cuMemcpyDtoHAsync_v2", &gpu.take},
    {"cuMemcpyDtoDAsync_v2", &gpu.copy},
    {"cuStreamSynchronize", &gpu.synchronize},
    {"cuStreamCreate", &gpu.stream_create},
    {"cuStreamDestroy_v2", &gpu.stream_destroy},
    {"cuEventCreate", &gpu.event_create},
    {"cuEventDestroy_v2", &gpu.event_destroy},
    {"cuEventRecord", &gpu.event_record},
    {"cuStreamWaitEvent", &gpu.stream_wait},
    {"cuGetErrorString", &gpu.error_string},
};

static const char *words_of(int result) {
  const char *words = NULL;
  if (gpu.error_string) (void)gpu.error_string(result, &words);
  return words ? words : "unknown error";
}

#define CHECK_CUDA(call) \
  do { \
    const int cuda_result = (call); \
    PetscCheck(!cuda_result, PETSC_COMM_SELF, cuda_result == 2 ? PETSC_ERR_MEM : PETSC_ERR_GPU, \
               "CUDA: %s (error %d)", words_of(cuda_result), cuda_result); \
  } while (0)

int cbp_error_code(cbgen_status status) {
  switch (status) {
  case CBGEN_OK: return PETSC_SUCCESS;
  case CBGEN_ERROR_ARGUMENT: return PETSC_ERR_ARG_WRONG;
  case CBGEN_ERROR_UNSUPPORTED: return PETSC_ERR_SUP;
  case CBGEN_ERROR_LIMIT: return PETSC_ERR_ARG_OUTOFRANGE;
  case CBGEN_ERROR_MEMORY: return PETSC_ERR_MEM;
  case CBGEN_ERROR_MISSING:
  case CBGEN_ERROR_DEVICE: return PETSC_ERR_GPU;
  default: return PETSC_ERR_LIB;
  }
}

void *cbp_stream(void) {
#if PetscDefined(HAVE_CUDA)
  return PetscDefaultCudaStream;
#else
  return NULL;
#endif
}

/* PETSc may run on ranks of one node that have never met in a collective call, so the launcher is asked. */
static int local_rank(void) {
  static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK",
                                      "SLURM_LOCALID"};
  PetscMPIInt rank = 0;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *const value = getenv(names[i]);
    if (value && *value) return atoi(value);
  }
  (void)MPI_Comm_rank(PETSC_COMM_WORLD, &rank);
  return (int)rank;
}

/* Whether the driver is there with a GPU; what is missing is for cbgen to say. */
static PetscBool find_driver(void) {
  const char *const path = getenv("CBGEN_LIBCUDA");
  int count = 0;
  if (!gpu.library) gpu.library = dlopen(path && *path ? path : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!gpu.library) return PETSC_FALSE;
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    void *const symbol = dlsym(gpu.library, functions[i].name);
    if (!symbol) return PETSC_FALSE;
    memcpy(functions[i].place, &symbol, sizeof symbol);
  }
  return !gpu.init(0) && !gpu.device_get_count(&count) && count > 0 ? PETSC_TRUE : PETSC_FALSE;
}

PetscErrorCode cbp_device_open(PetscInt device, const char **device_name) {
  int count = 0;
  PetscFunctionBegin;
  *device_name = gpu.opened ? gpu.name : "current";
  if (gpu.opened || !find_driver()) PetscFunctionReturn(PETSC_SUCCESS);
  CHECK_CUDA(gpu.context_get_current(&gpu.context));
  gpu.own_context = gpu.context ? PETSC_FALSE : PETSC_TRUE;
  PetscCall(PetscStrncpy(gpu.name, "current", sizeof gpu.name));
  if (gpu.own_context) {
    CHECK_CUDA(gpu.device_get_count(&count));
    const int number = device >= 0 ? (int)device : local_rank() % count;
    PetscCheck(number < count, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
               "-mat_cbgen_device %d: there are %d GPUs, numbered from 0", number, count);
    CHECK_CUDA(gpu.device_get(&gpu.device, number));
    CHECK_CUDA(gpu.primary_retain(&gpu.context, gpu.device));
    PetscCall(PetscSNPrintf(gpu.name, sizeof gpu.name, "%d", number));
  }
  gpu.opened = PETSC_TRUE;
  *device_name = gpu.name;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_device_enter(void) {
  PetscFunctionBegin;
  PetscCheck(gpu.opened, PETSC_COMM_SELF, PETSC_ERR_GPU, "there is no CUDA driver with a GPU");
  if (gpu.own_context) CHECK_CUDA(gpu.context_push(gpu.context));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_device_leave(void) {
  void *context;
  PetscFunctionBegin;
  if (gpu.own_context) CHECK_CUDA(gpu.context_pop(&context));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_device_allocate(size_t bytes, void **memory) {
  device_pointer address = 0;
  PetscFunctionBegin;
  *memory = NULL;
  CHECK_CUDA(gpu.allocate(&address, bytes ? bytes : 1));
  *memory = (void *)(uintptr_t)address;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_device_free(void *memory) {
  PetscFunctionBegin;
  if (memory) CHECK_CUDA(gpu.release((device_pointer)(uintptr_t)memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_device_stage(cbp_stage stage, size_t bytes, void **memory) {
  PetscFunctionBegin;
  if (!gpu.stages[stage].memory || gpu.stages[stage].bytes < bytes) {
    PetscCall(cbp_device_free(gpu.stages[stage].memory));
    gpu.stages[stage].memory = NULL;
    PetscCall(cbp_device_allocate(bytes, &gpu.stages[stage].memory));
    gpu.stages[stage].bytes = bytes;
  }
  *memory = gpu.stages[stage].memory;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_device_fork(void **stream) {
  enum { NON_BLOCKING = 1, WITHOUT_TIMES = 2 };
  PetscFunctionBegin;
  if (!gpu.side) CHECK_CUDA(gpu.stream_create(&gpu.side, NON_BLOCKING));
  if (!gpu.begin) CHECK_CUDA(gpu.event_create(&gpu.begin, WITHOUT_TIMES));
  if (!gpu.end) CHECK_CUDA(gpu.event_create(&gpu.end, WITHOUT_TIMES));
  CHECK_CUDA(gpu.event_record(gpu.begin, cbp_stream()));
  CHECK_CUDA(gpu.stream_wait(gpu.side, gpu.begin, 0));
  *stream = gpu.side;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_device_join(void) {
  PetscFunctionBegin;
  CHECK_CUDA(gpu.event_record(gpu.end, gpu.side));
  CHECK_CUDA(gpu.stream_wait(cbp_stream(), gpu.end, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_device_put(void *to, const void *from, size_t bytes, void *stream) {
  PetscFunctionBegin;
  if (bytes) CHECK_CUDA(gpu.put((device_pointer)(uintptr_t)to, from, bytes, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_device_take(void *to, const void *from, size_t bytes, void *stream) {
  PetscFunctionBegin;
  if (bytes) CHECK_CUDA(gpu.take(to, (device_pointer)(uintptr_t)from, bytes, stream));
  CHECK_CUDA(gpu.synchronize(stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_device_copy(void *to, const void *from, size_t bytes, void *stream) {
  PetscFunctionBegin;
  if (bytes)
    CHECK_CUDA(gpu.copy((device_pointer)(uintptr_t)to, (device_pointer)(uintptr_t)from, bytes, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_device_close(void) {
  PetscFunctionBegin;
  if (!gpu.opened) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(cbp_device_enter());
  for (int stage = 0; stage < CBP_STAGES; stage++) {
    PetscCall(cbp_device_free(gpu.stages[stage].memory));
    gpu.stages[stage].memory = NULL;
  }
  if (gpu.side) CHECK_CUDA(gpu.stream_destroy(gpu.side));
  if (gpu.begin) CHECK_CUDA(gpu.event_destroy(gpu.begin));
  if (gpu.end) CHECK_CUDA(gpu.event_destroy(gpu.end));
  gpu.side = gpu.begin = gpu.end = NULL;
  cbgen_trim();
  PetscCall(cbp_device_leave());
  if (gpu.own_context) CHECK_CUDA(gpu.primary_release(gpu.device));
  gpu.opened = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- vectors */

static PetscErrorCode get_array(struct cbp_vector *v) {
  PetscMemType type = PETSC_MEMTYPE_HOST;
  PetscFunctionBegin;
#if PetscDefined(HAVE_CUDA)
  PetscBool bound;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)v->vector, &v->cuda, VECSEQCUDA, VECMPICUDA, VECCUDA, ""));
  PetscCall(VecBoundToCPU(v->vector, &bound));
  if (bound) v->cuda = PETSC_FALSE;
  if (v->cuda) {
    if (v->access == CBP_READ) PetscCall(VecCUDAGetArrayRead(v->vector, (const PetscScalar **)&v->array));
    if (v->access == CBP_WRITE) PetscCall(VecCUDAGetArrayWrite(v->vector, &v->array));
    if (v->access == CBP_READ_WRITE) PetscCall(VecCUDAGetArray(v->vector, &v->array));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  if (v->access == CBP_READ)
    PetscCall(VecGetArrayReadAndMemType(v->vector, (const PetscScalar **)&v->array, &type));
  if (v->access == CBP_WRITE) PetscCall(VecGetArrayWriteAndMemType(v->vector, &v->array, &type));
  if (v->access == CBP_READ_WRITE) PetscCall(VecGetArrayAndMemType(v->vector, &v->array, &type));
  v->host = PetscMemTypeHost(type) ? PETSC_TRUE : PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode restore_array(struct cbp_vector *v) {
  PetscFunctionBegin;
#if PetscDefined(HAVE_CUDA)
  if (v->cuda) {
    if (v->access == CBP_READ) PetscCall(VecCUDARestoreArrayRead(v->vector, (const PetscScalar **)&v->array));
    if (v->access == CBP_WRITE) PetscCall(VecCUDARestoreArrayWrite(v->vector, &v->array));
    if (v->access == CBP_READ_WRITE) PetscCall(VecCUDARestoreArray(v->vector, &v->array));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  if (v->access == CBP_READ) PetscCall(VecRestoreArrayReadAndMemType(v->vector, (const PetscScalar **)&v->array));
  if (v->access == CBP_WRITE) PetscCall(VecRestoreArrayWriteAndMemType(v->vector, &v->array));
  if (v->access == CBP_READ_WRITE) PetscCall(VecRestoreArrayAndMemType(v->vector, &v->array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_vector_open(struct cbp_vector *v, Vec vector, int access, cbp_stage stage, void *stream) {
  PetscInt length;
  PetscFunctionBegin;
  *v = (struct cbp_vector){.vector = vector, .access = access, .stream = stream};
  PetscCall(VecGetLocalSize(vector, &length));
  v->bytes = (size_t)length * sizeof(PetscScalar);
  PetscCall(get_array(v));
  v->pointer = v->array;
  if (!v->host) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(cbp_device_stage(stage, v->bytes, &v->pointer));
  if (access != CBP_WRITE) PetscCall(cbp_device_put(v->pointer, v->array, v->bytes, stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_vector_close(struct cbp_vector *v) {
  PetscFunctionBegin;
  if (v->host && v->access != CBP_READ) PetscCall(cbp_device_take(v->array, v->pointer, v->bytes, v->stream));
  PetscCall(restore_array(v));
  PetscFunctionReturn(PETSC_SUCCESS);
}
