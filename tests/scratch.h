// SPDX-License-Identifier: Apache-2.0
/* A directory of a test's own, and the paths of files in it. */
#ifndef CBGEN_TESTS_SCRATCH_H
#define CBGEN_TESTS_SCRATCH_H

#include <stdio.h>
#include <stdlib.h>

static char scratch[400];

/* Good until three more were asked for. */
static inline const char *place(const char *name) {
  static char paths[4][600];
  static int next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", scratch, name);
  return path;
}

/* Makes it anew, with a directory `inside` ("": none). 0: well. */
static inline int empty_scratch(const char *name, const char *inside) {
  char command[900];
  snprintf(scratch, sizeof scratch, "%s/%s", getenv("CBGEN_TEST_TMP"), name);
  snprintf(command, sizeof command, "rm -rf '%s' && mkdir -p '%s/%s'", scratch, scratch, inside);
  return system(command);
}

#endif
