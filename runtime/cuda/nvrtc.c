// SPDX-License-Identifier: Apache-2.0
/* NVRTC: see nvrtc.h. The table of functions, the options, one compilation and its log. */
#include "runtime/cuda/nvrtc.h"

#include "analysis/target.h"
#include "base/clock.h"
#include "base/memory.h"
#include "runtime/cuda/library.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the library */

struct cb_nvrtc {
  struct cb_library library;
  struct cb_nvrtc_calls call;
  int major, minor;
  int arches_count;
  int *arches;
};

static const char *const nvrtc_names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", NULL};
static const char *const nvrtc_wheels[] = {"cu13", "cuda_nvrtc", NULL};
static const struct cb_library_search nvrtc_search = {
    .what = "NVRTC",
    .remedy =
        "install the CUDA toolkit (12 or 13), or 'pip install nvidia-cuda-nvrtc' and set CBGEN_NVRTC to its "
        "libnvrtc.so",
    .variable = "CBGEN_NVRTC",
    .names = nvrtc_names,
    .wheels = nvrtc_wheels,
};

#define CALL(member, name)                                                                                   \
  { name, offsetof(struct cb_nvrtc_calls, member), 0 }
static const struct cb_library_symbol nvrtc_symbols[] = {
    CALL(error_string, "nvrtcGetErrorString"),
    CALL(version, "nvrtcVersion"),
    CALL(arches_count, "nvrtcGetNumSupportedArchs"),
    CALL(arches, "nvrtcGetSupportedArchs"),
    CALL(create, "nvrtcCreateProgram"),
    CALL(destroy, "nvrtcDestroyProgram"),
    CALL(compile, "nvrtcCompileProgram"),
    CALL(log_size, "nvrtcGetProgramLogSize"),
    CALL(log, "nvrtcGetProgramLog"),
    CALL(cubin_size, "nvrtcGetCUBINSize"),
    CALL(cubin, "nvrtcGetCUBIN"),
    CALL(ptx_size, "nvrtcGetPTXSize"),
    CALL(ptx, "nvrtcGetPTX"),
    {NULL, 0, 0},
};

static enum cb_status check(const struct cb_nvrtc *nvrtc, unsigned result, const char *what,
                            struct cb_diag *diag) {
  if (!result) return CB_OK;
  const char *words = nvrtc->call.error_string(result);
  return cb_fail(diag, CB_ERR_COMPILE, "NVRTC cannot %s: %s", what, words ? words : "unknown error");
}

static enum cb_status learn(struct cb_nvrtc *nvrtc, struct cb_diag *diag) {
  enum cb_status s =
      check(nvrtc, nvrtc->call.version(&nvrtc->major, &nvrtc->minor), "tell its version", diag);
  if (!s) s = check(nvrtc, nvrtc->call.arches_count(&nvrtc->arches_count), "count its architectures", diag);
  if (s) return s;
  nvrtc->arches = cb_calloc((size_t)nvrtc->arches_count + 1, sizeof *nvrtc->arches);
  if (!nvrtc->arches) return cb_fail_memory(diag, "NVRTC's architectures", sizeof(int));
  return check(nvrtc, nvrtc->call.arches(nvrtc->arches), "list its architectures", diag);
}

/* NVRTC opens its table of built-in functions by name alone, and the loader does not look beside a library
 * that was opened by its path (the PyPI wheel has no run path). With the table in memory it is found by that
 * name. Where it is missing NVRTC itself says so. */
