// y = αA·x + βy for "panels": 70 × 72, 361 nonzeros, double.  cbgen 0.1.0, do not edit.
//   plan    (spmv (panel (panels 3) (unit 1) (entries 45) (slices 5) (steps 14) (lanes 2) (long 1)))
//   target  sm_90, 132 SMs        launch  grid 4 × 128 threads, 0 B dynamic shared memory
//   pattern 685f9351fce8af5c98b34cbfa6f7efaf        stored  13.3 bytes per nonzero (CSR: 12.8)
//   use     panels_load_file, panels_multiply, panels_free; -DCBGEN_SELFTEST makes it a program that checks itself
//
// Read it from here: types and vectors, then one namespace per region of the plan, then the kernels. The shims in
// between are the same in every generated file and can be skipped; the host section at the end is not seen by NVRTC.

// ---- the shims are left out of this golden -------------------------------------------------------------------------------------
// ---- types and vectors ---------------------------------------------------------------------------------------

using vector_t = double;  // x and y
using sum_t = double;     // sums, alpha and beta


struct Vectors {
  const vector_t *x;  // length 72
  vector_t *y;        // length 70
  sum_t alpha, beta;
};

CBGEN_DEVICE sum_t load_x(const Vectors &vectors, int column) { return sum_t(load_input(vectors.x + column)); }

// The one final write of a row. With beta = 0 y is not read: it may hold anything.
CBGEN_DEVICE void commit(const Vectors &vectors, int row, sum_t sum) {
  const sum_t scaled = vectors.alpha * sum;
  vectors.y[row] = vector_t(vectors.beta == 0 ? scaled : scaled + vectors.beta * sum_t(vectors.y[row]));
}

// ---- region panel0: rows of a thread block share a list of columns, whose entries of x lie in shared memory
//      panels 3, unit 1, entries 45, slices 5, steps 14, lanes 2, long 1

