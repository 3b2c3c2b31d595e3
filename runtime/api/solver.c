// SPDX-License-Identifier: Apache-2.0
/* Solvers of the public interface: see cbgen_solver_create. */
#include "runtime/api/api.h"

#include "base/clock.h"
#include "base/memory.h"
#include "runtime/cuda/binaries.h"
#include "runtime/cuda/ranges.h"
#include "runtime/cuda/spills.h"
#include "runtime/measure/timer.h"
#include "runtime/measure/tune.h"
#include "runtime/solver/solver.h"
#include "runtime/solver/staged.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { USUAL_RESTART = 30 };

struct cbgen_solver {
  cbgen_operator *op; /* a handle of its own */
  struct cb_solver *solver; /* of one kernel, or else: */
  struct cb_staged *staged;
  struct cb_stages_plan plan; /* of that */
  char form[CB_PROGRAM_FORM_NAME]; /* of one kernel */
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
SAME(CBGEN_REASON_STOPPED, CB_REASON_STOPPED);
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
  const enum cb_type part = cb_type_of_part(info->vector_type);
  if (part != CB_F64 && part != CB_F32)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "solvers take vectors of f64 or f32, or of complex numbers of these");
  return CB_OK;
}

static enum cb_status check_options(const cbgen_solver_options *options, const struct cb_operator_info *info,
                                    struct cb_diag *diag) {
  const enum cb_status s = cb_check_tolerances(options->relative_tolerance, options->absolute_tolerance, diag);
  if (s) return s;
  if (options->max_iterations < 0)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'max_iterations' is %d; it is 0 (10 times the rows) or more",
                   options->max_iterations);
  if (options->thread_blocks < 0)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'thread_blocks' is %d; it is 0 or more", options->thread_blocks);
  if (options->restart < 0 || options->restart > CB_MOST_RESTART)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'restart' is %d; it is 1 to %d, or 0 (%d)", options->restart, CB_MOST_RESTART,
                   USUAL_RESTART);
  if (!(options->weight >= 0) || !cb_real_is_finite(options->weight))
    return cb_fail(diag, CB_ERR_ARGUMENT, "'weight' is %g; it is above 0, or 0 (2/3)", options->weight);
  if (!(options->damping >= 0 && options->damping < 1))
    return cb_fail(diag, CB_ERR_ARGUMENT, "'damping' is %g; it is between 0 and 1, or 0 (0.85)", options->damping);
  if (!(options->lowest >= 0 && options->highest >= 0 && cb_real_is_finite(options->highest)) ||
      (options->highest > 0 && options->lowest >= options->highest))
    return cb_fail(diag, CB_ERR_ARGUMENT, "'lowest' is %g and 'highest' %g: eigenvalues are above 0, and these ascend, or 0",
                   options->lowest, options->highest);
  const uintptr_t numbers = (uintptr_t)options->diagonal | (uintptr_t)options->blocks;
  if (numbers % cb_type_size(info->vector_type) || (uintptr_t)options->outcome % 8 ||
      (uintptr_t)options->history % 8)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'diagonal', 'blocks', 'outcome' or 'history' is not aligned to its elements");
  return CB_OK;
}

/* Appends the methods' names to what is said. */
static enum cb_status fail_method(const char *method, struct cb_diag *diag) {
  char names[200] = "";
  const char *name;
  size_t length = 0;
  for (int i = 0; (name = cb_program_name(i)) && length < sizeof names; i++)
    length += (size_t)snprintf(names + length, sizeof names - length, "%s%s", i ? ", " : "", name);
  return cb_fail(diag, CB_ERR_ARGUMENT, "there is no method '%.60s'; there are %s", method, names);
}

