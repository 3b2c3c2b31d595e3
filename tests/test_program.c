// SPDX-License-Identifier: Apache-2.0
/* Texts of programs: what they are made of for every recipe, and what NVRTC makes of them. */
#include "tests/nvrtc_support.h"
#include "tests/recipes.h"
#include "tests/support.h"

#include "codegen/program/batch.h"
#include "base/integers.h"
#include "codegen/program/form.h"
#include "codegen/program/fused.h"
#include "codegen/program/program.h"
#include "codegen/program/stages.h"
#include "codegen/source.h"
#include "runtime/cuda/spills.h"

static const char *const methods[] = {"cg", "bicgstab"}, *const other_methods[] = {"minres", "gmres", "chebyshev", "jacobi",
                                                                          "pagerank", "cg", "bicgstab"};

/* The program's text for a matrix in a form, or why there is none. */
static enum cb_status text_in_form(struct cb_text *text, const char *matrix, const char *settings,
                                   const struct cb_program *program, const struct cb_program_form *form,
                                   struct cb_program_shape *shape, struct cb_diag *diag) {
  struct product product = product_of(matrix, settings);
  const struct cb_plan *plan = product.plan;
  struct cb_program_launch launches[16];
  char names[16][96];
  const struct cb_label label = {"test", "test", {0, 0}};
  assert_true(plan->launches_count <= 16);
  for (int i = 0; i < plan->launches_count; i++) {
    cb_source_kernel(plan, &label, i, names[i], sizeof names[i]);
    launches[i] = (struct cb_program_launch){names[i], plan->launches[i].blocks, plan->launches[i].threads,
                                             plan->launches[i].dynamic_shared};
  }
  const struct cb_program_request request = {.program = program,
                                             .form = *form,
                                             .source = product.source.text,
                                             .launches = launches,
                                             .launches_count = plan->launches_count,
                                             .has_carry = plan->carry_sums > 0,
                                             .rows = plan->rows,
                                             .stored_bytes = form->apart ? 1 << 20 : 0,
                                             .sizes = {.restart = 20, .block_size = 3},
                                             .vector = plan->vector_type,
                                             .sum = plan->sum_type};
  const enum cb_status s = form->kind == CB_PROGRAM_GRAPH ? cb_fused_text(text, &request, 1, diag)
                                                          : cb_program_text(text, &request, shape, diag);
  product_release(&product);
  return s;
}

static enum cb_status text_of(struct cb_text *text, const char *matrix, const char *settings,
                              const struct cb_program *program, struct cb_diag *diag) {
  const struct cb_program_form grid = {.kind = CB_PROGRAM_GRID};
  struct cb_program_shape shape;
  return text_in_form(text, matrix, settings, program, &grid, &shape, diag);
}

/* ---- what a text is made of */

static int count_of(const char *text, const char *words) {
  int count = 0;
  for (; (text = strstr(text, words)); text += strlen(words)) count++;
  return count;
}

/* Every recipe's product becomes a program, or is refused with words that say what to do. */
static void every_recipe_has_programs_or_says_why(void **state) {
  const struct cb_recipe *recipe;
  int made = 0;
  (void)state;
  for (int i = 0; (recipe = cb_recipe_at(i)); i++)
    for (int m = 0; m < 2; m++) {
      const char *example = example_of(recipe);
      struct cb_text text = {0};
      struct cb_diag diag = {0};
      const enum cb_status s = text_of(&text, example ? example : "random,rows=300,cols=300,density=0.05",
                                       settings_of_recipe(recipe), cb_program_find(methods[m], 1), &diag);
      if (s) {
        assert_int_equal(s, CB_ERR_UNSUPPORTED);
        assert_non_null(strstr(diag.message, "choose another recipe"));
      } else {
        const char *body = strstr(cb_text_string(&text), "// ---- end of the device prelude");
        assert_int_equal(count_of(body, "CBGEN_KERNEL"), 1);
        assert_int_equal(count_of(body, "CBGEN_DEVICE void commit("), 0);
        made++;
      }
      cb_text_release(&text);
    }
  assert_true(made > 12);
}

/* Sums behind a product are added up in it where the same thread always commits a row. */
static void sums_are_fused_where_rows_have_one_thread(void **state) {
  static const struct {
    const char *matrix, *settings;
    int fused;
  } cases[] = {{"stencil7,n=8", "recipe=dia", 1},
               {"random,rows=300,cols=300,density=0.05", "recipe=sell", 1},
               {"random,rows=40,cols=5000,density=0.2", "recipe=cb unit-budget=512", 0}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct cb_text text = {0};
    struct cb_diag diag = {0};
    assert_ok(text_of(&text, cases[i].matrix, cases[i].settings, cb_program_find("cg", 0), &diag));
    assert_int_equal(strstr(cb_text_string(&text), "step.terms[0] += ") != NULL, cases[i].fused);
    /* Between products and rows, of first and last sections; and where a vector is made before a product. */
    assert_int_equal(count_of(strstr(cb_text_string(&text), "CBGEN_KERNEL void"), "meet_all("), cases[i].fused ? 2 : 5);
    cb_text_release(&text);
  }
}

/* Both products in one kernel, strictly compiled and without spills; or words that say what to do, of those that have
 * no room for their shared memory twice, as they are of the layout cb. */
