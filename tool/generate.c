// SPDX-License-Identifier: Apache-2.0
/* cbgen generate: the kernel of a matrix, as files.
 *
 * --emit says which files; else they are the text, and its data when they do not stand in the text. A single file has
 * the name that -o gives; several have that name with other suffixes. All appear together, the text last. */
#include "tool/job.h"

#include "base/file.h"
#include "base/memory.h"

#include <string.h>
#include <unistd.h>

/* The files that generate can write, in the order in which they are committed: the data before the text that
 * needs it. */
enum { DATA, PTX, CUBIN, PLAN, CU, PRODUCTS };
static const struct {
  enum cb_emit emit;
  const char *suffix;
} product_table[PRODUCTS] = {
    [DATA] = {CB_EMIT_DATA, ".cbd"},  [PTX] = {CB_EMIT_PTX, ".ptx"}, [CUBIN] = {CB_EMIT_CUBIN, ".cubin"},
    [PLAN] = {CB_EMIT_PLAN, ".plan"}, [CU] = {CB_EMIT_CU, ".cu"},
};

struct products {
  unsigned emit;
  struct cb_text plan, ptx, cubin, paths[PRODUCTS];
};

static void release_products(struct products *products) {
  cb_text_release(&products->plan);
  cb_text_release(&products->ptx);
  cb_text_release(&products->cubin);
  for (int i = 0; i < PRODUCTS; i++) cb_text_release(&products->paths[i]);
}

static int one_bit(unsigned bits) {
  return bits && !(bits & (bits - 1));
}

/* What '--emit' must name so that a flag has an effect. */
static const struct {
  const char *flag;
  unsigned emit;
  const char *words;
} flag_effects[] = {
    {"embed", CB_EMIT_CU, "cu"},
    {"selftest", CB_EMIT_CU | CB_EMIT_DATA, "cu or data"},
    {"name", CB_EMIT_CU | CB_EMIT_PTX | CB_EMIT_CUBIN, "cu, ptx or cubin"},
    {"json", CB_EMIT_PLAN, "plan"},
};

/* Refuses files that cannot be written, and flags that concern files which are not asked for, before any work is
 * done. */
static enum cb_status check_call(const struct cb_call *call, struct cb_diag *diag) {
  if (!call->output && call->emit != CB_EMIT_PLAN)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'generate' needs '-o FILE' ('-o -' for standard output)");
  if (call->output && cb_file_is_stream(call->output) && call->emit && !one_bit(call->emit))
    return cb_fail(diag, CB_ERR_ARGUMENT, "'%s' takes one of the things that '--emit' names: it is no regular file",
                   call->output);
  const unsigned emit = call->emit ? call->emit : (unsigned)CB_EMIT_CU;
  for (size_t i = 0; i < sizeof flag_effects / sizeof *flag_effects; i++)
    if (!(emit & flag_effects[i].emit) && cb_call_has(call, flag_effects[i].flag))
      return cb_fail(diag, CB_ERR_ARGUMENT, "'--%s' means nothing here: it is for '--emit' with %s",
                     flag_effects[i].flag, flag_effects[i].words);
  /* files whose names are made from -o's are looked at when they are written */
  const int is_written = call->output && (!call->emit || one_bit(call->emit));
  return is_written ? cb_outputs_try(call->output, call->file, diag) : CB_OK;
}

static void name_path(struct cb_text *path, const struct cb_call *call, unsigned emit, int product) {
  const char *output = call->output ? call->output : "-";
  size_t stem = strlen(output);
  const int is_named = one_bit(emit) || (!call->emit && product == CU);
  if (is_named) {
    cb_text_add_string(path, output);
    return;
  }
  for (int i = 0; i < PRODUCTS; i++) {
    const size_t length = strlen(product_table[i].suffix);
    if (stem <= length || strcmp(output + stem - length, product_table[i].suffix)) continue;
    stem -= length;
    break;
  }
  cb_text_add_bytes(path, output, stem);
  cb_text_add_string(path, product_table[product].suffix);
  if (product == PLAN && call->json) cb_text_add_string(path, ".json");
}

static enum cb_status make_plan_text(struct products *products, const struct cb_job *job, int json,
                                     struct cb_diag *diag) {
  if (json) return cb_plan_json(job->plan, &products->plan, diag);
  cb_text_add(&products->plan, "%s\n", job->plan->line);
  return products->plan.failed ? cb_fail_memory(diag, "plan", 0) : CB_OK;
}

