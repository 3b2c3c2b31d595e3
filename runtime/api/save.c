// SPDX-License-Identifier: Apache-2.0
/* Operators as blocks of bytes that the application owns.
 *
 *   block   = head { section }            each section starts at a multiple of 256, zeros between
 *   head    = magic check format count length { row }        768 bytes, the rest zeros
 *   magic   = "CBGENOPR"                  8 bytes
 *   check   = u128                        of everything behind it: cb_hash_array of bytes
 *   format  = u32                         4; 3 may hold numbers as a caller's locale had them
 *   count   = u32                         of sections
 *   length  = u64                         of the block
 *   row     = tag offset length           32 bytes: char[16], u64, u64
 *
 * Sections are those of an image (runtime/operator/image.h), with the contents of all arrays; "packing": the
 * binary of the kernels that renew values; "rows" and "columns": the order of y and x where it is the operator's own,
 * int32_t each. Numbers are little-endian, as on every machine with a CUDA GPU.
 */
#include "runtime/api/checks.h"

#include "base/clock.h"
#include "base/fork.h"
#include "base/hash.h"
#include "base/memory.h"
#include "runtime/cuda/cubin.h"
#include "runtime/cuda/spills.h"

#include <stdio.h>
#include <string.h>

enum { FORMAT = 5, HEAD = 768, MOST_SECTIONS = 16, ALIGN = CB_CACHE_ALIGN };
static const char magic[8] = "CBGENOPR";

struct row {
  char tag[16];
  uint64_t offset, length;
};

struct head {
  char magic[8];
  struct cb_hash check;
  uint32_t format, count;
  uint64_t length;
  struct row rows[MOST_SECTIONS];
  char zeros[HEAD - 40 - MOST_SECTIONS * sizeof(struct row)];
};
_Static_assert(sizeof(struct head) == HEAD, "the head has no padding");
enum { CHECKED_FROM = offsetof(struct head, format) };

static struct cb_hash check_of(const unsigned char *bytes, size_t length) {
  return cb_hash_array(bytes + CHECKED_FROM, length - CHECKED_FROM, 1);
}

static uint64_t align_up(uint64_t offset) {
  return (offset + ALIGN - 1) / ALIGN * ALIGN;
}

/* ---- saving: what will stand where, then the bytes */

struct plan_of_block {
  struct head head;
  struct cb_text numbers;
  struct cb_image image; /* a copy that says that all arrays have contents; not to be released */
  struct cb_image_array *arrays;
  struct cb_value_map map;       /* of an operator that has none: made for the block */
  struct cb_image_range *ranges; /* likewise; else NULL */
};

static void add_row(struct head *head, const char *tag, int64_t length) {
  struct row *row = &head->rows[head->count++];
  snprintf(row->tag, sizeof row->tag, "%s", tag);
  row->offset = align_up(head->length);
  row->length = (uint64_t)length;
  head->length = row->offset + row->length;
}

/* The copy of the image, and its numbers as text. */
static enum cb_status copy_image(struct plan_of_block *plan, struct cb_diag *diag) {
  struct cb_image *image = &plan->image;
  plan->arrays = cb_calloc((size_t)image->arrays_count + 1, sizeof *plan->arrays);
  if (!plan->arrays) return cb_fail_memory(diag, "saving an operator", 0);
  for (int i = 0; i < image->arrays_count; i++) {
    plan->arrays[i] = image->arrays[i];
    plan->arrays[i].contents = ""; /* will be there */
  }
  image->arrays = plan->arrays;
  cb_image_write_numbers(&plan->numbers, image, 1);
  return plan->numbers.failed ? cb_fail_memory(diag, "saving an operator", plan->numbers.length) : CB_OK;
}

/* The map by which values can be renewed, of an operator whose values kernels renew without one. */
static enum cb_status make_map(struct plan_of_block *plan, const struct cb_device_packing *packing,
                               struct cb_diag *diag) {
  struct cb_image *image = &plan->image;
  const struct cb_order order = {0};
  struct cb_slot_map maps[CB_MOST_PACKED];
  struct cb_value_range ranges[CB_MOST_PACKED];
  plan->ranges = cb_calloc((size_t)image->ranges_count + 1, sizeof *plan->ranges);
  if (!plan->ranges) return cb_fail_memory(diag, "saving an operator", 0);
  enum cb_status s = cb_device_packing_maps(packing, maps, diag);
  if (s) return s;
  s = cb_value_map_build(&plan->map, ranges, maps, image->ranges_count, &order, image->nnz, image->entries, diag);
  for (int r = 0; r < image->ranges_count; r++) {
    plan->ranges[r] = (struct cb_image_range){image->ranges[r].array, ranges[r]};
    cb_slot_map_release(&maps[r]);
  }
  image->ranges = plan->ranges;
  image->map = plan->map;
  return s;
}

