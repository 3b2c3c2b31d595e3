// SPDX-License-Identifier: Apache-2.0
/* Quads of one piece of a value map: see values.h for what they are.
 *
 * Runs first (cb_quads_of_runs): groups g, g + s, g + 2s, g + 3s that differ by offsets alone, or by how many of them
 * have a slot. Their stem is ranks, or often one of those used last. What a run would not make shorter is left over.
 *
 * The rest comes sorted by least entry (cb_quads_of_rest). Groups whose differences from a stem fit bytes gather in
 * clusters around it, a few of which are open at a time; a cluster that does not save its stem is dissolved. What
 * stands alone shares quads with others of its width. */
#include "runtime/value_quads.h"

#include "base/integers.h"
#include "base/memory.h"

#include <string.h>

enum {
  RECENT = 8,      /* stems that a run looks at */
  CLUSTERS = 16,   /* open ones */
  MEMBERS = 32,    /* of a cluster, at most */
  HEAD = 16,       /* bytes of a quad for each group */
  GUESS = 48,      /* bytes that a group of the rest will take beside that, if its own numbers do not take fewer */
  WIDE = CB_WIDE_STEM
};
/* Of a stem, and of the offsets of a quad's members: what comes to a base, with a byte beside, has 32 bits. */
#define MOST_STEM ((int64_t)1 << 31)
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
  int kind; /* of its differences from the least */
  int sums; /* whether some entry is a list */
};

/* ---- growing arrays: the first failure sticks to the piece */

static void *grow(struct cb_quad_piece *piece, struct cb_growing *array, int64_t bytes) {
  if (array->length + bytes > array->room) {
    const int64_t room = cb_larger(array->length + bytes, 2 * array->room);
    unsigned char *larger = piece->failed ? NULL : cb_realloc(array->bytes, (size_t)room, 1);
    if (!larger) {
      piece->failed = 1;
      return NULL;
    }
    array->bytes = larger;
    array->room = room;
  }
  array->length += bytes;
  return array->bytes + array->length - bytes;
}

void cb_quad_piece_release(struct cb_quad_piece *piece) {
  cb_free(piece->quads.bytes);
  cb_free(piece->stems.bytes);
  cb_free(piece->leaves.bytes);
  cb_free(piece->left.bytes);
  *piece = (struct cb_quad_piece){0};
}

/* ---- numbers */

static int kind_for(int64_t most) {
  return !most ? 0 : most <= UINT8_MAX ? 1 : most <= UINT16_MAX ? 2 : most <= UINT32_MAX ? 3 : WIDE;
}

/* Bytes of a stem of this kind; leaves take as many for each member. */
static int64_t bytes_of(int kind) {
  return kind ? (int64_t)CB_GROUP_SLOTS << (kind - 1) : 0;
}

