// y = αA·x + βy for "diagonal": 40 × 40, 40 nonzeros, double.  cbgen 0.1.0, do not edit.
//   plan    (spmv (cb (panels 3) (coo 3) (aggregated yes)))
//   target  sm_90, 132 SMs        launch  grid 1 × 256 threads, 0 B dynamic shared memory
//   pattern 5d3c8a128a258ecddf5fb9f9eac43e33        stored  9.0 bytes per nonzero (CSR: 16.1)
//   use     diagonal_load_embedded, diagonal_multiply, diagonal_free; -DCBGEN_SELFTEST makes it a program that checks itself
//
// Read it from here: types and vectors, then one namespace per region of the plan, then the kernels. The shims in
// between are the same in every generated file and can be skipped; the host section at the end is not seen by NVRTC.

// ---- shims: the few names that kernels use, for NVRTC, for nvcc, and as C++ for the host --------------------
// Types and vectors  uint8_t … int64_t, Vector<T, n> { T at[n]; }, kFullMask
// Declarations       CBGEN_KERNEL, CBGEN_DEVICE, __launch_bounds__(n), __restrict__, __device__ (const tables),
//                    __shared__ Shared<T, n> name (element type said, never auto: double t = name[i])
// Position           threadIdx.x, blockIdx.x
// Global memory      load (cached), load_stream and load_stream_vector<T, n> (read once: leaves x its place in L1;
//                    vectors are aligned to 16 bytes, or 8 when they have 8), load_l2, store_l2 (shared between
//                    thread blocks), atomicAdd, __threadfence
// Warp               __shfl_sync, __shfl_xor_sync, __shfl_down_sync, __shfl_up_sync, __ballot_sync, __any_sync,
//                    __all_sync, __syncwarp                  Thread block  __syncthreads
// Arithmetic         fma, min, max, __popc, __popcll, __ffs, __clz, __clzll, is_finite
// Host section       cudaError_t, cudaStream_t, cudaMalloc, cudaFree, cudaMemcpy, cudaMemset, cudaGetErrorString,
//                    cudaGetLastError, cudaDeviceSynchronize, cudaFuncSetAttribute, launch
#if defined(__CUDACC__)
#if defined(__CUDACC_RTC__)  // NVRTC brings no headers
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#else
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

template <class T> struct Same { using type = T; };

// Arguments are converted to the kernel's parameter types.
template <class... P>
cudaError_t launch(void (*kernel)(P...), unsigned blocks, unsigned threads, size_t shared_bytes,
                   cudaStream_t stream, typename Same<P>::type... arguments) {
  void *list[] = {&arguments..., nullptr};
  return cudaLaunchKernel((const void *)kernel, dim3(blocks), dim3(threads), list, shared_bytes, stream);
}
#endif
#define CBGEN_KERNEL extern "C" __global__
#define CBGEN_DEVICE static __device__ __forceinline__
#define CBGEN_INLINE __device__ __forceinline__  // as CBGEN_DEVICE, but may be unused
[[maybe_unused]] constexpr unsigned kFullMask = 0xffffffffu;

template <class T, int n> struct Vector { T at[n]; };

template <class T, int n> struct Shared {
  T slots[n];
  __device__ __forceinline__ T &operator[](int i) { return slots[i]; }
  __device__ __forceinline__ const T &operator[](int i) const { return slots[i]; }
};

template <class T> CBGEN_INLINE T load(const T *p) { return __ldg(p); }
template <class T> CBGEN_INLINE T load_l2(const T *p) { return __ldcg(p); }
template <class T> CBGEN_INLINE void store_l2(T *p, T value) { __stcg(p, value); }

