// SPDX-License-Identifier: Apache-2.0
/* Operators on a fake driver: every launch gets the parameters that codegen/source.h documents, with the data
 * of the blob behind them; and after any failing call nothing is left. */
#include "tests/recipes.h"
#include "tests/support.h"

#include "runtime/operator/operator.h"
#include "tests/fake_driver.h"

static struct fake_control *fake;

/* What one test works with: a product of the pipeline, a device, and an image that "has" the kernels. */
struct bed {
  struct product product;
  struct cb_driver *driver;
  struct cb_device *device;
  char image[1024];
  struct cb_label label;
  struct cb_image_parts parts;
  int apart;
  /* for the hook */
  cb_device_ptr x, y;
  double alpha, beta;
  void *stream;
  int launches;
  uint64_t carry_sums; /* of the last launch */
};

static const struct {
  const char *matrix, *options;
} cases[] = {
    {"random,rows=300,cols=200,density=0.05", "form=ax"},
    {"random,rows=300,cols=200,density=0.05", "form=axpby"},
    {"random,rows=300,cols=200,density=0.05", "form=axpby type=f32"},
    {"random,rows=300,cols=200,density=0.05", "form=add type=f32"},
    {"random,rows=300,cols=200,density=0.05", "bake-limit=0"},
    {"random,rows=300,cols=200,density=0.05", "intra=off bake-limit=0"},
    {"random,rows=100,cols=5000,density=0.2", "recipe=cb unit-budget=512 form=ax"},
    {"random,rows=100,cols=5000,density=0.2", "recipe=cb unit-budget=512"},
    {"random,rows=300,cols=200,density=0.3", "recipe=cb atomics=on balance=heap form=ax"},
    {"random,rows=300,cols=200,density=0.3", "recipe=cb atomics=on balance=heap form=axpby"},
    {"stencil7,n=9,extra=0.5", "recipe=dia fuse=on"},
    {"diagonal,n=100", ""},
    {"empty,rows=50,cols=40", ""},
    {"empty,rows=0,cols=0", ""},
    {"empty,rows=0,cols=9", "form=axpby"},
};
enum { CASES = sizeof cases / sizeof *cases };

/* A fresh driver with the bed's device; the product stays. */
static void reopen(struct bed *bed) {
  struct cb_diag diag = {0};
  fake = fake_open();
  assert_non_null(fake);
  bed->launches = 0;
  assert_ok(cb_driver_open(&bed->driver, getenv("CBGEN_FAKE_CUDA"), &diag));
  assert_ok(cb_device_open(&bed->device, bed->driver, 0, &diag));
}

static void shut(struct bed *bed) {
  cb_device_close(bed->device);
  cb_driver_close(bed->driver);
  assert_string_equal(fake->misuse, "");
  assert_true(fake_is_clean(fake));
}

static void prepare_for(struct bed *bed, const char *matrix, const char *options) {
  struct cb_text image = {0};
  *bed = (struct bed){.product = product_of(matrix, options)};
  bed->label = (struct cb_label){"test", "test", cb_csr_pattern_hash(bed->product.csr)};
  for (int i = 0; i < bed->product.plan->launches_count; i++) {
    char name[96];
    cb_source_kernel(bed->product.plan, &bed->label, i, name, sizeof name);
    cb_text_add(&image, "%s ", name);
  }
  if (!image.length) cb_text_add_string(&image, "nothing");
  assert_true(image.length < sizeof bed->image);
  strcpy(bed->image, cb_text_string(&image));
  cb_text_release(&image);
  bed->parts = (struct cb_image_parts){
      .plan = bed->product.plan,
      .label = &bed->label,
      .blob = &bed->product.blob,
      .cubin = bed->image,
      .cubin_bytes = strlen(bed->image),
  };
  reopen(bed);
}

static void prepare(struct bed *bed, int number) { prepare_for(bed, cases[number].matrix, cases[number].options); }

static enum cb_status load(struct cb_operator **op, const struct bed *bed, struct cb_diag *diag) {
  struct cb_image image = {0};
  *op = NULL;
  enum cb_status s = cb_image_from_plan(&image, &bed->parts, diag);
  if (!s) s = cb_operator_load(op, bed->device, &image, bed->apart, diag);
  cb_image_release(&image);
  return s;
}

static void dismantle(struct bed *bed) {
  shut(bed);
  product_release(&bed->product);
}

/* ---- what a launch must be given */

