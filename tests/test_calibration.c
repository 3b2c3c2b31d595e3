// SPDX-License-Identifier: Apache-2.0
/* Calibrations: where they lie, what is read and what is ignored; and measuring on the fake GPU, which
 * executes the kernels and has a clock that can be foreseen. */
#include "tests/support.h"

#include "base/file.h"
#include "runtime/cuda/calibration.h"
#include "runtime/measure/calibrate.h"
#include "tests/fake_driver.h"

#include <sys/stat.h>
#include <unistd.h>

static struct fake_control *fake;
static char directory[400], file[500];

static int set_up(void **state) {
  (void)state;
  fake = fake_open();
  if (!fake) return -1;
  snprintf(directory, sizeof directory, "%s/calibrations", getenv("CBGEN_TEST_TMP"));
  snprintf(file, sizeof file, "%s/fake-gpu.json", directory);
  remove(file);
  setenv("CBGEN_CALIBRATION", directory, 1);
  return 0;
}

static struct cb_target fake_target(void) {
  struct cb_diag diag = {0};
  struct cb_target target;
  assert_ok(cb_target_find(&target, "sm_90", &diag));
  snprintf(target.model, sizeof target.model, "Fake GPU");
  target.multiprocessors = 7;
  return target;
}

static void put(const char *text) {
  struct cb_diag diag = {0};
  mkdir(directory, 0700);
  assert_ok(cb_file_put(file, text, strlen(text), &diag));
}

/* ---- where */

static void paths_follow_the_environment(void **state) {
  (void)state;
  static const struct {
    const char *own, *shared, *home, *path;
  } cases[] = {
      {"/a", "/b", "/c", "/a/nvidia-h200.json"},
      {NULL, "/b", "/c", "/b/cbgen/nvidia-h200.json"},
      {NULL, "b", "/c", "/c/.config/cbgen/nvidia-h200.json"},
      {NULL, "", "/c", "/c/.config/cbgen/nvidia-h200.json"},
      {NULL, NULL, "/c", "/c/.config/cbgen/nvidia-h200.json"},
      {"", "/b", "/c", NULL},
      {NULL, NULL, "", NULL},
      {NULL, NULL, NULL, NULL},
  };
  static const char *const names[] = {"CBGEN_CALIBRATION", "XDG_CONFIG_HOME", "HOME"};
  char *kept[3];
  for (int i = 0; i < 3; i++) kept[i] = getenv(names[i]) ? strdup(getenv(names[i])) : NULL;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct cb_diag diag = {0};
    char path[CB_CALIBRATION_PATH];
    const char *const values[] = {cases[c].own, cases[c].shared, cases[c].home};
    for (int i = 0; i < 3; i++)
      if (values[i])
        setenv(names[i], values[i], 1);
      else
        unsetenv(names[i]);
    const enum cb_status s = cb_calibration_path(path, "NVIDIA H200", &diag);
    assert_int_equal(s, cases[c].path ? CB_OK : CB_ERR_MISSING);
    if (cases[c].path)
      assert_string_equal(path, cases[c].path);
    else
      assert_non_null(strstr(diag.message, "CBGEN_CALIBRATION"));
  }
  for (int i = 0; i < 3; i++) {
    if (kept[i])
      setenv(names[i], kept[i], 1);
    else
      unsetenv(names[i]);
    free(kept[i]);
  }
}

static void names_are_files_of_the_directory(void **state) {
  (void)state;
  static const char *const cases[][2] = {{"NVIDIA A100-SXM4-80GB", "nvidia-a100-sxm4-80gb.json"},
                                         {"NVIDIA H200 MIG 1g.18gb", "nvidia-h200-mig-1g-18gb.json"},
                                         {"../../etc/passwd", "etc-passwd.json"},
                                         {"  x  ", "x.json"},
                                         {"", ".json"}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct cb_diag diag = {0};
    char path[CB_CALIBRATION_PATH];
    setenv("CBGEN_CALIBRATION", "/d", 1);
    assert_ok(cb_calibration_path(path, cases[c][0], &diag));
    assert_string_equal(path + 3, cases[c][1]);
  }
  char longest[2 * CB_CALIBRATION_PATH], path[CB_CALIBRATION_PATH];
  memset(longest, 'a', sizeof longest - 1);
  longest[sizeof longest - 1] = 0;
  setenv("CBGEN_CALIBRATION", longest, 1);
  assert_int_equal(cb_calibration_path(path, "x", NULL), CB_ERR_LIMIT);
}

