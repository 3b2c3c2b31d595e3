// SPDX-License-Identifier: Apache-2.0
/* What PETSc's programs gain: MatMult, cg with Jacobi's preconditioner, one kernel for all of cg, and cg with GAMG, each with
 * PETSc's own matrix type (aijcusparse, or aij where PETSc has no CUDA) and with aijcbgen, in the same run.
 *
 *   bench_petsc -dll_append libcbgen_petsc.so [-products N] [-iterations N] [-gamg 0] [-symmetric 1] [-solutions 0] MATRIX…
 *   mpiexec -n 4 bench_petsc …                    one GPU for each rank; every rank reads the whole matrix
 *
 * MATRIX: a file, or generate:SHAPE. Only its pattern is used, with the transposed one added, so that all methods work on a
 * symmetric positive definite matrix: -1 beside the diagonal, and on it a thousandth more than all these are together. Times
 * are medians of 5: of N products back to back, which a norm ends, and of solutions of N and of 3 N iterations without a test
 * (KSP_NORM_NONE), from KSPSolve's beginning to the end of the device's work, over their iterations. Such systems take a
 * hundred iterations and more to 1e-8: none is timed where nothing is left to do. What a solution takes beside its iterations
 * is what the two say of 0 of them. A line says us for PETSc's type and in parentheses how many times as fast ours is; the
 * last column us beside the iterations, of PETSc's cg and of cbgencg. Behind the table stand plans, and the forms of cbgencg.
 * y and the solutions are compared; the exit status is 1 when they differ. With -symmetric 1 both types are told that the
 * matrix is (MAT_SYMMETRIC); with -solutions 0 one kernel for all of cg is left out. */
#include "analysis/plan/symmetry.h"
#include "base/memory.h"
#include "bench/petsc_common.h"
#include "frontend/read.h"

#include <petscdevice.h>

#include <math.h>

enum { REPEATS = 5, COLUMNS = 5, LONGER = 3, TEXT = 4096 };
enum { MULTIPLY, CG, ONE_KERNEL, ONE_KERNEL_LONGER, MULTIGRID };

struct bench {
  PetscInt products, iterations, gamg, symmetric, solutions;
  double logarithms[COLUMNS]; /* of the ratios */
  int counts[COLUMNS], wrong;
  char *notes; /* plans and forms, a line for each matrix */
  size_t notes_bytes;
  FILE *notes_file;
};

/* ---- matrices */

