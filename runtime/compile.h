// SPDX-License-Identifier: Apache-2.0
/* One call of cbgen_compile under way: what its stages hand to each other.
 *
 *   api_compile.c      asks, hashes, looks up, and lets the operator be loaded
 *   compile_new.c      a miss: analysis, packing, text, NVRTC
 *   compile_cached.c   the cache's entry: its key, an image from it, and an image into it
 *   compile_tuned.c    the recipe by measurement, or as it was found before
 *
 * Both ways end in `image`. Its value arrays have no contents then, unless values are fixed: cb_work_fill
 * gives them some on the host, or the value map brings the device there.
 */
#ifndef CBGEN_RUNTIME_COMPILE_H
#define CBGEN_RUNTIME_COMPILE_H

#include "runtime/api.h"
#include "runtime/staging.h"

struct cb_work {
  struct cbgen_context *context;
  struct cb_diag *diag;
  struct cb_session *session;
  const struct cb_nvrtc *nvrtc;
  cbgen_request request;
  struct cb_options options;
  struct cb_view view;   /* as given */
  struct cb_view host;   /* the same in host memory; without values when those lie on the device */
  void *downloaded[3];   /* blocks behind it */
  struct cb_hash raw;    /* of the pattern as given */
  struct cb_hash values; /* of fixed values */
  int device_packs; /* values are moved into place on the device, by the map */

  struct cb_cache *cache; /* NULL: none is in use */
  struct cb_hash key;
  int keep;                    /* the entry gets arrays and map */
  struct cb_cache_entry entry; /* that was hit: the image may refer to it */
  struct cb_late_section {     /* of it, which are read while they are uploaded */
    const struct cb_cache_entry *entry;
    int section;
  } late[CB_STAGING_SOURCES];

  /* of a miss; a hit without data uses some */
  struct cb_csr csr;
  struct cb_order order;
  struct cb_hash pattern; /* of the matrix as it multiplies */
  struct cb_plan *plan;
  struct cb_assignment *assignment;
  struct cb_blob blob;
  struct cb_value_map map;
  struct cb_value_range *ranges; /* of the map, by region */
  struct cb_source source;
  struct cb_compiled compiled;
  char symbol[32]; /* prefix of the kernels' names */

  struct cb_image image;
  int filled_count;
  void **filled; /* blocks behind the value arrays' contents, one for each range */
  cbgen_info info;
  double mark; /* when the stage that runs began */
};

/* Seconds since the last call. */
double cb_work_lap(struct cb_work *work);

/* Brings row pointers and columns to the host, and fixed values. */
enum cb_status cb_work_host(struct cb_work *work);

/* ---- compile_new.c */

enum cb_status cb_work_make(struct cb_work *work);

/* The matrix as it multiplies, in canonical form, and the hash of its pattern; once. */
enum cb_status cb_work_canonical(struct cb_work *work);

/* Analyses the matrix by the image's own recipe and packs it: the arrays' contents, and the map, for an image
 * that has its kernel already. CB_ERR_WRONG: the plan is not the image's. */
enum cb_status cb_work_repack(struct cb_work *work);

/* Contents for the value arrays, gathered on the host. */
enum cb_status cb_work_fill(struct cb_work *work);

/* All that these made. */
void cb_work_release_new(struct cb_work *work);

/* ---- compile_tuned.c */

/* With the option tune=measure: sets the options' recipe and what else the fastest variant has, which is timed unless
 * the cache knows it; what was planned and compiled for it is kept for cb_work_make. */
enum cb_status cb_work_tune(struct cb_work *work);

/* ---- compile_cached.c */

void cb_work_key(struct cb_work *work);
/* Of something else that is kept of the same matrix for the same GPU: `kind` says of what. */
struct cb_hash cb_work_key_of(const struct cb_work *work, const char *kind);

/* The image from the cache, if it has it: *hit. A broken cache or entry is none and stands in the log. */
enum cb_status cb_work_get(struct cb_work *work, int *hit);
/* What of the entry was left to be read while it is uploaded was right, all of it: before anything relies on it.
 * CB_ERR_FORMAT: it is of no use. */
enum cb_status cb_work_settle(struct cb_work *work);
/* An entry that turned out to be of no use, as the diag says: all is forgotten, and the entry removed. */
void cb_work_forget(struct cb_work *work);
void cb_work_put(struct cb_work *work);
/* Lets go of the entry. */
void cb_work_close(struct cb_work *work);

#endif
