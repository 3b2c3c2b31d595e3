// A tile for each warp: a (16 × 8), b (8 × 8) and what d begins with (16 × 8); x has the bits of the first two.
constexpr int kBlocks = 4, kThreads = 64;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  const int lane = threadIdx.x % 32, warp = 2 * blockIdx.x + threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const double *a = x + 320 * warp, *b = a + 128, *c = b + 64;
  uint32_t left[2];
  float d[4];
  for (int i = 0; i < 2; i++) {
    const double *row = a + 8 * (g + 8 * i) + 2 * t;
    left[i] = half_pair((uint16_t)row[0], (uint16_t)row[1]);
    for (int j = 0; j < 2; j++) d[2 * i + j] = (float)c[8 * (g + 8 * i) + 2 * t + j];
  }
  mma_f16_1688(d, left, half_pair((uint16_t)b[8 * (2 * t) + g], (uint16_t)b[8 * (2 * t + 1) + g]));
  for (int i = 0; i < 4; i++) y[128 * warp + 8 * (g + 8 * (i / 2)) + 2 * t + i % 2] = (double)d[i];
}
