// SPDX-License-Identifier: Apache-2.0
/* Families: a kernel that gets all sizes as data has the bits of the specialised one, for every shape; its text is the
 * same for all matrices of one structure, and no number of a matrix is in it. */
#include "hosts.h"
#include "kernels.h"
#include "recipes.h"
#include "scratch.h"

#include "base/real.h"
#include "codegen/family.h"

#include <math.h>

static const char *const shapes[] = {
    "empty,rows=7,cols=0",
    "empty,rows=100,cols=70",
    "diagonal,n=1",
    "one_row,cols=1000",
    "one_column,rows=1000",
    "dense_row,n=300,row=150",
    "dense_column,n=300,col=299",
    "arrow,n=200,width=3",
    "diagonal,n=256",
    "random,rows=127,cols=129,density=0.06",
    "random,rows=257,cols=33,density=0.1",
    "random,rows=150,cols=170,density=0.001",
    "random,rows=70,cols=90,density=0.6",
    "dense,rows=50,cols=40",
    "tridiagonal,n=130",
    "stencil9,n=9",
    "stencil27,n=4",
    "stencil7,n=8",
    "fe3,n=3",
    "road,n=16",
    "rmat,scale=9,edge_factor=8",
    "diagonals,n=140,count=7,spread=60,fill=0.7",
    "band,n=256,half=20,per_row=9",
    "powerlaw,rows=150,cols=400,max=350,min=0",
    "block,blocks_r=20,blocks_c=20,r=3,c=3,per_row=4,fill=0.9",
    "hypersparse,rows=900,cols=900,keep=0.02,per_row=3",
    "explicit_zeros,rows=90,cols=90,density=0.1,zeros=0.4",
    "long_row,rows=120,cols=3000,per_row=3,long_rows=2,long_length=2500",
    "random,rows=40,cols=70000,per_row=9",
};

enum { SHAPES = sizeof shapes / sizeof *shapes, MOST_PAIRS = 320 };

/* Both texts of one matrix, and what they multiply. */
struct pair {
  struct kernel kernel;
  struct cb_source family;
  void *x[2], *y, *result[2][2]; /* of finite x and of one with NaN and infinity; by tier */
};

/* Whether there are both. */
static int make_pair(struct pair *pair, const char *shape, const char *words, int number) {
  struct cb_diag diag = {0};
  struct cb_options options;
  char matrix[160];
  set_family_options(&options, words, number);
  snprintf(matrix, sizeof matrix, "%s,values=%s,seed=%d", shape, number % 2 ? "signed" : "uniform", number);
  snprintf(pair->kernel.name, sizeof pair->kernel.name, "%.120s %.120s", matrix, words);
  if (cb_matrix_generate(&pair->kernel.csr, matrix, &diag)) fail_msg("%s: %s", matrix, diag.message);
  const struct cb_label label = {"test", "m", cb_csr_pattern_hash(&pair->kernel.csr)};
  enum cb_status s = make_kernel(&pair->kernel, &options, &diag);
  if (!s) s = cb_family_check(pair->kernel.plan, &diag);
  if (s == CB_ERR_UNSUPPORTED || s == CB_ERR_LIMIT) return 0;
  if (!s)
    s = cb_source_emit_tier(&pair->family, pair->kernel.plan, &label, &pair->kernel.blob, CB_EMBED_NEVER,
                            CB_TIER_FAMILY, &diag);
  if (s) fail_msg("%s: %s", pair->kernel.name, diag.message);
  return 1;
}

/* Counts the layouts of the pair's regions, by their places in the table; returns 1. */
static int note_layouts(const struct pair *pair, int *met) {
  for (int r = 0; r < pair->kernel.plan->regions_count; r++)
    for (int i = 0; cb_layout_table[i]; i++)
      met[i] += !strcmp(cb_layout_table[i]->name, pair->kernel.plan->regions[r].layout);
  return 1;
}

