// SPDX-License-Identifier: Apache-2.0
/* Properties of generated text that hold for every kernel: nothing unused, nothing without an origin, no trace of
 * a format that does not occur, the same bytes every time; and that the generator refuses broken templates and
 * intrinsics that the host emulation lacks. */
#include "tests/support.h"

#include "analysis/plan/recipe.h"
#include "base/json.h"
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

/* Made once: a product, its name, and the text behind the device prelude and before the host section; the same with the
 * prelude, and without comments. */
static struct text {
  struct product product;
  char name[200];
  char *device, *code;
} texts[MATRICES][OPTION_SETS];

static char *without_comments(const char *text) {
  char *code = strdup(text), *to = code;
  for (const char *at = code; *at;) {
    if (at[0] == '/' && at[1] == '/') at += strcspn(at, "\n");
    else *to++ = *at++;
  }
  *to = 0;
  return code;
}

static int make_texts(void **state) {
  (void)state;
  for (int m = 0; m < MATRICES; m++)
    for (int o = 0; o < OPTION_SETS; o++) {
      struct text *text = &texts[m][o];
      snprintf(text->name, sizeof text->name, "%s with '%s'", matrices[m], option_sets[o]);
      text->product = product_of(matrices[m], option_sets[o]);
      text->device = strdup(text->product.source.text + text->product.source.body);
      text->code = without_comments(text->product.source.text);
      char *host = strstr(text->device, "// ---- host:"), *guard = strstr(text->code, "#ifndef __CUDACC_RTC__");
      if (!host || !guard) return -1;
      *host = 0;
      *guard = 0;
    }
  return 0;
}