static void every_recipe_with_heads_has_programs(void **state) {
  struct cb_nvrtc *nvrtc = open_nvrtc();
  const struct cb_recipe *recipe;
  int made = 0;
  (void)state;
  for (int i = 0; (recipe = cb_recipe_at(i)); i++) {
    const char *example = example_of(recipe);
    char settings[256];
    struct cb_text text = {0};
    struct cb_diag diag = {0};
    snprintf(settings, sizeof settings, "%s type=split-f64", settings_of_recipe(recipe));
    const enum cb_status s = text_of(&text, example ? example : "random,rows=300,cols=300,density=0.05", settings,
                                     cb_program_find("cg-mixed", i % 3), &diag);
    if (s) {
      assert_int_equal(s, CB_ERR_UNSUPPORTED);
      assert_non_null(strstr(diag.message, "choose another recipe"));
    } else {
      const struct cb_nvrtc_options options = {.arch = arch_in_turn(i), .strict = 1};
      struct cb_compiled compiled;
      if (cb_compile_fitting(&compiled, nvrtc, cb_text_string(&text), "program", &options, &diag))
        fail_msg("%s: %s", settings, diag.message);
      if (compiled.spilled_bytes) fail_msg("%s: %d bytes", settings, compiled.spilled_bytes);
      assert_int_equal(count_of(cb_text_string(&text), "namespace heads {"), 2);
      assert_null(strstr(cb_text_string(&text), "wait_behind")); /* nor is the next kernel told to start */
      assert_null(strstr(cb_text_string(&text), "start_next"));
      assert_null(strstr(cb_text_string(&text), "load_early"));
      assert_null(strstr(cb_text_string(&text), "using index_t = int64_t"));
      cb_compiled_release(&compiled);
      made++;
    }
    cb_text_release(&text);
  }
  assert_true(made > 15);
  cb_nvrtc_close(nvrtc);
}

/* Option program-loss: what suits solvers may be slower by so much, and not by more: beside which vectors find room;
 * where they meet once in an iteration, and systems are small, what commits rows in their order, as merge with all its
 * thread blocks there at once; and no rows in segments. Of matrices that are not square, of which linear programs are
 * made, what commits rows in order unless they are small. */
static void solvers_may_have_another_recipe(void **state) {
  static const char stairs[] = "staircase,n=800", uneven[] = "powerlaw,rows=20000,max=60,min=4",
                    even[] = "random,rows=3000,cols=3000,density=0.004",
                    long_rows[] = "long_row,rows=3000,cols=3000,per_row=5,long_rows=2,long_length=1800",
                    small[] = "random,rows=2400,cols=9000,density=0.004",
                    wide[] = "random,rows=20000,cols=80000,density=0.0005";
  static const struct {
    const char *matrix, *settings, *plan;
  } cases[] = {{stairs, "recipe=auto search=profile", "(items 3) (padded yes) (long 31)"},
               {stairs, "recipe=auto search=profile program-loss=1", "(items 3) (padded yes) (long 31)"},
               {stairs, "recipe=auto search=profile program-loss=2000", "(spmv (blocks"},
               {stairs, "recipe=auto search=hopeful program-loss=2000", "(spmv (blocks"},
               {stairs, "recipe=auto search=profile one-meeting=on program-loss=1", "(items 7) (padded yes) (empty"},
               {stairs, "recipe=auto search=hopeful one-meeting=on program-loss=2000", "(spmv (blocks"},
               {uneven, "recipe=auto search=profile program-loss=1500", "(sorted yes)"},
               {uneven, "recipe=auto search=profile one-meeting=on program-loss=1", "(sorted yes)"},
               {uneven, "recipe=auto search=profile one-meeting=on program-loss=1500", "(merge (tiles 105) (items 3)"},
               {uneven, "recipe=auto search=hopeful one-meeting=on program-loss=1500", "(merge (tiles 105) (items 3)"},
               {even, "recipe=auto search=profile one-meeting=on program-loss=5000", "(spmv (sell"},
               {even, "recipe=auto search=hopeful one-meeting=on program-loss=5000", "(spmv (sell"},
               {long_rows, "recipe=auto search=profile program-loss=5000", "(long 2)"},
               {long_rows, "recipe=auto search=hopeful one-meeting=on program-loss=5000", "(long 2)"},
               {wide, "recipe=auto search=profile", "(spmv (sell"},
               {wide, "recipe=auto search=profile program-loss=1", "(spmv (sell"},
               {wide, "recipe=auto search=profile program-loss=1000", "(spmv (merge (tiles 639) (items 5)"},
               {small, "recipe=auto search=profile program-loss=600", "(spmv (sell"},
               {small, "recipe=auto search=hopeful", "(spmv (sell"},
               {small, "recipe=auto search=hopeful program-loss=2000", "(spmv (sell"}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct product product = product_of(cases[i].matrix, cases[i].settings);
    if (!strstr(product.plan->line, cases[i].plan))
      fail_msg("%s, %s: %s", cases[i].matrix, cases[i].settings, product.plan->line);
    product_release(&product);
  }
}

/* A large product with shared memory of its own stays a kernel of its own, where the form is the library's choice. */
static void large_products_that_share_stay_apart(void **state) {
  static const char random[] = "random,rows=900,cols=900,density=0.03";
  static const struct {
    const char *settings, *method;
    int64_t apart;
    int refused;
  } cases[] = {{"recipe=merge", "cg", 1000, 1},
               {"recipe=merge", "cg", 1 << 30, 0},
               {"recipe=merge", "cg", 0, 0},
               {"recipe=merge", "gmres", 1000, 0},
               {"recipe=sell", "cg", 1000, 0}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct cb_program_form grid = {.kind = CB_PROGRAM_GRID, .apart = cases[i].apart};
    struct cb_program_shape shape;
    struct cb_text text = {0};
    struct cb_diag diag = {0};
    const enum cb_status s =
        text_in_form(&text, random, cases[i].settings, cb_program_find(cases[i].method, 0), &grid, &shape, &diag);
    if (s != (cases[i].refused ? CB_ERR_UNSUPPORTED : CB_OK)) fail_msg("%d: %s", (int)i, diag.message);
    cb_text_release(&text);
  }
}

/* One plan for products has as many tiles as it likes; one for solvers has those of the largest matrices four on each
 * multiprocessor, and beyond that what products have. */
