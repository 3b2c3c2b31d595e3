/* SPDX-License-Identifier: Apache-2.0 */
/* A wave, u'' = -K u, by the leapfrog method: next = (2 I - dt dt K) now - before. Every step is one product
 * with beta = -1 that writes over `before`, and many steps are one CUDA graph: what launching costs is paid
 * once.
 *
 *   graph_loop [MATRIX]      K, a Matrix Market file, or a shape: see open_matrix in common/common.h */
#include "common/common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 2000, STEPS_PER_GRAPH = 100 }; /* the latter even: then u[0] is `now` before and after it */

struct wave {
  struct space space;
  double *start, *u[2]; /* at first; now and before */
};

/* K becomes B = 2 I - dt dt K, with a dt for which the method is stable if K is symmetric positive
 * semidefinite: its square times K's norm must be below 4. */
static void make_step(struct matrix *K) {
  double *I = identity_in(K), norm = 0;
  for (int64_t row = 0; row < K->rows; row++) {
    double sum = 0;
    for (int32_t k = K->row_ptr[row]; k < K->row_ptr[row + 1]; k++) sum += fabs(K->values[k]);
    norm = fmax(norm, sum);
  }
  for (int64_t k = 0; k < K->nnz; k++) K->values[k] = 2 * I[k] - 3 / norm * K->values[k];
  free(I);
}

static void steps(const struct wave *wave, const struct contender *contender, int count) {
  for (int i = 0; i < count; i++)
    contender->apply(contender->user, wave->u[i % 2], wave->u[1 - i % 2], wave->space.stream);
}

/* All of them, launched one by one or, when there is one, by the graph; the end goes to `result`. */
static void run(const struct wave *wave, struct contender *contender, cudaGraphExec_t graph, double *result) {
  const struct space *v = &wave->space;
  for (int turn = 0; turn < 2; turn++) { /* the first is a warm-up */
    for (int i = 0; i < 2; i++) copy(v, wave->start, wave->u[i]);
    const struct stopwatch watch = start_watch(v->stream);
    for (int i = 0; graph && i < STEPS; i += STEPS_PER_GRAPH) CUDA(cudaGraphLaunch(graph, v->stream));
    if (!graph) steps(wave, contender, STEPS);
    contender->loop = stop_watch(watch, v->stream);
  }
  contender->iterations = STEPS;
  copy_to_host(result, wave->u[0], v->n);
}

/* The contender with a graph, whose making counts as set-up. */
static struct contender run_graph(const struct wave *wave, struct contender contender, double *result) {
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  const double start = now();
  CUDA(cudaStreamBeginCapture(wave->space.stream, cudaStreamCaptureModeThreadLocal));
  steps(wave, &contender, STEPS_PER_GRAPH);
  CUDA(cudaStreamEndCapture(wave->space.stream, &graph));
  CUDA(cudaGraphInstantiate(&executable, graph, 0));
  contender.setup += now() - start;
  run(wave, &contender, executable, result);
  CUDA(cudaGraphExecDestroy(executable));
  CUDA(cudaGraphDestroy(graph));
  return contender;
}

/* |result - the host's| in units of what rounding may do: a step's errors, (longest row + 3) roundings of 6
 * times the largest wave on either side, grow linearly from then on. */
static double host_error(const struct matrix *B, const double *start, const double *result) {
  double *u[2] = {host_vector(B->rows), host_vector(B->rows)}, *product = host_vector(B->rows);
  double size = 0, error = 0, longest = 0;
  for (int i = 0; i < 2; i++) memcpy(u[i], start, (size_t)B->rows * sizeof *start);
  for (int step = 0; step < STEPS; step++) {
    double *const next = u[1 - step % 2];
    double sum = 0;
    host_multiply(B, u[step % 2], product);
    for (int64_t i = 0; i < B->rows; i++) {
      next[i] = product[i] - next[i];
      sum += next[i] * next[i];
    }
    size = fmax(size, sqrt(sum));
  }
  for (int64_t i = 0; i < B->rows; i++) {
    error += (result[i] - u[0][i]) * (result[i] - u[0][i]);
    longest = fmax(longest, B->row_ptr[i + 1] - B->row_ptr[i]);
  }
  free(u[0]), free(u[1]), free(product);
  return sqrt(error) / (6.0 * STEPS * STEPS * (longest + 3) * 1.2e-16 * size);
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
  const cbgen_product one = {.struct_size = sizeof one, .alpha = 1, .beta = -1, .x = x, .y = y, .stream = stream};
  if (cbgen_multiply(op, &one)) fail("cbgen: %s", cbgen_operator_message(op));
}

int main(int argc, char **argv) {
  struct matrix B;
  struct baseline baseline;
  struct wave wave;
  open_square_matrix(&B, argc > 1 ? argv[1] : "diffusion:24");
  make_step(&B);
  double *start = host_vector(B.rows), *launched = host_vector(B.rows), *replayed = host_vector(B.rows);
  for (int64_t i = 0; i < B.rows; i++) start[i] = i < B.rows / 8;
  open_space(&wave.space, B.rows);
  wave.start = vector_from(&wave.space, start, B.rows);
  for (int i = 0; i < 2; i++) wave.u[i] = new_vector(&wave.space, 0);

  struct contender table[4] = {
      create_baseline(&baseline, &B, CUSPARSE_OPERATION_NON_TRANSPOSE, wave.start, wave.u[1], wave.space.stream)};
  baseline.beta = -1;
  run(&wave, &table[0], NULL, launched);
  table[2] = run_graph(&wave, table[0], replayed);
  table[2].name = "cuSPARSE, graph";
  const double baseline_error = host_error(&B, start, replayed);

  const double clock = now();
  cbgen_operator *op = compile(&B);
  table[1] = (struct contender){.name = "cbgen", .apply = apply_cbgen, .user = op};
  end_setup(&table[1], clock, wave.start, wave.u[1], wave.space.stream);
  run(&wave, &table[1], NULL, launched);
  table[3] = run_graph(&wave, table[1], replayed);
  table[3].name = "cbgen, graph";

  print_table("graph_loop", &B, table, 4);
  print_break_even(&table[0], &table[1]);
  print_break_even(&table[2], &table[3]);
  print_setup(op);
  int passed = print_check("cuSPARSE's graph against the host, in units of its bound", baseline_error, 1);
  passed &= print_check("cbgen's graph, likewise", host_error(&B, start, replayed), 1);
  const int differ = memcmp(launched, replayed, (size_t)B.rows * sizeof *start) != 0;
  passed &= print_check("cbgen's graph differs from its launches (1: it does)", differ, 0);
  cbgen_operator_free(op);
  free_baseline(&baseline);
  close_space(&wave.space);
  free_matrix(&B);
  free(start), free(launched), free(replayed);
  return passed ? 0 : 1;
}