static enum cb_status make_map_there(struct plan_of_block *plan, const struct cb_shared *shared, struct cb_diag *diag) {
  const struct cb_device *device = shared->session->device;
  enum cb_status s = cb_device_enter(device, diag);
  if (s) return s;
  s = make_map(plan, cb_updater_packing(shared->updater), diag);
  cb_device_leave(device);
  return s;
}

static enum cb_status plan_block(struct plan_of_block *plan, const cbgen_operator *op, struct cb_diag *diag) {
  struct cb_shared *shared = op->shared;
  const struct cb_image *image = &plan->image;
  enum cb_status s = cb_shared_texts(shared, diag);
  *plan = (struct plan_of_block){.image = *cb_shared_image(shared), .head = {.format = FORMAT, .length = HEAD}};
  memcpy(plan->head.magic, magic, sizeof magic);
  const int has_packing = shared->updater && cb_updater_packing(shared->updater);
  if (s) return s;
  if (cb_checks_record(shared->checks))
    return cb_fail(diag, CB_ERR_UNSUPPORTED,
                   "the kernels of this operator have checks (CBGEN_CHECK=bounds), which serve this process alone: save "
                   "one that was compiled without");
  if (shared->updater) plan->image.map = cb_updater_map(shared->updater);
  if (has_packing) s = make_map_there(plan, shared, diag);
  if (!s) s = copy_image(plan, diag);
  if (s) return s;
  add_row(&plan->head, "operator", (int64_t)plan->numbers.length);
  add_row(&plan->head, "plan", (int64_t)strlen(image->line));
  add_row(&plan->head, "json", (int64_t)strlen(image->json));
  add_row(&plan->head, "source", (int64_t)strlen(image->source));
  add_row(&plan->head, "cubin", (int64_t)image->cubin_bytes);
  add_row(&plan->head, "arrays", cb_image_place(image, -1));
  if (shared->order.rows) add_row(&plan->head, "rows", image->rows * (int64_t)sizeof *shared->order.rows);
  if (shared->order.columns) add_row(&plan->head, "columns", image->cols * (int64_t)sizeof *shared->order.columns);
  if (!shared->updater) return CB_OK;
  if (shared->packer) add_row(&plan->head, "packing", (int64_t)shared->packer->cubin_bytes);
  if (!image->map.groups_count) return CB_OK;
  add_row(&plan->head, "map", cb_value_map_bytes(&image->map));
  if (image->map.lists) add_row(&plan->head, "lists", cb_updater_list_bytes(shared->updater));
  return CB_OK;
}

static unsigned char *section_at(const struct plan_of_block *plan, unsigned char *bytes, const char *tag) {
  for (uint32_t i = 0; i < plan->head.count; i++)
    if (!strcmp(plan->head.rows[i].tag, tag)) return bytes + plan->head.rows[i].offset;
  return NULL;
}

static void write_section(const struct plan_of_block *plan, unsigned char *bytes, const char *tag,
                          const void *from, size_t length) {
  if (length) memcpy(section_at(plan, bytes, tag), from, length);
}

/* What lies on the device, to its places. */
static enum cb_status download(const struct plan_of_block *plan, const cbgen_operator *op,
                               unsigned char *bytes, struct cb_diag *diag) {
  const struct cb_shared *shared = op->shared;
  const struct cb_device *device = shared->session->device;
  unsigned char *arrays = section_at(plan, bytes, "arrays");
  enum cb_status s = cb_device_wait(device, "the operator's work", diag);
  for (int i = 0; i < plan->image.arrays_count && !s; i++)
    s = cb_device_download(device, arrays + cb_image_place(&plan->image, i), cb_operator_array(op->op, i),
                           (size_t)plan->arrays[i].bytes, "arrays", diag);
  if (!s && plan->image.map.groups_count && !plan->ranges)
    s = cb_updater_download(shared->updater, section_at(plan, bytes, "map"), section_at(plan, bytes, "lists"),
                            diag);
  return s;
}

