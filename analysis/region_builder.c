// SPDX-License-Identifier: Apache-2.0
/* Building a region: the calls that a layout's plan step makes (layout.h), but those for index arrays, which
 * region_index.c has. */
#include "analysis/contents.h"

#include "analysis/values.h"

#include "base/integers.h"
#include "base/memory.h"
#include "base/real.h"
#include "base/split.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One more element at the end of a list that lives in the plan's arena. Returns it, or NULL. */
static void *append(struct cb_region_builder *builder, void *list, int *count, size_t size) {
  int64_t elements = *count;
  void *element = builder->failed ? NULL : cb_arena_append(builder->arena, list, &elements, size);
  builder->failed |= !element;
  *count = (int)elements;
  return element;
}

static const char *keep(struct cb_region_builder *builder, const char *text) {
  const char *copy = cb_arena_string(builder->arena, text);
  if (!copy) builder->failed = 1;
  return copy;
}

void cb_region_fact(struct cb_region_builder *builder, const char *key, const char *format, ...) {
  char value[256];
  va_list args;
  va_start(args, format);
  vsnprintf(value, sizeof value, format, args);
  va_end(args);
  struct cb_fact *fact = append(builder, &builder->region.facts, &builder->region.facts_count, sizeof *fact);
  if (fact) *fact = (struct cb_fact){keep(builder, key), keep(builder, value)};
}

static void add_constant(struct cb_region_builder *builder, const char *name, enum cb_constant_kind kind, int64_t value,
                         const char *origin) {
  struct cb_constant *constant =
      append(builder, &builder->region.constants, &builder->region.constants_count, sizeof *constant);
  if (constant) *constant = (struct cb_constant){keep(builder, name), keep(builder, origin), value, kind};
}

void cb_region_structure(struct cb_region_builder *builder, const char *name, int64_t value, const char *origin) {
  add_constant(builder, name, CB_CONSTANT_STRUCTURE, value, origin);
}

void cb_region_size(struct cb_region_builder *builder, const char *name, int64_t value, const char *origin) {
  add_constant(builder, name, CB_CONSTANT_SIZE, value, origin);
}

void cb_region_placeholder(struct cb_region_builder *builder, const char *name, const char *text) {
  struct cb_region *region = &builder->region;
  struct cb_placeholder *placeholder =
      append(builder, &region->placeholders, &region->placeholders_count, sizeof *placeholder);
  if (placeholder) *placeholder = (struct cb_placeholder){keep(builder, name), keep(builder, text)};
}

void cb_region_placeholder_text(struct cb_region_builder *builder, const char *name, struct cb_text *text) {
  builder->failed |= text->failed;
  if (!text->failed) cb_region_placeholder(builder, name, cb_text_string(text));
  cb_text_release(text);
}

void cb_region_section(struct cb_region_builder *builder, const char *name) {
  for (int i = 0; i < builder->region.sections_count && !builder->failed; i++)
    if (!strcmp(builder->region.sections[i], name)) return;
  const char **section = append(builder, &builder->region.sections, &builder->region.sections_count, sizeof *section);
  if (section) *section = keep(builder, name);
}

/* ---- what a family's text has instead */

static void add_name(struct cb_region_builder *builder, const char ***names, int *count, const char *name) {
  const char **last = append(builder, names, count, sizeof *last);
  if (last) *last = keep(builder, name);
}

void cb_region_family_with(struct cb_region_builder *builder, const char *section) {
  add_name(builder, &builder->region.family.with, &builder->region.family.with_count, section);
}

void cb_region_family_without(struct cb_region_builder *builder, const char *section) {
  add_name(builder, &builder->region.family.without, &builder->region.family.without_count, section);
}

static int has_constant(const struct cb_region *region, const char *name) {
  for (int i = 0; i < region->constants_count; i++)
    if (!strcmp(region->constants[i].name, name)) return 1;
  return 0;
}

static int has_array(const struct cb_region *region, const char *name) {
  for (int i = 0; i < region->arrays_count; i++)
    if (!strcmp(region->arrays[i].name, name)) return 1;
  return 0;
}

void cb_region_family_size(struct cb_region_builder *builder, const char *name, int64_t value) {
  struct cb_family_parts *family = &builder->region.family;
  if (builder->failed || has_constant(&builder->region, name)) return;
  struct cb_constant *size = append(builder, &family->sizes, &family->sizes_count, sizeof *size);
  if (size) *size = (struct cb_constant){keep(builder, name), "plan", value, CB_CONSTANT_SIZE};
}

