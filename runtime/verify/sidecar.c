// SPDX-License-Identifier: Apache-2.0
/* Beside a kernel.cu: see sidecar.h. */
#include "runtime/verify/sidecar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cb_sidecar_name(const char *path, char name[CB_SIDECAR_PATH]) {
  const size_t length = strlen(path);
  const int stem = (int)(length > 3 && !strcmp(path + length - 3, ".cu") ? length - 3 : length);
  snprintf(name, CB_SIDECAR_PATH, "%.*s.cbd", stem, path);
}

void cb_sidecar_of(const char *path, char sidecar[CB_SIDECAR_PATH]) {
  char guess[CB_SIDECAR_PATH];
  cb_sidecar_name(path, guess);
  char *absolute = realpath(guess, NULL), *linked = absolute ? NULL : realpath(path, NULL);
  if (linked) {
    cb_sidecar_name(linked, guess);
    absolute = realpath(guess, NULL);
  }
  snprintf(sidecar, CB_SIDECAR_PATH, "%s", absolute ? absolute : "");
  free(absolute);
  free(linked);
}