static enum cb_status write_block(struct plan_of_block *plan, const cbgen_operator *op, unsigned char *bytes,
                                  struct cb_diag *diag) {
  const struct cb_shared *shared = op->shared;
  const struct cb_image *image = &plan->image;
  memset(bytes, 0, plan->head.length);
  write_section(plan, bytes, "operator", plan->numbers.bytes, plan->numbers.length);
  write_section(plan, bytes, "plan", image->line, strlen(image->line));
  write_section(plan, bytes, "json", image->json, strlen(image->json));
  write_section(plan, bytes, "source", image->source, strlen(image->source));
  write_section(plan, bytes, "cubin", image->cubin, image->cubin_bytes);
  write_section(plan, bytes, "rows", shared->order.rows,
                shared->order.rows ? (size_t)image->rows * sizeof *shared->order.rows : 0);
  write_section(plan, bytes, "columns", shared->order.columns,
                shared->order.columns ? (size_t)image->cols * sizeof *shared->order.columns : 0);
  if (plan->ranges && plan->map.groups_count)
    write_section(plan, bytes, "map", plan->map.blocks, (size_t)cb_value_map_bytes(&plan->map));
  if (shared->packer)
    write_section(plan, bytes, "packing", shared->packer->cubin, shared->packer->cubin_bytes);
  enum cb_status s = cb_device_enter(shared->session->device, diag);
  if (s) return s;
  s = download(plan, op, bytes, diag);
  cb_device_leave(shared->session->device);
  if (s) return s;
  memcpy(bytes, &plan->head, sizeof plan->head);
  plan->head.check = check_of(bytes, plan->head.length);
  memcpy(bytes + offsetof(struct head, check), &plan->head.check, sizeof plan->head.check);
  return CB_OK;
}

cbgen_status cbgen_operator_save(cbgen_operator *op, void *bytes, size_t capacity, size_t *length) {
  CB_STANDARD_NUMERICS;
  struct plan_of_block plan;
  struct cb_diag diag = {0};
  if (!op) return CBGEN_ERROR_ARGUMENT;
  const int threads = cb_threads_begin(0);
  pthread_mutex_lock(&op->shared->specialising); /* one tier, whole */
  enum cb_status s = plan_block(&plan, op, &diag);
  if (!s && !length) s = cb_fail(&diag, CB_ERR_ARGUMENT, "no place for the length was given");
  if (!s) *length = plan.head.length;
  if (!s && bytes && capacity < plan.head.length)
    s = cb_fail(&diag, CB_ERR_ARGUMENT, "the operator takes %zu bytes, and there is room for %zu",
                (size_t)plan.head.length, capacity);
  if (!s && bytes) s = write_block(&plan, op, bytes, &diag);
  pthread_mutex_unlock(&op->shared->specialising);
  cb_text_release(&plan.numbers);
  cb_value_map_release(&plan.map);
  cb_free(plan.ranges);
  cb_free(plan.arrays);
  cb_threads_end(threads);
  return cb_operator_report(op, s, &diag);
}

/* ---- loading */

/* A block on its way to becoming an operator. */
struct block {
  const unsigned char *bytes;
  unsigned char *copy; /* of bytes that lie where their numbers cannot be read */
  struct cb_cache_section sections[MOST_SECTIONS];
  int count;
  struct cb_image image;
  struct cb_compiled compiled;
  struct cb_vector_order order; /* read from it */
};

/* Whether it is one of those that blocks have, with zeros behind it. */
static int is_known(const char tag[16]) {
  static const char known[][16] = {"operator", "plan", "json",    "source", "cubin", "arrays",
                                   "rows",     "columns", "packing", "map",    "lists"};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (!memcmp(known[i], tag, sizeof known[i])) return 1;
  return 0;
}

static enum cb_status read_rows(struct block *block, const struct head *head, struct cb_diag *diag) {
  uint64_t end = HEAD;
  block->count = (int)head->count;
  for (int i = 0; i < block->count; i++) {
    const struct row *row = &head->rows[i];
    if (!is_known(row->tag) || row->offset != align_up(end) ||
        row->offset > head->length || row->length > head->length - row->offset)
      return cb_fail(diag, CB_ERR_FORMAT, "the block's list of contents makes no sense");
    memcpy(block->sections[i].tag, row->tag, sizeof row->tag);
    block->sections[i].bytes = block->bytes + row->offset;
    block->sections[i].length = (int64_t)row->length;
    end = row->offset + row->length;
  }
  const unsigned char *rest = (const unsigned char *)&head->rows[block->count];
  const unsigned char *const after = (const unsigned char *)(head + 1);
  while (rest < after)
    if (*rest++) return cb_fail(diag, CB_ERR_FORMAT, "the block's list of contents is followed by something");
  return end == head->length ? CB_OK
                             : cb_fail(diag, CB_ERR_FORMAT, "the block does not end where its contents do");
}

