// y = αA·x + βy for "dense": 20 × 20, 400 nonzeros, double.  cbgen 0.1.0, do not edit.
//   plan    (spmv (cb (panels 2) (coo 1) (csr 2) (dense 1) (aggregated yes) (team 2)))
//   target  sm_90, 132 SMs        launch  grid 1 × 256 threads, 0 B dynamic shared memory
//   pattern 2a1de3d8f65d3ad5b77950dc82402bac        stored  8.3 bytes per nonzero (CSR: 12.2)
//   use     dense_load_embedded, dense_multiply, dense_free; -DCBGEN_SELFTEST makes it a program that checks itself
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

constexpr int kRows = 20;  // matrix: rows, the length of y

struct Vectors {
  const vector_t *x;  // length 20
  vector_t *y;        // length 20
  sum_t alpha, beta;
};

CBGEN_DEVICE sum_t load_x(const Vectors &vectors, int column) { return sum_t(load(vectors.x + column)); }

// The one final write of a row. With beta = 0 y is not read: it may hold anything.
CBGEN_DEVICE void commit(const Vectors &vectors, int row, sum_t sum) {
  const sum_t scaled = vectors.alpha * sum;
  vectors.y[row] = vector_t(vectors.beta == 0 ? scaled : scaled + vectors.beta * sum_t(vectors.y[row]));
}

// ---- region cb0: 16x16 sub-blocks in COO, CSR or Dense, columns aggregated per panel
//      panels 2, coo 1, csr 2, dense 1, aggregated yes, team 2

