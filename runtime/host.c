// SPDX-License-Identifier: Apache-2.0
/* Generated kernels on the host: see host.h.
 *
 * Read it in the order of its sections: the work directory; compiling; composing a translation unit out of
 * many kernels; building; running job files; self-tests. A unit is one translation unit and its executable.
 */
#include "runtime/host.h"

#include "base/available.h"
#include "base/embedded.h"
#include "base/environment.h"
#include "base/file.h"
#include "base/fork.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/signals.h"
#include "base/text.h"
#include "runtime/emulation/jobs.h"
#include "runtime/evidence.h"
#include "runtime/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4400, MAX_WORDS = 16, COMPILE_SECONDS = 900 };

struct cb_host {
  struct cb_host_options options;
  char directory[4096];
  int lock;                         /* on the directory */
  char compiler[1024];              /* its words, separated by NULs */
  const char *words[MAX_WORDS + 1]; /* into `compiler`; NULL-terminated */
  int programs;                     /* built so far, for names of files */
};

struct unit {
  int first, count; /* of the program's texts */
  char name[32];    /* "p0u3" */
};

struct cb_host_program {
  struct cb_host *host;
  int kernels, texts, units_count;
  int *text_of; /* kernel → text */
  struct unit *units;
  double seconds;
};

void cb_host_options_default(struct cb_host_options *options) {
  *options =
      (struct cb_host_options){.sanitize = 1, .optimize = 1, .debug = 1, .batch = 64, .job_seconds = 120};
}

/* ---- the work directory */

static void path_in(const struct cb_host *host, const char *name, const char *suffix, char path[PATH_SIZE]) {
  snprintf(path, PATH_SIZE, "%s/%s%s", host->directory, name, suffix);
}

static enum cb_status write_file(const char *path, const char *bytes, size_t length, struct cb_diag *diag) {
  struct cb_held_signals held;
  FILE *file = fopen(path, "wb");
  if (!file) return cb_fail(diag, cb_errno_status(errno), "cannot create '%s': %s", path, strerror(errno));
  cb_signals_hold(&held);
  const int written = fwrite(bytes, 1, length, file) == length, closed = !fclose(file);
  cb_signals_release(&held);
  return written && closed ? CB_OK : cb_fail(diag, CB_ERR_IO, "cannot write '%s': %s", path, strerror(errno));
}

static enum cb_status write_embedded(const struct cb_host *host, const char *source, const char *name,
                                     struct cb_diag *diag) {
  const struct cb_embedded_file *file = cb_embedded_find(source);
  char path[PATH_SIZE];
  if (!file) return cb_fail(diag, CB_ERR_INTERNAL, "the library does not carry '%s'", source);
  path_in(host, name, "", path);
  return write_file(path, file->text, file->length, diag);
}

/* Removes a directory that holds only files. */
static void remove_directory(const char *path) {
  DIR *directory = opendir(path);
  for (struct dirent *entry; directory && (entry = readdir(directory));) {
    char name[PATH_SIZE];
    snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
    if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) unlink(name);
  }
  if (directory) closedir(directory);
  rmdir(path);
}

