// SPDX-License-Identifier: Apache-2.0
// What bench/solve_vendor.c needs beside cuSPARSE and cuBLAS.
#define CBGEN_KERNEL extern "C" __global__
// ---- end of the device prelude, whose names have other meanings where tests execute what follows on the host
constexpr int kThreads = 256;

// Of one thread: quotient = a / b, times a number if there is a place of one; minus that; and what a was.
CBGEN_KERNEL void ratio(const double *a, const double *b, const double *times, double *quotient, double *minus,
                        double *keep) {
  const double given = *a, value = times ? given / *b * *times : given / *b;
  *quotient = value;
  if (minus) *minus = -value;
  if (keep) *keep = given;
}

// x = damping q + what is lost, an equal share for each; `handed`: the sum of q, whose entries are not below 0.
CBGEN_KERNEL void ranks(const double *q, const double *handed, double damping, double *x, double *change, int n) {
  const int i = kThreads * blockIdx.x + threadIdx.x;
  if (i >= n) return;
  const double rank = damping * q[i] + (1 - damping * *handed) / n;
  change[i] = rank - x[i];
  x[i] = rank;
}
