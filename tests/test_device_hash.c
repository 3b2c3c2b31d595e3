// SPDX-License-Identifier: Apache-2.0
/* Patterns hashed on the (fake) GPU: the same bits as on the host, whatever the length, width, base and place of the
 * arrays, and whatever nonsense they hold. */
#include "tests/api_support.h"
#include "tests/skips.h"

#include "runtime/cuda/cubin.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/operator/device_hash.h"

#include <unistd.h>

struct bed {
  struct cb_driver *driver;
  struct cb_device *device;
  struct cb_hasher hasher;
};

static void prepare(struct bed *bed) {
  struct cb_diag diag = {0};
  struct cb_nvrtc *nvrtc;
  struct cb_text text = {0};
  struct cb_compiled compiled;
  const struct cb_nvrtc_options options = {.arch = "sm_90"};
  assert_ok(cb_driver_open(&bed->driver, getenv("CBGEN_FAKE_CUDA"), &diag));
  assert_ok(cb_device_open(&bed->device, bed->driver, 0, &diag));
  assert_ok(cb_device_enter(bed->device, &diag));
  assert_ok(cb_nvrtc_open(&nvrtc, getenv("CBGEN_FAKE_CUDA"), &diag));
  assert_ok(cb_hasher_text(&text, &diag));
  assert_ok(cb_nvrtc_compile(&compiled, nvrtc, text.bytes, "hash.cu", &options, &diag));
  assert_ok(cb_hasher_load(&bed->hasher, bed->device, compiled.cubin, &diag));
  cb_compiled_release(&compiled);
  cb_text_release(&text);
  cb_nvrtc_close(nvrtc);
}

static void dismantle(struct bed *bed) {
  cb_hasher_release(&bed->hasher);
  cb_device_leave(bed->device);
  cb_device_close(bed->device);
  cb_driver_close(bed->driver);
}

/* ---- views: raw arrays, which need not be a matrix */

struct raw {
  struct cb_view view; /* on the host */
  void *row_ptr, *col_idx;
};

/* Rows of about equal length with columns as they come, both as `wide` and `base` say. */
static struct raw make_raw(int64_t rows, int64_t nnz, int row_wide, int col_wide, int base) {
  struct raw raw = {.row_ptr = calloc((size_t)rows + 1, 8), .col_idx = calloc((size_t)nnz + 1, 8)};
  uint64_t seed = (uint64_t)(rows + 3 * nnz);
  assert_true(raw.row_ptr && raw.col_idx);
  for (int64_t row = 0; row <= rows; row++)
    put_integer(raw.row_ptr, row_wide ? 64 : 32, row, base + (rows ? nnz / rows * row + nnz % rows * row / rows : 0));
  for (int64_t k = 0; k < nnz; k++)
    put_integer(raw.col_idx, col_wide ? 64 : 32, k, base + (int64_t)(draw(&seed) % 1000000));
  raw.view = (struct cb_view){.rows = rows,
                              .cols = 1000000,
                              .nnz = nnz,
                              .row_ptr = raw.row_ptr,
                              .col_idx = raw.col_idx,
                              .row_wide = row_wide,
                              .col_wide = col_wide,
                              .base = base};
  return raw;
}

static void raw_release(struct raw *raw) {
  free(raw->row_ptr);
  free(raw->col_idx);
}

/* Both arrays begin `skip` elements behind what the driver aligned. */
static void check_same(struct bed *bed, const struct raw *raw, int skip) {
  struct cb_diag diag = {0};
  struct cb_view there = raw->view;
  struct cb_hash hash;
  const size_t row_size = there.row_wide ? 8 : 4, col_size = there.col_wide ? 8 : 4,
               rows = (size_t)there.rows + 1, nnz = (size_t)there.nnz;
  const uint64_t row_ptr = app_alloc(0, (rows + (size_t)skip) * row_size),
                 col_idx = app_alloc(0, (nnz + (size_t)skip) * col_size + 1);
  const uint64_t first_row = row_ptr + (uint64_t)skip * row_size, first_col = col_idx + (uint64_t)skip * col_size;
  assert_true(app_put(first_row, raw->row_ptr, rows * row_size));
  if (nnz) assert_true(app_put(first_col, raw->col_idx, nnz * col_size));
  there.row_ptr = (const void *)(uintptr_t)first_row;
  there.col_idx = (const void *)(uintptr_t)first_col;
  there.on_device = 1;
  assert_ok(cb_hasher_run(&bed->hasher, &there, &hash, &diag));
  const struct cb_hash expected = cb_view_hash(&raw->view);
  if (hash.high != expected.high || hash.low != expected.low)
    fail_msg("%lld rows, %lld entries, wide %d %d, base %d, skip %d: %016llx… instead of %016llx…",
             (long long)there.rows, (long long)there.nnz, there.row_wide, there.col_wide, there.base, skip,
             (unsigned long long)hash.high, (unsigned long long)expected.high);
  app_free(row_ptr);
  app_free(col_idx);
}