/* ---- what is read */

static void figures_come_back(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_target target = fake_target(), read = target;
  char remark[400], path[500];
  int64_t value = 1000;
  for (const struct cb_figure *figure = cb_figure_table; figure->name; figure++, value++)
    cb_figure_set(&target, figure, value);
  snprintf(path, sizeof path, "%s/deeper/still/c.json", directory);
  remove(path);
  assert_ok(cb_calibration_save(&target, path, &diag)); /* makes the directories */
  assert_ok(cb_calibration_save(&target, file, &diag));
  assert_int_equal(cb_calibration_load(&read, remark, sizeof remark), 1);
  assert_memory_equal(&read, &target, sizeof read);
  assert_non_null(strstr(remark, "is in use"));
  assert_int_equal(access(path, R_OK), 0);
}

static void no_file_is_no_remark(void **state) {
  (void)state;
  struct cb_target target = fake_target();
  const struct cb_target before = target;
  static const char *const places[] = {"/nonexistent/place", "", "/dev/null"};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    char remark[400] = "x";
    setenv("CBGEN_CALIBRATION", places[i], 1);
    assert_int_equal(cb_calibration_load(&target, remark, sizeof remark), 0);
    assert_string_equal(remark, "");
    assert_memory_equal(&target, &before, sizeof target);
  }
}

#define HEAD                                                                                                 \
  "\"format\": \"cbgen calibration 1\", \"model\": \"Fake GPU\", \"arch\": \"sm_90\", \"multiprocessors\": " \
  "7, "
#define FIGURES(read, last)                                                                                  \
  "\"read_gb_per_s\": " read                                                                                 \
  ", \"l2_gb_per_s\": 5000, \"sectors_g_per_s\": 100, \"latency_ns\": 300, \"launch_ns\": " last

static void what_is_malformed_is_ignored(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"", "line"},
      {"{", "line 1"},
      {"[]", "'format' is 'missing'"},
      {"3", "line 1"},
      {"{}", "'format' is 'missing'"},
      {"{" HEAD "\"a\": 1}", "'read_gb_per_s' is no whole number"},
      {"{" HEAD FIGURES("1000", "2000") "} x", "line 1"},
      {"{" HEAD FIGURES("1000", "2000") ", \"launch_ns\": 2000}", "line 1"},
      {"{" HEAD FIGURES("\"1000\"", "2000") "}", "'read_gb_per_s' is no whole number"},
      {"{" HEAD FIGURES("1000.5", "2000") "}", "'read_gb_per_s' is no whole number"},
      {"{" HEAD FIGURES("null", "2000") "}", "'read_gb_per_s' is no whole number"},
      {"{" HEAD FIGURES("-1", "2000") "}", "'read_gb_per_s' is -1 GB/s"},
      {"{" HEAD FIGURES("0", "2000") "}", "'read_gb_per_s' is 0 GB/s"},
      {"{" HEAD FIGURES("100001", "2000") "}", "10 to 100000 are plausible"},
      {"{" HEAD FIGURES("99999999999999999999", "2000") "}", "line 1"},
      {"{" HEAD FIGURES("1000", "99") "}", "'launch_ns' is 99 ns"},
      {"{" HEAD FIGURES("1000", "1000001") "}", "'launch_ns' is 1000001 ns"},
      {"{\"format\": \"cbgen calibration 2\"}",
       "'format' is 'cbgen calibration 2', not 'cbgen calibration 1'"},
      {"{\"format\": 1}", "'format' is 'missing'"},
      {"{\"format\": \"cbgen calibration 1\", \"model\": \"NVIDIA H200\"}",
       "'model' is 'NVIDIA H200', not 'Fake GPU'"},
      {"{\"format\": \"cbgen calibration 1\", \"model\": \"Fake GPU\", \"arch\": \"sm_80\"}",
       "'arch' is 'sm_80'"},
      {"{\"format\": \"cbgen calibration 1\", \"model\": \"Fake GPU\", \"arch\": \"sm_90\", "
       "\"multiprocessors\": 8}",
       "'multiprocessors' is not 7"},
  };
  const struct cb_target before = fake_target();
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct cb_target target = before;
    char remark[400] = "";
    put(cases[c][0]);
    assert_int_equal(cb_calibration_load(&target, remark, sizeof remark), 0);
    assert_memory_equal(&target, &before, sizeof target);
    if (!strstr(remark, "is ignored: ") || !strstr(remark, cases[c][1]))
      fail_msg("'%s' leads to '%s', without '%s'", cases[c][0], remark, cases[c][1]);
  }
  struct cb_target target = before;
  char remark[400];
  put("{" HEAD FIGURES("1000", "2000") "}"); /* what the cases are made from is right */
  assert_int_equal(cb_calibration_load(&target, remark, sizeof remark), 1);
  assert_int_equal(target.read_gb_per_s, 1000);
  assert_int_equal(target.launch_ns, 2000);
}

