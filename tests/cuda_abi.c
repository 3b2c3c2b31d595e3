// SPDX-License-Identifier: Apache-2.0
/* Compiled where CUDA's headers are: the prototypes and numbers that runtime/ writes down for itself are
 * those of cuda.h, nvrtc.h and cusparse.h. There is nothing to run. */
#include "runtime/cuda/driver.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/measure/cusparse.h"

#define CUSPARSE_ENABLE_EXPERIMENTAL_API /* SpMVOp */
#define DISABLE_CUSPARSE_DEPRECATED      /* bsrmv, from CUDA 13.1 */
#include <cuda.h>
#include <cusparse.h>
#include <nvrtc.h>

#define SAME_TYPE(a, b) _Static_assert(__builtin_types_compatible_p(a, b), #a " is " #b)
#define SAME_NUMBER(ours, theirs) _Static_assert((long)(ours) == (long)(theirs), #ours " is " #theirs)
#define DRIVER(member, function)                                                                             \
  SAME_TYPE(__typeof__(((struct cb_driver_calls *)0)->member), __typeof__(&function))
#define NVRTC(member, function)                                                                              \
  SAME_TYPE(__typeof__(((struct cb_nvrtc_calls *)0)->member), __typeof__(&function))

SAME_TYPE(cb_cu_result, CUresult);
SAME_TYPE(cb_device_ptr, CUdeviceptr);
SAME_TYPE(struct CUctx_st *, CUcontext);
SAME_TYPE(struct CUmod_st *, CUmodule);
SAME_TYPE(struct CUfunc_st *, CUfunction);
SAME_TYPE(struct CUstream_st *, CUstream);
SAME_TYPE(struct CUevent_st *, CUevent);

