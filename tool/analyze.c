// SPDX-License-Identifier: Apache-2.0
/* cbgen analyze: what the matrix looks like and what a kernel for it would be, without writing one. */
#include "tool/candidates.h"
#include "tool/job.h"
#include "tool/sweep.h"

#include "analysis/plan/loads.h"
#include "analysis/profile/profile.h"
#include "base/json.h"

/* All that is found out about one matrix. */
struct findings {
  struct cb_profile profile;
  struct cb_loads loads, unbalanced; /* by thread block */
};

/* What other formats would store, with values of the plan's type. */
static int64_t bsr_bytes(const struct findings *found, const struct cb_job *job) {
  return cb_profile_bsr16_bytes(&found->profile, (int64_t)cb_type_size(job->plan->matrix_type));
}
static int64_t coo_bytes(const struct findings *found, const struct cb_job *job) {
  return cb_profile_coo_bytes(&found->profile, (int64_t)cb_type_size(job->plan->matrix_type));
}

static void print_loads(struct cb_text *text, const char *name, const struct cb_loads *loads) {
  if (!loads->blocks) return;
  cb_text_add(text, "%-10s %lld to %lld nonzeros per thread block, mean %.1f, variation %.3f, %lld thread blocks\n", name,
              (long long)loads->least, (long long)loads->most, loads->mean, loads->variation, (long long)loads->blocks);
}

static void print_plan(struct cb_text *text, const struct cb_job *job, const struct findings *found) {
  const struct cb_plan *plan = job->plan;
  const double nonzeros = job->csr.nnz ? (double)job->csr.nnz : 1;
  const int64_t stored = cb_plan_bytes(plan), csr = cb_job_csr_bytes(job);
  char stored_text[24], csr_text[24];
  cb_human_bytes(stored_text, stored);
  cb_human_bytes(csr_text, csr);
  cb_text_add(text, "\nplan       %s\n", plan->line);
  cb_text_add(text, "types      %s, values %s\n", cb_plan_types_name(plan),
              cb_plan_values_fixed(plan) ? "fixed" : "data");
  cb_text_add(text, "target     %s, %s\n", plan->target.arch, plan->target.model);
  cb_text_add(text, "stored     %.2f bytes per nonzero (%s); as CSR %.2f (%s), as BSR of 16 x 16 %.2f, as COO %.2f\n",
              (double)stored / nonzeros, stored_text, (double)csr / nonzeros, csr_text,
              (double)bsr_bytes(found, job) / nonzeros, (double)coo_bytes(found, job) / nonzeros);
  print_loads(text, "loads", &found->loads);
  if (!found->loads.blocks) cb_text_add_string(text, "loads      a layout of this plan does not say which thread block has what\n");
  print_loads(text, "unbalanced", &found->unbalanced);
  cb_text_add(text, "predicted  %.1f us per product, for %d launch%s\n", 1e-3 * (double)plan->cost.ns,
              plan->launches_count, plan->launches_count == 1 ? "" : "es");
  cb_text_add(text, "because    ");
  cb_candidates_why(text, plan);
  cb_text_add_string(text,
                     "\n\nin us: launching, at the host's pace; on the GPU the longest of stream (from L2 where it fits, else\n"
                     "from memory) beside gather, of work and of chain, then the tail\n");
  cb_candidates_table(text, plan);
}

static struct cb_json matrix_json(const struct cb_job *job, int *failed) {
  const struct cb_json matrix = cb_json_object(failed);
  cb_json_set_text(matrix, "name", job->name);
  cb_json_set_integer(matrix, "rows", job->csr.rows);
  cb_json_set_integer(matrix, "cols", job->csr.cols);
  cb_json_set_integer(matrix, "nonzeros", job->csr.nnz);
  return matrix;
}

/* The plan's own JSON. */
static enum cb_status plan_json(json_t **json, const struct cb_plan *plan, struct cb_diag *diag) {
  struct cb_text text = {0};
  enum cb_status s = cb_plan_json(plan, &text, diag);
  if (!s) s = cb_json_read(json, text.bytes, text.length, diag);
  cb_text_release(&text);
  return s;
}

