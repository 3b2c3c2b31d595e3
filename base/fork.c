// SPDX-License-Identifier: Apache-2.0
/* Noticing forks: see fork.h. */
#include "base/fork.h"

#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_uint forks;
static _Thread_local int forked;

static void in_child(void) {
  atomic_fetch_add(&forks, 1);
  forked = 1;
}

/* As soon as the library is loaded: what the application does with OpenMP before its first call counts as well. */
__attribute__((constructor)) static void watch(void) {
  pthread_atfork(NULL, NULL, in_child);
}

unsigned cb_forks(void) {
  return atomic_load_explicit(&forks, memory_order_relaxed);
}

int cb_thread_was_forked(void) {
  return forked;
}

static int take(int threads) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(threads);
  return before;
}

int cb_threads_begin(int wanted) {
  return forked ? take(1) : wanted ? take(wanted) : 0;
}

void cb_threads_end(int before) {
  if (before) omp_set_num_threads(before);
}
