// SPDX-License-Identifier: Apache-2.0
/* Loading and multiplying: see operator.h. What handles share is a struct loaded, counted by its handles; a
 * handle adds its own carry slots. A copy's counts as a handle of the one it was copied from. cb_operator_load at the
 * end of "loading" is the table of contents. */
#include "runtime/operator/operator.h"

#include "base/clock.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/real.h"
#include "codegen/family.h"
#include "codegen/source.h"
#include "runtime/cuda/modules.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { OTHER_ARGUMENTS = 10 + CB_MOST_NAMES }; /* shape, x, y, alpha, beta, carry_sums, carry_counters, an epilogue's
                                               * pointers and its scalars, columns, clocks */

/* Kernels for one vector, where those for several have numbers (enum cb_vector_kernel). */
enum { ONE_VECTOR = -1, HEADS = -2 };

/* What a kernel gets of one region, as the image has it: parts of `pointers` and `sizes`. */
struct group {
  const cb_device_ptr *pointers; /* NULL: none */
  const int32_t *sizes;          /* likewise */
};

struct launch {
  struct CUfunc_st *function;
  struct CUfunc_st *many[CB_VECTOR_KERNELS]; /* the same for several vectors; NULL: there is none */
  struct CUfunc_st *heads;                   /* the same with heads of split values alone; NULL: there is none */
  unsigned blocks, threads, shared_bytes;
  int first_group, groups;
};

/* The kernels of one tier. They stay until the operator goes: captured graphs may have them. */
struct kernels {
  enum cb_tier tier;
  struct CUmod_st *module;
  int is_borrowed; /* the module is another operator's, which lives longer */
  int is_shared;   /* it is among the device's modules, which it is given back to */
  cb_device_ptr *pointers;
  int32_t *sizes;
  struct group *groups;
  struct launch *launches;
  struct CUfunc_st *copy_x; /* lays X out by rows for CB_VECTORS_COPIED; NULL: there is none */
  struct CUfunc_st *copy_y; /* stores Y, where that lies by rows, too; NULL: likewise */
  struct cb_family_shape shape;
  int registers, local_bytes; /* the most of any */
  struct kernels *before;     /* those in whose place they came */
};

struct loaded {
  atomic_int handles;       /* and copies */
  struct loaded *origin;    /* that this is a copy of; NULL: none */
  const struct cb_device *device;
  int overlap; /* launches may overlap the end of the kernel before them */
  int is_apart;     /* arrays have blocks of their own, whose ends a tool may watch */
  int blocks_count; /* allocations of arrays: one, or one for each array */
  cb_device_ptr *blocks;
  cb_device_ptr *arrays;            /* of the image */
  _Atomic(struct kernels *) kernels; /* that multiply */
  int64_t carry_sums, carry_counters;
  int slot_numbers; /* of a carry slot: more than 1 for several vectors */
  struct cb_vector_share shares[CB_VECTOR_KERNELS];
  struct cb_operator_info info;
  struct cb_statements *statements; /* the epilogue; NULL: none */
};

struct cb_operator {
  struct loaded *loaded;
  cb_device_ptr carry_sums, carry_counters; /* one allocation, which starts with the sums */
  cb_device_ptr x_rows, y_rows;             /* likewise its own: X of several vectors, laid out by rows, and Y */
  cb_device_ptr clocks;                     /* of a clocked kernel; the caller's */
  int apart;                                /* its launches begin when what is before them has ended */
};

/* ---- arrays */

/* Room for the tables, whose sizes the image says. */
static enum cb_status make_tables(struct loaded *loaded, const struct cb_image *image, struct cb_diag *diag) {
  loaded->blocks = cb_calloc((size_t)image->arrays_count + 1, sizeof *loaded->blocks);
  loaded->arrays = cb_calloc((size_t)image->arrays_count + 1, sizeof *loaded->arrays);
  if (loaded->blocks && loaded->arrays) return CB_OK;
  return cb_fail_memory(diag, "an operator's tables", (uint64_t)image->arrays_count);
}

static enum cb_status put(struct loaded *loaded, int64_t length, const char *what, cb_device_ptr *address,
                          struct cb_diag *diag) {
  const enum cb_status s = (loaded->is_apart ? cb_device_alloc : cb_device_take)(loaded->device, address,
                                                                                 (size_t)length, what, diag);
  if (s) return s;
  loaded->blocks[loaded->blocks_count++] = *address;
  loaded->info.device_bytes += length;
  return CB_OK;
}

/* The bytes of an array without contents. */
static unsigned char padding_of(const struct cb_image *image, const struct cb_image_array *array) {
  return array->values && cb_semiring_pads_with_nan(image->semiring) ? 0xff : 0;
}

/* Whether the contents of an array lie behind those of the one before as both lie on the device; or both have none, and
 * the same padding. */
static int follows(const struct cb_image *image, const struct cb_image_array *array,
                   const struct cb_image_array *before) {
  if (array->offset <= before->offset || !array->contents != !before->contents) return 0;
  if (!array->contents) return padding_of(image, array) == padding_of(image, before);
  return (uintptr_t)array->contents - (uintptr_t)before->contents == (uintptr_t)(array->offset - before->offset);
}

/* Arrays first … end - 1, of which each but the first follows the one before: all contents at once, so that no copy
 * waits for the end of another, and nothing of a cache's entry is read twice. All is there once somebody has waited
 * for the default stream. */
static enum cb_status fill_arrays(struct loaded *loaded, const struct cb_image *image, int first, int end,
                                  struct cb_diag *diag) {
  const struct cb_image_array *array = &image->arrays[first], *last = &image->arrays[end - 1];
  const size_t bytes = (size_t)(last->offset + last->bytes - array->offset);
  const cb_device_ptr there = loaded->arrays[first];
  return array->contents ? cb_device_upload_later(loaded->device, there, array->contents, bytes, "arrays", diag)
                         : cb_device_fill_later(loaded->device, there, padding_of(image, array), bytes, diag);
}

