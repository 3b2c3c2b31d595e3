// SPDX-License-Identifier: Apache-2.0
/* libcbgen from outside: its interface on a GPU, with nothing but cbgen.h and the CUDA driver.
 *
 *   bench_api_check [--quick] [NAME…]      NAME: only checks whose name starts so
 *
 * One line per check, and a summary; the exit status is 1 when a check failed, 3 when CUDA did. Every product is
 * compared with one on the host, componentwise (sample.h), or bit by bit with one that must be the same. --quick:
 * smaller matrices and fewer rounds, for compute-sanitizer and for the fake CUDA. */
#include "bench/api_check.h"

#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- one check */

void fail(struct checks *checks, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(checks->message, sizeof checks->message, format, arguments);
  va_end(arguments);
  longjmp(checks->end, 1);
}

void must(struct checks *checks, const cbgen_context *context, cbgen_status status, const char *what) {
  EXPECT(checks, !status, "%s: %s (%s)", what, cbgen_message(context), cbgen_status_name(status));
}

void must_operator(struct checks *checks, const cbgen_operator *op, cbgen_status status, const char *what) {
  EXPECT(checks, !status, "%s: %s (%s)", what, cbgen_operator_message(op), cbgen_status_name(status));
}

void make_directory(struct checks *checks, char path[64]) {
  const char *folder = getenv("TMPDIR");
  snprintf(path, 64, "%.36s/cbgen-check-XXXXXX", folder && *folder ? folder : "/tmp");
  EXPECT(checks, mkdtemp(path), "no directory '%s'", path);
}

void remove_directory(const char *path) {
  char command[100];
  snprintf(command, sizeof command, "rm -rf '%s'", path);
  if (*path && system(command)) fprintf(stderr, "'%s' is left\n", path);
}

/* ---- contexts and operators */

static cbgen_status apply(cbgen_context *context, const char *settings) {
  char copy[200], *rest = NULL;
  cbgen_status status = CBGEN_OK;
  snprintf(copy, sizeof copy, "%s", settings);
  for (char *name = strtok_r(copy, " ", &rest); name && !status; name = strtok_r(NULL, " ", &rest)) {
    char *const value = strchr(name, '=');
    *value = 0;
    status = cbgen_set(context, name, value + 1);
  }
  return status;
}

cbgen_context *new_context(struct checks *checks, const char *settings, const char *cache) {
  cbgen_context *context;
  EXPECT(checks, !cbgen_context_create(&context), "no context");
  must(checks, context, cbgen_set(context, "cache", cache ? cache : checks->cache), "cache");
  must(checks, context, apply(context, settings), settings);
  return context;
}

struct bed new_bed(struct checks *checks, const char *settings, struct specification specification, struct form form,
                   cbgen_request request) {
  struct bed bed = {.transposed = request.transpose};
  request.struct_size = sizeof request;
  bed.context = new_context(checks, settings, NULL);
  bed.sample = new_sample(specification, form);
  const cbgen_status status = cbgen_compile(bed.context, &bed.sample.view, &request, &bed.op);
  if (status == CBGEN_ERROR_UNSUPPORTED || status == CBGEN_ERROR_LIMIT)
    checks->refused++;
  else
    must(checks, bed.context, status, settings);
  return bed;
}

void free_bed(struct bed *bed) {
  cbgen_operator_free(bed->op);
  cbgen_context_destroy(bed->context);
  free_sample(&bed->sample);
}

static cbgen_info info_of(const cbgen_operator *op) {
  cbgen_info info = {.struct_size = sizeof info};
  cbgen_operator_info(op, &info);
  return info;
}

int has_scratch(const cbgen_operator *op) {
  return info_of(op).has_scratch;
}

void check_product(struct checks *checks, const struct bed *bed, cbgen_operator *op, double alpha, double beta,
                   void *stream) {
  char message[200];
  if (!op) op = bed->op;
  struct vectors vectors = new_vectors(op, 5);
  const cbgen_product product = product_of(&vectors, alpha, beta, stream);
  if (beta == 0) spoil_y(&vectors);
  must_operator(checks, op, cbgen_multiply(op, &product), "a product");
  REQUIRE_CUDA(cuda.synchronize());
  cbgen_operator_unbind(op);
  const int64_t wrong = count_wrong_rows(op, &bed->sample, bed->transposed, &vectors, alpha, beta, message);
  free_vectors(&vectors);
  EXPECT(checks, !wrong, "%lld rows wrong: %s; %.300s", (long long)wrong, message, cbgen_operator_plan(op));
  checks->products++;
}

