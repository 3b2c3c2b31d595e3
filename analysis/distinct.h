// SPDX-License-Identifier: Apache-2.0
/* Which different values there are, as bit patterns (0 and -0 differ, and so do NaNs), while they are few. */
#ifndef CBGEN_ANALYSIS_DISTINCT_H
#define CBGEN_ANALYSIS_DISTINCT_H

#include <stdint.h>

enum { CB_DISTINCT_MOST = 256, CB_DISTINCT_SLOTS = 1024 };

/* A hash table, zeroed at first. */
struct cb_distinct {
  int count; /* CB_DISTINCT_MOST + 1: more than CB_DISTINCT_MOST, and no more are taken */
  uint64_t bits[CB_DISTINCT_SLOTS];
  uint8_t used[CB_DISTINCT_SLOTS];
};

void cb_distinct_add(struct cb_distinct *set, const double *values, int64_t count);
void cb_distinct_unite(struct cb_distinct *set, const struct cb_distinct *other);

#endif
