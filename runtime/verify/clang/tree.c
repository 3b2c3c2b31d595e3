// SPDX-License-Identifier: Apache-2.0
/* From libclang's cursors to the tree of tree.h: one parse, its diagnostics, and one walk over its cursors. */
#include "runtime/verify/clang/tree.h"

#include "base/embedded.h"
#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Where libclang is told that the files are which it reads. */
#define FOLDER "/cbgen-clang/"
#define TEXT FOLDER "kernel.cu"

/* ---- findings */

void cb_clang_find(struct cb_clang_report *report, const char *rule, int line, int column, const char *format, ...) {
  if (report->findings_count++ >= CB_CLANG_FINDINGS) return;
  struct cb_clang_finding *finding = &report->findings[report->findings_count - 1];
  char message[sizeof finding->message];
  va_list arguments;
  finding->rule = rule;
  finding->line = line;
  finding->column = column;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  cb_escape(finding->message, sizeof finding->message, message, ""); /* names are the text's: they may hold anything */
}

/* ---- the walk over cursors */

struct walk {
  struct cb_syntax *tree;
  const struct cb_clang_calls *call;
  void *file; /* of the text */
  int parent;
  int *node_at; /* node of what is declared at an offset of the text, + 1 */
  struct declared {
    int named, structure; /* offsets where what a node names, and its type's struct, are declared; -1 */
  } * declared;
  int length, capacity, failed;
};

/* Where a macro of another file is expanded counts, not where it is defined. */
static int is_in_text(const struct walk *walk, struct cb_clang_place place) {
  void *file = NULL;
  unsigned line, column, offset;
  walk->call->expansion(place, &file, &line, &column, &offset);
  return file ==
         walk->file; /* libclang hands out one pointer for a file; unique numbers it has none for unsaved ones */
}

static int offset_of(const struct walk *walk, struct cb_clang_place place, int *line, int *column) {
  unsigned at_line = 0, at_column = 0, offset = 0;
  void *file;
  walk->call->expansion(place, &file, &at_line, &at_column, &offset);
  if (line) *line = (int)at_line;
  if (column) *column = (int)at_column;
  return (int)offset <= walk->length ? (int)offset : walk->length;
}

static const char *keep_name(struct walk *walk, struct cb_clang_cursor cursor) {
  const struct cb_clang_string string = walk->call->name(cursor);
  const char *name = walk->call->string(string), *kept = "";
  if (name && *name) kept = cb_arena_string(&walk->tree->arena, name);
  walk->call->dispose_string(string);
  return kept ? kept : "";
}

static int declared_at(const struct walk *walk, struct cb_clang_cursor declaration) {
  if (walk->call->is_null(declaration)) return -1;
  const struct cb_clang_place place = walk->call->place(declaration);
  return is_in_text(walk, place) ? offset_of(walk, place, NULL, NULL) : -1;
}

/* Returns where its struct is declared, or -1. */
static int take_type(const struct walk *walk, struct cb_clang_cursor cursor, struct cb_syntax_node *node) {
  struct cb_clang_type type = walk->call->canonical(walk->call->type(cursor));
  node->is_reference = type.kind == CB_CLANG_TYPE_REFERENCE;
  if (node->is_reference) type = walk->call->canonical(walk->call->pointee(type));
  node->type = type.kind;
  return type.kind == CB_CLANG_TYPE_RECORD ? declared_at(walk, walk->call->structure(type)) : -1;
}

static int grow(struct walk *walk) {
  struct cb_syntax *tree = walk->tree;
  if (tree->count < walk->capacity) return 1;
  const int capacity = walk->capacity ? 2 * walk->capacity : 4096;
  void *const nodes = cb_realloc(tree->nodes, (size_t)capacity, sizeof *tree->nodes);
  if (nodes) tree->nodes = nodes;
  void *const declared = nodes ? cb_realloc(walk->declared, (size_t)capacity, sizeof *walk->declared) : NULL;
  if (declared) walk->declared = declared;
  walk->failed = !declared;
  walk->capacity = declared ? capacity : walk->capacity;
  return !walk->failed;
}

static void append(struct cb_syntax *tree, int parent, int node) {
  if (parent < 0) return;
  if (tree->nodes[parent].last < 0)
    tree->nodes[parent].first = node;
  else
    tree->nodes[tree->nodes[parent].last].next = node;
  tree->nodes[parent].last = node;
}

static int is_declaration(int kind) {
  return kind < CB_CLANG_UNEXPOSED;
}

