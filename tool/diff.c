// SPDX-License-Identifier: Apache-2.0
/* cbgen diff: two kernels compared, of a matrix, a kernel.cu or an entry of the cache each. First what decides (key,
 * plan, constants, arrays, bytes, registers), then the text. */
#include "tool/facts.h"
#include "tool/job.h"

#include "base/file.h"
#include "base/line_diff.h"
#include "base/memory.h"
#include "runtime/cache/cache.h"
#include "runtime/cuda/cubin.h"
#include "runtime/cuda/nvrtc.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct side {
  const char *name; /* as given */
  int is_file;
  struct cb_text text, key; /* of the kernel; fields of its key, as far as they are known */
  struct cb_facts facts;
};

/* ---- where a kernel comes from */

static int ends_with(const char *text, const char *end) {
  const size_t length = strlen(text), tail = strlen(end);
  return length >= tail && !strcmp(text + length - tail, end);
}

/* What the library would look up for this matrix, with the tool's options and the table's numbers of the GPU. */
static void add_key(struct side *side, const struct cb_job *job, const struct cb_options *options,
                    const struct cb_nvrtc *nvrtc) {
  struct cb_cache_subject subject = {.kind = "operator",
                                     .options = options,
                                     .target = &job->target,
                                     .rows = job->csr.rows,
                                     .cols = job->csr.cols,
                                     .nnz = job->csr.nnz,
                                     .pattern = job->label.pattern,
                                     .extras_count = 1,
                                     .extras = {{"transpose", 0}}};
  if (nvrtc) cb_nvrtc_version(nvrtc, &subject.nvrtc_major, &subject.nvrtc_minor);
  cb_cache_fields(&side->key, &subject);
}

static enum cb_status take_matrix(struct side *side, const struct cb_call *call, const struct cb_nvrtc *nvrtc,
                                  struct cb_diag *diag) {
  struct cb_call own = *call;
  struct cb_job job = {0};
  own.file = side->name;
  enum cb_status s = cb_job_read(&job, &own, diag);
  if (!s) s = cb_job_plan(&job, &own, call->arches_count ? call->arches[0] : NULL, diag);
  if (!s) s = cb_job_emit(&job, &own, 0, diag);
  if (!s) cb_text_add_bytes(&side->text, job.source.text, (size_t)job.source.length);
  if (!s) add_key(side, &job, &own.options, nvrtc);
  cb_job_release(&job);
  return s;
}

static enum cb_status take_file(struct side *side, struct cb_diag *diag) {
  struct cb_mapping mapping;
  const enum cb_status s = cb_file_map(&mapping, side->name, diag);
  if (s) return s;
  side->is_file = 1;
  const int is_text = !memchr(mapping.bytes, 0, mapping.length);
  if (is_text) cb_text_add_bytes(&side->text, mapping.bytes, mapping.length);
  cb_file_unmap(&mapping);
  return is_text ? CB_OK : cb_fail(diag, CB_ERR_FORMAT, "'%s' is no text: it holds a NUL", side->name);
}

static enum cb_status take_section(struct cb_text *text, const struct cb_cache *cache, struct cb_hash key,
                                   const char *tag, struct cb_diag *diag) {
  struct cb_cache_entry entry;
  struct cb_diag why = {0};
  if (cb_cache_peek(cache, key, tag, &entry, &why))
    return cb_fail_lines(diag, why.status ? why.status : CB_ERR_IO, why.message);
  const struct cb_cache_section *section = cb_cache_section(&entry, tag);
  if (section) cb_text_add_bytes(text, section->bytes, (size_t)section->length);
  cb_cache_entry_release(&entry);
  return CB_OK;
}

static enum cb_status take_entry(struct side *side, const struct cb_cache *cache, struct cb_diag *diag) {
  struct cb_hash key;
  if (cb_cache_state(cache) != CB_CACHE_ON)
    return cb_fail(diag, CB_ERR_IO, "'%s' is no file, and there is no cache: %s", side->name, cb_cache_remark(cache));
  enum cb_status s = cb_cache_find(cache, side->name, &key, diag);
  if (s == CB_ERR_ARGUMENT)
    return cb_fail(diag, CB_ERR_IO, "'%s' is neither a file nor the key of an entry of the cache", side->name);
  if (!s) s = take_section(&side->text, cache, key, "source", diag);
  if (!s) s = take_section(&side->key, cache, key, "key", diag);
  if (!s && !side->text.length)
    s = cb_fail(diag, CB_ERR_FORMAT, "entry '%s' holds no kernel, but something else", side->name);
  return s;
}

static enum cb_status take(struct side *side, const struct cb_call *call, const struct cb_cache *cache,
                           const struct cb_nvrtc *nvrtc, struct cb_diag *diag) {
  enum cb_status s;
  const int generated = !strncmp(side->name, "generate:", 9);
  if (!generated && strcmp(side->name, "-") && access(side->name, F_OK))
    s = take_entry(side, cache, diag);
  else if (ends_with(side->name, ".cu"))
    s = take_file(side, diag);
  else
    s = take_matrix(side, call, nvrtc, diag);
  if (!s && (side->text.failed || side->key.failed))
    s = cb_fail_memory(diag, "the text of a kernel", side->text.length);
  return s ? s : cb_facts_read(&side->facts, cb_text_string(&side->text), side->name, diag);
}

