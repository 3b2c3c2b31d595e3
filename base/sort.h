// SPDX-License-Identifier: Apache-2.0
/* Sorting. */
#ifndef CBGEN_BASE_SORT_H
#define CBGEN_BASE_SORT_H

#include <stdint.h>

/* Sorts ascending, in place and in parallel. */
void cb_sort_keys(uint32_t *keys, int64_t count);

#endif
