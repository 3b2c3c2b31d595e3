// SPDX-License-Identifier: Apache-2.0
/* Solvers of the public interface: see cbgen_solver_create. */
#include "runtime/api/api.h"

#include "base/memory.h"
#include "runtime/cuda/ranges.h"
#include "runtime/cuda/spills.h"
#include "runtime/solver/solver.h"

#include <stddef.h>
#include <string.h>

struct cbgen_solver {
  cbgen_operator *op; /* a handle of its own */
  struct cb_solver *solver;
  const struct cb_program *program;
  cbgen_solver_options options;
  struct cb_text source;
  void *stream;  /* of the last solution */
  int has_solved;
  struct cb_diag diag;
};

#define SAME(public_name, own) _Static_assert((int)(public_name) == (int)(own), "reasons are numbered alike")
SAME(CBGEN_REASON_CONVERGED, CB_REASON_CONVERGED);
SAME(CBGEN_REASON_ITERATIONS, CB_REASON_ITERATIONS);
SAME(CBGEN_REASON_BREAKDOWN, CB_REASON_BREAKDOWN);
SAME(CBGEN_REASON_NOT_A_NUMBER, CB_REASON_NOT_A_NUMBER);
_Static_assert(sizeof(cbgen_outcome) == sizeof(struct cb_program_outcome), "outcomes are laid out alike");

/* ---- what is asked for */

static enum cb_status check_operator(const struct cb_operator_info *info, struct cb_diag *diag) {
  if (info->statements) return cb_fail(diag, CB_ERR_ARGUMENT, "an operator with an epilogue has no solvers");
  if (info->semiring != CB_PLUS_TIMES)
    return cb_fail(diag, CB_ERR_ARGUMENT, "solvers take semiring plus-times, not '%s'", cb_semiring_names[info->semiring]);
  if (info->rows != info->cols)
    return cb_fail(diag, CB_ERR_ARGUMENT, "solvers take square matrices; this one has %lld rows and %lld columns",
                   (long long)info->rows, (long long)info->cols);
  if (!info->rows) return cb_fail(diag, CB_ERR_ARGUMENT, "the matrix has no rows: there is nothing to solve");
  if (info->form == CB_FORM_ADD)
    return cb_fail(diag, CB_ERR_ARGUMENT, "solvers take operators of form ax or axpby, not add");
  if (info->vector_type != CB_F64 && info->vector_type != CB_F32)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "solvers take vectors of f64 or f32");
  return CB_OK;
}

static enum cb_status check_options(const cbgen_solver_options *options, const struct cb_operator_info *info,
                                    struct cb_diag *diag) {
  if (!(options->relative_tolerance >= 0) || !(options->absolute_tolerance >= 0))
    return cb_fail(diag, CB_ERR_ARGUMENT, "a tolerance is negative or no number");
  if (options->max_iterations < 0)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'max_iterations' is %d; it is 0 (10 times the rows) or more",
                   options->max_iterations);
  if (options->thread_blocks < 0)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'thread_blocks' is %d; it is 0 or more", options->thread_blocks);
  if ((uintptr_t)options->diagonal % cb_type_size(info->vector_type) || (uintptr_t)options->outcome % 8 ||
      (uintptr_t)options->history % 8)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'diagonal', 'outcome' or 'history' is not aligned to its elements");
  return CB_OK;
}

static enum cb_status take_options(cbgen_solver *solver, const char *method, const cbgen_solver_options *asked,
                                   struct cb_diag *diag) {
  cbgen_solver_options *options = &solver->options;
  const struct cb_operator_info *info = cb_operator_info(solver->op->op);
  const size_t least = offsetof(cbgen_solver_options, program_form);
  enum cb_status s = asked ? cb_take_struct(options, sizeof *options, least, asked, "cbgen_solver_options", diag) : CB_OK;
  if (!s) s = check_operator(info, diag);
  if (!s) s = check_options(options, info, diag);
  if (s) return s;
  solver->program = cb_program_find(method, options->diagonal != NULL);
  if (!solver->program) return cb_fail(diag, CB_ERR_ARGUMENT, "there is no method '%.60s'; there are cg and bicgstab", method);
  const double usual = info->sum_type == CB_F32 ? 1e-5 : 1e-8;
  if (options->relative_tolerance == 0 && options->absolute_tolerance == 0) options->relative_tolerance = usual;
  if (!options->max_iterations)
    options->max_iterations = info->rows < INT32_MAX / 10 ? (int)(10 * info->rows) : INT32_MAX;
  return CB_OK;
}

