// SPDX-License-Identifier: Apache-2.0
/* Numbers against strtod, bit by bit. Fortran's exponents, which strtod does not know, are turned into its
 * own. */
#include "fuzz.h"

#include "frontend/number.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *text = malloc(size + 2), *end;
  if (!text) return 0;
  size_t length = 0;
  for (size_t i = 0; i < size && data[i] > ' ' && data[i] < 127 && data[i] != ','; i++)
    text[length++] = (char)data[i];
  text[length] = '\n';
  text[length + 1] = 0;
  double value = 0;
  const char *after = cb_parse_double(text, text + length + 1, &value);
  for (size_t i = 0; i < length; i++)
    if (strchr("dDqQ", text[i]) && strncasecmp(text, "0x", 2) && strncasecmp(text + 1, "0x", 2))
      text[i] = 'e';
  const double expected = strtod(text, &end);
  const int fortran = after && after > end && (*end == '+' || *end == '-'); /* "1.5-300" */
  const int both_nan = value != value && expected != expected;
  const int longer = length > 120 && after != end; /* a long "nan(...)" */
  if (!fortran && !longer && (after ? after : text) != end) fuzz_fail("another end", &(struct cb_diag){0});
  if (!fortran && !longer && after && !both_nan && memcmp(&value, &expected, sizeof value))
    fuzz_fail("another value", &(struct cb_diag){0});
  free(text);
  return 0;
}
