// SPDX-License-Identifier: Apache-2.0
/* Noticing forks: see fork.h. */
#include "base/fork.h"

#include <fcntl.h>
#include <limits.h>
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

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

/* ---- how many */

int cb_processors_granted(const char *text) {
  char *behind = NULL;
  const long long quota = strtoll(text, &behind, 10); /* "max": no limit */
  const long long period = behind == text ? 0 : strtoll(behind, NULL, 10);
  if (quota <= 0 || period <= 0) return 0;
  const long long processors = (quota - 1) / period + 1;
  return processors > INT_MAX ? INT_MAX : (int)processors;
}

/* Of the control group at the root of what this process sees, which is a container's. */
static int granted = INT_MAX;
static void look(void) {
  char text[64] = "";
  const int file = open("/sys/fs/cgroup/cpu.max", O_RDONLY | O_CLOEXEC);
  const ssize_t length = file < 0 ? 0 : read(file, text, sizeof text - 1);
  const int processors = length > 0 ? cb_processors_granted(text) : 0;
  if (file >= 0) close(file);
  if (processors) granted = processors;
}

int cb_threads_worth(int64_t work, int asked) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  const int64_t worth = work / CB_THREADS_WORTH;
  int most = omp_get_max_threads();
  if (worth < 2) return 1;
  if (!asked) pthread_once(&once, look);
  if (!asked && most > granted) most = granted;
  return worth < most ? (int)worth : most;
}
