// SPDX-License-Identifier: Apache-2.0
/* One call of cbgen_compile: what its stages hand to each other.
 *
 *   compile.c          the stages in their order; hashes, and lets the operator be loaded
 *   request.c          what is asked for, and the matrix on the host
 *   compile_new.c      a miss: analysis, packing, text, a family's binary or NVRTC
 *   compile_device.c   analysis and packing of a matrix whose columns and values stay on the device
 *   compile_cached.c   the cache's entry: its key, an image from it, and an image into it
 *   inspect.c          what the environment asks for: texts written down, texts replaced, options
 *   checks.c           the environment's checks of kernels and of products (checks.h)
 *   compile_tuned.c    the recipe by measurement, or as it was found before
 *   fill.c             the cache's entry alone, without a GPU (fill.h)
 *
 * Both ways end in load.image. Its value arrays have no contents then, unless values are fixed: cb_work_fill
 * gives them some on the host, or the value map brings the device there.
 */
#ifndef CBGEN_RUNTIME_API_COMPILE_H
#define CBGEN_RUNTIME_API_COMPILE_H

#include "runtime/api/api.h"
#include "runtime/api/checks.h"
#include "runtime/cuda/make.h"
#include "runtime/cuda/staging.h"

/* What is asked for, complete, and where: as long as the call. Only the recipe is chosen later, by tuning or because a
 * search would not pay. */
struct cb_request {
  struct cbgen_context *context;
  struct cb_session *session;
  cbgen_request asked;
  struct cb_options options;
  struct cb_view view;   /* the matrix as given */
  struct cb_view host;   /* the same in host memory; without values when those lie on the device */
  void *downloaded[3];   /* blocks behind it */
  struct cb_expansion expansion; /* likewise */
  struct cb_reordering reordering; /* of the matrix's rows and columns, as the view has them */
  int on_host;                   /* the pattern is there */
  char *epilogue;        /* that the options refer to; NULL: none */
  struct cb_hash raw;    /* of the pattern as given */
  struct cb_hash values; /* of fixed values */
};

/* What the cache has of it: from the look-up until the operator is loaded, or the entry turns out to be of no use. */
struct cb_kept {
  struct cb_cache *cache; /* NULL: none is in use */
  struct cb_hash key;
  struct cb_cache_turn turn;   /* to make the entry of the key: until it is put */
  struct cb_cache_turn tuning; /* of who has tuned: until the turn is taken, since the kernel is compiled already */
  struct cb_cache_entry entry; /* that was hit: the image may refer to it */
  struct cb_deferred_section { /* of it, which are read while they are uploaded */
    const struct cb_cache_entry *entry;
    int section;
  } deferred[CB_STAGING_SOURCES];
};

/* What analysis works on: from the first stage that needs it (tuning, a miss, or a hit without data) to the end. */
struct cb_matrix {
  struct cb_csr csr;
  struct cb_order order;
  struct cb_hash pattern; /* as it multiplies */
};

/* The data of a plan: made with it, referred to by the image. */
struct cb_packed {
  int keep; /* the cache's entry gets arrays and map */
  struct cb_blob blob;
  struct cb_value_map map;       /* until the image has it */
  struct cb_value_range *ranges; /* of the map, by region */
};

/* What is loaded, found or made, and what is done for loading alone. */
struct cb_load {
  struct cb_image image;
  int device_packs; /* values are moved into place on the device, by the map */
  int filled_count;
  void **filled; /* blocks behind the value arrays' contents, one for each range */
};

/* A matrix that kernels survey and pack: the host has its rows, and packs what takes no more. */
struct cb_there {
  int is_used; /* the plan was made that way, or an entry has the lists; the matrix's columns are remote */
  struct cb_packing_lists *lists; /* of the plan, or that the entry has; until packing is over */
  struct cb_survey survey;
  struct cb_pack_kernels kernels[CB_MOST_PACKED]; /* by region */
  const void **contents; /* of the image's arrays that were packed on the host, by their number; else NULL */
  unsigned char *block;  /* where they lie */
};

