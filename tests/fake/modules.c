// SPDX-License-Identifier: Apache-2.0
/* Images, kernels and launches: see state.h.
 *
 * An image of the fake NVRTC carries the CUDA text. It is compiled as C++ into a shared object, with the text
 * of kernel.h and a table of its kernels behind it, and linked against this library, whose emulator it calls.
 * Shared objects stay in $CBGEN_FAKE_CACHE (else a directory in $TMPDIR) under the hash of all that shaped
 * them. Any other image is an ELF file or text, and has each kernel whose name occurs in it as a word.
 */
#include "tests/fake/state.h"

#include "tests/fake/machine.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- images */

static size_t image_length(const unsigned char *image) {
  Elf64_Ehdr header;
  if (memcmp(image, ELFMAG, SELFMAG)) return strlen((const char *)image);
  memcpy(&header, image, sizeof header);
  return (size_t)(header.e_shoff + (uint64_t)header.e_shnum * sizeof(Elf64_Shdr));
}

/* What fake NVRTC put into section ".cbgen.fake": "sm_90 REGISTERS STACK NAME …\n" and the text. NULL: none.
 */
static const char *text_of(const char *image) {
  Elf64_Ehdr header;
  Elf64_Shdr names, section;
  if (memcmp(image, ELFMAG, SELFMAG)) return NULL;
  memcpy(&header, image, sizeof header);
  memcpy(&names, image + header.e_shoff + header.e_shstrndx * sizeof names, sizeof names);
  for (unsigned i = 0; i < header.e_shnum; i++) {
    memcpy(&section, image + header.e_shoff + i * sizeof section, sizeof section);
    if (!strcmp(image + names.sh_offset + section.sh_name, ".cbgen.fake")) return image + section.sh_offset;
  }
  return NULL;
}

/* A cubin runs on its own architecture and on later ones of the same generation. */
static int runs_on(const char *arch, int capability) {
  int number = 0;
  char feature = 0;
  sscanf(arch, "sm_%d%c", &number, &feature);
  if (feature == 'a') return number == capability;
  return number / 10 == capability / 10 && number <= capability;
}

/* ---- compiling */