/* Every array in one range at its offset, or, apart, in an allocation of its own. Those without contents
 * hold what slots without a nonzero do; index arrays, which kernels fill then, zeros. */
static enum cb_status upload(struct loaded *loaded, const struct cb_image *image, int apart,
                             struct cb_diag *diag) {
  cb_device_ptr packed = 0;
  enum cb_status s = CB_OK;
  loaded->is_apart = apart;
  if (!apart && image->arrays_count) s = put(loaded, image->packed_bytes, "arrays", &packed, diag);
  for (int i = 0; i < image->arrays_count && !s; i++) {
    loaded->arrays[i] = packed + (cb_device_ptr)image->arrays[i].offset;
    if (apart) s = put(loaded, image->arrays[i].bytes, "an array", &loaded->arrays[i], diag);
  }
  for (int first = 0, end; first < image->arrays_count && !s; first = end) {
    for (end = first + 1; end < image->arrays_count && !apart; end++)
      if (!follows(image, &image->arrays[end], &image->arrays[end - 1])) break;
    s = fill_arrays(loaded, image, first, end, diag);
  }
  return s;
}

/* ---- kernels */

static enum cb_status check_launch(const struct loaded *loaded, const struct cb_image_launch *launch,
                                   struct cb_diag *diag) {
  const struct cb_target *target = &loaded->device->target;
  if (launch->blocks < 1 || launch->blocks > INT32_MAX)
    return cb_fail(diag, CB_ERR_LIMIT, "kernel '%s' has a grid of %lld thread blocks; a GPU takes 1 to %d",
                   launch->kernel, (long long)launch->blocks, INT32_MAX);
  if (launch->dynamic_shared > target->shared_per_block)
    return cb_fail(
        diag, CB_ERR_LIMIT, "kernel '%s' needs %lld bytes of shared memory; '%s' has %d per thread block",
        launch->kernel, (long long)launch->dynamic_shared, target->model, target->shared_per_block);
  return CB_OK;
}

/* Gives the kernel its shared memory, and notes what it takes. */
static enum cb_status prepare(const struct loaded *loaded, struct kernels *kernels, const struct launch *launch,
                              struct CUfunc_st *function, const char *kernel, struct cb_diag *diag) {
  const struct cb_driver *driver = loaded->device->driver;
  const enum cb_status s = launch->shared_bytes ? cb_modules_allow(loaded->device->modules, driver, function, kernel,
                                                                   launch->shared_bytes, diag)
                                                : CB_OK;
  if (s) return s;
  return cb_driver_note_registers(driver, &kernels->registers, &kernels->local_bytes, function, kernel, diag);
}

static enum cb_status find_kernel(const struct loaded *loaded, struct kernels *kernels,
                                  const struct cb_image_launch *planned, struct launch *launch, struct cb_diag *diag) {
  const struct cb_driver *driver = loaded->device->driver;
  enum cb_status s = check_launch(loaded, planned, diag);
  if (s) return s;
  launch->blocks = (unsigned)planned->blocks;
  launch->threads = (unsigned)planned->threads;
  launch->shared_bytes = (unsigned)planned->dynamic_shared;
  launch->first_group = planned->first_group;
  launch->groups = planned->groups;
  s = cb_driver_find_kernel(driver, &launch->function, kernels->module, planned->kernel, diag);
  return s ? s : prepare(loaded, kernels, launch, launch->function, planned->kernel, diag);
}

/* The launch's kernels for several vectors. */
static enum cb_status find_vector_kernels(const struct loaded *loaded, struct kernels *kernels,
                                          const struct cb_image_launch *planned, struct launch *launch,
                                          struct cb_diag *diag) {
  const struct cb_driver *driver = loaded->device->driver;
  enum cb_status s = CB_OK;
  for (int i = 0; i < CB_VECTOR_KERNELS && !s; i++) {
    char kernel[128];
    if (!loaded->shares[i].each) continue;
    if (launch->blocks > INT32_MAX / (unsigned)cb_share_blocks(&loaded->shares[i]))
      return cb_fail(diag, CB_ERR_LIMIT, "kernel '%s' has too many thread blocks for several vectors", planned->kernel);
    snprintf(kernel, sizeof kernel, "%s_%s", planned->kernel, cb_vector_kernel_name((enum cb_vector_kernel)i));
    s = cb_driver_find_kernel(driver, &launch->many[i], kernels->module, kernel, diag);
    if (!s) s = prepare(loaded, kernels, launch, launch->many[i], kernel, diag);
  }
  return s;
}

/* The launch's kernel that reads heads alone. */
static enum cb_status find_heads_kernel(const struct loaded *loaded, struct kernels *kernels,
                                        const struct cb_image_launch *planned, struct launch *launch,
                                        struct cb_diag *diag) {
  const struct cb_driver *driver = loaded->device->driver;
  char kernel[128];
  if (loaded->info.matrix_type != CB_SPLIT) return CB_OK;
  snprintf(kernel, sizeof kernel, "%s_heads", planned->kernel);
  const enum cb_status s = cb_driver_find_kernel(driver, &launch->heads, kernels->module, kernel, diag);
  return s ? s : prepare(loaded, kernels, launch, launch->heads, kernel, diag);
}

/* A kernel that is launched before these, where X is laid out by rows, or behind. */
static enum cb_status find_copy_kernel(const struct loaded *loaded, struct kernels *kernels,
                                       const struct cb_image *image, const char *suffix, struct CUfunc_st **function,
                                       struct cb_diag *diag) {
  const struct cb_driver *driver = loaded->device->driver;
  const struct launch plain = {0};
  char kernel[128];
  snprintf(kernel, sizeof kernel, "%s%s", image->launches[0].kernel, suffix);
  const enum cb_status s = cb_driver_find_kernel(driver, function, kernels->module, kernel, diag);
  return s ? s : prepare(loaded, kernels, &plain, *function, kernel, diag);
}

