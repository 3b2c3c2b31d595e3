// SPDX-License-Identifier: Apache-2.0
/* Tests that cannot do their work on this machine: they say why, and the program's exit code tells ctest, whose summary
 * then names it as "Skipped"; scripts/test lists the reasons. cmocka's skip() alone would pass for success. */
#ifndef CBGEN_TESTS_SKIPS_H
#define CBGEN_TESTS_SKIPS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { SKIPPED_EXIT = 77 }; /* SKIP_RETURN_CODE in tests/CMakeLists.txt */

static int skips_count;

/* Leaves the running test here. `reason` says what is missing, without a line end. */
static inline void skip_because(const char *reason) {
  print_message("skipped: %s\n", reason);
  skips_count++;
  skip();
}

/* What main returns, from what cmocka_run_group_tests gave: failures come before skips. */
static inline int exit_code_of(int failures) {
  return failures ? 1 : skips_count ? SKIPPED_EXIT : 0;
}

#endif
