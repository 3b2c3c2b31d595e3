// SPDX-License-Identifier: Apache-2.0
/* What a family's kernel gets as data: see family.h. The text and the numbers go through the same list of members. */
#include "codegen/family.h"

#include "analysis/layout.h"
#include "codegen/constants.h"

#include <stdio.h>
#include <string.h>

/* ---- the members of Sizes, in their order */

enum member_kind { MEMBER_INDEX, MEMBER_SIZE, MEMBER_PLACE, MEMBER_TABLE }; /* place: a size without a constant */

struct member {
  enum member_kind kind;
  const char *name;
  const struct cb_array *array; /* MEMBER_INDEX */
  int64_t value;                /* MEMBER_SIZE, MEMBER_PLACE */
  const struct cb_table *table; /* MEMBER_TABLE */
};

typedef void use_member(void *user, const struct member *member);

int cb_family_is_index(const struct cb_array *array) {
  return array->role == CB_ROLE_INDEX && !(array->by_slot && array->storage == CB_STORED);
}

static void use_arrays(const struct cb_array *arrays, int count, use_member *use, void *user) {
  for (int i = 0; i < count; i++)
    if (cb_family_is_index(&arrays[i]))
      use(user, &(struct member){.kind = MEMBER_INDEX, .name = arrays[i].name, .array = &arrays[i]});
}

static void use_sizes(const struct cb_constant *constants, int count, use_member *use, void *user) {
  for (int i = 0; i < count; i++)
    if (constants[i].kind == CB_CONSTANT_SIZE)
      use(user, &(struct member){.kind = MEMBER_SIZE, .name = constants[i].name, .value = constants[i].value});
}

static void use_members(const struct cb_region *region, use_member *use, void *user) {
  const struct cb_family_parts *family = &region->family;
  const struct member places[] = {
      {.kind = MEMBER_PLACE, .name = "first_carry_sum", .value = region->first_carry_sum},
      {.kind = MEMBER_PLACE, .name = "first_carry_counter", .value = region->first_carry_counter},
      {.kind = MEMBER_PLACE, .name = "first_block", .value = region->first_block},
      {.kind = MEMBER_PLACE, .name = "blocks", .value = region->blocks},
  };
  use_arrays(region->arrays, region->arrays_count, use, user);
  use_arrays(family->sequences, family->sequences_count, use, user);
  use_sizes(region->constants, region->constants_count, use, user);
  use_sizes(family->sizes, family->sizes_count, use, user);
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) use(user, &places[i]);
  for (int i = 0; i < family->tables_count; i++)
    use(user, &(struct member){.kind = MEMBER_TABLE, .name = family->tables[i].name, .table = &family->tables[i]});
}

/* ---- numbers */

static int is_narrow(int64_t value) { return value >= INT32_MIN && value <= INT32_MAX; }

/* The largest size of all, in magnitude, and how many ints there are. */
struct measure {
  int ints, narrow;
};

static void measure_member(void *user, const struct member *member) {
  struct measure *measure = user;
  const struct cb_array *array = member->array;
  switch (member->kind) {
  case MEMBER_INDEX:
    measure->ints += 3;
    measure->narrow &= is_narrow(array->largest) && is_narrow(array->base) && is_narrow(array->step) &&
                       is_narrow(array->count) && array->storage != CB_BAKED;
    break;
  case MEMBER_SIZE:
  case MEMBER_PLACE:
    measure->ints++;
    measure->narrow &= is_narrow(member->value);
    break;
  case MEMBER_TABLE:
    measure->ints += CB_FAMILY_TABLE;
    measure->narrow &= member->table->count <= CB_FAMILY_TABLE;
    for (int i = 0; i < member->table->count; i++) measure->narrow &= is_narrow(member->table->elements[i]);
  }
}

struct filling {
  int32_t *sizes;
  int count;
};

static void fill_member(void *user, const struct member *member) {
  struct filling *filling = user;
  int32_t *to = filling->sizes + filling->count;
  const struct cb_array *array = member->array;
  switch (member->kind) {
  case MEMBER_INDEX:
    to[0] = array->storage == CB_STORED ? (int32_t)cb_type_size(array->type) : 0;
    to[1] = (int32_t)array->base;
    to[2] = (int32_t)array->step;
    filling->count += 3;
    break;
  case MEMBER_SIZE:
  case MEMBER_PLACE:
    to[0] = (int32_t)member->value;
    filling->count++;
    break;
  case MEMBER_TABLE:
    memset(to, 0, CB_FAMILY_TABLE * sizeof *to);
    for (int i = 0; i < member->table->count; i++) to[i] = (int32_t)member->table->elements[i];
    filling->count += CB_FAMILY_TABLE;
  }
}

