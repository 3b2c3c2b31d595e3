// SPDX-License-Identifier: Apache-2.0
/* What generated kernels need of CUDA when libclang reads them without a CUDA toolkit: declarations alone, each only as
 * far as the templates use it. It also stands for the four headers of C that the host part includes. A kernel is read
 * twice, as the device sees it and as the host does: both see this. */
#ifndef CBGEN_RUNTIME_VERIFY_CLANG_CUDA_H
#define CBGEN_RUNTIME_VERIFY_CLANG_CUDA_H

// ---- what nvcc defines
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __CUDA_ARCH_LIST__ 800

// ---- headers of C
using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned;
using int64_t = decltype((char *)0 - (char *)0);
using uint64_t = decltype(sizeof 0);
using size_t = decltype(sizeof 0);
struct FILE;
extern FILE *stdout, *stderr;
#define SEEK_SET 0
#define SEEK_END 2
extern "C" {
FILE *fopen(const char *, const char *);
int fclose(FILE *);
int fseek(FILE *, long, int);
long ftell(FILE *);
size_t fread(void *, size_t, size_t, FILE *);
int printf(const char *, ...);
int fprintf(FILE *, const char *, ...);
void *malloc(size_t);
void free(void *);
__host__ __device__ void *memcpy(void *, const void *, size_t);
int memcmp(const void *, const void *, size_t);
size_t strlen(const char *);
int strcmp(const char *, const char *);
char *strcpy(char *, const char *);
char *strrchr(const char *, int);
}

// ---- the thread
struct uint3 {
  unsigned x, y, z;
};
extern const __device__ uint3 threadIdx, blockIdx;

// ---- loads of several words
struct uint2 {
  unsigned x, y;
};
struct uint4 {
  unsigned x, y, z, w;
};

// ---- barriers, atomics, warps
__device__ void __syncthreads();
__device__ void __syncwarp(unsigned mask = 0xffffffffu);
__device__ void __threadfence();
template <class T> __device__ T atomicAdd(T *, T);
template <class T> __device__ T __shfl_sync(unsigned, T, int, int width = 32);
template <class T> __device__ T __shfl_xor_sync(unsigned, T, int, int width = 32);
template <class T> __device__ T __shfl_up_sync(unsigned, T, unsigned, int width = 32);
template <class T> __device__ T __shfl_down_sync(unsigned, T, unsigned, int width = 32);
__device__ unsigned __ballot_sync(unsigned, int);
__device__ int __any_sync(unsigned, int);
__device__ int __all_sync(unsigned, int);

// ---- memory
template <class T> __device__ T __ldg(const T *);
template <class T> __device__ T __ldcg(const T *);
template <class T> __device__ void __stcg(T *, T);

// ---- arithmetic
__device__ float fma(float, float, float);
__device__ double fma(double, double, double);
__device__ float fmin(float, float);
__device__ double fmin(double, double);
__device__ float fmax(float, float);
__device__ double fmax(double, double);
__host__ __device__ int min(int, int);
__host__ __device__ unsigned min(unsigned, unsigned);
__host__ __device__ int64_t min(int64_t, int64_t);
__host__ __device__ uint64_t min(uint64_t, uint64_t);
__host__ __device__ int max(int, int);
__host__ __device__ unsigned max(unsigned, unsigned);
__host__ __device__ int64_t max(int64_t, int64_t);
__host__ __device__ uint64_t max(uint64_t, uint64_t);
__device__ int __popc(unsigned);
__device__ int __popcll(uint64_t);
__device__ int __ffs(int);
__device__ int __clz(int);
__device__ int __clzll(int64_t);
__device__ unsigned __float_as_uint(float);
__device__ float __uint_as_float(unsigned);
__device__ int64_t __double_as_longlong(double);
__device__ double __longlong_as_double(int64_t);
__device__ double __hiloint2double(int, int);
__device__ int __double2hiint(double);

// ---- the runtime
enum cudaError_t { cudaSuccess };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize, cudaFuncAttributePreferredSharedMemoryCarveout };
enum cudaLaunchAttributeID { cudaLaunchAttributeProgrammaticStreamSerialization };
typedef struct CUstream_st *cudaStream_t;
struct dim3 {
  unsigned x, y, z;
  dim3(unsigned = 1, unsigned = 1, unsigned = 1) {}
};
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  struct {
    int programmaticStreamSerializationAllowed;
  } val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute *attrs;
  unsigned numAttrs;
};
template <class T> cudaError_t cudaMalloc(T **, size_t);
cudaError_t cudaFree(void *);
cudaError_t cudaMemcpy(void *, const void *, size_t, cudaMemcpyKind);
cudaError_t cudaMemset(void *, int, size_t);
cudaError_t cudaGetDeviceCount(int *);
const char *cudaGetErrorString(cudaError_t);
template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *, void (*)(P...), A &&...);
template <class T> cudaError_t cudaFuncSetAttribute(T *, cudaFuncAttribute, int);

#endif
