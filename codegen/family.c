// SPDX-License-Identifier: Apache-2.0
/* What a family's kernel gets as data: see family.h. The text and the numbers go through the same list of members. */
#include "codegen/family.h"

#include "analysis/layout.h"
#include "codegen/constants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- arrays */

int cb_family_is_index(const struct cb_array *array) {
  return array->role == CB_ROLE_INDEX && !(array->by_slot && array->storage == CB_STORED);
}

int cb_family_pointers(const struct cb_region *region) {
  return region->arrays_count + region->family.sequences_count;
}

static int by_array_name(const void *a, const void *b) {
  return strcmp((*(const struct cb_array *const *)a)->name, (*(const struct cb_array *const *)b)->name);
}

int cb_family_arrays(const struct cb_region *region, const struct cb_array *arrays[CB_FAMILY_ARRAYS]) {
  const int own = region->arrays_count, count = cb_family_pointers(region);
  for (int i = 0; i < count; i++) arrays[i] = i < own ? &region->arrays[i] : &region->family.sequences[i - own];
  qsort(arrays, (size_t)count, sizeof *arrays, by_array_name);
  return count;
}

/* ---- the members of Sizes */

enum { INDEX_INTS = 4 }; /* of a struct Index in templates/prelude.cu.in */
enum member_kind { MEMBER_INDEX, MEMBER_SIZE, MEMBER_TABLE };

struct member {
  enum member_kind kind;
  int is_place; /* a size that no constant of the text is */
  const char *name;
  const struct cb_array *array; /* MEMBER_INDEX */
  int64_t value;                /* MEMBER_SIZE */
  const struct cb_table *table; /* MEMBER_TABLE */
};

struct members {
  int count;
  struct member list[CB_FAMILY_SIZES];
};

enum { PLACES = 5 };

static int members_count(const struct cb_region *region) {
  const struct cb_family_parts *family = &region->family;
  return cb_family_pointers(region) + region->constants_count + family->sizes_count + PLACES + family->tables_count;
}

static void add(struct members *members, const struct member *member) { members->list[members->count++] = *member; }

static void add_sizes(struct members *members, const struct cb_constant *constants, int count) {
  for (int i = 0; i < count; i++)
    if (constants[i].kind == CB_CONSTANT_SIZE)
      add(members, &(struct member){.kind = MEMBER_SIZE, .name = constants[i].name, .value = constants[i].value});
}

static int by_kind_and_name(const void *a, const void *b) {
  const struct member *one = a, *other = b;
  return one->kind != other->kind ? (int)one->kind - (int)other->kind : strcmp(one->name, other->name);
}

static void list_members(struct members *members, const struct cb_region *region) {
  const struct cb_family_parts *family = &region->family;
  const struct {
    const char *name;
    int64_t value;
  } places[PLACES] = {{"first_carry_sum", region->first_carry_sum},
                      {"first_carry_counter", region->first_carry_counter},
                      {"first_block", region->first_block},
                      {"blocks", region->blocks},
                      {"stream", region->stream}};
  const struct cb_array *arrays[CB_FAMILY_ARRAYS];
  const int count = cb_family_arrays(region, arrays);
  members->count = 0;
  for (int i = 0; i < count; i++)
    if (cb_family_is_index(arrays[i]))
      add(members, &(struct member){.kind = MEMBER_INDEX, .name = arrays[i]->name, .array = arrays[i]});
  add_sizes(members, region->constants, region->constants_count);
  add_sizes(members, family->sizes, family->sizes_count);
  for (int i = 0; i < PLACES; i++)
    add(members, &(struct member){MEMBER_SIZE, .is_place = 1, .name = places[i].name, .value = places[i].value});
  for (int i = 0; i < family->tables_count; i++)
    add(members, &(struct member){.kind = MEMBER_TABLE, .name = family->tables[i].name, .table = &family->tables[i]});
  qsort(members->list, (size_t)members->count, sizeof *members->list, by_kind_and_name);
}

/* ---- numbers */

static int is_narrow(int64_t value) { return value >= INT32_MIN && value <= INT32_MAX; }

/* The largest size of all, in magnitude, and how many ints there are. */
struct measure {
  int ints, narrow;
};

static void measure_member(struct measure *measure, const struct member *member) {
  const struct cb_array *array = member->array;
  switch (member->kind) {
  case MEMBER_INDEX:
    measure->ints += INDEX_INTS;
    measure->narrow &= is_narrow(array->largest) && is_narrow(array->base) && is_narrow(array->step) &&
                       is_narrow(array->count) && array->storage != CB_BAKED;
    break;
  case MEMBER_SIZE:
    measure->ints++;
    measure->narrow &= is_narrow(member->value);
    break;
  case MEMBER_TABLE:
    measure->ints += CB_FAMILY_TABLE;
    measure->narrow &= member->table->count <= CB_FAMILY_TABLE;
    for (int i = 0; i < member->table->count; i++) measure->narrow &= is_narrow(member->table->elements[i]);
  }
}

/* Returns how many ints it takes. */
static int put_member(int32_t *to, const struct member *member) {
  const struct cb_array *array = member->array;
  switch (member->kind) {
  case MEMBER_INDEX:
    to[0] = array->storage == CB_STORED ? (int32_t)cb_type_size(array->type) : 0;
    to[1] = (int32_t)array->base;
    to[2] = (int32_t)array->step;
    to[3] = (int32_t)((1ull << 8 * to[0]) - 1);
    return INDEX_INTS;
  case MEMBER_SIZE:
    to[0] = (int32_t)member->value;
    return 1;
  case MEMBER_TABLE:
    break;
  }
  memset(to, 0, CB_FAMILY_TABLE * sizeof *to);
  for (int i = 0; i < member->table->count; i++) to[i] = (int32_t)member->table->elements[i];
  return CB_FAMILY_TABLE;
}