/* Every file that is one byte short, and some with a byte changed, neither crash nor bring an implausible
 * figure. */
static void damage_is_survived(void **state) {
  (void)state;
  static const char whole[] = "{" HEAD FIGURES("1000", "2000") "}";
  char text[sizeof whole];
  uint64_t seed = 1;
  for (size_t i = 0; i < 2 * sizeof whole; i++) {
    struct cb_target target = fake_target();
    char remark[400];
    memcpy(text, whole, sizeof whole);
    if (i < sizeof whole)
      text[i] = 0;
    else
      text[draw(&seed) % (sizeof whole - 1)] ^= (char)(1 << draw(&seed) % 7);
    put(text);
    const int loaded = cb_calibration_load(&target, remark, sizeof remark);
    for (const struct cb_figure *figure = cb_figure_table; figure->name; figure++) {
      const int64_t value = cb_figure_get(&target, figure);
      assert_true(value >= figure->least && value <= figure->most);
    }
    if (i < sizeof whole - 2) assert_int_equal(loaded, 0);
    assert_true(*remark);
  }
}

static void odd_files_are_ignored(void **state) {
  (void)state;
  struct cb_target target = fake_target();
  char remark[400], *large = malloc(1 << 17);
  mkdir(directory, 0700);
  mkdir(file, 0700);
  assert_int_equal(cb_calibration_load(&target, remark, sizeof remark), 0);
  assert_non_null(strstr(remark, "no regular file"));
  rmdir(file);
  assert_int_equal(mkfifo(file, 0600), 0);
  assert_int_equal(cb_calibration_load(&target, remark, sizeof remark),
                   0); /* and does not wait for a writer */
  assert_non_null(strstr(remark, "no regular file"));
  remove(file);
  assert_int_equal(symlink("fake-gpu.json", file), 0);
  assert_int_equal(cb_calibration_load(&target, remark, sizeof remark), 0);
  assert_non_null(strstr(remark, "is ignored: "));
  remove(file);
  memset(large, ' ', (1 << 17) - 1);
  large[(1 << 17) - 1] = 0;
  put(large);
  free(large);
  assert_int_equal(cb_calibration_load(&target, remark, sizeof remark), 0);
  assert_non_null(strstr(remark, "no regular file of at most"));
}

