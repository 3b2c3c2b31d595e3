// A block-wide sum: warps reduce by shuffles, meet in shared memory, the first warp finishes.
constexpr int kBlocks = 9, kThreads = 256;
CBGEN_KERNEL void __launch_bounds__(256) kernel(const double *x, double *y) {
  __shared__ Shared<double, 8> sums;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  double sum = load_stream(x + blockIdx.x * 256 + threadIdx.x);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(kFullMask, sum, step);
  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  if (warp > 0) return;
  sum = 0;
  if (lane < 8) sum = sums[lane];
  for (int step = 4; step > 0; step /= 2) sum += __shfl_xor_sync(kFullMask, sum, step, 8);
  if (lane == 0) y[blockIdx.x] = sum;
}
