// SPDX-License-Identifier: Apache-2.0
/* Sections of a cache's entry that are read while they are used: see cache.h. Window by window, whoever wants some of
 * one reads all of it and leaves its digest here; in the end the digests of all windows must give the section's sum. */
#include "runtime/cache_parts.h"

#include "base/integers.h"
#include "base/memory.h"

#include <string.h>

struct cb_cache_late {
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

int cb_cache_late_begin(struct cb_cache_entry *entry, struct cb_cache_file *file) {
  struct cb_cache_late *late = cb_calloc(1, sizeof *late);
  int good = late != NULL;
  for (uint32_t i = 0; good && i < file->head.count; i++) {
    const size_t windows = (size_t)windows_of(&file->head.rows[i]);
    if (!(file->late >> i & 1)) continue;
    late->digests[i] = cb_alloc(windows, sizeof *late->digests[i]);
    late->seen[i] = cb_calloc(windows, 1);
    good = late->digests[i] && late->seen[i];
  }
  if (late) late->file.fd = -1;
  if (!good) {
    cb_cache_late_end(late);
    return 0;
  }
  late->file = *file;
  file->fd = -1;
  entry->late = late;
  return 1;
}

void cb_cache_late_end(struct cb_cache_late *late) {
  if (!late) return;
  for (int i = 0; i < CB_CACHE_SECTIONS; i++) {
    cb_free(late->digests[i]);
    cb_free(late->seen[i]);
  }
  cb_cache_file_close(&late->file);
  cb_free(late);
}

int cb_cache_is_late(const struct cb_cache_entry *entry, int section) {
  return entry->late && entry->late->file.late >> section & 1;
}

/* ---- reading */

/* All of a window, with its digest. As cb_cache_digest_window. */
static int read_window(struct cb_cache_late *late, int section, int64_t window, void *room) {
  const int error = cb_cache_digest_window(&late->digests[section][window], &late->file,
                                           &late->file.head.rows[section], window, room);
  if (!error) late->seen[section][window] = 1;
  return error;
}

const void *cb_cache_late_read(const struct cb_cache_entry *entry, int section, int64_t at, int64_t length,
                               void *room) {
  struct cb_cache_late *late = entry->late;
  const int64_t window = at / CB_CACHE_WINDOW;
  if (!late->seen[section][window])
    return read_window(late, section, window, room) ? NULL : (const char *)room + at % CB_CACHE_WINDOW;
  const int64_t offset = late->file.head.rows[section].offset + at;
  return cb_cache_read_all(&late->file, room, (size_t)length, offset) ? NULL : room;
}

/* ---- the end */

static enum cb_cache_outcome check_section(struct cb_cache_late *late, int section, struct cb_diag *diag) {
  const struct cb_cache_row *row = &late->file.head.rows[section];
  int failed = 0;
#pragma omp parallel
  {
    void *room = NULL;
#pragma omp for schedule(dynamic)
    for (int64_t window = 0; window < windows_of(row); window++) {
      if (late->seen[section][window]) continue;
      if (!room) room = cb_alloc((size_t)window_bytes(row, 0), 1);
      const int error = read_window(late, section, window, room);
      if (error) {
#pragma omp atomic write
        failed = error;
      }
    }
    cb_free(room);
  }
  const enum cb_cache_outcome outcome = cb_cache_judge(failed, late->file.head.key, diag);
  if (outcome) return outcome;
  const struct cb_hash sum = cb_cache_fold(row->length, late->digests[section]);
  if (memcmp(&sum, &row->sum, sizeof sum)) return cb_cache_wrong_sum(&late->file, row, diag);
  return cb_cache_check_gap(&late->file, row, diag);
}

enum cb_cache_outcome cb_cache_late_check(struct cb_cache_entry *entry, struct cb_diag *diag) {
  struct cb_cache_late *late = entry->late;
  enum cb_cache_outcome outcome = CB_CACHE_HIT;
  if (!late) return outcome;
  for (int i = 0; i < entry->count && !outcome; i++)
    if (cb_cache_is_late(entry, i)) outcome = check_section(late, i, diag);
  if (outcome) return outcome;
  entry->late = NULL;
  cb_cache_late_end(late);
  return outcome;
}
