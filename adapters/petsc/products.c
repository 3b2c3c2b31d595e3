// SPDX-License-Identifier: Apache-2.0
/* Products of matrices are the parent type's. PETSc looks for them by the operands' type names, makes the result of the
 * first one's type, and keeps what it found in the result's table of operations for later values; so all three steps
 * run with the operands handed over, and at the end the result becomes one of ours. */
#include "adapter.h"

static const char composed[] = "cbgen_product";

/* The parent's steps of a product, on its result. */
struct steps {
  PetscErrorCode (*symbolic)(Mat);
  PetscErrorCode (*numeric)(Mat);
};

PetscErrorCode cbp_composed(PetscObject object, const char *name, size_t bytes, void **memory) {
  PetscContainer container;
  PetscFunctionBegin;
  PetscCall(PetscObjectQuery(object, name, (PetscObject *)&container));
  if (!container) {
    PetscCall(PetscCalloc(bytes, memory));
    PetscCall(PetscContainerCreate(PETSC_COMM_SELF, &container));
    PetscCall(PetscContainerSetPointer(container, *memory));
    PetscCall(CBP_CONTAINER_SET_DESTROY(container, CBP_DEFAULT_DESTROY));
    PetscCall(PetscObjectCompose(object, name, (PetscObject)container));
    PetscCall(PetscContainerDestroy(&container));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscContainerGetPointer(container, memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode steps_of(Mat C, struct steps **steps) {
  PetscFunctionBegin;
  PetscCall(cbp_composed((PetscObject)C, composed, sizeof **steps, (void **)steps));
  PetscFunctionReturn(PETSC_SUCCESS);
}

struct operands {
  Mat matrices[3];
  PetscBool ours[3];
};

static PetscErrorCode hand_over(Mat C, struct operands *o) {
  PetscFunctionBegin;
  *o = (struct operands){{C->product->A, C->product->B, C->product->C}, {PETSC_FALSE}};
  for (int i = 0; i < 3; i++)
    if (o->matrices[i]) PetscCall(cbp_hand_over(o->matrices[i], &o->ours[i]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode take_back(struct operands *o) {
  PetscFunctionBegin;
  for (int i = 0; i < 3; i++)
    if (o->matrices[i]) PetscCall(cbp_take_back(o->matrices[i], o->ours[i]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The result, where it is a matrix of our parent type. */
static PetscErrorCode adopt(Mat C) {
  PetscBool sequential, parallel;
  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)C, CBP_SEQ_PARENT, &sequential));
  PetscCall(PetscObjectTypeCompare((PetscObject)C, CBP_MPI_PARENT, &parallel));
  if (sequential) PetscCall(cbp_adopt_seqaij(C, CBP_NAMED, NULL));
  if (parallel) PetscCall(cbp_adopt_mpiaij(C, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode numeric(Mat C) {
  struct operands operands;
  struct steps *steps;
  PetscBool c_was_ours;
  PetscErrorCode status;
  PetscFunctionBegin;
  PetscCall(steps_of(C, &steps));
  PetscCall(hand_over(C, &operands));
  PetscCall(cbp_hand_over(C, &c_was_ours));
  C->ops->productnumeric = steps->numeric;
  status = (*steps->numeric)(C);
  if (C->ops->productnumeric) C->ops->productnumeric = numeric; /* it is gone with a product that was cleared */
  PetscCall(cbp_take_back(C, c_was_ours));
  PetscCall(take_back(&operands));
  PetscCall(status);
  if (operands.ours[0] || operands.ours[1]) PetscCall(adopt(C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode symbolic(Mat C) {
  struct operands operands;
  struct steps *steps;
  PetscErrorCode status;
  PetscFunctionBegin;
  PetscCall(steps_of(C, &steps));
  PetscCall(hand_over(C, &operands));
  status = (*steps->symbolic)(C);
  PetscCall(take_back(&operands));
  PetscCall(status);
  PetscCall(steps_of(C, &steps));
  steps->numeric = C->ops->productnumeric;
  if (steps->numeric) C->ops->productnumeric = numeric;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_product_set_from_options(Mat C) {
  struct operands operands;
  struct steps *steps;
  PetscErrorCode status;
  PetscFunctionBegin;
  PetscCall(hand_over(C, &operands));
  status = MatProductSetFromOptions(C);
  PetscCall(take_back(&operands));
  PetscCall(status);
  PetscCall(steps_of(C, &steps));
  steps->symbolic = C->ops->productsymbolic;
  if (steps->symbolic) C->ops->productsymbolic = symbolic;
  PetscFunctionReturn(PETSC_SUCCESS);
}
