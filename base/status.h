// SPDX-License-Identifier: Apache-2.0
/* How every stage reports failure: a status code to branch on, and one message for a person.
 *
 * A function that can fail returns `enum cb_status` (0 is success) and takes a `struct cb_diag *` as its last
 * parameter, in which it leaves the message. Messages follow one grammar: lower case, quoted subject, what is
 * wrong and what would help, no full stop. Nothing below tool/ prints or exits.
 */
#ifndef CBGEN_BASE_STATUS_H
#define CBGEN_BASE_STATUS_H

enum cb_status {
  CB_OK = 0,
  CB_ERR_ARGUMENT,    /* the caller asked for something that has no meaning (an option out of range) */
  CB_ERR_FORMAT,      /* the input's bytes are not what its format says */
  CB_ERR_UNSUPPORTED, /* meaningful, but not done by this version (complex values) */
  CB_ERR_LIMIT,       /* too large for the types it would have to fit: narrowing is refused */
  CB_ERR_MEMORY,      /* an allocation failed */
  CB_ERR_IO,          /* a file could not be read or written */
  CB_ERR_MISSING,     /* something the machine lacks: a driver, NVRTC, a host compiler, a GPU */
  CB_ERR_COMPILE,     /* the generated text did not compile */
  CB_ERR_DEVICE,      /* a CUDA call failed */
  CB_ERR_WRONG,       /* a check found a wrong result */
  CB_ERR_INTERNAL,    /* a broken invariant of cbgen itself */
  CB_STATUS_COUNT
};

/* The last message. Zero-initialise it; it owns nothing. NULL is accepted wherever a diag is taken. */
struct cb_diag {
  enum cb_status status;
  char message[1024];
};

/* Records a message (printf style) and returns `status`, so that a failure is one line:
 *   return cb_fail(diag, CB_ERR_FORMAT, "%s:%ld: row %ld exceeds %ld", path, line, row, rows);
 * A message that does not fit is cut; the status never is. */
enum cb_status cb_fail(struct cb_diag *diag, enum cb_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "out of memory for 'WHAT'", with the size that was asked for. */
enum cb_status cb_fail_memory(struct cb_diag *diag, const char *what, unsigned long long bytes);

/* What a failed system call stands for, by its errno: CB_ERR_MEMORY or CB_ERR_IO. */
enum cb_status cb_errno_status(int error);

/* A short stable name: "format", "memory", … Never NULL. */
const char *cb_status_name(enum cb_status status);

#endif
