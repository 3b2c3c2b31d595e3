// SPDX-License-Identifier: Apache-2.0
/* aijcbgen beside aij: products of all shapes, values and patterns that change, copies, conversions, options. */
#include "tests/petsc_support.h"

#include <string.h>

static const struct shape *const square = &shapes[1];

static PetscErrorCode multiplies_all_shapes(void) {
  PetscFunctionBeginUser;
  for (PetscInt i = 0; i < shapes_count; i++) {
    Mat ours, reference;
    PetscCall(make_matrix(&shapes[i], MATAIJ, &reference));
    PetscCall(make_matrix(&shapes[i], "aijcbgen", &ours));
    PetscCall(expect_type(ours, "seqaijcbgen", "mpiaijcbgen"));
    PetscCall(expect_same_products(ours, reference, shapes[i].name));
    if (PetscDefined(HAVE_CUDA)) PetscCall(expect_same_products_on_host(ours, reference, shapes[i].name));
    if (shapes[i].rows == shapes[i].cols) {
      Vec diagonal, expected;
      PetscCall(make_vector(reference, PETSC_TRUE, 1, &diagonal));
      PetscCall(VecDuplicate(diagonal, &expected));
      PetscCall(MatGetDiagonal(ours, diagonal));
      PetscCall(MatGetDiagonal(reference, expected));
      PetscCall(expect_same_vectors(diagonal, expected, "the diagonal"));
      PetscCall(VecDestroy(&diagonal));
      PetscCall(VecDestroy(&expected));
    }
    PetscCall(MatDestroy(&ours));
    PetscCall(MatDestroy(&reference));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- new values */

static PetscErrorCode set_diagonal(Mat A, PetscScalar value) {
  PetscInt begin, end;
  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &begin, &end));
  for (PetscInt row = begin; row < end; row++) PetscCall(MatSetValue(A, row, row, value + row, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode change_values(Mat A, int how) {
  Vec left, right;
  PetscFunctionBeginUser;
  PetscCall(make_vector(A, PETSC_TRUE, 5, &left));
  PetscCall(make_vector(A, PETSC_FALSE, 6, &right));
  if (how == 0) PetscCall(set_diagonal(A, 7));
  if (how == 1) PetscCall(MatScale(A, -0.5));
  if (how == 2) PetscCall(MatDiagonalScale(A, left, right));
  if (how == 3) PetscCall(MatShift(A, 3));
  if (how == 4) PetscCall(MatZeroEntries(A));
  if (how == 5) PetscCall(set_diagonal(A, -2));
  if (how == 6) PetscCall(MatDiagonalSet(A, left, ADD_VALUES));
  PetscCall(VecDestroy(&left));
  PetscCall(VecDestroy(&right));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode follows_new_values(void) {
  Mat ours, reference, other, reference_other;
  PetscFunctionBeginUser;
  PetscCall(make_matrix(square, MATAIJ, &reference));
  PetscCall(make_matrix(square, "aijcbgen", &ours));
  PetscCall(expect_same_products(ours, reference, "before"));
  PetscCall(MatDuplicate(ours, MAT_COPY_VALUES, &other));
  PetscCall(MatDuplicate(reference, MAT_COPY_VALUES, &reference_other));
  PetscInt compilations = 0, allocations = 0;
  for (int how = 0; how < 7; how++) {
    if (how == 1) { /* the first renewal may take a buffer */
      compilations = counted("compilations");
      allocations = counted("allocations");
    }
    PetscCall(change_values(ours, how));
    PetscCall(change_values(reference, how));
    PetscCall(expect_same_products(ours, reference, "new values"));
    if (PetscDefined(HAVE_CUDA)) PetscCall(expect_same_products_on_host(ours, reference, "new values"));
  }
  PetscCall(MatAXPY(ours, 2, other, SAME_NONZERO_PATTERN));
  PetscCall(MatAXPY(reference, 2, reference_other, SAME_NONZERO_PATTERN));
  PetscCall(expect_same_products(ours, reference, "MatAXPY"));
  EXPECT(counted("compilations") == compilations && counted("allocations") == allocations,
         "new values made new operators");
  PetscCall(MatDestroy(&other));
  PetscCall(MatDestroy(&reference_other));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&reference));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscScalar every_seventh(PetscInt row, PetscInt col) {
  return (row + 2 * col) % 7 ? 0 : 1.5 + (PetscScalar)(row % 4);
}

static const struct shape other = {"every seventh", 61, 61, every_seventh};

/* An entry in a corner, which the pattern does not have: on two ranks one of another rank's column. */
static PetscErrorCode add_corner(Mat A) {
  PetscInt begin, end;
  PetscFunctionBeginUser;
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatGetOwnershipRange(A, &begin, &end));
  if (!begin && end) PetscCall(MatSetValue(A, 0, square->cols - 1, 9, ADD_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode follows_a_new_pattern(void) {
  Mat ours, reference, wider, reference_wider;
  PetscFunctionBeginUser;
  PetscCall(make_matrix(square, MATAIJ, &reference));
  PetscCall(make_matrix(square, "aijcbgen", &ours));
  PetscCall(expect_same_products(ours, reference, "before"));
  PetscCall(add_corner(ours));
  PetscCall(add_corner(reference));
  PetscCall(expect_same_products(ours, reference, "a new entry"));
  PetscCall(make_matrix(&other, MATAIJ, &reference_wider));
  PetscCall(make_matrix(&other, "aijcbgen", &wider));
  PetscCall(MatAXPY(ours, 2, wider, DIFFERENT_NONZERO_PATTERN));
  PetscCall(MatAXPY(reference, 2, reference_wider, DIFFERENT_NONZERO_PATTERN));
  PetscCall(expect_type(ours, "seqaijcbgen", "mpiaijcbgen"));
  PetscCall(expect_same_products(ours, reference, "MatAXPY with another pattern"));
  PetscCall(MatAXPY(ours, -1, reference, DIFFERENT_NONZERO_PATTERN)); /* one of PETSc's type */
  PetscCall(MatAXPY(reference, -1, reference, SAME_NONZERO_PATTERN));
  PetscCall(expect_same_products(ours, reference, "MatAXPY with another type"));
  PetscCall(MatDestroy(&wider));
  PetscCall(MatDestroy(&reference_wider));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&reference));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entries (row, row + shift): of every shift there are as many. */
static PetscErrorCode set_again(Mat A, PetscInt shift) {
  PetscInt begin, end;
  PetscFunctionBeginUser;
  PetscCall(MatSeqAIJSetPreallocation(A, 1, NULL));
  PetscCall(MatMPIAIJSetPreallocation(A, 1, NULL, 1, NULL));
  PetscCall(MatGetOwnershipRange(A, &begin, &end));
  for (PetscInt row = begin; row < end; row++)
    PetscCall(MatSetValue(A, row, (row + shift) % square->cols, (PetscScalar)(row + 2), INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode follows_a_pattern_of_the_same_size(void) {
  Mat ours, reference;
  PetscFunctionBeginUser;
  PetscCall(make_matrix(square, MATAIJ, &reference));
  PetscCall(make_matrix(square, "aijcbgen", &ours));
  for (PetscInt shift = 0; shift < 3; shift++) {
    PetscCall(set_again(ours, 4 * shift));
    PetscCall(set_again(reference, 4 * shift));
    PetscCall(expect_same_products(ours, reference, "as many entries elsewhere"));
  }
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&reference));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entries (row, row + shift), given twice with half of the value; patterns of other shifts have as many of them. */
static PetscErrorCode set_coo(Mat A, PetscInt shift, PetscBool pattern, PetscScalar value) {
  PetscInt begin, end, rows[200], cols[200], count = 0;
  PetscScalar values[200];
  PetscFunctionBeginUser;
  PetscCall(MatGetOwnershipRange(A, &begin, &end));
  for (PetscInt row = begin; row < end; row++)
    for (int twice = 0; twice < 2; twice++) {
      rows[count] = row;
      cols[count] = (row + shift) % square->cols;
      values[count++] = (value + row) / 2;
    }
  if (pattern) PetscCall(MatSetPreallocationCOO(A, count, rows, cols));
  PetscCall(MatSetValuesCOO(A, values, INSERT_VALUES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode takes_coo(void) {
  Mat both[2];
  PetscFunctionBeginUser;
  for (int i = 0; i < 2; i++) {
    PetscCall(MatCreate(PETSC_COMM_WORLD, &both[i]));
    PetscCall(MatSetSizes(both[i], PETSC_DECIDE, PETSC_DECIDE, square->rows, square->cols));
    PetscCall(MatSetType(both[i], i ? MATAIJ : "aijcbgen"));
  }
  for (int step = 0; step < 4; step++) { /* a pattern, values, another pattern, values */
    for (int i = 0; i < 2; i++)
      PetscCall(set_coo(both[i], step < 2 ? 1 : 5, step % 2 ? PETSC_FALSE : PETSC_TRUE, 3 + step));
    PetscCall(expect_type(both[0], "seqaijcbgen", "mpiaijcbgen"));
    PetscCall(expect_same_products(both[0], both[1], "coordinates"));
  }
  PetscCall(MatDestroy(&both[0]));
  PetscCall(MatDestroy(&both[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- copies and conversions */

static PetscErrorCode copies(void) {
  Mat ours, reference, copy, empty;
  PetscFunctionBeginUser;
  PetscCall(make_matrix(square, MATAIJ, &reference));
  PetscCall(make_matrix(square, "aijcbgen", &ours));
  PetscCall(MatDuplicate(ours, MAT_COPY_VALUES, &copy));
  PetscCall(expect_type(copy, "seqaijcbgen", "mpiaijcbgen"));
  PetscCall(expect_same_products(copy, reference, "a copy"));
  PetscCall(MatScale(copy, 2)); /* each has values of its own */
  PetscCall(expect_same_products(ours, reference, "the original"));
  PetscCall(MatDuplicate(ours, MAT_DO_NOT_COPY_VALUES, &empty));
  PetscCall(MatCopy(ours, empty, SAME_NONZERO_PATTERN));
  PetscCall(MatDestroy(&ours)); /* none needs another */
  PetscCall(expect_same_products(empty, reference, "MatCopy"));
  PetscCall(MatScale(reference, 2));
  PetscCall(expect_same_products(copy, reference, "a scaled copy"));
  PetscCall(MatDestroy(&copy));
  PetscCall(MatDestroy(&empty));
  PetscCall(MatDestroy(&reference));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode converts(void) {
  Mat reference, ours, back, dense;
  MatType name, same;
  PetscFunctionBeginUser;
  PetscCall(make_matrix(&shapes[2], MATAIJ, &reference));
  PetscCall(MatConvert(reference, "aijcbgen", MAT_INITIAL_MATRIX, &ours));
  PetscCall(expect_type(ours, "seqaijcbgen", "mpiaijcbgen"));
  PetscCall(expect_type(reference, MATSEQAIJ, MATMPIAIJ));
  PetscCall(expect_same_products(ours, reference, "from aij"));
  PetscCall(MatGetType(ours, &name));
  PetscCall(MatConvert(ours, MATAIJ, MAT_INITIAL_MATRIX, &back));
  PetscCall(MatScale(back, 1));
  PetscCall(MatGetType(ours, &same));
  EXPECT(name == same, "the name that MatGetType gave is gone");
  PetscCall(expect_type(back, MATSEQAIJ, MATMPIAIJ));
  PetscCall(expect_type(ours, "seqaijcbgen", "mpiaijcbgen"));
  PetscCall(expect_same_products(back, reference, "back to aij"));
  PetscCall(MatScale(reference, 3));
  PetscCall(MatConvert(reference, "aijcbgen", MAT_REUSE_MATRIX, &ours));
  PetscCall(expect_same_products(ours, reference, "from aij, again"));
  PetscCall(MatConvert(ours, MATAIJ, MAT_REUSE_MATRIX, &back));
  PetscCall(expect_same_products(back, reference, "back to aij, again"));
  PetscCall(MatConvert(ours, MATAIJ, MAT_INPLACE_MATRIX, &ours));
  PetscCall(expect_type(ours, MATSEQAIJ, MATMPIAIJ));
  const PetscInt launches = counted("launches");
  PetscCall(expect_same_products(ours, reference, "aij in place"));
  EXPECT(counted("launches") == launches, "a matrix that is aij again was multiplied on the GPU");
  PetscCall(MatSetType(back, "aijcbgen")); /* of an assembled matrix: a conversion */
  PetscCall(expect_type(back, "seqaijcbgen", "mpiaijcbgen"));
  PetscCall(expect_same_products(back, reference, "MatSetType"));
  PetscCall(MatConvert(reference, MATDENSE, MAT_INITIAL_MATRIX, &dense));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatConvert(dense, "aijcbgen", MAT_INITIAL_MATRIX, &ours));
  PetscCall(expect_same_products(ours, reference, "from dense"));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&back));
  PetscCall(MatDestroy(&dense));
  PetscCall(MatDestroy(&reference));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is the parent type's. */
static PetscErrorCode leaves_the_rest_to_aij(void) {
  Mat ours, reference, part, expected;
  IS rows;
  PetscInt begin, end;
  PetscBool equal;
  PetscFunctionBeginUser;
  PetscCall(make_matrix(square, MATAIJ, &reference));
  PetscCall(make_matrix(square, "aijcbgen", &ours));
  PetscCall(MatEqual(ours, reference, &equal));
  EXPECT(equal, "MatEqual");
  PetscCall(MatGetOwnershipRange(ours, &begin, &end));
  PetscCall(ISCreateStride(PETSC_COMM_WORLD, (end - begin + 1) / 2, begin, 2, &rows));
  PetscCall(MatCreateSubMatrix(ours, rows, rows, MAT_INITIAL_MATRIX, &part));
  PetscCall(MatCreateSubMatrix(reference, rows, rows, MAT_INITIAL_MATRIX, &expected));
  /* on several ranks it is of the parent type, and with CUDA one of that type's products reads what it overwrites */
  if (PetscDefined(HAVE_CUDA)) PetscCall(MatConvert(part, "aijcbgen", MAT_INPLACE_MATRIX, &part));
  PetscCall(expect_same_products(part, expected, "a submatrix"));
  PetscCall(MatDestroy(&part));
  PetscCall(MatDestroy(&expected));
  PetscCall(MatTranspose(ours, MAT_INITIAL_MATRIX, &part));
  PetscCall(MatTranspose(reference, MAT_INITIAL_MATRIX, &expected));
  PetscCall(expect_same_products(part, expected, "a transposed matrix"));
  PetscCall(MatDestroy(&part));
  PetscCall(MatDestroy(&expected));
  PetscCall(ISDestroy(&rows));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&reference));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- options and errors */

static PetscErrorCode expect_failing_product(Mat A, Vec x, Vec y, const char *word) {
  PetscFunctionBeginUser;
  expect_errors();
  const PetscErrorCode code = MatMult(A, x, y);
  const char *const message = raised_error();
  EXPECT(code == PETSC_ERR_ARG_WRONG, "the error is %d", (int)code);
  EXPECT(!strncmp(message, "cbgen: ", 7) && strstr(message, word), "the message is '%s'", message);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode reads_options(void) {
  Mat A;
  Vec x, y;
  PetscFunctionBeginUser;
  PetscCall(PetscOptionsSetValue(NULL, "-first_mat_cbgen_recipe", "wheel"));
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, 5, 5));
  PetscCall(MatSetOptionsPrefix(A, "first_"));
  PetscCall(MatSetType(A, "aijcbgen"));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatSetUp(A));
  PetscCall(set_diagonal(A, 1));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(expect_failing_product(A, x, y, "wheel"));
  PetscCall(PetscOptionsSetValue(NULL, "-first_mat_cbgen_recipe", "dia"));
  PetscCall(PetscOptionsSetValue(NULL, "-first_mat_cbgen_options", "type=f64,form=circle"));
  PetscCall(MatSetFromOptions(A));
  PetscCall(expect_failing_product(A, x, y, "circle"));
  PetscCall(PetscOptionsSetValue(NULL, "-first_mat_cbgen_options", "type=f64,form=axpby"));
  PetscCall(MatSetFromOptions(A)); /* after a failure it works on */
  PetscCall(MatMult(A, x, y));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- symmetry */

static PetscScalar symmetric(PetscInt row, PetscInt col) {
  const PetscInt low = PetscMin(row, col), high = PetscMax(row, col);
  if (row == col) return 9;
  return high - low < 12 && (low * 5 + high * 3) % 4 == 0 ? 0.5 * (PetscScalar)((low + 2 * high) % 7) - 1.25 : 0;
}

/* Of each pair the upper entry is another: whether it is read shows. */
static PetscScalar broken(PetscInt row, PetscInt col) {
  return symmetric(row, col) == 0 ? 0 : symmetric(row, col) + (col > row ? 2 : 0);
}

/* What a promise makes of it: on each rank the diagonal block is that of the lower triangle. */
static PetscInt rows_of_a_rank;
static PetscScalar mended(PetscInt row, PetscInt col) {
  return row / rows_of_a_rank == col / rows_of_a_rank ? symmetric(row, col) : broken(row, col);
}

static PetscErrorCode expect_same_product(Mat ours, Mat reference, const char *what) {
  Vec x[2], y[2];
  PetscFunctionBeginUser;
  for (int i = 0; i < 2; i++) {
    PetscCall(make_vector(i ? reference : ours, PETSC_FALSE, 1, &x[i]));
    PetscCall(make_vector(i ? reference : ours, PETSC_TRUE, 2, &y[i]));
    PetscCall(MatMult(i ? reference : ours, x[i], y[i]));
  }
  PetscCall(expect_same_vectors(y[0], y[1], what));
  for (int i = 0; i < 2; i++) {
    PetscCall(VecDestroy(&x[i]));
    PetscCall(VecDestroy(&y[i]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What PETSc knows of symmetry is promised from so many entries on. New values of which it does not know are multiplied
 * as they are. */
static PetscErrorCode promises_symmetry(PetscBool is_known, const char *from, PetscBool is_promised) {
  enum { ROWS = 60 };
  static const struct shape given = {"broken", ROWS, ROWS, broken}, wanted = {"mended", ROWS, ROWS, mended};
  Mat ours, as_promised, as_it_is;
  PetscMPIInt ranks;
  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &ranks));
  rows_of_a_rank = ROWS / ranks;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_cbgen_symmetric_from", from));
  PetscCall(make_matrix(&given, "aijcbgen", &ours));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_cbgen_symmetric_from"));
  PetscCall(make_matrix(&wanted, MATAIJ, &as_promised));
  PetscCall(make_matrix(&given, MATAIJ, &as_it_is));
  if (is_known) PetscCall(MatSetOption(ours, MAT_SYMMETRIC, PETSC_TRUE));
  PetscCall(expect_same_product(ours, is_promised ? as_promised : as_it_is, "a matrix that is said to be symmetric"));
  PetscCall(MatScale(ours, -2));
  PetscCall(MatScale(as_promised, -2));
  if (is_known) PetscCall(MatSetOption(ours, MAT_SYMMETRIC, PETSC_TRUE));
  if (is_promised) PetscCall(expect_same_product(ours, as_promised, "new values that are said to be symmetric"));
  PetscCall(MatScale(ours, -0.5));
  PetscCall(MatSetOption(ours, MAT_SYMMETRIC, PETSC_FALSE));
  PetscCall(expect_same_products(ours, as_it_is, "values that are said not to be symmetric"));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&as_promised));
  PetscCall(MatDestroy(&as_it_is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode test_matrices(void) {
  PetscFunctionBeginUser;
  PetscCall(multiplies_all_shapes());
  PetscCall(follows_new_values());
  PetscCall(follows_a_new_pattern());
  PetscCall(follows_a_pattern_of_the_same_size());
  PetscCall(takes_coo());
  PetscCall(copies());
  PetscCall(converts());
  PetscCall(leaves_the_rest_to_aij());
  PetscCall(reads_options());
  PetscCall(promises_symmetry(PETSC_TRUE, "1", PETSC_TRUE));
  PetscCall(promises_symmetry(PETSC_TRUE, "100000", PETSC_FALSE));
  PetscCall(promises_symmetry(PETSC_TRUE, "-1", PETSC_FALSE));
  PetscCall(promises_symmetry(PETSC_FALSE, "1", PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}
