// SPDX-License-Identifier: Apache-2.0
/* The cache below the run-time interface: a hit is what the miss was, whatever is kept; what should miss
 * does; an entry that is of no use costs time only; and so does every file operation that fails. */
#include "tests/api_support.h"
#include "tests/recipes.h"

#include "runtime/api/api.h"
#include "runtime/cache/calls.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *folder(void) {
  static char path[512];
  const char *scratch = getenv("CBGEN_TEST_TMP");
  assert_non_null(scratch);
  snprintf(path, sizeof path, "%s/cache", scratch);
  return path;
}

static int open_cache(void **state) {
  char command[600];
  snprintf(command, sizeof command, "rm -rf '%s'", folder());
  return system(command) || open_fake(state) || setenv("CBGEN_CACHE_DIR", folder(), 1);
}

static cbgen_cache_result result_of(const cbgen_operator *op) {
  cbgen_info info = {.struct_size = sizeof info};
  assert_int_equal(cbgen_operator_info(op, &info), CBGEN_OK);
  return info.cache;
}

/* The y bits of a product with fixed vectors. */
static void *result_bits(cbgen_operator *op, size_t *bytes) {
  struct vectors vectors = vectors_for(op, 0);
  const cbgen_product product = product_with(&vectors, 1.5, 0, NULL);
  *bytes = (size_t)vectors.rows * cb_type_size(vectors.type);
  void *bits = calloc(*bytes + 1, 1);
  must_operator(op, cbgen_multiply(op, &product));
  if (*bytes) assert_true(app_take(bits, vectors.y_there, *bytes));
  vectors_release(&vectors);
  return bits;
}

static void assert_same(cbgen_operator *a, cbgen_operator *b) {
  size_t bytes[2];
  void *bits[2] = {result_bits(a, &bytes[0]), result_bits(b, &bytes[1])};
  assert_int_equal(bytes[0], bytes[1]);
  assert_memory_equal(bits[0], bits[1], bytes[0]);
  free(bits[0]);
  free(bits[1]);
  assert_string_equal(cbgen_operator_source(a, NULL), cbgen_operator_source(b, NULL));
  assert_string_equal(cbgen_operator_plan(a), cbgen_operator_plan(b));
  assert_string_equal(cbgen_operator_plan_json(a), cbgen_operator_plan_json(b));
  assert_string_equal(cbgen_operator_key(a), cbgen_operator_key(b));
}

static cbgen_operator *compile_in(cbgen_context *context, const struct sample *sample, cbgen_values values,
                                  int turned, cbgen_cache_result expected) {
  const cbgen_request request = {.struct_size = sizeof request, .values = values, .transpose = turned,
                                 .specialise = CBGEN_SPECIALISE_NOW};
  cbgen_operator *op;
  must(context, cbgen_compile(context, &sample->view, &request, &op));
  if (result_of(op) != expected) fail_msg("cache %d instead of %d", (int)result_of(op), (int)expected);
  return op;
}

static void renew(cbgen_operator *op, struct sample *sample, int turned) {
  const cbgen_update update = {sizeof update, sample->given, sample->form.value_type, CBGEN_HOST, NULL};
  must_operator(op, cbgen_update_values(op, &update));
  struct cb_csr csr = turned ? transposed(&sample->csr) : sample->csr;
  check_product(op, &csr);
  if (turned) cb_csr_release(&csr);
}

/* Each form with the recipes in turn; `matrix` NULL: the recipe's example. */
static const struct {
  const char *matrix;
  struct form form;
  int turned;
} cases[] = {
    {NULL, {0}, 0},
    {NULL, {.shuffled = 1, .duplicates = 1, .base = 1}, 0},
    {NULL, {.duplicates = 1, .value_type = CBGEN_F32}, 1},
    {NULL, {.on_device = 1, .col_bits = 64}, 0},
    {NULL, {.on_device = 1, .shuffled = 1}, 1},
    {"random,rows=30,cols=50,density=0.2", {.no_values = 1, .on_device = 1}, 0},
    {NULL, {0}, 0},
    {"empty,rows=9,cols=4", {0}, 0},
    {"empty,rows=0,cols=4", {0}, 0},
};
enum { CASES = sizeof cases / sizeof *cases };

