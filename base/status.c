// SPDX-License-Identifier: Apache-2.0
/* Status codes and messages: see status.h. */
#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

enum cb_status cb_fail(struct cb_diag *diag, enum cb_status status, const char *format, ...) {
  if (!diag) return status;
  va_list args;
  va_start(args, format);
  vsnprintf(diag->message, sizeof diag->message, format, args);
  va_end(args);
  diag->status = status;
  return status;
}

enum cb_status cb_fail_memory(struct cb_diag *diag, const char *what, unsigned long long bytes) {
  return cb_fail(diag, CB_ERR_MEMORY, "out of memory for '%s' (%llu bytes)", what, bytes);
}

enum cb_status cb_errno_status(int error) {
  return error == ENOMEM ? CB_ERR_MEMORY : CB_ERR_IO;
}

const char *cb_status_name(enum cb_status status) {
  static const char *const names[CB_STATUS_COUNT] = {
      [CB_OK] = "ok",
      [CB_ERR_ARGUMENT] = "argument",
      [CB_ERR_FORMAT] = "format",
      [CB_ERR_UNSUPPORTED] = "unsupported",
      [CB_ERR_LIMIT] = "limit",
      [CB_ERR_MEMORY] = "memory",
      [CB_ERR_IO] = "io",
      [CB_ERR_MISSING] = "missing",
      [CB_ERR_COMPILE] = "compile",
      [CB_ERR_DEVICE] = "device",
      [CB_ERR_WRONG] = "wrong",
      [CB_ERR_INTERNAL] = "internal",
  };
  return (unsigned)status < CB_STATUS_COUNT ? names[status] : "unknown";
}
