// expect 71 have exited
constexpr int kBlocks = 1, kThreads = 32;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  y[threadIdx.x] = x[threadIdx.x];
  if (threadIdx.x >= 24) return;
  y[threadIdx.x] = __shfl_down_sync(kFullMask, x[threadIdx.x], 1);
}
