// SPDX-License-Identifier: Apache-2.0
/* A profiler as NVTX knows it, for test_api_ranges.c: it notes the ranges that are pushed and popped. The protocol is
 * written down here once more, from the profiler's side. INJECTION_REFUSES in the environment: it does not start. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef void (*function)(void);
struct callbacks {
  size_t struct_size;
  int (*give_table)(int module, function ***table, unsigned *size);
};
struct version {
  size_t struct_size;
  unsigned version, reserved;
  void (*note)(unsigned version);
};

static char noted[1 << 16];
static int depth, deepest, underflows, modules;

static int push(const char *message) {
  const size_t length = strlen(noted);
  snprintf(noted + length, sizeof noted - length, "%d %s\n", depth, message);
  if (++depth > deepest) deepest = depth;
  return depth - 1;
}

static int pop(void) {
  if (!depth) underflows++;
  return --depth;
}

EXPORT const char *injection_noted(void) {
  return noted;
}
EXPORT void injection_forget(void) {
  *noted = 0;
}
EXPORT int injection_depth(void) {
  return underflows ? -1 : depth;
}
EXPORT int injection_modules(void) {
  return modules;
}

EXPORT int InitializeInjectionNvtx2(const void *(*exports)(unsigned number)) {
  enum { CALLBACKS = 1, VERSION = 3, CORE = 1, LAST_MODULE = 6, RANGE_PUSH = 9, RANGE_POP = 11 };
  const struct callbacks *callbacks = exports(CALLBACKS);
  const struct version *version = exports(VERSION);
  function **table = NULL;
  unsigned size = 0;
  if (exports(2) || !callbacks || !version) return 0;
  if (callbacks->struct_size != sizeof *callbacks || version->version != 3) return 0;
  version->note(3);
  for (int module = 0; module < 10; module++) {
    if (!callbacks->give_table(module, &table, &size)) continue;
    modules++;
    if (table[size] || !table[size - 1] || module < 1 || module > LAST_MODULE) return 0;
  }
  if (!callbacks->give_table(CORE, &table, &size) || size <= RANGE_POP) return 0;
  *table[RANGE_PUSH] = (function)push;
  *table[RANGE_POP] = (function)pop;
  return !getenv("INJECTION_REFUSES");
}
