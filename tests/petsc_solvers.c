// SPDX-License-Identifier: Apache-2.0
/* cbgencg and cbgenbcgs beside PETSc's own methods: solutions, reasons, iterations, norms, monitors; new values and
 * other tolerances; what one kernel cannot do. */
#include "tests/petsc_support.h"

#include <math.h>
#include <string.h>

static const struct shape *const square = &shapes[1];

static PetscErrorCode make_solver(Mat A, KSPType type, PCType preconditioner, KSP *ksp) {
  PC pc;
  PetscFunctionBeginUser;
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)A), ksp));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetType(*ksp, type));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PCSetType(pc, preconditioner));
  PetscCall(KSPSetTolerances(*ksp, 1e-8, 1e-50, 1e5, 500));
  PetscCall(KSPSetFromOptions(*ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

struct outcome {
  KSPConvergedReason reason;
  PetscInt iterations;
  PetscReal norm;
};

static PetscErrorCode solve(KSP ksp, Vec b, Vec x, struct outcome *outcome) {
  PetscFunctionBeginUser;
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetConvergedReason(ksp, &outcome->reason));
  PetscCall(KSPGetIterationNumber(ksp, &outcome->iterations));
  PetscCall(KSPGetResidualNorm(ksp, &outcome->norm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode residual_of(Mat A, Vec b, Vec x, PetscReal *norm) {
  Vec r;
  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(b, &r));
  PetscCall(MatMult(A, x, r));
  PetscCall(VecAYPX(r, -1, b));
  PetscCall(VecNorm(r, NORM_2, norm));
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows and columns by very different numbers: with the diagonal of before it would take many iterations more. */
static PetscErrorCode change_diagonal(Mat A) {
  Vec factors;
  PetscInt begin, end;
  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &factors, NULL));
  PetscCall(VecGetOwnershipRange(factors, &begin, &end));
  for (PetscInt i = begin; i < end; i++) PetscCall(VecSetValue(factors, i, 1 + (i % 4), INSERT_VALUES));
  PetscCall(VecAssemblyBegin(factors));
  PetscCall(VecAssemblyEnd(factors));
  PetscCall(MatDiagonalScale(A, factors, factors));
  PetscCall(VecDestroy(&factors));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* `promised`: products have an operator of their own, to which symmetry is promised until values change. */
static PetscErrorCode solves_like_petsc(KSPType ours, KSPType petsc, PCType preconditioner, PetscBool promised) {
  Mat A;
  Vec b, x, expected;
  KSP ksp, reference;
  struct outcome outcome, wanted;
  PetscReal residual, size;
  PetscFunctionBeginUser;
  if (promised) PetscCall(PetscOptionsSetValue(NULL, "-mat_cbgen_symmetric_from", "1"));
  PetscCall(make_matrix(square, "aijcbgen", &A));
  if (promised) PetscCall(PetscOptionsClearValue(NULL, "-mat_cbgen_symmetric_from"));
  if (promised) PetscCall(MatSetOption(A, MAT_SYMMETRIC, PETSC_TRUE));
  PetscCall(make_vector(A, PETSC_TRUE, 3, &b));
  PetscCall(VecDuplicate(b, &x));
  PetscCall(VecDuplicate(b, &expected));
  PetscCall(make_solver(A, ours, preconditioner, &ksp));
  PetscCall(make_solver(A, petsc, preconditioner, &reference));
  PetscCall(KSPSetNormType(reference, KSP_NORM_UNPRECONDITIONED));
  PetscCall(VecNorm(b, NORM_2, &size));
  for (int again = 0; again < 4; again++) {
    if (again == 1) PetscCall(change_diagonal(A));
    if (again == 2) PetscCall(KSPSetTolerances(ksp, 1e-3, 1e-50, 1e5, 500));
    if (again == 2) PetscCall(KSPSetTolerances(reference, 1e-3, 1e-50, 1e5, 500));
    if (again == 3) { /* from a first guess */
      PetscCall(KSPSetInitialGuessNonzero(ksp, PETSC_TRUE));
      PetscCall(KSPSetInitialGuessNonzero(reference, PETSC_TRUE));
      PetscCall(VecSet(x, 0.25));
      PetscCall(VecSet(expected, 0.25));
    }
    PetscCall(solve(ksp, b, x, &outcome));
    PetscCall(solve(reference, b, expected, &wanted));
    EXPECT(outcome.reason == KSP_CONVERGED_RTOL, "%s: reason %d", ours, (int)outcome.reason);
    EXPECT(PetscAbs(outcome.iterations - wanted.iterations) <= 1, "%s: %d iterations, PETSc %d", ours,
           (int)outcome.iterations, (int)wanted.iterations);
    PetscCall(residual_of(A, b, x, &residual));
    EXPECT(residual <= (again < 2 ? 1e-8 : 1e-3) * size * 1.001 && PetscAbs(residual - outcome.norm) <= 1e-10 * size,
           "%s: the residual is %g, told was %g", ours, (double)residual, (double)outcome.norm);
  }
  PetscCall(KSPDestroy(&reference));
  PetscCall(MatDestroy(&A)); /* ksp still holds it */
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&expected));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- why it ended */

static PetscScalar indefinite(PetscInt row, PetscInt col) {
  return row == col ? (row % 2 ? -1 : 1) * (PetscScalar)(1 + row) : 0;
}

static PetscErrorCode expect_reason(Mat A, KSPType type, PetscReal rtol, PetscReal atol, PetscInt most,
                                    KSPNormType norm, PetscScalar b_value, KSPConvergedReason reason) {
  Vec b, x;
  KSP ksp;
  struct outcome outcome;
  PetscFunctionBeginUser;
  PetscCall(make_vector(A, PETSC_TRUE, 3, &b));
  PetscCall(VecShift(b, b_value));
  PetscCall(VecDuplicate(b, &x));
  PetscCall(make_solver(A, type, PCNONE, &ksp));
  PetscCall(KSPSetTolerances(ksp, rtol, atol, 1e5, most));
  if (norm != KSP_NORM_DEFAULT) PetscCall(KSPSetNormType(ksp, norm));
  PetscCall(solve(ksp, b, x, &outcome));
  EXPECT(outcome.reason == reason, "the reason is %s instead of %s", KSPConvergedReasons[outcome.reason],
         KSPConvergedReasons[reason]);
  if (reason == KSP_CONVERGED_ITS || reason == KSP_DIVERGED_ITS)
    EXPECT(outcome.iterations == most, "%d iterations", (int)outcome.iterations);
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode tells_reasons(void) {
  const struct shape other = {"indefinite", 40, 40, indefinite};
  Mat A, B;
  PetscFunctionBeginUser;
  PetscCall(make_matrix(square, "aijcbgen", &A));
  PetscCall(make_matrix(&other, "aijcbgen", &B));
  PetscCall(expect_reason(A, "cbgencg", 1e-8, 1e-50, 100, KSP_NORM_DEFAULT, 0, KSP_CONVERGED_RTOL));
  PetscCall(expect_reason(A, "cbgencg", 1e-14, 1e-2, 100, KSP_NORM_DEFAULT, 0, KSP_CONVERGED_ATOL));
  PetscCall(expect_reason(A, "cbgencg", 0, 1e-3, 100, KSP_NORM_DEFAULT, 0, KSP_CONVERGED_ATOL));
  PetscCall(expect_reason(A, "cbgencg", 1e-12, 1e-50, 3, KSP_NORM_DEFAULT, 0, KSP_DIVERGED_ITS));
  PetscCall(expect_reason(A, "cbgencg", 1e-2, 1e-50, 7, KSP_NORM_NONE, 0, KSP_CONVERGED_ITS));
  PetscCall(expect_reason(B, "cbgencg", 1e-8, 1e-50, 100, KSP_NORM_DEFAULT, 0, KSP_DIVERGED_INDEFINITE_MAT));
  PetscCall(expect_reason(A, "cbgenbcgs", 1e-8, 1e-50, 100, KSP_NORM_DEFAULT, 0, KSP_CONVERGED_RTOL));
  PetscCall(expect_reason(A, "cbgenbcgs", 1e-12, 1e-50, 2, KSP_NORM_DEFAULT, 0, KSP_DIVERGED_ITS));
  PetscCall(expect_reason(A, "cbgencg", 1e-8, 1e-50, 100, KSP_NORM_DEFAULT, INFINITY, KSP_DIVERGED_NANORINF));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- monitors and the history */

static PetscReal monitored[600];
static PetscInt monitored_count;

static PetscErrorCode monitor(KSP ksp, PetscInt iteration, PetscReal norm, void *user) {
  PetscFunctionBeginUser;
  (void)ksp, (void)user;
  EXPECT(iteration == monitored_count, "iteration %d follows %d", (int)iteration, (int)monitored_count - 1);
  monitored[monitored_count++] = norm;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode tells_monitors(void) {
  Mat A;
  Vec b, x;
  KSP ksp;
  PetscReal history[600], size;
  struct outcome outcome;
  PetscFunctionBeginUser;
  PetscCall(make_matrix(square, "aijcbgen", &A));
  PetscCall(make_vector(A, PETSC_TRUE, 3, &b));
  PetscCall(VecDuplicate(b, &x));
  PetscCall(make_solver(A, "cbgencg", PCJACOBI, &ksp));
  PetscCall(KSPMonitorSet(ksp, monitor, NULL, NULL));
  PetscCall(KSPSetResidualHistory(ksp, history, 600, PETSC_TRUE));
  monitored_count = 0;
  PetscCall(solve(ksp, b, x, &outcome));
  PetscCall(VecNorm(b, NORM_2, &size));
  EXPECT(monitored_count == outcome.iterations + 1, "%d of %d iterations were monitored", (int)monitored_count,
         (int)outcome.iterations);
  EXPECT(PetscAbs(monitored[0] - size) <= 1e-12 * size, "the first norm is %g", (double)monitored[0]);
  EXPECT(PetscAbs(monitored[outcome.iterations] - outcome.norm) <= 1e-12 * outcome.norm, "the last norm is %g",
         (double)monitored[outcome.iterations]);
  for (PetscInt i = 0; i < monitored_count; i++) EXPECT(history[i] == monitored[i], "the history differs");
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- what one kernel cannot do */

/* PETSc's own method does the same under both names; `random`: but for what the preconditioner draws by lot. */
static PetscErrorCode expect_same_outcome(const struct outcome *outcome, const struct outcome *wanted,
                                          PetscBool random) {
  PetscFunctionBeginUser;
  const PetscBool same = outcome->iterations == wanted->iterations && outcome->norm == wanted->norm;
  const PetscBool near = PetscAbs(outcome->iterations - wanted->iterations) <= 1;
  EXPECT(outcome->reason == wanted->reason && (random ? near : same), "reason %d after %d iterations, PETSc %d after %d",
         (int)outcome->reason, (int)outcome->iterations, (int)wanted->reason, (int)wanted->iterations);
  EXPECT(monitored_count == outcome->iterations + 1, "%d iterations were monitored", (int)monitored_count);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode expect_refusal(KSP ksp, Vec b, Vec x) {
  PetscFunctionBeginUser;
  PetscCall(PetscOptionsSetValue(NULL, "-ksp_cbgen_fallback", "error"));
  PetscCall(KSPSetFromOptions(ksp));
  expect_errors();
  const PetscErrorCode code = KSPSolve(ksp, b, x);
  const char *const message = raised_error();
  EXPECT(code == PETSC_ERR_SUP && strstr(message, "cbgencg: the "), "error %d: '%s'", (int)code, message);
  PetscCall(PetscOptionsClearValue(NULL, "-ksp_cbgen_fallback"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode falls_back(PCType preconditioner, KSPNormType norm, MatType type, PetscBool random) {
  Mat A;
  Vec b, x, expected;
  KSP ksp, reference;
  struct outcome outcome, wanted;
  PetscFunctionBeginUser;
  PetscCall(PetscOptionsSetValue(NULL, "-ksp_cbgen_fallback", "quiet"));
  PetscCall(make_matrix(square, type, &A));
  PetscCall(make_vector(A, PETSC_TRUE, 3, &b));
  PetscCall(VecDuplicate(b, &x));
  PetscCall(VecDuplicate(b, &expected));
  PetscCall(make_solver(A, "cbgencg", preconditioner, &ksp));
  PetscCall(make_solver(A, KSPCG, preconditioner, &reference));
  PetscCall(KSPSetNormType(ksp, norm));
  PetscCall(KSPSetNormType(reference, norm));
  PetscCall(KSPMonitorSet(ksp, monitor, NULL, NULL));
  for (int again = 0; again < 2; again++) {
    monitored_count = 0;
    PetscCall(solve(ksp, b, x, &outcome));
    PetscCall(solve(reference, b, expected, &wanted));
    PetscCall(expect_same_outcome(&outcome, &wanted, random));
    if (!random) PetscCall(expect_same_vectors(x, expected, "the solution"));
    if (again) continue;
    PetscCall(KSPReset(ksp));
    PetscCall(KSPSetOperators(ksp, A, A));
  }
  PetscCall(expect_refusal(ksp, b, x));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(KSPDestroy(&reference));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&expected));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PetscDefined(HAVE_CUDA)
static MatSolverType const parents_package = MATSOLVERCUSPARSE;
#else
static MatSolverType const parents_package = MATSOLVERPETSC;
#endif

/* A solution by a factorisation: PETSc's choice of package, or that of the name. What makes it is what makes A's parent
 * type's. */
static PetscErrorCode factorises(PCType preconditioner, MatSolverType package) {
  Mat ours, A, factor;
  Vec b, x, expected, right;
  KSP ksp, reference;
  PC pc;
  struct outcome outcome, wanted;
  PetscObject steps;
  PetscFunctionBeginUser;
  PetscCall(make_matrix(square, "aijcbgen", &ours));
  PetscCall(make_matrix(square, MATAIJ, &A));
  PetscCall(make_vector(ours, PETSC_TRUE, 5, &b));
  PetscCall(make_vector(A, PETSC_TRUE, 5, &right));
  PetscCall(VecDuplicate(b, &x));
  PetscCall(VecDuplicate(right, &expected));
  PetscCall(make_solver(ours, KSPGMRES, preconditioner, &ksp));
  PetscCall(make_solver(A, KSPGMRES, preconditioner, &reference));
  PetscCall(KSPGetPC(ksp, &pc));
  if (package) PetscCall(PCFactorSetMatSolverType(pc, package));
  for (int again = 0; again < 2; again++) {
    PetscCall(solve(ksp, b, x, &outcome));
    PetscCall(solve(reference, right, expected, &wanted));
    EXPECT(outcome.reason > 0 && outcome.iterations == wanted.iterations, "%s: reason %d after %d iterations, aij %d",
           preconditioner, (int)outcome.reason, (int)outcome.iterations, (int)wanted.iterations);
    PetscCall(expect_same_vectors(x, expected, preconditioner));
    PetscCall(PCFactorGetMatrix(pc, &factor));
    PetscCall(PetscObjectQuery((PetscObject)factor, "cbgen_factor", &steps));
    EXPECT(steps, "%s: PETSc chose another package than the plug-in's", preconditioner);
    PetscCall(expect_type(ours, "seqaijcbgen", "mpiaijcbgen"));
    PetscCall(MatScale(ours, 2)); /* the numeric step again */
    PetscCall(MatScale(A, 2));
  }
  PetscCall(expect_same_products(ours, A, "a factorised matrix"));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(KSPDestroy(&reference));
  Vec vectors[] = {b, x, expected, right};
  for (int i = 0; i < 4; i++) PetscCall(VecDestroy(&vectors[i]));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode test_solvers(void) {
  PetscMPIInt size;
  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  if (size == 1) {
    PetscCall(solves_like_petsc("cbgencg", KSPCG, PCNONE, PETSC_FALSE));
    PetscCall(solves_like_petsc("cbgencg", KSPCG, PCJACOBI, PETSC_FALSE));
    PetscCall(solves_like_petsc("cbgencg", KSPCG, PCJACOBI, PETSC_TRUE));
    PetscCall(solves_like_petsc("cbgenbcgs", KSPFBCGS, PCJACOBI, PETSC_FALSE));
    PetscCall(tells_reasons());
    PetscCall(tells_monitors());
    for (int named = 0; named < 2; named++) {
      static PCType const preconditioners[] = {PCLU, PCILU, PCCHOLESKY, PCICC};
      for (int i = 0; i < 4; i++) PetscCall(factorises(preconditioners[i], named ? parents_package : NULL));
    }
    PetscCall(falls_back(PCICC, KSP_NORM_UNPRECONDITIONED, "aijcbgen", PETSC_FALSE));
    PetscCall(falls_back(PCJACOBI, KSP_NORM_UNPRECONDITIONED, MATAIJ, PETSC_FALSE));
  }
  PetscCall(falls_back(PCJACOBI, KSP_NORM_PRECONDITIONED, "aijcbgen", PETSC_FALSE));
  PetscCall(falls_back(PCGAMG, KSP_NORM_DEFAULT, "aijcbgen", PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}
