// SPDX-License-Identifier: Apache-2.0
/* Dealing lines, packing parts, loading and launching: see slabs.h. */
#include "runtime/solver/slabs.h"

#include "base/integers.h"
#include "base/memory.h"
#include "base/real.h"

#include <string.h>

enum {
  SIDES = 2,
  THREADS = 896, /* 72 registers of each */
  LANES = CB_SLAB_LANES,
  WARPS = THREADS / LANES,
  NARROW = 0xffff, /* the first number that has no room in an index of two bytes, or is that of what only fills */
  WORDS = 64       /* bytes */
};

struct cb_slabs {
  const struct cb_device *device;
  struct CUmod_st *module;
  struct CUfunc_st *function;
  struct cb_slab_shape shape;
  cb_device_ptr parts;
  enum cb_type type;
  int registers, local_bytes;
};

/* ---- who has which lines */

static int64_t length_of(const struct cb_csr *csr, int64_t line) {
  return cb_csr_row(csr, line + 1) - cb_csr_row(csr, line);
}

/* Lines in descending order of length, the first of equals first. */
static enum cb_status sort_lines(int32_t **order, const struct cb_csr *csr, struct cb_diag *diag) {
  int64_t most = 0;
  for (int64_t line = 0; line < csr->rows; line++) most = cb_larger(most, length_of(csr, line));
  int64_t *starts = cb_calloc((size_t)most + 2, sizeof *starts);
  *order = cb_alloc((size_t)csr->rows + 1, sizeof **order);
  if (!starts || !*order) {
    cb_free(starts);
    return cb_fail_memory(diag, "lines in order", (uint64_t)csr->rows);
  }
  for (int64_t line = 0; line < csr->rows; line++) starts[most - length_of(csr, line) + 1]++;
  for (int64_t i = 0; i <= most; i++) starts[i + 1] += starts[i];
  for (int64_t line = 0; line < csr->rows; line++) (*order)[starts[most - length_of(csr, line)]++] = (int32_t)line;
  cb_free(starts);
  return CB_OK;
}

/* Neighbouring lines for each thread block, with equal shares of entries and lines: what it hands on fills sectors that
 * nobody else writes to. Dealt one by one in the order of length 2400 x 55000 takes 8.2 us an iteration for 6.5. */
static void find_starts(int64_t *starts, const struct cb_csr *csr, int blocks) {
  enum { LINE = 8 }; /* entries that a line counts for */
  const int64_t whole = csr->nnz + LINE * csr->rows;
  int64_t line = 0;
  for (int block = 1; block < blocks; block++) {
    const int64_t least = starts[block - 1] + 1, most = csr->rows - (blocks - block);
    while (line < csr->rows && cb_csr_row(csr, line) + LINE * line < whole / blocks * block) line++;
    starts[block] = cb_larger(least, cb_smaller(line, most));
  }
  starts[blocks] = csr->rows;
}

/* Each thread block's lines in descending order of length. */
static enum cb_status deal_lines(struct cb_slab_deal *deal, int side, struct cb_diag *diag) {
  const struct cb_csr *csr = deal->matrices[side];
  const int blocks = deal->shape.blocks;
  int32_t *sorted = NULL;
  int64_t *ends = cb_calloc((size_t)blocks + 1, sizeof *ends);
  deal->starts[side] = cb_calloc((size_t)blocks + 1, sizeof *deal->starts[side]);
  deal->order[side] = cb_alloc((size_t)csr->rows + 1, sizeof *deal->order[side]);
  enum cb_status s = sort_lines(&sorted, csr, diag);
  if (!s && (!ends || !deal->starts[side] || !deal->order[side]))
    s = cb_fail_memory(diag, "lines in order", (uint64_t)csr->rows);
  if (!s) {
    find_starts(deal->starts[side], csr, blocks);
    for (int i = 0; i < blocks; i++) ends[i] = deal->starts[side][i];
    for (int64_t i = 0; i < csr->rows; i++) {
      int low = 0, high = blocks; /* the block that has the line: starts[low] <= line < starts[high] */
      while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (deal->starts[side][middle] <= sorted[i]) low = middle;
        else high = middle;
      }
      deal->order[side][ends[low]++] = sorted[i];
    }
  }
  cb_free(sorted);
  cb_free(ends);
  return s;
}

static int64_t lines_of(const struct cb_slab_deal *deal, int side, int block) {
  return deal->starts[side][block + 1] - deal->starts[side][block];
}