static cbgen_context *context_for(const struct cb_recipe *recipe) {
  cbgen_context *context = new_context("");
  if (recipe) set_all(context, settings_of_recipe(recipe));
  return context;
}

/* `number`: stored, mutable or fixed values; the data kept or not. */
static void hits_what_it_missed(void **state, int i, const struct cb_recipe *recipe, int number) {
  static const char *const keeps[] = {"auto", "never", "always"};
  const cbgen_values values = (cbgen_values)(number % 3);
  const int turned = cases[i].turned;
  open_cache(state);
  struct sample sample = sample_of(recipe ? example_of(recipe) : cases[i].matrix, cases[i].form);
  cbgen_context *context = context_for(recipe), *other = context_for(recipe);
  must(context, cbgen_set(context, "cache-data", keeps[number / 3]));
  cbgen_operator *miss = compile_in(context, &sample, values, turned, CBGEN_CACHE_MISS);
  const long compilations = fake->compilations;
  cbgen_operator *hit = compile_in(context, &sample, values, turned, CBGEN_CACHE_HIT);
  cbgen_operator *another = compile_in(other, &sample, values, turned, CBGEN_CACHE_HIT);
  assert_int_equal(fake->compilations, compilations);
  struct cb_csr csr = turned ? transposed(&sample.csr) : sample.csr;
  check_product(hit, &csr);
  if (turned) cb_csr_release(&csr);
  assert_same(miss, hit);
  assert_same(miss, another);
  if (values == CBGEN_VALUES_MUTABLE && !cases[i].form.no_values) {
    set_values(&sample, 5);
    sum_up(&sample);
    renew(hit, &sample, turned);
    renew(another, &sample, turned);
  }
  cbgen_operator_free(miss);
  cbgen_operator_free(hit);
  cbgen_operator_free(another);
  cbgen_context_destroy(context);
  cbgen_context_destroy(other);
  sample_release(&sample);
}

/* In one context and in another. A matrix of its own goes with the search; else every recipe meets a third of them,
 * and the forms come in turn. */
static void a_hit_is_what_the_miss_was(void **state) {
  (void)state;
  const struct cb_recipe *recipe;
  for (int i = 0; i < CASES; i++)
    for (int number = 0; number < 9 && cases[i].matrix; number++) hits_what_it_missed(state, i, NULL, number);
  for (int r = 0, i = 0; (recipe = cb_recipe_at(r)); r++)
    for (int number = r % 3; number < 9; number += 3, i++) {
      while (cases[i % CASES].matrix) i++;
      hits_what_it_missed(state, i % CASES, recipe, (number + r / 3) % 9);
    }
}

/* Other values of the same pattern hit; so does the matrix in other widths, from the device, and with mutable
 * values. */
static void what_hits(void **state) {
  (void)state;
  static const struct form forms[] = {
      {0},         {.row_bits = 64}, {.col_bits = 64, .base = 1},
      {.base = 1}, {.on_device = 1}, {.on_device = 1, .col_bits = 64, .base = 1}};
  cbgen_context *context = new_context("");
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    struct sample sample =
        sample_of_matrix(matrix_of("random,rows=90,cols=70,density=0.1"), forms[i], 100 + i);
    cbgen_operator *op = compile_in(context, &sample, i % 2 ? CBGEN_VALUES_MUTABLE : CBGEN_VALUES_STORED, 0,
                                    i ? CBGEN_CACHE_HIT : CBGEN_CACHE_MISS);
    check_product(op, &sample.csr);
    cbgen_operator_free(op);
    sample_release(&sample);
  }
  cbgen_context_destroy(context);
}

