// SPDX-License-Identifier: Apache-2.0
/* What each thread block has to do: see thread_blocks.h. All of it comes from the layouts' visits, which meet every
 * nonzero with its slot; whose unit it is, and so which thread block's, is known while a unit is visited. */
#include "analysis/plan/thread_blocks.h"

#include "analysis/cost_figures.h"
#include "analysis/plan/assignment.h"
#include "analysis/plan/cost.h"
#include "base/integers.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

const char *const cb_term_names[CB_TERMS] = {"stream", "gather", "work", "chain", "tail"};

enum cb_term cb_cost_binding(const struct cb_cost *cost) {
  const int64_t parts[CB_TERMS] = {cost->stream_ns, cost->gather_ns, cost->work_ns, cost->chain_ns, cost->tail_ns};
  int most = 0;
  for (int t = 1; t < CB_TERMS; t++)
    if (parts[t] > parts[most]) most = t;
  return (enum cb_term)most;
}

/* ---- meeting nonzeros */

struct meeting {
  const struct cb_plan *plan;
  const struct cb_csr *csr;
  const struct cb_thread_blocks *blocks;
  const struct cb_layout *layout;
  const void *state;
  int region;
  int64_t unit;
  int64_t base, most; /* the region's first thread block, and how many it has */
  int64_t block_rows; /* 0: the layout tells */
  int64_t row;        /* of the nonzero before */
  /* is called with each nonzero, and when a unit has ended */
  void (*met)(struct meeting *meeting, int64_t block, int64_t row, int64_t slot, int64_t nonzero);
  void (*ended)(struct meeting *meeting);
  void *user;
};

/* Visits go through neighbouring rows: the one before is looked at first. */
static int64_t row_of(const struct cb_csr *csr, int64_t nonzero, int64_t before) {
  int64_t least = 0, most = csr->rows;
  if (cb_csr_row(csr, before) <= nonzero && nonzero < cb_csr_row(csr, before + 1)) return before;
  while (most - least > 1) {
    const int64_t middle = (least + most) / 2;
    *(cb_csr_row(csr, middle) <= nonzero ? &least : &most) = middle;
  }
  return least;
}

static void meet(void *user, int64_t slot, uint64_t nonzero) {
  struct meeting *meeting = user;
  const int64_t row = meeting->row = row_of(meeting->csr, (int64_t)nonzero, meeting->row);
  const int64_t own = meeting->block_rows
                          ? row / meeting->block_rows
                          : meeting->layout->block_of(meeting->state, (struct cb_met){meeting->unit, row, slot});
  if (own < meeting->most) meeting->met(meeting, meeting->base + own, row, slot, (int64_t)nonzero);
}

static int runs_regions(const struct cb_launch *launch) {
  return launch->regions && !launch->body && !launch->prepares;
}

/* The launch that multiplies with a region. */
static int launch_of(const struct cb_plan *plan, int region) {
  for (int l = 0; l < plan->launches_count; l++) {
    const struct cb_launch *launch = &plan->launches[l];
    const int place = region - launch->first_region;
    if (runs_regions(launch) && place >= 0 && place < launch->regions) return l;
  }
  return -1;
}

/* Rows of each thread block of the region, one after another; 0: it is not that simple. */
static int64_t rows_of_block(const struct cb_plan *plan, int region) {
  const struct cb_launch *launch = &plan->launches[launch_of(plan, region)];
  return launch->block_rows ? launch->block_rows : plan->regions[region].block_rows;
}

static int is_told(const struct cb_plan *plan, const struct cb_assignment *assignment, int region) {
  return rows_of_block(plan, region) || assignment->layouts[region]->block_of;
}

static int visit_region(struct meeting *meeting, const struct cb_assignment *assignment, int number) {
  const struct cb_region_work *work = &assignment->regions[number];
  const struct cb_region *region = &meeting->plan->regions[number];
  const int launch = launch_of(meeting->plan, number);
  const struct cb_walk walk = {.part = &work->part, .region = region, .met = meet, .user = meeting};
  const int in_turn = meeting->plan->launches[launch].block_rows > 0;
  meeting->layout = assignment->layouts[number];
  meeting->state = work->state;
  meeting->region = number;
  meeting->block_rows = rows_of_block(meeting->plan, number);
  meeting->base = meeting->blocks->first[launch] + (in_turn ? 0 : region->first_block);
  meeting->most = in_turn ? meeting->plan->launches[launch].blocks : region->blocks;
  for (meeting->unit = 0; meeting->unit < work->units; meeting->unit++) {
    if (!meeting->layout->visit(work->state, meeting->unit, meeting->unit + 1, &walk)) return 0;
    if (meeting->ended) meeting->ended(meeting);
  }
  return 1;
}

