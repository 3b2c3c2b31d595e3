// SPDX-License-Identifier: Apache-2.0
/* Environment variables, and whether they may be believed. In a process that has more rights than whoever started it
 * (set-user-ID, set-group-ID, file capabilities) the environment is the caller's to choose: there every variable counts
 * as not set. All of cbgen reads the environment here. */
#ifndef CBGEN_BASE_ENVIRONMENT_H
#define CBGEN_BASE_ENVIRONMENT_H

/* The value, "" included; NULL when it is not set or not to be believed. */
const char *cb_environment(const char *name);

/* Whether this process has more rights than whoever started it. */
int cb_environment_is_foreign(void);

#endif
