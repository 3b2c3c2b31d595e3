// SPDX-License-Identifier: Apache-2.0
/* The table of targets. The H200's figures are measured (cbgen calibrate); the other rows' are from data sheets:
 * bandwidth is 90 % of the peak, sectors and the read rate of L2 scale with multiprocessors × boost clock from the
 * H200's 161 G/s and 9080 GB/s (132 × 1.98 GHz), launch time and latency are taken over. For the RTX 4090's L2, where
 * that scaling overshoots what is published, it is 70 % of it. */
#include "analysis/target.h"

#include "base/text.h"

#include <string.h>

const struct cb_target cb_target_table[] = {
    {"sm_80", "NVIDIA A100-SXM4-80GB", 108, 163 << 10, 164 << 10, 40 << 20, 1835, 94, 2500, 5290, 145},
    {"sm_89", "NVIDIA GeForce RTX 4090", 128, 99 << 10, 100 << 10, 72 << 20, 907, 199, 2500, 7800, 145},
    {"sm_90", "NVIDIA H200", 132, 227 << 10, 228 << 10, 60 << 20, 4560, 161, 2500, 9080, 145},
    {"sm_100", "NVIDIA B200", 148, 227 << 10, 228 << 10, 126 << 20, 7200, 180, 2500, 10100, 145},
    {"", "", 0, 0, 0, 0, 0, 0, 0, 0, 0},
};

enum cb_status cb_target_find(struct cb_target *target, const char *arch, struct cb_diag *diag) {
  struct cb_text known = {0};
  for (const struct cb_target *row = cb_target_table; *row->arch; row++) {
    if (!strcmp(row->arch, arch)) {
      *target = *row;
      cb_text_release(&known);
      return CB_OK;
    }
    cb_text_add(&known, "%s'%s'", row == cb_target_table ? "" : ", ", row->arch);
  }
  cb_fail(diag, CB_ERR_ARGUMENT, "unknown target '%s'; there are %s", arch, cb_text_string(&known));
  cb_text_release(&known);
  return CB_ERR_ARGUMENT;
}