namespace panel0 {

using index_t = int;  // holds any index into the arrays below
constexpr int kUnit = 1;  // plan: columns of a unit, neighbours
constexpr int kEntries = 45;  // plan: entries of x that a panel holds at most
constexpr int kStage = 1;  // plan: entries of x that a thread loads together
constexpr int kNoRow = 33;  // plan: the row of a place that has none
constexpr int kLanes = 2;  // plan: lanes that share a row
constexpr int kBatch = 3;  // plan: steps whose loads are under way together
constexpr int kLongSlots = 64;  // plan: slots of long rows, whole steps
constexpr int kThreads = 128;  // plan: threads of a thread block
constexpr int kLongBlocks = 1;  // plan: thread blocks of long rows

struct Arrays {
  const uint8_t *unit_offset;  // 99: a unit, from its panel's first
  const uint8_t *address;  // 448: of a slot's entry of x among those that its panel holds
  const uint8_t *place_length;  // 80: nonzeros of the row at a place
  const uint8_t *place_row;  // 80: row at a place, from its panel's first; kNoRow: none
  const double *values;  // 512: long rows', then per slice, step and lane
};

// units before a panel
__device__ const uint8_t first_unit_table[] = {
    0, 43, 88, 99};
CBGEN_DEVICE int first_unit(const Arrays &, int i) { return first_unit_table[i]; }
// a panel's first unit
__device__ const uint8_t base_unit_table[] = {
    0, 24, 56};
CBGEN_DEVICE int base_unit(const Arrays &, int i) { return base_unit_table[i]; }
CBGEN_DEVICE int unit_offset(const Arrays &arrays, int i) { return load(arrays.unit_offset + i); }
CBGEN_DEVICE int address(const Arrays &arrays, int i) { return load_stream(arrays.address + i); }
CBGEN_DEVICE int place_length(const Arrays &arrays, int i) { return load(arrays.place_length + i); }
CBGEN_DEVICE int place_row(const Arrays &arrays, int i) { return load(arrays.place_row + i); }
// a panel's first row
__device__ const uint8_t panel_row_table[] = {
    0, 32, 65};
CBGEN_DEVICE int panel_row(const Arrays &, int i) { return panel_row_table[i]; }
// steps of 32 slots before a slice
__device__ const uint8_t first_step_table[] = {
    2, 5, 7, 10, 13, 16};
CBGEN_DEVICE int first_step(const Arrays &, int i) { return first_step_table[i]; }
// slices before a panel
__device__ const uint8_t first_slice_table[] = {
    0, 2, 4, 5};
CBGEN_DEVICE int first_slice(const Arrays &, int i) { return first_slice_table[i]; }
// first slot of a long row (or piece); one more
CBGEN_DEVICE int long_slot(const Arrays &, int i) { return 59 * i; }
// a long row
CBGEN_DEVICE int long_row(const Arrays &, int) { return 40; }
// column of a long row's slot
__device__ const uint8_t long_column_table[] = {
    0, 1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13, 15, 16, 17, 18,
    20, 21, 22, 23, 25, 26, 27, 28, 30, 31, 32, 33, 35, 36, 37, 38,
    39, 40, 41, 42, 43, 45, 46, 47, 48, 50, 51, 52, 53, 55, 56, 57,
    58, 60, 61, 62, 63, 65, 66, 67, 68, 70, 71};
CBGEN_DEVICE int long_column(const Arrays &, int i) { return long_column_table[i]; }
CBGEN_DEVICE sum_t value(const Arrays &arrays, int slot) {
  return sum_t(load_stream(arrays.values + slot));
}

// The panel's entries of x: those of unit u lie at kUnit * u, in the order of columns.
using Entries = Shared<vector_t, kEntries>;

// What a lane must know of its slice. Places hold a row each, whose nonzeros its lanes take in turns.
struct Slice {
  index_t slot;          // the lane's in the first step
  int steps, own_steps;  // of the slice; of the lane: none goes past its row's end, so padding is never multiplied
  int row;               // from the panel's first
};

CBGEN_DEVICE Slice slice_at(const Arrays &arrays, int slice, int lane) {
  const int place = (32 * slice + lane) / kLanes;
  const index_t first = first_step(arrays, slice);
  return {32 * first + lane, int(first_step(arrays, slice + 1) - first),
          (int(place_length(arrays, place)) - lane % kLanes + kLanes - 1) / kLanes, int(place_row(arrays, place))};
}

// Of kBatch steps.
struct Batch {
  int addresses[kBatch];
  sum_t values[kBatch];
};

CBGEN_DEVICE Batch load_batch(const Arrays &arrays, const Slice &at, int step) {
  Batch batch;
#pragma unroll
  for (int i = 0; i < kBatch; i++) {
    const index_t slot = at.slot + 32 * index_t(step + i);
    const bool used = step + i < at.steps;
    batch.addresses[i] = used ? address(arrays, slot - kLongSlots) : 0;
    batch.values[i] = used ? value(arrays, slot) : sum_t(0);
  }
  return batch;
}

CBGEN_DEVICE sum_t add_batch(Entries &entries, const Batch &batch, const Slice &at, int step, sum_t sum) {
#pragma unroll
  for (int i = 0; i < kBatch; i++)
    if (step + i < at.own_steps) sum += batch.values[i] * sum_t(entries[batch.addresses[i]]);
  return sum;
}

// The panel's entries of x, each read once. Loads of kStage entries are under way together.
CBGEN_DEVICE void stage(const Arrays &arrays, const Vectors &vectors, Entries &entries, int panel) {
  const index_t first = first_unit(arrays, panel);
  const int count = kUnit * int(first_unit(arrays, panel + 1) - first), base = base_unit(arrays, panel);
#pragma unroll 1
  for (int begin = (int)threadIdx.x; begin < count; begin += kThreads * kStage) {
    vector_t staged[kStage];
#pragma unroll
    for (int i = 0; i < kStage; i++) {
      const int k = begin + kThreads * i;
      const int unit = k < count ? base + unit_offset(arrays, first + k / kUnit) : 0;
      staged[i] = k < count ? vector_t(load_x(vectors, kUnit * unit + k % kUnit)) : vector_t(0);
    }
#pragma unroll
    for (int i = 0; i < kStage; i++)
      if (begin + kThreads * i < count) entries[begin + kThreads * i] = staged[i];
  }
}

// Each warp takes its slices one by one. The first one's first batch is under way while x is staged.
CBGEN_DEVICE void multiply_panel(const Arrays &arrays, const Vectors &vectors, int panel) {
  __shared__ Entries entries;
  const int lane = (int)threadIdx.x % 32, first_row = panel_row(arrays, panel);
  int slice = first_slice(arrays, panel) + (int)threadIdx.x / 32;
  const int end = first_slice(arrays, panel + 1);
  Slice at = slice_at(arrays, min(slice, end - 1), lane);
  Batch batch = load_batch(arrays, at, 0);
  stage(arrays, vectors, entries, panel);
  __syncthreads();
  while (slice < end) {
    sum_t sum = add_batch(entries, batch, at, 0, 0);
    #pragma unroll
    for (int apart = kLanes / 2; apart > 0; apart /= 2) sum += __shfl_xor_sync(kFullMask, sum, apart);
    if (lane % kLanes == 0 && at.row < kNoRow) commit(vectors, first_row + at.row, sum);
    slice += kThreads / 32;
    if (slice < end) {
      at = slice_at(arrays, slice, lane);
      batch = load_batch(arrays, at, 0);
    }
  }
}

// A long row, or a piece of one. The loads of kLongBatch nonzeros per thread are under way before the first is used.
CBGEN_DEVICE void multiply_long(const Arrays &arrays, const Vectors &vectors, int block) {
  constexpr int kLongBatch = 8, kWarps = kThreads / 32;
  __shared__ Shared<sum_t, kWarps> warp_sums;
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  const index_t first = long_slot(arrays, block);
  const int count = int(long_slot(arrays, block + 1) - first), row = long_row(arrays, block);
  sum_t sum = 0;
  for (int k = (int)threadIdx.x; k < count; k += kThreads * kLongBatch) {
    int columns[kLongBatch];
    sum_t values[kLongBatch];
#pragma unroll
    for (int i = 0; i < kLongBatch; i++) {
      const bool used = k + kThreads * i < count;
      columns[i] = used ? long_column(arrays, first + (k + kThreads * i)) : 0;
      values[i] = used ? value(arrays, first + (k + kThreads * i)) : sum_t(0);
    }
#pragma unroll
    for (int i = 0; i < kLongBatch; i++)
      if (k + kThreads * i < count) sum += values[i] * load_x(vectors, columns[i]);
  }
#pragma unroll
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(kFullMask, sum, step);
  if (lane == 0) warp_sums[warp] = sum;
  __syncthreads();
  if (warp > 0) return;
  sum = lane < kWarps ? warp_sums[lane] : sum_t(0);
#pragma unroll
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(kFullMask, sum, step);
  if (lane == 0) commit(vectors, row, sum);
}

CBGEN_DEVICE void multiply(const Arrays &arrays, const Vectors &vectors, int thread_block) {
  if (thread_block < kLongBlocks) multiply_long(arrays, vectors, thread_block);
  else multiply_panel(arrays, vectors, thread_block - kLongBlocks);
}

}  // namespace panel0