static int add_node(struct walk *walk, struct cb_clang_cursor cursor) {
  if (!grow(walk)) return -1;
  struct cb_syntax *tree = walk->tree;
  const int number = tree->count++;
  struct cb_syntax_node *node = &tree->nodes[number];
  const struct cb_clang_range extent = walk->call->extent(cursor);
  *node = (struct cb_syntax_node){.kind = cursor.kind,
                                  .parent = walk->parent,
                                  .first = -1,
                                  .last = -1,
                                  .next = -1,

                                  .definition = -1,
                                  .structure = -1,
                                  .name = keep_name(walk, cursor)};
  walk->declared[number] = (struct declared){-1, take_type(walk, cursor, node)};
  const int at = offset_of(walk, walk->call->place(cursor), &node->line, &node->column);
  node->begin = offset_of(walk, walk->call->range_begin(extent), NULL, NULL);
  node->end = offset_of(walk, walk->call->range_end(extent), NULL, NULL);
  if (cursor.kind == CB_CLANG_CALL) node->arguments = walk->call->arguments(cursor);
  if (!is_declaration(cursor.kind)) walk->declared[number].named = declared_at(walk, walk->call->referenced(cursor));
  if (is_declaration(cursor.kind) && number && !walk->node_at[at]) walk->node_at[at] = number + 1;
  append(tree, walk->parent, number);
  return number;
}

static int visit(struct cb_clang_cursor cursor, struct cb_clang_cursor parent, void *user) {
  struct walk *walk = user;
  const int outer = walk->parent;
  (void)parent;
  if (!outer && !is_in_text(walk, walk->call->place(cursor))) return CB_CLANG_CONTINUE_VISIT;
  const int number = add_node(walk, cursor);
  if (number < 0) return 0;
  walk->parent = number;
  walk->call->visit(cursor, visit, walk);
  walk->parent = outer;
  return walk->failed ? 0 : CB_CLANG_CONTINUE_VISIT;
}

static enum cb_status take_tree(struct walk *walk, void *unit, struct cb_diag *diag) {
  struct cb_syntax *tree = walk->tree;
  const struct cb_clang_cursor root = walk->call->unit_cursor(unit);
  walk->node_at = cb_calloc((size_t)walk->length + 1, sizeof *walk->node_at);
  walk->parent = -1;
  unsigned line, column, offset;
  walk->call->expansion(walk->call->place_at(unit, walk->call->file(unit, TEXT), 0), &walk->file, &line, &column,
                        &offset);
  if (walk->node_at && add_node(walk, root) == 0) {
    walk->parent = 0;
    walk->call->visit(root, visit, walk);
  }
  const int failed = !walk->node_at || walk->failed || tree->arena.failed;
  for (int i = 0; i < tree->count && !failed; i++) {
    const struct declared declared = walk->declared[i];
    if (declared.named >= 0) tree->nodes[i].definition = walk->node_at[declared.named] - 1;
    if (declared.structure >= 0) tree->nodes[i].structure = walk->node_at[declared.structure] - 1;
  }
  cb_free(walk->node_at);
  cb_free(walk->declared);
  return failed ? cb_fail_memory(diag, "a kernel's syntax tree", (unsigned long long)walk->length) : CB_OK;
}

/* ---- the parse */

static void take_diagnostics(struct cb_clang_report *report, const struct walk *walk, void *unit, const char *view) {
  const struct cb_clang_calls *call = walk->call;
  const unsigned count = call->diagnostics(unit);
  for (unsigned i = 0; i < count; i++) {
    void *const diagnostic = call->diagnostic(unit, i);
    if (call->severity(diagnostic) >= CB_CLANG_WARNING) {
      const struct cb_clang_string text = call->diagnostic_text(diagnostic);
      int line = 0, column = 0;
      offset_of(walk, call->diagnostic_place(diagnostic), &line, &column);
      cb_clang_find(report, view, line, column, "%s", call->string(text));
      call->dispose_string(text);
    }
    call->dispose_diagnostic(diagnostic);
  }
}

/* Files that exist for libclang alone: the text, the stand-ins for CUDA, and headers of C, which are empty because the
 * stand-ins have what is needed of them. */
static const char *const arguments_of[2][16] = {
    {"-xcuda", "--cuda-device-only", "-D__CUDACC_RTC__", NULL},
    {"-xcuda", "--cuda-host-only", "-DCBGEN_SELFTEST", NULL},
};
static const char *const arguments_of_both[] = {
    "-std=c++17",
    "-nocudainc",
    "-nocudalib",
    "-nostdinc",
    "-nostdinc++",
    "--cuda-gpu-arch=sm_80",
    "-isystem" FOLDER,
    "-include" FOLDER "cuda.h",
    "--cuda-path=" FOLDER,
    "-Wall",
    "-Wextra",
};

