// SPDX-License-Identifier: Apache-2.0
/* The table of options and what reads it: see options.h. */
#include "analysis/options.h"

#include "base/memory.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const forms[] = {"ax", "add", "axpby", NULL};
static const char *const auto_on_off[] = {"auto", "on", "off", NULL};
static const char *const on_off[] = {"on", "off", NULL};
static const char *const tunes[] = {"off", "model", "measure", NULL};
static const char *const promises[] = {"data", "fixed", NULL};
static const char *const balances[] = {"contiguous", "heap", NULL};
static const char *const searches[] = {"hopeful", "all", NULL};

static const char *const block_sizes[] = {"auto", "1x2", "2x1", "2x2", "3x3", "4x4", "5x5", "6x6", "8x8", NULL};

#define FIELD(field) offsetof(struct cb_options, field)

const struct cb_option cb_option_table[] = {
    {"type", FIELD(type), 0, CB_PRECISION_F64, CB_PRECISION_BF16_F32, CB_PRECISION_F64, cb_precision_names,
     "values of A, and, behind a dash where others, x, y and sums"},
    {"form", FIELD(form), 0, CB_FORM_AX, CB_FORM_AXPBY, CB_FORM_AXPBY, forms,
     "y = Ax, y += Ax, or y = alpha A x + beta y"},
    {"values", FIELD(values), 0, CB_VALUES_DATA, CB_VALUES_FIXED, CB_VALUES_DATA, promises,
     "fixed: they never change, so that what they have in common becomes text"},
    {"atomics", FIELD(atomics), 0, CB_ON, CB_OFF, CB_OFF, on_off,
     "permit floating-point atomics: not repeatable bit for bit"},
    {"recipe", FIELD(recipe), 1, 0, 0, 0, NULL, "which layouts store which part of the matrix"},
    {"tune", FIELD(tune), 0, CB_TUNE_OFF, CB_TUNE_MEASURE, CB_TUNE_MODEL, tunes,
     "recipe auto is sell, the best by the cost model, or the fastest on the GPU"},
    {"search", FIELD(search), 0, CB_SEARCH_HOPEFUL, CB_SEARCH_ALL, CB_SEARCH_HOPEFUL, searches,
     "recipe auto: plan all recipes, or only those that can win"},
    {"fuse", FIELD(fuse), 0, CB_AUTO, CB_OFF, CB_AUTO, auto_on_off,
     "parts of a split share one launch where they can; auto: when that is predicted to be faster"},
    {"long-row", FIELD(long_row), 0, 1, INT64_C(1) << 31, 1024, NULL,
     "recipes cb-long and sell-long: rows of more nonzeros are split off"},
    {"aggregate", FIELD(aggregate), 0, CB_AUTO, CB_OFF, CB_AUTO, auto_on_off,
     "column aggregation; auto asks --th0"},
    {"th0", FIELD(th0_percent), 0, 0, 100, 15, NULL,
     "aggregate above this percentage of super-sparse sub-blocks"},
    {"super-sparse", FIELD(super_sparse), 0, 1, 257, 32, NULL, "fewer nonzeros: a super-sparse sub-block"},
    {"th1", FIELD(th1), 0, 0, 257, 128, NULL, "sub-blocks with fewer nonzeros may be COO"},
    {"th2", FIELD(th2), 0, 0, 256, 208, NULL, "sub-blocks with more nonzeros are Dense; between: CSR"},
    {"coo-gain", FIELD(coo_gain), 0, 0, 100, 40, NULL,
     "COO only in panels where it takes this percentage fewer steps than CSR; 0: always"},
    {"intra", FIELD(intra), 0, CB_AUTO, CB_OFF, CB_AUTO, auto_on_off,
     "a sub-block's coordinates and values lie together"},
    {"balance", FIELD(balance), 0, CB_BALANCE_CONTIGUOUS, CB_BALANCE_HEAP, CB_BALANCE_CONTIGUOUS, balances,
     "how sub-blocks are dealt to thread blocks"},
    {"team", FIELD(team), 0, 0, 8, 0, NULL, "warps that share a panel at least: 1, 2, 4, 8; 0: by the matrix"},
    {"unit-budget", FIELD(unit_budget), 0, 0, INT64_C(1) << 31, 0, NULL,
     "nonzeros above which a panel is split; 0: by the matrix"},
    {"sell-lanes", FIELD(sell_lanes), 0, 0, 32, 0, NULL,
     "sliced ELL: lanes that share a row: 1, 2, 4, 8, 16, 32; 0: by the matrix"},
    {"sell-vector", FIELD(sell_vector), 0, 0, 4, 0, NULL,
     "sliced ELL: neighbouring nonzeros of a row that a lane loads at once: 1, 2, 4; 0: by the matrix"},
    {"sell-sort", FIELD(sell_sort), 0, CB_AUTO, CB_OFF, CB_AUTO, auto_on_off,
     "sliced ELL: order rows by length within windows"},
    {"sell-vary", FIELD(sell_vary), 0, CB_AUTO, CB_OFF, CB_AUTO, auto_on_off,
     "sliced ELL: lanes per row by slice, long rows in pieces"},
    {"block-size", FIELD(block_size), 0, 0, 8, 0, block_sizes, "natural blocks: rows x columns of a block"},
    {"block-fill", FIELD(block_fill), 0, 1, 100, 85, NULL,
     "natural blocks: refused when a smaller percentage of their entries is nonzeros"},
    {"block-lanes", FIELD(block_lanes), 0, 0, 32, 0, NULL,
     "natural blocks: lanes that share a block row: 1, 2, 4, 8, 16, 32; 0: by the matrix"},
    {"block-batch", FIELD(block_batch), 0, 0, 8, 0, NULL,
     "natural blocks: blocks that a lane loads together; 0: by the matrix"},
    {"dia-fill", FIELD(dia_fill), 0, 0, 100, 50, NULL,
     "recipe dia: percentage of a diagonal's places that must be occupied"},
    {"dia-most", FIELD(dia_most), 0, 1, 1024, 64, NULL, "recipe dia: largest number of diagonals"},
    {"dia-rows", FIELD(dia_rows), 0, 0, 32, 0, NULL,
     "recipe dia: rows of a thread where fixed values leave nothing to load; 0: by the matrix"},
    {"dia-stride", FIELD(dia_stride), 0, 0, INT32_MAX, 0, NULL,
     "recipe dia: what these rows are apart, where diagonals so far apart suit it; 1: no stride; 0: by the matrix"},
    {"dia-threads", FIELD(dia_threads), 0, 0, 1024, 0, NULL,
     "recipe dia: threads of a thread block, with a stride: 256, 512, 1024; 0: 512"},
    {"merge-items", FIELD(merge_items), 0, 0, 15, 0, NULL,
     "recipe merge: nonzeros of a lane, odd, 3 to 15; 0: by the matrix"},
    {"merge-piece", FIELD(merge_piece), 0, 0, INT64_C(1) << 20, 0, NULL,
     "recipe merge: long rows are cut into pieces of so many nonzeros; 0: by their length"},
    {"merge-pad", FIELD(merge_pad), 0, CB_AUTO, CB_OFF, CB_AUTO, auto_on_off,
     "recipe merge: thread blocks' nonzeros are padded to equal numbers"},
    {"hot-columns", FIELD(hot_columns), 0, 0, 65536, 0, NULL,
     "recipe hot: columns whose entries of x lie in shared memory; 0: by the matrix"},
    {"hot-share", FIELD(hot_share), 0, 0, 100, 25, NULL,
     "recipe hot: refused when hot columns hold a smaller percentage of the nonzeros"},
    {"hot-threads", FIELD(hot_threads), 0, 0, 1024, 0, NULL,
     "recipe hot: threads of a thread block: 256, 512, 1024; 0: by the matrix"},
    {"hot-batch", FIELD(hot_batch), 0, 0, 8, 0, NULL,
     "recipe hot: hot and cold steps each that a lane loads together; 0: by the matrix"},
    {"hot-gather", FIELD(hot_gather), 0, CB_AUTO, CB_OFF, CB_AUTO, auto_on_off,
     "recipe hot: a first launch lays the hot entries of x side by side"},
    {"hot-warm", FIELD(hot_warm), 0, 0, INT64_C(1) << 30, 0, NULL,
     "recipe hot: that launch does so for so many further columns; 0: by the matrix"},
    {"hot-three-bytes", FIELD(hot_three_bytes), 0, CB_AUTO, CB_OFF, CB_AUTO, auto_on_off,
     "recipe hot: indices of cold nonzeros in three bytes"},
    {"phase-columns", FIELD(phase_columns), 0, 0, INT64_C(1) << 24, 0, NULL,
     "recipe phases: columns that are split off; 0: by the matrix"},
    {"phase-row", FIELD(phase_row), 0, 0, 1024, 0, NULL,
     "recipe phases: nonzeros in these columns that a row must have; 0: by the matrix"},
    {"phase-set", FIELD(phase_set), 0, 0, 65536, 0, NULL,
     "recipe phases: entries of x in shared memory at a time, at most; 0: by the GPU"},
    {"phase-blocks", FIELD(phase_blocks), 0, 0, 2, 0, NULL,
     "recipe phases: thread blocks of a multiprocessor: 1, 2; 0: by the matrix"},
    {"phase-threads", FIELD(phase_threads), 0, 0, 1024, 0, NULL,
     "recipe phases: threads of a thread block: 256, 512, 1024; 0: by the matrix"},
    {"phase-batch", FIELD(phase_batch), 0, 0, 8, 0, NULL,
     "recipe phases: steps that a lane loads together; 0: by the matrix"},
    {"bake-limit", FIELD(bake_limit), 0, 0, 16384, 64, NULL,
     "index tables up to this many entries go into the text"},
    {"index-limit", FIELD(index_limit), 0, 0, INT32_MAX, INT32_MAX, NULL,
     "for tests: larger indices have 64 bits in the text"},
    {NULL, 0, 0, 0, 0, 0, NULL, NULL},
};

