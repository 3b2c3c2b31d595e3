// SPDX-License-Identifier: Apache-2.0
/* Products of matrices, which aijcbgen leaves to its parent type: all kinds, with operands of ours and of PETSc's, made
 * once and with new values. */
#include "tests/petsc_support.h"

typedef PetscErrorCode product_function(Mat A, Mat B, MatReuse reuse, Mat *C);

static PetscErrorCode matmult(Mat A, Mat B, MatReuse reuse, Mat *C) {
  PetscFunctionBeginUser;
  PetscCall(MatMatMult(A, B, reuse, PETSC_DEFAULT, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode transposed(Mat A, Mat B, MatReuse reuse, Mat *C) {
  PetscFunctionBeginUser;
  PetscCall(MatTransposeMatMult(A, B, reuse, PETSC_DEFAULT, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode galerkin(Mat A, Mat P, MatReuse reuse, Mat *C) {
  PetscFunctionBeginUser;
  PetscCall(MatPtAP(A, P, reuse, PETSC_DEFAULT, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static product_function *const functions[] = {matmult, transposed, galerkin};

/* Which of the two operands are ours. */
static PetscErrorCode multiplies(product_function *product, PetscBool first, PetscBool second) {
  Mat A, B, C, ours_a, ours_b, ours_c;
  PetscFunctionBeginUser;
  PetscCall(make_matrix(&shapes[1], MATAIJ, &A));
  PetscCall(make_matrix(&shapes[1], MATAIJ, &B));
  PetscCall(make_matrix(&shapes[1], first ? "aijcbgen" : MATAIJ, &ours_a));
  PetscCall(make_matrix(&shapes[1], second ? "aijcbgen" : MATAIJ, &ours_b));
  PetscCall(product(A, B, MAT_INITIAL_MATRIX, &C));
  PetscCall(product(ours_a, ours_b, MAT_INITIAL_MATRIX, &ours_c));
  PetscCall(expect_same_products(ours_c, C, "a product"));
  /* with new values aijcusparse of PETSc 3.24 multiplies with the transposed matrix of the ones before */
  const int repeats = PetscDefined(HAVE_CUDA) && product == transposed ? 0 : 2;
  for (int again = 0; again < repeats; again++) {
    PetscCall(MatScale(A, -1.5));
    PetscCall(MatScale(ours_a, -1.5));
    PetscCall(product(A, B, MAT_REUSE_MATRIX, &C));
    PetscCall(product(ours_a, ours_b, MAT_REUSE_MATRIX, &ours_c));
    PetscCall(expect_same_products(ours_c, C, "a product, again"));
  }
  if (first && second) PetscCall(expect_type(ours_c, "seqaijcbgen", "mpiaijcbgen"));
  if (first) PetscCall(expect_type(ours_a, "seqaijcbgen", "mpiaijcbgen"));
  if (second) PetscCall(expect_type(ours_b, "seqaijcbgen", "mpiaijcbgen"));
  PetscCall(expect_same_products(ours_a, A, "the first operand"));
  PetscCall(expect_same_products(ours_b, B, "the second operand"));
  Mat all[] = {A, B, C, ours_a, ours_b, ours_c};
  for (int i = 0; i < 6; i++) PetscCall(MatDestroy(&all[i]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A dense matrix of several columns. */
static PetscErrorCode multiplies_dense(void) {
  Mat A, ours, B, C, expected;
  PetscReal distance;
  PetscFunctionBeginUser;
  PetscCall(make_matrix(&shapes[3], MATAIJ, &A));
  PetscCall(make_matrix(&shapes[3], "aijcbgen", &ours));
  PetscCall(MatCreateDense(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, shapes[3].cols, 4, NULL, &B));
  PetscCall(MatSetRandom(B, NULL));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &expected));
  PetscCall(MatMatMult(ours, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
  PetscCall(MatMatMult(ours, B, MAT_REUSE_MATRIX, PETSC_DEFAULT, &C));
  PetscCall(MatAXPY(C, -1, expected, SAME_NONZERO_PATTERN));
  PetscCall(MatNorm(C, NORM_FROBENIUS, &distance));
  EXPECT(distance < 1e-12, "the product with a dense matrix differs by %g", (double)distance);
  Mat all[] = {A, ours, B, C, expected};
  for (int i = 0; i < 5; i++) PetscCall(MatDestroy(&all[i]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Three operands; on one rank only, as PETSc has it. */
static PetscErrorCode multiplies_three(void) {
  Mat A, ours, C, expected;
  PetscMPIInt size;
  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  if (size > 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(make_matrix(&shapes[1], MATAIJ, &A));
  PetscCall(make_matrix(&shapes[1], "aijcbgen", &ours));
  PetscCall(MatRARt(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &expected));
  PetscCall(MatRARt(ours, ours, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
  PetscCall(expect_same_products(C, expected, "R A R'"));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&expected));
  PetscCall(MatMatMatMult(A, A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &expected));
  PetscCall(MatMatMatMult(ours, ours, ours, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
  PetscCall(expect_same_products(C, expected, "A A A"));
  Mat all[] = {A, ours, C, expected};
  for (int i = 0; i < 4; i++) PetscCall(MatDestroy(&all[i]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode test_products(void) {
  PetscMPIInt size;
  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  const int first = PetscDefined(HAVE_CUDA) && size > 1 ? 3 : 1; /* mpiaijcusparse and mpiaij have no product */
  for (int i = 0; i < 3; i++)
    for (int ours = first; ours < 4; ours++)
      PetscCall(multiplies(functions[i], ours & 1 ? PETSC_TRUE : PETSC_FALSE, ours & 2 ? PETSC_TRUE : PETSC_FALSE));
  PetscCall(multiplies_dense());
  PetscCall(multiplies_three());
  PetscFunctionReturn(PETSC_SUCCESS);
}