static void add(char **text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(char **text, const char *format, ...) {
  va_list arguments;
  char *more, *joined;
  va_start(arguments, format);
  if (vasprintf(&more, format, arguments) < 0) abort();
  va_end(arguments);
  if (asprintf(&joined, "%s%s", *text ? *text : "", more) < 0) abort();
  free(more);
  free(*text);
  *text = joined;
}

/* What follows the text's device prelude, which the emulation's replaces; NULL: it has none. */
static const char *behind_prelude(const char *text) {
  const char *const end = strstr(text, "\n// ---- end of the device prelude"), *const line = end ? strchr(end + 1, '\n') : NULL;
  return line ? line + 1 : NULL;
}

static int line_of(const char *text, const char *at) {
  int line = 1;
  for (; text < at; text++) line += *text == '\n';
  return line;
}

/* The whole translation unit. `names`: of the kernels, separated by blanks. */
static char *compose(const char *names, const char *text) {
  char *unit = NULL, *copy = strdup(names), *rest = NULL;
  const char *const body = behind_prelude(text);
  static const char trampolines[] = {
#include "fake_kernel_text.h"
      0};
  if (!copy) abort();
  /* A namespace of its own, as in the library's emulation: the prelude's classes find no functions of the text. */
  add(&unit, "#include \"" FAKE_PRELUDE "\"\nnamespace kernel_text {\nCBGEN_OVERLOADED\n#line %d \"kernel.cu\"\n%s\n}\n"
      "using namespace kernel_text;\n#line 1 \"kernel.h\"\n%s\n",
      line_of(text, body), body, trampolines);
  add(&unit, "extern \"C\" const fake_kernel fake_kernels[] = {\n");
  for (char *name = strtok_r(copy, " ", &rest); name; name = strtok_r(NULL, " ", &rest))
    add(&unit, "FAKE_KERNEL(%s),\n", name);
  add(&unit, "{nullptr, nullptr, nullptr}};\n");
  free(copy);
  return unit;
}

static uint64_t hash(const char *text, uint64_t start) {
  for (; *text; text++) start = (start ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
  return start;
}

static void complain_of_compiler(const char *log) {
  char text[2000] = "";
  FILE *file = fopen(log, "r");
  if (file) {
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
  }
  LOCK;
  fprintf(stderr, "the fake GPU cannot compile a kernel:\n%s\n", text);
  misuse(SUCCESS, "a kernel does not compile as C++: %.120s", text);
}

static int write_file(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  if (!file) return 0;
  const int written = fputs(text, file) >= 0;
  return !fclose(file) && written;
}

/* The process's environment without what would burden the compiler: a preloaded sanitizer, its options. */
static char **compiler_environment(void) {
  static const char *const unwanted[] = {"LD_PRELOAD=", "ASAN_OPTIONS=", "UBSAN_OPTIONS="};
  size_t count = 0, kept = 0;
  while (environ[count]) count++;
  char **list = calloc(count + 1, sizeof *list);
  if (!list) abort();
  for (size_t i = 0; i < count; i++) {
    int wanted = 1;
    for (size_t u = 0; u < sizeof unwanted / sizeof *unwanted; u++)
      if (!strncmp(environ[i], unwanted[u], strlen(unwanted[u]))) wanted = 0;
    if (wanted) list[kept++] = environ[i];
  }
  return list;
}

static int run_compiler(char *const *words, const char *log) {
  posix_spawn_file_actions_t actions;
  pid_t child = 0;
  int status = -1;
  char **const environment = compiler_environment();
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  if (!posix_spawnp(&child, words[0], &actions, NULL, words, environment))
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  posix_spawn_file_actions_destroy(&actions);
  free(environment);
  return status == 0;
}

static const char flags[] = FAKE_CXX_FLAGS;

static const char *own_path(void) {
  Dl_info info;
  return dladdr(&state, &info) ? info.dli_fname : "";
}

/* Compiles `unit` into the file `target`, by way of files of its own, so that processes may race. */
static int compile(const char *unit, const char *target) {
  static int number;
  char *own = NULL, *source = NULL, *object = NULL, *log = NULL, *list = NULL, *words[64], *rest = NULL;
  const char *compiler = getenv("CBGEN_FAKE_CXX");
  int count = 0;
  add(&own, "%s.%d.%d", target, (int)getpid(), __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED));
  add(&source, "%s.cpp", own);
  add(&object, "%s.so", own);
  add(&log, "%s.log", own);
  add(&list, "%s %s %s -o %s %s", compiler && *compiler ? compiler : FAKE_CXX, flags, source, object,
      own_path());
  for (char *word = strtok_r(list, " ", &rest); word && count < 63; word = strtok_r(NULL, " ", &rest))
    words[count++] = word;
  words[count] = NULL;
  const int done = write_file(source, unit) && run_compiler(words, log) && !rename(object, target);
  if (!done) complain_of_compiler(log);
  unlink(source);
  unlink(log);
  char *const texts[] = {own, source, object, log, list};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) free(texts[i]);
  return done;
}

/* Where the compiled unit is kept. */
static char *cache_path(const char *unit) {
  const char *directory = getenv("CBGEN_FAKE_CACHE"), *temporary = getenv("TMPDIR");
  const uint64_t how = hash(own_path(), hash(flags, 0));
  char *standard = NULL, *path = NULL;
  add(&standard, "%s/cbgen-fake-%d", temporary && *temporary ? temporary : "/tmp", (int)geteuid());
  if (!directory || !*directory) directory = standard;
  mkdir(directory, 0700);
  add(&path, "%s/%016llx%016llx.so", directory,
      (unsigned long long)hash(unit, how ^ UINT64_C(0xcbf29ce484222325)),
      (unsigned long long)hash(unit, how ^ UINT64_C(0x9e3779b97f4a7c15)));
  free(standard);
  return path;
}

