// SPDX-License-Identifier: Apache-2.0
/* How elements of index arrays are read: for what chooses their storage, and for what packs them. Layouts do not need
 * this. */
#ifndef CBGEN_ANALYSIS_CONTENTS_H
#define CBGEN_ANALYSIS_CONTENTS_H

#include "analysis/layout.h"

/* A new array behind the others of the region, with contents that are all 0. NULL: the builder has failed. */
struct cb_array *cb_region_array(struct cb_region_builder *builder, const char *name, const char *meaning,
                                 enum cb_role role, enum cb_type type, int64_t count);

/* Element i of an array that is computed or listed. (Elements by slot come from the visit.) */
static inline uint64_t cb_contents_element(const struct cb_contents *contents, const void *state, int64_t i) {
  if (contents->of) return contents->of(state, i);
  switch (contents->size) {
  case 1: return ((const uint8_t *)contents->elements)[i];
  case 2: return ((const uint16_t *)contents->elements)[i];
  case 4: return ((const uint32_t *)contents->elements)[i];
  default: return ((const uint64_t *)contents->elements)[i];
  }
}

#endif
