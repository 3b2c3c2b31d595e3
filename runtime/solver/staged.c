// SPDX-License-Identifier: Apache-2.0
/* Loading and running stages: see staged.h. */
#include "runtime/solver/staged.h"

#include "base/embedded.h"
#include "base/environment.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/real.h"
#include "runtime/solver/solver.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { MOST_VECTORS = CB_MOST_GIVEN + CB_MOST_WORK + 3, ALIGN = 256, B = 0, X = 1 };

/* What clones share; the last one gives it back. */
struct shared {
  atomic_int handles;
  struct CUmod_st *module, *condition_module; /* the second NULL: there are no conditional nodes */
  struct CUfunc_st *begin, *stages[CB_MOST_STAGES], *condition, *condition_again;
  struct cb_stages_plan plan;
  struct cb_fused *fused[CB_MOST_FUSIONS];
  struct cb_slabs *slabs; /* of the plan's group */
  int group;
};

struct cb_staged {
  const struct cb_device *device;
  const struct cb_operator *op, *transposed;
  const struct cb_program *program;
  struct shared *shared;
  struct CUgraphExec_st *exec; /* all but the first launch; NULL: the host repeats the body */
  cb_preconditioner precondition;
  void *user;
  cb_progress progress;
  void *progress_user;
  enum cb_type sum;
  int blocks, most;
  int overlaps; /* kernels, all of which are the library's, may start while those before them are ending, for whose
                 * results they wait themselves */
  int64_t rows, columns;
  size_t element;
  cb_device_ptr memory;
  cb_device_ptr vectors[MOST_VECTORS]; /* the kernels' struct Pointers, the board at its end */
  cb_device_ptr given, states, slabs, outcome;
  int given_count, vectors_count;
  struct cb_solver_info info;
};

static int64_t padded(int64_t bytes) { return cb_divide_up(bytes, (int64_t)ALIGN) * ALIGN; }

/* ---- kernels */

static enum cb_status find(const struct cb_staged *staged, struct CUmod_st *module, const char *name,
                           struct CUfunc_st **function, struct cb_diag *diag) {
  return cb_driver_find_kernel(staged->device->driver, function, module, name, diag);
}

static enum cb_status load_module(const struct cb_staged *staged, struct CUmod_st **module, const void *image,
                                  struct cb_diag *diag) {
  const struct cb_driver *driver = staged->device->driver;
  const enum cb_status s =
      cb_driver_check(driver, driver->call.module_load(module, image), diag, "load a solver's kernels");
  if (s) *module = NULL;
  return s;
}

static int stages_of(const struct cb_stages_plan *plan) {
  int count = 0;
  for (int i = 0; i < plan->begin + plan->body + plan->end; i++) count += plan->acts[i].kind == CB_ACT_STAGE;
  return count;
}

/* PTX, which the driver compiles, if it has its compiler at hand: else there are no graphs. */
static void load_condition(const struct cb_staged *staged) {
  struct shared *shared = staged->shared;
  const char *text = cb_embedded_find("templates/condition.ptx.in")->text;
  if (load_module(staged, &shared->condition_module, text, NULL)) return;
  if (find(staged, shared->condition_module, "cbgen_condition", &shared->condition, NULL) ||
      find(staged, shared->condition_module, "cbgen_condition_again", &shared->condition_again, NULL))
    shared->condition = NULL;
}

/* Whether there shall be conditional nodes: in their bodies compute-sanitizer (2025.3.1) reports errors of its own, or
 * fails. */
static int has_conditions(const struct cb_staged *staged) {
  return cb_driver_has_conditions(staged->device->driver) && !cb_environment("CBGEN_DEBUG");
}

static enum cb_status load_kernels(struct cb_staged *staged, const void *cubin, struct cb_diag *diag) {
  struct shared *shared = staged->shared;
  const int stages = stages_of(&shared->plan);
  enum cb_status s = load_module(staged, &shared->module, cubin, diag);
  if (!s) s = find(staged, shared->module, CB_STAGE_BEGIN, &shared->begin, diag);
  for (int i = 0; i < stages && !s; i++) {
    char name[40];
    snprintf(name, sizeof name, CB_STAGE_KERNEL "%d", i);
    s = find(staged, shared->module, name, &shared->stages[i], diag);
    if (!s)
      s = cb_driver_note_registers(staged->device->driver, &staged->info.registers, &staged->info.local_bytes,
                                   shared->stages[i], name, diag);
  }
  if (!s && has_conditions(staged)) load_condition(staged);
  return s;
}

