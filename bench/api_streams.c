// SPDX-License-Identifier: Apache-2.0
/* Streams: graphs replayed with other contents, threads with streams of their own, misuse of scratch, arrays that a
 * stream makes ready. */
#include "bench/api_check.h"

#include <pthread.h>
#include <string.h>

enum { RELAXED = 2 }; /* mode of a capture */

/* ---- graphs */

static void *instantiate(void *stream) {
  void *graph, *exec;
  REQUIRE_CUDA(cuda.capture_end(stream, &graph));
  REQUIRE_CUDA(cuda.graph_instantiate(&exec, graph, 0));
  REQUIRE_CUDA(cuda.graph_destroy(graph));
  return exec;
}

/* New values from `values` (0: none) and a product, captured. */
static void *capture(struct checks *checks, const struct bed *bed, const struct vectors *vectors, address_t values) {
  const cbgen_update update = {sizeof update, pointer_to(values), bed->sample.form.type, CBGEN_DEVICE, checks->stream};
  const cbgen_product product = product_of(vectors, 1.5, 0.5, checks->stream);
  REQUIRE_CUDA(cuda.capture_begin(checks->stream, RELAXED));
  if (values) must_operator(checks, bed->op, cbgen_update_values(bed->op, &update), "new values under capture");
  must_operator(checks, bed->op, cbgen_multiply(bed->op, &product), "a product under capture");
  return instantiate(checks->stream);
}

/* Each time with another x and y (and other values), against the host and against a product without a graph. */
static void replay(struct checks *checks, struct bed *bed, int with_values) {
  const size_t bytes = (size_t)bed->sample.entries * size_of_type(bed->sample.form.type);
  const address_t values = with_values ? device_alloc(bytes) : 0;
  struct vectors vectors = new_vectors(bed->op, 1);
  const cbgen_product product = product_of(&vectors, 1.5, 0.5, checks->stream);
  void *const exec = capture(checks, bed, &vectors, values);
  for (uint64_t round = 0; round < (checks->quick ? 3 : 20); round++) {
    char message[200];
    size_t length;
    fill_vectors(&vectors, 50 + round);
    if (with_values) renew_sample(&bed->sample, 200 + round);
    if (with_values) put_bytes(values, bed->sample.arrays[2], bytes);
    REQUIRE_CUDA(cuda.graph_launch(exec, checks->stream));
    REQUIRE_CUDA(cuda.synchronize());
    const int64_t wrong = count_wrong_rows(bed->op, &bed->sample, 0, &vectors, 1.5, 0.5, message);
    EXPECT(checks, !wrong, "replay %d: %lld rows wrong: %s; %.200s", (int)round, (long long)wrong, message,
           cbgen_operator_plan(bed->op));
    unsigned char *const replayed = take_y(&vectors, &length);
    fill_vectors(&vectors, 50 + round);
    must_operator(checks, bed->op, cbgen_multiply(bed->op, &product), "a product");
    REQUIRE_CUDA(cuda.synchronize());
    unsigned char *const direct = take_y(&vectors, &length);
    EXPECT(checks, !memcmp(replayed, direct, length), "replay %d differs from a product without a graph", (int)round);
    free(replayed);
    free(direct);
    checks->products += 2;
  }
  REQUIRE_CUDA(cuda.exec_destroy(exec));
  free_vectors(&vectors);
  device_free(values);
}

void check_graphs(struct checks *checks) {
  for (int r = 0; r < recipes_count; r += checks->quick ? 2 : 1) {
    const struct form form = {.type = r % 2 ? CBGEN_F32 : CBGEN_F64};
    struct specification specification = recipes[r].specification;
    specification.duplicates = specification.unsorted = r % 3 == 0;
    struct bed bed =
        new_bed(checks, recipes[r].settings, specification, form, (cbgen_request){.values = CBGEN_VALUES_MUTABLE});
    EXPECT(checks, bed.op, "%s: %s", recipes[r].settings, cbgen_message(bed.context));
    replay(checks, &bed, 0);
    replay(checks, &bed, 1);
    free_bed(&bed);
  }
}

/* ---- threads: each has four streams, on each of them repeated products with vectors of its own */

enum { THREADS = 4, STREAMS = 4, ALL = THREADS * STREAMS };

struct crew {
  struct checks *checks;
  int rounds;
  cbgen_operator *ops[ALL]; /* one, or clones */
  struct vectors vectors[ALL];
  void *streams[ALL];
};

struct member {
  pthread_t thread;
  struct crew *crew;
  int first; /* of its four */
  char error[300];
};

