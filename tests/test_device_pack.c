// SPDX-License-Identifier: Apache-2.0
/* Matrices planned and packed on the (fake) GPU: the same plan and the same bytes as on the host, for every shape,
 * every setting of the layouts that can, and every form of CSR; what is no canonical matrix goes to the host. */
#include "tests/survey_finder.h"
#include "tests/api_support.h"
#include "tests/combinations.h"
#include "tests/nvrtc_support.h"
#include "tests/recipes.h"
#include "tests/session_support.h"
#include "tests/shapes.h"

#include "analysis/choose/profile.h"
#include "analysis/plan/assignment.h"
#include "analysis/plan/blob.h"
#include "runtime/operator/device_pack.h"

#include <unistd.h>

/* ---- a session, and a matrix on the device */

static const struct cb_kernels *kernels_of(struct cb_session *session, int set) {
  const struct cb_kernels *kernels;
  struct cb_diag diag = {0};
  assert_true(set >= 0);
  if (cb_session_kernels(session, NULL, set, &kernels, &diag)) fail_msg("%s", diag.message);
  return kernels;
}

static struct cb_view view_of(const struct sample *sample) {
  struct cb_view view;
  struct cb_diag diag = {0};
  assert_ok(cb_view_take_csr(&view, &sample->view, &diag));
  return view;
}

/* ---- both ways */

struct made {
  struct cb_plan *plan;
  struct cb_assignment *assignment;
};

static void release_made(struct made *made) {
  cb_assignment_free(made->assignment);
  cb_plan_free(made->plan);
}

static void check_plans(const struct made *here, const struct made *there) {
  struct cb_diag diag = {0};
  struct cb_text one = {0}, other = {0};
  assert_ok(cb_plan_json(here->plan, &one, &diag));
  assert_ok(cb_plan_json(there->plan, &other, &diag));
  assert_string_equal(cb_text_string(&one), cb_text_string(&other));
  cb_text_release(&one);
  cb_text_release(&other);
}

enum { ARRAYS = 64 };

/* The blob's bytes as they will be on the device before kernels pack: listed arrays, the others cleared. */
static void put_listed(const struct made *made, unsigned char *bytes, cb_device_ptr there, cb_device_ptr *arrays) {
  const int nan = cb_semiring_pads_with_nan(made->plan->semiring);
  int number = 0;
  for (int r = 0; r < made->plan->regions_count; r++)
    for (int a = 0; a < made->plan->regions[r].arrays_count; a++) {
      const struct cb_array *array = &made->plan->regions[r].arrays[a];
      const int64_t offset = cb_blob_offset(made->plan, r, a);
      if (array->storage != CB_STORED) continue;
      assert_true(number < ARRAYS);
      arrays[number++] = there + (cb_device_ptr)offset;
      if (array->role == CB_ROLE_VALUES && nan)
        memset(bytes + offset, 0xff, (size_t)array->count * cb_type_size(array->type));
      cb_pack_listed(made->plan, made->assignment, r, a, bytes + offset);
    }
}

/* As if there were 2^31 nonzeros: row pointers of 64 bits. */
static void widen_starts(const struct cb_device *device, struct cb_survey *survey, const struct cb_csr *csr) {
  struct cb_diag diag = {0};
  const size_t bytes = (size_t)(csr->rows + 1) * sizeof(int64_t);
  int64_t *starts = malloc(bytes);
  assert_non_null(starts);
  for (int64_t row = 0; row <= csr->rows; row++) starts[row] = cb_csr_row(csr, row);
  if (!survey->shares_starts) cb_device_free(device, survey->starts);
  survey->shares_starts = 0;
  assert_ok(cb_device_alloc(device, &survey->starts, bytes, "row pointers", &diag));
  assert_ok(cb_device_upload(device, survey->starts, starts, bytes, "row pointers", &diag));
  survey->wide = 1;
  free(starts);
}

/* What an entry of the cache keeps, so that no plan is needed. */
struct kept {
  struct cb_image image;
  struct cb_cache_section section;
  struct cb_packing_lists lists;
  const void *contents[ARRAYS];
};

/* Of a plan that the host has made. 0: it keeps nothing. */
static int keep(struct kept *kept, const struct made *made, const struct cb_blob *blob) {
  struct cb_diag diag = {0};
  struct cb_packing_lists found;
  const struct cb_label label = {"kept", "kept", {0, 0}};
  const struct cb_image_parts parts = {
      .plan = made->plan, .label = &label, .blob = blob, .texts_later = 1, .cubin = "", .cubin_bytes = 0};
  *kept = (struct kept){.section = {.tag = "packing"}};
  if (cb_packing_lists_find(&found, made->plan, made->assignment, &diag)) return 0;
  assert_ok(cb_image_from_plan(&kept->image, &parts, &diag));
  assert_true(kept->image.arrays_count <= ARRAYS);
  kept->section.length = cb_packing_lists_bytes(&found, &kept->image);
  unsigned char *bytes = malloc((size_t)kept->section.length);
  assert_non_null(bytes);
  cb_packing_lists_write(bytes, &found, &kept->image);
  kept->section.bytes = bytes;
  assert_ok(cb_packing_lists_read(&kept->lists, kept->contents, &kept->image, &kept->section, &diag));
  return 1;
}

static void release_kept(struct kept *kept) {
  free((void *)(uintptr_t)kept->section.bytes);
  cb_image_release(&kept->image);
}

/* The blob's bytes as put_listed has them, from what is kept. */
static void put_kept(const struct kept *kept, const struct cb_plan *plan, unsigned char *bytes) {
  int number = 0;
  for (int r = 0; r < plan->regions_count; r++)
    for (int a = 0; a < plan->regions[r].arrays_count; a++) {
      const struct cb_array *array = &plan->regions[r].arrays[a];
      const size_t length = (size_t)array->count * cb_type_size(array->type);
      unsigned char *to = bytes + cb_blob_offset(plan, r, a);
      if (array->storage != CB_STORED) continue;
      if (kept->contents[number]) memcpy(to, kept->contents[number], length);
      else memset(to, array->role == CB_ROLE_VALUES && cb_semiring_pads_with_nan(plan->semiring) ? 0xff : 0, length);
      number++;
    }
}

