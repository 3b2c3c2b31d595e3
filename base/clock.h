// SPDX-License-Identifier: Apache-2.0
/* Time that passes: for measuring and for deadlines, not for dates. */
#ifndef CBGEN_BASE_CLOCK_H
#define CBGEN_BASE_CLOCK_H

/* Seconds since some fixed moment of this machine; it never goes back. */
double cb_seconds(void);

#endif
