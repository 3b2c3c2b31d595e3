// expect 82 in kernel kernel (launch 1), block 0, thread
constexpr int kBlocks = 1, kThreads = 32;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  double own[4] = {x[0], x[1], x[2], x[3]};
  const volatile double *p = own;
  y[threadIdx.x] = p[threadIdx.x / 7];
}
