// y = αA·x + βy for "scattered": 64 × 2000, 297 nonzeros, double.  cbgen 0.1.0, do not edit.
//   plan    (spmv (cb (panels 4) (csr 21) (aggregated yes) (runs 8)))
//   because recipe cb was named; 2.90 us predicted
//   target  sm_90, 132 SMs        launch  grid 1 × 256 threads, 0 B dynamic shared memory
//   pattern c962c42c29a12c2678eaf06f38c5e72b        stored  11.9 bytes per nonzero (CSR: 12.9)
//   use     scattered_load_file, scattered_multiply, scattered_free; -DCBGEN_SELFTEST makes it a program that checks itself
//
// Read it from here: types and vectors, then one namespace per region of the plan, then the kernels. The device
// prelude above them says how memory is read and written; the host section at the end is not seen by NVRTC.

// ---- device prelude: what the kernels below need of types, memory and warps -----------------------------------
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using int64_t = decltype((char *)0 - (char *)0);
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

// What the lane has whose number differs in these bits.
template <class T> CBGEN_DEVICE T shuffle_xor(T value, int bits) { return __shfl_xor_sync(kFullMask, value, bits); }

// ---- end of the device prelude --------------------------------------------------------------------------------
// ---- types and vectors ---------------------------------------------------------------------------------------

using vector_t = double;  // x and y
using sum_t = double;     // sums, alpha and beta

constexpr int kRows = 64;  // matrix: rows, the length of y

