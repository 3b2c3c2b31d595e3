// SPDX-License-Identifier: Apache-2.0
/* Counting sectors of x, by a sample: see sectors.h. */
#include "analysis/sectors.h"

#include "base/memory.h"

#include <string.h>

enum {
  SAMPLES = 512,       /* thread blocks looked at, of a matrix with more */
  SLOTS = 1 << 15,     /* of the set of sectors that a thread block touches */
  FULL = SLOTS / 4 * 3,
  SECTOR_BYTES = 32,
  KEPT_FREE = 16 << 10 /* bytes of L1 that something else takes */
};

struct cb_sector_sink {
  int64_t per_sector, previous;
  int64_t asked, distinct;
  uint32_t *slots; /* sector + 1; 0: free */
};

void cb_sector_load(struct cb_sector_sink *sink) { sink->previous = -1; }

void cb_sector_ask(struct cb_sector_sink *sink, int64_t column) {
  const int64_t sector = column / sink->per_sector;
  if (sector == sink->previous) return;
  sink->previous = sector;
  sink->asked++;
  if (sink->distinct >= FULL) { /* far beyond any L1: count on as if each were new */
    sink->distinct++;
    return;
  }
  uint32_t slot = (uint32_t)sector * 0x9e3779b1u >> 17;
  while (sink->slots[slot] && sink->slots[slot] != (uint32_t)sector + 1) slot = (slot + 1) % SLOTS;
  if (sink->slots[slot]) return;
  sink->slots[slot] = (uint32_t)sector + 1;
  sink->distinct++;
}

/* Fetched by one thread block: each sector once, and of the repeated requests those that L1 no longer holds. */
static int64_t fetched(const struct cb_sector_sink *sink, int64_t room) {
  if (sink->distinct <= room) return sink->distinct;
  return sink->distinct + (sink->asked - sink->distinct) * (sink->distinct - room) / sink->distinct;
}

/* The sum over sampled thread blocks; -1: no memory. */
static int64_t sum_samples(const struct cb_region_builder *builder, const void *state, cb_sectors_visit *visit,
                           int64_t samples) {
  const int64_t blocks = builder->region.blocks, value_bytes = (int64_t)cb_type_size(builder->vector_type);
  const int64_t shares = builder->region.blocks_per_sm > 0 ? builder->region.blocks_per_sm : 1;
  const int64_t room = (builder->target->shared_per_sm - KEPT_FREE) / shares / SECTOR_BYTES;
  int64_t sum = 0;
  int failed = 0;
#pragma omp parallel reduction(+ : sum) reduction(| : failed)
  {
    struct cb_sector_sink sink = {.per_sector = SECTOR_BYTES / value_bytes};
    sink.slots = cb_alloc(SLOTS, sizeof *sink.slots);
    failed = !sink.slots;
#pragma omp for schedule(dynamic, 8)
    for (int64_t i = 0; i < samples; i++) {
      if (!sink.slots) continue;
      memset(sink.slots, 0, SLOTS * sizeof *sink.slots);
      sink.asked = sink.distinct = 0;
      sink.previous = -1;
      visit(state, i * blocks / samples, &sink);
      sum += fetched(&sink, room);
    }
    cb_free(sink.slots);
  }
  return failed ? -1 : sum;
}

enum cb_status cb_sectors_predict(struct cb_region_builder *builder, const void *state, cb_sectors_visit *visit,
                                  struct cb_diag *diag) {
  const int64_t blocks = builder->region.blocks, samples = blocks < SAMPLES ? blocks : SAMPLES;
  const int64_t sum = sum_samples(builder, state, visit, samples);
  int64_t *sectors = &builder->region.cost.sectors;
  *sectors = 0;
  if (sum < 0) return cb_fail_memory(diag, "an estimate of gathers", SLOTS * sizeof(uint32_t));
  if (samples) *sectors = (int64_t)((double)sum * (double)blocks / (double)samples);
  return CB_OK;
}
