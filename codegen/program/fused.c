// SPDX-License-Identifier: Apache-2.0
/* The text of fused products: see fused.h. Frames stand in templates/fused.cu.in. */
#include "codegen/program/fused.h"

#include "codegen/expand.h"
#include "codegen/program/product.h"
#include "codegen/program/writer.h"
#include "codegen/source.h"

#include <string.h>

struct writer {
  const struct cb_program_request *request;
  struct cb_fusion_text fusion;
  struct cb_product_text product;
  int is_late; /* regions call begin_step */
  struct cb_arena arena;
  struct cb_diag *diag;
};

static const char *number_text(struct writer *writer, int64_t value) {
  return cb_arena_format(&writer->arena, "%lld", (long long)value);
}

static enum cb_status expand(const struct writer *writer, struct cb_text *text, const char *definition,
                             struct cb_scope *scope) {
  if (writer->arena.failed) return cb_fail_memory(writer->diag, "a program's text", 0);
  return cb_expand_definition(text, "fused", definition, scope, writer->diag);
}

static enum cb_status add_before(struct writer *writer, struct cb_text *text) {
  struct cb_fusion_text *fusion = &writer->fusion;
  struct cb_scope scope = {0};
  cb_writer_cut(&fusion->members);
  cb_writer_cut(&fusion->statements);
  cb_scope_placeholder(&scope, "members", cb_text_string(&fusion->members));
  cb_scope_placeholder(&scope, "statements", cb_text_string(&fusion->statements));
  cb_scope_optional(&scope, "to", fusion->to);
  if (fusion->reads_product) cb_scope_section(&scope, "made");
  if (fusion->stores_product) cb_scope_section(&scope, "stored");
  cb_writer_cut(&fusion->begins);
  cb_scope_optional(&scope, "begins", cb_text_string(&fusion->begins));
  cb_scope_optional(&scope, "entry", number_text(writer, fusion->entry));
  if (writer->is_late) cb_scope_section(&scope, "late");
  return expand(writer, text, "before_regions", &scope);
}

static enum cb_status add_kernel(struct writer *writer, struct cb_text *text, int launch) {
  const struct cb_program_request *request = writer->request;
  const struct cb_product_text *product = &writer->product;
  struct cb_fusion_text *fusion = &writer->fusion;
  struct cb_scope scope = {0};
  cb_writer_cut(&fusion->tail);
  cb_writer_cut(&fusion->stores);
  cb_scope_placeholder(&scope, "launch", number_text(writer, launch));
  cb_scope_placeholder(&scope, "threads", number_text(writer, request->launches[launch].threads));
  cb_scope_placeholder(&scope, "parameters", cb_text_string(&product->parameters));
  cb_scope_placeholder(&scope, "arguments", cb_text_string(&product->arguments[launch]));
  cb_scope_optional(&scope, "entry", number_text(writer, fusion->entry));
  cb_scope_placeholder(&scope, "from", fusion->from);
  cb_scope_placeholder(&scope, "to", fusion->to);
  cb_scope_optional(&scope, "values", cb_text_string(&fusion->values));
  if (writer->is_late) cb_scope_section(&scope, "late");
  if (product->is_scaled) cb_scope_section(&scope, "scaled");
  if (product->has_carry) cb_scope_section(&scope, "carry");
  if (!request->program->copied) cb_scope_section(&scope, "given");
  if (product->blocks_per_sm) {
    cb_scope_section(&scope, "bounded");
    cb_scope_placeholder(&scope, "blocks_per_sm", number_text(writer, product->blocks_per_sm));
  }
  if (launch == request->launches_count - 1) {
    cb_scope_section(&scope, "last");
    cb_scope_placeholder(&scope, "loads", cb_text_string(&fusion->loads));
    cb_scope_placeholder(&scope, "tail", cb_text_string(&fusion->tail));
    cb_scope_placeholder(&scope, "next", number_text(writer, fusion->next));
    cb_scope_placeholder(&scope, "stores", cb_text_string(&fusion->stores));
  }
  return expand(writer, text, "kernel", &scope);
}

/* All that uses the functions of statements. */
static enum cb_status add_users(struct writer *writer, struct cb_text *text) {
  cb_text_add_string(text, cb_text_string(&writer->fusion.structs));
  enum cb_status s = add_before(writer, text);
  cb_text_add_string(text, cb_text_string(&writer->product.regions));
  cb_text_add_string(text, cb_text_string(&writer->product.functions));
  for (int i = 0; i < writer->request->launches_count && !s; i++) s = add_kernel(writer, text, i);
  return s;
}

static enum cb_status write(struct writer *writer, struct cb_text *text) {
  struct cb_text users = {0}, whole = {0};
  enum cb_status s = add_users(writer, &users);
  cb_text_add_string(&whole, cb_text_string(&writer->product.vectors));
  cb_text_add_string(&whole, cb_text_string(&writer->product.load_x));
  if (!s) s = cb_emit_statement_functions(&whole, cb_text_string(&users), writer->request->sum, writer->diag);
  cb_text_add_string(&whole, cb_text_string(&users));
  cb_writer_drop_unused(&whole);
  whole.failed |= users.failed;
  if (!s) s = cb_source_with_prelude(text, &whole, writer->diag);
  cb_text_release(&users);
  cb_text_release(&whole);
  return s;
}

/* What a thread reads of the matrix may be in flight while the kernel before is ending, where x is read in one place,
 * as in `sell`. (In `merge` that is slower: 0.3 and 0.8 M nonzeros 10.5 and 18.9 us for 9.3 and 17.4.) */
static void begin_late(struct writer *writer) {
  static const char loop[] = "#pragma unroll\n"
                             "  for (int i = 0; i < kBatch; i++)\n"
                             "    if (step + i < steps) sum = add_product(";
  struct cb_text *regions = &writer->product.regions, made = {0};
  const char *text = cb_text_string(regions), *at = strstr(text, loop), *read = strstr(text, "load_x(");
  const int is_plain = writer->request->program->copied && writer->request->launches_count == 1;
  if (!is_plain || !at || strstr(at + 1, loop) || !read || strstr(read + 1, "load_x(")) return;
  cb_text_add_bytes(&made, text, (size_t)(at - text));
  cb_text_add_string(&made, "  if (step == 0) begin_step(vectors, columns[kBatch - 1]);\n");
  cb_text_add_string(&made, at);
  made.failed |= regions->failed;
  cb_text_release(regions);
  *regions = made;
  writer->is_late = 1;
}

enum cb_status cb_fused_text(struct cb_text *text, const struct cb_program_request *request, int number,
                             struct cb_diag *diag) {
  struct writer writer = {.request = request, .diag = diag};
  enum cb_status s = cb_stages_fusion(&writer.fusion, request->program, request->vector, request->sum, number, NULL,
                                      diag);
  if (!s) s = cb_product_take(&writer.product, request, diag);
  if (!s && !writer.product.commits_once)
    s = cb_fail(diag, CB_ERR_UNSUPPORTED, "rows of this product are not each committed once");
  if (!s) begin_late(&writer);
  if (!s) s = write(&writer, text);
  cb_product_text_release(&writer.product);
  cb_fusion_text_release(&writer.fusion);
  cb_arena_release(&writer.arena);
  return s;
}
