// SPDX-License-Identifier: Apache-2.0
/* Filling the cache without a GPU: see fill.h. The stages are those of a compilation (compile.h) up to the entry, in a
 * session without driver and GPU, of which nothing but the target is asked. */
#include "runtime/api/fill.h"

#include "base/memory.h"
#include "runtime/api/compile.h"

#include <stdio.h>
#include <string.h>

/* The context's session, for this target. */
static enum cb_status open(cbgen_context *context, const struct cb_target *target) {
  struct cb_diag diag = {0};
  if (context->session) return cb_session_name_nvrtc(context->session, context->nvrtc_path, &context->diag);
  context->pack = CB_PACK_HOST;
  const enum cb_status s = cb_session_open_absent(&context->session, target, &diag);
  return s ? cb_fail_lines(&context->diag, s, diag.message) : open(context, target);
}

static enum cb_status open_cache(cbgen_context *context, struct cb_cache **cache) {
  const struct cb_cache_options options = {
      .directory = context->cache_directory, .path = "", .limit = context->cache_limit};
  if (!context->cache) cb_cache_open(&context->cache, &options, NULL);
  *cache = context->cache;
  if (cb_cache_state(*cache) == CB_CACHE_ON) return CB_OK;
  return cb_fail(&context->diag, CB_ERR_IO, "there is no cache to fill: %s", cb_cache_remark(*cache));
}

/* Whether the cache's own directory has the entry with a specialised kernel. */
static int is_there(struct cb_work *work) {
  struct cb_cache_entry entry;
  struct cb_image image = {0};
  if (cb_cache_get(work->kept.cache, work->kept.key, &entry, NULL) != CB_CACHE_HIT) return 0;
  const int special =
      !cb_image_parse(&image, entry.sections, entry.count, 0, NULL) && image.tier == CB_TIER_SPECIALISED;
  cb_image_release(&image);
  cb_cache_entry_release(&entry);
  return special;
}

static enum cb_status make(struct cb_work *work, struct cb_filled *filled) {
  const enum cb_status s = cb_work_make(work);
  if (s) return s;
  snprintf(filled->plan, sizeof filled->plan, "%s", work->made.plan->line);
  cb_work_put(work);
  struct cb_diag diag = {0};
  if (!cb_cache_check(work->kept.cache, work->kept.key, &diag)) return CB_OK;
  return cb_fail(work->diag, CB_ERR_IO, "the entry was not kept in '%s': %s", cb_cache_directory(work->kept.cache),
                 diag.message);
}

static enum cb_status fill(struct cb_work *work, const cbgen_request *asked, struct cb_filled *filled) {
  cbgen_request request = {.struct_size = sizeof request};
  if (asked) request = *asked;
  request.specialise = CBGEN_SPECIALISE_NOW;
  enum cb_status s = cb_request_take(&work->request, &request, work->diag);
  if (!s) s = open_cache(work->request.context, &work->kept.cache);
  if (!s) s = cb_work_hash(work);
  if (s) return s;
  work->info.cache = CBGEN_CACHE_MISS;
  cb_work_key(work);
  filled->key = work->kept.key;
  filled->was_there = is_there(work);
  return filled->was_there ? CB_OK : make(work, filled);
}

enum cb_status cb_fill(cbgen_context *context, const struct cb_target *target, const cbgen_csr *matrix,
                       const cbgen_request *request, struct cb_filled *filled) {
  CB_STANDARD_NUMERICS_OF_ALL;
  struct cb_work *work = cb_calloc(1, sizeof *work);
  memset(filled, 0, sizeof *filled);
  if (!work) return cb_fail_memory(&context->diag, "a compilation", sizeof *work);
  work->request.context = context;
  work->diag = &context->diag;
  enum cb_status s = open(context, target);
  if (!s) s = cb_view_take_csr(&work->request.view, matrix, work->diag);
  if (!s) s = fill(work, request, filled);
  cb_work_release_new(work);
  cb_cache_turn_end(work->kept.cache, &work->kept.turn);
  cb_request_release(&work->request);
  cb_free(work);
  return s;
}

enum cb_status cb_fill_own(cbgen_context *context, const struct cb_target *target, int *made) {
  struct cb_cache *cache;
  *made = 0;
  enum cb_status s = open(context, target);
  if (!s) s = open_cache(context, &cache);
  return s ? s : cb_session_keep_own(context->session, cache, made, &context->diag);
}
