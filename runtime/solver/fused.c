// SPDX-License-Identifier: Apache-2.0
/* Loading and launching fused products: see fused.h. */
#include "runtime/solver/fused.h"

#include "base/integers.h"
#include "base/memory.h"
#include "codegen/program/product.h"

#include <stdio.h>

enum { MOST_GROUPS = CB_PROGRAM_LAUNCHES * CB_IMAGE_GROUPS, MOST_PARAMETERS = MOST_GROUPS + 6 };

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
  int groups[MOST_GROUPS]; /* where those of each region of each launch begin */
  int registers, local_bytes;
};

/* ---- text */

enum cb_status cb_solver_fused_text(struct cb_text *text, const struct cb_image *image,
                                    const struct cb_program *program, int number, struct cb_diag *diag) {
  struct cb_program_launch launches[CB_PROGRAM_LAUNCHES];
  if (!image->launches_count || image->launches_count > CB_PROGRAM_LAUNCHES)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "a fused product has 1 to %d launches, not %d", CB_PROGRAM_LAUNCHES,
                   image->launches_count);
  const struct cb_program_request request = cb_solver_request(image, program, launches);
  return cb_fused_text(text, &request, number, diag);
}

/* ---- loading */

static enum cb_status take_arrays(struct cb_fused *fused, const struct cb_operator *op, const struct cb_image *image,
                                  struct cb_diag *diag) {
  const size_t count = (size_t)image->pointers_count + 1;
  fused->pointers = cb_calloc(count, sizeof *fused->pointers);
  if (!fused->pointers) return cb_fail_memory(diag, "a fused product", (uint64_t)count * sizeof *fused->pointers);
  fused->groups_count = cb_solver_arrays(op, image, fused->pointers, fused->groups, MOST_GROUPS);
  if (fused->groups_count >= 0) return CB_OK;
  return cb_fail(diag, CB_ERR_LIMIT, "a fused product has more than %d regions", MOST_GROUPS);
}

static enum cb_status find_kernel(struct cb_fused *fused, int number, const struct cb_image_launch *launch,
                                  struct cb_diag *diag) {
  const struct cb_driver *driver = fused->device->driver;
  struct kernel *kernel = &fused->kernels[number];
  char name[40];
  snprintf(name, sizeof name, CB_FUSED_KERNEL "%d", number);
  *kernel = (struct kernel){.blocks = (unsigned)launch->blocks,
                            .threads = (unsigned)launch->threads,
                            .shared_bytes = (unsigned)launch->dynamic_shared};
  enum cb_status s = cb_driver_find_kernel(driver, &kernel->function, fused->module, name, diag);
  if (!s && kernel->shared_bytes)
    s = cb_driver_check(driver,
                        driver->call.function_set(kernel->function, CB_CU_FUNC_MAX_DYNAMIC_SHARED,
                                                  (int)kernel->shared_bytes), diag,
                        "give a fused product %u bytes of shared memory", kernel->shared_bytes);
  if (s) return s;
  return cb_driver_note_registers(driver, &fused->registers, &fused->local_bytes, kernel->function, name, diag);
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
  fused->kernels[fused->kernels_count - 1].blocks++; /* the one that has the scalars */
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
  cb_free(fused);
}

void cb_fused_registers(const struct cb_fused *fused, struct cb_solver_info *info) {
  info->registers = (int)cb_larger(info->registers, fused->registers);
  info->local_bytes = (int)cb_larger(info->local_bytes, fused->local_bytes);
}

/* ---- launching */

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
    const struct cb_cu_launch config = {.grid = {kernel->blocks, 1, 1},
                                        .block = {kernel->threads, 1, 1},
                                        .shared_bytes = kernel->shared_bytes,
                                        .stream = stream};
    s = cb_driver_check(driver, cb_driver_launch(driver, kernel->function, config, call->overlaps, parameters), diag,
                        "launch a fused product");
  }
  return s;
}
