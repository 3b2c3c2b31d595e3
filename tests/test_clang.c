// SPDX-License-Identifier: Apache-2.0
/* verify --clang: kernels of all recipes break no rule, and a breach of each rule that is planted in a kernel is found
 * in its line; what libclang says of a text that is no CUDA; memory that runs out.
 *
 * CBGEN_CLANG_ROUNDS=N goes N times through the recipes, each time with other matrices, types, forms and semirings. */
#include "kernels.h"
#include "recipes.h"
#include "skips.h"

#include "runtime/verify/clang/clang.h"

static const char *const forms[] = {"ax", "add", "axpby"};
static const char *const semirings[] = {"plus-times", "min-plus", "max-times", "or-and"};
static const char *const values[] = {"uniform", "ones", "tenths"};
static const char *const matrices[] = {
    "random,rows=70,cols=90,density=0.3",
    "diagonals,n=140,count=7,spread=60,fill=0.7",
    "explicit_zeros,rows=90,cols=90,density=0.1,zeros=0.4",
    "block,blocks_r=20,blocks_c=20,r=3,c=3,per_row=4,fill=0.9",
    "long_row,rows=120,cols=3000,per_row=3,long_rows=2,long_length=2500",
    "rmat,scale=8,edge_factor=6",
    "stencil7,n=6",
    "hypersparse,rows=900,cols=900,keep=0.02,per_row=3",
    "empty,rows=100,cols=70",
    "one_row,cols=1000",
    "kkt,n=6",
    "powerlaw,rows=150,cols=400,max=350,min=0",
    "road,n=16",
};
enum { MATRICES = sizeof matrices / sizeof *matrices };

static struct cb_clang *open_clang(void) {
  struct cb_clang *clang = NULL;
  struct cb_diag diag = {0};
  const enum cb_status s = cb_clang_open(&clang, NULL, &diag);
  if (s == CB_ERR_MISSING) skip_because("there is no libclang");
  if (s) fail_msg("%s", diag.message);
  return clang;
}

static void print_findings(const struct cb_clang_report *report) {
  for (int i = 0; i < report->findings_count && i < CB_CLANG_FINDINGS; i++)
    print_error("  %d:%d: %s: %s\n", report->findings[i].line, report->findings[i].column, report->findings[i].rule,
                report->findings[i].message);
}

/* ---- kernels as they are */

/* The kernel that `number` stands for; 0: the recipe refuses its matrix. */
static int make_numbered(struct kernel *kernel, const char *recipe, int number) {
  struct cb_options options;
  struct cb_diag diag = {0};
  char settings[SETTINGS + 128], matrix[160];
  const int plain = number % 3 != 0, round = number / 7;
  snprintf(matrix, sizeof matrix, "%s,values=%s", matrices[(number + round) % MATRICES], values[round % 3]);
  snprintf(settings, sizeof settings, "%s type=%s form=%s values=%s semiring=%s%s%s", recipe,
           cb_precision_names[number % CB_PRECISION_COUNT], forms[number % 3], number % 2 ? "fixed" : "data",
           plain ? "plus-times" : semirings[number / 3 % 4], plain ? "" : " atomics=off",
           plain && number % 4 == 1 ? " vectors=8 copy-x=on" : "");
  *kernel = (struct kernel){0};
  snprintf(kernel->name, sizeof kernel->name, "%.100s %.150s", matrix, settings);
  set_options(&options, settings);
  if (cb_matrix_generate(&kernel->csr, matrix, &diag)) fail_msg("%s: %s", matrix, diag.message);
  const enum cb_status s = make_kernel(kernel, &options, &diag);
  if (s && s != CB_ERR_UNSUPPORTED && s != CB_ERR_LIMIT && s != CB_ERR_ARGUMENT)
    fail_msg("%s: %s", kernel->name, diag.message);
  return !s;
}

static int check_numbered(const struct cb_clang *clang, const char *recipe, int number, int *checked) {
  struct kernel kernel;
  struct cb_clang_report report = {0};
  struct cb_diag diag = {0};
  if (make_numbered(&kernel, recipe, number)) {
    assert_ok(cb_clang_check(&report, clang, kernel.source.text, kernel.plan, &diag));
    if (report.findings_count) print_error("%s\n", kernel.name);
    print_findings(&report);
    *checked += report.functions > 0 && (report.accesses > 0 || !kernel.plan->regions_count);
  }
  release_kernel(&kernel);
  return report.findings_count;
}

static void kernels_of_all_recipes_break_no_rule(void **state) {
  struct cb_clang *clang = open_clang();
  const char *rounds = getenv("CBGEN_CLANG_ROUNDS");
  char settings[SETTINGS];
  int findings = 0, checked = 0;
  (void)state;
  for (int round = 0; round < (rounds ? atoi(rounds) : 1); round++)
    for (int number = 0; next_settings(settings, number, rounds ? 5 : 0); number++)
      findings += check_numbered(clang, settings, number + 101 * round, &checked);
  cb_clang_close(clang);
  assert_int_equal(findings, 0);
  assert_true(checked > 30);
}

