// SPDX-License-Identifier: Apache-2.0
/* The split that gives rows to layout patterns where their columns repeat. */
#include "analysis/layouts/patterns/options.h"

#include "analysis/layouts/patterns/census.h"
#include "base/integers.h"
#include "base/memory.h"

static void release(void *patterns) {
  cb_patterns_release(patterns);
  cb_free(patterns);
}

/* Which nonzeros are in block rows with a pattern. Rows behind the last whole block row have none. */
static void divide_block_rows(const struct cb_patterns *patterns, const struct cb_csr *csr, unsigned char *part_of) {
#pragma omp parallel for schedule(static)
  for (int64_t block_row = 0; block_row < patterns->block_rows; block_row++) {
    const int64_t end = cb_smaller((block_row + 1) * patterns->size, csr->rows);
    const int64_t first = cb_csr_row(csr, block_row * patterns->size);
    memset(part_of + first, patterns->pattern_of[block_row] == CB_PATTERN_NONE, (size_t)(cb_csr_row(csr, end) - first));
  }
}

/* Part 0: rows whose columns repeat, with the patterns that were found; part 1: the others. */
static enum cb_status divide_patterns(const struct cb_part *part, const struct cb_options *options,
                                      const struct cb_target *target, struct cb_division *division,
                                      struct cb_text *facts, struct cb_diag *diag) {
  const int64_t *settings = cb_settings(options, &cb_layout_patterns);
  const struct cb_pattern_wish wish = {(int)settings[PATTERNS_SIZE], settings[PATTERNS_USES], settings[PATTERNS_SHARE]};
  struct cb_patterns *patterns = cb_calloc(1, sizeof *patterns);
  (void)target;
  if (!patterns) return cb_fail_memory(diag, "patterns of rows", sizeof *patterns);
  division->found[0] = (struct cb_found){CB_FOUND_PATTERNS, patterns, release};
  const enum cb_status s = cb_patterns_find(patterns, part->csr, &wish, diag);
  if (s) return s;
  divide_block_rows(patterns, part->csr, division->part_of);
  cb_text_add(facts, " (share %lld)", (long long)(patterns->nonzeros * 100 / part->csr->nnz));
  return CB_OK;
}

const struct cb_split cb_split_patterns = {.name = "patterns", .parts = 2, .by_rows = 1, .divide = divide_patterns};
