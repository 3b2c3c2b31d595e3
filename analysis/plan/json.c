// SPDX-License-Identifier: Apache-2.0
/* The plan as JSON. Key order is fixed, so equal plans give equal text: the plan's hash is the hash of this text,
 * and whatever shapes the kernel's text must therefore stand here. */
#include "analysis/layout.h"

#include "analysis/plan/names.h"
#include "base/json.h"

static const char *const constant_kind_names[] = {
    [0] = "undeclared", [CB_CONSTANT_STRUCTURE] = "structure", [CB_CONSTANT_SIZE] = "size"};
static const char *const value_storage_names[] = {"plain", "coded", "equal"};
static const char *const commit_names[] = {"final", "own", "add", "atomic", "keep", "kept", "kept-keep", "kept-add"};

static json_t *pairs(int count, void (*pair)(const void *, int, const char *out[2]),
                     const void *from, int *failed) {
  const struct cb_json list = cb_json_array(failed);
  for (int i = 0; i < count; i++) {
    const char *strings[2];
    pair(from, i, strings);
    cb_json_append(list, json_pack("[ss]", strings[0], strings[1]));
  }
  return list.json;
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

static struct cb_json array_object(const struct cb_array *array, int *failed) {
  struct cb_json object = cb_json_object(failed);
  cb_json_set_text(object, "name", array->name);
  cb_json_set_text(object, "meaning", array->meaning);
  cb_json_set_text(object, "role", role_names[array->role]);
  cb_json_set_text(object, "type", cb_type_short(array->type));
  cb_json_set_text(object, "storage", storage_names[array->storage]);
  cb_json_set_integer(object, "count", array->count);
  cb_json_set_integer(object, "largest", array->largest);
  if (array->streamed) cb_json_set_integer(object, "streamed", 1);
  if (array->storage == CB_AFFINE) {
    cb_json_set_integer(object, "base", array->base);
    cb_json_set_integer(object, "step", array->step);
  }
  if (array->storage == CB_BAKED) {
    const struct cb_json table = cb_json_array(failed);
    for (int64_t i = 0; i < array->count; i++) cb_json_append(table, json_integer((json_int_t)array->baked[i]));
    cb_json_set(object, "contents", table.json);
  }
  return object;
}

static struct cb_json cost_object(const struct cb_cost *cost, int *failed) {
  struct cb_json object = cb_json_object(failed);
  cb_json_set_integer(object, "bytes", cost->bytes);
  cb_json_set_integer(object, "sectors", cost->sectors);
  cb_json_set_integer(object, "work_ns", cost->work_ns);
  cb_json_set_integer(object, "chain_ns", cost->chain_ns);
  cb_json_set_integer(object, "tail_ns", cost->tail_ns);
  cb_json_set_integer(object, "stream_ns", cost->stream_ns);
  cb_json_set_integer(object, "gather_ns", cost->gather_ns);
  cb_json_set_integer(object, "gpu_ns", cost->gpu_ns);
  cb_json_set_integer(object, "ns", cost->ns);
  return object;
}

/* Numbers as text: JSON's reals would not bring every bit back. */
static struct cb_json values_object(const struct cb_region *region, int *failed) {
  struct cb_json object = cb_json_object(failed);
  cb_json_set_text(object, "storage", value_storage_names[region->value_storage]);
  cb_json_set_text(object, "type", cb_type_short(region->value_type));
  cb_json_set_integer(object, "constant_slots", region->constant_slots);
  if (region->value_storage == CB_VALUES_PLAIN) return object;
  cb_json_set_integer(object, "table_count", region->table_count);
  if (!region->table_baked) return object;
  const struct cb_json table = cb_json_array(failed);
  for (int i = 0; i < region->table_count; i++) {
    char literal[CB_LITERAL];
    cb_literal(literal, region->value_table[i], CB_F64);
    cb_json_append(table, json_string(literal));
  }
  cb_json_set(object, "table", table.json);
  return object;
}

static struct cb_json region_object(const struct cb_region *region, int *failed) {
  struct cb_json object = cb_json_object(failed);
  cb_json_set_text(object, "name", region->name);
  cb_json_set_text(object, "layout", region->layout);
  cb_json_set_integer(object, "nonzeros", region->nonzeros);
  cb_json_set_integer(object, "value_slots", region->value_slots);
  cb_json_set(object, "values", values_object(region, failed).json);
  cb_json_set_integer(object, "bytes", region->bytes);
  cb_json_set_text(object, "commit", commit_names[region->commit]);
  cb_json_set_integer(object, "first_block", region->first_block);
  cb_json_set_integer(object, "blocks", region->blocks);
  if (region->commit >= CB_COMMIT_KEEP) {
    cb_json_set_integer(object, "block_rows", region->block_rows);
    cb_json_set_integer(object, "row_threads", region->row_threads);
  }
  cb_json_set_integer(object, "carry_slots", region->carry_slots);
  cb_json_set_integer(object, "carry_width", region->carry_width);
  cb_json_set_integer(object, "carry_counters", region->carry_counters);
  cb_json_set_integer(object, "prepare_blocks", region->prepare_blocks);
  cb_json_set_integer(object, "static_shared", region->static_shared);
  cb_json_set_integer(object, "dynamic_shared", region->dynamic_shared);
  cb_json_set(object, "facts", pairs(region->facts_count, fact_pair, region, failed));
  const struct cb_json constants = cb_json_array(failed);
  for (int i = 0; i < region->constants_count; i++) {
    struct cb_json constant = cb_json_object(failed);
    cb_json_set_text(constant, "name", region->constants[i].name);
    cb_json_set_integer(constant, "value", region->constants[i].value);
    cb_json_set_text(constant, "kind", constant_kind_names[region->constants[i].kind]);
    cb_json_set_text(constant, "origin", region->constants[i].origin);
    cb_json_append(constants, constant.json);
  }
  cb_json_set(object, "constants", constants.json);
  const struct cb_json arrays = cb_json_array(failed);
  for (int i = 0; i < region->arrays_count; i++)
    cb_json_append(arrays, array_object(&region->arrays[i], failed).json);
  cb_json_set(object, "arrays", arrays.json);
  cb_json_set(object, "placeholders", pairs(region->placeholders_count, placeholder_pair, region, failed));
  const struct cb_json sections = cb_json_array(failed);
  for (int i = 0; i < region->sections_count; i++) cb_json_append(sections, json_string(region->sections[i]));
  cb_json_set(object, "sections", sections.json);
  cb_json_set(object, "cost", cost_object(&region->cost, failed).json);
  return object;
}

static struct cb_json launch_object(const struct cb_launch *launch, int *failed) {
  struct cb_json object = cb_json_object(failed);
  if (launch->body) cb_json_set_text(object, "body", launch->body);
  cb_json_set(object, "prepares", json_boolean(launch->prepares));
  cb_json_set_integer(object, "first_region", launch->first_region);
  cb_json_set_integer(object, "regions", launch->regions);
  cb_json_set_integer(object, "blocks", launch->blocks);
  if (launch->block_rows) cb_json_set_integer(object, "block_rows", launch->block_rows);
  cb_json_set_integer(object, "threads", launch->threads);
  cb_json_set_integer(object, "blocks_per_sm", launch->blocks_per_sm);
  cb_json_set_integer(object, "dynamic_shared", launch->dynamic_shared);
  return object;
}

static struct cb_json target_object(const struct cb_target *target, int *failed) {
  struct cb_json object = cb_json_object(failed);
  cb_json_set_text(object, "arch", target->arch);
  cb_json_set_text(object, "model", target->model);
  cb_json_set_integer(object, "multiprocessors", target->multiprocessors);
  cb_json_set_integer(object, "shared_per_block", target->shared_per_block);
  cb_json_set_integer(object, "read_gb_per_s", target->read_gb_per_s);
  cb_json_set_integer(object, "l2_gb_per_s", target->l2_gb_per_s);
  cb_json_set_integer(object, "sectors_g_per_s", target->sectors_g_per_s);
  cb_json_set_integer(object, "latency_ns", target->latency_ns);
  cb_json_set_integer(object, "launch_ns", target->launch_ns);
  return object;
}

enum cb_status cb_plan_json(const struct cb_plan *plan, struct cb_text *text, struct cb_diag *diag) {
  int failed = 0;
  struct cb_json root = cb_json_object(&failed);
  cb_json_set_text(root, "generator", CB_VERSION);
  cb_json_set_text(root, "plan", plan->line);
  cb_json_set_text(root, "recipe", plan->recipe);
  cb_json_set_integer(root, "rows", plan->rows);
  cb_json_set_integer(root, "cols", plan->cols);
  cb_json_set_integer(root, "nonzeros", plan->nnz);
  cb_json_set_text(root, "type", cb_plan_types_name(plan));
  cb_json_set_text(root, "matrix_type", cb_type_short(plan->matrix_type));
  cb_json_set_text(root, "vector_type", cb_type_short(plan->vector_type));
  cb_json_set_text(root, "sum_type", cb_type_short(plan->sum_type));
  cb_json_set_text(root, "values", plan->values_fixed ? "fixed" : "data");
  cb_json_set_text(root, "form", form_names[plan->form]);
  if (plan->semiring != CB_PLUS_TIMES) cb_json_set_text(root, "semiring", cb_semiring_names[plan->semiring]);
  if (plan->vectors > 1) {
    const struct cb_json shares = cb_json_array(&failed);
    for (int i = 0; i < CB_VECTOR_KERNELS; i++)
      cb_json_append(shares, json_pack("[iii]", plan->shares[i].each, plan->shares[i].parts, (int)plan->shares[i].sharing));
    cb_json_set_integer(root, "vectors", plan->vectors);
    if (plan->vector_blocks) cb_json_set_integer(root, "vector_blocks", plan->vector_blocks);
    cb_json_set(root, "vector_shares", shares.json);
  }
  cb_json_set(root, "atomics", json_boolean(plan->atomics));
  if (plan->row_sums) cb_json_set_integer(root, "first_row_sum", plan->first_row_sum);
  if (plan->epilogue) cb_json_set_text(root, "epilogue", plan->epilogue);
  if (plan->index_limit != INT32_MAX) cb_json_set_integer(root, "index_limit", plan->index_limit);
  cb_json_set(root, "target", target_object(&plan->target, &failed).json);
  cb_json_set_integer(root, "stored_bytes", cb_plan_bytes(plan));
  cb_json_set_integer(root, "carry_sums", plan->carry_sums);
  cb_json_set_integer(root, "carry_counters", plan->carry_counters);
  cb_json_set(root, "cost", cost_object(&plan->cost, &failed).json);
  const struct cb_json regions = cb_json_array(&failed), launches = cb_json_array(&failed);
  for (int i = 0; i < plan->regions_count; i++)
    cb_json_append(regions, region_object(&plan->regions[i], &failed).json);
  for (int i = 0; i < plan->launches_count; i++)
    cb_json_append(launches, launch_object(&plan->launches[i], &failed).json);
  cb_json_set(root, "regions", regions.json);
  cb_json_set(root, "launches", launches.json);
  const enum cb_status s = cb_json_write(text, root, JSON_INDENT(2), "plan as JSON", diag);
  if (s) return s;
  cb_text_add_string(text, "\n");
  return text->failed ? cb_fail_memory(diag, "plan as JSON", text->length) : CB_OK;
}
