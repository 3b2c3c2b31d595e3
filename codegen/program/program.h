// SPDX-License-Identifier: Apache-2.0
/* Programs: a few products and what happens between them, as one kernel. A solver's iteration is one.
 *
 * A program is a list of sections. Each begins with a product y = A x of two of the program's vectors, and goes on with
 * steps:
 *
 *   rows      statements (analysis/statements) for each row, without `ax`. Their scalars are the program's; the results
 *             of their reductions become scalars that later steps read
 *   scalars   statements whose `in`, `out` and `inout` names are scalars: every thread computes them
 *   stop      the same, with an `out stop`: other than 0, the program goes to its last section, and that is the reason
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
 * Each thread block takes a share of the virtual thread blocks that the product's launches have, several of them side by
 * side (groups) where they do not share memory; and all meet where one reads what others have written. Rows
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
  CB_STEP_SCALARS,
  CB_STEP_STOP,
  CB_STEP_COUNT,
  CB_STEP_MOST,
  CB_STEP_NOTE
};

struct cb_step {
  enum cb_step_kind kind;
  const char *text;
};

enum { CB_MOST_STEPS = 12, CB_MOST_SECTIONS = 6 };

struct cb_section {
  const char *from, *to; /* of the product */
  const char *sums;      /* rows statements with nothing but reductions, behind the product; NULL: none */
  struct cb_step steps[CB_MOST_STEPS];
  int next; /* section that follows; the last one has none, and its first sum is the true residual's square */
  const char *before; /* rows statements without reductions, of which `from` is an inout; NULL: none */
  const char *old;    /* a vector of the program's own where `from` is while it is made anew; NULL: made in place */
};

struct cb_program {
  const char *name;
  const char *parameters[4]; /* numbers that the caller gives, as scalars; NULL ends them */
  const char *given[4];      /* vectors that the caller gives; NULL ends them */
  const char *work[12];      /* vectors of the program's own */
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

/* The program of that name, "cg" or "bicgstab"; with or without a diagonal by which residuals are divided. NULL: there
 * is none. */
const struct cb_program *cb_program_find(const char *name, int with_diagonal);

/* What a program is made of beside its text. */
struct cb_program_launch {
  const char *kernel; /* its name in the operator's text */
  int64_t blocks;     /* virtual thread blocks */
  int threads;
  int64_t dynamic_shared;
};

/* How a program runs. */
enum cb_form_kind { CB_PROGRAM_GRID, CB_PROGRAM_CLUSTER, CB_PROGRAM_BLOCK, CB_PROGRAM_FORMS };
extern const char *const cb_program_form_names[]; /* "grid", "cluster", "block"; NULL ends them */

struct cb_program_form {
  enum cb_form_kind kind;
  int blocks;  /* thread blocks; 0: as many as there is room for. A cluster has at most CB_PROGRAM_CLUSTER_BLOCKS */
  int groups;  /* virtual thread blocks that a thread block computes side by side, if they share no memory; 0: 1 */
  int in_steps; /* vectors are made before a product, never in it */
};

enum { CB_PROGRAM_CLUSTER_BLOCKS = 16 };

struct cb_program_request {
  const struct cb_program *program;
  struct cb_program_form form;
  const char *source; /* an operator's specialised text, whole */
  const struct cb_program_launch *launches;
  int launches_count;
  int has_carry; /* some rows are committed by the thread that comes last */
  int64_t rows;
  enum cb_type vector, sum;
};

/* The kernel's name. */
#define CB_PROGRAM_KERNEL "cbgen_program"

/* The text of the kernel, with what it uses of the device prelude. Its parameters, in order:
 *
 *   for each launch, for each region of it that reads arrays, the region's struct of pointers;
 *   a struct of pointers: the vectors, given and then own; the board (CB_PROGRAM_BOARD bytes for each thread block)
 *     and two words for meetings, all zero before the first launch; the outcome; the history, or NULL; carry sums and
 *     counters;
 *   the parameters, as numbers of the sums' type; the most iterations, and the number of thread blocks, as ints.
 *
 * *threads: of its thread blocks, the product's times the groups that there are. CB_ERR_UNSUPPORTED: launches of
 * different sizes, or a text that no program can be made from. */
enum cb_status cb_program_text(struct cb_text *text, const struct cb_program_request *request, int *threads,
                               struct cb_diag *diag);

/* Of two meetings, CB_MOST_RESULTS numbers of 8 bytes, each half in a word of 8. */
enum { CB_PROGRAM_BOARD = 2 * 8 * 2 * 8 };

/* What the kernel leaves. */
struct cb_program_outcome {
  int32_t reason, iterations; /* enum cb_reason */
  double residual;            /* by the recurrence, Euclidean norm */
  double true_residual;       /* of b - A x, computed at the end */
};

#endif
