// SPDX-License-Identifier: Apache-2.0
/* What numbers depend on beside the program: the thread's floating-point environment (how results are rounded, what
 * becomes of subnormals, whether an exception traps) and its locale (how a decimal point is written). An application
 * may have set either. All of cbgen runs with the standard ones: to the nearest, no traps, locale "C". Whoever enters
 * it (a function of the public interface, the tool) says so first, by one of
 *
 *   CB_STANDARD_NUMERICS;               of this thread
 *   CB_STANDARD_NUMERICS_OF_ALL;        of OpenMP's threads as well, where work is shared out among them
 *
 * which holds until the block ends; then every thread has again what it had, exception flags included. Entering
 * again inside is harmless.
 */
#ifndef CBGEN_BASE_NUMERICS_H
#define CBGEN_BASE_NUMERICS_H

#include <fenv.h>
#include <locale.h>

/* What a thread had. */
struct cb_numerics {
  fenv_t environment;
  locale_t locale;
  const struct cb_numerics *outer; /* what it had when cbgen was entered before; NULL: was not */
};

void cb_numerics_enter(struct cb_numerics *before);
void cb_numerics_leave(struct cb_numerics *before);
void cb_numerics_enter_all(struct cb_numerics *before);
void cb_numerics_leave_all(struct cb_numerics *before);

/* Gives this thread what it had, for a call of the application's function in between; `ours` keeps the rest. */
void cb_numerics_pause(struct cb_numerics *ours);
void cb_numerics_resume(const struct cb_numerics *ours);

#define CB_STANDARD_NUMERICS                                                       \
  struct cb_numerics callers_numerics __attribute__((cleanup(cb_numerics_leave))); \
  cb_numerics_enter(&callers_numerics)
#define CB_STANDARD_NUMERICS_OF_ALL                                                    \
  struct cb_numerics callers_numerics __attribute__((cleanup(cb_numerics_leave_all))); \
  cb_numerics_enter_all(&callers_numerics)

#endif
