// SPDX-License-Identifier: Apache-2.0
/* Long copies from pageable host memory to the device: several threads fill pinned buffers, from which the GPU fetches
 * while they fill the next. The driver's own copy does the same with one thread, a tenth as fast as the bus.
 *
 * A device that has a staging uses it for every long cb_device_upload (driver.h).
 */
#ifndef CBGEN_RUNTIME_STAGING_H
#define CBGEN_RUNTIME_STAGING_H

#include "base/status.h"
#include "runtime/driver.h"

#include <stddef.h>

struct cb_staging;

/* Takes no pinned memory yet: the first long copy does, since that costs milliseconds. CB_ERR_MEMORY. */
enum cb_status cb_staging_create(struct cb_staging **staging, const struct cb_device *device, struct cb_diag *diag);
void cb_staging_free(struct cb_staging *staging); /* with the device's context current; NULL is accepted */

/* Whether a copy of so many bytes should go this way: it is long, and pinned memory was not refused. Any thread. */
int cb_staging_wants(struct cb_staging *staging, size_t bytes);

/* Copies, and waits until all is there. With the device's context current; any thread, one after the other. Where
 * pinned memory is refused the driver copies by itself. */
enum cb_status cb_staging_upload(struct cb_staging *staging, cb_device_ptr to, const void *from, size_t bytes,
                                 const char *what, struct cb_diag *diag);

#endif
