// A shuffle exchanges registers; it does not order memory.
// expect 75 shared race
constexpr int kBlocks = 1, kThreads = 32;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  __shared__ Shared<double, 32> buffer;
  buffer[threadIdx.x] = 0;
  __syncthreads();
  buffer[threadIdx.x] = x[threadIdx.x];
  const double other = __shfl_xor_sync(kFullMask, x[threadIdx.x], 1);
  y[threadIdx.x] = other + buffer[threadIdx.x ^ 1];
}
