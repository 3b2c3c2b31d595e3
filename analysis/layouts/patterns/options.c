// SPDX-License-Identifier: Apache-2.0
/* The options and recipes of layout patterns. */
#include "analysis/layouts/patterns/options.h"

#include "analysis/layouts/patterns/census.h"

static const int64_t batches[] = {0, 1, 2, 3, 4, 6, 8, CB_NO_NUMBER};
static const int64_t slices[] = {0, 1, 2, 3, 4, 6, 8, CB_NO_NUMBER};

const struct cb_option cb_patterns_options[PATTERNS_OPTIONS] = {
    [PATTERNS_SIZE] = {.name = "pattern-size", .most = CB_PATTERN_SIZE_MOST,
                       .help = "rows of a block row, and the size of its blocks; 0: by the matrix"},
    [PATTERNS_USES] = {.name = "pattern-uses", .least = 1, .most = INT64_C(1) << 30, .standard = 64,
                       .help = "block rows that a pattern needs, unless all patterns fit"},
    [PATTERNS_SHARE] = {.name = "pattern-share", .most = 100, .standard = 50,
                        .help = "refused when rows with patterns hold a smaller percentage of the nonzeros"},
    [PATTERNS_PAD] = {.name = "pattern-pad", .words = cb_auto_on_off,
                      .help = "each lane has its place at each offset; else only nonzeros are stored"},
    [PATTERNS_BATCH] = {.name = "pattern-batch", .numbers = batches, .tuned_by = "batch",
                        .help = "offsets that a lane loads together: 1, 2, 3, 4, 6, 8; 0: by the matrix"},
    [PATTERNS_SLICES] = {.name = "pattern-slices", .numbers = slices, .tuned_by = "slices",
                         .help = "slices of a warp: 1, 2, 3, 4, 6, 8; 0: by the matrix"},
    [PATTERNS_STRIDE] = {.name = "pattern-stride", .most = 65536,
                         .help = "slices from one of a thread block's to the next; 0: by the matrix"},
};

static const struct cb_node patterns = {.layout = "patterns"};
static const struct cb_node rest = {.layout = "sell"};
static const struct cb_node repeating = {.split = &cb_split_patterns, .parts = {&patterns, &rest}, .final = 1};

const struct cb_recipe cb_patterns_recipes[] = {
    {.name = "patterns",
     .summary = "rows whose columns repeat, which are constants of the text; the rest as sell",
     .example = "stencil5,n=24,extra=0.2",
     .lenient = "pattern-uses=1 pattern-share=0",
     .root = &repeating, .is_searched = 1, .may_refuse = 1},
    {0},
};
