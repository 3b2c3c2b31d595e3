// SPDX-License-Identifier: Apache-2.0
/* The host section of a kernel's text: load, multiply, free, the data that stand in the text, and the self-test. See
 * source.h; cb_emit_host at the end lists what it has. */
#include "codegen/emitter.h"
#include "codegen/statements/epilogue.h"

#include <string.h>

static const char *array_structs(struct emitter *emitter) {
  struct cb_text text = {0};
  for (int i = 0; i < emitter->plan->regions_count; i++) {
    const char *name = emitter->plan->regions[i].name;
    if (is_family(emitter))
      cb_text_add(&text, "%s%s::Sizes %s_sizes;", text.length ? "\n  " : "", name, name);
    if (is_family(emitter) && gets_arrays(emitter, &emitter->plan->regions[i]))
      cb_text_add(&text, "\n  %s::Pointers %s;", name, name);
    if (stored_arrays(&emitter->plan->regions[i]) && !is_family(emitter))
      cb_text_add(&text, "%s%s::Arrays %s;", text.length ? "\n  " : "", name, name);
  }
  if (!text.length) cb_text_add_string(&text, "int nothing;  // the kernel reads no arrays");
  return keep(emitter, &text);
}

/* For each stored array what `format` says, with %s: region, array. */
static void for_each_stored(struct emitter *emitter, struct cb_text *text,
                            void (*add)(struct emitter *, struct cb_text *, int, int)) {
  const struct cb_plan *plan = emitter->plan;
  for (int r = 0; r < plan->regions_count; r++)
    for (int a = 0; a < plan->regions[r].arrays_count; a++)
      if (plan->regions[r].arrays[a].storage == CB_STORED && plan->regions[r].arrays[a].count)
        add(emitter, text, r, a);
}

/* "matrix->REGION.ARRAY = …;": the array's place in the one allocation. */
static void add_place(struct emitter *emitter, struct cb_text *text, int r, int a) {
  const struct cb_region *region = &emitter->plan->regions[r];
  const struct cb_array *array = &region->arrays[a];
  cb_text_add(text, "  matrix->%s.%s = (const %s *)array_at(matrix->memory, %lld, %lld);\n", region->name, array->name,
              cb_type_c_name(array->type), (long long)cb_blob_offset(emitter->plan, r, a),
              (long long)(array->count * (int64_t)cb_type_size(array->type)));
}

/* Bytes of the carry slots, and where the counters behind them are in the one allocation. */
static int64_t carry_sum_bytes(const struct cb_plan *plan) {
  return plan->carry_sums * cb_share_numbers(plan->shares) * (int64_t)cb_type_size(plan->sum_type);
}
static int64_t counters_at(const struct cb_plan *plan) {
  return cb_round_up(cb_blob_arrays_end(plan) + carry_sum_bytes(plan), CB_BLOB_ALIGN);
}

static int copies_x(const struct cb_plan *plan) { return cb_plan_vectors(plan, CB_VECTORS_COPIED) > 0; }

/* Where the scratch for X by rows is there, behind all else, and its bytes. */
static int64_t copy_at(const struct cb_plan *plan) {
  const int64_t counters = plan->carry_counters * (int64_t)sizeof(uint32_t);
  return cb_round_up(plan->carry_sums ? counters_at(plan) + counters : cb_blob_arrays_end(plan), CB_BLOB_ALIGN);
}
static int64_t copy_bytes(const struct cb_plan *plan) {
  return plan->cols * cb_copy_row_bytes(&plan->shares[CB_VECTORS_COPIED], plan->vector_type);
}

/* Behind it, that for Y. */
static int lays_out_y(const struct cb_plan *plan) { return plan->shares[CB_VECTORS_COPIED].y_too; }
static int64_t copy_of_y_at(const struct cb_plan *plan) {
  return cb_round_up(copy_at(plan) + copy_bytes(plan), CB_BLOB_ALIGN);
}
static int64_t copy_of_y_bytes(const struct cb_plan *plan) {
  return plan->rows * cb_copy_row_bytes(&plan->shares[CB_VECTORS_COPIED], plan->vector_type);
}

