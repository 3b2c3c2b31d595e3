// Numbers are handed on where a meeting lets all see them; one that does not is enough before they are written again.
constexpr int kBlocks = 5, kThreads = 64;
__shared__ Shared<uint64_t, 128> board;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  wait_for_previous();
  const int i = kThreads * blockIdx.x + threadIdx.x;
  double numbers[1] = {1};
  store_vector(y + i, load_vector(x + i));
  grid_barrier(nullptr, kBlocks, 1);
  const double next = load_vector(y + (i + kThreads) % (kBlocks * kThreads));
  exchange_cluster<false>(numbers, board, 1, kBlocks);
  __syncthreads();
  store_vector(y + i, next + (threadIdx.x < kBlocks ? numbers[0] : 1));
}
