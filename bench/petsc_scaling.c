// SPDX-License-Identifier: Apache-2.0
/* PETSc's cg on several GPUs, one for each rank, with PETSc's own matrix type and with aijcbgen in the same run.
 *
 *   mpiexec -n N bench_petsc_scaling -dll_append libcbgen_petsc.so [-weak n] [-strong n] [-points 7|27] …
 *
 * -weak n: n^3 points for each rank, in slabs one upon the other; -strong n: n^3 points in all. Each rank makes its own
 * rows: -1 beside the diagonal, and on it the number of points (6 or 26 neighbours, of which some are missing at the
 * border). Times are medians of 3, the slowest rank's, in us: of a product and an iteration of cg with Jacobi's
 * preconditioner (-products, -iterations: how many back to back), and of a product's parts alone: the rank's own block,
 * the other one, the exchange of halo values, and all parts one after the other. What the product takes less than that
 * is what runs side by side. With -overlap 1 a third line is aijcbgen with -mat_cbgen_overlap 0. y is checked exactly,
 * and the solutions are compared; the exit status is 1 when they are wrong. */
#include "bench/petsc_common.h"

enum { REPEATS = 3, RUNS = TYPES + 1 };
static const char *const run_names[RUNS] = {PETSCS_TYPE, "aijcbgen", "aijcbgen, no overlap"};

struct bench {
  PetscInt products, iterations, points, overlap;
  PetscMPIInt ranks;
  int wrong;
};

/* Points (i, j, k) with k the slowest, and k of this rank from begin to end. */
struct grid {
  PetscInt nx, ny, nz, begin, end;
};

static struct grid make_grid(PetscInt nx, PetscInt nz) {
  struct grid grid = {.nx = nx, .ny = nx, .nz = nz};
  PetscMPIInt rank, ranks;
  (void)MPI_Comm_rank(PETSC_COMM_WORLD, &rank);
  (void)MPI_Comm_size(PETSC_COMM_WORLD, &ranks);
  grid.begin = (PetscInt)((PetscInt64)nz * rank / ranks);
  grid.end = (PetscInt)((PetscInt64)nz * (rank + 1) / ranks);
  return grid;
}

/* ---- the matrix */

/* Columns of a row in ascending order; returns how many. */
static PetscInt columns_of(const struct grid *g, PetscInt points, PetscInt i, PetscInt j, PetscInt k,
                           PetscInt *columns) {
  PetscInt count = 0;
  for (PetscInt dk = -1; dk <= 1; dk++)
    for (PetscInt dj = -1; dj <= 1; dj++)
      for (PetscInt di = -1; di <= 1; di++) {
        if (points == 7 && PetscAbsInt(di) + PetscAbsInt(dj) + PetscAbsInt(dk) > 1) continue;
        const PetscInt x = i + di, y = j + dj, z = k + dk;
        if (x < 0 || x >= g->nx || y < 0 || y >= g->ny || z < 0 || z >= g->nz) continue;
        columns[count++] = (z * g->ny + y) * g->nx + x;
      }
  return count;
}

struct rows {
  PetscInt count, *starts, *columns;
  PetscScalar *values;
};

