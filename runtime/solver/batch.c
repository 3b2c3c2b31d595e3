// SPDX-License-Identifier: Apache-2.0
/* Loading and running batches: see batch.h. */
#include "runtime/solver/batch.h"

#include "base/integers.h"
#include "base/memory.h"
#include "base/real.h"

#include <string.h>

enum { MOST_POINTERS = CB_MOST_GIVEN + CB_MOST_WORK + 8, ALIGN = 256 };

struct cb_batch {
  const struct cb_device *device;
  const struct cb_program *program;
  struct CUmod_st *module;
  struct CUfunc_st *function;
  int blocks, systems;
  struct cb_program_shape shape;
  int is_f32;
  cb_device_ptr memory, row_ptr, col_idx, outcomes;
  cb_device_ptr vectors[MOST_POINTERS]; /* the kernel's struct Pointers; those given are set by a run */
  int given_count, vectors_count;
};

static int64_t padded(int64_t bytes) { return cb_divide_up(bytes, (int64_t)ALIGN) * ALIGN; }

static enum cb_status find_kernel(struct cb_batch *batch, const struct cb_batch_parts *parts, struct cb_diag *diag) {
  const struct cb_driver *driver = batch->device->driver;
  int each = 0;
  enum cb_status s =
      cb_driver_check(driver, driver->call.module_load(&batch->module, parts->cubin), diag, "load a batch's kernel");
  if (s) batch->module = NULL;
  if (!s)
    s = cb_driver_check(driver, driver->call.module_function(&batch->function, batch->module, CB_PROGRAM_KERNEL), diag,
                        "find kernel '%s'", CB_PROGRAM_KERNEL);
  const int shared = batch->shape.dynamic_shared;
  if (!s && shared)
    s = cb_driver_check(driver, driver->call.function_set(batch->function, CB_CU_FUNC_MAX_DYNAMIC_SHARED, shared), diag,
                        "give a batch %d bytes of shared memory", shared);
  if (!s)
    s = cb_driver_check(driver,
                        driver->call.occupancy(&each, batch->function, batch->shape.threads, (size_t)shared), diag,
                        "ask how many thread blocks a multiprocessor holds");
  if (s) return s;
  if (!each) return cb_fail(diag, CB_ERR_LIMIT, "the GPU has no room for a batch's thread block");
  batch->blocks = (int)cb_smaller((int64_t)each * batch->device->target.multiprocessors, parts->systems);
  return CB_OK;
}

/* One allocation: own vectors of all thread blocks, the pattern, and the outcomes. */
static enum cb_status allocate(struct cb_batch *batch, const struct cb_batch_parts *parts, struct cb_diag *diag) {
  const int own = cb_program_count(parts->program->work), given = cb_program_count(parts->program->given);
  const int work = parts->shape.dynamic_shared ? 0 : own; /* else they lie there */
  const int64_t vector = padded(batch->blocks * parts->rows * (int64_t)cb_type_size(parts->type));
  const int64_t rows = padded(4 * (parts->rows + 1)), columns = padded(4 * parts->nnz + 4);
  const int64_t outcomes = padded(parts->systems * (int64_t)sizeof(struct cb_program_outcome));
  const size_t bytes = (size_t)(work * vector + rows + columns + outcomes);
  enum cb_status s = cb_device_alloc(batch->device, &batch->memory, bytes, "a batch's vectors", diag);
  if (!s) s = cb_device_fill(batch->device, batch->memory, 0, bytes, diag);
  if (s) return s;
  cb_device_ptr at = batch->memory;
  for (int i = 0; i < work; i++, at += (cb_device_ptr)vector) batch->vectors[given + i] = at;
  batch->row_ptr = at;
  batch->col_idx = batch->row_ptr + (cb_device_ptr)rows;
  batch->outcomes = batch->col_idx + (cb_device_ptr)columns;
  batch->given_count = given;
  batch->vectors_count = given + own; /* behind them no board, no words, the outcomes; no history, no carry slots */
  s = cb_device_copy_in(batch->device, batch->row_ptr, parts->row_ptr, 4 * (size_t)(parts->rows + 1), "a pattern", diag);
  if (!s && parts->nnz)
    s = cb_device_copy_in(batch->device, batch->col_idx, parts->col_idx, 4 * (size_t)parts->nnz, "a pattern", diag);
  return s ? s : cb_device_wait(batch->device, "loading a batch", diag);
}

enum cb_status cb_batch_load(struct cb_batch **out, const struct cb_batch_parts *parts, struct cb_diag *diag) {
  struct cb_batch *batch = cb_calloc(1, sizeof *batch);
  *out = NULL;
  if (!batch) return cb_fail_memory(diag, "a batch", sizeof *batch);
  batch->device = parts->device;
  batch->program = parts->program;
  batch->shape = parts->shape;
  batch->systems = (int)parts->systems;
  batch->is_f32 = parts->type == CB_F32;
  enum cb_status s = find_kernel(batch, parts, diag);
  if (!s) s = allocate(batch, parts, diag);
  if (s) cb_batch_free(batch);
  else *out = batch;
  return s;
}

void cb_batch_free(struct cb_batch *batch) {
  if (!batch) return;
  if (!cb_device_enter(batch->device, NULL)) {
    cb_device_free(batch->device, batch->memory);
    if (batch->module) batch->device->driver->call.module_unload(batch->module);
    cb_device_leave(batch->device);
  }
  cb_free(batch);
}

cb_device_ptr cb_batch_outcomes(const struct cb_batch *batch) { return batch->outcomes; }

enum cb_status cb_batch_run(const struct cb_batch *batch, const struct cb_batch_solve *solve, struct cb_diag *diag) {
  const struct cb_driver *driver = batch->device->driver;
  cb_device_ptr arrays[3] = {batch->row_ptr, batch->col_idx, solve->values}, vectors[MOST_POINTERS];
  void *parameters[CB_MOST_PARAMETERS + 8];
  double wide[CB_MOST_PARAMETERS];
  float narrow[CB_MOST_PARAMETERS];
  int count = 0, most = solve->most, systems = batch->systems, blocks = batch->blocks;
  memcpy(vectors, batch->vectors, sizeof vectors);
  memcpy(vectors, solve->given, (size_t)batch->given_count * sizeof *vectors);
  vectors[batch->vectors_count + 2] = solve->outcomes ? solve->outcomes : batch->outcomes;
  parameters[count++] = arrays;
  parameters[count++] = vectors;
  for (int i = 0; batch->program->parameters[i]; i++) {
    wide[i] = solve->parameters[i];
    narrow[i] = cb_real_to_float(wide[i]);
    parameters[count++] = batch->is_f32 ? (void *)&narrow[i] : &wide[i];
  }
  parameters[count++] = &most;
  parameters[count++] = &systems;
  parameters[count++] = &blocks;
  return cb_driver_check(driver,
                         driver->call.launch(batch->function, (unsigned)blocks, 1, 1, (unsigned)batch->shape.threads, 1,
                                             1, (unsigned)batch->shape.dynamic_shared, solve->stream, parameters, NULL),
                         diag, "launch a batch");
}
