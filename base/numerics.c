// SPDX-License-Identifier: Apache-2.0
/* Standard numerics for threads, and back: see numerics.h. */
#include "base/numerics.h"

#include "base/fork.h"

#include <omp.h>

/* Of this thread when it entered last; NULL: it is not inside. */
static _Thread_local const struct cb_numerics *entered;

/* Of one of OpenMP's threads, which have no block of their own to keep it in. */
static _Thread_local struct {
  int depth; /* how often it was entered; the first time counts */
  struct cb_numerics before;
} worker;

static void save(struct cb_numerics *numerics) {
  fegetenv(&numerics->environment);
  numerics->locale = uselocale((locale_t)0);
}

static void load(const struct cb_numerics *numerics) {
  fesetenv(&numerics->environment);
  uselocale(numerics->locale);
}

/* The C library has the locale "C" ready: asking for it allocates nothing. */
static void set_standard(void) {
  fesetenv(FE_DFL_ENV);
  uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

void cb_numerics_enter(struct cb_numerics *before) {
  save(before);
  before->outer = entered;
  entered = before;
  set_standard();
}

void cb_numerics_leave(struct cb_numerics *before) {
  entered = before->outer;
  load(before);
}

/* A forked child has none, and must not ask OpenMP for them. */
static int has_workers(void) {
  return omp_get_max_threads() > 1 && !cb_thread_was_forked();
}

/* OpenMP keeps its threads, and starts more with what the thread has that needs them. So they are entered first: a
 * thread that starts here still gets what the application has, to be given back. */
void cb_numerics_enter_all(struct cb_numerics *before) {
  if (has_workers()) {
#pragma omp parallel
    if (omp_get_thread_num() && !worker.depth++) {
      save(&worker.before);
      set_standard();
    }
  }
  cb_numerics_enter(before);
}

/* A thread that started in between never had anything but the standard: it gets what the caller has. */
void cb_numerics_leave_all(struct cb_numerics *before) {
  cb_numerics_leave(before);
  if (!has_workers()) return;
#pragma omp parallel
  if (omp_get_thread_num()) {
    if (!worker.depth)
      load(before);
    else if (!--worker.depth)
      load(&worker.before);
  }
}

void cb_numerics_pause(struct cb_numerics *ours) {
  save(ours);
  if (entered) load(entered);
}

void cb_numerics_resume(const struct cb_numerics *ours) {
  load(ours);
}
