// expect 71 divergent barrier: grid_barrier in line
// Thread blocks meet at different barriers.
constexpr int kBlocks = 5, kThreads = 64;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  wait_for_previous();
  y[kThreads * blockIdx.x + threadIdx.x] = x[0];
  if (blockIdx.x == 3)
    grid_barrier(nullptr, kBlocks, 1);
  else
    grid_barrier(nullptr, kBlocks, 1);
}
