// SPDX-License-Identifier: Apache-2.0
/* Outlines of plans: see outline.h. What begins with "take" copies a thing and hashes it. */
#include "codegen/outline.h"

#include "base/fingerprint.h"
#include "base/integers.h"
#include "base/memory.h"
#include "codegen/family.h"

#include <stdlib.h>
#include <string.h>

struct maker {
  struct cb_arena *arena;
  struct cb_text taken; /* all that was, one thing behind the other: how many of a list come first, strings have ends */
};

/* ---- what is taken */

static int64_t take_number(struct maker *maker, int64_t number) {
  cb_text_add_bytes(&maker->taken, (const char *)&number, sizeof number);
  return number;
}

/* With its end. NULL and "" are different things. */
static const char *take_string(struct maker *maker, const char *string) {
  cb_text_add_bytes(&maker->taken, string ? "+" : "-", 1);
  if (string) cb_text_add_bytes(&maker->taken, string, strlen(string) + 1);
  return string;
}

/* Room for so many, which are taken next. */
static void *take_list(struct maker *maker, int count, size_t size) {
  take_number(maker, count);
  return cb_arena_alloc(maker->arena, (size_t)count + 1, size);
}

/* ---- names in an order of their own */

static int by_string(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* Each once. */
static int sort_names(const char **names, int count) {
  int kept = 0;
  qsort(names, (size_t)count, sizeof *names, by_string);
  for (int i = 0; i < count; i++)
    if (!kept || strcmp(names[kept - 1], names[i]) != 0) names[kept++] = names[i];
  return kept;
}

static void take_names(struct maker *maker, const char **names, int count) {
  for (int i = 0; i < count; i++) names[i] = take_string(maker, names[i]);
}

/* ---- regions */

/* Sections that the text has, whoever asks for them. */
static void take_sections(struct maker *maker, struct cb_region *to, const struct cb_region *from) {
  const struct cb_family_parts *family = &from->family;
  const size_t most = (size_t)(from->sections_count + family->with_count) + 1;
  const char **names = cb_arena_alloc(maker->arena, most, sizeof *names);
  int count = 0;
  if (!names) return;
  for (int i = 0; i < from->sections_count; i++)
    if (cb_family_has_section(from, from->sections[i])) names[count++] = from->sections[i];
  for (int i = 0; i < family->with_count; i++) names[count++] = family->with[i];
  count = sort_names(names, count);
  take_number(maker, count);
  take_names(maker, names, count);
  to->family.with = names;
  to->family.with_count = count;
}

/* Values of structure, and of sizes the names. */
static void take_constants(struct maker *maker, struct cb_region *to, const struct cb_region *from) {
  const struct cb_family_parts *family = &from->family;
  const size_t most = (size_t)(from->constants_count + family->sizes_count) + 1;
  const char **sizes = cb_arena_alloc(maker->arena, most, sizeof *sizes);
  to->constants = cb_arena_alloc(maker->arena, most, sizeof *to->constants);
  to->family.sizes = cb_arena_alloc(maker->arena, most, sizeof *to->family.sizes);
  int count = 0, structures = 0;
  if (!sizes || !to->constants || !to->family.sizes) return;
  for (int i = 0; i < from->constants_count; i++) structures += from->constants[i].kind != CB_CONSTANT_SIZE;
  take_number(maker, structures);
  for (int i = 0; i < from->constants_count; i++) {
    const struct cb_constant *constant = &from->constants[i];
    if (constant->kind == CB_CONSTANT_SIZE) {
      sizes[count++] = constant->name;
      continue;
    }
    to->constants[to->constants_count++] =
        (struct cb_constant){.name = take_string(maker, constant->name),
                             .origin = take_string(maker, constant->origin),
                             .value = take_number(maker, cb_family_value(from, constant)),
                             .kind = CB_CONSTANT_STRUCTURE};
  }
  for (int i = 0; i < family->sizes_count; i++)
    if (family->sizes[i].kind == CB_CONSTANT_SIZE) sizes[count++] = family->sizes[i].name;
  qsort(sizes, (size_t)count, sizeof *sizes, by_string);
  to->family.sizes_count = (int)take_number(maker, count);
  for (int i = 0; i < count; i++)
    to->family.sizes[i] = (struct cb_constant){.name = take_string(maker, sizes[i]), .kind = CB_CONSTANT_SIZE};
}

/* What is stored for each slot, values among it, has its types in the text; of all else the name is there, and whether
 * it is stored is data. cb_family_check has seen to it that counts fit an int. */
static void take_arrays(struct maker *maker, struct cb_region *to, const struct cb_region *from, int64_t index_limit) {
  const int64_t narrow = cb_smaller(index_limit, INT32_MAX); /* elements up to here are ints in every text */
  const struct cb_array *arrays[CB_FAMILY_ARRAYS];
  const int count = cb_family_arrays(from, arrays);
  to->arrays = cb_arena_alloc(maker->arena, (size_t)count + 1, sizeof *to->arrays);
  to->family.sequences = cb_arena_alloc(maker->arena, (size_t)count + 1, sizeof *to->family.sequences);
  take_number(maker, count);
  for (int i = 0; i < count && to->arrays && to->family.sequences; i++) {
    const struct cb_array *array = arrays[i];
    const char *name = take_string(maker, array->name);
    if (take_number(maker, cb_family_is_index(array))) {
      to->family.sequences[to->family.sequences_count++] =
          (struct cb_array){.name = name, .role = CB_ROLE_INDEX, .storage = CB_AFFINE};
      continue;
    }
    to->arrays[to->arrays_count++] =
        (struct cb_array){.name = name,
                          .meaning = take_string(maker, array->meaning),
                          .role = (enum cb_role)take_number(maker, array->role),
                          .type = (enum cb_type)take_number(maker, array->type),
                          .storage = (enum cb_storage)take_number(maker, array->storage),
                          .largest = take_number(maker, array->largest > narrow ? array->largest : 0),
                          .streamed = (int)take_number(maker, array->streamed),
                          .by_slot = (int)take_number(maker, array->by_slot)};
  }
}

/* Whether it is data there. */
static int is_table(const struct cb_region *region, const struct cb_placeholder *placeholder) {
  for (int i = 0; i < region->family.tables_count; i++)
    if (!strcmp(region->family.tables[i].placeholder, placeholder->name)) return 1;
  return 0;
}

static void take_placeholders(struct maker *maker, struct cb_region *to, const struct cb_region *from) {
  const struct cb_placeholder *all = from->placeholders;
  int kept = 0, at = 0;
  for (int i = 0; i < from->placeholders_count; i++) kept += !is_table(from, &all[i]);
  to->placeholders_count = kept;
  to->placeholders = take_list(maker, kept, sizeof *to->placeholders);
  for (int i = 0; i < from->placeholders_count && to->placeholders; i++)
    if (!is_table(from, &all[i]))
      to->placeholders[at++] =
          (struct cb_placeholder){take_string(maker, all[i].name), take_string(maker, all[i].text)};
}

static void take_tables(struct maker *maker, struct cb_region *to, const struct cb_region *from) {
  to->family.tables_count = from->family.tables_count;
  to->family.tables = take_list(maker, from->family.tables_count, sizeof *to->family.tables);
  for (int i = 0; i < from->family.tables_count && to->family.tables; i++)
    to->family.tables[i] = (struct cb_table){.name = take_string(maker, from->family.tables[i].name)};
}

static void take_region(struct maker *maker, struct cb_region *to, const struct cb_region *from, int64_t index_limit) {
  take_string(maker, from->name);
  memcpy(to->name, from->name, sizeof to->name);
  to->layout = take_string(maker, from->layout);
  to->commit = (enum cb_commit)take_number(maker, from->commit);
  to->value_storage = (enum cb_value_storage)take_number(maker, from->value_storage);
  to->value_type = (enum cb_type)take_number(maker, from->value_type);
  to->late = (enum cb_late)take_number(maker, from->late);
  to->next_is_structure = (int)take_number(maker, from->next_is_structure);
  to->next = from->next_is_structure ? (enum cb_next)take_number(maker, from->next) : CB_NEXT_AT_END;
  to->loads_early = (int)take_number(maker, from->loads_early);
  to->may_start_next = (int)take_number(maker, from->may_start_next);
  to->family.blocks_per_sm = (int)take_number(maker, from->family.blocks_per_sm);
  take_constants(maker, to, from);
  take_arrays(maker, to, from, index_limit);
  take_placeholders(maker, to, from);
  take_tables(maker, to, from);
  take_sections(maker, to, from);
}

/* ---- launches */

/* Rows of thread blocks are structure where regions take turns. A single region's family has its own number of thread
 * blocks for a multiprocessor, if it has one. */
static void take_launch(struct maker *maker, struct cb_plan *to, const struct cb_plan *from, int number) {
  const struct cb_launch *launch = &from->launches[number];
  const int is_own = launch->regions == 1 && !launch->prepares && !launch->body &&
                     from->regions[launch->first_region].family.blocks_per_sm;
  to->launches[number] = (struct cb_launch){
      .body = take_string(maker, launch->body),
      .prepares = (int)take_number(maker, launch->prepares),
      .finishes = (int)take_number(maker, launch->finishes),
      .first_region = (int)take_number(maker, launch->first_region),
      .regions = (int)take_number(maker, launch->regions),
      .block_rows = take_number(maker, launch->block_rows),
      .threads = (int)take_number(maker, launch->threads),
      .blocks_per_sm = (int)take_number(maker, is_own ? 0 : launch->blocks_per_sm)};
  for (int i = 0; i < launch->regions && launch->block_rows; i++) {
    const struct cb_region *region = &from->regions[launch->first_region + i];
    to->regions[launch->first_region + i].block_rows = take_number(maker, region->block_rows);
    to->regions[launch->first_region + i].row_threads = (int)take_number(maker, region->row_threads);
  }
}

/* ---- plans */

static void take_plan(struct maker *maker, struct cb_plan *to, const struct cb_plan *from) {
  take_string(maker, cb_build_fingerprint);
  to->matrix_type = (enum cb_type)take_number(maker, from->matrix_type);
  to->vector_type = (enum cb_type)take_number(maker, from->vector_type);
  to->sum_type = (enum cb_type)take_number(maker, from->sum_type);
  to->semiring = (enum cb_semiring)take_number(maker, from->semiring);
  to->conjugated = (int)take_number(maker, from->conjugated);
  to->row_sums = (int)take_number(maker, from->row_sums);
  to->vectors = (int)take_number(maker, from->vectors);
  to->index_limit = take_number(maker, from->index_limit);
  to->regions_count = from->regions_count;
  to->launches_count = from->launches_count;
  to->regions = take_list(maker, from->regions_count, sizeof *to->regions);
  to->launches = take_list(maker, from->launches_count, sizeof *to->launches);
  for (int i = 0; i < from->regions_count && to->regions; i++)
    take_region(maker, &to->regions[i], &from->regions[i], from->index_limit);
  for (int i = 0; i < from->launches_count && to->regions && to->launches; i++) take_launch(maker, to, from, i);
}

enum cb_status cb_outline_make(struct cb_outline *outline, const struct cb_plan *plan, struct cb_diag *diag) {
  struct maker maker = {.arena = &outline->plan.arena};
  memset(outline, 0, sizeof *outline);
  const enum cb_status s = cb_family_check(plan, diag);
  if (s) return s;
  take_plan(&maker, &outline->plan, plan);
  const int is_whole = !maker.arena->failed && !maker.taken.failed;
  if (is_whole) outline->hash = cb_hash_bytes(maker.taken.bytes, maker.taken.length);
  cb_text_release(&maker.taken);
  return is_whole ? CB_OK : cb_fail_memory(diag, "a plan's outline", sizeof *outline);
}

void cb_outline_release(struct cb_outline *outline) { cb_arena_release(&outline->plan.arena); }
