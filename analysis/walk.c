// SPDX-License-Identifier: Apache-2.0
/* Running a layout's visit over all its units: see walk.h. */
#include "analysis/walk.h"

#include "base/integers.h"

#include <string.h>

enum { RANGES = 1024 }; /* enough for any number of threads to share, and each long enough to begin one */

unsigned char *cb_walk_bytes(const struct cb_walk *walk, const char *name) {
  for (int a = 0; walk->targets && a < walk->region->arrays_count; a++)
    if (!strcmp(walk->region->arrays[a].name, name)) return walk->targets[a];
  return NULL;
}

int cb_walk_run(const struct cb_walk *walk, cb_visit *visit, const void *state, int64_t units) {
  const int64_t range = cb_larger(1, cb_divide_up(units, RANGES));
  int good = 1;
#pragma omp parallel for schedule(dynamic) reduction(&& : good)
  for (int64_t first = 0; first < units; first += range)
    good = good && visit(state, first, cb_smaller(first + range, units), walk);
  return good;
}
