// SPDX-License-Identifier: Apache-2.0
/* The driver and its devices, with a fake libcuda in place of the real one: what is found and asked, what is
 * said when a call fails, and that nothing is left behind when any of them does. */
#include "tests/support.h"

#include "runtime/cuda/driver.h"
#include "tests/fake_driver.h"

static struct fake_control *fake;

static const char *fake_path(void) {
  return getenv("CBGEN_FAKE_CUDA");
}

static int set_up(void **state) {
  (void)state;
  fake = fake_open();
  return fake ? 0 : -1;
}

static void a_device_becomes_a_target(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_driver *driver;
  struct cb_device *device;
  assert_ok(cb_driver_open(&driver, fake_path(), &diag));
  assert_int_equal(driver->version, 13000);
  assert_int_equal(driver->devices, 1);
  assert_ok(cb_device_open(&device, driver, 0, &diag));
  assert_string_equal(device->target.arch, "sm_90");
  assert_string_equal(device->target.model, "Fake GPU");
  assert_int_equal(device->target.multiprocessors, 7);
  assert_int_equal(device->target.l2_bytes, 1 << 20);
  assert_int_equal(device->target.shared_per_block, 227 << 10);
  assert_int_equal(device->target.shared_per_sm, 228 << 10);
  assert_int_equal(device->target.read_gb_per_s, 4560); /* the table's */
  assert_int_equal(device->memory_bytes, fake->memory);
  cb_device_close(device);
  cb_driver_close(driver);
  assert_true(fake_is_clean(fake));
}

