// SPDX-License-Identifier: Apache-2.0
/* Products against plain CSR products: see comparer.h. */
#include "runtime/operator/comparer.h"

#include "base/memory.h"
#include "base/real.h"
#include "codegen/expand.h"
#include "codegen/source.h"
#include "runtime/operator/values.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { ROWS_PER_BLOCK = 8, THREADS = 256 };

struct cb_comparer {
  const struct cb_device *device;
  const struct cb_packer *packer;
  struct cb_operator_info info;
  struct cb_records *records;
  struct CUmod_st *module;
  struct CUfunc_st *compare, *tell;
  struct CUevent_st *done; /* after the last comparison, which may have been on another stream */
  cb_device_ptr row_ptr, columns, values, before, first;
  int64_t bytes;
  struct cb_updater *updater; /* NULL: values stay */
};

/* ---- the text */

/* Of a floating-point type, as literals: see the oracle. */
struct numbers {
  const char *roundoff, *smallest, *largest, *infinite; /* infinite: numbers from here on are, rounded to it */
};
static const struct numbers numbers[] = {
    [CB_F64] = {"0x1p-53", "0x1p-1074", "0x1.fffffffffffffp1023", ""},
    [CB_F32] = {"0x1p-24", "0x1p-149", "0x1.fffffep127", ""},
    [CB_F16] = {"0x1p-11", "0x1p-24", "65504.0", "65520.0"},
    [CB_BF16] = {"0x1p-8", "0x1p-133", "0x1.fep127", "0x1.ffp127"},
};

static void add_types(struct cb_scope *scope, const struct cb_operator_info *info, int wide) {
  const struct numbers *sum = &numbers[info->sum_type], *y = &numbers[info->vector_type];
  const int is_sum = info->semiring == CB_PLUS_TIMES;
  cb_scope_placeholder(scope, "row_type", wide ? "int64_t" : "int32_t");
  cb_scope_placeholder(scope, "matrix_type", cb_type_c_name(info->matrix_type));
  cb_scope_placeholder(scope, "vector_type", cb_type_entry_name(info->vector_type));
  cb_scope_placeholder(scope, "sum_type", cb_type_c_name(info->sum_type));
  cb_scope_optional_section(scope, cb_semiring_section(info->semiring));
  if (!is_sum) return;
  cb_scope_placeholder(scope, "roundoff", sum->roundoff);
  cb_scope_placeholder(scope, "smallest", sum->smallest);
  cb_scope_placeholder(scope, "largest", sum->largest);
  cb_scope_placeholder(scope, "extra", "4");
  if (!cb_rounds_y(info->vector_type, info->sum_type)) return;
  cb_scope_section(scope, "rounds_y");
  cb_scope_placeholder(scope, "roundoff_y", y->roundoff);
  cb_scope_placeholder(scope, "smallest_y", y->smallest);
  cb_scope_placeholder(scope, "infinite_y", y->infinite);
}

enum cb_status cb_comparer_text(struct cb_text *text, const struct cb_operator_info *info, int wide,
                                struct cb_diag *diag) {
  struct cb_scope scope = {0};
  struct cb_text body = {0};
  add_types(&scope, info, wide);
  enum cb_status s = cb_expand(&body, "compare", &scope, diag);
  if (!s) s = cb_scope_check(&scope, "the comparing kernels", diag);
  if (!s) s = cb_source_with_prelude(text, &body, diag);
  cb_text_release(&body);
  return s;
}

/* ---- kernels */

static enum cb_status find(struct cb_comparer *comparer, struct CUfunc_st **function, const char *name,
                           struct cb_diag *diag) {
  return cb_driver_find_kernel(comparer->device->driver, function, comparer->module, name, diag);
}

static enum cb_status load(struct cb_comparer *comparer, const struct cb_compiled *compiled, struct cb_diag *diag) {
  const struct cb_driver *driver = comparer->device->driver;
  enum cb_status s = cb_driver_check(driver, driver->call.module_load(&comparer->module, compiled->cubin), diag,
                                     "load the comparing kernels");
  if (s) comparer->module = NULL;
  if (!s) s = find(comparer, &comparer->compare, "cbgen_compare", diag);
  if (!s) s = find(comparer, &comparer->tell, "cbgen_tell", diag);
  if (s) return s;
  s = cb_driver_check(driver, driver->call.event_create(&comparer->done, CB_CU_EVENT_NO_TIMING), diag, "make an event");
  if (s) comparer->done = NULL;
  return s;
}

static enum cb_status add_kernels(struct cb_comparer *comparer, const struct cb_comparing *from, struct cb_diag *diag) {
  const struct cb_nvrtc_options options = {.arch = comparer->device->target.arch};
  struct cb_text text = {0};
  struct cb_compiled compiled = {0};
  enum cb_status s = cb_comparer_text(&text, &comparer->info, from->csr->wide, diag);
  if (!s) s = cb_nvrtc_compile(&compiled, from->nvrtc, cb_text_string(&text), "comparing kernels", &options, diag);
  if (!s) s = load(comparer, &compiled, diag);
  cb_compiled_release(&compiled);
  cb_text_release(&text);
  return s;
}

