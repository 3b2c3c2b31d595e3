// SPDX-License-Identifier: Apache-2.0
/* Random matrices by the million: each is compiled through libcbgen's public header with a family's kernel, multiplied
 * in several ways, and every row of every product is compared on the GPU with sums in two doubles, by the bound of
 * runtime/verify/oracle.h. A few are also multiplied by the specialised kernel, which must give the same bits.
 *
 *   bench_campaign [--count N] [--first N] [--only N] [--seed N] [--seconds S] [--threads N] [--failures FILE]
 *                  [--specialise N] [--others N] [--types N] [--recipe NAME] [--pack WHERE] [--plant N]…
 *
 *   --count       matrices (1000000), --first the first one's number (0); --only N: that one alone
 *   --seed        of everything (1): matrix N of a seed is always the same, whatever thread it comes to
 *   --seconds     no batch is begun after so many (0: no limit)
 *   --threads     of the host, each with a context and a stream of its own (8)
 *   --failures    where each failure is noted as a line, too (campaign-failures.txt)
 *   --specialise  one matrix in N is specialised by NVRTC (2000; 0: none)
 *   --others      one in N has a recipe without families, whose kernel NVRTC compiles (4000; 0: none)
 *   --recipe, --pack    of all matrices; else they are drawn
 *   --types       the first N of the eight combinations of types alone (8)
 *   --plant       spoils one result of matrix N, or where N is 3, 7, 11 … what lies behind y, which must then be found:
 *                 to see that the campaign can fail
 *
 * A failure's line begins with the options that make its matrix again, "--seed 1 --only 123". Nothing is read from the
 * user's cache or written to it. Exit status: 0: all is right; 1: a row was wrong, or a call failed; 2: the options;
 * 3: CUDA failed, and the message says in which matrices; 4: something of the machine's is missing. */
#include "base/embedded.h"
#include "bench/campaign.h"

#include <string.h>

enum { MOST_THREADS = 64 };

/* ---- kernels */

/* The fake CUDA puts the emulation's prelude in place of this one. */
static const char prelude[] = //
    "using int64_t = long;\n"
    "using uint64_t = unsigned long;\n"
    "using int32_t = int;\n"
    "using uint32_t = unsigned;\n"
    "using uint16_t = unsigned short;\n"
    "#define CBGEN_KERNEL extern \"C\" __global__\n"
    "#define CBGEN_DEVICE static __device__ __forceinline__\n"
    "CBGEN_DEVICE bool is_finite(double number) { return number - number == 0; }\n"
    "template <class T> CBGEN_DEVICE T shuffle_xor(T value, int bits) { return __shfl_xor_sync(~0u, value, bits); }\n"
    "// ---- end of the device prelude\n";

static void *load_kernels(struct campaign *campaign) {
  size_t length = sizeof prelude;
  for (const struct cb_embedded_file *file = cb_embedded_files; file->name; file++) length += file->length;
  char *const text = calloc(length + 1, 1);
  if (!text) return NULL;
  strcpy(text, prelude);
  for (const struct cb_embedded_file *file = cb_embedded_files; file->name; file++)
    strncat(text, file->text, file->length);
  void *const module = load_text(text, "campaign.cu");
  free(text);
  REQUIRE_CUDA(cuda.module_function(&campaign->fill, module, "campaign_fill_vectors"));
  REQUIRE_CUDA(cuda.module_function(&campaign->check, module, "campaign_check_rows"));
  REQUIRE_CUDA(cuda.module_function(&campaign->tell, module, "campaign_tell_row"));
  return module;
}

/* ---- the campaign */

static int run_threads(struct campaign *campaign, struct campaign_counts *all) {
  pthread_t threads[MOST_THREADS];
  struct campaign_worker *workers = calloc((size_t)campaign->threads, sizeof *workers);
  int failed = !workers;
  if (!workers) return 1;
  for (int i = 0; i < campaign->threads; i++) {
    workers[i] = (struct campaign_worker){.campaign = campaign, .number = i};
    if (!pthread_create(&threads[i], NULL, campaign_work, &workers[i])) continue;
    fprintf(stderr, "only %d threads can be had\n", i);
    campaign->threads = i;
  }
  for (int i = 0; i < campaign->threads; i++) {
    void *result = NULL;
    pthread_join(threads[i], &result);
    failed |= !result;
    campaign_join(all, &workers[i].counts);
  }
  free(workers);
  return failed || !campaign->threads;
}

