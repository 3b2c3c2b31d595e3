// SPDX-License-Identifier: Apache-2.0
/* Status codes and messages: see status.h. */
#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The length of the printable UTF-8 character at `text`; 0 where there is none: a control character, of either set, or
 * no UTF-8. */
static size_t printable_length(const unsigned char *text) {
  const unsigned char first = text[0];
  if (first < 0x80) return first >= ' ' && first != 0x7f;
  const size_t length = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  for (size_t i = 1; i < length; i++)
    if ((text[i] & 0xc0) != 0x80) return 0;
  return first == 0xc2 && text[1] < 0xa0 ? 0 : length; /* U+0080 to U+009F */
}

void cb_escape(char *to, size_t size, const char *from, const char *kept) {
  const unsigned char *next = (const unsigned char *)from;
  size_t used = 0;
  while (*next) {
    char escape[8];
    size_t length = strchr(kept, *next) ? 1 : printable_length(next);
    const char *piece = (const char *)next;
    next += length ? length : 1;
    if (!length) {
      length = (size_t)snprintf(escape, sizeof escape, "\\x%02x", next[-1]);
      piece = escape;
    }
    if (used + length >= size) break;
    memcpy(to + used, piece, length);
    used += length;
  }
  to[used] = 0;
}

enum cb_status cb_fail(struct cb_diag *diag, enum cb_status status, const char *format, ...) {
  char message[sizeof diag->message];
  if (!diag) return status;
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  cb_escape(diag->message, sizeof diag->message, message, "");
  diag->status = status;
  return status;
}

enum cb_status cb_fail_lines(struct cb_diag *diag, enum cb_status status, const char *lines) {
  char message[sizeof diag->message];
  if (!diag) return status;
  snprintf(message, sizeof message, "%s", lines);
  cb_escape(diag->message, sizeof diag->message, message, "\n\t");
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
