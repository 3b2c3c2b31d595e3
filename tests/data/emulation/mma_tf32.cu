// A tile for each warp: a (16 × 8), b (8 × 8) and what d begins with (16 × 8).
constexpr int kBlocks = 4, kThreads = 64;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  const int lane = threadIdx.x % 32, warp = 2 * blockIdx.x + threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const double *a = x + 320 * warp, *b = a + 128, *c = b + 64;
  float left[4], right[2], d[4];
  for (int i = 0; i < 4; i++) left[i] = (float)a[8 * (g + 8 * (i % 2)) + t + 4 * (i / 2)];
  for (int i = 0; i < 2; i++) right[i] = (float)b[8 * (t + 4 * i) + g];
  for (int i = 0; i < 4; i++) d[i] = (float)c[8 * (g + 8 * (i / 2)) + 2 * t + i % 2];
  mma_tf32_1688(d, left, right);
  for (int i = 0; i < 4; i++) y[128 * warp + 8 * (g + 8 * (i / 2)) + 2 * t + i % 2] = (double)d[i];
}
