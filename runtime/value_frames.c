// SPDX-License-Identifier: Apache-2.0
/* Frames of a value map: see values.h. Threads take pieces of the groups, each with a dictionary of its own; then the
 * pieces' frames are joined, those that several have are kept once, and groups are told where theirs went.
 *
 * A group tries the frames that were used last (padding apart: what a frame says of absent slots does not matter),
 * then all of its piece's frames for one that is the same. Where nearly every group has a frame of its own nothing
 * is gained, and nothing is looked for when pieces are joined. */
#include "runtime/value_frames.h"

#include "base/hash.h"
#include "base/memory.h"

#include <string.h>

enum { PIECE = 2048, RECENT = 8, TABLE = 2 * PIECE, WIDEST = 8 * CB_GROUP_SLOTS };

/* One frame, as it is compared and as it is kept. */
struct frame {
  uint64_t numbers[CB_GROUP_SLOTS];
  uint32_t defined; /* slots of which it says something; numbers of the others are 0 */
  int width;        /* log2 of a number's bytes */
  int number;       /* among its piece's frames */
};

/* What one piece's groups share. Until all pieces are joined, groups name frames by their numbers. */
struct piece {
  unsigned char *bytes; /* the frames, in the order in which they were found */
  int64_t length, room;
  int count;
  uint32_t places[PIECE]; /* of the frames, as in cb_value_group: in `bytes`, and then in the map */
};

struct finder {
  struct piece *piece;
  struct frame recent[RECENT];
  int recent_count;
  uint16_t table[TABLE];    /* frame + 1, by content */
  uint32_t defined[PIECE];  /* of each frame */
  uint32_t hashes[PIECE];
};

/* ---- one frame */

static int width_for(uint64_t most) {
  return most <= UINT8_MAX ? 0 : most <= UINT16_MAX ? 1 : most <= UINT32_MAX ? 2 : 3;
}

static int64_t bytes_of(uint32_t place) {
  return (int64_t)CB_GROUP_SLOTS << (place & 3);
}

static int64_t start_of(uint32_t place) {
  return (int64_t)(place >> 2) * CB_FRAME_UNIT;
}

/* Differences from the least entry. */
static void make_frame(struct frame *frame, const uint64_t entries[CB_GROUP_SLOTS], uint32_t present,
                       uint64_t *base) {
  uint64_t least = UINT64_MAX, most = 0;
  for (int i = 0; i < CB_GROUP_SLOTS; i++) {
    if (!(present >> i & 1)) continue;
    least = entries[i] < least ? entries[i] : least;
    most = entries[i] > most ? entries[i] : most;
  }
  for (int i = 0; i < CB_GROUP_SLOTS; i++) frame->numbers[i] = present >> i & 1 ? entries[i] - least : 0;
  frame->defined = present;
  frame->width = width_for(most - least);
  *base = least;
}

static void write_frame(unsigned char bytes[WIDEST], const struct frame *frame) {
  for (int i = 0; i < CB_GROUP_SLOTS; i++)
    switch (frame->width) {
    case 0: bytes[i] = (unsigned char)frame->numbers[i]; break;
    case 1: ((uint16_t *)(void *)bytes)[i] = (uint16_t)frame->numbers[i]; break;
    case 2: ((uint32_t *)(void *)bytes)[i] = (uint32_t)frame->numbers[i]; break;
    default: ((uint64_t *)(void *)bytes)[i] = frame->numbers[i]; break;
    }
}

/* Whether the frame gives these entries, from some base. */
static int gives(const struct frame *frame, const uint64_t entries[CB_GROUP_SLOTS], uint32_t present,
                 uint64_t *base) {
  uint64_t wrong = 0;
  if (present & ~frame->defined) return 0;
  const int first = __builtin_ctz(present);
  *base = entries[first] - frame->numbers[first];
  for (int i = first; i < CB_GROUP_SLOTS; i++)
    wrong |= present >> i & 1 ? (entries[i] - frame->numbers[i]) ^ *base : 0;
  return !wrong;
}

/* ---- one piece */

static int append(struct piece *piece, const unsigned char *bytes, int64_t length) {
  if (piece->length + length > piece->room) {
    const int64_t room = piece->room ? 2 * piece->room : 64 * WIDEST;
    unsigned char *larger = cb_realloc(piece->bytes, (size_t)room, 1);
    if (!larger) return 0;
    piece->bytes = larger;
    piece->room = room;
  }
  memcpy(piece->bytes + piece->length, bytes, (size_t)length);
  piece->length += length;
  return 1;
}

