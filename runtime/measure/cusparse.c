// SPDX-License-Identifier: Apache-2.0
/* cuSPARSE as a baseline: see cusparse.h. `kinds` lists the algorithms, `stores` the formats, which algorithms share.
 * A format is converted and uploaded once (`store_…`). For each algorithm an entry adds a descriptor, a buffer and
 * preprocessing. When something fails for an entry, the message becomes its reason, and the others go on. */
#include "runtime/measure/cusparse.h"

#include "base/clock.h"
#include "base/memory.h"
#include "runtime/cuda/library.h"
#include "runtime/measure/convert.h"
#include "runtime/measure/spmvop.h"

#include <stdio.h>
#include <string.h>

/* ---- the library */

struct cb_cusparse {
  struct cb_library library;
  struct cb_cusparse_calls call;
  const struct cb_device *device;
  struct cusparseContext *handle;
  struct CUstream_st *stream; /* that the handle works on */
  int version; /* major·10000 + minor·100 + patch */
  enum cb_spmvop_form op_form;
};

static const char *const cusparse_names[] = {"libcusparse.so.12", "libcusparse.so", NULL};
static const char *const cusparse_wheels[] = {"cu13", "cusparse", NULL};
static const struct cb_library_search cusparse_search = {
    .what = "cuSPARSE",
    .remedy =
        "install the CUDA toolkit (12 or 13), or 'pip install nvidia-cusparse' and set CBGEN_CUSPARSE to its "
        "libcusparse.so.12",
    .variable = "CBGEN_CUSPARSE",
    .names = cusparse_names,
    .wheels = cusparse_wheels,
};

#define CALL(member, name)                                                                                   \
  { name, offsetof(struct cb_cusparse_calls, member), 0 }
#define NEW_CALL(member, name)                                                                               \
  { name, offsetof(struct cb_cusparse_calls, member), 1 }
static const struct cb_library_symbol cusparse_symbols[] = {
    CALL(create, "cusparseCreate"),
    CALL(destroy, "cusparseDestroy"),
    CALL(property, "cusparseGetProperty"),
    CALL(set_stream, "cusparseSetStream"),
    CALL(error_string, "cusparseGetErrorString"),
    CALL(create_vector, "cusparseCreateDnVec"),
    CALL(destroy_vector, "cusparseDestroyDnVec"),
    CALL(create_csr, "cusparseCreateCsr"),
    CALL(create_coo, "cusparseCreateCoo"),
    CALL(destroy_matrix, "cusparseDestroySpMat"),
    CALL(buffer_size, "cusparseSpMV_bufferSize"),
    CALL(multiply, "cusparseSpMV"),
    NEW_CALL(create_sell, "cusparseCreateSlicedEll"),
    NEW_CALL(create_bsr, "cusparseCreateBsr"),
    NEW_CALL(preprocess, "cusparseSpMV_preprocess"),
    NEW_CALL(create_legacy, "cusparseCreateMatDescr"),
    NEW_CALL(destroy_legacy, "cusparseDestroyMatDescr"),
    NEW_CALL(bsrmv_f32, "cusparseSbsrmv"),
    NEW_CALL(bsrmv_f64, "cusparseDbsrmv"),
    NEW_CALL(op_buffer_size, "cusparseSpMVOp_bufferSize"),
    NEW_CALL(op_create, "cusparseSpMVOp_createDescr"),
    NEW_CALL(op_destroy, "cusparseSpMVOp_destroyDescr"),
    NEW_CALL(op_create_plan, "cusparseSpMVOp_createPlan"),
    NEW_CALL(op_destroy_plan, "cusparseSpMVOp_destroyPlan"),
    NEW_CALL(op_multiply, "cusparseSpMVOp"),
    NEW_CALL(create_dense, "cusparseCreateDnMat"),
    NEW_CALL(destroy_dense, "cusparseDestroyDnMat"),
    NEW_CALL(many_buffer_size, "cusparseSpMM_bufferSize"),
    NEW_CALL(many_preprocess, "cusparseSpMM_preprocess"),
    NEW_CALL(multiply_many, "cusparseSpMM"),
    {NULL, 0, 0},
};

