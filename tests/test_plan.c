// SPDX-License-Identifier: Apache-2.0
/* Plans of CB-SpMV: formats against a brute-force count, every nonzero in one slot, the same bytes for any number
 * of threads, both balances, carries and atomics, new values, and every allocation failing once. */
#include "tests/layouts.h"

#include "analysis/plan/assignment.h"
#include "analysis/layout.h"

static const char *const option_sets[] = {
    "",
    "aggregate=on",
    "aggregate=off",
    "aggregate=on intra=off",
    "aggregate=off intra=off type=f32",
    "th1=0 th2=0",
    "th1=0 th2=256",
    "th1=257 th2=256",
    "th1=1 th2=0 aggregate=off",
    "balance=heap",
    "balance=heap atomics=on form=ax",
    "unit-budget=16",
    "unit-budget=16 team=8 atomics=on",
    "team=4 form=add",
    "recipe=cb-long long-row=3",
    "recipe=cb-long long-row=8 balance=heap",
    "bake-limit=16384 type=f32",
    "bake-limit=0",
    "recipe=sell",
    "recipe=sell sell-sort=on sell-lanes=4",
    "recipe=sell sell-vector=2 sell-lanes=2",
    "recipe=sell sell-vector=4 sell-vary=on",
    "recipe=sell sell-vary=on form=ax",
    "recipe=merge merge-pad=off",
    "recipe=auto type=f32",
};
enum { OPTION_SETS = sizeof option_sets / sizeof *option_sets };

static long count_fact(const struct product *product, const char *key) {
  return strtol(fact(product, key), NULL, 10); /* "none" is 0 */
}

/* Formats of all sub-blocks, counted from a dense picture. */
static void brute_force(const struct cb_csr *csr, int aggregated, int th1, int th2, long formats[3]) {
  unsigned char *picture = calloc((size_t)(csr->rows * csr->cols + 1), 1);
  for (int64_t i = 0; i < csr->rows; i++)
    for (int64_t k = cb_csr_row(csr, i); k < cb_csr_row(csr, i + 1); k++)
      picture[i * csr->cols + csr->col_idx[k]] = 1;
  for (int64_t top = 0; top < csr->rows; top += 16) {
    int64_t kept = 0;
    int nonzeros = 0;
    for (int64_t j = 0; j <= csr->cols; j++) {
      int column = 0;
      for (int64_t i = top; j < csr->cols && i < top + 16 && i < csr->rows; i++)
        column += picture[i * csr->cols + j];
      const int64_t place = aggregated ? kept : j;
      const int boundary = j == csr->cols || (place % 16 == 0 && (!aggregated || column));
      if (boundary && nonzeros) {
        formats[nonzeros < th1 ? 0 : nonzeros > th2 ? 2 : 1]++;
        nonzeros = 0;
      }
      nonzeros += column;
      kept += column > 0;
    }
  }
  free(picture);
}

static void formats_match_a_count(void **state) {
  (void)state;
  static const int thresholds[][2] = {{32, 128}, {0, 0}, {0, 256}, {257, 256}, {9, 40}, {1, 1}};
  for (uint64_t seed = 0; seed < 60; seed++)
    for (int aggregated = 0; aggregated < 2; aggregated++) {
      uint64_t random = seed;
      const int64_t rows = 1 + (int64_t)(draw(&random) % 70), cols = 1 + (int64_t)(draw(&random) % 90);
      const int *threshold = thresholds[seed % 6];
      char settings[96];
      long formats[3] = {0};
      snprintf(settings, sizeof settings, "aggregate=%s th1=%d th2=%d coo-gain=0", aggregated ? "on" : "off", threshold[0],
               threshold[1]);
      struct product product =
          product_of_matrix(random_matrix(rows, cols, (unsigned)(draw(&random) % 700), seed), settings);
      brute_force(product.csr, aggregated, threshold[0], threshold[1], formats);
      assert_int_equal(count_fact(&product, "coo"), formats[0]);
      assert_int_equal(count_fact(&product, "csr"), formats[1]);
      assert_int_equal(count_fact(&product, "dense"), formats[2]);
      product_release(&product);
    }
}

