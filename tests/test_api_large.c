// SPDX-License-Identifier: Apache-2.0
/* Matrices of a million entries through cbgen_compile on the fake GPU: their values are moved into place on the device
 * wherever they come from, or on the host where the device has no room or no kernels for it; and what the cache keeps
 * of them is checked on its way to the device, so that a damaged entry is found before a kernel works by it. */
#include "tests/api_support.h"

#include "runtime/cuda/driver.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

static const char shape[] = "band,n=34000,half=300,per_row=32";

struct heard {
  int on_host;
  long fail_after; /* calls behind a hit; 0: none fails */
  int deferred, useless;
};
static void hear(void *user, const char *line) {
  struct heard *heard = user;
  heard->on_host |= strstr(line, "values are packed on the host") != NULL;
  heard->deferred += strstr(line, "checked on their way") != NULL;
  heard->useless += strstr(line, "of no use") != NULL;
  if (heard->fail_after && strstr(line, "cache: hit")) {
    fake->failure = CB_CU_OUT_OF_MEMORY;
    fake->fail_at = fake->calls + heard->fail_after;
  }
}

static void count_packing(void *user, const struct fake_launch *launch) {
  *(int *)user += strstr(launch->kernel, "cbgen_pack_") != NULL;
}

/* Compiles, multiplies, and says how many kernels packed values. */
static int packings(const struct sample *sample, const char *directory, struct heard *heard) {
  cbgen_context *context;
  cbgen_operator *op = NULL;
  int launched = 0;
  fake->hook = count_packing;
  fake->user = &launched;
  assert_int_equal(cbgen_context_create(&context), CBGEN_OK);
  must(context, cbgen_set(context, "recipe", "sell"));
  must(context, cbgen_set(context, "pack", "host")); /* but the values */
  must(context, cbgen_set(context, "cache", directory));
  must(context, cbgen_set_log(context, hear, heard));
  must(context, cbgen_compile(context, &sample->view, NULL, &op));
  fake->fail_at = 0;
  check_product(op, &sample->csr);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  fake->hook = NULL;
  return launched;
}

static void values_from_the_host_are_packed_on_the_device(void **state) {
  (void)state;
  char directory[] = "/tmp/cbgen-large-XXXXXX", command[64];
  struct heard heard = {0};
  struct sample here = sample_of(shape, (struct form){0}),
                shuffled = sample_of(shape, (struct form){.value_type = CBGEN_F32, .shuffled = 1, .base = 1}),
                there = sample_of(shape, (struct form){.on_device = 1});
  assert_non_null(mkdtemp(directory));
  assert_true(here.entries >= 1 << 20);
  for (int i = 0; i < 2; i++) { /* a miss, and a hit */
    assert_int_equal(packings(&here, directory, &heard), 1);
    assert_int_equal(packings(&shuffled, directory, &heard), 1);
    assert_int_equal(packings(&there, directory, &heard), 1);
  }
  assert_int_equal(packings(&here, "", &heard), 1);
  assert_false(heard.on_host);
  snprintf(command, sizeof command, "rm -r %s", directory);
  assert_int_equal(system(command), 0);
  sample_release(&here);
  sample_release(&shuffled);
  sample_release(&there);
}

static void without_room_they_are_packed_on_the_host(void **state) {
  (void)state;
  struct heard heard = {0};
  struct sample sample = sample_of(shape, (struct form){0});
  fake->memory = 20 << 20; /* arrays and vectors fit, the values beside them do not */
  assert_int_equal(packings(&sample, "", &heard), 0);
  fake->memory = (size_t)1 << 30;
  assert_int_equal(packings(&sample, "", &heard), 1);
  sample_release(&sample);
}

/* What is missing for the device is no failure: the host does it. */
static void whatever_the_device_refuses_they_are_packed(void **state) {
  (void)state;
  char directory[] = "/tmp/cbgen-large-XXXXXX", command[64];
  struct heard heard = {0};
  struct sample sample = sample_of(shape, (struct form){0});
  int counts[2] = {0};
  assert_non_null(mkdtemp(directory));
  assert_int_equal(packings(&sample, directory, &heard), 1);
  for (heard.fail_after = 1; heard.fail_after < 8; heard.fail_after++) counts[packings(&sample, directory, &heard)]++;
  assert_true(counts[0] > 0 && counts[1] > 0);
  snprintf(command, sizeof command, "rm -r %s", directory);
  assert_int_equal(system(command), 0);
  sample_release(&sample);
}

