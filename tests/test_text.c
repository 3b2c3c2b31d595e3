// SPDX-License-Identifier: Apache-2.0
/* Properties of generated text that hold for every kernel: nothing unused, nothing without an origin, no trace of
 * a format that does not occur, the same bytes every time; and that the generator refuses broken templates and
 * intrinsics that the host emulation lacks. */
#include "tests/support.h"

#include "codegen/check.h"
#include "codegen/expand.h"

#include <ctype.h>

static const char *const matrices[] = {
    "diagonal,n=100", "dense,rows=40,cols=33", "random,rows=200,cols=170,density=0.02",
    "random,rows=160,cols=160,density=0.3", "empty,rows=20,cols=5", "dense_row,n=300", "stencil7,n=6",
};
static const char *const option_sets[] = {
    "", "type=f32 form=ax", "form=add intra=off", "aggregate=on team=1", "aggregate=off team=8", "balance=heap",
    "balance=heap atomics=on", "unit-budget=16", "th1=0 th2=256", "th1=257 th2=256", "th1=0 th2=0",
    "recipe=cb-long long-row=5", "bake-limit=16384", "bake-limit=0",
    "recipe=sell", "recipe=sell sell-lanes=4 sell-sort=on", "recipe=sell sell-vary=on form=ax", "recipe=auto",
};

enum {
  MATRICES = sizeof matrices / sizeof *matrices,
  OPTION_SETS = sizeof option_sets / sizeof *option_sets,
};

/* Made once: a product, its name, and the text behind the shims and before the host section. */
static struct text {
  struct product product;
  char name[200];
  char *device;
} texts[MATRICES][OPTION_SETS];

static int make_texts(void **state) {
  (void)state;
  for (int m = 0; m < MATRICES; m++)
    for (int o = 0; o < OPTION_SETS; o++) {
      struct text *text = &texts[m][o];
      snprintf(text->name, sizeof text->name, "%s with '%s'", matrices[m], option_sets[o]);
      text->product = product_of(matrices[m], option_sets[o]);
      text->device = strdup(text->product.source.text + text->product.source.body);
      char *host = strstr(text->device, "// ---- host:");
      if (!host) return -1;
      *host = 0;
    }
  return 0;
}

static int release_texts(void **state) {
  (void)state;
  for (int m = 0; m < MATRICES; m++)
    for (int o = 0; o < OPTION_SETS; o++) {
      free(texts[m][o].device);
      product_release(&texts[m][o].product);
    }
  return 0;
}

static void for_every_text(void (*check)(const struct product *, const char *device, const char *name)) {
  for (int m = 0; m < MATRICES; m++)
    for (int o = 0; o < OPTION_SETS; o++)
      check(&texts[m][o].product, texts[m][o].device, texts[m][o].name);
}

/* Occurrences of `word` as a whole identifier. */
static int occurrences(const char *text, const char *word, size_t length) {
  int count = 0;
  for (const char *at = strstr(text, word); at; at = strstr(at + 1, word)) {
    const char before = at == text ? ' ' : at[-1], after = at[length];
    count += !(isalnum((unsigned char)before) || before == '_') && !(isalnum((unsigned char)after) || after == '_');
  }
  return count;
}

/* Calls `found` with each identifier that follows `prefix` (and a type) at the start of a line. */
static void declared_after(const char *text, const char *prefix, const char *name,
                           void (*found)(const char *text, const char *word, const char *name)) {
  for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
    if (strncmp(line, prefix, strlen(prefix))) continue;
    const char *stop = line + strcspn(line, "=({;\n");
    while (stop > line && !(isalnum((unsigned char)stop[-1]) || stop[-1] == '_')) stop--;
    const char *start = stop;
    while (start > line && (isalnum((unsigned char)start[-1]) || start[-1] == '_')) start--;
    char word[80];
    snprintf(word, sizeof word, "%.*s", (int)(stop - start), start);
    found(text, word, name);
  }
}

static void must_be_used(const char *text, const char *word, const char *name) {
  if (occurrences(text, word, strlen(word)) < 2) fail_msg("%s: '%s' is declared and not used", name, word);
}

static void check_unused(const struct product *product, const char *device, const char *name) {
  (void)product;
  declared_after(device, "constexpr ", name, must_be_used);
  declared_after(device, "CBGEN_DEVICE ", name, must_be_used);
  declared_after(device, "  const uint", name, must_be_used);
  declared_after(device, "struct ", name, must_be_used);
}
static void nothing_is_unused(void **state) {
  (void)state;
  for_every_text(check_unused);
}

