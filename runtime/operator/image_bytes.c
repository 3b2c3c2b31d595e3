// SPDX-License-Identifier: Apache-2.0
/* Images as sections of bytes, and back: see image.h. The section "operator" is written by `write_operator` and read by
 * `read_operator`, which name the same fields in the same order. `check_image` then checks what was read, so that no
 * number of a damaged or hostile block is used as an address or a length. */
#include "base/integers.h"
#include "base/memory.h"
#include "runtime/cuda/cubin.h"
#include "runtime/operator/image.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* The format's number grows when these numbers change, or when the parameters of kernels do: those of products
 * (codegen/source.h) and those of packing (templates/pack.cu.in). */
enum { FORMAT = 7, MAX_LAUNCHES = 64 };
#define MAX_BYTES ((int64_t)1 << 48)

/* ---- writing */

static void put_u64(struct cb_text *text, uint64_t number) {
  unsigned char bytes[8];
  for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)(number >> 8 * i);
  cb_text_add_bytes(text, (const char *)bytes, sizeof bytes);
}

static void put(struct cb_text *text, int64_t number) {
  put_u64(text, (uint64_t)number);
}

static void put_string(struct cb_text *text, const char *string) {
  put(text, (int64_t)strlen(string));
  cb_text_add_string(text, string);
}

static void put_hash(struct cb_text *text, struct cb_hash hash) {
  put_u64(text, hash.high);
  put_u64(text, hash.low);
}

static void write_target(struct cb_text *text, const struct cb_target *target) {
  put_string(text, target->arch);
  put_string(text, target->model);
  put(text, target->multiprocessors);
  put(text, target->shared_per_block);
  put(text, target->shared_per_sm);
  put(text, target->l2_bytes);
  put(text, target->read_gb_per_s);
  put(text, target->sectors_g_per_s);
  put(text, target->launch_ns);
  put(text, target->l2_gb_per_s);
  put(text, target->latency_ns);
}

static void write_launch(struct cb_text *text, const struct cb_image_launch *launch) {
  put_string(text, launch->kernel);
  put(text, launch->blocks);
  put(text, launch->dynamic_shared);
  put(text, launch->threads);
  put(text, launch->first_group);
  put(text, launch->groups);
}

static void write_lists(struct cb_text *text, const struct cb_image *image, int data) {
  const int has_map = data && image->map.groups_count;
  put(text, image->tier);
  put(text, image->first_row_sum);
  put(text, image->pointers_count);
  for (int i = 0; i < image->pointers_count; i++) put(text, image->pointers[i]);
  put(text, image->sizes_count);
  for (int i = 0; i < image->sizes_count; i++) put(text, image->sizes[i]);
  put(text, image->groups_count);
  for (int i = 0; i < image->groups_count; i++) {
    put(text, image->groups[i].first_pointer);
    put(text, image->groups[i].pointers);
    put(text, image->groups[i].first_size);
    put(text, image->groups[i].sizes);
  }
  put(text, image->launches_count);
  for (int i = 0; i < image->launches_count; i++) write_launch(text, &image->launches[i]);
  put(text, image->arrays_count);
  for (int i = 0; i < image->arrays_count; i++) {
    put(text, image->arrays[i].offset);
    put(text, image->arrays[i].bytes);
    put(text, image->arrays[i].values);
    put(text, data && image->arrays[i].contents);
  }
  put(text, image->ranges_count);
  for (int i = 0; i < image->ranges_count; i++) {
    put(text, image->ranges[i].array);
    put(text, image->ranges[i].map.slots);
    put(text, image->ranges[i].map.first_group);
    put(text, has_map ? image->ranges[i].map.first_block : 0);
    put(text, has_map ? image->ranges[i].map.blocks : 0);
  }
}

