// SPDX-License-Identifier: Apache-2.0
/* See layouts.h. */
#include "tests/layouts.h"

#include "analysis/plan.h"
#include "tests/kernels.h"

#include <omp.h>

/* ---- the region */

const struct cb_region *region_of(const struct product *product) {
  return &product->plan->regions[product->region];
}

int64_t constant(const struct product *product, const char *name, int64_t otherwise) {
  const struct cb_region *region = region_of(product);
  for (int i = 0; i < region->constants_count; i++)
    if (!strcmp(region->constants[i].name, name)) return region->constants[i].value;
  return otherwise;
}

const char *fact(const struct product *product, const char *key) {
  const struct cb_region *region = region_of(product);
  for (int i = 0; i < region->facts_count; i++)
    if (!strcmp(region->facts[i].key, key)) return region->facts[i].value;
  return "none";
}

int array_number(const struct product *product, const char *name) {
  const struct cb_region *region = region_of(product);
  for (int i = 0; i < region->arrays_count; i++)
    if (!strcmp(region->arrays[i].name, name)) return i;
  return -1;
}

const struct cb_array *array_of(const struct product *product, const char *name) {
  const int number = array_number(product, name);
  return number < 0 ? NULL : &region_of(product)->arrays[number];
}

int64_t element(const struct product *product, const char *name, int64_t i) {
  const struct cb_array *array = array_of(product, name);
  uint64_t stored = 0;
  if (!array) fail_msg("no array '%s'", name);
  assert_in_range(i, 0, array->count - 1);
  if (array->storage == CB_AFFINE) return array->base + array->step * i;
  if (array->storage == CB_BAKED) return (int64_t)array->baked[i];
  const int64_t offset = cb_blob_offset(product->plan, product->region, array_number(product, name));
  const size_t size = cb_type_size(array->type);
  memcpy(&stored, product->blob.bytes + offset + (size_t)i * size, size);
  return (int64_t)stored;
}

double value_at(const struct product *product, int64_t slot) {
  const int64_t offset = cb_blob_offset(product->plan, product->region, array_number(product, "values"));
  double value;
  memcpy(&value, product->blob.bytes + offset + 8 * (size_t)slot, 8);
  return value;
}

int has(const struct product *product, const char *words) {
  const char *at = strstr(product->source.text + product->source.body, words);
  const char *host = strstr(product->source.text, "// ---- host:");
  return at && at < host;
}

int has_anywhere(const struct product *product, const char *words) {
  return strstr(product->source.text + product->source.body, words) != NULL;
}

void check_words(const struct product *product, const struct words *words) {
  for (int i = 0; i < MOST_WORDS && words->has[i]; i++)
    if (!has(product, words->has[i])) fail_msg("%s lacks '%s'", words->matrix, words->has[i]);
  for (int i = 0; i < MOST_WORDS && words->lacks[i]; i++)
    if (has(product, words->lacks[i])) fail_msg("%s has '%s'", words->matrix, words->lacks[i]);
}

void check_long_rows(const struct long_rows *cases, size_t count, const char *settings) {
  for (size_t c = 0; c < count; c++) {
    struct product product = product_of(cases[c].matrix, settings);
    assert_string_equal(fact(&product, "long"), cases[c].rows);
    assert_string_equal(fact(&product, "segments"), cases[c].segments);
    assert_int_equal(has(&product, "last_to_arrive"), strcmp(cases[c].segments, "none") != 0);
    assert_int_equal(product.plan->launches_count, 1);
    product_release(&product);
  }
}

