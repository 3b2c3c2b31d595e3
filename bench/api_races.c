// SPDX-License-Identifier: Apache-2.0
/* Launches that overlap. Where the GPU can, a product's kernel starts while what stands before it in the stream is
 * still ending, so it must wait before it reads x, y or renewed values, and before it writes y. Here a cycle of steps
 * rewrites all of them between products in many ways (memset, copies, a kernel that lets its follower start early and
 * whose last thread block is slow, other products, new values); its outcome, cycle after cycle, must be bit for bit
 * that of the same cycles with a wait after every step. */
#include "bench/api_check.h"

#include <string.h>

enum { RELAXED = 2, NOTES = 6 };

struct race {
  struct checks *checks;
  struct bed bed;
  struct vectors vectors; /* x and y of one length */
  int64_t entries;
  int is_double;
  size_t vector_bytes, value_bytes;
  address_t base, values;         /* values as given; as rewritten from them */
  void *pinned_x, *pinned_values; /* on the host */
  address_t notes;                /* of one cycle */
  size_t notes_taken;
  int waiting; /* 1: after every step */
  int cycles;
};

/* ---- steps */

static void multiply(struct race *race, double alpha, address_t x, double beta, address_t y) {
  const cbgen_product product = {.struct_size = sizeof product, .alpha = alpha, .beta = beta, .x = pointer_to(x),
                                 .y = pointer_to(y), .stream = race->checks->stream};
  must_operator(race->checks, race->bed.op, cbgen_multiply(race->bed.op, &product), "a product");
}

static void product(struct race *race) {
  multiply(race, 0.5, race->vectors.x_there, 0.25, race->vectors.y_there);
}

static void product_back(struct race *race) { /* the other way round */
  multiply(race, 0.015625, race->vectors.y_there, 0, race->vectors.x_there);
}

static void launch(struct race *race, address_t from, address_t to, int64_t count, int is_double, int slow, int early) {
  const struct rewriting rewriting = {is_double, from, to, count, 1.25, slow, early, 0};
  REQUIRE_CUDA(rewrite(race->checks->rewriter, &rewriting, race->checks->stream));
}

static void rewrite_x(struct race *race) {
  launch(race, race->vectors.y_there, race->vectors.x_there, race->vectors.rows, race->is_double, 0, 0);
}

static void rewrite_x_slowly(struct race *race) {
  launch(race, race->vectors.y_there, race->vectors.x_there, race->vectors.rows, race->is_double, 1, 1);
}

static void rewrite_y_slowly(struct race *race) {
  launch(race, race->vectors.x_there, race->vectors.y_there, race->vectors.rows, race->is_double, 1, 1);
}

static void rewrite_values_slowly(struct race *race) {
  const int is_double = race->bed.sample.form.type == CBGEN_F64;
  launch(race, race->base, race->values, race->entries, is_double, 1, 1);
}

static void fill_x(struct race *race) { /* 0x3f3f… is a small positive number */
  REQUIRE_CUDA(cuda.fill_async(race->vectors.x_there, 0x3f, race->vector_bytes, race->checks->stream));
}

static void put_x(struct race *race) {
  REQUIRE_CUDA(cuda.put_async(race->vectors.x_there, race->pinned_x, race->vector_bytes, race->checks->stream));
}

static void copy_x(struct race *race) {
  REQUIRE_CUDA(cuda.copy_async(race->vectors.x_there, race->vectors.y_there, race->vector_bytes, race->checks->stream));
}

static void update(struct race *race, const void *values, cbgen_memory memory) {
  const cbgen_update update = {sizeof update, values, race->bed.sample.form.type, memory, race->checks->stream};
  must_operator(race->checks, race->bed.op, cbgen_update_values(race->bed.op, &update), "new values");
}

static void update_from_device(struct race *race) {
  update(race, pointer_to(race->values), CBGEN_DEVICE);
}

static void update_from_host(struct race *race) {
  update(race, race->pinned_values, CBGEN_HOST);
}

static void note_y(struct race *race) {
  const address_t to = race->notes + race->notes_taken++ % NOTES * race->vector_bytes;
  REQUIRE_CUDA(cuda.copy_async(to, race->vectors.y_there, race->vector_bytes, race->checks->stream));
}

typedef void (*step)(struct race *race);

/* Ends of lines are where an outcome is noted. */
static const step steps[] = {
    fill_x,
    product,
    rewrite_x_slowly,
    product,
    note_y, //
    rewrite_x,
    product,
    put_x,
    product,
    product,
    note_y, //
    product_back,
    product,
    rewrite_y_slowly,
    product,
    note_y, //
    copy_x,
    product,
    rewrite_values_slowly,
    update_from_device,
    product,
    product,
    note_y, //
    rewrite_x_slowly,
    product,
    update_from_host,
    product,
    note_y, //
    product_back,
    rewrite_y_slowly,
    product_back,
    product,
    note_y,
};
enum { STEPS = sizeof steps / sizeof *steps, PRODUCTS = 15 };

