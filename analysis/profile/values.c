// SPDX-License-Identifier: Apache-2.0
/* Values: how many differ, and which narrower types would hold them all. Each thread keeps a small hash set
 * of bit patterns until it overflows; the sets are united at the end. */
#include "analysis/profile/parts.h"

#include "base/real.h"

enum { CHUNK = 4096 }; /* values between two looks at what is decided already */

struct tally {
  struct cb_distinct set;
  int not_f32, not_f16, not_bf16, not_integer;
  int64_t nonfinite, zeros;
};

static int misses_integer(const double *values, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if (!cb_real_is_integer(values[i])) return 1;
  return 0;
}

static void count_special(struct tally *tally, const double *values, int64_t count) {
  int64_t nonfinite = 0, zeros = 0;
  for (int64_t i = 0; i < count; i++) {
    nonfinite += !cb_real_is_finite(values[i]);
    zeros += cb_real_bits(values[i]) << 1 == 0;
  }
  tally->nonfinite += nonfinite;
  tally->zeros += zeros;
}

static void look(struct tally *tally, const double *values, int64_t count) {
  cb_distinct_add(&tally->set, values, count);
  count_special(tally, values, count);
  if (!tally->not_f32) tally->not_f32 = !cb_real_all_fit(values, count, CB_F32);
  tally->not_bf16 |= tally->not_f32;
  tally->not_f16 |= tally->not_f32;
  if (!tally->not_bf16) tally->not_bf16 = !cb_real_all_fit(values, count, CB_BF16);
  if (!tally->not_f16) tally->not_f16 = !cb_real_all_fit(values, count, CB_F16);
  if (!tally->not_integer) tally->not_integer = misses_integer(values, count);
}

static void unite(struct tally *all, const struct tally *one) {
  cb_distinct_unite(&all->set, &one->set);
  all->not_f32 |= one->not_f32;
  all->not_f16 |= one->not_f16;
  all->not_bf16 |= one->not_bf16;
  all->not_integer |= one->not_integer;
  all->nonfinite += one->nonfinite;
  all->zeros += one->zeros;
}

void cb_profile_values(struct cb_profile *profile, const struct cb_csr *csr) {
  const int64_t numbers = cb_csr_numbers(csr); /* of complex values both parts */
  struct tally all = {0};
#pragma omp parallel
  {
    struct tally mine = {0};
#pragma omp for schedule(static)
    for (int64_t first = 0; first < numbers; first += CHUNK)
      look(&mine, csr->values + first, numbers - first < CHUNK ? numbers - first : CHUNK);
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
