// SPDX-License-Identifier: Apache-2.0
/* Linear programs of the public interface: see cbgen_lp_create. */
#include "runtime/api/api.h"

#include "base/memory.h"
#include "base/real.h"
#include "runtime/cuda/ranges.h"
#include "runtime/operator/matrix.h"
#include "runtime/solver/staged.h"

#include <stddef.h>
#include <string.h>

enum { USUAL_ITERATIONS = 100 * 1000, MOST_COUNTED_BY_FLOAT = 1 << 24 };

struct cbgen_lp {
  cbgen_operator *a, *transposed; /* handles of its own */
  struct cb_staged *staged;
  const struct cb_program *program;
  cbgen_lp_options options;
  void *stream; /* of the last solution */
  int has_solved;
  struct cb_diag diag;
};

/* Of certificates, whose products are differences of two: the share of all terms that rounding may be, and how short a
 * step against its point says nothing any more. An infeasible program's step is about the k-th part of its point in
 * iteration k; what rounding adds to its product is then about k units of the last place. */
static const struct certainty {
  double gate, fresh;
} certainties[] = {{1e-5, 1e-7}, {1e-2, 1e-4}}; /* of double, of float */

_Static_assert(CBGEN_REASON_PRIMAL_INFEASIBLE == (int)CB_REASON_PRIMAL_INFEASIBLE &&
                   CBGEN_REASON_DUAL_INFEASIBLE == (int)CB_REASON_DUAL_INFEASIBLE,
               "reasons are the same");
_Static_assert(sizeof(cbgen_lp_result) == sizeof(struct cb_linear_outcome), "results are laid out alike");

/* ---- what is asked for */

static enum cb_status check_operator(const struct cb_operator_info *info, struct cb_diag *diag) {
  if (info->statements) return cb_fail(diag, CB_ERR_ARGUMENT, "linear programs take operators without an epilogue");
  if (info->semiring != CB_PLUS_TIMES)
    return cb_fail(diag, CB_ERR_ARGUMENT, "linear programs take semiring plus-times, not '%s'",
                   cb_semiring_names[info->semiring]);
  if (info->form == CB_FORM_ADD)
    return cb_fail(diag, CB_ERR_ARGUMENT, "linear programs take operators of form ax or axpby, not add");
  if (!info->rows || !info->cols)
    return cb_fail(diag, CB_ERR_ARGUMENT, "the matrix has no rows or no columns: there is nothing to solve");
  if (info->vector_type != CB_F64 && info->vector_type != CB_F32)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "linear programs take vectors of f64 or f32");
  return CB_OK;
}

static enum cb_status check_operators(const cbgen_operator *a, const cbgen_operator *transposed, struct cb_diag *diag) {
  const struct cb_operator_info *own = cb_operator_info(a->op), *other = cb_operator_info(transposed->op);
  enum cb_status s = check_operator(own, diag);
  if (!s) s = check_operator(other, diag);
  if (s) return s;
  if (other->rows != own->cols || other->cols != own->rows)
    return cb_fail(diag, CB_ERR_ARGUMENT, "the transpose of %lld x %lld is not %lld x %lld", (long long)own->rows,
                   (long long)own->cols, (long long)other->rows, (long long)other->cols);
  if (other->vector_type != own->vector_type || other->sum_type != own->sum_type)
    return cb_fail(diag, CB_ERR_ARGUMENT, "the operator and its transpose have different types of vectors or sums");
  if (a->shared->session != transposed->shared->session)
    return cb_fail(diag, CB_ERR_ARGUMENT, "the operator and its transpose are of different contexts or GPUs");
  return CB_OK;
}

static int is_size(double number) { return number >= 0 && cb_real_is_finite(number); }

