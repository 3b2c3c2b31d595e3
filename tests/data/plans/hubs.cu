// y = αA·x + βy for "hubs": 60 × 120, 237 nonzeros, double.  cbgen 0.1.0, do not edit.
//   plan    (spmv (hot (columns 3) (share 60) (slices 3) (steps 7 4) (gather first)))
//   because recipe hot was named; 5.40 us predicted
//   target  sm_90, 132 SMs        launch  grid 1 × 256 threads, 0 B dynamic shared memory; then grid 1 × 1024 threads, 24 B dynamic shared memory
//   pattern 8dbb00722ee8b8b97f713b564aafba8f        stored  14.5 bytes per nonzero (CSR: 13.0)
//   use     hubs_load_file, hubs_multiply, hubs_free; -DCBGEN_SELFTEST makes it a program that checks itself
//
// Read it from here: types and vectors, then one namespace per region of the plan, then the kernels. The device
// prelude above them says how memory is read and written; the host section at the end is not seen by NVRTC.

// ---- device prelude: what the kernels below need of types, memory and warps -----------------------------------
using uint8_t = unsigned char;
using uint32_t = unsigned;
using uint64_t = decltype(sizeof 0);
#define CBGEN_KERNEL extern "C" __global__
#define CBGEN_DEVICE static __device__ __forceinline__
constexpr unsigned kFullMask = 0xffffffffu;  // all lanes of a warp

