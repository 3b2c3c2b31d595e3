// SPDX-License-Identifier: Apache-2.0
/* libcbgen for a long time: random matrices are compiled, multiplied (and compared with the host), given new values,
 * cloned, saved, loaded and freed in random order, with a cache and without, and matrices that are refused in between.
 *
 *   bench_soak [SECONDS] [--seed N] [--entries N] [--distinct N] [--host MIB] [--device MIB]
 *
 *   SECONDS     600; longer when there are too few samples by then
 *   --seed      of everything (1). What is done depends on it and, at the samples alone, on the clock
 *   --entries   about how many nonzeros a matrix has at most (300000)
 *   --distinct  so many different matrices (0: each is new)
 *   --host      MiB by which the host's resident memory may grow (48), --device likewise for the GPU's (4)
 *
 * Every 10 s (or a 20th of the time) all operators and contexts are freed, and memory is looked at: the resident pages
 * of the process and what the GPU has free. Growth is the median of the last quarter of the samples less that of the
 * first quarter after a warm-up (a fifth of them): driver, NVRTC and allocators fill their pools first. Fails (1) when
 * a product is wrong, a call fails, or memory grows beyond its bound; 3: CUDA failed. */
#include "bench/sample.h"

#include <malloc.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 6, LEAST_SAMPLES = 8, MOST_SAMPLES = 4000, CONTEXTS = 2 };

/* ---- settings of an operator */

static const char *const kernels[] = {
    "recipe=auto",   "recipe=sell", "recipe=sell-long", "recipe=merge",         "recipe=dia",
    "recipe=blocks", "recipe=cb",   "recipe=cb-long",   "recipe=cb atomics=on", "recipe=hot hot-columns=100"};
static const char *const types[] = {"type=auto",    "type=f64",     "type=f32",
                                    "type=f32-f64", "type=f16-f32", "type=bf16-f32", "type=f16",     "type=bf16"};

struct slot {
  cbgen_operator *op; /* NULL: the slot is empty */
  struct sample sample;
  struct vectors vectors;
  int transposed;
  cbgen_values values;
};

enum operation { COMPILE, MULTIPLY, UPDATE, CLONE, SAVE_AND_LOAD, FREE, REFUSE, OPERATIONS };
static const char *const names[] = {"compiled",         "multiplied", "given new values", "cloned",
                                    "saved and loaded", "freed",      "refused as broken"};

struct reading {
  double seconds;
  long operations, compiles;
  double host, device; /* MiB in use */
};

struct soak {
  double seconds, host_bound, device_bound;
  uint64_t seed, distinct;
  int64_t entries;
  char cache[64];
  cbgen_context *contexts[CONTEXTS]; /* with a cache, without one; NULL: not open */
  struct slot slots[SLOTS];
  long counts[OPERATIONS], declined, hits; /* declined: by a recipe, for a matrix that is not its */
  struct reading readings[MOST_SAMPLES];
  int readings_count;
};

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static uint64_t below(struct soak *soak, uint64_t bound) {
  return draw(&soak->seed) % bound;
}

static void end(const struct soak *soak, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));
static void end(const struct soak *soak, const char *format, ...) {
  va_list arguments;
  printf("FAILED after %ld compilations: ", soak->counts[COMPILE]);
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
  printf("\n");
  exit(1);
}

static void must(const struct soak *soak, cbgen_status status, const char *message, const char *what) {
  if (status) end(soak, "%s: %s (%s)", what, message, cbgen_status_name(status));
}

/* ---- contexts */

static cbgen_context *context_of(struct soak *soak, int number) {
  cbgen_context **const context = &soak->contexts[number];
  if (*context) return *context;
  if (cbgen_context_create(context)) end(soak, "no context");
  must(soak, cbgen_set(*context, "cache", number ? "" : soak->cache), cbgen_message(*context), "cache");
  must(soak, cbgen_set(*context, "cache-limit", "64M"), cbgen_message(*context), "cache-limit");
  return *context;
}

