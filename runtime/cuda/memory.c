// SPDX-License-Identifier: Apache-2.0
/* Device memory by its source, with a limit: see memory.h. */
#include "runtime/cuda/memory.h"

#include "base/memory.h"
#include "base/numerics.h"

#include <pthread.h>
#include <string.h>

struct block {
  cb_device_ptr address;
  size_t bytes;
  struct cb_memory_source source; /* that it goes back to */
};

struct cb_memory {
  pthread_mutex_t lock; /* of all that follows; held in no call to a source */
  struct cb_memory_source source;
  int64_t limit, taken, marked, most;
  struct block *blocks;
  int64_t count, room;
  struct block spares[CB_MEMORY_SPARES]; /* the driver's: given back, and nobody's now */
  int spares_count;
};

enum cb_status cb_memory_create(struct cb_memory **out, struct cb_diag *diag) {
  struct cb_memory *memory = *out = cb_calloc(1, sizeof *memory);
  if (!memory) return cb_fail_memory(diag, "a device's memory", sizeof *memory);
  pthread_mutex_init(&memory->lock, NULL);
  return CB_OK;
}

void cb_memory_free(struct cb_memory *memory) {
  if (!memory) return;
  pthread_mutex_destroy(&memory->lock);
  cb_free(memory->blocks);
  cb_free(memory);
}

void cb_memory_set(struct cb_memory *memory, const struct cb_memory_source *source, int64_t limit) {
  if (!memory) return;
  pthread_mutex_lock(&memory->lock);
  memory->source = *source;
  memory->limit = limit;
  pthread_mutex_unlock(&memory->lock);
}

int cb_memory_has_source(const struct cb_memory *memory) {
  return memory && memory->source.allocate;
}

int64_t cb_memory_room(struct cb_memory *memory) {
  if (!memory) return INT64_MAX;
  pthread_mutex_lock(&memory->lock);
  const int64_t left = memory->limit > memory->taken ? memory->limit - memory->taken : 0;
  const int64_t room = memory->limit ? left : INT64_MAX;
  pthread_mutex_unlock(&memory->lock);
  return room;
}

void cb_memory_mark(struct cb_memory *memory) {
  if (!memory) return;
  pthread_mutex_lock(&memory->lock);
  memory->marked = memory->most = memory->taken;
  pthread_mutex_unlock(&memory->lock);
}

int64_t cb_memory_peak(struct cb_memory *memory) {
  if (!memory) return 0;
  pthread_mutex_lock(&memory->lock);
  const int64_t peak = memory->most - memory->marked;
  pthread_mutex_unlock(&memory->lock);
  return peak;
}

/* ---- sources */

static enum cb_status fail_memory(const struct cb_device *device, size_t bytes, const char *what,
                                  struct cb_diag *diag) {
  return cb_fail(diag, CB_ERR_MEMORY, "the application's allocator has no %zu bytes on GPU %d for '%s'", bytes,
                 device->ordinal, what);
}

/* What is in the stream may still use the memory: it is waited for, since set-up works on another stream. */
static enum cb_status allocate(const struct cb_device *device, const struct cb_memory_source *source,
                               cb_device_ptr *address, size_t bytes, const char *what, struct cb_diag *diag) {
  const struct cb_driver *driver = device->driver;
  struct cb_numerics ours;
  if (!source->allocate) return cb_device_alloc_plain(device, address, bytes, what, diag);
  cb_numerics_pause(&ours);
  void *memory = source->allocate(source->user, bytes, source->stream);
  cb_numerics_resume(&ours);
  *address = (cb_device_ptr)(uintptr_t)memory;
  if (!memory) return fail_memory(device, bytes, what, diag);
  enum cb_status s = CB_OK;
  if (*address % CB_MEMORY_ALIGN)
    s = cb_fail(diag, CB_ERR_ARGUMENT, "the application's allocator gave an address that is no multiple of %d",
                CB_MEMORY_ALIGN);
  if (!s && source->stream)
    s = cb_driver_check(driver, driver->call.stream_synchronize(source->stream), diag, "wait for the allocator's stream");
  return s;
}

