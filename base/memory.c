// SPDX-License-Identifier: Apache-2.0
/* Checked allocation: see memory.h. The counters are atomic because analysis allocates from several threads. */
#include "base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

static atomic_uint_fast64_t made;
static atomic_uint_fast64_t fail_at;
static atomic_int fail_sticky;

static int must_fail(void) {
  const uint64_t number = atomic_fetch_add_explicit(&made, 1, memory_order_relaxed) + 1;
  const uint64_t target = atomic_load_explicit(&fail_at, memory_order_relaxed);
  if (!target) return 0;
  return number == target || (number > target && atomic_load_explicit(&fail_sticky, memory_order_relaxed));
}

static int byte_count(size_t count, size_t size, size_t *bytes) {
  if (__builtin_mul_overflow(count, size, bytes) || *bytes > PTRDIFF_MAX) return 0;
  if (!*bytes) *bytes = 1;
  return 1;
}

/* Large blocks get huge pages where the system has them: set-up writes to much memory once, and the first writes to
 * pages of 4 KiB take longer than what is written. */
static void *with_huge_pages(void *block, size_t bytes) {
  enum { LARGE = 4 << 20, PAGE = 4096 };
  const uintptr_t begin = ((uintptr_t)block + PAGE - 1) / PAGE * PAGE, end = ((uintptr_t)block + bytes) / PAGE * PAGE;
  if (block && bytes >= LARGE) madvise((void *)begin, end - begin, MADV_HUGEPAGE); /* a hint: no matter if it fails */
  return block;
}

void *cb_alloc(size_t count, size_t size) {
  size_t bytes;
  if (must_fail() || !byte_count(count, size, &bytes)) return NULL;
  return with_huge_pages(malloc(bytes), bytes);
}

void *cb_calloc(size_t count, size_t size) {
  size_t bytes;
  if (must_fail() || !byte_count(count, size, &bytes)) return NULL;
  return with_huge_pages(calloc(bytes, 1), bytes);
}

void *cb_realloc(void *block, size_t count, size_t size) {
  size_t bytes;
  if (must_fail() || !byte_count(count, size, &bytes)) return NULL;
  return realloc(block, bytes);
}

void cb_free(void *block) { free(block); }

uint64_t cb_memory_fail_at(uint64_t nth, int sticky) {
  const uint64_t before = atomic_exchange(&made, 0);
  atomic_store(&fail_sticky, sticky);
  atomic_store(&fail_at, nth);
  return before;
}
