// SPDX-License-Identifier: Apache-2.0
/* A program as few kernels between products that any operator makes: the form "graph" of codegen/program/program.h.
 *
 * A stage is a kernel of many thread blocks that goes through rows once. It begins with the sums that the stage before
 * has left, computes scalars (all threads the same ones), and goes on to the next sums or the next product. What stages
 * hand on is a struct in device memory, which each reads in one place and writes in another. In it `at` tells which
 * piece is next: stages and products behind a stop pass by, and those of a section that is not the current one.
 *
 * The stages' text depends on the program and its types, not on a matrix: rows are a parameter. Operators multiply with
 * what kernels they have, so that nothing is compiled where the stages' binary comes with the library.
 *
 * A plan says in which order stages, products and the caller's preconditioner are executed: those of the beginning,
 * those of a body until `at` is `done`, and those of the end. The body may be that of a conditional node of a CUDA
 * graph, or of a loop on the host; and so may be the first part of it. */
#ifndef CBGEN_CODEGEN_PROGRAM_STAGES_H
#define CBGEN_CODEGEN_PROGRAM_STAGES_H

#include "codegen/program/program.h"

enum {
  CB_MOST_STAGES = 32,
  CB_MOST_ACTS = 64,
  CB_MOST_GROUPS = 4,
  CB_MOST_FUSIONS = 4,
  CB_STAGE_THREADS = 256,
  CB_STAGE_BLOCKS = 3 /* on a multiprocessor */
};

enum cb_act_kind {
  CB_ACT_STAGE,   /* kernel CB_STAGE_KERNEL with `number` behind it */
  CB_ACT_PRODUCT, /* to = A from; `number`: enum cb_act_product */
  CB_ACT_CALL     /* the caller's preconditioner: to = its of from */
};

/* A product and the stage behind it, which are the acts `act` and the next: one where the product's kernels commit
 * rows by the section's statements (fused.h). */
struct cb_fusion {
  int act, section;
};

enum cb_act_product { CB_OF_MATRIX, CB_OF_TRANSPOSED, CB_WITH_HEADS /* of split values */ };

/* Vectors are counted as the program lists them: given, then own. */
struct cb_act {
  enum cb_act_kind kind;
  int number;    /* of a stage; of a product */
  int from, to;  /* vectors; of a stage, which struct of the state it reads and writes */
};

/* Acts that are executed several times, one after the other, wherever they stand. */
struct cb_group {
  int first, count, times;
};

struct cb_stages_plan {
  struct cb_act acts[CB_MOST_ACTS];
  struct cb_group groups[CB_MOST_GROUPS]; /* in their order, none over the end of a part */
  int groups_count;
  struct cb_fusion fusions[CB_MOST_FUSIONS]; /* of those that are executed the most often */
  int fusions_count;
  int begin, body, end;  /* how many acts each part has */
  int inner;             /* so many of the body's are a body of their own, repeated while `at` is `again`; 0: none */
  int again;
  int may_repeat;        /* the body may be executed again where it has been left: what its products write is not read
                          * behind it */
  int states;            /* structs of the state; the beginning writes number 0 */
  int turn;              /* which of them the body begins and ends with */
  int done;              /* what `at`, its first int, is when the body is left */
  int64_t state_bytes, given_bytes; /* at most; 16 divides them */
  int sums;              /* numbers on the board for each thread block */
  int basis;             /* vectors of a basis, cb_program_stride apart; 0: there is none */
  int64_t small;         /* numbers that its coefficients take, in memory behind it */
};

#define CB_STAGE_KERNEL "cbgen_stage_" /* and a number from 0 */
#define CB_STAGE_BEGIN "cbgen_begin"

/* The text, and what to execute. Parameters of a stage: the struct of pointers (vectors as the program lists them, the
 * basis and its coefficients if there is one, the board), what is given, the state's structs to read and to write,
 * thread blocks (int), rows (int64_t). Those of the beginning: pointers; what is given and the state's struct 0, to be
 * written; the caller's b and x, the history or NULL, the outcome; the program's parameters as numbers of the sums'
 * type; the most iterations, thread blocks (int), rows. In a program with vectors of two lengths columns (int64_t)
 * stand behind the rows, and in one with `copied` vectors these stand in the place of b and x. A struct of the state
 * begins with three ints, `at`, iterations and the reason, and behind them the residual's square, of the sums' type.
 *
 * `sizes`: the restart is a limit, which the text does not know; the program has it as a parameter. */
enum cb_status cb_stages_text(struct cb_text *text, struct cb_stages_plan *plan, const struct cb_program *program,
                              enum cb_type vector, enum cb_type sum, const struct cb_program_sizes *sizes,
                              struct cb_diag *diag);

/* What a fusion's kernels (fused.h, slabs.h) have of the program, as texts for their templates. */
struct cb_fusion_text {
  struct cb_text structs, members, values, statements, loads, tail, stores;
  struct cb_text begins; /* members become what values are */
  const char *from, *to; /* vectors */
  int entry, next;       /* pieces: that which this is, and what follows */
  int reads_product;     /* statements read the product's row */
  int stores_product;    /* and others read it later */
  struct cb_text vectors, needed, made; /* words, where vectors have slots: those of the statements; which are read, and
                                         * which are assigned */
};

/* Of the plan's fusion `number`; in any case to be released. `slot`: vectors have slots (struct cb_row_text), that of a
 * row is this expression; NULL: they are in device memory. */
enum cb_status cb_stages_fusion(struct cb_fusion_text *fusion, const struct cb_program *program, enum cb_type vector,
                                enum cb_type sum, int number, const char *slot, struct cb_diag *diag);
void cb_fusion_text_release(struct cb_fusion_text *fusion);

/* Whether the vector is as long as a row of the matrix. */
int cb_program_has_columns(const struct cb_program *program, const char *vector);

/* Whether the program calls the caller's preconditioner. */
int cb_program_calls(const struct cb_program *program);

#endif