/* ---- registers */

static void compile_for(struct side *side, const struct cb_nvrtc *nvrtc, const char *arch) {
  const struct cb_nvrtc_options options = {.arch = arch};
  struct cb_compiled compiled = {0};
  struct cb_cubin_stats stats;
  struct cb_diag diag = {0};
  cb_progress_stage("compiling '%s' for %s", side->name, arch);
  enum cb_status s = cb_nvrtc_compile(&compiled, nvrtc, cb_text_string(&side->text), side->name, &options, &diag);
  if (!s) s = cb_cubin_stats(&stats, compiled.cubin, compiled.cubin_bytes, &diag);
  if (s) {
    cb_facts_add(&side->facts, CB_FACTS_REGISTERS, arch, "%s", diag.message);
  } else {
    const struct cb_kernel_stats worst = cb_cubin_stats_worst(&stats);
    cb_facts_add(&side->facts, CB_FACTS_REGISTERS, arch, "%d, %d B spilled, %d B shared, %d B code", worst.registers,
                 worst.stack_bytes, worst.static_shared, worst.code_bytes);
    cb_cubin_stats_release(&stats);
  }
  cb_compiled_release(&compiled);
}

/* "sm_90" of "sm_90, 132 SMs"; "" where the text has none. */
static void target_of(const struct side *side, char arch[16]) {
  *arch = 0;
  for (int i = 0; i < side->facts.count; i++) {
    const struct cb_known *known = &side->facts.list[i];
    if (known->group == CB_FACTS_KERNEL && !strcmp(known->name, "target"))
      snprintf(arch, 16, "%.*s", (int)strcspn(known->value, ", "), known->value);
  }
}

/* For the GPUs that were named, else for those that the texts name. */
static void count_registers(struct side sides[2], const struct cb_call *call, const struct cb_nvrtc *nvrtc) {
  char targets[2][16];
  const char *arches[CB_MAX_ARCHES] = {targets[0], targets[1]};
  int count = 2;
  for (int i = 0; i < 2; i++) target_of(&sides[i], targets[i]);
  if (call->arches_count) {
    count = call->arches_count;
    memcpy(arches, call->arches, sizeof arches);
  } else if (!strcmp(targets[0], targets[1]))
    count = 1;
  for (int i = 0; i < count; i++)
    for (int j = 0; j < 2 && *arches[i]; j++) compile_for(&sides[j], nvrtc, arches[i]);
}

/* ---- the report */

struct report {
  struct side sides[2];
  int facts; /* that differ */
  struct cb_text tree, lines;
  struct cb_line_diff found;
};

static void add_field(void *user, const char *name, int name_length, const char *a, int a_length, const char *b,
                      int b_length) {
  struct side *sides = user;
  char label[128];
  snprintf(label, sizeof label, "%.*s", name_length, name);
  if (a) cb_facts_add(&sides[0].facts, CB_FACTS_KEY, label, "%.*s", a_length, a);
  if (b) cb_facts_add(&sides[1].facts, CB_FACTS_KEY, label, "%.*s", b_length, b);
}

/* The device's part alone, and of the head not how the host part is used: what comes from a matrix or the cache carries
 * no data, and has other functions there. */
static void keep_device_part(struct cb_text *text) {
  static const char use[] = "\n//   use ";
  struct cb_text device = {0};
  const char *from = cb_text_string(text), *end = from + cb_device_length(from), *line = strstr(from, use);
  if (line && line < end) {
    cb_text_add_bytes(&device, from, (size_t)(line + strlen(use) - from));
    from = line + 1 + strcspn(line + 1, "\n");
  }
  cb_text_add_bytes(&device, from, (size_t)(end - from));
  device.failed |= text->failed;
  cb_text_release(text);
  *text = device;
}

static enum cb_status compare(struct report *report, struct cb_diag *diag) {
  struct side *sides = report->sides;
  const struct cb_text *a = &sides[0].text, *b = &sides[1].text, *keys[2] = {&sides[0].key, &sides[1].key};
  if (keys[0]->length && keys[1]->length)
    cb_cache_compare_fields(keys[0]->bytes, keys[0]->length, keys[1]->bytes, keys[1]->length, add_field, sides);
  report->facts = cb_facts_compare(&report->tree, &sides[0].facts, &sides[1].facts);
  for (int i = 0; i < 2; i++)
    if (!sides[0].is_file || !sides[1].is_file) keep_device_part(&sides[i].text);
  if (sides[0].facts.failed || sides[1].facts.failed || report->tree.failed || a->failed || b->failed)
    return cb_fail_memory(diag, "a comparison of kernels", 0);
  cb_progress_stage("comparing the texts");
  return cb_line_diff(&report->lines, &report->found, cb_text_string(a), a->length, cb_text_string(b), b->length, diag);
}

