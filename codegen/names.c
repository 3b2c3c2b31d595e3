// SPDX-License-Identifier: Apache-2.0
/* What others than the text's makers must agree with it about: names of kernels, the x of the self-test, the order of
 * clocks. See source.h. */
#include "codegen/source.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

void cb_source_kernel(const struct cb_plan *plan, const struct cb_label *label, int launch, char *name, size_t size) {
  if (plan->launches_count == 1)
    snprintf(name, size, "%s_spmv", label->symbol);
  else
    snprintf(name, size, "%s_spmv_%d", label->symbol, launch);
}

void cb_source_copy_kernel(const struct cb_plan *plan, const struct cb_label *label, const char *suffix, char *name,
                           size_t size) {
  cb_source_kernel(plan, label, 0, name, size);
  const size_t length = strlen(name);
  snprintf(name + length, size - length, "%s", suffix);
}

void cb_symbol_from(const char *text, char symbol[49]) {
  int at = 0;
  if (!isalpha((unsigned char)*text)) {
    symbol[at++] = 'm';
    symbol[at++] = '_';
  }
  for (; *text && at < 48; text++) symbol[at++] = isalnum((unsigned char)*text) ? *text : '_';
  symbol[at] = 0;
}

double cb_selftest_x(uint64_t i) {
  uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (double)((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1;
}

int64_t cb_source_clocks(const struct cb_plan *plan, int launches) {
  int64_t warps = 0;
  for (int l = 0; l < launches; l++) warps += plan->launches[l].blocks * (plan->launches[l].threads / 32);
  return warps;
}
