// SPDX-License-Identifier: Apache-2.0
/* Index arrays of a region: their storage is chosen here, so that no layout has to think about widths, affine sequences
 * or baked tables (layout.h); and their elements are given out, here and when they are packed (contents.h). */
#include "analysis/contents.h"

#include "analysis/row_ends.h"
#include "base/integers.h"
#include "base/memory.h"

static struct cb_array *last_array(struct cb_region_builder *builder) {
  return &builder->region.arrays[builder->region.arrays_count - 1];
}

static struct cb_contents *last_contents(struct cb_region_builder *builder) {
  return &builder->work.contents[builder->work.contents_count - 1];
}

static void store(struct cb_region_builder *builder, struct cb_array *array) {
  array->storage = CB_STORED;
  array->type = cb_type_for((uint64_t)array->largest);
  builder->region.bytes += array->count * (int64_t)cb_type_size(array->type);
}

static void bake(struct cb_region_builder *builder, struct cb_array *array, const struct cb_contents *contents) {
  uint64_t *table = cb_arena_alloc(builder->arena, (size_t)array->count, sizeof *table);
  for (int64_t i = 0; table && i < array->count; i++) table[i] = cb_contents_element(contents, builder->work.state, i);
  array->storage = CB_BAKED;
  array->baked = table;
  builder->failed |= !table;
}

/* Few elements are computed once, and listed for what looks at them later: 32 bits of each, if that is all. Not where
 * rows are others', which may be left out later. */
static struct cb_contents listed(struct cb_region_builder *builder, cb_element_of *of, int64_t count) {
  const struct cb_contents computed = {.of = of};
  const int is_short = count < CB_PARALLEL_LEAST && !builder->own_rows;
  uint32_t *list = is_short ? cb_arena_alloc(builder->work.state, (size_t)count, sizeof *list) : NULL;
  uint64_t all = 0;
  for (int64_t i = 0; list && i < count; i++) {
    const uint64_t element = of(builder->work.state, i);
    list[i] = (uint32_t)element;
    all |= element;
  }
  if (!list || all > UINT32_MAX) return computed;
  return (struct cb_contents){.elements = list, .size = sizeof *list};
}

/* The largest element, and whether all are base + step * i; one element has step 0. */
static void measure(const struct cb_contents *contents, const void *state, struct cb_array *array, int *affine) {
  const int64_t count = array->count;
  const uint64_t base = count ? cb_contents_element(contents, state, 0) : 0;
  const uint64_t step = count > 1 ? cb_contents_element(contents, state, 1) - base : 0;
  uint64_t largest = 0;
  int follow = 1;
#pragma omp parallel for schedule(static) reduction(max : largest) reduction(&& : follow)                          \
    if (count >= CB_PARALLEL_LEAST)
  for (int64_t i = 0; i < count; i++) {
    const uint64_t element = cb_contents_element(contents, state, i);
    largest = element > largest ? element : largest;
    follow = follow && element == base + step * (uint64_t)i;
  }
  array->largest = (int64_t)largest;
  array->base = (int64_t)base;
  array->step = (int64_t)step;
  *affine = follow;
}

/* Chooses the storage of the last array, with these contents. `sequences`: affine ones become arithmetic. */
static void choose_storage(struct cb_region_builder *builder, const struct cb_contents *contents, int sequences) {
  struct cb_array *array = last_array(builder);
  int affine;
  measure(contents, builder->work.state, array, &affine);
  array->type = cb_type_for((uint64_t)array->largest);
  if (affine && sequences) {
    array->storage = CB_AFFINE;
    return;
  }
  array->base = array->step = 0;
  if (array->count <= builder->options->bake_limit) bake(builder, array, contents);
  else store(builder, array);
}

void cb_region_computed(struct cb_region_builder *builder, const char *name, const char *meaning, int64_t count,
                        cb_element_of *of) {
  if (!cb_region_array(builder, name, meaning, CB_ROLE_INDEX, CB_U8, count)) return;
  const struct cb_contents contents = *last_contents(builder) = listed(builder, of, count);
  choose_storage(builder, &contents, 1);
}

static void add_list(struct cb_region_builder *builder, const char *name, const char *meaning, int64_t count,
                     const void *list, size_t size, int sequences) {
  const struct cb_contents contents = {.elements = list, .size = (int)size};
  builder->failed |= !list;
  if (builder->failed || !cb_region_array(builder, name, meaning, CB_ROLE_INDEX, CB_U8, count)) return;
  *last_contents(builder) = contents;
  choose_storage(builder, &contents, sequences);
}

void cb_region_elements(struct cb_region_builder *builder, const char *name, const char *meaning, int64_t count,
                        const void *elements, size_t size) {
  add_list(builder, name, meaning, count, elements, size, 1);
}

