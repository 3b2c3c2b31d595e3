// SPDX-License-Identifier: Apache-2.0
/* The table of element types: see types.h. */
#include "base/types.h"

#include <string.h>

static const struct {
  size_t size;
  const char *c_name, *short_name;
} table[CB_TYPE_COUNT] = {
    [CB_F64] = {8, "double", "f64"},     [CB_F32] = {4, "float", "f32"},
    [CB_F16] = {2, "half_t", "f16"},     [CB_BF16] = {2, "bfloat16_t", "bf16"},
    [CB_C64] = {8, "complex64_t", "c64"}, [CB_C128] = {16, "complex128_t", "c128"},
    [CB_U8] = {1, "uint8_t", "u8"},      [CB_U16] = {2, "uint16_t", "u16"},
    [CB_U32] = {4, "uint32_t", "u32"},   [CB_U64] = {8, "uint64_t", "u64"},
    [CB_I8] = {1, "int8_t", "i8"},       [CB_I16] = {2, "int16_t", "i16"},
    [CB_SPLIT] = {8, "split_t", "split"},
};

size_t cb_type_size(enum cb_type type) { return table[type].size; }
const char *cb_type_c_name(enum cb_type type) { return table[type].c_name; }
const char *cb_type_short(enum cb_type type) { return table[type].short_name; }
const char *cb_type_entry_name(enum cb_type type) {
  return type == CB_F16 ? "half_entry_t" : type == CB_BF16 ? "bfloat16_entry_t" : cb_type_c_name(type);
}
int cb_type_is_float(enum cb_type type) { return type <= CB_C128 || type == CB_SPLIT; }

enum cb_type cb_type_for(uint64_t largest) {
  if (largest <= UINT8_MAX) return CB_U8;
  if (largest <= UINT16_MAX) return CB_U16;
  return largest <= UINT32_MAX ? CB_U32 : CB_U64;
}

enum cb_type cb_type_named(const char *short_name) {
  for (int type = 0; type < CB_TYPE_COUNT; type++)
    if (!strcmp(table[type].short_name, short_name)) return (enum cb_type)type;
  return CB_TYPE_COUNT;
}

const char *const cb_precision_names[] = {"f64", "f32", "f32-f64", "f16-f32", "bf16-f32", "f16", "bf16", "split-f64", "c128", "c64", NULL};

static const struct cb_types precisions[CB_PRECISION_COUNT] = {
    [CB_PRECISION_F64] = {CB_F64, CB_F64, CB_F64},      [CB_PRECISION_F32] = {CB_F32, CB_F32, CB_F32},
    [CB_PRECISION_F32_F64] = {CB_F32, CB_F64, CB_F64},  [CB_PRECISION_F16_F32] = {CB_F16, CB_F32, CB_F32},
    [CB_PRECISION_BF16_F32] = {CB_BF16, CB_F32, CB_F32}, [CB_PRECISION_F16] = {CB_F16, CB_F16, CB_F32},
    [CB_PRECISION_BF16] = {CB_BF16, CB_BF16, CB_F32},   [CB_PRECISION_SPLIT_F64] = {CB_SPLIT, CB_F64, CB_F64},
    [CB_PRECISION_C128] = {CB_C128, CB_C128, CB_C128},  [CB_PRECISION_C64] = {CB_C64, CB_C64, CB_C64},
};

struct cb_types cb_precision_types(enum cb_precision precision) { return precisions[precision]; }

const char *cb_types_name(struct cb_types types) {
  for (int i = 0; i < CB_PRECISION_COUNT; i++)
    if (precisions[i].matrix == types.matrix && precisions[i].vector == types.vector && precisions[i].sum == types.sum)
      return cb_precision_names[i];
  return "";
}
