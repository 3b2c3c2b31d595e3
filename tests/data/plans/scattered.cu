// y = αA·x + βy for "scattered": 64 × 2000, 297 nonzeros, double.  cbgen 0.1.0, do not edit.
//   plan    (spmv (cb (panels 4) (coo 21) (aggregated yes) (team 4)))
//   target  sm_90, 132 SMs        launch  grid 2 × 256 threads, 0 B dynamic shared memory
//   pattern c962c42c29a12c2678eaf06f38c5e72b        stored  11.4 bytes per nonzero (CSR: 12.9)
//   use     scattered_load_file, scattered_multiply, scattered_free; -DCBGEN_SELFTEST makes it a program that checks itself
//
// Read it from here: types and vectors, then one namespace per region of the plan, then the kernels. The shims in
// between are the same in every generated file and can be skipped; the host section at the end is not seen by NVRTC.

// ---- the shims are left out of this golden -------------------------------------------------------------------------------------
// ---- types and vectors ---------------------------------------------------------------------------------------

using vector_t = double;  // x and y
using sum_t = double;     // sums, alpha and beta


struct Vectors {
  const vector_t *x;  // length 2000
  vector_t *y;        // length 64
  sum_t alpha, beta;
};

CBGEN_DEVICE sum_t load_x(const Vectors &vectors, int column) { return sum_t(load_input(vectors.x + column)); }

// The one final write of a row. With beta = 0 y is not read: it may hold anything.
CBGEN_DEVICE void commit(const Vectors &vectors, int row, sum_t sum) {
  const sum_t scaled = vectors.alpha * sum;
  vectors.y[row] = vector_t(vectors.beta == 0 ? scaled : scaled + vectors.beta * sum_t(vectors.y[row]));
}

// ---- region cb0: 16x16 sub-blocks in COO, CSR or Dense, columns aggregated per panel
//      panels 4, coo 21, aggregated yes, team 4

namespace cb0 {

using stored_t = double;  // a value slot
using index_t = int;  // holds any index into the arrays below
constexpr int kCooSteps = 2;  // plan: the fullest COO sub-block, in steps of 16 nonzeros
constexpr int kUnitsPerBlock = 2;  // plan: units of work in a thread block
constexpr int kTeamWarps = 4;  // plan: warps that share a unit

struct Arrays {
  const uint16_t *restore_cols;  // 336: original columns of a sub-block, from its first; 16 each
  const uint8_t *mtx_data;  // 2712: per sub-block: coordinates, padding, values
};

// first column of a sub-block
__device__ const uint16_t blk_col_idx_table[] = {
    2, 357, 738, 1362, 1846, 25, 379, 754, 1120, 1909, 3, 446, 882, 1289, 1574, 1991,
    0, 379, 849, 1395, 1864};
CBGEN_DEVICE int blk_col_idx(const Arrays &, int i) { return blk_col_idx_table[i]; }
CBGEN_DEVICE int restore_cols(const Arrays &arrays, int i) { return load(arrays.restore_cols + i); }
// virtual pointer: a sub-block's place in mtx_data, in values
__device__ const uint16_t vp_per_blk_table[] = {
    0, 18, 36, 54, 72, 83, 101, 121, 139, 157, 161, 179, 197, 215, 233, 251,
    253, 271, 291, 309, 327};
CBGEN_DEVICE int vp_per_blk(const Arrays &, int i) { return vp_per_blk_table[i]; }
// a unit's first sub-block; units + 1
__device__ const uint8_t first_block_table[] = {
    0, 5, 10, 16, 21};
CBGEN_DEVICE int first_block(const Arrays &, int i) { return first_block_table[i]; }
// nonzeros of a sub-block, less one
__device__ const uint8_t nnz_per_blk_table[] = {
    15, 15, 15, 15, 8, 15, 16, 15, 15, 2, 15, 15, 15, 15, 15, 0,
    15, 16, 15, 15, 9};
CBGEN_DEVICE int nnz_per_blk(const Arrays &, int i) { return nnz_per_blk_table[i]; }
// panel of a unit
CBGEN_DEVICE int unit_panel(const Arrays &, int i) { return i; }
CBGEN_DEVICE sum_t value(const Arrays &arrays, int slot) {
  return sum_t(load_stream((const stored_t *)arrays.mtx_data + slot));
}

// x of (aggregated) column lane % 16 of a sub-block, in both halves of the warp.
CBGEN_DEVICE sum_t x_of_lane(const Arrays &arrays, const Vectors &vectors, int block) {
  const int offset = restore_cols(arrays, index_t(16) * block + (int)threadIdx.x % 16);
  return load_x(vectors, blk_col_idx(arrays, block) + offset);
}

// A sub-block's bytes: coordinates, padding to a whole value, values.
struct Data {
  const uint8_t *coordinates;
  index_t first_value;
};

CBGEN_DEVICE Data data_of(const Arrays &arrays, int block, int coordinate_bytes) {
  constexpr int kValue = sizeof(stored_t);
  const index_t start = vp_per_blk(arrays, block);
  return {arrays.mtx_data + size_t(start) * kValue, start + (coordinate_bytes + kValue - 1) / kValue};
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
      if (k < count) partial[rows + 32 * (place / 16) + lane] += value(arrays, data.first_value + k) * x_of_k;
    }
  }
  __syncwarp();
  sum_t sum = 0;  // of row lane % 16, half of the 32 columns; every lane of a half starts at another bank
  for (int i = 0; i < 16; i++) sum += partial[rows + 32 * (lane % 16) + 16 * half + (i + lane) % 16];
  return sum;
}

