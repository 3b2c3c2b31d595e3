// SPDX-License-Identifier: Apache-2.0
/* Loading and running programs: see solver.h. */
#include "runtime/solver/solver.h"

#include "base/integers.h"
#include "base/memory.h"
#include "base/real.h"

#include <stdatomic.h>
#include <string.h>

enum {
  MOST_GROUPS = 256,
  MOST_VECTORS = CB_MOST_GIVEN + CB_MOST_WORK + 1 /* a basis */,
  ALIGN = 256,
  OTHER_POINTERS = 6,
  OTHER_PARAMETERS = 3 + CB_MOST_PARAMETERS
};

/* What clones share; the last one gives it back. */
struct kernel {
  atomic_int handles;
  struct CUmod_st *module;
  cb_device_ptr *pointers; /* the regions' arrays */
};

struct cb_solver {
  const struct cb_device *device;
  const struct cb_program *program;
  struct kernel *kernel;
  struct CUfunc_st *function;
  enum cb_form_kind form;
  unsigned blocks, threads, shared_bytes;
  enum cb_type sum;
  int groups_count;
  int group_starts[MOST_GROUPS + 1]; /* in the kernel's pointers */
  int64_t vector_bytes, basis_bytes;
  cb_device_ptr memory;              /* vectors, board, words of meetings */
  struct cb_program_outcome *outcome; /* pinned memory: the kernel writes it where the host reads it */
  cb_device_ptr vectors[MOST_VECTORS + OTHER_POINTERS]; /* the kernel's struct Pointers; those given are set by a run */
  int given_count, vectors_count;
  struct cb_solver_info info;
};

/* ---- text */

struct cb_program_request cb_solver_request(const struct cb_image *image, const struct cb_program *program,
                                            struct cb_program_launch *launches) {
  for (int i = 0; i < image->launches_count; i++)
    launches[i] = (struct cb_program_launch){image->launches[i].kernel, image->launches[i].blocks,
                                             image->launches[i].threads, image->launches[i].dynamic_shared};
  return (struct cb_program_request){.program = program,
                                     .source = image->source,
                                     .launches = launches,
                                     .launches_count = image->launches_count,
                                     .has_carry = image->carry_sums > 0,
                                     .rows = image->rows,
                                     .vector = image->vector_type,
                                     .sum = image->sum_type};
}

enum cb_status cb_solver_text(struct cb_text *text, const struct cb_image *image, const struct cb_program *program,
                              const struct cb_program_form *form, const struct cb_program_sizes *sizes,
                              struct cb_program_shape *shape, struct cb_diag *diag) {
  struct cb_program_launch *launches = cb_calloc((size_t)image->launches_count + 1, sizeof *launches);
  if (!launches) return cb_fail_memory(diag, "a program", (uint64_t)image->launches_count * sizeof *launches);
  struct cb_program_request request = cb_solver_request(image, program, launches);
  request.form = *form;
  request.stored_bytes = image->stored_bytes;
  request.sizes = *sizes;
  const enum cb_status s = cb_program_text(text, &request, shape, diag);
  cb_free(launches);
  return s;
}

struct cb_program_size cb_solver_size(const struct cb_image *image, const struct cb_program *program,
                                      const struct cb_target *target) {
  struct cb_program_size size = {.target = target,
                                 .threads = image->launches_count ? image->launches[0].threads : 1,
                                 .stored_bytes = image->stored_bytes,
                                 .spared_bytes = cb_program_has_heads(program) ? 4 * image->nnz : 0, /* rests */
                                 .vector_bytes = image->rows * (int64_t)cb_type_size(image->vector_type)};
  for (int i = 0; i < image->launches_count; i++) size.blocks = cb_larger(size.blocks, image->launches[i].blocks);
  return size;
}

/* ---- loading */

int cb_solver_arrays(const struct cb_operator *op, const struct cb_image *image, cb_device_ptr *pointers, int *starts,
                     int most) {
  int count = 0, at = 0;
  for (int l = 0; l < image->launches_count; l++)
    for (int g = 0; g < image->launches[l].groups; g++) {
      const struct cb_image_group *group = &image->groups[image->launches[l].first_group + g];
      if (count == most) return -1;
      starts[count++] = at;
      for (int i = 0; i < group->pointers; i++)
        pointers[at++] = cb_operator_array(op, image->pointers[group->first_pointer + i]);
    }
  return count;
}

