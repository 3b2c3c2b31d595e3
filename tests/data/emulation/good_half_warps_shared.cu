// Half warps pass values through shared memory, ordered by __syncwarp of their own lanes only.
constexpr int kBlocks = 4, kThreads = 64;
CBGEN_KERNEL void __launch_bounds__(64) kernel(const double *x, double *y) {
  __shared__ Shared<double, 64> buffer;
  const int i = threadIdx.x;
  const unsigned mine = 0xffffu << (i % 32 / 16 * 16);
  buffer[i] = load(x + blockIdx.x * 64 + i);
  __syncwarp(mine);
  double sum = buffer[i ^ 1];
  __syncwarp(mine);
  buffer[i] = sum + 1;
  __syncwarp();
  sum += buffer[i ^ 16];
  y[blockIdx.x * 64 + i] = sum;
}