/* The frame among the piece's, where it is put if it is none of them. 0: out of memory. */
static int intern(struct finder *finder, struct frame *frame) {
  struct piece *piece = finder->piece;
  _Alignas(8) unsigned char bytes[WIDEST];
  write_frame(bytes, frame);
  const size_t length = (size_t)CB_GROUP_SLOTS << frame->width;
  const uint32_t hash = (uint32_t)cb_hash_bytes(bytes, length).low ^ frame->defined;
  uint32_t at = hash % TABLE;
  for (; finder->table[at]; at = (at + 1) % TABLE) {
    const int known = finder->table[at] - 1;
    const uint32_t place = piece->places[known];
    if (finder->hashes[known] != hash || finder->defined[known] != frame->defined ||
        (int)(place & 3) != frame->width || memcmp(piece->bytes + start_of(place), bytes, length))
      continue;
    frame->number = known;
    return 1;
  }
  piece->places[piece->count] = (uint32_t)(piece->length / CB_FRAME_UNIT) << 2 | (uint32_t)frame->width;
  if (!append(piece, bytes, (int64_t)length)) return 0;
  finder->table[at] = (uint16_t)(piece->count + 1);
  finder->defined[piece->count] = frame->defined;
  finder->hashes[piece->count] = hash;
  frame->number = piece->count++;
  return 1;
}

/* The frame comes to the front, before those that were used since. */
static void note_use(struct finder *finder, int used) {
  if (!used) return;
  const struct frame frame = finder->recent[used];
  memmove(finder->recent + 1, finder->recent, (size_t)used * sizeof frame);
  finder->recent[0] = frame;
}

static int find_group(struct finder *finder, struct cb_value_group *group,
                      const uint64_t entries[CB_GROUP_SLOTS]) {
  *group = (struct cb_value_group){0};
  for (int i = 0; i < CB_GROUP_SLOTS; i++) group->present |= (uint32_t)(entries[i] != CB_NO_ENTRY) << i;
  if (!group->present) return 1; /* any frame will do: the first */
  int used = 0;
  while (used < finder->recent_count && !gives(&finder->recent[used], entries, group->present, &group->base))
    used++;
  if (used == finder->recent_count) {
    if (used < RECENT)
      finder->recent_count++;
    else
      used--;
    struct frame *frame = &finder->recent[used];
    make_frame(frame, entries, group->present, &group->base);
    if (!intern(finder, frame)) return 0;
  }
  group->frame = (uint32_t)finder->recent[used].number;
  note_use(finder, used);
  return 1;
}

/* Groups first … first + count - 1, at most PIECE. */
static int find_piece(struct piece *piece, struct cb_value_group *groups, int64_t first, int64_t count,
                      cb_group_fill *fill, const void *user) {
  struct finder finder;
  uint64_t entries[CB_GROUP_SLOTS];
  finder.piece = piece;
  finder.recent_count = 0;
  memset(finder.table, 0, sizeof finder.table);
  for (int64_t i = first; i < first + count; i++) {
    fill(user, i, entries);
    if (!find_group(&finder, &groups[i], entries)) return 0;
  }
  return 1;
}

/* ---- all pieces joined */

struct joined {
  unsigned char *bytes; /* room for all pieces' */
  int64_t length;
  uint32_t *table; /* place + 1, by content */
  size_t mask;
};

static void join_frame(struct joined *joined, const unsigned char *bytes, uint32_t *place, int search) {
  const int64_t length = bytes_of(*place);
  const uint32_t width = *place & 3;
  size_t at = 0;
  if (search) {
    at = cb_hash_bytes(bytes, (size_t)length).low & joined->mask;
    for (; joined->table[at]; at = (at + 1) & joined->mask) {
      const uint32_t known = joined->table[at] - 1;
      if ((known & 3) != width || memcmp(joined->bytes + start_of(known), bytes, (size_t)length)) continue;
      *place = known;
      return;
    }
  }
  *place = (uint32_t)(joined->length / CB_FRAME_UNIT) << 2 | width;
  memcpy(joined->bytes + joined->length, bytes, (size_t)length);
  joined->length += length;
  if (search) joined->table[at] = *place + 1;
}

/* Where almost every group has its own frame, other pieces' will hardly be the same. */
static int is_worth_searching(const struct piece *piece) {
  return piece->count <= PIECE / 2;
}

