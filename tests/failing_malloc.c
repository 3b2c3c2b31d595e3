// SPDX-License-Identifier: Apache-2.0
/* See failing_malloc.h. The memory comes from below: from AddressSanitizer's allocator where it is there, so that
 * it checks as ever, else from the C library's. */
#include "failing_malloc.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unwind.h>

void *__interceptor_malloc(size_t bytes) __attribute__((weak));
void *__interceptor_calloc(size_t count, size_t size) __attribute__((weak));
void *__interceptor_realloc(void *block, size_t bytes) __attribute__((weak));
void __interceptor_free(void *block) __attribute__((weak));
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t bytes);
void __libc_free(void *block);

/* Libraries must find them. */
#define FOR_ALL __attribute__((visibility("default")))

static atomic_long made, fail_at, live, peak;
static atomic_int counting; /* from the first question on: a sanitizer cannot say a size before it is ready */

long fail_malloc_at(long nth) {
  const long before = atomic_exchange(&made, 0);
  atomic_store(&fail_at, nth);
  return before;
}

static int is_in(const void *code, const char *const *libraries) {
  Dl_info info;
  if (!dladdr(code, &info) || !info.dli_fname) return 0;
  for (; *libraries; libraries++)
    if (strstr(info.dli_fname, *libraries)) return 1;
  return 0;
}

static _Unwind_Reason_Code look_for_fake(struct _Unwind_Context *frame, void *found) {
  static const char *const fake[] = {"libfake_cuda", NULL};
  const uintptr_t code = _Unwind_GetIP(frame);
  *(int *)found = is_in((const void *)code, fake);
  return *(int *)found ? _URC_END_OF_STACK : _URC_NO_REASON;
}

/* backtrace() would load a library. */
static int is_spared(const void *caller) {
  static const char *const libraries[] = {"libgomp", "libomp", "ld-linux", "libarchive", NULL};
  int found = 0;
  if (is_in(caller, libraries)) return 1;
  _Unwind_Backtrace(look_for_fake, &found);
  return found;
}

static int must_fail(const void *caller) {
  const long number = atomic_fetch_add(&made, 1) + 1, target = atomic_load(&fail_at);
  if (!target || number != target || is_spared(caller)) return 0;
  errno = ENOMEM;
  return 1;
}

/* Blocks that are aligned by other functions are only seen when they are freed: few, and small. */
static void *count_in(void *block) {
  if (!block || !atomic_load(&counting)) return block;
  const long bytes = (long)malloc_usable_size(block), now = atomic_fetch_add(&live, bytes) + bytes;
  long most = atomic_load(&peak);
  while (now > most && !atomic_compare_exchange_weak(&peak, &most, now)) continue;
  return block;
}

static void count_out(void *block) {
  if (block && atomic_load(&counting)) atomic_fetch_sub(&live, (long)malloc_usable_size(block));
}

long peak_of_malloc(void) {
  static long from;
  atomic_store(&counting, 1);
  const long most = atomic_load(&peak) - from;
  from = atomic_load(&live);
  atomic_store(&peak, from);
  return most;
}

FOR_ALL void *malloc(size_t bytes) {
  if (must_fail(__builtin_return_address(0))) return NULL;
  return count_in(__interceptor_malloc ? __interceptor_malloc(bytes) : __libc_malloc(bytes));
}

FOR_ALL void *calloc(size_t count, size_t size) {
  if (must_fail(__builtin_return_address(0))) return NULL;
  return count_in(__interceptor_calloc ? __interceptor_calloc(count, size) : __libc_calloc(count, size));
}

FOR_ALL void *realloc(void *block, size_t bytes) {
  if (must_fail(__builtin_return_address(0))) return NULL;
  const size_t before = block && atomic_load(&counting) ? malloc_usable_size(block) : 0;
  void *larger = __interceptor_realloc ? __interceptor_realloc(block, bytes) : __libc_realloc(block, bytes);
  if (larger) atomic_fetch_sub(&live, (long)before);
  return larger ? count_in(larger) : NULL;
}

FOR_ALL void free(void *block) {
  count_out(block);
  if (__interceptor_free) __interceptor_free(block);
  else __libc_free(block);
}
