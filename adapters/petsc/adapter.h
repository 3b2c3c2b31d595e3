// SPDX-License-Identifier: Apache-2.0
/* The PETSc plug-in: matrix types seqaijcbgen, mpiaijcbgen and aijcbgen, solver types cbgencg and cbgenbcgs. It uses
 * the public interface of cbgen (cbgen.h) and PETSc's, with the headers that PETSc installs for those who add types.
 *
 *   plugin.c      what PETSc calls when it loads the library: registers the types
 *   seqaij.c      the sequential type: which operations are ours, and how the parent type gets the others
 *   mpiaij.c      the parallel type, whose two local blocks are each an operator
 *   products.c    products of matrices (MatMatMult, MatPtAP, …), which are the parent type's
 *   factors.c     factorisations (PCILU, PCLU, …), which are the parent type's
 *   operator.c    a local matrix as an operator of cbgen: made, renewed, multiplied with
 *   device.c      the CUDA driver: memory that host vectors are staged in, copies, a stream beside PETSc's
 *   krylov.c      solvers whose iterations all run in one kernel, and what is done where they cannot
 *
 * A matrix of ours is one of its parent type (aijcusparse where PETSc has CUDA, else aij) of which some operations are
 * replaced: those that multiply. What cbgen needs beside the parent's data hangs on the matrix as a composed object, a
 * `struct cbp_matrix`. The parent type's code asks in many places whether a matrix has exactly its type name. So for
 * the time in which it works on one, cbp_hand_over gives the matrix its name and operations back, and cbp_take_back
 * takes them again.
 *
 * The operator is made by the first product, not by assembly: a matrix that is never multiplied costs nothing. It is
 * kept while the pattern stays (MatGetNonzeroState); new values are handed on by cbgen_update_values. */
#ifndef CBGEN_PETSC_ADAPTER_H
#define CBGEN_PETSC_ADAPTER_H

#include <petsc/private/matimpl.h>
#include <petscksp.h>

#include "cbgen.h"

#if PetscDefined(USE_COMPLEX)
#error "cbgen multiplies real matrices: this PETSc is configured with complex scalars"
#endif
#if !PetscDefined(USE_REAL_DOUBLE) && !PetscDefined(USE_REAL_SINGLE)
#error "cbgen multiplies in double and single precision: this PETSc is configured with another"
#endif

/* What differs between PETSc's versions, from 3.18 on. */
#if PETSC_VERSION_LT(3, 19, 0)
#define PETSC_SUCCESS 0
#endif
#if PETSC_VERSION_LT(3, 23, 0)
typedef PetscOptionItems *cbp_option_items;
#define CBP_CONTAINER_SET_DESTROY PetscContainerSetUserDestroy
#define CBP_DEFAULT_DESTROY PetscContainerUserDestroyDefault
#else
typedef PetscOptionItems cbp_option_items;
#define CBP_CONTAINER_SET_DESTROY PetscContainerSetCtxDestroy
#define CBP_DEFAULT_DESTROY PetscCtxDestroyDefault
#endif

#define CBP_AIJ "aijcbgen"
#define CBP_SEQAIJ "seqaijcbgen"
#define CBP_MPIAIJ "mpiaijcbgen"
#define CBP_CG "cbgencg"
#define CBP_BCGS "cbgenbcgs"

#if PetscDefined(HAVE_CUDA)
#define CBP_SEQ_PARENT MATSEQAIJCUSPARSE
#define CBP_MPI_PARENT MATMPIAIJCUSPARSE
#else
#define CBP_SEQ_PARENT MATSEQAIJ
#define CBP_MPI_PARENT MATMPIAIJ
#endif

/* MatBindToCPU was called for it. PETSc's MatBoundToCPU says so of every matrix where PETSc knows no device. */
static inline PetscBool cbp_bound_to_cpu(Mat A) {
#if PetscDefined(HAVE_DEVICE)
  return A->boundtocpu;
#else
  (void)A;
  return PETSC_FALSE;
#endif
}

/* ---- device.c */

/* Raises a PETSc error with cbgen's message, unless the status is CBGEN_OK. */
#define CBP_CHECK(status, message) \
  do { \
    const cbgen_status cbp_status = (status); \
    PetscCheck(!cbp_status, PETSC_COMM_SELF, cbp_error_code(cbp_status), "cbgen: %s", (message)); \
  } while (0)
int cbp_error_code(cbgen_status status);

/* The stream that PETSc's own kernels run on; NULL, the default stream, where PETSc has no CUDA. */
void *cbp_stream(void);

/* Opens the driver at the first call and chooses the GPU for the rest of the process: the one whose CUDA context is
 * current, else number `device`, or where that is negative the rank on this node modulo the GPUs. *device_name is what
 * cbgen's option "device" takes then. Where there is no driver that is "current": cbgen says what is missing. */
