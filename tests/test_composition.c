// SPDX-License-Identifier: Apache-2.0
/* Trees of splits, choices and layouts: which regions share a launch, who writes y, what a split hands on, what is left
 * when it takes nothing; and random trees over random matrices, verified in the emulation.
 *
 * Everything about a random tree follows from its number: CBGEN_COMPOSITION_FIRST and CBGEN_COMPOSITION_COUNT choose
 * which run, so a failure "tree 271 …" is repeated alone with CBGEN_COMPOSITION_FIRST=271 CBGEN_COMPOSITION_COUNT=1. */
#include "kernels.h"
#include "recipes.h"

#include "analysis/diagonals.h"
#include "analysis/plan/builder.h"

#define LENGTH(array) (sizeof(array) / sizeof *(array))

/* ---- plans of trees */

/* Splits and layouts of the recipes' table. */
static const struct cb_split *split_of(const struct cb_node *node, const char *name) {
  const struct cb_split *found = node->split && !strcmp(node->split->name, name) ? node->split : NULL;
  for (int i = 0; node->split && i < node->split->parts && !found; i++) found = split_of(node->parts[i], name);
  for (int i = 0; node->choices && node->choices[i] && !found; i++) found = split_of(node->choices[i], name);
  return found;
}

static const struct cb_split *split_named(const char *name) {
  const struct cb_split *found = NULL;
  const struct cb_recipe *recipe;
  for (int i = 0; (recipe = cb_recipe_at(i)) && !found; i++)
    if (recipe->root) found = split_of(recipe->root, name);
  if (!found) fail_msg("no recipe has a split '%s'", name);
  return found;
}

static const struct cb_node sell = {.layout = "sell"}, merge = {.layout = "merge"}, dia = {.layout = "dia"},
                            blocks = {.layout = "blocks"}, hot = {.layout = "hot"};

static enum cb_status make_tree(struct kernel *kernel, const struct cb_node *root, const struct cb_options *options,
                                struct cb_diag *diag) {
  const struct cb_recipe recipe = {.name = "tree", .summary = "a test's", .root = root};
  const struct cb_label label = {"test", "m", cb_csr_pattern_hash(&kernel->csr)};
  struct cb_target target;
  enum cb_status s = cb_target_find(&target, "sm_90", diag);
  if (!s) s = cb_build_recipe(&kernel->plan, &kernel->assignment, &recipe, &kernel->csr, &target, options, diag);
  if (!s) s = cb_assignment_check(kernel->plan, kernel->assignment, diag);
  if (!s) s = cb_pack(&kernel->blob, kernel->plan, kernel->assignment, &kernel->csr, label.pattern, diag);
  if (!s) s = cb_source_emit(&kernel->source, kernel->plan, &label, &kernel->blob, CB_EMBED_NEVER, diag);
  return s;
}

static enum cb_status try_tree(struct kernel *kernel, const struct cb_node *root, const char *matrix,
                               const char *settings, struct cb_diag *diag) {
  struct cb_options options;
  *kernel = (struct kernel){0};
  set_options(&options, settings);
  options.recipe = "auto"; /* no node can set it */
  if (cb_matrix_generate(&kernel->csr, matrix, diag)) fail_msg("%s", diag->message);
  return make_tree(kernel, root, &options, diag);
}

/* In place: a plan's assignment refers to its matrix. */
static void build(struct kernel *kernel, const struct cb_node *root, const char *matrix, const char *settings) {
  struct cb_diag diag = {0};
  if (try_tree(kernel, root, matrix, settings, &diag)) fail_msg("%s %s: %s", matrix, settings, diag.message);
}

static void expect_refusal(const struct cb_node *root, const char *matrix, const char *settings, enum cb_status status,
                           const char *words) {
  struct cb_diag diag = {0};
  struct kernel kernel;
  assert_int_equal(try_tree(&kernel, root, matrix, settings, &diag), status);
  if (!strstr(diag.message, words)) fail_msg("'%s' lacks '%s'", diag.message, words);
  release_kernel(&kernel);
}

static void expect_line(const struct kernel *kernel, const char *words) {
  if (!strstr(kernel->plan->line, words)) fail_msg("'%s' lacks '%s'", kernel->plan->line, words);
}

static void verify_and_release(struct kernel *kernel) {
  const struct cb_verify_case one = {&kernel->csr,    kernel->plan,  kernel->assignment,
                                     &kernel->source, &kernel->blob, "m"};
  struct cb_verify_report report;
  struct cb_verify_options options;
  struct cb_diag diag = {0};
  cb_verify_options_default(&options);
  options.host.optimize = options.host.debug = 0;
  options.host.compiler = fast_compiler();
  if (verify_kernel(&one, &options, &report, &diag)) fail_msg("%s: %s", kernel->plan->line, report.message);
  release_kernel(kernel);
}

/* ---- regions in one launch */

static const char stencil[] = "stencil7,n=12,extra=0.3";

/* Two diagonals, two more, and what is left. */
static struct cb_node two_more, two_first;
static void grow_chain(const struct cb_node *rest) {
  const struct cb_split *diagonals = split_named("diagonals");
  two_more = (struct cb_node){.split = diagonals, .parts = {&dia, rest}, .settings = "dia-most=2"};
  two_first = (struct cb_node){.split = diagonals, .parts = {&dia, &two_more}, .settings = "dia-most=2"};
}