static void what_misses(void **state) {
  (void)state;
  static const char *const options[][2] = {{"type", "f32"},     {"form", "ax"},  {"recipe", "cb"},
                                           {"bake-limit", "9"}, {"tune", "off"}, {"th1", "20"}};
  struct sample sample = sample_of("random,rows=90,cols=70,density=0.1", (struct form){0});
  for (int i = -1; i < 6; i++) {
    cbgen_context *context = new_context("");
    if (i >= 0) must(context, cbgen_set(context, options[i][0], options[i][1]));
    cbgen_operator_free(compile_in(context, &sample, CBGEN_VALUES_STORED, 0, CBGEN_CACHE_MISS));
    cbgen_operator_free(compile_in(context, &sample, CBGEN_VALUES_STORED, 0, CBGEN_CACHE_HIT));
    cbgen_context_destroy(context);
  }
  cbgen_context *context = new_context("");
  cbgen_operator_free(compile_in(context, &sample, CBGEN_VALUES_STORED, 1, CBGEN_CACHE_MISS));
  cbgen_operator_free(compile_in(context, &sample, CBGEN_VALUES_FIXED, 0, CBGEN_CACHE_MISS));
  cbgen_operator_free(compile_in(context, &sample, CBGEN_VALUES_FIXED, 0, CBGEN_CACHE_HIT));
  set_values(&sample, 9); /* fixed values count */
  cbgen_operator_free(compile_in(context, &sample, CBGEN_VALUES_FIXED, 0, CBGEN_CACHE_MISS));
  struct sample other = sample_of("random,rows=90,cols=70,density=0.1", (struct form){.shuffled = 1});
  cbgen_operator_free(compile_in(context, &other, CBGEN_VALUES_STORED, 0, CBGEN_CACHE_MISS));
  cbgen_context_destroy(context);
  fake->capability = 80; /* another GPU */
  context = new_context("");
  cbgen_operator_free(compile_in(context, &sample, CBGEN_VALUES_STORED, 0, CBGEN_CACHE_MISS));
  cbgen_context_destroy(context);
  fake->capability = 90;
  fake->nvrtc_minor = 1; /* another compiler: what the older one made is there, and NVRTC need not be asked */
  context = new_context("");
  cbgen_operator_free(compile_in(context, &sample, CBGEN_VALUES_STORED, 0, CBGEN_CACHE_HIT));
  cbgen_context_destroy(context);
  sample_release(&sample);
  sample_release(&other);
}

/* Few products do not repay a search: then it is left out, unless its result is there already. */
static void few_products_search_less(void **state) {
  (void)state;
  struct sample sample = sample_of("stencil5,n=30", (struct form){0});
  static const struct {
    int64_t expected;
    cbgen_cache_result result;
    int searched;
  } steps[] = {{1, CBGEN_CACHE_MISS, 0},
               {2, CBGEN_CACHE_HIT, 0},
               {1000000000, CBGEN_CACHE_MISS, 1},
               {0, CBGEN_CACHE_HIT, 1},
               {1, CBGEN_CACHE_HIT, 1 /* free */}};
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    cbgen_context *context = new_context("");
    const cbgen_request request = {.struct_size = sizeof request, .expected_products = steps[i].expected,
                                   .specialise = CBGEN_SPECIALISE_NOW};
    cbgen_operator *op;
    must(context, cbgen_compile(context, &sample.view, &request, &op));
    assert_int_equal(result_of(op), steps[i].result);
    assert_int_equal(strstr(cbgen_operator_plan(op), "(dia ") != NULL, steps[i].searched);
    check_product(op, &sample.csr);
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
  }
  sample_release(&sample);
}

