// SPDX-License-Identifier: Apache-2.0
/* A thread of the campaign: see campaign.h. A batch is as many matrices as find room; its stages stand in run_batch, at
 * the end. Matrices lie in one block, which is uploaded at once, and one launch each fills and checks the vectors of
 * all, so that what a matrix costs beside the library is little. */
#include "bench/campaign.h"

#include <omp.h>
#include <string.h>
#include <time.h>

enum {
  BATCH = 64,
  OPERATORS = 3,
  ROOM = 24 << 20,
  MOST_CHECKS = BATCH * CAMPAIGN_STEPS,
  MOST_FILLS = MOST_CHECKS + BATCH
};

/* A matrix of the batch. */
struct entry {
  struct campaign_matrix matrix;
  uint64_t x;
  int checks[CAMPAIGN_STEPS]; /* of the batch; -1: no such product */
  cbgen_operator *operators[OPERATORS];
  int operators_count, left_out;
  char layouts[32], plan[200];
  const char *tier;
};

struct tables {
  struct campaign_fill fills[MOST_FILLS];
  struct campaign_check checks[MOST_CHECKS];
  struct campaign_result results[MOST_CHECKS];
  struct campaign_row told;
};

struct batch {
  struct campaign_worker *worker;
  struct campaign_counts *counts;
  const struct campaign *campaign;
  cbgen_context *context;
  void *stream;
  struct campaign_room matrices, vectors;
  struct tables *tables; /* pinned */
  address_t tables_there;
  struct entry entries[BATCH];
  int entries_count, fills_count, checks_count;
  uint64_t fill_blocks, check_blocks;
};

double campaign_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- failures */

/* CUDA's own failures end the campaign: what is in the context is lost. The message says which matrices were at work,
 * of this thread; one of another's may be the cause. */
#define MUST(batch, call) cuda_must((batch), (call), #call)
static void cuda_must(const struct batch *batch, int result, const char *what) {
  const char *name = NULL;
  if (!result) return;
  if (cuda.error_name(result, &name) || !name) name = "unknown";
  fflush(stdout);
  fprintf(stderr, "FAILED: %s: CUDA's error %d (%s) in a batch of matrices %llu to %llu of seed %llu\n", what, result,
          name, batch->entries_count ? (unsigned long long)batch->entries[0].matrix.spec.number : 0,
          batch->entries_count ? (unsigned long long)batch->entries[batch->entries_count - 1].matrix.spec.number : 0,
          (unsigned long long)batch->campaign->seed);
  _Exit(3);
}

static void fail(struct batch *batch, const struct entry *entry, const char *what) {
  struct campaign *campaign = batch->worker->campaign;
  char description[400], shares[200];
  campaign_describe(&entry->matrix.spec, description);
  campaign_describe_shares(&campaign->shares, shares);
  batch->counts->failures++;
  pthread_mutex_lock(&campaign->lock);
  FILE *file = fopen(campaign->failures, "a");
  for (int i = 0; i < 2; i++) {
    if (i && !file) continue;
    fprintf(i ? file : stdout, "FAILED --seed %llu%s --only %llu: %s: %s%s%s\n", (unsigned long long)campaign->seed,
            shares, (unsigned long long)entry->matrix.spec.number, what, description, *entry->plan ? "; " : "",
            entry->plan);
  }
  if (file && fclose(file)) fprintf(stderr, "'%s' could not be written\n", campaign->failures);
  fflush(stdout);
  pthread_mutex_unlock(&campaign->lock);
}

static void fail_status(struct batch *batch, struct entry *entry, const char *what, cbgen_status status,
                        const char *message) {
  char text[400];
  snprintf(text, sizeof text, "%s: %.300s (%s)", what, message, cbgen_status_name(status));
  fail(batch, entry, text);
  entry->left_out = 1;
  if (status == CBGEN_ERROR_DEVICE) MUST(batch, cuda.synchronize());
}

/* ---- room and tables */

static int has(const struct campaign_spec *spec, enum campaign_step step) {
  return spec->steps >> step & 1;
}