static enum cb_status find_program(cbgen_solver *solver, const char *method, struct cb_diag *diag) {
  const cbgen_solver_options *options = &solver->options;
  const enum cb_preconditioning kind = options->precondition ? CB_CALLED
                                       : options->blocks     ? CB_BLOCKS
                                       : options->diagonal   ? CB_DIAGONAL
                                                             : CB_PLAIN;
  if (!!options->blocks + !!options->diagonal + !!options->precondition > 1)
    return cb_fail(diag, CB_ERR_ARGUMENT,
                   "of 'diagonal', 'blocks' and 'precondition' several are given: a solver takes one of them");
  if (options->blocks && (options->block_size < 2 || options->block_size > CB_MOST_BLOCK))
    return cb_fail(diag, CB_ERR_ARGUMENT, "'block_size' is %d; it is 2 to %d", options->block_size, CB_MOST_BLOCK);
  solver->program = cb_program_find(method, kind);
  if (solver->program) return CB_OK;
  if (cb_program_find(method, CB_PLAIN))
    return cb_fail(diag, CB_ERR_ARGUMENT, "method '%.60s' takes no '%s'", method,
                   options->precondition ? "precondition"
                   : options->blocks     ? "blocks"
                                         : "diagonal");
  return fail_method(method, diag);
}

static void set_usual(cbgen_solver_options *options, const struct cb_operator_info *info) {
  const double usual = cb_type_of_part(info->sum_type) == CB_F32 ? 1e-5 : 1e-8;
  if (options->relative_tolerance == 0 && options->absolute_tolerance == 0) options->relative_tolerance = usual;
  if (!options->max_iterations)
    options->max_iterations = info->rows < INT32_MAX / 10 ? (int)(10 * info->rows) : INT32_MAX;
  if (!options->restart) options->restart = USUAL_RESTART;
  if (options->weight == 0) options->weight = 2.0 / 3;
  if (options->damping == 0) options->damping = 0.85;
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
  s = find_program(solver, method, diag);
  if (!s && cb_program_has_heads(solver->program) && info->matrix_type != CB_SPLIT)
    s = cb_fail(diag, CB_ERR_ARGUMENT,
                "method '%s' multiplies with heads of values, and this operator's are whole: compile it with 'split', which is type "
                "split-f64",
                method);
  if (!s && solver->program->is_real && cb_type_is_complex(info->vector_type))
    s = cb_fail(diag, CB_ERR_UNSUPPORTED, "method '%s' has no meaning for complex numbers", method);
  if (s) return s;
  set_usual(options, info);
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

enum cb_status cb_solver_binary(const struct cb_session *session, struct cb_cache *cache, const struct cb_text *text,
                                int is_full, struct cb_compiled *compiled, struct cb_diag *diag) {
  struct cb_options options;
  const struct cb_cache_subject subject = subject_of(session, text, &options);
  enum cb_status s = CB_OK;
  if (!cache || !cb_session_kept_binary(cache, cb_cache_key(&subject), compiled)) {
    s = compile(session, text, is_full, compiled, diag);
    if (!s && cache) cb_session_keep_binary(session, cache, &subject, text, compiled);
  }
  return s;
}

enum cb_status cb_program_binary(const struct cb_shared *shared, const struct cb_text *text, int is_full,
                                 struct cb_compiled *compiled, struct cb_diag *diag) {
  struct cb_cache_options where = {.directory = shared->kept.directory, .limit = shared->kept.limit, .existing = 1};
  struct cb_cache *cache = NULL;
  if (where.directory) cb_cache_open(&cache, &where, NULL);
  const enum cb_status s = cb_solver_binary(shared->session, cache, text, is_full, compiled, diag);
  cb_cache_close(cache);
  return s;
}

/* Whether the form is the library's choice. */
static int is_free(const cbgen_solver *solver) {
  return !solver->options.program_form && !solver->options.thread_blocks;
}

static enum cb_status choose_form(const cbgen_solver *solver, const struct cb_program_size *size,
                                  struct cb_program_form *form, struct cb_diag *diag) {
  /* cg in a grid and in a graph, us an iteration: blocks that are read once FE 36^3 (45 MB) 29.3, 33.3, 44^3 (83 MB)
   * 50.9, 44.7, 56^3 111, 79.8; merge FE 28^3 (60 MB) 30.0, 22.9, 7-point 160^3 239, 235. */
  enum { APART = 50 << 20 };
  const char *name = solver->options.program_form;
  const int blocks = solver->options.thread_blocks;
  if (is_free(solver)) {
    cb_program_choose(form, size);
    form->apart = APART;
    return CB_OK;
  }
  if (!cb_program_form_find(form, name ? name : cb_program_form_names[CB_PROGRAM_GRID]))
    return cb_fail(diag, CB_ERR_ARGUMENT,
                   "there is no program form '%.60s'; there are grid, cluster, block and graph, each with '+steps', and all but "
                   "graph with '+resident' and '+pipelined', and grid with '+matrix'", name);
  form->blocks = blocks;
  if (!cb_program_form_exists(form->kind, size->target))
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "program form 'cluster' needs sm_90 or later; this GPU is %s",
                   size->target->arch);
  if (form->kind == CB_PROGRAM_CLUSTER && blocks > CB_PROGRAM_CLUSTER_BLOCKS)
    return cb_fail(diag, CB_ERR_LIMIT, "a cluster has at most %d thread blocks; %d are asked for",
                   CB_PROGRAM_CLUSTER_BLOCKS, blocks);
  if (form->kind == CB_PROGRAM_BLOCK && blocks > 1)
    return cb_fail(diag, CB_ERR_LIMIT, "program form 'block' has 1 thread block; %d are asked for", blocks);
  cb_program_complete(form, size);
  return CB_OK;
}