/* A view that is inconsistent is refused although its shape is known to the cache. */
static void inconsistent_views_do_not_hit(void **state) {
  (void)state;
  cbgen_context *context = new_context("");
  struct sample sample = sample_of("random,rows=90,cols=70,density=0.1", (struct form){.col_bits = 64});
  cbgen_operator_free(compile_in(context, &sample, CBGEN_VALUES_STORED, 0, CBGEN_CACHE_MISS));
  int64_t *columns = sample.col_idx;
  int32_t *starts = sample.row_ptr;
  cbgen_operator *op;
  columns[3] += (int64_t)1 << 32; /* equal in the lower half */
  assert_int_equal(cbgen_compile(context, &sample.view, NULL, &op), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_message(context), "'col_idx[3]'"));
  columns[3] -= (int64_t)1 << 32;
  for (int64_t i = 0; i <= sample.view.rows; i++) starts[i]++;
  assert_int_equal(cbgen_compile(context, &sample.view, NULL, &op), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_message(context), "'row_ptr' goes from 1"));
  for (int64_t i = 0; i <= sample.view.rows; i++) starts[i]--;
  cbgen_operator_free(compile_in(context, &sample, CBGEN_VALUES_STORED, 0, CBGEN_CACHE_HIT));
  cbgen_context_destroy(context);
  sample_release(&sample);
}