/* An architecture without figures of its own takes those of the newest older one, and says so. */
static void an_unlisted_architecture_keeps_its_name(void **state) {
  (void)state;
  static const struct {
    int capability;
    const char *arch, *relative;
  } cases[] = {{86, "sm_86", "sm_86"},   {120, "sm_120", "sm_120"}, {75, "sm_75", "sm_75"},
               {88, "sm_88", "sm_87"},   {91, "sm_91", "sm_90"},    {123, "sm_123", "sm_121"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct cb_diag diag = {0};
    struct cb_driver *driver;
    struct cb_device *device;
    fake->capability = cases[i].capability;
    assert_ok(cb_driver_open(&driver, fake_path(), &diag));
    assert_ok(cb_device_open(&device, driver, 0, &diag));
    assert_string_equal(device->target.arch, cases[i].arch);
    struct cb_target figures;
    assert_ok(cb_target_find(&figures, cases[i].relative, &diag));
    assert_int_equal(device->target.read_gb_per_s, figures.read_gb_per_s);
    assert_int_equal(!*device->relative, !strcmp(cases[i].arch, cases[i].relative));
    if (*device->relative)
      assert_true(strstr(device->relative, cases[i].arch) && strstr(device->relative, figures.arch));
    cb_device_close(device);
    cb_driver_close(driver);
  }
}

static void a_missing_driver_names_the_remedy(void **state) {
  (void)state;
  static const struct {
    const char *path, *part;
  } cases[] = {{"/nonexistent/libcuda.so.1", "/nonexistent/libcuda.so.1"}, {"libm.so.6", "lacks 'cuInit'"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct cb_diag diag = {0};
    struct cb_driver *driver = (struct cb_driver *)1;
    assert_int_equal(cb_driver_open(&driver, cases[i].path, &diag), CB_ERR_MISSING);
    assert_null(driver);
    assert_non_null(strstr(diag.message, cases[i].part));
    assert_non_null(strstr(diag.message, "install NVIDIA's GPU driver"));
  }
}

static void the_environment_names_the_driver(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_driver *driver;
  setenv("CBGEN_LIBCUDA", fake_path(), 1);
  assert_ok(cb_driver_open(&driver, NULL, &diag));
  assert_string_equal(driver->library.path, fake_path());
  cb_driver_close(driver);
  setenv("CBGEN_LIBCUDA", "/nonexistent.so", 1);
  assert_int_equal(cb_driver_open(&driver, NULL, &diag), CB_ERR_MISSING);
  unsetenv("CBGEN_LIBCUDA");
}

static void no_device_is_missing(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_driver *driver;
  fake->devices = 0;
  assert_int_equal(cb_driver_open(&driver, fake_path(), &diag), CB_ERR_MISSING);
  assert_null(driver);
  assert_non_null(strstr(diag.message, "GPU"));
}

static void devices_are_counted_from_zero(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_driver *driver;
  struct cb_device *device;
  assert_ok(cb_driver_open(&driver, fake_path(), &diag));
  static const int wrong[] = {-1, 1, 99};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    device = (struct cb_device *)1;
    assert_int_equal(cb_device_open(&device, driver, wrong[i], &diag), CB_ERR_ARGUMENT);
    assert_null(device);
  }
  cb_driver_close(driver);
}

static void memory_moves_and_runs_out(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_driver *driver;
  struct cb_device *device;
  cb_device_ptr block, other;
  char text[] = "twelve bytes", back[sizeof text] = {0};
  assert_ok(cb_driver_open(&driver, fake_path(), &diag));
  assert_ok(cb_device_open(&device, driver, 0, &diag));
  assert_ok(cb_device_enter(device, &diag));
  assert_ok(cb_device_alloc(device, &block, sizeof text, "text", &diag));
  assert_ok(cb_device_upload(device, block, text, sizeof text, "text", &diag));
  assert_ok(cb_device_download(device, back, block, sizeof text, "text", &diag));
  assert_string_equal(back, text);
  assert_ok(cb_device_fill(device, block, 'x', 6, &diag));
  assert_ok(cb_device_download(device, back, block, sizeof text, "text", &diag));
  assert_string_equal(back, "xxxxxx bytes");
  assert_ok(cb_device_upload(device, block, text, 0, "nothing", &diag));
  assert_int_equal(cb_device_upload(device, block, text, sizeof text + 1, "too much", &diag), CB_ERR_DEVICE);
  assert_non_null(strstr(diag.message, "'too much'"));
  assert_int_equal(fake->misuses, 1);
  fake->misuses = 0;
  assert_int_equal(cb_device_alloc(device, &other, fake->memory, "a giant", &diag), CB_ERR_MEMORY);
  assert_int_equal(other, 0);
  assert_non_null(strstr(diag.message, "'a giant'"));
  assert_ok(cb_device_alloc(device, &other, 0, "nothing", &diag));
  cb_device_free(device, other);
  cb_device_free(device, 0);
  cb_device_free(device, block);
  cb_device_leave(device);
  cb_device_close(device);
  cb_driver_close(driver);
  assert_true(fake_is_clean(fake));
}

/* Two devices' handles share one primary context, which lives until the last is closed. */
static void handles_share_the_context(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_driver *driver;
  struct cb_device *one, *two;
  assert_ok(cb_driver_open(&driver, fake_path(), &diag));
  assert_ok(cb_device_open(&one, driver, 0, &diag));
  assert_ok(cb_device_open(&two, driver, 0, &diag));
  assert_ptr_equal(one->context, two->context);
  cb_device_close(one);
  assert_int_equal(fake->contexts, 1);
  cb_device_close(two);
  cb_driver_close(driver);
  assert_true(fake_is_clean(fake));
}

static enum cb_status open_and_close(struct cb_diag *diag) {
  struct cb_driver *driver = NULL;
  struct cb_device *device = NULL;
  enum cb_status s = cb_driver_open(&driver, fake_path(), diag);
  if (!s) s = cb_device_open(&device, driver, 0, diag);
  fake->fail_at = 0;
  cb_device_close(device);
  cb_driver_close(driver);
  return s;
}

static void any_call_may_fail(void **state) {
  (void)state;
  int failures = 0;
  for (long nth = 1;; nth++) {
    struct cb_diag diag = {0};
    set_up(NULL);
    fake->fail_at = nth;
    fake->failure = 999;
    const enum cb_status s = open_and_close(&diag);
    assert_int_equal(fake->misuses, 0);
    assert_true(fake_is_clean(fake));
    if (!*fake->failed) break;
    if (!strncmp(fake->failed, "cuCtxPopCurrent", 15)) continue; /* leaving has nobody to tell */
    if (s != CB_ERR_DEVICE) fail_msg("%s failed, and the status is %s", fake->failed, cb_status_name(s));
    assert_non_null(strstr(diag.message, "the fake driver's error 999 (FAKE_ERROR_999)"));
    failures++;
  }
  assert_true(failures >= 10);
}

static void any_allocation_may_fail(void **state) {
  (void)state;
  for (uint64_t nth = 1;; nth++) {
    struct cb_diag diag = {0};
    set_up(NULL);
    cb_memory_fail_at(nth, 0);
    const enum cb_status s = open_and_close(&diag);
    const uint64_t made = cb_memory_fail_at(0, 0);
    assert_true(fake_is_clean(fake));
    if (made < nth) break;
    assert_int_equal(s, CB_ERR_MEMORY);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(a_device_becomes_a_target, set_up),
      cmocka_unit_test_setup(an_unlisted_architecture_keeps_its_name, set_up),
      cmocka_unit_test_setup(a_missing_driver_names_the_remedy, set_up),
      cmocka_unit_test_setup(the_environment_names_the_driver, set_up),
      cmocka_unit_test_setup(no_device_is_missing, set_up),
      cmocka_unit_test_setup(devices_are_counted_from_zero, set_up),
      cmocka_unit_test_setup(memory_moves_and_runs_out, set_up),
      cmocka_unit_test_setup(handles_share_the_context, set_up),
      cmocka_unit_test_setup(any_call_may_fail, set_up),
      cmocka_unit_test_setup(any_allocation_may_fail, set_up),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
