// The sum depends on which block comes last: two orders give different bits.
// expect unrepeatable
constexpr int kBlocks = 50, kThreads = 32;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  if (threadIdx.x == 0) atomicAdd(y, load(x + blockIdx.x) / 3);
}
