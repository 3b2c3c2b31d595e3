// SPDX-License-Identifier: Apache-2.0
/* The few declarations of CUDA's run-time library that the examples in C++ and Fortran need, for machines without a
 * toolkit: what they are linked with is runtime.c. */
#ifndef CBGEN_TESTS_FAKE_RUNTIME_H
#define CBGEN_TESTS_FAKE_RUNTIME_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cudaError { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2 } cudaError_t;
typedef enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 } cudaMemcpyKind;
typedef struct CUstream_st *cudaStream_t;

const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaMalloc(void **memory, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
