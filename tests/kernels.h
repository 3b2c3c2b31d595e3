// SPDX-License-Identifier: Apache-2.0
/* For tests that take many matrices from CSR to a verified product, in batches that share host compilations.
 */
#ifndef CBGEN_TESTS_KERNELS_H
#define CBGEN_TESTS_KERNELS_H

#include "tests/support.h"

#include "analysis/plan/recipe.h"
#include "tests/hosts.h"

#include <omp.h>

enum { KERNEL_BATCH = 512, KERNEL_WORDS = 16 };

/* One matrix and all that was made of it. */
struct kernel {
  char name[256]; /* the specification and options that make it again */
  struct cb_csr csr;
  struct cb_plan *plan;
  struct cb_assignment *assignment;
  struct cb_blob blob;
  struct cb_source source;
};

/* Kernels that wait for their common compilation. */
struct kernel_batch {
  struct cb_host *host;
  struct cb_verify_options options;
  struct kernel *kernels;
  int count;
  /* over all batches */
  int done, failures, texts, refused;
  double compile_seconds, run_seconds, worst_ratio;
  int64_t rows, exact_rows;
};

static inline void release_kernel(struct kernel *kernel) {
  cb_source_release(&kernel->source);
  cb_blob_release(&kernel->blob);
  cb_assignment_free(kernel->assignment);
  cb_plan_free(kernel->plan);
  cb_csr_release(&kernel->csr);
}

/* Plans, packs and emits for kernel->csr. */
static inline enum cb_status make_kernel_of_target(struct kernel *kernel, const struct cb_target *target,
                                                   const struct cb_options *options, struct cb_diag *diag) {
  fit_values(&kernel->csr, options);
  const struct cb_label label = {"test", "m", cb_csr_pattern_hash(&kernel->csr)};
  enum cb_status s = cb_plan_build(&kernel->plan, &kernel->assignment, &kernel->csr, target, options, diag);
  if (!s) s = cb_plan_check(kernel->plan, diag);
  if (!s) s = cb_assignment_check(kernel->plan, kernel->assignment, diag);
  if (!s) s = cb_pack(&kernel->blob, kernel->plan, kernel->assignment, &kernel->csr, label.pattern, diag);
  if (!s) s = cb_source_emit(&kernel->source, kernel->plan, &label, &kernel->blob, CB_EMBED_NEVER, diag);
  return s;
}

static inline enum cb_status make_kernel_for(struct kernel *kernel, const char *arch,
                                             const struct cb_options *options, struct cb_diag *diag) {
  struct cb_target target;
  const enum cb_status s = cb_target_find(&target, arch, diag);
  return s ? s : make_kernel_of_target(kernel, &target, options, diag);
}

static inline enum cb_status make_kernel(struct kernel *kernel, const struct cb_options *options,
                                         struct cb_diag *diag) {
  return make_kernel_for(kernel, "sm_90", options, diag);
}

/* Options for many small kernels, which are compiled sooner than they would be made fast. */
static inline void fast_options(struct cb_verify_options *options) {
  cb_verify_options_default(options);
  options->host.compiler = fast_compiler();
  options->host.optimize = options->host.debug = 0;
  options->orders = 2;
}

static inline void open_batch(struct kernel_batch *batch, const struct cb_verify_options *options) {
  *batch = (struct kernel_batch){.options = *options};
  omp_set_num_threads(1); /* small matrices: two threads that wait for each other only cost time */
  batch->kernels = cb_calloc(KERNEL_BATCH, sizeof *batch->kernels);
  batch->host = kernel_host(&options->host);
}

static inline void judge_kernel(struct kernel_batch *batch, const struct kernel *kernel,
                                const struct cb_verify_report *report) {
  batch->run_seconds += report->run_seconds;
  batch->rows += report->rows;
  batch->exact_rows += report->exact_rows;
  if (report->worst_ratio > batch->worst_ratio) batch->worst_ratio = report->worst_ratio;
  batch->done++;
  if (!report->status) return;
  if (++batch->failures <= 20)
    print_error("%s\n  %s\n  %s\n", kernel->name, kernel->plan->line, report->message);
}