static const void *check_arrays(const struct bed *bed, int r, uint64_t *const pointers) {
  const struct cb_plan *plan = bed->product.plan;
  int at = 0;
  for (int a = 0; a < plan->regions[r].arrays_count; a++) {
    const struct cb_array *array = &plan->regions[r].arrays[a];
    if (array->storage != CB_STORED) continue;
    const size_t bytes = (size_t)array->count * cb_type_size(array->type);
    const uint64_t address = pointers[at++];
    if (!bytes) continue;
    const void *there = fake_bytes(address, bytes);
    assert_non_null(there);
    assert_memory_equal(there, bed->product.blob.bytes + cb_blob_offset(plan, r, a), bytes);
    assert_int_equal(address % cb_type_size(array->type), 0);
  }
  return at ? pointers : NULL;
}

static void check_scalar(const struct bed *bed, const void *parameter, double expected) {
  if (bed->product.plan->sum_type == CB_F32)
    assert_true(*(const float *)parameter == (float)expected);
  else
    assert_true(*(const double *)parameter == expected);
}

static void check_carry(struct bed *bed, void **parameters) {
  const struct cb_plan *plan = bed->product.plan;
  const uint64_t sums = *(uint64_t *)parameters[0], counters = *(uint64_t *)parameters[1];
  const size_t sums_bytes = (size_t)plan->carry_sums * cb_type_size(plan->sum_type);
  assert_non_null(fake_bytes(sums, sums_bytes));
  assert_int_equal(sums % 16, 0);
  assert_int_equal(counters % 4, 0);
  assert_true(counters >= sums + sums_bytes || counters + 4 * (uint64_t)plan->carry_counters <= sums);
  const uint32_t *values = fake_bytes(counters, 4 * (size_t)plan->carry_counters);
  assert_non_null(values);
  for (int64_t i = 0; i < plan->carry_counters; i++) assert_int_equal(values[i], 0);
  bed->carry_sums = sums;
}

static void check_launch(void *user, const struct fake_launch *launch) {
  struct bed *bed = user;
  const struct cb_plan *plan = bed->product.plan;
  const int number = bed->launches++ % plan->launches_count;
  const struct cb_launch *planned = &plan->launches[number];
  void **parameters = launch->parameters;
  char name[96];
  cb_source_kernel(plan, &bed->label, number, name, sizeof name);
  assert_string_equal(launch->kernel, name);
  assert_int_equal(launch->grid[0], planned->blocks);
  assert_int_equal(launch->threads[0], planned->threads);
  assert_int_equal(launch->shared, planned->dynamic_shared);
  assert_ptr_equal(launch->stream, bed->stream);
  for (int i = 0; i < planned->regions && !planned->body; i++)
    if (check_arrays(bed, planned->first_region + i, parameters[0])) parameters++;
  assert_int_equal(*(uint64_t *)parameters[0], bed->x);
  assert_int_equal(*(uint64_t *)parameters[1], bed->y);
  parameters += 2;
  if (plan->form == CB_FORM_AXPBY) {
    check_scalar(bed, parameters[0], bed->alpha);
    check_scalar(bed, parameters[1], bed->beta);
    parameters += 2;
  }
  if (plan->carry_sums) check_carry(bed, parameters);
}

/* One product with arguments that the plan's form takes. */
static enum cb_status multiply(struct bed *bed, const struct cb_operator *op, struct cb_diag *diag) {
  const enum cb_form form = bed->product.plan->form;
  bed->x = 0x1000, bed->y = 0x2000;
  bed->alpha = form == CB_FORM_AXPBY ? 1.1 : 1;
  bed->beta = form == CB_FORM_AXPBY ? -0.3 : form == CB_FORM_ADD;
  fake->hook = check_launch;
  fake->user = bed;
  return cb_operator_multiply(op, bed->alpha, bed->x, bed->beta, bed->y, bed->stream, diag);
}

struct tally {
  int with_carry, several, none, with_arrays;
};

