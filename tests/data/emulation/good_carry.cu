// One row over all blocks: partial sums in carry slots, the last arriver adds them in slot order.
constexpr int kBlocks = 37, kThreads = 64;
CBGEN_KERNEL void __launch_bounds__(64) kernel(const double *x, double *y, double *carry, unsigned *counter) { wait_for_previous();
  __shared__ Shared<double, 2> sums;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  double sum = load(x + blockIdx.x * 64 + threadIdx.x);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(kFullMask, sum, step);
  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  if (threadIdx.x > 0) return;
  const double first = sums[0], second = sums[1];
  store_l2(carry + blockIdx.x, first + second);
  __threadfence();
  if (atomicAdd(counter, 1u) != kBlocks - 1) return;
  __threadfence();
  double total = 0;
  for (int slot = 0; slot < kBlocks; slot++) total += load_l2(carry + slot);
  *y = total;
  *counter = 0;
}
