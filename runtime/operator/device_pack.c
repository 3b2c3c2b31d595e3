// SPDX-License-Identifier: Apache-2.0
/* Arrays filled by kernels: see device_pack.h. */
#include "runtime/operator/device_pack.h"

#include "analysis/plan/blob.h"
#include "base/integers.h"
#include "base/memory.h"
#include "runtime/operator/device_rows.h"

#include <string.h>

enum { WARP = 32 };

/* Kernels of a set of indices, for columns or numbers of 32 bits and of 64. Those of a set of values go by type. */
static const char *const columns_kernels[] = {"cbgen_pack_columns_32", "cbgen_pack_columns_64"};
static const char *const shape_kernels[] = {"cbgen_pack_shape_32", "cbgen_pack_shape_64"};
static const char *const number_kernels[] = {"cbgen_pack_numbers_32", "cbgen_pack_numbers_64"};

/* As shared.cu.in has them. */
struct lists {
  cb_device_ptr numbers, lists[CB_PACK_LISTS], shape, bytes;
};

/* What stands where a region's numbers are: the layout's own, then those of each field. */
struct numbers {
  int64_t own[CB_PACK_NUMBERS];
  struct {
    int64_t first, count, shift, mask, bytes;
  } field[CB_MOST_FIELDS];
};

/* An array whose elements a list of the survey's has. */
struct listed {
  uint64_t list;
  int64_t count, bytes;
  cb_device_ptr to;
};

struct region {
  struct cb_pack_kernels kernels;
  struct numbers numbers;
  struct lists lists;
  int64_t warps, slots, shape_bytes;
  int fields;
  cb_device_ptr elements[CB_MOST_FIELDS]; /* of each field */
  int listed_count;
  struct listed listed[CB_MOST_LISTED];
  cb_device_ptr values; /* the array of slots; 0: there is none */
  int values_number;    /* of that array */
};

struct cb_device_packing {
  const struct cb_device *device;
  int is_copy; /* starts and lists are another's, and `lost` is a block of its own */
  int shares_starts; /* they are the caller's row pointers */
  struct cb_row_starts starts;
  cb_device_ptr lists; /* of all regions, in one allocation */
  cb_device_ptr lost;  /* two uint32_t behind them: how many values were lost, and one for cb_device_separate */
  int64_t bytes;
  int wide_numbers;    /* of nonzeros: slot maps are wide */
  int count;
  struct region *regions;
};

/* ---- making one */

static int64_t lists_bytes(const struct cb_pack_lists *lists) {
  int64_t bytes = cb_round_up(sizeof(struct numbers), CB_BLOB_ALIGN);
  for (int i = 0; i < CB_PACK_LISTS; i++) bytes += cb_round_up(lists->lists[i].bytes, CB_BLOB_ALIGN);
  return bytes + cb_round_up(lists->shape_bytes, CB_BLOB_ALIGN);
}

/* A block on the device that is written from its beginning to its end. Where it is small, a copy on the host gathers
 * what is put there, for one upload. */
struct writer {
  const struct cb_device *device;
  cb_device_ptr at, begin;
  unsigned char *gathered; /* NULL: uploads follow one another */
};

/* To the next place; the bytes may be NULL: they stay what they are, zeros where the block is gathered. */
static enum cb_status put_bytes(struct writer *writer, const void *from, int64_t bytes, cb_device_ptr *place,
                                struct cb_diag *diag) {
  const cb_device_ptr at = *place = writer->at;
  writer->at += (cb_device_ptr)cb_round_up(bytes, CB_BLOB_ALIGN);
  if (!from) return CB_OK;
  if (!writer->gathered) return cb_device_upload_later(writer->device, at, from, (size_t)bytes, "the plan's lists", diag);
  memcpy(writer->gathered + (at - writer->begin), from, (size_t)bytes);
  return CB_OK;
}

static enum cb_status put_lists(struct writer *writer, struct region *region, const struct cb_pack_lists *described,
                                struct cb_diag *diag) {
  memcpy(region->numbers.own, described->numbers, sizeof region->numbers.own);
  region->warps = described->warps;
  region->shape_bytes = described->shape_bytes;
  enum cb_status s = put_bytes(writer, &region->numbers, sizeof region->numbers, &region->lists.numbers, diag);
  for (int i = 0; i < CB_PACK_LISTS && !s; i++) {
    const struct cb_pack_list *list = &described->lists[i];
    if (list->bytes) s = put_bytes(writer, list->elements, list->bytes, &region->lists.lists[i], diag);
  }
  if (!s && described->shape_bytes) s = put_bytes(writer, NULL, described->shape_bytes, &region->lists.shape, diag);
  return s;
}

