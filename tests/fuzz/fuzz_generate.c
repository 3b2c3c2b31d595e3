// SPDX-License-Identifier: Apache-2.0
/* Specifications of shapes. Numbers are cut to three digits, which keeps the matrices small enough to make.
 */
#include "fuzz.h"

#include "frontend/generate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char text[256];
  size_t length = 0;
  int digits = 0;
  for (size_t i = 0; i < size && data[i] && length < sizeof text - 1; i++) {
    const int is_digit = data[i] >= '0' && data[i] <= '9';
    digits = is_digit ? digits + 1 : data[i] == '.' ? 1 : 0;
    if (digits <= 3) text[length++] = (char)data[i];
  }
  text[length] = 0;
  /* These grow with a power of their number: two digits less. */
  const char *growing[] = {"stencil7", "stencil27", "fe3", "rmat", "random_exact", "block", "road"};
  for (size_t i = 0; i < sizeof growing / sizeof *growing; i++)
    if (!strncmp(text, growing[i], strlen(growing[i])))
      for (char *at = text; *at; at++)
        if (at[0] >= '1' && at[0] <= '9' && at[1] >= '0' && at[1] <= '9' && (at == text || at[-1] != '.'))
          *at = '0';
  struct cb_csr csr;
  struct cb_diag diag = {0};
  const enum cb_status s = cb_matrix_generate(&csr, text, &diag);
  if (!s && cb_csr_check(&csr, &diag)) fuzz_fail(text, &diag);
  if (s && (csr.row_ptr || diag.status != s || !*diag.message)) fuzz_fail(text, &diag);
  if (s == CB_ERR_INTERNAL) fuzz_fail(text, &diag);
  cb_csr_release(&csr);
  return 0;
}
