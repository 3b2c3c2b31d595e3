// SPDX-License-Identifier: Apache-2.0
/* Packing on the device beside packing on the host, through libcbgen: whether both give the same operator, byte for
 * byte, and what the parts of set-up take.
 *
 *   bench_device_pack [--recipes A,B] [--repeats N] [MATRIX…]      MATRIX: a file, or generate:SHAPE
 *
 * One process, GPU 0, CSR on the device, no cache. For each matrix and recipe (all that can be packed on the device,
 * and auto among them) two lines, host and device: medians of N compilations (3) behind a first one, part by part, in
 * milliseconds. "first" is the wall clock from the call of cbgen_compile to the end of the first product; "set-up" the
 * same without the kernel's own compilation, which another machine's cache would have. Operators are saved and compared;
 * a recipe that refuses the matrix has one line that says so, and one that was left to the host says that.
 *
 * The exit status is 1 when operators differ, or anything failed. */
#include "bench/common.h"

#include "base/clock.h"
#include "base/memory.h"
#include "cbgen.h"
#include "frontend/read.h"
#include "runtime/cuda/driver.h"
#include "runtime/measure/timer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_REPEATS = 25, COLUMNS = 8 };

static const char *const columns[COLUMNS] = {"hash", "analysis", "pack", "compile", "load", "upload", "first", "set-up"};

struct work {
  const struct cb_device *device;
  int repeats;
  struct cb_csr csr;
  cbgen_csr view;
  cb_device_ptr arrays[3], x, y;
  int left_to_host;
  struct cb_diag diag;
};

/* ---- the matrix */

static enum cb_status put_zeros(struct work *work, cb_device_ptr *vector, size_t count) {
  const enum cb_status s = bench_put(work->device, vector, NULL, count * sizeof(double), &work->diag);
  return s ? s : cb_device_fill(work->device, *vector, 0, count * sizeof(double), &work->diag);
}

static enum cb_status make_matrix(struct work *work, const char *name) {
  enum cb_status s = cb_matrix_read(&work->csr, name, NULL, &work->diag);
  if (!s) s = bench_put_matrix(&work->view, work->arrays, work->device, &work->csr, &work->diag);
  if (!s) s = put_zeros(work, &work->x, (size_t)work->csr.cols);
  return s ? s : put_zeros(work, &work->y, (size_t)work->csr.rows);
}

static void release(struct work *work) {
  for (int i = 0; i < 3; i++) cb_device_free(work->device, work->arrays[i]);
  cb_device_free(work->device, work->x);
  cb_device_free(work->device, work->y);
  cb_csr_release(&work->csr);
}

/* ---- operators */

static void hear(void *user, const char *line) {
  struct work *work = user;
  if (strstr(line, "planned and packed on the host")) work->left_to_host = 1;
}

static enum cb_status failed(struct work *work, cbgen_status status, const char *message) {
  return cb_fail(&work->diag, (enum cb_status)status, "%s", message);
}

static enum cb_status open_context(struct work *work, cbgen_context **context, const char *recipe, const char *pack) {
  cbgen_status status = cbgen_context_create(context);
  if (status) return failed(work, status, "no context");
  cbgen_set_log(*context, hear, work);
  status = cbgen_set(*context, "cache", "");
  if (!status) status = cbgen_set(*context, "recipe", recipe);
  if (!status) status = cbgen_set(*context, "pack", pack);
  return status ? failed(work, status, cbgen_message(*context)) : CB_OK;
}

/* Compiles and multiplies once. */
static enum cb_status compile(struct work *work, cbgen_context *context, double ms[COLUMNS], cbgen_operator **op) {
  const cbgen_product product = {.struct_size = sizeof product, .alpha = 1, .x = (void *)(uintptr_t)work->x,
                                 .y = (void *)(uintptr_t)work->y};
  const double start = cb_seconds();
  cbgen_info info = {.struct_size = sizeof info};
  cbgen_status status = cbgen_compile(context, &work->view, NULL, op);
  if (status) return failed(work, status, cbgen_message(context));
  status = cbgen_multiply(*op, &product);
  const enum cb_status s = status ? failed(work, status, cbgen_operator_message(*op))
                                  : cb_device_wait(work->device, "a product", &work->diag);
  const double first = cb_seconds() - start;
  cbgen_operator_info(*op, &info);
  const double seconds[COLUMNS] = {info.hash_seconds,    info.analysis_seconds, info.pack_seconds,
                                   info.compile_seconds, info.load_seconds,     info.upload_seconds,
                                   first,                first - info.compile_seconds};
  for (int i = 0; i < COLUMNS; i++) ms[i] = 1e3 * seconds[i];
  return s;
}

