// SPDX-License-Identifier: Apache-2.0
/* KSP types cbgencg and cbgenbcgs: all iterations in one kernel (cbgen_solver_create), for a sequential matrix of ours
 * with Jacobi's preconditioner or none. What the kernel cannot do, an inner KSP of PETSc's own type does with the same
 * preconditioner, convergence test and monitors; why is told once, and by -ksp_view.
 *
 * What differs from PETSc's cg: norms are those of the residual b - A x itself (KSP_NORM_UNPRECONDITIONED), and
 * monitors are called when the solution is there, with the norms of all iterations in their order. */
#include "adapter.h"

#include <petsc/private/kspimpl.h>

#include <math.h>

enum fallback { WARN, QUIET, ERROR };
static const char *const fallback_names[] = {"warn", "quiet", "error", "cbgen_fallback", "", NULL};

struct krylov {
  const char *method;
  KSPType petsc_type;
  PetscEnum fallback;
  char form[32]; /* cbgen_solver_options.program_form; "": what is predicted to be the fastest */
  KSP inner;     /* NULL: was not needed so far */
  char why_not[512];
  PetscBool told;

  cbgen_solver *solver;
  cbgen_solver_options options; /* of the solver */
  PetscInt operator_count;      /* which of the matrix's operators it belongs to */
  Mat matrix;                   /* and of which matrix; not referenced, only compared */
  cbgen_outcome outcome;

  void *diagonal, *history; /* device memory, or NULL */
  PetscInt rows, history_length;
  PetscObjectState diagonal_state;
  PetscObjectId diagonal_of;
};

/* ---- what the kernel can do */

#define UNLESS(condition, ...) \
  if (!(condition)) { \
    PetscCall(PetscSNPrintf(why_not, sizeof k->why_not, __VA_ARGS__)); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }

