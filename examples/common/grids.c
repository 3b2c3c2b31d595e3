/* SPDX-License-Identifier: Apache-2.0 */
/* Two families of matrices on a grid, row by row: linear elasticity by trilinear finite elements, and flow
 * between cells by finite volumes. Materials vary from place to place, by a hash of the place. */
#include "common.h"

#include <stdlib.h>

/* Somewhere in [least, least + 1), and always the same for the same place. */
static double vary(double least, int i, int j, int k) {
  uint32_t hash = (uint32_t)i * 73856093u ^ (uint32_t)j * 19349663u ^ (uint32_t)k * 83492791u;
  hash = (hash ^ hash >> 15) * 0x2c1b3c6du;
  hash = (hash ^ hash >> 12) * 0x297a2d39u;
  return least + (double)(hash ^ hash >> 15) / 4294967296.0;
}

/* ---- elasticity */

/* The stiffness of a unit cube, 8 nodes with 3 displacements each, Poisson's ratio 0.3, integrated at 2x2x2
 * Gauss points. Node a lies at (a & 1, a >> 1 & 1, a >> 2). */
static void make_cube(double cube[24][24]) {
  const double lambda = 0.3 / (1.3 * 0.4), mu = 1 / 2.6,
               gauss[2] = {0.21132486540518712, 0.78867513459481288};
  for (int point = 0; point < 8; point++) {
    double slope[8][3];
    for (int a = 0; a < 8; a++)
      for (int d = 0; d < 3; d++) {
        slope[a][d] = 1;
        for (int e = 0; e < 3; e++) {
          const double at = gauss[point >> e & 1];
          const int far = a >> e & 1;
          slope[a][d] *= e == d ? (far ? 1 : -1) : (far ? at : 1 - at);
        }
      }
    for (int row = 0; row < 24; row++)
      for (int col = 0; col < 24; col++) {
        const double *a = slope[row / 3], *b = slope[col / 3];
        const int i = row % 3, j = col % 3;
        const double dot = a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
        cube[row][col] += (lambda * a[i] * b[j] + mu * (a[j] * b[i] + (i == j ? dot : 0))) / 8;
      }
  }
}

/* Adds to block[3][3] what the cubes that hold both nodes give. Cube (i, j, k) lies before node (i, j, k) in
 * x, where the clamped nodes of the wall precede node 0, and after it in y and z. */
static void add_cubes(double block[3][3], double cube[24][24], int n, const int *node, const int *other) {
  for (int corner = 0; corner < 8; corner++) { /* of the cube, where `node` lies */
    const int i = node[0] + 1 - (corner & 1), j = node[1] - (corner >> 1 & 1), k = node[2] - (corner >> 2);
    const int x = other[0] + 1 - i, y = other[1] - j, z = other[2] - k;
    if (i < 0 || i >= n || j < 0 || j >= n - 1 || k < 0 || k >= n - 1) continue;
    if (x < 0 || x > 1 || y < 0 || y > 1 || z < 0 || z > 1) continue;
    const double stiffness = vary(0.5, i, j, k);
    for (int row = 0; row < 3; row++)
      for (int col = 0; col < 3; col++)
        block[row][col] += stiffness * cube[3 * corner + row][3 * (x + 2 * y + 4 * z) + col];
  }
}

/* Nodes n x n x n; a layer of nodes before the first in x is clamped and takes no part. */
void make_elasticity(struct matrix *matrix, int n) {
  double cube[24][24] = {{0}};
  make_cube(cube);
  if (n < 2) fail("elasticity takes at least 2 nodes along an edge");
  const int64_t pairs = (int64_t)(3 * n - 2) * (3 * n - 2) * (3 * n - 2); /* of nodes that share a cube */
  allocate_matrix(matrix, (int64_t)3 * n * n * n, (int64_t)3 * n * n * n, 9 * pairs);
  int32_t used = 0;
  for (int64_t at = 0; at < (int64_t)n * n * n; at++) {
    const int node[3] = {(int)(at % n), (int)(at / n % n), (int)(at / n / n)};
    int32_t col[27], neighbours = 0;
    double block[27][3][3] = {{{0}}};
    for (int near = 0; near < 27; near++) {
      const int other[3] = {node[0] + near % 3 - 1, node[1] + near / 3 % 3 - 1, node[2] + near / 9 - 1};
      if (other[0] < 0 || other[0] >= n || other[1] < 0 || other[1] >= n || other[2] < 0 || other[2] >= n)
        continue;
      add_cubes(block[neighbours], cube, n, node, other);
      col[neighbours++] = 3 * (other[0] + n * (other[1] + n * other[2]));
    }
    for (int row = 0; row < 3; row++) {
      for (int i = 0; i < 3 * neighbours; i++) {
        matrix->col_idx[used] = col[i / 3] + i % 3;
        matrix->values[used++] = block[i / 3][row][i % 3];
      }
      matrix->row_ptr[3 * at + row + 1] = used;
    }
  }
}

/* ---- cells */

/* What flows between a cell and its neighbour in direction d: the same from either side. */
static double conductance(const int *cell, int d, int step) {
  const int lower[3] = {cell[0] - (d == 0 && step < 0), cell[1] - (d == 1 && step < 0),
                        cell[2] - (d == 2 && step < 0)};
  return vary(0.5, lower[0] + 7 * d, lower[1], lower[2]);
}

/* Without wind walls are closed: what leaves a cell arrives in another, and rows and columns sum to 0. With
 * wind, carried from the upwind side and strongest along x, walls are open. */
void make_cells(struct matrix *matrix, int n, double wind) {
  const int64_t cells = (int64_t)n * n * n, stride[3] = {1, n, (int64_t)n * n};
  allocate_matrix(matrix, cells, cells, 7 * cells - 6 * stride[2]);
  int32_t used = 0;
  for (int64_t at = 0; at < cells; at++) {
    const int cell[3] = {(int)(at % n), (int)(at / n % n), (int)(at / n / n)};
    double flow[7] = {0}; /* to z-, y-, x-, the cell itself, x+, y+, z+: in the order of columns */
    for (int d = 0; d < 3; d++)
      for (int step = -1; step <= 1; step += 2) {
        const int inside = cell[d] + step >= 0 && cell[d] + step < n;
        const double carried = wind / n / (1 + d),
                     out = conductance(cell, d, step) + (step > 0 ? carried : 0);
        if (inside) flow[3 + step * (d + 1)] = -conductance(cell, d, step) - (step < 0 ? carried : 0);
        if (inside || wind > 0) flow[3] += out;
      }
    for (int i = 0; i < 7; i++) {
      const int d = abs(i - 3) - 1,
                there = i == 3 || (cell[d] + (i < 3 ? -1 : 1) >= 0 && cell[d] + (i < 3 ? -1 : 1) < n);
      if (!there) continue;
      matrix->col_idx[used] = (int32_t)(i == 3 ? at : at + (i < 3 ? -1 : 1) * stride[d]);
      matrix->values[used++] = flow[i];
    }
    matrix->row_ptr[at + 1] = used;
  }
}
