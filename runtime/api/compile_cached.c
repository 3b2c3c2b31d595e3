// SPDX-License-Identifier: Apache-2.0
/* The cache's part in a compilation: see compile.h. A cache that is off, empty, full or broken costs nothing but
 * time. */
#include "runtime/api/compile.h"

#include "base/clock.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

/* The key has all that an entry depends on. Whether values can be renewed is no part of it: the same entry serves. */
struct cb_cache_subject cb_request_subject(const struct cb_request *request, const char *kind) {
  const struct cb_view *view = &request->view;
  struct cb_cache_subject subject = {
      .kind = kind,
      .options = &request->options,
      .target = &request->session->device->target,
      .rows = view->rows,
      .cols = view->cols,
      .nnz = view->nnz,
      .pattern = request->raw,
      .values = cb_asks_fixed(request) ? &request->values : NULL,
      .extras_count = 1,
      .extras = {{"transpose", request->asked.transpose}},
  };
  return subject; /* without NVRTC's version: a hit needs no NVRTC, and what an older one compiled is no worse */
}

struct cb_cache_section cb_subject_section(struct cb_text *text, const struct cb_cache_subject *subject) {
  cb_cache_fields(text, subject);
  return (struct cb_cache_section){"key", text->failed ? NULL : text->bytes, text->failed ? 0 : (int64_t)text->length};
}

void cb_work_key(struct cb_work *work) {
  const struct cb_cache_subject subject = cb_request_subject(&work->request, "operator");
  work->kept.key = cb_cache_key(&subject);
}

/* ---- out of it */

/* Whether the entry is of the matrix that was asked for. A collision of keys would be found here. */
static enum cb_status check_entry(const struct cb_image *image, const struct cb_request *request,
                                  struct cb_diag *diag) {
  const struct cb_view *view = &request->view;
  const int turned = request->asked.transpose;
  const int64_t rows = turned ? view->cols : view->rows, cols = turned ? view->rows : view->cols;
  if (image->rows == rows && image->cols == cols && image->entries == view->nnz) return CB_OK;
  return cb_fail(diag, CB_ERR_FORMAT, "it is of another matrix");
}

/* Packs what the entry lacks, its data or the map that is needed, by the entry's own recipe. */
static enum cb_status complete(struct cb_work *work) {
  const struct cb_image *image = &work->load.image;
  const int has_values = cb_asks_fixed(&work->request) || cb_image_has_map(image);
  if (cb_image_has_arrays(image) && has_values) return CB_OK;
  cb_log(work->request.context, "cache: the entry keeps no data: packing by recipe '%s'", image->recipe);
  return cb_work_repack(work);
}

static void tell(const struct cb_work *work, enum cb_cache_outcome outcome, const struct cb_diag *diag) {
  char hex[CB_HASH_HEX];
  cb_hash_hex(work->kept.key, hex);
  cb_log(work->request.context, "cache: %s %s%s%s", cb_cache_outcome_name(outcome), hex,
         *diag->message ? ": " : "", diag->message);
}

/* ---- deferred sections: they go from the file through pinned buffers to the GPU, and are checked on the way */

static const void *fetch(const void *user, size_t at, size_t length, void *room) {
  const struct cb_deferred_section *deferred = user;
  return cb_cache_deferred_read(deferred->entry, deferred->section, (int64_t)at, (int64_t)length, room);
}

/* Returns their bytes. */
static int64_t offer_sources(struct cb_kept *kept, struct cb_staging *staging) {
  const struct cb_cache_entry *entry = &kept->entry;
  struct cb_staging_source sources[CB_STAGING_SOURCES];
  int64_t bytes = 0;
  int count = 0;
  for (int i = 0; i < entry->count && count < CB_STAGING_SOURCES; i++) {
    if (!cb_cache_is_deferred(entry, i)) continue;
    kept->deferred[count] = (struct cb_deferred_section){entry, i};
    sources[count] = (struct cb_staging_source){.begin = entry->sections[i].bytes,
                                                .bytes = (size_t)entry->sections[i].length,
                                                .fetch = fetch,
                                                .user = &kept->deferred[count]};
    bytes += entry->sections[i].length;
    count++;
  }
  cb_staging_set_sources(staging, sources, count);
  return bytes;
}