PetscErrorCode cbp_device_open(PetscInt device, const char **device_name);

/* The GPU's CUDA context is current in between. */
PetscErrorCode cbp_device_enter(void);
PetscErrorCode cbp_device_leave(void);

typedef enum { CBP_STAGE_X, CBP_STAGE_Y, CBP_STAGES } cbp_stage;

/* At least `bytes` of device memory of the process, which the next call for the same stage may move; what was in it
 * is lost. Between enter and leave, as all of these. */
PetscErrorCode cbp_device_stage(cbp_stage stage, size_t bytes, void **memory);
PetscErrorCode cbp_device_allocate(size_t bytes, void **memory);
PetscErrorCode cbp_device_free(void *memory); /* NULL is accepted */
/* The host may reuse what was put on return; what is taken is waited for; copies are on the device. */
PetscErrorCode cbp_device_put(void *to, const void *from, size_t bytes, void *stream);
PetscErrorCode cbp_device_take(void *to, const void *from, size_t bytes, void *stream);
PetscErrorCode cbp_device_copy(void *to, const void *from, size_t bytes, void *stream);

/* A stream of the plug-in's own, for work that starts after what is in PETSc's stream now. It is a non-blocking one:
 * PETSc's is the legacy default stream, and what an MPI copies between GPUs on a blocking stream waits for that. */
PetscErrorCode cbp_device_fork(void **stream);
PetscErrorCode cbp_device_join(void); /* what PETSc's stream gets from now on waits for that work */
PetscErrorCode cbp_device_close(void); /* at PetscFinalize */

/* A vector's local part as a device pointer, between enter and leave. One on the host is staged, by copies on the
 * stream. */
struct cbp_vector {
  Vec vector;
  enum { CBP_READ, CBP_WRITE, CBP_READ_WRITE } access;
  PetscBool cuda, host; /* the arrays are those of VECCUDA; the array lies on the host, and `pointer` in the stage */
  PetscScalar *array;
  void *pointer, *stream;
  size_t bytes;
};
PetscErrorCode cbp_vector_open(struct cbp_vector *v, Vec vector, int access, cbp_stage stage, void *stream);
PetscErrorCode cbp_vector_close(struct cbp_vector *v); /* what was written is in the vector then */

/* ---- operator.c */

struct cbp_options {
  char recipe[64], cache[PETSC_MAX_PATH_LEN], more[1024]; /* "": as cbgen has it */
  PetscInt expected_products, device;
  PetscInt symmetric_from; /* entries; below 0: nothing is promised */
  PetscEnum values, specialise; /* cbgen_values, cbgen_specialise */
  PetscBool overlap;
};

/* The options of a matrix, under its prefix. `items` NULL: outside MatSetFromOptions. */
PetscErrorCode cbp_options_read(Mat A, struct cbp_options *options);

/* An operator of A or of its transpose, and of which state of A it is. */
struct cbp_direction {
  cbgen_operator *op; /* NULL: none was made yet, or A has no entries */
  PetscBool made, adds; /* adds: its form is y += A x */
  PetscBool symmetric;  /* it was compiled with the promise that A is: of new values that must be known, too */
  const void *data; /* the matrix's, which another matrix's may replace */
  PetscObjectState pattern, values;
  PetscInt entries;
  PetscInt count; /* how many operators there were: a solver belongs to one */
  const char *method; /* what it is for: cbgen_request.solver; NULL: products */
};

/* Products with A and its transpose, and A in solutions by one kernel, which may want another recipe, and all of A
 * where products take half. Where two would have the same plan, they share one. */
typedef enum { CBP_FORWARD, CBP_TRANSPOSED, CBP_IN_SOLVER, CBP_DIRECTIONS } cbp_which;

typedef enum { CBP_NAMED, CBP_DIAGONAL, CBP_OFF_DIAGONAL, CBP_PARALLEL } cbp_kind;

static inline PetscBool cbp_is_block(cbp_kind kind) {
  return kind == CBP_DIAGONAL || kind == CBP_OFF_DIAGONAL ? PETSC_TRUE : PETSC_FALSE;
}

/* What hangs on a matrix. */
struct cbp_matrix {
  cbp_kind kind; /* a seqaijcbgen; a block of a parallel matrix, which keeps its parent's name; a mpiaijcbgen */
  char *our_name, *parent_name; /* the one that the matrix does not have now */
  struct _MatOps parent; /* operations of the parent's that ours replace; others are NULL */
  PetscErrorCode (*set_preallocation_coo)(Mat, PetscCount, PetscInt[], PetscInt[]);
  PetscErrorCode (*set_values_coo)(Mat, const PetscScalar[], InsertMode);
  struct cbp_options options;
  cbgen_context *context;
  PetscBool context_adds; /* the context's option "form" is "add" */
  struct cbp_direction direction[CBP_DIRECTIONS];
  PetscObjectState blocks_seen;      /* of a parallel matrix: its state when its blocks' were last compared */
  PetscBool whole_is_symmetric;      /* of a diagonal block: the parallel matrix is known to be */
  /* While a parallel matrix is multiplied: of its diagonal block, whose product may run on when it returns, and then
   * has these vectors; of its off-diagonal block, whose product adds to what that one gives */
  PetscBool may_run_on, runs_on;
  struct cbp_vector x, y;
  struct cbp_matrix *diagonal;
};