static struct cb_program_sizes sizes_of(const cbgen_solver *solver) {
  return (struct cb_program_sizes){solver->options.restart, solver->options.block_size};
}

/* Text and binary; with fewer threads to a thread block if a thread lacks registers, or fewer thread blocks where the
 * text divides shared memory among them. */
static enum cb_status find_fitting(cbgen_solver *solver, const struct cb_program *program, const struct cb_image *image,
                                   struct cb_program_form *form, struct cb_program_shape *shape,
                                   struct cb_compiled *compiled, struct cb_diag *diag) {
  enum {
    HALF = 512, /* threads: where a multiprocessor has more registers for each than fewer of them could use */
    FEW = 32    /* bytes that a thread may spill: of what its beginning and end use */
  };
  for (;;) {
    const struct cb_program_sizes sizes = sizes_of(solver);
    enum cb_status s = cb_solver_text(&solver->source, image, program, form, &sizes, shape, diag);
    const int groups = shape->threads / image->launches[0].threads;
    const int divides = form->kind == CB_PROGRAM_GRID && form->resident && shape->each > 1;
    const int is_full = divides || shape->holds || (groups > 1 && shape->threads > HALF);
    if (!s) s = cb_program_binary(solver->op->shared, &solver->source, is_full, compiled, diag);
    if (s || !compiled->spilled_bytes || !is_full) return s;
    if (shape->holds && compiled->spilled_bytes <= FEW) return CB_OK;
    if (shape->holds) return cb_fail(diag, CB_ERR_LIMIT, "a thread lacks registers for its part of the matrix");
    if (divides) form->each = shape->each - 1;
    else form->groups = groups - 1;
    cb_compiled_release(compiled);
    cb_text_release(&solver->source);
    *compiled = (struct cb_compiled){0};
  }
}

