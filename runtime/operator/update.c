// SPDX-License-Identifier: Apache-2.0
/* Values renewed on the device: see update.h. */
#include "runtime/operator/update.h"

#include "base/memory.h"

#include <pthread.h>
#include <string.h>

struct range {
  cb_device_ptr slots;
  int is_zeroed; /* all bytes are slots, and those of absent ones zeros: they may be written as well */
  struct cb_value_range map;
};

struct cb_updater {
  const struct cb_device *device;
  const struct cb_packer *packer;
  struct cb_device_packing *packing; /* instead of a map; or NULL */
  struct cb_value_map map; /* its shape; the pointers are NULL */
  int64_t list_bytes;
  int64_t bytes;        /* without the staging buffer */
  int is_copy;          /* blocks and lists are another's */
  cb_device_ptr blocks; /* of the map, and its body behind them */
  cb_device_ptr lists;  /* starts, then entries; 0 without */
  cb_device_ptr lost;   /* two uint32_t: see packer.h, and one for cb_device_separate */
  int ranges_count;
  struct range *ranges;
  pthread_mutex_t lock; /* of the next two */
  cb_device_ptr staging;
  size_t staging_bytes;
};

/* ---- making one */

static enum cb_status make_lost(struct cb_updater *updater, struct cb_diag *diag) {
  const size_t bytes = 2 * sizeof(uint32_t);
  const enum cb_status s = cb_device_alloc(updater->device, &updater->lost, bytes, "the value map", diag);
  updater->bytes += (int64_t)bytes;
  return s ? s : cb_device_fill(updater->device, updater->lost, 0, bytes, diag);
}

static enum cb_status upload_map(struct cb_updater *updater, const struct cb_value_map *map,
                                 struct cb_diag *diag) {
  const struct cb_device *device = updater->device;
  const size_t bytes = (size_t)cb_value_map_bytes(map), lists = (size_t)updater->list_bytes,
               starts = (size_t)(map->lists + 1) * sizeof *map->list_starts;
  enum cb_status s = cb_device_alloc(device, &updater->blocks, bytes, "the value map", diag);
  if (!s) s = cb_device_upload(device, updater->blocks, map->blocks, bytes, "the value map", diag);
  if (!s && lists) s = cb_device_alloc(device, &updater->lists, lists, "lists of duplicates", diag);
  if (!s && lists)
    s = cb_device_upload(device, updater->lists, map->list_starts, starts, "lists of duplicates", diag);
  if (!s && lists)
    s = cb_device_upload(device, updater->lists + starts, map->list_entries, lists - starts,
                         "lists of duplicates", diag);
  updater->bytes = (int64_t)(bytes + lists);
  return s ? s : make_lost(updater, diag);
}

static enum cb_status note_ranges(struct cb_updater *updater, const struct cb_operator *op,
                                  const struct cb_image *image, struct cb_diag *diag) {
  updater->ranges = cb_calloc((size_t)image->ranges_count + 1, sizeof *updater->ranges);
  if (!updater->ranges)
    return cb_fail_memory(diag, "ranges of slots", (unsigned long long)image->ranges_count);
  updater->ranges_count = image->ranges_count;
  for (int i = 0; i < image->ranges_count; i++)
    updater->ranges[i] = (struct range){.slots = cb_operator_array(op, image->ranges[i].array),
                                        .is_zeroed = image->arrays[image->ranges[i].array].values &&
                                                     !cb_semiring_pads_with_nan(image->semiring),
                                        .map = image->ranges[i].map};
  return CB_OK;
}

/* Without ranges; `values`: that the caller brings. */
static enum cb_status new_updater(struct cb_updater **out, const struct cb_packer *packer,
                                  const struct cb_value_map *map, int64_t values, struct cb_diag *diag) {
  struct cb_updater *updater = *out = cb_calloc(1, sizeof *updater);
  if (!updater) return cb_fail_memory(diag, "an updater", sizeof *updater);
  updater->device = packer->device;
  updater->packer = packer;
  updater->list_bytes = cb_value_map_list_bytes(map);
  updater->map = (struct cb_value_map){.groups_count = map->groups_count,
                                       .blocks_count = map->blocks_count,
                                       .body_bytes = map->body_bytes,
                                       .values = values,
                                       .lists = map->lists};
  pthread_mutex_init(&updater->lock, NULL);
  return CB_OK;
}

enum cb_status cb_updater_create(struct cb_updater **out, const struct cb_packer *packer,
                                 const struct cb_operator *op, const struct cb_image *image,
                                 struct cb_diag *diag) {
  struct cb_updater *updater;
  *out = NULL;
  enum cb_status s = new_updater(&updater, packer, &image->map, image->entries, diag);
  if (!s) s = note_ranges(updater, op, image, diag);
  if (!s) s = upload_map(updater, &image->map, diag);
  if (s)
    cb_updater_free(updater);
  else
    *out = updater;
  return s;
}