static void run_cycle(struct race *race) {
  for (int s = 0; s < STEPS; s++) {
    steps[s](race);
    if (race->waiting) REQUIRE_CUDA(cuda.synchronize());
  }
}

/* ---- runs */

static struct race new_race(struct checks *checks, const struct recipe *recipe, const char *type, cbgen_type given,
                            int64_t factor) {
  struct race race = {.checks = checks, .cycles = checks->quick ? 2 : factor > 1 ? 60 : 500};
  struct specification specification = recipe->specification;
  char settings[100];
  specification.rows *= factor;
  specification.cols *= factor;
  snprintf(settings, sizeof settings, "%s %s", recipe->settings, type);
  race.bed = new_bed(checks, settings, specification, (struct form){.type = given},
                     (cbgen_request){.values = CBGEN_VALUES_MUTABLE});
  EXPECT(checks, race.bed.op, "%s: %s", settings, cbgen_message(race.bed.context));
  race.vectors = new_vectors(race.bed.op, 9);
  race.is_double = race.vectors.type == CBGEN_F64;
  race.entries = race.bed.sample.entries;
  race.vector_bytes = (size_t)race.vectors.rows * size_of_type(race.vectors.type);
  race.value_bytes = (size_t)race.entries * size_of_type(given);
  race.base = device_alloc(race.value_bytes);
  race.values = device_alloc(race.value_bytes);
  race.notes = device_alloc(NOTES * race.vector_bytes);
  REQUIRE_CUDA(cuda.host_alloc(&race.pinned_x, race.vector_bytes, 0));
  REQUIRE_CUDA(cuda.host_alloc(&race.pinned_values, race.value_bytes, 0));
  put_bytes(race.base, race.bed.sample.arrays[2], race.value_bytes);
  memcpy(race.pinned_values, race.bed.sample.arrays[2], race.value_bytes);
  for (int64_t i = 0; i < race.vectors.cols; i++) store(race.pinned_x, race.vectors.type, i, race.vectors.x[i]);
  return race;
}

static void free_race(struct race *race) {
  free_vectors(&race->vectors);
  device_free(race->base);
  device_free(race->values);
  device_free(race->notes);
  REQUIRE_CUDA(cuda.host_release(race->pinned_x));
  REQUIRE_CUDA(cuda.host_release(race->pinned_values));
  free_bed(&race->bed);
}

static void start(struct race *race) {
  fill_vectors(&race->vectors, 9);
  update_from_host(race); /* also allocates what a capture could not */
  REQUIRE_CUDA(cuda.synchronize());
}

/* The notes of all cycles, on the host; the caller's. `exec`: the cycle as a graph, or NULL. */
static unsigned char *run_cycles(struct race *race, void *exec) {
  const size_t bytes = NOTES * race->vector_bytes, all = bytes * (size_t)race->cycles;
  const address_t log = device_alloc(all);
  unsigned char *const taken = malloc(all + 1);
  EXPECT(race->checks, taken, "no memory");
  start(race);
  for (int cycle = 0; cycle < race->cycles; cycle++) {
    if (exec)
      REQUIRE_CUDA(cuda.graph_launch(exec, race->checks->stream));
    else
      run_cycle(race);
    REQUIRE_CUDA(cuda.copy_async(log + (size_t)cycle * bytes, race->notes, bytes, race->checks->stream));
  }
  REQUIRE_CUDA(cuda.synchronize());
  REQUIRE_CUDA(cuda.take(taken, log, all));
  device_free(log);
  race->checks->products += race->cycles * PRODUCTS;
  return taken;
}

static void compare(struct race *race, unsigned char *got, unsigned char *right, const char *what) {
  const size_t size = size_of_type(race->vectors.type), all = NOTES * race->vector_bytes * (size_t)race->cycles;
  size_t first = all, differ = 0, lively = 0;
  for (size_t at = 0; at < all; at += size) {
    lively += at >= race->vector_bytes && memcmp(right + at, right + at - race->vector_bytes, size);
    if (!memcmp(got + at, right + at, size)) continue;
    if (!differ++) first = at;
  }
  free(got);
  free(right);
  EXPECT(race->checks, !differ, "%s: %zu numbers differ, first in cycle %zu, note %zu, row %zu; %.250s", what, differ,
         first / race->vector_bytes / NOTES, first / race->vector_bytes % NOTES, first % race->vector_bytes / size,
         cbgen_operator_plan(race->bed.op));
  EXPECT(race->checks, 10 * lively > all / size, "the notes are alike: nothing was tested");
}