struct Vectors {
  const vector_t *x;  // length 2000
  vector_t *y;        // length 64
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
//      panels 4, csr 21, aggregated yes, runs 8

namespace cb0 {

using stored_t = double;  // a value slot
using index_t = int;  // holds any index into the arrays below
constexpr int kStage = 96;  // plan: columns of the widest run
constexpr int kStaged = 768;  // plan: the same for all runs of a thread block
constexpr int kStageBatch = 3;  // plan: sub-blocks whose x is loaded together
constexpr int kBatch = 6;  // plan: steps whose loads are in flight together
constexpr int kPanels = 4;  // plan: panels of 16 rows
constexpr int kCsrBlocks = 21;  // plan: CSR sub-blocks
constexpr int kCsrRuns = 4;  // plan: runs of these
constexpr int kRowLanes = 2;  // plan: lanes that share a row

struct Arrays {
  const uint16_t *restore_cols;  // 336: original columns of a sub-block, from its run's first; 16 each
  const uint8_t *mtx_data;  // 2736: per run: coordinates, padding, values
  const uint8_t *row_length;  // 128: nonzeros of a run's rows; 16 each
};

// first column of a run
__device__ const uint8_t run_col_idx_table[] = {
    2, 25, 3, 0, 0, 0, 0, 0};
CBGEN_DEVICE int run_col_idx(const Arrays &, int i) { return run_col_idx_table[i]; }
CBGEN_DEVICE int restore_cols(const Arrays &arrays, int i) { return load(arrays.restore_cols + i); }
// virtual pointer: a run's place in mtx_data, in values
__device__ const uint16_t vp_per_run_table[] = {
    0, 83, 160, 252, 337, 338, 339, 340};
CBGEN_DEVICE int vp_per_run(const Arrays &, int i) { return vp_per_run_table[i]; }
// a run's first sub-block; runs + 1
__device__ const uint8_t first_block_table[] = {
    0, 5, 10, 16, 21, 21, 21, 21, 21};
CBGEN_DEVICE int first_block(const Arrays &, int i) { return first_block_table[i]; }
// nonzeros of a run
__device__ const uint8_t nnz_per_run_table[] = {
    73, 68, 81, 75, 0, 0, 0, 0};
CBGEN_DEVICE int nnz_per_run(const Arrays &, int i) { return nnz_per_run_table[i]; }
CBGEN_DEVICE int row_length(const Arrays &arrays, int i) { return load(arrays.row_length + i); }
// panel of a run
CBGEN_DEVICE int run_panel(const Arrays &, int i) { return i; }
CBGEN_DEVICE sum_t value(const Arrays &arrays, int slot) {
  return sum_t(load((const stored_t *)arrays.mtx_data + slot));
}

// The matrix's column that (aggregated) column lane % 16 of a run's sub-block is.
CBGEN_DEVICE int column_of_lane(const Arrays &arrays, int run, int block) {
  return run_col_idx(arrays, run) + restore_cols(arrays, index_t(16) * block + int(threadIdx.x % 16));
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
  return sum;
}

// What was counted is what the text was made for.
static_assert(16 * int64_t(kPanels) >= kRows && 16 * (int64_t(kPanels) - 1) < kRows, "panels of 16 rows");
static_assert(kCsrRuns <= kCsrBlocks && kCsrBlocks <= 16 * int64_t(kCsrRuns), "runs of CSR sub-blocks");

// A run is what 16 * kRowLanes lanes multiply: sub-blocks of one panel and one format. Lane l collects a part of the sum
// of row l % 16.
CBGEN_DEVICE void multiply(const Arrays &arrays, const Vectors &vectors, int thread_block) {
  __shared__ Shared<sum_t, kStaged> staged;  // [run]: x of its columns
  const int lane = int(threadIdx.x % 32);
  const int run = 16 / kRowLanes * thread_block + int(threadIdx.x / (16 * kRowLanes));
  const int row = 16 * run_panel(arrays, run) + lane % 16;
  const int begin = first_block(arrays, run), end = first_block(arrays, run + 1);
  sum_t sum = csr_sum(arrays, vectors, staged, run, begin, end);
  sum = add(sum, shuffle_xor(sum, 16));
  if (lane < 16 && row < kRows) commit(vectors, row, sum);  // the last rows do not fill their panel or thread block
}

}  // namespace cb0

// ---- kernels

constexpr int kThreads = 256;  // launch: threads of a thread block
CBGEN_KERNEL void __launch_bounds__(kThreads, blocks_that_fit(6, kThreads)) scattered_spmv(cb0::Arrays cb0_arrays, const vector_t *x, vector_t *y, sum_t alpha, sum_t beta) {
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
struct scattered_matrix {
  cb0::Arrays cb0;
  void *memory;  // the one allocation that all of it lies in
};

void scattered_free(scattered_matrix *matrix) {
  cudaFree(matrix->memory);
  *matrix = {};
}

#ifndef CBGEN_EMULATION  // there an array's ends are watched
static void *array_at(void *memory, size_t offset, size_t /* bytes */) { return (char *)memory + offset; }
#endif

// XXH64 of the data, of which there is a multiple of 32 bytes. The place of the checksum itself counts as zero.
static uint64_t scattered_checksum(const unsigned char *data, size_t bytes) {
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
static const char *scattered_check(const unsigned char *data, size_t bytes) {
  constexpr uint64_t kId[2] = {0x6aedc5513b2ca70fu, 0xa6204795b7343389u};  // plan and pattern
  uint64_t header[8];
  if (bytes < sizeof header) return "data of scattered: shorter than its header";
  memcpy(header, data, sizeof header);
  if (memcmp(data, "CBGENDAT", 8) != 0) return "data of scattered: not a cbgen data file";
  if ((header[1] & 0xffffffffu) != 2) return "data of scattered: another version of the format; generate both files anew";
  if (memcmp(header + 2, kId, sizeof kId) != 0) return "data of scattered: belongs to another kernel; generate both files anew";
  if (header[4] != bytes || bytes < 4096 || bytes % 32 != 0) return "data of scattered: cut short";
  return scattered_checksum(data, bytes) == header[5] ? nullptr : "data of scattered: damaged, its checksum does not match";
}

// Copies the arrays to the current device, where they lie as in the data. Free with scattered_free; after a failure
// nothing is left to free.
const char *scattered_load(scattered_matrix *matrix, const void *data, size_t bytes) {
  *matrix = {};
  const char *message = scattered_check((const unsigned char *)data, bytes);
  if (message) return message;
  cudaError_t error = cudaMalloc(&matrix->memory, 4096);
  if (!error) error = cudaMemcpy(matrix->memory, data, 4096, cudaMemcpyHostToDevice);
  if (error) {
    scattered_free(matrix);
    return cudaGetErrorString(error);
  }
  matrix->cb0.restore_cols = (const uint16_t *)array_at(matrix->memory, 256, 672);
  matrix->cb0.mtx_data = (const uint8_t *)array_at(matrix->memory, 1024, 2736);
  matrix->cb0.row_length = (const uint8_t *)array_at(matrix->memory, 3840, 128);
  return nullptr;
}

// The same from a data file (the one written beside this text, or a copy).
const char *scattered_load_file(scattered_matrix *matrix, const char *path) {
  *matrix = {};
  FILE *file = fopen(path, "rb");
  if (!file) return "data of scattered: the file cannot be opened";
  const char *message = "data of scattered: the file cannot be read";
  long bytes = -1;
  void *data = nullptr;
  if (!fseek(file, 0, SEEK_END) && (bytes = ftell(file)) >= 0 && !fseek(file, 0, SEEK_SET)) {
    data = malloc(bytes ? bytes : 1);
    if (!data) message = "data of scattered: out of memory";
    else if (fread(data, 1, bytes, file) == size_t(bytes)) message = scattered_load(matrix, data, bytes);
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

// y = αA·x + βy on `stream`, without allocation or synchronisation. x: 2000, y: 64 elements on the device.
const char *scattered_multiply(const scattered_matrix *matrix, const vector_t *x, vector_t *y, sum_t alpha, sum_t beta,
    cudaStream_t stream) {
  constexpr unsigned kGrid = 1;  // launch: thread blocks
  cudaError_t error = launch(scattered_spmv, kGrid, kThreads, 0, stream, matrix->cb0, x, y, alpha, beta);
  return error ? cudaGetErrorString(error) : nullptr;
}

#ifdef CBGEN_SELFTEST
// Element i of the seeded x, in [-1, 1): splitmix64 of i, its upper 53 bits.
static double scattered_x(uint64_t i) {
  uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return double((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1;
}

// Multiplies and compares every row with what `data` expects, within its tolerance.
static const char *scattered_selftest(const char *data, size_t bytes) {
  constexpr size_t kRowCount = 64, kColCount = 2000, kExpected = 4096;
  scattered_matrix matrix;
  int devices = 0;
  if (cudaGetDeviceCount(&devices) || devices < 1) return "no GPU is there, or no driver for it";
  const char *message = scattered_load(&matrix, data, bytes);
  if (message) return message;
  if (bytes < kExpected + 2 * kRowCount * sizeof(double)) {
    scattered_free(&matrix);
    return "the data has no self-test part: generate it with --selftest=on";
  }
  const double *expected = (const double *)(data + kExpected), *tolerance = expected + kRowCount;
  vector_t *host = (vector_t *)malloc((kRowCount + kColCount + 1) * sizeof(vector_t)), *x = nullptr, *y = nullptr;
  if (host) {
    for (size_t i = 0; i < kColCount; i++) host[i] = vector_t(scattered_x(i));
    if (cudaMalloc((void **)&x, (kColCount + 1) * sizeof(vector_t)) || cudaMalloc((void **)&y, (kRowCount + 1) * sizeof(vector_t)) ||
        cudaMemcpy(x, host, kColCount * sizeof(vector_t), cudaMemcpyHostToDevice) ||
        cudaMemset(y, 255, kRowCount * sizeof(vector_t)))
      message = "no room on the device";
  } else {
    message = "out of memory";
  }
  if (!message) message = scattered_multiply(&matrix, x, y, 1, 0, 0);
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
    printf("scattered: WRONG: %zu of %zu rows; the first is row %zu: %.17g instead of %.17g, tolerance %.3g\n", wrong,
           kRowCount, first, double(host[first]), expected[first], tolerance[first]);
  if (!message && !wrong)
    printf("scattered: ok: %zu rows, largest error %.3g of its tolerance\n", kRowCount, worst);
  free(host);
  cudaFree(x);
  cudaFree(y);
  scattered_free(&matrix);
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
  const char *message = is_read ? scattered_selftest(data, bytes) : "the data file cannot be read: name it as the argument";
  if (message) fprintf(stderr, "scattered: %s: %s\n", path, message);
  if (file) fclose(file);
  free(data);
  return !message ? 0 : is_read ? 1 : 4;
}
#endif  // CBGEN_SELFTEST
#endif  // __CUDACC_RTC__