static void open_batch(struct batch *batch) {
  void *bytes;
  for (int i = 0; i < 2; i++) {
    struct campaign_room *room = i ? &batch->vectors : &batch->matrices;
    room->size = ROOM;
    room->device = device_alloc(ROOM);
    if (!i) MUST(batch, cuda.host_alloc(&bytes, ROOM, 0));
    if (!i) room->host = bytes;
  }
  MUST(batch, cuda.host_alloc(&bytes, sizeof *batch->tables, 0));
  batch->tables = bytes;
  batch->tables_there = device_alloc(sizeof *batch->tables);
  batch->stream = new_stream();
}

static void close_batch(struct batch *batch) {
  MUST(batch, cuda.stream_destroy(batch->stream));
  device_free(batch->matrices.device);
  device_free(batch->vectors.device);
  device_free(batch->tables_there);
  MUST(batch, cuda.host_release(batch->matrices.host));
  MUST(batch, cuda.host_release(batch->tables));
}

/* The address of a vector that will be filled; 0: no room. */
static uint64_t add_vector(struct batch *batch, int64_t count, cbgen_type type, uint64_t seed, int numbers) {
  struct campaign_fill *fill = &batch->tables->fills[batch->fills_count];
  const ptrdiff_t at = campaign_take(&batch->vectors, (size_t)count * campaign_size_of(type));
  if (at < 0) return 0;
  *fill = (struct campaign_fill){.to = batch->vectors.device + (uint64_t)at,
                                 .count = (uint64_t)count,
                                 .seed = seed,
                                 .type = (int32_t)type,
                                 .numbers = numbers,
                                 .first_block = (uint32_t)batch->fill_blocks};
  batch->fills_count++;
  batch->fill_blocks += (uint64_t)(count + CAMPAIGN_THREADS - 1) / CAMPAIGN_THREADS;
  return fill->to;
}

static int is_integer(double factor) {
  return factor == (double)(long)factor;
}

/* One product's y, and what it must be. 0: no room. */
static int add_check(struct batch *batch, struct entry *entry, enum campaign_step step) {
  const struct campaign_spec *spec = &entry->matrix.spec;
  const struct campaign_precision *precision = &campaign_precisions[spec->precision];
  const int second = step == CAMPAIGN_SECOND, again = step >= CAMPAIGN_REPEAT && step <= CAMPAIGN_SAVED;
  const double alpha = spec->alpha[second], beta = spec->beta[second];
  const uint64_t seed = spec->seed + (again ? 20 : 20 + (uint64_t)step);
  const uint64_t y = add_vector(batch, spec->rows + CAMPAIGN_GUARD, precision->vector, seed,
                                beta == 0 ? CAMPAIGN_NANS : (int)spec->y);
  const uint64_t base = batch->matrices.device;
  if (!y) return 0;
  struct campaign_check *check = &batch->tables->checks[batch->checks_count];
  *check = (struct campaign_check){
      .row_ptr = base + (uint64_t)entry->matrix.starts,
      .columns = base + (uint64_t)entry->matrix.columns,
      .values = base + (uint64_t)(step == CAMPAIGN_UPDATE ? entry->matrix.new_values : entry->matrix.values),
      .x = entry->x,
      .y = y,
      .same = again ? batch->tables->checks[entry->checks[CAMPAIGN_FIRST]].y : 0,
      .y_seed = seed,
      .alpha = alpha,
      .beta = beta,
      .rows = (int32_t)spec->rows,
      .given = (int32_t)precision->given,
      .stored = (int32_t)precision->stored,
      .vector = (int32_t)precision->vector,
      .sum = (int32_t)precision->sum,
      .y_numbers = (int32_t)spec->y,
      .integers = spec->values == CAMPAIGN_INTEGERS && spec->x == CAMPAIGN_INTEGERS && is_integer(alpha) &&
                  is_integer(beta) && (beta == 0 || spec->y == CAMPAIGN_INTEGERS),
      .first_block = (uint32_t)batch->check_blocks};
  batch->check_blocks += (uint64_t)(spec->rows + 1 + CAMPAIGN_ROWS - 1) / CAMPAIGN_ROWS;
  entry->checks[step] = batch->checks_count++;
  return 1;
}

