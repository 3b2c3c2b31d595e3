// SPDX-License-Identifier: Apache-2.0
/* Blocks of one chunk of a value map: see values.h for what they are.
 *
 * Runs come first (cb_encode_runs). A run is groups g, g + s, g + 2s, g + 3s whose entries differ by an offset for each
 * group, or by how many groups of the run have the slot. Its deltas are prefix counts, or often the same as those of a
 * run before. Groups whose run would take more bytes than they take alone are left over.
 *
 * What is left over comes sorted by least entry (cb_encode_rest). Groups that differ from the same deltas by residuals
 * of 8 bits gather in a cluster, and a few clusters are open at a time. A cluster whose deltas take more bytes than
 * they save is given up. Groups that are in no cluster have no deltas, and share blocks with others whose residuals
 * have the same width. */
#include "runtime/operator/value_encode.h"

#include "base/integers.h"
#include "base/memory.h"

#include <string.h>

enum {
  RECENT = 8,    /* deltas of the last runs, which a run looks at */
  CLUSTERS = 16, /* open ones */
  MEMBERS = 32,  /* of a cluster, at most */
  HEAD = 16,     /* bytes of a block for each group */
  GUESS = 48,    /* bytes beside HEAD that a group which is left over is expected to take at most */
  WIDE = CB_WIDE_DELTAS
};
/* The largest delta, and the largest difference of two offsets in a block: their sum, with a residual of 8 bits, fits
 * the 32 bits that are added to the reference. */
#define MOST_DELTA ((int64_t)1 << 31)
#define MOST_OFFSET ((int64_t)1 << 30)

/* Numbers of 32 slots; those of slots that are not in `defined` mean nothing. */
struct numbers {
  int64_t at[CB_GROUP_SLOTS];
  uint32_t defined;
};

/* One group: entries, of which at least one is present. */
struct group {
  struct numbers entries;
  int64_t number, least, most;
  int code; /* of its differences from the least */
  int sums; /* whether some entry is a list */
};

/* ---- growing arrays: the first failure sticks to the chunk */

static void *grow(struct cb_map_chunk *chunk, struct cb_growing *array, int64_t bytes) {
  if (array->length + bytes > array->room) {
    const int64_t room = cb_larger(array->length + bytes, 2 * array->room);
    unsigned char *larger = chunk->failed ? NULL : cb_realloc(array->bytes, (size_t)room, 1);
    if (!larger) {
      chunk->failed = 1;
      return NULL;
    }
    array->bytes = larger;
    array->room = room;
  }
  array->length += bytes;
  return array->bytes + array->length - bytes;
}

void cb_map_chunk_release(struct cb_map_chunk *chunk) {
  cb_free(chunk->blocks.bytes);
  cb_free(chunk->deltas.bytes);
  cb_free(chunk->residuals.bytes);
  cb_free(chunk->left.bytes);
  *chunk = (struct cb_map_chunk){0};
}

/* ---- numbers */

static int code_for(int64_t most) {
  return !most ? 0 : most <= UINT8_MAX ? 1 : most <= UINT16_MAX ? 2 : most <= UINT32_MAX ? 3 : WIDE;
}

/* Bytes of deltas of this code; residuals take as many for each group. */
static int64_t bytes_of(int code) {
  return code ? (int64_t)CB_GROUP_SLOTS << (code - 1) : 0;
}

static void put_number(unsigned char *bytes, int code, int64_t place, int64_t number) {
  switch (code) {
  case 1: bytes[place] = (unsigned char)number; break;
  case 2: ((uint16_t *)(void *)bytes)[place] = (uint16_t)number; break;
  case 3: ((uint32_t *)(void *)bytes)[place] = (uint32_t)number; break;
  default: ((uint64_t *)(void *)bytes)[place] = (uint64_t)number; break;
  }
}

struct span {
  int64_t least, most;
};
static const struct span empty = {INT64_MAX, INT64_MIN};

static struct span wider(struct span span, int64_t number) {
  return (struct span){cb_smaller(span.least, number), cb_larger(span.most, number)};
}

