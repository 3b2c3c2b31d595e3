// expect 71 wait at __syncthreads in line 6
constexpr int kBlocks = 1, kThreads = 32;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  double value = x[threadIdx.x];
  if (threadIdx.x < 16)
    __syncthreads();
  else
    value = __shfl_xor_sync(kFullMask, value, 1);
  y[threadIdx.x] = value;
}
