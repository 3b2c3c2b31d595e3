// SPDX-License-Identifier: Apache-2.0
/* A libcusparse.so.12 for tests, on the memory of the fake driver: it multiplies, and looks closely at what
 * it is given. Every array must lie in a live block of device memory, as long as the format says.
 *
 * It is built for several versions, FAKE_CUSPARSE_VERSION (major·10000 + minor·100 + patch), each with the
 * SpMVOp of that version: none before 12.7.2, then one with other parameters from 12.7.3 and from 12.8. */
#ifndef CBGEN_TESTS_FAKE_CUSPARSE_H
#define CBGEN_TESTS_FAKE_CUSPARSE_H

struct fake_cusparse {
  long live;         /* handles, matrices, vectors and descriptors that exist */
  long calls;        /* so far */
  long op_calls;     /* of SpMVOp */
  long fail_at;      /* the call with this number answers CUSPARSE_STATUS_NOT_SUPPORTED; 0: none */
  long op_fail_at;   /* the same among the calls of SpMVOp */
  int lie;           /* products by the algorithm of this number (cusparseSpMVAlg_t, or of SpMM) are wrong; 0: none */
  int op_lie;        /* the same for cusparseSpMVOpAlg_t */
  int no_alg3;       /* SpMM has no algorithm 3 for this matrix */
  int uniform;       /* products of f32 values with f64 vectors are not supported */
  long preprocessed; /* calls of cusparseSpMV_preprocess that were fine */
  long misuses;
  char misuse[200]; /* the first of them */
};

#endif