/* Compiles and runs what has been gathered. */
static inline void run_batch(struct kernel_batch *batch) {
  struct cb_diag diag = {0};
  struct cb_verify_case cases[KERNEL_BATCH];
  struct cb_verify_report *reports = cb_calloc(KERNEL_BATCH, sizeof *reports);
  for (int k = 0; k < batch->count; k++) {
    struct kernel *kernel = &batch->kernels[k];
    cases[k] = (struct cb_verify_case){&kernel->csr,    kernel->plan,  kernel->assignment,
                                       &kernel->source, &kernel->blob, "m"};
  }
  if (cb_verify_batch(batch->host, cases, batch->count, &batch->options, reports, &diag)) {
    int number = 0; /* "kNUMBER.cu:…" names a kernel of the batch */
    const char *at = strstr(diag.message, "k");
    if (at && sscanf(at, "k%d.cu", &number) == 1 && number < batch->count)
      print_error("%s\n  %s\n", batch->kernels[number].name, batch->kernels[number].plan->line);
    print_error("%s\n", diag.message);
    batch->failures++;
  }
  for (int k = 0; k < batch->count; k++) {
    judge_kernel(batch, &batch->kernels[k], &reports[k]);
    release_kernel(&batch->kernels[k]);
  }
  if (batch->count) batch->compile_seconds += reports[0].compile_seconds;
  cb_free(reports);
  memset(batch->kernels, 0, (size_t)batch->count * sizeof *batch->kernels);
  batch->count = 0;
}

/* Where the next kernel's name and matrix go; add_kernel takes it into the batch. */
static inline struct kernel *next_kernel(struct kernel_batch *batch) {
  if (batch->count == KERNEL_BATCH) run_batch(batch);
  return &batch->kernels[batch->count];
}

/* Recipes whose layout is made for some matrices only, and refuses others. */
static inline int may_refuse(const char *recipe) {
  const struct cb_recipe *found;
  return !cb_recipe_find(&found, recipe, NULL) && found->may_refuse;
}

/* Whether f16 would make a finite value of the matrix infinite, or some value has no split form. */
static inline int leaves_type(const struct cb_csr *csr, const struct cb_options *options) {
  const enum cb_type type = cb_precision_types((enum cb_precision)options->type).matrix;
  for (int64_t k = 0; k < csr->nnz; k++) {
    const double size = csr->values[k] < 0 ? -csr->values[k] : csr->values[k];
    if (type == CB_F16 && size >= 65520 && size <= 1.7976931348623157e308) return 1;
    if (type == CB_SPLIT && cb_real_overflows(csr->values[k], type)) return 1;
  }
  return 0;
}

/* Whether the message names an option that is set to what may be lacking. */
static inline int asks_too_much(const struct cb_options *options, const struct cb_diag *diag) {
  const struct cb_option *option;
  for (int i = 0; (option = cb_option_at(i)); i++)
    if (option->may_refuse && cb_option_value(options, i) != option->standard && strstr(diag->message, option->name))
      return 1;
  return 0;
}

/* Whether complex numbers are what is refused: by layouts that do not take them, and with atomics. */
static inline int refuses_complex(const struct cb_options *options, const struct cb_diag *diag) {
  const struct cb_types types = cb_precision_types((enum cb_precision)options->type);
  return cb_type_is_complex(types.sum) &&
         (strstr(diag->message, "real numbers only") || strstr(diag->message, "complex numbers with atomics"));
}

/* For kernels that have a family: of each type and form in turn, and nothing baked. */
static inline void set_family_options(struct cb_options *options, const char *words, int number) {
  static const char *const types[] = {"f64", "f32", "f32-f64", "f16-f32", "bf16"};
  static const char *const forms[] = {"axpby", "ax", "add"};
  char text[400];
  cb_options_default(options);
  snprintf(text, sizeof text, "bake-limit=0 type=%s form=%s %.255s", types[number % 5], forms[number / 5 % 3], words);
  set_options(options, text);
}

static inline void add_kernel(struct kernel_batch *batch, const struct cb_options *options) {
  struct cb_diag diag = {0};
  struct kernel *kernel = &batch->kernels[batch->count];
  const enum cb_status s = make_kernel(kernel, options, &diag);
  if (s) {
    const int refuses =
        may_refuse(options->recipe) || asks_too_much(options, &diag) || refuses_complex(options, &diag);
    if ((s == CB_ERR_UNSUPPORTED && refuses) ||
        (s == CB_ERR_LIMIT && leaves_type(&kernel->csr, options)))
      batch->refused++;
    else if (++batch->failures <= 20) print_error("%s\n  %s\n", kernel->name, diag.message);
    release_kernel(kernel);
    memset(kernel, 0, sizeof *kernel);
    return;
  }
  batch->count++;
}

static inline void close_batch(struct kernel_batch *batch) {
  run_batch(batch);
  cb_free(batch->kernels);
  print_message(
      "%d kernels (%d more refused): compile %.1f s, run %.1f s; %lld rows, %lld with tolerance 0, largest error %.3g "
      "of its tolerance\n",
      batch->done, batch->refused, batch->compile_seconds, batch->run_seconds, (long long)batch->rows,
      (long long)batch->exact_rows, batch->worst_ratio);
}

#endif
