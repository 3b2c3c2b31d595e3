// SPDX-License-Identifier: Apache-2.0
/* Looking up embedded files: see embedded.h. */
#include "base/embedded.h"

#include <string.h>

const struct cb_embedded_file *cb_embedded_find(const char *name) {
  for (const struct cb_embedded_file *file = cb_embedded_files; file->name; file++)
    if (!strcmp(file->name, name)) return file;
  return NULL;
}