struct cb_work {
  struct cb_request request;
  struct cb_kept kept;
  struct cb_matrix matrix;
  struct cb_there there;
  int host_only; /* the device was tried in vain */
  int is_brought; /* the session's hasher has just been asked of the matrix, and may have brought it (device_hash.h) */
  struct cb_made made; /* plan, specialised text, and binary; of a hit without data, the plan alone. Without a text,
                        * if nobody needs one yet: then the operator gets the plan */
  enum cb_tier tier;   /* of that binary */
  struct cb_packed packed;
  struct cb_load load;
  struct cb_checks *checks; /* NULL: none are asked for, or the operator has them */
  cbgen_info info;
  double mark; /* when the stage that runs began */
  struct cb_diag *diag;
};

/* Seconds since the last call. */
double cb_work_lap(struct cb_work *work);

/* Hashes of the pattern and of fixed values: of the first on the device if it lies there. */
enum cb_status cb_work_hash(struct cb_work *work);

/* ---- request.c */

static inline int cb_asks_fixed(const struct cb_request *request) {
  return request->asked.values == CBGEN_VALUES_FIXED;
}
static inline int cb_asks_mutable(const struct cb_request *request) {
  return request->asked.values == CBGEN_VALUES_MUTABLE;
}

static inline int cb_asks_order(const struct cb_request *request) {
  return request->asked.reorder != CBGEN_REORDER_NONE;
}

/* Fills a request whose context and view are set, but for the hashes. `asked` NULL: the defaults. */
enum cb_status cb_request_take(struct cb_request *request, const cbgen_request *asked, struct cb_diag *diag);
void cb_request_release(struct cb_request *request);

/* Brings row pointers and columns to the host, and fixed values, expands them (cb_view_expand), and puts them into the
 * order that is asked for; once. */
enum cb_status cb_request_host(struct cb_request *request, struct cb_diag *diag);

/* ---- compile_new.c */

enum cb_status cb_work_make(struct cb_work *work);

/* Of a family's kernel and arrays that the device packs an entry of the cache would keep nothing but a plan: to write
 * it takes as long as the next process needs to plan again. */
int cb_work_is_made_in_no_time(const struct cb_work *work);

/* Whether the specialised kernel shall multiply from the first product on, if a family's takes `plan_ns`. */
int cb_specialises(const struct cb_work *work, int64_t plan_ns);

/* The image's kernel is a family's: makes it the specialised one, from the image's text. */
enum cb_status cb_work_specialise(struct cb_work *work);

/* The matrix as it multiplies, in canonical form, and the hash of its pattern; once. */
enum cb_status cb_work_canonical(struct cb_work *work);

/* Analyses the matrix by the image's own recipe and packs it: the arrays' contents, and the map, for an image
 * that has its kernel already. CB_ERR_WRONG: the plan is not the image's. */
enum cb_status cb_work_repack(struct cb_work *work);
/* The same by kernels, of a matrix on the device. If that cannot be, all is as before: the entry's data are good. */
enum cb_status cb_work_repack_there(struct cb_work *work);

/* Contents for the value arrays, gathered on the host. */
enum cb_status cb_work_fill(struct cb_work *work);

/* All that was found and made, but for the entry: matrix, made, packed and load. */
void cb_work_release_new(struct cb_work *work);

/* ---- compile_device.c */

/* Whether a plan is made for the matrix on the device, if that succeeds: nothing shall bring it to the host before. */
int cb_work_may_pack_there(const struct cb_work *work);

/* The lists of the plan, where it was made that way, and the kernels that pack its layouts. */
enum cb_status cb_work_find_packers(struct cb_work *work, struct cb_diag *diag);

/* Whether kernels shall pack the arrays of the entry that was found by another plan, because the context wants it so.
 * By itself it is no faster: planning takes as long as the upload. */
int cb_work_packs_sooner(const struct cb_work *work);

