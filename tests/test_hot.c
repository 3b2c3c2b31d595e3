// SPDX-License-Identifier: Apache-2.0
/* The layout of hot columns: which columns it chooses and what it refuses, that every nonzero has a slot, how slices
 * are distributed, the same bytes for any number of threads, every allocation failing once, and products of many shapes
 * against the oracle through the host execution. */
#include "tests/layouts.h"

#include "analysis/layout.h"
#include "analysis/layouts/hot/hot_columns.h"
#include "analysis/layouts/hot/hot_deal.h"
#include "analysis/layouts/hot/options.h"

#include <omp.h>

static struct product hot_of(const char *matrix, const char *settings) {
  char text[256];
  snprintf(text, sizeof text, "recipe=hot %s", settings);
  return product_of(matrix, text);
}

/* ---- columns */

/* The hot columns are the ones with the most nonzeros, ties by number, in order. */
static void takes_the_hottest(void **state) {
  (void)state;
  static const int counts[] = {1, 2, 17, 64, 300, 2047, 5000};
  for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
    char settings[64];
    snprintf(settings, sizeof settings, "hot-columns=%d", counts[c]);
    struct product product = hot_of("rmat,scale=11,edge_factor=8", settings);
    const struct cb_csr *csr = product.csr;
    const int64_t hot = constant(&product, "kHot", -1);
    int *count = calloc((size_t)csr->cols, sizeof *count), *is_hot = calloc((size_t)csr->cols, sizeof *is_hot);
    int64_t occupied = 0, held = 0;
    for (int64_t k = 0; k < csr->nnz; k++) occupied += !count[csr->col_idx[k]]++;
    assert_int_equal(hot, counts[c] < occupied ? counts[c] : occupied);
    for (int64_t i = 0; i < hot; i++) {
      const int64_t column = element(&product, "hot_column", i);
      assert_true(!i || column > element(&product, "hot_column", i - 1));
      is_hot[column] = 1;
      held += count[column];
    }
    for (int64_t a = 0; a < csr->cols; a++)
      for (int64_t b = 0; is_hot[a] && b < csr->cols; b++)
        if (!is_hot[b]) assert_true(count[a] > count[b] || (count[a] == count[b] && a < b));
    assert_int_equal(strtol(fact(&product, "share"), NULL, 10), held * 100 / csr->nnz);
    assert_int_equal(product.plan->launches[0].dynamic_shared, hot * 8);
    free(count);
    free(is_hot);
    product_release(&product);
  }
}

static int octave(int64_t count) {
  int log2 = 0;
  while (count >> (log2 + 1)) log2++;
  return log2;
}

/* How the packed column at `i` and the one before it stand in the table: by frequency up to a factor of two, then by
 * number. */
static void packed_in_order(struct product *product, const int *count, int64_t i, int64_t hot) {
  const int64_t column = element(product, "hot_column", i);
  const int64_t before = element(product, "hot_column", i - 1);
  if (i == hot) return;
  const int now = octave(count[column]), then = octave(count[before]);
  assert_true(now < then || (now == then && column > before));
}

/* The packed columns are the next ones, in classes; they are all there is when more are asked for. */
static void then_the_packed(void **state) {
  (void)state;
  static const int hots[] = {1, 40, 300, 900}, asked[] = {0, 1, 50, 333, 100000};
  for (size_t c = 0; c < 20; c++) {
    char settings[64];
    snprintf(settings, sizeof settings, "hot-columns=%d hot-packed=%d bake-limit=0", hots[c % 4], asked[c / 4]);
    struct product product = hot_of("rmat,scale=11,edge_factor=8", settings);
    const struct cb_csr *csr = product.csr;
    const int64_t hot = constant(&product, "kHot", -1);
    int *count = calloc((size_t)csr->cols, sizeof *count), *place = calloc((size_t)csr->cols, sizeof *place);
    int64_t occupied = 0;
    for (int64_t k = 0; k < csr->nnz; k++) occupied += !count[csr->col_idx[k]]++;
    const int64_t packed = asked[c / 4] < occupied - hot ? asked[c / 4] : occupied - hot;
    assert_int_equal(array_of(&product, "hot_column")->count, hot + packed);
    assert_int_equal(strtol(fact(&product, "packed"), NULL, 10), packed); /* "none" is 0 */
    for (int64_t i = 0; i < hot + packed; i++) {
      const int64_t column = element(&product, "hot_column", i);
      assert_int_equal(place[column], 0); /* once */
      place[column] = i < hot ? 2 : 1;
      if (i >= hot) packed_in_order(&product, count, i, hot);
    }
    for (int64_t a = 0; a < csr->cols; a++)
      for (int64_t b = 0; place[a] && b < csr->cols; b++)
        if (place[b] < place[a]) assert_true(count[a] > count[b] || (count[a] == count[b] && a < b));
    free(count);
    free(place);
    product_release(&product);
  }
}

