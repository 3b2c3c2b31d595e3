// SPDX-License-Identifier: Apache-2.0
/* libclang as it is found at run time: own declarations of the types and functions that are used, which have been the
 * same from LLVM 14 to 19. Its headers are needed neither to build nor to start cbgen. */
#ifndef CBGEN_RUNTIME_VERIFY_CLANG_LIBRARY_H
#define CBGEN_RUNTIME_VERIFY_CLANG_LIBRARY_H

#include "runtime/cuda/library.h"

struct cb_clang_string {
  const void *data;
  unsigned flags;
};
struct cb_clang_place {
  const void *data[2];
  unsigned number;
};
struct cb_clang_range {
  const void *data[2];
  unsigned begin, end;
};
struct cb_clang_cursor {
  int kind, number;
  const void *data[3];
};
struct cb_clang_type {
  int kind;
  void *data[2];
};
struct cb_clang_file {
  const char *name, *text;
  unsigned long length;
};

/* Kinds of cursors and types, severities and flags, by the numbers of clang-c/Index.h. */
enum {
  CB_CLANG_STRUCT = 2,
  CB_CLANG_UNION = 3,
  CB_CLANG_FIELD = 6,
  CB_CLANG_FUNCTION = 8,
  CB_CLANG_VARIABLE = 9,
  CB_CLANG_PARAMETER = 10,
  CB_CLANG_NAMESPACE = 22,
  CB_CLANG_FUNCTION_TEMPLATE = 30,
  CB_CLANG_UNEXPOSED = 100,
  CB_CLANG_NAME = 101,
  CB_CLANG_MEMBER = 102,
  CB_CLANG_CALL = 103,
  CB_CLANG_INTEGER = 106,
  CB_CLANG_PAREN = 111,
  CB_CLANG_UNARY = 112,
  CB_CLANG_SUBSCRIPT = 113,
  CB_CLANG_BINARY = 114,
  CB_CLANG_COMPOUND_ASSIGN = 115,
  CB_CLANG_CONDITIONAL = 116,
  CB_CLANG_CAST = 117,
  CB_CLANG_INIT_LIST = 119,
  CB_CLANG_FUNCTIONAL_CAST = 128,
  CB_CLANG_COMPOUND = 202,
  CB_CLANG_IF = 205,
  CB_CLANG_SWITCH = 206,
  CB_CLANG_WHILE = 207,
  CB_CLANG_DO = 208,
  CB_CLANG_FOR = 209,
  CB_CLANG_CONTINUE = 212,
  CB_CLANG_BREAK = 213,
  CB_CLANG_RETURN = 214,
  CB_CLANG_ASSEMBLY = 215,
  CB_CLANG_GLOBAL = 414, /* __global__ */
  CB_CLANG_SHARED = 416  /* __shared__ */
};
enum {
  CB_CLANG_TYPE_BOOL = 3,
  CB_CLANG_TYPE_INT128 = 20, /* from bool to here: integers */
  CB_CLANG_TYPE_POINTER = 101,
  CB_CLANG_TYPE_REFERENCE = 103,
  CB_CLANG_TYPE_RECORD = 105,
  CB_CLANG_TYPE_ARRAY = 112
};
enum { CB_CLANG_WARNING = 2, CB_CLANG_RECURSE = 2, CB_CLANG_CONTINUE_VISIT = 1 };

typedef int cb_clang_visitor(struct cb_clang_cursor cursor, struct cb_clang_cursor parent, void *user);

struct cb_clang_calls {
  struct cb_clang_string (*version)(void);
  const char *(*string)(struct cb_clang_string string);
  void (*dispose_string)(struct cb_clang_string string);
  void *(*create_index)(int exclude_declarations, int display_diagnostics);
  void (*dispose_index)(void *index);
  int (*parse)(void *index, const char *file, const char *const *arguments, int count, struct cb_clang_file *files,
               unsigned files_count, unsigned options, void **unit);
  void (*dispose_unit)(void *unit);
  unsigned (*diagnostics)(void *unit);
  void *(*diagnostic)(void *unit, unsigned number);
  void (*dispose_diagnostic)(void *diagnostic);
  int (*severity)(void *diagnostic);
  struct cb_clang_string (*diagnostic_text)(void *diagnostic);
  struct cb_clang_place (*diagnostic_place)(void *diagnostic);
  struct cb_clang_cursor (*unit_cursor)(void *unit);
  unsigned (*visit)(struct cb_clang_cursor parent, cb_clang_visitor *visitor, void *user);
  struct cb_clang_string (*name)(struct cb_clang_cursor cursor);
  struct cb_clang_place (*place)(struct cb_clang_cursor cursor);
  struct cb_clang_range (*extent)(struct cb_clang_cursor cursor);
  struct cb_clang_place (*range_begin)(struct cb_clang_range range);
  struct cb_clang_place (*range_end)(struct cb_clang_range range);
  struct cb_clang_cursor (*referenced)(struct cb_clang_cursor cursor);
  int (*is_null)(struct cb_clang_cursor cursor);
  void *(*file)(void *unit, const char *name);
  struct cb_clang_place (*place_at)(void *unit, void *file, unsigned offset);
  void (*expansion)(struct cb_clang_place place, void **file, unsigned *line, unsigned *column, unsigned *offset);
  struct cb_clang_type (*type)(struct cb_clang_cursor cursor);
  struct cb_clang_type (*canonical)(struct cb_clang_type type);
  struct cb_clang_type (*pointee)(struct cb_clang_type type);
  struct cb_clang_cursor (*structure)(struct cb_clang_type type);
  int (*arguments)(struct cb_clang_cursor cursor);
};

struct cb_clang {
  struct cb_library library;
  struct cb_clang_calls call;
};

#endif
