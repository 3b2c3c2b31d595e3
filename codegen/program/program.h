// SPDX-License-Identifier: Apache-2.0
/* Programs: a few products and what happens between them, as one kernel. A solver's iteration is one.
 *
 * A program is a list of sections. Each begins with a product y = A x of two of the program's vectors, or none, and
 * goes on with steps:
 *
 *   rows      statements (analysis/statements) for each row, without `ax`. Their scalars are the program's; the results
 *             of their reductions become scalars that later steps read
 *   scalars   statements whose `in`, `out` and `inout` names are scalars: every thread computes them
 *   stop      the same, with an `out stop`: other than 0, the program goes to its last section, and that is the reason
 *   go        the same, with an `out go`: other than 0, the program goes on with the step's section
 *   template  a definition of templates/steps.cu.in, which says what it does; in programs of the form "graph" with a
 *             basis one of templates/stages.cu.in
 *   call      the caller's preconditioner makes the vector `to` of `from`: of the form "graph" alone
 *   columns   as rows, for each column: of a program of the form "graph" that has vectors of two lengths
 *   swap      the vectors `from` and `to` change places: what has been made beside the one that a product reads is in
 *             its place from here on
 *   count     an iteration is over
 *   most      after the most iterations that are allowed, the program goes to its last section
 *   note      the scalar `text` is the residual's square now, for the outcome and the caller's history
 *
 * After its last step a section is followed by the one that it names. The last section's end is the program's.
 *
 * A kernel has one of several forms:
 *
 *   grid      thread blocks on all multiprocessors, launched cooperatively: all are resident, and meet in L2
 *   cluster   one thread-block cluster: its hardware barrier takes a third of that, and sums go through the
 *             multiprocessors' shared memory
 *   block     one thread block, which has only itself to wait for
 *
 * All may have vectors in shared memory for the whole solution: the latter two all of them (resident.h), a grid those
 * of which each thread reads its own rows alone (kept.h).
 *
 * A fourth form, "graph", is several kernels around the operator's own products, none of which is the matrix's: stages.h.
 *
 * Each thread block takes a share of the virtual thread blocks that the product's launches have, several of them side
 * by side (groups) where they do not share memory; and all meet where one reads what others have written. Rows
 * belong to the same threads in every step. Where each row is committed once, and always by the same thread, the sums
 * that begin a section's steps are added up in the product itself. Sums of thread blocks are joined in a fixed order,
 * so that all bits repeat on grids of the same size.
 *
 * A section may have statements `before` its product, which make the vector that it multiplies. If that becomes
 * fma(a scalar, itself, another vector), and all of x is read one by one, it is made in the product, wherever an entry
 * is read, from the two; the row's own statements are executed where the row is committed. So there is neither a pass
 * over vectors nor a meeting for it. The vector then alternates between two places, as others still read the old one.
 *
 * The text comes from that of an operator's specialised kernels: regions and vectors stay as they are, and the kernels
 * become functions of the number of a virtual thread block. */
#ifndef CBGEN_CODEGEN_PROGRAM_PROGRAM_H
#define CBGEN_CODEGEN_PROGRAM_PROGRAM_H

#include "base/status.h"
#include "base/text.h"
#include "base/types.h"

#include <stdint.h>

enum cb_step_kind {
  CB_STEP_END,
  CB_STEP_ROWS,
  CB_STEP_COLUMNS,
  CB_STEP_SCALARS,
  CB_STEP_STOP,
  CB_STEP_GO,
  CB_STEP_TEMPLATE,
  CB_STEP_CALL,
  CB_STEP_SWAP,
  CB_STEP_COUNT,
  CB_STEP_MOST,
  CB_STEP_NOTE
};

struct cb_step {
  enum cb_step_kind kind;
  const char *text;
  int section;           /* of "go" */
  const char *from, *to; /* vectors of "call" and "swap", and of "template" where it takes any */
};

enum {
  CB_MOST_STEPS = 16,
  CB_MOST_SECTIONS = 12,
  CB_MOST_PARAMETERS = 12,
  CB_MOST_GIVEN = 12,
  CB_MOST_WORK = 24,
  CB_MOST_RESTART = 64, /* vectors of a basis, one less */
  CB_MOST_BLOCK = 16    /* rows of a preconditioner's block */
};

