// SPDX-License-Identifier: Apache-2.0
/* A value map from the quads of its pieces: see value_quads.h. Threads take pieces of a region's groups for runs, and
 * then, sorted, of what is left over. Stems that several pieces have are kept once, and the quads of all pieces are
 * sorted by base. cb_value_quads_build at the end is the table of contents. */
#include "runtime/value_quads.h"

#include "base/hash.h"
#include "base/integers.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* The pieces of one region. */
struct pieces {
  struct cb_quad_piece *all;
  int64_t runs, rest; /* those of runs come first */
  int64_t first_group, groups;
  struct cb_keyed *left; /* groups */
  int64_t left_count;
};

static int64_t pieces_for(int64_t groups) {
  return cb_divide_up(groups, CB_QUAD_PIECE);
}

static int64_t piece_size(int64_t groups, int64_t piece) {
  return cb_smaller(groups - piece * CB_QUAD_PIECE, CB_QUAD_PIECE);
}

static enum cb_status out_of_memory(int64_t groups, struct cb_diag *diag) {
  return cb_fail_memory(diag, "a value map", (unsigned long long)groups * sizeof(struct cb_value_quad));
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

/* What the pieces of runs left over, together. */
static int gather_left(struct pieces *pieces) {
  for (int64_t p = 0; p < pieces->runs; p++)
    pieces->left_count += pieces->all[p].left.length / (int64_t)sizeof *pieces->left;
  pieces->left = cb_alloc((size_t)pieces->left_count, sizeof *pieces->left);
  int64_t at = 0;
  for (int64_t p = 0; p < pieces->runs && pieces->left; p++) {
    const struct cb_growing *left = &pieces->all[p].left;
    if (left->length) memcpy((char *)pieces->left + at, left->bytes, (size_t)left->length);
    at += left->length;
  }
  return pieces->left != NULL;
}

static enum cb_status find_quads(struct pieces *pieces, const struct cb_group_source *source, struct cb_diag *diag) {
  int failed = 0;
  pieces->runs = pieces_for(pieces->groups);
  pieces->all = cb_calloc((size_t)(2 * pieces->runs), sizeof *pieces->all); /* those of the rest are no more */
  if (!pieces->all) return out_of_memory(pieces->groups, diag);
#pragma omp parallel for schedule(dynamic)
  for (int64_t p = 0; p < pieces->runs; p++)
    cb_quads_of_runs(&pieces->all[p], source, pieces->first_group + p * CB_QUAD_PIECE, piece_size(pieces->groups, p));
  for (int64_t p = 0; p < pieces->runs; p++) failed |= pieces->all[p].failed;
  if (failed || !gather_left(pieces) || !sort(pieces->left, pieces->left_count))
    return out_of_memory(pieces->groups, diag);
  pieces->rest = pieces_for(pieces->left_count);
#pragma omp parallel for schedule(dynamic)
  for (int64_t p = 0; p < pieces->rest; p++)
    cb_quads_of_rest(&pieces->all[pieces->runs + p], source, pieces->left + p * CB_QUAD_PIECE,
                     piece_size(pieces->left_count, p));
  for (int64_t p = 0; p < pieces->rest; p++) failed |= pieces->all[pieces->runs + p].failed;
  return failed ? out_of_memory(pieces->groups, diag) : CB_OK;
}

static void pieces_release(struct pieces *pieces) {
  for (int64_t p = 0; pieces->all && p < 2 * pieces->runs; p++) cb_quad_piece_release(&pieces->all[p]);
  cb_free(pieces->all);
  cb_free(pieces->left);
}

/* ---- all pieces joined: stems once, then leaves; quads by piece, and then by base */

struct joined_piece {
  const struct cb_quad_piece *piece;
  int64_t first_quad, leaves_at; /* in the body */
};

struct join {
  int64_t count, quads_count;
  struct joined_piece *pieces;  /* of all regions */
  unsigned char *block, *body;  /* the map's */
  int64_t end;                  /* of the body so far */
  struct cb_value_quad *quads;  /* by piece */
  struct cb_keyed *order;       /* of the quads */
  uint32_t *table;              /* place of a stem and 1, by content */
  size_t mask;
  uint32_t *kept; /* place of a stem and 1, by place in its piece */
};

static int64_t quads_in(const struct cb_quad_piece *piece) {
  return piece->quads.length / (int64_t)sizeof(struct cb_value_quad);
}

static int64_t stem_bytes(const struct cb_value_quad *quad) {
  const int kind = quad->kinds >> CB_STEM_SHIFT & 7;
  return kind && kind != CB_RANKS ? (int64_t)CB_GROUP_SLOTS << (kind - 1) : 0;
}

static int has_leaves(const struct cb_value_quad *quad) {
  return quad->kinds >> CB_LEAF_SHIFT & 3;
}

/* Where nearly every quad has a stem of its own, other pieces' will hardly be the same. */
static int is_worth_searching(const struct cb_quad_piece *piece) {
  return piece->stems.length <= quads_in(piece) * CB_MAP_UNIT / 2;
}

/* Returns where in the body it is kept. */
static uint32_t join_stem(struct join *join, const unsigned char *stem, int64_t bytes, int search) {
  size_t at = search ? cb_hash_bytes(stem, (size_t)bytes).low & join->mask : 0;
  for (; search && join->table[at]; at = (at + 1) & join->mask) {
    const int64_t known = (int64_t)(join->table[at] - 1) * CB_MAP_UNIT;
    if (known + bytes <= join->end && !memcmp(join->body + known, stem, (size_t)bytes)) return join->table[at] - 1;
  }
  const uint32_t place = (uint32_t)(join->end / CB_MAP_UNIT);
  if (search) join->table[at] = place + 1;
  memcpy(join->body + join->end, stem, (size_t)bytes);
  join->end += bytes;
  return place;
}

static void join_stems(struct join *join, const struct joined_piece *joined) {
  const struct cb_quad_piece *piece = joined->piece;
  struct cb_value_quad *quads = join->quads + joined->first_quad;
  const int search = is_worth_searching(piece);
  memset(join->kept, 0, (size_t)(piece->stems.length / CB_MAP_UNIT) * sizeof *join->kept);
  for (int64_t q = 0; q < quads_in(piece); q++) {
    uint32_t *const place = &quads[q].stem;
    const int64_t bytes = stem_bytes(&quads[q]);
    if (!bytes) continue;
    uint32_t *const kept = &join->kept[*place];
    if (!*kept) *kept = join_stem(join, piece->stems.bytes + (int64_t)*place * CB_MAP_UNIT, bytes, search) + 1;
    *place = *kept - 1;
  }
}

/* Takes the quads over, too, with their keys. */
static void join_leaves(const struct join *join, const struct joined_piece *joined) {
  const struct cb_growing *leaves = &joined->piece->leaves;
  for (int64_t q = joined->first_quad; q < joined->first_quad + quads_in(joined->piece); q++) {
    if (has_leaves(&join->quads[q])) join->quads[q].leaf += (uint32_t)(joined->leaves_at / CB_MAP_UNIT);
    join->order[q] = (struct cb_keyed){cb_quad_base(&join->quads[q]) ^ INT64_MIN, q}; /* signed */
  }
  if (leaves->length) memcpy(join->body + joined->leaves_at, leaves->bytes, (size_t)leaves->length);
}

/* Lists the pieces of all regions, and says how much room stems and leaves take at most. */
static enum cb_status list_pieces(struct join *join, const struct pieces *regions, int regions_count, int64_t *bytes,
                                  int64_t *longest, struct cb_diag *diag) {
  int64_t count = 0;
  *bytes = *longest = 0;
  for (int r = 0; r < regions_count; r++) count += regions[r].runs + regions[r].rest;
  join->pieces = cb_alloc((size_t)count, sizeof *join->pieces);
  if (!join->pieces) return out_of_memory(count, diag);
  for (int r = 0; r < regions_count; r++)
    for (int64_t p = 0; p < regions[r].runs + regions[r].rest; p++) {
      const struct cb_quad_piece *piece = &regions[r].all[p];
      join->pieces[join->count++] = (struct joined_piece){.piece = piece, .first_quad = join->quads_count};
      join->quads_count += quads_in(piece);
      *bytes += piece->stems.length + piece->leaves.length;
      if (piece->stems.length > *longest) *longest = piece->stems.length;
    }
  if (*bytes / CB_MAP_UNIT < UINT32_MAX) return CB_OK;
  return cb_fail(diag, CB_ERR_LIMIT, "a value map of %lld bytes is beyond what its quads can name", (long long)*bytes);
}

static enum cb_status need_room(struct join *join, struct cb_value_map *map, int64_t bytes, int64_t longest,
                                struct cb_diag *diag) {
  size_t searched = 0;
  for (int64_t p = 0; p < join->count; p++)
    searched += is_worth_searching(join->pieces[p].piece) ? (size_t)join->pieces[p].piece->stems.length : 0;
  join->mask = 63;
  while (join->mask < 2 * searched / CB_MAP_UNIT) join->mask = 2 * join->mask + 1;
  map->quads_count = join->quads_count;
  map->owned[0] = join->block = cb_calloc((size_t)(cb_value_map_body_at(map) + bytes + CB_MAP_UNIT), 1);
  join->quads = cb_alloc((size_t)join->quads_count, sizeof *join->quads);
  join->order = cb_alloc((size_t)join->quads_count, sizeof *join->order);
  join->table = cb_calloc(join->mask + 1, sizeof *join->table);
  join->kept = cb_alloc((size_t)(longest / CB_MAP_UNIT), sizeof *join->kept);
  if (!join->block || !join->quads || !join->order || !join->table || !join->kept)
    return out_of_memory(map->groups_count, diag);
  join->body = join->block + cb_value_map_body_at(map);
  return CB_OK;
}

static void join_pieces(struct join *join) {
  for (int64_t p = 0; p < join->count; p++) {
    const struct joined_piece *joined = &join->pieces[p];
    if (joined->piece->quads.length)
      memcpy(join->quads + joined->first_quad, joined->piece->quads.bytes, (size_t)joined->piece->quads.length);
    join_stems(join, joined);
  }
  for (int64_t p = 0; p < join->count; p++) {
    join->pieces[p].leaves_at = join->end;
    join->end += join->pieces[p].piece->leaves.length;
  }
#pragma omp parallel for schedule(dynamic)
  for (int64_t p = 0; p < join->count; p++) join_leaves(join, &join->pieces[p]);
  if (join->end) return;
  join->end = CB_MAP_UNIT; /* zeros: an empty body has no address */
}

static enum cb_status sort_quads(struct join *join, const struct cb_value_range *range, struct cb_diag *diag) {
  struct cb_value_quad *const sorted = (struct cb_value_quad *)(void *)join->block + range->first_quad;
  struct cb_keyed *const order = join->order + range->first_quad;
  if (!sort(order, range->quads)) return out_of_memory(range->quads, diag);
#pragma omp parallel for schedule(static)
  for (int64_t q = 0; q < range->quads; q++) sorted[q] = join->quads[order[q].number];
  return CB_OK;
}

static enum cb_status join_all(struct cb_value_map *map, struct cb_value_range *ranges, const struct pieces *regions,
                               int regions_count, struct cb_diag *diag) {
  struct join join = {0};
  int64_t bytes, longest, quad = 0;
  enum cb_status s = list_pieces(&join, regions, regions_count, &bytes, &longest, diag);
  if (!s) s = need_room(&join, map, bytes, longest, diag);
  if (!s) join_pieces(&join);
  for (int r = 0; r < regions_count && !s; r++) {
    ranges[r].first_quad = quad;
    for (int64_t p = 0; p < regions[r].runs + regions[r].rest; p++) quad += quads_in(&regions[r].all[p]);
    ranges[r].quads = quad - ranges[r].first_quad;
    s = sort_quads(&join, &ranges[r], diag);
  }
  map->quads = (const void *)join.block;
  map->body = join.body;
  map->body_bytes = join.end;
  cb_free(join.pieces);
  cb_free(join.quads);
  cb_free(join.order);
  cb_free(join.table);
  cb_free(join.kept);
  return s;
}

/* ---- the whole */

enum cb_status cb_value_quads_build(struct cb_value_map *map, struct cb_value_range *ranges, int regions,
                                    const struct cb_group_source *source, struct cb_diag *diag) {
  struct pieces *all = cb_calloc((size_t)regions + 1, sizeof *all);
  enum cb_status s = all ? CB_OK : out_of_memory(regions, diag);
  for (int r = 0; r < regions && !s; r++) {
    const int64_t groups = cb_groups_of(ranges[r].slots);
    ranges[r].first_group = all[r].first_group = map->groups_count;
    all[r].groups = groups;
    map->groups_count += groups;
    if (map->groups_count >= CB_NO_GROUP)
      s = cb_fail(diag, CB_ERR_LIMIT, "%lld slots are more than a value map can name",
                  (long long)map->groups_count * CB_GROUP_SLOTS);
    if (!s) s = find_quads(&all[r], source, diag);
  }
  if (!s && map->groups_count) s = join_all(map, ranges, all, regions, diag);
  for (int r = 0; all && r < regions; r++) pieces_release(&all[r]);
  cb_free(all);
  return s;
}
