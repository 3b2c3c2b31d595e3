// SPDX-License-Identifier: Apache-2.0
/* The comment at the head of a kernel's text: what it multiplies, by which plan, and why. See source.h. */
#include "codegen/because.h"
#include "codegen/emitter.h"

#include <ctype.h>

static const char *launches_text(struct emitter *emitter) {
  const struct cb_plan *plan = emitter->plan;
  struct cb_text text = {0};
  for (int i = 0; i < plan->launches_count; i++)
    cb_text_add(&text, "%sgrid %lld × %d threads, %lld B dynamic shared memory", i ? "; then " : "",
                (long long)plan->launches[i].blocks, plan->launches[i].threads,
                (long long)plan->launches[i].dynamic_shared);
  if (!plan->launches_count) cb_text_add_string(&text, "none: there are no rows");
  return keep(emitter, &text);
}

/* Bytes per nonzero with one decimal; "-" without nonzeros. */
static const char *per_nonzero(struct emitter *emitter, int64_t bytes) {
  const int64_t nnz = emitter->plan->nnz;
  if (!nnz) return "-";
  const int64_t tenths = (10 * bytes + nnz / 2) / nnz;
  return cb_arena_format(&emitter->arena, "%lld.%lld", (long long)(tenths / 10), (long long)(tenths % 10));
}

static int64_t csr_bytes(const struct cb_plan *plan) {
  const int64_t pointer = plan->nnz > INT32_MAX ? 8 : 4;
  return plan->nnz * (4 + (int64_t)cb_type_size(plan->matrix_type)) + (plan->rows + 1) * pointer;
}

/* A matrix's name may hold anything: in the comment only printable characters stay. */
static const char *printable(struct emitter *emitter, const char *name) {
  char *copy = cb_arena_string(&emitter->arena, name);
  for (char *at = copy; at && *at; at++)
    if (!isprint((unsigned char)*at) || *at == '\\') *at = '_';
  return copy;
}

/* "double", or "f16 values, f32 vectors and sums". */
static const char *types_text(struct emitter *emitter) {
  const struct cb_plan *plan = emitter->plan;
  if (plan->matrix_type == plan->sum_type) return cb_type_c_name(plan->sum_type);
  return cb_arena_format(&emitter->arena, "%s values, %s vectors and sums", cb_type_short(plan->matrix_type),
                         cb_type_short(plan->sum_type));
}

static const char *because(struct emitter *emitter) {
  static const char indent[] = "//           ";
  struct cb_text text = {0};
  cb_because(&text, emitter->plan, indent, (int)sizeof indent - 1);
  return keep(emitter, &text);
}

enum cb_status cb_emit_header(struct emitter *emitter) {
  const struct cb_plan *plan = emitter->plan;
  struct cb_scope scope = {0};
  char pattern[CB_HASH_HEX];
  const char *symbol = emitter->label->symbol;
  cb_hash_hex(emitter->label->pattern, pattern);
  cb_scope_placeholder(&scope, "equation", equation(plan));
  cb_scope_placeholder(&scope, "matrix", printable(emitter, emitter->label->matrix));
  cb_scope_placeholder(&scope, "rows", number(emitter, plan->rows));
  cb_scope_placeholder(&scope, "cols", number(emitter, plan->cols));
  cb_scope_placeholder(&scope, "nonzeros", number(emitter, plan->nnz));
  cb_scope_placeholder(&scope, "types", types_text(emitter));
  cb_scope_placeholder(&scope, "version", CB_VERSION);
  cb_scope_placeholder(&scope, "line", plan->line);
  cb_scope_placeholder(&scope, "because", because(emitter));
  cb_scope_placeholder(&scope, "arch", plan->target.arch);
  cb_scope_placeholder(&scope, "multiprocessors", number(emitter, plan->target.multiprocessors));
  cb_scope_placeholder(&scope, "launches", launches_text(emitter));
  cb_scope_placeholder(&scope, "pattern", pattern);
  cb_scope_placeholder(&scope, "stored", per_nonzero(emitter, cb_plan_bytes(plan)));
  cb_scope_placeholder(&scope, "csr_stored", per_nonzero(emitter, csr_bytes(plan)));
  cb_scope_placeholder(&scope, "use",
                       cb_arena_format(&emitter->arena,
                                       "%s_%s, %s_multiply, %s_free; -DCBGEN_SELFTEST makes it a program "
                                       "that checks itself",
                                       symbol, emitter->embed ? "load_embedded" : "load_file", symbol, symbol));
  if (emitter->arena.failed) return cb_fail_memory(emitter->diag, "generated text", 0);
  const enum cb_status s = cb_expand(&emitter->text, "header", &scope, emitter->diag);
  return s ? s : cb_scope_check(&scope, "the header", emitter->diag);
}
