// SPDX-License-Identifier: Apache-2.0
/* cbgen cache fill: kernels of matrices, for GPUs that are not here (runtime/api/fill.h). cbgen cache gpu: what such a
 * GPU is like, as text (runtime/cuda/target_file.h). */
#include "tool/cache_parts.h"

#include "frontend/read.h"
#include "runtime/api/fill.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/target_file.h"

#include <stdio.h>
#include <string.h>

/* ---- which GPUs */

enum { MOST_TARGETS = CB_MAX_ARCHES + 1 };
struct targets {
  struct cb_target list[MOST_TARGETS];
  int count;
};

/* Those of --arch as the table has them, and that of --gpu. */
static enum cb_status find_targets(struct targets *targets, const struct cb_call *call, struct cb_diag *diag) {
  enum cb_status s = CB_OK;
  for (int i = 0; i < call->arches_count && !s; i++)
    s = cb_target_find(&targets->list[targets->count++], call->arches[i], diag);
  if (!s && call->gpu) s = cb_target_read(&targets->list[targets->count++], call->gpu, diag);
  if (!s && !targets->count)
    s = cb_fail(diag, CB_ERR_ARGUMENT,
                "'cache fill' needs '--arch=sm_NN' or '--gpu=FILE': 'cbgen cache gpu' on a node writes one");
  return s;
}

/* ---- filling */

static enum cb_status new_context(cbgen_context **context, const struct cb_call *call, struct cb_diag *diag) {
  cbgen_status s = cbgen_context_create(context);
  if (s) return cb_fail(diag, (enum cb_status)s, "a context cannot be made: %s", cbgen_status_name(s));
  for (int i = 0; i < call->settings_count && !s; i++)
    s = cbgen_set(*context, call->settings[i].name, call->settings[i].value);
  return s ? cb_fail_lines(diag, (enum cb_status)s, cbgen_message(*context)) : CB_OK;
}

/* The matrix as the library takes it. */
static cbgen_csr view_of(const struct cb_csr *csr) {
  return (cbgen_csr){.struct_size = sizeof(cbgen_csr),
                     .rows = csr->rows,
                     .cols = csr->cols,
                     .nnz = csr->nnz,
                     .row_ptr = csr->row_ptr,
                     .col_idx = csr->col_idx,
                     .values = csr->values,
                     .row_ptr_bits = csr->wide ? 64 : 32,
                     .name = csr->name};
}

static enum cb_status fill_one(cbgen_context *context, const struct cb_target *target, const struct cb_csr *csr,
                               const struct cb_call *call, struct cb_text *report, struct cb_diag *diag) {
  const cbgen_csr view = view_of(csr);
  const cbgen_request request = {.struct_size = sizeof request, .transpose = cb_call_has(call, "transpose")};
  struct cb_filled filled;
  char hex[CB_HASH_HEX];
  cb_progress_stage("making the kernel of '%s' for %s", csr->name, target->model);
  const enum cb_status s = cb_fill(context, target, &view, &request, &filled);
  if (s) return cb_fail(diag, s, "%s for %s: %s", csr->name, target->model, cbgen_message(context));
  cb_hash_hex(filled.key, hex);
  cb_text_add(report, "%.16s  %-7s %-20s %s\n", hex, target->arch, csr->name,
              filled.was_there ? "was there" : filled.plan);
  return CB_OK;
}

/* All matrices for one GPU, with a context of its own: a context has one. */
static enum cb_status fill_target(const struct cb_target *target, const struct cb_call *call, struct cb_text *report,
                                  struct cb_diag *diag) {
  cbgen_context *context = NULL;
  int made = 0;
  enum cb_status s = new_context(&context, call, diag);
  cb_progress_stage("making the library's own kernels for %s", target->arch);
  if (!s) {
    s = cb_fill_own(context, target, &made);
    if (s) cb_fail_lines(diag, s, cbgen_message(context));
  }
  for (int i = 0; i <= call->more_count && !s; i++) {
    const struct cb_progress progress = {cb_progress_report, NULL};
    const char *path = i ? call->more[i - 1] : call->file;
    struct cb_csr csr = {0};
    cb_progress_stage("reading '%s'", path);
    s = cb_matrix_read(&csr, path, &progress, diag);
    if (!s) s = fill_one(context, target, &csr, call, report, diag);
    cb_csr_release(&csr);
  }
  if (!s && made) cb_text_add(report, "%d of the library's own kernels for %s\n", made, target->model);
  cbgen_context_destroy(context);
  return s;
}

enum cb_status cb_cache_run_fill(struct cb_cache *cache, const struct cb_call *call, struct cb_diag *diag) {
  struct targets targets = {.count = 0};
  struct cb_text report = {0};
  if (cb_cache_state(cache) != CB_CACHE_ON)
    return cb_fail(diag, CB_ERR_IO, "there is no cache to fill: %s", cb_cache_remark(cache));
  enum cb_status s = find_targets(&targets, call, diag);
  for (int i = 0; i < targets.count && !s; i++) s = fill_target(&targets.list[i], call, &report, diag);
  struct cb_diag unprinted = {0};
  if (!call->quiet && report.length) {
    const enum cb_status printed = cb_print(&report, s ? &unprinted : diag);
    if (!s) s = printed;
  }
  cb_text_release(&report);
  return s;
}

/* ---- the GPU of this machine */

enum cb_status cb_cache_run_gpu(struct cb_cache *cache, const struct cb_call *call, struct cb_diag *diag) {
  struct cb_driver *driver = NULL;
  struct cb_device *device = NULL;
  struct cb_text text = {0};
  (void)cache;
  (void)call;
  enum cb_status s = cb_driver_open(&driver, NULL, diag);
  if (!s) s = cb_device_open(&device, driver, 0, diag);
  if (!s) s = cb_target_text(&text, &device->target, diag);
  if (!s) s = cb_print(&text, diag);
  cb_text_release(&text);
  cb_device_close(device);
  cb_driver_close(driver);
  return s;
}
