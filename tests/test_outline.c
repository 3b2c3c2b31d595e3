// SPDX-License-Identifier: Apache-2.0
/* Outlines (codegen/outline.h): a family's text, which is written from one, is the one that the whole plan gives; plans
 * of one outline have one text; and what changes a text changes the outline. */
#include "kernels.h"
#include "recipes.h"

#include "codegen/family.h"
#include "codegen/outline.h"

static const char *const shapes[] = {
    "empty,rows=7,cols=0",
    "diagonal,n=256",
    "dense_row,n=300,row=150",
    "random,rows=257,cols=33,density=0.1",
    "random,rows=150,cols=170,density=0.001",
    "dense,rows=50,cols=40",
    "stencil9,n=9",
    "stencil7,n=8",
    "fe3,n=3",
    "rmat,scale=9,edge_factor=8",
    "diagonals,n=140,count=7,spread=60,fill=0.7",
    "powerlaw,rows=150,cols=400,max=350,min=0",
    "block,blocks_r=20,blocks_c=20,r=3,c=3,per_row=4,fill=0.9",
    "hypersparse,rows=900,cols=900,keep=0.02,per_row=3",
    "long_row,rows=120,cols=3000,per_row=3,long_rows=2,long_length=2500",
    "random,rows=40,cols=70000,per_row=9",
};
enum { SHAPES = sizeof shapes / sizeof *shapes, MOST = 2000 };

/* What was met, one of each outline. */
struct met {
  struct cb_hash outline;
  char *text;
};

/* 0: it has no family, or the matrix is refused. */
static int make_plan(struct kernel *kernel, const char *shape, const char *words, int number) {
  struct cb_diag diag = {0};
  struct cb_options options;
  struct cb_target target;
  set_family_options(&options, words, number);
  assert_int_equal(cb_target_find(&target, "sm_90", &diag), CB_OK);
  if (cb_matrix_generate(&kernel->csr, shape, &diag)) fail_msg("%s: %s", shape, diag.message);
  const enum cb_status s = cb_plan_build(&kernel->plan, &kernel->assignment, &kernel->csr, &target, &options, &diag);
  if (s && s != CB_ERR_UNSUPPORTED && s != CB_ERR_LIMIT) fail_msg("%s %s: %s", shape, words, diag.message);
  return !s && !cb_family_check(kernel->plan, NULL);
}

/* The device's part of the text that is written from the whole plan, without the lines between it and the host's. */
static char *text_of_plan(const struct cb_plan *plan) {
  static const char host[] = "\n// ---- host: load";
  const struct cb_label label = {.matrix = CB_FAMILY_SYMBOL, .symbol = CB_FAMILY_SYMBOL};
  struct cb_source source;
  struct cb_text text = {0};
  struct cb_diag diag = {0};
  if (cb_source_emit_tier(&source, plan, &label, NULL, CB_EMBED_NEVER, CB_TIER_FAMILY, &diag))
    fail_msg("%s", diag.message);
  const char *body = source.text + source.body, *end = strstr(body, host);
  assert_non_null(end);
  cb_text_add_bytes(&text, body, (size_t)(end - body));
  cb_family_leave_out_objects(&text);
  cb_source_release(&source);
  return cb_text_detach(&text);
}

static void check_text(const struct cb_plan *plan, const struct cb_source *family, const char *name) {
  char *text = text_of_plan(plan);
  const char *body = family->text + family->body;
  size_t length = strlen(text), of_body = strlen(body);
  while (length && text[length - 1] == '\n') length--;
  while (of_body && body[of_body - 1] == '\n') of_body--;
  if (length != of_body || memcmp(text, body, length) != 0)
    fail_msg("%s: the outline lacks something that the text hangs on\n%s", name, plan->line);
  cb_free(text);
}

static int same(struct cb_hash a, struct cb_hash b) { return !memcmp(&a, &b, sizeof a); }

/* Returns whether the outline is new. */
static int meet(struct met *met, int count, struct cb_hash outline, const char *text, const char *name) {
  for (int i = 0; i < count; i++) {
    if (!same(met[i].outline, outline)) continue;
    if (strcmp(met[i].text, text) != 0) fail_msg("%s: another text of the same outline", name);
    return 0;
  }
  met[count] = (struct met){outline, strdup(text)};
  return 1;
}