/* The kernels of a text; NULL: it does not compile, which was said. */
static const struct fake_kernel *kernels_of(const char *names, const char *text) {
  const int held = 1;
  char *const unit = compose(names, text), *const path = cache_path(unit);
  unlock_state(&held); /* others need not wait */
  const int there = !access(path, R_OK) || compile(unit, path);
  void *library = there ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL; /* stays */
  lock_state();
  if (there && !library)
    misuse(SUCCESS, "a kernel does not open (is its text of another build?): %s", dlerror());
  free(unit);
  free(path);
  return library ? dlsym(library, "fake_kernels") : NULL;
}

/* ---- modules */

/* Compiles what the image carries. */
static unsigned fill_module(struct thing *module, const char *packed) {
  char arch[16] = "", *names = NULL;
  int at = 0;
  sscanf(packed, "%15s %d %d %n", arch, &module->registers, &module->stack, &at);
  if (!runs_on(arch, capability_of(module->device))) return NO_BINARY_FOR_GPU;
  const char *const text = strchr(packed, '\n') + 1;
  if (!behind_prelude(text)) return SUCCESS; /* CUDA that only a GPU takes: for the hook alone */
  names = strndup(packed + at, (size_t)(text - 1 - packed - at));
  if (!names) abort();
  module->kernels = kernels_of(names, text);
  free(names);
  return module->kernels ? SUCCESS : INVALID_IMAGE;
}

/* PTX of two kernels, which set a graph's condition: to whether the number at an address is not another one, or is. */
static int run_condition(unsigned blocks, unsigned threads, size_t shared_bytes, void **parameters) {
  const int *at = *(const int *const *)parameters[1];
  (void)shared_bytes;
  if (blocks == 1 && threads == 1)
    set_condition(*(const unsigned long long *)parameters[0], *at != *(const int *)parameters[2]);
  return 0;
}
static int run_again(unsigned blocks, unsigned threads, size_t shared_bytes, void **parameters) {
  const int *at = *(const int *const *)parameters[1];
  (void)shared_bytes;
  if (blocks == 1 && threads == 1)
    set_condition(*(const unsigned long long *)parameters[0], *at == *(const int *)parameters[2]);
  return 0;
}
static const struct fake_parameter condition_parameters[] = {{8, 'v'}, {8, 'p'}, {4, 'v'}, {0, 0}};
static const struct fake_kernel condition_kernels[] = {{"cbgen_condition", condition_parameters, run_condition},
                                                       {"cbgen_condition_again", condition_parameters, run_again},
                                                       {NULL, NULL, NULL}};

static int is_condition(const char *image) {
  return !strncmp(image, "//", 2) && strstr(image, ".entry cbgen_condition(") && strstr(image, "setp.ne.u32 %p0, %r1, %r0") &&
         strstr(image, ".entry cbgen_condition_again(") && strstr(image, "setp.eq.u32 %p0, %r1, %r0") &&
         strstr(image, "call.uni cudaGraphSetConditional, (h, v)");
}

EXPORT unsigned cuModuleLoadData(void **module, const void *image) {
  ENTER_UNSAFE;
  const size_t length = image_length(image);
  if (!length) return misuse(INVALID_IMAGE, "an empty image");
  struct thing *thing = create(MODULE, current_device());
  thing->bytes = malloc(length);
  if (!thing->bytes) abort();
  memcpy(thing->bytes, image, length);
  thing->length = length;
  thing->registers = 32;
  const char *const packed = text_of(thing->bytes);
  const unsigned result = packed ? fill_module(thing, packed) : SUCCESS;
  if (!packed && is_condition(image)) thing->kernels = condition_kernels;
  if (result)
    destroy(thing);
  else
    *module = thing;
  return result;
}

