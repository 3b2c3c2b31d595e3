// SPDX-License-Identifier: Apache-2.0
/* Numbers and lists for kernels that pack: see packing_lists.h. */
#include "runtime/operator/packing_lists.h"

#include "base/integers.h"

#include <string.h>

enum { NAME = 16, HEAD = 3, OF_FIELD = 6, OF_ARRAY = 2 }; /* NAME: bytes; the others: numbers */
enum { OF_REGION = NAME / 8 + 5 + CB_PACK_NUMBERS + CB_PACK_LISTS + CB_MOST_FIELDS * OF_FIELD };
#define MOST_BYTES ((int64_t)1 << 48)

/* ---- from a plan */

static enum cb_status refuse(struct cb_diag *diag, const struct cb_region *region) {
  return cb_fail(diag, CB_ERR_UNSUPPORTED, "no kernels pack region '%s' of a known plan", region->name);
}

/* An index array whose elements are neither listed nor computed on the host. */
static enum cb_status add_index(struct cb_packing_region *to, const struct cb_region *region,
                                const struct cb_array *array, const struct cb_contents *contents, int number,
                                struct cb_diag *diag) {
  const int width = (int)cb_type_size(array->type);
  if (contents->there) {
    if (to->listed_count == CB_MOST_LISTED) return refuse(diag, region);
    to->listed[to->listed_count++] = (struct cb_packing_listed){number, width, array->count, contents->there};
    return CB_OK;
  }
  if (to->fields_count == CB_MOST_FIELDS) return refuse(diag, region);
  const struct cb_field *slots = &contents->slots;
  to->fields[to->fields_count++] =
      (struct cb_packing_field){number, width, slots->first, slots->count, slots->shift, slots->mask};
  return CB_OK;
}

static enum cb_status add_array(struct cb_packing_region *to, const struct cb_region *region, int array,
                                const struct cb_region_work *work, int number, struct cb_diag *diag) {
  const struct cb_array *planned = &region->arrays[array];
  const struct cb_contents *contents = &work->contents[array];
  const char *filled = to->lists.bytes_array;
  if (planned->role == CB_ROLE_VALUES) to->values = number;
  else if (filled && !strcmp(planned->name, filled)) to->filled = number;
  else if (planned->role == CB_ROLE_BYTES || planned->role == CB_ROLE_MIXED) return refuse(diag, region);
  else if (planned->role == CB_ROLE_INDEX && !contents->of && !contents->elements)
    return add_index(to, region, planned, contents, number, diag);
  return CB_OK;
}

enum cb_status cb_packing_lists_find(struct cb_packing_lists *lists, const struct cb_plan *plan,
                                     const struct cb_assignment *assignment, struct cb_diag *diag) {
  int number = 0;
  *lists = (struct cb_packing_lists){.wide = assignment->wide};
  if (plan->regions_count > CB_MOST_PACKED)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "%d regions are too many to pack", plan->regions_count);
  for (int r = 0; r < plan->regions_count; r++) {
    const struct cb_region *region = &plan->regions[r];
    const struct cb_region_work *work = &assignment->regions[r];
    const struct cb_layout *layout = assignment->layouts[r];
    struct cb_packing_region *to = &lists->regions[lists->count++];
    *to = (struct cb_packing_region){
        .layout = layout->name, .slots = region->value_slots, .values = -1, .filled = -1};
    if (!layout->describe || work->part_csr) return refuse(diag, region);
    layout->describe(work->state, &to->lists);
    for (int i = 0; i < CB_PACK_LISTS; i++) /* that only a plan for packing there has */
      if (to->lists.lists[i].bytes && !to->lists.lists[i].elements) return refuse(diag, region);
    for (int a = 0; a < region->arrays_count; a++) {
      if (region->arrays[a].storage != CB_STORED) continue;
      const enum cb_status s = add_array(to, region, a, work, number++, diag);
      if (s) return s;
    }
  }
  return CB_OK;
}

/* ---- as a section */

/* Whether kernels fill the image's array. */
static int is_filled(const struct cb_packing_lists *lists, int array) {
  int filled = 0;
  for (int r = 0; r < lists->count; r++) {
    const struct cb_packing_region *region = &lists->regions[r];
    filled |= region->values == array || region->filled == array;
    for (int i = 0; i < region->fields_count; i++) filled |= region->fields[i].array == array;
  }
  return filled;
}

static int kept_arrays(const struct cb_packing_lists *lists, const struct cb_image *image) {
  int kept = 0;
  for (int i = 0; i < image->arrays_count; i++) kept += !is_filled(lists, i);
  return kept;
}

static int64_t align(int64_t place) { return cb_round_up(place, CB_CACHE_ALIGN); }

