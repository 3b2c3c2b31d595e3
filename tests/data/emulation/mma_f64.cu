// A tile for each warp: a, b and what d begins with are 32, 32 and 64 numbers of x.
constexpr int kBlocks = 4, kThreads = 64;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  const int lane = threadIdx.x % 32, warp = 2 * blockIdx.x + threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const double *a = x + 128 * warp, *b = a + 32, *c = b + 32;
  double d[2] = {c[8 * g + 2 * t], c[8 * g + 2 * t + 1]};
  mma_f64_884(d, a[4 * g + t], b[8 * t + g]);
  for (int j = 0; j < 2; j++) y[64 * warp + 8 * g + 2 * t + j] = d[j];
}
