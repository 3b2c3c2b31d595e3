// SPDX-License-Identifier: Apache-2.0
/* The plan's check of itself: what codegen and the runtime rely on, whatever layouts did. */
#include "analysis/plan.h"

#include "analysis/layout.h"
#include "base/embedded.h"
#include "base/integers.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define BROKEN(...) cb_fail(diag, CB_ERR_INTERNAL, "broken plan: " __VA_ARGS__)

static int is_identifier(const char *name) {
  if (!name || !(isalpha((unsigned char)*name) || *name == '_')) return 0;
  for (; *name; name++)
    if (!isalnum((unsigned char)*name) && *name != '_') return 0;
  return 1;
}

static enum cb_status check_array(const struct cb_region *region, const struct cb_array *array,
                                  struct cb_diag *diag) {
  if (!is_identifier(array->name)) return BROKEN("region '%s' has an array without a name", region->name);
  if (array->count < 0) return BROKEN("array '%s' has %lld elements", array->name, (long long)array->count);
  if (array->role != CB_ROLE_INDEX && array->storage != CB_STORED)
    return BROKEN("array '%s' holds data but is not stored", array->name);
  if ((array->storage == CB_BAKED) != (array->baked != NULL))
    return BROKEN("array '%s': baked contents and storage disagree", array->name);
  for (const struct cb_array *other = region->arrays; other < array; other++)
    if (!strcmp(other->name, array->name))
      return BROKEN("region '%s' has two arrays '%s'", region->name, array->name);
  return CB_OK;
}

static enum cb_status check_template(const struct cb_region *region, struct cb_diag *diag) {
  char path[64];
  snprintf(path, sizeof path, "templates/%s.cu.in", region->layout);
  if (!cb_embedded_find(path)) return BROKEN("region '%s' has no template '%s'", region->name, path);
  return CB_OK;
}

static enum cb_status check_constants(const struct cb_region *region, struct cb_diag *diag) {
  for (int i = 0; i < region->constants_count; i++) {
    const struct cb_constant *constant = &region->constants[i];
    if (!is_identifier(constant->name)) return BROKEN("region '%s' has a constant without a name", region->name);
    if (constant->kind != CB_CONSTANT_STRUCTURE && constant->kind != CB_CONSTANT_SIZE)
      return BROKEN("region '%s' says of '%s' neither structure nor size", region->name, constant->name);
  }
  return CB_OK;
}

static enum cb_status check_region(const struct cb_region *region, struct cb_diag *diag) {
  int64_t bytes = 0;
  int slots_arrays = 0;
  int64_t slots = region->constant_slots;
  if (!is_identifier(region->name)) return BROKEN("a region has no name");
  if (!cb_layout_find(region->layout)) return BROKEN("no layout '%s'", region->layout);
  if (region->nonzeros - region->mirrored > region->value_slots)
    return BROKEN("region '%s' has %lld value slots for %lld nonzeros", region->name,
                  (long long)region->value_slots, (long long)region->nonzeros);
  for (int i = 0; i < region->arrays_count; i++) {
    const struct cb_array *array = &region->arrays[i];
    const enum cb_status s = check_array(region, array, diag);
    if (s) return s;
    if (array->storage == CB_STORED) bytes += array->count * (int64_t)cb_type_size(array->type);
    if (array->role != CB_ROLE_VALUES && array->role != CB_ROLE_MIXED) continue;
    slots_arrays++;
    if (array->role == CB_ROLE_MIXED && region->value_type == CB_SPLIT)
      return BROKEN("region '%s' has split values among other bytes", region->name);
    slots += array->count * (int64_t)cb_type_size(array->type) / (int64_t)cb_type_size(region->value_type);
  }
  if (bytes != region->bytes) return BROKEN("region '%s': bytes do not add up", region->name);
  if (slots_arrays > 1) return BROKEN("region '%s' has two arrays of values", region->name);
  if (slots != region->value_slots)
    return BROKEN("region '%s' has arrays and constants for %lld of %lld value slots", region->name, (long long)slots,
                  (long long)region->value_slots);
  const enum cb_status s = check_constants(region, diag);
  return s ? s : check_template(region, diag);
}

