// Sums of 32 entries by butterfly shuffles; every thread block owns 8 rows.
// expect y[i] = sum of x[32 i .. 32 i + 31]
constexpr int kBlocks = 13, kThreads = 256;
CBGEN_KERNEL void __launch_bounds__(256) kernel(const double *x, double *y) {
  const int lane = threadIdx.x % 32, row = blockIdx.x * 8 + threadIdx.x / 32;
  double sum = load(x + 32 * row + lane);
#pragma unroll
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(kFullMask, sum, step);
  if (lane == 0) y[row] = sum;
}