static void merge_for_solvers_is_there_at_once(void **state) {
  static const struct {
    const char *matrix;
    int64_t most;
  } cases[] = {{"uniform,n=20000,per_row=20", 2}, {"uniform,n=60000,per_row=24", 4}, {"uniform,n=90000,per_row=40", INT64_MAX}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct product product = product_of(cases[i].matrix, "recipe=merge one-meeting=on"),
                   usual = product_of(cases[i].matrix, "recipe=merge");
    struct cb_target target;
    struct cb_diag diag = {0};
    assert_ok(cb_target_find(&target, "sm_90", &diag));
    if (cases[i].most == INT64_MAX) assert_string_equal(product.plan->line, usual.plan->line);
    else assert_true(product.plan->launches[0].blocks <= cases[i].most * target.multiprocessors);
    if (cases[i].most < INT64_MAX) assert_true(usual.plan->launches[0].blocks > cases[i].most * target.multiprocessors);
    product_release(&product);
    product_release(&usual);
  }
}

static void methods_have_names(void **state) {
  (void)state;
  assert_null(cb_program_find("sor", 0));
  assert_true(cb_program_find("cg", 0) != cb_program_find("cg", 1));
}

/* ---- NVRTC */

static const struct {
  const char *matrix, *settings;
} compiled[] = {{"random,rows=3000,cols=3000,density=0.01", "recipe=sell"},
                {"random,rows=3000,cols=3000,density=0.01", "recipe=sell type=f32"},
                {"random,rows=3000,cols=3000,density=0.01", "recipe=merge"},
                {"stencil7,n=30", "recipe=auto"},
                {"stencil27,n=12", "recipe=auto form=axpby"},
                {"fe3,n=9", "recipe=blocks"},
                {"stencil7,n=12", "recipe=auto type=c128"},
                {"random,rows=3000,cols=3000,density=0.01", "recipe=merge type=c64 form=axpby"}};

/* As a solver is compiled: for fewer thread blocks on a multiprocessor where registers do not suffice. */
static void no_program_spills(void **state) {
  struct cb_nvrtc *nvrtc = open_nvrtc();
  (void)state;
  for (size_t i = 0; i < sizeof compiled / sizeof *compiled; i++)
    for (int m = 0; m < 2; m++) {
      struct cb_text text = {0};
      struct cb_diag diag = {0};
      assert_ok(text_of(&text, compiled[i].matrix, compiled[i].settings, cb_program_find(methods[m], 1), &diag));
      const struct cb_nvrtc_options options = {.arch = arch_in_turn((int)(2 * i) + m), .strict = 1};
      struct cb_compiled made;
      if (cb_compile_fitting(&made, nvrtc, cb_text_string(&text), "program", &options, &diag))
        fail_msg("%s, %s: %s", compiled[i].settings, methods[m], diag.message);
      if (made.spilled_bytes) fail_msg("%s, %s: %d bytes", compiled[i].settings, methods[m], made.spilled_bytes);
      cb_compiled_release(&made);
      cb_text_release(&text);
    }
  cb_nvrtc_close(nvrtc);
}

/* Strictly (unused names are errors), and without spills. */
static void other_methods_compile(void **state) {
  struct cb_nvrtc *nvrtc = open_nvrtc();
  (void)state;
  for (int m = 0; m < 7; m++)
    for (int diagonal = m < 5 ? 0 : CB_BLOCKS; diagonal < (m < 5 ? CB_BLOCKS : CB_BLOCKS + 1); diagonal++) {
      const int matrix = (m + diagonal) % 4;
      struct cb_text text = {0};
      struct cb_diag diag = {0};
      const struct cb_program *program = cb_program_find(other_methods[m], diagonal);
      assert_ok(text_of(&text, compiled[matrix].matrix, compiled[matrix].settings, program, &diag));
      const struct cb_nvrtc_options options = {.arch = arch_in_turn(m), .strict = 1};
      struct cb_compiled made;
      if (cb_compile_fitting(&made, nvrtc, cb_text_string(&text), "program", &options, &diag))
        fail_msg("%s, %s: %s", compiled[matrix].settings, other_methods[m], diag.message);
      if (made.spilled_bytes) fail_msg("%s: %d bytes", other_methods[m], made.spilled_bytes);
      cb_compiled_release(&made);
      cb_text_release(&text);
    }
  cb_nvrtc_close(nvrtc);
}

/* Clusters and thread blocks of many threads, which have registers enough with fewer groups at the latest. */
static void no_form_spills(void **state) {
  struct cb_nvrtc *nvrtc = open_nvrtc();
  (void)state;
  for (size_t i = 0; i < sizeof compiled / sizeof *compiled; i++) {
    struct cb_program_form form = {.kind = i % 2 ? CB_PROGRAM_CLUSTER : CB_PROGRAM_BLOCK, .groups = 4};
    const struct cb_nvrtc_options options = {.arch = "sm_90", .strict = 1};
    struct cb_compiled made;
    for (form.groups = 4;; form.groups--) {
      struct cb_text text = {0};
      struct cb_diag diag = {0};
      struct cb_program_shape shape;
      assert_ok(text_in_form(&text, compiled[i].matrix, compiled[i].settings, cb_program_find(methods[i % 2], 1), &form,
                             &shape, &diag));
      if (cb_compile_fitting(&made, nvrtc, cb_text_string(&text), "program", &options, &diag))
        fail_msg("%s: %s", compiled[i].settings, diag.message);
      const int spilled = made.spilled_bytes;
      cb_compiled_release(&made);
      cb_text_release(&text);
      if (!spilled) break;
      assert_true(form.groups > 1);
    }
  }
  cb_nvrtc_close(nvrtc);
}

/* Vectors in shared memory: an iteration has no fence of the cluster, and no barrier of it but where the first
 * product's rows are found, x goes back, and all begin and end. */
