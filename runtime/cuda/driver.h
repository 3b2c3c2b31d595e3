// SPDX-License-Identifier: Apache-2.0
/* The CUDA driver, opened at run time, and one GPU of it.
 *
 *   cb_driver_open                 libcuda.so.1, cuInit
 *   cb_device_open                 a GPU: its primary context, its cb_target
 *   cb_device_enter / _leave       make its context the calling thread's, and restore what was there
 *   cb_device_alloc, _upload, …    memory; each needs the context to be current
 *
 * Every call of the driver goes through the table `struct cb_driver_calls`, so a test can put another library
 * in its place (the path given, or $CBGEN_LIBCUDA). The prototypes are those of cuda.h, written down here
 * because the build does without it; tests/cuda_abi.c compares them with the real header where there is one.
 */
#ifndef CBGEN_RUNTIME_CUDA_DRIVER_H
#define CBGEN_RUNTIME_CUDA_DRIVER_H

#include "analysis/target.h"
#include "base/status.h"
#include "runtime/cuda/library.h"

#include <stddef.h>
#include <stdint.h>

/* cuda.h's opaque types by their tags; its enumerations are int-sized and unsigned with gcc and clang. */
struct CUctx_st;
struct CUmod_st;
struct CUfunc_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphNode_st;
struct CUgraphExec_st;
struct CUgraphEdgeData_st;
typedef unsigned cb_cu_result;            /* CUresult */
typedef unsigned long long cb_device_ptr; /* CUdeviceptr */

enum {
  CB_CU_SUCCESS = 0,
  CB_CU_OUT_OF_MEMORY = 2,
  CB_CU_STUB_LIBRARY = 34,
  CB_CU_NO_DEVICE = 100,
  CB_CU_INVALID_DEVICE = 101,
  CB_CU_NO_BINARY_FOR_GPU = 209,
  CB_CU_SYSTEM_DRIVER_MISMATCH = 803,
  CB_CU_COMPAT_NOT_SUPPORTED = 804
};

/* CUdevice_attribute */
enum {
  CB_CU_WARP_SIZE = 10,
  CB_CU_MULTIPROCESSORS = 16,
  CB_CU_L2_BYTES = 38,
  CB_CU_COMPUTE_MAJOR = 75,
  CB_CU_COMPUTE_MINOR = 76,
  CB_CU_SHARED_PER_SM = 81,
  CB_CU_SHARED_PER_BLOCK = 97
};

/* CUfunction_attribute */
enum {
  CB_CU_FUNC_STATIC_SHARED = 1,
  CB_CU_FUNC_LOCAL_BYTES = 3,
  CB_CU_FUNC_REGISTERS = 4,
  CB_CU_FUNC_MAX_DYNAMIC_SHARED = 8,
  CB_CU_FUNC_ANY_CLUSTER_SIZE = 14 /* CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED */
};

enum { CB_CU_STREAM_NON_BLOCKING = 1, CB_CU_EVENT_NO_TIMING = 2 };

/* CUpointer_attribute, CUmemorytype */
enum {
  CB_CU_POINTER_CONTEXT = 1,
  CB_CU_POINTER_MEMORY_TYPE = 2,
  CB_CU_POINTER_IS_MANAGED = 8,
  CB_CU_POINTER_ORDINAL = 9
};
enum { CB_CU_MEMORY_HOST = 1, CB_CU_MEMORY_DEVICE = 2 };

/* CUstreamCaptureStatus: 0 when the stream is not being captured */
enum { CB_CU_CAPTURE_NONE = 0, CB_CU_CAPTURE_ACTIVE = 1, CB_CU_CAPTURE_INVALIDATED = 2 };

