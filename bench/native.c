// SPDX-License-Identifier: Apache-2.0
/* CUDA as an application has it: see native.h. */
#include "bench/native.h"

#include "cbgen.h"

#include <dlfcn.h>
#include <string.h>

enum { GPUS = 16, ERROR_STATUS = 3, THREADS = 256, SLOW_STEPS = 20000 };

struct cuda cuda;

static struct {
  int count;
  int devices[GPUS];
  void *contexts[GPUS]; /* NULL: not used yet */
} gpus;

void require_cuda(int result, const char *what, const char *file, int line) {
  const char *name = NULL;
  if (!result) return;
  if (!cuda.error_name || cuda.error_name(result, &name) || !name) name = "unknown";
  fflush(stdout);
  fprintf(stderr, "%s:%d: %s: CUDA's error %d (%s)\n", file, line, what, result, name);
  _Exit(ERROR_STATUS);
}

/* ---- libraries */

static void *open_library(const char *variable, const char *const *names) {
  const char *chosen = getenv(variable);
  if (chosen && *chosen) return dlopen(chosen, RTLD_NOW);
  void *library = NULL;
  for (int i = 0; names[i] && !library; i++) library = dlopen(names[i], RTLD_NOW);
  return library;
}

static int bind(void *library, void *place, const char *name) {
  void *const symbol = dlsym(library, name);
  if (!symbol) fprintf(stderr, "the library lacks '%s'\n", name);
  memcpy(place, &symbol, sizeof symbol);
  return symbol != NULL;
}

