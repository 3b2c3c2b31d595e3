// SPDX-License-Identifier: Apache-2.0
/* The tables of the predictor: written by bench/train/train.py, do not edit. */
#include "analysis/choose/predictor.h"

const struct cb_choice_table cb_choice_tables[] = {{0}};
