// SPDX-License-Identifier: Apache-2.0
/* The options and recipes of layout merge. */
#include "analysis/layouts/merge/options.h"

static const int64_t items[] = {0, 3, 5, 7, 9, 11, 13, 15, CB_NO_NUMBER};

const struct cb_option cb_merge_options[MERGE_OPTIONS] = {
    [MERGE_ITEMS] = {.name = "merge-items", .numbers = items, .tuned_by = "items", .may_refuse = 1,
                     .help = "nonzeros of a lane, odd, 3 to 15; 0: by the matrix"},
    [MERGE_PIECE] = {.name = "merge-piece", .least = 256, .most = INT64_C(1) << 20, .or_zero = 1,
                     .help = "long rows are cut into row segments of so many nonzeros; 0: by their length"},
    [MERGE_PAD] = {.name = "merge-pad", .words = cb_auto_on_off,
                   .help = "thread blocks' nonzeros are padded to equal numbers"},
};

static const struct cb_node merge = {.layout = "merge"};

const struct cb_recipe cb_merge_recipes[] = {
    {.name = "merge",
     .summary = "equal shares of nonzeros, wherever rows end",
     .example = "powerlaw,rows=150,cols=400,max=350,min=0",
     .root = &merge, .is_searched = 1, .is_packed = 1, .is_ready = 1, .takes_vectors = 1,
     .commits_in_order = 1},
    {0},
};