static int add_vectors(struct batch *batch, struct entry *entry) {
  const struct campaign_spec *spec = &entry->matrix.spec;
  entry->x = add_vector(batch, spec->cols, campaign_precisions[spec->precision].vector, spec->seed + 3, (int)spec->x);
  int fits = entry->x != 0;
  for (int step = 0; step < CAMPAIGN_STEPS && fits; step++) {
    entry->checks[step] = -1;
    if (has(spec, (enum campaign_step)step)) fits = add_check(batch, entry, (enum campaign_step)step);
  }
  return fits;
}

/* The next matrix into the batch; 0: no room, and nothing has changed. */
static int add_entry(struct batch *batch, uint64_t number) {
  const struct campaign *campaign = batch->campaign;
  const struct campaign_spec spec = campaign_spec_of(campaign->seed, number, &campaign->shares);
  const size_t matrices = batch->matrices.used, vectors = batch->vectors.used;
  const int fills = batch->fills_count, checks = batch->checks_count;
  const uint64_t fill_blocks = batch->fill_blocks, check_blocks = batch->check_blocks;
  struct entry *entry = &batch->entries[batch->entries_count];
  *entry = (struct entry){.tier = "none"};
  if (campaign_make(&entry->matrix, &spec, &batch->matrices) && add_vectors(batch, entry)) {
    batch->entries_count++;
    return 1;
  }
  batch->matrices.used = matrices;
  batch->vectors.used = vectors;
  batch->fills_count = fills;
  batch->checks_count = checks;
  batch->fill_blocks = fill_blocks;
  batch->check_blocks = check_blocks;
  return 0;
}

/* As many of the matrices from *next on as find room; 0: not even one does. */
static int gather(struct batch *batch, uint64_t *next, uint64_t end) {
  batch->matrices.used = batch->vectors.used = 0;
  batch->entries_count = batch->fills_count = batch->checks_count = 0;
  batch->fill_blocks = batch->check_blocks = 0;
  while (*next < end && batch->entries_count < BATCH && add_entry(batch, *next)) ++*next;
  for (int i = 0; i < batch->checks_count; i++)
    batch->tables->results[i] = (struct campaign_result){.first = UINT64_MAX, .not_worst = UINT64_MAX};
  return batch->entries_count > 0;
}

static uint64_t place_of(const struct batch *batch, const void *in_tables) {
  return batch->tables_there + (uint64_t)((const char *)in_tables - (const char *)batch->tables);
}

static void upload(const struct batch *batch) {
  uint64_t fills = place_of(batch, batch->tables->fills);
  int count = batch->fills_count;
  void *parameters[] = {&fills, &count};
  MUST(batch, cuda.put_async(batch->matrices.device, batch->matrices.host, batch->matrices.used, batch->stream));
  MUST(batch, cuda.put_async(batch->tables_there, batch->tables, sizeof *batch->tables, batch->stream));
  MUST(batch, cuda.launch(batch->campaign->fill, (unsigned)batch->fill_blocks, 1, 1, CAMPAIGN_THREADS, 1, 1, 0,
                          batch->stream, parameters, NULL));
}

/* ---- one matrix */

static cbgen_status set_options(struct batch *batch, const struct campaign_spec *spec) {
  const char *const options[][2] = {{"recipe", spec->recipe},
                                    {"pack", spec->pack},
                                    {"form", spec->form},
                                    {"type", campaign_precisions[spec->precision].type}};
  cbgen_status status = CBGEN_OK;
  for (size_t i = 0; i < sizeof options / sizeof *options && !status; i++)
    status = cbgen_set(batch->context, options[i][0], options[i][1]);
  return status;
}

