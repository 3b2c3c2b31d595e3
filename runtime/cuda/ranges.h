// SPDX-License-Identifier: Apache-2.0
/* Ranges for profilers (NVTX): what cbgen does when, on the time line of Nsight Systems and others. A profiler names
 * itself by NVTX_INJECTION64_PATH, the library that takes ranges; without one everything here is a test of a pointer.
 * CBGEN_NVTX=0 leaves ranges out all the same; CBGEN_NVTX=1 gives them to an old profiler's libnvToolsExt.so.1.
 *
 *   cb_ranges_open    finds the profiler: once, any thread
 *   CB_RANGE          what the calling thread does until the end of the block; ranges nest
 *
 * The protocol is NVTX 3's: a client has a table of functions for each module, which the profiler fills
 * (NVIDIA/NVTX, c/include/nvtx3/nvtxDetail/nvtxTypes.h). Ranges are those of the default domain. */
#ifndef CBGEN_RUNTIME_CUDA_RANGES_H
#define CBGEN_RUNTIME_CUDA_RANGES_H

/* The profiler's functions; NULL: there is none. */
struct cb_ranges {
  int (*push)(const char *message);
  int (*pop)(void);
};
extern struct cb_ranges cb_ranges;

void cb_ranges_open(void);

static inline int cb_ranges_are_on(void) {
  return __builtin_expect(cb_ranges.push != 0, 0);
}

static inline int cb_range_begin(const char *message) {
  if (cb_ranges_are_on()) cb_ranges.push(message);
  return cb_ranges_are_on();
}

static inline void cb_range_end(const int *began) {
  if (*began) cb_ranges.pop();
}

/* A range from here to the end of the block. */
#define CB_RANGE(message) \
  const int cb_range_began __attribute__((unused, cleanup(cb_range_end))) = cb_range_begin(message)

#endif
