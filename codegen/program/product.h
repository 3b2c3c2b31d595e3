// SPDX-License-Identifier: Apache-2.0
/* The product of an operator's text, taken apart for a program: what stands above the kernels, and each kernel as a
 * function of the number of a virtual thread block.
 *
 * Of split values there are two products: that with heads of values stands in the namespace `heads`, behind the other
 * in both texts, and differs in how it reads values. It has the other's vectors, arrays and arithmetic. */
#ifndef CBGEN_CODEGEN_PROGRAM_PRODUCT_H
#define CBGEN_CODEGEN_PROGRAM_PRODUCT_H

#include "base/status.h"
#include "base/text.h"
#include "codegen/program/program.h"

enum { CB_PROGRAM_LAUNCHES = 16 };

/* Which row, one at most, a thread commits in a virtual thread block. */
enum cb_own_rows {
  CB_ROWS_ANY,        /* it cannot be told, or there may be several */
  CB_ROWS_OF_THREADS, /* row i belongs to thread i % threads of virtual thread block i / threads */
  CB_ROWS_OF_LANES    /* of a block row, to the first of the lanes that share it: templates/blocks.cu.in */
};

/* Texts are owned: cb_product_text_release. */
struct cb_product_text {
  struct cb_text vectors; /* types, vectors and arithmetic, without `commit` and `load_x` */
  struct cb_text load_x;  /* where nothing else reads x; else it stands in `vectors` */
  struct cb_text regions; /* in which rows go to `commit_step` */
  struct cb_text functions; /* product_0, product_1, …; heads::product_0, … if a section is so */
  struct cb_text parameters; /* of the program's kernel, each with ", " behind it */
  struct cb_text arguments[CB_PROGRAM_LAUNCHES]; /* of the functions, likewise */
  struct cb_text heads_arguments[CB_PROGRAM_LAUNCHES]; /* of those in `heads` */
  int is_scaled;    /* struct Vectors has alpha and beta */
  int has_carry;    /* and carry slots */
  int commits_once; /* nothing is added to a row that is written */
  int blocks_per_sm; /* that its kernels ask for at most; 0: they do not */
  int holds;        /* threads keep what they need of the matrix (templates/batch.cu.in) */
  enum cb_own_rows own_rows; /* of its only region; CB_ROWS_ANY where there are more */
  int shares;       /* thread blocks use shared memory */
};

/* CB_ERR_UNSUPPORTED: the text is not one that this version writes, or has no product with heads where the program
 * wants one, or no room for the shared memory of both. */
enum cb_status cb_product_take(struct cb_product_text *product, const struct cb_program_request *request,
                               struct cb_diag *diag);
/* Functions that take a struct Vectors take any struct that is one, and with it that struct's own load_x and
 * commit_step. CB_ERR_UNSUPPORTED: some have another head than all that this version writes. */
enum cb_status cb_product_template(struct cb_product_text *product, struct cb_diag *diag);
/* Regions and functions read arrays that may lie in shared memory; and there are the same again in the namespace
 * `watched`, behind them, which note what they read of arrays (load_watched), and in which vectors are left alone:
 * leave_x, leave_row. */
void cb_product_watch(struct cb_product_text *product);
void cb_product_text_release(struct cb_product_text *product);

#endif
