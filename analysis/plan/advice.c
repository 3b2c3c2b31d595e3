// SPDX-License-Identifier: Apache-2.0
/* The table of advice.h: a layout's own options before other recipes, before what changes the product. */
#include "analysis/plan/advice.h"

#include <string.h>

const struct cb_advice cb_advice_table[] = {
    {"sell", CB_TERM_CHAIN, "sell-vary", "on",
     "long rows are cut into segments, and each slice has lanes for its rows"},
    {"sell", CB_TERM_CHAIN, "recipe", "sell-long",
     "rows of more than --long-row nonzeros are taken by whole thread blocks"},
    {"sell", CB_TERM_CHAIN, "sell-lanes", "32", "a warp shares each row"},
    {"sell", CB_TERM_STREAM, "sell-sort", "on", "rows of one length share a slice: less padding is read"},
    {"sell", CB_TERM_STREAM, "sell-vary", "on", "slices have lanes for their rows: less padding is read"},
    {"sell", CB_TERM_TAIL, "sell-vary", "off", "no row is in segments, whose sums wait for each other"},
    {"merge", CB_TERM_CHAIN, "merge-items", "3", "a lane has fewer nonzeros: more thread blocks share them"},
    {"merge", CB_TERM_CHAIN, "merge-piece", "1024", "long rows are cut into shorter segments"},
    {"merge", CB_TERM_WORK, "recipe", "sell", "rows are added up without looking for their ends"},
    {"merge", CB_TERM_TAIL, "recipe", "sell", "rows need not be added up behind the products"},
    {"blocks", CB_TERM_CHAIN, "block-lanes", "32", "a warp shares each block row"},
    {"blocks", CB_TERM_CHAIN, "block-batch", "4", "a lane has more loads in flight"},
    {"blocks", CB_TERM_STREAM, "recipe", "sell", "absent entries of blocks are not stored"},
    {"dia", CB_TERM_CHAIN, "dia-rows", "1", "a thread has one row: more warps share them"},
    {"dia", CB_TERM_STREAM, "dia-fill", "90", "only fuller diagonals: fewer absent entries are read"},
    {"dia", CB_TERM_WORK, "dia-rows", "4", "a thread loads an entry of x once for several rows"},
    {"patterns", CB_TERM_CHAIN, "pattern-batch", "8", "a lane has more loads in flight"},
    {"patterns", CB_TERM_CHAIN, "pattern-slices", "1", "a warp has one slice: more warps share them"},
    {"patterns", CB_TERM_STREAM, "pattern-pad", "off", "only nonzeros are stored"},
    {"patterns", CB_TERM_WORK, "pattern-pad", "on", "each lane has its place: no votes about addresses"},
    {"slices", CB_TERM_CHAIN, "fill-repeats", "1", "a warp has one slice: more warps share them"},
    {"slices", CB_TERM_STREAM, "fill-rate", "90", "only fuller blocks: fewer absent entries are read"},
    {"hot", CB_TERM_WORK, "hot-packed", "65536", "more columns lie side by side, and share sectors"},
    {"hot", CB_TERM_GATHER, "hot-packed", "65536", "more columns lie side by side, and share sectors"},
    {"hot", CB_TERM_TAIL, "hot-gather", "off", "no launch before the product"},
    {"phases", CB_TERM_WORK, "phase-blocks", "2", "a multiprocessor has two thread blocks, of which one waits"},
    {"phases", CB_TERM_TAIL, "recipe", "hot", "no launch before the product, and no sums on their way"},
    {"cb", CB_TERM_CHAIN, "run-blocks", "4", "a warp has fewer sub-blocks, one after another"},
    {"cb", CB_TERM_CHAIN, "unit-budget", "2048", "panels of many nonzeros are split among thread blocks"},
    {"cb", CB_TERM_GATHER, "aggregate", "on", "a panel's empty columns are dropped: x is read in whole sectors"},
    {"cb", CB_TERM_TAIL, "coo-gain", "90", "fewer sub-blocks are COO, whose sums pass shared memory"},
    {"cb", CB_TERM_WORK, "recipe", "sell", "rows need no coordinates within sub-blocks"},
    {"tile", CB_TERM_CHAIN, "tile-balance", "2", "a warp has fewer tiles, one after another"},
    {"du", CB_TERM_CHAIN, "du-segment", "8", "a chunk's blocks are shared among warps"},
    {"se", CB_TERM_CHAIN, "du-segment", "8", "a chunk's steps are shared among warps"},
    {NULL, CB_TERM_CHAIN, "recipe", "merge", "every lane has as many nonzeros, wherever rows end"},
    {NULL, CB_TERM_GATHER, "recipe", "hot", "entries of x for frequent columns lie in shared memory"},
    {NULL, CB_TERM_GATHER, "recipe", "phases", "x of frequent columns lies in shared memory, a set at a time"},
    {NULL, CB_TERM_TAIL, "recipe", "auto", "the fastest by the cost model"},
    {NULL, CB_TERM_WORK, "recipe", "auto", "the fastest by the cost model"},
    {NULL, CB_TERM_STREAM, "recipe", "auto", "the fastest by the cost model"},
    {NULL, CB_TERM_STREAM, "values", "fixed", "if values never change: what they have in common is text"},
    {NULL, CB_TERM_STREAM, "type", "f32", "if single precision suffices: half of the bytes of values, x and y"},
    {0},
};

const struct cb_advice *cb_advice_next(const struct cb_advice *before, const char *layout, enum cb_term term) {
  for (const struct cb_advice *advice = before ? before + 1 : cb_advice_table; advice->option; advice++)
    if (advice->term == term && (!advice->layout || (layout && !strcmp(advice->layout, layout)))) return advice;
  return NULL;
}