static enum cb_status build_form(cbgen_solver *solver, const struct cb_image *image, struct cb_program_form form,
                                 struct cb_diag *diag) {
  const struct cb_shared *shared = solver->op->shared;
  struct cb_compiled compiled = {0};
  struct cb_program_shape shape = {0};
  const struct cb_program *program;
  enum cb_status s = cb_program_in_form(&program, solver->program, &form, diag);
  if (!s && program->is_real && cb_type_is_complex(cb_operator_info(solver->op->op)->vector_type))
    s = cb_fail(diag, CB_ERR_UNSUPPORTED, "method '%s' with '+pipelined' is for real numbers: choose another program form",
                program->name);
  if (!s) s = find_fitting(solver, program, image, &form, &shape, &compiled, diag);
  if (!s && form.resident && form.kind != CB_PROGRAM_GRID && compiled.spilled_bytes && is_free(solver))
    s = cb_fail(diag, CB_ERR_LIMIT, "a thread lacks registers for vectors in shared memory");
  const struct cb_solver_parts parts = {.device = shared->session->device,
                                        .op = solver->op->op,
                                        .image = image,
                                        .program = program,
                                        .sizes = sizes_of(solver),
                                        .cubin = compiled.cubin,
                                        .form = form,
                                        .shape = shape};
  if (!s) s = cb_solver_load(&solver->solver, &parts, diag);
  if (!s) cb_program_form_print(solver->form, &form);
  cb_compiled_release(&compiled);
  return s;
}

/* Each form, and before it the same with the matrix in shared memory, if that is predicted to pay. Returns how many
 * there are then. */
enum { MOST_PLAIN = 2 * (CB_PROGRAM_RESIDENT + 1), MOST_TRIED = 2 * MOST_PLAIN };
static int with_matrices(struct cb_program_form forms[MOST_PLAIN], const struct cb_program_form *plain, int plain_count,
                         const struct cb_program_size *size) {
  int count = 0;
  for (int i = 0; i < plain_count; i++) {
    if (cb_program_matrix_pays(&plain[i], size)) {
      forms[count] = plain[i];
      forms[count++].near = 1;
    }
    forms[count++] = plain[i];
  }
  return count;
}

/* What is tried, the fastest by prediction first, and what can be in any case last: with vectors or the matrix in
 * shared memory, if that is predicted to pay, and with fewer meetings. Returns how many there are. */
static int forms_to_try(const cbgen_solver *solver, const struct cb_program_form *form,
                        const struct cb_program_size *size, struct cb_program_form tried[MOST_TRIED]) {
  struct cb_program_form plain[CB_PROGRAM_RESIDENT + 1], forms[MOST_PLAIN] = {*form};
  int plain_count = is_free(solver) ? cb_program_try_resident(plain, form, size) : 0, count = 0;
  plain[plain_count++] = *form;
  const int forms_count = is_free(solver) ? with_matrices(forms, plain, plain_count, size) : 1;
  for (int pipelined = is_free(solver) && solver->program->pipelined; pipelined >= 0; pipelined--)
    for (int i = 0; i < forms_count; i++) {
      if (pipelined && !cb_program_pipelining_pays(forms[i].kind, size)) continue;
      tried[count] = forms[i];
      tried[count++].pipelined |= pipelined;
    }
  return count;
}

static enum cb_status build(cbgen_solver *solver, const struct cb_image *image, struct cb_diag *diag) {
  const struct cb_target *target = &solver->op->shared->session->device->target;
  const struct cb_program_size size = cb_solver_size(image, solver->program, target);
  struct cb_program_form form, tried[MOST_TRIED];
  enum cb_status s = choose_form(solver, &size, &form, diag);
  if (s) return s;
  const int count = forms_to_try(solver, &form, &size, tried);
  for (int i = 0; i < count; i++) {
    s = build_form(solver, image, tried[i], diag);
    if (i + 1 == count || (s != CB_ERR_LIMIT && s != CB_ERR_UNSUPPORTED)) break;
    diag->message[0] = 0;
    cb_text_release(&solver->source);
  }
  return s;
}

/* ---- several kernels */

