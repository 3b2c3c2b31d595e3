// SPDX-License-Identifier: Apache-2.0
/* Operators as blocks of bytes: what comes back multiplies as what went; damaged blocks are refused,
 * whichever bit it is; another architecture compiles the text anew. */
#include "tests/api_support.h"
#include "tests/recipes.h"

struct block {
  unsigned char *bytes;
  size_t length;
};

static struct block save(cbgen_operator *op) {
  struct block block = {0};
  must_operator(op, cbgen_operator_save(op, NULL, 0, &block.length));
  assert_true(block.length > 1000);
  block.bytes = malloc(block.length);
  assert_non_null(block.bytes);
  must_operator(op, cbgen_operator_save(op, block.bytes, block.length, &block.length));
  return block;
}

static cbgen_specialise specialise = CBGEN_SPECIALISE_AUTO; /* what tests ask for */

static cbgen_operator *compile(cbgen_context *context, const struct sample *sample, cbgen_values values,
                               int turned) {
  const cbgen_request request = {.struct_size = sizeof request, .values = values, .transpose = turned,
                                 .specialise = specialise};
  cbgen_operator *op;
  must(context, cbgen_compile(context, &sample->view, &request, &op));
  return op;
}

static void same_info(const cbgen_operator *a, const cbgen_operator *b) {
  cbgen_info x = {.struct_size = sizeof x}, y = {.struct_size = sizeof y};
  assert_int_equal(cbgen_operator_info(a, &x), CBGEN_OK);
  assert_int_equal(cbgen_operator_info(b, &y), CBGEN_OK);
  assert_int_equal(x.rows, y.rows);
  assert_int_equal(x.cols, y.cols);
  assert_int_equal(x.nnz, y.nnz);
  assert_int_equal(x.launches, y.launches);
  assert_int_equal(x.has_scratch, y.has_scratch);
  assert_int_equal(x.stored_bytes, y.stored_bytes);
  assert_int_equal(x.device_bytes, y.device_bytes);
  assert_int_equal(x.values, y.values);
  assert_true(x.predicted_seconds == y.predicted_seconds && x.csr_seconds == y.csr_seconds);
  assert_string_equal(cbgen_operator_source(a, NULL), cbgen_operator_source(b, NULL));
  assert_string_equal(cbgen_operator_plan(a), cbgen_operator_plan(b));
  assert_string_equal(cbgen_operator_plan_json(a), cbgen_operator_plan_json(b));
  assert_string_equal(cbgen_operator_key(a), cbgen_operator_key(b));
}

static const struct way {
  struct form form;
  cbgen_values values;
  int turned;
} ways[] = {
    {{0}, CBGEN_VALUES_STORED, 0},
    {{.shuffled = 1, .duplicates = 1}, CBGEN_VALUES_MUTABLE, 0},
    {{.value_type = CBGEN_F32}, CBGEN_VALUES_MUTABLE, 0},
    {{.base = 1}, CBGEN_VALUES_MUTABLE, 1},
};
enum { WAYS = sizeof ways / sizeof *ways };

/* New values, given to what came back. */
static void check_renewal(cbgen_operator *back, struct sample *sample, int turned) {
  set_values(sample, 99);
  sum_up(sample);
  const cbgen_update update = {sizeof update, sample->given, sample->form.value_type, CBGEN_HOST, NULL};
  must_operator(back, cbgen_update_values(back, &update));
  struct cb_csr csr = turned ? transposed(&sample->csr) : sample->csr;
  check_product(back, &csr);
  if (turned) cb_csr_release(&csr);
}

static void comes_back(const char *matrix, const char *settings, const struct way *way) {
  cbgen_context *context = new_context("");
  set_all(context, settings);
  struct sample sample = sample_of(matrix, way->form);
  cbgen_operator *op = compile(context, &sample, way->values, way->turned);
  struct cb_csr csr = way->turned ? transposed(&sample.csr) : sample.csr;
  struct block block = save(op), again;
  cbgen_context *other = new_context("");
  cbgen_operator *back;
  const long compilations = fake->compilations;
  must(other, cbgen_operator_load(other, block.bytes, block.length, &back));
  assert_int_equal(fake->compilations, compilations); /* the binary, and the packing kernels', were in it */
  same_info(op, back);
  check_product(back, &csr);
  again = save(back);
  assert_int_equal(block.length, again.length);
  assert_memory_equal(block.bytes, again.bytes, block.length);
  if (way->turned) cb_csr_release(&csr);
  if (way->values == CBGEN_VALUES_MUTABLE) check_renewal(back, &sample, way->turned);
  free(block.bytes);
  free(again.bytes);
  cbgen_operator_free(op);
  cbgen_operator_free(back);
  cbgen_context_destroy(context);
  cbgen_context_destroy(other);
  sample_release(&sample);
}

