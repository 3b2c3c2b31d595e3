// SPDX-License-Identifier: Apache-2.0
/* Iterations of the form "graph" that nothing looks at, as one kernel with the matrix in shared memory: those of a group
 * of two fused products without sums (stages.h), as a linear program's are between two checks.
 *
 * Each thread block, of which a multiprocessor has one, owns some lines of either product (rows of the matrix, and
 * columns), with their nonzeros and the program's vectors of these lines, in its shared memory for all these
 * iterations. What one product makes and the other multiplies is handed on through L2, in numbers that carry their own
 * message (hand_on): so no thread block waits for more than what it reads, and there is no barrier. The vector that the
 * first product multiplies is copied to shared memory as a whole where there is room, and gathered there; likewise the
 * second.
 *
 * Nobody overwrites what others still read: a vector has two places in turn, and whoever writes a line's entry has read
 * what the other product made of the last one, for which all that read it, or (copied) all thread blocks, are done. So
 * each thread block has lines of both, and at least one of the two vectors is copied. */
#ifndef CBGEN_CODEGEN_PROGRAM_SLABS_H
#define CBGEN_CODEGEN_PROGRAM_SLABS_H

#include "codegen/program/stages.h"

#define CB_SLABS_KERNEL "cbgen_slabs"

enum { CB_SLAB_LANES = 32, CB_SLAB_HEAD = 16 };

/* Of one product: what it has in a thread block's part, each from a byte on. A slice is what a warp does at once:
 * lines, of `lanes` lanes each. Its steps have an entry for each lane, of which some only fill. Lines are listed by
 * their numbers, slices by their first entry and their steps. */
struct cb_slab_side {
  int64_t lines, across;           /* of the matrix */
  int lanes;                       /* of a line */
  int64_t most_lines, most_slices, most_entries; /* of a thread block */
  int batch;                       /* steps at once */
  int copied;                      /* what is multiplied */
  int index_bytes;                 /* 2 or 4; the largest number is that of what only fills */
  int64_t values, indices, line_numbers, slices, count, copy;
};

struct cb_slab_shape {
  int threads, blocks;
  int64_t bytes, shared; /* of a thread block's part; of its shared memory */
  int64_t states;        /* byte of the state's structs */
  struct cb_slab_side sides[2]; /* in the order of the group's products */
};

/* The fusions of the group that these kernels can be made for: *first and the next one, and the group's number. 0: the
 * plan has none. */
int cb_slabs_find(const struct cb_stages_plan *plan, int *group, int *first);

/* The text, and where everything lies: the bytes of the shape, whose other numbers are given. `type`: of vectors and
 * sums, f64 or f32. Parameters: the stages' struct of pointers; what is given; the state's struct to read, and to
 * write, which are one; the parts of thread blocks, one behind the other; twice what either product multiplies, zero
 * before the first launch; two words of 32 bits, likewise.
 * CB_ERR_LIMIT: there is not so much shared memory (`room`); CB_ERR_UNSUPPORTED: the program is none of these. */
enum cb_status cb_slabs_text(struct cb_text *text, struct cb_slab_shape *shape, const struct cb_program *program,
                             const struct cb_stages_plan *plan, enum cb_type type, int64_t room, struct cb_diag *diag);

#endif
