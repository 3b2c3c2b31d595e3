// SPDX-License-Identifier: Apache-2.0
/* Who may name what: atomics, x and y, arrays, constants. Each rule is a function of one node, in one walk. */
#include "runtime/verify/clang/rules.h"

#include "codegen/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A walk's state: what the rules ask again and again. */
struct checked {
  struct cb_clang_report *report;
  const struct cb_syntax *tree;
  const struct cb_plan *plan;
  int has_atomics; /* commit_atomic or add_sum_atomic is in the text */
};

static int is_one_of(const char *name, const char *const *names) {
  for (; *names; names++)
    if (!strcmp(name, *names)) return 1;
  return 0;
}

static const char *name_of(const struct cb_syntax *tree, int node) {
  return node < 0 ? "" : tree->nodes[node].name;
}

/* ---- atomics */

static const char *const atomic_functions[] = {"commit_atomic", "add_sum_atomic", NULL};

static int is_integer(const struct cb_syntax *tree, int node) {
  return node >= 0 && tree->nodes[node].type >= CB_CLANG_TYPE_BOOL && tree->nodes[node].type <= CB_CLANG_TYPE_INT128;
}

static void check_atomic(const struct checked *checked, int call) {
  const struct cb_syntax *tree = checked->tree;
  const struct cb_syntax_node *node = &tree->nodes[call];
  if (node->kind != CB_CLANG_CALL || strncmp(node->name, "atomic", 6)) return;
  checked->report->accesses++;
  if (is_integer(tree, cb_syntax_argument(tree, call, 1))) return;
  const char *function = name_of(tree, cb_syntax_function(tree, call));
  if (!is_one_of(function, atomic_functions))
    cb_clang_find(checked->report, "atomics", node->line, node->column,
                  "'%s' of what is no integer, in '%s': only commit_atomic and add_sum_atomic may", node->name,
                  function);
  else if (checked->plan && !checked->plan->atomics)
    cb_clang_find(checked->report, "atomics", node->line, node->column,
                  "'%s' in '%s': the plan permits no floating-point atomics", node->name, function);
}

/* ---- x and y */

static int is_field_of(const struct cb_syntax *tree, int field, const char *structure) {
  return field >= 0 && tree->nodes[field].kind == CB_CLANG_FIELD &&
         !strcmp(name_of(tree, tree->nodes[field].parent), structure);
}

/* In no namespace, or in that of the kernels that read heads of split values. */
static int is_global(const struct cb_syntax *tree, int node) {
  if (node < 0) return 0;
  const struct cb_syntax_node *around = &tree->nodes[tree->nodes[node].parent];
  if (around->kind == CB_CLANG_NAMESPACE && !strcmp(around->name, "heads")) around = &tree->nodes[around->parent];
  return around->kind != CB_CLANG_NAMESPACE;
}

static int may_name_y(const struct checked *checked, int function) {
  static const char *const commits[] = {"commit", "commit_more", "commit_atomic", NULL};
  if (is_global(checked->tree, function) && is_one_of(name_of(checked->tree, function), commits)) return 1;
  return checked->has_atomics && cb_syntax_is_kernel(checked->tree, function);
}

/* Whether a node stands in an argument of a call of that function. */
static int is_argument_of(const struct cb_syntax *tree, int node, const char *function) {
  for (; node >= 0 && !cb_syntax_is_function(tree, node); node = tree->nodes[node].parent)
    if (tree->nodes[node].kind == CB_CLANG_CALL && !strcmp(tree->nodes[node].name, function)) return 1;
  return 0;
}

static void check_vectors(const struct checked *checked, int member) {
  const struct cb_syntax *tree = checked->tree;
  const struct cb_syntax_node *node = &tree->nodes[member];
  const int function = cb_syntax_function(tree, member);
  if (node->kind != CB_CLANG_MEMBER || !is_field_of(tree, node->definition, "Vectors")) return;
  checked->report->accesses++;
  if (!strcmp(node->name, "y") && !may_name_y(checked, function))
    cb_clang_find(checked->report, "y", node->line, node->column, "'%s' reaches y: only commit functions may",
                  name_of(tree, function));
  if (!strcmp(node->name, "x") && !is_argument_of(tree, member, "load_input"))
    cb_clang_find(checked->report, "y", node->line, node->column, "'%s' reaches x without load_input",
                  name_of(tree, function));
}