static void three_regions_take_turns(void **state) {
  (void)state;
  grow_chain(&sell);
  struct kernel kernel;
  build(&kernel, &two_first, stencil, "form=ax fuse=on");
  const struct cb_region *regions = kernel.plan->regions;
  assert_int_equal(kernel.plan->regions_count, 3);
  assert_int_equal(kernel.plan->launches_count, 1);
  assert_int_equal(kernel.plan->launches[0].regions, 3);
  assert_int_equal(kernel.plan->launches[0].block_rows, 256);
  assert_int_equal(regions[0].commit, CB_COMMIT_KEEP);
  assert_int_equal(regions[1].commit, CB_COMMIT_KEPT_KEEP);
  assert_int_equal(regions[2].commit, CB_COMMIT_KEPT);
  assert_int_equal(regions[0].static_shared, 256 * 8); /* one array of sums for all */
  assert_int_equal(regions[1].static_shared + regions[2].static_shared, 0);
  expect_line(&kernel, "(spmv (split diagonals (with dia-most=2) (fill 50) (fused in-turn) (dia ");
  expect_line(&kernel, "(split diagonals (with dia-most=2) (fill 50) (fused in-turn) (dia ");
  assert_non_null(strstr(kernel.source.text, "dia0::row_sums[row % 256] = add(kept, sum);"));
  assert_non_null(strstr(kernel.source.text, "what the regions from dia0 on kept of it"));
  verify_and_release(&kernel);
}

static void a_chain_is_cheaper_than_launches(void **state) {
  (void)state;
  grow_chain(&sell);
  struct kernel fused;
  build(&fused, &two_first, stencil, "");
  struct kernel apart;
  build(&apart, &two_first, stencil, "fuse=off");
  assert_int_equal(fused.plan->launches_count, 1);
  assert_int_equal(apart.plan->launches_count, 3);
  assert_true(fused.plan->cost.ns < apart.plan->cost.ns);
  const int64_t vectors = 2 * 1728 * 8; /* x and y, which each launch reads and writes again */
  assert_int_equal(apart.plan->cost.bytes - fused.plan->cost.bytes -
                       (cb_plan_bytes(apart.plan) - cb_plan_bytes(fused.plan)),
                   2 * vectors);
  verify_and_release(&fused);
  verify_and_release(&apart);
}

/* The last region of a chain may have more rows in a thread block than those before it, or fewer. */
static void chains_have_room_for_the_most_rows(void **state) {
  (void)state;
  static const char *const settings[] = {"form=ax fuse=on sell-lanes=4", "form=axpby fuse=on sell-lanes=1",
                                         "form=ax fuse=on values=fixed dia-rows=4 sell-lanes=2"};
  grow_chain(&sell);
  for (size_t i = 0; i < LENGTH(settings); i++) {
    struct kernel kernel;
    build(&kernel, &two_first, "stencil7,n=12,extra=0.3,values=ones", settings[i]);
    const struct cb_plan *plan = kernel.plan;
    assert_int_equal(plan->launches_count, 1);
    int64_t most = 0;
    for (int r = 0; r < 3; r++) most = plan->regions[r].block_rows > most ? plan->regions[r].block_rows : most;
    assert_int_equal(plan->launches[0].block_rows, most);
    assert_int_equal(plan->regions[0].static_shared, most * 8);
    verify_and_release(&kernel);
  }
}

/* merge joins nothing: it writes y, and the chain adds to it. */
static void a_chain_may_add(void **state) {
  (void)state;
  grow_chain(&merge);
  struct kernel kernel;
  build(&kernel, &two_first, stencil, "form=axpby fuse=on");
  const struct cb_plan *plan = kernel.plan;
  assert_int_equal(plan->launches_count, 2);
  assert_int_equal(plan->launches[0].first_region, 2); /* which writes */
  assert_int_equal(plan->launches[1].first_region, 0);
  assert_int_equal(plan->launches[1].regions, 2);
  assert_int_equal(plan->regions[0].commit, CB_COMMIT_KEEP);
  assert_int_equal(plan->regions[1].commit, CB_COMMIT_KEPT_ADD);
  assert_int_equal(plan->regions[2].commit, CB_COMMIT_FINAL);
  verify_and_release(&kernel);
}

static void three_regions_stand_beside(void **state) {
  (void)state;
  const struct cb_split *long_rows = split_named("long-rows");
  const struct cb_node inner = {.split = long_rows, .parts = {&sell, &merge}, .settings = "long-row=30"};
  const struct cb_node root = {.split = long_rows, .parts = {&inner, &merge}, .settings = "long-row=300"};
  struct kernel kernel;
  build(&kernel, &root, "powerlaw,rows=300,cols=900,max=700,min=0", "form=axpby fuse=on");
  const struct cb_plan *plan = kernel.plan;
  assert_int_equal(plan->regions_count, 3);
  assert_int_equal(plan->launches_count, 1);
  assert_int_equal(plan->launches[0].block_rows, 0);
  assert_int_equal(plan->regions[0].commit, CB_COMMIT_FINAL);
  for (int r = 0; r < 3; r++) {
    assert_true(plan->regions[r].owns_rows);
    if (r) assert_int_equal(plan->regions[r].commit, CB_COMMIT_OWN);
    if (r) assert_int_equal(plan->regions[r - 1].first_block, plan->regions[r].first_block + plan->regions[r].blocks);
  }
  expect_line(&kernel, "(longer 300) (fused beside) (split long-rows (with long-row=30) (longer 30) (fused beside) ");
  verify_and_release(&kernel);
}

/* ---- who writes y */

