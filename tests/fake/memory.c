// SPDX-License-Identifier: Apache-2.0
/* Device memory, pinned memory, copies, and what a pointer is: see state.h.
 *
 * A GPU's memory is a file in memory that is mapped twice: at its device addresses, which can be used only
 * while one of its kernels runs, and elsewhere for the host's part of this library. Addresses are not used
 * again before all others have been, so an address that outlived its block finds nothing. The bytes around a
 * block are guards: checked after every launch, and poisoned under AddressSanitizer.
 */
#include "tests/fake/state.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FAKE_POISON
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define FAKE_POISON
#endif
#ifdef FAKE_POISON
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, bytes) ((void)(p), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(p, bytes) ((void)(p), (void)(bytes))
#endif

enum { PAGE = 4096, GUARD = 256, GUARD_BYTE = 0xa5 };
static const size_t arena_bytes = (size_t)16 << 30;

static struct arena {
  int file;
  char *device, *host; /* the two views */
  size_t next;         /* where to look for room */
  size_t begin, end;   /* of all blocks, while a kernel uses them */
} arenas[FAKE_DEVICES];

static int open_arena(struct arena *arena) {
  if (arena->host) return 1;
  arena->file = memfd_create("fake_gpu", MFD_CLOEXEC);
  if (arena->file < 0 || ftruncate(arena->file, (off_t)arena_bytes)) return 0;
  arena->device = mmap(NULL, arena_bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, arena->file, 0);
  arena->host = mmap(NULL, arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, arena->file, 0);
  if (arena->device == MAP_FAILED || arena->host == MAP_FAILED) abort();
  return 1;
}

/* ---- blocks: at `address` lie `length` bytes, with guards up to whole pages on both sides */

static size_t begin_of(const struct thing *block) {
  return (size_t)(block->address - (uint64_t)(uintptr_t)arenas[block->device].device) - GUARD;
}

static size_t span_of(size_t bytes) {
  return (bytes + 2 * GUARD + PAGE - 1) / PAGE * PAGE;
}

static const struct thing *block_within(int device, size_t begin, size_t span) {
  for (const struct thing *block = first_thing(); block; block = block->next)
    if (block->kind == BLOCK && block->device == device && block->address &&
        begin < begin_of(block) + span_of(block->length) && begin_of(block) < begin + span)
      return block;
  return NULL;
}

/* A free place of `span` bytes; arena_bytes: none. */
static size_t find_room(int device, size_t span) {
  size_t begin = arenas[device].next;
  for (int round = 0; round < 2; round++, begin = 0) {
    const struct thing *other;
    while (begin + span <= arena_bytes && (other = block_within(device, begin, span)))
      begin = begin_of(other) + span_of(other->length);
    if (begin + span <= arena_bytes) return begin;
  }
  return arena_bytes;
}

struct thing *allocate(int device, size_t bytes) {
  struct arena *const arena = &arenas[device];
  const size_t span = span_of(bytes);
  if (bytes > state.memory - state.device_bytes[device] || span > arena_bytes || !open_arena(arena))
    return NULL;
  const size_t begin = find_room(device, span);
  if (begin == arena_bytes) return NULL;
  struct thing *const block = create(BLOCK, device);
  arena->next = begin + span;
  block->address = (uint64_t)(uintptr_t)(arena->device + begin + GUARD);
  block->bytes = arena->host + begin + GUARD;
  block->length = bytes;
  state.device_bytes[device] += bytes;
  memset(block->bytes - GUARD, GUARD_BYTE, span);
  memset(block->bytes, 0xff, bytes);
  ASAN_POISON_MEMORY_REGION(arena->device + begin, span);
  ASAN_UNPOISON_MEMORY_REGION(arena->device + begin + GUARD, bytes);
  return block;
}

void release_block(struct thing *block) {
  const size_t begin = begin_of(block), span = span_of(block->length);
  state.device_bytes[block->device] -= block->length;
  if (!block->app) state.bytes -= block->length;
  ASAN_POISON_MEMORY_REGION(arenas[block->device].device + begin, span);
  fallocate(arenas[block->device].file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)begin,
            (off_t)span);
}

/* `count` is at least 1. */
static int is_guard(const unsigned char *bytes, size_t count) {
  return bytes[0] == GUARD_BYTE && !memcmp(bytes, bytes + 1, count - 1);
}

