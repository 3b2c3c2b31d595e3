// SPDX-License-Identifier: Apache-2.0
/* Driver, NVRTC and GPU with several holders: see session.h. */
#include "runtime/session.h"

#include "base/memory.h"

enum cb_status cb_session_open(struct cb_session **out, int ordinal, struct cb_diag *diag) {
  struct cb_session *session = cb_calloc(1, sizeof *session);
  *out = NULL;
  if (!session) return cb_fail_memory(diag, "a session", sizeof *session);
  atomic_init(&session->holders, 1);
  enum cb_status s = cb_driver_open(&session->driver, NULL, diag);
  if (!s && ordinal == CB_DEVICE_CURRENT)
    s = cb_device_open_current(&session->device, session->driver, diag);
  else if (!s)
    s = cb_device_open(&session->device, session->driver, ordinal, diag);
  if (s)
    cb_session_release(session);
  else
    *out = session;
  return s;
}

struct cb_session *cb_session_hold(struct cb_session *session) {
  atomic_fetch_add(&session->holders, 1);
  return session;
}

static void release_packers(struct cb_session *session) {
  const int entered = session->device && !cb_device_enter(session->device, NULL);
  for (int stored = 0; stored < CB_PACKER_SOURCES; stored++)
    for (int wide = 0; wide < 2; wide++) cb_packer_release(&session->packers[stored][wide]);
  if (entered) cb_device_leave(session->device);
}

void cb_session_release(struct cb_session *session) {
  if (!session || atomic_fetch_sub(&session->holders, 1) != 1) return;
  release_packers(session);
  cb_nvrtc_close(session->nvrtc);
  cb_device_close(session->device);
  cb_driver_close(session->driver);
  cb_free(session);
}

enum cb_status cb_session_nvrtc(struct cb_session *session, const struct cb_nvrtc **nvrtc,
                                struct cb_diag *diag) {
  enum cb_status s = CB_OK;
  if (!session->nvrtc) s = cb_nvrtc_open(&session->nvrtc, NULL, diag);
  *nvrtc = session->nvrtc;
  return s;
}

/* ---- packing kernels */

enum cb_status cb_session_packer_from(struct cb_session *session, enum cb_type stored, int wide,
                                      const void *cubin, size_t cubin_bytes, const struct cb_packer **packer,
                                      struct cb_diag *diag) {
  struct cb_packer *own = &session->packers[stored][wide];
  *packer = own;
  if (own->module) return CB_OK;
  enum cb_status s = cb_device_enter(session->device, diag);
  if (s) return s;
  s = cb_packer_load(own, session->device, stored, wide, cubin, cubin_bytes, diag);
  if (s) cb_packer_release(own);
  cb_device_leave(session->device);
  return s;
}

/* The text's own bytes stand for the pattern. */
static struct cb_hash key_of(const struct cb_session *session, const struct cb_nvrtc *nvrtc,
                             const struct cb_text *text) {
  struct cb_options options;
  struct cb_cache_subject subject = {
      .kind = "packing kernels",
      .options = &options,
      .target = &session->device->target,
      .pattern = cb_hash_bytes(text->bytes, text->length),
  };
  cb_options_default(&options);
  cb_nvrtc_version(nvrtc, &subject.nvrtc_major, &subject.nvrtc_minor);
  return cb_cache_key(&subject);
}

static enum cb_status load_cached(struct cb_session *session, struct cb_cache *cache, struct cb_hash key,
                                  enum cb_type stored, int wide, const struct cb_packer **packer) {
  struct cb_cache_entry entry;
  enum cb_status s = CB_ERR_MISSING;
  if (cb_cache_get(cache, key, &entry, NULL) != CB_CACHE_HIT) return s;
  const struct cb_cache_section *cubin = cb_cache_section(&entry, "cubin");
  if (cubin)
    s = cb_session_packer_from(session, stored, wide, cubin->bytes, (size_t)cubin->length, packer, NULL);
  cb_cache_entry_release(&entry);
  if (s) cb_cache_remove(cache, key, NULL);
  return s;
}

static enum cb_status compile_packer(struct cb_session *session, struct cb_cache *cache, struct cb_hash key,
                                     const struct cb_text *text, enum cb_type stored, int wide,
                                     const struct cb_packer **packer, struct cb_diag *diag) {
  const struct cb_nvrtc_options options = {.arch = session->device->target.arch};
  const struct cb_cache_label label = {"packing kernels", session->device->target.model};
  struct cb_compiled compiled;
  enum cb_status s =
      cb_nvrtc_compile(&compiled, session->nvrtc, text->bytes, "packing kernels", &options, diag);
  if (!s)
    s = cb_session_packer_from(session, stored, wide, compiled.cubin, compiled.cubin_bytes, packer, diag);
  if (!s) {
    const struct cb_cache_section sections[] = {{"source", text->bytes, (int64_t)text->length},
                                                {"cubin", compiled.cubin, (int64_t)compiled.cubin_bytes}};
    cb_cache_put(cache, key, &label, sections, 2, NULL);
  }
  cb_compiled_release(&compiled);
  return s;
}

enum cb_status cb_session_packer(struct cb_session *session, struct cb_cache *cache, enum cb_type stored,
                                 int wide, const struct cb_packer **packer, struct cb_diag *diag) {
  const struct cb_nvrtc *nvrtc;
  struct cb_text text = {0};
  *packer = &session->packers[stored][wide];
  if ((*packer)->module) return CB_OK;
  enum cb_status s = cb_session_nvrtc(session, &nvrtc, diag);
  if (!s) s = cb_packer_text(&text, stored, wide, diag);
  if (!s) {
    const struct cb_hash key = key_of(session, nvrtc, &text);
    if (load_cached(session, cache, key, stored, wide, packer))
      s = compile_packer(session, cache, key, &text, stored, wide, packer, diag);
  }
  cb_text_release(&text);
  return s;
}