static void the_remainder_writes(void **state) {
  (void)state;
  const struct cb_split *diagonals = split_named("diagonals");
  const struct cb_node by_rule = {.split = diagonals, .parts = {&dia, &sell}};
  const struct cb_node by_name = {.split = diagonals, .parts = {&dia, &sell}, .final = 1};
  struct kernel last;
  build(&last, &by_rule, stencil, "form=axpby fuse=off");
  struct kernel first;
  build(&first, &by_name, stencil, "form=axpby fuse=off");
  struct kernel alone;
  build(&alone, &by_rule, "tridiagonal,n=300", "form=axpby fuse=off");
  assert_int_equal(last.plan->regions[0].commit, CB_COMMIT_ADD);
  assert_int_equal(last.plan->regions[1].commit, CB_COMMIT_FINAL);
  assert_int_equal(last.plan->launches[0].first_region, 1); /* before those that add */
  assert_int_equal(first.plan->regions[0].commit, CB_COMMIT_FINAL);
  assert_int_equal(first.plan->launches[0].first_region, 0);
  assert_int_equal(alone.plan->regions_count, 1); /* nothing is left: the last part that has nonzeros writes */
  assert_int_equal(alone.plan->regions[0].commit, CB_COMMIT_FINAL);
  verify_and_release(&last);
  verify_and_release(&first);
  verify_and_release(&alone);
}

/* Where the one that should write adds with atomics, y is scaled before; everything else adds, too. */
static void atomics_scale_before(void **state) {
  (void)state;
  const struct cb_node cb = {.layout = "cb"};
  const struct cb_node root = {.split = split_named("diagonals"), .parts = {&dia, &cb}};
  struct kernel kernel;
  build(&kernel, &root, "random,rows=300,cols=300,density=0.3",
        "form=axpby atomics=on balance=heap unit-budget=16 dia-fill=0 dia-most=3");
  const struct cb_plan *plan = kernel.plan;
  assert_int_equal(plan->regions[1].commit, CB_COMMIT_ATOMIC);
  assert_int_equal(plan->launches_count, 3);
  assert_string_equal(plan->launches[0].body, "scale_y");
  verify_and_release(&kernel);
}

/* Short rows are two regions in turn, of which the last leaves long rows to a third. */
static void rows_of_their_own_reach_through_splits(void **state) {
  (void)state;
  const struct cb_node short_rows = {.split = split_named("diagonals"), .parts = {&dia, &sell}};
  const struct cb_node root = {
      .split = split_named("long-rows"), .parts = {&short_rows, &merge}, .settings = "long-row=40 dia-fill=0 dia-most=5"};
  struct kernel fused;
  build(&fused, &root, "arrow,n=500,width=3", "form=axpby fuse=on");
  struct kernel apart;
  build(&apart, &root, "arrow,n=500,width=3", "form=axpby fuse=off");
  const struct cb_region *regions = fused.plan->regions;
  assert_int_equal(fused.plan->regions_count, 3);
  assert_int_equal(fused.plan->launches_count, 2); /* a chain, and a region with rows of its own */
  assert_int_equal(regions[0].commit, CB_COMMIT_KEEP);
  assert_int_equal(regions[1].commit, CB_COMMIT_KEPT);
  assert_int_equal(regions[2].commit, CB_COMMIT_OWN);
  assert_false(regions[0].owns_rows);
  assert_true(regions[1].owns_rows);
  assert_int_equal(apart.plan->launches_count, 3);
  for (int r = 0; r < 3; r++) assert_false(apart.plan->regions[r].owns_rows);
  verify_and_release(&fused);
  verify_and_release(&apart);
}

/* In a split by rows within another, each part has the rows of both. A layout that minds no rows of its own adds. */
static void who_minds_no_rows_adds(void **state) {
  (void)state;
  const struct cb_split *long_rows = split_named("long-rows");
  const struct cb_node root = {.split = long_rows, .parts = {&sell, &hot}, .settings = "long-row=40", .final = 1};
  struct kernel kernel;
  build(&kernel, &root, "arrow,n=500,width=3", "form=axpby fuse=on hot-columns=20");
  assert_int_equal(kernel.plan->regions[0].commit, CB_COMMIT_FINAL);
  assert_int_equal(kernel.plan->regions[1].commit, CB_COMMIT_ADD);
  assert_false(kernel.plan->regions[0].owns_rows);
  verify_and_release(&kernel);
}

/* ---- one commit for each row */

static int count_words(const char *text, const char *words) {
  int count = 0;
  for (; (text = strstr(text, words)); text++) count++;
  return count;
}

/* Parts that add do so to sums, which a last launch commits. */
static void rows_are_committed_once(void **state) {
  (void)state;
  static const char *const forms[] = {"form=ax", "form=add", "form=axpby type=f32"};
  for (size_t i = 0; i < LENGTH(forms); i++) {
    char settings[80];
    struct kernel once, any;
    grow_chain(&merge);
    snprintf(settings, sizeof settings, "%s commit=once fuse=on", forms[i]);
    build(&once, &two_first, stencil, settings);
    snprintf(settings, sizeof settings, "%s fuse=on", forms[i]);
    build(&any, &two_first, stencil, settings);
    assert_false(cb_plan_single_commit(any.plan));
    assert_true(cb_plan_single_commit(once.plan));
    /* where the product adds to y, layouts leave out empty rows: sums are cleared before */
    const int cleared = once.plan->form == CB_FORM_ADD, last = any.plan->launches_count + cleared;
    assert_int_equal(once.plan->launches_count, last + 1);
    if (cleared) assert_string_equal(once.plan->launches[0].body, "clear_sums");
    assert_string_equal(once.plan->launches[last].body, "commit_sums");
    assert_int_equal(once.plan->carry_sums, any.plan->carry_sums + 1728);
    assert_true(once.plan->cost.ns > any.plan->cost.ns);
    assert_int_equal(count_words(once.source.text, " commit(vectors, "), 1);
    assert_int_equal(count_words(once.source.text, "commit_more("), 0);
    release_kernel(&any);
    verify_and_release(&once);
  }
}