enum cb_status cb_work_finish_verification(struct cb_work *work) {
  struct cb_diag diag = {0};
  if (!work->kept.entry.deferred) return CB_OK;
  cb_staging_set_sources(work->request.session->device->staging, NULL, 0);
  if (cb_cache_deferred_check(&work->kept.entry, &diag) == CB_CACHE_HIT) return CB_OK;
  return cb_fail_lines(work->diag, CB_ERR_FORMAT, diag.message);
}

void cb_work_close(struct cb_work *work) {
  if (work->kept.entry.deferred) cb_staging_set_sources(work->request.session->device->staging, NULL, 0);
  cb_cache_entry_release(&work->kept.entry);
}

static int prepare_staging(struct cb_work *work) {
  const struct cb_device *device = work->request.session->device;
  if (cb_device_enter(device, NULL)) return 0;
  const double start = cb_seconds();
  const int ready = cb_staging_prepare(device->staging);
  cb_device_leave(device);
  const double taken = cb_seconds() - start; /* once in a process, for uploads: no part of the lookup */
  work->info.upload_seconds += taken;
  work->mark += taken;
  return ready;
}

/* Reads and checks all deferred sections now. */
static enum cb_cache_outcome check_deferred(struct cb_kept *kept, struct cb_diag *diag) {
  const enum cb_cache_outcome outcome = cb_cache_deferred_check(&kept->entry, diag);
  if (outcome) cb_cache_entry_release(&kept->entry);
  if (outcome == CB_CACHE_DAMAGED) cb_cache_remove(kept->cache, kept->key, NULL);
  return outcome;
}

static enum cb_cache_outcome get(struct cb_work *work, struct cb_diag *diag) {
  static const char *const tags[] = {"arrays", "map", NULL};
  const struct cb_request *request = &work->request;
  struct cb_kept *kept = &work->kept;
  const int only_device_reads = work->load.device_packs || cb_asks_fixed(request);
  const size_t staged = cb_staging_least(request->session->device->staging);
  const int64_t least = only_device_reads && staged < INT64_MAX ? (int64_t)staged : INT64_MAX;
  return cb_cache_get_deferred(kept->cache, kept->key, tags, least, &kept->entry, diag);
}

/* Makes ready for reading deferred sections, or reads them. CB_ERR_FORMAT: they are damaged. */
static enum cb_status offer_data(struct cb_work *work) {
  const struct cb_request *request = &work->request;
  struct cb_kept *kept = &work->kept;
  if (!kept->entry.deferred) return CB_OK;
  if (!prepare_staging(work))
    return check_deferred(kept, work->diag) == CB_CACHE_HIT ? CB_OK : CB_ERR_FORMAT;
  const int64_t bytes = offer_sources(kept, request->session->device->staging);
  cb_log(request->context, "cache: %.1f MB are checked on their way to the GPU", 1e-6 * (double)bytes);
  return CB_OK;
}

/* The data of the entry that was found: packed on the device, or out of it. */
static enum cb_status use_data(struct cb_work *work) {
  if (!cb_work_use_lists(work)) return CB_OK;
  if (cb_image_has_arrays(&work->load.image) && cb_work_packs_sooner(work) && !cb_work_repack_there(work)) {
    cb_log(work->request.context, "cache: kernels pack the arrays anew, by recipe '%s'", work->load.image.recipe);
    return CB_OK;
  }
  const enum cb_status s = offer_data(work);
  return s ? s : complete(work);
}

/* To the log, if there is one: in what the nearest entry of the same pattern differs from what was looked up. */
static void tell_nearest(const struct cb_work *work) {
  const struct cb_cache_subject subject = cb_request_subject(&work->request, "operator");
  const struct cb_kept *kept = &work->kept;
  struct cb_text fields = {0}, how = {0};
  struct cb_hash nearest;
  char hex[CB_HASH_HEX];
  if (!cb_has_log(work->request.context)) return;
  cb_cache_fields(&fields, &subject);
  if (!fields.failed && cb_cache_nearest(kept->cache, kept->key, fields.bytes, fields.length, &nearest, &how)) {
    cb_hash_hex(nearest, hex);
    cb_log(work->request.context, "cache: the nearest entry of this pattern is %s: %s", hex, cb_text_string(&how));
  }
  cb_text_release(&how);
  cb_text_release(&fields);
}