/* "matrix->REGION_sizes = …;" */
static void add_sizes(struct cb_text *text, const struct cb_region *region) {
  enum { PER_LINE = 24 };
  int32_t sizes[CB_FAMILY_SIZES];
  const int count = cb_family_sizes(region, sizes);
  cb_text_add(text, "  static const int %s_sizes[] = {", region->name);
  for (int i = 0; i < count; i++) cb_text_add(text, "%s%d", !i ? "" : i % PER_LINE ? ", " : ",\n    ", sizes[i]);
  cb_text_add(text, "};\n  static_assert(sizeof matrix->%s_sizes == sizeof %s_sizes, \"\");\n", region->name, region->name);
  cb_text_add(text, "  memcpy(&matrix->%s_sizes, %s_sizes, sizeof %s_sizes);\n", region->name, region->name, region->name);
}

static const char *array_places(struct emitter *emitter) {
  const struct cb_plan *plan = emitter->plan;
  const long long counter_bytes = (long long)(plan->carry_counters * (int64_t)sizeof(uint32_t));
  struct cb_text text = {0};
  for_each_stored(emitter, &text, add_place);
  for (int i = 0; i < plan->regions_count && is_family(emitter); i++) add_sizes(&text, &plan->regions[i]);
  if (plan->carry_sums) {
    cb_text_add(&text, "  matrix->carry_sums = (sum_t *)array_at(matrix->memory, %lld, %lld);\n",
                (long long)cb_blob_arrays_end(plan), (long long)carry_sum_bytes(plan));
    cb_text_add(&text, "  matrix->carry_counters = (uint32_t *)array_at(matrix->memory, %lld, %lld);\n",
                (long long)counters_at(plan), counter_bytes);
  }
  if (copies_x(plan))
    cb_text_add(&text, "  matrix->x_rows = (vector_t *)array_at(matrix->memory, %lld, %lld);\n",
                (long long)copy_at(plan), (long long)copy_bytes(plan));
  if (lays_out_y(plan))
    cb_text_add(&text, "  matrix->y_rows = (vector_t *)array_at(matrix->memory, %lld, %lld);\n",
                (long long)copy_of_y_at(plan), (long long)copy_of_y_bytes(plan));
  if (text.length) text.bytes[--text.length] = 0;
  return keep(emitter, &text);
}

static const char *memory_bytes(struct emitter *emitter) {
  const struct cb_plan *plan = emitter->plan;
  const int64_t counters = plan->carry_counters * (int64_t)sizeof(uint32_t);
  if (lays_out_y(plan)) return number(emitter, copy_of_y_at(plan) + copy_of_y_bytes(plan));
  if (copies_x(plan)) return number(emitter, copy_at(plan) + copy_bytes(plan));
  return number(emitter, plan->carry_sums ? counters_at(plan) + counters : cb_blob_arrays_end(plan));
}

/* "launch(KERNEL, kGrid, kThreads, …);" without what stands before. */
static void add_launch_call(struct emitter *emitter, struct cb_text *text, int l) {
  const struct cb_plan *plan = emitter->plan;
  const struct cb_launch *launch = &plan->launches[l];
  char kernel[96];
  cb_source_kernel(plan, emitter->label, l, kernel, sizeof kernel);
  cb_text_add(text, "launch(%s, %s, %s, %lld, stream", kernel, size_name(emitter, "kGrid", l),
              size_name(emitter, "kThreads", l), (long long)launch->dynamic_shared);
  for (int i = 0; i < launch->regions && !launch->body; i++) {
    const struct cb_region *region = &plan->regions[launch->first_region + i];
    if (is_family(emitter)) cb_text_add(text, ", matrix->%s_sizes", region->name);
    if (gets_arrays(emitter, region)) cb_text_add(text, ", matrix->%s", region->name);
  }
  if (is_family(emitter))
    cb_text_add(text, ", Shape{%lld, %lld, %lld}", (long long)plan->rows, (long long)plan->cols,
                (long long)plan->first_row_sum);
  cb_text_add(text, ", x, y%s%s%s%s);", has_scalars(emitter) ? ", alpha, beta" : "",
              plan->carry_sums     ? ", matrix->carry_sums, matrix->carry_counters"
              : has_carry(emitter) ? ", nullptr, nullptr"
                                   : "",
              cb_epilogue_arguments(emitter),
              emitter->clocked ? ", nullptr" : "");
}

