/* SPDX-License-Identifier: Apache-2.0 */
/* PageRank of a directed graph: r = d (A' (r / links) + dangling) + (1 - d) / n, until nothing changes.
 *
 *   pagerank [GRAPH]      a Matrix Market file, or a shape: see open_matrix in common/common.h
 *
 * Entry (i, j) of A is a link from page i to page j; weights are ignored. cbgen is asked for the transpose,
 * and told that all values are 1 and stay so. A page without links (dangling) gives its rank to all pages:
 * what the product does not hand on, of the total of 1, is spread evenly, and with it the jump 1 - d. */
#include "common/common.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define DAMPING 0.85
#define TOLERANCE 1e-10 /* of the sum of all changes in one iteration */
enum { MOST = 500 };    /* iterations */

struct solver {
  struct space space;
  double *ones, *share;    /* share: 1 / links out, 0 without any */
  double *r, *next, *sent; /* ranks; what goes over each link of a page */
};

/* Leaves the ranks in s->r; returns the iterations. show: prints every tenth change. */
static int solve(struct solver *s, apply_function apply, void *user, int show) {
  const struct space *v = &s->space;
  double change = 1;
  int done = 0;
  copy(v, s->ones, s->r);
  scale(v, 1.0 / v->n, s->r);
  while (change > TOLERANCE && done++ < MOST) {
    times(v, s->r, s->share, s->sent);
    apply(user, s->sent, s->next, v->stream); /* next = d A' sent */
    add(v, (1 - sum_of_sizes(v, s->next)) / v->n, s->ones, s->next);
    add(v, -1, s->next, s->r);
    change = sum_of_sizes(v, s->r);
    double *const ranks = s->next;
    s->next = s->r;
    s->r = ranks;
    if (show && (done % 10 == 0 || change <= TOLERANCE)) printf("iteration %d: change %.2g\n", done, change);
  }
  return done;
}

static void run(struct solver *solver, struct contender *contender, int show) {
  solve(solver, contender->apply, contender->user, show); /* a warm-up */
  const struct stopwatch watch = start_watch(solver->space.stream);
  contender->iterations = solve(solver, contender->apply, contender->user, 0);
  contender->loop = stop_watch(watch, solver->space.stream);
}

/* What one more iteration changes, computed on the host from A itself; *sum: of the ranks. */
static double host_change(const struct matrix *A, const double *device_r, double *sum) {
  double *r = host_vector(A->rows), *next = host_vector(A->rows), change = 0;
  long double kept = 0, total = 0; /* sums of very many numbers */
  copy_to_host(r, device_r, A->rows);
  for (int64_t page = 0; page < A->rows; page++) {
    const int32_t links = A->row_ptr[page + 1] - A->row_ptr[page];
    for (int32_t k = A->row_ptr[page]; k < A->row_ptr[page + 1]; k++)
      next[A->col_idx[k]] += DAMPING * r[page] / links;
    kept += links ? (1 - DAMPING) * r[page] : r[page];
  }
  for (int64_t page = 0; page < A->rows; page++) {
    change += fabs(next[page] + (double)kept / (double)A->rows - r[page]);
    total += r[page];
  }
  *sum = (double)total;
  free(r);
  free(next);
  return change;
}

static void open_solver(struct solver *s, struct matrix *A) {
  double *share = host_vector(A->rows);
  for (int64_t page = 0; page < A->rows; page++)
    if (A->row_ptr[page + 1] > A->row_ptr[page])
      share[page] = 1.0 / (A->row_ptr[page + 1] - A->row_ptr[page]);
  for (int64_t k = 0; k < A->nnz; k++) A->values[k] = 1; /* for cuSPARSE, which must have some */
  open_space(&s->space, A->rows);
  s->ones = new_vector(&s->space, 1);
  s->share = vector_from(&s->space, share, A->rows);
  double **const vectors[] = {&s->r, &s->next, &s->sent};
  for (int i = 0; i < 3; i++) *vectors[i] = new_vector(&s->space, 0);
  free(share);
}

static cbgen_operator *compile(const struct matrix *A) {
  const cbgen_request request = {.struct_size = sizeof request, .values = CBGEN_VALUES_FIXED, .transpose = 1};
  cbgen_csr csr = csr_of(A);
  cbgen_context *context;
  cbgen_operator *op;
  csr.values = NULL; /* all are 1 */
  if (cbgen_context_create(&context)) fail("cbgen: out of memory");
  if (cbgen_compile(context, &csr, &request, &op)) fail("cbgen: %s", cbgen_message(context));
  cbgen_context_destroy(context); /* operators outlive it */
  return op;
}

static void apply_cbgen(void *op, const double *x, double *y, cudaStream_t stream) {
  const cbgen_product product = {.struct_size = sizeof product, .alpha = DAMPING, .x = x, .y = y, .stream = stream};
  if (cbgen_multiply(op, &product)) fail("cbgen: %s", cbgen_operator_message(op));
}

int main(int argc, char **argv) {
  struct matrix A;
  struct baseline baseline;
  struct solver s;
  double sum, baseline_sum;
  open_square_matrix(&A, argc > 1 ? argv[1] : "web:18");
  open_solver(&s, &A);
  struct contender table[2] = {
      create_baseline(&baseline, &A, CUSPARSE_OPERATION_TRANSPOSE, s.share, s.next, s.space.stream)};
  baseline.alpha = DAMPING;
  run(&s, &table[0], 0);
  const double baseline_change = host_change(&A, s.r, &baseline_sum);

  const double start = now();
  cbgen_operator *op = compile(&A);
  table[1] = (struct contender){.name = "cbgen", .apply = apply_cbgen, .user = op};
  end_setup(&table[1], start, s.share, s.next, s.space.stream);
  run(&s, &table[1], 1);
  const double change = host_change(&A, s.r, &sum);

  print_table("pagerank", &A, table, 2);
  print_break_even(&table[0], &table[1]);
  print_setup(op);
  int passed = print_check("change by one more iteration, on the host, cuSPARSE", baseline_change, 2 * TOLERANCE);
  passed &= print_check("change by one more iteration, on the host, cbgen", change, 2 * TOLERANCE);
  passed &= print_check("sum of the ranks less 1, cuSPARSE", fabs(baseline_sum - 1), 1e-12);
  passed &= print_check("sum of the ranks less 1, cbgen", fabs(sum - 1), 1e-12);
  cbgen_operator_free(op);
  free_baseline(&baseline);
  close_space(&s.space);
  free_matrix(&A);
  return passed ? 0 : 1;
}