static struct cb_hot_columns choose(const struct cb_csr *csr, const char *settings, int64_t l2_bytes) {
  struct cb_diag diag = {0};
  struct cb_options options;
  struct cb_target target;
  struct cb_hot_columns columns;
  struct cb_arena arena = {0};
  set_options(&options, settings);
  assert_ok(cb_target_find(&target, "sm_90", &diag));
  target.l2_bytes = l2_bytes;
  const int64_t *settings_of_hot = cb_settings(&options, cb_layout_find("hot"));
  const struct cb_hot_shape shape = {.csr = csr,
                                     .settings = settings_of_hot,
                                     .gather = (enum cb_switch)settings_of_hot[HOT_GATHER],
                                     .target = &target,
                                     .value_bytes = 8,
                                     .vector_bytes = 8,
                                     .hot_bytes = 8,
                                     .blocks = 132};
  assert_ok(cb_hot_columns_choose(&columns, &arena, &shape, &diag));
  cb_arena_release(&arena);
  return columns; /* numbers alone are looked at */
}

/* Only where L2 loses entries of x is something gained; the smaller it is, the more is lost. */
static void packed_where_l2_is_small(void **state) {
  (void)state;
  struct cb_csr csr = matrix_of("rmat,scale=18,edge_factor=16");
  const char *automatic = "recipe=hot hot-columns=2000";
  struct cb_hot_columns columns = choose(&csr, automatic, 60 << 20), none;
  assert_int_equal(columns.packed, 0);
  assert_true(columns.rest > 10000);
  columns = choose(&csr, automatic, 2 << 20);
  assert_true(columns.packed > 1000);
  assert_true(columns.gather);
  none = choose(&csr, "recipe=hot hot-columns=2000 hot-packed=1", 2 << 20);
  assert_int_equal(none.packed, 1); /* as good as none */
  assert_int_equal(none.prepare_ns, 0);
  assert_true(columns.prepare_ns + columns.miss_ns + 2000 <= none.miss_ns);
  assert_true(choose(&csr, "recipe=hot hot-columns=2000 hot-packed=1", 1 << 20).miss_ns > none.miss_ns);
  none = choose(&csr, "recipe=hot hot-columns=2000 hot-gather=off", 2 << 20);
  assert_int_equal(none.packed, 0);
  assert_false(none.gather);
  cb_csr_release(&csr);
}

static enum cb_status status_of(const char *matrix, const char *settings, const char *arch, struct cb_diag *message) {
  struct cb_csr csr = matrix_of(matrix);
  char text[256];
  snprintf(text, sizeof text, "recipe=hot %s", settings);
  const enum cb_status s = plan_status(&csr, text, arch, message);
  cb_csr_release(&csr);
  return s;
}

