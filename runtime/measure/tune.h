// SPDX-License-Identifier: Apache-2.0
/* The choice of a recipe by measurement.
 *
 *   cb_tune            compiles the few best variants by the cost model, times them on the GPU, and hands over the
 *                      fastest with its plan and its compiled kernel
 *   cb_tuning_text     what was found, as text for a cache's entry            cb_tuning_parse  and back
 *
 * A variant is a recipe with some options set otherwise. The first round has the recipes of the search that are
 * predicted to take at most twice the time of the best, four at most. Then come neighbours of the fastest: half and
 * twice the lanes, two items more and less, as long as one is faster. Every variant is compiled in a thread of its
 * own, then loaded and timed alone.
 *
 * What is fastest in products need not be in solutions. Where the caller times these (`time_whole`), the fastest
 * variant of each recipe by products takes part, three at most, and beside it the recipe's own plan, which options may
 * have made for solutions.
 *
 * A variant that cannot be compiled or loaded, for want of memory too, is left out and says why. Time is bounded by
 * `expected_products`: what they could save, if a variant took half of its prediction, must exceed what timing it
 * costs.
 */
#ifndef CBGEN_RUNTIME_MEASURE_TUNE_H
#define CBGEN_RUNTIME_MEASURE_TUNE_H

#include "analysis/options.h"
#include "analysis/plan.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/text.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/make.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/operator/image.h"
#include "runtime/operator/operator.h"

#include <stddef.h>
#include <stdint.h>

enum { CB_TUNE_RECIPES = 4, CB_TUNE_VARIANTS = 10 };

struct cb_variant {
  char recipe[24];
  char settings[64]; /* "sell-lanes=16", several separated by blanks; "" */
  int64_t predicted_ns;
  int64_t measured_ns; /* of one product; 0: not timed */
  char reason[160];    /* why not; "" otherwise */
  int64_t whole_ns;    /* of what the request times beside products; 0: not timed */
};

struct cb_tuning {
  int cut_short;     /* 1: a variant was left out because the expected products would not repay its timing */
  int count, winner; /* the winner is one of the variants; untimed when nothing was worth timing */
  struct cb_variant variants[CB_TUNE_VARIANTS]; /* in the order in which they were tried */
};

/* Sets the recipe and the settings of a variant; CB_ERR_ARGUMENT when they are none. */
enum cb_status cb_variant_apply(struct cb_options *options, const struct cb_variant *variant,
                                struct cb_diag *diag);

/* An operator that is loaded. */
struct cb_tune_whole {
  const struct cb_image *image;
  struct cb_operator *op;
  cb_device_ptr ones, b, x;
  struct CUstream_st *stream;
};

struct cb_tune_request {
  const struct cb_csr *csr;         /* values may be missing: their numbers take no time */
  const struct cb_options *options; /* recipe auto, or another that neighbours are tried of */
  const struct cb_device *device;   /* its target is what is planned for */
  const struct cb_nvrtc *nvrtc;
  struct cb_hash pattern;    /* cb_csr_pattern_hash */
  const char *name;          /* of the matrix, for the text; NULL: the symbol */
  const char *symbol;        /* prefix of the kernels' names; NULL: "cbgen_" and the plan's id */
  int64_t expected_products; /* 0: many */
  /* What the operator is for, if not products: microseconds of it. `ones`: as many numbers of the vector type as the
   * matrix has columns, in device memory; b and x: likewise, x to be overwritten. With the device's context current.
   * Matrices have the given values where these are fixed, else others: -1, and a main diagonal that dominates. A
   * failure leaves the variant out. NULL: products */
  enum cb_status (*time_whole)(void *user, double *us, const struct cb_tune_whole *whole, struct cb_diag *diag);
  void *user;
};

/* All of it is the caller's: cb_tuned_release. The text is without data. */
struct cb_tuned {
  struct cb_tuning tuning;
  struct cb_options options; /* the request's with the winner's recipe and settings, and without tuning */
  struct cb_made made;       /* the winner; its plan's candidates are those of the search. Text and binary are empty
                              * when it was not compiled */
  double seconds;            /* all of it */
};

/* CB_ERR_DEVICE ends the tuning, as nothing can be done with the GPU afterwards. When no variant can be compiled and
 * loaded, the first failure is reported. Release `tuned` in any case. */
enum cb_status cb_tune(struct cb_tuned *tuned, const struct cb_tune_request *request, struct cb_diag *diag);
void cb_tuned_release(struct cb_tuned *tuned);

/* "sell", "sell sell-lanes=16". */
void cb_variant_name(struct cb_text *text, const struct cb_variant *variant);

/*   text    = "cbgen tuning 1\n" { variant "\n" }             the winner first
 *   variant = recipe "\t" settings "\t" predicted_ns "\t" measured_ns "\t" reason           */
void cb_tuning_text(struct cb_text *text, const struct cb_tuning *tuning);
/* CB_ERR_FORMAT: no such text, or its winner is no variant that this version knows. */
enum cb_status cb_tuning_parse(struct cb_tuning *tuning, const char *bytes, size_t length, struct cb_diag *diag);

#endif
