// SPDX-License-Identifier: Apache-2.0
/* What L2 shall keep of a matrix for the next product: which plans say so, and how their texts read what they read. */
#include "tests/kernels.h"
#include "tests/nvrtc_support.h"

#include "codegen/family.h"

/* A kernel of a GPU with so much L2. */
static void make_with_l2(struct kernel *kernel, const char *matrix, const char *settings, int64_t l2_bytes) {
  struct cb_options options;
  struct cb_target target;
  struct cb_diag diag = {0};
  cb_options_default(&options);
  set_options(&options, settings);
  snprintf(kernel->name, sizeof kernel->name, "%s %s, %lld bytes", matrix, settings, (long long)l2_bytes);
  if (cb_matrix_generate(&kernel->csr, matrix, &diag)) fail_msg("%s", diag.message);
  if (cb_target_find(&target, "sm_90", &diag)) fail_msg("%s", diag.message);
  target.l2_bytes = l2_bytes;
  if (make_kernel_of_target(kernel, &target, &options, &diag)) fail_msg("%s: %s", kernel->name, diag.message);
}

static int32_t stream_of(const char *matrix, const char *settings, int64_t l2_bytes) {
  struct kernel kernel = {0};
  make_with_l2(&kernel, matrix, settings, l2_bytes);
  const int32_t stream = kernel.plan->regions[0].stream;
  for (int i = 1; i < kernel.plan->regions_count; i++) assert_int_equal(kernel.plan->regions[i].stream, stream);
  release_kernel(&kernel);
  return stream;
}

/* Bytes stored, and those of a solver's vectors. */
static int64_t stored_bytes(const char *matrix, const char *settings, int64_t *vectors) {
  struct kernel kernel = {0};
  make_with_l2(&kernel, matrix, settings, INT64_C(1) << 40);
  const int64_t stored = cb_plan_bytes(kernel.plan);
  *vectors = 3 * (kernel.plan->rows + kernel.plan->cols) * (int64_t)cb_type_size(kernel.plan->vector_type);
  release_kernel(&kernel);
  return stored;
}

/* It stays where matrix and vectors take three quarters of L2; of what is larger, up to two and a half times L2, a part
 * stays where vectors are small and most of it is read once; nothing of the rest. */
static void what_fits_stays(void **state) {
  static const struct {
    const char *matrix, *settings;
    int shares;
  } cases[] = {{"fe3,n=9", "recipe=blocks block-size=3x3", 1},
               {"stencil27,n=24", "recipe=dia", 1},
               {"random,rows=9000,cols=60,per_row=12", "recipe=hot hot-columns=60", 1},
               {"fe3,n=9", "recipe=blocks block-size=3x3 type=f32", 1},
               {"stencil7,n=30", "recipe=dia", 0}, /* vectors are large */
               {"rmat,scale=12,edge_factor=60", "recipe=hot hot-columns=64", 1}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *matrix = cases[i].matrix, *settings = cases[i].settings;
    int64_t vectors;
    const int64_t stored = stored_bytes(matrix, settings, &vectors), fits = (4 * (stored + vectors) + 2) / 3 + 3;
    assert_int_equal(stream_of(matrix, settings, fits), CB_STREAM_STAYS);
    const int32_t below = stream_of(matrix, settings, fits - 8), least = stream_of(matrix, settings, stored / 3);
    if (cases[i].shares)
      assert_in_range(below, CB_STREAM_SHARES + CB_STREAM_SIXTEENTH, CB_STREAM_SHARES + 15 * CB_STREAM_SIXTEENTH);
    else assert_int_equal(below, CB_STREAM_LEAVES);
    assert_int_equal(least, CB_STREAM_LEAVES);
  }
}

/* Where indices are a fifth of what is stored, and are read as all else, no part of the values stays. */
static void indices_stay_anyhow(void **state) {
  int64_t vectors;
  const int64_t stored = stored_bytes("fe3,n=9", "recipe=sell", &vectors);
  (void)state;
  assert_int_equal(stream_of("fe3,n=9", "recipe=sell", 2 * (stored + vectors)), CB_STREAM_STAYS);
  assert_int_equal(stream_of("fe3,n=9", "recipe=sell", stored), CB_STREAM_LEAVES);
}

