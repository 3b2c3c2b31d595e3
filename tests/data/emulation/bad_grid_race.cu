// expect 75 vector race: line
// One barrier too few: the neighbour may have written already.
constexpr int kBlocks = 5, kThreads = 64;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  wait_for_previous();
  const int i = kThreads * blockIdx.x + threadIdx.x;
  store_vector(y + i, load_vector(x + i));
  const double next = load_vector(y + (i + kThreads) % (kBlocks * kThreads));
  grid_barrier(nullptr, kBlocks, 1);
  store_vector(y + i, next);
}