static void implausible_figures_are_not_written(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_target target = fake_target();
  target.latency_ns = 0;
  assert_int_equal(cb_calibration_save(&target, file, &diag), CB_ERR_DEVICE);
  assert_non_null(strstr(diag.message, "'latency_ns' is 0 ns; 20 to 20000 are plausible"));
  assert_int_equal(access(file, F_OK), -1);
  target.latency_ns = 300;
  assert_int_equal(cb_calibration_save(&target, "/proc/none/c.json", &diag), CB_ERR_IO);
}

static void figures_of_the_table_are_plausible(void **state) {
  (void)state;
  for (const struct cb_architecture *row = cb_architecture_table; *row->target.arch; row++)
    for (const struct cb_figure *figure = cb_figure_table; figure->name; figure++) {
      const int64_t value = cb_figure_get(&row->target, figure);
      assert_true(row->refusal || (value >= figure->least && value <= figure->most));
    }
}

/* ---- on the fake GPU */

struct bed {
  struct cb_driver *driver;
  struct cb_device *device;
  struct cb_nvrtc *nvrtc;
};

static struct bed open_bed(void) {
  struct cb_diag diag = {0};
  struct bed bed;
  const char *path = getenv("CBGEN_FAKE_CUDA");
  assert_ok(cb_driver_open(&bed.driver, path, &diag));
  assert_ok(cb_nvrtc_open(&bed.nvrtc, path, &diag));
  assert_ok(cb_device_open(&bed.device, bed.driver, 0, &diag));
  return bed;
}

static void close_bed(struct bed *bed) {
  cb_device_close(bed->device);
  cb_nvrtc_close(bed->nvrtc);
  cb_driver_close(bed->driver);
}

static void devices_have_their_models_figures(void **state) {
  (void)state;
  put("{" HEAD FIGURES("1000", "2000") "}");
  struct bed bed = open_bed();
  assert_int_equal(bed.device->target.read_gb_per_s, 1000);
  assert_int_equal(bed.device->target.launch_ns, 2000);
  assert_int_equal(bed.device->shipped.read_gb_per_s, fake_target().read_gb_per_s);
  assert_non_null(strstr(bed.device->remark, "is in use"));
  close_bed(&bed);
  put("{" HEAD FIGURES("0", "2000") "}");
  bed = open_bed();
  assert_memory_equal(&bed.device->target, &bed.device->shipped, sizeof bed.device->target);
  assert_non_null(strstr(bed.device->remark, "is ignored"));
  close_bed(&bed);
  assert_true(fake_is_clean(fake));
}

enum { MEMORY = 4 << 20 }; /* 256 KiB are read, 16 tiles */

/* The fake's clock: 5 µs for a launch and scalar_ns for each step, 0.1 µs between two events. */
static void the_clock_decides(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_target measured;
  fake->memory = MEMORY;
  fake->scalar_ns = 100;
  struct bed bed = open_bed();
  assert_ok(cb_calibrate(&measured, bed.device, bed.nvrtc, 1, &diag));
  assert_int_equal(measured.latency_ns, 100);
  assert_int_equal(measured.launch_ns, 5001);
  assert_int_equal(measured.l2_gb_per_s, 9175);    /* 56 thread blocks, 16 KiB, 100 ns */
  assert_int_equal(measured.sectors_g_per_s, 573); /* 56 thread blocks, 1024 gathers, 100 ns */
  assert_in_range(measured.read_gb_per_s, 48, 52); /* 256 KiB in 5.1 µs and 0.01 */
  assert_string_equal(measured.model, "Fake GPU");
  assert_int_equal(measured.multiprocessors, 7);
  assert_true(fake->executed > 50);
  close_bed(&bed);
  assert_string_equal(fake->misuse, "");
  assert_true(fake_is_clean(fake));
}

static void older_gpus_are_launched_plainly(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_target measured;
  fake->memory = MEMORY;
  fake->scalar_ns = 100;
  fake->capability = 80; /* the fake knows no overlap there */
  struct bed bed = open_bed();
  assert_ok(cb_calibrate(&measured, bed.device, bed.nvrtc, 1, &diag));
  assert_int_equal(measured.latency_ns, 100);
  close_bed(&bed);
  assert_true(fake_is_clean(fake));
}