static enum cb_status find_copy(const struct loaded *loaded, struct kernels *kernels, const struct cb_image *image,
                                struct cb_diag *diag) {
  if (!loaded->shares[CB_VECTORS_COPIED].each || !image->launches_count) return CB_OK;
  const enum cb_status s = find_copy_kernel(loaded, kernels, image, CB_COPY_SUFFIX, &kernels->copy_x, diag);
  if (s || !loaded->shares[CB_VECTORS_COPIED].y_too) return s;
  return find_copy_kernel(loaded, kernels, image, CB_COPY_Y_SUFFIX, &kernels->copy_y, diag);
}

static void free_kernels(const struct loaded *loaded, struct kernels *kernels, int can_unload) {
  const struct cb_device *device = loaded->device;
  if (kernels->module && can_unload && kernels->is_shared) cb_modules_give_back(device->modules, kernels->module);
  else if (kernels->module && can_unload && !kernels->is_borrowed) device->driver->call.module_unload(kernels->module);
  cb_free(kernels->pointers);
  cb_free(kernels->sizes);
  cb_free(kernels->groups);
  cb_free(kernels->launches);
  cb_free(kernels);
}

static int alloc_tables(struct kernels *kernels, const struct cb_image *image) {
  kernels->pointers = cb_calloc((size_t)image->pointers_count + 1, sizeof *kernels->pointers);
  kernels->sizes = cb_calloc((size_t)image->sizes_count + 1, sizeof *kernels->sizes);
  kernels->groups = cb_calloc((size_t)image->groups_count + 1, sizeof *kernels->groups);
  kernels->launches = cb_calloc((size_t)image->launches_count + 1, sizeof *kernels->launches);
  return kernels->pointers && kernels->sizes && kernels->groups && kernels->launches;
}

/* What the kernels get beside vectors. The arrays must be in place. */
static void fill_tables(struct kernels *kernels, const struct loaded *loaded, const struct cb_image *image) {
  if (image->sizes_count) memcpy(kernels->sizes, image->sizes, (size_t)image->sizes_count * sizeof *kernels->sizes);
  for (int i = 0; i < image->pointers_count; i++)
    kernels->pointers[i] = image->pointers[i] < 0 ? 0 : loaded->arrays[image->pointers[i]];
  for (int i = 0; i < image->groups_count; i++) {
    const struct cb_image_group *group = &image->groups[i];
    kernels->groups[i].pointers = group->pointers ? kernels->pointers + group->first_pointer : NULL;
    kernels->groups[i].sizes = group->sizes ? kernels->sizes + group->first_size : NULL;
  }
  kernels->shape = (struct cb_family_shape){(int32_t)image->rows, (int32_t)image->cols, image->first_row_sum};
}

/* A family's may be loaded already, for another matrix. */
static enum cb_status load_module(struct kernels *kernels, const struct loaded *loaded, const struct cb_image *image,
                                  struct cb_diag *diag) {
  const struct cb_device *device = loaded->device;
  struct cb_modules *modules = image->tier == CB_TIER_FAMILY ? device->modules : NULL;
  return cb_modules_take(modules, device, image->cubin, image->cubin_bytes, &kernels->module, &kernels->is_shared,
                         diag);
}

/* With the device's context current; the tables are filled later. */
static enum cb_status find_kernels(struct kernels **out, const struct loaded *loaded, const struct cb_image *image,
                                   struct cb_diag *diag) {
  struct kernels *kernels = *out = cb_calloc(1, sizeof *kernels);
  if (!kernels || !alloc_tables(kernels, image)) return cb_fail_memory(diag, "an operator's tables", sizeof *kernels);
  kernels->tier = image->tier;
  if (!image->launches_count) return CB_OK; /* no rows: there may be no kernel to load */
  enum cb_status s = load_module(kernels, loaded, image, diag);
  for (int i = 0; i < image->launches_count && !s; i++) {
    s = find_kernel(loaded, kernels, &image->launches[i], &kernels->launches[i], diag);
    if (!s) s = find_vector_kernels(loaded, kernels, &image->launches[i], &kernels->launches[i], diag);
    if (!s) s = find_heads_kernel(loaded, kernels, &image->launches[i], &kernels->launches[i], diag);
  }
  return s ? s : find_copy(loaded, kernels, image, diag);
}

/* From the next product on these multiply. */
static void take_over(struct loaded *loaded, struct kernels *kernels) {
  kernels->before = atomic_load(&loaded->kernels);
  atomic_store(&loaded->kernels, kernels);
}

/* ---- handles */

/* Bytes of a handle's scratch: carry slots and counters, where the latter begin, and X by rows, and Y. */
struct scratch {
  size_t carry, counters_at, x_rows, y_rows;
};
static struct scratch scratch_of(const struct loaded *loaded) {
  const struct cb_vector_share *copied = &loaded->shares[CB_VECTORS_COPIED];
  const size_t align = CB_BLOB_ALIGN, number = cb_type_size(loaded->info.sum_type);
  const size_t sums = (size_t)loaded->carry_sums * (size_t)loaded->slot_numbers * number;
  const size_t counters_at = (sums + align - 1) / align * align;
  const size_t counters = (size_t)loaded->carry_counters * sizeof(uint32_t);
  const int64_t row = cb_copy_row_bytes(copied, loaded->info.vector_type);
  return (struct scratch){.carry = loaded->carry_sums ? counters_at + counters : 0,
                          .counters_at = counters_at,
                          .x_rows = (size_t)(loaded->info.cols * row),
                          .y_rows = copied->y_too ? (size_t)(loaded->info.rows * row) : 0};
}

