// expect 71 name each other
constexpr int kBlocks = 1, kThreads = 32;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  double value = x[threadIdx.x];
  if (threadIdx.x < 8)
    value = __shfl_xor_sync(kFullMask, value, 1);
  else
    value = __shfl_xor_sync(kFullMask, value, 2);
  y[threadIdx.x] = value;
}
