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

void cb_arena_release(struct cb_arena *arena) {
  while (arena->last) {
    struct cb_arena_block *block = arena->last;
    arena->last = block->previous;
    cb_free(block);
  }
  arena->failed = 0;
}
