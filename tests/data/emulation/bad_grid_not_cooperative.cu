// expect 71 whose launch is not cooperative
// not cooperative: nothing says that all thread blocks are resident.
constexpr int kBlocks = 5, kThreads = 64;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  wait_for_previous();
  y[kThreads * blockIdx.x + threadIdx.x] = x[0];
  grid_barrier(nullptr, kBlocks, 1);
}
