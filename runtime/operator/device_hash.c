// SPDX-License-Identifier: Apache-2.0
/* Hashes of patterns in device memory: see device_hash.h. */
#include "runtime/operator/device_hash.h"

#include "base/memory.h"
#include "codegen/expand.h"
#include "codegen/source.h"
#include "frontend/csr.h"

#include <stdio.h>
#include <string.h>

enum { THREADS = 256 };
enum { COLUMNS_32, COLUMNS_64, ROWS_32, ROWS_64 };

static const char *const kernels[CB_HASHER_KERNELS] = {
    [COLUMNS_32] = "cbgen_hash_columns_32",
    [COLUMNS_64] = "cbgen_hash_columns_64",
    [ROWS_32] = "cbgen_hash_rows_32",
    [ROWS_64] = "cbgen_hash_rows_64",
};

enum cb_status cb_hasher_text(struct cb_text *text, struct cb_diag *diag) {
  struct cb_scope scope = {0};
  struct cb_text body = {0};
  char threads[16], columns[16], lengths[16];
  snprintf(threads, sizeof threads, "%d", THREADS);
  snprintf(columns, sizeof columns, "%d", CB_HASH_CHUNK);
  snprintf(lengths, sizeof lengths, "%d", CB_HASH_ROWS);
  cb_scope_placeholder(&scope, "threads", threads);
  cb_scope_placeholder(&scope, "columns", columns);
  cb_scope_placeholder(&scope, "lengths", lengths);
  enum cb_status s = cb_expand(&body, "hash", &scope, diag);
  if (!s) s = cb_scope_check(&scope, "the hashing kernels", diag);
  if (!s) s = cb_source_with_prelude(text, &body, diag);
  cb_text_release(&body);
  return s;
}

/* ---- loading */

/* Kernels are loaded by their first launch, so that those which are not needed never are. That is allowed, since
 * nothing here is captured into a graph. */
static enum cb_status find(struct cb_hasher *hasher, int number, struct cb_diag *diag) {
  const struct cb_driver *driver = hasher->device->driver;
  return cb_driver_check(
      driver, driver->call.module_function(&hasher->functions[number], hasher->module, kernels[number]), diag,
      "find kernel '%s'", kernels[number]);
}

enum cb_status cb_hasher_load(struct cb_hasher *hasher, const struct cb_device *device, const void *cubin,
                              struct cb_diag *diag) {
  *hasher = (struct cb_hasher){.device = device};
  enum cb_status s = cb_driver_check(device->driver, device->driver->call.module_load(&hasher->module, cubin), diag,
                                     "load the hashing kernels");
  if (s) hasher->module = NULL;
  for (int i = 0; i < CB_HASHER_KERNELS && !s; i++) s = find(hasher, i, diag);
  return s;
}

static void release_room(struct cb_hasher *hasher) {
  cb_device_free(hasher->device, hasher->results);
  if (hasher->pinned)
    hasher->device->driver->call.host_free(hasher->copy);
  else
    cb_free(hasher->copy);
  hasher->room = 0;
  hasher->results = 0;
  hasher->copy = NULL;
  hasher->pinned = 0;
}

void cb_hasher_release(struct cb_hasher *hasher) {
  if (!hasher->device) return;
  release_room(hasher);
  if (hasher->module) hasher->device->driver->call.module_unload(hasher->module);
  *hasher = (struct cb_hasher){0};
}

void cb_hasher_forget(struct cb_hasher *hasher) {
  if (!hasher->pinned) cb_free(hasher->copy);
  *hasher = (struct cb_hasher){0};
}

/* ---- results: one block on the device, which comes back by one copy */

struct head {
  uint64_t ends[2]; /* the first row pointer and the last, counted from 0 */
  uint32_t unfit_rows, unfit_columns, pad[2];
};

struct layout {
  int64_t row_chunks, column_chunks; /* whole ones */
  size_t rows, columns;              /* places of their digests, in bytes */
  size_t row_rest, column_rest;      /* places of what is left over */
  size_t bytes;
};

static struct layout lay_out(const struct cb_view *view) {
  struct layout layout = {.row_chunks = view->rows / CB_HASH_ROWS, .column_chunks = view->nnz / CB_HASH_CHUNK};
  layout.rows = sizeof(struct head);
  layout.columns = layout.rows + (size_t)(layout.row_chunks + 1) * sizeof(struct cb_hash);
  layout.row_rest = layout.columns + (size_t)(layout.column_chunks + 1) * sizeof(struct cb_hash);
  layout.column_rest = layout.row_rest + (size_t)(view->rows % CB_HASH_ROWS) * sizeof(uint32_t);
  layout.bytes = layout.column_rest + (size_t)(view->nnz % CB_HASH_CHUNK) * sizeof(uint32_t);
  return layout;
}

static enum cb_status need_room(struct cb_hasher *hasher, size_t bytes, struct cb_diag *diag) {
  enum { LEAST = 1 << 19 };
  const size_t room = bytes < LEAST ? LEAST : bytes;
  void *copy = NULL;
  if (hasher->room >= bytes) return CB_OK;
  release_room(hasher);
  enum cb_status s = cb_device_alloc(hasher->device, &hasher->results, room, "digests", diag);
  if (s) return s;
  hasher->pinned = hasher->device->driver->call.host_alloc(&copy, room, 0) == CB_CU_SUCCESS;
  hasher->copy = hasher->pinned ? copy : cb_alloc(room, 1);
  if (!hasher->copy) return cb_fail_memory(diag, "digests", room);
  hasher->room = room;
  return CB_OK;
}

