// SPDX-License-Identifier: Apache-2.0
/* Loaded before a program (LD_PRELOAD): gives it the locale of the environment, which must have a decimal comma, and
 * the rounding mode that CBGEN_TEST_ROUNDING names by its number. It ends a program that it cannot give both. */
#include <fenv.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *what) {
  fprintf(stderr, "hostile_numerics: %s\n", what);
  abort();
}

/* Programs that it starts are left alone. */
__attribute__((constructor)) static void take_over(void) {
  static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  const char *mode = getenv("CBGEN_TEST_ROUNDING");
  unsetenv("LD_PRELOAD");
  char text[8];
  if (!mode || *mode < '0' || *mode > '3') fail("CBGEN_TEST_ROUNDING is no number from 0 to 3");
  if (!setlocale(LC_ALL, "")) fail("there is no such locale");
  snprintf(text, sizeof text, "%.1f", 0.5);
  if (strcmp(text, "0,5") != 0) fail("the locale has no decimal comma");
  if (fesetround(modes[*mode - '0'])) fail("there is no such rounding mode");
}