static void resident_vectors_need_no_fences(void **state) {
  static const struct {
    const char *matrix, *settings, *method;
    int kind, blocks;
  } cases[] = {{"stencil7,n=12", "recipe=dia", "cg", CB_DIAGONAL, 8},
               {"fe3,n=9", "recipe=blocks", "bicgstab", CB_PLAIN, 16},
               {"random,rows=3000,cols=3000,density=0.01", "recipe=sell type=f32", "minres", CB_DIAGONAL, 3}};
  struct cb_nvrtc *nvrtc = open_nvrtc();
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct cb_program_form form = {
        .kind = CB_PROGRAM_CLUSTER, .resident = 1, .blocks = cases[i].blocks, .groups = 1, .room = 227 << 10};
    const struct cb_nvrtc_options options = {.arch = "sm_90", .strict = 1, .ptx = 1};
    struct cb_program_shape shape;
    struct cb_compiled made;
    struct cb_text text = {0};
    struct cb_diag diag = {0};
    assert_ok(text_in_form(&text, cases[i].matrix, cases[i].settings, cb_program_find(cases[i].method, cases[i].kind),
                           &form, &shape, &diag));
    assert_true(shape.dynamic_shared > 0 && shape.dynamic_shared < form.room);
    if (cb_compile_fitting(&made, nvrtc, cb_text_string(&text), "program", &options, &diag)) fail_msg("%s", diag.message);
    if (made.spilled_bytes) fail_msg("%s: %d bytes", cases[i].method, made.spilled_bytes);
    assert_null(strstr(made.ptx, "fence.acq_rel"));
    assert_null(strstr(made.ptx, "acquire.cluster"));
    assert_int_equal(count_of(made.ptx, "barrier.cluster.wait"), 4);
    assert_non_null(strstr(made.ptx, "st.async"));
    assert_null(strstr(made.ptx, "L1::no_allocate")); /* the matrix stays in L1 */
    cb_compiled_release(&made);
    cb_text_release(&text);
  }
  cb_nvrtc_close(nvrtc);
}

/* A thread block's only tile of merge stays in registers: nothing is read of the matrix in an iteration, and few bytes
 * are spilled. Products that are larger, or other ones, are refused or go to shared memory. */
static void tiles_stay_in_registers(void **state) {
  static const struct {
    const char *matrix, *settings;
    int blocks; /* of a multiprocessor; 0: the tile does not */
  } cases[] = {{"uniform,n=9000,per_row=40", "recipe=merge merge-items=11", 1},
               {"uniform,n=20000,per_row=28", "recipe=merge merge-items=9", 2},
               {"uniform,n=20000,per_row=28", "recipe=merge merge-items=9 type=f32", 2},
               {"uniform,n=20000,per_row=20", "recipe=merge merge-items=5 type=f16-f32", 3},
               {"uniform,n=20000,per_row=28", "recipe=merge merge-items=7", 0},
               {"long_row,rows=3000,cols=3000,per_row=5,long_rows=2,long_length=1800", "recipe=merge", 0},
               {"hypersparse,rows=20000,keep=0.4", "recipe=merge", 0}};
  const struct cb_program_form form = {
      .kind = CB_PROGRAM_GRID, .pipelined = 1, .near = 1, .multiprocessors = 132, .room = 227 << 10};
  const struct cb_program *program;
  struct cb_nvrtc *nvrtc = open_nvrtc();
  struct cb_diag diag = {0};
  (void)state;
  assert_ok(cb_program_in_form(&program, cb_program_find("cg", CB_DIAGONAL), &form, &diag));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct cb_nvrtc_options options = {.arch = "sm_90", .strict = 1};
    struct cb_program_shape shape;
    struct cb_compiled made;
    struct cb_text text = {0};
    const enum cb_status s = text_in_form(&text, cases[i].matrix, cases[i].settings, program, &form, &shape, &diag);
    assert_int_equal(s, cases[i].blocks ? CB_OK : CB_ERR_UNSUPPORTED);
    if (!s) {
      assert_true(shape.holds && !shape.neighbours && !shape.dynamic_shared);
      assert_int_equal(shape.each, cases[i].blocks);
      assert_true(shape.least_blocks <= 132 * cases[i].blocks);
      const char *kernel = strstr(cb_text_string(&text), "CBGEN_KERNEL void");
      assert_int_equal(count_of(kernel, "_arrays"), 2); /* as a parameter, and where the tile is loaded */
      if (cb_nvrtc_compile(&made, nvrtc, cb_text_string(&text), "program", &options, &diag)) fail_msg("%s", diag.message);
      if (cb_spilled_bytes(&made) > 32) fail_msg("%s: %d bytes", cases[i].settings, cb_spilled_bytes(&made));
      cb_compiled_release(&made);
    }
    cb_text_release(&text);
  }
  cb_nvrtc_close(nvrtc);
}

/* What has slots in a grid: where the same thread commits a row and has it in steps, what no product reads; elsewhere
 * what steps alone read and write. Vectors with more passes first, as far as there is room. */