int cb_family_sizes(const struct cb_region *region, int32_t sizes[CB_FAMILY_SIZES]) {
  struct filling filling = {.sizes = sizes};
  use_members(region, fill_member, &filling);
  return filling.count;
}

struct cb_family_shape cb_family_shape(const struct cb_plan *plan) {
  return (struct cb_family_shape){(int32_t)plan->rows, (int32_t)plan->cols, plan->first_row_sum};
}

static enum cb_status check_region(const struct cb_plan *plan, const struct cb_region *region, struct cb_diag *diag) {
  struct measure measure = {.narrow = 1};
  if (!cb_layout_find(region->layout)->has_family)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "layout '%s' has no family of kernels", region->layout);
  use_members(region, measure_member, &measure);
  for (int i = 0; i < region->arrays_count; i++) measure.narrow &= region->arrays[i].count <= plan->index_limit;
  if (measure.narrow && measure.ints <= CB_FAMILY_SIZES && region->value_slots <= plan->index_limit) return CB_OK;
  return cb_fail(diag, CB_ERR_UNSUPPORTED, "region '%s' is too large for a family of kernels", region->name);
}

enum cb_status cb_family_check(const struct cb_plan *plan, struct cb_diag *diag) {
  enum cb_status s = CB_OK;
  if (plan->values_fixed) return cb_fail(diag, CB_ERR_UNSUPPORTED, "fixed values are part of a kernel's text");
  for (int i = 0; i < plan->regions_count && !s; i++) s = check_region(plan, &plan->regions[i], diag);
  return s;
}

/* ---- text */

static int is_named(const char **names, int count, const char *name) {
  for (int i = 0; i < count; i++)
    if (!strcmp(names[i], name)) return 1;
  return 0;
}

int cb_family_has_section(const struct cb_region *region, const char *name) {
  const struct cb_family_parts *family = &region->family;
  if (is_named(family->with, family->with_count, name)) return 1;
  return is_named(region->sections, region->sections_count, name) &&
         !is_named(family->without, family->without_count, name);
}

int64_t cb_family_value(const struct cb_region *region, const struct cb_constant *constant) {
  for (int i = 0; i < region->family.structures_count; i++)
    if (!strcmp(region->family.structures[i].name, constant->name)) return region->family.structures[i].value;
  return constant->value;
}

static void add_member(void *text, const struct member *member) {
  if (member->kind == MEMBER_INDEX) cb_text_add(text, "  Index %s;\n", member->name);
  if (member->kind == MEMBER_SIZE || member->kind == MEMBER_PLACE) cb_text_add(text, "  int %s;\n", member->name);
  if (member->kind == MEMBER_TABLE) cb_text_add(text, "  int %s[%d];\n", member->name, CB_FAMILY_TABLE);
}

void cb_family_add_sizes(struct cb_text *text, const struct cb_region *region) {
  use_members(region, add_member, text);
}

static void add_pointer(struct cb_text *text, const struct cb_array *array) {
  if (cb_family_is_index(array)) cb_text_add(text, "  const void *%s;\n", array->name);
  else cb_text_add(text, "  const %s *%s;  // %s\n", cb_type_c_name(array->type), array->name, array->meaning);
}

void cb_family_add_pointers(struct cb_text *text, const struct cb_region *region) {
  for (int i = 0; i < region->arrays_count; i++) add_pointer(text, &region->arrays[i]);
  for (int i = 0; i < region->family.sequences_count; i++) add_pointer(text, &region->family.sequences[i]);
}

int cb_family_pointers(const struct cb_region *region) {
  return region->arrays_count + region->family.sequences_count;
}

static void read_member(void *text, const struct member *member) {
  char place[96];
  if (member->kind != MEMBER_SIZE && member->kind != MEMBER_TABLE) return;
  snprintf(place, sizeof place, "arrays.sizes->%s", member->name);
  cb_word_instead(text, member->name, place);
}

void cb_family_read_sizes(struct cb_text *text, const struct cb_region *region) {
  use_members(region, read_member, text);
}