/* What shares a launch, or has rows of its own, needs no sums. */
static void one_writer_needs_no_sums(void **state) {
  (void)state;
  grow_chain(&sell);
  struct kernel once, any;
  build(&once, &two_first, stencil, "commit=once fuse=on");
  build(&any, &two_first, stencil, "fuse=on");
  assert_true(cb_plan_single_commit(any.plan));
  assert_string_equal(once.source.text, any.source.text);
  release_kernel(&any);
  release_kernel(&once);
}

static void sums_may_take_atomics(void **state) {
  (void)state;
  const struct cb_node cb = {.layout = "cb"};
  struct kernel kernel;
  build(&kernel, &cb, "random,rows=300,cols=300,density=0.3",
        "form=axpby commit=once atomics=on balance=heap unit-budget=16");
  assert_int_equal(kernel.plan->regions[0].commit, CB_COMMIT_ATOMIC);
  assert_string_equal(kernel.plan->launches[0].body, "clear_sums");
  assert_string_equal(kernel.plan->launches[2].body, "commit_sums");
  verify_and_release(&kernel);
}

/* ---- findings */

static int releases;
static void count_release(void *data) {
  cb_diagonal_set_release(data);
  cb_free(data);
  releases++;
}

/* The main diagonal, and with it one that has no nonzeros. */
static enum cb_status divide_oddly(const struct cb_part *part, const struct cb_options *options,
                                   const struct cb_target *target, struct cb_division *division, struct cb_text *facts,
                                   struct cb_diag *diag) {
  const struct cb_csr *csr = part->csr;
  const int64_t main_diagonal = csr->rows - 1;
  struct cb_diagonal_set *set = cb_calloc(1, sizeof *set);
  struct cb_diagonal *list = cb_calloc(2, sizeof *list);
  (void)target;
  (void)facts;
  (void)diag;
  assert_true(set && list);
  list[0] = (struct cb_diagonal){main_diagonal, 0};
  list[1] = (struct cb_diagonal){main_diagonal + 100, 0};
  *set = (struct cb_diagonal_set){.list = list, .count = 2};
  for (int64_t row = 0; row < csr->rows; row++)
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++) {
      division->part_of[k] = csr->col_idx[k] != row;
      list[0].nonzeros += csr->col_idx[k] == row;
    }
  const char *kind = options->bake_limit ? CB_FOUND_DIAGONALS : "something else";
  division->found[0] = (struct cb_found){kind, set, count_release};
  return CB_OK;
}

static void a_leaf_takes_what_its_split_found(void **state) {
  (void)state;
  static const struct cb_split odd = {"odd", 2, 0, divide_oddly};
  const struct cb_node root = {.split = &odd, .parts = {&dia, &sell}};
  struct kernel found;
  build(&found, &root, "tridiagonal,n=300", "fuse=off");
  struct kernel other;
  build(&other, &root, "tridiagonal,n=300", "fuse=off bake-limit=0"); /* of a kind that dia does not know */
  assert_int_equal(found.plan->regions[0].value_slots, 2 * 320);
  assert_int_equal(other.plan->regions[0].value_slots, 320);
  assert_int_equal(releases, 0); /* they live as long as the assignment */
  verify_and_release(&found);
  verify_and_release(&other);
  assert_int_equal(releases, 2);
}

/* A chosen leaf, too: it owns the part and what was found about it, the others had it lent. */
static void choices_share_what_was_found(void **state) {
  (void)state;
  static const struct cb_split odd = {"odd", 2, 0, divide_oddly};
  const struct cb_node *const choices[] = {&merge, &dia, NULL};
  const struct cb_node choice = {.choices = choices};
  const struct cb_node root = {.split = &odd, .parts = {&choice, &sell}};
  static const char *const matrices[] = {"tridiagonal,n=300", "diagonal,n=300"}; /* the part of the second is all */
  for (int i = 0; i < 2; i++) {
    releases = 0;
    struct kernel kernel;
    build(&kernel, &root, matrices[i], "search=all");
    assert_string_equal(kernel.plan->regions[0].layout, "dia");
    assert_int_equal(kernel.plan->regions[0].value_slots, 2 * 320);
    assert_int_equal(releases, 0);
    verify_and_release(&kernel);
    assert_int_equal(releases, 1);
  }
}

/* ---- settings */

static void settings_hold_below_their_node(void **state) {
  (void)state;
  const struct cb_node four = {.layout = "sell", .settings = "sell-lanes=4 fuse=off"};
  const struct cb_node root = {.split = split_named("long-rows"), .parts = {&sell, &four}, .settings = "long-row=9"};
  struct kernel kernel;
  build(&kernel, &root, "powerlaw,rows=300,cols=900,max=700,min=0", "sell-lanes=2 long-row=70");
  expect_line(&kernel, "(spmv (split long-rows (with long-row=9) (longer 9) (sell (slices ");
  expect_line(&kernel, " (sell (with sell-lanes=4 fuse=off) (slices ");
  for (int r = 0; r < 2; r++)
    assert_int_equal(kernel.plan->regions[r].block_rows, r ? 64 : 128); /* 256 threads, 4 or 2 lanes a row */
  verify_and_release(&kernel);
}