unsigned char *bits_of_product(struct checks *checks, cbgen_operator *op, uint64_t seed, size_t *bytes) {
  struct vectors vectors = new_vectors(op, seed);
  const cbgen_product product = product_of(&vectors, 0.75, 0.5, NULL);
  must_operator(checks, op, cbgen_multiply(op, &product), "a product");
  REQUIRE_CUDA(cuda.synchronize());
  cbgen_operator_unbind(op);
  unsigned char *const y = take_y(&vectors, bytes);
  free_vectors(&vectors);
  checks->products++;
  return y;
}

void check_same(struct checks *checks, cbgen_operator *op, cbgen_operator *other, const char *what) {
  size_t bytes, other_bytes;
  unsigned char *const y = bits_of_product(checks, op, 11, &bytes);
  unsigned char *const other_y = bits_of_product(checks, other, 11, &other_bytes);
  const int same = bytes == other_bytes && !memcmp(y, other_y, bytes);
  free(y);
  free(other_y);
  EXPECT(checks, same, "%s: products differ; %.300s", what, cbgen_operator_plan(op));
}

/* Matrices that compile in a moment, also where a kernel is emulated. */
static const struct recipe all_recipes[] = {
    {"recipe=sell", {SHAPE_RANDOM, 900, 900, 9, 0, 0, 0, 21}},
    {"recipe=sell-long", {SHAPE_LONG_ROWS, 1200, 1200, 3, 0, 0, 0, 22}},
    {"recipe=merge", {SHAPE_POWER_LAW, 900, 900, 6, 0, 0, 0, 23}},
    {"recipe=merge merge-piece=256", {SHAPE_LONG_ROWS, 1300, 1300, 4, 0, 0, 0, 24}},
    {"recipe=dia", {SHAPE_DIAGONALS, 1000, 1000, 7, 0, 0, 0, 25}},
    {"recipe=blocks", {SHAPE_BLOCKS, 900, 900, 12, 0, 0, 0, 26}},
    {"recipe=cb", {SHAPE_RANDOM, 800, 800, 14, 0, 0, 0, 27}},
    {"recipe=cb unit-budget=64", {SHAPE_POWER_LAW, 700, 700, 8, 0, 0, 0, 28}},
    {"recipe=cb-long long-row=64", {SHAPE_LONG_ROWS, 1100, 1100, 5, 0, 0, 0, 29}},
    {"recipe=hot hot-columns=256 hot-gather=off", {SHAPE_POWER_LAW, 1000, 1000, 8, 0, 0, 0, 30}},
    {"recipe=hot hot-columns=256 hot-gather=on", {SHAPE_POWER_LAW, 1000, 1000, 8, 0, 0, 0, 31}},
    {"recipe=phases phase-columns=400 phase-set=96 phase-row=1", {SHAPE_POWER_LAW, 1000, 1000, 8, 0, 0, 0, 34}},
    {"recipe=auto", {SHAPE_EMPTY_ROWS, 1500, 1500, 9, 0, 0, 0, 32}},
};
struct recipe recipes[sizeof all_recipes / sizeof *all_recipes];
int recipes_count;

/* Those that the library knows. */
static void note_recipes(struct checks *checks) {
  for (size_t i = 0; i < sizeof all_recipes / sizeof *all_recipes; i++) {
    cbgen_context *context;
    EXPECT(checks, !cbgen_context_create(&context), "no context");
    if (apply(context, all_recipes[i].settings))
      printf("not known: %s\n", all_recipes[i].settings);
    else
      recipes[recipes_count++] = all_recipes[i];
    cbgen_context_destroy(context);
  }
}

/* ---- forms and types */

static void check_forms(struct checks *checks) {
  for (int type = CBGEN_F64; type <= CBGEN_BF16; type++)
    for (int way = 0; way < 16; way++) {
      const struct form form = {
          way & 1 ? 64 : 32, way & 2 ? 64 : 32, way >> 2 & 1, (cbgen_type)type, way & 8 ? CBGEN_DEVICE : CBGEN_HOST, 0};
      const struct specification specification = {SHAPE_RANDOM, 300, 260, 7, way % 3 == 1, way % 3 == 1, 1, 40};
      struct bed bed = new_bed(checks, "", specification, form, (cbgen_request){0});
      check_product(checks, &bed, NULL, 1.25, -0.5, NULL);
      free_bed(&bed);
    }
  for (int memory = CBGEN_HOST; memory <= CBGEN_DEVICE; memory++) {
    const struct form form = {.memory = (cbgen_memory)memory, .no_values = 1};
    struct bed bed =
        new_bed(checks, "", (struct specification){SHAPE_RANDOM, 300, 260, 7, 0, 0, 0, 40}, form, (cbgen_request){0});
    check_product(checks, &bed, NULL, 1, 0, NULL);
    free_bed(&bed);
  }
}