// ---- kernels

CBGEN_KERNEL void __launch_bounds__(128, blocks_that_fit(10, 128)) panels_spmv(panel0::Arrays panel0_arrays, const vector_t *x, vector_t *y, sum_t alpha, sum_t beta) {
  wait_for_previous();
  const Vectors vectors = {x, y, alpha, beta};
  panel0_arrays.values = after_wait(panel0_arrays.values);
  panel0::multiply(panel0_arrays, vectors, (int)blockIdx.x);
}

// ---- host: load, multiply, free ------------------------------------------------------------------------------
// Functions return NULL, or a message that lives forever.
#ifndef __CUDACC_RTC__

// Device pointers of one loaded matrix.
struct panels_matrix {
  panel0::Arrays panel0;
};

void panels_free(panels_matrix *matrix) {
  void *const blocks[] = {(void *)matrix->panel0.unit_offset, (void *)matrix->panel0.address, (void *)matrix->panel0.place_length, (void *)matrix->panel0.place_row, (void *)matrix->panel0.values, nullptr};
  for (void *const *block = blocks; *block != nullptr; block++) cudaFree(*block);
  *matrix = {};
}

// Checks that `data` (`bytes` long) is the packed data of this kernel, whole and unchanged.
static const char *panels_check(const unsigned char *data, size_t bytes) {
  constexpr uint64_t kId[2] = {0x9fcb597a0b52ad1fu, 0xa4d52f4723b23ab6u};  // plan and pattern
  uint64_t header[8], checksum = 0xcbf29ce484222325u;
  if (bytes < sizeof header) return "data of panels: shorter than its header";
  memcpy(header, data, sizeof header);
  if (memcmp(data, "CBGENDAT", 8) != 0) return "data of panels: not a cbgen data file";
  if ((header[1] & 0xffffffffu) != 1) return "data of panels: another version of the format; generate both files anew";
  if (memcmp(header + 2, kId, sizeof kId) != 0) return "data of panels: belongs to another kernel; generate both files anew";
  if (header[4] != bytes || bytes < 5632 || bytes % 8 != 0) return "data of panels: cut short";
  for (size_t at = sizeof header; at < bytes; at += 8) {
    uint64_t word;
    memcpy(&word, data + at, sizeof word);
    checksum = (checksum ^ word) * 0x100000001b3u;
  }
  return checksum == header[5] ? nullptr : "data of panels: damaged, its checksum does not match";
}

// Copies the arrays to the current device. Free with panels_free; after a failure nothing is left to free.
const char *panels_load(panels_matrix *matrix, const void *data, size_t bytes) {
  *matrix = {};
  const struct {
    void **to;
    size_t offset, bytes;
  } arrays[] = {
      {(void **)&matrix->panel0.unit_offset, 256, 99},
      {(void **)&matrix->panel0.address, 512, 448},
      {(void **)&matrix->panel0.place_length, 1024, 80},
      {(void **)&matrix->panel0.place_row, 1280, 80},
      {(void **)&matrix->panel0.values, 1536, 4096},
      {nullptr, 0, 0},
  };
  const char *message = panels_check((const unsigned char *)data, bytes);
  if (message) return message;
  cudaError_t error = cudaSuccess;
  for (int i = 0; arrays[i].to && !error; i++) {
    error = cudaMalloc(arrays[i].to, arrays[i].bytes);
    if (!error)
      error = cudaMemcpy(*arrays[i].to, (const char *)data + arrays[i].offset, arrays[i].bytes, cudaMemcpyHostToDevice);
  }
  if (error) panels_free(matrix);
  return error ? cudaGetErrorString(error) : nullptr;
}