/* CUlaunchAttribute: 8 bytes of which 4 are the id, then a value of 64; CUlaunchConfig. */
enum {
  CB_CU_LAUNCH_COOPERATIVE = 2, /* CU_LAUNCH_ATTRIBUTE_COOPERATIVE */
  CB_CU_LAUNCH_CLUSTER = 4,     /* CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION */
  CB_CU_LAUNCH_OVERLAP = 6      /* CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION */
};
struct cb_cu_launch_attribute {
  unsigned id;
  char pad[4];
  union {
    char bytes[64];
    int allowed;
    unsigned cluster[3];
  } value;
};
struct cb_cu_launch {
  unsigned grid[3], block[3], shared_bytes;
  struct CUstream_st *stream;
  struct cb_cu_launch_attribute *attributes;
  unsigned attributes_count;
};

/* CUstreamCaptureMode, CUstreamUpdateCaptureDependencies_flags, CUgraphNodeType, CUgraphConditionalNodeType */
enum { CB_CU_CAPTURE_OF_THREAD = 1, CB_CU_SET_DEPENDENCIES = 1, CB_CU_NODE_CONDITIONAL = 13, CB_CU_WHILE = 1 };
enum { CB_CU_ASSIGN_DEFAULT = 1 };

/* CUgraphNodeParams of a conditional node. */
struct cb_cu_node {
  int type;
  int reserved[3];
  union {
    long long bytes[29];
    struct {
      uint64_t handle;
      unsigned type, size;
      struct CUgraph_st **graphs; /* that the driver makes */
      struct CUctx_st *context;
    } conditional;
  } value;
  long long reserved_too;
};

