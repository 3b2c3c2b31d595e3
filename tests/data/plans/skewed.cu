// y = αA·x + βy for "skewed": 60 × 900, 1398 nonzeros, double.  cbgen 0.1.0, do not edit.
//   plan    (spmv (merge (tiles 2) (items 3) (long 2) (segments 1 2) (empty 4)))
//   because recipe merge was named; 3.40 us predicted
//   target  sm_90, 132 SMs        launch  grid 4 × 256 threads, 0 B dynamic shared memory
//   pattern fe1cb40a6885b31a23c90158f9b12f27        stored  10.4 bytes per nonzero (CSR: 12.2)
//   use     skewed_load_file, skewed_multiply, skewed_free; -DCBGEN_SELFTEST makes it a program that checks itself
//
// Read it from here: types and vectors, then one namespace per region of the plan, then the kernels. The device
// prelude above them says how memory is read and written; the host section at the end is not seen by NVRTC.

// ---- device prelude: what the kernels below need of types, memory and warps -----------------------------------
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned;
#define CBGEN_KERNEL extern "C" __global__
#define CBGEN_DEVICE static __device__ __forceinline__
constexpr unsigned kFullMask = 0xffffffffu;  // all lanes of a warp

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

// The same behind a load of that number, which is none below 0: compilers would move a plain wait before it, as they do
// where they see that the condition holds. Of what is below 0 here they know nothing.
CBGEN_DEVICE void wait_behind(int number) {
  int multiprocessors;
  asm("mov.u32 %0, %%nsmid;" : "=r"(multiprocessors));
  if (number != ~multiprocessors) wait_for_previous();
}

