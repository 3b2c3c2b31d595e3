// SPDX-License-Identifier: Apache-2.0
/* Packing on the device: kernels (templates/pack_NAME.cu.in, one for each layout that has cb_layout.describe) write the
 * index arrays whose elements belong to slots, and the values, into an operator's arrays, from a matrix in CSR on the
 * device and what the plan says of slices or tiles (packing_lists.h), or said when an entry of the cache was made. The
 * arrays are byte for byte what packing on the host gives.
 *
 * A packing keeps what renewals of values need: the plan's lists and where rows begin. It does not keep columns.
 */
#ifndef CBGEN_RUNTIME_OPERATOR_DEVICE_PACK_H
#define CBGEN_RUNTIME_OPERATOR_DEVICE_PACK_H

#include "runtime/operator/device_survey.h"
#include "runtime/operator/packing_lists.h"

/* The kernels of one region. */
struct cb_pack_kernels {
  const struct cb_kernels *indices, *values;
};

/* What a packing is made from. All but the kernels need only live until it is made and has filled the arrays. */
struct cb_pack_source {
  const struct cb_packing_lists *lists;
  struct cb_survey *survey;
  const struct cb_pack_kernels *kernels; /* one for each region */
};

struct cb_device_packing;

/* `arrays`: where those of the plan's image lie, by their number. Takes the survey's row pointers over. The device's
 * context must be current here and below. */
enum cb_status cb_device_packing_create(struct cb_device_packing **packing, const struct cb_pack_source *source,
                                        const cb_device_ptr *arrays, struct cb_diag *diag);
/* The same for values in other arrays of the same plan. The packing must outlive its copy. */
enum cb_status cb_device_packing_copy(struct cb_device_packing **copy, const struct cb_device_packing *packing,
                                      const cb_device_ptr *arrays, struct cb_diag *diag);
void cb_device_packing_free(struct cb_device_packing *packing); /* NULL is accepted */
/* Instead, when its kernels have been waited for; not of a copy. */
void cb_device_packing_finish(struct cb_device_packing *packing);
/* Instead, when the context is gone, and with it what lay on the device. */
void cb_device_packing_forget(struct cb_device_packing *packing);

int64_t cb_device_packing_bytes(const struct cb_device_packing *packing); /* allocated on the device */

/* Fills the index arrays, from the survey's matrix. Waits for nothing. */
enum cb_status cb_device_packing_indices(const struct cb_device_packing *packing, const struct cb_pack_source *source,
                                         struct cb_diag *diag);

/* Makes renewals ready to be captured into a graph. */
enum cb_status cb_device_packing_prepare(const struct cb_device_packing *packing, struct cb_diag *diag);

/* Puts values, which lie on the device (0: all are 1), into their slots. No allocation, no synchronisation. */
enum cb_status cb_device_packing_values(const struct cb_device_packing *packing, enum cb_type given,
                                        cb_device_ptr values, struct CUstream_st *stream, struct cb_diag *diag);
/* See cb_device_separate. */
enum cb_status cb_device_packing_separate(const struct cb_device_packing *packing, struct CUstream_st *stream,
                                          struct cb_diag *diag);

/* Whether some value was lost, as cb_updater_lost (update.h) says. */
enum cb_status cb_device_packing_lost(const struct cb_device_packing *packing, int *lost, struct cb_diag *diag);

/* The slot maps of all regions, one for each, on the host: release them with cb_slot_map_release. */
enum cb_status cb_device_packing_maps(const struct cb_device_packing *packing, struct cb_slot_map *maps,
                                      struct cb_diag *diag);

#endif