static void protect(const struct arena *arena, int how) {
  if (arena->begin < arena->end && mprotect(arena->device + arena->begin, arena->end - arena->begin, how)) abort();
}

/* Only where blocks are: what was ever used grows, and every page of it would take its time. */
void open_memory(int device) {
  struct arena *arena = &arenas[device];
  arena->begin = arena_bytes;
  arena->end = 0;
  for (const struct thing *block = first_thing(); block; block = block->next) {
    if (block->kind != BLOCK || block->device != device) continue;
    const size_t begin = begin_of(block), end = begin + span_of(block->length);
    if (arena->begin > begin) arena->begin = begin;
    if (arena->end < end) arena->end = end;
  }
  protect(arena, PROT_READ | PROT_WRITE);
}

const struct thing *close_memory(int device) {
  protect(&arenas[device], PROT_NONE);
  for (const struct thing *block = first_thing(); block; block = block->next) {
    if (block->kind != BLOCK || block->device != device) continue;
    const unsigned char *const bytes = (const unsigned char *)block->bytes;
    if (!is_guard(bytes - GUARD, GUARD) ||
        !is_guard(bytes + block->length, span_of(block->length) - GUARD - block->length))
      return block;
  }
  return NULL;
}

/* ---- finding addresses */

static struct thing *thing_at(uint64_t address, size_t count) {
  for (struct thing *thing = first_thing(); thing; thing = thing->next) {
    const uint64_t begin = thing->kind == PINNED ? (uint64_t)(uintptr_t)thing->bytes : thing->address;
    if ((thing->kind == BLOCK || thing->kind == PINNED) && address >= begin && count <= thing->length &&
        address - begin <= thing->length - count)
      return thing;
  }
  return NULL;
}

void *view(uint64_t address, size_t count, int device) {
  const struct thing *thing = thing_at(address, count);
  if (!thing || (thing->kind == BLOCK && device >= 0 && thing->device != device)) return NULL;
  return thing->bytes +
         (address - (thing->kind == PINNED ? (uint64_t)(uintptr_t)thing->bytes : thing->address));
}

/* Whether some GPU's memory could be there, which the host cannot use. */
static int is_device_address(const void *pointer) {
  for (int d = 0; d < FAKE_DEVICES; d++)
    if (arenas[d].host && (size_t)((uintptr_t)pointer - (uintptr_t)arenas[d].device) < arena_bytes) return 1;
  return 0;
}

EXPORT void *fake_host(uint64_t address, size_t count) {
  LOCK;
  void *const bytes = view(address, count, -1);
  if (!bytes) misuse(INVALID_VALUE, "an address outside of all blocks");
  return bytes;
}

/* ---- copies */

static unsigned check_device_side(const struct work *work, uint64_t address) {
  if (view(address, work->bytes, work->device)) return SUCCESS;
  const struct thing *thing = thing_at(address, work->bytes);
  if (thing)
    return misuse(INVALID_VALUE, "memory of GPU %d in the context of GPU %d", thing->device, work->device);
  return misuse(INVALID_VALUE, "an address outside of all blocks");
}

static unsigned check_host_side(uint64_t address) {
  if (!address || is_device_address((const void *)(uintptr_t)address))
    return misuse(INVALID_VALUE, "a device address where one of the host is due");
  return SUCCESS;
}

unsigned check_copy(const struct work *work) {
  unsigned result = SUCCESS;
  if (!work->bytes) return SUCCESS;
  if (work->kind != COPY_TO_HOST) result = check_device_side(work, work->to);
  if (!result && work->kind == COPY_TO_HOST) result = check_host_side(work->to);
  if (!result && work->kind == COPY_TO_DEVICE) result = check_host_side(work->from);
  if (!result && (work->kind == COPY_ON_DEVICE || work->kind == COPY_TO_HOST))
    result = check_device_side(work, work->from);
  return result;
}

unsigned perform_copy(const struct work *work) {
  void *to = (void *)(uintptr_t)work->to;
  const void *from = (const void *)(uintptr_t)work->from;
  if (work->kind == COPY_TO_DEVICE) state.copies_to_device++;
  if (work->kind == COPY_TO_HOST) state.copies_to_host++;
  if (work->kind == FILL) state.fills++;
  if (!work->bytes) return SUCCESS;
  if (work->kind != COPY_TO_HOST) to = view(work->to, work->bytes, work->device);
  if (work->kind == COPY_ON_DEVICE || work->kind == COPY_TO_HOST)
    from = view(work->from, work->bytes, work->device);
  if (work->kind == FILL)
    memset(to, work->byte, work->bytes);
  else
    memmove(to, from, work->bytes);
  return SUCCESS;
}