static int64_t *number_field(struct cb_options *options, const struct cb_option *option) {
  return (int64_t *)((char *)options + option->offset);
}

void cb_options_default(struct cb_options *options) {
  memset(options, 0, sizeof *options);
  options->recipe = "auto";
  for (const struct cb_option *option = cb_option_table; option->name; option++)
    if (!option->text) *number_field(options, option) = option->standard;
}

/* Number of edits between two short words: for suggestions. */
static size_t distance(const char *a, const char *b) {
  enum { LONGEST = 24 };
  size_t row[LONGEST + 1];
  const size_t length = strlen(b);
  if (length > LONGEST) return SIZE_MAX;
  for (size_t j = 0; j <= length; j++) row[j] = j;
  for (size_t i = 1; *a; a++, i++) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= length; j++) {
      const size_t replace = diagonal + (*a != b[j - 1]);
      const size_t insert = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
      diagonal = row[j];
      row[j] = replace < insert ? replace : insert;
    }
  }
  return row[length];
}

/* Options of recipes that were removed, by how their names begin, and the recipe to use instead. */
static const struct {
  const char *prefix, *recipe, *substitute;
} removed_options[] = {{"panel-", "panel", "sell"}};

enum cb_status cb_options_check_removed(const char *name, struct cb_diag *diag) {
  for (size_t i = 0; i < sizeof removed_options / sizeof *removed_options; i++)
    if (!strncmp(name, removed_options[i].prefix, strlen(removed_options[i].prefix)))
      return cb_fail(diag, CB_ERR_ARGUMENT, "option '%s' was removed with recipe '%s'; use recipe '%s'", name,
                     removed_options[i].recipe, removed_options[i].substitute);
  return CB_OK;
}