/* A handle's own carry slots: all zero, which is what counters start from. And its room for X. */
static enum cb_status add_scratch(struct cb_operator *op, struct cb_diag *diag) {
  const struct loaded *loaded = op->loaded;
  const struct scratch scratch = scratch_of(loaded);
  enum cb_status s = CB_OK;
  if (scratch.x_rows) s = cb_device_alloc(loaded->device, &op->x_rows, scratch.x_rows, "X by rows", diag);
  if (!s && scratch.y_rows) s = cb_device_alloc(loaded->device, &op->y_rows, scratch.y_rows, "Y by rows", diag);
  if (s || !scratch.carry) return s;
  s = cb_device_alloc(loaded->device, &op->carry_sums, scratch.carry, "carry slots", diag);
  if (s) return s;
  op->carry_counters = op->carry_sums + scratch.counters_at;
  return cb_device_fill_later(loaded->device, op->carry_sums, 0, scratch.carry, diag);
}

/* The context must be current. Blocks may stay for another operator once no product uses them any more; the driver
 * would wait before it frees them, too. */
static void unload(struct loaded *loaded) {
  const struct cb_device *device = loaded->device;
  for (int i = 0; i < loaded->blocks_count; i++) {
    const int stays = !loaded->is_apart && cb_device_keeps(device, loaded->blocks[i]) &&
                      !cb_device_wait(device, "products", NULL);
    (stays ? cb_device_give_back : cb_device_free)(device, loaded->blocks[i]);
  }
}

static void free_all_kernels(struct loaded *loaded, int can_unload) {
  for (struct kernels *next, *kernels = atomic_load(&loaded->kernels); kernels; kernels = next) {
    next = kernels->before;
    free_kernels(loaded, kernels, can_unload);
  }
}

/* One handle less; with the last one all goes, and the operator that this is a copy of has one less. */
static void release(struct loaded *loaded, int entered) {
  while (loaded && atomic_fetch_sub(&loaded->handles, 1) == 1) { /* else another thread may free it from here on */
    struct loaded *const origin = loaded->origin;
    if (entered) unload(loaded);
    free_all_kernels(loaded, entered);
    cb_free(loaded->blocks);
    cb_free(loaded->arrays);
    cb_free(loaded->statements);
    cb_free(loaded);
    loaded = origin;
  }
}

void cb_operator_free(struct cb_operator *op) {
  if (!op) return;
  struct loaded *loaded = op->loaded;
  const struct cb_device *device = loaded->device;
  /* a context that cannot be entered is gone, and took everything along */
  const int entered = !cb_device_enter(device, NULL);
  if (entered) {
    cb_device_free(device, op->carry_sums);
    cb_device_free(device, op->x_rows);
    cb_device_free(device, op->y_rows);
  }
  release(loaded, entered);
  if (entered) cb_device_leave(device);
  cb_free(op);
}

static void note_image(struct loaded *loaded, const struct cb_image *image) {
  loaded->carry_sums = image->carry_sums;
  loaded->carry_counters = image->carry_counters;
  memcpy(loaded->shares, image->shares, sizeof loaded->shares);
  loaded->slot_numbers = cb_share_numbers(image->shares);
  loaded->info = (struct cb_operator_info){
      .rows = image->rows,
      .cols = image->cols,
      .nnz = image->nnz,
      .matrix_type = image->matrix_type,
      .vector_type = image->vector_type,
      .sum_type = image->sum_type,
      .form = image->form,
      .semiring = image->semiring,
      .launches = image->launches_count,
      .vectors = image->vectors,
      .has_carry = image->carry_sums > 0,
      .has_scratch = image->carry_sums > 0 || image->shares[CB_VECTORS_COPIED].each,
      .stored_bytes = image->stored_bytes,
  };
  const struct scratch scratch = scratch_of(loaded);
  loaded->info.scratch_bytes = (int64_t)(scratch.carry + scratch.x_rows + scratch.y_rows);
}

/* The operator's own copy of the epilogue. */
static enum cb_status take_statements(struct loaded *loaded, const struct cb_image *image, struct cb_diag *diag) {
  if (!image->statements) return CB_OK;
  loaded->info.statements = loaded->statements = cb_alloc(1, sizeof *loaded->statements);
  if (!loaded->statements) return cb_fail_memory(diag, "an epilogue", sizeof *loaded->statements);
  *loaded->statements = *image->statements;
  return CB_OK;
}

static enum cb_status fill_operator(struct cb_operator *op, const struct cb_image *image, int apart,
                                    struct cb_diag *diag) {
  struct loaded *loaded = op->loaded;
  struct kernels *kernels = NULL;
  const double start = cb_seconds();
  enum cb_status s = make_tables(loaded, image, diag);
  if (!s) s = take_statements(loaded, image, diag);
  if (!s) s = find_kernels(&kernels, loaded, image, diag);
  if (kernels) take_over(loaded, kernels); /* who owns them, also after a failure */
  const double found = cb_seconds();
  if (!s) s = upload(loaded, image, apart, diag);
  if (!s) fill_tables(kernels, loaded, image);
  if (!s) s = add_scratch(op, diag);
  if (!s) s = cb_device_wait(loaded->device, "loading", diag);
  loaded->info.load_seconds = found - start;
  loaded->info.upload_seconds = cb_seconds() - found;
  return s;
}

static enum cb_status new_operator(struct cb_operator **out, const struct cb_device *device,
                                   const struct cb_image *image, struct cb_diag *diag) {
  struct cb_operator *op = cb_calloc(1, sizeof *op);
  struct loaded *loaded = cb_calloc(1, sizeof *loaded);
  *out = NULL;
  if (!op || !loaded) {
    cb_free(op);
    cb_free(loaded);
    return cb_fail_memory(diag, "an operator", sizeof *loaded);
  }
  op->loaded = loaded;
  atomic_init(&loaded->handles, 1);
  loaded->device = device;
  loaded->overlap = cb_device_overlaps(device);
  note_image(loaded, image);
  *out = op;
  return CB_OK;
}