enum cb_status cb_stages_binary(const struct cb_shared *shared, const struct cb_text *text,
                                struct cb_compiled *compiled, struct cb_diag *diag) {
  struct cb_binaries *binaries = NULL;
  if (!cb_binaries_find(&binaries, shared->session->device->target.arch, NULL)) {
    const struct cb_hash key = cb_binaries_key(text->bytes, text->length);
    const enum cb_status s = cb_binaries_get(binaries, key, &compiled->cubin, &compiled->cubin_bytes, NULL);
    cb_binaries_close(binaries);
    if (!s) return CB_OK;
  }
  return cb_program_binary(shared, text, 1, compiled, diag);
}

static const struct cb_program *program_in_stages(const cbgen_solver *solver) {
  return solver->program->staged ? solver->program->staged : solver->program;
}

/* What runs. */
static const struct cb_program *program_of(const cbgen_solver *solver) {
  return solver->staged ? program_in_stages(solver) : solver->program;
}

static struct cb_staged_parts staged_parts(const cbgen_solver *solver) {
  const cbgen_solver_options *options = &solver->options;
  const struct cb_operator_info *info = cb_operator_info(solver->op->op);
  return (struct cb_staged_parts){
      .device = solver->op->shared->session->device,
      .op = solver->op->op,
      .program = program_in_stages(solver),
      .plan = &solver->plan,
      .vector = info->vector_type,
      .sum = info->sum_type,
      .most = options->max_iterations,
      .given = (cb_device_ptr)(uintptr_t)(options->blocks ? options->blocks : options->diagonal),
      .precondition = options->precondition,
      .user = options->precondition_user,
      .progress = options->progress,
      .progress_user = options->progress_user};
}

static enum cb_status build_staged(cbgen_solver *solver, struct cb_diag *diag) {
  const struct cb_operator_info *info = cb_operator_info(solver->op->op);
  const struct cb_program_sizes sizes = sizes_of(solver);
  struct cb_compiled compiled = {0};
  if (solver->options.thread_blocks)
    return cb_fail(diag, CB_ERR_ARGUMENT, "program form 'graph' takes no 'thread_blocks'");
  cb_text_release(&solver->source);
  struct cb_staged_parts parts = staged_parts(solver);
  enum cb_status s = cb_stages_text(&solver->source, &solver->plan, parts.program, info->vector_type, info->sum_type,
                                    &sizes, diag);
  if (!s) s = cb_stages_binary(solver->op->shared, &solver->source, &compiled, diag);
  parts.cubin = compiled.cubin;
  if (!s) cb_stages_fuse(parts.fused, solver->op, NULL, parts.program, &solver->plan);
  if (!s) s = cb_staged_load(&solver->staged, &parts, diag);
  cb_compiled_release(&compiled);
  return s;
}

/* ---- one kernel */

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

/* Several kernels where they are asked for; and where one cannot be made, if it is not. */
static enum cb_status build_some(cbgen_solver *solver, struct cb_diag *diag) {
  const cbgen_solver_options *options = &solver->options;
  struct cb_program_form form;
  const int is_named = options->program_form && cb_program_form_find(&form, options->program_form);
  struct cb_diag other = {0};
  if (is_named && form.kind == CB_PROGRAM_GRAPH) return build_staged(solver, diag);
  const char *needs = options->precondition ? "a preconditioner of the caller's" : "'progress'";
  const int is_staged = options->precondition || options->progress;
  if (is_staged && is_named)
    return cb_fail(diag, CB_ERR_ARGUMENT, "%s needs program form 'graph', not '%.20s'", needs, options->program_form);
  if (is_staged && !options->program_form) return build_staged(solver, diag);
  const enum cb_status s = build_special(solver, diag);
  const int may_be_staged = s == CB_ERR_UNSUPPORTED || s == CB_ERR_MISSING;
  if (!may_be_staged || options->program_form || options->thread_blocks) return s;
  return build_staged(solver, &other) ? s : CB_OK;
}

/* ---- in a race of recipes */

enum cb_status cb_solver_check_method(const char *method, struct cb_diag *diag) {
  return cb_program_find(method, CB_PLAIN) ? CB_OK : fail_method(method, diag);
}