/* Every stored type from every given one. */
static void check_types(struct checks *checks) {
  static const char *const types[] = {"type=f64", "type=f32", "type=f32-f64", "type=f16-f32",
                                      "type=bf16-f32", "type=f16", "type=bf16"};
  for (size_t t = 0; t < sizeof types / sizeof *types; t++)
    for (int given = CBGEN_F64; given <= CBGEN_BF16; given++) {
      const struct form form = {.type = (cbgen_type)given, .memory = given % 2 ? CBGEN_DEVICE : CBGEN_HOST};
      struct bed bed = new_bed(checks, types[t], (struct specification){SHAPE_RANDOM, 310, 270, 7, 1, 1, 1, 41}, form,
                               (cbgen_request){0});
      check_product(checks, &bed, NULL, -1.5, 0.25, checks->stream);
      free_bed(&bed);
    }
}

static void check_shapes(struct checks *checks) {
  static const struct specification shapes[] = {
      {SHAPE_RANDOM, 40, 2000, 30, 0, 0, 0, 1},     {SHAPE_RANDOM, 2000, 40, 5, 0, 0, 0, 2},
      {SHAPE_EMPTY, 70, 50, 1, 0, 0, 0, 3},         {SHAPE_EMPTY, 0, 50, 1, 0, 0, 0, 4},
      {SHAPE_EMPTY, 50, 0, 1, 0, 0, 0, 5},          {SHAPE_EMPTY, 0, 0, 1, 0, 0, 0, 6},
      {SHAPE_DENSE, 1, 3000, 1, 0, 0, 0, 7},        {SHAPE_DENSE, 3000, 1, 1, 0, 0, 0, 8},
      {SHAPE_DENSE, 1, 1, 1, 0, 0, 0, 9},           {SHAPE_DENSE, 65, 130, 1, 0, 0, 0, 10},
      {SHAPE_EMPTY_ROWS, 700, 300, 9, 0, 0, 0, 11}, {SHAPE_LONG_ROWS, 1100, 900, 3, 0, 0, 0, 12},
  };
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int transpose = 0; transpose < 2; transpose++) {
      const struct form form = {.memory = transpose ? CBGEN_DEVICE : CBGEN_HOST};
      struct bed bed = new_bed(checks, "", shapes[s], form, (cbgen_request){.transpose = transpose});
      check_product(checks, &bed, NULL, 2, 0, checks->stream);
      check_product(checks, &bed, NULL, 0.5, 3, NULL);
      free_bed(&bed);
    }
}

static void check_transposed(struct checks *checks) {
  for (int memory = CBGEN_HOST; memory <= CBGEN_DEVICE; memory++)
    for (int type = CBGEN_F64; type <= CBGEN_F32; type++) {
      const struct form form = {64, 32, 1, (cbgen_type)type, (cbgen_memory)memory, 0};
      struct bed bed = new_bed(checks, "", (struct specification){SHAPE_POWER_LAW, 500, 350, 6, 1, 1, 1, 42}, form,
                               (cbgen_request){.transpose = 1, .values = CBGEN_VALUES_MUTABLE});
      check_product(checks, &bed, NULL, 1, -1, NULL);
      renew_sample(&bed.sample, 43);
      const cbgen_update update = {sizeof update, bed.sample.view.values, form.type, form.memory, NULL};
      must_operator(checks, bed.op, cbgen_update_values(bed.op, &update), "new values");
      check_product(checks, &bed, NULL, 1, -1, NULL);
      free_bed(&bed);
    }
}

