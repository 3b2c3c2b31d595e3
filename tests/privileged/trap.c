// SPDX-License-Identifier: Apache-2.0
/* A library that says that it was loaded: what an attacker's would say as root. */
#include <unistd.h>

__attribute__((constructor)) static void say(void) {
  static const char line[] = "loaded the trap\n";
  if (write(1, line, sizeof line - 1) < 0) _exit(1);
}
