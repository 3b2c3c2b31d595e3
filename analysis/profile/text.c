// SPDX-License-Identifier: Apache-2.0
/* The profile for a person. Each section is a heading in the first column and lines aligned beside it;
 * histograms have one line per bin: range, count, share, bar. */
#include "analysis/profile/profile.h"

#include <stdio.h>

enum {
  BAR = 22,            /* characters of a full bar */
  MOST_ROW_LINES = 14, /* of the row histogram: longer ones end in an open bin */
  MOST_DIAGONAL_LINES = 8
};

struct words {
  char text[32];
};

static struct words percent(int64_t part, int64_t whole) {
  const double share = 100 * cb_profile_share(part, whole);
  struct words out = {"<0.1 %"};
  if (part > 0 && share < 0.1) return out;
  if (part < whole && share > 99.9)
    snprintf(out.text, sizeof out.text, ">99.9 %%");
  else
    snprintf(out.text, sizeof out.text, "%.1f %%", share);
  return out;
}

static struct words range(int64_t least, int64_t most) {
  struct words out;
  if (least == most)
    snprintf(out.text, sizeof out.text, "%lld", (long long)least);
  else if (most == INT64_MAX)
    snprintf(out.text, sizeof out.text, "%lld+", (long long)least);
  else
    snprintf(out.text, sizeof out.text, "%lld-%lld", (long long)least, (long long)most);
  return out;
}

static struct words bytes(int64_t count) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = (double)count;
  int unit = 0;
  struct words out;
  for (; value >= 1024 && unit < 4; unit++) value /= 1024;
  snprintf(out.text, sizeof out.text, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
  return out;
}

static void heading(struct cb_text *text, const char *name) {
  cb_text_add(text, "%-13s", name);
}

static void bar(struct cb_text *text, int64_t part, int64_t whole) {
  int length = (int)(cb_profile_share(part, whole) * BAR + 0.5);
  if (part && !length) length = 1; /* what exists is seen */
  for (int i = 0; i < length; i++) cb_text_add_string(text, i ? "#" : "  #");
  cb_text_add_string(text, "\n");
}

static void bin(struct cb_text *text, struct words label, int64_t part, int64_t whole) {
  heading(text, "");
  cb_text_add(text, "%-13s %12lld  %7s", label.text, (long long)part, percent(part, whole).text);
  bar(text, part, whole);
}

static void matrix_lines(const struct cb_profile *profile, struct cb_text *text) {
  heading(text, "matrix");
  cb_text_add(text, "'%s'%s%s\n", profile->name, profile->symmetric_file ? ", file stores one triangle" : "",
              profile->pattern ? ", pattern only" : "");
  heading(text, "");
  cb_text_add(text, "%lld x %lld, %lld nonzeros, density %.3g %%, CSR %s\n", (long long)profile->rows,
              (long long)profile->cols, (long long)profile->nnz, 100 * cb_profile_density(profile),
              bytes(profile->csr_bytes).text);
}

static void row_lines(const struct cb_profile *profile, struct cb_text *text) {
  const struct cb_profile_rows *row = &profile->row;
  int first = 0, last = CB_PROFILE_LENGTH_BINS - 1;
  heading(text, "row lengths");
  cb_text_add(text, "%lld to %lld, mean %.2f, standard deviation %.2f\n", (long long)row->shortest,
              (long long)row->longest, row->mean, row->deviation);
  heading(text, "");
  cb_text_add(text, "50 %% have %lld or fewer, 90 %% %lld, 99 %% %lld", (long long)row->median, (long long)row->p90,
              (long long)row->p99);
  if (row->longest_row >= 0) cb_text_add(text, "; row %lld is longest", (long long)row->longest_row);
  cb_text_add_string(text, "\n");
  while (last > 0 && !row->bins[last]) last--;
  while (first < last && !row->bins[first]) first++;
  const int open = first + MOST_ROW_LINES - 1; /* the bin that takes the rest if there are more */
  for (int i = first; i <= last && i <= open; i++) {
    const int64_t least = i ? INT64_C(1) << (i - 1) : 0;
    int64_t rows = row->bins[i];
    for (int k = i + 1; i == open && k <= last; k++) rows += row->bins[k];
    bin(text, range(least, i == open && i < last ? INT64_MAX : i ? 2 * least - 1 : 0), rows, profile->rows);
  }
}

static void column_lines(const struct cb_profile *profile, struct cb_text *text) {
  const struct cb_profile_columns *column = &profile->column;
  heading(text, "empty");
  cb_text_add(text, "%lld rows (%s), %lld columns (%s)\n", (long long)profile->row.empty,
              percent(profile->row.empty, profile->rows).text, (long long)column->empty,
              percent(column->empty, profile->cols).text);
  heading(text, "columns");
  cb_text_add(text, "longest has %lld nonzeros", (long long)column->longest);
  if (column->longest_column >= 0) cb_text_add(text, ": column %lld", (long long)column->longest_column);
  cb_text_add_string(text, "\n");
}