// The array that has all of the launch's dynamic shared memory.
extern __shared__ __align__(16) uint64_t dynamic_shared_words[];
template <class T, int n> struct DynamicShared {
  __device__ __forceinline__ T &operator[](int i) const { return ((T *)dynamic_shared_words)[i]; }
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

// Reads what other thread blocks write.
template <class T> CBGEN_DEVICE T load_l2(const T *p) { return __ldcg(p); }

// What the lane has whose number differs in these bits.
template <class T> CBGEN_DEVICE T shuffle_xor(T value, int bits) { return __shfl_xor_sync(kFullMask, value, bits); }

// ---- end of the device prelude --------------------------------------------------------------------------------
// ---- types and vectors ---------------------------------------------------------------------------------------

using vector_t = double;  // x and y
using sum_t = double;     // sums, alpha and beta

constexpr int kRows = 60;  // matrix: rows, the length of y

struct Vectors {
  const vector_t *x;  // length 120
  vector_t *y;        // length 60
  sum_t alpha, beta;
  sum_t *carry_sums;         // 3: sums of rows that several units share
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

// ---- region hot0: entries of x for the hottest columns in shared memory, rows as sliced ELL
//      columns 3, share 60, slices 3, steps 7 4, gather first

namespace hot0 {

using index_t = int;  // holds any index into the arrays below
constexpr int kHotSlots = 224;  // plan: slots of hot nonzeros, 32 to a step
constexpr int kBefore = 0;  // plan: sums before the gathered entries
constexpr int kGathered = 3;  // plan: entries of x that a first launch lays side by side
constexpr int kEach = 1;  // plan: entries of one of its threads
constexpr int kHot = 3;  // plan: hot columns, whose entries of x lie in shared memory
constexpr int kSlices = 3;  // plan: slices of 32 lanes
constexpr int kBatch = 4;  // plan: steps whose loads are in flight together
constexpr int kThreads = 1024;  // plan: threads of a thread block

struct Arrays {
  const uint8_t *hot_place;  // 224: place of a hot slot's column among the hot ones
  const uint8_t *cold_index;  // 128: where the entry of a cold slot is
  const double *values;  // 352: hot slots, then cold ones; per slice, step and lane
  const uint8_t *lane_hot;  // 96: hot nonzeros of a lane
  const uint8_t *lane_cold;  // 96: cold nonzeros of a lane
  const uint8_t *row_of;  // 65: row of a local row; kRows: none
};

CBGEN_DEVICE int hot_place(const Arrays &arrays, int i) { return load(arrays.hot_place + i); }
CBGEN_DEVICE int cold_index(const Arrays &arrays, int i) { return load(arrays.cold_index + i); }
// logarithm of the lanes that share a row of a slice
__device__ const uint8_t lanes_log2_table[] = {
    5, 0, 0};
CBGEN_DEVICE int lanes_log2(const Arrays &, int i) { return lanes_log2_table[i]; }
// a slice's first local row
__device__ const uint8_t first_local_row_table[] = {
    0, 1, 33};
CBGEN_DEVICE int first_local_row(const Arrays &, int i) { return first_local_row_table[i]; }
// hot steps before a slice's, 32 slots each
__device__ const uint8_t first_hot_table[] = {
    0, 1, 4};
CBGEN_DEVICE int first_hot(const Arrays &, int i) { return first_hot_table[i]; }
// cold steps before a slice's
__device__ const uint8_t first_cold_table[] = {
    0, 3, 4};
CBGEN_DEVICE int first_cold(const Arrays &, int i) { return first_cold_table[i]; }
CBGEN_DEVICE int lane_hot(const Arrays &arrays, int i) { return load(arrays.lane_hot + i); }
CBGEN_DEVICE int lane_cold(const Arrays &arrays, int i) { return load(arrays.lane_cold + i); }
CBGEN_DEVICE int row_of(const Arrays &arrays, int i) { return load(arrays.row_of + i); }
// a warp's first slice; warps + 1
__device__ const uint8_t first_slice_table[] = {
    0, 1, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3,
    3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3,
    3};
CBGEN_DEVICE int first_slice(const Arrays &, int i) { return first_slice_table[i]; }
// the hot columns, in order
__device__ const uint8_t hot_column_table[] = {
    6, 30, 89};
CBGEN_DEVICE int hot_column(const Arrays &, int i) { return hot_column_table[i]; }
CBGEN_DEVICE sum_t value(const Arrays &arrays, int slot) {
  return sum_t(load(arrays.values + slot));
}

// A launch of its own lays entries of x side by side, so that thread blocks read them as a stream, or find them in L2.
CBGEN_DEVICE vector_t *gathered(const Vectors &vectors) {
  return (vector_t *)(vectors.carry_sums + 0 + kBefore);
}

CBGEN_DEVICE void prepare(const Arrays &arrays, const Vectors &vectors, int thread_block) {
  const int first = kEach * 256 * thread_block + (int)threadIdx.x;
  sum_t entries[kEach];
#pragma unroll
  for (int j = 0; j < kEach; j++) {
    const int i = first + 256 * j;
    entries[j] = i < kGathered ? load_x(vectors, hot_column(arrays, i)) : zero();
  }
#pragma unroll
  for (int j = 0; j < kEach; j++)
    if (first + 256 * j < kGathered) gathered(vectors)[first + 256 * j] = vector_t(entries[j]);
}

// What a lane must know of a slice. The lanes of a local row take its nonzeros in turns.
struct Slice {
  int first_local_row, lanes_log2;
  int hot_steps;
  index_t hot_slot;
  int cold_steps;
  index_t cold_slot;
};

CBGEN_DEVICE Slice slice_at(const Arrays &arrays, int slice, int lane) {
  return {
    int(first_local_row(arrays, slice)), int(lanes_log2(arrays, slice)),
    int(lane_hot(arrays, 32 * slice + lane)), 32 * index_t(first_hot(arrays, slice)) + lane,
    int(lane_cold(arrays, 32 * slice + lane)), 32 * index_t(first_cold(arrays, slice)) + lane,
  };
}

using Hot = DynamicShared<vector_t, kHot>;

// What a lane adds up of a slice. All loads of kBatch steps are in flight before the first is used. No lane goes past its
// row's end, so padding is never multiplied.
CBGEN_DEVICE sum_t add_steps(const Arrays &arrays, const Vectors &vectors, const Hot &hot, const Slice &at) {
  sum_t sum = zero();
  #pragma unroll 1
  for (int step = 0; step < max(at.hot_steps, at.cold_steps); step += kBatch) {
    int indices[kBatch];
    sum_t cold_values[kBatch];
    #pragma unroll
    for (int i = 0; i < kBatch; i++) {
      const index_t slot = at.cold_slot + 32 * index_t(step + i);
      indices[i] = step + i < at.cold_steps ? cold_index(arrays, slot) : 0;
      cold_values[i] = step + i < at.cold_steps ? value(arrays, kHotSlots + slot) : sum_t(0);
    }
    int places[kBatch];
    sum_t hot_values[kBatch];
    #pragma unroll
    for (int i = 0; i < kBatch; i++) {
      const index_t slot = at.hot_slot + 32 * index_t(step + i);
      places[i] = step + i < at.hot_steps ? hot_place(arrays, slot) : 0;
      hot_values[i] = step + i < at.hot_steps ? value(arrays, slot) : sum_t(0);
    }
    sum_t cold[kBatch];
    #pragma unroll
    for (int i = 0; i < kBatch; i++) cold[i] = step + i < at.cold_steps ? load_x(vectors, indices[i]) : zero();
    #pragma unroll
    for (int i = 0; i < kBatch; i++)
      if (step + i < at.hot_steps) sum = add_product(sum, hot_values[i], sum_t(hot[places[i]]));
    #pragma unroll
    for (int i = 0; i < kBatch; i++) sum = add_product(sum, cold_values[i], cold[i]);
  }
  return sum;
}

// The hot entries of x lie in shared memory. What a warp must know of its next slice is in flight while it works on one.
CBGEN_DEVICE void multiply(const Arrays &arrays, const Vectors &vectors, int thread_block) {
  const Hot hot;
  const int lane = (int)threadIdx.x % 32, warp = thread_block * (kThreads / 32) + (int)threadIdx.x / 32;
  const int first = first_slice(arrays, warp), last = first_slice(arrays, warp + 1) - 1;
  Slice next = slice_at(arrays, min(first, kSlices - 1), lane);
#pragma unroll 8
  for (int i = (int)threadIdx.x; i < kHot; i += kThreads) hot[i] = load_l2(gathered(vectors) + i);
  __syncthreads();
  for (int slice = first; slice <= last; slice++) {
    const Slice at = next;
    next = slice_at(arrays, min(slice + 1, last), lane);
    const int lanes = 1 << at.lanes_log2, row = row_of(arrays, at.first_local_row + (lane >> at.lanes_log2));
    sum_t sum = add_steps(arrays, vectors, hot, at);
    for (int apart = lanes / 2; apart > 0; apart /= 2) sum = add(sum, shuffle_xor(sum, apart));
    if (lane % lanes == 0 && row < kRows) commit(vectors, row, sum);
  }
}

}  // namespace hot0

// ---- kernels

constexpr int kThreads0 = 256;  // launch: threads of a thread block
CBGEN_KERNEL void __launch_bounds__(kThreads0) hubs_spmv_0(const hot0::Arrays hot0_arrays, const vector_t *x, vector_t *y, sum_t alpha, sum_t beta, sum_t *carry_sums, uint32_t *carry_counters) {
  wait_for_previous();
  const Vectors vectors = {x, y, alpha, beta, carry_sums, carry_counters};
  hot0::prepare(hot0_arrays, vectors, (int)blockIdx.x);
}

constexpr int kThreads1 = 1024;  // launch: threads of a thread block
CBGEN_KERNEL void __launch_bounds__(kThreads1, 1) hubs_spmv_1(hot0::Arrays hot0_arrays, const vector_t *x, vector_t *y, sum_t alpha, sum_t beta, sum_t *carry_sums, uint32_t *carry_counters) {
  wait_for_previous();
  const Vectors vectors = {x, y, alpha, beta, carry_sums, carry_counters};
  hot0_arrays.values = after_wait(hot0_arrays.values);
  hot0::multiply(hot0_arrays, vectors, (int)blockIdx.x);
}

// ---- host: load, multiply, free ------------------------------------------------------------------------------
// Functions return NULL, or a message that lives forever. NVRTC does not see them; nvcc has included <cuda_runtime.h>.
#ifndef __CUDACC_RTC__
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Device pointers of one loaded matrix.
struct hubs_matrix {
  hot0::Arrays hot0;
  sum_t *carry_sums;
  uint32_t *carry_counters;
  void *memory;  // the one allocation that all of it lies in
};

void hubs_free(hubs_matrix *matrix) {
  cudaFree(matrix->memory);
  *matrix = {};
}

#ifndef CBGEN_EMULATION  // there an array's ends are watched
static void *array_at(void *memory, size_t offset, size_t /* bytes */) { return (char *)memory + offset; }
#endif

// XXH64 of the data, of which there is a multiple of 32 bytes. The place of the checksum itself counts as zero.
static uint64_t hubs_checksum(const unsigned char *data, size_t bytes) {
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
static const char *hubs_check(const unsigned char *data, size_t bytes) {
  constexpr uint64_t kId[2] = {0x12114157b73d4664u, 0x2fd228831d7c67a7u};  // plan and pattern
  uint64_t header[8];
  if (bytes < sizeof header) return "data of hubs: shorter than its header";
  memcpy(header, data, sizeof header);
  if (memcmp(data, "CBGENDAT", 8) != 0) return "data of hubs: not a cbgen data file";
  if ((header[1] & 0xffffffffu) != 2) return "data of hubs: another version of the format; generate both files anew";
  if (memcmp(header + 2, kId, sizeof kId) != 0) return "data of hubs: belongs to another kernel; generate both files anew";
  if (header[4] != bytes || bytes < 4352 || bytes % 32 != 0) return "data of hubs: cut short";
  return hubs_checksum(data, bytes) == header[5] ? nullptr : "data of hubs: damaged, its checksum does not match";
}

// Copies the arrays to the current device, where they lie as in the data. Free with hubs_free; after a failure
// nothing is left to free.
const char *hubs_load(hubs_matrix *matrix, const void *data, size_t bytes) {
  *matrix = {};
  const char *message = hubs_check((const unsigned char *)data, bytes);
  if (message) return message;
  cudaError_t error = cudaMalloc(&matrix->memory, 4612);
  if (!error) error = cudaMemcpy(matrix->memory, data, 4352, cudaMemcpyHostToDevice);
  if (!error) error = cudaMemset((char *)matrix->memory + 4608, 0, 1 * sizeof(uint32_t));
  if (error) {
    hubs_free(matrix);
    return cudaGetErrorString(error);
  }
  matrix->hot0.hot_place = (const uint8_t *)array_at(matrix->memory, 256, 224);
  matrix->hot0.cold_index = (const uint8_t *)array_at(matrix->memory, 512, 128);
  matrix->hot0.values = (const double *)array_at(matrix->memory, 768, 2816);
  matrix->hot0.lane_hot = (const uint8_t *)array_at(matrix->memory, 3584, 96);
  matrix->hot0.lane_cold = (const uint8_t *)array_at(matrix->memory, 3840, 96);
  matrix->hot0.row_of = (const uint8_t *)array_at(matrix->memory, 4096, 65);
  matrix->carry_sums = (sum_t *)array_at(matrix->memory, 4352, 24);
  matrix->carry_counters = (uint32_t *)array_at(matrix->memory, 4608, 4);
  return nullptr;
}

// The same from a data file (the one written beside this text, or a copy).
const char *hubs_load_file(hubs_matrix *matrix, const char *path) {
  *matrix = {};
  FILE *file = fopen(path, "rb");
  if (!file) return "data of hubs: the file cannot be opened";
  const char *message = "data of hubs: the file cannot be read";
  long bytes = -1;
  void *data = nullptr;
  if (!fseek(file, 0, SEEK_END) && (bytes = ftell(file)) >= 0 && !fseek(file, 0, SEEK_SET)) {
    data = malloc(bytes ? bytes : 1);
    if (!data) message = "data of hubs: out of memory";
    else if (fread(data, 1, bytes, file) == size_t(bytes)) message = hubs_load(matrix, data, bytes);
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

// y = αA·x + βy on `stream`, without allocation or synchronisation. x: 120, y: 60 elements on the device.
const char *hubs_multiply(const hubs_matrix *matrix, const vector_t *x, vector_t *y, sum_t alpha, sum_t beta,
    cudaStream_t stream) {
  constexpr unsigned kGrid0 = 1;  // launch: thread blocks
  constexpr unsigned kGrid1 = 1;  // launch: thread blocks
  cudaError_t error = launch(hubs_spmv_0, kGrid0, kThreads0, 0, stream, matrix->hot0, x, y, alpha, beta, matrix->carry_sums, matrix->carry_counters);
  if (!error) error = launch(hubs_spmv_1, kGrid1, kThreads1, 24, stream, matrix->hot0, x, y, alpha, beta, matrix->carry_sums, matrix->carry_counters);
  return error ? cudaGetErrorString(error) : nullptr;
}

#ifdef CBGEN_SELFTEST
// Element i of the seeded x, in [-1, 1): splitmix64 of i, its upper 53 bits.
static double hubs_x(uint64_t i) {
  uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return double((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1;
}

// Multiplies and compares every row with what `data` expects, within its tolerance.
static const char *hubs_selftest(const char *data, size_t bytes) {
  constexpr size_t kRowCount = 60, kColCount = 120, kExpected = 4352;
  hubs_matrix matrix;
  int devices = 0;
  if (cudaGetDeviceCount(&devices) || devices < 1) return "no GPU is there, or no driver for it";
  const char *message = hubs_load(&matrix, data, bytes);
  if (message) return message;
  if (bytes < kExpected + 2 * kRowCount * sizeof(double)) {
    hubs_free(&matrix);
    return "the data has no self-test part: generate it with --selftest=on";
  }
  const double *expected = (const double *)(data + kExpected), *tolerance = expected + kRowCount;
  vector_t *host = (vector_t *)malloc((kRowCount + kColCount + 1) * sizeof(vector_t)), *x = nullptr, *y = nullptr;
  if (host) {
    for (size_t i = 0; i < kColCount; i++) host[i] = vector_t(hubs_x(i));
    if (cudaMalloc((void **)&x, (kColCount + 1) * sizeof(vector_t)) || cudaMalloc((void **)&y, (kRowCount + 1) * sizeof(vector_t)) ||
        cudaMemcpy(x, host, kColCount * sizeof(vector_t), cudaMemcpyHostToDevice) ||
        cudaMemset(y, 255, kRowCount * sizeof(vector_t)))
      message = "no room on the device";
  } else {
    message = "out of memory";
  }
  if (!message) message = hubs_multiply(&matrix, x, y, 1, 0, 0);
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
    printf("hubs: WRONG: %zu of %zu rows; the first is row %zu: %.17g instead of %.17g, tolerance %.3g\n", wrong,
           kRowCount, first, double(host[first]), expected[first], tolerance[first]);
  if (!message && !wrong)
    printf("hubs: ok: %zu rows, largest error %.3g of its tolerance\n", kRowCount, worst);
  free(host);
  cudaFree(x);
  cudaFree(y);
  hubs_free(&matrix);
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
  const char *message = is_read ? hubs_selftest(data, bytes) : "the data file cannot be read: name it as the argument";
  if (message) fprintf(stderr, "hubs: %s: %s\n", path, message);
  if (file) fclose(file);
  free(data);
  return !message ? 0 : is_read ? 1 : 4;
}
#endif  // CBGEN_SELFTEST
#endif  // __CUDACC_RTC__
