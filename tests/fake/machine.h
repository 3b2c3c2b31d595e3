// SPDX-License-Identifier: Apache-2.0
/* The emulator within this process: one thread runs all grids, whichever thread launches them. */
#ifndef CBGEN_TESTS_FAKE_MACHINE_H
#define CBGEN_TESTS_FAKE_MACHINE_H

#include "tests/fake/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Runs a grid to its end; a cooperative one with all thread blocks at once, one that overlaps as if kernels before it
 * went on until it waits. One thread at a time. Returns 0, the emulator's refusal (a CUDA error), or -1 when the kernel
 * was stopped: `message` says why, then. */
int machine_run(const struct fake_kernel *kernel, unsigned blocks, unsigned threads, size_t shared_bytes,
                void **parameters, int cooperative, int overlaps, char *message, size_t size);

#ifdef __cplusplus
}
#endif
#endif
