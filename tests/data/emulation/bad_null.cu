// expect 82 in kernel kernel (launch 1), block 0, thread
// plain 83 the thread crashed: Segmentation fault
constexpr int kBlocks = 1, kThreads = 32;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  const volatile double *nowhere = x[0] > 1e300 ? x : nullptr;
  y[threadIdx.x] = *nowhere;
}