/* A refusal says what is missing, in numbers. */
static void refusals_say_what_would_be_gained(void **state) {
  (void)state;
  static const char *const cases[][3] = {
      {"powerlaw,rows=20000,cols=9000,max=8000,min=0", "",
       "no column has more than the 23 nonzeros that repay copying its entry of x to 23 thread blocks"},
      {"rmat,scale=11,edge_factor=8", "", "less than 2.00; use another recipe, or say --hot-columns"},
      {"rmat,scale=11,edge_factor=8", "hot-share=99", "less than the 99 % of --hot-share"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct cb_diag message = {0};
    assert_int_equal(status_of(cases[i][0], cases[i][1], "sm_90", &message), CB_ERR_UNSUPPORTED);
    if (!strstr(message.message, cases[i][2])) fail_msg("'%s' lacks '%s'", message.message, cases[i][2]);
  }
}

/* All of x is copied as it lies where it fits and each column has a nonzero, unless a launch before is asked for. */
static void takes_all_of_x(void **state) {
  static const char matrix[] = "random,rows=40000,cols=900,per_row=11";
  (void)state;
  struct product whole = hot_of(matrix, "hot-columns=0"), gathered = hot_of(matrix, "hot-columns=900 hot-gather=on");
  assert_null(array_of(&whole, "hot_column"));
  assert_int_equal(constant(&whole, "kHot", -1), 900);
  assert_int_equal(whole.plan->launches_count, 1);
  assert_true(has(&whole, "vector_t(load_x(vectors, i))"));
  assert_non_null(array_of(&gathered, "hot_column"));
  assert_int_equal(gathered.plan->launches_count, 2);
  struct product half = hot_of("random,rows=40000,cols=20000,per_row=40", ""); /* beyond half of the shared memory */
  assert_int_equal(constant(&half, "kHot", -1), 20000);
  assert_int_equal(half.plan->launches_count, 1);
  struct product *const every[] = {&whole, &gathered, &half};
  for (int i = 0; i < 3; i++) product_release(every[i]);
}

/* Many streams, and nothing else to wait for: three thread blocks of a multiprocessor, each with a small table. */
static void small_tables_are_several(void **state) {
  (void)state;
  static const struct {
    const char *matrix, *settings;
    int threads;
    int64_t blocks;
  } cases[] = {{"uniform,n=320000,cols=300,per_row=13", "", 512, 3 * 132},
               {"uniform,n=310000,cols=300,per_row=13", "", 1024, 132},   /* a little less than 20 nonzeros a thread */
               {"uniform,n=320000,cols=5121,per_row=13", "", 1024, 132},  /* a little more than 40 KiB */
               {"uniform,n=460000,cols=300,per_row=9", "", 1024, 132}};   /* short rows */
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct product product = hot_of(cases[c].matrix, cases[c].settings);
    assert_int_equal(product.plan->launches[0].threads, cases[c].threads);
    assert_int_equal(product.plan->launches[0].blocks, cases[c].blocks);
    product_release(&product);
  }
}

/* Where hot steps are four times as many, fewer cold ones are loaded together; not in a family's kernel. */
static void batches_follow_steps(void **state) {
  (void)state;
  static const struct {
    const char *settings;
    int hot, cold;
  } cases[] = {{"hot-columns=1500", 5, 2}, {"hot-columns=300", 4, 4}, {"hot-columns=1500 type=f32", 4, 4},
               {"hot-columns=1500 hot-batch=6", 6, 6}, {"hot-columns=1500 vectors=2", 4, 4}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct product product = hot_of("rmat,scale=12,edge_factor=40", cases[c].settings);
    assert_int_equal(constant(&product, "kBatch", -1), cases[c].hot);
    assert_int_equal(constant(&product, "kColdBatch", -1), cases[c].cold);
    product_release(&product);
  }
}