struct cb_driver_calls {
  cb_cu_result (*init)(unsigned flags);
  cb_cu_result (*version)(int *version);
  cb_cu_result (*error_string)(cb_cu_result error, const char **text);
  cb_cu_result (*error_name)(cb_cu_result error, const char **text);
  cb_cu_result (*device_count)(int *count);
  cb_cu_result (*device_get)(int *device, int ordinal);
  cb_cu_result (*device_name)(char *name, int length, int device);
  cb_cu_result (*device_attribute)(int *value, unsigned attribute, int device);
  cb_cu_result (*primary_retain)(struct CUctx_st **context, int device);
  cb_cu_result (*primary_release)(int device);
  cb_cu_result (*context_push)(struct CUctx_st *context);
  cb_cu_result (*context_pop)(struct CUctx_st **context);
  cb_cu_result (*context_synchronize)(void);
  cb_cu_result (*context_current)(struct CUctx_st **context); /* NULL when the thread has none */
  cb_cu_result (*context_device)(int *device);                /* of the current context */
  cb_cu_result (*context_id)(struct CUctx_st *context, unsigned long long *id); /* since CUDA 12.0; else NULL */
  cb_cu_result (*memory_info)(size_t *free_bytes, size_t *total);
  cb_cu_result (*memory_alloc)(cb_device_ptr *address, size_t bytes);
  cb_cu_result (*memory_free)(cb_device_ptr address);
  cb_cu_result (*copy_to_device)(cb_device_ptr to, const void *from, size_t bytes);
  cb_cu_result (*copy_to_host)(void *to, cb_device_ptr from, size_t bytes);
  cb_cu_result (*copy_on_device)(cb_device_ptr to, cb_device_ptr from, size_t bytes,
                                 struct CUstream_st *stream);
  cb_cu_result (*copy_to_device_async)(cb_device_ptr to, const void *from, size_t bytes,
                                       struct CUstream_st *stream);
  cb_cu_result (*copy_to_host_async)(void *to, cb_device_ptr from, size_t bytes, struct CUstream_st *stream);
  cb_cu_result (*host_alloc)(void **pointer, size_t bytes, unsigned flags); /* pinned */
  cb_cu_result (*host_free)(void *pointer);
  cb_cu_result (*pointer_get)(void *value, unsigned attribute, cb_device_ptr pointer);
  cb_cu_result (*fill_bytes)(cb_device_ptr to, unsigned char byte, size_t bytes);
  cb_cu_result (*fill_bytes_async)(cb_device_ptr to, unsigned char byte, size_t bytes,
                                   struct CUstream_st *stream);
  cb_cu_result (*module_load)(struct CUmod_st **module, const void *image);
  cb_cu_result (*module_unload)(struct CUmod_st *module);
  cb_cu_result (*module_function)(struct CUfunc_st **function, struct CUmod_st *module, const char *name);
  cb_cu_result (*function_get)(int *value, unsigned attribute, struct CUfunc_st *function);
  cb_cu_result (*function_set)(struct CUfunc_st *function, unsigned attribute, int value);
  cb_cu_result (*function_load)(struct CUfunc_st *function); /* since CUDA 12.4; else NULL */
  cb_cu_result (*launch)(struct CUfunc_st *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                         unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                         struct CUstream_st *stream, void **parameters, void **extra);
  cb_cu_result (*launch_with)(const struct cb_cu_launch *launch, struct CUfunc_st *function, void **parameters,
                              void **extra); /* since CUDA 11.8; else NULL */
  cb_cu_result (*occupancy)(int *blocks, struct CUfunc_st *function, int threads, size_t shared_bytes);
  cb_cu_result (*stream_create)(struct CUstream_st **stream, unsigned flags);
  cb_cu_result (*stream_destroy)(struct CUstream_st *stream);
  cb_cu_result (*stream_synchronize)(struct CUstream_st *stream);
  cb_cu_result (*stream_query)(struct CUstream_st *stream);
  cb_cu_result (*stream_context)(struct CUstream_st *stream, struct CUctx_st **context);
  cb_cu_result (*stream_capturing)(struct CUstream_st *stream, unsigned *status);
  cb_cu_result (*stream_wait)(struct CUstream_st *stream, struct CUevent_st *event, unsigned flags);
  /* Those of graphs, which come with CUDA 12.4: else NULL. */
  cb_cu_result (*capture_begin)(struct CUstream_st *stream, struct CUgraph_st *graph,
                                const struct CUgraphNode_st *const *dependencies,
                                const struct CUgraphEdgeData_st *edges, size_t count, unsigned mode);
  cb_cu_result (*capture_end)(struct CUstream_st *stream, struct CUgraph_st **graph);
  cb_cu_result (*capture_info)(struct CUstream_st *stream, unsigned *status, unsigned long long *id,
                               struct CUgraph_st **graph, struct CUgraphNode_st *const **dependencies,
                               const struct CUgraphEdgeData_st **edges, size_t *count);
  cb_cu_result (*capture_update)(struct CUstream_st *stream, struct CUgraphNode_st **dependencies,
                                 const struct CUgraphEdgeData_st *edges, size_t count, unsigned flags);
  cb_cu_result (*graph_create)(struct CUgraph_st **graph, unsigned flags);
  cb_cu_result (*graph_destroy)(struct CUgraph_st *graph);
  cb_cu_result (*graph_add)(struct CUgraphNode_st **node, struct CUgraph_st *graph,
                            struct CUgraphNode_st *const *dependencies, const struct CUgraphEdgeData_st *edges,
                            size_t count, struct cb_cu_node *parameters);
  cb_cu_result (*graph_handle)(uint64_t *handle, struct CUgraph_st *graph, struct CUctx_st *context,
                               unsigned value, unsigned flags);
  cb_cu_result (*graph_instantiate)(struct CUgraphExec_st **exec, struct CUgraph_st *graph, unsigned long long flags);
  cb_cu_result (*graph_exec_destroy)(struct CUgraphExec_st *exec);
  cb_cu_result (*graph_launch)(struct CUgraphExec_st *exec, struct CUstream_st *stream);
  cb_cu_result (*event_create)(struct CUevent_st **event, unsigned flags);
  cb_cu_result (*event_destroy)(struct CUevent_st *event);
  cb_cu_result (*event_record)(struct CUevent_st *event, struct CUstream_st *stream);
  cb_cu_result (*event_query)(struct CUevent_st *event);
  cb_cu_result (*event_synchronize)(struct CUevent_st *event);
  cb_cu_result (*event_elapsed)(float *milliseconds, struct CUevent_st *start, struct CUevent_st *end);
};

/* The names behind the pointers, in order; ends with a NULL name. */
extern const struct cb_library_symbol cb_driver_symbols[];

