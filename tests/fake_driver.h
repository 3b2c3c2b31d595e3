// SPDX-License-Identifier: Apache-2.0
/* A libcuda.so.1 without a GPU, for tests: device memory is the host's, kernels are calls of a hook.
 *
 * The shared object exports the driver's functions (those that runtime/driver.c binds) and `fake_control`, a
 * pointer to the struct below. It keeps account of all that is created, checks every handle, address and
 * length, and can make the n-th call fail. Release calls (free, unload, destroy, pop) that are made to fail
 * do their work all the same: a failing one is no leak of the caller's.
 */
#ifndef CBGEN_TESTS_FAKE_DRIVER_H
#define CBGEN_TESTS_FAKE_DRIVER_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct fake_launch {
  const char *kernel;
  unsigned grid[3], threads[3], shared;
  void *stream;
  void **parameters;
};

struct fake_control {
  /* what there is now; all 0 once everything was given back */
  long contexts, pushed, blocks, modules, streams, events;
  size_t bytes; /* of the blocks */
  /* what happened so far */
  long calls, launches, waits, allocations;
  long misuses;     /* wrong handles, addresses or lengths, things left in a context that was released */
  char misuse[200]; /* the first of them */
  /* what shall happen */
  long fail_at;     /* the call with this number fails (calls starts at 0; the first call is 1); 0: none */
  unsigned failure; /* with this CUresult */
  char failed[64];  /* the function that did */
  int devices;      /* how many GPUs there are; 1 */
  int capability;   /* 90 */
  size_t memory;    /* bytes of the GPU: an allocation beyond gives CUDA_ERROR_OUT_OF_MEMORY */
  void (*hook)(void *user, const struct fake_launch *launch); /* called for each launch; may be NULL */
  void *user;
};

/* For tests: opens the driver at $CBGEN_FAKE_CUDA, as the library under test will, and returns its control
 * with everything set to how it starts. NULL when there is none. */
static inline struct fake_control *fake_open(void);

/* The host's pointer to `count` bytes at a device address, NULL when they do not lie in one live block. */
static inline void *fake_bytes(uint64_t address, size_t count);

/* Whether something is left that should have been given back. */
static inline int fake_is_clean(const struct fake_control *fake) {
  return !fake->contexts && !fake->pushed && !fake->blocks && !fake->modules && !fake->streams &&
         !fake->events && !fake->misuses;
}

static inline void *fake_symbol(const char *name) {
  const char *path = getenv("CBGEN_FAKE_CUDA");
  void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) : NULL;
  return library ? dlsym(library, name) : NULL;
}

static inline struct fake_control *fake_open(void) {
  struct fake_control *const *control = fake_symbol("fake_control");
  if (!control) return NULL;
  const struct fake_control fresh = {.devices = 1, .capability = 90, .memory = (size_t)1 << 30};
  **control = fresh;
  return *control;
}

static inline void *fake_bytes(uint64_t address, size_t count) {
  void *symbol = fake_symbol("fake_host");
  void *(*function)(uint64_t, size_t);
  memcpy(&function, &symbol, sizeof function);
  return function(address, count);
}

#endif
