// SPDX-License-Identifier: Apache-2.0
/* The fake driver: see fake_driver.h. Every exported function starts with `enter`, which counts it and says
 * whether it is the one that shall fail. For one thread at a time. */
#include "fake_driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum {
  SUCCESS = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  NO_DEVICE = 100,
  INVALID_DEVICE = 101,
  INVALID_IMAGE = 200,
  INVALID_CONTEXT = 201,
  INVALID_HANDLE = 400,
  NOT_FOUND = 500
};
enum { MULTIPROCESSORS = 7, SHARED_PER_BLOCK = 227 << 10, PLAIN_SHARED = 48 << 10 };

static struct fake_control state = {.devices = 1, .capability = 90, .memory = (size_t)1 << 30};
EXPORT struct fake_control *const fake_control = &state;

/* Everything that was created, in one list. */
enum kind { BLOCK, MODULE, KERNEL, STREAM, EVENT };
struct thing {
  enum kind kind;
  char *bytes; /* BLOCK: its memory; MODULE: a copy of the image */
  size_t length;
  struct thing *module; /* KERNEL: where it is from */
  char name[128];
  int dynamic_shared;
  long stamp; /* EVENT: launches at its record */
  struct thing *next;
};
static struct thing *things;
static char context_tag; /* its address is the one primary context */
static int retained;

static unsigned misuse(unsigned result, const char *what) {
  if (!state.misuses++) snprintf(state.misuse, sizeof state.misuse, "%s", what);
  return result;
}

static unsigned enter(const char *function) {
  if (++state.calls != state.fail_at) return SUCCESS;
  snprintf(state.failed, sizeof state.failed, "%s", function);
  return state.failure;
}

/* For functions that need a current context. */
static unsigned enter_current(const char *function) {
  const unsigned result = enter(function);
  return result || state.pushed ? result : misuse(INVALID_CONTEXT, "no context is current");
}

#define ENTER                                                                                                \
  do {                                                                                                       \
    const unsigned result_of_enter = enter(__func__);                                                        \
    if (result_of_enter) return result_of_enter;                                                             \
  } while (0)
#define ENTER_CURRENT                                                                                        \
  do {                                                                                                       \
    const unsigned result_of_enter = enter_current(__func__);                                                \
    if (result_of_enter) return result_of_enter;                                                             \
  } while (0)

static long *counter(enum kind kind) {
  static long kernels;
  switch (kind) {
  case BLOCK:
    return &state.blocks;
  case MODULE:
    return &state.modules;
  case STREAM:
    return &state.streams;
  case EVENT:
    return &state.events;
  default:
    return &kernels;
  }
}

static struct thing *create(enum kind kind, size_t length) {
  struct thing *thing = calloc(1, sizeof *thing);
  if (!thing) abort();
  thing->kind = kind;
  thing->length = length;
  thing->bytes = length ? malloc(length) : NULL;
  if (length && !thing->bytes) abort();
  thing->next = things;
  things = thing;
  ++*counter(kind);
  return thing;
}

static struct thing *find(const void *handle, enum kind kind) {
  for (struct thing *thing = things; thing; thing = thing->next)
    if (thing == handle && thing->kind == kind) return thing;
  return NULL;
}

static void destroy(struct thing *thing) {
  struct thing **at = &things;
  while (*at != thing) at = &(*at)->next;
  *at = thing->next;
  --*counter(thing->kind);
  free(thing->bytes);
  free(thing);
}

EXPORT void *fake_host(uint64_t address, size_t count) {
  for (struct thing *thing = things; thing; thing = thing->next) {
    const uint64_t begin = (uint64_t)(uintptr_t)thing->bytes;
    if (thing->kind == BLOCK && address >= begin && count <= thing->length &&
        address - begin <= thing->length - count)
      return thing->bytes + (address - begin);
  }
  misuse(INVALID_VALUE, "an address outside of all blocks");
  return NULL;
}

/* ---- the library and its devices */

EXPORT unsigned cuInit(unsigned flags) {
  ENTER;
  return flags ? INVALID_VALUE : state.devices ? SUCCESS : NO_DEVICE;
}

EXPORT unsigned cuDriverGetVersion(int *version) {
  ENTER;
  *version = 13000;
  return SUCCESS;
}

EXPORT unsigned cuGetErrorString(unsigned error, const char **text) {
  static char words[64];
  snprintf(words, sizeof words, "the fake driver's error %u", error);
  *text = words;
  return SUCCESS;
}