/* ---- the kernel */

/* What its binary is kept under: the text's own bytes stand for the pattern. */
static struct cb_cache_subject subject_of(const struct cb_session *session, const struct cb_text *text,
                                          struct cb_options *options) {
  cb_options_default(options);
  return (struct cb_cache_subject){.kind = "solver",
                                   .options = options,
                                   .target = &session->device->target,
                                   .pattern = cb_hash_bytes(text->bytes, text->length)};
}

/* NVRTC is opened for this alone: solvers may be made on any thread. `is_full`: a text whose thread blocks have so many
 * threads that it is written anew if they lack registers; see find_fitting. */
static enum cb_status compile(const struct cb_session *session, const struct cb_text *text, int is_full,
                              struct cb_compiled *compiled, struct cb_diag *diag) {
  const struct cb_nvrtc_options options = {.arch = session->device->target.arch};
  struct cb_nvrtc *nvrtc = NULL;
  enum cb_status s = cb_nvrtc_open(&nvrtc, *session->nvrtc_path ? session->nvrtc_path : NULL, diag);
  if (s) return s;
  if (!is_full) {
    s = cb_compile_fitting(compiled, nvrtc, text->bytes, CB_PROGRAM_KERNEL, &options, diag);
  } else {
    s = cb_nvrtc_compile(compiled, nvrtc, text->bytes, CB_PROGRAM_KERNEL, &options, diag);
    if (!s) compiled->spilled_bytes = cb_spilled_bytes(compiled);
  }
  cb_nvrtc_close(nvrtc);
  return s;
}

/* The binary of the text: kept with the operator's, or compiled. */
static enum cb_status find_binary(const struct cb_shared *shared, const struct cb_text *text, int is_full,
                                  struct cb_compiled *compiled, struct cb_diag *diag) {
  const struct cb_session *session = shared->session;
  struct cb_cache_options where = {.directory = shared->kept.directory, .limit = shared->kept.limit, .existing = 1};
  struct cb_options options;
  const struct cb_cache_subject subject = subject_of(session, text, &options);
  struct cb_cache *cache = NULL;
  enum cb_status s = CB_OK;
  if (where.directory) cb_cache_open(&cache, &where, NULL);
  if (!cache || !cb_session_kept_binary(cache, cb_cache_key(&subject), compiled)) {
    s = compile(session, text, is_full, compiled, diag);
    if (!s && cache) cb_session_keep_binary(session, cache, &subject, text, compiled);
  }
  cb_cache_close(cache);
  return s;
}

static enum cb_status choose_form(const cbgen_solver *solver, const struct cb_image *image,
                                  struct cb_program_form *form, struct cb_diag *diag) {
  const struct cb_target *target = &solver->op->shared->session->device->target;
  const struct cb_program_size size = cb_solver_size(image, target);
  const char *name = solver->options.program_form;
  const int blocks = solver->options.thread_blocks;
  if (!name && !blocks) {
    cb_program_choose(form, &size);
    return CB_OK;
  }
  if (!cb_program_form_find(form, name ? name : cb_program_form_names[CB_PROGRAM_GRID]))
    return cb_fail(diag, CB_ERR_ARGUMENT,
                   "there is no program form '%.60s'; there are grid, cluster and block, and each with '+steps'", name);
  form->blocks = blocks;
  if (!cb_program_form_exists(form->kind, target))
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "program form 'cluster' needs sm_90 or later; this GPU is %s", target->arch);
  if (form->kind == CB_PROGRAM_CLUSTER && blocks > CB_PROGRAM_CLUSTER_BLOCKS)
    return cb_fail(diag, CB_ERR_LIMIT, "a cluster has at most %d thread blocks; %d are asked for",
                   CB_PROGRAM_CLUSTER_BLOCKS, blocks);
  if (form->kind == CB_PROGRAM_BLOCK && blocks > 1)
    return cb_fail(diag, CB_ERR_LIMIT, "program form 'block' has 1 thread block; %d are asked for", blocks);
  cb_program_complete(form, &size);
  return CB_OK;
}

