// SPDX-License-Identifier: Apache-2.0
/* What kernels pack an operator's arrays from (device_pack.h), beside the matrix: numbers and lists of each region.
 * They are found from a plan and its assignment. An entry of the cache keeps them as its section "packing", with the
 * arrays that no kernel fills, so that a matrix which is on the device already is packed without a plan:
 *
 *   packing = count wide kept { region } { array } { contents }
 *   region  = layout slots values filled warps shape { number } { bytes } { field }
 *   layout  = char[16]           its name; ends with a NUL
 *   number  = i64                CB_PACK_NUMBERS of them
 *   bytes   = i64                of each of CB_PACK_LISTS lists; 0: there is none
 *   field   = array width first count shift mask     CB_MOST_FIELDS of them; those that are not used have array -1
 *   array   = number bytes       `kept` arrays that no kernel fills, by their numbers in the image, ascending
 *   contents                     of the regions' lists, then of these arrays, each from a multiple of 256 on, zeros
 *                                between
 *
 * All else is i64, in the machine's byte order, as an entry's head. */
#ifndef CBGEN_RUNTIME_OPERATOR_PACKING_LISTS_H
#define CBGEN_RUNTIME_OPERATOR_PACKING_LISTS_H

#include "analysis/plan/assignment.h"
#include "runtime/operator/image.h"

enum { CB_MOST_PACKED = 16 /* regions */, CB_MOST_LISTED = 4 };

struct cb_packing_region {
  const char *layout; /* of the table of layouts */
  int64_t slots;
  int values, filled; /* numbers of the image's arrays: of value slots, and of bytes that a kernel fills with the shape;
                       * -1: none */
  int fields_count;
  struct cb_packing_field { /* an array of elements by slot, `width` bytes each */
    int array, width;
    int64_t first, count, shift, mask;
  } fields[CB_MOST_FIELDS];
  int listed_count;
  struct cb_packing_listed { /* an array whose elements a list of the survey's has: not of an entry's */
    int array, width;
    int64_t count;
    uint64_t list;
  } listed[CB_MOST_LISTED];
  struct cb_pack_lists lists;
};

struct cb_packing_lists {
  int count, wide; /* wide: numbers of nonzeros take 64 bits */
  struct cb_packing_region regions[CB_MOST_PACKED];
};

/* Refers to plan and assignment. CB_ERR_UNSUPPORTED: some region has no kernels, or is of a part of the matrix. */
enum cb_status cb_packing_lists_find(struct cb_packing_lists *lists, const struct cb_plan *plan,
                                     const struct cb_assignment *assignment, struct cb_diag *diag);

/* Bytes of the section, and of the image's contents and map that are not needed where it is used. */
int64_t cb_packing_lists_bytes(const struct cb_packing_lists *lists, const struct cb_image *image);
int64_t cb_packing_lists_spare(const struct cb_packing_lists *lists, const struct cb_image *image);

/* The section, of `cb_packing_lists_bytes`. */
void cb_packing_lists_write(unsigned char *bytes, const struct cb_packing_lists *lists, const struct cb_image *image);

/* Back from it: the lists refer to its bytes, as do `contents`, one of each of the image's arrays, NULL where kernels
 * fill it. CB_ERR_FORMAT: it is no such section, or not that of the image. */
enum cb_status cb_packing_lists_read(struct cb_packing_lists *lists, const void **contents,
                                     const struct cb_image *image, const struct cb_cache_section *section,
                                     struct cb_diag *diag);

#endif
