// SPDX-License-Identifier: Apache-2.0
/* Allocations that fail, or are counted, wherever they are made: in cbgen, in the libraries below it, in the C library.
 * A test that links failing_malloc.c has its own malloc, calloc, realloc and free in the place of everybody's. */
#ifndef CBGEN_TESTS_FAILING_MALLOC_H
#define CBGEN_TESTS_FAILING_MALLOC_H

/* The `nth` allocation from now on fails (1 = the next); 0: none does. Returns how many were made since the last
 * call. OpenMP's runtime, the dynamic loader and libarchive crash, or end a process, that has no memory for them: they
 * are spared, but not the libraries that libarchive calls. So is the fake CUDA with all that it calls. */
long fail_malloc_at(long nth);

/* The most bytes that were allocated at a time since the last call, beyond what was then. */
long peak_of_malloc(void);

#endif
