// SPDX-License-Identifier: Apache-2.0
/* What PETSc calls when it loads libcbgen_petsc.so: by -dll_append, PetscDLLibraryAppend, or a program that is linked
 * with it and calls this function itself after PetscInitialize. */
#include "adapter.h"

static PetscBool registered;

static PetscErrorCode finalize(void) {
  PetscFunctionBegin;
  registered = PETSC_FALSE;
  PetscCall(cbp_device_close());
  PetscFunctionReturn(PETSC_SUCCESS);
}

__attribute__((visibility("default"))) PETSC_EXTERN PetscErrorCode
PetscDLLibraryRegister_cbgen_petsc(void) {
  PetscFunctionBegin;
  if (registered) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatRegister(CBP_SEQAIJ, cbp_create_seqaij));
  PetscCall(MatRegister(CBP_MPIAIJ, cbp_create_mpiaij));
  PetscCall(MatRegisterRootName(CBP_AIJ, CBP_SEQAIJ, CBP_MPIAIJ));
  PetscCall(cbp_register_factors());
  PetscCall(KSPRegister(CBP_CG, cbp_create_cg));
  PetscCall(KSPRegister(CBP_BCGS, cbp_create_bcgs));
  PetscCall(PetscRegisterFinalize(finalize));
  registered = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}
