// SPDX-License-Identifier: Apache-2.0
/* A plan's numbers back from its JSON, which may come from anywhere: every number is looked at before it is believed.
 * Fails stickily. */
#include "analysis/plan.h"

#include "analysis/plan/names.h"
#include "base/json.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

/* Far above what plans have, and low enough that no sum over a plan overflows. */
enum { MOST_REGIONS = 4096, MOST_ARRAYS = 1024, MOST_LAUNCHES = 64 };
#define MOST ((int64_t)1 << 48)

struct reader {
  struct cb_plan *plan;
  int arrays; /* of all regions so far */
  int failed;
};

static int64_t take(struct reader *reader, const json_t *object, const char *key, int64_t least, int64_t most) {
  const json_t *value = json_object_get(object, key);
  const int64_t number = json_integer_value(value);
  if (json_is_integer(value) && number >= least && number <= most) return number;
  reader->failed = 1;
  return least;
}

static const char *take_text(struct reader *reader, const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  text = text ? cb_arena_string(&reader->plan->arena, text) : NULL;
  if (!text) reader->failed = 1;
  return text ? text : "";
}

/* The number of the word in a list. */
static int take_word(struct reader *reader, const json_t *object, const char *key, const char *const *words,
                     int count) {
  const char *word = json_string_value(json_object_get(object, key));
  for (int i = 0; word && i < count; i++)
    if (!strcmp(words[i], word)) return i;
  reader->failed = 1;
  return 0;
}
#define TAKE_WORD(reader, object, key, words) \
  take_word(reader, object, key, words, (int)(sizeof(words) / sizeof *(words)))

static enum cb_type take_type(struct reader *reader, const json_t *object, const char *key) {
  const char *word = json_string_value(json_object_get(object, key));
  const enum cb_type type = word ? cb_type_named(word) : CB_TYPE_COUNT;
  if (type != CB_TYPE_COUNT) return type;
  reader->failed = 1;
  return CB_U8;
}

/* Room for the elements of a list, of which there are at most `most`. */
static void *take_list(struct reader *reader, const json_t *list, int most, size_t size, int *count) {
  const size_t length = json_array_size(list);
  void *elements = json_is_array(list) && length <= (size_t)most
                       ? cb_arena_alloc(&reader->plan->arena, length + 1, size)
                       : NULL;
  *count = elements ? (int)length : 0;
  if (!elements) reader->failed = 1;
  return elements;
}

static void take_target(struct reader *reader, const json_t *object) {
  struct cb_target *target = &reader->plan->target;
  snprintf(target->arch, sizeof target->arch, "%s", take_text(reader, object, "arch"));
  snprintf(target->model, sizeof target->model, "%s", take_text(reader, object, "model"));
  target->multiprocessors = (int)take(reader, object, "multiprocessors", 1, INT32_MAX);
  target->shared_per_block = (int)take(reader, object, "shared_per_block", 0, INT32_MAX);
  target->read_gb_per_s = take(reader, object, "read_gb_per_s", 1, INT32_MAX);
  target->l2_gb_per_s = take(reader, object, "l2_gb_per_s", 1, INT32_MAX);
  target->sectors_g_per_s = take(reader, object, "sectors_g_per_s", 1, INT32_MAX);
  target->latency_ns = take(reader, object, "latency_ns", 0, INT32_MAX);
  target->launch_ns = take(reader, object, "launch_ns", 0, INT32_MAX);
}

static void take_region(struct reader *reader, const json_t *object, struct cb_region *region) {
  const json_t *arrays = json_object_get(object, "arrays");
  *region = (struct cb_region){0};
  region->nonzeros = take(reader, object, "nonzeros", 0, MOST);
  region->value_slots = take(reader, object, "value_slots", 0, MOST);
  region->bytes = take(reader, object, "bytes", 0, MOST);
  region->arrays =
      take_list(reader, arrays, MOST_ARRAYS - reader->arrays, sizeof *region->arrays, &region->arrays_count);
  reader->arrays += region->arrays_count;
  for (int i = 0; i < region->arrays_count; i++) {
    const json_t *from = json_array_get(arrays, (size_t)i);
    region->arrays[i] = (struct cb_array){.role = (enum cb_role)TAKE_WORD(reader, from, "role", role_names),
                                          .type = take_type(reader, from, "type"),
                                          .storage = (enum cb_storage)TAKE_WORD(reader, from, "storage", storage_names),
                                          .count = take(reader, from, "count", 0, MOST)};
  }
}

static void take_launch(struct reader *reader, const json_t *object, struct cb_launch *launch) {
  const int regions = reader->plan->regions_count;
  *launch = (struct cb_launch){0};
  if (json_object_get(object, "body")) launch->body = take_text(reader, object, "body");
  launch->prepares = json_is_true(json_object_get(object, "prepares"));
  launch->finishes = json_is_true(json_object_get(object, "finishes"));
  launch->first_region = (int)take(reader, object, "first_region", 0, regions);
  launch->regions = (int)take(reader, object, "regions", 0, regions - launch->first_region);
  launch->blocks = take(reader, object, "blocks", 1, INT32_MAX);
  launch->threads = (int)take(reader, object, "threads", 1, 1024);
  launch->dynamic_shared = take(reader, object, "dynamic_shared", 0, INT32_MAX);
}