static void check_origins(const struct product *product, const char *device, const char *name) {
  (void)product;
  for (const char *at = strstr(device, "\nconstexpr "); at; at = strstr(at + 1, "\nconstexpr "))
    if (!memmem(at, strcspn(at + 1, "\n"), ";  // ", 6)) fail_msg("%s: no origin: %.60s", name, at + 1);
}
static void every_constant_has_an_origin(void **state) {
  (void)state;
  for_every_text(check_origins);
}

static void check_traces(const struct product *product, const char *device, const char *name) {
  static const char *const formats[][2] = {{"(coo ", "COO"}, {"(csr ", "CSR"}, {"(dense ", "Dense"}};
  for (int f = 0; f < 3; f++) {
    /* The summary in a region's heading names all three. */
    if (!strstr(product->plan->line, "(cb ")) continue;
    const int planned = strstr(product->plan->line, formats[f][0]) != NULL;
    const int headings = product->plan->regions_count;
    const int found = occurrences(device, formats[f][1], strlen(formats[f][1])) > headings;
    if (planned != found) fail_msg("%s: %s %s", name, formats[f][1], found ? "leaves a trace" : "is missing");
  }
}
static void absent_formats_leave_no_trace(void **state) {
  (void)state;
  for_every_text(check_traces);
}

static void check_layout(const struct product *product, const char *device, const char *name) {
  int depth = 0, column = 0;
  (void)product;
  assert_null(strstr(device, "#if"));
  for (const char *at = device; *at; at++) {
    if (*at == '\n') {
      if (at > device && at[-1] == ' ') fail_msg("%s: blanks at the end of a line", name);
      if (column > 120 && !memmem(at - column, (size_t)column, "CBGEN_KERNEL", 12) &&
          !memmem(at - column, (size_t)column, "//", 2))
        fail_msg("%s: a line of %d columns: %.*s", name, column, column, at - column);
      column = 0;
      continue;
    }
    if (*at == '\t') fail_msg("%s: a tab", name);
    /* Depth 1 is the region's namespace, which does not indent. */
    if (column == 0 && depth > 1 && isalnum((unsigned char)*at)) fail_msg("%s: not indented: %.40s", name, at);
    depth += *at == '{';
    depth -= *at == '}';
    column++;
  }
  assert_int_equal(depth, 0);
}
static void text_is_laid_out(void **state) {
  (void)state;
  for_every_text(check_layout);
}

static void check_repeat(const struct product *product, const char *device, const char *name) {
  struct cb_source again;
  struct cb_diag diag = {0};
  (void)device;
  (void)name;
  const struct cb_label label = {"test", "test", cb_csr_pattern_hash(product->csr)};
  assert_ok(cb_source_emit(&again, product->plan, &label, &product->blob, CB_EMBED_NEVER, &diag));
  assert_string_equal(again.text, product->source.text);
  assert_int_equal(again.length, (int64_t)strlen(again.text));
  cb_source_release(&again);
}
static void the_same_plan_gives_the_same_bytes(void **state) {
  (void)state;
  for_every_text(check_repeat);
}

/* Values are data: two matrices that differ only there have one text. */
static void values_do_not_enter_the_text(void **state) {
  (void)state;
  struct product one = product_of("stencil5,n=9,values=uniform", "");
  struct product other = product_of("stencil5,n=9,values=integers", "");
  assert_string_equal(one.source.text, other.source.text);
  product_release(&one);
  product_release(&other);
}

static void labels_cannot_break_the_text(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct product product = product_of("diagonal,n=4", "");
  struct cb_source source;
  const struct cb_label label = {"evil\n#error \\", "m", {0, 0}};
  assert_ok(cb_source_emit(&source, product.plan, &label, NULL, CB_EMBED_AUTO, &diag));
  assert_null(strstr(source.text, "\n#error"));
  assert_null(strstr(source.text, "\\\n"));
  cb_source_release(&source);
  product_release(&product);
  char symbol[49];
  cb_symbol_from("2dcyl1 ä.mtx", symbol);
  assert_string_equal(symbol, "m_2dcyl1____mtx");
  cb_symbol_from("", symbol);
  assert_string_equal(symbol, "m_");
}