/* The node around, but for what has no cursor of its own. */
static int around_of(const struct cb_syntax *tree, int node) {
  int around = tree->nodes[node].parent;
  while (around >= 0 && tree->nodes[around].kind == CB_CLANG_UNEXPOSED) around = tree->nodes[around].parent;
  return around;
}

/* The kernels that lay X of several vectors out by rows, or store Y. */
static int lays_out(const char *kernel) {
  static const char *const suffixes[] = {CB_COPY_SUFFIX, CB_COPY_Y_SUFFIX};
  const size_t length = strlen(kernel);
  for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
    const size_t of_suffix = strlen(suffixes[i]);
    if (length > of_suffix && !strcmp(kernel + length - of_suffix, suffixes[i])) return 1;
  }
  return 0;
}

/* A kernel's parameters x and y go into its Vectors, those of several by `place`, and nowhere else. */
static void check_parameter(const struct checked *checked, int use) {
  const struct cb_syntax *tree = checked->tree;
  const struct cb_syntax_node *node = &tree->nodes[use];
  const int named = node->definition;
  if (node->kind != CB_CLANG_NAME || named < 0 || tree->nodes[named].kind != CB_CLANG_PARAMETER) return;
  if (!cb_syntax_is_kernel(tree, tree->nodes[named].parent) || (strcmp(node->name, "x") && strcmp(node->name, "y")))
    return;
  if (lays_out(name_of(tree, tree->nodes[named].parent))) return;
  int around = around_of(tree, use);
  if (around >= 0 && tree->nodes[around].kind == CB_CLANG_CALL && !strcmp(tree->nodes[around].name, "place"))
    around = around_of(tree, around);
  const int holder = around < 0 ? -1 : around_of(tree, around);
  if (around < 0 || tree->nodes[around].kind != CB_CLANG_INIT_LIST || strcmp(name_of(tree, holder), "vectors"))
    cb_clang_find(checked->report, "y", node->line, node->column, "the kernel's '%s' is used outside its Vectors",
                  node->name);
}

/* ---- arrays */

/* Whether `function` is an accessor of the array. */
static int is_accessor(const char *function, const char *array) {
  static const char *const of_values[] = {"value", "value_cached", "value_vector", "value_of", NULL};
  const size_t length = strlen(array);
  if (!strcmp(array, "values") || !strcmp(array, "value_table")) return is_one_of(function, of_values);
  return !strncmp(function, array, length) && (!function[length] || !strcmp(function + length, "_vector"));
}

/* Whether the namespace has an accessor of the array. */
static int has_accessor(const struct cb_syntax *tree, int space, const char *array) {
  for (int child = tree->nodes[space].first; child >= 0; child = tree->nodes[child].next)
    if (cb_syntax_is_function(tree, child) && is_accessor(tree->nodes[child].name, array)) return 1;
  return 0;
}

/* Whether the node, but for what has no cursor of its own, calls the function. */
static int is_call(const struct cb_syntax *tree, int node, const char *function) {
  while (node >= 0 && tree->nodes[node].kind == CB_CLANG_UNEXPOSED) node = tree->nodes[node].last;
  return node >= 0 && tree->nodes[node].kind == CB_CLANG_CALL && !strcmp(tree->nodes[node].name, function);
}

