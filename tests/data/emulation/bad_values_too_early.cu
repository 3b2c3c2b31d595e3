// The kernel before this one may still be writing what is handed on behind the wait for it: values.
// expect 75 line 5 reads an input before wait_for_previous
constexpr int kBlocks = 2, kThreads = 32;
CBGEN_KERNEL void kernel(const double *x, double *y) {
  const double early = load(x + threadIdx.x);
  wait_behind(int(threadIdx.x));
  const double *const values = after_wait(x);
  y[threadIdx.x] = load(values + threadIdx.x) + early;
}
