// SPDX-License-Identifier: Apache-2.0
/* A thousand random small matrices, each with random options, through analysis, generation and the host
 * execution under AddressSanitizer and UBSan. They are made symmetric where the options promise it.
 *
 * Everything follows from a kernel's number: CBGEN_RANDOM_FIRST and CBGEN_RANDOM_COUNT choose which numbers
 * run, so a failure "random 2711" is repeated alone with CBGEN_RANDOM_FIRST=2711 CBGEN_RANDOM_COUNT=1. Who changes a
 * layout lets CBGEN_RANDOM_COUNT=20000 run once. */
#include "kernels.h"
#include "recipes.h"
#include "symmetric.h"

enum { COUNT = 1000 };

static int64_t between(uint64_t *state, int64_t least, int64_t most) {
  return least + (int64_t)(draw(state) % (uint64_t)(most - least + 1));
}

/* Small numbers are frequent: an upper end is drawn first. */
static int64_t skewed(uint64_t *state, int64_t most) {
  return between(state, 0, between(state, 0, most));
}

/* ---- the matrix: rectangles of entries, each filled to a share, on top of each other (duplicates are
 * summed) */

static int64_t count_cells(const int64_t box[4]) {
  return (box[1] - box[0]) * (box[3] - box[2]);
}

static void draw_box(uint64_t *state, int64_t rows, int64_t cols, int64_t box[4]) {
  box[0] = between(state, 0, rows - 1);
  box[1] = between(state, box[0] + 1, rows);
  box[2] = between(state, 0, cols - 1);
  box[3] = between(state, box[2] + 1, cols);
}

/* What a matrix's values are drawn from, so that fixed ones have something in common. */
static double draw_number(uint64_t *state, uint64_t palette) {
  switch (palette % 8) {
  case 0:
    return 1;
  case 1:
    return (double)between(state, -100, 100); /* i8 */
  case 2:
    return (double)between(state, -30000, 30000); /* i16 */
  case 3:
    return (double)between(state, -1000, 1000) / 4; /* f16 */
  case 4:
    return (double)(float)(between(state, -1000000, 1000000) / 7919.0);
  case 5:
    return (double)between(state, 1, 4) / 3; /* few */
  default:
    return (double)between(state, -1000000, 1000000) / 7919;
  }
}

static void fill_box(uint64_t *state, struct cb_coo *coo, const int64_t box[4], uint64_t palette) {
  const uint64_t share = draw(state) % 4 ? draw(state) % 101 : 100; /* percent */
  for (int64_t i = box[0]; i < box[1]; i++) {
    for (int64_t j = box[2]; j < box[3]; j++) {
      if (draw(state) % 100 >= share) continue;
      coo->row_idx[coo->count] = (int32_t)i;
      coo->col_idx[coo->count] = (int32_t)j;
      coo->values[coo->count++] = palette % 8 == 0 || draw(state) % 16 ? draw_number(state, palette) : 0;
    }
  }
}

static void draw_matrix(uint64_t *state, struct cb_csr *csr) {
  struct cb_coo coo = {.rows = skewed(state, 300), .cols = skewed(state, 300)};
  struct cb_diag diag = {0};
  int64_t boxes[4][4] = {{0}}, cells = 0;
  const int count = coo.rows && coo.cols ? (int)between(state, 0, 4) : 0;
  for (int b = 0; b < count; b++) {
    draw_box(state, coo.rows, coo.cols, boxes[b]);
    cells += count_cells(boxes[b]);
  }
  coo.row_idx = cb_alloc((size_t)cells, sizeof *coo.row_idx);
  coo.col_idx = cb_alloc((size_t)cells, sizeof *coo.col_idx);
  coo.values = cb_alloc((size_t)cells, sizeof *coo.values);
  const uint64_t palette = draw(state);
  for (int b = 0; b < count; b++) fill_box(state, &coo, boxes[b], palette);
  if (cb_csr_from_coo(csr, &coo, &diag)) fail_msg("%s", diag.message);
}

/* ---- the options: each left alone, or drawn; sizes near the matrix's own */

/* A layout comes as often as it has options: then each option is met equally often. */
static const struct cb_layout *draw_layout(uint64_t *state) {
  int all = 0, i = 0;
  for (int l = 0; cb_layout_table[l]; l++) all += cb_layout_table[l]->options_count;
  for (int number = (int)between(state, 0, all - 1); number >= cb_layout_table[i]->options_count; i++)
    number -= cb_layout_table[i]->options_count;
  return cb_layout_table[i];
}

/* Its recipes in turn, now and then the search. */
static const struct cb_recipe *draw_recipe(uint64_t *state, const struct cb_layout *layout) {
  int count = 0;
  while (layout->recipes[count].name) count++;
  return draw(state) % 16 ? &layout->recipes[between(state, 0, count - 1)] : cb_recipe_at(0);
}

/* One in this number has the option drawn. Kernels for several vectors take as many times as long. */
static uint64_t rarity(const struct cb_option *option) {
  return strcmp(option->name, "vectors") ? 2 : 16;
}

static void draw_options(uint64_t *state, struct cb_options *options) {
  const struct cb_option *option;
  do {
    const struct cb_recipe *recipe = draw_recipe(state, draw_layout(state));
    cb_options_default(options);
    options->recipe = recipe->name;
    for (int i = 0; (option = cb_option_at(i)); i++)
      if (!option->is_text && draw(state) % rarity(option) == 1) cb_option_set(options, i, draw_option(state, option));
    /* random entries are what few layouts are made for */
    if (recipe->lenient && draw(state) % 8) cb_options_apply(options, recipe->lenient, NULL);
  } while (cb_options_check(options, NULL));
}

static int from_environment(const char *name, int standard) {
  const char *text = getenv(name);
  return text && *text ? atoi(text) : standard;
}

static void test_random(void **state) {
  const int first = from_environment("CBGEN_RANDOM_FIRST", 0),
            count = from_environment("CBGEN_RANDOM_COUNT", COUNT);
  struct cb_verify_options options;
  struct kernel_batch batch;
  (void)state;
  cb_verify_options_default(&options);
  options.host.optimize = from_environment("CBGEN_RANDOM_O", 0);
  options.host.batch = from_environment("CBGEN_RANDOM_BATCH", 128);
  options.host.debug = count == 1;
  options.host.compiler = fast_compiler();
  options.orders = 2;
  open_batch(&batch, &options);
  for (int number = first; number < first + count; number++) {
    struct kernel *kernel = next_kernel(&batch);
    struct cb_options drawn;
    uint64_t seed = (uint64_t)number * 0x9e3779b97f4a7c15u;
    snprintf(kernel->name, sizeof kernel->name, "random %d", number);
    draw_matrix(&seed, &kernel->csr);
    draw_options(&seed, &drawn);
    if (cb_promises_symmetry(&drawn)) {
      const enum cb_symmetry_option symmetry = (enum cb_symmetry_option)drawn.symmetric;
      kernel->csr = symmetrised(kernel->csr, symmetry);
      fit_values(&kernel->csr, &drawn); /* imaginary parts of any values, made to fit */
      cb_symmetry_mirror_values(kernel->csr.values, &kernel->csr, symmetry);
    }
    add_kernel(&batch, &drawn);
  }
  close_batch(&batch);
  assert_int_equal(batch.failures, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};
  return cmocka_run_group_tests_name("random kernels", tests, NULL, NULL);
}
