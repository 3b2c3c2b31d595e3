// 128 KiB of dynamic shared memory: each block reverses its inputs through slots that lie far apart.
constexpr int kBlocks = 3, kThreads = 512, kSharedBytes = 131072, kAllowedBytes = 131072;
CBGEN_KERNEL void __launch_bounds__(512) kernel(const double *x, double *y) {
  const DynamicShared<double, 16384> buffer;
  for (int i = threadIdx.x; i < 16384; i += 512) buffer[i] = 0;
  __syncthreads();
  if (threadIdx.x < 256) buffer[64 * (int)threadIdx.x + 63] = x[256 * blockIdx.x + threadIdx.x];
  __syncthreads();
  if (threadIdx.x < 256) y[256 * blockIdx.x + threadIdx.x] = buffer[64 * (255 - (int)threadIdx.x) + 63] + buffer[0];
}
