// SPDX-License-Identifier: Apache-2.0
/* Environment variables: see environment.h. */
#include "base/environment.h"

#include <stdlib.h>
#include <sys/auxv.h>

const char *cb_environment(const char *name) {
  return secure_getenv(name);
}

int cb_environment_is_foreign(void) {
  return getauxval(AT_SECURE) != 0;
}