static void the_cache_can_be_off(void **state) {
  (void)state;
  struct sample sample = sample_of("random,rows=90,cols=70,density=0.1", (struct form){0});
  cbgen_context *context = new_context("");
  must(context, cbgen_set(context, "cache", ""));
  for (int i = 0; i < 2; i++)
    cbgen_operator_free(compile_in(context, &sample, CBGEN_VALUES_MUTABLE, 0, CBGEN_CACHE_OFF));
  assert_int_equal(entries_in(folder()), 0);
  must(context, cbgen_set(context, "cache", folder()));
  must(context, cbgen_set(context, "cache-limit", "100M"));
  cbgen_operator_free(compile_in(context, &sample, CBGEN_VALUES_STORED, 0, CBGEN_CACHE_MISS));
  assert_int_equal(entries_in(folder()), 1);
  assert_int_equal(cbgen_set(context, "cache-limit", "much"), CBGEN_ERROR_ARGUMENT);
  assert_int_equal(cbgen_set(context, "cache-limit", "0"), CBGEN_ERROR_ARGUMENT);
  assert_int_equal(cbgen_set(context, "cache-data", "some"), CBGEN_ERROR_ARGUMENT);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

/* What a profiler shows leads to the entry: the kernel's name, or the key in it. */
static void the_kernels_name_finds_the_entry(void **state) {
  (void)state;
  struct sample samples[2] = {sample_of("random,rows=90,cols=70,density=0.1", (struct form){0}),
                              sample_of("random,rows=90,cols=70,density=0.1", (struct form){.shuffled = 1})};
  cbgen_context *context = new_context("");
  cbgen_operator *ops[2];
  for (int i = 0; i < 2; i++)
    ops[i] = compile_in(context, &samples[i], CBGEN_VALUES_STORED, 0, CBGEN_CACHE_MISS);
  assert_int_equal(entries_in(folder()), 2);
  assert_string_equal(cbgen_operator_key(ops[0]), cbgen_operator_key(ops[1])); /* one kernel, two orders */
  assert_int_equal(strlen(cbgen_operator_key(ops[0])), 16);
  char name[96], text[32];
  snprintf(text, sizeof text, "cbgen_%s", cbgen_operator_key(ops[0]));
  snprintf(name, sizeof name, "%s_spmv(double const*)", text);
  assert_non_null(strstr(cbgen_operator_source(ops[0], NULL), text));
  const char *const given[] = {name, text, cbgen_operator_key(ops[0])};
  for (int i = 0; i < 3; i++) {
    struct cb_diag diag = {0};
    struct cb_hash key;
    struct cb_cache_entry entry;
    assert_ok(cb_cache_find(context->cache, given[i], &key, &diag));
    assert_int_equal(cb_cache_peek(context->cache, key, "source", &entry, &diag), CB_CACHE_HIT);
    const struct cb_cache_section *source = cb_cache_section(&entry, "source");
    size_t length;
    const char *expected = cbgen_operator_source(ops[0], &length);
    assert_non_null(source);
    assert_int_equal(source->length, length);
    assert_memory_equal(source->bytes, expected, length);
    cb_cache_entry_release(&entry);
  }
  for (int i = 0; i < 2; i++) {
    cbgen_operator_free(ops[i]);
    sample_release(&samples[i]);
  }
  cbgen_context_destroy(context);
}

/* ---- entries of no use */

/* The library's own view of a context's cache. */
static struct cb_cache *cache_of(cbgen_context *context) {
  return cb_context_cache(context);
}

/* Rewrites the only entry with one section changed: right checksums, wrong contents. */
static void change_entry(cbgen_context *context, const char *tag, int what) {
  struct cb_cache *cache = cache_of(context);
  struct cb_cache_listing listing = {0};
  struct cb_cache_entry entry;
  struct cb_diag diag = {0};
  assert_ok(cb_cache_list(cache, &listing, &diag));
  assert_int_equal(listing.count, 1);
  assert_int_equal(cb_cache_get(cache, listing.items[0].key, &entry, &diag), CB_CACHE_HIT);
  unsigned char *changed = NULL;
  for (int i = 0; i < entry.count; i++) {
    struct cb_cache_section *section = &entry.sections[i];
    if (strcmp(section->tag, tag)) continue;
    changed = malloc((size_t)section->length + 1);
    memcpy(changed, section->bytes, (size_t)section->length);
    if (what < 0) section->length--;
    if (what >= 0) changed[what] ^= 0x40;
    section->bytes = changed;
  }
  assert_non_null(changed);
  const struct cb_cache_label label = {"changed", "changed", NULL};
  assert_int_equal(cb_cache_put(cache, listing.items[0].key, &label, entry.sections, entry.count, &diag),
                   CB_CACHE_STORED);
  free(changed);
  cb_cache_entry_release(&entry);
  cb_cache_listing_release(&listing);
}

static void entries_of_no_use_are_made_anew(void **state) {
  static const struct {
    const char *tag;
    int what;
  } changes[] = {{"operator", -1}, {"operator", 0}, {"operator", 8}, {"operator", 60}, {"plan", -2},
                 {"arrays", -1},   {"map", -1},     {"cubin", 1},    {"json", -2},     {"source", -2}};
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    open_cache(state);
    struct sample sample = sample_of("random,rows=90,cols=70,density=0.1", (struct form){0});
    cbgen_context *context = new_context("");
    must(context, cbgen_set(context, "recipe", "sell"));
    must(context, cbgen_set(context, "bake-limit", "0"));
    cbgen_operator_free(compile_in(context, &sample, CBGEN_VALUES_STORED, 0, CBGEN_CACHE_MISS));
    const int harmless = changes[i].what == -2; /* a text that is shorter is still a text */
    change_entry(context, changes[i].tag, harmless ? -1 : changes[i].what);
    cbgen_operator *op =
        compile_in(context, &sample, CBGEN_VALUES_STORED, 0, harmless ? CBGEN_CACHE_HIT : CBGEN_CACHE_MISS);
    check_product(op, &sample.csr);
    cbgen_operator_free(op);
    op = compile_in(context, &sample, CBGEN_VALUES_STORED, 0, CBGEN_CACHE_HIT); /* a good one again */
    check_product(op, &sample.csr);
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
    sample_release(&sample);
  }
}

/* ---- failing file operations */

static struct {
  long calls, at, failed;
  int sticky;
} fault;

static int now_fails(void) {
  const long number = ++fault.calls;
  if (!fault.at || !(number == fault.at || (fault.sticky && number > fault.at))) return 0;
  fault.failed++;
  errno = EIO;
  return 1;
}

