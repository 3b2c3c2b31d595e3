// y = αA·x + βy for "dense": 20 × 20, 400 nonzeros, double.  cbgen 0.1.0, do not edit.
//   plan    (spmv (cb (lists 2 4) (panels 2) (csr 3) (dense 1) (aggregated yes) (ranges 1) (runs 8)))
//   because recipe cb was named; 3.90 us predicted
//   target  sm_90, 132 SMs        launch  grid 1 × 256 threads, 0 B dynamic shared memory
//   pattern 2a1de3d8f65d3ad5b77950dc82402bac        stored  8.9 bytes per nonzero (CSR: 12.2)
//   use     dense_load_file, dense_multiply, dense_free; -DCBGEN_SELFTEST makes it a program that checks itself
//
// Read it from here: types and vectors, then one namespace per region of the plan, then the kernels. The device
// prelude above them says how memory is read and written; the host section at the end is not seen by NVRTC.

// ---- device prelude: what the kernels below need of types, memory and warps -----------------------------------
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned;
using int64_t = decltype((char *)0 - (char *)0);
#define CBGEN_KERNEL extern "C" __global__
#define CBGEN_DEVICE static __device__ __forceinline__
constexpr unsigned kFullMask = 0xffffffffu;  // all lanes of a warp

template <class T, int n> struct Vector {
  T at[n];
};

// An array in shared memory.
template <class T, int n> struct Shared {
  T slots[n];
  __device__ __forceinline__ T &operator[](int i) { return slots[i]; }
  __device__ __forceinline__ const T &operator[](int i) const { return slots[i]; }
};

// CBGEN_NUMBER: the number that a macro stands for; 0 when it is not defined.
#define CBGEN_QUOTE(words) #words
#define CBGEN_NUMBER(macro) number_of(CBGEN_QUOTE(macro))
__host__ __device__ constexpr int number_of(const char *word) {
  int number = 0;
  for (; *word >= '0' && *word <= '9'; word++) number = 10 * number + (*word - '0');
  return number;
}

constexpr int kArch = CBGEN_NUMBER(__CUDA_ARCH__);  // 900 for sm_90; 0 where nvcc compiles for the host

// Where a compiler's registers do not suffice and it reports spills, thread blocks that a multiprocessor holds are given
// up for them: -DCBGEN_FEWER_BLOCKS=1, or more.
constexpr int kFewerBlocks = CBGEN_NUMBER(CBGEN_FEWER_BLOCKS);

// Thread blocks that a multiprocessor has room for, `wanted` at most: for __launch_bounds__. From sm_100 on one block of
// six less: what 40 registers hold elsewhere may spill there.
__host__ __device__ constexpr int blocks_that_fit(int wanted, int threads) {
  const int most_threads =
      kArch == 750 ? 1024 : kArch == 800 || kArch == 900 || kArch == 1000 || kArch == 1030 ? 2048 : 1536;
  const int less = kFewerBlocks + (kArch >= 1000 && wanted * threads == 1536);
  const int left = wanted - less, room = most_threads / threads;
  return left < 1 ? 1 : left < room ? left : room;
}

// The kernel before in the stream may still be ending when this one starts. What it writes is there from here on.
CBGEN_DEVICE void wait_for_previous() {
  if constexpr (kArch >= 900) asm volatile("griddepcontrol.wait;" ::: "memory");
}

// The same pointer, of which the compiler knows nothing before this point: no load through it comes earlier.
template <class T> CBGEN_DEVICE const T *after_wait(const T *p) {
  asm volatile("" : "+l"(p)::"memory");
  return p;
}

// Reads what no kernel writes, through L1; types of 16 bits by their bits.
template <class T> CBGEN_DEVICE T load(const T *p) {
  if constexpr (__is_class(T)) return {__ldg(&p->bits)};
  else return __ldg(p);
}

// Reads what other kernels write: x.
template <class T> CBGEN_DEVICE T load_input(const T *p) { return *p; }

