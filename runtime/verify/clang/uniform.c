// SPDX-License-Identifier: Apache-2.0
/* Which values, and which conditions, may differ among threads: the rules `barriers` and `bounds`.
 *
 * A value has a level: the same in all threads of all launches, of a thread block, of a warp, or of no more than
 * itself. threadIdx is a thread's own, threadIdx.x / 32 its warp's, blockIdx its thread block's; a shuffle from one
 * lane, a ballot and their like are the warp's; what is loaded has the level of its address. Everything else has the
 * highest level of its operands. Variables, parameters, fields of structs and functions' results only ever rise, to the
 * highest of all that is given to them anywhere, and under which condition; the functions are gone through until
 * nothing rises. (A variable that an outermost statement of its function gives a new value has that one's from there.)
 * A call of a function that asks neither for the thread nor for fields has the level of its arguments, which tells the
 * uses of an accessor apart.
 *
 * So a barrier that is said to be wrong may be right for a reason that levels do not show. One that passes is right as
 * far as these rules go: what is behind pointers is not followed. */
#include "runtime/verify/clang/rules.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum level { OF_LAUNCH, OF_BLOCK, OF_WARP, OF_THREAD };

struct fact {
  enum level level;
  int is_read; /* at run time: from an array, a vector, or a parameter of the kernel */
};

/* Under which condition something is executed: its level and its line. */
struct context {
  enum level level;
  int line;
};

/* What is known of a node: a variable, parameter or field, a function, a loop. */
struct known {
  struct fact value; /* of a function: its result */
  struct fact now;   /* of a variable: since all threads have given it another value, in the visit `visited` */
  int visited;
  struct context context; /* of a function: its calls; of a loop: what leaves it early */
  int asks;               /* of a function: for the thread, for shared memory, for fields of structs */
  int reads;              /* of a function: arrays or vectors */
};

struct uniform {
  struct cb_clang_report *report;
  const struct cb_syntax *tree;
  struct known *known; /* for each node */
  int function, loop;  /* at hand; -1: none */
  struct context left; /* of the function at hand: returns so far */
  int visit;           /* of a function: their number so far */
  int changed, reporting;
};

static struct fact see(struct uniform *uniform, int node, struct context context);

/* ---- levels */

static struct fact joined(struct fact a, struct fact b) {
  return (struct fact){a.level > b.level ? a.level : b.level, a.is_read || b.is_read};
}

static struct context deeper(struct context a, struct context b) {
  return b.level > a.level ? b : a;
}

static struct context under(const struct uniform *uniform, struct context context, struct fact condition, int node) {
  return deeper(context, (struct context){condition.level, uniform->tree->nodes[node].line});
}

static void raise_value(struct uniform *uniform, int node, struct fact fact) {
  struct fact *value = &uniform->known[node].value;
  const struct fact both = joined(*value, fact);
  if (both.level == value->level && both.is_read == value->is_read) return;
  *value = both;
  uniform->changed = 1;
}

static void raise_context(struct uniform *uniform, int node, struct context context) {
  if (context.level <= uniform->known[node].context.level) return;
  uniform->known[node].context = context;
  uniform->changed = 1;
}

static void ask(struct uniform *uniform, int asks, int reads) {
  struct known *own = &uniform->known[uniform->function];
  if ((own->asks || !asks) && (own->reads || !reads)) return;
  own->asks |= asks;
  own->reads |= reads;
  uniform->changed = 1;
}

/* ---- what nodes are */

static const struct cb_syntax_node *at(const struct uniform *uniform, int node) {
  return &uniform->tree->nodes[node];
}

static int is_shared(const struct uniform *uniform, int variable) {
  for (int child = at(uniform, variable)->first; child >= 0; child = at(uniform, child)->next)
    if (at(uniform, child)->kind == CB_CLANG_SHARED) return 1;
  return 0;
}

static int is_data_field(const struct uniform *uniform, int field) {
  const char *structure = at(uniform, at(uniform, field)->parent)->name;
  return !strcmp(structure, "Arrays") || !strcmp(structure, "Vectors");
}

