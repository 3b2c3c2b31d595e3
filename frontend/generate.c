// SPDX-License-Identifier: Apache-2.0
/* Making a matrix from its specification: the text is read against the shape's table row, then rows are
 * counted and filled in parallel. Everything depends on the seed and on positions alone, never on threads. */
#include "frontend/generate.h"

#include "base/memory.h"
#include "frontend/coo.h"
#include "frontend/shapes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum value_mode { UNIFORM, ONES, INTEGERS, SIGNED, TENTHS, HUNDREDTHS, SINGLE, VALUE_MODES };

static const char *const mode_names[VALUE_MODES] = {"uniform", "ones",       "integers", "signed",
                                                    "tenths",  "hundredths", "single"};

struct specification {
  const struct cb_shape *shape;
  struct cb_shape_args args;
  enum value_mode mode;
};

/* ---- the text */

static int same_word(const char *word, const char *text, size_t length) {
  return strlen(word) == length && !memcmp(word, text, length);
}

static enum cb_status fail_shape(const char *name, size_t length, struct cb_diag *diag) {
  char list[640];
  size_t used = 0;
  for (const struct cb_shape *shape = cb_shapes; shape->name && used < sizeof list; shape++)
    used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", shape->name);
  return cb_fail(diag, CB_ERR_ARGUMENT, "there is no shape '%.*s'; choose one of %s",
                 (int)(length < 32 ? length : 32), name, list);
}

static enum cb_status fail_key(const struct cb_shape *shape, const char *key, size_t length,
                               struct cb_diag *diag) {
  char list[256];
  size_t used = 0;
  for (const struct cb_shape_key *known = shape->keys; known->name; known++)
    used += (size_t)snprintf(list + used, sizeof list - used, "%s, ", known->name);
  return cb_fail(diag, CB_ERR_ARGUMENT, "shape '%s' has no key '%.*s'; its keys are %sseed and values",
                 shape->name, (int)(length < 32 ? length : 32), key, list);
}

static enum cb_status set_mode(enum value_mode *mode, const char *text, struct cb_diag *diag) {
  for (int i = 0; i < VALUE_MODES; i++) {
    if (strcmp(mode_names[i], text)) continue;
    *mode = (enum value_mode)i;
    return CB_OK;
  }
  return cb_fail(
      diag, CB_ERR_ARGUMENT,
      "'values=%s' is unknown; choose uniform, ones, integers, signed, tenths, hundredths or single", text);
}

static enum cb_status set_seed(uint64_t *seed, const char *text, struct cb_diag *diag) {
  char *end;
  errno = 0;
  *seed = strtoull(text, &end, 10);
  if (*text >= '0' && *text <= '9' && !*end && !errno) return CB_OK;
  return cb_fail(diag, CB_ERR_ARGUMENT, "'seed=%s' is not a whole number from 0 to %llu; give one", text,
                 (unsigned long long)UINT64_MAX);
}

/* A plain decimal number; no locale plays a part. Returns 0 if it is none. */
static int parse_number(double *number, const char *text) {
  double value = 0, unit = 1;
  int digits = 0, fraction = 0;
  for (; *text; text++) {
    if (*text == '.' && !fraction) {
      fraction = 1;
    } else if (*text >= '0' && *text <= '9' && digits < 18) {
      value = value * 10 + (*text - '0');
      unit *= fraction ? 10 : 1;
      digits++;
    } else {
      return 0;
    }
  }
  *number = value / unit;
  return digits > 0;
}

static enum cb_status set_number(double *number, const struct cb_shape *shape, const struct cb_shape_key *key,
                                 const char *text, struct cb_diag *diag) {
  if (!parse_number(number, text) || (!key->real && *number != (double)(int64_t)*number))
    return cb_fail(diag, CB_ERR_ARGUMENT,
                   "'%s=%s' of shape '%s' is not a %snumber; give one from %.0f to %.0f", key->name, text,
                   shape->name, key->real ? "" : "whole ", key->least, key->most);
  if (*number >= key->least && *number <= key->most) return CB_OK;
  return cb_fail(diag, CB_ERR_ARGUMENT,
                 "'%s=%s' of shape '%s' is out of range; give a number from %.0f to %.0f", key->name, text,
                 shape->name, key->least, key->most);
}

