// SPDX-License-Identifier: Apache-2.0
/* The text of iterations with the matrix in shared memory: see slabs.h. Frames stand in templates/slabs.cu.in. */
#include "codegen/program/slabs.h"

#include "base/integers.h"
#include "codegen/expand.h"
#include "codegen/program/writer.h"
#include "codegen/source.h"

#include <string.h>

enum { SIDES = 2, ALIGN = 16 };

struct writer {
  const struct cb_program *program;
  enum cb_type type;
  struct cb_slab_shape *shape;
  struct cb_fusion_text fusions[SIDES];
  int64_t end; /* of shared memory so far */
  struct cb_arena arena;
  struct cb_diag *diag;
};

int cb_slabs_find(const struct cb_stages_plan *plan, int *group, int *first) {
  for (int g = 0; g < plan->groups_count; g++)
    for (int i = 0; i + 1 < plan->fusions_count; i++) {
      const struct cb_group *found = &plan->groups[g];
      const struct cb_act *acts = &plan->acts[found->first];
      if (found->count != 4 || acts[1].from != acts[3].to) continue;
      if (plan->fusions[i].act != found->first || plan->fusions[i + 1].act != found->first + 2) continue;
      *group = g;
      *first = i;
      return 1;
    }
  return 0;
}

static int64_t place(int64_t *end, int64_t bytes) {
  const int64_t begin = *end;
  *end = cb_round_up(begin + bytes, ALIGN);
  return begin;
}

static int64_t lay(struct cb_slab_shape *shape, enum cb_type type) {
  int64_t end = 0;
  for (int i = 0; i < SIDES; i++) {
    struct cb_slab_side *side = &shape->sides[i];
    side->values = place(&end, side->most_entries * (int64_t)cb_type_size(type));
    side->indices = place(&end, side->most_entries * side->index_bytes);
    side->line_numbers = place(&end, side->most_lines * 4);
    side->slices = place(&end, side->most_slices * 8);
    side->count = place(&end, CB_SLAB_HEAD);
  }
  shape->bytes = end;
  return end;
}

/* ---- texts */

static const char *number_text(struct writer *writer, int64_t value) {
  return cb_arena_format(&writer->arena, "%lld", (long long)value);
}

static const char *keep(struct writer *writer, struct cb_text *text) {
  cb_writer_cut(text);
  const char *kept = text->failed ? NULL : cb_arena_string(&writer->arena, cb_text_string(text));
  writer->arena.failed |= !kept;
  cb_text_release(text);
  return kept ? kept : "";
}

static enum cb_status expand(const struct writer *writer, struct cb_text *text, const char *definition,
                             struct cb_scope *scope) {
  if (writer->arena.failed) return cb_fail_memory(writer->diag, "a program's text", 0);
  return cb_expand_definition(text, "slabs", definition, scope, writer->diag);
}

/* The next of words that blanks end. */
static const char *take_word(struct writer *writer, const char **words) {
  const size_t length = strcspn(*words, " ");
  if (!length) return NULL;
  const char *word = cb_arena_format(&writer->arena, "%.*s", (int)length, *words);
  *words += length + 1;
  return word;
}

static void add_vectors(struct writer *writer, int number, struct cb_scope *scope) {
  struct cb_text kept = {0}, takes = {0}, gives = {0};
  const struct cb_fusion_text *fusion = &writer->fusions[number];
  const char *handed = writer->fusions[1 - number].from, *name;
  const int64_t bytes = writer->shape->sides[number].most_lines * (int64_t)cb_type_size(writer->type);
  for (const char *words = cb_text_string(&fusion->vectors); (name = take_word(writer, &words));) {
    const int is_handed = !strcmp(name, handed);
    const char *own = is_handed ? number ? "kFirst" : "kSecond" : cb_arena_format(&writer->arena, "%s_kept", name);
    cb_text_add(&kept, "constexpr Kept %s = {%lld};%s%s\n", own, (long long)place(&writer->end, bytes),
                is_handed ? "  // " : "", is_handed ? name : "");
    const char *there = cb_arena_format(&writer->arena, "own.%s_ + row, %s", name, own);
    if (cb_has_word(cb_text_string(&fusion->needed), name))
      cb_text_add(&takes, "    store_kept(%s, slot, load_vector(own.%s_ + row));\n", there, name);
    if (cb_has_word(cb_text_string(&fusion->made), name))
      cb_text_add(&gives, "    store_vector(own.%s_ + row, load_kept(%s, slot));\n", name, there);
  }
  cb_scope_placeholder(scope, "handed", handed);
  cb_scope_placeholder(scope, "kept", keep(writer, &kept));
  cb_scope_placeholder(scope, "takes", keep(writer, &takes));
  cb_scope_placeholder(scope, "gives", keep(writer, &gives));
}