/* ---- memory */

/* A vector that is only another's place while that is made in a product. */
static int is_unused(const struct cb_program *program, const char *name) {
  for (int i = 0; i < program->sections_count; i++)
    if (program->sections[i].old && !strcmp(program->sections[i].old, name)) return 1;
  return 0;
}

static int64_t bytes_of(const struct cb_staged *staged, const char *vector) {
  const int64_t entries = cb_program_has_columns(staged->program, vector) ? staged->columns : staged->rows;
  return is_unused(staged->program, vector) ? 0 : padded(entries * (int64_t)staged->element);
}

static int64_t basis_bytes(const struct cb_staged *staged) {
  return padded(staged->shared->plan.basis * cb_program_stride(staged->rows) * (int64_t)staged->element);
}

/* Of all own vectors, among which x is where it is not copied. */
static int64_t own_bytes(const struct cb_staged *staged) {
  const struct cb_program *program = staged->program;
  int64_t bytes = program->copied ? 0 : bytes_of(staged, "x");
  for (const char *const *at = program->work; *at; at++) bytes += bytes_of(staged, *at);
  return bytes;
}

/* One allocation: x and own vectors, the board, what is given, the state's structs, what slabs need, the outcome. */
static enum cb_status allocate(struct cb_staged *staged, cb_device_ptr third, struct cb_diag *diag) {
  const struct cb_program *program = staged->program;
  const struct cb_stages_plan *plan = &staged->shared->plan;
  const int64_t number = 8 * cb_type_parts(staged->sum); /* bytes, at most */
  const int64_t board = padded(number * plan->sums * staged->blocks), given = padded(plan->given_bytes);
  const int64_t states = padded(plan->states * plan->state_bytes);
  const int64_t basis = basis_bytes(staged), small = padded(number * plan->small);
  const int64_t slabs = padded(cb_slabs_bytes(staged->shared->slabs));
  const int64_t bytes = own_bytes(staged) + basis + small + board + given + states + slabs + ALIGN;
  enum cb_status s = cb_device_alloc(staged->device, &staged->memory, (size_t)bytes, "a solver's vectors", diag);
  if (!s) s = cb_device_fill(staged->device, staged->memory, 0, (size_t)bytes, diag);
  if (s) return s;
  cb_device_ptr at = staged->memory;
  int count = staged->given_count = cb_program_count(program->given);
  if (!program->copied) {
    staged->vectors[B] = 0; /* the state has it */
    staged->vectors[X] = at;
    at += (cb_device_ptr)bytes_of(staged, "x");
  }
  if (count > 2) staged->vectors[2] = third;
  for (const char *const *name = program->work; *name; name++) {
    staged->vectors[count++] = is_unused(program, *name) ? 0 : at;
    at += (cb_device_ptr)bytes_of(staged, *name);
  }
  if (program->basis) {
    staged->vectors[count++] = at;
    staged->vectors[count++] = at + (cb_device_ptr)basis;
    at += (cb_device_ptr)(basis + small);
  }
  staged->vectors[count++] = at; /* the board */
  staged->vectors_count = count;
  staged->given = at + (cb_device_ptr)board;
  staged->states = staged->given + (cb_device_ptr)given;
  staged->slabs = staged->states + (cb_device_ptr)states;
  staged->outcome = staged->slabs + (cb_device_ptr)slabs;
  staged->info.device_bytes = bytes;
  return CB_OK;
}

static cb_device_ptr state_at(const struct cb_staged *staged, int number) {
  return staged->states + (cb_device_ptr)(number * staged->shared->plan.state_bytes);
}

/* ---- acts */

static enum cb_status launch(const struct cb_staged *staged, struct CUfunc_st *function, struct CUstream_st *stream,
                             void **parameters, struct cb_diag *diag) {
  const struct cb_driver *driver = staged->device->driver;
  const struct cb_cu_launch config = {
      .grid = {(unsigned)staged->blocks, 1, 1}, .block = {CB_STAGE_THREADS, 1, 1}, .stream = stream};
  return cb_driver_check(driver, cb_driver_launch(driver, function, config, staged->overlaps, parameters), diag,
                         "launch a solver");
}

