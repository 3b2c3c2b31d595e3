// SPDX-License-Identifier: Apache-2.0
/* The text files that travel inside the library: kernel templates and the sources of the host emulation.
 * The build writes the table; its names are paths in the source tree ("templates/cb.cu.in"). */
#ifndef CBGEN_BASE_EMBEDDED_H
#define CBGEN_BASE_EMBEDDED_H

#include <stddef.h>

struct cb_embedded_file {
  const char *name, *text; /* text is NUL-terminated */
  size_t length;           /* without the NUL */
};

extern const struct cb_embedded_file cb_embedded_files[]; /* ends with a NULL name */

/* The file of that name, or NULL. */
const struct cb_embedded_file *cb_embedded_find(const char *name);

#endif
