// SPDX-License-Identifier: Apache-2.0
/* What the first product of a matrix costs that nobody has seen: nothing in the cache, CSR on the device, from the call of
 * cbgen_compile to the end of the first product, wall clock.
 *
 *   bench_cold_start [--json FILE] [--repeats N] MATRIX…      MATRIX: a file, or generate:SHAPE
 *
 * One process, GPU 0. "first" is the process's first operator (of the first matrix), from the creation of its context.
 * For all others a small operator was made before in the same context. The median of N is shown (5); from the second on
 * the CUDA context has the family's kernel, as it may have at the first by another matrix: the first's time is in the JSON
 * and, of all, in the summary. Then the family's
 * product and that of the specialised kernel, whose result must be the same bits, are timed in turns, since the
 * machine's pace drifts by more than they differ; medians are shown. They are timed as launches, where a product of 3 us
 * takes the time that the host needs for it, and as graphs of 100 products, which is what the kernels take. And cuSPARSE's csr-alg1 with its own preparation, up to 4 M nonzeros. "even" is the number of products from which cbgen
 * is ahead of it, set-up included. A table comes last. The exit status is 1 when bits differ, or anything failed.
 *
 *   bench_cold_start --host 1 MATRIX…      the host's part alone: nothing is compared, and with the null driver
 *                                          (null_driver.c) calls of the driver are counted */
#include "bench/common.h"

#include "base/clock.h"
#include "base/memory.h"
#include "bench/null_driver.h"
#include "cbgen.h"
#include "frontend/generate.h"
#include "frontend/read.h"
#include "runtime/cuda/driver.h"
#include "runtime/measure/cusparse.h"
#include "runtime/measure/timer.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PARTS = 6, MOST_REPEATS = 25, MOST_MATRICES = 1024, BATCHES = 7, SMALL = 1000000, FEW = 60000, COMPARED = 4000000 };

struct result {
  char name[96], plan[24], origin; /* of the binary: 'b'rought, 'k'ept in the cache, 'c'ompiled, 'm': in memory, '-' specialised */
  int64_t nnz;
  double first_ms, least_ms, worst_ms, prepare_ms; /* of the first product: median, least and worst; of csr-alg1 */
  double fresh_ms;                                 /* the first of them, whose family may be new to the process */
  struct null_driver_calls calls;                  /* of one first product */
  double parts[PARTS];                   /* of the set-up, in ms: see part_names */
  double family_us, special_us, cusparse_us, specialise_ms;
  double family_graph_us, special_graph_us; /* 0: this driver captures no graphs */
};
static const char *const part_names[PARTS] = {"hash", "analysis", "compile", "pack", "load", "store"};

struct work {
  const struct cb_device *device;
  struct cb_timer *timer, *graphs; /* of launches; of graphs */
  struct cb_cusparse *cusparse;    /* NULL: none */
  struct cb_csr csr;
  cbgen_csr view, small;
  cb_device_ptr arrays[3], x, y;
  unsigned char *bytes[2]; /* of y */
  struct result *result;
  struct cb_diag diag;
  int host_alone;
  null_driver_asked *asked; /* NULL: it is another driver */
};

static enum cb_status failed(struct work *work, cbgen_status status, const char *message) {
  return cb_fail(&work->diag, (enum cb_status)status, "%s", message);
}

/* ---- the matrix */

static enum cb_status make_vectors(struct work *work) {
  const size_t rows = (size_t)work->csr.rows, cols = (size_t)work->csr.cols;
  double *x = cb_calloc(cols + CB_BASELINE_PADDING, sizeof *x);
  for (int i = 0; i < 2; i++) work->bytes[i] = cb_calloc(rows, sizeof *x);
  if (!x || !work->bytes[0] || !work->bytes[1]) return cb_fail_memory(&work->diag, "vectors", rows * sizeof *x);
  for (size_t i = 0; i < cols; i++) x[i] = 1.0 + (double)(i % 1021) / 1021;
  enum cb_status s =
      bench_put(work->device, &work->x, x, (cols + CB_BASELINE_PADDING) * sizeof *x, &work->diag);
  if (!s) s = bench_put(work->device, &work->y, NULL, (rows + CB_BASELINE_PADDING) * sizeof *x, &work->diag);
  cb_free(x);
  return s;
}

