// SPDX-License-Identifier: Apache-2.0
/* What a kernel's text was compiled to, instruction by instruction, each with the line of the text that it comes from:
 * PTX as NVRTC gives it with line information, or machine code (SASS) as nvdisasm prints it.
 *
 *   listing = listing of a text of instructions; cb_listing_release
 *   PTX:   ".loc FILE LINE COLUMN[, function_name …, inlined_at …]"   precedes the instructions of that line
 *   SASS:  "//## File "NAME", line LINE"                              likewise; instructions are '/' '*' HEX '*' '/' TEXT ';'
 *
 * Of an inlined call the line is the one within the function. */
#ifndef CBGEN_RUNTIME_VERIFY_LISTING_H
#define CBGEN_RUNTIME_VERIFY_LISTING_H

#include "base/status.h"

#include <stddef.h>

struct cb_instruction {
  const char *text; /* within the bytes that were read: not terminated */
  int length;
  int line;     /* of the kernel's text, from 1; 0: of none */
  int is_label; /* "$L__BB0_2:", or a kernel's name: no instruction */
};

struct cb_listing {
  char *bytes; /* owned, and what the instructions point to */
  int count, instructions; /* labels included, and not */
  struct cb_instruction *list;
};

/* Both take the text over as a copy. CB_ERR_MEMORY; text that is none of these gives an empty listing. */
enum cb_status cb_listing_ptx(struct cb_listing *listing, const char *ptx, struct cb_diag *diag);
enum cb_status cb_listing_sass(struct cb_listing *listing, const char *sass, size_t length, struct cb_diag *diag);
void cb_listing_release(struct cb_listing *listing);

/* The machine code of a cubin, by $CBGEN_NVDISASM, else nvdisasm of PATH, $CUDA_HOME, $CUDA_PATH or /usr/local/cuda.
 * CB_ERR_MISSING: there is none; CB_ERR_IO: it failed. */
enum cb_status cb_listing_disassemble(struct cb_listing *listing, const void *cubin, size_t bytes,
                                      struct cb_diag *diag);

#endif
