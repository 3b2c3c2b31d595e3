// expect 81 time limit
constexpr int kBlocks = 1, kThreads = 32;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  const volatile double *watched = x;
  while (*watched < 1e300) y[0] = *watched;
}