SAME_NUMBER(CB_CU_SUCCESS, CUDA_SUCCESS);
SAME_NUMBER(CB_CU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME_NUMBER(CB_CU_STUB_LIBRARY, CUDA_ERROR_STUB_LIBRARY);
SAME_NUMBER(CB_CU_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME_NUMBER(CB_CU_INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE);
SAME_NUMBER(CB_CU_NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME_NUMBER(CB_CU_SYSTEM_DRIVER_MISMATCH, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
SAME_NUMBER(CB_CU_COMPAT_NOT_SUPPORTED, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE);
SAME_NUMBER(CB_CU_WARP_SIZE, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
SAME_NUMBER(CB_CU_MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME_NUMBER(CB_CU_L2_BYTES, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
SAME_NUMBER(CB_CU_COMPUTE_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME_NUMBER(CB_CU_COMPUTE_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME_NUMBER(CB_CU_SHARED_PER_SM, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
SAME_NUMBER(CB_CU_SHARED_PER_BLOCK, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME_NUMBER(CB_CU_FUNC_STATIC_SHARED, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME_NUMBER(CB_CU_FUNC_LOCAL_BYTES, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
SAME_NUMBER(CB_CU_FUNC_REGISTERS, CU_FUNC_ATTRIBUTE_NUM_REGS);
SAME_NUMBER(CB_CU_FUNC_MAX_DYNAMIC_SHARED, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME_NUMBER(CB_CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME_NUMBER(CB_CU_EVENT_NO_TIMING, CU_EVENT_DISABLE_TIMING);
SAME_NUMBER(CB_CU_POINTER_CONTEXT, CU_POINTER_ATTRIBUTE_CONTEXT);
SAME_NUMBER(CB_CU_POINTER_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME_NUMBER(CB_CU_POINTER_IS_MANAGED, CU_POINTER_ATTRIBUTE_IS_MANAGED);
SAME_NUMBER(CB_CU_POINTER_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME_NUMBER(CB_CU_MEMORY_HOST, CU_MEMORYTYPE_HOST);
SAME_NUMBER(CB_CU_MEMORY_DEVICE, CU_MEMORYTYPE_DEVICE);
SAME_NUMBER(CB_CU_CAPTURE_NONE, CU_STREAM_CAPTURE_STATUS_NONE);
SAME_NUMBER(CB_CU_CAPTURE_ACTIVE, CU_STREAM_CAPTURE_STATUS_ACTIVE);
SAME_NUMBER(CB_CU_CAPTURE_INVALIDATED, CU_STREAM_CAPTURE_STATUS_INVALIDATED);

DRIVER(init, cuInit);
DRIVER(version, cuDriverGetVersion);
DRIVER(error_string, cuGetErrorString);
DRIVER(error_name, cuGetErrorName);
DRIVER(device_count, cuDeviceGetCount);
DRIVER(device_get, cuDeviceGet);
DRIVER(device_name, cuDeviceGetName);
DRIVER(device_attribute, cuDeviceGetAttribute);
DRIVER(primary_retain, cuDevicePrimaryCtxRetain);
DRIVER(primary_release, cuDevicePrimaryCtxRelease_v2);
DRIVER(context_push, cuCtxPushCurrent_v2);
DRIVER(context_pop, cuCtxPopCurrent_v2);
DRIVER(context_synchronize, cuCtxSynchronize);
DRIVER(context_current, cuCtxGetCurrent);
DRIVER(context_device, cuCtxGetDevice);
#if CUDA_VERSION >= 12000
DRIVER(context_id, cuCtxGetId);
#endif
DRIVER(memory_info, cuMemGetInfo_v2);
DRIVER(memory_alloc, cuMemAlloc_v2);
DRIVER(memory_free, cuMemFree_v2);
DRIVER(copy_to_device, cuMemcpyHtoD_v2);
DRIVER(copy_to_host, cuMemcpyDtoH_v2);
DRIVER(copy_on_device, cuMemcpyDtoDAsync_v2);
DRIVER(copy_to_device_async, cuMemcpyHtoDAsync_v2);
DRIVER(copy_to_host_async, cuMemcpyDtoHAsync_v2);
DRIVER(host_alloc, cuMemHostAlloc);
DRIVER(host_free, cuMemFreeHost);
DRIVER(pointer_get, cuPointerGetAttribute);
DRIVER(fill_bytes, cuMemsetD8_v2);
DRIVER(fill_bytes_async, cuMemsetD8Async);
DRIVER(module_load, cuModuleLoadData);
DRIVER(module_unload, cuModuleUnload);
DRIVER(module_function, cuModuleGetFunction);
DRIVER(function_get, cuFuncGetAttribute);
DRIVER(function_set, cuFuncSetAttribute);
#if CUDA_VERSION >= 12040
DRIVER(function_load, cuFuncLoad);
DRIVER(occupancy, cuOccupancyMaxActiveBlocksPerMultiprocessor);
#endif
DRIVER(launch, cuLaunchKernel);
_Static_assert(sizeof(struct cb_cu_launch) == sizeof(CUlaunchConfig), "CUlaunchConfig");
_Static_assert(offsetof(struct cb_cu_launch, stream) == offsetof(CUlaunchConfig, hStream), "CUlaunchConfig");
_Static_assert(offsetof(struct cb_cu_launch, attributes) == offsetof(CUlaunchConfig, attrs),
               "CUlaunchConfig");
_Static_assert(sizeof(struct cb_cu_launch_attribute) == sizeof(CUlaunchAttribute), "CUlaunchAttribute");
_Static_assert(offsetof(struct cb_cu_launch_attribute, value) == offsetof(CUlaunchAttribute, value),
               "CUlaunchAttribute");
SAME_NUMBER(CB_CU_LAUNCH_OVERLAP, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
SAME_NUMBER(CB_CU_LAUNCH_COOPERATIVE, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
DRIVER(stream_create, cuStreamCreate);
DRIVER(stream_destroy, cuStreamDestroy_v2);
DRIVER(stream_synchronize, cuStreamSynchronize);
DRIVER(stream_query, cuStreamQuery);
DRIVER(stream_context, cuStreamGetCtx);
DRIVER(stream_capturing, cuStreamIsCapturing);
DRIVER(stream_wait, cuStreamWaitEvent);
#if CUDA_VERSION >= 12040
SAME_TYPE(struct CUgraph_st *, CUgraph);
SAME_TYPE(struct CUgraphNode_st *, CUgraphNode);
SAME_TYPE(struct CUgraphExec_st *, CUgraphExec);
SAME_TYPE(struct CUgraphEdgeData_st, CUgraphEdgeData);
SAME_NUMBER(CB_CU_CAPTURE_OF_THREAD, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME_NUMBER(CB_CU_SET_DEPENDENCIES, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
SAME_NUMBER(CB_CU_NODE_CONDITIONAL, CU_GRAPH_NODE_TYPE_CONDITIONAL);
SAME_NUMBER(CB_CU_WHILE, CU_GRAPH_COND_TYPE_WHILE);
SAME_NUMBER(CB_CU_ASSIGN_DEFAULT, CU_GRAPH_COND_ASSIGN_DEFAULT);
SAME_NUMBER(sizeof(struct cb_cu_node), sizeof(CUgraphNodeParams));
SAME_NUMBER(offsetof(struct cb_cu_node, value), offsetof(CUgraphNodeParams, conditional));
SAME_NUMBER(offsetof(struct cb_cu_node, value.conditional.type), offsetof(CUgraphNodeParams, conditional.type));
SAME_NUMBER(offsetof(struct cb_cu_node, value.conditional.graphs),
            offsetof(CUgraphNodeParams, conditional.phGraph_out));
DRIVER(capture_end, cuStreamEndCapture);
DRIVER(graph_create, cuGraphCreate);
DRIVER(graph_destroy, cuGraphDestroy);
DRIVER(graph_handle, cuGraphConditionalHandleCreate);
DRIVER(graph_instantiate, cuGraphInstantiateWithFlags);
DRIVER(graph_exec_destroy, cuGraphExecDestroy);
DRIVER(graph_launch, cuGraphLaunch);
#endif
DRIVER(event_create, cuEventCreate);
DRIVER(event_destroy, cuEventDestroy_v2);
DRIVER(event_record, cuEventRecord);
DRIVER(event_query, cuEventQuery);
DRIVER(event_synchronize, cuEventSynchronize);
DRIVER(event_elapsed, cuEventElapsedTime);

SAME_NUMBER(CB_NVRTC_COMPILATION, NVRTC_ERROR_COMPILATION);
SAME_TYPE(unsigned, nvrtcResult);
NVRTC(error_string, nvrtcGetErrorString);
NVRTC(version, nvrtcVersion);
NVRTC(arches_count, nvrtcGetNumSupportedArchs);
NVRTC(arches, nvrtcGetSupportedArchs);
NVRTC(create, nvrtcCreateProgram);
NVRTC(destroy, nvrtcDestroyProgram);
NVRTC(compile, nvrtcCompileProgram);
NVRTC(log_size, nvrtcGetProgramLogSize);
NVRTC(log, nvrtcGetProgramLog);
NVRTC(cubin_size, nvrtcGetCUBINSize);
NVRTC(cubin, nvrtcGetCUBIN);
NVRTC(ptx_size, nvrtcGetPTXSize);
NVRTC(ptx, nvrtcGetPTX);

/* Enumerations that cusparse.h declares in parameters are int-sized, and compatible with unsigned to gcc and
 * clang; pointers to its opaque structs have their tags. */
#define CUSPARSE(member, function)                                                                           \
  SAME_TYPE(__typeof__(((struct cb_cusparse_calls *)0)->member), __typeof__(&function))
SAME_TYPE(struct cusparseContext *, cusparseHandle_t);
SAME_TYPE(struct cusparseSpMatDescr *, cusparseSpMatDescr_t);
SAME_TYPE(struct cusparseDnVecDescr *, cusparseDnVecDescr_t);
SAME_TYPE(struct cusparseMatDescr *, cusparseMatDescr_t);
CUSPARSE(create, cusparseCreate);
CUSPARSE(destroy, cusparseDestroy);
CUSPARSE(property, cusparseGetProperty);
SAME_NUMBER(CB_CUDA_MAJOR_VERSION, MAJOR_VERSION);
SAME_NUMBER(CB_CUDA_MINOR_VERSION, MINOR_VERSION);
SAME_NUMBER(CB_CUDA_PATCH_LEVEL, PATCH_LEVEL);
CUSPARSE(set_stream, cusparseSetStream);
CUSPARSE(error_string, cusparseGetErrorString);
CUSPARSE(create_vector, cusparseCreateDnVec);
CUSPARSE(destroy_vector, cusparseDestroyDnVec);
CUSPARSE(create_csr, cusparseCreateCsr);
CUSPARSE(create_coo, cusparseCreateCoo);
CUSPARSE(destroy_matrix, cusparseDestroySpMat);
CUSPARSE(buffer_size, cusparseSpMV_bufferSize);
CUSPARSE(multiply, cusparseSpMV);
#if CUSPARSE_VERSION >= 12300
CUSPARSE(create_sell, cusparseCreateSlicedEll);
CUSPARSE(create_bsr, cusparseCreateBsr);
CUSPARSE(preprocess, cusparseSpMV_preprocess);
SAME_NUMBER(CB_CUSPARSE_SELL_ALG1, CUSPARSE_SPMV_SELL_ALG1);
#endif
CUSPARSE(create_legacy, cusparseCreateMatDescr);
CUSPARSE(destroy_legacy, cusparseDestroyMatDescr);
CUSPARSE(bsrmv_f32, cusparseSbsrmv);
CUSPARSE(bsrmv_f64, cusparseDbsrmv);

SAME_NUMBER(CB_CUDA_R_32F, CUDA_R_32F);
SAME_NUMBER(CB_CUDA_R_64F, CUDA_R_64F);
SAME_NUMBER(CB_CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I);
SAME_NUMBER(CB_CUSPARSE_BASE_ZERO, CUSPARSE_INDEX_BASE_ZERO);
SAME_NUMBER(CB_CUSPARSE_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE);
SAME_NUMBER(CB_CUSPARSE_ORDER_ROW, CUSPARSE_ORDER_ROW);
SAME_NUMBER(CB_CUSPARSE_DIRECTION_ROW, CUSPARSE_DIRECTION_ROW);
SAME_NUMBER(CB_CUSPARSE_COO_ALG1, CUSPARSE_SPMV_COO_ALG1);
SAME_NUMBER(CB_CUSPARSE_CSR_ALG1, CUSPARSE_SPMV_CSR_ALG1);
SAME_NUMBER(CB_CUSPARSE_CSR_ALG2, CUSPARSE_SPMV_CSR_ALG2);
SAME_NUMBER(CB_CUSPARSE_COO_ALG2, CUSPARSE_SPMV_COO_ALG2);
#if CUSPARSE_VERSION >= 12600
SAME_NUMBER(CB_CUSPARSE_BSR_ALG1, CUSPARSE_SPMV_BSR_ALG1);
#endif

#if CUSPARSE_VERSION >= 12702
SAME_TYPE(struct cusparseSpMVOpDescr *, cusparseSpMVOpDescr_t);
SAME_TYPE(struct cusparseSpMVOpPlan *, cusparseSpMVOpPlan_t);
CUSPARSE(op_destroy, cusparseSpMVOp_destroyDescr);
CUSPARSE(op_create_plan, cusparseSpMVOp_createPlan);
CUSPARSE(op_destroy_plan, cusparseSpMVOp_destroyPlan);
CUSPARSE(op_multiply, cusparseSpMVOp);
#endif
#if CUSPARSE_VERSION >= 12800
CUSPARSE(op_buffer_size.algorithm, cusparseSpMVOp_bufferSize);
CUSPARSE(op_create.algorithm, cusparseSpMVOp_createDescr);
SAME_NUMBER(CB_CUSPARSE_OP_ALG1, CUSPARSE_SPMVOP_ALG1);
SAME_NUMBER(CB_CUSPARSE_OP_ALG2, CUSPARSE_SPMVOP_ALG2);
#elif CUSPARSE_VERSION >= 12703
CUSPARSE(op_buffer_size.buffer, cusparseSpMVOp_bufferSize);
CUSPARSE(op_create.buffer, cusparseSpMVOp_createDescr);
#elif CUSPARSE_VERSION >= 12702
CUSPARSE(op_create.plain, cusparseSpMVOp_createDescr);
#endif

extern const int cb_cuda_abi_checked;
const int cb_cuda_abi_checked = 1;
