// SPDX-License-Identifier: Apache-2.0
/* The text of repeated products: see repeated.h. Frames stand in templates/repeated.cu.in, and what a row's commit is
 * in templates/fused.cu.in. */
#include "codegen/program/repeated.h"

#include "base/integers.h"
#include "codegen/constants.h"
#include "codegen/expand.h"
#include "codegen/program/fused.h"
#include "codegen/program/product.h"
#include "codegen/program/writer.h"
#include "codegen/source.h"

enum {
  MOST_THREADS = 1024,
  BLOCKS_PER_SM = 5 /* of 256 threads, if they are not side by side: 48 registers */
};

struct writer {
  const struct cb_program_request *requests;
  struct cb_repeat_text repeat;
  struct cb_product_text products[CB_MOST_FUSIONS];
  int groups;
  struct cb_arena arena;
  struct cb_diag *diag;
};

static const char *number_text(struct writer *writer, int64_t value) {
  return cb_arena_format(&writer->arena, "%lld", (long long)value);
}

static const char *space_of(struct writer *writer, int product) {
  return cb_arena_format(&writer->arena, "of_%d", product);
}

static enum cb_status expand(const struct writer *writer, struct cb_text *text, const char *template_name,
                             const char *definition, struct cb_scope *scope) {
  if (writer->arena.failed) return cb_fail_memory(writer->diag, "a program's text", 0);
  return cb_expand_definition(text, template_name, definition, scope, writer->diag);
}

/* ---- what is asked for */

static int threads_of(const struct writer *writer) { return writer->requests[0].launches[0].threads; }

static enum cb_status check(const struct writer *writer) {
  for (int i = 0; i < writer->repeat.count; i++) {
    const struct cb_program_request *request = &writer->requests[i];
    if (request->launches_count != 1 || request->launches[0].threads != threads_of(writer))
      return cb_fail(writer->diag, CB_ERR_UNSUPPORTED,
                     "one kernel repeats products of one launch each, with as many threads to a thread block");
    if (!writer->products[i].commits_once)
      return cb_fail(writer->diag, CB_ERR_UNSUPPORTED, "rows of a product are not each committed once");
  }
  return CB_OK;
}

static int64_t most_blocks(const struct writer *writer) {
  int64_t blocks = 1;
  for (int i = 0; i < writer->repeat.count; i++) blocks = cb_larger(blocks, writer->requests[i].launches[0].blocks);
  return blocks;
}

static int any_shares(const struct writer *writer) {
  int shares = 0;
  for (int i = 0; i < writer->repeat.count; i++) shares |= writer->products[i].shares;
  return shares;
}

/* As few thread blocks as multiprocessors, which meet the soonest, if they do not share memory. */
static void choose_groups(struct writer *writer, int multiprocessors) {
  const int64_t wanted = cb_divide_up(most_blocks(writer), (int64_t)cb_larger(multiprocessors, 1));
  const int64_t most = MOST_THREADS / threads_of(writer);
  const int go_apart = any_shares(writer) || threads_of(writer) % 32;
  writer->groups = go_apart ? 1 : (int)cb_larger(cb_smaller(wanted, most), (int64_t)1);
}

static int blocks_per_sm(const struct writer *writer) {
  int blocks = writer->groups > 1 ? 1 : BLOCKS_PER_SM;
  for (int i = 0; i < writer->repeat.count; i++)
    if (writer->products[i].blocks_per_sm) blocks = (int)cb_smaller(blocks, writer->products[i].blocks_per_sm);
  return blocks;
}

/* ---- texts */

/* "const sell0::Arrays launch0_sell0_arrays, " with its namespace before both. */
static const char *of_space(struct writer *writer, int product, const struct cb_text *text) {
  const char *space = space_of(writer, product);
  struct cb_text made = {0};
  cb_text_add_string(&made, cb_text_string(text));
  cb_writer_replace(&made, "const ", cb_arena_format(&writer->arena, "const %s::", space));
  cb_writer_replace(&made, "launch0_", cb_arena_format(&writer->arena, "%s_launch0_", space));
  const char *kept = cb_arena_string(&writer->arena, cb_text_string(&made));
  writer->arena.failed |= made.failed;
  cb_text_release(&made);
  return kept;
}

