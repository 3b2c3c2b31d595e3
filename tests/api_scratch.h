// SPDX-License-Identifier: Apache-2.0
/* For tests of what environment variables do to applications: a directory, a cache in it, and the lines of the log. */
#ifndef CBGEN_TESTS_API_SCRATCH_H
#define CBGEN_TESTS_API_SCRATCH_H

#include "tests/api_support.h"
#include "tests/scratch.h"

static char log_text[1 << 16];

static inline void keep_line(void *user, const char *line) {
  (void)user;
  const size_t length = strlen(log_text);
  snprintf(log_text + length, sizeof log_text - length, "%s\n", line);
}

/* Set-up of a group of tests. */
static inline int open_without_calibration(void **state) {
  setenv("CBGEN_CALIBRATION", "", 1);
  return open_fake(state);
}

/* With the directory's cache, which tells the log what it does. */
static inline cbgen_context *logged_context(const char *options) {
  cbgen_context *context;
  assert_int_equal(cbgen_context_create(&context), CBGEN_OK);
  must(context, cbgen_set(context, "cache", place("cache")));
  must(context, cbgen_set_log(context, keep_line, NULL));
  set_all(context, options);
  *log_text = 0;
  return context;
}

/* How many entries the cache has. */
static inline int entries(void) { return entries_in(place("cache")); }

#endif