static int64_t head_bytes(int regions, int64_t kept) {
  return (HEAD + (int64_t)regions * OF_REGION + kept * OF_ARRAY) * (int64_t)sizeof(int64_t);
}

int64_t cb_packing_lists_bytes(const struct cb_packing_lists *lists, const struct cb_image *image) {
  int64_t end = head_bytes(lists->count, kept_arrays(lists, image));
  for (int r = 0; r < lists->count; r++)
    for (int i = 0; i < CB_PACK_LISTS; i++)
      if (lists->regions[r].lists.lists[i].bytes) end = align(end) + lists->regions[r].lists.lists[i].bytes;
  for (int i = 0; i < image->arrays_count; i++)
    if (!is_filled(lists, i)) end = align(end) + image->arrays[i].bytes;
  return end;
}

int64_t cb_packing_lists_spare(const struct cb_packing_lists *lists, const struct cb_image *image) {
  int64_t bytes = image->map.groups_count ? cb_value_map_bytes(&image->map) : 0;
  for (int i = 0; i < image->arrays_count; i++)
    if (image->arrays[i].contents && is_filled(lists, i)) bytes += image->arrays[i].bytes;
  return bytes;
}

/* A section under construction: numbers, and where the next contents go. */
struct writer {
  unsigned char *bytes;
  int64_t at, end;
};

static void put(struct writer *writer, int64_t number) {
  memcpy(writer->bytes + writer->at, &number, sizeof number);
  writer->at += (int64_t)sizeof number;
}

static void put_contents(struct writer *writer, const void *contents, int64_t bytes) {
  const int64_t at = align(writer->end);
  memset(writer->bytes + writer->end, 0, (size_t)(at - writer->end));
  if (bytes) memcpy(writer->bytes + at, contents, (size_t)bytes);
  writer->end = at + bytes;
}

static void put_region(struct writer *writer, const struct cb_packing_region *region) {
  char name[NAME] = {0};
  memcpy(name, region->layout, strnlen(region->layout, NAME - 1));
  memcpy(writer->bytes + writer->at, name, NAME);
  writer->at += NAME;
  const int64_t own[] = {region->slots, region->values, region->filled, region->lists.warps, region->lists.shape_bytes};
  for (size_t i = 0; i < sizeof own / sizeof *own; i++) put(writer, own[i]);
  for (int i = 0; i < CB_PACK_NUMBERS; i++) put(writer, region->lists.numbers[i]);
  for (int i = 0; i < CB_PACK_LISTS; i++) put(writer, region->lists.lists[i].bytes);
  for (int i = 0; i < CB_MOST_FIELDS; i++) {
    const struct cb_packing_field none = {.array = -1}, *field = i < region->fields_count ? &region->fields[i] : &none;
    const int64_t numbers[OF_FIELD] = {field->array, field->width, field->first,
                                       field->count, field->shift, field->mask};
    for (int k = 0; k < OF_FIELD; k++) put(writer, numbers[k]);
  }
}

void cb_packing_lists_write(unsigned char *bytes, const struct cb_packing_lists *lists, const struct cb_image *image) {
  const int kept = kept_arrays(lists, image);
  struct writer writer = {.bytes = bytes, .end = head_bytes(lists->count, kept)};
  put(&writer, lists->count);
  put(&writer, lists->wide);
  put(&writer, kept);
  for (int r = 0; r < lists->count; r++) put_region(&writer, &lists->regions[r]);
  for (int i = 0; i < image->arrays_count; i++) {
    if (is_filled(lists, i)) continue;
    put(&writer, i);
    put(&writer, image->arrays[i].bytes);
  }
  for (int r = 0; r < lists->count; r++)
    for (int i = 0; i < CB_PACK_LISTS; i++) {
      const struct cb_pack_list *list = &lists->regions[r].lists.lists[i];
      if (list->bytes) put_contents(&writer, list->elements, list->bytes);
    }
  for (int i = 0; i < image->arrays_count; i++)
    if (!is_filled(lists, i)) put_contents(&writer, image->arrays[i].contents, image->arrays[i].bytes);
}

/* ---- back: fails stickily */

struct reader {
  const unsigned char *bytes;
  int64_t length, at, end; /* end: of the contents so far */
  int failed;
};

static int64_t get(struct reader *reader, int64_t least, int64_t most) {
  int64_t number = least;
  if (reader->failed || reader->length - reader->at < (int64_t)sizeof number) reader->failed = 1;
  else memcpy(&number, reader->bytes + reader->at, sizeof number);
  reader->at += (int64_t)sizeof number;
  if (number >= least && number <= most) return number;
  reader->failed = 1;
  return least;
}

