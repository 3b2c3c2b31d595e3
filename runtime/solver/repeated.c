// SPDX-License-Identifier: Apache-2.0
/* Loading and launching repeated products: see repeated.h. */
#include "runtime/solver/repeated.h"

#include "base/integers.h"
#include "base/memory.h"
#include "codegen/program/product.h"

enum { MOST_GROUPS = CB_IMAGE_GROUPS, MOST_PARAMETERS = CB_MOST_FUSIONS * (MOST_GROUPS + 2) + 6 };

struct product {
  int groups_count, has_carry;
  cb_device_ptr *pointers; /* the regions' arrays */
  int groups[MOST_GROUPS]; /* where those of each region begin */
};

struct cb_repeated {
  const struct cb_device *device;
  struct CUmod_st *module;
  struct CUfunc_st *function;
  struct product products[CB_MOST_FUSIONS];
  int count, blocks;
  struct cb_repeated_shape shape;
  int registers, local_bytes;
};

enum cb_status cb_solver_repeated_text(struct cb_text *text, const struct cb_image *const *images, int count,
                                       const struct cb_program *program, int multiprocessors,
                                       struct cb_repeated_shape *shape, struct cb_diag *diag) {
  struct cb_program_launch launches[CB_MOST_FUSIONS][CB_PROGRAM_LAUNCHES];
  struct cb_program_request requests[CB_MOST_FUSIONS];
  for (int i = 0; i < count; i++) {
    if (!images[i]->launches_count || images[i]->launches_count > CB_PROGRAM_LAUNCHES)
      return cb_fail(diag, CB_ERR_UNSUPPORTED, "a product has %d launches", images[i]->launches_count);
    requests[i] = cb_solver_request(images[i], program, launches[i]);
  }
  return cb_repeated_text(text, requests, count, multiprocessors, shape, diag);
}

/* ---- loading */

static enum cb_status take_product(struct product *product, const struct cb_operator *op, const struct cb_image *image,
                                   struct cb_diag *diag) {
  const size_t count = (size_t)image->pointers_count + 1;
  product->has_carry = image->carry_sums > 0;
  product->pointers = cb_calloc(count, sizeof *product->pointers);
  if (!product->pointers) return cb_fail_memory(diag, "a repeated product", (uint64_t)count * sizeof *product->pointers);
  product->groups_count = cb_solver_arrays(op, image, product->pointers, product->groups, MOST_GROUPS);
  if (product->groups_count >= 0) return CB_OK;
  return cb_fail(diag, CB_ERR_LIMIT, "a repeated product has more than %d regions", MOST_GROUPS);
}

/* Equal shares of the work for thread blocks that are all there at once. */
static enum cb_status choose_blocks(struct cb_repeated *repeated, struct cb_diag *diag) {
  const struct cb_driver *driver = repeated->device->driver;
  int each = 0;
  const enum cb_status s = cb_driver_check(
      driver,
      driver->call.occupancy(&each, repeated->function, repeated->shape.threads,
                             (size_t)repeated->shape.dynamic_shared),
      diag, "ask how many thread blocks a multiprocessor holds");
  const int64_t room = (int64_t)each * repeated->device->target.multiprocessors;
  if (s) return s;
  if (!room) return cb_fail(diag, CB_ERR_LIMIT, "the GPU has no room for a thread block of repeated products");
  repeated->blocks = (int)cb_divide_up(repeated->shape.work, cb_divide_up(repeated->shape.work, room));
  return CB_OK;
}