static void diagonal_lines(const struct cb_profile *profile, struct cb_text *text) {
  const struct cb_profile_diagonals *diagonal = &profile->diagonal;
  heading(text, "bandwidth");
  cb_text_add(text, "lower %lld, upper %lld, mean distance from the diagonal %.1f\n",
              (long long)diagonal->lower, (long long)diagonal->upper, diagonal->mean_distance);
  heading(text, "diagonals");
  cb_text_add(text, "%lld populated; %lld of them %d %% full or more, with %s of the nonzeros\n",
              (long long)diagonal->populated, (long long)diagonal->filled, CB_PROFILE_DIAGONAL_FILL,
              percent(diagonal->filled_nonzeros, profile->nnz).text);
  heading(text, "");
  cb_text_add(text, "main diagonal: %lld nonzeros%s\n", (long long)diagonal->main_nonzeros,
              diagonal->main_full ? ", full" : "");
  if (!diagonal->fullest_count) return;
  heading(text, "");
  cb_text_add(text, "%12s %13s  %7s\n", "offset", "nonzeros", "fill");
  for (int i = 0; i < diagonal->fullest_count && i < MOST_DIAGONAL_LINES; i++) {
    const struct cb_profile_diagonal *one = &diagonal->fullest[i];
    heading(text, "");
    cb_text_add(text, "%12lld  %12lld  %7s", (long long)one->offset, (long long)one->nonzeros,
                percent(one->nonzeros, one->length).text);
    bar(text, one->nonzeros, one->length);
  }
}

static void symmetry_lines(const struct cb_profile *profile, struct cb_text *text) {
  const struct cb_profile_symmetry *symmetry = &profile->symmetry;
  heading(text, "symmetry");
  if (!symmetry->square) {
    cb_text_add_string(text, "not square\n");
    return;
  }
  cb_text_add(text, "%s of the nonzeros are mirrored, %s with equal values\n",
              percent(symmetry->mirrored, profile->nnz).text,
              percent(symmetry->mirrored_equal, profile->nnz).text);
}

static void shape_lines(const struct cb_profile *profile, struct cb_text *text) {
  heading(text, "dense blocks");
  cb_text_add(text, "%-6s %13s  %7s %10s\n", "", "blocks", "fill", "bytes/nnz");
  for (int i = 0; i < CB_PROFILE_SHAPES; i++) {
    const struct cb_profile_shape *shape = &profile->shapes[i];
    heading(text, "");
    cb_text_add(text, "%d x %-2d %13lld  %7s %10.2f%s\n", shape->rows, shape->cols, (long long)shape->touched,
                percent(profile->nnz, shape->touched * shape->rows * shape->cols).text,
                cb_profile_share(shape->bytes, profile->nnz), i == profile->best_shape ? "  least" : "");
  }
  heading(text, "");
  cb_text_add(text, "CSR %31s %9.2f%s\n", "", cb_profile_share(profile->csr_bytes, profile->nnz),
              profile->best_shape < 0 ? "  least" : "");
}

static void subblock_lines(const struct cb_profile *profile, struct cb_text *text) {
  const struct cb_profile_subblocks *plain = &profile->plain, *aggregated = &profile->aggregated;
  heading(text, "sub-blocks");
  cb_text_add(text, "%-14s %12s %9s  %12s\n", "16 x 16", "plain", "", "aggregated");
  for (int i = 0; i < CB_PROFILE_SUBBLOCK_BINS; i++) {
    const int least = cb_profile_subblock_bins[i].least, most = cb_profile_subblock_bins[i].most;
    const int64_t before = cb_profile_between(plain, least, most),
                  after = cb_profile_between(aggregated, least, most);
    heading(text, "");
    cb_text_add(text, "%-14s %12lld  %8s  %12lld  %8s", range(least, most).text, (long long)before,
                percent(before, plain->total).text, (long long)after, percent(after, aggregated->total).text);
    bar(text, after, aggregated->total);
  }
  heading(text, "");
  cb_text_add(text, "%-14s %12lld  %8s  %12lld\n", "all", (long long)plain->total, "",
              (long long)aggregated->total);
  for (int limit = 8; limit <= 32; limit += 24) {
    const int64_t before = cb_profile_between(plain, 1, limit - 1),
                  after = cb_profile_between(aggregated, 1, limit - 1);
    heading(text, "");
    cb_text_add(text, "fewer than %-3d %12lld  %8s  %12lld  %8s\n", limit, (long long)before,
                percent(before, plain->total).text, (long long)after, percent(after, aggregated->total).text);
  }
}

static void value_lines(const struct cb_profile *profile, struct cb_text *text) {
  const struct cb_profile_values *values = &profile->values;
  heading(text, "values");
  if (values->distinct > CB_PROFILE_DISTINCT)
    cb_text_add(text, "more than %d distinct", CB_PROFILE_DISTINCT);
  else
    cb_text_add(text, values->distinct == 1 ? "all equal" : "%d distinct", values->distinct);
  cb_text_add(text, "%s; %lld zeros, %lld not finite\n", values->integers ? ", all whole numbers" : "",
              (long long)values->zeros, (long long)values->nonfinite);
  heading(text, "");
  cb_text_add(text, "lossless as f32: %s, f16: %s, bf16: %s\n", values->fits_f32 ? "yes" : "no",
              values->fits_f16 ? "yes" : "no", values->fits_bf16 ? "yes" : "no");
}

void cb_profile_text(const struct cb_profile *profile, struct cb_text *text) {
  matrix_lines(profile, text);
  row_lines(profile, text);
  column_lines(profile, text);
  diagonal_lines(profile, text);
  symmetry_lines(profile, text);
  shape_lines(profile, text);
  subblock_lines(profile, text);
  value_lines(profile, text);
}