/* Text and binary; with fewer threads to a thread block if a thread lacks registers. */
static enum cb_status find_fitting(cbgen_solver *solver, const struct cb_image *image, struct cb_program_form *form,
                                   int *threads, struct cb_compiled *compiled, struct cb_diag *diag) {
  enum { HALF = 512 /* threads: where a multiprocessor has more registers for each than fewer of them could use */ };
  for (;;) {
    enum cb_status s = cb_solver_text(&solver->source, image, solver->program, form, threads, diag);
    const int groups = *threads / image->launches[0].threads, is_full = groups > 1 && *threads > HALF;
    if (!s) s = find_binary(solver->op->shared, &solver->source, is_full, compiled, diag);
    if (s || !compiled->spilled_bytes || !is_full) return s;
    form->groups = groups - 1;
    cb_compiled_release(compiled);
    cb_text_release(&solver->source);
    *compiled = (struct cb_compiled){0};
  }
}

static enum cb_status build(cbgen_solver *solver, const struct cb_image *image, struct cb_diag *diag) {
  const struct cb_shared *shared = solver->op->shared;
  struct cb_compiled compiled = {0};
  struct cb_program_form form;
  int threads = 0;
  enum cb_status s = choose_form(solver, image, &form, diag);
  if (!s) s = find_fitting(solver, image, &form, &threads, &compiled, diag);
  const struct cb_solver_parts parts = {.device = shared->session->device,
                                        .op = solver->op->op,
                                        .image = image,
                                        .program = solver->program,
                                        .cubin = compiled.cubin,
                                        .form = form,
                                        .threads = threads};
  if (!s) s = cb_solver_load(&solver->solver, &parts, diag);
  cb_compiled_release(&compiled);
  return s;
}

/* From the specialised kernels' numbers, whatever multiplies now. */
static enum cb_status build_special(cbgen_solver *solver, struct cb_diag *diag) {
  const struct cb_image *image = &solver->op->shared->image;
  struct cb_image special;
  enum cb_status s = cb_shared_texts(solver->op->shared, diag);
  if (s) return s;
  if (image->tier == CB_TIER_SPECIALISED) return build(solver, image, diag);
  s = cb_image_specialise(&special, image, diag);
  if (s) return s;
  s = build(solver, &special, diag);
  cb_image_release(&special);
  return s;
}

/* ---- life */

cbgen_status cbgen_solver_create(cbgen_operator *op, const char *method, const cbgen_solver_options *options,
                                 cbgen_solver **out) {
  CB_STANDARD_NUMERICS;
  CB_RANGE("cbgen: make a solver");
  struct cb_diag diag = {0};
  if (out) *out = NULL;
  if (!op) return CBGEN_ERROR_ARGUMENT;
  if (!out || !method)
    return cb_operator_report(op, cb_fail(&diag, CB_ERR_ARGUMENT, "no method, or no place for the solver, was given"), &diag);
  cbgen_solver *solver = cb_calloc(1, sizeof *solver);
  if (!solver) return cb_operator_report(op, cb_fail_memory(&diag, "a solver", sizeof *solver), &diag);
  enum cb_status s = (enum cb_status)cbgen_operator_clone(op, &solver->op);
  if (s) {
    cb_free(solver);
    return (cbgen_status)s; /* the operator has the message */
  }
  s = take_options(solver, method, options, &diag);
  if (!s) s = build_special(solver, &diag);
  if (s) cbgen_solver_free(solver);
  else *out = solver;
  return cb_operator_report(op, s, &diag);
}

