// y = αA·x + βy for "uneven": 90 × 90, 510 nonzeros, double.  cbgen 0.1.0, do not edit.
//   plan    (spmv (sell (slices 8) (steps 24) (lanes varied) (sorted yes)))
//   because recipe sell was named; 2.61 us predicted
//   target  sm_90, 132 SMs        launch  grid 1 × 256 threads, 0 B dynamic shared memory
//   pattern 9f7de2599561249e337c0db3ba2bffb4        stored  14.0 bytes per nonzero (CSR: 12.7)
//   use     uneven_load_file, uneven_multiply, uneven_free; -DCBGEN_SELFTEST makes it a program that checks itself
//
// Read it from here: types and vectors, then one namespace per region of the plan, then the kernels. The device
// prelude above them says how memory is read and written; the host section at the end is not seen by NVRTC.

// ---- device prelude: what the kernels below need of types, memory and warps -----------------------------------
using uint8_t = unsigned char;
#define CBGEN_KERNEL extern "C" __global__
#define CBGEN_DEVICE static __device__ __forceinline__
constexpr unsigned kFullMask = 0xffffffffu;  // all lanes of a warp

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

// Reads what no kernel writes, through L1; types of 16 bits by their bits.
template <class T> CBGEN_DEVICE T load(const T *p) {
  if constexpr (__is_class(T)) return {__ldg(&p->bits)};
  else return __ldg(p);
}

// Reads what other kernels write: x.
template <class T> CBGEN_DEVICE T load_input(const T *p) { return *p; }

// What the lane has whose number differs in these bits.
template <class T> CBGEN_DEVICE T shuffle_xor(T value, int bits) { return __shfl_xor_sync(kFullMask, value, bits); }

// ---- end of the device prelude --------------------------------------------------------------------------------
// ---- types and vectors ---------------------------------------------------------------------------------------

using vector_t = double;  // x and y
using sum_t = double;     // sums, alpha and beta

constexpr int kRows = 90;  // matrix: rows, the length of y

