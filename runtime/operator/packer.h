// SPDX-License-Identifier: Apache-2.0
/* The kernels that move values into slots on the device (templates/pack.cu.in): one module for a
 * stored type, with one kernel for each type that the caller's values may have.
 */
#ifndef CBGEN_RUNTIME_OPERATOR_PACKER_H
#define CBGEN_RUNTIME_OPERATOR_PACKER_H

#include "base/status.h"
#include "base/text.h"
#include "base/types.h"
#include "runtime/cuda/driver.h"

#include <stdint.h>

/* Thread blocks of its kernels, in which each warp takes a block of the map. */
struct cb_packer_shape {
  int threads; /* of a block */
  int blocks;  /* on a multiprocessor, for which there must be registers; half of them for complex numbers */
};
extern const struct cb_packer_shape cb_packer_shape;

/* CB_F64, CB_F32, CB_F16, CB_BF16; and for slots of complex types CB_C64, CB_C128 as well */
enum { CB_PACKER_SOURCES = 4, CB_PACKER_ALL_SOURCES = 6 };
static inline int cb_packer_sources(enum cb_type stored) {
  return cb_type_is_complex(stored) ? CB_PACKER_ALL_SOURCES : CB_PACKER_SOURCES;
}

/* The types of slots, each with its number among them. */
enum { CB_PACKER_SLOTS = 7 };
extern const enum cb_type cb_packer_slots[CB_PACKER_SLOTS];
static inline int cb_packer_number(enum cb_type stored) {
  return stored == CB_SPLIT ? CB_PACKER_SLOTS - 1 : (int)stored;
}

/* The module's CUDA text, for NVRTC: of that shape, or of another one, for measurements. Release the text in any
 * case. */
enum cb_status cb_packer_text(struct cb_text *text, enum cb_type stored, struct cb_diag *diag);
enum cb_status cb_packer_shaped_text(struct cb_text *text, enum cb_type stored, const struct cb_packer_shape *shape,
                                     struct cb_diag *diag);

struct cb_packer {
  const struct cb_device *device;
  enum cb_type stored;
  struct cb_packer_shape shape; /* that its text had: the usual one, unless the caller changes it after loading */
  struct CUmod_st *module;
  struct CUfunc_st *functions[CB_PACKER_ALL_SOURCES];
  void *cubin; /* a copy, for blocks that are saved */
  size_t cubin_bytes;
};

/* The device's context must be current here and below. Release the packer in any case. */
enum cb_status cb_packer_load(struct cb_packer *packer, const struct cb_device *device, enum cb_type stored,
                              const void *cubin, size_t cubin_bytes, struct cb_diag *diag);
void cb_packer_release(struct cb_packer *packer);

/* One range of slots, by its blocks of the value map (values.h). Device addresses. */
struct cb_packing {
  enum cb_type given;
  cb_device_ptr values, list_starts, list_entries, blocks, body, slots;
  int64_t values_count, slots_count, blocks_count, first_group; /* slots_count: of the range, if values are split */
  int64_t
      zeroed; /* of the range's first `zeroed` slots, those that are absent from the groups of its blocks become zero */
  cb_device_ptr lost; /* a uint32_t that is raised when a finite value becomes infinite in the stored type */
};
enum cb_status cb_packer_launch(const struct cb_packer *packer, const struct cb_packing *packing,
                                struct CUstream_st *stream, struct cb_diag *diag);

#endif
