// expect 75 shared race
constexpr int kBlocks = 1, kThreads = 64;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  __shared__ Shared<double, 64> buffer;
  buffer[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  const double other = buffer[63 - threadIdx.x];
  __syncwarp();
  buffer[threadIdx.x] = other;
  y[threadIdx.x] = other;
}
