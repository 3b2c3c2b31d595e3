// SPDX-License-Identifier: Apache-2.0
/* What lanes and thread blocks hand to each other needs its fences and barriers. From generated text that is right, one
 * fence or barrier after the other is taken out: the emulation must find each of them missing, for one of a few orders,
 * and must never find fault with the text as it is. */
#include "kernels.h"

enum { MOST = 64, ORDERS = 8 };

/* Fences and barriers in the text of each; so a new one is not overlooked. */
static const struct {
  const char *matrix, *options;
  int count;
  int lone; /* only lane 0 stores a carry sum: the warp barrier of last_to_arrive orders nothing more */
} cases[] = {
    {"block,r=16,c=16,per_row=3,fill=0.2,blocks_r=4",
     "th1=40 th2=60 coo-gain=0 balance=heap unit-budget=64 form=ax", 6, 0},
    {"random,rows=70,cols=90,density=0.05", "th1=257 th2=256 coo-gain=0 form=ax", 2, 0},
    {"band,n=256,half=20,per_row=9", "recipe=cb th1=0 th2=256 form=ax", 1, 0},
    {"long_row,rows=120,cols=19000,per_row=3,long_rows=2,long_length=18000", "recipe=merge merge-piece=256 form=ax", 7, 1},
    {"long_row,rows=120,cols=19000,per_row=3,long_rows=2,long_length=18000", "recipe=sell form=ax", 3, 1},
    {"long_row,rows=120,cols=19000,per_row=3,long_rows=2,long_length=18000", "recipe=hot hot-columns=20 form=ax", 4, 1},
    {"powerlaw,rows=150,cols=400,max=350,min=0", "recipe=phases phase-columns=40 phase-set=32 phase-row=1 form=ax", 6, 0},
    {"stencil7,n=12,extra=0.3", "recipe=dia form=ax fuse=on sell-lanes=4", 1, 0},
};
enum { CASES = sizeof cases / sizeof *cases };

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

static int add_case(struct trials *trials, int number) {
  struct kernel *kernel = &trials->whole[number];
  struct cb_options options;
  struct cb_diag diag = {0};
  const char *name = NULL;
  int count = 0;
  cb_options_default(&options);
  set_options(&options, cases[number].options);
  assert_ok(cb_matrix_generate(&kernel->csr, cases[number].matrix, &diag));
  assert_ok(make_kernel(kernel, &options, &diag));
  add_trial(trials, kernel, &kernel->source, NULL);
  for (char *at = kernel->source.text + kernel->source.body; (at = next_ordering(at, &name)); at += strlen(name)) {
    count++;
    if (!cases[number].lone || strncmp(at, "__syncwarp();\n  unsigned before", 31))
      add_damaged(trials, kernel, at, name);
  }
  if (count == cases[number].count) return 0;
  print_error("%s\n  %d fences and barriers, not %d\n", kernel->plan->line, count, cases[number].count);
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
  int wrong = 0;
  cb_verify_options_default(&options);
  options.host = (struct cb_host_options){.compiler = fast_compiler(), .batch = 16, .job_seconds = 20};
  options.orders = ORDERS;
  for (int number = 0; number < CASES; number++) wrong += add_case(trials, number);
  struct cb_host *host = open_kernel_host(&options.host);
  assert_ok(cb_verify_batch(host, trials->all, trials->count, &options, reports, &diag));
  for (int t = 0; t < trials->count; t++) wrong += judge(trials, t, &reports[t]);
  cb_host_close(host);
  cb_free(reports);
  release_trials(trials);
  assert_int_equal(wrong, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_fence_and_barrier_is_missed)};
  return cmocka_run_group_tests_name("handover", tests, NULL, NULL);
}
