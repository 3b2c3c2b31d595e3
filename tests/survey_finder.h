// SPDX-License-Identifier: Apache-2.0
/* What a survey finds its kernels by, and the pinned bytes that a matrix comes to. */
#ifndef CBGEN_TESTS_SURVEY_FINDER_H
#define CBGEN_TESTS_SURVEY_FINDER_H

#include "runtime/api/session.h"
#include "runtime/operator/device_survey.h"

static enum cb_status find_set(void *user, const char *set, const struct cb_kernels **kernels, struct cb_diag *diag) {
  return cb_session_kernels(user, NULL, cb_kernel_set_find(set), kernels, diag);
}

/* With pinned bytes now and then: for nothing, for row pointers alone, or for all of any matrix here. */
static struct cb_kernel_finder finder_of(struct cb_session *session) {
  static unsigned char pinned[1 << 21];
  static const size_t rooms[] = {0, sizeof pinned, 600, 3000, sizeof pinned};
  static int asked;
  const size_t room = rooms[asked++ % 5];
  return (struct cb_kernel_finder){find_set, session, room ? pinned : NULL, room};
}

#endif