static cbgen_status multiply(const struct crew *crew, int i, void *stream) {
  const cbgen_product product = product_of(&crew->vectors[i], 0.75, 0.5, stream);
  return cbgen_multiply(crew->ops[i], &product);
}

static void *take_part(void *user) {
  struct member *member = user;
  const struct crew *crew = member->crew;
  use_gpu(0);
  for (int round = 0; round < crew->rounds; round++)
    for (int i = member->first; i < member->first + STREAMS; i++)
      if (multiply(crew, i, crew->streams[i]) && !*member->error)
        snprintf(member->error, sizeof member->error, "%.290s", cbgen_operator_message(crew->ops[i]));
  for (int i = member->first; i < member->first + STREAMS; i++) REQUIRE_CUDA(cuda.stream_synchronize(crew->streams[i]));
  return NULL;
}

static void run_together(struct crew *crew) {
  struct member members[THREADS] = {0};
  for (int t = 0; t < THREADS; t++) {
    members[t].crew = crew;
    members[t].first = t * STREAMS;
    EXPECT(crew->checks, !pthread_create(&members[t].thread, NULL, take_part, &members[t]), "no thread");
  }
  for (int t = 0; t < THREADS; t++) pthread_join(members[t].thread, NULL);
  for (int t = 0; t < THREADS; t++) EXPECT(crew->checks, !*members[t].error, "%s", members[t].error);
}

/* The same again, one product after the other on one stream, and the bits compared. */
static void compare_serially(struct crew *crew) {
  for (int i = 0; i < ALL; i++) {
    size_t bytes;
    unsigned char *const together = take_y(&crew->vectors[i], &bytes);
    fill_vectors(&crew->vectors[i], (uint64_t)i);
    cbgen_operator_unbind(crew->ops[i]);
    for (int round = 0; round < crew->rounds; round++) {
      must_operator(crew->checks, crew->ops[i], multiply(crew, i, crew->checks->stream), "a product");
      REQUIRE_CUDA(cuda.synchronize());
    }
    unsigned char *const alone = take_y(&crew->vectors[i], &bytes);
    EXPECT(crew->checks, !memcmp(together, alone, bytes), "stream %d differs from a serial run; %.200s", i,
           cbgen_operator_plan(crew->ops[i]));
    free(together);
    free(alone);
    cbgen_operator_unbind(crew->ops[i]);
    crew->checks->products += crew->rounds;
  }
}

static void check_crew(struct checks *checks, const struct bed *bed) {
  struct crew crew = {.checks = checks, .rounds = checks->quick ? 3 : 300};
  const int clones = has_scratch(bed->op);
  for (int i = 0; i < ALL; i++) {
    crew.ops[i] = bed->op;
    if (clones) must_operator(checks, bed->op, cbgen_operator_clone(bed->op, &crew.ops[i]), "a clone");
    crew.vectors[i] = new_vectors(bed->op, (uint64_t)i);
    crew.streams[i] = new_stream();
  }
  run_together(&crew);
  compare_serially(&crew);
  for (int i = 0; i < ALL; i++) {
    if (clones) cbgen_operator_free(crew.ops[i]);
    free_vectors(&crew.vectors[i]);
    REQUIRE_CUDA(cuda.stream_destroy(crew.streams[i]));
  }
}

void check_threads(struct checks *checks) {
  int with = 0, without = 0;
  for (int r = 0; r < recipes_count; r++) {
    struct bed bed =
        new_bed(checks, recipes[r].settings, recipes[r].specification, (struct form){0}, (cbgen_request){0});
    EXPECT(checks, bed.op, "%s: %s", recipes[r].settings, cbgen_message(bed.context));
    int *const kind = has_scratch(bed.op) ? &with : &without;
    if (!checks->quick || !*kind) {
      check_crew(checks, &bed);
      ++*kind;
    }
    free_bed(&bed);
  }
  EXPECT(checks, with && without, "%d operators with scratch, %d without: both are wanted", with, without);
  snprintf(checks->detail, sizeof checks->detail, "%d operators with scratch (clones), %d without (shared)", with,
           without);
}

/* ---- misuse */

static cbgen_status multiply_once(const struct bed *bed, cbgen_operator *op, void *stream) {
  struct vectors vectors = new_vectors(bed->op, 1);
  const cbgen_product product = product_of(&vectors, 1, 0, stream);
  const cbgen_status status = cbgen_multiply(op, &product);
  REQUIRE_CUDA(cuda.synchronize());
  free_vectors(&vectors);
  return status;
}

static void expect_status(struct checks *checks, cbgen_status status, cbgen_status expected, const char *what) {
  EXPECT(checks, status == expected, "%s: %s, not %s", what, cbgen_status_name(status), cbgen_status_name(expected));
  checks->products++;
}

