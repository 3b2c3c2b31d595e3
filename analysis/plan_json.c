// SPDX-License-Identifier: Apache-2.0
/* The plan as JSON. Key order is fixed, so equal plans give equal text: the plan's hash is the hash of this text,
 * and whatever shapes the kernel's text must therefore stand here. */
#include "analysis/layout.h"

#include "base/memory.h"

#include <jansson.h>
#include <stdlib.h>

static const char *const form_names[] = {"ax", "add", "axpby"};
static const char *const role_names[] = {"index", "bytes", "values", "table", "mixed"};
static const char *const value_storage_names[] = {"plain", "coded", "equal"};
static const char *const storage_names[] = {"stored", "affine", "baked"};
static const char *const commit_names[] = {"final", "own", "add", "atomic", "keep", "kept"};

/* jansson's setters fail on a NULL value, so one flag collects every shortage of memory. */
struct object {
  json_t *json;
  int *failed;
};

static void set(struct object object, const char *key, json_t *value) {
  if (json_object_set_new(object.json, key, value)) *object.failed = 1;
}
static void set_int(struct object object, const char *key, int64_t value) {
  set(object, key, json_integer(value));
}
static void set_text(struct object object, const char *key, const char *value) {
  set(object, key, json_string(value));
}
static struct object new_object(int *failed) { return (struct object){json_object(), failed}; }
static void append(json_t *list, struct object item) {
  if (json_array_append_new(list, item.json)) *item.failed = 1;
}

static json_t *pairs(int count, void (*pair)(const void *, int, const char *out[2]),
                     const void *from, int *failed) {
  json_t *list = json_array();
  for (int i = 0; i < count; i++) {
    const char *strings[2];
    pair(from, i, strings);
    if (json_array_append_new(list, json_pack("[ss]", strings[0], strings[1]))) *failed = 1;
  }
  return list;
}

static void fact_pair(const void *from, int i, const char *out[2]) {
  const struct cb_region *region = from;
  out[0] = region->facts[i].key;
  out[1] = region->facts[i].value;
}
static void hole_pair(const void *from, int i, const char *out[2]) {
  const struct cb_region *region = from;
  out[0] = region->holes[i].name;
  out[1] = region->holes[i].text;
}
static void include_pair(const void *from, int i, const char *out[2]) {
  const struct cb_region *region = from;
  out[0] = region->includes[i].name;
  out[1] = region->includes[i].piece;
}

static struct object array_object(const struct cb_array *array, int *failed) {
  struct object object = new_object(failed);
  set_text(object, "name", array->name);
  set_text(object, "meaning", array->meaning);
  set_text(object, "role", role_names[array->role]);
  set_text(object, "type", cb_type_short(array->type));
  set_text(object, "storage", storage_names[array->storage]);
  set_int(object, "count", array->count);
  set_int(object, "largest", array->largest);
  if (array->streamed) set_int(object, "streamed", 1);
  if (array->storage == CB_AFFINE) {
    set_int(object, "base", array->base);
    set_int(object, "step", array->step);
  }
  if (array->storage == CB_BAKED) {
    json_t *table = json_array();
    for (int64_t i = 0; i < array->count; i++)
      if (json_array_append_new(table, json_integer((json_int_t)array->baked[i]))) *failed = 1;
    set(object, "contents", table);
  }
  return object;
}

static struct object cost_object(const struct cb_cost *cost, int *failed) {
  struct object object = new_object(failed);
  set_int(object, "bytes", cost->bytes);
  set_int(object, "sectors", cost->sectors);
  set_int(object, "work_ns", cost->work_ns);
  set_int(object, "chain_ns", cost->chain_ns);
  set_int(object, "tail_ns", cost->tail_ns);
  set_int(object, "stream_ns", cost->stream_ns);
  set_int(object, "gather_ns", cost->gather_ns);
  set_int(object, "gpu_ns", cost->gpu_ns);
  set_int(object, "ns", cost->ns);
  return object;
}

/* Numbers as text: JSON's reals would not bring every bit back. */
static struct object values_object(const struct cb_region *region, int *failed) {
  struct object object = new_object(failed);
  set_text(object, "storage", value_storage_names[region->value_storage]);
  set_text(object, "type", cb_type_short(region->value_type));
  set_int(object, "constant_slots", region->constant_slots);
  if (region->value_storage == CB_VALUES_PLAIN) return object;
  set_int(object, "table_count", region->table_count);
  if (!region->table_baked) return object;
  json_t *table = json_array();
  for (int i = 0; i < region->table_count; i++) {
    char literal[40];
    cb_literal(literal, region->value_table[i], CB_F64);
    if (json_array_append_new(table, json_string(literal))) *failed = 1;
  }
  set(object, "table", table);
  return object;
}

