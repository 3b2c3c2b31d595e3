// Thread blocks hand numbers on, round by round: written, a barrier, read, and another one before they are written again.
constexpr int kBlocks = 5, kThreads = 64;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  wait_for_previous();
  constexpr int kAll = kBlocks * kThreads;
  const int i = kThreads * blockIdx.x + threadIdx.x;
  store_vector(y + i, load_vector(x + i));
  for (int round = 0; round < 3; round++) {
    grid_barrier(nullptr, kBlocks, 1);
    const double next = load_vector(y + (i + kThreads) % kAll) + 1;
    grid_barrier(nullptr, kBlocks, 1);
    store_vector(y + i, next);
  }
}
