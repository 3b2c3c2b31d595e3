// SPDX-License-Identifier: Apache-2.0
/* Entries of the cache for a GPU that is not here: what cbgen_compile would have put there, made by NVRTC alone. Nodes
 * that find them need neither NVRTC nor the files of families. */
#ifndef CBGEN_RUNTIME_API_FILL_H
#define CBGEN_RUNTIME_API_FILL_H

#include "analysis/target.h"
#include "base/hash.h"
#include "base/status.h"
#include "cbgen.h"

struct cb_filled {
  struct cb_hash key; /* of the entry */
  int was_there;      /* it had its specialised kernel already: nothing was made */
  char plan[240];     /* its line, cut; "" where it was there */
};

/* The matrix in host memory; `request` as for cbgen_compile (NULL: its members zero), with the specialised kernel. The
 * context has the options, and is good for nothing else afterwards but another call for the same target. What went
 * wrong is its message. CB_ERR_IO: there is no cache that can be written. CB_ERR_MISSING: no NVRTC. */
enum cb_status cb_fill(cbgen_context *context, const struct cb_target *target, const cbgen_csr *matrix,
                       const cbgen_request *request, struct cb_filled *filled);

/* The kernels that the library needs for itself (they hash, survey and pack), where the cache does not have them yet;
 * *made: how many were compiled. */
enum cb_status cb_fill_own(cbgen_context *context, const struct cb_target *target, int *made);

#endif
