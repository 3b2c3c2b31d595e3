// SPDX-License-Identifier: Apache-2.0
/* Many kernels on the host, in the order of the sections: composing a translation unit out of many kernels; building;
 * running job files. A unit is one translation unit and its executable. See host.h. */
#include "runtime/verify/host_parts.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/signals.h"
#include "base/text.h"
#include "runtime/verify/emulation/jobs.h"
#include "runtime/verify/process.h"

#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

/* ---- composing a translation unit */

/* The wrapper of text `t`: its host functions behind one signature. */
static void compose_wrapper(struct cb_text *out, const struct cb_host_kernel *kernel, int t) {
  const char *const symbol = kernel->symbol, *const type = kernel->is_traced ? "vector_t" : cb_type_entry_name(kernel->vector_type);
  const int scaled = kernel->form == CB_FORM_AXPBY;
  const char *const scalars = !scaled                                     ? ""
                              : cb_type_is_complex(kernel->vector_type) ? "{job.alpha, job.alpha_imag}, {job.beta, job.beta_imag}, "
                                                                        : "job.alpha, job.beta, ";
  cb_text_add(out,
              "namespace k%d {\n"
              "static const char *wrapper_load(void **matrix, const void *data, size_t bytes) {\n"
              "  *matrix = new %s_matrix{};\n"
              "  return %s_load((%s_matrix *)*matrix, data, bytes);\n"
              "}\n",
              t, symbol, symbol, symbol);
  if (kernel->arguments)
    cb_text_add(out,
                "static const char *wrapper_multiply(const void *matrix, const void *x, void *y, const emulation_job &) {\n"
                "  char *const at = (char *)y;\n"
                "  return %s_multiply((const %s_matrix *)matrix, (const %s *)x, nullptr, %snullptr);\n"
                "}\n",
                symbol, symbol, type, kernel->arguments);
  else
    cb_text_add(out,
              "static const char *wrapper_multiply(const void *matrix, const void *x, void *y, const emulation_job &%s) {\n"
              "  return %s_multiply((const %s_matrix *)matrix, (const %s *)x, (%s *)y, %snullptr);\n"
              "}\n",
              scaled ? "job" : "", symbol, symbol, type, type, scalars);
  if (kernel->heads)
    cb_text_add(out,
                "static const char *wrapper_multiply_heads(const void *matrix, const void *x, void *y, const emulation_job &%s) {\n"
                "  return %s_multiply_heads((const %s_matrix *)matrix, (const %s *)x, (%s *)y, %snullptr);\n"
                "}\n",
                scaled ? "job" : "", symbol, symbol, type, type, scalars);
  if (kernel->vectors > 1)
    cb_text_add(out,
                "static const char *wrapper_multiply_many(const void *matrix, const void *x, void *y, const emulation_job &job) {\n"
                "  const emulation_columns &at = job.columns;\n"
                "  return %s_multiply_many((const %s_matrix *)matrix, int(at.count), (const %s *)x, at.x_entry, at.x_vector,\n"
                "                          (%s *)y, at.y_entry, at.y_vector, %snullptr);\n"
                "}\n",
                symbol, symbol, type, type, scalars);
  cb_text_add(out,
              "static void wrapper_free(void *matrix) {\n"
              "  %s_free((%s_matrix *)matrix);\n"
              "  delete (%s_matrix *)matrix;\n"
              "}\n}\n",
              symbol, symbol, symbol);
}