static void vectors_of_a_grid_have_slots(void **state) {
  static const struct {
    const char *matrix, *settings, *method;
    int in_steps, multiprocessors;
    const char *kept[4]; /* constants of the text */
  } cases[] = {
      {"stencil7,n=40", "recipe=dia", "cg", 0, 8, {"q_kept = {0, 16, true}", "x_kept = {16, 16, true}"}},
      {"stencil7,n=40", "recipe=dia", "cg", 0, 2, {"q_kept = {0, 46, false}"}},
      {"stencil7,n=40", "recipe=dia", "cg", 1, 5, {"r_kept = {0, 25, true}", "q_kept = {25, 21, false}"}},
      {"random,rows=3000,cols=3000,density=0.01", "recipe=sell", "cg", 1, 2, {"r_kept = {0, ", "x_kept = {"}},
      {"fe3,n=9", "recipe=blocks type=f32", "minres", 0, 9, {"r_kept = ", "newer_kept = ", "w_kept = ", "x_kept = "}}};
  struct cb_nvrtc *nvrtc = open_nvrtc();
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct cb_program_form form = {.kind = CB_PROGRAM_GRID, .resident = 1, .groups = 4, .room = 227 << 10,
                                         .in_steps = cases[i].in_steps, .each = 1,
                                         .multiprocessors = cases[i].multiprocessors};
    const struct cb_nvrtc_options options = {.arch = arch_in_turn((int)i), .strict = 1};
    struct cb_program_shape shape;
    struct cb_compiled made;
    struct cb_text text = {0};
    struct cb_diag diag = {0};
    int count = 0;
    assert_ok(text_in_form(&text, cases[i].matrix, cases[i].settings, cb_program_find(cases[i].method, CB_PLAIN), &form,
                           &shape, &diag));
    for (; count < 4 && cases[i].kept[count]; count++)
      if (!strstr(cb_text_string(&text), cases[i].kept[count])) fail_msg("%s: %s", cases[i].method, cases[i].kept[count]);
    if (cases[i].multiprocessors != 9) assert_int_equal(count_of(cb_text_string(&text), "constexpr Kept "), count);
    assert_null(strstr(cb_text_string(&text), "constexpr Kept p_kept")); /* products read it */
    assert_in_range(shape.dynamic_shared, 1, (227 - 32) << 10);
    assert_in_range(shape.least_blocks, 1, cases[i].multiprocessors);
    if (cb_compile_fitting(&made, nvrtc, cb_text_string(&text), "program", &options, &diag)) fail_msg("%s", diag.message);
    cb_compiled_release(&made);
    cb_text_release(&text);
  }
  cb_nvrtc_close(nvrtc);
}

/* Of a GPU with 132 multiprocessors: a cluster for what is small, and the grid itself. Directions are made in steps
 * where the matrix is large enough for a meeting more, and all vectors have room. */
static void resident_forms_are_tried_where_they_pay(void **state) {
  static const struct {
    int64_t rows, stored;
    int count, cluster, in_steps; /* of the last one that is tried */
  } cases[] = {{1000, 70000, 1, 1, 0},         {24000, 15000000, 1, 0, 1},    {32768, 1800000, 1, 0, 0},
               {1000000, 56000000, 1, 0, 1}, {4096000, 229000000, 1, 0, 0}};
  struct cb_target target;
  struct cb_diag diag = {0};
  (void)state;
  assert_ok(cb_target_find(&target, "sm_90", &diag));
  target.multiprocessors = 132;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct cb_program_size size = {.target = &target, .threads = 256,
                                         .blocks = cb_divide_up(cases[i].rows, (int64_t)256),
                                         .stored_bytes = cases[i].stored, .vector_bytes = 8 * cases[i].rows};
    struct cb_program_form chosen, resident[CB_PROGRAM_RESIDENT];
    cb_program_choose(&chosen, &size);
    const int count = cb_program_try_resident(resident, &chosen, &size);
    if (count != cases[i].count) fail_msg("%lld rows: %d forms", (long long)cases[i].rows, count);
    for (int k = 0; k < count; k++) assert_true(resident[k].resident && resident[k].room > 0);
    assert_int_equal(resident[count - 1].kind == CB_PROGRAM_CLUSTER, cases[i].cluster);
    assert_int_equal(resident[count - 1].in_steps, cases[i].in_steps);
  }
}

static void fewer_meetings_pay_for_short_vectors(void **state) {
  struct cb_target target;
  struct cb_diag diag = {0};
  (void)state;
  assert_ok(cb_target_find(&target, "sm_90", &diag));
  target.multiprocessors = 132;
  const struct cb_program_size long_vectors = {
      .target = &target, .threads = 256, .blocks = 132, .stored_bytes = 1 << 20, .vector_bytes = 1 << 30};
  assert_false(cb_program_pipelining_pays(CB_PROGRAM_GRID, &long_vectors));
  for (int64_t rows = 1000; rows < 10000000; rows *= 6) {
    const struct cb_program_size size = {.target = &target, .threads = 256, .blocks = cb_divide_up(rows, (int64_t)256),
                                         .stored_bytes = 50 * rows, .vector_bytes = 8 * rows};
    assert_int_equal(cb_program_pipelining_pays(CB_PROGRAM_GRID, &size), rows < 300000);
    assert_int_equal(cb_program_pipelining_pays(CB_PROGRAM_BLOCK, &size), 0);
    assert_int_equal(cb_program_pipelining_pays(CB_PROGRAM_CLUSTER, &size), 1);
  }
}

/* A part of some size for each of a grid's thread blocks, of which there are no more than multiprocessors. */
static void large_parts_of_a_matrix_lie_in_shared_memory(void **state) {
  struct cb_target target;
  struct cb_diag diag = {0};
  (void)state;
  assert_ok(cb_target_find(&target, "sm_90", &diag));
  target.multiprocessors = 132;
  for (int64_t blocks = 10; blocks < 1000; blocks *= 3)
    for (int64_t part = 2; part < 200; part += 7)
      for (int kind = 0; kind < CB_PROGRAM_FORMS; kind++) {
        const struct cb_program_size size = {.target = &target, .threads = 256, .blocks = blocks,
                                             .stored_bytes = (part << 10) * (blocks < 132 ? blocks : 132)};
        const struct cb_program_form form = {.kind = kind};
        assert_int_equal(cb_program_matrix_pays(&form, &size), kind == CB_PROGRAM_GRID && part >= 12);
      }
}

