// expect 77 more than 49152 bytes
constexpr int kBlocks = 1, kThreads = 32;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  __shared__ Shared<double, 4096> one;
  __shared__ Shared<double, 2049> two;
  one[threadIdx.x] = two[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = 0;
}
