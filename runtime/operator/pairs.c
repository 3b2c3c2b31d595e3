// SPDX-License-Identifier: Apache-2.0
/* Pairs of values that belong to mirror images: see pairs.h. */
#include "runtime/operator/pairs.h"

#include "analysis/plan/symmetry.h"
#include "base/memory.h"

struct cb_pairs {
  const struct cb_kernels *kernels;
  enum cb_symmetry_option symmetry;
  int wide;      /* numbers are uint64_t, else uint32_t */
  int64_t count;
  int64_t bytes;
  cb_device_ptr numbers; /* two of each pair */
  cb_device_ptr odd;     /* uint32_t: not 0 when a pair does not match */
};

static enum cb_status refuse_duplicates(const struct cb_order *order, int64_t nonzeros, struct cb_diag *diag) {
  for (int64_t k = 0; order->starts && k < nonzeros; k++)
    if (cb_order_get(order, order->starts, k + 1) - cb_order_get(order, order->starts, k) != 1)
      return cb_fail(diag, CB_ERR_UNSUPPORTED,
                     "option 'check-symmetry' takes a matrix without duplicates: nonzero %lld (counted from 0) is a sum",
                     (long long)k);
  return CB_OK;
}

static uint64_t entry_of(const struct cb_order *order, int64_t nonzero) {
  return order->entries ? cb_order_get(order, order->entries, nonzero) : (uint64_t)nonzero;
}

static void put(void *numbers, int wide, int64_t at, uint64_t number) {
  if (wide) ((uint64_t *)numbers)[at] = number;
  else ((uint32_t *)numbers)[at] = (uint32_t)number;
}

/* Returns how many there are; only counts them without room. */
static int64_t list_pairs(void *numbers, int wide, const struct cb_csr *csr, const struct cb_order *order) {
  int64_t count = 0;
  for (int64_t row = 0; row < csr->rows; row++)
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1) && csr->col_idx[k] < row; k++, count++) {
      if (!numbers) continue;
      put(numbers, wide, 2 * count, entry_of(order, k));
      put(numbers, wide, 2 * count + 1, entry_of(order, cb_symmetry_partner(csr, row, csr->col_idx[k])));
    }
  return count;
}

static enum cb_status upload(struct cb_pairs *pairs, const struct cb_csr *csr, const struct cb_order *order,
                             struct cb_diag *diag) {
  const struct cb_device *device = pairs->kernels->device;
  const size_t size = pairs->wide ? sizeof(uint64_t) : sizeof(uint32_t), bytes = 2 * (size_t)pairs->count * size;
  void *numbers = cb_alloc(2 * (size_t)pairs->count, size);
  if (!numbers) return cb_fail_memory(diag, "pairs of values", bytes);
  list_pairs(numbers, pairs->wide, csr, order);
  enum cb_status s = cb_device_alloc(device, &pairs->odd, sizeof(uint32_t), "pairs of values", diag);
  if (!s) s = cb_device_fill(device, pairs->odd, 0, sizeof(uint32_t), diag);
  if (!s && bytes) s = cb_device_alloc(device, &pairs->numbers, bytes, "pairs of values", diag);
  if (!s && bytes) s = cb_device_upload(device, pairs->numbers, numbers, bytes, "pairs of values", diag);
  pairs->bytes = (int64_t)(bytes + sizeof(uint32_t));
  cb_free(numbers);
  return s;
}

enum cb_status cb_pairs_create(struct cb_pairs **out, const struct cb_kernels *kernels, const struct cb_csr *csr,
                               const struct cb_order *order, enum cb_symmetry_option symmetry, struct cb_diag *diag) {
  *out = NULL;
  enum cb_status s = refuse_duplicates(order, csr->nnz, diag);
  if (s) return s;
  struct cb_pairs *pairs = cb_calloc(1, sizeof *pairs);
  if (!pairs) return cb_fail_memory(diag, "pairs of values", sizeof *pairs);
  pairs->kernels = kernels;
  pairs->symmetry = symmetry;
  pairs->wide = order->entries ? order->wide : csr->nnz > UINT32_MAX;
  pairs->count = list_pairs(NULL, 0, csr, order);
  s = cb_kernels_prepare(kernels, diag); /* products' streams may be captured */
  if (!s) s = upload(pairs, csr, order, diag);
  if (s) cb_pairs_free(pairs);
  else *out = pairs;
  return s;
}

void cb_pairs_free(struct cb_pairs *pairs) {
  if (!pairs) return;
  cb_device_free(pairs->kernels->device, pairs->numbers);
  cb_device_free(pairs->kernels->device, pairs->odd);
  cb_free(pairs);
}

void cb_pairs_forget(struct cb_pairs *pairs) { cb_free(pairs); }

int64_t cb_pairs_bytes(const struct cb_pairs *pairs) { return pairs ? pairs->bytes : 0; }

enum cb_status cb_pairs_compare(const struct cb_pairs *pairs, enum cb_type given, cb_device_ptr values,
                                struct CUstream_st *stream, struct cb_diag *diag) {
  if (!pairs) return CB_OK;
  const int parts = cb_type_parts(given);
  const size_t size = cb_type_size(given) / (size_t)parts;
  const char *name = size == 8   ? "cbgen_compare_pairs_64"
                     : size == 4 ? "cbgen_compare_pairs_32"
                                 : "cbgen_compare_pairs_16";
  cb_device_ptr narrow = pairs->wide ? 0 : pairs->numbers, wide = pairs->wide ? pairs->numbers : 0, odd = pairs->odd;
  const uint64_t sign = UINT64_C(1) << (8 * size - 1);
  uint64_t flip = pairs->symmetry == CB_SYMMETRIC_SKEW ? sign : 0;
  uint64_t flip_imaginary = pairs->symmetry == CB_SYMMETRIC_ON ? 0 : sign;
  int64_t count = pairs->count, numbers = parts;
  void *parameters[] = {&values, &narrow, &wide, &count, &numbers, &flip, &flip_imaginary, &odd};
  return cb_kernels_launch_named(pairs->kernels, name, count, stream, parameters, diag);
}

enum cb_status cb_pairs_outcome(const struct cb_pairs *pairs, struct CUstream_st *stream, struct cb_diag *diag) {
  uint32_t odd = 0;
  if (!pairs) return CB_OK;
  const struct cb_device *device = pairs->kernels->device;
  enum cb_status s = cb_driver_check(device->driver, device->driver->call.stream_synchronize(stream), diag,
                                     "wait for new values");
  if (!s) s = cb_device_download(device, &odd, pairs->odd, sizeof odd, "the comparison of values", diag);
  if (!s && odd) s = cb_device_fill(device, pairs->odd, 0, sizeof odd, diag);
  if (s || !odd) return s;
  return cb_fail(diag, CB_ERR_WRONG, "values are not %s, as option 'symmetric' promises",
                 cb_symmetry_word(pairs->symmetry));
}