static int has_name(const struct uniform *uniform, int node, const char *name) {
  return node >= 0 && !strcmp(at(uniform, node)->name, name);
}

/* Whether it is threadIdx.x, or a variable that starts as that. */
static int is_thread_number(const struct uniform *uniform, int node) {
  node = cb_syntax_bare(uniform->tree, node);
  if (node < 0) return 0;
  const struct cb_syntax_node *named = at(uniform, node);
  if (named->kind == CB_CLANG_MEMBER)
    return has_name(uniform, cb_syntax_bare(uniform->tree, named->first), "threadIdx");
  if (named->kind != CB_CLANG_NAME || named->definition < 0) return 0;
  const struct cb_syntax_node *variable = at(uniform, named->definition);
  if (variable->kind != CB_CLANG_VARIABLE || variable->last < 0) return 0;
  const int start = cb_syntax_bare(uniform->tree, variable->last);
  return at(uniform, start)->kind == CB_CLANG_MEMBER && is_thread_number(uniform, start);
}

/* What a product of integers and constants of the text is; 0: it is something else. */
static int64_t number_of(const struct uniform *uniform, int node) {
  node = cb_syntax_bare(uniform->tree, node);
  if (node < 0) return 0;
  const struct cb_syntax_node *named = at(uniform, node);
  if (named->kind == CB_CLANG_INTEGER) return strtoll(uniform->tree->text + named->begin, NULL, 10);
  if (named->kind == CB_CLANG_BINARY && cb_syntax_is_operator(uniform->tree, node, "*"))
    return number_of(uniform, named->first) * number_of(uniform, named->last);
  if (named->kind != CB_CLANG_NAME || named->definition < 0) return 0;
  return cb_syntax_is_constant(uniform->tree, named->definition)
             ? number_of(uniform, at(uniform, named->definition)->last)
             : 0;
}

/* Whether an operation makes of the thread's number that of its warp, or of several warps. */
static int is_warp_number(const struct uniform *uniform, int node) {
  const struct cb_syntax *tree = uniform->tree;
  if (!is_thread_number(uniform, at(uniform, node)->first)) return 0;
  const int64_t number = number_of(uniform, at(uniform, node)->last);
  return (cb_syntax_is_operator(tree, node, "/") && number > 0 && number % 32 == 0) ||
         (cb_syntax_is_operator(tree, node, ">>") && number >= 5);
}

/* Whether a member's value is kept with the variable that it is a part of: members of a union share their bytes, and
 * those of a template's own types are known only once it is used. */
static int is_part(const struct uniform *uniform, int field) {
  return field < 0 || at(uniform, at(uniform, field)->parent)->kind == CB_CLANG_UNION;
}

/* ---- assignments */

/* Raises what is assigned to: the variable or field at the root of an element or a member. */
static void assign(struct uniform *uniform, int target, struct fact fact, struct context context) {
  target = cb_syntax_bare(uniform->tree, target);
  if (target < 0) return;
  const struct cb_syntax_node *node = at(uniform, target);
  if (node->kind == CB_CLANG_SUBSCRIPT) {
    fact = joined(fact, see(uniform, node->last, context));
    assign(uniform, node->first, fact, context);
  } else if (node->kind == CB_CLANG_MEMBER && is_part(uniform, node->definition)) {
    assign(uniform, node->first, fact, context);
  } else if ((node->kind == CB_CLANG_NAME || node->kind == CB_CLANG_MEMBER) && node->definition >= 0) {
    const int named = node->definition;
    fact.level = fact.level > context.level ? fact.level : context.level;
    if (is_shared(uniform, named)) return;
    raise_value(uniform, named, fact);
    if (uniform->known[named].visited == uniform->visit)
      uniform->known[named].now = joined(uniform->known[named].now, fact);
  }
}

static struct fact see_children(struct uniform *uniform, int node, struct context context) {
  struct fact fact = {OF_LAUNCH, 0};
  for (int child = at(uniform, node)->first; child >= 0; child = at(uniform, child)->next)
    fact = joined(fact, see(uniform, child, context));
  return fact;
}