/* What the kernels fill: the region's arrays. */
static void note_arrays(struct region *region, const struct cb_packing_region *described, const cb_device_ptr *arrays) {
  region->slots = described->slots;
  region->values_number = described->values;
  if (described->values >= 0) region->values = arrays[described->values];
  if (described->filled >= 0) region->lists.bytes = arrays[described->filled];
  for (int i = 0; i < described->listed_count; i++) {
    const struct cb_packing_listed *listed = &described->listed[i];
    region->listed[region->listed_count++] =
        (struct listed){listed->list, listed->count, listed->width, arrays[listed->array]};
  }
  for (int i = 0; i < described->fields_count; i++) {
    const struct cb_packing_field *field = &described->fields[i];
    const int number = region->fields++;
    region->elements[number] = arrays[field->array];
    region->numbers.field[number].first = field->first;
    region->numbers.field[number].count = field->count;
    region->numbers.field[number].shift = field->shift;
    region->numbers.field[number].mask = field->mask;
    region->numbers.field[number].bytes = field->width;
  }
}

/* All that regions describe, and behind it the number of lost values and a word that nobody reads. */
static enum cb_status write_regions(struct cb_device_packing *packing, const struct cb_pack_source *source,
                                    const cb_device_ptr *arrays, struct writer *writer, struct cb_diag *diag) {
  enum cb_status s = CB_OK;
  for (int r = 0; r < packing->count && !s; r++) {
    const struct cb_packing_region *described = &source->lists->regions[r];
    struct region *region = &packing->regions[r];
    region->kernels = source->kernels[r];
    note_arrays(region, described, arrays);
    s = put_lists(writer, region, &described->lists, diag);
  }
  return s ? s : put_bytes(writer, (const uint32_t[2]){0}, 2 * sizeof(uint32_t), &packing->lost, diag);
}

static enum cb_status put_regions(struct cb_device_packing *packing, const struct cb_pack_source *source,
                                  const cb_device_ptr *arrays, struct cb_diag *diag) {
  enum { SMALL = 1 << 18 }; /* bytes that are as fast to copy on the host as one upload is to start */
  int64_t bytes = CB_BLOB_ALIGN;
  for (int r = 0; r < packing->count; r++) bytes += lists_bytes(&source->lists->regions[r].lists);
  enum cb_status s = (source->survey->keeps ? cb_device_alloc : cb_device_borrow)(
      packing->device, &packing->lists, (size_t)bytes, "the plan's lists", diag);
  struct writer writer = {.device = packing->device, .at = packing->lists, .begin = packing->lists};
  packing->bytes += bytes;
  if (!s && bytes <= SMALL) writer.gathered = cb_calloc((size_t)bytes, 1);
  if (!s && bytes <= SMALL && !writer.gathered) s = cb_fail_memory(diag, "the plan's lists", (uint64_t)bytes);
  if (!s) s = write_regions(packing, source, arrays, &writer, diag);
  if (!s && writer.gathered)
    s = cb_device_upload_later(packing->device, packing->lists, writer.gathered, (size_t)bytes, "the plan's lists", diag);
  cb_free(writer.gathered);
  return s;
}

static void take_starts(struct cb_device_packing *packing, struct cb_survey *survey) {
  packing->starts = cb_survey_starts(survey);
  packing->shares_starts = survey->shares_starts;
  if (!packing->shares_starts) packing->bytes += (survey->view.rows + 1) * (survey->wide ? 8 : 4);
  survey->starts = 0;
}

/* Of a copy. */
static enum cb_status make_lost(struct cb_device_packing *packing, struct cb_diag *diag) {
  const size_t bytes = 2 * sizeof(uint32_t);
  const enum cb_status s = cb_device_alloc(packing->device, &packing->lost, bytes, "a packing", diag);
  packing->bytes += (int64_t)bytes;
  return s ? s : cb_device_fill(packing->device, packing->lost, 0, bytes, diag);
}