/* Of the numbers of these slots, which are some. */
static struct span span_of(const struct numbers *numbers, uint32_t slots) {
  struct span span = empty;
  for (; slots; slots &= slots - 1) {
    const int64_t number = numbers->at[__builtin_ctz(slots)];
    span = wider(span, number);
  }
  return span;
}

/* Of the differences a - b in these slots, which are some. */
static struct span span_between(const struct numbers *a, const struct numbers *b, uint32_t slots) {
  struct span span = empty;
  for (; slots; slots &= slots - 1) {
    const int i = __builtin_ctz(slots);
    const int64_t difference = a->at[i] - b->at[i];
    span = wider(span, difference);
  }
  return span;
}

/* 0: nothing is present. */
static int read_group(struct group *group, const struct cb_group_source *source, int64_t number) {
  uint64_t entries[CB_GROUP_SLOTS];
  source->fill(source->user, number, entries);
  group->number = number;
  group->entries.defined = 0;
  for (int i = 0; i < CB_GROUP_SLOTS; i++) {
    group->entries.defined |= (uint32_t)(entries[i] != CB_NO_ENTRY) << i;
    group->entries.at[i] = (int64_t)entries[i];
  }
  if (!group->entries.defined) return 0;
  const struct span span = span_of(&group->entries, group->entries.defined);
  group->least = span.least;
  group->most = span.most;
  group->sums = span.most >= source->values;
  group->code = code_for(span.most - span.least);
  return 1;
}

/* ---- writing blocks */

/* Where all are the same (code 0), nothing is stored. */
static void put_deltas(struct cb_map_chunk *chunk, const struct numbers *deltas, int64_t least, int code) {
  unsigned char *bytes = code ? grow(chunk, &chunk->deltas, bytes_of(code)) : NULL;
  for (int i = 0; i < CB_GROUP_SLOTS && bytes; i++)
    put_number(bytes, code, i % 8 * 4 + i / 8, deltas->defined >> i & 1 ? deltas->at[i] - least : 0);
}

static void put_residuals(unsigned char *bytes, int code, int member, const struct numbers *residuals) {
  for (int i = 0; i < CB_GROUP_SLOTS; i++)
    put_number(bytes, code, (i % 8 * 4 + member) * 4 + i / 8, residuals->defined >> i & 1 ? residuals->at[i] : 0);
}

struct member {
  const struct group *group;
  int64_t offset;
};

/* What all groups of a block have in common. */
struct shape {
  int64_t reference;
  uint32_t deltas_at;
  int delta_code, residual_code, counted;
};

static void put_members(struct cb_map_block *block, const struct member *members, int count, int64_t least) {
  for (int m = 0; m < CB_BLOCK_GROUPS; m++) {
    block->group[m] = m < count ? (uint32_t)members[m].group->number : CB_NO_GROUP;
    block->present[m] = m < count ? members[m].group->entries.defined : 0;
    block->offset[m] = m < count ? (uint32_t)(members[m].offset - least) : 0;
  }
}

/* Adds a block; the least of the offsets goes to the reference. Returns where its residuals are to be written, which
 * are zeros so far; NULL when it has none. */
static unsigned char *put_block(struct cb_map_chunk *chunk, const struct member *members, int count,
                                struct shape shape) {
  struct cb_map_block *block = grow(chunk, &chunk->blocks, (int64_t)sizeof *block);
  const int64_t bytes = CB_BLOCK_GROUPS * bytes_of(shape.residual_code);
  const uint32_t residuals_at = (uint32_t)(chunk->residuals.length / CB_MAP_UNIT);
  unsigned char *residuals = bytes && block ? grow(chunk, &chunk->residuals, bytes) : NULL;
  int64_t least = INT64_MAX;
  uint32_t sums = 0;
  if (!block) return NULL;
  if (residuals) memset(residuals, 0, (size_t)bytes);
  for (int m = 0; m < count; m++) {
    least = cb_smaller(members[m].offset, least);
    sums |= (uint32_t)members[m].group->sums;
  }
  put_members(block, members, count, least);
  const uint64_t reference = (uint64_t)(shape.reference + least);
  block->reference = (uint32_t)reference;
  block->control = (uint32_t)(reference >> 32 & UINT16_MAX) | (uint32_t)shape.delta_code << CB_DELTA_SHIFT |
                   (uint32_t)shape.residual_code << CB_RESIDUAL_SHIFT | (uint32_t)shape.counted << CB_COUNTED_SHIFT |
                   sums << CB_SUMS_SHIFT;
  block->deltas = shape.deltas_at;
  block->residuals = residuals_at;
  return residuals;
}