static void join_piece(struct joined *joined, struct piece *piece) {
  const int search = is_worth_searching(piece);
  for (int i = 0; i < piece->count; i++)
    join_frame(joined, piece->bytes + start_of(piece->places[i]), &piece->places[i], search);
  cb_free(piece->bytes);
  piece->bytes = NULL;
}

/* ---- the whole */

struct build {
  int64_t groups, pieces_count;
  struct piece *pieces;
  unsigned char *block; /* the map's: groups, then frames */
};

static int64_t groups_in(const struct build *build, int64_t piece) {
  const int64_t left = build->groups - piece * PIECE;
  return left < PIECE ? left : PIECE;
}

static enum cb_status find_all(struct build *build, cb_group_fill *fill, const void *user, struct cb_diag *diag) {
  struct cb_value_group *const groups = (void *)build->block;
  int good = 1;
#pragma omp parallel for schedule(dynamic) reduction(& : good)
  for (int64_t p = 0; p < build->pieces_count; p++)
    good &= find_piece(&build->pieces[p], groups, p * PIECE, groups_in(build, p), fill, user);
  return good ? CB_OK : cb_fail_memory(diag, "a value map", (unsigned long long)build->groups * WIDEST);
}

static void tell_groups(struct build *build, int64_t number) {
  struct cb_value_group *const groups = (struct cb_value_group *)(void *)build->block + number * PIECE;
  for (int64_t i = 0; i < groups_in(build, number); i++)
    if (groups[i].present) groups[i].frame = build->pieces[number].places[groups[i].frame];
}

/* The frames go behind the groups, from byte `at` of the block on. */
static enum cb_status join_all(struct build *build, int64_t at, int64_t *length, struct cb_diag *diag) {
  struct joined joined = {.mask = 63};
  int64_t bytes = 0;
  size_t searched = 0;
  for (int64_t p = 0; p < build->pieces_count; p++) {
    bytes += build->pieces[p].length;
    searched += is_worth_searching(&build->pieces[p]) ? (size_t)build->pieces[p].count : 0;
  }
  if (bytes / CB_FRAME_UNIT >= UINT32_MAX >> 2)
    return cb_fail(diag, CB_ERR_LIMIT, "a value map of %lld bytes is beyond what its groups can name",
                   (long long)bytes);
  while (joined.mask < 2 * searched) joined.mask = 2 * joined.mask + 1;
  unsigned char *block = cb_realloc(build->block, (size_t)(at + bytes + CB_FRAME_UNIT), 1);
  if (block) build->block = block;
  joined.table = cb_calloc(joined.mask + 1, sizeof *joined.table);
  joined.bytes = build->block + at;
  if (!block || !joined.table) {
    cb_free(joined.table);
    return cb_fail_memory(diag, "a value map", (unsigned long long)(at + bytes));
  }
  for (int64_t p = 0; p < build->pieces_count; p++) join_piece(&joined, &build->pieces[p]);
  cb_free(joined.table);
#pragma omp parallel for schedule(static)
  for (int64_t p = 0; p < build->pieces_count; p++) tell_groups(build, p);
  if (!joined.length) { /* all is padding */
    memset(joined.bytes, 0, CB_FRAME_UNIT);
    joined.length = CB_FRAME_UNIT;
  }
  *length = joined.length;
  return CB_OK;
}

enum cb_status cb_value_frames_build(struct cb_value_map *map, int64_t groups, cb_group_fill *fill,
                                     const void *user, struct cb_diag *diag) {
  struct build build = {.groups = groups, .pieces_count = (groups + PIECE - 1) / PIECE};
  map->groups_count = groups;
  if (!groups) return CB_OK;
  const int64_t at = cb_value_map_frames_at(map);
  enum cb_status s = CB_OK;
  build.pieces = cb_calloc((size_t)build.pieces_count, sizeof *build.pieces);
  build.block = cb_calloc((size_t)at, 1);
  if (!build.pieces || !build.block) s = cb_fail_memory(diag, "a value map", (unsigned long long)at);
  if (!s) s = find_all(&build, fill, user, diag);
  if (!s) s = join_all(&build, at, &map->frame_bytes, diag);
  for (int64_t p = 0; build.pieces && p < build.pieces_count; p++) cb_free(build.pieces[p].bytes);
  cb_free(build.pieces);
  map->owned[0] = build.block;
  map->groups = (const void *)build.block;
  map->frames = build.block ? build.block + at : NULL;
  return s;
}
