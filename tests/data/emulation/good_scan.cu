// Inclusive prefix sums within each warp, and a vote that counts the positive lanes before one's own.
constexpr int kBlocks = 5, kThreads = 96;
CBGEN_KERNEL void __launch_bounds__(96) kernel(const double *x, double *y) {
  const int lane = threadIdx.x % 32, i = blockIdx.x * 96 + threadIdx.x;
  double sum = load(x + i);
  const unsigned positive = __ballot_sync(kFullMask, sum > 0);
  for (int step = 1; step < 32; step *= 2) {
    const double left = __shfl_up_sync(kFullMask, sum, step);
    if (lane >= step) sum += left;
  }
  y[i] = sum + 1000.0 * __popc(positive & ((1u << lane) - 1));
}
