// SPDX-License-Identifier: Apache-2.0
/* Results with several vectors as text and as JSON: see many.h. */
#include "base/json.h"
#include "runtime/measure/many.h"

static void add_entry(struct cb_text *text, const struct cb_many_result *result, const struct cb_many_entry *entry) {
  const char *const order = cb_dense_order_names[entry->order];
  if (!entry->baseline.applies) {
    cb_text_add(text, "  %-10s %-7s does not apply: %s\n", entry->baseline.name, order, entry->baseline.reason);
    return;
  }
  const double us = entry->timing.us;
  const double gflops = us > 0 ? 2e-3 * (double)result->nnz * result->vectors / us : 0;
  cb_text_add(text, "  %-10s %-7s %.2f µs (%.2f to %.2f), %.1f GFLOP/s", entry->baseline.name, order, us,
              entry->timing.least_us, entry->timing.most_us, gflops);
  if (entry->wrong) cb_text_add(text, "; WRONG in %lld rows", (long long)entry->wrong);
  cb_text_add_string(text, "\n");
}

void cb_many_report(struct cb_text *text, const struct cb_bench *bench, const struct cb_many_result *result) {
  int major = 0, minor = 0, patch = 0;
  if (bench->cusparse) cb_cusparse_version(bench->cusparse, &major, &minor, &patch);
  cb_text_add(text, "%s: %lld × %lld, %lld nonzeros, %s, %d vectors\n", result->name, (long long)result->rows,
              (long long)result->cols, (long long)result->nnz, result->type, result->vectors);
  cb_text_add(text, "  plan      %s\n", result->plan);
  for (int i = 0; i < CB_VECTOR_KERNELS; i++)
    if (result->shares[i].each)
      cb_text_add(text, "  kernel    %s: %d vectors to a thread, %d threads to a row's work\n",
                  cb_vector_kernel_name((enum cb_vector_kernel)i), result->shares[i].each, result->shares[i].parts);
  cb_text_add(text, "  compiled  in %.0f ms; at most %d registers, %d bytes spilled\n", 1e3 * result->compile_seconds,
              result->registers, result->spilled_bytes);
  cb_text_add(text, "  bound     %.2f µs: %.1f MB with X and Y at the read ceiling\n", result->bound_us,
              1e-6 * (double)result->moved_bytes);
  if (bench->cusparse) cb_text_add(text, "  against   cuSPARSE %d.%d.%d\n", major, minor, patch);
  for (int i = 0; i < CB_MANY_ENTRIES; i++) add_entry(text, result, &result->entries[i]);
  cb_text_add(text, "  checked   %d of the vectors\n", result->checked);
  if (result->speed_up[CB_BY_ROW] > 0)
    cb_text_add(text, "speed-up    %.2f by rows, %.2f by columns, over the best of cuSPARSE in any order\n",
                result->speed_up[CB_BY_ROW], result->speed_up[CB_BY_COLUMN]);
}

enum cb_status cb_many_json(struct cb_text *text, const struct cb_bench *bench, const struct cb_many_result *result,
                            struct cb_diag *diag) {
  int failed = 0, major = 0, minor = 0, patch = 0;
  struct cb_json root = cb_json_object(&failed);
  if (bench->cusparse) cb_cusparse_version(bench->cusparse, &major, &minor, &patch);
  cb_json_set_text(root, "matrix", result->name);
  if (result->file) cb_json_set_text(root, "file", result->file);
  cb_json_set_text(root, "device", bench->device->target.model);
  cb_json_set(root, "cusparse", json_pack("[iii]", major, minor, patch));
  cb_json_set_integer(root, "rows", result->rows);
  cb_json_set_integer(root, "cols", result->cols);
  cb_json_set_integer(root, "nonzeros", result->nnz);
  cb_json_set_text(root, "type", result->type);
  cb_json_set_text(root, "plan", result->plan);
  cb_json_set_integer(root, "vectors", result->vectors);
  cb_json_set_integer(root, "stored_bytes", result->stored_bytes);
  cb_json_set_integer(root, "moved_bytes", result->moved_bytes);
  cb_json_set_real(root, "bound_us", result->bound_us);
  cb_json_set_real(root, "predicted_us", result->predicted_us);
  cb_json_set_integer(root, "registers", result->registers);
  cb_json_set_integer(root, "spilled_bytes", result->spilled_bytes);
  cb_json_set_integer(root, "checked_vectors", result->checked);
  const struct cb_json entries = cb_json_array(&failed);
  for (int i = 0; i < CB_MANY_ENTRIES; i++) {
    const struct cb_many_entry *entry = &result->entries[i];
    struct cb_json one = cb_json_object(&failed);
    cb_json_set_text(one, "name", entry->baseline.name);
    cb_json_set_text(one, "order", cb_dense_order_names[entry->order]);
    if (!entry->baseline.applies) cb_json_set_text(one, "reason", entry->baseline.reason);
    else cb_json_set_real(one, "us", entry->timing.us);
    cb_json_set_integer(one, "wrong", entry->wrong);
    cb_json_append(entries, one.json);
  }
  cb_json_set(root, "products", entries.json);
  cb_json_set_real(root, "speed_up_rows", result->speed_up[CB_BY_ROW]);
  cb_json_set_real(root, "speed_up_columns", result->speed_up[CB_BY_COLUMN]);
  return cb_json_write(text, root, JSON_COMPACT, "products as JSON", diag);
}