/* The layouts that the plan's line names, each once. */
static void note_plan(struct entry *entry, const char *plan) {
  static const char *const layouts[] = {"sell",     "merge",  "dia",  "blocks", "hot", "phases", "cb",
                                        "patterns", "slices", "runs", "tile",   "du",  "se"};
  char word[16];
  size_t used = 0;
  snprintf(entry->plan, sizeof entry->plan, "%s", plan);
  *entry->layouts = 0;
  for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
    snprintf(word, sizeof word, "(%s (", layouts[i]); /* others are counts of that name */
    if (!strstr(plan, word) || used + strlen(word) >= sizeof entry->layouts) continue;
    used += (size_t)snprintf(entry->layouts + used, sizeof entry->layouts - used, "%s%s", used ? "+" : "", layouts[i]);
  }
  if (!used) snprintf(entry->layouts, sizeof entry->layouts, "none");
}

static void note_info(struct batch *batch, struct entry *entry) {
  const struct campaign_spec *spec = &entry->matrix.spec;
  const struct campaign_precision *precision = &campaign_precisions[spec->precision];
  double *parts = batch->counts->parts;
  cbgen_info info = {.struct_size = sizeof info};
  cbgen_operator_info(entry->operators[0], &info);
  entry->tier = info.tier == CBGEN_TIER_FAMILY ? "family" : "specialised alone";
  parts[0] += info.hash_seconds + info.lookup_seconds;
  parts[1] += info.analysis_seconds;
  parts[2] += info.pack_seconds;
  parts[3] += info.generate_seconds;
  parts[4] += info.compile_seconds;
  parts[5] += info.load_seconds;
  parts[6] += info.upload_seconds;
  if (info.rows != spec->rows || info.cols != spec->cols || info.entries != entry->matrix.entries ||
      info.matrix_type != precision->stored || info.vector_type != precision->vector || info.sum_type != precision->sum)
    fail_status(batch, entry, "the operator", CBGEN_ERROR_WRONG, "its info is another matrix's");
}

static int compile(struct batch *batch, struct entry *entry) {
  const struct campaign_spec *spec = &entry->matrix.spec;
  const cbgen_csr view = campaign_view(&entry->matrix, &batch->matrices, batch->stream);
  const cbgen_request request = {.struct_size = sizeof request,
                                 .values = has(spec, CAMPAIGN_UPDATE) ? CBGEN_VALUES_MUTABLE : CBGEN_VALUES_STORED,
                                 .transpose = spec->transposed,
                                 .specialise = CBGEN_SPECIALISE_NEVER};
  cbgen_status status = set_options(batch, spec);
  if (!status) status = cbgen_compile(batch->context, &view, &request, &entry->operators[0]);
  if ((status == CBGEN_ERROR_UNSUPPORTED || status == CBGEN_ERROR_LIMIT) && strcmp(spec->recipe, "auto")) {
    batch->counts->declined++;
    entry->left_out = 1;
    return 0;
  }
  if (status) {
    fail_status(batch, entry, "compiling", status, cbgen_message(batch->context));
    return 0;
  }
  entry->operators_count = 1;
  note_plan(entry, cbgen_operator_plan(entry->operators[0]));
  note_info(batch, entry);
  return !entry->left_out;
}

/* A spoiled element: of exact results its last bits, of others its size. Of every fourth number the first behind y. */
static void plant(struct batch *batch, const struct entry *entry) {
  const struct campaign_check *check = &batch->tables->checks[entry->checks[CAMPAIGN_FIRST]];
  const uint64_t size = campaign_size_of((cbgen_type)check->vector);
  const uint64_t number = entry->matrix.spec.number;
  const uint64_t element = check->y + (uint64_t)(number % 4 == 3 ? check->rows : check->rows / 2) * size;
  for (int i = 0; i < batch->campaign->plants_count; i++)
    if (batch->campaign->plants[i] == number)
      MUST(batch, cuda.fill_async(element + (check->integers ? 0 : size - 1), 0x55, 1, batch->stream));
}

