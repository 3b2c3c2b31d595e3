// SPDX-License-Identifier: Apache-2.0
/* A value map from the blocks of its chunks: see value_encode.h. Threads take chunks of a region's groups to find runs;
 * then the groups that are left over are sorted, and threads take chunks of these. Deltas that several chunks have are
 * kept once, and a region's blocks are sorted by reference. Begin to read at cb_map_blocks_build, at the end. */
#include "runtime/operator/value_encode.h"

#include "base/hash.h"
#include "base/integers.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* The chunks of one region. */
struct chunks {
  struct cb_map_chunk *all;
  int64_t runs, rest; /* those of runs come first */
  int64_t first_group, groups;
  struct cb_keyed *left; /* groups */
  int64_t left_count;
};

static int64_t chunks_for(int64_t groups) {
  return cb_divide_up(groups, CB_MAP_CHUNK);
}

static int64_t chunk_size(int64_t groups, int64_t chunk) {
  return cb_smaller(groups - chunk * CB_MAP_CHUNK, CB_MAP_CHUNK);
}

static enum cb_status out_of_memory(int64_t groups, struct cb_diag *diag) {
  return cb_fail_memory(diag, "a value map", (unsigned long long)groups * sizeof(struct cb_map_block));
}

/* ---- sorting by key: parts, side by side, which are then merged two by two */

static int compare_keyed(const void *left, const void *right) {
  const struct cb_keyed *a = left, *b = right;
  if (a->key != b->key) return a->key < b->key ? -1 : 1;
  return (a->number > b->number) - (a->number < b->number);
}

static int is_sorted(const struct cb_keyed *items, int64_t count) {
  int sorted = 1;
#pragma omp parallel for schedule(static) reduction(& : sorted)
  for (int64_t i = 1; i < count; i++) sorted &= compare_keyed(&items[i - 1], &items[i]) <= 0;
  return sorted;
}

static void merge(struct cb_keyed *to, const struct cb_keyed *from, int64_t middle, int64_t end) {
  int64_t left = 0, right = middle;
  for (int64_t i = 0; i < end; i++) {
    const int takes_left = right == end || (left < middle && compare_keyed(&from[left], &from[right]) <= 0);
    to[i] = from[takes_left ? left++ : right++];
  }
}

/* 0: out of memory. */
static int sort(struct cb_keyed *items, int64_t count) {
  enum { PART = 1 << 14 };
  if (is_sorted(items, count)) return 1;
#pragma omp parallel for schedule(dynamic)
  for (int64_t at = 0; at < count; at += PART)
    qsort(items + at, (size_t)cb_smaller(PART, count - at), sizeof *items, compare_keyed);
  if (count <= PART) return 1;
  struct cb_keyed *other = cb_alloc((size_t)count, sizeof *other), *from = items, *to = other;
  if (!other) return 0;
  for (int64_t part = PART; part < count; part *= 2) {
#pragma omp parallel for schedule(dynamic)
    for (int64_t at = 0; at < count; at += 2 * part)
      merge(to + at, from + at, cb_smaller(part, count - at), cb_smaller(2 * part, count - at));
    struct cb_keyed *const merged = to;
    to = from;
    from = merged;
  }
  if (from != items) memcpy(items, from, (size_t)count * sizeof *items);
  cb_free(other);
  return 1;
}

/* ---- one region */

/* Joins what the chunks left over when runs were looked for. */
static int gather_left(struct chunks *chunks) {
  for (int64_t p = 0; p < chunks->runs; p++)
    chunks->left_count += chunks->all[p].left.length / (int64_t)sizeof *chunks->left;
  chunks->left = cb_alloc((size_t)chunks->left_count, sizeof *chunks->left);
  int64_t at = 0;
  for (int64_t p = 0; p < chunks->runs && chunks->left; p++) {
    const struct cb_growing *left = &chunks->all[p].left;
    if (left->length) memcpy((char *)chunks->left + at, left->bytes, (size_t)left->length);
    at += left->length;
  }
  return chunks->left != NULL;
}