static void refuses_what_has_no_hot_columns(void **state) {
  (void)state;
  struct cb_diag message = {0};
  assert_int_equal(status_of("stencil7,n=12", "", "sm_90", &message), CB_ERR_UNSUPPORTED);
  assert_non_null(strstr(message.message, "hot-columns"));
  assert_int_equal(status_of("rmat,scale=11,edge_factor=8", "", "sm_90", &message), CB_ERR_UNSUPPORTED);
  assert_int_equal(status_of("empty,rows=20,cols=9", "hot-columns=4", "sm_90", &message), CB_ERR_UNSUPPORTED);
  /* Shared memory bounds them, by target and type. */
  const char *many = "rmat,scale=11,edge_factor=8", *most = "hot-columns=16384";
  assert_int_equal(status_of(many, most, "sm_90", &message), CB_OK);
  assert_int_equal(status_of(many, most, "sm_89", &message), CB_ERR_LIMIT);
  assert_int_equal(status_of(many, "type=f32 hot-columns=16384", "sm_89", &message), CB_OK);
  assert_int_equal(status_of(many, "hot-columns=4 hot-packed=5 hot-gather=off", "sm_90", &message), CB_ERR_ARGUMENT);
  assert_non_null(strstr(message.message, "hot-gather"));
  assert_int_equal(status_of(many, "hot-columns=4 hot-gather=off", "sm_90", &message), CB_OK);
}

/* As it decides itself, on a graph that is worth it. */
static void chooses_for_a_graph(void **state) {
  (void)state;
  struct product product = hot_of("rmat,scale=16,edge_factor=32", "");
  const struct cb_launch *launch = &product.plan->launches[product.plan->launches_count - 1];
  assert_int_equal(launch->threads, 1024);
  assert_int_equal(launch->blocks, 132);
  assert_int_equal(launch->dynamic_shared, 8 * constant(&product, "kHot", -1));
  assert_true(launch->dynamic_shared <= 128 << 10);
  assert_true(strtol(fact(&product, "share"), NULL, 10) >= 25);
  product_release(&product);
}

/* ---- slices */

static void every_nonzero_has_one_slot(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  for (unsigned per_mille = 1; per_mille <= 1000; per_mille += 111)
    for (int hot = 1; hot <= 81; hot += 20)
      for (int threads = 256; threads <= 1024; threads *= 2) {
        char settings[128];
        snprintf(settings, sizeof settings, "recipe=hot hot-columns=%d hot-threads=%d", hot, threads);
        struct cb_csr csr = random_matrix(83, 70, per_mille, per_mille);
        if (!csr.nnz) {
          cb_csr_release(&csr);
          continue;
        }
        struct product product = product_of_matrix(csr, settings);
        assert_ok(cb_plan_check(product.plan, &diag));
        assert_ok(cb_assignment_check(product.plan, product.assignment, &diag));
        product_release(&product);
      }
}

static int64_t most_of_lanes(struct product *product, const char *array, int64_t first, int64_t end) {
  int64_t most = 0;
  for (int64_t lane = first; lane < end; lane++) {
    const int64_t steps = (int64_t)element(product, array, lane);
    most = steps > most ? steps : most;
  }
  return most;
}

/* Thread blocks cost the same but for a slice, and so do the warps of each where none is much of their share. What a
 * slice costs is as the planner sees it, in half steps. */
static void all_get_equal_shares(void **state) {
  (void)state;
  struct product product = hot_of("rmat,scale=18,edge_factor=8", "hot-columns=2000 hot-threads=256");
  const int64_t slices = constant(&product, "kSlices", -1), warps = 132 * 8;
  int64_t most = 0, least = INT64_MAX, most_of_warps = 0, total = 0, slice = 0;
  assert_true(slices > 4 * warps);
  for (int64_t block = 0; block < 132; block++) {
    int64_t sum = 0;
    for (int64_t warp = 8 * block; warp < 8 * block + 8; warp++) {
      int64_t own = 0;
      assert_int_equal(element(&product, "first_slice", warp), slice);
      for (; slice < (int64_t)element(&product, "first_slice", warp + 1); slice++)
        own += 6 + 2 * most_of_lanes(&product, "lane_hot", 32 * slice, 32 * slice + 32) +
               3 * most_of_lanes(&product, "lane_cold", 32 * slice, 32 * slice + 32);
      most_of_warps = own > most_of_warps ? own : most_of_warps;
      sum += own;
    }
    total += sum;
    most = sum > most ? sum : most;
    least = sum < least ? sum : least;
  }
  assert_int_equal(slice, slices);
  assert_true(most - least <= 110);
  assert_true(most_of_warps * warps * 10 < total * 11);
  product_release(&product);
}