static enum cb_status do_stage(const struct cb_staged *staged, const struct cb_act *act, struct CUstream_st *stream,
                               struct cb_diag *diag) {
  cb_device_ptr given = staged->given, from = state_at(staged, act->from), to = state_at(staged, act->to);
  int blocks = staged->blocks;
  int64_t rows = staged->rows, columns = staged->columns; /* which programs of square matrices do not take */
  return launch(staged, staged->shared->stages[act->number], stream,
                (void *[]){(void *)staged->vectors, &given, &from, &to, &blocks, &rows, &columns}, diag);
}

static enum cb_status do_product(const struct cb_staged *staged, enum cb_act_product product, cb_device_ptr from,
                                 cb_device_ptr to, struct CUstream_st *stream, struct cb_diag *diag) {
  if (product == CB_WITH_HEADS) return cb_operator_multiply_heads(staged->op, 1, from, 0, to, stream, diag);
  const struct cb_operator *op = product == CB_OF_TRANSPOSED ? staged->transposed : staged->op;
  return cb_operator_multiply(op, 1, from, 0, to, stream, diag);
}

static enum cb_status do_act(const struct cb_staged *staged, const struct cb_act *act, struct CUstream_st *stream,
                             struct cb_diag *diag) {
  if (act->kind == CB_ACT_STAGE) return do_stage(staged, act, stream, diag);
  const cb_device_ptr from = staged->vectors[act->from], to = staged->vectors[act->to];
  if (act->kind == CB_ACT_PRODUCT)
    return do_product(staged, (enum cb_act_product)act->number, from, to, stream, diag);
  if (staged->precondition(staged->user, (const void *)(uintptr_t)from, (void *)(uintptr_t)to, stream))
    return cb_fail(diag, CB_ERR_DEVICE, "the preconditioner failed");
  return CB_OK;
}

/* The plan's fusion of this act, a product, and the stage behind it, if its kernels are there; -1: it is not. */
static int fusion_at(const struct cb_staged *staged, int act) {
  const struct cb_stages_plan *plan = &staged->shared->plan;
  for (int i = 0; i < plan->fusions_count; i++)
    if (plan->fusions[i].act == act && staged->shared->fused[i]) return i;
  return -1;
}

static enum cb_status do_fused(const struct cb_staged *staged, int number, struct CUstream_st *stream,
                               struct cb_diag *diag) {
  const struct cb_stages_plan *plan = &staged->shared->plan;
  const struct cb_act *product = &plan->acts[plan->fusions[number].act], *stage = product + 1;
  const struct cb_operator *op = product->number == CB_OF_TRANSPOSED ? staged->transposed : staged->op;
  const struct cb_fused_call call = {.op = op,
                                     .vectors = staged->vectors,
                                     .given = staged->given,
                                     .from = state_at(staged, stage->from),
                                     .to = state_at(staged, stage->to),
                                     .overlaps = staged->overlaps};
  return cb_fused_launch(staged->shared->fused[number], &call, stream, diag);
}

/* A whole group by one kernel. */
static enum cb_status do_slabs(const struct cb_staged *staged, struct CUstream_st *stream, struct cb_diag *diag) {
  const struct cb_stages_plan *plan = &staged->shared->plan;
  const struct cb_act *acts = &plan->acts[plan->groups[staged->shared->group].first];
  const struct cb_slabs_call call = {.vectors = staged->vectors,
                                     .given = staged->given,
                                     .state = state_at(staged, acts[1].from),
                                     .own = staged->slabs};
  return cb_slabs_launch(staged->shared->slabs, &call, stream, diag);
}