struct cb_section {
  const char *from, *to; /* of the product; NULL: there is none */
  const char *sums; /* rows statements with reductions, behind the product, which may make anew `to`, as an inout, and
                     * vectors that no product reads before it is over; NULL: none */
  struct cb_step steps[CB_MOST_STEPS];
  int next; /* section that follows; the last one has none, and its first sum is the true residual's square */
  const char *before; /* rows statements without reductions, of which `from` is an inout; NULL: none */
  const char *old;    /* a vector of the program's own where `from` is while it is made anew; NULL: made in place */
  int heads;          /* 1: the product is that with heads of split values */
  int transposed;     /* the product is with the transposed matrix: form "graph" alone */
  int times; /* so often it is executed, with its neighbours of the same number, before others get their turn, which
              * costs nothing but what it does: form "graph" alone. The first of them and what follows begin with a
              * product; those that are left earlier are passed by. 0: once */
};

/* A vector of the program's own that begins as the caller's; where he has none, as a number that CUDA knows by this
 * text (NULL: he must have it). At the end he receives `result` there; NULL: nothing. */
struct cb_copied {
  const char *vector, *otherwise, *result;
};

/* A number that the outcome has behind reason and iterations, as an expression of scalars, which end in "_". */
struct cb_told {
  const char *member, *value;
};

struct cb_program {
  const char *name;
  const char *parameters[CB_MOST_PARAMETERS]; /* numbers that the caller gives, as scalars; NULL ends them */
  const char *given[CB_MOST_GIVEN];           /* vectors that the caller gives; NULL ends them */
  const char *work[CB_MOST_WORK];             /* vectors of the program's own */
  const char *basis;      /* restart + 1 more of them, one behind the other; NULL: none */
  const char *scalars[8]; /* that templates assign */
  const char *value;      /* scalar for the outcome; NULL: 0 */
  const struct cb_copied *copied; /* ends with a vector NULL; then `given` has none. NULL: there is none */
  const struct cb_told *told;     /* the outcome; ends with a member NULL. NULL: struct cb_program_outcome */
  const char *const *columns; /* which vectors are as long as a row of the matrix; others are as long as a column. NULL:
                               * the matrix is square */
  const struct cb_program *staged; /* the same method for the form "graph", where that has other steps; else NULL */
  int is_real;            /* it is not for complex numbers */
  const struct cb_program *pipelined; /* the same method with fewer meetings, for other forms; NULL: there is none */
  int blocks_per_sm;      /* as many thread blocks as steps have registers for; 0: the usual number */
  struct cb_section sections[CB_MOST_SECTIONS];
  int sections_count;
  int inner; /* of the sections that repeat the first, if it repeats by itself most of the time: then the others'
              * products are executed only where it is left. 0: there is none. Other forms go from section to section
              * as they are */
};

/* Reasons to stop, as the texts have them, and as the outcome tells them. */
enum cb_reason {
  CB_REASON_CONVERGED = 1,
  CB_REASON_ITERATIONS = 2,
  CB_REASON_BREAKDOWN = 3,
  CB_REASON_NOT_A_NUMBER = 4,
  CB_REASON_STOPPED = 5, /* from the host */
  CB_REASON_PRIMAL_INFEASIBLE = 6, /* of linear programs */
  CB_REASON_DUAL_INFEASIBLE = 7
};

/* What residuals are multiplied by: nothing, the inverse of a diagonal that the caller gives, or the inverses of dense
 * blocks along the diagonal, which he gives (`inverse`: rows of a block in a row, as many planes as blocks have
 * columns, each of an entry for each row), or by what he does himself. */
enum cb_preconditioning { CB_PLAIN, CB_DIAGONAL, CB_BLOCKS, CB_CALLED };

struct cb_program_form;

/* The program of that name. NULL: there is none. */
const struct cb_program *cb_program_find(const char *name, enum cb_preconditioning preconditioning);

/* What a method is in that form. CB_ERR_UNSUPPORTED: it has nothing with fewer meetings, which the form asks for. */
enum cb_status cb_program_in_form(const struct cb_program **out, const struct cb_program *program,
                                  const struct cb_program_form *form, struct cb_diag *diag);

/* Whether some product is with heads, so that it takes an operator with split values. */
int cb_program_has_heads(const struct cb_program *program);

/* CB_ERR_UNSUPPORTED: the form's `apart`. Such a product has fewer threads on a multiprocessor than by itself, and no
 * vectors beside it. `shares`: its thread blocks use shared memory. */
struct cb_program_request;
enum cb_status cb_program_apart(const struct cb_program_request *request, int shares, struct cb_diag *diag);

/* How many names a list has, which NULL ends. */
int cb_program_count(const char *const *names);

/* The names of all, one by one; NULL behind the last. */
const char *cb_program_name(int number);

/* Primal-dual hybrid gradient for linear programs (methods/pdhg.c), with the scales of rows and columns that the caller
 * gives, or without. It has the form "graph" alone. */
extern const struct cb_program cb_program_pdhg[2];

/* What it leaves. */
struct cb_linear_outcome {
  int32_t reason, iterations;
  double primal_residual, dual_residual, primal_value, dual_value;
};

