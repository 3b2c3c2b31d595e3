// y = αA·x + βy for "arrow": 64 × 64, 190 nonzeros, double.  cbgen 0.1.0, do not edit.
//   plan    (spmv (split long-rows (longer 32) (cb (panels 4) (coo 7) (aggregated yes)) (cb (panels 4) (coo 4) (aggregated yes))))
//   target  sm_90, 132 SMs        launch  grid 1 × 256 threads, 0 B dynamic shared memory; then grid 1 × 256 threads, 0 B dynamic shared memory
//   pattern d6e5d709a4c8b3e1aaa71f7bf4a48fb2        stored  9.7 bytes per nonzero (CSR: 13.4)
//   use     arrow_load_embedded, arrow_multiply, arrow_free; -DCBGEN_SELFTEST makes it a program that checks itself
//
// Read it from here: types and vectors, then one namespace per region of the plan, then the kernels. The shims in
// between are the same in every generated file and can be skipped; the host section at the end is not seen by NVRTC.

// ---- the shims are left out of this golden -------------------------------------------------------------------------------------
// ---- types and vectors ---------------------------------------------------------------------------------------

using matrix_t = double;  // values of A
using vector_t = double;  // x and y
using sum_t = double;     // sums, alpha and beta

constexpr int kRows = 64;  // matrix: rows, the length of y

struct Vectors {
  const vector_t *x;  // length 64
  vector_t *y;        // length 64
  sum_t alpha, beta;
};

CBGEN_DEVICE sum_t load_x(const Vectors &vectors, int column) { return sum_t(load(vectors.x + column)); }

// The one final write of a row. With beta = 0 y is not read: it may hold anything.
CBGEN_DEVICE void commit(const Vectors &vectors, int row, sum_t sum) {
  const sum_t scaled = vectors.alpha * sum;
  vectors.y[row] = vector_t(vectors.beta == 0 ? scaled : scaled + vectors.beta * sum_t(vectors.y[row]));
}

// Adds to a row that an earlier launch has written.
CBGEN_DEVICE void commit_more(const Vectors &vectors, int row, sum_t sum) {
  vectors.y[row] = vector_t(sum_t(vectors.y[row]) + vectors.alpha * sum);
}

// ---- region cb0: 16x16 sub-blocks in COO, CSR or Dense, columns aggregated per panel
//      panels 4, coo 7, aggregated yes

namespace cb0 {

using index_t = int;  // holds any index into the arrays below
constexpr int kCooSteps = 2;  // plan: the fullest COO sub-block, in steps of 16 nonzeros
constexpr int kUnitsPerBlock = 8;  // plan: units of work in a thread block

struct Arrays {
  const uint8_t *restore_cols;  // 112: original columns of a sub-block, from its first; 16 each
  const uint8_t *mtx_data;  // 1160: per sub-block: coordinates, padding, values
};

// first column of a sub-block
__device__ const uint8_t blk_col_idx_table[] = {
    0, 0, 31, 0, 47, 0, 63};
CBGEN_DEVICE int blk_col_idx(const Arrays &, int i) { return blk_col_idx_table[i]; }
CBGEN_DEVICE int restore_cols(const Arrays &arrays, int i) { return load(arrays.restore_cols + i); }
// virtual pointer: a sub-block's place in mtx_data, in values
__device__ const uint8_t vp_per_blk_table[] = {
    0, 34, 69, 71, 106, 108, 143};
CBGEN_DEVICE int vp_per_blk(const Arrays &, int i) { return vp_per_blk_table[i]; }
// a unit's first sub-block; units + 1
__device__ const uint8_t first_block_table[] = {
    0, 1, 3, 5, 7, 7, 7, 7, 7};
CBGEN_DEVICE int first_block(const Arrays &, int i) { return first_block_table[i]; }
// nonzeros of a sub-block, less one
__device__ const uint8_t nnz_per_blk_table[] = {
    29, 30, 0, 30, 0, 30, 0};
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
  sum_t sum = 0;  // of row lane % 16, half of the 32 columns; every lane of a half starts at another bank
  for (int i = 0; i < 16; i++) sum += partial[rows + 32 * (lane % 16) + 16 * half + (i + lane) % 16];
  return sum;
}

