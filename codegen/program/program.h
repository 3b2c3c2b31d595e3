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
 *   template  a definition of templates/steps.cu.in, which says what it does
 *   count     an iteration is over
 *   most      after the most iterations that are allowed, the program goes to its last section
 *   note      the scalar `text` is the residual's square now, for the outcome and the caller's history
 *
 * After its last step a section is followed by the one that it names. The last section's end is the program's.
 *
 * The kernel is launched cooperatively: all its thread blocks are resident, each takes a share of the virtual thread
 * blocks that the product's launches have, and all meet (grid_barrier) where one reads what others have written: before
 * and behind a product, and in every sum. Places of sums are written again by the same step at the next time round, so
 * that a round has two of these at least. Rows belong to the same threads in every step. Where each row is committed
 * once, and always by the same thread, the sums that begin a section's steps are added up in the product itself. Sums
 * of thread blocks are joined in a fixed order, so that all bits repeat on grids of the same size.
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
  CB_STEP_SCALARS,
  CB_STEP_STOP,
  CB_STEP_GO,
  CB_STEP_TEMPLATE,
  CB_STEP_COUNT,
  CB_STEP_MOST,
  CB_STEP_NOTE
};

struct cb_step {
  enum cb_step_kind kind;
  const char *text;
  int section; /* of "go" */
};

enum {
  CB_MOST_STEPS = 16,
  CB_MOST_SECTIONS = 8,
  CB_MOST_PARAMETERS = 8,
  CB_MOST_GIVEN = 8,
  CB_MOST_WORK = 16,
  CB_MOST_RESTART = 64 /* vectors of a basis, one less */
};

struct cb_section {
  const char *from, *to; /* of the product; NULL: there is none */
  const char *sums;      /* rows statements with nothing but reductions, behind the product; NULL: none */
  struct cb_step steps[CB_MOST_STEPS];
  int next; /* section that follows; the last one has none, and its first sum is the true residual's square */
};

struct cb_program {
  const char *name;
  const char *parameters[CB_MOST_PARAMETERS]; /* numbers that the caller gives, as scalars; NULL ends them */
  const char *given[CB_MOST_GIVEN];           /* vectors that the caller gives; NULL ends them */
  const char *work[CB_MOST_WORK];             /* vectors of the program's own */
  const char *basis;      /* restart + 1 more of them, one behind the other; NULL: none */
  const char *scalars[8]; /* that templates assign */
  const char *value;      /* scalar for the outcome; NULL: 0 */
  struct cb_section sections[CB_MOST_SECTIONS];
  int sections_count;
};

/* Reasons to stop, as the texts have them, and as the outcome tells them. */
enum cb_reason {
  CB_REASON_CONVERGED = 1,
  CB_REASON_ITERATIONS = 2,
  CB_REASON_BREAKDOWN = 3,
  CB_REASON_NOT_A_NUMBER = 4
};

/* The program of that name; with or without a diagonal by which residuals are divided. NULL: there is none. */
const struct cb_program *cb_program_find(const char *name, int with_diagonal);

/* The names of all, one by one; NULL behind the last. */
const char *cb_program_name(int number);

/* What a program is made of beside its text. */
struct cb_program_launch {
  const char *kernel; /* its name in the operator's text */
  int64_t blocks;     /* virtual thread blocks */
  int threads;
  int64_t dynamic_shared;
};

struct cb_program_request {
  const struct cb_program *program;
  const char *source; /* an operator's specialised text, whole */
  const struct cb_program_launch *launches;
  int launches_count;
  int has_carry; /* some rows are committed by the thread that comes last */
  int64_t rows;
  int restart; /* of a program with a basis: 1 to CB_MOST_RESTART */
  enum cb_type vector, sum;
};

/* The kernel's name. */
#define CB_PROGRAM_KERNEL "cbgen_program"

/* The text of the kernel, with what it uses of the device prelude. Its parameters, in order:
 *
 *   for each launch, for each region of it that reads arrays, the region's struct of pointers;
 *   a struct of pointers: the vectors, given and then own; partials (cb_program_partials numbers for each thread
 *     block); a word, zero before the first launch, for the barrier; the outcome; the history, or NULL; carry sums and
 *     counters;
 *   the parameters, as numbers of the sums' type; the most iterations, and the number of thread blocks, as ints.
 *
 * CB_ERR_UNSUPPORTED: launches of different sizes, or a text that no program can be made from. */
enum cb_status cb_program_text(struct cb_text *text, const struct cb_program_request *request, struct cb_diag *diag);

/* Elements from one vector of a basis to the next. */
int64_t cb_program_stride(int64_t rows);

/* Places that the kernel needs for the sums of each thread block; -1: no memory to find out. */
int cb_program_partials(const struct cb_program *program);

/* What the kernel leaves. */
struct cb_program_outcome {
  int32_t reason, iterations; /* enum cb_reason */
  double residual;            /* by the recurrence, Euclidean norm */
  double true_residual;       /* of b - A x, computed at the end */
  double value;               /* the program's */
};

#endif