/* Packs on the device; the bytes from the blob's first array on come back. `kept`: by that, or NULL. */
static unsigned char *pack_there(struct cb_session *session, const struct made *made, const struct kept *kept,
                                 struct cb_survey *survey, enum cb_type given, struct cb_slot_map *maps) {
  struct cb_diag diag = {0};
  struct cb_pack_kernels kernels[CB_MOST_PACKED];
  struct cb_device_packing *packing;
  cb_device_ptr there, arrays[ARRAYS];
  const size_t length = (size_t)cb_blob_arrays_end(made->plan);
  unsigned char *bytes = calloc(length + 1, 1);
  int lost = 1;
  assert_non_null(bytes);
  for (int r = 0; r < made->plan->regions_count; r++) {
    const char *layout = made->plan->regions[r].layout;
    kernels[r].indices = kernels_of(session, cb_kernel_set_of(layout, "indices", made->plan->matrix_type));
    kernels[r].values = kernels_of(session, cb_kernel_set_of(layout, "values", made->plan->matrix_type));
  }
  struct cb_packing_lists lists;
  assert_ok(cb_packing_lists_find(&lists, made->plan, made->assignment, &diag));
  const struct cb_pack_source source = {kept ? &kept->lists : &lists, survey, kernels};
  assert_ok(cb_device_alloc(session->device, &there, length, "arrays", &diag));
  put_listed(made, bytes, there, arrays);
  if (kept) put_kept(kept, made->plan, bytes);
  assert_ok(cb_device_upload(session->device, there, bytes, length, "arrays", &diag));
  assert_ok(cb_device_packing_create(&packing, &source, arrays, &diag));
  assert_ok(cb_device_packing_indices(packing, &source, &diag));
  assert_ok(cb_device_packing_values(packing, given, (cb_device_ptr)(uintptr_t)survey->view.values, NULL, &diag));
  assert_ok(cb_device_packing_lost(packing, &lost, &diag));
  assert_int_equal(lost, 0);
  assert_ok(cb_device_packing_maps(packing, maps, &diag));
  assert_ok(cb_device_download(session->device, bytes, there, length, "arrays", &diag));
  cb_device_packing_free(packing);
  cb_device_free(session->device, there);
  return bytes;
}

static void check_maps(const struct made *here, struct cb_slot_map *maps) {
  struct cb_diag diag = {0};
  for (int r = 0; r < here->plan->regions_count; r++) {
    struct cb_slot_map map;
    assert_ok(cb_slot_map_build(&map, here->plan, here->assignment, r, NULL, &diag));
    assert_int_equal(maps[r].count, map.count);
    for (int64_t slot = 0; slot < map.count; slot++)
      assert_int_equal(cb_slot_get(&maps[r], slot), cb_slot_get(&map, slot));
    cb_slot_map_release(&map);
    cb_slot_map_release(&maps[r]);
  }
}

static void check_bytes(const struct cb_blob *blob, const struct cb_plan *plan, const unsigned char *bytes,
                        const char *what) {
  for (int r = 0; r < plan->regions_count; r++)
    for (int a = 0; a < plan->regions[r].arrays_count; a++) {
      const struct cb_array *array = &plan->regions[r].arrays[a];
      const int64_t offset = cb_blob_offset(plan, r, a);
      const int64_t end = offset + array->count * (int64_t)cb_type_size(array->type);
      for (int64_t i = offset; array->storage == CB_STORED && i < end; i++)
        if (blob->bytes[i] != bytes[i])
          fail_msg("%s: byte %lld of array '%s' is %02x instead of %02x\n%s", what, (long long)(i - offset), array->name,
                   bytes[i], blob->bytes[i], plan->line);
    }
  const int64_t first = plan->regions_count ? cb_blob_offset(plan, 0, 0) : cb_blob_arrays_end(plan);
  assert_memory_equal(blob->bytes + first, bytes + first, (size_t)(cb_blob_arrays_end(plan) - first));
}

static int packed, left, known; /* over all settings of a recipe: on the device, to the host, by what an entry keeps */

/* The host's plan, once more by what an entry keeps of it. */
static void check_kept(struct cb_session *session, const struct sample *sample, const struct made *here,
                       const struct cb_blob *blob, int wide, const char *what) {
  struct cb_diag diag = {0};
  struct cb_survey survey;
  struct cb_csr csr;
  struct cb_slot_map maps[CB_MOST_PACKED];
  struct kept kept;
  const struct cb_view view = view_of(sample);
  const struct cb_kernel_finder finder = finder_of(session, &view);
  if (keep(&kept, here, blob)) {
    assert_ok(cb_survey_run(&survey, &csr, &finder, &view, 0, 0, &diag));
    if (wide) widen_starts(session->device, &survey, &sample->csr);
    unsigned char *bytes = pack_there(session, here, &kept, &survey, view.value_type, maps);
    check_bytes(blob, here->plan, bytes, what);
    check_maps(here, maps);
    free(bytes);
    cb_survey_release(&survey);
    cb_csr_release(&csr);
    known++;
  }
  release_kept(&kept);
}

/* What settings say about a sample of that form, on the host and on the device. */
static void check_near(struct cb_session *session, const char *shape, struct form form, const char *settings,
                       int64_t near) {
  struct cb_diag diag = {0};
  struct cb_options options;
  struct sample sample = sample_of(shape, form);
  struct made here = {0}, there = {0};
  struct cb_survey survey;
  struct cb_csr csr;
  struct cb_blob blob;
  struct cb_slot_map maps[CB_MOST_PACKED];
  char what[512];
  const struct cb_view view = view_of(&sample);
  snprintf(what, sizeof what, "%s, %s, base %d, bits %d %d, type %d", shape, settings, form.base, form.row_bits,
           form.col_bits, form.value_type);
  set_options(&options, settings);
  const struct cb_kernel_finder finder = finder_of(session, &view);
  assert_ok(cb_survey_run(&survey, &csr, &finder, &view, near, 0, &diag));
  const struct cb_target *target = &session->device->target;
  const enum cb_status s = cb_plan_build(&here.plan, &here.assignment, &sample.csr, target, &options, &diag);
  enum cb_status remote = cb_plan_build(&there.plan, &there.assignment, &csr, target, &options, &diag);
  const int is_left = remote == CB_ERR_UNSUPPORTED || remote == CB_ERR_LIMIT;
  left += is_left && !s; /* the host does it then */
  if (s && !is_left) fail_msg("%s: %s on the host, %s on the device", what, cb_status_name(s), cb_status_name(remote));
  if (!s && remote && !is_left) fail_msg("%s: %s", what, diag.message);
  if (!s && !remote) {
    check_plans(&here, &there);
    assert_ok(cb_pack(&blob, here.plan, here.assignment, &sample.csr, (struct cb_hash){0, 0}, &diag));
    if (strstr(settings, "index-limit")) widen_starts(session->device, &survey, &sample.csr);
    unsigned char *bytes = pack_there(session, &there, NULL, &survey, view.value_type, maps);
    check_bytes(&blob, here.plan, bytes, what);
    check_maps(&here, maps);
    free(bytes);
    if (packed++ % 6 == 0) check_kept(session, &sample, &here, &blob, survey.wide, what);
    cb_blob_release(&blob);
  }
  release_made(&here);
  release_made(&there);
  cb_survey_release(&survey);
  cb_csr_release(&csr);
  sample_release(&sample);
}

