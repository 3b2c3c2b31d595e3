// SPDX-License-Identifier: Apache-2.0
/* Pieces of a page: what is a value means itself, and what does not fit its template is an error. */
#include "tests/support.h"

#include "tool/html.h"

static const struct cb_embedded_file page = {"page.in",
                                             "@define row\n<b title=\"@name@\">@TEXT@@if new@ new@end@</b>\n@end\n"
                                             "@define bare\n<hr>\n@end\n", 0};

static void check_escaped(const char *from, const char *to) {
  struct cb_text text = {0};
  cb_html_escape(&text, from, strlen(from));
  assert_string_equal(cb_text_string(&text), to);
  cb_text_release(&text);
}

static void what_would_be_markup_is_text(void **state) {
  (void)state;
  check_escaped("", "");
  check_escaped("a<b>&\"c\"'d'", "a&lt;b&gt;&amp;&quot;c&quot;&#39;d&#39;");
  check_escaped("é → 10⁸ 😀\n\t", "é → 10⁸ 😀\n\t");
  check_escaped("&amp;", "&amp;amp;");
}

static void what_is_no_text_is_replaced(void **state) {
  static const char *const broken[] = {"\x80",     "\xc3",         "\xc0\xaf", "\xe2\x82",         "\xed\xa0\x80",
                                       "\xf5\x80", "\xf4\x90\x80", "\x1b",     "\x7f", "\xe0\x80\x80"};
  (void)state;
  for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
    struct cb_text given = {0}, text = {0};
    cb_text_add(&given, "a%sb", broken[i]);
    cb_html_escape(&text, given.bytes, given.length);
    const char *at = cb_text_string(&text) + 1;
    assert_int_equal(*cb_text_string(&text), 'a');
    for (; !strncmp(at, "\xef\xbf\xbd", 3); at += 3) {}
    assert_string_equal(at, "b");
    assert_true(text.length > 2);
    cb_text_release(&given);
    cb_text_release(&text);
  }
}

static void pieces_follow_each_other(void **state) {
  struct cb_diag diag = {0};
  struct cb_html html = {.file = &page, .diag = &diag};
  char longer[6000];
  (void)state;
  memset(longer, 'x', sizeof longer - 1);
  longer[sizeof longer - 1] = 0;
  cb_html_set(&html, "name", "%s \"%d\"", "a", 7);
  cb_html_markup(&html, "TEXT", "<i>b</i>");
  cb_html_add(&html, "row");
  cb_html_add_inline(&html, "bare");
  cb_html_set(&html, "name", "%s", longer);
  cb_html_markup(&html, "TEXT", "");
  cb_html_has(&html, "new");
  cb_html_add(&html, "row");
  assert_int_equal(html.status, CB_OK);
  const char *at = cb_text_string(&html.text), begin[] = "<b title=\"a &quot;7&quot;\"><i>b</i></b>\n<hr><b title=\"";
  assert_int_equal(strncmp(at, begin, strlen(begin)), 0);
  assert_int_equal(strncmp(at + strlen(begin), longer, strlen(longer)), 0);
  assert_string_equal(at + strlen(begin) + strlen(longer), "\"> new</b>\n");
  cb_html_release(&html);
}

/* The first failure stays, and reaches the page that receives the pieces. */
static void what_does_not_fit_fails(void **state) {
  static const char *const reasons[] = {"no value for placeholder 'TEXT'", "gives 'more' a value", "does not define 'none'"};
  (void)state;
  for (int i = 0; i < 3; i++) {
    struct cb_diag diag = {0};
    struct cb_html html = {.file = &page, .diag = &diag}, whole = {.file = &page, .diag = &diag};
    if (i < 2) cb_html_set(&html, "name", "a");
    if (i == 1) cb_html_markup(&html, "TEXT", "b");
    if (i == 1) cb_html_set(&html, "more", "c");
    cb_html_add(&html, i < 2 ? "row" : "none");
    assert_int_equal(html.status, CB_ERR_INTERNAL);
    assert_non_null(strstr(diag.message, reasons[i]));
    cb_html_add(&html, "bare");
    assert_non_null(strstr(diag.message, reasons[i]));
    cb_html_take(&html, &whole);
    assert_int_equal(whole.status, CB_ERR_INTERNAL);
    cb_html_release(&html);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_would_be_markup_is_text),
      cmocka_unit_test(what_is_no_text_is_replaced),
      cmocka_unit_test(pieces_follow_each_other),
      cmocka_unit_test(what_does_not_fit_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