static void multiply(struct batch *batch, struct entry *entry, enum campaign_step step, cbgen_operator *op) {
  const struct campaign_check *check = entry->checks[step] < 0 ? NULL : &batch->tables->checks[entry->checks[step]];
  if (!check || entry->left_out) return;
  const cbgen_product product = {.struct_size = sizeof product,
                                 .alpha = check->alpha,
                                 .beta = check->beta,
                                 .x = pointer_to(check->x),
                                 .y = pointer_to(check->y),
                                 .stream = batch->stream};
  const cbgen_status status = cbgen_multiply(op, &product);
  if (status) fail_status(batch, entry, "a product", status, cbgen_operator_message(op));
  if (step == CAMPAIGN_FIRST) plant(batch, entry);
}

static void multiply_by_clone(struct batch *batch, struct entry *entry) {
  cbgen_operator *clone;
  const cbgen_status status = cbgen_operator_clone(entry->operators[0], &clone);
  if (status) {
    fail_status(batch, entry, "a clone", status, cbgen_operator_message(entry->operators[0]));
    return;
  }
  entry->operators[entry->operators_count++] = clone;
  multiply(batch, entry, CAMPAIGN_CLONE, clone);
}

static void multiply_specialised(struct batch *batch, struct entry *entry) {
  cbgen_operator *const op = entry->operators[0];
  const cbgen_status status = cbgen_operator_specialise(op);
  if (status) {
    fail_status(batch, entry, "specialising", status, cbgen_operator_message(op));
    return;
  }
  if (!strcmp(entry->tier, "family")) entry->tier = "both, the same bits";
  multiply(batch, entry, CAMPAIGN_SPECIALISE, op);
}

static void multiply_loaded(struct batch *batch, struct entry *entry) {
  cbgen_operator *const op = entry->operators[0], *loaded;
  size_t length = 0;
  cbgen_status status = cbgen_operator_save(op, NULL, 0, &length);
  void *const bytes = status ? NULL : malloc(length + 1);
  if (!status) status = bytes ? cbgen_operator_save(op, bytes, length, &length) : CBGEN_ERROR_MEMORY;
  if (status) {
    fail_status(batch, entry, "saving", status, cbgen_operator_message(op));
  } else if ((status = cbgen_operator_load(batch->context, bytes, length, &loaded))) {
    fail_status(batch, entry, "loading", status, cbgen_message(batch->context));
  } else {
    entry->operators[entry->operators_count++] = loaded;
    multiply(batch, entry, CAMPAIGN_SAVED, loaded);
  }
  free(bytes);
}

static void multiply_renewed(struct batch *batch, struct entry *entry) {
  const struct campaign_matrix *matrix = &entry->matrix;
  const int from_host = matrix->spec.update_from_host;
  const void *const there = pointer_to(batch->matrices.device + (uint64_t)matrix->given_new_values);
  const cbgen_update update = {sizeof update, from_host ? batch->matrices.host + matrix->given_new_values : there,
                               campaign_precisions[matrix->spec.precision].given, from_host ? CBGEN_HOST : CBGEN_DEVICE,
                               batch->stream};
  const cbgen_status status = cbgen_update_values(entry->operators[0], &update);
  if (status) fail_status(batch, entry, "new values", status, cbgen_operator_message(entry->operators[0]));
  multiply(batch, entry, CAMPAIGN_UPDATE, entry->operators[0]);
}

static void operate(struct batch *batch, struct entry *entry) {
  const struct campaign_spec *spec = &entry->matrix.spec;
  double *seconds = batch->counts->seconds;
  const double start = campaign_now();
  const int compiled = compile(batch, entry);
  const double middle = campaign_now();
  seconds[COMPILING] += middle - start;
  if (!compiled) return;
  for (int step = CAMPAIGN_FIRST; step <= CAMPAIGN_REPEAT; step++)
    multiply(batch, entry, (enum campaign_step)step, entry->operators[0]);
  if (has(spec, CAMPAIGN_CLONE)) multiply_by_clone(batch, entry);
  if (has(spec, CAMPAIGN_SPECIALISE)) multiply_specialised(batch, entry);
  if (has(spec, CAMPAIGN_SAVED)) multiply_loaded(batch, entry);
  if (has(spec, CAMPAIGN_UPDATE)) multiply_renewed(batch, entry);
  seconds[MULTIPLYING] += campaign_now() - middle;
}

