// SPDX-License-Identifier: Apache-2.0
/* Opening shared libraries: see library.h. `find` walks the places in order; `try_file` does one. */
#include "runtime/cuda/library.h"

#include "base/environment.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* How far a search is: the library once it is found, and why a file that is there did not open. */
struct lookup {
  struct cb_library *library;
  const struct cb_library_search *search;
  char refusal[400];
};

static int try_file(struct lookup *lookup, const char *path) {
  struct cb_library *library = lookup->library;
  struct stat there;
  /* never unmapped again: CUDA's libraries keep threads and static memory that outlive dlclose */
  library->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library->handle) {
    snprintf(library->path, sizeof library->path, "%s", path);
    return 1;
  }
  const char *reason = dlerror();
  if (!*lookup->refusal && reason && !stat(path, &there))
    snprintf(lookup->refusal, sizeof lookup->refusal, "%s", reason);
  return 0;
}

static int try_directory(struct lookup *lookup, const char *directory) {
  char path[512];
  for (const char *const *name = lookup->search->names; *name; name++) {
    struct stat there;
    const int length = snprintf(path, sizeof path, "%s/%s", directory, *name);
    if (length < (int)sizeof path && !stat(path, &there) && try_file(lookup, path)) return 1;
  }
  return 0;
}

/* A path that someone named: a file, a directory, or a name for the loader. */
static int try_named(struct lookup *lookup, const char *path) {
  struct stat there;
  if (!stat(path, &there) && S_ISDIR(there.st_mode)) return try_directory(lookup, path);
  return try_file(lookup, path);
}

static int try_toolkits(struct lookup *lookup) {
  const char *const roots[] = {cb_environment("CUDA_HOME"), cb_environment("CUDA_PATH"), "/usr/local/cuda"};
  static const char *const folders[] = {"lib64", "lib"};
  char directory[400];
  for (size_t root = 0; root < sizeof roots / sizeof *roots; root++)
    for (size_t folder = 0; folder < sizeof folders / sizeof *folders; folder++) {
      if (!roots[root] || !*roots[root]) continue;
      const int length = snprintf(directory, sizeof directory, "%s/%s", roots[root], folders[folder]);
      if (length < (int)sizeof directory && try_directory(lookup, directory)) return 1;
    }
  return 0;
}

static int try_pattern(struct lookup *lookup, const char *pattern) {
  glob_t found;
  int opened = 0;
  if (glob(pattern, 0, NULL, &found)) return 0;
  for (size_t i = found.gl_pathc; i-- > 0 && !opened;) /* the newest Python first */
    opened = try_directory(lookup, found.gl_pathv[i]);
  globfree(&found);
  return opened;
}

static int try_wheels(struct lookup *lookup) {
  const struct {
    const char *root, *packages;
  } sites[] = {
      {cb_environment("VIRTUAL_ENV"), "lib/python3*/site-packages"},
      {cb_environment("CONDA_PREFIX"), "lib/python3*/site-packages"},
      {cb_environment("HOME"), ".local/lib/python3*/site-packages"},
      {"/usr/local", "lib/python3*/*-packages"},
      {"/usr", "lib/python3*/*-packages"},
  };
  char pattern[512];
  for (size_t site = 0; site < sizeof sites / sizeof *sites; site++)
    for (const char *const *wheel = lookup->search->wheels; *wheel; wheel++) {
      if (!sites[site].root || !*sites[site].root) continue;
      const int length = snprintf(pattern, sizeof pattern, "%s/%s/nvidia/%s/lib", sites[site].root,
                                  sites[site].packages, *wheel);
      if (length < (int)sizeof pattern && try_pattern(lookup, pattern)) return 1;
    }
  return 0;
}

static int find(struct lookup *lookup) {
  for (const char *const *name = lookup->search->names; *name; name++)
    if (try_file(lookup, *name)) return 1;
  return lookup->search->wheels && (try_toolkits(lookup) || try_wheels(lookup));
}

static enum cb_status missing(const struct lookup *lookup, const char *named, const char *namer, struct cb_diag *diag) {
  const struct cb_library_search *search = lookup->search;
  if (*lookup->refusal)
    return cb_fail(diag, CB_ERR_MISSING, "%s does not open: %s; %s", search->what, lookup->refusal, search->remedy);
  if (named)
    return cb_fail(diag, CB_ERR_MISSING, "%s is not at '%s', which %s names; %s", search->what, named, namer,
                   search->remedy);
  return cb_fail(diag, CB_ERR_MISSING, "%s ('%s') was not found; %s", search->what, search->names[0],
                 search->remedy);
}

static enum cb_status bind(struct cb_library *library, const struct cb_library_search *search,
                           const struct cb_library_symbol *symbols, void *calls, struct cb_diag *diag) {
  for (; symbols->name; symbols++) {
    void *const function = dlsym(library->handle, symbols->name);
    if (!function && !symbols->optional)
      return cb_fail(diag, CB_ERR_MISSING, "%s at '%s' lacks '%s', it is too old; %s", search->what,
                     library->path, symbols->name, search->remedy);
    memcpy((char *)calls + symbols->offset, &function, sizeof function);
  }
  return CB_OK;
}

enum cb_status cb_library_open(struct cb_library *library, const struct cb_library_search *search,
                               const char *path, const struct cb_library_symbol *symbols, void *calls,
                               struct cb_diag *diag) {
  struct lookup lookup = {.library = library, .search = search};
  const char *named = path, *namer = "the caller";
  *library = (struct cb_library){0};
  if (!named && search->variable) {
    named = cb_environment(search->variable);
    namer = search->variable;
    if (named && !*named) named = NULL;
  }
  if (!(named ? try_named(&lookup, named) : find(&lookup))) return missing(&lookup, named, namer, diag);
  const enum cb_status s = bind(library, search, symbols, calls, diag);
  if (s) cb_library_close(library);
  return s;
}

void cb_library_close(struct cb_library *library) {
  if (library->handle) dlclose(library->handle);
  *library = (struct cb_library){0};
}