static int visit_all(struct meeting *meeting, const struct cb_assignment *assignment) {
  for (int r = 0; r < assignment->regions_count; r++)
    if (!visit_region(meeting, assignment, r)) return 0;
  return 1;
}

/* ---- counting */

/* The unit that is visited: its slots, and whether they are all of one thread block. */
struct counting {
  struct cb_thread_block *blocks;
  int64_t block, least, most; /* block -1: no nonzero yet, -2: several */
};

static void count_one(struct meeting *meeting, int64_t block, int64_t row, int64_t slot, int64_t nonzero) {
  struct counting *counting = meeting->user;
  (void)row, (void)nonzero;
  counting->blocks[block].nonzeros++;
  if (counting->block == -1) {
    counting->block = block;
    counting->least = counting->most = slot;
  }
  if (counting->block != block) counting->block = -2;
  counting->least = cb_smaller(counting->least, slot);
  counting->most = cb_larger(counting->most, slot);
}

/* Of units that several thread blocks share, nonzeros stand for slots: see predict_range. */
static void count_unit(struct meeting *meeting) {
  struct counting *counting = meeting->user;
  if (counting->block >= 0) {
    struct cb_thread_block *block = &counting->blocks[counting->block];
    const int64_t span = counting->most - counting->least + 1;
    block->slots += span;
    block->longest = cb_larger(block->longest, span);
  }
  counting->block = -1;
}

static enum cb_status make_tables(struct cb_thread_blocks *blocks, const struct cb_plan *plan, struct cb_diag *diag) {
  blocks->launches_count = plan->launches_count;
  blocks->first = cb_calloc((size_t)plan->launches_count + 1, sizeof *blocks->first);
  blocks->at_once = cb_calloc((size_t)plan->launches_count + 1, sizeof *blocks->at_once);
  if (!blocks->first || !blocks->at_once) return cb_fail_memory(diag, "thread blocks", 0);
  for (int l = 0; l < plan->launches_count; l++)
    blocks->first[l + 1] = blocks->first[l] + (runs_regions(&plan->launches[l]) ? plan->launches[l].blocks : 0);
  blocks->count = blocks->first[plan->launches_count];
  blocks->blocks = cb_calloc((size_t)blocks->count + 1, sizeof *blocks->blocks);
  return blocks->blocks ? CB_OK
                        : cb_fail_memory(diag, "thread blocks", (uint64_t)blocks->count * sizeof *blocks->blocks);
}

/* Threads and shared memory decide, and what the plan asks for; registers are not known here. */
static int64_t blocks_at_once(const struct cb_plan *plan, const struct cb_launch *launch) {
  enum { THREADS = 2048, MOST = 32 };
  int64_t each = cb_smaller(THREADS / cb_larger(launch->threads, 1), MOST);
  if (launch->blocks_per_sm) each = cb_smaller(each, launch->blocks_per_sm);
  if (launch->dynamic_shared) each = cb_smaller(each, plan->target.shared_per_sm / launch->dynamic_shared);
  return cb_smaller(launch->blocks, cb_larger(each, 1) * plan->target.multiprocessors);
}

static int64_t busy_processors(const struct cb_plan *plan, int64_t at_once) {
  return cb_larger(1, cb_smaller(at_once, plan->target.multiprocessors));
}

static int64_t scaled(int64_t number, int64_t part, int64_t whole) {
  return whole ? (int64_t)((double)number * (double)part / (double)whole) : 0;
}

/* Streaming and gathering side by side, as in cost.c. */
static int64_t together(int64_t a, int64_t b) {
  const int64_t most = cb_larger(a, b), least = cb_smaller(a, b);
  return most ? most + least * least / most * least / most / 4 : 0;
}

static void add_up(struct cb_cost *cost) {
  const int64_t bound = cb_larger(together(cost->stream_ns, cost->gather_ns), cb_larger(cost->work_ns, cost->chain_ns));
  cost->ns = bound + cost->tail_ns;
  cost->gpu_ns = cost->ns;
}