/* One thread block, of any architecture. */
static void one_thread_block_has_its_vectors_at_hand(void **state) {
  struct cb_nvrtc *nvrtc = open_nvrtc();
  const struct cb_program_form form = {
      .kind = CB_PROGRAM_BLOCK, .resident = 1, .blocks = 1, .groups = 4, .room = 99 << 10};
  (void)state;
  for (int i = 0; i < 2; i++) {
    const struct cb_nvrtc_options options = {.arch = arch_in_turn(i), .strict = 1};
    struct cb_program_shape shape;
    struct cb_compiled made;
    struct cb_text text = {0};
    struct cb_diag diag = {0};
    assert_ok(text_in_form(&text, "stencil7,n=10", "recipe=dia", cb_program_find(methods[i], CB_DIAGONAL), &form, &shape, &diag));
    assert_in_range(shape.dynamic_shared, 1000 * 8 * (i ? 10 : 7), form.room); /* all vectors, x among them, in full */
    assert_ok(cb_nvrtc_compile(&made, nvrtc, cb_text_string(&text), "program", &options, &diag));
    cb_compiled_release(&made);
    cb_text_release(&text);
  }
  cb_nvrtc_close(nvrtc);
}

static void vectors_that_cannot_be_resident_are_refused(void **state) {
  static const struct {
    const char *matrix, *settings, *method;
    enum cb_form_kind kind;
    int64_t room;
    enum cb_status status;
    const char *message;
  } cases[] = {
      {"stencil7,n=8", "recipe=dia", "gmres", CB_PROGRAM_CLUSTER, 227 << 10, CB_ERR_UNSUPPORTED, "method 'gmres' has no"},
      {"stencil7,n=8", "recipe=dia", "jacobi", CB_PROGRAM_CLUSTER, 227 << 10, CB_ERR_UNSUPPORTED, "method 'jacobi' has no"},
      {"stencil7,n=8", "recipe=dia", "power", CB_PROGRAM_BLOCK, 227 << 10, CB_ERR_UNSUPPORTED, "method 'power' has no"},
      {"stencil7,n=8", "recipe=dia", "gmres", CB_PROGRAM_GRID, 227 << 10, CB_ERR_UNSUPPORTED, "method 'gmres' has no"},
      {"stencil7,n=8", "recipe=sell", "jacobi", CB_PROGRAM_GRID, 227 << 10, CB_ERR_UNSUPPORTED, "method 'jacobi' has no"},
      {"stencil7,n=8", "recipe=merge", "cg", CB_PROGRAM_GRID, 227 << 10, CB_ERR_UNSUPPORTED, "has its own there"},
      {"stencil7,n=8", "recipe=dia", "cg", CB_PROGRAM_GRID, 42 << 10, CB_ERR_LIMIT, "no room in shared memory"},
      {"stencil7,n=8", "recipe=merge", "cg", CB_PROGRAM_CLUSTER, 227 << 10, CB_ERR_UNSUPPORTED, "choose another recipe"},
      {"stencil7,n=8", "recipe=dia", "cg", CB_PROGRAM_CLUSTER, 20 << 10, CB_ERR_LIMIT,
       "take 15360 bytes of shared memory, and a thread block has 12288"},
      {"stencil7,n=24", "recipe=dia", "cg", CB_PROGRAM_BLOCK, 227 << 10, CB_ERR_LIMIT, "without '+resident'"}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct cb_program_form form = {.kind = cases[i].kind, .resident = 1, .blocks = 4, .room = cases[i].room};
    struct cb_program_shape shape;
    struct cb_text text = {0};
    struct cb_diag diag = {0};
    assert_int_equal(text_in_form(&text, cases[i].matrix, cases[i].settings, cb_program_find(cases[i].method, CB_PLAIN),
                                  &form, &shape, &diag), cases[i].status);
    if (!strstr(diag.message, cases[i].message)) fail_msg("%s", diag.message);
    cb_text_release(&text);
  }
}

/* Of a matrix that most iterations read half of, a form takes as long as of half of it. */
static void what_is_not_read_takes_no_time(void **state) {
  const struct cb_target target = {.multiprocessors = 132, .arch = "sm_90"};
  const struct cb_program_size half = {
      .target = &target, .blocks = 999, .threads = 256, .stored_bytes = 40 << 20, .vector_bytes = 1 << 20};
  struct cb_program_size split = half;
  (void)state;
  split.stored_bytes = 80 << 20;
  for (int i = 0; i < CB_PROGRAM_FORMS; i++) {
    split.spared_bytes = 0;
    assert_true(cb_program_ns(i, &split) > cb_program_ns(i, &half));
    split.spared_bytes = 40 << 20;
    assert_int_equal(cb_program_ns(i, &split), cb_program_ns(i, &half));
  }
}

static void forms_have_names(void **state) {
  static const struct {
    const char *name;
    int is_form, kind, in_steps, resident;
  } cases[] = {{"grid", 1, CB_PROGRAM_GRID, 0, 0}, {"graph+steps", 1, CB_PROGRAM_GRAPH, 1, 0},
               {"cluster+resident", 1, CB_PROGRAM_CLUSTER, 0, 1}, {"block+steps+resident", 1, CB_PROGRAM_BLOCK, 1, 1},
               {"block+resident+steps", 1, CB_PROGRAM_BLOCK, 1, 1}, {"grid+resident", 1, CB_PROGRAM_GRID, 0, 1},
               {"cluster+resident+pipelined", 1, CB_PROGRAM_CLUSTER, 0, 1},
               {"grid+matrix+pipelined+resident", 1, CB_PROGRAM_GRID, 0, 1}, {"graph+pipelined", 0, 0, 0, 0},
               {"graph+matrix", 0, 0, 0, 0},
               {"block+matrix", 0, 0, 0, 0}, {"grid+pipelined+pipelined", 0, 0, 0, 0},
               {"graph+resident", 0, 0, 0, 0}, {"block+steps+steps", 0, 0, 0, 0},
               {"cluster+resident+resident", 0, 0, 0, 0}, {"cluster+", 0, 0, 0, 0}, {"cluster+resident+", 0, 0, 0, 0},
               {"cluster+residents", 0, 0, 0, 0}, {"+resident", 0, 0, 0, 0}, {"", 0, 0, 0, 0}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct cb_program_form form;
    if (cb_program_form_find(&form, cases[i].name) != cases[i].is_form) fail_msg("%s", cases[i].name);
    if (!cases[i].is_form) continue;
    assert_int_equal(form.kind, cases[i].kind);
    assert_int_equal(form.in_steps, cases[i].in_steps);
    assert_int_equal(form.resident, cases[i].resident);
  }
}