void check_late_arrays(const struct late_array *cases, size_t count) {
  for (size_t c = 0; c < count; c++) {
    struct product product = product_of(cases[c].matrix, cases[c].settings);
    product.region = cases[c].region;
    const struct cb_array *array = array_of(&product, cases[c].array);
    if (!array) fail_msg("%s, %s: no '%s'", cases[c].matrix, cases[c].settings, cases[c].array);
    const struct cb_region_work *work = &product.assignment->regions[product.region];
    assert_int_equal(array->storage, cases[c].storage);
    assert_null(work->contents[array_number(&product, cases[c].array)].elements);
    int64_t least = INT64_MAX, largest = -1;
    for (int64_t i = 0; i < array->count; i++) {
      const int64_t here = element(&product, cases[c].array, i);
      least = here < least ? here : least;
      largest = here > largest ? here : largest;
    }
    assert_int_equal(largest, array->largest);
    if (array->storage == CB_STORED) assert_true(least < largest);
    product_release(&product);
  }
}

/* ---- pictures and matrices */

struct picture picture_for(const struct cb_csr *csr) {
  const struct picture picture = {.rows = csr->rows,
                                  .cols = csr->cols,
                                  .values = calloc((size_t)(csr->rows * csr->cols), sizeof(double)),
                                  .commits = calloc((size_t)csr->rows, sizeof(int))};
  assert_true(picture.values && picture.commits);
  return picture;
}

void see_value(struct picture *picture, int64_t row, int64_t column, double value) {
  assert_in_range(row, 0, picture->rows - 1);
  assert_in_range(column, 0, picture->cols - 1);
  picture->values[row * picture->cols + column] += value;
  picture->slots++;
}

void check_picture_and_release(struct picture *picture, const struct cb_csr *csr) {
  for (int64_t row = 0; row < csr->rows; row++)
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++) {
      assert_true(picture->values[row * csr->cols + csr->col_idx[k]] == csr->values[k]);
      picture->values[row * csr->cols + csr->col_idx[k]] = 0;
    }
  for (int64_t i = 0; i < csr->rows * csr->cols; i++) assert_true(picture->values[i] == 0);
  free(picture->values);
  free(picture->commits);
}

struct cb_csr rows_of_lengths(int64_t rows, int64_t cols, int64_t stride, const int *lengths, int count) {
  struct cb_diag diag = {0};
  struct cb_csr csr = {0};
  int64_t nonzeros = 0;
  for (int64_t row = 0; row < rows; row++) nonzeros += lengths[row % count];
  struct cb_coo coo = {.rows = rows, .cols = cols};
  coo.row_idx = cb_alloc((size_t)nonzeros, 4);
  coo.col_idx = cb_alloc((size_t)nonzeros, 4);
  coo.values = cb_alloc((size_t)nonzeros, 8);
  for (int64_t row = 0; row < rows; row++)
    for (int64_t k = 0; k < lengths[row % count]; k++, coo.count++) {
      coo.row_idx[coo.count] = (int32_t)row;
      coo.col_idx[coo.count] = (int32_t)((row + k * stride) % cols);
      coo.values[coo.count] = (double)(coo.count + 1);
    }
  assert_ok(cb_csr_from_coo(&csr, &coo, &diag));
  return csr;
}

/* ---- checks */

enum cb_status plan_status(const struct cb_csr *csr, const char *settings, const char *arch, struct cb_diag *message) {
  struct cb_diag diag = {0};
  struct cb_options options;
  struct cb_target target;
  struct cb_plan *plan = NULL;
  struct cb_assignment *assignment = NULL;
  set_options(&options, settings);
  assert_ok(cb_target_find(&target, arch, &diag));
  const enum cb_status s = cb_plan_build(&plan, &assignment, csr, &target, &options, message);
  assert_int_equal(s == CB_OK, plan != NULL);
  cb_assignment_free(assignment);
  cb_plan_free(plan);
  return s;
}

enum cb_status plan_status_of(const char *matrix, const char *settings, struct cb_diag *message) {
  struct cb_csr csr = matrix_of(matrix);
  struct cb_options options;
  set_options(&options, settings);
  fit_values(&csr, &options);
  const enum cb_status s = plan_status(&csr, settings, "sm_90", message);
  cb_csr_release(&csr);
  return s;
}

