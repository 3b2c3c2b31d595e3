// SPDX-License-Identifier: Apache-2.0
/* Products that go on as their program does: see cb_stages_fuse. */
#include "runtime/api/api.h"
#include "runtime/solver/fused.h"

static int is_whole(const struct cb_fused *fused) {
  struct cb_solver_info info = {0};
  cb_fused_registers(fused, &info);
  return !info.local_bytes;
}

/* What spills although its operator's kernels do not is no gain. */
static struct cb_fused *fuse(const struct cbgen_operator *op, const struct cb_program *program, int number) {
  struct cb_shared *shared = op->shared;
  struct cb_image image = *cb_shared_image(shared);
  const struct cb_device *device = shared->session->device;
  struct cb_compiled compiled = {0};
  struct cb_fused *fused = NULL;
  struct cb_text text = {0};
  if (image.tier != CB_TIER_SPECIALISED || cb_shared_texts(shared, NULL)) return NULL;
  image.source = shared->image.source;
  enum cb_status s = cb_solver_fused_text(&text, &image, program, number, NULL);
  if (!s) s = cb_program_binary(shared, &text, 0, &compiled, NULL);
  if (!s && !cb_device_enter(device, NULL)) {
    s = cb_fused_load(&fused, device, op->op, &image, compiled.cubin, NULL);
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

void cb_stages_fuse(struct cb_fused **fused, const struct cbgen_operator *op, const struct cbgen_operator *transposed,
                    const struct cb_program *program, const struct cb_stages_plan *plan) {
  for (int i = 0; i < plan->fusions_count; i++) {
    const struct cbgen_operator *own = plan->acts[plan->fusions[i].act].number == CB_OF_TRANSPOSED ? transposed : op;
    if (own) fused[i] = fuse(own, program, i);
  }
}