/* The three forms of a kernel, and α and β. With β = 0 y starts as NaN, which must not be read. */
static void check_scalars(struct checks *checks) {
  static const double scalars[][2] = {{1, 0}, {1, 1}, {0, 0}, {0, 1}, {0, -2}, {-1, 0}, {2.5, -0.75}, {1e-3, 1e3}};
  static const char *const forms[] = {"form=axpby", "form=ax", "form=add"};
  for (int f = 0; f < 3; f++)
    for (int r = 0; r < recipes_count; r += checks->quick ? 5 : 1) {
      char settings[100];
      snprintf(settings, sizeof settings, "%s %s", recipes[r].settings, forms[f]);
      struct bed bed = new_bed(checks, settings, recipes[r].specification, (struct form){0}, (cbgen_request){0});
      EXPECT(checks, bed.op, "%s: %s", settings, cbgen_message(bed.context));
      for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++) {
        const double alpha = scalars[i][0], beta = scalars[i][1];
        if (!f || (alpha == 1 && beta == f - 1)) {
          check_product(checks, &bed, NULL, alpha, beta, NULL);
          continue;
        }
        struct vectors vectors = new_vectors(bed.op, 1);
        const cbgen_product product = product_of(&vectors, alpha, beta, NULL);
        const cbgen_status status = cbgen_multiply(bed.op, &product);
        free_vectors(&vectors);
        EXPECT(checks, status == CBGEN_ERROR_ARGUMENT, "%s takes alpha %g and beta %g", settings, alpha, beta);
      }
      free_bed(&bed);
    }
}

/* Every recipe takes its own matrix, and what it takes of the others' it multiplies right. */
static void check_recipes(struct checks *checks) {
  static const char *const types[] = {"type=f64", "type=f32", "type=f32-f64", "type=f16-f32",
                                      "type=bf16-f32", "type=f16", "type=bf16"};
  const int types_count = checks->quick ? 2 : 7;
  for (int r = 0; r < recipes_count; r++)
    for (int m = 0; m < recipes_count; m += 1)
      for (int t = 0; t < types_count; t++) {
        char settings[100];
        if (m != r && (checks->quick || t > 1)) continue;
        snprintf(settings, sizeof settings, "%s %s", recipes[r].settings, types[t]);
        struct bed bed = new_bed(checks, settings, recipes[m].specification, (struct form){0}, (cbgen_request){0});
        EXPECT(checks, bed.op || m != r, "%s: %s", settings, cbgen_message(bed.context));
        if (bed.op) check_product(checks, &bed, NULL, 1.5, 0.5, checks->stream);
        free_bed(&bed);
      }
  snprintf(checks->detail, sizeof checks->detail, "%ld refused", checks->refused);
}

/* ---- new values */

/* The operator's products against those of one that is compiled anew from the sample as it is. */
static void check_as_compiled(struct checks *checks, const struct bed *bed, const char *what) {
  const cbgen_request request = {.struct_size = sizeof request, .transpose = bed->transposed};
  cbgen_operator *fresh;
  must(checks, bed->context, cbgen_compile(bed->context, &bed->sample.view, &request, &fresh), "a fresh compile");
  check_same(checks, bed->op, fresh, what);
  cbgen_operator_free(fresh);
}

static void update_from(struct checks *checks, struct bed *bed, const void *values, cbgen_memory memory,
                        const char *what) {
  const cbgen_update update = {sizeof update, values, bed->sample.form.type, memory, checks->stream};
  must_operator(checks, bed->op, cbgen_update_values(bed->op, &update), what);
  REQUIRE_CUDA(cuda.synchronize());
  check_as_compiled(checks, bed, what);
}

static void check_updates_of(struct checks *checks, struct bed *bed) {
  const size_t bytes = (size_t)bed->sample.entries * size_of_type(bed->sample.form.type);
  void *pinned;
  renew_sample(&bed->sample, 100);
  update_from(checks, bed, bed->sample.arrays[2], CBGEN_HOST, "new values from pageable memory");
  check_product(checks, bed, NULL, 1, 0, NULL);
  REQUIRE_CUDA(cuda.host_alloc(&pinned, bytes, 0));
  renew_sample(&bed->sample, 101);
  memcpy(pinned, bed->sample.arrays[2], bytes);
  update_from(checks, bed, pinned, CBGEN_HOST, "new values from pinned memory");
  REQUIRE_CUDA(cuda.synchronize());
  REQUIRE_CUDA(cuda.host_release(pinned));
  renew_sample(&bed->sample, 102);
  const address_t there = device_alloc(bytes);
  put_bytes(there, bed->sample.arrays[2], bytes);
  update_from(checks, bed, pointer_to(there), CBGEN_DEVICE, "new values from device memory");
  check_product(checks, bed, NULL, 1, 0, NULL);
  device_free(there);
}

