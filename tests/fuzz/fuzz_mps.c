// SPDX-License-Identifier: Apache-2.0
/* Linear programs in MPS. */
#include "fuzz.h"

#include "frontend/mps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct cb_linear linear;
  struct cb_diag diag = {0};
  const enum cb_status s = cb_linear_read_bytes(&linear, "a.mps", (const char *)data, size, &diag);
  if (!s && cb_csr_check(&linear.csr, &diag)) fuzz_fail("not canonical", &diag);
  if (s && (linear.text || linear.csr.row_ptr || diag.status != s)) fuzz_fail("failed, but left something behind", &diag);
  if (s && s != CB_ERR_MEMORY && strncmp(diag.message, "a.mps", 5)) fuzz_fail("no file name", &diag);
  if (s == CB_ERR_INTERNAL || s == CB_ERR_IO) fuzz_fail("wrong status", &diag);
  cb_linear_release(&linear);
  return 0;
}