/* ---- planted breaches */

#define MULTIPLY "CBGEN_DEVICE void multiply(Arrays arrays, const Vectors &vectors, int thread_block) {"

struct breach {
  const char *matrix, *settings, *rule;
  const char *old, *new; /* the first of the old words behind the prelude becomes the new ones */
  int down;              /* lines from that place to the finding's */
};

static const char uneven[] = "long_row,rows=120,cols=3000,per_row=3,long_rows=2,long_length=2500";
static const char hubs[] = "rmat,scale=8,edge_factor=6";

static const struct breach breaches[] = {
    {"stencil7,n=6", "recipe=sell form=ax", "atomics", "vectors.y[row] = vector_t(sum);",
     "atomicAdd(vectors.y + row, sum);", 0},
    {uneven, "recipe=sell form=ax atomics=on", "atomics", MULTIPLY,
     MULTIPLY "\n  atomicAdd(vectors.carry_sums, zero());", 1},
    {"stencil7,n=6", "recipe=sell form=ax", "y", "commit(vectors, row, sum);", "vectors.y[row] = sum;", 0},
    {"stencil7,n=6", "recipe=dia form=ax", "y", "load_x(vectors, ", "(vectors.x[0], load_x)(vectors, ", 0},
    {"stencil7,n=6", "recipe=dia form=ax", "y", "  wait_for_previous();", "  y[0] = 0;", 0},
    {"random,rows=70,cols=90,density=0.3", "recipe=sell bake-limit=0", "arrays", MULTIPLY,
     MULTIPLY "\n  if (arrays.values[0] != 0) return;", 1},
    {"random,rows=70,cols=90,density=0.3", "recipe=sell bake-limit=0", "arrays", MULTIPLY,
     MULTIPLY "\n  *(sum_t *)arrays.values = 0;", 1},
    {"random,rows=70,cols=90,density=0.3", "recipe=sell bake-limit=0", "arrays", MULTIPLY,
     MULTIPLY "\n  arrays.values = arrays.values + 1;", 1},
    {"stencil7,n=6", "recipe=sell", "constants", "constexpr int kRows",
     "constexpr int kSpare = 1;  // plan: none\nconstexpr int kRows", 0},
    {"stencil7,n=6", "recipe=sell", "constants", "constexpr int kBatch = ", "constexpr int kBatch = 1", 0},
    {"random,rows=70,cols=90,density=0.3", "recipe=sell type=split-f64", "constants", "constexpr int64_t kRests = ",
     "constexpr int64_t kRests = 1", 0},
    {"stencil7,n=6", "recipe=sell", "constants", ";  // matrix: rows", ";  /* matrix */  ", 0},
    {hubs, "recipe=hot hot-columns=20", "barriers", "__syncthreads();", "if (threadIdx.x < 32) __syncthreads();", 0},
    {hubs, "recipe=hot hot-columns=20", "barriers", "__syncthreads();",
     "if (threadIdx.x / 32 == 1) return;\n  __syncthreads();", 1},
    {hubs, "recipe=merge", "barriers", "__syncwarp();", "if (threadIdx.x % 32) __syncwarp();", 0},
    {hubs, "recipe=hot hot-columns=20", "barriers", "__syncthreads();",
     "for (int i = (int)threadIdx.x; i < 99; i += 7) __syncthreads();", 0},
    {"random,rows=70,cols=90,density=0.3", "recipe=sell bake-limit=0", "bounds", MULTIPLY,
     MULTIPLY "\n  for (int i = 0; i < int(value(arrays, 3)); i++) commit(vectors, thread_block, zero());", 1},
    {"stencil7,n=6", "recipe=dia form=axpby", "bounds", "  wait_for_previous();",
     "  for (int i = 0; i < int(alpha); i++) wait_for_previous();", 0},
    {"stencil7,n=6", "recipe=sell", "device", "struct Vectors {", "struct Vectors ( {", 0},
    {"stencil7,n=6", "recipe=sell", "host", "cudaFree(matrix->memory);", "cudaFree(matrix->spare);", 0},
};
enum { BREACHES = sizeof breaches / sizeof *breaches };

/* The text with the breach in it; *line: where it must be found. NULL: the old words are not there. */
static char *plant(const char *text, const struct breach *breach, int *line) {
  const char *const at = strstr(cb_source_behind_prelude(text), breach->old);
  struct cb_text changed = {0};
  if (!at) return NULL;
  *line = 1 + breach->down;
  for (const char *c = text; c < at; c++) *line += *c == '\n';
  cb_text_add_bytes(&changed, text, (size_t)(at - text));
  cb_text_add_string(&changed, breach->new);
  cb_text_add_string(&changed, at + strlen(breach->old));
  return cb_text_detach(&changed);
}