static enum cb_status fill(struct cb_repeated *repeated, const struct cb_repeated_parts *parts, struct cb_diag *diag) {
  const struct cb_driver *driver = repeated->device->driver;
  const int shared = (int)repeated->shape.dynamic_shared;
  enum cb_status s = CB_OK;
  for (int i = 0; i < parts->count && !s; i++)
    s = take_product(&repeated->products[i], parts->ops[i], parts->images[i], diag);
  if (!s)
    s = cb_driver_check(driver, driver->call.module_load(&repeated->module, parts->cubin), diag,
                        "load repeated products");
  if (s) {
    repeated->module = NULL;
    return s;
  }
  s = cb_driver_find_kernel(driver, &repeated->function, repeated->module, CB_REPEATED_KERNEL, diag);
  if (!s && shared)
    s = cb_driver_check(driver, driver->call.function_set(repeated->function, CB_CU_FUNC_MAX_DYNAMIC_SHARED, shared),
                        diag, "give repeated products %d bytes of shared memory", shared);
  if (!s)
    s = cb_driver_note_registers(driver, &repeated->registers, &repeated->local_bytes, repeated->function,
                                 CB_REPEATED_KERNEL, diag);
  return s ? s : choose_blocks(repeated, diag);
}

enum cb_status cb_repeated_load(struct cb_repeated **out, const struct cb_repeated_parts *parts, struct cb_diag *diag) {
  struct cb_repeated *repeated = cb_calloc(1, sizeof *repeated);
  *out = NULL;
  if (!repeated) return cb_fail_memory(diag, "repeated products", sizeof *repeated);
  repeated->device = parts->device;
  repeated->count = parts->count;
  repeated->shape = parts->shape;
  const enum cb_status s = fill(repeated, parts, diag);
  if (s) cb_repeated_free(repeated);
  else *out = repeated;
  return s;
}

void cb_repeated_free(struct cb_repeated *repeated) {
  if (!repeated) return;
  if (repeated->module) repeated->device->driver->call.module_unload(repeated->module);
  for (int i = 0; i < CB_MOST_FUSIONS; i++) cb_free(repeated->products[i].pointers);
  cb_free(repeated);
}

void cb_repeated_registers(const struct cb_repeated *repeated, struct cb_solver_info *info) {
  info->registers = (int)cb_larger(info->registers, repeated->registers);
  info->local_bytes = (int)cb_larger(info->local_bytes, repeated->local_bytes);
}

/* ---- launching */

enum cb_status cb_repeated_launch(const struct cb_repeated *repeated, const struct cb_repeated_call *call,
                                  struct CUstream_st *stream, struct cb_diag *diag) {
  const struct cb_driver *driver = repeated->device->driver;
  cb_device_ptr given = call->given, from = call->from, to = call->to, words = call->words;
  cb_device_ptr sums[CB_MOST_FUSIONS], counters[CB_MOST_FUSIONS];
  void *parameters[MOST_PARAMETERS];
  int count = 0, blocks = repeated->blocks;
  for (int i = 0; i < repeated->count; i++) {
    const struct product *product = &repeated->products[i];
    for (int g = 0; g < product->groups_count; g++) parameters[count++] = &product->pointers[product->groups[g]];
  }
  parameters[count++] = (void *)call->vectors;
  parameters[count++] = &given;
  parameters[count++] = &from;
  parameters[count++] = &to;
  for (int i = 0; i < repeated->count; i++) {
    cb_operator_carry(call->ops[i], &sums[i], &counters[i]);
    if (!repeated->products[i].has_carry) continue;
    parameters[count++] = &sums[i];
    parameters[count++] = &counters[i];
  }
  parameters[count++] = &words;
  parameters[count++] = &blocks;
  struct cb_cu_launch_attribute attribute = {.id = CB_CU_LAUNCH_COOPERATIVE, .value.allowed = 1};
  const struct cb_cu_launch config = {.grid = {(unsigned)blocks, 1, 1},
                                      .block = {(unsigned)repeated->shape.threads, 1, 1},
                                      .shared_bytes = (unsigned)repeated->shape.dynamic_shared,
                                      .stream = stream,
                                      .attributes = &attribute,
                                      .attributes_count = 1};
  return cb_driver_check(driver, driver->call.launch_with(&config, repeated->function, parameters, NULL), diag,
                         "launch repeated products");
}
