// SPDX-License-Identifier: Apache-2.0
/* petsc_support.h, and main: which tests are run says the first argument. */
#include "tests/petsc_support.h"

#include "tests/fake_driver.h"

#include <stdio.h>

static PetscScalar tridiagonal(PetscInt row, PetscInt col) {
  if (row == col) return 4 + 0.125 * (PetscScalar)(row % 5);
  return row - col == 1 || col - row == 1 ? -1 : 0;
}

static PetscScalar scattered(PetscInt row, PetscInt col) {
  const PetscInt mixed = (row * 7919 + col * 104729) % 1009;
  return mixed < 120 ? 0.25 * (PetscScalar)(mixed - 60) + 0.1 : 0;
}

static PetscScalar with_empty_rows(PetscInt row, PetscInt col) {
  return row % 3 == 1 ? 0 : scattered(row, col);
}

static PetscScalar one_long_row(PetscInt row, PetscInt col) {
  return row == 2 ? 1 + 0.5 * (PetscScalar)(col % 7) : row == col ? 2 : 0;
}

static PetscScalar nothing(PetscInt row, PetscInt col) {
  (void)row;
  (void)col;
  return 0;
}

const struct shape shapes[] = {
    {"one by one", 1, 1, tridiagonal},       {"tridiagonal", 61, 61, tridiagonal},
    {"scattered", 90, 90, scattered},        {"wide", 33, 70, scattered},
    {"tall", 70, 33, scattered},             {"empty rows", 64, 64, with_empty_rows},
    {"a long row", 130, 130, one_long_row}, {"no entries", 12, 12, nothing},
};
const PetscInt shapes_count = sizeof shapes / sizeof *shapes;