static PetscErrorCode check_matrix(struct krylov *k, Mat A, char *why_not) {
  PetscMPIInt ranks;
  PetscBool ours;
  MatNullSpace space;
  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &ranks));
  UNLESS(ranks == 1, "the matrix is spread over %d ranks", (int)ranks);
  PetscCall(PetscObjectTypeCompare((PetscObject)A, CBP_SEQAIJ, &ours));
  UNLESS(ours, "the matrix is of type '%s': use -mat_type " CBP_AIJ, ((PetscObject)A)->type_name);
  UNLESS(!cbp_bound_to_cpu(A), "the matrix is bound to the CPU");
  UNLESS(A->rmap->n == A->cmap->n && A->rmap->n, "the matrix is not square, or empty");
  PetscCall(MatGetNullSpace(A, &space));
  UNLESS(!space, "the matrix has a null space to remove");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode check_preconditioner(struct krylov *k, PC pc, char *why_not) {
  PetscBool none, jacobi, absolute;
  PCJacobiType type;
  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCNONE, &none));
  PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCJACOBI, &jacobi));
  UNLESS(none || jacobi, "the preconditioner is '%s': it does 'jacobi' and 'none'", ((PetscObject)pc)->type_name);
  if (none) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCJacobiGetType(pc, &type));
  PetscCall(PCJacobiGetUseAbs(pc, &absolute));
  UNLESS(type == PC_JACOBI_DIAGONAL && !absolute, "Jacobi's preconditioner is of another kind than the diagonal");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode check_settings(struct krylov *k, KSP ksp, char *why_not) {
  PetscFunctionBegin;
  UNLESS(!ksp->transpose_solve, "the transposed system is to be solved");
  UNLESS(ksp->normtype == KSP_NORM_UNPRECONDITIONED || ksp->normtype == KSP_NORM_NONE,
         "the norm type is '%s': it has 'unpreconditioned' and 'none'", KSPNormTypes[ksp->normtype]);
  UNLESS(ksp->converged == KSPConvergedDefault || ksp->converged == KSPConvergedSkip,
         "there is a convergence test of the application's");
  UNLESS(!ksp->calc_sings, "singular values are to be estimated");
  UNLESS(ksp->max_it > 0, "no iteration is allowed");
  UNLESS(ksp->converged != KSPConvergedDefault || ksp->guess_zero ||
             !((KSPConvergedDefaultCtx *)ksp->cnvP)->initialrtol,
         "the tolerance is relative to the first residual, and the first guess is not 0");
#if PETSC_VERSION_GE(3, 20, 0)
  UNLESS(ksp->min_it <= 0, "a least number of iterations is set");
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode check(struct krylov *k, KSP ksp, Mat A) {
  PetscFunctionBegin;
  *k->why_not = 0;
  PetscCall(check_matrix(k, A, k->why_not));
  if (!*k->why_not) PetscCall(check_preconditioner(k, ksp->pc, k->why_not));
  if (!*k->why_not) PetscCall(check_settings(k, ksp, k->why_not));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- device memory: the diagonal, the history */

static PetscErrorCode put_diagonal(struct krylov *k, Mat P) {
  Vec vector;
  struct cbp_vector opened;
  PetscFunctionBegin;
  PetscCall(MatCreateVecs(P, NULL, &vector));
  PetscCall(MatGetDiagonal(P, vector));
  PetscCall(cbp_vector_open(&opened, vector, CBP_READ, CBP_STAGE_X, cbp_stream()));
  PetscCall(cbp_device_copy(k->diagonal, opened.pointer, opened.bytes, cbp_stream()));
  PetscCall(cbp_vector_close(&opened));
  PetscCall(VecDestroy(&vector));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Frees what belongs to the matrix and to the settings. Between enter and leave. */
static PetscErrorCode forget(struct krylov *k) {
  PetscFunctionBegin;
  cbgen_solver_free(k->solver);
  k->solver = NULL;
  PetscCall(cbp_device_free(k->diagonal));
  PetscCall(cbp_device_free(k->history));
  k->diagonal = k->history = NULL;
  k->history_length = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode prepare_diagonal(struct krylov *k, PC pc, Mat P) {
  PetscBool jacobi;
  PetscObjectState state;
  PetscObjectId id;
  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCJACOBI, &jacobi));
  if (k->rows != P->rmap->n || !jacobi != !k->diagonal) PetscCall(forget(k));
  k->rows = P->rmap->n;
  if (!jacobi) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectStateGet((PetscObject)P, &state));
  PetscCall(PetscObjectGetId((PetscObject)P, &id));
  if (k->diagonal && state == k->diagonal_state && id == k->diagonal_of) PetscFunctionReturn(PETSC_SUCCESS);
  if (!k->diagonal) PetscCall(cbp_device_allocate((size_t)k->rows * sizeof(PetscScalar), &k->diagonal));
  PetscCall(put_diagonal(k, P));
  k->diagonal_state = state;
  k->diagonal_of = id;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Squares of the residuals' norms, as many as there can be, where somebody asks for them. */
static PetscErrorCode prepare_history(struct krylov *k, KSP ksp) {
  PetscFunctionBegin;
  const PetscInt length = ksp->numbermonitors || ksp->res_hist ? ksp->max_it + 1 : 0;
  if (length <= k->history_length) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(cbp_device_free(k->history));
  k->history = NULL;
  PetscCall(cbp_device_allocate((size_t)length * sizeof(double), &k->history));
  k->history_length = length;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the solver */

static cbgen_solver_options options_of(const struct krylov *k, KSP ksp) {
  cbgen_solver_options options = {.struct_size = sizeof options, .diagonal = k->diagonal, .history = k->history};
  const PetscBool tests = ksp->normtype != KSP_NORM_NONE && ksp->converged == KSPConvergedDefault;
  options.relative_tolerance = tests ? (double)ksp->rtol : 0;
  options.absolute_tolerance = tests ? (double)ksp->abstol : 0;
  /* Both 0 would mean cbgen's default: the least number means that only a residual of 0 is small enough. */
  if (!(options.relative_tolerance > 0) && !(options.absolute_tolerance > 0)) options.absolute_tolerance = 1e-300;
  options.max_iterations = (int)ksp->max_it;
  options.program_form = *k->form ? k->form : NULL;
  return options;
}

static PetscBool same_options(const cbgen_solver_options *a, const cbgen_solver_options *b) {
  return a->relative_tolerance == b->relative_tolerance && a->absolute_tolerance == b->absolute_tolerance &&
                 a->max_iterations == b->max_iterations && a->diagonal == b->diagonal && a->history == b->history
             ? PETSC_TRUE
             : PETSC_FALSE;
}

/* Other tolerances take no other kernel. */
static PetscErrorCode renew_solver(struct krylov *k, const cbgen_solver_options *options) {
  cbgen_solver *clone;
  PetscFunctionBegin;
  if (same_options(options, &k->options)) PetscFunctionReturn(PETSC_SUCCESS);
  CBP_CHECK(cbgen_solver_clone(k->solver, options, &clone), cbgen_solver_message(k->solver));
  cbgen_solver_free(k->solver);
  k->solver = clone;
  k->options = *options;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* `why_not` says when this operator has no solver: its plan, or no NVRTC. */
static PetscErrorCode prepare_solver(struct krylov *k, KSP ksp, Mat A) {
  struct cbp_matrix *m;
  cbgen_operator *op;
  PetscFunctionBegin;
  PetscCall(cbp_matrix_of(A, &m));
  PetscCall(cbp_operator_of(A, m, CBP_IN_SOLVER, k->method, &op));
  const cbgen_solver_options options = options_of(k, ksp);
  if (k->solver && k->matrix == A && k->operator_count == m->direction[CBP_IN_SOLVER].count) {
    PetscCall(renew_solver(k, &options));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  cbgen_solver_free(k->solver);
  k->solver = NULL;
  if (!op) {
    PetscCall(PetscStrncpy(k->why_not, "the matrix has no entries", sizeof k->why_not));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  const cbgen_status status = cbgen_solver_create(op, k->method, &options, &k->solver);
  if (status == CBGEN_ERROR_UNSUPPORTED || status == CBGEN_ERROR_LIMIT || status == CBGEN_ERROR_MISSING)
    PetscCall(PetscStrncpy(k->why_not, cbgen_operator_message(op), sizeof k->why_not));
  else CBP_CHECK(status, cbgen_operator_message(op));
  k->options = options;
  k->matrix = A;
  k->operator_count = m->direction[CBP_IN_SOLVER].count;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static KSPConvergedReason reason_of(const struct krylov *k, KSP ksp) {
  if (!isfinite(k->outcome.residual)) return KSP_DIVERGED_NANORINF; /* an infinite b is a goal that anything reaches */
  switch (k->outcome.reason) {
  case CBGEN_REASON_CONVERGED:
    return k->outcome.residual < ksp->abstol ? KSP_CONVERGED_ATOL : KSP_CONVERGED_RTOL;
  case CBGEN_REASON_ITERATIONS: return ksp->normtype == KSP_NORM_NONE ? KSP_CONVERGED_ITS : KSP_DIVERGED_ITS;
  case CBGEN_REASON_BREAKDOWN:
    return k->petsc_type[0] == 'c' ? KSP_DIVERGED_INDEFINITE_MAT : KSP_DIVERGED_BREAKDOWN;
  default: return KSP_DIVERGED_NANORINF;
  }
}

/* Monitors and the residual history get what they would have got on the way. */
static PetscErrorCode tell_history(struct krylov *k, KSP ksp) {
  double *squares;
  const PetscInt count = k->outcome.iterations + 1;
  PetscFunctionBegin;
  if (!ksp->numbermonitors && !ksp->res_hist) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(count, &squares));
  PetscCall(cbp_device_take(squares, k->history, (size_t)count * sizeof *squares, cbp_stream()));
  for (PetscInt i = 0; i < count; i++) {
    const PetscReal norm = (PetscReal)sqrt(squares[i]);
    ksp->its = i;
    ksp->rnorm = norm;
    if (!i) ksp->rnorm0 = norm;
    PetscCall(KSPLogResidualHistory(ksp, norm));
    PetscCall(KSPMonitor(ksp, i, norm));
  }
  PetscCall(PetscFree(squares));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Between enter and leave. Ends with `why_not` where an inner KSP has to do it. */
static PetscErrorCode run(struct krylov *k, KSP ksp, Mat A, Mat P) {
  struct cbp_vector b, x;
  PetscFunctionBegin;
  PetscCall(prepare_diagonal(k, ksp->pc, P));
  PetscCall(prepare_history(k, ksp));
  PetscCall(prepare_solver(k, ksp, A));
  if (*k->why_not) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(cbp_vector_open(&b, ksp->vec_rhs, CBP_READ, CBP_STAGE_X, cbp_stream()));
  PetscCall(cbp_vector_open(&x, ksp->vec_sol, CBP_READ_WRITE, CBP_STAGE_Y, cbp_stream()));
  CBP_CHECK(cbgen_solve(k->solver, b.pointer, x.pointer, cbp_stream()), cbgen_solver_message(k->solver));
  CBP_CHECK(cbgen_solver_outcome(k->solver, &k->outcome), cbgen_solver_message(k->solver));
  PetscCall(cbp_vector_close(&x));
  PetscCall(cbp_vector_close(&b));
  PetscCall(tell_history(k, ksp));
  ksp->its = k->outcome.iterations;
  ksp->rnorm = (PetscReal)k->outcome.residual;
  ksp->reason = reason_of(k, ksp);
  PetscCall(PetscInfo(ksp, "one kernel: %d iterations, residual %g, computed from the solution %g\n",
                      k->outcome.iterations, k->outcome.residual, k->outcome.true_residual));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- PETSc's own method */

static PetscErrorCode forward_monitor(KSP inner, PetscInt iteration, PetscReal norm, void *outer) {
  KSP const ksp = outer;
  PetscFunctionBegin;
  (void)inner;
  ksp->its = iteration;
  ksp->rnorm = norm;
  PetscCall(KSPLogResidualHistory(ksp, norm));
  PetscCall(KSPMonitor(ksp, iteration, norm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode forward_converged(KSP inner, PetscInt iteration, PetscReal norm, KSPConvergedReason *reason,
                                        void *outer) {
  KSP const ksp = outer;
  PetscFunctionBegin;
  (void)inner;
  PetscCall((*ksp->converged)(ksp, iteration, norm, reason, ksp->cnvP));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode tell(struct krylov *k, KSP ksp) {
  PetscFunctionBegin;
  PetscCheck(k->fallback != (PetscEnum)ERROR, PetscObjectComm((PetscObject)ksp), PETSC_ERR_SUP, "%s: %s",
             ((PetscObject)ksp)->type_name, k->why_not);
  PetscCall(PetscInfo(ksp, "PETSc's %s instead of one kernel: %s\n", k->petsc_type, k->why_not));
  if (k->fallback == (PetscEnum)WARN && !k->told)
    PetscCall(PetscFPrintf(PetscObjectComm((PetscObject)ksp), PETSC_STDERR,
                           "%s: PETSc's own '%s' solves this (-ksp_cbgen_fallback quiet hides this line): %s\n",
                           ((PetscObject)ksp)->type_name, k->petsc_type, k->why_not));
  k->told = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode solve_inside(struct krylov *k, KSP ksp) {
  PetscFunctionBegin;
  PetscCall(tell(k, ksp));
  if (!k->inner) {
    PetscCall(KSPCreate(PetscObjectComm((PetscObject)ksp), &k->inner));
    PetscCall(KSPSetType(k->inner, k->petsc_type));
  }
  PetscCall(KSPSetPC(k->inner, ksp->pc));
  PetscCall(KSPSetNormType(k->inner, ksp->normtype));
  PetscCall(KSPSetPCSide(k->inner, ksp->pc_side));
  PetscCall(KSPSetTolerances(k->inner, ksp->rtol, ksp->abstol, ksp->divtol, ksp->max_it));
  PetscCall(KSPSetInitialGuessNonzero(k->inner, ksp->guess_zero ? PETSC_FALSE : PETSC_TRUE));
  PetscCall(KSPSetConvergenceTest(k->inner, forward_converged, ksp, NULL));
  PetscCall(KSPMonitorCancel(k->inner));
  PetscCall(KSPMonitorSet(k->inner, forward_monitor, ksp, NULL));
  if (ksp->transpose_solve) PetscCall(KSPSolveTranspose(k->inner, ksp->vec_rhs, ksp->vec_sol));
  else PetscCall(KSPSolve(k->inner, ksp->vec_rhs, ksp->vec_sol));
  PetscCall(KSPGetConvergedReason(k->inner, &ksp->reason));
  PetscCall(KSPGetIterationNumber(k->inner, &ksp->its));
  PetscCall(KSPGetResidualNorm(k->inner, &ksp->rnorm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- what PETSc calls */

static PetscErrorCode solve(KSP ksp) {
  struct krylov *const k = ksp->data;
  Mat A, P;
  PetscFunctionBegin;
  PetscCall(PCGetOperators(ksp->pc, &A, &P));
  PetscCall(check(k, ksp, A));
  if (!*k->why_not) {
    struct cbp_matrix *m;
    cbgen_operator *op;
    PetscErrorCode status;
    PetscCall(cbp_matrix_of(A, &m));
    PetscCall(cbp_operator_of(A, m, CBP_IN_SOLVER, k->method, &op)); /* what is missing on this machine shows here */
    PetscCall(cbp_device_enter());
    status = run(k, ksp, A, P);
    PetscCall(cbp_device_leave());
    PetscCall(status);
  }
  if (*k->why_not) PetscCall(solve_inside(k, ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode setup(KSP ksp) {
  PetscFunctionBegin;
  (void)ksp;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode reset(KSP ksp) {
  struct krylov *const k = ksp->data;
  PetscFunctionBegin;
  if (k->solver || k->diagonal || k->history) {
    PetscErrorCode status;
    PetscCall(cbp_device_enter());
    status = forget(k);
    PetscCall(cbp_device_leave());
    PetscCall(status);
  }
  PetscCall(KSPDestroy(&k->inner));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode destroy(KSP ksp) {
  PetscFunctionBegin;
  PetscCall(reset(ksp));
  PetscCall(KSPDestroyDefault(ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode view(KSP ksp, PetscViewer viewer) {
  const struct krylov *const k = ksp->data;
  PetscBool ascii;
  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  if (!ascii) PetscFunctionReturn(PETSC_SUCCESS);
  if (*k->why_not)
    PetscCall(PetscViewerASCIIPrintf(viewer, "  PETSc's own '%s': %s\n", k->petsc_type, k->why_not));
  else if (k->outcome.reason)
    PetscCall(PetscViewerASCIIPrintf(viewer,
                                     "  one kernel for all iterations (%s); residual computed from the solution: %g\n",
                                     cbgen_solver_form(k->solver), k->outcome.true_residual));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode setfromoptions(KSP ksp, cbp_option_items PetscOptionsObject) {
  struct krylov *const k = ksp->data;
  PetscFunctionBegin;
  PetscOptionsHeadBegin(PetscOptionsObject, "cbgen's solver options");
  PetscCall(PetscOptionsEnum("-ksp_cbgen_fallback", "what is done when one kernel cannot solve it", "", fallback_names,
                             k->fallback, &k->fallback, NULL));
  PetscCall(PetscOptionsString("-ksp_cbgen_form", "grid, cluster or block", "cbgen_solver_options", k->form, k->form,
                               sizeof k->form, NULL));
  PetscOptionsHeadEnd();
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode create(KSP ksp, const char *method, KSPType petsc_type) {
  struct krylov *k;
  PetscFunctionBegin;
  PetscCall(PetscNew(&k));
  k->method = method;
  k->petsc_type = petsc_type;
  ksp->data = k;
  ksp->ops->setup = setup;
  ksp->ops->solve = solve;
  ksp->ops->reset = reset;
  ksp->ops->destroy = destroy;
  ksp->ops->view = view;
  ksp->ops->setfromoptions = setfromoptions;
  ksp->ops->buildsolution = KSPBuildSolutionDefault;
  ksp->ops->buildresidual = KSPBuildResidualDefault;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_create_cg(KSP ksp) {
  PetscFunctionBegin;
  PetscCall(create(ksp, "cg", KSPCG));
  PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_UNPRECONDITIONED, PC_LEFT, 3));
  PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_PRECONDITIONED, PC_LEFT, 2));
  PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_NATURAL, PC_LEFT, 2));
  PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_NONE, PC_LEFT, 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_create_bcgs(KSP ksp) {
  PetscFunctionBegin;
  PetscCall(create(ksp, "bicgstab", KSPBCGS));
  PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_UNPRECONDITIONED, PC_RIGHT, 3));
  PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_PRECONDITIONED, PC_LEFT, 2));
  PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_NONE, PC_RIGHT, 1));
  PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_NONE, PC_LEFT, 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}