EXPORT unsigned cuGetErrorName(unsigned error, const char **text) {
  static char name[64];
  snprintf(name, sizeof name, "FAKE_ERROR_%u", error);
  *text = name;
  return SUCCESS;
}

EXPORT unsigned cuDeviceGetCount(int *count) {
  ENTER;
  *count = state.devices;
  return SUCCESS;
}

EXPORT unsigned cuDeviceGet(int *device, int ordinal) {
  ENTER;
  if (ordinal < 0 || ordinal >= state.devices) return misuse(INVALID_DEVICE, "no such device");
  *device = 40 + ordinal; /* handles are not ordinals */
  return SUCCESS;
}

EXPORT unsigned cuDeviceGetName(char *name, int length, int device) {
  ENTER;
  if (device < 40) return misuse(INVALID_DEVICE, "no such device");
  snprintf(name, (size_t)length, "Fake GPU");
  return SUCCESS;
}

EXPORT unsigned cuDeviceGetAttribute(int *value, int attribute, int device) {
  const struct {
    int attribute, value;
  } rows[] = {
      {10, 32}, /* warp size */
      {16, MULTIPROCESSORS},
      {38, 1 << 20 /* L2 */},
      {75, state.capability / 10},
      {76, state.capability % 10},
      {81, 228 << 10},
      {97, SHARED_PER_BLOCK},
  };
  ENTER;
  if (device < 40) return misuse(INVALID_DEVICE, "no such device");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].attribute == attribute) {
      *value = rows[i].value;
      return SUCCESS;
    }
  return misuse(INVALID_VALUE, "an attribute that the fake driver does not know");
}

/* ---- contexts */

EXPORT unsigned cuDevicePrimaryCtxRetain(void **context, int device) {
  ENTER;
  if (device < 40) return misuse(INVALID_DEVICE, "no such device");
  retained++;
  state.contexts++;
  *context = &context_tag;
  return SUCCESS;
}

EXPORT unsigned cuDevicePrimaryCtxRelease_v2(int device) {
  const unsigned result = enter(__func__);
  if (device < 40 || !retained) return misuse(INVALID_CONTEXT, "a context released that was not retained");
  state.contexts--;
  if (--retained == 0 && things) {
    for (struct thing *thing = things; thing; thing = thing->next)
      if (thing->kind != KERNEL) misuse(SUCCESS, "something is left in a context that was released");
  }
  return result;
}

EXPORT unsigned cuCtxPushCurrent_v2(void *context) {
  ENTER;
  if (context != &context_tag || !retained) return misuse(INVALID_CONTEXT, "no context to push");
  state.pushed++;
  return SUCCESS;
}

EXPORT unsigned cuCtxPopCurrent_v2(void **context) {
  const unsigned result = enter(__func__);
  if (!state.pushed) return misuse(INVALID_CONTEXT, "no context to pop");
  state.pushed--;
  *context = &context_tag;
  return result;
}

EXPORT unsigned cuCtxGetCurrent(void **context) {
  ENTER;
  *context = state.pushed ? &context_tag : NULL;
  return SUCCESS;
}

EXPORT unsigned cuCtxSynchronize(void) {
  ENTER_CURRENT;
  state.waits++;
  return SUCCESS;
}

/* ---- memory */

EXPORT unsigned cuMemGetInfo_v2(size_t *available, size_t *total) {
  ENTER_CURRENT;
  *available = state.memory - state.bytes;
  *total = state.memory;
  return SUCCESS;
}

EXPORT unsigned cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  ENTER_CURRENT;
  if (!bytes) return misuse(INVALID_VALUE, "an allocation of 0 bytes");
  if (bytes > state.memory - state.bytes) return OUT_OF_MEMORY;
  struct thing *block = create(BLOCK, bytes);
  memset(block->bytes, 0xa5, bytes);
  state.bytes += bytes;
  state.allocations++;
  *address = (uint64_t)(uintptr_t)block->bytes;
  return SUCCESS;
}

EXPORT unsigned cuMemFree_v2(uint64_t address) {
  const unsigned result = enter_current(__func__);
  for (struct thing *thing = things; thing; thing = thing->next)
    if (thing->kind == BLOCK && (uint64_t)(uintptr_t)thing->bytes == address) {
      state.bytes -= thing->length;
      destroy(thing);
      return result;
    }
  return misuse(INVALID_VALUE, "a block freed that is none");
}