PetscErrorCode make_matrix(const struct shape *shape, MatType type, Mat *A) {
  PetscInt begin, end;
  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, shape->rows, shape->cols));
  PetscCall(MatSetType(*A, type));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(MatSeqAIJSetPreallocation(*A, shape->cols, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, shape->cols, NULL, shape->cols, NULL));
  PetscCall(MatGetOwnershipRange(*A, &begin, &end));
  for (PetscInt row = begin; row < end; row++)
    for (PetscInt col = 0; col < shape->cols; col++)
      if (shape->entry(row, col) != 0)
        PetscCall(MatSetValue(*A, row, col, shape->entry(row, col), INSERT_VALUES));
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode make_vector(Mat A, PetscBool of_rows, PetscInt seed, Vec *x) {
  PetscInt begin, end;
  PetscScalar *array;
  PetscFunctionBeginUser;
  if (of_rows) PetscCall(MatCreateVecs(A, NULL, x));
  else PetscCall(MatCreateVecs(A, x, NULL));
  PetscCall(VecGetOwnershipRange(*x, &begin, &end));
  PetscCall(VecGetArray(*x, &array));
  for (PetscInt i = begin; i < end; i++) array[i - begin] = (PetscScalar)((i * 37 + seed * 11) % 23 - 11) / 8;
  PetscCall(VecRestoreArray(*x, &array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode expect_same_vectors(Vec ours, Vec reference, const char *what) {
  Vec difference;
  PetscReal distance, size;
  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(reference, &difference));
  PetscCall(VecWAXPY(difference, -1, ours, reference));
  PetscCall(VecNorm(difference, NORM_INFINITY, &distance));
  PetscCall(VecNorm(reference, NORM_INFINITY, &size));
  EXPECT(distance <= 200 * PETSC_MACHINE_EPSILON * (1 + size), "%s: differs by %g", what, (double)distance);
  PetscCall(VecDestroy(&difference));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One of MatMult, MatMultAdd, …: `add` 0: none, 1: to another vector, 2: in place. */
static PetscErrorCode multiply(Mat A, PetscBool transpose, int add, Vec x, Vec y, Vec z) {
  PetscFunctionBeginUser;
  if (add == 2) PetscCall(VecCopy(y, z));
  Vec added = add == 2 ? z : y;
  if (!add && !transpose) PetscCall(MatMult(A, x, z));
  if (!add && transpose) PetscCall(MatMultTranspose(A, x, z));
  if (add && !transpose) PetscCall(MatMultAdd(A, x, added, z));
  if (add && transpose) PetscCall(MatMultTransposeAdd(A, x, added, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Vectors for `ours` are of the type that `like` makes. */
static PetscErrorCode compare_products(Mat ours, Mat reference, Mat like, const char *what) {
  PetscFunctionBeginUser;
  for (int variant = 0; variant < 6; variant++) {
    const PetscBool transpose = variant >= 3 ? PETSC_TRUE : PETSC_FALSE;
    const Mat matrices[2] = {like, reference};
    Vec x[2], y[2], z[2];
    char name[100];
    for (int i = 0; i < 2; i++) {
      PetscCall(make_vector(matrices[i], transpose, 1, &x[i]));
      PetscCall(make_vector(matrices[i], transpose ? PETSC_FALSE : PETSC_TRUE, 2, &y[i]));
      PetscCall(VecDuplicate(y[i], &z[i]));
      PetscCall(VecSet(z[i], NAN)); /* what is overwritten is not read */
      PetscCall(multiply(i ? reference : ours, transpose, variant % 3, x[i], y[i], z[i]));
    }
    PetscCall(PetscSNPrintf(name, sizeof name, "%s, product %d", what, variant));
    PetscCall(expect_same_vectors(z[0], z[1], name));
    for (int i = 0; i < 2; i++) {
      PetscCall(VecDestroy(&x[i]));
      PetscCall(VecDestroy(&y[i]));
      PetscCall(VecDestroy(&z[i]));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode expect_same_products(Mat ours, Mat reference, const char *what) {
  PetscFunctionBeginUser;
  PetscCall(compare_products(ours, reference, ours, what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode expect_same_products_on_host(Mat ours, Mat reference, const char *what) {
  PetscFunctionBeginUser;
  PetscCall(compare_products(ours, reference, reference, what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode expect_type(Mat A, MatType sequential, MatType parallel) {
  MatType type;
  PetscMPIInt size;
  PetscBool same;
  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  PetscCall(MatGetType(A, &type));
  PetscCall(PetscStrcmp(type, size == 1 ? sequential : parallel, &same));
  EXPECT(same, "the type is '%s' instead of '%s'", type, size == 1 ? sequential : parallel);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscInt counted(const char *member) {
  void *const symbol = fake_symbol("fake_get");
  long (*get)(const char *);
  if (!symbol) return -1;
  memcpy(&get, &symbol, sizeof get);
  return (PetscInt)get(member);
}

/* ---- errors that are expected */

static char raised[2000];

static PetscErrorCode keep_error(MPI_Comm comm, int line, const char *function, const char *file, PetscErrorCode code,
                                 PetscErrorType type, const char *message, void *user) {
  (void)comm, (void)line, (void)function, (void)file, (void)user;
  if (type == PETSC_ERROR_INITIAL) snprintf(raised, sizeof raised, "%s", message);
  return code;
}

void expect_errors(void) {
  *raised = 0;
  (void)PetscPushErrorHandler(keep_error, NULL);
}

const char *raised_error(void) {
  (void)PetscPopErrorHandler();
  return raised;
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    PetscErrorCode (*run)(void);
  } tests[] = {{"matrices", test_matrices}, {"products", test_products}, {"solvers", test_solvers}};
  const char *const wanted = argc > 1 ? argv[1] : "";
  PetscBool done = PETSC_FALSE, same;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
    PetscCall(PetscStrcmp(wanted, tests[i].name, &same));
    if (!same) continue;
    done = PETSC_TRUE;
    if (tests[i].run()) MPI_Abort(PETSC_COMM_WORLD, 1); /* one of PETSc's codes is ctest's for a skipped test */
  }
  EXPECT(done, "no test is called '%s'", wanted);
  PetscCall(PetscFinalize());
  static const char *const left[] = {"blocks", "contexts", "pushed", "modules", "streams", "events", "graphs",
                                     "programs", "misuses", "traps"};
  int failures = 0;
  for (size_t i = 0; i < sizeof left / sizeof *left; i++)
    if (counted(left[i]) > 0) failures += fprintf(stderr, "left on the GPU: %s %ld\n", left[i], (long)counted(left[i]));
  return failures ? 1 : 0;
}