// The same through L1 and L2, as load.
template <class T, int n> CBGEN_DEVICE Vector<T, n> load_cached_vector(const T *p) {
  constexpr int bytes = (int)sizeof(Vector<T, n>);
  static_assert(bytes % 16 == 0 || bytes == 8 || bytes == 4 || bytes == 2, "no vector load of this size");
  union Bits {
    __device__ Bits() {}
    uint16_t half;
    uint32_t word;
    uint2 pair;
    uint4 quads[(bytes + 15) / 16];
    Vector<T, n> vector;
  } bits;
  if constexpr (bytes == 2) {
    bits.half = __ldg((const uint16_t *)p);
  } else if constexpr (bytes == 4) {
    bits.word = __ldg((const uint32_t *)p);
  } else if constexpr (bytes == 8) {
    bits.pair = __ldg((const uint2 *)p);
  } else {
#pragma unroll
    for (int q = 0; q < bytes / 16; q++) bits.quads[q] = __ldg((const uint4 *)p + q);
  }
  return bits.vector;
}

// What lane `lane` of the warp has.
template <class T> CBGEN_DEVICE T shuffle(T value, int lane) { return __shfl_sync(kFullMask, value, lane); }

// What the lane has whose number differs in these bits.
template <class T> CBGEN_DEVICE T shuffle_xor(T value, int bits) { return __shfl_xor_sync(kFullMask, value, bits); }

// ---- end of the device prelude --------------------------------------------------------------------------------
// ---- types and vectors ---------------------------------------------------------------------------------------

using vector_t = double;  // x and y
using sum_t = double;     // sums, alpha and beta

constexpr int kRows = 20;  // matrix: rows, the length of y

struct Vectors {
  const vector_t *x;  // length 20
  vector_t *y;        // length 20
  sum_t alpha, beta;
};

// Arithmetic of sums: compiled with -fmad=false, what says fma is fused and nothing else, as in the emulation.
CBGEN_DEVICE sum_t zero() { return 0; }
CBGEN_DEVICE sum_t add(sum_t sum, sum_t term) { return sum + term; }
CBGEN_DEVICE sum_t product(sum_t value, sum_t x) { return value * x; }
CBGEN_DEVICE sum_t add_product(sum_t sum, sum_t value, sum_t x) { return fma(value, x, sum); }

CBGEN_DEVICE sum_t load_x(const Vectors &vectors, int column) { return sum_t(load_input(vectors.x + column)); }

// The one final write of a row. With beta = 0 y is not read: it may hold anything.
CBGEN_DEVICE void commit(const Vectors &vectors, int row, sum_t sum) {
  const sum_t scaled = product(vectors.alpha, sum);
  vectors.y[row] = vector_t(vectors.beta == 0 ? scaled : add_product(scaled, vectors.beta, sum_t(vectors.y[row])));
}

// ---- region cb0: 16x16 sub-blocks in COO, CSR or Dense, columns aggregated per panel
//      lists 2 4, panels 2, csr 3, dense 1, aggregated yes, ranges 1, runs 8