static void check_launches(struct bed *bed, int apart, struct tally *tally) {
  struct cb_diag diag = {0};
  struct cb_operator *op;
  bed->apart = apart;
  assert_ok(load(&op, bed, &diag));
  const struct cb_operator_info info = *cb_operator_info(op);
  assert_int_equal(info.rows, bed->product.csr->rows);
  assert_int_equal(info.cols, bed->product.csr->cols);
  assert_int_equal(info.nnz, bed->product.csr->nnz);
  assert_int_equal(info.form, bed->product.plan->form);
  assert_int_equal(info.stored_bytes, cb_plan_bytes(bed->product.plan));
  assert_int_equal(info.has_carry, bed->product.plan->carry_sums > 0);
  assert_int_equal(info.launches, bed->product.plan->launches_count);
  assert_int_equal(fake->pushed, 0); /* the caller's context is as it was */
  assert_ok(cb_device_enter(bed->device, &diag));
  const long allocations = fake->allocations, waits = fake->waits;
  for (int i = 0; i < 3; i++) assert_ok(multiply(bed, op, &diag));
  assert_int_equal(bed->launches, 3 * info.launches);
  assert_int_equal(fake->allocations, allocations);
  assert_int_equal(fake->waits, waits);
  cb_device_leave(bed->device);
  tally->with_carry += info.has_carry, tally->several += info.launches > 1, tally->none += !info.launches;
  tally->with_arrays += info.stored_bytes > 0;
  cb_operator_free(op);
}

/* These cases, and every recipe, its parts in one launch where they can be. */
static void launches_as_documented(void **state) {
  (void)state;
  const struct cb_recipe *recipe;
  struct tally tally = {0};
  struct bed bed;
  for (int c = 0; c < CASES; c++)
    for (int apart = 0; apart < 2; apart++) {
      prepare(&bed, c);
      check_launches(&bed, apart, &tally);
      dismantle(&bed);
    }
  for (int r = 0; (recipe = cb_recipe_at(r)); r++) {
    char options[SETTINGS];
    snprintf(options, sizeof options, "%.200s fuse=on", settings_of_recipe(recipe));
    prepare_for(&bed, example_of(recipe), options);
    check_launches(&bed, r % 2, &tally);
    dismantle(&bed);
  }
  assert_true(tally.with_carry && tally.several && tally.none && tally.with_arrays); /* they are worth something */
}

static void clones_share_arrays_but_no_scratch(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct bed bed;
  struct cb_operator *op, *clone;
  prepare(&bed, 6);
  assert_true(bed.product.plan->carry_sums > 0);
  assert_ok(load(&op, &bed, &diag));
  const long blocks = fake->blocks, modules = fake->modules;
  assert_ok(cb_operator_clone(&clone, op, &diag));
  assert_int_equal(fake->modules, modules);
  assert_int_equal(fake->blocks, blocks + 1);
  assert_ok(cb_device_enter(bed.device, &diag));
  assert_ok(multiply(&bed, op, &diag));
  const uint64_t sums = bed.carry_sums;
  assert_ok(multiply(&bed, clone, &diag));
  assert_true(bed.carry_sums != sums);
  cb_operator_free(op); /* the clone lives on */
  assert_ok(multiply(&bed, clone, &diag));
  cb_device_leave(bed.device);
  cb_operator_free(clone);
  cb_operator_free(NULL);
  dismantle(&bed);
}

static void the_stream_is_the_callers(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct bed bed;
  struct cb_operator *op;
  struct CUstream_st *stream;
  prepare(&bed, 0);
  assert_ok(load(&op, &bed, &diag));
  assert_ok(cb_device_enter(bed.device, &diag));
  assert_int_equal(bed.driver->call.stream_create(&stream, CB_CU_STREAM_NON_BLOCKING), CB_CU_SUCCESS);
  bed.stream = stream;
  assert_ok(multiply(&bed, op, &diag));
  assert_int_equal(bed.launches, 1);
  bed.driver->call.stream_destroy(stream);
  cb_device_leave(bed.device);
  cb_operator_free(op);
  dismantle(&bed);
}

static void scalars_must_suit_the_form(void **state) {
  (void)state;
  static const struct {
    int number; /* case */
    double alpha, beta;
  } wrong[] = {{0, 2, 0}, {0, 1, 1}, {3, 1, 0}, {3, 2, 1}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    struct cb_diag diag = {0};
    struct bed bed;
    struct cb_operator *op;
    prepare(&bed, wrong[i].number);
    assert_ok(load(&op, &bed, &diag));
    assert_int_equal(cb_operator_multiply(op, wrong[i].alpha, 0, wrong[i].beta, 0, NULL, &diag),
                     CB_ERR_ARGUMENT);
    assert_non_null(strstr(diag.message, "form=axpby"));
    assert_int_equal(fake->launches, 0);
    cb_operator_free(op);
    dismantle(&bed);
  }
}