enum cb_status cb_device_packing_create(struct cb_device_packing **out, const struct cb_pack_source *source,
                                        const cb_device_ptr *arrays, struct cb_diag *diag) {
  const struct cb_device *device = source->survey->kernels->device;
  const int regions = source->lists->count;
  struct cb_device_packing *packing = cb_calloc(1, sizeof *packing);
  *out = NULL;
  if (!packing) return cb_fail_memory(diag, "a packing", sizeof *packing);
  packing->device = device;
  packing->count = regions;
  packing->wide_numbers = source->lists->wide;
  packing->regions = cb_calloc((size_t)regions + 1, sizeof *packing->regions);
  enum cb_status s = packing->regions ? CB_OK : cb_fail_memory(diag, "a packing", 0);
  if (!s) take_starts(packing, source->survey);
  if (!s) s = put_regions(packing, source, arrays, diag);
  if (s) cb_device_packing_free(packing);
  else *out = packing;
  return s;
}

enum cb_status cb_device_packing_copy(struct cb_device_packing **out, const struct cb_device_packing *packing,
                                      const cb_device_ptr *arrays, struct cb_diag *diag) {
  struct cb_device_packing *copy = cb_calloc(1, sizeof *copy);
  *out = NULL;
  if (!copy) return cb_fail_memory(diag, "a packing", sizeof *copy);
  *copy = *packing;
  copy->is_copy = 1;
  copy->lost = 0;
  copy->bytes = 0;
  copy->regions = cb_calloc((size_t)packing->count + 1, sizeof *copy->regions);
  enum cb_status s = copy->regions ? make_lost(copy, diag) : cb_fail_memory(diag, "a packing", 0);
  for (int r = 0; r < packing->count && !s; r++) {
    struct region *region = &copy->regions[r];
    *region = packing->regions[r];
    if (region->values) region->values = arrays[region->values_number];
  }
  if (s) cb_device_packing_free(copy);
  else *out = copy;
  return s;
}

/* `give`: cb_device_give_back, or cb_device_free, which waits for what may still use the memory. */
static void empty(const struct cb_device_packing *packing,
                  void (*give)(const struct cb_device *device, cb_device_ptr address)) {
  const cb_device_ptr starts = packing->starts.narrow ? packing->starts.narrow : packing->starts.wide;
  if (!packing->shares_starts) give(packing->device, starts);
  give(packing->device, packing->lists);
}

void cb_device_packing_free(struct cb_device_packing *packing) {
  if (!packing) return;
  if (packing->is_copy) cb_device_free(packing->device, packing->lost);
  else empty(packing, cb_device_free);
  cb_device_packing_forget(packing);
}

void cb_device_packing_finish(struct cb_device_packing *packing) {
  empty(packing, cb_device_give_back);
  cb_device_packing_forget(packing);
}

void cb_device_packing_forget(struct cb_device_packing *packing) {
  if (packing) cb_free(packing->regions);
  cb_free(packing);
}

int64_t cb_device_packing_bytes(const struct cb_device_packing *packing) { return packing->bytes; }

/* ---- running it */

static int64_t threads_of(const struct region *region) { return region->warps * WARP; }

static enum cb_status pack_columns(const struct cb_device_packing *packing, const struct region *region, int64_t field,
                                   const struct cb_view *view, struct cb_diag *diag) {
  struct lists lists = region->lists;
  struct cb_row_starts starts = packing->starts;
  cb_device_ptr columns = (cb_device_ptr)(uintptr_t)view->col_idx, elements = region->elements[field];
  int64_t base = view->base;
  void *parameters[] = {&lists, &starts, &columns, &base, &elements, &field};
  return cb_kernels_launch_named(region->kernels.indices, columns_kernels[view->col_wide], threads_of(region), NULL,
                                 parameters, diag);
}

static enum cb_status find_shape(const struct cb_device_packing *packing, const struct region *region,
                                 const struct cb_view *view, struct cb_diag *diag) {
  struct lists lists = region->lists;
  struct cb_row_starts starts = packing->starts;
  cb_device_ptr columns = (cb_device_ptr)(uintptr_t)view->col_idx;
  int64_t base = view->base;
  void *parameters[] = {&lists, &starts, &columns, &base};
  if (!lists.shape) return CB_OK;
  const enum cb_status s = cb_device_fill_later(packing->device, lists.shape, 0, (size_t)region->shape_bytes, diag);
  if (s) return s;
  return cb_kernels_launch_named(region->kernels.indices, shape_kernels[view->col_wide], threads_of(region), NULL,
                                 parameters, diag);
}

