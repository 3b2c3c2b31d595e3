// SPDX-License-Identifier: Apache-2.0
/* The plan as JSON. Key order is fixed, so equal plans give equal text: the plan's hash is the hash of this text,
 * and whatever shapes the kernel's text must therefore stand here. It is written as it is walked, since each plan is
 * hashed. */
#include "analysis/layout.h"

#include "analysis/plan/names.h"
#include "base/json.h"

static const char *const constant_kind_names[] = {
    [0] = "undeclared", [CB_CONSTANT_STRUCTURE] = "structure", [CB_CONSTANT_SIZE] = "size"};
static const char *const value_storage_names[] = {"plain", "coded", "equal"};
static const char *const commit_names[] = {"final", "own", "add", "atomic", "keep", "kept", "kept-keep", "kept-add"};

static void pairs(struct cb_json_lines *lines, const char *key, int count,
                  void (*pair)(const void *, int, const char *out[2]), const void *from) {
  cb_json_begin(lines, key, '[');
  for (int i = 0; i < count; i++) {
    const char *strings[2];
    pair(from, i, strings);
    cb_json_begin(lines, NULL, '[');
    cb_json_line_text(lines, NULL, strings[0]);
    cb_json_line_text(lines, NULL, strings[1]);
    cb_json_end(lines, ']');
  }
  cb_json_end(lines, ']');
}

static void fact_pair(const void *from, int i, const char *out[2]) {
  const struct cb_region *region = from;
  out[0] = region->facts[i].key;
  out[1] = region->facts[i].value;
}
static void placeholder_pair(const void *from, int i, const char *out[2]) {
  const struct cb_region *region = from;
  out[0] = region->placeholders[i].name;
  out[1] = region->placeholders[i].text;
}

static void array_object(struct cb_json_lines *lines, const struct cb_array *array) {
  cb_json_begin(lines, NULL, '{');
  cb_json_line_text(lines, "name", array->name);
  cb_json_line_text(lines, "meaning", array->meaning);
  cb_json_line_text(lines, "role", role_names[array->role]);
  cb_json_line_text(lines, "type", cb_type_short(array->type));
  cb_json_line_text(lines, "storage", storage_names[array->storage]);
  cb_json_line_integer(lines, "count", array->count);
  cb_json_line_integer(lines, "largest", array->largest);
  if (array->streamed) cb_json_line_integer(lines, "streamed", 1);
  if (array->storage == CB_AFFINE) {
    cb_json_line_integer(lines, "base", array->base);
    cb_json_line_integer(lines, "step", array->step);
  }
  if (array->storage == CB_BAKED) {
    cb_json_begin(lines, "contents", '[');
    for (int64_t i = 0; i < array->count; i++) cb_json_line_integer(lines, NULL, (int64_t)array->baked[i]);
    cb_json_end(lines, ']');
  }
  cb_json_end(lines, '}');
}

static void cost_object(struct cb_json_lines *lines, const struct cb_cost *cost) {
  cb_json_begin(lines, "cost", '{');
  cb_json_line_integer(lines, "bytes", cost->bytes);
  cb_json_line_integer(lines, "sectors", cost->sectors);
  cb_json_line_integer(lines, "work_ns", cost->work_ns);
  cb_json_line_integer(lines, "chain_ns", cost->chain_ns);
  cb_json_line_integer(lines, "tail_ns", cost->tail_ns);
  cb_json_line_integer(lines, "stream_ns", cost->stream_ns);
  cb_json_line_integer(lines, "gather_ns", cost->gather_ns);
  cb_json_line_integer(lines, "gpu_ns", cost->gpu_ns);
  cb_json_line_integer(lines, "ns", cost->ns);
  cb_json_end(lines, '}');
}

/* Numbers as text: JSON's reals would not bring every bit back. */
static void values_object(struct cb_json_lines *lines, const struct cb_region *region) {
  const int has_table = region->value_storage != CB_VALUES_PLAIN;
  cb_json_begin(lines, "values", '{');
  cb_json_line_text(lines, "storage", value_storage_names[region->value_storage]);
  cb_json_line_text(lines, "type", cb_type_short(region->value_type));
  cb_json_line_integer(lines, "constant_slots", region->constant_slots);
  if (has_table) cb_json_line_integer(lines, "table_count", region->table_count);
  if (has_table && region->table_baked) {
    cb_json_begin(lines, "table", '[');
    for (int i = 0; i < region->table_count; i++) {
      char literal[CB_LITERAL];
      cb_literal(literal, region->value_table[i], CB_F64);
      cb_json_line_text(lines, NULL, literal);
    }
    cb_json_end(lines, ']');
  }
  cb_json_end(lines, '}');
}

