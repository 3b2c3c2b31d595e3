// expect 82 heap-buffer-overflow
// plain 79 a store beyond an allocation
constexpr int kBlocks = 1, kThreads = 32;
CBGEN_KERNEL void kernel(const double *x, double *y) { y[kOutputs - 31 + threadIdx.x] = x[0]; }