static void what_comes_back_is_what_went(void **state) {
  (void)state;
  const struct cb_recipe *recipe;
  for (int i = 0; (recipe = cb_recipe_at(i)); i++)
    comes_back(example_of(recipe), settings_of_recipe(recipe), &ways[i % WAYS]);
  comes_back("random,rows=40,cols=5000,density=0.2", "recipe=cb", &ways[2]); /* with scratch */
  comes_back("empty,rows=9,cols=4", "", &ways[1]);
  comes_back("empty,rows=0,cols=4", "", &ways[0]);
}

static void renewed_values_are_saved(void **state) {
  (void)state;
  cbgen_context *context = new_context("");
  struct sample sample = sample_of("random,rows=100,cols=80,density=0.1", (struct form){0});
  cbgen_operator *op = compile(context, &sample, CBGEN_VALUES_MUTABLE, 0), *back;
  set_values(&sample, 33);
  sum_up(&sample);
  const cbgen_update update = {sizeof update, sample.given, CBGEN_F64, CBGEN_HOST, NULL};
  must_operator(op, cbgen_update_values(op, &update));
  struct block block = save(op);
  must(context, cbgen_operator_load(context, block.bytes, block.length, &back));
  check_product(back, &sample.csr);
  free(block.bytes);
  cbgen_operator_free(op);
  cbgen_operator_free(back);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

static void bytes_may_lie_anywhere(void **state) {
  (void)state;
  cbgen_context *context = new_context("");
  struct sample sample = sample_of("random,rows=100,cols=80,density=0.1", (struct form){.duplicates = 1});
  cbgen_operator *op = compile(context, &sample, CBGEN_VALUES_MUTABLE, 0), *back;
  size_t length;
  must_operator(op, cbgen_operator_save(op, NULL, 0, &length));
  unsigned char *room = malloc(length + 1);
  must_operator(op, cbgen_operator_save(op, room + 1, length, &length));
  must(context, cbgen_operator_load(context, room + 1, length, &back));
  check_product(back, &sample.csr);
  free(room);
  cbgen_operator_free(op);
  cbgen_operator_free(back);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

static void too_little_room_is_refused(void **state) {
  (void)state;
  cbgen_context *context = new_context("");
  struct sample sample = sample_of("diagonal,n=30", (struct form){0});
  cbgen_operator *op = compile(context, &sample, CBGEN_VALUES_STORED, 0);
  size_t length = 0;
  unsigned char byte = 7;
  assert_int_equal(cbgen_operator_save(op, &byte, 1, &length), CBGEN_ERROR_ARGUMENT);
  assert_true(length > 1 && byte == 7);
  assert_non_null(strstr(cbgen_operator_message(op), "room for 1"));
  assert_int_equal(cbgen_operator_save(op, &byte, 1, NULL), CBGEN_ERROR_ARGUMENT);
  assert_int_equal(cbgen_operator_save(NULL, &byte, 1, &length), CBGEN_ERROR_ARGUMENT);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

static void refuse(cbgen_context *context, const void *bytes, size_t length, const char *what, size_t where) {
  cbgen_operator *op = (cbgen_operator *)&op;
  const cbgen_status s = cbgen_operator_load(context, bytes, length, &op);
  if (s != CBGEN_ERROR_FORMAT) fail_msg("%s %zu of the block: %s", what, where, cbgen_status_name(s));
  assert_null(op);
  assert_true(strlen(cbgen_message(context)) > 10);
}

static void damage_is_noticed(void **state) {
  (void)state;
  cbgen_context *context = new_context("");
  struct sample sample = sample_of("random,rows=10,cols=8,density=0.3", (struct form){.duplicates = 1});
  cbgen_operator *op = compile(context, &sample, CBGEN_VALUES_MUTABLE, 0);
  struct block block = save(op);
  for (size_t i = 0; i < block.length; i++) {
    block.bytes[i] ^= (unsigned char)(1 << i % 8);
    refuse(context, block.bytes, block.length, "byte", i);
    block.bytes[i] ^= (unsigned char)(1 << i % 8);
  }
  for (size_t length = 0; length < block.length; length += length < 1000 ? 1 : 97)
    refuse(context, block.bytes, length, "length", length);
  unsigned char *longer = calloc(block.length + 1, 1);
  memcpy(longer, block.bytes, block.length);
  refuse(context, longer, block.length + 1, "length", block.length + 1);
  free(longer);
  cbgen_operator *back;
  must(context, cbgen_operator_load(context, block.bytes, block.length, &back)); /* it was a good one */
  cbgen_operator_free(back);
  assert_int_equal(cbgen_operator_load(context, NULL, 0, &back), CBGEN_ERROR_ARGUMENT);
  assert_int_equal(cbgen_operator_load(context, block.bytes, block.length, NULL), CBGEN_ERROR_ARGUMENT);
  assert_int_equal(cbgen_operator_load(NULL, block.bytes, block.length, &back), CBGEN_ERROR_ARGUMENT);
  free(block.bytes);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

enum { CHECK = 8, CHECKED = 24, HEAD = 768, FIRST_ROW = 40, ROW = 32 };

static void renew_check(struct block *block) {
  const struct cb_hash check = cb_hash_array(block->bytes + CHECKED, block->length - CHECKED, 1);
  memcpy(block->bytes + CHECK, &check, sizeof check);
}

/* Format 3 could hold a kernel with numbers as some caller's locale and rounding mode had them. */
static void blocks_that_may_hold_numbers_by_locale_are_refused(void **state) {
  (void)state;
  cbgen_context *context = new_context("");
  struct sample sample = sample_of("diagonal,n=30", (struct form){0});
  cbgen_operator *op = compile(context, &sample, CBGEN_VALUES_STORED, 0);
  struct block block = save(op);
  const uint32_t before = 3;
  memcpy(block.bytes + CHECKED, &before, sizeof before);
  renew_check(&block);
  refuse(context, block.bytes, block.length, "format", before);
  assert_string_equal(cbgen_message(context), "the operator was saved in format 3, and this version reads 5: save it anew");
  free(block.bytes);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

static uint64_t number_at(const struct block *block, size_t at) {
  uint64_t number;
  memcpy(&number, block->bytes + at, sizeof number);
  return number;
}

/* Numbers of the section "operator", from `begin` on, that no product depends on and the plan does not have: shared
 * memory of a multiprocessor, the size of L2, and how many entries were given, where values are not renewed. */
static int is_for_information(const struct block *block, size_t begin, size_t at, cbgen_values values) {
  const size_t entries = begin + 4 * 8, arch = begin + (12 + 4 * CB_VECTOR_KERNELS) * 8;
  const size_t model = arch + 8 + number_at(block, arch), target = model + 8 + number_at(block, model);
  return (at >= target + 16 && at < target + 32) ||
         (values != CBGEN_VALUES_MUTABLE && at >= entries && at < entries + 8);
}

/* The length of a section that is code: binaries say themselves how long they are, and text may say anything. */
static int is_length_of_code(const struct block *block, size_t at) {
  const char *row = (const char *)block->bytes + FIRST_ROW + (at - FIRST_ROW) / ROW * ROW;
  return at >= FIRST_ROW && at < HEAD && (at - FIRST_ROW) % ROW >= 24 &&
         (!strcmp(row, "source") || !strcmp(row, "cubin") || !strcmp(row, "packing"));
}

static void mutate_numbers(cbgen_context *context, struct block *block, cbgen_values values) {
  static const unsigned char flips[] = {0x01, 0x80};
  const size_t begin = number_at(block, FIRST_ROW + 16), end = begin + number_at(block, FIRST_ROW + 24);
  assert_string_equal((char *)block->bytes + FIRST_ROW, "operator");
  for (size_t at = CHECKED; at < end; at = at + 1 == HEAD ? begin : at + 1)
    for (size_t f = 0; f < sizeof flips; f++) {
      if (at >= begin ? is_for_information(block, begin, at, values) : is_length_of_code(block, at)) continue;
      block->bytes[at] ^= flips[f];
      renew_check(block);
      refuse(context, block->bytes, block->length, at < HEAD ? "byte of the head" : "byte of the numbers", at);
      block->bytes[at] ^= flips[f];
    }
}

/* Somebody who knows the format writes the checksum anew: a number of the head, of the launch grids, of arrays, types
 * and scratch is refused because it is not the plan's. */
static void every_number_is_checked_against_the_plan(void **state) {
  static const struct {
    const char *matrix, *recipe;
    cbgen_values values;
    int duplicates;
  } blocks[] = {
      {"random,rows=10,cols=8,density=0.3", "sell", CBGEN_VALUES_MUTABLE, 1},
      {"random,rows=8,cols=3000,density=0.2", "cb", CBGEN_VALUES_STORED, 0}, /* with scratch */
      {"stencil5,n=8", "dia", CBGEN_VALUES_FIXED, 0},
  };
  (void)state;
  specialise = CBGEN_SPECIALISE_NOW; /* what a family's kernel gets has no second source */
  for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
    cbgen_context *context = new_context("");
    must(context, cbgen_set(context, "recipe", blocks[i].recipe));
    struct sample sample = sample_of(blocks[i].matrix, (struct form){.duplicates = blocks[i].duplicates});
    cbgen_operator *op = compile(context, &sample, blocks[i].values, 0);
    struct block block = save(op);
    mutate_numbers(context, &block, blocks[i].values);
    free(block.bytes);
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
    sample_release(&sample);
  }
  specialise = CBGEN_SPECIALISE_AUTO;
}

/* The same for the plan itself, every digit of it: the sanitizers watch what a plan from outside leads to before its
 * hash is looked at. */
static void a_plan_from_outside_is_refused(void **state) {
  (void)state;
  cbgen_context *context = new_context("");
  struct sample sample = sample_of("random,rows=10,cols=8,density=0.3", (struct form){0});
  cbgen_operator *op = compile(context, &sample, CBGEN_VALUES_STORED, 0);
  struct block block = save(op);
  const size_t row = FIRST_ROW + 2 * ROW, begin = number_at(&block, row + 16), length = number_at(&block, row + 24);
  assert_string_equal((char *)block.bytes + row, "json");
  for (size_t at = begin; at < begin + length; at++) {
    const unsigned char kept = block.bytes[at];
    if (kept < '0' || kept > '9') continue;
    for (const char *other = "90-."; *other; other++) {
      if (*other == kept) continue;
      block.bytes[at] = (unsigned char)*other;
      renew_check(&block);
      refuse(context, block.bytes, block.length, "digit of the plan", at);
    }
    block.bytes[at] = kept;
  }
  free(block.bytes);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

/* Whatever the numbers are, they lead nowhere (the sanitizers watch). What loads all the same may compute anything, but
 * only that. */
static void hostile_numbers_lead_nowhere(void **state) {
  (void)state;
  enum { NUMBERS = 700 };
  cbgen_context *context = new_context("");
  struct sample sample = sample_of("random,rows=10,cols=8,density=0.3", (struct form){.duplicates = 1});
  cbgen_operator *op = compile(context, &sample, CBGEN_VALUES_MUTABLE, 0);
  struct block block = save(op);
  static const uint64_t numbers[] = {
      0, 1, 7, UINT32_MAX, INT64_MAX, UINT64_MAX, (uint64_t)1 << 47, (uint64_t)1 << 63};
  int refused = 0;
  for (size_t at = CHECKED; at + 8 <= HEAD + NUMBERS; at += 8)
    for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++) {
      cbgen_operator *back = NULL;
      uint64_t kept;
      memcpy(&kept, block.bytes + at, 8);
      memcpy(block.bytes + at, &numbers[n], 8);
      renew_check(&block);
      const cbgen_status s = cbgen_operator_load(context, block.bytes, block.length, &back);
      refused += s != CBGEN_OK;
      if (s != CBGEN_OK && s != CBGEN_ERROR_FORMAT && s != CBGEN_ERROR_LIMIT && s != CBGEN_ERROR_MEMORY &&
          s != CBGEN_ERROR_DEVICE && s != CBGEN_ERROR_UNSUPPORTED)
        fail_msg("%s: %s", cbgen_status_name(s), cbgen_message(context));
      cbgen_operator_free(back);
      memcpy(block.bytes + at, &kept, 8);
    }
  assert_true(refused > 100);
  free(block.bytes);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

static void another_architecture_compiles_anew(void **state) {
  (void)state;
  cbgen_context *context = new_context("");
  struct sample sample = sample_of("random,rows=100,cols=80,density=0.1", (struct form){0});
  cbgen_operator *op = compile(context, &sample, CBGEN_VALUES_MUTABLE, 0), *back;
  struct block block = save(op);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  fake->capability = 80;
  context = new_context("");
  const long compilations = fake->compilations;
  must(context, cbgen_operator_load(context, block.bytes, block.length, &back));
  assert_int_equal(fake->compilations, compilations + 2); /* the product's kernels, and the packing ones */
  check_product(back, &sample.csr);
  free(block.bytes);
  cbgen_operator_free(back);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fake, check_fake)
  const struct CMUnitTest tests[] = {
      TEST(what_comes_back_is_what_went),
      TEST(renewed_values_are_saved),
      TEST(bytes_may_lie_anywhere),
      TEST(too_little_room_is_refused),
      TEST(damage_is_noticed),
      TEST(blocks_that_may_hold_numbers_by_locale_are_refused),
      TEST(every_number_is_checked_against_the_plan),
      TEST(a_plan_from_outside_is_refused),
      TEST(hostile_numbers_lead_nowhere),
      TEST(another_architecture_compiles_anew),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