static void set(struct soak *soak, cbgen_context *context, const char *settings) {
  char copy[100], *rest = NULL;
  must(soak, cbgen_set(context, "atomics", "off"), cbgen_message(context), "atomics");
  snprintf(copy, sizeof copy, "%s", settings);
  for (char *name = strtok_r(copy, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
    char *const value = strchr(name, '=');
    *value = 0;
    must(soak, cbgen_set(context, name, value + 1), cbgen_message(context), settings);
  }
}

/* ---- operations */

static struct specification random_specification(struct soak *soak, uint64_t *seed) {
  const int64_t entries = 1 + (int64_t)((double)soak->entries * (double)(draw(seed) % 1000 + 1) / 1000);
  struct specification s = {.shape = (enum shape)(draw(seed) % SHAPES), .per_row = 1 + (int)(draw(seed) % 30)};
  s.rows = entries / s.per_row + (int64_t)(draw(seed) % 40);
  s.cols = draw(seed) % 3 ? s.rows : 1 + (int64_t)(draw(seed) % (uint64_t)(2 * s.rows + 10));
  if (s.shape == SHAPE_DENSE) {
    s.rows = 1 + (int64_t)(draw(seed) % 300);
    s.cols = 1 + entries / s.rows / 2;
  }
  if (s.shape == SHAPE_LONG_ROWS && s.cols > 4000) s.cols = 4000;
  s.duplicates = draw(seed) % 4 == 0;
  s.unsorted = draw(seed) % 3 == 0;
  s.plain_values = 1; /* so that every stored type holds them */
  s.seed = draw(seed);
  return s;
}

static void clear(struct slot *slot) {
  cbgen_operator_free(slot->op);
  if (slot->op) free_vectors(&slot->vectors);
  free_sample(&slot->sample);
  *slot = (struct slot){0};
}

/* A new operator in an empty slot, which stays empty when the recipe declines the matrix. */
static void compile(struct soak *soak, struct slot *slot) {
  uint64_t seed = soak->distinct ? below(soak, soak->distinct) + 1 : draw(&soak->seed);
  cbgen_context *const context = context_of(soak, draw(&seed) % 3 == 0);
  const struct specification specification = random_specification(soak, &seed);
  const struct form form = {draw(&seed) % 2 ? 32 : 64,     draw(&seed) % 2 ? 32 : 64,       draw(&seed) % 2,
                            (cbgen_type)(draw(&seed) % 4), (cbgen_memory)(draw(&seed) % 2), 0};
  cbgen_info info = {.struct_size = sizeof info};
  slot->sample = new_sample(specification, form);
  slot->transposed = draw(&seed) % 4 == 0;
  slot->values = (cbgen_values)(draw(&seed) % 3);
  const cbgen_request request = {.struct_size = sizeof request, .values = slot->values, .transpose = slot->transposed};
  const size_t recipe = draw(&seed) % (sizeof kernels / sizeof *kernels); /* 0: auto, which takes all */
  set(soak, context, kernels[recipe]);
  set(soak, context, types[draw(&seed) % (sizeof types / sizeof *types)]);
  const cbgen_status status = cbgen_compile(context, &slot->sample.view, &request, &slot->op);
  if (recipe && (status == CBGEN_ERROR_UNSUPPORTED || status == CBGEN_ERROR_LIMIT)) {
    soak->declined++;
    soak->counts[COMPILE]--;
    clear(slot);
    return;
  }
  must(soak, status, cbgen_message(context), "compiling");
  slot->vectors = new_vectors(slot->op, seed);
  cbgen_operator_info(slot->op, &info);
  soak->hits += info.cache == CBGEN_CACHE_HIT;
}

static void multiply(struct soak *soak, struct slot *slot) {
  static const double scalars[][2] = {{1, 0}, {1, 1}, {-0.5, 2}};
  const double *const s = scalars[below(soak, 3)];
  const cbgen_product product = product_of(&slot->vectors, s[0], s[1], NULL);
  char message[200];
  fill_vectors(&slot->vectors, draw(&soak->seed));
  must(soak, cbgen_multiply(slot->op, &product), cbgen_operator_message(slot->op), "a product");
  REQUIRE_CUDA(cuda.synchronize());
  if (count_wrong_rows(slot->op, &slot->sample, slot->transposed, &slot->vectors, s[0], s[1], message))
    end(soak, "a product is wrong: %s; %s", message, cbgen_operator_plan(slot->op));
}

/* From the host, or from where the sample lies. */
static void update(struct soak *soak, struct slot *slot) {
  const int from_host = (int)below(soak, 2);
  renew_sample(&slot->sample, draw(&soak->seed));
  const cbgen_update update = {sizeof update, from_host ? slot->sample.arrays[2] : slot->sample.view.values,
                               slot->sample.form.type, from_host ? CBGEN_HOST : slot->sample.form.memory, NULL};
  const cbgen_status status = cbgen_update_values(slot->op, &update);
  if (slot->values == CBGEN_VALUES_MUTABLE) {
    must(soak, status, cbgen_operator_message(slot->op), "new values");
    multiply(soak, slot);
    return;
  }
  if (status != CBGEN_ERROR_ARGUMENT) end(soak, "values that are not mutable were renewed");
  clear(slot); /* the sample is another now */
}

/* One of the two handles lives on. */
static void clone_and_drop(struct soak *soak, struct slot *slot) {
  cbgen_operator *copy, *const first = slot->op;
  must(soak, cbgen_operator_clone(first, &copy), cbgen_operator_message(first), "a clone");
  multiply(soak, slot);
  slot->op = copy;
  multiply(soak, slot);
  const int keep_first = (int)below(soak, 2);
  slot->op = keep_first ? first : copy;
  cbgen_operator_free(keep_first ? copy : first);
  multiply(soak, slot);
}

static void save_and_load(struct soak *soak, struct slot *slot) {
  cbgen_context *const context = context_of(soak, (int)below(soak, CONTEXTS));
  cbgen_operator *loaded;
  size_t length, again;
  must(soak, cbgen_operator_save(slot->op, NULL, 0, &length), cbgen_operator_message(slot->op), "saving");
  unsigned char *const bytes = malloc(length + 1);
  if (!bytes) end(soak, "no memory");
  must(soak, cbgen_operator_save(slot->op, bytes, length, &again), cbgen_operator_message(slot->op), "saving");
  must(soak, cbgen_operator_load(context, bytes, length, &loaded), cbgen_message(context), "loading");
  cbgen_operator_free(slot->op);
  slot->op = loaded;
  multiply(soak, slot);
  bytes[below(soak, length)] ^= (unsigned char)(1 + below(soak, 255)); /* now it is damaged */
  const cbgen_status status = cbgen_operator_load(context, bytes, length, &loaded);
  if (status != CBGEN_ERROR_FORMAT) end(soak, "a damaged operator loads: %s", cbgen_status_name(status));
  free(bytes);
}

/* A matrix with a column beyond the last. */
static void refuse(struct soak *soak) {
  const struct specification specification = {SHAPE_RANDOM, 200, 150, 6, 0, 0, 1, draw(&soak->seed)};
  cbgen_context *const context = context_of(soak, (int)below(soak, CONTEXTS));
  struct sample sample = new_sample(specification, (struct form){.memory = (cbgen_memory)below(soak, 2)});
  const int32_t beyond = 150;
  cbgen_operator *op;
  const size_t at = below(soak, (uint64_t)sample.entries);
  if (sample.there[1]) put_bytes(sample.there[1] + at * sizeof beyond, &beyond, sizeof beyond);
  ((int32_t *)sample.arrays[1])[at] = beyond;
  const cbgen_status status = cbgen_compile(context, &sample.view, NULL, &op);
  if (status != CBGEN_ERROR_ARGUMENT || op) end(soak, "a broken matrix compiles: %s", cbgen_status_name(status));
  free_sample(&sample);
}

static enum operation choose(struct soak *soak, const struct slot *slot) {
  static const enum operation weighted[] = {MULTIPLY, MULTIPLY, MULTIPLY, MULTIPLY, UPDATE,        UPDATE, UPDATE,
                                            CLONE,    CLONE,    FREE,     FREE,     SAVE_AND_LOAD, REFUSE};
  return slot->op ? weighted[below(soak, sizeof weighted / sizeof *weighted)] : COMPILE;
}

static void operate(struct soak *soak) {
  struct slot *const slot = &soak->slots[below(soak, SLOTS)];
  const enum operation operation = choose(soak, slot);
  switch (operation) {
  case COMPILE:
    compile(soak, slot);
    break;
  case MULTIPLY:
    multiply(soak, slot);
    break;
  case UPDATE:
    update(soak, slot);
    break;
  case CLONE:
    clone_and_drop(soak, slot);
    break;
  case SAVE_AND_LOAD:
    save_and_load(soak, slot);
    break;
  case REFUSE:
    refuse(soak);
    break;
  default:
    clear(slot);
  }
  soak->counts[operation]++;
}

/* ---- memory */

static double resident_mib(const struct soak *soak) {
  long pages = 0;
  FILE *const file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%*d %ld", &pages) != 1) end(soak, "/proc/self/statm cannot be read");
  fclose(file);
  return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1048576;
}

static long all_operations(const struct soak *soak) {
  long all = 0;
  for (int i = 0; i < OPERATIONS; i++) all += soak->counts[i];
  return all;
}

static void free_all(struct soak *soak) {
  for (int i = 0; i < SLOTS; i++) clear(&soak->slots[i]);
  for (int i = 0; i < CONTEXTS; i++) cbgen_context_destroy(soak->contexts[i]);
  memset(soak->contexts, 0, sizeof soak->contexts);
}

/* With nothing of the library's left, so that only what it loses counts. */
static void take_reading(struct soak *soak, double start) {
  struct reading *const reading = &soak->readings[soak->readings_count++];
  size_t available, total;
  free_all(soak);
  REQUIRE_CUDA(cuda.synchronize());
  malloc_trim(0);
  REQUIRE_CUDA(cuda.memory_info(&available, &total));
  *reading = (struct reading){now() - start, all_operations(soak), soak->counts[COMPILE], resident_mib(soak),
                              (double)(total - available) / 1048576};
  if (soak->readings_count == 1)
    printf("%8s %11s %9s %13s %13s\n", "seconds", "operations", "compiled", "host (MiB)", "GPU (MiB)");
  printf("%8.1f %11ld %9ld %13.2f %13.2f\n", reading->seconds, reading->operations, reading->compiles, reading->host,
         reading->device);
  fflush(stdout);
}

static int by_size(const void *a, const void *b) {
  const double left = *(const double *)a, right = *(const double *)b;
  return (left > right) - (left < right);
}

static double median(const struct soak *soak, int first, int count, int of_device) {
  double numbers[MOST_SAMPLES];
  for (int i = 0; i < count; i++)
    numbers[i] = of_device ? soak->readings[first + i].device : soak->readings[first + i].host;
  qsort(numbers, (size_t)count, sizeof *numbers, by_size);
  return numbers[count / 2];
}

static int judge(const struct soak *soak, int of_device, double bound) {
  const int count = soak->readings_count, warm = count / 5, quarter = (count - warm + 3) / 4;
  const double before = median(soak, warm, quarter, of_device),
               after = median(soak, count - quarter, quarter, of_device);
  const long compiles = soak->readings[count - 1].compiles - soak->readings[warm].compiles;
  printf("%-6s  %s memory: %.2f MiB after the warm-up, %.2f MiB at the end: %+.2f MiB (bound %.0f), %.0f bytes per "
         "compilation\n",
         after - before > bound ? "FAILED" : "ok", of_device ? "GPU" : "host", before, after, after - before, bound,
         compiles ? (after - before) * 1048576 / (double)compiles : 0.0);
  return after - before > bound;
}

/* ---- all of it */

static int run(struct soak *soak) {
  const double start = now(), step = soak->seconds / 20 < 10 ? soak->seconds / 20 : 10;
  double next = 0;
  take_reading(soak, start);
  for (next = step; (now() - start < soak->seconds || soak->readings_count < LEAST_SAMPLES) &&
                    soak->readings_count < MOST_SAMPLES - 1;) {
    operate(soak);
    if (now() - start < next) continue;
    take_reading(soak, start);
    while (next <= now() - start) next += step;
  }
  take_reading(soak, start);
  for (int i = 0; i < OPERATIONS; i++) printf("%ld %s%s", soak->counts[i], names[i], i + 1 < OPERATIONS ? ", " : "");
  printf("; %ld cache hits, %ld declined by their recipe\n", soak->hits, soak->declined);
  const int bad = judge(soak, 0, soak->host_bound);
  return judge(soak, 1, soak->device_bound) | bad;
}

static int take_options(struct soak *soak, int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    const int has_value = argv[i][0] == '-';
    const char *const value = has_value && i + 1 < argc ? argv[i + 1] : argv[i];
    const double number = strtod(value, NULL);
    if (!has_value)
      soak->seconds = number;
    else if (!strcmp(argv[i], "--seed"))
      soak->seed = (uint64_t)number;
    else if (!strcmp(argv[i], "--entries"))
      soak->entries = (int64_t)number;
    else if (!strcmp(argv[i], "--distinct"))
      soak->distinct = (uint64_t)number;
    else if (!strcmp(argv[i], "--host"))
      soak->host_bound = number;
    else if (!strcmp(argv[i], "--device"))
      soak->device_bound = number;
    else
      return 0;
    i += has_value;
  }
  return soak->seconds > 0 && soak->entries > 0;
}

int main(int argc, char **argv) {
  static struct soak soak = {.seconds = 600, .host_bound = 48, .device_bound = 4, .seed = 1, .entries = 300000};
  const char *const folder = getenv("TMPDIR");
  char command[100];
  if (!take_options(&soak, argc, argv)) {
    fprintf(stderr,
            "usage: bench_soak [SECONDS] [--seed N] [--entries N] [--distinct N] [--host MIB] [--device MIB]\n");
    return 2;
  }
  snprintf(soak.cache, sizeof soak.cache, "%.36s/cbgen-soak-XXXXXX", folder && *folder ? folder : "/tmp");
  if (!mkdtemp(soak.cache) || !open_cuda()) return 3;
  const int bad = run(&soak);
  snprintf(command, sizeof command, "rm -rf '%s'", soak.cache);
  if (system(command)) fprintf(stderr, "'%s' is left\n", soak.cache);
  close_cuda();
  return bad;
}
