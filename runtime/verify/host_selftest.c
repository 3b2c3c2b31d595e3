// SPDX-License-Identifier: Apache-2.0
/* A whole kernel.cu on the host: compiled with the emulation in place of CUDA, run, and judged by what it shows
 * (evidence.h). See host.h. */
#include "runtime/verify/host_parts.h"

#include "base/available.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "codegen/source.h"
#include "runtime/verify/evidence.h"
#include "runtime/verify/process.h"
#include "runtime/verify/sidecar.h"

#include <errno.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SELFTEST_NO_DATA = 4 }; /* what the generated program exits with then: templates/host.cu.in */

/* "#line N "PATH"" for the text at `behind`, which is a part of `text`. */
static void add_place(struct cb_text *out, const char *text, const char *behind, const char *path) {
  int line = 1;
  for (; text < behind; text++) line += *text == '\n';
  cb_text_add(out, "#line %d \"", line);
  for (; *path; path++) cb_text_add(out, *path == '"' || *path == '\\' ? "\\%c" : "%c", *path);
  cb_text_add_string(out, "\"\n");
}

/* The text with the emulation's prelude in place of its own. `path`: where it says that it stands. */
static enum cb_status write_selftest(const struct cb_host *host, const char *text, const char *path,
                                     struct cb_diag *diag) {
  char source[PATH_SIZE];
  struct cb_text unit = {0};
  const char *behind = cb_source_behind_prelude(text);
  if (!behind)
    return cb_fail(diag, CB_ERR_FORMAT, "the text is no kernel of cbgen's with a self-test, so there is nothing to verify");
  cb_text_add_string(&unit, "#include \"prelude.h\"\n");
  add_place(&unit, text, behind, path);
  cb_text_add_string(&unit, behind);
  cb_host_path(host, "selftest", ".cpp", source);
  const enum cb_status s = unit.failed ? cb_fail_memory(diag, path, unit.length)
                                       : cb_host_write(source, unit.bytes, unit.length, diag);
  cb_text_release(&unit);
  return s;
}

static enum cb_status compile_selftest(struct cb_host *host, const char *text, const char *path, struct cb_diag *diag) {
  char *absolute = realpath(path, NULL);
  if (!absolute) return cb_fail(diag, cb_errno_status(errno), "cannot open '%s': %s", path, strerror(errno));
  struct cb_host_command command = {{0}, 0};
  cb_host_add_kernel_flags(host, &command);
  cb_host_add_words(&command, (const char *const[]){"-DCBGEN_SELFTEST", "selftest.cpp", "emulator.o", "-lm", "-o", "selftest", NULL});
  enum cb_status s = write_selftest(host, text, absolute, diag);
  if (!s) s = cb_host_compile(host, &command, "selftest", diag);
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

static enum cb_status fail_data(const char *path, struct cb_diag *diag) {
  char name[PATH_SIZE];
  cb_sidecar_name(path, name);
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

/* What a run of the self-test that ended amounts to. */
static enum cb_status judge_selftest(const struct cb_process *process, const char *path, const char *log,
                                     const char *shown, struct cb_evidence *evidence, struct cb_diag *diag) {
  char message[900];
  if (!process->exit_code && !process->signal) return cb_evidence_judge(evidence, shown, diag);
  if (process->exit_code == SELFTEST_NO_DATA) return fail_data(path, diag);
  cb_host_summarise(log, message, sizeof message);
  return cb_fail_lines(diag, CB_ERR_WRONG, message[0] ? message : "the self-test crashed");
}

/* One run of the compiled self-test of `path`, in its directory. */
static enum cb_status run_selftest(const struct cb_host *host, const char *path, const char *sidecar, uint64_t seed,
                                   struct cb_evidence *evidence, struct cb_host_selftest *result,
                                   struct cb_diag *diag) {
  char directory[PATH_SIZE];
  char program[PATH_SIZE], log[PATH_SIZE], seeds[64], limit[64];
  char shown[PATH_SIZE], file[4480], number[64];
  directory_of(path, directory);
  cb_host_path(host, "selftest", "", program);
  cb_host_path(host, "selftest", ".out", log);
  cb_host_path(host, "selftest", ".y", shown);
  unlink(shown);
  cb_evidence_demand(evidence, shown, file, number);
  snprintf(seeds, sizeof seeds, "CBGEN_EMULATION_SEED=%llu", (unsigned long long)seed);
  snprintf(limit, sizeof limit, "CBGEN_EMULATION_SECONDS=%.0f", host->options.job_seconds);
  const char *const environment[] = {
      cb_host_sanitizer_environment[0], cb_host_sanitizer_environment[1], seeds, limit, file, number, NULL};
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
  cb_host_read_head(log, result->output, sizeof result->output);
  return judge_selftest(&process, path, log, shown, evidence, diag);
}

static enum cb_status read_text(struct cb_text *text, const char *path, struct cb_diag *diag) {
  struct cb_mapping mapping;
  const enum cb_status s = cb_file_map(&mapping, path, diag);
  if (s) return s;
  cb_text_add_bytes(text, mapping.bytes, mapping.length);
  cb_file_unmap(&mapping);
  return text->failed ? cb_fail_memory(diag, path, mapping.length) : CB_OK;
}

enum cb_status cb_host_selftest(struct cb_host *host, const char *path, uint64_t seed, int orders,
                                struct cb_host_selftest *result, struct cb_diag *diag) {
  char sidecar[PATH_SIZE];
  struct cb_evidence evidence = {0};
  struct cb_text text = {0};
  const double start = omp_get_wtime();
  *result = (struct cb_host_selftest){0};
  enum cb_status s = read_text(&text, path, diag);
  if (!s) s = compile_selftest(host, cb_text_string(&text), path, diag);
  result->compile_seconds = omp_get_wtime() - start;
  cb_sidecar_of(path, sidecar);
  if (!s) s = cb_evidence_expect(&evidence, cb_text_string(&text), sidecar, diag);
  cb_text_release(&text);
  if (!s) /* x and y, there and on the emulated GPU */
    s = cb_available_check(4 * sizeof(double) * (uint64_t)(evidence.rows + evidence.cols),
                           "a self-test with vectors of as many numbers as there are columns and rows", diag);
  for (int order = 0; order < orders && !s; order++)
    s = run_selftest(host, path, sidecar, seed + (uint64_t)order, &evidence, result, diag);
  cb_evidence_release(&evidence);
  return s;
}
