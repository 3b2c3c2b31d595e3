// SPDX-License-Identifier: Apache-2.0
/* Holding the signals of writes: see signals.h. */
#include "base/signals.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

static const int numbers[] = {SIGXFSZ, SIGPIPE};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static void set_of_all(sigset_t *set) {
  sigemptyset(set);
  for (int i = 0; i < NUMBERS; i++) sigaddset(set, numbers[i]);
}

void cb_signals_hold(struct cb_held_signals *held) {
  sigset_t all;
  set_of_all(&all);
  sigpending(&held->pending);
  pthread_sigmask(SIG_BLOCK, &all, &held->before);
}

void cb_signals_release(struct cb_held_signals *held) {
  const struct timespec at_once = {0, 0};
  const int error = errno;
  sigset_t raised;
  set_of_all(&raised);
  for (int i = 0; i < NUMBERS; i++)
    if (sigismember(&held->pending, numbers[i]) == 1) sigdelset(&raised, numbers[i]);
  while (sigtimedwait(&raised, NULL, &at_once) > 0 || errno == EINTR) continue;
  pthread_sigmask(SIG_SETMASK, &held->before, NULL);
  errno = error;
}