static void write_product(struct cb_text *text, const struct cb_image *image) {
  put(text, image->rows);
  put(text, image->cols);
  put(text, image->nnz);
  put(text, image->entries);
  put(text, image->matrix_type);
  put(text, image->vector_type);
  put(text, image->sum_type);
  put(text, image->form);
  put(text, image->semiring);
  put(text, image->values);
  put(text, image->vectors);
  for (int i = 0; i < CB_VECTOR_KERNELS; i++) {
    put(text, image->shares[i].each);
    put(text, image->shares[i].parts);
    put(text, image->shares[i].sharing);
    put(text, image->shares[i].y_too);
  }
}

void cb_image_write_numbers(struct cb_text *text, const struct cb_image *image, int data) {
  put(text, FORMAT);
  write_product(text, image);
  write_target(text, &image->target);
  put(text, image->stored_bytes);
  put(text, image->plan_ns);
  put(text, image->csr_ns);
  put_hash(text, image->plan_hash);
  put_hash(text, image->pattern);
  put_u64(text, image->id);
  put(text, image->carry_sums);
  put(text, image->carry_counters);
  put_string(text, image->recipe);
  write_lists(text, image, data);
  put(text, image->packed_bytes);
  put(text, data ? image->map.groups_count : 0);
  put(text, data ? image->map.blocks_count : 0);
  put(text, data ? image->map.body_bytes : 0);
  put(text, data ? image->map.lists : 0);
}

static int64_t align_up(int64_t offset) {
  return cb_round_up(offset, CB_CACHE_ALIGN);
}

/* The contents one after the other, each from a multiple of CB_CACHE_ALIGN on. */
int64_t cb_image_place(const struct cb_image *image, int number) {
  int64_t end = 0;
  for (int i = 0; i < image->arrays_count; i++) {
    if (!image->arrays[i].contents) continue;
    if (i == number) return align_up(end);
    end = align_up(end) + image->arrays[i].bytes;
  }
  return end;
}

static enum cb_status gather_arrays(unsigned char **gathered, int64_t *length, const struct cb_image *image,
                                    struct cb_diag *diag) {
  *length = cb_image_place(image, -1);
  unsigned char *bytes = *gathered = cb_alloc((size_t)*length, 1);
  if (!bytes) return cb_fail_memory(diag, "the arrays of an operator", (unsigned long long)*length);
  int64_t end = 0;
  for (int i = 0; i < image->arrays_count; i++) {
    const struct cb_image_array *array = &image->arrays[i];
    if (!array->contents) continue;
    const int64_t at = align_up(end);
    memset(bytes + end, 0, (size_t)(at - end));
    memcpy(bytes + at, array->contents, (size_t)array->bytes);
    end = at + array->bytes;
  }
  return CB_OK;
}

static void add_section(struct cb_image_bytes *bytes, const char *tag, const void *contents, int64_t length) {
  struct cb_cache_section *section = &bytes->sections[bytes->count++];
  *section = (struct cb_cache_section){.bytes = contents, .length = length};
  snprintf(section->tag, sizeof section->tag, "%s", tag);
}

/* Starts and entries of lists are two blocks, or one. */
static enum cb_status add_map(struct cb_image_bytes *bytes, const struct cb_image *image,
                              struct cb_diag *diag) {
  const struct cb_value_map *map = &image->map;
  const int64_t starts = (map->lists + 1) * (int64_t)sizeof *map->list_starts, all = cb_value_map_list_bytes(map);
  if (!map->groups_count) return CB_OK;
  add_section(bytes, "map", map->blocks, cb_value_map_bytes(map));
  if (!map->lists) return CB_OK;
  unsigned char *lists = bytes->owned[1] = cb_alloc((size_t)all, 1);
  if (!lists) return cb_fail_memory(diag, "the lists of an operator", (unsigned long long)all);
  memcpy(lists, map->list_starts, (size_t)starts);
  memcpy(lists + starts, map->list_entries, (size_t)(all - starts));
  add_section(bytes, "lists", lists, all);
  return CB_OK;
}