/* What thread blocks share, and what all of them have together. */
struct whole {
  const struct cb_cost *cost;
  int64_t busy, at_once; /* multiprocessors that have any at a time; thread blocks at a time */
  int64_t blocks, slots, longest, stored;
};

/* A part of the whole: what the thread block has, and those of mean size that are on its multiprocessor with it. */
static int64_t shared_ns(int64_t ns, const struct cb_thread_block *block, const struct whole *whole) {
  const double mean = (double)whole->slots / (double)whole->blocks;
  const double others = mean * (double)(whole->at_once - whole->busy) / (double)whole->busy;
  if (!whole->slots) return 0;
  return (int64_t)((double)ns * ((double)block->slots + others) * (double)whole->busy / (double)whole->slots);
}

static void predict(struct cb_thread_block *block, const struct whole *whole) {
  const struct cb_cost *cost = whole->cost;
  block->stored = scaled(whole->stored, block->slots, whole->slots);
  block->cost = (struct cb_cost){.bytes = scaled(cost->bytes, block->slots, whole->slots),
                                 .sectors = scaled(cost->sectors, block->slots, whole->slots),
                                 .stream_ns = shared_ns(cost->stream_ns, block, whole),
                                 .gather_ns = shared_ns(cost->gather_ns, block, whole),
                                 .work_ns = shared_ns(cost->work_ns, block, whole),
                                 .chain_ns = scaled(cost->chain_ns, block->longest, whole->longest),
                                 .tail_ns = cost->tail_ns};
  if (cost->chain_ns && block->nonzeros)
    block->rounds = cb_larger(1, (block->cost.chain_ns + CB_COST_BATCH_NS / 2) / CB_COST_BATCH_NS);
  add_up(&block->cost);
}

/* Thread blocks first … end - 1, which the cost is of. */
static void predict_range(struct cb_thread_blocks *blocks, int64_t first, int64_t end, struct whole whole) {
  whole.blocks = end - first;
  for (int64_t b = first; b < end; b++) {
    struct cb_thread_block *block = &blocks->blocks[b];
    if (block->slots < block->nonzeros) block->slots = block->longest = block->nonzeros;
    whole.slots += block->slots;
    whole.longest = cb_larger(whole.longest, block->longest);
  }
  for (int64_t b = first; b < end; b++) predict(&blocks->blocks[b], &whole);
}

/* Regions beside each other have thread blocks of their own. */
static void predict_launch(struct cb_thread_blocks *blocks, const struct cb_plan *plan, int l) {
  const struct cb_launch *launch = &plan->launches[l];
  if (!runs_regions(launch)) return;
  const int64_t at_once = blocks->at_once[l] = blocks_at_once(plan, launch);
  struct whole whole = {.busy = busy_processors(plan, at_once), .at_once = at_once};
  if (launch->block_rows) {
    const int first = launch->first_region;
    const struct cb_cost cost = cb_cost_joined(plan, first, launch->regions, plan->regions[first + 1].joining);
    for (int r = first; r < first + launch->regions; r++) whole.stored += plan->regions[r].bytes;
    whole.cost = &cost;
    predict_range(blocks, blocks->first[l], blocks->first[l + 1], whole);
    return;
  }
  for (int r = launch->first_region; r < launch->first_region + launch->regions; r++) {
    const struct cb_region *region = &plan->regions[r];
    const int64_t first = blocks->first[l] + region->first_block;
    whole.cost = &region->cost;
    whole.stored = region->bytes;
    predict_range(blocks, first, first + region->blocks, whole);
  }
}

enum cb_status cb_thread_blocks_count(struct cb_thread_blocks *blocks, const struct cb_plan *plan,
                                      const struct cb_assignment *assignment, const struct cb_csr *csr,
                                      struct cb_diag *diag) {
  struct counting counting = {.block = -1};
  struct meeting meeting = {
      .plan = plan, .csr = csr, .blocks = blocks, .met = count_one, .ended = count_unit, .user = &counting};
  *blocks = (struct cb_thread_blocks){.is_known = 1};
  const enum cb_status s = make_tables(blocks, plan, diag);
  if (s) return s;
  for (int r = 0; r < plan->regions_count && blocks->is_known; r++) {
    blocks->is_known = is_told(plan, assignment, r);
    blocks->without = blocks->is_known ? NULL : plan->regions[r].layout;
  }
  counting.blocks = blocks->blocks;
  if (blocks->is_known && !visit_all(&meeting, assignment)) return cb_fail_memory(diag, "thread blocks", 0);
  for (int l = 0; l < plan->launches_count; l++) predict_launch(blocks, plan, l);
  return CB_OK;
}