/* ---- runs */

struct window {
  struct group groups[CB_MAP_CHUNK];
  unsigned char taken[CB_MAP_CHUNK]; /* or without slots */
  int count;
};

struct run {
  struct numbers deltas;
  uint32_t seen[CB_GROUP_SLOTS]; /* members that have the slot */
  int count, counted;
  int places[CB_BLOCK_GROUPS]; /* in the window */
  int64_t offsets[CB_BLOCK_GROUPS];
};

static void start_run(struct run *run, const struct window *window, int place, int counted) {
  run->deltas = window->groups[place].entries;
  run->count = 1;
  run->counted = counted;
  run->places[0] = place;
  run->offsets[0] = 0;
  for (int i = 0; i < CB_GROUP_SLOTS; i++) run->seen[i] = run->deltas.defined >> i & 1;
}

/* Adds the group if it continues the run, and returns whether it did. Slots that are new to the run are added to its
 * deltas. */
static int continue_run(struct run *run, const struct window *window, int place) {
  const struct numbers *entries = &window->groups[place].entries;
  const uint32_t present = entries->defined, common = present & run->deltas.defined;
  int64_t wrong = 0, offset = 0;
  if (!run->counted && !common) return 0;
  if (!run->counted) {
    const int first = __builtin_ctz(common);
    offset = entries->at[first] - run->deltas.at[first];
  }
  for (uint32_t left = common; left; left &= left - 1) {
    const int i = __builtin_ctz(left);
    wrong |= entries->at[i] - run->deltas.at[i] - offset - (run->counted ? run->seen[i] : 0);
  }
  if (wrong || offset > MOST_OFFSET / 2 || offset < -MOST_OFFSET / 2) return 0;
  for (uint32_t left = present; left; left &= left - 1) {
    const int i = __builtin_ctz(left);
    if (!(common >> i & 1)) run->deltas.at[i] = entries->at[i] - offset;
    run->seen[i]++;
  }
  run->deltas.defined |= present;
  run->places[run->count] = place;
  run->offsets[run->count++] = offset;
  return 1;
}

static void try_run(struct run *best, const struct window *window, int place, int stride, int counted) {
  struct run run;
  if (best->count && (place + stride >= window->count || window->taken[place + stride])) return;
  start_run(&run, window, place, counted);
  for (int next = place + stride; run.count < CB_BLOCK_GROUPS && next < window->count; next += stride)
    if (window->taken[next] || !continue_run(&run, window, next)) break;
  if (run.count > best->count) *best = run;
}

static void find_run(struct run *best, const struct window *window, int place) {
  best->count = 0;
  for (int stride = 1; stride <= 8 && best->count < CB_BLOCK_GROUPS; stride *= 2)
    for (int counted = 0; counted < 2 && best->count < CB_BLOCK_GROUPS; counted++)
      try_run(best, window, place, stride, counted);
}

/* Deltas used last, the last first. */
struct recent {
  struct numbers deltas;
  int64_t least;
  uint32_t place;
  int code;
};
struct recents {
  int count;
  struct recent at[RECENT];
};

static void note_use(struct recents *recents, int used) {
  const struct recent recent = recents->at[used];
  memmove(recents->at + 1, recents->at, (size_t)used * sizeof recent);
  recents->at[0] = recent;
}

/* The number of recent deltas that will do; recents->count: there are none. */
static int find_recent(const struct recents *recents, const struct numbers *deltas) {
  int found = 0;
  for (; found < recents->count; found++) {
    const struct numbers *known = &recents->at[found].deltas;
    if (deltas->defined & ~known->defined) continue;
    const struct span span = span_between(deltas, known, deltas->defined);
    if (span.least == span.most) break;
  }
  return found;
}

static int64_t cost_alone(const struct group *group) {
  const int64_t own = bytes_of(group->code ? group->code : 1);
  return HEAD + (own < GUESS ? own : GUESS);
}

