// SPDX-License-Identifier: Apache-2.0
/* Rectangles of rows: see dia_lines.h. */
#include "analysis/layouts/dia/dia_lines.h"

#include "base/integers.h"

#include <stdlib.h>

enum { ROWS_OF_SECTOR = 4 };

static int64_t lines_away(int64_t offset, int64_t line) {
  return (llabs((long long)offset) + line / 2) / line;
}

/* How far diagonals lie from multiples of a line's rows, all of them; -1: one is too far away. */
static int64_t misfit(const struct cb_lines_shape *shape, int64_t line) {
  enum { MOST = 8 };
  int64_t all = 0;
  for (int d = 0; d < shape->diagonals; d++) {
    const int64_t from_zero = llabs((long long)shape->offset[d]);
    const int64_t apart = llabs((long long)(from_zero - lines_away(from_zero, line) * line));
    if (apart > MOST) return -1;
    all += apart;
  }
  return all;
}

/* The offset of which all others are about multiples; 0: there is none. */
static int64_t find_line(const struct cb_lines_shape *shape) {
  enum { LEAST = 32 };
  int64_t best = 0, least = 0;
  for (int d = 0; d < shape->diagonals; d++) {
    const int64_t line = shape->offset[d];
    if (line < LEAST || line % ROWS_OF_SECTOR) continue;
    const int64_t apart = misfit(shape, line);
    if (apart >= 0 && (!best || apart < least)) best = line, least = apart;
  }
  return best;
}

/* Lines of a plane, in the middle of the diagonals that are several lines away; 0: they are none, or far from each
 * other. */
static int64_t lines_of_plane(const struct cb_lines_shape *shape, int64_t line) {
  enum { SEVERAL = 4, NEAR = 8 };
  int64_t least = 0, most = 0;
  for (int d = 0; d < shape->diagonals; d++) {
    const int64_t away = lines_away(shape->offset[d], line);
    if (away <= SEVERAL) continue;
    if (!least || away < least) least = away;
    if (away > most) most = away;
  }
  return most - least <= NEAR ? (least + most) / 2 : 0;
}

/* Rows of a rectangle's line: whole sectors of values, and as many as make the fewest rectangles of a plane. */
static int choose_width(int64_t line, int64_t lines, int threads) {
  enum { LEAST = 12, BEST = 16, MOST = 32 };
  int64_t least = INT64_MAX;
  int best = BEST;
  for (int width = LEAST; width <= MOST; width += ROWS_OF_SECTOR) {
    const int64_t rectangles = cb_divide_up(line, width) * cb_divide_up(lines, threads / width);
    if (rectangles > least || (rectangles == least && abs(width - BEST) >= abs(best - BEST))) continue;
    least = rectangles;
    best = width;
  }
  return best;
}

/* Planes of a thread: the more, the less X is read twice, but several waves of thread blocks. */
static int64_t choose_repeats(const struct cb_lines *lines, int64_t planes, int multiprocessors) {
  enum { MOST = 8, BLOCKS = 12 }; /* for each multiprocessor, where one vector is multiplied */
  int64_t repeats = MOST;
  while (repeats > 1 && lines->tiles * cb_divide_up(planes, repeats) < (int64_t)BLOCKS * multiprocessors) repeats /= 2;
  return repeats;
}

void cb_lines_find(struct cb_lines *lines, const struct cb_lines_shape *shape, const struct cb_lines_wish *wish) {
  struct cb_lines found = {.line = wish->line ? wish->line : find_line(shape), .repeats = 1};
  *lines = (struct cb_lines){0};
  if (!found.line) return;
  const int64_t of_plane = lines_of_plane(shape, found.line);
  const int64_t count = of_plane ? of_plane : cb_divide_up(shape->rows, found.line);
  found.plane = count * found.line;
  found.width = choose_width(found.line, count, wish->threads);
  found.lines = wish->threads / found.width;
  found.across = cb_divide_up(found.line, found.width);
  found.tiles = found.across * cb_divide_up(count, found.lines);
  const int64_t planes = cb_divide_up(shape->rows, found.plane);
  if (of_plane) found.repeats = wish->planes ? wish->planes : choose_repeats(&found, planes, wish->multiprocessors);
  found.groups = cb_divide_up(planes, found.repeats);
  const int64_t places = cb_round_up(count, found.lines) * found.line; /* those without a row have numbers, too */
  if (found.groups * found.repeats * found.plane + places <= INT32_MAX) *lines = found;
}

static int has_planes(const struct cb_lines *lines) {
  return lines->groups * lines->repeats > 1;
}

/* Whether every thread has a row. */
static int is_whole(const struct cb_lines *lines, int threads) {
  if (lines->line % lines->width || threads != lines->lines * lines->width) return 0;
  return !has_planes(lines) || lines->plane / lines->line % lines->lines == 0;
}

void cb_lines_build(struct cb_region_builder *builder, const struct cb_lines *lines, int threads) {
  cb_region_fact(builder, "lines", "%lld", (long long)lines->line);
  cb_region_size(builder, "kLine", lines->line, "plan: rows of a line");
  cb_region_structure(builder, "kWidth", lines->width, "plan: rows of a line that a thread block has");
  cb_region_structure(builder, "kLines", lines->lines, "plan: lines that it has");
  cb_region_size(builder, "kAcross", lines->across, "plan: thread blocks along a line");
  cb_region_section(builder, "lined");
  if (!is_whole(lines, threads)) cb_region_section(builder, "idle");
  if (!has_planes(lines)) return;
  cb_region_fact(builder, "planes", "%lld", (long long)lines->plane);
  cb_region_size(builder, "kPlane", lines->plane, "plan: rows of a plane");
  cb_region_size(builder, "kTiles", lines->tiles, "plan: thread blocks of a plane");
  cb_region_size(builder, "kRepeats", lines->repeats, "plan: planes of a thread");
  cb_region_section(builder, "planes");
}

int64_t cb_lines_elements(const struct cb_lines *lines) {
  const int64_t planes = has_planes(lines) ? lines->repeats + 2 : 1;
  return (lines->width + 2) * (int64_t)(lines->lines + 2) * planes;
}

int64_t cb_lines_block(const struct cb_lines *lines, int64_t row) {
  const int64_t line = row % lines->plane / lines->line, place = row % lines->line;
  const int64_t tile = line / lines->lines * lines->across + place / lines->width;
  return row / (lines->plane * lines->repeats) * lines->tiles + tile;
}