static void check_access(const struct checked *checked, int use, int space, const char *array) {
  const struct cb_syntax *tree = checked->tree;
  const struct cb_syntax_node *node = &tree->nodes[use];
  const int function = cb_syntax_function(tree, use);
  if (!has_accessor(tree, space, array)) return;
  if (tree->nodes[function].parent == space && is_accessor(tree->nodes[function].name, array)) return;
  if (cb_syntax_is_operator(tree, node->parent, "=") && is_call(tree, tree->nodes[node->parent].last, "after_wait")) return;
  if (is_argument_of(tree, use, "after_wait")) return; /* a kernel, or what waits itself, hands its own parameter on */
  cb_clang_find(checked->report, "arrays", node->line, node->column, "'%s' reaches the array '%s' without its accessor",
                name_of(tree, function), array);
}

static void check_array(const struct checked *checked, int use) {
  static const char end[] = "_table";
  const struct cb_syntax *tree = checked->tree;
  const struct cb_syntax_node *node = &tree->nodes[use];
  const int named = node->definition;
  char array[128];
  if (named < 0 || cb_syntax_function(tree, use) < 0) return;
  if (node->kind == CB_CLANG_MEMBER && is_field_of(tree, named, "Arrays")) {
    checked->report->accesses++;
    check_access(checked, use, tree->nodes[tree->nodes[named].parent].parent, node->name);
  }
  const int length = snprintf(array, sizeof array, "%s", node->name), tail = (int)sizeof end - 1;
  if (node->kind != CB_CLANG_NAME || tree->nodes[named].kind != CB_CLANG_VARIABLE || length >= (int)sizeof array)
    return;
  if (length <= tail || strcmp(array + length - tail, end) || cb_syntax_function(tree, named) >= 0) return;
  if (strcmp(array, "value_table")) array[length - tail] = 0;
  checked->report->accesses++;
  check_access(checked, use, tree->nodes[named].parent, array);
}

/* A store through an array takes a conversion that drops const. */
static void check_store(const struct checked *checked, int assignment) {
  const struct cb_syntax *tree = checked->tree;
  const struct cb_syntax_node *node = &tree->nodes[assignment];
  const int is_plain = node->kind == CB_CLANG_BINARY && cb_syntax_is_operator(tree, assignment, "=");
  if (!is_plain && node->kind != CB_CLANG_COMPOUND_ASSIGN) return;
  int at = node->first, is_element = 0;
  while (at >= 0 && tree->nodes[at].kind != CB_CLANG_MEMBER) {
    is_element |= tree->nodes[at].kind == CB_CLANG_SUBSCRIPT || tree->nodes[at].kind == CB_CLANG_UNARY;
    at = tree->nodes[at].kind == CB_CLANG_SUBSCRIPT ? tree->nodes[at].first : tree->nodes[at].last;
  }
  if (at >= 0 && is_element && is_field_of(tree, tree->nodes[at].definition, "Arrays"))
    cb_clang_find(checked->report, "arrays", node->line, node->column, "something is stored in the array '%s'",
                  tree->nodes[at].name);
}

void cb_clang_check_accesses(struct cb_clang_report *report, const struct cb_syntax *device,
                             const struct cb_plan *plan) {
  struct checked checked = {.report = report, .tree = device, .plan = plan};
  for (int i = 0; i < device->count; i++)
    if (cb_syntax_is_function(device, i)) {
      report->functions++;
      checked.has_atomics |= is_one_of(device->nodes[i].name, atomic_functions);
    }
  for (int i = 0; i < device->count; i++) {
    check_atomic(&checked, i);
    check_vectors(&checked, i);
    check_parameter(&checked, i);
    check_array(&checked, i);
    check_store(&checked, i);
  }
}

/* ---- constants */

/* Named from a node that is no part of its declaration. */
static int is_named(const struct cb_syntax *tree, const char *name, int line) {
  for (int i = 0; i < tree->count; i++) {
    const int named = tree->nodes[i].definition;
    if (named >= 0 && tree->nodes[named].line == line && !strcmp(tree->nodes[i].name, name)) return 1;
  }
  return 0;
}