static int run_pays(const struct run *run, const struct window *window, int64_t delta_bytes) {
  int64_t alone = 0;
  for (int m = 0; m < run->count; m++) alone += cost_alone(&window->groups[run->places[m]]);
  return CB_BLOCK_GROUPS * HEAD + delta_bytes <= alone;
}

/* Whether the run's entries are consecutive numbers, slot by slot and within a slot group by group. */
static int is_consecutive(const struct run *run) {
  const uint32_t defined = run->deltas.defined;
  int64_t wrong = 0, next = run->deltas.at[__builtin_ctz(defined)];
  for (uint32_t left = run->counted ? defined : 0; left; left &= left - 1) {
    const int i = __builtin_ctz(left);
    wrong |= run->deltas.at[i] - next;
    next += run->seen[i];
  }
  return run->counted && !wrong;
}

static struct shape shape_of_prefix_counts(const struct run *run) {
  return (struct shape){
      .reference = run->deltas.at[__builtin_ctz(run->deltas.defined)], .delta_code = CB_PREFIX_COUNTS, .counted = 1};
}

static struct shape shape_of_recent(const struct run *run, const struct recent *recent) {
  const int first = __builtin_ctz(run->deltas.defined);
  return (struct shape){
      .reference = recent->least + run->deltas.at[first] - recent->deltas.at[first],
      .deltas_at = recent->place,
      .delta_code = recent->code,
      .counted = run->counted,
  };
}

static void put_run(struct cb_map_chunk *chunk, const struct run *run, struct window *window, struct shape shape) {
  struct member members[CB_BLOCK_GROUPS];
  for (int m = 0; m < run->count; m++) members[m] = (struct member){&window->groups[run->places[m]], run->offsets[m]};
  put_block(chunk, members, run->count, shape);
  for (int m = 0; m < run->count; m++) window->taken[run->places[m]] = 1;
}

/* Puts the run with deltas that are stored, if that pays. Returns whether it did. */
static int take_run_with_deltas(struct cb_map_chunk *chunk, struct recents *recents, struct window *window,
                                const struct run *run) {
  const struct span span = span_of(&run->deltas, run->deltas.defined);
  const int code = code_for(span.most - span.least), known = find_recent(recents, &run->deltas),
            is_new = known == recents->count;
  if (span.most - span.least > MOST_DELTA || !run_pays(run, window, is_new ? bytes_of(code) : 0)) return 0;
  if (is_new && recents->count < RECENT) recents->count++;
  const int place_of_it = known < RECENT ? known : RECENT - 1;
  if (is_new) {
    recents->at[place_of_it] =
        (struct recent){run->deltas, span.least, (uint32_t)(chunk->deltas.length / CB_MAP_UNIT), code};
    put_deltas(chunk, &run->deltas, span.least, code);
  }
  note_use(recents, place_of_it);
  put_run(chunk, run, window, shape_of_recent(run, &recents->at[0]));
  return 1;
}

/* Puts the run that the group begins, if that pays. Returns whether it did. */
static int take_run(struct cb_map_chunk *chunk, struct recents *recents, struct window *window, int place) {
  struct run run;
  find_run(&run, window, place);
  if (!is_consecutive(&run) || !run_pays(&run, window, 0)) return take_run_with_deltas(chunk, recents, window, &run);
  put_run(chunk, &run, window, shape_of_prefix_counts(&run));
  return 1;
}

static void leave(struct cb_map_chunk *chunk, const struct group *group) {
  struct cb_keyed *left = grow(chunk, &chunk->left, (int64_t)sizeof *left);
  if (left) *left = (struct cb_keyed){(uint64_t)group->least, group->number};
}

void cb_encode_runs(struct cb_map_chunk *chunk, const struct cb_group_source *source, int64_t first, int64_t count) {
  struct window *window = cb_alloc(1, sizeof *window);
  struct recents recents;
  recents.count = 0;
  if (!window) {
    chunk->failed = 1;
    return;
  }
  window->count = (int)count;
  for (int i = 0; i < window->count; i++) window->taken[i] = !read_group(&window->groups[i], source, first + i);
  for (int i = 0; i < window->count; i++)
    if (!window->taken[i] && !take_run(chunk, &recents, window, i)) leave(chunk, &window->groups[i]);
  cb_free(window);
}