static void coo_is_for_uneven_rows(void **state) {
  (void)state;
  /* One row of 320 nonzeros and 15 of 1: as CSR, 16 lanes take 320 steps, 5120 slots for 335 nonzeros. COO saves these,
   * but for what adding up its partial sums costs (160): 4625, or 90.3 %. */
  for (int percent = 0; percent <= 100; percent++) {
    struct cb_diag diag = {0};
    struct cb_coo coo = {.rows = 16, .cols = 320};
    struct cb_csr csr = {0};
    char settings[64];
    coo.row_idx = cb_alloc(400, 4);
    coo.col_idx = cb_alloc(400, 4);
    for (int k = 0; k < 335; k++) {
      coo.row_idx[coo.count] = k < 320 ? 0 : k - 319;
      coo.col_idx[coo.count++] = k < 320 ? k : k - 320;
    }
    assert_ok(cb_csr_from_coo(&csr, &coo, &diag));
    snprintf(settings, sizeof settings, "th1=31 coo-gain=%d", percent);
    struct product product = product_of_matrix(csr, settings);
    assert_int_equal(count_fact(&product, "coo"), percent <= 90 ? 19 : 0); /* the first has 31 */
    assert_int_equal(count_fact(&product, "csr"), percent <= 90 ? 1 : 20);
    product_release(&product);
  }
}

/* Runs of one shape need no array that says where they are. */
static void equal_runs_have_no_pointers(void **state) {
  static const char *const names[] = {"first_block", "nnz_per_run", "vp_per_run", "row_length", "run_panel"};
  (void)state;
  struct cb_diag diag = {0};
  enum { ROWS = 1024, PER_ROW = 5 };
  struct cb_coo coo = {.rows = ROWS, .cols = ROWS};
  struct cb_csr csr = {0};
  coo.row_idx = cb_alloc(ROWS * PER_ROW, 4);
  coo.col_idx = cb_alloc(ROWS * PER_ROW, 4);
  for (int k = 0; k < ROWS * PER_ROW; k++) {
    coo.row_idx[coo.count] = k / PER_ROW;
    coo.col_idx[coo.count++] = (k / PER_ROW + 37 * (k % PER_ROW)) % ROWS;
  }
  assert_ok(cb_csr_from_coo(&csr, &coo, &diag));
  struct product product = product_of_matrix(csr, "bake-limit=0");
  const struct cb_region *region = &product.plan->regions[0];
  assert_string_not_equal(fact(&product, "shape"), "none");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    int found = 0;
    for (int a = 0; a < region->arrays_count; a++) {
      if (strcmp(region->arrays[a].name, names[i])) continue;
      assert_int_equal(region->arrays[a].storage, CB_AFFINE);
      found++;
    }
    assert_true(found <= 1);
  }
  product_release(&product);
}

static void every_nonzero_has_one_slot(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  for (int set = 0; set < OPTION_SETS; set++)
    for (unsigned per_mille = 1; per_mille <= 1000; per_mille = per_mille * 3 + 1) {
      struct product product = product_of_matrix(random_matrix(83, 70, per_mille, per_mille), option_sets[set]);
      assert_ok(cb_assignment_check(product.plan, product.assignment, &diag));
      assert_ok(cb_plan_check(product.plan, &diag));
      product_release(&product);
    }
}