enum cb_status cb_image_sections(struct cb_image_bytes *bytes, const struct cb_image *image, int data,
                                 struct cb_diag *diag) {
  struct cb_text text = {0};
  unsigned char *arrays = NULL;
  int64_t arrays_length = 0;
  *bytes = (struct cb_image_bytes){0};
  cb_image_write_numbers(&text, image, data);
  const int64_t length = (int64_t)text.length;
  bytes->operator_bytes = cb_text_detach(&text);
  if (!bytes->operator_bytes)
    return cb_fail_memory(diag, "an operator's numbers", (unsigned long long)length);
  add_section(bytes, "operator", bytes->operator_bytes, length);
  add_section(bytes, "plan", image->line, (int64_t)strlen(image->line));
  add_section(bytes, "json", image->json, (int64_t)strlen(image->json));
  add_section(bytes, "source", image->source, (int64_t)strlen(image->source));
  add_section(bytes, "cubin", image->cubin, (int64_t)image->cubin_bytes);
  if (!data) return CB_OK;
  enum cb_status s = gather_arrays(&arrays, &arrays_length, image, diag);
  bytes->owned[0] = arrays;
  if (!s) add_section(bytes, "arrays", arrays, arrays_length);
  return s ? s : add_map(bytes, image, diag);
}

void cb_image_bytes_release(struct cb_image_bytes *bytes) {
  cb_free(bytes->operator_bytes);
  for (int i = 0; i < 2; i++) cb_free(bytes->owned[i]);
  *bytes = (struct cb_image_bytes){0};
}

/* ---- reading: fails stickily */

struct reader {
  const unsigned char *bytes;
  int64_t length, at;
  int failed;
  struct cb_arena *arena;
};

static uint64_t get_u64(struct reader *reader) {
  uint64_t number = 0;
  if (reader->failed || reader->length - reader->at < 8) {
    reader->failed = 1;
    return 0;
  }
  for (int i = 0; i < 8; i++) number |= (uint64_t)reader->bytes[reader->at + i] << 8 * i;
  reader->at += 8;
  return number;
}

/* A number from `least` to `most`. */
static int64_t get(struct reader *reader, int64_t least, int64_t most) {
  const int64_t number = (int64_t)get_u64(reader);
  if (number >= least && number <= most) return number;
  reader->failed = 1;
  return least;
}

static const char *keep_text(struct reader *reader, const void *bytes, int64_t length) {
  char *text = memchr(bytes, 0, (size_t)length) ? NULL : cb_arena_alloc(reader->arena, (size_t)length + 1, 1);
  if (!text) {
    reader->failed = 1;
    return "";
  }
  memcpy(text, bytes, (size_t)length);
  return text;
}

static const char *get_string(struct reader *reader, int64_t most) {
  const int64_t length = get(reader, 0, most);
  if (reader->failed || reader->length - reader->at < length) {
    reader->failed = 1;
    return "";
  }
  reader->at += length;
  return keep_text(reader, reader->bytes + reader->at - length, length);
}

static struct cb_hash get_hash(struct reader *reader) {
  struct cb_hash hash;
  hash.high = get_u64(reader);
  hash.low = get_u64(reader);
  return hash;
}

/* A list's length; its elements go to the arena. */
static void *get_list(struct reader *reader, int *count, int most, size_t size) {
  *count = (int)get(reader, 0, most);
  void *list = cb_arena_alloc(reader->arena, (size_t)*count + 1, size);
  if (!list || reader->failed) {
    reader->failed = 1;
    *count = 0;
  }
  return list;
}