EXPORT unsigned cuModuleUnload(void *module) {
  LOCK;
  const unsigned result = enter_unsafe(__func__);
  struct thing *thing = find(module, MODULE);
  if (result == CAPTURE_UNSUPPORTED) return result;
  if (!thing) return misuse(INVALID_HANDLE, "a module unloaded that is none");
  if (thing->device != current_device())
    return misuse(INVALID_HANDLE, "a module unloaded in another context");
  finish_device(thing->device, 0);
  destroy(thing);
  return result;
}

static int has_word(const struct thing *module, const char *name) {
  const size_t length = strlen(name);
  for (const char *at = module->bytes;
       (at = memmem(at, module->length - (size_t)(at - module->bytes), name, length)); at++) {
    const size_t begin = (size_t)(at - module->bytes), end = begin + length;
    const int starts = !begin || at[-1] == 0 || at[-1] == ' ';
    const int ends = end == module->length || at[length] == 0 || at[length] == ' ' || at[length] == '\n';
    if (starts && ends) return 1;
  }
  return 0;
}

/* A kernel is one, however often it is asked for, and keeps what it was given. */
static struct thing *found_before(const struct thing *module, const char *name) {
  for (struct thing *thing = first_thing(); thing; thing = thing->next)
    if (thing->kind == KERNEL && thing->module == module && !strcmp(thing->name, name)) return thing;
  return NULL;
}

EXPORT unsigned cuModuleGetFunction(void **kernel, void *module, const char *name) {
  ENTER_CURRENT;
  struct thing *owner = find(module, MODULE);
  if (!owner) return misuse(INVALID_HANDLE, "a module that is none");
  const struct fake_kernel *compiled = owner->kernels;
  while (compiled && compiled->name && strcmp(compiled->name, name)) compiled++;
  if (compiled ? !compiled->name : !has_word(owner, name)) return NOT_FOUND;
  *kernel = found_before(owner, name);
  if (*kernel) return SUCCESS;
  struct thing *thing = create(KERNEL, owner->device);
  thing->module = owner;
  thing->kernel = compiled;
  thing->registers = owner->registers;
  thing->stack = owner->stack;
  snprintf(thing->name, sizeof thing->name, "%s", name);
  *kernel = thing;
  return SUCCESS;
}

/* ---- functions */

EXPORT unsigned cuFuncGetAttribute(int *value, int attribute, void *kernel) {
  ENTER_CURRENT;
  struct thing *thing = find(kernel, KERNEL);
  if (!thing) return misuse(INVALID_HANDLE, "a kernel that is none");
  switch (attribute) {
  case 0:
    *value = 1024; /* threads */
    break;
  case 3:
    *value = thing->stack;
    break;
  case 4:
    *value = thing->registers;
    break;
  case 8:
    *value = thing->dynamic_shared;
    break;
  default:
    *value = 0;
  }
  return SUCCESS;
}

EXPORT unsigned cuFuncSetAttribute(void *kernel, int attribute, int value) {
  ENTER_CURRENT;
  struct thing *thing = find(kernel, KERNEL);
  if (!thing) return misuse(INVALID_HANDLE, "a kernel that is none");
  if (attribute == 8 && value > SHARED_PER_BLOCK) return INVALID_VALUE;
  if (attribute == 8) thing->dynamic_shared = value;
  if (attribute == 14) thing->any_cluster = value;
  return SUCCESS;
}

EXPORT unsigned cuFuncLoad(void *kernel) {
  ENTER_CURRENT;
  return find(kernel, KERNEL) ? SUCCESS : misuse(INVALID_HANDLE, "a kernel that is none");
}

EXPORT unsigned cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *kernel, int threads, size_t shared) {
  ENTER_CURRENT;
  if (!find(kernel, KERNEL) || threads < 1) return misuse(INVALID_HANDLE, "a kernel that is none");
  *blocks = threads > 1024 || shared > SHARED_PER_BLOCK ? 0 : RESIDENT;
  return SUCCESS;
}