/* Seconds of a solution of `most` iterations, of which it has *iterations. */
static enum cb_status time_solution(double *seconds, int *iterations, cbgen_solver *solver,
                                    const struct cb_tune_whole *whole, int most, struct cb_diag *diag) {
  const struct cb_device *device = solver->op->shared->session->device;
  const struct cb_operator_info *info = cb_operator_info(solver->op->op);
  cbgen_outcome outcome;
  solver->options.max_iterations = most;
  enum cb_status s = cb_device_fill(device, whole->x, 0, (size_t)info->rows * cb_type_size(info->vector_type), diag);
  if (!s) s = cb_device_wait(device, "timing a solver", diag);
  if (s) return s;
  const double start = cb_seconds();
  s = (enum cb_status)cbgen_solve(solver, (void *)(uintptr_t)whole->b, (void *)(uintptr_t)whole->x, whole->stream);
  if (!s) s = (enum cb_status)cbgen_solver_outcome(solver, &outcome);
  *seconds = cb_seconds() - start;
  if (s) return cb_fail(diag, s, "%s", solver->diag.message);
  *iterations = outcome.iterations;
  return CB_OK;
}

static enum cb_status time_solutions(double *us, cbgen_solver *solver, const struct cb_tune_whole *whole,
                                     struct cb_diag *diag) {
  enum { SOLUTIONS = 5, MOST = 60, LEAST = 20 }; /* iterations: what begins and ends one shall not be most of it */
  double seconds[SOLUTIONS + 1];
  int iterations = 0;
  for (int i = 0; i <= SOLUTIONS; i++) {
    const enum cb_status s = time_solution(&seconds[i], &iterations, solver, whole, MOST, diag);
    if (s) return s;
  }
  if (iterations < LEAST)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "%d iterations are too few to time them", iterations);
  *us = 1e6 * cb_median(seconds + 1, SOLUTIONS) / iterations;
  return CB_OK;
}

enum cb_status cb_solver_time(double *us, const char *method, const struct cb_tune_whole *whole,
                              struct cb_session *session, const struct cb_kept_at *kept, struct cb_diag *diag) {
  struct cb_shared shared = {.session = session, .image = *whole->image, .kept = *kept};
  cbgen_operator op = {.shared = &shared, .op = whole->op};
  cbgen_solver solver = {.op = &op,
                         .options = {.absolute_tolerance = 1e-300, .diagonal = (void *)(uintptr_t)whole->ones}};
  const struct cb_operator_info *info = cb_operator_info(whole->op);
  pthread_mutex_init(&shared.texts, NULL);
  solver.program = cb_program_find(method, CB_DIAGONAL);
  if (!solver.program) {
    solver.program = cb_program_find(method, CB_PLAIN);
    solver.options.diagonal = NULL;
  }
  set_usual(&solver.options, info);
  enum cb_status s = solver.program ? check_operator(info, diag) : fail_method(method, diag);
  if (!s) s = build_some(&solver, diag);
  if (!s) s = time_solutions(us, &solver, whole, diag);
  cb_solver_free(solver.solver);
  cb_staged_free(solver.staged);
  cb_text_release(&solver.source);
  pthread_mutex_destroy(&shared.texts);
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
  if (!s) s = build_some(solver, &diag);
  if (s) cbgen_solver_free(solver);
  else *out = solver;
  return cb_operator_report(op, s, &diag);
}

