// SPDX-License-Identifier: Apache-2.0
/* Column patterns that many rows share: what the split `patterns` keeps, and its layout makes constants of the text.
 *
 * A block row is `size` neighbouring rows that begin at a multiple of `size`. It has a pattern when its nonzeros fill
 * whole blocks of size × size entries, whose columns begin at multiples of `size`, too: the pattern is then the list
 * of its blocks' offsets, each a block's column minus the block row's number (both in blocks). With size 1 every row
 * has a pattern; finite elements with three unknowns per node have few patterns with size 3, one for each kind of node.
 *
 *   found    the patterns with the most nonzeros, each with `uses` block rows at least, as long as all of them have
 *            CB_PATTERN_OFFSETS different offsets at most: a pattern is then a set of bits. Rare ones, too, if all are
 *            then found
 *   others   block rows without a pattern, with a rare one, or with one that would bring too many offsets
 */
#ifndef CBGEN_ANALYSIS_LAYOUTS_PATTERNS_CENSUS_H
#define CBGEN_ANALYSIS_LAYOUTS_PATTERNS_CENSUS_H

#include "frontend/csr.h"

enum {
  CB_PATTERNS_MOST = 255,
  CB_PATTERN_NONE = 255,   /* of a block row without nonzeros, or with another pattern than those found */
  CB_PATTERN_OFFSETS = 64,
  CB_PATTERN_SIZE_MOST = 6 /* rows of a block row */
};

/* What a split that chose patterns found (struct cb_found): a struct cb_patterns. */
#define CB_FOUND_PATTERNS "patterns"

struct cb_pattern_wish {
  int size;      /* 0: the largest with which patterns hold enough nonzeros */
  int64_t uses;  /* block rows that a pattern needs */
  int64_t share; /* percent of the nonzeros that block rows with patterns must hold */
};

struct cb_patterns {
  int size, count, offsets;
  int32_t offset[CB_PATTERN_OFFSETS];    /* ascending */
  uint64_t mask[CB_PATTERNS_MOST];       /* by pattern: bit d is set when it has offset[d] */
  int64_t uses[CB_PATTERNS_MOST];        /* by pattern: its block rows. Patterns with the most nonzeros come first */
  int64_t block_rows, nonzeros;               /* all block rows, and the nonzeros of those with a pattern */
  unsigned char *pattern_of;             /* by block row; owned */
};

/* CB_ERR_UNSUPPORTED: too few nonzeros are in rows with patterns; CB_ERR_MEMORY. After a failure there is nothing to
 * release. The same for any number of threads.
 *
 * Which patterns are frequent is found in one walk over the block rows that remembers 65,536 patterns at a time and
 * forgets the rarest when there are more; the uses of what it finds are then counted exactly. */
enum cb_status cb_patterns_find(struct cb_patterns *found, const struct cb_csr *csr, const struct cb_pattern_wish *wish,
                                struct cb_diag *diag);
void cb_patterns_release(struct cb_patterns *found);

static inline int64_t cb_pattern_block_rows(const struct cb_csr *csr, int size) {
  return csr->rows / size + (csr->rows % size > 0);
}

#endif
