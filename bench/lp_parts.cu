// SPDX-License-Identifier: Apache-2.0
// What an iteration of primal-dual hybrid gradient does around its two products, as an application would write it: one
// kernel for x and one for y. bench/lp_vendor.c compares cbgen_lp_solve with it. A thread has one entry; `k` counts the
// iterations. Each kernel leaves the counter to the other one, so that nobody reads what another thread block changes.
#define CBGEN_KERNEL extern "C" __global__
// ---- end of the device prelude, whose names have other meanings where tests execute what follows on the host
constexpr int kThreads = 256;

// x̂ = x - tau (cost - g), moved into its bounds; ahead = 2 x̂ - x; x = far ahead + (1 - far) anchor.
CBGEN_KERNEL void columns(const double *g, const double *cost, const double *lower, const double *upper,
                          const double *anchor, double *x, double *ahead, const int *k, int *next, double tau, int n) {
  const int i = kThreads * blockIdx.x + threadIdx.x;
  const double far = (*k + 1.0) / (*k + 2.0);
  if (i == 0) *next = *k;
  if (i >= n) return;
  const double now = x[i], free = now - tau * (cost[i] - g[i]), low = lower[i], up = upper[i];
  const double hat = free < low ? low : free > up ? up : free, over = 2 * hat - now, from = anchor[i];
  ahead[i] = over;
  x[i] = from + far * (over - from);
}

// ŷ = y - sigma q, moved by the bounds of rows; y = far (2 ŷ - y) + (1 - far) anchor.
CBGEN_KERNEL void rows(const double *q, const double *row_lower, const double *row_upper, const double *anchor, double *y,
                       const int *k, int *next, double sigma, int n) {
  const int i = kThreads * blockIdx.x + threadIdx.x;
  const double far = (*k + 1.0) / (*k + 2.0);
  if (i == 0) *next = *k + 1;
  if (i >= n) return;
  const double now = y[i], free = now - sigma * q[i];
  const double up = free + sigma * row_lower[i], down = free + sigma * row_upper[i];
  const double hat = up > 0 ? up : down < 0 ? down : 0, over = 2 * hat - now, from = anchor[i];
  y[i] = from + far * (over - from);
}