static void make_vectors(struct pair *pair) {
  const struct cb_plan *plan = pair->kernel.plan;
  const size_t size = cb_type_size(plan->vector_type);
  for (int k = 0; k < 2; k++) {
    pair->x[k] = calloc((size_t)plan->cols + 1, size);
    for (int64_t i = 0; i < plan->cols; i++) cb_real_set(pair->x[k], plan->vector_type, i, cb_selftest_x((uint64_t)i));
    for (int t = 0; t < 2; t++) pair->result[k][t] = calloc((size_t)plan->rows + 1, size);
  }
  if (plan->cols) cb_real_set(pair->x[1], plan->vector_type, plan->cols / 2, NAN);
  if (plan->cols) cb_real_set(pair->x[1], plan->vector_type, 0, INFINITY);
  pair->y = calloc((size_t)plan->rows + 1, size);
  for (int64_t i = 0; i < plan->rows; i++) cb_real_set(pair->y, plan->vector_type, i, 0.75);
}

static void release_pair(struct pair *pair) {
  for (int k = 0; k < 2; k++) {
    free(pair->x[k]);
    for (int t = 0; t < 2; t++) free(pair->result[k][t]);
  }
  free(pair->y);
  cb_source_release(&pair->family);
  release_kernel(&pair->kernel);
  *pair = (struct pair){0};
}

static struct cb_host_kernel host_kernel(const struct pair *pair, int family) {
  const struct cb_source *source = family ? &pair->family : &pair->kernel.source;
  return (struct cb_host_kernel){.text = source->text + source->body,
                                 .symbol = "m",
                                 .vector_type = pair->kernel.plan->vector_type,
                                 .form = family ? CB_FORM_AXPBY : pair->kernel.plan->form};
}

/* Kernel 2 p is the specialised one of pair p, kernel 2 p + 1 its family's. */
static struct cb_host_job host_job(struct pair *pair, int kernel, int k) {
  const struct cb_plan *plan = pair->kernel.plan;
  const int64_t size = (int64_t)cb_type_size(plan->vector_type);
  return (struct cb_host_job){.kernel = kernel,
                              .data = pair->kernel.blob.bytes,
                              .data_bytes = pair->kernel.blob.length,
                              .x = pair->x[k],
                              .y = pair->y,
                              .x_bytes = plan->cols * size,
                              .y_bytes = plan->rows * size,
                              .alpha = plan->form == CB_FORM_AXPBY ? -1.625 : 1,
                              .beta = plan->form == CB_FORM_AXPBY ? 0.5 : plan->form == CB_FORM_ADD,
                              .seed = (uint64_t)kernel,
                              .products = 2,
                              .repeatable = 1,
                              .result = pair->result[k][kernel % 2]};
}

static int compare(const struct pair *pair, const struct cb_host_job *jobs) {
  const size_t bytes = (size_t)jobs->y_bytes;
  for (int j = 0; j < 4; j++)
    if (jobs[j].outcome != CB_HOST_DONE) {
      print_error("%s, %s: %s\n", pair->kernel.name, j % 2 ? "family" : "specialised", jobs[j].message);
      return 0;
    }
  for (int k = 0; k < 2; k++)
    if (memcmp(pair->result[k][0], pair->result[k][1], bytes)) {
      print_error("%s\n  %s: other bits%s\n", pair->kernel.name, pair->kernel.plan->line, k ? " of x with NaN" : "");
      return 0;
    }
  return 1;
}

static void run_pairs(struct cb_host *host, struct pair *pairs, int count, int *wrong) {
  struct cb_host_kernel *kernels = calloc((size_t)count * 2, sizeof *kernels);
  struct cb_host_job *jobs = calloc((size_t)count * 4, sizeof *jobs);
  struct cb_host_program *program = NULL;
  struct cb_diag diag = {0};
  for (int p = 0; p < count; p++) {
    make_vectors(&pairs[p]);
    for (int t = 0; t < 2; t++) kernels[2 * p + t] = host_kernel(&pairs[p], t);
    for (int j = 0; j < 4; j++) jobs[4 * p + j] = host_job(&pairs[p], 2 * p + j % 2, j / 2);
  }
  if (cb_host_build(&program, host, kernels, 2 * count, &diag)) fail_msg("%s", diag.message);
  if (cb_host_run(program, jobs, 4 * count, &diag)) fail_msg("%s", diag.message);
  for (int p = 0; p < count; p++) *wrong += !compare(&pairs[p], &jobs[4 * p]);
  print_message("%d pairs of kernels: %d texts, compiled in %.1f s\n", count, cb_host_build_texts(program),
                cb_host_build_seconds(program));
  cb_host_program_free(program);
  free(jobs);
  free(kernels);
}

