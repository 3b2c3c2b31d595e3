// SPDX-License-Identifier: Apache-2.0
/* What `cbgen why` has found out, and its reports. */
#ifndef CBGEN_TOOL_WHY_H
#define CBGEN_TOOL_WHY_H

#include "tool/job.h"

#include "analysis/plan/advice.h"
#include "analysis/plan/thread_blocks.h"
#include "runtime/measure/clocked.h"

enum { CB_WHY_BLOCKS = 10, CB_WHY_OPTIONS = 12 };

/* An option that makes another plan. */
struct cb_why_option {
  const struct cb_advice *advice;
  const char *region; /* that it is for; its layout is bound by advice->term */
  const char *recipe; /* that the search had found, whose option it is; NULL: as in the call */
  int64_t ns;         /* predicted with it */
};

struct cb_why {
  const struct cb_call *call;
  struct cb_job job;
  struct cb_bench *bench;    /* NULL: there is no GPU to measure on, */
  char without[600];         /* which is why */
  struct cb_clocked clocked; /* blocks NULL: nothing is measured */
  struct cb_thread_blocks blocks;
  int64_t row_blocks;       /* thread blocks of the row; with --row */
  int chosen;               /* the slowest thread blocks, or the row's */
  int order[CB_WHY_BLOCKS]; /* of them, by time: places in `facts` */
  int median;               /* the thread block of median time: likewise; -1: none */
  int facts_count;
  struct cb_thread_block_facts facts[CB_WHY_BLOCKS + 1]; /* ascending */
  int options_count;
  struct cb_why_option options[CB_WHY_OPTIONS]; /* by predicted time */
};

/* Microseconds of a thread block: measured where that was done, else predicted. */
double cb_why_us(const struct cb_why *why, int64_t number);

void cb_why_text(struct cb_text *text, const struct cb_why *why);
enum cb_status cb_why_json(struct cb_text *text, const struct cb_why *why, struct cb_diag *diag);

#endif