static const char *launch_calls(struct emitter *emitter) {
  const struct cb_plan *plan = emitter->plan;
  struct cb_text text = {0};
  for (int l = 0; l < plan->launches_count; l++)
    cb_text_add(&text, "  constexpr unsigned %s = %lld;  // launch: thread blocks\n", size_name(emitter, "kGrid", l),
                (long long)plan->launches[l].blocks);
  cb_text_add_string(&text, "  cudaError_t error = ");
  for (int l = 0; l < plan->launches_count; l++) {
    if (l) cb_text_add_string(&text, "\n  if (!error) error = ");
    add_launch_call(emitter, &text, l);
  }
  return keep(emitter, &text);
}

/* What a call in a namespace has behind its arrays. */
struct operands {
  const char *x, *y, *scalars; /* scalars: if the product has them */
  const char *columns;         /* of several vectors */
};

/* "error = launch(KERNEL_NAME, …);" for each launch, on `times` as many thread blocks, with the arrays as the namespace
 * `name` has them. */
static const char *calls_in_namespace(struct emitter *emitter, const char *name, int64_t times,
                                      struct operands operands) {
  const struct cb_plan *plan = emitter->plan;
  const char *const indent = *operands.columns ? "      " : "  ";
  struct cb_text text = {0};
  for (int l = 0; l < plan->launches_count; l++) {
    const struct cb_launch *launch = &plan->launches[l];
    char kernel[96];
    cb_source_kernel(plan, emitter->label, l, kernel, sizeof kernel);
    cb_text_add(&text, "%s%s%serror = launch(%s_%s, %lld, %s::%s, %lld, stream", l ? "\n" : "", indent,
                l ? "if (!error) " : "", kernel, name, (long long)(launch->blocks * times), name,
                size_name(emitter, "kThreads", l), (long long)launch->dynamic_shared);
    for (int i = 0; i < launch->regions && !launch->body; i++) {
      const struct cb_region *region = &plan->regions[launch->first_region + i];
      if (gets_arrays(emitter, region))
        cb_text_add(&text, ", alike<%s::%s::Arrays>(matrix->%s)", name, region->name, region->name);
    }
    cb_text_add(&text, ", %s, %s%s%s%s);", operands.x, operands.y, has_scalars(emitter) ? operands.scalars : "",
                plan->carry_sums ? ", matrix->carry_sums, matrix->carry_counters" : "", operands.columns);
  }
  return keep(emitter, &text);
}

static const char *vector_calls(struct emitter *emitter, enum cb_vector_kernel kernel) {
  const struct cb_vector_share *share = &emitter->plan->shares[kernel];
  struct operands operands = {.x = "x", .y = "y", .scalars = ", alpha, beta", .columns = ", columns"};
  if (kernel == CB_VECTORS_COPIED) operands.x = "matrix->x_rows";
  if (share->y_too)
    operands = (struct operands){operands.x, "matrix->y_rows", ", sum_t(1), sum_t(0)", ", of_rows"};
  return calls_in_namespace(emitter, cb_vector_kernel_name(kernel), cb_share_blocks(share), operands);
}

static void add_heads(struct emitter *emitter, struct cb_scope *scope) {
  if (!cb_plan_has_heads(emitter->plan) || is_family(emitter)) return;
  cb_scope_section(scope, "heads");
  cb_scope_optional_section(scope, "namespaces");
  cb_scope_placeholder(scope, "heads_launches", calls_in_namespace(emitter, "heads", 1,
                                          (struct operands){"x", "y", ", alpha, beta", ""}));
}

/* The kernel that lays out X, or stores Y, and its thread blocks for so many rows. */
static void add_copy_launch(struct emitter *emitter, struct cb_scope *scope, const char *suffix, const char *kernel,
                            const char *blocks, int64_t rows) {
  const struct cb_plan *plan = emitter->plan;
  const struct cb_vector_share *share = &plan->shares[CB_VECTORS_COPIED];
  char name[96];
  cb_source_copy_kernel(plan, emitter->label, suffix, name, sizeof name);
  cb_scope_placeholder(scope, kernel, cb_arena_string(&emitter->arena, name));
  cb_scope_placeholder(scope, blocks, number(emitter, cb_divide_up(rows, cb_copy_rows(share, plan->vector_type))));
}

