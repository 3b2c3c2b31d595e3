// SPDX-License-Identifier: Apache-2.0
/* The table of architectures. The H200's figures are measured (cbgen calibrate); the other rows' are from data sheets:
 * bandwidth is 90 % of the peak, sectors and the read rate of L2 scale with multiprocessors × boost clock from the
 * H200's 161 G/s and 9080 GB/s (132 × 1.98 GHz), launch time and latency are taken over. For the L2 of consumers' GPUs
 * from sm_89 on, where that scaling overshoots what is published for the RTX 4090, it is 70 % of it. Shared memory is
 * that of CUDA's technical specifications by compute capability. */
#include "analysis/target.h"

#include <stdio.h>
#include <string.h>

#define KIB(n) ((n) << 10)
#define MIB(n) ((n) << 20)
#define REFUSED(name, why)                                                                                         \
  { .target = {.arch = name}, .refusal = why }

const struct cb_architecture cb_architecture_table[] = {
    {{"sm_75", "NVIDIA T4", 40, KIB(64), KIB(64), MIB(4), 288, 39, 2500, 2200, 145}, "12.0", 0, 0, NULL},
    {{"sm_80", "NVIDIA A100-SXM4-80GB", 108, KIB(163), KIB(164), MIB(40), 1835, 94, 2500, 5290, 145}, "12.0", 0, 1,
     NULL},
    {{"sm_86", "NVIDIA RTX A6000", 84, KIB(99), KIB(100), MIB(6), 691, 93, 2500, 5250, 145}, "12.0", 0, 0, NULL},
    {{"sm_87", "Jetson AGX Orin", 16, KIB(163), KIB(164), MIB(4), 184, 12, 2500, 720, 145}, "12.0", 0, 0, NULL},
    REFUSED("sm_88", "no data sheet of such a GPU is public; its limits are those of sm_86"),
    {{"sm_89", "NVIDIA GeForce RTX 4090", 128, KIB(99), KIB(100), MIB(72), 907, 199, 2500, 7800, 145}, "12.0", 0, 1,
     NULL},
    {{"sm_90", "NVIDIA H200", 132, KIB(227), KIB(228), MIB(60), 4560, 161, 2500, 9080, 145}, "12.0", 1, 1, NULL},
    {{"sm_100", "NVIDIA B200", 148, KIB(227), KIB(228), MIB(126), 7200, 180, 2500, 10100, 145}, "12.8", 0, 1, NULL},
    REFUSED("sm_101", "CUDA 13 calls it sm_110"),
    {{"sm_103", "NVIDIA B300", 148, KIB(227), KIB(228), MIB(126), 7200, 180, 2500, 10100, 145}, "12.9", 0, 0, NULL},
    {{"sm_110", "Jetson AGX Thor", 20, KIB(227), KIB(228), MIB(32), 246, 19, 2500, 1090, 145}, "13.0", 0, 0, NULL},
    {{"sm_120", "NVIDIA GeForce RTX 5090", 170, KIB(99), KIB(100), MIB(96), 1612, 252, 2500, 9960, 145}, "12.8", 0, 0, NULL},
    {{"sm_121", "NVIDIA GB10", 48, KIB(99), KIB(100), MIB(24), 246, 71, 2500, 2820, 145}, "12.9", 0, 0, NULL},
    {.target = {.arch = ""}},
};

static int number_of(const char *arch) {
  int number = 0, end = 0;
  return sscanf(arch, "sm_%d%n", &number, &end) == 1 && !arch[end] ? number : 0;
}

/* "'sm_75', 'sm_80'": those that are planned for. */
static void list_names(struct cb_text *names) {
  for (const struct cb_architecture *row = cb_architecture_table; *row->target.arch; row++)
    if (!row->refusal) cb_text_add(names, "%s'%s'", names->length ? ", " : "", row->target.arch);
}

static const struct cb_architecture *find_row(const char *arch) {
  const struct cb_architecture *row = cb_architecture_table;
  while (*row->target.arch && strcmp(row->target.arch, arch)) row++;
  return row;
}

enum cb_status cb_target_find(struct cb_target *target, const char *arch, struct cb_diag *diag) {
  const struct cb_architecture *row = find_row(arch);
  struct cb_text names = {0};
  if (*row->target.arch && !row->refusal) {
    *target = row->target;
    return CB_OK;
  }
  const int number = number_of(arch), oldest = number_of(cb_architecture_table[0].target.arch);
  list_names(&names);
  if (row->refusal)
    cb_fail(diag, CB_ERR_ARGUMENT, "target '%s' is refused: %s; there are %s", arch, row->refusal,
            cb_text_string(&names));
  else if (number && number < oldest)
    cb_fail(diag, CB_ERR_ARGUMENT, "target '%s' is refused: CUDA 13 does not compile for what is older than sm_%d; "
                                   "there are %s", arch, oldest, cb_text_string(&names));
  else
    cb_fail(diag, CB_ERR_ARGUMENT, "unknown target '%s'; there are %s", arch, cb_text_string(&names));
  cb_text_release(&names);
  return CB_ERR_ARGUMENT;
}

const struct cb_architecture *cb_architecture_nearest(int number) {
  const struct cb_architecture *best = cb_architecture_table;
  for (const struct cb_architecture *row = cb_architecture_table; *row->target.arch; row++)
    if (!row->refusal && number_of(row->target.arch) <= number) best = row;
  return best;
}

void cb_architectures_help(struct cb_text *text) {
  cb_text_add(text, "  %-7s %-24s %4s %14s  %-5s  %s\n", "arch", "as", "SMs", "shared memory", "NVRTC", "figures");
  for (const struct cb_architecture *row = cb_architecture_table; *row->target.arch; row++) {
    const struct cb_target *target = &row->target;
    if (row->refusal)
      cb_text_add(text, "  %-7s refused: %s\n", target->arch, row->refusal);
    else
      cb_text_add(text, "  %-7s %-24s %4d %10d KiB  %-5s  %s\n", target->arch, target->model, target->multiprocessors,
                  target->shared_per_block >> 10, row->nvrtc, row->measured ? "measured" : "data sheet");
  }
}
