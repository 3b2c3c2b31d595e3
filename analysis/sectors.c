// SPDX-License-Identifier: Apache-2.0
/* Counting sectors of x, by a sample: see sectors.h. */
#include "analysis/sectors.h"

#include "base/integers.h"
#include "base/memory.h"

enum {
  SAMPLES = 512,       /* thread blocks looked at, of a matrix with more */
  LEAST_SAMPLES = 64,
  ENOUGH = 1 << 21,    /* nonzeros of these, about: then fewer thread blocks are looked at */
  FEWEST_SAMPLES = 8,  /* where a profile has chosen the recipe, so that no plans are compared, these are the least */
  FEW = 1 << 14,       /* and this is enough; */
  FEWER = 1 << 12,     /* where the first product waits for it, of which nothing but what is told depends on it */
  LEAST_LOG2 = 8,      /* of its set of sectors */
  SECTOR_BYTES = 32,
  KEPT_FREE = 16 << 10 /* bytes of L1 that something else takes */
};

/* Forgets what another thread block has touched. */
static void clear(struct cb_sector_sink *sink) {
  for (int64_t i = 0; i < sink->distinct && i < CB_SECTORS_FULL; i++) sink->slots[sink->used[i]] = 0;
  sink->asked = sink->distinct = 0;
  sink->previous = -1;
}

/* Fetched by one thread block: each sector once, and of the repeated requests those that L1 no longer holds. */
static int64_t fetched(const struct cb_sector_sink *sink, int64_t room) {
  if (sink->distinct <= room) return sink->distinct;
  return sink->distinct + (sink->asked - sink->distinct) * (sink->distinct - room) / sink->distinct;
}

/* Columns of the sampled thread blocks where the matrix has none on the host. */
struct fetched {
  const struct cb_csr *near; /* NULL, or has them: only `first` is of use then, as numbers of nonzeros */
  int64_t each;     /* stretches of a thread block; 0: nothing was fetched */
  int64_t *first;   /* of all stretches, where its columns begin */
  int32_t *columns;
};

static void release_fetched(struct fetched *fetched) {
  cb_free(fetched->first);
  cb_free(fetched->columns);
}

static enum cb_status fetch(struct fetched *fetched, const struct cb_csr *csr, const struct cb_stretch *stretches,
                            int64_t count, struct cb_diag *diag) {
  fetched->first = cb_alloc((size_t)count + 1, sizeof *fetched->first);
  if (!fetched->first) return cb_fail_memory(diag, "a sample of columns", (uint64_t)count * 8);
  fetched->first[0] = 0;
  for (int64_t i = 0; i < count; i++) fetched->first[i + 1] = fetched->first[i] + stretches[i].length;
  if (fetched->near) return CB_OK;
  fetched->columns = cb_alloc((size_t)fetched->first[count] + 1, sizeof *fetched->columns);
  if (!fetched->columns) return cb_fail_memory(diag, "a sample of columns", (uint64_t)fetched->first[count] * 4);
  return csr->remote->fetch(csr->remote->user, stretches, count, fetched->columns, diag);
}

static enum cb_status fetch_samples(struct fetched *fetched, const struct cb_region_builder *builder,
                                    const void *state, cb_sectors_stretches *stretches_of, int64_t samples,
                                    struct cb_diag *diag) {
  const struct cb_csr *csr = builder->work.part.csr;
  if (!csr->remote || !samples) return CB_OK;
  fetched->near = csr->remote->near;
  fetched->each = stretches_of(state, 0, NULL);
  struct cb_stretch *stretches = cb_alloc((size_t)(samples * fetched->each), sizeof *stretches);
  if (!stretches) return cb_fail_memory(diag, "a sample of columns", (uint64_t)(samples * fetched->each) * 16);
  for (int64_t i = 0; i < samples; i++)
    stretches_of(state, i * builder->region.blocks / samples, stretches + i * fetched->each);
  const enum cb_status s = fetch(fetched, csr, stretches, samples * fetched->each, diag);
  cb_free(stretches);
  return s;
}

/* As many slots as the sectors of one thread block need, if it is known how many nonzeros it has; few stay in L1. */
static int choose_slots(const struct fetched *sample, int64_t samples) {
  int64_t most = 0;
  int log2 = sample->each ? LEAST_LOG2 : CB_SECTOR_SLOTS_LOG2;
  for (int64_t i = 0; i < samples && sample->each; i++)
    most = cb_larger(most, sample->first[(i + 1) * sample->each] - sample->first[i * sample->each]);
  while (log2 < CB_SECTOR_SLOTS_LOG2 && INT64_C(1) << log2 < 2 * most) log2++;
  return log2;
}

