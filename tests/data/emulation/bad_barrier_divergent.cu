// expect 71 divergent barrier
constexpr int kBlocks = 2, kThreads = 64;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  if (threadIdx.x < 32)
    __syncthreads();
  else
    __syncthreads();
  y[threadIdx.x] = x[threadIdx.x];
}
