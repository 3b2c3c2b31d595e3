// SPDX-License-Identifier: Apache-2.0
/* What a survey finds its kernels by, and the pinned bytes that a matrix comes to. */
#ifndef CBGEN_TESTS_SURVEY_FINDER_H
#define CBGEN_TESTS_SURVEY_FINDER_H

#include "runtime/api/session.h"
#include "runtime/operator/device_survey.h"
#include "tests/support.h"

static inline enum cb_status find_set(void *user, const char *set, const struct cb_kernels **kernels,
                                      struct cb_diag *diag) {
  return cb_session_kernels(user, NULL, cb_kernel_set_find(set), kernels, diag);
}

/* Of a matrix that hashing brings to the host, if it does. */
static inline struct cb_brought brought_of(struct cb_session *session, const struct cb_view *view) {
  struct cb_brought brought = {0};
  struct cb_diag diag = {0};
  struct cb_hasher *hasher;
  struct cb_hash hash;
  if (!view->on_device) return brought;
  assert_int_equal(cb_session_hasher(session, NULL, &hasher, &diag), CB_OK);
  assert_int_equal(cb_hasher_run(hasher, view, &hash, &diag), CB_OK);
  cb_hasher_brought(hasher, view, &brought);
  return brought;
}

/* With pinned bytes now and then: for nothing, for row pointers alone, or for all of any matrix here; and every other
 * time with what hashing brings. */
static inline struct cb_kernel_finder finder_of(struct cb_session *session, const struct cb_view *view) {
  static unsigned char pinned[1 << 21];
  static const size_t rooms[] = {0, sizeof pinned, 600, 3000, sizeof pinned};
  static int asked;
  const size_t room = rooms[asked++ % 5];
  struct cb_kernel_finder finder = {find_set, session, room ? pinned : NULL, room, {0}};
  if (asked % 2) finder.brought = brought_of(session, view);
  return finder;
}

#endif