/* ---- launches */

static int is_launchable(const struct thing *kernel, const struct fake_launch *launch) {
  const unsigned allowed =
      kernel->dynamic_shared > PLAIN_SHARED ? (unsigned)kernel->dynamic_shared : PLAIN_SHARED;
  const unsigned threads = launch->threads[0] * launch->threads[1] * launch->threads[2];
  return launch->grid[0] && launch->grid[0] <= INT32_MAX && launch->grid[1] == 1 && launch->grid[2] == 1 &&
         threads && threads <= 1024 && launch->shared <= allowed;
}

/* A pointer that a kernel gets: into, or just behind, a block of its GPU or pinned memory. An array of no
 * elements may be anywhere in the first page, where nothing can be read. */
static unsigned check_pointer(const struct work *work, uint64_t pointer) {
  if (pointer < 4096 || view(pointer, 0, work->device)) return SUCCESS;
  return misuse(INVALID_VALUE, "kernel '%s' gets a pointer (%#llx) that is none into memory of GPU %d",
                work->launch.kernel, (unsigned long long)pointer, work->device);
}

static unsigned check_parameters(const struct work *work) {
  const struct fake_parameter *parameter = work->kernel->kernel->parameters;
  unsigned result = SUCCESS;
  for (int i = 0; parameter[i].bytes && !result; i++) {
    if (!work->launch.parameters[i])
      return misuse(INVALID_VALUE, "kernel '%s' gets too few parameters", work->launch.kernel);
    const int is_number = parameter[i].kind == 'v' || parameter[i].kind == 'i';
    for (size_t at = 0; !is_number && at < parameter[i].bytes && !result;
         at += sizeof(uint64_t)) {
      uint64_t pointer;
      memcpy(&pointer, (const char *)work->launch.parameters[i] + at, sizeof pointer);
      result = check_pointer(work, pointer);
    }
  }
  return result;
}

unsigned check_launch(const struct work *work) {
  const struct thing *kernel = find(work->kernel, KERNEL);
  if (!kernel) return misuse(INVALID_HANDLE, "a kernel that is none, or whose module was unloaded");
  if (kernel->device != work->device)
    return misuse(INVALID_HANDLE, "a kernel of GPU %d in the context of GPU %d", kernel->device,
                  work->device);
  if (!is_launchable(kernel, &work->launch)) return misuse(INVALID_VALUE, "a launch beyond the GPU's limits");
  return kernel->kernel ? check_parameters(work) : SUCCESS;
}

/* A kernel that the emulator stopped: an error of the context from now on, which some later call tells. */
static void trap(int device, const char *message) {
  fprintf(stderr, "the fake GPU stops a kernel: %s\n", message);
  if (!state.traps++) snprintf(state.trap, sizeof state.trap, "%s", message);
  contexts[device].failure = LAUNCH_FAILED;
}

static unsigned execute(const struct work *work) {
  char message[900] = "";
  const struct fake_launch *launch = &work->launch;
  open_memory(work->device);
  const int result = machine_run(work->kernel->kernel, launch->grid[0], launch->threads[0], launch->shared,
                                 launch->parameters, launch->cooperative, launch->overlaps, message, sizeof message);
  const struct thing *overrun = close_memory(work->device);
  state.executed++;
  if (!result && overrun)
    snprintf(message, sizeof message, "kernel '%s' stores beyond an allocation of %zu bytes", launch->kernel,
             overrun->length);
  if (*message) trap(work->device, message);
  return result > 0 ? (unsigned)result : SUCCESS;
}

/* Nanoseconds of a launch, without what a hook adds. */
static long duration(const struct work *work) {
  enum { PLAIN = 5000 };
  const struct fake_kernel *kernel = work->kernel->kernel;
  int64_t scalar = 0;
  int last = -1;
  while (kernel && kernel->parameters[last + 1].bytes) last++;
  if (state.scalar_ns && last >= 0 && kernel->parameters[last].kind == 'i')
    memcpy(&scalar, work->launch.parameters[last], sizeof scalar);
  return PLAIN + state.scalar_ns * (long)scalar;
}

