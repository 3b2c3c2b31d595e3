// SPDX-License-Identifier: Apache-2.0
/* A GPU's description in a file: all that plans and keys of the cache depend on, so that kernels can be made where the
 * GPU is not. `cbgen cache gpu` writes one where it is.
 *
 *   { "format": "cbgen gpu 1", "arch": "sm_90", "model": "NVIDIA H200", "multiprocessors": 132,
 *     "shared_per_block": 232448, "shared_per_sm": 233472, "l2_bytes": 62914560,
 *     "read_gb_per_s": 4561, … }                                    every row of cb_figure_table (calibration.h)
 */
#ifndef CBGEN_RUNTIME_CUDA_TARGET_FILE_H
#define CBGEN_RUNTIME_CUDA_TARGET_FILE_H

#include "analysis/target.h"
#include "base/status.h"
#include "base/text.h"

/* Appends the file's contents. CB_ERR_MEMORY. */
enum cb_status cb_target_text(struct cb_text *text, const struct cb_target *target, struct cb_diag *diag);

/* CB_ERR_IO; CB_ERR_FORMAT: what it has is no such description, or implausible; CB_ERR_ARGUMENT: an architecture that
 * is not planned for. The message begins with the path. */
enum cb_status cb_target_read(struct cb_target *target, const char *path, struct cb_diag *diag);

#endif
