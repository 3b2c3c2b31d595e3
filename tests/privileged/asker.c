// SPDX-License-Identifier: Apache-2.0
/* Does what reads the environment, and says what came of it, one line each. test_environment.c starts it as a plain and
 * as a set-user-ID program. */
#include "base/environment.h"
#include "runtime/api/compile.h"
#include "runtime/cache/cache.h"
#include "runtime/cuda/calibration.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/measure/cusparse.h"
#include "runtime/verify/host.h"

#include <stdio.h>
#include <unistd.h>

static void ask_libraries(void) {
  struct cb_driver *driver = NULL;
  struct cb_nvrtc *nvrtc = NULL;
  cb_driver_open(&driver, NULL, NULL);
  cb_nvrtc_open(&nvrtc, NULL, NULL);
  cb_nvrtc_close(nvrtc);
  cb_driver_close(driver);
}

static void ask_places(void) {
  struct cb_cache *cache = NULL;
  struct cb_diag diag = {0};
  char path[CB_CALIBRATION_PATH];
  cb_cache_open(&cache, &(struct cb_cache_options){0}, &diag);
  printf("cache %s\n", cb_cache_state(cache) == CB_CACHE_ON ? "on" : "off");
  printf("calibration %s\n", cb_calibration_path(path, "GPU", NULL) ? "none" : path);
  cb_cache_close(cache);
}

static void ask_compiler(void) {
  struct cb_host *host = NULL;
  struct cb_host_options options;
  struct cb_diag diag = {0};
  cb_host_options_default(&options);
  options.sanitize = 0;
  const enum cb_status s = cb_host_open(&host, &options, &diag);
  printf("host %s\n", s ? cb_status_name(s) : "opened");
  cb_host_close(host);
}

static void ask_compilations(void) {
  cbgen_context *context;
  struct cb_options options;
  cb_options_default(&options);
  if (cbgen_context_create(&context)) return;
  printf("kernels %s\n", cb_inspects() ? "inspected" : "left alone");
  struct cb_checks_asked checks;
  printf("checks %s\n", cb_status_name(cb_checks_read(&checks, NULL)));
  printf("options %s\n", cb_status_name(cb_environment_options(&options, context, NULL)));
  cbgen_context_destroy(context);
}

int main(void) {
  printf("rights %s\n", cb_environment_is_foreign() ? "more" : "own");
  fflush(stdout);
  ask_libraries();
  ask_places();
  ask_compiler();
  ask_compilations();
  fflush(stdout);
  _exit(0); /* LeakSanitizer cannot trace a set-user-ID process */
}
