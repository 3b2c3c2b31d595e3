// SPDX-License-Identifier: Apache-2.0
/* Operators that work in an order of their own, on the fake CUDA: their vectors have the order that they tell, new
 * values come in the caller's, transposed ones and those that were saved or cached have the same order. */
#include "tests/api_scratch.h"
#include "tests/api_support.h"

struct order {
  int32_t *rows, *columns;
  int is_given; /* it is 0, 1, 2, … */
};

static struct order order_of(const cbgen_operator *op) {
  cbgen_info info = {.struct_size = sizeof info};
  assert_int_equal(cbgen_operator_info(op, &info), CBGEN_OK);
  struct order order = {calloc((size_t)info.rows + 1, 4), calloc((size_t)info.cols + 1, 4), 1};
  assert_true(order.rows && order.columns);
  assert_int_equal(cbgen_operator_permutation(op, order.rows, order.columns), CBGEN_OK);
  for (int64_t i = 0; i < info.rows; i++) order.is_given &= order.rows[i] == i;
  for (int64_t i = 0; i < info.cols; i++) order.is_given &= order.columns[i] == i;
  return order;
}

static void release_order(struct order *order) {
  free(order->rows);
  free(order->columns);
}

/* The matrix in that order, made from its entries. */
static struct cb_csr ordered(const struct cb_csr *csr, const struct order *order) {
  struct cb_diag diag = {0};
  struct cb_csr moved = {0};
  const size_t count = (size_t)csr->nnz;
  struct cb_coo coo = {.rows = csr->rows, .cols = csr->cols, .count = csr->nnz};
  int32_t *places = calloc((size_t)csr->cols + 1, 4);
  coo.row_idx = cb_alloc(count, 4);
  coo.col_idx = cb_alloc(count, 4);
  coo.values = cb_alloc(count, 8);
  for (int64_t i = 0; i < csr->cols; i++) places[order->columns[i]] = (int32_t)i;
  int64_t at = 0;
  for (int64_t i = 0; i < csr->rows; i++)
    for (int64_t k = cb_csr_row(csr, order->rows[i]); k < cb_csr_row(csr, order->rows[i] + 1); k++, at++) {
      coo.row_idx[at] = (int32_t)i;
      coo.col_idx[at] = places[csr->col_idx[k]];
      coo.values[at] = csr->values[k];
    }
  free(places);
  assert_ok(cb_csr_from_coo(&moved, &coo, &diag));
  return moved;
}

/* A product, checked against the sample's matrix in the operator's order. */
static struct order check_ordered(cbgen_operator *op, const struct cb_csr *csr, int turned) {
  struct cb_csr whole = turned ? transposed(csr) : *csr;
  struct order order = order_of(op);
  struct cb_csr moved = ordered(&whole, &order);
  check_product(op, &moved);
  cb_csr_release(&moved);
  if (turned) cb_csr_release(&whole);
  return order;
}

static void renew(cbgen_operator *op, struct sample *sample, uint64_t seed) {
  set_values(sample, seed);
  sum_up(sample);
  const cbgen_update update = {sizeof update, sample->given, sample->form.value_type, CBGEN_HOST, NULL};
  must_operator(op, cbgen_update_values(op, &update));
}

static const char graph[] = "rmat,scale=9,edge_factor=8";

static void every_form_multiplies(void **state) {
  static const struct form forms[] = {{0},
                                      {.row_bits = 64, .col_bits = 64, .base = 1, .shuffled = 1, .duplicates = 1},
                                      {.on_device = 1, .shuffled = 1},
                                      {.value_type = CBGEN_F32, .duplicates = 1, .on_device = 1, .base = 1}};
  static const char *const recipes[] = {"recipe=auto", "recipe=sell", "recipe=merge", "recipe=cb"};
  (void)state;
  for (size_t r = 0; r < sizeof recipes / sizeof *recipes; r++)
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++)
      for (int kind = CBGEN_REORDER_SYMMETRIC; kind <= CBGEN_REORDER_UNSYMMETRIC; kind++) {
        const int turned = (int)(r + f) % 2;
        const cbgen_request request = {.struct_size = sizeof request, .values = CBGEN_VALUES_MUTABLE,
                                       .transpose = turned, .reorder = (cbgen_reorder)kind};
        struct sample sample = sample_of(graph, forms[f]);
        cbgen_context *context = new_context(recipes[r]);
        cbgen_operator *op;
        must(context, cbgen_compile(context, &sample.view, &request, &op));
        struct order order = check_ordered(op, &sample.csr, turned);
        assert_false(order.is_given);
        if (kind == CBGEN_REORDER_SYMMETRIC)
          assert_memory_equal(order.rows, order.columns, (size_t)sample.view.rows * 4);
        release_order(&order);
        renew(op, &sample, 40 + (uint64_t)f);
        order = check_ordered(op, &sample.csr, turned);
        release_order(&order);
        cbgen_operator_free(op);
        cbgen_context_destroy(context);
        sample_release(&sample);
      }
}

