// SPDX-License-Identifier: Apache-2.0
/* Matrices of a million entries through cbgen_compile on the fake GPU: their values are moved into place on the device
 * wherever they come from, or on the host where the device has no room or no kernels for it. */
#include "tests/api_support.h"

#include "runtime/driver.h"

static const char shape[] = "band,n=34000,half=300,per_row=32";

struct heard {
  int on_host;
  long fail_after; /* calls behind a hit; 0: none fails */
};
static void hear(void *user, const char *line) {
  struct heard *heard = user;
  heard->on_host |= strstr(line, "values are packed on the host") != NULL;
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

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fake, check_fake)
  const struct CMUnitTest tests[] = {
      TEST(values_from_the_host_are_packed_on_the_device),
      TEST(without_room_they_are_packed_on_the_host),
      TEST(whatever_the_device_refuses_they_are_packed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
