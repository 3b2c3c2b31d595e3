// SPDX-License-Identifier: Apache-2.0
/* Numbers in text: the inner loops of all text readers. All functions read on until a byte that is no part of
 * a number, so the text must hold such a byte (a newline, say) before it ends. No locale plays a part. */
#ifndef CBGEN_FRONTEND_NUMBER_H
#define CBGEN_FRONTEND_NUMBER_H

#include "base/real.h"

#include <stdint.h>

/* Parses a floating-point number as strtod does in the C locale, correctly rounded: decimal or hexadecimal,
 * "inf", "infinity", "nan", "nan(…)". In addition 'd', 'D', 'q' and 'Q' start an exponent, and so does a sign
 * right after a mantissa with a point ("1.5-300"), as Fortran writes them. Returns the first byte after the
 * number, or NULL if there is none. `limit` is the end of readable memory. A number beyond the range of double gives
 * an infinity, as "inf" does: cb_overflows tells them apart. */
const char *cb_parse_double(const char *text, const char *limit, double *value);

/* Whether the number at `text`, read as `value`, is finite and beyond the range of double. */
static inline int cb_overflows(const char *text, double value) {
  if (cb_real_is_finite(value)) return 0;
  text += *text == '-' || *text == '+';
  return *text == '.' || (*text >= '0' && *text <= '9');
}
#define CB_OVERFLOW_ADVICE "is beyond the range of double; scale the matrix, or write 'inf'"

/* Parses an unsigned decimal integer, one '+' accepted; INT64_MAX stands for anything larger. Returns the
 * first byte after it, or `text` itself if there is no number. */
static inline const char *cb_parse_index(const char *text, int64_t *value) {
  const char *next = text + (*text == '+'), *digits = next;
  uint64_t number = 0;
  for (unsigned digit; (digit = (unsigned char)*next - (unsigned)'0') < 10; next++)
    number = number * 10 + digit;
  if (next - digits > 18) { /* rare: leading zeros, or too large for the loop above */
    number = 0;
    for (const char *at = digits; at < next; at++) {
      const uint64_t more = (uint64_t)(*at - '0');
      number = number > (INT64_MAX - more) / 10 ? INT64_MAX : number * 10 + more;
    }
  }
  *value = (int64_t)number;
  return next == digits ? text : next;
}

#endif
