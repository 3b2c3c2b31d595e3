// expect 77 but the launch has 248 of dynamic shared memory
constexpr int kBlocks = 1, kThreads = 32, kSharedBytes = 248, kAllowedBytes = 0;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  const DynamicShared<double, 32> buffer;
  buffer[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = 0;
}
