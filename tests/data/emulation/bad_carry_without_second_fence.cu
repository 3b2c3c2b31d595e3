// The last arriver reads the sums without a fence behind its atomic: it may have loaded them before.
// expect 75 global race: line 11 reads what thread 0 of block
constexpr int kBlocks = 37, kThreads = 32;
CBGEN_KERNEL void kernel(const double *x, double *y, double *carry, unsigned *counter) { wait_for_previous();
  if (threadIdx.x > 0) return;
  store_l2(carry + blockIdx.x, load(x + blockIdx.x));
  __threadfence();
  if (atomicAdd(counter, 1u) != kBlocks - 1) return;
  double total = 0;
  for (int slot = 0; slot < kBlocks; slot++)
    total += load_l2(carry + slot);
  *y = total;
  *counter = 0;
}