static void expect_equal(const struct product *product, const struct product *first) {
  struct cb_diag diag = {0};
  struct cb_text json = {0}, first_json = {0};
  assert_ok(cb_plan_json(product->plan, &json, &diag));
  assert_ok(cb_plan_json(first->plan, &first_json, &diag));
  assert_string_equal(cb_text_string(&json), cb_text_string(&first_json));
  assert_string_equal(product->source.text, first->source.text);
  assert_int_equal(product->plan->cost.ns, first->plan->cost.ns);
  assert_int_equal(product->blob.length, first->blob.length);
  assert_memory_equal(product->blob.bytes, first->blob.bytes, (size_t)product->blob.length);
  cb_text_release(&json);
  cb_text_release(&first_json);
}

void check_threads(const char *matrix, const char *settings) {
  omp_set_num_threads(1);
  struct product first = product_of(matrix, settings);
  for (int threads = 2; threads <= 5; threads += 3) {
    omp_set_num_threads(threads);
    struct product product = product_of(matrix, settings);
    expect_equal(&product, &first);
    product_release(&product);
  }
  product_release(&first);
  omp_set_num_threads(1);
}

/* From analysis to text, with the nth allocation failing. Returns how many allocations there were. */
static uint64_t plan_with_failure(const struct cb_csr *csr, const struct cb_options *options, uint64_t nth,
                                  enum cb_status *status) {
  static const struct cb_label label = {"test", "test", {1, 2}};
  struct cb_diag diag = {0};
  struct cb_target target;
  struct cb_plan *plan = NULL;
  struct cb_assignment *assignment = NULL;
  struct cb_blob blob = {0};
  struct cb_source source = {0};
  assert_ok(cb_target_find(&target, "sm_90", &diag));
  cb_memory_fail_at(nth, nth % 2 == 0);
  enum cb_status s = cb_plan_build(&plan, &assignment, csr, &target, options, &diag);
  if (!s) s = cb_pack(&blob, plan, assignment, csr, label.pattern, &diag);
  if (!s) s = cb_source_emit(&source, plan, &label, &blob, CB_EMBED_ALWAYS, &diag);
  const uint64_t made = cb_memory_fail_at(0, 0);
  if (s && s != CB_ERR_MEMORY) fail_msg("allocation %d: %s", (int)nth, diag.message);
  cb_source_release(&source);
  cb_blob_release(&blob);
  cb_assignment_free(assignment);
  cb_plan_free(plan);
  *status = s;
  return made;
}

int check_allocations(struct cb_csr csr, const char *settings) {
  struct cb_options options;
  enum cb_status s;
  int failures = 0;
  omp_set_num_threads(1);
  set_options(&options, settings);
  for (uint64_t nth = 1; plan_with_failure(&csr, &options, nth, &s) >= nth; nth++) failures += s == CB_ERR_MEMORY;
  assert_int_equal(s, CB_OK);
  cb_csr_release(&csr);
  return failures;
}

void check_new_values(struct product *product) {
  struct cb_diag diag = {0};
  struct cb_blob fresh = {0};
  for (int64_t k = 0; k < product->csr->nnz; k++) product->csr->values[k] = (double)(3 * k) - 7;
  assert_ok(cb_pack_values(&product->blob, product->plan, product->assignment, product->csr->values, &diag));
  const struct cb_hash pattern = cb_csr_pattern_hash(product->csr);
  assert_ok(cb_pack(&fresh, product->plan, product->assignment, product->csr, pattern, &diag));
  assert_int_equal(fresh.length, product->blob.length);
  assert_memory_equal(fresh.bytes, product->blob.bytes, (size_t)fresh.length);
  cb_blob_release(&fresh);
}

/* ---- products against the oracle */

struct product *gather_matrix(struct gathered *gathered, struct cb_csr csr, const char *name, const char *settings) {
  if (gathered->count == gathered->room) {
    gathered->room = 2 * gathered->room + 32;
    gathered->products = realloc(gathered->products, (size_t)gathered->room * sizeof *gathered->products);
    gathered->names = realloc(gathered->names, (size_t)gathered->room * sizeof *gathered->names);
    assert_true(gathered->products && gathered->names);
  }
  const int number = gathered->count++;
  snprintf(gathered->names[number], sizeof *gathered->names, "%.100s %.150s", name, settings);
  gathered->products[number] = product_of_matrix(csr, settings);
  return &gathered->products[number];
}

