// SPDX-License-Identifier: Apache-2.0
/* What a context and its operators share: the driver, NVRTC and one GPU. The last to let go closes them.
 *
 * Where the CUDA context is the application's, and so stays, what was made in it is kept for the next session on it:
 * pinned buffers, loaded kernels and binaries of families, which cost milliseconds. A CUDA context is known by its id,
 * which is never given to another, so nothing is taken that went with its context. */
#ifndef CBGEN_RUNTIME_API_SESSION_H
#define CBGEN_RUNTIME_API_SESSION_H

#include "base/status.h"
#include "codegen/source.h"
#include "runtime/api/families.h"
#include "runtime/cache/cache.h"
#include "runtime/cuda/binaries.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/memory.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/operator/device_hash.h"
#include "runtime/operator/kernel_sets.h"
#include "runtime/operator/packer.h"

#include <stdatomic.h>

enum { CB_DEVICE_CURRENT = -1 };

struct cb_session {
  atomic_int holders;
  int is_absent; /* of a GPU that is not here */
  unsigned long long context_id; /* of the application's CUDA context; 0: nothing is kept in it */
  struct cb_driver *driver;
  struct cb_device *device;
  struct cb_nvrtc *nvrtc;                         /* NULL until it was needed; see cb_session_nvrtc */
  struct cb_binaries *binaries;                   /* that come with the library; NULL: none, or not needed yet */
  int has_looked;                                 /* for them */
  char nvrtc_path[512];                           /* "": it is looked for */
  struct cb_packer packers[CB_PACKER_SLOTS]; /* by stored type; loaded when they were needed */
  struct cb_hasher hasher;                        /* likewise */
  struct cb_kernels kernels[CB_MOST_SETS];        /* likewise, by their number in cb_kernel_sets */
  int holds_families;                             /* families.h */
};

/* `ordinal`: of a GPU, whose primary context is used, or CB_DEVICE_CURRENT: the CUDA context that is current
 * on the calling thread, else GPU 0's primary one. CB_ERR_MISSING: no driver or no GPU. */
enum cb_status cb_session_open(struct cb_session **session, int ordinal, struct cb_diag *diag);
/* Whence the session's device memory comes from now on, and how much of it. Of one with a source nothing is kept for
 * the next session. CB_ERR_MEMORY. */
enum cb_status cb_session_use_memory(struct cb_session *session, const struct cb_memory_source *source, int64_t limit,
                                     struct cb_diag *diag);

/* For a GPU that is not here: it has a target and NVRTC. Nothing can be loaded or run, and no kernel is got from here.
 * CB_ERR_MEMORY. */
enum cb_status cb_session_open_absent(struct cb_session **session, const struct cb_target *target,
                                      struct cb_diag *diag);
struct cb_session *cb_session_hold(struct cb_session *session);
void cb_session_release(struct cb_session *session); /* NULL is accepted */

/* Gives back what is kept in the CUDA context that is current on the calling thread. */
void cb_session_trim(void);

/* Where NVRTC is, for when it is first needed; NULL or "": it is looked for. CB_ERR_LIMIT: the path is too long. */
enum cb_status cb_session_name_nvrtc(struct cb_session *session, const char *path, struct cb_diag *diag);

/* Opens NVRTC when it is first needed. One thread at a time: the context's. CB_ERR_MISSING. */
enum cb_status cb_session_nvrtc(struct cb_session *session, const struct cb_nvrtc **nvrtc,
                                struct cb_diag *diag);

/* Whether the library brings binaries for the session's GPU. Likewise one thread at a time. */
int cb_session_has_binaries(struct cb_session *session);

/* The kernels that pack values of a stored type: loaded already, or from the cache (which may be NULL), or
 * compiled. Likewise one thread at a time. They live as long as the session. */
enum cb_status cb_session_packer(struct cb_session *session, struct cb_cache *cache, enum cb_type stored,
                                 const struct cb_packer **packer, struct cb_diag *diag);
/* The same from a binary that the caller has. */
enum cb_status cb_session_packer_from(struct cb_session *session, enum cb_type stored,
                                      const void *cubin, size_t cubin_bytes, const struct cb_packer **packer,
                                      struct cb_diag *diag);

/* The binary that the cache keeps under a key: a copy, the caller's (cb_compiled_release). 0: there is none. */
int cb_session_kept_binary(struct cb_cache *cache, struct cb_hash key, struct cb_compiled *compiled);
/* Keeps a text and its binary for the subject. That they cannot be kept costs time only. */
void cb_session_keep_binary(const struct cb_session *session, struct cb_cache *cache,
                            const struct cb_cache_subject *subject, const struct cb_text *text,
                            const struct cb_compiled *compiled);

/* The binary of a family for the session's GPU, by its outline (codegen/outline.h): known from before, or from what
 * comes with the library. Whether there is one; `log` is told which. Likewise one thread. */
struct cbgen_context;
int cb_session_outlined(struct cb_session *session, struct cb_hash outline, struct cb_compiled *compiled,
                        const struct cbgen_context *log);

/* Likewise, when that has found none, by the outline's text: from what comes with the library, from the cache, or
 * compiled, if it may be, and kept there for all matrices. CB_ERR_MISSING: it would have to be compiled, and must not
 * be, or there is no NVRTC. */
enum cb_status cb_session_family(struct cb_session *session, struct cb_cache *cache, const struct cb_source *family,
                                 struct cb_hash outline, int may_compile, struct cb_compiled *compiled,
                                 const struct cbgen_context *log, struct cb_diag *diag);

/* Likewise the kernels that hash patterns on the device. */
enum cb_status cb_session_hasher(struct cb_session *session, struct cb_cache *cache, struct cb_hasher **hasher,
                                 struct cb_diag *diag);

/* Compiles what the functions above would, and keeps it in the cache, where it is not there yet; *made: how many. */
enum cb_status cb_session_keep_own(struct cb_session *session, struct cb_cache *cache, int *made, struct cb_diag *diag);

/* Likewise a set of kernels that survey or pack, by its number. */
enum cb_status cb_session_kernels(struct cb_session *session, struct cb_cache *cache, int set,
                                  const struct cb_kernels **kernels, struct cb_diag *diag);

#endif
