// SPDX-License-Identifier: Apache-2.0
/* Whether something large fits into the machine's memory. Linux promises more than it has, so that an allocation tells
 * nothing: it succeeds, and the process is killed when it fills what it got. */
#ifndef CBGEN_BASE_AVAILABLE_H
#define CBGEN_BASE_AVAILABLE_H

#include "base/status.h"

#include <stdint.h>

/* CB_ERR_MEMORY, before anything is allocated, when `bytes` are more than the system says are available, or than are
 * left of what a control group (of a container) may have. `what` stands before "takes … MB". */
enum cb_status cb_available_check(uint64_t bytes, const char *what, struct cb_diag *diag);

/* For tests: no more than so many bytes are available; 0: as many as there are. */
void cb_available_limit(uint64_t bytes);

#endif
