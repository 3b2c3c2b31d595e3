// expect 71 divergent barrier
// Some threads of a block wait for the block, others for the grid.
constexpr int kBlocks = 5, kThreads = 64;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  wait_for_previous();
  y[kThreads * blockIdx.x + threadIdx.x] = x[0];
  if (threadIdx.x < 32)
    grid_barrier(nullptr, kBlocks, 1);
  else
    __syncthreads();
}
