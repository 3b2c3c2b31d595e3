// SPDX-License-Identifier: Apache-2.0
/* What the files of bench_api_check share: one check after the other, operators with their matrices, comparisons.
 *
 *   api_check.c     the list of checks; forms, types, shapes, new values, save and load, the cache, contexts
 *   api_streams.c   streams: graphs, threads, misuse, arrays that a stream makes ready
 *   api_races.c     launches that overlap: the same work with and without waiting between its steps
 */
#ifndef CBGEN_BENCH_API_CHECK_H
#define CBGEN_BENCH_API_CHECK_H

#include "bench/sample.h"

#include <setjmp.h>

struct checks {
  int quick;
  void *stream;              /* of GPU 0 */
  struct rewriter *rewriter; /* likewise */
  char cache[64];            /* directory that the checks share */
  jmp_buf end;               /* of the check that runs, when it fails */
  char message[600];         /* why it failed */
  char detail[300];          /* what it has to tell */
  long products, refused;    /* compared products; matrices that a recipe refused */
};

/* Ends the check that runs. What it owned is left: the program's status says that it failed. Main thread only. */
_Noreturn void fail(struct checks *checks, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define EXPECT(checks, condition, ...)                                                                                 \
  do {                                                                                                                 \
    if (!(condition)) fail(checks, __VA_ARGS__);                                                                       \
  } while (0)

void must(struct checks *checks, const cbgen_context *context, cbgen_status status, const char *what);
void must_operator(struct checks *checks, const cbgen_operator *op, cbgen_status status, const char *what);

/* A context with settings: "recipe=sell type=f32". `cache` NULL: the checks' own. */
cbgen_context *new_context(struct checks *checks, const char *settings, const char *cache);

/* An operator with what it came from. */
struct bed {
  cbgen_context *context;
  struct sample sample;
  int transposed;
  cbgen_operator *op; /* NULL: the recipe refuses the matrix */
};

struct bed new_bed(struct checks *checks, const char *settings, struct specification specification, struct form form,
                   cbgen_request request);
void free_bed(struct bed *bed);
int has_scratch(const cbgen_operator *op);

/* A product with vectors of its own, on the host compared. `op` NULL: the bed's. */
void check_product(struct checks *checks, const struct bed *bed, cbgen_operator *op, double alpha, double beta,
                   void *stream);
/* The bits of y = 0.75 A x + 0.5 y for vectors drawn from `seed`; the caller's. */
unsigned char *bits_of_product(struct checks *checks, cbgen_operator *op, uint64_t seed, size_t *bytes);
/* Whether two operators give the same bits. `what` says what was done. */
void check_same(struct checks *checks, cbgen_operator *op, cbgen_operator *other, const char *what);

/* Recipes that the library knows, each with a matrix that it takes. */
struct recipe {
  const char *settings;
  struct specification specification; /* square */
};
extern struct recipe recipes[];
extern int recipes_count;

/* A new directory for a cache, and its removal. */
void make_directory(struct checks *checks, char path[64]);
void remove_directory(const char *path);

/* ---- api_streams.c and api_races.c */

void check_graphs(struct checks *checks);
void check_threads(struct checks *checks);
void check_misuse(struct checks *checks);
void check_ready_arrays(struct checks *checks);
void check_teeth(struct checks *checks);
void check_races(struct checks *checks);
void check_graph_races(struct checks *checks);
void check_two_streams(struct checks *checks);

#endif
