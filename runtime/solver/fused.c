// SPDX-License-Identifier: Apache-2.0
/* Loading and launching fused products: see fused.h. */
#include "runtime/solver/fused.h"

#include "base/memory.h"
#include "codegen/program/product.h"

#include <stdio.h>

enum { MOST_PARAMETERS = CB_PROGRAM_LAUNCHES * CB_IMAGE_GROUPS + 6 };

struct kernel {
  struct CUfunc_st *function;
  unsigned blocks, threads, shared_bytes;
};

struct cb_fused {
  const struct cb_device *device;
  struct CUmod_st *module;
  int kernels_count, groups_count, has_carry;
  struct kernel kernels[CB_PROGRAM_LAUNCHES];
  cb_device_ptr *pointers; /* the regions' arrays */
  int *groups;             /* where those of each region of each launch begin */
  int registers, local_bytes;
};

/* ---- text */

enum cb_status cb_solver_fused_text(struct cb_text *text, const struct cb_image *image,
                                    const struct cb_program *program, int number, struct cb_diag *diag) {
  struct cb_program_launch launches[CB_PROGRAM_LAUNCHES];
  if (!image->launches_count || image->launches_count > CB_PROGRAM_LAUNCHES)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "a fused product has 1 to %d launches, not %d", CB_PROGRAM_LAUNCHES,
                   image->launches_count);
  for (int i = 0; i < image->launches_count; i++)
    launches[i] = (struct cb_program_launch){image->launches[i].kernel, image->launches[i].blocks,
                                             image->launches[i].threads, image->launches[i].dynamic_shared};
  const struct cb_program_request request = {.program = program,
                                             .source = image->source,
                                             .launches = launches,
                                             .launches_count = image->launches_count,
                                             .has_carry = image->carry_sums > 0,
                                             .rows = image->rows,
                                             .vector = image->vector_type,
                                             .sum = image->sum_type};
  return cb_fused_text(text, &request, number, diag);
}

/* ---- loading */

static enum cb_status take_arrays(struct cb_fused *fused, const struct cb_operator *op, const struct cb_image *image,
                                  struct cb_diag *diag) {
  int groups = 0, pointers = 0;
  for (int i = 0; i < image->launches_count; i++) groups += image->launches[i].groups;
  fused->groups = cb_calloc((size_t)groups + 1, sizeof *fused->groups);
  fused->pointers = cb_calloc((size_t)image->pointers_count + 1, sizeof *fused->pointers);
  if (!fused->groups || !fused->pointers)
    return cb_fail_memory(diag, "a fused product", (uint64_t)(groups + image->pointers_count) * sizeof *fused->pointers);
  for (int i = 0; i < image->launches_count; i++)
    for (int g = 0; g < image->launches[i].groups; g++) {
      const struct cb_image_group *group = &image->groups[image->launches[i].first_group + g];
      fused->groups[fused->groups_count++] = pointers;
      for (int k = 0; k < group->pointers; k++)
        fused->pointers[pointers++] = cb_operator_array(op, image->pointers[group->first_pointer + k]);
    }
  return CB_OK;
}

static int larger(int a, int b) { return a > b ? a : b; }

static enum cb_status find_kernel(struct cb_fused *fused, int number, const struct cb_image_launch *launch,
                                  struct cb_diag *diag) {
  const struct cb_driver *driver = fused->device->driver;
  struct kernel *kernel = &fused->kernels[number];
  int registers = 0, local = 0;
  char name[40];
  snprintf(name, sizeof name, CB_FUSED_KERNEL "%d", number);
  *kernel = (struct kernel){.blocks = (unsigned)launch->blocks,
                            .threads = (unsigned)launch->threads,
                            .shared_bytes = (unsigned)launch->dynamic_shared};
  enum cb_status s = cb_driver_check(driver, driver->call.module_function(&kernel->function, fused->module, name), diag,
                                     "find kernel '%s'", name);
  if (!s && driver->call.function_load)
    s = cb_driver_check(driver, driver->call.function_load(kernel->function), diag, "load kernel '%s'", name);
  if (!s && kernel->shared_bytes)
    s = cb_driver_check(driver,
                        driver->call.function_set(kernel->function, CB_CU_FUNC_MAX_DYNAMIC_SHARED,
                                                  (int)kernel->shared_bytes), diag,
                        "give a fused product %u bytes of shared memory", kernel->shared_bytes);
  if (!s)
    s = cb_driver_check(driver, driver->call.function_get(&registers, CB_CU_FUNC_REGISTERS, kernel->function), diag,
                        "ask for registers");
  if (!s)
    s = cb_driver_check(driver, driver->call.function_get(&local, CB_CU_FUNC_LOCAL_BYTES, kernel->function), diag,
                        "ask for spills");
  fused->registers = larger(fused->registers, registers);
  fused->local_bytes = larger(fused->local_bytes, local);
  return s;
}

