// Two half warps at work on different rows: shuffles of width 16, and a branch with half masks.
constexpr int kBlocks = 4, kThreads = 64;
CBGEN_KERNEL void __launch_bounds__(64) kernel(const double *x, double *y) {
  const int lane = threadIdx.x % 32, half = lane / 16;
  double sum = load(x + blockIdx.x * 64 + threadIdx.x);
  for (int step = 8; step > 0; step /= 2) sum += __shfl_down_sync(kFullMask, sum, step, 16);
  sum = __shfl_sync(kFullMask, sum, 0, 16);
  if (half == 0) {
    for (int turn = 0; turn < 3; turn++) sum += __shfl_xor_sync(0x0000ffffu, sum, 1, 16);
  } else {
    sum -= __shfl_sync(0xffff0000u, sum, 3, 16);
  }
  y[blockIdx.x * 64 + threadIdx.x] = sum;
}