static int64_t steps_of(const struct cb_slab_deal *deal, int side, int64_t first, int block) {
  /* the first line of a slice is its longest */
  const int64_t line = deal->order[side][deal->starts[side][block] + first];
  return cb_divide_up(length_of(deal->matrices[side], line), (int64_t)deal->shape.sides[side].lanes);
}

/* As many lanes to a line as there are threads for, and entries. */
static void choose_lanes(struct cb_slab_side *side, int64_t entries, int blocks) {
  const int64_t lines = cb_divide_up(side->lines, (int64_t)blocks);
  side->lanes = 1;
  while (side->lanes < LANES && 2 * side->lanes * lines <= THREADS && side->lanes * side->lines < entries)
    side->lanes *= 2;
}

static void count_entries(struct cb_slab_deal *deal, int number) {
  enum { BATCH = 9 }; /* steps at once: as registers allow */
  struct cb_slab_side *side = &deal->shape.sides[number];
  const int each = LANES / side->lanes;
  int64_t longest = 1;
  for (int block = 0; block < deal->shape.blocks; block++) {
    const int64_t lines = lines_of(deal, number, block);
    int64_t steps = 0;
    for (int64_t first = 0; first < lines; first += each) {
      const int64_t own = steps_of(deal, number, first, block);
      steps += own;
      longest = cb_larger(longest, own);
    }
    side->most_lines = cb_larger(side->most_lines, lines);
    side->most_entries = cb_larger(side->most_entries, LANES * steps);
  }
  side->most_slices = cb_divide_up(side->most_lines, (int64_t)each);
  side->batch = (int)cb_divide_up(longest, cb_divide_up(longest, (int64_t)BATCH));
  deal->steps[number] = longest * cb_divide_up(side->most_slices, (int64_t)WARPS);
}

/* What a product takes of an iteration, in nanoseconds: a copy and gathers in shared memory, one step after the other;
 * or gathers from L2, as fast as it gives them, or as their chains allow. */
static int64_t ns_of(const struct cb_slab_deal *deal, int number, enum cb_type type) {
  enum { STEP = 25, COPIED = 30 /* bytes per nanosecond */, CHAIN = 700 };
  const struct cb_slab_side *side = &deal->shape.sides[number];
  const int64_t gathers = deal->matrices[number]->nnz / deal->shape.blocks;
  if (side->copied) return STEP * deal->steps[number] + side->across * (int64_t)cb_type_size(type) / COPIED;
  return cb_larger(gathers * 4 / 5, CHAIN * cb_divide_up(deal->steps[number], (int64_t)side->batch));
}

/* Whether an iteration is predicted to be faster than two fused products: a line of many entries is one warp's here. */
static int pays(const struct cb_slab_deal *deal, enum cb_type type) {
  enum { OWN = 1500, PRODUCTS = 3000, RATE = 165 /* gathers per microsecond and thousand */ };
  const int64_t products = PRODUCTS + 2 * deal->matrices[0]->nnz / RATE;
  return OWN + ns_of(deal, 0, type) + ns_of(deal, 1, type) < products;
}

/* What products multiply is copied where that takes no more than twice the sectors that a thread block would gather,
 * and there is room beside the rest; the shorter of the two first. If neither is, all that wait for numbers ask for
 * them again and again: 20000 x 80000 takes 22.1 us an iteration, 17.6 by products. */
static void choose_copies(struct cb_slab_deal *deal, const struct cb_target *target, enum cb_type type) {
  enum { VECTORS = 8, OTHERS = 4 << 10, SECTOR = 32 }; /* of a line; bytes */
  struct cb_slab_side *sides = deal->shape.sides;
  const int64_t size = (int64_t)cb_type_size(type);
  const int64_t gathered = SECTOR * (deal->matrices[0]->nnz / deal->shape.blocks);
  int64_t room = target->shared_per_block - OTHERS;
  for (int i = 0; i < SIDES; i++)
    room -= sides[i].most_entries * (size + sides[i].index_bytes) + sides[i].most_lines * (4 + VECTORS * size) +
            8 * sides[i].most_slices;
  const int shorter = sides[1].across < sides[0].across;
  for (int i = 0; i < SIDES; i++) {
    struct cb_slab_side *side = &sides[i ? !shorter : shorter];
    const int64_t bytes = side->across * size;
    side->copied = bytes <= 2 * gathered && bytes <= room;
    if (side->copied) room -= bytes;
  }
}