/* A check that cannot fail proves nothing: a plan damaged in any of these ways must be refused. */
static void a_damaged_plan_is_refused(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct product product = product_of_matrix(random_matrix(64, 64, 300, 1), "");
  struct cb_plan *plan = product.plan;
  struct cb_region *region = &plan->regions[0];
  int64_t *const numbers[] = {&plan->nnz,          &region->bytes,       &region->blocks,
                              &region->value_slots, &region->first_block, &plan->carry_sums,
                              &plan->launches[0].blocks, &region->nonzeros,    &region->first_carry_sum};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    const int64_t kept = *numbers[i];
    *numbers[i] = i == 3 ? 1 : kept + 1;
    assert_int_equal(cb_plan_check(plan, &diag), CB_ERR_INTERNAL);
    *numbers[i] = kept;
    assert_ok(cb_plan_check(plan, &diag));
  }
  plan->launches[0].threads++;
  assert_int_equal(cb_plan_check(plan, &diag), CB_ERR_INTERNAL);
  plan->launches[0].threads--;
  plan->launches[0].dynamic_shared = plan->target.shared_per_block + 1;
  assert_int_equal(cb_plan_check(plan, &diag), CB_ERR_INTERNAL);
  plan->launches[0].dynamic_shared = 0;
  plan->launches_count--;
  assert_int_equal(cb_plan_check(plan, &diag), CB_ERR_INTERNAL);
  plan->launches_count++;
  const char *const name = region->arrays[1].name;
  region->arrays[1].name = region->arrays[0].name;
  assert_int_equal(cb_plan_check(plan, &diag), CB_ERR_INTERNAL);
  region->arrays[1].name = name;
  assert_ok(cb_plan_check(plan, &diag));
  product.assignment->nonzeros++;
  assert_int_equal(cb_assignment_check(plan, product.assignment, &diag), CB_ERR_INTERNAL);
  product.assignment->nonzeros -= 2;
  assert_int_equal(cb_assignment_check(plan, product.assignment, &diag), CB_ERR_INTERNAL);
  product.assignment->nonzeros++;
  product_release(&product);
}

static const struct cb_layout *packs_right;

/* The nonzero of the first slot that has one lies in the last such slot, too, in place of its own. */
static enum cb_status pack_twice(const struct cb_region *region, const struct cb_region_work *work,
                                 unsigned char *const *targets, const struct cb_slot_map *map, struct cb_diag *diag) {
  const enum cb_status s = packs_right->pack(region, work, targets, map, diag);
  int64_t first = 0, last = map->count - 1;
  while (cb_slot_get(map, first) == CB_NO_NONZERO) first++;
  while (cb_slot_get(map, last) == CB_NO_NONZERO) last--;
  cb_slot_set(map, last, cb_slot_get(map, first));
  return s;
}

static void a_nonzero_in_two_slots_is_refused(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct product product = product_of_matrix(random_matrix(64, 64, 300, 1), "");
  packs_right = product.assignment->layouts[0];
  struct cb_layout twice = *packs_right;
  twice.pack = pack_twice;
  product.assignment->layouts[0] = &twice;
  assert_int_equal(cb_assignment_check(product.plan, product.assignment, &diag), CB_ERR_INTERNAL);
  assert_non_null(strstr(diag.message, "which is in another slot already"));
  product.assignment->layouts[0] = packs_right;
  assert_ok(cb_assignment_check(product.plan, product.assignment, &diag));
  product_release(&product);
}

static void data_belongs_to_one_plan_and_pattern(void **state) {
  (void)state;
  struct product product = product_of_matrix(random_matrix(64, 64, 300, 1), "");
  const struct cb_hash pattern = cb_csr_pattern_hash(product.csr), id = cb_blob_id(product.plan, pattern);
  struct cb_hash other = pattern;
  other.low++;
  assert_true(cb_blob_id(product.plan, other).low != id.low);
  product.plan->hash.high++;
  assert_true(cb_blob_id(product.plan, pattern).low != id.low);
  product_release(&product);
}

static void threads_change_nothing(void **state) {
  (void)state;
  for (int set = 0; set < OPTION_SETS; set++)
    check_threads("random,rows=700,cols=600,density=0.06,seed=7", option_sets[set]);
}

static void aggregation_asks_th0(void **state) {
  (void)state;
  /* Eight aligned sub-blocks, k of them with one nonzero, the others full: a share of k / 8. */
  for (int sparse = 0; sparse <= 8; sparse++) {
    struct cb_diag diag = {0};
    struct cb_coo coo = {.rows = 16, .cols = 128};
    struct cb_csr csr = {0};
    coo.row_idx = cb_alloc(2048, 4);
    coo.col_idx = cb_alloc(2048, 4);
    for (int block = 0; block < 8; block++)
      for (int k = 0; k < (block < sparse ? 1 : 256); k++) {
        coo.row_idx[coo.count] = k / 16;
        coo.col_idx[coo.count++] = 16 * block + k % 16;
      }
    assert_ok(cb_csr_from_coo(&csr, &coo, &diag));
    for (int th0 = 0; th0 <= 100; th0 += 25) {
      char settings[32];
      snprintf(settings, sizeof settings, "th0=%d", th0);
      struct product product = {0};
      set_options(&product.options, settings);
      assert_ok(cb_target_find(&product.target, "sm_90", &diag));
      assert_ok(cb_plan_build(&product.plan, &product.assignment, &csr, &product.target, &product.options, &diag));
      assert_string_equal(fact(&product, "aggregated"), sparse * 100 > th0 * 8 ? "yes" : "no");
      cb_assignment_free(product.assignment);
      cb_plan_free(product.plan);
    }
    cb_csr_release(&csr);
  }
}

