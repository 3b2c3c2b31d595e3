// SPDX-License-Identifier: Apache-2.0
/* Rectangles of rows, for several vectors. Where diagonals lie near multiples of some number of rows, the matrix is of
 * a grid, and these are its lines; where others lie many lines away, as many lines are a plane. A thread block has
 * `width` neighbouring rows of each of `lines` lines, so that what rows meet of X in the lines beside theirs lies in
 * L1, and the same of `repeats` planes, one after the other. */
#ifndef CBGEN_ANALYSIS_LAYOUTS_DIA_LINES_H
#define CBGEN_ANALYSIS_LAYOUTS_DIA_LINES_H

#include "analysis/layout.h"

struct cb_lines_shape {
  int64_t rows;
  const int32_t *offset; /* of diagonals, ascending */
  int diagonals;
};

struct cb_lines_wish {
  int64_t line; /* rows of a line; 0: as diagonals say */
  int64_t planes; /* of a thread; 0: as many as leave thread blocks enough */
  int threads, multiprocessors;
};

struct cb_lines {
  int64_t line;          /* rows of one; 0: there are none */
  int64_t plane;         /* rows of a plane of lines; of all lines, where there are no planes */
  int width, lines;      /* of a rectangle: rows of a line, and lines */
  int64_t repeats;       /* planes of a thread, one after the other */
  int64_t across, tiles; /* rectangles of a line, of a plane */
  int64_t groups;        /* of so many planes */
};

void cb_lines_find(struct cb_lines *lines, const struct cb_lines_shape *shape, const struct cb_lines_wish *wish);

/* The facts, constants and sections of the region's text. */
void cb_lines_build(struct cb_region_builder *builder, const struct cb_lines *lines, int threads);

/* Elements of x that a thread block's rectangles meet: those of its rows, and of lines and planes beside them. */
int64_t cb_lines_elements(const struct cb_lines *lines);

/* The thread block of a row. */
int64_t cb_lines_block(const struct cb_lines *lines, int64_t row);

#endif
