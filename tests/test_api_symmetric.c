// SPDX-License-Identifier: Apache-2.0
/* Promises of symmetry through the public interface: half of the values, new values of the lower triangle, and the
 * option check-symmetry, which finds values that break the promise wherever they come from. */
#include "tests/solver_support.h"
#include "tests/symmetric.h"

static const char *const options_checked = "recipe=dia symmetric-storage=on check-symmetry=on";

static cbgen_operator *compiled(cbgen_context *context, const struct cb_csr *csr, const cbgen_request *request) {
  int32_t *pointers;
  const cbgen_csr view = view_of(csr, &pointers);
  cbgen_operator *op;
  must(context, cbgen_compile(context, &view, request, &op));
  free(pointers);
  return op;
}

static cbgen_status refusal(cbgen_context *context, const struct cb_csr *csr, const cbgen_request *request) {
  int32_t *pointers;
  const cbgen_csr view = view_of(csr, &pointers);
  cbgen_operator *op;
  const cbgen_status status = cbgen_compile(context, &view, request, &op);
  free(pointers);
  assert_null(op);
  return status;
}

static int64_t stored_bytes(const cbgen_operator *op) {
  cbgen_info info = {.struct_size = sizeof info};
  assert_int_equal(cbgen_operator_info(op, &info), CBGEN_OK);
  return info.stored_bytes;
}

/* Values of type f64 or c128, from the host or, when `there` is not 0, from there. */
static cbgen_status renew(cbgen_operator *op, const struct cb_csr *csr, uint64_t there) {
  if (there) assert_true(app_put(there, csr->values, (size_t)cb_csr_numbers(csr) * sizeof(double)));
  const cbgen_update update = {.struct_size = sizeof update,
                               .values = there ? (const void *)(uintptr_t)there : csr->values,
                               .value_type = csr->is_complex ? CBGEN_C128 : CBGEN_F64,
                               .memory = there ? CBGEN_DEVICE : CBGEN_HOST};
  return cbgen_update_values(op, &update);
}

static void draw_values(struct cb_csr *csr, uint64_t seed) {
  for (int64_t k = 0; k < cb_csr_numbers(csr); k++) csr->values[k] = (double)(draw(&seed) >> 12) * 0x1p-51 - 1;
}

/* What may be promised. */
static const struct promise {
  cbgen_symmetry kind;
  enum cb_symmetry_option symmetry;
  int is_complex;
  const char *broken; /* says the message */
} kinds[] = {{CBGEN_SYMMETRIC, CB_SYMMETRIC_ON, 0, "are not symmetric"},
             {CBGEN_SKEW_SYMMETRIC, CB_SYMMETRIC_SKEW, 0, "are not skew-symmetric"},
             {CBGEN_SYMMETRIC, CB_SYMMETRIC_ON, 1, "are not symmetric"},
             {CBGEN_SKEW_SYMMETRIC, CB_SYMMETRIC_SKEW, 1, "are not skew-symmetric"},
             {CBGEN_HERMITIAN, CB_SYMMETRIC_HERMITIAN, 1, "are not Hermitian"}};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Complex where the kind is, and then with any values. */
static struct cb_csr matrix_for(const struct promise *kind, const char *shape, enum cb_symmetry_option symmetry) {
  struct cb_csr csr = symmetrised(matrix_of(shape), symmetry);
  struct cb_diag diag = {0};
  if (!kind->is_complex) return csr;
  assert_ok(cb_csr_make_complex(&csr, &diag));
  draw_values(&csr, 77);
  cb_symmetry_mirror_values(csr.values, &csr, symmetry);
  return csr;
}

/* Half is stored, and what stands above the main diagonal does not count. */
static void half_of_a_symmetric_matrix_is_stored(void **state) {
  (void)state;
  for (const struct promise *kind = kinds; kind < kinds + KINDS; kind++) {
    cbgen_context *context = new_context("recipe=dia symmetric-storage=on");
    const cbgen_request whole = {.struct_size = sizeof whole, .values = CBGEN_VALUES_MUTABLE};
    const cbgen_request half = {
        .struct_size = sizeof half, .values = CBGEN_VALUES_MUTABLE, .symmetric = kind->kind};
    struct cb_csr csr = matrix_for(kind, "stencil7,n=8", CB_SYMMETRIC_OFF);
    cbgen_operator *op = compiled(context, &csr, &half), *other = compiled(context, &csr, &whole);
    assert_true(100 * stored_bytes(op) < 60 * stored_bytes(other));
    const uint64_t there = app_alloc(0, (size_t)cb_csr_numbers(&csr) * sizeof(double));
    for (uint64_t round = 0; round < 3; round++) {
      if (round) draw_values(&csr, 5 + round);
      if (round) must_operator(op, renew(op, &csr, round == 1 ? there : 0));
      cb_symmetry_mirror_values(csr.values, &csr, kind->symmetry);
      check_product(op, &csr);
    }
    assert_int_equal(cbgen_operator_check(op, NULL), CBGEN_ERROR_ARGUMENT);
    assert_non_null(strstr(cbgen_operator_message(op), "check-symmetry"));
    cbgen_operator_free(op);
    cbgen_operator_free(other);
    app_free(there);
    cb_csr_release(&csr);
    cbgen_context_destroy(context);
  }
}

