// SPDX-License-Identifier: Apache-2.0
/* Instructions with the lines that they come from, of PTX and of what nvdisasm prints. */
#include "tests/support.h"

#include "runtime/verify/listing.h"

struct expected {
  int line, is_label;
  const char *text;
};

static void check(const struct cb_listing *listing, const struct expected *expected, int count) {
  int instructions = 0;
  assert_int_equal(listing->count, count);
  for (int i = 0; i < count; i++) {
    const struct cb_instruction *one = &listing->list[i];
    assert_int_equal(one->length, strlen(expected[i].text));
    assert_memory_equal(one->text, expected[i].text, (size_t)one->length);
    assert_int_equal(one->line, expected[i].line);
    assert_int_equal(one->is_label, expected[i].is_label);
    instructions += !one->is_label;
  }
  assert_int_equal(listing->instructions, instructions);
}

#define CHECK(listing, expected) check(listing, expected, (int)(sizeof(expected) / sizeof *(expected)))

/* What stands before and behind a kernel is none of its instructions; lines of other files are not the text's. */
static void instructions_of_ptx(void **state) {
  static const char ptx[] = "// Generated\n.version 9.0\n.global .align 4 .u32 kRows = 7;\n"
                            ".visible .entry a_spmv(\n\t.param .u64 a_spmv_param_0\n)\n.maxntid 256, 1, 1\n{\n"
                            "\t.reg .pred \t%p<3>;\n\t.loc\t1 185 0\n\tmov.u64 \t%rd84, 0;\n"
                            "\t.loc\t1 50 3, function_name $L__info_string0, inlined_at 1 186 3\n"
                            "\t// begin inline asm\n\tgriddepcontrol.wait;\n\t// end inline asm\n"
                            "$L__BB0_2:\n\t.loc\t2 9 1\n\t@%p1 bra \t$L__BB0_2;\n\t.loc\t1 60 1\n\tret;\n\n}\n"
                            ".visible .entry b()\n{\n\texit;\n}\n"
                            "\t.file\t1 \"kernel.cu\"\n\t.section\t.debug_str\n\t{\n.b8 1,2\n\t}\n";
  static const struct expected expected[] = {{0, 1, "a_spmv"},           {185, 0, "mov.u64 %rd84, 0"},
                                             {50, 0, "griddepcontrol.wait"}, {50, 1, "$L__BB0_2:"},
                                             {0, 0, "@%p1 bra $L__BB0_2"}, {60, 0, "ret"},
                                             {0, 1, "b"},                {0, 0, "exit"}};
  struct cb_diag diag = {0};
  struct cb_listing listing;
  (void)state;
  assert_ok(cb_listing_ptx(&listing, ptx, &diag));
  CHECK(&listing, expected);
  cb_listing_release(&listing);
}

static void instructions_of_machine_code(void **state) {
  static const char sass[] = "\t.target\tsm_90\n\n//-------- .text.a ------\n\t.section\t.text.a,\"ax\",@progbits\n\t.align\t128\n"
                             "        .global         a\na:\n.text.a:\n"
                             "\t//## File \"/tmp/kernel.cu\", line 185\n        /*0000*/                   LDC R1, c[0x0][0x28] ;\n"
                             "\t//## File \"/tmp/kernel.cu\", line 50 inlined at \"/tmp/kernel.cu\", line 168\n"
                             "        /*0010*/              @!P0 LDG.E.64 R8, desc[UR6][R32.64] ;\n.L_x_2:\n"
                             "        /*0020*/                   EXIT ;  /* 0x1 */\n"
                             "\t.section\t.text.b,\"ax\",@progbits\nb:\n        /*0000*/                   NOP;\n"
                             "        /*0010*/ \t.byte\t0x04, 0x01\n";
  static const struct expected expected[] = {{0, 1, "a:"},       {185, 0, "LDC R1, c[0x0][0x28]"},
                                             {50, 0, "@!P0 LDG.E.64 R8, desc[UR6][R32.64]"},
                                             {50, 1, ".L_x_2:"}, {50, 0, "EXIT"},
                                             {0, 1, "b:"},       {0, 0, "NOP"}};
  struct cb_diag diag = {0};
  struct cb_listing listing;
  (void)state;
  assert_ok(cb_listing_sass(&listing, sass, strlen(sass), &diag));
  CHECK(&listing, expected);
  cb_listing_release(&listing);
}

/* Whatever is left of it, a text is read, or it gives nothing. */
static void texts_that_are_cut(void **state) {
  static const char *const whole[] = {".entry a(\n{\n.loc 1 2 3\nmov;\n$L:\n}\n", "/*00*/ A ;\n//## File \"k\", line 3\n/*10*/ B;\nc:\n"};
  struct cb_diag diag = {0};
  struct cb_listing listing;
  (void)state;
  for (int form = 0; form < 2; form++)
    for (size_t length = 0; length <= strlen(whole[form]); length++) {
      char *part = cb_calloc(length + 1, 1); /* of its very size, for the sanitizers */
      memcpy(part, whole[form], length);
      assert_ok(form ? cb_listing_sass(&listing, part, length, &diag) : cb_listing_ptx(&listing, part, &diag));
      assert_true(listing.count <= 4 && listing.instructions <= 2);
      cb_listing_release(&listing);
      cb_free(part);
    }
}

static void a_missing_disassembler_is_said(void **state) {
  struct cb_diag diag = {0};
  struct cb_listing listing = {0};
  (void)state;
  setenv("CBGEN_NVDISASM", "/nonexistent/nvdisasm", 1);
  assert_int_equal(cb_listing_disassemble(&listing, "cubin", 5, &diag), CB_ERR_MISSING);
  assert_non_null(strstr(diag.message, "CBGEN_NVDISASM"));
  setenv("CBGEN_NVDISASM", "/bin/false", 1);
  assert_int_equal(cb_listing_disassemble(&listing, "cubin", 5, &diag), CB_ERR_IO);
  assert_non_null(strstr(diag.message, "/bin/false"));
  unsetenv("CBGEN_NVDISASM");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(instructions_of_ptx),
      cmocka_unit_test(instructions_of_machine_code),
      cmocka_unit_test(texts_that_are_cut),
      cmocka_unit_test(a_missing_disassembler_is_said),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
