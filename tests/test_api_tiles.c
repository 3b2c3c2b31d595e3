// SPDX-License-Identifier: Apache-2.0
/* Solvers whose thread blocks hold their tiles of merge in registers, on the emulation: rows that begin in earlier
 * chunks of a tile, chunks without ends of rows, several types. */
#include "tests/solver_support.h"

/* A tile that is held in registers is multiplied as one that is read: the same bits. */
static void tiles_may_lie_in_registers(void **state) {
  static const struct {
    const char *matrix, *settings;
  } cases[] = {{"random,rows=500,cols=500,density=0.01", "recipe=merge merge-items=5"},
               {"rmat,scale=9", "recipe=merge merge-items=11 type=f32"},
               {"stencil9,n=20", "recipe=merge merge-items=3 type=f16-f32"},
               {"long_row,rows=400,per_row=4,long_rows=1,long_length=300", "recipe=merge merge-items=3"}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct bed bed = bed_of(system_of(cases[i].matrix, SYMMETRIC), cases[i].settings);
    const size_t bytes = (size_t)bed.csr.rows * sizeof *bed.x;
    double *plain = malloc(bytes);
    for (int held = 0; held < 2; held++) {
      iterate(&bed, "cg", held ? "grid+pipelined+matrix" : "grid+pipelined", 0, (int)i % 2);
      if (!held) memcpy(plain, bed.x, bytes);
    }
    assert_memory_equal(plain, bed.x, bytes);
    free(plain);
    release(&bed);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(tiles_may_lie_in_registers, open_fake, check_fake)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
