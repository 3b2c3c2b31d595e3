// SPDX-License-Identifier: Apache-2.0
/* What the files of the public interface share. By theme:
 *
 *   context.c    contexts, options, messages, the log     compile.c    from a matrix to an operator
 *   generate.c   the text alone                           operator.c   operators: products, clones, new values
 *   info.c       what operators tell                      save.c       operators as blocks of bytes
 *   solver.c     solvers of systems of equations; batch.c many at once; lp.c linear programs
 *   specialise.c the specialised kernel of an operator that has a family's
 *
 * What cbgen_compile does in between stands in compile.h. Functions that read or write numbers begin with
 * CB_STANDARD_NUMERICS or CB_STANDARD_NUMERICS_OF_ALL (base/numerics.h).
 */
#ifndef CBGEN_RUNTIME_API_API_H
#define CBGEN_RUNTIME_API_API_H

#include "analysis/options.h"
#include "analysis/target.h"
#include "base/numerics.h"
#include "base/status.h"
#include "cbgen.h"
#include "codegen/source.h"
#include "runtime/api/session.h"
#include "runtime/operator/device_pack.h"
#include "runtime/operator/image.h"
#include "runtime/operator/matrix.h"
#include "runtime/operator/operator.h"
#include "runtime/operator/pairs.h"
#include "runtime/operator/update.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#define CB_UNBOUND UINTPTR_MAX /* no stream */

enum cb_keep { CB_KEEP_AUTO, CB_KEEP_ALWAYS, CB_KEEP_NEVER };

enum cb_pack { CB_PACK_AUTO, CB_PACK_HOST, CB_PACK_DEVICE };

enum cb_level { CB_LEVEL_OFF, CB_LEVEL_WARN, CB_LEVEL_INFO };

struct cbgen_context {
  struct cb_options options;
  int has_type, has_form, has_search; /* the caller set these options; else cbgen_compile chooses */
  struct cb_target target; /* of cbgen_generate */
  enum cb_embed embed;
  int device; /* ordinal, or CB_DEVICE_CURRENT */
  enum cb_keep keep;
  enum cb_pack pack; /* where matrices are planned from and packed */
  struct cb_session *session; /* NULL until a GPU was needed */
  char *epilogue;             /* that `options` refer to; NULL: none */
  char *nvrtc_path;           /* NULL: NVRTC is looked for */
  char *cache_directory;      /* NULL: as the environment says */
  char *cache_path;           /* likewise */
  struct cb_memory_source memory; /* of the application; without functions: the driver's */
  int64_t memory_limit;       /* bytes; 0: none */
  int threads;                /* of OpenMP; 0: as the application has set it */
  int64_t cache_limit;        /* 0: likewise */
  struct cb_cache *cache;     /* NULL until it was needed */
  enum cb_level own_log;      /* what is said on standard error while `log` is NULL */
  cbgen_log log;
  void *log_user;
  struct cb_diag diag;
};

/* What the handles of one operator share. */
struct cb_shared {
  atomic_int handles;             /* and copies (cbgen_operator_copy) */
  struct cb_shared *origin;       /* of a copy: whose image and order its own refer to; else NULL */
  struct cb_session *session;
  struct cb_image image;          /* without the arrays' contents; its texts are made by cb_shared_texts */
  struct cb_updater *updater;     /* NULL unless values are mutable */
  const struct cb_packer *packer; /* likewise, and where the updater has a map */
  struct cb_pairs *pairs;         /* NULL unless the option check-symmetry asked for them */
  struct cb_checks *checks;       /* NULL unless CBGEN_CHECK asked for them (checks.h) */
  char key[17];
  char range[2][240]; /* what profilers show of a product: tier and plan (ranges.h) */
  cbgen_info info;
  struct cb_kept_at { /* its entry in the cache; directory NULL: none. Set before the caller has the operator */
    char *directory;
    int64_t limit;
    struct cb_hash key;
  } kept;
  int device_scalars; /* the epilogue is cb_device_scalars */
  struct cb_vector_order { /* at each place, the caller's row or column; NULL: 0, 1, 2, … */
    int32_t *rows, *columns;
  } order;
  pthread_mutex_t specialising;
  pthread_mutex_t texts; /* while they are made; within `specialising` or without */
  struct cb_image special; /* what multiplies instead of the image's kernels, once it is specialised */
  int borrows_special;     /* the copy's refers to the origin's */
  pthread_mutex_t lock; /* of `measured` */
  double measured;      /* seconds; 0: not measured */
};

/* Of the options of solvers, batches and linear programs. CB_ERR_ARGUMENT. */
static inline enum cb_status cb_check_tolerances(double relative, double absolute, struct cb_diag *diag) {
  if (relative >= 0 && absolute >= 0) return CB_OK;
  return cb_fail(diag, CB_ERR_ARGUMENT, "a tolerance is negative or no number");
}

/* The epilogue of operators that take alpha and beta from device memory (cbgen_request.device_scalars): each operation
 * as cbgen_multiply has it with numbers by value. */
