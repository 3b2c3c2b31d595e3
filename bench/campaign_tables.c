// SPDX-License-Identifier: Apache-2.0
/* The campaign's counts: see campaign.h. */
#include "bench/campaign.h"

#include <stdio.h>
#include <string.h>

struct campaign_cell *campaign_cell(struct campaign_counts *counts, enum campaign_dimension dimension,
                                    const char *name) {
  struct campaign_cell *cells = counts->cells[dimension];
  int i = 0;
  while (i < CAMPAIGN_CELLS - 1 && *cells[i].name && strcmp(cells[i].name, name)) i++;
  if (!*cells[i].name) snprintf(cells[i].name, sizeof cells[i].name, "%s", i < CAMPAIGN_CELLS - 1 ? name : "others");
  return &cells[i];
}

static void join_cells(struct campaign_counts *all, const struct campaign_counts *part,
                       enum campaign_dimension dimension) {
  for (int i = 0; i < CAMPAIGN_CELLS && *part->cells[dimension][i].name; i++) {
    const struct campaign_cell *from = &part->cells[dimension][i];
    struct campaign_cell *to = campaign_cell(all, dimension, from->name);
    to->matrices += from->matrices;
    to->products += from->products;
    to->rows += from->rows;
    to->wrong += from->wrong;
    if (from->worst > to->worst) to->worst = from->worst;
  }
}

void campaign_join(struct campaign_counts *all, const struct campaign_counts *part) {
  for (int d = 0; d < CAMPAIGN_DIMENSIONS; d++) join_cells(all, part, (enum campaign_dimension)d);
  all->matrices += part->matrices;
  all->products += part->products;
  all->declined += part->declined;
  all->failures += part->failures;
  all->rows += part->rows;
  all->wrong += part->wrong;
  all->different += part->different;
  all->exact += part->exact;
  all->unbounded += part->unbounded;
  all->entries += part->entries;
  all->brought += part->brought;
  all->compiled += part->compiled;
  all->remembered += part->remembered;
  for (int i = 0; i < CAMPAIGN_PHASES; i++) all->seconds[i] += part->seconds[i];
  for (int i = 0; i < CAMPAIGN_PARTS; i++) all->parts[i] += part->parts[i];
}

static void print_table(const struct campaign_counts *counts, enum campaign_dimension dimension, const char *title) {
  printf("\n%-24s %10s %10s %13s %7s %9s\n", title, "matrices", "products", "rows", "wrong", "error");
  for (int i = 0; i < CAMPAIGN_CELLS && *counts->cells[dimension][i].name; i++) {
    const struct campaign_cell *cell = &counts->cells[dimension][i];
    printf("%-24s %10ld %10ld %13lld %7lld %9.4f\n", cell->name, cell->matrices, cell->products, (long long)cell->rows,
           (long long)cell->wrong, cell->worst);
  }
}

static void print_times(const struct campaign_counts *counts, double seconds) {
  static const char *const phases[CAMPAIGN_PHASES] = {"made", "compiled", "multiplied", "checked", "freed"};
  static const char *const parts[CAMPAIGN_PARTS] = {"hash", "analysis", "pack", "text", "binary", "load", "upload"};
  const double of_one = counts->matrices ? 1e6 / (double)counts->matrices : 0;
  printf("\nmicroseconds of one matrix on its thread:");
  for (int i = 0; i < CAMPAIGN_PHASES; i++)
    printf(" %s %.0f%s", phases[i], of_one * counts->seconds[i], i + 1 < CAMPAIGN_PHASES ? "," : "\n");
  printf("of compiling:");
  for (int i = 0; i < CAMPAIGN_PARTS; i++)
    printf(" %s %.0f%s", parts[i], of_one * counts->parts[i], i + 1 < CAMPAIGN_PARTS ? "," : "\n");
  printf("binaries of families: %ld from the library, %ld compiled, %ld from before\n", counts->brought,
         counts->compiled, counts->remembered);
  printf("%ld matrices in %.1f s: %.0f in a second; %.3g entries\n", counts->matrices, seconds,
         seconds > 0 ? (double)counts->matrices / seconds : 0, (double)counts->entries);
}

void campaign_print(const struct campaign_counts *counts, double seconds) {
  static const char *const titles[CAMPAIGN_DIMENSIONS] = {"layouts", "tier",    "type",   "rows of the matrix",
                                                          "pattern", "numbers", "product"};
  for (int d = 0; d < CAMPAIGN_DIMENSIONS; d++) print_table(counts, (enum campaign_dimension)d, titles[d]);
  printf("\nerror: the largest of a right row, in units of its bound. Of all rows, %lld had to match exactly, and %lld "
         "may "
         "be anything.\n",
         (long long)counts->exact, (long long)counts->unbounded);
  print_times(counts, seconds);
  printf(
      "%ld matrices, %ld products, %lld rows: %lld wrong, %lld of other bits; %ld matrices declined by their recipe\n",
      counts->matrices, counts->products, (long long)counts->rows, (long long)counts->wrong,
      (long long)counts->different, counts->declined);
}