/* An assignment among the outermost statements of a function: what the variable was before does not count any more. */
static void assign_anew(struct uniform *uniform, int assignment, struct fact fact) {
  const int variable = at(uniform, cb_syntax_bare(uniform->tree, at(uniform, assignment)->first))->definition;
  const int around = at(uniform, assignment)->parent;
  if (variable < 0 || at(uniform, around)->kind != CB_CLANG_COMPOUND ||
      at(uniform, around)->parent != uniform->function)
    return;
  if (at(uniform, variable)->kind != CB_CLANG_VARIABLE || at(uniform, variable)->type >= CB_CLANG_TYPE_POINTER) return;
  uniform->known[variable].now = fact;
  uniform->known[variable].visited = uniform->visit;
}

static struct fact see_assignment(struct uniform *uniform, int node, struct context context) {
  const struct fact fact = see_children(uniform, node, context);
  const int is_plain = at(uniform, node)->kind == CB_CLANG_BINARY;
  const struct fact given = is_plain ? see(uniform, at(uniform, node)->last, context) : fact;
  assign(uniform, at(uniform, node)->first, given, context);
  if (is_plain) assign_anew(uniform, node, given);
  return given;
}

/* { … } for a struct: each element goes to its field. */
static struct fact see_list(struct uniform *uniform, int node, struct context context) {
  const int structure = at(uniform, node)->structure;
  if (structure < 0 || at(uniform, structure)->kind != CB_CLANG_STRUCT) return see_children(uniform, node, context);
  int field = at(uniform, structure)->first;
  for (int child = at(uniform, node)->first; child >= 0; child = at(uniform, child)->next) {
    const struct fact fact = see(uniform, child, context);
    while (field >= 0 && at(uniform, field)->kind != CB_CLANG_FIELD) field = at(uniform, field)->next;
    if (field < 0) break;
    raise_value(uniform, field, fact);
    field = at(uniform, field)->next;
  }
  return (struct fact){OF_LAUNCH, 0};
}

/* ---- calls */

static struct context whole_context(const struct uniform *uniform, struct context context) {
  return deeper(deeper(context, uniform->left), uniform->known[uniform->function].context);
}

static void see_barrier(struct uniform *uniform, int call, struct context context) {
  const struct cb_syntax_node *node = at(uniform, call);
  const int of_warp = !strcmp(node->name, "__syncwarp");
  const struct context whole = whole_context(uniform, context);
  if (!uniform->reporting || (!of_warp && strcmp(node->name, "__syncthreads"))) return;
  uniform->report->barriers++;
  if (whole.level > (of_warp ? OF_WARP : OF_BLOCK))
    cb_clang_find(uniform->report, "barriers", node->line, node->column,
                  "'%s' depends on line %d, which threads of a %s may leave differently", node->name, whole.line,
                  of_warp ? "warp" : "thread block");
}

/* Functions of CUDA: what they make of their arguments. */
static struct fact cuda_result(struct uniform *uniform, int call, struct fact arguments, struct context context) {
  static const char *const votes[] = {"__ballot_sync", "__any_sync", "__all_sync", NULL};
  const char *name = at(uniform, call)->name;
  for (const char *const *vote = votes; *vote; vote++)
    if (!strcmp(name, *vote)) return (struct fact){OF_WARP, 1};
  if (!strncmp(name, "atomic", 6)) {
    ask(uniform, 1, 0);
    return (struct fact){OF_THREAD, 1};
  }
  if (strcmp(name, "__shfl_sync")) return arguments;
  const struct fact lane = see(uniform, cb_syntax_argument(uniform->tree, call, 2), context);
  return (struct fact){lane.level > OF_WARP ? OF_THREAD : OF_WARP, arguments.is_read};
}