static enum cb_status check_options(const cbgen_lp_options *options, const struct cb_operator_info *info,
                                    struct cb_diag *diag) {
  const enum cb_status s = cb_check_tolerances(options->relative_tolerance, options->absolute_tolerance, diag);
  if (s) return s;
  if (options->max_iterations < 0 ||
      (info->sum_type == CB_F32 && options->max_iterations > MOST_COUNTED_BY_FLOAT))
    return cb_fail(diag, CB_ERR_ARGUMENT, "'max_iterations' is %d; it is 1 to %d, or 0 (%d)", options->max_iterations,
                   info->sum_type == CB_F32 ? MOST_COUNTED_BY_FLOAT : INT32_MAX, USUAL_ITERATIONS);
  if (!is_size(options->norm) || !is_size(options->weight))
    return cb_fail(diag, CB_ERR_ARGUMENT, "'norm' is %g and 'weight' %g: they are above 0, or 0 (found)", options->norm,
                   options->weight);
  if (!cb_real_is_finite(options->certificate_tolerance))
    return cb_fail(diag, CB_ERR_ARGUMENT, "'certificate_tolerance' is %g, which is no finite number",
                   options->certificate_tolerance);
  if (!options->row_scales != !options->column_scales)
    return cb_fail(diag, CB_ERR_ARGUMENT, "of 'row_scales' and 'column_scales' one is missing");
  if (((uintptr_t)options->row_scales | (uintptr_t)options->column_scales) % cb_type_size(info->vector_type) ||
      (uintptr_t)options->result % 8)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'row_scales', 'column_scales' or 'result' is not aligned to its elements");
  return CB_OK;
}

static enum cb_status take_options(cbgen_lp *lp, const cbgen_lp_options *asked, struct cb_diag *diag) {
  cbgen_lp_options *options = &lp->options;
  const struct cb_operator_info *info = cb_operator_info(lp->a->op);
  const size_t least = offsetof(cbgen_lp_options, certificate_tolerance);
  enum cb_status s = asked ? cb_take_struct(options, sizeof *options, least, asked, "cbgen_lp_options", diag) : CB_OK;
  if (!s) s = check_options(options, info, diag);
  if (s) return s;
  const double usual = info->sum_type == CB_F32 ? 1e-4 : 1e-6;
  if (options->relative_tolerance == 0 && options->absolute_tolerance == 0)
    options->relative_tolerance = options->absolute_tolerance = usual;
  if (!options->max_iterations) options->max_iterations = USUAL_ITERATIONS;
  if (options->certificate_tolerance == 0) options->certificate_tolerance = info->sum_type == CB_F32 ? 1e-3 : 1e-8;
  lp->program = &cb_program_pdhg[options->row_scales != NULL];
  return CB_OK;
}

/* ---- life */

static struct cb_staged_parts parts_of(const cbgen_lp *lp) {
  const struct cb_operator_info *info = cb_operator_info(lp->a->op);
  return (struct cb_staged_parts){.device = lp->a->shared->session->device,
                                  .op = lp->a->op,
                                  .transposed = lp->transposed->op,
                                  .program = lp->program,
                                  .vector = info->vector_type,
                                  .sum = info->sum_type};
}

/* The matrices of both products, in the plan's order: the transpose of the caller's, and his. */
static enum cb_status take_matrices(struct cb_csr matrices[2], const cbgen_lp *lp, struct cb_diag *diag) {
  const struct cb_operator_info *info = cb_operator_info(lp->a->op);
  struct cb_view view;
  int canonical;
  enum cb_status s = cb_view_take_csr(&view, lp->options.matrix, diag);
  if (s) return s;
  if (view.on_device || view.rows != info->rows || view.cols != info->cols)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'matrix' is %s", view.on_device ? "not in host memory" : "not the operator's");
  s = cb_view_check(&view, &canonical, diag);
  for (int i = 0; i < 2 && !s; i++) {
    struct cb_order order = {0};
    s = cb_view_canonical(&matrices[i], &order, &view, canonical, i == 0, diag);
    cb_order_release(&order);
  }
  return s;
}