static void check_updates(struct checks *checks) {
  static const char *const types[] = {"type=f64", "type=f32", "type=f32-f64", "type=f16-f32",
                                      "type=bf16-f32", "type=f16", "type=bf16"};
  for (int r = 0; r < recipes_count; r++)
    for (int given = CBGEN_F64; given <= CBGEN_BF16; given++)
      for (int messy = 0; messy < 2; messy++) {
        struct specification specification = recipes[r].specification;
        char settings[100];
        /* in quick mode one type and one order for each recipe, in turns */
        if (checks->quick && (given != r % 4 || messy != (r / 4) % 2)) continue;
        snprintf(settings, sizeof settings, "%s %s", recipes[r].settings, types[(r + given + messy) % 7]);
        specification.duplicates = specification.unsorted = messy;
        specification.plain_values = 1;
        struct bed bed = new_bed(checks, settings, specification, (struct form){.type = (cbgen_type)given},
                                 (cbgen_request){.values = CBGEN_VALUES_MUTABLE});
        EXPECT(checks, bed.op, "%s: %s", settings, cbgen_message(bed.context));
        check_updates_of(checks, &bed);
        free_bed(&bed);
      }
}

static void check_refused_updates(struct checks *checks) {
  static const cbgen_values kinds[] = {CBGEN_VALUES_STORED, CBGEN_VALUES_FIXED};
  for (int i = 0; i < 2; i++) {
    struct bed bed =
        new_bed(checks, "", recipes[0].specification, (struct form){0}, (cbgen_request){.values = kinds[i]});
    const cbgen_update update = {sizeof update, bed.sample.arrays[2], CBGEN_F64, CBGEN_HOST, NULL};
    const cbgen_status status = cbgen_update_values(bed.op, &update);
    EXPECT(checks, status == CBGEN_ERROR_ARGUMENT && *cbgen_operator_message(bed.op),
           "values that cannot be renewed: %s", cbgen_status_name(status));
    check_product(checks, &bed, NULL, 1, 0, NULL);
    free_bed(&bed);
  }
}

/* ---- fixed values, and matrices whose upload and packing go other ways for their length */

/* Few values, one value, many: what they have in common may become part of the kernel. */
static void check_fixed_values(struct checks *checks) {
  for (int r = 0; r < recipes_count; r += checks->quick ? 4 : 1)
    for (int kind = 0; kind < 3; kind++)
      for (int type = CBGEN_F64; type <= CBGEN_F32; type++) {
        struct specification specification = recipes[r].specification;
        const struct form form = {
            .type = (cbgen_type)type, .memory = kind % 2 ? CBGEN_DEVICE : CBGEN_HOST, .no_values = kind == 2};
        specification.plain_values = kind == 0;
        if (checks->quick && type != r / 4 % 2) continue;
        struct bed bed =
            new_bed(checks, recipes[r].settings, specification, form, (cbgen_request){.values = CBGEN_VALUES_FIXED});
        EXPECT(checks, bed.op, "%s: %s", recipes[r].settings, cbgen_message(bed.context));
        check_product(checks, &bed, NULL, 1.5, 0, NULL);
        check_product(checks, &bed, NULL, 1, -0.5, checks->stream);
        free_bed(&bed);
      }
}

static void check_long(struct checks *checks) {
  static const struct specification specification = {SHAPE_RANDOM, 260000, 250000, 10, 1, 1, 1, 50};
  for (int memory = CBGEN_HOST; memory <= CBGEN_DEVICE && !checks->quick; memory++) {
    const struct form form = {.memory = (cbgen_memory)memory, .row_bits = 64, .base = 1};
    struct bed bed = new_bed(checks, "", specification, form, (cbgen_request){.values = CBGEN_VALUES_MUTABLE});
    check_product(checks, &bed, NULL, 1, 0.5, checks->stream);
    check_updates_of(checks, &bed);
    free_bed(&bed);
  }
  if (checks->quick) snprintf(checks->detail, sizeof checks->detail, "not run: quick");
}

/* ---- save and load */