static enum cb_status do_acts(const struct cb_staged *staged, int first, int count, struct CUstream_st *stream,
                              struct cb_diag *diag) {
  const struct cb_stages_plan *plan = &staged->shared->plan;
  enum cb_status s = CB_OK;
  for (int i = first, group = 0, times = 1; i < first + count && !s; i++) {
    while (group < plan->groups_count && plan->groups[group].first + plan->groups[group].count <= i) group++;
    if (staged->shared->slabs && i == plan->groups[staged->shared->group].first) {
      s = do_slabs(staged, stream, diag);
      i += plan->groups[staged->shared->group].count - 1;
      continue;
    }
    const int fusion = fusion_at(staged, i);
    s = fusion >= 0 ? do_fused(staged, fusion, stream, diag) : do_act(staged, &plan->acts[i], stream, diag);
    i += fusion >= 0;
    if (group == plan->groups_count || i + 1 < plan->groups[group].first + plan->groups[group].count) continue;
    if (times++ < plan->groups[group].times) i = plan->groups[group].first - 1;
    else times = 1;
  }
  return s;
}

static int given_vectors(const struct cb_program *program) {
  int count = 0;
  if (!program->copied) return 2; /* b and x */
  while (program->copied[count].vector) count++;
  return count;
}

static enum cb_status do_begin(const struct cb_staged *staged, const struct cb_solve *solve, struct cb_diag *diag) {
  enum { MOST_PARAMETERS = 10 + CB_MOST_GIVEN + CB_MOST_PARAMETERS };
  cb_device_ptr given = staged->given, to = state_at(staged, 0);
  cb_device_ptr history = solve->history, outcome = solve->outcome ? solve->outcome : staged->outcome;
  void *parameters[MOST_PARAMETERS] = {(void *)staged->vectors, &given, &to};
  union cb_solver_number numbers[CB_MOST_PARAMETERS];
  int count = 3, most = solve->most, blocks = staged->blocks;
  int64_t rows = staged->rows, columns = staged->columns;
  for (int i = 0; i < given_vectors(staged->program); i++) parameters[count++] = (void *)&solve->given[i];
  parameters[count++] = &history;
  parameters[count++] = &outcome;
  for (int i = 0; staged->program->parameters[i]; i++) {
    cb_solver_number(&numbers[i], staged->sum, solve->parameters[i]);
    parameters[count++] = &numbers[i];
  }
  parameters[count++] = &most;
  parameters[count++] = &blocks;
  parameters[count++] = &rows;
  parameters[count++] = &columns;
  return launch(staged, staged->shared->begin, solve->stream, parameters, diag);
}

/* ---- graphs */

static enum cb_status launch_condition(const struct cb_staged *staged, struct CUfunc_st *condition, int number,
                                       uint64_t handle, struct CUstream_st *stream, struct cb_diag *diag) {
  const struct cb_driver *driver = staged->device->driver;
  cb_device_ptr at = state_at(staged, staged->shared->plan.turn);
  return cb_driver_check(driver,
                         driver->call.launch(condition, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&handle, &at, &number},
                                             NULL),
                         diag, "launch a solver's condition");
}

/* Whether the body shall be executed (again). */
static enum cb_status do_condition(const struct cb_staged *staged, uint64_t handle,
                                   struct CUstream_st *stream, struct cb_diag *diag) {
  return launch_condition(staged, staged->shared->condition, staged->shared->plan.done, handle, stream, diag);
}

/* Whether the body's own one shall be. */
static enum cb_status do_condition_again(const struct cb_staged *staged, uint64_t handle, struct CUstream_st *stream,
                                         struct cb_diag *diag) {
  return launch_condition(staged, staged->shared->condition_again, staged->shared->plan.again, handle, stream, diag);
}

/* What puts something on a stream under capture. `handle`: of the loop that it is the body of. */
typedef enum cb_status filler(const struct cb_staged *staged, uint64_t handle, struct CUstream_st *stream,
                              struct cb_diag *diag);

/* Adds that to `graph`. */
static enum cb_status capture(const struct cb_staged *staged, struct CUgraph_st *graph, filler *fill, uint64_t handle,
                              struct cb_diag *diag) {
  const struct cb_driver *driver = staged->device->driver;
  struct CUstream_st *stream;
  struct CUgraph_st *captured = NULL;
  enum cb_status s = cb_driver_check(driver, driver->call.stream_create(&stream, CB_CU_STREAM_NON_BLOCKING), diag,
                                     "make a stream to capture");
  if (s) return s;
  s = cb_driver_check(driver, driver->call.capture_begin(stream, graph, NULL, NULL, 0, CB_CU_CAPTURE_OF_THREAD), diag,
                      "capture a solver");
  if (!s) {
    s = fill(staged, handle, stream, diag);
    const enum cb_status ended =
        cb_driver_check(driver, driver->call.capture_end(stream, &captured), s ? NULL : diag, "capture a solver");
    if (!s) s = ended;
  }
  driver->call.stream_destroy(stream);
  return s;
}

