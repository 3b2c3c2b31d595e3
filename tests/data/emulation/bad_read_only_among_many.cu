// Of many stores the first one is read through the cache.
// expect 75 line 9 reads what this launch writes
constexpr int kBlocks = 700, kThreads = 1;
CBGEN_KERNEL void kernel(const double *x, double *y, double *carry, unsigned *counter) {
  store_l2(carry + blockIdx.x, load(x + blockIdx.x));
  __threadfence();
  if (atomicAdd(counter, 1u) != kBlocks - 1) return;
  __threadfence();
  *y = load(carry);
  *counter = 0;
}
