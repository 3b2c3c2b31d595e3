// SPDX-License-Identifier: Apache-2.0
/* What a compilation is asked for, and the matrix on the host: see compile.h. */
#include "runtime/api/compile.h"

#include "base/memory.h"
#include "codegen/program/program.h"

#include <string.h>

static enum cb_status check_asked(const cbgen_request *asked, struct cb_diag *diag) {
  if (asked->expected_products < 0)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'expected_products' is %lld; it is 0 (many) or more",
                   (long long)asked->expected_products);
  if ((int)asked->values < 0 || asked->values > CBGEN_VALUES_FIXED)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'values' is %d; it is one of cbgen_values", (int)asked->values);
  if ((int)asked->specialise < 0 || asked->specialise > CBGEN_SPECIALISE_NEVER)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'specialise' is %d; it is one of cbgen_specialise", (int)asked->specialise);
  if (asked->transpose != 0 && asked->transpose != 1)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'transpose' is %d; it is 0 or 1", asked->transpose);
  if ((int)asked->reorder < 0 || asked->reorder > CBGEN_REORDER_UNSYMMETRIC)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'reorder' is %d; it is one of cbgen_reorder", (int)asked->reorder);
  if ((int)asked->symmetric < 0 || asked->symmetric > CBGEN_HERMITIAN)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'symmetric' is %d; it is one of cbgen_symmetry", (int)asked->symmetric);
  if (asked->device_scalars != 0 && asked->device_scalars != 1)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'device_scalars' is %d; it is 0 or 1", asked->device_scalars);
  if (asked->split != 0 && asked->split != 1)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'split' is %d; it is 0 or 1", asked->split);
  if (asked->conjugate != 0 && asked->conjugate != 1)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'conjugate' is %d; it is 0 or 1", asked->conjugate);
  if (asked->vectors < 0)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'vectors' is %d; it is 0 (one) or more", asked->vectors);
  return CB_OK;
}

static enum cb_status check_solver(const char *method, const struct cb_view *view, struct cb_diag *diag) {
  if (view->rows == view->cols) return cb_solver_check_method(method, diag);
  return cb_fail(diag, CB_ERR_ARGUMENT, "solvers take square matrices; this one has %lld rows and %lld columns",
                 (long long)view->rows, (long long)view->cols);
}

/* Both tiers take the same arrays; a family's text has no tables of one matrix. What the caller has set stays. */
static void leave_tables_in_memory(struct cb_options *options) {
  struct cb_options standard;
  cb_options_default(&standard);
  if (options->bake_limit == standard.bake_limit) options->bake_limit = 0;
}

/* A recipe that needs no compiler and is packed on the device may be so much slower that the expected products, a
 * thousand where nothing is said, do not repay what another's set-up takes longer: a compilation and the host's work. A
 * power of two, so that there are few keys. */
static void choose_search(struct cb_request *request) {
  enum { PRODUCTS = 1000, COMPILE_NS = 60 * 1000 * 1000, NONZERO_NS = 8 };
  struct cb_options *options = &request->options;
  const int64_t products = request->asked.expected_products ? request->asked.expected_products : PRODUCTS;
  const int64_t ns = (COMPILE_NS + NONZERO_NS * request->view.nnz) / products;
  options->search = CB_SEARCH_PROFILE;
  if (strcmp(options->recipe, "auto") || request->asked.specialise == CBGEN_SPECIALISE_NOW || !ns) return;
  options->search = CB_SEARCH_READY;
  options->ready_loss = INT64_C(1) << (63 - __builtin_clzll((unsigned long long)ns));
}

/* A profile knows times of single products only, so all recipes are looked at. */
static void choose_vectors(struct cb_request *request) {
  struct cb_options *options = &request->options;
  const int asked = request->asked.vectors;
  if (asked) options->vectors = asked < CB_MOST_VECTORS ? asked : CB_MOST_VECTORS;
  if (options->vectors > 1 && !request->context->has_search) options->search = CB_SEARCH_HOPEFUL;
}

/* A profile knows nothing of symmetric storage. */
static void choose_symmetry(struct cb_request *request) {
  static const enum cb_symmetry_option symmetries[] = {[CBGEN_SYMMETRIC] = CB_SYMMETRIC_ON,
                                                       [CBGEN_SKEW_SYMMETRIC] = CB_SYMMETRIC_SKEW,
                                                       [CBGEN_UNSYMMETRIC] = CB_SYMMETRIC_OFF,
                                                       [CBGEN_HERMITIAN] = CB_SYMMETRIC_HERMITIAN};
  struct cb_options *options = &request->options;
  if (request->asked.symmetric) options->symmetric = symmetries[request->asked.symmetric];
  if (cb_promises_symmetry(options) && !request->context->has_search) options->search = CB_SEARCH_HOPEFUL;
}