/* A node behind what the stream has captured, whose body repeats. */
static enum cb_status add_loop(const struct cb_staged *staged, struct CUgraph_st *graph, uint64_t handle, filler *body,
                               struct CUstream_st *stream, struct cb_diag *diag) {
  const struct cb_driver *driver = staged->device->driver;
  struct CUgraphNode_st *const *dependencies = NULL;
  const struct CUgraphEdgeData_st *edges = NULL;
  struct CUgraphNode_st *node = NULL;
  struct cb_cu_node loop = {.type = CB_CU_NODE_CONDITIONAL};
  unsigned status;
  size_t count = 0;
  loop.value.conditional.handle = handle;
  loop.value.conditional.type = CB_CU_WHILE;
  loop.value.conditional.size = 1;
  loop.value.conditional.context = staged->device->context;
  enum cb_status s = cb_driver_check(
      driver, driver->call.capture_info(stream, &status, NULL, NULL, &dependencies, &edges, &count), diag,
      "ask what a stream has captured");
  if (!s)
    s = cb_driver_check(driver, driver->call.graph_add(&node, graph, dependencies, edges, count, &loop), diag,
                        "add a loop to a graph");
  if (!s)
    s = cb_driver_check(driver, driver->call.capture_update(stream, &node, NULL, 1, CB_CU_SET_DEPENDENCIES), diag,
                        "go on behind a loop");
  return s ? s : capture(staged, loop.value.conditional.graphs[0], body, handle, diag);
}

/* The same in the graph that the stream is captured in, with its condition before it. */
static enum cb_status repeat(const struct cb_staged *staged, filler *condition, filler *body,
                             struct CUstream_st *stream, struct cb_diag *diag) {
  const struct cb_driver *driver = staged->device->driver;
  struct CUgraph_st *graph = NULL;
  uint64_t handle = 0;
  unsigned status = 0;
  enum cb_status s =
      cb_driver_check(driver, driver->call.capture_info(stream, &status, NULL, &graph, NULL, NULL, NULL), diag,
                      "ask for a captured graph");
  if (!s)
    s = cb_driver_check(driver,
                        driver->call.graph_handle(&handle, graph, staged->device->context, 1, CB_CU_ASSIGN_DEFAULT),
                        diag, "make a graph's condition");
  if (!s) s = condition(staged, handle, stream, diag);
  return s ? s : add_loop(staged, graph, handle, body, stream, diag);
}

static enum cb_status fill_inner(const struct cb_staged *staged, uint64_t handle, struct CUstream_st *stream,
                                 struct cb_diag *diag) {
  const struct cb_stages_plan *plan = &staged->shared->plan;
  const enum cb_status s = do_acts(staged, plan->begin, plan->inner, stream, diag);
  return s ? s : do_condition_again(staged, handle, stream, diag);
}

/* How often a turn of the loop executes the body. A turn takes some 5 us, but behind the end of a solution products are
 * executed in vain: cg 7-point 60^3 takes 18.7 us an iteration by turns of one, 16.6, 15.1 and 14.7 by 2, 4 and 8, and
 * 7.5 for each body in vain; 160^3 202, 198 and 196 by 1, 2 and 4, and 70. So these numbers are the best of solutions
 * of about 40 iterations. Where few iterations are allowed, turns are equal. */
static int bodies_of(const struct cb_staged *staged) {
  const int64_t bytes = cb_operator_info(staged->op)->stored_bytes;
  const int64_t usual = bytes < 32 << 20 ? 8 : bytes < 128 << 20 ? 4 : bytes < 512 << 20 ? 2 : 1;
  if (!staged->shared->plan.may_repeat) return 1;
  if (!staged->most) return (int)usual;
  return (int)cb_divide_up((int64_t)staged->most, cb_divide_up((int64_t)staged->most, usual));
}