static enum cb_status make_matrix(struct work *work, const char *name) {
  enum cb_status s = cb_matrix_read(&work->csr, name, NULL, &work->diag);
  if (!s) s = bench_put_matrix(&work->view, work->arrays, work->device, &work->csr, &work->diag);
  return s ? s : make_vectors(work);
}

static void release(struct work *work) {
  for (int i = 0; i < 3; i++) cb_device_free(work->device, work->arrays[i]);
  cb_device_free(work->device, work->x);
  cb_device_free(work->device, work->y);
  cb_free(work->bytes[0]);
  cb_free(work->bytes[1]);
  cb_csr_release(&work->csr);
}

/* ---- products */

static enum cb_status multiply(struct work *work, cbgen_operator *op) {
  const cbgen_product product = {.struct_size = sizeof product, .alpha = 1, .x = (void *)(uintptr_t)work->x,
                                 .y = (void *)(uintptr_t)work->y};
  const cbgen_status status = cbgen_multiply(op, &product);
  if (status) return failed(work, status, cbgen_operator_message(op));
  return cb_device_wait(work->device, "a product", &work->diag);
}

static enum cb_status take(struct work *work, int which) {
  return cb_device_download(work->device, work->bytes[which], work->y, (size_t)work->csr.rows * sizeof(double), "y",
                            &work->diag);
}

static enum cb_status time_product(struct work *work, cbgen_operator *op, double *us) {
  double seconds = 0;
  const cbgen_status status = cbgen_operator_measure(op, &seconds);
  *us = 1e6 * seconds;
  return status ? failed(work, status, cbgen_operator_message(op)) : CB_OK;
}

/* A product of one operator, put on a stream. */
struct captured {
  const struct work *work;
  cbgen_operator *op;
};

static enum cb_status enqueue_product(void *user, struct CUstream_st *stream, struct cb_diag *diag) {
  const struct captured *captured = user;
  const struct work *work = captured->work;
  const cbgen_product product = {.struct_size = sizeof product, .alpha = 1, .x = (void *)(uintptr_t)work->x,
                                 .y = (void *)(uintptr_t)work->y, .stream = stream};
  const cbgen_status status = cbgen_multiply(captured->op, &product);
  return status ? cb_fail(diag, (enum cb_status)status, "%s", cbgen_operator_message(captured->op)) : CB_OK;
}

static enum cb_status time_graph(struct work *work, cbgen_operator *op, double *us) {
  struct captured captured = {work, op};
  int launches = 0;
  enum cb_status s = cb_timer_launches(&launches, work->graphs, enqueue_product, &captured, &work->diag);
  return s ? s : cb_timer_measure(us, work->graphs, enqueue_product, &captured, launches, BATCHES, &work->diag);
}

/* The same in turns as time_both. */
static enum cb_status time_graphs(struct work *work, cbgen_operator *family, cbgen_operator *special) {
  enum { TURNS = 3 };
  double of_family[TURNS], of_special[TURNS];
  enum cb_status s = CB_OK;
  if (!work->graphs->in_graphs) return CB_OK;
  cbgen_operator_unbind(family); /* from the default stream, for which they have scratch */
  cbgen_operator_unbind(special);
  for (int i = 0; i < TURNS && !s; i++) {
    s = time_graph(work, family, &of_family[i]);
    if (!s) s = time_graph(work, special, &of_special[i]);
  }
  if (s) return s;
  work->result->family_graph_us = cb_median(of_family, TURNS);
  work->result->special_graph_us = cb_median(of_special, TURNS);
  return CB_OK;
}

/* Times products of both, which are of one matrix, in turns. */
static enum cb_status time_both(struct work *work, cbgen_operator *family, cbgen_operator *special) {
  enum { TURNS = 7 };
  double of_family[TURNS], of_special[TURNS];
  enum cb_status s = CB_OK;
  for (int i = 0; i < TURNS && !s; i++) {
    s = time_product(work, family, &of_family[i]);
    if (!s) s = time_product(work, special, &of_special[i]);
  }
  if (s) return s;
  work->result->family_us = cb_median(of_family, TURNS);
  work->result->special_us = cb_median(of_special, TURNS);
  return CB_OK;
}

/* The specialised kernel takes over from the one of `op`: how long that takes, what its product takes beside that of
 * `family`, and whether the bits are the same. */
