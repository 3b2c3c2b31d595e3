// SPDX-License-Identifier: Apache-2.0
/* Generated kernels on the host: the work directory and the compiler. See host.h; host_parts.h names the other
 * files. */
#include "runtime/verify/host_parts.h"

#include "base/embedded.h"
#include "base/environment.h"
#include "base/file.h"
#include "base/fork.h"
#include "base/memory.h"
#include "base/signals.h"
#include "runtime/verify/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

void cb_host_options_default(struct cb_host_options *options) {
  *options =
      (struct cb_host_options){.sanitize = 1, .optimize = 1, .debug = 1, .batch = 64, .job_seconds = 120};
}

/* ---- the work directory */

void cb_host_path(const struct cb_host *host, const char *name, const char *suffix, char path[PATH_SIZE]) {
  snprintf(path, PATH_SIZE, "%s/%s%s", host->directory, name, suffix);
}

enum cb_status cb_host_write(const char *path, const char *bytes, size_t length, struct cb_diag *diag) {
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
  cb_host_path(host, name, "", path);
  return cb_host_write(path, file->text, file->length, diag);
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

/* A work directory belongs to the process that holds its lock. Returns the descriptor, or −1: also where a sweep has
 * removed the directory between opening and locking. */
static int lock_directory(const char *path, int flags) {
  char name[PATH_SIZE + 8];
  struct stat status;
  snprintf(name, sizeof name, "%s/lock", path);
  const int lock = open(name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
  if (lock < 0) return -1;
  if (!flock(lock, LOCK_EX | LOCK_NB) && !fstat(lock, &status) && status.st_nlink) return lock;
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

void cb_host_read_head(const char *path, char *bytes, size_t size) {
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

void cb_host_summarise(const char *path, char *message, size_t size) {
  static const size_t capacity = 64 * 1024;
  char *output = cb_alloc(capacity, 1);
  message[0] = 0;
  if (!output) return;
  cb_host_read_head(path, output, capacity);
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

void cb_host_add_word(struct cb_host_command *command, const char *word) {
  if (command->count < 63) command->words[command->count++] = word;
  command->words[command->count] = NULL;
}

void cb_host_add_words(struct cb_host_command *command, const char *const *words) {
  for (; *words; words++) cb_host_add_word(command, *words);
}

/* No contraction: what is fused says fma, as on the GPU. */
static const char *const language_flags[] = {"-std=c++17",      "-pipe",    "-ffp-contract=off",
                                             "-fno-exceptions", "-fno-rtti", NULL};
static const char *const warning_flags[] = {
    "-Wall", "-Wextra", "-Werror", "-Wunused", "-Wunused-const-variable", "-Wno-unknown-pragmas", NULL};
/* Left out of UBSan: what AddressSanitizer finds as well, and alignment, which the emulation checks. They would
 * double the compile time. */
static const char *const sanitize_flags[] = {"-fsanitize=address,undefined",
                                             "-fno-sanitize=vptr,null,alignment,object-size,pointer-overflow,"
                                             "nonnull-attribute,returns-nonnull-attribute,"
                                             "return,unreachable,builtin",
                                             "-fno-sanitize-recover=all", NULL};
static const char *const emulator_files[] = {"prelude.h",     "emulation.h", "fiber.h",        "jobs.h",
                                             "driver.h",      "traced.h",    "scheduler.cpp",  "shared.cpp",
                                             "visibility.cpp", "grid.cpp", "memory.cpp", "report.cpp",     "fiber.cpp",
                                             "traced.cpp",    "driver.cpp",  NULL};
/* One translation unit: most of the time goes into the headers. */
static const char emulator_text[] = "#include \"scheduler.cpp\"\n#include \"shared.cpp\"\n#include \"visibility.cpp\"\n"
                                    "#include \"grid.cpp\"\n"
                                    "#include \"memory.cpp\"\n#include \"report.cpp\"\n#include \"fiber.cpp\"\n#include \"traced.cpp\"\n";
const char *const cb_host_sanitizer_environment[] = {
    "ASAN_OPTIONS=detect_leaks=0:exitcode=82:detect_stack_use_after_return=0:allocator_may_return_null=1",
    "UBSAN_OPTIONS=exitcode=82:print_stacktrace=0", NULL};

enum { COMPILE_SECONDS = 900 };

enum cb_status cb_host_compile(const struct cb_host *host, const struct cb_host_command *command, const char *log,
                              struct cb_diag *diag) {
  char output[PATH_SIZE], message[900];
  cb_host_path(host, log, ".log", output);
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
  cb_host_summarise(output, message, sizeof message);
  return cb_fail_lines(diag, CB_ERR_COMPILE, message[0] ? message : "the C++ compiler crashed");
}

/* "-c" with several files gives several objects. */
static enum cb_status compile_emulator(const struct cb_host *host, struct cb_diag *diag) {
  struct cb_host_command command = {{0}, 0};
  cb_host_add_words(&command, host->words);
  cb_host_add_words(&command, language_flags);
  cb_host_add_word(&command, "-O2");
  if (host->options.sanitize) cb_host_add_word(&command, "-DEMULATION_SANITIZED");
  cb_host_add_words(&command, (const char *const[]){"-c", "emulator.cpp", "driver.cpp", NULL});
  return cb_host_compile(host, &command, "emulator", diag);
}

/* A sanitizer's runtime is a package of its own for some compilers: find out before any kernel is compiled.
 */
static enum cb_status check_sanitizers(const struct cb_host *host, struct cb_diag *diag) {
  char path[PATH_SIZE];
  struct cb_diag detail = {0};
  struct cb_host_command command = {{0}, 0};
  cb_host_path(host, "probe.cpp", "", path);
  enum cb_status s = cb_host_write(path, "int main() {}\n", 14, diag);
  if (s) return s;
  cb_host_add_words(&command, host->words);
  cb_host_add_words(&command, sanitize_flags);
  cb_host_add_words(&command, (const char *const[]){"probe.cpp", "-o", "probe", NULL});
  if ((s = cb_host_compile(host, &command, "probe", &detail)) == CB_OK) return CB_OK;
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
  enum cb_status s = CB_OK;
  for (const char *const *list = emulator_files; !s && *list; list++) {
    snprintf(source, sizeof source, "runtime/verify/emulation/%s", *list);
    s = write_embedded(host, source, *list, diag);
  }
  cb_host_path(host, "emulator.cpp", "", path);
  return s ? s : cb_host_write(path, emulator_text, sizeof emulator_text - 1, diag);
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
void cb_host_add_kernel_flags(const struct cb_host *host, struct cb_host_command *command) {
  static const char *const levels[] = {"-O0", "-O1", "-O2", "-O3"};
  const int level = host->options.optimize < 0 ? 0 : host->options.optimize > 3 ? 3 : host->options.optimize;
  cb_host_add_words(command, host->words);
  cb_host_add_words(command, language_flags);
  cb_host_add_words(command, warning_flags);
  cb_host_add_word(command, levels[level]);
  if (host->options.debug) cb_host_add_word(command, "-g1");
  if (host->options.sanitize) cb_host_add_words(command, sanitize_flags);
}
