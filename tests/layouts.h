// SPDX-License-Identifier: Apache-2.0
/* What the tests of single layouts share: reading a region's arrays as its kernel does, matrices by the lengths of
 * their rows, and checks that every layout must pass: any number of threads, failing allocations, new values, products
 * against the oracle. Everything asserts through cmocka. */
#ifndef CBGEN_TESTS_LAYOUTS_H
#define CBGEN_TESTS_LAYOUTS_H

#include "tests/support.h"

/* ---- the region `product->region` */

const struct cb_region *region_of(const struct product *product);
int64_t constant(const struct product *product, const char *name, int64_t otherwise);
const char *fact(const struct product *product, const char *key); /* "none" where there is none */
int array_number(const struct product *product, const char *name); /* −1 where there is none */
const struct cb_array *array_of(const struct product *product, const char *name); /* NULL where there is none */

/* Element `i` of an index array as the kernel would get it, wherever it is stored. */
int64_t element(const struct product *product, const char *name, int64_t i);
double value_at(const struct product *product, int64_t slot); /* of array "values", type f64 */

/* Whether the generated text, device prelude and host section apart, has `words`; the host section too. */
int has(const struct product *product, const char *words);
int has_anywhere(const struct product *product, const char *words);

enum { MOST_WORDS = 8 };
struct words { /* that a product's text must have and must lack; NULL ends a list */
  const char *matrix, *settings, *has[MOST_WORDS], *lacks[MOST_WORDS];
};
void check_words(const struct product *product, const struct words *words);

/* Which rows have thread blocks of their own, and which of them several: facts "long" and "segments", and the text of
 * carries where there are segments. */
struct long_rows {
  const char *matrix, *rows, *segments;
};
void check_long_rows(const struct long_rows *cases, size_t count, const char *settings);

/* Columns of slots are none of the plan's: packing makes them, as large as the plan says and not all alike. Those that
 * are an affine sequence, or few enough to stand in the text, are the plan's at once. */
struct late_array {
  const char *matrix, *settings, *array;
  int region;
  enum cb_storage storage;
};
void check_late_arrays(const struct late_array *cases, size_t count);

/* ---- a picture of the matrix that the arrays describe */

struct picture {
  int64_t rows, cols;
  double *values; /* by row and column */
  int *commits;   /* by row */
  int64_t slots;  /* seen so far */
};
struct picture picture_for(const struct cb_csr *csr);
void see_value(struct picture *picture, int64_t row, int64_t column, double value);

/* Every nonzero once, in its place, and nothing else. Releases the picture. */
void check_picture_and_release(struct picture *picture, const struct cb_csr *csr);

/* rows × cols with rows of the lengths given, over and over, from the left with steps of `stride`; values 1, 2, …. */
struct cb_csr rows_of_lengths(int64_t rows, int64_t cols, int64_t stride, const int *lengths, int count);

/* ---- checks */

/* What planning says, for a target; the plan is dropped. */
enum cb_status plan_status(const struct cb_csr *csr, const char *settings, const char *arch, struct cb_diag *message);
enum cb_status plan_status_of(const char *matrix, const char *settings, struct cb_diag *message); /* for sm_90 */

/* One, two and five threads give the same plan, text and data. Leaves one thread. */
void check_threads(const char *matrix, const char *settings);

/* Fails each allocation from analysis to text, in turn alone and with all that follow: a clean status each time.
 * Returns how many failed. Takes the matrix; leaves one thread. */
int check_allocations(struct cb_csr csr, const char *settings);

/* Other values, packed anew, are what a fresh pack of them gives. */
void check_new_values(struct product *product);

/* ---- products against the oracle */

struct gathered {
  int count, room;
  struct product *products;
  char (*names)[256];
};
struct product *gather(struct gathered *gathered, const char *matrix, const char *settings);
struct product *gather_matrix(struct gathered *gathered, struct cb_csr csr, const char *name, const char *settings);
void gather_kinds(struct gathered *gathered, const char *matrix, const char *settings); /* two types, three forms */
void verify_gathered(struct gathered *gathered);                                        /* and releases them */

/* All kinds of matrices with settings, behind those of `recipe`. */
void verify_kinds(const char *const (*cases)[2], size_t count, const char *recipe);

/* What a kernel cannot do without: its words are replaced by others, and verification must see it. */
struct change {
  const char *matrix, *settings, *words, *instead;
};
void check_changes_are_seen(const struct change *changes, size_t count, const char *recipe);

#endif