static enum cb_status specialise(struct work *work, cbgen_operator *family, cbgen_operator *op) {
  struct result *result = work->result;
  const size_t bytes = (size_t)work->csr.rows * sizeof(double);
  enum cb_status s = take(work, 0);
  const double start = cb_seconds();
  const cbgen_status status = s ? CBGEN_OK : cbgen_operator_specialise(op);
  result->specialise_ms = 1e3 * (cb_seconds() - start);
  if (status) s = failed(work, status, cbgen_operator_message(op));
  if (!s) s = multiply(work, op);
  if (!s) s = take(work, 1);
  if (!s) s = time_both(work, family, op);
  if (!s) s = time_graphs(work, family, op);
  if (!s && memcmp(work->bytes[0], work->bytes[1], bytes))
    s = cb_fail(&work->diag, CB_ERR_WRONG, "the specialised kernel's product differs from the family's");
  return s;
}

/* With another operator that keeps its family's kernel. */
static enum cb_status compare_tiers(struct work *work, cbgen_context *context, cbgen_operator *op) {
  const cbgen_request request = {.struct_size = sizeof request, .specialise = CBGEN_SPECIALISE_NEVER};
  cbgen_operator *family = NULL;
  const cbgen_status status = cbgen_compile(context, &work->view, &request, &family);
  const enum cb_status s =
      status ? failed(work, status, cbgen_message(context)) : specialise(work, family, op);
  cbgen_operator_free(family);
  return s;
}

/* ---- cold starts */

static void hear(void *user, const char *line) {
  struct result *result = user;
  if (!strstr(line, "family")) return;
  if (strstr(line, "comes with the library")) result->origin = 'b';
  if (strstr(line, "from the cache")) result->origin = 'k';
  if (strstr(line, "compiled in")) result->origin = 'c';
  if (strstr(line, "known from before")) result->origin = 'm';
}

static void note(struct result *result, const cbgen_info *info, const char *plan) {
  const double seconds[PARTS] = {info->hash_seconds + info->lookup_seconds, info->analysis_seconds,
                             info->generate_seconds + info->compile_seconds, info->pack_seconds,
                             info->load_seconds + info->upload_seconds, info->store_seconds};
  for (int i = 0; i < PARTS; i++) result->parts[i] = 1e3 * seconds[i];
  snprintf(result->plan, sizeof result->plan, "%.*s", (int)sizeof result->plan - 1, plan + (strncmp(plan, "(spmv (", 7) ? 0 : 7));
}

static void count_calls(struct null_driver_calls *calls, struct null_driver_calls all, struct null_driver_calls before) {
  *calls = (struct null_driver_calls){all.allocations - before.allocations, all.waits - before.waits,
                                      all.launches - before.launches, all.copies - before.copies,
                                      all.modules - before.modules};
}

/* `is_last`: the operator is what tiers are compared with. Only then somebody listens to the log, which takes time of its
 * own: it tells of the nearest entry of the cache. */
static enum cb_status start(struct work *work, double *ms, int is_first, int is_last) {
  const cbgen_request request = {.struct_size = sizeof request};
  char folder[] = "/tmp/cbgen-cold-XXXXXX", command[64];
  cbgen_context *context = NULL;
  cbgen_operator *op = NULL, *before = NULL;
  cbgen_info info = {.struct_size = sizeof info};
  if (!mkdtemp(folder)) return cb_fail(&work->diag, CB_ERR_IO, "no directory for a cache in /tmp");
  double began = cb_seconds();
  cbgen_status status = cbgen_context_create(&context);
  if (!status) status = cbgen_set(context, "cache", folder);
  if (!status && is_last) status = cbgen_set_log(context, hear, work->result);
  if (!status && !is_first) {
    status = cbgen_compile(context, &work->small, &request, &before);
    cb_device_wait(work->device, "a product", NULL);
    began = cb_seconds();
  }
  const struct null_driver_calls before_it = work->asked ? work->asked() : (struct null_driver_calls){0};
  work->result->origin = '-';
  if (!status) status = cbgen_compile(context, &work->view, &request, &op);
  enum cb_status s = status ? failed(work, status, context ? cbgen_message(context) : "no context") : multiply(work, op);
  *ms = 1e3 * (cb_seconds() - began);
  if (work->asked) count_calls(&work->result->calls, work->asked(), before_it);
  if (!s) status = cbgen_operator_info(op, &info);
  if (!s && !is_last) note(work->result, &info, cbgen_operator_plan(op));
  if (!s && is_last) s = compare_tiers(work, context, op);
  cbgen_operator_free(op);
  cbgen_operator_free(before);
  cbgen_context_destroy(context);
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  if (system(command)) fprintf(stderr, "'%s' is left\n", folder);
  return s;
}