static enum cb_status set_key(struct specification *spec, const char *text, size_t length,
                              struct cb_diag *diag) {
  char value[64];
  const char *equals = memchr(text, '=', length);
  const size_t name = equals ? (size_t)(equals - text) : length, rest = equals ? length - name - 1 : 0;
  if (!equals || rest >= sizeof value)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'%.*s' of shape '%s' is not of the form KEY=VALUE; write it so",
                   (int)(length < 64 ? length : 64), text, spec->shape->name);
  memcpy(value, equals + 1, rest);
  value[rest] = 0;
  if (same_word("seed", text, name)) return set_seed(&spec->args.seed, value, diag);
  if (same_word("values", text, name)) return set_mode(&spec->mode, value, diag);
  for (int i = 0; spec->shape->keys[i].name; i++)
    if (same_word(spec->shape->keys[i].name, text, name))
      return set_number(&spec->args.value[i], spec->shape, &spec->shape->keys[i], value, diag);
  return fail_key(spec->shape, text, name, diag);
}

static enum cb_status parse_specification(struct specification *spec, const char *text,
                                          struct cb_diag *diag) {
  size_t length = strcspn(text, ",");
  *spec = (struct specification){.shape = cb_shapes, .args.seed = 1};
  while (spec->shape->name && !same_word(spec->shape->name, text, length)) spec->shape++;
  if (!spec->shape->name) return fail_shape(text, length, diag);
  for (int i = 0; spec->shape->keys[i].name; i++) spec->args.value[i] = spec->shape->keys[i].standard;
  while (text[length]) {
    text += length + 1;
    length = strcspn(text, ",");
    const enum cb_status s = set_key(spec, text, length, diag);
    if (s) return s;
  }
  for (int i = 0; spec->shape->keys[i].name; i++)
    if (spec->args.value[i] == CB_AS_FIRST) spec->args.value[i] = spec->args.value[0];
  return CB_OK;
}

/* ---- the matrix */

static double value_at(const struct specification *spec, int64_t row, int32_t col) {
  const uint64_t random = cb_random(~spec->args.seed, (uint64_t)row, (uint64_t)col);
  const int zeros = spec->shape->zero_share_at;
  if (zeros && cb_unit(cb_mix(random)) < spec->args.value[zeros]) return 0;
  switch (spec->mode) {
  case ONES:
    return !spec->shape->centre ? 1 : row == col ? spec->shape->centre : -1;
  case INTEGERS:
    return (double)(int)(random % 8 + 1) * (random >> 32 & 1 ? 1 : -1);
  case SIGNED:
    return (0.5 + cb_unit(random)) * (random & 1 ? 1 : -1); /* the lowest bit is not in cb_unit */
  case TENTHS:
    return (double)(random % 16 + 1) / 10;
  case HUNDREDTHS:
    return (double)(random % 250 + 1) / 100;
  case SINGLE:
    return (double)(float)(0.5 + cb_unit(random));
  default:
    return 0.5 + cb_unit(random);
  }
}

static void fill_values(struct cb_csr *csr, const struct specification *spec) {
#pragma omp parallel for schedule(dynamic, 256)
  for (int64_t row = 0; row < csr->rows; row++) {
    const int64_t end = cb_csr_row(csr, row + 1);
    for (int64_t i = cb_csr_row(csr, row); i < end; i++)
      csr->values[i] = value_at(spec, row, csr->col_idx[i]);
  }
}