/* Puts the section "packing" for the image behind its others, where it is worth it; *bytes, which it refers to, is the
 * caller's to free. */
void cb_work_keep_lists(const struct cb_work *work, struct cb_cache_section *sections, int *count,
                        unsigned char **bytes);

/* Lets kernels pack the arrays by the lists of the entry that was found, where those that the upload would bring are so
 * much longer that there is no doubt, or where the context wants it so. CB_ERR_UNSUPPORTED: nothing has changed. */
enum cb_status cb_work_use_lists(struct cb_work *work);

/* Makes the plan that way if it can; else nothing has changed, and the host shall plan. */
void cb_work_plan_there(struct cb_work *work, const struct cb_options *options);

/* Forgets such a plan, for the host to make another. */
void cb_work_give_up_device(struct cb_work *work, const char *why);

/* Packs on the host what needs no columns and no values; these are the contents of the plan's image. */
enum cb_status cb_work_pack_there(struct cb_work *work);
void cb_work_use_contents(const struct cb_work *work, struct cb_image *image);

/* What the rest is packed from, once the operator is loaded: as long as the work. */
struct cb_pack_source cb_work_pack_source(struct cb_work *work);

void cb_work_release_there(struct cb_work *work);

/* ---- inspect.c */

/* Whether CBGEN_DUMP, CBGEN_OVERRIDE or CBGEN_CHECK=bounds is set: then nothing comes out of the cache or goes
 * into it. */
int cb_inspects(void);

/* Sets what CBGEN_OPTIONS says. CB_ERR_ARGUMENT names the variable. */
enum cb_status cb_environment_options(struct cb_options *options, const struct cbgen_context *context,
                                      struct cb_diag *diag);

enum { CB_INSPECTION_PATH = 4096 };
struct cb_inspection {
  char path[CB_INSPECTION_PATH]; /* of a file with the kernel's text */
  int has_file;
  int is_replaced; /* the text is what the file says */
};

/* Takes the text from CBGEN_OVERRIDE's folder, or writes it to CBGEN_DUMP's. That nothing could be written is a
 * warning; a text that is there and cannot be taken is an error. */
enum cb_status cb_inspect(struct cb_inspection *inspection, const struct cbgen_context *context, struct cb_made *made,
                          struct cb_diag *diag);

/* ---- compile_tuned.c */

/* With the option tune=measure: sets the options' recipe and what else the fastest variant has, which is timed unless
 * the cache knows it; what was planned and compiled for it is kept for cb_work_make. */
enum cb_status cb_work_tune(struct cb_work *work);

/* ---- compile_cached.c */

void cb_work_key(struct cb_work *work);
/* What the key is made from of something that is kept for the same matrix and GPU: `kind` says what. */
struct cb_cache_subject cb_request_subject(const struct cb_request *request, const char *kind);
/* The section "key" of an entry of that subject, whose text the caller releases. */
struct cb_cache_section cb_subject_section(struct cb_text *text, const struct cb_cache_subject *subject);

/* The image from the cache; *hit says whether there is one. A broken cache or entry counts as none, and is logged. */
enum cb_status cb_work_get(struct cb_work *work, int *hit);
/* After a miss, or a hit that another kernel shall replace: waits while another process makes the entry. Then *hit says
 * whether there is one now, which the image is from; else the turn to make it is the work's, until it is put. */
enum cb_status cb_work_take_turn(struct cb_work *work, int *hit);
/* Ends the check of the entry's deferred sections, which are read while they are uploaded. To be called before anything
 * relies on their bytes. CB_ERR_FORMAT: they were wrong, and the entry is of no use. */
enum cb_status cb_work_finish_verification(struct cb_work *work);
/* The entry turned out to be of no use, as the diag says: forgets all that came from it, and removes it. */
void cb_work_forget(struct cb_work *work);
void cb_work_put(struct cb_work *work);
/* Lets go of the entry. */
void cb_work_close(struct cb_work *work);

#endif
