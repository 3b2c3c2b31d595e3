// SPDX-License-Identifier: Apache-2.0
/* A matrix of more than 2^31 nonzeros through analysis, packing and text: run by hand, for it takes minutes.
 *
 *   cmake --build BUILD --target huge_matrix && BUILD/tests/huge_matrix [nonzeros]
 *
 * The matrix needs little memory: its columns, and its values, which are all 1, are one file each that is mapped again
 * and again, side by side. It consists of dense blocks of 8 × 8, a block row of which has `ACROSS`; recipe `blocks`
 * then stores one index for 64 nonzeros. Prints the plan, times, and the memory of its own after each stage; fails
 * unless the text's indices have 64 bits. */
#include "analysis/plan/assignment.h"
#include "analysis/plan/blob.h"
#include "codegen/source.h"

#include "base/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SIZE = 8, ACROSS = 32, PER_ROW = SIZE * ACROSS, PERIOD_ROWS = 16384, COLUMNS = 1 << 20 };

static void stop(const char *what) {
  perror(what);
  exit(1);
}

/* `bytes` of a file, over and over, `times` times. */
static void *map_again(const void *bytes, size_t length, int64_t times) {
  char name[] = "/tmp/huge_matrix-XXXXXX";
  const int file = mkstemp(name);
  if (file < 0) stop(name);
  unlink(name);
  for (size_t at = 0; at < length;) {
    const ssize_t written = write(file, (const char *)bytes + at, length - at);
    if (written <= 0) stop("write");
    at += (size_t)written;
  }
  char *all = mmap(NULL, length * (size_t)times, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) stop("mmap");
  for (int64_t i = 0; i < times; i++)
    if (mmap(all + (size_t)i * length, length, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) stop("mmap");
  close(file);
  return all;
}

/* Column of place `k` of a row of the period: blocks at places that differ from block row to block row. */
static int32_t column_of(int64_t row, int64_t k) {
  const int64_t block = k / SIZE, step = COLUMNS / SIZE / ACROSS;
  return (int32_t)(SIZE * (block * step + row / SIZE * 7919 % step) + k % SIZE);
}

static struct cb_csr make_matrix(int64_t nonzeros) {
  const int64_t period = (int64_t)PERIOD_ROWS * PER_ROW, times = (nonzeros + period - 1) / period;
  struct cb_csr csr = {.rows = times * PERIOD_ROWS, .cols = COLUMNS, .nnz = times * period, .wide = 1};
  int32_t *columns = malloc((size_t)period * sizeof *columns);
  double *values = malloc((size_t)period * sizeof *values);
  int64_t *row_ptr = malloc(((size_t)csr.rows + 1) * sizeof *row_ptr);
  if (!columns || !values || !row_ptr) stop("malloc");
  for (int64_t k = 0; k < period; k++) {
    columns[k] = column_of(k / PER_ROW, k % PER_ROW);
    values[k] = 1;
  }
  for (int64_t row = 0; row <= csr.rows; row++) row_ptr[row] = row * PER_ROW;
  csr.row_ptr = row_ptr;
  csr.col_idx = map_again(columns, (size_t)period * sizeof *columns, times);
  csr.values = map_again(values, (size_t)period * sizeof *values, times);
  snprintf(csr.name, sizeof csr.name, "huge");
  free(columns);
  free(values);
  return csr;
}

/* Of the process's own, in KiB: the mapped files would count once for each time that they are mapped. */
static long own_memory(void) {
  char line[128];
  long own = 0;
  FILE *file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file)) sscanf(line, "RssAnon: %ld", &own);
  if (file) fclose(file);
  return own;
}

static void lap(const char *what, double *mark) {
  const double now = cb_seconds();
  printf("%-8s %7.1f s, then %.2f GiB\n", what, now - *mark, (double)own_memory() / (1 << 20));
  fflush(stdout);
  *mark = now;
}

static void must(enum cb_status s, const struct cb_diag *diag) {
  if (!s) return;
  fprintf(stderr, "%s: %s\n", cb_status_name(s), diag->message);
  exit(1);
}

int main(int argc, char **argv) {
  struct cb_diag diag = {0};
  struct cb_options options;
  struct cb_target target;
  struct cb_plan *plan;
  struct cb_assignment *assignment;
  struct cb_blob blob;
  struct cb_source source;
  double mark = cb_seconds();
  const struct cb_csr csr = make_matrix(argc > 1 ? atoll(argv[1]) : (INT64_C(1) << 31) + 1);
  printf("%lld x %lld, %lld nonzeros\n", (long long)csr.rows, (long long)csr.cols, (long long)csr.nnz);
  lap("matrix", &mark);
  cb_options_default(&options);
  must(cb_options_set(&options, "recipe", "blocks", &diag), &diag);
  must(cb_options_set(&options, "values", "fixed", &diag), &diag);
  must(cb_target_find(&target, "sm_90", &diag), &diag);
  must(cb_plan_build(&plan, &assignment, &csr, &target, &options, &diag), &diag);
  lap("analysis", &mark);
  printf("%s\n", plan->line);
  must(cb_pack(&blob, plan, assignment, &csr, (struct cb_hash){1, 2}, &diag), &diag);
  lap("packing", &mark);
  const struct cb_label label = {"huge", "huge", {1, 2}};
  must(cb_source_emit(&source, plan, &label, &blob, CB_EMBED_NEVER, &diag), &diag);
  lap("text", &mark);
  printf("%lld bytes of data, %lld of text\n", (long long)blob.length, (long long)source.length);
  const char *index = strstr(source.text + source.body, "using index_t = ");
  printf("%.*s\n", index ? (int)strcspn(index, "\n") : 0, index ? index : "");
  return !index || strncmp(index, "using index_t = int64_t;", 24);
}
