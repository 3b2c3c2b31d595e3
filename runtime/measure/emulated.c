// SPDX-License-Identifier: Apache-2.0
/* The product of a kernel by the emulation: see emulated.h. */
#include "runtime/measure/emulated.h"

#include "base/real.h"
#include "runtime/verify/host.h"

#include <math.h>
#include <string.h>

static struct cb_host_job job_of(const struct cb_emulated *product, void *result) {
  const int64_t size = (int64_t)cb_type_size(product->plan->vector_type);
  return (struct cb_host_job){.data = product->blob->bytes,
                              .data_bytes = product->blob->length,
                              .x = product->x,
                              .x_bytes = size * product->plan->cols,
                              .y = product->y,
                              .y_bytes = size * product->plan->rows,
                              .alpha = product->alpha,
                              .beta = product->beta,
                              .seed = 1,
                              .products = 1,
                              .result = result};
}

enum cb_status cb_emulated_multiply(void *result, const struct cb_emulated *product, struct cb_diag *diag) {
  struct cb_host_options options;
  struct cb_host *host = NULL;
  struct cb_host_program *program = NULL;
  struct cb_host_job job = job_of(product, result);
  const struct cb_host_kernel kernel = {.text = product->source->text + product->source->body,
                                        .symbol = product->symbol,
                                        .vector_type = product->plan->vector_type,
                                        .form = product->plan->form};
  cb_host_options_default(&options);
  options.sanitize = options.debug = 0;
  enum cb_status s = cb_host_open(&host, &options, diag);
  if (!s) s = cb_host_build(&program, host, &kernel, 1, diag);
  if (!s) s = cb_host_run(program, &job, 1, diag);
  if (!s && job.outcome != CB_HOST_DONE) s = cb_fail_lines(diag, CB_ERR_WRONG, job.message);
  cb_host_program_free(program);
  cb_host_close(host);
  return s;
}

int64_t cb_first_difference(const void *one, const void *other, enum cb_type type, int64_t count) {
  const size_t size = cb_type_size(type);
  for (int64_t i = 0; i < count; i++) {
    if (!memcmp((const char *)one + (size_t)i * size, (const char *)other + (size_t)i * size, size)) continue;
    if (!isnan(cb_real_get(one, type, i)) || !isnan(cb_real_get(other, type, i))) return i;
  }
  return -1;
}
