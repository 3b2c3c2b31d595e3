// SPDX-License-Identifier: Apache-2.0
/* One owner for many small blocks: all of them are freed at once. Fails stickily, like cb_text. */
#ifndef CBGEN_BASE_ARENA_H
#define CBGEN_BASE_ARENA_H

#include <stddef.h>

struct cb_arena {
  struct cb_arena_block *last;
  int failed;
};

void *cb_arena_alloc(struct cb_arena *arena, size_t count, size_t size); /* zeroed; NULL once failed */
char *cb_arena_string(struct cb_arena *arena, const char *string);
char *cb_arena_format(struct cb_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cb_arena_release(struct cb_arena *arena);

#endif
