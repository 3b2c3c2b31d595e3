// SPDX-License-Identifier: Apache-2.0
/* Element types of values and of index arrays, in one table: size, C name and short name; and the combinations of
 * types that a product may have. */
#ifndef CBGEN_BASE_TYPES_H
#define CBGEN_BASE_TYPES_H

#include <stddef.h>
#include <stdint.h>

enum cb_type {
  CB_F64,
  CB_F32,
  CB_F16,
  CB_BF16,
  CB_C64,  /* complex: two floats, or two doubles, the real part first */
  CB_C128,
  CB_U8,
  CB_U16,
  CB_U32,
  CB_U64,
  CB_I8,
  CB_I16,
  CB_SPLIT, /* f64 in two parts */
  CB_TYPE_COUNT
};

size_t cb_type_size(enum cb_type type);           /* bytes */
const char *cb_type_c_name(enum cb_type type);    /* as the generated text spells it: "double", "uint16_t" */
const char *cb_type_short(enum cb_type type);     /* "f64", "u16" */
const char *cb_type_entry_name(enum cb_type type); /* as the generated text spells an entry of x or y: "half_entry_t" */
int cb_type_is_float(enum cb_type type); /* of values: a real or complex number */

static inline int cb_type_is_complex(enum cb_type type) { return type == CB_C64 || type == CB_C128; }

/* Whether every value that can be given is kept whole. */
static inline int cb_type_is_widest(enum cb_type type) { return type == CB_F64 || type == CB_C128; }

/* The real numbers that a number is made of: how many, and their type. */
static inline int cb_type_parts(enum cb_type type) { return cb_type_is_complex(type) ? 2 : 1; }
static inline enum cb_type cb_type_of_part(enum cb_type type) {
  return type == CB_C64 ? CB_F32 : type == CB_C128 ? CB_F64 : type;
}

/* The type of a value's number: of split ones f64. */
static inline enum cb_type cb_type_of_number(enum cb_type type) {
  return type == CB_SPLIT ? CB_F64 : type;
}

/* The narrowest unsigned type that holds `largest`. */
enum cb_type cb_type_for(uint64_t largest);

/* The types of a product: values as stored, x and y, sums with α and β. */
struct cb_types {
  enum cb_type matrix, vector, sum;
};

/* The combinations there are; option `type` is one. Their names say the matrix's type, and behind a dash that of
 * vectors and sums where it is another. With f16 and bf16 alone, x and y are as narrow as the values, and sums f32.
 * Split values are doubles in two parts (base/split.h). Complex ones multiply complex vectors. */
enum cb_precision {
  CB_PRECISION_F64,
  CB_PRECISION_F32,
  CB_PRECISION_F32_F64,
  CB_PRECISION_F16_F32,
  CB_PRECISION_BF16_F32,
  CB_PRECISION_F16,
  CB_PRECISION_BF16,
  CB_PRECISION_SPLIT_F64,
  CB_PRECISION_C128,
  CB_PRECISION_C64,
  CB_PRECISION_COUNT
};
extern const char *const cb_precision_names[]; /* "f64", "f32-f64"; ends with NULL */
struct cb_types cb_precision_types(enum cb_precision precision);
/* Whether values, vectors and sums are; `precision` as options have it. */
static inline int cb_precision_is_complex(int64_t precision) {
  return cb_type_is_complex(cb_precision_types((enum cb_precision)precision).matrix);
}
const char *cb_types_name(struct cb_types types); /* of the combination; "" if it is none of them */

/* Whether y is narrower than the sums: what is stored in it is rounded, and only what is final may be. */
static inline int cb_rounds_y(enum cb_type vector, enum cb_type sum) {
  return cb_type_size(vector) < cb_type_size(sum);
}

/* The type with this short name ("f64"); CB_TYPE_COUNT if there is none. */
enum cb_type cb_type_named(const char *short_name);

#endif