static enum cb_status fill_body(const struct cb_staged *staged, uint64_t handle, struct CUstream_st *stream,
                                struct cb_diag *diag) {
  const struct cb_stages_plan *plan = &staged->shared->plan;
  enum cb_status s = plan->inner ? repeat(staged, do_condition_again, fill_inner, stream, diag) : CB_OK;
  for (int i = bodies_of(staged); i > 0 && !s; i--)
    s = do_acts(staged, plan->begin + plan->inner, plan->body - plan->inner, stream, diag);
  return s ? s : do_condition(staged, handle, stream, diag);
}

/* All acts, on a stream under capture, behind the beginning's launch. */
static enum cb_status fill_whole(const struct cb_staged *staged, uint64_t unused, struct CUstream_st *stream,
                                 struct cb_diag *diag) {
  const struct cb_stages_plan *plan = &staged->shared->plan;
  (void)unused;
  enum cb_status s = do_acts(staged, 0, plan->begin, stream, diag);
  if (!s) s = repeat(staged, do_condition, fill_body, stream, diag);
  return s ? s : do_acts(staged, plan->begin + plan->body, plan->end, stream, diag);
}

static enum cb_status build_graph(struct cb_staged *staged, struct cb_diag *diag) {
  const struct cb_driver *driver = staged->device->driver;
  struct CUgraph_st *graph = NULL;
  enum cb_status s = cb_driver_check(driver, driver->call.graph_create(&graph, 0), diag, "make a graph");
  if (s) return s;
  s = capture(staged, graph, fill_whole, 0, diag);
  if (!s)
    s = cb_driver_check(driver, driver->call.graph_instantiate(&staged->exec, graph, 0), diag, "instantiate a graph");
  if (s) staged->exec = NULL;
  driver->call.graph_destroy(graph);
  return s;
}

static void end_overlaps(struct cb_staged *staged, const struct cb_staged_parts *parts) {
  staged->overlaps = 0;
  cb_operator_set_apart(parts->op);
  if (parts->transposed) cb_operator_set_apart(parts->transposed);
}

/* A driver may not let kernels overlap in the body of a conditional node. Where there can be no graph, be it that the
 * caller's preconditioner cannot be captured, or that he is told of the progress, the host repeats the body. */
static enum cb_status prepare(struct cb_staged *staged, const struct cb_staged_parts *parts, struct cb_diag *diag) {
  struct cb_diag own = {0};
  const int has_graph = staged->shared->condition && !staged->progress;
  enum cb_status s = has_graph ? build_graph(staged, &own) : CB_OK;
  if (s && s != CB_ERR_MEMORY && staged->overlaps) {
    end_overlaps(staged, parts);
    s = build_graph(staged, &own);
  }
  return s == CB_ERR_MEMORY ? cb_fail(diag, s, "%s", own.message) : CB_OK;
}

/* ---- life */

static enum cb_status make(struct cb_staged *staged, const struct cb_staged_parts *parts, const void *cubin,
                           struct cb_diag *diag) {
  const struct cb_operator_info *info = cb_operator_info(parts->op);
  staged->device = parts->device;
  staged->op = parts->op;
  staged->transposed = parts->transposed;
  staged->program = parts->program;
  staged->precondition = parts->precondition;
  staged->user = parts->user;
  staged->progress = parts->progress;
  staged->progress_user = parts->progress_user;
  staged->sum = parts->sum;
  staged->most = parts->most;
  staged->rows = info->rows;
  staged->columns = info->cols;
  staged->element = cb_type_size(parts->vector);
  const int64_t most = (int64_t)CB_STAGE_BLOCKS * parts->device->target.multiprocessors;
  const int64_t entries = cb_larger(info->rows, info->cols);
  staged->blocks = (int)cb_smaller(most, cb_divide_up(entries, (int64_t)CB_STAGE_THREADS));
  staged->info.form = CB_PROGRAM_GRAPH;
  staged->info.blocks = staged->blocks;
  staged->info.threads = CB_STAGE_THREADS;
  staged->overlaps = cb_device_overlaps(parts->device) && !parts->precondition;
  if (!staged->overlaps) end_overlaps(staged, parts);
  enum cb_status s = cb_device_enter(staged->device, diag);
  if (s) return s;
  if (cubin) s = load_kernels(staged, cubin, diag);
  if (!s) s = allocate(staged, parts->given, diag);
  if (!s) s = cb_device_wait(staged->device, "loading a solver", diag);
  if (!s) s = prepare(staged, parts, diag);
  cb_device_leave(staged->device);
  return s;
}

