// SPDX-License-Identifier: Apache-2.0
/* Doubles in two parts: see split.h. */
#include "base/split.h"

#include "base/real.h"

#include <float.h>
#include <math.h>
#include <string.h>

static float head_of(double value) { return cb_real_to_float(value); }

int cb_split_holds(double value) {
  if (value == 0 || !cb_real_is_finite(value)) return 1;
  const float size = fabsf(head_of(value));
  return size >= FLT_MIN && size <= FLT_MAX;
}

struct cb_split_value cb_split_of(double value) {
  if (value != value || !cb_split_holds(value)) return (struct cb_split_value){NAN, 0};
  const float head = head_of(value);
  return (struct cb_split_value){head, (int32_t)(int64_t)(cb_real_bits(value) - cb_real_bits((double)head))};
}

double cb_split_join(struct cb_split_value parts) {
  const uint64_t bits = cb_real_bits((double)parts.head) + (uint64_t)(int64_t)parts.rest;
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

double cb_split_get(const void *array, int64_t n, int64_t i) {
  struct cb_split_value parts;
  memcpy(&parts.head, (const char *)array + i * 4, sizeof parts.head);
  memcpy(&parts.rest, (const char *)array + (n + i) * 4, sizeof parts.rest);
  return cb_split_join(parts);
}

void cb_split_set(void *array, int64_t n, int64_t i, double value) {
  const struct cb_split_value parts = cb_split_of(value);
  memcpy((char *)array + i * 4, &parts.head, sizeof parts.head);
  memcpy((char *)array + (n + i) * 4, &parts.rest, sizeof parts.rest);
}
