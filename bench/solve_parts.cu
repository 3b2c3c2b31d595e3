// SPDX-License-Identifier: Apache-2.0
// Conjugate gradients around a product, one kernel after the other, as an application would write them: what
// bench/solve.c compares solvers with. Scalars stay on the device; sums of thread blocks are joined by whoever needs
// them, in a fixed order. 256 threads; `blocks` thread blocks.
constexpr int kThreads = 256;

static __device__ double of_block(double value) {
  __shared__ double warps[kThreads / 32];
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  __syncthreads();
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  double all = 0;
  for (int i = 0; i < kThreads / 32; i++) all += warps[i];
  return all;
}

static __device__ double of_partials(const double *partials, int blocks) {
  double value = 0;
  for (int i = threadIdx.x; i < blocks; i += kThreads) value += partials[i];
  return of_block(value);
}

// r = b - q, p = d r; partials of r·p.
extern "C" __global__ void begin(const double *b, const double *q, const double *d, double *r, double *p, double *partials,
                                 double *scalars, int n) {
  double rz = 0;
  for (int i = kThreads * blockIdx.x + threadIdx.x; i < n; i += kThreads * gridDim.x) {
    r[i] = b[i] - q[i];
    p[i] = d[i] * r[i];
    rz += r[i] * p[i];
  }
  rz = of_block(rz);
  if (threadIdx.x == 0) partials[blockIdx.x] = rz;
}

// scalars[0] = r·z at the beginning.
extern "C" __global__ void first(const double *partials, double *scalars, int blocks) {
  const double rz = of_partials(partials, blocks);
  if (threadIdx.x == 0) scalars[0] = rz;
}

// Partials of p·q.
extern "C" __global__ void dot(const double *p, const double *q, double *partials, int n) {
  double pq = 0;
  for (int i = kThreads * blockIdx.x + threadIdx.x; i < n; i += kThreads * gridDim.x) pq += p[i] * q[i];
  pq = of_block(pq);
  if (threadIdx.x == 0) partials[blockIdx.x] = pq;
}

// x += alpha p, r -= alpha q; partials of r·(d r).
extern "C" __global__ void step(double *x, double *r, const double *p, const double *q, const double *d,
                                const double *pq_partials, double *partials, const double *scalars, int parity, int n) {
  const double alpha = scalars[parity] / of_partials(pq_partials, gridDim.x);
  double rz = 0;
  for (int i = kThreads * blockIdx.x + threadIdx.x; i < n; i += kThreads * gridDim.x) {
    x[i] += alpha * p[i];
    const double left = r[i] - alpha * q[i];
    r[i] = left;
    rz += left * left * d[i];
  }
  rz = of_block(rz);
  if (threadIdx.x == 0) partials[blockIdx.x] = rz;
}

// p = d r + beta p.
extern "C" __global__ void direction(double *p, const double *r, const double *d, const double *partials, double *scalars,
                                     int parity, int n) {
  const double rz = of_partials(partials, gridDim.x), beta = rz / scalars[parity];
  for (int i = kThreads * blockIdx.x + threadIdx.x; i < n; i += kThreads * gridDim.x) p[i] = d[i] * r[i] + beta * p[i];
  if (blockIdx.x == 0 && threadIdx.x == 0) scalars[1 - parity] = rz;
}