int open_cuda(void) {
  static const char *const names[] = {"libcuda.so.1", "libcuda.so", NULL};
  void *const library = open_library("CBGEN_LIBCUDA", names);
  if (!library) {
    fprintf(stderr, "no CUDA driver: %s\n", dlerror());
    return 0;
  }
#define X(member, name, parameters)                                                                                    \
  if (!bind(library, &cuda.member, #name)) return 0;
  CUDA_CALLS(X)
#undef X
  if (cuda.init(0) || cuda.device_count(&gpus.count) || !gpus.count) {
    fprintf(stderr, "this machine shows no GPU\n");
    return 0;
  }
  if (gpus.count > GPUS) gpus.count = GPUS;
  use_gpu(0);
  return 1;
}

void close_cuda(void) {
  for (int i = 0; i < gpus.count; i++) {
    if (!gpus.contexts[i]) continue;
    use_gpu(i);
    cbgen_trim();
    REQUIRE_CUDA(cuda.set_current(NULL));
    REQUIRE_CUDA(cuda.primary_release(gpus.devices[i]));
  }
}

int count_gpus(void) {
  return gpus.count;
}

void use_gpu(int ordinal) {
  if (!gpus.contexts[ordinal]) {
    REQUIRE_CUDA(cuda.device_get(&gpus.devices[ordinal], ordinal));
    REQUIRE_CUDA(cuda.primary_retain(&gpus.contexts[ordinal], gpus.devices[ordinal]));
  }
  REQUIRE_CUDA(cuda.set_current(gpus.contexts[ordinal]));
}

/* ---- memory and streams */

void put_bytes(address_t to, const void *from, size_t bytes) {
  REQUIRE_CUDA(cuda.put(to, from, bytes));
  REQUIRE_CUDA(cuda.synchronize());
}

address_t device_alloc(size_t bytes) {
  address_t address = 0;
  bytes += !bytes;
  REQUIRE_CUDA(cuda.alloc(&address, bytes));
  REQUIRE_CUDA(cuda.fill_async(address, 0xff, bytes, NULL));
  REQUIRE_CUDA(cuda.synchronize());
  return address;
}

void device_free(address_t address) {
  if (address) REQUIRE_CUDA(cuda.release(address));
}

void *new_stream(void) {
  void *stream;
  REQUIRE_CUDA(cuda.stream_create(&stream, 1));
  return stream;
}

/* ---- the application's kernel */

/* The fake CUDA executes texts that have a device prelude, in whose place it puts the emulation's. */
static const char rewriter_text[] = //
    "#define CBGEN_KERNEL extern \"C\" __global__\n"
    "#define CBGEN_DEVICE static __device__ __forceinline__\n"
    "using int64_t = long;\n"
    "// ---- end of the device prelude\n"
    "template <class T> CBGEN_DEVICE void rewrite(const T *from, T *to, int64_t count, double scale, int steps, "
    "int early) {\n"
    "#if __CUDA_ARCH__ >= 900\n"
    "  if (early) asm volatile(\"griddepcontrol.launch_dependents;\");\n"
    "#endif\n"
    "  const int64_t i = int64_t(blockIdx.x) * 256 + threadIdx.x;\n"
    "  double waste = 1;\n"
    "  if (int64_t(blockIdx.x + 1) * 256 >= count)\n"
    "    for (int step = 0; step < steps; step++) waste = waste * 0.75 + 0.5;\n"
    "  if (i >= count || waste < 0) return;\n"
    "  const double value = double(from[i]), size = value < 0 ? -value : value;\n"
    "  to[i] = T(scale * value / (1 + size));\n"
    "}\n"
    "CBGEN_KERNEL void __launch_bounds__(256) rewrite_double(const double *from, double *to, int64_t count, "
    "double scale, int steps, int early) { rewrite(from, to, count, scale, steps, early); }\n"
    "CBGEN_KERNEL void __launch_bounds__(256) rewrite_float(const float *from, float *to, int64_t count, "
    "double scale, int steps, int early) { rewrite(from, to, count, scale, steps, early); }\n";

struct rewriter {
  void *module, *of_double, *of_float;
};

struct nvrtc {
  int (*create)(void **program, const char *text, const char *name, int headers, const char *const *texts,
                const char *const *names);
  int (*compile)(void *program, int count, const char *const *options);
  int (*log_size)(void *program, size_t *bytes);
  int (*log)(void *program, char *log);
  int (*size)(void *program, size_t *bytes);
  int (*cubin)(void *program, char *cubin);
  int (*destroy)(void **program);
};

static int open_nvrtc(struct nvrtc *nvrtc) {
  static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                                      "/usr/local/cuda/lib64/libnvrtc.so", NULL};
  void *const library = open_library("CBGEN_NVRTC", names);
  if (!library) fprintf(stderr, "no NVRTC: %s\n", dlerror());
  return library && bind(library, &nvrtc->create, "nvrtcCreateProgram") &&
         bind(library, &nvrtc->compile, "nvrtcCompileProgram") &&
         bind(library, &nvrtc->log_size, "nvrtcGetProgramLogSize") &&
         bind(library, &nvrtc->log, "nvrtcGetProgramLog") && bind(library, &nvrtc->size, "nvrtcGetCUBINSize") &&
         bind(library, &nvrtc->cubin, "nvrtcGetCUBIN") && bind(library, &nvrtc->destroy, "nvrtcDestroyProgram");
}

static void show_log(const struct nvrtc *nvrtc, void *program) {
  size_t bytes = 0;
  char *log = nvrtc->log_size(program, &bytes) ? NULL : calloc(bytes + 1, 1);
  if (log && !nvrtc->log(program, log)) fprintf(stderr, "the application's kernel: %s\n", log);
  free(log);
}

static char *compile(const struct nvrtc *nvrtc, const char *text, const char *name) {
  int major = 0, minor = 0;
  char architecture[40], *cubin = NULL;
  const char *options[] = {architecture, "--std=c++17", "--fmad=false"};
  void *program = NULL;
  size_t bytes = 0;
  REQUIRE_CUDA(cuda.device_attribute(&major, 75, gpus.devices[0]));
  REQUIRE_CUDA(cuda.device_attribute(&minor, 76, gpus.devices[0]));
  snprintf(architecture, sizeof architecture, "--gpu-architecture=sm_%d%d", major, minor);
  if (nvrtc->create(&program, text, name, 0, NULL, NULL)) return NULL;
  if (nvrtc->compile(program, 3, options) || nvrtc->size(program, &bytes))
    show_log(nvrtc, program);
  else
    cubin = malloc(bytes);
  if (cubin && nvrtc->cubin(program, cubin)) *cubin = 0;
  nvrtc->destroy(&program);
  return cubin;
}

void *load_text(const char *text, const char *name) {
  struct nvrtc nvrtc;
  void *module = NULL;
  char *const cubin = open_nvrtc(&nvrtc) ? compile(&nvrtc, text, name) : NULL;
  if (!cubin) {
    fprintf(stderr, "'%s' does not compile\n", name);
    _Exit(ERROR_STATUS);
  }
  REQUIRE_CUDA(cuda.module_load(&module, cubin));
  free(cubin);
  return module;
}

struct rewriter *new_rewriter(void) {
  struct rewriter *rewriter = calloc(1, sizeof *rewriter);
  if (!rewriter) _Exit(ERROR_STATUS);
  rewriter->module = load_text(rewriter_text, "application.cu");
  REQUIRE_CUDA(cuda.module_function(&rewriter->of_double, rewriter->module, "rewrite_double"));
  REQUIRE_CUDA(cuda.module_function(&rewriter->of_float, rewriter->module, "rewrite_float"));
  return rewriter;
}

void free_rewriter(struct rewriter *rewriter) {
  if (!rewriter) return;
  REQUIRE_CUDA(cuda.module_unload(rewriter->module));
  free(rewriter);
}

int gpu_overlaps(void) {
  int major = 0;
  REQUIRE_CUDA(cuda.device_attribute(&major, 75, gpus.devices[0]));
  return major >= 9;
}

/* CUlaunchConfig with one attribute, programmatic stream serialisation. */
static int launch_overlapping(void *function, unsigned blocks, void *stream, void **parameters) {
  enum { OVERLAP = 6 };
  const struct {
    unsigned id;
    char pad[4];
    union {
      char bytes[64];
      int allowed;
    } value;
  } attribute = {.id = OVERLAP, .value.allowed = 1};
  const struct {
    unsigned grid[3], threads[3], shared;
    void *stream;
    const void *attributes;
    unsigned attributes_count;
  } configuration = {{blocks, 1, 1}, {THREADS, 1, 1}, 0, stream, &attribute, 1};
  return cuda.launch_with(&configuration, function, parameters, NULL);
}

int rewrite(const struct rewriter *rewriter, const struct rewriting *rewriting, void *stream) {
  struct rewriting taken = *rewriting;
  int steps = taken.slow ? SLOW_STEPS : 0;
  void *parameters[] = {&taken.from, &taken.to, &taken.count, &taken.scale, &steps, &taken.early};
  void *const function = taken.is_double ? rewriter->of_double : rewriter->of_float;
  const unsigned blocks = (unsigned)((taken.count + THREADS - 1) / THREADS);
  if (!blocks) return 0;
  if (taken.overlapping) return launch_overlapping(function, blocks, stream, parameters);
  return cuda.launch(function, blocks, 1, 1, THREADS, 1, 1, 0, stream, parameters, NULL);
}