CBGEN_INLINE uint32_t stream_4(const void *p) {
  uint32_t bits;
  asm("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(bits) : "l"(p));
  return bits;
}
CBGEN_INLINE uint64_t stream_8(const void *p) {
  unsigned long long bits;
  asm("ld.global.nc.L1::no_allocate.u64 %0, [%1];" : "=l"(bits) : "l"(p));
  return bits;
}
CBGEN_INLINE uint8_t load_stream(const uint8_t *p) {
  uint32_t bits;
  asm("ld.global.nc.L1::no_allocate.u8 %0, [%1];" : "=r"(bits) : "l"(p));
  return (uint8_t)bits;
}
CBGEN_INLINE uint16_t load_stream(const uint16_t *p) {
  uint16_t bits;
  asm("ld.global.nc.L1::no_allocate.u16 %0, [%1];" : "=h"(bits) : "l"(p));
  return bits;
}
CBGEN_INLINE uint32_t load_stream(const uint32_t *p) { return stream_4(p); }
CBGEN_INLINE uint64_t load_stream(const uint64_t *p) { return stream_8(p); }
CBGEN_INLINE float load_stream(const float *p) { return __uint_as_float(stream_4(p)); }
CBGEN_INLINE double load_stream(const double *p) { return __longlong_as_double((long long)stream_8(p)); }

template <class T, int n> CBGEN_INLINE Vector<T, n> load_stream_vector(const T *p) {
  constexpr int words = (int)sizeof(Vector<T, n>) / 4;
  static_assert(sizeof(Vector<T, n>) % 16 == 0 || sizeof(Vector<T, n>) == 8, "no vector load of this size");
  union {
    uint32_t word[words];
    Vector<T, n> vector;
  } bits;
  if constexpr (words == 2) {
    asm("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];" : "=r"(bits.word[0]), "=r"(bits.word[1]) : "l"(p));
  } else {
#pragma unroll
    for (int w = 0; w < words; w += 4)
      asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
          : "=r"(bits.word[w]), "=r"(bits.word[w + 1]), "=r"(bits.word[w + 2]), "=r"(bits.word[w + 3])
          : "l"((const char *)p + 4 * w));
  }
  return bits.vector;
}

// Looks at the bits, so that no compiler flag can assume the answer.
CBGEN_INLINE bool is_finite(float value) { return (__float_as_uint(value) & 0x7f800000u) != 0x7f800000u; }
CBGEN_INLINE bool is_finite(double value) {
  return ((uint32_t)__double2hiint(value) & 0x7ff00000u) != 0x7ff00000u;
}

#else  // the host: each CUDA thread is a fiber of the emulator, which `cbgen verify` links
#pragma GCC diagnostic ignored "-Wunknown-pragmas"  // #pragma unroll
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define CBGEN_KERNEL static
#define CBGEN_DEVICE static
#define __launch_bounds__(threads)
#define __device__
#define __shared__ static
[[maybe_unused]] constexpr unsigned kFullMask = 0xffffffffu;

namespace emulated {  // provided by the emulator; `line` is where the kernel's text asks
enum Meeting { kShuffle, kShuffleXor, kShuffleDown, kShuffleUp, kBallot, kAny, kAll, kSyncWarp };
struct Position { unsigned x; };
struct Place { unsigned launch, bytes, slots; };  // of an array in the shared memory of the current launch
struct Index {
  long value;
  int line;
  template <class T> Index(T i, int l = __builtin_LINE()) : value((long)i), line(l) {}
};
uint64_t meet(Meeting meeting, unsigned mask, uint64_t bits, int argument, int width, int line);
void sync_block(int line);
void fence();
void pause();  // another warp may run here
void *shared_slot(Place &place, long count, size_t size, long slot, bool write, int line);
void read_l2(const void *p, size_t size, void *value);
void write_l2(void *p, size_t size, const void *value);
void check_alignment(const void *p, size_t bytes, int line);
int run_grid(const char *kernel, unsigned blocks, unsigned threads, size_t shared_bytes, void (*thread)(void *),
           void *arguments);
int allocate(void **p, size_t bytes);
int release(void *p);
int copy(void *to, const void *from, size_t bytes, int kind);
int fill(void *p, int byte, size_t bytes);
}  // namespace emulated

extern emulated::Position threadIdx, blockIdx;