struct product *gather(struct gathered *gathered, const char *matrix, const char *settings) {
  return gather_matrix(gathered, matrix_of(matrix), matrix, settings);
}

void gather_kinds(struct gathered *gathered, const char *matrix, const char *settings) {
  static const char *const kinds[] = {"type=f64 form=ax",  "type=f32 form=ax",    "type=f64 form=add",
                                      "type=f32 form=add", "type=f64 form=axpby", "type=f32 form=axpby"};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    char text[256];
    snprintf(text, sizeof text, "%s %s", settings, kinds[i]);
    gather(gathered, matrix, text);
  }
}

/* Compiles and runs all; the reports are the caller's. */
static struct cb_verify_report *verify_products(const struct gathered *gathered) {
  const size_t count = (size_t)gathered->count;
  struct cb_verify_case *cases = calloc(count, sizeof *cases);
  struct cb_verify_report *reports = calloc(count, sizeof *reports);
  struct cb_verify_options options;
  struct cb_diag diag = {0};
  assert_true(cases && reports);
  fast_options(&options);
  options.host.batch = 128;
  struct cb_host *host = kernel_host(&options.host);
  for (size_t c = 0; c < count; c++) {
    const struct product *one = &gathered->products[c];
    cases[c] = (struct cb_verify_case){one->csr, one->plan, one->assignment, &one->source, &one->blob, "test"};
  }
  assert_ok(cb_verify_batch(host, cases, gathered->count, &options, reports, &diag));
  print_message("%d kernels: compile %.1f s, run %.1f s\n", gathered->count, reports[0].compile_seconds,
                reports[0].run_seconds);
  free(cases);
  return reports;
}

static void release_gathered(struct gathered *gathered) {
  for (int i = 0; i < gathered->count; i++) product_release(&gathered->products[i]);
  free(gathered->products);
  free(gathered->names);
  *gathered = (struct gathered){0};
}

void verify_gathered(struct gathered *gathered) {
  struct cb_verify_report *reports = verify_products(gathered);
  int failures = 0;
  for (int i = 0; i < gathered->count; i++)
    if (reports[i].status && ++failures < 10)
      print_error("%s\n  %s\n  %s\n", gathered->names[i], gathered->products[i].plan->line, reports[i].message);
  free(reports);
  release_gathered(gathered);
  assert_int_equal(failures, 0);
}

void verify_kinds(const char *const (*cases)[2], size_t count, const char *recipe) {
  struct gathered gathered = {0};
  for (size_t c = 0; c < count; c++) {
    char settings[200];
    snprintf(settings, sizeof settings, "recipe=%s %s", recipe, cases[c][1]);
    gather_kinds(&gathered, cases[c][0], settings);
  }
  verify_gathered(&gathered);
}

static void apply_change(struct product *product, const struct change *change) {
  char *text = replaced(product->source.text + product->source.body, change->words, change->instead, 1);
  if (!text) fail_msg("no '%s' in the text for %s", change->words, change->matrix);
  cb_source_release(&product->source);
  product->source = (struct cb_source){.text = text, .length = (int64_t)strlen(text)};
}

void check_changes_are_seen(const struct change *changes, size_t count, const char *recipe) {
  struct gathered gathered = {0};
  int missed = 0;
  for (size_t c = 0; c < count; c++) {
    char settings[200];
    snprintf(settings, sizeof settings, "recipe=%s %s", recipe, changes[c].settings);
    apply_change(gather(&gathered, changes[c].matrix, settings), &changes[c]);
  }
  struct cb_verify_report *reports = verify_products(&gathered);
  for (size_t c = 0; c < count; c++)
    if (reports[c].status != CB_ERR_WRONG && ++missed) print_error("'%s' is not missed\n", changes[c].words);
  free(reports);
  release_gathered(&gathered);
  assert_int_equal(missed, 0);
}