static enum cb_status encode(struct chunks *chunks, const struct cb_group_source *source, struct cb_diag *diag) {
  int failed = 0;
  chunks->runs = chunks_for(chunks->groups);
  chunks->all = cb_calloc((size_t)(2 * chunks->runs), sizeof *chunks->all); /* those of the rest are no more */
  if (!chunks->all) return out_of_memory(chunks->groups, diag);
#pragma omp parallel for schedule(dynamic)
  for (int64_t p = 0; p < chunks->runs; p++)
    cb_encode_runs(&chunks->all[p], source, chunks->first_group + p * CB_MAP_CHUNK, chunk_size(chunks->groups, p));
  for (int64_t p = 0; p < chunks->runs; p++) failed |= chunks->all[p].failed;
  if (failed || !gather_left(chunks) || !sort(chunks->left, chunks->left_count))
    return out_of_memory(chunks->groups, diag);
  chunks->rest = chunks_for(chunks->left_count);
#pragma omp parallel for schedule(dynamic)
  for (int64_t p = 0; p < chunks->rest; p++)
    cb_encode_rest(&chunks->all[chunks->runs + p], source, chunks->left + p * CB_MAP_CHUNK,
                   chunk_size(chunks->left_count, p));
  for (int64_t p = 0; p < chunks->rest; p++) failed |= chunks->all[chunks->runs + p].failed;
  return failed ? out_of_memory(chunks->groups, diag) : CB_OK;
}

static void chunks_release(struct chunks *chunks) {
  for (int64_t p = 0; chunks->all && p < 2 * chunks->runs; p++) cb_map_chunk_release(&chunks->all[p]);
  cb_free(chunks->all);
  cb_free(chunks->left);
}

/* ---- all chunks joined: deltas once, then residuals; blocks by chunk, and then by reference */

struct joined_chunk {
  const struct cb_map_chunk *chunk;
  int64_t first_block, residuals_at; /* in the body */
};

struct join {
  int64_t count, blocks_count;
  struct joined_chunk *chunks;  /* of all regions */
  unsigned char *memory, *body; /* the map's */
  int64_t end;                  /* of the body so far */
  struct cb_map_block *blocks;  /* by chunk */
  struct cb_keyed *order;       /* of the blocks */
  uint32_t *table;              /* 1 + the place of deltas, by their content */
  size_t mask;
  uint32_t *kept; /* 1 + the place of deltas, by their place in the chunk */
};

static int64_t blocks_in(const struct cb_map_chunk *chunk) {
  return chunk->blocks.length / (int64_t)sizeof(struct cb_map_block);
}

static int64_t delta_bytes(const struct cb_map_block *block) {
  const int code = block->control >> CB_DELTA_SHIFT & 7;
  return code && code != CB_PREFIX_COUNTS ? (int64_t)CB_GROUP_SLOTS << (code - 1) : 0;
}

static int has_residuals(const struct cb_map_block *block) {
  return block->control >> CB_RESIDUAL_SHIFT & 3;
}

/* Where nearly every block has deltas of its own, those of other chunks will hardly be the same. */
static int is_worth_searching(const struct cb_map_chunk *chunk) {
  return chunk->deltas.length <= blocks_in(chunk) * CB_MAP_UNIT / 2;
}

/* Returns where in the body it is kept. */
static uint32_t keep_deltas(struct join *join, const unsigned char *deltas, int64_t bytes, int search) {
  size_t at = search ? cb_hash_bytes(deltas, (size_t)bytes).low & join->mask : 0;
  for (; search && join->table[at]; at = (at + 1) & join->mask) {
    const int64_t known = (int64_t)(join->table[at] - 1) * CB_MAP_UNIT;
    if (known + bytes <= join->end && !memcmp(join->body + known, deltas, (size_t)bytes)) return join->table[at] - 1;
  }
  const uint32_t place = (uint32_t)(join->end / CB_MAP_UNIT);
  if (search) join->table[at] = place + 1;
  memcpy(join->body + join->end, deltas, (size_t)bytes);
  join->end += bytes;
  return place;
}

