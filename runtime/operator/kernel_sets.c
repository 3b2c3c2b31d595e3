// SPDX-License-Identifier: Apache-2.0
/* The table of kernels that survey and pack: see kernel_sets.h. */
#include "runtime/operator/kernel_sets.h"

#include "analysis/choose/profile.h"
#include "analysis/tiles.h"
#include "base/integers.h"
#include "codegen/expand.h"
#include "codegen/source.h"

#include <stdio.h>
#include <string.h>

#define PACKS(layout, resident, ...)                                                                           \
  {layout "-indices", "pack_" layout, "indices", NULL,                                                         \
   {"cbgen_pack_numbers_32", "cbgen_pack_numbers_64", __VA_ARGS__}, resident},                                 \
  PACKS_VALUES(layout, resident, "f64", "Double"), PACKS_VALUES(layout, resident, "f32", "Float"),             \
  PACKS_VALUES(layout, resident, "f16", "Half"), PACKS_VALUES(layout, resident, "bf16", "Bfloat16")
#define PACKS_VALUES(layout, resident, type, stored)                                                           \
  {layout "-values-" type, "pack_" layout, "values", stored,                                                   \
   {"cbgen_pack_values_f64", "cbgen_pack_values_f32", "cbgen_pack_values_f16", "cbgen_pack_values_bf16"},      \
   resident}
/* of layouts that have index arrays by slot, and of those whose description has a shape */
#define COLUMNS "cbgen_pack_columns_32", "cbgen_pack_columns_64"
#define SHAPES "cbgen_pack_shape_32", "cbgen_pack_shape_64"

const struct cb_kernel_set cb_kernel_sets[] = {
    {"survey", "survey", NULL, NULL,
     {"cbgen_survey_columns_32", "cbgen_survey_columns_64", "cbgen_survey_rows_32_32", "cbgen_survey_rows_32_64",
      "cbgen_survey_rows_64_32", "cbgen_survey_rows_64_64", "cbgen_fetch_columns_32", "cbgen_fetch_columns_64"}, 0},
    {"profile", "profile", NULL, NULL,
     {"cbgen_count_lengths", "cbgen_fetch_starts", "cbgen_choose_columns_32", "cbgen_choose_columns_64"}, 0},
    {"diagonals", "diagonals", NULL, NULL,
     {"cbgen_count_diagonals_32", "cbgen_count_diagonals_64", "cbgen_list_diagonals"}, 0},
    {"tiles", "tiles", NULL, NULL, {"cbgen_count_tiles_32", "cbgen_count_tiles_64"}, 0},
    PACKS("sell", 0, COLUMNS),
    PACKS("dia", 0, SHAPES),
    PACKS("blocks", 0, COLUMNS, SHAPES),
    PACKS("merge", 0, COLUMNS),
    PACKS("hot", 5, COLUMNS, SHAPES), /* 48 registers; in 40, which compilers like, they would spill */
    {"columns", "columns", NULL, NULL,
     {"cbgen_count_columns_32", "cbgen_count_columns_64", "cbgen_count_marked_32", "cbgen_count_marked_64"}, 0},
    {"rows", "rows", NULL, NULL,
     {"cbgen_describe_ends", "cbgen_list_offsets", "cbgen_count_empty", "cbgen_list_empty", "cbgen_find_spans",
      "cbgen_measure_list", "cbgen_store_list", "cbgen_find_row_spans"}, 0},
    {"symmetry", "symmetry", NULL, NULL,
     {"cbgen_compare_pairs_16", "cbgen_compare_pairs_32", "cbgen_compare_pairs_64"}, 0},
    {"groups", "groups", NULL, NULL, {"cbgen_count_groups_32", "cbgen_count_groups_64"}, 0},
    {NULL, NULL, NULL, NULL, {NULL}, 0},
};
_Static_assert(sizeof cb_kernel_sets / sizeof *cb_kernel_sets <= CB_MOST_SETS + 1, "a session has room for them");

int cb_kernel_set_find(const char *name) {
  for (int i = 0; cb_kernel_sets[i].name; i++)
    if (!strcmp(cb_kernel_sets[i].name, name)) return i;
  return -1;
}

int cb_kernel_set_of(const char *layout, const char *part, enum cb_type stored) {
  char name[64];
  const int typed = strcmp(part, "indices") != 0;
  snprintf(name, sizeof name, "%s-%s%s%s", layout, part, typed ? "-" : "", typed ? cb_type_short(stored) : "");
  return cb_kernel_set_find(name);
}

