// SPDX-License-Identifier: Apache-2.0
/* A kernel.cu read back: what is read of the text of every recipe is what its plan says, embedded or with its sidecar;
 * texts that were edited where it matters, and data that are not their own, are refused with a message that says so. */
#include "recipes.h"
#include "scratch.h"
#include "support.h"

#include "runtime/verify/kernel_file.h"
#include "runtime/verify/oracle.h"

#include <sys/stat.h>
#include <unistd.h>

static int set_up(void **state) {
  (void)state;
  return empty_scratch("files", "");
}

static void write_bytes(const char *name, const void *bytes, size_t length) {
  FILE *file = fopen(place(name), "w");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, length, file), length);
  assert_int_equal(fclose(file), 0);
}

/* A kernel with its self-test, as k.cu and k.cbd. */
static void write_kernel(struct product *product, enum cb_embed embed) {
  struct cb_diag diag = {0};
  const size_t rows = (size_t)product->csr->rows;
  double *numbers = calloc(2 * rows + 1, sizeof *numbers);
  const struct cb_label label = {"test", "test", cb_csr_pattern_hash(product->csr)};
  assert_non_null(numbers);
  cb_oracle_selftest(product->csr, product->plan, numbers, numbers + rows);
  assert_ok(cb_blob_add_selftest(&product->blob, numbers, numbers + rows, product->csr->rows, &diag));
  cb_source_release(&product->source);
  assert_ok(cb_source_emit(&product->source, product->plan, &label, &product->blob, embed, &diag));
  write_bytes("k.cu", product->source.text, (size_t)product->source.length);
  unlink(place("k.cbd"));
  if (embed == CB_EMBED_NEVER) write_bytes("k.cbd", product->blob.bytes, (size_t)product->blob.length);
  free(numbers);
}

/* The image that the plan gives, by which the library and `run` load an operator. */
static struct cb_image image_of(const struct product *product) {
  const struct cb_label label = {"test", "test", cb_csr_pattern_hash(product->csr)};
  const struct cb_image_parts parts = {.plan = product->plan, .label = &label, .blob = &product->blob};
  struct cb_diag diag = {0};
  struct cb_image image;
  assert_ok(cb_image_from_plan(&image, &parts, &diag));
  return image;
}

/* The arrays that a launch's kernel gets, one after the other: their bytes in the data. */
static void check_launch(const struct cb_image *read, const struct cb_image *planned, int number) {
  const struct cb_image_launch *one = &read->launches[number], *other = &planned->launches[number];
  assert_string_equal(one->kernel, other->kernel);
  assert_int_equal(one->blocks, other->blocks);
  assert_int_equal(one->threads, other->threads);
  assert_int_equal(one->dynamic_shared, other->dynamic_shared);
  assert_int_equal(one->groups, other->groups);
  for (int g = 0; g < one->groups; g++) {
    const struct cb_image_group *own = &read->groups[one->first_group + g];
    const struct cb_image_group *wanted = &planned->groups[other->first_group + g];
    assert_int_equal(own->pointers, wanted->pointers);
    for (int a = 0; a < own->pointers; a++) {
      const struct cb_image_array *array = &read->arrays[read->pointers[own->first_pointer + a]];
      const struct cb_image_array *of_plan = &planned->arrays[planned->pointers[wanted->first_pointer + a]];
      assert_int_equal(array->bytes, of_plan->bytes);
      if (array->bytes) assert_memory_equal(array->contents, of_plan->contents, (size_t)array->bytes);
    }
  }
}

static void check_file(const struct cb_kernel_file *file, const struct product *product) {
  struct cb_image planned = image_of(product);
  const struct cb_image *read = &file->image;
  char pattern[CB_HASH_HEX];
  cb_hash_hex(cb_csr_pattern_hash(product->csr), pattern);
  assert_string_equal(file->name, "test");
  assert_string_equal(file->pattern, pattern);
  assert_string_equal(read->line, product->plan->line);
  assert_true(read->rows == planned.rows && read->cols == planned.cols && read->nnz == planned.nnz);
  assert_true(read->matrix_type == planned.matrix_type && read->vector_type == planned.vector_type &&
              read->sum_type == planned.sum_type);
  assert_true(read->form == planned.form && read->semiring == planned.semiring);
  assert_int_equal(read->carry_sums, planned.carry_sums);
  assert_int_equal(read->carry_counters, planned.carry_counters);
  assert_int_equal(read->launches_count, planned.launches_count);
  for (int l = 0; l < read->launches_count; l++) check_launch(read, &planned, l);
  if (product->csr->rows) {
    const size_t bytes = 2 * (size_t)product->csr->rows * sizeof(double);
    assert_non_null(file->expected);
    assert_memory_equal(file->expected, product->blob.bytes + cb_blob_arrays_end(product->plan), bytes);
  }
  cb_image_release(&planned);
}

