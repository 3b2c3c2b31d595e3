// SPDX-License-Identifier: Apache-2.0
/* See gathered.h. */
#include "analysis/gathered.h"

#include "base/integers.h"

enum {
  THREADS = 256,
  EACH = 4 /* entries of a thread when there are many */
};

void cb_region_gather(struct cb_region_builder *builder, int64_t before, int64_t entries) {
  const int64_t each = entries > builder->target->multiprocessors * INT64_C(2048) ? EACH : 1;
  cb_region_size(builder, "kBefore", before, "plan: sums before the gathered entries");
  cb_region_size(builder, "kGathered", entries, "plan: entries of x that a first launch lays side by side");
  cb_region_structure(builder, "kEach", each, "plan: entries of one of its threads");
  builder->region.carry_slots = before + entries;
  builder->region.carry_width = 1;
  if (!builder->region.carry_counters) builder->region.carry_counters = 1; /* scratch has both kinds, or none */
  builder->region.prepare_blocks = cb_divide_up(entries, THREADS * each);
}