static struct object region_object(const struct cb_region *region, int *failed) {
  struct object object = new_object(failed);
  set_text(object, "name", region->name);
  set_text(object, "layout", region->layout);
  set_int(object, "nonzeros", region->nonzeros);
  set_int(object, "value_slots", region->value_slots);
  set(object, "values", values_object(region, failed).json);
  set_int(object, "bytes", region->bytes);
  set_text(object, "commit", commit_names[region->commit]);
  set_int(object, "first_block", region->first_block);
  set_int(object, "blocks", region->blocks);
  if (region->commit == CB_COMMIT_KEEP || region->commit == CB_COMMIT_KEPT) {
    set_int(object, "block_rows", region->block_rows);
    set_int(object, "row_threads", region->row_threads);
  }
  set_int(object, "carry_slots", region->carry_slots);
  set_int(object, "carry_width", region->carry_width);
  set_int(object, "carry_counters", region->carry_counters);
  set_int(object, "prepare_blocks", region->prepare_blocks);
  set_int(object, "static_shared", region->static_shared);
  set_int(object, "dynamic_shared", region->dynamic_shared);
  set(object, "facts", pairs(region->facts_count, fact_pair, region, failed));
  json_t *constants = json_array();
  for (int i = 0; i < region->constants_count; i++) {
    struct object constant = new_object(failed);
    set_text(constant, "name", region->constants[i].name);
    set_int(constant, "value", region->constants[i].value);
    set_text(constant, "origin", region->constants[i].origin);
    append(constants, constant);
  }
  set(object, "constants", constants);
  json_t *arrays = json_array();
  for (int i = 0; i < region->arrays_count; i++) append(arrays, array_object(&region->arrays[i], failed));
  set(object, "arrays", arrays);
  set(object, "holes", pairs(region->holes_count, hole_pair, region, failed));
  set(object, "includes", pairs(region->includes_count, include_pair, region, failed));
  set(object, "cost", cost_object(&region->cost, failed).json);
  return object;
}

static struct object launch_object(const struct cb_launch *launch, int *failed) {
  struct object object = new_object(failed);
  if (launch->piece) set_text(object, "piece", launch->piece);
  set(object, "prepares", json_boolean(launch->prepares));
  set_int(object, "first_region", launch->first_region);
  set_int(object, "regions", launch->regions);
  set_int(object, "blocks", launch->blocks);
  if (launch->block_rows) set_int(object, "block_rows", launch->block_rows);
  set_int(object, "threads", launch->threads);
  set_int(object, "blocks_per_sm", launch->blocks_per_sm);
  set_int(object, "dynamic_shared", launch->dynamic_shared);
  return object;
}

static struct object target_object(const struct cb_target *target, int *failed) {
  struct object object = new_object(failed);
  set_text(object, "arch", target->arch);
  set_text(object, "model", target->model);
  set_int(object, "multiprocessors", target->multiprocessors);
  set_int(object, "shared_per_block", target->shared_per_block);
  set_int(object, "read_gb_per_s", target->read_gb_per_s);
  set_int(object, "l2_gb_per_s", target->l2_gb_per_s);
  set_int(object, "sectors_g_per_s", target->sectors_g_per_s);
  set_int(object, "latency_ns", target->latency_ns);
  set_int(object, "launch_ns", target->launch_ns);
  return object;
}

enum cb_status cb_plan_json(const struct cb_plan *plan, struct cb_text *text, struct cb_diag *diag) {
  int failed = 0;
  struct object root = new_object(&failed);
  set_text(root, "generator", CBGEN_VERSION);
  set_text(root, "plan", plan->line);
  set_text(root, "recipe", plan->recipe);
  set_int(root, "rows", plan->rows);
  set_int(root, "cols", plan->cols);
  set_int(root, "nonzeros", plan->nnz);
  set_text(root, "type", cb_plan_types_name(plan));
  set_text(root, "matrix_type", cb_type_short(plan->matrix_type));
  set_text(root, "vector_type", cb_type_short(plan->vector_type));
  set_text(root, "sum_type", cb_type_short(plan->sum_type));
  set_text(root, "values", plan->values_fixed ? "fixed" : "data");
  set_text(root, "form", form_names[plan->form]);
  set(root, "atomics", json_boolean(plan->atomics));
  if (plan->index_limit != INT32_MAX) set_int(root, "index_limit", plan->index_limit);
  set(root, "target", target_object(&plan->target, &failed).json);
  set_int(root, "stored_bytes", cb_plan_bytes(plan));
  set_int(root, "carry_sums", plan->carry_sums);
  set_int(root, "carry_counters", plan->carry_counters);
  set(root, "cost", cost_object(&plan->cost, &failed).json);
  json_t *regions = json_array(), *launches = json_array();
  for (int i = 0; i < plan->regions_count; i++) append(regions, region_object(&plan->regions[i], &failed));
  for (int i = 0; i < plan->launches_count; i++) append(launches, launch_object(&plan->launches[i], &failed));
  set(root, "regions", regions);
  set(root, "launches", launches);
  char *dump = failed ? NULL : json_dumps(root.json, JSON_INDENT(2));
  json_decref(root.json);
  if (!dump) return cb_fail_memory(diag, "plan as JSON", 0);
  cb_text_add(text, "%s\n", dump);
  free(dump);
  return text->failed ? cb_fail_memory(diag, "plan as JSON", text->length) : CB_OK;
}
