// SPDX-License-Identifier: Apache-2.0
/* Driver, NVRTC and GPU with several holders: see session.h. */
#include "runtime/api/api.h"

#include "base/fork.h"
#include "base/memory.h"
#include "runtime/cuda/modules.h"
#include "runtime/cuda/spills.h"
#include "runtime/cuda/staging.h"

#include <pthread.h>
#include <string.h>

/* ---- what is kept */

enum { KEPT = 16 }; /* contexts of the application; in more of them nothing is kept */

static struct {
  pthread_mutex_t lock;
  struct cb_session *sessions[KEPT]; /* without holders, one for each context */
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void close_session(struct cb_session *session, int is_there);

/* Whether both are on one CUDA context, or the other's had the address of this one. */
static int is_same_place(const struct cb_session *session, const struct cb_session *other) {
  return session && other && cb_device_is_own(session->device) &&
         session->device->context == other->device->context &&
         !strcmp(session->driver->library.path, other->driver->library.path);
}

/* Takes out what is kept in the session's context; NULL: nothing is. What was kept at the same address in a context
 * that is gone is forgotten. */
static struct cb_session *take_kept(const struct cb_session *session) {
  struct cb_session *found = NULL;
  pthread_mutex_lock(&kept.lock);
  for (int i = 0; i < KEPT && !found; i++) {
    if (!is_same_place(kept.sessions[i], session)) continue;
    found = kept.sessions[i];
    kept.sessions[i] = NULL;
  }
  pthread_mutex_unlock(&kept.lock);
  if (!found || found->context_id == session->context_id) return found;
  close_session(found, 0);
  return NULL;
}

/* Whether there was a place for it. */
static int keep(struct cb_session *session) {
  int place = -1;
  pthread_mutex_lock(&kept.lock);
  for (int i = 0; i < KEPT; i++) {
    if (is_same_place(kept.sessions[i], session)) {
      place = -1;
      break;
    }
    if (!kept.sessions[i] || !cb_device_is_own(kept.sessions[i]->device)) place = i;
  }
  if (place >= 0) kept.sessions[place] = session;
  pthread_mutex_unlock(&kept.lock);
  return place >= 0;
}

static unsigned long long id_of(const struct cb_device *device) {
  const struct cb_driver_calls *call = &device->driver->call;
  unsigned long long id = 0;
  return device->borrowed && call->context_id && !call->context_id(device->context, &id) ? id : 0;
}

/* The kept session of the same context in place of `session`, which is new, with what the device is said to be now. */
static struct cb_session *reuse(struct cb_session *session) {
  session->context_id = id_of(session->device);
  struct cb_session *found = session->context_id ? take_kept(session) : NULL;
  if (!found) return session;
  struct cb_device device = *session->device;
  device.driver = found->driver;
  device.staging = found->device->staging;
  device.memory = found->device->memory;
  device.modules = found->device->modules;
  *found->device = device;
  atomic_store(&found->holders, 1);
  close_session(session, 1);
  return found;
}

/* ---- life */

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
  if (!s) s = cb_staging_create(&session->device->staging, session->device, NULL, diag);
  if (!s) s = cb_modules_create(&session->device->modules, diag);
  if (s)
    close_session(session, 1);
  else
    *out = reuse(session);
  return s;
}

enum cb_status cb_session_use_memory(struct cb_session *session, const struct cb_memory_source *source, int64_t limit,
                                     struct cb_diag *diag) {
  struct cb_memory **memory = &session->device->memory;
  const enum cb_status s = *memory || session->is_absent ? CB_OK : cb_memory_create(memory, diag);
  if (!s) cb_memory_set(*memory, source, limit);
  return s;
}