// A unit is a panel of 16 rows, or a run of its sub-blocks. Lane l collects a part of the sum of row l % 16.
CBGEN_DEVICE void multiply(const Arrays &arrays, const Vectors &vectors, int thread_block) {
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  const int unit = kUnitsPerBlock * thread_block + warp;
  sum_t sum = 0;
  sum += coo_sums(arrays, vectors, first_block(arrays, unit), first_block(arrays, unit + 1));
  sum += __shfl_xor_sync(kFullMask, sum, 16);
  const int row = 16 * unit_panel(arrays, unit) + lane % 16;
  if (lane < 16 && row < kRows) commit(vectors, row, sum);  // the last rows do not fill their panel or thread block
}

}  // namespace cb0

// ---- region cb1: 16x16 sub-blocks in COO, CSR or Dense, columns aggregated per panel
//      panels 4, coo 4, aggregated yes

namespace cb1 {

using index_t = int;  // holds any index into the arrays below
constexpr int kCooSteps = 1;  // plan: the fullest COO sub-block, in steps of 16 nonzeros
constexpr int kUnitsPerBlock = 8;  // plan: units of work in a thread block

struct Arrays {
  const uint8_t *mtx_data;  // 576: per sub-block: coordinates, padding, values
};

// first column of a sub-block
CBGEN_DEVICE int blk_col_idx(const Arrays &, int i) { return 16 * i; }
// original columns of a sub-block, from its first; 16 each
__device__ const uint8_t restore_cols_table[] = {
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
CBGEN_DEVICE int restore_cols(const Arrays &, int i) { return restore_cols_table[i]; }
// virtual pointer: a sub-block's place in mtx_data, in values
CBGEN_DEVICE int vp_per_blk(const Arrays &, int i) { return 18 * i; }
// a unit's first sub-block; units + 1
__device__ const uint8_t first_block_table[] = {
    0, 4, 4, 4, 4, 4, 4, 4, 4};
CBGEN_DEVICE int first_block(const Arrays &, int i) { return first_block_table[i]; }
// nonzeros of a sub-block, less one
CBGEN_DEVICE int nnz_per_blk(const Arrays &, int) { return 15; }
// panel of a unit
__device__ const uint8_t unit_panel_table[] = {
    0, 4, 5, 6, 7, 8, 9, 10};
CBGEN_DEVICE int unit_panel(const Arrays &, int i) { return unit_panel_table[i]; }

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
  sum_t sum = 0;  // of row lane % 16, half of the 32 columns; every lane of a half starts at another bank
  for (int i = 0; i < 16; i++) sum += partial[rows + 32 * (lane % 16) + 16 * half + (i + lane) % 16];
  return sum;
}

// A unit is a panel of 16 rows, or a run of its sub-blocks. Lane l collects a part of the sum of row l % 16.
CBGEN_DEVICE void multiply(const Arrays &arrays, const Vectors &vectors, int thread_block) {
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  const int unit = kUnitsPerBlock * thread_block + warp;
  sum_t sum = 0;
  sum += coo_sums(arrays, vectors, first_block(arrays, unit), first_block(arrays, unit + 1));
  sum += __shfl_xor_sync(kFullMask, sum, 16);
  const int row = 16 * unit_panel(arrays, unit) + lane % 16;
  if (lane < 16 && row < kRows) commit_more(vectors, row, sum);  // the last rows do not fill their panel or thread block
}

}  // namespace cb1

// ---- kernels

CBGEN_KERNEL void __launch_bounds__(256) arrow_spmv_0(const cb0::Arrays cb0_arrays, const vector_t *x, vector_t *y, sum_t alpha, sum_t beta) {
  const Vectors vectors = {x, y, alpha, beta};
  cb0::multiply(cb0_arrays, vectors, (int)blockIdx.x);
}

CBGEN_KERNEL void __launch_bounds__(256) arrow_spmv_1(const cb1::Arrays cb1_arrays, const vector_t *x, vector_t *y, sum_t alpha, sum_t beta) {
  const Vectors vectors = {x, y, alpha, beta};
  cb1::multiply(cb1_arrays, vectors, (int)blockIdx.x);
}

// ---- host: load, multiply, free ------------------------------------------------------------------------------
// Functions return NULL, or a message that lives forever.
#ifndef __CUDACC_RTC__

// Device pointers of one loaded matrix.
struct arrow_matrix {
  cb0::Arrays cb0;
  cb1::Arrays cb1;
};

void arrow_free(arrow_matrix *matrix) {
  void *const blocks[] = {(void *)matrix->cb0.restore_cols, (void *)matrix->cb0.mtx_data, (void *)matrix->cb1.mtx_data, nullptr};
  for (void *const *block = blocks; *block != nullptr; block++) cudaFree(*block);
  *matrix = {};
}

