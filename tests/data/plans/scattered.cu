// y = αA·x + βy for "scattered": 64 × 2000, 297 nonzeros, double.  cbgen 0.1.0, do not edit.
//   plan    (spmv (cb (panels 4) (coo 21) (aggregated yes) (team 4)))
//   target  sm_90, 132 SMs        launch  grid 2 × 256 threads, 0 B dynamic shared memory
//   pattern c962c42c29a12c2678eaf06f38c5e72b        stored  11.4 bytes per nonzero (CSR: 12.9)
//   use     scattered_load_embedded, scattered_multiply, scattered_free; -DCBGEN_SELFTEST makes it a program that checks itself
//
// Read it from here: types and vectors, then one namespace per region of the plan, then the kernels. The shims in
// between are the same in every generated file and can be skipped; the host section at the end is not seen by NVRTC.

// ---- the shims are left out of this golden -------------------------------------------------------------------------------------
// ---- types and vectors ---------------------------------------------------------------------------------------

using matrix_t = double;  // values of A
using vector_t = double;  // x and y
using sum_t = double;     // sums, alpha and beta


struct Vectors {
  const vector_t *x;  // length 2000
  vector_t *y;        // length 64
  sum_t alpha, beta;
};

CBGEN_DEVICE sum_t load_x(const Vectors &vectors, int column) { return sum_t(load(vectors.x + column)); }

// The one final write of a row. With beta = 0 y is not read: it may hold anything.
CBGEN_DEVICE void commit(const Vectors &vectors, int row, sum_t sum) {
  const sum_t scaled = vectors.alpha * sum;
  vectors.y[row] = vector_t(vectors.beta == 0 ? scaled : scaled + vectors.beta * sum_t(vectors.y[row]));
}

// ---- region cb0: 16x16 sub-blocks in COO, CSR or Dense, columns aggregated per panel
//      panels 4, coo 21, aggregated yes, team 4

