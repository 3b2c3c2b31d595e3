// SPDX-License-Identifier: Apache-2.0
/* Measuring what the cost model knows of a GPU: the figures of struct cb_target, by the kernels of
 * templates/calibrate.cu.in.
 *
 *   read_gb_per_s     a read of up to 2 GiB, the best of several grids
 *   l2_gb_per_s       a quarter of L2, read over and over by all multiprocessors
 *   sectors_g_per_s   numbers of 8 bytes at random places of a quarter of L2, which no L1 holds
 *   latency_ns        a chain through lines of an eighth of L2 in random order, followed by one thread
 *   launch_ns         an empty kernel on every multiprocessor, launched as products are
 *
 * Each but the first and the last is the difference between a long and a short launch. */
#ifndef CBGEN_RUNTIME_MEASURE_CALIBRATE_H
#define CBGEN_RUNTIME_MEASURE_CALIBRATE_H

#include "base/status.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/nvrtc.h"

/* *measured becomes the device's target with the figures that were measured, whatever they are: calibration.h says
 * what is plausible. `batches`: that medians are taken of, at most 64. Makes the device's context current for the time
 * of the call; nothing is left on the device. */
enum cb_status cb_calibrate(struct cb_target *measured, const struct cb_device *device, const struct cb_nvrtc *nvrtc,
                            int batches, struct cb_diag *diag);

#endif