enum cb_status cb_session_open_absent(struct cb_session **out, const struct cb_target *target, struct cb_diag *diag) {
  struct cb_session *session = *out = cb_calloc(1, sizeof *session);
  if (!session) return cb_fail_memory(diag, "a session", sizeof *session);
  atomic_init(&session->holders, 1);
  session->is_absent = 1;
  session->device = cb_calloc(1, sizeof *session->device);
  if (session->device) {
    session->device->target = *target;
    session->device->forks = cb_forks();
    return CB_OK;
  }
  close_session(session, 1);
  *out = NULL;
  return cb_fail_memory(diag, "a GPU's description", sizeof *session->device);
}

struct cb_session *cb_session_hold(struct cb_session *session) {
  atomic_fetch_add(&session->holders, 1);
  return session;
}

/* What takes the device's context. All of it is gone when that is, or cannot be entered. */
static void release_parts(struct cb_session *session, int is_there) {
  if (!session->device) return;
  const int entered = is_there && !cb_device_enter(session->device, NULL);
  for (int stored = 0; stored < CB_PACKER_SLOTS; stored++) {
    if (!entered) session->packers[stored].module = NULL;
    cb_packer_release(&session->packers[stored]);
  }
  for (int set = 0; set < CB_MOST_SETS; set++) {
    if (!entered) session->kernels[set].module = NULL;
    cb_kernels_release(&session->kernels[set]);
  }
  (entered ? cb_hasher_release : cb_hasher_forget)(&session->hasher);
  (entered ? cb_staging_free : cb_staging_forget)(session->device->staging);
  session->device->staging = NULL;
  if (entered) cb_modules_free(session->device->modules, session->driver);
  else cb_modules_forget(session->device->modules);
  session->device->modules = NULL;
  if (entered) cb_memory_trim(session->device);
  if (entered) cb_device_leave(session->device);
}

static void close_session(struct cb_session *session, int is_there) {
  if (!session->is_absent) release_parts(session, is_there);
  if (session->holds_families) cb_families_let_go();
  cb_nvrtc_close(session->nvrtc);
  cb_binaries_close(session->binaries);
  if (session->device) cb_memory_free(session->device->memory);
  cb_device_close(session->device);
  cb_driver_close(session->driver);
  cb_free(session);
}

void cb_session_release(struct cb_session *session) {
  if (!session || atomic_fetch_sub(&session->holders, 1) != 1) return;
  cb_nvrtc_close(session->nvrtc); /* quickly opened again, and perhaps another one by then */
  session->nvrtc = NULL;
  const int useful = session->context_id && cb_device_is_own(session->device) &&
                     !cb_staging_was_refused(session->device->staging) &&
                     !cb_memory_has_source(session->device->memory); /* whose functions may be gone by then */
  if (!useful || !keep(session))
    close_session(session, 1);
}

/* Opening a session takes what is kept there. */
void cb_session_trim(void) {
  struct cb_session *session;
  struct cb_driver *driver;
  struct CUctx_st *context = NULL;
  if (cb_driver_open(&driver, NULL, NULL)) return;
  const int has_context = !driver->call.context_current(&context) && context;
  cb_driver_close(driver);
  if (has_context && !cb_session_open(&session, CB_DEVICE_CURRENT, NULL)) close_session(session, 1);
}

enum cb_status cb_session_name_nvrtc(struct cb_session *session, const char *path, struct cb_diag *diag) {
  const size_t length = path ? strlen(path) : 0;
  if (length >= sizeof session->nvrtc_path)
    return cb_fail(diag, CB_ERR_LIMIT, "the path of NVRTC has %zu characters; at most %zu are taken", length,
                   sizeof session->nvrtc_path - 1);
  memcpy(session->nvrtc_path, path ? path : "", length + 1);
  return CB_OK;
}

enum cb_status cb_session_nvrtc(struct cb_session *session, const struct cb_nvrtc **nvrtc,
                                struct cb_diag *diag) {
  enum cb_status s = CB_OK;
  if (!session->nvrtc) s = cb_nvrtc_open(&session->nvrtc, *session->nvrtc_path ? session->nvrtc_path : NULL, diag);
  *nvrtc = session->nvrtc;
  return s;
}