enum cb_status cb_updater_create_for(struct cb_updater **out, const struct cb_packer *packer, cb_device_ptr slots,
                                     const struct cb_value_map *map, const struct cb_value_range *range,
                                     struct cb_diag *diag) {
  struct cb_updater *updater;
  *out = NULL;
  enum cb_status s = new_updater(&updater, packer, map, map->values, diag);
  if (s) return s;
  updater->ranges = cb_calloc(1, sizeof *updater->ranges);
  if (!updater->ranges) s = cb_fail_memory(diag, "ranges of slots", 1);
  if (!s) {
    updater->ranges_count = 1;
    updater->ranges[0] = (struct range){.slots = slots, .is_zeroed = 1, .map = *range};
    s = upload_map(updater, map, diag);
  }
  if (s)
    cb_updater_free(updater);
  else
    *out = updater;
  return s;
}

enum cb_status cb_updater_create_packing(struct cb_updater **out, struct cb_device_packing *packing,
                                         const struct cb_device *device, int64_t entries, struct cb_diag *diag) {
  struct cb_updater *updater = *out = cb_calloc(1, sizeof *updater);
  if (!updater) {
    cb_device_packing_free(packing);
    return cb_fail_memory(diag, "an updater", sizeof *updater);
  }
  updater->device = device;
  updater->packing = packing;
  updater->map.values = entries;
  updater->bytes = cb_device_packing_bytes(packing);
  pthread_mutex_init(&updater->lock, NULL);
  return CB_OK;
}

static enum cb_status copy_parts(struct cb_updater *copy, const struct cb_updater *updater,
                                 const struct cb_operator *op, const struct cb_image *image, struct cb_diag *diag) {
  if (updater->packing) {
    const enum cb_status s = cb_device_packing_copy(&copy->packing, updater->packing, cb_operator_arrays(op), diag);
    if (!s) copy->bytes = cb_device_packing_bytes(copy->packing);
    return s;
  }
  const enum cb_status s = note_ranges(copy, op, image, diag);
  return s ? s : make_lost(copy, diag);
}

enum cb_status cb_updater_copy(struct cb_updater **out, const struct cb_updater *updater, const struct cb_operator *op,
                               const struct cb_image *image, struct cb_diag *diag) {
  struct cb_updater *copy = cb_calloc(1, sizeof *copy);
  *out = NULL;
  if (!copy) return cb_fail_memory(diag, "an updater", sizeof *copy);
  copy->device = updater->device;
  copy->packer = updater->packer;
  copy->map = updater->map;
  copy->list_bytes = updater->list_bytes;
  copy->blocks = updater->blocks;
  copy->lists = updater->lists;
  copy->is_copy = 1;
  pthread_mutex_init(&copy->lock, NULL);
  const enum cb_status s = copy_parts(copy, updater, op, image, diag);
  if (s) cb_updater_free(copy);
  else *out = copy;
  return s;
}

void cb_updater_free(struct cb_updater *updater) {
  if (!updater) return;
  cb_device_packing_free(updater->packing);
  if (!updater->is_copy) {
    cb_device_free(updater->device, updater->blocks);
    cb_device_free(updater->device, updater->lists);
  }
  cb_device_free(updater->device, updater->lost);
  cb_device_free(updater->device, updater->staging);
  cb_free(updater->ranges);
  pthread_mutex_destroy(&updater->lock);
  cb_free(updater);
}

void cb_updater_forget(struct cb_updater *updater) {
  updater->blocks = updater->lists = updater->lost = updater->staging = 0;
  cb_device_packing_forget(updater->packing);
  updater->packing = NULL;
  cb_updater_free(updater);
}

int64_t cb_updater_bytes(struct cb_updater *updater) {
  pthread_mutex_lock(&updater->lock);
  const int64_t bytes = updater->bytes + (int64_t)updater->staging_bytes;
  pthread_mutex_unlock(&updater->lock);
  return bytes;
}

/* ---- running it */

static enum cb_status run_packer(struct cb_updater *updater, enum cb_type given, cb_device_ptr values,
                                 struct CUstream_st *stream, struct cb_diag *diag) {
  const struct cb_value_map *map = &updater->map;
  enum cb_status s = CB_OK;
  for (int i = 0; i < updater->ranges_count && !s; i++) {
    const struct range *range = &updater->ranges[i];
    const struct cb_packing packing = {
        .given = given,
        .values = values,
        .list_starts = updater->lists,
        .list_entries = updater->lists + (cb_device_ptr)(map->lists + 1) * sizeof *map->list_starts,
        .blocks = updater->blocks + (cb_device_ptr)range->map.first_block * sizeof *map->blocks,
        .body = updater->blocks + (cb_device_ptr)cb_value_map_body_at(map),
        .slots = range->slots,
        .values_count = map->values,
        .slots_count = range->map.slots,
        .blocks_count = range->map.blocks,
        .first_group = range->map.first_group,
        .zeroed = range->is_zeroed ? range->map.slots : 0,
        .lost = updater->lost,
    };
    s = cb_packer_launch(updater->packer, &packing, stream, diag);
  }
  return s;
}

