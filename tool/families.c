// SPDX-License-Identifier: Apache-2.0
/* cbgen families: which kernels of families there are, which a matrix has, and the files of them that come with the
 * library. Which ones these are, a list says: lines of a matrix and options, in which {a,b,c} stands for each of the
 * words in turn. */
#include "tool/job.h"

#include "base/file.h"
#include "base/memory.h"
#include "codegen/check.h"
#include "codegen/outline.h"
#include "codegen/program/stages.h"
#include "codegen/source.h"
#include "runtime/cuda/binaries.h"
#include "runtime/cuda/spills.h"
#include "runtime/operator/device_hash.h"
#include "runtime/operator/kernel_sets.h"
#include "runtime/operator/packer.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 512, MOST = 4096, MOST_STAGES = 100 };

/* A text with what it is called. */
struct family {
  char name[LINE];
  char *text;
  struct cb_hash key;
  struct cb_compiled compiled;
};

struct families {
  const struct cb_call *call;
  const char *arch;
  struct family *list;
  int count, lines, alike, refused; /* alike: lines whose family another one has as well */
  struct cb_binary_outline *outlines;
  int outlines_count;
  struct cb_text report;
  struct cb_binaries *brought; /* with the library; NULL: none */
  int brought_of, by_text;     /* lines whose family it brings; and of these, those whose outline does not lead there */
};

/* ---- texts */

/* Takes the text over. Returns whether it is new. */
static int add_text(struct families *families, const char *name, char *text, struct cb_hash key) {
  for (int i = 0; i < families->count; i++)
    if (!memcmp(&families->list[i].key, &key, sizeof key)) {
      cb_free(text);
      return 0;
    }
  struct family *family = &families->list[families->count++];
  *family = (struct family){.text = text, .key = key};
  snprintf(family->name, sizeof family->name, "%s", name);
  return 1;
}

static enum cb_status add_own(struct families *families, struct cb_text *text, const char *name, struct cb_diag *diag) {
  if (text->failed) return cb_fail_memory(diag, "a text", text->length);
  const struct cb_hash key = cb_binaries_key(text->bytes, text->length);
  add_text(families, name, cb_text_detach(text), key);
  return CB_OK;
}

/* A program's stages, with a type's vectors. */
static enum cb_status add_stages(struct families *families, const struct cb_program *program, enum cb_type type,
                                 struct cb_diag *diag) {
  const struct cb_program_sizes sizes = {.restart = 1}; /* any: the text does not depend on it */
  struct cb_stages_plan plan;
  struct cb_text text = {0};
  char name[64];
  if (program->staged) program = program->staged;
  snprintf(name, sizeof name, "stages of %s, %s", program->name, cb_type_short(type));
  enum cb_status s = cb_stages_text(&text, &plan, program, type, type, &sizes, diag);
  if (!s) s = add_own(families, &text, name, diag);
  cb_text_release(&text);
  return s;
}

/* Of methods with each preconditioner that is of no size: solvers that need no kernel of a matrix. */
static enum cb_status add_methods(struct families *families, struct cb_diag *diag) {
  static const enum cb_preconditioning kinds[] = {CB_PLAIN, CB_DIAGONAL, CB_CALLED};
  static const enum cb_type types[] = {CB_F64, CB_F32};
  const char *method;
  enum cb_status s = CB_OK;
  for (int number = 0; (method = cb_program_name(number)); number++)
    for (int i = 0; i < 6 && !s; i++) {
      const struct cb_program *program = cb_program_find(method, kinds[i / 2]);
      if (program) s = add_stages(families, program, types[i % 2], diag);
    }
  for (int i = 0; i < 4 && !s; i++) s = add_stages(families, &cb_program_pdhg[i / 2], types[i % 2], diag);
  return s;
}

