// SPDX-License-Identifier: Apache-2.0
/* For tests of what environment variables do to applications: a directory, a cache in it, and the lines of the log. */
#ifndef CBGEN_TESTS_API_SCRATCH_H
#define CBGEN_TESTS_API_SCRATCH_H

#include "tests/api_support.h"
#include "tests/scratch.h"

#include <dirent.h>

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

/* How many entries the cache has. */
static inline int entries(void) {
  int count = 0;
  DIR *files = opendir(place("cache"));
  for (struct dirent *file; files && (file = readdir(files));) count += strstr(file->d_name, ".entry") != NULL;
  if (files) closedir(files);
  return count;
}

#endif
