// expect 75 no grid_barrier between
// What others still read is written: no barrier behind the reads.
constexpr int kBlocks = 5, kThreads = 64;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  wait_for_previous();
  const int i = kThreads * blockIdx.x + threadIdx.x;
  store_vector(y + i, load_vector(x + i));
  grid_barrier(nullptr, kBlocks, 1);
  const double next = load_vector(y + (i + kThreads) % (kBlocks * kThreads));
  store_vector(y + i, next);
}