/* ---- running */

static enum cb_status launch(const struct cb_hasher *hasher, int number, int64_t blocks, struct CUstream_st *stream,
                             void **parameters, struct cb_diag *diag) {
  const struct cb_driver *driver = hasher->device->driver;
  return cb_driver_check(driver,
                         driver->call.launch(hasher->functions[number], (unsigned)blocks, 1, 1, THREADS, 1, 1, 0,
                                             stream, parameters, NULL),
                         diag, "launch kernel '%s'", kernels[number]);
}

/* A matrix without rows has ends, too. */
static enum cb_status hash_rows(const struct cb_hasher *hasher, const struct cb_view *view,
                                const struct layout *layout, struct cb_diag *diag) {
  cb_device_ptr row_ptr = (cb_device_ptr)(uintptr_t)view->row_ptr, digests = hasher->results + layout->rows,
                rest = hasher->results + layout->row_rest,
                unfit = hasher->results + offsetof(struct head, unfit_rows),
                ends = hasher->results + offsetof(struct head, ends);
  uint64_t base = (uint64_t)view->base;
  int64_t rows = view->rows;
  void *parameters[] = {&row_ptr, &base, &rows, &digests, &rest, &unfit, &ends};
  return launch(hasher, view->row_wide ? ROWS_64 : ROWS_32, layout->row_chunks + 1, view->stream, parameters, diag);
}

static enum cb_status hash_columns(const struct cb_hasher *hasher, const struct cb_view *view,
                                   const struct layout *layout, struct cb_diag *diag) {
  cb_device_ptr columns = (cb_device_ptr)(uintptr_t)view->col_idx, digests = hasher->results + layout->columns,
                rest = hasher->results + layout->column_rest,
                unfit = hasher->results + offsetof(struct head, unfit_columns);
  uint64_t base = (uint64_t)view->base;
  int64_t count = view->nnz;
  void *parameters[] = {&columns, &base, &count, &digests, &rest, &unfit};
  if (!count) return CB_OK;
  return launch(hasher, view->col_wide ? COLUMNS_64 : COLUMNS_32, layout->column_chunks + (count % CB_HASH_CHUNK > 0),
                view->stream, parameters, diag);
}

static enum cb_status bring_back(const struct cb_hasher *hasher, const struct cb_view *view, size_t bytes,
                                 struct cb_diag *diag) {
  const struct cb_driver *driver = hasher->device->driver;
  enum cb_status s = cb_driver_check(
      driver, driver->call.copy_to_host_async(hasher->copy, hasher->results, bytes, view->stream), diag,
      "copy digests from GPU %d", hasher->device->ordinal);
  if (!s) s = cb_driver_check(driver, driver->call.stream_synchronize(view->stream), diag, "hash the matrix");
  return s;
}

/* Hashes what the kernels leave to the host: the last chunks, unless they are whole. */
static struct cb_hash finish(const struct cb_hasher *hasher, const struct cb_view *view,
                             const struct layout *layout) {
  unsigned char *bytes = hasher->copy;
  const struct head *head = hasher->copy;
  struct cb_hash *rows = (void *)(bytes + layout->rows), *columns = (void *)(bytes + layout->columns);
  const size_t row_rest = layout->column_rest - layout->row_rest, column_rest = layout->bytes - layout->column_rest;
  if (row_rest) rows[layout->row_chunks] = cb_hash_bytes(bytes + layout->row_rest, row_rest);
  if (column_rest) columns[layout->column_chunks] = cb_hash_bytes(bytes + layout->column_rest, column_rest);
  /* columns that are hashed as they are given may be anything: see cb_view_hash */
  const int as_given = !view->col_wide && !view->base;
  const int consistent = !head->ends[0] && head->ends[1] == (uint64_t)view->nnz && !head->unfit_rows &&
                         (as_given || !head->unfit_columns);
  return cb_view_hash_from(view, rows, columns, consistent);
}

enum cb_status cb_hasher_run(struct cb_hasher *hasher, const struct cb_view *view, struct cb_hash *hash,
                             struct cb_diag *diag) {
  const struct layout layout = lay_out(view);
  const struct cb_driver *driver = hasher->device->driver;
  enum cb_status s = need_room(hasher, layout.bytes, diag);
  if (!s)
    s = cb_driver_check(driver,
                        driver->call.fill_bytes_async(hasher->results, 0, layout.row_rest, view->stream), diag,
                        "clear digests on GPU %d", hasher->device->ordinal);
  if (!s) s = hash_rows(hasher, view, &layout, diag);
  if (!s) s = hash_columns(hasher, view, &layout, diag);
  if (!s) s = bring_back(hasher, view, layout.bytes, diag);
  if (!s) *hash = finish(hasher, view, &layout);
  return s;
}

int cb_hasher_brought(const struct cb_hasher *hasher, const struct cb_view *view, struct cb_brought *brought) {
  const struct layout layout = lay_out(view);
  const struct head *head = hasher->copy;
  if (!head || layout.row_chunks || layout.column_chunks || head->unfit_rows || head->unfit_columns) return 0;
  if (head->ends[0] || head->ends[1] != (uint64_t)view->nnz) return 0;
  const unsigned char *bytes = hasher->copy;
  *brought = (struct cb_brought){(const void *)(bytes + layout.row_rest), (const void *)(bytes + layout.column_rest),
                                 layout.bytes};
  return 1;
}