static enum cb_status open_block(struct block *block, const void *bytes, size_t length,
                                 struct cb_diag *diag) {
  struct head head;
  if (!bytes) return cb_fail(diag, CB_ERR_ARGUMENT, "no block was given");
  if (length < sizeof head || memcmp(bytes, magic, sizeof magic))
    return cb_fail(diag, CB_ERR_FORMAT, "this is no saved operator");
  memcpy(&head, bytes, sizeof head);
  if (head.format != FORMAT)
    return cb_fail(diag, CB_ERR_FORMAT, "the operator was saved in format %u, and this version reads %d: save it anew",
                   head.format, FORMAT);
  if (head.length != length || head.count > MOST_SECTIONS)
    return cb_fail(diag, CB_ERR_FORMAT,
                   "the saved operator has %llu bytes, and %zu were given: it is cut or damaged",
                   (unsigned long long)head.length, length);
  const struct cb_hash check = check_of(bytes, length);
  if (check.high != head.check.high || check.low != head.check.low)
    return cb_fail(diag, CB_ERR_FORMAT, "the saved operator is damaged: its checksum is another");
  block->bytes = bytes;
  if ((uintptr_t)bytes % sizeof(uint64_t)) {
    block->copy = cb_alloc(length, 1);
    if (!block->copy) return cb_fail_memory(diag, "the saved operator", length);
    memcpy(block->copy, bytes, length);
    block->bytes = block->copy;
  }
  return read_rows(block, &head, diag);
}

/* Every entry of the caller's is a nonzero's only one, or stands in its list. */
static enum cb_status check_entries(const struct cb_image *image, struct cb_diag *diag) {
  const struct cb_value_map *map = &image->map;
  const int64_t listed = map->lists ? (int64_t)map->list_starts[map->lists] : 0;
  if (image->values != CBGEN_VALUES_MUTABLE || image->entries == image->nnz - map->lists + listed) return CB_OK;
  return cb_fail(diag, CB_ERR_FORMAT, "the saved operator's value map is for another number of entries");
}

/* Everything that an operator needs must be there. */
static enum cb_status check_complete(const struct cb_image *image, struct cb_diag *diag) {
  for (int i = 0; i < image->arrays_count; i++)
    if (!image->arrays[i].contents) return cb_fail(diag, CB_ERR_FORMAT, "the saved operator lacks an array");
  if (image->values == CBGEN_VALUES_MUTABLE && !cb_image_has_map(image))
    return cb_fail(diag, CB_ERR_FORMAT, "the saved operator lacks its value map");
  if (image->values != CBGEN_VALUES_MUTABLE && image->map.groups_count)
    return cb_fail(diag, CB_ERR_FORMAT, "the saved operator has a value map and no values that could be renewed");
  return check_entries(image, diag);
}

/* For another architecture than it was compiled for: its text again. */
static enum cb_status compile_for(struct block *block, struct cb_session *session, cbgen_info *info,
                                  struct cb_diag *diag) {
  const struct cb_nvrtc *nvrtc;
  const struct cb_target *target = &session->device->target;
  const struct cb_nvrtc_options options = {.arch = target->arch};
  enum cb_status s = cb_session_nvrtc(session, &nvrtc, diag);
  if (!s && block->image.tier == CB_TIER_FAMILY) s = cb_image_become_special(&block->image, diag);
  if (!s)
    s = cb_compile_fitting(&block->compiled, nvrtc, block->image.source, "a saved operator", &options, diag);
  if (s) return s;
  info->compile_seconds = block->compiled.seconds;
  block->image.cubin = block->compiled.cubin;
  block->image.cubin_bytes = block->compiled.cubin_bytes;
  memcpy(block->image.target.arch, target->arch, sizeof target->arch);
  return CB_OK;
}

static enum cb_status find_packer(const struct cb_packer **packer, struct block *block,
                                  struct cb_session *session, struct cb_cache *cache, int same_arch,
                                  struct cb_diag *diag) {
  const struct cb_image *image = &block->image;
  if (image->values != CBGEN_VALUES_MUTABLE) return CB_OK;
  for (int i = 0; i < block->count && same_arch; i++)
    if (!strcmp(block->sections[i].tag, "packing")) {
      struct cb_cubin_stats stats;
      const struct cb_cache_section *section = &block->sections[i];
      const enum cb_status s = cb_cubin_stats(&stats, section->bytes, (size_t)section->length, diag);
      if (s) return s;
      cb_cubin_stats_release(&stats);
      return cb_session_packer_from(session, image->matrix_type, section->bytes, (size_t)section->length,
                                    packer, diag);
    }
  return cb_session_packer(session, cache, image->matrix_type, packer, diag);
}

