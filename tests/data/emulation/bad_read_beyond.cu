// expect 82 heap-buffer-overflow
constexpr int kBlocks = 1, kThreads = 32;
CBGEN_KERNEL void kernel(const double *x, double *y) { y[threadIdx.x] = load(x + kInputs - 31 + threadIdx.x); }