enum cb_status cb_cusparse_check(const struct cb_cusparse *cusparse, unsigned result, const char *what,
                                 struct cb_diag *diag) {
  if (!result) return CB_OK;
  const char *words = cusparse->call.error_string(result);
  return cb_fail(diag, CB_ERR_DEVICE, "cuSPARSE cannot %s: %s (%u)", what, words ? words : "unknown error",
                 result);
}

/* By parts: cusparseGetVersion gives 13000 for 12.10.0 and for 13.0.0. */
static enum cb_status read_version(struct cb_cusparse *cusparse, struct cb_diag *diag) {
  static const unsigned parts[] = {CB_CUDA_MAJOR_VERSION, CB_CUDA_MINOR_VERSION, CB_CUDA_PATCH_LEVEL};
  for (int i = 0; i < 3; i++) {
    int value = 0;
    const enum cb_status s = cb_cusparse_check(cusparse, cusparse->call.property(parts[i], &value), "tell its version", diag);
    if (s) return s;
    cusparse->version = 100 * cusparse->version + value;
  }
  return CB_OK;
}

enum cb_status cb_cusparse_open(struct cb_cusparse **out, const struct cb_device *device, const char *path,
                                struct cb_diag *diag) {
  struct cb_cusparse *cusparse = cb_calloc(1, sizeof *cusparse);
  *out = NULL;
  if (!cusparse) return cb_fail_memory(diag, "cuSPARSE's table", sizeof *cusparse);
  cusparse->device = device;
  enum cb_status s =
      cb_library_open(&cusparse->library, &cusparse_search, path, cusparse_symbols, &cusparse->call, diag);
  if (!s) s = cb_cusparse_check(cusparse, cusparse->call.create(&cusparse->handle), "start", diag);
  if (!s) s = read_version(cusparse, diag);
  if (!s) cusparse->op_form = cb_spmvop_form(&cusparse->call, cusparse->version);
  if (s)
    cb_cusparse_close(cusparse);
  else
    *out = cusparse;
  return s;
}

void cb_cusparse_close(struct cb_cusparse *cusparse) {
  if (!cusparse) return;
  if (cusparse->handle) cusparse->call.destroy(cusparse->handle);
  cb_library_close(&cusparse->library);
  cb_free(cusparse);
}

void cb_cusparse_version(const struct cb_cusparse *cusparse, int *major, int *minor, int *patch) {
  *major = cusparse->version / 10000;
  *minor = cusparse->version / 100 % 100;
  *patch = cusparse->version % 100;
}

const struct cb_cusparse_calls *cb_cusparse_calls(const struct cb_cusparse *cusparse) { return &cusparse->call; }
struct cusparseContext *cb_cusparse_handle(const struct cb_cusparse *cusparse) { return cusparse->handle; }
const struct cb_device *cb_cusparse_device(const struct cb_cusparse *cusparse) { return cusparse->device; }

enum cb_status cb_cusparse_set_stream(struct cb_cusparse *cusparse, struct CUstream_st *stream, struct cb_diag *diag) {
  if (stream == cusparse->stream) return CB_OK;
  const enum cb_status s =
      cb_cusparse_check(cusparse, cusparse->call.set_stream(cusparse->handle, stream), "take a stream", diag);
  if (!s) cusparse->stream = stream;
  return s;
}

/* ---- what there is */

enum format { CSR, COO, SELL, BSR, BSRMV, SPMVOP };

