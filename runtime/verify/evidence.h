// SPDX-License-Identifier: Apache-2.0
/* What a kernel.cu must show to be called verified. Its self-test's word is not enough: a program without a kernel says
 * "ok" as well. So the emulator writes down what was copied from the device last and how many kernels had run, under a
 * number that is drawn anew for each run, and this side compares that with what the data expect.
 *
 *   cb_evidence_expect   rows and expected values, from the text and its data
 *   cb_evidence_demand   a file's name and a number, for the environment of the run
 *   cb_evidence_judge    after the run
 *
 * It shows that the kernel computed y. It does not show that the text means well: it may do whatever its reader may. */
#ifndef CBGEN_RUNTIME_VERIFY_EVIDENCE_H
#define CBGEN_RUNTIME_VERIFY_EVIDENCE_H

#include "base/status.h"
#include "base/types.h"

#include <stdint.h>

struct cb_evidence {
  int64_t rows, cols; /* rows: real numbers of y, of complex ones two for each row */
  enum cb_type type; /* of these; CB_TYPE_COUNT: the text does not say */
  double *numbers; /* owned; rows expected values, then rows tolerances; NULL when the data have none */
  uint64_t nonce;
};

/* `data`: the path of the data file; "" when they stand in the text, or are nowhere. CB_ERR_FORMAT: the text is no
 * kernel with a self-test. Data that are missing or have no self-test part are the self-test's to complain of.
 * CB_ERR_MEMORY. */
enum cb_status cb_evidence_expect(struct cb_evidence *evidence, const char *text, const char *data,
                                  struct cb_diag *diag);
void cb_evidence_release(struct cb_evidence *evidence);

/* What other readers of a kernel.cu want of it, too: the words of the text's data array, written anew as bytes (*bytes
 * is the caller's, and NULL when there is none), and the type of x and y (CB_TYPE_COUNT: the text does not say). */
enum cb_status cb_evidence_embedded(unsigned char **bytes, size_t *length, const char *text, struct cb_diag *diag);
enum cb_type cb_evidence_type(const char *text);

/* Two "NAME=VALUE"s; the file that `path` names need not be there. */
void cb_evidence_demand(struct cb_evidence *evidence, const char *path, char file[4480], char number[64]);

/* CB_ERR_WRONG: there is none, no kernel ran, or a row is not what is expected. */
enum cb_status cb_evidence_judge(const struct cb_evidence *evidence, const char *path, struct cb_diag *diag);

#endif