static void put_number(unsigned char *bytes, int kind, int64_t place, int64_t number) {
  switch (kind) {
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
  group->kind = kind_for(span.most - span.least);
  return 1;
}

/* ---- writing quads */

static void put_stem(struct cb_quad_piece *piece, const struct numbers *stem, int64_t least, int kind) {
  unsigned char *bytes = grow(piece, &piece->stems, bytes_of(kind));
  for (int i = 0; i < CB_GROUP_SLOTS && bytes; i++)
    put_number(bytes, kind, i % 8 * 4 + i / 8, stem->defined >> i & 1 ? stem->at[i] - least : 0);
}

static void put_leaf(unsigned char *leaves, int kind, int member, const struct numbers *leaf) {
  for (int i = 0; i < CB_GROUP_SLOTS; i++)
    put_number(leaves, kind, (i % 8 * 4 + member) * 4 + i / 8, leaf->defined >> i & 1 ? leaf->at[i] : 0);
}

struct member {
  const struct group *group;
  int64_t offset;
};

/* Where the numbers of a quad that come next are. */
struct shape {
  int64_t base;
  uint32_t stem_place;
  int stem_kind, leaf_kind, counted;
};

static void put_members(struct cb_value_quad *quad, const struct member *members, int count, int64_t least) {
  for (int m = 0; m < CB_QUAD; m++) {
    quad->group[m] = m < count ? (uint32_t)members[m].group->number : CB_NO_GROUP;
    quad->present[m] = m < count ? members[m].group->entries.defined : 0;
    quad->offset[m] = m < count ? (uint32_t)(members[m].offset - least) : 0;
  }
}

/* The offsets' least goes to the base. Leaves, if any, are returned to be filled: all zero. */
static unsigned char *put_quad(struct cb_quad_piece *piece, const struct member *members, int count,
                               struct shape shape) {
  struct cb_value_quad *quad = grow(piece, &piece->quads, (int64_t)sizeof *quad);
  const int64_t bytes = CB_QUAD * bytes_of(shape.leaf_kind);
  const uint32_t leaf_place = (uint32_t)(piece->leaves.length / CB_MAP_UNIT);
  unsigned char *leaves = bytes && quad ? grow(piece, &piece->leaves, bytes) : NULL;
  int64_t least = INT64_MAX;
  uint32_t sums = 0;
  if (!quad) return NULL;
  if (leaves) memset(leaves, 0, (size_t)bytes);
  for (int m = 0; m < count; m++) {
    least = cb_smaller(members[m].offset, least);
    sums |= (uint32_t)members[m].group->sums;
  }
  put_members(quad, members, count, least);
  const uint64_t base = (uint64_t)(shape.base + least);
  quad->base = (uint32_t)base;
  quad->kinds = (uint32_t)(base >> 32 & UINT16_MAX) | (uint32_t)shape.stem_kind << CB_STEM_SHIFT |
                (uint32_t)shape.leaf_kind << CB_LEAF_SHIFT | (uint32_t)shape.counted << CB_COUNTED_SHIFT |
                sums << CB_SUMS_SHIFT;
  quad->stem = shape.stem_place;
  quad->leaf = leaf_place;
  return leaves;
}

/* ---- runs */

struct window {
  struct group groups[CB_QUAD_PIECE];
  unsigned char taken[CB_QUAD_PIECE]; /* or without slots */
  int count;
};

struct run {
  struct numbers stem;
  uint32_t seen[CB_GROUP_SLOTS]; /* members that have the slot */
  int count, counted;
  int places[CB_QUAD]; /* in the window */
  int64_t offsets[CB_QUAD];
};

static void start_run(struct run *run, const struct window *window, int place, int counted) {
  run->stem = window->groups[place].entries;
  run->count = 1;
  run->counted = counted;
  run->places[0] = place;
  run->offsets[0] = 0;
  for (int i = 0; i < CB_GROUP_SLOTS; i++) run->seen[i] = run->stem.defined >> i & 1;
}

/* Whether the group continues the run; slots that are new to it are added to its stem. */
static int continue_run(struct run *run, const struct window *window, int place) {
  const struct numbers *entries = &window->groups[place].entries;
  const uint32_t present = entries->defined, common = present & run->stem.defined;
  int64_t wrong = 0, offset = 0;
  if (!run->counted && !common) return 0;
  if (!run->counted) {
    const int first = __builtin_ctz(common);
    offset = entries->at[first] - run->stem.at[first];
  }
  for (uint32_t left = common; left; left &= left - 1) {
    const int i = __builtin_ctz(left);
    wrong |= entries->at[i] - run->stem.at[i] - offset - (run->counted ? run->seen[i] : 0);
  }
  if (wrong || offset > MOST_OFFSET / 2 || offset < -MOST_OFFSET / 2) return 0;
  for (uint32_t left = present; left; left &= left - 1) {
    const int i = __builtin_ctz(left);
    if (!(common >> i & 1)) run->stem.at[i] = entries->at[i] - offset;
    run->seen[i]++;
  }
  run->stem.defined |= present;
  run->places[run->count] = place;
  run->offsets[run->count++] = offset;
  return 1;
}

static void try_run(struct run *best, const struct window *window, int place, int stride, int counted) {
  struct run run;
  if (best->count && (place + stride >= window->count || window->taken[place + stride])) return;
  start_run(&run, window, place, counted);
  for (int next = place + stride; run.count < CB_QUAD && next < window->count; next += stride)
    if (window->taken[next] || !continue_run(&run, window, next)) break;
  if (run.count > best->count) *best = run;
}

static void find_run(struct run *best, const struct window *window, int place) {
  best->count = 0;
  for (int stride = 1; stride <= 8 && best->count < CB_QUAD; stride *= 2)
    for (int counted = 0; counted < 2 && best->count < CB_QUAD; counted++)
      try_run(best, window, place, stride, counted);
}

/* Stems used last, the last one first. */
struct recent {
  struct numbers stem;
  int64_t least;
  uint32_t place;
  int kind;
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

/* The number of a recent stem that will do; recents->count: there is none. */
static int find_recent(const struct recents *recents, const struct numbers *stem) {
  int found = 0;
  for (; found < recents->count; found++) {
    const struct numbers *known = &recents->at[found].stem;
    if (stem->defined & ~known->defined) continue;
    const struct span span = span_between(stem, known, stem->defined);
    if (span.least == span.most) break;
  }
  return found;
}

static int64_t cost_alone(const struct group *group) {
  const int64_t own = bytes_of(group->kind ? group->kind : 1);
  return HEAD + (own < GUESS ? own : GUESS);
}

static int run_pays(const struct run *run, const struct window *window, int64_t stem_bytes) {
  int64_t alone = 0;
  for (int m = 0; m < run->count; m++) alone += cost_alone(&window->groups[run->places[m]]);
  return CB_QUAD * HEAD + stem_bytes <= alone;
}

/* Whether all entries of the run follow each other, slot by slot and there member by member. */
static int is_of_ranks(const struct run *run) {
  const uint32_t defined = run->stem.defined;
  int64_t wrong = 0, next = run->stem.at[__builtin_ctz(defined)];
  for (uint32_t left = run->counted ? defined : 0; left; left &= left - 1) {
    const int i = __builtin_ctz(left);
    wrong |= run->stem.at[i] - next;
    next += run->seen[i];
  }
  return run->counted && !wrong;
}

static struct shape shape_of_ranks(const struct run *run) {
  return (struct shape){.base = run->stem.at[__builtin_ctz(run->stem.defined)], .stem_kind = CB_RANKS, .counted = 1};
}

static struct shape shape_of_recent(const struct run *run, const struct recent *recent) {
  const int first = __builtin_ctz(run->stem.defined);
  return (struct shape){
      .base = recent->least + run->stem.at[first] - recent->stem.at[first],
      .stem_place = recent->place,
      .stem_kind = recent->kind,
      .counted = run->counted,
  };
}

static void put_run(struct cb_quad_piece *piece, const struct run *run, struct window *window, struct shape shape) {
  struct member members[CB_QUAD];
  for (int m = 0; m < run->count; m++)
    members[m] = (struct member){&window->groups[run->places[m]], run->offsets[m]};
  put_quad(piece, members, run->count, shape);
  for (int m = 0; m < run->count; m++) window->taken[run->places[m]] = 1;
}

/* Whether the run, with a stem of numbers, pays. */
static int take_run_with_stem(struct cb_quad_piece *piece, struct recents *recents, struct window *window,
                              const struct run *run) {
  const struct span span = span_of(&run->stem, run->stem.defined);
  const int kind = kind_for(span.most - span.least), known = find_recent(recents, &run->stem),
            is_new = known == recents->count;
  if (span.most - span.least > MOST_STEM || !run_pays(run, window, is_new ? bytes_of(kind) : 0)) return 0;
  if (is_new && recents->count < RECENT) recents->count++;
  const int place_of_it = known < RECENT ? known : RECENT - 1;
  if (is_new) {
    recents->at[place_of_it] =
        (struct recent){run->stem, span.least, (uint32_t)(piece->stems.length / CB_MAP_UNIT), kind};
    put_stem(piece, &run->stem, span.least, kind);
  }
  note_use(recents, place_of_it);
  put_run(piece, run, window, shape_of_recent(run, &recents->at[0]));
  return 1;
}

/* Whether the group began a run that pays. */
static int take_run(struct cb_quad_piece *piece, struct recents *recents, struct window *window, int place) {
  struct run run;
  find_run(&run, window, place);
  if (!is_of_ranks(&run) || !run_pays(&run, window, 0)) return take_run_with_stem(piece, recents, window, &run);
  put_run(piece, &run, window, shape_of_ranks(&run));
  return 1;
}

static void leave(struct cb_quad_piece *piece, const struct group *group) {
  struct cb_keyed *left = grow(piece, &piece->left, (int64_t)sizeof *left);
  if (left) *left = (struct cb_keyed){(uint64_t)group->least, group->number};
}

void cb_quads_of_runs(struct cb_quad_piece *piece, const struct cb_group_source *source, int64_t first, int64_t count) {
  struct window *window = cb_alloc(1, sizeof *window);
  struct recents recents;
  recents.count = 0;
  if (!window) {
    piece->failed = 1;
    return;
  }
  window->count = (int)count;
  for (int i = 0; i < window->count; i++) window->taken[i] = !read_group(&window->groups[i], source, first + i);
  for (int i = 0; i < window->count; i++)
    if (!window->taken[i] && !take_run(piece, &recents, window, i)) leave(piece, &window->groups[i]);
  cb_free(window);
}

/* ---- the rest, alone: quads of leaves without a stem */

struct pool {
  struct group groups[CB_QUAD];
  int count;
  struct span span; /* of their entries */
};

static void flush_pool(struct cb_quad_piece *piece, struct pool *pool, int kind) {
  struct member members[CB_QUAD];
  if (!pool->count) return;
  for (int m = 0; m < pool->count; m++)
    members[m] = (struct member){&pool->groups[m], pool->groups[m].least};
  unsigned char *leaves = put_quad(piece, members, pool->count, (struct shape){.leaf_kind = kind});
  for (int m = 0; m < pool->count && leaves; m++) {
    struct numbers leaf = pool->groups[m].entries;
    for (int i = 0; i < CB_GROUP_SLOTS; i++) leaf.at[i] -= pool->groups[m].least;
    put_leaf(leaves, kind, m, &leaf);
  }
  pool->count = 0;
}

static void pool_group(struct cb_quad_piece *piece, struct pool *pools, const struct group *group) {
  const int kind = group->kind ? group->kind : 1;
  struct pool *pool = &pools[kind];
  const struct span span = wider(wider(pool->count ? pool->span : empty, group->least), group->most);
  const int fits = span.most - span.least <= UINT32_MAX;
  if (!fits) flush_pool(piece, pool, kind);
  pool->span = fits ? span : (struct span){group->least, group->most};
  pool->groups[pool->count++] = *group;
  if (pool->count == CB_QUAD) flush_pool(piece, pool, kind);
}

/* One whose differences need 64 bits has a stem of its own. */
static void put_wide(struct cb_quad_piece *piece, const struct group *group) {
  const struct member member = {group, 0};
  const struct shape shape = {
      .base = group->least, .stem_place = (uint32_t)(piece->stems.length / CB_MAP_UNIT), .stem_kind = WIDE};
  put_stem(piece, &group->entries, group->least, WIDE);
  put_quad(piece, &member, 1, shape);
}

/* ---- the rest, in clusters */

struct cluster {
  struct numbers stem;
  struct span span; /* of the stem */
  int count;
  int64_t own_bytes; /* that its groups would take alone */
  struct group groups[MEMBERS];
  int64_t offsets[MEMBERS];
};

struct rest {
  struct cb_quad_piece *piece;
  struct pool pools[WIDE];
  struct cluster *clusters[CLUSTERS]; /* the one used last first */
  int open;
};

static void add_to_cluster(struct cluster *cluster, const struct group *group, int64_t offset) {
  cluster->groups[cluster->count] = *group;
  cluster->offsets[cluster->count++] = offset;
  cluster->own_bytes += bytes_of(group->kind);
}

static void start_cluster(struct cluster *cluster, const struct group *group) {
  cluster->count = 0;
  cluster->own_bytes = 0;
  cluster->stem = group->entries;
  cluster->span = span_of(&group->entries, group->entries.defined);
  add_to_cluster(cluster, group, 0);
}

/* Whether the group fits; its new slots, whose leaves are in the middle, are added to the stem. */
static int join_cluster(struct cluster *cluster, const struct group *group) {
  const uint32_t common = group->entries.defined & cluster->stem.defined;
  if (!common || cluster->count == MEMBERS) return 0;
  const struct span leaves = span_between(&group->entries, &cluster->stem, common);
  const int64_t middle = leaves.least + (leaves.most - leaves.least) / 2;
  struct span span = cluster->span;
  if (leaves.most - leaves.least > UINT8_MAX) return 0;
  for (uint32_t left = group->entries.defined & ~common; left; left &= left - 1) {
    const int64_t number = group->entries.at[__builtin_ctz(left)] - middle;
    span = wider(span, number);
  }
  if (span.most - span.least > MOST_STEM) return 0;
  cluster->span = span;
  for (uint32_t left = group->entries.defined & ~common; left; left &= left - 1) {
    const int i = __builtin_ctz(left);
    cluster->stem.at[i] = group->entries.at[i] - middle;
  }
  cluster->stem.defined |= group->entries.defined;
  add_to_cluster(cluster, group, leaves.least);
  return 1;
}

/* Members from `first` on that share a quad: offsets are to fit 32 bits. */
static int quad_of_cluster(const struct cluster *cluster, int first) {
  struct span span = wider(empty, cluster->offsets[first]);
  int count = 1;
  for (; count < CB_QUAD && first + count < cluster->count; count++) {
    const int64_t offset = cluster->offsets[first + count];
    span = wider(span, offset);
    if (span.most - span.least > MOST_OFFSET) break;
  }
  return count;
}

static void put_cluster(struct cb_quad_piece *piece, const struct cluster *cluster) {
  struct shape shape = {.base = cluster->span.least,
                        .stem_place = (uint32_t)(piece->stems.length / CB_MAP_UNIT),
                        .stem_kind = kind_for(cluster->span.most - cluster->span.least),
                        .leaf_kind = 1};
  put_stem(piece, &cluster->stem, cluster->span.least, shape.stem_kind);
  for (int first = 0, count; first < cluster->count; first += count) {
    struct member members[CB_QUAD];
    count = quad_of_cluster(cluster, first);
    for (int m = 0; m < count; m++)
      members[m] = (struct member){&cluster->groups[first + m], cluster->offsets[first + m]};
    unsigned char *leaves = put_quad(piece, members, count, shape);
    for (int m = 0; m < count && leaves; m++) {
      struct numbers leaf = cluster->groups[first + m].entries;
      for (int i = 0; i < CB_GROUP_SLOTS; i++) leaf.at[i] -= cluster->stem.at[i] + members[m].offset;
      put_leaf(leaves, 1, m, &leaf);
    }
  }
}

static void close_cluster(struct rest *rest, const struct cluster *cluster) {
  const int64_t stem = bytes_of(kind_for(cluster->span.most - cluster->span.least));
  if (stem + cluster->count * bytes_of(1) <= cluster->own_bytes)
    put_cluster(rest->piece, cluster);
  else
    for (int m = 0; m < cluster->count; m++) pool_group(rest->piece, rest->pools, &cluster->groups[m]);
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
  if (group->kind == WIDE)
    put_wide(rest->piece, group);
  else if (group->kind < 2) /* bytes already */
    pool_group(rest->piece, rest->pools, group);
  else
    cluster_group(rest, group);
}

void cb_quads_of_rest(struct cb_quad_piece *piece, const struct cb_group_source *source, const struct cb_keyed *groups,
                      int64_t count) {
  struct rest *rest = cb_calloc(1, sizeof *rest);
  struct cluster *clusters = cb_alloc(CLUSTERS, sizeof *clusters);
  struct group group;
  if (!rest || !clusters) piece->failed = 1;
  for (int i = 0; i < CLUSTERS && !piece->failed; i++) rest->clusters[i] = &clusters[i];
  if (rest) rest->piece = piece;
  for (int64_t i = 0; i < count && !piece->failed; i++)
    if (read_group(&group, source, groups[i].number)) take_rest(rest, &group);
  for (int i = 0; !piece->failed && i < rest->open; i++) close_cluster(rest, rest->clusters[i]);
  for (int kind = 1; !piece->failed && kind < WIDE; kind++) flush_pool(piece, &rest->pools[kind], kind);
  cb_free(clusters);
  cb_free(rest);
}
