// SPDX-License-Identifier: Apache-2.0
/* The rows that are looked at: of a matrix whose columns are remote, row pointers are brought first, for all parts
 * together, then the columns of rows that are not long. See counting.h. */
#include "analysis/choose/counting.h"

#include "base/integers.h"

static int64_t parts_of(const struct cb_choice_profile *profile) { return profile->groups + profile->wide_groups; }

static struct cb_choice_rows part_at(const struct cb_choice_profile *profile, int64_t part) {
  return part < profile->groups ? cb_choice_group(profile, part) : cb_choice_wide(profile, part - profile->groups);
}

/* Places of all rows, by their row pointers, of which each part has one more. Returns how many stretches of nonzeros
 * they make: rows that follow one another make one. */
static int64_t place_rows(struct cb_choice_sample *sample, const struct cb_choice_profile *profile,
                          const int64_t *starts, struct cb_stretch *stretches) {
  int64_t count = 0, at = 0, begin = 0;
  for (int64_t part = 0; part < parts_of(profile); part++) {
    const struct cb_choice_rows rows = part_at(profile, part);
    int joins = 0;
    sample->shift[part] = at - rows.first;
    for (int64_t row = rows.first; row < rows.end; row++, starts++) {
      const int64_t length = starts[1] - starts[0], kept = length > CB_CHOICE_LONG ? 0 : length;
      sample->places[at++] = (struct cb_choice_place){begin, length};
      begin += kept;
      if (kept && !joins) stretches[count++] = (struct cb_stretch){starts[0], 0};
      if (kept) stretches[count - 1].length += kept;
      if (length) joins = kept > 0;
    }
    starts++;
  }
  return count;
}

static int64_t sampled_rows(const struct cb_choice_profile *profile) {
  int64_t rows = 0;
  for (int64_t part = 0; part < parts_of(profile); part++) {
    const struct cb_choice_rows of = part_at(profile, part);
    rows += of.end - of.first;
  }
  return rows;
}

static enum cb_status bring_starts(const struct cb_remote_columns *remote, const struct cb_choice_profile *profile,
                                   int64_t *starts, struct cb_diag *diag) {
  const int64_t parts = parts_of(profile);
  struct cb_stretch *stretches = cb_alloc((size_t)parts, sizeof *stretches);
  if (!stretches) return cb_fail_memory(diag, "a sample", (uint64_t)parts * sizeof *stretches);
  for (int64_t part = 0; part < parts; part++) {
    const struct cb_choice_rows rows = part_at(profile, part);
    stretches[part] = (struct cb_stretch){rows.first, rows.end - rows.first + 1};
  }
  const enum cb_status s = remote->starts(remote->user, stretches, parts, starts, diag);
  cb_free(stretches);
  return s;
}

static enum cb_status bring_columns(struct cb_choice_sample *sample, const struct cb_choice_profile *profile,
                                    const int64_t *starts, int64_t rows, struct cb_diag *diag) {
  const struct cb_remote_columns *remote = sample->csr->remote;
  struct cb_stretch *stretches = cb_alloc((size_t)rows + 1, sizeof *stretches);
  if (!stretches) return cb_fail_memory(diag, "a sample", (uint64_t)rows * sizeof *stretches);
  const int64_t count = place_rows(sample, profile, starts, stretches);
  int64_t nonzeros = 0;
  for (int64_t i = 0; i < count; i++) nonzeros += stretches[i].length;
  sample->columns = sample->brought = cb_alloc((size_t)nonzeros + 1, sizeof *sample->brought);
  enum cb_status s = sample->brought ? CB_OK : cb_fail_memory(diag, "a sample", (uint64_t)nonzeros * 4);
  if (!s && count) s = remote->fetch(remote->user, stretches, count, sample->brought, diag);
  cb_free(stretches);
  return s;
}

enum cb_status cb_choice_sample_open(struct cb_choice_sample *sample, const struct cb_choice_profile *profile,
                                     const struct cb_csr *csr, struct cb_diag *diag) {
  const struct cb_csr *here = cb_choice_here(csr);
  *sample = (struct cb_choice_sample){.csr = here, .columns = here->col_idx};
  if (!here->remote || !parts_of(profile)) return CB_OK;
  const int64_t rows = sampled_rows(profile), numbers = rows + parts_of(profile);
  int64_t *starts = cb_alloc((size_t)numbers, sizeof *starts);
  sample->places = cb_alloc((size_t)rows + 1, sizeof *sample->places);
  sample->shift = cb_alloc((size_t)parts_of(profile), sizeof *sample->shift);
  enum cb_status s = starts && sample->places && sample->shift
                         ? CB_OK
                         : cb_fail_memory(diag, "a sample", (uint64_t)numbers * 3 * sizeof *starts);
  if (!s) s = bring_starts(csr->remote, profile, starts, diag);
  if (!s) s = bring_columns(sample, profile, starts, rows, diag);
  cb_free(starts);
  return s;
}

void cb_choice_sample_close(struct cb_choice_sample *sample) {
  cb_free(sample->places);
  cb_free(sample->shift);
  cb_free(sample->brought);
  *sample = (struct cb_choice_sample){0};
}
