// SPDX-License-Identifier: Apache-2.0
/* Renewing an operator's values on the device: the value map lies beside the arrays, and kernels move values by it. The
 * device's context must be current everywhere. */
#ifndef CBGEN_RUNTIME_OPERATOR_UPDATE_H
#define CBGEN_RUNTIME_OPERATOR_UPDATE_H

#include "base/status.h"
#include "runtime/operator/device_pack.h"
#include "runtime/operator/image.h"
#include "runtime/operator/operator.h"
#include "runtime/operator/packer.h"

#include <stdint.h>

struct cb_updater;

/* Copies the image's value map to the device. The packer, of the stored type, and the
 * operator must outlive the updater; the image need not. */
enum cb_status cb_updater_create(struct cb_updater **updater, const struct cb_packer *packer,
                                 const struct cb_operator *op, const struct cb_image *image,
                                 struct cb_diag *diag);
/* The same for one range of slots that belongs to no operator: bytes at `slots`, all of them slots. */
enum cb_status cb_updater_create_for(struct cb_updater **updater, const struct cb_packer *packer, cb_device_ptr slots,
                                     const struct cb_value_map *map, const struct cb_value_range *range,
                                     struct cb_diag *diag);
/* Values are moved by the kernels that packed, without a map; the packing is taken over. `entries`: values of the
 * caller's. */
enum cb_status cb_updater_create_packing(struct cb_updater **updater, struct cb_device_packing *packing,
                                         const struct cb_device *device, int64_t entries, struct cb_diag *diag);
/* The same for a copy (cb_operator_copy) of the updater's operator, made from `image`. The updater must outlive its
 * copy. */
enum cb_status cb_updater_copy(struct cb_updater **copy, const struct cb_updater *updater, const struct cb_operator *op,
                               const struct cb_image *image, struct cb_diag *diag);
void cb_updater_free(struct cb_updater *updater); /* NULL is accepted */
/* Instead of cb_updater_free, when the context is gone, and with it what lay on the device. */
void cb_updater_forget(struct cb_updater *updater);

int64_t cb_updater_bytes(struct cb_updater *updater); /* allocated on the device */

/* Puts the renewal on the stream. `values` lie on the device. No allocation, no synchronisation. */
enum cb_status cb_updater_run(struct cb_updater *updater, enum cb_type given, cb_device_ptr values,
                              struct CUstream_st *stream, struct cb_diag *diag);

/* Whether some renewal made a finite value infinite, because the stored type is too narrow for it. All renewals must be
 * done by now. */
enum cb_status cb_updater_lost(const struct cb_updater *updater, int *lost, struct cb_diag *diag);
/* The same of renewals since the last call, once the work on `stream` is done. */
enum cb_status cb_updater_take_lost(const struct cb_updater *updater, struct CUstream_st *stream, int *lost,
                                    struct cb_diag *diag);

/* As cb_updater_run, from host memory, through a buffer on the device that the first call allocates. Pageable
 * values may be reused on return. Any thread. CB_ERR_ARGUMENT: the first call, while the stream is being
 * captured.
 */
enum cb_status cb_updater_run_from_host(struct cb_updater *updater, enum cb_type given, const void *values,
                                        struct CUstream_st *stream, struct cb_diag *diag);

/* Where the values of the last such renewal lie, in the stream's order; 0 before the first. */
cb_device_ptr cb_updater_staging(struct cb_updater *updater);

/* The map's blocks and body, and its lists (starts, then entries), back to the host: cb_value_map_bytes and
 * _list_bytes. */
enum cb_status cb_updater_download(const struct cb_updater *updater, void *blocks, void *lists, struct cb_diag *diag);
/* What packs, instead of a map; NULL: there is a map. */
const struct cb_device_packing *cb_updater_packing(const struct cb_updater *updater);
/* Its shape, without pointers. */
struct cb_value_map cb_updater_map(const struct cb_updater *updater);
int64_t cb_updater_list_bytes(const struct cb_updater *updater);

#endif