static void check_settings(const char *matrix, const char *settings, enum cb_embed embed) {
  struct cb_diag diag = {0};
  struct cb_kernel_file file;
  struct product product = product_of(matrix, settings);
  write_kernel(&product, embed);
  if (cb_kernel_file_read(&file, place("k.cu"), &diag)) fail_msg("%s, %s: %s", matrix, settings, diag.message);
  check_file(&file, &product);
  cb_kernel_file_release(&file);
  product_release(&product);
}

static void what_is_read_is_what_was_planned(void **state) {
  static const char *const types[] = {"f64", "f32", "f16", "f16-f32", "bf16"};
  static const char *const semirings[] = {"plus-times", "plus-times", "min-plus", "plus-times", "or-and", "max-times"};
  static const char *const forms[] = {"ax", "axpby", "add"};
  const struct cb_recipe *recipe;
  (void)state;
  for (int r = 0; (recipe = cb_recipe_at(r)); r++)
    for (int i = 0; i < 4; i++) {
      char settings[SETTINGS + 64];
      snprintf(settings, sizeof settings, "%s type=%s form=%s semiring=%s", settings_of_recipe(recipe),
               types[(r + i) % 5], forms[(r + i) % 3], semirings[(r + i) % 6]);
      check_settings(example_of(recipe), settings, i % 2 ? CB_EMBED_ALWAYS : CB_EMBED_NEVER);
    }
  check_settings("empty,rows=0,cols=5", "recipe=sell", CB_EMBED_ALWAYS);
  check_settings("empty,rows=7,cols=5", "recipe=sell", CB_EMBED_NEVER);
  check_settings("long_row,rows=300,cols=9000,per_row=3,long_rows=2,long_length=3000", "recipe=merge merge-piece=512",
                 CB_EMBED_NEVER);
}

/* ---- what is refused */

static void refused(enum cb_status status, const char *words) {
  struct cb_diag diag = {0};
  struct cb_kernel_file file;
  assert_int_equal(cb_kernel_file_read(&file, place("k.cu"), &diag), status);
  if (!strstr(diag.message, words)) fail_msg("'%s' instead of '%s'", diag.message, words);
  cb_kernel_file_release(&file);
}

/* Each edit on its own makes the text one that cannot be run, and the message says what is missing. */
static void edited_texts_are_refused(void **state) {
  static const struct {
    const char *words, *instead, *message;
  } edits[] = {
      {"// y = ", "// z = ", "does not say what it multiplies"},
      {" nonzeros, double", " nonzeros, quad", "of which types its numbers are"},
      {", 320 nonzeros", ", many nonzeros", "how many nonzeros it has"},
      {"using vector_t = double", "using vector_t = quad", "of which types its numbers are"},
      {"using sum_t = double", "using sum_t = quad", "of which types its numbers are"},
      {"#ifndef __CUDACC_RTC__", "#if 1", "how it is launched"},
      {"kRowCount = 64", "kRowCount = sixty", "how many rows and columns it has"},
      {"kExpected = ", "kExpected = 1", "are cut short"},
      {"error = launch(", "error = start(", "which kernels it launches"},
      {"constexpr unsigned kGrid = 1", "constexpr unsigned kGrid = 0", "how its kernels are launched"},
      {"constexpr int kThreads = 256", "constexpr int kThreads = 2048", "how its kernels are launched"},
      {"struct Arrays {", "struct Tables {", "which arrays a region has"},
      {"array_at(matrix->memory, 256, ", "array_at(matrix->memory, 256000, ", "beyond the end of its data"},
      {"kId[2] = {0x", "kId[2] = {0xa", "belong to another kernel"},
      {"constexpr uint64_t kId[2] = {", "constexpr uint64_t kIds[2] = {", "which data are its own"},
  };
  (void)state;
  struct product product = product_of("band,n=64,half=20,per_row=5", "recipe=sell sell-lanes=1 form=ax");
  write_kernel(&product, CB_EMBED_NEVER);
  for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
    char *text = replaced(product.source.text, edits[i].words, edits[i].instead, 1);
    if (!text) fail_msg("no '%s' in the text", edits[i].words);
    write_bytes("k.cu", text, strlen(text));
    refused(CB_ERR_FORMAT, edits[i].message);
    cb_free(text);
  }
  write_bytes("k.cu", "int x;\n", 7);
  refused(CB_ERR_FORMAT, "it is none, or was edited there");
  write_bytes("k.cu", "", 0);
  refused(CB_ERR_FORMAT, "it is none, or was edited there");
  write_bytes("k.cu", "int\0x;\n", 7);
  refused(CB_ERR_FORMAT, "it holds a NUL");
  assert_int_equal(unlink(place("k.cu")), 0);
  refused(CB_ERR_IO, "k.cu");
  assert_int_equal(mkdir(place("k.cu"), 0700), 0);
  refused(CB_ERR_IO, "k.cu");
  assert_int_equal(rmdir(place("k.cu")), 0);
  product_release(&product);
}

