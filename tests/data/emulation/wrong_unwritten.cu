// Row 5 is never written: it keeps what y held.
// expect unwritten 5
constexpr int kBlocks = 1, kThreads = 32;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  if (threadIdx.x != 5) y[threadIdx.x] = x[threadIdx.x];
}
