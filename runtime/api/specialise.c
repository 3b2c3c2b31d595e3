// SPDX-License-Identifier: Apache-2.0
/* From a family's kernel to the specialised one of an operator that is there: see cbgen_operator_specialise. All that
 * products read is replaced by one pointer (cb_operator_take_over), and nothing that they may still read goes before
 * the operator does. */
#include "runtime/api/api.h"

#include "base/memory.h"
#include "runtime/cuda/spills.h"

#include <stdio.h>
#include <string.h>

/* ---- the cache's entry */

static enum cb_status write_entry(struct cb_cache *cache, const struct cb_shared *shared, struct cb_cache_entry *entry,
                                  struct cb_image *image, struct cb_diag *diag) {
  const struct cb_cache_label label = {entry->matrix, entry->target, entry->kernel};
  const struct cb_cache_section *key = cb_cache_section(entry, "key");
  struct cb_image_bytes bytes = {0};
  enum cb_status s = cb_image_become_special(image, diag);
  if (s) return s;
  image->cubin = shared->special.cubin;
  image->cubin_bytes = shared->special.cubin_bytes;
  s = cb_image_sections(&bytes, image, cb_cache_section(entry, "arrays") != NULL, diag);
  if (!s) {
    struct cb_cache_section sections[CB_CACHE_SECTIONS];
    int count = bytes.count;
    memcpy(sections, bytes.sections, (size_t)count * sizeof *sections);
    if (key) sections[count++] = *key;
    cb_cache_put(cache, shared->kept.key, &label, sections, count, diag);
  }
  cb_image_bytes_release(&bytes);
  return s;
}

/* The next compilation of the matrix finds the specialised kernel. That it cannot be kept costs time only. */
static void keep(const struct cb_shared *shared) {
  struct cb_cache_options options = {.directory = shared->kept.directory, .path = "", .limit = shared->kept.limit,
                                     .existing = 1};
  struct cb_cache *cache = NULL;
  struct cb_cache_entry entry;
  struct cb_image image = {0};
  if (!shared->kept.directory) return;
  if (!cb_cache_open(&cache, &options, NULL) && cb_cache_get(cache, shared->kept.key, &entry, NULL) == CB_CACHE_HIT) {
    if (!cb_image_parse(&image, entry.sections, entry.count, 0, NULL) && image.tier == CB_TIER_FAMILY)
      write_entry(cache, shared, &entry, &image, NULL);
    cb_image_release(&image);
    cb_cache_entry_release(&entry);
  }
  cb_cache_close(cache);
}

/* ---- the kernel */

/* The image's numbers with a binary of its own. */
static enum cb_status make_special(struct cb_shared *shared, const struct cb_compiled *compiled, struct cb_diag *diag) {
  struct cb_image *special = &shared->special;
  const enum cb_status s = cb_image_specialise(special, &shared->image, diag);
  if (s) return s;
  special->cubin = cb_arena_copy(&special->arena, compiled->cubin, compiled->cubin_bytes, 1);
  special->cubin_bytes = compiled->cubin_bytes;
  return special->cubin ? CB_OK : cb_fail_memory(diag, "a kernel", compiled->cubin_bytes);
}

/* NVRTC is opened for this alone: operators may be specialised on any thread. */
static enum cb_status compile(const struct cb_shared *shared, struct cb_compiled *compiled, struct cb_diag *diag) {
  const struct cb_session *session = shared->session;
  const struct cb_nvrtc_options options = {.arch = shared->image.target.arch};
  struct cb_nvrtc *nvrtc = NULL;
  char name[32];
  enum cb_status s = cb_nvrtc_open(&nvrtc, *session->nvrtc_path ? session->nvrtc_path : NULL, diag);
  if (s) return s;
  snprintf(name, sizeof name, "cbgen_%016llx", (unsigned long long)shared->image.id);
  s = cb_compile_fitting(compiled, nvrtc, shared->image.source, name, &options, diag);
  cb_nvrtc_close(nvrtc);
  return s;
}

static enum cb_status specialise(struct cbgen_operator *op, struct cb_diag *diag) {
  struct cb_shared *shared = op->shared;
  struct cb_compiled compiled = {0};
  if (cb_operator_tier(op->op) == CB_TIER_SPECIALISED) return CB_OK;
  enum cb_status s = cb_shared_texts(shared, diag);
  if (!s) s = compile(shared, &compiled, diag);
  if (!s) s = make_special(shared, &compiled, diag);
  if (!s) s = cb_operator_take_over(op->op, &shared->special, diag);
  if (s) cb_image_release(&shared->special);
  else keep(shared);
  cb_compiled_release(&compiled);
  return s;
}

cbgen_status cbgen_operator_specialise(cbgen_operator *op) {
  CB_STANDARD_NUMERICS;
  struct cb_diag diag = {0};
  if (!op) return CBGEN_ERROR_ARGUMENT;
  pthread_mutex_lock(&op->shared->specialising);
  const enum cb_status s = specialise(op, &diag);
  pthread_mutex_unlock(&op->shared->specialising);
  return cb_operator_report(op, s, &diag);
}