static int64_t count_rows(const struct specification *spec, int64_t rows, int32_t *lengths) {
  int64_t nnz = 0;
#pragma omp parallel for schedule(dynamic, 256) reduction(+ : nnz)
  for (int64_t row = 0; row < rows; row++) {
    lengths[row] = (int32_t)spec->shape->row(&spec->args, row, NULL);
    nnz += lengths[row];
  }
  return nnz;
}

static void set_row_pointers(struct cb_csr *csr, const int32_t *lengths) {
  int64_t sum = 0;
  for (int64_t row = 0; row < csr->rows; row++) {
    sum += lengths[row];
    if (csr->wide)
      ((int64_t *)csr->row_ptr)[row + 1] = sum;
    else
      ((int32_t *)csr->row_ptr)[row + 1] = (int32_t)sum;
  }
}

static enum cb_status generate_by_rows(struct cb_csr *csr, const struct specification *spec, int64_t rows,
                                       int64_t cols, struct cb_diag *diag) {
  int32_t *lengths = cb_alloc((size_t)rows, sizeof *lengths);
  if (!lengths) return cb_fail_memory(diag, spec->shape->name, (unsigned long long)rows * sizeof *lengths);
  const int64_t nnz = count_rows(spec, rows, lengths);
  const enum cb_status s = cb_csr_alloc(csr, rows, cols, nnz, diag);
  if (!s) set_row_pointers(csr, lengths);
  cb_free(lengths);
  if (s) return s;
#pragma omp parallel for schedule(dynamic, 256)
  for (int64_t row = 0; row < rows; row++)
    spec->shape->row(&spec->args, row, csr->col_idx + cb_csr_row(csr, row));
  return CB_OK;
}

static enum cb_status generate_by_entries(struct cb_csr *csr, const struct specification *spec, int64_t rows,
                                          int64_t cols, struct cb_diag *diag) {
  struct cb_coo coo = {0};
  const enum cb_status s = spec->shape->entries(&spec->args, &coo, diag);
  if (s) return s;
  coo.rows = rows;
  coo.cols = cols;
  return cb_csr_from_coo(csr, &coo, diag);
}

enum cb_status cb_matrix_generate(struct cb_csr *csr, const char *specification, struct cb_diag *diag) {
  struct specification spec;
  int64_t rows, cols;
  *csr = (struct cb_csr){0};
  enum cb_status s = parse_specification(&spec, specification, diag);
  if (s) return s;
  spec.shape->size(&spec.args, &rows, &cols);
  s = cb_check_sizes(rows, cols, diag);
  if (s) return s;
  s = spec.shape->row ? generate_by_rows(csr, &spec, rows, cols, diag)
                      : generate_by_entries(csr, &spec, rows, cols, diag);
  if (s) return s;
  fill_values(csr, &spec);
  csr->pattern = 0;
  snprintf(csr->name, sizeof csr->name, "%s", spec.shape->name);
  return CB_OK;
}

/* ---- help */

static void describe_keys(char text[160], const struct cb_shape *shape) {
  size_t used = 0;
  text[0] = 0;
  for (int i = 0; shape->keys[i].name; i++) {
    const struct cb_shape_key *key = &shape->keys[i];
    used += (size_t)snprintf(text + used, 160 - used, "%s%s", i ? "," : "", key->name);
    if (key->standard == CB_AS_FIRST)
      used += (size_t)snprintf(text + used, 160 - used, "=%s", shape->keys[0].name);
    else if (key->standard != CB_NOT_GIVEN)
      used += (size_t)snprintf(text + used, 160 - used, key->real ? "=%.2f" : "=%.0f", key->standard);
  }
}

void cb_matrix_shapes(struct cb_text *text) {
  char keys[160];
  for (const struct cb_shape *shape = cb_shapes; shape->name; shape++) {
    describe_keys(keys, shape);
    cb_text_add(text, "%-14s  %-52s  %s\n", shape->name, keys, shape->help);
  }
}
