// SPDX-License-Identifier: Apache-2.0
/* The parallel type. The parent type's product calls those of the two local blocks, with the exchange of halo values
 * begun before the first and ended after it; so the blocks are made ours, and nothing else has to be. They keep the
 * parent's type name, for which its code asks. */
#include "adapter.h"

struct product {
  struct _MatOps *parent;
  struct cbp_matrix *blocks[2]; /* diagonal, off-diagonal */
};

/* Makes the operators that a product takes, before the exchange of halo values begins: an error in the middle of it
 * would leave it open. New values of a block may only show in the state of the whole matrix: the parent's functions
 * work on the blocks without PETSc's public calls here and there. */
static PetscErrorCode begin(Mat A, PetscBool transpose, struct product *p) {
  struct cbp_matrix *m;
  cbgen_operator *op;
  PetscObjectState state;
  PetscBool is_known, is_symmetric;
  Mat blocks[2];
  PetscFunctionBegin;
  PetscCall(cbp_matrix_of(A, &m));
  PetscCheck(m, PETSC_COMM_SELF, PETSC_ERR_PLIB, "the matrix has lost what cbgen composed with it");
  p->parent = &m->parent;
  PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], NULL));
  PetscCall(MatIsSymmetricKnown(A, &is_known, &is_symmetric));
  for (int i = 0; i < 2; i++) {
    PetscCall(cbp_adopt_seqaij(blocks[i], i ? CBP_OFF_DIAGONAL : CBP_DIAGONAL, &m->options));
    PetscCall(cbp_matrix_of(blocks[i], &p->blocks[i]));
    p->blocks[i]->whole_is_symmetric = !i && is_known && is_symmetric ? PETSC_TRUE : PETSC_FALSE;
    if (m->blocks_seen != state)
      for (int direction = 0; direction < CBP_DIRECTIONS; direction++) p->blocks[i]->direction[direction].values = -1;
    PetscCall(cbp_operator_of(blocks[i], p->blocks[i], transpose ? CBP_TRANSPOSED : CBP_FORWARD, NULL, &op));
  }
  m->blocks_seen = state;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The diagonal block's product runs on while the parent's code waits for halo values. */
static PetscErrorCode begin_beside(Mat A, struct product *p) {
  PetscFunctionBegin;
  PetscCall(begin(A, PETSC_FALSE, p));
  p->blocks[0]->may_run_on = p->blocks[0]->options.overlap;
  p->blocks[1]->diagonal = p->blocks[0];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode end_beside(struct product *p, PetscErrorCode status) {
  PetscFunctionBegin;
  p->blocks[0]->may_run_on = PETSC_FALSE;
  p->blocks[1]->diagonal = NULL;
  PetscCall(cbp_multiply_end(p->blocks[0]));
  PetscCall(status);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode mult(Mat A, Vec x, Vec y) {
  struct product p;
  PetscFunctionBegin;
  PetscCall(begin_beside(A, &p));
  PetscCall(end_beside(&p, (*p.parent->mult)(A, x, y)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode multadd(Mat A, Vec x, Vec y, Vec z) {
  struct product p;
  PetscFunctionBegin;
  PetscCall(begin_beside(A, &p));
  PetscCall(end_beside(&p, (*p.parent->multadd)(A, x, y, z)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc adds up what the blocks give before it goes to other ranks: nothing runs beside the exchange. */
static PetscErrorCode multtranspose(Mat A, Vec x, Vec y) {
  struct product p;
  PetscFunctionBegin;
  PetscCall(begin(A, PETSC_TRUE, &p));
  PetscCall((*p.parent->multtranspose)(A, x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode multtransposeadd(Mat A, Vec x, Vec y, Vec z) {
  struct product p;
  PetscFunctionBegin;
  PetscCall(begin(A, PETSC_TRUE, &p));
  PetscCall((*p.parent->multtransposeadd)(A, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode (*parent_destroy)(Mat); /* of matrices without a struct cbp_matrix: see cbp_destroy */

static PetscErrorCode destroy(Mat A) {
  PetscFunctionBegin;
  PetscCall(cbp_destroy(A, parent_destroy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define OURS(DO) DO(mult, mult) DO(multadd, multadd) DO(multtranspose, multtranspose) \
  DO(multtransposeadd, multtransposeadd) DO(destroy, destroy) DO(duplicate, cbp_duplicate) \
  DO(setfromoptions, cbp_set_from_options) DO(productsetfromoptions, cbp_product_set_from_options)

PetscErrorCode cbp_hand_over_mpiaij(Mat A, struct cbp_matrix *m) {
  PetscFunctionBegin;
  OURS(CBP_GIVE)
  PetscCall(cbp_give_name(A, m));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_take_back_mpiaij(Mat A, struct cbp_matrix *m) {
  PetscFunctionBegin;
  OURS(CBP_TAKE)
  PetscCall(cbp_take_name(A, m, CBP_MPIAIJ));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_adopt_mpiaij(Mat A, const struct cbp_options *options) {
  struct cbp_matrix *m;
  PetscFunctionBegin;
  PetscCall(cbp_matrix_of(A, &m));
  if (!m) PetscCall(cbp_matrix_attach(A, CBP_PARALLEL, &m));
  if (options) m->options = *options;
  else PetscCall(cbp_options_read(A, &m->options));
  PetscCall(cbp_take_back_mpiaij(A, m));
  PetscCall(cbp_compose(A, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_create_mpiaij(Mat A) {
  PetscFunctionBegin;
  PetscCall(MatSetType(A, CBP_MPI_PARENT));
  parent_destroy = A->ops->destroy;
  PetscCall(cbp_adopt_mpiaij(A, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}
