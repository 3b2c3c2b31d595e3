// SPDX-License-Identifier: Apache-2.0
/* Which form a program gets (codegen/program/program.h): what an iteration of each is predicted to take. */
#ifndef CBGEN_CODEGEN_PROGRAM_FORM_H
#define CBGEN_CODEGEN_PROGRAM_FORM_H

#include "analysis/target.h"
#include "codegen/program/program.h"

struct cb_program_size {
  const struct cb_target *target;
  int64_t blocks; /* virtual thread blocks of the product's largest launch */
  int threads;    /* of each */
  int64_t stored_bytes, vector_bytes; /* the matrix; one vector */
  int64_t spared_bytes; /* of the matrix, which most iterations do not read */
};

/* The form of that name; behind it "+steps" for one whose vectors are made before products, "+pipelined" for fewer
 * meetings; but of a graph "+resident" for vectors in shared memory; of a grid "+matrix" for a matrix in shared memory; and
 * of a graph "+sums" for sums in products. 0: there is none. */
int cb_program_form_find(struct cb_program_form *form, const char *name);

/* The name by which cb_program_form_find finds it. */
enum { CB_PROGRAM_FORM_NAME = 64 };
void cb_program_form_print(char name[CB_PROGRAM_FORM_NAME], const struct cb_program_form *form);

/* Clusters come with sm_90. */
int cb_program_form_exists(enum cb_form_kind kind, const struct cb_target *target);

/* What an iteration takes, predicted: meetings, latencies, and bytes over what the form's multiprocessors take in. */
int64_t cb_program_ns(enum cb_form_kind kind, const struct cb_program_size *size);

/* The form that is predicted to be the fastest; and, for one that is given, thread blocks (unless they are) and
 * groups. */
void cb_program_choose(struct cb_program_form *form, const struct cb_program_size *size);
void cb_program_complete(struct cb_program_form *form, const struct cb_program_size *size);

/* Forms with vectors in shared memory that are predicted to be faster than the form that was chosen, the fastest first:
 * a cluster, and the grid itself. Their texts tell whether the program, its product and shared memory allow them.
 * Returns how many there are. */
enum { CB_PROGRAM_RESIDENT = 2 };
int cb_program_try_resident(struct cb_program_form resident[CB_PROGRAM_RESIDENT], const struct cb_program_form *chosen,
                            const struct cb_program_size *size);

/* Whether fewer meetings are predicted to save more than the vectors cost that they take. */
int cb_program_pipelining_pays(enum cb_form_kind kind, const struct cb_program_size *size);

/* Whether what a form's thread blocks read of the matrix should lie in shared memory, if there is room for it. */
int cb_program_matrix_pays(const struct cb_program_form *form, const struct cb_program_size *size);

#endif