namespace cb0 {

using index_t = int;  // holds any index into the arrays below
constexpr int kCooSteps = 1;  // plan: the fullest COO sub-block, in steps of 16 nonzeros
constexpr int kVector = 2;  // values in a 16-byte load
constexpr int kUnitsPerBlock = 4;  // plan: units of work in a thread block
constexpr int kTeamWarps = 2;  // plan: warps that share a unit

struct Arrays {
  const uint8_t *mtx_data;  // 3312: per sub-block: coordinates, padding, values
};

// first column of a sub-block
__device__ const uint8_t blk_col_idx_table[] = {16, 0, 16, 0};
CBGEN_DEVICE int blk_col_idx(const Arrays &, int i) { return blk_col_idx_table[i]; }
// original columns of a sub-block, from its first; 16 each
__device__ const uint8_t restore_cols_table[] = {
    0, 1, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 0, 1, 2, 3,
    4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 3, 3, 3, 3,
    3, 3, 3, 3, 3, 3, 3, 3, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
    12, 13, 14, 15};
CBGEN_DEVICE int restore_cols(const Arrays &, int i) { return restore_cols_table[i]; }
// virtual pointer: a sub-block's place in mtx_data, in values
__device__ const uint16_t vp_per_blk_table[] = {0, 70, 326, 344};
CBGEN_DEVICE int vp_per_blk(const Arrays &, int i) { return vp_per_blk_table[i]; }
// a unit's first sub-block; units + 1
__device__ const uint8_t first_block_table[] = {0, 2, 4, 4, 4};
CBGEN_DEVICE int first_block(const Arrays &, int i) { return first_block_table[i]; }
// a unit's first csr sub-block
__device__ const uint8_t first_csr_table[] = {0, 3, 4, 4};
CBGEN_DEVICE int first_csr(const Arrays &, int i) { return first_csr_table[i]; }
// a unit's first dense sub-block
__device__ const uint8_t first_dense_table[] = {1, 4, 4, 4};
CBGEN_DEVICE int first_dense(const Arrays &, int i) { return first_dense_table[i]; }
// nonzeros of a sub-block, less one
__device__ const uint8_t nnz_per_blk_table[] = {63, 255, 15, 63};
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
  for (int pair = begin; pair < end; pair += 2 * kTeamWarps) {
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

// CSR sub-blocks [begin, end), one at a time: lanes 2 r and 2 r + 1 take row r.
CBGEN_DEVICE sum_t csr_sums(const Arrays &arrays, const Vectors &vectors, int begin, int end) {
  const int lane = (int)threadIdx.x % 32, row = lane / 2, side = lane % 2;
  sum_t sum = 0;
  for (int block = begin; block < end; block += kTeamWarps) {
    const int count = nnz_per_blk(arrays, block) + 1;
    const Data data = data_of(arrays, block, 16 + (count + 1) / 2);
    const sum_t x = x_of_lane(arrays, vectors, block);
    const int row_begin = load(data.coordinates + row);
    const int row_end = row < 15 ? load(data.coordinates + row + 1) : count;
    // All lanes stay until the longest row is done: the shuffle needs them.
    for (int k = row_begin + side; __any_sync(kFullMask, k < row_end); k += 2) {
      const int columns = k < row_end ? load(data.coordinates + 16 + k / 2) : 0;
      const sum_t x_of_k = __shfl_sync(kFullMask, x, columns >> 4 * (k % 2) & 15, 16);
      if (k < row_end) sum += sum_t(load(data.values + k)) * x_of_k;
    }
  }
  return sum;
}

// Dense sub-blocks [begin, end): a lane holds column lane % 16 of the eight rows 8 (lane / 16) + 0 … 7, so one x
// serves eight products and nothing is shuffled until the end.
CBGEN_DEVICE sum_t dense_sums(const Arrays &arrays, const Vectors &vectors, int begin, int end) {
  const int lane = (int)threadIdx.x % 32;
  sum_t sums[8] = {};
  for (int block = begin; block < end; block += kTeamWarps) {
    const sum_t x = x_of_lane(arrays, vectors, block);
    // No presence bits: every Dense sub-block of this matrix is full.
    const Data data = data_of(arrays, block, 0);
    #pragma unroll
    for (int i = 0; i < 8; i += kVector) {
      const Vector<matrix_t, kVector> values =
          load_stream_vector<matrix_t, kVector>(data.values + 32 * i + kVector * lane);
    #pragma unroll
      for (int v = 0; v < kVector; v++) sums[i + v] += sum_t(values.at[v]) * x;
    }
  }
  // Halve the rows and the columns of each lane three times: what stays is row lane / 2, columns lane % 2.
#pragma unroll
  for (int half = 4; half > 0; half /= 2) {
    const bool upper = lane & 2 * half;
#pragma unroll
    for (int i = 0; i < half; i++) {
      const sum_t give = upper ? sums[i] : sums[i + half];
      const sum_t keep = upper ? sums[i + half] : sums[i];
      sums[i] = keep + __shfl_xor_sync(kFullMask, give, 2 * half);
    }
  }
  return sums[0];
}

// A unit is a panel of 16 rows, or a run of its sub-blocks. Lane l collects half of the sum of row l / 2.
CBGEN_DEVICE void multiply(const Arrays &arrays, const Vectors &vectors, int thread_block) {
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  const int unit = kUnitsPerBlock * thread_block + warp / kTeamWarps;
  const int rank = warp % kTeamWarps;  // of this warp in its team
  sum_t sum = 0;
  sum += coo_sums(arrays, vectors, first_block(arrays, unit) + 2 * rank, first_csr(arrays, unit));
  sum += csr_sums(arrays, vectors, first_csr(arrays, unit) + rank, first_dense(arrays, unit));
  sum += dense_sums(arrays, vectors, first_dense(arrays, unit) + rank, first_block(arrays, unit + 1));
  sum += __shfl_xor_sync(kFullMask, sum, 1);
  __shared__ Shared<sum_t, 8 * 16> team_sums;  // [warp][row]
  if (lane % 2 == 0) team_sums[16 * warp + lane / 2] = sum;
  __syncthreads();
  if (rank > 0) return;
  sum = 0;
  for (int other = 0; other < kTeamWarps; other++) sum += team_sums[16 * (warp + other) + lane / 2];
  const int row = 16 * unit_panel(arrays, unit) + lane / 2;
  if (lane % 2 == 0 && row < kRows) commit(vectors, row, sum);  // the last rows do not fill their panel or thread block
}

}  // namespace cb0

// ---- kernels

CBGEN_KERNEL void __launch_bounds__(256) dense_spmv(const cb0::Arrays cb0_arrays, const vector_t *x, vector_t *y, sum_t alpha, sum_t beta) {
  const Vectors vectors = {x, y, alpha, beta};
  cb0::multiply(cb0_arrays, vectors, (int)blockIdx.x);
}

// ---- host: load, multiply, free ------------------------------------------------------------------------------
// Functions return NULL, or a message that lives forever.
#ifndef __CUDACC_RTC__

// Device pointers of one loaded matrix.
struct dense_matrix {
  cb0::Arrays cb0;
};

void dense_free(dense_matrix *matrix) {
  void *const blocks[] = {(void *)matrix->cb0.mtx_data, nullptr};
  for (void *const *block = blocks; *block != nullptr; block++) cudaFree(*block);
  *matrix = {};
}

// Checks that `data` (`bytes` long) is the packed data of this kernel, whole and unchanged.
static const char *dense_check(const unsigned char *data, size_t bytes) {
  constexpr uint64_t kId[2] = {0x7e8a7f33633c8386u, 0x2798f32fe72791b0u};  // plan and pattern
  uint64_t header[8], checksum = 0xcbf29ce484222325u;
  if (bytes < sizeof header) return "data of dense: shorter than its header";
  memcpy(header, data, sizeof header);
  if (memcmp(data, "CBGENDAT", 8) != 0) return "data of dense: not a cbgen data file";
  if ((header[1] & 0xffffffffu) != 1) return "data of dense: another version of the format; generate both files anew";
  if (memcmp(header + 2, kId, sizeof kId) != 0) return "data of dense: belongs to another kernel; generate both files anew";
  if (header[4] != bytes || bytes < 3584 || bytes % 8 != 0) return "data of dense: cut short";
  for (size_t at = sizeof header; at < bytes; at += 8) {
    uint64_t word;
    memcpy(&word, data + at, sizeof word);
    checksum = (checksum ^ word) * 0x100000001b3u;
  }
  return checksum == header[5] ? nullptr : "data of dense: damaged, its checksum does not match";
}

// Copies the arrays to the current device. Free with dense_free; after a failure nothing is left to free.
const char *dense_load(dense_matrix *matrix, const void *data, size_t bytes) {
  *matrix = {};
  const struct {
    void **to;
    size_t offset, bytes;
  } arrays[] = {
      {(void **)&matrix->cb0.mtx_data, 256, 3312},
      {nullptr, 0, 0},
  };
  const char *message = dense_check((const unsigned char *)data, bytes);
  if (message) return message;
  cudaError_t error = cudaSuccess;
  for (int i = 0; arrays[i].to && !error; i++) {
    error = cudaMalloc(arrays[i].to, arrays[i].bytes);
    if (!error)
      error = cudaMemcpy(*arrays[i].to, (const char *)data + arrays[i].offset, arrays[i].bytes, cudaMemcpyHostToDevice);
  }
  if (error) dense_free(matrix);
  return error ? cudaGetErrorString(error) : nullptr;
}

// The packed data, as analysis/blob.h describes it.
static const uint64_t dense_data[] = {
    0x5441444e45474243u, 0x200000001u, 0x7e8a7f33633c8386u, 0x2798f32fe72791b0u, 0x1000u,
    0x7167816cd34f217bu, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x1c1814100c080400u, 0x3c3834302c282420u, 0x3210321032103210u,
    0x3210321032103210u, 0x3210321032103210u, 0x3210321032103210u, 0x4016800000000000u, 0x400f000000000000u,
    0x4018800000000000u, 0x4017800000000000u, 0x4013800000000000u, 0x4014000000000000u, 0x3ffa000000000000u,
    0x3ff6000000000000u, 0x401f000000000000u, 0x401d000000000000u, 0x400f000000000000u, 0x3ff6000000000000u,
    0x4007000000000000u, 0x4014000000000000u, 0x401c800000000000u, 0x3ff2000000000000u, 0x400d000000000000u,
    0x401b000000000000u, 0x3ff8000000000000u, 0x3fd0000000000000u, 0x401a000000000000u, 0x3fc0000000000000u,
    0x400c000000000000u, 0x3ff4000000000000u, 0x401e000000000000u, 0x400f000000000000u, 0x4019800000000000u,
    0x4013000000000000u, 0x4017800000000000u, 0x401d800000000000u, 0x4014800000000000u, 0x401d000000000000u,
    0x4007000000000000u, 0x4015000000000000u, 0x4006000000000000u, 0x400e000000000000u, 0x401f000000000000u,
    0x4007000000000000u, 0x3fe8000000000000u, 0x401a000000000000u, 0x401f800000000000u, 0x401a000000000000u,
    0x401a000000000000u, 0x4015000000000000u, 0x4008000000000000u, 0x4015000000000000u, 0x401e800000000000u,
    0x3ff4000000000000u, 0x3fe8000000000000u, 0x3fe8000000000000u, 0x401f800000000000u, 0x4014000000000000u,
    0x3ffe000000000000u, 0x401b000000000000u, 0x4017800000000000u, 0x401a800000000000u, 0x3fec000000000000u,
    0x4015800000000000u, 0x400a000000000000u, 0x4013800000000000u, 0x3ffe000000000000u, 0x3ff0000000000000u,
    0x400e000000000000u, 0x401f800000000000u, 0x401f800000000000u, 0x3ffe000000000000u, 0x4014800000000000u,
    0x3ffa000000000000u, 0x400e000000000000u, 0x4008000000000000u, 0x401f800000000000u, 0x3fe4000000000000u,
    0x401c800000000000u, 0x401a800000000000u, 0x3fe0000000000000u, 0x4017800000000000u, 0x4014000000000000u,
    0x3ff0000000000000u, 0x4002000000000000u, 0x401c800000000000u, 0x3ffe000000000000u, 0x4015800000000000u,
    0x4016800000000000u, 0x401b800000000000u, 0x400a000000000000u, 0x400a000000000000u, 0x4011800000000000u,
    0x3fec000000000000u, 0x3ff0000000000000u, 0x401b800000000000u, 0x3fd0000000000000u, 0x3ffc000000000000u,
    0x4001000000000000u, 0x4011000000000000u, 0x3ffa000000000000u, 0x401a000000000000u, 0x3ff4000000000000u,
    0x4011800000000000u, 0x3fe0000000000000u, 0x4014000000000000u, 0x4000000000000000u, 0x3fe8000000000000u,
    0x3ff4000000000000u, 0x401e000000000000u, 0x4013000000000000u, 0x401a000000000000u, 0x400d000000000000u,
    0x4003000000000000u, 0x4018000000000000u, 0x4000000000000000u, 0x4017000000000000u, 0x400b000000000000u,
    0x4001000000000000u, 0x4003000000000000u, 0x3fe0000000000000u, 0x400e000000000000u, 0x3fe4000000000000u,
    0x3ffc000000000000u, 0x3ffc000000000000u, 0x4014000000000000u, 0x3fe8000000000000u, 0x3ff4000000000000u,
    0x4011800000000000u, 0x401d800000000000u, 0x4011800000000000u, 0x4011800000000000u, 0x3ffa000000000000u,
    0x4011000000000000u, 0x3fd8000000000000u, 0x4012000000000000u, 0x4008000000000000u, 0x3fec000000000000u,
    0x4004000000000000u, 0x4000000000000000u, 0x3ff0000000000000u, 0x4010800000000000u, 0x4005000000000000u,
    0x4006000000000000u, 0x4016800000000000u, 0x4004000000000000u, 0x4010000000000000u, 0x3fe0000000000000u,
    0x3ff2000000000000u, 0x401a800000000000u, 0x3ffe000000000000u, 0x3fc0000000000000u, 0x4010800000000000u,
    0x401e800000000000u, 0x3fec000000000000u, 0x400f000000000000u, 0x401e800000000000u, 0x4008000000000000u,
    0x4010000000000000u, 0x401f800000000000u, 0x401e800000000000u, 0x401e800000000000u, 0x4008000000000000u,
    0x401d800000000000u, 0x4000000000000000u, 0x401a800000000000u, 0x3ff0000000000000u, 0x4012800000000000u,
    0x3ffc000000000000u, 0x4010000000000000u, 0x4012800000000000u, 0x4004000000000000u, 0x4010000000000000u,
    0x400b000000000000u, 0x400e000000000000u, 0x3fe4000000000000u, 0x4017000000000000u, 0x4009000000000000u,
    0x400a000000000000u, 0x400a000000000000u, 0x4007000000000000u, 0x4016000000000000u, 0x3fc0000000000000u,
    0x3ff4000000000000u, 0x401d000000000000u, 0x401c000000000000u, 0x400d000000000000u, 0x3ff6000000000000u,
    0x4009000000000000u, 0x3ff4000000000000u, 0x3fec000000000000u, 0x4018000000000000u, 0x3fd0000000000000u,
    0x4018800000000000u, 0x4019000000000000u, 0x4010800000000000u, 0x4010000000000000u, 0x4007000000000000u,
    0x401b800000000000u, 0x3ff2000000000000u, 0x4012000000000000u, 0x4017000000000000u, 0x4019800000000000u,
    0x3ff8000000000000u, 0x400b000000000000u, 0x3ff6000000000000u, 0x4016800000000000u, 0x4007000000000000u,
    0x4015000000000000u, 0x4012800000000000u, 0x3ffc000000000000u, 0x4019000000000000u, 0x400c000000000000u,
    0x401c000000000000u, 0x4010000000000000u, 0x401b000000000000u, 0x4014000000000000u, 0x4015000000000000u,
    0x4014800000000000u, 0x400a000000000000u, 0x4014000000000000u, 0x3fd0000000000000u, 0x400e000000000000u,
    0x400f000000000000u, 0x4011000000000000u, 0x4008000000000000u, 0x3ff6000000000000u, 0x4007000000000000u,
    0x400a000000000000u, 0x4018000000000000u, 0x4004000000000000u, 0x4012000000000000u, 0x4016000000000000u,
    0x4011800000000000u, 0x4011000000000000u, 0x4010000000000000u, 0x3fd8000000000000u, 0x401f000000000000u,
    0x401b000000000000u, 0x3fe8000000000000u, 0x401c800000000000u, 0x4015800000000000u, 0x401d800000000000u,
    0x401c000000000000u, 0x401c800000000000u, 0x4009000000000000u, 0x400b000000000000u, 0x4011800000000000u,
    0x4019000000000000u, 0x401e800000000000u, 0x3ff0000000000000u, 0x4006000000000000u, 0x4014800000000000u,
    0x4001000000000000u, 0x4006000000000000u, 0x4018000000000000u, 0x4011000000000000u, 0x4004000000000000u,
    0x4006000000000000u, 0x4014800000000000u, 0x4017800000000000u, 0x3fd0000000000000u, 0x4003000000000000u,
    0x400b000000000000u, 0x3fe4000000000000u, 0x4012800000000000u, 0x4016800000000000u, 0x4019000000000000u,
    0x4018800000000000u, 0x4006000000000000u, 0x4013800000000000u, 0x4010000000000000u, 0x4016000000000000u,
    0x401a800000000000u, 0x4003000000000000u, 0x3ff2000000000000u, 0x4012000000000000u, 0x4002000000000000u,
    0x4013000000000000u, 0x3ff8000000000000u, 0x4016000000000000u, 0x4018000000000000u, 0x3fe0000000000000u,
    0x3ffa000000000000u, 0x3fe4000000000000u, 0x401c000000000000u, 0x400f000000000000u, 0x4004000000000000u,
    0x3ff4000000000000u, 0x4016800000000000u, 0x4019000000000000u, 0x3ffe000000000000u, 0x401a000000000000u,
    0x3ffe000000000000u, 0x401a800000000000u, 0x4016000000000000u, 0x400c000000000000u, 0x4019000000000000u,
    0x401c800000000000u, 0x4006000000000000u, 0x4015800000000000u, 0x3fe4000000000000u, 0x401e800000000000u,
    0x4002000000000000u, 0x4007000000000000u, 0x3fd0000000000000u, 0x4010000000000000u, 0x3fe8000000000000u,
    0x401f000000000000u, 0x3ffe000000000000u, 0x4008000000000000u, 0x4014000000000000u, 0x401c000000000000u,
    0x4016000000000000u, 0x4013800000000000u, 0x3fe0000000000000u, 0x401f000000000000u, 0x4007000000000000u,
    0x4001000000000000u, 0x400f000000000000u, 0x401f800000000000u, 0x4015000000000000u, 0x3ffe000000000000u,
    0x4014000000000000u, 0x3fd0000000000000u, 0x4019800000000000u, 0x1312111003020100u, 0x3332313023222120u,
    0x400f000000000000u, 0x401d800000000000u, 0x400a000000000000u, 0x400f000000000000u, 0x3ffa000000000000u,
    0x4009000000000000u, 0x4018000000000000u, 0x4015800000000000u, 0x4006000000000000u, 0x4019800000000000u,
    0x401e800000000000u, 0x401e000000000000u, 0x3ffc000000000000u, 0x4017000000000000u, 0x3fe8000000000000u,
    0x4007000000000000u, 0x4040404030201000u, 0x4040404040404040u, 0xfedcba9876543210u, 0xfedcba9876543210u,
    0xfedcba9876543210u, 0xfedcba9876543210u, 0x3ff8000000000000u, 0x4005000000000000u, 0x4017800000000000u,
    0x4018800000000000u, 0x400f000000000000u, 0x401e800000000000u, 0x3ff6000000000000u, 0x3ff4000000000000u,
    0x4012800000000000u, 0x401a000000000000u, 0x3fec000000000000u, 0x4013800000000000u, 0x401b000000000000u,
    0x401c000000000000u, 0x401a000000000000u, 0x4002000000000000u, 0x3fec000000000000u, 0x400e000000000000u,
    0x400d000000000000u, 0x4012000000000000u, 0x4016800000000000u, 0x400e000000000000u, 0x400d000000000000u,
    0x3fe8000000000000u, 0x4005000000000000u, 0x4012000000000000u, 0x3fc0000000000000u, 0x4008000000000000u,
    0x4016800000000000u, 0x3fe8000000000000u, 0x4019800000000000u, 0x400f000000000000u, 0x4013000000000000u,
    0x4013000000000000u, 0x4003000000000000u, 0x4012800000000000u, 0x4015800000000000u, 0x4007000000000000u,
    0x400a000000000000u, 0x3ff8000000000000u, 0x401e800000000000u, 0x400a000000000000u, 0x4012800000000000u,
    0x400f000000000000u, 0x3ff6000000000000u, 0x4016800000000000u, 0x4018800000000000u, 0x4001000000000000u,
    0x4012800000000000u, 0x401e000000000000u, 0x4013800000000000u, 0x4019800000000000u, 0x3fe4000000000000u,
    0x3ff6000000000000u, 0x4012000000000000u, 0x3ff4000000000000u, 0x3ff2000000000000u, 0x400a000000000000u,
    0x3ff4000000000000u, 0x3ff0000000000000u, 0x4011000000000000u, 0x401b800000000000u, 0x401b800000000000u,
    0x3ffa000000000000u, 0x0u, 0x0u, 0x4024fdfc3615a446u, 0x400a14503cc8d9b9u,
    0x400d9c519ba43d8fu, 0x4030d7f62a7b6aeau, 0x4011e1a5d3de8109u, 0xc0061e3b165d2db2u, 0x4012adbe452a5236u,
    0x4021f87a63934fb8u, 0x3fe3de587c11edd5u, 0x4030472bad8c6016u, 0x401e9bedb232dd3fu, 0x40260c3b5d550803u,
    0xc00d812b8a1c4f71u, 0x402b2b77658ceebeu, 0x4026c318166d26eeu, 0x40253cf663cec277u, 0x4022de90df662ca6u,
    0x4003d78e41470f9bu, 0x4017ef2948ed950bu, 0x40277aa1748d8566u, 0x3d4203ba5b8d6132u, 0x3d39a864b02edbb5u,
    0x3d365477f2ced743u, 0x3d3c8e014c7b3f4fu, 0x3d3e8a440d4ca279u, 0x3d36a1c15c94464du, 0x3d40244072844b5fu,
    0x3d4036d8ddf77beeu, 0x3d35200591414188u, 0x3d3c78bd6df8db1du, 0x3d3e994fbf20a5d5u, 0x3d3a8731542c429bu,
    0x3d409b6bb134785fu, 0x3d42710db59d290cu, 0x3d445c0bcf5d62ebu, 0x3d3844b118c01102u, 0x3d40742dcd34d8dfu,
    0x3d3b5a4bd1a27ea3u, 0x3d41025414d93a1bu, 0x3d395b12e7d854c8u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u,
};

const char *dense_load_embedded(dense_matrix *matrix) {
  return dense_load(matrix, dense_data, sizeof dense_data);
}

// y = αA·x + βy on `stream`, without allocation or synchronisation. x: 20, y: 20 elements on the device.
const char *dense_multiply(const dense_matrix *matrix, const vector_t *x, vector_t *y, sum_t alpha, sum_t beta,
    cudaStream_t stream) {
  cudaError_t error = cudaSuccess;
  error = launch(dense_spmv, 1, 256, 0, stream, matrix->cb0, x, y, alpha, beta);
  return error ? cudaGetErrorString(error) : nullptr;
}

#ifdef CBGEN_SELFTEST
// Element i of the seeded x, in [-1, 1): splitmix64 of i, its upper 53 bits.
static double dense_x(uint64_t i) {
  uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return double((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1;
}

// Multiplies and compares every row with what `data` expects, within its tolerance.
static const char *dense_selftest(const char *data, size_t bytes) {
  constexpr size_t kRowCount = 20, kColCount = 20, kExpected = 3584;
  dense_matrix matrix;
  const char *message = dense_load(&matrix, data, bytes);
  if (message) return message;
  if (bytes < kExpected + 2 * kRowCount * sizeof(double)) {
    dense_free(&matrix);
    return "the data has no self-test part: generate it without --no-selftest";
  }
  const double *expected = (const double *)(data + kExpected), *tolerance = expected + kRowCount;
  vector_t *host = (vector_t *)malloc((kRowCount + kColCount + 1) * sizeof(vector_t)), *x = nullptr, *y = nullptr;
  if (host) {
    for (size_t i = 0; i < kColCount; i++) host[i] = vector_t(dense_x(i));
    if (cudaMalloc((void **)&x, (kColCount + 1) * sizeof(vector_t)) || cudaMalloc((void **)&y, (kRowCount + 1) * sizeof(vector_t)) ||
        cudaMemcpy(x, host, kColCount * sizeof(vector_t), cudaMemcpyHostToDevice) ||
        cudaMemset(y, 255, kRowCount * sizeof(vector_t)))
      message = "no room on the device";
  } else {
    message = "out of memory";
  }
  if (!message) message = dense_multiply(&matrix, x, y, 1, 0, 0);
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
    printf("dense: WRONG: %zu of %zu rows; the first is row %zu: %.17g instead of %.17g, tolerance %.3g\n", wrong,
           kRowCount, first, double(host[first]), expected[first], tolerance[first]);
  else if (!message)
    printf("dense: ok: %zu rows, largest error %.3g of its tolerance\n", kRowCount, worst);
  free(host);
  cudaFree(x);
  cudaFree(y);
  dense_free(&matrix);
  return message ? message : wrong ? "wrong result" : nullptr;
}

int main() {
  const char *message = dense_selftest((const char *)dense_data, sizeof dense_data);
  if (message) fprintf(stderr, "dense: %s\n", message);
  return message ? 1 : 0;
}
#endif  // CBGEN_SELFTEST
#endif  // __CUDACC_RTC__