static enum cb_status make(struct products *products, struct cb_job *job, const struct cb_call *call,
                           struct cb_diag *diag) {
  const unsigned text = CB_EMIT_CU | CB_EMIT_PTX | CB_EMIT_CUBIN;
  products->emit = call->emit ? call->emit : (unsigned)CB_EMIT_CU;
  enum cb_status s = cb_job_read(job, call, diag);
  if (!s && call->options.tune == CB_TUNE_MEASURE) s = cb_job_tune(job, call, diag);
  else if (!s) s = cb_job_plan(job, call, call->arches_count ? call->arches[0] : NULL, diag);
  if (!s && (products->emit & (CB_EMIT_CU | CB_EMIT_DATA))) s = cb_job_pack(job, call->selftest, diag);
  if (!s && (products->emit & text)) s = cb_job_emit(job, call, products->emit & CB_EMIT_CU, diag);
  if (!s && (products->emit & (CB_EMIT_PTX | CB_EMIT_CUBIN)))
    s = cb_job_compile(job, &products->ptx, &products->cubin, diag);
  if (!s && (products->emit & CB_EMIT_PLAN)) s = make_plan_text(products, job, call->json, diag);
  return s;
}

/* Without --emit the data are written when the text needs them. */
static void decide_data(struct products *products, const struct cb_job *job, const struct cb_call *call) {
  if (call->emit || cb_source_embeds(&job->blob, call->embed)) return;
  if (!cb_file_is_stream(call->output))
    products->emit |= CB_EMIT_DATA;
  else if (!call->quiet)
    cb_say("the text's data do not stand in it and are not written with '-o %s': see '--embed'", call->output);
}

static enum cb_status write_all(struct products *products, const struct cb_job *job,
                                const struct cb_call *call, struct cb_diag *diag) {
  const struct {
    const void *bytes;
    size_t length;
  } contents[PRODUCTS] = {
      [DATA] = {job->blob.bytes, (size_t)job->blob.length},
      [PTX] = {products->ptx.bytes, products->ptx.length},
      [CUBIN] = {products->cubin.bytes, products->cubin.length},
      [PLAN] = {products->plan.bytes, products->plan.length},
      [CU] = {job->source.text, (size_t)job->source.length},
  };
  struct cb_outputs outputs = {.input = call->file};
  enum cb_status s = CB_OK;
  for (int i = 0; i < PRODUCTS && !s; i++) {
    if (!(products->emit & product_table[i].emit)) continue;
    struct cb_text *path = &products->paths[i];
    name_path(path, call, products->emit, i);
    s = path->failed ? cb_fail_memory(diag, "file names", path->capacity)
                     : cb_outputs_add(&outputs, path->bytes, contents[i].bytes, contents[i].length, diag);
  }
  if (!s) s = cb_outputs_commit(&outputs, diag);
  cb_outputs_abandon(&outputs);
  return s;
}

/* Prints one line on what was written, on a terminal. */
static void summarize(const struct products *products, const struct cb_job *job, const struct cb_call *call) {
  if (call->quiet || !(products->emit & CB_EMIT_CU) || !strcmp(call->output, "-")) return;
  if (!call->verbose && !isatty(STDERR_FILENO)) return;
  char text[24], data[24];
  cb_human_bytes(text, job->source.length);
  cb_human_bytes(data, job->blob.length);
  const double nonzeros = job->csr.nnz ? (double)job->csr.nnz : 1;
  cb_say("%s: %s of text, %s of data %s%s; %.2f bytes per nonzero (CSR: %.2f)",
         cb_text_string(&products->paths[CU]), text, data, products->emit & CB_EMIT_DATA ? "in " : "inside",
         cb_text_string(&products->paths[DATA]), (double)cb_plan_bytes(job->plan) / nonzeros,
         (double)cb_job_csr_bytes(job) / nonzeros);
  if (call->verbose) cb_say("%s", job->plan->line);
}

static enum cb_status run_generate(const struct cb_call *call, struct cb_diag *diag) {
  struct cb_job job = {0};
  struct products products = {0};
  enum cb_status s = make(&products, &job, call, diag);
  if (!s && (products.emit & CB_EMIT_CU)) decide_data(&products, &job, call);
  if (!s) s = write_all(&products, &job, call, diag);
  if (!s) summarize(&products, &job, call);
  release_products(&products);
  cb_job_release(&job);
  return s;
}

const struct cb_verb cb_verb_generate = {
    .name = "generate",
    .arguments = "FILE -o kernel.cu [OPTION…]       or: cbgen FILE -o kernel.cu",
    .summary = "write the CUDA kernel of a matrix",
    .details =
        "Writes CUDA text made for the matrix. Its data stand in the text up to 1 MiB, else in kernel.cbd\n"
        "beside it. 'nvcc -arch=sm_90 -fmad=false -DCBGEN_SELFTEST kernel.cu' makes a program that checks\n"
        "itself.\n",
    .example = "cbgen matrix.mtx -o kernel.cu --emit=cu,plan --type=f32",
    .takes = CB_TAKES_OUTPUT | CB_TAKES_EMIT | CB_TAKES_ARCH | CB_TAKES_TEXT | CB_TAKES_NAME | CB_TAKES_JSON |
             CB_TAKES_MEASURE,
    .check = check_call,
    .run = run_generate,
};
