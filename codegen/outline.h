// SPDX-License-Identifier: Apache-2.0
/* What a family's text is made from: of a plan the part that its family shares, and nothing else.
 *
 * A family's text says nothing of sizes (family.h), so most of a plan does not matter to it: neither lengths nor
 * places, nor whether an array that is looked up by data is stored. An outline is a plan that has what does matter, in
 * an order that hangs on no matrix, and zeros and NULL everywhere else. A family's text is written from an outline,
 * never from the plan itself. So two plans with one outline have one text, whatever else is in them, and the outline's
 * hash, for which no text has to be written, stands for it: what was found by the one needs not be looked for by the
 * other.
 *
 * Each thing that is copied is hashed, by the same few lines of outline.c: what is not hashed is not there to be read.
 * The hash holds this build's fingerprint (base/fingerprint.h), since texts come from templates as well. Plans of one
 * text may have several outlines; that costs time alone, since the text tells. */
#ifndef CBGEN_CODEGEN_OUTLINE_H
#define CBGEN_CODEGEN_OUTLINE_H

#include "analysis/plan.h"
#include "base/hash.h"

struct cb_outline {
  struct cb_plan plan; /* its strings are those of the plan that it was made from, which must stay */
  struct cb_hash hash;
};

/* CB_ERR_UNSUPPORTED: the plan has no family (cb_family_check). The outline is to be released either way. */
enum cb_status cb_outline_make(struct cb_outline *outline, const struct cb_plan *plan, struct cb_diag *diag);
void cb_outline_release(struct cb_outline *outline);

#endif
