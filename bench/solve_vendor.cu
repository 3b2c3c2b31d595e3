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

// What gmres knows of its basis of `restart` + 1 vectors: room for an answer, columns of what the products were made of, by
// restart + 1 numbers, which rotations make a triangle; the rotations; and what they make of the right side.
struct Small {
  double *answer, *columns, *cosines, *sines, *right;
};

__device__ Small parts_of(double *small, int restart) {
  double *const columns = small + restart, *const cosines = columns + (restart + 1) * restart;
  return {small, columns, cosines, cosines + restart, cosines + 2 * restart};
}

// A new basis begins with a vector whose square is known.
CBGEN_KERNEL void first(double *small, const double *square, double *inverse, int, int restart) {
  const double length = sqrt(*square);
  parts_of(small, restart).right[0] = length;
  *inverse = 1 / length;
}

// One vector more, whose square is known before it has length 1; the residual's square stands there then.
CBGEN_KERNEL void grow(double *small, double *square, double *inverse, int column, int restart) {
  const Small of = parts_of(small, restart);
  double *const entries = of.columns + column * (restart + 1);
  const double length = sqrt(*square);
  for (int i = 0; i < column; i++) {
    const double upper = entries[i], lower = entries[i + 1];
    entries[i] = of.cosines[i] * upper + of.sines[i] * lower;
    entries[i + 1] = of.cosines[i] * lower - of.sines[i] * upper;
  }
  const double whole = sqrt(entries[column] * entries[column] + length * length);
  of.cosines[column] = entries[column] / whole;
  of.sines[column] = length / whole;
  entries[column] = whole;
  of.right[column + 1] = -of.sines[column] * of.right[column];
  of.right[column] *= of.cosines[column];
  *square = of.right[column + 1] * of.right[column + 1];
  *inverse = 1 / length;
}

// The vectors' shares of the solution.
CBGEN_KERNEL void combine(double *small, const double *, double *, int columns, int restart) {
  const Small of = parts_of(small, restart);
  for (int i = columns - 1; i >= 0; i--) {
    double left = of.right[i];
    for (int j = i + 1; j < columns; j++) left -= of.columns[j * (restart + 1) + i] * of.answer[j];
    of.answer[i] = left / of.columns[i * (restart + 1) + i];
  }
}
