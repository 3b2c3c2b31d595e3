// The kernel before this one may still be writing x.
// expect 75 line 5 reads an input before wait_for_previous
constexpr int kBlocks = 2, kThreads = 32;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  const double value = load_input(x + threadIdx.x);
  wait_for_previous();
  y[threadIdx.x] = value;
}