static void release(const struct cb_device *device, const struct block *block) {
  const struct cb_memory_source *source = &block->source;
  struct cb_numerics ours;
  if (!source->allocate) {
    device->driver->call.memory_free(block->address);
    return;
  }
  cb_numerics_pause(&ours);
  source->release(source->user, (void *)(uintptr_t)block->address, block->bytes, source->stream);
  cb_numerics_resume(&ours);
}

/* ---- blocks */

/* Room for one more block, and for its bytes below the limit, which are taken from now on. */
static enum cb_status reserve(struct cb_memory *memory, const struct cb_device *device, size_t bytes, const char *what,
                              struct cb_diag *diag) {
  if (memory->limit && (int64_t)bytes > memory->limit - memory->taken)
    return cb_fail(diag, CB_ERR_MEMORY,
                   "'%s' takes %zu bytes on GPU %d, and of the %lld that 'memory-limit' permits %lld are taken", what,
                   bytes, device->ordinal, (long long)memory->limit, (long long)memory->taken);
  if (memory->count == memory->room) {
    const int64_t room = memory->room ? 2 * memory->room : 16;
    struct block *blocks = cb_realloc(memory->blocks, (size_t)room, sizeof *blocks);
    if (!blocks) return cb_fail_memory(diag, "a list of blocks", (uint64_t)room * sizeof *blocks);
    memory->blocks = blocks;
    memory->room = room;
  }
  memory->blocks[memory->count++] = (struct block){.bytes = bytes, .source = memory->source};
  memory->taken += (int64_t)bytes;
  if (memory->taken > memory->most) memory->most = memory->taken;
  return CB_OK;
}

/* The block of that address; one that is only reserved has none yet, and its bytes tell it from others. -1: none. */
static int64_t find(const struct cb_memory *memory, cb_device_ptr address, size_t bytes) {
  int64_t i = memory->count - 1;
  while (i >= 0 && (memory->blocks[i].address != address || (!address && memory->blocks[i].bytes != bytes))) i--;
  return i;
}

static struct block take_out(struct cb_memory *memory, int64_t i) {
  const struct block block = memory->blocks[i];
  memory->blocks[i] = memory->blocks[--memory->count];
  memory->taken -= (int64_t)block.bytes;
  return block;
}

static int has_spares(struct cb_memory *memory) {
  pthread_mutex_lock(&memory->lock);
  const int count = memory->spares_count;
  pthread_mutex_unlock(&memory->lock);
  return count > 0;
}

enum cb_status cb_memory_alloc(const struct cb_device *device, cb_device_ptr *address, size_t bytes, const char *what,
                               struct cb_diag *diag) {
  struct cb_memory *memory = device->memory;
  *address = 0;
  if (!bytes) bytes = 1;
  pthread_mutex_lock(&memory->lock);
  const struct cb_memory_source source = memory->source;
  enum cb_status s = reserve(memory, device, bytes, what, diag);
  pthread_mutex_unlock(&memory->lock);
  if (s) return s;
  s = allocate(device, &source, address, bytes, what, diag);
  if (s == CB_ERR_MEMORY && has_spares(memory)) {
    cb_memory_trim(device);
    if (diag) *diag->message = 0;
    s = allocate(device, &source, address, bytes, what, diag);
  }
  if (s && *address) release(device, &(struct block){*address, bytes, source});
  pthread_mutex_lock(&memory->lock);
  const int64_t own = find(memory, 0, bytes);
  if (s) take_out(memory, own);
  else memory->blocks[own].address = *address;
  pthread_mutex_unlock(&memory->lock);
  if (s) *address = 0;
  return s;
}

int cb_memory_release(const struct cb_device *device, cb_device_ptr address) {
  struct cb_memory *memory = device->memory;
  struct block block = {0};
  pthread_mutex_lock(&memory->lock);
  const int64_t i = find(memory, address, 0);
  if (i >= 0) block = take_out(memory, i);
  pthread_mutex_unlock(&memory->lock);
  if (i >= 0) release(device, &block);
  return i >= 0;
}

/* ---- spares */

enum { LEAST_SPARE = 1 << 17, MOST_SPARE = 1 << 22 }; /* bytes */

