// expect 71 name each other
constexpr int kBlocks = 1, kThreads = 32;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  const unsigned mask = threadIdx.x < 16 ? 0x0001ffffu : 0xffff8000u;
  y[threadIdx.x] = __shfl_xor_sync(mask, x[threadIdx.x], 1);
}