void cb_thread_blocks_release(struct cb_thread_blocks *blocks) {
  cb_free(blocks->first);
  cb_free(blocks->at_once);
  cb_free(blocks->blocks);
  *blocks = (struct cb_thread_blocks){0};
}

int cb_thread_blocks_launch(const struct cb_thread_blocks *blocks, int64_t number) {
  int l = 0;
  while (number >= blocks->first[l + 1]) l++;
  return l;
}

/* ---- looking at some */

/* A nonzero of a thread block that is looked at. */
struct seen {
  int place; /* of the thread block among those */
  int region;
  int64_t row, column;
};

struct looking {
  const struct cb_thread_block_facts *facts;
  int count, failed;
  struct seen *seen;
  size_t length, room;
};

static int place_of(const struct looking *looking, int64_t block) {
  int least = 0, most = looking->count;
  while (least < most) {
    const int middle = (least + most) / 2;
    if (looking->facts[middle].number < block)
      least = middle + 1;
    else
      most = middle;
  }
  return least < looking->count && looking->facts[least].number == block ? least : -1;
}

static void see_one(struct meeting *meeting, int64_t block, int64_t row, int64_t slot, int64_t nonzero) {
  struct looking *looking = meeting->user;
  const int place = place_of(looking, block);
  (void)slot;
  if (place < 0 || looking->failed) return;
  if (looking->length == looking->room) {
    const size_t room = looking->room ? 2 * looking->room : 1024;
    struct seen *more = cb_realloc(looking->seen, room, sizeof *more);
    looking->failed = !more;
    if (!more) return;
    looking->seen = more;
    looking->room = room;
  }
  looking->seen[looking->length++] = (struct seen){place, meeting->region, row, meeting->csr->col_idx[nonzero]};
}

static int by_row(const void *left, const void *right) {
  const struct seen *a = left, *b = right;
  if (a->place != b->place) return a->place - b->place;
  return (a->row > b->row) - (a->row < b->row);
}

static int by_column(const void *left, const void *right) {
  const struct seen *a = left, *b = right;
  if (a->place != b->place) return a->place - b->place;
  return (a->column > b->column) - (a->column < b->column);
}

/* Of nonzeros sorted by row. */
static void note_rows(struct cb_thread_block_facts *facts, const struct looking *looking, int64_t row) {
  for (size_t i = 0, end; i < looking->length; i = end) {
    const struct seen *first = &looking->seen[i];
    struct cb_thread_block_facts *one = &facts[first->place];
    for (end = i; end < looking->length && !by_row(first, &looking->seen[end]);) end++;
    if (!one->rows++) one->first_row = first->row;
    one->last_row = first->row;
    if (first->row == row) one->row_nonzeros = (int64_t)(end - i);
    if ((int64_t)(end - i) <= one->longest_row_nonzeros) continue;
    one->longest_row = first->row;
    one->longest_row_nonzeros = (int64_t)(end - i);
  }
}

/* Of nonzeros sorted by column. */
static void note_sectors(struct cb_thread_block_facts *facts, const struct looking *looking, int64_t per_sector) {
  for (size_t i = 0; i < looking->length; i++) {
    const struct seen *here = &looking->seen[i], *before = i ? here - 1 : NULL;
    if (!before || before->place != here->place || before->column / per_sector != here->column / per_sector)
      facts[here->place].sectors++;
  }
}

/* The region with the most nonzeros of each thread block. */
static enum cb_status note_regions(struct cb_thread_block_facts *facts, int count, const struct looking *looking,
                                   int regions, struct cb_diag *diag) {
  int64_t *nonzeros = cb_calloc((size_t)count * (size_t)regions + 1, sizeof *nonzeros);
  if (!nonzeros) return cb_fail_memory(diag, "thread blocks", 0);
  for (size_t i = 0; i < looking->length; i++) nonzeros[looking->seen[i].place * regions + looking->seen[i].region]++;
  for (int f = 0; f < count; f++)
    for (int r = 0; r < regions; r++) {
      const int64_t own = nonzeros[f * regions + r];
      if (own && (facts[f].region < 0 || own > nonzeros[f * regions + facts[f].region])) facts[f].region = r;
    }
  cb_free(nonzeros);
  return CB_OK;
}