/* Four tenths of L2, in sixteenths of what is read once. */
static void a_share_is_a_part_of_l2(void **state) {
  static const char blocks[] = "recipe=blocks block-size=3x3";
  int64_t vectors;
  const int64_t stored = stored_bytes("fe3,n=12", blocks, &vectors);
  (void)state;
  assert_true(vectors < stored / 8);
  assert_in_range(stream_of("fe3,n=12", blocks, stored), CB_STREAM_SHARES + 6 * CB_STREAM_SIXTEENTH,
                  CB_STREAM_SHARES + 7 * CB_STREAM_SIXTEENTH);
  assert_in_range(stream_of("fe3,n=12", blocks, stored / 2), CB_STREAM_SHARES + 3 * CB_STREAM_SIXTEENTH,
                  CB_STREAM_SHARES + 4 * CB_STREAM_SIXTEENTH);
}

/* Where gathers wait for indices, these stay first, and of the values as much as they leave; where they take more than
 * that room, a share of all arrays stays. Likewise in other layouts, for several vectors, and where all of it stays. */
static void indices_stay_first(void **state) {
  static const char hot[] = "recipe=hot hot-columns=64", matrix[] = "rmat,scale=12,edge_factor=60";
  int64_t vectors;
  const int64_t none = stored_bytes("fe3,n=12", "recipe=blocks block-size=3x3", &vectors),
                stored = stored_bytes(matrix, hot, &vectors);
  (void)state;
  for (int64_t l2 = stored / 2 + 4096; l2 < stored; l2 += stored / 16) {
    struct kernel kernel = {0};
    make_with_l2(&kernel, matrix, hot, l2);
    const struct cb_region *region = &kernel.plan->regions[0];
    int64_t values = 0, indices = 0;
    for (int i = 0; i < region->arrays_count; i++) {
      const struct cb_array *array = &region->arrays[i];
      const int64_t bytes = array->count * (int64_t)cb_type_size(array->type);
      if (array->role == CB_ROLE_VALUES) values += bytes;
      else if (array->streamed && array->storage == CB_STORED) indices += bytes;
    }
    assert_true(values > 2 * indices && indices > 0);
    const int64_t left = l2 * 4 / 10 - indices;
    const char *body = kernel.source.text + kernel.source.body;
    if (left < 0) assert_int_equal(region->value_stream, 0);
    else assert_int_equal(region->value_stream, CB_STREAM_SHARES + 16 * left / values * CB_STREAM_SIXTEENTH);
    assert_int_equal(strstr(body, "load_hinted(arrays.hot_place + i, kIndices)") != NULL, left >= 0);
    assert_int_equal(strstr(body, "load_hinted(arrays.row_of + i, kIndices)") != NULL, left >= 0);
    assert_non_null(strstr(body, "load_hinted(arrays.values + slot, kStream)"));
    char constant[48];
    snprintf(constant, sizeof constant, "constexpr Stream kStream{0x%x};", left < 0 ? region->stream : region->value_stream);
    assert_non_null(strstr(body, constant));
    release_kernel(&kernel);
  }
  static const char *const others[][2] = {{matrix, "recipe=hot hot-columns=64 vectors=2"}, {"fe3,n=12", "recipe=blocks"}};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    struct kernel kernel = {0};
    make_with_l2(&kernel, others[i][0], others[i][1], i ? none : stored);
    assert_int_equal(kernel.plan->regions[0].value_stream, 0);
    release_kernel(&kernel);
  }
  struct kernel kernel = {0};
  make_with_l2(&kernel, matrix, hot, 2 * (stored + vectors));
  assert_int_equal(kernel.plan->regions[0].stream, CB_STREAM_STAYS);
  assert_int_equal(kernel.plan->regions[0].value_stream, 0);
  release_kernel(&kernel);
}

static void the_option_decides(void **state) {
  (void)state;
  assert_int_equal(stream_of("fe3,n=9", "recipe=blocks index-limit=4096", INT64_C(1) << 40), CB_STREAM_LEAVES);
  assert_int_equal(stream_of("fe3,n=9", "recipe=blocks stay-in-l2=on", 4096), CB_STREAM_STAYS);
  assert_int_equal(stream_of("fe3,n=9", "recipe=blocks stay-in-l2=off", INT64_C(1) << 40), CB_STREAM_LEAVES);
}

/* Eight vectors take eight times the room. */
static void several_vectors_count(void **state) {
  int64_t vectors;
  const int64_t stored = stored_bytes("stencil7,n=12", "recipe=dia", &vectors), l2 = 2 * (stored + vectors);
  (void)state;
  assert_int_equal(stream_of("stencil7,n=12", "recipe=dia", l2), CB_STREAM_STAYS);
  assert_int_equal(stream_of("stencil7,n=12", "recipe=dia vectors=8", l2), CB_STREAM_LEAVES);
}

