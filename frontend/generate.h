// SPDX-License-Identifier: Apache-2.0
/* Matrices by name: the shapes that tests and benchmarks need, made without a file.
 *
 * A specification is SHAPE[,KEY=VALUE]…; unknown keys, missing shapes and values out of range are errors that
 * list what there is. The same specification gives the same matrix on every machine (own integer generator,
 * key "seed"). Values lie in [0.5, 1.5) unless the shape says otherwise; key "values" selects
 * uniform|ones|integers (small integers whose partial sums are exact)|signed|tenths (0.1 to 1.6)|hundredths (0.01 to
 * 2.5)|single (numbers of f32): what fixed values may have in common.
 */
#ifndef CBGEN_FRONTEND_GENERATE_H
#define CBGEN_FRONTEND_GENERATE_H

#include "base/status.h"
#include "base/text.h"
#include "frontend/csr.h"

enum cb_status cb_matrix_generate(struct cb_csr *csr, const char *specification, struct cb_diag *diag);

/* One line per shape, "NAME  KEYS  what it is", for help texts. */
void cb_matrix_shapes(struct cb_text *text);

#endif
