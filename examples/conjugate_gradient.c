/* SPDX-License-Identifier: Apache-2.0 */
/* A x = b by conjugate gradients with Jacobi's preconditioner (the diagonal), for a symmetric positive
 * definite matrix.
 *
 *   conjugate_gradient [MATRIX]      a Matrix Market file, or a shape: see open_matrix in common/common.h
 *
 * The solver asks for nothing but y = A x (`apply`), so cbgen and cuSPARSE go through the same code; then cbgen_solve
 * runs the same method as one kernel. */
#include "common/common.h"

#include <stdlib.h>

#define TOLERANCE 1e-8 /* of the residual, relative to b */
enum { MOST = 20000 }; /* iterations */

struct solver {
  struct space space;
  double *b, *diagonal, *inverse; /* the right side, the diagonal, and 1 / diagonal */
  double *x, *r, *z, *p, *q;
};

/* Starts from 0 and leaves the solution in s->x; returns the iterations. */
static int solve(const struct solver *s, apply_function apply, void *user, int most) {
  const struct space *v = &s->space;
  const double goal = TOLERANCE * norm(v, s->b);
  double rz = 0;
  int done = 0;
  clear(v, s->x);
  clear(v, s->p);
  copy(v, s->b, s->r);
  for (; done < most && norm(v, s->r) > goal; done++) {
    const double before = rz;
    times(v, s->r, s->inverse, s->z); /* z = r / diagonal */
    rz = dot(v, s->r, s->z);
    scale(v, done ? rz / before : 0, s->p);
    add(v, 1, s->z, s->p); /* p = z + beta p */
    apply(user, s->p, s->q, v->stream);
    const double curvature = dot(v, s->p, s->q);
    if (!(curvature > 0)) fail("the matrix is not positive definite");
    const double alpha = rz / curvature;
    add(v, alpha, s->p, s->x);
    add(v, -alpha, s->q, s->r);
  }
  return done;
}

static void run(const struct solver *solver, struct contender *contender) {
  solve(solver, contender->apply, contender->user, 5); /* a warm-up */
  const struct stopwatch watch = start_watch(solver->space.stream);
  contender->iterations = solve(solver, contender->apply, contender->user, MOST);
  contender->loop = stop_watch(watch, solver->space.stream);
}

static void open_solver(struct solver *s, const struct matrix *A) {
  double *diagonal = host_vector(A->rows), *inverse = host_vector(A->rows);
  for (int64_t row = 0; row < A->rows; row++)
    for (int32_t k = A->row_ptr[row]; k < A->row_ptr[row + 1]; k++)
      if (A->col_idx[k] == row) inverse[row] = 1 / (diagonal[row] = A->values[k]);
  open_space(&s->space, A->rows);
  s->b = new_vector(&s->space, 1);
  s->diagonal = vector_from(&s->space, diagonal, A->rows);
  s->inverse = vector_from(&s->space, inverse, A->rows);
  double **const vectors[] = {&s->x, &s->r, &s->z, &s->p, &s->q};
  for (int i = 0; i < 5; i++) *vectors[i] = new_vector(&s->space, 0);
  free(diagonal);
  free(inverse);
}

static cbgen_operator *compile(const struct matrix *A) {
  const cbgen_csr csr = csr_of(A);
  cbgen_context *context;
  cbgen_operator *op;
  if (cbgen_context_create(&context)) fail("cbgen: out of memory");
  if (cbgen_compile(context, &csr, NULL, &op)) fail("cbgen: %s", cbgen_message(context));
  cbgen_context_destroy(context); /* operators outlive it */
  return op;
}

static void apply_cbgen(void *op, const double *x, double *y, cudaStream_t stream) {
  const cbgen_product product = {.struct_size = sizeof product, .alpha = 1, .x = x, .y = y, .stream = stream};
  if (cbgen_multiply(op, &product)) fail("cbgen: %s", cbgen_operator_message(op));
}

/* The whole loop as one kernel, which leaves the solution in s->x. */
static void run_kernel(const struct solver *s, cbgen_operator *op, struct contender *contender) {
  const cbgen_solver_options options = {.struct_size = sizeof options, .relative_tolerance = TOLERANCE,
                                        .max_iterations = MOST, .diagonal = s->diagonal};
  const double made = contender->setup, begin = now();
  cbgen_solver *solver;
  cbgen_outcome outcome;
  if (cbgen_solver_create(op, "cg", &options, &solver)) fail("cbgen: %s", cbgen_operator_message(op));
  contender->setup = made + (now() - begin);
  struct stopwatch watch = {0};
  for (int warm = 0; warm < 2; warm++) {
    clear(&s->space, s->x);
    if (warm) watch = start_watch(s->space.stream);
    if (cbgen_solve(solver, s->b, s->x, s->space.stream)) fail("cbgen: %s", cbgen_solver_message(solver));
  }
  contender->loop = stop_watch(watch, s->space.stream);
  if (cbgen_solver_outcome(solver, &outcome)) fail("cbgen: %s", cbgen_solver_message(solver));
  contender->iterations = outcome.iterations;
  cbgen_solver_free(solver);
}

int main(int argc, char **argv) {
  struct matrix A;
  struct baseline baseline;
  struct solver s;
  open_square_matrix(&A, argc > 1 ? argv[1] : "elasticity:48");
  open_solver(&s, &A);
  struct contender table[3] = {
      create_baseline(&baseline, &A, CUSPARSE_OPERATION_NON_TRANSPOSE, s.b, s.q, s.space.stream)};
  run(&s, &table[0]);
  const double baseline_residual = host_residual(&A, s.b, s.x);

  const double start = now();
  cbgen_operator *op = compile(&A);
  table[1] = (struct contender){.name = "cbgen", .apply = apply_cbgen, .user = op};
  end_setup(&table[1], start, s.b, s.q, s.space.stream);
  run(&s, &table[1]);
  const double residual = host_residual(&A, s.b, s.x);
  table[2] = table[1];
  table[2].name = "cbgen, one kernel";
  run_kernel(&s, op, &table[2]);

  print_table("conjugate_gradient", &A, table, 3);
  print_break_even(&table[0], &table[2]);
  print_setup(op);
  int passed = print_check("residual with cuSPARSE, on the host", baseline_residual, 2 * TOLERANCE);
  passed &= print_check("residual with cbgen, on the host", residual, 2 * TOLERANCE);
  passed &= print_check("residual with cbgen's kernel, on the host", host_residual(&A, s.b, s.x), 2 * TOLERANCE);
  cbgen_operator_free(op);
  free_baseline(&baseline);
  close_space(&s.space);
  free_matrix(&A);
  return passed ? 0 : 1;
}
