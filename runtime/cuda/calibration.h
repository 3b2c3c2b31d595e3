// SPDX-License-Identifier: Apache-2.0
/* Calibrations: what `cbgen calibrate` measured on a GPU model (calibrate.h), kept in a file of the user's, and read
 * whenever a GPU of that model is opened. They stand in for the figures of cb_architecture_table, which are measured on
 * one GPU and derived from data sheets for the others.
 *
 * The file is DIRECTORY/MODEL.json: DIRECTORY is $CBGEN_CALIBRATION, else $XDG_CONFIG_HOME/cbgen, else
 * $HOME/.config/cbgen; an empty CBGEN_CALIBRATION means none. (A set-user-ID program has no environment here.)
 * MODEL is the GPU's name in lower case, with '-' for every run of other characters: "nvidia-h200.json".
 *
 *   { "format": "cbgen calibration 1",
 *     "model": "NVIDIA H200", "arch": "sm_90", "multiprocessors": 132,       must be those of the GPU
 *     "read_gb_per_s": 4561, … }                                              every row of cb_figure_table
 *
 * A calibration only moves choices among right kernels. One that is broken, implausible or another GPU's is ignored.
 */
#ifndef CBGEN_RUNTIME_CUDA_CALIBRATION_H
#define CBGEN_RUNTIME_CUDA_CALIBRATION_H

#include "analysis/target.h"
#include "base/status.h"
#include "base/text.h"

#include <stddef.h>
#include <stdint.h>

/* One figure of struct cb_target: an int64_t at `offset`. */
struct cb_figure {
  const char *name; /* in the file: the member's */
  size_t offset;
  int64_t least, most; /* what is plausible */
  const char *unit, *meaning;
};
extern const struct cb_figure cb_figure_table[]; /* ends with a NULL name */

int64_t cb_figure_get(const struct cb_target *target, const struct cb_figure *figure);
void cb_figure_set(struct cb_target *target, const struct cb_figure *figure, int64_t value);

/* Where the calibration of a model lies, or would. CB_ERR_MISSING: the environment names no directory, or none is
 * wanted; CB_ERR_LIMIT: the path is too long. Allocates nothing, like cb_calibration_load. */
enum { CB_CALIBRATION_PATH = 4096 };
enum cb_status cb_calibration_path(char path[CB_CALIBRATION_PATH], const char *model, struct cb_diag *diag);

/* Puts the figures of the target's model into it; returns 1 when there were some, else 0 with nothing changed.
 * `remark` (of `size` bytes) says what was read, or why what is there was not; "" when there is none. */
int cb_calibration_load(struct cb_target *target, char *remark, size_t size);

/* The file's contents. CB_ERR_DEVICE: a figure is implausible; the message names it. */
enum cb_status cb_calibration_text(struct cb_text *text, const struct cb_target *target, struct cb_diag *diag);

/* Writes them to `path`, whose directories are made; the file appears whole or not at all. CB_ERR_IO. */
enum cb_status cb_calibration_save(const struct cb_target *target, const char *path, struct cb_diag *diag);

#endif
