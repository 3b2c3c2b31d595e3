// Half of a word of 8 bytes is stored, the other half read through the cache; more words than find room at first.
constexpr int kBlocks = 700, kThreads = 1;
CBGEN_KERNEL void kernel(const double *, double *y, double *carry, unsigned *) {
  wait_for_previous();
  unsigned *const halves = (unsigned *)carry + 2 * blockIdx.x;
  halves[1] = 3 * blockIdx.x + 1;
  store_l2(halves, 0u);
  y[blockIdx.x] = load(halves + 1);
}