static void *capture_cycle(struct race *race) {
  void *graph, *exec;
  start(race);
  REQUIRE_CUDA(cuda.capture_begin(race->checks->stream, RELAXED));
  run_cycle(race);
  REQUIRE_CUDA(cuda.capture_end(race->checks->stream, &graph));
  REQUIRE_CUDA(cuda.graph_instantiate(&exec, graph, 0));
  REQUIRE_CUDA(cuda.graph_destroy(graph));
  return exec;
}

static void check_race(struct race *race, int captured) {
  race->waiting = 1;
  unsigned char *const right = run_cycles(race, NULL);
  race->waiting = 0;
  void *const exec = captured ? capture_cycle(race) : NULL;
  compare(race, run_cycles(race, exec), right, captured ? "replayed" : "without waiting");
  if (exec) REQUIRE_CUDA(cuda.exec_destroy(exec));
}

/* In both types, and with a matrix whose kernel fills the GPU. */
static void check_all(struct checks *checks, int captured) {
  static const struct {
    const char *settings;
    cbgen_type type;
    int64_t factor;
  } kinds[] = {{"type=f64", CBGEN_F64, 1}, {"type=f32", CBGEN_F32, 1}, {"type=f64", CBGEN_F64, 30}};
  long taken = 0;
  for (int r = 0; r < recipes_count; r += checks->quick && captured ? 3 : 1)
    for (int kind = 0; kind < (checks->quick ? 1 : 3); kind++) {
      struct race race = new_race(checks, &recipes[r], kinds[kind].settings, kinds[kind].type, kinds[kind].factor);
      check_race(&race, captured);
      taken += (long)race.cycles * STEPS;
      free_race(&race);
    }
  snprintf(checks->detail, sizeof checks->detail, "%ld steps", taken);
}

/* Whether the checks have teeth: a kernel that does not wait, behind one that lets it start, sees old contents. Not a
 * failure where it does not: a tool may keep kernels apart. */
void check_teeth(struct checks *checks) {
  enum { COUNT = 1 << 14, BYTES = COUNT * sizeof(double) };
  const int rounds = checks->quick ? 3 : 50;
  address_t places[3];
  double *const numbers = malloc(BYTES);
  int old = 0;
  EXPECT(checks, numbers, "no memory");
  for (int i = 0; i < 3; i++) places[i] = device_alloc(BYTES);
  REQUIRE_CUDA(cuda.fill_async(places[0], 0x3f, BYTES, checks->stream));
  for (int round = 0; round < rounds && gpu_overlaps(); round++) {
    const struct rewriting first = {1, places[0], places[1], COUNT, 1, 1, 1, 0},
                           next = {1, places[1], places[2], COUNT, 1, 0, 0, 1};
    int stale = 0;
    REQUIRE_CUDA(cuda.fill_async(places[1], 0, BYTES, checks->stream));
    REQUIRE_CUDA(cuda.synchronize());
    REQUIRE_CUDA(rewrite(checks->rewriter, &first, checks->stream));
    REQUIRE_CUDA(rewrite(checks->rewriter, &next, checks->stream));
    REQUIRE_CUDA(cuda.synchronize());
    REQUIRE_CUDA(cuda.take(numbers, places[2], BYTES));
    for (int i = 0; i < COUNT; i++) stale |= numbers[i] == 0;
    old += stale;
  }
  for (int i = 0; i < 3; i++) device_free(places[i]);
  free(numbers);
  snprintf(checks->detail, sizeof checks->detail,
           gpu_overlaps() ? "a kernel that does not wait saw old contents in %d of %d rounds"
                          : "this GPU does not overlap",
           old, rounds);
}

void check_races(struct checks *checks) {
  check_all(checks, 0);
}

void check_graph_races(struct checks *checks) {
  check_all(checks, 1);
}

/* ---- new values on one stream, products on it and on another that waits for them by an event
 *
 * In between a product is put into a graph that is never launched, and one goes to the other stream first: neither may
 * make the library believe that the first product behind the new values has been launched. */

struct pair {
  struct race race;
  cbgen_operator *clone;
  void *other, *spare, *event, *back;
  address_t other_y;
};

static void put_product(struct pair *pair, cbgen_operator *op, address_t y, void *stream) {
  const cbgen_product product = {.struct_size = sizeof product, .alpha = 0.5,
                                 .x = pointer_to(pair->race.vectors.x_there), .y = pointer_to(y), .stream = stream};
  cbgen_operator_unbind(op); /* events keep the streams in order */
  must_operator(pair->race.checks, op, cbgen_multiply(op, &product), "a product");
}