/* What the context says, else what the values are; split ones are doubles. A profile knows nothing of those, nor of
 * complex ones. */
static enum cb_status choose_type(struct cb_request *request, struct cb_diag *diag) {
  static const char *const types[] = {
      [CB_F64] = "f64", [CB_F32] = "f32", [CB_F16] = "f16-f32", [CB_BF16] = "bf16-f32",
      [CB_C64] = "c64", [CB_C128] = "c128"};
  struct cb_options *options = &request->options;
  if (!request->context->has_type) {
    const enum cb_status s = cb_options_set(options, "type", types[request->view.value_type], diag);
    if (s) return s;
  }
  if (request->asked.split && options->type != CB_PRECISION_F64 && options->type != CB_PRECISION_SPLIT_F64)
    return cb_fail(diag, CB_ERR_ARGUMENT, "split values are doubles, as are vectors and sums: 'type' is %s, and not f64",
                   cb_precision_names[options->type]);
  if (request->asked.split) options->type = CB_PRECISION_SPLIT_F64;
  const int complex_numbers = cb_precision_is_complex(options->type);
  if (request->view.is_complex && !complex_numbers)
    return cb_fail(diag, CB_ERR_ARGUMENT, "the matrix has complex values: 'type' is %s; choose c128 or c64",
                   cb_precision_names[options->type]);
  request->view.is_complex = complex_numbers;
  if (request->asked.conjugate) options->conjugate = CB_ON;
  if ((options->type == CB_PRECISION_SPLIT_F64 || complex_numbers) && !request->context->has_search)
    options->search = CB_SEARCH_HOPEFUL;
  return CB_OK;
}

/* Scalars in device memory are an epilogue of the library's own. */
static enum cb_status check_device_scalars(const struct cb_request *request, const char *epilogue,
                                           struct cb_diag *diag) {
  if (epilogue && *epilogue)
    return cb_fail(diag, CB_ERR_ARGUMENT,
                   "an epilogue declares the numbers that it takes from device memory itself: leave out "
                   "'device_scalars'");
  if (request->options.form == CB_FORM_AXPBY) return CB_OK;
  return cb_fail(diag, CB_ERR_ARGUMENT, "'device_scalars' takes the form axpby: others have no alpha and no beta");
}

/* The epilogue of the request, else the context's, in the form in which the cache's key has it. */
static enum cb_status take_epilogue(struct cb_request *request, struct cb_diag *diag) {
  const char *asked = request->asked.epilogue ? request->asked.epilogue : request->context->options.epilogue;
  if (request->asked.device_scalars) {
    const enum cb_status fits = check_device_scalars(request, asked, diag);
    if (fits) return fits;
    asked = cb_device_scalars;
  }
  struct cb_statements *statements;
  struct cb_text text = {0};
  request->options.epilogue = NULL;
  if (!asked || !*asked) return CB_OK;
  const enum cb_status s = cb_statements_parse(&statements, asked, "epilogue", 1, diag);
  if (s) return s;
  cb_statements_print(&text, statements);
  cb_free(statements);
  request->options.epilogue = request->epilogue = cb_text_detach(&text);
  request->options.form = CB_FORM_AX;
  request->options.commit = CB_COMMITS_ONCE;
  if (!request->epilogue) return cb_fail_memory(diag, "an epilogue", 0);
  if (request->options.tune != CB_TUNE_MEASURE) return CB_OK;
  return cb_fail(diag, CB_ERR_ARGUMENT, "tuning by measurement times products without an epilogue: set 'recipe'");
}

/* What suits solvers may be slower in products: by more where all of a small system is read and written in these. */
static void choose_program(struct cb_request *request) {
  enum { SMALL = 2500 * 1000 /* nonzeros */, LOSS = 500, LOSS_OF_SMALL = 1500 /* nanoseconds */ };
  struct cb_options *options = &request->options;
  const char *method = request->asked.solver;
  if (!method) return;
  const struct cb_program *program = cb_program_find(method, CB_PLAIN);
  if (program && program->pipelined) options->one_meeting = CB_ON;
  if (options->program_loss) return;
  options->program_loss = options->one_meeting == CB_ON && request->view.nnz <= SMALL ? LOSS_OF_SMALL : LOSS;
}

