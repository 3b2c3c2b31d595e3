// SPDX-License-Identifier: Apache-2.0
/* Running a traced product: see trace.h. */
#include "runtime/verify/trace_parts.h"

#include "analysis/plan/assignment.h"
#include "base/memory.h"
#include "base/real.h"
#include "runtime/verify/trace_text.h"

#include <string.h>

/* ---- what reports ask */

int64_t cb_trace_find_slot(const struct cb_trace *trace, uint64_t nonzero, int *region) {
  for (*region = 0; *region < trace->one->plan->regions_count; ++*region)
    for (int mirrored = 0; mirrored < 2; mirrored++) {
      const struct cb_slot_map *map = mirrored ? &trace->mirrored[*region] : &trace->maps[*region];
      for (int64_t slot = 0; slot < map->count; slot++)
        if (cb_slot_get(map, slot) == nonzero) return slot;
    }
  *region = -1;
  return -1;
}

int64_t cb_trace_byte(const struct cb_trace *trace, int number, int64_t slot) {
  const struct cb_plan *plan = trace->one->plan;
  const struct cb_region *region = number >= 0 && number < plan->regions_count ? &plan->regions[number] : NULL;
  for (int a = 0; region && slot >= 0 && a < region->arrays_count; a++) {
    const struct cb_array *array = &region->arrays[a];
    const enum cb_type type = array->role == CB_ROLE_VALUES ? array->type : region->value_type;
    const int64_t size = type == CB_SPLIT ? 4 : (int64_t)cb_type_size(type); /* of a head */
    if (array->storage != CB_STORED || (array->role != CB_ROLE_VALUES && array->role != CB_ROLE_MIXED)) continue;
    if (slot < region->value_slots - region->constant_slots) return cb_blob_offset(plan, number, a) + slot * size;
  }
  return -1;
}

double cb_trace_value(const struct cb_trace *trace, int64_t nonzero) {
  const double *const values = trace->product->values ? trace->product->values : trace->one->csr->values;
  return cb_real_round(values ? values[nonzero] : 1, trace->one->plan->matrix_type);
}

const void *cb_trace_y(const struct cb_trace *trace) {
  return trace->result;
}

void cb_trace_committer(const struct cb_trace *trace, int64_t row, int64_t *launch, int64_t *block) {
  const uint64_t id = trace->nodes.of_row[row];
  *launch = *block = 0;
  if (id >= (uint64_t)trace->nodes.nodes_count) return;
  *launch = trace->nodes.nodes[id].launch;
  *block = trace->nodes.nodes[id].block;
}

/* ---- the product */

static enum cb_status widen(double **wide, const void *vector, enum cb_type type, int64_t count, struct cb_diag *diag) {
  *wide = cb_alloc((size_t)count + 1, sizeof **wide);
  if (!*wide) return cb_fail_memory(diag, "vectors", (unsigned long long)count * 8);
  for (int64_t i = 0; i < count; i++) (*wide)[i] = cb_real_get(vector, type, i);
  return CB_OK;
}

static enum cb_status build_maps(struct cb_trace *trace, struct cb_diag *diag) {
  const int count = trace->one->plan->regions_count;
  enum cb_status s = CB_OK;
  trace->maps = cb_calloc((size_t)count + 1, sizeof *trace->maps);
  trace->mirrored = cb_calloc((size_t)count + 1, sizeof *trace->mirrored);
  if (!trace->maps || !trace->mirrored) return cb_fail_memory(diag, "slot maps", 0);
  for (int r = 0; r < count && !s; r++) {
    s = cb_slot_map_build(&trace->maps[r], trace->one->plan, trace->one->assignment, r, NULL, diag);
    if (!s) s = cb_mirror_map_build(&trace->mirrored[r], trace->one->plan, trace->one->assignment, r, diag);
  }
  return s;
}

static enum cb_status expect(struct cb_trace *trace, struct cb_diag *diag) {
  const struct cb_plan *plan = trace->one->plan;
  const struct cb_csr *csr = trace->one->csr;
  const struct cb_trace_product *given = trace->product;
  enum cb_status s = widen(&trace->x, given->x, plan->vector_type, csr->cols, diag);
  if (!s) s = widen(&trace->y0, given->y, plan->vector_type, csr->rows, diag);
  const struct cb_product product = {.types = cb_oracle_types_of(plan),
                                     .values = given->values,
                                     .x = trace->x,
                                     .y = trace->y0,
                                     .alpha = given->alpha,
                                     .beta = given->beta};
  return s ? s : cb_oracle_multiply(&trace->expected, csr, &product, diag);
}

static int line_of_body(const struct cb_source *source) {
  int line = 1;
  for (int64_t i = 0; i < source->body; i++) line += source->text[i] == '\n';
  return line;
}