/* They compile for an architecture, and do not spill. */
static void check_stages(struct cb_nvrtc *nvrtc, const struct cb_program *program, enum cb_type type, int turn) {
  const struct cb_program_sizes sizes = {.block_size = 3, .restart = 30};
  const struct cb_nvrtc_options options = {.arch = arch_in_turn(turn), .strict = 1};
  struct cb_stages_plan plan;
  struct cb_compiled made;
  struct cb_text text = {0};
  struct cb_diag diag = {0};
  const char *name = program->name;
  if (program->staged) program = program->staged;
  if (cb_stages_text(&text, &plan, program, type, type, &sizes, &diag)) fail_msg("%s: %s", name, diag.message);
  if (cb_nvrtc_compile(&made, nvrtc, cb_text_string(&text), "stages", &options, &diag)) fail_msg("%s: %s", name, diag.message);
  if (cb_spilled_bytes(&made)) fail_msg("%s: %d bytes", name, cb_spilled_bytes(&made));
  assert_true(plan.acts[0].kind != CB_ACT_CALL && plan.body >= 3 && plan.end >= 1);
  assert_true(plan.turn < plan.states && plan.sums > 0);
  cb_compiled_release(&made);
  cb_text_release(&text);
}

/* Stages of all methods that have any, with all preconditioners. */
static void stages_compile_and_do_not_spill(void **state) {
  struct cb_nvrtc *nvrtc = open_nvrtc();
  const char *name;
  int made_of = 0;
  (void)state;
  for (int m = 0; (name = cb_program_name(m)); m++)
    for (int kind = CB_PLAIN; kind <= CB_CALLED; kind++) {
      const struct cb_program *program = cb_program_find(name, (enum cb_preconditioning)kind);
      if (!program) continue;
      check_stages(nvrtc, program, (m + kind) % 2 ? CB_F32 : CB_F64, m + kind);
      made_of++;
    }
  assert_true(made_of > 16);
  for (int i = 0; i < 4; i++) check_stages(nvrtc, &cb_program_pdhg[i % 2], i / 2 ? CB_F32 : CB_F64, i);
  cb_nvrtc_close(nvrtc);
}

/* Fused products of linear programs, with as many thread blocks as the products' own kernels, do not spill. */
static void fused_products_do_not_spill(void **state) {
  static const char *const cases[][2] = {{"random,rows=2000,cols=3000,density=0.01", "recipe=sell"},
                                         {"random,rows=2000,cols=3000,density=0.002", "recipe=merge"},
                                         {"fe3,n=5", "recipe=patterns"},
                                         {"dense_row,n=2500,row=7", "recipe=sell"}};
  const struct cb_program_form form = {.kind = CB_PROGRAM_GRAPH};
  const struct cb_nvrtc_options options = {.arch = "sm_90", .strict = 1};
  struct cb_nvrtc *nvrtc = open_nvrtc();
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct cb_compiled made;
    struct cb_text text = {0};
    struct cb_diag diag = {0};
    if (text_in_form(&text, cases[i][0], cases[i][1], &cb_program_pdhg[1], &form, NULL, &diag))
      fail_msg("%s: %s", cases[i][1], diag.message);
    /* Threads of sell load what they need of the matrix before they wait. */
    const int is_late = count_of(cb_text_string(&text), "if (step == 0) begin_step(vectors, ") == 1;
    assert_int_equal(is_late, !strcmp(cases[i][1], "recipe=sell"));
    if (cb_nvrtc_compile(&made, nvrtc, cb_text_string(&text), "fused", &options, &diag)) fail_msg("%s", diag.message);
    if (cb_spilled_bytes(&made)) fail_msg("%s: %d bytes", cases[i][1], cb_spilled_bytes(&made));
    cb_compiled_release(&made);
    cb_text_release(&text);
  }
  cb_nvrtc_close(nvrtc);
}

/* What repeats does so as one, with a struct of the state that it begins and ends with; another form refuses it. */
static void repeated_acts_stand_together(void **state) {
  const struct cb_program_sizes sizes = {0};
  struct cb_stages_plan plan;
  struct cb_text text = {0};
  struct cb_diag diag = {0};
  (void)state;
  assert_ok(cb_stages_text(&text, &plan, &cb_program_pdhg[0], CB_F64, CB_F64, &sizes, &diag));
  assert_int_equal(plan.groups_count, 2);
  assert_true(plan.groups[0].first + plan.groups[0].count <= plan.begin);
  assert_int_equal(plan.groups[1].first, plan.begin);
  assert_int_equal(plan.groups[1].count, 4); /* two products, and a pass over columns and one over rows */
  assert_int_equal(plan.groups[1].times, 63);
  for (int i = 0; i < 2; i++) {
    const struct cb_act *acts = &plan.acts[plan.groups[i].first];
    assert_true(acts[0].kind == CB_ACT_PRODUCT && acts[1].kind == CB_ACT_STAGE);
    assert_int_equal(acts[1].from, acts[plan.groups[i].count - 1].to);
    assert_true(acts[1].from != acts[1].to);
  }
  assert_true(plan.groups[0].times < plan.groups[1].times);
  assert_int_equal(plan.fusions_count, 2); /* of the products that are executed the most often, and of no others */
  for (int i = 0; i < 2; i++) assert_int_equal(plan.fusions[i].act, plan.groups[1].first + 2 * i);
  cb_text_release(&text);
  assert_int_equal(text_of(&text, "stencil7,n=8", "recipe=dia", &cb_program_pdhg[0], &diag), CB_ERR_UNSUPPORTED);
  assert_non_null(strstr(diag.message, "'pdhg' needs program form 'graph'"));
  cb_text_release(&text);
}

