// SPDX-License-Identifier: Apache-2.0
/* What the driver needs of each kernel of a batch: its host functions with one type for all. */
#ifndef CBGEN_EMULATION_DRIVER_H
#define CBGEN_EMULATION_DRIVER_H

#include "jobs.h"

#include <stddef.h>

struct EmulatedKernel {
  const char *name;
  size_t element; // bytes of an element of x and y
  const char *(*load)(void **matrix, const void *data, size_t bytes);
  // The job has alpha and beta, and where several vectors lie.
  const char *(*multiply)(const void *matrix, const void *x, void *y, const emulation_job &job);
  // Null: the text has no kernels for several vectors.
  const char *(*multiply_many)(const void *matrix, const void *x, void *y, const emulation_job &job);
  // Null: the text has no kernels that read heads alone.
  const char *(*multiply_heads)(const void *matrix, const void *x, void *y, const emulation_job &job);
  void (*free)(void *matrix);
  // Of a traced kernel (traced.h), else null: numbers become nodes in place, and nodes numbers again; `nodes` takes
  // their numbers.
  void (*take)(void *vector, size_t count, int kind);
  void (*give)(void *vector, size_t count, unsigned long *nodes);
};
extern const EmulatedKernel emulated_kernels[];

#endif