/* The kernels that the library needs for itself. */
static enum cb_status add_modules(struct families *families, struct cb_diag *diag) {
  struct cb_text text = {0};
  enum cb_status s = cb_hasher_text(&text, diag);
  if (!s) s = add_own(families, &text, "hashing kernels", diag);
  for (int stored = 0; stored < CB_PACKER_SLOTS && !s; stored++) {
    char name[64];
    snprintf(name, sizeof name, "packing kernels, %s", cb_type_short(cb_packer_slots[stored]));
    text = (struct cb_text){0};
    s = cb_packer_text(&text, cb_packer_slots[stored], diag);
    if (!s) s = add_own(families, &text, name, diag);
  }
  for (int set = 0; cb_kernel_sets[set].name && !s; set++) {
    text = (struct cb_text){0};
    s = cb_kernel_set_text(&text, &cb_kernel_sets[set], diag);
    if (!s) s = add_own(families, &text, cb_kernel_sets[set].name, diag);
  }
  if (!s) s = add_methods(families, diag);
  cb_text_release(&text);
  return s;
}

static void add_outline(struct families *families, struct cb_hash outline, struct cb_hash key) {
  for (int i = 0; i < families->outlines_count; i++)
    if (!memcmp(&families->outlines[i].outline, &outline, sizeof outline)) return;
  families->outlines[families->outlines_count++] = (struct cb_binary_outline){outline, key};
}

/* ---- lines */

/* As the library plans: tables stay in memory. */
static enum cb_status plan_line(struct cb_job *job, const struct families *families, char *line, struct cb_diag *diag) {
  struct cb_call call = *families->call;
  char *rest = NULL;
  call.file = strtok_r(line, " \t", &rest);
  call.options.bake_limit = 0;
  enum cb_status s = CB_OK;
  for (char *word; !s && (word = strtok_r(NULL, " \t", &rest));) {
    char *value = strchr(word, '=');
    if (strncmp(word, "--", 2) || !value)
      return cb_fail(diag, CB_ERR_FORMAT, "'%s' is no option like --recipe=sell", word);
    *value = 0;
    s = cb_options_set(&call.options, word + 2, value + 1, diag);
  }
  if (!s) s = cb_job_read(job, &call, diag);
  return s ? s : cb_job_plan(job, &call, families->arch, diag);
}

static enum cb_status add_line(struct families *families, const char *line, struct cb_diag *diag) {
  struct cb_job job = {0};
  struct cb_outline outline = {0};
  struct cb_source source = {0};
  struct cb_diag own = {0};
  char words[LINE], hex[CB_HASH_HEX];
  snprintf(words, sizeof words, "%s", line);
  enum cb_status s = plan_line(&job, families, words, &own);
  if (!s) s = cb_outline_make(&outline, job.plan, &own);
  if (!s) s = cb_source_outlined(&source, &outline, &own);
  if (!s) s = cb_check_intrinsics(cb_source_behind_prelude(source.text), &own);
  families->lines++;
  if (s == CB_ERR_UNSUPPORTED || s == CB_ERR_LIMIT) { /* there is none: the specialised kernel is compiled */
    families->refused++;
    cb_text_add(&families->report, "%-32s  %-9s %s: %s\n", "-", "none", line, own.message);
    s = CB_OK;
  } else if (!s) {
    const struct cb_hash key = cb_binaries_key(source.text, (size_t)source.length);
    struct cb_hash outlined;
    const int brought = cb_binaries_has(families->brought, key);
    cb_hash_hex(key, hex);
    families->brought_of += brought;
    families->by_text += brought && !cb_binaries_outlined(families->brought, outline.hash, &outlined);
    add_outline(families, outline.hash, key);
    if (!families->call->output || families->call->verbose)
      cb_text_add(&families->report, "%s  %-9s %s %s\n", hex, brought ? "brought" : "compiled", line,
                  families->call->verbose ? job.plan->line : "");
    if (!add_text(families, line, source.text, key)) families->alike++;
    source.text = NULL;
  } else {
    s = cb_fail(diag, s, "%s: %s", line, own.message);
  }
  cb_source_release(&source);
  cb_outline_release(&outline);
  cb_job_release(&job);
  return s;
}