/* Whether the driver has graphs with conditional nodes: all of those calls. */
struct cb_driver;
int cb_driver_has_conditions(const struct cb_driver *driver);

struct cb_driver {
  struct cb_library library;
  struct cb_driver_calls call;
  int version; /* of the CUDA it speaks: 13000 is 13.0 */
  int devices;
};

/* Opens libcuda and initialises it. `path` NULL: $CBGEN_LIBCUDA, else libcuda.so.1. CB_ERR_MISSING: no
 * driver, or a driver without a GPU. */
enum cb_status cb_driver_open(struct cb_driver **driver, const char *path, struct cb_diag *diag);
void cb_driver_close(struct cb_driver *driver); /* after its devices; NULL is accepted */

/* Turns a driver's error into a status: "cannot WHAT: its words (ITS_NAME)". CB_OK stays CB_OK. */
enum cb_status cb_driver_check(const struct cb_driver *driver, cb_cu_result result, struct cb_diag *diag,
                               const char *what, ...) __attribute__((format(printf, 4, 5)));

struct cb_device {
  const struct cb_driver *driver;
  int ordinal, handle;
  int borrowed; /* the context is the caller's; else the primary one (the run-time API's), retained */
  struct CUctx_st *context;
  unsigned forks;           /* cb_forks of the process that opened it: it is of no use in another */
  struct cb_target target;  /* its figures are those of the GPU's calibration (calibration.h), if there is one */
  struct cb_target shipped; /* the same with the table's figures */
  char relative[160];       /* for logs: whose figures are used for an architecture without its own; "" otherwise */
  char remark[400];         /* on the calibration, for logs: which was read, or why one was not; "" without one */
  int64_t memory_bytes;
  struct cb_staging *staging; /* the way of long uploads (staging.h), its owner's; NULL: the driver's */
  struct cb_memory *memory;   /* where memory comes from (memory.h), likewise */
  struct cb_modules *modules; /* that operators share (modules.h), likewise; NULL: each has its own */
};

/* The kernel of that name, of which nothing is left for its first launch. */
enum cb_status cb_driver_find_kernel(const struct cb_driver *driver, struct CUfunc_st **function,
                                     struct CUmod_st *module, const char *name, struct cb_diag *diag);
/* Both become what a thread of the kernel takes, if that is more. */
enum cb_status cb_driver_note_registers(const struct cb_driver *driver, int *registers, int *local_bytes,
                                        struct CUfunc_st *function, const char *name, struct cb_diag *diag);
/* A launch with no attributes but, if it `overlaps`, the one by which it may start while the kernel before it in the
 * stream is still ending, for whose results it waits itself (wait_for_previous in texts). Saves about a microsecond. */
cb_cu_result cb_driver_launch(const struct cb_driver *driver, struct CUfunc_st *function, struct cb_cu_launch launch,
                              int overlaps, void **parameters);

/* The GPU number `ordinal`. Its target is the table's row of its architecture (else of the newest older one,
 * under the GPU's own architecture) with what the driver says of its name, multiprocessors, L2 and shared
 * memory, and with the figures that were measured on this model, if any: calibration.h. */
enum cb_status cb_device_open(struct cb_device **device, const struct cb_driver *driver, int ordinal,
                              struct cb_diag *diag);
/* The GPU and the context that are current on the calling thread; the context must outlive the device. Without one
 * GPU 0, as above. */
enum cb_status cb_device_open_current(struct cb_device **device, const struct cb_driver *driver,
                                      struct cb_diag *diag);
void cb_device_close(struct cb_device *device); /* NULL is accepted */

/* Whether this process opened it, and not the one that it was forked from. If not, no call below reaches the driver. */
int cb_device_is_own(const struct cb_device *device);
/* Whether its launches can overlap: sm_90 on. */
int cb_device_overlaps(const struct cb_device *device);

/* Pushes the device's context on the calling thread's stack; every enter that succeeded needs its leave. CB_ERR_DEVICE
 * in a forked process. */
