// SPDX-License-Identifier: Apache-2.0
/* Edge lists, and with them all that is told from its first bytes. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_read("edges.txt", data, size);
  return 0;
}