static void wrong_data_are_refused(void **state) {
  (void)state;
  struct product product = product_of("band,n=64,half=20,per_row=5", "recipe=sell"),
                 other = product_of("band,n=65,half=20,per_row=5", "recipe=sell");
  write_kernel(&other, CB_EMBED_NEVER);
  assert_int_equal(rename(place("k.cbd"), place("other.cbd")), 0);
  write_kernel(&product, CB_EMBED_NEVER);
  unsigned char *bytes = product.blob.bytes;
  const size_t length = (size_t)product.blob.length;
  for (size_t at = 0; at < length; at += 1 + at / 16) {
    bytes[at] ^= 0x40;
    write_bytes("k.cbd", bytes, length);
    refused(CB_ERR_FORMAT, "the data of '");
    bytes[at] ^= 0x40;
  }
  write_bytes("k.cbd", bytes, length - 256);
  refused(CB_ERR_FORMAT, "are cut short");
  write_bytes("k.cbd", bytes, 40);
  refused(CB_ERR_FORMAT, "are no data of a kernel");
  assert_int_equal(rename(place("other.cbd"), place("k.cbd")), 0);
  refused(CB_ERR_FORMAT, "belong to another kernel");
  assert_int_equal(unlink(place("k.cbd")), 0);
  refused(CB_ERR_IO, "do not stand in it, and cannot be read from '");
  product_release(&product);
  product_release(&other);
}

/* Without the part of the self-test there is nothing to compare with, which is no error. */
static void data_without_a_self_test_are_read(void **state) {
  (void)state;
  struct product product = product_of("band,n=64,half=20,per_row=5", "recipe=sell");
  struct cb_kernel_file file;
  struct cb_diag diag = {0};
  write_bytes("k.cu", product.source.text, (size_t)product.source.length);
  write_bytes("k.cbd", product.blob.bytes, (size_t)product.blob.length);
  assert_ok(cb_kernel_file_read(&file, place("k.cu"), &diag));
  assert_null(file.expected);
  cb_kernel_file_release(&file);
  product_release(&product);
}

static void names_of_kernels_end_in_cu(void **state) {
  (void)state;
  assert_true(cb_is_kernel_file("kernel.cu") && cb_is_kernel_file("/a/b.cu") && cb_is_kernel_file(".cu"));
  assert_false(cb_is_kernel_file("kernel.cu.gz") || cb_is_kernel_file("cu") || cb_is_kernel_file("") ||
               cb_is_kernel_file("generate:fe3") || cb_is_kernel_file("-"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_read_is_what_was_planned), cmocka_unit_test(edited_texts_are_refused),
      cmocka_unit_test(wrong_data_are_refused),           cmocka_unit_test(data_without_a_self_test_are_read),
      cmocka_unit_test(names_of_kernels_end_in_cu),
  };
  return cmocka_run_group_tests_name("kernel files", tests, set_up, NULL);
}
