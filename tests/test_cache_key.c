// SPDX-License-Identifier: Apache-2.0
/* Keys of the cache: what they depend on and what not, and how an entry is found by what a person types. */
#include "tests/cache_support.h"

#include "analysis/layout.h"
#include "base/fingerprint.h"

/* ---- names of entries */

static void test_find(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_cache *cache = open_cache(fresh("find"), 0);
  const struct cb_hash one = {0x0123456789abcdefu, 0x0011223344556677u},
                       two = {0x0123456789abcdefu, 0xff11223344556677u}, three = {0x9999999999999999u, 1};
  struct cb_hash key;
  put(cache, one, 0), put(cache, two, 0), put(cache, three, 0);
  static const struct {
    const char *text;
    enum cb_status status;
    int which;
  } rows[] = {
      {"9", CB_OK, 3},
      {"99999999999999990000000000000001", CB_OK, 3},
      {"0123456789abcdef0", CB_OK, 1},
      {"0123456789ABCDEFf", CB_OK, 2},
      {"cbgen_9999", CB_OK, 3},
      {"cbgen_9999999999999999_spmv_1", CB_OK, 3},
      {"cbgen_9999999999999999(double const*, double*)", CB_OK, 3},
      {"cbgen_0123456789abcdefff", CB_OK, 2},
      {"0", CB_ERR_IO, 0},
      {"0123456789abcdef", CB_ERR_IO, 0},
      {"8", CB_ERR_IO, 0},
      {"99999999999999990000000000000002", CB_ERR_IO, 0},
      {"", CB_ERR_ARGUMENT, 0},
      {"xyz", CB_ERR_ARGUMENT, 0},
      {"99x", CB_ERR_ARGUMENT, 0},
      {"cbgen_", CB_ERR_ARGUMENT, 0},
      {"cbgen_spmv", CB_ERR_ARGUMENT, 0},
      {"cbgen_99x", CB_ERR_ARGUMENT, 0},
      {"999999999999999900000000000000012", CB_ERR_ARGUMENT, 0},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const struct cb_hash *keys[] = {NULL, &one, &two, &three};
    const enum cb_status s = cb_cache_find(cache, rows[i].text, &key, &diag);
    if (s != rows[i].status) fail_msg("'%s': %s", rows[i].text, cb_status_name(s));
    if (!s) assert_memory_equal(&key, keys[rows[i].which], sizeof key);
  }
  cb_cache_close(cache);
}

/* ---- keys */

static int differ(struct cb_hash a, struct cb_hash b) {
  return a.high != b.high || a.low != b.low;
}

static void test_key_is_the_same_for_the_same(void **state) {
  (void)state;
  struct cb_options options, same_options;
  struct cb_target target = {0};
  struct cb_diag diag = {0};
  char recipe[] = "auto";
  cb_options_default(&options);
  cb_options_default(&same_options);
  options.recipe = "auto";
  same_options.recipe = recipe; /* text counts by its characters */
  assert_ok(cb_target_find(&target, "sm_90", &diag));
  const struct cb_hash values = key_of(9), other_values = key_of(10);
  const struct cb_cache_subject subject = {"operator", &options, &target, 3, 4, 5, key_of(8), NULL, 13, 0, 0, {{0}}};
  struct cb_cache_subject other = subject;
  other.options = &same_options;
  const struct cb_hash key = cb_cache_key(&subject);
  assert_false(differ(key, cb_cache_key(&other)));
  setenv("CBGEN_CACHE_DIR", "/elsewhere", 1);
  assert_false(differ(key, cb_cache_key(&subject)));
#define COUNTS(change)                                                                                       \
  do {                                                                                                       \
    other = subject;                                                                                         \
    change;                                                                                                  \
    if (!differ(key, cb_cache_key(&other))) fail_msg("'%s' does not count", #change);                        \
  } while (0)
  COUNTS(other.kind = "text");
  COUNTS(other.rows++);
  COUNTS(other.cols++);
  COUNTS(other.nnz++);
  COUNTS(other.pattern.low++);
  COUNTS(other.pattern.high++);
  COUNTS(other.values = &values);
  COUNTS(other.nvrtc_major--);
  COUNTS(other.nvrtc_minor++);
#undef COUNTS
  other = subject;
  other.values = &values;
  const struct cb_hash baked = cb_cache_key(&other);
  other.values = &other_values;
  assert_true(differ(baked, cb_cache_key(&other)));
}

static void test_every_option_counts(void **state) {
  (void)state;
  struct cb_options options;
  struct cb_target target = {0};
  struct cb_diag diag = {0};
  const struct cb_option *option;
  size_t count = 0;
  cb_options_default(&options);
  assert_ok(cb_target_find(&target, "sm_90", &diag));
  const struct cb_cache_subject subject = {"operator", &options, &target, 3, 4, 5, key_of(8), NULL, 13, 0, 0, {{0}}};
  const struct cb_hash key = cb_cache_key(&subject);
  for (int i = 0; (option = cb_option_at(i)); i++, count++) {
    const struct cb_options before = options;
    for (int bit = 0; bit < (option->is_text ? 1 : 63); bit += 9) {
      if (option->is_text)
        options.recipe = "another";
      else
        cb_option_set(&options, i, cb_option_value(&options, i) ^ INT64_C(1) << bit);
      if (!differ(key, cb_cache_key(&subject))) fail_msg("option '%s' does not count", option->name);
      options = before;
    }
  }
  const struct cb_options before = options;
  options.epilogue = "out r; r = ax;"; /* a text beside the table */
  assert_true(differ(key, cb_cache_key(&subject)));
  options = before;
  size_t fields = sizeof options - sizeof options.settings - sizeof options.epilogue; /* no other without a row */
  for (int i = 0; cb_layout_table[i]; i++) fields += 8 * (size_t)cb_layout_table[i]->options_count;
  assert_int_equal(count * 8, fields);
  assert_false(differ(key, cb_cache_key(&subject)));
}

/* Every byte of the description: strings filled to the end, so that only their NULs and padding do not count. */
static void test_every_field_of_the_target_counts(void **state) {
  (void)state;
  struct cb_options options;
  struct cb_target target;
  size_t idle = 0;
  cb_options_default(&options);
  memset(&target, 0, sizeof target);
  memset(target.arch, 'a', sizeof target.arch - 1);
  memset(target.model, 'm', sizeof target.model - 1);
  const struct cb_cache_subject subject = {"operator", &options, &target, 3, 4, 5, key_of(8), NULL, 13, 0, 0, {{0}}};
  const struct cb_hash key = cb_cache_key(&subject);
  for (size_t i = 0; i < sizeof target; i++) {
    const int last =
        i == sizeof target.arch - 1 || i == offsetof(struct cb_target, model) + sizeof target.model - 1;
    if (last) continue;
    ((char *)&target)[i] ^= 1;
    idle += !differ(key, cb_cache_key(&subject));
    ((char *)&target)[i] ^= 1;
  }
  assert_true(idle < sizeof(int64_t)); /* padding before the 64-bit members: less than a field's size */
}

static void test_fingerprint(void **state) {
  (void)state;
  assert_int_equal(strlen(cb_build_fingerprint), 64);
  assert_int_equal(strspn(cb_build_fingerprint, "0123456789abcdef"), 64);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_find),
      cmocka_unit_test(test_key_is_the_same_for_the_same),
      cmocka_unit_test(test_every_option_counts),
      cmocka_unit_test(test_every_field_of_the_target_counts),
      cmocka_unit_test(test_fingerprint),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