/* ---- dealing */

static struct cb_hot_deal deal_of(const struct cb_hot_slices *slices, struct cb_arena *arena) {
  struct cb_hot_deal deal;
  assert_true(cb_hot_deal(&deal, arena, slices));
  return deal;
}

static int64_t warp_of(const struct cb_hot_deal *deal, const struct cb_hot_slices *slices, int64_t slice) {
  for (int64_t warp = 0; warp < slices->blocks * slices->warps; warp++)
    for (int64_t place = deal->first_place[warp]; place < deal->first_place[warp + 1]; place++)
      if (deal->slice[place] == slice) return warp;
  fail_msg("slice %d is nobody's", (int)slice);
  return -1;
}

/* What costs most comes first, to whoever has least: 9, 8 and 7 to one each, then 6 to the third, 5 to the second. */
static void the_costliest_come_first(void **state) {
  (void)state;
  static const uint8_t cost[] = {4, 9, 7, 5, 8, 6};
  static const int block[] = {0, 0, 2, 1, 1, 2};
  struct cb_arena arena = {0};
  const struct cb_hot_slices slices = {.count = 6, .cost = cost, .blocks = 3, .warps = 1, .most_met = 4};
  const struct cb_hot_deal deal = deal_of(&slices, &arena);
  for (int i = 0; i < 6; i++) assert_int_equal(warp_of(&deal, &slices, i), block[i]);
  for (int i = 0; i < 6; i += 2) assert_true(cost[deal.slice[i]] > cost[deal.slice[i + 1]]);
  for (int i = 0; i < 6; i++) assert_int_equal(cost[deal.slice[deal.order[i]]], 9 - i);
  assert_int_equal(deal.met + deal.carried + deal.groups, 0);
  cb_arena_release(&arena);
}

/* Three rows in 2, 3 and 2 segments, and two slices: `most_met` says which rows find room; all but a row that costs
 * more than its share may. */
static void rows_meet_where_there_is_room(void **state) {
  (void)state;
  static const uint32_t number[] = {0, 1, 0, 1, 2, 0, 1};
  static const struct {
    uint8_t cost[9];
    int64_t most_met;
    int meets[3];
  } cases[] = {
      {{5, 5, 5, 5, 5, 5, 5, 9, 9}, 5, {1, 1, 1}},   /* of 53 in two thread blocks: 3; 2 and 2 */
      {{5, 5, 5, 5, 5, 5, 5, 9, 9}, 3, {1, 1, 0}},   /* no room beside 2 */
      {{5, 5, 5, 5, 5, 5, 5, 9, 9}, 2, {1, 0, 1}},   /* none for 3 */
      {{5, 5, 50, 50, 50, 5, 5, 9, 9}, 5, {1, 0, 1}}, /* more than half of 188 */
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct cb_arena arena = {0};
    const struct cb_hot_slices slices = {
        .count = 9, .segments = 7, .segment_number = number, .cost = cases[c].cost, .blocks = 2, .warps = 2,
        .most_met = cases[c].most_met};
    const struct cb_hot_deal deal = deal_of(&slices, &arena);
    int64_t carried = 0, groups = 0;
    for (int row = 0, segment = 0; row < 3; row++) {
      const int count = row == 1 ? 3 : 2;
      carried += cases[c].meets[row] ? 0 : count;
      groups += cases[c].meets[row];
      for (int i = 0; i < count; i++, segment++) {
        int64_t at = 0;
        while (deal.segment[at] != segment) at++;
        assert_int_equal(at >= deal.carried, cases[c].meets[row]);
        if (!cases[c].meets[row]) continue;
        const int64_t block = warp_of(&deal, &slices, segment) / 2;
        int is_found = 0;
        for (int64_t group = deal.first_group[block]; group < deal.first_group[block + 1]; group++) {
          const int64_t begin = deal.group_first[group], end = deal.group_first[group + 1];
          is_found |= begin + i == at && end - begin == count;
        }
        assert_true(is_found);
      }
    }
    assert_int_equal(deal.carried, carried);
    assert_int_equal(deal.met, 7 - carried);
    assert_int_equal(deal.groups, groups);
    for (int64_t block = 0; block < 2; block++)
      assert_true(deal.group_first[deal.first_group[block + 1]] - deal.group_first[deal.first_group[block]] <=
                  cases[c].most_met);
    cb_arena_release(&arena);
  }
}

