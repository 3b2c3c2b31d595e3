// SPDX-License-Identifier: Apache-2.0
/* The hash of a pattern that lies in device memory, without bringing it to the host: kernels
 * (templates/hash.cu.in) make the digests of all whole chunks, and only those come back, with the numbers of
 * the chunks that are not whole. The result is cb_view_hash's, bit by bit.
 */
#ifndef CBGEN_RUNTIME_OPERATOR_DEVICE_HASH_H
#define CBGEN_RUNTIME_OPERATOR_DEVICE_HASH_H

#include "base/hash.h"
#include "base/status.h"
#include "base/text.h"
#include "runtime/cuda/driver.h"
#include "runtime/operator/matrix.h"

#include <stddef.h>

/* The module's CUDA text, for NVRTC. Release the text in any case. */
enum cb_status cb_hasher_text(struct cb_text *text, struct cb_diag *diag);

enum { CB_HASHER_KERNELS = 4 };

struct cb_hasher {
  const struct cb_device *device;
  struct CUmod_st *module; /* NULL: not loaded */
  struct CUfunc_st *functions[CB_HASHER_KERNELS];
  size_t room;           /* bytes of the next two */
  cb_device_ptr results; /* what the kernels write; kept from call to call */
  void *copy;            /* of them on the host */
  int pinned;            /* the copy's memory is the driver's */
};

/* The device's context must be current here and below. Release the hasher in any case. */
enum cb_status cb_hasher_load(struct cb_hasher *hasher, const struct cb_device *device, const void *cubin,
                              struct cb_diag *diag);
void cb_hasher_release(struct cb_hasher *hasher);
/* The same when the context is gone, with all that was in it. */
void cb_hasher_forget(struct cb_hasher *hasher);

/* `view` lies on the hasher's device, complete once the work before on its stream is done; waits for that. One call
 * at a time. */
enum cb_status cb_hasher_run(struct cb_hasher *hasher, const struct cb_view *view, struct cb_hash *hash,
                             struct cb_diag *diag);

/* A matrix of few rows and nonzeros, whose numbers the host hashes itself: all row lengths, and all columns counted
 * from 0, until the next call. Their rows and nonzeros are the view's, and no column has 32 bits. */
struct cb_brought {
  const uint32_t *lengths, *columns;
  size_t bytes; /* of the hasher's copy, to their end */
};

/* Whether the last call, which was for `view`, has brought all of the matrix. */
int cb_hasher_brought(const struct cb_hasher *hasher, const struct cb_view *view, struct cb_brought *brought);

#endif