/* Regions in turn: a thread block's rows are whole thread blocks of each region; all but the last keep their sums. */
static enum cb_status check_in_turn(const struct cb_plan *plan, const struct cb_launch *launch, struct cb_diag *diag) {
  const int end = launch->first_region + launch->regions;
  for (int r = launch->first_region; r < end; r++) {
    const struct cb_region *region = r < plan->regions_count ? &plan->regions[r] : NULL;
    if (!region || !region->block_rows || launch->block_rows % region->block_rows)
      return BROKEN("launch %d: its regions' rows do not fit together", (int)(launch - plan->launches));
    if (region->blocks != cb_divide_up(plan->rows, region->block_rows))
      return BROKEN("region '%s' has thread blocks for other rows than it says", region->name);
    const int first = r == launch->first_region, last = r + 1 == end;
    const int fits = first  ? region->commit == CB_COMMIT_KEEP
                     : last ? region->commit == CB_COMMIT_KEPT || region->commit == CB_COMMIT_KEPT_ADD
                            : region->commit == CB_COMMIT_KEPT_KEEP;
    if (!fits || (region->owns_rows && !last)) return BROKEN("region '%s': its sums go astray", region->name);
  }
  if (launch->regions < 2 || launch->blocks != cb_divide_up(plan->rows, launch->block_rows))
    return BROKEN("launch %d: thread blocks do not add up", (int)(launch - plan->launches));
  return CB_OK;
}

static enum cb_status check_launches(const struct cb_plan *plan, struct cb_diag *diag) {
  int regions = 0;
  for (int i = 0; i < plan->launches_count; i++) {
    const struct cb_launch *launch = &plan->launches[i];
    if (launch->blocks < 1 || launch->blocks > INT32_MAX)
      return cb_fail(diag, CB_ERR_LIMIT, "%lld thread blocks exceed a launch's 2147483647",
                     (long long)launch->blocks);
    if (launch->threads < 32 || launch->threads > 1024 || launch->threads % 32)
      return BROKEN("launch %d has %d threads", i, launch->threads);
    if (launch->dynamic_shared > plan->target.shared_per_block)
      return BROKEN("launch %d asks for %lld bytes of shared memory", i, (long long)launch->dynamic_shared);
    if (launch->prepares) continue;
    if (launch->block_rows) {
      const enum cb_status s = check_in_turn(plan, launch, diag);
      if (s) return s;
      regions += launch->regions;
      continue;
    }
    int64_t next = 0;
    for (int r = launch->first_region + launch->regions - 1; r >= launch->first_region; r--, regions++) {
      if (r >= plan->regions_count || plan->regions[r].first_block != next)
        return BROKEN("launch %d: thread blocks of its regions leave a gap", i);
      next += plan->regions[r].blocks;
    }
    if (!launch->body && next != launch->blocks) return BROKEN("launch %d: thread blocks do not add up", i);
  }
  if (regions != plan->regions_count) return BROKEN("%d of %d regions are launched", regions, plan->regions_count);
  return CB_OK;
}

enum cb_status cb_plan_check(const struct cb_plan *plan, struct cb_diag *diag) {
  int64_t nonzeros = 0, sums = 0, counters = 0;
  for (int i = 0; i < plan->regions_count; i++) {
    const struct cb_region *region = &plan->regions[i];
    const enum cb_status s = check_region(region, diag);
    if (s) return s;
    if (region->first_carry_sum != sums || region->first_carry_counter != counters)
      return BROKEN("region '%s': carry slots overlap or leave a gap", region->name);
    nonzeros += region->nonzeros;
    sums += region->carry_slots * region->carry_width;
    counters += region->carry_counters;
  }
  if (nonzeros != plan->nnz)
    return BROKEN("regions hold %lld of %lld nonzeros", (long long)nonzeros, (long long)plan->nnz);
  if (plan->row_sums && plan->first_row_sum != sums) return BROKEN("sums of rows overlap carry slots");
  if (plan->row_sums) sums += plan->rows;
  if (sums && !counters) counters = 1;
  const int64_t results = plan->statements && plan->rows ? cb_statements_results(plan->statements) : 0;
  if (results && (plan->first_term != sums || plan->reduce_counter != counters))
    return BROKEN("terms of reductions overlap other scratch");
  sums += results * (plan->rows + cb_divide_up(plan->rows, CB_REDUCE_ROWS));
  counters += results > 0;
  if (sums != plan->carry_sums || counters != plan->carry_counters) return BROKEN("carry slots do not add up");
  if (plan->commits_once && !cb_plan_single_commit(plan)) return BROKEN("rows are written more than once");
  if (!plan->line || strncmp(plan->line, "(spmv", 5)) return BROKEN("no plan line");
  return check_launches(plan, diag);
}
