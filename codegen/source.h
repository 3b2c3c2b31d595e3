// SPDX-License-Identifier: Apache-2.0
/* From a plan to CUDA text. Byte-identical for an identical (plan, label). The plan's hash covers what a kernel
 * computes and which data it takes; the text's comment also tells of the search's candidates, which it leaves out.
 *
 * The text of one kernel.cu, top to bottom:
 *   header comment    what it multiplies, the plan line, why this plan, target, launches, stored bytes
 *   device prelude    templates/prelude.cu.in, as far as the rest uses it: types, and how memory is read and written.
 *                     The emulation has its own in its place (runtime/verify/emulation/prelude.h)
 *   constants, vectors (load_x, commit), one namespace per region, the kernels
 *   host section      #ifndef __CUDACC_RTC__: load, multiply, free; embedded data; self-test
 *
 * Functions of the host section, for symbol S (C++; all return NULL or a message that lives forever):
 *   struct S_matrix;                                                     device pointers, nothing else
 *   const char *S_load(S_matrix *m, const void *data, size_t bytes);     data: the image of analysis/plan/blob.h
 *   const char *S_load_file(S_matrix *m, const char *path);              the sidecar (absent when embedded)
 *   const char *S_load_embedded(S_matrix *m);                            (absent when not embedded)
 *   const char *S_multiply(const S_matrix *m, const vector_t *x, vector_t *y, sum_t alpha, sum_t beta,
 *                          cudaStream_t stream);                         alpha, beta only when form is axpby
 *   void S_free(S_matrix *m);
 * With -DCBGEN_SELFTEST the file is a program: it multiplies the seeded x, compares every row with the
 * tolerance of the data's selftest part, prints one line and exits 0 or 1. Data that do not stand in the text come from
 * the file that its first argument names, else from kernel.cbd beside kernel.cu; it exits 4 when that cannot be read.
 *
 * Kernel parameters, in order (what the driver-API launcher passes): for each region of the launch one struct of
 * the region's STORED array pointers; x; y; alpha and beta (form axpby); carry_sums and carry_counters (when the
 * plan has carry slots); clocks (when it is clocked). Kernel names: cb_source_kernel.
 */
#ifndef CBGEN_CODEGEN_SOURCE_H
#define CBGEN_CODEGEN_SOURCE_H

#include "analysis/plan/blob.h"
#include "analysis/plan.h"
#include "base/status.h"
#include "base/text.h"

/* What the text says of its regions' index_t, behind the type. That of slots that are loaded early (plan.h) has 64 bits
 * though 32 would do: loads at constant distances from one take no address of their own. */
#define CB_ANY_INDEX ";  // holds any index into the arrays below\n"
#define CB_EARLY_INDEX "using index_t = int64_t;  // holds any index below; loads at constant distances share an address\n"

/* What the text says about its origin; part of the input, never a path or a time. */
struct cb_label {
  const char *matrix;     /* name for the header comment */
  const char *symbol;     /* C identifier, prefix of the host functions and the kernels */
  struct cb_hash pattern; /* of the matrix */
};

struct cb_source {
  char *text; /* NUL-terminated; owned */
  int64_t length;
  int64_t body; /* offset of the first byte behind the device prelude */
};

enum cb_tier {
  CB_TIER_SPECIALISED, /* everything that the plan knows stands in the text */
  CB_TIER_FAMILY       /* the text serves all matrices of the plan's structure (family.h) */
};

enum cb_embed { CB_EMBED_AUTO, CB_EMBED_ALWAYS, CB_EMBED_NEVER };

/* `blob` may be NULL: the host section then has no embedded data. `embed` auto embeds images up to 1 MiB. */
enum cb_status cb_source_emit(struct cb_source *source, const struct cb_plan *plan, const struct cb_label *label,
                              const struct cb_blob *blob, enum cb_embed embed, struct cb_diag *diag);
/* The same for a tier. A family's whole text has the plan's numbers in its head and its host section; the part for the
 * device, and so what its kernels compute, is that of cb_source_family. */
enum cb_status cb_source_emit_tier(struct cb_source *source, const struct cb_plan *plan, const struct cb_label *label,
                                   const struct cb_blob *blob, enum cb_embed embed, enum cb_tier tier,
                                   struct cb_diag *diag);
/* The same text, without data, in which every warp notes when it begins and ends, and where: its struct WarpClock in
 * the array that is each kernel's last parameter (NULL: it notes nothing, as from the text's own host functions). */
enum cb_status cb_source_emit_clocked(struct cb_source *source, const struct cb_plan *plan,
                                      const struct cb_label *label, struct cb_diag *diag);
/* How many clocks the first `launches` launches have: one for each warp, thread block by thread block. */
int64_t cb_source_clocks(const struct cb_plan *plan, int launches);
void cb_source_release(struct cb_source *source);

/* The symbol of every family's kernels. */
#define CB_FAMILY_SYMBOL "cbgen_family"

/* A family's text: the prelude and what the device sees, which no number of the plan is in; and that of an outline
 * (outline.h), which all plans have that have it. CB_ERR_UNSUPPORTED: cb_family_check. */
struct cb_outline;
enum cb_status cb_source_family(struct cb_source *source, const struct cb_plan *plan, struct cb_diag *diag);
enum cb_status cb_source_outlined(struct cb_source *source, const struct cb_outline *outline, struct cb_diag *diag);

/* Appends what `body`, CUDA for the device, uses of the device prelude, and then the body. CB_ERR_MEMORY: of one of the
 * texts something is missing. */
enum cb_status cb_source_with_prelude(struct cb_text *text, const struct cb_text *body, struct cb_diag *diag);

/* What stands behind the device prelude of a whole text; NULL when it has none. */
const char *cb_source_behind_prelude(const char *text);

/* Whether this blob would be embedded. */
int cb_source_embeds(const struct cb_blob *blob, enum cb_embed embed);

/* Name of the kernel of launch `launch`: "SYMBOL_spmv" for a single launch, else "SYMBOL_spmv_LAUNCH". */
void cb_source_kernel(const struct cb_plan *plan, const struct cb_label *label, int launch, char *name,
                      size_t size);

/* What such names end with, behind "_", where the kernel is for several vectors. */
/* The kernel that lays X out by rows for those of CB_VECTORS_COPIED: the name of the first launch's, with a suffix. Its
 * parameters: x; where to; Columns. */
#define CB_COPY_SUFFIX "_copy_x"
/* Likewise, where their Y lies by rows, too, the kernel that stores it. Its parameters: the rows; y; alpha and beta, if
 * the product has them; Columns. */
#define CB_COPY_Y_SUFFIX "_copy_y"
void cb_source_copy_kernel(const struct cb_plan *plan, const struct cb_label *label, const char *suffix, char *name,
                           size_t size);

static inline const char *cb_vector_kernel_name(enum cb_vector_kernel kernel) {
  return kernel == CB_VECTORS_PACKED ? "packed" : kernel == CB_VECTORS_STRIDED ? "strided" : "copied";
}

/* A C identifier made from any text ("2dcyl1" → "m_2dcyl1"), at most 48 characters. */
void cb_symbol_from(const char *text, char symbol[49]);

/* The seeded x of the self-test: element i in [-1, 1), the same arithmetic as in the generated text. */
double cb_selftest_x(uint64_t i);

#endif
