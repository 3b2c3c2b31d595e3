// expect 78 no multiple of 16
constexpr int kBlocks = 1, kThreads = 32;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  y[threadIdx.x] = load_stream_vector<double, 2>(x + threadIdx.x).at[1];
}
