// SPDX-License-Identifier: Apache-2.0
/* What the tests of the PETSc plug-in share: matrices of many shapes, of PETSc's type and of ours side by side. They
 * run on one rank or on several, on the fake driver. */
#ifndef CBGEN_TESTS_PETSC_SUPPORT_H
#define CBGEN_TESTS_PETSC_SUPPORT_H

#include <petscksp.h>

#if PETSC_VERSION_LT(3, 19, 0)
#define PETSC_SUCCESS 0
#endif

/* Ends the test unless it holds. */
#define EXPECT(condition, ...) PetscCheck(condition, PETSC_COMM_SELF, PETSC_ERR_USER, __VA_ARGS__)

/* A matrix by its entry (row, column), 0: none. Sizes are those of the whole matrix. */
struct shape {
  const char *name;
  PetscInt rows, cols;
  PetscScalar (*entry)(PetscInt row, PetscInt col);
};
extern const struct shape shapes[];
extern const PetscInt shapes_count;

/* An assembled matrix of the shape and the type: `type` as MatSetType takes it. */
PetscErrorCode make_matrix(const struct shape *shape, MatType type, Mat *A);

/* Every operation of the two that multiplies gives the same, for vectors as each makes them: with a PETSc that has CUDA those
 * of ours are on the GPU. And for vectors on the host, as a reference of type aij makes them. */
PetscErrorCode expect_same_products(Mat ours, Mat reference, const char *what);
PetscErrorCode expect_same_products_on_host(Mat ours, Mat reference, const char *what);
PetscErrorCode expect_same_vectors(Vec ours, Vec reference, const char *what);
PetscErrorCode expect_type(Mat A, MatType sequential, MatType parallel);

/* A vector for A's columns (or rows), with entries that differ. */
PetscErrorCode make_vector(Mat A, PetscBool of_rows, PetscInt seed, Vec *x);

/* What the fake driver counted; see fake_driver.h. */
PetscInt counted(const char *member);

/* The message of the first error that is raised while a call is made that has to fail, which it returns. */
void expect_errors(void);
const char *raised_error(void);

PetscErrorCode test_matrices(void);
PetscErrorCode test_products(void);
PetscErrorCode test_solvers(void);

#endif