/* Kernels of products may read values before they wait for the kernel before: the assembler moves these loads. So no
 * kernel may overlap the new values' arrival, not even the second one behind it. */
enum cb_status cb_updater_run(struct cb_updater *updater, enum cb_type given, cb_device_ptr values,
                              struct CUstream_st *stream, struct cb_diag *diag) {
  enum cb_status s;
  if (updater->packing) {
    s = cb_device_packing_values(updater->packing, given, values, stream, diag);
    return s ? s : cb_device_packing_separate(updater->packing, stream, diag);
  }
  s = run_packer(updater, given, values, stream, diag);
  return s ? s : cb_device_separate(updater->device, updater->lost + sizeof(uint32_t), stream, diag);
}

enum cb_status cb_updater_lost(const struct cb_updater *updater, int *lost, struct cb_diag *diag) {
  uint32_t threads = 0;
  if (updater->packing) return cb_device_packing_lost(updater->packing, lost, diag);
  const enum cb_status s =
      cb_device_download(updater->device, &threads, updater->lost, sizeof threads, "the value map", diag);
  *lost = threads > 0;
  return s;
}

enum cb_status cb_updater_take_lost(const struct cb_updater *updater, struct CUstream_st *stream, int *lost,
                                    struct cb_diag *diag) {
  const struct cb_driver *driver = updater->device->driver;
  enum cb_status s = cb_driver_check(driver, driver->call.stream_synchronize(stream), diag, "wait for new values");
  *lost = 0;
  if (!s) s = cb_updater_lost(updater, lost, diag);
  if (!s && *lost && updater->lost) s = cb_device_fill(updater->device, updater->lost, 0, sizeof(uint32_t), diag);
  return s;
}

/* Room for the widest type that slots take, so that one buffer serves all. What was packed on the device, without
 * a packer, is real. */
static enum cb_status need_staging(struct cb_updater *updater, struct CUstream_st *stream,
                                   struct cb_diag *diag) {
  const struct cb_driver *driver = updater->device->driver;
  const int is_complex = updater->packer && cb_type_is_complex(updater->packer->stored);
  const enum cb_type widest = is_complex ? CB_C128 : CB_F64;
  const size_t bytes = (size_t)updater->map.values * cb_type_size(widest);
  unsigned capturing = 0;
  if (updater->staging) return CB_OK;
  enum cb_status s = cb_driver_check(driver, driver->call.stream_capturing(stream, &capturing), diag,
                                     "ask whether a stream is being captured");
  if (!s && capturing != CB_CU_CAPTURE_NONE)
    return cb_fail(
        diag, CB_ERR_ARGUMENT,
        "the first renewal from host memory allocates a buffer, which cannot be captured: renew once "
        "before the capture, or give values in device memory");
  if (!s) s = cb_device_alloc(updater->device, &updater->staging, bytes, "values to be renewed", diag);
  if (!s) updater->staging_bytes = bytes;
  return s;
}

enum cb_status cb_updater_run_from_host(struct cb_updater *updater, enum cb_type given, const void *values,
                                        struct CUstream_st *stream, struct cb_diag *diag) {
  const struct cb_driver *driver = updater->device->driver;
  const size_t bytes = (size_t)updater->map.values * cb_type_size(given);
  pthread_mutex_lock(&updater->lock);
  enum cb_status s = need_staging(updater, stream, diag);
  pthread_mutex_unlock(&updater->lock);
  if (!s && bytes)
    s = cb_driver_check(driver, driver->call.copy_to_device_async(updater->staging, values, bytes, stream),
                        diag, "copy values to GPU %d", updater->device->ordinal);
  return s ? s : cb_updater_run(updater, given, updater->staging, stream, diag);
}

cb_device_ptr cb_updater_staging(struct cb_updater *updater) {
  pthread_mutex_lock(&updater->lock);
  const cb_device_ptr staging = updater->staging;
  pthread_mutex_unlock(&updater->lock);
  return staging;
}

/* ---- saving */

const struct cb_device_packing *cb_updater_packing(const struct cb_updater *updater) { return updater->packing; }

struct cb_value_map cb_updater_map(const struct cb_updater *updater) {
  return updater->map;
}

int64_t cb_updater_list_bytes(const struct cb_updater *updater) {
  return updater->list_bytes;
}

enum cb_status cb_updater_download(const struct cb_updater *updater, void *blocks, void *lists, struct cb_diag *diag) {
  const size_t bytes = (size_t)cb_value_map_bytes(&updater->map);
  enum cb_status s = cb_device_download(updater->device, blocks, updater->blocks, bytes, "the value map", diag);
  if (!s && updater->list_bytes)
    s = cb_device_download(updater->device, lists, updater->lists, (size_t)updater->list_bytes,
                           "lists of duplicates", diag);
  return s;
}