static void take_lists(struct reader *reader, const json_t *root) {
  struct cb_plan *plan = reader->plan;
  const json_t *regions = json_object_get(root, "regions"), *launches = json_object_get(root, "launches");
  plan->regions = take_list(reader, regions, MOST_REGIONS, sizeof *plan->regions, &plan->regions_count);
  for (int i = 0; i < plan->regions_count; i++)
    take_region(reader, json_array_get(regions, (size_t)i), &plan->regions[i]);
  plan->launches = take_list(reader, launches, MOST_LAUNCHES, sizeof *plan->launches, &plan->launches_count);
  for (int i = 0; i < plan->launches_count; i++)
    take_launch(reader, json_array_get(launches, (size_t)i), &plan->launches[i]);
}

/* The epilogue, if there is one; its statements are read again. */
static void take_epilogue(struct reader *reader, const json_t *root) {
  struct cb_plan *plan = reader->plan;
  struct cb_statements *statements = NULL;
  if (!json_object_get(root, "epilogue")) return;
  plan->epilogue = take_text(reader, root, "epilogue");
  if (!cb_statements_parse(&statements, plan->epilogue, "epilogue", 1, NULL))
    plan->statements = cb_arena_copy(&plan->arena, statements, 1, sizeof *statements);
  if (!plan->statements) reader->failed = 1;
  cb_free(statements);
}

/* Powers of 2, as a list of triples, the last of an enum cb_sharing; and 1 behind where Y is laid out, too. */
static void take_vectors(struct reader *reader, const json_t *root) {
  struct cb_plan *plan = reader->plan;
  plan->vectors = 1;
  if (!json_object_get(root, "vectors")) return;
  const json_t *shares = json_object_get(root, "vector_shares");
  plan->vectors = (int)take(reader, root, "vectors", 2, CB_MOST_VECTORS);
  for (int i = 0; i < CB_VECTOR_KERNELS; i++) {
    const json_t *three = json_array_get(shares, (size_t)i);
    int numbers[3] = {0};
    for (size_t n = 0; n < 3; n++) {
      const int64_t number = json_integer_value(json_array_get(three, n));
      const int is_power = number >= 0 && number <= CB_MOST_VECTORS && !(number & (number - 1));
      if (json_is_integer(json_array_get(three, n)) && is_power) numbers[n] = (int)number;
      else reader->failed = 1;
    }
    if (numbers[2] >= CB_SHARINGS) reader->failed = 1;
    plan->shares[i] = (struct cb_vector_share){.each = numbers[0], .parts = numbers[1],
                                               .sharing = (enum cb_sharing)numbers[2],
                                               .y_too = json_integer_value(json_array_get(three, 3)) == 1};
  }
  if (cb_plan_vectors(plan, CB_VECTORS_STRIDED) < 1) reader->failed = 1;
}

static void take_plan(struct reader *reader, const json_t *root) {
  static const char *const values[] = {"data", "fixed"};
  struct cb_plan *plan = reader->plan;
  const json_t *cost = json_object_get(root, "cost");
  plan->line = take_text(reader, root, "plan");
  plan->recipe = take_text(reader, root, "recipe");
  plan->rows = take(reader, root, "rows", 0, INT32_MAX);
  plan->cols = take(reader, root, "cols", 0, INT32_MAX);
  plan->nnz = take(reader, root, "nonzeros", 0, MOST);
  plan->matrix_type = take_type(reader, root, "matrix_type");
  plan->vector_type = take_type(reader, root, "vector_type");
  plan->sum_type = take_type(reader, root, "sum_type");
  plan->form = (enum cb_form)TAKE_WORD(reader, root, "form", form_names);
  if (json_object_get(root, "semiring"))
    plan->semiring = (enum cb_semiring)take_word(reader, root, "semiring", cb_semiring_names, CB_SEMIRINGS);
  plan->values_fixed = TAKE_WORD(reader, root, "values", values);
  plan->carry_sums = take(reader, root, "carry_sums", 0, MOST);
  plan->carry_counters = take(reader, root, "carry_counters", 0, MOST);
  plan->cost.ns = take(reader, cost, "ns", 0, INT64_MAX);
  plan->cost.sectors = take(reader, cost, "sectors", 0, MOST);
  take_vectors(reader, root);
  take_epilogue(reader, root);
  take_target(reader, json_object_get(root, "target"));
  take_lists(reader, root);
}

enum cb_status cb_plan_parse(struct cb_plan **result, const char *json, struct cb_diag *diag) {
  json_t *root;
  struct cb_plan *plan = *result = cb_calloc(1, sizeof *plan);
  if (!plan) return cb_fail_memory(diag, "a plan", sizeof *plan);
  struct reader reader = {.plan = plan};
  const enum cb_status s = cb_json_read(&root, json, strlen(json), NULL);
  if (root) take_plan(&reader, root);
  const int no_memory = plan->arena.failed || s == CB_ERR_MEMORY;
  json_decref(root);
  if (root && !reader.failed) {
    plan->hash = cb_hash_bytes(json, strlen(json));
    return CB_OK;
  }
  cb_plan_free(plan);
  *result = NULL;
  return no_memory ? cb_fail_memory(diag, "a plan", strlen(json))
                   : cb_fail(diag, CB_ERR_FORMAT, "the plan's JSON is damaged");
}
