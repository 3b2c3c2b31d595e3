// SPDX-License-Identifier: Apache-2.0
/* Modules with several users: see modules.h. */
#include "runtime/cuda/modules.h"

#include "base/hash.h"
#include "base/memory.h"

#include <pthread.h>
#include <string.h>

struct entry {
  struct cb_hash key; /* of the binary */
  size_t bytes;
  struct CUmod_st *module; /* NULL: the place is free */
  int users;
  uint64_t turn; /* when it was taken last */
};

struct cb_modules {
  pthread_mutex_t lock;
  uint64_t turn;
  struct entry entries[CB_MOST_MODULES];
};

enum cb_status cb_modules_create(struct cb_modules **out, struct cb_diag *diag) {
  struct cb_modules *modules = *out = cb_calloc(1, sizeof *modules);
  if (!modules) return cb_fail_memory(diag, "modules", sizeof *modules);
  pthread_mutex_init(&modules->lock, NULL);
  return CB_OK;
}

/* A lock that another thread held when the process forked stays locked in the child, and is not looked at. */
void cb_modules_forget(struct cb_modules *modules) { cb_free(modules); }

void cb_modules_free(struct cb_modules *modules, const struct cb_driver *driver) {
  if (!modules) return;
  for (int i = 0; i < CB_MOST_MODULES; i++)
    if (modules->entries[i].module) driver->call.module_unload(modules->entries[i].module);
  pthread_mutex_destroy(&modules->lock);
  cb_free(modules);
}

static enum cb_status load(const struct cb_device *device, const void *cubin, struct CUmod_st **module,
                           struct cb_diag *diag) {
  const struct cb_target *target = &device->target;
  const enum cb_status s =
      cb_driver_check(device->driver, device->driver->call.module_load(module, cubin), diag,
                      "load a kernel compiled for '%s' on GPU %d ('%s')", target->arch, device->ordinal, target->model);
  if (s) *module = NULL;
  return s;
}

/* A free place, or that of the module which nobody has used for longest; NULL: all are in use. */
static struct entry *find_place(struct cb_modules *modules, const struct cb_driver *driver) {
  struct entry *found = NULL;
  for (int i = 0; i < CB_MOST_MODULES; i++) {
    struct entry *entry = &modules->entries[i];
    if (!entry->module) return entry;
    if (!entry->users && (!found || entry->turn < found->turn)) found = entry;
  }
  if (found) driver->call.module_unload(found->module);
  if (found) found->module = NULL;
  return found;
}

/* Loading under the lock: who wants the same module waits for it. */
static enum cb_status take(struct cb_modules *modules, const struct cb_device *device, const void *cubin, size_t bytes,
                           struct CUmod_st **module, int *is_shared, struct cb_diag *diag) {
  const struct cb_hash key = cb_hash_bytes(cubin, bytes);
  struct entry *entry = NULL;
  for (int i = 0; i < CB_MOST_MODULES && !entry; i++) {
    struct entry *other = &modules->entries[i];
    if (other->module && other->bytes == bytes && !memcmp(&other->key, &key, sizeof key)) entry = other;
  }
  if (!entry) {
    const enum cb_status s = load(device, cubin, module, diag);
    if (s) return s;
    entry = find_place(modules, device->driver);
    if (entry) *entry = (struct entry){.key = key, .bytes = bytes, .module = *module};
  }
  *is_shared = entry != NULL;
  if (!entry) return CB_OK;
  *module = entry->module;
  entry->users++;
  entry->turn = ++modules->turn;
  return CB_OK;
}

enum cb_status cb_modules_take(struct cb_modules *modules, const struct cb_device *device, const void *cubin,
                               size_t bytes, struct CUmod_st **module, int *is_shared, struct cb_diag *diag) {
  *is_shared = 0;
  if (!modules) return load(device, cubin, module, diag);
  pthread_mutex_lock(&modules->lock);
  const enum cb_status s = take(modules, device, cubin, bytes, module, is_shared, diag);
  pthread_mutex_unlock(&modules->lock);
  return s;
}

void cb_modules_give_back(struct cb_modules *modules, const struct CUmod_st *module) {
  pthread_mutex_lock(&modules->lock);
  for (int i = 0; i < CB_MOST_MODULES; i++)
    if (modules->entries[i].module == module) modules->entries[i].users--;
  pthread_mutex_unlock(&modules->lock);
}

static enum cb_status allow(const struct cb_driver *driver, struct CUfunc_st *function, const char *kernel,
                            unsigned bytes, struct cb_diag *diag) {
  static const unsigned which = CB_CU_FUNC_MAX_DYNAMIC_SHARED;
  int allowed = 0;
  const enum cb_status s = cb_driver_check(driver, driver->call.function_get(&allowed, which, function), diag,
                                           "ask what shared memory kernel '%s' may have", kernel);
  if (s || allowed >= (int)bytes) return s;
  return cb_driver_check(driver, driver->call.function_set(function, which, (int)bytes), diag,
                         "give kernel '%s' %u bytes of shared memory", kernel, bytes);
}

enum cb_status cb_modules_allow(struct cb_modules *modules, const struct cb_driver *driver,
                                struct CUfunc_st *function, const char *kernel, unsigned bytes, struct cb_diag *diag) {
  if (modules) pthread_mutex_lock(&modules->lock);
  const enum cb_status s = allow(driver, function, kernel, bytes, diag);
  if (modules) pthread_mutex_unlock(&modules->lock);
  return s;
}
