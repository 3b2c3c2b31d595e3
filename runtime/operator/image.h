// SPDX-License-Identifier: Apache-2.0
/* An image: everything that an operator is made from once its plan is gone, in numbers, strings and bytes.
 *
 *   cb_image_from_plan   what a plan, its label and its packed data say: for the tool, and after a cache's miss
 *   cb_image_write_texts its texts, where they were left for later
 *   cb_image_sections    as sections of bytes: for a cache's entry, or a block that the application owns
 *   cb_image_parse       back from them, every number checked: after a cache's hit, and to load such a block
 *
 * The packed arrays lie in one range of device memory, `packed_bytes` long. An array's contents may be
 * missing: those of value arrays, which are cleared (to zeros, or to NaNs: analysis/semiring.h) and then filled slot by
 * slot through the value map (runtime/operator/values.h).
 *
 * Sections (all numbers little-endian; a string is u32 length, bytes):
 *
 *   operator = version shape types target costs hashes carry recipe groups launches arrays ranges map
 *              as image_bytes.c writes them, one after the other; it is the grammar's authority
 *   plan json source                 text without a NUL
 *   cubin                            for target's architecture
 *   arrays                           contents of the arrays that have some, each from a multiple of 256 on
 *   map lists                        the value map, as values.h has its grammar; its lists, if there are any
 */
#ifndef CBGEN_RUNTIME_OPERATOR_IMAGE_H
#define CBGEN_RUNTIME_OPERATOR_IMAGE_H

#include "analysis/plan.h"
#include "analysis/plan/blob.h"
#include "base/arena.h"
#include "base/status.h"
#include "codegen/source.h"
#include "runtime/cache/cache.h"
#include "runtime/operator/values.h"

#include <stddef.h>
#include <stdint.h>

enum {
  CB_IMAGE_ARRAYS = 1024, /* the most that an image may have, of each kind */
  CB_IMAGE_SIZES = 1 << 14,
  CB_IMAGE_GROUPS = 64    /* regions with arrays in one launch */
};

struct cb_image_array {
  int64_t offset, bytes; /* in the packed data */
  int values;            /* 1: value slots and nothing else */
  const void *contents;  /* NULL: no slot holds anything, as cb_semiring_pads_with_nan says: zeros, or all bits set */
};

/* What a kernel gets of one region: consecutive pointers, and for a family's kernel (codegen/family.h) before them its
 * Sizes, consecutive ints. */
struct cb_image_group {
  int first_pointer, pointers, first_size, sizes;
};

struct cb_image_launch {
  char kernel[96];
  int64_t blocks, dynamic_shared;
  int threads;
  int first_group, groups;
};

/* The value slots of one region: consecutive elements of matrix_type. */
struct cb_image_range {
  int array; /* whose elements, or parts of it, from its beginning on, the slots are */
  struct cb_value_range map;
};

struct cb_image {
  int64_t rows, cols, nnz;
  enum cb_type matrix_type, vector_type, sum_type;
  enum cb_form form;
  enum cb_semiring semiring;
  int values; /* enum cbgen_values */
  struct cb_target target;
  int64_t stored_bytes;              /* what a product reads beside x and y */
  int64_t plan_ns, csr_ns;           /* predicted: a product, and one of cuSPARSE's with CSR */
  struct cb_hash plan_hash, pattern; /* pattern: of the matrix as it multiplies */
  uint64_t id;                       /* stands in the kernels' names */
  int64_t carry_sums, carry_counters;
  int vectors; /* that the kernels take at once, beside one, by further kernels of each launch; 1: no more */
  struct cb_vector_share shares[CB_VECTOR_KERNELS];
  const char *recipe;               /* that the plan followed */
  const char *line, *json, *source; /* NUL-terminated; the last two NULL until cb_image_write_texts */
  const struct cb_statements *statements; /* the epilogue's; NULL: none. Bytes have them in `json` */
  enum cb_tier tier; /* of the kernels */
  int64_t first_row_sum; /* for a family's kernels: struct Shape has it and rows and cols */
  int groups_count, launches_count, arrays_count, ranges_count, pointers_count, sizes_count;
  int *pointers;  /* an array's number, or -1: NULL */
  int32_t *sizes; /* for a family's kernels */
  struct cb_image_group *groups;
  struct cb_image_launch *launches;
  struct cb_image_array *arrays;
  struct cb_image_range *ranges;
  int64_t packed_bytes;
  int64_t entries;         /* of the caller's values, duplicates included */
  struct cb_value_map map; /* groups_count 0: not there */
  const void *cubin;
  size_t cubin_bytes;
  /* what it owns */
  struct cb_plan *plan; /* that texts are made from later; NULL: they are there, or the plan is the caller's */
  struct cb_arena arena;
};