/* ---- modules of the library's own: a text, its binary from the cache or the compiler, and what takes that */

struct module {
  const char *kind; /* "packing kernels" */
  const struct cb_text *text;
  /* With the device's context current. */
  enum cb_status (*load)(struct cb_session *session, const struct module *module, const void *cubin, size_t bytes,
                         struct cb_diag *diag);
  enum cb_type stored; /* of a packer */
  int set;             /* of kernels that survey or pack */
};

static enum cb_status load(struct cb_session *session, const struct module *module, const void *cubin, size_t bytes,
                           struct cb_diag *diag) {
  enum cb_status s = cb_device_enter(session->device, diag);
  if (s) return s;
  s = module->load(session, module, cubin, bytes, diag);
  cb_device_leave(session->device);
  return s;
}

/* The text's own bytes stand for the pattern; `options` get the defaults. */
static struct cb_cache_subject subject_of(const struct cb_session *session, const struct module *module,
                                          struct cb_options *options) {
  struct cb_cache_subject subject = {
      .kind = module->kind,
      .options = options,
      .target = &session->device->target,
      .pattern = cb_hash_bytes(module->text->bytes, module->text->length),
  };
  cb_options_default(options);
  return subject;
}

int cb_session_has_binaries(struct cb_session *session) {
  if (!session->has_looked) cb_binaries_find(&session->binaries, session->device->target.arch, NULL);
  session->has_looked = 1;
  return session->binaries != NULL;
}

/* What the library brings of a text. */
static enum cb_status get_brought(struct cb_session *session, const struct cb_text *text, unsigned char **cubin,
                                  size_t *length) {
  if (!cb_session_has_binaries(session)) return CB_ERR_MISSING;
  return cb_binaries_get(session->binaries, cb_binaries_key(text->bytes, text->length), cubin, length, NULL);
}

static enum cb_status load_brought(struct cb_session *session, const struct module *module) {
  unsigned char *cubin = NULL;
  size_t length = 0;
  enum cb_status s = get_brought(session, module->text, &cubin, &length);
  if (!s) s = load(session, module, cubin, length, NULL);
  cb_free(cubin);
  return s;
}

static enum cb_status load_cached(struct cb_session *session, struct cb_cache *cache, struct cb_hash key,
                                  const struct module *module) {
  struct cb_cache_entry entry;
  enum cb_status s = CB_ERR_MISSING;
  if (cb_cache_get(cache, key, &entry, NULL) != CB_CACHE_HIT) return s;
  const struct cb_cache_section *cubin = cb_cache_section(&entry, "cubin");
  if (cubin) s = load(session, module, cubin->bytes, (size_t)cubin->length, NULL);
  cb_cache_entry_release(&entry);
  if (s && s != CB_ERR_MEMORY) cb_cache_remove(cache, key, NULL); /* a lack of memory is not the entry's fault */
  return s;
}

void cb_session_keep_binary(const struct cb_session *session, struct cb_cache *cache,
                            const struct cb_cache_subject *subject, const struct cb_text *text,
                            const struct cb_compiled *compiled) {
  const struct cb_cache_label label = {subject->kind, session->device->target.model, NULL};
  struct cb_text fields = {0};
  cb_cache_fields(&fields, subject);
  const struct cb_cache_section sections[] = {{"key", fields.bytes, (int64_t)fields.length},
                                              {"source", text->bytes, (int64_t)text->length},
                                              {"cubin", compiled->cubin, (int64_t)compiled->cubin_bytes}};
  if (!fields.failed) cb_cache_put(cache, cb_cache_key(subject), &label, sections, 3, NULL);
  cb_text_release(&fields);
}

