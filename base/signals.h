// SPDX-License-Identifier: Apache-2.0
/* Signals that a write may raise in the thread that writes: SIGXFSZ (a limit on the size of files) and SIGPIPE (a
 * reader who is gone). Both end a process that does not expect them, and no process expects them of a library. Between
 * hold and release they stay away from the calling thread, and the write fails with EFBIG or EPIPE.
 *
 *   struct cb_held_signals held;
 *   cb_signals_hold(&held);
 *   …                          writes
 *   cb_signals_release(&held); errno stays
 */
#ifndef CBGEN_BASE_SIGNALS_H
#define CBGEN_BASE_SIGNALS_H

#include <signal.h>

struct cb_held_signals {
  sigset_t before;  /* the thread's mask */
  sigset_t pending; /* what waited already: it is not of the writes' making */
};

void cb_signals_hold(struct cb_held_signals *held);
void cb_signals_release(struct cb_held_signals *held);

#endif