/* Arguments go to parameters; what a function assigns to a reference, or through a pointer to an array, comes back. */
static void bind(struct uniform *uniform, int call, int function, struct context context) {
  int parameter = at(uniform, function)->first;
  for (int i = 0; i < at(uniform, call)->arguments; i++) {
    const int argument = cb_syntax_argument(uniform->tree, call, i);
    while (parameter >= 0 && at(uniform, parameter)->kind != CB_CLANG_PARAMETER)
      parameter = at(uniform, parameter)->next;
    if (parameter < 0 || argument < 0) return;
    raise_value(uniform, parameter, see(uniform, argument, context));
    const struct cb_syntax_node *root = at(uniform, cb_syntax_bare(uniform->tree, argument));
    const int is_record = root->type == CB_CLANG_TYPE_RECORD; /* whose fields are known by themselves */
    if (!is_record && (at(uniform, parameter)->is_reference || root->type == CB_CLANG_TYPE_ARRAY))
      assign(uniform, argument, uniform->known[parameter].value, context);
    parameter = at(uniform, parameter)->next;
  }
}

static struct fact see_call(struct uniform *uniform, int call, struct context context) {
  const struct cb_syntax_node *node = at(uniform, call);
  const int function = node->definition;
  struct fact arguments = see_children(uniform, call, context);
  see_barrier(uniform, call, context);
  if (!strcmp(node->name, "operator[]")) { /* an element of shared memory */
    ask(uniform, 1, 0);
    return joined(arguments, (struct fact){OF_BLOCK, 1});
  }
  if (function < 0 || !cb_syntax_is_function(uniform->tree, function))
    return cuda_result(uniform, call, arguments, context);
  const struct known *own = &uniform->known[function];
  bind(uniform, call, function, context);
  raise_context(uniform, function, whole_context(uniform, context));
  ask(uniform, own->asks, own->reads);
  if (!strcmp(node->name, "shuffle")) { /* a template: what it is called with says from which lane */
    const struct fact lane = see(uniform, cb_syntax_argument(uniform->tree, call, 1), context);
    return (struct fact){lane.level > OF_WARP ? OF_THREAD : OF_WARP, arguments.is_read};
  }
  struct fact result = own->value;
  if (!own->asks && arguments.level < result.level) result.level = arguments.level;
  if (!own->reads) result.is_read = arguments.is_read;
  return result;
}

/* ---- names */

static struct fact see_name(struct uniform *uniform, int node) {
  const struct cb_syntax_node *name = at(uniform, node);
  const int named = name->definition;
  if (named < 0 && !strcmp(name->name, "threadIdx")) {
    ask(uniform, 1, 0);
    return (struct fact){OF_THREAD, 0};
  }
  if (named < 0) return (struct fact){strcmp(name->name, "blockIdx") ? OF_LAUNCH : OF_BLOCK, 0};
  if (cb_syntax_is_function(uniform->tree, named)) return (struct fact){OF_LAUNCH, 0};
  if (is_shared(uniform, named)) {
    ask(uniform, 1, 0);
    return (struct fact){OF_BLOCK, 1};
  }
  const struct known *own = &uniform->known[named];
  return own->visited == uniform->visit ? own->now : own->value;
}

static struct fact see_member(struct uniform *uniform, int node, struct context context) {
  const int field = at(uniform, node)->definition;
  const struct fact holder = see_children(uniform, node, context);
  if (is_part(uniform, field) || at(uniform, field)->kind != CB_CLANG_FIELD) return holder;
  ask(uniform, !is_data_field(uniform, field), is_data_field(uniform, field));
  if (is_data_field(uniform, field)) return (struct fact){OF_LAUNCH, 1};
  return joined(holder, uniform->known[field].value);
}

static struct fact see_variable(struct uniform *uniform, int node, struct context context) {
  const struct fact start = see_children(uniform, node, context);
  if (!is_shared(uniform, node)) raise_value(uniform, node, start);
  return (struct fact){OF_LAUNCH, 0};
}

/* ---- statements */