static enum cb_status compile(struct cb_session *session, struct cb_cache *cache,
                              const struct cb_cache_subject *subject, const struct module *module,
                              struct cb_diag *diag) {
  const struct cb_nvrtc_options options = {.arch = session->device->target.arch};
  const struct cb_nvrtc *nvrtc;
  struct cb_compiled compiled;
  enum cb_status s = cb_session_nvrtc(session, &nvrtc, diag);
  if (s) return s;
  s = cb_nvrtc_compile(&compiled, session->nvrtc, module->text->bytes, module->kind, &options, diag);
  if (!s) s = load(session, module, compiled.cubin, compiled.cubin_bytes, diag);
  if (!s) cb_session_keep_binary(session, cache, subject, module->text, &compiled);
  cb_compiled_release(&compiled);
  return s;
}

static enum cb_status find_module(struct cb_session *session, struct cb_cache *cache, const struct module *module,
                                  struct cb_diag *diag) {
  struct cb_options options;
  struct cb_cache_turn turn;
  const struct cb_cache_subject subject = subject_of(session, module, &options);
  const struct cb_hash key = cb_cache_key(&subject);
  enum cb_status s = CB_OK;
  if (!load_brought(session, module)) return CB_OK;
  if (!load_cached(session, cache, key, module)) return CB_OK;
  if (!cb_cache_turn_begin(cache, key, CB_CACHE_PATIENCE, &turn) || load_cached(session, cache, key, module))
    s = compile(session, cache, &subject, module, diag);
  cb_cache_turn_end(cache, &turn);
  return s;
}

/* Compiles the module, and keeps it. */
static enum cb_status keep_module(struct cb_session *session, struct cb_cache *cache, const struct module *module,
                                  int *made, struct cb_diag *diag) {
  struct cb_options options;
  const struct cb_cache_subject subject = subject_of(session, module, &options);
  const struct cb_nvrtc_options compiling = {.arch = session->device->target.arch};
  const struct cb_nvrtc *nvrtc;
  struct cb_compiled compiled = {0};
  if (module->text->failed) return cb_fail_memory(diag, module->kind, module->text->length);
  if (!cb_cache_check(cache, cb_cache_key(&subject), NULL)) return CB_OK;
  enum cb_status s = cb_session_nvrtc(session, &nvrtc, diag);
  if (!s) s = cb_nvrtc_compile(&compiled, nvrtc, module->text->bytes, module->kind, &compiling, diag);
  if (!s) cb_session_keep_binary(session, cache, &subject, module->text, &compiled);
  cb_compiled_release(&compiled);
  *made += !s;
  return s;
}

enum cb_status cb_session_keep_own(struct cb_session *session, struct cb_cache *cache, int *made,
                                   struct cb_diag *diag) {
  struct cb_text text = {0};
  struct module module = {.kind = "hashing kernels", .text = &text};
  enum cb_status s = cb_hasher_text(&text, diag);
  if (!s) s = keep_module(session, cache, &module, made, diag);
  module.kind = "packing kernels";
  for (int stored = 0; stored < CB_PACKER_SLOTS && !s; stored++) {
    cb_text_release(&text);
    s = cb_packer_text(&text, cb_packer_slots[stored], diag);
    if (!s) s = keep_module(session, cache, &module, made, diag);
  }
  for (int set = 0; cb_kernel_sets[set].name && !s; set++) {
    cb_text_release(&text);
    module.kind = cb_kernel_sets[set].name;
    s = cb_kernel_set_text(&text, &cb_kernel_sets[set], diag);
    if (!s) s = keep_module(session, cache, &module, made, diag);
  }
  cb_text_release(&text);
  return s;
}

/* ---- families */

int cb_session_kept_binary(struct cb_cache *cache, struct cb_hash key, struct cb_compiled *compiled) {
  struct cb_cache_entry entry;
  if (cb_cache_get(cache, key, &entry, NULL) != CB_CACHE_HIT) return 0;
  const struct cb_cache_section *cubin = cb_cache_section(&entry, "cubin");
  unsigned char *copy = cubin ? cb_alloc((size_t)cubin->length + 1, 1) : NULL;
  if (copy) {
    memcpy(copy, cubin->bytes, (size_t)cubin->length);
    *compiled = (struct cb_compiled){.cubin = copy, .cubin_bytes = (size_t)cubin->length};
    compiled->spilled_bytes = cb_spilled_bytes(compiled);
  }
  cb_cache_entry_release(&entry);
  return copy != NULL;
}