static struct work copy_of(enum work_kind kind, uint64_t to, uint64_t from, size_t bytes) {
  return (struct work){.kind = kind, .device = current_device(), .to = to, .from = from, .bytes = bytes};
}

static uint64_t address_of(const void *pointer) {
  return (uint64_t)(uintptr_t)pointer;
}

/* The calls without a stream wait for what they do. */
static unsigned at_once(const struct work *work) {
  unsigned result = wait_for_stream(NULL);
  if (!result) result = check_copy(work);
  return result ? result : perform_copy(work);
}

EXPORT unsigned cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) {
  ENTER_UNSAFE;
  const struct work work = copy_of(COPY_TO_DEVICE, to, address_of(from), bytes);
  return at_once(&work);
}

EXPORT unsigned cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
  ENTER_UNSAFE;
  const struct work work = copy_of(COPY_TO_HOST, address_of(to), from, bytes);
  return at_once(&work);
}

EXPORT unsigned cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t bytes) {
  ENTER_UNSAFE;
  const struct work work = copy_of(COPY_ON_DEVICE, to, from, bytes);
  return at_once(&work);
}

EXPORT unsigned cuMemsetD8_v2(uint64_t to, unsigned char byte, size_t bytes) {
  ENTER_UNSAFE;
  struct work work = copy_of(FILL, to, 0, bytes);
  work.byte = byte;
  return at_once(&work);
}

EXPORT unsigned cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
  ENTER_CURRENT;
  const struct work work = copy_of(COPY_TO_DEVICE, to, address_of(from), bytes);
  return submit(&work, stream);
}

EXPORT unsigned cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
  ENTER_CURRENT;
  const struct work work = copy_of(COPY_TO_HOST, address_of(to), from, bytes);
  return submit(&work, stream);
}

EXPORT unsigned cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream) {
  ENTER_CURRENT;
  const struct work work = copy_of(COPY_ON_DEVICE, to, from, bytes);
  return submit(&work, stream);
}

EXPORT unsigned cuMemsetD8Async(uint64_t to, unsigned char byte, size_t bytes, void *stream) {
  ENTER_CURRENT;
  struct work work = copy_of(FILL, to, 0, bytes);
  work.byte = byte;
  return submit(&work, stream);
}

/* ---- allocation */

EXPORT unsigned cuMemGetInfo_v2(size_t *available, size_t *total) {
  ENTER_CURRENT;
  *available = state.memory - state.device_bytes[current_device()];
  *total = state.memory;
  return SUCCESS;
}

EXPORT unsigned cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  ENTER_UNSAFE;
  if (!bytes) return misuse(INVALID_VALUE, "an allocation of 0 bytes");
  const struct thing *block = allocate(current_device(), bytes);
  if (!block) return OUT_OF_MEMORY;
  state.bytes += bytes;
  state.allocations++;
  *address = block->address;
  return SUCCESS;
}

EXPORT unsigned cuMemFree_v2(uint64_t address) {
  LOCK;
  const unsigned result = enter_unsafe(__func__);
  const int device = current_device();
  if (result == CAPTURE_UNSUPPORTED) return result;
  for (struct thing *thing = first_thing(); thing; thing = thing->next)
    if (thing->kind == BLOCK && thing->address == address) {
      if (device != thing->device || thing->app)
        return misuse(INVALID_VALUE, thing->app ? "the application's memory freed"
                                                : "a block freed in another GPU's context");
      finish_device(device, 0); /* freeing waits for the GPU */
      destroy(thing);
      return result;
    }
  return misuse(INVALID_VALUE, "a block freed that is none");
}

EXPORT unsigned cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags) {
  ENTER_UNSAFE;
  if (!bytes || flags > 7) return misuse(INVALID_VALUE, "pinned memory of 0 bytes, or unknown flags");
  struct thing *block = create(PINNED, current_device());
  block->bytes = malloc(bytes);
  if (!block->bytes) abort();
  memset(block->bytes, 0xff, bytes);
  block->length = bytes;
  state.allocations++;
  *pointer = block->bytes;
  return SUCCESS;
}