/* The first row is too long for one thread block's share: the others meet, it is carried. */
static void the_longest_rows_are_carried(void **state) {
  (void)state;
  struct gathered gathered = {0};
  struct product *product =
      gather(&gathered, "powerlaw,rows=3000,cols=9000,max=9000", "recipe=hot hot-columns=64 form=axpby");
  assert_true(strtol(fact(product, "segments"), NULL, 10) >= 1);
  assert_true(strtol(fact(product, "met"), NULL, 10) >= 1);
  assert_true(has(product, "first_local_row >= kSegments && at.first_local_row < kMetEnd"));
  verify_gathered(&gathered);
}

/* Rows of one kind lie together, so that few slots stay empty. */
static void pads_little(void **state) {
  (void)state;
  struct product product = hot_of("rmat,scale=16,edge_factor=16", "hot-columns=4000");
  const struct cb_region *region = &product.plan->regions[0];
  assert_true(region->value_slots * 100 < region->nonzeros * 112);
  assert_int_equal(array_of(&product, "hot_place")->type, CB_U16);
  product_release(&product);
}

static void text_has_what_it_needs(void **state) {
  (void)state;
  struct product plain = hot_of("rmat,scale=8,edge_factor=4", "hot-columns=30");
  assert_true(has(&plain, "using Hot = DynamicShared<vector_t, kHot>;"));
  assert_false(has(&plain, "last_to_arrive"));
  assert_false(has_anywhere(&plain, "cudaFuncSetAttribute"));
  assert_int_equal(plain.plan->launches_count, 1);
  /* Every column is hot: no text of cold ones. */
  struct product all = hot_of("rmat,scale=8,edge_factor=4", "hot-columns=256");
  assert_false(has(&all, "cold_"));
  assert_null(array_of(&all, "cold_index"));
  /* A launch before, segments that meet, and more shared memory than kernels may have unasked. */
  struct product large = hot_of("rmat,scale=14,edge_factor=8", "hot-columns=7000 hot-gather=on");
  assert_int_equal(large.plan->launches_count, 2);
  assert_true(large.plan->launches[0].prepares);
  assert_true(has(&large, "hot0::prepare("));
  assert_true(has(&large, "using Met = Shared<sum_t, kMostMet>;"));
  assert_true(has_anywhere(&large, "cudaFuncSetAttribute(test_spmv_1, cudaFuncAttributeMaxDynamicSharedMemorySize, 56000)"));
  /* Packed ones: all that is not hot, or a choice at run time. */
  struct product some = hot_of("rmat,scale=8,edge_factor=4", "hot-columns=30 hot-packed=20");
  assert_int_equal(some.plan->launches_count, 2);
  assert_true(has(&some, "cold_entry(vectors, indices[i])"));
  assert_true(has(&some, "index < kPacked ?"));
  struct product rest = hot_of("rmat,scale=8,edge_factor=4", "hot-columns=30 hot-packed=256");
  assert_true(has(&rest, "cold_entry(vectors, indices[i])"));
  assert_false(has(&rest, "kPacked"));
  /* Columns of three bytes. */
  struct product wide = hot_of("random,rows=50,cols=70000,density=0.001", "hot-columns=9");
  assert_int_equal(array_of(&wide, "cold_index")->type, CB_U16);
  assert_int_equal(array_of(&wide, "cold_index_high")->largest, 1);
  struct product words = hot_of("random,rows=50,cols=70000,density=0.001", "hot-columns=9 hot-three-bytes=off");
  assert_int_equal(array_of(&words, "cold_index")->type, CB_U32);
  assert_null(array_of(&words, "cold_index_high"));
  struct product *const every[] = {&plain, &all, &large, &wide, &words, &some, &rest};
  for (int i = 0; i < 7; i++) product_release(every[i]);
}