/* Every recipe whose layouts have families, with its options in turn, each on a few shapes. */
static void both_tiers_give_the_same_bits(void **state) {
  enum { CROSSINGS = 4, SHAPES_OF_EACH = 3, STEP = 7 };
  struct cb_host_options options;
  static struct pair pairs[MOST_PAIRS];
  char words[SETTINGS];
  int count = 0, wrong = 0, met[64] = {0};
  (void)state;
  omp_set_num_threads(1);
  cb_host_options_default(&options);
  options.compiler = fast_compiler();
  options.sanitize = options.debug = options.optimize = 0;
  struct cb_host *host = kernel_host(&options);
  for (int number = 0; next_settings(words, number, CROSSINGS); number++)
    for (int k = 0; k < SHAPES_OF_EACH && count < MOST_PAIRS; k++) {
      const int shape = (number + STEP * k) % SHAPES;
      if (!make_pair(&pairs[count], shapes[shape], words, number + k)) release_pair(&pairs[count]);
      else count += note_layouts(&pairs[count], met);
    }
  assert_true(count < MOST_PAIRS); /* all settings had their turn */
  for (int i = 0; cb_layout_table[i]; i++) assert_int_equal(met[i] > 0, cb_layout_table[i]->has_family);
  run_pairs(host, pairs, count, &wrong);
  for (int p = 0; p < count; p++) release_pair(&pairs[p]);
  assert_int_equal(wrong, 0);
}

/* The kernel behind starts behind the wait, or as this one ends; where thread blocks are few, at once, as the others'
 * do. A batch of diagonals that is not whole. */
static void both_tiers_let_the_next_kernel_start(void **state) {
  static const char *const cases[][2] = {{"uniform,n=7700,per_row=4", "recipe=sell sell-lanes=4 form=ax"},
                                         {"uniform,n=23100,per_row=4", "recipe=sell sell-lanes=4 form=ax"},
                                         {"random,rows=9000,cols=3000,per_row=4", "recipe=sell sell-vary=on form=ax"},
                                         {"uniform,n=17500,per_row=4", "recipe=merge merge-items=3 form=ax"},
                                         {"random,rows=30000,cols=900,per_row=3", "recipe=merge merge-items=3 form=ax"},
                                         {"diagonals,n=900,count=10,spread=300", "recipe=dia form=ax"}};
  enum { CASES = sizeof cases / sizeof *cases };
  static struct pair pairs[CASES];
  struct cb_host_options options;
  int wrong = 0;
  (void)state;
  cb_host_options_default(&options);
  options.compiler = fast_compiler();
  options.sanitize = options.debug = options.optimize = 0;
  for (int p = 0; p < CASES; p++) assert_true(make_pair(&pairs[p], cases[p][0], cases[p][1], p));
  run_pairs(kernel_host(&options), pairs, CASES, &wrong);
  for (int p = 0; p < CASES; p++) release_pair(&pairs[p]);
  assert_int_equal(wrong, 0);
}

static char *family_of(const char *matrix, const char *words) {
  struct kernel kernel = {0};
  struct cb_options options;
  struct cb_source source;
  struct cb_diag diag = {0};
  set_family_options(&options, words, 0);
  if (cb_matrix_generate(&kernel.csr, matrix, &diag) || make_kernel(&kernel, &options, &diag) ||
      cb_source_family(&source, kernel.plan, &diag))
    fail_msg("%s %s: %s", matrix, words, diag.message);
  char *text = strdup(source.text);
  cb_source_release(&source);
  release_kernel(&kernel);
  return text;
}

