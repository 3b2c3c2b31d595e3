// SPDX-License-Identifier: Apache-2.0
/* How fast matrices are read and generated, and how much memory that takes.
 *
 *   bench_read FILE            reads FILE (or "generate:SHAPE,…") and reports MB/s, seconds, peak memory over CSR
 *   bench_read FILE REPEATS    the best of several times
 *   bench_read SPEC -o FILE    writes what it read as Matrix Market text
 *
 * Peak memory is VmHWM: everything resident at once, pages of the mapped file included. */
#include "base/clock.h"
#include "frontend/read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A field of /proc/self/status in bytes, 0 if there is none. */
static double status_field(const char *name) {
  char line[256];
  double bytes = 0;
  FILE *file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file))
    if (!strncmp(line, name, strlen(name))) bytes = 1024 * strtod(line + strlen(name) + 1, NULL);
  if (file) fclose(file);
  return bytes;
}

static int fail(const struct cb_diag *diag) {
  fprintf(stderr, "%s\n", diag->message);
  return 1;
}

static int write_out(const struct cb_csr *csr, const char *path) {
  struct cb_diag diag = {0};
  const double start = cb_seconds();
  if (cb_matrix_write(csr, path, &diag)) return fail(&diag);
  struct stat info = {0};
  stat(path, &info);
  printf("wrote %.1f MB at %.0f MB/s\n", 1e-6 * (double)info.st_size,
         1e-6 * (double)info.st_size / (cb_seconds() - start));
  return 0;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: bench_read FILE [REPEATS | -o OUTPUT]\n");
    return 2;
  }
  const char *output = argc == 4 && !strcmp(argv[2], "-o") ? argv[3] : NULL;
  const int repeats = argc == 3 ? atoi(argv[2]) : 1;
  struct stat info = {0};
  struct cb_csr csr = {0};
  struct cb_diag diag = {0};
  double best = 1e30;
  const double before = status_field("VmHWM");
  stat(argv[1], &info);
  for (int i = 0; i < repeats; i++) {
    cb_csr_release(&csr);
    const double start = cb_seconds();
    if (cb_matrix_read(&csr, argv[1], NULL, &diag)) return fail(&diag);
    if (cb_seconds() - start < best) best = cb_seconds() - start;
  }
  const double peak = status_field("VmHWM"), bytes = (double)cb_csr_bytes(&csr);
  printf("%s: %lld x %lld, %lld nonzeros\n", csr.name, (long long)csr.rows, (long long)csr.cols,
         (long long)csr.nnz);
  printf("  %.3f s, %.0f MB/s of file, %.1f M nonzeros/s\n", best, 1e-6 * (double)info.st_size / best,
         1e-6 * (double)csr.nnz / best);
  printf("  CSR %.1f MB, peak %.1f MB (%.1f MB before), %.2f times the CSR\n", 1e-6 * bytes, 1e-6 * peak,
         1e-6 * before, peak / bytes);
  const int failed = output && write_out(&csr, output);
  cb_csr_release(&csr);
  return failed;
}
