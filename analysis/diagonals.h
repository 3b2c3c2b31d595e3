// SPDX-License-Identifier: Apache-2.0
/* The diagonals of a matrix. An entry's diagonal is known by its offset, column minus row, and counted under
 * the key offset + rows - 1.
 */
#ifndef CBGEN_ANALYSIS_DIAGONALS_H
#define CBGEN_ANALYSIS_DIAGONALS_H

#include "base/status.h"
#include "frontend/csr.h"

/* Places of the diagonal within the matrix. */
int64_t cb_diagonal_length(const struct cb_csr *csr, int64_t offset);

struct cb_diagonal {
  int64_t key, nonzeros;
};

/* All diagonals of at least `least` nonzeros (1 or more), ascending; the caller frees them. In parallel; the same for
 * any number of threads. CB_ERR_MEMORY. */
enum cb_status cb_diagonals_list(struct cb_diagonal **list, int64_t *count, const struct cb_csr *csr, int64_t least,
                                 struct cb_diag *diag);

/* Some diagonals, ascending. Where their keys lie close together, there is a flag for each key from the first to the
 * last, too. */
struct cb_diagonal_set {
  struct cb_diagonal *list;
  int64_t count;
  unsigned char *flags; /* NULL: too far apart, or dropped */
};

/* What a split that chose diagonals found (struct cb_found): a set of all that its part has. */
#define CB_FOUND_DIAGONALS "diagonals"

/* The diagonals worth storing without indices: those that cross at least half of the rows and have at least
 * `fill` percent of their places occupied; if these are more than `most`, the fullest.
 * CB_ERR_UNSUPPORTED: there is none; CB_ERR_MEMORY. Release the set also after a failure. */
enum cb_status cb_diagonals_choose(struct cb_diagonal_set *set, const struct cb_csr *csr,
                                    int64_t fill, int64_t most, struct cb_diag *diag);
void cb_diagonal_set_drop_flags(struct cb_diagonal_set *set); /* once only the list is read */
void cb_diagonal_set_release(struct cb_diagonal_set *set);

int cb_diagonal_set_finds(const struct cb_diagonal_set *set, int64_t key); /* for keys that lie too far apart */
static inline int cb_diagonal_set_has(const struct cb_diagonal_set *set, int64_t key) {
  if (key < set->list[0].key || key > set->list[set->count - 1].key) return 0;
  return set->flags ? set->flags[key - set->list[0].key] : cb_diagonal_set_finds(set, key);
}

#endif