/* By which the host counts a profile, too. */
static const struct {
  const char *name;
  int number;
} numbers[] = {
    {"group_rows", CB_CHOICE_GROUP}, {"long_row", CB_CHOICE_LONG}, {"group_nonzeros", CB_CHOICE_DEVICE_MOST},
    {"alike", CB_CHOICE_ALIKE},      {"bins", CB_CHOICE_BINS},     {"tile_sizes", CB_TILE_SIZES},
    {"run", CB_CHOICE_RUN},          {"steps", CB_CHOICE_STEPS},
};
enum { NUMBERS = sizeof numbers / sizeof *numbers, DIGITS = 16 };

static void add_numbers(struct cb_scope *scope, char texts[NUMBERS][DIGITS]) {
  for (int i = 0; i < NUMBERS; i++) {
    snprintf(texts[i], DIGITS, "%d", numbers[i].number);
    cb_scope_optional(scope, numbers[i].name, texts[i]);
  }
}

enum cb_status cb_kernel_set_text(struct cb_text *text, const struct cb_kernel_set *set, struct cb_diag *diag) {
  struct cb_scope scope = {0};
  struct cb_text body = {0};
  char threads[16], bounds[32] = "kThreads", texts[NUMBERS][DIGITS];
  snprintf(threads, sizeof threads, "%d", CB_SET_THREADS);
  if (set->resident) snprintf(bounds, sizeof bounds, "kThreads, %d", set->resident);
  cb_scope_placeholder(&scope, "threads", threads);
  cb_scope_optional(&scope, "bounds", bounds);
  add_numbers(&scope, texts);
  if (set->section) cb_scope_section(&scope, set->section);
  if (set->stored) cb_scope_placeholder(&scope, "stored", set->stored);
  enum cb_status s = cb_expand(&body, set->template, &scope, diag);
  if (!s) s = cb_scope_check(&scope, set->name, diag);
  if (!s) s = cb_source_with_prelude(text, &body, diag);
  cb_text_release(&body);
  return s;
}

/* Kernels are loaded by their first launch, so that those which are not needed never are. */
enum cb_status cb_kernels_load(struct cb_kernels *kernels, const struct cb_device *device,
                               const struct cb_kernel_set *set, const void *cubin, struct cb_diag *diag) {
  const struct cb_driver *driver = device->driver;
  *kernels = (struct cb_kernels){.device = device, .set = set};
  enum cb_status s = cb_driver_check(driver, driver->call.module_load(&kernels->module, cubin), diag,
                                     "load the kernels '%s'", set->name);
  if (s) kernels->module = NULL;
  for (int i = 0; set->kernels[i] && !s; i++)
    s = cb_driver_check(driver,
                        driver->call.module_function(&kernels->functions[i], kernels->module, set->kernels[i]), diag,
                        "find kernel '%s'", set->kernels[i]);
  return s;
}

enum cb_status cb_kernels_prepare(const struct cb_kernels *kernels, struct cb_diag *diag) {
  const struct cb_driver *driver = kernels->device->driver;
  enum cb_status s = CB_OK;
  for (int i = 0; kernels->set->kernels[i] && driver->call.function_load && !s; i++)
    s = cb_driver_check(driver, driver->call.function_load(kernels->functions[i]), diag, "load kernel '%s'",
                        kernels->set->kernels[i]);
  return s;
}

void cb_kernels_release(struct cb_kernels *kernels) {
  if (kernels->module) kernels->device->driver->call.module_unload(kernels->module);
  *kernels = (struct cb_kernels){0};
}

enum cb_status cb_kernels_launch_named(const struct cb_kernels *kernels, const char *name, int64_t threads,
                                       struct CUstream_st *stream, void **parameters, struct cb_diag *diag) {
  for (int i = 0; kernels->set->kernels[i]; i++)
    if (!strcmp(kernels->set->kernels[i], name))
      return cb_kernels_launch(kernels, i, threads, stream, parameters, diag);
  return cb_fail(diag, CB_ERR_INTERNAL, "the kernels '%s' have none of the name '%s'", kernels->set->name, name);
}

enum cb_status cb_kernels_launch(const struct cb_kernels *kernels, int number, int64_t threads,
                                 struct CUstream_st *stream, void **parameters, struct cb_diag *diag) {
  const struct cb_driver *driver = kernels->device->driver;
  const int64_t blocks = cb_divide_up(threads, CB_SET_THREADS);
  const char *name = kernels->set->kernels[number];
  if (!blocks) return CB_OK;
  if (blocks > INT32_MAX)
    return cb_fail(diag, CB_ERR_LIMIT, "kernel '%s' would take %lld thread blocks; a GPU takes up to %d", name,
                   (long long)blocks, INT32_MAX);
  return cb_driver_check(driver,
                         driver->call.launch(kernels->functions[number], (unsigned)blocks, 1, 1, CB_SET_THREADS, 1, 1,
                                             0, stream, parameters, NULL),
                         diag, "launch kernel '%s'", name);
}