/* Numbers of one type, which are those of the matrix for as long as the solver is there. */
static int may_have_slabs(const cbgen_lp *lp) {
  cbgen_info info = {.struct_size = sizeof info};
  const struct cb_operator_info *own = cb_operator_info(lp->a->op);
  return lp->options.matrix && own->vector_type == own->sum_type && !cbgen_operator_info(lp->a, &info) &&
         info.values != CBGEN_VALUES_MUTABLE && info.matrix_type == info.vector_type;
}

static enum cb_status load_slabs(const cbgen_lp *lp, struct cb_slab_deal *deal, struct cb_staged_parts *parts,
                                 struct cb_diag *diag) {
  const struct cb_device *device = parts->device;
  struct cb_compiled compiled = {0};
  struct cb_text text = {0};
  enum cb_status s = cb_slabs_text(&text, &deal->shape, parts->program, parts->plan, parts->vector,
                                   device->target.shared_per_block, diag);
  if (!s) s = cb_program_binary(lp->a->shared, &text, 0, &compiled, diag);
  if (!s) s = cb_device_enter(device, diag);
  if (!s) {
    s = cb_slabs_load(&parts->slabs, device, deal, parts->vector, compiled.cubin, diag);
    cb_device_leave(device);
  }
  cb_compiled_release(&compiled);
  cb_text_release(&text);
  return s;
}

/* Iterations with the matrix in shared memory, if it finds room there; else the products make them. */
static enum cb_status add_slabs(const cbgen_lp *lp, struct cb_staged_parts *parts, struct cb_diag *diag) {
  struct cb_csr matrices[2] = {{0}};
  const struct cb_csr *const both[] = {&matrices[0], &matrices[1]};
  struct cb_slab_deal deal = {0};
  struct cb_diag own = {0};
  int first;
  if (!may_have_slabs(lp) || !cb_slabs_find(parts->plan, &parts->group, &first)) return CB_OK;
  enum cb_status s = take_matrices(matrices, lp, diag);
  if (!s) {
    s = cb_slabs_deal(&deal, both, &parts->device->target, parts->vector, &own);
    if (!s) s = load_slabs(lp, &deal, parts, &own);
    if (s == CB_ERR_UNSUPPORTED || s == CB_ERR_LIMIT || s == CB_ERR_MISSING) s = CB_OK;
    else if (s) *diag = own;
  }
  cb_slab_deal_release(&deal);
  for (int i = 0; i < 2; i++) cb_csr_release(&matrices[i]);
  return s;
}

static enum cb_status build(cbgen_lp *lp, struct cb_diag *diag) {
  const struct cb_program_sizes sizes = {0};
  struct cb_staged_parts parts = parts_of(lp);
  struct cb_compiled compiled = {0};
  struct cb_stages_plan plan;
  struct cb_text text = {0};
  enum cb_status s = cb_stages_text(&text, &plan, lp->program, parts.vector, parts.sum, &sizes, diag);
  if (!s) s = cb_stages_binary(lp->a->shared, &text, &compiled, diag);
  parts.plan = &plan;
  parts.cubin = compiled.cubin;
  if (!s) s = add_slabs(lp, &parts, diag);
  if (!s) cb_stages_fuse(parts.fused, lp->a, lp->transposed, lp->program, &plan);
  if (!s) s = cb_staged_load(&lp->staged, &parts, diag);
  cb_compiled_release(&compiled);
  cb_text_release(&text);
  return s;
}

static enum cb_status take_handle(cbgen_operator *op, cbgen_operator **handle, struct cb_diag *diag) {
  const enum cb_status s = (enum cb_status)cbgen_operator_clone(op, handle);
  return s ? cb_fail(diag, s, "%s", cbgen_operator_message(op)) : CB_OK;
}