void cb_region_family_structure(struct cb_region_builder *builder, const char *name, int64_t value,
                                const char *origin) {
  struct cb_family_parts *family = &builder->region.family;
  struct cb_constant *constant = append(builder, &family->structures, &family->structures_count, sizeof *constant);
  if (constant)
    *constant = (struct cb_constant){keep(builder, name), keep(builder, origin), value, CB_CONSTANT_STRUCTURE};
}

void cb_region_family_sequence(struct cb_region_builder *builder, const char *name, int64_t base, int64_t step) {
  struct cb_family_parts *family = &builder->region.family;
  if (builder->failed || has_array(&builder->region, name)) return;
  struct cb_array *array = append(builder, &family->sequences, &family->sequences_count, sizeof *array);
  if (array)
    *array = (struct cb_array){.name = keep(builder, name),
                               .meaning = "",
                               .role = CB_ROLE_INDEX,
                               .storage = CB_AFFINE,
                               .base = base,
                               .step = step};
}

/* In lines of twelve. */
static void add_table_text(struct cb_text *text, const int64_t *elements, int count) {
  enum { PER_LINE = 12 };
  for (int i = 0; i < count; i++) {
    const int breaks = count > PER_LINE && i % PER_LINE == 0;
    cb_text_add(text, "%s%s%lld", i ? "," : "", breaks ? "\n    " : i ? " " : "", (long long)elements[i]);
  }
}

void cb_region_table(struct cb_region_builder *builder, const char *placeholder, const char *name,
                     const int64_t *elements, int count) {
  struct cb_family_parts *family = &builder->region.family;
  struct cb_text text = {0};
  add_table_text(&text, elements, count);
  cb_region_placeholder_text(builder, placeholder, &text);
  struct cb_table *table = append(builder, &family->tables, &family->tables_count, sizeof *table);
  const int64_t *copy = cb_arena_copy(builder->arena, elements, (size_t)count, sizeof *elements);
  builder->failed |= !copy;
  if (table) *table = (struct cb_table){keep(builder, name), keep(builder, placeholder), copy, count};
}

enum cb_status cb_region_state(struct cb_region_builder *builder, size_t size, struct cb_diag *diag) {
  const struct cb_layout *layout = cb_layout_find(builder->region.layout);
  const int64_t rows = builder->work.part.csr->rows;
  if (layout->most_rows && rows > layout->most_rows)
    return cb_fail(diag, CB_ERR_LIMIT, "%lld rows exceed the %s layout's %lld", (long long)rows, layout->name,
                   (long long)layout->most_rows);
  builder->region.commit = builder->commit;
  builder->work.state = cb_calloc(1, size);
  return builder->work.state ? CB_OK : cb_fail_memory(diag, layout->name, size);
}

struct cb_array *cb_region_array(struct cb_region_builder *builder, const char *name, const char *meaning,
                                 enum cb_role role, enum cb_type type, int64_t count) {
  struct cb_contents *contents =
      append(builder, &builder->work.contents, &builder->work.contents_count, sizeof *contents);
  struct cb_array *array = append(builder, &builder->region.arrays, &builder->region.arrays_count, sizeof *array);
  if (!array) return NULL;
  *contents = (struct cb_contents){0};
  *array = (struct cb_array){
      .name = keep(builder, name), .meaning = keep(builder, meaning), .role = role, .type = type, .count = count};
  return array;
}

void cb_region_bytes(struct cb_region_builder *builder, const char *name, const char *meaning, int64_t bytes) {
  cb_region_array(builder, name, meaning, CB_ROLE_BYTES, CB_U8, bytes);
  builder->region.bytes += bytes;
}

/* ---- values */

void cb_region_choose_values(struct cb_region_builder *builder, int zeros) {
  const int nan = cb_semiring_pads_with_nan((enum cb_semiring)builder->options->semiring);
  const enum cb_padding padding = !zeros ? CB_PADDING_ANY : nan ? CB_PADDING_NAN : CB_PADDING_ZERO;
  struct cb_value_choice choice = {CB_VALUES_PLAIN, builder->matrix_type, 0};
  if (builder->values) choice = cb_values_choose(builder->values, builder->matrix_type, padding);
  builder->value_storage = choice.storage;
  builder->value_type = choice.type;
  builder->value_bytes = choice.storage == CB_VALUES_EQUAL ? 0 : (int64_t)cb_type_size(choice.type);
  if (choice.storage == CB_VALUES_PLAIN) return;
  struct cb_region *region = &builder->region;
  region->table_count = builder->values->distinct + choice.add_zero;
  double *table = cb_arena_alloc(builder->arena, (size_t)region->table_count, sizeof *table);
  if (!table) {
    builder->failed = 1;
    return;
  }
  if (choice.add_zero) table[0] = nan ? NAN : 0; /* code 0: what slots without a nonzero hold */
  memcpy(table + choice.add_zero, builder->values->table, (size_t)builder->values->distinct * sizeof *table);
  region->value_table = table;
}

