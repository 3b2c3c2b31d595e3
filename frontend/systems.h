// SPDX-License-Identifier: Apache-2.0
/* Many systems of one pattern, from an archive of NumPy arrays (numpy.savez):
 *
 *   values   a row of nonzeros for each system, in the order of rows and of columns within a row
 *   b        a row of the right side's numbers for each; may be missing
 */
#ifndef CBGEN_FRONTEND_SYSTEMS_H
#define CBGEN_FRONTEND_SYSTEMS_H

#include "base/status.h"

#include <stdint.h>

/* Release it. */
struct cb_systems {
  int64_t count;
  double *values, *b; /* count * nnz; count * rows, or NULL */
};

/* For a pattern of `nnz` nonzeros in `rows` rows. CB_ERR_FORMAT, CB_ERR_UNSUPPORTED, CB_ERR_MEMORY, CB_ERR_IO; then
 * there is nothing to release. */
enum cb_status cb_systems_read(struct cb_systems *systems, const char *path, int64_t nnz, int64_t rows,
                               struct cb_diag *diag);
void cb_systems_release(struct cb_systems *systems);

#endif
