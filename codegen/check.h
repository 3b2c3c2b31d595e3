// SPDX-License-Identifier: Apache-2.0
/* What may stand in generated device text: only names that the host emulation executes, too. */
#ifndef CBGEN_CODEGEN_CHECK_H
#define CBGEN_CODEGEN_CHECK_H

#include "base/status.h"

/* Fails with CB_ERR_INTERNAL on an intrinsic that runtime/verify/emulation/prelude.h does not define, on inline
 * assembly, and on CUDA's positions other than threadIdx.x and blockIdx.x. Comments are not looked at. */
enum cb_status cb_check_intrinsics(const char *text, struct cb_diag *diag);

#endif
