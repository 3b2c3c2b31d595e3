// SPDX-License-Identifier: Apache-2.0
/* Element types of values and of index arrays, in one table: size, C name and the short name that options use. */
#ifndef CBGEN_BASE_TYPES_H
#define CBGEN_BASE_TYPES_H

#include <stddef.h>
#include <stdint.h>

enum cb_type { CB_F64, CB_F32, CB_F16, CB_BF16, CB_U8, CB_U16, CB_U32, CB_U64, CB_TYPE_COUNT };

size_t cb_type_size(enum cb_type type);           /* bytes */
const char *cb_type_c_name(enum cb_type type);    /* as the generated text spells it: "double", "uint16_t" */
const char *cb_type_short(enum cb_type type);     /* "f64", "u16" */
int cb_type_is_float(enum cb_type type);

/* The narrowest unsigned type that holds `largest`. */
enum cb_type cb_type_for(uint64_t largest);

/* The type with this short name ("f64"); CB_TYPE_COUNT if there is none. */
enum cb_type cb_type_named(const char *short_name);

#endif