/* ---- the rest, alone: blocks of residuals without deltas */

struct pool {
  struct group groups[CB_BLOCK_GROUPS];
  int count;
  struct span span; /* of their entries */
};

static void flush_pool(struct cb_map_chunk *chunk, struct pool *pool, int code) {
  struct member members[CB_BLOCK_GROUPS];
  if (!pool->count) return;
  for (int m = 0; m < pool->count; m++) members[m] = (struct member){&pool->groups[m], pool->groups[m].least};
  unsigned char *bytes = put_block(chunk, members, pool->count, (struct shape){.residual_code = code});
  for (int m = 0; m < pool->count && bytes; m++) {
    struct numbers residuals = pool->groups[m].entries;
    for (int i = 0; i < CB_GROUP_SLOTS; i++) residuals.at[i] -= pool->groups[m].least;
    put_residuals(bytes, code, m, &residuals);
  }
  pool->count = 0;
}

static void pool_group(struct cb_map_chunk *chunk, struct pool *pools, const struct group *group) {
  const int code = group->code ? group->code : 1;
  struct pool *pool = &pools[code];
  const struct span span = wider(wider(pool->count ? pool->span : empty, group->least), group->most);
  const int fits = span.most - span.least <= UINT32_MAX;
  if (!fits) flush_pool(chunk, pool, code);
  pool->span = fits ? span : (struct span){group->least, group->most};
  pool->groups[pool->count++] = *group;
  if (pool->count == CB_BLOCK_GROUPS) flush_pool(chunk, pool, code);
}

/* A group whose differences need 64 bits has deltas of its own. */
static void put_wide(struct cb_map_chunk *chunk, const struct group *group) {
  const struct member member = {group, 0};
  const struct shape shape = {
      .reference = group->least, .deltas_at = (uint32_t)(chunk->deltas.length / CB_MAP_UNIT), .delta_code = WIDE};
  put_deltas(chunk, &group->entries, group->least, WIDE);
  put_block(chunk, &member, 1, shape);
}

/* ---- the rest, in clusters */

struct cluster {
  struct numbers deltas;
  struct span span; /* of the deltas */
  int count;
  int64_t own_bytes; /* that its groups would take alone */
  struct group groups[MEMBERS];
  int64_t offsets[MEMBERS];
};

struct rest {
  struct cb_map_chunk *chunk;
  struct pool pools[WIDE];
  struct cluster *clusters[CLUSTERS]; /* the one used last first */
  int open;
};

static void add_to_cluster(struct cluster *cluster, const struct group *group, int64_t offset) {
  cluster->groups[cluster->count] = *group;
  cluster->offsets[cluster->count++] = offset;
  cluster->own_bytes += bytes_of(group->code);
}

static void start_cluster(struct cluster *cluster, const struct group *group) {
  cluster->count = 0;
  cluster->own_bytes = 0;
  cluster->deltas = group->entries;
  cluster->span = span_of(&group->entries, group->entries.defined);
  add_to_cluster(cluster, group, 0);
}

/* Adds the group if it fits, and returns whether it did. Slots that no group before had get deltas so that their
 * residuals are in the middle of the range. */
static int join_cluster(struct cluster *cluster, const struct group *group) {
  const uint32_t common = group->entries.defined & cluster->deltas.defined;
  if (!common || cluster->count == MEMBERS) return 0;
  const struct span residuals = span_between(&group->entries, &cluster->deltas, common);
  const int64_t middle = residuals.least + (residuals.most - residuals.least) / 2;
  struct span span = cluster->span;
  if (residuals.most - residuals.least > UINT8_MAX) return 0;
  for (uint32_t left = group->entries.defined & ~common; left; left &= left - 1) {
    const int64_t number = group->entries.at[__builtin_ctz(left)] - middle;
    span = wider(span, number);
  }
  if (span.most - span.least > MOST_DELTA) return 0;
  cluster->span = span;
  for (uint32_t left = group->entries.defined & ~common; left; left &= left - 1) {
    const int i = __builtin_ctz(left);
    cluster->deltas.at[i] = group->entries.at[i] - middle;
  }
  cluster->deltas.defined |= group->entries.defined;
  add_to_cluster(cluster, group, residuals.least);
  return 1;
}

