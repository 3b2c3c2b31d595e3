// A product that fma does not round, in both types; and one that is rounded before it is added to, in whatever way.
constexpr int kBlocks = 2, kThreads = 32;
CBGEN_KERNEL void __launch_bounds__(32) kernel(const double *x, double *y) {
  const int i = blockIdx.x * 32 + threadIdx.x;
  const double a = load(x + i) / 3, b = 1 / (3 + a * a);
  const float s = float(a), t = float(b);
  y[4 * i] = fma(a, b, -(a * b));
  y[4 * i + 1] = fma(s, t, -(s * t));
  y[4 * i + 2] = a * b - a * b;
  y[4 * i + 3] = s * t - s * t;
}