static enum cb_status find_family(struct cb_session *session, struct cb_cache *cache, const struct cb_source *family,
                                  int may_compile, struct cb_compiled *compiled, const struct cbgen_context *log,
                                  struct cb_diag *diag) {
  const struct cb_text text = {.bytes = family->text, .length = (size_t)family->length};
  const struct module module = {.kind = "family", .text = &text};
  const struct cb_nvrtc_options options = {.arch = session->device->target.arch};
  const struct cb_nvrtc *nvrtc;
  struct cb_options defaults;
  struct cb_cache_turn turn = {0};
  char hex[CB_HASH_HEX];
  *compiled = (struct cb_compiled){0};
  if (!get_brought(session, &text, &compiled->cubin, &compiled->cubin_bytes)) {
    compiled->spilled_bytes = cb_spilled_bytes(compiled);
    cb_hash_hex(cb_binaries_key(text.bytes, text.length), hex);
    cb_log(log, "family %s: comes with the library", hex);
    return CB_OK;
  }
  const struct cb_cache_subject subject = subject_of(session, &module, &defaults);
  const struct cb_hash key = cb_cache_key(&subject);
  cb_hash_hex(key, hex);
  int cached = cb_session_kept_binary(cache, key, compiled);
  if (!cached && !may_compile) return cb_fail(diag, CB_ERR_MISSING, "the family's kernel has not been compiled yet");
  if (!cached && cb_cache_turn_begin(cache, key, CB_CACHE_PATIENCE, &turn))
    cached = cb_session_kept_binary(cache, key, compiled);
  enum cb_status s = CB_OK;
  if (cached) cb_log(log, "family %s: from the cache", hex);
  if (!cached) s = cb_session_nvrtc(session, &nvrtc, diag);
  if (!cached && !s) s = cb_compile_fitting(compiled, nvrtc, family->text, CB_FAMILY_SYMBOL, &options, diag);
  if (!cached && !s) {
    cb_log(log, "family %s: compiled in %.1f ms", hex, 1e3 * compiled->seconds);
    cb_session_keep_binary(session, cache, &subject, &text, compiled);
  }
  cb_cache_turn_end(cache, &turn);
  return s;
}

/* What the library brings of an outline's text. */
static int take_outlined(struct cb_session *session, struct cb_hash outline, struct cb_compiled *compiled,
                         const struct cbgen_context *log) {
  struct cb_hash key;
  char hex[CB_HASH_HEX];
  *compiled = (struct cb_compiled){0};
  if (!cb_session_has_binaries(session) || !cb_binaries_outlined(session->binaries, outline, &key)) return 0;
  if (cb_binaries_get(session->binaries, key, &compiled->cubin, &compiled->cubin_bytes, NULL)) return 0;
  compiled->spilled_bytes = cb_spilled_bytes(compiled);
  cb_hash_hex(key, hex);
  cb_log(log, "family %s: comes with the library", hex);
  return 1;
}

int cb_session_outlined(struct cb_session *session, struct cb_hash outline, struct cb_compiled *compiled,
                        const struct cbgen_context *log) {
  const char *arch = session->device->target.arch;
  if (!session->holds_families) cb_families_hold();
  session->holds_families = 1;
  if (cb_families_find(outline, arch, compiled)) {
    cb_log(log, "family: known from before");
    return 1;
  }
  if (!take_outlined(session, outline, compiled, log)) return 0;
  cb_families_keep(outline, arch, compiled);
  return 1;
}

