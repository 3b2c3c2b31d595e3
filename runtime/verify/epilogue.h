// SPDX-License-Identifier: Apache-2.0
/* Proving an epilogue right without a GPU: the same plan with and without it, executed with the same x; what the
 * statements make of the plain product's rows on the host is compared with what the kernel made, bit for bit, and so
 * are results, which the host joins in the kernel's order. That the plain product is right is cb_verify's part. */
#ifndef CBGEN_RUNTIME_VERIFY_EPILOGUE_H
#define CBGEN_RUNTIME_VERIFY_EPILOGUE_H

#include "runtime/verify/verify.h"

struct cb_epilogue_report {
  int64_t rows;          /* compared, in each vector */
  int vectors, results;  /* that are written */
  char message[600];     /* the first difference; "" when there is none */
};

/* `plain` is planned for form ax and commit once, `with` for the same and the epilogue. CB_ERR_WRONG with the message,
 * or as cb_verify. */
enum cb_status cb_verify_epilogue(const struct cb_verify_case *plain, const struct cb_verify_case *with,
                                  const struct cb_verify_options *options, struct cb_epilogue_report *report,
                                  struct cb_diag *diag);

#endif
