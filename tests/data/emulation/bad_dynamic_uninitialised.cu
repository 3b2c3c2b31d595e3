// expect 76 before it is written
constexpr int kBlocks = 4, kThreads = 64, kSharedBytes = 256, kAllowedBytes = 0;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  const DynamicShared<float, 64> buffer;
  if (blockIdx.x < 3 || threadIdx.x < 63) buffer[threadIdx.x] = (float)x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = buffer[63 - threadIdx.x];
}
