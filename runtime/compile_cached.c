// SPDX-License-Identifier: Apache-2.0
/* The cache's part in a compilation: see compile.h. A cache that is off, empty, full or broken costs time
 * only: all of this can but fail to help. */
#include "runtime/compile.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>

/* What shapes an entry: not whether values can be renewed, for which the same entry serves. */
struct cb_hash cb_work_key_of(const struct cb_work *work, const char *kind) {
  const struct cb_view *view = &work->view;
  struct cb_cache_subject subject = {
      .kind = kind,
      .options = &work->options,
      .target = &work->session->device->target,
      .rows = view->rows,
      .cols = view->cols,
      .nnz = view->nnz,
      .pattern = work->raw,
      .values = work->request.values == CBGEN_VALUES_FIXED ? &work->values : NULL,
  };
  cb_nvrtc_version(work->nvrtc, &subject.nvrtc_major, &subject.nvrtc_minor);
  struct cb_hash key = cb_cache_key(&subject);
  cb_hash_number(&key, "transpose", (uint64_t)work->request.transpose);
  return key;
}

void cb_work_key(struct cb_work *work) {
  work->key = cb_work_key_of(work, "operator");
}

/* ---- out of it */

/* What an entry says must be what was asked for: a key's collision, if nothing else, would be found here. */
static enum cb_status check_entry(const struct cb_work *work, struct cb_diag *diag) {
  const struct cb_image *image = &work->image;
  const int turned = work->request.transpose;
  const int64_t rows = turned ? work->view.cols : work->view.rows,
                cols = turned ? work->view.rows : work->view.cols;
  if (image->rows == rows && image->cols == cols && image->entries == work->view.nnz) return CB_OK;
  return cb_fail(diag, CB_ERR_FORMAT, "it is of another matrix");
}

/* An entry without its data, or without the map that is needed, gets them by its own recipe. */
static enum cb_status complete(struct cb_work *work) {
  const int has_values = work->request.values == CBGEN_VALUES_FIXED || cb_image_has_map(&work->image);
  if (cb_image_has_arrays(&work->image) && has_values) return CB_OK;
  cb_log(work->context, "cache: the entry keeps no data: packing by recipe '%s'", work->image.recipe);
  return cb_work_repack(work);
}

static void tell(const struct cb_work *work, enum cb_cache_outcome outcome, const struct cb_diag *diag) {
  char hex[CB_HASH_HEX];
  cb_hash_hex(work->key, hex);
  cb_log(work->context, "cache: %s %s%s%s", cb_cache_outcome_name(outcome), hex, *diag->message ? ": " : "",
         diag->message);
}

/* ---- long sections, which go from the file to the GPU by way of pinned buffers, and are checked on the way */

static const void *fetch(const void *user, size_t at, size_t length, void *room) {
  const struct cb_late_section *late = user;
  return cb_cache_late_read(late->entry, late->section, (int64_t)at, (int64_t)length, room);
}

static void offer_sources(struct cb_work *work) {
  struct cb_staging_source sources[CB_STAGING_SOURCES];
  int64_t bytes = 0;
  int count = 0;
  for (int i = 0; i < work->entry.count && count < CB_STAGING_SOURCES; i++) {
    if (!cb_cache_is_late(&work->entry, i)) continue;
    work->late[count] = (struct cb_late_section){&work->entry, i};
    sources[count] = (struct cb_staging_source){.begin = work->entry.sections[i].bytes,
                                                .bytes = (size_t)work->entry.sections[i].length,
                                                .fetch = fetch,
                                                .user = &work->late[count]};
    bytes += work->entry.sections[i].length;
    count++;
  }
  cb_log(work->context, "cache: %.1f MB are checked on their way to the GPU", 1e-6 * (double)bytes);
  cb_staging_set_sources(work->session->device->staging, sources, count);
}