/* NVRTC gives constants of a namespace places in global memory. */
static void check_objects(const char *words) {
  static const char *const types[] = {"int", "unsigned", "int64_t", "uint32_t"};
  char *text = family_of("stencil9,n=40", words), line[64];
  assert_non_null(strstr(text, "\nenum : int { k"));
  for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
    snprintf(line, sizeof line, "\nconstexpr %s ", types[t]);
    if (strstr(text, line)) fail_msg("%s: %.60s", words, strstr(text, line) + 1);
  }
  free(text);
}

static void numbers_take_no_memory(void **state) {
  (void)state;
  check_objects("recipe=sell");
  check_objects("recipe=merge");
}

/* ---- the device's text of what the emulation has of its own */

static const char lookup_before[] = "#include <stdint.h>\n#include <string.h>\n#define CBGEN_DEVICE static\n"
                                    "template <class T> static T load(const T *p) { return *p; }\n";
static const char lookup_after[] =
    "int main() {\n"
    "  alignas(4) unsigned char elements[4 * 40 + 4];\n"
    "  for (int i = 0; i < int(sizeof elements); i++) elements[i] = (unsigned char)(37 * i + 11);\n"
    "  for (int bytes = 1; bytes <= 4; bytes *= 2)\n"
    "    for (int first = 0; first < 4; first += bytes)\n"
    "      for (int i = 0; i < 39; i++) {\n"
    "        unsigned element = 0;\n"
    "        memcpy(&element, elements + first + bytes * i, bytes);\n"
    "        if (load_index(elements + first, Index{bytes, 0, 0, int((1ull << 8 * bytes) - 1)}, i) != int(element)) return bytes;\n"
    "      }\n"
    "  for (int i = 0; i < 9; i++)\n"
    "    if (load_index(elements, Index{0, 500, -7, 0}, i) != 500 - 7 * i) return 9;\n"
    "}\n";

static void add_piece(FILE *file, const char *text, const char *from, const char *to) {
  const char *begin = strstr(text, from), *end = begin ? strstr(begin, to) : NULL;
  assert_non_null(end);
  fprintf(file, "%.*s%s", (int)(end - begin), begin, to);
}

/* An index in one, two or four bytes, wherever it lies in a word, or by its rule. */
static void the_device_looks_an_index_up(void **state) {
  char command[1900];
  (void)state;
  assert_int_equal(empty_scratch("test_family", ""), 0);
  char *text = family_of("random,rows=90,cols=700,per_row=7", "recipe=sell");
  FILE *file = fopen(place("lookup.cpp"), "w");
  assert_non_null(file);
  fputs(lookup_before, file);
  add_piece(file, text, "struct Index {", "\n};\n");
  add_piece(file, text, "CBGEN_DEVICE int load_index(", "\n}\n");
  fputs(lookup_after, file);
  assert_int_equal(fclose(file), 0);
  snprintf(command, sizeof command, "%s -std=c++17 '%s' -o '%s' && '%s'", getenv("CXX") ? getenv("CXX") : "c++",
           place("lookup.cpp"), place("lookup"), place("lookup"));
  assert_int_equal(system(command), 0);
  free(text);
}

/* ---- what texts hang on */

/* Pairs of matrices and the settings of one layout; whether they share a text. */
struct sharing {
  const char *one, *other, *words;
  int same;
};

static void check_sharing(const struct sharing *cases, size_t count) {
  for (size_t i = 0; i < count; i++) {
    char *one = family_of(cases[i].one, cases[i].words), *other = family_of(cases[i].other, cases[i].words);
    const int same = strcmp(one, other) == 0;
    if (same != cases[i].same) fail_msg("%s and %s, %s", cases[i].one, cases[i].other, cases[i].words);
    free(one);
    free(other);
  }
}

