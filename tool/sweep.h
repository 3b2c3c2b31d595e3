// SPDX-License-Identifier: Apache-2.0
/* --sweep=OPTION=V,W,…: one option of the analysis at each of several values, all else the same. A value whose plan is
 * refused (contradicting options, a recipe that does not fit) is a row that says so; anything else that fails is, too,
 * and is the status in the end. */
#ifndef CBGEN_TOOL_SWEEP_H
#define CBGEN_TOOL_SWEEP_H

#include "tool/job.h"

#include "analysis/plan/loads.h"
#include "runtime/measure/bench.h"

#include <jansson.h>

/* Cuts `text` ("th1=16,32") in place. CB_ERR_ARGUMENT: no option of that name, or a value that it does not take. */
enum cb_status cb_sweep_parse(struct cb_sweep *sweep, char *text, struct cb_diag *diag);

/* Plans the job's matrix with each value, and prints a table, or one line of JSON: bytes and predicted times. */
enum cb_status cb_sweep_plan(struct cb_job *job, const struct cb_call *call, struct cb_diag *diag);

/* The same, and times each product on the bench's GPU. */
enum cb_status cb_sweep_bench(struct cb_bench *bench, const struct cb_job *job, const struct cb_call *call,
                              struct cb_diag *diag);

/* null where they are not known; NULL: no memory. */
json_t *cb_sweep_loads_json(const struct cb_loads *loads, int *failed);

#endif
