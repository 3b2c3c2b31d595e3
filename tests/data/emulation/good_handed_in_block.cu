// Within a block a barrier hands over what was stored to global memory: no fence. A fence behind it speaks for all.
constexpr int kBlocks = 37, kThreads = 64;
CBGEN_KERNEL void __launch_bounds__(64) kernel(const double *x, double *y, double *carry, unsigned *counter) { wait_for_previous();
  __shared__ Shared<unsigned, 1> before;
  if (threadIdx.x == 40) store_l2(carry + blockIdx.x, load(x + blockIdx.x));
  __syncthreads();
  const double own = load_l2(carry + blockIdx.x);
  if (threadIdx.x == 0) {
    __threadfence();
    before[0] = atomicAdd(counter, 1u);
    __threadfence();
  }
  __syncthreads();
  if (threadIdx.x == 63) y[blockIdx.x] = own;
  const unsigned arrived = before[0];
  if (arrived != kBlocks - 1) return;
  if (threadIdx.x < kBlocks) y[kBlocks + threadIdx.x] = load_l2(carry + threadIdx.x);
  if (threadIdx.x == 0) *counter = 0;
}