/* The kernels that take X in the scratch, the launch that brings it there, and the one that stores Y. */
static void add_copied(struct emitter *emitter, struct cb_scope *scope) {
  const struct cb_plan *plan = emitter->plan;
  const struct cb_vector_share *share = &plan->shares[CB_VECTORS_COPIED];
  if (!copies_x(plan)) return;
  cb_scope_section(scope, "copied_too");
  cb_scope_placeholder(scope, "copied", number(emitter, cb_share_vectors_of(share)));
  cb_scope_placeholder(scope, "copied_launches", vector_calls(emitter, CB_VECTORS_COPIED));
  add_copy_launch(emitter, scope, CB_COPY_SUFFIX, "copy_kernel", "copy_blocks", plan->cols);
  cb_scope_placeholder(scope, "copy_threads", number(emitter, CB_COPY_THREADS));
  if (!lays_out_y(plan)) return;
  cb_scope_section(scope, "copied_y_too");
  add_copy_launch(emitter, scope, CB_COPY_Y_SUFFIX, "copy_y_kernel", "copy_y_blocks", plan->rows);
}

static void add_vector_kernels(struct emitter *emitter, struct cb_scope *scope) {
  const struct cb_plan *plan = emitter->plan;
  if (plan->vectors == 1 || is_family(emitter)) return;
  cb_scope_section(scope, "several");
  cb_scope_optional_section(scope, "namespaces");
  cb_scope_placeholder(scope, "strided", number(emitter, cb_plan_vectors(plan, CB_VECTORS_STRIDED)));
  cb_scope_placeholder(scope, "strided_launches", vector_calls(emitter, CB_VECTORS_STRIDED));
  add_copied(emitter, scope);
  if (!cb_plan_vectors(plan, CB_VECTORS_PACKED)) return;
  cb_scope_section(scope, "packed_too");
  cb_scope_placeholder(scope, "packed", number(emitter, cb_plan_vectors(plan, CB_VECTORS_PACKED)));
  cb_scope_placeholder(scope, "packed_launches", vector_calls(emitter, CB_VECTORS_PACKED));
}

/* Whether multiply's text mentions its matrix: without arrays and carries nothing does. */
static int reads_matrix(const struct emitter *emitter) {
  const struct cb_plan *plan = emitter->plan;
  int stored = plan->carry_sums > 0 || is_family(emitter);
  for (int i = 0; i < plan->regions_count; i++) stored += stored_arrays(&plan->regions[i]);
  return stored;
}

/* Of launches with more dynamic shared memory than any kernel may have without asking. */
static const char *shared_attributes(struct emitter *emitter, const char *first) {
  enum { PLAIN_SHARED = 48 << 10 };
  const struct cb_plan *plan = emitter->plan;
  const int kinds = cb_plan_has_heads(plan) && !is_family(emitter) ? 2 : 1;
  struct cb_text text = {0};
  for (int l = 0; l < plan->launches_count * kinds; l++) {
    const struct cb_launch *launch = &plan->launches[l / kinds];
    char kernel[96];
    if (launch->dynamic_shared <= PLAIN_SHARED) continue;
    cb_source_kernel(plan, emitter->label, l / kinds, kernel, sizeof kernel);
    cb_text_add(&text, "%s error = cudaFuncSetAttribute(%s%s, cudaFuncAttributeMaxDynamicSharedMemorySize, %lld);",
                text.length ? "\n  if (!error)" : first, kernel, l % kinds ? "_heads" : "",
                (long long)launch->dynamic_shared);
  }
  return keep(emitter, &text);
}

static const char *data_words(struct emitter *emitter) {
  enum { PER_LINE = 5 };
  struct cb_text text = {0};
  for (int64_t at = 0; at < emitter->blob->length; at += 8) {
    uint64_t word;
    memcpy(&word, emitter->blob->bytes + at, sizeof word);
    const int64_t place = at / 8 % PER_LINE;
    cb_text_add(&text, "%s0x%llxu,%s", place ? " " : "    ", (unsigned long long)word,
                place == PER_LINE - 1 && at + 8 < emitter->blob->length ? "\n" : "");
  }
  return keep(emitter, &text);
}