static void join_deltas(struct join *join, const struct joined_chunk *joined) {
  const struct cb_map_chunk *chunk = joined->chunk;
  struct cb_map_block *blocks = join->blocks + joined->first_block;
  const int search = is_worth_searching(chunk);
  memset(join->kept, 0, (size_t)(chunk->deltas.length / CB_MAP_UNIT) * sizeof *join->kept);
  for (int64_t b = 0; b < blocks_in(chunk); b++) {
    uint32_t *const place = &blocks[b].deltas;
    const int64_t bytes = delta_bytes(&blocks[b]);
    if (!bytes) continue;
    uint32_t *const kept = &join->kept[*place];
    if (!*kept) *kept = keep_deltas(join, chunk->deltas.bytes + (int64_t)*place * CB_MAP_UNIT, bytes, search) + 1;
    *place = *kept - 1;
  }
}

/* Joins the residuals; makes the keys by which blocks are sorted. */
static void join_residuals(const struct join *join, const struct joined_chunk *joined) {
  const struct cb_growing *residuals = &joined->chunk->residuals;
  for (int64_t b = joined->first_block; b < joined->first_block + blocks_in(joined->chunk); b++) {
    if (has_residuals(&join->blocks[b])) join->blocks[b].residuals += (uint32_t)(joined->residuals_at / CB_MAP_UNIT);
    join->order[b] = (struct cb_keyed){cb_map_reference(&join->blocks[b]) ^ INT64_MIN, b}; /* signed */
  }
  if (residuals->length) memcpy(join->body + joined->residuals_at, residuals->bytes, (size_t)residuals->length);
}

/* Lists the chunks of all regions, and says how much room deltas and residuals take at most. */
static enum cb_status list_chunks(struct join *join, const struct chunks *regions, int regions_count, int64_t *bytes,
                                  int64_t *longest, struct cb_diag *diag) {
  int64_t count = 0;
  *bytes = *longest = 0;
  for (int r = 0; r < regions_count; r++) count += regions[r].runs + regions[r].rest;
  join->chunks = cb_alloc((size_t)count, sizeof *join->chunks);
  if (!join->chunks) return out_of_memory(count, diag);
  for (int r = 0; r < regions_count; r++)
    for (int64_t p = 0; p < regions[r].runs + regions[r].rest; p++) {
      const struct cb_map_chunk *chunk = &regions[r].all[p];
      join->chunks[join->count++] = (struct joined_chunk){.chunk = chunk, .first_block = join->blocks_count};
      join->blocks_count += blocks_in(chunk);
      *bytes += chunk->deltas.length + chunk->residuals.length;
      if (chunk->deltas.length > *longest) *longest = chunk->deltas.length;
    }
  if (*bytes / CB_MAP_UNIT < UINT32_MAX) return CB_OK;
  return cb_fail(diag, CB_ERR_LIMIT, "a value map of %lld bytes is beyond what its blocks can name", (long long)*bytes);
}

static enum cb_status need_room(struct join *join, struct cb_value_map *map, int64_t bytes, int64_t longest,
                                struct cb_diag *diag) {
  size_t searched = 0;
  for (int64_t p = 0; p < join->count; p++)
    searched += is_worth_searching(join->chunks[p].chunk) ? (size_t)join->chunks[p].chunk->deltas.length : 0;
  join->mask = 63;
  while (join->mask < 2 * searched / CB_MAP_UNIT) join->mask = 2 * join->mask + 1;
  map->blocks_count = join->blocks_count;
  map->owned[0] = join->memory = cb_calloc((size_t)(cb_value_map_body_at(map) + bytes + CB_MAP_UNIT), 1);
  join->blocks = cb_alloc((size_t)join->blocks_count, sizeof *join->blocks);
  join->order = cb_alloc((size_t)join->blocks_count, sizeof *join->order);
  join->table = cb_calloc(join->mask + 1, sizeof *join->table);
  join->kept = cb_alloc((size_t)(longest / CB_MAP_UNIT), sizeof *join->kept);
  if (!join->memory || !join->blocks || !join->order || !join->table || !join->kept)
    return out_of_memory(map->groups_count, diag);
  join->body = join->memory + cb_value_map_body_at(map);
  return CB_OK;
}