cbgen_status cbgen_lp_create(cbgen_operator *a, cbgen_operator *transposed, const cbgen_lp_options *options,
                             cbgen_lp **out) {
  CB_STANDARD_NUMERICS;
  CB_RANGE("cbgen: make a solver of linear programs");
  struct cb_diag diag = {0};
  if (out) *out = NULL;
  if (!a) return CBGEN_ERROR_ARGUMENT;
  if (!out || !transposed)
    return cb_operator_report(a, cb_fail(&diag, CB_ERR_ARGUMENT, "no transpose, or no place for the solver, was given"),
                              &diag);
  enum cb_status s = check_operators(a, transposed, &diag);
  if (s) return cb_operator_report(a, s, &diag);
  cbgen_lp *lp = cb_calloc(1, sizeof *lp);
  if (!lp) return cb_operator_report(a, cb_fail_memory(&diag, "a solver", sizeof *lp), &diag);
  s = take_handle(a, &lp->a, &diag);
  if (!s) s = take_handle(transposed, &lp->transposed, &diag);
  if (!s) s = take_options(lp, options, &diag);
  if (!s) s = build(lp, &diag);
  lp->options.matrix = NULL;
  if (s) cbgen_lp_free(lp);
  else *out = lp;
  return cb_operator_report(a, s, &diag);
}

/* The solver's own, or all of them anew. */
static enum cb_status take_clone_options(cbgen_lp *clone, const cbgen_lp *lp, const cbgen_lp_options *asked,
                                         struct cb_diag *diag) {
  clone->options = lp->options;
  clone->options.result = NULL;
  clone->program = lp->program;
  if (!asked) return CB_OK;
  clone->options = (cbgen_lp_options){0};
  const enum cb_status s = take_options(clone, asked, diag);
  if (s || clone->program == lp->program) return s;
  return cb_fail(diag, CB_ERR_ARGUMENT, "a clone has the solver's kernels: whether there are 'row_scales' is its");
}

static enum cb_status clone_into(cbgen_lp *clone, const cbgen_lp *lp, const cbgen_lp_options *options,
                                 struct cb_diag *diag) {
  enum cb_status s = take_handle(lp->a, &clone->a, diag);
  if (!s) s = take_handle(lp->transposed, &clone->transposed, diag);
  if (!s) s = take_clone_options(clone, lp, options, diag);
  if (s) return s;
  const struct cb_staged_parts parts = parts_of(clone);
  return cb_staged_clone(&clone->staged, lp->staged, &parts, diag);
}

cbgen_status cbgen_lp_clone(cbgen_lp *lp, const cbgen_lp_options *options, cbgen_lp **out) {
  CB_STANDARD_NUMERICS;
  if (out) *out = NULL;
  if (!lp) return CBGEN_ERROR_ARGUMENT;
  if (!out) return (cbgen_status)cb_fail(&lp->diag, CB_ERR_ARGUMENT, "no place for the clone was given");
  cbgen_lp *clone = cb_calloc(1, sizeof *clone);
  if (!clone) return (cbgen_status)cb_fail_memory(&lp->diag, "a solver", sizeof *clone);
  const enum cb_status s = clone_into(clone, lp, options, &lp->diag);
  if (s) cbgen_lp_free(clone);
  else *out = clone;
  return (cbgen_status)s;
}

void cbgen_lp_free(cbgen_lp *lp) {
  if (!lp) return;
  cb_staged_free(lp->staged);
  cbgen_operator_free(lp->transposed);
  cbgen_operator_free(lp->a);
  cb_free(lp);
}

const char *cbgen_lp_message(const cbgen_lp *lp) { return lp ? lp->diag.message : ""; }

const char *cbgen_lp_form(const cbgen_lp *lp) {
  static const char *const forms[2][2] = {{"host", "host+matrix"}, {"graph", "graph+matrix"}};
  return lp ? forms[cb_staged_is_graph(lp->staged)][cb_staged_has_slabs(lp->staged)] : "";
}

/* ---- solving */

