// expect 75 shared race
constexpr int kBlocks = 1, kThreads = 32;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  __shared__ Shared<double, 32> buffer;
  buffer[threadIdx.x] = 0;
  __syncthreads();
  buffer[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = buffer[threadIdx.x ^ 1];
}