/* ---- checks */

static void check_all(const struct batch *batch) {
  uint64_t checks = place_of(batch, batch->tables->checks), results = place_of(batch, batch->tables->results);
  int count = batch->checks_count;
  void *parameters[] = {&checks, &results, &count};
  MUST(batch, cuda.launch(batch->campaign->check, (unsigned)batch->check_blocks, 1, 1, CAMPAIGN_THREADS, 1, 1, 0,
                          batch->stream, parameters, NULL));
  MUST(batch, cuda.stream_synchronize(batch->stream));
  MUST(batch, cuda.take(batch->tables->results, results, (size_t)count * sizeof *batch->tables->results));
}

static void tell_overrun(struct batch *batch, struct entry *entry, int step) {
  char text[100];
  snprintf(text, sizeof text, "product '%s' (%s): what lies behind y was written", campaign_steps[step], entry->tier);
  fail(batch, entry, text);
}

static void tell_row(struct batch *batch, struct entry *entry, int number, int step) {
  const struct campaign_result *result = &batch->tables->results[number];
  uint64_t check = place_of(batch, &batch->tables->checks[number]), told = place_of(batch, &batch->tables->told);
  int row = (int)result->first;
  void *parameters[] = {&check, &row, &told};
  const struct campaign_row *const values = &batch->tables->told;
  char text[300];
  MUST(batch, cuda.launch(batch->campaign->tell, 1, 1, 1, 32, 1, 1, 0, batch->stream, parameters, NULL));
  MUST(batch, cuda.stream_synchronize(batch->stream));
  MUST(batch, cuda.take(&batch->tables->told, told, sizeof *values));
  snprintf(text, sizeof text,
           "product '%s' (%s): row %d is %.17g, not %.17g, give or take %.3g; %llu of %d rows are wrong, %llu have "
           "other bits "
           "than the first product's",
           campaign_steps[step], entry->tier, row, values->got, values->expected, values->tolerance,
           (unsigned long long)result->wrong, batch->tables->checks[number].rows,
           (unsigned long long)result->different);
  fail(batch, entry, text);
}

static double worst_of(const struct campaign_result *result) {
  const uint64_t bits = ~result->not_worst;
  double error;
  memcpy(&error, &bits, sizeof error);
  return error;
}

static void count_in(struct campaign_counts *counts, enum campaign_dimension dimension, const char *name, int is_first,
                     const struct campaign_result *result) {
  struct campaign_cell *cell = campaign_cell(counts, dimension, name);
  const double worst = worst_of(result);
  cell->matrices += is_first;
  cell->products++;
  cell->rows += (int64_t)result->rows;
  cell->wrong += (int64_t)result->wrong;
  if (worst > cell->worst) cell->worst = worst;
}

static void judge_product(struct batch *batch, struct entry *entry, int step) {
  const struct campaign_spec *spec = &entry->matrix.spec;
  const struct campaign_precision *precision = &campaign_precisions[spec->precision];
  const int number = entry->checks[step];
  const struct campaign_result *result = &batch->tables->results[number];
  struct campaign_counts *counts = batch->counts;
  char type[32];
  snprintf(type, sizeof type, "%s%s", precision->type, precision->given == precision->stored ? "" : " of f64");
  const char *const names[CAMPAIGN_DIMENSIONS] = {
      entry->layouts,
      entry->tier,
      type,
      campaign_sizes[spec->size],
      campaign_patterns[spec->pattern],
      campaign_numbers_names[spec->x == CAMPAIGN_SPECIALS ? spec->x : spec->values],
      campaign_steps[step]};
  for (int d = 0; d < CAMPAIGN_DIMENSIONS; d++)
    count_in(counts, (enum campaign_dimension)d, names[d], d == BY_STEP || step == CAMPAIGN_FIRST, result);
  counts->products++;
  counts->rows += (int64_t)result->rows;
  counts->wrong += (int64_t)result->wrong;
  counts->different += (int64_t)result->different;
  counts->exact += (int64_t)result->exact;
  counts->unbounded += (int64_t)result->unbounded;
  if (result->first < result->rows) tell_row(batch, entry, number, step);
  else if (result->wrong || result->different) tell_overrun(batch, entry, step);
  if (result->rows != (uint64_t)spec->rows) fail(batch, entry, "not all of its rows were looked at");
}