static void a_gpu_may_be_too_small(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_target measured;
  fake->memory = 1 << 20;
  struct bed bed = open_bed();
  assert_int_equal(cb_calibrate(&measured, bed.device, bed.nvrtc, 1, &diag), CB_ERR_UNSUPPORTED);
  close_bed(&bed);
  assert_true(fake_is_clean(fake));
}

/* The first call of each function, and the allocations. */
static void any_call_may_fail(void **state) {
  char seen[64][64];
  int count = 0;
  for (long nth = 1, calls = 2; nth < calls; nth += count < 30 && nth < 80 ? 1 : 211) {
    struct cb_diag diag = {0};
    struct cb_target measured;
    assert_int_equal(set_up(state), 0);
    fake->memory = MEMORY;
    fake->scalar_ns = 100;
    struct bed bed = open_bed();
    const long before = fake->calls;
    fake->fail_at = before + nth;
    fake->failure = 999;
    const enum cb_status s = cb_calibrate(&measured, bed.device, bed.nvrtc, 1, &diag);
    if (!*fake->failed)
      calls = fake->calls - before;
    else
      calls = nth + 2 > calls ? nth + 2 : calls;
    fake->fail_at = 0;
    close_bed(&bed);
    assert_string_equal(fake->misuse, "");
    assert_true(fake_is_clean(fake));
    if (!*fake->failed) break;
    int known = 0;
    for (int i = 0; i < count; i++) known |= !strcmp(seen[i], fake->failed);
    if (!known) snprintf(seen[count++], sizeof seen[0], "%s", fake->failed);
    const int silent = strstr(fake->failed, "Destroy") || strstr(fake->failed, "Pop") ||
                       strstr(fake->failed, "Free") || strstr(fake->failed, "Unload");
    if (!silent && !s) fail_msg("%s failed, and nobody says so", fake->failed);
    if (!silent) assert_true(*diag.message);
  }
  assert_true(count >= 12);
}

static void any_allocation_may_fail(void **state) {
  for (uint64_t nth = 1;; nth++) {
    struct cb_diag diag = {0};
    struct cb_target measured;
    assert_int_equal(set_up(state), 0);
    fake->memory = MEMORY;
    struct bed bed = open_bed();
    cb_memory_fail_at(nth, 0);
    const enum cb_status s = cb_calibrate(&measured, bed.device, bed.nvrtc, 1, &diag);
    const uint64_t made = cb_memory_fail_at(0, 0);
    close_bed(&bed);
    assert_true(fake_is_clean(fake));
    if (made < nth) break;
    assert_int_equal(s, CB_ERR_MEMORY);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(paths_follow_the_environment, set_up),
      cmocka_unit_test_setup(names_are_files_of_the_directory, set_up),
      cmocka_unit_test_setup(figures_come_back, set_up),
      cmocka_unit_test_setup(no_file_is_no_remark, set_up),
      cmocka_unit_test_setup(what_is_malformed_is_ignored, set_up),
      cmocka_unit_test_setup(damage_is_survived, set_up),
      cmocka_unit_test_setup(odd_files_are_ignored, set_up),
      cmocka_unit_test_setup(implausible_figures_are_not_written, set_up),
      cmocka_unit_test_setup(figures_of_the_table_are_plausible, set_up),
      cmocka_unit_test_setup(devices_have_their_models_figures, set_up),
      cmocka_unit_test_setup(the_clock_decides, set_up),
      cmocka_unit_test_setup(older_gpus_are_launched_plainly, set_up),
      cmocka_unit_test_setup(a_gpu_may_be_too_small, set_up),
      cmocka_unit_test_setup(any_call_may_fail, set_up),
      cmocka_unit_test_setup(any_allocation_may_fail, set_up),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