enum cb_status cb_operator_load(struct cb_operator **out, const struct cb_device *device,
                                const struct cb_image *image, int apart, struct cb_diag *diag) {
  struct cb_operator *op;
  *out = NULL;
  enum cb_status s = new_operator(&op, device, image, diag);
  if (s) return s;
  s = cb_device_enter(device, diag);
  if (!s) {
    s = fill_operator(op, image, apart, diag);
    cb_device_leave(device);
  }
  if (s)
    cb_operator_free(op);
  else
    *out = op;
  return s;
}

enum cb_status cb_operator_clone(struct cb_operator **clone, const struct cb_operator *op,
                                 struct cb_diag *diag) {
  struct cb_operator *copy = cb_calloc(1, sizeof *copy);
  *clone = NULL;
  if (!copy) return cb_fail_memory(diag, "an operator", sizeof *copy);
  copy->loaded = op->loaded;
  atomic_fetch_add(&op->loaded->handles, 1);
  enum cb_status s = cb_device_enter(op->loaded->device, diag);
  if (!s) {
    s = add_scratch(copy, diag);
    if (!s) s = cb_device_wait(op->loaded->device, "cloning", diag);
    cb_device_leave(op->loaded->device);
  }
  if (s)
    cb_operator_free(copy);
  else
    *clone = copy;
  return s;
}

/* ---- copies */

static enum cb_status copy_array(struct loaded *copy, const struct cb_image_array *array, int number,
                                 struct cb_diag *diag) {
  const struct cb_driver *driver = copy->device->driver;
  const cb_device_ptr from = copy->arrays[number];
  enum cb_status s = put(copy, array->bytes, "values of a copy", &copy->arrays[number], diag);
  if (!s && array->bytes)
    s = cb_driver_check(driver,
                        driver->call.copy_on_device(copy->arrays[number], from, (size_t)array->bytes, NULL), diag,
                        "copy values on GPU %d", copy->device->ordinal);
  return s;
}

/* Arrays with value slots are copied, the others are the origin's. */
static enum cb_status copy_values(struct loaded *copy, const struct cb_image *image, struct cb_diag *diag) {
  enum cb_status s = make_tables(copy, image, diag);
  if (s) return s;
  memcpy(copy->arrays, copy->origin->arrays, (size_t)image->arrays_count * sizeof *copy->arrays);
  for (int i = 0; i < image->ranges_count && !s; i++) {
    const int number = image->ranges[i].array;
    if (copy->arrays[number] == copy->origin->arrays[number]) /* not yet: regions may share an array */
      s = copy_array(copy, &image->arrays[number], number, diag);
  }
  return s;
}

/* The kernels that multiply, with pointers of the copy's. */
static enum cb_status borrow_kernels(struct loaded *copy, const struct cb_image *image, struct cb_diag *diag) {
  const struct kernels *from = atomic_load(&copy->origin->kernels);
  struct kernels *kernels = cb_calloc(1, sizeof *kernels);
  if (!kernels) return cb_fail_memory(diag, "an operator's tables", sizeof *kernels);
  kernels->is_borrowed = 1;
  take_over(copy, kernels); /* who owns them, also after a failure */
  if (!alloc_tables(kernels, image)) return cb_fail_memory(diag, "an operator's tables", sizeof *kernels);
  kernels->tier = from->tier;
  kernels->module = from->module;
  kernels->copy_x = from->copy_x;
  kernels->copy_y = from->copy_y;
  kernels->registers = from->registers;
  kernels->local_bytes = from->local_bytes;
  memcpy(kernels->launches, from->launches, (size_t)image->launches_count * sizeof *kernels->launches);
  fill_tables(kernels, copy, image);
  return CB_OK;
}

static enum cb_status fill_copy(struct cb_operator *op, const struct cb_image *image, struct cb_diag *diag) {
  struct loaded *copy = op->loaded;
  const double start = cb_seconds();
  enum cb_status s = cb_device_wait(copy->device, "the operator's work", diag);
  if (!s) s = copy_values(copy, image, diag);
  if (!s) s = take_statements(copy, image, diag);
  if (!s) s = borrow_kernels(copy, image, diag);
  if (!s) s = add_scratch(op, diag);
  if (!s) s = cb_device_wait(copy->device, "copying", diag);
  copy->info.upload_seconds = cb_seconds() - start;
  return s;
}

enum cb_status cb_operator_copy(struct cb_operator **out, const struct cb_operator *op, const struct cb_image *image,
                                struct cb_diag *diag) {
  struct cb_operator *copy;
  *out = NULL;
  enum cb_status s = new_operator(&copy, op->loaded->device, image, diag);
  if (s) return s;
  copy->loaded->origin = op->loaded;
  atomic_fetch_add(&op->loaded->handles, 1);
  s = cb_device_enter(op->loaded->device, diag);
  if (!s) {
    s = fill_copy(copy, image, diag);
    cb_device_leave(op->loaded->device);
  }
  if (s)
    cb_operator_free(copy);
  else
    *out = copy;
  return s;
}

void cb_operator_set_clocks(struct cb_operator *op, cb_device_ptr clocks) { op->clocks = clocks; }

void cb_operator_set_apart(struct cb_operator *op) { op->apart = 1; }

enum cb_status cb_operator_take_over(struct cb_operator *op, const struct cb_image *image, struct cb_diag *diag) {
  struct loaded *loaded = op->loaded;
  struct kernels *kernels = NULL;
  enum cb_status s = cb_device_enter(loaded->device, diag);
  if (s) return s;
  s = find_kernels(&kernels, loaded, image, diag);
  if (!s) {
    fill_tables(kernels, loaded, image);
    take_over(loaded, kernels);
  } else if (kernels) {
    free_kernels(loaded, kernels, 1);
  }
  cb_device_leave(loaded->device);
  return s;
}

enum cb_tier cb_operator_tier(const struct cb_operator *op) { return atomic_load(&op->loaded->kernels)->tier; }

