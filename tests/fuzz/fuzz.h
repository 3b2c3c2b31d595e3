// SPDX-License-Identifier: Apache-2.0
/* What the fuzz targets share: reading bytes under a name, and what must hold whatever they are. */
#ifndef CBGEN_TESTS_FUZZ_H
#define CBGEN_TESTS_FUZZ_H

#include "frontend/read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void fuzz_fail(const char *what, const struct cb_diag *diag) {
  fprintf(stderr, "%s: %s\n", what, diag->message);
  abort();
}

/* A success gives a canonical matrix, a failure a status, a message that names the file, and nothing else. */
static inline void fuzz_read(const char *name, const void *bytes, size_t length) {
  struct cb_csr csr;
  struct cb_diag diag = {0};
  const enum cb_status s = cb_matrix_read_bytes(&csr, name, bytes, length, &diag);
  if (!s && cb_csr_check(&csr, &diag)) fuzz_fail("not canonical", &diag);
  if (s && (csr.row_ptr || diag.status != s)) fuzz_fail("failed, but left something behind", &diag);
  if (s && s != CB_ERR_MEMORY && strncmp(diag.message, name, strlen(name))) fuzz_fail("no file name", &diag);
  if (s == CB_ERR_INTERNAL || s == CB_ERR_IO) fuzz_fail("wrong status", &diag);
  cb_csr_release(&csr);
}

#endif