/* Each of the words in the line's first braces in turn, and so on. */
static enum cb_status add_lines(struct families *families, const char *line, struct cb_diag *diag) {
  const char *open = strchr(line, '{'), *close = open ? strchr(open, '}') : NULL;
  enum cb_status s = CB_OK;
  if (families->count >= MOST || families->outlines_count >= MOST)
    return cb_fail(diag, CB_ERR_LIMIT, "the list has more than %d families", MOST);
  if (!open) return add_line(families, line, diag);
  if (!close) return cb_fail(diag, CB_ERR_FORMAT, "'%s' has a brace that is not closed", line);
  for (const char *word = open + 1, *end; !s && word <= close; word = end + 1) {
    char one[LINE];
    end = word + strcspn(word, ",}");
    const int length =
        snprintf(one, sizeof one, "%.*s%.*s%s", (int)(open - line), line, (int)(end - word), word, close + 1);
    if (length >= LINE) return cb_fail(diag, CB_ERR_LIMIT, "a line is longer than %d characters: '%.40s…'", LINE, line);
    s = add_lines(families, one, diag);
  }
  return s;
}

static enum cb_status add_list(struct families *families, const char *path, struct cb_diag *diag) {
  struct cb_mapping file;
  enum cb_status s = cb_file_map(&file, path, diag);
  if (s) return s;
  for (size_t at = 0, end; at < file.length && !s; at = end + 1) {
    char line[LINE];
    for (end = at; end < file.length && file.bytes[end] != '\n'; end++) continue;
    const int length = (int)(end - at);
    if (length >= LINE) s = cb_fail(diag, CB_ERR_LIMIT, "a line of '%s' is longer than %d characters", path, LINE);
    snprintf(line, sizeof line, "%.*s", length < LINE ? length : 0, file.bytes + at);
    if (!s && *line && *line != '#') s = add_lines(families, line, diag);
  }
  cb_file_unmap(&file);
  return s;
}

/* ---- building */

static enum cb_status compile_all(struct families *families, struct cb_diag *diag) {
  const struct cb_nvrtc_options options = {.arch = families->arch};
  struct cb_nvrtc *nvrtc = NULL;
  enum cb_status worst = cb_nvrtc_open(&nvrtc, NULL, diag);
  cb_progress_stage("compiling %d kernels for %s", families->count, families->arch);
#pragma omp parallel for schedule(dynamic, 1)
  for (int i = 0; i < families->count; i++) {
    struct cb_diag own = {0};
    struct family *family = &families->list[i];
    if (worst) continue;
    const enum cb_status s = cb_compile_fitting(&family->compiled, nvrtc, family->text, family->name, &options, &own);
#pragma omp critical(cb_families_status)
    if (s && !worst) worst = cb_fail_lines(diag, s, own.message);
  }
  cb_nvrtc_close(nvrtc);
  return worst;
}

/* Kernels that spill are left out: the specialised ones are taken instead. */
static enum cb_status write_file(struct families *families, struct cb_diag *diag) {
  struct cb_binary *binaries = cb_calloc((size_t)families->count + 1, sizeof *binaries);
  struct cb_text file = {0};
  int count = 0, spilling = 0;
  size_t bytes = 0;
  if (!binaries) return cb_fail_memory(diag, "binaries", (unsigned)families->count * sizeof *binaries);
  for (int i = 0; i < families->count; i++) {
    const struct family *family = &families->list[i];
    spilling += family->compiled.spilled_bytes > 0;
    if (family->compiled.spilled_bytes) continue;
    bytes += family->compiled.cubin_bytes;
    binaries[count++] =
        (struct cb_binary){family->key, family->name, family->compiled.cubin, family->compiled.cubin_bytes};
  }
  enum cb_status s = cb_binaries_write(&file, families->arch, binaries, count, families->outlines,
                                       families->outlines_count, diag);
  if (!s) s = cb_file_put(families->call->output, file.bytes, file.length, diag);
  if (!s)
    cb_text_add(&families->report,
                "%s: %d kernels, %d outlines, %zu bytes (%zu unpacked); %d that spill are left out\n",
                families->call->output, count, families->outlines_count, file.length, bytes, spilling);
  cb_text_release(&file);
  cb_free(binaries);
  return s;
}

