// SPDX-License-Identifier: Apache-2.0
/* What fork leaves behind. In the child there is one thread, the one that forked. GNU's OpenMP library does not know:
 * it still hands work to the threads that the parent had, and waits for ever. So in that thread parallel regions take
 * one thread between these two calls, whatever the application has set:
 *
 *   const int threads = cb_threads_begin(0);
 *   …                                      parallel regions
 *   cb_threads_end(threads);
 *
 * The functions of the public interface that have parallel regions inside make them. All regions take their number of
 * threads from OpenMP's setting, or from no more than omp_get_max_threads().
 *
 * A fork is noticed when the library was there before it, and where the C library calls handlers (fork, not vfork or
 * clone). */
#ifndef CBGEN_BASE_FORK_H
#define CBGEN_BASE_FORK_H

#include <stdint.h>

/* How many forks lie between this process and the one that loaded the library: what was made under another number is
 * another process's. */
unsigned cb_forks(void);

/* Whether the calling thread forked, and goes on in the child. */
int cb_thread_was_forked(void);

/* In other threads regions take `wanted` ones; 0: as many as the application has set. */
int cb_threads_begin(int wanted);
void cb_threads_end(int before);

/* How many threads so much work is worth, in nonzeros and rows: one for each CB_THREADS_WORTH, at least one, and no
 * more than regions take; nor, unless a number was `asked` for (else 0), than the control group of this process has
 * processors. To wake threads and to wait for all of them takes longer than less work; and wherever something else runs
 * on a core, many times as long, since every region ends with the last of them (a matrix of 619 k nonzeros on 16 busy
 * cores: 130 ms by 16 threads, 2.3 by one, which has 2.1 where nothing else runs, as 16 have 2.0). */
enum { CB_THREADS_WORTH = 1 << 17 };
int cb_threads_worth(int64_t work, int asked);

/* Processors of a control group by its file cpu.max: a quota and its period, both in microseconds. 0: no limit. */
int cb_processors_granted(const char *text);

#endif