// A unit is a panel of 16 rows, or a run of its sub-blocks. Lane l collects a part of the sum of row l % 16.
CBGEN_DEVICE void multiply(const Arrays &arrays, const Vectors &vectors, int thread_block) {
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  const int unit = kUnitsPerBlock * thread_block + warp / kTeamWarps;
  const int rank = warp % kTeamWarps;  // of this warp in its team
  sum_t sum = 0;
  sum += coo_sums(arrays, vectors, first_block(arrays, unit) + 2 * rank, first_block(arrays, unit + 1));
  sum += __shfl_xor_sync(kFullMask, sum, 16);
  __shared__ Shared<sum_t, 8 * 16> team_sums;  // [warp][row]
  if (lane < 16) team_sums[16 * warp + lane] = sum;
  __syncthreads();
  if (rank > 0) return;
  sum = 0;
  for (int other = 0; other < kTeamWarps; other++) sum += team_sums[16 * (warp + other) + lane % 16];
  const int row = 16 * unit_panel(arrays, unit) + lane % 16;
  if (lane < 16) commit(vectors, row, sum);  // no guard: every panel has 16 rows
}

}  // namespace cb0

// ---- kernels

CBGEN_KERNEL void __launch_bounds__(256, 4) scattered_spmv(cb0::Arrays cb0_arrays, const vector_t *x, vector_t *y, sum_t alpha, sum_t beta) {
  wait_for_previous();
  const Vectors vectors = {x, y, alpha, beta};
  cb0_arrays.mtx_data = after_wait(cb0_arrays.mtx_data);
  cb0::multiply(cb0_arrays, vectors, (int)blockIdx.x);
}

// ---- host: load, multiply, free ------------------------------------------------------------------------------
// Functions return NULL, or a message that lives forever.
#ifndef __CUDACC_RTC__

// Device pointers of one loaded matrix.
struct scattered_matrix {
  cb0::Arrays cb0;
};

void scattered_free(scattered_matrix *matrix) {
  void *const blocks[] = {(void *)matrix->cb0.restore_cols, (void *)matrix->cb0.mtx_data, nullptr};
  for (void *const *block = blocks; *block != nullptr; block++) cudaFree(*block);
  *matrix = {};
}

