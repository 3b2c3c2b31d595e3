// SPDX-License-Identifier: Apache-2.0
/* Deferred sections of a cache's entry: see cache.h. A section is read in windows. The first reader of a window reads
 * all of it, even if only a part is wanted, and its digest is kept here. In the end the digests of all windows must
 * give the section's sum. */
#include "runtime/cache/parts.h"

#include "base/integers.h"
#include "base/memory.h"

#include <string.h>

struct cb_cache_deferred {
  struct cb_cache_file file; /* with the descriptor */
  struct cb_hash *digests[CB_CACHE_SECTIONS];
  unsigned char *seen[CB_CACHE_SECTIONS]; /* windows with a digest */
};

static int64_t windows_of(const struct cb_cache_row *row) {
  return cb_divide_up(row->length, CB_CACHE_WINDOW);
}

static int64_t window_bytes(const struct cb_cache_row *row, int64_t window) {
  const int64_t left = row->length - window * CB_CACHE_WINDOW;
  return left < CB_CACHE_WINDOW ? left : CB_CACHE_WINDOW;
}

/* ---- life */

int cb_cache_deferred_begin(struct cb_cache_entry *entry, struct cb_cache_file *file) {
  struct cb_cache_deferred *deferred = cb_calloc(1, sizeof *deferred);
  int good = deferred != NULL;
  for (uint32_t i = 0; good && i < file->head.count; i++) {
    const size_t windows = (size_t)windows_of(&file->head.rows[i]);
    if (!(file->deferred >> i & 1)) continue;
    deferred->digests[i] = cb_alloc(windows, sizeof *deferred->digests[i]);
    deferred->seen[i] = cb_calloc(windows, 1);
    good = deferred->digests[i] && deferred->seen[i];
  }
  if (deferred) deferred->file.fd = -1;
  if (!good) {
    cb_cache_deferred_end(deferred);
    return 0;
  }
  deferred->file = *file;
  file->fd = -1;
  entry->deferred = deferred;
  return 1;
}

void cb_cache_deferred_end(struct cb_cache_deferred *deferred) {
  if (!deferred) return;
  for (int i = 0; i < CB_CACHE_SECTIONS; i++) {
    cb_free(deferred->digests[i]);
    cb_free(deferred->seen[i]);
  }
  cb_cache_file_close(&deferred->file);
  cb_free(deferred);
}

int cb_cache_is_deferred(const struct cb_cache_entry *entry, int section) {
  return entry->deferred && entry->deferred->file.deferred >> section & 1;
}

/* ---- reading */

/* All of a window, with its digest. As cb_cache_digest_window. */
static int read_window(struct cb_cache_deferred *deferred, int section, int64_t window, void *room) {
  const int error = cb_cache_digest_window(&deferred->digests[section][window], &deferred->file,
                                           &deferred->file.head.rows[section], window, room);
  if (!error) deferred->seen[section][window] = 1;
  return error;
}

const void *cb_cache_deferred_read(const struct cb_cache_entry *entry, int section, int64_t at, int64_t length,
                                   void *room) {
  struct cb_cache_deferred *deferred = entry->deferred;
  const int64_t window = at / CB_CACHE_WINDOW;
  if (!deferred->seen[section][window])
    return read_window(deferred, section, window, room) ? NULL : (const char *)room + at % CB_CACHE_WINDOW;
  const int64_t offset = deferred->file.head.rows[section].offset + at;
  return cb_cache_read_all(&deferred->file, room, (size_t)length, offset) ? NULL : room;
}

/* ---- the end */

static enum cb_cache_outcome check_section(struct cb_cache_deferred *deferred, int section, struct cb_diag *diag) {
  const struct cb_cache_row *row = &deferred->file.head.rows[section];
  int failed = 0;
#pragma omp parallel
  {
    void *room = NULL;
#pragma omp for schedule(dynamic)
    for (int64_t window = 0; window < windows_of(row); window++) {
      if (deferred->seen[section][window]) continue;
      if (!room) room = cb_alloc((size_t)window_bytes(row, 0), 1);
      const int error = read_window(deferred, section, window, room);
      if (error) {
#pragma omp atomic write
        failed = error;
      }
    }
    cb_free(room);
  }
  const enum cb_cache_outcome outcome = cb_cache_judge(failed, deferred->file.head.key, diag);
  if (outcome) return outcome;
  const struct cb_hash sum = cb_cache_fold(row->length, deferred->digests[section]);
  if (memcmp(&sum, &row->sum, sizeof sum)) return cb_cache_wrong_sum(&deferred->file, row, diag);
  return cb_cache_check_gap(&deferred->file, row, diag);
}

enum cb_cache_outcome cb_cache_deferred_check(struct cb_cache_entry *entry, struct cb_diag *diag) {
  struct cb_cache_deferred *deferred = entry->deferred;
  enum cb_cache_outcome outcome = CB_CACHE_HIT;
  if (!deferred) return outcome;
  for (int i = 0; i < entry->count && !outcome; i++)
    if (cb_cache_is_deferred(entry, i)) outcome = check_section(deferred, i, diag);
  if (outcome) return outcome;
  entry->deferred = NULL;
  cb_cache_deferred_end(deferred);
  return outcome;
}