static void read_target(struct reader *reader, struct cb_target *target) {
  snprintf(target->arch, sizeof target->arch, "%s", get_string(reader, sizeof target->arch - 1));
  snprintf(target->model, sizeof target->model, "%s", get_string(reader, sizeof target->model - 1));
  target->multiprocessors = (int)get(reader, 1, INT32_MAX);
  target->shared_per_block = (int)get(reader, 0, INT32_MAX);
  target->shared_per_sm = (int)get(reader, 0, INT32_MAX);
  target->l2_bytes = get(reader, 0, INT64_MAX);
  target->read_gb_per_s = get(reader, 1, INT32_MAX);
  target->sectors_g_per_s = get(reader, 1, INT32_MAX);
  target->launch_ns = get(reader, 0, INT32_MAX);
  target->l2_gb_per_s = get(reader, 1, INT32_MAX);
  target->latency_ns = get(reader, 0, INT32_MAX);
}

static void read_launch(struct reader *reader, const struct cb_image *image, struct cb_image_launch *launch) {
  snprintf(launch->kernel, sizeof launch->kernel, "%s", get_string(reader, sizeof launch->kernel - 1));
  for (const char *c = launch->kernel; *c; c++) reader->failed |= !isalnum((unsigned char)*c) && *c != '_';
  launch->blocks = get(reader, 1, INT32_MAX);
  launch->dynamic_shared = get(reader, 0, INT32_MAX);
  launch->threads = (int)get(reader, 1, 1024);
  launch->first_group = (int)get(reader, 0, image->groups_count);
  launch->groups = (int)get(reader, 0, image->groups_count - launch->first_group);
  reader->failed |= launch->groups > CB_IMAGE_GROUPS;
}

/* `present`: whether each array has contents. */
static void read_lists(struct reader *reader, struct cb_image *image, unsigned char *present) {
  image->tier = (enum cb_tier)get(reader, CB_TIER_SPECIALISED, CB_TIER_FAMILY);
  image->first_row_sum = get(reader, 0, image->tier == CB_TIER_FAMILY ? MAX_BYTES : 0);
  image->pointers = get_list(reader, &image->pointers_count, CB_IMAGE_ARRAYS, sizeof *image->pointers);
  for (int i = 0; i < image->pointers_count; i++) image->pointers[i] = (int)get(reader, -1, CB_IMAGE_ARRAYS);
  image->sizes = get_list(reader, &image->sizes_count, CB_IMAGE_SIZES, sizeof *image->sizes);
  for (int i = 0; i < image->sizes_count; i++) image->sizes[i] = (int32_t)get(reader, INT32_MIN, INT32_MAX);
  image->groups = get_list(reader, &image->groups_count, CB_IMAGE_ARRAYS, sizeof *image->groups);
  for (int i = 0; i < image->groups_count; i++) {
    image->groups[i].first_pointer = (int)get(reader, 0, CB_IMAGE_ARRAYS);
    image->groups[i].pointers = (int)get(reader, image->tier == CB_TIER_SPECIALISED, CB_IMAGE_ARRAYS);
    image->groups[i].first_size = (int)get(reader, 0, CB_IMAGE_SIZES);
    image->groups[i].sizes = (int)get(reader, 0, CB_IMAGE_SIZES);
  }
  image->launches = get_list(reader, &image->launches_count, MAX_LAUNCHES, sizeof *image->launches);
  for (int i = 0; i < image->launches_count; i++) read_launch(reader, image, &image->launches[i]);
  image->arrays = get_list(reader, &image->arrays_count, CB_IMAGE_ARRAYS, sizeof *image->arrays);
  for (int i = 0; i < image->arrays_count; i++) {
    image->arrays[i].offset = get(reader, 0, MAX_BYTES);
    image->arrays[i].bytes = get(reader, 0, MAX_BYTES);
    image->arrays[i].values = (int)get(reader, 0, 1);
    present[i] = (unsigned char)get(reader, 0, 1);
  }
  image->ranges = get_list(reader, &image->ranges_count, CB_IMAGE_ARRAYS, sizeof *image->ranges);
  for (int i = 0; i < image->ranges_count; i++) {
    image->ranges[i].array = (int)get(reader, 0, image->arrays_count - 1);
    image->ranges[i].map.slots = get(reader, 0, MAX_BYTES);
    image->ranges[i].map.first_group = get(reader, 0, MAX_BYTES);
    image->ranges[i].map.first_block = get(reader, 0, MAX_BYTES);
    image->ranges[i].map.blocks = get(reader, 0, MAX_BYTES);
  }
}