struct Vectors {
  const vector_t *x;  // length 90
  vector_t *y;        // length 90
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

// ---- region sell0: sliced ELL, narrow column offsets, lanes per row by the matrix
//      slices 8, steps 24, lanes varied, sorted yes

namespace sell0 {

using index_t = int;  // holds any index into the arrays below
constexpr int kBatch = 7;  // plan: steps whose loads are in flight together

struct Arrays {
  const uint8_t *column_offset;  // 768: column of a slot, from its slice's first
  const double *values;  // 768: per slice, step and lane
  const uint8_t *local_row_length;  // 123: nonzeros of a local row
  const uint8_t *row_of;  // 123: row of a local row; kRows: none
};

// steps before a slice, 32 slots each
__device__ const uint8_t first_step_table[] = {
    0, 7, 12, 19, 23, 24, 24, 24, 24};
CBGEN_DEVICE int first_step(const Arrays &, int i) { return first_step_table[i]; }
// least column of a slice
__device__ const uint8_t first_column_table[] = {
    0, 0, 1, 0, 30, 0, 0, 0};
CBGEN_DEVICE int first_column(const Arrays &, int i) { return first_column_table[i]; }
CBGEN_DEVICE int column_offset(const Arrays &arrays, int i) { return load(arrays.column_offset + i); }
CBGEN_DEVICE int local_row_length(const Arrays &arrays, int i) { return load(arrays.local_row_length + i); }
CBGEN_DEVICE int row_of(const Arrays &arrays, int i) { return load(arrays.row_of + i); }
// logarithm of the lanes that share a row of a slice
__device__ const uint8_t lanes_log2_table[] = {
    2, 1, 0, 0, 0, 5, 5, 5};
CBGEN_DEVICE int lanes_log2(const Arrays &, int i) { return lanes_log2_table[i]; }
// a slice's first local row
__device__ const uint8_t first_local_row_table[] = {
    0, 8, 24, 56, 88, 120, 121, 122};
CBGEN_DEVICE int first_local_row(const Arrays &, int i) { return first_local_row_table[i]; }
CBGEN_DEVICE sum_t value(const Arrays &arrays, int slot) {
  return sum_t(load(arrays.values + slot));
}

// Columns of the next kBatch steps, of those before `most`.
CBGEN_DEVICE void load_columns(const Arrays &arrays, index_t slots, int base, int step, int most,
    int (&columns)[kBatch]) {
#pragma unroll
  for (int i = 0; i < kBatch; i++) {
    const index_t slot = slots + 32 * index_t(step + i);
    columns[i] = step + i < most ? base + column_offset(arrays, slot) : 0;
  }
}

// Values of the next kBatch steps, likewise.
CBGEN_DEVICE void load_values(const Arrays &arrays, index_t slots, int step, int most, sum_t (&values)[kBatch]) {
  #pragma unroll
  for (int i = 0; i < kBatch; i++) {
    const index_t slot = slots + 32 * index_t(step + i);
    values[i] = step + i < most ? value(arrays, slot) : sum_t(0);
  }
}

// Adds the products of kBatch steps to `sum`. No lane goes past its local row's end, so padding is never multiplied.
CBGEN_DEVICE sum_t add_batch(const Vectors &vectors, const int (&columns)[kBatch], const sum_t (&values)[kBatch],
    int step, int steps, sum_t sum) {
#pragma unroll
  for (int i = 0; i < kBatch; i++)
    if (step + i < steps) sum = add_product(sum, values[i], load_x(vectors, columns[i]));
  return sum;
}

// Slot (step, lane) of a slice holds a nonzero of the local row that the lane works for. Its lanes take turns.
CBGEN_DEVICE void multiply(Arrays arrays, const Vectors &vectors, int thread_block) {
  const int lane = (int)threadIdx.x % 32, slice = 8 * thread_block + (int)threadIdx.x / 32;
  const int first = first_step(arrays, slice), base = first_column(arrays, slice);
  const int end = first_step(arrays, slice + 1);
  const int log2 = lanes_log2(arrays, slice), lanes = 1 << log2;
  const int local_row = first_local_row(arrays, slice) + (lane >> log2);
  const int row = row_of(arrays, local_row), length = local_row_length(arrays, local_row);
  const index_t slots = index_t(first) * 32 + lane;
  const int most = end - first;  // steps of the slice
  const int steps = (length - lane % lanes + lanes - 1) >> log2;
  int columns[kBatch];
  sum_t values[kBatch];
  load_columns(arrays, slots, base, 0, most, columns);
  load_values(arrays, slots, 0, most, values);
  wait_behind(row | columns[0] | columns[kBatch - 1]);  // up to here nothing was read but the matrix
  sum_t sum = add_batch(vectors, columns, values, 0, steps, zero());
  #pragma unroll
  for (int step = lanes / 2; step > 0; step /= 2) sum = add(sum, shuffle_xor(sum, step));
  if (lane % lanes == 0 && row < kRows) commit(vectors, row, sum);
}

}  // namespace sell0

// ---- kernels

constexpr int kThreads = 256;  // launch: threads of a thread block
CBGEN_KERNEL void __launch_bounds__(kThreads, blocks_that_fit(5, kThreads)) uneven_spmv(sell0::Arrays sell0_arrays, const vector_t *x, vector_t *y, sum_t alpha, sum_t beta) {
  start_next();
  const Vectors vectors = {x, y, alpha, beta};
  sell0::multiply(sell0_arrays, vectors, (int)blockIdx.x);
}

// ---- host: load, multiply, free ------------------------------------------------------------------------------
// Functions return NULL, or a message that lives forever. NVRTC does not see them; nvcc has included <cuda_runtime.h>.
#ifndef __CUDACC_RTC__
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Device pointers of one loaded matrix.
struct uneven_matrix {
  sell0::Arrays sell0;
  void *memory;  // the one allocation that all of it lies in
};

void uneven_free(uneven_matrix *matrix) {
  cudaFree(matrix->memory);
  *matrix = {};
}

#ifndef CBGEN_EMULATION  // there an array's ends are watched
static void *array_at(void *memory, size_t offset, size_t /* bytes */) { return (char *)memory + offset; }
#endif

// XXH64 of the data, of which there is a multiple of 32 bytes. The place of the checksum itself counts as zero.
static uint64_t uneven_checksum(const unsigned char *data, size_t bytes) {
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
static const char *uneven_check(const unsigned char *data, size_t bytes) {
  constexpr uint64_t kId[2] = {0x6978f17fef9a31ceu, 0xd11a2c0399136488u};  // plan and pattern
  uint64_t header[8];
  if (bytes < sizeof header) return "data of uneven: shorter than its header";
  memcpy(header, data, sizeof header);
  if (memcmp(data, "CBGENDAT", 8) != 0) return "data of uneven: not a cbgen data file";
  if ((header[1] & 0xffffffffu) != 2) return "data of uneven: another version of the format; generate both files anew";
  if (memcmp(header + 2, kId, sizeof kId) != 0) return "data of uneven: belongs to another kernel; generate both files anew";
  if (header[4] != bytes || bytes < 7680 || bytes % 32 != 0) return "data of uneven: cut short";
  return uneven_checksum(data, bytes) == header[5] ? nullptr : "data of uneven: damaged, its checksum does not match";
}

// Copies the arrays to the current device, where they lie as in the data. Free with uneven_free; after a failure
// nothing is left to free.
const char *uneven_load(uneven_matrix *matrix, const void *data, size_t bytes) {
  *matrix = {};
  const char *message = uneven_check((const unsigned char *)data, bytes);
  if (message) return message;
  cudaError_t error = cudaMalloc(&matrix->memory, 7680);
  if (!error) error = cudaMemcpy(matrix->memory, data, 7680, cudaMemcpyHostToDevice);
  if (error) {
    uneven_free(matrix);
    return cudaGetErrorString(error);
  }
  matrix->sell0.column_offset = (const uint8_t *)array_at(matrix->memory, 256, 768);
  matrix->sell0.values = (const double *)array_at(matrix->memory, 1024, 6144);
  matrix->sell0.local_row_length = (const uint8_t *)array_at(matrix->memory, 7168, 123);
  matrix->sell0.row_of = (const uint8_t *)array_at(matrix->memory, 7424, 123);
  return nullptr;
}

// The same from a data file (the one written beside this text, or a copy).
const char *uneven_load_file(uneven_matrix *matrix, const char *path) {
  *matrix = {};
  FILE *file = fopen(path, "rb");
  if (!file) return "data of uneven: the file cannot be opened";
  const char *message = "data of uneven: the file cannot be read";
  long bytes = -1;
  void *data = nullptr;
  if (!fseek(file, 0, SEEK_END) && (bytes = ftell(file)) >= 0 && !fseek(file, 0, SEEK_SET)) {
    data = malloc(bytes ? bytes : 1);
    if (!data) message = "data of uneven: out of memory";
    else if (fread(data, 1, bytes, file) == size_t(bytes)) message = uneven_load(matrix, data, bytes);
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

// y = αA·x + βy on `stream`, without allocation or synchronisation. x: 90, y: 90 elements on the device.
const char *uneven_multiply(const uneven_matrix *matrix, const vector_t *x, vector_t *y, sum_t alpha, sum_t beta,
    cudaStream_t stream) {
  constexpr unsigned kGrid = 1;  // launch: thread blocks
  cudaError_t error = launch(uneven_spmv, kGrid, kThreads, 0, stream, matrix->sell0, x, y, alpha, beta);
  return error ? cudaGetErrorString(error) : nullptr;
}

#ifdef CBGEN_SELFTEST
// Element i of the seeded x, in [-1, 1): splitmix64 of i, its upper 53 bits.
static double uneven_x(uint64_t i) {
  uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return double((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1;
}

// Multiplies and compares every row with what `data` expects, within its tolerance.
static const char *uneven_selftest(const char *data, size_t bytes) {
  constexpr size_t kRowCount = 90, kColCount = 90, kExpected = 7680;
  uneven_matrix matrix;
  int devices = 0;
  if (cudaGetDeviceCount(&devices) || devices < 1) return "no GPU is there, or no driver for it";
  const char *message = uneven_load(&matrix, data, bytes);
  if (message) return message;
  if (bytes < kExpected + 2 * kRowCount * sizeof(double)) {
    uneven_free(&matrix);
    return "the data has no self-test part: generate it with --selftest=on";
  }
  const double *expected = (const double *)(data + kExpected), *tolerance = expected + kRowCount;
  vector_t *host = (vector_t *)malloc((kRowCount + kColCount + 1) * sizeof(vector_t)), *x = nullptr, *y = nullptr;
  if (host) {
    for (size_t i = 0; i < kColCount; i++) host[i] = vector_t(uneven_x(i));
    if (cudaMalloc((void **)&x, (kColCount + 1) * sizeof(vector_t)) || cudaMalloc((void **)&y, (kRowCount + 1) * sizeof(vector_t)) ||
        cudaMemcpy(x, host, kColCount * sizeof(vector_t), cudaMemcpyHostToDevice) ||
        cudaMemset(y, 255, kRowCount * sizeof(vector_t)))
      message = "no room on the device";
  } else {
    message = "out of memory";
  }
  if (!message) message = uneven_multiply(&matrix, x, y, 1, 0, 0);
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
    printf("uneven: WRONG: %zu of %zu rows; the first is row %zu: %.17g instead of %.17g, tolerance %.3g\n", wrong,
           kRowCount, first, double(host[first]), expected[first], tolerance[first]);
  if (!message && !wrong)
    printf("uneven: ok: %zu rows, largest error %.3g of its tolerance\n", kRowCount, worst);
  free(host);
  cudaFree(x);
  cudaFree(y);
  uneven_free(&matrix);
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
  const char *message = is_read ? uneven_selftest(data, bytes) : "the data file cannot be read: name it as the argument";
  if (message) fprintf(stderr, "uneven: %s: %s\n", path, message);
  if (file) fclose(file);
  free(data);
  return !message ? 0 : is_read ? 1 : 4;
}
#endif  // CBGEN_SELFTEST
#endif  // __CUDACC_RTC__