static enum cb_status take_groups(struct cb_solver *solver, const struct cb_solver_parts *parts, struct cb_diag *diag) {
  const struct cb_image *image = parts->image;
  solver->kernel->pointers = cb_calloc((size_t)image->pointers_count + 1, sizeof *solver->kernel->pointers);
  if (!solver->kernel->pointers) return cb_fail_memory(diag, "a solver", (uint64_t)image->pointers_count);
  solver->groups_count =
      cb_solver_arrays(parts->op, image, solver->kernel->pointers, solver->group_starts, MOST_GROUPS);
  if (solver->groups_count >= 0) return CB_OK;
  return cb_fail(diag, CB_ERR_LIMIT, "a program's product has more than %d regions", MOST_GROUPS);
}

static enum cb_status find_kernel(struct cb_solver *solver, const void *cubin, struct cb_diag *diag) {
  const struct cb_driver *driver = solver->device->driver;
  const int shared = (int)solver->shared_bytes;
  enum cb_status s = cb_driver_check(driver, driver->call.module_load(&solver->kernel->module, cubin), diag, "load a solver's kernel");
  if (s) {
    solver->kernel->module = NULL;
    return s;
  }
  s = cb_driver_find_kernel(driver, &solver->function, solver->kernel->module, CB_PROGRAM_KERNEL, diag);
  if (!s && shared)
    s = cb_driver_check(driver,
                        driver->call.function_set(solver->function, CB_CU_FUNC_MAX_DYNAMIC_SHARED, shared), diag,
                        "give a solver %d bytes of shared memory", shared);
  if (s) return s;
  return cb_driver_note_registers(driver, &solver->info.registers, &solver->info.local_bytes, solver->function,
                                  CB_PROGRAM_KERNEL, diag);
}

/* Thread blocks of a grid: enough for the product's work, no more than there is room for, all with an equal share. */
static enum cb_status choose_blocks(struct cb_solver *solver, const struct cb_solver_parts *parts,
                                    struct cb_diag *diag) {
  const struct cb_driver *driver = solver->device->driver;
  const struct cb_image *image = parts->image;
  int each = 0;
  const enum cb_status s = cb_driver_check(
      driver, driver->call.occupancy(&each, solver->function, (int)solver->threads, solver->shared_bytes), diag,
      "ask how many thread blocks a multiprocessor holds");
  if (s) return s;
  const int64_t room = (int64_t)each * solver->device->target.multiprocessors;
  const int groups = parts->shape.threads / image->launches[0].threads, wanted = parts->form.blocks;
  int64_t work = parts->shape.has_passes ? cb_divide_up(image->rows, (int64_t)solver->threads) : 1;
  for (int i = 0; i < image->launches_count; i++)
    work = cb_larger(work, cb_divide_up(image->launches[i].blocks, (int64_t)groups));
  if (room < 1 || wanted > room)
    return cb_fail(diag, CB_ERR_LIMIT, "the GPU has room for %lld thread blocks of a solver at once; %d are asked for",
                   (long long)room, wanted ? wanted : 1);
  if (parts->shape.neighbours) work = image->launches[0].blocks;
  const int64_t rounds = cb_divide_up(work, room);
  solver->blocks = (unsigned)(wanted ? wanted : cb_divide_up(work, rounds));
  if ((int)solver->blocks >= parts->shape.least_blocks) return CB_OK;
  return cb_fail(diag, CB_ERR_LIMIT,
                 "what stays on multiprocessors needs %d thread blocks of a solver at once, and the GPU has room for %lld: "
                 "choose a program form without '+resident' and '+matrix'", parts->shape.least_blocks, (long long)room);
}

/* A cluster of more thread blocks than every GPU has room for must be allowed. */
static enum cb_status allow_cluster(const struct cb_solver *solver, struct cb_diag *diag) {
  enum { PORTABLE = 8 };
  const struct cb_driver *driver = solver->device->driver;
  if (solver->form != CB_PROGRAM_CLUSTER || solver->blocks <= PORTABLE) return CB_OK;
  return cb_driver_check(driver,
                         driver->call.function_set(solver->function, CB_CU_FUNC_ANY_CLUSTER_SIZE, 1), diag,
                         "have a cluster of %u thread blocks", solver->blocks);
}

static int64_t padded(int64_t bytes) { return cb_divide_up(bytes, (int64_t)ALIGN) * ALIGN; }

