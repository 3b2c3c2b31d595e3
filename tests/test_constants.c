// SPDX-License-Identifier: Apache-2.0
/* Calls that always give the same number become that number's name, where nothing is left unused. */
#include "tests/support.h"

#include "codegen/constants.h"

#define HEAD                                                                                                           \
  "\nstruct Pair { int first, at; };\n"                                                                                \
  "CBGEN_DEVICE int other(const Arrays &arrays, int slice) { return load(arrays.a + slice); }\n\n"

/* What `f(…)` becomes; NULL: it stays. */
static const struct {
  const char *before, *after;
} cases[] = {
    /* the arguments are used elsewhere */
    {"\nCBGEN_DEVICE int g(const Arrays &arrays, int slice) {\n  const int base = f(arrays, slice);\n"
     "  return base + h(arrays, slice);\n}\n",
     "\nCBGEN_DEVICE int g(const Arrays &arrays, int slice) {\n  const int base = kF;\n"
     "  return base + h(arrays, slice);\n}\n"},
    /* a parameter, though others of its name are used before and behind */
    {HEAD "CBGEN_DEVICE int g(const Arrays &arrays, int slice) {\n  return f(arrays, slice);\n}\n" HEAD, NULL},
    {"\nCBGEN_DEVICE int g(const Arrays &, int slice, int lane) {\n  return slice + f(x(slice), lane);\n}\n", NULL},
    /* a variable, of a block and of one beside it */
    {"\nCBGEN_DEVICE int g(int n) {\n  const int at = 2 * n;\n  return n * f(at);\n}\n", NULL},
    {"\nCBGEN_DEVICE int g(int n) {\n  {\n    const int at = n;\n    h(at);\n  }\n"
     "  {\n    const int at = n;\n    f(at);\n  }\n  return n;\n}\n", NULL},
    {"\nCBGEN_DEVICE int g(int n) {\n  const int at = n;\n  {\n    h(at);\n  }\n  return f(at);\n}\n",
     "\nCBGEN_DEVICE int g(int n) {\n  const int at = n;\n  {\n    h(at);\n  }\n  return kF;\n}\n"},
    /* a mention in a comment is no use, nor is a member of that name */
    {"\nCBGEN_DEVICE int g(int n) {\n  return f(n);  // of n\n}\n", NULL},
    {"\nCBGEN_DEVICE int g(int n, Pair pair) {\n  return pair.n + f(n);\n}\n", NULL},
    /* constants and functions are used anywhere; types do not matter */
    {"\nCBGEN_DEVICE int g(int n) {\n  return n + f(kSlots + index_t(n));\n}\n", NULL},
    {"\nCBGEN_DEVICE int g(int n) {\n  return n + f(index_t(n) + int(n));\n}\n", "\nCBGEN_DEVICE int g(int n) {\n  return n + kF;\n}\n"},
    {"\nCBGEN_DEVICE int g(int n) {\n  return n + f(other(n));\n}\n", NULL},
    {HEAD "CBGEN_DEVICE int g(int n) {\n  return n + f(other(n));\n}\n", HEAD "CBGEN_DEVICE int g(int n) {\n  return n + kF;\n}\n"},
    /* all calls or none; other words are no calls */
    {"\nCBGEN_DEVICE int g(int n) {\n  const int at = n;\n  return f(n) + f(at) + n;\n}\n", NULL},
    {"\nCBGEN_DEVICE int g(int n) {\n  const int f = n;\n  return f + a.f(n) + my_f(n) + f_vector(n);\n}\n",
     "\nCBGEN_DEVICE int g(int n) {\n  const int f = n;\n  return f + a.f(n) + my_f(n) + f_vector(n);\n}\n"},
};

static void calls_become_constants_where_nothing_is_left_unused(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct cb_text text = {0};
    cb_text_add_string(&text, cases[i].before);
    const int done = cb_constant_instead(&text, "f", "kF");
    if (done != (cases[i].after != NULL)) fail_msg("case %zu: %s", i, cases[i].before);
    assert_string_equal(cb_text_string(&text), done ? cases[i].after : cases[i].before);
    cb_text_release(&text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(calls_become_constants_where_nothing_is_left_unused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