static PetscErrorCode make_rows(const struct grid *g, PetscInt points, struct rows *rows) {
  PetscInt row = 0, at = 0;
  PetscFunctionBeginUser;
  rows->count = (g->end - g->begin) * g->ny * g->nx;
  PetscCall(PetscMalloc3(rows->count + 1, &rows->starts, rows->count * points, &rows->columns, rows->count * points,
                         &rows->values));
  rows->starts[0] = 0;
  for (PetscInt k = g->begin; k < g->end; k++)
    for (PetscInt j = 0; j < g->ny; j++)
      for (PetscInt i = 0; i < g->nx; i++) {
        const PetscInt own = (k * g->ny + j) * g->nx + i, end = at + columns_of(g, points, i, j, k, rows->columns + at);
        for (; at < end; at++) rows->values[at] = rows->columns[at] == own ? (PetscScalar)(points - 1) : -1;
        rows->starts[++row] = at;
      }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode make_matrix(const struct grid *g, PetscInt points, Mat *A) {
  struct rows rows;
  const PetscInt all = g->nx * g->ny * g->nz;
  PetscFunctionBeginUser;
  PetscCall(make_rows(g, points, &rows));
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, rows.count, rows.count, all, all));
  PetscCall(MatSetType(*A, PETSCS_TYPE));
  PetscCall(MatSeqAIJSetPreallocationCSR(*A, rows.starts, rows.columns, rows.values));
  PetscCall(MatMPIAIJSetPreallocationCSR(*A, rows.starts, rows.columns, rows.values));
  PetscCall(PetscFree3(rows.starts, rows.columns, rows.values));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- times, in seconds: one act is what is repeated */

struct parts {
  Mat all, own, halo;
  Vec x, y, x_own, y_own, x_halo;
  VecScatter exchange;
};

