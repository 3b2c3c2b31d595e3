// A tile turned through shared memory, twice, with barriers between the phases.
constexpr int kBlocks = 3, kThreads = 256;
CBGEN_KERNEL void __launch_bounds__(256) kernel(const double *x, double *y) {
  __shared__ Shared<double, 256> tile;
  const int row = threadIdx.x / 16, column = threadIdx.x % 16, first = blockIdx.x * 256;
  tile[row * 16 + column] = load(x + first + threadIdx.x);
  __syncthreads();
  const double turned = tile[column * 16 + row];
  __syncthreads();
  tile[threadIdx.x] = turned;
  tile[threadIdx.x] += 0.5;
  __syncthreads();
  y[first + threadIdx.x] = tile[column * 16 + row];
}