static void check_bound(struct uniform *uniform, int condition, struct context context) {
  const int bare = cb_syntax_bare(uniform->tree, condition);
  const struct cb_syntax_node *node = at(uniform, bare);
  if (node->kind == CB_CLANG_BINARY) {
    check_bound(uniform, node->first, context);
    check_bound(uniform, node->last, context);
    return;
  }
  const struct fact fact = see(uniform, bare, context);
  if (fact.level == OF_LAUNCH && fact.is_read)
    cb_clang_find(
        uniform->report, "bounds", node->line, node->column,
        "this loop's condition reads at run time what is the same in all threads: it could stand in the text");
}

/* The children of a `for` that stand in its first, second and third part; -1: the part is empty. */
static void parts_of(const struct uniform *uniform, int loop, int parts[3]) {
  const char *text = uniform->tree->text;
  int part = 0, position = at(uniform, loop)->begin;
  parts[0] = parts[1] = parts[2] = -1;
  for (int child = at(uniform, loop)->first; child != at(uniform, loop)->last; child = at(uniform, child)->next) {
    for (; position < at(uniform, child)->begin; position++) part += text[position] == ';';
    if (part < 3) parts[part] = child;
    position = at(uniform, child)->end;
    if (text[position - 1] == ';') position--; /* a declaration's own */
  }
}

static struct fact see_loop(struct uniform *uniform, int node, struct context context) {
  const int kind = at(uniform, node)->kind, outer = uniform->loop;
  int parts[3] = {-1, at(uniform, node)->first, -1}, body = at(uniform, node)->last;
  if (kind == CB_CLANG_FOR) parts_of(uniform, node, parts);
  if (kind == CB_CLANG_DO) parts[1] = at(uniform, node)->last, body = at(uniform, node)->first;
  if (parts[0] >= 0) see(uniform, parts[0], context);
  const struct fact condition = parts[1] < 0 ? (struct fact){OF_LAUNCH, 0} : see(uniform, parts[1], context);
  const struct context inside = deeper(under(uniform, context, condition, node), uniform->known[node].context);
  uniform->loop = node;
  see(uniform, body, inside);
  if (parts[2] >= 0) see(uniform, parts[2], inside);
  uniform->loop = outer;
  if (uniform->reporting) uniform->report->loops++;
  if (uniform->reporting && parts[1] >= 0) check_bound(uniform, parts[1], context);
  return (struct fact){OF_LAUNCH, 0};
}

/* The first child decides under what the others are executed: if, switch, ?:, && and ||. */
static struct fact see_condition(struct uniform *uniform, int node, struct context context) {
  const int first = at(uniform, node)->first;
  struct fact fact = see(uniform, first, context);
  const struct context inside = under(uniform, context, fact, node);
  for (int child = at(uniform, first)->next; child >= 0; child = at(uniform, child)->next)
    fact = joined(fact, see(uniform, child, inside));
  return fact;
}

static struct fact see_return(struct uniform *uniform, int node, struct context context) {
  struct fact fact = see_children(uniform, node, context);
  if (fact.level < context.level) fact.level = context.level;
  raise_value(uniform, uniform->function, fact);
  uniform->left = deeper(uniform->left, context);
  for (int loop = uniform->loop; loop >= 0; loop = at(uniform, loop)->parent) /* its next round lacks who has left */
    if (at(uniform, loop)->kind >= CB_CLANG_WHILE && at(uniform, loop)->kind <= CB_CLANG_FOR)
      raise_context(uniform, loop, context);
  return (struct fact){OF_LAUNCH, 0};
}

static struct fact see_binary(struct uniform *uniform, int node, struct context context) {
  const struct cb_syntax *tree = uniform->tree;
  if (cb_syntax_is_operator(tree, node, "=")) return see_assignment(uniform, node, context);
  if (cb_syntax_is_operator(tree, node, "&&") || cb_syntax_is_operator(tree, node, "||"))
    return see_condition(uniform, node, context);
  struct fact fact = see_children(uniform, node, context);
  if (is_warp_number(uniform, node)) fact.level = OF_WARP;
  return fact;
}