/* The order of the section, if it is there: each number from 0 to count - 1 once. */
static enum cb_status read_order(int32_t **order, const struct block *block, const char *tag, int64_t count,
                                 struct cb_diag *diag) {
  const struct cb_cache_section *section = NULL;
  *order = NULL;
  for (int i = 0; i < block->count; i++)
    if (!strcmp(block->sections[i].tag, tag)) section = &block->sections[i];
  if (!section) return CB_OK;
  if (section->length != count * (int64_t)sizeof **order)
    return cb_fail(diag, CB_ERR_FORMAT, "the saved operator's order of %s is too short or too long", tag);
  *order = cb_alloc((size_t)count, sizeof **order);
  uint8_t *seen = cb_calloc((size_t)count, 1);
  int is_order = *order && seen;
  if (is_order) memcpy(*order, section->bytes, (size_t)section->length);
  for (int64_t i = 0; i < count && is_order; i++) {
    const int32_t number = (*order)[i];
    is_order = number >= 0 && number < count && !seen[number];
    if (is_order) seen[number] = 1;
  }
  const int has_room = *order && seen;
  cb_free(seen);
  if (is_order) return CB_OK;
  cb_free(*order);
  *order = NULL;
  return has_room ? cb_fail(diag, CB_ERR_FORMAT, "the saved operator's order of %s is none", tag)
                  : cb_fail_memory(diag, "an operator's order", (uint64_t)count * 5);
}

static enum cb_status load_block(struct block *block, cbgen_context *context, cbgen_info *info,
                                 cbgen_operator **op) {
  struct cb_diag *diag = &context->diag;
  struct cb_session *session;
  struct cb_loading loading = {.image = &block->image, .info = info};
  enum cb_status s = cb_image_parse(&block->image, block->sections, block->count, 1, diag);
  if (!s) s = cb_image_check_plan(&block->image, diag);
  if (!s) s = check_complete(&block->image, diag);
  if (!s) s = read_order(&block->order.rows, block, "rows", block->image.rows, diag);
  if (!s) s = read_order(&block->order.columns, block, "columns", block->image.cols, diag);
  if (!s) s = cb_context_session(context, &session);
  if (s) return s;
  loading.session = session;
  loading.keep = block->image.values == CBGEN_VALUES_MUTABLE;
  const int same_arch = !strcmp(block->image.target.arch, session->device->target.arch);
  if (!same_arch) s = compile_for(block, session, info, diag);
  if (!s) s = find_packer(&loading.packer, block, session, cb_context_cache(context), same_arch, diag);
  if (!s) s = cb_operator_make(op, &loading, diag);
  if (s) return s;
  (*op)->shared->order = block->order;
  block->order = (struct cb_vector_order){0};
  return CB_OK;
}

cbgen_status cbgen_operator_load(cbgen_context *context, const void *bytes, size_t length,
                                 cbgen_operator **op) {
  CB_STANDARD_NUMERICS;
  const double start = cb_seconds();
  cbgen_info info = {.struct_size = sizeof info};
  struct block block = {0};
  if (op) *op = NULL;
  if (!context) return CBGEN_ERROR_ARGUMENT;
  if (!op)
    return (cbgen_status)cb_fail(&context->diag, CB_ERR_ARGUMENT, "no place for the operator was given");
  const int threads = cb_threads_begin(context->threads);
  enum cb_status s = open_block(&block, bytes, length, &context->diag);
  if (!s && context->session) cb_memory_mark(context->session->device->memory);
  info.lookup_seconds = cb_seconds() - start;
  if (!s) s = load_block(&block, context, &info, op);
  if (!s) (*op)->shared->info.total_seconds = cb_seconds() - start;
  if (!s) (*op)->shared->info.peak_bytes = cb_memory_peak((*op)->shared->session->device->memory);
  cb_image_release(&block.image);
  cb_compiled_release(&block.compiled);
  cb_free(block.order.rows);
  cb_free(block.order.columns);
  cb_free(block.copy);
  cb_threads_end(threads);
  return (cbgen_status)s;
}