static const struct kind {
  const char *name;
  enum format format;
  int size; /* rows of a slice, or of a block */
  unsigned algorithm;
} kinds[] = {
    {"csr-alg1", CSR, 0, CB_CUSPARSE_CSR_ALG1},   {"csr-alg2", CSR, 0, CB_CUSPARSE_CSR_ALG2},
    {"spmvop-alg1", SPMVOP, 0, CB_CUSPARSE_OP_ALG1},
    {"spmvop-alg2", SPMVOP, 0, CB_CUSPARSE_OP_ALG2},
    {"coo-alg1", COO, 0, CB_CUSPARSE_COO_ALG1},   {"coo-alg2", COO, 0, CB_CUSPARSE_COO_ALG2},
    {"sell-16", SELL, 16, CB_CUSPARSE_SELL_ALG1}, {"sell-32", SELL, 32, CB_CUSPARSE_SELL_ALG1},
    {"sell-64", SELL, 64, CB_CUSPARSE_SELL_ALG1}, {"sell-128", SELL, 128, CB_CUSPARSE_SELL_ALG1},
    {"bsr-2", BSR, 2, CB_CUSPARSE_BSR_ALG1},      {"bsrmv-2", BSRMV, 2, 0},
    {"bsr-3", BSR, 3, CB_CUSPARSE_BSR_ALG1},      {"bsrmv-3", BSRMV, 3, 0},
    {"bsr-4", BSR, 4, CB_CUSPARSE_BSR_ALG1},      {"bsrmv-4", BSRMV, 4, 0},
    {"bsr-5", BSR, 5, CB_CUSPARSE_BSR_ALG1},      {"bsrmv-5", BSRMV, 5, 0},
    {"bsr-6", BSR, 6, CB_CUSPARSE_BSR_ALG1},      {"bsrmv-6", BSRMV, 6, 0},
    {"bsr-8", BSR, 8, CB_CUSPARSE_BSR_ALG1},      {"bsrmv-8", BSRMV, 8, 0},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* One format on the device, shared by the kinds of the same format and size. */
struct store {
  enum format format; /* BSR stands for BSRMV as well, CSR for SPMVOP */
  int size;
  enum cb_status status; /* of making it; the reason is below */
  char reason[160];
  int64_t rows, cols, entries; /* of the matrix; for blocks in units of blocks; SELL: entries are slots */
  int64_t bytes;
  double seconds;                         /* of conversion */
  cb_device_ptr offsets, columns, values; /* COO: `offsets` are row indices */
};

struct entry {
  struct cb_baseline info;
  const struct kind *kind;
  const struct store *store;
  struct cusparseSpMatDescr *matrix;
  struct cusparseDnVecDescr *x, *y;
  struct cusparseMatDescr *legacy;
  struct cb_spmvop op;
  cb_device_ptr buffer;
};

enum { MAX_BLOCKS = 3 * KINDS };
struct cb_baselines {
  struct cb_cusparse *cusparse;
  const struct cb_csr *csr; /* while opening only */
  struct cb_baseline_types types;
  unsigned matrix_type, x_type, y_type, sum_type; /* the same for cuSPARSE */
  cb_device_ptr x, y;
  int64_t nnz;
  int stores_count, blocks_count;
  struct store stores[KINDS];
  cb_device_ptr blocks[MAX_BLOCKS];
  struct entry entries[KINDS];
};

/* Device pointers travel through cuSPARSE as void *. */
static void *pointer(cb_device_ptr address) {
  return (void *)(uintptr_t)address;
}

/* ---- formats on the device */

static enum cb_status put(struct cb_baselines *baselines, struct store *store, cb_device_ptr *address,
                          const void *bytes, int64_t length, const char *what, struct cb_diag *diag) {
  const struct cb_device *device = baselines->cusparse->device;
  enum cb_status s = cb_device_alloc(device, address, (size_t)length, what, diag);
  if (s) return s;
  baselines->blocks[baselines->blocks_count++] = *address;
  store->bytes += length;
  return cb_device_upload(device, *address, bytes, (size_t)length, what, diag);
}

static enum format stored_as(enum format format) {
  return format == BSRMV ? BSR : format == SPMVOP ? CSR : format;
}

static struct store *find_store(struct cb_baselines *baselines, enum format format, int size) {
  format = stored_as(format);
  for (int i = 0; i < baselines->stores_count; i++)
    if (baselines->stores[i].format == format && baselines->stores[i].size == size) return &baselines->stores[i];
  return NULL;
}

static enum cb_status store_csr(struct cb_baselines *baselines, struct store *store, struct cb_diag *diag) {
  const struct cb_csr *csr = baselines->csr;
  const int64_t width = (int64_t)cb_type_size(baselines->types.matrix);
  void *values = NULL;
  enum cb_status s = cb_convert_values(&values, csr, baselines->types.matrix, diag);
  store->rows = csr->rows;
  store->cols = csr->cols;
  store->entries = csr->nnz;
  if (!s) s = put(baselines, store, &store->offsets, csr->row_ptr, 4 * (csr->rows + 1), "row pointers", diag);
  if (!s) s = put(baselines, store, &store->columns, csr->col_idx, 4 * csr->nnz, "column indices", diag);
  if (!s) s = put(baselines, store, &store->values, values, width * csr->nnz, "values", diag);
  cb_free(values);
  return s;
}

/* Shares columns and values with CSR. */
static enum cb_status store_coo(struct cb_baselines *baselines, struct store *store, struct cb_diag *diag) {
  const struct store *csr = find_store(baselines, CSR, 0);
  const double start = cb_seconds();
  int32_t *rows = NULL;
  if (csr->status) return cb_fail(diag, csr->status, "%s", csr->reason);
  enum cb_status s = cb_convert_row_indices(&rows, baselines->csr, diag);
  store->seconds = cb_seconds() - start;
  if (!s) s = put(baselines, store, &store->offsets, rows, 4 * csr->entries, "row indices", diag);
  store->rows = csr->rows;
  store->cols = csr->cols;
  store->entries = csr->entries;
  store->columns = csr->columns;
  store->values = csr->values;
  store->bytes += csr->bytes - 4 * (csr->rows + 1);
  cb_free(rows);
  return s;
}

static enum cb_status store_sell(struct cb_baselines *baselines, struct store *store, struct cb_diag *diag) {
  enum { MOST_PADDING = 8 }; /* slots per nonzero; CSR is faster long before */
  const struct cb_csr *csr = baselines->csr;
  const int64_t width = (int64_t)cb_type_size(baselines->types.matrix), slots = cb_sell_slots(csr, store->size);
  const double start = cb_seconds();
  struct cb_sell sell = {0};
  if (slots > MOST_PADDING * csr->nnz)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "would store %.1f slots per nonzero",
                   (double)slots / (double)csr->nnz);
  enum cb_status s = cb_sell_build(&sell, csr, store->size, baselines->types.matrix, diag);
  store->seconds = cb_seconds() - start;
  store->rows = csr->rows;
  store->cols = csr->cols;
  store->entries = slots;
  if (!s) s = put(baselines, store, &store->offsets, sell.offsets, 4 * (sell.slices + 1), "slice offsets", diag);
  if (!s) s = put(baselines, store, &store->columns, sell.columns, 4 * slots, "slice columns", diag);
  if (!s) s = put(baselines, store, &store->values, sell.values, width * slots, "slice values", diag);
  cb_sell_release(&sell);
  return s;
}