enum cb_status cb_work_settle(struct cb_work *work) {
  struct cb_diag diag = {0};
  if (!work->entry.late) return CB_OK;
  cb_staging_set_sources(work->session->device->staging, NULL, 0);
  if (cb_cache_late_check(&work->entry, &diag) == CB_CACHE_HIT) return CB_OK;
  return cb_fail_lines(work->diag, CB_ERR_FORMAT, diag.message);
}

void cb_work_close(struct cb_work *work) {
  if (work->entry.late) cb_staging_set_sources(work->session->device->staging, NULL, 0);
  cb_cache_entry_release(&work->entry);
}

static enum cb_cache_outcome get(struct cb_work *work, struct cb_diag *diag) {
  static const char *const tags[] = {"arrays", "map", NULL};
  const struct cb_device *device = work->session->device;
  const int only_device_reads = work->device_packs || work->request.values == CBGEN_VALUES_FIXED;
  const size_t staged = cb_staging_least(device->staging);
  const int64_t least = only_device_reads && staged < INT64_MAX ? (int64_t)staged : INT64_MAX;
  enum cb_cache_outcome outcome = cb_cache_get_late(work->cache, work->key, tags, least, &work->entry, diag);
  if (outcome || !work->entry.late) return outcome;
  int ready = !cb_device_enter(device, NULL);
  if (ready) {
    const double start = cb_seconds();
    ready = cb_staging_prepare(device->staging);
    cb_device_leave(device);
    const double taken = cb_seconds() - start; /* once in a process, for uploads: no part of the lookup */
    work->info.upload_seconds += taken;
    work->mark += taken;
  }
  if (ready) {
    offer_sources(work);
    return outcome;
  }
  outcome = cb_cache_late_check(&work->entry, diag);
  if (outcome) {
    cb_cache_entry_release(&work->entry);
    if (outcome == CB_CACHE_DAMAGED) cb_cache_remove(work->cache, work->key, NULL);
  }
  return outcome;
}

enum cb_status cb_work_get(struct cb_work *work, int *hit) {
  struct cb_diag diag = {0};
  const enum cb_cache_outcome outcome = get(work, &diag);
  *hit = outcome == CB_CACHE_HIT;
  work->info.cache = *hit ? CBGEN_CACHE_HIT : outcome == CB_CACHE_UNUSED ? CBGEN_CACHE_OFF : CBGEN_CACHE_MISS;
  tell(work, outcome, &diag);
  enum cb_status s = CB_OK;
  if (*hit) s = cb_image_parse(&work->image, work->entry.sections, work->entry.count, 0, work->diag);
  if (*hit && !s) s = check_entry(work, work->diag);
  work->info.lookup_seconds += cb_work_lap(work);
  if (*hit && !s) s = complete(work);
  if (s != CB_ERR_FORMAT && s != CB_ERR_WRONG) return s;
  *hit = 0;
  cb_work_forget(work);
  return CB_OK;
}

void cb_work_forget(struct cb_work *work) {
  cb_log(work->context, "cache: the entry is of no use: %s", work->diag->message);
  work->diag->message[0] = 0;
  cb_work_release_new(work);
  cb_cache_remove(work->cache, work->key, NULL);
  cb_work_close(work);
  work->info.cache = CBGEN_CACHE_MISS;
}

/* ---- into it */

void cb_work_put(struct cb_work *work) {
  struct cb_image_bytes bytes;
  struct cb_diag diag = {0};
  char kernel[32];
  const struct cb_cache_label label = {work->view.name, work->session->device->target.model, kernel};
  snprintf(kernel, sizeof kernel, "cbgen_%016llx", (unsigned long long)work->image.id);
  if (work->info.cache == CBGEN_CACHE_OFF) return;
  enum cb_status s = cb_image_sections(&bytes, &work->image, work->keep, &diag);
  if (!s) {
    const enum cb_cache_outcome outcome =
        cb_cache_put(work->cache, work->key, &label, bytes.sections, bytes.count, &diag);
    tell(work, outcome, &diag);
  }
  cb_image_bytes_release(&bytes);
  work->info.store_seconds += cb_work_lap(work);
}
