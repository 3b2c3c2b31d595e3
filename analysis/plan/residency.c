// SPDX-License-Identifier: Apache-2.0
/* What L2 shall keep of a matrix for the next product.
 *
 * What is read once goes past L1 (ld.global.nc.L1::no_allocate), and on an H200 such lines are also the first that make
 * room in L2: they take turns in what little of it nothing else has, and whatever else an application has left there
 * stays. So a matrix that L2 could hold comes from memory again in every product as soon as other kernels have filled
 * L2. It stays if it is read as all else is. Where it does not fit, all of it would displace itself, x and y; a part
 * that stays is worth something only where vectors are small. */
#include "analysis/plan/builder.h"
#include "analysis/plan/cost.h"
#include "base/integers.h"

/* All is measured on an H200, in products back to back, behind other data, and with passes over four vectors between
 * them (bench/results/README.md, "what stays in L2"). */
enum {
  VECTORS = 3,        /* x and y, and what solvers have beside them: three of each */
  FITS_QUARTERS = 3,  /* of L2, which all of it may take to stay */
  SHARED_TENTHS = 4,  /* of L2, which a part that stays takes */
  MOST_TIMES = 5,     /* halves of L2: a part of what is larger brings nothing */
  PURE_PERCENT = 90   /* of what is stored, which must be read once: the rest stays anyhow */
};

/* Bytes of the plan that texts read by load_stream: values, and what else there is. */
struct streamed {
  int64_t values, indices;
};

static struct streamed streamed_bytes(const struct cb_plan *plan) {
  struct streamed bytes = {0};
  for (int r = 0; r < plan->regions_count; r++)
    for (int i = 0; i < plan->regions[r].arrays_count; i++) {
      const struct cb_array *array = &plan->regions[r].arrays[i];
      const int64_t of_array = array->count * (int64_t)cb_type_size(array->type);
      if (array->storage != CB_STORED) continue;
      if (array->role == CB_ROLE_VALUES) bytes.values += of_array;
      else if (array->streamed) bytes.indices += of_array;
    }
  return bytes;
}

/* Of L2, what a part that stays takes. */
static int64_t shared_bytes(const struct cb_plan *plan) { return (int64_t)plan->target.l2_bytes * SHARED_TENTHS / 10; }

/* Sixteenths of what is read once that stay, from 0 to 16. */
static int sixteenths(const struct cb_plan *plan) {
  const int64_t l2 = plan->target.l2_bytes;
  const int64_t vectors = VECTORS * plan->vectors * cb_cost_vector_bytes(plan);
  const struct streamed bytes = streamed_bytes(plan);
  const int64_t stored = cb_plan_bytes(plan), streamed = bytes.values + bytes.indices;
  if (plan->nnz > plan->index_limit) return 0; /* no L2 has room for so many, nor texts a register to spare */
  if (stored + vectors <= l2 * FITS_QUARTERS / 4) return 16;
  if (vectors > l2 / 4 || stored > l2 * MOST_TIMES / 2 || 100 * streamed < PURE_PERCENT * stored) return 0;
  return (int)cb_smaller(16 * shared_bytes(plan) / streamed, 15);
}

/* Where gathers wait for indices, these come from L2, and values from memory in one stream: of what stays, values have
 * what indices leave. As many bytes come from memory as where a share of all arrays stays: R-MAT 17 x 80 takes 26.4 us
 * for 27.1, 18 x 24 23.0 for 23.8, 200000 x 20000 20.6 for 21.1. */
static void keep_indices(struct cb_plan *plan) {
  const struct streamed bytes = streamed_bytes(plan);
  const int64_t left = shared_bytes(plan) - bytes.indices;
  struct cb_region *region = plan->regions;
  if (plan->regions_count > 1 || !region->keeps_indices || plan->vectors > 1 || left < 0 || !bytes.values) return;
  region->value_stream = CB_STREAM_SHARES + (int32_t)cb_smaller(16 * left / bytes.values, 15) * CB_STREAM_SIXTEENTH;
}

void cb_plan_residency(struct cb_plan *plan, const struct cb_options *options) {
  const int stay = options->stay_in_l2 == CB_ON ? 16 : options->stay_in_l2 == CB_OFF ? 0 : sixteenths(plan);
  for (int i = 0; i < plan->regions_count; i++)
    plan->regions[i].stream = stay == 16  ? CB_STREAM_STAYS
                              : stay == 0 ? CB_STREAM_LEAVES
                                          : CB_STREAM_SHARES + stay * CB_STREAM_SIXTEENTH;
  if (stay > 0 && stay < 16) keep_indices(plan);
}