static enum cb_status store_bsr(struct cb_baselines *baselines, struct store *store, struct cb_diag *diag) {
  const double most_values = 1.5; /* stored values per nonzero */
  const struct cb_csr *csr = baselines->csr;
  const int64_t area = (int64_t)store->size * store->size, width = (int64_t)cb_type_size(baselines->types.matrix);
  const double start = cb_seconds();
  struct cb_bsr bsr = {0};
  int64_t blocks = 0;
  enum cb_status s = cb_bsr_count(&blocks, csr, store->size, diag);
  const double stored = (double)(blocks * area) / (double)csr->nnz;
  if (!s && stored > most_values)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "would store %.2f values per nonzero", stored);
  if (!s) s = cb_bsr_build(&bsr, csr, store->size, baselines->types.matrix, diag);
  store->seconds = cb_seconds() - start;
  store->rows = bsr.block_rows;
  store->cols = bsr.block_cols;
  store->entries = bsr.blocks;
  if (!s) s = put(baselines, store, &store->offsets, bsr.row_ptr, 4 * (bsr.block_rows + 1), "block row pointers", diag);
  if (!s) s = put(baselines, store, &store->columns, bsr.columns, 4 * bsr.blocks, "block columns", diag);
  if (!s) s = put(baselines, store, &store->values, bsr.values, width * area * bsr.blocks, "block values", diag);
  cb_bsr_release(&bsr);
  return s;
}

