// SPDX-License-Identifier: Apache-2.0
/* GPUs' descriptions: see target_file.h. */
#include "runtime/cuda/target_file.h"

#include "base/file.h"
#include "base/json.h"
#include "runtime/cuda/calibration.h"

#include <stdio.h>
#include <string.h>

static const char format_name[] = "cbgen gpu 1";

/* The numbers that are no figures of a calibration, and what is plausible. */
static const struct {
  const char *name;
  size_t offset;
  int is_wide; /* int64_t, else int */
  int64_t least, most;
} sizes[] = {
    {"multiprocessors", offsetof(struct cb_target, multiprocessors), 0, 1, 4096},
    {"shared_per_block", offsetof(struct cb_target, shared_per_block), 0, 48 << 10, 16 << 20},
    {"shared_per_sm", offsetof(struct cb_target, shared_per_sm), 0, 48 << 10, 16 << 20},
    {"l2_bytes", offsetof(struct cb_target, l2_bytes), 1, 1 << 16, (int64_t)1 << 40},
};
enum { SIZES = sizeof sizes / sizeof *sizes };

static int64_t get_size(const struct cb_target *target, int i) {
  const char *at = (const char *)target + sizes[i].offset;
  int narrow;
  int64_t wide;
  memcpy(&narrow, at, sizeof narrow);
  memcpy(&wide, at, sizes[i].is_wide ? sizeof wide : 0);
  return sizes[i].is_wide ? wide : narrow;
}

static void set_size(struct cb_target *target, int i, int64_t value) {
  char *at = (char *)target + sizes[i].offset;
  const int narrow = (int)value;
  if (sizes[i].is_wide) memcpy(at, &value, sizeof value);
  else memcpy(at, &narrow, sizeof narrow);
}

enum cb_status cb_target_text(struct cb_text *text, const struct cb_target *target, struct cb_diag *diag) {
  int failed = 0;
  const struct cb_json root = cb_json_object(&failed);
  cb_json_set_text(root, "format", format_name);
  cb_json_set_text(root, "arch", target->arch);
  cb_json_set_text(root, "model", target->model);
  for (int i = 0; i < SIZES; i++) cb_json_set_integer(root, sizes[i].name, get_size(target, i));
  for (const struct cb_figure *figure = cb_figure_table; figure->name; figure++)
    cb_json_set_integer(root, figure->name, cb_figure_get(target, figure));
  const enum cb_status s = cb_json_write(text, root, JSON_INDENT(2), "a GPU's description", diag);
  cb_text_add_string(text, "\n");
  return s;
}

/* ---- reading */

static enum cb_status take_text(char *field, size_t size, const json_t *root, const char *name, struct cb_diag *diag) {
  const char *value = json_string_value(json_object_get(root, name));
  if (!value || !*value || strlen(value) >= size)
    return cb_fail(diag, CB_ERR_FORMAT, "'%s' is no text of 1 to %zu characters", name, size - 1);
  snprintf(field, size, "%s", value);
  return CB_OK;
}

static enum cb_status take_number(int64_t *number, const json_t *root, const char *name, int64_t least, int64_t most,
                                  struct cb_diag *diag) {
  const json_t *value = json_object_get(root, name);
  *number = json_integer_value(value);
  if (json_is_integer(value) && *number >= least && *number <= most) return CB_OK;
  return cb_fail(diag, CB_ERR_FORMAT, "'%s' is no whole number from %lld to %lld", name, (long long)least,
                 (long long)most);
}

static enum cb_status take(struct cb_target *target, const json_t *root, struct cb_diag *diag) {
  char format[sizeof format_name + 1];
  struct cb_target known;
  int64_t number;
  enum cb_status s = take_text(format, sizeof format, root, "format", diag);
  if (!s && strcmp(format, format_name))
    s = cb_fail(diag, CB_ERR_FORMAT, "'format' is '%s', not '%s'", format, format_name);
  if (!s) s = take_text(target->arch, sizeof target->arch, root, "arch", diag);
  if (!s) s = take_text(target->model, sizeof target->model, root, "model", diag);
  if (!s) s = cb_target_find(&known, target->arch, diag);
  for (int i = 0; i < SIZES && !s; i++) {
    s = take_number(&number, root, sizes[i].name, sizes[i].least, sizes[i].most, diag);
    if (!s) set_size(target, i, number);
  }
  for (const struct cb_figure *figure = cb_figure_table; figure->name && !s; figure++) {
    s = take_number(&number, root, figure->name, figure->least, figure->most, diag);
    if (!s) cb_figure_set(target, figure, number);
  }
  return s;
}

enum cb_status cb_target_read(struct cb_target *target, const char *path, struct cb_diag *diag) {
  struct cb_mapping file;
  struct cb_diag why = {0};
  json_t *root = NULL;
  enum cb_status s = cb_file_map(&file, path, diag);
  if (s) return s;
  memset(target, 0, sizeof *target);
  s = cb_json_read(&root, (const char *)file.bytes, file.length, &why);
  if (!s) s = take(target, root, &why);
  json_decref(root);
  cb_file_unmap(&file);
  return s ? cb_fail(diag, s, "%s: %s; 'cbgen cache gpu' writes one", path, why.message) : CB_OK;
}