static enum cb_status fail_unknown(const char *name, struct cb_diag *diag) {
  const enum cb_status s = cb_options_check_removed(name, diag);
  if (s) return s;
  const struct cb_option *nearest = NULL;
  size_t least = 3; /* more edits are no misspelling */
  for (const struct cb_option *option = cb_option_table; option->name; option++) {
    const size_t edits = distance(name, option->name);
    if (edits >= least) continue;
    least = edits;
    nearest = option;
  }
  if (nearest)
    return cb_fail(diag, CB_ERR_ARGUMENT, "unknown option '%s'; did you mean '%s'?", name, nearest->name);
  return cb_fail(diag, CB_ERR_ARGUMENT, "unknown option '%s'", name);
}

static enum cb_status set_word(int64_t *field, const struct cb_option *option, const char *value,
                               struct cb_diag *diag) {
  struct cb_text accepted = {0};
  for (int i = 0; option->words[i]; i++) {
    if (!strcmp(option->words[i], value)) {
      *field = option->least + i;
      cb_text_release(&accepted);
      return CB_OK;
    }
    cb_text_add(&accepted, "%s'%s'", i ? ", " : "", option->words[i]);
  }
  cb_fail(diag, CB_ERR_ARGUMENT, "option '%s' cannot be '%s'; it takes %s", option->name, value,
          cb_text_string(&accepted));
  cb_text_release(&accepted);
  return CB_ERR_ARGUMENT;
}

static enum cb_status set_number(int64_t *field, const struct cb_option *option, const char *value,
                                 struct cb_diag *diag) {
  char *end;
  errno = 0;
  const long long number = strtoll(value, &end, 10);
  if (errno || end == value || *end || number < option->least || number > option->most)
    return cb_fail(diag, CB_ERR_ARGUMENT, "option '%s' cannot be '%s'; it takes a number from %lld to %lld",
                   option->name, value, (long long)option->least, (long long)option->most);
  *field = number;
  return CB_OK;
}

enum cb_status cb_options_set(struct cb_options *options, const char *name, const char *value,
                              struct cb_diag *diag) {
  for (const struct cb_option *option = cb_option_table; option->name; option++) {
    if (strcmp(option->name, name)) continue;
    if (option->text) {
      *(const char **)((char *)options + option->offset) = value;
      return CB_OK;
    }
    int64_t *field = number_field(options, option);
    return option->words ? set_word(field, option, value, diag) : set_number(field, option, value, diag);
  }
  return fail_unknown(name, diag);
}