/* What a program is made of beside its text. */
struct cb_program_launch {
  const char *kernel; /* its name in the operator's text */
  int64_t blocks;     /* virtual thread blocks */
  int threads;
  int64_t dynamic_shared;
};

/* How a program runs. */
enum cb_form_kind {
  CB_PROGRAM_GRID,
  CB_PROGRAM_CLUSTER,
  CB_PROGRAM_BLOCK,
  CB_PROGRAM_GRAPH,                   /* several kernels: stages.h */
  CB_PROGRAM_FORMS,                   /* that solve one system */
  CB_PROGRAM_BATCH = CB_PROGRAM_FORMS /* thread blocks that each take one system after the other: batch.h */
};
extern const char *const cb_program_form_names[]; /* "grid", "cluster", "block", "graph"; NULL ends them */

struct cb_program_form {
  enum cb_form_kind kind;
  int blocks;  /* thread blocks; 0: as many as there is room for. A cluster has at most CB_PROGRAM_CLUSTER_BLOCKS */
  int groups;  /* virtual thread blocks that a thread block computes side by side, if they share no memory; 0: 1 */
  int each;    /* thread blocks for which a multiprocessor has registers, at most; 0: the usual number */
  int in_steps; /* vectors are made before a product, never in it */
  int resident; /* vectors lie in shared memory (resident.h, kept.h); a cluster then has `blocks` */
  int pipelined; /* the program is that with fewer meetings */
  int near;      /* what a grid's thread blocks read of the matrix lies in shared memory, too (near.h) */
  int64_t room; /* of which a thread block may have so many bytes, or all of a grid on one multiprocessor */
  int multiprocessors; /* of the GPU, for such a grid */
  int64_t apart; /* bytes of a matrix from which on several kernels are the better choice, if a grid's product has
                  * shared memory of its own; 0: none */
};

enum { CB_PROGRAM_CLUSTER_BLOCKS = 16 };

struct cb_program_sizes {
  int restart;    /* of a program with a basis: 1 to CB_MOST_RESTART */
  int block_size; /* of one with blocks: 2 to CB_MOST_BLOCK */
};

struct cb_program_request {
  const struct cb_program *program;
  struct cb_program_form form;
  const char *source; /* an operator's specialised text, whole */
  const struct cb_program_launch *launches;
  int launches_count;
  int has_carry; /* some rows are committed by the thread that comes last */
  int64_t rows;
  int64_t nnz; /* of a batch */
  int64_t stored_bytes; /* of the product's arrays */
  struct cb_program_sizes sizes;
  enum cb_type vector, sum;
};

/* The kernel's thread blocks. */
struct cb_program_shape {
  int threads;        /* the product's times the groups that there are */
  int dynamic_shared; /* bytes that it has beside those of the product's launches; these alone if those have none */
  int each;           /* of which so many are wanted on a multiprocessor */
  int least_blocks;   /* of a grid: fewer would have more rows than they have room for. 0: any number will do */
  int neighbours;     /* of a grid: a thread block has neighbouring virtual ones, an equal share of them */
  int holds;          /* of a grid: each thread has what it needs of the matrix in registers */
  int has_passes;     /* of a grid: iterations go over rows beside what products commit */
};

/* The kernel's name. */
#define CB_PROGRAM_KERNEL "cbgen_program"

/* The text of the kernel, with what it uses of the device prelude. Its parameters, in order:
 *
 *   for each launch, for each region of it that reads arrays, the region's struct of pointers;
 *   a struct of pointers: the vectors, given and then own; the board (CB_PROGRAM_BOARD bytes for each thread block)
 *     and two words for meetings, all zero before the first launch; the outcome; the history, or NULL; carry sums and
 *     counters;
 *   the parameters, as numbers of the sums' type (complex ones with the imaginary part 0); the most iterations, and the
 *     number of thread blocks, as ints.
 *
 * CB_ERR_UNSUPPORTED: launches of different sizes, or a text that no program can be made from; cb_resident_plan. */
enum cb_status cb_program_text(struct cb_text *text, const struct cb_program_request *request,
                               struct cb_program_shape *shape,
                               struct cb_diag *diag);

/* Elements from one vector of a basis to the next. */
int64_t cb_program_stride(int64_t rows);

/* Of two meetings, CB_MOST_RESULTS numbers of 16 bytes. */
enum { CB_PROGRAM_BOARD = 2 * 8 * 16 };

/* What the kernel leaves. */
struct cb_program_outcome {
  int32_t reason, iterations; /* enum cb_reason */
  double residual;            /* by the recurrence, Euclidean norm */
  double true_residual;       /* of b - A x, computed at the end */
  double value;               /* the program's */
};

#endif