// The same from a data file (the one written beside this text, or a copy).
const char *panels_load_file(panels_matrix *matrix, const char *path) {
  *matrix = {};
  FILE *file = fopen(path, "rb");
  if (!file) return "data of panels: the file cannot be opened";
  const char *message = "data of panels: the file cannot be read";
  long bytes = -1;
  void *data = nullptr;
  if (!fseek(file, 0, SEEK_END) && (bytes = ftell(file)) >= 0 && !fseek(file, 0, SEEK_SET)) {
    data = malloc(bytes ? bytes : 1);
    if (!data) message = "data of panels: out of memory";
    else if (fread(data, 1, bytes, file) == size_t(bytes)) message = panels_load(matrix, data, bytes);
  }
  free(data);
  fclose(file);
  return message;
}

// y = αA·x + βy on `stream`, without allocation or synchronisation. x: 72, y: 70 elements on the device.
const char *panels_multiply(const panels_matrix *matrix, const vector_t *x, vector_t *y, sum_t alpha, sum_t beta,
    cudaStream_t stream) {
  cudaError_t error = cudaSuccess;
  error = launch(panels_spmv, 4, 128, 0, stream, matrix->panel0, x, y, alpha, beta);
  return error ? cudaGetErrorString(error) : nullptr;
}

#ifdef CBGEN_SELFTEST
// Element i of the seeded x, in [-1, 1): splitmix64 of i, its upper 53 bits.
static double panels_x(uint64_t i) {
  uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return double((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1;
}

// Multiplies and compares every row with what `data` expects, within its tolerance.
static const char *panels_selftest(const char *data, size_t bytes) {
  constexpr size_t kRowCount = 70, kColCount = 72, kExpected = 5632;
  panels_matrix matrix;
  const char *message = panels_load(&matrix, data, bytes);
  if (message) return message;
  if (bytes < kExpected + 2 * kRowCount * sizeof(double)) {
    panels_free(&matrix);
    return "the data has no self-test part: generate it without --no-selftest";
  }
  const double *expected = (const double *)(data + kExpected), *tolerance = expected + kRowCount;
  vector_t *host = (vector_t *)malloc((kRowCount + kColCount + 1) * sizeof(vector_t)), *x = nullptr, *y = nullptr;
  if (host) {
    for (size_t i = 0; i < kColCount; i++) host[i] = vector_t(panels_x(i));
    if (cudaMalloc((void **)&x, (kColCount + 1) * sizeof(vector_t)) || cudaMalloc((void **)&y, (kRowCount + 1) * sizeof(vector_t)) ||
        cudaMemcpy(x, host, kColCount * sizeof(vector_t), cudaMemcpyHostToDevice) ||
        cudaMemset(y, 255, kRowCount * sizeof(vector_t)))
      message = "no room on the device";
  } else {
    message = "out of memory";
  }
  if (!message) message = panels_multiply(&matrix, x, y, 1, 0, 0);
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
    printf("panels: WRONG: %zu of %zu rows; the first is row %zu: %.17g instead of %.17g, tolerance %.3g\n", wrong,
           kRowCount, first, double(host[first]), expected[first], tolerance[first]);
  else if (!message)
    printf("panels: ok: %zu rows, largest error %.3g of its tolerance\n", kRowCount, worst);
  free(host);
  cudaFree(x);
  cudaFree(y);
  panels_free(&matrix);
  return message ? message : wrong ? "wrong result" : nullptr;
}

// Usage: PROGRAM DATA-FILE
int main(int count, char **arguments) {
  const char *path = count > 1 ? arguments[1] : "panels.cbd";
  const char *message = "the data file cannot be read: name it as the argument";
  FILE *file = fopen(path, "rb");
  char *data = nullptr;
  long bytes = -1;
  if (file && !fseek(file, 0, SEEK_END) && (bytes = ftell(file)) >= 0 && !fseek(file, 0, SEEK_SET))
    data = (char *)malloc(bytes ? bytes : 1);
  if (data && fread(data, 1, bytes, file) == size_t(bytes)) message = panels_selftest(data, bytes);
  if (message) fprintf(stderr, "panels: %s: %s\n", path, message);
  if (file) fclose(file);
  free(data);
  return message ? 1 : 0;
}
#endif  // CBGEN_SELFTEST
#endif  // __CUDACC_RTC__