/* A byte of the longest file in the directory becomes another: of its second half, where the arrays and the map are. */
static void damage(const char *directory) {
  char path[400] = "", name[400];
  off_t longest = 0;
  unsigned char byte;
  DIR *files = opendir(directory);
  assert_non_null(files);
  for (struct dirent *file; (file = readdir(files));) {
    snprintf(name, sizeof name, "%.60s/%.300s", directory, file->d_name);
    const int fd = open(name, O_RDONLY);
    const off_t length = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    if (fd >= 0) close(fd);
    if (file->d_name[0] == '.' || length <= longest) continue;
    longest = length;
    memcpy(path, name, sizeof path);
  }
  closedir(files);
  const int fd = open(path, O_RDWR);
  assert_true(fd >= 0 && longest > 2 << 20);
  assert_int_equal(pread(fd, &byte, 1, longest / 2), 1);
  byte ^= 64;
  assert_int_equal(pwrite(fd, &byte, 1, longest / 2), 1);
  close(fd);
}

static cbgen_cache_result compile_and_check(cbgen_context *context, const struct sample *sample, cbgen_values values) {
  const cbgen_request request = {.struct_size = sizeof request, .values = values};
  cbgen_operator *op;
  cbgen_info info = {.struct_size = sizeof info};
  must(context, cbgen_compile(context, &sample->view, &request, &op));
  assert_int_equal(cbgen_operator_info(op, &info), CBGEN_OK);
  check_product(op, &sample->csr);
  cbgen_operator_free(op);
  return info.cache;
}

static void entries_are_checked_on_their_way(void **state) {
  (void)state;
  for (int number = 0; number < 4; number++) {
    const cbgen_values values = number < 2    ? CBGEN_VALUES_STORED
                                : number == 2 ? CBGEN_VALUES_FIXED
                                              : CBGEN_VALUES_MUTABLE;
    char directory[] = "/tmp/cbgen-large-XXXXXX", command[64];
    struct heard heard = {0};
    cbgen_context *context;
    struct sample sample = sample_of(shape, (struct form){.on_device = number == 1}),
                  other = sample_of(shape, (struct form){.shuffled = 1});
    assert_non_null(mkdtemp(directory));
    assert_int_equal(cbgen_context_create(&context), CBGEN_OK);
    must(context, cbgen_set(context, "recipe", "sell"));
    must(context, cbgen_set(context, "pack", "host"));
    must(context, cbgen_set_log(context, hear, &heard));
    must(context, cbgen_set(context, "cache", ""));
    /* long enough for pinned buffers */
    assert_int_equal(compile_and_check(context, &other, CBGEN_VALUES_STORED), CBGEN_CACHE_OFF);
    must(context, cbgen_set(context, "cache", directory));
    assert_int_equal(compile_and_check(context, &sample, values), CBGEN_CACHE_MISS);
    assert_int_equal(compile_and_check(context, &sample, values), CBGEN_CACHE_HIT);
    assert_true(heard.deferred == 1 && heard.useless == 0);
    damage(directory);
    assert_int_equal(compile_and_check(context, &sample, values), CBGEN_CACHE_MISS);
    assert_true(heard.deferred == 2 && heard.useless == 1);
    assert_int_equal(compile_and_check(context, &sample, values), CBGEN_CACHE_HIT);
    assert_true(heard.deferred == 3 && heard.useless == 1);
    sample_release(&other);
    cbgen_context_destroy(context);
    snprintf(command, sizeof command, "rm -r %s", directory);
    assert_int_equal(system(command), 0);
    sample_release(&sample);
  }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fake, check_fake)
  const struct CMUnitTest tests[] = {
      TEST(values_from_the_host_are_packed_on_the_device),
      TEST(without_room_they_are_packed_on_the_host),
      TEST(whatever_the_device_refuses_they_are_packed),
      TEST(entries_are_checked_on_their_way),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
