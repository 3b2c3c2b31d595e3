/* SPDX-License-Identifier: Apache-2.0 */
/* Heat in a block that conducts unevenly, by implicit Euler: (I + dt K) u' = u in every step. Steps grow
 * while the heat spreads, so the matrix gets other values in the same pattern: they are computed on the
 * device, and handed over there by cbgen_update_values. Each step is solved by conjugate gradients.
 *
 *   time_stepping [MATRIX]      K, a Matrix Market file, or a shape: see open_matrix in common/common.h */
#include "common/common.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define TOLERANCE 1e-9 /* of a step's residual, relative to u */
#define FIRST_STEP 0.05
#define GROWTH 1.1
enum { STEPS = 50, MOST = 2000 }; /* MOST: iterations of a step's solver */

struct solver {
  struct space space;
  int nnz;
  double *K, *I, *values;     /* nnz entries each: values = dt K + I, in the pattern of K */
  double *first, *before, *u; /* heat: at first, before this step, now */
  double *r, *p, *q;
};

/* u' into s->u; returns the products. */
static int step(const struct solver *s, apply_function apply, void *user) {
  const struct space *v = &s->space;
  const double goal = TOLERANCE * norm(v, s->u);
  int done = 1;
  copy(v, s->u, s->before);
  apply(user, s->u, s->q, v->stream); /* u is where it starts from, too */
  copy(v, s->u, s->r);
  add(v, -1, s->q, s->r);
  copy(v, s->r, s->p);
  for (double rr = dot(v, s->r, s->r); sqrt(rr) > goal && done < MOST; done++) {
    apply(user, s->p, s->q, v->stream);
    const double before = rr, alpha = rr / dot(v, s->p, s->q);
    add(v, alpha, s->p, s->u);
    add(v, -alpha, s->q, s->r);
    rr = dot(v, s->r, s->r);
    scale(v, rr / before, s->p);
    add(v, 1, s->r, s->p);
  }
  return done;
}

/* All steps; returns the products. New values go to `values`, where cuSPARSE reads them; cbgen takes them
 * from there. */
static long run(const struct solver *s, struct contender *contender, double *values, cbgen_operator *op,
                int steps) {
  const struct space *v = &s->space;
  const cbgen_update update = {sizeof update, values, CBGEN_F64, CBGEN_DEVICE, v->stream};
  const struct stopwatch watch = start_watch(v->stream);
  const double one = 1;
  double dt = FIRST_STEP;
  long products = 0;
  copy(v, s->first, s->u);
  for (int i = 0; i < steps; i++, dt *= GROWTH) {
    BLAS(cublasDgeam(v->blas, CUBLAS_OP_N, CUBLAS_OP_N, s->nnz, 1, &dt, s->K, s->nnz, &one, s->I, s->nnz,
                     values, s->nnz)); /* values = dt K + I */
    if (op && cbgen_update_values(op, &update)) fail("cbgen: %s", cbgen_operator_message(op));
    products += step(s, contender->apply, contender->user);
  }
  contender->loop = stop_watch(watch, v->stream);
  contender->iterations = steps;
  return products;
}

/* The last step's residual, computed on the host. */
static double last_residual(const struct solver *s, const struct matrix *A) {
  struct matrix last = *A;
  last.values = identity_in(A);
  for (int64_t k = 0; k < A->nnz; k++) last.values[k] += FIRST_STEP * pow(GROWTH, STEPS - 1) * A->values[k];
  const double residual = host_residual(&last, s->before, s->u);
  free(last.values);
  return residual;
}

static void open_solver(struct solver *s, const struct matrix *A) {
  double *heat = host_vector(A->rows), *I = identity_in(A);
  for (int64_t row = 0; row < A->rows; row++) heat[row] = row < A->rows / 4 ? 2 : 1;
  open_space(&s->space, A->rows);
  s->nnz = (int)A->nnz;
  s->K = vector_from(&s->space, A->values, A->nnz);
  s->I = vector_from(&s->space, I, A->nnz);
  s->values = vector_from(&s->space, I, A->nnz);
  s->first = vector_from(&s->space, heat, A->rows);
  double **const vectors[] = {&s->before, &s->u, &s->r, &s->p, &s->q};
  for (int i = 0; i < 5; i++) *vectors[i] = new_vector(&s->space, 0);
  free(heat);
  free(I);
}

static cbgen_operator *compile(const struct matrix *A) {
  const cbgen_request request = {.struct_size = sizeof request, .values = CBGEN_VALUES_MUTABLE};
  const cbgen_csr csr = csr_of(A);
  cbgen_context *context;
  cbgen_operator *op;
  if (cbgen_context_create(&context)) fail("cbgen: out of memory");
  if (cbgen_compile(context, &csr, &request, &op)) fail("cbgen: %s", cbgen_message(context));
  cbgen_context_destroy(context); /* operators outlive it */
  return op;
}

static void apply_cbgen(void *op, const double *x, double *y, cudaStream_t stream) {
  const cbgen_product product = {.struct_size = sizeof product, .alpha = 1, .x = x, .y = y, .stream = stream};
  if (cbgen_multiply(op, &product)) fail("cbgen: %s", cbgen_operator_message(op));
}

int main(int argc, char **argv) {
  struct matrix A;
  struct baseline baseline;
  struct solver s;
  open_square_matrix(&A, argc > 1 ? argv[1] : "diffusion:96");
  open_solver(&s, &A);
  struct contender table[2] = {
      create_baseline(&baseline, &A, CUSPARSE_OPERATION_NON_TRANSPOSE, s.first, s.q, s.space.stream)};
  run(&s, &table[0], baseline.values, NULL, 3); /* a warm-up */
  const long baseline_products = run(&s, &table[0], baseline.values, NULL, STEPS);
  const double baseline_residual = last_residual(&s, &A);

  const double start = now();
  cbgen_operator *op = compile(&A);
  table[1] = (struct contender){.name = "cbgen", .apply = apply_cbgen, .user = op};
  end_setup(&table[1], start, s.first, s.q, s.space.stream);
  run(&s, &table[1], s.values, op, 3);
  const long products = run(&s, &table[1], s.values, op, STEPS);

  print_table("time_stepping", &A, table, 2);
  printf("an iteration is a step of one update and some products: %ld in all with cuSPARSE, %ld with cbgen\n\n",
         baseline_products, products);
  print_break_even(&table[0], &table[1]);
  print_setup(op);
  int passed = print_check("residual of the last step with cuSPARSE, on the host", baseline_residual, 2 * TOLERANCE);
  passed &= print_check("residual of the last step with cbgen, on the host", last_residual(&s, &A), 2 * TOLERANCE);
  cbgen_operator_free(op);
  free_baseline(&baseline);
  close_space(&s.space);
  free_matrix(&A);
  return passed ? 0 : 1;
}
