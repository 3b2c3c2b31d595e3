// SPDX-License-Identifier: Apache-2.0
/* The runs of the cb layout: a warp's shared memory and the byte that names a column have room for so many sub-blocks,
 * and runs of equal weight must not have more. */
#include "tests/layouts.h"

/* One panel: sub-blocks with one nonzero each, then full ones. */
static struct cb_csr light_then_full(int light, int full) {
  struct cb_diag diag = {0};
  struct cb_csr csr = {0};
  const size_t most = (size_t)light + (size_t)full * 256;
  struct cb_coo coo = {.rows = 16, .cols = 16 * ((int64_t)light + full)};
  coo.row_idx = cb_alloc(most, sizeof *coo.row_idx);
  coo.col_idx = cb_alloc(most, sizeof *coo.col_idx);
  coo.values = cb_alloc(most, sizeof *coo.values);
  for (int block = 0; block < light + full; block++)
    for (int k = 0; k < (block < light ? 1 : 256); k++, coo.count++) {
      coo.row_idx[coo.count] = k / 16;
      coo.col_idx[coo.count] = 16 * block + k % 16;
      coo.values[coo.count] = (double)(coo.count + 1);
    }
  assert_ok(cb_csr_from_coo(&csr, &coo, &diag));
  return csr;
}

/* Two runs would be of equal weight if the first had all light sub-blocks. */
static void a_run_has_no_more_sub_blocks_than_it_has_room_for(void **state) {
  (void)state;
  static const struct {
    const char *settings;
    int most;
  } cases[] = {
      {"recipe=cb aggregate=off unit-budget=1000000 bake-limit=0 th1=0 th2=256", 16},
      {"recipe=cb aggregate=off unit-budget=1000000 bake-limit=0 th1=257 th2=256 coo-gain=0", 8},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    const int most = cases[c].most;
    struct product product = product_of_matrix(light_then_full(most + 1, 3), cases[c].settings);
    const int64_t runs = array_of(&product, "first_block")->count - 1;
    int64_t largest = 0;
    for (int64_t run = 0; run < runs; run++) {
      const int64_t blocks = element(&product, "first_block", run + 1) - element(&product, "first_block", run);
      if (blocks > largest) largest = blocks;
    }
    assert_int_equal(element(&product, "first_block", runs), most + 4);
    assert_int_equal(largest, most);
    product_release(&product);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_run_has_no_more_sub_blocks_than_it_has_room_for),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