static void no_batch_spills(void **state) {
  static const struct cb_batch_request requests[] = {{.rows = 1000, .nnz = 6400, .longest = 7, .type = CB_F64},
                                                     {.rows = 1000, .nnz = 6400, .longest = 70, .type = CB_F32},
                                                     {.rows = 50, .nnz = 2500, .longest = 50, .type = CB_F64}};
  struct cb_nvrtc *nvrtc = open_nvrtc();
  (void)state;
  for (int i = 0; i < 6; i++) {
    struct cb_batch_request request = requests[i / 2];
    const struct cb_nvrtc_options options = {.arch = arch_in_turn(i), .strict = 1};
    struct cb_compiled made;
    struct cb_text text = {0};
    struct cb_diag diag = {0};
    struct cb_program_shape shape;
    request.program = cb_program_find(i % 2 ? "bicgstab" : "cg", i % 3 > 0);
    request.resident = i / 2 == 1;
    request.room = 227 << 10;
    if (cb_batch_text(&text, &request, &shape, &diag)) fail_msg("%s", diag.message);
    assert_int_equal(shape.threads, 256);
    assert_int_equal(shape.dynamic_shared > 0, request.resident);
    const int holds = strstr(cb_text_string(&text), "rows0::hold(") != NULL;
    assert_int_equal(holds, i / 2 == 0);
    assert_int_equal(cb_batch_shares(&request), holds ? 2 : 0);
    if (cb_compile_fitting(&made, nvrtc, cb_text_string(&text), "batch", &options, &diag)) fail_msg("%s", diag.message);
    assert_int_equal(made.spilled_bytes, 0);
    cb_compiled_release(&made);
    cb_text_release(&text);
  }
  cb_nvrtc_close(nvrtc);
}

/* A thread keeps rows where it has registers for their slots, of which not most may be empty. */
static void rows_are_kept_where_registers_suffice(void **state) {
  static const struct {
    int64_t rows, nnz, longest;
    int shares;
  } cases[] = {{1, 0, 0, 0},           {1, 1, 1, 4},        {125, 2197, 27, 4},      {1000, 6400, 7, 2},
               {1000, 21952, 27, 0},   {4000, 27000, 7, 0}, {1000, 3400, 7, 0},      {1000, 27000, 29, 0},
               {65535, 65535, 1, 0}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct cb_batch_request request = {
        .rows = cases[i].rows, .nnz = cases[i].nnz, .longest = cases[i].longest, .type = CB_F64};
    const int shares = cb_batch_shares(&request);
    if (cases[i].shares != shares) fail_msg("case %d: %d thread blocks, not %d", (int)i, shares, cases[i].shares);
  }
}

/* Vectors that the kernel writes are never read by the path that is not coherent: what goes that way are arrays of the
 * matrix, values by load_stream (whose instructions say no_allocate) among them, where they are not to stay in L2. */
static void vectors_are_read_coherently(void **state) {
  struct cb_nvrtc *nvrtc = open_nvrtc();
  const struct cb_nvrtc_options options = {.arch = "sm_90", .ptx = 1};
  (void)state;
  for (size_t i = 0; i < sizeof compiled / sizeof *compiled; i++) {
    struct cb_text text = {0};
    struct cb_diag diag = {0};
    struct cb_compiled made;
    char settings[120];
    snprintf(settings, sizeof settings, "%s stay-in-l2=off", compiled[i].settings);
    assert_ok(text_of(&text, compiled[i].matrix, settings, cb_program_find("bicgstab", 1), &diag));
    assert_ok(cb_nvrtc_compile(&made, nvrtc, cb_text_string(&text), "program", &options, &diag));
    assert_null(strstr(made.ptx, "ld.global.nc.f64"));
    assert_null(strstr(made.ptx, "ld.global.nc.f32"));
    assert_null(strstr(made.ptx, "ld.global.nc.v2.f"));
    assert_non_null(strstr(made.ptx, "ld.acquire.gpu"));
    cb_compiled_release(&made);
    cb_text_release(&text);
  }
  cb_nvrtc_close(nvrtc);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_recipe_has_programs_or_says_why), cmocka_unit_test(solvers_may_have_another_recipe),
      cmocka_unit_test(large_products_that_share_stay_apart),
      cmocka_unit_test(merge_for_solvers_is_there_at_once), cmocka_unit_test(tiles_stay_in_registers),
      cmocka_unit_test(methods_have_names),
      cmocka_unit_test(sums_are_fused_where_rows_have_one_thread), cmocka_unit_test(no_program_spills),
      cmocka_unit_test(no_form_spills), cmocka_unit_test(resident_vectors_need_no_fences),
      cmocka_unit_test(vectors_of_a_grid_have_slots), cmocka_unit_test(resident_forms_are_tried_where_they_pay),
      cmocka_unit_test(one_thread_block_has_its_vectors_at_hand),
      cmocka_unit_test(large_parts_of_a_matrix_lie_in_shared_memory),
      cmocka_unit_test(fewer_meetings_pay_for_short_vectors),
      cmocka_unit_test(vectors_that_cannot_be_resident_are_refused), cmocka_unit_test(forms_have_names),
      cmocka_unit_test(what_is_not_read_takes_no_time), cmocka_unit_test(no_batch_spills),
      cmocka_unit_test(rows_are_kept_where_registers_suffice),
      cmocka_unit_test(stages_compile_and_do_not_spill),
      cmocka_unit_test(fused_products_do_not_spill),
      cmocka_unit_test(repeated_acts_stand_together),
      cmocka_unit_test(vectors_are_read_coherently),
      cmocka_unit_test(other_methods_compile), cmocka_unit_test(every_recipe_with_heads_has_programs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