static void embedding_follows_the_size(void **state) {
  (void)state;
  struct cb_blob small = {.length = 1 << 20}, large = {.length = (1 << 20) + 1};
  assert_true(cb_source_embeds(&small, CB_EMBED_AUTO));
  assert_false(cb_source_embeds(&large, CB_EMBED_AUTO));
  assert_true(cb_source_embeds(&large, CB_EMBED_ALWAYS));
  assert_false(cb_source_embeds(&small, CB_EMBED_NEVER));
  assert_false(cb_source_embeds(NULL, CB_EMBED_ALWAYS));
}

/* What `template` becomes with value "v", and with sections "a" and "b" of which b is wanted. */
static enum cb_status expand_with(struct cb_text *text, const char *template, struct cb_diag *diag) {
  const struct cb_embedded_file file = {"templates/test.cu.in", template, strlen(template)};
  struct cb_scope scope = {0};
  cb_scope_hole(&scope, "v", "value");
  cb_scope_section(&scope, "b");
  return cb_expand_file(text, &file, &scope, diag);
}

static void templates_say_what_they_become(void **state) {
  (void)state;
  static const struct {
    const char *template, *text;
  } cases[] = {
      {"one @v@ two\n", "one value two\n"},
      {"@# a note\n  x\n", "  x\n"},
      {"@section b\n  in\n@else\n  out\n@end\n", "  in\n"},
      {"@section a\n  in\n@else\n  out\n@end\n", "  out\n"},
      {"@section !a\n@section b\nboth\n@end\n@end\nafter\n", "both\nafter\n"},
      {"@section a\n@section b\nhidden @nobody@\n@end\n@else\nseen\n@end\n", "seen\n"},
      {"f(@if a@x@else@y@end@, @if !b@@v@ @end@z)\n", "f(y, z)\n"},
      {"@if b@1@if a@2@else@3@end@4@end@5\n", "1345\n"},
      {"@if a@1@if b@2@else@3@end@4@end@5\n", "5\n"},
      {"@if b@@v@@end@\n", "value\n"},
      {"@define twice\nline @v@\n@section a\nno\n@end\n@end\n  @include twice\n@include twice\n",
       "  line value\nline value\n"},
      {"#pragma unroll@if a@ 1@end@\n\n", "#pragma unroll\n\n"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct cb_text text = {0};
    struct cb_diag diag = {0};
    assert_ok(expand_with(&text, cases[i].template, &diag));
    assert_string_equal(cb_text_string(&text), cases[i].text);
    cb_text_release(&text);
  }
}

/* What a region's text uses is found by its words: whole ones, and none of comments. */
static void words_are_whole_and_outside_comments(void **state) {
  static const struct {
    const char *text, *word;
    int found;
  } cases[] = {
      {"x = value(i);", "value", 1}, {"value", "value", 1},       {"values(i)", "value", 0},
      {"my_value", "value", 0},      {"value2 value", "value", 1}, {"// value\nx", "value", 0},
      {"a / b; value", "value", 1},  {"// a\nvalue", "value", 1}, {"x;  // a value\nvalues // value", "value", 0},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (cb_has_word(cases[i].text, cases[i].word) != cases[i].found) fail_msg("'%s'", cases[i].text);
}

static void broken_templates_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *template, *message;
  } cases[] = {
      {"x\n@nobody@\n", "templates/test.cu.in:2: no value for hole 'nobody'"},
      {"x @v\n", "templates/test.cu.in:1: a hole is not closed"},
      {"x\ny\n@section b\n", "templates/test.cu.in:3: '@section' without '@end'"},
      {"@section b\n@else\n@else\n@end\n", "templates/test.cu.in:1: '@section' without '@end'"},
      {"@end\n", "templates/test.cu.in:1: no section is open"},
      {"@if b@x\n", "templates/test.cu.in:1: a condition is not closed"},
      {"x@end@\n", "templates/test.cu.in:1: no condition is open"},
      {"@include nobody\n", "templates/test.cu.in:1: nothing to include as 'nobody'"},
      {"@define self\n@include self\n@end\n@include self\n", "templates/test.cu.in includes itself"},
  };
  struct cb_diag diag = {0};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct cb_text text = {0};
    assert_int_equal(expand_with(&text, cases[i].template, &diag), CB_ERR_INTERNAL);
    assert_string_equal(diag.message, cases[i].message);
    cb_text_release(&text);
  }
  struct cb_text text = {0};
  struct cb_scope scope = {0};
  assert_int_equal(cb_expand(&text, "no_such", &scope, &diag), CB_ERR_INTERNAL);
  assert_string_equal(diag.message, "no template 'templates/no_such.cu.in'");
  cb_scope_hole(&scope, "too_much", "");
  assert_int_equal(cb_scope_check(&scope, "the test", &diag), CB_ERR_INTERNAL);
  assert_string_equal(diag.message, "the test gives 'too_much' a value that no hole uses");
  scope = (struct cb_scope){0};
  cb_scope_section(&scope, "nowhere");
  assert_int_equal(cb_scope_check(&scope, "the test", &diag), CB_ERR_INTERNAL);
  assert_string_equal(diag.message, "the test wants a section 'nowhere' that its template does not have");
}

