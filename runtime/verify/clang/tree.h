// SPDX-License-Identifier: Apache-2.0
/* A text's syntax tree, taken out of libclang: what the rules need of it, as an array of nodes that outlives the parse.
 * Only what stands in the text itself is in it, nothing of the stand-ins for CUDA. Node 0 is the text. */
#ifndef CBGEN_RUNTIME_VERIFY_CLANG_TREE_H
#define CBGEN_RUNTIME_VERIFY_CLANG_TREE_H

#include "base/arena.h"
#include "runtime/verify/clang/clang.h"
#include "runtime/verify/clang/library.h"

struct cb_syntax_node {
  int kind, type;   /* type: canonical, behind a reference; else CB_CLANG_TYPE_… of library.h */
  int is_reference; /* its type is an lvalue reference */
  int line, column;
  int begin, end;                /* offsets in the text */
  int definition;                /* node of what it names; -1: nothing, or nothing of this text */
  int structure;                 /* node of its type's struct; likewise */
  int arguments;                 /* of a call */
  int parent, first, last, next; /* -1: none */
  const char *name;              /* "" when it has none */
};

enum cb_clang_view { CB_CLANG_DEVICE, CB_CLANG_HOST };

struct cb_syntax {
  struct cb_arena arena;
  const char *text; /* the caller's */
  struct cb_syntax_node *nodes;
  int count;
};

/* Parses the text; diagnostics become findings of the report. Release the tree whatever the status. */
enum cb_status cb_syntax_read(struct cb_syntax *tree, const struct cb_clang *clang, const char *text,
                              enum cb_clang_view view, struct cb_clang_report *report, struct cb_diag *diag);
void cb_syntax_release(struct cb_syntax *tree);

/* Notes a finding at a node. */
void cb_clang_find(struct cb_clang_report *report, const char *rule, int line, int column, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* The function that a node stands in, itself included; -1: none. */
int cb_syntax_function(const struct cb_syntax *tree, int node);
/* Child number `number`, from 0; -1: there are fewer. */
int cb_syntax_child(const struct cb_syntax *tree, int node, int number);
/* Without the parentheses and conversions around it. */
int cb_syntax_bare(const struct cb_syntax *tree, int node);
/* Whether the last child of a binary or unary node stands behind `operator`, alone. */
int cb_syntax_is_operator(const struct cb_syntax *tree, int node, const char *sign);
int cb_syntax_is_function(const struct cb_syntax *tree, int node);
/* A constexpr outside functions. */
int cb_syntax_is_constant(const struct cb_syntax *tree, int node);
int cb_syntax_is_kernel(const struct cb_syntax *tree, int node);
/* Argument `number` of a call; -1: there is none. */
int cb_syntax_argument(const struct cb_syntax *tree, int call, int number);

#endif
