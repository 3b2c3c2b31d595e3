// SPDX-License-Identifier: Apache-2.0
/* One owner for many small blocks: all of them are freed at once. Fails stickily, like cb_text. */
#ifndef CBGEN_BASE_ARENA_H
#define CBGEN_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct cb_arena {
  struct cb_arena_block *last;
  int failed;
};

void *cb_arena_alloc(struct cb_arena *arena, size_t count, size_t size); /* zeroed; NULL once failed */
void *cb_arena_copy(struct cb_arena *arena, const void *elements, size_t count, size_t size);
/* Room for one more element behind the `count` of a list that only this function has made longer, from NULL on: the
 * list, perhaps elsewhere. It doubles, and moves within one block as long as that is the arena's newest. */
void *cb_arena_grow(struct cb_arena *arena, void *list, int64_t count, size_t size);
/* One more element of such a list, not set yet; `list` is where the list is held, and its count grows. NULL once
 * failed. */
void *cb_arena_append(struct cb_arena *arena, void *list, int64_t *count, size_t size);
char *cb_arena_string(struct cb_arena *arena, const char *string);
char *cb_arena_format(struct cb_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* All that `from` owns goes over to `arena`, a failure included. */
void cb_arena_join(struct cb_arena *arena, struct cb_arena *from);
void cb_arena_release(struct cb_arena *arena);

#endif
