// SPDX-License-Identifier: Apache-2.0
/* Linear programs of matrices that others have made for them: tests/test_api_lp.c has the rest. */
#include "tests/lp_support.h"

static struct cb_csr corpus_of(const char *name) {
  char path[200];
  struct cb_csr csr;
  struct cb_diag diag = {0};
  snprintf(path, sizeof path, "tests/data/corpus/%s.mtx.zst", name);
  if (cb_matrix_read(&csr, path, NULL, &diag)) fail_msg("%s", diag.message);
  return csr;
}

static void programs_of_known_matrices_are_solved(void **state) {
  (void)state;
  check_lp(corpus_of("mip_air03"), "recipe=auto", "", 1, 1e-3);
  check_lp(corpus_of("mip_dano3mip"), "recipe=auto", "", 1, 1e-2);
  check_lp(corpus_of("lp_osa_14"), "recipe=auto", "", 1, 1e-2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(programs_of_known_matrices_are_solved, open_fake, check_fake),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