int cb_family_sizes(const struct cb_region *region, int32_t sizes[CB_FAMILY_SIZES]) {
  struct members members;
  int count = 0;
  list_members(&members, region);
  for (int i = 0; i < members.count; i++) count += put_member(sizes + count, &members.list[i]);
  return count;
}

struct cb_family_shape cb_family_shape(const struct cb_plan *plan) {
  return (struct cb_family_shape){(int32_t)plan->rows, (int32_t)plan->cols, plan->first_row_sum};
}

static enum cb_status check_region(const struct cb_plan *plan, const struct cb_region *region, struct cb_diag *diag) {
  struct measure measure = {.narrow = 1};
  struct members members;
  if (!cb_layout_find(region->layout)->has_family)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "layout '%s' has no family of kernels", region->layout);
  if (cb_family_pointers(region) > CB_FAMILY_ARRAYS || members_count(region) > CB_FAMILY_SIZES)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "region '%s' has too much for a family of kernels", region->name);
  list_members(&members, region);
  for (int i = 0; i < members.count; i++) measure_member(&measure, &members.list[i]);
  for (int i = 0; i < region->arrays_count; i++) measure.narrow &= region->arrays[i].count <= plan->index_limit;
  if (measure.narrow && measure.ints <= CB_FAMILY_SIZES && region->value_slots <= plan->index_limit) return CB_OK;
  return cb_fail(diag, CB_ERR_UNSUPPORTED, "region '%s' is too large for a family of kernels", region->name);
}

enum cb_status cb_family_check(const struct cb_plan *plan, struct cb_diag *diag) {
  enum cb_status s = CB_OK;
  if (plan->epilogue) return cb_fail(diag, CB_ERR_UNSUPPORTED, "an epilogue is part of a kernel's text");
  if (plan->vectors > 1) return cb_fail(diag, CB_ERR_UNSUPPORTED, "no family has kernels for several vectors");
  if (cb_plan_is_complex(plan)) return cb_fail(diag, CB_ERR_UNSUPPORTED, "no family has kernels for complex numbers");
  if (cb_plan_has_heads(plan)) return cb_fail(diag, CB_ERR_UNSUPPORTED, "no family has kernels for split values");
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

void cb_family_add_sizes(struct cb_text *text, const struct cb_region *region) {
  struct members members;
  list_members(&members, region);
  for (int i = 0; i < members.count; i++) {
    const struct member *member = &members.list[i];
    if (member->kind == MEMBER_TABLE) cb_text_add(text, "  int %s[%d];\n", member->name, CB_FAMILY_TABLE);
    else cb_text_add(text, "  %s %s;\n", member->kind == MEMBER_INDEX ? "Index" : "int", member->name);
  }
}

void cb_family_add_pointers(struct cb_text *text, const struct cb_region *region) {
  const struct cb_array *arrays[CB_FAMILY_ARRAYS];
  const int count = cb_family_arrays(region, arrays);
  for (int i = 0; i < count; i++) {
    const struct cb_array *array = arrays[i];
    if (cb_family_is_index(array)) cb_text_add(text, "  const void *%s;\n", array->name);
    else cb_text_add(text, "  const %s *%s;  // %s\n", cb_type_c_name(array->type), array->name, array->meaning);
  }
}

void cb_family_read_sizes(struct cb_text *text, const struct cb_region *region) {
  struct members members;
  char place[96];
  list_members(&members, region);
  for (int i = 0; i < members.count; i++) {
    const struct member *member = &members.list[i];
    if (member->kind == MEMBER_INDEX || member->is_place) continue;
    snprintf(place, sizeof place, "arrays.sizes->%s", member->name);
    cb_word_instead(text, member->name, place);
  }
}

/* ---- the text of numbers */

/* Appends the line, or what makes the same numbers enumerators. */
static void add_without_objects(struct cb_text *text, const char *line, const char *end) {
  static const char begin[] = "constexpr ", *const types[] = {"int ", "unsigned ", "uint32_t ", "int64_t "};
  const char *const type = line + sizeof begin - 1, *stop = memchr(line, ';', (size_t)(end - line));
  if (!strncmp(line, begin, sizeof begin - 1))
    for (size_t i = 0; i < sizeof types / sizeof *types && stop; i++) {
      const size_t length = strlen(types[i]);
      if (strncmp(type, types[i], length) != 0) continue;
      const char *const names = type + length;
      cb_text_add(text, "enum : %s{ %.*s }", types[i], (int)(stop - names), names);
      line = stop;
      break;
    }
  cb_text_add_bytes(text, line, (size_t)(end - line));
}

void cb_family_leave_out_objects(struct cb_text *text) {
  struct cb_text other = {0};
  const char *const last = cb_text_string(text) + text->length;
  for (const char *line = cb_text_string(text), *end; line < last; line = end) {
    end = memchr(line, '\n', (size_t)(last - line));
    end = end ? end + 1 : last;
    add_without_objects(&other, line, end);
  }
  other.failed |= text->failed;
  cb_text_release(text);
  *text = other;
}