struct cb_image_parts {
  const struct cb_plan *plan;
  const struct cb_label *label;   /* names the kernels */
  const struct cb_blob *blob;     /* contents of the arrays; NULL: none has any */
  const struct cb_source *source; /* the specialised text; NULL: "" */
  int texts_later;                /* 1: neither that nor the plan's JSON is made now */
  enum cb_tier tier;              /* of the kernels, and so of the cubin */
  const void *cubin;              /* compiled from the plan's text for the plan's target */
  size_t cubin_bytes;
};

/* Refers to the blob's bytes and the cubin, which must outlive the image; the plan, label and source need
 * not. CB_ERR_FORMAT: the blob is too short for the plan. Release the image in any case. */
enum cb_status cb_image_from_plan(struct cb_image *image, const struct cb_image_parts *parts,
                                  struct cb_diag *diag);
void cb_image_release(struct cb_image *image);

/* Makes the texts of an image that owns its plan, and frees the plan; the second call does nothing. They are those that
 * it would have had from the beginning. CB_ERR_MEMORY: it still has none. One thread at a time. */
enum cb_status cb_image_write_texts(struct cb_image *image, struct cb_diag *diag);

/* The numbers of the specialised kernels that take the arrays of `family`, an image of the other tier that has its
 * texts: groups, pointers and launches. It refers to `family` for all else, and has no cubin. Release it.
 * CB_ERR_MEMORY. */
enum cb_status cb_image_specialise(struct cb_image *image, const struct cb_image *family, struct cb_diag *diag);

/* The image of a family gets these numbers itself, and needs another cubin. CB_ERR_MEMORY: it stays as it is. */
enum cb_status cb_image_become_special(struct cb_image *image, struct cb_diag *diag);

/* Whether an image from sections, which may come from anywhere, says what its plan says: hashes, shape, types, costs,
 * arrays, ranges, launches and the names of their kernels. What a family's kernels get beside their arrays has no
 * second source: it is trusted as their code is. CB_ERR_FORMAT names what differs. */
enum cb_status cb_image_check_plan(const struct cb_image *image, struct cb_diag *diag);

/* Whether all arrays but value arrays have their contents. Whether there is a map for the slots, if there are any. */
int cb_image_has_arrays(const struct cb_image *image);
int cb_image_has_map(const struct cb_image *image);

/* ---- as sections of bytes */

enum { CB_IMAGE_SECTIONS = 8 };

struct cb_image_bytes {
  int count;
  struct cb_cache_section sections[CB_IMAGE_SECTIONS];
  void *operator_bytes, *owned[2]; /* what was written for them; the others are the image's */
};

/* Writes all that the image has, which has its texts. Arrays without contents and an empty map are left out; without
 * `data` all contents and the map are left out. The sections refer to the image and what it refers to. Release the
 * bytes in any case. */
enum cb_status cb_image_sections(struct cb_image_bytes *bytes, const struct cb_image *image, int data,
                                 struct cb_diag *diag);
void cb_image_bytes_release(struct cb_image_bytes *bytes);

/* The section "operator" alone, as above; and where the section "arrays" has the contents of array `number`
 * (-1: where it ends), when all arrays with contents are in it. */
void cb_image_write_numbers(struct cb_text *text, const struct cb_image *image, int data);
int64_t cb_image_place(const struct cb_image *image, int number);

/* The image refers to the sections' bytes. CB_ERR_FORMAT: they are not an image's, or its numbers do not fit
 * each other. `suspect` 1: the bytes may come from anywhere and have no checksum, so that every
 * entry of the map and the cubin are checked, too. Release the image in any case. */
enum cb_status cb_image_parse(struct cb_image *image, const struct cb_cache_section *sections, int count,
                              int suspect, struct cb_diag *diag);

/* Lets go of what an operator keeps no host copy of, the arrays' contents and the value map, and takes the
 * cubin over, so that the image refers to nothing but itself. */
enum cb_status cb_image_detach(struct cb_image *image, struct cb_diag *diag);

#endif