static const void *get_contents(struct reader *reader, int64_t bytes) {
  const int64_t at = align(reader->end);
  if (reader->failed || at > reader->length || reader->length - at < bytes) {
    reader->failed = 1;
    return NULL;
  }
  reader->end = at + bytes;
  return reader->bytes + at;
}

static const char *get_layout(struct reader *reader) {
  const struct cb_layout *layout = NULL;
  if (reader->failed || reader->length - reader->at < NAME) reader->failed = 1;
  else if (!reader->bytes[reader->at + NAME - 1]) layout = cb_layout_find((const char *)reader->bytes + reader->at);
  reader->at += NAME;
  if (layout && layout->describe) return layout->name;
  reader->failed = 1;
  return "";
}

/* Elements lie within the image's array. */
static void read_field(struct reader *reader, struct cb_packing_region *region, const struct cb_image *image) {
  struct cb_packing_field field = {.array = (int)get(reader, -1, image->arrays_count - 1)};
  field.width = (int)get(reader, 0, 8);
  field.first = get(reader, 0, MOST_BYTES);
  field.count = get(reader, 0, MOST_BYTES);
  field.shift = get(reader, 0, 63);
  field.mask = get(reader, 0, UINT32_MAX);
  if (reader->failed || field.array < 0) return;
  reader->failed |= !field.width || (field.width & (field.width - 1)) ||
                    field.count > image->arrays[field.array].bytes / field.width;
  region->fields[region->fields_count++] = field;
}

static void read_region(struct reader *reader, struct cb_packing_region *region, const struct cb_image *image) {
  const int64_t width = (int64_t)cb_type_size(image->matrix_type);
  *region = (struct cb_packing_region){.layout = get_layout(reader)};
  region->slots = get(reader, 0, MOST_BYTES);
  region->values = (int)get(reader, -1, image->arrays_count - 1);
  region->filled = (int)get(reader, -1, image->arrays_count - 1);
  region->lists.warps = get(reader, 0, INT64_MAX / 32);
  region->lists.shape_bytes = get(reader, 0, MOST_BYTES);
  for (int i = 0; i < CB_PACK_NUMBERS; i++) region->lists.numbers[i] = get(reader, INT64_MIN, INT64_MAX);
  for (int i = 0; i < CB_PACK_LISTS; i++) region->lists.lists[i].bytes = get(reader, 0, MOST_BYTES);
  for (int i = 0; i < CB_MOST_FIELDS; i++) read_field(reader, region, image);
  if (!reader->failed && region->values >= 0)
    reader->failed |=
        !image->arrays[region->values].values || region->slots > image->arrays[region->values].bytes / width;
}

/* The arrays that no kernel fills, all of them. */
static void read_arrays(struct reader *reader, const struct cb_packing_lists *lists, int kept,
                        const struct cb_image *image) {
  reader->failed |= kept != kept_arrays(lists, image);
  for (int i = 0; i < image->arrays_count && !reader->failed; i++) {
    if (is_filled(lists, i)) continue;
    get(reader, i, i);
    get(reader, image->arrays[i].bytes, image->arrays[i].bytes);
  }
}

static void read_contents(struct reader *reader, struct cb_packing_lists *lists, const struct cb_image *image,
                          const void **contents) {
  for (int r = 0; r < lists->count; r++)
    for (int i = 0; i < CB_PACK_LISTS; i++) {
      struct cb_pack_list *list = &lists->regions[r].lists.lists[i];
      if (list->bytes) list->elements = get_contents(reader, list->bytes);
    }
  for (int i = 0; i < image->arrays_count; i++)
    contents[i] = is_filled(lists, i) ? NULL : get_contents(reader, image->arrays[i].bytes);
}

enum cb_status cb_packing_lists_read(struct cb_packing_lists *lists, const void **contents,
                                     const struct cb_image *image, const struct cb_cache_section *section,
                                     struct cb_diag *diag) {
  struct reader reader = {.bytes = section->bytes, .length = section->length};
  *lists = (struct cb_packing_lists){.count = (int)get(&reader, 0, CB_MOST_PACKED)};
  lists->wide = (int)get(&reader, 0, 1);
  const int kept = (int)get(&reader, 0, CB_IMAGE_ARRAYS);
  for (int r = 0; r < lists->count && !reader.failed; r++) read_region(&reader, &lists->regions[r], image);
  if (!reader.failed) read_arrays(&reader, lists, kept, image);
  reader.end = reader.at;
  if (!reader.failed) read_contents(&reader, lists, image, contents);
  if (reader.failed || reader.end != reader.length)
    return cb_fail(diag, CB_ERR_FORMAT, "the entry's section 'packing' is damaged");
  return CB_OK;
}
