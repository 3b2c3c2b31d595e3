// SPDX-License-Identifier: Apache-2.0
/* A locale that writes a decimal comma and groups digits by points, in which "I" and "i" are different letters, and
 * threads that round as somebody wants: what applications may have set when they call the library. */
#ifndef CBGEN_TESTS_LOCALE_SUPPORT_H
#define CBGEN_TESTS_LOCALE_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fenv.h>
#include <locale.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMMA_LOCALE "tr_TR.UTF-8"

static const int rounding_modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
static const char *const rounding_names[] = {"to the nearest", "upward", "downward", "toward zero"};
enum { ROUNDING_MODES = 4 };

/* Makes the locale in the test's scratch directory, where setlocale then finds it: none need be installed. */
static inline void make_comma_locale(void) {
  char directory[512], command[2000];
  snprintf(directory, sizeof directory, "%s/locale", getenv("CBGEN_TEST_TMP"));
  snprintf(command, sizeof command,
           "mkdir -p '%s' && { [ -d '%s/" COMMA_LOCALE "' ] || localedef --no-archive -i tr_TR -f UTF-8 '%s/" COMMA_LOCALE
           "'; }", directory, directory, directory);
  if (system(command)) fail_msg("localedef made no locale: it takes the package 'locales'");
  assert_int_equal(setenv("LOCPATH", directory, 1), 0);
}

/* The whole process: with a decimal comma, or with the locale that programs start with. */
static inline void set_comma(int on) {
  char text[8];
  assert_non_null(setlocale(LC_ALL, on ? COMMA_LOCALE : "C"));
  snprintf(text, sizeof text, "%.1f", 0.5);
  assert_string_equal(text, on ? "0,5" : "0.5");
}

/* This thread and all of OpenMP's. */
static inline void set_rounding(int mode) {
#pragma omp parallel
  fesetround(mode);
}

/* Whether all of them still round so. */
static inline int rounds_as(int mode) {
  int others = 0;
#pragma omp parallel reduction(+ : others)
  others += fegetround() != mode;
  return !others;
}

#endif