/* From either memory, in every type, and in a matrix whose rows are out of order. */
static void broken_promises_are_found(void **state) {
  (void)state;
  for (const struct promise *kind = kinds; kind < kinds + KINDS; kind++) {
    cbgen_context *context = new_context(options_checked);
    const cbgen_request request = {
        .struct_size = sizeof request, .values = CBGEN_VALUES_MUTABLE, .symmetric = kind->kind};
    struct cb_csr csr = matrix_for(kind, "stencil5,n=12", kind->symmetry);
    cbgen_operator *op = compiled(context, &csr, &request), *clone;
    must_operator(op, cbgen_operator_clone(op, &clone));
    const uint64_t there = app_alloc(0, (size_t)cb_csr_numbers(&csr) * sizeof(double));
    must_operator(op, cbgen_operator_check(op, NULL));
    for (uint64_t round = 0; round < 4; round++) {
      draw_values(&csr, 90 + round);
      cb_symmetry_mirror_values(csr.values, &csr, kind->symmetry);
      must_operator(op, renew(op, &csr, round % 2 ? there : 0));
      must_operator(op, cbgen_operator_check(op, NULL));
      check_product(op, &csr);
      /* the last entry below the main diagonal, or its imaginary part */
      csr.values[cb_csr_numbers(&csr) - (kind->is_complex ? 3 : 2)] += 1;
      must_operator(op, renew(op, &csr, round % 2 ? there : 0));
      assert_int_equal(cbgen_operator_check(clone, NULL), CBGEN_ERROR_WRONG);
      assert_non_null(strstr(cbgen_operator_message(clone), kind->broken));
      must_operator(op, cbgen_operator_check(op, NULL)); /* it was told */
    }
    cbgen_operator_free(op);
    cbgen_operator_free(clone);
    app_free(there);
    cb_csr_release(&csr);
    cbgen_context_destroy(context);
  }
}

static void first_values_are_looked_at(void **state) {
  (void)state;
  cbgen_context *context = new_context(options_checked);
  const cbgen_request request = {.struct_size = sizeof request, .symmetric = CBGEN_SYMMETRIC};
  struct cb_csr csr = symmetrised(matrix_of("tridiagonal,n=50"), CB_SYMMETRIC_SKEW);
  int32_t *pointers;
  assert_int_equal(refusal(context, &csr, &request), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_message(context), "not symmetric"));
  /* values on the device */
  cbgen_csr view = view_of(&csr, &pointers);
  uint64_t there[3] = {app_alloc(0, 51 * 4), app_alloc(0, (size_t)csr.nnz * 4), app_alloc(0, (size_t)csr.nnz * 8)};
  assert_true(app_put(there[0], pointers, 51 * 4) && app_put(there[1], csr.col_idx, (size_t)csr.nnz * 4) &&
              app_put(there[2], csr.values, (size_t)csr.nnz * 8));
  view.row_ptr = (void *)(uintptr_t)there[0];
  view.col_idx = (void *)(uintptr_t)there[1];
  view.values = (void *)(uintptr_t)there[2];
  view.memory = CBGEN_DEVICE;
  cbgen_operator *op;
  assert_int_equal(cbgen_compile(context, &view, &request, &op), CBGEN_ERROR_ARGUMENT);
  cb_symmetry_mirror_values(csr.values, &csr, CB_SYMMETRIC_ON);
  assert_true(app_put(there[2], csr.values, (size_t)csr.nnz * 8));
  must(context, cbgen_compile(context, &view, &request, &op));
  check_product(op, &csr);
  cbgen_operator_free(op);
  for (int i = 0; i < 3; i++) app_free(there[i]);
  free(pointers);
  cb_csr_release(&csr);
  cbgen_context_destroy(context);
}

static void what_cannot_be_is_refused(void **state) {
  (void)state;
  cbgen_context *context = new_context("recipe=dia symmetric-storage=on");
  const cbgen_request symmetric = {.struct_size = sizeof symmetric, .symmetric = CBGEN_SYMMETRIC};
  const cbgen_request nonsense = {.struct_size = sizeof nonsense, .symmetric = (cbgen_symmetry)7};
  const cbgen_request fixed = {.struct_size = sizeof fixed, .values = CBGEN_VALUES_FIXED, .symmetric = CBGEN_SYMMETRIC};
  const cbgen_request none = {.struct_size = sizeof none, .values = CBGEN_VALUES_FIXED, .symmetric = CBGEN_UNSYMMETRIC};
  struct cb_csr csr = matrix_of("dense_row,n=20,row=3"),
                whole = symmetrised(matrix_of("stencil5,n=9"), CB_SYMMETRIC_OFF);
  assert_int_equal(refusal(context, &csr, &symmetric), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_message(context), "symmetric pattern"));
  assert_int_equal(refusal(context, &whole, &nonsense), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_message(context), "'symmetric' is 7; it is one of cbgen_symmetry"));
  assert_int_equal(refusal(context, &whole, &fixed), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_message(context), "the matrix is not symmetric"));
  cb_symmetry_mirror_values(whole.values, &whole, CB_SYMMETRIC_ON);
  cbgen_operator *half = compiled(context, &whole, &fixed), *other = compiled(context, &whole, &none);
  assert_true(stored_bytes(half) < stored_bytes(other));
  check_product(half, &whole);
  cbgen_operator_free(half);
  cbgen_operator_free(other);
  cb_csr_release(&csr);
  cb_csr_release(&whole);
  cbgen_context_destroy(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(half_of_a_symmetric_matrix_is_stored, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(broken_promises_are_found, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(first_values_are_looked_at, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(what_cannot_be_is_refused, open_fake, check_fake),
  };
  return cmocka_run_group_tests_name("api_symmetric", tests, NULL, NULL);
}
