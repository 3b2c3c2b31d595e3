// SPDX-License-Identifier: Apache-2.0
/* Values: how many differ, and which narrower types would hold them all. Each thread keeps a small hash set
 * of bit patterns until it overflows; the sets are united at the end. */
#include "analysis/profile_parts.h"

#include <string.h>

enum {
  CHUNK = 4096, /* values between two looks at what is decided already */
  SLOTS = 1024, /* of the set: at most a quarter is in use */
  TOO_MANY = CB_PROFILE_DISTINCT + 1
};

struct set {
  int count; /* TOO_MANY: more than CB_PROFILE_DISTINCT, and no more are taken */
  uint64_t bits[SLOTS];
  uint8_t used[SLOTS];
};

struct tally {
  struct set set;
  int not_f32, not_f16, not_bf16, not_integer;
  int64_t nonfinite, zeros;
};

static const uint64_t exponent = UINT64_C(0x7ff) << 52; /* all ones: infinite or NaN */

static uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static uint32_t float_bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static void add_to_set(struct set *set, uint64_t bits) {
  unsigned slot = (unsigned)((bits * 0x9e3779b97f4a7c15) >> 54);
  while (set->used[slot] && set->bits[slot] != bits) slot = (slot + 1) % SLOTS;
  if (set->used[slot]) return;
  set->used[slot] = 1;
  set->bits[slot] = bits;
  set->count++;
}

static void count_distinct(struct set *set, const double *values, int64_t count) {
  uint64_t previous = ~bits_of(values[0]);
  for (int64_t i = 0; i < count && set->count < TOO_MANY; i++) {
    const uint64_t bits = bits_of(values[i]);
    if (bits != previous) add_to_set(set, bits);
    previous = bits;
  }
}

static int misses_f32(const double *values, int64_t count) {
  uint64_t lost = 0;
  for (int64_t i = 0; i < count; i++) lost |= bits_of(values[i]) ^ bits_of((double)(float)values[i]);
  return lost != 0;
}

/* bfloat16 is the upper half of a float. Called when all values fit float. */
static int misses_bf16(const double *values, int64_t count) {
  uint32_t lost = 0;
  for (int64_t i = 0; i < count; i++) lost |= float_bits_of((float)values[i]) & 0xffff;
  return lost != 0;
}

/* Half has 11 significant bits, so 42 of a double's 52 are zero; it ends at 65504, and its subnormals are
 * multiples of 2^-24. NaN payloads and infinity need the 42 bits only. Called when all values fit float. */
static int fits_f16(double value) {
  if (bits_of(value) & ((UINT64_C(1) << 42) - 1)) return 0;
  if ((bits_of(value) & exponent) == exponent) return 1;
  return value >= -65504 && value <= 65504 && (double)(int64_t)(value * 0x1p24) == value * 0x1p24;
}

static int misses_f16(const double *values, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if (!fits_f16(values[i])) return 1;
  return 0;
}

static int is_integer(double value) {
  if (value >= -0x1p52 && value <= 0x1p52) return (double)(int64_t)value == value;
  return (bits_of(value) & exponent) != exponent; /* larger ones have no bits for fractions */
}

static int misses_integer(const double *values, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if (!is_integer(values[i])) return 1;
  return 0;
}

static void count_special(struct tally *tally, const double *values, int64_t count) {
  int64_t nonfinite = 0, zeros = 0;
  for (int64_t i = 0; i < count; i++) {
    nonfinite += (bits_of(values[i]) & exponent) == exponent;
    zeros += bits_of(values[i]) << 1 == 0;
  }
  tally->nonfinite += nonfinite;
  tally->zeros += zeros;
}

static void look(struct tally *tally, const double *values, int64_t count) {
  count_distinct(&tally->set, values, count);
  count_special(tally, values, count);
  if (!tally->not_f32) tally->not_f32 = misses_f32(values, count);
  tally->not_bf16 |= tally->not_f32;
  tally->not_f16 |= tally->not_f32;
  if (!tally->not_bf16) tally->not_bf16 = misses_bf16(values, count);
  if (!tally->not_f16) tally->not_f16 = misses_f16(values, count);
  if (!tally->not_integer) tally->not_integer = misses_integer(values, count);
}

static void unite(struct tally *all, const struct tally *one) {
  for (int slot = 0; slot < SLOTS && all->set.count < TOO_MANY; slot++)
    if (one->set.used[slot]) add_to_set(&all->set, one->set.bits[slot]);
  all->not_f32 |= one->not_f32;
  all->not_f16 |= one->not_f16;
  all->not_bf16 |= one->not_bf16;
  all->not_integer |= one->not_integer;
  all->nonfinite += one->nonfinite;
  all->zeros += one->zeros;
}

void cb_profile_values(struct cb_profile *profile, const struct cb_csr *csr) {
  struct tally all = {0};
#pragma omp parallel
  {
    struct tally mine = {0};
#pragma omp for schedule(static)
    for (int64_t first = 0; first < csr->nnz; first += CHUNK)
      look(&mine, csr->values + first, csr->nnz - first < CHUNK ? csr->nnz - first : CHUNK);
#pragma omp critical(cb_profile_values)
    unite(&all, &mine);
  }
  profile->values = (struct cb_profile_values){.distinct = all.set.count,
                                               .fits_f32 = !all.not_f32,
                                               .fits_f16 = !all.not_f16,
                                               .fits_bf16 = !all.not_bf16,
                                               .integers = !all.not_integer,
                                               .nonfinite = all.nonfinite,
                                               .zeros = all.zeros};
}
