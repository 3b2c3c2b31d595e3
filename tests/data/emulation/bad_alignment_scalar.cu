// expect 78 no multiple of 8
constexpr int kBlocks = 1, kThreads = 32;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  y[threadIdx.x] = load_stream((const double *)((const char *)(x + threadIdx.x) + 4));
}
