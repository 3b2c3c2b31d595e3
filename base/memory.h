// SPDX-License-Identifier: Apache-2.0
/* Checked allocation. Sizes are given as count × element size and never overflow silently; blocks are freed
 * with cb_free. Every allocation of the library goes through here, so that a test can make the n-th one fail.
 */
#ifndef CBGEN_BASE_MEMORY_H
#define CBGEN_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* `count` elements of `size` bytes, uninitialised (cb_alloc) or zero (cb_calloc). NULL on overflow or when
 * memory is short. A count of 0 gives a valid pointer. */
void *cb_alloc(size_t count, size_t size);
void *cb_calloc(size_t count, size_t size);

/* Changes a block's length and keeps its contents; on failure NULL, and the old block stays valid. */
void *cb_realloc(void *block, size_t count, size_t size);

void cb_free(void *block); /* NULL is accepted */

/* For tests: the `nth` allocation from now on fails (1 = the next), and so do all after it when `sticky`;
 * 0 switches the fault off. Returns how many allocations were made since the previous call. */
uint64_t cb_memory_fail_at(uint64_t nth, int sticky);

#endif
