// SPDX-License-Identifier: Apache-2.0
/* Nonzeros by thread block: see loads.h. */
#include "analysis/plan/loads.h"

#include "analysis/plan/assignment.h"
#include "base/memory.h"

#include <math.h>

static void summarise(struct cb_loads *loads, const int64_t *nonzeros, int64_t blocks) {
  double sum = 0, squares = 0;
  *loads = (struct cb_loads){.blocks = blocks, .least = blocks ? INT64_MAX : 0};
  for (int64_t b = 0; b < blocks; b++) {
    loads->least = nonzeros[b] < loads->least ? nonzeros[b] : loads->least;
    loads->most = nonzeros[b] > loads->most ? nonzeros[b] : loads->most;
    sum += (double)nonzeros[b];
  }
  loads->mean = blocks ? sum / (double)blocks : 0;
  for (int64_t b = 0; b < blocks; b++)
    squares += ((double)nonzeros[b] - loads->mean) * ((double)nonzeros[b] - loads->mean);
  if (loads->mean > 0) loads->variation = sqrt(squares / (double)blocks) / loads->mean;
}

/* Thread block b has the rows from b · block_rows on. */
static void add_rows(int64_t *nonzeros, int64_t blocks, const struct cb_csr *csr, int64_t block_rows) {
  for (int64_t b = 0; b < blocks; b++) {
    const int64_t first = b * block_rows, end = first + block_rows;
    if (first >= csr->rows) return;
    nonzeros[b] += cb_csr_row(csr, end < csr->rows ? end : csr->rows) - cb_csr_row(csr, first);
  }
}

/* Adds one region's to its launch's thread blocks; 0: it is not known. */
static int add_region(int64_t *nonzeros, const struct cb_plan *plan, const struct cb_assignment *assignment,
                      const struct cb_launch *launch, int number) {
  const struct cb_region *region = &plan->regions[number];
  const struct cb_region_work *work = &assignment->regions[number];
  const struct cb_layout *layout = assignment->layouts[number];
  int64_t *own = nonzeros + region->first_block;
  if (launch->block_rows > 0) /* of regions in turn */
    add_rows(nonzeros, launch->blocks, work->part.csr, launch->block_rows);
  else if (layout->count_loads)
    layout->count_loads(work->state, own);
  else if (region->block_rows)
    add_rows(own, region->blocks, work->part.csr, region->block_rows);
  else
    return 0;
  return 1;
}

enum cb_status cb_loads_count(struct cb_loads *loads, const struct cb_plan *plan,
                              const struct cb_assignment *assignment, struct cb_diag *diag) {
  int64_t blocks = 0, at = 0;
  int known = 1;
  for (int l = 0; l < plan->launches_count; l++)
    if (!plan->launches[l].body && !plan->launches[l].prepares) blocks += plan->launches[l].blocks;
  int64_t *nonzeros = cb_calloc((size_t)blocks + 1, sizeof *nonzeros);
  if (!nonzeros) return cb_fail_memory(diag, "nonzeros by thread block", (uint64_t)blocks * sizeof *nonzeros);
  for (int l = 0; l < plan->launches_count && known; l++) {
    const struct cb_launch *launch = &plan->launches[l];
    if (launch->body || launch->prepares) continue;
    for (int r = 0; r < launch->regions && known; r++)
      known = add_region(nonzeros + at, plan, assignment, launch, launch->first_region + r);
    at += launch->blocks;
  }
  summarise(loads, nonzeros, known ? blocks : 0);
  cb_free(nonzeros);
  return CB_OK;
}

enum cb_status cb_loads_count_unbalanced(struct cb_loads *loads, const struct cb_assignment *assignment,
                                         struct cb_diag *diag) {
  int64_t blocks = 0, at = 0;
  for (int r = 0; r < assignment->regions_count; r++)
    if (assignment->layouts[r]->count_unbalanced)
      blocks += assignment->layouts[r]->count_unbalanced(assignment->regions[r].state, NULL);
  int64_t *nonzeros = cb_calloc((size_t)blocks + 1, sizeof *nonzeros);
  if (!nonzeros) return cb_fail_memory(diag, "nonzeros by thread block", (uint64_t)blocks * sizeof *nonzeros);
  for (int r = 0; r < assignment->regions_count; r++)
    if (assignment->layouts[r]->count_unbalanced)
      at += assignment->layouts[r]->count_unbalanced(assignment->regions[r].state, nonzeros + at);
  summarise(loads, nonzeros, blocks);
  cb_free(nonzeros);
  return CB_OK;
}