/* Behind a first compilation, which also makes the library's own kernels. The last operator is kept. */
static enum cb_status measure(struct work *work, cbgen_context *context, double median[COLUMNS], cbgen_operator **op) {
  double ms[MOST_REPEATS + 1][COLUMNS], numbers[MOST_REPEATS];
  enum cb_status s = CB_OK;
  for (int i = 0; i <= work->repeats && !s; i++) {
    cbgen_operator_free(*op);
    *op = NULL;
    s = compile(work, context, ms[i], op);
  }
  for (int column = 0; column < COLUMNS && !s; column++) {
    for (int i = 0; i < work->repeats; i++) numbers[i] = ms[i + 1][column];
    median[column] = cb_median(numbers, work->repeats);
  }
  return s;
}

static enum cb_status save(struct work *work, cbgen_operator *op, unsigned char **bytes, size_t *length) {
  cbgen_status status = cbgen_operator_save(op, NULL, 0, length);
  if (status) return failed(work, status, cbgen_operator_message(op));
  *bytes = cb_alloc(*length, 1);
  if (!*bytes) return cb_fail_memory(&work->diag, "a saved operator", *length);
  status = cbgen_operator_save(op, *bytes, *length, length);
  return status ? failed(work, status, cbgen_operator_message(op)) : CB_OK;
}

/* One way; the operator's bytes are the caller's. */
static enum cb_status run(struct work *work, const char *recipe, const char *pack, double median[COLUMNS],
                          unsigned char **bytes, size_t *length) {
  cbgen_context *context = NULL;
  cbgen_operator *op = NULL;
  work->left_to_host = 0;
  enum cb_status s = open_context(work, &context, recipe, pack);
  if (!s) s = measure(work, context, median, &op);
  if (!s) s = save(work, op, bytes, length);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  return s;
}

static void print_line(const char *name, const char *recipe, const char *pack, const double ms[COLUMNS],
                       const char *remark) {
  printf("%-34.34s %-7s %-7s", name, recipe, pack);
  for (int i = 0; i < COLUMNS; i++) printf(" %9.2f", ms[i]);
  printf("  %s\n", remark);
  fflush(stdout);
}

/* Both ways. */
static enum cb_status compare(struct work *work, const char *name, const char *recipe) {
  double here[COLUMNS], there[COLUMNS];
  unsigned char *bytes[2] = {NULL, NULL};
  size_t length[2] = {0, 0};
  enum cb_status s = run(work, recipe, "host", here, &bytes[0], &length[0]);
  if (s == CB_ERR_UNSUPPORTED || s == CB_ERR_LIMIT) {
    printf("%-34.34s %-7s refused: %.60s\n", name, recipe, work->diag.message);
    return CB_OK;
  }
  if (!s) s = run(work, recipe, "device", there, &bytes[1], &length[1]);
  const int same = !s && length[0] == length[1] && !memcmp(bytes[0], bytes[1], length[0]);
  if (!s) print_line(name, recipe, "host", here, "");
  if (!s)
    print_line(name, recipe, "device", there, work->left_to_host ? "left to the host" : same ? "same bytes" : "DIFFERS");
  cb_free(bytes[0]);
  cb_free(bytes[1]);
  if (!s && !same && strcmp(recipe, "auto")) s = cb_fail(&work->diag, CB_ERR_WRONG, "recipe '%s' differs", recipe);
  return s;
}

static int check_matrix(const struct cb_device *device, int repeats, const char *name, const char *recipes) {
  struct work work = {.device = device, .repeats = repeats};
  char list[256], *state = NULL;
  enum cb_status s = make_matrix(&work, name);
  int good = !s;
  snprintf(list, sizeof list, "%s", recipes);
  if (s) fprintf(stderr, "%s: %s\n", name, work.diag.message);
  for (char *recipe = strtok_r(list, ",", &state); recipe && !s; recipe = strtok_r(NULL, ",", &state)) {
    const enum cb_status of_recipe = compare(&work, name, recipe);
    if (of_recipe) fprintf(stderr, "%s, %s: %s\n", name, recipe, work.diag.message);
    good &= !of_recipe;
  }
  release(&work);
  return good;
}

int main(int count, char **words) {
  static const char *const standard[] = {"generate:fe3,n=80", "generate:stencil7,n=220",
                                         "generate:rmat,scale=22,edge_factor=16", NULL};
  const char *recipes = "blocks,dia,sell,merge,hot";
  struct cb_driver *driver = NULL;
  struct cb_device *device = NULL;
  int repeats = 3, at = 1, good = 1;
  for (; at + 1 < count && !strncmp(words[at], "--", 2); at += 2) {
    if (!strcmp(words[at], "--recipes")) recipes = words[at + 1];
    if (!strcmp(words[at], "--repeats")) repeats = atoi(words[at + 1]);
  }
  if (repeats < 1 || repeats > MOST_REPEATS) repeats = 3;
  if (!bench_open(&driver, &device)) return 1;
  printf("%-34s %-7s %-7s", "matrix", "recipe", "pack");
  for (int i = 0; i < COLUMNS; i++) printf(" %9s", columns[i]);
  printf("  (ms)\n");
  for (int i = 0; at == count && standard[i]; i++) good &= check_matrix(device, repeats, standard[i], recipes);
  for (; at < count; at++) good &= check_matrix(device, repeats, words[at], recipes);
  bench_close(driver, device);
  return !good;
}