static void settings_must_make_sense(void **state) {
  (void)state;
  static const struct {
    const char *settings, *words;
    enum cb_status status;
  } cases[] = {
      {"sell-lanes", "'sell-lanes' sets no option", CB_ERR_ARGUMENT},
      {"sell-lanes=3", "option 'sell-lanes' cannot be '3'", CB_ERR_ARGUMENT},
      {"sell-lames=2", "did you mean 'sell-lanes'", CB_ERR_ARGUMENT},
      {"recipe=cb", "do not set 'recipe'", CB_ERR_ARGUMENT},
      {"form=add", "recipe 'tree' sets 'form=add' for a part of the matrix", CB_ERR_INTERNAL},
  };
  for (size_t i = 0; i < LENGTH(cases); i++) {
    const struct cb_node leaf = {.layout = "sell", .settings = cases[i].settings};
    expect_refusal(&leaf, stencil, "form=ax", cases[i].status, cases[i].words);
  }
}

/* ---- choices */

static void a_choice_is_the_cheapest(void **state) {
  (void)state;
  static const char *const matrices[] = {"stencil7,n=9", "powerlaw,rows=900,cols=900,max=700", "dense,rows=40,cols=70",
                                         "block,blocks_r=100,per_row=3", "rmat,scale=10,edge_factor=6"};
  static const struct cb_node *const choices[] = {&blocks, &merge, &sell, NULL};
  static const struct cb_node choice = {.choices = choices};
  for (size_t i = 0; i < LENGTH(matrices); i++) {
    struct kernel chosen;
    build(&chosen, &choice, matrices[i], "");
    const struct cb_node winner = {.layout = chosen.plan->regions[0].layout};
    struct kernel alone;
    build(&alone, &winner, matrices[i], "");
    for (int c = 0; choices[c]; c++) {
      struct cb_diag diag = {0};
      struct kernel other;
      const enum cb_status s = try_tree(&other, choices[c], matrices[i], "", &diag);
      if (!s && !cb_search_is_better(&chosen.plan->cost, cb_plan_bytes(chosen.plan), &other.plan->cost,
                                     cb_plan_bytes(other.plan)))
        assert_int_equal(chosen.plan->cost.ns, other.plan->cost.ns);
      release_kernel(&other);
    }
    expect_line(&chosen, "(spmv (choose (from blocks merge sell) (");
    assert_int_equal(chosen.plan->regions_count, 1);
    assert_int_equal(chosen.plan->cost.ns, alone.plan->cost.ns);
    assert_int_equal(chosen.blob.length, alone.blob.length); /* nothing of the others is left; the head has an id */
    assert_memory_equal(chosen.blob.bytes + CB_BLOB_HEADER, alone.blob.bytes + CB_BLOB_HEADER,
                        (size_t)alone.blob.length - CB_BLOB_HEADER);
    release_kernel(&alone);
    verify_and_release(&chosen);
  }
}

/* What the remainder is best stored as depends on what it may join: here all of it is one launch. */
static void a_choice_sees_its_launch(void **state) {
  (void)state;
  static const struct cb_node *const choices[] = {&merge, &sell, NULL};
  const struct cb_node choice = {.choices = choices};
  const struct cb_node root = {.split = split_named("diagonals"), .parts = {&dia, &choice}};
  struct kernel kernel;
  build(&kernel, &root, stencil, "form=ax");
  expect_line(&kernel, "(fused in-turn) (dia ");
  expect_line(&kernel, " (choose (from merge sell) (sell ");
  assert_int_equal(kernel.plan->regions[0].commit, CB_COMMIT_KEEP);
  verify_and_release(&kernel);
}

static void choices_may_refuse(void **state) {
  (void)state;
  static const struct cb_node *const some[] = {&blocks, &sell, NULL}, *const none[] = {&blocks, &blocks, NULL};
  const struct cb_node choice = {.choices = some}, refusing = {.choices = none};
  struct kernel kernel;
  build(&kernel, &choice, "random,rows=300,cols=300,density=0.05", "");
  assert_string_equal(kernel.plan->regions[0].layout, "sell");
  release_kernel(&kernel);
  expect_refusal(&refusing, "random,rows=300,cols=300,density=0.05", "", CB_ERR_UNSUPPORTED, "no natural blocks");
}

/* ---- splits that take nothing */

static void what_takes_nothing_leaves_no_trace(void **state) {
  (void)state;
  const struct cb_node rest = {.split = split_named("tiles"), .parts = {&blocks, &sell}};
  const struct cb_node root = {.split = split_named("diagonals"), .parts = {&dia, &rest}};
  struct kernel only_tiles;
  build(&only_tiles, &root, "block,blocks_r=100,per_row=3,scattered=4", "fuse=on");
  struct kernel only_dia;
  build(&only_dia, &root, stencil, "fuse=on");
  assert_memory_equal(only_tiles.plan->line, "(spmv (split tiles ", 19);
  assert_int_equal(only_tiles.plan->regions_count, 2);
  assert_null(strstr(only_dia.plan->line, "tiles"));
  assert_int_equal(only_dia.plan->regions_count, 2);
  verify_and_release(&only_tiles);
  verify_and_release(&only_dia);
  expect_refusal(&root, "random,rows=300,cols=300,density=0.05", "", CB_ERR_UNSUPPORTED,
                 "no diagonal crosses half of the rows"); /* the first one's words */
}

