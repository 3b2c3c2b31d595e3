// SPDX-License-Identifier: Apache-2.0
/* What a caller may choose about analysis and generation. What concerns every kernel has a field of its own here and a
 * row in options.c. What concerns one layout has a row in that layout's table (cb_layout.options), and its value is one
 * of the `settings`. The tool's --NAME=VALUE, the API's options, help and the cache's keys walk all these tables.
 */
#ifndef CBGEN_ANALYSIS_OPTIONS_H
#define CBGEN_ANALYSIS_OPTIONS_H

#include "analysis/option.h"
#include "analysis/semiring.h"
#include "base/status.h"
#include "base/text.h"
#include "base/types.h"

#include <stdint.h>

enum cb_commits { CB_COMMITS_ANY, CB_COMMITS_ONCE }; /* how often a product writes a row of y */
enum cb_form { CB_FORM_AX, CB_FORM_ADD, CB_FORM_AXPBY }; /* y = Ax, y += Ax, y = αAx + βy */
enum cb_tune { CB_TUNE_OFF, CB_TUNE_MODEL, CB_TUNE_MEASURE };
enum cb_value_promise { CB_VALUES_DATA, CB_VALUES_FIXED };
enum cb_search { CB_SEARCH_HOPEFUL, CB_SEARCH_ALL, CB_SEARCH_PROFILE, CB_SEARCH_READY };

enum cb_symmetry_option {
  CB_SYMMETRIC_AUTO,
  CB_SYMMETRIC_ON,
  CB_SYMMETRIC_SKEW,
  CB_SYMMETRIC_HERMITIAN,
  CB_SYMMETRIC_OFF
};

enum { CB_MOST_VECTORS = 32 }; /* of one launch; more take several */

enum { CB_MAX_LAYOUTS = 16, CB_MAX_SETTINGS = 16 /* of a layout */ };

struct cb_options {
  /* what the product computes */
  int64_t type;     /* enum cb_precision: types of matrix values, vectors and sums */
  int64_t form;     /* enum cb_form */
  int64_t semiring; /* enum cb_semiring */
  int64_t conjugate; /* enum cb_switch, CB_ON: products are those of the matrix with conjugated values */
  int64_t values;   /* enum cb_value_promise: CB_VALUES_FIXED says that they will never change */
  int64_t symmetric; /* enum cb_symmetry_option: CB_SYMMETRIC_ON, _SKEW and _HERMITIAN promise that entry (j, i) is
                      * entry (i, j), that with the other sign, or its conjugate, whatever values there will be: the
                      * lower triangle counts. auto: where values are fixed, they tell */
  int64_t stay_in_l2;        /* enum cb_switch: whether what a product reads once is to be in L2 for the next one */
  int64_t symmetric_storage; /* enum cb_switch: whether layouts that can store half of such a matrix; auto: where its
                              * values are beyond L2, which else gives as many bytes for half as for all of them */
  int64_t check_symmetry; /* CB_ON: values that break that promise are found: those that are there by planning, new ones
                           * on the device */
  int64_t atomics;  /* CB_ON permits floating-point atomics: not repeatable bit for bit */
  int64_t commit;   /* enum cb_commits */
  int64_t vectors;  /* how many the text can multiply with at once, beside one; 1: no more */
  int64_t vector_threads; /* several vectors by rows: threads that share those of a row's work; 0: by the matrix */
  int64_t vector_blocks;  /* several vectors: thread blocks that a multiprocessor shall hold; 0: by a thread's sums */
  int64_t copy_x;   /* enum cb_switch: several vectors by columns are laid out by rows in scratch first, which makes the
                     * operator serve one stream at a time; auto: where that is predicted to be faster */
  const char *epilogue; /* statements for each row (analysis/statements), then form is ax and commit once; NULL or "":
                         * none. Not owned, outlives the options; no row of the table */
  /* which recipe */
  const char *recipe; /* name in the table of recipe.h; not owned, outlives the options */
  int64_t tune;     /* enum cb_tune: how a search ends: with its first recipe, or the cheapest as the cost model
                     * predicts, or the fastest of those that were timed (runtime/measure/tune.h; the
                     * model's in analysis) */
  int64_t search;   /* enum cb_search: whether recipes that cannot win are planned all the same; or one alone is,
                     * that of a profile (analysis/choose), where options and values leave the choice to that; ready: of
                     * those that set-up takes least for (struct cb_recipe), if one is not much slower */
  int64_t ready_loss; /* search ready: by so many ns such a recipe may be slower than the fastest */
  int64_t program_loss; /* by so many ns a recipe may be slower than the fastest of which programs can keep vectors in
                         * shared memory (struct cb_recipe): for operators that solvers are made of */
  int64_t one_meeting;  /* enum cb_switch: what suits programs is what suits those whose thread blocks meet once in an
                         * iteration, as cg's do for small systems */
  int64_t fuse;     /* enum cb_switch: parts of a split share a launch; auto: when that is predicted to be faster */
  int64_t long_row; /* recipes with a long-rows split: rows of more nonzeros than this are split off */
  /* text */
  int64_t bake_limit; /* index tables up to this many entries become part of the text */
  int64_t index_limit; /* indices and elements of arrays above it have 64 bits in the text; tests set it */
  /* the layouts' own: a row for each in the order of their table, in it the values in the order of its options */
  int64_t settings[CB_MAX_LAYOUTS][CB_MAX_SETTINGS];
};

void cb_options_default(struct cb_options *options);

/* Whether the caller promises that the matrix is symmetric, skew-symmetric or Hermitian. */
static inline int cb_promises_symmetry(const struct cb_options *options) {
  return options->symmetric != CB_SYMMETRIC_AUTO && options->symmetric != CB_SYMMETRIC_OFF;
}

/* Vectors that kernels for several take at once: as many as are asked for, or the next power of 2. */
static inline int cb_options_vectors(const struct cb_options *options) {
  int vectors = 1;
  while (vectors < options->vectors) vectors *= 2;
  return vectors;
}

/* The values of a layout's options, by their place in its table. */
struct cb_layout;
const int64_t *cb_settings(const struct cb_options *options, const struct cb_layout *layout);

/* All options by number: those that concern every kernel, then each layout's in the order of the layouts' table. NULL:
 * there are no more. */
const struct cb_option *cb_option_at(int number);
int cb_option_find(const char *name); /* its number; -1: there is none of that name */

/* The value of an option by its number, unless it is text. */
int64_t cb_option_value(const struct cb_options *options, int number);
void cb_option_set(struct cb_options *options, int number, int64_t value);

/* Sets the option `name` from text; CB_ERR_ARGUMENT names the option and what it accepts. */
enum cb_status cb_options_set(struct cb_options *options, const char *name, const char *value,
                              struct cb_diag *diag);

/* Sets the options that `settings` says: "sell-lanes=4 fuse=on". Those whose value is text are refused, since options do
 * not own it. */
enum cb_status cb_options_apply(struct cb_options *options, const char *settings, struct cb_diag *diag);

/* CB_ERR_ARGUMENT, with what to use instead, when `name` is an option that was removed or renamed. */
enum cb_status cb_options_check_removed(const char *name, struct cb_diag *diag);

/* Checks all values, and those that contradict each other (th1 <= th2 + 1). Every entry point of analysis calls it. */
enum cb_status cb_options_check(const struct cb_options *options, struct cb_diag *diag);

/* "  --NAME=VALUES  help (default)" lines for help texts, those of a layout below its name. */
void cb_options_help(struct cb_text *text);

#endif