void cb_operator_registers(const struct cb_operator *op, int *registers, int *local_bytes) {
  const struct kernels *kernels = atomic_load(&op->loaded->kernels);
  *registers = kernels->registers;
  *local_bytes = kernels->local_bytes;
}

void cb_operator_carry(const struct cb_operator *op, cb_device_ptr *sums, cb_device_ptr *counters) {
  *sums = op->carry_sums;
  *counters = op->carry_counters;
}

cb_device_ptr cb_operator_array(const struct cb_operator *op, int number) {
  return op->loaded->arrays[number];
}

const cb_device_ptr *cb_operator_arrays(const struct cb_operator *op) {
  return op->loaded->arrays;
}

const struct cb_operator_info *cb_operator_info(const struct cb_operator *op) {
  return &op->loaded->info;
}

/* ---- multiplying */

static enum cb_status check_scalars(const struct cb_operator_info *info, const struct cb_scalars *by,
                                    struct cb_diag *diag) {
  const double alpha = by->alpha, beta = by->beta;
  static const double fixed[] = {[CB_FORM_AX] = 0, [CB_FORM_ADD] = 1};
  const char *equation = cb_semiring_equation(info->semiring, (int)info->form);
  const int is_real = by->alpha_imag == 0 && by->beta_imag == 0;
  if (!is_real && !cb_type_is_complex(info->sum_type))
    return cb_fail(diag, CB_ERR_ARGUMENT,
                   "this operator's vectors are real: 'alpha_imag' and 'beta_imag' of the product are 0");
  if (info->form != CB_FORM_AXPBY) {
    if (is_real && alpha == 1 && beta == fixed[info->form]) return CB_OK;
    return cb_fail(diag, CB_ERR_ARGUMENT,
                   "this kernel computes '%s': alpha must be 1 and beta %g; generate it with form=axpby for others",
                   equation, fixed[info->form]);
  }
  if (info->semiring == CB_PLUS_TIMES || (alpha == 1 && (beta == 0 || beta == 1))) return CB_OK;
  return cb_fail(diag, CB_ERR_ARGUMENT, "this kernel computes '%s': alpha must be 1, and beta 0 or 1", equation);
}

/* Kernels overlap where the GPU can. `kernel`: enum cb_vector_kernel, or one of ONE_VECTOR and HEADS. */
static cb_cu_result launch_kernel(const struct loaded *loaded, const struct launch *launch, int kernel, int apart,
                                  struct CUstream_st *stream, void **parameters) {
  struct CUfunc_st *const function = kernel == ONE_VECTOR ? launch->function
                                     : kernel == HEADS    ? launch->heads
                                                          : launch->many[kernel];
  const unsigned times = kernel < 0 ? 1 : (unsigned)cb_share_blocks(&loaded->shares[kernel]);
  const struct cb_cu_launch config = {.grid = {launch->blocks * times, 1, 1},
                                      .block = {launch->threads, 1, 1},
                                      .shared_bytes = launch->shared_bytes,
                                      .stream = stream};
  return cb_driver_launch(loaded->device->driver, function, config, loaded->overlap && !apart, parameters);
}

/* The text's struct Columns (templates/several.cu.in). */
struct columns {
  int64_t x_vector, y_vector;
  int32_t x_entry, y_entry, count;
};

/* Alpha or beta, as kernels take it: of real ones the first number, of complex ones both. */
struct scalar {
  double wide[2];
  float narrow[2];
};

/* What the kernels of a product take, in the order of their parameters. */
struct arguments {
  cb_device_ptr x, y;
  struct scalar alpha, beta;
  cb_device_ptr carry_sums, carry_counters;
  cb_device_ptr clocks;
  int apart;              /* launches do not overlap */
  int kernel;             /* for several vectors: which of them, and where they lie; else ONE_VECTOR or HEADS */
  struct columns columns;
  int pointers_count, scalars_count; /* of an epilogue */
  cb_device_ptr pointers[CB_MOST_NAMES];
  double scalars[CB_MOST_NAMES];
  float scalars_narrow[CB_MOST_NAMES];
};

static void list_epilogue(void **parameters, int *count, struct arguments *arguments, int narrow) {
  if (arguments->pointers_count) parameters[(*count)++] = arguments->pointers;
  for (int i = 0; i < arguments->scalars_count; i++)
    parameters[(*count)++] = narrow ? (void *)&arguments->scalars_narrow[i] : &arguments->scalars[i];
}

/* Drivers take parameters by pointers that are not const, and do not write them. */
static void list_parameters(void **parameters, struct arguments *arguments, const struct loaded *loaded,
                            const struct kernels *kernels, const struct launch *launch) {
  const int narrow = cb_type_of_part(loaded->info.sum_type) == CB_F32, family = kernels->tier == CB_TIER_FAMILY;
  int count = 0;
  for (int g = 0; g < launch->groups; g++) {
    const struct group *group = &kernels->groups[launch->first_group + g];
    if (group->sizes) parameters[count++] = (void *)group->sizes;
    if (group->pointers) parameters[count++] = (void *)group->pointers;
  }
  if (family) parameters[count++] = (void *)&kernels->shape;
  parameters[count++] = &arguments->x;
  parameters[count++] = &arguments->y;
  if (loaded->info.form == CB_FORM_AXPBY || family) {
    parameters[count++] = narrow ? (void *)arguments->alpha.narrow : arguments->alpha.wide;
    parameters[count++] = narrow ? (void *)arguments->beta.narrow : arguments->beta.wide;
  }
  if (loaded->info.has_carry || family) {
    parameters[count++] = &arguments->carry_sums;
    parameters[count++] = &arguments->carry_counters;
  }
  list_epilogue(parameters, &count, arguments, narrow);
  if (arguments->kernel >= 0) parameters[count++] = &arguments->columns;
  parameters[count++] = &arguments->clocks; /* others than clocked kernels have no such parameter */
}