/* The sum over sampled thread blocks, in sectors; -1: no memory. `entry_bytes`: of a column's entry of x, or of its
 * entries of several vectors that lie side by side. */
static int64_t sum_samples(const struct cb_region_builder *builder, const void *state, cb_sectors_visit *visit,
                           const struct fetched *sample, int64_t samples, int64_t entry_bytes) {
  const int64_t blocks = builder->region.blocks, each = cb_divide_up(entry_bytes, SECTOR_BYTES);
  const int64_t shares = builder->region.blocks_per_sm > 0 ? builder->region.blocks_per_sm : 1;
  const int64_t room = (builder->target->shared_per_sm - KEPT_FREE) / shares / (SECTOR_BYTES * each);
  const int slots_log2 = choose_slots(sample, samples);
  int64_t sum = 0;
  int failed = 0;
#pragma omp parallel reduction(+ : sum) reduction(| : failed)
  {
    const int64_t per_sector = cb_larger(SECTOR_BYTES / entry_bytes, 1);
    struct cb_sector_sink sink = {.per_sector = per_sector,
                                  .shift = per_sector & (per_sector - 1) ? -1 : __builtin_ctzll((uint64_t)per_sector),
                                  .slots_log2 = slots_log2,
                                  .columns = sample->near    ? sample->near->col_idx
                                             : sample->each ? sample->columns
                                                            : builder->work.part.csr->col_idx};
    sink.slots = cb_calloc((size_t)1 << slots_log2, sizeof *sink.slots);
    sink.used = cb_alloc(CB_SECTORS_FULL, sizeof *sink.used);
    failed = !sink.slots || !sink.used;
#pragma omp for schedule(dynamic, 8)
    for (int64_t i = 0; i < samples; i++) {
      if (failed) continue;
      clear(&sink);
      sink.first = sample->each && !sample->near ? sample->first + i * sample->each : NULL;
      visit(state, i * blocks / samples, &sink);
      sum += fetched(&sink, room);
    }
    cb_free(sink.slots);
    cb_free(sink.used);
  }
  return failed ? -1 : sum * each;
}

static int64_t count_samples(const struct cb_region_builder *builder) {
  const int64_t blocks = builder->region.blocks, each = blocks ? builder->work.part.csr->nnz / blocks : 0;
  const enum cb_search search = (enum cb_search)builder->options->search;
  const int few = search == CB_SEARCH_PROFILE || search == CB_SEARCH_READY;
  const int64_t enough = search == CB_SEARCH_READY ? FEWER : few ? FEW : ENOUGH;
  int64_t samples = blocks < SAMPLES ? blocks : SAMPLES;
  while (samples > (few ? FEWEST_SAMPLES : LEAST_SAMPLES) && samples * each > enough) samples /= 2;
  return samples;
}

enum cb_status cb_sectors_predict(struct cb_region_builder *builder, const void *state, cb_sectors_visit *visit,
                                  struct cb_diag *diag) {
  return cb_sectors_predict_by_stretch(builder, state, visit, NULL, diag);
}

enum cb_status cb_sectors_predict_by_stretch(struct cb_region_builder *builder, const void *state,
                                             cb_sectors_visit *visit, cb_sectors_stretches *stretches,
                                             struct cb_diag *diag) {
  const int64_t blocks = builder->region.blocks, samples = count_samples(builder);
  const int64_t entry_bytes = (int64_t)cb_type_size(builder->vector_type), vectors = builder->options->vectors;
  struct fetched fetched = {0};
  int64_t sum = 0, of_rows = 0;
  enum cb_status s = fetch_samples(&fetched, builder, state, stretches, samples, diag);
  if (!s) sum = sum_samples(builder, state, visit, &fetched, samples, entry_bytes);
  if (!s && vectors > 1) of_rows = sum_samples(builder, state, visit, &fetched, samples, vectors * entry_bytes);
  release_fetched(&fetched);
  if (!s && (sum < 0 || of_rows < 0)) s = cb_fail_memory(diag, "an estimate of gathers", sizeof(uint32_t) << CB_SECTOR_SLOTS_LOG2);
  const double times = s || !samples ? 0 : (double)blocks / (double)samples;
  builder->region.cost.sectors = (int64_t)((double)sum * times);
  builder->region.row_sectors = (int64_t)((double)of_rows * times);
  return s;
}
