// SPDX-License-Identifier: Apache-2.0
/* Actions of `cbgen cache` that have files of their own. */
#ifndef CBGEN_TOOL_CACHE_PARTS_H
#define CBGEN_TOOL_CACHE_PARTS_H

#include "runtime/cache/cache.h"
#include "tool/tool.h"

/* cache_fill.c: entries for GPUs that are not here; and the description of one that is. */
enum cb_status cb_cache_run_fill(struct cb_cache *cache, const struct cb_call *call, struct cb_diag *diag);
enum cb_status cb_cache_run_gpu(struct cb_cache *cache, const struct cb_call *call, struct cb_diag *diag);

/* cache_archive.c: entries into a tar archive, and out of one. */
enum cb_status cb_cache_run_export(struct cb_cache *cache, const struct cb_call *call, struct cb_diag *diag);
enum cb_status cb_cache_run_import(struct cb_cache *cache, const struct cb_call *call, struct cb_diag *diag);

#endif
