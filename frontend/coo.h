// SPDX-License-Identifier: Apache-2.0
/* Inside the frontend: coordinates of a file that stores one triangle only. */
#ifndef CBGEN_FRONTEND_COO_H
#define CBGEN_FRONTEND_COO_H

#include "frontend/csr.h"

enum cb_mirror {
  CB_MIRROR_NONE,
  CB_MIRROR_SAME,   /* each entry off the diagonal stands for (r, c) and (c, r) */
  CB_MIRROR_NEGATED, /* the same, and the mirrored value is negated */
  CB_MIRROR_CONJUGATED /* the same, and its imaginary part is negated */
};

/* Refuses sizes that are negative or beyond CB_MAX_DIMENSION. */
enum cb_status cb_check_sizes(int64_t rows, int64_t cols, struct cb_diag *diag);

/* Room for `count` entries, without values when `pattern`. */
enum cb_status cb_coo_alloc(struct cb_coo *coo, int64_t count, int pattern, struct cb_diag *diag);

/* Room for imaginary parts. Releases the coordinates where there is no memory. */
enum cb_status cb_coo_make_complex(struct cb_coo *coo, struct cb_diag *diag);

/* cb_csr_from_coo with mirroring: an entry and its mirror image count as given one after the other. */
enum cb_status cb_csr_from_mirrored_coo(struct cb_csr *csr, struct cb_coo *coo, enum cb_mirror mirror,
                                        struct cb_diag *diag);

/* Refuses a matrix of which practically nothing but row pointers would be stored (`subject`: the file). */
enum cb_status cb_check_rows(const char *subject, int64_t rows, int64_t entries, struct cb_diag *diag);

#endif