/* Matrices as small as these come to the host as a whole: now and then, so that kernels are asked, too. */
static int64_t next_near(void) {
  static int asked;
  return ++asked % 3 ? 0 : CB_SURVEY_NEAR;
}

static void check(struct cb_session *session, const char *shape, struct form form, const char *settings) {
  check_near(session, shape, form, settings, next_near());
}

/* ---- tests */

static const char *const types[] = {"f64", "f32", "f16-f32", "bf16-f32"};

/* Every shape with settings of each recipe that can be packed there, forms and types taking turns. */
static void bytes_are_the_host_s(void **state) {
  (void)state;
  enum { EACH = 3 };
  struct cb_session *session = open_compiling_session();
  const struct cb_recipe *recipe;
  const int count = (int)(sizeof shapes / sizeof *shapes);
  int turn = 0;
  for (int number = 0; (recipe = cb_recipe_at(number)); number++) {
    if (!recipe->is_packed) continue;
    packed = left = known = 0;
    for (int i = 0; i < count * EACH; i++, turn++) {
      char settings[SETTINGS], all[SETTINGS + 64];
      const struct form form = {.row_bits = turn % 3 ? 32 : 64,
                                .col_bits = turn % 5 < 2 ? 64 : 32,
                                .base = turn % 2,
                                .value_type = (cbgen_type)(turn / 3 % 4),
                                .no_values = turn % 11 == 10,
                                .on_device = turn % 7 != 0};
      cross_settings(settings, recipe, i % crossings_of(recipe));
      snprintf(all, sizeof all, "%s type=%s%s%s", settings, types[turn / 7 % 4],
               turn % 13 == 5 ? " semiring=min-plus" : "", turn % 17 == 8 ? " index-limit=20" : "");
      check(session, shapes[i % count], form, all);
    }
    print_message("%s: %d packed there, %d by what is kept, %d left to the host\n", recipe->name, packed, known, left);
    assert_true(packed >= 40 && known >= (recipe->is_ready ? packed / 6 : 0));
  }
  close_compiling_session(session);
}

static void check_cases(const char *const (*cases)[2], int count) {
  struct cb_session *session = open_compiling_session();
  packed = left = 0;
  for (int i = 0; i < count; i++)
    check_near(session, cases[i][0],
               (struct form){.row_bits = i % 3 ? 32 : 64, .col_bits = i % 2 ? 64 : 32, .base = i % 2, .on_device = 1},
               cases[i][1], 0);
  assert_int_equal(packed, count);
  close_compiling_session(session);
}

/* What small shapes do not have: long rows in segments and on diagonals, columns that take more than two bytes. */
static void long_and_wide_ones_are_the_host_s(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"long_row,rows=300,cols=4000,per_row=5,long_rows=2,long_length=3000", "recipe=sell sell-vary=on"},
      {"long_row,rows=300,cols=4000,per_row=5,long_rows=2,long_length=3000", "recipe=merge merge-piece=256"},
      {"diagonals,n=300,count=80,spread=100,fill=0.95", "recipe=dia dia-fill=0 dia-most=1024"},
      {"diagonal,n=66000", "recipe=merge"},
  };
  check_cases(cases, 4);
}

/* Blocks for tensor cores follow one another; others have lanes that have fewer, and here more lists than an upload
 * gathers. */
static void blocks_are_the_host_s(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"block,blocks_r=90,r=8,c=8,per_row=9,fill=0.95", "recipe=blocks vectors=8"},
      {"dense,rows=301,cols=203", "recipe=blocks vectors=8"},
      {"fe3,n=12", "recipe=blocks"},
  };
  check_cases(cases, 3);
}

/* Rows in segments, hot and cold, that chunks of nonzeros cut; rows without nonzeros between; packed columns. */
static void hot_columns_are_the_host_s(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"powerlaw,rows=900,cols=80000,max=30000,min=0", "recipe=hot hot-columns=30"},
      {"powerlaw,rows=900,cols=80000,max=30000,min=0", "recipe=hot hot-columns=300 hot-packed=900 hot-three-bytes=off"},
      {"long_row,rows=5000,cols=4000,per_row=2,long_rows=2,long_length=3900", "recipe=hot hot-columns=900"},
      {"hypersparse,rows=90000,cols=9000,keep=0.01,per_row=30", "recipe=hot hot-columns=200 hot-gather=on"},
      {"rmat,scale=11,edge_factor=8", "recipe=hot hot-columns=200 hot-packed=5000"},
  };
  check_cases(cases, 5);
}

/* Fewer slots than columns, which could be a sequence without a list: those of a diagonal are one, others are not. */
static void few_slots_of_many_columns_are_the_host_s(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"hypersparse,rows=9000,cols=300000,keep=0.05,per_row=3", "recipe=merge"},
      {"hypersparse,rows=40000,cols=90000,keep=0.02,per_row=2", "recipe=merge merge-items=3 merge-pad=off"},
      {"hypersparse,rows=3000,cols=200000,keep=0.02,per_row=2", "recipe=sell"},
      {"powerlaw,rows=900,cols=800000,max=2000,min=0", "recipe=merge merge-piece=256"},
      {"powerlaw,rows=300,cols=800000,max=90,min=0", "recipe=sell sell-vary=on"},
      {"diagonal,n=70000", "recipe=merge merge-pad=off"},
      {"one_row,cols=70000", "recipe=merge merge-pad=off"},
      {"diagonal,n=70000", "recipe=sell"},
  };
  check_cases(cases, sizeof cases / sizeof *cases);
}

