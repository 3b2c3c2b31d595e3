// SPDX-License-Identifier: Apache-2.0
/* What the files that write a kernel's text share: header.c, the comment at its head; host.c, its host section;
 * bounds.c, what bounds registers; and source.c, all else. */
#ifndef CBGEN_CODEGEN_EMITTER_H
#define CBGEN_CODEGEN_EMITTER_H

#include "base/integers.h"
#include "codegen/expand.h"
#include "codegen/family.h"
#include "codegen/source.h"

/* What all parts of the text need. */
struct emitter {
  const struct cb_plan *plan;
  const struct cb_label *label;
  const struct cb_blob *blob; /* NULL: no data to embed */
  enum cb_tier tier;
  int embed;
  int clocked; /* every warp has a clock */
  int heads;   /* kernels that read heads alone of split values are being written */
  const struct cb_vector_share *share; /* of the kernels for several vectors that are being written; NULL: for one */
  int early, early_values; /* the region that is being written loads indices of slots, and values, before it waits */
  struct cb_arena arena; /* strings that scopes refer to */
  struct cb_diag *diag;
  struct cb_text text; /* the file */
  /* expanded before what stands above: that depends on what they use */
  struct cb_text kernels, regions, vectors;
};

static inline const char *number(struct emitter *emitter, int64_t value) {
  return cb_arena_format(&emitter->arena, "%lld", (long long)value);
}

/* Moves a finished text into the arena, for use as a placeholder's value. */
static inline const char *keep(struct emitter *emitter, struct cb_text *text) {
  const char *kept = text->failed ? NULL : cb_arena_string(&emitter->arena, cb_text_string(text));
  if (!kept) emitter->arena.failed = 1;
  cb_text_release(text);
  return kept ? kept : "";
}

/* Whether numbers up to `largest` take 64 bits. */
static inline int is_wide(const struct emitter *emitter, int64_t largest) {
  return largest > emitter->plan->index_limit;
}

static inline const char *integer_for(const struct emitter *emitter, int64_t largest) {
  return is_wide(emitter, largest) ? "int64_t" : "int";
}

/* The type of places of slots, in an array of so many elements. */
static inline const char *place_for(const struct emitter *emitter, int64_t count) {
  return emitter->early ? "index_t" : integer_for(emitter, count);
}

static inline int is_family(const struct emitter *emitter) { return emitter->tier == CB_TIER_FAMILY; }

/* A family's kernels take α and β, whatever the form. */
static inline int has_scalars(const struct emitter *emitter) {
  return emitter->plan->form == CB_FORM_AXPBY || is_family(emitter);
}

/* A family's kernels take carry slots, whether there are any or not. */
static inline int has_carry(const struct emitter *emitter) {
  return emitter->plan->carry_sums > 0 || is_family(emitter);
}

static inline int stored_arrays(const struct cb_region *region) {
  int stored = 0;
  for (int i = 0; i < region->arrays_count; i++) stored += region->arrays[i].storage == CB_STORED;
  return stored;
}

/* Whether the kernel gets arrays of the region. */
static inline int gets_arrays(const struct emitter *emitter, const struct cb_region *region) {
  return is_family(emitter) ? cb_family_pointers(region) : stored_arrays(region);
}

static inline const char *equation(const struct cb_plan *plan) {
  return cb_semiring_equation(plan->semiring, plan->form);
}

/* Sections of every template by what the product adds and multiplies with. */
static inline void add_semiring(struct emitter *emitter, struct cb_scope *scope) {
  cb_scope_optional_section(scope, cb_semiring_section(emitter->plan->semiring));
  if (cb_plan_is_complex(emitter->plan)) cb_scope_optional_section(scope, "complex");
}

/* Whether a sum is a struct of several numbers, as in kernels for several vectors where a thread has several of them,
 * or where they are complex; and the type of a number. */
static inline int has_several_sums(const struct emitter *emitter) {
  return emitter->share && (emitter->share->each > 1 || cb_plan_is_complex(emitter->plan));
}
static inline const char *number_type(const struct emitter *emitter) {
  return has_several_sums(emitter) ? "number_t" : "sum_t";
}
/* Whether a thread works as another one does in the kernel for one vector. */
static inline int is_shared_by_threads(const struct emitter *emitter) {
  return emitter->share && cb_share_blocks(emitter->share) > 1;
}

/* The name of a launch's size, "kThreads": with the launch's number when there are several. */
static inline const char *size_name(struct emitter *emitter, const char *name, int launch) {
  if (emitter->plan->launches_count == 1) return name;
  return cb_arena_format(&emitter->arena, "%s%d", name, launch);
}

/* The sections that the form of the product asks for. */
static inline void add_form(struct emitter *emitter, struct cb_scope *scope) {
  if (emitter->plan->form == CB_FORM_ADD && !is_family(emitter)) cb_scope_section(scope, "adds_to_y");
  if (has_scalars(emitter)) cb_scope_section(scope, "axpby");
  add_semiring(emitter, scope);
}

/* The comment at the head of the file: header.c. */
enum cb_status cb_emit_header(struct emitter *emitter);

/* The host section, to the end of the file: host.c. */
enum cb_status cb_emit_host(struct emitter *emitter);

/* For __launch_bounds__: `threads`, and the thread blocks that a multiprocessor shall hold, of which the compiler's
 * target may have room for fewer. */
const char *cb_launch_bounds(struct emitter *emitter, const struct cb_launch *launch, const char *threads);

#endif