enum cb_status cb_session_family(struct cb_session *session, struct cb_cache *cache, const struct cb_source *family,
                                 struct cb_hash outline, int may_compile, struct cb_compiled *compiled,
                                 const struct cbgen_context *log, struct cb_diag *diag) {
  const enum cb_status s = find_family(session, cache, family, may_compile, compiled, log, diag);
  if (!s && session->holds_families) cb_families_keep(outline, session->device->target.arch, compiled);
  return s;
}

/* ---- packing kernels */

static enum cb_status load_packer(struct cb_session *session, const struct module *module, const void *cubin,
                                  size_t bytes, struct cb_diag *diag) {
  struct cb_packer *packer = &session->packers[cb_packer_number(module->stored)];
  const enum cb_status s = cb_packer_load(packer, session->device, module->stored, cubin, bytes, diag);
  if (s) cb_packer_release(packer);
  return s;
}

enum cb_status cb_session_packer_from(struct cb_session *session, enum cb_type stored,
                                      const void *cubin, size_t cubin_bytes, const struct cb_packer **packer,
                                      struct cb_diag *diag) {
  const struct module module = {NULL, NULL, load_packer, stored, 0};
  *packer = &session->packers[cb_packer_number(stored)];
  return (*packer)->module ? CB_OK : load(session, &module, cubin, cubin_bytes, diag);
}

enum cb_status cb_session_packer(struct cb_session *session, struct cb_cache *cache, enum cb_type stored,
                                 const struct cb_packer **packer, struct cb_diag *diag) {
  struct cb_text text = {0};
  const struct module module = {"packing kernels", &text, load_packer, stored, 0};
  *packer = &session->packers[cb_packer_number(stored)];
  if ((*packer)->module) return CB_OK;
  enum cb_status s = cb_packer_text(&text, stored, diag);
  if (!s) s = find_module(session, cache, &module, diag);
  cb_text_release(&text);
  return s;
}

/* ---- hashing kernels */

static enum cb_status load_hasher(struct cb_session *session, const struct module *module, const void *cubin,
                                  size_t bytes, struct cb_diag *diag) {
  (void)module;
  (void)bytes;
  const enum cb_status s = cb_hasher_load(&session->hasher, session->device, cubin, diag);
  if (s) cb_hasher_release(&session->hasher);
  return s;
}

enum cb_status cb_session_hasher(struct cb_session *session, struct cb_cache *cache, struct cb_hasher **hasher,
                                 struct cb_diag *diag) {
  struct cb_text text = {0};
  const struct module module = {.kind = "hashing kernels", .text = &text, .load = load_hasher};
  *hasher = &session->hasher;
  if (session->hasher.module) return CB_OK;
  enum cb_status s = cb_hasher_text(&text, diag);
  if (!s) s = find_module(session, cache, &module, diag);
  cb_text_release(&text);
  return s;
}

/* ---- kernels that survey and pack */

static enum cb_status load_kernels(struct cb_session *session, const struct module *module, const void *cubin,
                                   size_t bytes, struct cb_diag *diag) {
  struct cb_kernels *kernels = &session->kernels[module->set];
  (void)bytes;
  const enum cb_status s = cb_kernels_load(kernels, session->device, &cb_kernel_sets[module->set], cubin, diag);
  if (s) cb_kernels_release(kernels);
  return s;
}

enum cb_status cb_session_kernels(struct cb_session *session, struct cb_cache *cache, int set,
                                  const struct cb_kernels **kernels, struct cb_diag *diag) {
  struct cb_text text = {0};
  const struct module module = {.kind = cb_kernel_sets[set].name, .text = &text, .load = load_kernels, .set = set};
  *kernels = &session->kernels[set];
  if ((*kernels)->module) return CB_OK;
  enum cb_status s = cb_kernel_set_text(&text, &cb_kernel_sets[set], diag);
  if (!s) s = find_module(session, cache, &module, diag);
  cb_text_release(&text);
  return s;
}