/* Row ends, empty rows and spans of columns as kernels find them: rows that end in every place of a chunk, many chunks,
 * gaps within them and none, no rows at all; units of whole long rows, cut ones, and tiles. */
static void rows_are_the_host_s(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"rmat,scale=12,edge_factor=6", "recipe=merge merge-items=3"},
      {"rmat,scale=12,edge_factor=6", "recipe=merge merge-items=7 merge-pad=off"},
      {"hypersparse,rows=9000,cols=9000,keep=0.05,per_row=30", "recipe=merge"},
      {"uniform,n=5000,per_row=1", "recipe=merge"},
      {"uniform,n=3000,per_row=3", "recipe=merge merge-items=3"},
      {"empty,rows=5000,cols=20", "recipe=merge"},
      {"powerlaw,rows=3000,cols=2900,max=2900,min=0", "recipe=merge merge-items=5"},
      {"powerlaw,rows=900,cols=9000,max=9000,min=0", "recipe=merge"},
      {"stencil5,n=60", "recipe=merge form=add"},
      {"band,n=70000,half=5,per_row=1", "recipe=merge"},
      {"long_row,rows=3000,cols=9000,per_row=3,long_rows=3,long_length=8000", "recipe=merge merge-piece=2000"},
      {"random,rows=400,cols=60,per_row=1", "recipe=merge bake-limit=300"},
  };
  struct cb_session *session = open_compiling_session();
  packed = left = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int wide = 0; wide < 2; wide++)
      check_near(session, cases[i][0],
                 (struct form){.row_bits = wide ? 64 : 32, .col_bits = 32, .base = wide, .on_device = 1},
                 cases[i][1], 0);
  assert_int_equal(packed, 2 * sizeof cases / sizeof *cases);
  close_compiling_session(session);
}

/* A plan in which every call of the driver fails once: nothing of the survey is left, and no plan. */
static void failing_surveys_leave_nothing(void **state) {
  (void)state;
  struct cb_session *session = open_compiling_session();
  struct sample sample = sample_of("powerlaw,rows=3000,cols=2900,max=2900,min=0", (struct form){.on_device = 1});
  const struct cb_view view = view_of(&sample);
  const struct cb_kernel_finder finder = finder_of(session, &view);
  struct cb_options options;
  int failed = 0;
  set_options(&options, "recipe=merge");
  for (long nth = 0;; nth++) { /* the first time nothing fails, so that all kernels are loaded */
    struct made made = {0};
    struct cb_survey survey;
    struct cb_csr csr;
    struct cb_diag diag = {0};
    const long blocks = fake->blocks;
    fake->calls = 0;
    fake->failure = CB_CU_OUT_OF_MEMORY;
    fake->fail_at = nth;
    enum cb_status s = cb_survey_run(&survey, &csr, &finder, &view, 0, 0, &diag);
    if (!s) s = cb_plan_build(&made.plan, &made.assignment, &csr, &session->device->target, &options, &diag);
    const int reached = fake->calls >= nth;
    fake->fail_at = 0;
    failed += s != CB_OK;
    assert_true(!s == !!made.plan);
    release_made(&made);
    cb_survey_release(&survey);
    cb_csr_release(&csr);
    assert_int_equal(fake->blocks, blocks);
    if (!reached) break;
  }
  assert_true(failed > 20);
  sample_release(&sample);
  close_compiling_session(session);
}

/* ---- the choice of a recipe */

/* The profile of a sample of that form is the same number for number, and so is the recipe; where the fastest takes
 * columns on the host, that is said, unless the loss is permitted. */
static void compare_profiles(struct cb_session *session, const char *shape, struct form form, int64_t near) {
  struct cb_diag diag = {0};
  struct cb_choice_profile here, there;
  struct sample sample = sample_of(shape, form);
  struct cb_survey survey;
  struct cb_csr csr;
  const struct cb_view view = view_of(&sample);
  const struct cb_kernel_finder finder = finder_of(session, &view);
  assert_ok(cb_survey_run(&survey, &csr, &finder, &view, near, 0, &diag));
  assert_int_equal(csr.row_ptr != NULL, view.nnz <= near && view.rows <= near);
  if (form.row_bits == 64) widen_starts(session->device, &survey, &sample.csr);
  assert_ok(cb_choice_profile(&here, &sample.csr, &diag));
  if (cb_choice_profile(&there, &csr, &diag)) fail_msg("%s: %s", shape, diag.message);
  const int64_t *const one = (const int64_t *)&here, *const other = (const int64_t *)&there;
  for (size_t i = 0; i < sizeof here / sizeof *one; i++)
    if (one[i] != other[i])
      fail_msg("%s: number %zu of the profile is %lld on the device, %lld on the host", shape, i, (long long)other[i],
               (long long)one[i]);
  cb_survey_release(&survey);
  cb_csr_release(&csr);
  sample_release(&sample);
}

static void profiles_are_the_host_s(void **state) {
  (void)state;
  static const char *const larger[] = {"powerlaw,rows=9000,cols=70000,max=3000,min=0", "rmat,scale=13,edge_factor=16",
                                       "fe3,n=6",
                                       "long_row,rows=20000,cols=30000,per_row=4,long_rows=3,long_length=9000",
                                       "diagonals,n=9000,count=9,spread=300,fill=0.9", "uniform,n=300000,per_row=1",
                                       "random,rows=90,cols=700,per_row=300" /* groups too long for a thread block */};
  struct cb_session *session = open_compiling_session();
  const int count = (int)(sizeof shapes / sizeof *shapes), all = count + (int)(sizeof larger / sizeof *larger);
  for (int i = 0; i < 2 * all; i++) {
    if (i < 2 * count && (i + i / 4) % 2 && !tests_all_combinations()) continue; /* small ones in one way each */
    compare_profiles(session, i / 2 < count ? shapes[i / 2] : larger[i / 2 - count],
                     (struct form){.row_bits = i % 3 ? 32 : 64, .col_bits = i % 5 < 2 ? 64 : 32, .base = i / 2 % 2,
                                   .on_device = i % 7 != 0},
                     i % 2 ? CB_SURVEY_NEAR : 0);
  }
  close_compiling_session(session);
}