// Checks that `data` (`bytes` long) is the packed data of this kernel, whole and unchanged.
static const char *arrow_check(const unsigned char *data, size_t bytes) {
  constexpr uint64_t kId[2] = {0xc5f3e05311d2e5b1u, 0xb1dcb0f3d45a2c10u};  // plan and pattern
  uint64_t header[8], checksum = 0xcbf29ce484222325u;
  if (bytes < sizeof header) return "data of arrow: shorter than its header";
  memcpy(header, data, sizeof header);
  if (memcmp(data, "CBGENDAT", 8) != 0) return "data of arrow: not a cbgen data file";
  if ((header[1] & 0xffffffffu) != 1) return "data of arrow: another version of the format; generate both files anew";
  if (memcmp(header + 2, kId, sizeof kId) != 0) return "data of arrow: belongs to another kernel; generate both files anew";
  if (header[4] != bytes || bytes < 2560 || bytes % 8 != 0) return "data of arrow: cut short";
  for (size_t at = sizeof header; at < bytes; at += 8) {
    uint64_t word;
    memcpy(&word, data + at, sizeof word);
    checksum = (checksum ^ word) * 0x100000001b3u;
  }
  return checksum == header[5] ? nullptr : "data of arrow: damaged, its checksum does not match";
}

// Copies the arrays to the current device. Free with arrow_free; after a failure nothing is left to free.
const char *arrow_load(arrow_matrix *matrix, const void *data, size_t bytes) {
  *matrix = {};
  const struct {
    void **to;
    size_t offset, bytes;
  } arrays[] = {
      {(void **)&matrix->cb0.restore_cols, 256, 112},
      {(void **)&matrix->cb0.mtx_data, 512, 1160},
      {(void **)&matrix->cb1.mtx_data, 1792, 576},
      {nullptr, 0, 0},
  };
  const char *message = arrow_check((const unsigned char *)data, bytes);
  if (message) return message;
  cudaError_t error = cudaSuccess;
  for (int i = 0; arrays[i].to && !error; i++) {
    error = cudaMalloc(arrays[i].to, arrays[i].bytes);
    if (!error)
      error = cudaMemcpy(*arrays[i].to, (const char *)data + arrays[i].offset, arrays[i].bytes, cudaMemcpyHostToDevice);
  }
  if (error) arrow_free(matrix);
  return error ? cudaGetErrorString(error) : nullptr;
}