static enum cb_status add_side(struct writer *writer, struct cb_text *text, int number) {
  struct cb_fusion_text *fusion = &writer->fusions[number];
  const struct cb_slab_side *side = &writer->shape->sides[number];
  struct cb_scope scope = {0};
  cb_writer_cut(&fusion->members);
  cb_writer_cut(&fusion->statements);
  cb_scope_placeholder(&scope, "number", number_text(writer, number));
  cb_scope_placeholder(&scope, "what", cb_arena_format(&writer->arena, "%s of %s", fusion->to, fusion->from));
  cb_scope_placeholder(&scope, "lines", number_text(writer, side->lines));
  cb_scope_placeholder(&scope, "across", number_text(writer, side->across));
  cb_scope_placeholder(&scope, "lanes", number_text(writer, side->lanes));
  cb_scope_placeholder(&scope, "batch", number_text(writer, side->batch));
  cb_scope_placeholder(&scope, "values", number_text(writer, side->values));
  cb_scope_placeholder(&scope, "indices", number_text(writer, side->indices));
  cb_scope_placeholder(&scope, "line_numbers", number_text(writer, side->line_numbers));
  cb_scope_placeholder(&scope, "slices", number_text(writer, side->slices));
  cb_scope_placeholder(&scope, "count", number_text(writer, side->count));
  cb_scope_optional(&scope, "copy", number_text(writer, side->copy));
  cb_scope_placeholder(&scope, "index_type", side->index_bytes == 2 ? "uint16_t" : "uint32_t");
  cb_scope_placeholder(&scope, "none", side->index_bytes == 2 ? "0xffff" : "-1");
  cb_scope_placeholder(&scope, "members", cb_text_string(&fusion->members));
  cb_scope_placeholder(&scope, "statements", cb_text_string(&fusion->statements));
  cb_scope_optional(&scope, "to", fusion->to);
  if (fusion->reads_product) cb_scope_section(&scope, "made");
  if (side->copied) cb_scope_section(&scope, "copied");
  add_vectors(writer, number, &scope);
  return expand(writer, text, "side", &scope);
}

static enum cb_status add_kernel(struct writer *writer, struct cb_text *text) {
  struct cb_fusion_text *first = &writer->fusions[0], *second = &writer->fusions[1];
  struct cb_scope scope = {0};
  cb_writer_cut(&second->tail);
  cb_writer_cut(&second->stores);
  cb_scope_placeholder(&scope, "kernel", CB_SLABS_KERNEL);
  cb_scope_placeholder(&scope, "entry", number_text(writer, first->entry));
  cb_scope_placeholder(&scope, "next", number_text(writer, second->next));
  cb_scope_placeholder(&scope, "first", first->from);
  cb_scope_placeholder(&scope, "second", second->from);
  cb_scope_placeholder(&scope, "loads", cb_text_string(&second->loads));
  cb_scope_placeholder(&scope, "tail", cb_text_string(&second->tail));
  cb_scope_placeholder(&scope, "stores", cb_text_string(&second->stores));
  cb_scope_placeholder(&scope, "values_0", cb_text_string(&first->values));
  cb_scope_placeholder(&scope, "values_1", cb_text_string(&second->values));
  if (writer->shape->sides[0].copied) cb_scope_section(&scope, "copied_0");
  if (writer->shape->sides[1].copied) cb_scope_section(&scope, "copied_1");
  return expand(writer, text, "kernel", &scope);
}