static double device_mib(void) {
  size_t available = 0, total = 0;
  cbgen_trim();
  REQUIRE_CUDA(cuda.synchronize());
  REQUIRE_CUDA(cuda.memory_info(&available, &total));
  return (double)(total - available) / 1048576;
}

/* What a limit of time cut off is no failure. */
static int run(struct campaign *campaign) {
  static struct campaign_counts all;
  void *const module = load_kernels(campaign);
  if (!module) return 4;
  const double before = device_mib();
  atomic_store(&campaign->next, campaign->first);
  campaign->began = campaign_now();
  if (run_threads(campaign, &all)) return 4;
  const double seconds = campaign_now() - campaign->began;
  campaign_print(&all, seconds);
  REQUIRE_CUDA(cuda.synchronize());
  printf("device memory in use: %.1f MiB before, %.1f MiB after\n", before, device_mib());
  printf("%s: seed %llu, matrices %llu to %llu%s, %d threads, %ld failures%s%s\n", all.failures ? "FAILED" : "ok",
         (unsigned long long)campaign->seed, (unsigned long long)campaign->first,
         (unsigned long long)(campaign->first + campaign->count - 1),
         (uint64_t)(all.matrices + all.declined) < campaign->count && !all.failures ? " (cut off)" : "",
         campaign->threads, all.failures, all.failures ? ", listed in " : "", all.failures ? campaign->failures : "");
  REQUIRE_CUDA(cuda.module_unload(module));
  return all.failures != 0;
}

static int take_option(struct campaign *campaign, const char *name, const char *value) {
  const struct {
    const char *name;
    int *place;
  } numbers[] = {{"--threads", &campaign->threads},
                 {"--specialise", &campaign->shares.specialise},
                 {"--others", &campaign->shares.others},
                 {"--types", &campaign->shares.types}};
  char *end = NULL;
  const uint64_t number = strtoull(value, &end, 10);
  if (!strcmp(name, "--failures")) return (campaign->failures = value) != NULL;
  if (!strcmp(name, "--recipe")) return (campaign->shares.recipe = value) != NULL;
  if (!strcmp(name, "--pack")) return (campaign->shares.pack = value) != NULL;
  if (!strcmp(name, "--seconds")) return (campaign->seconds = strtod(value, &end)) >= 0 && !*end;
  if (*end || !*value) return 0;
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (!strcmp(name, numbers[i].name)) return (*numbers[i].place = (int)number) >= 0;
  if (!strcmp(name, "--plant"))
    return campaign->plants_count < 8 && (campaign->plants[campaign->plants_count++] = number, 1);
  if (!strcmp(name, "--seed")) return campaign->seed = number, 1;
  if (!strcmp(name, "--count")) return campaign->count = number, 1;
  if (!strcmp(name, "--first")) return campaign->first = number, 1;
  if (strcmp(name, "--only")) return 0;
  campaign->first = number;
  campaign->count = 1;
  return 1;
}

static int take_options(struct campaign *campaign, int argc, char **argv) {
  for (int i = 1; i < argc; i += 2)
    if (i + 1 == argc || !take_option(campaign, argv[i], argv[i + 1])) return 0;
  const uint64_t batches = (campaign->count + 63) / 64;
  if ((uint64_t)campaign->threads > batches) campaign->threads = (int)batches;
  return campaign->count && campaign->threads >= 1 && campaign->threads <= MOST_THREADS &&
         campaign->shares.types >= 1 && campaign->shares.types <= campaign_precisions_count();
}

int main(int argc, char **argv) {
  static struct campaign campaign = {.seed = 1,
                                     .count = 1000000,
                                     .threads = 8,
                                     .failures = "campaign-failures.txt",
                                     .lock = PTHREAD_MUTEX_INITIALIZER};
  campaign.shares = campaign_usual_shares();
  if (!take_options(&campaign, argc, argv)) {
    fprintf(stderr, "usage: bench_campaign [--count N] [--first N] [--only N] [--seed N] [--seconds S] [--threads N]\n"
                    "                      [--failures FILE] [--specialise N] [--others N] [--types N] [--recipe NAME] "
                    "[--pack WHERE]\n"
                    "                      [--plant N]...\n");
    return 2;
  }
  if (!open_cuda()) return 4;
  const int status = run(&campaign);
  close_cuda();
  return status;
}
