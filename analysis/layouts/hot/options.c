// SPDX-License-Identifier: Apache-2.0
/* The options and recipes of layout hot. */
#include "analysis/layouts/hot/options.h"

const struct cb_option cb_hot_options[HOT_OPTIONS] = {
    [HOT_COLUMNS] = {.name = "hot-columns", .most = 65536,
                     .help = "columns whose entries of x lie in shared memory; 0: by the matrix"},
    [HOT_SHARE] = {.name = "hot-share", .most = 100, .standard = 25,
                   .help = "refused when hot columns hold a smaller percentage of the nonzeros"},
    [HOT_THREADS] = {.name = "hot-threads", .numbers = cb_threads_of_a_block,
                     .help = "threads of a thread block: 256, 512, 1024; 0: by the matrix"},
    [HOT_BATCH] = {.name = "hot-batch", .most = 8,
                   .help = "hot and cold steps each that a lane loads together; 0: by the matrix"},
    [HOT_GATHER] = {.name = "hot-gather", .words = cb_auto_on_off,
                    .help = "a first launch lays the hot entries of x side by side"},
    [HOT_PACKED] = {.name = "hot-packed", .most = INT64_C(1) << 30,
                  .help = "that launch does so for so many further columns; 0: by the matrix"},
    [HOT_THREE_BYTES] = {.name = "hot-three-bytes", .words = cb_auto_on_off,
                         .help = "indices of cold nonzeros in three bytes"},
};

enum cb_status cb_hot_check(const int64_t *settings, struct cb_diag *diag) {
  if (!settings[HOT_PACKED] || settings[HOT_GATHER] != CB_OFF) return CB_OK;
  return cb_fail(diag, CB_ERR_ARGUMENT,
                 "option 'hot-packed' is %lld but 'hot-gather' is off: no launch would lay them side by side",
                 (long long)settings[HOT_PACKED]);
}

static const struct cb_node hot = {.layout = "hot"};

const struct cb_recipe cb_hot_recipes[] = {
    {.name = "hot",
     .summary = "entries of x for the hottest columns resident in shared memory",
     .example = "rmat,scale=9,edge_factor=12",
     .lenient = "hot-columns=20",
     .root = &hot, .is_searched = 1, .is_packed = 1, .may_refuse = 1},
    {0},
};