/* The store of this kind, made when it is first asked for. */
static const struct store *get_store(struct cb_baselines *baselines, const struct kind *kind) {
  static enum cb_status (*const make[])(struct cb_baselines *, struct store *, struct cb_diag *) = {
      [CSR] = store_csr, [COO] = store_coo, [SELL] = store_sell, [BSR] = store_bsr};
  struct store *store = find_store(baselines, kind->format, kind->size);
  struct cb_diag diag = {0};
  if (store) return store;
  store = &baselines->stores[baselines->stores_count++];
  store->format = stored_as(kind->format);
  store->size = kind->size;
  store->status = make[store->format](baselines, store, &diag);
  snprintf(store->reason, sizeof store->reason, "%.*s", (int)sizeof store->reason - 1, diag.message);
  return store;
}

/* ---- entries */

/* Whether this cuSPARSE has the format, for these types. */
static enum cb_status check_format(const struct cb_baselines *baselines, enum format format, struct cb_diag *diag) {
  const struct cb_cusparse_calls *call = &baselines->cusparse->call;
  if (format == SELL && !call->create_sell) return cb_fail(diag, CB_ERR_UNSUPPORTED, "this cuSPARSE has no sliced ELL");
  if (format == BSR && !call->create_bsr)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "this cuSPARSE has no generic block CSR");
  if (format == BSRMV && cb_type_is_complex(baselines->types.sum))
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "bsrmv is compared for real types only");
  if (format == BSRMV && baselines->matrix_type != baselines->sum_type)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "bsrmv has one type for values and vectors");
  if (format == BSRMV && (!call->bsrmv_f32 || !call->bsrmv_f64 || !call->create_legacy || !call->destroy_legacy))
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "this cuSPARSE has no bsrmv");
  return CB_OK;
}

static unsigned create_matrix(const struct cb_baselines *baselines, struct entry *entry) {
  const struct cb_cusparse_calls *call = &baselines->cusparse->call;
  const struct store *store = entry->store;
  void *const offsets = pointer(store->offsets), *const columns = pointer(store->columns),
              *const values = pointer(store->values);
  const unsigned index = CB_CUSPARSE_INDEX_32I, base = CB_CUSPARSE_BASE_ZERO, type = baselines->matrix_type;
  switch (entry->kind->format) {
  case CSR:
  case SPMVOP:
    return call->create_csr(&entry->matrix, store->rows, store->cols, store->entries, offsets, columns, values,
                            index, index, base, type);
  case COO:
    return call->create_coo(&entry->matrix, store->rows, store->cols, store->entries, offsets, columns, values,
                            index, base, type);
  case SELL:
    return call->create_sell(&entry->matrix, store->rows, store->cols, baselines->nnz, store->entries, store->size,
                             offsets, columns, values, index, index, base, type);
  case BSR:
    return call->create_bsr(&entry->matrix, store->rows, store->cols, store->entries, store->size, store->size,
                            offsets, columns, values, index, index, base, type, CB_CUSPARSE_ORDER_ROW);
  case BSRMV:
    break;
  }
  return call->create_legacy(&entry->legacy);
}

static enum cb_status describe(const struct cb_baselines *baselines, struct entry *entry, struct cb_diag *diag) {
  const enum cb_status s = check_format(baselines, entry->kind->format, diag);
  return s ? s : cb_cusparse_check(baselines->cusparse, create_matrix(baselines, entry), "take the matrix", diag);
}

/* Vectors as long as the format's blocks make them. */
static enum cb_status bind_vectors(const struct cb_baselines *baselines, struct entry *entry, struct cb_diag *diag) {
  const struct cb_cusparse_calls *call = &baselines->cusparse->call;
  const int64_t unit = entry->kind->format == BSR ? entry->kind->size : 1;
  enum cb_status s =
      cb_cusparse_check(baselines->cusparse,
            call->create_vector(&entry->x, unit * entry->store->cols, pointer(baselines->x), baselines->x_type),
            "take x", diag);
  if (!s)
    s = cb_cusparse_check(baselines->cusparse,
              call->create_vector(&entry->y, unit * entry->store->rows, pointer(baselines->y), baselines->y_type),
              "take y", diag);
  return s;
}

