// SPDX-License-Identifier: Apache-2.0
/* cbgen calibrate: what the cost model should know of this machine's GPU, measured and kept. */
#include "tool/tool.h"

#include "runtime/cuda/calibration.h"
#include "runtime/measure/calibrate.h"

#include <string.h>

/* The figures beside those that stand in the library. */
static void add_table(struct cb_text *text, const struct cb_device *device,
                      const struct cb_target *measured) {
  cb_text_add(text, "%s, %s, %d multiprocessors\n\n", measured->model, measured->arch,
              measured->multiprocessors);
  cb_text_add(text, "%-52s %10s %10s\n", "", "measured", "shipped");
  for (const struct cb_figure *figure = cb_figure_table; figure->name; figure++)
    cb_text_add(text, "%-46s %5s %10lld %10lld\n", figure->meaning, figure->unit,
                (long long)cb_figure_get(measured, figure),
                (long long)cb_figure_get(&device->shipped, figure));
}

/* To where the library looks, or to the file that -o names. */
static enum cb_status save(struct cb_text *report, const struct cb_call *call,
                           const struct cb_target *measured, struct cb_diag *diag) {
  char place[CB_CALIBRATION_PATH];
  const char *path = call->output ? call->output : place;
  enum cb_status s = call->output ? CB_OK : cb_calibration_path(place, measured->model, diag);
  if (!s) s = cb_calibration_save(measured, path, diag);
  if (!s)
    cb_text_add(report, "\nwritten to '%s'%s\n", path,
                call->output ? "" : "; plans for this GPU follow it from now on");
  return s;
}

static enum cb_status measure(const struct cb_call *call, struct cb_device **device,
                              const struct cb_driver *driver, struct cb_target *measured,
                              struct cb_diag *diag) {
  enum { BATCHES = 7, MOST = 64 };
  struct cb_nvrtc *nvrtc = NULL;
  const int batches = call->repeat > MOST ? MOST : call->repeat ? (int)call->repeat : BATCHES;
  enum cb_status s = cb_nvrtc_open(&nvrtc, NULL, diag);
  if (!s) s = cb_device_open(device, driver, (int)call->device, diag);
  if (!s) s = cb_calibrate(measured, *device, nvrtc, batches, diag);
  cb_nvrtc_close(nvrtc);
  return s;
}

static enum cb_status run_calibrate(const struct cb_call *call, struct cb_diag *diag) {
  struct cb_driver *driver = NULL;
  struct cb_device *device = NULL;
  struct cb_target measured;
  struct cb_text report = {0};
  const int to_output = call->output && !strcmp(call->output, "-");
  cb_progress_stage("measuring GPU %d", (int)call->device);
  enum cb_status s = cb_driver_open(&driver, NULL, diag);
  if (!s) s = measure(call, &device, driver, &measured, diag);
  if (!s) add_table(&report, device, &measured);
  if (!s) s = save(&report, call, &measured, diag);
  if (!s && !to_output && !call->quiet) s = cb_print(&report, diag);
  if (!s && call->verbose && *device->remark) cb_say("%s", device->remark);
  cb_text_release(&report);
  cb_device_close(device);
  cb_driver_close(driver);
  return s;
}

const struct cb_verb cb_verb_calibrate = {
    .name = "calibrate",
    .arguments = "[OPTION…]",
    .summary = "measure the GPU for the cost model",
    .details =
        "Measures on the GPU what the cost model asks of it: reads of memory and of L2, gathers, latency "
        "and\n"
        "launches, and prints that beside what cbgen brings for such GPUs. The file goes to the directory\n"
        "$CBGEN_CALIBRATION, else $XDG_CONFIG_HOME/cbgen, else ~/.config/cbgen, under the GPU model's name,\n"
        "where cbgen and libcbgen find it whenever they open such a GPU. '-o FILE' writes it elsewhere.\n"
        "Takes a few seconds; the GPU should have nothing else to do.\n",
    .example = "cbgen calibrate --device=1",
    .takes = CB_TAKES_OUTPUT | CB_TAKES_GPU | CB_TAKES_NOTHING,
    .run = run_calibrate,
};