/* A remainder of the remainder: what refuses behind a split that took something does no harm. */
static void nothing_behind_something_is_no_refusal(void **state) {
  (void)state;
  const struct cb_node rest = {.split = split_named("diagonals"), .parts = {&dia, &sell}};
  const struct cb_node root = {.split = split_named("long-rows"), .parts = {&merge, &rest}, .settings = "long-row=40"};
  struct kernel kernel;
  build(&kernel, &root, "powerlaw,rows=300,cols=900,max=700,min=0", "fuse=on");
  assert_null(strstr(kernel.plan->line, "diagonals"));
  assert_int_equal(kernel.plan->regions_count, 2);
  verify_and_release(&kernel);
}

static void matrices_without_nonzeros_have_a_writer(void **state) {
  (void)state;
  static const struct cb_node *const choices[] = {&dia, &sell, &merge, NULL};
  const struct cb_node choice = {.choices = choices};
  const struct cb_node root = {.split = split_named("long-rows"), .parts = {&sell, &choice}};
  struct kernel kernel;
  build(&kernel, &root, "empty,rows=400,cols=30", "form=axpby");
  assert_int_equal(kernel.plan->regions_count, 1);
  assert_int_equal(kernel.plan->regions[0].commit, CB_COMMIT_FINAL);
  assert_memory_equal(kernel.plan->line, "(spmv (choose (from dia sell merge) ", 36);
  verify_and_release(&kernel);
}

/* ---- allocations */

static void every_allocation_may_fail(void **state) {
  (void)state;
  static const struct cb_node *const choices[] = {&blocks, &merge, &sell, NULL};
  const struct cb_node choice = {.choices = choices, .settings = "block-fill=20"};
  const struct cb_node rows = {.split = split_named("long-rows"), .parts = {&choice, &merge}, .settings = "long-row=9"};
  const struct cb_node root = {.split = split_named("diagonals"), .parts = {&dia, &rows}, .settings = "dia-fill=1"};
  int failures = 0;
  omp_set_num_threads(1);
  for (uint64_t nth = 1, last = 0; !last; nth++) {
    struct cb_diag diag = {0};
    struct cb_options options;
    struct kernel kernel = {0};
    cb_options_default(&options);
    options.search = CB_SEARCH_ALL;
    assert_int_equal(cb_matrix_generate(&kernel.csr, "stencil5,n=12,extra=1,values=ones", &diag), CB_OK);
    cb_memory_fail_at(nth, nth % 2 == 0);
    const enum cb_status s = make_tree(&kernel, &root, &options, &diag);
    last = cb_memory_fail_at(0, 0) < nth;
    if (s && s != CB_ERR_MEMORY) fail_msg("allocation %d: %s", (int)nth, diag.message);
    if (last) assert_int_equal(s, CB_OK);
    failures += s != CB_OK;
    release_kernel(&kernel);
  }
  assert_true(failures > 100);
}

/* ---- random trees */

enum { COUNT = 80, MOST_NODES = 96, MOST_DEPTH = 5 };

static uint64_t below(uint64_t *state, uint64_t end) { return draw(state) % end; }

/* The nodes of one tree, and what trees are made of. */
struct forest {
  struct cb_node nodes[MOST_NODES];
  const struct cb_node *choices[MOST_NODES][4];
  char settings[MOST_NODES][64];
  int count;
};

struct material {
  const struct cb_node *splits[32]; /* of the table's recipes: their own parts suit them */
  int splits_count, layouts_count;
};

static void collect(struct material *material, const struct cb_node *node) {
  if (!node || !node->split) return;
  for (int i = 0; i < material->splits_count; i++)
    if (material->splits[i]->split == node->split) return;
  assert_true(material->splits_count < (int)LENGTH(material->splits));
  material->splits[material->splits_count++] = node;
  for (int i = 0; i < node->split->parts; i++) collect(material, node->parts[i]);
}

static struct material collect_all(void) {
  struct material material = {0};
  const struct cb_recipe *recipe;
  for (int i = 0; (recipe = cb_recipe_at(i)); i++) collect(&material, recipe->root);
  while (cb_layout_table[material.layouts_count]) material.layouts_count++;
  assert_true(material.splits_count > 3 && material.layouts_count > 3);
  return material;
}

/* Of some layout, at any of its values; instead of those that must suit others of their layout, what every part may
 * have. Two of three nodes have none. */
static const char *draw_settings(uint64_t *state, struct forest *forest, const struct material *material) {
  static const char *const of_parts[] = {"fuse=off", "fuse=on", "bake-limit=0"};
  char *settings = forest->settings[forest->count - 1];
  const struct cb_layout *layout = cb_layout_table[below(state, (uint64_t)material->layouts_count)];
  if (below(state, 3)) return NULL;
  if (layout->check || !layout->options_count) return of_parts[below(state, LENGTH(of_parts))];
  const struct cb_option *option = &layout->options[below(state, (uint64_t)layout->options_count)];
  struct cb_text value = {0};
  cb_option_print(&value, option, draw_option(state, option));
  snprintf(settings, sizeof *forest->settings, "%s=%s", option->name, cb_text_string(&value));
  cb_text_release(&value);
  return settings;
}

static const struct cb_node *draw_node(uint64_t *state, struct forest *forest, const struct material *material,
                                       int depth);

static void draw_split(uint64_t *state, struct forest *forest, const struct material *material, int depth,
                       struct cb_node *node) {
  const struct cb_node *model = material->splits[below(state, (uint64_t)material->splits_count)];
  node->split = model->split;
  node->final = below(state, 2) ? 0 : (int)below(state, (uint64_t)model->split->parts + 1);
  for (int i = 0; i < model->split->parts; i++) {
    const int own = model->parts[i]->layout && below(state, 4) < (i + 1 < model->split->parts ? 3 : 1);
    node->parts[i] = own ? model->parts[i] : draw_node(state, forest, material, depth - 1);
  }
}