static void threads_change_nothing(void **state) {
  static const char *const settings[] = {"hot-columns=500", "hot-columns=80 hot-threads=256 type=f32",
                                         "hot-columns=4096 hot-gather=on", "hot-columns=300 hot-packed=1500"};
  (void)state;
  for (int set = 0; set < 4; set++) {
    char text[128];
    snprintf(text, sizeof text, "recipe=hot %s", settings[set]);
    check_threads("rmat,scale=13,edge_factor=8", text);
  }
}

static void every_allocation_may_fail(void **state) {
  static const char *const cases[][2] = {
      {"random,rows=61,cols=60,density=0.2", "recipe=hot hot-columns=20 hot-packed=9"},
      {"powerlaw,rows=900,cols=80000,max=3000", "recipe=hot hot-columns=30"},
      {"dense,rows=20,cols=30", "recipe=hot hot-columns=30"}};
  (void)state;
  for (int c = 0; c < 3; c++) assert_true(check_allocations(matrix_of(cases[c][0]), cases[c][1]) > 15);
}

/* ---- products against the oracle */

/* Types and forms take turns. */
static void gather_next(struct gathered *gathered, const char *matrix, const char *settings) {
  static const char *const forms[] = {"ax", "add", "axpby"}, *const types[] = {"f64", "f32", "f16-f32", "f16"};
  const int number = gathered->count;
  char text[200];
  snprintf(text, sizeof text, "recipe=hot type=%s form=%s %s", types[number % 4], forms[number / 4 % 3], settings);
  gather(gathered, matrix, text);
}

/* All shapes: single rows and columns, empty rows, explicit zeros, dense; few columns hot and all of them. */
static void products_of_all_shapes(void **state) {
  (void)state;
  static const char *const matrices[] = {
      "dense,rows=37,cols=41",
      "dense,rows=1,cols=19",
      "dense,rows=19,cols=1",
      "dense,rows=2,cols=3000",
      "random,rows=70,cols=45,density=0.2",
      "hypersparse,rows=150,cols=150,keep=0.2,per_row=3",
      "staircase,n=70",
      "explicit_zeros,rows=50,cols=61,density=0.3,zeros=0.4",
      "random,rows=64,cols=70000,density=0.0005",
  };
  static const char *const settings[] = {"hot-columns=1 hot-batch=1",
                                         "hot-columns=7 hot-threads=256",
                                         "hot-columns=30 hot-gather=on hot-threads=512",
                                         "hot-columns=9000 hot-batch=8",
                                         "hot-columns=3 hot-packed=8",
                                         "hot-columns=2 hot-packed=100000 hot-batch=3",
                                         "hot-columns=12 hot-three-bytes=off bake-limit=0"};
  struct gathered gathered = {0};
  for (size_t m = 0; m < sizeof matrices / sizeof *matrices; m++)
    for (size_t set = 0; set < sizeof settings / sizeof *settings; set++)
      gather_next(&gathered, matrices[m], settings[set]);
  verify_gathered(&gathered);
}

