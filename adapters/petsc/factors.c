// SPDX-License-Identifier: Apache-2.0
/* Factorisations are the parent type's: of the package that PETSc takes for it (cuSPARSE where it has CUDA). PETSc
 * finds packages by a matrix's exact type name first, so that one registered for our type is what the parent type's
 * would be. The factors are of the parent type; their symbolic and numeric steps run with the matrix handed over. */
#include "adapter.h"

#if PetscDefined(HAVE_CUDA)
#define PACKAGE MATSOLVERCUSPARSE
#else
#define PACKAGE MATSOLVERPETSC
#endif

static const char composed[] = "cbgen_factor";

/* The parent's steps, on a factor. */
struct factor {
  struct _MatOps parent;
};

static PetscErrorCode lu_symbolic(Mat F, Mat A, IS rows, IS cols, const MatFactorInfo *info);
static PetscErrorCode ilu_symbolic(Mat F, Mat A, IS rows, IS cols, const MatFactorInfo *info);
static PetscErrorCode cholesky_symbolic(Mat F, Mat A, IS order, const MatFactorInfo *info);
static PetscErrorCode icc_symbolic(Mat F, Mat A, IS order, const MatFactorInfo *info);
static PetscErrorCode lu_numeric(Mat F, Mat A, const MatFactorInfo *info);
static PetscErrorCode cholesky_numeric(Mat F, Mat A, const MatFactorInfo *info);

#define STEPS(DO) DO(lufactorsymbolic, lu_symbolic) DO(ilufactorsymbolic, ilu_symbolic) \
  DO(choleskyfactorsymbolic, cholesky_symbolic) DO(iccfactorsymbolic, icc_symbolic) DO(lufactornumeric, lu_numeric) \
  DO(choleskyfactornumeric, cholesky_numeric)

#define TAKE(operation, ours) \
  if (A->ops->operation) CBP_TAKE(operation, ours)

/* A is the factor, m what is composed with it: as the macros have it. */
static PetscErrorCode take(Mat A) {
  struct factor *m;
  PetscFunctionBegin;
  PetscCall(cbp_composed((PetscObject)A, composed, sizeof *m, (void **)&m));
  STEPS(TAKE)
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode give(Mat A) {
  struct factor *m;
  PetscFunctionBegin;
  PetscCall(cbp_composed((PetscObject)A, composed, sizeof *m, (void **)&m));
  STEPS(CBP_GIVE)
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A step of the parent's, which may put other steps into the factor's table. */
#define AS_PARENT(F, A, operation, ...) \
  do { \
    PetscBool was_ours; \
    PetscErrorCode status; \
    PetscCall(give(F)); \
    PetscCall(cbp_hand_over(A, &was_ours)); \
    status = (*(F)->ops->operation)(F, A, __VA_ARGS__); \
    PetscCall(cbp_take_back(A, was_ours)); \
    PetscCall(take(F)); \
    PetscCall(status); \
  } while (0)

static PetscErrorCode lu_symbolic(Mat F, Mat A, IS rows, IS cols, const MatFactorInfo *info) {
  PetscFunctionBegin;
  AS_PARENT(F, A, lufactorsymbolic, rows, cols, info);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ilu_symbolic(Mat F, Mat A, IS rows, IS cols, const MatFactorInfo *info) {
  PetscFunctionBegin;
  AS_PARENT(F, A, ilufactorsymbolic, rows, cols, info);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode cholesky_symbolic(Mat F, Mat A, IS order, const MatFactorInfo *info) {
  PetscFunctionBegin;
  AS_PARENT(F, A, choleskyfactorsymbolic, order, info);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode icc_symbolic(Mat F, Mat A, IS order, const MatFactorInfo *info) {
  PetscFunctionBegin;
  AS_PARENT(F, A, iccfactorsymbolic, order, info);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode lu_numeric(Mat F, Mat A, const MatFactorInfo *info) {
  PetscFunctionBegin;
  AS_PARENT(F, A, lufactornumeric, info);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode cholesky_numeric(Mat F, Mat A, const MatFactorInfo *info) {
  PetscFunctionBegin;
  AS_PARENT(F, A, choleskyfactornumeric, info);
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef PetscErrorCode make_factor(Mat A, MatFactorType type, Mat *F);

static PetscErrorCode parents_of(MatFactorType type, make_factor **make) {
  PetscFunctionBegin;
  PetscCall(MatSolverTypeGet(PACKAGE, CBP_SEQ_PARENT, type, NULL, NULL, make));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode make(Mat A, MatFactorType type, Mat *F) {
  make_factor *parents;
  PetscBool was_ours;
  PetscErrorCode status;
  PetscFunctionBegin;
  PetscCall(parents_of(type, &parents));
  PetscCall(cbp_hand_over(A, &was_ours));
  status = (*parents)(A, type, F);
  PetscCall(cbp_take_back(A, was_ours));
  PetscCall(status);
  PetscCall(take(*F));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_register_factors(void) {
  static const MatFactorType types[] = {MAT_FACTOR_LU, MAT_FACTOR_CHOLESKY, MAT_FACTOR_ILU, MAT_FACTOR_ICC};
  PetscFunctionBegin;
  for (size_t i = 0; i < PETSC_STATIC_ARRAY_LENGTH(types); i++) {
    make_factor *parents;
    PetscCall(parents_of(types[i], &parents));
    if (parents) PetscCall(MatSolverTypeRegister(PACKAGE, CBP_SEQAIJ, types[i], make));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