/* What a clone is asked for; what its kernel was made for stays. */
static enum cb_status take_clone_options(cbgen_solver *clone, const cbgen_solver *solver,
                                         const cbgen_solver_options *asked, struct cb_diag *diag) {
  const cbgen_solver_options *made = &solver->options;
  clone->program = solver->program;
  clone->options = *made;
  clone->options.outcome = NULL;
  clone->options.history = NULL;
  if (!asked) return CB_OK;
  const enum cb_status s = take_options(clone, solver->program->name, asked, diag);
  const cbgen_solver_options *options = &clone->options;
  if (s) return s;
  if (clone->program != solver->program || !options->precondition != !made->precondition ||
      !options->progress != !made->progress ||
      options->restart != made->restart ||
      options->block_size != made->block_size ||
      (options->thread_blocks && options->thread_blocks != made->thread_blocks))
    return cb_fail(diag, CB_ERR_ARGUMENT,
                   "a clone has the solver's kernel: 'thread_blocks', 'restart', and whether there is a diagonal or 'progress', are its");
  return CB_OK;
}

static enum cb_status clone_into(cbgen_solver *clone, const cbgen_solver *solver, const cbgen_solver_options *options,
                                 struct cb_diag *diag) {
  enum cb_status s = (enum cb_status)cbgen_operator_clone(solver->op, &clone->op);
  if (s) return cb_fail(diag, s, "%s", cbgen_operator_message(solver->op));
  s = take_clone_options(clone, solver, options, diag);
  cb_text_add_bytes(&clone->source, solver->source.bytes, solver->source.length);
  if (!s && clone->source.failed) s = cb_fail_memory(diag, "a solver's text", solver->source.length);
  if (s) return s;
  if (solver->staged) {
    clone->plan = solver->plan;
    const struct cb_staged_parts parts = staged_parts(clone);
    return cb_staged_clone(&clone->staged, solver->staged, &parts, diag);
  }
  memcpy(clone->form, solver->form, sizeof clone->form);
  return cb_solver_clone(&clone->solver, solver->solver, clone->op->op, diag);
}

cbgen_status cbgen_solver_clone(cbgen_solver *solver, const cbgen_solver_options *options, cbgen_solver **out) {
  CB_STANDARD_NUMERICS;
  if (out) *out = NULL;
  if (!solver) return CBGEN_ERROR_ARGUMENT;
  if (!out) return (cbgen_status)cb_fail(&solver->diag, CB_ERR_ARGUMENT, "no place for the clone was given");
  cbgen_solver *clone = cb_calloc(1, sizeof *clone);
  if (!clone) return (cbgen_status)cb_fail_memory(&solver->diag, "a solver", sizeof *clone);
  const enum cb_status s = clone_into(clone, solver, options, &solver->diag);
  if (s) cbgen_solver_free(clone);
  else *out = clone;
  return (cbgen_status)s;
}

void cbgen_solver_free(cbgen_solver *solver) {
  if (!solver) return;
  cb_solver_free(solver->solver);
  cb_staged_free(solver->staged);
  cbgen_operator_free(solver->op);
  cb_text_release(&solver->source);
  cb_free(solver);
}

const char *cbgen_solver_message(const cbgen_solver *solver) { return solver ? solver->diag.message : ""; }

const char *cbgen_solver_form(const cbgen_solver *solver) {
  if (!solver) return "";
  if (solver->staged) return cb_staged_is_graph(solver->staged) ? "graph" : "host";
  return solver->form;
}

const char *cbgen_solver_source(const cbgen_solver *solver, size_t *length) {
  if (length) *length = solver ? solver->source.length : 0;
  return solver ? cb_text_string(&solver->source) : "";
}

/* ---- solving */

static enum cb_status check_vectors(const cbgen_solver *solver, const void *b, const void *x, struct cb_diag *diag) {
  const size_t size = cb_type_size(cb_operator_info(solver->op->op)->vector_type);
  const int needs_b = strcmp(solver->program->name, "power") != 0;
  if ((!b && needs_b) || !x) return cb_fail(diag, CB_ERR_ARGUMENT, "'b' or 'x' of the solution is NULL");
  if (b == x) return cb_fail(diag, CB_ERR_ARGUMENT, "'b' and 'x' of the solution are the same");
  if (((uintptr_t)b | (uintptr_t)x) % size)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'b' or 'x' of the solution is not aligned to its elements");
  return CB_OK;
}

