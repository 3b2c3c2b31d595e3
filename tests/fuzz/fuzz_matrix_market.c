// SPDX-License-Identifier: Apache-2.0
/* Matrix Market text. The first byte picks a banner, so that no input is wasted on finding one. */
#include "fuzz.h"

static const char *const banners[] = {
    "",
    "%%MatrixMarket matrix coordinate real general\n",
    "%%MatrixMarket matrix coordinate pattern symmetric\n",
    "%%MatrixMarket matrix coordinate integer skew-symmetric\n",
    "%%MatrixMarket matrix array real general\n",
    "%%MatrixMarket matrix array real symmetric\n",
    "%%MatrixMarket matrix array real skew-symmetric\n",
    "%%MatrixMarket matrix coordinate real hermitian\n",
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!size) return 0;
  const char *banner = banners[data[0] % (sizeof banners / sizeof *banners)];
  const size_t length = strlen(banner);
  char *text = malloc(length + size);
  if (!text) return 0;
  memcpy(text, banner, length);
  memcpy(text + length, data + 1, size - 1);
  fuzz_read("m.mtx", text, length + size - 1);
  free(text);
  return 0;
}