/* *m is the matrix's, NULL where it has none. */
PetscErrorCode cbp_matrix_of(Mat A, struct cbp_matrix **m);
PetscErrorCode cbp_matrix_attach(Mat A, cbp_kind kind, struct cbp_matrix **m);
PetscErrorCode cbp_matrix_detach(Mat A);
void cbp_matrix_forget(struct cbp_matrix *m); /* its operators: the pattern is another */

/* An operator of a sequential matrix with its values of now; *op NULL: it has no entries. `method`: for CBP_IN_SOLVER,
 * one name for each; else NULL. */
PetscErrorCode cbp_operator_of(Mat A, struct cbp_matrix *m, cbp_which which, const char *method, cbgen_operator **op);

/* z = A x + y (or with the transpose); y may be z, or NULL for z = A x. */
PetscErrorCode cbp_multiply(Mat A, PetscBool transpose, Vec x, Vec y, Vec z);
PetscErrorCode cbp_multiply_end(struct cbp_matrix *m); /* of one that runs on, if it does */

/* ---- seqaij.c, mpiaij.c, products.c, factors.c */

PetscErrorCode cbp_create_seqaij(Mat A);
PetscErrorCode cbp_create_mpiaij(Mat A);

/* A, of the parent type, becomes one of ours; `kind` a block's: without the name. */
PetscErrorCode cbp_adopt_seqaij(Mat A, cbp_kind kind, const struct cbp_options *options);
PetscErrorCode cbp_adopt_mpiaij(Mat A, const struct cbp_options *options); /* NULL: those of its prefix; as above */
PetscErrorCode cbp_release_block(Mat A); /* of the parent type without a trace of ours, if it was a block of ours */

/* The functions by which PETSc finds conversions and products of A's type: composed with A, or taken off. */
PetscErrorCode cbp_compose(Mat A, PetscBool on);

/* An operation of A's table becomes ours, or the parent's again. Only what is not ours is remembered as the parent's:
 * its code changes the table while it works on the matrix. */
#define CBP_TAKE(operation, ours) \
  if (A->ops->operation != (ours)) { \
    m->parent.operation = A->ops->operation; \
    A->ops->operation = (ours); \
  }
#define CBP_GIVE(operation, ours) \
  if (A->ops->operation == (ours)) A->ops->operation = m->parent.operation;

/* A gets its parent's type name, or ours. Strings stay where they are: programs keep what MatGetType gave them. */
PetscErrorCode cbp_give_name(Mat A, struct cbp_matrix *m);
PetscErrorCode cbp_take_name(Mat A, struct cbp_matrix *m, const char *name);

/* Destroys A as its parent type does. `parent` is the function of any matrix of that type: MatHeaderMerge destroys the
 * inside of a matrix whose composed objects it has put aside, so that there is no struct cbp_matrix. */
PetscErrorCode cbp_destroy(Mat A, PetscErrorCode (*parent)(Mat));

/* Until it is taken back, a matrix of ours is one of its parent type; others stay as they are. */
PetscErrorCode cbp_hand_over(Mat A, PetscBool *was_ours);
PetscErrorCode cbp_take_back(Mat A, PetscBool was_ours);

PetscErrorCode cbp_hand_over_mpiaij(Mat A, struct cbp_matrix *m);
PetscErrorCode cbp_take_back_mpiaij(Mat A, struct cbp_matrix *m);

PetscErrorCode cbp_duplicate(Mat A, MatDuplicateOption option, Mat *copy);
PetscErrorCode cbp_set_from_options(Mat A, cbp_option_items items);
PetscErrorCode cbp_convert_to_ours(Mat A, MatType type, MatReuse reuse, Mat *B);
PetscErrorCode cbp_convert_from_ours(Mat A, MatType type, MatReuse reuse, Mat *B);
PetscErrorCode cbp_product_set_from_options(Mat C);

/* Memory that hangs on an object under a name, and goes with it: zeros at first. */
PetscErrorCode cbp_composed(PetscObject object, const char *name, size_t bytes, void **memory);

PetscErrorCode cbp_register_factors(void);

/* ---- krylov.c */

PetscErrorCode cbp_create_cg(KSP ksp);
PetscErrorCode cbp_create_bcgs(KSP ksp);

#endif