/* ---- the verb */

static enum cb_status show_file(struct families *families, const char *path, struct cb_diag *diag) {
  struct cb_binaries *binaries;
  char hex[CB_HASH_HEX];
  const enum cb_status s = cb_binaries_open(&binaries, path, diag);
  if (s) return s;
  for (int i = 0; i < cb_binaries_count(binaries); i++) {
    const struct cb_binary_entry entry = cb_binaries_at(binaries, i);
    cb_hash_hex(entry.key, hex);
    cb_text_add(&families->report, "%s %8u %s\n", hex, entry.length, entry.name);
  }
  cb_text_add(&families->report, "%d kernels for %s\n", cb_binaries_count(binaries), cb_binaries_arch(binaries));
  cb_binaries_close(binaries);
  return CB_OK;
}

static enum cb_status take(struct families *families, struct cb_diag *diag) {
  const struct cb_call *call = families->call;
  const char *end = strrchr(call->file, '.');
  if (!call->output && end && !strcmp(end, ".bin")) return show_file(families, call->file, diag);
  cb_binaries_find(&families->brought, families->arch, NULL);
  enum cb_status s = call->output ? add_modules(families, diag) : CB_OK;
  const int own = families->count;
  if (!s) s = *call->file == '@' ? add_list(families, call->file + 1, diag) : add_lines(families, call->file, diag);
  if (s) return s;
  cb_text_add(&families->report,
              "%d %s: %d families, %d matrices share another's, %d have none; the library brings those of %d\n",
              families->lines, families->lines == 1 ? "matrix" : "matrices", families->count - own, families->alike,
              families->refused, families->brought_of);
  if (families->by_text)
    cb_text_add(&families->report, "of %d its file is of another build: their texts have to be written to find them\n",
                families->by_text);
  if (!call->output) return CB_OK;
  s = compile_all(families, diag);
  return s ? s : write_file(families, diag);
}

static enum cb_status run_families(const struct cb_call *call, struct cb_diag *diag) {
  struct families families = {.call = call, .arch = call->arches_count ? call->arches[0] : "sm_90"};
  families.list = cb_calloc(MOST + CB_PACKER_SLOTS + CB_MOST_SETS + MOST_STAGES + 1, sizeof *families.list);
  families.outlines = cb_calloc(MOST, sizeof *families.outlines);
  enum cb_status s = CB_OK;
  if (!families.list || !families.outlines) s = cb_fail_memory(diag, "families", MOST * sizeof *families.list);
  if (!s) s = take(&families, diag);
  if (!s && !call->quiet) s = cb_print(&families.report, diag);
  for (int i = 0; i < families.count; i++) {
    cb_free(families.list[i].text);
    cb_compiled_release(&families.list[i].compiled);
  }
  cb_binaries_close(families.brought);
  cb_text_release(&families.report);
  cb_free(families.outlines);
  cb_free(families.list);
  return s;
}

const struct cb_verb cb_verb_families = {
    .name = "families",
    .arguments = "FILE|@LIST [-o FILE.bin] [OPTION…]",
    .summary = "show which kernel a matrix shares with others, or build those",
    .details =
        "A family's kernel serves all matrices of one structure: what cbgen_compile begins with. Shows that\n"
        "of a matrix, and whether the library brings it or compiles it once. '@LIST': of each line of the\n"
        "file LIST, a matrix with options; {a,b} stands for each word in turn. With -o they are compiled for\n"
        "--arch and written as families-ARCH.bin, which the library looks for beside itself and in\n"
        "$CBGEN_FAMILIES. FILE.bin without -o: what lies in such a file.\n",
    .example = "cbgen families @cmake/families.list --arch=sm_90 -o families-sm_90.bin",
    .takes = CB_TAKES_OUTPUT | CB_TAKES_ARCH | CB_TAKES_LIST,
    .run = run_families,
};