// The packed data, as analysis/blob.h describes it.
static const uint64_t arrow_data[] = {
    0x5441444e45474243u, 0x200000001u, 0xc5f3e05311d2e5b1u, 0xb1dcb0f3d45a2c10u, 0xe00u,
    0xad3454816ebc1b44u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x706050403020100u, 0xf0e0d0c0b0a0908u, 0x1615141312111000u,
    0x1e1d1c1b1a191817u, 0x0u, 0x0u, 0x2625242322212000u, 0x2e2d2c2b2a292827u,
    0x0u, 0x0u, 0x3635343332313000u, 0x3e3d3c3b3a393837u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x4440333022201110u,
    0x8880777066605550u, 0xccc0bbb0aaa09990u, 0xfff0eee0ddd0u, 0x401a000000000000u, 0x3ff4000000000000u,
    0x3ff8000000000000u, 0x3ff4000000000000u, 0x400f000000000000u, 0x4014000000000000u, 0x4017800000000000u,
    0x3ff0000000000000u, 0x4012000000000000u, 0x3fe0000000000000u, 0x4005000000000000u, 0x4016000000000000u,
    0x4011000000000000u, 0x4011000000000000u, 0x4012000000000000u, 0x400f000000000000u, 0x4019800000000000u,
    0x4019000000000000u, 0x3fec000000000000u, 0x401c800000000000u, 0x4012000000000000u, 0x3fe0000000000000u,
    0x4000000000000000u, 0x3ffa000000000000u, 0x4002000000000000u, 0x3fd8000000000000u, 0x4019000000000000u,
    0x3fec000000000000u, 0x4010800000000000u, 0x400d000000000000u, 0x3430232012100100u, 0x7870676056504540u,
    0xbcb0aba09a908980u, 0xf0efe0ded0cdc0u, 0x4012000000000000u, 0x3fd0000000000000u, 0x4018800000000000u,
    0x401d000000000000u, 0x401d800000000000u, 0x3fe4000000000000u, 0x400d000000000000u, 0x4005000000000000u,
    0x4014000000000000u, 0x401f800000000000u, 0x4010800000000000u, 0x4013800000000000u, 0x4010800000000000u,
    0x3ffa000000000000u, 0x4016800000000000u, 0x4002000000000000u, 0x400d000000000000u, 0x4010800000000000u,
    0x4011800000000000u, 0x401a000000000000u, 0x400f000000000000u, 0x4010800000000000u, 0x401e800000000000u,
    0x4000000000000000u, 0x4016800000000000u, 0x4011000000000000u, 0x401c800000000000u, 0x401c800000000000u,
    0x401e800000000000u, 0x401e000000000000u, 0x4001000000000000u, 0xf0u, 0x401e000000000000u,
    0x3430232012100100u, 0x7870676056504540u, 0xbcb0aba09a908980u, 0xf0efe0ded0cdc0u, 0x4012000000000000u,
    0x401d000000000000u, 0x401e800000000000u, 0x3ffa000000000000u, 0x401b000000000000u, 0x400d000000000000u,
    0x3ff2000000000000u, 0x400b000000000000u, 0x3ff0000000000000u, 0x400a000000000000u, 0x400d000000000000u,
    0x4005000000000000u, 0x3fe4000000000000u, 0x4015800000000000u, 0x4000000000000000u, 0x400c000000000000u,
    0x3fe4000000000000u, 0x3ffc000000000000u, 0x4015800000000000u, 0x4004000000000000u, 0x4019800000000000u,
    0x3ff0000000000000u, 0x401d000000000000u, 0x4019000000000000u, 0x3ff4000000000000u, 0x401e800000000000u,
    0x4017000000000000u, 0x4015000000000000u, 0x4015800000000000u, 0x4008000000000000u, 0x3ff4000000000000u,
    0xf0u, 0x4001000000000000u, 0x3430232012100100u, 0x7870676056504540u, 0xbcb0aba09a908980u,
    0xf0efe0ded0cdc0u, 0x401c800000000000u, 0x3ff2000000000000u, 0x401f000000000000u, 0x400e000000000000u,
    0x3ffe000000000000u, 0x4018000000000000u, 0x401e800000000000u, 0x3fec000000000000u, 0x400a000000000000u,
    0x401c800000000000u, 0x4010000000000000u, 0x3ff6000000000000u, 0x4015800000000000u, 0x401b000000000000u,
    0x3ffe000000000000u, 0x3ff6000000000000u, 0x4017000000000000u, 0x400c000000000000u, 0x4010800000000000u,
    0x400a000000000000u, 0x4006000000000000u, 0x400b000000000000u, 0x3ffa000000000000u, 0x4007000000000000u,
    0x4005000000000000u, 0x3fe8000000000000u, 0x4017800000000000u, 0x4008000000000000u, 0x3fd0000000000000u,
    0x4006000000000000u, 0x4012000000000000u, 0xf0u, 0x400e000000000000u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x706050403020100u,
    0xf0e0d0c0b0a0908u, 0x3ff4000000000000u, 0x4012000000000000u, 0x4012000000000000u, 0x3ff2000000000000u,
    0x3fd0000000000000u, 0x3fc0000000000000u, 0x401a000000000000u, 0x401f800000000000u, 0x4017800000000000u,
    0x4015000000000000u, 0x3fec000000000000u, 0x4011000000000000u, 0x4018000000000000u, 0x401e000000000000u,
    0x3ff2000000000000u, 0x400c000000000000u, 0x706050403020100u, 0xf0e0d0c0b0a0908u, 0x401c000000000000u,
    0x3ffa000000000000u, 0x401a800000000000u, 0x401c000000000000u, 0x3ffc000000000000u, 0x3fd0000000000000u,
    0x4001000000000000u, 0x3ffc000000000000u, 0x4003000000000000u, 0x4010800000000000u, 0x4000000000000000u,
    0x4018800000000000u, 0x4013000000000000u, 0x4005000000000000u, 0x4001000000000000u, 0x4011800000000000u,
    0x706050403020100u, 0xf0e0d0c0b0a0908u, 0x400b000000000000u, 0x401b000000000000u, 0x3ff2000000000000u,
    0x3fe0000000000000u, 0x401d800000000000u, 0x4018000000000000u, 0x4007000000000000u, 0x401d000000000000u,
    0x400e000000000000u, 0x4015800000000000u, 0x4013000000000000u, 0x401a800000000000u, 0x401d000000000000u,
    0x4011000000000000u, 0x400b000000000000u, 0x401a800000000000u, 0x706050403020100u, 0xf0e0d0c0b0a0908u,
    0x401d800000000000u, 0x401c800000000000u, 0x4010800000000000u, 0x3ff2000000000000u, 0x4011800000000000u,
    0x3ff4000000000000u, 0x4011000000000000u, 0x4010800000000000u, 0x3fd0000000000000u, 0x401c000000000000u,
    0x400d000000000000u, 0x4019000000000000u, 0x3ff8000000000000u, 0x4013800000000000u, 0x3fc0000000000000u,
    0x4019000000000000u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0xc01e319969da68b8u, 0x40133f585bd7534au, 0xbfa1663d2c9d1f10u, 0x401eb7c93947c48fu, 0x400dbb965bc04f76u,
    0x400a378c488e4455u, 0xbff9337e6a6e1aa9u, 0x401643e0e5710ef7u, 0x3ff7a98506351e5eu, 0x4025133fd76b1735u,
    0xbfe9bec54958f5d0u, 0x400dafc8872acb3fu, 0x3ff9c6fe9b586d9au, 0x3ffc42a8d02dc320u, 0x40149f8344d41167u,
    0x400a5ed7c729fa5du, 0x400b8dd5599c75a8u, 0x40211295b65535cau, 0x401523895561f1b4u, 0x401257e0a31159feu,
    0x4022dd3879ca17c1u, 0x4012e5bfcbaa8c9eu, 0x40123bb2f76e921bu, 0x400c59ce2a5eb20eu, 0x40172aaf4af68faeu,
    0x401159a998fc6091u, 0x40020564ca897e49u, 0x40136ef2010a3436u, 0x4015e3b282e89881u, 0x402734c7027ce8eau,
    0x4028fb3bc2caa38eu, 0xc004f4f867fe7b2bu, 0xc008bdc38cfc1e70u, 0x40112742617e3474u, 0x401e0674a3ad1f27u,
    0x3fd10988b6beb17eu, 0xbfea40ab5267b6ecu, 0x3ff63a91c3c2ea50u, 0xbfd1711771f58ec0u, 0x3fcb143d05f60d48u,
    0x3fe17c082e048cc6u, 0x3ffff6c435ac3075u, 0x400f96cc379a1005u, 0x3fcc9d4b03b939d4u, 0x4015f2e30e909162u,
    0x4021c07d6e49ea4cu, 0x4004afe4e49587b8u, 0x3fe27a1570e43878u, 0x40158abc3961a853u, 0x4009a9d9282a3904u,
    0x401879826f8d8bafu, 0x4019fbd5e1c95251u, 0xc0068d44fabe7db2u, 0x3ffbb932db07b656u, 0x401ff2f1e453bc4bu,
    0x3ffba805f4479892u, 0x4001cc0d2bf0b946u, 0x4014b32bbc6625e3u, 0x4014bc42343a12b3u, 0x4005715480f1852au,
    0x40053b0a9b8b9337u, 0x400c2512e530982cu, 0xbff39ec29d0dd523u, 0x401952a28a9cf61du, 0x3d722d7ef5a3e07bu,
    0x3cf0f85fcac198dfu, 0x3cdc0514f1ce35eau, 0x3cf7ecb825d3322bu, 0x3cf0c1a1e62a7774u, 0x3ce6bed5458d77fdu,
    0x3cf12ec5fc942c17u, 0x3cf134ff092a4dd6u, 0x3cf0a522ee47615au, 0x3d016069af8c8375u, 0x3cdac41db1a22d08u,
    0x3ce6469ee02cc477u, 0x3cd3d7a99c60e282u, 0x3cd5b4a4dbf5d6a7u, 0x3cef3322cfdb01e4u, 0x3ce5899ab99a27b9u,
    0x3ce6bdfe61e939a9u, 0x3cfb7f140d9200afu, 0x3cf413e55c3a953cu, 0x3cecc7416eb89a44u, 0x3cfdaf5e3145f98cu,
    0x3cef1c2ac57602eeu, 0x3cecdcf7a4b43fe9u, 0x3cef3fad924bb84du, 0x3cf1c22f78a7f2e4u, 0x3cea49bf35474031u,
    0x3ce6e495bf2b3a73u, 0x3cf5e2068e97d27cu, 0x3cf0ccd33aeab833u, 0x3d0369c23485ea69u, 0x3d036ec45fb23daeu,
    0x3cf284522c7648d2u, 0x3cfebdcc1298a389u, 0x3cf7d800feb7c76eu, 0x3cf6c7a815b12f9du, 0x3cd18349fd17728bu,
    0x3cdc41e795a72ff3u, 0x3ce9c642e670033eu, 0x3cce8dc17a3bf727u, 0x3ce12350d4155cebu, 0x3cbc3d53868f7409u,
    0x3cf31d4cf71e4956u, 0x3cf1dc64f7098ed9u, 0x3d0058bf8b4fd70eu, 0x3cf078391035ca9bu, 0x3cfb24103cf38d53u,
    0x3cf1996375550a8eu, 0x3cd093e19f0faa3au, 0x3cf0bfeebf89e564u, 0x3cfac96c73479eb2u, 0x3cf33d6d37e49e0cu,
    0x3cf39f50056428a1u, 0x3cf78ae07d3909d7u, 0x3ceb2a18dcebb439u, 0x3cf8593431ec3517u, 0x3cd6409c37c49928u,
    0x3cf488c13010ca0eu, 0x3cf1285199664602u, 0x3cef1e469ac0e6f6u, 0x3ce1970200a13a88u, 0x3ce02e457da74382u,
    0x3cf15a2640c9eaecu, 0x3cd35303ebb734c8u, 0x3cf34059a732b751u,
};

