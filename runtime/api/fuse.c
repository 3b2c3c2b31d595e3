// SPDX-License-Identifier: Apache-2.0
/* Products that go on as their program does: see cb_stages_fuse and cb_stages_join. */
#include "runtime/api/api.h"
#include "runtime/solver/fused.h"
#include "runtime/solver/repeated.h"

static int is_whole(const struct cb_fused *fused) {
  struct cb_solver_info info = {0};
  cb_fused_registers(fused, &info);
  return !info.local_bytes;
}

/* The image of the operator's own kernels, with their text. Whether it has any. */
static int take_image(struct cb_image *image, const struct cbgen_operator *op) {
  struct cb_shared *shared = op->shared;
  *image = *cb_shared_image(shared);
  if (image->tier != CB_TIER_SPECIALISED || cb_shared_texts(shared, NULL)) return 0;
  image->source = shared->image.source;
  return 1;
}

/* What spills although its operator's kernels do not is no gain. */
static struct cb_fused *fuse(const struct cbgen_operator *op, const struct cb_program *program,
                             const struct cb_stages_plan *plan, int number) {
  struct cb_shared *shared = op->shared;
  struct cb_image image;
  const struct cb_device *device = shared->session->device;
  struct cb_compiled compiled = {0};
  struct cb_fused *fused = NULL;
  struct cb_text text = {0};
  if (!take_image(&image, op)) return NULL;
  enum cb_status s = cb_solver_fused_text(&text, &image, program, number, NULL);
  if (!s) s = cb_program_binary(shared, &text, 0, &compiled, NULL);
  if (!s && !cb_device_enter(device, NULL)) {
    s = cb_fused_load(&fused, device, op->op, &image, &plan->fusions[number], compiled.cubin, NULL);
    if (!s && !is_whole(fused)) {
      cb_fused_free(fused);
      fused = NULL;
    }
    cb_device_leave(device);
  }
  cb_compiled_release(&compiled);
  cb_text_release(&text);
  return fused;
}

/* The operator that the fusion multiplies with. */
static const struct cbgen_operator *operator_of(const struct cb_stages_plan *plan, int fusion,
                                                const struct cbgen_operator *op,
                                                const struct cbgen_operator *transposed) {
  return plan->acts[plan->fusions[fusion].act].number == CB_OF_TRANSPOSED ? transposed : op;
}

void cb_stages_fuse(struct cb_fused **fused, const struct cbgen_operator *op, const struct cbgen_operator *transposed,
                    const struct cb_program *program, const struct cb_stages_plan *plan, int with_sums) {
  for (int i = 0; i < plan->fusions_count; i++) {
    if (plan->fusions[i].sums && !with_sums) continue;
    const struct cbgen_operator *own = operator_of(plan, i, op, transposed);
    if (own) fused[i] = fuse(own, program, plan, i);
  }
}

/* ---- a group */

static enum cb_status take_operator(struct cb_repeated_parts *parts, struct cb_image *image,
                                    const struct cbgen_operator *op, struct cb_diag *diag) {
  if (!take_image(image, op))
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "an operator multiplies with a family's kernels: specialise it first");
  parts->ops[parts->count] = op->op;
  parts->images[parts->count++] = image;
  return CB_OK;
}

static enum cb_status load(struct cb_repeated **repeated, const struct cb_repeated_parts *parts, struct cb_diag *diag) {
  struct cb_solver_info info = {0};
  enum cb_status s = cb_device_enter(parts->device, diag);
  if (s) return s;
  s = cb_repeated_load(repeated, parts, diag);
  if (!s) cb_repeated_registers(*repeated, &info);
  if (info.local_bytes) {
    cb_repeated_free(*repeated);
    *repeated = NULL;
    s = cb_fail(diag, CB_ERR_UNSUPPORTED, "threads of repeated products lack registers");
  }
  cb_device_leave(parts->device);
  return s;
}

enum cb_status cb_stages_join(struct cb_repeated **repeated, int *group, const struct cbgen_operator *op,
                              const struct cbgen_operator *transposed, const struct cb_program *program,
                              const struct cb_stages_plan *plan, struct cb_diag *diag) {
  const struct cb_device *device = op->shared->session->device;
  struct cb_repeated_parts parts = {.device = device};
  struct cb_image images[CB_MOST_FUSIONS];
  struct cb_compiled compiled = {0};
  struct cb_text text = {0};
  int count = 0, first = 0;
  enum cb_status s = CB_OK;
  for (*group = 0; *group < plan->groups_count; ++*group)
    if ((count = cb_stages_group(plan, *group, &first))) break;
  if (!count)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "method '%s' repeats nothing that one kernel can", program->name);
  for (int i = 0; i < count && !s; i++)
    s = take_operator(&parts, &images[i], operator_of(plan, first + i, op, transposed), diag);
  if (!s)
    s = cb_solver_repeated_text(&text, parts.images, count, program, device->target.multiprocessors, &parts.shape,
                                diag);
  if (!s) s = cb_program_binary(op->shared, &text, 0, &compiled, diag);
  parts.cubin = compiled.cubin;
  if (!s) s = load(repeated, &parts, diag);
  cb_compiled_release(&compiled);
  cb_text_release(&text);
  return s;
}
