// expect 74 deadlock
constexpr int kBlocks = 1, kThreads = 32;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  double value = x[threadIdx.x];
  const unsigned lane = threadIdx.x;
  // Lanes 0, 1 and 2 wait for each other in a circle.
  if (lane == 0) value += __shfl_sync(0x3u, value, 1);
  if (lane == 1) value += __shfl_sync(0x6u, value, 2);
  if (lane == 2) value += __shfl_sync(0x5u, value, 0);
  y[lane] = value;
}