enum cb_status cb_slabs_deal(struct cb_slab_deal *deal, const struct cb_csr *const *matrices,
                             const struct cb_target *target, enum cb_type type, struct cb_diag *diag) {
  *deal = (struct cb_slab_deal){.shape = {.threads = THREADS}, .matrices = {matrices[0], matrices[1]}};
  struct cb_slab_shape *shape = &deal->shape;
  if (!matrices[0]->nnz || matrices[0]->rows > INT32_MAX || matrices[1]->rows > INT32_MAX)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "a matrix without entries, or with more than 2^31 lines");
  shape->blocks = (int)cb_smaller((int64_t)target->multiprocessors, cb_smaller(matrices[0]->rows, matrices[1]->rows));
  for (int i = 0; i < SIDES; i++) {
    struct cb_slab_side *side = &shape->sides[i];
    side->lines = matrices[i]->rows;
    side->across = matrices[i]->cols;
    side->index_bytes = side->across < NARROW ? 2 : 4;
    const enum cb_status s = deal_lines(deal, i, diag);
    if (s) return s;
    choose_lanes(side, matrices[i]->nnz, shape->blocks);
    count_entries(deal, i);
  }
  choose_copies(deal, target, type);
  if ((shape->sides[0].copied || shape->sides[1].copied) && pays(deal, type)) return CB_OK;
  return cb_fail(diag, CB_ERR_UNSUPPORTED, "products are predicted to be faster than iterations in shared memory");
}

void cb_slab_deal_release(struct cb_slab_deal *deal) {
  for (int i = 0; i < SIDES; i++) {
    cb_free(deal->order[i]);
    cb_free(deal->starts[i]);
  }
  *deal = (struct cb_slab_deal){0};
}

/* ---- parts of the matrix */

static void pack_slice(const struct cb_slab_deal *deal, int number, int block, int64_t first, int64_t lines,
                       int64_t begin, enum cb_type type, unsigned char *part) {
  const struct cb_slab_side *side = &deal->shape.sides[number];
  const struct cb_csr *csr = deal->matrices[number];
  const int64_t steps = steps_of(deal, number, first, block);
  for (int lane = 0; lane < LANES; lane++) {
    const int64_t own = first + lane / side->lanes;
    const int64_t line = own < lines ? deal->order[number][deal->starts[number][block] + own] : -1;
    for (int64_t step = 0; step < steps; step++) {
      const int64_t k = line < 0 ? INT64_MAX : cb_csr_row(csr, line) + step * side->lanes + lane % side->lanes;
      const int64_t at = begin + LANES * step + lane;
      const int is_entry = line >= 0 && k < cb_csr_row(csr, line + 1);
      const uint32_t index = is_entry ? (uint32_t)csr->col_idx[k] : UINT32_MAX;
      cb_real_set(part + side->values, type, at, is_entry ? csr->values[k] : 0);
      if (side->index_bytes == 2) ((uint16_t *)(part + side->indices))[at] = (uint16_t)index;
      else ((uint32_t *)(part + side->indices))[at] = index;
    }
  }
}

static void pack_side(const struct cb_slab_deal *deal, int number, int block, enum cb_type type, unsigned char *part) {
  const struct cb_slab_side *side = &deal->shape.sides[number];
  const int64_t lines = lines_of(deal, number, block);
  int32_t *slices = (int32_t *)(part + side->slices);
  int64_t begin = 0;
  *(int32_t *)(part + side->count) = (int32_t)lines;
  for (int64_t i = 0; i < lines; i++)
    ((int32_t *)(part + side->line_numbers))[i] = deal->order[number][deal->starts[number][block] + i];
  for (int64_t first = 0; first < lines; first += LANES / side->lanes) {
    const int64_t steps = steps_of(deal, number, first, block);
    *slices++ = (int32_t)begin;
    *slices++ = (int32_t)steps;
    pack_slice(deal, number, block, first, lines, begin, type, part);
    begin += LANES * steps;
  }
}

static enum cb_status put_parts(struct cb_slabs *slabs, const struct cb_slab_deal *deal, struct cb_diag *diag) {
  const struct cb_slab_shape *shape = &deal->shape;
  const size_t bytes = (size_t)shape->bytes * (size_t)shape->blocks;
  unsigned char *parts = cb_calloc(bytes, 1);
  if (!parts) return cb_fail_memory(diag, "parts of a matrix", bytes);
  for (int block = 0; block < shape->blocks; block++) {
    unsigned char *part = parts + (size_t)shape->bytes * (size_t)block;
    for (int i = 0; i < SIDES; i++) pack_side(deal, i, block, slabs->type, part);
  }
  enum cb_status s = cb_device_alloc(slabs->device, &slabs->parts, bytes, "parts of a matrix", diag);
  if (!s) s = cb_device_upload(slabs->device, slabs->parts, parts, bytes, "parts of a matrix", diag);
  cb_free(parts);
  return s;
}