/* α = 1 and β = 0 in the product's type. */
struct scalar {
  double wide[2]; /* of complex types both parts */
  float narrow[2];
};
static struct scalar real_scalar(double number) { return (struct scalar){{number, 0}, {(float)number, 0}}; }
static const void *scalar_of(const struct cb_baselines *baselines, const struct scalar *scalar) {
  return cb_type_of_part(baselines->types.sum) == CB_F32 ? (const void *)scalar->narrow : scalar->wide;
}

/* A buffer of the size that cuSPARSE asked for with this status. */
static enum cb_status take_buffer(struct cb_baselines *baselines, struct entry *entry, unsigned result, size_t bytes,
                                  struct cb_diag *diag) {
  enum cb_status s = cb_cusparse_check(baselines->cusparse, result, "size its buffer", diag);
  if (!s) s = cb_device_alloc(baselines->cusparse->device, &entry->buffer, bytes, "cuSPARSE's buffer", diag);
  if (!s) entry->info.buffer_bytes = (int64_t)bytes;
  return s;
}

/* Preprocessing is optional: it is certain to exist for CSR only, and algorithms that refuse it multiply without. */
static enum cb_status prepare_generic(struct cb_baselines *baselines, struct entry *entry, struct cb_diag *diag) {
  const struct cb_cusparse *cusparse = baselines->cusparse;
  const struct scalar one = real_scalar(1), zero = real_scalar(0);
  const void *const alpha = scalar_of(baselines, &one), *const beta = scalar_of(baselines, &zero);
  const unsigned operation = CB_CUSPARSE_NON_TRANSPOSE, algorithm = entry->kind->algorithm;
  size_t bytes = 0;
  unsigned result = cusparse->call.buffer_size(cusparse->handle, operation, alpha, entry->matrix, entry->x, beta,
                                               entry->y, baselines->sum_type, algorithm, &bytes);
  const enum cb_status s = take_buffer(baselines, entry, result, bytes, diag);
  if (s || !cusparse->call.preprocess) return s;
  result = cusparse->call.preprocess(cusparse->handle, operation, alpha, entry->matrix, entry->x, beta, entry->y,
                                     baselines->sum_type, algorithm, pointer(entry->buffer));
  return entry->kind->format == CSR ? cb_cusparse_check(cusparse, result, "preprocess", diag) : CB_OK;
}

static enum cb_status prepare_op(struct cb_baselines *baselines, struct entry *entry, struct cb_diag *diag) {
  enum { AHEAD_OF_TIME = 120710 }; /* from here on, plans without an epilogue are compiled already */
  const struct cb_cusparse *cusparse = baselines->cusparse;
  const char *const what = cusparse->version < AHEAD_OF_TIME
                               ? "plan SpMVOp, for which it needs libnvJitLink of its own CUDA release"
                               : "plan SpMVOp";
  struct cb_spmvop *op = &entry->op;
  size_t bytes;
  *op = (struct cb_spmvop){.matrix = entry->matrix,
                           .x = entry->x,
                           .y = entry->y,
                           .type = baselines->sum_type,
                           .algorithm = entry->kind->algorithm};
  const unsigned result =
      cb_spmvop_buffer_size(&cusparse->call, cusparse->op_form, cusparse->handle, op, &bytes);
  enum cb_status s = take_buffer(baselines, entry, result, bytes, diag);
  if (!s)
    s = cb_cusparse_check(cusparse,
              cb_spmvop_prepare(&cusparse->call, cusparse->op_form, cusparse->handle, op, pointer(entry->buffer)),
              what, diag);
  return s;
}

/* Everything between the descriptors and the first product, timed. */
static enum cb_status prepare_product(struct cb_baselines *baselines, struct entry *entry, struct cb_diag *diag) {
  const struct cb_device *device = baselines->cusparse->device;
  enum cb_status s = bind_vectors(baselines, entry, diag);
  if (!s) s = cb_device_wait(device, "uploading", diag);
  const double start = cb_seconds();
  if (!s) s = (entry->kind->format == SPMVOP ? prepare_op : prepare_generic)(baselines, entry, diag);
  if (!s) s = cb_device_wait(device, "preparing a product of cuSPARSE", diag);
  entry->info.prepare_seconds = cb_seconds() - start;
  return s;
}