static enum cb_status launch_all(const struct loaded *loaded, struct arguments *arguments, struct CUstream_st *stream,
                                 struct cb_diag *diag) {
  const struct cb_driver *driver = loaded->device->driver;
  void *parameters[2 * CB_IMAGE_GROUPS + OTHER_ARGUMENTS];
  const struct kernels *kernels = atomic_load_explicit(&loaded->kernels, memory_order_acquire);
  enum cb_status s = CB_OK;
  for (int i = 0; i < loaded->info.launches && !s; i++) {
    const struct launch *launch = &kernels->launches[i];
    list_parameters(parameters, arguments, loaded, kernels, launch);
    s = cb_driver_check(driver,
                        launch_kernel(loaded, launch, arguments->kernel, arguments->apart, stream, parameters), diag,
                        "launch kernel %d of the product", i);
  }
  return s;
}

static struct scalar scalar_of(double real, double imaginary) {
  return (struct scalar){{real, imaginary}, {cb_real_to_float(real), cb_real_to_float(imaginary)}};
}

/* All but an epilogue's. */
static struct arguments arguments_of(const struct cb_operator *op, const struct cb_scalars *by, cb_device_ptr x,
                                     cb_device_ptr y) {
  struct arguments arguments;
  arguments.x = x;
  arguments.y = y;
  arguments.alpha = scalar_of(by->alpha, by->alpha_imag);
  arguments.beta = scalar_of(by->beta, by->beta_imag);
  arguments.carry_sums = op->carry_sums;
  arguments.carry_counters = op->carry_counters;
  arguments.clocks = op->clocks;
  arguments.apart = op->apart;
  arguments.kernel = ONE_VECTOR;
  arguments.pointers_count = arguments.scalars_count = 0;
  return arguments;
}

enum cb_status cb_operator_multiply_by(const struct cb_operator *op, const struct cb_scalars *by, cb_device_ptr x,
                                       cb_device_ptr y, struct CUstream_st *stream, struct cb_diag *diag) {
  struct arguments arguments = arguments_of(op, by, x, y);
  if (op->loaded->statements)
    return cb_fail(diag, CB_ERR_ARGUMENT, "this operator has an epilogue, and the product says nothing of its vectors");
  const enum cb_status s = check_scalars(&op->loaded->info, by, diag);
  return s ? s : launch_all(op->loaded, &arguments, stream, diag);
}

enum cb_status cb_operator_multiply(const struct cb_operator *op, double alpha, cb_device_ptr x, double beta,
                                    cb_device_ptr y, struct CUstream_st *stream, struct cb_diag *diag) {
  const struct cb_scalars by = {.alpha = alpha, .beta = beta};
  return cb_operator_multiply_by(op, &by, x, y, stream, diag);
}

enum cb_status cb_operator_multiply_heads(const struct cb_operator *op, double alpha, cb_device_ptr x, double beta,
                                          cb_device_ptr y, struct CUstream_st *stream, struct cb_diag *diag) {
  const struct cb_scalars by = {.alpha = alpha, .beta = beta};
  struct arguments arguments = arguments_of(op, &by, x, y);
  arguments.kernel = HEADS;
  if (op->loaded->info.matrix_type != CB_SPLIT)
    return cb_fail(diag, CB_ERR_ARGUMENT, "this operator's values are in one part, so that there are no heads: compile it with 'split'");
  const enum cb_status s = check_scalars(&op->loaded->info, &by, diag);
  return s ? s : launch_all(op->loaded, &arguments, stream, diag);
}

/* ---- several vectors: the host section of a kernel.cu (templates/host.cu.in) does the same */

/* Whether `count` vectors from x and y on suit loads of several neighbours. */
static int are_packed(const struct loaded *loaded, const struct cb_dense *x, const struct cb_dense *y, int count) {
  const int piece = cb_share_piece(&loaded->shares[CB_VECTORS_PACKED], loaded->info.vector_type);
  const int size = (int)cb_type_size(loaded->info.vector_type);
  const unsigned align = (unsigned)(piece * size);
  const uint64_t places = x->at | y->at | (uint64_t)(x->entry * size) | (uint64_t)(y->entry * size);
  return x->vector == 1 && y->vector == 1 && places % align == 0 && count % piece == 0;
}

/* The kernel for the next vectors, and how many of `left` it takes. */
static int choose_kernel(const struct loaded *loaded, const struct cb_dense *x, const struct cb_dense *y, int left,
                         int *taken) {
  const struct cb_vector_share *shares = loaded->shares;
  const int packed = (int)cb_smaller(left, shares[CB_VECTORS_PACKED].each * shares[CB_VECTORS_PACKED].parts);
  const int strided = (int)cb_smaller(left, shares[CB_VECTORS_STRIDED].each * shares[CB_VECTORS_STRIDED].parts);
  *taken = 1;
  if (x->entry == 1 && y->entry == 1 && (left == 1 || strided == 1)) return ONE_VECTOR;
  *taken = packed;
  if (packed && are_packed(loaded, x, y, packed)) return CB_VECTORS_PACKED;
  const int copied = shares[CB_VECTORS_COPIED].each * shares[CB_VECTORS_COPIED].parts;
  *taken = (int)cb_smaller(left, copied);
  if (copied && 2 * left > copied) return CB_VECTORS_COPIED;
  *taken = strided;
  return CB_VECTORS_STRIDED;
}

/* Lays X of the product out by rows in the operator's scratch, where its kernels take it from. */
static enum cb_status copy_x(const struct cb_operator *op, struct arguments *arguments, struct CUstream_st *stream,
                             struct cb_diag *diag) {
  const struct loaded *loaded = op->loaded;
  const struct cb_driver *driver = loaded->device->driver;
  const struct cb_vector_share *share = &loaded->shares[CB_VECTORS_COPIED];
  const enum cb_type type = loaded->info.vector_type;
  struct kernels *kernels = atomic_load_explicit(&loaded->kernels, memory_order_acquire);
  struct launch launch = {.function = kernels->copy_x,
                          .blocks = (unsigned)cb_divide_up(loaded->info.cols, cb_copy_rows(share, type)),
                          .threads = CB_COPY_THREADS};
  cb_device_ptr rows = op->x_rows;
  void *parameters[] = {&arguments->x, &rows, &arguments->columns};
  const enum cb_status s =
      cb_driver_check(driver, launch_kernel(loaded, &launch, -1, arguments->apart, stream, parameters), diag,
                      "launch the kernel that lays X out");
  arguments->x = rows;
  arguments->columns.x_vector = 1;
  arguments->columns.x_entry = (int32_t)cb_copy_row_bytes(share, type);
  return s;
}

