// SPDX-License-Identifier: Apache-2.0
/* Matrices in all the forms in which a caller of cbgen.h may have them, vectors, and what a product must give: for
 * programs that check libcbgen from outside (native.h). Only the host's arithmetic is trusted. */
#ifndef CBGEN_BENCH_SAMPLE_H
#define CBGEN_BENCH_SAMPLE_H

#include "bench/native.h"
#include "cbgen.h"

enum shape {
  SHAPE_RANDOM,     /* up to twice per_row columns anywhere */
  SHAPE_POWER_LAW,  /* some columns and rows far more often than others */
  SHAPE_DIAGONALS,  /* per_row of them, all full */
  SHAPE_BLOCKS,     /* dense 3 x 3 blocks */
  SHAPE_LONG_ROWS,  /* one in 500 holds a third of all columns */
  SHAPE_EMPTY_ROWS, /* six of seven */
  SHAPE_DENSE,
  SHAPE_EMPTY,
  SHAPES
};

/* What a matrix is made of. Equal specifications give equal matrices. */
struct specification {
  enum shape shape;
  int64_t rows, cols;
  int per_row;
  int duplicates; /* one entry in four in two or three parts */
  int unsorted;
  int plain_values; /* multiples of 1/16 that every type holds, also when duplicates are summed; always so with these */
  uint64_t seed;
};

/* How it is handed over. */
struct form {
  int row_bits, col_bits, base; /* bits 0: 32 */
  cbgen_type type;
  cbgen_memory memory;
  int no_values;
};

struct sample {
  int64_t rows, cols, entries;
  int64_t *starts;
  int32_t *columns;
  double *values; /* as the form's type holds them */
  struct specification specification;
  struct form form;
  void *arrays[3]; /* row pointers, columns, values in the form */
  address_t there[3];
  cbgen_csr view;
};

struct sample new_sample(struct specification specification, struct form form);
void free_sample(struct sample *sample);
/* Other values, in the sample's arrays on the host (and on the device, when it lies there), for the same pattern. */
void renew_sample(struct sample *sample, uint64_t seed);

size_t size_of_type(cbgen_type type);
double round_to_type(double value, cbgen_type type);
void store(void *array, cbgen_type type, int64_t i, double value);
uint64_t draw(uint64_t *seed); /* 64 random bits */

/* ---- products */

struct vectors {
  cbgen_type type;
  int64_t rows, cols;
  double *x, *y; /* on the host: before the product */
  address_t x_there, y_there;
};

struct vectors new_vectors(const cbgen_operator *op, uint64_t seed); /* on the current GPU */
void fill_vectors(struct vectors *vectors, uint64_t seed);
void spoil_y(const struct vectors *vectors); /* full of NaN on the device */
void free_vectors(struct vectors *vectors);
cbgen_product product_of(const struct vectors *vectors, double alpha, double beta, void *stream);
/* y on the device, for comparing bit by bit; the caller's. *bytes may be NULL. */
unsigned char *take_y(const struct vectors *vectors, size_t *bytes);

/* Row i of y = α A x + β y₀ is right when it differs from a long double product by at most
 *   γ(nᵢ + 4) (|α||A||x| + |β||y₀|)ᵢ + (nᵢ|α| + 2) η + u_y |yᵢ|        γ(k) = k u / (1 − k u)
 * with u and η of the type of sums, u_y of y's when it is narrower. Returns how many rows are not; `message` (if any
 * is) says which is the first. The operator's types are those of its info. */
int64_t count_wrong_rows(const cbgen_operator *op, const struct sample *sample, int transposed,
                         const struct vectors *vectors, double alpha, double beta, char message[200]);

#endif
