// More dynamic shared memory than a kernel may have that has not asked for it.
constexpr int kBlocks = 1, kThreads = 32, kSharedBytes = 49160, kAllowedBytes = 0;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  const DynamicShared<double, 6145> buffer;
  buffer[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = buffer[threadIdx.x];
}
