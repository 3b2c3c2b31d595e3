// More thread blocks than can be resident.
constexpr int kBlocks = 17, kThreads = 64;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  wait_for_previous();
  y[kThreads * blockIdx.x + threadIdx.x] = x[0];
  grid_barrier(nullptr, kBlocks, 1);
}