/* ---- the matrix */

static enum cb_status room(struct cb_comparer *comparer, cb_device_ptr *address, size_t bytes, struct cb_diag *diag) {
  const size_t taken = bytes ? bytes : 1;
  const enum cb_status s = cb_device_alloc(comparer->device, address, taken, "a matrix to compare with", diag);
  if (!s) comparer->bytes += (int64_t)taken;
  return s;
}

static enum cb_status put(struct cb_comparer *comparer, cb_device_ptr *address, const void *from, size_t bytes,
                          struct cb_diag *diag) {
  const enum cb_status s = room(comparer, address, bytes, diag);
  return s || !bytes ? s : cb_device_upload(comparer->device, *address, from, bytes, "a matrix to compare with", diag);
}

static enum cb_status add_pattern(struct cb_comparer *comparer, const struct cb_csr *csr, struct cb_diag *diag) {
  static const uint64_t first[2] = {UINT64_MAX, 0};
  const size_t rows = (size_t)csr->rows, entry = cb_type_size(comparer->info.vector_type);
  enum cb_status s = put(comparer, &comparer->row_ptr, csr->row_ptr, (rows + 1) * (csr->wide ? 8 : 4), diag);
  if (!s) s = put(comparer, &comparer->columns, csr->col_idx, (size_t)csr->nnz * sizeof *csr->col_idx, diag);
  if (!s) s = put(comparer, &comparer->first, first, sizeof first, diag);
  if (!s && comparer->info.form != CB_FORM_AX) s = room(comparer, &comparer->before, rows * entry, diag);
  return s;
}

/* Slot k is nonzero k. */
static enum cb_status make_slots(struct cb_slot_map *slots, int64_t nonzeros, struct cb_diag *diag) {
  *slots = (struct cb_slot_map){.count = nonzeros, .wide = nonzeros >= UINT32_MAX};
  slots->entries = cb_alloc((size_t)nonzeros + 1, slots->wide ? sizeof(uint64_t) : sizeof(uint32_t));
  if (!slots->entries) return cb_fail_memory(diag, "a slot map", (unsigned long long)nonzeros * 4);
  for (int64_t k = 0; k < nonzeros; k++) cb_slot_set(slots, k, (uint64_t)k);
  return CB_OK;
}

/* Values that lie on the host, by way of the host. */
static enum cb_status fill(struct cb_comparer *comparer, const struct cb_value_map *map,
                           const struct cb_value_range *range, const struct cb_comparing *from, struct cb_diag *diag) {
  const enum cb_type stored = comparer->info.matrix_type;
  const size_t bytes = (size_t)from->csr->nnz * cb_type_size(stored);
  void *values = cb_calloc(bytes + 1, 1);
  enum cb_status s = values ? CB_OK : cb_fail_memory(diag, "values to compare with", bytes);
  if (!s) s = cb_values_gather(map, range, from->view, stored, values, diag);
  if (!s && bytes) s = cb_device_upload(comparer->device, comparer->values, values, bytes, "values", diag);
  cb_free(values);
  return s;
}

static enum cb_status fill_values(struct cb_comparer *comparer, const struct cb_value_map *map,
                                  const struct cb_value_range *range, const struct cb_comparing *from,
                                  struct cb_diag *diag) {
  const struct cb_view *view = from->view;
  enum cb_status s = CB_OK;
  if (from->packer) s = cb_updater_create_for(&comparer->updater, from->packer, comparer->values, map, range, diag);
  if (s || !view->on_device || !view->values) return s ? s : fill(comparer, map, range, from, diag);
  s = cb_updater_run(comparer->updater, view->value_type, (cb_device_ptr)(uintptr_t)view->values, NULL, diag);
  return s ? s : cb_device_wait(comparer->device, "packing values to compare with", diag);
}

static enum cb_status add_values(struct cb_comparer *comparer, const struct cb_comparing *from, struct cb_diag *diag) {
  const int64_t nonzeros = from->csr->nnz;
  struct cb_slot_map slots = {0};
  struct cb_value_map map = {0};
  struct cb_value_range range = {0};
  const size_t bytes = (size_t)nonzeros * cb_type_size(comparer->info.matrix_type);
  enum cb_status s = room(comparer, &comparer->values, bytes, diag);
  if (s || !nonzeros) return s;
  s = make_slots(&slots, nonzeros, diag);
  if (!s) s = cb_value_map_build(&map, &range, &slots, 1, from->order, nonzeros, from->view->nnz, diag);
  if (!s) s = fill_values(comparer, &map, &range, from, diag);
  cb_value_map_release(&map);
  cb_free(slots.entries);
  return s;
}

/* ---- life */