static void note_sizes(struct cb_solver *solver, const struct cb_solver_parts *parts) {
  const struct cb_image *image = parts->image;
  const int64_t size = (int64_t)cb_type_size(image->vector_type);
  solver->vector_bytes = padded(image->rows * size);
  if (solver->program->basis)
    solver->basis_bytes = padded((parts->sizes.restart + 1) * cb_program_stride(image->rows) * size);
}

static enum cb_status allocate_outcome(struct cb_solver *solver, struct cb_diag *diag) {
  const struct cb_driver *driver = solver->device->driver;
  void *pinned = NULL;
  const enum cb_status s = cb_driver_check(driver, driver->call.host_alloc(&pinned, sizeof *solver->outcome, 0), diag,
                                           "allocate %zu bytes of pinned memory", sizeof *solver->outcome);
  if (s) return s;
  solver->outcome = pinned;
  *solver->outcome = (struct cb_program_outcome){0};
  return CB_OK;
}

/* On the device, one allocation: own vectors, the board, and words of meetings. */
static enum cb_status allocate(struct cb_solver *solver, const struct cb_operator *op, struct cb_diag *diag) {
  const int work = cb_program_count(solver->program->work), given = cb_program_count(solver->program->given);
  const int64_t board = padded((int64_t)CB_PROGRAM_BOARD * solver->blocks);
  const int64_t bytes = work * solver->vector_bytes + solver->basis_bytes + board + ALIGN;
  enum cb_status s = cb_device_alloc(solver->device, &solver->memory, (size_t)bytes, "a solver's vectors", diag);
  if (!s) s = cb_device_fill(solver->device, solver->memory, 0, (size_t)bytes, diag);
  if (!s) s = allocate_outcome(solver, diag);
  if (s) return s;
  cb_device_ptr at = solver->memory, *to = solver->vectors + given;
  for (int i = 0; i < work; i++, at += (cb_device_ptr)solver->vector_bytes) *to++ = at;
  if (solver->basis_bytes) *to++ = at;
  at += (cb_device_ptr)solver->basis_bytes;
  *to++ = at;
  at += (cb_device_ptr)board;
  *to++ = at;
  solver->given_count = given;
  solver->vectors_count = given + work + (solver->basis_bytes > 0) + OTHER_POINTERS;
  cb_device_ptr *const carry = &solver->vectors[solver->vectors_count - 2];
  cb_operator_carry(op, &carry[0], &carry[1]);
  solver->info.device_bytes = bytes;
  return CB_OK;
}

static enum cb_status fill(struct cb_solver *solver, const struct cb_solver_parts *parts, struct cb_diag *diag) {
  const struct cb_image *image = parts->image;
  solver->kernel = cb_calloc(1, sizeof *solver->kernel);
  if (!solver->kernel) return cb_fail_memory(diag, "a solver", sizeof *solver->kernel);
  atomic_init(&solver->kernel->handles, 1);
  solver->device = parts->device;
  solver->program = parts->program;
  note_sizes(solver, parts);
  solver->form = parts->form.kind;
  solver->threads = (unsigned)parts->shape.threads;
  solver->blocks = (unsigned)parts->form.blocks;
  solver->sum = image->sum_type;
  solver->shared_bytes = (unsigned)parts->shape.dynamic_shared;
  for (int i = 0; i < image->launches_count; i++)
    if (image->launches[i].dynamic_shared > solver->shared_bytes)
      solver->shared_bytes = (unsigned)image->launches[i].dynamic_shared;
  if (!parts->device->driver->call.launch_with)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "solvers need a driver of CUDA 11.8 or later");
  enum cb_status s = cb_device_enter(solver->device, diag);
  if (s) return s;
  s = take_groups(solver, parts, diag);
  if (!s) s = find_kernel(solver, parts->cubin, diag);
  if (!s && solver->form == CB_PROGRAM_GRID) s = choose_blocks(solver, parts, diag);
  if (!s) s = allow_cluster(solver, diag);
  if (!s) s = allocate(solver, parts->op, diag);
  if (!s) s = cb_device_wait(solver->device, "loading a solver", diag);
  cb_device_leave(solver->device);
  solver->info.form = solver->form;
  solver->info.blocks = (int)solver->blocks;
  solver->info.threads = (int)solver->threads;
  return s;
}