static enum cb_status starts(struct work *work, int repeats) {
  double ms[MOST_REPEATS];
  enum cb_status s = CB_OK;
  double last;
  for (int i = 0; i < repeats && !s; i++) s = start(work, &ms[i], 0, 0);
  if (!s && !work->host_alone) s = start(work, &last, 0, 1);
  work->result->fresh_ms = ms[0];
  work->result->first_ms = cb_median(ms, repeats); /* which sorts them */
  work->result->least_ms = ms[0];
  work->result->worst_ms = ms[repeats - 1];
  return s;
}

/* ---- cuSPARSE */

struct baseline {
  struct cb_baselines *baselines;
  int number;
};

static enum cb_status multiply_baseline(void *user, struct CUstream_st *stream, struct cb_diag *diag) {
  const struct baseline *baseline = user;
  return cb_baseline_multiply(baseline->baselines, baseline->number, 1, 0, stream, diag);
}

/* Without it the columns stay empty. */
static void compare_cusparse(struct work *work) {
  const struct cb_baseline_types types = {CB_F64, CB_F64, CB_F64, CB_F64};
  struct baseline baseline = {0};
  struct cb_diag diag = {0};
  int launches = 0;
  if (!work->cusparse || work->csr.nnz > COMPARED || work->host_alone) return;
  if (cb_baselines_open(&baseline.baselines, work->cusparse, &work->csr, types, work->x, work->y, &diag)) return;
  while (baseline.number < cb_baselines_count(baseline.baselines) &&
         strcmp(cb_baselines_get(baseline.baselines, baseline.number)->name, "csr-alg1"))
    baseline.number++;
  if (baseline.number < cb_baselines_count(baseline.baselines)) {
    const struct cb_baseline *one = cb_baselines_get(baseline.baselines, baseline.number);
    work->result->prepare_ms = 1e3 * one->prepare_seconds;
    if (one->applies && !cb_timer_launches(&launches, work->timer, multiply_baseline, &baseline, &diag))
      cb_timer_measure(&work->result->cusparse_us, work->timer, multiply_baseline, &baseline, launches, BATCHES, &diag);
  }
  cb_baselines_close(baseline.baselines);
}

/* ---- reports */

/* Products from which cbgen is ahead; -1: never, or not known. */
static double even(const struct result *result) {
  const double gain = result->cusparse_us - result->family_us, lead = result->first_ms - result->prepare_ms;
  if (!(result->cusparse_us > 0)) return -1;
  if (lead <= 0) return gain >= 0 ? 1 : -1;
  return gain > 0 ? ceil(1e3 * lead / gain) : -1;
}