static void read_product(struct reader *reader, struct cb_image *image) {
  image->rows = get(reader, 0, CB_MAX_DIMENSION);
  image->cols = get(reader, 0, CB_MAX_DIMENSION);
  image->nnz = get(reader, 0, MAX_BYTES);
  image->entries = get(reader, image->nnz, MAX_BYTES);
  image->matrix_type = (enum cb_type)get(reader, CB_F64, CB_SPLIT);
  if (!cb_type_is_float(image->matrix_type)) reader->failed = 1;
  image->vector_type = (enum cb_type)get(reader, CB_F64, CB_C128);
  image->sum_type = (enum cb_type)get(reader, CB_F64, CB_C128);
  if (image->sum_type == CB_F16 || image->sum_type == CB_BF16) reader->failed = 1;
  if (cb_type_is_complex(image->matrix_type) != cb_type_is_complex(image->sum_type)) reader->failed = 1;
  if (cb_type_is_complex(image->vector_type) != cb_type_is_complex(image->sum_type)) reader->failed = 1;
  image->form = (enum cb_form)get(reader, CB_FORM_AX, CB_FORM_AXPBY);
  image->semiring = (enum cb_semiring)get(reader, CB_PLUS_TIMES, CB_OR_AND);
  image->values = (int)get(reader, CBGEN_VALUES_STORED, CBGEN_VALUES_FIXED);
  image->vectors = (int)get(reader, 1, CB_MOST_VECTORS);
  for (int i = 0; i < CB_VECTOR_KERNELS; i++) {
    image->shares[i].each = (int)get(reader, 0, CB_MOST_VECTORS);
    image->shares[i].parts = (int)get(reader, 0, CB_MOST_VECTORS);
    image->shares[i].sharing = (enum cb_sharing)get(reader, 0, CB_SHARINGS - 1);
    image->shares[i].y_too = (int)get(reader, 0, i == CB_VECTORS_COPIED);
  }
}

static void read_operator(struct reader *reader, struct cb_image *image, unsigned char *present) {
  get(reader, FORMAT, FORMAT);
  read_product(reader, image);
  read_target(reader, &image->target);
  image->stored_bytes = get(reader, 0, MAX_BYTES);
  image->plan_ns = get(reader, 0, INT64_MAX);
  image->csr_ns = get(reader, 0, INT64_MAX);
  image->plan_hash = get_hash(reader);
  image->pattern = get_hash(reader);
  image->id = get_u64(reader);
  image->carry_sums = get(reader, 0, MAX_BYTES);
  image->carry_counters = get(reader, 0, MAX_BYTES);
  image->recipe = get_string(reader, 64);
  read_lists(reader, image, present);
  image->packed_bytes = get(reader, 0, MAX_BYTES);
  image->map.groups_count = get(reader, 0, CB_NO_GROUP - 1);
  image->map.blocks_count = get(reader, 0, image->map.groups_count);
  image->map.body_bytes = get(reader, 0, MAX_BYTES);
  image->map.lists = get(reader, 0, image->nnz);
}

/* ---- checking: numbers that must fit each other */

/* A family's kernel gets the stored arrays of a region, whose numbers follow each other, in an order of its own. */
static int follow_each_other(const struct cb_image *image, const struct cb_image_group *group) {
  int first = INT_MAX, last = -1, stored = 0;
  for (int i = 0; i < group->pointers; i++) {
    const int array = image->pointers[group->first_pointer + i];
    if (array < 0) continue;
    first = array < first ? array : first;
    last = array > last ? array : last;
    stored++;
  }
  return !stored || last - first + 1 == stored;
}

