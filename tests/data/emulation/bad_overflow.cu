// expect 82 runtime error: signed integer overflow
constexpr int kBlocks = 1, kThreads = 32;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  int n = 0x7fffffff - 16;
  n += (int)threadIdx.x;
  y[threadIdx.x] = x[0] + n;
}
