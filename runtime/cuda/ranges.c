// SPDX-License-Identifier: Apache-2.0
/* The client's side of NVTX: see ranges.h.
 *
 * The profiler's library has a function InitializeInjectionNvtx2. It is given one that tells where the client's tables
 * are, asks for the table of each module, and writes its own functions where the table's entries point. */
#include "runtime/cuda/ranges.h"

#include "base/environment.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cb_ranges cb_ranges;

/* ---- tables: numbers are those of nvtxTypes.h */

typedef void (*function)(void);

enum { CORE = 1, CUDA, OPENCL, CUDART, CORE2, SYNC, MODULES };
enum { RANGE_PUSH = 9, RANGE_POP = 11, MOST_FUNCTIONS = 16 };

/* How many functions a module has, with number 0, which is none. */
static const unsigned sizes[MODULES] = {
    [CORE] = 16, [CUDA] = 9, [OPENCL] = 15, [CUDART] = 7, [CORE2] = 16, [SYNC] = 7};

static function functions[MODULES][MOST_FUNCTIONS];
static function *tables[MODULES][MOST_FUNCTIONS + 1]; /* end with a null pointer, as do those of NVTX */

static int give_table(int module, function ***table, unsigned *size) {
  if (module < CORE || module >= MODULES) return 0;
  for (unsigned i = 1; i < sizes[module]; i++) tables[module][i] = &functions[module][i];
  if (size) *size = sizes[module];
  if (table) *table = tables[module];
  return 1;
}

static void note_version(uint32_t version) {
  (void)version;
}

static const struct {
  size_t struct_size;
  int (*give_table)(int module, function ***table, unsigned *size);
} callbacks = {sizeof callbacks, give_table};

static const struct {
  size_t struct_size;
  uint32_t version, reserved;
  void (*note_version)(uint32_t version);
} version_info = {sizeof version_info, 3, 0, note_version};

static const void *give_export(uint32_t number) {
  enum { CALLBACKS = 1, VERSION_INFO = 3 };
  return number == CALLBACKS ? (const void *)&callbacks : number == VERSION_INFO ? (const void *)&version_info : NULL;
}

/* ---- the profiler */

/* Both or neither. */
static void take(function push, function pop) {
  if (!push || !pop) return;
  memcpy(&cb_ranges.pop, &pop, sizeof pop);
  memcpy(&cb_ranges.push, &push, sizeof push);
}

/* A profiler may be loaded already. Its library stays. */
static void attach(void) {
  static const char entry[] = "InitializeInjectionNvtx2";
  const char *const path = cb_environment("NVTX_INJECTION64_PATH");
  void *found = dlsym(RTLD_DEFAULT, entry);
  int (*initialise)(const void *(*exports)(uint32_t number));
  if (!found && path && *path) {
    void *const library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    found = library ? dlsym(library, entry) : NULL;
  }
  if (!found) return;
  memcpy(&initialise, &found, sizeof found);
  if (initialise(give_export)) take(functions[CORE][RANGE_PUSH], functions[CORE][RANGE_POP]);
}

/* Of CUDA up to 12, for profilers that take its place. */
static void open_old_library(void) {
  void *const library = dlopen("libnvToolsExt.so.1", RTLD_LAZY | RTLD_LOCAL);
  void *const push = library ? dlsym(library, "nvtxRangePushA") : NULL, *const pop = library ? dlsym(library, "nvtxRangePop") : NULL;
  function functions_of_library[2];
  memcpy(&functions_of_library[0], &push, sizeof push);
  memcpy(&functions_of_library[1], &pop, sizeof pop);
  take(functions_of_library[0], functions_of_library[1]);
}

static void open_once(void) {
  const char *const asked = cb_environment("CBGEN_NVTX");
  if (cb_environment_is_foreign() || (asked && !strcmp(asked, "0"))) return;
  attach();
  if (!cb_ranges.push && asked && !strcmp(asked, "1")) open_old_library();
}

void cb_ranges_open(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, open_once);
}