/* Texts read so and compile without spills. The family's text is the same for all, and gets the word as data. */
static void texts_read_so(void **state) {
  static const struct {
    const char *words, *has, *lacks, *instruction;
  } cases[] = {
      {"stay-in-l2=on", "(load(arrays.values", "load_hinted", "ld.global.nc.f64"},
      {"stay-in-l2=off", "(load_stream(arrays.values", "load_hinted", "ld.global.nc.L1::no_allocate.u64"},
      {"stay-in-l2=auto", "(load_hinted(arrays.values", "load(arrays.values",
       "ld.global.nc.L1::no_allocate.L2::cache_hint.u64"}};
  struct cb_nvrtc *nvrtc = open_nvrtc();
  char *family = NULL;
  int64_t vectors;
  const int64_t stored = stored_bytes("fe3,n=9", "recipe=blocks block-size=3x3", &vectors);
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char settings[80];
    struct cb_source source;
    struct cb_compiled compiled;
    struct cb_diag diag = {0};
    int32_t sizes[CB_FAMILY_SIZES];
    const struct cb_nvrtc_options options = {.arch = "sm_90", .ptx = 1};
    snprintf(settings, sizeof settings, "recipe=blocks block-size=3x3 %s", cases[i].words);
    struct kernel kernel = {0};
    make_with_l2(&kernel, "fe3,n=9", settings, stored);
    assert_non_null(strstr(kernel.source.text + kernel.source.body, cases[i].has));
    assert_null(strstr(kernel.source.text + kernel.source.body, cases[i].lacks));
    assert_int_equal(strstr(kernel.source.text + kernel.source.body, "constexpr Stream kStream{0x15") != NULL, i == 2);
    if (cb_source_family(&source, kernel.plan, &diag)) fail_msg("%s", diag.message);
    if (family) assert_string_equal(family, source.text);
    else family = strdup(source.text);
    const int count = cb_family_sizes(&kernel.plan->regions[0], sizes);
    int found = 0;
    for (int s = 0; s < count; s++) found += sizes[s] == kernel.plan->regions[0].stream;
    assert_int_equal(found, 1);
    struct cb_cubin_stats stats = compile_strictly(nvrtc, kernel.source.text, "sm_80", kernel.name);
    cb_cubin_stats_release(&stats);
    stats = compile_strictly(nvrtc, source.text, "sm_75", "family");
    cb_cubin_stats_release(&stats);
    if (cb_nvrtc_compile(&compiled, nvrtc, kernel.source.text, "k.cu", &options, &diag)) fail_msg("%s", diag.message);
    assert_non_null(strstr(compiled.ptx, cases[i].instruction));
    cb_compiled_release(&compiled);
    cb_source_release(&source);
    release_kernel(&kernel);
  }
  free(family);
  cb_nvrtc_close(nvrtc);
}

/* Kernels of which a part stays, on the emulation, against the oracle. */
static void verify_shares(const char *const (*cases)[2], size_t count) {
  struct cb_verify_options options;
  struct kernel_batch batch;
  cb_verify_options_default(&options);
  options.orders = 1;
  options.host.compiler = usual_compiler();
  open_batch(&batch, &options);
  for (size_t i = 0; i < count; i++) {
    struct kernel *kernel = next_kernel(&batch);
    int64_t vectors;
    const int64_t stored = stored_bytes(cases[i][0], cases[i][1], &vectors);
    make_with_l2(kernel, cases[i][0], cases[i][1], stored);
    assert_non_null(strstr(kernel->source.text + kernel->source.body, "load_hinted"));
    batch.count++;
  }
  run_batch(&batch);
  close_batch(&batch);
  assert_int_equal(batch.failures, 0);
}

static void a_share_changes_no_result(void **state) {
  static const char *const cases[][2] = {{"fe3,n=14", "recipe=blocks"}, {"stencil27,n=24", "recipe=dia"},
                                         {"fe3,n=14", "recipe=patterns"}};
  (void)state;
  verify_shares(cases, sizeof cases / sizeof *cases);
}

static void nor_do_indices_first(void **state) {
  static const char *const cases[][2] = {{"rmat,scale=12,edge_factor=60", "recipe=hot hot-columns=64"}};
  (void)state;
  verify_shares(cases, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_fits_stays),       cmocka_unit_test(indices_stay_anyhow),
      cmocka_unit_test(a_share_is_a_part_of_l2), cmocka_unit_test(indices_stay_first),
      cmocka_unit_test(the_option_decides),    cmocka_unit_test(several_vectors_count),
      cmocka_unit_test(texts_read_so),         cmocka_unit_test(a_share_changes_no_result),
      cmocka_unit_test(nor_do_indices_first),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