static PetscErrorCode multiply(const struct parts *p) {
  PetscFunctionBeginUser;
  PetscCall(MatMult(p->all, p->x, p->y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode multiply_own(const struct parts *p) {
  PetscFunctionBeginUser;
  PetscCall(MatMult(p->own, p->x_own, p->y_own));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode exchange(const struct parts *p) {
  PetscFunctionBeginUser;
  PetscCall(VecScatterBegin(p->exchange, p->x, p->x_halo, INSERT_VALUES, SCATTER_FORWARD));
  PetscCall(VecScatterEnd(p->exchange, p->x, p->x_halo, INSERT_VALUES, SCATTER_FORWARD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode multiply_halo(const struct parts *p) {
  PetscFunctionBeginUser;
  PetscCall(MatMultAdd(p->halo, p->x_halo, p->y_own, p->y_own));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode one_after_the_other(const struct parts *p) {
  PetscFunctionBeginUser;
  PetscCall(exchange(p));
  PetscCall(multiply_own(p));
  PetscCall(multiply_halo(p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The clock of a rank whose GPU is idle: vectors' norms wait for it. */
static PetscErrorCode read_clock(const struct parts *p, PetscLogDouble *now) {
  PetscReal norm;
  PetscFunctionBeginUser;
  PetscCall(VecNorm(p->y, NORM_2, &norm));
  if (p->y_own) PetscCall(VecNorm(p->y_own, NORM_2, &norm));
  if (p->x_halo) PetscCall(VecNorm(p->x_halo, NORM_2, &norm));
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  PetscCall(PetscTime(now));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode time_act(const struct parts *p, PetscErrorCode (*act)(const struct parts *), PetscInt times,
                               double *seconds) {
  double each[REPEATS];
  PetscLogDouble begin, end;
  PetscFunctionBeginUser;
  for (PetscInt k = 0; k < 3; k++) PetscCall(act(p));
  for (int i = 0; i < REPEATS; i++) {
    PetscCall(read_clock(p, &begin));
    for (PetscInt k = 0; k < times; k++) PetscCall(act(p));
    PetscCall(read_clock(p, &end));
    each[i] = (end - begin) / (double)times;
  }
  *seconds = median(each, REPEATS);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode time_cg(const struct parts *p, Vec b, Vec x, PetscInt iterations, double *seconds) {
  double each[REPEATS];
  KSP ksp;
  PetscFunctionBeginUser;
  PetscCall(make_solver(p->all, KSPCG, PCJACOBI, iterations, &ksp));
  PetscCall(KSPSolve(ksp, b, x)); /* set-up */
  for (int i = 0; i < REPEATS; i++) {
    PetscLogDouble begin, end;
    PetscCall(read_clock(p, &begin));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(read_clock(p, &end));
    each[i] = (end - begin) / (double)iterations;
  }
  PetscCall(KSPDestroy(&ksp));
  *seconds = median(each, REPEATS);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- a product's parts */

static PetscErrorCode open_parts(Mat A, const struct bench *bench, struct parts *p) {
  const PetscInt *global;
  PetscInt count;
  IS is;
  PetscFunctionBeginUser;
  *p = (struct parts){.all = A};
  PetscCall(MatCreateVecs(A, &p->x, &p->y));
  if (bench->ranks == 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJGetSeqAIJ(A, &p->own, &p->halo, &global));
  PetscCall(MatCreateVecs(p->own, &p->x_own, &p->y_own));
  PetscCall(MatCreateVecs(p->halo, &p->x_halo, NULL));
  PetscCall(VecSet(p->x_own, 1));
  PetscCall(VecGetSize(p->x_halo, &count));
  PetscCall(ISCreateGeneral(PETSC_COMM_SELF, count, global, PETSC_USE_POINTER, &is));
  PetscCall(VecScatterCreate(p->x, is, p->x_halo, NULL, &p->exchange));
  PetscCall(ISDestroy(&is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode close_parts(struct parts *p) {
  PetscFunctionBeginUser;
  PetscCall(VecScatterDestroy(&p->exchange));
  Vec *const vectors[] = {&p->x, &p->y, &p->x_own, &p->y_own, &p->x_halo};
  for (size_t i = 0; i < PETSC_STATIC_ARRAY_LENGTH(vectors); i++) PetscCall(VecDestroy(vectors[i]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- right or wrong */

static PetscErrorCode complain(struct bench *bench, PetscReal distance, PetscReal bound, const char *what, int run) {
  PetscFunctionBeginUser;
  if (distance <= bound) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "WRONG: %s with %s: off by %g\n", what, run_names[run], (double)distance));
  bench->wrong = 1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All numbers are whole, so that y of an x of small whole numbers is exact in any order of sums. */
static PetscErrorCode check_product(struct bench *bench, const struct grid *g, const struct parts *p, int run) {
  PetscScalar *array;
  const PetscScalar *result;
  PetscInt row = 0, columns[27];
  PetscReal worst = 0, of_all;
  PetscFunctionBeginUser;
  PetscCall(VecGetArrayWrite(p->x, &array));
  const PetscInt begin = g->begin * g->ny * g->nx, end = g->end * g->ny * g->nx;
  for (PetscInt i = begin; i < end; i++) array[i - begin] = (PetscScalar)(i % 101);
  PetscCall(VecRestoreArrayWrite(p->x, &array));
  PetscCall(MatMult(p->all, p->x, p->y));
  PetscCall(VecGetArrayRead(p->y, &result));
  for (PetscInt k = g->begin; k < g->end; k++)
    for (PetscInt j = 0; j < g->ny; j++)
      for (PetscInt i = 0; i < g->nx; i++, row++) {
        const PetscInt count = columns_of(g, bench->points, i, j, k, columns);
        PetscReal expected = (PetscReal)bench->points * (PetscReal)((row + begin) % 101);
        for (PetscInt c = 0; c < count; c++) expected -= (PetscReal)(columns[c] % 101);
        worst = PetscMax(worst, PetscAbsReal(PetscRealPart(result[row]) - expected));
      }
  PetscCall(VecRestoreArrayRead(p->y, &result));
  PetscCallMPI(MPI_Allreduce(&worst, &of_all, 1, MPIU_REAL, MPIU_MAX, PETSC_COMM_WORLD));
  PetscCall(complain(bench, of_all, 0, "the product", run));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode compare(struct bench *bench, Vec ours, Vec petscs, int run) {
  PetscReal distance, size;
  PetscFunctionBeginUser;
  PetscCall(VecNorm(petscs, NORM_2, &size));
  PetscCall(VecAXPY(ours, -1, petscs));
  PetscCall(VecNorm(ours, NORM_2, &distance));
  PetscCall(complain(bench, distance / size, 1e-6, "the solution by cg", run));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- a grid */

static PetscErrorCode measure(struct bench *bench, const struct grid *g, Mat A, const char *name, int run,
                              Vec *solution) {
  double product = 0, own = 0, other = 0, halo = 0, in_turn = 0, iteration = 0;
  struct parts parts;
  MatInfo info;
  Vec b;
  PetscFunctionBeginUser;
  PetscCall(open_parts(A, bench, &parts));
  PetscCall(check_product(bench, g, &parts, run));
  PetscCall(time_act(&parts, multiply, bench->products, &product));
  if (bench->ranks > 1) {
    PetscCall(time_act(&parts, multiply_own, bench->products, &own));
    PetscCall(time_act(&parts, multiply_halo, bench->products, &other));
    PetscCall(time_act(&parts, exchange, bench->products, &halo));
    PetscCall(time_act(&parts, one_after_the_other, bench->products, &in_turn));
  }
  PetscCall(VecDuplicate(parts.x, solution));
  PetscCall(VecDuplicate(parts.x, &b));
  PetscCall(VecSet(b, 1));
  PetscCall(time_cg(&parts, b, *solution, bench->iterations, &iteration));
  PetscCall(VecDestroy(&b));
  PetscCall(close_parts(&parts));
  PetscCall(MatGetInfo(A, MAT_GLOBAL_SUM, &info));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "| %s | %s | %d | %.1f M | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f |\n", name,
                        run_names[run], (int)bench->ranks, 1e-6 * info.nz_used / bench->ranks, 1e6 * product, 1e6 * own,
                        1e6 * other, 1e6 * halo, 1e6 * in_turn, 1e6 * iteration));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A of PETSc's type becomes one of ours, and then one whose product has its parts one after the other. */
static PetscErrorCode change(Mat *A, int run) {
  PetscFunctionBeginUser;
  if (run == 1) PetscCall(MatConvert(*A, types[1], MAT_INPLACE_MATRIX, A));
  if (run == 2) PetscCall(PetscOptionsSetValue(NULL, "-mat_cbgen_overlap", "0"));
  if (run == 2) PetscCall(MatSetFromOptions(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode run_all(struct bench *bench, const char *kind, PetscInt n, PetscInt nz) {
  const struct grid grid = make_grid(n, nz);
  const int runs = bench->overlap && bench->ranks > 1 ? RUNS : TYPES;
  char name[80];
  Mat A;
  Vec solutions[RUNS];
  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(name, sizeof name, "%s, %d points, n=%d", kind, (int)bench->points, (int)n));
  PetscCall(make_matrix(&grid, bench->points, &A));
  for (int i = 0; i < runs; i++) {
    PetscCall(change(&A, i));
    PetscCall(measure(bench, &grid, A, name, i, &solutions[i]));
    if (i) PetscCall(compare(bench, solutions[i], solutions[0], i));
  }
  if (runs == RUNS) PetscCall(PetscOptionsClearValue(NULL, "-mat_cbgen_overlap"));
  for (int i = 0; i < runs; i++) PetscCall(VecDestroy(&solutions[i]));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv) {
  struct bench bench = {.products = 100, .iterations = 100, .points = 7};
  PetscInt weak = 0, strong = 0;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-products", &bench.products, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-iterations", &bench.iterations, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-points", &bench.points, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-overlap", &bench.overlap, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-weak", &weak, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-strong", &strong, NULL));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &bench.ranks));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "| matrix | type | GPUs | nonzeros each | product | own block | other block |"
                                          " exchange | one after the other | cg/iteration |\n"
                                          "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"));
  if (weak) PetscCall(run_all(&bench, "weak", weak, weak * bench.ranks));
  if (strong) PetscCall(run_all(&bench, "strong", strong, strong));
  PetscCall(PetscFinalize());
  return bench.wrong;
}