static void wait_if_asked(const struct pair *pair) {
  if (pair->race.waiting) REQUIRE_CUDA(cuda.synchronize());
}

static void capture_in_vain(struct pair *pair) {
  void *graph;
  REQUIRE_CUDA(cuda.capture_begin(pair->spare, RELAXED));
  put_product(pair, pair->clone, pair->other_y, pair->spare);
  REQUIRE_CUDA(cuda.capture_end(pair->spare, &graph));
  REQUIRE_CUDA(cuda.graph_destroy(graph));
}

static void run_pair(struct pair *pair, int round) {
  struct race *const race = &pair->race;
  void *const stream = race->checks->stream;
  REQUIRE_CUDA(cuda.stream_wait(stream, pair->back, 0));
  if (round % 2)
    rewrite_values_slowly(race);
  else
    REQUIRE_CUDA(cuda.copy_async(race->values, race->base, race->value_bytes, stream));
  wait_if_asked(pair);
  update_from_device(race);
  wait_if_asked(pair);
  if (round % 4 < 2) {
    REQUIRE_CUDA(cuda.event_record(pair->event, stream));
    REQUIRE_CUDA(cuda.stream_wait(pair->other, pair->event, 0));
    put_product(pair, pair->clone, pair->other_y, pair->other);
  } else {
    capture_in_vain(pair);
  }
  wait_if_asked(pair);
  put_product(pair, race->bed.op, race->vectors.y_there, stream);
  wait_if_asked(pair);
  REQUIRE_CUDA(cuda.event_record(pair->back, pair->other));
}

static unsigned char *run_pairs(struct pair *pair) {
  struct race *const race = &pair->race;
  const size_t bytes = race->vector_bytes, all = 2 * bytes * (size_t)race->cycles;
  const address_t log = device_alloc(all);
  unsigned char *const taken = malloc(all + 1);
  EXPECT(race->checks, taken, "no memory");
  start(race);
  REQUIRE_CUDA(cuda.fill_async(pair->other_y, 0, bytes, NULL));
  REQUIRE_CUDA(cuda.synchronize());
  for (int round = 0; round < race->cycles; round++) {
    run_pair(pair, round);
    REQUIRE_CUDA(
        cuda.copy_async(log + (size_t)(2 * round) * bytes, race->vectors.y_there, bytes, race->checks->stream));
    REQUIRE_CUDA(cuda.copy_async(log + (size_t)(2 * round + 1) * bytes, pair->other_y, bytes, pair->other));
    REQUIRE_CUDA(cuda.event_record(pair->back, pair->other));
    wait_if_asked(pair);
  }
  REQUIRE_CUDA(cuda.synchronize());
  REQUIRE_CUDA(cuda.take(taken, log, all));
  device_free(log);
  race->checks->products += 2 * race->cycles;
  return taken;
}

static void check_pair(struct checks *checks, const struct recipe *recipe) {
  struct pair pair = {.race = new_race(checks, recipe, "type=f64", CBGEN_F64, 1)};
  struct race *const race = &pair.race;
  race->cycles = checks->quick ? 4 : 600;
  must_operator(checks, race->bed.op, cbgen_operator_clone(race->bed.op, &pair.clone), "a clone");
  pair.other = new_stream();
  pair.spare = new_stream();
  REQUIRE_CUDA(cuda.event_create(&pair.event, 2));
  REQUIRE_CUDA(cuda.event_create(&pair.back, 2));
  REQUIRE_CUDA(cuda.event_record(pair.back, pair.other));
  pair.other_y = device_alloc(race->vector_bytes);
  race->waiting = 1;
  unsigned char *const right = run_pairs(&pair);
  race->waiting = 0;
  unsigned char *const got = run_pairs(&pair);
  const int same = !memcmp(got, right, 2 * race->vector_bytes * (size_t)race->cycles);
  free(got);
  free(right);
  EXPECT(checks, same, "products behind new values differ; %.300s", cbgen_operator_plan(race->bed.op));
  cbgen_operator_free(pair.clone);
  REQUIRE_CUDA(cuda.stream_destroy(pair.other));
  REQUIRE_CUDA(cuda.stream_destroy(pair.spare));
  REQUIRE_CUDA(cuda.event_destroy(pair.event));
  REQUIRE_CUDA(cuda.event_destroy(pair.back));
  device_free(pair.other_y);
  free_race(race);
}

void check_two_streams(struct checks *checks) {
  for (int r = 0; r < recipes_count; r += checks->quick ? 4 : 1) check_pair(checks, &recipes[r]);
}
