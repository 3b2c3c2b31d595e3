// SPDX-License-Identifier: Apache-2.0
/* What lanes and thread blocks hand to each other needs its fences and barriers. From generated text that is right, one
 * fence or barrier after the other is taken out: the emulation must find each of them missing, for one of a few orders,
 * and must never find fault with the text as it is. */
#include "kernels.h"
#include "recipes.h"

#include <unistd.h>

enum { MOST = 64, ORDERS = 8 };

/* What a layout's kernels hand over stands in tests/data/handover/LAYOUT.txt, a case a line: how many fences and
 * barriers its text has, so that a new one is not overlooked; whether only lane 0 stores a carry sum (1), so that the
 * warp barrier of last_to_arrive orders nothing more; the matrix; and the settings. */
struct given {
  int count, lone;
  char matrix[120], options[160];
};
enum { CASES = 16 };

static int read_cases(struct given cases[CASES]) {
  int count = 0;
  for (int l = 0; cb_layout_table[l]; l++) {
    char path[96];
    snprintf(path, sizeof path, "tests/data/handover/%s.txt", cb_layout_table[l]->name);
    FILE *file = fopen(path, "r");
    while (file && count < CASES && fscanf(file, "%d %d %119s %159[^\n]", &cases[count].count, &cases[count].lone,
                                           cases[count].matrix, cases[count].options) == 4)
      count++;
    if (file) assert_true(feof(file)); /* all of it was read */
    if (file) fclose(file);
  }
  return count;
}

struct trials {
  struct kernel whole[CASES];
  struct cb_source sources[MOST];
  struct cb_verify_case all[MOST]; /* the whole ones, and behind each those that lack something */
  const char *lacks[MOST];         /* NULL: nothing */
  int count;
};

static const char *const orderings[] = {"__threadfence();", "__syncwarp();", "__syncthreads();"};

/* The next fence or barrier of the text, and what it is called; NULL: none. */
static char *next_ordering(char *text, const char **name) {
  char *first = NULL;
  for (size_t o = 0; o < sizeof orderings / sizeof *orderings; o++) {
    char *found = strstr(text, orderings[o]);
    if (!found || (first && found > first)) continue;
    first = found;
    *name = orderings[o];
  }
  return first;
}

static void add_trial(struct trials *trials, const struct kernel *kernel, const struct cb_source *source,
                      const char *lacks) {
  assert_true(trials->count < MOST);
  trials->lacks[trials->count] = lacks;
  trials->all[trials->count++] =
      (struct cb_verify_case){&kernel->csr, kernel->plan, kernel->assignment, source, &kernel->blob, "m"};
}

/* The text without the ordering at this place, in a copy that stands in the next trial. */
static void add_damaged(struct trials *trials, const struct kernel *kernel, const char *at, const char *name) {
  struct cb_source *copy = &trials->sources[trials->count];
  *copy = kernel->source;
  copy->text = cb_alloc((size_t)kernel->source.length + 1, 1);
  memcpy(copy->text, kernel->source.text, (size_t)kernel->source.length + 1);
  memset(copy->text + (at - kernel->source.text), ' ', strlen(name) - 1);
  add_trial(trials, kernel, copy, name);
}

static int add_case(struct trials *trials, int number, const struct given *given) {
  struct kernel *kernel = &trials->whole[number];
  struct cb_options options;
  struct cb_diag diag = {0};
  const char *name = NULL;
  int count = 0;
  cb_options_default(&options);
  set_options(&options, given->options);
  assert_ok(cb_matrix_generate(&kernel->csr, given->matrix, &diag));
  assert_ok(make_kernel(kernel, &options, &diag));
  add_trial(trials, kernel, &kernel->source, NULL);
  for (char *at = kernel->source.text + kernel->source.body; (at = next_ordering(at, &name)); at += strlen(name)) {
    count++;
    if (!given->lone || strncmp(at, "__syncwarp();\n  unsigned before", 31))
      add_damaged(trials, kernel, at, name);
  }
  if (count == given->count) return 0;
  print_error("%s\n  %d fences and barriers, not %d\n", kernel->plan->line, count, given->count);
  return 1;
}

/* The line of the text that lacks something. */
static int place_of(const struct trials *trials, int trial) {
  const struct cb_source *copy = trials->all[trial].source;
  int whole = trial, line = 1;
  while (trials->lacks[whole]) whole--;
  const char *right = trials->all[whole].source->text;
  for (int64_t i = 0; copy->text[i] == right[i]; i++) line += right[i] == '\n';
  return line;
}

static int judge(const struct trials *trials, int trial, const struct cb_verify_report *report) {
  const char *plan = trials->all[trial].plan->line;
  if (!trials->lacks[trial] && report->status) print_error("%s\n  %s\n", plan, report->message);
  if (trials->lacks[trial] && !report->status)
    print_error("%s\n  without %s in line %d: nothing was found\n", plan, trials->lacks[trial], place_of(trials, trial));
  return !trials->lacks[trial] != !report->status;
}

static void release_trials(struct trials *trials) {
  for (int t = 0; t < trials->count; t++) cb_source_release(&trials->sources[t]);
  for (int k = 0; k < CASES; k++) release_kernel(&trials->whole[k]);
  cb_free(trials);
}

static void every_fence_and_barrier_is_missed(void **state) {
  (void)state;
  struct trials *trials = cb_calloc(1, sizeof *trials);
  struct cb_verify_report *reports = cb_calloc(MOST, sizeof *reports);
  struct cb_verify_options options;
  struct cb_diag diag = {0};
  struct given cases[CASES];
  int wrong = 0;
  cb_verify_options_default(&options);
  options.host = (struct cb_host_options){.compiler = fast_compiler(), .batch = 16, .job_seconds = 20};
  options.orders = ORDERS;
  const int count = read_cases(cases);
  assert_true(count > 6);
  for (int number = 0; number < count; number++) wrong += add_case(trials, number, &cases[number]);
  struct cb_host *host = kernel_host(&options.host);
  assert_ok(cb_verify_batch(host, trials->all, trials->count, &options, reports, &diag));
  for (int t = 0; t < trials->count; t++) wrong += judge(trials, t, &reports[t]);
  cb_free(reports);
  release_trials(trials);
  assert_int_equal(wrong, 0);
}

/* A layout without a case has no fence or barrier of its own. */
static void every_layout_that_hands_over_has_a_case(void **state) {
  (void)state;
  const struct cb_recipe *recipe;
  for (int r = 0; (recipe = cb_recipe_at(r)); r++) {
    const struct cb_layout *layout = layout_of_recipe(recipe);
    char path[96];
    const char *name;
    if (!layout || recipe->root->split) continue; /* parts of a split meet in the launch: see dia.txt */
    snprintf(path, sizeof path, "tests/data/handover/%s.txt", layout->name);
    struct product product = product_of(example_of(recipe), settings_of_recipe(recipe));
    if (next_ordering(product.source.text + product.source.body, &name) && access(path, R_OK))
      fail_msg("%s: there is '%s' in its text, and no %s", recipe->name, name, path);
    product_release(&product);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_fence_and_barrier_is_missed),
                                     cmocka_unit_test(every_layout_that_hands_over_has_a_case)};
  return cmocka_run_group_tests_name("handover", tests, NULL, NULL);
}
