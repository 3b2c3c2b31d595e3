// SPDX-License-Identifier: Apache-2.0
/* Device memory and the runtime calls around it: see emulation.h.
 *
 * Every allocation is a block of its own, filled with 0xff bytes (NaN as a floating-point number, out of
 * range as an index). Under AddressSanitizer its ends are exact; without it, guard bytes on both sides are
 * checked after every launch.
 */
#include "emulation.h"

enum { kAlignment = 256, kGuard = 256, kGuardByte = 0xa5 };
enum { kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 3 };
#ifdef EMULATION_SANITIZED
constexpr size_t guard_bytes = 0;
#else
constexpr size_t guard_bytes = kGuard;
#endif

struct Allocation {
  char *p;
  size_t bytes;
  const void *whole;  // that this is a part of, or nullptr
  bool changes;       // kernels may write it that kernels behind overlap with
};
static List<Allocation> allocations;

static int allocate(void **p, size_t bytes, const void *whole) {
  *p = nullptr;
  if (!bytes) return 0;
  void *block = nullptr;
  if (posix_memalign(&block, kAlignment, bytes + 2 * guard_bytes)) return 2;
  char *start = (char *)block + guard_bytes;
  memset(block, kGuardByte, guard_bytes);
  memset(start, 0xff, bytes);
  memset(start + bytes, kGuardByte, guard_bytes);
  allocations.add(Allocation{start, bytes, whole, false});
  *p = start;
  return 0;
}

// The one that has this byte; nullptr: none has.
static Allocation *allocation_of(const void *p) {
  for (size_t i = 0; i < allocations.count; i++) {
    Allocation &a = allocations.items[i];
    if ((size_t)((uintptr_t)p - (uintptr_t)a.p) < a.bytes) return &a;
  }
  return nullptr;
}

// The device side of a copy must lie in one allocation, the host side in none.
static void check_side(const void *p, size_t bytes, bool device) {
  const Allocation *const a = allocation_of(p);
  if (a && !device) stop(EMULATION_BOUNDS, "a copy takes a device pointer for one of the host");
  if (!a && device)
    stop(EMULATION_BOUNDS, "a copy of %zu bytes to or from a pointer outside all allocations", bytes);
  const size_t at = a ? (size_t)((uintptr_t)p - (uintptr_t)a->p) : 0;
  if (a && bytes > a->bytes - at)
    stop(EMULATION_BOUNDS, "a copy of %zu bytes at offset %zu of an allocation of %zu", bytes, at, a->bytes);
}

void emulated::note_changing(const void *p) {
  Allocation *const array = allocation_of(p);
  if (array) array->changes = true;
}

bool emulated::may_change(const void *p) {
  const Allocation *const array = allocation_of(p);
  return array && array->changes;
}

int emulated::allocate(void **p, size_t bytes) {
  return ::allocate(p, bytes, nullptr);
}

// A copy of bytes [offset, offset + bytes) of an allocation. It lives as long as that.
void *emulated::part_of(void *whole, size_t offset, size_t bytes) {
  void *part = nullptr;
  check_side((char *)whole + offset, bytes, true);
  if (::allocate(&part, bytes, whole)) stop(EMULATION_MEMORY, "no memory for a part of an allocation");
  memcpy(part, (char *)whole + offset, bytes);
  return part;
}

int emulated::release(void *p) {
  if (!p) return 0;
  for (size_t i = allocations.count; i-- > 0;) {
    if (allocations.items[i].whole != p) continue;
    free(allocations.items[i].p - guard_bytes);
    allocations.items[i] = allocations.items[--allocations.count];
  }
  for (size_t i = allocations.count; i-- > 0;) {
    if (allocations.items[i].p != p) continue;
    free((char *)p - guard_bytes);
    allocations.items[i] = allocations.items[--allocations.count];
    return 0;
  }
  stop(EMULATION_MEMORY, "cudaFree of a pointer that cudaMalloc did not return");
}

// For a program of its own that is asked for evidence: see jobs.h.
static void write_evidence(const void *from, size_t bytes) {
  const char *path = getenv("CBGEN_EMULATION_EVIDENCE"), *nonce = getenv("CBGEN_EMULATION_NONCE");
  FILE *file = path && nonce ? fopen(path, "wb") : nullptr;
  if (!file) return;
  const emulation_evidence evidence = {strtoull(nonce, nullptr, 10), machine.launch, bytes};
  const bool written = fwrite(&evidence, sizeof evidence, 1, file) == 1 && fwrite(from, 1, bytes, file) == bytes;
  if (fclose(file) || !written) stop(EMULATION_MEMORY, "what was copied from the device cannot be shown");
}

int emulated::copy(void *to, const void *from, size_t bytes, int kind) {
  if (kind < kHostToDevice || kind > kDeviceToDevice) return kInvalidValue;
  if (!bytes) return 0;
  check_side(to, bytes, kind != kDeviceToHost);
  check_side(from, bytes, kind != kHostToDevice);
  memcpy(to, from, bytes);
  if (kind == kDeviceToHost) write_evidence(to, bytes);
  return 0;
}

int emulated::fill(void *p, int byte, size_t bytes) {
  if (!bytes) return 0;
  check_side(p, bytes, true);
  memset(p, byte, bytes);
  return 0;
}

void check_guards() {
  for (size_t i = 0; i < allocations.count; i++) {
    const Allocation &a = allocations.items[i];
    for (size_t g = 0; g < guard_bytes; g++)
      if ((unsigned char)a.p[-1 - (ptrdiff_t)g] != kGuardByte ||
          (unsigned char)a.p[a.bytes + g] != kGuardByte)
        stop(EMULATION_OVERRUN, "a store beyond an allocation of %zu bytes", a.bytes);
  }
}

size_t live_allocations() {
  const size_t live = allocations.count;
  for (size_t i = 0; i < live; i++) free(allocations.items[i].p - guard_bytes);
  allocations.count = 0;
  return live;
}

// The record of runtime/operator/checks.h, which a caller in this process reads.
struct CheckRecord {
  unsigned state;
  int line;
  long long index, count;
  unsigned block, thread;
  char what[64];
};

void emulated::failed_check(unsigned long long place, long long index, long long count, const char *what, int line) {
  CheckRecord *const record = (CheckRecord *)(uintptr_t)place;
  if (record && !record->state) {
    record->line = line;
    record->index = index;
    record->count = count;
    record->block = blockIdx.x;
    record->thread = threadIdx.x;
    snprintf(record->what, sizeof record->what, "%s", what);
    record->state = 2;
  }
  stop(EMULATION_CHECK, "line %d: index %lld of '%s', which has %lld", line, index, what, count);
}

void emulated::misaligned(const void *p, size_t bytes, int line) {
  stop(EMULATION_ALIGNMENT, "line %d loads from address %p, which is no multiple of %zu", line, p, bytes);
}

const char *cudaGetErrorString(cudaError_t error) {
  switch (error) {
  case 0:
    return "no error";
  case 1:
    return "invalid argument";
  case 2:
    return "out of memory";
  case 9:
    return "invalid configuration argument";
  default:
    return "unknown error";
  }
}

cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
