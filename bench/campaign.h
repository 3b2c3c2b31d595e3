// SPDX-License-Identifier: Apache-2.0
/* What the files of the campaign share (campaign.c says what it is).
 *
 *   campaign_matrix.h    the N-th matrix, and what is done with it
 *   campaign_shared.h    what the kernels are told; campaign_kernels.cu: the kernels
 *   campaign_worker.c    a thread: batches of matrices made, compiled, multiplied, checked
 *   campaign_tables.c    what is counted, and the tables of it
 *   campaign.c           options, threads, the end */
#ifndef CBGEN_BENCH_CAMPAIGN_H
#define CBGEN_BENCH_CAMPAIGN_H

#include "bench/campaign_matrix.h"
#include "bench/native.h"

#include <pthread.h>
#include <stdatomic.h>

/* ---- what is counted */

enum { CAMPAIGN_CELLS = 40 };

struct campaign_cell {
  char name[32];
  long matrices, products;
  int64_t rows, wrong;
  double worst; /* error in units of its bound, of rows that are right */
};

enum campaign_dimension { BY_LAYOUT, BY_TIER, BY_TYPE, BY_SIZE, BY_PATTERN, BY_NUMBERS, BY_STEP, CAMPAIGN_DIMENSIONS };

enum campaign_phase { MAKING, COMPILING, MULTIPLYING, CHECKING, FREEING, CAMPAIGN_PHASES };
enum { CAMPAIGN_PARTS = 7 }; /* of compiling, as cbgen_info has them */

struct campaign_counts {
  struct campaign_cell cells[CAMPAIGN_DIMENSIONS][CAMPAIGN_CELLS]; /* in the order in which they came */
  long matrices, products, declined, failures;
  int64_t rows, wrong, different, exact, unbounded, entries;
  long brought, compiled, remembered; /* binaries of families: with the library, by NVRTC, from before */
  double seconds[CAMPAIGN_PHASES], parts[CAMPAIGN_PARTS];
};

/* The cell of a name; a full table's last one is that of all others. */
struct campaign_cell *campaign_cell(struct campaign_counts *counts, enum campaign_dimension dimension,
                                    const char *name);
void campaign_join(struct campaign_counts *all, const struct campaign_counts *part);
void campaign_print(const struct campaign_counts *counts, double seconds);

/* ---- the campaign */

struct campaign {
  uint64_t seed, first, count;
  double seconds; /* 0: no limit */
  int threads;
  struct campaign_shares shares;
  uint64_t plants[8]; /* matrices of which one result is spoiled */
  int plants_count;
  const char *failures;      /* a file */
  void *fill, *check, *tell; /* kernels */
  atomic_ullong next;        /* matrix that nobody has taken */
  atomic_long done;
  double began;         /* campaign_now */
  pthread_mutex_t lock; /* of the file and of what is printed */
};

double campaign_now(void); /* seconds */

struct campaign_worker {
  struct campaign *campaign;
  int number;
  struct campaign_counts counts;
};
/* Its thread: takes matrices until there are none. Returns the worker; NULL: no memory. */
void *campaign_work(void *worker);

#endif