static void region_object(struct cb_json_lines *lines, const struct cb_region *region) {
  cb_json_begin(lines, NULL, '{');
  cb_json_line_text(lines, "name", region->name);
  cb_json_line_text(lines, "layout", region->layout);
  cb_json_line_integer(lines, "nonzeros", region->nonzeros);
  cb_json_line_integer(lines, "value_slots", region->value_slots);
  values_object(lines, region);
  cb_json_line_integer(lines, "bytes", region->bytes);
  if (region->stream != CB_STREAM_LEAVES) cb_json_line_integer(lines, "stream", region->stream);
  if (region->value_stream) cb_json_line_integer(lines, "value_stream", region->value_stream);
  cb_json_line_text(lines, "commit", commit_names[region->commit]);
  cb_json_line_integer(lines, "first_block", region->first_block);
  cb_json_line_integer(lines, "blocks", region->blocks);
  if (region->commit >= CB_COMMIT_KEEP) {
    cb_json_line_integer(lines, "block_rows", region->block_rows);
    cb_json_line_integer(lines, "row_threads", region->row_threads);
  }
  cb_json_line_integer(lines, "carry_slots", region->carry_slots);
  cb_json_line_integer(lines, "carry_width", region->carry_width);
  cb_json_line_integer(lines, "carry_counters", region->carry_counters);
  cb_json_line_integer(lines, "prepare_blocks", region->prepare_blocks);
  if (region->finish_blocks) cb_json_line_integer(lines, "finish_blocks", region->finish_blocks);
  cb_json_line_integer(lines, "static_shared", region->static_shared);
  cb_json_line_integer(lines, "dynamic_shared", region->dynamic_shared);
  pairs(lines, "facts", region->facts_count, fact_pair, region);
  cb_json_begin(lines, "constants", '[');
  for (int i = 0; i < region->constants_count; i++) {
    cb_json_begin(lines, NULL, '{');
    cb_json_line_text(lines, "name", region->constants[i].name);
    cb_json_line_integer(lines, "value", region->constants[i].value);
    cb_json_line_text(lines, "kind", constant_kind_names[region->constants[i].kind]);
    cb_json_line_text(lines, "origin", region->constants[i].origin);
    cb_json_end(lines, '}');
  }
  cb_json_end(lines, ']');
  cb_json_begin(lines, "arrays", '[');
  for (int i = 0; i < region->arrays_count; i++) array_object(lines, &region->arrays[i]);
  cb_json_end(lines, ']');
  pairs(lines, "placeholders", region->placeholders_count, placeholder_pair, region);
  cb_json_begin(lines, "sections", '[');
  for (int i = 0; i < region->sections_count; i++) cb_json_line_text(lines, NULL, region->sections[i]);
  cb_json_end(lines, ']');
  cost_object(lines, &region->cost);
  cb_json_end(lines, '}');
}

static void launch_object(struct cb_json_lines *lines, const struct cb_launch *launch) {
  cb_json_begin(lines, NULL, '{');
  if (launch->body) cb_json_line_text(lines, "body", launch->body);
  cb_json_line_flag(lines, "prepares", launch->prepares);
  if (launch->finishes) cb_json_line_flag(lines, "finishes", 1);
  cb_json_line_integer(lines, "first_region", launch->first_region);
  cb_json_line_integer(lines, "regions", launch->regions);
  cb_json_line_integer(lines, "blocks", launch->blocks);
  if (launch->block_rows) cb_json_line_integer(lines, "block_rows", launch->block_rows);
  cb_json_line_integer(lines, "threads", launch->threads);
  cb_json_line_integer(lines, "blocks_per_sm", launch->blocks_per_sm);
  cb_json_line_integer(lines, "dynamic_shared", launch->dynamic_shared);
  cb_json_end(lines, '}');
}