static enum cb_status check_vectors(const cbgen_lp *lp, const cbgen_lp_problem *problem, const void *x, const void *y,
                                    struct cb_diag *diag) {
  const size_t size = cb_type_size(cb_operator_info(lp->a->op)->vector_type);
  const uintptr_t all = (uintptr_t)problem->cost | (uintptr_t)problem->lower | (uintptr_t)problem->upper |
                        (uintptr_t)problem->row_lower | (uintptr_t)problem->row_upper | (uintptr_t)x | (uintptr_t)y;
  if (!x || !y) return cb_fail(diag, CB_ERR_ARGUMENT, "'x' or 'y' of the linear program is NULL");
  if (x == y) return cb_fail(diag, CB_ERR_ARGUMENT, "'x' and 'y' of the linear program are the same");
  if (all % size)
    return cb_fail(diag, CB_ERR_ARGUMENT, "a vector of the linear program is not aligned to its elements");
  return CB_OK;
}

static cb_device_ptr at(const void *pointer) { return (cb_device_ptr)(uintptr_t)pointer; }

/* With the context current, if it is not already. */
static enum cb_status run(cbgen_lp *lp, const struct cb_solve *solve, struct cb_diag *diag) {
  const struct cb_device *device = lp->a->shared->session->device;
  int entered;
  enum cb_status s = cb_device_enter_once(device, &entered, diag);
  if (s) return s;
  s = cb_staged_run(lp->staged, solve, diag);
  if (entered) cb_device_leave(device);
  return s;
}

cbgen_status cbgen_lp_solve(cbgen_lp *lp, const cbgen_lp_problem *problem, void *x, void *y, void *stream) {
  CB_RANGE("cbgen: solve a linear program");
  if (!lp) return CBGEN_ERROR_ARGUMENT;
  const cbgen_lp_options *options = &lp->options;
  const struct certainty *certain = &certainties[cb_operator_info(lp->a->op)->sum_type == CB_F32];
  cbgen_lp_problem own = {0};
  struct cb_diag *diag = &lp->diag;
  if (!problem) return (cbgen_status)cb_fail(diag, CB_ERR_ARGUMENT, "no linear program was given");
  enum cb_status s = cb_take_struct(&own, sizeof own, sizeof own, problem, "cbgen_lp_problem", diag);
  if (!s) s = check_vectors(lp, &own, x, y, diag);
  const struct cb_solve solve = {
      .given = {at(own.cost), at(own.lower), at(own.upper), at(own.row_lower), at(own.row_upper), at(x), at(y),
                at(options->column_scales), at(options->row_scales)},
      .parameters = {options->relative_tolerance, options->absolute_tolerance, options->norm, options->weight,
                     options->max_iterations, options->certificate_tolerance, certain->gate,
                     certain->fresh * certain->fresh},
      .most = options->max_iterations,
      .outcome = at(options->result),
      .stream = stream};
  if (!s) s = run(lp, &solve, diag);
  if (s) return (cbgen_status)s;
  lp->stream = stream;
  lp->has_solved = 1;
  return CBGEN_OK;
}

static enum cb_status fetch(const cbgen_lp *lp, cbgen_lp_result *result, struct cb_diag *diag) {
  const struct cb_device *device = lp->a->shared->session->device;
  const struct cb_driver *driver = device->driver;
  const cb_device_ptr there = lp->options.result ? at(lp->options.result) : cb_staged_outcome(lp->staged);
  enum cb_status s = cb_device_enter(device, diag);
  if (s) return s;
  s = cb_driver_check(driver, driver->call.stream_synchronize(lp->stream), diag, "wait for a solution");
  if (!s) s = cb_device_download(device, result, there, sizeof *result, "a result", diag);
  cb_device_leave(device);
  return s;
}

cbgen_status cbgen_lp_outcome(cbgen_lp *lp, cbgen_lp_result *result) {
  if (!lp) return CBGEN_ERROR_ARGUMENT;
  if (!result) return (cbgen_status)cb_fail(&lp->diag, CB_ERR_ARGUMENT, "no place for the result was given");
  *result = (cbgen_lp_result){0};
  return lp->has_solved ? (cbgen_status)fetch(lp, result, &lp->diag) : CBGEN_OK;
}
