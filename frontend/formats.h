// SPDX-License-Identifier: Apache-2.0
/* The readers, one per format, and unpacking: what read.c chooses from. Each takes the whole file in memory
 * and leaves csr->name to the caller. */
#ifndef CBGEN_FRONTEND_FORMATS_H
#define CBGEN_FRONTEND_FORMATS_H

#include "base/file.h"
#include "frontend/csr.h"
#include "frontend/lines.h"

#include <stddef.h>

/* The file, or, for "-", standard input, as a source, which the mapping outlives; the caller unmaps that. */
enum cb_status cb_map_source(struct cb_source *source, struct cb_mapping *mapping, const char *path,
                             const struct cb_progress *progress, struct cb_diag *diag);

/* Matrix Market, coordinate or array. Array files are read as sparse: their zeros are no entries. */
int cb_is_matrix_market(const char *bytes, size_t length);
enum cb_status cb_read_matrix_market(struct cb_csr *csr, const struct cb_source *source,
                                     struct cb_diag *diag);

/* Edge lists: "from to [weight]", nodes from 0, one square matrix over all nodes up to the largest. */
enum cb_status cb_read_edges(struct cb_csr *csr, const struct cb_source *source, struct cb_diag *diag);

/* SciPy's scipy.sparse.save_npz. */
int cb_is_zip(const char *bytes, size_t length);
enum cb_status cb_read_npz(struct cb_csr *csr, const struct cb_source *source, struct cb_diag *diag);

/* A compressed file or an archive; the matrix in it comes back in a block of cb_alloc. */
int cb_is_packed(const char *bytes, size_t length);
enum cb_status cb_unpack(char **text, size_t *length, const struct cb_source *source, struct cb_diag *diag);

/* Reads all that the current member of a libarchive archive holds into a block of cb_alloc (8 bytes longer
 * than `length`, zeroed there). Refuses more than a file of `packed` bytes can hold in good faith. */
struct archive;
enum cb_status cb_read_member(char **bytes, size_t *length, struct archive *archive, const char *path,
                              size_t packed, struct cb_diag *diag);

#endif