static int count_texts(const struct met *met, int count) {
  int texts = 0;
  for (int i = 0; i < count; i++) {
    int k = 0;
    while (strcmp(met[k].text, met[i].text) != 0) k++;
    texts += k == i;
  }
  return texts;
}

static void an_outline_is_all_that_a_text_hangs_on(void **state) {
  enum { CROSSINGS = 16, SHAPES_OF_EACH = 4, STEP = 7 };
  static struct met met[MOST];
  char words[SETTINGS];
  int count = 0, plans = 0;
  (void)state;
  omp_set_num_threads(1);
  for (int number = 0; next_settings(words, number, CROSSINGS); number++)
    for (int k = 0; k < SHAPES_OF_EACH; k++) {
      struct kernel kernel = {0};
      struct cb_outline outline;
      struct cb_source family;
      struct cb_diag diag = {0};
      if (make_plan(&kernel, shapes[(number + STEP * k) % SHAPES], words, number + k)) {
        assert_int_equal(cb_outline_make(&outline, kernel.plan, &diag), CB_OK);
        if (cb_source_outlined(&family, &outline, &diag)) fail_msg("%s: %s", words, diag.message);
        check_text(kernel.plan, &family, words);
        assert_true(count < MOST);
        count += meet(met, count, outline.hash, family.text, words);
        plans++;
        cb_source_release(&family);
        cb_outline_release(&outline);
      }
      release_kernel(&kernel);
    }
  const int texts = count_texts(met, count);
  print_message("%d plans, %d outlines, %d texts\n", plans, count, texts);
  assert_true(plans > 300 && texts > 100);
  assert_true(count <= texts + texts / 5); /* nearly all that differ in what their text hangs on */
  for (int i = 0; i < count; i++) free(met[i].text);
}

static struct cb_hash outline_of(const char *shape, const char *words) {
  struct kernel kernel = {0};
  struct cb_outline outline;
  assert_true(make_plan(&kernel, shape, words, 0));
  assert_int_equal(cb_outline_make(&outline, kernel.plan, NULL), CB_OK);
  const struct cb_hash hash = outline.hash;
  cb_outline_release(&outline);
  release_kernel(&kernel);
  return hash;
}

static void sizes_change_no_outline(void **state) {
  (void)state;
  assert_true(same(outline_of("stencil9,n=60", "recipe=dia"), outline_of("stencil9,n=70", "recipe=dia")));
  assert_true(same(outline_of("stencil9,n=60", "recipe=sell"), outline_of("stencil9,n=70", "recipe=sell")));
  assert_true(same(outline_of("fe3,n=8", "recipe=blocks"), outline_of("fe3,n=9", "recipe=blocks")));
  assert_true(same(outline_of("rmat,scale=9,edge_factor=8", "recipe=merge"),
                   outline_of("rmat,scale=10,edge_factor=9", "recipe=merge")));
}

static void structure_changes_it(void **state) {
  static const char *const words[] = {"recipe=merge merge-items=3", "recipe=merge merge-items=5",
                                      "recipe=sell sell-lanes=2 sell-sort=off sell-vary=off",
                                      "recipe=sell sell-lanes=4 sell-sort=off sell-vary=off",
                                      "recipe=merge merge-items=3 type=f32"};
  enum { COUNT = sizeof words / sizeof *words };
  struct cb_hash hashes[COUNT];
  (void)state;
  for (int i = 0; i < COUNT; i++) {
    hashes[i] = outline_of("rmat,scale=9,edge_factor=8", words[i]);
    for (int k = 0; k < i; k++) assert_false(same(hashes[i], hashes[k]));
  }
}

static void a_plan_without_a_family_has_none(void **state) {
  struct kernel kernel = {0};
  struct cb_outline outline;
  struct cb_diag diag = {0};
  (void)state;
  assert_false(make_plan(&kernel, "stencil9,n=9", "recipe=sell values=fixed", 0));
  assert_int_equal(cb_outline_make(&outline, kernel.plan, &diag), CB_ERR_UNSUPPORTED);
  cb_outline_release(&outline);
  release_kernel(&kernel);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_outline_is_all_that_a_text_hangs_on),
      cmocka_unit_test(sizes_change_no_outline),
      cmocka_unit_test(structure_changes_it),
      cmocka_unit_test(a_plan_without_a_family_has_none),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