/* Of what is borrowed: powers of two. */
static size_t spare_bytes(size_t bytes) {
  size_t room = 1 << 19;
  while (room < bytes && room < MOST_SPARE) room *= 2;
  return room < bytes ? bytes : room;
}

static int may_spare(const struct cb_memory *memory) {
  return !memory->limit && !memory->source.allocate;
}

/* The smallest that is large enough, of `most` bytes; -1: none. */
static int fitting_spare(const struct cb_memory *memory, size_t bytes, size_t most) {
  int best = -1;
  for (int i = 0; i < memory->spares_count; i++) {
    const size_t room = memory->spares[i].bytes;
    if (room >= bytes && room <= most && (best < 0 || room < memory->spares[best].bytes)) best = i;
  }
  return best;
}

/* Whether there was one. */
static int take_spare(struct cb_memory *memory, const struct cb_device *device, cb_device_ptr *address, size_t bytes,
                      size_t most) {
  const int spare = may_spare(memory) ? fitting_spare(memory, bytes, most) : -1;
  if (spare < 0 || reserve(memory, device, memory->spares[spare].bytes, "", NULL)) return 0;
  *address = memory->blocks[memory->count - 1].address = memory->spares[spare].address;
  memory->spares[spare] = memory->spares[--memory->spares_count];
  return 1;
}

enum cb_status cb_memory_borrow(const struct cb_device *device, cb_device_ptr *address, size_t bytes, const char *what,
                                struct cb_diag *diag) {
  struct cb_memory *memory = device->memory;
  pthread_mutex_lock(&memory->lock);
  const int found = take_spare(memory, device, address, bytes, MOST_SPARE), rounds = may_spare(memory);
  pthread_mutex_unlock(&memory->lock);
  if (found || (rounds && !cb_memory_alloc(device, address, spare_bytes(bytes), what, NULL))) return CB_OK;
  return cb_memory_alloc(device, address, bytes, what, diag);
}

enum cb_status cb_memory_take(const struct cb_device *device, cb_device_ptr *address, size_t bytes, const char *what,
                              struct cb_diag *diag) {
  struct cb_memory *memory = device->memory;
  pthread_mutex_lock(&memory->lock);
  const int found = take_spare(memory, device, address, bytes, 2 * bytes);
  pthread_mutex_unlock(&memory->lock);
  return found ? CB_OK : cb_memory_alloc(device, address, bytes, what, diag);
}

/* With the lock. -1: it is none that would be kept. */
static int64_t find_kept(const struct cb_memory *memory, cb_device_ptr address) {
  const int64_t i = find(memory, address, 0);
  const int keeps = i >= 0 && may_spare(memory) && !memory->blocks[i].source.allocate &&
                    memory->blocks[i].bytes >= LEAST_SPARE && memory->blocks[i].bytes <= MOST_SPARE &&
                    memory->spares_count < CB_MEMORY_SPARES;
  return keeps ? i : -1;
}

int cb_memory_keep(const struct cb_device *device, cb_device_ptr address) {
  struct cb_memory *memory = device->memory;
  pthread_mutex_lock(&memory->lock);
  const int64_t i = find_kept(memory, address);
  if (i >= 0) memory->spares[memory->spares_count++] = take_out(memory, i);
  pthread_mutex_unlock(&memory->lock);
  return i >= 0;
}

int cb_memory_keeps(const struct cb_device *device, cb_device_ptr address) {
  struct cb_memory *memory = device->memory;
  pthread_mutex_lock(&memory->lock);
  const int keeps = find_kept(memory, address) >= 0;
  pthread_mutex_unlock(&memory->lock);
  return keeps;
}

void cb_memory_trim(const struct cb_device *device) {
  struct cb_memory *memory = device->memory;
  struct block spares[CB_MEMORY_SPARES];
  if (!memory) return;
  pthread_mutex_lock(&memory->lock);
  const int count = memory->spares_count;
  memcpy(spares, memory->spares, sizeof spares);
  memory->spares_count = 0;
  pthread_mutex_unlock(&memory->lock);
  for (int i = 0; i < count; i++) release(device, &spares[i]);
}