static void draw_choices(uint64_t *state, struct forest *forest, const struct material *material, int depth,
                         struct cb_node *node) {
  const struct cb_node **choices = forest->choices[node - forest->nodes];
  const int count = 1 + (int)below(state, 2);
  for (int i = 0; i < count; i++) choices[i] = draw_node(state, forest, material, depth - 1);
  choices[count] = &sell; /* which refuses next to nothing */
  node->choices = choices;
}

static const struct cb_node *draw_node(uint64_t *state, struct forest *forest, const struct material *material,
                                       int depth) {
  static const struct cb_node *const plain[] = {&sell, &sell, &sell, &merge};
  if (forest->count == MOST_NODES) return &sell;
  struct cb_node *node = &forest->nodes[forest->count++];
  const uint64_t kind = below(state, 8);
  node->settings = draw_settings(state, forest, material);
  if (depth > 0 && kind < 6) draw_split(state, forest, material, depth, node);
  else if (depth > 0 && kind < 7) draw_choices(state, forest, material, depth, node);
  else if (below(state, 3)) node->layout = plain[below(state, LENGTH(plain))]->layout;
  else node->layout = cb_layout_table[below(state, (uint64_t)material->layouts_count)]->name;
  return node;
}

/* One extraction after the other, as the published methods do it: each with its own layout, and sell for the rest. */
static const struct cb_node *draw_chain(uint64_t *state, struct forest *forest, const struct material *material,
                                        int depth) {
  const struct cb_node *model = material->splits[below(state, (uint64_t)material->splits_count)];
  if (!depth || forest->count == MOST_NODES) return &sell;
  if (model->split->parts != 2 || model->split->by_rows) return draw_chain(state, forest, material, depth - 1);
  struct cb_node *node = &forest->nodes[forest->count++];
  const char *settings = draw_settings(state, forest, material);
  *node = (struct cb_node){.split = model->split, .parts = {model->parts[0]}, .settings = settings};
  node->parts[1] = draw_chain(state, forest, material, depth - 1);
  return node;
}

/* Such a chain, perhaps for the first rows of a split by rows; or any tree. */
static const struct cb_node *draw_root(uint64_t *state, struct forest *forest, const struct material *material) {
  static const char *const lengths[] = {"long-row=6", "long-row=17", "long-row=24"}; /* about what rows have */
  if (below(state, 2)) return draw_node(state, forest, material, 3 + (int)below(state, MOST_DEPTH - 2));
  const struct cb_node *chain = draw_chain(state, forest, material, 2 * MOST_DEPTH);
  if (below(state, 4) || forest->count == MOST_NODES) return chain;
  struct cb_node *node = &forest->nodes[forest->count++];
  *node = (struct cb_node){.split = &cb_split_long_rows, .parts = {chain, &merge},
                           .settings = lengths[below(state, LENGTH(lengths))]};
  return node;
}

static const char *draw_matrix(uint64_t *state) {
  static const char *const matrices[] = {
      "stencil7,n=7,extra=0.5",
      "stencil27,n=6,extra=1",
      "diagonals,n=400,count=30,spread=200,fill=0.9",
      "stencil5,n=20,extra=1",
      "stencil9,n=17,periodic=1",
      "tridiagonal,n=300",
      "diagonals,n=300,count=20,spread=90,fill=0.7",
      "powerlaw,rows=300,cols=900,max=700,min=0",
      "powerlaw,rows=600,max=200,min=2",
      "random,rows=300,cols=200,density=0.05",
      "random,rows=90,cols=400,density=0.2",
      "arrow,n=300,width=2",
      "block,blocks_r=90,per_row=3,scattered=4",
      "block,blocks_r=100,r=2,c=2,per_row=5,scattered=2,fill=0.9",
      "hypersparse,rows=2000,cols=300,keep=0.05,per_row=30",
      "long_row,rows=500,cols=3000,per_row=5,long_rows=3,long_length=2000",
      "rmat,scale=9,edge_factor=5",
      "staircase,n=120",
      "explicit_zeros,rows=120,cols=90,density=0.2,zeros=0.4",
      "one_row,cols=500",
      "dense,rows=40,cols=70",
      "fe3,n=4",
  };
  return matrices[below(state, LENGTH(matrices))];
}

static void draw_tree_options(uint64_t *state, struct cb_options *options) {
  static const char *const types[] = {"f64", "f64", "f32", "f32-f64", "f16-f32", "f16", "bf16"};
  static const char *const forms[] = {"ax", "add", "axpby"}, *const fuses[] = {"auto", "on"};
  char settings[256];
  const char *commit = below(state, 3) ? "any" : "once", *values = below(state, 4) ? "data" : "fixed";
  const char *atomics = below(state, 8) ? "off" : "on", *search = below(state, 2) ? "all" : "hopeful";
  snprintf(settings, sizeof settings,
           "type=%s form=%s fuse=%s commit=%s values=%s atomics=%s search=%s dia-fill=0 dia-most=2 long-row=9 "
           "block-fill=20 hot-columns=20 phase-columns=50",
           types[below(state, LENGTH(types))], forms[below(state, 3)], fuses[below(state, 2)], commit, values, atomics,
           search);
  set_options(options, settings);
  options->recipe = "auto";
}

/* What random trees met. */
struct met {
  int trees, refused, launches, chains, beside, chosen, adding, owned_chains, later_writers, settings, row_sums;
};