static int groups_fit(const struct cb_image *image) {
  for (int i = 0; i < image->pointers_count; i++)
    if (image->pointers[i] >= image->arrays_count || (image->pointers[i] < 0 && image->tier == CB_TIER_SPECIALISED))
      return 0;
  for (int i = 0; i < image->groups_count; i++) {
    const struct cb_image_group *group = &image->groups[i];
    if (group->first_pointer + group->pointers > image->pointers_count || !follow_each_other(image, group)) return 0;
    if (group->first_size + group->sizes > image->sizes_count) return 0;
  }
  return 1;
}

/* Arrays ascend without overlap, at places that suit every type. */
static int arrays_fit(const struct cb_image *image) {
  int64_t end = 0;
  for (int i = 0; i < image->arrays_count; i++) {
    const struct cb_image_array *array = &image->arrays[i];
    if (array->offset < end || array->offset % CB_BLOB_ALIGN) return 0;
    end = array->offset + array->bytes;
  }
  return end <= image->packed_bytes;
}

/* Slots lie within their arrays; the ranges' groups and blocks follow each other in the map. */
static int ranges_fit(const struct cb_image *image) {
  const int64_t width = (int64_t)cb_type_size(image->matrix_type);
  int64_t next = 0, next_block = 0;
  for (int i = 0; i < image->ranges_count; i++) {
    const struct cb_value_range *range = &image->ranges[i].map;
    if (range->first_group != next || range->slots > image->arrays[image->ranges[i].array].bytes / width) return 0;
    if (image->map.groups_count ? range->first_block != next_block : range->first_block || range->blocks) return 0;
    next += cb_groups_of(range->slots);
    next_block += range->blocks;
  }
  return !image->map.groups_count || (image->map.groups_count == next && image->map.blocks_count == next_block);
}

static int check_image(const struct cb_image *image) {
  return groups_fit(image) && arrays_fit(image) && ranges_fit(image);
}

/* ---- the other sections */

static const struct cb_cache_section *find(const struct cb_cache_section *sections, int count,
                                           const char *tag) {
  for (int i = 0; i < count; i++)
    if (!strcmp(sections[i].tag, tag)) return &sections[i];
  return NULL;
}

static enum cb_status fail_section(const char *tag, struct cb_diag *diag) {
  return cb_fail(diag, CB_ERR_FORMAT, "the operator's section '%s' is missing or damaged", tag);
}

static enum cb_status take_text(const char **text, struct reader *reader,
                                const struct cb_cache_section *sections, int count, const char *tag,
                                struct cb_diag *diag) {
  const struct cb_cache_section *section = find(sections, count, tag);
  reader->failed = 0;
  *text = section ? keep_text(reader, section->length ? section->bytes : "", section->length) : "";
  if (reader->arena->failed) return cb_fail_memory(diag, tag, (unsigned long long)section->length);
  return !section || reader->failed ? fail_section(tag, diag) : CB_OK;
}

static enum cb_status take_arrays(struct cb_image *image, const unsigned char *present,
                                  const struct cb_cache_section *sections, int count, struct cb_diag *diag) {
  const struct cb_cache_section *section = find(sections, count, "arrays");
  int64_t at = 0;
  for (int i = 0; i < image->arrays_count; i++) {
    struct cb_image_array *array = &image->arrays[i];
    if (!present[i]) continue;
    at = align_up(at);
    if (!section || section->length - at < array->bytes) return fail_section("arrays", diag);
    array->contents = section->bytes ? (const unsigned char *)section->bytes + at : (const void *)"";
    at += array->bytes;
  }
  return !section || at == section->length ? CB_OK : fail_section("arrays", diag);
}