EXPORT unsigned cuMemAllocHost_v2(void **pointer, size_t bytes) {
  return cuMemHostAlloc(pointer, bytes, 0);
}

EXPORT unsigned cuMemFreeHost(void *pointer) {
  LOCK;
  const unsigned result = enter_unsafe(__func__);
  if (result == CAPTURE_UNSUPPORTED) return result;
  for (struct thing *thing = first_thing(); thing; thing = thing->next)
    if (thing->kind == PINNED && thing->bytes == pointer) {
      finish_device(thing->device, 0);
      destroy(thing);
      return result;
    }
  return misuse(INVALID_VALUE, "pinned memory freed that is none");
}

/* ---- what a pointer is */

enum {
  AT_CONTEXT = 1,
  AT_MEMORY_TYPE = 2,
  AT_DEVICE_POINTER = 3,
  AT_HOST_POINTER = 4,
  AT_MANAGED = 8,
  AT_ORDINAL = 9,
  AT_BEGIN = 11,
  AT_SIZE = 12
};

/* Writes the attribute; of a pointer that CUDA does not know, zeros. Returns 0 for an attribute that the fake
 * does not know. */
static int describe(void *data, int attribute, const struct thing *thing, uint64_t address) {
  const int pinned = thing && thing->kind == PINNED;
  void *const context = thing ? &contexts[thing->device] : NULL;
  const uint64_t begin = !thing ? 0 : pinned ? address_of(thing->bytes) : thing->address;
  const unsigned type = !thing ? 0 : pinned ? 1 : 2;
  const int ordinal = thing ? thing->device : -2; /* CU_DEVICE_INVALID */
  const int managed = 0;
  const uint64_t none = 0;
  const struct {
    int attribute;
    const void *value;
    size_t bytes;
  } rows[] = {
      {AT_CONTEXT, &context, sizeof context},
      {AT_MEMORY_TYPE, &type, sizeof type},
      {AT_DEVICE_POINTER, thing ? &address : &none, sizeof address},
      {AT_HOST_POINTER, pinned ? &address : &none, sizeof address},
      {AT_MANAGED, &managed, sizeof managed},
      {AT_ORDINAL, &ordinal, sizeof ordinal},
      {AT_BEGIN, &begin, sizeof begin},
      {AT_SIZE, thing ? &thing->length : (const size_t *)&none, sizeof(size_t)},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].attribute == attribute) {
      memcpy(data, rows[i].value, rows[i].bytes);
      return 1;
    }
  return 0;
}

EXPORT unsigned cuPointerGetAttribute(void *data, unsigned attribute, uint64_t address) {
  ENTER;
  const struct thing *thing = thing_at(address, 1);
  if (!thing) return INVALID_VALUE; /* memory that CUDA does not know: no misuse */
  if (describe(data, (int)attribute, thing, address)) return SUCCESS;
  return misuse(INVALID_VALUE, "an attribute of a pointer that the fake driver does not know");
}

EXPORT unsigned cuPointerGetAttributes(unsigned count, unsigned *attributes, void **data, uint64_t address) {
  ENTER;
  const struct thing *thing = thing_at(address, 1);
  for (unsigned i = 0; i < count; i++)
    if (!describe(data[i], (int)attributes[i], thing, address))
      return misuse(INVALID_VALUE, "an attribute of a pointer that the fake driver does not know");
  return SUCCESS;
}

/* ---- the application's memory */

EXPORT uint64_t fake_alloc(int device, size_t bytes) {
  LOCK;
  struct thing *block = device >= 0 && device < state.devices && bytes ? allocate(device, bytes) : NULL;
  if (!block) return 0;
  block->app = 1;
  state.blocks--;
  return block->address;
}

EXPORT void fake_free(uint64_t address) {
  LOCK;
  struct thing *thing = thing_at(address, 1);
  if (thing && thing->app && thing->address == address)
    destroy(thing);
  else
    misuse(INVALID_VALUE, "the application frees what is not its own");
}

EXPORT int fake_put(uint64_t to, const void *from, size_t bytes) {
  LOCK;
  void *place = view(to, bytes, -1);
  if (place) memcpy(place, from, bytes);
  return place != NULL;
}

EXPORT int fake_take(void *to, uint64_t from, size_t bytes) {
  LOCK;
  const void *place = view(from, bytes, -1);
  if (place) memcpy(to, place, bytes);
  return place != NULL;
}
