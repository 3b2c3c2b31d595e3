// SPDX-License-Identifier: Apache-2.0
/* A sequential matrix as an operator of cbgen: compiled at the first product, renewed when values changed, compiled
 * anew when the pattern did. */
#include "adapter.h"

#include <string.h>

static const char *const values_names[] = {"stored", "mutable", "fixed", "cbgen_values", "", NULL};
static const char *const specialise_names[] = {"auto", "now", "never", "cbgen_specialise", "", NULL};
static const char composed[] = "cbgen_matrix";

/* 32 MiB of doubles. Half is stored of a matrix beyond L2, where a layout can; of smaller ones a promise only costs, as
 * the host plans and packs them. */
enum { SYMMETRIC_FROM = 4 << 20 };

PetscErrorCode cbp_options_read(Mat A, struct cbp_options *options) {
  PetscFunctionBegin;
  PetscObjectOptionsBegin((PetscObject)A);
  PetscCall(PetscOptionsString("-mat_cbgen_recipe", "how cbgen stores the matrix", "cbgen help recipes",
                               *options->recipe ? options->recipe : "auto", options->recipe, sizeof options->recipe,
                               NULL));
  PetscCall(PetscOptionsInt("-mat_cbgen_expected_products", "set-up that so many products cannot repay is left out",
                            "cbgen_request", options->expected_products, &options->expected_products, NULL));
  PetscCall(PetscOptionsInt("-mat_cbgen_symmetric_from",
                            "entries from which on what PETSc knows of symmetry is promised; -1: never", "cbgen_request",
                            options->symmetric_from, &options->symmetric_from, NULL));
  PetscCall(PetscOptionsEnum("-mat_cbgen_values", "whether values will be renewed", "cbgen_request", values_names,
                             options->values, &options->values, NULL));
  PetscCall(PetscOptionsEnum("-mat_cbgen_specialise", "when the matrix gets a kernel of its own", "cbgen_request",
                             specialise_names, options->specialise, &options->specialise, NULL));
  PetscCall(PetscOptionsString("-mat_cbgen_cache", "directory of the kept kernels; none: no cache", "cbgen_set",
                               options->cache, options->cache, sizeof options->cache, NULL));
  PetscCall(PetscOptionsInt("-mat_cbgen_device", "number of the GPU where the process has none yet", "cbgen_set",
                            options->device, &options->device, NULL));
  PetscCall(PetscOptionsBool("-mat_cbgen_overlap", "halo values come while the diagonal block is multiplied",
                             "MatMult", options->overlap, &options->overlap, NULL));
  PetscCall(PetscOptionsString("-mat_cbgen_options", "further options of cbgen: NAME=VALUE,…", "cbgen help options",
                               options->more, options->more, sizeof options->more, NULL));
  PetscOptionsEnd();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- what hangs on a matrix */

static PetscErrorCode free_matrix(struct cbp_matrix *m) {
  PetscFunctionBegin;
  cbp_matrix_forget(m);
  cbgen_context_destroy(m->context);
  PetscCall(PetscFree(m->our_name));
  PetscCall(PetscFree(m->parent_name));
  PetscCall(PetscFree(m));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PETSC_VERSION_LT(3, 23, 0)
static PetscErrorCode destroy_matrix(void *m) {
  PetscFunctionBegin;
  PetscCall(free_matrix(m));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#else
static PetscErrorCode destroy_matrix(void **m) {
  PetscFunctionBegin;
  PetscCall(free_matrix(*m));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

PetscErrorCode cbp_matrix_of(Mat A, struct cbp_matrix **m) {
  PetscObject container;
  PetscFunctionBegin;
  *m = NULL;
  PetscCall(PetscObjectQuery((PetscObject)A, composed, &container));
  if (container) PetscCall(PetscContainerGetPointer((PetscContainer)container, (void **)m));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_matrix_attach(Mat A, cbp_kind kind, struct cbp_matrix **m) {
  PetscContainer container;
  PetscFunctionBegin;
  PetscCall(PetscNew(m));
  (*m)->kind = kind;
  (*m)->options = (struct cbp_options){.symmetric_from = SYMMETRIC_FROM, .values = (PetscEnum)CBGEN_VALUES_MUTABLE,
                                       .device = -1, .overlap = PETSC_TRUE};
  PetscCall(PetscContainerCreate(PETSC_COMM_SELF, &container));
  PetscCall(PetscContainerSetPointer(container, *m));
  PetscCall(CBP_CONTAINER_SET_DESTROY(container, destroy_matrix));
  PetscCall(PetscObjectCompose((PetscObject)A, composed, (PetscObject)container));
  PetscCall(PetscContainerDestroy(&container));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_matrix_detach(Mat A) {
  PetscFunctionBegin;
  PetscCall(PetscObjectCompose((PetscObject)A, composed, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

void cbp_matrix_forget(struct cbp_matrix *m) {
  for (int i = 0; i < CBP_DIRECTIONS; i++) {
    cbgen_operator_free(m->direction[i].op);
    m->direction[i].op = NULL;
    m->direction[i].made = PETSC_FALSE;
  }
}

/* ---- the context, with the matrix's options */

static void log_line(void *user, const char *line) {
  (void)user;
  (void)PetscInfo(NULL, "cbgen: %s\n", line);
}

/* NAME=VALUE,NAME=VALUE: changes the text. */
static PetscErrorCode set_each(cbgen_context *context, char *text) {
  PetscFunctionBegin;
  for (char *rest = text; rest && *rest;) {
    char *const name = rest, *const comma = strchr(rest, ',');
    if (comma) *comma = 0;
    rest = comma ? comma + 1 : NULL;
    char *const equals = strchr(name, '=');
    PetscCheck(equals, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "-mat_cbgen_options: '%s' is no NAME=VALUE", name);
    *equals = 0;
    CBP_CHECK(cbgen_set(context, name, equals + 1), cbgen_message(context));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode set_options(cbgen_context *context, const struct cbp_options *options) {
  const char *device;
  char more[sizeof options->more];
  PetscFunctionBegin;
  PetscCall(cbp_device_open(options->device, &device));
  CBP_CHECK(cbgen_set_log(context, log_line, NULL), cbgen_message(context));
  CBP_CHECK(cbgen_set(context, "device", device), cbgen_message(context));
  if (*options->recipe) CBP_CHECK(cbgen_set(context, "recipe", options->recipe), cbgen_message(context));
  if (*options->cache)
    CBP_CHECK(cbgen_set(context, "cache", strcmp(options->cache, "none") ? options->cache : ""),
              cbgen_message(context));
  PetscCall(PetscStrncpy(more, options->more, sizeof more));
  PetscCall(set_each(context, more));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode open_context(struct cbp_matrix *m, PetscBool adds) {
  const char *const recipe = m->options.recipe;
  cbgen_context *context;
  PetscErrorCode status;
  PetscFunctionBegin;
  if (m->context && m->context_adds == adds) PetscFunctionReturn(PETSC_SUCCESS);
  cbgen_context_destroy(m->context); /* operators need none */
  m->context = NULL;
  CBP_CHECK(cbgen_context_create(&context), "out of memory");
  status = set_options(context, &m->options);
  if (!status && adds) {
    (void)cbgen_set(context, "form", "add");
    if (!*recipe || !strcmp(recipe, "auto")) (void)cbgen_set(context, "recipe", "merge");
  }
  if (!status) m->context = context;
  if (status) cbgen_context_destroy(context);
  m->context_adds = adds;
  PetscCall(status);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- compiling and renewing */

#if PetscDefined(HAVE_CUDA)
/* On the device MatSeqAIJGetCSRAndMemType gives row pointers without those of empty rows, where there are many. */
static PetscErrorCode view_pattern(Mat A, cbgen_csr *csr) {
  const int *row_ptr, *col_idx;
  PetscBool was_ours;
  PetscErrorCode status;
  PetscFunctionBegin;
  if (csr->memory == CBGEN_HOST) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(cbp_hand_over(A, &was_ours)); /* it asks for the type's name */
  status = MatSeqAIJCUSPARSEGetIJ(A, PETSC_FALSE, &row_ptr, &col_idx);
  PetscCall(cbp_take_back(A, was_ours));
  PetscCall(status);
  csr->row_ptr = row_ptr;
  csr->col_idx = col_idx;
  csr->row_ptr_bits = csr->col_idx_bits = 32;
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* The arrays of A as PETSc has them: on the device where the parent type keeps them there. */
static PetscErrorCode view_matrix(Mat A, PetscInt entries, cbgen_csr *csr) {
  const PetscInt *row_ptr = NULL, *col_idx = NULL;
  PetscScalar *values;
  PetscMemType type;
  PetscFunctionBegin;
  PetscCall(MatSeqAIJGetCSRAndMemType(A, NULL, NULL, &values, &type));
  if (PetscMemTypeHost(type)) PetscCall(MatSeqAIJGetCSRAndMemType(A, &row_ptr, &col_idx, NULL, NULL));
  *csr = (cbgen_csr){.struct_size = sizeof *csr, .rows = A->rmap->n, .cols = A->cmap->n, .nnz = entries,
                     .row_ptr = row_ptr, .col_idx = col_idx, .values = values,
                     .row_ptr_bits = 8 * (int)sizeof(PetscInt), .col_idx_bits = 8 * (int)sizeof(PetscInt),
                     .value_type = sizeof(PetscScalar) == 8 ? CBGEN_F64 : CBGEN_F32,
                     .memory = PetscMemTypeHost(type) ? CBGEN_HOST : CBGEN_DEVICE, .stream = cbp_stream(),
                     .name = ((PetscObject)A)->name};
#if PetscDefined(HAVE_CUDA)
  PetscCall(view_pattern(A, csr));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode has_mostly_empty_rows(Mat A, PetscBool *mostly) {
  const PetscInt *starts, *columns;
  PetscInt rows, empty = 0;
  PetscBool done;
  PetscFunctionBegin;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &rows, &starts, &columns, &done));
  for (PetscInt row = 0; done && row < rows; row++) empty += starts[row] == starts[row + 1];
  *mostly = done && empty > rows / 2 ? PETSC_TRUE : PETSC_FALSE;
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &rows, &starts, &columns, &done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether PETSc knows that A's values of now are symmetric (MAT_SYMMETRIC, MAT_SPD). */
static PetscErrorCode is_symmetric(Mat A, const struct cbp_matrix *m, PetscInt entries, PetscBool *symmetric) {
  PetscBool is_known, is_so;
  PetscFunctionBegin;
  PetscCall(MatIsSymmetricKnown(A, &is_known, &is_so));
  const PetscBool known = (is_known && is_so) || m->whole_is_symmetric ? PETSC_TRUE : PETSC_FALSE;
  const PetscInt from = m->options.symmetric_from;
  *symmetric = known && from >= 0 && entries >= from ? PETSC_TRUE : PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode compile_form(struct cbp_matrix *m, const cbgen_csr *csr, const struct cbp_direction *d,
                                   cbgen_operator **op, cbgen_status *failed) {
  const cbgen_request request = {.struct_size = sizeof request, .expected_products = m->options.expected_products,
                                 .values = (cbgen_values)m->options.values,
                                 .transpose = d == &m->direction[CBP_TRANSPOSED],
                                 .specialise = (cbgen_specialise)m->options.specialise,
                                 .symmetric = d->symmetric ? CBGEN_SYMMETRIC : CBGEN_SYMMETRY_OPTION,
                                 .solver = d->method};
  PetscFunctionBegin;
  PetscCall(open_context(m, d->adds));
  *failed = cbgen_compile(m->context, csr, &request, op);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A handle on another operator of A with the same plan, if there is one, in the place of *op. */
static PetscErrorCode share(struct cbp_matrix *m, struct cbp_direction *d) {
  static const cbp_which others[] = {CBP_FORWARD, CBP_IN_SOLVER};
  PetscFunctionBegin;
  for (int i = 0; i < 2 && d != &m->direction[CBP_TRANSPOSED]; i++) {
    const struct cbp_direction *const other = &m->direction[others[i]];
    cbgen_operator *clone;
    if (other == d || !other->op || other->pattern != d->pattern || other->data != d->data ||
        other->symmetric != d->symmetric || strcmp(cbgen_operator_plan(other->op), cbgen_operator_plan(d->op)) != 0)
      continue;
    CBP_CHECK(cbgen_operator_clone(other->op, &clone), cbgen_operator_message(other->op));
    cbgen_operator_free(d->op);
    d->op = clone;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Few rows of an off-diagonal block have entries where subdomains are large: its product adds to what the diagonal
 * block gave, and must not touch the other rows. Kernels of that form are in no family, so that without NVRTC the usual
 * one has to do. */
static PetscErrorCode compile(Mat A, struct cbp_matrix *m, const cbgen_csr *csr, struct cbp_direction *d) {
  cbgen_status failed = CBGEN_OK;
  PetscFunctionBegin;
  d->adds = PETSC_FALSE;
  if (m->kind == CBP_OFF_DIAGONAL && d == &m->direction[CBP_FORWARD]) PetscCall(has_mostly_empty_rows(A, &d->adds));
  PetscCall(compile_form(m, csr, d, &d->op, &failed));
  if (failed && d->adds) {
    d->adds = PETSC_FALSE;
    PetscCall(compile_form(m, csr, d, &d->op, &failed));
  }
  const struct cbp_direction *const products = &m->direction[CBP_FORWARD];
  const PetscBool no_room = failed == CBGEN_ERROR_MEMORY && d->method && products->op ? PETSC_TRUE : PETSC_FALSE;
  if (no_room && products->pattern == d->pattern && products->data == d->data) /* it solves with that of products */
    failed = cbgen_operator_clone(products->op, &d->op);
  CBP_CHECK(failed, cbgen_message(m->context));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode renew(cbgen_operator *op, const cbgen_csr *csr) {
  const cbgen_update update = {.struct_size = sizeof update, .values = csr->values, .value_type = csr->value_type,
                               .memory = csr->memory, .stream = cbp_stream()};
  PetscFunctionBegin;
  CBP_CHECK(cbgen_update_values(op, &update), cbgen_operator_message(op));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode make(Mat A, struct cbp_matrix *m, struct cbp_direction *d) {
  MatInfo info;
  PetscObjectState pattern;
  cbgen_csr csr;
  PetscFunctionBegin;
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  PetscCall(MatGetNonzeroState(A, &pattern));
  const PetscInt entries = (PetscInt)info.nz_used;
  const PetscBool same = d->made && d->data == A->data && d->pattern == pattern && d->entries == entries;
  PetscBool symmetric = PETSC_FALSE;
  PetscCall(is_symmetric(A, m, entries, &symmetric));
  /* Of the transposed matrix the other triangle would count; and solvers are faster with all of it. */
  if (d != &m->direction[CBP_FORWARD]) symmetric = PETSC_FALSE;
  const PetscBool holds = symmetric || !d->symmetric; /* what was promised */
  const PetscBool keep = same && holds && m->options.values == (PetscEnum)CBGEN_VALUES_MUTABLE;
  if (!keep) {
    cbgen_operator_free(d->op);
    d->op = NULL;
    d->made = PETSC_FALSE;
    d->symmetric = symmetric;
  }
  d->data = A->data;
  d->pattern = pattern;
  d->entries = entries;
  if (entries) {
    PetscCall(view_matrix(A, entries, &csr));
    if (d->op) PetscCall(renew(d->op, &csr));
    else PetscCall(compile(A, m, &csr, d));
  }
  if (entries && !keep) PetscCall(share(m, d));
  if (!keep) d->count++;
  d->made = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_operator_of(Mat A, struct cbp_matrix *m, cbp_which which, const char *method, cbgen_operator **op) {
  struct cbp_direction *const d = &m->direction[which];
  PetscObjectState values, pattern;
  PetscFunctionBegin;
  PetscCall(PetscObjectStateGet((PetscObject)A, &values));
  PetscCall(MatGetNonzeroState(A, &pattern));
  if (d->method != method) d->made = PETSC_FALSE;
  d->method = method;
  if (!d->made || d->values != values || d->pattern != pattern || d->data != A->data) {
    PetscCall(make(A, m, d));
    d->values = values;
  }
  *op = d->op;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- products */

static PetscErrorCode multiply_without_entries(Vec y, Vec z) {
  PetscFunctionBegin;
  if (!y) PetscCall(VecSet(z, 0));
  else if (y != z) PetscCall(VecCopy(y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Between enter and leave, as the next. y that lies on the host is brought to where z will be. */
static PetscErrorCode begin_product(cbgen_operator *op, Vec x, Vec y, Vec z, void *stream, struct cbp_vector *in,
                                    struct cbp_vector *out) {
  cbgen_product product = {.struct_size = sizeof product, .alpha = 1, .beta = y ? 1 : 0, .stream = stream};
  PetscFunctionBegin;
  PetscCall(cbp_vector_open(in, x, CBP_READ, CBP_STAGE_X, stream));
  PetscCall(cbp_vector_open(out, z, y == z ? CBP_READ_WRITE : CBP_WRITE, CBP_STAGE_Y, stream));
  product.x = in->pointer;
  product.y = out->pointer;
  if (y && y != z) {
    const PetscScalar *array;
    PetscMemType type;
    PetscCall(VecGetArrayReadAndMemType(y, &array, &type));
    if (PetscMemTypeHost(type)) PetscCall(cbp_device_put(out->pointer, array, out->bytes, stream));
    else PetscCall(cbp_device_copy(out->pointer, array, out->bytes, stream));
    PetscCall(VecRestoreArrayReadAndMemType(y, &array));
  }
  CBP_CHECK(cbgen_multiply(op, &product), cbgen_operator_message(op));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode end_product(struct cbp_vector *in, struct cbp_vector *out) {
  PetscFunctionBegin;
  PetscCall(cbp_vector_close(out));
  PetscCall(cbp_vector_close(in));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Between enter and leave. */
static PetscErrorCode multiply(struct cbp_matrix *m, cbgen_operator *op, Vec x, Vec y, Vec z) {
  struct cbp_vector in, out;
  void *side;
  PetscFunctionBegin;
  if (m->may_run_on) {
    PetscCall(cbp_device_fork(&side));
    PetscCall(begin_product(op, x, y, z, side, &m->x, &m->y));
    m->runs_on = PETSC_TRUE;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(begin_product(op, x, y, z, cbp_stream(), &in, &out));
  PetscCall(end_product(&in, &out));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_multiply_end(struct cbp_matrix *m) {
  PetscErrorCode status;
  PetscFunctionBegin;
  if (!m->runs_on) PetscFunctionReturn(PETSC_SUCCESS);
  m->runs_on = PETSC_FALSE;
  PetscCall(cbp_device_enter());
  status = end_product(&m->x, &m->y);
  if (!status) status = cbp_device_join();
  PetscCall(cbp_device_leave());
  PetscCall(status);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode cbp_multiply(Mat A, PetscBool transpose, Vec x, Vec y, Vec z) {
  const cbp_which which = transpose ? CBP_TRANSPOSED : CBP_FORWARD;
  struct cbp_matrix *m;
  cbgen_operator *op;
  PetscErrorCode status;
  PetscFunctionBegin;
  PetscCall(cbp_matrix_of(A, &m));
  PetscCheck(m, PETSC_COMM_SELF, PETSC_ERR_PLIB, "the matrix has lost what cbgen attached to it");
  if (m->diagonal) PetscCall(cbp_multiply_end(m->diagonal));
  PetscCall(cbp_operator_of(A, m, which, NULL, &op));
  if (!op) {
    PetscCall(multiply_without_entries(y, z));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (m->direction[which].adds && !y) {
    PetscCall(VecSet(z, 0));
    y = z;
  }
  PetscCall(cbp_device_enter());
  PetscCall(PetscLogGpuTimeBegin());
  status = multiply(m, op, x, y, z);
  PetscCall(PetscLogGpuTimeEnd());
  PetscCall(cbp_device_leave());
  PetscCall(status);
  PetscCall(PetscLogGpuFlops(2.0 * (PetscLogDouble)m->direction[which].entries));
  PetscFunctionReturn(PETSC_SUCCESS);
}