#define SYSTEM(name) cb_cache_system_calls.name
static int fail_open(int at, const char *name, int flags, mode_t mode) {
  return now_fails() ? -1 : SYSTEM(open)(at, name, flags, mode);
}
static int fail_make(const char *path, mode_t mode) {
  return now_fails() ? -1 : SYSTEM(make)(path, mode);
}
static int fail_inspect(int fd, struct stat *info) {
  return now_fails() ? -1 : SYSTEM(inspect)(fd, info);
}
static int fail_inspect_name(int at, const char *name, struct stat *info) {
  return now_fails() ? -1 : SYSTEM(inspect_name)(at, name, info);
}
static ssize_t fail_read(int fd, void *bytes, size_t length, off_t offset) {
  return now_fails() ? -1 : SYSTEM(read)(fd, bytes, length, offset);
}
static ssize_t fail_write(int fd, const void *bytes, size_t length) {
  return now_fails() ? -1 : SYSTEM(write)(fd, bytes, length);
}
static int fail_sync(int fd) {
  return now_fails() ? -1 : SYSTEM(sync)(fd);
}
static int fail_rename(int at, const char *from, const char *to) {
  return now_fails() ? -1 : SYSTEM(rename)(at, from, to);
}
static int fail_remove(int at, const char *name) {
  return now_fails() ? -1 : SYSTEM(remove)(at, name);
}
static int fail_stamp(int fd) {
  return now_fails() ? -1 : SYSTEM(stamp)(fd);
}
static void *fail_map(int fd, size_t length) {
  return now_fails() ? MAP_FAILED : SYSTEM(map)(fd, length);
}

static cbgen_context *failing_context(void) {
  static struct cb_cache_calls calls;
  struct cb_diag diag = {0};
  calls = cb_cache_system_calls;
  calls.open = fail_open;
  calls.make = fail_make;
  calls.inspect = fail_inspect;
  calls.inspect_name = fail_inspect_name;
  calls.read = fail_read;
  calls.write = fail_write;
  calls.sync = fail_sync;
  calls.rename = fail_rename;
  calls.remove = fail_remove;
  calls.stamp = fail_stamp;
  calls.map = fail_map;
  const struct cb_cache_options options = {.directory = folder(), .calls = &calls};
  cbgen_context *context = new_context("");
  cb_cache_open(&context->cache, &options, &diag);
  assert_non_null(context->cache);
  return context;
}

static void every_file_operation_may_fail(void **state) {
  struct sample sample = sample_of("random,rows=60,cols=50,density=0.1", (struct form){0});
  for (int filled = 0; filled < 2; filled++)
    for (int sticky = 0; sticky < 2; sticky++) {
      long failures = 0;
      for (long at = 1;; at++) {
        open_cache(state);
        if (filled) {
          cbgen_context *context = new_context("");
          cbgen_operator_free(compile_in(context, &sample, CBGEN_VALUES_MUTABLE, 0, CBGEN_CACHE_MISS));
          cbgen_context_destroy(context);
        }
        fault.calls = fault.failed = 0;
        fault.at = at;
        fault.sticky = sticky;
        cbgen_context *context = failing_context();
        const cbgen_request request = {.struct_size = sizeof request, .values = CBGEN_VALUES_MUTABLE,
                                       .specialise = CBGEN_SPECIALISE_NOW};
        cbgen_operator *op;
        must(context, cbgen_compile(context, &sample.view, &request, &op)); /* always */
        const int failed = fault.failed > 0;
        fault.at = 0;
        check_product(op, &sample.csr);
        cbgen_operator_free(op);
        cbgen_context_destroy(context);
        failures += failed;
        if (failed) { /* and the cache can be used */
          context = new_context("");
          cbgen_operator *again;
          must(context, cbgen_compile(context, &sample.view, &request, &again));
          check_product(again, &sample.csr);
          cbgen_operator_free(again);
          cbgen_context_destroy(context);
        }
        if (!failed) break;
      }
      assert_true(failures > 8);
    }
  sample_release(&sample);
}

/* ---- what it says */

struct said {
  char text[20000];
};

static void hear(void *user, const char *line);

/* Where the matrix is on the device, kernels may pack an entry's arrays anew instead of uploading them: the operator is
 * what it would be. What kernels cannot survey comes out of the entry. */