static int is_found(const struct cb_clang_report *report, const char *rule, int line) {
  for (int i = 0; i < report->findings_count && i < CB_CLANG_FINDINGS; i++)
    if (!strcmp(report->findings[i].rule, rule) && report->findings[i].line == line && report->findings[i].column > 0)
      return 1;
  return 0;
}

static void a_planted_breach_is_found_in_its_line(void **state) {
  struct cb_clang *clang = open_clang();
  struct cb_clang_report report;
  struct cb_diag diag = {0};
  int missed = 0;
  (void)state;
  for (int i = 0; i < BREACHES; i++) {
    int line = 0;
    struct product product = product_of(breaches[i].matrix, breaches[i].settings);
    char *text = plant(product.source.text, &breaches[i], &line);
    if (!text) fail_msg("breach %d: '%s' is not in the text", i, breaches[i].old);
    assert_ok(cb_clang_check(&report, clang, text, product.plan, &diag));
    if (!is_found(&report, breaches[i].rule, line)) {
      print_error("breach %d of %s is not found in line %d\n", i, breaches[i].rule, line);
      print_findings(&report);
      missed++;
    }
    cb_free(text);
    product_release(&product);
  }
  cb_clang_close(clang);
  assert_int_equal(missed, 0);
}

/* ---- what is no kernel, and what is not there */

static void more_findings_than_are_kept_are_counted(void **state) {
  struct cb_clang *clang = open_clang();
  struct cb_clang_report report;
  struct cb_diag diag = {0};
  struct cb_text text = {0};
  (void)state;
  for (int i = 0; i < 3 * CB_CLANG_FINDINGS; i++) cb_text_add(&text, "constexpr int kSpare%d = %d;  // test\n", i, i);
  assert_ok(cb_clang_check(&report, clang, cb_text_string(&text), NULL, &diag));
  assert_true(report.findings_count >= 3 * CB_CLANG_FINDINGS); /* libclang says some of it as well */
  assert_int_equal(report.findings[CB_CLANG_FINDINGS - 1].line, CB_CLANG_FINDINGS);
  cb_text_release(&text);
  assert_ok(cb_clang_check(&report, clang, "", NULL, &diag));
  assert_int_equal(report.findings_count, 0);
  assert_ok(cb_clang_check(&report, clang, "\x7f\xff{{{ no C++ \x01", NULL, &diag));
  assert_true(report.findings_count > 0);
  cb_clang_close(clang);
}

static void a_missing_library_is_said(void **state) {
  struct cb_clang *clang = NULL;
  struct cb_diag diag = {0};
  (void)state;
  assert_int_equal(cb_clang_open(&clang, "/nonexistent/libclang.so", &diag), CB_ERR_MISSING);
  assert_null(clang);
  assert_non_null(strstr(diag.message, "libclang is not at '/nonexistent/libclang.so'"));
  assert_non_null(strstr(diag.message, "CBGEN_LIBCLANG"));
  assert_int_equal(cb_clang_open(&clang, "libm.so.6", &diag), CB_ERR_MISSING); /* another library */
  assert_null(clang);
}

static const char small_text[] =
    "constexpr int kRows = 3;  // matrix: rows\n"
    "struct Vectors {\n  double *y;\n};\n"
    "static __device__ void commit(const Vectors &vectors, int row) { vectors.y[row] = kRows; }\n"
    "__global__ void all(double *y) {\n  const Vectors vectors = {y};\n"
    "  commit(vectors, (int)threadIdx.x);\n}\n";

static void memory_may_run_out(void **state) {
  struct cb_clang *clang = open_clang();
  struct cb_clang_report report;
  struct cb_diag diag = {0};
  (void)state;
  cb_memory_fail_at(0, 0);
  assert_ok(cb_clang_check(&report, clang, small_text, NULL, &diag));
  print_findings(&report);
  assert_int_equal(report.findings_count, 0);
  const uint64_t allocations = cb_memory_fail_at(0, 0);
  assert_true(allocations > 5 && allocations < 100);
  for (uint64_t nth = 1; nth <= allocations; nth++) {
    cb_memory_fail_at(nth, nth % 2);
    const enum cb_status s = cb_clang_check(&report, clang, small_text, NULL, &diag);
    cb_memory_fail_at(0, 0);
    assert_int_equal(s, CB_ERR_MEMORY);
  }
  cb_clang_close(clang);
}

int main(void) {
  omp_set_num_threads(1); /* small matrices */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(kernels_of_all_recipes_break_no_rule),
      cmocka_unit_test(a_planted_breach_is_found_in_its_line),
      cmocka_unit_test(more_findings_than_are_kept_are_counted),
      cmocka_unit_test(a_missing_library_is_said),
      cmocka_unit_test(memory_may_run_out),
  };
  return exit_code_of(cmocka_run_group_tests_name("clang", tests, NULL, NULL));
}
