// SPDX-License-Identifier: Apache-2.0
/* Matrices planned and packed on the (fake) GPU: the same plan and the same bytes as on the host, for every shape,
 * every setting of the layouts that can, and every form of CSR; what is no canonical matrix goes to the host. */
#include "tests/api_support.h"
#include "tests/nvrtc_support.h"
#include "tests/recipes.h"
#include "tests/shapes.h"

#include "analysis/plan/assignment.h"
#include "analysis/plan/blob.h"
#include "runtime/api/session.h"
#include "runtime/operator/device_pack.h"

#include <unistd.h>

/* ---- a session, and a matrix on the device */

static struct cb_session *open_session(void) {
  struct cb_session *session;
  struct cb_diag diag = {0};
  setenv("CBGEN_LIBCUDA", getenv("CBGEN_FAKE_CUDA"), 1);
  setenv("CBGEN_NVRTC", getenv("CBGEN_FAKE_CUDA"), 1);
  assert_ok(cb_session_open(&session, 0, &diag));
  assert_ok(cb_device_enter(session->device, &diag));
  return session;
}

static void close_session(struct cb_session *session) {
  cb_device_leave(session->device);
  cb_session_release(session);
  unsetenv("CBGEN_LIBCUDA");
  unsetenv("CBGEN_NVRTC");
}

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

/* Packs on the device; the bytes from the blob's first array on come back. */
static unsigned char *pack_there(struct cb_session *session, const struct made *made, struct cb_survey *survey,
                                 enum cb_type given, struct cb_slot_map *maps) {
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
  const struct cb_pack_source source = {made->plan, made->assignment, survey, kernels};
  assert_ok(cb_device_alloc(session->device, &there, length, "arrays", &diag));
  put_listed(made, bytes, there, arrays);
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
      const int64_t offset = cb_blob_offset(plan, r, a), end = offset + array->count * (int64_t)cb_type_size(array->type);
      for (int64_t i = offset; array->storage == CB_STORED && i < end; i++)
        if (blob->bytes[i] != bytes[i])
          fail_msg("%s: byte %lld of array '%s' is %02x instead of %02x\n%s", what, (long long)(i - offset), array->name,
                   bytes[i], blob->bytes[i], plan->line);
    }
  const int64_t first = plan->regions_count ? cb_blob_offset(plan, 0, 0) : cb_blob_arrays_end(plan);
  assert_memory_equal(blob->bytes + first, bytes + first, (size_t)(cb_blob_arrays_end(plan) - first));
}

static int packed, refused; /* over all */

/* What settings say about a sample of that form, on the host and on the device. */
static void check(struct cb_session *session, const char *shape, struct form form, const char *settings) {
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
  assert_ok(cb_survey_run(&survey, &csr, kernels_of(session, cb_kernel_set_find("survey")), &view, &diag));
  const struct cb_target *target = &session->device->target;
  const enum cb_status s = cb_plan_build(&here.plan, &here.assignment, &sample.csr, target, &options, &diag);
  enum cb_status remote = cb_plan_build(&there.plan, &there.assignment, &csr, target, &options, &diag);
  refused += remote == CB_ERR_UNSUPPORTED && !s; /* the host does it then */
  if (s && remote != s) fail_msg("%s: %s on the host, %s on the device", what, cb_status_name(s), cb_status_name(remote));
  if (!s && remote && remote != CB_ERR_UNSUPPORTED) fail_msg("%s: %s", what, diag.message);
  if (!s && !remote) {
    check_plans(&here, &there);
    assert_ok(cb_pack(&blob, here.plan, here.assignment, &sample.csr, (struct cb_hash){0, 0}, &diag));
    unsigned char *bytes = pack_there(session, &there, &survey, view.value_type, maps);
    check_bytes(&blob, here.plan, bytes, what);
    check_maps(&here, maps);
    free(bytes);
    cb_blob_release(&blob);
    packed++;
  }
  release_made(&here);
  release_made(&there);
  cb_survey_release(&survey);
  cb_csr_release(&csr);
  sample_release(&sample);
}

/* ---- tests */

static const char *const types[] = {"f64", "f32", "f16-f32", "bf16-f32"};

/* Every shape with settings of each recipe that can be packed there, forms and types taking turns. */
static void bytes_are_the_host_s(void **state) {
  (void)state;
  enum { EACH = 3 };
  struct cb_session *session = open_session();
  const struct cb_recipe *recipe;
  const int count = (int)(sizeof shapes / sizeof *shapes);
  int turn = 0;
  packed = refused = 0;
  for (int number = 0; (recipe = cb_recipe_at(number)); number++) {
    if (!cb_recipe_packs_remotely(recipe)) continue;
    for (int i = 0; i < count * EACH; i++, turn++) {
      char settings[SETTINGS], all[SETTINGS + 64];
      const struct form form = {.row_bits = turn % 3 ? 32 : 64,
                                .col_bits = turn % 5 < 2 ? 64 : 32,
                                .base = turn % 2,
                                .value_type = (cbgen_type)(turn / 3 % 4),
                                .no_values = turn % 11 == 10,
                                .on_device = turn % 7 != 0};
      cross_settings(settings, recipe, i % crossings_of(recipe));
      snprintf(all, sizeof all, "%s type=%s%s", settings, types[turn / 7 % 4],
               turn % 13 == 5 ? " semiring=min-plus" : "");
      check(session, shapes[i % count], form, all);
    }
  }
  print_message("%d packed there, %d left to the host\n", packed, refused);
  assert_true(packed > 10 * refused);
  close_session(session);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fake, check_fake)
  const struct CMUnitTest tests[] = {
      TEST(bytes_are_the_host_s),
  };
  return exit_code_of(cmocka_run_group_tests(tests, NULL, NULL));
}