static unsigned char *save(struct checks *checks, cbgen_operator *op, size_t *length) {
  size_t again;
  must_operator(checks, op, cbgen_operator_save(op, NULL, 0, length), "the length of a saved operator");
  unsigned char *const bytes = malloc(*length + 1);
  EXPECT(checks, bytes, "no memory");
  must_operator(checks, op, cbgen_operator_save(op, bytes, *length, &again), "saving");
  EXPECT(checks, again == *length, "a saved operator's length changes");
  return bytes;
}

static void check_damaged(struct checks *checks, const struct bed *bed, unsigned char *bytes, size_t length) {
  cbgen_operator *op;
  const size_t at = length / 3;
  bytes[at] ^= 4;
  const cbgen_status flipped = cbgen_operator_load(bed->context, bytes, length, &op);
  EXPECT(checks, flipped == CBGEN_ERROR_FORMAT && !op, "a damaged operator loads: %s", cbgen_status_name(flipped));
  bytes[at] ^= 4;
  const cbgen_status cut = cbgen_operator_load(bed->context, bytes, length - 1, &op);
  EXPECT(checks, cut == CBGEN_ERROR_FORMAT && !op, "a truncated operator loads: %s", cbgen_status_name(cut));
}

static void check_saving(struct checks *checks) {
  for (int r = 0; r < recipes_count; r += checks->quick ? 3 : 1)
    for (int kind = CBGEN_VALUES_STORED; kind <= CBGEN_VALUES_MUTABLE; kind++) {
      struct bed bed = new_bed(checks, recipes[r].settings, recipes[r].specification, (struct form){0},
                               (cbgen_request){.values = (cbgen_values)kind});
      cbgen_context *const other = new_context(checks, "", "");
      cbgen_operator *loaded;
      size_t length;
      EXPECT(checks, bed.op, "%s: %s", recipes[r].settings, cbgen_message(bed.context));
      unsigned char *const bytes = save(checks, bed.op, &length);
      check_damaged(checks, &bed, bytes, length);
      must(checks, other, cbgen_operator_load(other, bytes, length, &loaded), "loading");
      free(bytes);
      check_same(checks, bed.op, loaded, "a loaded operator");
      cbgen_operator_free(bed.op);
      bed.op = loaded;
      if (kind == CBGEN_VALUES_MUTABLE) check_updates_of(checks, &bed);
      check_product(checks, &bed, NULL, 1, 2, checks->stream);
      free_bed(&bed);
      cbgen_context_destroy(other);
    }
}

/* ---- the cache */

static cbgen_operator *compile_and_expect(struct checks *checks, cbgen_context *context, const struct sample *sample,
                                          cbgen_cache_result result) {
  static const char *const names[] = {"off", "miss", "hit"};
  const cbgen_request now = {.struct_size = sizeof now, .specialise = CBGEN_SPECIALISE_NOW}; /* which is stored */
  cbgen_operator *op;
  must(checks, context, cbgen_compile(context, &sample->view, &now, &op), "compiling");
  const cbgen_info info = info_of(op);
  EXPECT(checks, info.cache == result, "the cache says %s, not %s", names[info.cache], names[result]);
  return op;
}

static void check_cache(struct checks *checks) {
  static const char *const keep[] = {"cache-data=auto", "cache-data=never", "cache-data=always"};
  for (int r = 0; r < recipes_count; r += checks->quick ? 5 : 1) {
    struct sample sample = new_sample(recipes[r].specification, (struct form){0});
    struct sample there = new_sample(recipes[r].specification, (struct form){.memory = CBGEN_DEVICE});
    char settings[100], path[64];
    make_directory(checks, path);
    snprintf(settings, sizeof settings, "%s %s", recipes[r].settings, keep[r % 3]);
    cbgen_context *const first = new_context(checks, settings, path),
                         *const second = new_context(checks, settings, path),
                         *const without = new_context(checks, settings, "");
    cbgen_operator *const miss = compile_and_expect(checks, first, &sample, CBGEN_CACHE_MISS);
    cbgen_operator *const others[] = {compile_and_expect(checks, first, &sample, CBGEN_CACHE_HIT),
                                      compile_and_expect(checks, second, &sample, CBGEN_CACHE_HIT),
                                      compile_and_expect(checks, second, &there, CBGEN_CACHE_HIT),
                                      compile_and_expect(checks, without, &there, CBGEN_CACHE_OFF)};
    for (int i = 0; i < 4; i++) {
      check_same(checks, miss, others[i], settings);
      EXPECT(checks, i == 3 || !strcmp(cbgen_operator_key(miss), cbgen_operator_key(others[i])), "keys differ");
      cbgen_operator_free(others[i]);
    }
    cbgen_operator_free(miss);
    cbgen_context_destroy(first);
    cbgen_context_destroy(second);
    cbgen_context_destroy(without);
    remove_directory(path);
    free_sample(&sample);
    free_sample(&there);
  }
}