/* The context's options with what they leave to the matrix and the request. */
static enum cb_status choose_options(struct cb_request *request, struct cb_diag *diag) {
  const struct cbgen_context *context = request->context;
  struct cb_options *options = &request->options;
  *options = context->options;
  if (!context->has_form) options->form = CB_FORM_AXPBY;
  enum cb_status s = take_epilogue(request, diag);
  if (s) return s;
  if (!context->has_search) choose_search(request); /* set-up plans no recipe in order to compare it */
  choose_vectors(request);
  choose_symmetry(request);
  choose_program(request);
  s = choose_type(request, diag);
  if (!s) s = cb_environment_options(options, context, diag);
  if (s) return s;
  if (options->values == CB_VALUES_FIXED && cb_asks_mutable(request))
    return cb_fail(diag, CB_ERR_ARGUMENT,
                   "the option 'values' says that they are fixed, and the request that they are mutable");
  if (options->values == CB_VALUES_FIXED) request->asked.values = CBGEN_VALUES_FIXED;
  if (cb_asks_fixed(request)) options->values = CB_VALUES_FIXED;
  else leave_tables_in_memory(options);
  return CB_OK;
}

enum cb_status cb_request_take(struct cb_request *request, const cbgen_request *asked, struct cb_diag *diag) {
  cbgen_request *taken = &request->asked;
  enum cb_status s = CB_OK;
  if (asked) s = cb_take_struct(taken, sizeof *taken, offsetof(cbgen_request, specialise), asked, "cbgen_request", diag);
  if (!s) s = check_asked(taken, diag);
  if (!s && taken->solver) s = check_solver(taken->solver, &request->view, diag);
  if (request->view.turned) taken->transpose = !taken->transpose; /* the transposed matrix's transpose is the matrix */
  if (!s) s = choose_options(request, diag);
  if (!s && cb_asks_order(request) && cb_promises_symmetry(&request->options))
    s = cb_fail(diag, CB_ERR_UNSUPPORTED,
                "of a matrix that is promised to be symmetric the lower triangle counts, which another order does not "
                "keep: leave out 'reorder', or the promise");
  if (!s) s = cb_context_session(request->context, &request->session);
  if (s) return s;
  struct cb_view *host = &request->host;
  *host = request->view;
  if (request->view.on_device) host->row_ptr = host->col_idx = host->values = NULL;
  host->on_device = 0;
  return CB_OK;
}

void cb_request_release(struct cb_request *request) {
  for (int i = 0; i < 3; i++) cb_free(request->downloaded[i]);
  cb_expansion_release(&request->expansion);
  cb_reordering_release(&request->reordering);
  cb_free(request->epilogue);
}

/* ---- the matrix on the host */

static enum cb_status download(struct cb_request *request, int which, const void **array, const void *from,
                               int64_t count, size_t size, const char *what, struct cb_diag *diag) {
  void *block = request->downloaded[which] = cb_alloc((size_t)count, size);
  if (!block) return cb_fail_memory(diag, what, (unsigned long long)count * size);
  *array = block;
  return cb_device_download(request->session->device, block, (cb_device_ptr)(uintptr_t)from, (size_t)count * size,
                            what, diag);
}

static enum cb_status download_all(struct cb_request *request, struct cb_diag *diag) {
  const struct cb_driver *driver = request->session->device->driver;
  const struct cb_view *view = &request->view;
  struct cb_view *host = &request->host;
  const size_t row_size = view->row_wide ? 8 : 4, col_size = view->col_wide ? 8 : 4;
  const int has_values = cb_asks_fixed(request) && view->values;
  enum cb_status s =
      cb_driver_check(driver, driver->call.stream_synchronize(view->stream), diag, "wait for the matrix");
  if (!s)
    s = download(request, 0, &host->row_ptr, view->row_ptr, cb_view_pointers(view), row_size, "row pointers", diag);
  if (!s)
    s = download(request, 1, &host->col_idx, view->col_idx, cb_view_indices(view), col_size, "column indices", diag);
  if (!s && has_values)
    s = download(request, 2, &host->values, view->values, view->nnz, cb_type_size(view->value_type), "values",
                 diag);
  return s;
}

enum cb_status cb_request_host(struct cb_request *request, struct cb_diag *diag) {
  enum cb_status s = CB_OK;
  if (request->on_host) return CB_OK;
  if (request->view.on_device) {
    s = cb_device_enter(request->session->device, diag);
    if (s) return s;
    s = download_all(request, diag);
    cb_device_leave(request->session->device);
  }
  if (!s) s = cb_view_expand(&request->expansion, &request->host, diag);
  if (!s && cb_asks_order(request))
    s = cb_view_reorder(&request->expansion, &request->reordering, &request->host,
                        (enum cb_reorder)request->asked.reorder, diag);
  request->on_host = !s;
  return s;
}