/* CSC, whose rows are columns, and an operator and its transpose. */
static void a_matrix_and_its_transpose_have_one_order(void **state) {
  struct sample sample = sample_of(graph, (struct form){.shuffled = 1});
  const cbgen_csr *csr = &sample.view;
  const cbgen_matrix matrix = {.struct_size = sizeof matrix, .format = CBGEN_CSC, .rows = csr->cols, .cols = csr->rows,
                               .nnz = csr->nnz, .pointers = csr->row_ptr, .indices = csr->col_idx,
                               .values = csr->values};
  cbgen_context *context = new_context("");
  struct order orders[2];
  (void)state;
  for (int turned = 0; turned < 2; turned++) { /* as CSC it is the transpose of what it is as CSR */
    const cbgen_request request = {.struct_size = sizeof request, .transpose = turned,
                                   .reorder = CBGEN_REORDER_UNSYMMETRIC};
    cbgen_operator *op;
    must(context, cbgen_compile_matrix(context, &matrix, &request, &op));
    orders[turned] = check_ordered(op, &sample.csr, !turned);
    cbgen_operator_free(op);
  }
  assert_memory_equal(orders[0].rows, orders[1].columns, (size_t)csr->rows * 4);
  assert_memory_equal(orders[0].columns, orders[1].rows, (size_t)csr->cols * 4);
  assert_memory_not_equal(orders[0].rows, orders[0].columns, (size_t)csr->rows * 4);
  for (int i = 0; i < 2; i++) release_order(&orders[i]);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

/* Where no order is better, and where none is asked for. */
static void other_operators_have_the_given_order(void **state) {
  static const struct {
    const char *shape;
    cbgen_reorder reorder;
  } cases[] = {{graph, CBGEN_REORDER_NONE},
               {"stencil7,n=8", CBGEN_REORDER_SYMMETRIC},
               {"dense,rows=30,cols=20", CBGEN_REORDER_UNSYMMETRIC},
               {"empty,rows=0,cols=5", CBGEN_REORDER_UNSYMMETRIC},
               {"empty,rows=5,cols=0", CBGEN_REORDER_UNSYMMETRIC}};
  cbgen_context *context = new_context("");
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const cbgen_request request = {.struct_size = sizeof request, .reorder = cases[i].reorder};
    struct sample sample = sample_of(cases[i].shape, (struct form){0});
    cbgen_operator *op;
    must(context, cbgen_compile(context, &sample.view, &request, &op));
    struct order order = check_ordered(op, &sample.csr, 0);
    assert_true(order.is_given);
    assert_int_equal(cbgen_operator_permutation(op, NULL, NULL), CBGEN_OK);
    release_order(&order);
    cbgen_operator_free(op);
    sample_release(&sample);
  }
  cbgen_context_destroy(context);
}