static struct fact see_unary(struct uniform *uniform, int node, struct context context) {
  const struct fact fact = see_children(uniform, node, context);
  const char *sign = uniform->tree->text + at(uniform, node)->begin,
             *end = uniform->tree->text + at(uniform, node)->end;
  static const char *const counting[] = {"++", "--"};
  for (int i = 0; i < 2; i++)
    if (!strncmp(sign, counting[i], 2) || !strncmp(end - 2, counting[i], 2))
      assign(uniform, at(uniform, node)->first, fact, context);
  return fact;
}

static struct fact see_assembly(struct uniform *uniform, int node, struct context context) {
  const struct fact fact = see_children(uniform, node, context);
  for (int child = at(uniform, node)->first; child >= 0; child = at(uniform, child)->next)
    assign(uniform, child, fact, context);
  return fact;
}

static struct fact see_leave(struct uniform *uniform, int node, struct context context) {
  (void)node;
  if (uniform->loop >= 0) raise_context(uniform, uniform->loop, context);
  return (struct fact){OF_LAUNCH, 0};
}

static struct fact see(struct uniform *uniform, int node, struct context context) {
  if (node < 0) return (struct fact){OF_LAUNCH, 0};
  switch (at(uniform, node)->kind) {
  case CB_CLANG_NAME:
    return see_name(uniform, node);
  case CB_CLANG_MEMBER:
    return see_member(uniform, node, context);
  case CB_CLANG_CALL:
    return see_call(uniform, node, context);
  case CB_CLANG_BINARY:
    return see_binary(uniform, node, context);
  case CB_CLANG_COMPOUND_ASSIGN:
    return see_assignment(uniform, node, context);
  case CB_CLANG_UNARY:
    return see_unary(uniform, node, context);
  case CB_CLANG_INIT_LIST:
    return see_list(uniform, node, context);
  case CB_CLANG_VARIABLE:
    return see_variable(uniform, node, context);
  case CB_CLANG_ASSEMBLY:
    return see_assembly(uniform, node, context);
  case CB_CLANG_RETURN:
    return see_return(uniform, node, context);
  case CB_CLANG_BREAK:
  case CB_CLANG_CONTINUE:
    return see_leave(uniform, node, context);
  case CB_CLANG_WHILE:
  case CB_CLANG_DO:
  case CB_CLANG_FOR:
    return see_loop(uniform, node, context);
  case CB_CLANG_CONDITIONAL:
  case CB_CLANG_IF:
  case CB_CLANG_SWITCH:
    return see_condition(uniform, node, context);
  default:
    return see_children(uniform, node, context);
  }
}

/* ---- all functions */

static int is_scalar_of_kernel(const struct uniform *uniform, int function, int child) {
  return at(uniform, child)->kind == CB_CLANG_PARAMETER && at(uniform, child)->type != CB_CLANG_TYPE_RECORD &&
         cb_syntax_is_kernel(uniform->tree, function);
}

static void see_functions(struct uniform *uniform) {
  uniform->changed = 0;
  for (int i = 0; i < uniform->tree->count; i++) {
    if (!cb_syntax_is_function(uniform->tree, i)) continue;
    uniform->function = i;
    uniform->visit++;
    uniform->loop = -1;
    uniform->left = (struct context){OF_LAUNCH, 0};
    for (int child = at(uniform, i)->first; child >= 0; child = at(uniform, child)->next)
      if (at(uniform, child)->kind == CB_CLANG_COMPOUND)
        see(uniform, child, (struct context){OF_LAUNCH, 0});
      else if (is_scalar_of_kernel(uniform, i, child))
        raise_value(uniform, child, (struct fact){OF_LAUNCH, 1});
  }
}

enum cb_status cb_clang_check_threads(struct cb_clang_report *report, const struct cb_syntax *device,
                                      struct cb_diag *diag) {
  struct uniform uniform = {.report = report, .tree = device};
  uniform.known = cb_calloc((size_t)device->count + 1, sizeof *uniform.known);
  if (!uniform.known) return cb_fail_memory(diag, "levels of a kernel's values", sizeof *uniform.known);
  do see_functions(&uniform);
  while (uniform.changed);
  uniform.reporting = 1;
  see_functions(&uniform);
  cb_free(uniform.known);
  return CB_OK;
}
