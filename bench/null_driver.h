// SPDX-License-Identifier: Apache-2.0
/* What the null driver (null_driver.c) was asked for. */
#ifndef CBGEN_BENCH_NULL_DRIVER_H
#define CBGEN_BENCH_NULL_DRIVER_H

struct null_driver_calls {
  long allocations, waits, launches, copies, modules;
};

/* The library's one function beside the driver's: all calls since the process began. */
typedef struct null_driver_calls null_driver_asked(void);
null_driver_asked null_driver_calls;

#endif