/* ---- tests */

static void every_length_hashes_alike(void **state) {
  (void)state;
  static const int64_t sizes[][2] = {
      {0, 0},     {1, 0},         {1, 1},      {7, 60},        {60, 61},     {3, 65535},
      {9, 65536}, {8191, 65537},  {8192, 100}, {8193, 131071}, {16384, 131072}, {20000, 200000},
  };
  struct bed bed = {0};
  prepare(&bed);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    struct raw raw = make_raw(sizes[i][0], sizes[i][0] ? sizes[i][1] : 0, 0, 0, 0);
    check_same(&bed, &raw, 0);
    raw_release(&raw);
  }
  dismantle(&bed);
}

static void every_form_hashes_alike(void **state) {
  (void)state;
  struct bed bed = {0};
  prepare(&bed);
  for (int form = 0; form < 16; form++) {
    struct raw raw = make_raw(8200, 65600, form & 1, form >> 1 & 1, form >> 2 & 1);
    check_same(&bed, &raw, form >> 3 & 1);
    raw_release(&raw);
  }
  dismantle(&bed);
}

/* Numbers that are no matrix's must not hash like any matrix, on the device as on the host. */
static void nonsense_hashes_alike(void **state) {
  (void)state;
  static const int64_t wrong[] = {-1, -5, INT32_MAX, (int64_t)1 << 32, INT64_MIN, INT64_MAX};
  struct bed bed = {0};
  prepare(&bed);
  for (int form = 0; form < 8; form++)
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
      for (int place = 0; place < 4; place++) {
        const int rows_wide = form & 1, cols_wide = form >> 1 & 1, in_rows = place & 1;
        if (!(in_rows ? rows_wide : cols_wide) && (wrong[i] > INT32_MAX || wrong[i] < INT32_MIN)) continue;
        struct raw raw = make_raw(8300, 65700, rows_wide, cols_wide, form >> 2 & 1);
        const int64_t at = place & 2 ? in_rows ? 8300 : 65699 : 0;
        put_integer(in_rows ? raw.row_ptr : raw.col_idx, (in_rows ? rows_wide : cols_wide) ? 64 : 32, at, wrong[i]);
        check_same(&bed, &raw, 0);
        raw_release(&raw);
      }
  dismantle(&bed);
}

static void results_grow_with_the_matrix(void **state) {
  (void)state;
  struct bed bed = {0};
  prepare(&bed);
  struct raw small = make_raw(100, 70000, 0, 0, 0), large = make_raw(300000, 300000, 0, 0, 1);
  const size_t before = bed.hasher.room;
  check_same(&bed, &small, 0);
  const size_t between = bed.hasher.room;
  bed.hasher.room = 1; /* as if there were too little */
  check_same(&bed, &large, 0);
  assert_true(before == 0 && between > 0 && bed.hasher.room >= between);
  check_same(&bed, &small, 0);
  raw_release(&small);
  raw_release(&large);
  dismantle(&bed);
}

/* Every call that may fail does: nothing is left, and the next run is right. */
static void failures_leave_nothing(void **state) {
  (void)state;
  struct raw raw = make_raw(9000, 66000, 0, 1, 1);
  int refused = 0;
  for (long nth = 1;; nth++) {
    struct bed bed = {0};
    struct cb_diag diag = {0};
    struct cb_hash hash;
    prepare(&bed);
    struct cb_view there = raw.view;
    const uint64_t row_ptr = app_alloc(0, 9001 * 4), col_idx = app_alloc(0, 66000 * 8);
    assert_true(app_put(row_ptr, raw.row_ptr, 9001 * 4) && app_put(col_idx, raw.col_idx, 66000 * 8));
    there.row_ptr = (const void *)(uintptr_t)row_ptr;
    there.col_idx = (const void *)(uintptr_t)col_idx;
    fake->calls = 0;
    fake->failure = CB_CU_OUT_OF_MEMORY;
    fake->fail_at = nth;
    const enum cb_status s = cb_hasher_run(&bed.hasher, &there, &hash, &diag);
    const int reached = fake->calls >= nth;
    fake->fail_at = 0;
    if (s) assert_true(*diag.message);
    refused += s != CB_OK;
    check_same(&bed, &raw, 0);
    app_free(row_ptr);
    app_free(col_idx);
    dismantle(&bed);
    assert_true(fake_is_clean(fake));
    if (!reached) break;
  }
  assert_in_range(refused, 5, 20); /* all but the refused pinned memory */
  raw_release(&raw);
}