/* The plan of recipe auto there, or NULL and `why` not. */
static struct cb_plan *chosen_there(struct cb_session *session, const char *shape, const char *settings,
                                    int64_t near, struct cb_diag *why) {
  struct cb_diag diag = {0};
  struct made there = {0};
  struct cb_options options;
  struct sample sample = sample_of(shape, (struct form){.on_device = 1});
  struct cb_survey survey;
  struct cb_csr csr;
  const struct cb_view view = view_of(&sample);
  const struct cb_kernel_finder finder = finder_of(session, &view);
  set_options(&options, settings);
  assert_ok(cb_survey_run(&survey, &csr, &finder, &view, near, 0, &diag));
  const enum cb_status s =
      cb_plan_build(&there.plan, &there.assignment, &csr, &session->device->target, &options, why);
  if (s ? s != CB_ERR_UNSUPPORTED || there.plan : !there.plan) fail_msg("%s, %s: %s", shape, settings, why->message);
  cb_assignment_free(there.assignment);
  cb_survey_release(&survey);
  cb_csr_release(&csr);
  sample_release(&sample);
  return there.plan;
}

static void the_device_chooses(void **state) {
  (void)state;
  static const struct {
    const char *shape, *settings, *recipe; /* NULL: the host shall */
    int64_t near; /* 0: now and then */
  } cases[] = {
      {"fe3,n=12", "recipe=auto search=profile", "blocks", 0},
      {"fe3,n=12", "recipe=auto search=ready", "blocks", 0},
      {"rmat,scale=16,edge_factor=32", "recipe=auto search=ready ready-loss=1000000", "sell", INT64_MAX},
      {"kkt,n=200,stages=2", "recipe=auto search=ready ready-loss=0", NULL, 0},
      {"kkt,n=200,stages=2", "recipe=auto search=profile", NULL, 0},
      {"rmat,scale=16,edge_factor=32", "recipe=auto search=ready ready-loss=0", "hot", INT64_MAX},
  };
  struct cb_session *session = open_compiling_session();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct cb_diag diag = {0};
    const int64_t near = cases[i].near ? cases[i].near : next_near();
    struct cb_plan *plan = chosen_there(session, cases[i].shape, cases[i].settings, near, &diag);
    if (plan && !cases[i].recipe) fail_msg("%s, %s: recipe %s", cases[i].shape, cases[i].settings, plan->recipe);
    if (plan) assert_string_equal(plan->recipe, cases[i].recipe);
    else assert_non_null(strstr(diag.message, "takes columns on the host"));
    assert_true(!plan == !cases[i].recipe);
    cb_plan_free(plan);
  }
  close_compiling_session(session);
}

/* ---- through cbgen_compile */

struct heard {
  int there, here, entry, lists, damaged;
};
static void hear(void *user, const char *line) {
  struct heard *heard = user;
  heard->here += strstr(line, "planned and packed on the host") != NULL;
  heard->entry += strstr(line, "the entry keeps no data") != NULL;
  heard->lists += strstr(line, "kernels pack the arrays, by") != NULL;
  heard->damaged += strstr(line, "the entry's section 'packing' is damaged") != NULL;
}

static cbgen_context *context_with(const char *options, const char *cache, struct heard *heard) {
  cbgen_context *context;
  assert_int_equal(cbgen_context_create(&context), CBGEN_OK);
  must(context, cbgen_set(context, "cache", cache));
  must(context, cbgen_set_log(context, hear, heard));
  set_all(context, options);
  return context;
}

static void choose_fake(void) {
  setenv("CBGEN_LIBCUDA", getenv("CBGEN_FAKE_CUDA"), 1);
  setenv("CBGEN_NVRTC", getenv("CBGEN_FAKE_CUDA"), 1);
}

/* A saved operator has all that it is made of. */
static unsigned char *saved(cbgen_operator *op, size_t *length) {
  must_operator(op, cbgen_operator_save(op, NULL, 0, length));
  unsigned char *bytes = malloc(*length);
  assert_non_null(bytes);
  must_operator(op, cbgen_operator_save(op, bytes, *length, length));
  return bytes;
}

static const char *const api_settings[] = {"recipe=sell", "recipe=sell sell-sort=on sell-vary=off type=f32",
                                           "recipe=sell sell-vary=on form=ax"};

/* The whole operator is the same, byte for byte. */
static void operators_are_the_host_s(void **state) {
  (void)state;
  choose_fake();
  for (size_t i = 0; i < sizeof api_settings / sizeof *api_settings; i++) {
    unsigned char *bytes[2];
    size_t length[2];
    struct heard heard = {0};
    struct sample sample = sample_of("powerlaw,rows=500,cols=400,max=350,min=0", (struct form){.on_device = i != 1});
    for (int there = 0; there < 2; there++) {
      char options[256];
      cbgen_operator *op;
      snprintf(options, sizeof options, "%s pack=%s", api_settings[i], there ? "device" : "host");
      cbgen_context *context = context_with(options, "", &heard);
      must(context, cbgen_compile(context, &sample.view, NULL, &op));
      if (i < 2) check_product(op, &sample.csr);
      bytes[there] = saved(op, &length[there]);
      cbgen_operator_free(op);
      cbgen_context_destroy(context);
    }
    assert_int_equal(heard.here, 0);
    assert_int_equal(length[0], length[1]);
    assert_memory_equal(bytes[0], bytes[1], length[0]);
    free(bytes[0]);
    free(bytes[1]);
    sample_release(&sample);
  }
}