/* In what libclang has no cursors for: thread blocks' sizes in __launch_bounds__. */
static int bounds_launch(const char *text, const char *name) {
  static const char word[] = "__launch_bounds__(";
  for (const char *at = strstr(text, word); at; at = strstr(at + 1, word)) {
    const char *const end = at + strcspn(at, "\n"), *const found = strstr(at, name);
    if (found && found < end &&
        !strchr("_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", found[strlen(name)]))
      return 1;
  }
  return 0;
}

/* A comment behind it in its line; the prelude's constants, which are the same in all texts, have theirs above. */
static int has_origin(const struct cb_syntax *tree, int node) {
  const char *const body = cb_source_behind_prelude(tree->text);
  if (body && tree->text + tree->nodes[node].begin < body) return 1;
  const char *at = tree->text + tree->nodes[node].end;
  return !strncmp(at + strcspn(at, "/\n"), "// ", 3);
}

static const struct cb_region *region_of(const struct cb_plan *plan, const char *name) {
  for (int i = 0; plan && i < plan->regions_count; i++)
    if (!strcmp(plan->regions[i].name, name)) return &plan->regions[i];
  return NULL;
}

static const struct cb_constant *planned(const struct cb_region *region, const char *name) {
  for (int i = 0; i < region->constants_count; i++)
    if (!strcmp(region->constants[i].name, name)) return &region->constants[i];
  return NULL;
}

/* The elements of an array that are all alike, or the one value of all slots: a constant stands for them; another one
 * for where the second parts of split values begin. */
static int stands_for_array(const struct cb_region *region, const char *name, const char *comment, int64_t value) {
  const size_t length = strcspn(comment, "\n");
  for (int i = 0; i < region->arrays_count; i++) {
    const struct cb_array *array = &region->arrays[i];
    if (array->storage == CB_AFFINE && !array->step && array->base == value && strlen(array->meaning) <= length &&
        !strncmp(comment + length - strlen(array->meaning), array->meaning, strlen(array->meaning)))
      return 1;
  }
  return !strcmp(name, "kValue") || (!strcmp(name, "kRests") && value == region->value_slots);
}

/* One that is computed from others is the template's. */
static void check_planned(struct cb_clang_report *report, const struct cb_syntax *tree, int node,
                          const struct cb_region *region) {
  const struct cb_syntax_node *variable = &tree->nodes[node];
  const struct cb_constant *constant = planned(region, variable->name);
  const int literal = cb_syntax_bare(tree, variable->last);
  const char *const end = tree->text + variable->end;
  if (literal < 0 || tree->nodes[literal].kind != CB_CLANG_INTEGER) return;
  const int64_t value = strtoll(tree->text + tree->nodes[literal].begin, NULL, 10);
  if (constant && value != constant->value)
    cb_clang_find(report, "constants", variable->line, variable->column, "'%s' is %lld in the plan", variable->name,
                  (long long)constant->value);
  if (!constant && !stands_for_array(region, variable->name, end, value))
    cb_clang_find(report, "constants", variable->line, variable->column, "the plan has no constant '%s' in region %s",
                  variable->name, region->name);
}

static void check_constant(struct cb_clang_report *report, const struct cb_syntax *device, int node,
                           const struct cb_syntax *host, const struct cb_plan *plan) {
  const struct cb_syntax_node *variable = &device->nodes[node];
  const struct cb_region *region = region_of(plan, device->nodes[variable->parent].name);
  report->constants++;
  if (!is_named(device, variable->name, variable->line) && !is_named(host, variable->name, variable->line) &&
      !bounds_launch(device->text, variable->name))
    cb_clang_find(report, "constants", variable->line, variable->column, "constant '%s' is not used", variable->name);
  if (!has_origin(device, node))
    cb_clang_find(report, "constants", variable->line, variable->column,
                  "constant '%s' does not say where it comes from", variable->name);
  if (region) check_planned(report, device, node, region);
}

void cb_clang_check_constants(struct cb_clang_report *report, const struct cb_syntax *device,
                              const struct cb_syntax *host, const struct cb_plan *plan) {
  for (int i = 1; i < device->count; i++)
    if (cb_syntax_is_constant(device, i)) check_constant(report, device, i, host, plan);
}
