// SPDX-License-Identifier: Apache-2.0
/* Driver, NVRTC and GPU with several holders: see session.h. */
#include "runtime/session.h"

#include "base/memory.h"

enum cb_status cb_session_open(struct cb_session **out, int ordinal, struct cb_diag *diag) {
  struct cb_session *session = cb_calloc(1, sizeof *session);
  *out = NULL;
  if (!session) return cb_fail_memory(diag, "a session", sizeof *session);
  atomic_init(&session->holders, 1);
  enum cb_status s = cb_driver_open(&session->driver, NULL, diag);
  if (!s)
    s = cb_device_open(&session->device, session->driver, ordinal == CB_DEVICE_CURRENT ? 0 : ordinal, diag);
  if (s)
    cb_session_release(session);
  else
    *out = session;
  return s;
}

struct cb_session *cb_session_hold(struct cb_session *session) {
  atomic_fetch_add(&session->holders, 1);
  return session;
}

void cb_session_release(struct cb_session *session) {
  if (!session || atomic_fetch_sub(&session->holders, 1) != 1) return;
  cb_nvrtc_close(session->nvrtc);
  cb_device_close(session->device);
  cb_driver_close(session->driver);
  cb_free(session);
}

enum cb_status cb_session_nvrtc(struct cb_session *session, const struct cb_nvrtc **nvrtc, struct cb_diag *diag) {
  enum cb_status s = CB_OK;
  if (!session->nvrtc) s = cb_nvrtc_open(&session->nvrtc, NULL, diag);
  *nvrtc = session->nvrtc;
  return s;
}