extern const char cb_device_scalars[];

/* The image of the kernels that multiply. */
static inline const struct cb_image *cb_shared_image(const struct cb_shared *shared) {
  return shared->special.cubin ? &shared->special : &shared->image;
}

struct cbgen_operator {
  struct cb_shared *shared;
  struct cb_operator *op;
  atomic_uintptr_t stream; /* that its scratch serves; CB_UNBOUND: none yet */
  pthread_mutex_t launching; /* held while a product with scratch puts several launches on the stream */
  pthread_mutex_t lock;      /* of `diag` */
  struct cb_diag diag;
};

/* ---- info.c */

/* Makes the texts of the operator's image, unless they are there. Any thread. CB_ERR_MEMORY. */
enum cb_status cb_shared_texts(struct cb_shared *shared, struct cb_diag *diag);

/* ---- context.c */

/* A line to the context's log, if there is one. */
void cb_log(const struct cbgen_context *context, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same for what should not go unnoticed. */
void cb_warn(const struct cbgen_context *context, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sets an option of the analysis; texts are not the caller's. */
enum cb_status cb_context_option(struct cb_options *options, const char *name, const char *value, struct cb_diag *diag);

/* Whether there is one: for lines that take time to find out. */
int cb_has_log(const struct cbgen_context *context);

/* Driver and GPU, opened when they are first needed. */
enum cb_status cb_context_session(struct cbgen_context *context, struct cb_session **session);

/* The binary of a program's text: from the cache (which may be NULL), or compiled, and kept there. `is_full`: a text
 * that is written anew if its threads lack registers, so that nothing is tried to help it. */
enum cb_status cb_solver_binary(const struct cb_session *session, struct cb_cache *cache, const struct cb_text *text,
                                int is_full, struct cb_compiled *compiled, struct cb_diag *diag);

/* CB_ERR_ARGUMENT: there is no method of that name. */
enum cb_status cb_solver_check_method(const char *method, struct cb_diag *diag);

/* Microseconds of an iteration of the method's short solutions with an operator that is loaded, in the form that it
 * would get; its binary goes to the cache at `kept`. CB_ERR_UNSUPPORTED: there is no such solver, or it ends at
 * once. */
struct cb_tune_whole;
enum cb_status cb_solver_time(double *us, const char *method, const struct cb_tune_whole *whole,
                              struct cb_session *session, const struct cb_kept_at *kept, struct cb_diag *diag);

/* The same with the operator's cache. */
enum cb_status cb_program_binary(const struct cb_shared *shared, const struct cb_text *text, int is_full,
                                 struct cb_compiled *compiled, struct cb_diag *diag);

/* The binary of a program's stages: that which comes with the library, else from the operator's cache, or compiled. */
enum cb_status cb_stages_binary(const struct cb_shared *shared, const struct cb_text *text,
                                struct cb_compiled *compiled, struct cb_diag *diag);

/* The kernels of the plan's fusions, for those products whose operator's own ones are compiled for its matrix; others,
 * and those that no text can be made for, stay NULL: product and stage are two then. `transposed`: NULL where the
 * program has no product with it. */
struct cb_program;
struct cb_stages_plan;
struct cb_fused;
void cb_stages_fuse(struct cb_fused **fused, const struct cbgen_operator *op, const struct cbgen_operator *transposed,
                    const struct cb_program *program, const struct cb_stages_plan *plan);

/* The cache, opened when it is first needed. It may be one that is not on, or NULL. */
struct cb_cache *cb_context_cache(struct cbgen_context *context);

/* ---- operator.c */

/* What an operator is loaded from. */
struct cb_loading {
  struct cb_session *session;
  struct cb_image *image; /* taken over, also on failure (it is empty then) */
  const cbgen_info *info; /* what is known of the stages before */
  /* Ends the check of data that were uploaded unchecked. Called once arrays and map are on the device, and before a
   * kernel reads them; NULL: all data are checked already. */
  enum cb_status (*finish_verification)(void *user, struct cb_diag *diag);
  void *user;
  /* kernels fill the arrays without contents; NULL: none are to be filled but by a packer */
  const struct cb_pack_source *pack;
  /* values that are not among the arrays' contents; packer NULL: all are */
  const struct cb_packer *packer;
  int keep;           /* 1: for renewals, too */
  const void *values; /* NULL: none yet */
  enum cb_type value_type;
  int on_device; /* where they lie, complete */
};

/* Puts it on the session's GPU. Nothing is left behind on failure. */
enum cb_status cb_operator_make(struct cbgen_operator **op, const struct cb_loading *loading,
                                struct cb_diag *diag);

/* Keeps what went wrong with an operator, for its message; any thread. */
cbgen_status cb_operator_report(cbgen_operator *op, enum cb_status status, const struct cb_diag *diag);

/* ---- info.c */

/* The median time of a product, with vectors of its own. */
enum cb_status cb_measure(double *seconds, const struct cb_device *device, const struct cb_operator *op,
                          struct cb_diag *diag);

#endif
