// SPDX-License-Identifier: Apache-2.0
/* How a region's text reads value slots: one number each, a code, two parts, or no slot at all. */
#ifndef CBGEN_CODEGEN_SLOTS_H
#define CBGEN_CODEGEN_SLOTS_H

#include "codegen/emitter.h"

/* Whether the array has value slots, perhaps among other bytes. */
static inline int cb_holds_values(const struct cb_array *array) {
  return array->role == CB_ROLE_VALUES || array->role == CB_ROLE_MIXED;
}

/* Whether the accessors of values read the array. */
static inline int cb_gives_values(const struct cb_array *array) {
  return cb_holds_values(array) || array->role == CB_ROLE_TABLE;
}

/* Whether the sections of a layout's template read any. */
int cb_reads_values(const char *sections);

/* Adds the accessors that the sections name. */
enum cb_status cb_add_value_accessors(struct emitter *emitter, struct cb_text *text, const struct cb_region *region,
                                      const char *sections);

/* Where all values are equal, a constant is in place of the accessors. */
void cb_add_equal_value(struct emitter *emitter, struct cb_text *constants, struct cb_text *sections,
                        const struct cb_region *region);

/* How the region's text reads what it reads once of such a role, @stream@ and @hint@ in templates/region.cu.in:
 * load_stream, or with what becomes of it in L2, or, before the region waits for the kernel before, so that it stays
 * there. The former is the name for one element; that for several ends with "_vector". */
void cb_scope_stream(struct cb_scope *scope, const struct emitter *emitter, const struct cb_region *region,
                     enum cb_role role);

/* Where all of it stays in L2, it is read as all else; where a part does, constants that say so are defined. */
void cb_keep_stream(struct cb_text *constants, struct cb_text *accessors, struct cb_text *sections,
                    const struct emitter *emitter, const struct cb_region *region);

/* Where the second parts of split values begin, if the accessors ask for it. */
void cb_add_rests(struct cb_text *constants, const struct cb_text *accessors, const struct cb_region *region);

#endif