/* The product with X by rows, into rows of Y, and a launch that stores these with alpha and beta. */
static enum cb_status launch_copied(const struct cb_operator *op, struct arguments *arguments,
                                    struct CUstream_st *stream, struct cb_diag *diag) {
  const struct loaded *loaded = op->loaded;
  const struct cb_vector_share *share = &loaded->shares[CB_VECTORS_COPIED];
  const enum cb_type type = loaded->info.vector_type;
  const int narrow = loaded->info.sum_type == CB_F32;
  struct kernels *kernels = atomic_load_explicit(&loaded->kernels, memory_order_acquire);
  struct launch store = {.function = kernels->copy_y,
                         .blocks = (unsigned)cb_divide_up(loaded->info.rows, cb_copy_rows(share, type)),
                         .threads = CB_COPY_THREADS};
  struct arguments plain = *arguments;
  struct columns columns = arguments->columns;
  enum cb_status s = copy_x(op, &plain, stream, diag);
  if (!share->y_too) return s ? s : launch_all(loaded, &plain, stream, diag);
  plain.y = op->y_rows;
  plain.alpha = scalar_of(1, 0);
  plain.beta = scalar_of(0, 0);
  plain.columns.y_vector = 1;
  plain.columns.y_entry = plain.columns.x_entry;
  plain.columns.count = cb_share_vectors_of(share);
  if (!s) s = launch_all(loaded, &plain, stream, diag);
  if (s) return s;
  void *parameters[5] = {&plain.y, &arguments->y};
  int count = 2;
  if (loaded->info.form == CB_FORM_AXPBY) {
    parameters[count++] = narrow ? (void *)arguments->alpha.narrow : arguments->alpha.wide;
    parameters[count++] = narrow ? (void *)arguments->beta.narrow : arguments->beta.wide;
  }
  parameters[count] = &columns;
  return cb_driver_check(loaded->device->driver,
                         launch_kernel(loaded, &store, -1, arguments->apart, stream, parameters), diag,
                         "launch the kernel that stores Y");
}

static enum cb_status check_many(const struct loaded *loaded, const struct cb_dense *x, const struct cb_dense *y,
                                 int count, struct cb_diag *diag) {
  const int64_t most = INT32_MAX / (int64_t)cb_type_size(loaded->info.vector_type);
  if (loaded->statements)
    return cb_fail(diag, CB_ERR_ARGUMENT, "this operator has an epilogue, which takes one vector at a time");
  if (loaded->info.vectors == 1 && (x->entry != 1 || y->entry != 1) && count)
    return cb_fail(diag, CB_ERR_UNSUPPORTED,
                   "this operator was compiled for one vector, so X and Y lie by columns; set 'vectors' of the request");
  if (x->entry > most || y->entry > most)
    return cb_fail(diag, CB_ERR_LIMIT, "%lld elements from one row to the next are more than %lld",
                   (long long)(x->entry > y->entry ? x->entry : y->entry), (long long)most);
  return CB_OK;
}

enum cb_status cb_operator_multiply_many(const struct cb_operator *op, int count, const struct cb_scalars *by,
                                         struct cb_dense x, struct cb_dense y, struct CUstream_st *stream,
                                         struct cb_diag *diag) {
  const struct loaded *loaded = op->loaded;
  const int64_t size = (int64_t)cb_type_size(loaded->info.vector_type);
  enum cb_status s = check_scalars(&loaded->info, by, diag);
  if (!s) s = check_many(loaded, &x, &y, count, diag);
  for (int taken; count > 0 && !s; count -= taken) {
    struct arguments arguments = arguments_of(op, by, x.at, y.at);
    taken = 1;
    if (loaded->info.vectors > 1) arguments.kernel = choose_kernel(loaded, &x, &y, count, &taken);
    arguments.columns =
        (struct columns){x.vector, y.vector, (int32_t)(x.entry * size), (int32_t)(y.entry * size), taken};
    s = arguments.kernel == CB_VECTORS_COPIED ? launch_copied(op, &arguments, stream, diag)
                                              : launch_all(loaded, &arguments, stream, diag);
    x.at += (cb_device_ptr)(taken * x.vector * size);
    y.at += (cb_device_ptr)(taken * y.vector * size);
  }
  return s;
}

enum cb_status cb_operator_apply(const struct cb_operator *op, cb_device_ptr x, const struct cb_operands *operands,
                                 struct CUstream_st *stream, struct cb_diag *diag) {
  const struct cb_statements *statements = op->loaded->statements;
  struct arguments arguments = {.x = x,
                                .alpha = scalar_of(1, 0),
                                .carry_sums = op->carry_sums,
                                .carry_counters = op->carry_counters,
                                .clocks = op->clocks,
                                .kernel = ONE_VECTOR};
  for (int i = 0; i < statements->names_count; i++) {
    if (!cb_name_is_given(&statements->names[i])) continue;
    if (statements->names[i].kind != CB_NAME_SCALAR) {
      arguments.pointers[arguments.pointers_count++] = operands->pointers[i];
      continue;
    }
    arguments.scalars[arguments.scalars_count] = operands->scalars[i];
    arguments.scalars_narrow[arguments.scalars_count++] = cb_real_to_float(operands->scalars[i]);
  }
  return launch_all(op->loaded, &arguments, stream, diag);
}