static int parse(const struct cb_clang_calls *call, void *index, const char *text, enum cb_clang_view view,
                 void **unit) {
  const struct cb_embedded_file *cuda = cb_embedded_find("runtime/verify/clang/cuda.h");
  struct cb_clang_file files[] = {
      {TEXT, text, strlen(text)}, {FOLDER "cuda.h", cuda->text, cuda->length},
      {FOLDER "stdint.h", "", 0}, {FOLDER "stdio.h", "", 0},
      {FOLDER "stdlib.h", "", 0}, {FOLDER "string.h", "", 0},
  };
  const char *arguments[32];
  int count = 0;
  for (const char *const *own = arguments_of[view]; *own; own++) arguments[count++] = *own;
  for (size_t i = 0; i < sizeof arguments_of_both / sizeof *arguments_of_both; i++)
    arguments[count++] = arguments_of_both[i];
  return call->parse(index, TEXT, arguments, count, files, sizeof files / sizeof *files, 0, unit);
}

enum cb_status cb_syntax_read(struct cb_syntax *tree, const struct cb_clang *clang, const char *text,
                              enum cb_clang_view view, struct cb_clang_report *report, struct cb_diag *diag) {
  struct walk walk = {.tree = tree, .call = &clang->call, .length = (int)strlen(text)};
  void *unit = NULL;
  *tree = (struct cb_syntax){.text = text};
  void *const index = clang->call.create_index(0, 0);
  const int error = index ? parse(&clang->call, index, text, view, &unit) : 1;
  enum cb_status s = CB_OK;
  if (error || !unit)
    s = cb_fail(diag, CB_ERR_COMPILE, "libclang at '%s' cannot read the kernel: error %d", clang->library.path, error);
  if (!s) take_diagnostics(report, &walk, unit, view == CB_CLANG_DEVICE ? "device" : "host");
  if (!s) s = take_tree(&walk, unit, diag);
  if (unit) clang->call.dispose_unit(unit);
  if (index) clang->call.dispose_index(index);
  return s;
}

void cb_syntax_release(struct cb_syntax *tree) {
  cb_free(tree->nodes);
  cb_arena_release(&tree->arena);
  *tree = (struct cb_syntax){0};
}

/* ---- questions */

int cb_syntax_is_function(const struct cb_syntax *tree, int node) {
  return tree->nodes[node].kind == CB_CLANG_FUNCTION || tree->nodes[node].kind == CB_CLANG_FUNCTION_TEMPLATE;
}

int cb_syntax_function(const struct cb_syntax *tree, int node) {
  while (node >= 0 && !cb_syntax_is_function(tree, node)) node = tree->nodes[node].parent;
  return node;
}

int cb_syntax_child(const struct cb_syntax *tree, int node, int number) {
  int child = node < 0 ? -1 : tree->nodes[node].first;
  while (child >= 0 && number-- > 0) child = tree->nodes[child].next;
  return child;
}

int cb_syntax_is_kernel(const struct cb_syntax *tree, int node) {
  if (node < 0) return 0;
  for (int child = tree->nodes[node].first; child >= 0; child = tree->nodes[child].next)
    if (tree->nodes[child].kind == CB_CLANG_GLOBAL) return 1;
  return 0;
}

int cb_syntax_bare(const struct cb_syntax *tree, int node) {
  while (node >= 0 && tree->nodes[node].last >= 0) {
    const int kind = tree->nodes[node].kind;
    if (kind != CB_CLANG_UNEXPOSED && kind != CB_CLANG_PAREN && kind != CB_CLANG_CAST &&
        kind != CB_CLANG_FUNCTIONAL_CAST)
      break;
    node = tree->nodes[node].last; /* what stands before it names a type */
  }
  return node;
}

int cb_syntax_is_operator(const struct cb_syntax *tree, int node, const char *sign) {
  const int left = tree->nodes[node].first, right = tree->nodes[node].last;
  const int from = left == right ? tree->nodes[node].begin : tree->nodes[left].end, to = tree->nodes[right].begin;
  const size_t length = strlen(sign);
  int at = from;
  while (at < to && strchr(" \n\t)", tree->text[at])) at++;
  return at + (int)length <= to && !strncmp(tree->text + at, sign, length) && !strchr("=<>&|", tree->text[at + length]);
}

int cb_syntax_argument(const struct cb_syntax *tree, int call, int number) {
  int children = 0;
  for (int child = tree->nodes[call].first; child >= 0; child = tree->nodes[child].next) children++;
  if (number >= tree->nodes[call].arguments) return -1;
  return cb_syntax_child(tree, call, children - tree->nodes[call].arguments + number);
}

int cb_syntax_is_constant(const struct cb_syntax *tree, int node) {
  static const char word[] = "constexpr ";
  const struct cb_syntax_node *variable = &tree->nodes[node];
  return variable->kind == CB_CLANG_VARIABLE && cb_syntax_function(tree, node) < 0 &&
         !strncmp(tree->text + variable->begin, word, sizeof word - 1);
}