/* Whether this version of cuSPARSE has the algorithm at all. */
static enum cb_status find_algorithm(const struct cb_cusparse *cusparse, const struct kind *kind,
                                     struct cb_diag *diag) {
  int major, minor, patch;
  cb_cusparse_version(cusparse, &major, &minor, &patch);
  if (kind->format != SPMVOP) return CB_OK;
  if (cusparse->op_form == CB_SPMVOP_NONE)
    return cb_fail(diag, CB_ERR_UNSUPPORTED,
                   "cuSPARSE %d.%d.%d has no SpMVOp that is known here; 12.7.2 to 12.9 have: pip install "
                   "nvidia-cusparse, and name it by CBGEN_CUSPARSE", major, minor, patch);
  if (cusparse->op_form != CB_SPMVOP_ALGORITHM && kind->algorithm != CB_CUSPARSE_OP_ALG2)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "SpMVOp of cuSPARSE %d.%d.%d has one algorithm, which is the second of "
                   "12.8", major, minor, patch);
  return CB_OK;
}

static enum cb_status prepare(struct cb_baselines *baselines, struct entry *entry, struct cb_diag *diag) {
  const struct cb_csr *csr = baselines->csr;
  if (!csr->nnz) return cb_fail(diag, CB_ERR_UNSUPPORTED, "the matrix has no nonzeros");
  if (csr->wide) return cb_fail(diag, CB_ERR_UNSUPPORTED, "2^31 nonzeros or more would need 64-bit indices");
  enum cb_status s = find_algorithm(baselines->cusparse, entry->kind, diag);
  if (s) return s;
  entry->store = get_store(baselines, entry->kind);
  if (entry->store->status) return cb_fail(diag, entry->store->status, "%s", entry->store->reason);
  entry->info.stored_bytes = entry->store->bytes;
  entry->info.convert_seconds = entry->store->seconds;
  s = describe(baselines, entry, diag);
  if (!s && entry->kind->format != BSRMV) s = prepare_product(baselines, entry, diag);
  /* one product now: what an algorithm does not support may show only here */
  if (!s)
    s = cb_baseline_multiply(baselines, (int)(entry - baselines->entries), 1, 0, baselines->cusparse->stream, diag);
  if (!s) s = cb_device_wait(baselines->cusparse->device, "cuSPARSE's first product", diag);
  return s;
}

static unsigned cuda_type(enum cb_type type) {
  static const unsigned types[] = {
      [CB_F64] = CB_CUDA_R_64F,   [CB_F32] = CB_CUDA_R_32F, [CB_F16] = CB_CUDA_R_16F,
      [CB_BF16] = CB_CUDA_R_16BF, [CB_C64] = CB_CUDA_C_32F, [CB_C128] = CB_CUDA_C_64F};
  return types[type];
}

struct cb_baseline_types cb_baseline_types(struct cb_types types) {
  const enum cb_type x = cb_type_size(types.matrix) == 2 ? types.matrix : types.vector;
  return (struct cb_baseline_types){cb_type_of_number(types.matrix), x, types.vector, types.sum};
}

/* An algorithm that cannot be prepared does not apply, and its reason says why. */
static void add_entry(struct cb_baselines *baselines, int number) {
  struct entry *entry = &baselines->entries[number];
  struct cb_diag refusal = {0};
  entry->kind = &kinds[number];
  snprintf(entry->info.name, sizeof entry->info.name, "%s", kinds[number].name);
  entry->info.applies = !prepare(baselines, entry, &refusal);
  if (!entry->info.applies)
    snprintf(entry->info.reason, sizeof entry->info.reason, "%.*s", (int)sizeof entry->info.reason - 1,
             refusal.message);
}

enum cb_status cb_baselines_open(struct cb_baselines **out, struct cb_cusparse *cusparse, const struct cb_csr *csr,
                                 struct cb_baseline_types types, cb_device_ptr x, cb_device_ptr y,
                                 struct cb_diag *diag) {
  struct cb_baselines *baselines = cb_calloc(1, sizeof *baselines);
  *out = NULL;
  if (!baselines) return cb_fail_memory(diag, "the list of baselines", sizeof *baselines);
  baselines->cusparse = cusparse;
  baselines->csr = csr;
  baselines->nnz = csr->nnz;
  baselines->types = types;
  baselines->matrix_type = cuda_type(types.matrix);
  baselines->x_type = cuda_type(types.x);
  baselines->y_type = cuda_type(types.y);
  baselines->sum_type = cuda_type(types.sum);
  baselines->x = x;
  baselines->y = y;
  for (int i = 0; i < KINDS; i++) add_entry(baselines, i);
  baselines->csr = NULL;
  *out = baselines;
  return CB_OK;
}

