// SPDX-License-Identifier: Apache-2.0
/* A libcuda.so.1 and a libnvrtc without a GPU, for tests: one shared object that is both, and that really
 * executes generated kernels.
 *
 *   CBGEN_LIBCUDA, CBGEN_NVRTC   name the shared object to the library under test
 *   CBGEN_FAKE_CUDA              names it to the functions below
 *   CBGEN_FAKE_CACHE             directory of what it compiled; else one in $TMPDIR
 *   CBGEN_FAKE_SET               "devices=2,capability=80": members of the control, for programs that do not
 *                                know the fake
 *   CBGEN_FAKE_STRICT            if not empty, a misuse that is left at the end makes the exit status 99
 *   CBGEN_FAKE_CXX               another C++ compiler than the build's
 *   CBGEN_EMULATION_SEED         of the order in which warps run
 *
 * NVRTC's half wraps the text it is given into an ELF image that runtime/cuda/cubin.h can read. The driver's half
 * compiles such an image as C++ when a module is loaded (once for equal texts: the result is kept in
 * $CBGEN_FAKE_CACHE) and executes it on the emulator of runtime/verify/emulation, in a thread of its own and within
 * the call that launches. What the emulator finds (a race, an address out of bounds, a divergent barrier) is
 * an error of the context from then on, as a GPU's trap is, and stays in `trap`; one that no test takes note
 * of (fake_trap_taken) ends the process with an error. Any other image is text that names its kernels, as
 * words; launches of those only call the hook.
 *
 * Every call checks its handles, addresses and lengths, that they belong to the current context's GPU, and
 * that it is allowed while a stream is being captured; what CUDA would not have forgiven is counted as a
 * misuse. The n-th call can be made to fail. Release calls (free, unload, destroy, pop) that are made to fail
 * do their work all the same: a failing one is no leak of the caller's. (Entering the context to give
 * something back may not fail: a test ends its failures before.)
 *
 * Device memory can be read and written by kernels and by the functions below, through fake_bytes; the host
 * that uses a device address as a pointer crashes, and so does a kernel with another GPU's memory. Memory
 * comes filled with 0xff bytes, NaN.
 *
 * Threads may use it side by side; the control is read and set while no other thread is in a call.
 *
 * Python reaches the same by ctypes: every function whose name starts with fake_ and that is declared
 * extern below, with fake_set and fake_get for the members of the control by their names.
 */
#ifndef CBGEN_TESTS_FAKE_DRIVER_H
#define CBGEN_TESTS_FAKE_DRIVER_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FAKE_DEVICES = 8 };

struct fake_launch {
  const char *kernel;
  unsigned grid[3], threads[3], shared;
  void *stream;
  void **parameters;
  int cooperative, overlaps;
};

struct fake_control {
  /* what there is now; all 0 once everything was given back. The application's own (fake_alloc, …) not. */
  long contexts, pushed, blocks, pinned, modules, streams, events, graphs, programs;
  size_t bytes;                      /* of the blocks, on all devices */
  size_t device_bytes[FAKE_DEVICES]; /* on each of them, the application's included */
  /* what happened so far */
  long calls, launches, executed, waits, allocations, compilations, graph_launches;
  long turns; /* of the bodies of loops in graphs */
  long line_infos; /* compilations with line information */
  long copies_to_device, copies_to_host, fills;
  long misuses;     /* wrong handles, addresses or lengths, things left in a context that was released */
  char misuse[200]; /* the first of them */
  long traps;       /* kernels that the emulator stopped */
  char trap[1000];  /* the first of them */
  /* what shall happen */
  long fail_at;     /* the call with this number fails (calls starts at 0; the first call is 1); 0: none */
  unsigned failure; /* with this CUresult or nvrtcResult */
  char failed[64];  /* the function that did */
  long failing_compilations; /* every compilation whose number is a multiple of this does not compile; 0: none */
  int devices;      /* how many GPUs there are; 1 */
  int capability;   /* 90 */
  int capabilities[FAKE_DEVICES]; /* of each GPU; 0: as `capability` says */
  size_t memory;                  /* bytes of each GPU: an allocation beyond gives CUDA_ERROR_OUT_OF_MEMORY */
  int nvrtc_major, nvrtc_minor;   /* 13, 0 */
  int registers, stack_bytes;     /* of every kernel that is compiled; 40, 0 */
  char spilling[32];              /* then: the stack is only that of texts with this word; "": of all */
  int spare_blocks; /* and not of those compiled for so many thread blocks fewer on a multiprocessor; 0: of them, too */
  long clock_ns;  /* what events read: a launch takes 5000, and a hook may add to it; 0 */
  int version;    /* of the driver; 13000 */
  int unrun;      /* 1: CUDA that only a GPU takes, which is a misuse otherwise, does nothing; 0 */
  long scalar_ns; /* a kernel takes so much longer for each unit of its last parameter, an int64_t; 0 */
  int lazy; /* 1: streams (but the legacy one) do nothing before something waits for them; 0 */
  void (*hook)(void *user, const struct fake_launch *launch); /* called for each launch; may be NULL */
  void *user;
};