static enum cb_status print_json(struct cb_text *text, const struct findings *found, const struct cb_job *job,
                                 struct cb_diag *diag) {
  struct cb_text why = {0};
  int failed = 0;
  json_t *plan = NULL;
  enum cb_status s = plan_json(&plan, job->plan, diag);
  if (s) return s;
  const struct cb_json root = cb_json_object(&failed);
  cb_json_set(root, "matrix", matrix_json(job, &failed).json);
  cb_json_set_integer(root, "stored_bytes", cb_plan_bytes(job->plan));
  cb_json_set_integer(root, "csr_bytes", cb_job_csr_bytes(job));
  cb_json_set_integer(root, "bsr16_bytes", bsr_bytes(found, job));
  cb_json_set_integer(root, "coo_bytes", coo_bytes(found, job));
  cb_json_set(root, "loads", cb_sweep_loads_json(&found->loads, &failed));
  cb_json_set(root, "unbalanced", cb_sweep_loads_json(&found->unbalanced, &failed));
  cb_json_set(root, "profile", cb_profile_json(&found->profile));
  cb_json_set(root, "plan", plan);
  cb_json_set(root, "candidates", cb_candidates_json(job->plan, &failed));
  cb_candidates_why(&why, job->plan);
  failed |= why.failed;
  cb_json_set_text(root, "because", cb_text_string(&why));
  s = cb_json_write(text, root, JSON_INDENT(2) | JSON_REAL_PRECISION(9), "an analysis as JSON", diag);
  cb_text_add_string(text, "\n");
  cb_text_release(&why);
  return s;
}

static enum cb_status find_out(struct findings *found, struct cb_job *job, const struct cb_call *call,
                               struct cb_diag *diag) {
  cb_progress_stage("profiling '%s'", call->file);
  enum cb_status s = cb_profile_compute(&found->profile, &job->csr, diag);
  if (!s) s = cb_job_plan(job, call, call->arches_count ? call->arches[0] : NULL, diag);
  if (!s) s = cb_loads_count(&found->loads, job->plan, job->assignment, diag);
  return s ? s : cb_loads_count_unbalanced(&found->unbalanced, job->assignment, diag);
}

static enum cb_status report(struct cb_job *job, const struct cb_call *call, struct cb_diag *diag) {
  struct findings found = {0};
  struct cb_text text = {0};
  enum cb_status s = find_out(&found, job, call, diag);
  if (!s && call->json) s = print_json(&text, &found, job, diag);
  if (!s && !call->json) {
    cb_profile_text(&found.profile, &text);
    print_plan(&text, job, &found);
  }
  if (!s) s = cb_print(&text, diag);
  cb_text_release(&text);
  return s;
}

static enum cb_status run_analyze(const struct cb_call *call, struct cb_diag *diag) {
  struct cb_job job = {0};
  enum cb_status s = cb_job_read(&job, call, diag);
  if (!s) s = call->sweep.count ? cb_sweep_plan(&job, call, diag) : report(&job, call, diag);
  cb_job_release(&job);
  return s;
}

const struct cb_verb cb_verb_analyze = {
    .name = "analyze",
    .arguments = "FILE [OPTION…]",
    .summary = "show a matrix's profile and the plan for its kernel",
    .details =
        "Prints rows, bandwidth, symmetry, diagonals, dense blocks and the density of 16 x 16 sub-blocks,\n"
        "then the plan of the kernel, its stored bytes per nonzero beside CSR's, BSR's and COO's, nonzeros\n"
        "per thread block, its predicted time, and the recipes that were compared: what each would take, in\n"
        "which parts, or why it does not fit.\n",
    .example = "cbgen analyze matrix.mtx --json",
    .takes = CB_TAKES_ARCH | CB_TAKES_JSON | CB_TAKES_SWEEP,
    .run = run_analyze,
};
