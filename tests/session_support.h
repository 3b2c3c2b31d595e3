// SPDX-License-Identifier: Apache-2.0
/* For tests of what a session holds: one on the fake GPU, whose context is current meanwhile. */
#ifndef CBGEN_TESTS_SESSION_SUPPORT_H
#define CBGEN_TESTS_SESSION_SUPPORT_H

#include "runtime/api/session.h"
#include "tests/support.h"

static inline struct cb_session *open_fake_session(void) {
  struct cb_diag diag = {0};
  struct cb_session *session;
  setenv("CBGEN_LIBCUDA", getenv("CBGEN_FAKE_CUDA"), 1);
  assert_ok(cb_session_open(&session, 0, &diag));
  assert_ok(cb_device_enter(session->device, &diag));
  return session;
}

static inline void close_fake_session(struct cb_session *session) {
  cb_device_leave(session->device);
  cb_session_release(session);
}

/* Likewise with an NVRTC. */
static inline struct cb_session *open_compiling_session(void) {
  setenv("CBGEN_NVRTC", getenv("CBGEN_FAKE_CUDA"), 1);
  return open_fake_session();
}

static inline void close_compiling_session(struct cb_session *session) {
  close_fake_session(session);
  unsetenv("CBGEN_LIBCUDA");
  unsetenv("CBGEN_NVRTC");
}

#endif