static int is_same(const struct report *report) {
  return !report->facts && !report->found.removed && !report->found.added;
}

static void print_text(struct cb_text *text, const struct report *report) {
  char names[2][512];
  for (int i = 0; i < 2; i++) cb_escape(names[i], sizeof names[i], report->sides[i].name, "");
  if (is_same(report)) {
    cb_text_add(text, "the same kernel: %s, %s\n", names[0], names[1]);
    return;
  }
  cb_text_add_string(text, cb_text_string(&report->tree));
  if (report->facts && report->lines.length) cb_text_add_string(text, "\n");
  if (report->lines.length) cb_text_add(text, "--- %s\n+++ %s\n%s", names[0], names[1], cb_text_string(&report->lines));
}

static enum cb_status print_json(struct cb_text *text, const struct report *report, struct cb_diag *diag) {
  int failed = 0;
  const struct cb_json root = cb_json_object(&failed), lines = cb_json_object(&failed);
  cb_json_set_text(root, "a", report->sides[0].name);
  cb_json_set_text(root, "b", report->sides[1].name);
  cb_json_set_flag(root, "same", is_same(report));
  cb_facts_compare_json(root, &report->sides[0].facts, &report->sides[1].facts);
  cb_json_set_integer(lines, "removed", report->found.removed);
  cb_json_set_integer(lines, "added", report->found.added);
  cb_json_set_flag(lines, "is_cut", report->found.is_cut);
  cb_json_set_text(lines, "unified", cb_text_string(&report->lines));
  cb_json_set(root, "text", lines.json);
  const enum cb_status s = cb_json_write(text, root, JSON_INDENT(2), "a comparison as JSON", diag);
  cb_text_add_string(text, "\n");
  return s;
}

static enum cb_status verdict(const struct report *report, struct cb_diag *diag) {
  if (is_same(report)) return CB_OK;
  return cb_fail(diag, CB_ERR_WRONG, "'%s' and '%s' differ: %d facts, %lld lines removed, %lld added%s",
                 report->sides[0].name, report->sides[1].name, report->facts, (long long)report->found.removed,
                 (long long)report->found.added, report->found.is_cut ? ", and more" : "");
}

static void release(struct report *report) {
  for (int i = 0; i < 2; i++) {
    cb_text_release(&report->sides[i].text);
    cb_text_release(&report->sides[i].key);
    cb_facts_release(&report->sides[i].facts);
  }
  cb_text_release(&report->tree);
  cb_text_release(&report->lines);
}

/* The cache and NVRTC are opened for whatever needs them; that they are missing matters only there. */
static enum cb_status run_diff(const struct cb_call *call, struct cb_diag *diag) {
  struct report report = {.sides = {{.name = call->file}, {.name = call->other}}};
  const struct cb_cache_options options = {.existing = 1};
  struct cb_cache *cache = NULL;
  struct cb_nvrtc *nvrtc = NULL;
  struct cb_diag unused = {0};
  struct cb_text text = {0};
  cb_cache_open(&cache, &options, &unused);
  if (cb_nvrtc_open(&nvrtc, NULL, &unused)) nvrtc = NULL;
  enum cb_status s = CB_OK;
  for (int i = 0; i < 2 && !s; i++) s = take(&report.sides[i], call, cache, nvrtc, diag);
  if (!s && nvrtc) count_registers(report.sides, call, nvrtc);
  if (!s) s = compare(&report, diag);
  if (!s && call->json) s = print_json(&text, &report, diag);
  if (!s && !call->json && !call->quiet) print_text(&text, &report);
  if (!s) s = cb_print(&text, diag);
  if (!s) s = verdict(&report, diag);
  cb_text_release(&text);
  release(&report);
  cb_nvrtc_close(nvrtc);
  cb_cache_close(cache);
  return s;
}

static enum cb_status check_call(const struct cb_call *call, struct cb_diag *diag) {
  if (!call->other)
    return cb_fail(diag, CB_ERR_ARGUMENT,
                   "'diff' needs two of: a matrix, a kernel.cu, the key of an entry of the cache");
  if (!strcmp(call->file, "-") && !strcmp(call->other, "-"))
    return cb_fail(diag, CB_ERR_ARGUMENT, "standard input can be one of the two, not both");
  return CB_OK;
}

const struct cb_verb cb_verb_diff = {
    .name = "diff",
    .arguments = "A B [OPTION…]",
    .summary = "tell how two kernels differ, and why a lookup missed",
    .details = "A and B are a matrix, a kernel.cu, or the key of an entry of the cache ('cbgen cache list') each.\n"
               "Prints what differs: of two keys their fields, which say why one was no hit for the other; then\n"
               "plan, constants, arrays, bytes and, where NVRTC is, registers and spills; at last the text as a\n"
               "unified diff. Matrices are planned with the options given. Exit code 0: the same; 1: they differ.\n",
    .example = "cbgen diff kernel.cu matrix.mtx --recipe=sell",
    .takes = CB_TAKES_ARCHES | CB_TAKES_JSON | CB_TAKES_TWO,
    .check = check_call,
    .run = run_diff,
};