enum cb_status cb_work_get(struct cb_work *work, int *hit) {
  const struct cb_cache_entry *entry = &work->kept.entry;
  struct cb_image *image = &work->load.image;
  struct cb_diag diag = {0};
  const enum cb_cache_outcome outcome = get(work, &diag);
  *hit = outcome == CB_CACHE_HIT;
  work->info.cache = *hit ? CBGEN_CACHE_HIT : outcome == CB_CACHE_UNUSED ? CBGEN_CACHE_OFF : CBGEN_CACHE_MISS;
  tell(work, outcome, &diag);
  if (outcome == CB_CACHE_ABSENT) tell_nearest(work);
  enum cb_status s = CB_OK;
  if (*hit) s = cb_image_parse(image, entry->sections, entry->count, 0, work->diag);
  if (*hit && !s) s = check_entry(image, &work->request, work->diag);
  work->info.lookup_seconds += cb_work_lap(work);
  if (*hit && !s) s = use_data(work);
  if (s != CB_ERR_FORMAT && s != CB_ERR_WRONG) return s;
  *hit = 0;
  cb_work_forget(work);
  return CB_OK;
}

enum cb_status cb_work_take_turn(struct cb_work *work, int *hit) {
  struct cb_kept *kept = &work->kept;
  const int is_there = cb_cache_turn_begin(kept->cache, kept->key, CB_CACHE_PATIENCE, &kept->turn);
  cb_cache_turn_end(kept->cache, &kept->tuning);
  if (kept->turn.waited > 1e-3)
    cb_log(work->request.context, "cache: waited %.1f ms for whoever makes the same kernel", 1e3 * kept->turn.waited);
  work->info.lookup_seconds += cb_work_lap(work);
  if (!is_there || (*hit && kept->turn.waited < 1e-3)) return CB_OK;
  cb_work_release_new(work);
  cb_work_close(work);
  return cb_work_get(work, hit);
}

void cb_work_forget(struct cb_work *work) {
  cb_log(work->request.context, "cache: the entry is of no use: %s", work->diag->message);
  work->diag->message[0] = 0;
  cb_work_release_new(work);
  cb_cache_remove(work->kept.cache, work->kept.key, NULL);
  cb_work_close(work);
  work->info.cache = CBGEN_CACHE_MISS;
}

/* ---- into it */

void cb_work_put(struct cb_work *work) {
  const struct cb_request *request = &work->request;
  const struct cb_kept *kept = &work->kept;
  const struct cb_image *image = &work->load.image;
  struct cb_image_bytes bytes;
  struct cb_diag diag = {0};
  char kernel[32];
  const struct cb_cache_label label = {request->view.name, request->session->device->target.model, kernel};
  snprintf(kernel, sizeof kernel, "cbgen_%016llx", (unsigned long long)image->id);
  if (work->info.cache == CBGEN_CACHE_OFF) return;
  enum cb_status s = cb_image_sections(&bytes, image, work->packed.keep, &diag);
  if (!s) {
    struct cb_cache_section sections[CB_CACHE_SECTIONS];
    struct cb_text fields = {0};
    const struct cb_cache_subject subject = cb_request_subject(request, "operator");
    memcpy(sections, bytes.sections, (size_t)bytes.count * sizeof *sections);
    unsigned char *lists;
    int count = bytes.count;
    sections[count++] = cb_subject_section(&fields, &subject);
    cb_work_keep_lists(work, sections, &count, &lists);
    const enum cb_cache_outcome outcome = cb_cache_put(kept->cache, kept->key, &label, sections, count, &diag);
    tell(work, outcome, &diag);
    cb_text_release(&fields);
    cb_free(lists);
  }
  cb_image_bytes_release(&bytes);
  cb_cache_turn_end(work->kept.cache, &work->kept.turn);
  work->info.store_seconds += cb_work_lap(work);
}