/* A list that is short enough to be baked is brought here. */
static void add_short(struct cb_region_builder *builder, const char *name, const char *meaning,
                      const struct cb_remote_list *list) {
  const struct cb_remote_columns *remote = builder->work.part.csr->remote;
  uint32_t *elements = cb_arena_alloc(builder->arena, (size_t)list->count, sizeof *elements);
  if (elements && remote->elements(remote->user, list, elements, NULL)) elements = NULL;
  add_list(builder, name, meaning, list->count, elements, sizeof *elements, 1);
}

void cb_region_remote(struct cb_region_builder *builder, const char *name, const char *meaning,
                      const struct cb_remote_list *list) {
  if (!list->follows && list->count <= builder->options->bake_limit) {
    add_short(builder, name, meaning, list);
    return;
  }
  struct cb_array *array = cb_region_array(builder, name, meaning, CB_ROLE_INDEX, CB_U8, list->count);
  if (!array) return;
  last_contents(builder)->there = list->at;
  array->largest = list->largest;
  array->type = cb_type_for(list->largest);
  array->storage = CB_AFFINE;
  array->base = list->follows ? (int64_t)list->base : 0;
  array->step = list->follows ? (int64_t)list->step : 0;
  if (!list->follows) store(builder, array);
}

void cb_region_own_rows(struct cb_region_builder *builder) {
  const int64_t words = cb_divide_up(builder->work.part.csr->rows, 32);
  const void *bits = cb_arena_copy(builder->work.state, builder->own_rows, (size_t)words, sizeof *builder->own_rows);
  add_list(builder, "own_rows", "a bit per row: this region writes it", words, bits, sizeof *builder->own_rows, 0);
  cb_region_section(builder, "owned");
}

void cb_region_streamed(struct cb_region_builder *builder) {
  if (!builder->failed) last_array(builder)->streamed = 1;
}

/* ---- elements by slot */

/* Whether the array is too long to be baked, and no affine sequence: the step of one would be 0 where there are more
 * elements than numbers from 0 to the largest. Then nothing else has to be known of it before it is packed. */
static int is_surely_stored(const struct cb_region_builder *builder, const struct cb_slot_elements *elements) {
  return elements->count > builder->options->bake_limit && elements->least < elements->largest &&
         elements->count - 1 > elements->largest;
}

/* All elements are 0: nobody has to look. */
static void store_zeros(struct cb_array *array) {
  array->type = cb_type_for(0);
  array->storage = CB_AFFINE;
}

/* Visits for this array alone. `columns`: as in struct cb_walk. */
static void choose_storage_by_visit(struct cb_region_builder *builder, struct cb_field field, const int32_t *columns) {
  const struct cb_layout *layout = cb_layout_find(builder->region.layout);
  uint32_t *list = cb_calloc((size_t)field.count, sizeof *list);
  const struct cb_contents contents = {.elements = list, .size = sizeof *list};
  field.type = CB_U32;
  field.elements = (unsigned char *)list;
  const struct cb_walk walk = {
      .part = &builder->work.part, .fields = 1, .field = {field}, .region = &builder->region, .columns = columns};
  if (list && cb_walk_run(&walk, layout->visit, builder->work.state, builder->work.units))
    choose_storage(builder, &contents, 1);
  else builder->failed = 1;
  cb_free(list);
}

/* The same with columns that are not here: few, as a matrix has them that has more columns than nonzeros. */
static void choose_storage_afar(struct cb_region_builder *builder, struct cb_field field) {
  const struct cb_csr *csr = builder->work.part.csr;
  const struct cb_stretch all = {0, csr->nnz};
  if (csr->remote->near) {
    choose_storage_by_visit(builder, field, csr->remote->near->col_idx);
    return;
  }
  int32_t *columns = cb_alloc((size_t)csr->nnz + 1, sizeof *columns);
  if (columns && !csr->remote->fetch(csr->remote->user, &all, 1, columns, NULL))
    choose_storage_by_visit(builder, field, columns);
  else builder->failed = 1;
  cb_free(columns);
}

void cb_region_by_slot(struct cb_region_builder *builder, const char *name, const char *meaning,
                       struct cb_slot_elements elements) {
  const struct cb_field field = {.first = elements.first,
                                 .count = elements.count,
                                 .shift = elements.shift,
                                 .mask = elements.bits ? (1u << elements.bits) - 1 : UINT32_MAX};
  struct cb_array *array = cb_region_array(builder, name, meaning, CB_ROLE_INDEX, CB_U8, elements.count);
  if (!array) return;
  *last_contents(builder) = (struct cb_contents){.slots = field};
  array->largest = elements.largest;
  array->by_slot = 1;
  if (is_surely_stored(builder, &elements)) store(builder, array);
  else if (!elements.least && !elements.largest) store_zeros(array);
  else if (!builder->work.part.csr->remote) choose_storage_by_visit(builder, field, NULL);
  else if (elements.of_columns) choose_storage_afar(builder, field);
  else builder->needs_columns = 1;
}