enum cb_status cb_staged_load(struct cb_staged **out, const struct cb_staged_parts *parts, struct cb_diag *diag) {
  struct cb_staged *staged = cb_calloc(1, sizeof *staged);
  *out = NULL;
  if (staged) staged->shared = cb_calloc(1, sizeof *staged->shared);
  if (!staged || !staged->shared) {
    for (int i = 0; i < CB_MOST_FUSIONS; i++) cb_fused_free(parts->fused[i]);
    cb_slabs_free(parts->slabs);
    cb_free(staged);
    return cb_fail_memory(diag, "a solver", sizeof *staged);
  }
  atomic_init(&staged->shared->handles, 1);
  staged->shared->plan = *parts->plan;
  for (int i = 0; i < CB_MOST_FUSIONS; i++) {
    staged->shared->fused[i] = parts->fused[i];
    if (parts->fused[i]) cb_fused_registers(parts->fused[i], &staged->info);
  }
  staged->shared->slabs = parts->slabs;
  staged->shared->group = parts->group;
  if (parts->slabs) cb_slabs_registers(parts->slabs, &staged->info);
  const enum cb_status s = make(staged, parts, parts->cubin, diag);
  if (s) cb_staged_free(staged);
  else *out = staged;
  return s;
}

enum cb_status cb_staged_clone(struct cb_staged **out, const struct cb_staged *staged,
                               const struct cb_staged_parts *parts, struct cb_diag *diag) {
  struct cb_staged *clone = cb_calloc(1, sizeof *clone);
  *out = NULL;
  if (!clone) return cb_fail_memory(diag, "a solver", sizeof *clone);
  clone->shared = staged->shared;
  clone->info = staged->info;
  atomic_fetch_add(&clone->shared->handles, 1);
  const enum cb_status s = make(clone, parts, NULL, diag);
  if (s) cb_staged_free(clone);
  else *out = clone;
  return s;
}

static void unload(const struct cb_driver *driver, struct shared *shared) {
  for (int i = 0; i < CB_MOST_FUSIONS; i++) cb_fused_free(shared->fused[i]);
  cb_slabs_free(shared->slabs);
  if (shared->module) driver->call.module_unload(shared->module);
  if (shared->condition_module) driver->call.module_unload(shared->condition_module);
}

void cb_staged_free(struct cb_staged *staged) {
  if (!staged) return;
  struct shared *shared = staged->shared;
  const int is_last = atomic_fetch_sub(&shared->handles, 1) == 1;
  if (staged->device && !cb_device_enter(staged->device, NULL)) {
    const struct cb_driver *driver = staged->device->driver;
    if (staged->exec) driver->call.graph_exec_destroy(staged->exec);
    cb_device_free(staged->device, staged->memory);
    if (is_last) unload(driver, shared);
    cb_device_leave(staged->device);
  }
  if (is_last) cb_free(shared);
  cb_free(staged);
}

cb_device_ptr cb_staged_outcome(const struct cb_staged *staged) { return staged->outcome; }
int cb_staged_is_graph(const struct cb_staged *staged) { return staged->exec != NULL; }
int cb_staged_has_slabs(const struct cb_staged *staged) { return staged->shared->slabs != NULL; }
struct cb_solver_info cb_staged_info(const struct cb_staged *staged) { return staged->info; }

/* ---- running */

/* What a struct of the state begins with, and the square. */
enum { AT, ITERATIONS, REASON, HEAD };
struct state {
  int32_t head[HEAD];
  double square;
};

static enum cb_status read_state(const struct cb_staged *staged, struct state *state, struct CUstream_st *stream,
                                 struct cb_diag *diag) {
  const struct cb_driver *driver = staged->device->driver;
  double bytes[4];
  enum cb_status s = cb_driver_check(
      driver,
      driver->call.copy_to_host_async(bytes, state_at(staged, staged->shared->plan.turn), sizeof bytes, stream), diag,
      "read a solver's state");
  if (!s) s = cb_driver_check(driver, driver->call.stream_synchronize(stream), diag, "wait for an iteration");
  if (s) return s;
  const size_t aligned = cb_type_size(staged->sum);
  memcpy(state->head, bytes, sizeof state->head);
  state->square = cb_real_get((const char *)bytes + cb_round_up(sizeof state->head, aligned), staged->sum, 0);
  return CB_OK;
}