static enum cb_status fill(struct cb_fused *fused, const struct cb_operator *op, const struct cb_image *image,
                           const void *cubin, struct cb_diag *diag) {
  const struct cb_driver *driver = fused->device->driver;
  enum cb_status s = take_arrays(fused, op, image, diag);
  if (!s) s = cb_driver_check(driver, driver->call.module_load(&fused->module, cubin), diag, "load a fused product");
  if (s) {
    fused->module = NULL;
    return s;
  }
  fused->has_carry = image->carry_sums > 0;
  fused->kernels_count = image->launches_count;
  for (int i = 0; i < fused->kernels_count && !s; i++) s = find_kernel(fused, i, &image->launches[i], diag);
  fused->kernels[fused->kernels_count - 1].blocks++; /* that of the scalars */
  return s;
}

enum cb_status cb_fused_load(struct cb_fused **out, const struct cb_device *device, const struct cb_operator *op,
                             const struct cb_image *image, const void *cubin, struct cb_diag *diag) {
  struct cb_fused *fused = cb_calloc(1, sizeof *fused);
  *out = NULL;
  if (!fused) return cb_fail_memory(diag, "a fused product", sizeof *fused);
  fused->device = device;
  const enum cb_status s = fill(fused, op, image, cubin, diag);
  if (s) cb_fused_free(fused);
  else *out = fused;
  return s;
}

void cb_fused_free(struct cb_fused *fused) {
  if (!fused) return;
  if (fused->module) fused->device->driver->call.module_unload(fused->module);
  cb_free(fused->pointers);
  cb_free(fused->groups);
  cb_free(fused);
}

void cb_fused_registers(const struct cb_fused *fused, struct cb_solver_info *info) {
  info->registers = larger(info->registers, fused->registers);
  info->local_bytes = larger(info->local_bytes, fused->local_bytes);
}

/* ---- launching */

static cb_cu_result launch_kernel(const struct cb_driver *driver, const struct kernel *kernel, int overlaps,
                                  struct CUstream_st *stream, void **parameters) {
  struct cb_cu_launch_attribute attribute = {.id = CB_CU_LAUNCH_OVERLAP, .value.allowed = 1};
  const struct cb_cu_launch config = {.grid = {kernel->blocks, 1, 1},
                                      .block = {kernel->threads, 1, 1},
                                      .shared_bytes = kernel->shared_bytes,
                                      .stream = stream,
                                      .attributes = &attribute,
                                      .attributes_count = 1};
  if (overlaps) return driver->call.launch_with(&config, kernel->function, parameters, NULL);
  return driver->call.launch(kernel->function, kernel->blocks, 1, 1, kernel->threads, 1, 1, kernel->shared_bytes, stream,
                             parameters, NULL);
}

enum cb_status cb_fused_launch(const struct cb_fused *fused, const struct cb_fused_call *call,
                               struct CUstream_st *stream, struct cb_diag *diag) {
  const struct cb_driver *driver = fused->device->driver;
  cb_device_ptr given = call->given, from = call->from, to = call->to, sums, counters;
  void *parameters[MOST_PARAMETERS];
  int count = 0;
  for (int g = 0; g < fused->groups_count; g++) parameters[count++] = &fused->pointers[fused->groups[g]];
  parameters[count++] = (void *)call->vectors;
  parameters[count++] = &given;
  parameters[count++] = &from;
  parameters[count++] = &to;
  cb_operator_carry(call->op, &sums, &counters);
  if (fused->has_carry) parameters[count++] = &sums;
  if (fused->has_carry) parameters[count++] = &counters;
  enum cb_status s = CB_OK;
  for (int i = 0; i < fused->kernels_count && !s; i++) {
    const struct kernel *kernel = &fused->kernels[i];
    s = cb_driver_check(driver, launch_kernel(driver, kernel, call->overlaps, stream, parameters), diag,
                        "launch a fused product");
  }
  return s;
}