static void matrices_of_one_structure_share_a_text(void **state) {
  static const struct sharing sell[] = {
      {"random,rows=90,cols=700,per_row=7", "random,rows=90,cols=700,per_row=8", "recipe=sell sell-lanes=1", 1},
      {"random,rows=5001,cols=5000,per_row=7", "random,rows=90,cols=90000,per_row=7", "recipe=sell sell-lanes=1", 0},
      {"random,rows=5001,cols=5000,per_row=7", "random,rows=90,cols=700,per_row=8", "recipe=sell sell-lanes=1", 0},
      {"random,rows=5001,cols=5000,per_row=7", "random,rows=90,cols=700,per_row=2", "recipe=sell sell-lanes=1", 0},
  };
  static const struct sharing dia[] = {
      {"stencil7,n=12", "stencil7,n=20", "recipe=dia", 1},
      {"stencil7,n=12", "stencil5,n=40", "recipe=dia", 0},
  };
  static const struct sharing merge[] = {
      {"random,rows=4000,cols=900,per_row=11", "random,rows=700,cols=3000,per_row=12", "recipe=merge merge-items=5", 1},
      {"random,rows=4000,cols=900,per_row=11", "powerlaw,rows=700,cols=3000,max=2900", "recipe=merge merge-items=3", 0},
  };
  static const struct sharing blocks[] = {{"fe3,n=14", "fe3,n=20", "recipe=blocks block-size=3x3 block-lanes=4", 1}};
  (void)state;
  check_sharing(sell, sizeof sell / sizeof *sell);
  check_sharing(dia, sizeof dia / sizeof *dia);
  check_sharing(merge, sizeof merge / sizeof *merge);
  check_sharing(blocks, sizeof blocks / sizeof *blocks);
}

/* When the kernel behind may start is a size of merge's families, and of sell's for large matrices: each other text of
 * sell's has one answer. */
static void the_next_kernel_starts_as_a_family_says(void **state) {
  static const struct sharing cases[] = {
      {"uniform,n=7000,per_row=4", "uniform,n=7100,per_row=4", "recipe=sell sell-lanes=4", 1}, /* at once */
      {"uniform,n=7000,per_row=12", "uniform,n=65000,per_row=12", "recipe=sell sell-lanes=4", 1}, /* fills the GPU */
      {"uniform,n=7000,per_row=4", "uniform,n=9000,per_row=4", "recipe=sell sell-lanes=4", 0}, /* behind the wait */
      {"uniform,n=9000,per_row=4", "uniform,n=9500,per_row=4", "recipe=sell sell-lanes=4", 1},
      {"uniform,n=9000,per_row=4", "uniform,n=30000,per_row=4", "recipe=sell sell-lanes=4", 0}, /* at the end */
      {"uniform,n=30000,per_row=12", "uniform,n=31000,per_row=12", "recipe=sell sell-lanes=4", 1},
      {"uniform,n=20000,per_row=24", "uniform,n=40000,per_row=24", "recipe=sell sell-lanes=8", 1}, /* large: at once */
      {"uniform,n=700,per_row=4", "uniform,n=17500,per_row=4", "recipe=merge merge-items=3", 1},
  };
  (void)state;
  check_sharing(cases, sizeof cases / sizeof *cases);
  char *once = family_of("uniform,n=7000,per_row=4", "recipe=sell sell-lanes=4"),
       *behind = family_of("uniform,n=9000,per_row=4", "recipe=sell sell-lanes=4"),
       *large = family_of("uniform,n=30000,per_row=4", "recipe=sell sell-lanes=4"),
       *varied = family_of("staircase,n=90", "recipe=sell sell-vary=on"),
       *alone = family_of("arrow,n=600,width=1", "recipe=dia fuse=off sell-lanes=1"),
       *beside = family_of("arrow,n=600,width=1", "recipe=dia fuse=on sell-lanes=1"),
       *merge = family_of("uniform,n=700,per_row=4", "recipe=merge merge-items=3"),
       *cut = family_of("long_row,rows=900,cols=9000,long_length=8000", "recipe=merge");
  const char *const wait = "  wait_behind(row", *const values = "  load_values(arrays, slots, 0, ";
  assert_non_null(strstr(once, "{\n  start_next();\n"));
  assert_true(strstr(once, values) < strstr(once, wait));
  assert_non_null(strstr(once, "load_early(arrays.column_offset + i)"));
  assert_non_null(strstr(once, "load_early_hinted(arrays.values + slot"));
  assert_non_null(strstr(once, "slots = opaque(")); /* places are found once, where registers suffice for it */
  assert_null(strstr(once, "row_of("));
  assert_non_null(strstr(behind, "\n  start_next();\n  arrays.values = after_wait"));
  assert_true(strstr(behind, values) > strstr(behind, wait));
  assert_non_null(strstr(behind, "load_early(arrays.column_offset + i)"));
  assert_non_null(strstr(behind, "(load_hinted(arrays.values + slot"));
  assert_non_null(strstr(large, "  if (sell0_sizes.next_start == 2) start_next();\n"));
  assert_non_null(strstr(large, "  if (arrays.sizes->next_start == 1) start_next();\n"));
  assert_non_null(strstr(large, "row_of(")); /* in whatever order they are */
  assert_null(strstr(large, "load_early"));
  assert_null(strstr(varied, "slots = opaque("));
  assert_null(strstr(varied, "load_early"));
  assert_non_null(strstr(alone, "load_early"));
  assert_null(strstr(beside, "load_early")); /* the launch waits, before all of its regions */
  assert_non_null(strstr(merge, "  if (merge0_sizes.next_start == 2) start_next();\n"));
  assert_non_null(strstr(merge, "  if (arrays.sizes->next_start == 1) start_next();\n"));
  assert_null(strstr(cut, "next_start == 2")); /* beside long rows nothing does */
  free(once);
  free(behind);
  free(large);
  free(varied);
  free(alone);
  free(beside);
  free(merge);
  free(cut);
}