static enum cb_status add_head(struct writer *writer, struct cb_text *text) {
  struct cb_scope scope = {0};
  cb_scope_placeholder(&scope, "vector_type", cb_type_entry_name(writer->type));
  cb_scope_placeholder(&scope, "sum_type", cb_type_entry_name(writer->type));
  cb_scope_placeholder(&scope, "threads", number_text(writer, writer->shape->threads));
  cb_scope_placeholder(&scope, "bytes", number_text(writer, writer->shape->bytes));
  cb_scope_placeholder(&scope, "states", number_text(writer, writer->shape->states));
  return expand(writer, text, "head", &scope);
}

/* ---- the whole */

/* One thread block has it all in its own shared memory: nothing between the products, and nothing that others read. */
static enum cb_status check(const struct writer *writer) {
  const struct cb_fusion_text *first = &writer->fusions[0], *second = &writer->fusions[1];
  const int hands = cb_has_word(cb_text_string(&first->made), second->from) &&
                    cb_has_word(cb_text_string(&second->made), first->from) &&
                    cb_has_word(cb_text_string(&second->needed), first->from);
  if (hands && !first->tail.length && first->next == second->entry && !first->stores_product && !second->stores_product)
    return CB_OK;
  return cb_fail(writer->diag, CB_ERR_UNSUPPORTED, "iterations of method '%s' are no two products that hand on",
                 writer->program->name);
}

static enum cb_status write(struct writer *writer, struct cb_text *text, int64_t state_bytes) {
  struct cb_text users = {0}, whole = {0};
  struct cb_scope none = {0};
  struct cb_slab_shape *shape = writer->shape;
  writer->end = lay(shape, writer->type);
  shape->states = place(&writer->end, 2 * state_bytes);
  for (int i = 0; i < SIDES; i++)
    if (shape->sides[i].copied)
      shape->sides[i].copy = place(&writer->end, shape->sides[i].across * (int64_t)cb_type_size(writer->type));
  enum cb_status s = add_head(writer, &whole);
  cb_text_add_string(&users, cb_text_string(&writer->fusions[0].structs));
  if (!s) s = expand(writer, &users, "functions", &none);
  for (int i = 0; i < SIDES && !s; i++) s = add_side(writer, &users, i);
  if (!s) s = add_kernel(writer, &users);
  shape->shared = writer->end;
  if (!s) s = cb_emit_statement_functions(&whole, cb_text_string(&users), writer->type, writer->diag);
  cb_text_add_string(&whole, cb_text_string(&users));
  whole.failed |= users.failed;
  if (!s) s = cb_source_with_prelude(text, &whole, writer->diag);
  cb_text_release(&users);
  cb_text_release(&whole);
  return s;
}

enum cb_status cb_slabs_text(struct cb_text *text, struct cb_slab_shape *shape, const struct cb_program *program,
                             const struct cb_stages_plan *plan, enum cb_type type, int64_t room, struct cb_diag *diag) {
  struct writer writer = {.program = program, .type = type, .shape = shape, .diag = diag};
  int group, first;
  if (!cb_slabs_find(plan, &group, &first))
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "method '%s' repeats no two products", program->name);
  enum cb_status s = CB_OK;
  for (int i = 0; i < SIDES && !s; i++)
    s = cb_stages_fusion(&writer.fusions[i], program, type, type, first + i, "slot", diag);
  if (!s) s = check(&writer);
  if (!s) s = write(&writer, text, plan->state_bytes);
  if (!s && shape->shared > room)
    s = cb_fail(diag, CB_ERR_LIMIT, "a part of the matrix and its vectors take %lld bytes of shared memory; there are %lld",
                (long long)shape->shared, (long long)room);
  for (int i = 0; i < SIDES; i++) cb_fusion_text_release(&writer.fusions[i]);
  cb_arena_release(&writer.arena);
  return s;
}
