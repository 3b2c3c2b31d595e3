// SPDX-License-Identifier: Apache-2.0
/* The file of jobs that the library hands to an executable of emulated kernels (C and C++).
 *
 *   file = header { job } { data }        mapped by both sides; the executable writes results into it
 *
 * A job is one matrix with one or several products. The executable runs jobs whose state is WAITING in order,
 * so that after a crash the rest can be run by a second process: the job that crashed is the one left
 * RUNNING.
 */
#ifndef CBGEN_EMULATION_JOBS_H
#define CBGEN_EMULATION_JOBS_H

#include <stdint.h>

/* How an executable of emulated kernels ends when a kernel breaks a rule of CUDA. */
enum emulation_exit {
  EMULATION_OK = 0,
  EMULATION_USAGE = 70,    /* the job file is not one */
  EMULATION_DIVERGENT,     /* threads that must meet are at different places, or have exited */
  EMULATION_MASK,          /* a thread is missing from its own mask */
  EMULATION_SOURCE,        /* a shuffle reads a lane that takes no part */
  EMULATION_DEADLOCK,      /* every thread waits */
  EMULATION_RACE,          /* accesses to memory that nothing orders */
  EMULATION_UNINITIALISED, /* shared memory is read before it was written */
  EMULATION_BOUNDS,        /* beyond a shared array, or a copy beyond an allocation */
  EMULATION_ALIGNMENT,     /* a load from a misaligned address */
  EMULATION_OVERRUN,       /* guard bytes around an allocation were overwritten */
  EMULATION_MEMORY,        /* a pointer is freed that was never allocated; memory is exhausted */
  EMULATION_TIME,          /* a job used up its processor time */
  EMULATION_SANITIZER,     /* AddressSanitizer or UBSan stopped the program */
  EMULATION_SIGNAL,        /* a crash that no sanitizer caught */
  EMULATION_CHECK,         /* a text with checks found an index out of bounds */
  EMULATION_EXITS
};

enum emulation_state {
  EMULATION_WAITING,
  EMULATION_RUNNING,
  EMULATION_DONE,
  EMULATION_REFUSED,      /* load or multiply returned the message */
  EMULATION_UNREPEATABLE, /* a later product differed from the first in row `row` */
  EMULATION_LEAKED        /* S_free left allocations behind */
};

#define EMULATION_MAGIC UINT64_C(0x31736a6e65676263) /* "cbgenjs1" */

struct emulation_header {
  uint64_t magic, jobs;
  double processor_seconds; /* limit for each job; 0: none */
};

enum { EMULATION_LAUNCHES = 16 };

/* Where several vectors lie, in elements: entry i of vector v of X is `x_entry` · i + `x_vector` · v behind the first.
 */
struct emulation_columns {
  int64_t count; /* vectors; 0: the product has one, by the text's other function */
  int64_t x_entry, x_vector, y_entry, y_vector;
};

struct emulation_job {
  uint32_t kernel;     /* index in the executable */
  uint32_t state;      /* enum emulation_state */
  uint64_t seed;       /* of the scheduler: product p uses seed + p */
  uint32_t products;   /* how often to multiply, each time from the same y */
  uint32_t repeatable; /* all products must agree bit for bit */
  uint32_t heads;      /* with heads of split values alone, of a text that has such kernels */
  double alpha, beta;
  double alpha_imag, beta_imag; /* read where numbers are complex */
  uint64_t data, data_bytes; /* offsets in the file, and sizes */
  uint64_t x, x_bytes;
  uint64_t y, y_bytes; /* what y holds before each product */
  uint64_t result;     /* y after the first product, y_bytes long */
  uint64_t row;
  double seconds; /* of all products */
  struct emulation_columns columns;
  int64_t only[EMULATION_LAUNCHES]; /* of each launch of a traced product, the number of the one thread block that
                                    * runs, plus 1; 0: all run */
  char message[256];
};

/* What a traced product leaves in the file "JOBS.trace" (traced.h): a header, its nodes in the order in which they were
 * made, then for each row the number of the node that stands in y. Node 0 is the number 0. */
enum emulation_node_kind {
  EMULATION_NUMBER, /* a constant of the text, or a number that nothing is known of */
  EMULATION_X,      /* the entry `place` of x */
  EMULATION_Y,      /* what the entry `place` of y held before */
  EMULATION_UNSET,  /* memory that nobody has written */
  EMULATION_LOAD_X, /* load_x of operand 0 */
  EMULATION_VALUE,  /* the number of value slot `place` of region `region` */
  EMULATION_ADD,
  EMULATION_SUBTRACT,
  EMULATION_PRODUCT,
  EMULATION_ADD_PRODUCT, /* operand 0 · operand 1 + operand 2, rounded once */
  EMULATION_LEAST,
  EMULATION_GREATEST,
  EMULATION_OR,
  EMULATION_AND,
  EMULATION_ROUND, /* operand 0 as an entry of y */
  EMULATION_NODE_KINDS
};

struct emulation_node {
  uint64_t operands[3]; /* numbers of nodes before this one */
  double value;
  int64_t place;
  int32_t kind, region, line; /* of kernel.cu; 0: unknown */
  uint32_t launch, block, thread; /* launch 0: the host */
};

struct emulation_trace {
  uint64_t nodes, rows;
};

/* What a self-test's executable leaves in the file that $CBGEN_EMULATION_EVIDENCE names, so that its word alone need
 * not be believed: what was copied last from the device, behind this. */
struct emulation_evidence {
  uint64_t nonce;    /* $CBGEN_EMULATION_NONCE */
  uint64_t launches; /* of kernels, before that copy */
  uint64_t bytes;
};

#endif