/* ---- through cbgen_compile */

struct heard {
  int compiled, told;
};
static void hear(void *user, const char *line) {
  struct heard *heard = user;
  heard->told++;
  heard->compiled |= strstr(line, "hashed on the host") != NULL;
}

/* A matrix on the device and the same on the host have one entry, and a hit downloads no index array. */
static void device_and_host_share_an_entry(void **state) {
  (void)state;
  char directory[] = "/tmp/cbgen-device-hash-XXXXXX";
  char command[64];
  struct heard heard = {0};
  assert_non_null(mkdtemp(directory));
  setenv("CBGEN_LIBCUDA", getenv("CBGEN_FAKE_CUDA"), 1);
  setenv("CBGEN_NVRTC", getenv("CBGEN_FAKE_CUDA"), 1);
  struct sample here = sample_of("stencil7,n=24", (struct form){0}),
                there = sample_of("stencil7,n=24", (struct form){.row_bits = 64, .base = 1, .on_device = 1});
  assert_true(here.entries > CB_HASH_CHUNK);
  const struct sample *order[] = {&here, &there, &here, &there};
  for (int i = 0; i < 4; i++) {
    cbgen_context *context;
    cbgen_operator *op;
    cbgen_info info = {.struct_size = sizeof info};
    assert_int_equal(cbgen_context_create(&context), CBGEN_OK);
    must(context, cbgen_set(context, "cache", directory));
    must(context, cbgen_set_log(context, hear, &heard));
    const long copies = fake->copies_to_host;
    must(context, cbgen_compile(context, &order[i]->view, NULL, &op));
    assert_int_equal(cbgen_operator_info(op, &info), CBGEN_OK);
    assert_int_equal(info.cache, i ? CBGEN_CACHE_HIT : CBGEN_CACHE_MISS);
    assert_int_equal(fake->copies_to_host - copies, order[i] == &there); /* the digests */
    check_product(op, &here.csr);
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
  }
  assert_true(heard.told > 0 && !heard.compiled);
  snprintf(command, sizeof command, "rm -r %s", directory);
  assert_int_equal(system(command), 0);
  unsetenv("CBGEN_LIBCUDA");
  unsetenv("CBGEN_NVRTC");
  sample_release(&here);
  sample_release(&there);
}

/* ---- the real compiler */

static void compile_for_every_target(void **state) {
  (void)state;
  static const char *const arches[] = {"sm_80", "sm_89", "sm_90", "sm_100"};
  struct cb_diag diag = {0};
  struct cb_nvrtc *nvrtc = NULL;
  struct cb_text text = {0};
  if (cb_nvrtc_open(&nvrtc, NULL, &diag) == CB_ERR_MISSING) {
    skip_because(diag.message);
  }
  assert_ok(cb_hasher_text(&text, &diag));
  for (size_t i = 0; i < sizeof arches / sizeof *arches; i++) {
    struct cb_compiled compiled;
    struct cb_cubin_stats stats;
    const struct cb_nvrtc_options options = {.arch = arches[i], .strict = 1};
    assert_ok(cb_nvrtc_compile(&compiled, nvrtc, text.bytes, "hash.cu", &options, &diag));
    assert_ok(cb_cubin_stats(&stats, compiled.cubin, compiled.cubin_bytes, &diag));
    assert_int_equal(stats.count, CB_HASHER_KERNELS);
    for (int k = 0; k < stats.count; k++) {
      assert_int_equal(stats.kernels[k].stack_bytes, 0);
      assert_in_range(stats.kernels[k].registers, 8, 128);
    }
    cb_cubin_stats_release(&stats);
    cb_compiled_release(&compiled);
  }
  cb_text_release(&text);
  cb_nvrtc_close(nvrtc);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fake, check_fake)
  const struct CMUnitTest tests[] = {
      TEST(every_length_hashes_alike),      TEST(every_form_hashes_alike), TEST(nonsense_hashes_alike),
      TEST(results_grow_with_the_matrix),   TEST(failures_leave_nothing),  TEST(device_and_host_share_an_entry),
      cmocka_unit_test(compile_for_every_target),
  };
  return exit_code_of(cmocka_run_group_tests(tests, NULL, NULL));
}
