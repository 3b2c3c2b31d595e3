// SPDX-License-Identifier: Apache-2.0
/* The product of a kernel by the emulation, for comparing it with a GPU's bit by bit. */
#ifndef CBGEN_RUNTIME_MEASURE_EMULATED_H
#define CBGEN_RUNTIME_MEASURE_EMULATED_H

#include "analysis/plan/blob.h"
#include "codegen/source.h"

struct cb_emulated {
  const struct cb_plan *plan;
  const struct cb_source *source;
  const struct cb_blob *blob;
  const char *symbol;
  const void *x, *y; /* y: what it holds before */
  double alpha, beta;
};

/* Writes y after the product to `result`, as many bytes as y has. Needs a C++ compiler (runtime/verify/host.h). */
enum cb_status cb_emulated_multiply(void *result, const struct cb_emulated *product, struct cb_diag *diag);

/* The first element at which two vectors differ in their bits (all NaNs count as equal); -1: they do not differ. */
int64_t cb_first_difference(const void *one, const void *other, enum cb_type type, int64_t count);

#endif
