// expect 71 divergent barrier
// One thread block leaves before the others meet.
constexpr int kBlocks = 5, kThreads = 64;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  wait_for_previous();
  y[kThreads * blockIdx.x + threadIdx.x] = x[0];
  if (blockIdx.x == 3) return;
  grid_barrier(nullptr, kBlocks, 1);
}