/* ---- contexts side by side */

struct worker {
  pthread_t thread;
  int number, gpu;
  const char *cache;
  char error[300];
};

/* A context of the thread's own: compile, multiply, compare. */
static void *work(void *user) {
  struct worker *worker = user;
  char gpu[12], message[200];
  cbgen_context *context;
  cbgen_operator *op = NULL;
  use_gpu(worker->gpu);
  snprintf(gpu, sizeof gpu, "%d", worker->gpu);
  /* the first two are the same for all threads */
  for (int i = 0; i < 3 && !*worker->error; i++) {
    struct specification specification = recipes[i < 2 ? i : 0].specification;
    if (i == 2) specification.seed += 100 + (uint64_t)worker->number;
    struct sample sample = new_sample(specification, (struct form){0});
    cbgen_status status = cbgen_context_create(&context);
    if (!status) status = cbgen_set(context, "cache", worker->cache);
    if (!status) status = cbgen_set(context, "device", gpu);
    if (!status) status = cbgen_compile(context, &sample.view, NULL, &op);
    if (status) {
      snprintf(worker->error, sizeof worker->error, "thread %d: %.250s", worker->number, cbgen_message(context));
      return NULL;
    }
    struct vectors vectors = new_vectors(op, 3);
    const cbgen_product product = product_of(&vectors, 1, 1, NULL);
    status = cbgen_multiply(op, &product);
    REQUIRE_CUDA(cuda.synchronize());
    if (status) snprintf(worker->error, sizeof worker->error, "%.250s", cbgen_operator_message(op));
    if (!status && count_wrong_rows(op, &sample, 0, &vectors, 1, 1, message))
      snprintf(worker->error, sizeof worker->error, "thread %d: %.250s", worker->number, message);
    free_vectors(&vectors);
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
    free_sample(&sample);
  }
  return NULL;
}

static void run_workers(struct checks *checks, int gpus) {
  struct worker workers[4] = {0};
  char path[64];
  make_directory(checks, path);
  for (int i = 0; i < gpus; i++) use_gpu(i);
  use_gpu(0);
  for (int i = 0; i < 4; i++) {
    workers[i].number = i;
    workers[i].gpu = i % gpus;
    workers[i].cache = path;
    EXPECT(checks, !pthread_create(&workers[i].thread, NULL, work, &workers[i]), "no thread");
  }
  for (int i = 0; i < 4; i++) pthread_join(workers[i].thread, NULL);
  remove_directory(path);
  for (int i = 0; i < 4; i++) EXPECT(checks, !*workers[i].error, "%s", workers[i].error);
  checks->products += 12;
}

static void check_contexts(struct checks *checks) {
  struct bed beds[2];
  run_workers(checks, 1);
  for (int i = 0; i < 2; i++)
    beds[i] = new_bed(checks, recipes[i].settings, recipes[i].specification, (struct form){0}, (cbgen_request){0});
  cbgen_context_destroy(beds[0].context); /* its operator lives on */
  beds[0].context = NULL;
  for (int i = 0; i < 2; i++) check_product(checks, &beds[i], NULL, 1, 1, checks->stream);
  for (int i = 0; i < 2; i++) free_bed(&beds[i]);
}

/* Two operators, one on each GPU, used in turns by one thread; then four threads on two GPUs. */
static void check_gpus(struct checks *checks) {
  if (count_gpus() < 2) {
    snprintf(checks->detail, sizeof checks->detail, "not run: there is one GPU");
    return;
  }
  void *const kept = checks->stream, *streams[2];
  struct bed beds[2];
  for (int gpu = 0; gpu < 2; gpu++) {
    char settings[100];
    use_gpu(gpu);
    streams[gpu] = new_stream();
    snprintf(settings, sizeof settings, "%s device=%d", recipes[2].settings, gpu);
    beds[gpu] = new_bed(checks, settings, recipes[2].specification, (struct form){.memory = CBGEN_DEVICE},
                        (cbgen_request){.values = CBGEN_VALUES_MUTABLE});
  }
  for (int round = 0; round < 4; round++) {
    use_gpu(round % 2);
    checks->stream = streams[round % 2];
    check_product(checks, &beds[round % 2], NULL, 1, -1, NULL);
    check_updates_of(checks, &beds[round % 2]);
  }
  for (int gpu = 0; gpu < 2; gpu++) {
    use_gpu(1 - gpu); /* not the operator's */
    cbgen_operator_free(beds[gpu].op);
    cbgen_context_destroy(beds[gpu].context);
    use_gpu(gpu);
    free_sample(&beds[gpu].sample);
    REQUIRE_CUDA(cuda.stream_destroy(streams[gpu]));
  }
  checks->stream = kept;
  run_workers(checks, 2);
}

