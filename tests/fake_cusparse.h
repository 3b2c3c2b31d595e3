// SPDX-License-Identifier: Apache-2.0
/* A libcusparse.so.12 for tests, on the memory of the fake driver: it multiplies, and looks closely at what
 * it is given. Every array must lie in a live block of device memory, as long as the format says. */
#ifndef CBGEN_TESTS_FAKE_CUSPARSE_H
#define CBGEN_TESTS_FAKE_CUSPARSE_H

struct fake_cusparse {
  long live;         /* handles, matrices, vectors and descriptors that exist */
  long calls;        /* so far */
  long fail_at;      /* the call with this number answers CUSPARSE_STATUS_NOT_SUPPORTED; 0: none */
  int lie;           /* products by the algorithm of this number (cusparseSpMVAlg_t) are wrong; 0: none */
  int uniform;       /* products of f32 values with f64 vectors are not supported */
  long preprocessed; /* calls of cusparseSpMV_preprocess that were fine */
  long misuses;
  char misuse[200]; /* the first of them */
};

#endif