namespace cb0 {

using stored_t = double;  // a value slot
using index_t = int;  // holds any index into the arrays below
constexpr int kLists = 2;  // plan: column lists in the text
constexpr int kRanges = 1;  // plan: ranges of thread blocks with the same formats
constexpr int kStage = 32;  // plan: columns of the widest run
constexpr int kStaged = 256;  // plan: the same for all runs of a thread block
constexpr int kStageBatch = 1;  // plan: sub-blocks whose x is loaded together
constexpr int kBatch = 8;  // plan: steps whose loads are in flight together
constexpr int kVector = 2;  // plan: values that one load reads
constexpr int kPanels = 2;  // plan: panels of 16 rows
constexpr int kCsrBlocks = 3;  // plan: CSR sub-blocks
constexpr int kCsrRuns = 2;  // plan: runs of these
constexpr int kDenseBlocks = 1;  // plan: Dense sub-blocks
constexpr int kDenseRuns = 1;  // plan: runs of these
constexpr int kRowLanes = 2;  // plan: lanes that share a row

struct Arrays {
  const uint8_t *mtx_data;  // 3416: per run: coordinates, padding, values
  const uint8_t *row_length;  // 128: nonzeros of a run's rows; 16 each
};

// first column of a sub-block
__device__ const uint8_t blk_col_idx_table[] = {
    16, 0, 16, 0};
CBGEN_DEVICE int blk_col_idx(const Arrays &, int i) { return blk_col_idx_table[i]; }
// column list of a sub-block
__device__ const uint8_t blk_list_table[] = {
    0, 1, 0, 1};
CBGEN_DEVICE int blk_list(const Arrays &, int i) { return blk_list_table[i]; }
// virtual pointer: a run's place in mtx_data, in values
__device__ const uint8_t vp_per_run_table[] = {
    0, 73, 164, 165, 166, 167, 168, 170};
CBGEN_DEVICE int vp_per_run(const Arrays &, int i) { return vp_per_run_table[i]; }
// a run's first sub-block; runs + 1
__device__ const uint8_t first_block_table[] = {
    0, 1, 3, 3, 3, 3, 3, 3, 4};
CBGEN_DEVICE int first_block(const Arrays &, int i) { return first_block_table[i]; }
// nonzeros of a run
__device__ const uint16_t nnz_per_run_table[] = {
    64, 80, 0, 0, 0, 0, 0, 256};
CBGEN_DEVICE int nnz_per_run(const Arrays &, int i) { return nnz_per_run_table[i]; }
CBGEN_DEVICE int row_length(const Arrays &arrays, int i) { return load(arrays.row_length + i); }
// panel of a run
__device__ const uint8_t run_panel_table[] = {
    0, 1, 2, 3, 4, 5, 6, 0};
CBGEN_DEVICE int run_panel(const Arrays &, int i) { return run_panel_table[i]; }
// warps with runs of a panel, as bits, at the first of them; else 0
__device__ const uint8_t warps_together_table[] = {
    129, 2, 0, 0, 0, 0, 0, 0};
CBGEN_DEVICE int warps_together(const Arrays &, int i) { return warps_together_table[i]; }
CBGEN_DEVICE sum_t value(const Arrays &arrays, int slot) {
  return sum_t(load((const stored_t *)arrays.mtx_data + slot));
}
template <int n> CBGEN_DEVICE Vector<sum_t, n> value_vector(const Arrays &arrays, int slot) {
  const Vector<stored_t, n> stored = load_cached_vector<stored_t, n>((const stored_t *)arrays.mtx_data + slot);
  Vector<sum_t, n> values;
#pragma unroll
  for (int i = 0; i < n; i++) values.at[i] = sum_t(stored.at[i]);
  return values;
}

// Columns of sub-blocks, from their first one: the lists that most sub-blocks have. No constant memory: lanes read
// different elements.
__device__ const uint8_t column_lists[16 * kLists] = {
    0, 1, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3,
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

// The matrix's column that (aggregated) column lane % 16 of a run's sub-block is.
CBGEN_DEVICE int column_of_lane(const Arrays &arrays, int /* run */, int block) {
  const int list = blk_list(arrays, block), column = int(threadIdx.x % 16);
  return blk_col_idx(arrays, block) + column_lists[16 * list + column];
}

CBGEN_DEVICE sum_t x_of(const Vectors &vectors, int column) { return load_x(vectors, column); }

// A run's bytes: coordinates, padding to a whole value, values.
struct Data {
  const uint8_t *coordinates;
  index_t first_value;
};

CBGEN_DEVICE Data data_of(const Arrays &arrays, int run, int coordinate_bytes) {
  constexpr int kValue = sizeof(stored_t);
  const index_t start = vp_per_run(arrays, run);
  return {arrays.mtx_data + size_t(start) * kValue, start + (coordinate_bytes + kValue - 1) / kValue};
}

// Columns lane % 16 of kStageBatch sub-blocks of a run from `first` on: every kRowLanes-th, for the halves of a warp take
// turns when they share a run.
struct Columns {
  int of[kStageBatch];
};

CBGEN_DEVICE Columns load_columns(const Arrays &arrays, int run, int first, int end) {
  Columns columns;
  const int last = max(end - 1, 0);  // again and again where there are no more: cheaper than a guard
#pragma unroll
  for (int i = 0; i < kStageBatch; i++) columns.of[i] = column_of_lane(arrays, run, min(first + kRowLanes * i, last));
  return columns;
}

// Gathers their x into staged[at], staged[at + 16 * kRowLanes], … A run's share of it has room for whole batches.
CBGEN_DEVICE void stage_columns(const Vectors &vectors, const Columns &columns, Shared<sum_t, kStaged> &staged,
    int at) {
  sum_t x[kStageBatch];
#pragma unroll
  for (int i = 0; i < kStageBatch; i++) x[i] = x_of(vectors, columns.of[i]);
#pragma unroll
  for (int i = 0; i < kStageBatch; i++) staged[at + 16 * kRowLanes * i] = x[i];
}

// A CSR run's next kBatch steps. In each, a lane has at most one nonzero of its row; those of one step lie side by side,
// in the order of lanes and without gaps. So a lane's place is the number of lanes before it that have one; a lane that
// has none meets its neighbour's, or what pads the run. `rest`: steps that the lane has left.
struct CsrBatch {
  int columns[kBatch];
  sum_t values[kBatch];
};

CBGEN_DEVICE CsrBatch load_csr(const Arrays &arrays, const Data &data, int rest, int &next) {
  const unsigned before = (1u << threadIdx.x % (16 * kRowLanes)) - 1;
  CsrBatch batch;
#pragma unroll
  for (int i = 0; i < kBatch; i++) {
    const unsigned busy = __ballot_sync(kFullMask, i < rest);
    const int at = next + __popc(busy & before);
    batch.columns[i] = load(data.coordinates + at);
    batch.values[i] = value(arrays, data.first_value + at);
    next += __popc(busy);
  }
  return batch;
}

CBGEN_DEVICE sum_t add_csr(const CsrBatch &batch, const Shared<sum_t, kStaged> &staged, int own, int rest, sum_t sum) {
#pragma unroll
  for (int i = 0; i < kBatch; i++) {
    const sum_t x = staged[own + batch.columns[i]];
    if (i < rest) sum = add_product(sum, batch.values[i], x);  // else neither is the row's
  }
  return sum;
}

// A CSR run: kRowLanes lanes take the nonzeros of a row in turn. The first batch's loads are in flight before x is
// gathered.
CBGEN_DEVICE sum_t csr_sum(const Arrays &arrays, const Vectors &vectors, Shared<sum_t, kStaged> &staged, int run,
    int begin, int end) {
  const int own = int(threadIdx.x / (16 * kRowLanes)) * kStage, half = int(threadIdx.x / 16 % kRowLanes);
  const int length = row_length(arrays, index_t(16) * run + int(threadIdx.x % 16));
  const Data data = data_of(arrays, run, nnz_per_run(arrays, run) + 1);
  const Columns columns = load_columns(arrays, run, begin + half, end);
  int rest = (length - half + kRowLanes - 1) / kRowLanes, next = 0;
  CsrBatch batch = load_csr(arrays, data, rest, next);
  stage_columns(vectors, columns, staged, own + int(threadIdx.x % (16 * kRowLanes)));
  __syncwarp();
  sum_t sum = add_csr(batch, staged, own, rest, zero());
  #pragma unroll 1
  while (__any_sync(kFullMask, rest > kBatch)) {
    rest -= kBatch;
    batch = load_csr(arrays, data, rest, next);
    sum = add_csr(batch, staged, own, rest, sum);
  }
  return sum;
}

// A Dense run, sub-blocks [begin, end): a lane holds column lane % 16 of the eight rows 8 (lane / 16) + 0 … 7, so one x
// serves eight products and nothing is shuffled until the end.
CBGEN_DEVICE sum_t dense_sum(const Arrays &arrays, const Vectors &vectors, int run, int begin, int end) {
  const int lane = int(threadIdx.x % 32);
  const Data data = data_of(arrays, run, 0);  // no presence bits: every Dense sub-block of this matrix is full
  sum_t sums[8] = {};
  for (int block = begin; block < end; block++) {
    const sum_t x = x_of(vectors, column_of_lane(arrays, run, block));
    #pragma unroll
    for (int i = 0; i < 8; i += kVector) {
      const Vector<sum_t, kVector> values =
          value_vector<kVector>(arrays, data.first_value + 256 * (block - begin) + kVector * lane + 32 * i);
    #pragma unroll
      for (int v = 0; v < kVector; v++) sums[i + v] = add_product(sums[i + v], values.at[v], x);
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
      sums[i] = add(keep, shuffle_xor(give, 2 * half));
    }
  }
  const sum_t sum = add(sums[0], shuffle_xor(sums[0], 1));
  const sum_t sum_of_row = shuffle(sum, 2 * (lane % 16));
  return lane < 16 ? sum_of_row : zero();
}

// What a thread block's warps multiply: CSR before warp `csr`, then Dense.
struct Formats {
  int csr;
};

CBGEN_DEVICE Formats formats_of(int thread_block) {
  constexpr int kRangeFirst[] = {0};  // its first thread block
  constexpr int kRangeCsr[] = {7};
  Formats formats = {kRangeCsr[0]};
#pragma unroll
  for (int i = 1; i < kRanges; i++)
    if (thread_block >= kRangeFirst[i]) formats = {kRangeCsr[i]};
  return formats;
}

// What was counted is what the text was made for.
static_assert(16 * int64_t(kPanels) >= kRows && 16 * (int64_t(kPanels) - 1) < kRows, "panels of 16 rows");
static_assert(kCsrRuns <= kCsrBlocks && kCsrBlocks <= 16 * int64_t(kCsrRuns), "runs of CSR sub-blocks");
static_assert(kDenseRuns <= kDenseBlocks && kDenseBlocks <= 16 * int64_t(kDenseRuns), "runs of Dense sub-blocks");

// A run is what 16 * kRowLanes lanes multiply: sub-blocks of one panel and one format. Lane l collects a part of the sum
// of row l % 16.
CBGEN_DEVICE void multiply(const Arrays &arrays, const Vectors &vectors, int thread_block) {
  __shared__ Shared<sum_t, kStaged> staged;  // [run]: x of its columns
  const int lane = int(threadIdx.x % 32);
  const int run = 16 / kRowLanes * thread_block + int(threadIdx.x / (16 * kRowLanes));
  const int row = 16 * run_panel(arrays, run) + lane % 16;
  const int begin = first_block(arrays, run), end = first_block(arrays, run + 1);
  const int runs = warps_together(arrays, run);
  sum_t sum = zero();
  const Formats formats = formats_of(thread_block);
  const int warp = int(threadIdx.x / 32);
  if (warp < formats.csr) sum = csr_sum(arrays, vectors, staged, run, begin, end);
  else sum = dense_sum(arrays, vectors, run, begin, end);
  sum = add(sum, shuffle_xor(sum, 16));
  __shared__ Shared<sum_t, 8 * 16> sums_of_runs;  // [run][row]
  if (lane < 16) sums_of_runs[int(threadIdx.x / 32) * 16 + lane] = sum;
  __syncthreads();
  if (runs == 0) return;
  #pragma unroll 1
  for (int other = int(threadIdx.x / 32) + 1; runs >> other; other++)
    if (runs >> other & 1) sum = add(sum, sums_of_runs[other * 16 + lane % 16]);
  if (lane < 16 && row < kRows) commit(vectors, row, sum);  // the last rows do not fill their panel or thread block
}

}  // namespace cb0

// ---- kernels

constexpr int kThreads = 256;  // launch: threads of a thread block
CBGEN_KERNEL void __launch_bounds__(kThreads, blocks_that_fit(3, kThreads)) dense_spmv(cb0::Arrays cb0_arrays, const vector_t *x, vector_t *y, sum_t alpha, sum_t beta) {
  wait_for_previous();
  const Vectors vectors = {x, y, alpha, beta};
  cb0_arrays.mtx_data = after_wait(cb0_arrays.mtx_data);
  cb0::multiply(cb0_arrays, vectors, (int)blockIdx.x);
}

// ---- host: load, multiply, free ------------------------------------------------------------------------------
// Functions return NULL, or a message that lives forever. NVRTC does not see them; nvcc has included <cuda_runtime.h>.
#ifndef __CUDACC_RTC__
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Device pointers of one loaded matrix.
struct dense_matrix {
  cb0::Arrays cb0;
  void *memory;  // the one allocation that all of it lies in
};

void dense_free(dense_matrix *matrix) {
  cudaFree(matrix->memory);
  *matrix = {};
}

#ifndef CBGEN_EMULATION  // there an array's ends are watched
static void *array_at(void *memory, size_t offset, size_t /* bytes */) { return (char *)memory + offset; }
#endif

// XXH64 of the data, of which there is a multiple of 32 bytes. The place of the checksum itself counts as zero.
static uint64_t dense_checksum(const unsigned char *data, size_t bytes) {
  constexpr uint64_t kOdd1 = 0x9e3779b185ebca87u, kOdd2 = 0xc2b2ae3d27d4eb4fu, kOdd3 = 0x165667b19e3779f9u,
                     kOdd4 = 0x85ebca77c2b2ae63u;
  constexpr size_t kChecksumAt = 40;
  const auto rotated = [](uint64_t word, int by) { return (word << by) | (word >> (64 - by)); };
  const auto mixed = [=](uint64_t lane, uint64_t word) { return rotated(lane + word * kOdd2, 31) * kOdd1; };
  uint64_t lanes[4] = {kOdd1 + kOdd2, kOdd2, 0, 0 - kOdd1}, sum = 0;
  for (size_t at = 0; at < bytes; at += sizeof lanes) {
    uint64_t words[4];
    memcpy(words, data + at, sizeof words);
    if (at == kChecksumAt / 32 * 32) words[kChecksumAt % 32 / 8] = 0;
    for (int i = 0; i < 4; i++) lanes[i] = mixed(lanes[i], words[i]);
  }
  constexpr int kRotations[] = {1, 7, 12, 18};
  for (int i = 0; i < 4; i++) sum += rotated(lanes[i], kRotations[i]);
  for (int i = 0; i < 4; i++) sum = (sum ^ mixed(0, lanes[i])) * kOdd1 + kOdd4;
  sum += bytes;
  sum = (sum ^ (sum >> 33)) * kOdd2;
  sum = (sum ^ (sum >> 29)) * kOdd3;
  return sum ^ (sum >> 32);
}

// Checks that `data` (`bytes` long) is the packed data of this kernel, whole and unchanged.
static const char *dense_check(const unsigned char *data, size_t bytes) {
  constexpr uint64_t kId[2] = {0x6bdb31f5f677455eu, 0xb4a373ec5dcf2f82u};  // plan and pattern
  uint64_t header[8];
  if (bytes < sizeof header) return "data of dense: shorter than its header";
  memcpy(header, data, sizeof header);
  if (memcmp(data, "CBGENDAT", 8) != 0) return "data of dense: not a cbgen data file";
  if ((header[1] & 0xffffffffu) != 2) return "data of dense: another version of the format; generate both files anew";
  if (memcmp(header + 2, kId, sizeof kId) != 0) return "data of dense: belongs to another kernel; generate both files anew";
  if (header[4] != bytes || bytes < 4096 || bytes % 32 != 0) return "data of dense: cut short";
  return dense_checksum(data, bytes) == header[5] ? nullptr : "data of dense: damaged, its checksum does not match";
}

// Copies the arrays to the current device, where they lie as in the data. Free with dense_free; after a failure
// nothing is left to free.
const char *dense_load(dense_matrix *matrix, const void *data, size_t bytes) {
  *matrix = {};
  const char *message = dense_check((const unsigned char *)data, bytes);
  if (message) return message;
  cudaError_t error = cudaMalloc(&matrix->memory, 4096);
  if (!error) error = cudaMemcpy(matrix->memory, data, 4096, cudaMemcpyHostToDevice);
  if (error) {
    dense_free(matrix);
    return cudaGetErrorString(error);
  }
  matrix->cb0.mtx_data = (const uint8_t *)array_at(matrix->memory, 256, 3416);
  matrix->cb0.row_length = (const uint8_t *)array_at(matrix->memory, 3840, 128);
  return nullptr;
}

// The same from a data file (the one written beside this text, or a copy).
const char *dense_load_file(dense_matrix *matrix, const char *path) {
  *matrix = {};
  FILE *file = fopen(path, "rb");
  if (!file) return "data of dense: the file cannot be opened";
  const char *message = "data of dense: the file cannot be read";
  long bytes = -1;
  void *data = nullptr;
  if (!fseek(file, 0, SEEK_END) && (bytes = ftell(file)) >= 0 && !fseek(file, 0, SEEK_SET)) {
    data = malloc(bytes ? bytes : 1);
    if (!data) message = "data of dense: out of memory";
    else if (fread(data, 1, bytes, file) == size_t(bytes)) message = dense_load(matrix, data, bytes);
  }
  free(data);
  fclose(file);
  return message;
}

// From sm_90 on the kernel may start while the one before it is still ending: wait_for_previous does the rest.
template <class... P, class... A>
static cudaError_t launch(void (*kernel)(P...), unsigned blocks, unsigned threads, size_t shared_bytes,
                          cudaStream_t stream, A... arguments) {
  constexpr int kCompiledFor[] = {__CUDA_ARCH_LIST__};  // ascending
  cudaLaunchAttribute overlap = {};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = kCompiledFor[0] >= 900;
  return cudaLaunchKernelEx(&config, kernel, P(arguments)...);
}

// y = αA·x + βy on `stream`, without allocation or synchronisation. x: 20, y: 20 elements on the device.
const char *dense_multiply(const dense_matrix *matrix, const vector_t *x, vector_t *y, sum_t alpha, sum_t beta,
    cudaStream_t stream) {
  constexpr unsigned kGrid = 1;  // launch: thread blocks
  cudaError_t error = launch(dense_spmv, kGrid, kThreads, 0, stream, matrix->cb0, x, y, alpha, beta);
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
  constexpr size_t kRowCount = 20, kColCount = 20, kExpected = 4096;
  dense_matrix matrix;
  int devices = 0;
  if (cudaGetDeviceCount(&devices) || devices < 1) return "no GPU is there, or no driver for it";
  const char *message = dense_load(&matrix, data, bytes);
  if (message) return message;
  if (bytes < kExpected + 2 * kRowCount * sizeof(double)) {
    dense_free(&matrix);
    return "the data has no self-test part: generate it with --selftest=on";
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
  if (!message && !wrong)
    printf("dense: ok: %zu rows, largest error %.3g of its tolerance\n", kRowCount, worst);
  free(host);
  cudaFree(x);
  cudaFree(y);
  dense_free(&matrix);
  return message ? message : wrong ? "wrong result" : nullptr;
}

// Usage: PROGRAM [DATA-FILE]. Without it the data file beside this text is read, kernel.cbd for kernel.cu: in the
// folder where the text was compiled, else in the current one. Exit codes: 0 right, 4 no data file, else 1.
int main(int count, char **arguments) {
  char beside[sizeof __FILE__ + sizeof ".cbd"] = __FILE__;
  char *end = beside + strlen(beside), *name = strrchr(beside, '/');
  strcpy(end - beside > 3 && !strcmp(end - 3, ".cu") ? end - 3 : end, ".cbd");
  const char *path = count > 1 ? arguments[1] : beside;
  FILE *file = fopen(path, "rb");
  if (!file && count < 2 && name) file = fopen(path = name + 1, "rb");
  char *data = nullptr;
  long bytes = -1;
  if (file && !fseek(file, 0, SEEK_END) && (bytes = ftell(file)) >= 0 && !fseek(file, 0, SEEK_SET))
    data = (char *)malloc(bytes ? bytes : 1);
  const bool is_read = data && fread(data, 1, bytes, file) == size_t(bytes);
  const char *message = is_read ? dense_selftest(data, bytes) : "the data file cannot be read: name it as the argument";
  if (message) fprintf(stderr, "dense: %s: %s\n", path, message);
  if (file) fclose(file);
  free(data);
  return !message ? 0 : is_read ? 1 : 4;
}
#endif  // CBGEN_SELFTEST
#endif  // __CUDACC_RTC__
