// expect 73 reads lane 16, which is not in its mask 0x0000ffff
constexpr int kBlocks = 1, kThreads = 32;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  double value = x[threadIdx.x];
  if (threadIdx.x < 16) value = __shfl_down_sync(0x0000ffffu, value, 1);
  y[threadIdx.x] = value;
}
