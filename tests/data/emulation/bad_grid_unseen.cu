// expect 75 vector race: line
// A meeting that makes nobody see what others have stored (a grid_barrier would).
constexpr int kBlocks = 5, kThreads = 64;
__shared__ Shared<uint64_t, 128> board;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  wait_for_previous();
  const int i = kThreads * blockIdx.x + threadIdx.x;
  double numbers[1] = {1};
  store_vector(y + i, load_vector(x + i));
  exchange_cluster<false>(numbers, board, 1, kBlocks);
  __syncthreads();
  const double next = load_vector(y + (i + kThreads) % (kBlocks * kThreads));
  grid_barrier(nullptr, kBlocks, 1);
  store_vector(y + i, next);
}