static void foreign_intrinsics_are_refused(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  static const char *const bad[] = {"__nanosleep(5);", "x = __double2int_rn(y);", "asm(\"\");", "threadIdx.y",
                                    "blockIdx.z",      "gridDim.x",               "  __shfl(v, 1)",  "printf(\"\")"};
  static const char *const good[] = {"__shfl_sync(m, v, 1)", "threadIdx.x + blockIdx.x", "// __nanosleep in a comment",
                                     "my__name", "__shared__ int a;"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    if (cb_check_intrinsics(bad[i], &diag) != CB_ERR_INTERNAL) fail_msg("'%s' was let through", bad[i]);
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) assert_ok(cb_check_intrinsics(good[i], &diag));
  assert_int_equal(cb_check_intrinsics("int a;\n  __trap();", &diag), CB_ERR_INTERNAL);
  assert_non_null(strstr(diag.message, "'__trap' (line 2"));
}

static void messages_are_one_line_and_command_no_terminal(void **state) {
  static const struct {
    const char *name, *shown;
  } names[] = {
      {"plain é ∈ 𝒜.mtx", "plain é ∈ 𝒜.mtx"},
      {"a\nb\tc\rd", "a\\x0ab\\x09c\\x0dd"},
      {"\x1b[31mred\x07\x7f", "\\x1b[31mred\\x07\\x7f"},
      {"\xc2\x9b" "31m", "\\xc2\\x9b31m"},      /* the other set of control characters */
      {"\x9b" "31m\xe2\x88", "\\x9b31m\\xe2\\x88"}, /* no UTF-8 */
      {"\xc0\x8a", "\\xc0\\x8a"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    struct cb_diag diag = {0}, again = {0};
    char expected[200];
    assert_int_equal(cb_fail(&diag, CB_ERR_IO, "cannot open '%s'", names[i].name), CB_ERR_IO);
    snprintf(expected, sizeof expected, "cannot open '%s'", names[i].shown);
    assert_string_equal(diag.message, expected);
    cb_fail(&again, CB_ERR_IO, "%s", diag.message); /* what is escaped stays as it is */
    assert_string_equal(again.message, expected);
  }
  struct cb_diag diag = {0};
  cb_fail_lines(&diag, CB_ERR_COMPILE, "k0.cu:1: error\n\tint \x1b[2J;");
  assert_string_equal(diag.message, "k0.cu:1: error\n\tint \\x1b[2J;");
  char small[6];
  cb_escape(small, sizeof small, "ab\ncd", ""); /* never a part of an escape */
  assert_string_equal(small, "ab");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_is_unused),
      cmocka_unit_test(every_constant_has_an_origin),
      cmocka_unit_test(absent_formats_leave_no_trace),
      cmocka_unit_test(text_is_laid_out),
      cmocka_unit_test(the_same_plan_gives_the_same_bytes),
      cmocka_unit_test(values_do_not_enter_the_text),
      cmocka_unit_test(labels_cannot_break_the_text),
      cmocka_unit_test(embedding_follows_the_size),
      cmocka_unit_test(templates_say_what_they_become),
      cmocka_unit_test(words_are_whole_and_outside_comments),
      cmocka_unit_test(broken_templates_are_refused),
      cmocka_unit_test(foreign_intrinsics_are_refused),
      cmocka_unit_test(messages_are_one_line_and_command_no_terminal),
  };
  return cmocka_run_group_tests(tests, make_texts, release_texts);
}