/* ---- all of them */

static const struct {
  const char *name;
  void (*run)(struct checks *checks);
} list[] = {
    {"forms: indices, bases, memory, types", check_forms},
    {"types: each stored from each given", check_types},
    {"shapes: rectangular, empty, thin", check_shapes},
    {"transposed", check_transposed},
    {"scalars: alpha, beta, forms of kernels", check_scalars},
    {"recipes", check_recipes},
    {"updates against fresh compiles", check_updates},
    {"updates refused", check_refused_updates},
    {"fixed values", check_fixed_values},
    {"long: 2.6 million entries", check_long},
    {"saving and loading", check_saving},
    {"cache: misses and hits", check_cache},
    {"contexts side by side", check_contexts},
    {"gpus: two of them", check_gpus},
    {"misuse of scratch", check_misuse},
    {"ready arrays: made so by a stream", check_ready_arrays},
    {"graphs", check_graphs},
    {"threads: four, with four streams each", check_threads},
    {"overlap: whether races would show", check_teeth},
    {"races: chains of steps", check_races},
    {"graph races: the same, captured", check_graph_races},
    {"two streams: new values and products", check_two_streams},
};

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* 1: it failed. */
static int run(struct checks *checks, int number) {
  const double start = now();
  volatile int failed = 0;
  checks->products = checks->refused = 0;
  *checks->detail = *checks->message = 0;
  if (!setjmp(checks->end))
    list[number].run(checks);
  else
    failed = 1;
  use_gpu(0);
  printf("%s  %-42s %6ld products %7.2f s  %s\n", failed ? "FAILED" : "ok    ", list[number].name, checks->products,
         now() - start, failed ? checks->message : checks->detail);
  fflush(stdout);
  return failed;
}

static int is_wanted(const char *name, char *const *wanted, int count) {
  for (int i = 0; i < count; i++)
    if (!strncmp(name, wanted[i], strlen(wanted[i]))) return 1;
  return !count;
}

/* The application's kernel takes its head from any generated text. */
static void open_rewriter(struct checks *checks) {
  struct bed bed = new_bed(checks, "", recipes[0].specification, (struct form){0}, (cbgen_request){0});
  checks->rewriter = new_rewriter();
  free_bed(&bed);
}

static int run_all(struct checks *checks, char *const *wanted, int count) {
  const double start = now();
  volatile long products = 0; /* keep their values over longjmp */
  volatile int ran = 0, failed = 0;
  checks->stream = new_stream();
  if (setjmp(checks->end)) {
    printf("FAILED  to start: %s\n", checks->message);
    return 1;
  }
  make_directory(checks, checks->cache);
  note_recipes(checks);
  open_rewriter(checks);
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    if (!is_wanted(list[i].name, wanted, count)) continue;
    failed = failed + run(checks, (int)i);
    products = products + checks->products;
    ran = ran + 1;
  }
  free_rewriter(checks->rewriter);
  REQUIRE_CUDA(cuda.stream_destroy(checks->stream));
  remove_directory(checks->cache);
  printf("%d of %d checks right, %ld products compared, %.1f s, %d GPUs, cbgen %s%s\n", ran - failed, ran, products,
         now() - start, count_gpus(), cbgen_version(), checks->quick ? ", quick" : "");
  return failed || !ran;
}

int main(int argc, char **argv) {
  static struct checks checks;
  int next = 1;
  if (next < argc && !strcmp(argv[next], "--quick")) {
    checks.quick = 1;
    next++;
  }
  if (next < argc && argv[next][0] == '-') {
    fprintf(stderr, "usage: bench_api_check [--quick] [NAME...]\n");
    return 2;
  }
  if (!open_cuda()) return 3;
  const int bad = run_all(&checks, argv + next, argc - next);
  close_cuda();
  return bad;
}