/* How many groups from `first` on share a block: their offsets are to fit 32 bits. */
static int block_of_cluster(const struct cluster *cluster, int first) {
  struct span span = wider(empty, cluster->offsets[first]);
  int count = 1;
  for (; count < CB_BLOCK_GROUPS && first + count < cluster->count; count++) {
    const int64_t offset = cluster->offsets[first + count];
    span = wider(span, offset);
    if (span.most - span.least > MOST_OFFSET) break;
  }
  return count;
}

static void put_cluster(struct cb_map_chunk *chunk, const struct cluster *cluster) {
  struct shape shape = {.reference = cluster->span.least,
                        .deltas_at = (uint32_t)(chunk->deltas.length / CB_MAP_UNIT),
                        .delta_code = code_for(cluster->span.most - cluster->span.least),
                        .residual_code = 1};
  put_deltas(chunk, &cluster->deltas, cluster->span.least, shape.delta_code);
  for (int first = 0, count; first < cluster->count; first += count) {
    struct member members[CB_BLOCK_GROUPS];
    count = block_of_cluster(cluster, first);
    for (int m = 0; m < count; m++)
      members[m] = (struct member){&cluster->groups[first + m], cluster->offsets[first + m]};
    unsigned char *bytes = put_block(chunk, members, count, shape);
    for (int m = 0; m < count && bytes; m++) {
      struct numbers residuals = cluster->groups[first + m].entries;
      for (int i = 0; i < CB_GROUP_SLOTS; i++) residuals.at[i] -= cluster->deltas.at[i] + members[m].offset;
      put_residuals(bytes, 1, m, &residuals);
    }
  }
}

static void close_cluster(struct rest *rest, const struct cluster *cluster) {
  const int64_t deltas = bytes_of(code_for(cluster->span.most - cluster->span.least));
  if (deltas + cluster->count * bytes_of(1) <= cluster->own_bytes)
    put_cluster(rest->chunk, cluster);
  else
    for (int m = 0; m < cluster->count; m++) pool_group(rest->chunk, rest->pools, &cluster->groups[m]);
}

static void cluster_group(struct rest *rest, const struct group *group) {
  int at = 0;
  while (at < rest->open && !join_cluster(rest->clusters[at], group)) at++;
  const int joined = at < rest->open;
  if (!joined && at == CLUSTERS)
    close_cluster(rest, rest->clusters[--at]);
  else if (!joined)
    rest->open++;
  struct cluster *const cluster = rest->clusters[at];
  if (!joined) start_cluster(cluster, group);
  memmove(rest->clusters + 1, rest->clusters, (size_t)at * sizeof *rest->clusters);
  rest->clusters[0] = cluster;
}

static void take_rest(struct rest *rest, const struct group *group) {
  if (group->code == WIDE)
    put_wide(rest->chunk, group);
  else if (group->code < 2) /* bytes already */
    pool_group(rest->chunk, rest->pools, group);
  else
    cluster_group(rest, group);
}

void cb_encode_rest(struct cb_map_chunk *chunk, const struct cb_group_source *source, const struct cb_keyed *groups,
                    int64_t count) {
  struct rest *rest = cb_calloc(1, sizeof *rest);
  struct cluster *clusters = cb_alloc(CLUSTERS, sizeof *clusters);
  struct group group;
  if (!rest || !clusters) chunk->failed = 1;
  for (int i = 0; i < CLUSTERS && !chunk->failed; i++) rest->clusters[i] = &clusters[i];
  if (rest) rest->chunk = chunk;
  for (int64_t i = 0; i < count && !chunk->failed; i++)
    if (read_group(&group, source, groups[i].number)) take_rest(rest, &group);
  for (int i = 0; !chunk->failed && i < rest->open; i++) close_cluster(rest, rest->clusters[i]);
  for (int code = 1; !chunk->failed && code < WIDE; code++) flush_pool(chunk, &rest->pools[code], code);
  cb_free(clusters);
  cb_free(rest);
}