/* ---- loading */

static enum cb_status find_kernel(struct cb_slabs *slabs, struct cb_diag *diag) {
  const struct cb_driver *driver = slabs->device->driver;
  const struct cb_slab_shape *shape = &slabs->shape;
  int each = 0;
  enum cb_status s = cb_driver_find_kernel(driver, &slabs->function, slabs->module, CB_SLABS_KERNEL, diag);
  if (!s)
    s = cb_driver_check(driver,
                        driver->call.function_set(slabs->function, CB_CU_FUNC_MAX_DYNAMIC_SHARED, (int)shape->shared),
                        diag, "give iterations %lld bytes of shared memory", (long long)shape->shared);
  if (!s)
    s = cb_driver_note_registers(driver, &slabs->registers, &slabs->local_bytes, slabs->function, CB_SLABS_KERNEL,
                                 diag);
  if (!s)
    s = cb_driver_check(driver, driver->call.occupancy(&each, slabs->function, shape->threads, (size_t)shape->shared),
                        diag, "ask how many thread blocks a multiprocessor holds");
  if (!s && (int64_t)each * slabs->device->target.multiprocessors < shape->blocks)
    s = cb_fail(diag, CB_ERR_LIMIT, "the GPU has no room for %d thread blocks at once", shape->blocks);
  return s;
}

static enum cb_status fill(struct cb_slabs *slabs, const struct cb_slab_deal *deal, const void *cubin,
                           struct cb_diag *diag) {
  const struct cb_driver *driver = slabs->device->driver;
  if (!driver->call.launch_with)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "the driver is too old for kernels whose thread blocks hand on numbers");
  enum cb_status s =
      cb_driver_check(driver, driver->call.module_load(&slabs->module, cubin), diag, "load iterations");
  if (s) slabs->module = NULL;
  if (!s) s = find_kernel(slabs, diag);
  return s ? s : put_parts(slabs, deal, diag);
}

enum cb_status cb_slabs_load(struct cb_slabs **out, const struct cb_device *device, const struct cb_slab_deal *deal,
                             enum cb_type type, const void *cubin, struct cb_diag *diag) {
  struct cb_slabs *slabs = cb_calloc(1, sizeof *slabs);
  *out = NULL;
  if (!slabs) return cb_fail_memory(diag, "iterations", sizeof *slabs);
  slabs->device = device;
  slabs->shape = deal->shape;
  slabs->type = type;
  const enum cb_status s = fill(slabs, deal, cubin, diag);
  if (s) cb_slabs_free(slabs);
  else *out = slabs;
  return s;
}

void cb_slabs_free(struct cb_slabs *slabs) {
  if (!slabs) return;
  if (slabs->parts) cb_device_free(slabs->device, slabs->parts);
  if (slabs->module) slabs->device->driver->call.module_unload(slabs->module);
  cb_free(slabs);
}

void cb_slabs_registers(const struct cb_slabs *slabs, struct cb_solver_info *info) {
  info->registers = (int)cb_larger(info->registers, slabs->registers);
  info->local_bytes = (int)cb_larger(info->local_bytes, slabs->local_bytes);
}

/* ---- launching */

int64_t cb_slabs_bytes(const struct cb_slabs *slabs) {
  if (!slabs) return 0;
  const struct cb_slab_side *sides = slabs->shape.sides;
  return WORDS + 2 * (sides[0].across + sides[1].across) * (int64_t)cb_type_size(slabs->type);
}

enum cb_status cb_slabs_launch(const struct cb_slabs *slabs, const struct cb_slabs_call *call,
                               struct CUstream_st *stream, struct cb_diag *diag) {
  const struct cb_driver *driver = slabs->device->driver;
  cb_device_ptr given = call->given, state = call->state, parts = slabs->parts, words = call->own,
                handed = call->own + WORDS;
  void *parameters[] = {(void *)call->vectors, &given, &state, &state, &parts, &handed, &words};
  struct cb_cu_launch_attribute attribute = {.id = CB_CU_LAUNCH_COOPERATIVE, .value.allowed = 1};
  const struct cb_cu_launch config = {.grid = {(unsigned)slabs->shape.blocks, 1, 1},
                                      .block = {(unsigned)slabs->shape.threads, 1, 1},
                                      .shared_bytes = (unsigned)slabs->shape.shared,
                                      .stream = stream,
                                      .attributes = &attribute,
                                      .attributes_count = 1};
  return cb_driver_check(driver, driver->call.launch_with(&config, slabs->function, parameters, NULL), diag,
                         "launch iterations");
}