/* A text that contains one of these words does not compile, or compiles with a warning in the log: they may
 * stand in a matrix's name. */
#define FAKE_COMPILE_ERROR "fake_compile_error"
#define FAKE_COMPILE_WARNING "fake_compile_warning"

/* For tests: opens the shared object at $CBGEN_FAKE_CUDA, as the library under test will, forgets whatever an
 * earlier test left, and returns its control with everything set to how it starts. NULL when there is none.
 */
static inline struct fake_control *fake_open(void);

/* A pointer for the host to `count` bytes at a device address, NULL (and a misuse) when they do not lie in
 * one live block. */
static inline void *fake_bytes(uint64_t address, size_t count);

/* Whether something is left that should have been given back, or something went wrong. */
static inline int fake_is_clean(const struct fake_control *fake) {
  return !fake->contexts && !fake->pushed && !fake->blocks && !fake->pinned && !fake->modules &&
         !fake->streams && !fake->events && !fake->graphs && !fake->programs && !fake->misuses &&
         !fake->traps;
}

/* A function of the shared object, of the driver's API or one of those below: the address of `name`. */
static inline void *fake_symbol(const char *name) {
  const char *path = getenv("CBGEN_FAKE_CUDA");
  void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) : NULL;
  return library ? dlsym(library, name) : NULL;
}

/* FAKE_CALL(cuStreamCreate, (void **, unsigned))(&stream, 1): calls one, which returns an unsigned. */
#define FAKE_CALL(name, types) (*(unsigned(**) types) & (void *){fake_symbol(#name)})

/* ---- the application beside the library: what it owns, and its calls, are in no account and never fail by
 * fail_at. All are found by fake_symbol.
 *
 *   void fake_reset(void)                         everything as it starts
 *   uint64_t fake_alloc(int device, size_t bytes) 0: no memory
 *   void fake_free(uint64_t address)
 *   int fake_put(uint64_t to, const void *from, size_t bytes)    0: not within one block
 *   int fake_take(void *to, uint64_t from, size_t bytes)         likewise
 *   void *fake_host(uint64_t address, size_t count)              what fake_bytes calls
 *   void fake_set_current(int device)             the calling thread's context, as cudaSetDevice; -1: none
 *   void fake_end_context(int device)             as cudaDeviceReset: all that was in its context is gone
 *   void *fake_stream(int device, unsigned flags) 1: non-blocking
 *   void fake_stream_free(void *stream)
 *   void fake_wait(int device)                    for all that its streams have to do; the others do not wait
 *   unsigned fake_work(void *stream, void (*run)(const void *data), const void *data, size_t bytes)
 *                                                 work of another library, done where a kernel would be, which
 *                                                 graphs repeat; the data are copied. A CUresult
 *   void fake_trap_taken(void)                    the test expects the trap
 *   int fake_set(const char *member, long value)  0: no such member of the control
 *   long fake_get(const char *member)             "device_bytes" adds up all devices
 *   const char *fake_complaint(void)              the first trap, else the first misuse, else ""
 */

static inline struct fake_control *fake_open(void) {
  struct fake_control *const *control = fake_symbol("fake_control");
  if (!control) return NULL;
  void *symbol = fake_symbol("fake_reset");
  void (*reset)(void);
  memcpy(&reset, &symbol, sizeof reset);
  reset();
  return *control;
}

static inline void *fake_bytes(uint64_t address, size_t count) {
  static void *(*function)(uint64_t, size_t); /* products ask for every element */
  void *symbol = function ? NULL : fake_symbol("fake_host");
  if (symbol) memcpy(&function, &symbol, sizeof function);
  return function(address, count);
}

#endif