/* Values are renewed without a map; and with the one that a saved operator gets. */
static void values_are_renewed(void **state) {
  (void)state;
  choose_fake();
  struct heard heard = {0};
  struct sample sample = sample_of("powerlaw,rows=300,cols=400,max=200,min=0",
                                   (struct form){.value_type = CBGEN_F32, .on_device = 1, .base = 1});
  const cbgen_request request = {.struct_size = sizeof request, .values = CBGEN_VALUES_MUTABLE};
  cbgen_context *context = context_with("recipe=sell pack=device type=f64", "", &heard);
  cbgen_operator *op, *loaded;
  size_t length;
  must(context, cbgen_compile(context, &sample.view, &request, &op));
  for (int round = 0; round < 3; round++) {
    set_values(&sample, (uint64_t)round + 50);
    sum_up(&sample);
    const cbgen_update update = {.struct_size = sizeof update,
                                 .values = round == 1 ? sample.given : (void *)(uintptr_t)sample.there[2],
                                 .value_type = CBGEN_F32,
                                 .memory = round == 1 ? CBGEN_HOST : CBGEN_DEVICE};
    must_operator(op, cbgen_update_values(op, &update));
    check_product(op, &sample.csr);
  }
  unsigned char *bytes = saved(op, &length);
  cbgen_operator_free(op);
  must(context, cbgen_operator_load(context, bytes, length, &loaded));
  check_product(loaded, &sample.csr);
  set_values(&sample, 99);
  sum_up(&sample);
  const cbgen_update update = {
      .struct_size = sizeof update, .values = sample.given, .value_type = CBGEN_F32, .memory = CBGEN_HOST};
  must_operator(loaded, cbgen_update_values(loaded, &update));
  check_product(loaded, &sample.csr);
  cbgen_operator_free(loaded);
  cbgen_context_destroy(context);
  assert_int_equal(heard.here, 0);
  free(bytes);
  sample_release(&sample);
}