static void check_binding(struct checks *checks, const struct bed *bed) {
  void *const other = new_stream();
  cbgen_operator *clone;
  expect_status(checks, multiply_once(bed, bed->op, checks->stream), CBGEN_OK, "the first stream");
  expect_status(checks, multiply_once(bed, bed->op, checks->stream), CBGEN_OK, "the same stream");
  expect_status(checks, multiply_once(bed, bed->op, other), CBGEN_ERROR_ARGUMENT, "a second stream");
  EXPECT(checks, strstr(cbgen_operator_message(bed->op), "stream"), "the message does not say why: '%s'",
         cbgen_operator_message(bed->op));
  expect_status(checks, multiply_once(bed, bed->op, NULL), CBGEN_ERROR_ARGUMENT, "the default stream");
  must_operator(checks, bed->op, cbgen_operator_clone(bed->op, &clone), "a clone");
  expect_status(checks, multiply_once(bed, clone, other), CBGEN_OK, "a clone on the second stream");
  expect_status(checks, multiply_once(bed, clone, checks->stream), CBGEN_ERROR_ARGUMENT, "the clone on the first");
  cbgen_operator_unbind(bed->op);
  expect_status(checks, multiply_once(bed, bed->op, other), CBGEN_OK, "the second stream once unbound");
  expect_status(checks, multiply_once(bed, bed->op, checks->stream), CBGEN_ERROR_ARGUMENT, "the first after that");
  cbgen_operator_unbind(bed->op);
  check_product(checks, bed, NULL, 1, 1, checks->stream);
  check_product(checks, bed, clone, 1, 1, other);
  cbgen_operator_free(clone);
  REQUIRE_CUDA(cuda.stream_destroy(other));
}

void check_misuse(struct checks *checks) {
  int with = 0;
  for (int r = 0; r < recipes_count; r++) {
    struct bed bed =
        new_bed(checks, recipes[r].settings, recipes[r].specification, (struct form){0}, (cbgen_request){0});
    EXPECT(checks, bed.op, "%s: %s", recipes[r].settings, cbgen_message(bed.context));
    if (has_scratch(bed.op) && (!checks->quick || !with++)) check_binding(checks, &bed);
    const cbgen_product none = {.struct_size = sizeof none, .alpha = 1};
    expect_status(checks, cbgen_multiply(bed.op, &none), CBGEN_ERROR_ARGUMENT, "a product without vectors");
    expect_status(checks, cbgen_multiply(bed.op, NULL), CBGEN_ERROR_ARGUMENT, "no product");
    expect_status(checks, cbgen_multiply(NULL, &none), CBGEN_ERROR_ARGUMENT, "no operator");
    check_product(checks, &bed, NULL, 1, 0, NULL);
    free_bed(&bed);
  }
  EXPECT(checks, with || !checks->quick, "no operator has scratch");
}

/* ---- arrays that a stream makes ready: compiled while it is still at work */

void check_ready_arrays(struct checks *checks) {
  for (int values = CBGEN_VALUES_STORED; values <= CBGEN_VALUES_MUTABLE; values++) {
    struct bed bed = {.context = new_context(checks, recipes[0].settings, NULL)};
    const struct form form = {.memory = CBGEN_DEVICE};
    bed.sample = new_sample(recipes[0].specification, form);
    const size_t bytes = (size_t)bed.sample.entries * sizeof(double);
    const address_t source = device_alloc(bytes), waste = device_alloc(bytes);
    const struct rewriting delay = {1, bed.sample.there[2], waste, bed.sample.entries, 1, 1, 0, 0};
    const cbgen_request request = {.struct_size = sizeof request, .values = (cbgen_values)values};
    put_bytes(source, bed.sample.arrays[2], bytes);
    REQUIRE_CUDA(cuda.fill_async(bed.sample.there[2], 0xff, bytes, NULL));
    REQUIRE_CUDA(cuda.synchronize());
    for (int i = 0; i < (checks->quick ? 2 : 50); i++) REQUIRE_CUDA(rewrite(checks->rewriter, &delay, checks->stream));
    REQUIRE_CUDA(cuda.copy_async(bed.sample.there[2], source, bytes, checks->stream));
    bed.sample.view.stream = checks->stream;
    must(checks, bed.context, cbgen_compile(bed.context, &bed.sample.view, &request, &bed.op), "compiling");
    check_product(checks, &bed, NULL, 1, 0, NULL);
    device_free(source);
    device_free(waste);
    free_bed(&bed);
  }
}
