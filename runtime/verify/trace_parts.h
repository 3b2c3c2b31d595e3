// SPDX-License-Identifier: Apache-2.0
/* What the files of the trace share.
 *
 *   trace.c          running the product
 *   trace_row.c      what a row was made of, and what is wrong with that
 *   trace_report.c   as text, as JSON, as a few lines
 */
#ifndef CBGEN_RUNTIME_VERIFY_TRACE_PARTS_H
#define CBGEN_RUNTIME_VERIFY_TRACE_PARTS_H

#include "analysis/layout.h"
#include "analysis/plan/assignment.h"
#include "runtime/verify/emulation/jobs.h"
#include "runtime/verify/oracle.h"
#include "runtime/verify/trace.h"

/* What is known of a node of the row that is looked at. */
struct cb_trace_part {
  uint32_t times; /* how often it is in y; 0: not at all */
  int64_t column; /* of the x that it is; −1: it is none */
  long double exact;
};

struct cb_trace {
  const struct cb_verify_case *one;
  const struct cb_trace_product *product;
  double *x, *y0; /* as doubles */
  void *result;
  struct cb_host_trace nodes;
  struct cb_trace_part *parts; /* of each node; zeros between the rows */
  struct cb_slot_map *maps;    /* one for each region */
  struct cb_slot_map *mirrored; /* likewise: by slot, the entry that is read from its mirror image */
  struct cb_expected expected;
};

/* The slot of a region that holds the nonzero. *region is −1 when none does. */
int64_t cb_trace_find_slot(const struct cb_trace *trace, uint64_t nonzero, int *region);
/* Where the slot's number lies in the data; −1: it stands in the text. */
int64_t cb_trace_byte(const struct cb_trace *trace, int region, int64_t slot);
/* The value of a nonzero as the kernel stores it. */
double cb_trace_value(const struct cb_trace *trace, int64_t nonzero);

#endif