unsigned perform_launch(const struct work *work) {
  state.launches++;
  state.clock_ns += duration(work);
  if (state.hook) state.hook(state.user, &work->launch);
  if (work->kernel->kernel) return execute(work);
  /* What the fake cannot run (CUDA that it cannot compile, a real cubin) must not seem to run, unless a test has a hook
   * for it or asks for that. */
  if (!state.hook && !state.unrun)
    return misuse(NOT_SUPPORTED, "kernel '%s' is of an image that only a GPU takes", work->launch.kernel);
  return SUCCESS;
}

EXPORT unsigned cuLaunchKernel(void *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                               unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                               void *stream, void **parameters, void **extra) {
  ENTER_CURRENT;
  struct thing *thing = find(kernel, KERNEL);
  if (!thing) return misuse(INVALID_HANDLE, "a kernel that is none");
  const struct work work = {
      .kind = LAUNCH,
      .device = current_device(),
      .kernel = thing,
      .launch = {.kernel = thing->name,
                 .grid = {grid_x, grid_y, grid_z},
                 .threads = {block_x, block_y, block_z},
                 .shared = shared,
                 .stream = stream,
                 .parameters = parameters},
  };
  if (extra) return misuse(INVALID_VALUE, "a launch with extra parameters");
  return submit(&work, stream);
}

/* CUlaunchConfig and CUlaunchAttribute. */
struct attribute {
  unsigned id;
  char pad[4];
  union {
    char bytes[64];
    int allowed;
    unsigned cluster[3];
  } value;
};
struct config {
  unsigned grid[3], threads[3], shared;
  void *stream;
  const struct attribute *attributes;
  unsigned attributes_count;
};

EXPORT unsigned cuLaunchKernelEx(const struct config *config, void *kernel, void **parameters, void **extra) {
  enum { COOPERATIVE = 2, CLUSTER = 4, OVERLAP = 6 };
  ENTER_CURRENT;
  struct thing *thing = find(kernel, KERNEL);
  if (!thing) return misuse(INVALID_HANDLE, "a kernel that is none");
  struct work work = {
      .kind = LAUNCH,
      .device = current_device(),
      .kernel = thing,
      .launch = {.kernel = thing->name,
                 .shared = config->shared,
                 .stream = config->stream,
                 .parameters = parameters},
  };
  memcpy(work.launch.grid, config->grid, sizeof config->grid);
  memcpy(work.launch.threads, config->threads, sizeof config->threads);
  for (unsigned i = 0; i < config->attributes_count; i++)
    if (config->attributes[i].id == COOPERATIVE) work.launch.cooperative = config->attributes[i].value.allowed;
    else if (config->attributes[i].id == CLUSTER && capability_of(work.device) >= 90) {
      /* One cluster runs as a cooperative grid does. */
      const unsigned most = thing->any_cluster ? 16 : 8, size = config->attributes[i].value.cluster[0];
      if (size != config->grid[0] || size > most) return misuse(INVALID_VALUE, "a grid that is not one cluster");
      work.launch.cooperative = 1;
      return extra ? misuse(INVALID_VALUE, "a launch with extra parameters") : submit(&work, config->stream);
    }
    else if (config->attributes[i].id == OVERLAP && capability_of(work.device) >= 90)
      work.launch.overlaps = config->attributes[i].value.allowed;
    else
      return misuse(INVALID_VALUE, "attribute %u of a launch, which this GPU does not know",
                    config->attributes[i].id);
  if (extra) return misuse(INVALID_VALUE, "a launch with extra parameters");
  if (work.launch.cooperative && work.launch.grid[0] > RESIDENT * MULTIPROCESSORS) return COOPERATIVE_TOO_LARGE;
  return submit(&work, config->stream);
}
