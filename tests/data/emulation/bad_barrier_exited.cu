// expect 71 divergent barrier
constexpr int kBlocks = 1, kThreads = 64;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  y[threadIdx.x] = x[threadIdx.x];
  if (threadIdx.x == 17) return;
  __syncthreads();
}