enum cb_status cb_solver_load(struct cb_solver **out, const struct cb_solver_parts *parts, struct cb_diag *diag) {
  struct cb_solver *solver = cb_calloc(1, sizeof *solver);
  *out = NULL;
  if (!solver) return cb_fail_memory(diag, "a solver", sizeof *solver);
  const enum cb_status s = fill(solver, parts, diag);
  if (s) cb_solver_free(solver);
  else *out = solver;
  return s;
}

enum cb_status cb_solver_clone(struct cb_solver **out, const struct cb_solver *solver, const struct cb_operator *op,
                               struct cb_diag *diag) {
  struct cb_solver *clone = cb_calloc(1, sizeof *clone);
  *out = NULL;
  if (!clone) return cb_fail_memory(diag, "a solver", sizeof *clone);
  *clone = *solver;
  clone->memory = 0;
  clone->outcome = NULL;
  atomic_fetch_add(&clone->kernel->handles, 1);
  enum cb_status s = cb_device_enter(clone->device, diag);
  if (!s) {
    s = allocate(clone, op, diag);
    if (!s) s = cb_device_wait(clone->device, "cloning a solver", diag);
    cb_device_leave(clone->device);
  }
  if (s) cb_solver_free(clone);
  else *out = clone;
  return s;
}

void cb_solver_free(struct cb_solver *solver) {
  if (!solver) return;
  struct kernel *kernel = solver->kernel;
  const int is_last = kernel && atomic_fetch_sub(&kernel->handles, 1) == 1;
  if (solver->device && !cb_device_enter(solver->device, NULL)) {
    cb_device_free(solver->device, solver->memory);
    if (solver->outcome) solver->device->driver->call.host_free(solver->outcome);
    if (is_last && kernel->module) solver->device->driver->call.module_unload(kernel->module);
    cb_device_leave(solver->device);
  }
  if (is_last) {
    cb_free(kernel->pointers);
    cb_free(kernel);
  }
  cb_free(solver);
}

const struct cb_program_outcome *cb_solver_outcome(const struct cb_solver *solver) { return solver->outcome; }
struct cb_solver_info cb_solver_info(const struct cb_solver *solver) { return solver->info; }

/* ---- running */

void cb_solver_number(union cb_solver_number *number, enum cb_type sum, double value) {
  cb_real_set(number, sum, 0, cb_real_round(value, cb_type_of_part(sum)));
}

enum cb_status cb_solver_run(const struct cb_solver *solver, const struct cb_solve *solve, struct cb_diag *diag) {
  const struct cb_driver *driver = solver->device->driver;
  void *parameters[MOST_GROUPS + OTHER_PARAMETERS];
  cb_device_ptr vectors[MOST_VECTORS + OTHER_POINTERS];
  union cb_solver_number numbers[CB_MOST_PARAMETERS];
  int count = 0, most = solve->most, blocks = (int)solver->blocks;
  memcpy(vectors, solver->vectors, sizeof vectors);
  memcpy(vectors, solve->given, (size_t)solver->given_count * sizeof *vectors);
  vectors[solver->vectors_count - 4] = solve->outcome ? solve->outcome : (cb_device_ptr)(uintptr_t)solver->outcome;
  vectors[solver->vectors_count - 3] = solve->history;
  for (int g = 0; g < solver->groups_count; g++)
    parameters[count++] = &solver->kernel->pointers[solver->group_starts[g]];
  parameters[count++] = vectors;
  for (int i = 0; solver->program->parameters[i]; i++) {
    cb_solver_number(&numbers[i], solver->sum, solve->parameters[i]);
    parameters[count++] = &numbers[i];
  }
  parameters[count++] = &most;
  parameters[count++] = &blocks;
  struct cb_cu_launch_attribute attribute = {.id = CB_CU_LAUNCH_COOPERATIVE, .value.allowed = 1};
  if (solver->form == CB_PROGRAM_CLUSTER)
    attribute = (struct cb_cu_launch_attribute){.id = CB_CU_LAUNCH_CLUSTER, .value.cluster = {solver->blocks, 1, 1}};
  const struct cb_cu_launch config = {.grid = {solver->blocks, 1, 1},
                                      .block = {solver->threads, 1, 1},
                                      .shared_bytes = solver->shared_bytes,
                                      .stream = solve->stream,
                                      .attributes = &attribute,
                                      .attributes_count = 1};
  return cb_driver_check(driver, driver->call.launch_with(&config, solver->function, parameters, NULL), diag,
                         "launch a solver");
}
