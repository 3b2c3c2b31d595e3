// SPDX-License-Identifier: Apache-2.0
/* What the benches of the plug-in for PETSc share: the types that they compare, and how they time. */
#ifndef CBGEN_BENCH_PETSC_COMMON_H
#define CBGEN_BENCH_PETSC_COMMON_H

#include <petscksp.h>
#include <petsctime.h>

#if PETSC_VERSION_LT(3, 19, 0)
#define PETSC_SUCCESS 0
#endif
#if PetscDefined(HAVE_CUDA)
#define PETSCS_TYPE "aijcusparse"
#else
#define PETSCS_TYPE "aij"
#endif

enum { TYPES = 2 };
static const char *const types[TYPES] = {PETSCS_TYPE, "aijcbgen"};

static inline int later(const void *a, const void *b) {
  return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

/* Of an odd number of times, which are put in order. */
static inline double median(double *times, int count) {
  qsort(times, (size_t)count, sizeof *times, later);
  return times[count / 2];
}

/* A solver of that method and preconditioner: `iterations` of them without a test, or (0) to 1e-8. */
static inline PetscErrorCode make_solver(Mat A, KSPType type, PCType preconditioner, PetscInt iterations, KSP *ksp) {
  PC pc;
  PetscFunctionBeginUser;
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)A), ksp));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetType(*ksp, type));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PCSetType(pc, preconditioner));
  PetscCall(KSPSetTolerances(*ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, iterations ? iterations : 10000));
  if (iterations) PetscCall(KSPSetNormType(*ksp, KSP_NORM_NONE));
  PetscCall(KSPSetFromOptions(*ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#endif