/* Alg. 2 gives no thread block more than 8 runs, and no two loads differ by more than the largest run. */
static void heap_balances(void **state) {
  (void)state;
  struct product product = product_of_matrix(random_matrix(640, 640, 120, 3), "balance=heap aggregate=off unit-budget=200");
  const struct cb_plan *plan = product.plan;
  const struct cb_region *region = &plan->regions[0];
  const unsigned char *nonzeros = NULL;
  for (int a = 0; a < region->arrays_count; a++) {
    if (strcmp(region->arrays[a].name, "nnz_per_run")) continue;
    assert_int_equal(region->arrays[a].type, CB_U8);
    nonzeros = product.blob.bytes + cb_blob_offset(plan, 0, a);
  }
  assert_non_null(nonzeros);
  int64_t least = INT64_MAX, most = 0, largest = 0, sum = 0;
  for (int64_t block = 0; block < region->blocks; block++) {
    int64_t load = 0;
    for (int64_t run = 8 * block; run < 8 * block + 8; run++) {
      load += nonzeros[run];
      if (nonzeros[run] > largest) largest = nonzeros[run];
    }
    if (load < least) least = load;
    if (load > most) most = load;
    sum += load;
  }
  assert_int_equal(sum, product.csr->nnz);
  assert_true(most - least <= largest);
  product_release(&product);
}

static void panels_are_shared_only_when_planned(void **state) {
  (void)state;
  /* 2048 columns of a panel fit one thread block: 8 runs of 256. */
  struct product whole = product_of_matrix(random_matrix(64, 2048, 300, 5), "team=1 unit-budget=1000000");
  assert_int_equal(whole.plan->carry_sums, 0);
  assert_null(strstr(whole.source.text + whole.source.body, "carry"));
  struct product split = product_of_matrix(random_matrix(64, 4000, 300, 5), "team=1 unit-budget=1000");
  assert_true(split.plan->carry_counters == 4);
  assert_true(split.plan->carry_sums >= 16 * 8);
  assert_null(strstr(split.source.text + split.source.body, "atomicAdd(vectors.y"));
  struct product atomic = product_of_matrix(random_matrix(64, 4000, 300, 5), "team=1 unit-budget=1000 atomics=on");
  assert_int_equal(atomic.plan->carry_sums, 0);
  assert_int_equal(atomic.plan->launches_count, 2); /* y is scaled first */
  assert_non_null(strstr(atomic.source.text + atomic.source.body, "atomicAdd(vectors.y"));
  struct product unshared = product_of_matrix(random_matrix(64, 64, 300, 5), "atomics=on");
  assert_int_equal(unshared.plan->launches_count, 1); /* permitted, not needed */
  product_release(&whole);
  product_release(&split);
  product_release(&atomic);
  product_release(&unshared);
}

static void new_values_equal_a_fresh_pack(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  for (int set = 0; set < OPTION_SETS; set++) {
    struct product product = product_of_matrix(random_matrix(90, 100, 200, 2), option_sets[set]);
    struct cb_blob fresh = {0};
    for (int64_t k = 0; k < product.csr->nnz; k++) product.csr->values[k] = (double)(3 * k) - 7;
    assert_ok(cb_pack_values(&product.blob, product.plan, product.assignment, product.csr->values, &diag));
    assert_ok(cb_pack(&fresh, product.plan, product.assignment, product.csr, cb_csr_pattern_hash(product.csr),
                      &diag));
    assert_int_equal(fresh.length, product.blob.length);
    assert_memory_equal(fresh.bytes, product.blob.bytes, (size_t)fresh.length);
    cb_blob_release(&fresh);
    product_release(&product);
  }
}

