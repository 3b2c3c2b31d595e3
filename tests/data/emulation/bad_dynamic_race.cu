// expect 75 shared race
constexpr int kBlocks = 2, kThreads = 64, kSharedBytes = 512, kAllowedBytes = 0;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  const DynamicShared<double, 64> buffer;
  buffer[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  const double other = buffer[63 - threadIdx.x];
  __syncwarp();
  buffer[threadIdx.x] = other;
  y[threadIdx.x] = other;
}
