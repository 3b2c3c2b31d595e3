// Fences order everything, but the read-only path may still hold what stood there before.
// expect 75 line 10 reads what this launch writes
constexpr int kBlocks = 37, kThreads = 32;
CBGEN_KERNEL void kernel(const double *x, double *y, double *carry, unsigned *counter) {
  if (threadIdx.x > 0) return;
  store_l2(carry + blockIdx.x, load(x + blockIdx.x));
  __threadfence();
  if (atomicAdd(counter, 1u) != kBlocks - 1) return;
  __threadfence();
  for (int slot = 0; slot < kBlocks; slot++) y[slot] = load(carry + slot);
  *counter = 0;
}
