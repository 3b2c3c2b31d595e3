// expect 77 line 5 uses slot 32 of a shared array of 32
constexpr int kBlocks = 1, kThreads = 32, kSharedBytes = 512, kAllowedBytes = 0;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  const DynamicShared<double, 32> buffer;
  buffer[threadIdx.x + 1] = x[threadIdx.x];
  y[threadIdx.x] = 0;
}