static enum cb_status add_commit(struct writer *writer, struct cb_text *text, int product) {
  struct cb_scope scope = {0};
  cb_fused_commit(&scope, &writer->repeat.fusions[product]);
  return expand(writer, text, "fused", "before_regions", &scope);
}

/* What a product has of its own, in its namespace. */
static enum cb_status add_space(struct writer *writer, struct cb_text *text, int product) {
  struct cb_product_text *own = &writer->products[product];
  struct cb_text body = {0};
  if (writer->groups > 1) {
    cb_word_instead(&own->regions, "threadIdx.x", "virtual_thread()");
    cb_word_instead(&own->functions, "threadIdx.x", "virtual_thread()");
  }
  cb_text_add_string(&body, cb_text_string(&own->vectors));
  cb_text_add_string(&body, cb_text_string(&own->load_x));
  const enum cb_status s = add_commit(writer, &body, product);
  cb_text_add_string(&body, cb_text_string(&own->regions));
  cb_text_add_string(&body, cb_text_string(&own->functions));
  cb_writer_drop_unused(&body);
  cb_text_add(text, "namespace %s {\n\n%s}  // namespace %s\n\n", space_of(writer, product), cb_text_string(&body),
              space_of(writer, product));
  text->failed |= body.failed;
  cb_text_release(&body);
  return s;
}

static enum cb_status add_product(struct writer *writer, struct cb_text *text, int product) {
  struct cb_fusion_text *fusion = &writer->repeat.fusions[product];
  const struct cb_product_text *own = &writer->products[product];
  struct cb_scope scope = {0};
  cb_writer_cut(&fusion->tail);
  cb_scope_placeholder(&scope, "space", space_of(writer, product));
  cb_scope_placeholder(&scope, "entry", number_text(writer, fusion->entry));
  cb_scope_placeholder(&scope, "next", number_text(writer, fusion->next));
  cb_scope_placeholder(&scope, "from", fusion->from);
  cb_scope_placeholder(&scope, "to", fusion->to);
  cb_scope_placeholder(&scope, "values", cb_text_string(&fusion->locals));
  cb_scope_placeholder(&scope, "blocks", number_text(writer, writer->requests[product].launches[0].blocks));
  cb_scope_placeholder(&scope, "arguments", of_space(writer, product, &own->arguments[0]));
  cb_scope_placeholder(&scope, "tail", cb_text_string(&fusion->tail));
  if (own->is_scaled) cb_scope_section(&scope, "scaled");
  if (own->has_carry) cb_scope_section(&scope, "carry");
  if (own->shares) cb_scope_section(&scope, "shares");
  return expand(writer, text, "repeated", "product", &scope);
}

static enum cb_status add_kernel(struct writer *writer, struct cb_text *text) {
  struct cb_repeat_text *repeat = &writer->repeat;
  struct cb_text parameters = {0}, carry = {0}, products = {0};
  struct cb_scope scope = {0};
  enum cb_status s = CB_OK;
  for (int i = 0; i < repeat->count && !s; i++) {
    cb_text_add_string(&parameters, of_space(writer, i, &writer->products[i].parameters));
    if (writer->products[i].has_carry)
      cb_text_add(&carry, "sum_t *of_%d_carry_sums, uint32_t *of_%d_carry_counters, ", i, i);
    s = add_product(writer, &products, i);
  }
  cb_writer_cut(&products);
  cb_writer_cut(&repeat->stores);
  cb_scope_placeholder(&scope, "kernel", CB_REPEATED_KERNEL);
  cb_scope_placeholder(&scope, "parameters", cb_text_string(&parameters));
  cb_scope_placeholder(&scope, "carry_parameters", cb_text_string(&carry));
  cb_scope_placeholder(&scope, "products", cb_text_string(&products));
  cb_scope_placeholder(&scope, "loads", cb_text_string(&repeat->loads));
  cb_scope_placeholder(&scope, "stores", cb_text_string(&repeat->stores));
  cb_scope_placeholder(&scope, "times", number_text(writer, repeat->times));
  cb_scope_placeholder(&scope, "entry", number_text(writer, repeat->fusions[0].entry));
  cb_scope_placeholder(&scope, "blocks_per_sm", number_text(writer, blocks_per_sm(writer)));
  if (writer->groups > 1) cb_scope_section(&scope, "groups");
  if (!writer->requests[0].program->copied) cb_scope_section(&scope, "given");
  if (!s) s = expand(writer, text, "repeated", "kernel", &scope);
  text->failed |= parameters.failed | carry.failed | products.failed;
  cb_text_release(&parameters);
  cb_text_release(&carry);
  cb_text_release(&products);
  return s;
}