/* Columns of slots are none of the plan's: packing makes them, as large as the plan says and not all alike. Those that
 * are an affine sequence, or few enough to stand in the text, are the plan's at once. */
static void late_arrays_are_made_by_packing(void **state) {
  (void)state;
  static const struct {
    const char *matrix, *settings, *array;
    int region;
    enum cb_storage storage;
  } cases[] = {
      {"rmat,scale=11,edge_factor=8", "recipe=sell", "column_offset", 0, CB_STORED},
      {"rmat,scale=11,edge_factor=8", "recipe=merge", "column_offset", 0, CB_STORED},
      {"long_row,rows=30000,cols=70000,long_length=9000", "recipe=merge", "column_offset", 0, CB_STORED},
      {"rmat,scale=11,edge_factor=8", "recipe=hot hot-columns=64", "hot_place", 0, CB_STORED},
      {"rmat,scale=11,edge_factor=8", "recipe=hot hot-columns=64", "cold_index", 0, CB_STORED},
      {"rmat,scale=17,edge_factor=2", "recipe=hot hot-columns=64", "cold_index", 0, CB_STORED},
      {"rmat,scale=17,edge_factor=2", "recipe=hot hot-columns=64", "cold_index_high", 0, CB_STORED},
      {"rmat,scale=12", "recipe=phases phase-columns=200 phase-set=64 phase-row=1", "entry_place", 1, CB_STORED},
      {"one_column,rows=3000", "recipe=sell", "column_offset", 0, CB_AFFINE},
      {"one_column,rows=3000", "recipe=merge", "column_offset", 0, CB_AFFINE},
      {"one_column,rows=3000", "recipe=hot hot-columns=1", "hot_place", 0, CB_AFFINE},
      {"one_row,cols=3008", "recipe=merge", "column_offset", 0, CB_AFFINE},
      {"rmat,scale=5,edge_factor=4", "recipe=merge bake-limit=16384", "column_offset", 0, CB_BAKED},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
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

static void shapes_without_nonzeros(void **state) {
  (void)state;
  static const int64_t shapes[][2] = {{0, 0}, {0, 7}, {7, 0}, {1, 1}, {16, 16}, {33, 5}, {128, 3}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int set = 0; set < OPTION_SETS; set++) {
      struct product product = product_of_matrix(random_matrix(shapes[i][0], shapes[i][1], 0, 1), option_sets[set]);
      assert_int_equal(product.plan->launches_count, shapes[i][0] > 0);
      assert_int_equal(product.plan->nnz, 0);
      product_release(&product);
    }
}

/* The search keeps the cheapest, says what it saw, and skips what refuses. */
static void auto_keeps_the_cheapest(void **state) {
  (void)state;
  static const char *const matrices[] = {"stencil7,n=12", "dense,rows=300,cols=300", "rmat,scale=10", "one_row,cols=900"};
  for (size_t m = 0; m < sizeof matrices / sizeof *matrices; m++) {
    struct product product = product_of(matrices[m], "recipe=auto");
    const struct cb_plan *plan = product.plan;
    int64_t least = INT64_MAX;
    assert_true(plan->candidates_count >= 2);
    for (int i = 0; i < plan->candidates_count; i++) {
      const struct cb_candidate *candidate = &plan->candidates[i];
      char settings[64];
      if (*candidate->refusal) continue;
      snprintf(settings, sizeof settings, "recipe=%s", candidate->recipe);
      struct product alone = product_of(matrices[m], settings);
      assert_int_equal(alone.plan->cost.ns, candidate->cost.ns);
      assert_int_equal(cb_plan_bytes(alone.plan), candidate->bytes);
      if (candidate->cost.ns < least) least = candidate->cost.ns;
      if (!strcmp(candidate->recipe, plan->recipe)) assert_string_equal(alone.source.text, product.source.text);
      product_release(&alone);
    }
    assert_int_equal(plan->cost.ns, least);
    product_release(&product);
  }
}

/* Leaving out what cannot win does not change who wins. */
static void a_hopeful_search_finds_the_same(void **state) {
  (void)state;
  static const char *const shapes[] = {
      "fe3,n=7", "stencil7,n=70", "stencil27,n=9", "rmat,scale=11,edge_factor=16", "road,n=50", "uniform,n=1500,per_row=9",
      "block,blocks_r=60,r=4,c=4,per_row=6", "dense,rows=130,cols=150", "powerlaw,rows=2500,max=900", "tridiagonal,n=4000",
      "random_exact,blocks_r=12,blocks_c=12,block_nnz=256", "hypersparse,rows=4000", "long_row,rows=3000,long_length=2500",
  };
  int left_out = 0;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    struct cb_csr csr = {0};
    struct cb_target target;
    struct cb_diag diag = {0};
    struct cb_plan *plans[2];
    assert_ok(cb_matrix_generate(&csr, shapes[i], &diag));
    assert_ok(cb_target_find(&target, "sm_90", &diag));
    for (int all = 0; all < 2; all++) {
      struct cb_options options;
      struct cb_assignment *assignment = NULL;
      set_options(&options, all ? "recipe=auto search=all" : "recipe=auto search=hopeful");
      assert_ok(cb_plan_build(&plans[all], &assignment, &csr, &target, &options, &diag));
      cb_assignment_free(assignment);
    }
    assert_string_equal(plans[0]->line, plans[1]->line);
    for (int c = 0; c < plans[0]->candidates_count; c++) {
      assert_null(strstr(plans[1]->candidates[c].refusal, "not tried"));
      const char *refusal = plans[0]->candidates[c].refusal;
      left_out += strstr(refusal, "not tried") != NULL;
      if (strstr(refusal, "not tried")) assert_non_null(strstr(refusal, "and only what may take less than"));
    }
    for (int all = 0; all < 2; all++) cb_plan_free(plans[all]);
    cb_csr_release(&csr);
  }
  assert_true(left_out > 0);
}

static void too_many_rows_are_refused(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_target target;
  struct cb_options options;
  struct cb_plan *plan;
  struct cb_assignment *assignment;
  /* Only the shape is looked at before the refusal. */
  const struct cb_csr csr = {.rows = INT32_MAX, .cols = 1};
  cb_options_default(&options);
  options.recipe = "cb";
  assert_ok(cb_target_find(&target, "sm_90", &diag));
  assert_int_equal(cb_plan_build(&plan, &assignment, &csr, &target, &options, &diag), CB_ERR_LIMIT);
  assert_null(plan);
  assert_null(assignment);
  assert_non_null(strstr(diag.message, "2147483647 rows exceed"));
  options.recipe = "none-such";
  assert_int_equal(cb_plan_build(&plan, &assignment, &csr, &target, &options, &diag), CB_ERR_ARGUMENT);
  assert_non_null(strstr(diag.message, "'cb'"));
}

/* Every allocation from analysis to text fails once: a clean status each time, and nothing leaks (ASan). */
static void every_allocation_may_fail(void **state) {
  static const char *const sets[] = {"unit-budget=16", "balance=heap", "recipe=cb-long long-row=4 bake-limit=0",
                                     "recipe=sell sell-vary=on", "recipe=auto"};
  (void)state;
  for (int set = 0; set < 5; set++) assert_true(check_allocations(random_matrix(60, 60, 250, 9), sets[set]) > 40);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(formats_match_a_count),
      cmocka_unit_test(coo_is_for_uneven_rows),
      cmocka_unit_test(equal_runs_have_no_pointers),
      cmocka_unit_test(every_nonzero_has_one_slot),
      cmocka_unit_test(a_damaged_plan_is_refused),
      cmocka_unit_test(a_nonzero_in_two_slots_is_refused),
      cmocka_unit_test(data_belongs_to_one_plan_and_pattern),
      cmocka_unit_test(threads_change_nothing),
      cmocka_unit_test(aggregation_asks_th0),
      cmocka_unit_test(heap_balances),
      cmocka_unit_test(panels_are_shared_only_when_planned),
      cmocka_unit_test(new_values_equal_a_fresh_pack),
      cmocka_unit_test(late_arrays_are_made_by_packing),
      cmocka_unit_test(shapes_without_nonzeros),
      cmocka_unit_test(auto_keeps_the_cheapest),
      cmocka_unit_test(a_hopeful_search_finds_the_same),
      cmocka_unit_test(too_many_rows_are_refused),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