// The kernel behind in the stream may start, and wait for this one's end, as soon as all thread blocks are here.
CBGEN_DEVICE void start_next() {
  if constexpr (kArch >= 900) asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
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

// Reads what other thread blocks write.
template <class T> CBGEN_DEVICE T load_l2(const T *p) { return __ldcg(p); }

// Writes what other thread blocks read.
template <class T> CBGEN_DEVICE void store_l2(T *p, T value) { __stcg(p, value); }

// What the lane has whose number differs in these bits.
template <class T> CBGEN_DEVICE T shuffle_xor(T value, int bits) { return __shfl_xor_sync(kFullMask, value, bits); }

// What the lane `by` before this one has; the first lanes keep their own.
template <class T> CBGEN_DEVICE T shuffle_up(T value, int by) { return __shfl_up_sync(kFullMask, value, by); }

// ---- end of the device prelude --------------------------------------------------------------------------------
// ---- types and vectors ---------------------------------------------------------------------------------------

using vector_t = double;  // x and y
using sum_t = double;     // sums, alpha and beta


struct Vectors {
  const vector_t *x;  // length 900
  vector_t *y;        // length 60
  sum_t alpha, beta;
  sum_t *carry_sums;         // 2: sums of rows that several units share
  uint32_t *carry_counters;  // 1: units that have arrived, per shared panel; zero between products
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

// Called by a whole warp after it stored its carry slot. True in the last of `parties` warps, for which all slots
// are readable; the counter is then ready for the next product.
CBGEN_DEVICE bool last_to_arrive(uint32_t *counter, int parties) {
  __threadfence();
  __syncwarp();
  unsigned before = 0;
  if (threadIdx.x % 32 == 0) before = atomicAdd(counter, 1u);
  before = __shfl_sync(kFullMask, before, 0);
  if (before + 1 != (unsigned)parties) return false;
  __threadfence();
  if (threadIdx.x % 32 == 0) store_l2(counter, uint32_t(0));
  return true;
}

// ---- region merge0: equal shares of nonzeros for all lanes; a bit for each says where rows end
//      tiles 2, items 3, long 2, segments 1 2, empty 4

namespace merge0 {

constexpr int kFirstColumn = 0;  // plan, always: a tile's first column
constexpr int kLongColumn = 0;  // plan, always: a long row's (or row segment's) first column
constexpr int kLongRow = 20;  // plan, always: a long row
constexpr int kCarryGroup = 0;  // plan, always: a segment's group: the segments of one row
using index_t = int;  // holds any index into the arrays below
constexpr int kItems = 3;  // plan: nonzeros of a lane
constexpr int kSegments = 2;  // plan: thread blocks that have a row segment
constexpr int kEmptyRows = 4;  // matrix: rows without nonzeros
constexpr int kBlocks = 4;  // plan: thread blocks of this region
constexpr int kLongBlocks = 2;  // plan: thread blocks of long rows

struct Arrays {
  const uint16_t *column_offset;  // 1408: column of a slot, from the first of its tile or long row
  const double *values;  // 1408: in the order of slots
  const uint8_t *descriptor;  // 512: of a lane: kItems bits, set where rows end; above them, rows that end in earlier lanes
};

CBGEN_DEVICE int column_offset(const Arrays &arrays, int i) { return load(arrays.column_offset + i); }
// steps of 32 slots before a tile
__device__ const uint8_t first_step_table[] = {
    25, 32, 44};
CBGEN_DEVICE int first_step(const Arrays &, int i) { return first_step_table[i]; }
CBGEN_DEVICE int descriptor(const Arrays &arrays, int i) { return load(arrays.descriptor + i); }
// rows that end in a chunk
__device__ const uint8_t row_count_table[] = {
    6, 9, 2, 0, 0, 0, 0, 0, 10, 13, 9, 6, 0, 0, 0, 0};
CBGEN_DEVICE int row_count(const Arrays &, int i) { return row_count_table[i]; }
// the first row that ends in a chunk
__device__ const uint8_t first_row_table[] = {
    0, 9, 18, 0, 0, 0, 0, 0, 21, 31, 45, 54, 0, 0, 0, 0};
CBGEN_DEVICE int first_row(const Arrays &, int i) { return first_row_table[i]; }
// row ends before a chunk
__device__ const uint8_t first_end_table[] = {
    0, 6, 15, 17, 17, 17, 17, 17, 17, 27, 40, 49, 55, 55, 55, 55};
CBGEN_DEVICE int first_end(const Arrays &, int i) { return first_end_table[i]; }
// row of a row end, from its chunk's first row
__device__ const uint8_t row_offset_table[] = {
    0, 1, 2, 3, 4, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0,
    1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 3, 4, 5,
    6, 7, 8, 9, 10, 11, 12, 13, 0, 1, 2, 3, 4, 5, 6, 7,
    8, 0, 1, 2, 3, 4, 5};
CBGEN_DEVICE int row_offset(const Arrays &, int i) { return row_offset_table[i]; }
// first slot of a long row (or row segment); one more
__device__ const uint16_t long_slot_table[] = {
    0, 384, 800};
CBGEN_DEVICE int long_slot(const Arrays &, int i) { return long_slot_table[i]; }
// a group's first segment; groups + 1
CBGEN_DEVICE int carry_first(const Arrays &, int i) { return 2 * i; }
// rows without nonzeros
__device__ const uint8_t empty_row_table[] = {
    5, 6, 7, 33};
CBGEN_DEVICE int empty_row(const Arrays &, int i) { return empty_row_table[i]; }
CBGEN_DEVICE sum_t value(const Arrays &arrays, int slot) {
  return sum_t(load(arrays.values + slot));
}

// Adds up the rows that end in a chunk: row k of it into sums[own + k]. A lane brings products 32 i + lane of the
// chunk and adds up kItems consecutive ones. What stands open at the end of a lane goes on to the next lanes, up to
// one where a row ends. Returns, in lane 31, what stands open at the end of the chunk. `bits` is the lane's descriptor.
CBGEN_DEVICE sum_t sum_rows(Shared<sum_t, 256 * kItems> &sums, int own, int bits, sum_t (&products)[kItems]) {
  static_assert(kItems % 2 == 1, "an even stride would make lanes share banks");
  const int lane = (int)threadIdx.x % 32, rows_before = bits >> kItems;
  const bool ends = bits & ((1 << kItems) - 1);
#pragma unroll
  for (int i = 0; i < kItems; i++) sums[own + 32 * i + lane] = products[i];
  __syncwarp();
#pragma unroll
  for (int i = 0; i < kItems; i++) products[i] = sums[own + kItems * lane + i];
  __syncwarp();
  sum_t open = zero();
  int row = own + rows_before;
#pragma unroll
  for (int i = 0; i < kItems; i++) {
    open = add(open, products[i]);
    if (bits >> i & 1) {
      sums[row++] = open;
      open = zero();
    }
  }
  // The first lane whose open sum reaches this one.
  const unsigned enders = __ballot_sync(kFullMask, ends) & ((2u << lane) - 1);
  const int reach = enders ? 31 - __clz((int)enders) : 0;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const sum_t before = shuffle_up(open, step);
    if (lane - step >= reach) open = add(open, before);
  }
  const sum_t before = shuffle_up(open, 1);
  if (ends && lane > 0) sums[own + rows_before] = add(sums[own + rows_before], before);
  return open;
}

// Products 32 i + lane of the warp's chunk. All loads are in flight before the first is used.
CBGEN_DEVICE void multiply_chunk(const Arrays &arrays, const Vectors &vectors, int tile, sum_t (&products)[kItems]) {
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  const int first = first_step(arrays, tile), base = kFirstColumn;
  const index_t slots = 32 * (index_t(first) + kItems * warp) + lane;
  int columns[kItems];
  sum_t values[kItems];
  const int steps = first_step(arrays, tile + 1) - first - kItems * warp;  // that the chunk has
  #pragma unroll
  for (int i = 0; i < kItems; i++) {
    columns[i] = i < steps ? base + column_offset(arrays, slots + 32 * i) : 0;
    values[i] = i < steps ? value(arrays, slots + 32 * i) : sum_t(0);
  }
  #pragma unroll
  for (int i = 0; i < kItems; i++) products[i] = i < steps ? product(values[i], load_x(vectors, columns[i])) : zero();
}

// A tile: whole rows. A warp's chunk of it is 32 * kItems nonzeros; the rows that end there are the warp's to write.
CBGEN_DEVICE void multiply_tile(Arrays arrays, const Vectors &vectors, int tile) {
  __shared__ Shared<sum_t, 256 * kItems> sums;  // [warp]: products, then sums of rows
  __shared__ Shared<sum_t, 8> open_sums;        // [warp]: what stands open at the end of the chunk
  __shared__ Shared<int, 8> rows_of;            // [warp]: rows that end in the chunk
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  const int chunk = 8 * tile + warp, own = 32 * kItems * warp;
  const int ends = descriptor(arrays, 256 * index_t(tile) + threadIdx.x);
  const int rows = row_count(arrays, chunk), first = first_row(arrays, chunk);
  const int end = first_end(arrays, chunk);
  const int row_of_lane = lane < rows ? first + row_offset(arrays, end + lane) : 0;
  // Up to here nothing was read but the matrix's structure.
  wait_behind(rows | first | row_of_lane | first_step(arrays, tile) | kFirstColumn);
  start_next();
  arrays.values = after_wait(arrays.values);
  sum_t products[kItems], open = zero();
  multiply_chunk(arrays, vectors, tile, products);
  if (rows > 0) {
    open = sum_rows(sums, own, ends, products);
  } else {  // amidst a row
#pragma unroll
    for (int i = 0; i < kItems; i++) open = add(open, products[i]);
#pragma unroll
    for (int step = 16; step > 0; step /= 2) open = add(open, shuffle_xor(open, step));
  }
  if (lane == 31) {
    open_sums[warp] = open;
    rows_of[warp] = rows;
  }
  __syncthreads();
  for (int k = lane; k < rows; k += 32) {
    sum_t sum = sums[own + k];
    for (int other = warp - 1; k == 0 && other >= 0; other--) {  // the first row may begin in earlier chunks
      sum = add(sum, open_sums[other]);
      if (rows_of[other] > 0) break;
    }
    commit(vectors, k < 32 ? row_of_lane : first + row_offset(arrays, end + k), sum);
  }
}

// A long row, or a segment of one. The loads of kBatch nonzeros per thread are in flight before the first is used.
CBGEN_DEVICE void multiply_long(Arrays arrays, const Vectors &vectors, int block) {
  constexpr int kBatch = 8;
  __shared__ Shared<sum_t, 8> warp_sums;
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  const index_t first = long_slot(arrays, block), end = long_slot(arrays, block + 1);
  const int base = kLongColumn, row = kLongRow;
  const int count = int(end - first);
  const int some_group = kCarryGroup;
  wait_behind(row | base | count | max(some_group, 0));  // up to here nothing was read but the matrix's structure
  start_next();
  arrays.values = after_wait(arrays.values);
  sum_t sum = zero();
  for (int k = (int)threadIdx.x; k < count; k += 256 * kBatch) {
    int columns[kBatch];
    sum_t values[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; i++) {
      const int at = min(k + 256 * i, count - 1);
      columns[i] = base + column_offset(arrays, first + at);
      values[i] = value(arrays, first + at);
    }
    sum_t of_x[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; i++) of_x[i] = load_x(vectors, columns[i]);
#pragma unroll
    for (int i = 0; i < kBatch; i++)
      if (k + 256 * i < count) sum = add_product(sum, values[i], of_x[i]);
  }
  const int group = block < kSegments ? some_group : -1;
  const int first_segment = carry_first(arrays, max(group, 0)), last_segment = carry_first(arrays, max(group, 0) + 1);
#pragma unroll
  for (int step = 16; step > 0; step /= 2) sum = add(sum, shuffle_xor(sum, step));
  if (lane == 0) warp_sums[warp] = sum;
  __syncthreads();
  if (warp > 0) return;
  sum = warp_sums[lane % 8];
#pragma unroll
  for (int step = 4; step > 0; step /= 2) sum = add(sum, shuffle_xor(sum, step));
  if (group >= 0) {
    sum_t *const sums = vectors.carry_sums + 0;
    if (lane == 0) store_l2(sums + block, sum);
    if (!last_to_arrive(vectors.carry_counters + 0 + group, last_segment - first_segment)) return;
    sum = zero();
    for (int segment = first_segment + lane; segment < last_segment; segment += 32)
      sum = add(sum, load_l2(sums + segment));
  #pragma unroll
    for (int step = 16; step > 0; step /= 2) sum = add(sum, shuffle_xor(sum, step));
  }
  if (lane == 0) commit(vectors, row, sum);
}

// Rows without nonzeros, in equal shares.
CBGEN_DEVICE void write_empty_rows(const Arrays &arrays, const Vectors &vectors, int thread_block) {
  for (unsigned i = 256u * thread_block + threadIdx.x; i < unsigned(kEmptyRows); i += 256u * kBlocks)
    commit(vectors, empty_row(arrays, i), zero());
}

CBGEN_DEVICE void multiply(const Arrays &arrays, const Vectors &vectors, int thread_block) {
  if (thread_block < kLongBlocks) multiply_long(arrays, vectors, thread_block);
  else multiply_tile(arrays, vectors, thread_block - kLongBlocks);
  write_empty_rows(arrays, vectors, thread_block);  // behind the wait
}

}  // namespace merge0

// ---- kernels

constexpr int kThreads = 256;  // launch: threads of a thread block
CBGEN_KERNEL void __launch_bounds__(kThreads, blocks_that_fit(6, kThreads)) skewed_spmv(merge0::Arrays merge0_arrays, const vector_t *x, vector_t *y, sum_t alpha, sum_t beta, sum_t *carry_sums, uint32_t *carry_counters) {
  const Vectors vectors = {x, y, alpha, beta, carry_sums, carry_counters};
  merge0::multiply(merge0_arrays, vectors, (int)blockIdx.x);
}

// ---- host: load, multiply, free ------------------------------------------------------------------------------
// Functions return NULL, or a message that lives forever. NVRTC does not see them; nvcc has included <cuda_runtime.h>.
#ifndef __CUDACC_RTC__
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Device pointers of one loaded matrix.
struct skewed_matrix {
  merge0::Arrays merge0;
  sum_t *carry_sums;
  uint32_t *carry_counters;
  void *memory;  // the one allocation that all of it lies in
};

void skewed_free(skewed_matrix *matrix) {
  cudaFree(matrix->memory);
  *matrix = {};
}

#ifndef CBGEN_EMULATION  // there an array's ends are watched
static void *array_at(void *memory, size_t offset, size_t /* bytes */) { return (char *)memory + offset; }
#endif

// XXH64 of the data, of which there is a multiple of 32 bytes. The place of the checksum itself counts as zero.
static uint64_t skewed_checksum(const unsigned char *data, size_t bytes) {
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
static const char *skewed_check(const unsigned char *data, size_t bytes) {
  constexpr uint64_t kId[2] = {0xb5463f9b9fefe0cfu, 0xf1dd0114bf146911u};  // plan and pattern
  uint64_t header[8];
  if (bytes < sizeof header) return "data of skewed: shorter than its header";
  memcpy(header, data, sizeof header);
  if (memcmp(data, "CBGENDAT", 8) != 0) return "data of skewed: not a cbgen data file";
  if ((header[1] & 0xffffffffu) != 2) return "data of skewed: another version of the format; generate both files anew";
  if (memcmp(header + 2, kId, sizeof kId) != 0) return "data of skewed: belongs to another kernel; generate both files anew";
  if (header[4] != bytes || bytes < 14848 || bytes % 32 != 0) return "data of skewed: cut short";
  return skewed_checksum(data, bytes) == header[5] ? nullptr : "data of skewed: damaged, its checksum does not match";
}

// Copies the arrays to the current device, where they lie as in the data. Free with skewed_free; after a failure
// nothing is left to free.
const char *skewed_load(skewed_matrix *matrix, const void *data, size_t bytes) {
  *matrix = {};
  const char *message = skewed_check((const unsigned char *)data, bytes);
  if (message) return message;
  cudaError_t error = cudaMalloc(&matrix->memory, 15108);
  if (!error) error = cudaMemcpy(matrix->memory, data, 14848, cudaMemcpyHostToDevice);
  if (!error) error = cudaMemset((char *)matrix->memory + 15104, 0, 1 * sizeof(uint32_t));
  if (error) {
    skewed_free(matrix);
    return cudaGetErrorString(error);
  }
  matrix->merge0.column_offset = (const uint16_t *)array_at(matrix->memory, 256, 2816);
  matrix->merge0.values = (const double *)array_at(matrix->memory, 3072, 11264);
  matrix->merge0.descriptor = (const uint8_t *)array_at(matrix->memory, 14336, 512);
  matrix->carry_sums = (sum_t *)array_at(matrix->memory, 14848, 16);
  matrix->carry_counters = (uint32_t *)array_at(matrix->memory, 15104, 4);
  return nullptr;
}

// The same from a data file (the one written beside this text, or a copy).
const char *skewed_load_file(skewed_matrix *matrix, const char *path) {
  *matrix = {};
  FILE *file = fopen(path, "rb");
  if (!file) return "data of skewed: the file cannot be opened";
  const char *message = "data of skewed: the file cannot be read";
  long bytes = -1;
  void *data = nullptr;
  if (!fseek(file, 0, SEEK_END) && (bytes = ftell(file)) >= 0 && !fseek(file, 0, SEEK_SET)) {
    data = malloc(bytes ? bytes : 1);
    if (!data) message = "data of skewed: out of memory";
    else if (fread(data, 1, bytes, file) == size_t(bytes)) message = skewed_load(matrix, data, bytes);
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

// y = αA·x + βy on `stream`, without allocation or synchronisation. x: 900, y: 60 elements on the device.
const char *skewed_multiply(const skewed_matrix *matrix, const vector_t *x, vector_t *y, sum_t alpha, sum_t beta,
    cudaStream_t stream) {
  constexpr unsigned kGrid = 4;  // launch: thread blocks
  cudaError_t error = launch(skewed_spmv, kGrid, kThreads, 0, stream, matrix->merge0, x, y, alpha, beta, matrix->carry_sums, matrix->carry_counters);
  return error ? cudaGetErrorString(error) : nullptr;
}

#ifdef CBGEN_SELFTEST
// Element i of the seeded x, in [-1, 1): splitmix64 of i, its upper 53 bits.
static double skewed_x(uint64_t i) {
  uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return double((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1;
}

// Multiplies and compares every row with what `data` expects, within its tolerance.
static const char *skewed_selftest(const char *data, size_t bytes) {
  constexpr size_t kRowCount = 60, kColCount = 900, kExpected = 14848;
  skewed_matrix matrix;
  int devices = 0;
  if (cudaGetDeviceCount(&devices) || devices < 1) return "no GPU is there, or no driver for it";
  const char *message = skewed_load(&matrix, data, bytes);
  if (message) return message;
  if (bytes < kExpected + 2 * kRowCount * sizeof(double)) {
    skewed_free(&matrix);
    return "the data has no self-test part: generate it with --selftest=on";
  }
  const double *expected = (const double *)(data + kExpected), *tolerance = expected + kRowCount;
  vector_t *host = (vector_t *)malloc((kRowCount + kColCount + 1) * sizeof(vector_t)), *x = nullptr, *y = nullptr;
  if (host) {
    for (size_t i = 0; i < kColCount; i++) host[i] = vector_t(skewed_x(i));
    if (cudaMalloc((void **)&x, (kColCount + 1) * sizeof(vector_t)) || cudaMalloc((void **)&y, (kRowCount + 1) * sizeof(vector_t)) ||
        cudaMemcpy(x, host, kColCount * sizeof(vector_t), cudaMemcpyHostToDevice) ||
        cudaMemset(y, 255, kRowCount * sizeof(vector_t)))
      message = "no room on the device";
  } else {
    message = "out of memory";
  }
  if (!message) message = skewed_multiply(&matrix, x, y, 1, 0, 0);
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
    printf("skewed: WRONG: %zu of %zu rows; the first is row %zu: %.17g instead of %.17g, tolerance %.3g\n", wrong,
           kRowCount, first, double(host[first]), expected[first], tolerance[first]);
  if (!message && !wrong)
    printf("skewed: ok: %zu rows, largest error %.3g of its tolerance\n", kRowCount, worst);
  free(host);
  cudaFree(x);
  cudaFree(y);
  skewed_free(&matrix);
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
  const char *message = is_read ? skewed_selftest(data, bytes) : "the data file cannot be read: name it as the argument";
  if (message) fprintf(stderr, "skewed: %s: %s\n", path, message);
  if (file) fclose(file);
  free(data);
  return !message ? 0 : is_read ? 1 : 4;
}
#endif  // CBGEN_SELFTEST
#endif  // __CUDACC_RTC__