static void target_object(struct cb_json_lines *lines, const struct cb_target *target) {
  cb_json_begin(lines, "target", '{');
  cb_json_line_text(lines, "arch", target->arch);
  cb_json_line_text(lines, "model", target->model);
  cb_json_line_integer(lines, "multiprocessors", target->multiprocessors);
  cb_json_line_integer(lines, "shared_per_block", target->shared_per_block);
  cb_json_line_integer(lines, "read_gb_per_s", target->read_gb_per_s);
  cb_json_line_integer(lines, "l2_gb_per_s", target->l2_gb_per_s);
  cb_json_line_integer(lines, "sectors_g_per_s", target->sectors_g_per_s);
  cb_json_line_integer(lines, "latency_ns", target->latency_ns);
  cb_json_line_integer(lines, "launch_ns", target->launch_ns);
  cb_json_end(lines, '}');
}

enum cb_status cb_plan_json(const struct cb_plan *plan, struct cb_text *text, struct cb_diag *diag) {
  struct cb_json_lines own = {.text = text}, *const lines = &own;
  cb_json_begin(lines, NULL, '{');
  cb_json_line_text(lines, "generator", CB_VERSION);
  cb_json_line_text(lines, "plan", plan->line);
  cb_json_line_text(lines, "recipe", plan->recipe);
  cb_json_line_integer(lines, "rows", plan->rows);
  cb_json_line_integer(lines, "cols", plan->cols);
  cb_json_line_integer(lines, "nonzeros", plan->nnz);
  cb_json_line_text(lines, "type", cb_plan_types_name(plan));
  cb_json_line_text(lines, "matrix_type", cb_type_short(plan->matrix_type));
  cb_json_line_text(lines, "vector_type", cb_type_short(plan->vector_type));
  cb_json_line_text(lines, "sum_type", cb_type_short(plan->sum_type));
  cb_json_line_text(lines, "values", plan->values_fixed ? "fixed" : "data");
  cb_json_line_text(lines, "form", form_names[plan->form]);
  if (plan->conjugated) cb_json_line_integer(lines, "conjugated", 1);
  if (plan->semiring != CB_PLUS_TIMES) cb_json_line_text(lines, "semiring", cb_semiring_names[plan->semiring]);
  if (plan->vectors > 1) {
    cb_json_line_integer(lines, "vectors", plan->vectors);
    if (plan->vector_blocks) cb_json_line_integer(lines, "vector_blocks", plan->vector_blocks);
    cb_json_begin(lines, "vector_shares", '[');
    for (int i = 0; i < CB_VECTOR_KERNELS; i++) {
      cb_json_begin(lines, NULL, '[');
      cb_json_line_integer(lines, NULL, plan->shares[i].each);
      cb_json_line_integer(lines, NULL, plan->shares[i].parts);
      cb_json_line_integer(lines, NULL, plan->shares[i].sharing);
      if (plan->shares[i].y_too) cb_json_line_integer(lines, NULL, 1);
      cb_json_end(lines, ']');
    }
    cb_json_end(lines, ']');
  }
  cb_json_line_flag(lines, "atomics", plan->atomics);
  if (plan->row_sums) cb_json_line_integer(lines, "first_row_sum", plan->first_row_sum);
  if (plan->epilogue) cb_json_line_text(lines, "epilogue", plan->epilogue);
  if (plan->index_limit != INT32_MAX) cb_json_line_integer(lines, "index_limit", plan->index_limit);
  target_object(lines, &plan->target);
  cb_json_line_integer(lines, "stored_bytes", cb_plan_bytes(plan));
  cb_json_line_integer(lines, "carry_sums", plan->carry_sums);
  cb_json_line_integer(lines, "carry_counters", plan->carry_counters);
  cost_object(lines, &plan->cost);
  cb_json_begin(lines, "regions", '[');
  for (int i = 0; i < plan->regions_count; i++) region_object(lines, &plan->regions[i]);
  cb_json_end(lines, ']');
  cb_json_begin(lines, "launches", '[');
  for (int i = 0; i < plan->launches_count; i++) launch_object(lines, &plan->launches[i]);
  cb_json_end(lines, ']');
  cb_json_end(lines, '}');
  cb_text_add_string(text, "\n");
  return text->failed ? cb_fail_memory(diag, "plan as JSON", text->length) : CB_OK;
}