/* Whether the caller wants the solution to end. */
static int tell(const struct cb_staged *staged, const struct state *state, int *told, cb_device_ptr x) {
  *told = state->head[ITERATIONS];
  return staged->progress && staged->progress(staged->progress_user, *told, sqrt(state->square),
                                              (const void *)(uintptr_t)x);
}

/* The body is left, for a reason of the host's. */
static enum cb_status stop(const struct cb_staged *staged, struct CUstream_st *stream, struct cb_diag *diag) {
  const struct cb_driver *driver = staged->device->driver;
  const cb_device_ptr state = state_at(staged, staged->shared->plan.turn);
  const int32_t at = staged->shared->plan.done, reason = CB_REASON_STOPPED;
  enum cb_status s = cb_driver_check(driver, driver->call.copy_to_device_async(state, &at, sizeof at, stream), diag,
                                     "end a solution");
  if (!s)
    s = cb_driver_check(driver,
                        driver->call.copy_to_device_async(state + REASON * sizeof reason, &reason, sizeof reason,
                                                          stream),
                        diag, "end a solution");
  return s ? s : cb_driver_check(driver, driver->call.stream_synchronize(stream), diag, "end a solution");
}

/* The piece of the body that is next. */
static enum cb_status do_next(const struct cb_staged *staged, int at, struct CUstream_st *stream,
                              struct cb_diag *diag) {
  const struct cb_stages_plan *plan = &staged->shared->plan;
  if (plan->inner && at == plan->again) return do_acts(staged, plan->begin, plan->inner, stream, diag);
  return do_acts(staged, plan->begin + plan->inner, plan->body - plan->inner, stream, diag);
}

/* The host repeats the body until the state says that it is left. */
static enum cb_status run_from_host(const struct cb_staged *staged, cb_device_ptr x, struct CUstream_st *stream,
                                    struct cb_diag *diag) {
  const struct cb_stages_plan *plan = &staged->shared->plan;
  struct state state = {.head = {-1, 0, 0}};
  int told = 0, stops = 0;
  enum cb_status s = do_acts(staged, 0, plan->begin, stream, diag);
  while (!s) {
    s = read_state(staged, &state, stream, diag);
    if (s || state.head[AT] == plan->done) break;
    if (state.head[ITERATIONS] > told) stops = tell(staged, &state, &told, staged->vectors[X]);
    s = stops ? stop(staged, stream, diag) : do_next(staged, state.head[AT], stream, diag);
  }
  if (!s) s = do_acts(staged, plan->begin + plan->body, plan->end, stream, diag);
  if (s || !staged->progress || stops || state.head[ITERATIONS] == told) return s;
  s = cb_driver_check(staged->device->driver, staged->device->driver->call.stream_synchronize(stream), diag,
                      "wait for a solution");
  if (!s) tell(staged, &state, &told, x);
  return s;
}

enum cb_status cb_staged_run(struct cb_staged *staged, const struct cb_solve *solve, struct cb_diag *diag) {
  const struct cb_driver *driver = staged->device->driver;
  unsigned capturing = CB_CU_CAPTURE_NONE;
  enum cb_status s = cb_driver_check(driver, driver->call.stream_capturing(solve->stream, &capturing), diag,
                                     "ask whether the stream is captured");
  if (!s && capturing && !staged->exec)
    return cb_fail(diag, CB_ERR_ARGUMENT,
                   "the stream is captured, but the host drives this solver: its preconditioner cannot be captured, it "
                   "has a 'progress', CBGEN_DEBUG is set, or the driver has no conditional nodes (CUDA 12.4)");
  if (!s) s = do_begin(staged, solve, diag);
  if (s) return s;
  if (capturing) return fill_whole(staged, 0, solve->stream, diag);
  if (!staged->exec) return run_from_host(staged, solve->given[X], solve->stream, diag);
  return cb_driver_check(driver, driver->call.graph_launch(staged->exec, solve->stream), diag, "launch a solver");
}