void cb_region_zero_slots(struct cb_region_builder *builder) {
  cb_region_choose_values(builder, 1);
}

void cb_literal(char literal[CB_LITERAL], double value, enum cb_type sum_type) {
  cb_real_text(literal, value, sum_type);
  if (sum_type == CB_F32) strcat(literal, "f");
}

static int all_finite(const double *table, int count) {
  for (int i = 0; i < count; i++)
    if (!isfinite(table[i])) return 0;
  return 1;
}

/* What the plan says about fixed values, and the table's array unless it is baked. */
static void describe_values(struct cb_region_builder *builder, int64_t slots) {
  struct cb_region *region = &builder->region;
  region->value_slots = slots;
  region->value_storage = builder->value_storage;
  region->value_type = builder->value_type;
  if (builder->value_storage == CB_VALUES_PLAIN) {
    region->table_count = 0;
    region->value_table = NULL;
    if (builder->value_type != builder->matrix_type)
      cb_region_fact(builder, "values", "%s", cb_type_short(builder->value_type));
    return;
  }
  if (!region->value_table) return; /* no memory: builder->failed */
  if (builder->value_storage == CB_VALUES_EQUAL) {
    char literal[CB_LITERAL];
    cb_literal(literal, region->value_table[0], CB_F64);
    cb_region_fact(builder, "values", "equal %s", literal);
    region->constant_slots = slots;
    region->table_baked = 1;
    return;
  }
  cb_region_fact(builder, "values", "coded %d", region->table_count);
  region->table_baked =
      region->table_count <= builder->options->bake_limit && all_finite(region->value_table, region->table_count);
  if (region->table_baked) return;
  cb_region_array(builder, "value_table", "values by their codes", CB_ROLE_TABLE, builder->sum_type,
                  region->table_count);
  region->bytes += region->table_count * (int64_t)cb_type_size(builder->sum_type);
}

/* Of split ones there is a whole number of lines, so that their rests are aligned. */
void cb_region_values(struct cb_region_builder *builder, const char *name, const char *meaning, int64_t slots) {
  if (builder->value_type == CB_SPLIT) slots = cb_round_up(slots, CB_SPLIT_WHOLE);
  if (builder->value_bytes) cb_region_array(builder, name, meaning, CB_ROLE_VALUES, builder->value_type, slots);
  builder->region.bytes += slots * builder->value_bytes;
  describe_values(builder, slots);
}

void cb_region_mixed(struct cb_region_builder *builder, const char *name, const char *meaning, int64_t bytes) {
  cb_region_array(builder, name, meaning, CB_ROLE_MIXED, CB_U8, bytes);
  builder->region.bytes += bytes;
  describe_values(builder, bytes / builder->value_bytes);
}

void cb_region_constant_slots(struct cb_region_builder *builder, int64_t slots) {
  builder->region.constant_slots += slots;
  builder->region.value_slots += slots;
}

/* ---- rows in segments */

void cb_region_carries(struct cb_region_builder *builder, const char *section, int64_t segments, const uint32_t *number,
                       const char *origin) {
  if (!segments) return;
  uint32_t *group = cb_arena_alloc(builder->work.state, (size_t)segments, sizeof *group);
  uint32_t *first = cb_arena_alloc(builder->work.state, (size_t)segments + 1, sizeof *first);
  int64_t groups = 0;
  for (int64_t p = 0; group && first && p < segments; p++) {
    if (!number[p]) first[groups++] = (uint32_t)p;
    group[p] = (uint32_t)groups - 1;
  }
  if (first) first[groups] = (uint32_t)segments;
  cb_region_section(builder, section);
  cb_region_list(builder, "carry_group", "a segment's group: the segments of one row", segments, group);
  cb_region_list(builder, "carry_first", "a group's first segment; groups + 1", groups + 1, first);
  cb_region_size(builder, "kSegments", segments, origin);
  builder->region.carry_slots = segments;
  builder->region.carry_width = 1;
  builder->region.carry_counters = groups;
  cb_region_fact(builder, "segments", "%lld %lld", (long long)groups, (long long)segments);
}

void cb_region_carries_by(struct cb_region_builder *builder, const char *section, int64_t segments,
                          cb_element_of *owner, const char *origin) {
  const void *state = builder->work.state;
  uint32_t *number = cb_arena_alloc(builder->work.state, (size_t)segments, sizeof *number);
  builder->failed |= !number;
  if (builder->failed) return;
  for (int64_t p = 1; p < segments; p++) number[p] = owner(state, p) == owner(state, p - 1) ? number[p - 1] + 1 : 0;
  cb_region_carries(builder, section, segments, number, origin);
}
