// SPDX-License-Identifier: Apache-2.0
/* What of a product by merge stays in registers for a whole solution, in the form "grid" with "+pipelined" and
 * "+matrix".
 *
 * Where each thread block has one tile, each of its threads has the same nonzeros in every iteration: their columns and
 * values are loaded once. An iteration takes 5.6 us for 6.2 (finan512), 5.6 for 6.5 (ca-AstroPh), 4.4 for 4.9
 * (wathen100) on an H200: the matrix is not read again, nor waited for before x is gathered. */
#ifndef CBGEN_CODEGEN_PROGRAM_HELD_H
#define CBGEN_CODEGEN_PROGRAM_HELD_H

#include "codegen/program/product.h"
#include "codegen/program/program.h"

/* Thread blocks of a multiprocessor with which each has one tile, and registers for it; 0: the product is another, or
 * too large. */
int cb_held_blocks(const struct cb_product_text *product, const struct cb_program_request *request);

/* Regions and functions become those of a thread block that holds its tile: struct Tile, hold, and product_0 of it. */
enum cb_status cb_held_take(struct cb_product_text *product, struct cb_diag *diag);

/* "merge0", of such a product. */
struct cb_held_region {
  const char *name;
  int length;
};
struct cb_held_region cb_held_region(const struct cb_product_text *product);

#endif
