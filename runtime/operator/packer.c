// SPDX-License-Identifier: Apache-2.0
/* Kernels that move values into slots: see packer.h. */
#include "runtime/operator/packer.h"

#include "base/integers.h"
#include "base/memory.h"
#include "codegen/expand.h"
#include "codegen/source.h"
#include "runtime/operator/values.h"

#include <stdio.h>
#include <string.h>

const struct cb_packer_shape cb_packer_shape = {.threads = 256, .blocks = 8};

const enum cb_type cb_packer_slots[CB_PACKER_SLOTS] = {CB_F64, CB_F32, CB_F16, CB_BF16, CB_C64, CB_C128, CB_SPLIT};

static const char *const kernels[CB_PACKER_ALL_SOURCES] = {
    [CB_F64] = "cbgen_pack_f64",
    [CB_F32] = "cbgen_pack_f32",
    [CB_F16] = "cbgen_pack_f16",
    [CB_BF16] = "cbgen_pack_bf16",
    [CB_C64] = "cbgen_pack_c64",
    [CB_C128] = "cbgen_pack_c128",
};

enum cb_status cb_packer_shaped_text(struct cb_text *text, enum cb_type stored, const struct cb_packer_shape *shape,
                                     struct cb_diag *diag) {
  static const char *const names[CB_PACKER_SLOTS] = {"Double",    "Float",      "Half", "Bfloat16",
                                                      "Complex64", "Complex128", "Split"};
  const int complex_numbers = cb_type_is_complex(stored);
  struct cb_scope scope = {0};
  struct cb_text body = {0};
  char threads[16], blocks[16];
  snprintf(threads, sizeof threads, "%d", shape->threads);
  snprintf(blocks, sizeof blocks, "%d", complex_numbers ? (shape->blocks + 1) / 2 : shape->blocks);
  cb_scope_placeholder(&scope, "threads", threads);
  cb_scope_placeholder(&scope, "blocks", blocks);
  cb_scope_placeholder(&scope, "stored", names[cb_packer_number(stored)]);
  if (complex_numbers) cb_scope_section(&scope, "complex");
  enum cb_status s = cb_expand(&body, "pack", &scope, diag);
  if (!s) s = cb_scope_check(&scope, "the packing kernels", diag);
  if (!s) s = cb_source_with_prelude(text, &body, diag);
  cb_text_release(&body);
  return s;
}

enum cb_status cb_packer_text(struct cb_text *text, enum cb_type stored, struct cb_diag *diag) {
  return cb_packer_shaped_text(text, stored, &cb_packer_shape, diag);
}

/* ---- loading */

static enum cb_status find(struct cb_packer *packer, int source, struct cb_diag *diag) {
  return cb_driver_find_kernel(packer->device->driver, &packer->functions[source], packer->module, kernels[source],
                               diag);
}

enum cb_status cb_packer_load(struct cb_packer *packer, const struct cb_device *device, enum cb_type stored,
                              const void *cubin, size_t cubin_bytes, struct cb_diag *diag) {
  *packer = (struct cb_packer){.device = device,
                               .stored = stored,
                               .shape = cb_packer_shape,
                               .cubin_bytes = cubin_bytes};
  packer->cubin = cb_alloc(cubin_bytes + 1, 1);
  if (!packer->cubin) return cb_fail_memory(diag, "the packing kernels", cubin_bytes);
  memcpy(packer->cubin, cubin, cubin_bytes);
  enum cb_status s =
      cb_driver_check(device->driver, device->driver->call.module_load(&packer->module, packer->cubin), diag,
                      "load the packing kernels");
  if (s) packer->module = NULL;
  for (int source = 0; source < cb_packer_sources(stored) && !s; source++) s = find(packer, source, diag);
  return s;
}

void cb_packer_release(struct cb_packer *packer) {
  if (packer->module) packer->device->driver->call.module_unload(packer->module);
  cb_free(packer->cubin);
  *packer = (struct cb_packer){0};
}

/* ---- launching */

enum cb_status cb_packer_launch(const struct cb_packer *packer, const struct cb_packing *packing,
                                struct CUstream_st *stream, struct cb_diag *diag) {
  const struct cb_driver *driver = packer->device->driver;
  const int64_t warps = packer->shape.threads / 32, grid = cb_divide_up(packing->blocks_count, warps);
  struct cb_packing taken = *packing;
  void *parameters[] = {&taken.values,      &taken.values_count, &taken.list_starts, &taken.list_entries,
                        &taken.blocks,      &taken.body,         &taken.slots,       &taken.slots_count,
                        &taken.blocks_count, &taken.first_group, &taken.zeroed,      &taken.lost};
  if (!grid) return CB_OK;
  if (grid > INT32_MAX)
    return cb_fail(diag, CB_ERR_LIMIT, "a value map of %lld blocks is too long to be packed at once",
                   (long long)packing->blocks_count);
  return cb_driver_check(driver,
                         driver->call.launch(packer->functions[packing->given], (unsigned)grid, 1, 1,
                                             (unsigned)packer->shape.threads, 1, 1, 0, stream, parameters, NULL),
                         diag, "launch kernel '%s'", kernels[packing->given]);
}
