// Every lane stores a sum and has its fence, but nothing makes lane 0 wait for the others before it counts the warp.
// expect 75 global race: line 14 reads what thread
constexpr int kBlocks = 37, kThreads = 32;
CBGEN_KERNEL void kernel(const double *x, double *y, double *carry, unsigned *counter) { wait_for_previous();
  double sum = load(x + 32 * blockIdx.x + threadIdx.x);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(kFullMask, sum, step);
  if (threadIdx.x == (blockIdx.x + 7) % 32) store_l2(carry + blockIdx.x, sum);
  __threadfence();
  unsigned before = 0;
  if (threadIdx.x == 0) before = atomicAdd(counter, 1u);
  before = __shfl_sync(kFullMask, before, 0);
  if (before != kBlocks - 1) return;
  __threadfence();
  for (int i = threadIdx.x; i < kBlocks; i += 32) y[i] = load_l2(carry + i);
  if (threadIdx.x == 0) *counter = 0;
}
