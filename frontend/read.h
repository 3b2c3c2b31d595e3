// SPDX-License-Identifier: Apache-2.0
/* Reading a matrix from a file, whatever its format and packing, and building one from a named shape. */
#ifndef CBGEN_FRONTEND_READ_H
#define CBGEN_FRONTEND_READ_H

#include "base/status.h"
#include "frontend/csr.h"

/* Called now and then with the bytes done and in all (0: unknown), never concurrently. */
struct cb_progress {
  void (*report)(void *user, const char *what, int64_t done, int64_t total);
  void *user;
};

/* Reads `path` into a canonical matrix. The format is told from the content first and the name second:
 *   Matrix Market (coordinate or array; real, integer, pattern; general, symmetric, skew-symmetric, hermitian),
 *   plain or packed as .gz, .zst, .xz, .bz2, or as the SuiteSparse collection's NAME.tar.gz (NAME/NAME.mtx);
 *   SciPy .npz (CSR, CSC, COO);   SNAP edge lists (.txt, .tsv, .edges, '#' comments), also packed;
 *   "generate:SHAPE,KEY=VALUE,…": a matrix of frontend/generate.h;   "-": any of these files from standard input.
 * `progress` may be NULL. Errors read "file:line: what is wrong; remedy". */
enum cb_status cb_matrix_read(struct cb_csr *csr, const char *path, const struct cb_progress *progress,
                              struct cb_diag *diag);

/* The same from memory: `name` stands for the file in messages and tells the format where content does not.
 * The fuzz targets and tests call this. */
enum cb_status cb_matrix_read_bytes(struct cb_csr *csr, const char *name, const char *bytes, size_t length,
                                    struct cb_diag *diag);

/* Writes Matrix Market coordinate text ("%.17g"; pattern matrices as pattern), atomically. */
enum cb_status cb_matrix_write(const struct cb_csr *csr, const char *path, struct cb_diag *diag);

#endif