/* The only thread block of a launch that touches the row, plus 1; 0: more may. */
static int64_t block_of_row(const struct cb_plan *plan, const struct cb_launch *launch, int64_t row) {
  const struct cb_region *region = &plan->regions[launch->first_region];
  if (launch->body || launch->prepares) return 0;
  for (int r = 0; r < launch->regions; r++)
    if (!region[r].block_rows || region[r].carry_slots) return 0;
  if (launch->regions > 1) return launch->block_rows ? row / launch->block_rows + 1 : 0;
  return region->first_block + row / region->block_rows + 1;
}

static void restrict_blocks(const struct cb_trace *trace, int64_t only[EMULATION_LAUNCHES]) {
  const struct cb_plan *plan = trace->one->plan;
  for (int l = 0; l < EMULATION_LAUNCHES; l++)
    only[l] = l < plan->launches_count && trace->product->is_of_row
                  ? block_of_row(plan, &plan->launches[l], trace->product->row)
                  : 0;
}

static enum cb_status execute(struct cb_trace *trace, struct cb_host *host, const char *text, struct cb_diag *diag) {
  const struct cb_verify_case *one = trace->one;
  const struct cb_trace_product *product = trace->product;
  const int64_t size = (int64_t)cb_type_size(one->plan->vector_type);
  const struct cb_host_kernel kernel = {.text = text,
                                        .first_line = line_of_body(one->source),
                                        .symbol = one->symbol,
                                        .vector_type = one->plan->vector_type,
                                        .form = one->plan->form,
                                        .is_traced = 1};
  int64_t only[EMULATION_LAUNCHES];
  struct cb_host_job job = {.only = only,
                            .data = product->blob->bytes,
                            .data_bytes = product->blob->length,
                            .x = product->x,
                            .x_bytes = one->csr->cols * size,
                            .y = product->y,
                            .y_bytes = one->csr->rows * size,
                            .alpha = product->alpha,
                            .beta = product->beta,
                            .seed = product->seed,
                            .products = 1,
                            .result = trace->result,
                            .trace = &trace->nodes};
  struct cb_host_program *program = NULL;
  restrict_blocks(trace, only);
  enum cb_status s = cb_host_build(&program, host, &kernel, 1, diag);
  if (!s) s = cb_host_run(program, &job, 1, diag);
  cb_host_program_free(program);
  if (s || job.outcome == CB_HOST_DONE) return s;
  return cb_fail(diag, CB_ERR_WRONG, "the kernel was stopped: %.900s", job.message);
}

static enum cb_status run(struct cb_trace *trace, struct cb_host *given, struct cb_diag *diag) {
  const struct cb_verify_case *one = trace->one;
  struct cb_host_options options;
  struct cb_host *host = NULL;
  struct cb_text text = {0};
  cb_host_options_default(&options);
  trace->result = cb_alloc((size_t)one->csr->rows + 1, cb_type_size(one->plan->vector_type));
  enum cb_status s = trace->result ? CB_OK : cb_fail_memory(diag, "a product", 0);
  if (!s) s = cb_trace_text(&text, one->source->text + one->source->body, one->plan, diag);
  if (!s && !given) s = cb_host_open(&host, &options, diag);
  if (!s) s = execute(trace, given ? given : host, cb_text_string(&text), diag);
  cb_host_close(host);
  cb_text_release(&text);
  return s;
}

enum cb_status cb_trace_run(struct cb_trace **out, struct cb_host *host, const struct cb_verify_case *one,
                            const struct cb_trace_product *product, struct cb_diag *diag) {
  *out = NULL;
  if (cb_plan_is_complex(one->plan))
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "products of complex numbers are not traced: 'type' is %s",
                   cb_plan_types_name(one->plan));
  struct cb_trace *trace = *out = cb_calloc(1, sizeof *trace);
  if (!trace) return cb_fail_memory(diag, "a trace", sizeof *trace);
  trace->one = one;
  trace->product = product;
  enum cb_status s = build_maps(trace, diag);
  if (!s) s = expect(trace, diag);
  if (!s) s = run(trace, host, diag);
  if (!s && !(trace->parts = cb_calloc((size_t)trace->nodes.nodes_count + 1, sizeof *trace->parts)))
    s = cb_fail_memory(diag, "a trace", (unsigned long long)trace->nodes.nodes_count * sizeof *trace->parts);
  if (!s) return CB_OK;
  cb_trace_free(trace);
  *out = NULL;
  return s;
}

void cb_trace_free(struct cb_trace *trace) {
  if (!trace) return;
  for (int r = 0; trace->maps && r < trace->one->plan->regions_count; r++) cb_slot_map_release(&trace->maps[r]);
  for (int r = 0; trace->mirrored && r < trace->one->plan->regions_count; r++) cb_slot_map_release(&trace->mirrored[r]);
  cb_free(trace->maps);
  cb_free(trace->mirrored);
  cb_free(trace->parts);
  cb_free(trace->x);
  cb_free(trace->y0);
  cb_free(trace->result);
  cb_expected_release(&trace->expected);
  cb_host_trace_release(&trace->nodes);
  cb_free(trace);
}