enum cb_status cb_comparer_create(struct cb_comparer **out, const struct cb_comparing *from, struct cb_diag *diag) {
  struct cb_comparer *comparer = cb_calloc(1, sizeof *comparer);
  *out = NULL;
  if (!comparer) return cb_fail_memory(diag, "a comparison", sizeof *comparer);
  comparer->device = from->device;
  comparer->packer = from->packer;
  comparer->info = *from->operator_info;
  comparer->info.matrix_type = cb_type_of_number(comparer->info.matrix_type);
  comparer->records = from->records;
  enum cb_status s = add_kernels(comparer, from, diag);
  if (!s) s = add_pattern(comparer, from->csr, diag);
  if (!s) s = add_values(comparer, from, diag);
  if (!s) s = cb_device_wait(comparer->device, "loading a matrix to compare with", diag);
  if (s) cb_comparer_free(comparer);
  else *out = comparer;
  return s;
}

void cb_comparer_free(struct cb_comparer *comparer) {
  if (!comparer) return;
  const cb_device_ptr blocks[] = {comparer->row_ptr, comparer->columns, comparer->values, comparer->before,
                                  comparer->first};
  const struct cb_driver_calls *call = &comparer->device->driver->call;
  cb_updater_free(comparer->updater);
  for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) cb_device_free(comparer->device, blocks[i]);
  if (comparer->done) call->event_destroy(comparer->done);
  if (comparer->module) call->module_unload(comparer->module);
  cb_free(comparer);
}

void cb_comparer_forget(struct cb_comparer *comparer) {
  if (!comparer) return;
  if (comparer->updater) cb_updater_forget(comparer->updater);
  cb_free(comparer);
}

int64_t cb_comparer_bytes(struct cb_comparer *comparer) {
  return comparer->bytes + (comparer->updater ? cb_updater_bytes(comparer->updater) : 0);
}

enum cb_status cb_comparer_values(struct cb_comparer *comparer, enum cb_type given, const void *values, int on_device,
                                  struct CUstream_st *stream, struct cb_diag *diag) {
  if (!comparer->updater) return CB_OK;
  return on_device ? cb_updater_run(comparer->updater, given, (cb_device_ptr)(uintptr_t)values, stream, diag)
                   : cb_updater_run_from_host(comparer->updater, given, values, stream, diag);
}

/* ---- comparing */

enum cb_status cb_comparer_begin(struct cb_comparer *comparer, const struct cb_compared *compared,
                                 struct cb_diag *diag) {
  const struct cb_driver *driver = comparer->device->driver;
  const size_t bytes = (size_t)comparer->info.rows * cb_type_size(comparer->info.vector_type);
  const int reads_y = comparer->info.form != CB_FORM_AX && compared->beta != 0 && bytes;
  const enum cb_status s = cb_driver_check(driver, driver->call.stream_wait(compared->stream, comparer->done, 0), diag,
                                           "wait for the comparison before");
  if (s || !reads_y) return s;
  return cb_driver_check(driver,
                         driver->call.copy_on_device(comparer->before, compared->y, bytes, compared->stream), diag,
                         "copy y, to compare a product");
}

static enum cb_status launch(const struct cb_comparer *comparer, const struct cb_compared *compared, int tells,
                             struct cb_diag *diag) {
  const struct cb_driver *driver = comparer->device->driver;
  const int narrow = comparer->info.sum_type == CB_F32;
  const unsigned blocks = tells ? 1 : (unsigned)((comparer->info.rows + ROWS_PER_BLOCK - 1) / ROWS_PER_BLOCK);
  double alpha = narrow ? cb_real_to_float(compared->alpha) : compared->alpha;
  double beta = narrow ? cb_real_to_float(compared->beta) : compared->beta;
  cb_device_ptr row_ptr = comparer->row_ptr, columns = comparer->columns, values = comparer->values;
  cb_device_ptr x = compared->x, y = compared->y, before = comparer->before, first = comparer->first;
  cb_device_ptr wrong = (cb_device_ptr)(uintptr_t)&comparer->records->wrong;
  int64_t product = compared->product, rows = comparer->info.rows;
  void *parameters[] = {&row_ptr, &columns, &values, &x, &y, &before, &alpha, &beta, &product, &rows, &first, &wrong};
  return cb_driver_check(driver,
                         driver->call.launch(tells ? comparer->tell : comparer->compare, blocks, 1, 1,
                                             tells ? 32 : THREADS, 1, 1, 0, compared->stream, parameters, NULL),
                         diag, "launch the comparison of a product");
}

enum cb_status cb_comparer_end(struct cb_comparer *comparer, const struct cb_compared *compared, struct cb_diag *diag) {
  const struct cb_driver *driver = comparer->device->driver;
  if (!comparer->info.rows) return CB_OK;
  enum cb_status s = launch(comparer, compared, 0, diag);
  if (!s) s = launch(comparer, compared, 1, diag);
  return s ? s
           : cb_driver_check(driver, driver->call.event_record(comparer->done, compared->stream), diag,
                             "note the end of a comparison");
}