// Checks that `data` (`bytes` long) is the packed data of this kernel, whole and unchanged.
static const char *scattered_check(const unsigned char *data, size_t bytes) {
  constexpr uint64_t kId[2] = {0xe50bacec046dd544u, 0x7f85026c7de769dbu};  // plan and pattern
  uint64_t header[8], checksum = 0xcbf29ce484222325u;
  if (bytes < sizeof header) return "data of scattered: shorter than its header";
  memcpy(header, data, sizeof header);
  if (memcmp(data, "CBGENDAT", 8) != 0) return "data of scattered: not a cbgen data file";
  if ((header[1] & 0xffffffffu) != 1) return "data of scattered: another version of the format; generate both files anew";
  if (memcmp(header + 2, kId, sizeof kId) != 0) return "data of scattered: belongs to another kernel; generate both files anew";
  if (header[4] != bytes || bytes < 3840 || bytes % 8 != 0) return "data of scattered: cut short";
  for (size_t at = sizeof header; at < bytes; at += 8) {
    uint64_t word;
    memcpy(&word, data + at, sizeof word);
    checksum = (checksum ^ word) * 0x100000001b3u;
  }
  return checksum == header[5] ? nullptr : "data of scattered: damaged, its checksum does not match";
}

// Copies the arrays to the current device. Free with scattered_free; after a failure nothing is left to free.
const char *scattered_load(scattered_matrix *matrix, const void *data, size_t bytes) {
  *matrix = {};
  const struct {
    void **to;
    size_t offset, bytes;
  } arrays[] = {
      {(void **)&matrix->cb0.restore_cols, 256, 672},
      {(void **)&matrix->cb0.mtx_data, 1024, 2712},
      {nullptr, 0, 0},
  };
  const char *message = scattered_check((const unsigned char *)data, bytes);
  if (message) return message;
  cudaError_t error = cudaSuccess;
  for (int i = 0; arrays[i].to && !error; i++) {
    error = cudaMalloc(arrays[i].to, arrays[i].bytes);
    if (!error)
      error = cudaMemcpy(*arrays[i].to, (const char *)data + arrays[i].offset, arrays[i].bytes, cudaMemcpyHostToDevice);
  }
  if (error) scattered_free(matrix);
  return error ? cudaGetErrorString(error) : nullptr;
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

// y = αA·x + βy on `stream`, without allocation or synchronisation. x: 2000, y: 64 elements on the device.
const char *scattered_multiply(const scattered_matrix *matrix, const vector_t *x, vector_t *y, sum_t alpha, sum_t beta,
    cudaStream_t stream) {
  cudaError_t error = cudaSuccess;
  error = launch(scattered_spmv, 2, 256, 0, stream, matrix->cb0, x, y, alpha, beta);
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
  constexpr size_t kRowCount = 64, kColCount = 2000, kExpected = 3840;
  scattered_matrix matrix;
  const char *message = scattered_load(&matrix, data, bytes);
  if (message) return message;
  if (bytes < kExpected + 2 * kRowCount * sizeof(double)) {
    scattered_free(&matrix);
    return "the data has no self-test part: generate it without --no-selftest";
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
  else if (!message)
    printf("scattered: ok: %zu rows, largest error %.3g of its tolerance\n", kRowCount, worst);
  free(host);
  cudaFree(x);
  cudaFree(y);
  scattered_free(&matrix);
  return message ? message : wrong ? "wrong result" : nullptr;
}

// Usage: PROGRAM DATA-FILE
int main(int count, char **arguments) {
  const char *path = count > 1 ? arguments[1] : "scattered.cbd";
  const char *message = "the data file cannot be read: name it as the argument";
  FILE *file = fopen(path, "rb");
  char *data = nullptr;
  long bytes = -1;
  if (file && !fseek(file, 0, SEEK_END) && (bytes = ftell(file)) >= 0 && !fseek(file, 0, SEEK_SET))
    data = (char *)malloc(bytes ? bytes : 1);
  if (data && fread(data, 1, bytes, file) == size_t(bytes)) message = scattered_selftest(data, bytes);
  if (message) fprintf(stderr, "scattered: %s: %s\n", path, message);
  if (file) fclose(file);
  free(data);
  return message ? 1 : 0;
}
#endif  // CBGEN_SELFTEST
#endif  // __CUDACC_RTC__