/* `chosen[t]` is the kernel whose text is number t. */
static void compose_unit(struct cb_text *out, const struct cb_host_kernel *kernels, const int *chosen,
                         const struct unit *unit) {
  cb_text_add_string(out, "#include \"prelude.h\"\n#include \"driver.h\"\n");
  if (kernels[chosen[unit->first]].is_traced) cb_text_add_string(out, "#include \"traced.h\"\n");
  for (int t = unit->first; t < unit->first + unit->count; t++) {
    const struct cb_host_kernel *kernel = &kernels[chosen[t]];
    cb_text_add(out, "namespace k%d {\nCBGEN_OVERLOADED\n#line %d \"k%d.cu\"\n", t,
                kernel->first_line > 0 ? kernel->first_line : 1, chosen[t]);
    cb_text_add_string(out, kernel->text);
    cb_text_add(out, "\n}\n#line 1 \"wrapper of k%d.cu\"\n", chosen[t]);
    compose_wrapper(out, kernel, t);
  }
  cb_text_add_string(out, "const EmulatedKernel emulated_kernels[] = {\n");
  for (int t = unit->first; t < unit->first + unit->count; t++) {
    cb_text_add(out, "    {\"%s\", %zu, k%d::wrapper_load, k%d::wrapper_multiply, ", kernels[chosen[t]].symbol,
                cb_type_size(kernels[chosen[t]].vector_type), t, t);
    if (kernels[chosen[t]].vectors > 1) cb_text_add(out, "k%d::wrapper_multiply_many, ", t);
    else cb_text_add_string(out, "nullptr, ");
    if (kernels[chosen[t]].heads) cb_text_add(out, "k%d::wrapper_multiply_heads, ", t);
    else cb_text_add_string(out, "nullptr, ");
    cb_text_add(out, "k%d::wrapper_free, ", t);
    if (kernels[chosen[t]].is_traced) cb_text_add(out, "traced_take<k%d::vector_t>, traced_give<k%d::vector_t>},\n", t, t);
    else cb_text_add_string(out, "nullptr, nullptr},\n");
  }
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
  if (kernel->arguments) cb_hash_field(&hash, "arguments", kernel->arguments, strlen(kernel->arguments));
  cb_hash_number(&hash, "line", (uint64_t)kernel->first_line);
  cb_hash_number(&hash, "type", (uint64_t)kernel->vector_type);
  cb_hash_number(&hash, "form", (uint64_t)kernel->form);
  cb_hash_number(&hash, "vectors", (uint64_t)kernel->vectors);
  cb_hash_number(&hash, "heads", (uint64_t)kernel->heads);
  cb_hash_number(&hash, "traced", (uint64_t)kernel->is_traced);
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
  cb_host_path(host, source, "", path);
  enum cb_status s = cb_host_write(path, text.bytes, text.length, diag);
  cb_text_release(&text);
  if (s) return s;
  struct cb_host_command command = {{0}, 0};
  cb_host_add_kernel_flags(host, &command);
  cb_host_add_words(&command, (const char *const[]){source, "driver.o", "emulator.o", "-lm", "-o", unit->name, NULL});
  s = cb_host_compile(host, &command, unit->name, diag);
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
    cb_host_path(program->host, program->units[u].name, "", path);
    unlink(path);
    cb_host_path(program->host, program->units[u].name, ".log", path);
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
                                     .alpha_imag = job->alpha_imag,
                                     .beta_imag = job->beta_imag,
                                     .heads = (uint32_t)job->heads,
                                     .columns = {job->columns.count, job->columns.x_entry, job->columns.x_vector,
                                                 job->columns.y_entry, job->columns.y_vector},
                                     .data_bytes = (uint64_t)job->data_bytes,
                                     .x_bytes = (uint64_t)job->x_bytes,
                                     .y_bytes = (uint64_t)job->y_bytes};
    for (int l = 0; l < EMULATION_LAUNCHES; l++) record->only[l] = job->only ? job->only[l] : 0;
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
  cb_host_summarise(process->output, job->message, sizeof job->message);
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
  cb_host_path(host, unit->name, "", program);
  cb_host_path(host, name, ".out", output);
  const char *const argv[] = {program, path, NULL};
  const double limit = host->options.job_seconds;
  while (next_unfinished(file) >= 0) {
    /* The jobs' own limit counts processor time; this one is for a child that does not even use that. */
    struct cb_process process = {.argv = argv,
                                 .environment = cb_host_sanitizer_environment,
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

void cb_host_trace_release(struct cb_host_trace *trace) {
  cb_free(trace->nodes);
  cb_free(trace->of_row);
  *trace = (struct cb_host_trace){0};
}

static enum cb_status copy_trace(struct cb_host_trace *trace, const struct cb_mapping *file, struct cb_diag *diag) {
  struct emulation_trace header = {0};
  if (file->length >= sizeof header) memcpy(&header, file->bytes, sizeof header);
  const size_t nodes = header.nodes * sizeof *trace->nodes, rows = header.rows * sizeof *trace->of_row;
  if (header.nodes > file->length || header.rows > file->length || file->length != sizeof header + nodes + rows)
    return cb_fail(diag, CB_ERR_INTERNAL, "the traced kernel left no trace");
  trace->nodes = cb_alloc(nodes + 1, 1);
  trace->of_row = cb_alloc(rows + 1, 1);
  if (!trace->nodes || !trace->of_row) return cb_fail_memory(diag, "a trace", nodes + rows);
  trace->nodes_count = (int64_t)header.nodes;
  trace->rows = (int64_t)header.rows;
  memcpy(trace->nodes, file->bytes + sizeof header, nodes);
  memcpy(trace->of_row, file->bytes + sizeof header + nodes, rows);
  return CB_OK;
}

/* The trace that the job of the file has left beside it. */
static enum cb_status take_trace(const struct job_file *file, const char *path, struct cb_diag *diag) {
  struct cb_host_job *const job = file->jobs[0];
  struct cb_mapping mapping = {0};
  char name[PATH_SIZE + 8];
  snprintf(name, sizeof name, "%s.trace", path);
  if (job->outcome != CB_HOST_DONE) {
    unlink(name);
    return CB_OK;
  }
  enum cb_status s = cb_file_map(&mapping, name, diag);
  if (!s) s = copy_trace(job->trace, &mapping, diag);
  cb_file_unmap(&mapping);
  unlink(name);
  return s;
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
  cb_host_path(program->host, name, ".jobs", path);
  enum cb_status s = CB_OK;
  if (file.count) s = write_job_file(&file, program, unit, path, diag);
  if (!s && file.count) s = run_processes(&file, program->host, unit, name, path, diag);
  if (!s && file.count) collect(&file);
  if (!s && file.count && file.jobs[0]->trace) s = take_trace(&file, path, diag);
  if (file.bytes) munmap(file.bytes, file.length);
  unlink(path);
  cb_host_path(program->host, name, ".out", path);
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