static void report(const struct result *result, FILE *json) {
  printf("%-34.34s %10lld %-20.20s %c %8.2f %8.2f |", result->name, (long long)result->nnz, result->plan,
         result->origin, result->first_ms, result->worst_ms);
  for (int i = 0; i < PARTS; i++) printf(" %7.2f", result->parts[i]);
  printf(" | %8.1f %8.1f %6.3f | %7.2f %7.2f %6.3f | %7.2f %8.1f %7.0f\n", result->family_us, result->special_us,
         result->family_us / result->special_us, result->family_graph_us, result->special_graph_us,
         result->family_graph_us / result->special_graph_us, result->prepare_ms, result->cusparse_us, even(result));
  fflush(stdout);
  const struct null_driver_calls *calls = &result->calls;
  if (calls->launches)
    printf("%34s allocations %ld, waits %ld, launches %ld, copies %ld, modules %ld\n", "", calls->allocations,
           calls->waits, calls->launches, calls->copies, calls->modules);
  if (!json) return;
  fprintf(json, "{\"matrix\": \"%s\", \"nnz\": %lld, \"plan\": \"%s\", \"binary\": \"%c\", \"first_ms\": %.4f, "
          "\"fresh_ms\": %.4f, \"worst_ms\": %.4f", result->name, (long long)result->nnz, result->plan, result->origin,
          result->first_ms, result->fresh_ms, result->worst_ms);
  for (int i = 0; i < PARTS; i++) fprintf(json, ", \"%s_ms\": %.4f", part_names[i], result->parts[i]);
  fprintf(json, ", \"family_us\": %.4f, \"specialised_us\": %.4f, \"family_graph_us\": %.4f, \"specialised_graph_us\": %.4f, "
          "\"specialise_ms\": %.3f, \"cusparse_prepare_ms\": %.4f, \"cusparse_us\": %.4f, \"even\": %.0f}\n",
          result->family_us, result->special_us, result->family_graph_us, result->special_graph_us,
          result->specialise_ms, result->prepare_ms, result->cusparse_us, even(result));
  fflush(json);
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

/* Of matrices with fewer nonzeros. */
static void summarise_first(const struct result *results, int count, int64_t below) {
  static double first[MOST_MATRICES], least[MOST_MATRICES], fresh[MOST_MATRICES];
  int found = 0;
  for (int i = 0; i < count; i++) {
    if (results[i].nnz >= below) continue;
    least[found] = results[i].least_ms;
    fresh[found] = results[i].fresh_ms;
    first[found++] = results[i].first_ms;
  }
  if (!found) return;
  qsort(first, (size_t)found, sizeof *first, ascending);
  qsort(least, (size_t)found, sizeof *least, ascending);
  qsort(fresh, (size_t)found, sizeof *fresh, ascending);
  printf("first product, below %lld nonzeros (%d matrices): median %.2f ms (of the least times %.3f, of each matrix' first "
         "%.2f), 90 %% %.2f ms, worst %.2f ms\n", (long long)below, found, first[found / 2], least[found / 2],
         fresh[found / 2], first[found * 9 / 10], first[found - 1]);
}

/* Of products as launches, or as graphs. */
static void summarise_families(const struct result *results, int count, int as_graphs) {
  double logs = 0, worst = 0;
  const char *name = "";
  int families = 0;
  for (int i = 0; i < count; i++) {
    const struct result *result = &results[i];
    const double ratio = as_graphs ? result->family_graph_us / result->special_graph_us
                                   : result->family_us / result->special_us;
    if (result->origin == '-' || !isfinite(ratio)) continue; /* not measured */
    families++;
    logs += log(ratio);
    if (ratio > worst) name = result->name;
    worst = fmax(worst, ratio);
  }
  if (!families) return;
  printf("family over specialised%s: %.4f in the geometric mean, worst %.3f (%s)\n", as_graphs ? ", as graphs" : "",
         exp(logs / families), worst, name);
}

static void summarise(const struct result *results, int count, double process_ms) {
  static double evens[MOST_MATRICES];
  int families = 0, brought = 0, compiled = 0, known = 0, never = 0, compared = 0;
  for (int i = 0; i < count; i++) {
    const struct result *result = &results[i];
    brought += result->origin == 'b';
    compiled += result->origin == 'c';
    known += result->origin == 'm';
    families += result->origin != '-';
    if (result->cusparse_us > 0) {
      never += even(result) < 0;
      evens[compared++] = even(result) < 0 ? 1e12 : even(result);
    }
  }
  qsort(evens, (size_t)compared, sizeof *evens, ascending);
  printf("\n%d matrices: %d with a family, of which the library brought %d, NVRTC compiled %d and %d were known already\n",
         count, families, brought, compiled, known);
  summarise_first(results, count, SMALL);
  summarise_first(results, count, FEW);
  summarise_families(results, count, 0);
  summarise_families(results, count, 1);
  if (compared)
    printf("break-even with csr-alg1 (%d matrices): median %.0f products; never: %d\n", compared, evens[compared / 2],
           never);
  if (process_ms > 0) printf("a process's first operator: %.1f ms, from the creation of its context\n", process_ms);
}

/* ---- all of it */

static enum cb_status measure(struct work *work, const char *name, int repeats, double *process_ms) {
  const char *base = strrchr(name, '/');
  enum cb_status s = make_matrix(work, name);
  snprintf(work->result->name, sizeof work->result->name, "%s", base ? base + 1 : name);
  work->result->nnz = work->csr.nnz;
  if (!s && process_ms) s = start(work, process_ms, 1, 0);
  if (!s) s = starts(work, repeats);
  if (!s) compare_cusparse(work);
  if (s) fprintf(stderr, "%s: %s (%s)\n", name, work->diag.message, cb_status_name(s));
  release(work);
  return s;
}

/* NULL: the driver is no null driver. */
static null_driver_asked *find_asked(void) {
  const char *path = getenv("CBGEN_LIBCUDA");
  void *driver = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
  null_driver_asked *asked = NULL;
  if (driver) *(void **)&asked = dlsym(driver, "null_driver_calls");
  return asked;
}

/* A timer of captured products, which it does not capture where a driver cannot. */
static enum cb_status open_graphs(struct cb_timer *timer, struct CUstream_st **stream, const struct cb_device *device,
                                  struct cb_diag *diag) {
  const struct cb_driver *driver = device->driver;
  enum cb_status s = cb_driver_check(driver, driver->call.stream_create(stream, CB_CU_STREAM_NON_BLOCKING), diag,
                                     "make a stream");
  *timer = (struct cb_timer){0};
  if (!s) s = cb_timer_open(timer, device, *stream, diag);
  timer->in_graphs = !s && cb_driver_has_conditions(driver);
  return s;
}

static int measure_all(const struct cb_device *device, FILE *json, int repeats, int host_alone, char **names, int count) {
  static const int32_t rows[] = {0, 1, 3, 4}, columns[] = {0, 0, 2, 1};
  static const double values[] = {1, 2, 3, 4};
  static struct result results[MOST_MATRICES];
  struct cb_timer timer, graphs;
  struct CUstream_st *stream = NULL; /* the default one is never captured */
  struct cb_cusparse *cusparse = NULL;
  struct cb_diag diag = {0};
  double process_ms = 0;
  int bad = 0, done = 0;
  if (cb_timer_open(&timer, device, NULL, &diag) || cb_cusparse_open(&cusparse, device, NULL, &diag))
    fprintf(stderr, "%s\n", diag.message);
  if (open_graphs(&graphs, &stream, device, &diag)) fprintf(stderr, "%s\n", diag.message);
  printf("%-34s %10s %-20s %c %8s %8s |", "", "nonzeros", "plan", ' ', "first ms", "worst");
  for (int i = 0; i < PARTS; i++) printf(" %7s", part_names[i]);
  printf(" | %8s %8s %6s | %7s %7s %6s | %7s %8s %7s\n", "family", "special.", "ratio", "graphs:", "special.", "ratio",
         "prep.", "csr-alg1", "even");
  for (int i = 0; i < count && i < MOST_MATRICES; i++) {
    struct work *work = calloc(1, sizeof *work);
    if (!work) return 1;
    work->device = device;
    work->timer = &timer;
    work->graphs = &graphs;
    work->cusparse = cusparse;
    work->host_alone = host_alone;
    work->asked = find_asked();
    work->small = (cbgen_csr){.struct_size = sizeof(cbgen_csr), .rows = 3, .cols = 3, .nnz = 4, .row_ptr = rows,
                              .col_idx = columns, .values = values, .row_ptr_bits = 32};
    work->result = &results[done];
    if (measure(work, names[i], repeats, i ? NULL : &process_ms)) bad = 1;
    else report(&results[done++], json);
    free(work);
  }
  cb_cusparse_close(cusparse);
  cb_timer_close(&timer);
  cb_timer_close(&graphs);
  if (stream) device->driver->call.stream_destroy(stream);
  summarise(results, done, process_ms);
  return bad;
}

int main(int argc, char **argv) {
  struct cb_driver *driver = NULL;
  struct cb_device *device = NULL;
  struct cb_diag diag = {0};
  FILE *json = NULL;
  int repeats = 5, host_alone = 0, next = 1, bad = 1;
  for (; next + 1 < argc && !strncmp(argv[next], "--", 2); next += 2) {
    if (!strcmp(argv[next], "--repeats")) repeats = atoi(argv[next + 1]);
    if (!strcmp(argv[next], "--host")) host_alone = atoi(argv[next + 1]);
    if (strcmp(argv[next], "--json")) continue;
    json = fopen(argv[next + 1], "w");
    if (!json) repeats = 0;
  }
  if (next >= argc || !strncmp(argv[next], "--", 2) || repeats < 1 || repeats > MOST_REPEATS) {
    fprintf(stderr, "usage: bench_cold_start [--json FILE] [--repeats 1..%d] [--host 1] MATRIX...\n", MOST_REPEATS);
    return 2;
  }
  if (!cb_driver_open(&driver, NULL, &diag) && !cb_device_open(&device, driver, 0, &diag) &&
      !cb_device_enter(device, &diag)) {
    bad = measure_all(device, json, repeats, host_alone, argv + next, argc - next);
    cbgen_trim();
    cb_device_leave(device);
  }
  if (*diag.message) fprintf(stderr, "%s\n", diag.message);
  cb_device_close(device);
  cb_driver_close(driver);
  if (json && fclose(json)) bad = 1;
  return bad;
}