template <class T, int n> struct Vector { T at[n]; };

template <class T, int n> struct Shared {  // checks bounds, reads before writes, and races
  emulated::Place place;
  struct Slot {
    Shared &array;
    emulated::Index i;
    T *at(bool write) const {
      return (T *)emulated::shared_slot(array.place, n, sizeof(T), i.value, write, i.line);
    }
    operator T() const { return *at(false); }
    T operator=(T value) const { return *at(true) = value; }
    T operator=(const Slot &other) const { return *this = (T)other; }
    T operator+=(T value) const { return *this = (T)(*this) + value; }
    T operator-=(T value) const { return *this = (T)(*this) - value; }
    T operator*=(T value) const { return *this = (T)(*this) * value; }
  };
  Slot operator[](emulated::Index i) { return Slot{*this, i}; }
  T operator[](emulated::Index i) const { return Slot{const_cast<Shared &>(*this), i}; }
};

template <class T> struct Same { using type = T; };  // a parameter that does not take part in deduction

template <class T> inline T load(const T *p) { return *p; }
template <class T> inline T load_stream(const T *p) { return *p; }
template <class T> inline T load_l2(const T *p) {
  T value = *p;
  emulated::read_l2(p, sizeof value, &value);
  return value;
}
template <class T> inline void store_l2(T *p, typename Same<T>::type value) {
  volatile T mine = *p;  // the sanitizer's look at p; the emulator's own text is not sanitized
  (void)mine;
  emulated::write_l2(p, sizeof value, &value);
}
template <class T, int n>
inline Vector<T, n> load_stream_vector(const T *p, int line = __builtin_LINE()) {
  static_assert(sizeof(Vector<T, n>) % 16 == 0 || sizeof(Vector<T, n>) == 8, "no vector load of this size");
  emulated::check_alignment(p, sizeof(Vector<T, n>) == 8 ? 8 : 16, line);
  Vector<T, n> vector;
  for (int i = 0; i < n; i++) vector.at[i] = p[i];
  return vector;
}
template <class T> inline T atomicAdd(T *p, typename Same<T>::type value) {
  emulated::pause();
  T before = *p;
  *p = before + value;
  return before;
}
inline void __threadfence() { emulated::fence(); }
inline void __syncthreads(int line = __builtin_LINE()) { emulated::sync_block(line); }

template <class T> inline T shuffle(emulated::Meeting how, unsigned mask, T value, int lane, int width, int line) {
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);
  bits = emulated::meet(how, mask, bits, lane, width, line);
  memcpy(&value, &bits, sizeof value);
  return value;
}
template <class T> inline T __shfl_sync(unsigned mask, T v, int lane, int width = 32, int line = __builtin_LINE()) {
  return shuffle(emulated::kShuffle, mask, v, lane, width, line);
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T v, int bits, int width = 32, int line = __builtin_LINE()) {
  return shuffle(emulated::kShuffleXor, mask, v, bits, width, line);
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32, int line = __builtin_LINE()) {
  return shuffle(emulated::kShuffleDown, mask, v, (int)by, width, line);
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32, int line = __builtin_LINE()) {
  return shuffle(emulated::kShuffleUp, mask, v, (int)by, width, line);
}
inline unsigned __ballot_sync(unsigned mask, int vote, int line = __builtin_LINE()) {
  return (unsigned)emulated::meet(emulated::kBallot, mask, vote != 0, 0, 32, line);
}
inline int __any_sync(unsigned mask, int vote, int line = __builtin_LINE()) {
  return (int)emulated::meet(emulated::kAny, mask, vote != 0, 0, 32, line);
}
inline int __all_sync(unsigned mask, int vote, int line = __builtin_LINE()) {
  return (int)emulated::meet(emulated::kAll, mask, vote != 0, 0, 32, line);
}
inline void __syncwarp(unsigned mask = kFullMask, int line = __builtin_LINE()) {
  emulated::meet(emulated::kSyncWarp, mask, 0, 0, 32, line);
}

inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __popcll(unsigned long long bits) { return __builtin_popcountll(bits); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline int __clz(int bits) { return bits ? __builtin_clz((unsigned)bits) : 32; }
inline int __clzll(long long bits) { return bits ? __builtin_clzll((unsigned long long)bits) : 64; }
inline double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
template <class T> inline T min(T a, T b) { return b < a ? b : a; }
template <class T> inline T max(T a, T b) { return a < b ? b : a; }
template <class T> inline bool is_finite(T value) { return value - value == 0; }

using cudaError_t = int;
using cudaStream_t = void *;
enum { cudaSuccess = 0, cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2, cudaMemcpyDeviceToDevice = 3 };
enum { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
template <class T> inline cudaError_t cudaMalloc(T **p, size_t bytes) {
  return emulated::allocate((void **)p, bytes);
}
inline cudaError_t cudaFree(void *p) { return emulated::release(p); }
inline cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, int kind) {
  return emulated::copy(to, from, bytes, kind);
}
inline cudaError_t cudaMemset(void *p, int byte, size_t bytes) { return emulated::fill(p, byte, bytes); }
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
template <class Kernel> inline cudaError_t cudaFuncSetAttribute(Kernel *, int, int) { return cudaSuccess; }

template <class... P>
cudaError_t launch_named(const char *name, void (*kernel)(P...), unsigned blocks, unsigned threads,
                         size_t shared_bytes, cudaStream_t, typename Same<P>::type... arguments) {
  auto thread = [=] { kernel(arguments...); };
  return emulated::run_grid(
      name, blocks, threads, shared_bytes, [](void *t) { (*(decltype(thread) *)t)(); }, &thread);
}
#define launch(kernel, ...) launch_named(#kernel, kernel, __VA_ARGS__)
#endif
// ---- end of the shims -------------------------------------------------------------------------------------
// ---- types and vectors ---------------------------------------------------------------------------------------

using matrix_t = double;  // values of A
using vector_t = double;  // x and y
using sum_t = double;     // sums, alpha and beta

constexpr int kRows = 40;  // matrix: rows, the length of y

struct Vectors {
  const vector_t *x;  // length 40
  vector_t *y;        // length 40
  sum_t alpha, beta;
};

CBGEN_DEVICE sum_t load_x(const Vectors &vectors, int column) { return sum_t(load(vectors.x + column)); }

// The one final write of a row. With beta = 0 y is not read: it may hold anything.
CBGEN_DEVICE void commit(const Vectors &vectors, int row, sum_t sum) {
  const sum_t scaled = vectors.alpha * sum;
  vectors.y[row] = vector_t(vectors.beta == 0 ? scaled : scaled + vectors.beta * sum_t(vectors.y[row]));
}

// ---- region cb0: 16x16 sub-blocks in COO, CSR or Dense, columns aggregated per panel
//      panels 3, coo 3, aggregated yes

namespace cb0 {

using index_t = int;  // holds any index into the arrays below
constexpr int kCooSteps = 1;  // plan: the fullest COO sub-block, in steps of 16 nonzeros
constexpr int kUnitsPerBlock = 8;  // plan: units of work in a thread block

struct Arrays {
  const uint8_t *mtx_data;  // 360: per sub-block: coordinates, padding, values
};

// first column of a sub-block
CBGEN_DEVICE int blk_col_idx(const Arrays &, int i) { return 16 * i; }
// original columns of a sub-block, from its first; 16 each
__device__ const uint8_t restore_cols_table[] = {
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3,
    4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7,
    7, 7, 7, 7, 7, 7, 7, 7};
CBGEN_DEVICE int restore_cols(const Arrays &, int i) { return restore_cols_table[i]; }
// virtual pointer: a sub-block's place in mtx_data, in values
CBGEN_DEVICE int vp_per_blk(const Arrays &, int i) { return 18 * i; }
// a unit's first sub-block; units + 1
__device__ const uint8_t first_block_table[] = {0, 1, 2, 3, 3, 3, 3, 3, 3};
CBGEN_DEVICE int first_block(const Arrays &, int i) { return first_block_table[i]; }
// nonzeros of a sub-block, less one
__device__ const uint8_t nnz_per_blk_table[] = {15, 15, 7};
CBGEN_DEVICE int nnz_per_blk(const Arrays &, int i) { return nnz_per_blk_table[i]; }
// panel of a unit
CBGEN_DEVICE int unit_panel(const Arrays &, int i) { return i; }

// x of (aggregated) column lane % 16 of a sub-block, in both halves of the warp.
CBGEN_DEVICE sum_t x_of_lane(const Arrays &arrays, const Vectors &vectors, int block) {
  const int offset = restore_cols(arrays, index_t(16) * block + (int)threadIdx.x % 16);
  return load_x(vectors, blk_col_idx(arrays, block) + offset);
}

// A sub-block's bytes: coordinates, padding to a whole value, values.
struct Data {
  const uint8_t *coordinates;
  const matrix_t *values;
};

CBGEN_DEVICE Data data_of(const Arrays &arrays, int block, int coordinate_bytes) {
  constexpr int kValue = sizeof(matrix_t);
  const uint8_t *start = arrays.mtx_data + size_t(vp_per_blk(arrays, block)) * kValue;
  const int padded = (coordinate_bytes + kValue - 1) / kValue * kValue;
  return {start, (const matrix_t *)(start + padded)};
}

// COO sub-blocks [begin, end), two at a time: each half of the warp takes one. A lane adds its products to its own
// column of partial[row][lane], so no two lanes meet, no bank conflicts and no atomics.
CBGEN_DEVICE sum_t coo_sums(const Arrays &arrays, const Vectors &vectors, int begin, int end) {
  __shared__ Shared<sum_t, 8 * 16 * 32> partial;  // [warp][row][lane]
  if (begin >= end) return 0;
  const int lane = (int)threadIdx.x % 32, half = lane / 16;
  const int rows = (int)threadIdx.x / 32 * 512;
  for (int row = 0; row < 16; row++) partial[rows + 32 * row + lane] = 0;
  for (int pair = begin; pair < end; pair += 2) {
    const int block = pair + half < end ? pair + half : pair;
    const int count = pair + half < end ? nnz_per_blk(arrays, block) + 1 : 0;
    const Data data = data_of(arrays, block, count);
    const sum_t x = x_of_lane(arrays, vectors, block);
    for (int step = 0; step < kCooSteps; step++) {
      const int k = 16 * step + lane % 16;
      const int place = k < count ? load_stream(data.coordinates + k) : 0;
      const sum_t x_of_k = __shfl_sync(kFullMask, x, place % 16, 16);
      if (k < count) partial[rows + 32 * (place / 16) + lane] += sum_t(load_stream(data.values + k)) * x_of_k;
    }
  }
  __syncwarp();
  sum_t sum = 0;  // of row lane / 2, half of the 32 columns; every lane starts at another bank
  const int row = lane / 2, side = lane % 2;
  for (int i = 0; i < 16; i++) sum += partial[rows + 32 * row + 16 * side + (i + row + 8 * side) % 16];
  return sum;
}

// A unit is a panel of 16 rows, or a run of its sub-blocks. Lane l collects half of the sum of row l / 2.
CBGEN_DEVICE void multiply(const Arrays &arrays, const Vectors &vectors, int thread_block) {
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  const int unit = kUnitsPerBlock * thread_block + warp;
  sum_t sum = 0;
  sum += coo_sums(arrays, vectors, first_block(arrays, unit), first_block(arrays, unit + 1));
  sum += __shfl_xor_sync(kFullMask, sum, 1);
  const int row = 16 * unit_panel(arrays, unit) + lane / 2;
  if (lane % 2 == 0 && row < kRows) commit(vectors, row, sum);  // the last rows do not fill their panel or thread block
}

}  // namespace cb0

// ---- kernels

CBGEN_KERNEL void __launch_bounds__(256) diagonal_spmv(const cb0::Arrays cb0_arrays, const vector_t *x, vector_t *y, sum_t alpha, sum_t beta) {
  const Vectors vectors = {x, y, alpha, beta};
  cb0::multiply(cb0_arrays, vectors, (int)blockIdx.x);
}

// ---- host: load, multiply, free ------------------------------------------------------------------------------
// Functions return NULL, or a message that lives forever.
#ifndef __CUDACC_RTC__

// Device pointers of one loaded matrix.
struct diagonal_matrix {
  cb0::Arrays cb0;
};

void diagonal_free(diagonal_matrix *matrix) {
  void *const blocks[] = {(void *)matrix->cb0.mtx_data, nullptr};
  for (void *const *block = blocks; *block != nullptr; block++) cudaFree(*block);
  *matrix = {};
}

// Checks that `data` (`bytes` long) is the packed data of this kernel, whole and unchanged.
static const char *diagonal_check(const unsigned char *data, size_t bytes) {
  constexpr uint64_t kId[2] = {0xbd74200a0065743bu, 0x98578498e51bf3f6u};  // plan and pattern
  uint64_t header[8], checksum = 0xcbf29ce484222325u;
  if (bytes < sizeof header) return "data of diagonal: shorter than its header";
  memcpy(header, data, sizeof header);
  if (memcmp(data, "CBGENDAT", 8) != 0) return "data of diagonal: not a cbgen data file";
  if ((header[1] & 0xffffffffu) != 1) return "data of diagonal: another version of the format; generate both files anew";
  if (memcmp(header + 2, kId, sizeof kId) != 0) return "data of diagonal: belongs to another kernel; generate both files anew";
  if (header[4] != bytes || bytes < 768 || bytes % 8 != 0) return "data of diagonal: cut short";
  for (size_t at = sizeof header; at < bytes; at += 8) {
    uint64_t word;
    memcpy(&word, data + at, sizeof word);
    checksum = (checksum ^ word) * 0x100000001b3u;
  }
  return checksum == header[5] ? nullptr : "data of diagonal: damaged, its checksum does not match";
}

// Copies the arrays to the current device. Free with diagonal_free; after a failure nothing is left to free.
const char *diagonal_load(diagonal_matrix *matrix, const void *data, size_t bytes) {
  *matrix = {};
  const struct {
    void **to;
    size_t offset, bytes;
  } arrays[] = {
      {(void **)&matrix->cb0.mtx_data, 256, 360},
      {nullptr, 0, 0},
  };
  const char *message = diagonal_check((const unsigned char *)data, bytes);
  if (message) return message;
  cudaError_t error = cudaSuccess;
  for (int i = 0; arrays[i].to && !error; i++) {
    error = cudaMalloc(arrays[i].to, arrays[i].bytes);
    if (!error)
      error = cudaMemcpy(*arrays[i].to, (const char *)data + arrays[i].offset, arrays[i].bytes, cudaMemcpyHostToDevice);
  }
  if (error) diagonal_free(matrix);
  return error ? cudaGetErrorString(error) : nullptr;
}

// The packed data, as analysis/blob.h describes it.
static const uint64_t diagonal_data[] = {
    0x5441444e45474243u, 0x200000001u, 0xbd74200a0065743bu, 0x98578498e51bf3f6u, 0x600u,
    0xbfbb3e56121348bau, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x7766554433221100u, 0xffeeddccbbaa9988u, 0x4005000000000000u,
    0x401e800000000000u, 0x3ff4000000000000u, 0x400a000000000000u, 0x4015000000000000u, 0x3fe0000000000000u,
    0x3fe4000000000000u, 0x401a800000000000u, 0x4011800000000000u, 0x3fec000000000000u, 0x4008000000000000u,
    0x4013000000000000u, 0x3fe0000000000000u, 0x401d800000000000u, 0x4010800000000000u, 0x3ffc000000000000u,
    0x7766554433221100u, 0xffeeddccbbaa9988u, 0x3fd8000000000000u, 0x3fe8000000000000u, 0x400c000000000000u,
    0x400b000000000000u, 0x3fe4000000000000u, 0x4000000000000000u, 0x3fe8000000000000u, 0x4012000000000000u,
    0x400c000000000000u, 0x3fe0000000000000u, 0x401a800000000000u, 0x4012800000000000u, 0x3ff0000000000000u,
    0x401e800000000000u, 0x3ffe000000000000u, 0x4014800000000000u, 0x7766554433221100u, 0x4014800000000000u,
    0x4013000000000000u, 0x401e800000000000u, 0x3fe0000000000000u, 0x4012800000000000u, 0x4013000000000000u,
    0x400a000000000000u, 0x3fe0000000000000u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x4000195b996e32e3u, 0xbff0b509025ddb50u, 0xbff2f151742bfe8eu, 0x40087c618237378au,
    0xc010888f748e9a5eu, 0xbfc61a3079c5c0b0u, 0xbfda172fa4963a61u, 0x400cc8aff6574362u, 0xc001cd41088e02e5u,
    0x3fe9504fdeabeec6u, 0xbfe3e0ce5a127b16u, 0x4003d6af8a819744u, 0x3f988680ff82ef60u, 0x3fea0a0055d0ac26u,
    0x3ffb7c3fc7586955u, 0x3fb08f5e9290e740u, 0xbf8106f1d54013a0u, 0x3fd96da8a6104fcdu, 0xc000897ce4e33838u,
    0x40029599c7250a73u, 0x3fdc706e0d7503a0u, 0x3fe481c5490c12f8u, 0x3fe49e1d58b295e8u, 0xbff896b3e75a59aau,
    0x400473206695a618u, 0x3fb35e82f1db4c48u, 0xbff273794bd6fadcu, 0xc002431e1f899cbau, 0x3fd1784ed5da2e30u,
    0x401a49910615a566u, 0x3ffa94af6fe2f103u, 0xc00739e4beade6f8u, 0xc0127fd5d6fe3f08u, 0xc01234e949d37608u,
    0x40139e1fab785a97u, 0xbfb69cf08a6c2ef8u, 0xc002114be9d076ceu, 0xc0041e1c836680c9u, 0xbfdd16756794ab92u,
    0xbfc82b02c66dbd78u, 0x3cd5a2367619b8d7u, 0x3cc8e4e78c5db0d3u, 0x3cc7b09b85f12515u, 0x3cde9f4d52015e12u,
    0x3ce7ad48a81c7741u, 0x3c9ba430afca37c7u, 0x3cb050879696c03cu, 0x3ce3bfada7b5c8f2u, 0x3cd7c3595cdad9d2u,
    0x3cc1d42c3168daaeu, 0x3cb8dc1d10d52cc3u, 0x3cd9cf74f88fa159u, 0x3c6eabf6438b97b3u, 0x3cc14848fda91fe8u,
    0x3cd1afcd9192d4c1u, 0x3c84b5cc9dfc07b8u, 0x3c554b5760596a8fu, 0x3cafcd0bf1ee5652u, 0x3cd6ae71999fc9cbu,
    0x3cd73de798f56adeu, 0x3cb3c87d91022f6bu, 0x3cb9a56ae222819du, 0x3cbdc8dd6375174du, 0x3ccec0386d4d1638u,
    0x3cdd931a7d4b1705u, 0x3c88392a72c7e9a2u, 0x3cc91339a9c0932fu, 0x3cd7d6c02420f16du, 0x3ca5d91d57a223d7u,
    0x3cf1d00863220114u, 0x3cd09f0143a29460u, 0x3cdd0bfefa172be7u, 0x3ceae2af46276687u, 0x3ceac4fbe0bbdc98u,
    0x3cea88b84b493c0fu, 0x3c8c47b5329cdba2u, 0x3cd8987198211d18u, 0x3cd928c858b4a904u, 0x3cb2304f21e902dcu,
    0x3c9e398a30782e01u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u,
};

const char *diagonal_load_embedded(diagonal_matrix *matrix) {
  return diagonal_load(matrix, diagonal_data, sizeof diagonal_data);
}

// y = αA·x + βy on `stream`, without allocation or synchronisation. x: 40, y: 40 elements on the device.
const char *diagonal_multiply(const diagonal_matrix *matrix, const vector_t *x, vector_t *y, sum_t alpha, sum_t beta,
    cudaStream_t stream) {
  cudaError_t error = cudaSuccess;
  error = launch(diagonal_spmv, 1, 256, 0, stream, matrix->cb0, x, y, alpha, beta);
  return error ? cudaGetErrorString(error) : nullptr;
}

#ifdef CBGEN_SELFTEST
// Element i of the seeded x, in [-1, 1): splitmix64 of i, its upper 53 bits.
static double diagonal_x(uint64_t i) {
  uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return double((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1;
}

// Multiplies and compares every row with what `data` expects, within its tolerance.
static const char *diagonal_selftest(const char *data, size_t bytes) {
  constexpr size_t kRowCount = 40, kColCount = 40, kExpected = 768;
  diagonal_matrix matrix;
  const char *message = diagonal_load(&matrix, data, bytes);
  if (message) return message;
  if (bytes < kExpected + 2 * kRowCount * sizeof(double)) {
    diagonal_free(&matrix);
    return "the data has no self-test part: generate it without --no-selftest";
  }
  const double *expected = (const double *)(data + kExpected), *tolerance = expected + kRowCount;
  vector_t *host = (vector_t *)malloc((kRowCount + kColCount + 1) * sizeof(vector_t)), *x = nullptr, *y = nullptr;
  if (host) {
    for (size_t i = 0; i < kColCount; i++) host[i] = vector_t(diagonal_x(i));
    if (cudaMalloc((void **)&x, (kColCount + 1) * sizeof(vector_t)) || cudaMalloc((void **)&y, (kRowCount + 1) * sizeof(vector_t)) ||
        cudaMemcpy(x, host, kColCount * sizeof(vector_t), cudaMemcpyHostToDevice) ||
        cudaMemset(y, 255, kRowCount * sizeof(vector_t)))
      message = "no room on the device";
  } else {
    message = "out of memory";
  }
  if (!message) message = diagonal_multiply(&matrix, x, y, 1, 0, 0);
  if (!message && cudaMemcpy(host, y, kRowCount * sizeof(vector_t), cudaMemcpyDeviceToHost)) message = "the kernel failed";
  size_t wrong = 0, first = 0;
  double worst = 0;
  for (size_t i = 0; i < kRowCount && !message; i++) {
    const double error = double(host[i]) > expected[i] ? double(host[i]) - expected[i] : expected[i] - double(host[i]);
    const bool same_class = expected[i] != expected[i] ? host[i] != host[i] : double(host[i]) == expected[i];
    if (error > 0 && error / tolerance[i] > worst) worst = error / tolerance[i];
    if (same_class || error <= tolerance[i]) continue;
    if (!wrong++) first = i;
  }
  if (!message && wrong)
    printf("diagonal: WRONG: %zu of %zu rows; the first is row %zu: %.17g instead of %.17g, tolerance %.3g\n", wrong,
           kRowCount, first, double(host[first]), expected[first], tolerance[first]);
  else if (!message)
    printf("diagonal: ok: %zu rows, largest error %.3g of its tolerance\n", kRowCount, worst);
  free(host);
  cudaFree(x);
  cudaFree(y);
  diagonal_free(&matrix);
  return message ? message : wrong ? "wrong result" : nullptr;
}

int main() {
  const char *message = diagonal_selftest((const char *)diagonal_data, sizeof diagonal_data);
  if (message) fprintf(stderr, "diagonal: %s\n", message);
  return message ? 1 : 0;
}
#endif  // CBGEN_SELFTEST
#endif  // __CUDACC_RTC__