/* The stored bytes by slots, sectors of x as they are, and the rows of y. */
static void note_bytes(struct cb_thread_block_facts *facts, struct cb_thread_blocks *blocks,
                       const struct cb_plan *plan) {
  enum { SECTOR = 32 };
  const int64_t busy = busy_processors(plan, blocks->at_once[cb_thread_blocks_launch(blocks, facts->number)]);
  struct cb_thread_block *block = &blocks->blocks[facts->number];
  const int64_t estimated = cb_plan_gather_ns(block->cost.sectors * busy, &plan->target);
  const int64_t exact = cb_plan_gather_ns(facts->sectors * busy, &plan->target);
  facts->bytes = block->stored + SECTOR * facts->sectors + facts->rows * (int64_t)cb_type_size(plan->vector_type);
  if (block->cost.gather_ns) block->cost.gather_ns = cb_larger(0, block->cost.gather_ns - estimated + exact);
  block->cost.bytes = facts->bytes;
  block->cost.sectors = facts->sectors;
  add_up(&block->cost);
}

enum cb_status cb_thread_blocks_look(struct cb_thread_block_facts *facts, int count, int64_t row,
                                     struct cb_thread_blocks *blocks, const struct cb_plan *plan,
                                     const struct cb_assignment *assignment, const struct cb_csr *csr,
                                     struct cb_diag *diag) {
  struct looking looking = {.facts = facts, .count = count};
  struct meeting meeting = {.plan = plan, .csr = csr, .blocks = blocks, .met = see_one, .user = &looking};
  for (int f = 0; f < count; f++)
    facts[f] = (struct cb_thread_block_facts){
        .number = facts[f].number, .region = -1, .first_row = -1, .last_row = -1, .longest_row = -1};
  if (!blocks->is_known) return CB_OK;
  enum cb_status s = CB_OK;
  if (!visit_all(&meeting, assignment) || looking.failed)
    s = cb_fail_memory(diag, "thread blocks", (uint64_t)looking.room * sizeof *looking.seen);
  if (!s) s = note_regions(facts, count, &looking, plan->regions_count, diag);
  if (!s && looking.length) {
    qsort(looking.seen, looking.length, sizeof *looking.seen, by_row);
    note_rows(facts, &looking, row);
    qsort(looking.seen, looking.length, sizeof *looking.seen, by_column);
    note_sectors(facts, &looking, 32 / (int64_t)cb_type_size(plan->vector_type));
  }
  for (int f = 0; f < count && !s; f++) note_bytes(&facts[f], blocks, plan);
  cb_free(looking.seen);
  return s;
}

/* ---- the thread blocks of a row */

struct owners {
  int64_t row, *numbers, most, count;
};

static void note_owner(struct meeting *meeting, int64_t block, int64_t row, int64_t slot, int64_t nonzero) {
  struct owners *owners = meeting->user;
  (void)slot, (void)nonzero;
  if (row != owners->row) return;
  for (int64_t i = 0; i < owners->count && i < owners->most; i++)
    if (owners->numbers[i] == block) return;
  if (owners->count < owners->most) owners->numbers[owners->count] = block;
  owners->count++;
}

static int ascending(const void *left, const void *right) {
  const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
  return (a > b) - (a < b);
}

int64_t cb_thread_blocks_of_row(int64_t *numbers, int64_t most, int64_t row, const struct cb_thread_blocks *blocks,
                                const struct cb_plan *plan, const struct cb_assignment *assignment,
                                const struct cb_csr *csr) {
  struct owners owners = {row, numbers, most, 0};
  struct meeting meeting = {.plan = plan, .csr = csr, .blocks = blocks, .met = note_owner, .user = &owners};
  if (!blocks->is_known) return 0;
  if (cb_csr_row_length(csr, row) && !visit_all(&meeting, assignment)) return -1;
  for (int r = 0; r < plan->regions_count && !owners.count; r++) { /* an empty row is written all the same */
    const int l = launch_of(plan, r);
    const int64_t rows = rows_of_block(plan, r);
    const int64_t first = plan->launches[l].block_rows ? 0 : plan->regions[r].first_block;
    if (rows && most) numbers[owners.count++] = blocks->first[l] + first + row / rows;
  }
  qsort(numbers, (size_t)cb_smaller(owners.count, most), sizeof *numbers, ascending);
  return owners.count;
}