EXPORT unsigned cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) {
  ENTER_CURRENT;
  void *place = fake_host(to, bytes);
  if (!place) return INVALID_VALUE;
  memcpy(place, from, bytes);
  return SUCCESS;
}

EXPORT unsigned cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
  ENTER_CURRENT;
  const void *place = fake_host(from, bytes);
  if (!place) return INVALID_VALUE;
  memcpy(to, place, bytes);
  return SUCCESS;
}

EXPORT unsigned cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream) {
  ENTER_CURRENT;
  void *target = fake_host(to, bytes);
  const void *source = fake_host(from, bytes);
  if (!target || !source) return INVALID_VALUE;
  if (stream && !find(stream, STREAM)) return misuse(INVALID_HANDLE, "a stream that is none");
  memmove(target, source, bytes);
  return SUCCESS;
}

EXPORT unsigned cuMemsetD8_v2(uint64_t to, unsigned char byte, size_t bytes) {
  ENTER_CURRENT;
  void *place = fake_host(to, bytes);
  if (!place) return INVALID_VALUE;
  memset(place, byte, bytes);
  return SUCCESS;
}

EXPORT unsigned cuMemsetD8Async(uint64_t to, unsigned char byte, size_t bytes, void *stream) {
  ENTER_CURRENT;
  void *place = fake_host(to, bytes);
  if (!place) return INVALID_VALUE;
  if (stream && !find(stream, STREAM)) return misuse(INVALID_HANDLE, "a stream that is none");
  memset(place, byte, bytes);
  return SUCCESS;
}

/* ---- kernels. An image is an ELF file, or text; a module has each kernel whose name occurs in it. */

static size_t image_length(const unsigned char *image) {
  uint64_t sections;
  uint16_t size, count;
  if (memcmp(image, "\177ELF", 4)) return strlen((const char *)image);
  memcpy(&sections, image + 40, sizeof sections);
  memcpy(&size, image + 58, sizeof size);
  memcpy(&count, image + 60, sizeof count);
  return (size_t)(sections + (uint64_t)size * count);
}

EXPORT unsigned cuModuleLoadData(void **module, const void *image) {
  ENTER_CURRENT;
  const size_t length = image_length(image);
  if (!length) return misuse(INVALID_IMAGE, "an empty image");
  struct thing *thing = create(MODULE, length);
  memcpy(thing->bytes, image, length);
  *module = thing;
  return SUCCESS;
}

EXPORT unsigned cuModuleUnload(void *module) {
  const unsigned result = enter_current(__func__);
  struct thing *thing = find(module, MODULE);
  if (!thing) return misuse(INVALID_HANDLE, "a module unloaded that is none");
  for (struct thing *kernel = things, *next; kernel; kernel = next) {
    next = kernel->next;
    if (kernel->kind == KERNEL && kernel->module == thing) destroy(kernel);
  }
  destroy(thing);
  return result;
}

static int has_word(const struct thing *module, const char *name) {
  const size_t length = strlen(name);
  for (const char *at = module->bytes;
       (at = memmem(at, module->length - (size_t)(at - module->bytes), name, length)); at++) {
    const size_t begin = (size_t)(at - module->bytes), end = begin + length;
    const int starts = !begin || at[-1] == 0 || at[-1] == ' ';
    if (starts && (end == module->length || at[length] == 0 || at[length] == ' ')) return 1;
  }
  return 0;
}

EXPORT unsigned cuModuleGetFunction(void **kernel, void *module, const char *name) {
  ENTER_CURRENT;
  struct thing *owner = find(module, MODULE);
  if (!owner) return misuse(INVALID_HANDLE, "a module that is none");
  if (!has_word(owner, name)) return NOT_FOUND;
  struct thing *thing = create(KERNEL, 0);
  thing->module = owner;
  snprintf(thing->name, sizeof thing->name, "%s", name);
  *kernel = thing;
  return SUCCESS;
}

EXPORT unsigned cuFuncGetAttribute(int *value, int attribute, void *kernel) {
  ENTER_CURRENT;
  struct thing *thing = find(kernel, KERNEL);
  if (!thing) return misuse(INVALID_HANDLE, "a kernel that is none");
  *value = attribute == 0 ? 1024 : attribute == 4 ? 32 : attribute == 8 ? thing->dynamic_shared : 0;
  return SUCCESS;
}