static void judge(struct batch *batch, struct entry *entry) {
  if (entry->left_out) return;
  batch->counts->matrices++;
  batch->counts->entries += entry->matrix.entries;
  for (int step = 0; step < CAMPAIGN_STEPS; step++)
    if (entry->checks[step] >= 0) judge_product(batch, entry, step);
}

/* ---- the thread */

static double lap(double *mark) {
  const double now = campaign_now(), passed = now - *mark;
  *mark = now;
  return passed;
}

static void free_operators(struct batch *batch) {
  for (int i = 0; i < batch->entries_count; i++)
    for (int k = batch->entries[i].operators_count - 1; k >= 0; k--)
      cbgen_operator_free(batch->entries[i].operators[k]);
}

/* Matrices *next … end - 1, or as many of them as find room. */
static void run_batch(struct batch *batch, uint64_t *next, uint64_t end) {
  double *seconds = batch->counts->seconds, mark = campaign_now();
  if (!gather(batch, next, end)) {
    fprintf(stderr, "matrix %llu finds no room\n", (unsigned long long)*next);
    _Exit(4);
  }
  upload(batch);
  seconds[MAKING] += lap(&mark);
  for (int i = 0; i < batch->entries_count; i++) operate(batch, &batch->entries[i]);
  mark = campaign_now();
  check_all(batch);
  for (int i = 0; i < batch->entries_count; i++) judge(batch, &batch->entries[i]);
  seconds[CHECKING] += lap(&mark);
  free_operators(batch);
  seconds[FREEING] += lap(&mark);
}

static void listen(void *user, const char *line) {
  struct campaign_counts *counts = user;
  if (strncmp(line, "family", 6)) return;
  if (strstr(line, ": comes"))
    counts->brought++;
  else if (strstr(line, ": compiled"))
    counts->compiled++;
  else
    counts->remembered++;
}

static void open_context(struct batch *batch) {
  cbgen_status status = cbgen_context_create(&batch->context);
  if (!status) status = cbgen_set(batch->context, "cache", "");
  if (!status) status = cbgen_set_log(batch->context, listen, batch->counts);
  if (!status) return;
  fprintf(stderr, "no context: %s\n", batch->context ? cbgen_message(batch->context) : "no memory");
  _Exit(4);
}

/* About every ten seconds, whichever thread comes by. */
static void tell_progress(struct campaign *campaign, long matrices) {
  const long before = atomic_fetch_add(&campaign->done, matrices), now = before + matrices;
  static _Atomic double told;
  const double passed = campaign_now() - campaign->began;
  double last = atomic_load(&told);
  if (passed - last < 10 || !atomic_compare_exchange_strong(&told, &last, passed)) return;
  fprintf(stderr, "%.0f s: %ld matrices\n", passed, now);
}

void *campaign_work(void *user) {
  struct campaign_worker *worker = user;
  struct campaign *campaign = worker->campaign;
  struct batch *batch = calloc(1, sizeof *batch);
  const uint64_t end = campaign->first + campaign->count;
  if (!batch) return NULL;
  *batch = (struct batch){.worker = worker, .counts = &worker->counts, .campaign = campaign};
  omp_set_num_threads(1); /* in the library, too: there are threads enough */
  use_gpu(0);
  open_batch(batch);
  open_context(batch);
  while (!campaign->seconds || campaign_now() - campaign->began < campaign->seconds) {
    uint64_t next = atomic_fetch_add(&campaign->next, BATCH);
    const uint64_t own_end = next + BATCH < end ? next + BATCH : end;
    if (next >= end) break;
    while (next < own_end) {
      run_batch(batch, &next, own_end);
      tell_progress(campaign, batch->entries_count);
    }
  }
  cbgen_context_destroy(batch->context);
  close_batch(batch);
  free(batch);
  return worker;
}
