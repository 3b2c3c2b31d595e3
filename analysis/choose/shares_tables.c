// SPDX-License-Identifier: Apache-2.0
/* The tables of the extraction's shares: written by bench/train/shares.py, do not edit. */
#include "analysis/choose/shares.h"

const struct cb_shares_table cb_shares_tables[] = {
    {0},
};