enum cb_status cb_device_packing_indices(const struct cb_device_packing *packing, const struct cb_pack_source *source,
                                         struct cb_diag *diag) {
  enum cb_status s = CB_OK;
  for (int r = 0; r < packing->count && !s; r++) {
    const struct region *region = &packing->regions[r];
    s = find_shape(packing, region, &source->survey->view, diag);
    for (int field = 0; field < region->fields && !s; field++)
      s = pack_columns(packing, region, field, &source->survey->view, diag);
    for (int i = 0; i < region->listed_count && !s; i++)
      s = cb_rows_store(source->survey, region->listed[i].list, region->listed[i].count, region->listed[i].to,
                        region->listed[i].bytes, diag);
  }
  return s;
}

enum cb_status cb_device_packing_prepare(const struct cb_device_packing *packing, struct cb_diag *diag) {
  enum cb_status s = CB_OK;
  for (int r = 0; r < packing->count && !s; r++) s = cb_kernels_prepare(packing->regions[r].kernels.values, diag);
  return s;
}

enum cb_status cb_device_packing_values(const struct cb_device_packing *packing, enum cb_type given,
                                        cb_device_ptr values, struct CUstream_st *stream, struct cb_diag *diag) {
  enum cb_status s = CB_OK;
  for (int r = 0; r < packing->count && !s; r++) {
    const struct region *region = &packing->regions[r];
    struct lists lists = region->lists;
    struct cb_row_starts starts = packing->starts;
    cb_device_ptr slots = region->values, lost = packing->lost;
    void *parameters[] = {&lists, &starts, &values, &slots, &lost};
    if (slots)
      s = cb_kernels_launch(region->kernels.values, (int)given, threads_of(region), stream, parameters, diag);
  }
  return s;
}

enum cb_status cb_device_packing_separate(const struct cb_device_packing *packing, struct CUstream_st *stream,
                                          struct cb_diag *diag) {
  return cb_device_separate(packing->device, packing->lost + sizeof(uint32_t), stream, diag);
}

enum cb_status cb_device_packing_lost(const struct cb_device_packing *packing, int *lost, struct cb_diag *diag) {
  uint32_t threads = 0;
  const enum cb_status s =
      cb_device_download(packing->device, &threads, packing->lost, sizeof threads, "a packing", diag);
  *lost = threads > 0;
  return s;
}

/* ---- slot maps */

static enum cb_status fill_map(const struct cb_device_packing *packing, const struct region *region,
                               struct cb_slot_map *map, cb_device_ptr numbers, struct cb_diag *diag) {
  const size_t bytes = (size_t)map->count * (map->wide ? 8 : 4);
  struct lists lists = region->lists;
  struct cb_row_starts starts = packing->starts;
  void *parameters[] = {&lists, &starts, &numbers};
  enum cb_status s = cb_device_fill_later(packing->device, numbers, 0xff, bytes, diag);
  if (!s)
    s = cb_kernels_launch_named(region->kernels.indices, number_kernels[map->wide], threads_of(region), NULL,
                                parameters, diag);
  return s ? s : cb_device_download(packing->device, map->entries, numbers, bytes, "a slot map", diag);
}

static enum cb_status make_map(const struct cb_device_packing *packing, const struct region *region,
                               struct cb_slot_map *map, struct cb_diag *diag) {
  const size_t bytes = (size_t)region->slots * (packing->wide_numbers ? 8 : 4);
  cb_device_ptr numbers = 0;
  *map = (struct cb_slot_map){.count = region->slots, .wide = packing->wide_numbers};
  map->entries = cb_alloc(bytes, 1);
  if (!map->entries) return cb_fail_memory(diag, "a slot map", bytes);
  enum cb_status s = cb_device_alloc(packing->device, &numbers, bytes, "a slot map", diag);
  if (!s) s = fill_map(packing, region, map, numbers, diag);
  cb_device_free(packing->device, numbers);
  return s;
}

enum cb_status cb_device_packing_maps(const struct cb_device_packing *packing, struct cb_slot_map *maps,
                                      struct cb_diag *diag) {
  enum cb_status s = CB_OK;
  int made = 0;
  for (; made < packing->count && !s; made++) s = make_map(packing, &packing->regions[made], &maps[made], diag);
  for (int r = 0; s && r < made; r++) cb_slot_map_release(&maps[r]);
  return s;
}
