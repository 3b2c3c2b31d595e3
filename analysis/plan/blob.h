// SPDX-License-Identifier: Apache-2.0
/* The blob: the arrays that a kernel reads, packed, and the file that carries them ("kernel.cbd").
 *
 *   data     = header { array } [ selftest ]         little-endian; every part starts at a multiple of 256
 *   header   = magic version parts kernel_id bytes checksum       64 bytes
 *   magic    = "CBGENDAT"                             8 bytes
 *   version  = u32                                    2
 *   parts    = u32                                    1: without, 2: with the selftest part
 *   kernel_id= u128                                   cb_blob_id: plan and pattern; as in the kernel's text
 *   bytes    = u64                                    of the whole, header included: a multiple of 256
 *   checksum = u64                                    XXH64 of the whole, its own eight bytes taken as zero
 *   (16 bytes of the header are reserved and zero)
 *   array    = the elements of a STORED array; regions in order, arrays in order; padded with zeros
 *   selftest = f64 expected[rows] f64 tolerance[rows]  y = Ax for the seeded x of the text, and its bound
 *
 * Offsets follow from the plan, so the text bakes them and the file carries no table.
 *
 * The checksum covers every byte. It is XXH64, and neither XXH3 nor a CRC, because the text's load function has to
 * compute it, too, and a kernel's text depends on no library: for a multiple of 32 bytes XXH64 is 20 lines of C++
 * (templates/host.cu.in), XXH3 a hundred and a table. Each word goes through a bijection of its lane
 * (multiplied by an odd number, added, rotated, multiplied), so that damage within one word is always found, and any
 * other but for a chance of 2^-64; no operation leaves a flipped sign where a second flip could cancel it. Version 1
 * had a sum in which any two flipped signs did cancel, and which left out the header; its files are refused.
 */
#ifndef CBGEN_ANALYSIS_BLOB_H
#define CBGEN_ANALYSIS_BLOB_H

#include "analysis/plan.h"

enum { CB_BLOB_HEADER = 64, CB_BLOB_ALIGN = 256, CB_BLOB_VERSION = 2 };

struct cb_blob {
  unsigned char *bytes; /* the file image; owned */
  int64_t length;
  int selftest; /* has the selftest part */
};

/* Where array `array` of region `region` starts in the image (STORED arrays only). */
int64_t cb_blob_offset(const struct cb_plan *plan, int region, int array);
/* Where the arrays end: the offset of the selftest part, or the length without one. */
int64_t cb_blob_arrays_end(const struct cb_plan *plan);

/* The 128-bit id that ties text and data together. */
struct cb_hash cb_blob_id(const struct cb_plan *plan, struct cb_hash pattern);

/* Packs `csr` as planned. Parallel. */
enum cb_status cb_pack(struct cb_blob *blob, const struct cb_plan *plan, const struct cb_assignment *assignment,
                       const struct cb_csr *csr, struct cb_hash pattern, struct cb_diag *diag);
/* The same for a GPU: no file, so the header's length and checksum, which takes long, stay 0. Values come from
 * elsewhere, in canonical order (NULL: value slots stay zero), and the slot maps that packing makes are handed over:
 * `maps` (NULL: not wanted) has one place for each region; release them with cb_slot_map_release
 * (analysis/plan/assignment.h). None is left after a failure. */
struct cb_slot_map;
enum cb_status cb_pack_mapped(struct cb_blob *blob, struct cb_slot_map *maps, const struct cb_plan *plan,
                              const struct cb_assignment *assignment, const double *values,
                              struct cb_hash pattern, struct cb_diag *diag);
/* Whether array `array` of a region is stored and packed without a look at nonzeros; if so, its bytes to `to` (NULL:
 * just the answer). The others, whose elements belong to slots, are for kernels on the device then. */
int cb_pack_listed(const struct cb_plan *plan, const struct cb_assignment *assignment, int region, int array,
                   unsigned char *to);

/* Writes new values of the same pattern into a packed blob and renews its checksum. CB_ERR_ARGUMENT when the plan
 * was made for fixed values. */
enum cb_status cb_pack_values(struct cb_blob *blob, const struct cb_plan *plan,
                              const struct cb_assignment *assignment, const double *values, struct cb_diag *diag);
/* Appends the selftest part: rows expected values and tolerances. */
enum cb_status cb_blob_add_selftest(struct cb_blob *blob, const double *expected, const double *tolerance,
                                    int64_t rows, struct cb_diag *diag);
void cb_blob_release(struct cb_blob *blob);

/* Proves that the slots hold the matrix: every nonzero in exactly one slot, by counting. */
enum cb_status cb_assignment_check(const struct cb_plan *plan, const struct cb_assignment *assignment,
                                   struct cb_diag *diag);

#endif