static void note_launch(struct met *met, const struct cb_plan *plan, const struct cb_launch *launch) {
  const struct cb_region *first = &plan->regions[launch->first_region], *last = first + launch->regions - 1;
  met->launches++;
  met->chains += launch->block_rows && launch->regions > 2;
  met->beside += !launch->block_rows && launch->regions > 1;
  met->adding += last->commit == CB_COMMIT_KEPT_ADD;
  met->owned_chains += launch->block_rows && last->owns_rows;
}

static void note(struct met *met, const struct cb_plan *plan) {
  met->trees++;
  for (int i = 0; i < plan->launches_count; i++)
    if (plan->launches[i].regions && !plan->launches[i].prepares) note_launch(met, plan, &plan->launches[i]);
  met->chosen += strstr(plan->line, "(choose ") != NULL;
  met->settings += strstr(plan->line, "(with ") != NULL;
  met->row_sums += plan->row_sums;
  met->later_writers += plan->launches_count && plan->launches[0].first_region > 0;
}

/* The batch's next kernel: the tree, for that matrix. */
static void add_tree(struct kernel_batch *batch, const struct cb_node *root, const char *matrix,
                     const struct cb_options *options, struct met *met) {
  struct cb_diag diag = {0};
  struct kernel *kernel = next_kernel(batch);
  assert_int_equal(cb_matrix_generate(&kernel->csr, matrix, &diag), CB_OK);
  const enum cb_status s = make_tree(kernel, root, options, &diag);
  if (!s) {
    note(met, kernel->plan);
    batch->count++;
    return;
  }
  if (cb_is_refusal(s)) met->refused++;
  else if (++batch->failures < 20) print_error("%s\n  %s\n", kernel->name, diag.message);
  release_kernel(kernel);
  memset(kernel, 0, sizeof *kernel);
}

static int from_environment(const char *name, int standard) {
  const char *text = getenv(name);
  return text && *text ? atoi(text) : standard;
}

/* Fused as it may be, and with every region apart. */
static void add_number(struct kernel_batch *batch, const struct material *material, int number, struct met *met) {
  struct forest *forest = calloc(1, sizeof *forest);
  uint64_t seed = (uint64_t)number, state = draw(&seed); /* neighbours have nothing in common */
  struct cb_options options;
  assert_non_null(forest);
  const struct cb_node *root = draw_root(&state, forest, material);
  const char *matrix = draw_matrix(&state);
  draw_tree_options(&state, &options);
  for (int fused = 1; fused >= 0; fused--) {
    if (!fused) options.fuse = CB_OFF;
    snprintf(next_kernel(batch)->name, sizeof batch->kernels->name, "tree %d %s%s", number, matrix,
             fused ? "" : " apart");
    add_tree(batch, root, matrix, &options, met);
  }
  free(forest);
}

static void random_trees_match_the_oracle(void **state) {
  (void)state;
  const int first = from_environment("CBGEN_COMPOSITION_FIRST", 0),
            count = from_environment("CBGEN_COMPOSITION_COUNT", COUNT);
  const struct material material = collect_all();
  struct cb_verify_options options;
  struct kernel_batch batch;
  struct met met = {0};
  cb_verify_options_default(&options);
  options.host.optimize = 0;
  options.host.debug = count == 1;
  options.host.compiler = fast_compiler();
  options.orders = 2;
  open_batch(&batch, &options);
  for (int number = first; number < first + count; number++) add_number(&batch, &material, number, &met);
  close_batch(&batch);
  print_message("%d trees, %d refused; %d launches: %d chains of three or more, %d beside, %d that add, %d chains with "
                "rows of their own; %d with choices, %d with settings, %d whose first region does not write, %d "
                "with sums of rows\n",
                met.trees, met.refused, met.launches, met.chains, met.beside, met.adding, met.owned_chains, met.chosen,
                met.settings, met.later_writers, met.row_sums);
  assert_int_equal(batch.failures, 0);
  if (count < COUNT) return;
  assert_true(2 * met.trees > count);
  assert_true(met.chains && met.beside && met.adding && met.owned_chains);
  assert_true(met.chosen && met.settings && met.later_writers && met.row_sums);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(three_regions_take_turns),
      cmocka_unit_test(a_chain_is_cheaper_than_launches),
      cmocka_unit_test(chains_have_room_for_the_most_rows),
      cmocka_unit_test(a_chain_may_add),
      cmocka_unit_test(three_regions_stand_beside),
      cmocka_unit_test(the_remainder_writes),
      cmocka_unit_test(atomics_scale_before),
      cmocka_unit_test(rows_of_their_own_reach_through_splits),
      cmocka_unit_test(who_minds_no_rows_adds),
      cmocka_unit_test(rows_are_committed_once),
      cmocka_unit_test(one_writer_needs_no_sums),
      cmocka_unit_test(sums_may_take_atomics),
      cmocka_unit_test(a_leaf_takes_what_its_split_found),
      cmocka_unit_test(choices_share_what_was_found),
      cmocka_unit_test(settings_hold_below_their_node),
      cmocka_unit_test(settings_must_make_sense),
      cmocka_unit_test(a_choice_is_the_cheapest),
      cmocka_unit_test(a_choice_sees_its_launch),
      cmocka_unit_test(choices_may_refuse),
      cmocka_unit_test(what_takes_nothing_leaves_no_trace),
      cmocka_unit_test(nothing_behind_something_is_no_refusal),
      cmocka_unit_test(matrices_without_nonzeros_have_a_writer),
      cmocka_unit_test(every_allocation_may_fail),
      cmocka_unit_test(random_trees_match_the_oracle),
  };
  return cmocka_run_group_tests_name("composition", tests, NULL, NULL);
}