/* A work directory belongs to the process that holds its lock. Returns the descriptor, or −1. */
static int lock_directory(const char *path, int flags) {
  char name[PATH_SIZE + 8];
  snprintf(name, sizeof name, "%s/lock", path);
  const int lock = open(name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
  if (lock < 0 || !flock(lock, LOCK_EX | LOCK_NB)) return lock;
  close(lock);
  return -1;
}

/* Removes what processes of this user left in `parent` when they were killed: directories that nobody holds.
 */
static void sweep(const char *parent) {
  DIR *directory = opendir(parent);
  for (struct dirent *entry; directory && (entry = readdir(directory));) {
    char path[PATH_SIZE];
    struct stat status;
    if (strncmp(entry->d_name, "cbgen-", 6) || strlen(entry->d_name) != 12) continue;
    snprintf(path, sizeof path, "%s/%s", parent, entry->d_name);
    if (lstat(path, &status) || !S_ISDIR(status.st_mode) || status.st_uid != geteuid()) continue;
    const int lock = lock_directory(path, 0);
    if (lock < 0) continue;
    remove_directory(path);
    close(lock);
  }
  if (directory) closedir(directory);
}

static enum cb_status make_directory(struct cb_host *host, struct cb_diag *diag) {
  const char *temporary = cb_environment("TMPDIR");
  if (!temporary || !*temporary) temporary = "/tmp";
  sweep(temporary);
  host->lock = -1;
  for (int attempt = 0; attempt < 8 && host->lock < 0; attempt++) {
    const int length = snprintf(host->directory, sizeof host->directory, "%s/cbgen-XXXXXX", temporary);
    if (length < 0 || (size_t)length >= sizeof host->directory || !mkdtemp(host->directory)) {
      host->directory[0] = 0;
      return cb_fail(diag, CB_ERR_IO, "cannot create a directory in '%s': %s; set TMPDIR", temporary,
                     strerror(errno));
    }
    /* Fails only when a sweep came between the two steps: that one removes the directory. */
    host->lock = lock_directory(host->directory, O_CREAT);
  }
  return host->lock < 0 ? cb_fail(diag, CB_ERR_IO, "cannot lock a directory in '%s'; set TMPDIR", temporary)
                        : CB_OK;
}

/* The first `size - 1` bytes of a file; "" when it cannot be read. */
static void read_head(const char *path, char *bytes, size_t size) {
  size_t length = 0;
  FILE *file = fopen(path, "rb");
  if (file) {
    length = fread(bytes, 1, size - 1, file);
    fclose(file);
  }
  bytes[length] = 0;
}

/* ---- messages out of a child's output */

/* Whether a line says something to the reader: an error, or a place in it. */
static int tells(const char *line, size_t length) {
  static const char *const marks[] = {"error",
                                      "ERROR",
                                      "warning:",
                                      "cbgen emulation",
                                      "  in kernel ",
                                      "  thread",
                                      "READ of size",
                                      "WRITE of size",
                                      " is located ",
                                      "#0 ",
                                      "#1 ",
                                      "#2 ",
                                      "undefined reference",
                                      "cannot find"};
  for (size_t m = 0; m < sizeof marks / sizeof *marks; m++)
    if (memmem(line, length, marks[m], strlen(marks[m]))) return 1;
  return 0;
}

/* The lines of `output` that tell something, or its first ones when none does; as many as fit. */
static void summarise(const char *output, char *message, size_t size) {
  size_t used = 0;
  message[0] = 0;
  for (int all = 0; all < 2 && !used; all++) {
    for (const char *line = output; *line;) {
      const size_t length = strcspn(line, "\n");
      if ((all || tells(line, length)) && used + length + 2 < size) {
        if (used) message[used++] = '\n';
        memcpy(message + used, line, length);
        message[used += length] = 0;
      }
      line += length + (line[length] == '\n');
    }
  }
}

static void summarise_file(const char *path, char *message, size_t size) {
  static const size_t capacity = 64 * 1024;
  char *output = cb_alloc(capacity, 1);
  message[0] = 0;
  if (!output) return;
  read_head(path, output, capacity);
  summarise(output, message, size);
  cb_free(output);
}

/* ---- compiling */

/* Splits the compiler's command at blanks ("ccache g++"); no quoting. */
static int set_compiler(struct cb_host *host, const char *command) {
  int count = 0;
  if (strlen(command) >= sizeof host->compiler) return 0;
  snprintf(host->compiler, sizeof host->compiler, "%s", command);
  char *rest = NULL;
  for (char *word = strtok_r(host->compiler, " \t", &rest); word && count < MAX_WORDS;
       word = strtok_r(NULL, " \t", &rest))
    host->words[count++] = word;
  host->words[count] = NULL;
  return count > 0;
}

struct command {
  const char *words[64];
  int count;
};

static void add_word(struct command *command, const char *word) {
  if (command->count < 63) command->words[command->count++] = word;
  command->words[command->count] = NULL;
}

static void add_words(struct command *command, const char *const *words) {
  for (; *words; words++) add_word(command, *words);
}

static const char *const language_flags[] = {"-std=c++17", "-pipe", "-fno-exceptions", "-fno-rtti", NULL};
static const char *const warning_flags[] = {
    "-Wall", "-Wextra", "-Werror", "-Wunused", "-Wunused-const-variable", "-Wno-unknown-pragmas", NULL};
/* Left out of UBSan: what AddressSanitizer finds as well, and alignment, which the shims check. They would
 * double the compile time. */
static const char *const sanitize_flags[] = {"-fsanitize=address,undefined",
                                             "-fno-sanitize=vptr,null,alignment,object-size,pointer-overflow,"
                                             "nonnull-attribute,returns-nonnull-attribute,"
                                             "return,unreachable,builtin",
                                             "-fno-sanitize-recover=all", NULL};
static const char *const emulator_files[] = {"emulation.h",   "fiber.h",    "jobs.h",     "driver.h",
                                             "scheduler.cpp", "shared.cpp", "visibility.cpp", "memory.cpp",
                                             "report.cpp",    "fiber.cpp",  "driver.cpp",     NULL};
/* One translation unit: most of the time goes into the headers. */
static const char emulator_text[] = "#include \"scheduler.cpp\"\n#include \"shared.cpp\"\n#include \"visibility.cpp\"\n"
                                    "#include \"memory.cpp\"\n#include \"report.cpp\"\n#include \"fiber.cpp\"\n";
static const char *const sanitizer_environment[] = {
    "ASAN_OPTIONS=detect_leaks=0:exitcode=82:detect_stack_use_after_return=0:allocator_may_return_null=1",
    "UBSAN_OPTIONS=exitcode=82:print_stacktrace=0", NULL};

/* Runs a compiler command in the work directory. `log` names the file of its output. */
static enum cb_status compile(const struct cb_host *host, const struct command *command, const char *log,
                              struct cb_diag *diag) {
  char output[PATH_SIZE], message[900];
  path_in(host, log, ".log", output);
  struct cb_process process = {
      .argv = command->words, .directory = host->directory, .output = output, .seconds = COMPILE_SECONDS};
  enum cb_status s = cb_process_run(&process, diag);
  if (s) return s;
  if (!process.found)
    return cb_fail(diag, CB_ERR_MISSING,
                   "cannot run the C++ compiler '%s'; install g++ or clang++, or set CXX", host->words[0]);
  if (process.timed_out)
    return cb_fail(diag, CB_ERR_COMPILE, "the C++ compiler '%s' did not end within %d s", host->words[0],
                   (int)COMPILE_SECONDS);
  if (process.exit_code == 0) return CB_OK;
  summarise_file(output, message, sizeof message);
  return cb_fail_lines(diag, CB_ERR_COMPILE, message[0] ? message : "the C++ compiler crashed");
}

/* "-c" with several files gives several objects. */
static enum cb_status compile_emulator(const struct cb_host *host, struct cb_diag *diag) {
  struct command command = {{0}, 0};
  add_words(&command, host->words);
  add_words(&command, language_flags);
  add_word(&command, "-O2");
  if (host->options.sanitize) add_word(&command, "-DEMULATION_SANITIZED");
  add_words(&command, (const char *const[]){"-c", "emulator.cpp", "driver.cpp", NULL});
  return compile(host, &command, "emulator", diag);
}

/* A sanitizer's runtime is a package of its own for some compilers: find out before any kernel is compiled.
 */
static enum cb_status check_sanitizers(const struct cb_host *host, struct cb_diag *diag) {
  char path[PATH_SIZE];
  struct cb_diag detail = {0};
  struct command command = {{0}, 0};
  path_in(host, "probe.cpp", "", path);
  enum cb_status s = write_file(path, "int main() {}\n", 14, diag);
  if (s) return s;
  add_words(&command, host->words);
  add_words(&command, sanitize_flags);
  add_words(&command, (const char *const[]){"probe.cpp", "-o", "probe", NULL});
  if ((s = compile(host, &command, "probe", &detail)) == CB_OK) return CB_OK;
  if (s != CB_ERR_COMPILE) return cb_fail_lines(diag, s, detail.message);
  return cb_fail(
      diag, CB_ERR_MISSING,
      "'%s' cannot link AddressSanitizer and UBSan; install its runtime (g++: libasan8 and libubsan1, "
      "clang: libclang-rt-dev), use another compiler with CXX, or switch the sanitizers off",
      host->words[0]);
}

/* Takes the first compiler that compiles the emulator. */
static enum cb_status find_compiler(struct cb_host *host, struct cb_diag *diag) {
  static const char *const usual[] = {"c++", "g++", "clang++"};
  const char *wanted = host->options.compiler ? host->options.compiler : cb_environment("CXX");
  if (wanted && *wanted) {
    if (!set_compiler(host, wanted)) return cb_fail(diag, CB_ERR_ARGUMENT, "no compiler in '%s'", wanted);
    return compile_emulator(host, diag);
  }
  enum cb_status s = CB_ERR_MISSING;
  for (size_t i = 0; i < sizeof usual / sizeof *usual && s == CB_ERR_MISSING; i++) {
    set_compiler(host, usual[i]);
    s = compile_emulator(host, diag);
  }
  if (s == CB_ERR_MISSING)
    cb_fail(diag, s, "no C++ compiler (looked for c++, g++ and clang++); install g++, or set CXX");
  return s;
}

static enum cb_status write_emulator(const struct cb_host *host, struct cb_diag *diag) {
  char source[128], path[PATH_SIZE];
  enum cb_status s = write_embedded(host, "templates/shims.cu.in", "shims.h", diag);
  for (const char *const *list = emulator_files; !s && *list; list++) {
    snprintf(source, sizeof source, "runtime/emulation/%s", *list);
    s = write_embedded(host, source, *list, diag);
  }
  path_in(host, "emulator.cpp", "", path);
  return s ? s : write_file(path, emulator_text, sizeof emulator_text - 1, diag);
}

enum cb_status cb_host_open(struct cb_host **out, const struct cb_host_options *options,
                            struct cb_diag *diag) {
  *out = NULL;
  if (cb_environment_is_foreign()) /* compilers look for their parts where variables say, PATH among them */
    return cb_fail(diag, CB_ERR_UNSUPPORTED,
                   "kernels are not compiled for the host with more rights than the caller's (set-user-ID)");
  struct cb_host *host = cb_calloc(1, sizeof *host);
  if (!host) return cb_fail_memory(diag, "host execution", sizeof *host);
  host->options = *options;
  host->lock = -1;
  if (host->options.parallel <= 0) host->options.parallel = omp_get_num_procs();
  if (cb_thread_was_forked()) host->options.parallel = 1; /* see base/fork.h */
  if (host->options.batch <= 0) host->options.batch = 1;
  enum cb_status s = make_directory(host, diag);
  if (!s) s = write_emulator(host, diag);
  if (!s) s = find_compiler(host, diag);
  if (!s && options->sanitize) s = check_sanitizers(host, diag);
  if (s)
    cb_host_close(host);
  else
    *out = host;
  return s;
}

void cb_host_close(struct cb_host *host) {
  if (!host) return;
  if (host->directory[0]) remove_directory(host->directory);
  if (host->lock >= 0) close(host->lock);
  cb_free(host);
}

const char *cb_host_compiler(const struct cb_host *host) {
  return host->words[0];
}

/* Flags and objects between the compiler's name and its input, for kernels. */
static void add_kernel_flags(const struct cb_host *host, struct command *command) {
  static const char *const levels[] = {"-O0", "-O1", "-O2", "-O3"};
  const int level = host->options.optimize < 0 ? 0 : host->options.optimize > 3 ? 3 : host->options.optimize;
  add_words(command, host->words);
  add_words(command, language_flags);
  add_words(command, warning_flags);
  add_word(command, levels[level]);
  if (host->options.debug) add_word(command, "-g1");
  if (host->options.sanitize) add_words(command, sanitize_flags);
}

/* ---- composing a translation unit */

/* The glue of text `t`: its host functions behind one signature. */
static void compose_glue(struct cb_text *out, const struct cb_host_kernel *kernel, int t) {
  const char *const type = cb_type_c_name(kernel->vector_type), *const symbol = kernel->symbol;
  const int scaled = kernel->form == CB_FORM_AXPBY;
  cb_text_add(out,
              "namespace k%d {\n"
              "static const char *glue_load(void **matrix, const void *data, size_t bytes) {\n"
              "  *matrix = new %s_matrix{};\n"
              "  return %s_load((%s_matrix *)*matrix, data, bytes);\n"
              "}\n",
              t, symbol, symbol, symbol);
  cb_text_add(
      out,
      "static const char *glue_multiply(const void *matrix, const void *x, void *y, double%s, double%s) {\n"
      "  return %s_multiply((const %s_matrix *)matrix, (const %s *)x, (%s *)y, %snullptr);\n"
      "}\n",
      scaled ? " alpha" : "", scaled ? " beta" : "", symbol, symbol, type, type,
      scaled ? "alpha, beta, " : "");
  cb_text_add(out,
              "static void glue_free(void *matrix) {\n"
              "  %s_free((%s_matrix *)matrix);\n"
              "  delete (%s_matrix *)matrix;\n"
              "}\n}\n",
              symbol, symbol, symbol);
}

/* `chosen[t]` is the kernel whose text is number t. */
static void compose_unit(struct cb_text *out, const struct cb_host_kernel *kernels, const int *chosen,
                         const struct unit *unit) {
  cb_text_add_string(out, "#include \"shims.h\"\n#include \"driver.h\"\n");
  for (int t = unit->first; t < unit->first + unit->count; t++) {
    const struct cb_host_kernel *kernel = &kernels[chosen[t]];
    cb_text_add(out, "namespace k%d {\n#line %d \"k%d.cu\"\n", t,
                kernel->first_line > 0 ? kernel->first_line : 1, chosen[t]);
    cb_text_add_string(out, kernel->text);
    cb_text_add(out, "\n}\n#line 1 \"glue of k%d.cu\"\n", chosen[t]);
    compose_glue(out, kernel, t);
  }
  cb_text_add_string(out, "const EmulatedKernel emulated_kernels[] = {\n");
  for (int t = unit->first; t < unit->first + unit->count; t++)
    cb_text_add(out, "    {\"%s\", %zu, k%d::glue_load, k%d::glue_multiply, k%d::glue_free},\n",
                kernels[chosen[t]].symbol, cb_type_size(kernels[chosen[t]].vector_type), t, t, t);
  cb_text_add_string(out, "};\n");
}

/* ---- building */

struct fingerprint {
  struct cb_hash hash;
  int kernel;
};

static int compare_fingerprints(const void *left, const void *right) {
  const struct fingerprint *a = left, *b = right;
  if (a->hash.high != b->hash.high) return a->hash.high < b->hash.high ? -1 : 1;
  if (a->hash.low != b->hash.low) return a->hash.low < b->hash.low ? -1 : 1;
  return a->kernel - b->kernel;
}

/* Everything that shapes the compiled kernel. */
static struct cb_hash kernel_hash(const struct cb_host_kernel *kernel) {
  struct cb_hash hash = {0, 0};
  cb_hash_field(&hash, "text", kernel->text, strlen(kernel->text));
  cb_hash_field(&hash, "symbol", kernel->symbol, strlen(kernel->symbol));
  cb_hash_number(&hash, "line", (uint64_t)kernel->first_line);
  cb_hash_number(&hash, "type", (uint64_t)kernel->vector_type);
  cb_hash_number(&hash, "form", (uint64_t)kernel->form);
  return hash;
}

/* Numbers the different texts in the order of their first kernels: fills text_of and `chosen`. */
static int number_texts(struct cb_host_program *program, const struct cb_host_kernel *kernels, int *chosen) {
  struct fingerprint *prints = cb_alloc((size_t)program->kernels, sizeof *prints);
  if (!prints) return 0;
  for (int k = 0; k < program->kernels; k++) prints[k] = (struct fingerprint){kernel_hash(&kernels[k]), k};
  qsort(prints, (size_t)program->kernels, sizeof *prints, compare_fingerprints);
  for (int i = 0, first = 0; i < program->kernels; i++) {
    const int same =
        i && prints[i].hash.high == prints[i - 1].hash.high && prints[i].hash.low == prints[i - 1].hash.low;
    if (!same) first = prints[i].kernel;
    program->text_of[prints[i].kernel] = first;
  }
  for (int k = 0; k < program->kernels; k++) {
    if (program->text_of[k] == k) {
      chosen[program->texts] = k;
      program->text_of[k] = program->texts++;
    } else {
      program->text_of[k] = program->text_of[program->text_of[k]];
    }
  }
  cb_free(prints);
  return 1;
}

static enum cb_status build_unit(const struct cb_host *host, const struct cb_host_kernel *kernels,
                                 const int *chosen, const struct unit *unit, struct cb_diag *diag) {
  char path[PATH_SIZE], source[48];
  struct cb_text text = {0};
  compose_unit(&text, kernels, chosen, unit);
  if (text.failed) {
    cb_text_release(&text);
    return cb_fail_memory(diag, "text of a batch of kernels", 0);
  }
  snprintf(source, sizeof source, "%s.cpp", unit->name);
  path_in(host, source, "", path);
  enum cb_status s = write_file(path, text.bytes, text.length, diag);
  cb_text_release(&text);
  if (s) return s;
  struct command command = {{0}, 0};
  add_kernel_flags(host, &command);
  add_words(&command, (const char *const[]){source, "driver.o", "emulator.o", "-lm", "-o", unit->name, NULL});
  s = compile(host, &command, unit->name, diag);
  unlink(path);
  return s;
}

/* Equal shares, so that the last unit does not keep one processor waiting for a short rest. */
static enum cb_status make_units(struct cb_host_program *program, struct cb_diag *diag) {
  const struct cb_host_options *options = &program->host->options;
  int count = (program->texts + options->batch - 1) / options->batch;
  if (count < options->parallel)
    count = options->parallel < program->texts ? options->parallel : program->texts;
  program->units = cb_calloc((size_t)count, sizeof *program->units);
  if (!program->units) return cb_fail_memory(diag, "host program", (unsigned)count * sizeof *program->units);
  program->units_count = count;
  for (int u = 0; u < count; u++) {
    struct unit *unit = &program->units[u];
    unit->first = (int)((int64_t)program->texts * u / count);
    unit->count = (int)((int64_t)program->texts * (u + 1) / count) - unit->first;
    snprintf(unit->name, sizeof unit->name, "p%du%d", program->host->programs, u);
  }
  program->host->programs++;
  return CB_OK;
}

static enum cb_status build_units(struct cb_host_program *program, const struct cb_host_kernel *kernels,
                                  const int *chosen, struct cb_diag *diag) {
  enum cb_status worst = CB_OK;
#pragma omp parallel for schedule(dynamic, 1) num_threads(program->host->options.parallel)
  for (int u = 0; u < program->units_count; u++) {
    struct cb_diag own = {0};
    const enum cb_status s = build_unit(program->host, kernels, chosen, &program->units[u], &own);
#pragma omp critical(cb_host_status)
    if (s && !worst) worst = cb_fail_lines(diag, s, own.message);
  }
  return worst;
}

enum cb_status cb_host_build(struct cb_host_program **out, struct cb_host *host,
                             const struct cb_host_kernel *kernels, int count, struct cb_diag *diag) {
  const double start = omp_get_wtime();
  enum cb_status s = CB_OK;
  *out = NULL;
  struct cb_host_program *program = cb_calloc(1, sizeof *program);
  int *chosen = cb_alloc((size_t)count, sizeof *chosen);
  if (program) program->text_of = cb_alloc((size_t)count, sizeof *program->text_of);
  if (!program || !chosen || !program->text_of) {
    s = cb_fail_memory(diag, "host program", (unsigned)count * sizeof *chosen);
    goto out;
  }
  program->host = host;
  program->kernels = count;
  if (!number_texts(program, kernels, chosen)) s = cb_fail_memory(diag, "hashes of kernels", (unsigned)count);
  if (!s) s = make_units(program, diag);
  if (!s) s = build_units(program, kernels, chosen, diag);
  program->seconds = omp_get_wtime() - start;
out:
  cb_free(chosen);
  if (s)
    cb_host_program_free(program);
  else
    *out = program;
  return s;
}

void cb_host_program_free(struct cb_host_program *program) {
  if (!program) return;
  for (int u = 0; u < program->units_count; u++) {
    char path[PATH_SIZE];
    path_in(program->host, program->units[u].name, "", path);
    unlink(path);
    path_in(program->host, program->units[u].name, ".log", path);
    unlink(path);
  }
  cb_free(program->text_of);
  cb_free(program->units);
  cb_free(program);
}

double cb_host_build_seconds(const struct cb_host_program *program) {
  return program->seconds;
}
int cb_host_build_texts(const struct cb_host_program *program) {
  return program->texts;
}

/* ---- running */

/* A job file under construction: `offset` grows as data is laid out; nothing is written before its size is
 * known. */
struct job_file {
  struct cb_host_job **jobs; /* of this unit */
  int count;
  struct emulation_job *records; /* in `bytes` */
  char *bytes;
  size_t length;
};

static uint64_t align_up(uint64_t n) {
  return (n + 63) / 64 * 64;
}

/* Where the bytes at `p` lie in the file: jobs that share a pointer share the copy. */
static uint64_t place(const struct cb_host_job *const *jobs, const struct emulation_job *records, int before,
                      const void *p, uint64_t bytes, uint64_t *end) {
  for (int j = before; j-- > 0 && before - j < 64;) {
    if (jobs[j]->data == p && (uint64_t)jobs[j]->data_bytes == bytes) return records[j].data;
    if (jobs[j]->x == p && (uint64_t)jobs[j]->x_bytes == bytes) return records[j].x;
    if (jobs[j]->y == p && (uint64_t)jobs[j]->y_bytes == bytes) return records[j].y;
  }
  const uint64_t at = *end;
  *end = align_up(at + bytes);
  return at;
}

static void lay_out(const struct job_file *file, const struct cb_host_program *program,
                    const struct unit *unit, struct emulation_job *records, uint64_t *end) {
  for (int j = 0; j < file->count; j++) {
    const struct cb_host_job *job = file->jobs[j];
    struct emulation_job *record = &records[j];
    const struct cb_host_job *const *jobs = (const struct cb_host_job *const *)file->jobs;
    *record = (struct emulation_job){.kernel = (uint32_t)(program->text_of[job->kernel] - unit->first),
                                     .seed = job->seed,
                                     .products = (uint32_t)job->products,
                                     .repeatable = (uint32_t)job->repeatable,
                                     .alpha = job->alpha,
                                     .beta = job->beta,
                                     .data_bytes = (uint64_t)job->data_bytes,
                                     .x_bytes = (uint64_t)job->x_bytes,
                                     .y_bytes = (uint64_t)job->y_bytes};
    record->data = place(jobs, records, j, job->data, record->data_bytes, end);
    record->x = place(jobs, records, j, job->x, record->x_bytes, end);
    record->y = place(jobs, records, j, job->y, record->y_bytes, end);
    record->result = *end;
    *end = align_up(*end + record->y_bytes);
  }
}

static enum cb_status map_job_file(struct job_file *file, const char *path, struct cb_diag *diag) {
  const int descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (descriptor < 0) return cb_fail(diag, CB_ERR_IO, "cannot create '%s': %s", path, strerror(errno));
  struct cb_held_signals held;
  cb_signals_hold(&held);
  const int error = posix_fallocate(descriptor, 0, (off_t)file->length);
  cb_signals_release(&held);
  if (!error) file->bytes = mmap(NULL, file->length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  close(descriptor);
  if (error || file->bytes == MAP_FAILED) {
    file->bytes = NULL;
    return cb_fail(diag, CB_ERR_IO, "cannot make room for %zu bytes in '%s': %s; set TMPDIR", file->length,
                   path, strerror(error ? error : errno));
  }
  return CB_OK;
}

static void copy_in(char *to, const void *from, int64_t bytes) {
  if (bytes) memcpy(to, from, (size_t)bytes);
}

static enum cb_status write_job_file(struct job_file *file, const struct cb_host_program *program,
                                     const struct unit *unit, const char *path, struct cb_diag *diag) {
  const size_t table = (size_t)file->count * sizeof(struct emulation_job);
  struct emulation_job *records = cb_alloc(table, 1);
  if (!records) return cb_fail_memory(diag, "jobs", table);
  uint64_t end = align_up(sizeof(struct emulation_header) + table);
  lay_out(file, program, unit, records, &end);
  file->length = end;
  const enum cb_status s = map_job_file(file, path, diag);
  if (!s) {
    const struct emulation_header header = {EMULATION_MAGIC, (uint64_t)file->count,
                                            program->host->options.job_seconds};
    memcpy(file->bytes, &header, sizeof header);
    memcpy(file->bytes + sizeof header, records, table);
    file->records = (struct emulation_job *)(file->bytes + sizeof header);
    for (int j = 0; j < file->count; j++) {
      copy_in(file->bytes + records[j].data, file->jobs[j]->data, file->jobs[j]->data_bytes);
      copy_in(file->bytes + records[j].x, file->jobs[j]->x, file->jobs[j]->x_bytes);
      copy_in(file->bytes + records[j].y, file->jobs[j]->y, file->jobs[j]->y_bytes);
    }
  }
  cb_free(records);
  return s;
}

static int next_unfinished(const struct job_file *file) {
  for (int j = 0; j < file->count; j++)
    if (file->records[j].state == EMULATION_WAITING || file->records[j].state == EMULATION_RUNNING) return j;
  return -1;
}

/* The child died: the job that was running is to blame. */
static void blame(struct job_file *file, const struct cb_process *process) {
  const int j = next_unfinished(file);
  struct cb_host_job *job = file->jobs[j];
  file->records[j].state = EMULATION_DONE;
  job->outcome = CB_HOST_STOPPED;
  job->exit_code = process->timed_out ? EMULATION_TIME
                   : process->signal  ? EMULATION_SIGNAL
                                      : process->exit_code;
  summarise_file(process->output, job->message, sizeof job->message);
  if (process->signal == SIGKILL && !process->timed_out)
    snprintf(job->message, sizeof job->message, "killed, perhaps for lack of memory");
  else if (!job->message[0])
    snprintf(job->message, sizeof job->message, "ended with exit status %d, signal %d", process->exit_code,
             process->signal);
}

static void collect(const struct job_file *file) {
  static const enum cb_host_outcome outcomes[] = {[EMULATION_DONE] = CB_HOST_DONE,
                                                  [EMULATION_REFUSED] = CB_HOST_REFUSED,
                                                  [EMULATION_UNREPEATABLE] = CB_HOST_UNREPEATABLE,
                                                  [EMULATION_LEAKED] = CB_HOST_LEAKED};
  for (int j = 0; j < file->count; j++) {
    struct cb_host_job *job = file->jobs[j];
    const struct emulation_job *record = &file->records[j];
    if (job->outcome == CB_HOST_STOPPED) continue;
    job->outcome = outcomes[record->state];
    job->row = (int64_t)record->row;
    job->seconds = record->seconds;
    snprintf(job->message, sizeof job->message, "%s", record->message);
    if (job->result && job->y_bytes) memcpy(job->result, file->bytes + record->result, (size_t)job->y_bytes);
  }
}

/* Starts the executable again after every job that stopped it, until all jobs have an outcome.
 * `name` is that of its output, `path` that of the job file. */
static enum cb_status run_processes(struct job_file *file, const struct cb_host *host,
                                    const struct unit *unit, const char *name, const char *path,
                                    struct cb_diag *diag) {
  char program[PATH_SIZE], output[PATH_SIZE];
  path_in(host, unit->name, "", program);
  path_in(host, name, ".out", output);
  const char *const argv[] = {program, path, NULL};
  const double limit = host->options.job_seconds;
  while (next_unfinished(file) >= 0) {
    /* The jobs' own limit counts processor time; this one is for a child that does not even use that. */
    struct cb_process process = {.argv = argv,
                                 .environment = sanitizer_environment,
                                 .output = output,
                                 .seconds = limit > 0 ? 60 + 10 * limit * file->count : 0};
    const enum cb_status s = cb_process_run(&process, diag);
    if (s) return s;
    if (!process.found || process.exit_code == EMULATION_USAGE)
      return cb_fail(diag, CB_ERR_IO, "cannot run '%s'; is '%s' mounted without execution? set TMPDIR",
                     program, host->directory);
    if (process.exit_code || process.signal)
      blame(file, &process);
    else if (next_unfinished(file) >= 0)
      return cb_fail(diag, CB_ERR_INTERNAL, "'%s' ended without doing all of its jobs", program);
  }
  return CB_OK;
}

/* The jobs of a unit whose number among them is `shard` modulo `shards`. */
static void choose_jobs(struct job_file *file, const struct cb_host_program *program, const struct unit *unit,
                        struct cb_host_job *jobs, int count, int shard, int shards) {
  for (int j = 0, seen = 0; j < count; j++) {
    const int text = program->text_of[jobs[j].kernel];
    if (text < unit->first || text >= unit->first + unit->count) continue;
    if (seen++ % shards == shard) file->jobs[file->count++] = &jobs[j];
  }
}

static enum cb_status run_shard(const struct cb_host_program *program, const struct unit *unit,
                                struct cb_host_job *jobs, int count, int shard, int shards,
                                struct cb_diag *diag) {
  struct job_file file = {0};
  char path[PATH_SIZE], name[64];
  file.jobs = cb_alloc((size_t)count, sizeof *file.jobs);
  if (!file.jobs) return cb_fail_memory(diag, "jobs", (unsigned)count * sizeof *file.jobs);
  choose_jobs(&file, program, unit, jobs, count, shard, shards);
  snprintf(name, sizeof name, "%s.%d", unit->name, shard);
  path_in(program->host, name, ".jobs", path);
  enum cb_status s = CB_OK;
  if (file.count) s = write_job_file(&file, program, unit, path, diag);
  if (!s && file.count) s = run_processes(&file, program->host, unit, name, path, diag);
  if (!s && file.count) collect(&file);
  if (file.bytes) munmap(file.bytes, file.length);
  unlink(path);
  path_in(program->host, name, ".out", path);
  unlink(path);
  cb_free(file.jobs);
  return s;
}

enum cb_status cb_host_run(struct cb_host_program *program, struct cb_host_job *jobs, int count,
                           struct cb_diag *diag) {
  enum cb_status worst = CB_OK;
  for (int j = 0; j < count; j++) {
    jobs[j].outcome = CB_HOST_DONE;
    jobs[j].exit_code = 0;
    jobs[j].message[0] = 0;
    if (jobs[j].kernel < 0 || jobs[j].kernel >= program->kernels || jobs[j].products < 1)
      return cb_fail(diag, CB_ERR_ARGUMENT, "job %d names kernel %d of %d, or no product", j, jobs[j].kernel,
                     program->kernels);
  }
  const int units = program->units_count, parallel = program->host->options.parallel;
  const int shards = units && units < parallel ? (parallel + units - 1) / units : 1;
#pragma omp parallel for schedule(dynamic, 1) num_threads(parallel)
  for (int task = 0; task < units * shards; task++) {
    struct cb_diag own = {0};
    const struct unit *unit = &program->units[task / shards];
    const enum cb_status s = run_shard(program, unit, jobs, count, task % shards, shards, &own);
#pragma omp critical(cb_host_status)
    if (s && !worst) worst = cb_fail_lines(diag, s, own.message);
  }
  return worst;
}

/* ---- self-tests */

enum { SELFTEST_NO_DATA = 4 }; /* what the generated program exits with then: templates/host.cu.in */

static enum cb_status compile_selftest(struct cb_host *host, const char *path, struct cb_diag *diag) {
  char *absolute = realpath(path, NULL);
  if (!absolute) return cb_fail(diag, cb_errno_status(errno), "cannot open '%s': %s", path, strerror(errno));
  struct command command = {{0}, 0};
  add_kernel_flags(host, &command);
  add_words(&command, (const char *const[]){"-DCBGEN_SELFTEST", "-x", "c++", absolute, "-x", "none",
                                            "emulator.o", "-lm", "-o", "selftest", NULL});
  const enum cb_status s = compile(host, &command, "selftest", diag);
  free(absolute);
  return s;
}

/* The directory part of `path`; "." without one. */
static void directory_of(const char *path, char directory[PATH_SIZE]) {
  snprintf(directory, PATH_SIZE, "%s", path);
  char *slash = strrchr(directory, '/');
  if (!slash)
    snprintf(directory, PATH_SIZE, ".");
  else
    slash[slash == directory] = 0;
}

/* The name of the sidecar that was written with `path`: kernel.cbd for kernel.cu. */
static void name_sidecar(const char *path, char name[PATH_SIZE]) {
  const size_t length = strlen(path);
  const int stem = (int)(length > 3 && !strcmp(path + length - 3, ".cu") ? length - 3 : length);
  snprintf(name, PATH_SIZE, "%.*s.cbd", stem, path);
}

/* The same, absolute: beside the path, else beside the file that a link leads to, where the text itself looks. Empty
 * when there is none. */
static void sidecar_of(const char *path, char sidecar[PATH_SIZE]) {
  char guess[PATH_SIZE];
  name_sidecar(path, guess);
  char *absolute = realpath(guess, NULL), *linked = absolute ? NULL : realpath(path, NULL);
  if (linked) {
    name_sidecar(linked, guess);
    absolute = realpath(guess, NULL);
  }
  snprintf(sidecar, PATH_SIZE, "%s", absolute ? absolute : "");
  free(absolute);
  free(linked);
}

static enum cb_status fail_data(const char *path, struct cb_diag *diag) {
  char name[PATH_SIZE];
  name_sidecar(path, name);
  return cb_fail(diag, CB_ERR_IO, "the data of '%s' do not stand in it, and cannot be read from '%s'", path, name);
}

/* The text is somebody's, and its self-test runs his code. AddressSanitizer takes terabytes of addresses for itself. */
static struct cb_confinement confine(const struct cb_host *host, const struct cb_evidence *evidence) {
  enum { PROCESSES = 64, OTHER_FILES = 16 << 20 };
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  struct cb_confinement confinement = {.processes = PROCESSES,
                                       .file_bytes = OTHER_FILES + 8 * (unsigned long long)evidence->rows};
  if (host->options.job_seconds > 0)
    confinement.processor_seconds = 10 + 2 * (unsigned long long)host->options.job_seconds;
  if (!host->options.sanitize && pages > 0 && page > 0)
    confinement.memory_bytes = (unsigned long long)pages * (unsigned long long)page;
  return confinement;
}

/* One run of the compiled self-test of `path`, in its directory. */
static enum cb_status run_selftest(const struct cb_host *host, const char *path, const char *sidecar, uint64_t seed,
                                   struct cb_evidence *evidence, struct cb_host_selftest *result,
                                   struct cb_diag *diag) {
  char directory[PATH_SIZE];
  char program[PATH_SIZE], log[PATH_SIZE], seeds[64], limit[64], message[900];
  char shown[PATH_SIZE], file[4480], number[64];
  directory_of(path, directory);
  path_in(host, "selftest", "", program);
  path_in(host, "selftest", ".out", log);
  path_in(host, "selftest", ".y", shown);
  unlink(shown);
  cb_evidence_demand(evidence, shown, file, number);
  snprintf(seeds, sizeof seeds, "CBGEN_EMULATION_SEED=%llu", (unsigned long long)seed);
  snprintf(limit, sizeof limit, "CBGEN_EMULATION_SECONDS=%.0f", host->options.job_seconds);
  const char *const environment[] = {
      sanitizer_environment[0], sanitizer_environment[1], seeds, limit, file, number, NULL};
  const struct cb_confinement confinement = confine(host, evidence);
  struct cb_process process = {.argv = (const char *const[]){program, *sidecar ? sidecar : NULL, NULL},
                               .environment = environment,
                               .directory = directory,
                               .output = log,
                               .confinement = &confinement,
                               .seconds =
                                   host->options.job_seconds > 0 ? 60 + 10 * host->options.job_seconds : 0};
  const enum cb_status s = cb_process_run(&process, diag);
  if (s) return s;
  if (!process.found) return cb_fail(diag, CB_ERR_IO, "cannot run '%s'; set TMPDIR", program);
  result->run_seconds += process.elapsed;
  result->network |= process.network;
  read_head(log, result->output, sizeof result->output);
  if (!process.exit_code && !process.signal) return cb_evidence_judge(evidence, shown, diag);
  if (process.exit_code == SELFTEST_NO_DATA) return fail_data(path, diag);
  summarise_file(log, message, sizeof message);
  return cb_fail_lines(diag, CB_ERR_WRONG, message[0] ? message : "the self-test crashed");
}

/* What the self-test must show, by the text and its data. */
static enum cb_status expect(struct cb_evidence *evidence, const char *path, const char *sidecar,
                             struct cb_diag *diag) {
  struct cb_mapping mapping;
  struct cb_text text = {0};
  enum cb_status s = cb_file_map(&mapping, path, diag);
  if (s) return s;
  cb_text_add_bytes(&text, mapping.bytes, mapping.length);
  s = text.failed ? cb_fail_memory(diag, path, mapping.length)
                  : cb_evidence_expect(evidence, cb_text_string(&text), sidecar, diag);
  cb_file_unmap(&mapping);
  cb_text_release(&text);
  return s;
}

enum cb_status cb_host_selftest(struct cb_host *host, const char *path, uint64_t seed, int orders,
                                struct cb_host_selftest *result, struct cb_diag *diag) {
  char sidecar[PATH_SIZE];
  struct cb_evidence evidence = {0};
  const double start = omp_get_wtime();
  *result = (struct cb_host_selftest){0};
  enum cb_status s = compile_selftest(host, path, diag);
  result->compile_seconds = omp_get_wtime() - start;
  sidecar_of(path, sidecar);
  if (!s) s = expect(&evidence, path, sidecar, diag);
  if (!s) /* x and y, there and on the emulated GPU */
    s = cb_available_check(4 * sizeof(double) * (uint64_t)(evidence.rows + evidence.cols),
                           "a self-test with vectors of as many numbers as there are columns and rows", diag);
  for (int order = 0; order < orders && !s; order++)
    s = run_selftest(host, path, sidecar, seed + (uint64_t)order, &evidence, result, diag);
  cb_evidence_release(&evidence);
  return s;
}