/* Rows at once, and of transposed entries those that are not there anyway. */
static PetscErrorCode add_entries(Mat A, const struct cb_csr *csr, PetscInt begin, PetscInt end) {
  const PetscScalar minus_one = -1;
  PetscInt *cols;
  PetscScalar *values;
  PetscFunctionBeginUser;
  PetscCall(PetscMalloc2(csr->cols + 1, &cols, csr->cols + 1, &values));
  for (int64_t k = 0; k < csr->cols; k++) values[k] = minus_one;
  for (PetscInt row = 0; row < (PetscInt)csr->rows; row++) {
    PetscInt count = 0;
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++) {
      const PetscInt col = csr->col_idx[k];
      if (row == col || col >= csr->rows) continue;
      cols[count++] = col;
      if (col < begin || col >= end || cb_symmetry_partner(csr, row, col) >= 0) continue;
      PetscCall(MatSetValues(A, 1, &col, 1, &row, &minus_one, INSERT_VALUES));
    }
    if (row >= begin && row < end) PetscCall(MatSetValues(A, 1, &row, count, cols, values, INSERT_VALUES));
  }
  PetscCall(PetscFree2(cols, values));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode count_entries(const struct cb_csr *csr, PetscInt begin, PetscInt end, PetscInt *counts) {
  PetscFunctionBeginUser;
  for (PetscInt row = 0; row < (PetscInt)csr->rows; row++)
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++) {
      const PetscInt col = csr->col_idx[k];
      if (row >= begin && row < end) counts[row - begin]++;
      if (col >= begin && col < end && row != col && cb_symmetry_partner(csr, row, col) < 0) counts[col - begin]++;
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode assemble(Mat A) {
  PetscFunctionBeginUser;
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* On the host, in PETSc's plain type. */
static PetscErrorCode read_matrix(const char *name, Mat *A) {
  struct cb_csr csr = {0};
  struct cb_diag diag = {0};
  PetscInt begin, end, local = PETSC_DECIDE, *counts, rows;
  PetscFunctionBeginUser;
  PetscCheck(!cb_matrix_read(&csr, name, NULL, &diag), PETSC_COMM_SELF, PETSC_ERR_FILE_READ, "%s", diag.message);
  rows = (PetscInt)csr.rows;
  PetscCall(PetscSplitOwnership(PETSC_COMM_WORLD, &local, &rows));
  PetscCallMPI(MPI_Scan(&local, &end, 1, MPIU_INT, MPI_SUM, PETSC_COMM_WORLD));
  begin = end - local;
  PetscCall(PetscCalloc1(local + 1, &counts));
  for (PetscInt i = 0; i < local; i++) counts[i] = 1;
  PetscCall(count_entries(&csr, begin, end, counts));
  for (PetscInt i = 0; i < local; i++) counts[i] = PetscMin(counts[i], rows);
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, local, local, rows, rows));
  PetscCall(MatSetType(*A, MATAIJ));
  PetscCall(MatSeqAIJSetPreallocation(*A, 0, counts));
  PetscCall(MatMPIAIJSetPreallocation(*A, 0, counts, 0, counts));
  PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  for (PetscInt row = begin; row < end; row++) PetscCall(MatSetValue(*A, row, row, 0, INSERT_VALUES));
  PetscCall(add_entries(*A, &csr, begin, end));
  PetscCall(assemble(*A));
  for (PetscInt row = begin; row < end; row++) {
    PetscInt length;
    PetscCall(MatGetRow(*A, row, &length, NULL, NULL));
    counts[row - begin] = length;
    PetscCall(MatRestoreRow(*A, row, &length, NULL, NULL));
  }
  for (PetscInt row = begin; row < end; row++)
    PetscCall(MatSetValue(*A, row, row, counts[row - begin] > 1 ? 1.001 * (counts[row - begin] - 1) : 1, INSERT_VALUES));
  PetscCall(assemble(*A));
  PetscCall(PetscFree(counts));
  cb_csr_release(&csr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- what PETSc's views say */

/* What stands between `before` and `after` in an object's view, in *found: "" where that is not in it. */
static PetscErrorCode find_in_view(char found[TEXT], Mat A, KSP ksp, const char *before, char after) {
  PetscViewer viewer;
  char *text = NULL;
  size_t bytes = 0;
  PetscFunctionBeginUser;
  FILE *const file = open_memstream(&text, &bytes);
  PetscCheck(file, PETSC_COMM_SELF, PETSC_ERR_MEM, "no memory for a view");
  PetscCall(PetscViewerASCIIOpenWithFILE(PETSC_COMM_WORLD, file, &viewer));
  PetscCall(PetscViewerPushFormat(viewer, PETSC_VIEWER_ASCII_INFO_DETAIL));
  if (A) PetscCall(MatView(A, viewer));
  if (ksp) PetscCall(KSPView(ksp, viewer));
  PetscCall(PetscViewerPopFormat(viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  fclose(file);
  const char *const at = strstr(text, before);
  const char *const begin = at ? at + strlen(before) : "";
  snprintf(found, TEXT, "%.*s", (int)strcspn(begin, (char[]){after, 0}), begin);
  free(text);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- times, in seconds */

static PetscErrorCode time_products(const struct bench *bench, Mat A, Vec x, Vec y, double *seconds) {
  double times[REPEATS];
  PetscReal norm;
  PetscFunctionBeginUser;
  PetscCall(MatMult(A, x, y));
  PetscCall(VecNorm(y, NORM_2, &norm));
  for (int i = 0; i < REPEATS; i++) {
    PetscLogDouble begin, end;
    PetscCall(PetscTime(&begin));
    for (PetscInt k = 0; k < bench->products; k++) PetscCall(MatMult(A, x, y));
    PetscCall(VecNorm(y, NORM_2, &norm));
    PetscCall(PetscTime(&end));
    times[i] = (end - begin) / (double)bench->products;
  }
  *seconds = median(times, REPEATS);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode wait_for_device(void) {
  PetscDeviceContext context;
  PetscFunctionBeginUser;
  PetscCall(PetscDeviceContextGetCurrentContext(&context));
  PetscCall(PetscDeviceContextSynchronize(context));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* `most` 0: to 1e-8; else so many iterations, of which one takes *seconds. The form of one kernel is in `form`, if that is
 * not NULL. */
static PetscErrorCode time_solution(Mat A, KSPType type, PCType preconditioner, PetscInt most, Vec b, Vec x,
                                    double *seconds, char *form) {
  double times[REPEATS];
  KSP ksp;
  PetscInt done;
  PetscFunctionBeginUser;
  PetscCall(make_solver(A, type, preconditioner, most, &ksp));
  PetscCall(KSPSolve(ksp, b, x)); /* set-up */
  for (int i = 0; i < REPEATS; i++) {
    PetscLogDouble begin, end;
    PetscCall(wait_for_device());
    PetscCall(PetscTime(&begin));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(wait_for_device());
    PetscCall(PetscTime(&end));
    PetscCall(KSPGetIterationNumber(ksp, &done));
    times[i] = (end - begin) / (double)(most ? PetscMax(done, 1) : 1);
  }
  if (form) PetscCall(find_in_view(form, NULL, ksp, "all iterations (", ')'));
  PetscCall(KSPDestroy(&ksp));
  *seconds = median(times, REPEATS);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Setting up GAMG may fail for lack of memory in cuSPARSE's product of matrices: then *seconds is 0, and that is said. */
static PetscErrorCode time_multigrid(Mat A, Vec b, Vec x, double *seconds) {
  MatType type;
  PetscFunctionBeginUser;
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  const PetscErrorCode error = time_solution(A, KSPCG, PCGAMG, 0, b, x, seconds, NULL);
  PetscCall(PetscPopErrorHandler());
  PetscCall(MatGetType(A, &type));
  if (error) *seconds = 0;
  if (error) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "cg with GAMG on %s: PETSc's error %d\n", type, (int)error));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- one matrix */

/* Solutions by one kernel, or by PETSc's cg where that is what ours is compared with. */
static PetscErrorCode measure_solutions(const struct bench *bench, Mat A, KSPType type, double seconds[COLUMNS], Vec b,
                                        Vec x, char *form) {
  const PetscInt few = bench->iterations, many = LONGER * bench->iterations;
  PetscFunctionBeginUser;
  PetscCall(time_solution(A, type, PCJACOBI, many, b, x, &seconds[ONE_KERNEL_LONGER], form));
  PetscCall(time_solution(A, type, PCJACOBI, few, b, x, &seconds[ONE_KERNEL], NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode measure(struct bench *bench, Mat A, PetscBool ours, double seconds[COLUMNS], Vec y, Vec solution) {
  char plan[TEXT], other[TEXT], form[TEXT];
  Vec x, b;
  PetscMPIInt ranks;
  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &ranks));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSetRandom(x, NULL));
  PetscCall(VecSetRandom(b, NULL));
  for (int i = 0; i < COLUMNS; i++) seconds[i] = 0;
  PetscCall(time_products(bench, A, b, x, &seconds[MULTIPLY]));
  PetscCall(VecCopy(x, y));
  form[0] = 0;
  if (ranks == 1 && bench->solutions) PetscCall(measure_solutions(bench, A, ours ? "cbgencg" : KSPCG, seconds, b, x, form));
  if (ours && ranks == 1) {
    PetscCall(find_in_view(plan, A, NULL, "cbgen: ", '\n'));
    PetscCall(find_in_view(other, A, NULL, "cbgen (solver): ", '\n'));
    fprintf(bench->notes_file, "%s; %s%s%s\n", plan, strcmp(plan, other) ? other : "", strcmp(plan, other) ? ", " : "",
            form);
  }
  PetscCall(time_solution(A, KSPCG, PCJACOBI, bench->iterations, b, x, &seconds[CG], NULL));
  PetscCall(VecCopy(x, solution));
  if (bench->gamg) PetscCall(time_multigrid(A, b, x, &seconds[MULTIGRID]));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode compare(struct bench *bench, const char *what, Vec ours, Vec petscs, PetscReal bound) {
  PetscReal distance, size;
  PetscFunctionBeginUser;
  PetscCall(VecNorm(petscs, NORM_2, &size));
  PetscCall(VecAXPY(ours, -1, petscs));
  PetscCall(VecNorm(ours, NORM_2, &distance));
  if (distance <= bound * size) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "WRONG: %s differs by %g of %g\n", what, (double)distance, (double)size));
  bench->wrong = 1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of a solution, beside its iterations. */
static double apart(const struct bench *bench, const double seconds[COLUMNS]) {
  const double few = (double)bench->iterations, many = LONGER * few;
  const double each = (many * seconds[ONE_KERNEL_LONGER] - few * seconds[ONE_KERNEL]) / (many - few);
  return few * (seconds[ONE_KERNEL] - each);
}

static PetscErrorCode print_row(struct bench *bench, const char *name, Mat A, double seconds[TYPES][COLUMNS]) {
  MatInfo info;
  PetscInt rows;
  PetscFunctionBeginUser;
  PetscCall(MatGetInfo(A, MAT_GLOBAL_SUM, &info));
  PetscCall(MatGetSize(A, &rows, NULL));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "| %s | %" PetscInt_FMT " | %.0f |", name, rows, info.nz_used));
  for (int i = 0; i < COLUMNS; i++) {
    if (!(seconds[0][i] > 0 && seconds[1][i] > 0)) {
      PetscCall(PetscPrintf(PETSC_COMM_WORLD, " - |"));
      continue;
    }
    const double ratio = seconds[0][i] / seconds[1][i];
    bench->logarithms[i] += log(ratio);
    bench->counts[i]++;
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, " %.1f us (%.2f) |", 1e6 * seconds[0][i], ratio));
  }
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, " %.0f, %.0f us |\n", 1e6 * apart(bench, seconds[0]),
                        1e6 * apart(bench, seconds[1])));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode run(struct bench *bench, const char *name) {
  double seconds[TYPES][COLUMNS];
  Mat plain;
  Vec y[TYPES], solutions[TYPES];
  PetscFunctionBeginUser;
  PetscCall(read_matrix(name, &plain));
  fprintf(bench->notes_file, "%s: ", name);
  for (int i = 0; i < TYPES; i++) {
    Mat A;
    PetscCall(MatConvert(plain, types[i], MAT_INITIAL_MATRIX, &A));
    if (bench->symmetric) PetscCall(MatSetOption(A, MAT_SYMMETRIC, PETSC_TRUE));
    PetscCall(MatCreateVecs(plain, &y[i], &solutions[i]));
    PetscCall(measure(bench, A, i ? PETSC_TRUE : PETSC_FALSE, seconds[i], y[i], solutions[i]));
    PetscCall(MatDestroy(&A));
  }
  PetscCall(print_row(bench, name, plain, seconds));
  PetscCall(compare(bench, "MatMult", y[1], y[0], 1e-13));
  PetscCall(compare(bench, "the solution by cg", solutions[1], solutions[0], 1e-6));
  for (int i = 0; i < TYPES; i++) {
    PetscCall(VecDestroy(&y[i]));
    PetscCall(VecDestroy(&solutions[i]));
  }
  PetscCall(MatDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode print_head(const struct bench *bench) {
  const int few = (int)bench->iterations, many = LONGER * few;
  PetscMPIInt ranks;
  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &ranks));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "PETSc %d.%d.%d, %s, %d ranks; in parentheses: how many times as fast aijcbgen is\n\n",
                        PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR, PETSC_VERSION_SUBMINOR, types[0], (int)ranks));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD,
                        "| matrix | rows | nonzeros | MatMult | cg, of %d | cbgencg, of %d | cbgencg, of %d | cg+gamg | beside |\n"
                        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n", few, few, many));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv) {
  struct bench bench = {.products = 200, .iterations = 200, .gamg = 1, .solutions = 1};
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-products", &bench.products, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-iterations", &bench.iterations, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-gamg", &bench.gamg, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-symmetric", &bench.symmetric, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-solutions", &bench.solutions, NULL));
  bench.notes_file = open_memstream(&bench.notes, &bench.notes_bytes);
  PetscCheck(bench.notes_file, PETSC_COMM_SELF, PETSC_ERR_MEM, "no memory for notes");
  PetscCall(print_head(&bench));
  for (int i = 1; i < argc; i++) {
    if (argv[i][0] == '-') i++; /* options have a value each */
    else PetscCall(run(&bench, argv[i]));
  }
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "| geometric mean | | |"));
  for (int i = 0; i < COLUMNS; i++)
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, " %.2f |",
                          bench.counts[i] ? exp(bench.logarithms[i] / bench.counts[i]) : 0));
  fclose(bench.notes_file);
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, " |\n\n%s", bench.notes));
  free(bench.notes);
  PetscCall(PetscFinalize());
  return bench.wrong;
}