static void join_chunks(struct join *join) {
  for (int64_t p = 0; p < join->count; p++) {
    const struct joined_chunk *joined = &join->chunks[p];
    if (joined->chunk->blocks.length)
      memcpy(join->blocks + joined->first_block, joined->chunk->blocks.bytes, (size_t)joined->chunk->blocks.length);
    join_deltas(join, joined);
  }
  for (int64_t p = 0; p < join->count; p++) {
    join->chunks[p].residuals_at = join->end;
    join->end += join->chunks[p].chunk->residuals.length;
  }
#pragma omp parallel for schedule(dynamic)
  for (int64_t p = 0; p < join->count; p++) join_residuals(join, &join->chunks[p]);
  if (join->end) return;
  join->end = CB_MAP_UNIT; /* zeros: an empty body has no address */
}

static enum cb_status sort_blocks(struct join *join, const struct cb_value_range *range, struct cb_diag *diag) {
  struct cb_map_block *const sorted = (struct cb_map_block *)(void *)join->memory + range->first_block;
  struct cb_keyed *const order = join->order + range->first_block;
  if (!sort(order, range->blocks)) return out_of_memory(range->blocks, diag);
#pragma omp parallel for schedule(static)
  for (int64_t b = 0; b < range->blocks; b++) sorted[b] = join->blocks[order[b].number];
  return CB_OK;
}

static enum cb_status join_all(struct cb_value_map *map, struct cb_value_range *ranges, const struct chunks *regions,
                               int regions_count, struct cb_diag *diag) {
  struct join join = {0};
  int64_t bytes, longest, block = 0;
  enum cb_status s = list_chunks(&join, regions, regions_count, &bytes, &longest, diag);
  if (!s) s = need_room(&join, map, bytes, longest, diag);
  if (!s) join_chunks(&join);
  for (int r = 0; r < regions_count && !s; r++) {
    ranges[r].first_block = block;
    for (int64_t p = 0; p < regions[r].runs + regions[r].rest; p++) block += blocks_in(&regions[r].all[p]);
    ranges[r].blocks = block - ranges[r].first_block;
    s = sort_blocks(&join, &ranges[r], diag);
  }
  map->blocks = (const void *)join.memory;
  map->body = join.body;
  map->body_bytes = join.end;
  cb_free(join.chunks);
  cb_free(join.blocks);
  cb_free(join.order);
  cb_free(join.table);
  cb_free(join.kept);
  return s;
}

/* ---- the whole */

enum cb_status cb_map_blocks_build(struct cb_value_map *map, struct cb_value_range *ranges, int regions,
                                   const struct cb_group_source *source, struct cb_diag *diag) {
  struct chunks *all = cb_calloc((size_t)regions + 1, sizeof *all);
  enum cb_status s = all ? CB_OK : out_of_memory(regions, diag);
  for (int r = 0; r < regions && !s; r++) {
    const int64_t groups = cb_groups_of(ranges[r].slots);
    ranges[r].first_group = all[r].first_group = map->groups_count;
    all[r].groups = groups;
    map->groups_count += groups;
    if (map->groups_count >= CB_NO_GROUP)
      s = cb_fail(diag, CB_ERR_LIMIT, "%lld slots are more than a value map can name",
                  (long long)map->groups_count * CB_GROUP_SLOTS);
    if (!s) s = encode(&all[r], source, diag);
  }
  if (!s && map->groups_count) s = join_all(map, ranges, all, regions, diag);
  for (int r = 0; all && r < regions; r++) chunks_release(&all[r]);
  cb_free(all);
  return s;
}
