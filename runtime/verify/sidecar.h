// SPDX-License-Identifier: Apache-2.0
/* Where the data of a kernel.cu lie that do not stand in it. */
#ifndef CBGEN_RUNTIME_VERIFY_SIDECAR_H
#define CBGEN_RUNTIME_VERIFY_SIDECAR_H

enum { CB_SIDECAR_PATH = 4400 };

/* The name of the sidecar that was written with `path`: kernel.cbd for kernel.cu. */
void cb_sidecar_name(const char *path, char name[CB_SIDECAR_PATH]);

/* The same, absolute: beside the path, else beside the file that a link leads to, where the text itself looks. Empty
 * when there is none. */
void cb_sidecar_of(const char *path, char sidecar[CB_SIDECAR_PATH]);

#endif