static void no_size_of_a_matrix_is_in_a_text(void **state) {
  (void)state;
  char *text = family_of("diagonals,n=7919,count=6,spread=4999,fill=0.9", "recipe=sell sell-vary=on");
  assert_null(strstr(text, "7919"));
  assert_non_null(strstr(text, "vectors.rows"));
  free(text);
}

static void what_has_no_family_says_why(void **state) {
  static const struct {
    const char *words, *reason;
  } cases[] = {{"recipe=cb", "layout 'cb' has no family of kernels"},
               {"recipe=sell values=fixed", "fixed values are part of a kernel's text"}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct kernel kernel = {0};
    struct cb_options options;
    struct cb_diag diag = {0};
    set_family_options(&options, cases[i].words, 0);
    assert_int_equal(cb_matrix_generate(&kernel.csr, "random,rows=90,cols=90,per_row=9", &diag), CB_OK);
    assert_int_equal(make_kernel(&kernel, &options, &diag), CB_OK);
    assert_int_equal(cb_family_check(kernel.plan, &diag), CB_ERR_UNSUPPORTED);
    assert_string_equal(diag.message, cases[i].reason);
    release_kernel(&kernel);
  }
}

/* Sizes are ints there. */
static void numbers_beyond_an_int_have_no_family(void **state) {
  struct kernel kernel = {0};
  struct cb_options options;
  struct cb_diag diag = {0};
  (void)state;
  set_family_options(&options, "recipe=sell", 0);
  assert_int_equal(cb_matrix_generate(&kernel.csr, "random,rows=90,cols=90,per_row=9", &diag), CB_OK);
  assert_int_equal(make_kernel(&kernel, &options, &diag), CB_OK);
  kernel.plan->regions[0].first_carry_sum = INT32_MAX;
  assert_int_equal(cb_family_check(kernel.plan, &diag), CB_OK);
  kernel.plan->regions[0].first_carry_sum = INT64_C(1) << 31;
  assert_int_equal(cb_family_check(kernel.plan, &diag), CB_ERR_UNSUPPORTED);
  assert_non_null(strstr(diag.message, "too large"));
  kernel.plan->regions[0].first_carry_sum = 0;
  release_kernel(&kernel);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(both_tiers_give_the_same_bits),
      cmocka_unit_test(numbers_take_no_memory),
      cmocka_unit_test(numbers_take_no_memory),
      cmocka_unit_test(the_device_looks_an_index_up),
      cmocka_unit_test(matrices_of_one_structure_share_a_text),
      cmocka_unit_test(the_next_kernel_starts_as_a_family_says),
      cmocka_unit_test(both_tiers_let_the_next_kernel_start),
      cmocka_unit_test(no_size_of_a_matrix_is_in_a_text),
      cmocka_unit_test(what_has_no_family_says_why),
      cmocka_unit_test(numbers_beyond_an_int_have_no_family),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