static void what_does_not_fit_is_refused(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct bed bed;
  struct cb_operator *op;
  prepare(&bed, 0);
  const struct cb_launch kept = bed.product.plan->launches[0];
  bed.product.plan->launches[0].blocks = (int64_t)INT32_MAX + 1;
  assert_int_equal(load(&op, &bed, &diag), CB_ERR_LIMIT);
  assert_null(op);
  bed.product.plan->launches[0] = kept;
  bed.product.plan->launches[0].dynamic_shared = 228 << 10;
  assert_int_equal(load(&op, &bed, &diag), CB_ERR_LIMIT);
  bed.product.plan->launches[0] = kept;
  struct cb_blob cut = bed.product.blob;
  cut.length = cb_blob_arrays_end(bed.product.plan) - 1;
  bed.parts.blob = &cut;
  assert_int_equal(load(&op, &bed, &diag), CB_ERR_FORMAT);
  bed.parts.blob = &bed.product.blob;
  bed.parts.cubin = "another_kernel";
  assert_int_equal(load(&op, &bed, &diag), CB_ERR_DEVICE);
  assert_non_null(strstr(diag.message, "'test_spmv'"));
  bed.parts.cubin = bed.image;
  fake->memory = 100;
  assert_int_equal(load(&op, &bed, &diag), CB_ERR_MEMORY);
  assert_null(op);
  dismantle(&bed);
}

/* Shared memory beyond 48 KiB is asked for when loading, so that the launch is allowed. */
static void large_shared_memory_is_allowed_at_load(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct bed bed;
  struct cb_operator *op;
  prepare(&bed, 0);
  bed.product.plan->launches[0].dynamic_shared = 100 << 10;
  assert_ok(load(&op, &bed, &diag));
  assert_ok(cb_device_enter(bed.device, &diag));
  assert_ok(multiply(&bed, op, &diag));
  cb_device_leave(bed.device);
  cb_operator_free(op);
  dismantle(&bed);
}

/* ---- failures */

static enum cb_status whole_life(struct bed *bed, struct cb_diag *diag) {
  struct cb_operator *op = NULL, *clone = NULL;
  enum cb_status s = load(&op, bed, diag);
  if (!s) s = cb_operator_clone(&clone, op, diag);
  int entered = 0;
  if (!s) entered = !(s = cb_device_enter(bed->device, diag));
  if (!s) s = multiply(bed, op, diag);
  if (!s) s = multiply(bed, clone, diag);
  fake->fail_at = 0;
  cb_memory_fail_at(0, 0);
  if (entered) cb_device_leave(bed->device);
  cb_operator_free(clone);
  cb_operator_free(op);
  return s;
}

static void any_call_may_fail(void **state) {
  (void)state;
  static const int numbers[] = {0, 6, 9, 10};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    struct bed bed;
    int failures = 0, failed = 1;
    prepare(&bed, numbers[i]);
    for (long nth = 1; failed; nth++) {
      struct cb_diag diag = {0};
      shut(&bed);
      reopen(&bed);
      fake->fail_at = fake->calls + nth;
      fake->failure = 700;
      const enum cb_status s = whole_life(&bed, &diag);
      failed = *fake->failed != 0;
      if (!failed) assert_int_equal(s, CB_OK);
      if (!failed || !strncmp(fake->failed, "cuCtxPopCurrent", 15)) continue;
      if (s != CB_ERR_DEVICE) fail_msg("%s failed, and the status is %s", fake->failed, cb_status_name(s));
      assert_non_null(strstr(diag.message, "FAKE_ERROR_700"));
      failures++;
    }
    assert_true(failures >= (numbers[i] == 12 ? 3 : 10));
    dismantle(&bed);
  }
}

static void any_allocation_may_fail(void **state) {
  (void)state;
  struct bed bed;
  enum cb_status s = CB_ERR_MEMORY;
  uint64_t nth = 0;
  prepare(&bed, 6);
  while (s) {
    struct cb_diag diag = {0};
    shut(&bed);
    reopen(&bed);
    cb_memory_fail_at(0, 0);
    cb_memory_fail_at(++nth, 0);
    s = whole_life(&bed, &diag);
    if (s) assert_int_equal(s, CB_ERR_MEMORY);
    assert_true(nth < 100);
  }
  assert_true(nth > 4); /* several allocations did fail */
  dismantle(&bed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(launches_as_documented),
      cmocka_unit_test(clones_share_arrays_but_no_scratch),
      cmocka_unit_test(the_stream_is_the_callers),
      cmocka_unit_test(scalars_must_suit_the_form),
      cmocka_unit_test(what_does_not_fit_is_refused),
      cmocka_unit_test(large_shared_memory_is_allowed_at_load),
      cmocka_unit_test(any_call_may_fail),
      cmocka_unit_test(any_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