/* How the self-test converts its doubles to entries of x, and those of y to doubles. */
static void entry_values(struct emitter *emitter, struct cb_scope *scope) {
  const struct cb_plan *plan = emitter->plan;
  const int rounds = cb_plan_rounds_y(plan), half = plan->vector_type == CB_F16;
  const char *const symbol = emitter->label->symbol;
  void (*const give)(struct cb_scope *, const char *, const char *) =
      plan->statements || cb_plan_is_complex(plan) ? cb_scope_optional /* no self-test, or of parts */
                                                   : cb_scope_placeholder;
  give(scope, "entry_of", rounds ? cb_arena_format(&emitter->arena, "%s_entry", symbol) : "vector_t");
  give(scope, "number_of", rounds ? cb_arena_format(&emitter->arena, "%s_number", symbol) : "double");
  if (!rounds) return;
  cb_scope_section(scope, "rounds_y");
  give(scope, "fraction_bits", half ? "10" : "7");
  give(scope, "bias", half ? "15" : "127");
  cb_scope_optional(scope, "cuda_type", half ? "__half" : "__nv_bfloat16");
}

static void host_values(struct emitter *emitter, struct cb_scope *scope) {
  const struct cb_plan *plan = emitter->plan;
  const struct cb_hash id = cb_blob_id(plan, emitter->label->pattern);
  cb_scope_placeholder(scope, "symbol", emitter->label->symbol);
  cb_scope_placeholder(scope, "rows", number(emitter, plan->rows));
  cb_scope_placeholder(scope, "cols", number(emitter, plan->cols));
  cb_scope_placeholder(scope, "array_structs", array_structs(emitter));
  const char *const attributes = shared_attributes(emitter, reads_matrix(emitter) ? "  if (!error)" : "  cudaError_t");
  if (attributes && *attributes) {
    cb_scope_section(scope, "shares_more");
    cb_scope_placeholder(scope, "shared_attributes", attributes);
  }
  cb_scope_placeholder(scope, "arrays_end", number(emitter, cb_blob_arrays_end(plan)));
  cb_scope_placeholder(scope, "data_version", number(emitter, CB_BLOB_VERSION));
  cb_scope_placeholder(scope, "id_low", cb_arena_format(&emitter->arena, "0x%llx", (unsigned long long)id.low));
  cb_scope_placeholder(scope, "id_high", cb_arena_format(&emitter->arena, "0x%llx", (unsigned long long)id.high));
  entry_values(emitter, scope);
  add_form(emitter, scope);
  if (plan->statements) {
    struct cb_text parameters = {0}, unused = {0};
    cb_epilogue_parameters(emitter, &parameters, &unused);
    cb_text_release(&unused);
    cb_scope_section(scope, "epilogue");
    const char *list = keep(emitter, &parameters);
    cb_scope_optional(scope, "epilogue_parameters", list);
    cb_scope_optional(scope, "epilogue_types", list);
  }
  if (plan->carry_sums) {
    cb_scope_section(scope, "carry");
    cb_scope_placeholder(scope, "counters_at", number(emitter, counters_at(plan)));
    cb_scope_placeholder(scope, "carry_counters", number(emitter, plan->carry_counters));
  }
  if (reads_matrix(emitter)) {
    const char *const places = array_places(emitter);
    cb_scope_section(scope, "reads_matrix");
    if (places && strstr(places, "array_at")) cb_scope_section(scope, "places_arrays");
    cb_scope_placeholder(scope, "memory_bytes", memory_bytes(emitter));
    cb_scope_placeholder(scope, "array_places", places);
  }
  if (plan->launches_count) {
    cb_scope_section(scope, "launches");
    cb_scope_placeholder(scope, "equation", equation(plan));
    cb_scope_placeholder(scope, "host_launches", launch_calls(emitter));
    add_heads(emitter, scope);
    add_vector_kernels(emitter, scope);
  }
  if (emitter->embed) {
    cb_scope_section(scope, "embedded");
    cb_scope_placeholder(scope, "data_words", data_words(emitter));
  }
}

enum cb_status cb_emit_host(struct emitter *emitter) {
  struct cb_scope scope = {0};
  host_values(emitter, &scope);
  if (emitter->arena.failed) return cb_fail_memory(emitter->diag, "generated text", 0);
  const enum cb_status s = cb_expand(&emitter->text, "host", &scope, emitter->diag);
  return s ? s : cb_scope_check(&scope, "the host section", emitter->diag);
}
