// SPDX-License-Identifier: Apache-2.0
/* The campaign's matrices (campaign.c): the N-th of a seed is always the same, with all that is done with it. */
#ifndef CBGEN_BENCH_CAMPAIGN_MATRIX_H
#define CBGEN_BENCH_CAMPAIGN_MATRIX_H

#include "bench/campaign_shared.h"
#include "cbgen.h"

#include <stddef.h>

/* ---- what there is to draw from */

struct campaign_precision {
  const char *type; /* the option */
  cbgen_type given, stored, vector, sum;
  int weight;
};
extern const struct campaign_precision campaign_precisions[];
extern const char *const campaign_patterns[], *const campaign_sizes[], *const campaign_numbers_names[];
int campaign_precisions_count(void);
size_t campaign_size_of(cbgen_type type); /* bytes */

/* Products that are made of an operator, in this order. */
enum campaign_step {
  CAMPAIGN_FIRST,      /* with the family's kernel */
  CAMPAIGN_SECOND,     /* with other factors */
  CAMPAIGN_REPEAT,     /* as the first, whose bits these must have; and so on until SAVED */
  CAMPAIGN_CLONE,      /* by a clone */
  CAMPAIGN_SPECIALISE, /* by the specialised kernel */
  CAMPAIGN_SAVED,      /* by an operator that was saved and loaded */
  CAMPAIGN_UPDATE,     /* with new values */
  CAMPAIGN_STEPS
};
extern const char *const campaign_steps[];

/* Of how many matrices one is treated so; 0: none. */
struct campaign_shares {
  int specialise;            /* compared with the specialised kernel */
  int others;                /* by a recipe that has no family, so that NVRTC compiles it */
  int types;                 /* the first so many of campaign_precisions alone */
  const char *recipe, *pack; /* of all, but for the share of others; NULL: drawn */
};

struct campaign_shares campaign_usual_shares(void);
/* Those that are not as usual, as options: " --types 1". */
void campaign_describe_shares(const struct campaign_shares *shares, char text[200]);

struct campaign_spec {
  uint64_t number, seed;
  int pattern, size, precision; /* places in the tables above */
  int64_t rows, cols;           /* of A as it multiplies */
  int per_row;
  enum campaign_numbers values, x, y;
  int zeros; /* one value in eight is 0 */
  int duplicates, unsorted;
  int transposed;               /* the other way round is handed over, and the request says so */
  int row_bits, col_bits, base; /* of the arrays that are handed over */
  cbgen_memory memory;
  const char *recipe, *pack, *form;
  int steps; /* a bit for each of enum campaign_step */
  int update_from_host;
  double alpha[2], beta[2]; /* of the first product and the second */
};

struct campaign_spec campaign_spec_of(uint64_t seed, uint64_t number, const struct campaign_shares *shares);
void campaign_describe(const struct campaign_spec *spec, char text[400]);

/* ---- arrays: in host memory, mirrored on the device */

/* Room that is given away from its beginning. */
struct campaign_room {
  unsigned char *host; /* NULL: on the device alone */
  uint64_t device;
  size_t size, used;
};
enum { CAMPAIGN_NO_ROOM = -1 };
/* Where `bytes` lie in it, at a multiple of 256; CAMPAIGN_NO_ROOM. */
ptrdiff_t campaign_take(struct campaign_room *room, size_t bytes);

/* All places count from the room's begin. What is handed over is the same array where it can be. */
struct campaign_matrix {
  struct campaign_spec spec;
  int64_t entries;                               /* duplicates included */
  ptrdiff_t starts, columns, values, new_values; /* as it multiplies, of int32_t, from 0; values of the given type */
  ptrdiff_t given_starts, given_columns, given_values, given_new_values;
};

/* Makes its arrays. 0: there is no room for them, and what was taken is given back. A matrix that finds no room in an
 * empty room has a message in `why`. */
int campaign_make(struct campaign_matrix *matrix, const struct campaign_spec *spec, struct campaign_room *room);

/* As cbgen_compile takes it. */
cbgen_csr campaign_view(const struct campaign_matrix *matrix, const struct campaign_room *room, void *stream);

#endif