void cbgen_solver_free(cbgen_solver *solver) {
  if (!solver) return;
  cb_solver_free(solver->solver);
  cbgen_operator_free(solver->op);
  cb_text_release(&solver->source);
  cb_free(solver);
}

const char *cbgen_solver_message(const cbgen_solver *solver) { return solver ? solver->diag.message : ""; }

const char *cbgen_solver_source(const cbgen_solver *solver, size_t *length) {
  if (length) *length = solver ? solver->source.length : 0;
  return solver ? cb_text_string(&solver->source) : "";
}

/* ---- solving */

static enum cb_status check_vectors(const cbgen_solver *solver, const void *b, const void *x, struct cb_diag *diag) {
  const size_t size = cb_type_size(cb_operator_info(solver->op->op)->vector_type);
  if (!b || !x) return cb_fail(diag, CB_ERR_ARGUMENT, "'b' or 'x' of the solution is NULL");
  if (b == x) return cb_fail(diag, CB_ERR_ARGUMENT, "'b' and 'x' of the solution are the same");
  if (((uintptr_t)b | (uintptr_t)x) % size)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'b' or 'x' of the solution is not aligned to its elements");
  return CB_OK;
}

/* With the context current, if it is not already. */
static enum cb_status run(cbgen_solver *solver, const struct cb_solve *solve, struct cb_diag *diag) {
  const struct cb_device *device = solver->op->shared->session->device;
  const int entered = !cb_device_is_current(device);
  enum cb_status s = entered ? cb_device_enter(device, diag) : CB_OK;
  if (s) return s;
  s = cb_solver_run(solver->solver, solve, diag);
  if (entered) cb_device_leave(device);
  return s;
}

cbgen_status cbgen_solve(cbgen_solver *solver, const void *b, void *x, void *stream) {
  CB_RANGE("cbgen: solve");
  if (!solver) return CBGEN_ERROR_ARGUMENT;
  const cbgen_solver_options *options = &solver->options;
  const struct cb_solve solve = {
      .given = {(cb_device_ptr)(uintptr_t)b, (cb_device_ptr)(uintptr_t)x, (cb_device_ptr)(uintptr_t)options->diagonal},
      .parameters = {options->relative_tolerance, options->absolute_tolerance},
      .most = options->max_iterations,
      .outcome = (cb_device_ptr)(uintptr_t)options->outcome,
      .history = (cb_device_ptr)(uintptr_t)options->history,
      .stream = stream};
  enum cb_status s = check_vectors(solver, b, x, &solver->diag);
  if (!s) s = run(solver, &solve, &solver->diag);
  if (s) return (cbgen_status)s;
  solver->stream = stream;
  solver->has_solved = 1;
  return CBGEN_OK;
}

static enum cb_status fetch(const cbgen_solver *solver, cbgen_outcome *outcome, struct cb_diag *diag) {
  const struct cb_device *device = solver->op->shared->session->device;
  const struct cb_driver *driver = device->driver;
  const cb_device_ptr there = solver->options.outcome ? (cb_device_ptr)(uintptr_t)solver->options.outcome
                                                      : cb_solver_outcome(solver->solver);
  enum cb_status s = cb_device_enter(device, diag);
  if (s) return s;
  s = cb_driver_check(driver, driver->call.stream_synchronize(solver->stream), diag, "wait for a solution");
  if (!s) s = cb_device_download(device, outcome, there, sizeof *outcome, "an outcome", diag);
  cb_device_leave(device);
  return s;
}

cbgen_status cbgen_solver_outcome(cbgen_solver *solver, cbgen_outcome *outcome) {
  if (!solver) return CBGEN_ERROR_ARGUMENT;
  if (!outcome)
    return (cbgen_status)cb_fail(&solver->diag, CB_ERR_ARGUMENT, "no place for the outcome was given");
  *outcome = (cbgen_outcome){0};
  return solver->has_solved ? (cbgen_status)fetch(solver, outcome, &solver->diag) : CBGEN_OK;
}
