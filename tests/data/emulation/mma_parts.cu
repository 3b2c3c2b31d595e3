// x in three parts of 11 bits, and whether they are what it is.
constexpr int kBlocks = 1, kThreads = 256;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  const float value = (float)x[threadIdx.x];
  const Vector<float, 3> parts = tf32_parts(value);
  for (int i = 0; i < 3; i++) y[4 * threadIdx.x + i] = is_ordinary(value) ? (double)parts.at[i] : 0;
  y[4 * threadIdx.x + 3] = is_ordinary(value);
}