/* With the context current, if it is not already. */
static enum cb_status run(cbgen_solver *solver, const struct cb_solve *solve, struct cb_diag *diag) {
  const struct cb_device *device = solver->op->shared->session->device;
  int entered;
  enum cb_status s = cb_device_enter_once(device, &entered, diag);
  if (s) return s;
  s = solver->staged ? cb_staged_run(solver->staged, solve, diag) : cb_solver_run(solver->solver, solve, diag);
  if (entered) cb_device_leave(device);
  return s;
}

/* What the program's parameters are called, and where they stand. */
static void take_parameters(double *numbers, const cbgen_solver *solver) {
  const cbgen_solver_options *options = &solver->options;
  const struct {
    const char *name;
    double number;
  } known[] = {{"relative", options->relative_tolerance}, {"absolute", options->absolute_tolerance},
               {"weight", options->weight},               {"damping", options->damping},
               {"lowest", options->lowest},               {"highest", options->highest},
               {"restart", options->restart}};
  const char *const *parameters = program_of(solver)->parameters;
  for (int i = 0; parameters[i]; i++)
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
      if (!strcmp(known[k].name, parameters[i])) numbers[i] = known[k].number;
}

cbgen_status cbgen_solve(cbgen_solver *solver, const void *b, void *x, void *stream) {
  CB_RANGE("cbgen: solve");
  if (!solver) return CBGEN_ERROR_ARGUMENT;
  const cbgen_solver_options *options = &solver->options;
  struct cb_solve solve = {
      .given = {(cb_device_ptr)(uintptr_t)b, (cb_device_ptr)(uintptr_t)x,
                (cb_device_ptr)(uintptr_t)(options->blocks ? options->blocks : options->diagonal)},
      .most = options->max_iterations,
      .outcome = (cb_device_ptr)(uintptr_t)options->outcome,
      .history = (cb_device_ptr)(uintptr_t)options->history,
      .stream = stream};
  take_parameters(solve.parameters, solver);
  enum cb_status s = check_vectors(solver, b, x, &solver->diag);
  if (!s) s = run(solver, &solve, &solver->diag);
  if (s) return (cbgen_status)s;
  solver->stream = stream;
  solver->has_solved = 1;
  return CBGEN_OK;
}

/* That of one kernel is there when the kernel has ended, unless the caller has it. */
static enum cb_status fetch(const cbgen_solver *solver, cbgen_outcome *outcome, struct cb_diag *diag) {
  const struct cb_device *device = solver->op->shared->session->device;
  const struct cb_driver *driver = device->driver;
  const int is_here = solver->solver && !solver->options.outcome;
  const cb_device_ptr there = solver->options.outcome ? (cb_device_ptr)(uintptr_t)solver->options.outcome
                              : is_here               ? 0
                                                      : cb_staged_outcome(solver->staged);
  int entered;
  enum cb_status s = cb_device_enter_once(device, &entered, diag);
  if (s) return s;
  s = cb_driver_check(driver, driver->call.stream_synchronize(solver->stream), diag, "wait for a solution");
  if (!s && is_here) memcpy(outcome, cb_solver_outcome(solver->solver), sizeof *outcome);
  else if (!s) s = cb_device_download(device, outcome, there, sizeof *outcome, "an outcome", diag);
  if (entered) cb_device_leave(device);
  return s;
}

cbgen_status cbgen_solver_outcome(cbgen_solver *solver, cbgen_outcome *outcome) {
  if (!solver) return CBGEN_ERROR_ARGUMENT;
  if (!outcome)
    return (cbgen_status)cb_fail(&solver->diag, CB_ERR_ARGUMENT, "no place for the outcome was given");
  *outcome = (cbgen_outcome){0};
  return solver->has_solved ? (cbgen_status)fetch(solver, outcome, &solver->diag) : CBGEN_OK;
}
