// SPDX-License-Identifier: Apache-2.0
/* NVRTC with a C library of its own, for tests that compile for GPUs most of the time: with the sanitizer's allocator,
 * which watches what the compiler allocates for itself, they would take twice as long. Linked with --wrap=dlopen.
 * Threads that the test makes must not compile: this C library does not know them. */
#include <dlfcn.h>
#include <string.h>

void *__real_dlopen(const char *path, int flags);
void *__wrap_dlopen(const char *path, int flags);

static int is_nvrtc(const char *path) {
  const char *const slash = path ? strrchr(path, '/') : NULL, *const name = slash ? slash + 1 : path;
  return name && !strncmp(name, "libnvrtc.so", 11);
}

/* A new name space for libraries, with its C library; LM_ID_BASE: there is none. What a thread keeps under a key lies
 * in the same place for both C libraries, but each counts its keys by itself: here the first ones are given away. */
static Lmid_t make_space(void) {
  enum { MOST_KEYS = 256 };
  Lmid_t space = LM_ID_BASE;
  void *const library = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  void *const symbol = library ? dlsym(library, "pthread_key_create") : NULL;
  int (*create)(unsigned *key, void (*release)(void *)) = NULL;
  unsigned key = 0;
  if (!symbol || dlinfo(library, RTLD_DI_LMID, &space)) return LM_ID_BASE;
  memcpy(&create, &symbol, sizeof create);
  while (key < MOST_KEYS && !create(&key, NULL)) continue;
  return key < MOST_KEYS ? LM_ID_BASE : space;
}

/* Where NVRTC cannot be apart it is as everywhere, and so is what is said of a file that is not right. */
void *__wrap_dlopen(const char *path, int flags) {
  static Lmid_t space = LM_ID_BASE;
  if (is_nvrtc(path) && space == LM_ID_BASE) space = make_space();
  void *const library = is_nvrtc(path) && space != LM_ID_BASE ? dlmopen(space, path, flags) : NULL;
  return library ? library : __real_dlopen(path, flags);
}