enum cb_status cb_options_check(const struct cb_options *options, struct cb_diag *diag) {
  if (options->th1 > options->th2 + 1)
    return cb_fail(diag, CB_ERR_ARGUMENT, "option 'th1' is %lld but 'th2' is %lld: COO would overlap Dense; "
                                          "th1 may be at most th2 + 1",
                   (long long)options->th1, (long long)options->th2);
  if (options->team < 0 || options->team > 8 || (options->team & (options->team - 1)))
    return cb_fail(diag, CB_ERR_ARGUMENT, "option 'team' cannot be %lld; it takes 0, 1, 2, 4 or 8",
                   (long long)options->team);
  if (options->sell_lanes < 0 || options->sell_lanes > 32 || (options->sell_lanes & (options->sell_lanes - 1)))
    return cb_fail(diag, CB_ERR_ARGUMENT, "option 'sell-lanes' cannot be %lld; it takes 0, 1, 2, 4, 8, 16 or 32",
                   (long long)options->sell_lanes);
  if (options->sell_vector == 3)
    return cb_fail(diag, CB_ERR_ARGUMENT, "option 'sell-vector' cannot be 3; it takes 0, 1, 2 or 4");
  if (options->block_lanes < 0 || options->block_lanes > 32 || (options->block_lanes & (options->block_lanes - 1)))
    return cb_fail(diag, CB_ERR_ARGUMENT, "option 'block-lanes' cannot be %lld; it takes 0, 1, 2, 4, 8, 16 or 32",
                   (long long)options->block_lanes);
  if (options->merge_items && (options->merge_items < 3 || options->merge_items > 15 || options->merge_items % 2 == 0))
    return cb_fail(diag, CB_ERR_ARGUMENT, "option 'merge-items' cannot be %lld; it takes 0 or an odd number from 3 to 15",
                   (long long)options->merge_items);
  if (options->merge_piece && options->merge_piece < 256)
    return cb_fail(diag, CB_ERR_ARGUMENT, "option 'merge-piece' cannot be %lld; it takes 0 or at least 256",
                   (long long)options->merge_piece);
  const int64_t of_dia = options->dia_threads;
  if (of_dia && of_dia != 256 && of_dia != 512 && of_dia != 1024)
    return cb_fail(diag, CB_ERR_ARGUMENT, "option 'dia-threads' cannot be %lld; it takes 0, 256, 512 or 1024",
                   (long long)of_dia);
  const int64_t threads = options->hot_threads;
  if (threads && threads != 256 && threads != 512 && threads != 1024)
    return cb_fail(diag, CB_ERR_ARGUMENT, "option 'hot-threads' cannot be %lld; it takes 0, 256, 512 or 1024",
                   (long long)threads);
  const int64_t of_phase = options->phase_threads;
  if (of_phase && of_phase != 256 && of_phase != 512 && of_phase != 1024)
    return cb_fail(diag, CB_ERR_ARGUMENT, "option 'phase-threads' cannot be %lld; it takes 0, 256, 512 or 1024",
                   (long long)of_phase);
  if (options->phase_set && options->phase_set < 32)
    return cb_fail(diag, CB_ERR_ARGUMENT, "option 'phase-set' cannot be %lld; it takes 0 or at least 32",
                   (long long)options->phase_set);
  if (options->hot_warm > 0 && options->hot_gather == CB_OFF)
    return cb_fail(diag, CB_ERR_ARGUMENT, "option 'hot-warm' is %lld but 'hot-gather' is off: no launch would lay them "
                                          "side by side", (long long)options->hot_warm);
  if (options->unit_budget && options->unit_budget < 16)
    return cb_fail(diag, CB_ERR_ARGUMENT, "option 'unit-budget' cannot be %lld; it takes 0 or at least 16",
                   (long long)options->unit_budget);
  if (!options->recipe) return cb_fail(diag, CB_ERR_ARGUMENT, "option 'recipe' has no value");
  return CB_OK;
}

void cb_options_help(struct cb_text *text) {
  for (const struct cb_option *option = cb_option_table; option->name; option++) {
    struct cb_text values = {0};
    for (int i = 0; option->words && option->words[i]; i++)
      cb_text_add(&values, "%s%s", i ? "|" : "", option->words[i]);
    if (option->text) cb_text_add_string(&values, "NAME");
    else if (!option->words) cb_text_add_string(&values, "N");
    char name[64];
    snprintf(name, sizeof name, "--%s=%s", option->name, cb_text_string(&values));
    cb_text_add(text, "  %-30s %s", name, option->help);
    if (option->text) cb_text_add_string(text, " (auto)\n");
    else if (option->words) cb_text_add(text, " (%s)\n", option->words[option->standard - option->least]);
    else cb_text_add(text, " (%lld)\n", (long long)option->standard);
    cb_text_release(&values);
  }
}
