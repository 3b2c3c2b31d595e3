// SPDX-License-Identifier: Apache-2.0
/* A kernel.cu with its data, read back into what an operator is loaded from. Nothing of it is executed for that: what
 * the launcher needs stands in the text's head and host section (templates/header.cu.in, host.cu.in), which are read
 * line by line. A kernel that was edited can be read as long as these are what they were.
 *
 *   head           the product, the matrix's name and nonzeros, the plan's line, the pattern
 *   vector_t, …    the types
 *   Arrays         of each region: the members, in their order
 *   array_at       where each array lies in the data; and the carry slots
 *   launch         kernels, grids, threads, shared memory, and which regions' arrays they take
 *   selftest       rows, columns, where its numbers begin
 *
 * The data stand in the text or in kernel.cbd beside it (analysis/plan/blob.h), and are checked as the text's own load
 * function does it: that they belong to the text, and their checksum. */
#ifndef CBGEN_RUNTIME_VERIFY_KERNEL_FILE_H
#define CBGEN_RUNTIME_VERIFY_KERNEL_FILE_H

#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "runtime/operator/image.h"

#include <stdint.h>

struct cb_kernel_file {
  struct cb_text text;
  char name[64];         /* of the matrix */
  char pattern[33];      /* as the head has it */
  double predicted_us;   /* of the chosen recipe; 0: the head does not say */
  struct cb_image image; /* without a cubin; its line, and the arrays' contents, are this struct's */
  int64_t stored_bytes;  /* of the arrays */
  int has_atomics;       /* sums are added in any order */
  /* the self-test */
  int y_before;             /* byte that all of y has before it */
  int only_positive;        /* negative elements of x are 0 */
  const double *expected;   /* rows numbers, NULL: the data have none; tolerances behind them */
  /* what it owns */
  unsigned char *own_data;
  struct cb_mapping mapped_data;
  double *numbers;
};

/* CB_ERR_IO: the file or its data cannot be read. CB_ERR_FORMAT: it is no kernel of cbgen's, or has been changed where
 * this must read it, or the data are not its own; the message says which. Release it in any case. */
enum cb_status cb_kernel_file_read(struct cb_kernel_file *file, const char *path, struct cb_diag *diag);
void cb_kernel_file_release(struct cb_kernel_file *file);

/* Whether a path's name is that of a kernel's text: it ends in ".cu". */
int cb_is_kernel_file(const char *path);

#endif
