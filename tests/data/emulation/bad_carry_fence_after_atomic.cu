// The fence comes after the atomic that says that the sum is there.
// expect 75 global race: line 11 reads what thread 0 of block
constexpr int kBlocks = 37, kThreads = 32;
CBGEN_KERNEL void kernel(const double *x, double *y, double *carry, unsigned *counter) { wait_for_previous();
  if (threadIdx.x > 0) return;
  store_l2(carry + blockIdx.x, load(x + blockIdx.x));
  const unsigned before = atomicAdd(counter, 1u);
  __threadfence();
  double total = 0;
  for (int slot = 0; slot < kBlocks && before == kBlocks - 1; slot++)
    total += load_l2(carry + slot);
  if (before != kBlocks - 1) return;
  *y = total;
  *counter = 0;
}
