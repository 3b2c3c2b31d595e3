// expect 76 line 8 reads slot 31 of a shared array before it is written
constexpr int kBlocks = 2, kThreads = 32;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  __shared__ Shared<double, 32> buffer;
  // The first block writes all; the second must not live on what the first left behind.
  if (threadIdx.x < 31 || blockIdx.x == 0) buffer[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = buffer[31 - threadIdx.x];
}