/* What is no canonical matrix, or not asked for as one, is the host's. */
static void others_go_to_the_host(void **state) {
  (void)state;
  choose_fake();
  static const struct {
    struct form form;
    cbgen_request request;
    int told;
  } cases[] = {
      {{.on_device = 1, .shuffled = 1}, {.struct_size = sizeof(cbgen_request)}, 1},
      {{.on_device = 1, .duplicates = 1}, {.struct_size = sizeof(cbgen_request)}, 1},
      {{.shuffled = 1, .base = 1}, {.struct_size = sizeof(cbgen_request)}, 1},
      {{.on_device = 1}, {.struct_size = sizeof(cbgen_request), .transpose = 1}, 0},
      {{.on_device = 1}, {.struct_size = sizeof(cbgen_request), .values = CBGEN_VALUES_FIXED}, 0},
      {{.on_device = 1}, {.struct_size = sizeof(cbgen_request)}, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct heard heard = {0};
    cbgen_operator *op;
    struct sample sample = sample_of("random,rows=90,cols=90,per_row=7", cases[i].form);
    cbgen_context *context = context_with("recipe=sell pack=device", "", &heard);
    must(context, cbgen_compile(context, &sample.view, &cases[i].request, &op));
    assert_int_equal(heard.here, cases[i].told);
    struct cb_csr turned = cases[i].request.transpose ? transposed(&sample.csr) : (struct cb_csr){0};
    check_product(op, cases[i].request.transpose ? &turned : &sample.csr);
    cb_csr_release(&turned);
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
    sample_release(&sample);
  }
}

/* Row pointers and columns that are none give the host's message. */
static void nonsense_is_told(void **state) {
  (void)state;
  choose_fake();
  static const struct {
    int in_rows;
    int64_t at, value; /* below 0: counted from the last; of values, -100 stands for -1 */
    const char *words;
    int base;
  } wrong[] = {{1, 5, 1000, "never decreases", 0}, {1, 0, 1, "goes from", 0},    {1, 90, 3, "goes from", 0},
               {1, 90, -1, "goes from", 0},        {0, 7, -100, "col_idx[7]", 0}, {0, 500, 90, "col_idx[500]", 0},
               {0, -1, 90, "columns go from", 0},  {0, 0, 0, "columns go from", 1}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    struct heard heard = {0};
    cbgen_operator *op;
    struct sample sample =
        sample_of("random,rows=90,cols=90,per_row=7", (struct form){.on_device = 1, .base = wrong[i].base});
    const int64_t at = wrong[i].at < 0 ? sample.entries + wrong[i].at : wrong[i].at, value = wrong[i].value;
    const int32_t number = (int32_t)(value == -100 ? -1 : value < 0 ? sample.entries + value : value);
    assert_true(sample.entries > 501);
    assert_true(app_put(sample.there[wrong[i].in_rows ? 0 : 1] + (uint64_t)at * 4, &number, 4));
    cbgen_context *context = context_with("recipe=sell pack=device", "", &heard);
    assert_int_equal(cbgen_compile(context, &sample.view, NULL, &op), CBGEN_ERROR_ARGUMENT);
    assert_non_null(strstr(cbgen_message(context), wrong[i].words));
    assert_int_equal(heard.here, 1);
    cbgen_context_destroy(context);
    sample_release(&sample);
  }
}

/* Where nothing is said, recipes that can and matrices that are worth it; "auto" takes those that can when it must. */
static void the_choice_is_the_caller_s(void **state) {
  (void)state;
  choose_fake();
  static const struct {
    const char *options, *recipe;
    int launches; /* several: where the host packs, one brings the values to their places */
  } cases[] = {{"recipe=auto pack=device", NULL, 1}, {"recipe=auto", NULL, 0}, {"recipe=sell", "(sell", 0},
               {"recipe=sell-long pack=device", "(sell", 0}, {"recipe=sell pack=device", "(sell", 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct heard heard = {0};
    cbgen_operator *op;
    struct sample sample = sample_of("random,rows=200,cols=200,per_row=7", (struct form){.on_device = 1});
    cbgen_context *context = context_with(cases[i].options, "", &heard);
    fake->launches = 0;
    must(context, cbgen_compile(context, &sample.view, NULL, &op));
    assert_int_equal(heard.here, 0);
    assert_int_equal(fake->launches > 1, cases[i].launches);
    if (cases[i].recipe) assert_non_null(strstr(cbgen_operator_plan(op), cases[i].recipe));
    check_product(op, &sample.csr);
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
    sample_release(&sample);
  }
}

/* A cache keeps plan and kernel; the data are packed anew. */
static void entries_keep_no_data(void **state) {
  (void)state;
  choose_fake();
  char directory[] = "/tmp/cbgen-device-pack-XXXXXX", command[64];
  struct heard heard = {0};
  assert_non_null(mkdtemp(directory));
  struct sample sample = sample_of("random,rows=90,cols=90,per_row=7", (struct form){.on_device = 1});
  const cbgen_request now = {.struct_size = sizeof now, .specialise = CBGEN_SPECIALISE_NOW};
  for (int i = 0; i < 2; i++) { /* what a family's kernel and the device make is not worth an entry */
    cbgen_operator *op;
    cbgen_info info = {.struct_size = sizeof info};
    cbgen_context *context = context_with("recipe=sell pack=device", directory, &heard);
    must(context, cbgen_compile(context, &sample.view, NULL, &op));
    assert_int_equal(cbgen_operator_info(op, &info), CBGEN_OK);
    assert_true(info.cache == CBGEN_CACHE_MISS && info.tier == CBGEN_TIER_FAMILY);
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
  }
  for (int i = 0; i < 3; i++) {
    cbgen_operator *op;
    cbgen_info info = {.struct_size = sizeof info};
    cbgen_context *context = context_with(i < 2 ? "recipe=sell pack=device" : "recipe=sell pack=host", directory, &heard);
    const long copies = fake->copies_to_host;
    must(context, cbgen_compile(context, &sample.view, &now, &op));
    if (i == 1) assert_in_range(fake->copies_to_host - copies, 1, 8); /* digests, rows, a sample of columns */
    assert_int_equal(cbgen_operator_info(op, &info), CBGEN_OK);
    assert_int_equal(info.cache, i ? CBGEN_CACHE_HIT : CBGEN_CACHE_MISS);
    assert_int_equal(heard.entry, i);
    check_product(op, &sample.csr);
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
  }
  assert_int_equal(heard.here, 0);
  sample_release(&sample);
  snprintf(command, sizeof command, "rm -r %s", directory);
  assert_int_equal(system(command), 0);
}

/* Bytes that an entry keeps, damaged in some way: they are refused, or their numbers lie within the image's arrays. */
static void damaged_lists_are_refused(void **state) {
  (void)state;
  struct cb_session *session = open_compiling_session();
  static const char *const recipes[] = {"recipe=merge", "recipe=blocks", "recipe=sell"};
  for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
    struct cb_diag diag = {0};
    struct cb_options options;
    struct sample sample = sample_of("block,blocks_r=30,r=3,c=3,per_row=4,fill=0.9", (struct form){.on_device = 0});
    struct made made;
    struct cb_blob blob;
    struct kept kept;
    struct cb_packing_lists lists;
    const void *contents[ARRAYS];
    set_options(&options, recipes[i]);
    assert_ok(cb_plan_build(&made.plan, &made.assignment, &sample.csr, &session->device->target, &options, &diag));
    assert_ok(cb_pack(&blob, made.plan, made.assignment, &sample.csr, (struct cb_hash){0, 0}, &diag));
    assert_true(keep(&kept, &made, &blob));
    const struct cb_cache_section *whole = &kept.section;
    for (int64_t length = 0; length <= whole->length * 41 / 40 + 1; length += 1 + length / 40) { /* apart: ASan sees */
      unsigned char *bytes = calloc((size_t)length + 1, 1);
      assert_non_null(bytes);
      memcpy(bytes, whole->bytes, (size_t)cb_smaller(length, whole->length));
      const struct cb_cache_section cut = {"packing", bytes, length};
      assert_int_equal(!cb_packing_lists_read(&lists, contents, &kept.image, &cut, &diag), length == whole->length);
      free(bytes);
    }
    unsigned char *bytes = (unsigned char *)(uintptr_t)whole->bytes;
    int refused = 0;
    for (int64_t at = 0; at < cb_smaller(whole->length, 600); at++) {
      bytes[at] ^= (unsigned char)(1u << at % 8);
      const enum cb_status s = cb_packing_lists_read(&lists, contents, &kept.image, whole, &diag);
      bytes[at] ^= (unsigned char)(1u << at % 8);
      refused += s != CB_OK;
      for (int f = 0; !s && lists.count && f < lists.regions[0].fields_count; f++) {
        const struct cb_packing_field *field = &lists.regions[0].fields[f];
        assert_in_range(field->array, 0, kept.image.arrays_count - 1);
        assert_true(field->count * field->width <= kept.image.arrays[field->array].bytes);
      }
    }
    assert_true(refused > 100);
    release_kept(&kept);
    cb_blob_release(&blob);
    release_made(&made);
    sample_release(&sample);
  }
  close_compiling_session(session);
}

/* The entry's section "packing", written over. */
static void damage_entry(const char *directory) {
  struct cb_cache *cache;
  struct cb_cache_entry entry;
  struct cb_diag diag = {0};
  const struct cb_cache_options options = {.directory = directory};
  assert_ok(cb_cache_open(&cache, &options, &diag));
  struct cb_cache_listing all = {0};
  int damaged = 0;
  assert_ok(cb_cache_list(cache, &all, &diag));
  for (int i = 0; i < all.count; i++) {
    if (cb_cache_get(cache, all.items[i].key, &entry, &diag) != CB_CACHE_HIT) continue;
    const struct cb_cache_label label = {entry.matrix, entry.target, entry.kernel};
    static const unsigned char nothing[8];
    for (int k = 0; k < entry.count; k++) {
      if (strcmp(entry.sections[k].tag, "packing")) continue;
      entry.sections[k].bytes = nothing;
      entry.sections[k].length = sizeof nothing;
      damaged += cb_cache_put(cache, entry.key, &label, entry.sections, entry.count, &diag) == CB_CACHE_STORED;
    }
    cb_cache_entry_release(&entry);
  }
  cb_cache_listing_release(&all);
  cb_cache_close(cache);
  assert_int_equal(damaged, 1);
}

/* An entry with data of a matrix on the device: kernels fill its arrays without a plan; so they do after the entry was
 * written again for another kernel, and has lost these; what is damaged is packed otherwise. The bytes are the same. */
static void check_entries(const char *recipe, const char *shape) {
  enum { MAKE, UPLOAD, PACK, SPECIALISE, PACK_AGAIN, DAMAGED, STEPS };
  char directory[] = "/tmp/cbgen-device-pack-XXXXXX", command[64];
  unsigned char *bytes[STEPS];
  size_t length[STEPS];
  assert_non_null(mkdtemp(directory));
  struct sample sample = sample_of(shape, (struct form){.on_device = 1, .base = 1});
  for (int step = MAKE; step < STEPS; step++) {
    struct heard heard = {0};
    cbgen_operator *op;
    cbgen_info info = {.struct_size = sizeof info};
    const cbgen_request request = {.struct_size = sizeof request,
                                   .values = step < SPECIALISE ? CBGEN_VALUES_STORED : CBGEN_VALUES_MUTABLE,
                                   .specialise = step == SPECIALISE ? CBGEN_SPECIALISE_NOW : CBGEN_SPECIALISE_NEVER};
    char options[128];
    snprintf(options, sizeof options, "recipe=%s cache-data=always pack=%s", recipe,
             step == MAKE ? "host" : step == UPLOAD ? "auto" : "device");
    if (step == DAMAGED) damage_entry(directory);
    cbgen_context *context = context_with(options, directory, &heard);
    must(context, cbgen_compile(context, &sample.view, &request, &op));
    assert_int_equal(cbgen_operator_info(op, &info), CBGEN_OK);
    assert_int_equal(info.cache, step == MAKE ? CBGEN_CACHE_MISS : CBGEN_CACHE_HIT);
    assert_int_equal(heard.lists, step == PACK || step == PACK_AGAIN);
    assert_int_equal(heard.damaged, step == DAMAGED);
    check_product(op, &sample.csr);
    bytes[step] = saved(op, &length[step]);
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
    if (step < SPECIALISE) assert_int_equal(length[step], length[MAKE]);
    if (step < SPECIALISE) assert_memory_equal(bytes[step], bytes[MAKE], length[MAKE]);
  }
  for (int step = MAKE; step < STEPS; step++) free(bytes[step]);
  sample_release(&sample);
  snprintf(command, sizeof command, "rm -r %s", directory);
  assert_int_equal(system(command), 0);
}

static void entries_keep_lists(void **state) {
  (void)state;
  choose_fake();
  check_entries("merge", "rmat,scale=9,edge_factor=7");
  check_entries("sell", "powerlaw,rows=300,cols=400,max=200,min=0");
  check_entries("blocks", "block,blocks_r=30,r=3,c=3,per_row=4,fill=0.95");
}

/* Every call of the driver fails once: an error or an operator that is right, and nothing is left. */
static void failures_leave_nothing(void **state) {
  (void)state;
  choose_fake();
  struct sample sample = sample_of("random,rows=90,cols=90,per_row=7", (struct form){.on_device = 1});
  const cbgen_request request = {.struct_size = sizeof request, .values = CBGEN_VALUES_MUTABLE};
  int failed = 0, replaced = 0;
  for (long nth = 1;; nth++) {
    struct heard heard = {0};
    cbgen_operator *op;
    cbgen_context *context = context_with("recipe=sell pack=device", "", &heard);
    fake->calls = 0;
    fake->failure = CB_CU_OUT_OF_MEMORY;
    fake->fail_at = nth;
    const cbgen_status s = cbgen_compile(context, &sample.view, &request, &op);
    const int reached = fake->calls >= nth;
    fake->fail_at = 0;
    replaced += !s && heard.here;
    failed += s != CBGEN_OK;
    if (s) assert_true(*cbgen_message(context));
    else check_product(op, &sample.csr);
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
    trim_all();
    if (!reached) break;
  }
  assert_true(failed > 5 && replaced > 5);
  sample_release(&sample);
}

/* Finite values that the stored type cannot hold are refused, as on the host. */
static void lost_values_are_told(void **state) {
  (void)state;
  choose_fake();
  struct heard heard = {0};
  cbgen_operator *op;
  struct sample sample = sample_of("random,rows=90,cols=90,per_row=7", (struct form){.on_device = 1});
  const double large = 1e30;
  assert_true(app_put(sample.there[2] + 8 * 77, &large, sizeof large));
  cbgen_context *context = context_with("recipe=sell pack=device type=f16-f32", "", &heard);
  assert_int_equal(cbgen_compile(context, &sample.view, NULL, &op), CBGEN_ERROR_LIMIT);
  assert_non_null(strstr(cbgen_message(context), "beyond the range of f16"));
  assert_int_equal(heard.here, 0);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

static void the_option_takes_three_words(void **state) {
  (void)state;
  cbgen_context *context;
  assert_int_equal(cbgen_context_create(&context), CBGEN_OK);
  assert_int_equal(cbgen_set(context, "pack", "gpu"), CBGEN_ERROR_ARGUMENT);
  assert_string_equal(cbgen_message(context), "'pack' does not take 'gpu'; it takes auto, host or device");
  cbgen_context_destroy(context);
}

/* ---- the real compiler */

static void every_set_compiles(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  unsetenv("CBGEN_NVRTC"); /* not the fake one */
  struct cb_nvrtc *nvrtc = open_nvrtc();
  for (int set = 0; cb_kernel_sets[set].name; set++)
    for (int i = 0; arches[i]; i++) { /* in turns: those of values differ in conversions only */
      if (i % (cb_kernel_sets[set].stored ? 4 : 2) != set % (cb_kernel_sets[set].stored ? 4 : 2)) continue;
      struct cb_text text = {0};
      int kernels = 0;
      while (cb_kernel_sets[set].kernels[kernels]) kernels++;
      assert_ok(cb_kernel_set_text(&text, &cb_kernel_sets[set], &diag));
      struct cb_cubin_stats stats =
          compile_strictly(nvrtc, cb_text_string(&text), arches[i], cb_kernel_sets[set].name);
      assert_int_equal(stats.count, kernels);
      cb_cubin_stats_release(&stats);
      cb_text_release(&text);
    }
  cb_nvrtc_close(nvrtc);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fake, check_fake)
  const struct CMUnitTest tests[] = {
      TEST(bytes_are_the_host_s), TEST(long_and_wide_ones_are_the_host_s),
      TEST(blocks_are_the_host_s),
      TEST(hot_columns_are_the_host_s),
      TEST(few_slots_of_many_columns_are_the_host_s), TEST(rows_are_the_host_s), TEST(failing_surveys_leave_nothing),
      TEST(profiles_are_the_host_s), TEST(the_device_chooses),
      TEST(operators_are_the_host_s),     TEST(values_are_renewed),
      TEST(others_go_to_the_host), TEST(nonsense_is_told),            TEST(entries_keep_no_data),
      TEST(damaged_lists_are_refused), TEST(entries_keep_lists),
      TEST(the_choice_is_the_caller_s),
      TEST(failures_leave_nothing), TEST(lost_values_are_told),       TEST(the_option_takes_three_words),
      cmocka_unit_test(every_set_compiles),
  };
  return exit_code_of(cmocka_run_group_tests(tests, NULL, NULL));
}
