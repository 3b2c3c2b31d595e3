// SPDX-License-Identifier: Apache-2.0
/* The arena: a list of blocks, each holding one allocation. See arena.h. */
#include "base/arena.h"

#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct cb_arena_block {
  struct cb_arena_block *previous;
  max_align_t bytes[];
};

void *cb_arena_alloc(struct cb_arena *arena, size_t count, size_t size) {
  size_t bytes;
  if (arena->failed) return NULL;
  struct cb_arena_block *block = NULL;
  if (!__builtin_mul_overflow(count, size, &bytes) && !__builtin_add_overflow(bytes, sizeof *block, &bytes))
    block = cb_calloc(bytes, 1);
  if (!block) {
    arena->failed = 1;
    return NULL;
  }
  block->previous = arena->last;
  arena->last = block;
  return block->bytes;
}

void *cb_arena_copy(struct cb_arena *arena, const void *elements, size_t count, size_t size) {
  void *copy = cb_arena_alloc(arena, count, size);
  if (copy && count) memcpy(copy, elements, count * size);
  return copy;
}

/* The newest block, of `bytes` now. */
static void *grow_last(struct cb_arena *arena, size_t bytes) {
  struct cb_arena_block *block = cb_realloc(arena->last, sizeof *block + bytes, 1);
  if (!block) {
    arena->failed = 1;
    return NULL;
  }
  arena->last = block;
  return block->bytes;
}

/* Lists have room for a power of two, 16 at least. */
void *cb_arena_grow(struct cb_arena *arena, void *list, int64_t count, size_t size) {
  enum { LEAST = 16 };
  if (arena->failed) return NULL;
  if (!list) return cb_arena_alloc(arena, LEAST, size);
  if (count < LEAST || (count & (count - 1))) return list;
  if (list == arena->last->bytes) return grow_last(arena, 2 * (size_t)count * size);
  void *larger = cb_arena_alloc(arena, 2 * (size_t)count, size);
  if (larger) memcpy(larger, list, (size_t)count * size);
  return larger;
}

void *cb_arena_append(struct cb_arena *arena, void *list, int64_t *count, size_t size) {
  void **elements = list, *longer = cb_arena_grow(arena, *elements, *count, size);
  if (!longer) return NULL;
  *elements = longer;
  return (char *)longer + (size_t)(*count)++ * size;
}

char *cb_arena_string(struct cb_arena *arena, const char *string) {
  const size_t length = strlen(string) + 1;
  char *copy = cb_arena_alloc(arena, length, 1);
  if (copy) memcpy(copy, string, length);
  return copy;
}

char *cb_arena_format(struct cb_arena *arena, const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  const int length = vsnprintf(NULL, 0, format, args);
  va_end(args);
  char *string = length < 0 ? NULL : cb_arena_alloc(arena, (size_t)length + 1, 1);
  if (string) vsnprintf(string, (size_t)length + 1, format, again);
  va_end(again);
  return string;
}

void cb_arena_join(struct cb_arena *arena, struct cb_arena *from) {
  struct cb_arena_block **oldest = &arena->last;
  while (*oldest) oldest = &(*oldest)->previous;
  *oldest = from->last;
  arena->failed |= from->failed;
  *from = (struct cb_arena){0};
}

void cb_arena_release(struct cb_arena *arena) {
  while (arena->last) {
    struct cb_arena_block *block = arena->last;
    arena->last = block->previous;
    cb_free(block);
  }
  arena->failed = 0;
}
