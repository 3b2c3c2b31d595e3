// SPDX-License-Identifier: Apache-2.0
/* Loaded modules that several operators of a CUDA context use: kernels of families, which serve many matrices. One that
 * nobody uses any more stays loaded for the next matrix of its family, as long as there is a place for it.
 *
 * Any thread may take and give back. In a child of fork nothing is taken or given back: what its parent loaded is not
 * there. */
#ifndef CBGEN_RUNTIME_CUDA_MODULES_H
#define CBGEN_RUNTIME_CUDA_MODULES_H

#include "base/status.h"
#include "runtime/cuda/driver.h"

#include <stddef.h>

struct cb_modules;

enum { CB_MOST_MODULES = 64 };

enum cb_status cb_modules_create(struct cb_modules **modules, struct cb_diag *diag); /* CB_ERR_MEMORY */
/* With the context current, and nobody uses one. NULL is accepted. */
void cb_modules_free(struct cb_modules *modules, const struct cb_driver *driver);
void cb_modules_forget(struct cb_modules *modules); /* when the context is gone, with all that was in it; likewise */

/* The module of a binary, which is loaded unless it is there already. With the context current. *is_shared: whether it
 * has to be given back; else it is the caller's to unload. */
enum cb_status cb_modules_take(struct cb_modules *modules, const struct cb_device *device, const void *cubin,
                               size_t bytes, struct CUmod_st **module, int *is_shared, struct cb_diag *diag);
void cb_modules_give_back(struct cb_modules *modules, const struct CUmod_st *module);

/* Lets a kernel have dynamic shared memory: `bytes`, or more where another user of its module asked for more. NULL for
 * `modules`: it has no other. */
enum cb_status cb_modules_allow(struct cb_modules *modules, const struct cb_driver *driver,
                                struct CUfunc_st *function, const char *kernel, unsigned bytes,
                                struct cb_diag *diag);

#endif