static enum cb_status add_head(struct writer *writer, struct cb_text *text) {
  struct cb_scope scope = {0};
  cb_scope_placeholder(&scope, "vector_type", cb_type_entry_name(writer->requests[0].vector));
  cb_scope_placeholder(&scope, "sum_type", cb_type_entry_name(writer->requests[0].sum));
  cb_scope_placeholder(&scope, "threads", number_text(writer, (int64_t)writer->groups * threads_of(writer)));
  cb_scope_optional(&scope, "virtual_threads", number_text(writer, threads_of(writer)));
  if (writer->groups > 1) cb_scope_section(&scope, "groups");
  return expand(writer, text, "repeated", "head", &scope);
}

/* ---- the whole */

static enum cb_status write(struct writer *writer, struct cb_text *text) {
  struct cb_text users = {0}, whole = {0};
  cb_text_add_string(&users, cb_text_string(&writer->repeat.fusions[0].structs));
  enum cb_status s = add_head(writer, &whole);
  for (int i = 0; i < writer->repeat.count && !s; i++) s = add_space(writer, &users, i);
  if (!s) s = add_kernel(writer, &users);
  if (!s) s = cb_emit_statement_functions(&whole, cb_text_string(&users), writer->requests[0].sum, writer->diag);
  cb_text_add_string(&whole, cb_text_string(&users));
  if (!s && (users.failed || whole.failed)) s = cb_fail_memory(writer->diag, "a program's text", 0);
  if (!s) s = cb_source_with_prelude(text, &whole, writer->diag);
  if (!s && text->failed) s = cb_fail_memory(writer->diag, "a program's text", whole.length);
  cb_text_release(&users);
  cb_text_release(&whole);
  return s;
}

enum cb_status cb_repeated_text(struct cb_text *text, const struct cb_program_request *requests, int count,
                                int multiprocessors, struct cb_repeated_shape *shape, struct cb_diag *diag) {
  struct writer writer = {.requests = requests, .groups = 1, .diag = diag};
  enum cb_status s = cb_stages_repeat(&writer.repeat, requests[0].program, requests[0].vector, requests[0].sum, diag);
  if (!s && writer.repeat.count != count)
    s = cb_fail(diag, CB_ERR_INTERNAL, "%d products are repeated, not %d", writer.repeat.count, count);
  for (int i = 0; i < writer.repeat.count && !s; i++) s = cb_product_take(&writer.products[i], &requests[i], diag);
  if (!s) s = check(&writer);
  if (!s) choose_groups(&writer, multiprocessors);
  if (!s) s = write(&writer, text);
  *shape = (struct cb_repeated_shape){0};
  if (!s) {
    shape->threads = writer.groups * threads_of(&writer);
    shape->work = cb_divide_up(most_blocks(&writer), (int64_t)writer.groups);
    for (int i = 0; i < count; i++)
      shape->dynamic_shared = cb_larger(shape->dynamic_shared, requests[i].launches[0].dynamic_shared);
  }
  for (int i = 0; i < CB_MOST_FUSIONS; i++) cb_product_text_release(&writer.products[i]);
  cb_repeat_text_release(&writer.repeat);
  cb_arena_release(&writer.arena);
  return s;
}