static enum cb_status take_map(struct cb_image *image, const struct cb_cache_section *sections, int count,
                               int suspect, struct cb_diag *diag) {
  struct cb_value_map *map = &image->map;
  const struct cb_cache_section *blocks = find(sections, count, "map"), *lists = find(sections, count, "lists");
  const int64_t width = (int64_t)sizeof *map->list_starts, starts = (map->lists + 1) * width;
  map->values = image->entries;
  if (!map->groups_count) return map->lists || map->body_bytes ? fail_section("map", diag) : CB_OK;
  if (!blocks || blocks->length != cb_value_map_bytes(map)) return fail_section("map", diag);
  map->blocks = blocks->bytes;
  map->body = (const unsigned char *)blocks->bytes + cb_value_map_body_at(map);
  if (map->lists) {
    if (!lists || lists->length < starts || lists->length % width) return fail_section("lists", diag);
    map->list_starts = lists->bytes;
    map->list_entries = map->list_starts + map->lists + 1;
    /* the last start says how many entries there are */
    if (map->list_starts[map->lists] != (uint64_t)((lists->length - starts) / width))
      return fail_section("lists", diag);
  }
  if (suspect && !cb_value_lists_are_sound(map)) return fail_section("lists", diag);
  for (int i = 0; i < image->ranges_count && suspect; i++)
    if (!cb_value_map_is_sound(map, &image->ranges[i].map)) return fail_section("map", diag);
  return CB_OK;
}

static enum cb_status take_cubin(struct cb_image *image, const struct cb_cache_section *sections, int count,
                                 int suspect, struct cb_diag *diag) {
  const struct cb_cache_section *section = find(sections, count, "cubin");
  struct cb_cubin_stats stats = {0};
  if (!section) return fail_section("cubin", diag);
  image->cubin = section->bytes;
  image->cubin_bytes = (size_t)section->length;
  if (!image->launches_count || !suspect) return CB_OK;
  const enum cb_status s = cb_cubin_stats(&stats, image->cubin, image->cubin_bytes, diag);
  if (!s) cb_cubin_stats_release(&stats);
  return s;
}

/* The plan has the epilogue's text. */
static enum cb_status take_statements(struct cb_image *image, struct cb_diag *diag) {
  struct cb_plan *plan;
  if (!strstr(image->json, "\"epilogue\":")) return CB_OK;
  const enum cb_status s = cb_plan_parse(&plan, image->json, diag);
  if (s) return s;
  if (plan->statements)
    image->statements = cb_arena_copy(&image->arena, plan->statements, 1, sizeof *plan->statements);
  const int failed = plan->statements && !image->statements;
  cb_plan_free(plan);
  return failed ? cb_fail_memory(diag, "an epilogue", sizeof *image->statements) : CB_OK;
}

enum cb_status cb_image_parse(struct cb_image *image, const struct cb_cache_section *sections, int count,
                              int suspect, struct cb_diag *diag) {
  const struct cb_cache_section *numbers = find(sections, count, "operator");
  unsigned char present[CB_IMAGE_ARRAYS] = {0};
  *image = (struct cb_image){0};
  if (!numbers) return fail_section("operator", diag);
  struct reader reader = {.bytes = numbers->bytes, .length = numbers->length, .arena = &image->arena};
  read_operator(&reader, image, present);
  if (image->arena.failed)
    return cb_fail_memory(diag, "an operator's numbers", (unsigned long long)numbers->length);
  if (reader.failed || reader.at != reader.length || !check_image(image))
    return fail_section("operator", diag);
  enum cb_status s = take_text(&image->line, &reader, sections, count, "plan", diag);
  if (!s) s = take_text(&image->json, &reader, sections, count, "json", diag);
  if (!s) s = take_text(&image->source, &reader, sections, count, "source", diag);
  if (!s) s = take_statements(image, diag);
  if (!s) s = take_arrays(image, present, sections, count, diag);
  if (!s) s = take_map(image, sections, count, suspect, diag);
  return s ? s : take_cubin(image, sections, count, suspect, diag);
}
