// expect 75 shared race
constexpr int kBlocks = 1, kThreads = 64;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  __shared__ Shared<double, 1> sum;
  if (threadIdx.x == 0) sum[0] = 0;
  __syncthreads();
  sum[0] += x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = sum[0];
}