/* What the layout is for: graphs with long rows, which are cut. */
static void products_of_graphs(void **state) {
  (void)state;
  static const char *const matrices[] = {"rmat,scale=10,edge_factor=8", "rmat,scale=13,edge_factor=6",
                                         "powerlaw,rows=2000,cols=3000,max=2500"};
  static const char *const settings[] = {
      "hot-columns=100", "hot-columns=600 hot-gather=on", "hot-columns=2500 hot-threads=256 hot-gather=on",
      "hot-columns=64 hot-packed=800", "hot-columns=64 hot-packed=5000 hot-three-bytes=off"};
  struct gathered gathered = {0};
  for (size_t m = 0; m < sizeof matrices / sizeof *matrices; m++)
    for (size_t set = 0; set < sizeof settings / sizeof *settings; set++)
      gather_next(&gathered, matrices[m], settings[set]);
  static const char fewer_cold[] = "recipe=hot form=axpby hot-columns=500";
  struct product *product = gather(&gathered, "rmat,scale=10,edge_factor=30", fewer_cold);
  assert_int_equal(constant(product, "kColdBatch", -1), 2);
  /* Lanes of a small GPU have more steps: cold ones are loaded several times. */
  struct cb_target small = product->target;
  small.multiprocessors = 2;
  product = gather(&gathered, "rmat,scale=10,edge_factor=30", fewer_cold);
  product_release(product);
  *product = product_on_target(matrix_of("rmat,scale=10,edge_factor=30"), fewer_cold, &small);
  assert_int_equal(constant(product, "kColdBatch", -1), 2);
  assert_true(most_of_lanes(product, "lane_cold", 0, array_of(product, "lane_cold")->count) > 2);
  int with_segments = 0;
  for (int i = 0; i < gathered.count; i++) with_segments += strcmp(fact(&gathered.products[i], "met"), "none") != 0;
  assert_true(with_segments >= 6);
  verify_gathered(&gathered);
}

/* More than any kernel may have without asking: the load function asks for it. */
static void shared_memory_beyond_48_kib_is_asked_for(void **state) {
  (void)state;
  struct gathered gathered = {0};
  struct product *product = gather(&gathered, "uniform,n=7000,per_row=3", "recipe=hot hot-columns=6500 form=ax");
  assert_true(product->plan->launches[product->plan->launches_count - 1].dynamic_shared > 48 << 10);
  assert_non_null(strstr(product->source.text, "error = cudaFuncSetAttribute("));
  verify_gathered(&gathered);
}

static void columns_are_made_by_packing(void **state) {
  (void)state;
  static const struct late_array cases[] = {
      {"rmat,scale=11,edge_factor=8", "recipe=hot hot-columns=64", "hot_place", 0, CB_STORED},
      {"rmat,scale=11,edge_factor=8", "recipe=hot hot-columns=64", "cold_index", 0, CB_STORED},
      {"rmat,scale=17,edge_factor=2", "recipe=hot hot-columns=64", "cold_index", 0, CB_STORED},
      {"rmat,scale=17,edge_factor=2", "recipe=hot hot-columns=64", "cold_index_high", 0, CB_STORED},
      {"one_column,rows=3000", "recipe=hot hot-columns=1", "hot_place", 0, CB_AFFINE},
  };
  check_late_arrays(cases, sizeof cases / sizeof *cases);
}

int main(void) {
  omp_set_num_threads(1); /* small matrices: threads that wait for each other only cost time */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shared_memory_beyond_48_kib_is_asked_for),
      cmocka_unit_test(takes_the_hottest),
      cmocka_unit_test(then_the_packed),
      cmocka_unit_test(packed_where_l2_is_small),
      cmocka_unit_test(takes_all_of_x),
      cmocka_unit_test(small_tables_are_several),
      cmocka_unit_test(batches_follow_steps),
      cmocka_unit_test(refuses_what_has_no_hot_columns),
      cmocka_unit_test(refusals_say_what_would_be_gained),
      cmocka_unit_test(chooses_for_a_graph),
      cmocka_unit_test(every_nonzero_has_one_slot),
      cmocka_unit_test(all_get_equal_shares),
      cmocka_unit_test(the_costliest_come_first),
      cmocka_unit_test(rows_meet_where_there_is_room),
      cmocka_unit_test(the_longest_rows_are_carried),
      cmocka_unit_test(pads_little),
      cmocka_unit_test(text_has_what_it_needs),
      cmocka_unit_test(threads_change_nothing),
      cmocka_unit_test(every_allocation_may_fail),
      cmocka_unit_test(products_of_all_shapes),
      cmocka_unit_test(columns_are_made_by_packing),
      cmocka_unit_test(products_of_graphs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