static void open_builtins(const struct cb_nvrtc *nvrtc) {
  const char *library = nvrtc->library.path, *slash = strrchr(library, '/');
  char path[640];
  if (!slash) return;
  snprintf(path, sizeof path, "%.*s/libnvrtc-builtins.so.%d.%d", (int)(slash - library), library,
           nvrtc->major, nvrtc->minor);
  dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

enum cb_status cb_nvrtc_open(struct cb_nvrtc **out, const char *path, struct cb_diag *diag) {
  struct cb_nvrtc *nvrtc = cb_calloc(1, sizeof *nvrtc);
  *out = NULL;
  if (!nvrtc) return cb_fail_memory(diag, "NVRTC's table", sizeof *nvrtc);
  enum cb_status s = cb_library_open(&nvrtc->library, &nvrtc_search, path, nvrtc_symbols, &nvrtc->call, diag);
  if (!s) s = learn(nvrtc, diag);
  if (!s) open_builtins(nvrtc);
  if (s)
    cb_nvrtc_close(nvrtc);
  else
    *out = nvrtc;
  return s;
}

void cb_nvrtc_close(struct cb_nvrtc *nvrtc) {
  if (!nvrtc) return;
  cb_library_close(&nvrtc->library);
  cb_free(nvrtc->arches);
  cb_free(nvrtc);
}

void cb_nvrtc_version(const struct cb_nvrtc *nvrtc, int *major, int *minor) {
  *major = nvrtc->major;
  *minor = nvrtc->minor;
}

const char *cb_nvrtc_path(const struct cb_nvrtc *nvrtc) {
  return nvrtc->library.path;
}

const int *cb_nvrtc_arches(const struct cb_nvrtc *nvrtc, int *count) {
  *count = nvrtc->arches_count;
  return nvrtc->arches;
}

int cb_nvrtc_supports(const struct cb_nvrtc *nvrtc, const char *arch) {
  int number = 0, end = 0;
  if (sscanf(arch, "sm_%d%n", &number, &end) != 1) return 0;
  if (arch[end] == 'a' || arch[end] == 'f') end++; /* features of one architecture, of its family */
  for (int i = 0; i < nvrtc->arches_count; i++)
    if (nvrtc->arches[i] == number) return !arch[end];
  return 0;
}

/* Of what it compiles for, what runs on a GPU of an architecture that it does not know: the newest one with the same
 * major number, as binaries run on later minor ones. Jetsons' are apart, for which this does not hold. */
static int relative_of(const struct cb_nvrtc *nvrtc, const char *arch) {
  static const int jetsons[] = {72, 87, 101, 110};
  int number = 0, end = 0, best = 0;
  if (sscanf(arch, "sm_%d%n", &number, &end) != 1 || arch[end]) return 0;
  for (int i = 0; i < nvrtc->arches_count; i++) {
    const int known = nvrtc->arches[i];
    int apart = 0;
    for (size_t j = 0; j < sizeof jetsons / sizeof *jetsons; j++) apart |= number == jetsons[j] || known == jetsons[j];
    if (!apart && known / 10 == number / 10 && known < number && known > best) best = known;
  }
  return best;
}

/* ---- one compilation */

enum { MAX_OPTIONS = 8 };
struct option_list {
  int count;
  char text[MAX_OPTIONS][48];
  const char *list[MAX_OPTIONS];
};

static void add_option(struct option_list *options, const char *format, const char *value) {
  char *const text = options->text[options->count];
  snprintf(text, sizeof options->text[0], format, value);
  options->list[options->count++] = text;
}

static void list_options(struct option_list *list, const struct cb_nvrtc_options *options) {
  char number[16];
  add_option(list, "--gpu-architecture=%s", options->arch);
  add_option(list, "%s", "--std=c++17");
  add_option(list, "%s", "--fmad=false"); /* what is fused says fma: as in the emulation, bit for bit */
  if (options->line_info) add_option(list, "%s", "--generate-line-info");
  if (options->max_registers) {
    snprintf(number, sizeof number, "%d", options->max_registers);
    add_option(list, "--maxrregcount=%s", number);
  }
  if (options->fewer_blocks) {
    snprintf(number, sizeof number, "%d", options->fewer_blocks);
    add_option(list, "-DCBGEN_FEWER_BLOCKS=%s", number);
  }
}

/* A text that NVRTC hands out in two calls: its size, then its bytes. */
static enum cb_status fetch(const struct cb_nvrtc *nvrtc, struct _nvrtcProgram *program,
                            unsigned (*get_size)(struct _nvrtcProgram *, size_t *),
                            unsigned (*get)(struct _nvrtcProgram *, char *), const char *what, char **text,
                            size_t *length, struct cb_diag *diag) {
  enum cb_status s = check(nvrtc, get_size(program, length), what, diag);
  if (s) return s;
  *text = cb_calloc(*length + 1, 1);
  if (!*text) return cb_fail_memory(diag, what, *length);
  return check(nvrtc, get(program, *text), what, diag);
}

/* The log from its first error (or, in strict mode, warning) on. */
static enum cb_status fail_log(const char *name, const char *arch, const char *log, struct cb_diag *diag) {
  char words[1000], printable[160];
  const char *from = strstr(log, "error");
  if (!from) from = strstr(log, "warning");
  if (!from) from = log;
  while (from > log && from[-1] != '\n') from--;
  size_t length = strlen(from);
  while (length && isspace((unsigned char)from[length - 1])) length--;
  cb_escape(printable, sizeof printable, name, "");
  snprintf(words, sizeof words, "'%s' does not compile for %s: %.*s", printable, arch,
           (int)(length < 800 ? length : 800), length ? from : "NVRTC gives no reason");
  return cb_fail_lines(diag, CB_ERR_COMPILE, words);
}

static enum cb_status compile(struct cb_compiled *compiled, const struct cb_nvrtc *nvrtc,
                              struct _nvrtcProgram *program, const char *name,
                              const struct cb_nvrtc_options *options, struct cb_diag *diag) {
  struct option_list list = {0};
  size_t length = 0;
  list_options(&list, options);
  const unsigned result = nvrtc->call.compile(program, list.count, list.list);
  enum cb_status s = fetch(nvrtc, program, nvrtc->call.log_size, nvrtc->call.log, "give its log",
                           &compiled->log, &length, diag);
  if (s) return s;
  if (result == CB_NVRTC_COMPILATION || (result && *compiled->log))
    return fail_log(name, options->arch, compiled->log, diag);
  s = check(nvrtc, result, "compile", diag);
  if (!s && options->strict && strstr(compiled->log, "warning"))
    return fail_log(name, options->arch, compiled->log, diag);
  char *cubin = NULL;
  if (!s)
    s = fetch(nvrtc, program, nvrtc->call.cubin_size, nvrtc->call.cubin, "give the cubin", &cubin,
              &compiled->cubin_bytes, diag);
  compiled->cubin = (unsigned char *)cubin;
  if (!s && options->ptx)
    s = fetch(nvrtc, program, nvrtc->call.ptx_size, nvrtc->call.ptx, "give the PTX", &compiled->ptx, &length,
              diag);
  return s;
}

static enum cb_status unsupported(const struct cb_nvrtc *nvrtc, const char *arch, struct cb_diag *diag) {
  const int last = nvrtc->arches_count - 1;
  const struct cb_architecture *row = cb_architecture_table;
  char first[48] = "";
  while (*row->target.arch && strcmp(row->target.arch, arch)) row++;
  if (row->nvrtc) snprintf(first, sizeof first, ", for which it takes NVRTC %s", row->nvrtc);
  return cb_fail(diag, CB_ERR_UNSUPPORTED, "NVRTC %d.%d does not compile for '%s'%s; it knows sm_%d to sm_%d",
                 nvrtc->major, nvrtc->minor, arch, first, last < 0 ? 0 : nvrtc->arches[0],
                 last < 0 ? 0 : nvrtc->arches[last]);
}

enum cb_status cb_nvrtc_compile(struct cb_compiled *compiled, const struct cb_nvrtc *nvrtc, const char *text,
                                const char *name, const struct cb_nvrtc_options *options,
                                struct cb_diag *diag) {
  struct _nvrtcProgram *program = NULL;
  *compiled = (struct cb_compiled){0};
  struct cb_nvrtc_options own = *options;
  snprintf(compiled->arch, sizeof compiled->arch, "%s", options->arch);
  if (!cb_nvrtc_supports(nvrtc, options->arch)) {
    const int relative = relative_of(nvrtc, options->arch);
    if (!relative) return unsupported(nvrtc, options->arch, diag);
    snprintf(compiled->arch, sizeof compiled->arch, "sm_%d", relative);
  }
  own.arch = compiled->arch;
  compiled->fewer_blocks = options->fewer_blocks;
  const double start = cb_seconds();
  enum cb_status s =
      check(nvrtc, nvrtc->call.create(&program, text, name, 0, NULL, NULL), "take the text", diag);
  if (!s) s = compile(compiled, nvrtc, program, name, &own, diag);
  if (program) nvrtc->call.destroy(&program);
  compiled->seconds = cb_seconds() - start;
  return s;
}

void cb_compiled_release(struct cb_compiled *compiled) {
  cb_free(compiled->cubin);
  cb_free(compiled->ptx);
  cb_free(compiled->log);
  *compiled = (struct cb_compiled){0};
}