/* Saved and loaded; a block whose order is none is refused. */
static void the_order_is_saved(void **state) {
  const cbgen_request request = {.struct_size = sizeof request, .values = CBGEN_VALUES_MUTABLE,
                                 .reorder = CBGEN_REORDER_UNSYMMETRIC};
  struct sample sample = sample_of(graph, (struct form){0});
  cbgen_context *context = new_context("");
  cbgen_operator *op, *loaded, *clone, *copy;
  size_t length;
  (void)state;
  must(context, cbgen_compile(context, &sample.view, &request, &op));
  must_operator(op, cbgen_operator_save(op, NULL, 0, &length));
  void *bytes = malloc(length);
  assert_non_null(bytes);
  must_operator(op, cbgen_operator_save(op, bytes, length, &length));
  must(context, cbgen_operator_load(context, bytes, length, &loaded));
  must_operator(op, cbgen_operator_clone(loaded, &clone));
  must_operator(op, cbgen_operator_copy(loaded, NULL, &copy));
  struct order first = order_of(op), second = check_ordered(loaded, &sample.csr, 0), third = order_of(clone);
  struct order fourth = check_ordered(copy, &sample.csr, 0);
  assert_memory_equal(first.columns, fourth.columns, (size_t)sample.view.cols * 4);
  release_order(&fourth);
  assert_false(first.is_given);
  assert_memory_equal(first.rows, second.rows, (size_t)sample.view.rows * 4);
  assert_memory_equal(first.columns, second.columns, (size_t)sample.view.cols * 4);
  assert_memory_equal(first.columns, third.columns, (size_t)sample.view.cols * 4);
  renew(loaded, &sample, 8);
  release_order(&second);
  second = check_ordered(loaded, &sample.csr, 0);
  release_order(&first);
  release_order(&second);
  release_order(&third);
  cbgen_operator_free(clone);
  cbgen_operator_free(loaded);
  renew(copy, &sample, 10); /* it has values of its own, and what else it needs is still there */
  fourth = check_ordered(copy, &sample.csr, 0);
  release_order(&fourth);
  cbgen_operator_free(copy);
  cbgen_operator_free(op);
  free(bytes);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

static cbgen_cache_result compile_once(const char *directory, struct sample *sample, cbgen_reorder reorder) {
  const cbgen_request request = {.struct_size = sizeof request, .values = CBGEN_VALUES_MUTABLE,
                                 .specialise = CBGEN_SPECIALISE_NOW, .reorder = reorder};
  cbgen_context *context = new_context("recipe=sell");
  cbgen_info info = {.struct_size = sizeof info};
  cbgen_operator *op;
  must(context, cbgen_set(context, "cache", directory));
  must(context, cbgen_compile(context, &sample->view, &request, &op));
  assert_int_equal(cbgen_operator_info(op, &info), CBGEN_OK);
  struct order order = check_ordered(op, &sample->csr, 0);
  assert_int_equal(order.is_given, reorder == CBGEN_REORDER_NONE);
  release_order(&order);
  renew(op, sample, 9);
  order = check_ordered(op, &sample->csr, 0);
  release_order(&order);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  return info.cache;
}

static void the_cache_knows_orders_apart(void **state) {
  struct sample sample = sample_of(graph, (struct form){0});
  (void)state;
  assert_int_equal(empty_scratch("reorder", "cache"), 0);
  for (int round = 0; round < 2; round++)
    for (int kind = CBGEN_REORDER_NONE; kind <= CBGEN_REORDER_UNSYMMETRIC; kind++)
      assert_int_equal(compile_once(place("cache"), &sample, (cbgen_reorder)kind), round ? CBGEN_CACHE_HIT : CBGEN_CACHE_MISS);
  sample_release(&sample);
}

static void what_cannot_be_is_refused(void **state) {
  struct sample sample = sample_of("random,rows=50,cols=40,density=0.1", (struct form){0});
  cbgen_context *context = new_context("");
  cbgen_operator *op;
  cbgen_request request = {.struct_size = sizeof request, .reorder = CBGEN_REORDER_SYMMETRIC};
  (void)state;
  assert_int_equal(cbgen_compile(context, &sample.view, &request, &op), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_message(context), "50 rows and 40 columns"));
  request.reorder = (cbgen_reorder)3;
  assert_int_equal(cbgen_compile(context, &sample.view, &request, &op), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_message(context), "'reorder' is 3"));
  request.reorder = CBGEN_REORDER_UNSYMMETRIC;
  request.symmetric = CBGEN_SYMMETRIC;
  assert_int_equal(cbgen_compile(context, &sample.view, &request, &op), CBGEN_ERROR_UNSUPPORTED);
  assert_non_null(strstr(cbgen_message(context), "leave out 'reorder'"));
  request.symmetric = CBGEN_SYMMETRY_OPTION;
  ((int32_t *)sample.col_idx)[7] = 40; /* found before anything is done with it */
  assert_int_equal(cbgen_compile(context, &sample.view, &request, &op), CBGEN_ERROR_ARGUMENT);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(every_form_multiplies, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(a_matrix_and_its_transpose_have_one_order, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(other_operators_have_the_given_order, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(the_order_is_saved, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(the_cache_knows_orders_apart, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(what_cannot_be_is_refused, open_fake, check_fake),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