EXPORT unsigned cuFuncSetAttribute(void *kernel, int attribute, int value) {
  ENTER_CURRENT;
  struct thing *thing = find(kernel, KERNEL);
  if (!thing) return misuse(INVALID_HANDLE, "a kernel that is none");
  if (attribute == 8 && value > SHARED_PER_BLOCK) return INVALID_VALUE;
  if (attribute == 8) thing->dynamic_shared = value;
  return SUCCESS;
}

EXPORT unsigned cuFuncLoad(void *kernel) {
  ENTER_CURRENT;
  return find(kernel, KERNEL) ? SUCCESS : misuse(INVALID_HANDLE, "a kernel that is none");
}

static int is_launchable(const struct thing *kernel, const struct fake_launch *launch) {
  const unsigned allowed =
      kernel->dynamic_shared > PLAIN_SHARED ? (unsigned)kernel->dynamic_shared : PLAIN_SHARED;
  const unsigned threads = launch->threads[0] * launch->threads[1] * launch->threads[2];
  return launch->grid[0] && launch->grid[0] <= INT32_MAX && launch->grid[1] == 1 && launch->grid[2] == 1 &&
         threads && threads <= 1024 && launch->shared <= allowed;
}

EXPORT unsigned cuLaunchKernel(void *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                               unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                               void *stream, void **parameters, void **extra) {
  ENTER_CURRENT;
  const struct thing *thing = find(kernel, KERNEL);
  if (!thing) return misuse(INVALID_HANDLE, "a kernel that is none");
  if (stream && !find(stream, STREAM)) return misuse(INVALID_HANDLE, "a stream that is none");
  const struct fake_launch launch = {
      thing->name, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, stream, parameters};
  if (extra || !is_launchable(thing, &launch))
    return misuse(INVALID_VALUE, "a launch beyond the GPU's limits");
  state.launches++;
  if (state.hook) state.hook(state.user, &launch);
  return SUCCESS;
}

/* ---- streams and events. A launch takes 5 µs on the fake clock. */

static unsigned create_handle(void **handle, enum kind kind) {
  *handle = create(kind, 0);
  return SUCCESS;
}

static unsigned destroy_handle(void *handle, enum kind kind, unsigned result) {
  struct thing *thing = find(handle, kind);
  if (!thing) return misuse(INVALID_HANDLE, "a stream or event destroyed that is none");
  destroy(thing);
  return result;
}

EXPORT unsigned cuStreamCreate(void **stream, unsigned flags) {
  ENTER_CURRENT;
  return flags > 1 ? misuse(INVALID_VALUE, "flags of a stream") : create_handle(stream, STREAM);
}

EXPORT unsigned cuStreamDestroy_v2(void *stream) {
  return destroy_handle(stream, STREAM, enter_current(__func__));
}

EXPORT unsigned cuStreamSynchronize(void *stream) {
  ENTER_CURRENT;
  state.waits++;
  return !stream || find(stream, STREAM) ? SUCCESS : misuse(INVALID_HANDLE, "a stream that is none");
}

EXPORT unsigned cuEventCreate(void **event, unsigned flags) {
  ENTER_CURRENT;
  return flags > 7 ? misuse(INVALID_VALUE, "flags of an event") : create_handle(event, EVENT);
}

EXPORT unsigned cuEventDestroy_v2(void *event) {
  return destroy_handle(event, EVENT, enter_current(__func__));
}

EXPORT unsigned cuEventRecord(void *event, void *stream) {
  ENTER_CURRENT;
  struct thing *thing = find(event, EVENT);
  if (!thing || (stream && !find(stream, STREAM)))
    return misuse(INVALID_HANDLE, "an event or stream that is none");
  thing->stamp = 1 + state.launches;
  return SUCCESS;
}

EXPORT unsigned cuEventSynchronize(void *event) {
  ENTER_CURRENT;
  state.waits++;
  return find(event, EVENT) ? SUCCESS : misuse(INVALID_HANDLE, "an event that is none");
}

EXPORT unsigned cuEventElapsedTime(float *milliseconds, void *from, void *to) {
  ENTER_CURRENT;
  const struct thing *begin = find(from, EVENT), *end = find(to, EVENT);
  if (!begin || !end || !begin->stamp || !end->stamp)
    return misuse(INVALID_HANDLE, "an event that was not recorded");
  *milliseconds = 0.005f * (float)(end->stamp - begin->stamp) + 0.0001f;
  return SUCCESS;
}