static int release_texts(void **state) {
  (void)state;
  for (int m = 0; m < MATRICES; m++)
    for (int o = 0; o < OPTION_SETS; o++) {
      free(texts[m][o].device);
      free(texts[m][o].code);
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

/* The same of the whole text for the device: types, macros and templates, which no compiler reports, too. */
static void the_prelude_has_what_is_used_alone(void **state) {
  static const char *const prefixes[] = {"using ", "#define CBGEN_QUOTE", "#define CBGEN_NUMBER", "constexpr ", "template ",
                                         "struct ", "CBGEN_DEVICE ", "__host__ ", "extern "};
  (void)state;
  for (int m = 0; m < MATRICES; m++)
    for (int o = 0; o < OPTION_SETS; o++) {
      const struct text *text = &texts[m][o];
      for (size_t p = 0; p < sizeof prefixes / sizeof *prefixes; p++)
        declared_after(text->code, prefixes[p], text->name, must_be_used);
      assert_null(strstr(text->code, "#if"));
    }
}

/* What a text uses is in it, with what that uses in turn. */
static void used_sections_bring_what_they_use(void **state) {
  static const struct {
    const char *users, *has, *lacks;
  } cases[] = {
      {"int a;", "// ---- end of the device prelude", "using "},
      {"// load_l2(p)\n", "// ---- end of the device prelude", "load_l2"},
      {"load_stream(p)", "using uint16_t = ", "half_t"},
      {"half_t h;", "using uint16_t = ", "uint64_t"},
      {"wait_for_previous();", "int number_of(", "blocks_that_fit"},
      {"my_load(p)", "// ---- device prelude", "load("},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct cb_text text = {0};
    struct cb_diag diag = {0};
    assert_ok(cb_expand_used(&text, "prelude", cases[i].users, &diag));
    if (!strstr(cb_text_string(&text), cases[i].has)) fail_msg("'%s' does not bring '%s'", cases[i].users, cases[i].has);
    if (strstr(cb_text_string(&text), cases[i].lacks)) fail_msg("'%s' brings '%s'", cases[i].users, cases[i].lacks);
    cb_text_release(&text);
  }
}

/* A plan's JSON is what jansson would write of it; so is every line. */
static void check_json(const struct product *product, const char *device, const char *name) {
  struct cb_text json = {0}, again = {0};
  struct cb_diag diag = {0};
  int failed = 0;
  json_t *root;
  (void)device;
  assert_ok(cb_plan_json(product->plan, &json, &diag));
  assert_ok(cb_json_read(&root, cb_text_string(&json), json.length, &diag));
  assert_ok(cb_json_write(&again, (struct cb_json){root, &failed}, JSON_INDENT(2), "a plan", &diag));
  cb_text_add_string(&again, "\n");
  if (strcmp(cb_text_string(&json), cb_text_string(&again))) fail_msg("%s: %s", name, cb_text_string(&json));
  cb_text_release(&json);
  cb_text_release(&again);
}
static void plans_are_written_as_documents_are(void **state) {
  static const char *const strange[] = {"", "plain ~", "\"quoted\" \\ back", "\t\n\x01\x7f", "\xc3\xb6\xc3\x9f", "\xff",
                                        "a/b"};
  static const int64_t integers[] = {0, -1, INT64_MAX, INT64_MIN, 1234567890123};
  struct cb_text lines = {0}, document = {0};
  struct cb_json_lines own = {.text = &lines};
  struct cb_diag diag = {0};
  int failed = 0;
  (void)state;
  const struct cb_json root = cb_json_object(&failed), list = cb_json_array(&failed);
  cb_json_begin(&own, NULL, '{');
  cb_json_begin(&own, "list", '[');
  for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
    cb_json_line_text(&own, NULL, strange[i]);
    cb_json_append(list, cb_json_text(strange[i]));
  }
  cb_json_end(&own, ']');
  cb_json_set(root, "list", list.json);
  for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
    const char key[] = {(char)('a' + i), 0};
    cb_json_line_integer(&own, key, integers[i]);
    cb_json_set_integer(root, key, integers[i]);
  }
  cb_json_line_flag(&own, "flag", 1);
  cb_json_set_flag(root, "flag", 1);
  cb_json_begin(&own, "empty", '{');
  cb_json_end(&own, '}');
  cb_json_set(root, "empty", cb_json_object(&failed).json);
  cb_json_end(&own, '}');
  assert_ok(cb_json_write(&document, root, JSON_INDENT(2), "a document", &diag));
  assert_string_equal(cb_text_string(&lines), cb_text_string(&document));
  cb_text_release(&lines);
  cb_text_release(&document);
  for_every_text(check_json);
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

/* Whether `name` gives an array in registers or static shared memory its extent, or is an argument of a template: then
 * no kernel can take it from memory. */
static int shapes_the_kernel(const char *text, const char *name) {
  for (const char *at = strstr(text, name); at; at = strstr(at + 1, name)) {
    const char *line = at, after = at[strlen(name)];
    if (at[-1] != '[' && at[-1] != '<' && at[-1] != ' ') continue;
    if (after != ']' && after != '>') continue;
    while (line > text && line[-1] != '\n') line--;
    const int dynamic = memmem(line, strcspn(line, "\n"), "DynamicShared<", 14) != NULL;
    const int element = after == ']' && !memmem(line, (size_t)(at - line), "sum_t ", 6) &&
                        !memmem(line, (size_t)(at - line), "int ", 4);
    if (!dynamic && !element) return 1;
  }
  return 0;
}

static void check_sizes(const struct product *product, const char *device, const char *name) {
  for (int r = 0; r < product->plan->regions_count; r++) {
    const struct cb_region *region = &product->plan->regions[r];
    for (int c = 0; c < region->constants_count; c++)
      if (region->constants[c].kind == CB_CONSTANT_SIZE && shapes_the_kernel(device, region->constants[c].name))
        fail_msg("%s: '%s' is no size: it shapes the kernel", name, region->constants[c].name);
  }
}
static void sizes_could_be_read_from_memory(void **state) {
  (void)state;
  for_every_text(check_sizes);
  const struct cb_recipe *recipe;
  for (int i = 0; (recipe = cb_recipe_at(i)); i++) {
    const char *matrix = recipe->example ? recipe->example : "random,rows=300,cols=280,density=0.05";
    char settings[200];
    snprintf(settings, sizeof settings, "recipe=%s %s", recipe->name, recipe->lenient ? recipe->lenient : "");
    struct product product = product_of(matrix, settings);
    check_sizes(&product, product.source.text + product.source.body, settings);
    product_release(&product);
  }
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

/* The comment's lines from "because" on, as one, without what they begin with. */
static char *because_of(const struct product *product) {
  static const char begin[] = "//   because ", next[] = "\n//           ";
  char *why = strdup(strstr(product->source.text, begin) + strlen(begin));
  *strstr(why, "\n//   target") = 0;
  for (char *more; (more = strstr(why, next));) {
    *more = ' ';
    memmove(more + 1, more + strlen(next), strlen(more + strlen(next)) + 1);
  }
  return why;
}

/* Those that were planned stand in the order of their times. */
static void check_order(const struct cb_plan *plan, const char *why) {
  for (int i = 0; i < plan->candidates_count; i++)
    for (int j = 0; j < plan->candidates_count; j++) {
      const struct cb_candidate *one = &plan->candidates[i], *other = &plan->candidates[j];
      char words[2][80];
      snprintf(words[0], sizeof words[0], " %s %.2f", one->recipe, 1e-3 * (double)one->cost.ns);
      snprintf(words[1], sizeof words[1], " %s %.2f", other->recipe, 1e-3 * (double)other->cost.ns);
      const char *at = strstr(why, words[0]), *behind = strstr(why, words[1]);
      if (!*one->refusal && !*other->refusal && at && behind && one->cost.ns < other->cost.ns) assert_true(at < behind);
    }
}

/* Every candidate is there: with its time, or with why it has none. */
static void the_text_says_why(void **state) {
  (void)state;
  for (int m = 0; m < MATRICES; m++) {
    struct product product = product_of(matrices[m], "recipe=auto tune=model");
    const struct cb_plan *plan = product.plan;
    char *why = because_of(&product), words[300];
    assert_true(plan->candidates_count > 3);
    snprintf(words, sizeof words, "%s %.2f us predicted", plan->recipe, 1e-3 * (double)plan->cost.ns);
    if (strncmp(why, words, strlen(words))) fail_msg("%s: '%s' does not begin with '%s'", matrices[m], why, words);
    for (int i = 0; i < plan->candidates_count; i++) {
      const struct cb_candidate *one = &plan->candidates[i];
      if (*one->refusal) snprintf(words, sizeof words, "; %s: ", one->recipe);
      else snprintf(words, sizeof words, " %s %.2f", one->recipe, 1e-3 * (double)one->cost.ns);
      if (strcmp(one->recipe, plan->recipe) && !strstr(why, words))
        fail_msg("%s: '%s' lacks '%s'", matrices[m], why, words);
    }
    check_order(plan, why);
    free(why);
    product_release(&product);
  }
}

/* A kernel takes the data of the same plan, whether its recipe was searched or named: the rest of the text is the
 * same. */
static void a_named_recipe_changes_the_comment_alone(void **state) {
  (void)state;
  struct product searched = product_of("fe3,n=6", "recipe=auto tune=model");
  char settings[64];
  snprintf(settings, sizeof settings, "recipe=%s", searched.plan->recipe);
  struct product named = product_of("fe3,n=6", settings);
  char *why = because_of(&named);
  assert_non_null(strstr(why, " was named; "));
  assert_memory_equal(&searched.plan->hash, &named.plan->hash, sizeof named.plan->hash);
  assert_string_not_equal(searched.source.text, named.source.text);
  assert_string_equal(strstr(searched.source.text, "//   target"), strstr(named.source.text, "//   target"));
  free(why);
  product_release(&searched);
  product_release(&named);
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
  cb_scope_placeholder(&scope, "v", "value");
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
      {"x\n@nobody@\n", "templates/test.cu.in:2: no value for placeholder 'nobody'"},
      {"x @v\n", "templates/test.cu.in:1: a placeholder is not closed"},
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
  cb_scope_placeholder(&scope, "too_much", "");
  assert_int_equal(cb_scope_check(&scope, "the test", &diag), CB_ERR_INTERNAL);
  assert_string_equal(diag.message, "the test gives 'too_much' a value that no placeholder uses");
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
      cmocka_unit_test(plans_are_written_as_documents_are),
      cmocka_unit_test(nothing_is_unused),
      cmocka_unit_test(the_prelude_has_what_is_used_alone),
      cmocka_unit_test(used_sections_bring_what_they_use),
      cmocka_unit_test(every_constant_has_an_origin),
      cmocka_unit_test(sizes_could_be_read_from_memory),
      cmocka_unit_test(absent_formats_leave_no_trace),
      cmocka_unit_test(text_is_laid_out),
      cmocka_unit_test(the_same_plan_gives_the_same_bytes),
      cmocka_unit_test(the_text_says_why),
      cmocka_unit_test(a_named_recipe_changes_the_comment_alone),
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