enum cb_status cb_device_enter(const struct cb_device *device, struct cb_diag *diag);
void cb_device_leave(const struct cb_device *device);
int cb_device_is_current(const struct cb_device *device); /* on the calling thread */
/* Enters where that is not so; *entered says whether it did, and a leave is needed. */
enum cb_status cb_device_enter_once(const struct cb_device *device, int *entered, struct cb_diag *diag);

/* The rest needs the context to be current. `what` names the memory in messages. Counts of 0 bytes are fine.
 */
enum cb_status cb_device_alloc(const struct cb_device *device, cb_device_ptr *address, size_t bytes,
                               const char *what, struct cb_diag *diag);
void cb_device_free(const struct cb_device *device, cb_device_ptr address); /* 0 is accepted */
/* For a moment: perhaps more than was asked for, and what others had before; each call of the driver's takes 10 to
 * 40 us. Memory that nothing on the device uses any more may be given back, and freed in any case. */
enum cb_status cb_device_borrow(const struct cb_device *device, cb_device_ptr *address, size_t bytes, const char *what,
                                struct cb_diag *diag);
/* To stay: what others had before only if that is no more than twice as much. The driver takes 0.1 to 0.2 ms for the
 * first block of a new piece of memory, which it gives up with the last. */
enum cb_status cb_device_take(const struct cb_device *device, cb_device_ptr *address, size_t bytes, const char *what,
                              struct cb_diag *diag);
void cb_device_give_back(const struct cb_device *device, cb_device_ptr address); /* likewise */
/* Whether it would be kept if it were given back, which only what is not too small or too large is. */
int cb_device_keeps(const struct cb_device *device, cb_device_ptr address);
/* The same from the driver, whatever the device's memory is. */
enum cb_status cb_device_alloc_plain(const struct cb_device *device, cb_device_ptr *address, size_t bytes,
                                     const char *what, struct cb_diag *diag);
/* Bytes that are free on the GPU and below the device's limit; 0 when that cannot be found out. */
uint64_t cb_device_available(const struct cb_device *device);
/* CB_ERR_MEMORY when the GPU has less free memory than that: "WHAT takes … MB". Enters the context. */
enum cb_status cb_device_check_room(const struct cb_device *device, uint64_t bytes, const char *what,
                                    struct cb_diag *diag);
/* When these return the bytes are there, whatever stream asks for them next. cb_device_copy_in is the driver's
 * copy alone; cb_device_upload takes the faster way where there is one. */
enum cb_status cb_device_copy_in(const struct cb_device *device, cb_device_ptr to, const void *from, size_t bytes,
                                 const char *what, struct cb_diag *diag);
enum cb_status cb_device_upload(const struct cb_device *device, cb_device_ptr to, const void *from,
                                size_t bytes, const char *what, struct cb_diag *diag);
/* The source may go at once; the bytes are there for what the default stream does next, and for all once somebody has
 * waited for that. */
enum cb_status cb_device_upload_later(const struct cb_device *device, cb_device_ptr to, const void *from, size_t bytes,
                                      const char *what, struct cb_diag *diag);
enum cb_status cb_device_download(const struct cb_device *device, void *to, cb_device_ptr from, size_t bytes,
                                  const char *what, struct cb_diag *diag);
enum cb_status cb_device_fill(const struct cb_device *device, cb_device_ptr to, unsigned char byte,
                              size_t bytes, struct cb_diag *diag);
/* The same, without waiting: what follows in the default stream comes behind it. */
enum cb_status cb_device_fill_later(const struct cb_device *device, cb_device_ptr to, unsigned char byte,
                                    size_t bytes, struct cb_diag *diag);
/* Whatever follows in `stream` begins when all before it has ended and what that wrote is there: kernels that overlap
 * the one before them, too, and those behind these. By a fill of four bytes at `word`, which nobody reads. */
enum cb_status cb_device_separate(const struct cb_device *device, cb_device_ptr word, struct CUstream_st *stream,
                                  struct cb_diag *diag);

/* Waits for all work of the context; also where a kernel's own failure becomes known. */
enum cb_status cb_device_wait(const struct cb_device *device, const char *what, struct cb_diag *diag);

#endif
