// SPDX-License-Identifier: Apache-2.0
/* The evidence of self-tests: see evidence.h. */
#include "runtime/verify/evidence.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/real.h"
#include "runtime/verify/emulation/jobs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

/* ---- what is expected */

enum cb_status cb_evidence_embedded(unsigned char **bytes, size_t *length, const char *text,
                                    struct cb_diag *diag) {
  static const char begin[] = "_data[] = {";
  const char *at = strstr(text, begin), *end = at ? strchr(at, '}') : NULL;
  const size_t room = end ? (size_t)(end - at) / 3 + 8 : 0; /* "0x0" at least for each */
  *bytes = NULL;
  *length = 0;
  if (!room) return CB_OK;
  *bytes = cb_alloc(room, sizeof(uint64_t));
  if (!*bytes) return cb_fail_memory(diag, "a kernel's data", room * sizeof(uint64_t));
  for (at += sizeof begin - 1; at < end; at++) {
    char *next;
    if (*at != '0') continue;
    const uint64_t word = strtoull(at, &next, 16);
    memcpy(*bytes + *length, &word, sizeof word);
    *length += sizeof word;
    at = next;
  }
  return CB_OK;
}

static enum cb_status keep_numbers(struct cb_evidence *evidence, const unsigned char *data, size_t length, int64_t at,
                                   struct cb_diag *diag) {
  const size_t bytes = 2 * (size_t)evidence->rows * sizeof *evidence->numbers;
  if (at < 0 || (size_t)at > length || length - (size_t)at < bytes) return CB_OK;
  evidence->numbers = cb_alloc(bytes + 1, 1);
  if (!evidence->numbers) return cb_fail_memory(diag, "what a self-test expects", bytes);
  memcpy(evidence->numbers, data + at, bytes);
  return CB_OK;
}

/* A file that cannot be read has no bytes. */
static enum cb_status map_data(struct cb_mapping *mapping, const char *path, struct cb_diag *diag) {
  return cb_file_map(mapping, path, NULL) == CB_ERR_MEMORY ? cb_fail_memory(diag, path, 0) : CB_OK;
}

/* "using vector_t = double;" */
enum cb_type cb_evidence_type(const char *text) {
  static const char before[] = "using vector_t = ";
  const char *const at = strstr(text, before), *const name = at ? at + sizeof before - 1 : "";
  for (int type = CB_F64; type <= CB_C128; type++) {
    const char *const own = cb_type_entry_name((enum cb_type)type);
    const size_t length = strlen(own);
    if (!strncmp(name, own, length) && name[length] == ';') return (enum cb_type)type;
  }
  return CB_TYPE_COUNT;
}

enum cb_status cb_evidence_expect(struct cb_evidence *evidence, const char *text, const char *data,
                                  struct cb_diag *diag) {
  const char *sizes = strstr(text, "constexpr size_t kRowCount = ");
  long long rows, cols, at;
  size_t length = 0;
  unsigned char *own;
  struct cb_mapping mapping = {0};
  *evidence = (struct cb_evidence){0};
  if (!sizes || sscanf(sizes, "constexpr size_t kRowCount = %lld, kColCount = %lld, kExpected = %lld", &rows, &cols,
                       &at) != 3 ||
      rows < 0 || rows > INT32_MAX || cols < 0 || cols > INT32_MAX)
    return cb_fail(diag, CB_ERR_FORMAT, "the text is no kernel of cbgen's with a self-test, so there is nothing to verify");
  const enum cb_type type = cb_evidence_type(text);
  evidence->rows = type == CB_TYPE_COUNT ? rows : cb_type_parts(type) * rows;
  evidence->cols = cols;
  evidence->type = cb_type_of_part(type);
  enum cb_status s = cb_evidence_embedded(&own, &length, text, diag);
  if (own)
    s = keep_numbers(evidence, own, length, at, diag);
  else if (!s && *data && !(s = map_data(&mapping, data, diag)))
    s = keep_numbers(evidence, (const unsigned char *)mapping.bytes, mapping.length, at, diag);
  cb_free(own);
  cb_file_unmap(&mapping);
  return s;
}

void cb_evidence_release(struct cb_evidence *evidence) {
  cb_free(evidence->numbers);
  *evidence = (struct cb_evidence){0};
}

/* ---- what is shown */

void cb_evidence_demand(struct cb_evidence *evidence, const char *path, char file[4480], char number[64]) {
  struct timespec now = {0};
  if (getrandom(&evidence->nonce, sizeof evidence->nonce, GRND_NONBLOCK) != (ssize_t)sizeof evidence->nonce) {
    clock_gettime(CLOCK_REALTIME, &now);
    evidence->nonce += (uint64_t)now.tv_nsec * 0x9e3779b97f4a7c15u;
  }
  snprintf(file, 4480, "CBGEN_EMULATION_EVIDENCE=%s", path);
  snprintf(number, 64, "CBGEN_EMULATION_NONCE=%llu", (unsigned long long)evidence->nonce);
}

static int is_good(double got, double expected, double tolerance) {
  if (isnan(expected)) return isnan(got);
  return got == expected || fabs(got - expected) <= tolerance;
}

static enum cb_status compare(const struct cb_evidence *evidence, const unsigned char *y, struct cb_diag *diag) {
  for (int64_t row = 0; row < evidence->rows; row++) {
    const double got = cb_real_get(y, evidence->type, row), expected = evidence->numbers[row];
    if (!is_good(got, expected, evidence->numbers[evidence->rows + row]))
      return cb_fail(diag, CB_ERR_WRONG, "the self-test calls the product right, and row %lld is %.17g instead of %.17g",
                     (long long)row, got, expected);
  }
  return CB_OK;
}

static enum cb_status judge(const struct cb_evidence *evidence, const struct cb_mapping *file, struct cb_diag *diag) {
  struct emulation_evidence shown = {0};
  const size_t rows = (size_t)evidence->rows;
  if (file->length >= sizeof shown) memcpy(&shown, file->bytes, sizeof shown);
  if (shown.nonce != evidence->nonce || !shown.launches || shown.bytes != file->length - sizeof shown)
    return cb_fail(diag, CB_ERR_WRONG, "the program ended as if all were well, and no kernel ran that gave a y");
  if (evidence->type == CB_TYPE_COUNT || shown.bytes != rows * cb_type_size(evidence->type))
    return cb_fail(diag, CB_ERR_WRONG, "the program ended as if all were well, and its y has %llu bytes for %zu rows",
                   (unsigned long long)shown.bytes, rows);
  if (!evidence->numbers)
    return cb_fail(diag, CB_ERR_WRONG, "the program ended as if all were well, and its data do not say what is expected");
  return compare(evidence, (const unsigned char *)file->bytes + sizeof shown, diag);
}

enum cb_status cb_evidence_judge(const struct cb_evidence *evidence, const char *path, struct cb_diag *diag) {
  struct cb_mapping file = {0};
  if (!evidence->rows) return CB_OK; /* there is nothing to compute */
  cb_file_map(&file, path, NULL);
  const enum cb_status s = judge(evidence, &file, diag);
  cb_file_unmap(&file);
  return s;
}