namespace cb0 {

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

CBGEN_KERNEL void __launch_bounds__(256) scattered_spmv(const cb0::Arrays cb0_arrays, const vector_t *x, vector_t *y, sum_t alpha, sum_t beta) {
  const Vectors vectors = {x, y, alpha, beta};
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
  constexpr uint64_t kId[2] = {0x13d29dac57bf9975u, 0x154f6d1f3fb8b11cu};  // plan and pattern
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

// The packed data, as analysis/blob.h describes it.
static const uint64_t scattered_data[] = {
    0x5441444e45474243u, 0x200000001u, 0x13d29dac57bf9975u, 0x154f6d1f3fb8b11cu, 0x1300u,
    0xa2f532831c7daaa9u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x1d001300030000u, 0xa0006700630053u, 0xe500c900b800aau,
    0x143012401200102u, 0x280014000d0000u, 0xc1009b0065003fu, 0x102010000d900d8u, 0x16a015101490128u,
    0x3f003100210000u, 0x11a00bf00840044u, 0x220021e020d019bu, 0x264024702310223u, 0x52004e00370000u,
    0xaa00a5008b005bu, 0x12c0117010e00adu, 0x1d40172014a013du, 0x47001500090000u, 0x83006300610052u,
    0x8a008a008a008au, 0x8a008a008a008au, 0x22001700040000u, 0x6f00580040003fu, 0x9400850080007fu,
    0x144011e00a40095u, 0x61005d005b0000u, 0x9d008300810078u, 0xd600af00ae00abu, 0x12c0127010300edu,
    0x21001800110000u, 0x620060004a0028u, 0xef00db00ad0075u, 0x158012b010f00f8u, 0xb800a300010000u,
    0x10700e200c700c5u, 0x22e01610154012au, 0x30002e702cb02b9u, 0x510051000c0000u, 0x51005100510051u,
    0x51005100510051u, 0x51005100510051u, 0x6c005900030000u, 0xa800820072006eu, 0xfe00f400dc00b4u,
    0x19301810173010cu, 0x140012000b0000u, 0x4800360022001bu, 0xe90083006e004du, 0x1810144012b00f6u,
    0x3d0039000b0000u, 0xb100a700700045u, 0x126010000cd00c7u, 0x195018701860158u, 0x2d001f000b0000u,
    0xba00b600770047u, 0xe000d300c800c2u, 0x119010c010900f8u, 0x53004700210000u, 0xa40090006d0063u,
    0x10600f200c000afu, 0x18d018701850179u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x41002300070000u, 0x9d007c006f0045u, 0xb300ae00ab00a6u, 0x15a013200f500d9u,
    0x32001a00150000u, 0x890081007c004au, 0x16b00d800c000abu, 0x1c301ac01a40195u, 0x470023001a0000u,
    0xaf00a2006a004au, 0x12601240116010du, 0x1ef01d901900160u, 0x2d002700230000u, 0x980084006b0030u,
    0x158014300ee00aau, 0x1bb01a1019f0183u, 0x21001e00060000u, 0x7b007a0077005cu, 0x7f007f007f007fu,
    0x7f007f007f007fu, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x8b50433f342c0902u, 0xeae7d8d6d1bebda5u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x7269612a26231e0du, 0xd5bcb0afa89b9784u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x6c59544e452d2b22u,
    0xf8f6d1bf9a939077u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x8664633b2d282509u, 0xffe2c1baa09e9c87u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0xd4a3756251471006u, 0xe8u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x49463e25100f0401u, 0xf3dcdbc7bdb2a89au, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x796a5e4847362f03u,
    0xb1aba29d95848280u, 0xecu, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0xa18e84783f272615u,
    0xfcfaf3e0cbc9ada2u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x362f1e1513110b02u, 0xf8e0b7aa9c997d54u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0xe1d290u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x8e8a745952351711u,
    0xf6ecebddc3bfa098u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x572c1f1d19151103u, 0xfbf2e4ceba967068u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x4c45443b2e210800u, 0xbaa77f796d635652u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x69605b4f48411e03u, 0xb6ad9c978a827574u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3d3a382b1c191413u, 0xf1eed0c2b677756fu, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0xa0u,
    0x3ff0000000000000u, 0x918f7b582d250907u, 0xfef4e0d6c2b3aa9cu, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x9f98965b4c2d2213u,
    0xeae8c9c7c5c1b4a0u, 0xeeu, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x9792917f443e3c23u,
    0xfdf9f8dac0b5a69bu, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x6b67654644180c0au, 0xfffef2e0a983716du, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0xc5b8625453503127u, 0xf6d0u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u, 0x3ff0000000000000u,
    0x3ff0000000000000u, 0x3ff0000000000000u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0x0u, 0x0u, 0x0u, 0x0u, 0x0u,
    0xbfe4eaa04e2ce538u, 0x3ff3ab7a53939f46u, 0xc0107adfa581ac14u, 0xbfe7663ae37f9f76u, 0xbfeb2aa498bb17c4u,
    0x3fdafdd666b41e08u, 0xbf8169440cf40600u, 0x3ffaccb0a78e39eeu, 0x3fc19fe1125f9ed0u, 0xc002d5b91e7159e4u,
    0xbfde9d65723b8210u, 0xbffda3cc43a165cdu, 0xbfcd1daa3036ae30u, 0xbff05937b5c9eaa1u, 0xbfbd38db7c564e10u,
    0xbfd65fd33fa1f4d0u, 0xbfdefc1fe124a1dcu, 0x3ff535983d13ae04u, 0xbfb8f5c9e69bc990u, 0xbfb62da277566430u,
    0x3fe5f35fa4cd147eu, 0xbfb15c26660bdb70u, 0xbfe0d251d9bf5d18u, 0xbfe9e9b9a87f2224u, 0xbff49c2522c3c917u,
    0x3fdc1625055c86d4u, 0xbff1552f2fa18244u, 0xbff8735fa6c737fau, 0xbfed2d6bf62bcdbau, 0x3f8a063c442e4580u,
    0x3ffa492005dd746fu, 0x3ff0c0ff02e741d9u, 0xbfd605c134553ed4u, 0x3ff6d219958b887eu, 0x3fa714b7fedeeb60u,
    0xbfeb904b61a981e4u, 0xc00b5b11ff0b36a2u, 0x3fe093ba6b3478c8u, 0xbfe4715c8774f4b6u, 0x3ff92c7b60ab8ddcu,
    0x3feecd06f297ca40u, 0x3fc77ae463a049a8u, 0x3f6dd5f4c5b17800u, 0x3ff1626369913542u, 0xbfe6b3bd59c4011cu,
    0x3fdd13277e534814u, 0x3ff03fe56655958fu, 0x3fe57a6637e1e820u, 0x3ff86ad19ff45752u, 0x3fe39b7f48906b1cu,
    0xbff2aca3b5bcd5b9u, 0xbff8a764ed3c4897u, 0xbfd38d215b3d3bd0u, 0xbfe21e4aad277ca2u, 0xbfe8722580c8be64u,
    0x3fe298f6e031734cu, 0xbfbd47cf53e6c330u, 0x3fe9414ce1bb4f24u, 0xbfec8178563b1ebcu, 0x3fd05c3f7ba96aa8u,
    0xc00926b5ea91e937u, 0xbff590c40a906285u, 0x3ff7def60bc4b669u, 0x3fc3494f98dce828u, 0x3cda6232e0d663fcu,
    0x3ccd84e7a44d1a9du, 0x3d03a5175555eac9u, 0x3cc47c02b5808d82u, 0x3ce1fb6625a8b82cu, 0x3ce4faf035c499d3u,
    0x3ce469b753af8f0eu, 0x3cd77608f5eec644u, 0x3ce2ceae09f22544u, 0x3cf1ff69dd428b30u, 0x3ce39c77aed2a903u,
    0x3cec2c312e8effccu, 0x3ca234d0af6df127u, 0x3ce7519fd3b0b938u, 0x3cdda23193646e04u, 0x3cbbe52268b09b5du,
    0x3cf1804fa848bedeu, 0x3ceb59c3378171ddu, 0x3ce10b6037ac528cu, 0x3cd72283cce1247au, 0x3ce2cf4fbe5d824du,
    0x3ccb7ad18f25adabu, 0x3cb509872cf93a48u, 0x3cd81bc6274a0fe1u, 0x3cd9337c92bca1dau, 0x3ce7809c68060a27u,
    0x3cf6bd92ed3fb685u, 0x3cd8766e12bc10e8u, 0x3ccb9548e99c2091u, 0x3cd47b9ede08e158u, 0x3cdcd7a7828d9363u,
    0x3ce8b8eb8e204fc9u, 0x3ccf0e4381aeebfau, 0x3d047ad53b4d0c37u, 0x3cd9cb760e08c7b1u, 0x3ce29530c9627f26u,
    0x3cf11b0e5cceef0bu, 0x3ce4e9e9dd3a0fbdu, 0x3cdc2bb99728eb1du, 0x3cfd6472151713b9u, 0x3cdc94f342020b82u,
    0x3ce5e324f474cb24u, 0x3ce5d433dfc4e0f6u, 0x3cdb94ee4b39beb9u, 0x3ce08a60e47449d3u, 0x3cb5d1176a724de2u,
    0x3ce30e3968c1a44eu, 0x3cdf2a183fa7eb41u, 0x3cd86ddefa2855e4u, 0x3cbd6cec14b63bc4u, 0x3cf1a2a1784a4950u,
    0x3cdcae71336e606au, 0x3cd52a41875183f7u, 0x3ce651f8492acdabu, 0x3ce4e1b9c9efa82au, 0x3ce03aa74c06e62eu,
    0x3caca897fe3d77b0u, 0x3cfb619393b0e17au, 0x3cd00a733a1b615bu, 0x3cd27e07b622ac4cu, 0x3cfa3b92e7c88b3du,
    0x3cda3a08db2b66d8u, 0x3cec6b19555e3410u, 0x3d00758962dc1d7cu,
};

const char *scattered_load_embedded(scattered_matrix *matrix) {
  return scattered_load(matrix, scattered_data, sizeof scattered_data);
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

int main() {
  const char *message = scattered_selftest((const char *)scattered_data, sizeof scattered_data);
  if (message) fprintf(stderr, "scattered: %s\n", message);
  return message ? 1 : 0;
}
#endif  // CBGEN_SELFTEST
#endif  // __CUDACC_RTC__
