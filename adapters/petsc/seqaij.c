// SPDX-License-Identifier: Apache-2.0
/* The sequential type. Ours are the products with vectors; all other operations are the parent type's, and those that
 * ask for its type name, or that change its table of operations, are called with the matrix handed over. */
#include "adapter.h"

#include <string.h>

/* ---- products with vectors */

static PetscErrorCode mult(Mat A, Vec x, Vec y) {
  PetscFunctionBegin;
  PetscCall(cbp_multiply(A, PETSC_FALSE, x, NULL, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode multadd(Mat A, Vec x, Vec y, Vec z) {
  PetscFunctionBegin;
  PetscCall(cbp_multiply(A, PETSC_FALSE, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode multtranspose(Mat A, Vec x, Vec y) {
  PetscFunctionBegin;
  PetscCall(cbp_multiply(A, PETSC_TRUE, x, NULL, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode multtransposeadd(Mat A, Vec x, Vec y, Vec z) {
  PetscFunctionBegin;
  PetscCall(cbp_multiply(A, PETSC_TRUE, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- what the parent type does, with the matrix handed over */

/* Calls `operation` of A's table as it is while A is the parent's; then A is ours again, also after an error. */
#define AS_PARENT(A, operation, ...) \
  do { \
    PetscBool was_ours; \
    PetscErrorCode status = PETSC_SUCCESS; \
    PetscCall(cbp_hand_over(A, &was_ours)); \
    if ((A)->ops->operation) status = (*(A)->ops->operation)(__VA_ARGS__); \
    PetscCall(cbp_take_back(A, was_ours)); \
    PetscCall(status); \
  } while (0)

static PetscErrorCode assemblyend(Mat A, MatAssemblyType type) {
  PetscFunctionBegin;
  AS_PARENT(A, assemblyend, A, type);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode scale(Mat A, PetscScalar a) {
  PetscFunctionBegin;
  AS_PARENT(A, scale, A, a);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode axpy(Mat Y, PetscScalar a, Mat X, MatStructure structure) {
  PetscBool x_was_ours;
  PetscErrorCode status = PETSC_SUCCESS;
  PetscFunctionBegin;
  PetscCall(cbp_hand_over(X, &x_was_ours));
  PetscBool y_was_ours;
  PetscCall(cbp_hand_over(Y, &y_was_ours));
  status = (*Y->ops->axpy)(Y, a, X, structure);
  PetscCall(cbp_take_back(Y, y_was_ours));
  PetscCall(cbp_take_back(X, x_was_ours));
  PetscCall(status);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent type's function replaces the multiplying operations by those of the host, and back; on a block of a
 * parallel matrix, too. */
static PetscErrorCode bindtocpu(Mat A, PetscBool to_cpu);

static PetscErrorCode view(Mat A, PetscViewer viewer) {
  static const char *const names[CBP_DIRECTIONS] = {"", " (transpose)", " (solver)"};
  PetscBool ascii;
  PetscViewerFormat format;
  struct cbp_matrix *m;
  PetscFunctionBegin;
  AS_PARENT(A, view, A, viewer);
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  PetscCall(PetscViewerGetFormat(viewer, &format));
  if (!ascii || format != PETSC_VIEWER_ASCII_INFO_DETAIL) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(cbp_matrix_of(A, &m));
  for (int i = 0; m && i < CBP_DIRECTIONS; i++)
    if (m->direction[i].op)
      PetscCall(PetscViewerASCIIPrintf(viewer, "  cbgen%s: %s\n", names[i], cbgen_operator_plan(m->direction[i].op)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode set_preallocation_coo(Mat A, PetscCount n, PetscInt i[], PetscInt j[]) {
  struct cbp_matrix *m;
  PetscBool was_ours;
  PetscErrorCode status;
  PetscFunctionBegin;
  PetscCall(cbp_matrix_of(A, &m));
  PetscCheck(m && m->set_preallocation_coo, PETSC_COMM_SELF, PETSC_ERR_SUP, "no MatSetPreallocationCOO for this type");
  PetscCall(cbp_hand_over(A, &was_ours));
  status = (*m->set_preallocation_coo)(A, n, i, j);
  PetscCall(cbp_take_back(A, was_ours));
  PetscCall(status);
  PetscCall(cbp_matrix_of(A, &m)); /* the call replaces what is in the matrix */
  if (m) cbp_matrix_forget(m);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode set_values_coo(Mat A, const PetscScalar values[], InsertMode mode) {
  struct cbp_matrix *m;
  PetscBool was_ours;
  PetscErrorCode status;
  PetscFunctionBegin;
  PetscCall(cbp_matrix_of(A, &m));
  PetscCheck(m && m->set_values_coo, PETSC_COMM_SELF, PETSC_ERR_SUP, "no MatSetValuesCOO for this type");
  PetscCall(cbp_hand_over(A, &was_ours));
  status = (*m->set_values_coo)(A, values, mode);
  PetscCall(cbp_take_back(A, was_ours));
  PetscCall(status);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- taking and giving back the operations */

static PetscErrorCode (*parent_destroy)(Mat); /* of matrices without a struct cbp_matrix: see cbp_destroy */
static PetscErrorCode destroy(Mat A);

#define MULTIPLYING(DO) DO(mult, mult) DO(multadd, multadd) DO(multtranspose, multtranspose) \
  DO(multtransposeadd, multtransposeadd)
#define HANDED_OVER(DO) DO(assemblyend, assemblyend) DO(scale, scale) DO(axpy, axpy) DO(view, view) \
  DO(destroy, destroy) DO(duplicate, cbp_duplicate) DO(setfromoptions, cbp_set_from_options) \
  DO(productsetfromoptions, cbp_product_set_from_options)

static PetscErrorCode take_coo(Mat A, struct cbp_matrix *m) {
  PetscErrorCode (*preallocation)(Mat, PetscCount, PetscInt[], PetscInt[]);
  PetscErrorCode (*values)(Mat, const PetscScalar[], InsertMode);
  PetscFunctionBegin;
  PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatSetPreallocationCOO_C", &preallocation));
  PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatSetValuesCOO_C", &values));
  if (preallocation != set_preallocation_coo) m->set_preallocation_coo = preallocation;
  if (values != set_values_coo) m->set_values_coo = values;
  if (preallocation)
    PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatSetPreallocationCOO_C", set_preallocation_coo));
  if (values) PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatSetValuesCOO_C", set_values_coo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode give_coo(Mat A, struct cbp_matrix *m) {
  PetscFunctionBegin;
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatSetPreallocationCOO_C", m->set_preallocation_coo));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatSetValuesCOO_C", m->set_values_coo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void take_products(Mat A, struct cbp_matrix *m) {
  if (!cbp_bound_to_cpu(A)) {
    MULTIPLYING(CBP_TAKE)
  }
  if (A->ops->bindtocpu) {
    CBP_TAKE(bindtocpu, bindtocpu)
  }
}

static void give_products(Mat A, struct cbp_matrix *m) {
  MULTIPLYING(CBP_GIVE)
  CBP_GIVE(bindtocpu, bindtocpu)
}

static PetscErrorCode bindtocpu(Mat A, PetscBool to_cpu) {
  struct cbp_matrix *m;
  PetscBool was_ours;
  PetscErrorCode status;
  PetscFunctionBegin;
  PetscCall(cbp_matrix_of(A, &m));
  PetscCall(cbp_hand_over(A, &was_ours));
  give_products(A, m); /* of a block */
  status = (*A->ops->bindtocpu)(A, to_cpu);
  PetscCall(cbp_take_back(A, was_ours));
  take_products(A, m);
  PetscCall(status);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_give_name(Mat A, struct cbp_matrix *m) {
  PetscFunctionBegin;
  m->our_name = ((PetscObject)A)->type_name;
  ((PetscObject)A)->type_name = m->parent_name;
  m->parent_name = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_take_name(Mat A, struct cbp_matrix *m, const char *name) {
  PetscFunctionBegin;
  if (!m->our_name) PetscCall(PetscStrallocpy(name, &m->our_name));
  m->parent_name = ((PetscObject)A)->type_name;
  ((PetscObject)A)->type_name = m->our_name;
  m->our_name = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_hand_over(Mat A, PetscBool *was_ours) {
  struct cbp_matrix *m;
  PetscFunctionBegin;
  *was_ours = PETSC_FALSE;
  PetscCall(cbp_matrix_of(A, &m));
  if (!m || cbp_is_block(m->kind)) PetscFunctionReturn(PETSC_SUCCESS);
  if (m->kind == CBP_PARALLEL) PetscCall(PetscObjectTypeCompare((PetscObject)A, CBP_MPIAIJ, was_ours));
  else PetscCall(PetscObjectTypeCompare((PetscObject)A, CBP_SEQAIJ, was_ours));
  if (!*was_ours) PetscFunctionReturn(PETSC_SUCCESS); /* it is handed over already */
  if (m->kind == CBP_PARALLEL) {
    PetscCall(cbp_hand_over_mpiaij(A, m));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  give_products(A, m);
  HANDED_OVER(CBP_GIVE)
  PetscCall(give_coo(A, m));
  PetscCall(cbp_give_name(A, m));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_take_back(Mat A, PetscBool was_ours) {
  struct cbp_matrix *m;
  PetscFunctionBegin;
  if (!was_ours) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(cbp_matrix_of(A, &m));
  if (!m) { /* the parent's function put the inside of another matrix into it (MatHeaderReplace) */
    PetscBool parallel;
    PetscCall(PetscObjectTypeCompare((PetscObject)A, CBP_MPI_PARENT, &parallel));
    if (parallel) PetscCall(cbp_adopt_mpiaij(A, NULL));
    else PetscCall(cbp_adopt_seqaij(A, CBP_NAMED, NULL));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (m->kind == CBP_PARALLEL) {
    PetscCall(cbp_take_back_mpiaij(A, m));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  take_products(A, m);
  HANDED_OVER(CBP_TAKE)
  PetscCall(take_coo(A, m));
  PetscCall(cbp_take_name(A, m, CBP_SEQAIJ));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- from the parent type to ours, and back */

static const char *const to_ours[] = {"MatConvert_seqaij_seqaijcbgen_C", "MatConvert_seqaijcusparse_seqaijcbgen_C",
                                      "MatConvert_mpiaij_mpiaijcbgen_C", "MatConvert_mpiaijcusparse_mpiaijcbgen_C"};
static const char *const from_ours[] = {"MatConvert_seqaijcbgen_seqaij_C", "MatConvert_seqaijcbgen_seqaijcusparse_C",
                                        "MatConvert_mpiaijcbgen_mpiaij_C", "MatConvert_mpiaijcbgen_mpiaijcusparse_C"};

/* Products of a matrix of ours and another are found by these names, on either of the two. */
static const char *const products[] = {
    "MatProductSetFromOptions_seqaijcbgen_seqaij_C",         "MatProductSetFromOptions_seqaij_seqaijcbgen_C",
    "MatProductSetFromOptions_seqaijcbgen_seqaijcusparse_C", "MatProductSetFromOptions_seqaijcusparse_seqaijcbgen_C",
    "MatProductSetFromOptions_seqaijcbgen_seqdense_C",       "MatProductSetFromOptions_seqaijcbgen_seqdensecuda_C",
    "MatProductSetFromOptions_mpiaijcbgen_mpiaij_C",         "MatProductSetFromOptions_mpiaij_mpiaijcbgen_C",
    "MatProductSetFromOptions_mpiaijcbgen_mpiaijcusparse_C", "MatProductSetFromOptions_mpiaijcusparse_mpiaijcbgen_C",
    "MatProductSetFromOptions_mpiaijcbgen_mpidense_C",       "MatProductSetFromOptions_mpiaijcbgen_mpidensecuda_C",
};

PetscErrorCode cbp_compose(Mat A, PetscBool on) {
  PetscObject const object = (PetscObject)A;
  PetscFunctionBegin;
  for (size_t i = 0; i < PETSC_STATIC_ARRAY_LENGTH(to_ours); i++)
    PetscCall(PetscObjectComposeFunction(object, to_ours[i], on ? cbp_convert_to_ours : NULL));
  for (size_t i = 0; i < PETSC_STATIC_ARRAY_LENGTH(from_ours); i++)
    PetscCall(PetscObjectComposeFunction(object, from_ours[i], on ? cbp_convert_from_ours : NULL));
  for (size_t i = 0; i < PETSC_STATIC_ARRAY_LENGTH(products); i++)
    PetscCall(PetscObjectComposeFunction(object, products[i], on ? cbp_product_set_from_options : NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_adopt_seqaij(Mat A, cbp_kind kind, const struct cbp_options *options) {
  struct cbp_matrix *m;
  PetscFunctionBegin;
  PetscCall(cbp_matrix_of(A, &m));
  if (!m) PetscCall(cbp_matrix_attach(A, kind, &m));
  if (options) m->options = *options;
  else PetscCall(cbp_options_read(A, &m->options));
  if (cbp_is_block(kind)) {
    take_products(A, m);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(cbp_take_back(A, PETSC_TRUE));
  PetscCall(cbp_compose(A, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_release_block(Mat A) {
  struct cbp_matrix *m;
  PetscFunctionBegin;
  PetscCall(cbp_matrix_of(A, &m));
  if (!m) PetscFunctionReturn(PETSC_SUCCESS);
  give_products(A, m);
  PetscCall(cbp_matrix_detach(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_destroy(Mat A, PetscErrorCode (*parent)(Mat)) {
  struct cbp_matrix *m;
  PetscBool was_ours;
  PetscFunctionBegin;
  PetscCall(cbp_matrix_of(A, &m));
  if (m) {
    parent = m->parent.destroy;
    PetscCall(cbp_hand_over(A, &was_ours));
    PetscCall(cbp_compose(A, PETSC_FALSE));
    PetscCall(cbp_matrix_detach(A));
  }
  PetscCall((*parent)(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode destroy(Mat A) {
  PetscFunctionBegin;
  PetscCall(cbp_destroy(A, parent_destroy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_create_seqaij(Mat A) {
  PetscFunctionBegin;
  PetscCall(MatSetType(A, CBP_SEQ_PARENT));
  parent_destroy = A->ops->destroy;
  PetscCall(cbp_adopt_seqaij(A, CBP_NAMED, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- what both types share */

PetscErrorCode cbp_set_from_options(Mat A, cbp_option_items items) {
  struct cbp_matrix *m;
  PetscBool was_ours;
  PetscErrorCode status = PETSC_SUCCESS;
  PetscFunctionBegin;
  PetscCall(cbp_hand_over(A, &was_ours));
  if (A->ops->setfromoptions) status = (*A->ops->setfromoptions)(A, items);
  PetscCall(cbp_take_back(A, was_ours));
  PetscCall(status);
  PetscCall(cbp_matrix_of(A, &m));
  if (m) PetscCall(cbp_options_read(A, &m->options));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_duplicate(Mat A, MatDuplicateOption option, Mat *copy) {
  struct cbp_matrix *m;
  PetscFunctionBegin;
  AS_PARENT(A, duplicate, A, option, copy);
  PetscCall(cbp_matrix_of(A, &m));
  if (m->kind == CBP_PARALLEL) PetscCall(cbp_adopt_mpiaij(*copy, &m->options));
  else PetscCall(cbp_adopt_seqaij(*copy, CBP_NAMED, &m->options));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const char *parent_of(Mat A) {
  PetscBool parallel = PETSC_FALSE;
  (void)PetscStrbeginswith(((PetscObject)A)->type_name, MATMPIAIJ, &parallel);
  return parallel ? CBP_MPI_PARENT : CBP_SEQ_PARENT;
}

PetscErrorCode cbp_convert_to_ours(Mat A, MatType type, MatReuse reuse, Mat *B) {
  const char *const parent = parent_of(A);
  PetscFunctionBegin;
  (void)type;
  if (reuse == MAT_REUSE_MATRIX) {
    PetscCall(MatCopy(A, *B, SAME_NONZERO_PATTERN));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatConvert(A, parent, reuse, B));
  if (!strcmp(parent, CBP_MPI_PARENT)) PetscCall(cbp_adopt_mpiaij(*B, NULL));
  else PetscCall(cbp_adopt_seqaij(*B, CBP_NAMED, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A is handed over, for good. */
static PetscErrorCode release(Mat A) {
  struct cbp_matrix *m;
  PetscFunctionBegin;
  PetscCall(cbp_matrix_of(A, &m));
  if (m->kind == CBP_PARALLEL) {
    Mat blocks[2];
    PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], NULL));
    for (int i = 0; i < 2; i++) PetscCall(cbp_release_block(blocks[i]));
  }
  PetscCall(cbp_compose(A, PETSC_FALSE));
  PetscCall(cbp_matrix_detach(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_convert_from_ours(Mat A, MatType type, MatReuse reuse, Mat *B) {
  PetscBool was_ours;
  PetscErrorCode status;
  PetscFunctionBegin;
  PetscCall(cbp_hand_over(A, &was_ours));
  if (reuse == MAT_INPLACE_MATRIX) {
    PetscCall(release(A));
    PetscCall(MatConvert(A, type, reuse, B));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  status = MatConvert(A, type, reuse, B);
  PetscCall(cbp_take_back(A, was_ours));
  PetscCall(status);
  PetscFunctionReturn(PETSC_SUCCESS);
}
