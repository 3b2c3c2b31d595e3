// SPDX-License-Identifier: Apache-2.0
/* Modules of the library's own kernels that look at matrices on the device and pack them there. All there are stand in
 * one table, so that whoever builds them ahead of time can walk it: their texts depend on nothing else.
 *
 *   survey                 what a matrix looks like (device_survey.h)
 *   profile                what the choice of a recipe goes by (device_profile.h)
 *   diagonals              those that are populated (device_survey.h)
 *   tiles                  those that have nonzeros, likewise
 *   rows                   what equal shares of nonzeros need to know (device_rows.h)
 *   columns                what hot columns need to know (device_columns.h)
 *   symmetry               whether values are symmetric (pairs.h)
 *   LAYOUT-indices         a layout's index arrays, and its slot map (device_pack.h)
 *   LAYOUT-values-TYPE     its values, stored as that type
 */
#ifndef CBGEN_RUNTIME_OPERATOR_KERNEL_SETS_H
#define CBGEN_RUNTIME_OPERATOR_KERNEL_SETS_H

#include "base/status.h"
#include "base/text.h"
#include "base/types.h"
#include "runtime/cuda/driver.h"

#include <stdint.h>

enum { CB_SET_KERNELS = 8, CB_SET_THREADS = 256, CB_MOST_SETS = 33 };

struct cb_kernel_set {
  const char *name, *template, *section; /* section NULL: the template has none */
  const char *stored;                    /* what the template calls the type of slots, or NULL */
  const char *kernels[CB_SET_KERNELS + 1]; /* ends with NULL */
  int resident; /* thread blocks of a multiprocessor that there must be registers for; 0: as the compiler likes */
};

extern const struct cb_kernel_set cb_kernel_sets[]; /* CB_MOST_SETS at most; ends with a NULL name */

/* The number of the set of that name, or of the layout's part, with values of a type or (part "indices") without. -1:
 * there is none. */
int cb_kernel_set_find(const char *name);
int cb_kernel_set_of(const char *layout, const char *part, enum cb_type stored);

/* The set's CUDA text, for NVRTC. Release the text in any case. */
enum cb_status cb_kernel_set_text(struct cb_text *text, const struct cb_kernel_set *set, struct cb_diag *diag);

/* A set that is loaded. */
struct cb_kernels {
  const struct cb_device *device;
  const struct cb_kernel_set *set;
  struct CUmod_st *module; /* NULL: not loaded */
  struct CUfunc_st *functions[CB_SET_KERNELS];
};

/* The device's context must be current here and below. Release the kernels in any case. */
enum cb_status cb_kernels_load(struct cb_kernels *kernels, const struct cb_device *device,
                               const struct cb_kernel_set *set, const void *cubin, struct cb_diag *diag);
void cb_kernels_release(struct cb_kernels *kernels);

/* Sees to it that nothing of them is left for their first launch, which may be captured into a graph. */
enum cb_status cb_kernels_prepare(const struct cb_kernels *kernels, struct cb_diag *diag);

/* Launches kernel `number` of the set with at least as many threads; none for 0. */
enum cb_status cb_kernels_launch(const struct cb_kernels *kernels, int number, int64_t threads,
                                 struct CUstream_st *stream, void **parameters, struct cb_diag *diag);
/* The same by its name. CB_ERR_INTERNAL: the set has no such kernel. */
enum cb_status cb_kernels_launch_named(const struct cb_kernels *kernels, const char *name, int64_t threads,
                                       struct CUstream_st *stream, void **parameters, struct cb_diag *diag);

#endif