void cb_baselines_close(struct cb_baselines *baselines) {
  if (!baselines) return;
  const struct cb_cusparse *cusparse = baselines->cusparse;
  for (int i = 0; i < KINDS; i++) {
    struct entry *entry = &baselines->entries[i];
    cb_spmvop_release(&cusparse->call, &entry->op);
    if (entry->matrix) cusparse->call.destroy_matrix(entry->matrix);
    if (entry->x) cusparse->call.destroy_vector(entry->x);
    if (entry->y) cusparse->call.destroy_vector(entry->y);
    if (entry->legacy) cusparse->call.destroy_legacy(entry->legacy);
    cb_device_free(cusparse->device, entry->buffer);
  }
  for (int i = 0; i < baselines->blocks_count; i++) cb_device_free(cusparse->device, baselines->blocks[i]);
  cb_free(baselines);
}

int cb_baselines_count(const struct cb_baselines *baselines) {
  return baselines ? KINDS : 0;
}

const struct cb_baseline *cb_baselines_get(const struct cb_baselines *baselines, int baseline) {
  return &baselines->entries[baseline].info;
}

/* ---- multiplying */

static unsigned multiply_legacy(const struct cb_baselines *baselines, const struct entry *entry, const void *alpha,
                                const void *beta) {
  const struct cb_cusparse *cusparse = baselines->cusparse;
  const struct store *store = entry->store;
  const int rows = (int)store->rows, cols = (int)store->cols, blocks = (int)store->entries,
            block = store->size;
  const int *const offsets = pointer(store->offsets), *const columns = pointer(store->columns);
  const void *const values = pointer(store->values), *const x = pointer(baselines->x);
  void *const y = pointer(baselines->y);
  if (baselines->types.sum == CB_F32)
    return cusparse->call.bsrmv_f32(cusparse->handle, CB_CUSPARSE_DIRECTION_ROW, CB_CUSPARSE_NON_TRANSPOSE, rows, cols,
                                    blocks, alpha, entry->legacy, values, offsets, columns, block, x, beta, y);
  return cusparse->call.bsrmv_f64(cusparse->handle, CB_CUSPARSE_DIRECTION_ROW, CB_CUSPARSE_NON_TRANSPOSE,
                                  rows, cols, blocks, alpha, entry->legacy, values, offsets, columns, block,
                                  x, beta, y);
}

static unsigned multiply(const struct cb_baselines *baselines, const struct entry *entry, const void *alpha,
                         const void *beta) {
  const struct cb_cusparse *cusparse = baselines->cusparse;
  if (entry->kind->format == BSRMV) return multiply_legacy(baselines, entry, alpha, beta);
  if (entry->kind->format == SPMVOP)
    return cusparse->call.op_multiply(cusparse->handle, entry->op.plan, alpha, beta, entry->x, entry->y, entry->y);
  return cusparse->call.multiply(cusparse->handle, CB_CUSPARSE_NON_TRANSPOSE, alpha, entry->matrix, entry->x, beta,
                                 entry->y, baselines->sum_type, entry->kind->algorithm, pointer(entry->buffer));
}

enum cb_status cb_baseline_multiply(struct cb_baselines *baselines, int baseline, double alpha, double beta,
                                    struct CUstream_st *stream, struct cb_diag *diag) {
  struct cb_cusparse *cusparse = baselines->cusparse;
  const struct entry *entry = &baselines->entries[baseline];
  const struct scalar a = real_scalar(alpha), b = real_scalar(beta);
  const enum cb_status s = cb_cusparse_set_stream(cusparse, stream, diag);
  if (s) return s;
  return cb_cusparse_check(cusparse, multiply(baselines, entry, scalar_of(baselines, &a), scalar_of(baselines, &b)), "multiply",
               diag);
}