static void kernels_may_pack_what_an_entry_keeps(void **state) {
  static const char *const recipes[] = {"recipe=sell", "recipe=merge", "recipe=blocks"};
  static struct said said;
  for (size_t i = 0; i < 2 * sizeof recipes / sizeof *recipes; i++) {
    const int shuffled = (int)(i % 2);
    open_cache(state);
    struct sample sample = sample_of("fe3,n=4", (struct form){.on_device = 1, .shuffled = shuffled});
    cbgen_context *context = new_context(recipes[i / 2]), *other = new_context(recipes[i / 2]);
    must(context, cbgen_set(context, "pack", "host"));
    must(other, cbgen_set(other, "pack", "device"));
    cbgen_operator *miss = compile_in(context, &sample, CBGEN_VALUES_MUTABLE, 0, CBGEN_CACHE_MISS);
    said.text[0] = 0;
    assert_int_equal(cbgen_set_log(other, hear, &said), CBGEN_OK);
    cbgen_operator *hit = compile_in(other, &sample, CBGEN_VALUES_MUTABLE, 0, CBGEN_CACHE_HIT);
    const int anew = strstr(said.text, "kernels pack the arrays anew") != NULL;
    if (anew == shuffled) fail_msg("%s: %s", recipes[i / 2], said.text);
    check_product(hit, &sample.csr);
    assert_same(miss, hit);
    set_values(&sample, 5);
    sum_up(&sample);
    renew(hit, &sample, 0);
    cbgen_operator_free(miss);
    cbgen_operator_free(hit);
    cbgen_context_destroy(context);
    cbgen_context_destroy(other);
    sample_release(&sample);
  }
}

static void hear(void *user, const char *line) {
  struct said *said = user;
  const size_t length = strlen(said->text);
  assert_null(strchr(line, '\n'));
  snprintf(said->text + length, sizeof said->text - length, "%s\n", line);
}

static void the_log_tells(void **state) {
  (void)state;
  static struct said said;
  struct sample sample = sample_of("random,rows=60,cols=50,density=0.1", (struct form){0});
  sample.view.name = "mesh";
  cbgen_context *context = new_context("");
  assert_int_equal(cbgen_set_log(context, hear, &said), CBGEN_OK);
  cbgen_operator *op = compile_in(context, &sample, CBGEN_VALUES_STORED, 0, CBGEN_CACHE_MISS);
  assert_non_null(strstr(said.text, folder()));
  assert_non_null(strstr(said.text, "cache: absent "));
  assert_non_null(strstr(said.text, cbgen_operator_plan(op)));
  assert_non_null(strstr(said.text, "cache: stored "));
  assert_non_null(strstr(said.text, "'mesh': kernel cbgen_"));
  assert_non_null(strstr(said.text, cbgen_operator_key(op)));
  cbgen_operator_free(op);
  said.text[0] = 0;
  cbgen_operator_free(compile_in(context, &sample, CBGEN_VALUES_STORED, 0, CBGEN_CACHE_HIT));
  assert_non_null(strstr(said.text, "cache: hit "));
  assert_null(strstr(said.text, "plan:"));
  assert_int_equal(cbgen_set_log(context, NULL, NULL), CBGEN_OK);
  said.text[0] = 0;
  cbgen_operator_free(compile_in(context, &sample, CBGEN_VALUES_STORED, 0, CBGEN_CACHE_HIT));
  assert_string_equal(said.text, "");
  assert_int_equal(cbgen_set_log(NULL, hear, NULL), CBGEN_ERROR_ARGUMENT);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_cache, check_fake)
  const struct CMUnitTest tests[] = {
      TEST(a_hit_is_what_the_miss_was),
      TEST(what_hits),
      TEST(what_misses),
      TEST(few_products_search_less),
      TEST(inconsistent_views_do_not_hit),
      TEST(the_cache_can_be_off),
      TEST(the_kernels_name_finds_the_entry),
      TEST(entries_of_no_use_are_made_anew),
      TEST(every_file_operation_may_fail),
      TEST(the_log_tells),
      TEST(kernels_may_pack_what_an_entry_keeps),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