const char *arrow_load_embedded(arrow_matrix *matrix) {
  return arrow_load(matrix, arrow_data, sizeof arrow_data);
}

// y = αA·x + βy on `stream`, without allocation or synchronisation. x: 64, y: 64 elements on the device.
const char *arrow_multiply(const arrow_matrix *matrix, const vector_t *x, vector_t *y, sum_t alpha, sum_t beta,
    cudaStream_t stream) {
  cudaError_t error = cudaSuccess;
  error = launch(arrow_spmv_0, 1, 256, 0, stream, matrix->cb0, x, y, alpha, beta);
  if (!error) error = launch(arrow_spmv_1, 1, 256, 0, stream, matrix->cb1, x, y, alpha, beta);
  return error ? cudaGetErrorString(error) : nullptr;
}

#ifdef CBGEN_SELFTEST
// Element i of the seeded x, in [-1, 1): splitmix64 of i, its upper 53 bits.
static double arrow_x(uint64_t i) {
  uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return double((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1;
}

// Multiplies and compares every row with what `data` expects, within its tolerance.
static const char *arrow_selftest(const char *data, size_t bytes) {
  constexpr size_t kRowCount = 64, kColCount = 64, kExpected = 2560;
  arrow_matrix matrix;
  const char *message = arrow_load(&matrix, data, bytes);
  if (message) return message;
  if (bytes < kExpected + 2 * kRowCount * sizeof(double)) {
    arrow_free(&matrix);
    return "the data has no self-test part: generate it without --no-selftest";
  }
  const double *expected = (const double *)(data + kExpected), *tolerance = expected + kRowCount;
  vector_t *host = (vector_t *)malloc((kRowCount + kColCount + 1) * sizeof(vector_t)), *x = nullptr, *y = nullptr;
  if (host) {
    for (size_t i = 0; i < kColCount; i++) host[i] = vector_t(arrow_x(i));
    if (cudaMalloc((void **)&x, (kColCount + 1) * sizeof(vector_t)) || cudaMalloc((void **)&y, (kRowCount + 1) * sizeof(vector_t)) ||
        cudaMemcpy(x, host, kColCount * sizeof(vector_t), cudaMemcpyHostToDevice) ||
        cudaMemset(y, 255, kRowCount * sizeof(vector_t)))
      message = "no room on the device";
  } else {
    message = "out of memory";
  }
  if (!message) message = arrow_multiply(&matrix, x, y, 1, 0, 0);
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
    printf("arrow: WRONG: %zu of %zu rows; the first is row %zu: %.17g instead of %.17g, tolerance %.3g\n", wrong,
           kRowCount, first, double(host[first]), expected[first], tolerance[first]);
  else if (!message)
    printf("arrow: ok: %zu rows, largest error %.3g of its tolerance\n", kRowCount, worst);
  free(host);
  cudaFree(x);
  cudaFree(y);
  arrow_free(&matrix);
  return message ? message : wrong ? "wrong result" : nullptr;
}

int main() {
  const char *message = arrow_selftest((const char *)arrow_data, sizeof arrow_data);
  if (message) fprintf(stderr, "arrow: %s\n", message);
  return message ? 1 : 0;
}
#endif  // CBGEN_SELFTEST
#endif  // __CUDACC_RTC__
