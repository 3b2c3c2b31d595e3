// SPDX-License-Identifier: Apache-2.0
/* What several tests need: matrices by specification or from a small dense picture, and a whole pass from a matrix
 * to plan, blob and text. Everything asserts through cmocka, with the message of the failing stage. */
#ifndef CBGEN_TESTS_SUPPORT_H
#define CBGEN_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analysis/plan/assignment.h"
#include "analysis/plan/blob.h"
#include "base/memory.h"
#include "base/text.h"
#include "codegen/source.h"
#include "frontend/generate.h"
#include "frontend/read.h"
#include "tests/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define assert_ok(call)                                                                                           \
  do {                                                                                                            \
    diag.message[0] = 0;                                                                                          \
    const enum cb_status status_of_call = (call);                                                                 \
    if (status_of_call) fail_msg("%s: %s (%s)", #call, diag.message, cb_status_name(status_of_call));             \
  } while (0)

/* Everything that one matrix becomes. */
struct product {
  struct cb_csr *csr; /* on the heap: the assignment refers to it */
  struct cb_options options;
  struct cb_target target;
  struct cb_plan *plan;
  struct cb_assignment *assignment;
  struct cb_blob blob;
  struct cb_source source;
  int region; /* that tests/layouts.h reads: the first, unless a test says otherwise */
};

static inline struct cb_csr matrix_of(const char *specification) {
  struct cb_diag diag = {0};
  struct cb_csr csr = {0};
  assert_ok(cb_matrix_generate(&csr, specification, &diag));
  return csr;
}

/* rows × cols with every entry present with probability per_mille / 1000, values 1, 2, 3, …. */
static inline struct cb_csr random_matrix(int64_t rows, int64_t cols, unsigned per_mille, uint64_t seed) {
  struct cb_diag diag = {0};
  struct cb_csr csr = {0};
  struct cb_coo coo = {.rows = rows, .cols = cols};
  const size_t room = (size_t)(rows * cols);
  coo.row_idx = cb_alloc(room, 4);
  coo.col_idx = cb_alloc(room, 4);
  coo.values = cb_alloc(room, 8);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < cols; j++) {
      if (draw(&seed) % 1000 >= per_mille) continue;
      coo.row_idx[coo.count] = (int32_t)i;
      coo.col_idx[coo.count] = (int32_t)j;
      coo.values[coo.count] = (double)(coo.count + 1);
      coo.count++;
    }
  assert_ok(cb_csr_from_coo(&csr, &coo, &diag));
  return csr;
}

/* A copy of `text` with the first `count` occurrences of `from` replaced; NULL when there are fewer. */
static inline char *replaced(const char *text, const char *from, const char *to, int count) {
  struct cb_text out = {0};
  for (; count > 0; count--) {
    const char *at = strstr(text, from);
    if (!at) {
      cb_text_release(&out);
      return NULL;
    }
    cb_text_add_bytes(&out, text, (size_t)(at - text));
    cb_text_add_string(&out, to);
    text = at + strlen(from);
  }
  cb_text_add_string(&out, text);
  return cb_text_detach(&out);
}

/* "name=value name=value": sets options. */
static inline void set_options(struct cb_options *options, const char *settings) {
  struct cb_diag diag = {0};
  static char kept[64][32]; /* cb_options keeps text values by pointer */
  static int next;
  char copy[512], *state = NULL;
  cb_options_default(options);
  options->recipe = "cb"; /* unless the settings say otherwise */
  assert_true(snprintf(copy, sizeof copy, "%s", settings ? settings : "") < (int)sizeof copy);
  for (char *word = strtok_r(copy, " ", &state); word; word = strtok_r(NULL, " ", &state)) {
    char *value = strchr(word, '=');
    assert_non_null(value);
    *value++ = 0;
    snprintf(kept[next % 64], sizeof kept[0], "%s", value);
    assert_ok(cb_options_set(options, word, kept[next++ % 64], &diag));
  }
}

/* Complex values where the type is: imaginary parts are the real ones in the other order, with the other sign. */
static inline void fit_values(struct cb_csr *csr, const struct cb_options *options) {
  struct cb_diag diag = {0};
  const int is_complex = cb_precision_is_complex(options->type);
  if (!is_complex || csr->is_complex || !csr->values) return;
  assert_ok(cb_csr_make_complex(csr, &diag));
  for (int64_t k = 0; k < csr->nnz; k++) csr->values[2 * k + 1] = -csr->values[2 * (csr->nnz - 1 - k)];
}

/* Plans, packs and emits `csr`, which becomes the product's. */
static inline struct product product_on_target(struct cb_csr csr, const char *settings,
                                               const struct cb_target *target) {
  struct cb_diag diag = {0};
  struct product product = {.csr = malloc(sizeof csr)};
  assert_non_null(product.csr);
  *product.csr = csr;
  set_options(&product.options, settings);
  fit_values(product.csr, &product.options);
  product.target = *target;
  assert_ok(cb_plan_build(&product.plan, &product.assignment, product.csr, &product.target, &product.options,
                          &diag));
  const struct cb_hash pattern = cb_csr_pattern_hash(product.csr);
  assert_ok(cb_pack(&product.blob, product.plan, product.assignment, product.csr, pattern, &diag));
  const struct cb_label label = {"test", "test", pattern};
  assert_ok(cb_source_emit(&product.source, product.plan, &label, &product.blob, CB_EMBED_NEVER, &diag));
  return product;
}

static inline struct product product_of_matrix(struct cb_csr csr, const char *settings) {
  struct cb_diag diag = {0};
  struct cb_target target;
  assert_ok(cb_target_find(&target, "sm_90", &diag));
  return product_on_target(csr, settings, &target);
}

static inline struct product product_of(const char *specification, const char *settings) {
  return product_of_matrix(matrix_of(specification), settings);
}

static inline void product_release(struct product *product) {
  cb_source_release(&product->source);
  cb_blob_release(&product->blob);
  cb_assignment_free(product->assignment);
  cb_plan_free(product->plan);
  cb_csr_release(product->csr);
  free(product->csr);
}

#endif
